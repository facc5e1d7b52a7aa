package referee

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

const ms = time.Millisecond

// served is bubble with a listener in memory.
func served(t *testing.T, p Play, f func(t *testing.T, r *Referee, url string)) {
	t.Helper()
	bubble(t, p, func(t *testing.T, r *Referee) {
		r.Serve(Listen())
		f(t, r, r.URL("p"))
	})
}

// do sends a request and reads the whole answer; an error is "".
func do(t *testing.T, r *Referee, method, url string, header ...string) (status int, h http.Header, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, nil)
	require.NoError(t, err)
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	resp, err := r.Client().Do(req)
	if err != nil {
		return 0, nil, ""
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	return resp.StatusCode, resp.Header, string(b)
}

func TestDefaultAnswers(t *testing.T) {
	l := provider.Limit{Name: "two a minute", Max: 2, Per: "1m"}
	served(t, Play{Limits: one(l)}, func(t *testing.T, r *Referee, url string) {
		status, h, body := do(t, r, "GET", url+"/a")
		assert.Equal(t, 200, status)
		assert.Equal(t, "application/json", h.Get("Content-Type"))
		assert.JSONEq(t, `{"ok":true}`, body)
		time.Sleep(1500 * ms)
		do(t, r, "GET", url+"/a")
		status, h, body = do(t, r, "GET", url+"/a")
		assert.Equal(t, 429, status)
		assert.Equal(t, "59", h.Get("Retry-After"), "58.5 s, rounded up")
		assert.JSONEq(t, `{"error":"refused","limit":"two a minute"}`, body)
		_, h, _ = do(t, r, "GET", url+"/a", "X-Cost-Requests", "3")
		assert.Empty(t, h.Values("Retry-After"), "never, so nothing is promised")
		rep := r.Report("p")
		assert.Equal(t, []int64{4, 2, 2, 4}, []int64{rep.Arrivals, rep.Admitted, rep.Refused, rep.Answered})
	})
}

func TestRetryAfterOfAFullHouse(t *testing.T) {
	p := Play{Limits: one(provider.Limit{Max: 1, Algorithm: provider.InFlight})}
	served(t, p, func(t *testing.T, r *Referee, url string) {
		_, ok := r.Enter("p", "", "", nil)
		require.True(t, ok)
		_, h, _ := do(t, r, "GET", url+"/a")
		assert.Equal(t, "1", h.Get("Retry-After"))
	})
}

func TestRefuseAsTold(t *testing.T) {
	p := Play{
		Limits: one(provider.Limit{Max: 1, Per: "1m"}),
		Refuse: Answer{Status: 403, Header: http.Header{"X-Why": {"slow down"}}, Body: "no"},
	}
	served(t, p, func(t *testing.T, r *Referee, url string) {
		do(t, r, "GET", url+"/a")
		status, h, body := do(t, r, "GET", url+"/a")
		assert.Equal(t, 403, status)
		assert.Equal(t, "no", body)
		assert.Equal(t, "slow down", h.Get("X-Why"))
		assert.Empty(t, h.Get("Retry-After"))
	})
}

func TestScriptedAnswers(t *testing.T) {
	p := Play{
		Answer: func(a Arrival) Answer {
			switch a.N {
			case 1:
				return Answer{Status: 204}
			case 2:
				return Answer{Status: 500, Header: http.Header{"Content-Type": {"text/plain"}}, Body: "boom"}
			}
			b, _ := io.ReadAll(a.Request.Body)
			return Answer{Body: a.Provider + a.Endpoint + a.Key + string(b), Delay: time.Minute}
		},
	}
	served(t, p, func(t *testing.T, r *Referee, url string) {
		status, _, body := do(t, r, "GET", url+"/a")
		assert.Equal(t, 204, status)
		assert.Empty(t, body)
		status, h, body := do(t, r, "GET", url+"/a")
		assert.Equal(t, 500, status)
		assert.Equal(t, "boom", body)
		assert.Equal(t, "text/plain", h.Get("Content-Type"))
		begin := time.Now()
		resp, err := r.Client().Post(url+"/x?key=k", "text/plain", strings.NewReader("body"))
		require.NoError(t, err)
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		require.NoError(t, err)
		assert.Equal(t, "pkbody", string(b))
		assert.Equal(t, time.Minute, time.Since(begin))
	})
}

func TestWhatCannotBeJudgedIsNoArrival(t *testing.T) {
	served(t, Play{}, func(t *testing.T, r *Referee, url string) {
		status, _, _ := do(t, r, "GET", strings.TrimSuffix(url, "p")+"other/a")
		assert.Equal(t, 404, status)
		for _, cost := range []string{"many", "-1", "1.5", ""} {
			status, _, body := do(t, r, "GET", url+"/a", "X-Cost-Tokens", cost)
			assert.Equal(t, 400, status)
			assert.Contains(t, strings.ToLower(body), "tokens")
		}
		assert.Zero(t, r.Report("p").Arrivals)
	})
}

