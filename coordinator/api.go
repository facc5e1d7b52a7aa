package coordinator

import (
	"context"
	"encoding/json"
	"iter"
	"log/slog"
	"time"

	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

var _ = json.Marshal
var _ slog.LogValuer = (*Error)(nil)

type Config struct {
	Registry  *registry.Registry
	Providers []provider.Provider
	Overrides map[string]provider.Throttle
	Classify  func(slug string, err error) (provider.Feedback, bool)
	Traces    []*Trace
}

type Priority int

const (
	Bulk        Priority = -1
	Normal      Priority = 0
	Interactive Priority = 1
)

type Call struct {
	Provider, Endpoint, Key, Flow string
	Priority                      Priority
	Cost                          map[string]int64
	Wait                          time.Duration
	Replayable                    bool
}

type Coordinator struct{}
type Lease struct{}

func New(cfg Config) (*Coordinator, error) { return nil, nil }
func (c *Coordinator) Do(ctx context.Context, call Call, fn func(context.Context) error) error {
	return nil
}
func Get[T any](ctx context.Context, c *Coordinator, call Call, fn func(context.Context) (T, error)) (v T, err error) {
	return v, err
}
func (c *Coordinator) Execute(ctx context.Context, call Call, q provider.Query) (provider.Result, error) {
	return provider.Result{}, nil
}
func (c *Coordinator) Acquire(ctx context.Context, call Call) (*Lease, error) { return nil, nil }
func LeaseFrom(ctx context.Context) (*Lease, bool)                            { return nil, false }
func (l *Lease) Sent()                                                        {}
func (l *Lease) Report(f provider.Feedback)                                   {}
func (l *Lease) Release()                                                     {}
func (l *Lease) Forget()                                                      {}
func (l *Lease) Key() string                                                  { return "" }
func (l *Lease) Waited() time.Duration                                        { return 0 }
func (c *Coordinator) State(slug string) (State, error)                       { return State{}, nil }
func (c *Coordinator) States() []State                                        { return nil }
func (c *Coordinator) Providers() iter.Seq[provider.Provider]                 { return nil }
func (c *Coordinator) Update(slug string, t provider.Throttle) error          { return nil }
func (c *Coordinator) Pause(slug string, until time.Time, why string) error   { return nil }
func (c *Coordinator) Resume(slug string) error                               { return nil }
func (c *Coordinator) Shutdown(ctx context.Context) error                     { return nil }

type Reason string
type Stage string

type Error struct {
	Provider   string
	Reason     Reason
	Stage      Stage
	Attempts   int
	RetryAfter time.Duration
	RetryAt    time.Time
	Limit      *LimitState
	Queue      QueueState
	Answer     provider.Feedback
	Err        error
}

func (e *Error) Error() string                { return "" }
func (e *Error) Is(target error) bool         { return false }
func (e *Error) Unwrap() error                { return nil }
func (e *Error) MarshalJSON() ([]byte, error) { return nil, nil }
func (e *Error) LogValue() slog.Value         { return slog.Value{} }
func (e *Error) Feedback() provider.Feedback  { return provider.Feedback{} }

type LimitState struct {
	Name, Unit      string
	Max, Used, Held int64
	Per             provider.Period
	ResetAt         time.Time
	Origin          string // declared | overridden | learned | assumed
}
type QueueState struct {
	Length, Capacity int           // Capacity 0: unbounded
	Wait             time.Duration // estimated
}
type State struct {
	Provider string
	Limits   []LimitState
	Queue    QueueState
	InFlight int
}
type CallInfo struct {
	Provider, Endpoint, Key, Flow string
	Priority                      Priority
	Attempt                       int
}
type Trace struct {
	Waiting  func(context.Context, CallInfo, QueueState)
	Going    func(ctx context.Context, call CallInfo, waited time.Duration)
	Attempt  func(ctx context.Context, call CallInfo, f provider.Feedback, took time.Duration)
	End      func(ctx context.Context, call CallInfo, err error, took time.Duration)
	Refused  func(ctx context.Context, call CallInfo, err *Error)
	Breaker  func(BreakerChange)
	Paused   func(PauseChange)
	Pressure func(PressureChange)
}
type BreakerChange struct {
	Provider, From, To string
	Until              time.Time
}
type PauseChange struct {
	Provider, Scope, Name string // Name: the key's alias or the endpoint
	Why                   string
	Until                 time.Time // zero: opened
}
type PressureChange struct {
	Provider string
	High     bool
	Queue    QueueState
}
