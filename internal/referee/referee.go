// Package referee plays third-party providers and judges their callers: a real
// net/http server that enforces every declared limit exactly at the instant at
// which a call arrives, and counts every violation. It is for tests and demos.
//
// Its code is its own and as plain as it can be (logs of arrivals, counts of
// windows, big integers), so that it can be the judge of package limit, which it
// never imports. It believes no caller: it sees arrivals only.
//
// Counters of keys and endpoints live as long as the Referee: it is not made for
// millions of keys.
//
// Not in it: how a caller spaces, queues or retries its calls; the bad_answers
// budget, which is the caller's own protection; what a dialect's reader makes of an
// answer: Play.Speak writes a declared dialect by code of its own, and a test
// writes any other answer with Play.Answer and Play.Refuse.
package referee

import (
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/provider"
)

// Delay is a duration drawn evenly from [Min, Max]. The zero value is no delay.
type Delay struct{ Min, Max time.Duration }

// Play is one provider as the referee plays it. Only Provider is required; it is
// read once, by New.
type Play struct {
	Provider provider.Provider

	// Limits are enforced; nil: what Provider.Throttle.Expand returns.
	Limits []provider.Limit
	// Go and Back are the network's delay of a request and of its answer. A request
	// that its client gives up while it is under way arrives all the same.
	Go, Back Delay
	// Closed makes windows closed, [x, x+W]: calls exactly W apart share one.
	// sliding_window_counter and token_bucket have no such edge and ignore it.
	Closed bool
	// Phase shifts the windows of a fixed_window with a duration from their
	// alignment to the Unix epoch.
	Phase time.Duration
	// RefusedCounts makes a refused call count like an admitted one, except in
	// flight. A token bucket goes into debt by it.
	RefusedCounts bool
	// Refuse is what a call gets that breaks a limit. Status 0 is 429; a nil Header
	// gets a Retry-After, in whole seconds rounded up, for the instant at which the
	// same call would be admitted if none came before (none where that is never);
	// an empty Body is a small JSON object.
	Refuse Answer
	// Speak makes answers in the dialect that the provider declares. A refusal is
	// what its signals have for the broken limit, in turn where several fit alike,
	// and a 429 where none does; the wait is told where and as the dialect says, else
	// in Retry-After. Each answer tells the declared budgets from the counters of the
	// limits of their names; where none is declared, X-RateLimit-Limit, -Remaining
	// and -Reset tell the limit of which the least is left (neither they nor
	// Retry-After with Only). An admitted call's default body is one that no signal
	// takes for anything but data; of an endpoint with pages, two pages with one item
	// each and one with none. What the referee cannot say is an error of New. Refuse
	// must be zero then.
	Speak bool
	// Answer answers admitted calls; nil, and zero fields: 200 with a small JSON
	// object. It is called with no lock held, by many goroutines at once.
	Answer func(Arrival) Answer
	// Key tells whose key a request carries; nil: as Provider.Auth says, else the
	// header X-Api-Key, else the query parameter key, else "".
	Key func(*http.Request) string
	// Cost tells what a request costs, by unit; nil: its headers X-Cost-<unit>.
	// What it leaves out is the endpoint's declared cost, else one request.
	Cost func(*http.Request) map[string]int64
}

// Arrival is one call at the instant at which it arrived.
type Arrival struct {
	Provider, Endpoint, Key string           // Endpoint: "" where none declared matches
	Cost                    map[string]int64 // by unit, complete; shared, not to be changed
	At                      time.Time
	N                       int           // the n-th arrival at this provider, from 1
	Request                 *http.Request // nil for Arrive and Enter; a body up to 1 MiB can be read
}

// Answer is what a call gets. The zero value is the default that its user names.
type Answer struct {
	Status int
	Header http.Header
	Body   string
	// Outcome is what limits with charges take the answer for; empty: by Status.
	Outcome provider.Outcome
	// Hang never answers: the call ends when its client goes or the referee closes.
	Hang bool
	// Drop closes the connection without a byte of an answer. Note that net/http's
	// Transport silently sends a GET again if that was a kept connection: the
	// referee sees, rightly, two arrivals.
	Drop bool
	// Delay is the provider's work, between arrival and answer (or drop).
	Delay time.Duration
}

// Referee plays any number of providers. Make one with New; inside a synctest
// bubble make and close it there. All methods are safe for concurrent use.
type Referee struct {
	judges map[string]*judge
	server *http.Server
	begun  time.Time
	closed chan struct{}

	mu       sync.Mutex
	rng      *rand.Rand
	over     bool
	running  sync.WaitGroup // handlers and Serve loops; added to only while !over
	listener net.Listener   // the first that was served
	client   *http.Client
}

