package provider

import (
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

var placeholder = regexp.MustCompile(`\{[A-Za-z0-9_.-]+\}`)

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
