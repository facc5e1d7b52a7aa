package adapters_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// one changes the only endpoint.
func one(change func(*provider.Endpoint)) func(*provider.Provider) {
	return func(p *provider.Provider) { change(&p.Endpoints[0]) }
}

func params(name, template string) func(*provider.Provider) {
	return one(func(e *provider.Endpoint) { e.Params = map[string]string{name: template} })
}

func headers(name string) func(*provider.Provider) {
	return one(func(e *provider.Endpoint) { e.Headers = map[string]string{name: "x"} })
}

func body(json string) func(*provider.Provider) {
	return one(func(e *provider.Endpoint) { e.Method, e.JSON = "POST", json })
}

func then(changes ...func(*provider.Provider)) func(*provider.Provider) {
	return func(p *provider.Provider) {
		for _, c := range changes {
			c(p)
		}
	}
}

const knownFilters = "want one of base64, base64url, lower, md5, number, pad10, sha1, sha256, unescape, upper"

func TestNewNamesEachFaultOfAnEndpoint(t *testing.T) {
	next := one(func(e *provider.Endpoint) { e.Paging = &provider.Paging{Next: provider.Source{JSON: "$.next"}} })
	form := one(func(e *provider.Endpoint) { e.Method, e.Form = "POST", map[string]string{"key": "1", "user-id": "2"} })
	for name, c := range map[string]struct {
		change func(*provider.Provider)
		want   string
	}{
		"no kinds":             {one(func(e *provider.Endpoint) { e.Kinds = nil }), "endpoints[0].kinds: are missing: want what it looks up, such as [ip]"},
		"filter in path":       {one(func(e *provider.Endpoint) { e.Path = "/{value|sha512}" }), `endpoints[0].path: {value|sha512}: the filter "sha512" is unknown: ` + knownFilters},
		"filter in params":     {params("q", "{value|lower|Upper}"), `endpoints[0].params.q: {value|lower|Upper}: the filter "Upper" is unknown: ` + knownFilters},
		"empty filter":         {params("q.x", "{value|}"), `endpoints[0].params["q.x"]: {value|}: the filter "" is unknown`},
		"filter in form":       {one(func(e *provider.Endpoint) { e.Method, e.Form = "POST", map[string]string{"q": "{day|trim}"} }), `endpoints[0].form.q: {day|trim}: the filter "trim" is unknown`},
		"filter in headers":    {one(func(e *provider.Endpoint) { e.Headers = map[string]string{"X": "{value|trim}"} }), `endpoints[0].headers.X: {value|trim}: the filter "trim"`},
		"filter in json":       {body(`{"a": [{"b": "{value|trim}"}]}`), `endpoints[0].json: {value|trim}: the filter "trim" is unknown`},
		"number in params":     {params("q", "{value|number}"), `endpoints[0].params.q: {value|number}: number comes last, in a string of json that is nothing else: want "{page|number}" there`},
		"number and more":      {body(`{"a": "{value|number} "}`), "endpoints[0].json: {value|number}: number comes last"},
		"number second":        {body(`{"a": "{more}{value|number}"}`), "endpoints[0].json: {value|number}: number comes last"},
		"number not last":      {body(`{"a": "{value|number|lower}"}`), "endpoints[0].json: {value|number|lower}: number comes last"},
		"member's name":        {body(`{"a": [{"{value}": 1}]}`), "endpoints[0].json: has {value} in the name of a member: want it in a value"},
		"page outside members": {then(body(`[{"q": "{value}"}, "{page}"]`), next), "endpoints[0].json: has {page} outside of an object"},
		"key's parameter":      {then(sends(provider.Auth{Kind: "query", Name: "key", With: user}), params("user-id", "1")), "endpoints[0].params.user-id: is the key's own place: want it in auth alone"},
		"key's field":          {then(sends(provider.Auth{Kind: "form", Name: "key"}), form), "endpoints[0].form.key: is the key's own place"},
		"its companion":        {then(sends(provider.Auth{Kind: "form", Name: "key2", With: user}), form), "endpoints[0].form.user-id: is the key's own place"},
		"key's header":         {then(sends(provider.Auth{Kind: "header", Name: "X-Key"}), headers("x-key")), "endpoints[0].headers.x-key: is the key's own place"},
		"companion's header":   {then(sends(provider.Auth{Kind: "header", Name: "X-Key", With: user}), headers("User-ID")), "endpoints[0].headers.User-ID: is the key's own place"},
		"one header":           {sends(provider.Auth{Kind: "header", Name: "X-Key", With: map[string]string{"x-key": "ACME_USER"}}), "auth.with.x-key: is the key's own header"},
		"authorization":        {headers("authorization"), "endpoints[0].headers.authorization: is for a key: want it in auth"},
		"and a bearer":         {then(auth("bearer", ""), headers("Authorization")), "endpoints[0].headers.Authorization: is for a key"},
		"user agent":           {then(headers("user-agent"), func(p *provider.Provider) { p.Identity.UserAgent = "a" }), "endpoints[0].headers.user-agent: is what identity says: want it there alone"},
		"user agent's contact": {then(headers("User-Agent"), func(p *provider.Provider) { p.Identity.Contact = true }), "endpoints[0].headers.User-Agent: is what identity says"},
		"encoding":             {headers("accept-encoding"), "endpoints[0].headers.accept-encoding: belongs to the connection: leave it out"},
		"host":                 {headers("Host"), "endpoints[0].headers.Host: belongs to the connection"},
		"twice":                {one(func(e *provider.Endpoint) { e.Headers = map[string]string{"Accept": "a", "accept": "b"} }), "endpoints[0].headers.accept: is there twice"},
		"form by GET":          {auth("form", "key"), "endpoints[0].method: has no body, which is the key's place: want POST"},
		"form by HEAD":         {then(auth("form", "key"), one(func(e *provider.Endpoint) { e.Method = "HEAD" })), "endpoints[0].method: has no body"},
		"form and json":        {then(auth("form", "key"), body("{}")), "endpoints[0].json: has no form field for the key: want form"},
		"key in a form": {then(auth("path", "k"), one(func(e *provider.Endpoint) { e.Path, e.Method, e.Form = "/{k}", "POST", map[string]string{"a": "x{k}"} })),
			"endpoints[0].form.a: holds the key {k}: want it in the path or json alone"},
		"key in a header":  {then(auth("path", "k"), one(func(e *provider.Endpoint) { e.Path, e.Headers = "/{k}", map[string]string{"a": "{k|md5}"} })), "endpoints[0].headers.a: holds the key {k}"},
		"filtered key":     {then(auth("path", "k"), one(func(e *provider.Endpoint) { e.Path = "/{k}/{k|lower}" })), "endpoints[0].path: changes the key: want {k} without a filter"},
		"key named page":   {then(auth("path", "page"), one(func(e *provider.Endpoint) { e.Path, e.Paging = "/{page}", &provider.Paging{} })), "auth.name: {page}: want a placeholder other than {value}, {page} and {contact}"},
		"key as a contact": {then(auth("path", "contact"), one(func(e *provider.Endpoint) { e.Path = "/{contact}" })), "auth.name: {contact}: want a placeholder other than"},
		"agent":            {func(p *provider.Provider) { p.Identity.UserAgent = "a {value} {contact}" }, "identity.user_agent: has {value}: want no placeholder but {contact}"},
		"agent's filter":   {func(p *provider.Provider) { p.Identity.UserAgent = "a {contact|lower}" }, "identity.user_agent: has {contact|lower}: want"},
		"no paging":        {params("q", "{page}"), "endpoints[0].paging: is missing"},
	} {
		_, err := adapters.New(decl(c.change), adapters.Options{})
		require.ErrorContains(t, err, c.want, name)
		assert.Equal(t, 1, strings.Count(err.Error(), "\n")+1, "%s: one fault, told once: %v", name, err)
		var field *provider.FieldError
		require.ErrorAs(t, err, &field, name)
	}
}

func TestNewAcceptsWhatIsMeant(t *testing.T) {
	for name, change := range map[string]func(*provider.Provider){
		"all filters":         params("q", "{value|lower|upper|base64|base64url|md5|sha1|sha256|pad10|unescape}"),
		"number":              body(`{"a": ["{value|lower|number}"]}`),
		"other braces":        then(params("filter", `{"a":{"b":1}} { value } {a b} {}`), body(`{"query": "{ host { name } }"}`)),
		"page in a list":      then(body(`{"after": ["{page}"]}`), one(func(e *provider.Endpoint) { e.Paging = &provider.Paging{Next: provider.Source{JSON: "$.next"}} })),
		"another's parameter": then(auth("header", "key"), params("key", "1")),
		"key's other case":    then(auth("query", "key"), params("Key", "1")),
		"key's body":          then(auth("form", "key"), one(func(e *provider.Endpoint) { e.Method = "PUT" })),
		"own user agent":      headers("User-Agent"),
		"key in json":         then(auth("path", "k"), body(`{"k": "{k}"}`)),
	} {
		_, err := adapters.New(decl(change), adapters.Options{})
		require.NoError(t, err, name)
	}
}
