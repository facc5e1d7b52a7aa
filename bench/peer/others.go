package peer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	discovery "github.com/projectdiscovery/ratelimit"
	"github.com/sethvargo/go-limiter/memorystore"
	"github.com/throttled/throttled/v2"
	"github.com/throttled/throttled/v2/store/memstore"
	"go.uber.org/ratelimit"
)

// Uber is go.uber.org/ratelimit. Its slack is how many unspent calls may be made up
// for at once: none in a window, all but one in a bucket. A call that waits in it
// cannot leave.
var Uber = Peer{
	Name: "go.uber.org/ratelimit", Module: "go.uber.org/ratelimit", Lacks: "breaker, cap or retry, and no way to leave",
	Deaf: true,
	New: func(c Config) *Gate {
		limiters := make([]ratelimit.Limiter, 0, len(c.Limits))
		for _, l := range c.Limits {
			slack := ratelimit.WithoutSlack
			if c.Kind == Bucket && l.N > 1 {
				slack = ratelimit.WithSlack(l.N - 1)
			}
			limiters = append(limiters, ratelimit.New(l.N, ratelimit.Per(l.Per), slack))
		}
		return deaf(len(limiters), func(i int) { limiters[i].Take() })
	},
}

// deaf waits for one limiter after the other, the longest period first, where nobody can
// be called back.
func deaf(n int, take func(i int)) *Gate {
	spent := new(atomic.Int64)
	return &Gate{Permits: spent.Load, Call: limited(func(ctx context.Context) error {
		for i := n - 1; i >= 0; i-- {
			take(i)
		}
		spent.Add(1)
		return ctx.Err()
	})}
}

// Discovery is projectdiscovery/ratelimit: a goroutine hands permits out, and has as many
// as it was made with at each tick. Who makes it with N for a period has up to twice N in
// a period around a tick, so it is made with one for a share of the period; with N where
// no timer ticks so often. A call that waits in it cannot leave, and its LeakyBucket is an
// x/time/rate.
var Discovery = Peer{
	Name: "projectdiscovery/ratelimit", Module: "github.com/projectdiscovery/ratelimit", Lacks: "breaker, cap or retry, and no way to leave",
	Deaf: true,
	New: func(c Config) *Gate {
		limiters := make([]*discovery.Limiter, 0, len(c.Limits))
		var tick time.Duration
		for _, l := range c.Limits {
			each := l.Per / time.Duration(l.N)
			if l.Per%time.Duration(l.N) != 0 {
				each++
			}
			if each < 100*time.Microsecond {
				limiters = append(limiters, discovery.New(context.Background(), uint(min(l.N, math.MaxUint32)), l.Per))
				continue
			}
			limiters = append(limiters, discovery.New(context.Background(), 1, each))
			tick = max(tick, each)
		}
		g := deaf(len(limiters), func(i int) { limiters[i].Take() })
		g.Close = func() {
			for _, l := range limiters {
				l.Stop()
			}
			time.Sleep(tick) // its goroutine hears of it at its next tick
		}
		return g
	},
}

// Throttled is throttled/throttled with its own store in memory: GCRA, spaced in a
// window, a burst of N in a bucket. It does not wait; the program sleeps as long as it
// is told and asks again, in no order.
var Throttled = Peer{
	Name: "throttled/throttled", Module: "github.com/throttled/throttled/v2", Lacks: "queue, breaker, cap or retry",
	New: func(c Config) *Gate {
		limiters := make([]*throttled.GCRARateLimiterCtx, 0, len(c.Limits))
		for _, l := range c.Limits {
			limiters = append(limiters, GCRA(c.Kind, l))
		}
		return polled(len(limiters), func(ctx context.Context, i int) (time.Duration, error) {
			limited, r, err := limiters[i].RateLimitCtx(ctx, "", 1)
			if err != nil || !limited {
				return 0, err
			}
			return r.RetryAfter, nil
		})
	},
}

// GCRA is the limiter of Throttled for keys of their own.
func GCRA(k Kind, l Limit) *throttled.GCRARateLimiterCtx {
	burst := 0
	if k == Bucket {
		burst = l.N - 1
	}
	store, err := memstore.NewCtx(0)
	if err == nil {
		var g *throttled.GCRARateLimiterCtx
		g, err = throttled.NewGCRARateLimiterCtx(store, throttled.RateQuota{MaxRate: throttled.PerDuration(l.N, l.Per), MaxBurst: burst})
		if err == nil {
			g.SetMaxCASAttemptsLimit(1 << 20) // contention is no reason to fail a call
			return g
		}
	}
	panic(fmt.Sprintf("peer: throttled: %v", err))
}

