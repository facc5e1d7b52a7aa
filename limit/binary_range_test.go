package limit

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

// What no Rule has written is refused, though it has the form of one.
func TestStoredRuleOutOfRange(t *testing.T) {
	window := func(e ...entry) func(*Rule) {
		return func(r *Rule) { r.algo.(*window).ring = ring{entries: e, size: uint16(len(e))} }
	}
	past := func(d ...dip) func(*Rule) { return func(r *Rule) { r.algo.(*bucket).past = d } }
	year := 366 * 24 * time.Hour
	minute := provider.Limit{Max: 5, Per: "1m"}
	day := provider.Limit{Max: 5, Per: provider.Day}
	leak := provider.Limit{Max: 5, Per: "1m", Algorithm: provider.TokenBucket}
	for says, row := range map[string]struct {
		limit provider.Limit
		harm  func(*Rule)
	}{
		"entries that are not in order":               {minute, window(entry{5, 1}, entry{5, 2})},
		"more units than a window keeps":              {minute, window(entry{5, math.MaxInt64}, entry{6, math.MaxInt64 + 1})},
		"more entries than a window keeps":            {minute, window(make([]entry, most+1)...)},
		"a bucket out of range":                       {leak, func(r *Rule) { r.algo.(*bucket).over = 5 }},
		"a bucket out of range: too long":             {leak, past(make([]dip, remembered+1)...)},
		"a bucket's history that is not in order":     {leak, past(dip{1, 5}, dip{2, 4})},
		"a bucket's history that is not in order: at": {leak, past(dip{2, 4}, dip{2, 5})},
		"a window that is too long":                   {day, func(r *Rule) { r.algo.(*fixed).end = year }},
		"a limit of less than 1":                      {minute, func(r *Rule) { r.spec.max, r.spec.capacity = 0, 0 }},
		"a period out of range":                       {minute, func(r *Rule) { r.spec.per = 0 }},
		"a period out of range: long":                 {minute, func(r *Rule) { r.spec.per = year }},
		"a capacity out of range":                     {minute, func(r *Rule) { r.spec.capacity = 6 }},
		"a capacity out of range: bucket":             {leak, func(r *Rule) { r.spec.capacity = math.MaxInt64 }},
		"a calendar out of range":                     {day, func(r *Rule) { r.spec.calendar.offset = 24 * time.Hour }},
		"a calendar out of range: period":             {day, func(r *Rule) { r.spec.per = time.Hour }},
		"a calendar out of range: no day":             {day, func(r *Rule) { r.spec.calendar.day = 1 }},
		"a calendar out of range: month": {provider.Limit{Max: 5, Per: provider.Month}, func(r *Rule) {
			r.spec.calendar.day = 32
		}},
		"a time zone that this system does not know": {day, func(r *Rule) { r.spec.calendar.zone = time.FixedZone("Mars/Base", 0) }},
		"no such calendar":                           {minute, func(r *Rule) { r.spec.calendar = mustNew(t, day).spec.calendar }},
	} {
		r := mustNew(t, row.limit)
		row.harm(r)
		b, err := r.AppendBinary(nil)
		require.NoError(t, err)
		says, _, _ = strings.Cut(says, ":")
		require.EqualError(t, new(Rule).UnmarshalBinary(b), "limit: a stored rule is damaged: "+says)
	}
}

// FuzzUnmarshal: whatever the bytes, it is an error or a Rule that can be used and
// is written as it was read.
func FuzzUnmarshal(f *testing.F) {
	for _, d := range storable {
		r := mustNew(f, d)
		now := Now{Mono: time.Hour, Wall: 1_800_000_000 * time.Second}
		for range 3 {
			now.Mono, now.Wall = now.Mono+time.Minute, now.Wall+time.Minute
			r.Take(now, 1)
			r.Settle(now, now, 1, 1)
		}
		b, _ := r.AppendBinary(nil)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		r := new(Rule)
		if r.UnmarshalBinary(data) != nil {
			return
		}
		b, err := r.AppendBinary(nil)
		require.NoError(t, err)
		twin := new(Rule)
		require.NoError(t, twin.UnmarshalBinary(b))
		again, err := twin.AppendBinary(nil)
		require.NoError(t, err)
		require.Equal(t, b, again)
		now := Now{Mono: time.Hour, Wall: 1_800_000_000 * time.Second}
		for range 3 {
			r.Usage(now)
			r.When(now, 5)
			r.Idle(now)
			if r.Look(now, 1) <= now.Mono {
				r.Take(now, 1)
			}
			r.Settle(now, now, 1, 2)
			r.Correct(now, now, -1)
			r.GiveBack(now, now, 1)
			now.Mono, now.Wall = now.Mono+time.Hour, now.Wall+time.Hour
		}
		fresh := r.Fresh()
		fresh.Adopt(r, now)
	})
}
