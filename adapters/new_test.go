package adapters_test

import (
	"net/url"
	"testing"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheKindPicksTheEndpoint(t *testing.T) {
	p := decl(func(p *provider.Provider) {
		p.Endpoints = []provider.Endpoint{
			{Name: "info", Path: "/info", Kinds: []provider.Kind{provider.Text}},
			{Name: "ip", Path: "/ip/{value}", Kinds: []provider.Kind{provider.IP}},
			{Name: "host", Path: "/host/{value}", Kinds: []provider.Kind{provider.IP, provider.Domain}},
		}
	})
	a, err := adapters.New(p, adapters.Options{})
	require.NoError(t, err)
	for _, c := range []struct {
		q    provider.Query
		want string
		err  string
	}{
		{q: provider.Query{Kind: provider.IP}, want: "ip"},
		{q: provider.Query{Kind: provider.Domain}, want: "host"},
		{q: provider.Query{Kind: provider.IP, Endpoint: "host"}, want: "host"},
		{q: provider.Query{Endpoint: "ip"}, want: "ip"},
		{q: provider.Query{Kind: provider.Text, Endpoint: "info"}, want: "info"},
		{q: provider.Query{Kind: provider.Hash}, err: `no endpoint takes the kind "hash", only domain, ip, text`},
		{q: provider.Query{}, err: `no endpoint takes the kind "", only domain, ip, text`},
		{q: provider.Query{Kind: provider.Domain, Endpoint: "ip"}, err: `endpoint "ip" takes no "domain", only ip`},
		{q: provider.Query{Endpoint: "hots"}, err: `no endpoint "hots", only info, ip, host`},
	} {
		e, err := a.Endpoint(c.q)
		if c.err == "" {
			require.NoError(t, err)
			assert.Equal(t, c.want, e.Name)
			continue
		}
		require.EqualError(t, err, c.err)
		_, err = a.Lookup(t.Context(), c.q)
		assert.Equal(t, provider.Feedback{Outcome: provider.Canceled, Detail: "nothing was sent: " + c.err}, feedback(t, err))
	}
}

func TestNewNamesEachFault(t *testing.T) {
	for want, change := range map[string]func(*provider.Provider){
		"slug":                              func(p *provider.Provider) { p.Slug = "A CME" },
		"base_url: must be absolute":        func(p *provider.Provider) { p.BaseURL = "/api" },
		"base_url: must not hold a user":    func(p *provider.Provider) { p.BaseURL = "https://u:" + url.QueryEscape(secret) + "@h" },
		"base_url: must not have a query":   func(p *provider.Provider) { p.BaseURL = "https://h?k=" + url.QueryEscape(secret) },
		"base_url: is missing":              func(p *provider.Provider) { p.BaseURL = "" },
		"endpoints: are missing":            func(p *provider.Provider) { p.Endpoints = nil },
		"auth.name: is missing":             auth("header", ""),
		"auth.name: {value}: want":          auth("path", "value"),
		"auth.name: {nokey}: want":          auth("path", "nokey"),
		`auth.kind: "magic" is unknown`:     auth("magic", "x"),
		"auth.env: is missing":              func(p *provider.Provider) { p.Auth.Kind = "bearer" },
		"endpoints[0].method":               func(p *provider.Provider) { p.Endpoints[0].Method = "GET /" },
		"endpoints[0].path: must not have":  func(p *provider.Provider) { p.Endpoints[0].Path = "/x?y={value}" },
		"endpoints[0].path: has a brace":    func(p *provider.Provider) { p.Endpoints[0].Path = "/x/{value" },
		"endpoints[0].path: is not escaped": func(p *provider.Provider) { p.Endpoints[0].Path = "/%zz/{value}" },
		"endpoints[0].params.key: is the ke": func(p *provider.Provider) {
			auth("query", "key")(p)
			p.Endpoints[0].Params = map[string]string{"key": "1"}
		},
		"endpoints[0].params.a: holds the key {k}": func(p *provider.Provider) {
			auth("path", "k")(p)
			p.Endpoints[0].Path = "/{k}"
			p.Endpoints[0].Params = map[string]string{"a": "{k}"}
		},
	} {
		_, err := adapters.New(decl(change), adapters.Options{})
		require.ErrorContains(t, err, want)
		assert.Contains(t, err.Error(), "adapters: provider ")
		assert.NotContains(t, texts(err), "S3cr")
	}
	_, err := adapters.New(decl(nil), adapters.Options{BaseURL: "localhost:80"})
	require.ErrorContains(t, err, `adapters: provider "acme": options: base_url`)
	p := decl(func(p *provider.Provider) { p.Hosts = []string{"alt.acme.example"} })
	_, err = adapters.New(p, adapters.Options{BaseURL: "https://alt.acme.example"})
	require.NoError(t, err, "another base may be one of the declared hosts")
}

func TestNewAsksForNothingAndProviderIsTheDeclaration(t *testing.T) {
	p := decl(auth("query", "key"))
	a, err := adapters.New(p, adapters.Options{BaseURL: "http://127.0.0.1:1", Getenv: func(string) string {
		t.Error("New read the environment")
		return ""
	}})
	require.NoError(t, err)
	assert.Equal(t, p, a.Provider())
}
