package ledgertest

import (
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
)

// process is one holder: what a client says, said by hand.
type process struct {
	*rig
	store ledger.Store
	name  string
	lease time.Duration
	seq   uint64
	hold  ledger.Hold // the last name given to one
	epoch string
	known uint64 // version

	began, ended time.Duration // of the last exchange, on the machine's clock since the play's start

	counters map[*shared]*ledger.Counter
}

// longLease is a lease that ends in no play.
const longLease = 2000 * time.Hour

// process starts a holder with a connection of its own.
func (r *rig) process(name string) *process {
	r.t.Helper()
	s := r.b.Store(r.t)
	r.t.Cleanup(func() { require.NoError(r.t, s.Close()) })
	return &process{rig: r, store: s, name: name, lease: longLease, counters: map[*shared]*ledger.Counter{}}
}

// of is the process's own counter of a limit.
func (p *process) of(s *shared) *ledger.Counter {
	if p.counters[s] == nil {
		p.counters[s] = ledger.NewCounter(s.slug, s.limit, s.endpoint, s.key)
	}
	return p.counters[s]
}

// say carries out a batch as the process's next one.
func (p *process) say(b ledger.Batch) *ledger.Reply {
	p.t.Helper()
	p.seq++
	return p.again(b)
}

// again carries out a batch under the number of the last one.
func (p *process) again(b ledger.Batch) *ledger.Reply {
	p.t.Helper()
	b.Epoch = p.epoch
	r := p.exchange(b)
	if p.epoch != "" {
		require.Equal(p.t, p.epoch, r.Epoch, "the state has been lost")
	}
	require.Len(p.t, r.Grants, len(b.Takes), "as many answers as were asked")
	require.Len(p.t, r.Usages, len(b.Peek), "as many usages as were asked")
	p.epoch, p.known = r.Epoch, r.Version
	return r
}

// exchange carries out a batch whatever state the process knows.
func (p *process) exchange(b ledger.Batch) *ledger.Reply {
	p.t.Helper()
	b.Holder, b.Seq, b.Lease, b.Known = p.name, p.seq, p.lease, p.known
	p.began = time.Since(p.start)
	r, err := p.store.Exchange(p.t.Context(), &b)
	p.ended = time.Since(p.start)
	require.NoError(p.t, err)
	p.onTime()
	require.NotEmpty(p.t, r.Epoch, "a state has a name")
	return r
}

// ask makes a Take of costs; its scopes are those of the first.
func (p *process) ask(costs ...cost) ledger.Take {
	t := ledger.Take{Provider: costs[0].of.slug, Endpoint: costs[0].of.endpoint, Key: costs[0].of.key}
	for _, c := range costs {
		t.Units = append(t.Units, ledger.Units{Counter: p.of(c.of), N: c.n})
	}
	return t
}

// asked names a Take's hold.
func (p *process) asked(t ledger.Take) ledger.Asked {
	p.hold++
	return ledger.Asked{Hold: p.hold, Take: t}
}

// take asks for all of the costs.
func (p *process) take(costs ...cost) answer {
	p.t.Helper()
	return p.try(p.ask(costs...))
}

func (p *process) try(t ledger.Take) answer {
	p.t.Helper()
	return p.tryAll(t)[0]
}

// tryAll asks for several takes in one batch.
func (p *process) tryAll(takes ...ledger.Take) []answer {
	p.t.Helper()
	var b ledger.Batch
	for _, t := range takes {
		b.Takes = append(b.Takes, p.asked(t))
	}
	return p.answers(b, p.say(b))
}

func (p *process) answers(b ledger.Batch, r *ledger.Reply) (all []answer) {
	p.t.Helper()
	for i, g := range r.Grants {
		if g.Hold != 0 {
			require.Equal(p.t, b.Takes[i].Hold, g.Hold, "a hold has the name that was asked for")
		} else {
			require.Positive(p.t, g.Wait, "a refusal says how long")
		}
		if g.Room != nil {
			require.Len(p.t, g.Room, len(b.Takes[i].Take.Units), "room for each of the units")
		}
		all = append(all, answer{p, b.Takes[i].Take, g})
	}
	return all
}

// settle ends holds as they were taken, now.
func (p *process) settle(holds ...ledger.Hold) {
	p.t.Helper()
	var b ledger.Batch
	for _, h := range holds {
		b.Settlements = append(b.Settlements, ledger.Settlement{Hold: h, At: p.at(p.now)})
	}
	p.say(b)
}

// settled ends a hold in some way.
func (p *process) settled(s ledger.Settlement) {
	p.t.Helper()
	if s.At.IsZero() {
		s.At = p.at(p.now)
	}
	p.say(ledger.Batch{Settlements: []ledger.Settlement{s}})
}

// went takes units and settles them at once.
func (p *process) went(costs ...cost) {
	p.t.Helper()
	p.settle(p.take(costs...).granted())
}

// charge counts units that went at an instant of the play.
func (p *process) charge(s *shared, at time.Duration, n int64) {
	p.t.Helper()
	p.say(ledger.Batch{Charges: []ledger.Charge{{Counter: p.of(s), At: p.at(at), N: n}}})
}

func (p *process) tell(n ledger.News) {
	p.t.Helper()
	p.say(ledger.Batch{News: []ledger.News{n}})
}

func (p *process) peek(s *shared) ledger.Usage {
	p.t.Helper()
	return p.say(ledger.Batch{Peek: []*ledger.Counter{p.of(s)}}).Usages[0]
}
