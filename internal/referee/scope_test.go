package referee

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/headgate/headgate/provider"
)

func TestBrokenLimitTakesNothingFromTheOthers(t *testing.T) {
	limits := []provider.Limit{{Name: "rps", Max: 1, Per: "1s"}, {Name: "rpm", Max: 3, Per: "1m"}, {Name: "burst", Max: 5, Per: "1m", Algorithm: provider.TokenBucket}}
	bubble(t, Play{Limits: limits}, func(t *testing.T, r *Referee) {
		for range 3 {
			assert.True(t, r.Arrive("p", "", "", nil))
			assert.False(t, r.Arrive("p", "", "", nil))
			time.Sleep(time.Second)
		}
		assert.EqualValues(t, 4, r.Report("p").Violated, "the last of them breaks rpm too")
		time.Sleep(57 * time.Second)
		assert.True(t, r.Arrive("p", "", "", nil))
		assert.False(t, r.Arrive("p", "", "", requests(6)), "breaks all three")
		assert.EqualValues(t, 7, r.Report("p").Violated)
		assert.EqualValues(t, 4, r.Report("p").Refused)
	})
}

func TestScopes(t *testing.T) {
	type from struct{ endpoint, key string }
	all := []from{{"a", "x"}, {"a", "y"}, {"b", "x"}, {"b", "y"}, {"", ""}}
	for _, c := range []struct {
		name  string
		limit provider.Limit
		want  []bool // of each of all, one call after the other
	}{
		{"provider", provider.Limit{}, []bool{true, false, false, false, false}},
		{"key", provider.Limit{Scope: "key"}, []bool{true, true, false, false, true}},
		{"endpoint", provider.Limit{Scope: "endpoint"}, []bool{true, false, true, false, true}},
		{"key and endpoint", provider.Limit{Scope: "key+endpoint"}, []bool{true, true, true, true, true}},
		{"one endpoint", provider.Limit{Endpoints: []string{"b"}}, []bool{true, true, true, false, true}},
		{"two endpoints, one counter", provider.Limit{Endpoints: []string{"a", "b"}}, []bool{true, false, false, false, true}},
		{"two endpoints, each", provider.Limit{Endpoints: []string{"a", "b"}, Scope: "endpoint"}, []bool{true, false, true, false, true}},
		{"one endpoint, each key", provider.Limit{Endpoints: []string{"a"}, Scope: "key"}, []bool{true, true, true, true, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, algorithm := range []provider.Algorithm{"", provider.FixedWindow, provider.TokenBucket, provider.SlidingWindowCounter} {
				l := c.limit
				l.Max, l.Per, l.Algorithm = 1, "1m", algorithm
				bubble(t, Play{Limits: one(l)}, func(t *testing.T, r *Referee) {
					var got []bool
					for _, f := range all {
						got = append(got, r.Arrive("p", f.endpoint, f.key, nil))
					}
					assert.Equal(t, c.want, got, algorithm)
				})
			}
		})
	}
}

func TestInsteadLeavesTheGeneralLimits(t *testing.T) {
	limits := []provider.Limit{
		{Name: "general", Max: 1, Per: "1m"},
		{Name: "cap", Max: 1, Algorithm: provider.InFlight},
		{Name: "special", Max: 3, Per: "1m", Endpoints: []string{"b"}, Instead: true},
		{Name: "both", Max: 3, Per: "1m", Endpoints: []string{"a", "b"}},
	}
	bubble(t, Play{Limits: limits}, func(t *testing.T, r *Referee) {
		_, ok := r.Enter("p", "a", "", nil)
		assert.True(t, ok)
		assert.True(t, r.Arrive("p", "b", "", nil))
		assert.True(t, r.Arrive("p", "b", "", nil))
		assert.False(t, r.Arrive("p", "b", "", nil), "breaks what names it besides")
		rep := r.Report("p")
		assert.Equal(t, "both", rep.Violations[0].Limit)
		assert.Len(t, rep.Violations, 1)
	})
}

func TestUnitsAreCountedApart(t *testing.T) {
	p := named
	p.Endpoints = []provider.Endpoint{{Name: "a", Cost: map[string]int64{"credits": 4}}, {Name: "b"}}
	limits := []provider.Limit{{Name: "requests", Max: 3, Per: "1m"}, {Name: "credits", Max: 10, Per: "1m", Unit: "credits"}}
	bubble(t, Play{Provider: p, Limits: limits}, func(t *testing.T, r *Referee) {
		assert.True(t, r.Arrive("p", "a", "", nil), "the endpoint's 4")
		assert.True(t, r.Arrive("p", "a", "", map[string]int64{"credits": 6, "nobody-counts": 99}))
		assert.False(t, r.Arrive("p", "a", "", nil), "no credits left")
		assert.True(t, r.Arrive("p", "b", "", nil), "needs none")
		assert.False(t, r.Arrive("p", "b", "", nil), "no request left")
		assert.True(t, r.Arrive("p", "b", "", requests(0)))
		assert.Equal(t, map[string]int64{"requests": 3, "credits": 10, "nobody-counts": 99}, r.Report("p").Units)
	})
}
