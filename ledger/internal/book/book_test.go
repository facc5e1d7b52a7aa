package book

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// babble is batches at random: of three holders, over limits of every algorithm.
type babble struct {
	rnd      *rand.Rand
	counters []*ledger.Counter
	seq      [3]uint64
	hold     ledger.Hold
	now      time.Time
}

func newBabble(seed uint64) *babble {
	b := &babble{rnd: rand.New(rand.NewPCG(seed, 3)), now: time.Unix(1_800_000_000, 0)}
	for i, l := range []provider.Limit{
		{Max: 5, Per: "10s"}, {Max: 5, Per: "10s", Counted: provider.CountedSent}, {Max: 6, Per: "10s", Algorithm: provider.FixedWindow},
		{Max: 6, Per: "10s", Algorithm: provider.SlidingWindowCounter}, {Max: 6, Per: "10s", Burst: 3, Algorithm: provider.TokenBucket},
		{Max: 6, Per: "10s", Algorithm: provider.LeakyBucket}, {Max: 3, Algorithm: provider.InFlight}, {Max: 50, Per: provider.Day, Zone: "Asia/Tokyo"},
	} {
		l.Name = fmt.Sprint("limit ", i)
		b.counters = append(b.counters, ledger.NewCounter([]string{"acme", "other"}[i%2], l, "", ""))
	}
	return b
}

func (b *babble) counter() *ledger.Counter { return b.counters[b.rnd.IntN(len(b.counters))] }

func (b *babble) past() time.Time {
	return b.now.Add(-time.Duration(b.rnd.IntN(5000)) * time.Millisecond)
}

func (b *babble) next() ledger.Batch {
	b.now = b.now.Add(time.Duration(b.rnd.IntN(1500)) * time.Millisecond)
	i := b.rnd.IntN(3)
	b.seq[i]++
	out := ledger.Batch{Holder: fmt.Sprint("holder ", i), Seq: b.seq[i], Lease: 3 * time.Second, Gone: b.rnd.IntN(50) == 0}
	for range b.rnd.IntN(3) {
		b.hold++
		t := ledger.Take{Provider: "acme", Key: "k"}
		for range b.rnd.IntN(3) {
			t.Units = append(t.Units, units(b.counter(), 1+b.rnd.Int64N(2)))
		}
		out.Takes = append(out.Takes, ledger.Asked{Hold: b.hold, Take: t})
	}
	for range b.rnd.IntN(4) {
		s := ledger.Settlement{Hold: b.hold - ledger.Hold(b.rnd.IntN(6)), At: b.past(), Back: b.rnd.IntN(4) == 0}
		if b.rnd.IntN(3) == 0 {
			s.Part = []ledger.Part{{Unit: b.rnd.IntN(4) - 1, Charged: b.rnd.Int64N(4)}}
		}
		s.Trial = []ledger.Trial{"", ledger.Opens, ledger.Again}[b.rnd.IntN(3)]
		out.Settlements = append(out.Settlements, s)
	}
	switch b.rnd.IntN(12) {
	case 0:
		out.Charges = []ledger.Charge{{Counter: b.counter(), At: b.past(), N: b.rnd.Int64N(4) - 1}}
	case 1:
		out.News = []ledger.News{{Learn: &ledger.Learnt{Counter: b.counter(), NotBefore: b.now.Add(b.some()), Max: b.rnd.Int64N(5), Until: b.now.Add(b.some())}}}
	case 2:
		p := ledger.Pause{Provider: "acme", Scope: provider.ScopeProvider, Until: b.now.Add(b.some()), Why: "banned"}
		if b.rnd.IntN(2) == 0 {
			p.Scope, p.Name = provider.ScopeKey, "k"
		}
		out.News = []ledger.News{{Pause: &p}}
	case 3:
		out.News = []ledger.News{{Resume: &ledger.Pause{Provider: "acme", Scope: []string{"", provider.ScopeKey}[b.rnd.IntN(2)], Name: "k"}}}
	case 4:
		h := ledger.Held{Hold: b.hold + 1000, At: b.past(), Take: ledger.Take{Provider: "acme", Units: []ledger.Units{units(b.counter(), 1), units(b.counter(), 1)}}}
		if b.rnd.IntN(2) == 0 {
			h.Part = []int{1, 1, 7, -1}
		}
		out.Holds = []ledger.Held{h}
	case 5:
		if b.rnd.IntN(4) == 0 {
			out.Forget = []string{"other"}
		}
	}
	out.Peek = b.counters
	return out
}

func (b *babble) some() time.Duration { return time.Duration(b.rnd.IntN(4000)-1000) * time.Millisecond }

