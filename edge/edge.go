// Package edge is Headgate at the side of a service at which requests come in: a
// refusal of the core as an HTTP answer ([WriteError]), and the core's limits as a
// middleware ([New]), with the same fields on both.
//
// Not in it: who a client is and which tier he has (a function says so), limits that
// several processes share, the fields of other drafts.
package edge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// Config says what is limited. The zero value limits nothing.
//
// Limits are throttles of package provider, in Go or in YAML (provider.Parse for
// Service, [ParseTiers] for Tiers). They count requests as they arrive, whatever
// becomes of them; in_flight counts those that are being served. What says how we
// call others (excess, penalty, …) is an error here. The burst of a leaky_bucket is
// of no use here either: who may wait is said by max_wait.
type Config struct {
	// Service is what all tiers share. Its slug (default "edge") is the Provider of
	// errors and hooks, its endpoints are the routes that limits may name, its
	// throttle's limits count everybody together where they have no scope, each
	// client apart with scope key, each route apart with scope endpoint. Its max_wait
	// is that of tiers that have none, its max_queue bounds how many requests wait.
	Service provider.Provider
	// Tiers are throttles by name. Their limits count each client apart where they
	// have no scope, all clients of the tier together with scope provider. Of a tier
	// with max_wait requests wait so long at most where their turn comes in time; of
	// others they are refused at once. None: a single tier without limits.
	Tiers map[string]provider.Throttle
	// Default is the tier of clients for whom Tier names none that there is. It may be
	// left out where there is one tier.
	Default string
	// Tier says who asks: his tier, and a name for him, which hooks and State show, so
	// it is never a secret (see Fingerprint). nil, "": the default tier; the address,
	// as Address gives it. A name beyond 128 bytes is kept as its Fingerprint. It is
	// called by many goroutines at once.
	Tier func(*http.Request) (tier, client string)
	// Route says which of the service's endpoints a request is for; "": none of them.
	// nil: the one whose method (none: any) and path match, as http.ServeMux matches.
	Route func(*http.Request) string
	// Trusted are the proxies whose X-Forwarded-For is believed. None: nobody's is.
	Trusted []netip.Prefix
	// Traces are told what happens: see package tracelog.
	Traces []*coordinator.Trace
}

// Edge limits the requests of a service. It is made by [New] and safe for concurrent
// use. It remembers a client for the longest window of his limits, and no longer.
type Edge struct {
	c       *coordinator.Coordinator
	slug    string
	visits  map[visit]*passage
	routes  []string
	unnamed string // the default tier
	tier    func(*http.Request) (tier, client string)
	route   func(*http.Request) string
	trusted []netip.Prefix
}

// New returns an Edge. It reports every fault of cfg at once.
func New(cfg Config) (*Edge, error) {
	if cfg.Service.Slug == "" {
		cfg.Service.Slug = "edge"
	}
	if err := cfg.Service.Validate(); err != nil {
		return nil, fmt.Errorf("edge: service: %w", err)
	}
	p := newPlan(cfg)
	e := &Edge{slug: cfg.Service.Slug, visits: p.visits, routes: p.routes, unnamed: cfg.Default, tier: cfg.Tier, route: cfg.Route, trusted: cfg.Trusted}
	if e.unnamed == "" && len(p.tiers) == 1 {
		e.unnamed = p.tiers[0]
	}
	if !slices.Contains(p.tiers, e.unnamed) {
		p.fault("Default: there is no tier %q: it must be one of %s", e.unnamed, strings.Join(slices.Sorted(maps.Keys(cfg.Tiers)), ", "))
	}
	if e.route == nil {
		var err error
		if e.route, err = routes(cfg.Service.Endpoints); err != nil {
			p.faults = append(p.faults, err)
		}
	}
	if len(p.faults) > 0 {
		return nil, errors.Join(p.faults...)
	}
	var err error
	e.c, err = coordinator.New(coordinator.Config{Registry: new(registry.Registry), Providers: []provider.Provider{p.lane}, Traces: cfg.Traces})
	if err != nil {
		return nil, fmt.Errorf("edge: %w", err)
	}
	return e, nil
}

