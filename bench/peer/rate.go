package peer

import (
	"context"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
)

const rateModule = "golang.org/x/time"

// The same limiter in three settings: which one is right depends on how the provider
// counts, and on what is known of the network.
var (
	// Spaced sends evenly. Without delays that is right for every kind of provider,
	// and the only setting of one bucket that is right in a window of N.
	Spaced = Peer{Name: "x/time/rate, spaced", Module: rateModule, Lacks: "breaker, cap or retry",
		New: rates(func(c Config, l Limit) (rate.Limit, int) { return perSecond(l.N, l.Per), 1 })}

	// Burst is what is usually written for "N per period": right for a token bucket;
	// a window gets up to twice its limit.
	Burst = Peer{Name: "x/time/rate, burst N", Module: rateModule, Lacks: "breaker, cap or retry",
		New: rates(func(c Config, l Limit) (rate.Limit, int) { return perSecond(l.N, l.Per), l.N })}

	// Slowed is Spaced by somebody who knows how unevenly the network delays: N calls
	// take a period and the jitter, so that they arrive in no less than a period.
	Slowed = Peer{Name: "x/time/rate, spaced, slowed by the jitter it was told", Module: rateModule, Lacks: "breaker, cap or retry",
		New: rates(func(c Config, l Limit) (rate.Limit, int) { return perSecond(l.N, l.Per+c.Jitter), 1 })}
)

func perSecond(n int, per time.Duration) rate.Limit { return rate.Limit(float64(n) / per.Seconds()) }

func rates(set func(Config, Limit) (rate.Limit, int)) func(Config) *Gate {
	return func(c Config) *Gate {
		wait, spent := chain(c, set)
		return &Gate{Call: limited(wait), Permits: spent.Load}
	}
}

// chain waits for one limiter after the other, the longest period first: what the
// last one lets go is sent at once, and it is the one that spaces.
func chain(c Config, set func(Config, Limit) (rate.Limit, int)) (func(context.Context) error, *atomic.Int64) {
	limiters := make([]*rate.Limiter, 0, len(c.Limits))
	for _, l := range c.Limits {
		limiters = append(limiters, rate.NewLimiter(set(c, l)))
	}
	spent := new(atomic.Int64)
	return func(ctx context.Context) error {
		for i := len(limiters) - 1; i >= 0; i-- {
			if err := limiters[i].Wait(ctx); err != nil {
				return err
			}
		}
		spent.Add(1)
		return nil
	}, spent
}

// thoughtful is the setting of somebody who has thought about it. A bucket is a bucket.
// In a window the shortest limit is spaced; the longer ones may burst by a half and
// refill by a half, which is never more than N in a window: spaced too, 500 a day
// would be one call in three minutes, however seldom there is one.
func thoughtful(c Config, l Limit) (rate.Limit, int) {
	switch {
	case c.Kind == Bucket:
		return perSecond(l.N, l.Per), l.N
	case l == c.Limits[0] || l.N < 2:
		return perSecond(l.N, l.Per), 1
	}
	return perSecond(l.N-l.N/2, l.Per), l.N / 2
}
