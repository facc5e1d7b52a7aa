package provider

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"pgregory.net/rapid"
)

func TestPeriodDuration(t *testing.T) {
	for p, want := range map[Period]time.Duration{
		"1s": time.Second, "1.5s": 1500 * time.Millisecond, "24h": 24 * time.Hour, "744h": 744 * time.Hour, "1ns": 1,
		"": 0, "0s": 0, "-1s": 0, "744h0m0.000000001s": 0, "30": 0, "week": 0, "Day": 0, "forever": 0,
	} {
		d, calendar := p.Duration()
		assert.Equal(t, want, d, "%q", p)
		assert.False(t, calendar, "%q", p)
	}
	for p, want := range map[Period]time.Duration{Minute: time.Minute, Hour: time.Hour, Day: 24 * time.Hour, Month: 744 * time.Hour} {
		d, calendar := p.Duration()
		assert.Equal(t, want, d, p)
		assert.True(t, calendar, p)
	}
}

func TestAnchorParts(t *testing.T) {
	const clock = 17*time.Hour + 30*time.Minute
	for _, c := range []struct {
		per    Period
		anchor string
		day    int
		offset time.Duration
	}{
		{Minute, "", 0, 0},
		{Minute, "30s", 0, 30 * time.Second},
		{Minute, "59.999s", 0, 59999 * time.Millisecond},
		{Hour, "15m", 0, 15 * time.Minute},
		{Hour, "0s", 0, 0},
		{Day, "", 0, 0},
		{Day, "17:30", 0, clock},
		{Day, "17:30:00", 0, clock},
		{Day, "23:59:59", 0, 24*time.Hour - time.Second},
		{Day, "00:00", 0, 0},
		{Month, "", 1, 0},
		{Month, "1", 1, 0},
		{Month, "31", 31, 0},
		{Month, "05", 5, 0},
		{Month, "15 17:30", 15, clock},
		{Month, "15 17:30:07", 15, clock + 7*time.Second},
		{"1s", "", 0, 0},
		{"", "", 0, 0},
	} {
		day, offset, err := Limit{Per: c.per, Anchor: c.anchor}.AnchorParts()
		assert.NoError(t, err, "%s %s", c.per, c.anchor)
		assert.Equal(t, c.day, day, "%s %s", c.per, c.anchor)
		assert.Equal(t, c.offset, offset, "%s %s", c.per, c.anchor)
	}
}

func TestAnchorPartsTellWhatIsRight(t *testing.T) {
	for _, c := range []struct {
		per          Period
		anchor, want string
	}{
		{Minute, "1m", `"1m" is no duration from 0 to below 1m: write it as "30s"`},
		{Minute, "-1s", `"-1s" is no duration from 0 to below 1m`},
		{Minute, "30", `"30" is no duration from 0 to below 1m`},
		{Hour, "1h", `"1h" is no duration from 0 to below 1h: write it as "15m"`},
		{Day, "24:00", `"24:00" is no time of day: write it as "17:30" or "17:30:00"`},
		{Day, "7:30", `"7:30" is no time of day`},
		{Day, "17:60", `"17:60" is no time of day`},
		{Day, "17:30:60", `"17:30:60" is no time of day`},
		{Day, "17:30:00.5", `"17:30:00.5" is no time of day`},
		{Day, "5h", `"5h" is no time of day`},
		{Month, "0", `"0" is no day of a month from 1 to 31: write it as "15" or "15 17:30"`},
		{Month, "32", `"32" is no day of a month`},
		{Month, "last", `"last" is no day of a month`},
		{Month, "17:30", `"17:30" is no day of a month`},
		{Month, "15 5pm", `"5pm" is no time of day: write it as "15" or "15 17:30"`},
		{Month, "15 ", `"" is no time of day`},
		{Month, "15  17:30", `" 17:30" is no time of day`},
		{"24h", "17:30", "needs a calendar period: per minute, hour, day or month"},
		{"", "17:30", "needs a calendar period"},
	} {
		day, offset, err := Limit{Per: c.per, Anchor: c.anchor}.AnchorParts()
		assert.ErrorContains(t, err, c.want)
		assert.Zero(t, day, c.anchor)
		assert.Zero(t, offset, c.anchor)
	}
}

func TestDurationTextIsShortAndExact(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0s", time.Second: "1s", time.Minute: "1m", 10 * time.Minute: "10m", time.Hour: "1h", 20 * time.Hour: "20h", 90 * time.Minute: "1h30m",
		time.Hour + time.Second: "1h0m1s", 100 * time.Second: "1m40s", -time.Hour: "-1h", 800 * time.Millisecond: "800ms", Forever: "forever",
	} {
		assert.Equal(t, want, durationText(d))
	}
	rapid.Check(t, func(t *rapid.T) {
		unit := rapid.SampledFrom([]time.Duration{1, time.Microsecond, time.Millisecond, time.Second, time.Minute, time.Hour}).Draw(t, "unit")
		d := time.Duration(rapid.Int64Range(-1e6, 1e6).Draw(t, "n")) * unit
		back, err := time.ParseDuration(durationText(d))
		if err != nil || back != d {
			t.Fatalf("%v → %s → %v, %v", d, durationText(d), back, err)
		}
	})
}
