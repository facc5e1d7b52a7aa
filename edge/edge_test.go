package edge_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/edge"
	"github.com/headgate/headgate/provider"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ask sends a request of a client (by header) to h.
func ask(h http.Handler, method, path, tier, client string) *http.Response {
	r := httptest.NewRequest(method, path, http.NoBody)
	r.Header.Set("Tier", tier)
	r.Header.Set("Client", client)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func byHeader(r *http.Request) (tier, client string) {
	return r.Header.Get("Tier"), r.Header.Get("Client")
}

func ok(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) }

// statuses of n requests in a row.
func statuses(n int, h http.Handler, path, tier, client string) (all []int) {
	for range n {
		all = append(all, ask(h, "GET", path, tier, client).StatusCode)
	}
	return all
}

func newEdge(t *testing.T, cfg edge.Config) (*edge.Edge, http.Handler) {
	t.Helper()
	e, err := edge.New(cfg)
	require.NoError(t, err)
	return e, e.Handler(http.HandlerFunc(ok))
}

const (
	yes = http.StatusNoContent
	no  = http.StatusTooManyRequests
)

var service = provider.Provider{
	Endpoints: []provider.Endpoint{{Name: "search", Method: "GET", Path: "/search/{q}"}, {Name: "list", Path: "/list"}},
}

func TestTiers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tiers, err := edge.ParseTiers([]byte(`
providers:
  free: {throttle: {rpm: 2}}
  pro:
    throttle:
      rpm: 4
      limits:
        - {name: all, max: 6, per: 1m, scope: provider}
`), service.Endpoints)
		require.NoError(t, err)
		_, h := newEdge(t, edge.Config{Service: service, Tiers: tiers, Default: "free", Tier: byHeader})
		assert.Equal(t, []int{yes, yes, no}, statuses(3, h, "/", "free", "a"))
		assert.Equal(t, []int{yes, yes, no}, statuses(3, h, "/", "free", "b"), "each client apart")
		assert.Equal(t, []int{yes, yes, yes, yes, no}, statuses(5, h, "/", "pro", "c"))
		assert.Equal(t, []int{yes, yes, no}, statuses(3, h, "/", "pro", "d"), "scope provider: the whole tier")
		assert.Equal(t, []int{yes, yes, no}, statuses(3, h, "/", "gold", "e"), "an unknown tier is the default one")
		time.Sleep(time.Minute + 1)
		assert.Equal(t, []int{yes, yes, no}, statuses(3, h, "/", "free", "a"))
	})
}

func TestSharedLimits(t *testing.T) {
	tiers := map[string]provider.Throttle{"free": {}, "pro": {}}
	for _, c := range []struct {
		name  string
		limit provider.Limit
		asks  [][3]string // path, tier, client
		want  []int
	}{
		{"all together", provider.Limit{Max: 2},
			[][3]string{{"/", "free", "a"}, {"/list", "pro", "b"}, {"/search/x", "free", "c"}}, []int{yes, yes, no}},
		{"each client, in whichever tier", provider.Limit{Max: 1, Scope: "key"},
			[][3]string{{"/", "free", "a"}, {"/list", "pro", "a"}, {"/list", "pro", "b"}}, []int{yes, no, yes}},
		{"each route, in all tiers", provider.Limit{Max: 1, Scope: "endpoint"},
			[][3]string{{"/", "free", "a"}, {"/", "pro", "b"}, {"/list", "pro", "b"}, {"/list", "free", "c"}}, []int{yes, no, yes, no}},
		{"each client on each route", provider.Limit{Max: 1, Scope: "key+endpoint"},
			[][3]string{{"/", "free", "a"}, {"/", "free", "b"}, {"/list", "free", "a"}, {"/list", "free", "a"}}, []int{yes, yes, yes, no}},
		{"each client on each route, in whichever tier", provider.Limit{Max: 1, Scope: "key+endpoint"},
			[][3]string{{"/list", "free", "a"}, {"/list", "pro", "a"}, {"/", "pro", "a"}}, []int{yes, no, yes}},
		{"one route", provider.Limit{Max: 1, Endpoints: []string{"search"}},
			[][3]string{{"/search/a", "free", "a"}, {"/search/b", "pro", "b"}, {"/", "free", "a"}, {"/list", "free", "a"}}, []int{yes, no, yes, yes}},
		{"a method that the route has not", provider.Limit{Max: 1, Endpoints: []string{"search"}},
			[][3]string{{"/search/a", "free", "a"}, {"POST /search/b", "pro", "b"}}, []int{yes, yes}},
		{"sizes of some clients", provider.Limit{Max: 1, Scope: "key", Keys: map[string]int64{"big": 2}},
			[][3]string{{"/", "free", "big"}, {"/", "free", "big"}, {"/", "free", "big"}, {"/", "free", "a"}, {"/", "free", "a"}}, []int{yes, yes, no, yes, no}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := service
				c.limit.Name, c.limit.Per = "limit", "1m"
				s.Throttle.Limits = []provider.Limit{c.limit}
				_, h := newEdge(t, edge.Config{Service: s, Tiers: tiers, Default: "free", Tier: byHeader})
				var got []int
				for _, a := range c.asks {
					method, path := "GET", a[0]
					if path[0] == 'P' {
						method, path = "POST", path[len("POST "):]
					}
					got = append(got, ask(h, method, path, a[1], a[2]).StatusCode)
				}
				assert.Equal(t, c.want, got)
			})
		})
	}
}

