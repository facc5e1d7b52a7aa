package outage

import (
	"encoding/json"
	"net"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// Team is how processes come to one store.
type Team struct {
	// Place makes a new store, and tells where it is.
	Place func(t *testing.T) string
	// Store makes a process's way to it.
	Store func(t *testing.T, place string) ledger.Store
}

// The scene: each process has 200 callers; a provider behind HTTP, with a delay each way,
// allows sixty calls in each window. The store may take its time (a busy machine is no
// outage), and who cannot ask it does not go.
const (
	each  = 200
	quota = 60
	trip  = 8 * time.Millisecond

	budget = 2 * time.Second
	lease  = 4 * time.Second // of who is killed
)

// The providers that the referee plays.
const (
	shared = "shared" // by the team
	alone  = "alone"  // by one process that has it to itself
)

// Processes plays a team of three processes. Only the test that bears its name calls it,
// and that does nothing else: each process is that test in this program started anew.
//
// The referee counts no violation. The three together get as much through as one process
// without a ledger does beside them, 95 % at least. When one is killed with units held,
// they count until its lease is over and for a window more; then the others have all, and
// one that begins in its place knows what is spent. All others end all their calls.
func Processes(t *testing.T, team Team) {
	if text, ok := os.LookupEnv(roleVar); ok {
		var r role
		require.NoError(t, json.Unmarshal([]byte(text), &r))
		r.live(t, team.Store)
		return
	}
	whole := t.Name()
	for _, a := range []provider.Algorithm{provider.SlidingWindow, provider.FixedWindow} {
		t.Run(string(a), func(t *testing.T) {
			t.Parallel()
			open(t, whole, team, a, 2*time.Second, ledger.Settings{}).fill()
		})
	}
	t.Run("killed", func(t *testing.T) {
		t.Parallel()
		open(t, whole, team, provider.SlidingWindow, time.Second, ledger.Settings{Lease: lease}).killOne()
	})
}

// house is where a team plays.
type house struct {
	t     *testing.T
	whole string
	role  role // of all of the team, but for their names
	judge *referee.Referee

	mu   sync.Mutex
	went map[string][]arrival // what was admitted, by provider
	hang string               // whose calls get no answer any more, half a quota of them
	hung []time.Time          // when those arrived
}

type arrival struct {
	at time.Time
	by string
}

func open(t *testing.T, whole string, team Team, a provider.Algorithm, w time.Duration, s ledger.Settings) *house {
	t.Helper()
	x := &house{t: t, whole: whole, went: map[string][]arrival{}}
	s.Mode, s.Budget = ledger.Deny, budget
	limit := provider.Limit{Max: quota, Per: provider.Period(w.String()), Algorithm: a}
	var plays []referee.Play
	for _, slug := range []string{shared, alone} {
		plays = append(plays, referee.Play{Provider: declare(slug, limit), Go: referee.Delay{Max: trip}, Back: referee.Delay{Max: trip}, Answer: x.answer})
	}
	var err error
	x.judge, err = referee.New(1, plays...)
	require.NoError(t, err)
	t.Cleanup(x.judge.Close)
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not wait
	require.NoError(t, err)
	x.judge.Serve(l)
	x.role = role{Slug: shared, URL: x.judge.URL(shared), Limit: limit, Callers: each, Place: team.Place(t), Settings: s, Team: processes}
	return x
}

func (x *house) start(name string) *process {
	r := x.role
	r.Name = name
	return start(x.t, x.whole, r)
}

// answer notes who was admitted.
func (x *house) answer(a referee.Arrival) referee.Answer {
	x.mu.Lock()
	defer x.mu.Unlock()
	by := a.Request.Header.Get(nameKey)
	x.went[a.Provider] = append(x.went[a.Provider], arrival{a.At, by})
	if by != x.hang || len(x.hung) == quota/2 {
		return referee.Answer{}
	}
	x.hung = append(x.hung, a.At)
	return referee.Answer{Hang: true}
}

// calls are those that were admitted from some instant on, in order.
func (x *house) calls(slug string, from time.Time) []arrival {
	x.mu.Lock()
	defer x.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(x.went[slug]), func(a arrival) bool { return a.at.Before(from) })
	slices.SortFunc(all, func(a, b arrival) int { return a.at.Compare(b.at) })
	return all
}

// lasts waits for the n-th call, and for more after it, and tells what they took.
func (x *house) lasts(slug string, n, more int) time.Duration {
	x.t.Helper()
	var all []arrival
	require.Eventually(x.t, func() bool {
		all = x.calls(slug, time.Time{})
		return len(all) > n+more
	}, time.Minute, 5*time.Millisecond, "%s is stuck", slug)
	return all[n+more].at.Sub(all[n].at)
}

