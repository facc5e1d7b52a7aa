package adapters

import (
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
