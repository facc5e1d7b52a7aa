package provider

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
)

var (
	kinds      = []Kind{IP, Domain, URL, Hash, Email, Phone, Company, Text}
	methodForm = regexp.MustCompile(`^[A-Z]+$`)
)

func (p Provider) checkEndpoints(f *faults) {
	counted := []string{Requests} // of every call, limited or not
	for _, l := range p.Throttle.Limits {
		counted = append(counted, l.WithDefaults().Unit)
	}
	seen := map[string]string{}
	for i, e := range p.Endpoints {
		path := item("endpoints", i)
		first, taken := seen[e.Name]
		switch {
		case e.Name == "":
			f.add(at(path, "name"), "is missing: each endpoint needs its own")
		case taken:
			f.add(at(path, "name"), "%s is the name of %s already: each endpoint needs its own", quoteShort(e.Name), first)
		default:
			seen[e.Name] = path
		}
		e.check(f, path, counted)
	}
}

func (e Endpoint) check(f *faults, path string, counted []string) {
	if e.Method != "" && !methodForm.MatchString(e.Method) {
		f.add(at(path, "method"), "%s is no method: write it as GET or POST", quoteShort(e.Method))
	}
	if problem := pathProblem(e.Path); problem != "" {
		f.add(at(path, "path"), "%s", problem)
	}
	e.checkBody(f, path)
	e.checkPaging(f, path)
	for i, k := range e.Kinds {
		if !slices.Contains(kinds, k) {
			f.add(item(at(path, "kinds"), i), "%s is unknown: it must be %s", quoteShort(string(k)), oneOf(kinds))
		}
	}
	for _, unit := range slices.Sorted(maps.Keys(e.Cost)) {
		where := at(at(path, "cost"), unit)
		if n := e.Cost[unit]; n < 0 {
			f.add(where, "%d is negative: a cost is at least 0", n)
		}
		if !slices.Contains(counted, unit) {
			f.add(where, "no limit counts it: declare a limit with unit %s, or leave it out", quoteShort(unit))
		}
	}
}

// checkBody checks what is sent besides the path: header names, and one body at
// most, of a method that has one.
func (e Endpoint) checkBody(f *faults, path string) {
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		switch {
		case !headerName.MatchString(name):
			f.add(at(path, "headers"), `%s is no name of a header: write it as "Accept"`, quoteShort(name))
		case strings.ContainsFunc(e.Headers[name], isControl):
			f.add(at(at(path, "headers"), name), "has a control character: a header cannot hold it")
		}
	}
	if e.JSON != "" && !json.Valid([]byte(e.JSON)) {
		f.add(at(path, "json"), `is no JSON text: placeholders stand inside its strings, "{value}", "{page|number}" where a number is wanted`)
	}
	key := "json"
	switch {
	case e.JSON != "" && len(e.Form) > 0:
		f.add(at(path, "form"), "is there beside json: a request has one body")
	case len(e.Form) > 0:
		key = "form"
		fallthrough
	case e.JSON != "":
		if e.Method == "" || e.Method == "GET" || e.Method == "HEAD" {
			f.add(at(path, key), "is a body, which %s does not have: write method: POST", cmp.Or(e.Method, "GET"))
		}
	}
}

func (e Endpoint) checkPaging(f *faults, path string) {
	asks := hasPage(e.Path) || hasPage(e.JSON)
	for _, part := range []map[string]string{e.Params, e.Form, e.Headers} {
		for _, template := range part {
			asks = asks || hasPage(template)
		}
	}
	path = at(path, "paging")
	p := e.Paging
	switch {
	case p == nil && asks:
		f.add(path, "is missing: the placeholder {page} needs it")
		return
	case p == nil:
		return
	case !asks:
		f.add(path, "asks for no page: write the placeholder {page} into params, form, json or path")
	}
	if p.Next != (Source{}) {
		p.Next.check(f, at(path, "next"), "a page", nil)
		if p.Start != 0 || p.Step != 0 {
			f.add(at(path, "next"), "is there beside start or step: a page is told by the answer or counted")
		}
		if hasPage(e.Path) {
			f.add(at(path, "next"), "gives the first page no {page}, which the path needs: count pages by start")
		}
	}
	if p.Start < 0 {
		f.add(at(path, "start"), "%d is negative: the first page's number is at least 0", p.Start)
	}
	if p.Step < 0 {
		f.add(at(path, "step"), "%d is negative: write a number above 0, or leave it out", p.Step)
	}
	checkJSONPath(f, at(path, "items"), p.Items)
	checkCount(f, at(path, "max"), p.Max)
}

func hasPage(template string) bool {
	return slices.ContainsFunc(placeholder.FindAllString(template, -1), func(p string) bool {
		name, _, _ := strings.Cut(strings.Trim(p, "{}"), "|")
		return name == "page"
	})
}

// placeholder is {name}, or {name|filter} with any number of filters.
var placeholder = regexp.MustCompile(`\{[A-Za-z0-9_.-]+(\|[a-z0-9]+)*\}`)

func pathProblem(path string) string {
	switch {
	case path == "":
		return ""
	case !strings.HasPrefix(path, "/"):
		return `must begin with a slash: "/v1/hosts/{value}"`
	case strings.ContainsAny(path, "?#"):
		return "must not have a query or fragment: write it under params"
	case strings.ContainsFunc(path, isControl):
		return "has a control character"
	case strings.ContainsAny(placeholder.ReplaceAllString(path, ""), "{}"):
		return "has a brace without its partner, or a placeholder without a name: write it as {value}"
	}
	return ""
}
