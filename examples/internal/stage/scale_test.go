package stage

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/adapters/catalog"
	"github.com/headgate/headgate/provider"
)

func TestScaleDividesEveryLength(t *testing.T) {
	p := provider.Provider{
		Slug: "p", Timeout: 100 * time.Second,
		Throttle: provider.Throttle{
			RPS: 2, RPM: 30, MaxInFlight: 3, MaxWait: time.Hour, Penalty: 4 * time.Second, Warmup: 8 * time.Second,
			Limits: []provider.Limit{
				{Name: "day", Max: 500, Per: provider.Day, Zone: "America/Los_Angeles", Anchor: "17:30"},
				{Name: "fixed", Max: 5, Per: "20s", Algorithm: provider.FixedWindow},
				{Name: "leaky", Max: 5, Per: "1m", Algorithm: provider.LeakyBucket},
			},
			BadAnswers: &provider.Limit{Max: 9, Per: "1h"},
		},
		Breaker: provider.Breaker{Cooldown: 20 * time.Second},
		Retry:   provider.Retry{Base: time.Second, Max: 40 * time.Second},
	}
	got, played, err := Scale(p, 20)
	require.NoError(t, err)
	require.NoError(t, got.Validate())

	periods := map[string]provider.Period{}
	for _, l := range got.Throttle.Limits {
		periods[l.Name] = l.Per
	}
	assert.Equal(t, map[string]provider.Period{
		"rps": "50ms", "rpm": "3s", "max_in_flight": "", "day": "1h12m0s", "fixed": "1s", "leaky": "3s",
	}, periods)
	assert.EqualValues(t, "3m0s", got.Throttle.BadAnswers.Per)
	assert.Equal(t, 3*time.Minute, got.Throttle.MaxWait)
	assert.Equal(t, 200*time.Millisecond, got.Throttle.Penalty)
	assert.Equal(t, 400*time.Millisecond, got.Throttle.Warmup)
	assert.Equal(t, 500*time.Millisecond, got.Throttle.ArrivalWithin)
	assert.Equal(t, 72*time.Minute, got.Throttle.MaxRetryAfter)
	assert.Equal(t, time.Second, got.Breaker.Cooldown)
	assert.Equal(t, 50*time.Millisecond, got.Retry.Base)
	assert.Equal(t, 2*time.Second, got.Retry.Max)
	assert.Equal(t, 5*time.Second, got.Timeout)

	// The referee plays fixed windows where Headgate has sliding ones; all else is
	// the same on both sides.
	for i, l := range got.Throttle.Limits {
		theirs := played[i]
		if slices.Contains([]string{"day", "fixed"}, l.Name) {
			assert.Equal(t, provider.FixedWindow, theirs.Algorithm, l.Name)
			assert.Equal(t, provider.SlidingWindow, l.Algorithm, l.Name)
			theirs.Algorithm = l.Algorithm
		}
		assert.Equal(t, l, theirs)
	}
}

func TestScaleSpellsDefaultsOut(t *testing.T) {
	p, _, err := Scale(provider.Provider{Slug: "p"}, 10)
	require.NoError(t, err)
	assert.Equal(t, 100*time.Millisecond, p.Throttle.Penalty)
	assert.Equal(t, 6*time.Minute, p.Throttle.MaxWait)
	assert.Equal(t, 3*time.Second, p.Breaker.Cooldown)
	assert.Equal(t, 50*time.Millisecond, p.Retry.Base)
	assert.Zero(t, p.Timeout, "no time-out stays none")

	p, _, err = Scale(provider.Provider{Slug: "p", Throttle: provider.Throttle{MaxWait: provider.Forever}}, 10)
	require.NoError(t, err)
	assert.Equal(t, provider.Forever, p.Throttle.MaxWait)
}

// Whatever the speed: a request that was given up still counts until it must have
// arrived, and a busy machine is no time-out.
func TestScaleKeepsWhatNoSpeedShortens(t *testing.T) {
	p, _, err := Scale(provider.Provider{Slug: "p", Timeout: 30 * time.Second}, 1e6)
	require.NoError(t, err)
	assert.Equal(t, leastArrival, p.Throttle.ArrivalWithin)
	assert.Equal(t, leastTimeout, p.Timeout)
}

func TestScaleOfTheCatalogIsValid(t *testing.T) {
	all, err := catalog.All()
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, p := range all {
		for _, speed := range []float64{0.5, 1, 33, 12345.678} {
			scaled, played, err := Scale(p, speed)
			require.NoError(t, err, p.Slug)
			assert.NoError(t, scaled.Validate(), p.Slug)
			assert.NotEmpty(t, played, p.Slug)
		}
	}
}

func TestShorten(t *testing.T) {
	assert.Equal(t, 34*time.Nanosecond, Shorten(100, 3), "rounds up")
	assert.Equal(t, time.Nanosecond, Shorten(1, 1e9), "never to nothing")
	assert.Equal(t, 2*time.Second, Shorten(time.Second, 0.5), "below 1 it is slower")
	assert.Equal(t, time.Duration(0), Shorten(0, 3))
	assert.Equal(t, provider.Forever, Shorten(provider.Forever, 3))
}
