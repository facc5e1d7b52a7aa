// Package ledger is one budget for many processes: the contract between a
// coordinator and a store that all of them ask, and the client that speaks for one
// process.
//
// A quota belongs to a key or an address, not to a process. Where a coordinator has a
// [Ledger], a call goes in two steps: the coordinator's own decision, then [Ledger.Take]
// for the limits that are shared, outside every lock. What is taken is held until it is
// settled ([Ledger.Settle]), exactly as in package limit, whose algorithms hold here,
// too; a process that dies holds its units until its lease is over, and they count from
// then on.
//
// A store ([Store]) does one thing: it carries out a [Batch] at one instant of its own
// clock. [Open] makes a Ledger of it: it batches, renews leases, keeps to the time
// budget, tells who watches, and starts afresh when a store has lost what it knew. Two
// stores are modules of their own: ledger/sqlite (many processes of one machine) and
// ledger/redis (many machines); ledger/memory is one for a single process. All pass the
// suite of ledger/ledgertest.
//
// Instants cross the boundary as time.Time of the caller, whose monotonic reading is
// used: clocks of different machines are never compared.
package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/headgate/headgate/provider"
)

// Ledger is one process's access to a shared budget. It is safe for concurrent use.
// Only Take, Peek, Forget and Close wait for the store; everything else is queued and
// heard with the next batch, soon.
type Ledger interface {
	// Settings are those that it was opened with, defaults filled in.
	Settings() Settings

	// Take asks for all units of a call at once: all are held afterwards, or none. It
	// returns within Settings().Budget. An error (matching ErrDown, or ctx's) means that
	// the store did not answer: nothing is held, also where it answers later.
	Take(ctx context.Context, t Take) (Grant, error)

	// Settle ends the hold of some units of a grant. A unit that is settled twice, or
	// of a grant that is not known (any more), is ignored.
	Settle(s Settlement)

	// Charge counts units that went without being asked for (At: when), or, with N below
	// 0, takes back so many of those that were charged at At, as far as they count still.
	Charge(c Charge)

	// Tell tells all processes what a provider has said.
	Tell(n News)

	// Watch has f called with each pause that is told by others, begun, extended or
	// ended, and with each change of Status; never while a method of the Ledger is
	// running on the same goroutine, and one call at a time. stop ends it.
	Watch(f func(Change)) (stop func())

	// Status is how the store is doing. It does not wait, and costs a few nanoseconds.
	Status() Status

	// Peek returns what counters stand at, in their order.
	Peek(ctx context.Context, counters []*Counter) ([]Usage, error)

	// Forget drops all that is known of a provider's counters and pauses, what is held
	// included.
	Forget(ctx context.Context, provider string) error

	// Close hands in what is queued, lets the lease of this process end, and frees what
	// the store holds. ctx bounds it. The Ledger must not be used afterwards; calls that
	// are made nevertheless fail with ErrClosed or do nothing.
	Close(ctx context.Context) error
}

// Mode is what a coordinator does while the store does not answer.
type Mode string

// The modes.
const (
	Share Mode = "share" // this process's share of each limit, by the number of processes last seen
	Deny  Mode = "deny"  // nothing that a shared limit counts goes
	Free  Mode = "open"  // each process keeps to the limits by itself
)

// Settings are what a coordinator has to know of a ledger. The zero value means the
// defaults.
type Settings struct {
	// Longer has all limits shared whose window is longer than this, besides those that
	// are declared shared: true. 0: only those.
	Longer time.Duration
	// Budget bounds the time for a decision of the store. Default 20 ms.
	Budget time.Duration
	// Mode is what happens while the store does not answer. Default Share.
	Mode Mode
	// Replicas is the number of processes to be counted with at least, under Share; where
	// it is 0 and the store has never been reached, Share denies.
	Replicas int
	// Lease is how long the units of a process that has died stay held before they
	// count as used. It is renewed three times as often. Default 15 s, at least 1 s.
	Lease time.Duration
	// Beat is how often a client asks for news where nothing else is asked, at most.
	// Default 500 ms.
	Beat time.Duration
}

// WithDefaults fills in what is missing.
func (s Settings) WithDefaults() Settings {
	if s.Budget <= 0 {
		s.Budget = 20 * time.Millisecond
	}
	if s.Mode == "" {
		s.Mode = Share
	}
	if s.Lease <= 0 {
		s.Lease = 15 * time.Second
	}
	s.Lease = max(s.Lease, time.Second)
	if s.Beat <= 0 {
		s.Beat = 500 * time.Millisecond
	}
	return s
}

// Shares tells whether a limit is kept in the ledger.
func (s Settings) Shares(l provider.Limit) bool {
	if l.Shared {
		return true
	}
	w, _ := l.Per.Duration()
	return s.Longer > 0 && w > s.Longer
}

