package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

const slug = "webhook"

// Each destination takes so many events a second, and so many at once.
const (
	perSecond = 5
	atOnce    = 2
)

// maxWait is how long an event may wait here. After that it is for the program's
// store, which this example has not.
const maxWait = 13 * time.Second

// declared is all destinations together: what they share is what this machine
// stands, the rest is each one's own.
func declared() provider.Provider {
	return provider.Provider{
		Slug: slug,
		Throttle: provider.Throttle{
			Excess: provider.Delay, MaxWait: maxWait, // one backlog must not take the places of all
			MaxInFlight: 512,
			Penalty:     800 * time.Millisecond,
			Limits: []provider.Limit{
				{Name: "rate", Max: perSecond, Per: "1s", Scope: provider.ScopeKey, Basis: provider.BasisPacing},
				{Name: "open", Max: atOnce, Algorithm: provider.InFlight, Scope: provider.ScopeKey, Basis: provider.BasisPacing},
			},
		},
		// A breaker is the provider's: five dead destinations would stop all. Instead
		// whoever refuses or fails is paused by itself: for as long as it says, else
		// for the penalty, and twice as long each time that it happens again.
		Breaker: provider.Breaker{Off: true},
		Retry:   provider.Retry{Attempts: 4, Budget: 1},
		Dialect: provider.Dialect{Signals: []provider.Signal{
			{Status: []int{429, 500, 502, 503, 504}, Outcome: provider.RateLimited, Scope: provider.ScopeKey},
		}},
	}
}

// classify is for calls that end without an answer: that, too, is the destination's
// affair. Deliveries are at least once: they may be sent again.
func classify(_ string, err error) (provider.Feedback, bool) {
	if errors.Is(err, context.Canceled) {
		return provider.Feedback{}, false
	}
	return provider.Feedback{Outcome: provider.RateLimited, Scope: provider.ScopeKey, Unanswered: true, Detail: "no answer"}, true
}

// kind is how a destination behaves.
type kind int

const (
	plain kind = iota
	hot        // has a backlog
	busy       // answers its first event by 503 and Retry-After
	down       // the proxy says so, or the connection is lost
	kinds
)

func (k kind) String() string { return [...]string{"plain", "hot", "busy", "down"}[k] }

// kindOf is the kind of the i-th destination: five are hot, three are down, and one
// in a hundred is busy.
func kindOf(i int) kind {
	switch {
	case i < 5:
		return hot
	case i < 8:
		return down
	case i%100 == 50:
		return busy
	}
	return plain
}

// lost is the destination, one of those that are down, that closes the connection.
const lost = 7

func host(i int) string { return fmt.Sprintf("d%d.example", i) }

// retryAfter is what busy destinations ask for.
const retryAfter = time.Second

// world plays all destinations behind an egress proxy.
type world struct {
	judge   *referee.Referee
	network stage.Network

	mu    sync.Mutex
	told  map[string]time.Time // when a busy destination said so
	early int                  // calls that came all the same
	calls [kinds]int
}

func newWorld() (*world, error) {
	judge, err := referee.New(1, referee.Play{Provider: declared()})
	if err != nil {
		return nil, err
	}
	network := stage.Network{Min: 2 * time.Millisecond, Max: 20 * time.Millisecond}
	return &world{judge: judge, network: network, told: make(map[string]time.Time)}, nil
}

// ServeHTTP is the proxy: the host that is asked for says who answers.
func (w *world) ServeHTTP(to http.ResponseWriter, r *http.Request) {
	i, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(r.Host, "d"), ".example"))
	if err != nil || !w.network.Pass(r.Context()) {
		return
	}
	k := kindOf(i)
	leave, ok := w.judge.Enter(slug, "", r.Host, nil)
	status := w.arrive(r.Host, k, ok)
	if i == lost {
		leave(provider.Canceled)
		panic(http.ErrAbortHandler) // closes the connection
	}
	w.network.Pass(r.Context())
	leave(provider.OfStatus(status)) // before the answer is out: nobody may have it earlier
	if status == http.StatusServiceUnavailable {
		to.Header().Set("Retry-After", strconv.Itoa(int(retryAfter/time.Second)))
		w.mu.Lock()
		w.told[r.Host] = time.Now()
		w.mu.Unlock()
	}
	to.WriteHeader(status)
}

// arrive decides on one call.
func (w *world) arrive(host string, k kind, ok bool) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.calls[k]++
	told, has := w.told[host]
	switch {
	case !ok:
		return http.StatusTooManyRequests
	case k == down:
		return http.StatusBadGateway // so the proxy says
	case k == busy && !has:
		return http.StatusServiceUnavailable
	case has && time.Since(told) < retryAfter && time.Since(told) > w.late():
		w.early++
	}
	return http.StatusNoContent
}

// late is how late a call may arrive that was sent before the answer to another was
// there.
func (w *world) late() time.Duration { return 2*w.network.Max + 150*time.Millisecond }
