package adapters

import (
	"fmt"
	"maps"
	"slices"

	"github.com/headgate/headgate/provider"
)

// part is one text of an endpoint that is filled.
type part struct {
	field    string // path, params, form, headers or json
	name     string // of the parameter, form field or header
	template string
}

// The fields of an endpoint that are filled.
const (
	pathField    = "path"
	paramsField  = "params"
	formField    = "form"
	headersField = "headers"
	jsonField    = "json"
)

// parts returns the texts of e, those of its JSON body being its strings.
func parts(e provider.Endpoint) []part {
	all := []part{{field: pathField, template: e.Path}}
	for _, named := range []struct {
		field     string
		templates map[string]string
	}{{paramsField, e.Params}, {formField, e.Form}, {headersField, e.Headers}} {
		for _, name := range slices.Sorted(maps.Keys(named.templates)) {
			all = append(all, part{named.field, name, named.templates[name]})
		}
	}
	if e.JSON == "" {
		return all
	}
	tree, err := parseJSON(e.JSON)
	if err != nil {
		return all // a fault of the declaration, which validation tells
	}
	for _, text := range jsonStrings(tree, nil) {
		all = append(all, part{field: jsonField, template: text})
	}
	return all
}

// at is where it stands, below its endpoint.
func (p part) at() string {
	if p.name == "" {
		return p.field
	}
	return at(p.field, p.name)
}

// replaceable says whether a param of the query's may take its place.
func (p part) replaceable() bool { return p.field == paramsField || p.field == formField }

// Endpoint returns the endpoint that q is asked at: the one that q names, else the
// first that takes its kind, is not in the declaration's Throttle.Off and needs
// nothing that q's Params lack. The error says what the provider takes, and why an
// endpoint was passed over.
func (h *HTTP) Endpoint(q provider.Query) (provider.Endpoint, error) {
	if q.Endpoint != "" {
		return h.named(q)
	}
	var kinds []provider.Kind
	why := ""
	for _, e := range h.p.Endpoints {
		lacking := h.lacking(e, q)
		switch {
		case !e.Takes(q.Kind):
			kinds = append(kinds, e.Kinds...)
		case !h.p.Throttle.Switched(e.Name):
			why += fmt.Sprintf("; endpoint %q is switched off", e.Name)
		case len(lacking) > 0:
			why += fmt.Sprintf("; endpoint %q needs the query's params %s", e.Name, list(lacking))
		default:
			return e, nil
		}
	}
	if why != "" {
		return provider.Endpoint{}, fmt.Errorf("no endpoint can be asked for the kind %q%s", q.Kind, why)
	}
	slices.Sort(kinds)
	return provider.Endpoint{}, fmt.Errorf("no endpoint takes the kind %q, only %s", q.Kind, list(slices.Compact(kinds)))
}

// lacking is what e needs of a query's params that q does not have.
func (h *HTTP) lacking(e provider.Endpoint, q provider.Query) []string {
	return slices.DeleteFunc(h.p.Needs(e), func(name string) bool {
		_, given := q.Params[name]
		return given
	})
}

// named returns the endpoint that q names, if it takes q's kind. What it lacks is
// told where it is filled, and that it is switched off is for the caller's policy.
func (h *HTTP) named(q provider.Query) (provider.Endpoint, error) {
	var names []string
	for _, e := range h.p.Endpoints {
		if e.Name != q.Endpoint {
			names = append(names, e.Name)
			continue
		}
		if q.Kind != "" && !e.Takes(q.Kind) {
			return provider.Endpoint{}, fmt.Errorf("endpoint %q takes no %q, only %s", e.Name, q.Kind, list(e.Kinds))
		}
		return e, nil
	}
	return provider.Endpoint{}, fmt.Errorf("no endpoint %q, only %s", q.Endpoint, list(names))
}
