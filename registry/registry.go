// Package registry maps names to declarations and adapters. It holds inert
// descriptions: importing an adapter or registering it starts nothing, and what
// a caller changes in his values afterwards changes nothing here.
//
// Not in it: live state (counts, queues, pauses), which belongs to a
// Coordinator; two coordinators on one registry share only its descriptions.
package registry

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/headgate/headgate/provider"
)

// Registry is a set of providers by slug. The zero value is empty and ready. It
// is safe for concurrent use and must not be copied after first use.
type Registry struct {
	mu      sync.RWMutex
	entries map[string]entry
	places  map[string]string // hosts and base URLs, each to the slug that claims it
}

// Entry is one registered provider; Adapter is nil where only declared. Its
// Provider is the caller's own copy.
type Entry struct {
	Provider provider.Provider
	Adapter  provider.Adapter
}

type entry struct {
	Entry
	source string // who registered it, and where in his code
}

// Default is the registry of adapters that register themselves from init.
var Default Registry

// Register adds a to [Default] and panics on an error, as database/sql does: an
// adapter that registers itself from init has nobody to return an error to.
func Register(a provider.Adapter) {
	if err := Default.register(a, caller()); err != nil {
		panic(err)
	}
}

// Register adds an adapter under its declaration's slug. It asks a.Provider()
// once, with no lock held. It is an error, and changes nothing, if a is nil, if
// its Provider panics, if the declaration is not valid, or if its slug, one of
// its hosts or its base URL is taken: then the error names both sides.
func (r *Registry) Register(a provider.Adapter) error {
	return r.register(a, caller())
}

func (r *Registry) register(a provider.Adapter, source string) error {
	if a == nil {
		return fmt.Errorf("registry: %s registers a nil adapter", source)
	}
	p, err := ask(a)
	if err != nil {
		return fmt.Errorf("registry: %s: %w", source, err)
	}
	return r.add(p, a, source)
}

// ask is a foreign call: a panic in it must not take a program down that can do
// without this adapter. What was thrown may hold a secret; only its type is told.
func ask(a provider.Adapter) (p provider.Provider, err error) {
	defer func() {
		if thrown := recover(); thrown != nil {
			err = fmt.Errorf("adapter %T: its Provider() panicked with a %T", a, thrown)
		}
	}()
	return a.Provider(), nil
}

// Declare adds a declaration without an adapter, for wrapped calls. Its errors
// are those of [Registry.Register].
func (r *Registry) Declare(p provider.Provider) error {
	return r.add(p, nil, caller())
}

func (r *Registry) add(p provider.Provider, a provider.Adapter, source string) error {
	if err := validate(p, source); err != nil {
		return err
	}
	p = p.Clone()
	r.mu.Lock()
	defer r.mu.Unlock()
	if old, taken := r.entries[p.Slug]; taken {
		return fmt.Errorf("registry: provider %q is registered twice: by %s and by %s; drop one, or use Replace for an override",
			p.Slug, old.source, source)
	}
	if err := r.freeLocked(p, source); err != nil {
		return err
	}
	r.putLocked(entry{Entry: Entry{Provider: p, Adapter: a}, source: source})
	return nil
}

// Replace puts p in the place of the declaration of the same slug and keeps its
// adapter. Lanes that are already running keep the declaration that they have.
// It is an error, and changes nothing, if p is not valid, if no provider has its
// slug (the error names near ones), or if another provider has one of its hosts
// or its base URL.
func (r *Registry) Replace(p provider.Provider) error {
	source := caller()
	if err := validate(p, source); err != nil {
		return err
	}
	p = p.Clone()
	r.mu.Lock()
	defer r.mu.Unlock()
	old, known := r.entries[p.Slug]
	if !known {
		return fmt.Errorf("registry: %s replaces provider %q, which is not registered%s", source, p.Slug, didYouMean(nearest(p.Slug, maps.Keys(r.entries))))
	}
	if err := r.freeLocked(p, source); err != nil {
		return err
	}
	for _, place := range places(old.Provider) {
		delete(r.places, place)
	}
	old.Provider = p
	r.putLocked(old)
	return nil
}

func validate(p provider.Provider, source string) error {
	if err := p.Validate(); err != nil {
		return fmt.Errorf("registry: provider %q of %s: %w", p.Slug, source, err)
	}
	return nil
}

func didYouMean(near []string) string {
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near, ", ") + "?"
}

// freeLocked tells whether no other provider claims a place of p's.
func (r *Registry) freeLocked(p provider.Provider, source string) error {
	var faults []error
	for _, place := range places(p) {
		if slug, taken := r.places[place]; taken && slug != p.Slug {
			faults = append(faults, fmt.Errorf("registry: %s is claimed by two providers: %q of %s and %q of %s",
				place, slug, r.entries[slug].source, p.Slug, source))
		}
	}
	return errors.Join(faults...)
}

func (r *Registry) putLocked(e entry) {
	if r.entries == nil {
		r.entries, r.places = make(map[string]entry), make(map[string]string)
	}
	r.entries[e.Provider.Slug] = e
	for _, place := range places(e.Provider) {
		r.places[place] = e.Provider.Slug
	}
}

// Lookup finds the entry of a slug.
func (r *Registry) Lookup(slug string) (Entry, bool) {
	r.mu.RLock()
	e, ok := r.entries[slug]
	r.mu.RUnlock()
	e.Provider = e.Provider.Clone()
	return e.Entry, ok
}

// All returns the entries, sorted by slug, as they are when the loop begins. The
// loop may use the registry.
func (r *Registry) All() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for _, e := range r.sorted() {
			e.Provider = e.Provider.Clone()
			if !yield(e) {
				return
			}
		}
	}
}

func (r *Registry) sorted() []Entry {
	r.mu.RLock()
	all := make([]Entry, 0, len(r.entries))
	for _, e := range r.entries {
		all = append(all, e.Entry)
	}
	r.mu.RUnlock()
	slices.SortFunc(all, func(a, b Entry) int { return cmp.Compare(a.Provider.Slug, b.Provider.Slug) })
	return all
}
