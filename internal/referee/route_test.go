package referee

import (
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

func TestEndpointOfARequest(t *testing.T) {
	endpoints := []provider.Endpoint{
		{Name: "root", Path: "/"},
		{Name: "host", Path: "/host/{ip}"},
		{Name: "count", Path: "/host/count"},
		{Name: "search", Path: "/{kind}/search"},
		{Name: "file", Path: "/file/{hash}.json"},
		{Name: "submit", Method: "POST", Path: "/host/{ip}"},
		{Name: "odd", Path: "/a b/+(x)"},
		{Name: "list", Path: "/api", Params: map[string]string{"action": "list", "q": "{value}"}},
		{Name: "get", Path: "/api", Params: map[string]string{"action": "get", "q": "{value}"}},
	}
	j, err := newJudge(Play{Provider: provider.Provider{Slug: "p", Endpoints: endpoints}}, time.Now)
	require.NoError(t, err)
	for _, c := range []struct{ method, url, want string }{
		{"GET", "", "root"}, {"GET", "/", "root"}, {"GET", "/?q=x", "root"},
		{"GET", "/host/1.2.3.4", "host"}, {"GET", "/host/1.2.3.4/", "host"}, {"GET", "/host/1.2.3.4/more", ""},
		{"GET", "/host/a%2Fb", "host"}, {"GET", "/host/", ""}, {"GET", "/other", ""},
		{"GET", "/host/count", "count"}, {"GET", "/host/search", "search"}, {"GET", "/x/search", "search"},
		{"GET", "/file/abc.json", "file"}, {"GET", "/file/abcxjson", ""},
		{"POST", "/host/1.2.3.4", "submit"}, {"POST", "/host/count", "submit"}, {"PUT", "/host/1.2.3.4", ""},
		{"GET", "/a%20b/+(x)", "odd"}, {"GET", "/a%20b/%2B%28x%29", "odd"}, {"GET", "/a%20b/xxx", ""},
		{"GET", "/api?action=list&q=1", "list"}, {"GET", "/api?q=1&action=get", "get"}, {"GET", "/api", "list"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, "http://referee/p"+c.url, nil)
		require.NoError(t, err)
		got := ""
		if r := j.route(req, req.URL.EscapedPath()[len("/p"):], newSent(req, nil)); r != nil {
			got = r.Name
		}
		assert.Equal(t, c.want, got, "%s %s", c.method, c.url)
	}
}

func TestKeyOfARequest(t *testing.T) {
	for _, c := range []struct {
		name, want string
		auth       provider.Auth
		url        string
		header     []string
	}{
		{"none", "", provider.Auth{}, "", nil},
		{"header", "k", provider.Auth{}, "?key=q", []string{"X-Api-Key", "k"}},
		{"query", "q", provider.Auth{}, "?key=q", nil},
		{"declared header", "d", provider.Auth{Kind: "header", Name: "x-token"}, "?key=q", []string{"X-Token", "d", "X-Api-Key", "k"}},
		{"declared, but not there", "k", provider.Auth{Kind: "header", Name: "x-token"}, "", []string{"X-Api-Key", "k"}},
		{"declared query", "d", provider.Auth{Kind: "query", Name: "apikey"}, "?key=q&apikey=d", nil},
		{"bearer", "Bearer b", provider.Auth{Kind: "bearer"}, "", []string{"Authorization", "Bearer b"}},
		{"basic", "Basic b", provider.Auth{Kind: "basic"}, "", []string{"Authorization", "Basic b"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := Play{Provider: named, Limits: one(provider.Limit{Max: 1, Per: "1h", Scope: provider.ScopeKey})}
			p.Provider.Auth = c.auth
			served(t, p, func(t *testing.T, r *Referee, url string) {
				do(t, r, "GET", url+"/a"+c.url, c.header...)
				assert.False(t, r.Arrive("p", "a", c.want, nil))
				assert.True(t, r.Arrive("p", "a", "other", nil))
			})
		})
	}
}

func TestKeyAndCostByFunction(t *testing.T) {
	p := Play{
		Limits: one(provider.Limit{Max: 10, Per: "1h", Unit: "tokens", Scope: provider.ScopeKey}),
		Key:    func(*http.Request) string { return "mine" },
		Cost:   func(*http.Request) map[string]int64 { return map[string]int64{"tokens": 7} },
	}
	served(t, p, func(t *testing.T, r *Referee, url string) {
		do(t, r, "GET", url+"/a", "X-Cost-Tokens", "many")
		assert.False(t, r.Arrive("p", "a", "mine", map[string]int64{"tokens": 4}))
		assert.True(t, r.Arrive("p", "a", "mine", map[string]int64{"tokens": 3}))
	})
}

func TestCostByHeader(t *testing.T) {
	served(t, Play{}, func(t *testing.T, r *Referee, url string) {
		do(t, r, "GET", url+"/a", "X-Cost-Tokens", "7", "x-cost-search_units", "2")
		do(t, r, "GET", url+"/a", "X-Cost-Requests", "0")
		assert.Equal(t, map[string]int64{"requests": 1, "tokens": 7, "search_units": 2}, r.Report("p").Units)
	})
}

func TestNewRefusesWhatWouldBindNobody(t *testing.T) {
	fine := provider.Limit{Name: "x", Max: 1, Per: "1s"}
	with := func(f func(*provider.Limit)) Play {
		l := fine
		f(&l)
		return Play{Provider: named, Limits: []provider.Limit{l}}
	}
	for _, c := range []struct {
		play Play
		want string
	}{
		{Play{}, "slug"},
		{Play{Provider: named, Go: Delay{2, 1}}, "go: 2ns to 1ns"},
		{Play{Provider: named, Back: Delay{-1, 1}}, "back: -1ns to 1ns"},
		{Play{Provider: named, Phase: -1}, "phase: -1ns"},
		{Play{Provider: named, Limits: []provider.Limit{fine, fine}}, `limits[1] ("x"): name: comes twice`},
		{with(func(l *provider.Limit) { l.Max = 0 }), `limits[0] ("x"): max: 0`},
		{with(func(l *provider.Limit) { l.Max = math.MaxInt64 }), "max: 9223372036854775807"},
		{with(func(l *provider.Limit) { l.Burst = -1 }), "burst: -1"},
		{with(func(l *provider.Limit) { l.Per = "" }), `per: ""`},
		{with(func(l *provider.Limit) { l.Per = "0s" }), `per: "0s"`},
		{with(func(l *provider.Limit) { l.Per = "week" }), `per: "week"`},
		{with(func(l *provider.Limit) { l.Per, l.Algorithm = "day", provider.TokenBucket }), `algorithm: "token_bucket"`},
		{with(func(l *provider.Limit) { l.Algorithm = provider.InFlight }), `per: "1s"`},
		{with(func(l *provider.Limit) { l.Algorithm = "guess" }), `algorithm: "guess"`},
		{with(func(l *provider.Limit) { l.Scope = "planet" }), `scope: "planet"`},
		{with(func(l *provider.Limit) { l.Endpoints = []string{"c"} }), `endpoints: "c"`},
		{with(func(l *provider.Limit) { l.Instead = true }), "instead"},
		{with(func(l *provider.Limit) { l.Charges = []provider.Outcome{"okay"} }), `charges: "okay"`},
		{with(func(l *provider.Limit) { l.Per, l.Zone = "day", "Mars" }), `zone: "Mars"`},
		{with(func(l *provider.Limit) { l.Per, l.Anchor = "day", "noon" }), "anchor"},
	} {
		_, err := New(1, c.play)
		require.Error(t, err, c.want)
		assert.Contains(t, err.Error(), "referee: provider ")
		assert.Contains(t, err.Error(), c.want)
	}
	_, err := New(1, Play{Provider: named}, Play{Provider: named}, Play{})
	require.Error(t, err)
	assert.Contains(t, err.Error(), `provider "p": slug: is played twice`)
	assert.Contains(t, err.Error(), `provider ""`, "every fault at once")
}

func TestLimitsOfTheDeclaration(t *testing.T) {
	// Shodan's: never two in a second, never 31 in a minute, spaced or not.
	p := named
	p.Throttle = provider.Throttle{RPS: 1, RPM: 30, Burst: 3, Algorithm: provider.LeakyBucket}
	bubble(t, Play{Provider: p}, func(t *testing.T, r *Referee) {
		for range 30 {
			assert.True(t, r.Arrive("p", "", "", nil))
			time.Sleep(500 * ms)
			assert.False(t, r.Arrive("p", "", "", nil))
			time.Sleep(500 * ms)
		}
		assert.False(t, r.Arrive("p", "", "", nil))
		rep := r.Report("p")
		assert.Equal(t, "rpm", rep.Violations[len(rep.Violations)-1].Limit)
		assert.Equal(t, map[string]time.Duration{"rps": time.Second}, rep.Gaps)
	})
	_, err := New(1, Play{Provider: provider.Provider{Slug: "p", Throttle: provider.Throttle{RPS: -1}}})
	assert.Error(t, err)
}

func TestMisusePanics(t *testing.T) {
	r, err := New(1, Play{Provider: named})
	require.NoError(t, err)
	defer r.Close()
	for _, f := range []func(){
		func() { r.URL("p") },
		func() { r.Client() },
		func() { r.Report("q") },
		func() { r.Arrive("q", "", "", nil) },
		func() { r.Arrive("p", "c", "", nil) },
		func() { r.Arrive("p", "", "", requests(-1)) },
	} {
		assert.Panics(t, f)
	}
}
