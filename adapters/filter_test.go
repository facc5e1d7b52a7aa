package adapters_test

import (
	"testing"

	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestFiltersChangeAValueOnItsWay(t *testing.T) {
	for template, c := range map[string]struct{ value, want string }{
		"{value|lower}":              {"AbÇ", "abç"},
		"{value|upper}":              {"abç", "ABÇ"},
		"{value|base64}":             {"\xfb\xff?>a", "+/8/PmE="},
		"{value|base64url}":          {"\xfb\xff?>a", "-_8_PmE"},
		"{value|md5}":                {"abc", "900150983cd24fb0d6963f7d28e17f72"},
		"{value|sha1}":               {"abc", "a9993e364706816aba3e25717850c26c9cd0d89d"},
		"{value|sha256}":             {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
		"{value|pad10}":              {"320193", "0000320193"},
		"CIK{value|pad10}.json":      {"12345678901", "CIK12345678901.json"},
		"{value|unescape}":           {"a%3D%3d+b%2Bc", "a== b+c"},
		"{value|lower|md5|upper}":    {"ABC", "900150983CD24FB0D6963F7D28E17F72"},
		"{value}-{value|upper}":      {"a", "a-A"},
		"{value|lower}{value}{more}": {"{VALUE}", "{value}{VALUE}{value|md5}"},
		"{ value } {value {}":        {"x", "{ value } {value {}"},
	} {
		s := &stub{}
		p := decl(func(p *provider.Provider) {
			p.Endpoints[0].Path = "/"
			p.Endpoints[0].Params = map[string]string{"q": template}
		})
		q := provider.Query{Kind: provider.Text, Value: c.value}
		if template == "{value|lower}{value}{more}" {
			q.Params = map[string]string{"more": "{value|md5}"}
		}
		_, err := stubbed(t, p, s, nil).Lookup(t.Context(), q)
		require.NoError(t, err, template)
		assert.Equal(t, c.want, s.got.URL.Query().Get("q"), template)
	}
}

func TestAFilteredValueStaysInItsSegment(t *testing.T) {
	s := &stub{}
	a := stubbed(t, decl(func(p *provider.Provider) { p.Endpoints[0].Path = "/{value|base64}/{value|base64url}/{value|unescape}" }), s, nil)
	_, err := ask(t, a, "~~~?%2F..")
	require.NoError(t, err)
	assert.Equal(t, "/fn5+PyUyRi4u/fn5-PyUyRi4u/~~~%3F%2F..", s.got.URL.EscapedPath())

	s.asked = 0
	_, err = ask(t, a, "100%")
	require.ErrorContains(t, err, "path: {value|unescape}: is not escaped as a URL's query is")
	assert.NotContains(t, err.Error(), "100")
	assert.Zero(t, s.asked)

	a = stubbed(t, decl(func(p *provider.Provider) { p.Endpoints[0].Path = "/x/{value|unescape}" }), s, nil)
	_, err = ask(t, a, "%2E%2e")
	require.ErrorContains(t, err, "out of its place")
	assert.Zero(t, s.asked)
}
