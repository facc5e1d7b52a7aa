package telemetry

import (
	"context"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// The names of spans and events: what they are about is in their attributes.
const (
	spanCall     = "headgate.call"
	spanAttempt  = "headgate.attempt"
	eventWaiting = "headgate.waiting"
	eventGoing   = "headgate.going"
	eventPaused  = "headgate.paused"
	eventRetry   = "headgate.retry"
)

// callSpan is the context of a call, from Begin to its end. Its function gets an
// attemptSpan above it, which hides it: so the hooks of a call that its function
// makes, and that never began, cannot take it for their own.
type callSpan struct {
	context.Context

	t         *Telemetry
	span      trace.Span
	recording bool
	retried   int // attempts after which a retry was told
}

// attemptSpan is the context of an attempt.
type attemptSpan struct {
	context.Context

	t    *Telemetry
	span trace.Span
}

func (s *callSpan) Value(key any) any {
	if key == any(s.t) {
		return s
	}
	return s.Context.Value(key)
}

func (s *attemptSpan) Value(key any) any {
	if key == any(s.t) {
		return s
	}
	return s.Context.Value(key)
}

// recordingOf finds the span of a call; nil: it has none that records.
func (t *Telemetry) recordingOf(ctx context.Context) *callSpan {
	if s, ok := ctx.Value(t).(*callSpan); ok && s.recording {
		return s
	}
	return nil
}

func startOptions(p place) []trace.SpanStartOption {
	return []trace.SpanStartOption{trace.WithAttributes(p.attrs()...)}
}

// startOf is startOptions from the cache, where the call's names are known to exist.
func (t *Telemetry) startOf(call coordinator.CallInfo) []trace.SpanStartOption {
	if l := (*t.series.Load())[call.Provider]; l != nil {
		if s := l.series(call.Endpoint); s.endpoint == call.Endpoint {
			return s.start
		}
	}
	return startOptions(place{call.Provider, call.Endpoint})
}

func (t *Telemetry) begin(ctx context.Context, call coordinator.CallInfo) context.Context {
	ctx, span := t.tracer.Start(ctx, spanCall, t.startOf(call)...)
	return &callSpan{Context: ctx, t: t, span: span, recording: span.IsRecording()}
}

// try starts the span of an attempt. Where the call is not recorded its attempts are
// not, and its own context says so to whom they call.
func (t *Telemetry) try(ctx context.Context, call coordinator.CallInfo) context.Context {
	if t.recordingOf(ctx) == nil {
		return nil
	}
	ctx, span := t.startAttempt(ctx, call)
	return &attemptSpan{Context: ctx, t: t, span: span}
}

func (t *Telemetry) startAttempt(ctx context.Context, call coordinator.CallInfo, more ...trace.SpanStartOption) (context.Context, trace.Span) {
	at := place{call.Provider, call.Endpoint}
	more = append(more, trace.WithAttributes(at.attrs(attribute.Int("headgate.attempt", call.Attempt))...))
	return t.tracer.Start(ctx, spanAttempt, more...)
}

func (t *Telemetry) waiting(ctx context.Context, call coordinator.CallInfo, q coordinator.QueueState) {
	s := t.recordingOf(ctx)
	if s == nil {
		return
	}
	s.retry(call.Attempt)
	s.span.AddEvent(eventWaiting, trace.WithAttributes(
		attribute.Int("headgate.queue.length", q.Length), attribute.Float64("headgate.queue.estimated_wait", q.Wait.Seconds())))
	for _, p := range t.pausesOf(call) {
		s.span.AddEvent(eventPaused, trace.WithAttributes(attribute.String(attrScope, p.Scope),
			attribute.String(attrReason, cause(p.Why)), attribute.Float64("headgate.pause.remaining", time.Until(p.Until).Seconds())))
	}
}

func (t *Telemetry) spanGoing(ctx context.Context, call coordinator.CallInfo, waited time.Duration) {
	s := t.recordingOf(ctx)
	if s == nil {
		return
	}
	s.retry(call.Attempt - 1)
	s.span.AddEvent(eventGoing, trace.WithAttributes(
		attribute.Int("headgate.attempt", call.Attempt), attribute.Float64("headgate.call.wait", waited.Seconds())))
}

// retry tells, once, that so many attempts were not enough.
func (s *callSpan) retry(attempts int) {
	if attempts > s.retried {
		s.retried = attempts
		s.span.AddEvent(eventRetry, trace.WithAttributes(attribute.Int("headgate.attempts", attempts)))
	}
}

func (t *Telemetry) spanAttempt(ctx context.Context, call coordinator.CallInfo, o provider.Outcome, took time.Duration) {
	var span trace.Span
	switch s := ctx.Value(t).(type) {
	case *attemptSpan:
		span = s.span
	case *callSpan: // of Acquire, whose attempt is known when it is over
		if !s.recording {
			return
		}
		_, span = t.startAttempt(ctx, call, trace.WithTimestamp(time.Now().Add(-took)))
	default:
		return
	}
	span.SetAttributes(attribute.String(attrOutcome, string(o)))
	if o != provider.OK {
		span.SetAttributes(attribute.String(attrError, string(o)))
		span.SetStatus(codes.Error, string(o))
	}
	span.End()
}

func (t *Telemetry) spanEnd(ctx context.Context, call coordinator.CallInfo, e *coordinator.Error) {
	s := t.recordingOf(ctx)
	if s == nil {
		return
	}
	s.span.SetAttributes(attribute.Int("headgate.attempts", call.Attempt))
	if e != nil {
		failed(s.span, e)
	}
	s.span.End()
}

// spanRefused ends the span of a call that did not go (again). One that was refused
// before it had any gets one without length.
func (t *Telemetry) spanRefused(ctx context.Context, call coordinator.CallInfo, e *coordinator.Error) {
	var span trace.Span
	if s, ok := ctx.Value(t).(*callSpan); ok {
		span = s.span
	} else {
		_, span = t.tracer.Start(ctx, spanCall, startOptions(place{call.Provider, call.Endpoint})...)
	}
	if span.IsRecording() {
		span.SetAttributes(attribute.Int("headgate.attempts", call.Attempt))
		failed(span, e)
	}
	span.End()
}

// failed writes down what an Error says, whose text holds no secret.
func failed(span trace.Span, e *coordinator.Error) {
	span.SetAttributes(attribute.String(attrError, string(e.Reason)), attribute.String("headgate.stage", string(e.Stage)))
	if e.Limit != nil {
		span.SetAttributes(attribute.String(attrLimit, e.Limit.Name))
	}
	if e.RetryAfter > 0 {
		span.SetAttributes(attribute.Float64("headgate.retry_after", e.RetryAfter.Seconds()))
	}
	span.SetStatus(codes.Error, e.Error())
}

// Coalesced links the span in ctx to that of the call whose answer it shares: for
// programs that ask once for several who want the same. leader is
// trace.SpanContextFromContext of the context in the function that asked. Where
// either has no span it does nothing.
func Coalesced(ctx context.Context, leader trace.SpanContext) {
	if leader.IsValid() {
		trace.SpanFromContext(ctx).AddLink(trace.Link{
			SpanContext: leader, Attributes: []attribute.KeyValue{attribute.Bool("headgate.coalesced", true)}})
	}
}
