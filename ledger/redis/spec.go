package redis

import (
	"fmt"
	"math"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/provider"
)

const (
	most  = 1 << 52 // amounts saturate there, as in the scripts
	exact = 1024    // entries of a window
)

// spec is what the scripts have to know of a counter. One without a limit has only an
// ID: it goes by what the server knows.
type spec struct {
	id, slug string
	text     string // see read_spec in counter.lua
	err      error  // of its limit
	calendar *calendar
}

// specOf reads a counter's limit, once.
func specOf(c *ledger.Counter) *spec {
	return c.Prepared(func() any { return newSpec(c) }).(*spec) //nolint:forcetypeassert // made here
}

var letters = map[provider.Algorithm]string{
	provider.SlidingWindow: "w", provider.LeakyBucket: "l", provider.TokenBucket: "b",
	provider.FixedWindow: "f", provider.SlidingWindowCounter: "c", provider.InFlight: "n",
}

func newSpec(c *ledger.Counter) *spec {
	l := c.Limit()
	s := &spec{id: c.ID(), slug: c.Provider()}
	if s.err = l.Validate(); s.err != nil {
		s.err = fmt.Errorf("redis: limit %q of %q: %w", l.Name, c.Provider(), s.err)
		return s
	}
	d, word := l.Per.Duration()
	per := micros(d)
	grid := "-"
	if s.aligned(l) && (word || d%time.Microsecond != 0) {
		grid = url.QueryEscape(strings.Join([]string{string(l.Per), l.Zone, l.Anchor}, " "))
		s.calendar, s.err = newCalendar(l)
	}
	maximum, capacity := min(l.Max, most), min(l.Max, most)
	if l.Algorithm == provider.TokenBucket {
		// What an empty bucket takes to fill must not overflow: 71 years.
		capacity = min(l.Burst, most, int64(max(1, min(most, float64(most)/2/float64(per)*float64(maximum)))))
	}
	sent := 0
	if l.Counted == provider.CountedSent && l.Algorithm != provider.InFlight {
		sent = 1
	}
	s.text = fmt.Sprintf("%s %d %d %d %d %d %s", letters[l.Algorithm], sent, maximum, capacity, per, (per+exact-1)/exact, grid)
	return s
}

func (*spec) aligned(l provider.Limit) bool {
	return l.Algorithm == provider.FixedWindow || l.Algorithm == provider.SlidingWindowCounter
}

// bounds are the windows around an instant of the server's clock, as the scripts read
// them; "" where they know them by themselves.
func (s *spec) bounds(wall time.Time) string {
	if s.calendar == nil {
		return ""
	}
	return s.calendar.bounds(wall)
}

// calendar are windows that follow a calendar: the scripts have no zones, so the bounds of
// those around now come along with a batch.
type calendar struct {
	rule *limit.Rule // empty; it knows where windows end
	back time.Duration

	mu         sync.Mutex
	from, till time.Duration // text is of the windows around any instant in between
	text       string
}

func newCalendar(l provider.Limit) (*calendar, error) {
	r, err := limit.New(l)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	back, word := l.Per.Duration()
	if word { // an hour or a day may be longer than it says
		back += 2 * time.Hour
	}
	return &calendar{rule: r, back: 2 * back}, nil
}

// bounds are five in microseconds since the epoch: the begin of the window before the one
// that contains an instant, of that one, of the next, of the one after, and its end.
func (c *calendar) bounds(wall time.Time) string {
	at := time.Duration(wall.UnixNano())
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.text != "" && c.from <= at && at < c.till {
		return c.text
	}
	var b [5]time.Duration
	for b[2] = c.end(at - c.back); b[2] <= at; {
		b[0], b[1], b[2] = b[1], b[2], c.end(b[2])
	}
	b[3] = c.end(b[2])
	b[4] = c.end(b[3])
	words := make([]string, len(b))
	for i, x := range b {
		words[i] = strconv.FormatInt(micros(x), 10)
	}
	c.from, c.till, c.text = b[1], b[2], strings.Join(words, " ")
	return c.text
}

// end is the end of the window that contains an instant. A Rule says when the next window
// opens for us, which is up to a second after it begins: it begins with the first instant
// of which a later one is said.
func (c *calendar) end(at time.Duration) time.Duration {
	opens := c.opens(at)
	for _, guard := range []time.Duration{time.Second, 600 * time.Millisecond} { // nearly always
		if end := opens - guard; end > at && c.opens(end-1) == opens && c.opens(end) > opens {
			return end
		}
	}
	lo, hi := max(at, opens-time.Second-1), opens // the bound is in (lo, hi]
	for hi-lo > 1 {
		if mid := lo + (hi-lo)/2; c.opens(mid) > opens {
			hi = mid
		} else {
			lo = mid
		}
	}
	return hi
}

func (c *calendar) opens(at time.Duration) time.Duration {
	t, _ := c.rule.Boundary(limit.Now{Mono: at, Wall: at})
	return t
}

// micros is d in microseconds, rounded up.
func micros(d time.Duration) int64 {
	n := int64(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		n++
	}
	return n
}

// until is how long it is until t, as the scripts read it: 0 where it is over.
func until(now, t time.Time) int64 { return min(max(0, micros(t.Sub(now))), most) }

// length is what a script tells, as a duration.
func length(us int64) time.Duration {
	if us > math.MaxInt64/1000 {
		return math.MaxInt64 - 1
	}
	return time.Duration(us) * time.Microsecond
}
