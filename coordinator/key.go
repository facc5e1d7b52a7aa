package coordinator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/queue"
)

// A provider with several keys is a pool of them: a call that pins none may go with
// any. It waits at all of its options at once, under one place in the order of
// arrival, and leaves all when one goes; which one is decided with everything else,
// at the instant of going.

// option is one key that a call may go with.
type option struct {
	queue.Waiter
	route *route
}

// keyring is implemented by adapters that know which of their keys can be used.
type keyring interface {
	// Keys returns the aliases of the keys that are there.
	Keys() []string
}

// keysOf is the pool of keys of a provider: those that its adapter has, else those
// that it declares; nil where that is not more than one. It calls the adapter: no
// lock may be held.
func keysOf(p provider.Provider, a provider.Adapter) []string {
	keys := p.Auth.Env
	if ring, ok := a.(keyring); ok && len(keys) > 1 {
		keys = ring.Keys()
	}
	if len(p.Auth.Env) < 2 || len(keys) == 0 {
		return nil
	}
	return slices.Clone(keys)
}

// pooled tells that a call may go with any of several keys.
func (l *lane) pooled(c *Call) bool { return len(l.keys) > 0 && c.Key == "" }

// options are the keys that a call may go with, each with what it would take there;
// those that took the last calls come last, so that all are used alike. What is too
// heavy for a key's limits is none; heavy is such a limit.
func (l *lane) options(ls *Lease, endpoint string) (all []*option, heavy *limitGate) {
	for i := range l.keys {
		key := l.keys[(l.turn+i)%len(l.keys)]
		o := &option{route: l.route(endpoint, key)}
		o.Cost = l.costFor(ls, o.route)
		if g := o.route.tooHeavy(o.Cost); g != nil {
			heavy = g
			continue
		}
		all = append(all, o)
	}
	return all, heavy
}

// enterPool is enter for a call that may go with any of several keys.
func (l *lane) enterPool(w *walk, ls *Lease) *Error {
	all, heavy := l.options(ls, w.call.Endpoint)
	if len(all) == 0 {
		return l.tooHeavy(ls, heavy)
	}
	flow := ls.flowOf()
	for _, o := range all {
		if l.q.Blocked(l.now.Mono, &o.route.Route, flow, o.Cost) == nil {
			ls.route, ls.wait.Cost = o.route, o.Cost
			l.take(ls)
			l.q.Went(&ls.route.Route, flow, o.Cost)
			l.admitted(ls)
			return nil
		}
	}
	ls.rarely().options = all
	opens, by := l.opensFor(ls, all)
	if by == nil {
		by = l.q.Blocked(l.now.Mono, &all[0].route.Route, flow, all[0].Cost)
	}
	return l.wait(w, ls, opens, by)
}

// used turns the pool, so that the next call tries another key first.
func (l *lane) used(key string) {
	if i := slices.Index(l.keys, key); i >= 0 {
		l.turn = i + 1
	}
}

// opensFor is when a call could go, with whichever of all it may (none: on its own
// route), and the gate which says so.
func (l *lane) opensFor(ls *Lease, all []*option) (at time.Duration, by *queue.Gate) {
	if len(all) == 0 {
		return l.opens(ls.route, ls.wait.Cost, nil)
	}
	for i, o := range all {
		t, g := l.opens(o.route, o.Cost, nil)
		if i == 0 || t < at {
			at, by = t, g
		}
	}
	return at, by
}

// opensAgain is opensFor for a further attempt of a call: behind nobody.
func (l *lane) opensAgain(w *walk, ls *Lease) (at time.Duration, by *queue.Gate) {
	if !l.pooled(&w.call) {
		return l.opens(ls.route, ls.wait.Cost, nil)
	}
	all, _ := l.options(ls, w.call.Endpoint)
	return l.opensFor(ls, all)
}

// otherKey tells that an answer says something of one key alone, and that the call
// may go with another: it was refused before anything was done. A call finds each
// key dead once at most. It is no retry of what failed, so no budget bounds it.
func (l *lane) otherKey(w *walk, ls *Lease) bool {
	if !l.pooled(&w.call) || w.failed != nil && w.failed.keysTried >= len(l.keys)-1 {
		return false
	}
	switch f := w.answer(); f.Outcome {
	case provider.Unauthorized:
	case provider.Banned:
		if l.bannedScope(&f) != provider.ScopeKey {
			return false
		}
	case provider.QuotaSpent:
		if g := l.spentLimit(ls.route, &f); g != nil && g.key == "" {
			return false // all keys share it
		}
	default:
		return false
	}
	return true
}

// bannedScope is what a ban closes: of several keys the one that was banned, unless
// the dialect says otherwise.
func (l *lane) bannedScope(f *provider.Feedback) string {
	if f.Scope == "" && len(l.keys) > 0 {
		return provider.ScopeKey
	}
	return f.Scope
}

// checkKey finds what is wrong with a pinned key: where there is a pool it must be
// one of it.
func (l *lane) checkKey(alias string) (detail string) {
	if alias == "" || len(l.p.Auth.Env) < 2 || slices.Contains(l.keys, alias) {
		return ""
	}
	if slices.Contains(l.p.Auth.Env, alias) {
		return fmt.Sprintf("key %s is not there: its variable is empty", alias)
	}
	// The alias is not shown: it may be the key itself, put there by mistake.
	return "no such key; declared are " + strings.Join(l.p.Auth.Env, ", ")
}

// line puts a call into the queue, at each of its options.
func (l *lane) line(ls *Lease) {
	flow, all := ls.flowOf(), ls.options()
	if len(all) == 0 {
		ls.wait.Owner = ls
		ls.route.waits(1)
		l.q.Enter(l.now.Mono, &ls.wait, &ls.route.Route, flow)
		return
	}
	l.extra += len(all) - 1
	for _, o := range all {
		o.Owner, o.Deadline = ls, ls.wait.Deadline
		o.Keep(ls.wait.Place())
		o.route.waits(1)
		l.q.Enter(l.now.Mono, &o.Waiter, &o.route.Route, flow)
	}
}

// unline takes a call out of the queue, at all of its options. went is the one that
// it goes with, which has left already; nil: it does not go.
func (l *lane) unline(ls *Lease, went *queue.Waiter) {
	all := ls.options()
	if len(all) == 0 {
		if went == nil { // else it has left already
			l.q.Leave(&ls.wait)
		}
		ls.route.waits(-1)
		return
	}
	l.extra -= len(all) - 1
	for _, o := range all {
		o.route.waits(-1)
		if &o.Waiter == went {
			ls.route, ls.wait.Cost = o.route, o.Cost
			continue
		}
		l.q.Leave(&o.Waiter)
	}
	ls.rare.options = nil
}

// waiting is how many calls wait.
func (l *lane) waiting() int { return l.q.Len() - l.extra }

// waiters are the calls that wait, in order of arrival.
func (l *lane) waiters() []*Lease { return leasesOf(l.q.All()) }

// leasesOf are the calls that waiters stand for, each once, in order of arrival.
func leasesOf(all []*queue.Waiter) []*Lease {
	leases := make([]*Lease, len(all))
	for i, w := range all {
		leases[i] = w.Owner.(*Lease)
	}
	slices.SortFunc(leases, func(a, b *Lease) int { return cmp.Compare(a.wait.Place(), b.wait.Place()) })
	return slices.Compact(leases)
}
