package referee

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

// plainBudget tells everything in headers of its own.
func plainBudget(name string) provider.BudgetSource {
	in := func(part, as string) provider.Source { return provider.Source{Header: "X-" + part, As: as} }
	return provider.BudgetSource{Name: name, Limit: in("Limit", ""), Remaining: in("Left", ""), Used: in("Used", ""), Reset: in("Reset", "milliseconds"), Window: in("Window", "seconds")}
}

// TestBudgetsAreTheCounters lets calls arrive at seconds of a bubble and looks at
// what each is told: limit, left, used, reset in ms, window in s.
func TestBudgetsAreTheCounters(t *testing.T) {
	second := func(n int64, a provider.Algorithm) provider.Limit {
		return provider.Limit{Name: "x", Max: n, Per: "10s", Algorithm: a}
	}
	bucket := second(2, provider.TokenBucket)
	bucket.Burst = 3
	day := provider.Limit{Name: "x", Max: 5, Per: provider.Day, Zone: "America/New_York"}
	month := provider.Limit{Name: "x", Max: 5, Per: provider.Month, Anchor: "15 12:00"}
	flight := provider.Limit{Name: "x", Max: 3, Algorithm: provider.InFlight}
	for _, c := range []struct {
		name  string
		limit provider.Limit
		calls string // seconds
		want  string
	}{
		{"sliding window: until one comes back", second(3, ""), "0 4 5 9 11", "3/2/1/10000/10|3/1/2/6000/10|3/0/3/5000/10|3/0/3/1000/10|3/0/3/3000/10"},
		{"leaky bucket: the same", second(3, provider.LeakyBucket), "0 4", "3/2/1/10000/10|3/1/2/6000/10"},
		{"fixed window: until its end", second(3, provider.FixedWindow), "3 9 10", "3/2/1/7000/10|3/1/2/1000/10|3/2/1/10000/10"},
		{"window counter", second(4, provider.SlidingWindowCounter), "0 1 12", "4/3/1/20000/10|4/2/2/14000/10|4/1/3/3000/10"},
		{"token bucket: until the next token", bucket, "0 1 2", "2/2/1/5000/10|2/1/2/4000/10|2/0/3/3000/10"},
		{"calendar day of a zone", day, "0 1", "5/4/1/18000000/86400|5/3/2/17999000/86400"},
		{"calendar month with an anchor", month, "1", "5/4/1/1252799000/2678400"},
		{"in flight: no window, no reset", flight, "0 1", "3/2/1//|3/2/1//"},
	} {
		t.Run(c.name, func(t *testing.T) {
			served(t, speaking(provider.Dialect{Budgets: []provider.BudgetSource{plainBudget("x")}}, c.limit), func(t *testing.T, r *Referee, url string) {
				begin := time.Now()
				var got []string
				for _, at := range strings.Fields(c.calls) {
					d, err := time.ParseDuration(at + "s")
					require.NoError(t, err)
					time.Sleep(time.Until(begin.Add(d)))
					_, h, _ := do(t, r, "GET", url+"/a")
					got = append(got, strings.Join([]string{h.Get("X-Limit"), h.Get("X-Left"), h.Get("X-Used"), h.Get("X-Reset"), h.Get("X-Window")}, "/"))
				}
				assert.Equal(t, c.want, strings.Join(got, "|"))
			})
		})
	}
}

func TestTheEndOfAClosedWindowIsPastItsEdge(t *testing.T) {
	p := speaking(provider.Dialect{Budgets: []provider.BudgetSource{plainBudget("x")}}, provider.Limit{Name: "x", Max: 1, Per: "10s", Algorithm: provider.FixedWindow})
	p.Closed, p.Phase = true, 3*time.Second
	served(t, p, func(t *testing.T, r *Referee, url string) {
		time.Sleep(5 * time.Second)
		_, h, _ := do(t, r, "GET", url+"/a")
		assert.Equal(t, "8001", h.Get("X-Reset"), "8 s and a nanosecond, rounded up")
	})
}

func TestABudgetIsToldWhereItsLimitCounts(t *testing.T) {
	limits := []provider.Limit{
		{Name: "a", Max: 5, Per: "1m", Endpoints: []string{"a"}},
		{Name: "b", Max: 7, Per: "1m", Endpoints: []string{"b"}, Scope: provider.ScopeKey},
	}
	left := provider.Source{Header: "X-Left"}
	d := provider.Dialect{Budgets: []provider.BudgetSource{{Name: "a", Remaining: left}, {Name: "b", Remaining: left}}}
	served(t, speaking(d, limits...), func(t *testing.T, r *Referee, url string) {
		for _, c := range []struct{ path, key, want string }{{"/a", "k", "4"}, {"/b", "k", "6"}, {"/b", "k", "5"}, {"/b", "other", "6"}, {"/c", "k", ""}} {
			_, h, _ := do(t, r, "GET", url+c.path, "X-Api-Key", c.key)
			assert.Equal(t, c.want, h.Get("X-Left"), c)
		}
	})
}