// fill compares the team with one process that has the same at the same time on the same
// machine: what slows down one slows down the other. Three windows' worth of calls is
// compared, without the first window, which all begin with a burst; up to three times, for
// a machine that has been busy with something else meanwhile.
func (x *house) fill() {
	team := []*process{x.start("1"), x.start("2"), x.start("3")}
	one := x.role
	one.Name, one.Slug, one.URL, one.Place = alone, alone, x.judge.URL(alone), ""
	all := append(team, start(x.t, x.whole, one))
	begin(all...)
	best := 0.0
	for n := quota; n < 10*quota && best < 0.95; n += 3 * quota {
		a, s := x.lasts(alone, n, 3*quota), x.lasts(shared, n, 3*quota)
		x.t.Logf("%d calls: one process %v, three %v: %.1f %%", 3*quota, a, s, 100*a.Seconds()/s.Seconds())
		best = max(best, a.Seconds()/s.Seconds())
	}
	assert.GreaterOrEqual(x.t, best, 0.95)
	end(all...)
	x.judged(alone)
	x.judged(shared, "1", "2", "3")
}

// killOne kills one of three while it waits for half a quota of answers.
func (x *house) killOne() {
	w, err := time.ParseDuration(string(x.role.Limit.Per))
	require.NoError(x.t, err)
	team := []*process{x.start("1"), x.start("2"), x.start("3")}
	begin(team...)
	x.lasts(shared, 0, 2*quota)
	hung := x.hangs("3")
	team[2].kill()

	// What is out was granted, by a batch that renewed the lease, before it arrived; and
	// when that is over it counts for a window. Half of one is the time for it to arrive.
	over := hung.Add(lease + w/2)
	wait(x.t.Context(), time.Until(over))
	held := slices.DeleteFunc(x.calls(shared, hung.Add(1)), func(a arrival) bool { return !a.at.Before(over) })
	x.t.Logf("while the dead one's units count: %d calls, %d in a window", len(held), densest(held, w))
	assert.LessOrEqual(x.t, densest(held, w), quota-quota/2, "its units count")
	assert.NotEmpty(x.t, held, "the others go on")

	var full time.Duration
	require.Eventually(x.t, func() bool {
		full = fastest(x.calls(shared, over), 2*quota)
		return full <= 2*w*10/9
	}, time.Minute, 5*time.Millisecond, "the others get what the dead has left")
	x.t.Logf("then: %d calls in %v", 2*quota, full)

	next := x.start("4")
	begin(next)
	require.Eventually(x.t, func() bool {
		all := x.calls(shared, over)
		i := slices.IndexFunc(all, func(a arrival) bool { return a.by == next.name })
		return i >= 0 && len(all) > i+quota
	}, time.Minute, 5*time.Millisecond, "a process in its place is stuck")
	end(team[0], team[1], next)
	x.judged(shared, "1", "2", "3", "4")
}

// hangs waits until half a quota of calls of a process have arrived that get no answer,
// and tells when the last did.
func (x *house) hangs(name string) (last time.Time) {
	x.t.Helper()
	x.mu.Lock()
	x.hang = name
	x.mu.Unlock()
	require.Eventually(x.t, func() bool {
		x.mu.Lock()
		defer x.mu.Unlock()
		if len(x.hung) < quota/2 {
			return false
		}
		last = slices.MaxFunc(x.hung, time.Time.Compare)
		return true
	}, time.Minute, time.Millisecond)
	return last
}

// judged is the referee's judgement, when all is over; and all of those got something.
func (x *house) judged(slug string, names ...string) {
	r := x.judge.Report(slug)
	x.t.Logf("%s: %d admitted, %d violated", slug, r.Admitted, r.Violated)
	assert.Zero(x.t, r.Violated, "the first: %+v", r.Violations[:min(len(r.Violations), 3)])
	part := map[string]int{}
	for _, a := range x.calls(slug, time.Time{}) {
		part[a.by]++
	}
	for _, name := range names {
		assert.Positive(x.t, part[name], "process %s: %v", name, part)
	}
}

// densest is how many calls there are at most in a window.
func densest(all []arrival, w time.Duration) (most int) {
	for i, first := range all {
		n, _ := slices.BinarySearchFunc(all, first.at.Add(w), func(a arrival, t time.Time) int { return a.at.Compare(t) })
		most = max(most, n-i)
	}
	return most
}

// fastest is the least time that so many calls took, from one to the first after them.
func fastest(all []arrival, n int) time.Duration {
	least := time.Duration(1<<63 - 1)
	for i := n; i < len(all); i++ {
		least = min(least, all[i].at.Sub(all[i-n].at))
	}
	return least
}
