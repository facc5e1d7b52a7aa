package referee

import (
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

// run drives 200 clients, 50 requests a second together, sent on schedule and so
// arriving unevenly, for length of virtual time.
func run(tb testing.TB, r *Referee, length time.Duration) {
	const clients, every = 200, 4 * time.Second
	url, client := r.URL("p")+"/x", r.Client()
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			next := begin.Add(time.Duration(i) * every / clients)
			for next.Before(begin.Add(length)) {
				time.Sleep(time.Until(next))
				get(tb, client, url)
				next = next.Add(every)
			}
		})
	}
	wg.Wait()
}

func get(tb testing.TB, client *http.Client, url string) int {
	resp, err := client.Get(url)
	if !assert.NoError(tb, err) {
		return 0
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode
}

func BenchmarkVirtualHour(b *testing.B) {
	for range b.N {
		synctest.Test(new(testing.T), func(t *testing.T) { hour(b, 10*time.Minute) })
	}
}

func hour(tb testing.TB, length time.Duration) {
	some := Delay{10 * time.Millisecond, 100 * time.Millisecond}
	r, err := New(1, Play{
		Provider: provider.Provider{Slug: "p"},
		Limits:   []provider.Limit{{Name: "rps", Max: 50, Per: "1s"}, {Name: "rph", Max: 200_000, Per: "1h"}},
		Go:       some, Back: some,
	})
	require.NoError(tb, err)
	defer r.Close()
	r.Serve(Listen())
	run(tb, r, length)
	rep := r.Report("p")
	tb.Logf("%+v", rep.Violated)
	assert.EqualValues(tb, length/(20*time.Millisecond), rep.Arrivals)
	assert.Equal(tb, rep.Arrivals, rep.Answered)
}

func TestVirtualMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { hour(t, time.Minute) })
}