func TestNotationsOfAnAmount(t *testing.T) {
	l := provider.Limit{Name: "x", Max: 40, Per: "10s", Algorithm: provider.TokenBucket}
	for _, c := range []struct {
		budget provider.BudgetSource
		want   string
	}{
		{provider.BudgetSource{Used: provider.Source{Header: "X-N", As: "used_of_limit"}}, "1/40"},
		{provider.BudgetSource{Remaining: provider.Source{Header: "X-N", As: "percent"}}, "3"}, // 2.5, rounded up
		{provider.BudgetSource{Limit: provider.Source{Header: "X-N", As: "rate"}}, "4"},
		{provider.BudgetSource{Limit: provider.Source{Header: "X-L"}, Reset: provider.Source{Header: "X-N", As: "rate"}}, "4"},
		{provider.BudgetSource{Window: provider.Source{Header: "X-N"}}, "10"},
		{provider.BudgetSource{Window: provider.Source{Header: "X-N", Pattern: `^(\d+s)$`, As: "duration"}}, "10s"},
		{provider.BudgetSource{Limit: provider.Source{Header: "X-N", Pattern: `q=(\d+)`}, Window: provider.Source{Header: "X-N", Pattern: `w=(\d+)`, As: "seconds"}}, "q=40;w=10"},
		{provider.BudgetSource{Limit: provider.Source{Header: "X-N", Index: 1}, Remaining: provider.Source{Header: "X-N"}}, "39, 40"},
	} {
		c.budget.Name = "x"
		served(t, speaking(provider.Dialect{Budgets: []provider.BudgetSource{c.budget}}, l), func(t *testing.T, r *Referee, url string) {
			_, h, _ := do(t, r, "GET", url+"/a")
			assert.Equal(t, c.want, h.Get("X-N"), "%+v", c.budget)
		})
	}
}

func TestBudgetsInABody(t *testing.T) {
	d := provider.Dialect{
		Budgets: []provider.BudgetSource{{Name: "minute", Remaining: provider.Source{JSON: "$.quota.left"}}},
		Used:    map[string]provider.Source{"tokens": {JSON: "$.usage[0].tokens"}},
	}
	p := speaking(d, provider.Limit{Name: "minute", Max: 2, Per: "1m"})
	p.Answer = func(a Arrival) Answer {
		if a.N == 2 {
			return Answer{Status: 204}
		}
		return Answer{Body: `{"quota":{"name":"free"},"n":1.50}`}
	}
	served(t, p, func(t *testing.T, r *Referee, url string) {
		_, _, body := do(t, r, "GET", url+"/a", "X-Cost-Tokens", "70")
		assert.JSONEq(t, `{"quota":{"name":"free","left":1},"n":1.50,"usage":[{"tokens":70}]}`, body)
		status, _, _ := do(t, r, "GET", url+"/a")
		assert.Equal(t, 204, status, "where there is no body nothing is told in it")
		status, _, body = do(t, r, "GET", url+"/a")
		assert.Equal(t, 429, status)
		assert.JSONEq(t, `{"quota":{"left":0},"usage":[{"tokens":0}]}`, body)
	})
}

// What a test scripts stays, beside what is told.
func TestAScriptedAnswerIsToldToo(t *testing.T) {
	p := speaking(provider.Dialect{}, provider.Limit{Name: "x", Max: 2, Per: "30s"})
	p.Answer = func(Arrival) Answer {
		return Answer{Status: 201, Header: map[string][]string{"X-Mine": {"1"}, "X-Ratelimit-Limit": {"77"}}, Body: "made"}
	}
	served(t, p, func(t *testing.T, r *Referee, url string) {
		status, h, body := do(t, r, "GET", url+"/a")
		assert.Equal(t, 201, status)
		assert.Equal(t, []string{"1", "77", "1", "made"}, []string{h.Get("X-Mine"), h.Get("X-RateLimit-Limit"), h.Get("X-RateLimit-Remaining"), body})
	})
	p = speaking(provider.Dialect{}, provider.Limit{Name: "x", Max: 2, Per: "30s"})
	p.Answer = func(Arrival) Answer { return Answer{Header: map[string][]string{"X-Mine": {"1"}}} }
	served(t, p, func(t *testing.T, r *Referee, url string) {
		_, h, body := do(t, r, "GET", url+"/a")
		assert.Equal(t, []string{"1", "1", `{"ok":true}`}, []string{h.Get("X-Mine"), h.Get("X-RateLimit-Remaining"), body})
	})
}

