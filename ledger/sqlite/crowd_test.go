package sqlite_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/sqlite"
	"github.com/headgate/headgate/provider"
)

const (
	crowdMax    = 20
	crowdWindow = 100 * time.Millisecond
)

// crowdLimits are what a crowd asks for: each limit with a bound that is checked on what
// really went.
func crowdLimits() []provider.Limit {
	return []provider.Limit{
		{Name: "window", Max: crowdMax, Per: "100ms"},
		{Name: "bucket", Max: crowdMax, Per: "100ms", Burst: 5, Algorithm: provider.TokenBucket},
		{Name: "fixed", Max: crowdMax, Per: "100ms", Algorithm: provider.FixedWindow},
		{Name: "flight", Max: 6, Algorithm: provider.InFlight},
	}
}

func init() { roles["crowd"] = crowd }

// crowd takes at random until so many calls have gone, and writes a line for each:
// which limit, how many units, and from when to when they were out.
func crowd(args []string) error {
	seed, _ := strconv.ParseUint(args[1], 10, 64)
	n, _ := strconv.Atoi(args[2])
	rnd := rand.New(rand.NewPCG(seed, 1))
	store, err := sqlite.Open(args[0], sqlite.Options{})
	if err != nil {
		return err
	}
	limits := crowdLimits()
	var counters []*ledger.Counter
	for _, l := range limits {
		counters = append(counters, ledger.NewCounter("acme", l, "", ""))
	}
	ctx := context.Background()
	for hold, went := 1, 0; went < n; hold++ {
		i := rnd.IntN(len(limits))
		cost := 1 + rnd.Int64N(3)
		b := &ledger.Batch{Holder: args[1], Seq: uint64(2 * hold), Lease: time.Minute}
		b.Takes = []ledger.Asked{{Hold: ledger.Hold(hold), Take: ledger.Take{Units: []ledger.Units{{Counter: counters[i], N: cost}}}}}
		r, err := store.Exchange(ctx, b)
		if err != nil {
			return err
		}
		if r.Grants[0].Hold == 0 {
			<-time.After(min(r.Grants[0].Wait, 2*time.Millisecond))
			continue
		}
		from := time.Now()
		<-time.After(rand.N(4 * time.Millisecond))
		to := time.Now()
		fmt.Println(limits[i].Name, cost, from.UnixNano(), to.UnixNano())
		went++
		b = &ledger.Batch{Holder: args[1], Seq: uint64(2*hold + 1), Lease: time.Minute, Settlements: []ledger.Settlement{{Hold: ledger.Hold(hold), At: to}}}
		if _, err := store.Exchange(ctx, b); err != nil {
			return err
		}
	}
	return store.Close()
}

// stay is units of one call and when they were out: it may have arrived at any instant
// from from to to.
type stay struct {
	from, to time.Duration
	n        int64
}

// most is how many units at most can have arrived within a closed window of a length.
// It suffices to look at windows that begin as a stay ends.
func most(stays []stay, w time.Duration) (worst int64) {
	for _, x := range stays {
		var n int64
		for _, y := range stays {
			if y.to >= x.to && y.from <= x.to+w {
				n += y.n
			}
		}
		worst = max(worst, n)
	}
	return worst
}

// Four processes take at random from one file. What really went, as they wrote it down,
// overran no window, wherever in its stay each call was counted; and nobody was starved.
func TestProcessesOverrunNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	var all []*process
	for i := range 4 {
		all = append(all, start(t, "crowd", path, i+1, 60))
	}
	went := map[string][]stay{}
	for _, p := range all {
		for _, line := range p.end(t) {
			var name string
			var s stay
			_, err := fmt.Sscan(line, &name, &s.n, &s.from, &s.to)
			require.NoError(t, err)
			went[name] = append(went[name], s)
		}
	}
	total := 0
	for _, stays := range went {
		total += len(stays)
	}
	require.Equal(t, 240, total)
	require.LessOrEqual(t, most(went["window"], crowdWindow), int64(crowdMax))
	require.LessOrEqual(t, most(went["bucket"], crowdWindow), int64(crowdMax+5), "N + B in any window")
	require.LessOrEqual(t, most(went["bucket"], 0), int64(5), "B at once")
	require.LessOrEqual(t, mostAligned(went["fixed"]), int64(crowdMax))
	require.LessOrEqual(t, most(went["flight"], 0), int64(6))
}

