package main

import (
	"cmp"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

const (
	// The played hour is nearly over when the program begins, and another program
	// with the same token has had most of it.
	elapsed    = 54 * time.Minute
	hourLeft   = time.Hour - elapsed
	takenCore  = 4960 // of 5000
	takenSeek  = 20   // of 30 searches a minute
	secondary  = time.Minute
	adviceAt   = 8  // from this call on a secondary limit that tells retry-after
	silentAt   = 20 // and from this one on another that does not
	othersRush = 30 // at this core call the other program takes what is left of the hour

	// busy is by how much this machine may be late to send what it should have sent
	// before it read a refusal.
	busy = 150 * time.Millisecond
)

const (
	aboutSecondary = `{"message":"You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",` +
		`"documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api#about-secondary-rate-limits"}`
	aboutPrimary = `{"message":"API rate limit exceeded for user ID 1.","documentation_url":"https://docs.github.com/rest/overview/rate-limits-for-the-rest-api"}`
)

// hub plays api.github.com: the referee judges what it publishes, and the hub adds
// what it does not: secondary limits at its whim, and another program that draws on
// the same quotas. Those it tells in its answers only, as GitHub does.
type hub struct {
	judge   *referee.Referee
	network stage.Network
	speed   float64
	begin   time.Time
	core    quota
	search  quota

	mu      sync.Mutex
	calls   int       // that arrived
	asked   int       // of these, that core was to answer
	whims   int       // secondary limits so far
	refused int       // of these, not answered
	rush    time.Time // the other program took what was left of the hour
	since   time.Time // of the last secondary limit: its answer was out
	until   time.Time // nothing may come before
	silent  bool      // and no retry-after says so
	early   int       // calls that came all the same
}

// quota is one primary limit, as the answers tell of it.
type quota struct {
	name        string
	max         int
	window      time.Duration
	first, used int // the window that used counts in
}

// newHub makes a hub for the declaration at speed 1, which begins now. It returns
// the declaration at the speed, too.
func newHub(declared provider.Provider, speed float64) (*hub, provider.Provider, error) {
	scaled, played, err := stage.Scale(declared, speed)
	if err != nil {
		return nil, scaled, err
	}
	h := &hub{network: stage.Network{Min: 10 * time.Millisecond, Max: 100 * time.Millisecond}.At(speed), speed: speed, begin: time.Now()}
	h.core = quota{name: "core", max: 5000, window: h.short(time.Hour)}
	h.search = quota{name: "search", max: 30, window: h.short(time.Minute)}
	for i := range played {
		if name := played[i].Name; name == h.core.name || name == h.search.name {
			played[i].Algorithm = provider.FixedWindow // which is how GitHub counts
		}
	}
	phase := time.Duration(h.begin.Add(-h.short(elapsed)).UnixNano())
	h.judge, err = referee.New(1, referee.Play{Provider: scaled, Limits: played, Phase: phase})
	if err != nil {
		return nil, scaled, err
	}
	h.others("issue", takenCore)
	h.others("search", takenSeek)
	return h, scaled, nil
}

func (h *hub) short(d time.Duration) time.Duration { return stage.Shorten(d, h.speed) }

// others are calls of the other program. Only primary limits are its business.
func (h *hub) others(endpoint string, n int) {
	for range n {
		h.judge.Arrive("github", endpoint, "", map[string]int64{"points": 0})
	}
	q := h.of(endpoint)
	h.enter(q)
	q.used += n
}

func (h *hub) of(endpoint string) *quota {
	if endpoint == "search" {
		return &h.search
	}
	return &h.core
}

// enter begins a new window, if it is time.
func (h *hub) enter(q *quota) (reset time.Time) {
	origin := h.begin.Add(-h.short(elapsed))
	n := int(time.Since(origin) / q.window)
	if n != q.first {
		q.first, q.used = n, 0
	}
	return origin.Add(time.Duration(n+1) * q.window)
}

// answer is what a call gets.
type answer struct {
	status int
	after  time.Duration // retry-after
	body   string
	begins bool // a secondary limit
}

func (h *hub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	endpoint, body := "issue", `{"number":1,"title":"simulated"}`
	switch {
	case r.Method == http.MethodPost:
		endpoint, body = "comment", `{"id":1,"body":"simulated"}`
	case strings.HasPrefix(r.URL.Path, "/search/"):
		endpoint, body = "search", `{"total_count":1,"items":[]}`
	}
	if !h.network.Pass(r.Context()) {
		return
	}
	leave, ok := h.judge.Enter("github", endpoint, "", nil)
	a, q, reset := h.arrive(endpoint, ok)
	h.network.Pass(r.Context())
	leave(provider.OfStatus(a.status))
	h.head(w.Header(), a, q, reset)
	if a.begins {
		h.close(a)
	}
	w.WriteHeader(a.status)
	fmt.Fprint(w, cmp.Or(a.body, body))
}

// arrive decides on one call. q is a copy of what is left of its quota.
func (h *hub) arrive(endpoint string, ok bool) (a answer, q quota, reset time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	h.calls++
	if endpoint != "search" {
		h.asked++
	}
	counted := h.of(endpoint)
	reset = h.enter(counted)
	if ok {
		counted.used++
	}
	a = answer{status: http.StatusOK}
	if endpoint == "comment" {
		a.status = http.StatusCreated
	}
	switch {
	case !ok:
		h.refused++
		a = answer{status: http.StatusTooManyRequests, body: aboutPrimary}
	case now.Before(h.until):
		h.refused++
		if !h.wasOut(now, h.since) {
			h.early++
		}
		a = answer{status: http.StatusForbidden, body: aboutSecondary}
		if !h.silent {
			a.after = h.until.Sub(now)
		}
	case h.whims == 0 && h.calls >= adviceAt:
		h.whims++
		h.refused++
		a = answer{status: http.StatusTooManyRequests, body: aboutSecondary, after: h.short(secondary), begins: true}
	case h.whims == 1 && h.calls >= silentAt:
		h.whims++
		h.refused++
		a = answer{status: http.StatusForbidden, body: aboutSecondary, begins: true}
	case h.rush.IsZero() && h.asked >= othersRush && endpoint != "search":
		h.refused++
		h.rush = now
		h.others(endpoint, counted.max-counted.used)
		a = answer{status: http.StatusForbidden, body: aboutPrimary}
	}
	return a, *counted, reset
}

// wasOut tells that a call which arrived at an instant may have been sent before
// what was told at another could be known.
func (h *hub) wasOut(at, told time.Time) bool { return at.Before(told.Add(2*h.network.Max + busy)) }

// violations are the referee's: of calls that could know better, and of those that
// were out as the other program took what was left.
func (h *hub) violations() (known, out int) {
	for _, v := range h.judge.Report("github").Violations {
		if v.Limit == h.core.name && !v.At.Before(h.rush) && h.wasOut(v.At, h.rush) {
			out++
		} else {
			known++
		}
	}
	return known, out
}

// close begins a secondary limit, as its answer goes out.
func (h *hub) close(a answer) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.since = time.Now()
	h.silent = a.after == 0
	h.until = h.since.Add(cmp.Or(a.after, h.short(secondary)))
}

// head writes the fields as GitHub does. At another speed than 1 the seconds have
// decimals, and there is no Date, whose whole seconds are longer than the windows.
func (h *hub) head(to http.Header, a answer, q quota, reset time.Time) {
	decimals := 0
	if h.speed != 1 {
		decimals = 3
		to["Date"] = nil
	}
	to.Set("Content-Type", "application/json; charset=utf-8")
	to.Set("X-RateLimit-Limit", strconv.Itoa(q.max))
	to.Set("X-RateLimit-Remaining", strconv.Itoa(max(0, q.max-q.used)))
	to.Set("X-RateLimit-Used", strconv.Itoa(q.used))
	to.Set("X-RateLimit-Resource", q.name)
	to.Set("X-RateLimit-Reset", seconds(float64(reset.UnixNano())/1e9, decimals))
	if a.after > 0 {
		to.Set("Retry-After", seconds(a.after.Seconds(), decimals))
	}
}

// seconds rounds up: nobody is told to come too early.
func seconds(s float64, decimals int) string {
	unit := math.Pow10(decimals)
	return strconv.FormatFloat(math.Ceil(s*unit)/unit, 'f', decimals, 64)
}
