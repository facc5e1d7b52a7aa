package transport_test

import (
	"context"
	"net/http"
	"net/url"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
	"github.com/headgate/headgate/transport"
)

// routed are providers whose places touch; every endpoint has a limit of its own,
// so that State tells which one was asked.
func routed() []provider.Provider {
	each := provider.Throttle{Limits: []provider.Limit{{Name: "each", Max: 1000, Per: "1h", Scope: provider.ScopeEndpoint}}}
	return []provider.Provider{
		{Slug: "root", BaseURL: "https://api.example.com", Throttle: each, Endpoints: []provider.Endpoint{{Name: "any", Path: "/{a}"}}},
		{Slug: "v1", BaseURL: "http://api.example.com/v1/", Throttle: each, Hosts: []string{"up.example.com", "odd.example.com:8080"},
			Endpoints: []provider.Endpoint{
				{Name: "host", Path: "/hosts/{value}"},
				{Name: "host-search", Path: "/hosts/search"},
				{Name: "create", Method: "POST", Path: "/hosts/{value}"},
				{Name: "json", Path: "/hosts/{value}.json"},
				{Name: "range", Path: "/range/{from}-{to}-x/"},
				{Name: "find", Path: "/find"},
				{Name: "find-ip", Path: "/find", Params: map[string]string{"kind": "ip", "q": "{value}"}},
				{Name: "find-ip6", Path: "/find", Params: map[string]string{"kind": "ip", "six": "1"}},
				{Name: "space", Path: "/a b/{value}"},
				{Name: "pathless"},
			}},
		{Slug: "v1-deep", BaseURL: "https://api.example.com/v1/deep", Throttle: each},
		{Slug: "six", BaseURL: "https://[2001:DB8::1]:8443/x", Throttle: each},
		{Slug: "escaped", BaseURL: "https://e.example/a%20b", Throttle: each},
	}
}

func TestRequestsAreRoutedByTheirURL(t *testing.T) {
	for _, test := range []struct{ method, url, slug, endpoint string }{
		{"GET", "https://api.example.com/v1/hosts/8.8.8.8", "v1", "host"},
		{"GET", "http://API.example.com:443/v1/hosts/8.8.8.8?key=x", "v1", "host"},
		{"GET", "https://api.example.com:80/v1/hosts/search", "v1", "host-search"},
		{"GET", "https://api.example.com./v1/hosts/search/", "v1", "host-search"},
		{"POST", "https://api.example.com/v1/hosts/search", "v1", "create"},
		{"DELETE", "https://api.example.com/v1/hosts/search", "v1", ""},
		{"", "https://api.example.com/v1/hosts/x.json", "v1", "json"},
		{"GET", "https://api.example.com/v1/hosts/.json", "v1", "host"},
		{"GET", "https://api.example.com/v1/hosts/", "v1", ""},
		{"GET", "https://api.example.com/v1/hosts/a/b", "v1", ""},
		{"GET", "https://api.example.com/v1/hosts/a%2Fb", "v1", "host"},
		{"GET", "https://api.example.com/v1/host%73/a", "v1", "host"},
		{"GET", "https://api.example.com/%761/hosts/a", "v1", "host"},
		{"GET", "https://api.example.com/v1%2Fhosts/a", "root", ""},
		{"GET", "https://api.example.com/v1/range/1-2-x", "v1", "range"},
		{"GET", "https://api.example.com/v1/range/1-2-3-x", "v1", "range"},
		{"GET", "https://api.example.com/v1/range/1--x", "v1", ""},
		{"GET", "https://api.example.com/v1/range/-2-x", "v1", ""},
		{"GET", "https://api.example.com/v1/range/1-2-xx", "v1", ""},
		{"GET", "https://api.example.com/v1/range/1", "v1", ""},
		{"GET", "https://api.example.com/v1/range/1-", "v1", ""},
		{"GET", "https://api.example.com/v1/find", "v1", "find"},
		{"GET", "https://api.example.com/v1/find?kind=ip&q=1", "v1", "find-ip"},
		{"GET", "https://api.example.com/v1/find?kind=ip&six=1", "v1", "find-ip6"},
		{"GET", "https://api.example.com/v1/a%20b/x", "v1", "space"},
		{"GET", "https://api.example.com/v1", "v1", ""},
		{"GET", "https://api.example.com/v1/deep", "v1-deep", ""},
		{"GET", "https://api.example.com/v1/deeper", "v1", ""},
		{"GET", "https://api.example.com/v10", "root", "any"},
		{"GET", "https://api.example.com", "root", ""},
		{"GET", "https://up.example.com/hosts/8.8.8.8", "v1", "host"},
		{"GET", "https://up.example.com/v1/hosts/8.8.8.8", "v1", ""},
		{"GET", "https://odd.example.com:8080/find", "v1", "find"},
		{"GET", "https://odd.example.com/find", "", ""},
		{"GET", "https://[2001:db8::1]:8443/x/y", "six", ""},
		{"GET", "https://[2001:db8::1]:8443/y", "", ""},
		{"GET", "https://[2001:db8::1]/x", "", ""},
		{"GET", "https://e.example/a%20b/c", "escaped", ""},
		{"GET", "https://sub.api.example.com/v1", "", ""},
		{"GET", "https://example.com/v1", "", ""},
	} {
		tr := over(t, always(200), routed()...)
		r := get(t.Context(), t, test.url)
		r.Method = test.method
		res, err := tr.RoundTrip(r)
		require.NoError(t, err)
		done(t, res)
		slug, endpoint := asked(t, tr)
		assert.Equal(t, test.slug, slug, test.url)
		assert.Equal(t, test.endpoint, endpoint, "%s %s", test.method, test.url)
	}
}

