package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/sqlite"
	"github.com/headgate/headgate/provider"
)

func init() { roles["load"] = load }

// load takes and settles by so many callers, until n have gone, and tells the time that
// it needed and how long decisions took.
func load(args []string) error {
	callers, _ := strconv.Atoi(args[1])
	n, _ := strconv.Atoi(args[2])
	think, _ := time.ParseDuration(args[3])
	store, err := sqlite.Open(args[0], sqlite.Options{})
	if err != nil {
		return err
	}
	client, err := ledger.Open(store, ledger.Settings{Budget: 5 * time.Second})
	if err != nil {
		return err
	}
	units := []ledger.Units{{Counter: ledger.NewCounter("acme", provider.Limit{Name: "minute", Max: 1 << 40, Per: "1m"}, "", ""), N: 1}}
	took := make([][]time.Duration, callers)
	errs := make([]error, callers)
	var wg sync.WaitGroup
	ctx := context.Background()
	for i := range callers {
		wg.Go(func() {
			for range n / callers {
				start := time.Now()
				g, err := client.Take(ctx, ledger.Take{Provider: "acme", Units: units})
				if err != nil || g.Hold == 0 {
					errs[i] = errors.Join(err, fmt.Errorf("not granted: %+v", g))
					return
				}
				took[i] = append(took[i], time.Since(start))
				<-time.After(think)
				client.Settle(ledger.Settlement{Hold: g.Hold, At: time.Now()})
			}
		})
	}
	wg.Wait()
	all := slices.Concat(took...)
	slices.Sort(all)
	fmt.Println(len(all), all[len(all)/2].Microseconds(), all[len(all)*99/100].Microseconds())
	return errors.Join(errors.Join(errs...), client.Close(ctx))
}

// BenchmarkProcesses is decisions of several processes on one file: each is taken and
// settled through a ledger.Client by 25 callers.
func BenchmarkProcesses(b *testing.B) {
	for _, row := range []struct {
		name      string
		processes int
		think     time.Duration
	}{{"1", 1, 0}, {"4", 4, 0}, {"4 calm", 4, 20 * time.Millisecond}} {
		b.Run(row.name, func(b *testing.B) {
			processes := row.processes
			path := filepath.Join(b.TempDir(), "ledger.db")
			n := max(b.N/processes, 25) / 25 * 25
			var all []*process
			for range processes {
				all = append(all, start(b, "load", path, 25, n, row.think))
			}
			var p50, p99, total int
			for _, p := range all {
				var count, half, most int
				_, err := fmt.Sscan(p.end(b)[0], &count, &half, &most)
				require.NoError(b, err)
				total, p50, p99 = total+count, max(p50, half), max(p99, most)
			}
			b.ReportMetric(float64(total)/b.Elapsed().Seconds(), "decisions/s")
			b.ReportMetric(float64(p50), "p50-µs")
			b.ReportMetric(float64(p99), "p99-µs")
		})
	}
}
