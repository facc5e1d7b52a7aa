// Package tracelog writes what a Coordinator tells its hooks to a slog.Logger: with
// levels, sampled, and without a secret.
//
// It writes typed values only: names (provider, endpoint, the key's alias, flow),
// numbers, outcomes and reasons, and the details that are free of secrets by the
// contract of package provider. It never writes the text of an error's cause, which
// may be a URL with a key in it, nor what a hook panicked with.
//
// Not in it: metrics and spans (package telemetry); the counts that a State has.
package tracelog

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"regexp"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// Event is a kind of what is written: it has a level, and is sampled by itself.
type Event string

// The events, with their default levels.
const (
	Waiting  Event = "waiting"  // a call waits for its turn: Debug
	Going    Event = "going"    // it goes: Debug
	Attempt  Event = "attempt"  // an attempt has ended, in whatever way: Debug
	End      Event = "end"      // a call has ended well: Debug
	Failed   Event = "failed"   // a call that went has ended with an error: Warn
	Refused  Event = "refused"  // a call was refused: Warn
	GaveUp   Event = "gave_up"  // its caller did not want it any more: Debug
	Breaker  Event = "breaker"  // the breaker is half-open, or closed again: Info
	Open     Event = "open"     // the breaker has opened: Error
	Paused   Event = "paused"   // a scope is paused, or for longer: Warn
	Resumed  Event = "resumed"  // it is open again: Info
	Pressure Event = "pressure" // the queue has crossed a mark, either way: Info
	Apart    Event = "apart"    // the ledger has ceased to answer: Error
	Shared   Event = "shared"   // it answers: Info
)

var levels = map[Event]slog.Level{
	Waiting: slog.LevelDebug, Going: slog.LevelDebug, Attempt: slog.LevelDebug, End: slog.LevelDebug, GaveUp: slog.LevelDebug,
	Failed: slog.LevelWarn, Refused: slog.LevelWarn, Paused: slog.LevelWarn, Open: slog.LevelError,
	Breaker: slog.LevelInfo, Resumed: slog.LevelInfo, Pressure: slog.LevelInfo,
	Apart: slog.LevelError, Shared: slog.LevelInfo,
}

// Options say how much is written. The zero value is the default of each.
type Options struct {
	// First events of one kind of one provider are written in each interval, the rest
	// are counted. Default 10; negative: all are written.
	First int
	// Interval begins with an event. When it is over, what was not written is told by
	// one line with their number ("and more", more=4211), as soon as anything happens
	// again: there is no goroutine that would wait for it. Default 1 minute.
	Interval time.Duration
	// Levels replace the level of some events.
	Levels map[Event]slog.Level
}

// writer is behind the hooks.
type writer struct {
	to     *slog.Logger // nil: the default at that time
	levels map[Event]slog.Level
	sample *sampler
}

// New returns hooks that write to l; nil: to slog.Default(), as it is at each event.
// They are safe for concurrent use. What l does not write for its level costs a
// look. A slow handler delays the call on whose goroutine the hook runs.
func New(l *slog.Logger, opt Options) *coordinator.Trace {
	w := &writer{to: l, levels: make(map[Event]slog.Level, len(levels))}
	for e, level := range levels {
		if own, given := opt.Levels[e]; given {
			level = own
		}
		w.levels[e] = level
	}
	if opt.First >= 0 {
		w.sample = newSampler(cmp.Or(opt.First, 10), cmp.Or(opt.Interval, time.Minute))
	}
	return &coordinator.Trace{
		Waiting: w.waiting, Going: w.going, Attempt: w.attempt, End: w.end, Refused: w.refused,
		Breaker: w.breaker, Paused: w.paused, Pressure: w.pressure, Ledger: w.ledger,
	}
}

// Panicked returns a hook for other Traces' Panicked field: the first panic of each
// of their hooks is written at level Error, with the type of the value and not its
// text. (The Traces of New have none: what they would panic in is the logger.)
func Panicked(l *slog.Logger) func(hook string, value any) {
	w := &writer{to: l}
	return func(hook string, value any) {
		w.logger().LogAttrs(context.Background(), slog.LevelError, "headgate: hook panicked",
			slog.String("hook", hook), slog.String("type", fmt.Sprintf("%T", value)))
	}
}

func (w *writer) logger() *slog.Logger {
	if w.to == nil {
		return slog.Default()
	}
	return w.to
}

// write writes one event, if it is its turn, and what is due of others.
func (w *writer) write(ctx context.Context, e Event, slug, message string, attrs func() []slog.Attr) {
	for _, m := range w.sample.overdue() {
		w.logger().LogAttrs(ctx, w.levels[m.event], "headgate: and more",
			slog.String("event", string(m.event)), slog.String("provider", m.provider), slog.Int64("more", m.more), slog.Duration("since", m.since))
	}
	if !w.logger().Enabled(ctx, w.levels[e]) || !w.sample.turn(kind{slug, e}) {
		return
	}
	w.logger().LogAttrs(ctx, w.levels[e], "headgate: "+message, attrs()...)
}

// names are those of a call, as far as it has them.
func names(c coordinator.CallInfo) []slog.Attr {
	return append([]slog.Attr{slog.String("provider", c.Provider)}, where(c)...)
}

func where(c coordinator.CallInfo) (attrs []slog.Attr) {
	for _, a := range [...]struct{ key, name string }{{"endpoint", c.Endpoint}, {"key", alias(c.Key)}, {"flow", c.Flow}} {
		if a.name != "" {
			attrs = append(attrs, slog.String(a.key, a.name))
		}
	}
	if c.Priority != coordinator.Normal {
		attrs = append(attrs, slog.Int("priority", int(c.Priority)))
	}
	return attrs
}

