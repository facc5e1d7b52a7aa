package redis

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// What was charged counts up to W after it, and is free strictly after.
func TestFreeStrictlyAfter(t *testing.T) {
	srv := serve(t)
	client := srv.client(t)
	do(t, client, "SCRIPT", "LOAD", clocked.text)
	d := newDuel(t, client, provider.Limit{Max: 2, Per: "1s"}, 1, "strictly")
	d.charge(1, d.now)
	d.now += time.Microsecond
	d.charge(1, d.now)
	d.now += time.Second // the first is free, the second not yet
	d.usage()
	d.take(2, time.Microsecond)
	require.Zero(t, d.granted)
	d.now += time.Microsecond
	d.take(2, 0)
	require.Equal(t, 1, d.granted)
}

// Beyond 1,024 entries instants are rounded up to slots, also when they are told out of
// order: never earlier than if each were counted by itself, and later by two slots at
// most.
func TestSlots(t *testing.T) {
	srv := serve(t)
	client := srv.client(t)
	do(t, client, "SCRIPT", "LOAD", clocked.text)
	const window, most, slot = time.Minute, 3000, time.Minute / 1024
	d := newDuel(t, client, provider.Limit{Max: most, Per: "1m"}, 1, "slots")
	var went []time.Duration
	opens := func(n int) time.Duration { // when fewer than most-n count
		slices.Sort(went)
		if len(went) <= most-n {
			return d.now
		}
		return max(d.now, went[len(went)-1-(most-n)]+window+time.Microsecond)
	}
	for round := range 12 {
		d.say(func(p *part) {
			for range 400 {
				d.now += time.Duration(d.rng.Int64N(int64(40*time.Millisecond/time.Microsecond))) * time.Microsecond
				at := d.now
				if d.rng.IntN(8) == 0 { // late
					at -= time.Duration(d.rng.Int64N(int64(3*time.Second/time.Microsecond))) * time.Microsecond
				}
				p.addCharge(ledger.Charge{Counter: d.counter, At: time.Unix(0, int64(at)), N: 1})
				went = append(went, at)
			}
			p.ruler = ruler{now: d.at(), sent: int64(d.now / time.Microsecond)}
		})
		for _, n := range []int{1, 10, 500, 1500, most} {
			wait := time.Duration(0)
			m := d.say(func(p *part) {
				p.addTake(0, 1, share{slug: d.slug, own: true, units: []unit{{spec: d.spec, n: int64(n)}}})
			})
			if code := readerOf(m[7]).int(); code > 1 {
				d.refused++
				wait = length(readerOf(readerOf(m[8]).m[0]).int())
			} else { // given back, so that there is room to look at
				d.say(func(p *part) {
					p.addSettlement(ledger.Settlement{Hold: 1, At: d.at(), Back: true}, share{slug: d.slug, own: true, units: []unit{{spec: d.spec, n: int64(n)}}})
				})
			}
			require.GreaterOrEqual(t, wait, opens(n)-d.now, "told too early: %d more", n)
			require.LessOrEqual(t, wait, opens(n)-d.now+2*slot+time.Millisecond, "told too late: %d more", n)
		}
		if round == 8 {
			d.now += 55 * time.Second // few are left: they are exact again
		}
	}
	require.Positive(t, d.refused)
	require.Less(t, lengthOf(t, client, d), 2*1032)
}

func lengthOf(t *testing.T, client rueidis.Client, d *duel) (n int) {
	t.Helper()
	_, list := d.keys.counter(d.slug, d.spec.id)
	_, err := fmt.Sscan(do(t, client, "LLEN", list), &n)
	require.NoError(t, err)
	return n
}
