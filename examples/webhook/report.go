package main

import (
	"fmt"
	"io"
	"runtime"
	"runtime/metrics"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/internal/referee"
)

// memory is what the coordinator remembers, and the heap of the whole program.
type memory struct {
	peak, end         int // keys
	heapPeak, heapEnd uint64
}

// watcher looks at it now and then.
type watcher struct {
	c    *coordinator.Coordinator
	quit chan struct{}
	done sync.WaitGroup
	m    memory
}

const watchEvery = 500 * time.Millisecond

func watch(c *coordinator.Coordinator) *watcher {
	w := &watcher{c: c, quit: make(chan struct{})}
	w.done.Go(func() {
		every := time.NewTicker(watchEvery)
		defer every.Stop()
		for {
			select {
			case <-every.C:
				w.look()
			case <-w.quit:
				return
			}
		}
	})
	return w
}

func (w *watcher) look() {
	if state, err := w.c.State(slug); err == nil {
		w.m.end = state.KeyCount
		w.m.peak = max(w.m.peak, state.KeyCount)
	}
	w.m.heapEnd = liveHeap()
	w.m.heapPeak = max(w.m.heapPeak, w.m.heapEnd)
}

func (w *watcher) stop() memory {
	close(w.quit)
	w.done.Wait()
	runtime.GC()
	w.look()
	return w.m
}

// liveHeap is what the last collection left.
func liveHeap() uint64 {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
	metrics.Read(s)
	if s[0].Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s[0].Value.Uint64()
}

// summary is a run that has ended.
type summary struct {
	destinations int
	elapsed      time.Duration
	sender       *sender
	memory       memory
	report       referee.Report
}

func (s *summary) write(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "destinations\tevents\tdelivered\tkept for later\tfailed\twaited p50\tp95\tcalls\t")
	events := 0
	for i := range s.sender.tallies {
		t := &s.sender.tallies[i]
		slices.Sort(t.waits)
		fmt.Fprintf(table, "%s\t%d\t%d\t%d\t%d\t%s\t%s\t%d\t\n", kind(i), t.events, t.delivered, t.later, t.failed,
			percentile(t.waits, 50), percentile(t.waits, 95), s.sender.world.calls[i])
		events += t.events
	}
	table.Flush()
	fmt.Fprintf(w, "violations: %d in %d calls, sent while told to wait: %d, %s, in %s\n",
		s.report.Violated, s.report.Arrivals, s.sender.world.early, s.answered(), s.elapsed.Round(100*time.Millisecond))
	fmt.Fprintf(w, "utilisation: hot destinations %s of %d a second\n", stage.Percent(ideal.Seconds(), s.sender.tallies[hot].last.Seconds()), perSecond)
	const mb = 1 << 20
	fmt.Fprintf(w, "remembered: at most %d of %d destinations at once, %d at the end; heap (client, server and referee) %.1f MB, %.1f MB at the end\n",
		s.memory.peak, s.destinations, s.memory.end, float64(s.memory.heapPeak)/mb, float64(s.memory.heapEnd)/mb)
}

// ideal is the least time that a backlog needs.
const ideal = (backlog - 1) / perSecond * time.Second

// answered tells whether each event to a destination that is up was delivered.
func (s *summary) answered() string {
	missing := 0
	for i := range s.sender.tallies {
		if kind(i) != down {
			missing += s.sender.tallies[i].events - s.sender.tallies[i].delivered
		}
	}
	if missing > 0 {
		return fmt.Sprintf("%d not delivered although their destinations are up", missing)
	}
	return "all answered whose destinations are up"
}

func percentile(sorted []time.Duration, p int) string {
	if len(sorted) == 0 {
		return "–"
	}
	return sorted[(len(sorted)-1)*p/100].Round(time.Millisecond).String()
}
