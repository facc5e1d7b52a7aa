package adapters_test

import (
	"testing"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheContactGoesWhereItIsAskedFor(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*provider.Endpoint)
		part   func(*stub) string
		want   string
	}{
		"parameter": {func(e *provider.Endpoint) { e.Params = map[string]string{"mailto": "{contact}"} }, (*stub).line, "GET /find/x?mailto=me%40example.org"},
		"path":      {func(e *provider.Endpoint) { e.Path = "/{contact}/{value}" }, (*stub).line, "GET /me@example.org/x"},
		"header":    {func(e *provider.Endpoint) { e.Headers = map[string]string{"From": "<{contact}>"} }, func(s *stub) string { return s.got.Header.Get("From") }, "<me@example.org>"},
		"form": {func(e *provider.Endpoint) { e.Method, e.Form = "POST", map[string]string{"email": "{contact|upper}"} },
			func(s *stub) string { return s.body }, "email=ME%40EXAMPLE.ORG"},
		"json": {func(e *provider.Endpoint) { e.Method, e.JSON = "POST", `{"a": [{"email": "{contact|md5}"}]}` },
			func(s *stub) string { return s.body }, `{"a":[{"email":"cd11923284fc0f904c4732bb8f7d7e3c"}]}`},
	} {
		p := decl(func(p *provider.Provider) { c.change(&p.Endpoints[0]) })
		s := &stub{}
		a := stubbed(t, p, s, env())
		require.NoError(t, a.Ready(), name)
		_, err := ask(t, a, "x")
		require.NoError(t, err, name)
		got := c.part(s)
		assert.Equal(t, c.want, got, name)
		assert.Equal(t, "headgate (+https://github.com/headgate/headgate)", s.got.UserAgent(), "%s: not where it is not asked for", name)

		a, err = adapters.New(p, adapters.Options{Getenv: env()})
		require.NoError(t, err)
		require.ErrorContains(t, a.Ready(), "the provider asks for a contact: set Options.Contact or the environment variable HEADGATE_CONTACT", name)
		_, err = ask(t, a, "x")
		assert.Equal(t, provider.Canceled, feedback(t, err).Outcome, name)
	}
}
