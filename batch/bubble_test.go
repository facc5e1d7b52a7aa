package batch_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/batch"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

func TestMain(m *testing.M) {
	if dir := os.Getenv(victimDir); dir != "" {
		if err := victim(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// bubble runs f with a coordinator in virtual time and sees to it that nothing
// stays taken.
func bubble(t *testing.T, f func(t *testing.T, c *coordinator.Coordinator), ps ...provider.Provider) {
	t.Helper()
	bubbleWith(t, coordinator.Config{Providers: ps, Traces: []*coordinator.Trace{batch.Trace()}}, f)
}

func bubbleWith(t *testing.T, cfg coordinator.Config, f func(t *testing.T, c *coordinator.Coordinator)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, err := coordinator.New(cfg)
		require.NoError(t, err)
		f(t, c)
		synctest.Wait()
		for _, s := range c.States() {
			require.Zero(t, s.InFlight, s.Provider)
			require.Zero(t, s.Queue.Length, s.Provider)
		}
	})
}

func declare(slug string, t provider.Throttle) provider.Provider {
	return provider.Provider{Slug: slug, Throttle: t}
}

func every(per provider.Period) provider.Throttle {
	return provider.Throttle{Limits: []provider.Limit{{Name: "l", Max: 1, Per: per}}}
}

// outcome is a job with its result, and when it came.
type outcome struct {
	job batch.Job
	res batch.Result
	at  time.Duration
}

func collect(results iter.Seq2[batch.Job, batch.Result]) (all []outcome) {
	start := time.Now()
	for job, res := range results {
		all = append(all, outcome{job, res, time.Since(start)})
	}
	return all
}

func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