func TestDelaysAndTheInstantOfArrival(t *testing.T) {
	var arrived time.Time
	p := Play{
		Go: Delay{30 * ms, 30 * ms}, Back: Delay{5 * ms, 5 * ms},
		Answer: func(a Arrival) Answer { arrived = a.At; return Answer{} },
	}
	served(t, p, func(t *testing.T, r *Referee, url string) {
		begin := time.Now()
		do(t, r, "GET", url+"/a")
		assert.Equal(t, 30*ms, arrived.Sub(begin))
		assert.Equal(t, 35*ms, time.Since(begin))
		assert.True(t, arrived.Equal(r.Report("p").First))
	})
}

func TestDelaysAreSeededAndEven(t *testing.T) {
	draws := func(seed uint64) (all []time.Duration) {
		r, err := New(seed)
		require.NoError(t, err)
		defer r.Close()
		for range 1000 {
			all = append(all, r.draw(Delay{10, 19}))
		}
		return all
	}
	assert.Equal(t, draws(1), draws(1))
	assert.NotEqual(t, draws(1), draws(2))
	seen := map[time.Duration]int{}
	for _, d := range draws(3) {
		seen[d]++
	}
	assert.Len(t, seen, 10)
	for d, n := range seen {
		assert.InDelta(t, 100, n, 50, d)
	}
}

func TestChargesByStatus(t *testing.T) {
	for _, c := range []struct {
		answer Answer
		free   bool
	}{
		{Answer{Status: 200}, false}, {Answer{Status: 302}, false}, {Answer{Status: 404}, true}, {Answer{Status: 500}, true},
		{Answer{Status: 429}, true}, {Answer{Status: 403, Header: http.Header{"Retry-After": {"1"}}}, true},
		{Answer{Status: 200, Outcome: provider.QuotaSpent}, true}, {Answer{Status: 404, Outcome: provider.OK}, false},
	} {
		p := Play{
			Limits: one(provider.Limit{Max: 1, Per: "1m", Charges: []provider.Outcome{provider.OK}}),
			Answer: func(a Arrival) Answer { return c.answer },
		}
		served(t, p, func(t *testing.T, r *Referee, url string) {
			r.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
			do(t, r, "GET", url+"/a")
			assert.Equal(t, c.free, r.Arrive("p", "", "", nil), "%+v", c.answer)
		})
	}
}

// TestSettledBeforeTheAnswerIsOut: a client settles its call when the header is
// there, while the handler is still writing the body.
func TestSettledBeforeTheAnswerIsOut(t *testing.T) {
	p := Play{
		Limits: one(provider.Limit{Max: 1, Algorithm: provider.InFlight}),
		Answer: func(a Arrival) Answer { return Answer{Body: strings.Repeat("x", 1<<20)} },
	}
	served(t, p, func(t *testing.T, r *Referee, url string) {
		resp, err := r.Client().Get(url + "/a")
		require.NoError(t, err)
		defer resp.Body.Close()
		assert.EqualValues(t, 1, r.Report("p").Answered)
		assert.True(t, r.Arrive("p", "", "", nil))
	})
}

func TestPipeListener(t *testing.T) {
	l := Listen()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := l.DialContext(ctx, "tcp", "anywhere:80")
	assert.ErrorIs(t, err, context.Canceled)
	require.NoError(t, l.Close())
	require.NoError(t, l.Close())
	_, err = l.DialContext(t.Context(), "tcp", "anywhere:80")
	assert.ErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = l.Accept()
	assert.ErrorIs(t, err, net.ErrClosed)
}

func TestManyOnLoopback(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	const total, most = 400, 50
	r, err := New(1,
		Play{Provider: named, Limits: one(provider.Limit{Max: most, Per: "1h"}), Go: Delay{0, ms}, Back: Delay{0, ms}},
		Play{Provider: provider.Provider{Slug: "q"}, Limits: one(provider.Limit{Max: 3, Per: "1h", Scope: provider.ScopeKey})},
	)
	require.NoError(t, err)
	defer r.Close()
	r.Serve(l)
	assert.Equal(t, "http://"+l.Addr().String()+"/p", r.URL("p"))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for range total / 8 {
				do(t, r, "GET", r.URL("p")+"/a")
				do(t, r, "GET", r.URL("q")+"/", "X-Api-Key", string(rune('a'+i)))
				r.Report("p")
			}
		})
	}
	wg.Wait()
	rep := r.Report("p")
	assert.Equal(t, []int64{total, most, total - most, total - most, total}, []int64{rep.Arrivals, rep.Admitted, rep.Refused, rep.Violated, rep.Answered})
	assert.EqualValues(t, 8*3, r.Report("q").Admitted)
}
