package adapters

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/provider"
)

// check returns what is wrong with a declaration as an adapter's. Each fault is a
// *provider.FieldError.
func check(p provider.Provider) error { return errors.Join(p.Validate(), usable(p)) }

// usable returns what an adapter needs beyond a valid declaration: wrapped calls
// have no use for a key or an endpoint, lookups have.
func usable(p provider.Provider) error {
	var f faults
	f.auth(p)
	f.identity(p)
	if p.BaseURL == "" {
		f.add("base_url", "is missing: want an absolute http or https URL")
	}
	if len(p.Endpoints) == 0 {
		f.add("endpoints", "are missing: want at least one")
	}
	for i, e := range p.Endpoints {
		f.endpoint(fmt.Sprintf("endpoints[%d]", i), p.Auth, p.Identity, e)
	}
	return errors.Join(f...)
}

// faults collects what is wrong.
type faults []error

func (f *faults) add(field, format string, args ...any) {
	*f = append(*f, &provider.FieldError{Field: field, Problem: fmt.Sprintf(format, args...)})
}

// at is the path of a key below path.
func at(path, key string) string {
	if key == "" || strings.ContainsAny(key, `.[]"`) {
		return path + "[" + strconv.Quote(key) + "]"
	}
	return path + "." + key
}

func (f *faults) auth(p provider.Provider) {
	a := p.Auth
	if keyless(a) {
		return
	}
	if len(a.Env) == 0 {
		f.add("auth.env", "is missing: want the environment variables that hold the keys")
	}
	if a.Kind == authHeader {
		for _, name := range slices.Sorted(maps.Keys(a.With)) {
			if name != a.Name && strings.EqualFold(name, a.Name) {
				f.add(at("auth.with", name), "is the key's own header: want a name of its own")
			}
		}
	}
	if a.Kind != authPath {
		return
	}
	has := func(e provider.Endpoint) bool {
		return slices.ContainsFunc(parts(e), func(t part) bool {
			return (t.field == pathField || t.field == jsonField) && names(t.template, a.Name)
		})
	}
	if reserved(a.Name) || !slices.ContainsFunc(p.Endpoints, has) {
		f.add("auth.name", "{%s}: want a placeholder other than {value}, {page} and {contact} that an endpoint's path or json has", a.Name)
	}
}

// identity lets the contact alone stand in the User-Agent: it is the same in each
// request.
func (f *faults) identity(p provider.Provider) {
	for _, found := range placeholder.FindAllString(p.Identity.UserAgent, -1) {
		if found != "{"+contactName+"}" {
			f.add("identity.user_agent", "has %s: want no placeholder but {%s}", found, contactName)
		}
	}
}
