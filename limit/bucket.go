package limit

import (
	"math/big"
	"slices"
	"time"
)

// bucket is token_bucket, kept as the one instant at which it is full again
// (GCRA's theoretical arrival time): n units cost n×per/max of time, and n may go
// while no more than capacity-n are missing.
type bucket struct {
	full time.Duration // rounded up to the nanosecond
	over int64         // by so many max-ths of one
	past dips
}

func (b *bucket) missing(now time.Duration) time.Duration {
	return max(0, sub(b.full, now))
}

func (b *bucket) look(s *spec, now Now, room int64) time.Duration {
	whole, rest := divide(room, int64(s.per), s.max)
	t := sub(b.full, time.Duration(whole))
	if rest >= s.max-b.over {
		t = sub(t, 1)
	}
	return max(now.Mono, t)
}

// charge at an instant before the last charge is put as late as that: strict, and
// the same unless the bucket was full in between.
func (b *bucket) charge(s *spec, at Now, n int64) {
	b.past.note(at.Mono, b.floor(at.Mono))
	b.spend(s, at.Mono, n)
}

func (b *bucket) spend(s *spec, at time.Duration, n int64) {
	if b.full <= at {
		b.full, b.over = at, 0
	}
	whole, rest := divide(n, int64(s.per), s.max)
	if rest -= b.over; rest > 0 {
		whole, rest = add(whole, 1), rest-s.max
	}
	b.full, b.over = add(b.full, time.Duration(whole)), -rest
}

// floor is what is missing, rounded down.
func (b *bucket) floor(now time.Duration) time.Duration {
	if b.over > 0 {
		now++
	}
	return b.missing(now)
}

// refund: without those units the bucket would have missed as much less, but
// where it missed less than that it would have been full, and the rest lost.
func (b *bucket) refund(s *spec, charged Now, n int64) {
	whole, rest := divide(n, int64(s.per), s.max)
	cost := time.Duration(whole)
	if rest > 0 {
		cost = add(cost, 1)
	}
	if least := b.past.take(charged.Mono, cost); least < cost {
		b.full, b.over = sub(b.full, least), 0
		return
	}
	if b.over >= s.max-rest { // no sum: both may be near the most
		whole, b.over = add(whole, 1), b.over-(s.max-rest)
	} else {
		b.over += rest
	}
	b.full = sub(b.full, time.Duration(whole))
}

func (b *bucket) when(s *spec, now Now, held, n int64) time.Duration {
	last := bucket{full: b.full, over: b.over}
	last.spend(s, now.Mono, held)
	last.spend(s, now.Mono, n-1)
	return last.look(s, now, s.capacity-1)
}

// used rounds up: (missing − over/max) × max/per.
func (b *bucket) used(s *spec, now Now) int64 {
	missing := b.missing(now.Mono)
	if missing == 0 {
		return 0
	}
	whole, rest := divide(int64(missing), s.max, int64(s.per))
	if rest > b.over {
		return add(whole, 1)
	}
	return whole - (b.over-rest)/int64(s.per)
}

func (b *bucket) idle(_ *spec, now Now) bool { return b.full <= now.Mono }

// adopt keeps the units that are missing, in the time that they cost now.
func (b *bucket) adopt(s *spec, from algorithm, old *spec, now Now) {
	*b = *from.(*bucket)
	if s.max == old.max && s.per == old.per {
		return
	}
	b.full = add(now.Mono, convert(s, old, b.missing(now.Mono), 1))
	b.over = 0
	for i := range b.past {
		b.past[i].level = convert(s, old, b.past[i].level, 0)
	}
}

// convert is the time that units cost under s which cost d under old, rounded up
// by extra where it is not whole.
func convert(s, old *spec, d time.Duration, extra int64) time.Duration {
	num := big.NewInt(int64(d))
	num.Mul(num, big.NewInt(old.max)).Mul(num, big.NewInt(int64(s.per)))
	den := big.NewInt(int64(old.per))
	den.Mul(den, big.NewInt(s.max))
	quo, rem := num.QuoRem(num, den, new(big.Int))
	if rem.Sign() > 0 {
		quo.Add(quo, big.NewInt(extra))
	}
	if !quo.IsInt64() {
		return Never
	}
	return time.Duration(quo.Int64())
}

func (b *bucket) copy(from algorithm) {
	*b = *from.(*bucket)
	b.past = slices.Clone(b.past)
}