// Units are what a call takes of one counter.
type Units struct {
	Counter *Counter
	N       int64 // above 0
}

// Take is a call that wants to go.
type Take struct {
	Provider, Endpoint, Key string  // pauses of these scopes are asked
	Units                   []Units // none: only pauses are asked
}

// Hold names units that are held, within the Ledger that granted them. 0: none.
type Hold uint64

// Grant is the answer to a Take.
type Grant struct {
	// Hold is what is held now, until it is settled; 0: refused.
	Hold Hold
	// Alone tells that it is the one call that goes after a pause, which is over; until
	// it has been settled nobody else goes in that scope. See [Settlement].
	Alone bool

	// Wait is, of a refusal, the time from now before which the call will not go; Event
	// where only an event may open it (somebody's settlement).
	Wait time.Duration
	// By is the place in Units of the counter that opens last; -1: a pause does.
	By int
	// Pause is the pause that refuses.
	Pause *Pause
	// Room is, of a grant and of a refusal, how many more units each of Units would let
	// go now. nil: not known.
	Room []int64
}

// Event is the Wait of a refusal that no time ends by itself.
const Event = time.Duration(1<<63 - 1)

// Settlement ends the hold of some units of a grant.
type Settlement struct {
	Hold Hold
	At   time.Time // from when they count: the answer, or what stands for it
	Part []Part    // of the Units of the Take; nil: all that are held still, as they were taken
	// Back: the call was never sent. What Part names (nil: everything) is given back
	// whole, as if it had never been taken.
	Back bool
	// Trial is, of a grant that was Alone, what its answer says of the pause; "" (or
	// Again): nothing, the next call goes alone. A refusal is told by a Pause of its own.
	Trial Trial
}

// Part is some of a grant's units.
type Part struct {
	Unit    int   // place in Units of the Take
	Charged int64 // how many of them count, from 0 to any number
}

// Trial is what the one call after a pause found.
type Trial string

// What a trial finds.
const (
	Opens Trial = "opens" // the pause is over for all
	Again Trial = "again" // it told nothing
)

// Charge is units that went without a grant.
type Charge struct {
	Counter *Counter
	At      time.Time
	N       int64
}

// Pause is a provider's refusal of a scope.
type Pause struct {
	Provider string
	Scope    string    // provider | endpoint | key
	Name     string    // the endpoint, or the key's alias; "" for the provider's
	Until    time.Time // nothing goes before; then one call goes alone, until one is told to have opened the scope
	Why      string    // the outcome that paused it; no secret
	Detail   string    // no secret
}

// News is one thing that a provider has said, or a user has decided. One of its fields
// is set.
type News struct {
	Pause  *Pause  // begins, or extends; a shorter one than there is changes nothing
	Resume *Pause  // the pause of that scope is over (Until is ignored); Scope "": all of the provider
	Learn  *Learnt // of one counter
}

// Learnt is what answers have said of a limit. An instant replaces the one that was
// learned before, and a size the one before; what it does not speak of stays. The zero
// value of all fields but Counter forgets both.
type Learnt struct {
	Counter   *Counter
	NotBefore time.Time // it is spent until then
	Max       int64     // its size is this, if that is lower than the declared
	Until     time.Time // of Max
}

// Change (of [Ledger.Watch]) is something that has changed. One of its fields is set.
type Change struct {
	Pause  *Pause  // begun or extended, by another process
	Resume *Pause  // ended, by another process
	Status *Status // changed
}

// Status is how the store is doing.
type Status struct {
	Up       bool      // it answers
	Since    time.Time // of Up, or of not
	Reached  bool      // it has answered once
	Replicas int       // processes that use it, this one included; 0: not known
	Rank     int       // of this one among them, from 0
	Detail   string    // of not Up: why, without a secret
}

// Usage is what a counter stands at.
type Usage struct {
	Used, Held int64     // charged and still counting; taken and not settled, by all processes
	ResetAt    time.Time // when the next unit comes back; zero: none is out
	NotBefore  time.Time // learned; zero: none
	Max        int64     // learned; 0: as declared
}

// Errors that methods of a Ledger match.
var (
	ErrDown   = errors.New("ledger: the store does not answer")
	ErrClosed = errors.New("ledger: closed")
)

// over is what is known where l is learned after old.
func (l Learnt) over(old *Learnt) Learnt {
	switch {
	case old == nil || l.NotBefore.IsZero() && l.Max <= 0:
	case l.NotBefore.IsZero():
		l.NotBefore = old.NotBefore
	case l.Max <= 0:
		l.Max, l.Until = old.Max, old.Until
	}
	return l
}