// One number for limit and reset orders silence: nothing is left for so long.
func TestAnOrderOfSilence(t *testing.T) {
	backoff := provider.Source{JSON: "$.backoff"}
	b := provider.BudgetSource{Name: "x", Limit: backoff, Used: backoff, Reset: backoff}
	b.Reset.As = "seconds"
	served(t, speaking(provider.Dialect{Budgets: []provider.BudgetSource{b}}, provider.Limit{Name: "x", Max: 2, Per: "30s"}), func(t *testing.T, r *Referee, url string) {
		_, _, body := do(t, r, "GET", url+"/a")
		assert.JSONEq(t, `{"ok":true}`, body)
		time.Sleep(time.Second)
		_, _, body = do(t, r, "GET", url+"/a")
		assert.JSONEq(t, `{"ok":true,"backoff":29}`, body)
	})
}

func TestTheConventionsTellTheLimitOfWhichTheLeastIsLeft(t *testing.T) {
	limits := []provider.Limit{
		{Name: "second", Max: 2, Per: "1s"}, {Name: "hour", Max: 8, Per: "1h"},
		{Name: "at once", Max: 1, Algorithm: provider.InFlight}, {Name: "tokens", Max: 1, Per: "1h", Unit: "tokens"},
	}
	told := func(d provider.Dialect) string {
		var all []string
		served(t, speaking(d, limits...), func(t *testing.T, r *Referee, url string) {
			for range 7 {
				_, h, _ := do(t, r, "GET", url+"/a")
				all = append(all, fmt.Sprint(h.Get("X-Ratelimit-Limit"), " ", h.Get("X-Ratelimit-Remaining"), " ", h.Get("X-Ratelimit-Reset")))
				time.Sleep(time.Second)
			}
		})
		return strings.Join(all, "|")
	}
	assert.Equal(t, "2 1 1|2 1 1|2 1 1|2 1 1|8 3 3596|8 2 3595|8 1 3594", told(provider.Dialect{}))
	assert.Equal(t, strings.Repeat("  |", 6)+"  ", told(provider.Dialect{Only: true}))
	assert.Equal(t, strings.Repeat("  |", 6)+"  ", told(provider.Dialect{Budgets: []provider.BudgetSource{{Name: "hour", Remaining: provider.Source{Header: "X-Left"}}}}))
}

func TestRefusalsTellBudgetsAsFarAsThereIsRoom(t *testing.T) {
	d := provider.Dialect{
		Budgets: []provider.BudgetSource{{Name: "minute", Remaining: provider.Source{Header: "X-Left"}, Used: provider.Source{JSON: "$.used"}}},
		Signals: []provider.Signal{{Status: []int{200}, Body: "^too many", Outcome: provider.RateLimited}},
	}
	_, h, body := secondAnswer(t, d, perMinute)
	assert.Equal(t, "too many", body)
	assert.Equal(t, "0", h.Get("X-Left"))
	d.Signals[0] = provider.Signal{Status: []int{403}, Header: &provider.Match{Name: "X-Left", Equals: "none"}, Outcome: provider.RateLimited}
	_, h, body = secondAnswer(t, d, perMinute)
	assert.Equal(t, "none", h.Get("X-Left"))
	assert.JSONEq(t, `{"used":1}`, body)
}

// What the dialect makes of a scripted answer decides what it is charged for.
func TestAScriptedAnswerIsChargedAsTheDialectHasIt(t *testing.T) {
	d := provider.Dialect{Signals: []provider.Signal{{Status: []int{404}, Outcome: provider.OK}, {Status: []int{200}, Body: "^over", Outcome: provider.QuotaSpent}}}
	for _, c := range []struct {
		answer Answer
		free   bool
	}{
		{Answer{Status: 404, Body: "{}"}, false}, {Answer{Body: "over the top"}, true}, {Answer{}, false},
		{Answer{Status: 404, Body: "{}", Outcome: provider.Rejected}, true},
	} {
		p := speaking(d, provider.Limit{Name: "x", Max: 1, Per: "1m", Charges: []provider.Outcome{provider.OK}})
		p.Answer = func(Arrival) Answer { return c.answer }
		served(t, p, func(t *testing.T, r *Referee, url string) {
			do(t, r, "GET", url+"/a")
			assert.Equal(t, c.free, r.Arrive("p", "a", "", nil), "%+v", c.answer)
		})
	}
}