// GoLimiter is sethvargo/go-limiter with its store in memory: a fixed window from the
// first use of a key. It does not wait, either. From its second window on it gives no
// more than the nanoseconds of its period divided by N, which is less than N above some
// 30,000 a second. It can start no window of a phase that
// nobody has told it, so no setting makes it right for an exact window.
var GoLimiter = Peer{
	Name: "sethvargo/go-limiter", Module: "github.com/sethvargo/go-limiter", Lacks: "queue, breaker, cap or retry",
	Blind: true,
	New: func(c Config) *Gate {
		takes := make([]func(context.Context, string) (time.Duration, error), len(c.Limits))
		closes := make([]func(), len(c.Limits))
		for i, l := range c.Limits {
			takes[i], closes[i] = Windows(l)
		}
		g := polled(len(takes), func(ctx context.Context, i int) (time.Duration, error) { return takes[i](ctx, "") })
		g.Close = func() {
			for _, end := range closes {
				end()
			}
		}
		return g
	},
}

// Windows returns the limiter of GoLimiter for keys of their own: it takes a permit,
// or tells how long there is none.
func Windows(l Limit) (take func(ctx context.Context, key string) (time.Duration, error), end func()) {
	s, err := memorystore.New(&memorystore.Config{Tokens: uint64(l.N), Interval: l.Per, SweepInterval: 24 * time.Hour, SweepMinTTL: 48 * time.Hour})
	if err != nil {
		panic(fmt.Sprintf("peer: go-limiter: %v", err))
	}
	take = func(ctx context.Context, key string) (time.Duration, error) {
		_, _, reset, ok, err := s.Take(ctx, key)
		if ok || err != nil {
			return 0, err
		}
		return max(time.Until(time.Unix(0, int64(reset))), time.Nanosecond), nil
	}
	return take, func() { _ = s.Close(context.Background()) }
}

// polled asks one limiter after the other until each has said yes, the longest period
// first. What the long ones gave is kept while the short ones are waited for.
func polled(n int, take func(ctx context.Context, i int) (wait time.Duration, err error)) *Gate {
	spent := new(atomic.Int64)
	return &Gate{Permits: spent.Load, Call: limited(func(ctx context.Context) error {
		for i := n - 1; i >= 0; i-- {
			for {
				wait, err := take(ctx, i)
				if err != nil {
					return err
				}
				if wait == 0 {
					break
				}
				if !Sleep(ctx, wait) {
					return ctx.Err()
				}
			}
		}
		spent.Add(1)
		return nil
	})}
}

// Retryable is hashicorp/go-retryablehttp alone: it sends at once, and again when a
// refusal says so. Its attempts count refusals, too; the program asks again after
// the last.
var Retryable = Peer{
	Name: "hashicorp/go-retryablehttp alone", Module: "github.com/hashicorp/go-retryablehttp", Lacks: "limits, breaker or cap",
	Limitless: true,
	New: func(c Config) *Gate {
		client := retryablehttp.NewClient()
		client.Logger = nil
		client.RetryMax, client.RetryWaitMin, client.RetryWaitMax = max(c.Attempts-1, 0), MinDelay, MaxDelay
		client.ErrorHandler = retryablehttp.PassthroughErrorHandler
		client.HTTPClient = &http.Client{Transport: sender{}}
		return &Gate{Call: persistent(func(ctx context.Context, send Send) error { return get(ctx, client, send) })}
	},
}

func get(ctx context.Context, client *retryablehttp.Client, send Send) error {
	req, err := retryablehttp.NewRequestWithContext(context.WithValue(ctx, sendKey{}, send), http.MethodGet, "http://provider.example", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	switch {
	case resp.StatusCode == http.StatusTooManyRequests:
		seconds, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
		return &RefusedError{time.Duration(seconds) * time.Second}
	case resp.StatusCode >= http.StatusBadRequest:
		return StatusError(resp.StatusCode)
	}
	return nil
}

type sendKey struct{}

// sender is a transport without a network: the Send in a request's context.
type sender struct{}

func (sender) RoundTrip(req *http.Request) (*http.Response, error) {
	send, ok := req.Context().Value(sendKey{}).(Send)
	if !ok {
		return nil, errors.New("peer: a request without its Send")
	}
	resp := &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Header: http.Header{}, Body: io.NopCloser(bytes.NewReader(nil)), Request: req}
	err := send(req.Context())
	var status StatusError
	switch r, ok := refused(err); {
	case ok:
		resp.StatusCode = http.StatusTooManyRequests
		resp.Header.Set("Retry-After", strconv.Itoa(int(r.RetryAfter/time.Second)))
	case errors.As(err, &status):
		resp.StatusCode = int(status)
	case err != nil:
		return nil, err
	}
	return resp, nil
}