// asked tells whom the one request of a transport went to.
func asked(t *testing.T, tr *transport.Transport) (slug, endpoint string) {
	t.Helper()
	for _, s := range tr.Coordinator.States() {
		if s.Granted == 0 {
			continue
		}
		require.Empty(t, slug)
		slug = s.Provider
		for name, limits := range s.Endpoints {
			if limits[0].Used > 0 && name != "" {
				require.Empty(t, endpoint)
				endpoint = name
			}
		}
	}
	return slug, endpoint
}

func TestOpaqueURLIsRoutedByWhatGoesOverTheWire(t *testing.T) {
	for opaque, want := range map[string]string{
		"//api.example.com/v1/hosts/a%2Fb": "host", "//api.example.com/v1/find?x=//y/z": "find", "/v1/hosts/search": "host-search", "//api.example.com": "",
	} {
		tr := over(t, always(200), routed()...)
		r := get(t.Context(), t, site)
		r.URL = &url.URL{Scheme: "https", Host: "api.example.com", Opaque: opaque}
		res, err := tr.RoundTrip(r)
		require.NoError(t, err)
		done(t, res)
		_, endpoint := asked(t, tr)
		assert.Equal(t, want, endpoint, opaque)
	}
}

func TestRouteReplacesRouting(t *testing.T) {
	tr := over(t, always(200), routed()...)
	tr.Route = func(r *http.Request) (coordinator.Call, bool) {
		return coordinator.Call{Provider: r.Header.Get("X-To"), Endpoint: "find"}, r.Header.Get("X-To") != ""
	}
	for _, to := range []string{"", "v1", "v1", "nobody"} {
		r := get(t.Context(), t, "https://anywhere.example")
		if to != "" {
			r.Header.Set("X-To", to)
		}
		res, err := tr.RoundTrip(r)
		if to == "nobody" {
			require.ErrorIs(t, err, coordinator.ErrUnknownProvider)
			continue
		}
		require.NoError(t, err)
		done(t, res)
	}
	assert.EqualValues(t, 2, state(t, tr, "v1").Granted)
}

func TestRouteFindsTheDialectOfItsProviderRegisteredLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var reg registry.Registry
		c, err := coordinator.New(coordinator.Config{Registry: &reg})
		require.NoError(t, err)
		tr, err := transport.New(c, always(409))
		require.NoError(t, err)
		tr.Route = func(*http.Request) (coordinator.Call, bool) { return coordinator.Call{Provider: "late"}, true }
		_, err = tr.RoundTrip(get(t.Context(), t, "https://late.example"))
		require.ErrorIs(t, err, coordinator.ErrUnknownProvider)
		d := provider.Dialect{Signals: []provider.Signal{{Status: []int{409}, Outcome: provider.QuotaSpent}}}
		require.NoError(t, reg.Declare(provider.Provider{Slug: "late", BaseURL: "https://late.example", Dialect: d}))
		res, err := tr.RoundTrip(get(t.Context(), t, "https://late.example"))
		require.NoError(t, err)
		done(t, res)
		assert.EqualValues(t, 1, state(t, tr, "late").Outcomes[provider.QuotaSpent])
	})
}

