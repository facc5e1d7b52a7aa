package bench

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/go-redis/redis_rate/v10"
	goredis "github.com/redis/go-redis/v9"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/redis"
	"github.com/headgate/headgate/provider"
)

// headgate takes a unit of a limit of each of the windows, and settles at once what it
// is granted.
func headgate(most int64, windows ...time.Duration) func(url string) (ask, func(), error) {
	return func(url string) (ask, func(), error) {
		store, err := redis.Open(context.Background(), url, redis.Options{})
		if err != nil {
			return nil, nil, err
		}
		client, err := ledger.Open(store, ledger.Settings{Budget: 5 * time.Second})
		if err != nil {
			return nil, nil, err
		}
		take := ledger.Take{Provider: "acme"}
		for _, w := range windows {
			l := provider.Limit{Name: w.String(), Max: most, Per: provider.Period(w.String()), Algorithm: provider.SlidingWindow}
			take.Units = append(take.Units, ledger.Units{Counter: ledger.NewCounter("acme", l, "", ""), N: 1})
		}
		decide := func(ctx context.Context) error {
			g, err := client.Take(ctx, take)
			if err == nil && g.Hold != 0 {
				client.Settle(ledger.Settlement{Hold: g.Hold, At: time.Now()})
			}
			return err
		}
		end := func() {
			if err := client.Close(context.Background()); err != nil {
				fmt.Println(err)
			}
		}
		return decide, end, nil
	}
}

// redisRate is go-redis/redis_rate: a token bucket, one script a decision.
func redisRate(most int) func(url string) (ask, func(), error) {
	return func(url string) (ask, func(), error) {
		addr, _, _ := strings.Cut(strings.TrimPrefix(url, "redis://"), "/")
		client := goredis.NewClient(&goredis.Options{Addr: addr, PoolSize: callers})
		limiter := redis_rate.NewLimiter(client)
		limit := redis_rate.PerSecond(most)
		decide := func(ctx context.Context) error {
			_, err := limiter.Allow(ctx, "acme", limit)
			return err
		}
		return decide, func() { _ = client.Close() }, nil
	}
}
