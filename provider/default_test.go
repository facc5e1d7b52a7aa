package provider

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestThrottleDefaults(t *testing.T) {
	want := Throttle{Excess: Queue, MaxQueue: 1000, MaxWait: time.Hour, Penalty: time.Second, MaxRetryAfter: 24 * time.Hour, Learn: LearnLower}
	assert.Equal(t, want, Throttle{}.WithDefaults())
	assert.Equal(t, want, want.WithDefaults())
	assert.NoError(t, want.Validate())

	delay := Throttle{Excess: Delay}.WithDefaults()
	assert.Equal(t, 30*time.Second, delay.MaxWait)
	assert.Equal(t, time.Hour, Throttle{Excess: Reject}.WithDefaults().MaxWait)
	given := completeValue().Throttle
	given.BadAnswers = nil
	assert.Equal(t, given, given.WithDefaults(), "what is given stays")
}

func TestBadAnswersDefaults(t *testing.T) {
	given := Throttle{BadAnswers: &Limit{Max: 10, Per: "10m"}}
	got := given.WithDefaults()
	assert.Equal(t, defaults(Limit{Name: "bad_answers", Max: 10, Per: "10m", Algorithm: SlidingWindow}), *got.BadAnswers)
	assert.Equal(t, Limit{Max: 10, Per: "10m"}, *given.BadAnswers, "the given one is not touched")
	assert.Equal(t, "bans", Throttle{BadAnswers: &Limit{Name: "bans", Max: 10, Per: "10m"}}.WithDefaults().BadAnswers.Name)
	assert.NoError(t, got.Validate())
}

func TestLimitDefaultsKeepWhatIsGiven(t *testing.T) {
	given := Limit{Name: "a", Max: 3, Per: Day, Zone: "Asia/Tokyo", Anchor: "17:30", Algorithm: FixedWindow, Counted: CountedSent, Unit: Bytes,
		Scope: ScopeKeyEndpoint, Basis: BasisPacing, Shared: true, Source: "x"}
	assert.Equal(t, given, given.WithDefaults())
	bucket := defaults(Limit{Name: "a", Max: 3, Per: "1s", Burst: 1, Algorithm: TokenBucket})
	assert.Equal(t, bucket, bucket.WithDefaults())
}

func TestBreakerAndRetryDefaults(t *testing.T) {
	assert.Equal(t, Breaker{Failures: 5, Cooldown: 30 * time.Second, Probes: 1}, Breaker{}.WithDefaults())
	assert.Equal(t, Breaker{Off: true, Failures: 1, Cooldown: 2, Probes: 3}, Breaker{Off: true, Failures: 1, Cooldown: 2, Probes: 3}.WithDefaults())
	assert.Equal(t, Retry{Attempts: 3, Base: 500 * time.Millisecond, Max: 30 * time.Second, Budget: 0.2}, Retry{}.WithDefaults())
	assert.Equal(t, Retry{Off: true, Attempts: 1, Base: 2, Max: 3, Budget: 1}, Retry{Off: true, Attempts: 1, Base: 2, Max: 3, Budget: 1}.WithDefaults())
	assert.Equal(t, time.Minute, Retry{Base: time.Minute}.WithDefaults().Max, "never below base")
	assert.Equal(t, time.Millisecond, Retry{Max: time.Millisecond}.WithDefaults().Base, "never above max")
}
