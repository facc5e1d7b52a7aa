package transport_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// One 429 with Retry-After: 60 while 50 calls wait, of the bare coordinator and of
// the transport mixed.
func TestCase33_OneRetryAfterHoldsTheCallsOfAllWhoWait(t *testing.T) {
	const answers, trial = 500 * time.Millisecond, 5 * time.Second
	var mu sync.Mutex
	var arrived []time.Duration
	var start time.Time
	served(t, func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		arrived = append(arrived, time.Since(start))
		n := len(arrived)
		mu.Unlock()
		if n == 2 {
			time.Sleep(trial)
		}
		time.Sleep(answers)
		if n == 1 {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}, func(t *testing.T, b *http.Transport) {
		start = time.Now()
		tr := over(t, b, plainAPI(provider.Throttle{RPS: 1}))
		var wg sync.WaitGroup
		wg.Go(func() {
			res, err := tr.RoundTrip(request(t.Context(), t, http.MethodPost, plainSite, &body{Reader: strings.NewReader("once")}))
			if assert.NoError(t, err) {
				assert.Equal(t, 429, res.StatusCode)
				done(t, res)
			}
		})
		synctest.Wait()
		bare := http.Client{Transport: b}
		for i := range 50 {
			wg.Go(func() {
				send := func(ctx context.Context, client *http.Client) error {
					res, err := client.Do(get(ctx, t, plainSite))
					if err != nil {
						return err
					}
					defer res.Body.Close()
					assert.Equal(t, 200, res.StatusCode)
					_, err = io.Copy(io.Discard, res.Body)
					return err
				}
				if i%2 == 0 {
					assert.NoError(t, send(t.Context(), &http.Client{Transport: tr}))
					return
				}
				assert.NoError(t, tr.Coordinator.Do(t.Context(), coordinator.Call{Provider: "p"}, func(ctx context.Context) error { return send(ctx, &bare) }))
			})
		}
		synctest.Wait()
		assert.Equal(t, 50, state(t, tr, "p").Queue.Length)
		wg.Wait()
	})
	require.Len(t, arrived, 51)
	assert.GreaterOrEqual(t, arrived[1], answers+time.Minute, "none before it may")
	assert.Less(t, arrived[1], answers+time.Minute+time.Second, "and then one at once")
	assert.GreaterOrEqual(t, arrived[2], arrived[1]+trial+answers, "which goes alone")
	for i := 3; i < len(arrived); i++ {
		assert.GreaterOrEqual(t, arrived[i]-arrived[i-1], time.Second, "then the rest, spread")
	}
}
