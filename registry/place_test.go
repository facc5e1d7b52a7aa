package registry

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

func TestPlaceClaimedTwice(t *testing.T) {
	base := func(url string) provider.Provider { return provider.Provider{BaseURL: url} }
	hosts := func(h ...string) provider.Provider { return provider.Provider{Hosts: h} }
	for _, c := range []struct {
		a, b  provider.Provider
		place string // "": no collision
	}{
		{base("https://api.x.test/v1"), base("https://api.x.test/v1"), "api.x.test/v1"},
		{base("https://api.x.test/v1"), base("https://API.x.test:443/v1/"), "api.x.test/v1"},
		{base("https://api.x.test/v1"), base("http://api.x.test:80/v1"), "api.x.test/v1"},
		{base("https://api.x.test/v1"), base("https://api.x.test:8443/v1"), ""},
		{base("https://api.x.test/v1"), base("https://api.x.test/v2"), ""},
		{base("https://api.x.test/v1"), base("https://api.x.test/V1"), ""},
		{base("https://api.x.test/a%2Fb"), base("https://api.x.test/a/b"), ""},
		{base(""), base(""), ""},
		{hosts("cdn.x.test"), hosts("y.test", "CDN.x.test:443"), "cdn.x.test"},
		{hosts("cdn.x.test"), hosts("y.test"), ""},
		{hosts("api.x.test"), base("https://api.x.test"), "api.x.test"},
		{hosts("api.x.test"), base("https://api.x.test/"), "api.x.test"},
		{hosts("api.x.test"), base("https://api.x.test/v1"), ""},
	} {
		c.a.Slug, c.b.Slug = "first", "second"
		for _, p := range [][2]provider.Provider{{c.a, c.b}, {c.b, c.a}} {
			var r Registry
			require.NoError(t, r.Declare(p[0]))
			err := r.Declare(p[1])
			if c.place == "" {
				assert.NoError(t, err)
				continue
			}
			require.ErrorContains(t, err, "registry: "+c.place+" is claimed by two providers: ")
			require.ErrorContains(t, err, `"first" of registry.TestPlaceClaimedTwice (place_test.go:`)
			require.ErrorContains(t, err, `"second" of registry.TestPlaceClaimedTwice (place_test.go:`)
			_, ok := r.Lookup(p[1].Slug)
			require.False(t, ok, "refused whole")
		}
	}
}

func TestEveryPlaceClaimedTwiceIsNamed(t *testing.T) {
	var r Registry
	require.NoError(t, r.Declare(provider.Provider{Slug: "a", Hosts: []string{"a.test"}}))
	require.NoError(t, r.Declare(provider.Provider{Slug: "b", Hosts: []string{"b.test"}}))
	err := r.Declare(provider.Provider{Slug: "c", Hosts: []string{"a.test", "b.test", "c.test"}})
	require.ErrorContains(t, err, "a.test is claimed")
	require.ErrorContains(t, err, "b.test is claimed")
	assert.NoError(t, r.Declare(provider.Provider{Slug: "d", Hosts: []string{"c.test"}}), "a refused one claims nothing")
}

func TestOwnPlaceIsNoCollision(t *testing.T) {
	var r Registry
	p := provider.Provider{Slug: "x", BaseURL: "https://api.x.test", Hosts: []string{"cdn.x.test"}}
	require.NoError(t, r.Declare(p))
	assert.NoError(t, r.Replace(p))
}

func TestReplaceMovesThePlaces(t *testing.T) {
	var r Registry
	require.NoError(t, r.Declare(provider.Provider{Slug: "x", Hosts: []string{"old.test"}}))
	require.NoError(t, r.Declare(provider.Provider{Slug: "y", Hosts: []string{"y.test"}}))
	require.ErrorContains(t, r.Replace(provider.Provider{Slug: "x", Hosts: []string{"y.test"}}), "y.test is claimed")
	require.Error(t, r.Declare(provider.Provider{Slug: "z", Hosts: []string{"old.test"}}), "a refused Replace changes nothing")
	require.NoError(t, r.Replace(provider.Provider{Slug: "x", Hosts: []string{"new.test"}}))
	assert.NoError(t, r.Declare(provider.Provider{Slug: "z", Hosts: []string{"old.test"}}), "the old one is free")
	assert.Error(t, r.Declare(provider.Provider{Slug: "w", Hosts: []string{"new.test"}}), "the new one is not")
}
