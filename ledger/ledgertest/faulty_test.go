package ledgertest_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/ledgertest"
	"github.com/headgate/headgate/ledger/memory"
	"github.com/headgate/headgate/provider"
)

// on is a minute's budget of ten with a disturbed way to it, in virtual time. say charges
// one unit; stands asks another way what there is.
type on struct {
	t       *testing.T
	way     *ledgertest.Faulty
	counter *ledger.Counter
	seq     uint64
}

func disturbed(t *testing.T, f func(t *testing.T, s *on)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		l := provider.Limit{Name: "calls", Max: 10, Per: "1m"}
		f(t, &on{t: t, way: &ledgertest.Faulty{Store: memory.New()}, counter: ledger.NewCounter("acme", l, "", "")})
	})
}

func (s *on) say(ctx context.Context) error {
	s.seq++
	_, err := s.way.Exchange(ctx, &ledger.Batch{
		Holder: "a", Seq: s.seq, Lease: time.Hour, Charges: []ledger.Charge{{Counter: s.counter, At: time.Now(), N: 1}},
	})
	return err
}

func (s *on) peek(way ledger.Store) ledger.Usage {
	r, err := way.Exchange(s.t.Context(), &ledger.Batch{Holder: "b", Seq: 1, Lease: time.Hour, Peek: []*ledger.Counter{s.counter}})
	require.NoError(s.t, err)
	return r.Usages[0]
}

func (s *on) stands(used int64, stats ledgertest.Stats) {
	s.t.Helper()
	assert.Equal(s.t, used, s.peek(s.way.Store).Used)
	assert.Equal(s.t, stats, s.way.Stats())
}

func TestFaultyWithoutFault(t *testing.T) {
	disturbed(t, func(t *testing.T, s *on) {
		require.NoError(t, s.say(t.Context()))
		s.stands(1, ledgertest.Stats{Said: 1, Carried: 1})
		require.NoError(t, s.way.Close())
	})
}

func TestFaultyCut(t *testing.T) {
	disturbed(t, func(t *testing.T, s *on) {
		s.way.Set(ledgertest.Fault{Cut: true})
		require.ErrorIs(t, s.say(t.Context()), ledgertest.ErrCut)
		s.stands(0, ledgertest.Stats{Said: 1})
		s.way.Set(ledgertest.Fault{})
		require.NoError(t, s.say(t.Context()))
		s.stands(1, ledgertest.Stats{Said: 2, Carried: 1})
	})
}

func TestFaultyDeaf(t *testing.T) {
	disturbed(t, func(t *testing.T, s *on) {
		s.way.Set(ledgertest.Fault{Deaf: true})
		require.ErrorIs(t, s.say(t.Context()), ledgertest.ErrCut)
		s.stands(1, ledgertest.Stats{Said: 1, Carried: 1, Lost: 1})
	})
}

func TestFaultyHang(t *testing.T) {
	disturbed(t, func(t *testing.T, s *on) {
		s.way.Set(ledgertest.Fault{Hang: true})
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		require.ErrorIs(t, s.say(ctx), context.DeadlineExceeded)
		require.Equal(t, time.Minute, time.Since(began))
		s.stands(0, ledgertest.Stats{Said: 1})
	})
}

func TestFaultyDelays(t *testing.T) {
	disturbed(t, func(t *testing.T, s *on) {
		s.way.Set(ledgertest.Fault{There: 2 * time.Second, Back: 3 * time.Second})
		began := time.Now()
		require.NoError(t, s.say(t.Context()))
		require.Equal(t, 5*time.Second, time.Since(began))
		s.stands(1, ledgertest.Stats{Said: 1, Carried: 1})

		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		require.ErrorIs(t, s.say(ctx), context.DeadlineExceeded)
		s.stands(1, ledgertest.Stats{Said: 2, Carried: 1})

		ctx, cancel = context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		require.ErrorIs(t, s.say(ctx), context.DeadlineExceeded) // it has been carried out
		s.stands(2, ledgertest.Stats{Said: 3, Carried: 2, Lost: 1})
	})
}

// A process whose clock is ahead tells instants that are too late for the others, and
// hears its own back as it meant them.
func TestFaultySkew(t *testing.T) {
	const skew = 10 * time.Second
	disturbed(t, func(t *testing.T, s *on) {
		time.Sleep(time.Hour)
		begun, until := time.Now(), time.Now().Add(time.Minute)
		s.way.Set(ledgertest.Fault{Skew: -skew})
		held := ledger.Take{Provider: "acme", Units: []ledger.Units{{Counter: s.counter, N: 1}}}
		b := &ledger.Batch{
			Holder: "a", Seq: 1, Lease: time.Hour,
			Holds:       []ledger.Held{{Hold: 1, At: begun, Take: held}, {Hold: 2, At: begun, Take: held}},
			Charges:     []ledger.Charge{{Counter: s.counter, At: begun, N: 1}},
			Settlements: []ledger.Settlement{{Hold: 1, At: begun}},
			News: []ledger.News{
				{Pause: &ledger.Pause{Provider: "acme", Scope: "provider", Until: until}},
				{Learn: &ledger.Learnt{Counter: s.counter, NotBefore: until}},
				{Resume: &ledger.Pause{Provider: "other"}},
			},
			Takes: []ledger.Asked{{Hold: 3, Take: held}},
		}
		r, err := s.way.Exchange(t.Context(), b)
		require.NoError(t, err)
		assert.Equal(t, time.Minute-skew, r.Grants[0].Wait)
		assert.True(t, until.Equal(r.Grants[0].Pause.Until), "as it meant it")
		assert.True(t, until.Equal(r.Pauses[0].Until))
		assert.True(t, until.Equal(b.News[0].Pause.Until), "the batch stays as it was")
		assert.True(t, begun.Equal(b.Charges[0].At))
		u := s.peek(s.way.Store)
		assert.EqualValues(t, 2, u.Used)
		assert.Equal(t, begun.Add(time.Minute+1-skew), u.ResetAt)
		assert.Equal(t, until.Add(-skew), u.NotBefore)
		mine := s.peek(s.way)
		assert.Equal(t, begun.Add(time.Minute+1), mine.ResetAt)
		assert.Equal(t, until, mine.NotBefore)
	})
}