// A limit that stands instead of others does so in its own throttle only.
func TestInstead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := service
		s.Throttle.RPM = 5
		tiers := map[string]provider.Throttle{"free": {RPM: 1, Limits: []provider.Limit{
			{Name: "search", Max: 3, Per: "1m", Endpoints: []string{"search"}, Instead: true}}}}
		_, h := newEdge(t, edge.Config{Service: s, Tiers: tiers, Tier: byHeader})
		assert.Equal(t, []int{yes, no}, statuses(2, h, "/list", "", "a"))
		assert.Equal(t, []int{yes, yes, yes, no}, statuses(4, h, "/search/x", "", "a"), "not the tier's minute")
		assert.Equal(t, []int{yes, no}, statuses(2, h, "/search/x", "", "b"), "but that of the service")
	})
}

// A request that one limit refuses takes nothing from the others.
func TestRefusedCostsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := service
		s.Throttle.Limits = []provider.Limit{{Name: "list", Max: 1, Per: "1m", Endpoints: []string{"list"}}}
		tiers := map[string]provider.Throttle{"free": {RPM: 3}}
		_, h := newEdge(t, edge.Config{Service: s, Tiers: tiers, Tier: byHeader})
		assert.Equal(t, []int{yes, no, no, no, no}, statuses(5, h, "/list", "", "a"))
		assert.Equal(t, []int{yes, yes, no}, statuses(3, h, "/", "", "a"))
	})
}

// Who waits is served in time, at the instant that the limits allow, or refused at
// once.
func TestShortWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tiers := map[string]provider.Throttle{
			"patient": {RPS: 1, Algorithm: provider.LeakyBucket, MaxWait: 1500 * time.Millisecond}, "hasty": {RPS: 1}}
		_, h := newEdge(t, edge.Config{Tiers: tiers, Default: "hasty", Tier: byHeader})
		begin := time.Now()
		assert.Equal(t, []int{yes, no}, statuses(2, h, "/", "hasty", "a"))
		assert.Zero(t, time.Since(begin))
		assert.Equal(t, yes, ask(h, "GET", "/", "patient", "a").StatusCode)
		done := make(chan int, 2)
		go func() { done <- ask(h, "GET", "/", "patient", "a").StatusCode }()
		synctest.Wait()
		res := ask(h, "GET", "/", "patient", "a")
		assert.Equal(t, no, res.StatusCode, "its turn is after two seconds")
		assert.Equal(t, "3", res.Header.Get("Retry-After"), "and a nanosecond: a window is closed")
		assert.Zero(t, time.Since(begin))
		assert.Equal(t, yes, <-done)
		assert.InDelta(t, time.Second, time.Since(begin), 2)
	})
}

// A request counts from its arrival on, however long it is served.
func TestCountsAtArrival(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := edge.New(edge.Config{Tiers: map[string]provider.Throttle{"free": {RPM: 1}}, Tier: byHeader})
		require.NoError(t, err)
		h := e.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			time.Sleep(50 * time.Second)
			w.WriteHeader(yes)
		}))
		assert.Equal(t, []int{yes, no}, statuses(2, h, "/", "", "a"))
		time.Sleep(10*time.Second + 1)
		assert.Equal(t, yes, ask(h, "GET", "/", "", "a").StatusCode)
	})
}

func TestInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := make(chan struct{})
		e, err := edge.New(edge.Config{Tiers: map[string]provider.Throttle{"free": {MaxInFlight: 1}}, Tier: byHeader})
		require.NoError(t, err)
		h := e.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/panic" {
				panic(http.ErrAbortHandler)
			}
			<-leave
			w.WriteHeader(yes)
		}))
		done := make(chan int)
		go func() { done <- ask(h, "GET", "/", "", "a").StatusCode }()
		synctest.Wait()
		res := ask(h, "GET", "/", "", "a")
		assert.Equal(t, no, res.StatusCode)
		assert.Equal(t, `"free/max_in_flight";q=1;qu="concurrent-requests"`, res.Header.Get("RateLimit-Policy"))
		assert.NotEmpty(t, res.Header.Get("Retry-After"))
		close(leave)
		assert.Equal(t, yes, <-done)
		assert.PanicsWithValue(t, http.ErrAbortHandler, func() { ask(h, "GET", "/panic", "", "a") })
		assert.Equal(t, yes, ask(h, "GET", "/", "", "a").StatusCode, "a panic has given its place back")
		require.NoError(t, e.Shutdown(t.Context()))
		assert.Equal(t, http.StatusServiceUnavailable, ask(h, "GET", "/", "", "a").StatusCode)
	})
}

// The handler gets what the server gave, so that http.ResponseController reaches
// whatever that can do, and the request as it is.
func TestHandlerWrapsNothing(t *testing.T) {
	e, err := edge.New(edge.Config{})
	require.NoError(t, err)
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/", http.NoBody)
	e.Handler(http.HandlerFunc(func(gotW http.ResponseWriter, gotR *http.Request) {
		assert.Same(t, w, gotW)
		assert.Same(t, r, gotR)
		assert.NoError(t, http.NewResponseController(gotW).Flush())
	})).ServeHTTP(w, r)
	assert.True(t, w.Flushed)
	assert.NotContains(t, w.Header(), "Ratelimit-Policy", "nothing is limited")
}

// Answers tell what is left of the client's own limits, in the way that the project
// reads; what clients share is told by nobody's answer but a refusal.
func TestAllowedAnswersTell(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(300 * time.Millisecond)
		s := service
		s.Throttle.RPH = 4
		tiers := map[string]provider.Throttle{"free": {RPM: 2, MaxInFlight: 5, Limits: []provider.Limit{
			{Name: "bucket", Max: 60, Per: "1m", Burst: 10, Algorithm: provider.TokenBucket, Keys: map[string]int64{"small": 6}},
			{Name: "long", Max: 90, Per: "1h"}}}}
		_, h := newEdge(t, edge.Config{Service: s, Tiers: tiers, Tier: byHeader})
		res := ask(h, "GET", "/", "", "a")
		assert.Equal(t, `"free/rpm";r=1;t=61, "free/max_in_flight";r=4, "free/bucket";r=9;t=1, "free/long";r=89;t=3601`, flat(res, "RateLimit"))
		assert.Equal(t, `"free/rpm";q=2;w=60, "free/max_in_flight";q=5;qu="concurrent-requests", "free/bucket";q=60;w=60, "free/long";q=90;w=3600`, flat(res, "RateLimit-Policy"))
		assert.Equal(t, []string{"2", "1", "946684861"}, []string{res.Header.Get("X-RateLimit-Limit"), res.Header.Get("X-RateLimit-Remaining"), res.Header.Get("X-RateLimit-Reset")}, "of the scarcest")
		f := dialect.Read(provider.Dialect{}, res, nil, time.Now())
		assert.Equal(t, provider.OK, f.Outcome)
		require.NotEmpty(t, f.Budgets)
		assert.Equal(t, provider.Budget{Name: "free/rpm", Limit: 2, Remaining: 1, Window: time.Minute, Reset: 61 * time.Second, HasLimit: true, HasRemaining: true, HasReset: true}, f.Budgets[0])

		small := ask(h, "GET", "/", "", "small")
		assert.Contains(t, flat(small, "RateLimit"), `"free/bucket";r=5;t=10`, "a burst is no larger than the size")
		assert.Contains(t, flat(small, "RateLimit-Policy"), `"free/bucket";q=6;w=60`)

		ask(h, "GET", "/", "", "b")
		ask(h, "GET", "/", "", "c")
		res = ask(h, "GET", "/", "", "d")
		assert.Equal(t, no, res.StatusCode)
		assert.Equal(t, `"rph";r=0;t=3601`, flat(res, "RateLimit"), "what all share refuses; a window is closed")
		assert.Equal(t, "3601", res.Header.Get("Retry-After"))
	})
}

func flat(res *http.Response, name string) string { return res.Header.Get(name) }

func TestPolicyWithoutTheCore(t *testing.T) {
	_, h := newEdge(t, edge.Config{Tiers: map[string]provider.Throttle{"free": {RPM: 2}}})
	assert.Equal(t, `"free/rpm";q=2;w=60`, ask(h, "GET", "/", "", "").Header.Get("RateLimit-Policy"))
}