// A Book over bytes answers as one over the values themselves does, whatever it is
// told: so all that it knows is written down, and read again.
func TestStoredBookIsTheSame(t *testing.T) {
	for seed := range uint64(12) {
		_, a := newLive()
		_, b := newStored()
		babble := newBabble(seed)
		var known uint64
		granted, alone := 0, 0
		for i := range 400 {
			batch := babble.next()
			batch.Known = known
			ra, err := a.Exchange(&batch, babble.now, babble.now)
			require.NoError(t, err)
			rb, err := b.Exchange(&batch, babble.now, babble.now)
			require.NoError(t, err)
			known = ra.Version
			require.NotEqual(t, ra.Epoch, rb.Epoch)
			require.ElementsMatch(t, ra.Pauses, rb.Pauses)
			ra.Epoch, ra.Pauses, rb.Epoch, rb.Pauses = "", nil, "", nil
			require.Equal(t, ra, rb, "batch %d of seed %d", i, seed)
			for _, g := range ra.Grants {
				if g.Hold != 0 {
					granted++
				}
				if g.Alone {
					alone++
				}
			}
		}
		require.Greater(t, granted, 40)
		require.Positive(t, alone)
	}
}

// Whichever call of the storage fails, the batch fails with it.
func TestEveryErrorOfTheStorageIsTold(t *testing.T) {
	s, k := newStored()
	babble := newBabble(99)
	for range 60 {
		batch := babble.next()
		for calls := 0; ; calls++ {
			left := calls
			_, err := New(breaking(s, &left)).Exchange(&batch, babble.now, babble.now)
			if err == nil {
				break
			}
			require.ErrorIs(t, err, errBroken)
			require.Less(t, calls, 1000)
		}
		k.Reset()
	}
}

// Room is how many more would go: as many do, and no more.
func TestRoomIsWhatGoes(t *testing.T) {
	for seed := range uint64(6) {
		s, k := newLive()
		babble := newBabble(seed)
		for range 150 {
			batch := babble.next()
			r, err := k.Exchange(&batch, babble.now, babble.now)
			require.NoError(t, err)
			for i, g := range r.Grants {
				if i < len(r.Grants)-1 || batch.Gone {
					continue // others have taken since, or all was settled
				}
				for j, u := range batch.Takes[i].Take.Units {
					rec, err := s.Records.Get(u.Counter.ID())
					require.NoError(t, err)
					if rec == nil || rec.NotBefore > 0 {
						continue
					}
					now := k.read(mustMeta(t, s), babble.now, babble.now)
					if n := g.Room[j]; n > 0 {
						require.LessOrEqual(t, rec.Rule.Look(now, n), now.Mono)
					}
					require.Greater(t, rec.Rule.Look(now, g.Room[j]+1), now.Mono, "%+v, room %d", u.Counter.Limit(), g.Room[j])
				}
			}
		}
	}
}

func mustMeta(t *testing.T, s Storage) *Meta {
	m, err := s.Meta.Get("")
	require.NoError(t, err)
	c := *m
	return &c
}

func TestBadBatches(t *testing.T) {
	_, k := newLive()
	_, err := k.Exchange(&ledger.Batch{}, time.Now(), time.Now())
	require.EqualError(t, err, "ledger: a batch without a holder")
	bad := ledger.NewCounter("acme", provider.Limit{Name: "calls", Max: 5, Per: "soon"}, "", "")
	good := counter(provider.Limit{Max: 5, Per: "1s"})
	for _, b := range []ledger.Batch{
		{Peek: []*ledger.Counter{good, bad}},
		{Charges: []ledger.Charge{{Counter: good, N: 1}, {Counter: bad, N: 1}}},
		{News: []ledger.News{{}, {Learn: &ledger.Learnt{Counter: bad}}}},
		{Takes: []ledger.Asked{{Hold: 1, Take: ledger.Take{Units: []ledger.Units{units(good, 1), units(bad, 1)}}}}},
		{Holds: []ledger.Held{{Hold: 1, Take: ledger.Take{Units: []ledger.Units{units(good, 1), units(bad, 1)}}}}},
	} {
		b.Holder = "a"
		_, err := k.Exchange(&b, time.Now(), time.Now())
		require.ErrorContains(t, err, `ledger: counter "acme/calls//": limit "calls": per`)
	}
	r, err := k.Exchange(&ledger.Batch{Holder: "a", Lease: time.Minute, Peek: []*ledger.Counter{good}}, time.Now(), time.Now())
	require.NoError(t, err)
	assert.Zero(t, r.Usages[0], "nothing of them was carried out")
}
