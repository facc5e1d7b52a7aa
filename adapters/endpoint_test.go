package adapters_test

import (
	"testing"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// several declares endpoints that take text: one that needs a param of the query,
// two that do not, and one for addresses alone.
func several(off ...string) provider.Provider {
	return decl(func(p *provider.Provider) {
		text := []provider.Kind{provider.Text}
		p.Endpoints = []provider.Endpoint{
			{Name: "address", Path: "/address/{value}", Kinds: []provider.Kind{provider.IP}},
			{Name: "narrow", Path: "/{country}/{value}", Params: map[string]string{"year": "{year}"}, Kinds: text},
			{Name: "wide", Path: "/find/{value}", Kinds: text},
			{Name: "other", Path: "/other/{value}", Kinds: text},
		}
		p.Throttle.Off = off
	})
}

func TestAnEndpointThatCannotBeAskedIsPassedOver(t *testing.T) {
	params := map[string]string{"country": "de", "year": "2026"}
	for _, c := range []struct {
		name string
		off  []string
		q    provider.Query
		want string
	}{
		{"it needs more", nil, provider.Query{Kind: provider.Text}, "wide"},
		{"it needs one more", nil, provider.Query{Kind: provider.Text, Params: map[string]string{"country": "de"}}, "wide"},
		{"it has all", nil, provider.Query{Kind: provider.Text, Params: params}, "narrow"},
		{"it is off", []string{"narrow"}, provider.Query{Kind: provider.Text, Params: params}, "wide"},
		{"two are off", []string{"narrow", "wide"}, provider.Query{Kind: provider.Text, Params: params}, "other"},
		{"another kind's is off", []string{"address"}, provider.Query{Kind: provider.Text}, "wide"},
		{"named", []string{"wide"}, provider.Query{Endpoint: "wide"}, "wide"},
		{"named, though it needs more", nil, provider.Query{Endpoint: "narrow"}, "narrow"},
	} {
		a, err := adapters.New(several(c.off...), adapters.Options{})
		require.NoError(t, err)
		e, err := a.Endpoint(c.q)
		require.NoError(t, err, c.name)
		assert.Equal(t, c.want, e.Name, c.name)
	}
}

func TestWhyNoEndpointCanBeAskedIsTold(t *testing.T) {
	for _, c := range []struct {
		off  []string
		kind provider.Kind
		want string
	}{
		{[]string{"wide", "other"}, provider.Text, `no endpoint can be asked for the kind "text"; endpoint "narrow" needs the query's params country, year; endpoint "wide" is switched off; endpoint "other" is switched off`},
		{[]string{provider.Everything}, provider.IP, `no endpoint can be asked for the kind "ip"; endpoint "address" is switched off`},
		{nil, provider.Hash, `no endpoint takes the kind "hash", only ip, text`},
	} {
		s := &stub{}
		a := stubbed(t, several(c.off...), s, env())
		_, err := a.Endpoint(provider.Query{Kind: c.kind, Value: "x"})
		assert.EqualError(t, err, c.want)
		_, err = a.Lookup(t.Context(), provider.Query{Kind: c.kind, Value: "x"})
		assert.ErrorContains(t, err, c.want)
		assert.Zero(t, s.asked)
	}
}
