// Package coordinator lets every call to a provider go at the first instant at
// which the provider will accept it, and refuses it with guidance where that
// instant is too far away.
//
// The state of one provider is a lane: one mutex, one timer, one order. A call
// goes at one instant, decided in one place ([queue.Queue] under the lane's
// mutex), where the breaker, the pauses and every limit are asked together and
// taken together; before it the call holds nothing. An attempt is classified once
// and limits, breaker, pause and retry all read that one Feedback. The package
// starts no goroutine.
//
// Not in it: arithmetic of limits (package limit), order (package queue), HTTP
// (packages dialect and transport), logs and metrics (package telemetry).
package coordinator

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// Config is what a Coordinator is made of. The zero value works: the providers
// of registry.Default, no hooks.
type Config struct {
	// Registry holds the providers. nil: &registry.Default.
	Registry *registry.Registry
	// Providers are declared for this coordinator alone, for wrapped calls.
	Providers []provider.Provider
	// Overrides replace the declared throttle of a provider, by slug: plans.
	Overrides map[string]provider.Throttle
	// Classify tells what an error says of a provider where the error does not
	// itself; false: it does not know. It may be called from many goroutines.
	Classify func(slug string, err error) (provider.Feedback, bool)
	// Ledger is a budget shared with other processes: a call takes of the limits that are
	// shared (see ledger.Settings) there as well. nil: this process alone. It is not
	// closed by Shutdown.
	Ledger ledger.Ledger
	// Pools cap what is in flight at once in all providers of a category together, by
	// its name, and ("") in all providers. A call that is made inside another one goes
	// under that one's slot, whichever the provider, and takes none: the two could wait
	// for each other. So calls inside calls can exceed a cap by as many.
	Pools map[string]int
	// Traces are told what happens; see Trace.
	Traces []*Trace
}

// Coordinator is the gate between a program and its providers. It is made by
// [New] and safe for concurrent use. Two coordinators share nothing.
type Coordinator struct {
	registry *registry.Registry
	mine     registry.Registry             // copies of Config.Providers, and of what is overridden
	over     map[string]*provider.Throttle // what is overridden: as declared
	classify func(slug string, err error) (provider.Feedback, bool)
	traces   traces
	pools    map[string]*pool
	ledger   ledger.Ledger // nil: none
	settings ledger.Settings
	unwatch  func()
	away     atomic.Bool   // it does not answer, as was last told to the hooks
	origin   time.Time     // of the lanes' clocks
	quiet    atomic.Int64  // until when it is not peeked at: it has not answered that; since origin
	stopped  chan struct{} // closed by Shutdown

	lanes atomic.Pointer[map[string]*lane] // read without a lock, replaced under mu

	mu   sync.Mutex
	down bool
}

// New returns a Coordinator. It reports every fault of the declarations and
// overrides in cfg at once. Lanes are made at first use, so a provider that is
// registered later is found, too.
func New(cfg Config) (*Coordinator, error) {
	c := &Coordinator{
		registry: cfg.Registry,
		classify: cfg.Classify,
		traces:   tracesOf(cfg.Traces),
		origin:   time.Now().Add(-time.Second), // so that instant 0 means "never was"
		stopped:  make(chan struct{}),
	}
	if c.registry == nil {
		c.registry = &registry.Default
	}
	c.lanes.Store(&map[string]*lane{})
	faults := c.declare(cfg.Providers)
	faults = append(faults, c.override(cfg.Overrides, cfg.Providers)...)
	if len(cfg.Pools) > 0 {
		var err error
		if c.pools, err = newPools(cfg.Pools, c.categories()); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	if cfg.Ledger != nil {
		c.ledger, c.settings = cfg.Ledger, cfg.Ledger.Settings()
		c.unwatch = cfg.Ledger.Watch(c.heard)
	}
	return c, nil
}

// declare takes copies of the providers that are declared for this coordinator. A
// registry of all finds what two of them claim.
func (c *Coordinator) declare(ps []provider.Provider) (faults []error) {
	if len(ps) == 0 {
		return nil
	}
	var all registry.Registry
	for e := range c.registry.All() {
		_ = all.Declare(e.Provider) // it is registered: nothing is wrong with it
	}
	for _, p := range ps {
		_, taken := c.registry.Lookup(p.Slug)
		_, twice := c.mine.Lookup(p.Slug)
		switch {
		case twice:
			faults = append(faults, fmt.Errorf("coordinator: provider %q is twice in Config.Providers; drop one", p.Slug))
			continue
		case taken:
			faults = append(faults, fmt.Errorf("coordinator: provider %q is in the registry, too; use Config.Overrides or Registry.Replace", p.Slug))
			continue
		}
		err := p.Validate()
		if err == nil {
			err = all.Declare(p)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("coordinator: provider %q: %w", p.Slug, err))
			continue
		}
		_ = c.mine.Declare(p)
	}
	return faults
}

