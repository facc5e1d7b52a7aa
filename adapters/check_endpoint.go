package adapters

import (
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/headgate/headgate/provider"
)

func (f *faults) endpoint(path string, a provider.Auth, id provider.Identity, e provider.Endpoint) {
	if _, err := url.Parse("http://host" + placeholder.ReplaceAllString(e.Path, "x")); err != nil {
		f.add(at(path, pathField), "is not escaped: want %%25 for a percent sign")
	}
	if len(e.Kinds) == 0 {
		f.add(at(path, "kinds"), "are missing: want what it looks up, such as [ip]")
	}
	for _, t := range parts(e) {
		f.template(path+"."+t.at(), t)
		f.keyPlace(path+"."+t.at(), a, t)
	}
	f.json(at(path, jsonField), e)
	f.headers(at(path, headersField), a, id, e)
	if a.Kind != authForm {
		return
	}
	if e.Method == "" || e.Method == http.MethodGet || e.Method == http.MethodHead {
		f.add(at(path, "method"), "has no body, which is the key's place: want POST")
	}
	if e.JSON != "" {
		f.add(at(path, jsonField), "has no form field for the key: want form")
	}
}

// template checks the filters of one text.
func (f *faults) template(field string, t part) {
	for _, p := range placeholder.FindAllString(t.template, -1) {
		_, through := split(p)
		for i, name := range through {
			switch {
			case filters[name] == nil:
				f.add(field, "%s: the filter %q is unknown: want one of %s", p, name, knownFilters())
			case name == numberFilter && (t.field != jsonField || p != t.template || i < len(through)-1):
				f.add(field, `%s: number comes last, in a string of json that is nothing else: want "{%s|number}" there`, p, pageName)
			}
		}
	}
}

// keyPlace sees that the key, and what goes along with it, has one place that
// nothing else is put into.
func (f *faults) keyPlace(field string, a provider.Auth, t part) {
	own := map[string]string{paramsField: authQuery, formField: authForm, headersField: authHeader}[t.field]
	if own != "" && own == a.Kind && isOwn(a, t.name) {
		f.add(field, "is the key's own place: want it in auth alone")
	}
	if a.Kind != authPath {
		return
	}
	for _, p := range placeholder.FindAllString(t.template, -1) {
		switch name, through := split(p); {
		case name != a.Name:
		case own != "":
			f.add(field, "holds the key {%s}: want it in the path or json alone", a.Name)
		case len(through) > 0:
			f.add(field, "changes the key: want {%s} without a filter", a.Name)
		}
	}
}

// isOwn says whether the key, or what goes along, is sent under that name.
func isOwn(a provider.Auth, name string) bool {
	same := func(n string) bool { return n == name || a.Kind == authHeader && strings.EqualFold(n, name) }
	return same(a.Name) || slices.ContainsFunc(slices.Collect(maps.Keys(a.With)), same)
}

// json sees that a body can do without its page, and that nobody expects the name
// of a member to be filled.
func (f *faults) json(field string, e provider.Endpoint) {
	tree, err := parseJSON(e.JSON)
	if err != nil {
		return // none, or a fault that validation tells
	}
	_, object := tree.(map[string]any)
	paged := func(s string) bool { return names(s, pageName) }
	if !object && e.Paging != nil && slices.ContainsFunc(jsonStrings(tree, nil), paged) {
		f.add(field, "has {%s} outside of an object, so that nothing can be left out on the first page: want it in a member", pageName)
	}
	for _, name := range jsonNames(tree, nil) {
		if p := placeholder.FindString(name); p != "" {
			f.add(field, "has %s in the name of a member: want it in a value", p)
		}
	}
}

// ours are the headers that a declaration cannot write: net/http's, and the one
// that says what it can decode.
var ours = []string{"Accept-Encoding", "Connection", "Content-Length", "Host", "Transfer-Encoding"}

func (f *faults) headers(field string, a provider.Auth, id provider.Identity, e provider.Endpoint) {
	seen := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		canonical := http.CanonicalHeaderKey(name)
		switch {
		case seen[canonical]:
			f.add(at(field, name), "is there twice: a header's name is the same in upper and lower case")
		case canonical == "Authorization" && !(a.Kind == authHeader && isOwn(a, name)):
			f.add(at(field, name), "is for a key: want it in auth")
		case canonical == "User-Agent" && (id.UserAgent != "" || id.Contact):
			f.add(at(field, name), "is what identity says: want it there alone")
		case slices.Contains(ours, canonical):
			f.add(at(field, name), "belongs to the connection: leave it out")
		}
		seen[canonical] = true
	}
}