// mostAligned is how many units can have arrived within one aligned window.
func mostAligned(stays []stay) (worst int64) {
	for _, x := range stays {
		for _, start := range []time.Duration{x.from - x.from%crowdWindow, x.to - x.to%crowdWindow} {
			var n int64
			for _, y := range stays {
				if y.to >= start && y.from < start+crowdWindow {
					n += y.n
				}
			}
			worst = max(worst, n)
		}
	}
	return worst
}

const shortLease = 400 * time.Millisecond

func init() { roles["spend"] = spend }

// spend takes units of which nobody hears again, and says so only when they are granted.
func spend(args []string) error {
	store, err := sqlite.Open(args[0], sqlite.Options{})
	if err != nil {
		return err
	}
	for hold := 1; ; hold++ {
		b := asking(args[1], hold, counter("day", 100_000, "24h"))
		b.Takes[0].Take.Units = append(b.Takes[0].Take.Units, ledger.Units{Counter: slots(), N: 1})
		b.Lease, b.Seq = shortLease, uint64(hold)
		if hold%3 == 0 { // some are settled before
			b.Settlements = []ledger.Settlement{{Hold: ledger.Hold(hold - 1), At: time.Now()}}
		}
		r, err := store.Exchange(context.Background(), b)
		if err != nil {
			return err
		}
		if r.Grants[0].Hold == 0 {
			return fmt.Errorf("refused: %+v", r.Grants[0])
		}
		fmt.Println(hold)
	}
}

func slots() *ledger.Counter {
	return ledger.NewCounter("acme", provider.Limit{Name: "slots", Max: 50_000, Algorithm: provider.InFlight}, "", "")
}

// Processes are killed at random instants: nothing that was granted is lost, no more is
// counted than was asked for, the file is whole, and when their leases are over all
// that they held counts as used and their slots are free.
func TestKillNineLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ledger.db")
	rnd := rand.New(rand.NewPCG(9, 9))
	var said, killed int64
	for round := range 4 {
		var all []*process
		for i := range 3 {
			all = append(all, start(t, "spend", path, fmt.Sprint(round, " ", i)))
		}
		for _, i := range rnd.Perm(len(all)) {
			p, lines := all[i], 1+rnd.IntN(150)
			require.Eventually(t, func() bool { return len(p.said()) >= lines }, time.Minute, time.Millisecond)
			said += int64(len(p.kill(t)))
			killed++
		}
	}
	s := open(t, path)
	day, flight := counter("day", 100_000, "24h"), slots()
	u := peek(t, s, "judge", day)
	require.GreaterOrEqual(t, u.Used+u.Held, said, "everything that was granted")
	require.LessOrEqual(t, u.Used+u.Held, said+killed, "and at most the one that each was just being told of")
	require.Eventually(t, func() bool { return peek(t, s, "judge", day).Held == 0 }, time.Minute, 10*time.Millisecond)
	require.Equal(t, u.Used+u.Held, peek(t, s, "judge", day).Used, "what was held is used")
	require.Zero(t, peek(t, s, "judge", flight).Held, "slots are free")
	require.Zero(t, s.Rows("hold"))
	found, err := s.Check()
	require.NoError(t, err)
	require.Equal(t, "ok", found)
}

// A checker that finds nothing in too much is none.
func TestCheckerCounts(t *testing.T) {
	stays := []stay{{0, 2, 1}, {1, 5, 2}, {7, 7, 1}}
	require.Equal(t, int64(3), most(stays, 1))
	require.Equal(t, int64(4), most(stays, 5))
	require.Equal(t, int64(3), most(slices.Concat(stays, []stay{{7, 8, 2}}), 0))
}
