package provider

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestValidateAcceptsEndpointsThatPost(t *testing.T) {
	for name, e := range map[string]Endpoint{
		"form":            {Method: "POST", Form: map[string]string{"q": "{value}"}},
		"json":            {Method: "POST", JSON: `{"q": "{value|base64}", "page": "{page|number}"}`, Paging: &Paging{Start: 1}},
		"cursor":          {Params: map[string]string{"cursor": "{page}"}, Paging: &Paging{Next: Source{JSON: "$.meta.next"}, Items: "$.data[*]", Max: 3}},
		"page in path":    {Path: "/{value}/{page}", Paging: &Paging{Step: 100}},
		"headers":         {Headers: map[string]string{"Accept": "application/json"}},
		"search":          {Method: "POST", Replayable: true},
		"page in a name":  {Path: "/{pages}"},
		"filters in path": {Path: "/{value|lower|sha1}"},
	} {
		e.Name = "a"
		assert.NoError(t, Provider{Slug: "x", Endpoints: []Endpoint{e}}.Validate(), name)
	}
}

func TestValidateFaultsOfABodyAndItsPages(t *testing.T) {
	of := func(e Endpoint) func(*Provider) {
		e.Name = "a"
		return func(p *Provider) { *p = Provider{Slug: "x", Endpoints: []Endpoint{e}} }
	}
	form := map[string]string{"q": "{value}"}
	paged := func(p Paging) func(*Provider) {
		return of(Endpoint{Params: map[string]string{"p": "{page}"}, Paging: &p})
	}
	checkFaults(t, []fault{
		{"two bodies", of(Endpoint{Method: "POST", Form: form, JSON: "{}"}), "endpoints[0].form: is there beside json: a request has one body"},
		{"form by GET", of(Endpoint{Form: form}), "endpoints[0].form: is a body, which GET does not have: write method: POST"},
		{"json by HEAD", of(Endpoint{Method: "HEAD", JSON: "{}"}), "endpoints[0].json: is a body, which HEAD does not have"},
		{"no json", of(Endpoint{Method: "POST", JSON: `{"size": {size}}`}), "endpoints[0].json: is no JSON text"},
		{"header", of(Endpoint{Headers: map[string]string{"X:": "a"}}), `endpoints[0].headers: "X:" is no name of a header`},
		{"header's value", of(Endpoint{Headers: map[string]string{"Accept": "a\nb"}}), "endpoints[0].headers.Accept: has a control character"},
		{"page without paging", of(Endpoint{Params: map[string]string{"p": "{page}"}}), "endpoints[0].paging: is missing: the placeholder {page} needs it"},
		{"filtered page", of(Endpoint{Params: map[string]string{"p": "{page|number}"}}), "endpoints[0].paging: is missing"},
		{"paging without page", of(Endpoint{Paging: &Paging{}}), "endpoints[0].paging: asks for no page: write the placeholder {page}"},
		{"counted and told", paged(Paging{Next: Source{JSON: "$.next"}, Step: 1}), "endpoints[0].paging.next: is there beside start or step"},
		{"told into the path", of(Endpoint{Path: "/{page}", Paging: &Paging{Next: Source{JSON: "$.next"}}}), "endpoints[0].paging.next: gives the first page no {page}"},
		{"next", paged(Paging{Next: Source{JSON: "next"}}), `endpoints[0].paging.next.json: "next" is no JSON path`},
		{"next as a date", paged(Paging{Next: Source{JSON: "$.next", As: "date"}}), "endpoints[0].paging.next.as: date is not how a page is written: leave it out"},
		{"start", paged(Paging{Start: -1}), "endpoints[0].paging.start: -1 is negative"},
		{"step", paged(Paging{Step: -1}), "endpoints[0].paging.step: -1 is negative"},
		{"items", paged(Paging{Items: "data"}), `endpoints[0].paging.items: "data" is no JSON path`},
		{"max", paged(Paging{Max: -1}), "endpoints[0].paging.max: -1 is negative"},
	})
}

func TestValidateFaultsOfAuth(t *testing.T) {
	of := func(a Auth) func(*Provider) {
		return func(p *Provider) { *p = Provider{Slug: "x", Auth: a} }
	}
	checkFaults(t, []fault{
		{"optional what", of(Auth{Optional: true}), "auth.kind: is missing"},
		{"no field", of(Auth{Kind: "form"}), "auth.name: is missing: the name of the form field that takes the key"},
		{"prefix of a parameter", of(Auth{Kind: "query", Name: "k", Prefix: "Token "}), "auth.prefix: must be plain text before the key in a header"},
		{"prefix", of(Auth{Kind: "header", Name: "k", Prefix: "a\n"}), "auth.prefix: must be plain text"},
		{"optional path", of(Auth{Kind: "path", Name: "k", Optional: true}), "auth.optional: is of no use where the path holds the key"},
		{"with what", of(Auth{Kind: "query", Name: "k", With: map[string]string{"user": "a b"}}), "auth.with.user: must be the name of an environment variable"},
		{"with basic", of(Auth{Kind: "basic", With: map[string]string{"user": "USER"}}), "auth.with.user: goes along with a key in a header, query or form alone"},
		{"with itself", of(Auth{Kind: "query", Name: "k", With: map[string]string{"k": "K"}}), "auth.with.k: must have a name of its own"},
		{"with a header", of(Auth{Kind: "header", Name: "k", With: map[string]string{"a b": "K"}}), "auth.with.a b: is no name of a header"},
	})
	for name, a := range map[string]Auth{
		"user and key": {Kind: "query", Name: "api_key", Env: []string{"KEY"}, With: map[string]string{"api_username": "USER"}},
		"token":        {Kind: "header", Name: "Authorization", Prefix: "Token ", Env: []string{"KEY"}, Optional: true},
		"form":         {Kind: "form", Name: "key", Env: []string{"KEY"}},
	} {
		assert.NoError(t, Provider{Slug: "x", Auth: a}.Validate(), name)
	}
}