// variable is how aliases look that a declaration has.
var variable = regexp.MustCompile(`^[A-Z][A-Z0-9_]*$`)

// alias is a key's name. Where a provider declares no pool of keys a program may
// name any, and one that mistakes the key for its alias must not find it in a log:
// what is not named like a variable is told by its fingerprint.
func alias(key string) string {
	if key == "" || variable.MatchString(key) {
		return key
	}
	sum := sha256.Sum256([]byte(key))
	return "#" + hex.EncodeToString(sum[:4])
}

func queueAttrs(q coordinator.QueueState) []slog.Attr {
	return []slog.Attr{slog.Int("queue_length", q.Length), slog.Int("queue_capacity", q.Capacity), slog.Duration("queue_wait", q.Wait)}
}

func (w *writer) waiting(ctx context.Context, c coordinator.CallInfo, q coordinator.QueueState) {
	w.write(ctx, Waiting, c.Provider, "call waits", func() []slog.Attr {
		return append(names(c), queueAttrs(q)...)
	})
}

func (w *writer) going(ctx context.Context, c coordinator.CallInfo, waited time.Duration) {
	w.write(ctx, Going, c.Provider, "call goes", func() []slog.Attr {
		return append(names(c), slog.Int("attempt", c.Attempt), slog.Duration("waited", waited))
	})
}

func (w *writer) attempt(ctx context.Context, c coordinator.CallInfo, f provider.Feedback, took time.Duration) {
	w.write(ctx, Attempt, c.Provider, "attempt ended", func() []slog.Attr {
		attrs := append(names(c), slog.Int("attempt", c.Attempt), slog.String("outcome", string(cmp.Or(f.Outcome, provider.OK))), slog.Duration("took", took))
		if f.RetryAfter > 0 {
			attrs = append(attrs, slog.Duration("retry_after", f.RetryAfter))
		}
		for _, a := range [...]struct{ key, text string }{{"scope", f.Scope}, {"limit", f.Limit}, {"detail", f.Detail}} {
			if a.text != "" {
				attrs = append(attrs, slog.String(a.key, a.text))
			}
		}
		return attrs
	})
}

func (w *writer) end(ctx context.Context, c coordinator.CallInfo, err error, took time.Duration) {
	e, failed := err.(*coordinator.Error) // as End says: never one that is wrapped
	switch {
	case failed && e != nil && e.Reason == coordinator.ReasonCanceled:
		w.write(ctx, GaveUp, c.Provider, "call given up", func() []slog.Attr { return append(facts(c, e), slog.Duration("took", took)) })
	case failed && e != nil:
		w.write(ctx, Failed, c.Provider, "call failed", func() []slog.Attr { return append(facts(c, e), slog.Duration("took", took)) })
	default:
		w.write(ctx, End, c.Provider, "call ended", func() []slog.Attr {
			return append(names(c), slog.Int("attempts", c.Attempt), slog.Duration("took", took))
		})
	}
}

func (w *writer) refused(ctx context.Context, c coordinator.CallInfo, e *coordinator.Error) {
	event, slug, message := Refused, c.Provider, "call refused"
	switch e.Reason {
	case coordinator.ReasonCanceled:
		event, message = GaveUp, "call given up"
	case coordinator.ReasonUnknownProvider:
		slug = "" // one for all: anybody can ask for more names than memory has room for
	case coordinator.ReasonInvalid:
		c.Key = "" // it may be the key itself, put in the place of its alias by mistake
	}
	w.write(ctx, event, slug, message, func() []slog.Attr { return facts(c, e) })
}

// facts are what an error tells of itself for logs, and the call's names.
func facts(c coordinator.CallInfo, e *coordinator.Error) []slog.Attr {
	return append(e.LogValue().Group(), where(c)...)
}

func (w *writer) breaker(b coordinator.BreakerChange) {
	event, message := Breaker, "circuit "+b.To
	if !b.Until.IsZero() {
		event = Open
	}
	w.write(context.Background(), event, b.Provider, message, func() []slog.Attr {
		attrs := []slog.Attr{slog.String("provider", b.Provider), slog.String("from", b.From), slog.String("to", b.To)}
		if !b.Until.IsZero() {
			attrs = append(attrs, slog.Time("until", b.Until))
		}
		return attrs
	})
}

func (w *writer) paused(p coordinator.PauseChange) {
	event, message := Paused, "paused"
	if p.Until.IsZero() {
		event, message = Resumed, "resumed"
	}
	w.write(context.Background(), event, p.Provider, message, func() []slog.Attr {
		attrs := []slog.Attr{slog.String("provider", p.Provider), slog.String("scope", p.Scope)}
		if p.Name != "" {
			attrs = append(attrs, slog.String("name", p.Name))
		}
		if !p.Until.IsZero() {
			attrs = append(attrs, slog.String("why", p.Why), slog.Time("until", p.Until))
		}
		return attrs
	})
}

func (w *writer) ledger(x coordinator.LedgerChange) {
	event, message := Shared, "the shared budget answers"
	if !x.Up {
		event, message = Apart, "the shared budget does not answer"
	}
	w.write(context.Background(), event, "", message, func() []slog.Attr {
		attrs := []slog.Attr{slog.String("mode", x.State.Mode), slog.Int("replicas", x.State.Replicas), slog.Int("rank", x.State.Rank)}
		if x.State.Detail != "" {
			attrs = append(attrs, slog.String("detail", x.State.Detail))
		}
		return attrs
	})
}

func (w *writer) pressure(p coordinator.PressureChange) {
	w.write(context.Background(), Pressure, p.Provider, "queue pressure", func() []slog.Attr {
		return append([]slog.Attr{slog.String("provider", p.Provider), slog.Bool("high", p.High)}, queueAttrs(p.Queue)...)
	})
}