// override puts plans in the place of declared throttles. Each is checked against
// the provider that it is for.
func (c *Coordinator) override(ts map[string]provider.Throttle, given []provider.Provider) (faults []error) {
	c.over = make(map[string]*provider.Throttle, len(ts))
	for _, slug := range slices.Sorted(maps.Keys(ts)) {
		e, ok := c.declared(slug)
		if i := slices.IndexFunc(given, func(p provider.Provider) bool { return p.Slug == slug }); !ok && i >= 0 {
			e.Provider, ok = provider.Provider{Slug: slug, Endpoints: given[i].Endpoints}, true // its own faults are told already
		}
		if !ok {
			err := ts[slug].Validate()
			faults = append(faults, errors.Join(fmt.Errorf("coordinator: override: %w", c.unknown(slug)), err))
			continue
		}
		declared := e.Provider.Throttle
		e.Provider = e.Provider.WithThrottle(ts[slug])
		if err := e.Provider.Validate(); err != nil {
			faults = append(faults, fmt.Errorf("coordinator: override of %q: %w", slug, err))
			continue
		}
		if err := c.mine.Replace(e.Provider); err != nil {
			_ = c.mine.Declare(e.Provider)
		}
		c.over[slug] = &declared
	}
	return faults
}

// declared finds a provider's declaration, with its override.
func (c *Coordinator) declared(slug string) (registry.Entry, bool) {
	e, ok := c.registry.Lookup(slug)
	if mine, found := c.mine.Lookup(slug); found {
		e.Provider, ok = mine.Provider, true
	}
	return e, ok
}

// unknown is the error for a slug that nobody declared; it names near ones.
func (c *Coordinator) unknown(slug string) *Error {
	near := append(c.registry.Near(slug), c.mine.Near(slug)...)
	slices.Sort(near)
	near = slices.Compact(near)
	detail := "no such provider"
	if len(near) > 0 {
		detail += "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return &Error{Provider: slug, Reason: ReasonUnknownProvider, Stage: StageEntry, detail: detail}
}

// lane returns the lane of a provider, made at first use.
func (c *Coordinator) lane(slug string) (*lane, *Error) {
	if l := (*c.lanes.Load())[slug]; l != nil {
		return l, nil
	}
	return c.newLane(slug)
}

// newLane makes a provider's lane at its first use. It is a function of its own, as
// what is big in it would be on the stack of each call that waits.
func (c *Coordinator) newLane(slug string) (*lane, *Error) {
	e, ok := c.declared(slug)
	if !ok {
		return nil, c.unknown(slug)
	}
	keys := keysOf(e.Provider, e.Adapter)
	c.mu.Lock()
	defer c.mu.Unlock()
	lanes := *c.lanes.Load()
	if l := lanes[slug]; l != nil {
		return l, nil
	}
	l, err := newLane(c, e, c.over[slug], keys)
	if err != nil {
		e := invalid(slug, err.Error())
		e.Err = err
		return nil, e
	}
	l.down = c.down
	lanes = maps.Clone(lanes)
	lanes[slug] = l
	c.lanes.Store(&lanes)
	return l, nil
}

// Providers returns the declarations in force, with overrides and updates, sorted
// by slug.
func (c *Coordinator) Providers() iter.Seq[provider.Provider] {
	return func(yield func(provider.Provider) bool) {
		for _, slug := range c.slugs() {
			e, ok := c.declared(slug)
			if l := (*c.lanes.Load())[slug]; l != nil {
				e.Provider, ok = l.provider(), true
			}
			if ok && !yield(e.Provider) {
				return
			}
		}
	}
}

// Shutdown refuses all who wait and all who come, and waits for what is in flight
// until ctx ends, whose error it returns then.
func (c *Coordinator) Shutdown(ctx context.Context) error {
	c.mu.Lock()
	if !c.down {
		c.down = true
		close(c.stopped)
		if c.unwatch != nil {
			defer c.unwatch()
		}
	}
	lanes := *c.lanes.Load()
	c.mu.Unlock()
	for _, l := range lanes {
		l.shut()
	}
	for _, l := range lanes {
		select {
		case <-l.empty():
		case <-ctx.Done():
			return fmt.Errorf("coordinator: shutdown: calls of %s are still in flight: %w", l.slug, ctx.Err())
		}
	}
	return nil
}
