// Package registry maps names to declarations and adapters. It holds inert
// descriptions; live state belongs to a Coordinator.
package registry

import (
	"iter"
	"sync"

	"github.com/headgate/headgate/provider"
)

// Registry is a set of providers by slug. The zero value is empty and ready. It
// is safe for concurrent use.
type Registry struct{ mu sync.RWMutex }

// Entry is one registered provider; Adapter is nil where only declared.
type Entry struct {
	Provider provider.Provider
	Adapter  provider.Adapter
}

// Default is the registry of adapters that register themselves from init.
var Default Registry

// Register adds a to Default and panics on an error, as database/sql does.
func Register(a provider.Adapter) {}

// Register adds an adapter under its declaration's slug.
func (r *Registry) Register(a provider.Adapter) error { return nil }

// Declare adds a declaration without an adapter, for wrapped calls.
func (r *Registry) Declare(p provider.Provider) error { return nil }

// Replace puts p in the place of the declaration of the same slug and keeps its
// adapter. Lanes that are already running keep theirs.
func (r *Registry) Replace(p provider.Provider) error { return nil }

// Lookup finds an entry.
func (r *Registry) Lookup(slug string) (Entry, bool) { return Entry{}, false }

// All returns the entries, sorted by slug.
func (r *Registry) All() iter.Seq[Entry] { return func(func(Entry) bool) {} }
