package ledger

import (
	"net/url"
	"strings"
	"sync"

	"github.com/headgate/headgate/provider"
)

// Counter is one counter of the budget: a limit, of one key or endpoint where its scope
// says so. All processes whose counters have one ID share it. It is made by NewCounter,
// never changed, and compared by its address within a process; a limit whose numbers
// change is a new Counter with the same ID, and keeps what it has counted.
type Counter struct {
	provider, endpoint, key string
	limit                   provider.Limit
	id                      string

	once sync.Once
	made any
}

// NewCounter makes the counter of a limit of a provider, as Throttle.Expand returns
// limits, of an endpoint and a key's alias: both are ignored unless the limit's scope
// names them; a key's own size (Limit.Keys) is put in force.
func NewCounter(slug string, l provider.Limit, endpoint, key string) *Counter {
	switch l.Scope {
	case provider.ScopeKey:
		endpoint = ""
	case provider.ScopeEndpoint:
		key = ""
	case provider.ScopeKeyEndpoint:
	default:
		endpoint, key = "", ""
	}
	c := &Counter{provider: slug, endpoint: endpoint, key: key, limit: l.OfKey(key).WithDefaults()}
	parts := []string{slug, l.Name, endpoint, key}
	for i, p := range parts {
		parts[i] = url.QueryEscape(p)
	}
	c.id = strings.Join(parts, "/")
	return c
}

// ID names the counter: the same in every process that declares the same provider and
// limit. It is printable ASCII without spaces, and holds no key but its alias.
func (c *Counter) ID() string { return c.id }

// Provider is the slug.
func (c *Counter) Provider() string { return c.provider }

// Limit is what is counted, as declared in this process, with its defaults.
func (c *Counter) Limit() provider.Limit { return c.limit }

// Prepared returns what mk made at the first call: a store keeps there what it needs
// to read the limit only once. All calls must come from one store.
func (c *Counter) Prepared(mk func() any) any {
	c.once.Do(func() { c.made = mk() })
	return c.made
}