// New returns a referee that plays the given providers. Delays are drawn from one
// generator seeded with seed. An error names the provider and its fault: an
// invalid limit, an impossible delay, a slug that comes twice.
func New(seed uint64, plays ...Play) (*Referee, error) {
	r := &Referee{
		judges: make(map[string]*judge, len(plays)),
		rng:    rand.New(rand.NewPCG(seed, 0)),
		begun:  time.Now(),
		closed: make(chan struct{}),
	}
	r.server = &http.Server{Handler: r}
	var faults []error
	for _, p := range plays {
		j, err := newJudge(p, r.now)
		if err == nil && r.judges[j.slug] != nil {
			err = errors.New("slug: is played twice, would have to be unique")
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("referee: provider %q: %w", p.Provider.Slug, err))
			continue
		}
		r.judges[j.slug] = j
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return r, nil
}

// now is the wall clock of New plus what the monotonic clock has counted since:
// a judge's clock must not step.
func (r *Referee) now() time.Time { return r.begun.Add(time.Since(r.begun)) }

// Serve serves l, on a goroutine of its own, until Close, which closes l too. It
// returns at once. A referee may serve several listeners; URL and Client speak of
// the first.
func (r *Referee) Serve(l net.Listener) {
	if !r.enter() {
		l.Close()
		return
	}
	r.mu.Lock()
	if r.listener == nil {
		r.listener = l
	}
	r.mu.Unlock()
	go func() {
		defer r.running.Done()
		_ = r.server.Serve(l) // ends by Close; its error says no more than that
	}()
}

// URL returns the base URL of a provider, without a slash at its end. It panics
// before Serve and for a provider that is not played.
func (r *Referee) URL(slug string) string {
	r.judge(slug)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener == nil {
		panic("referee: URL before Serve")
	}
	return "http://" + r.listener.Addr().String() + "/" + slug
}

// Client returns an HTTP client for the URLs of this referee, always the same
// one. It keeps its connections, however many, until Close. It panics before
// Serve.
func (r *Referee) Client() *http.Client {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener == nil {
		panic("referee: Client before Serve")
	}
	if r.client == nil {
		t := &http.Transport{MaxIdleConnsPerHost: 1 << 20, DisableCompression: true}
		if p, ok := r.listener.(*PipeListener); ok {
			t.DialContext = p.DialContext
		}
		r.client = &http.Client{Transport: t}
	}
	return r.client
}

// Close ends everything: listeners and connections are closed, calls that hang or
// are delayed end without an answer, and it waits for all of them. Reports can
// still be read. Idempotent; not to be called by Play.Answer.
func (r *Referee) Close() {
	r.mu.Lock()
	if !r.over {
		r.over = true
		close(r.closed)
	}
	client := r.client
	r.mu.Unlock()
	r.server.Close()
	r.running.Wait()
	if client != nil {
		client.CloseIdleConnections()
	}
}

// Arrive judges one call as if it arrived now and was answered ok at once,
// without HTTP. It tells whether the call was admitted. Cost is completed as that
// of a request. It panics for a provider, or a declared endpoint's name, that does
// not exist, and for a cost below 0.
func (r *Referee) Arrive(slug, endpoint, key string, cost map[string]int64) bool {
	leave, ok := r.Enter(slug, endpoint, key, cost)
	leave(provider.OK)
	return ok
}

// Enter is Arrive for calls that take their time: the call is in flight until
// leave is called, which also tells limits with charges what the answer was;
// provider.Canceled: there was none, which is charged. leave is never nil; only
// its first call counts.
func (r *Referee) Enter(slug, endpoint, key string, cost map[string]int64) (leave func(provider.Outcome), ok bool) {
	j := r.judge(slug)
	if endpoint != "" && len(j.routes) > 0 && j.named(endpoint) == nil {
		panic(fmt.Sprintf("referee: provider %q has no endpoint %q", slug, endpoint))
	}
	full, err := j.fullCost(endpoint, cost)
	if err != nil {
		panic("referee: " + err.Error())
	}
	c := &call{Arrival: Arrival{Provider: slug, Endpoint: endpoint, Key: key, Cost: full}}
	j.arrive(c)
	return func(o provider.Outcome) { j.end(c, o) }, c.ok
}

// Report returns what happened at a provider so far. It panics for a provider
// that is not played.
func (r *Referee) Report(slug string) Report { return r.judge(slug).reported() }

func (r *Referee) judge(slug string) *judge {
	j := r.judges[slug]
	if j == nil {
		played := slices.Sorted(maps.Keys(r.judges))
		panic(fmt.Sprintf("referee: provider %q is not played, only %s", slug, strings.Join(played, ", ")))
	}
	return j
}

// enter counts one more goroutine that Close waits for; false: it is too late.
func (r *Referee) enter() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.over {
		r.running.Add(1)
	}
	return !r.over
}

func (r *Referee) draw(d Delay) time.Duration {
	if d.Min == d.Max {
		return d.Min
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return d.Min + time.Duration(r.rng.Int64N(int64(d.Max-d.Min)+1))
}