func TestWithCallCarries(t *testing.T) {
	p := api(provider.Throttle{
		Limits: []provider.Limit{{Name: "key", Max: 10, Per: "1h", Scope: provider.ScopeKey}, {Name: "tokens", Max: 100, Per: "1h", Unit: "tokens"}},
	})
	p.Endpoints = append(p.Endpoints, provider.Endpoint{Name: "other"})
	q := p
	q.Slug, q.BaseURL = "q", "https://q.example"
	tr := over(t, always(200), p, q)
	send := func(ctx context.Context, u string) {
		t.Helper()
		res, err := tr.RoundTrip(get(ctx, t, u))
		require.NoError(t, err)
		done(t, res)
	}
	call := coordinator.Call{Key: "alice", Cost: map[string]int64{"requests": 1, "tokens": 30}, Endpoint: "other"}
	send(transport.WithCall(t.Context(), call), site+"/hosts/x")
	s := state(t, tr, "p")
	require.Len(t, s.Keys, 1)
	assert.Equal(t, "alice", s.Keys[0].Key)
	assert.EqualValues(t, 30, used(t, tr, "p", "tokens"))

	call.Provider = "p"
	send(transport.WithCall(t.Context(), call), "https://q.example")
	assert.Zero(t, used(t, tr, "q", "tokens"), "another provider's call is not charged to q")
	for _, k := range state(t, tr, "q").Keys {
		assert.Empty(t, k.Key)
	}
}

func TestFlowPriorityAndEndpointAreCarried(t *testing.T) {
	var seen []coordinator.CallInfo
	c, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{api(provider.Throttle{})}, Traces: []*coordinator.Trace{{
		Going: func(_ context.Context, call coordinator.CallInfo, _ time.Duration) { seen = append(seen, call) },
	}}})
	require.NoError(t, err)
	tr, err := transport.New(c, always(200))
	require.NoError(t, err)
	outer := transport.WithCall(t.Context(), coordinator.Call{Key: "outer"})
	for _, call := range []coordinator.Call{{Flow: "a", Priority: coordinator.Interactive}, {Flow: "b", Priority: coordinator.Bulk, Endpoint: "host"}, {Provider: "p", Key: "k"}, {Provider: "q", Key: "k", Flow: "c"}} {
		res, err := tr.RoundTrip(get(transport.WithCall(outer, call), t, site))
		require.NoError(t, err)
		done(t, res)
		got := seen[len(seen)-1]
		assert.Equal(t, call.Flow, got.Flow)
		assert.Equal(t, call.Priority, got.Priority)
		assert.Equal(t, call.Endpoint, got.Endpoint)
		want := call.Key
		if call.Provider == "q" {
			want = ""
		}
		assert.Equal(t, want, got.Key)
	}
}

// http.Client sends each redirect as a request of its own: each goes through the
// provider of its own URL.
func TestRedirectGoesThroughItsOwnHostsProvider(t *testing.T) {
	providers := routed()[:3]
	providers = append(providers, provider.Provider{Slug: "cdn", BaseURL: "https://cdn.example", Throttle: provider.Throttle{RPM: 1}})
	next := map[string]string{
		"api.example.com/v1/hosts/a": "https://api.example.com/v1/find", "api.example.com/v1/find": "https://cdn.example/b", "cdn.example/b": "https://nobodys.example/",
	}
	tr := over(t, base(func(r *http.Request) (*http.Response, error) {
		if to, ok := next[r.URL.Host+r.URL.Path]; ok {
			return answer(r, 307, "", "Location", to), nil
		}
		return answer(r, 200, "here"), nil
	}), providers...)
	ctx := transport.WithCall(t.Context(), coordinator.Call{Provider: "v1", Endpoint: "json", Flow: "f", Wait: -1})
	client := http.Client{Transport: tr}
	res, err := client.Do(get(ctx, t, "https://api.example.com/v1/hosts/a"))
	require.NoError(t, err)
	assert.Equal(t, "here", done(t, res))
	s := state(t, tr, "v1")
	assert.EqualValues(t, 2, s.Granted)
	assert.EqualValues(t, 1, s.Endpoints["json"][0].Used, "as WithCall says")
	assert.EqualValues(t, 1, s.Endpoints["find"][0].Used, "as its path says")
	assert.EqualValues(t, 1, used(t, tr, "cdn", "rpm"))
	_, err = client.Do(get(ctx, t, "https://api.example.com/v1/hosts/a"))
	require.ErrorIs(t, err, coordinator.ErrRateLimited, "by the provider of the redirect")
}