// routes returns a function that finds the endpoint of a request.
func routes(endpoints []provider.Endpoint) (find func(*http.Request) string, err error) {
	mux, names := http.NewServeMux(), make(map[string]string)
	for _, x := range endpoints {
		if x.Path == "" {
			continue
		}
		pattern := x.Path
		if x.Method != "" {
			pattern = x.Method + " " + pattern
		}
		if fault := handle(mux, pattern, http.NotFoundHandler()); fault != nil { // it never serves
			err = errors.Join(err, fmt.Errorf("edge: service: endpoint %q: %v", x.Name, fault))
		}
		names[pattern] = x.Name
	}
	if len(names) == 0 {
		return func(*http.Request) string { return "" }, err
	}
	return func(r *http.Request) string {
		_, pattern := mux.Handler(r)
		return names[pattern] // also of //search, which next may take for /search
	}, err
}

// handle registers a pattern. ServeMux panics at one that is wrong or meets another.
func handle(mux *http.ServeMux, pattern string, h http.Handler) (fault any) {
	defer func() { fault = recover() }()
	mux.Handle(pattern, h)
	return nil
}

// Handler returns a handler that serves by next what the limits admit, and answers
// the rest by [WriteError]. Every limit of the client, of the route and of all must
// admit a request; then all are charged, or none.
//
// What next serves tells the client's own limits before next writes: RateLimit,
// RateLimit-Policy and X-RateLimit-* (next may change them). What clients share is
// told only where it refuses: how busy the others are is nobody's business. next
// gets the very ResponseWriter, so it may flush, hijack and stream; a place in
// flight is given back when it returns.
func (e *Edge) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		pass, client := e.passage(r)
		call := coordinator.Call{Provider: e.slug, Endpoint: pass.endpoint, Key: client, Flow: client, Wait: pass.wait}
		served := false
		err := e.c.Do(r.Context(), call, func(ctx context.Context) error {
			served = true
			if ls, ok := coordinator.LeaseFrom(ctx); ok {
				pass.tell(w.Header(), ls)
			}
			next.ServeHTTP(w, r)
			return nil // whatever it wrote: it has been served
		})
		if !served {
			WriteError(w, err)
		}
	})
}

// passage finds what binds a request, and whose it is.
func (e *Edge) passage(r *http.Request) (*passage, string) {
	tier, client := "", ""
	if e.tier != nil {
		tier, client = e.tier(r)
	}
	if client == "" {
		client = Address(r, e.trusted)
	}
	if len(client) > longestClient {
		client = Fingerprint(client)
	}
	route := e.route(r)
	if pass := e.visits[visit{tier, route}]; pass != nil {
		return pass, client
	}
	if !slices.Contains(e.routes, route) {
		route = ""
	}
	if pass := e.visits[visit{tier, route}]; pass != nil {
		return pass, client
	}
	return e.visits[visit{e.unnamed, route}], client
}

// tell sets the fields of an answer: what is left of the client's own limits.
func (p *passage) tell(h http.Header, ls *coordinator.Lease) {
	if len(p.own) == 0 {
		return
	}
	now := time.Now()
	all := make([]standing, 0, len(p.own))
	for _, state := range ls.Limits() {
		if _, own := p.own[state.Name]; own {
			one := standingOf(state, now)
			one.remaining = state.Left // of a bucket: of its burst
			all = append(all, one)
		}
	}
	policy := p.policy
	if p.sized {
		policy = ""
	}
	setLimits(h, all, policy)
}

// State is how the limits stand, the requests in flight and what was refused: as a
// provider's, whose endpoints are "tier/route" and whose keys are clients.
func (e *Edge) State() (coordinator.State, error) { return e.c.State(e.slug) }

// Coordinator is what holds the limits, to be observed like any other: by package
// telemetry, say.
func (e *Edge) Coordinator() *coordinator.Coordinator { return e.c }

// Shutdown refuses who waits and who comes, and waits for those that are being served
// until ctx ends, whose error it returns then.
func (e *Edge) Shutdown(ctx context.Context) error { return e.c.Shutdown(ctx) }
