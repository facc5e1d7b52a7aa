package edge_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/edge"
	"github.com/headgate/headgate/provider"
)

// bound is what may have been served of some requests in any window.
type bound struct {
	name   string
	most   int
	window time.Duration
	of     func(s serving) string // whose; "": it does not count here
}

// serving is a request that was served.
type serving struct {
	at           time.Time
	path, client string
}

// breaks counts, for each window that ends at a serving, what was served in it.
func breaks(b bound, all []serving) (n int) {
	of := map[string][]serving{}
	for _, s := range all { // in order of time
		who := b.of(s)
		if who == "" {
			continue
		}
		of[who] = append(of[who], s)
		inside := 0
		for _, other := range of[who] {
			if s.at.Sub(other.at) <= b.window {
				inside++
			}
		}
		if inside > b.most {
			n++
		}
	}
	return n
}

var bounds = []bound{
	{"all", 30, time.Second, func(serving) string { return "all" }},
	{"search", 12, time.Second, func(s serving) string {
		if s.path == "/search/x" {
			return "search"
		}
		return ""
	}},
	{"client", 5, time.Second, func(s serving) string { return s.client }},
	{"client for longer", 20, 10 * time.Second, func(s serving) string { return s.client }},
}

func modelConfig(wait time.Duration) edge.Config {
	s := service
	s.Throttle.RPS = 30
	s.Throttle.Limits = []provider.Limit{{Name: "search", Max: 12, Per: "1s", Endpoints: []string{"search"}}}
	return edge.Config{Service: s, Tier: byHeader, Tiers: map[string]provider.Throttle{
		"free": {RPS: 5, MaxWait: wait, Limits: []provider.Limit{{Name: "long", Max: 20, Per: "10s"}}}}}
}

// Whatever comes, no more is served than is declared in any window, of a client, of a
// route and of all; nothing is refused that all limits have room for; and who waits
// is served in time.
func TestNeverMoreThanDeclared(t *testing.T) {
	for seed := range uint64(4) {
		wait := time.Duration(seed%2) * 300 * time.Millisecond
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { play(t, seed, wait) })
		})
	}
}

func play(t *testing.T, seed uint64, wait time.Duration) {
	rng := rand.New(rand.NewPCG(seed, 1))
	e, err := edge.New(modelConfig(wait))
	require.NoError(t, err)
	var mu sync.Mutex
	var all []serving
	h := e.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		all = append(all, serving{time.Now(), r.URL.Path, r.Header.Get("Client")})
		mu.Unlock()
		w.WriteHeader(yes)
	}))
	paths := []string{"/search/x", "/list", "/"}
	var clients sync.WaitGroup
	needless := 0
	for range 2000 {
		time.Sleep(time.Duration(rng.Int64N(int64(20 * time.Millisecond))))
		next := serving{path: paths[rng.IntN(3)], client: fmt.Sprint(rng.IntN(10))}
		if wait > 0 {
			clients.Go(func() {
				begin := time.Now()
				ask(h, "GET", next.path, "free", next.client)
				assert.LessOrEqual(t, time.Since(begin), wait+1) // its turn may be at the very end
			})
			continue
		}
		if ask(h, "GET", next.path, "free", next.client).StatusCode == no && room(all, next) {
			needless++
		}
	}
	clients.Wait()
	for _, b := range bounds {
		assert.Zero(t, breaks(b, all), b.name)
	}
	assert.Zero(t, needless, "refused although every limit had room")
	assert.Greater(t, len(all), 300)
	assert.Less(t, len(all), 1999, "some are refused, or this proves nothing")
}

// room tells that one more, now, would break nothing.
func room(all []serving, next serving) bool {
	next.at = time.Now()
	for _, b := range bounds {
		if b.of(next) == "" {
			continue
		}
		inside := 1
		for _, s := range all {
			if b.of(s) == b.of(next) && next.at.Sub(s.at) <= b.window {
				inside++
			}
		}
		if inside > b.most {
			return false
		}
	}
	return true
}

// Clients that are gone are forgotten, so that addresses cannot fill the memory for
// longer than the longest window.
func TestForgetsIdleClients(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e, err := edge.New(edge.Config{Tiers: map[string]provider.Throttle{"free": {RPM: 2}}, Tier: byHeader})
		require.NoError(t, err)
		h := e.Handler(http.HandlerFunc(ok))
		for i := range 1000 {
			ask(h, "GET", "/", "", fmt.Sprint(i))
		}
		s, err := e.State()
		require.NoError(t, err)
		assert.Equal(t, 1000, s.KeyCount)
		time.Sleep(time.Minute + time.Second)
		for range 600 { // two are looked at with each
			ask(h, "GET", "/", "", "still here")
		}
		s, err = e.State()
		require.NoError(t, err)
		assert.Equal(t, 1, s.KeyCount)
	})
}

// Requests of many goroutines at once; for the race detector, and exact besides.
func TestConcurrent(t *testing.T) {
	_, h := newEdge(t, edge.Config{Service: provider.Provider{Throttle: provider.Throttle{RPH: 100}},
		Tiers: map[string]provider.Throttle{"free": {RPH: 7}}, Tier: byHeader})
	var mu sync.Mutex
	served := map[string]int{}
	var all sync.WaitGroup
	for i := range 400 {
		all.Go(func() {
			client := fmt.Sprint(i % 20)
			if ask(h, "GET", "/", "", client).StatusCode == yes {
				mu.Lock()
				served[client]++
				served["all"]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	assert.Equal(t, 100, served["all"])
	for client, n := range served {
		if client != "all" {
			assert.LessOrEqual(t, n, 7)
		}
	}
}

func BenchmarkHandler(b *testing.B) {
	for _, c := range []struct {
		name string
		cfg  edge.Config
	}{
		{"served", edge.Config{Service: service, Tiers: map[string]provider.Throttle{"free": {RPH: 1 << 40}}}},
		{"three limits", edge.Config{Service: provider.Provider{Throttle: provider.Throttle{RPS: 1 << 40}},
			Tiers: map[string]provider.Throttle{"free": {RPM: 1 << 40, MaxInFlight: 100}}}},
		{"refused", edge.Config{Service: service, Tiers: map[string]provider.Throttle{"free": {RPH: 1}}}},
	} {
		b.Run(c.name, func(b *testing.B) {
			e, err := edge.New(c.cfg)
			require.NoError(b, err)
			h := e.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			r := httptest.NewRequest("GET", "/list", http.NoBody)
			w := httptest.NewRecorder()
			b.ReportAllocs()
			for b.Loop() {
				clear(w.Header())
				w.Body.Reset()
				h.ServeHTTP(w, r)
			}
		})
	}
}
