// Package provider is the vocabulary of Headgate: what a provider declares
// (limits, endpoints, breaker, retry, dialect) and what it answers (outcome,
// advice, budgets). It holds plain values, their parsing and their validation.
//
// Not in it: time arithmetic (package limit), names of registered providers
// (package registry), HTTP (package dialect).
package provider

import (
	"context"
	"encoding/json"
	"math"
	"time"
)

// Forever is a MaxWait without end. It is written "forever" in YAML and JSON.
const Forever = time.Duration(math.MaxInt64)

// Algorithm names how a limit counts.
type Algorithm string

// The algorithms. SlidingWindow is the default.
const (
	SlidingWindow        Algorithm = "sliding_window"
	SlidingLog           Algorithm = "sliding_log" // SlidingWindow with Counted: sent
	SlidingWindowCounter Algorithm = "sliding_window_counter"
	FixedWindow          Algorithm = "fixed_window"
	TokenBucket          Algorithm = "token_bucket"
	GCRA                 Algorithm = "gcra" // TokenBucket, kept as one instant
	LeakyBucket          Algorithm = "leaky_bucket"
	InFlight             Algorithm = "in_flight"
)

// ExcessPolicy says what becomes of a call that cannot go at once.
type ExcessPolicy string

// The excess policies. Queue is the default.
const (
	Queue  ExcessPolicy = "queue"  // waits, within max_queue places and max_wait
	Reject ExcessPolicy = "reject" // refused, but for the places of a leaky bucket's burst
	Delay  ExcessPolicy = "delay"  // waits, however many wait already, within max_wait
)

// Period is the length of a limit's window: a duration above 0 up to 744h
// ("1s", "24h"), or a calendar word.
type Period string

// The calendar periods.
const (
	Minute Period = "minute"
	Hour   Period = "hour"
	Day    Period = "day"
	Month  Period = "month"
)

// Where a limit counts a call.
const (
	CountedAnswered = "answered" // held from going until the answer, charged at the answer (default)
	CountedSent     = "sent"     // charged at the instant of going
)

// The scopes of a limit, and (the first three) of a pause.
const (
	ScopeProvider    = "provider"
	ScopeKey         = "key"
	ScopeEndpoint    = "endpoint"
	ScopeKeyEndpoint = "key+endpoint"
)

// Where a limit's number comes from.
const (
	BasisProvider = "provider" // the provider says so (default)
	BasisPacing   = "pacing"   // our courtesy
	BasisAssumed  = "assumed"  // nobody says so
)

// The units that have a name of their own here. Others may be declared.
const (
	Requests = "requests" // 1 per call unless named
	Tokens   = "tokens"
	Credits  = "credits"
	Bytes    = "bytes"
)

// Provider is the declaration of one third-party provider. Slug is the only
// required field; every zero value means the documented default.
type Provider struct {
	Slug       string        `yaml:"slug"`               // [a-z0-9-]+, unique in a registry
	Name       string        `yaml:"name,omitempty"`     // for people
	Category   string        `yaml:"category,omitempty"` // internet-scan, reputation, llm, …
	BaseURL    string        `yaml:"base_url,omitempty"` // absolute; the transport routes by it
	Hosts      []string      `yaml:"hosts,omitempty"`    // more hosts that belong to it
	Throttle   Throttle      `yaml:"throttle,omitempty"`
	Endpoints  []Endpoint    `yaml:"endpoints,omitempty"`
	Dialect    Dialect       `yaml:"dialect,omitempty"`
	Breaker    Breaker       `yaml:"breaker,omitempty"`
	Retry      Retry         `yaml:"retry,omitempty"`
	Timeout    time.Duration `yaml:"timeout,omitempty"` // of one attempt, put on its context; 0: none
	Auth       Auth          `yaml:"auth,omitempty"`
	Identity   Identity      `yaml:"identity,omitempty"`
	Sources    []string      `yaml:"sources,omitempty"` // where these facts were read
	AsOf       string        `yaml:"as_of,omitempty"`   // and when: 2026-11-30
	Confidence string        `yaml:"confidence,omitempty"`
}

// Throttle declares the limits of a provider and what to do with excess.
// RPS, RPM, RPH, RPD, Burst, Algorithm and MaxInFlight are the short form of
// Limits; see [Throttle.Expand].
type Throttle struct {
	RPS           float64       `yaml:"rps,omitempty"` // requests a second
	RPM           float64       `yaml:"rpm,omitempty"` // requests a minute
	RPH           float64       `yaml:"rph,omitempty"` // requests an hour
	RPD           float64       `yaml:"rpd,omitempty"` // requests in 24 hours, rolling
	Burst         int64         `yaml:"burst,omitempty"`
	Algorithm     Algorithm     `yaml:"algorithm,omitempty"`
	Excess        ExcessPolicy  `yaml:"excess,omitempty"`          // queue | reject | delay
	MaxQueue      int           `yaml:"max_queue,omitempty"`       // places in the queue; default 1,000
	MaxWait       time.Duration `yaml:"max_wait,omitempty"`        // of a call in all; default 1h, 30s under delay; "forever"
	MaxInFlight   int           `yaml:"max_in_flight,omitempty"`   // calls out at once; 0: no cap
	Penalty       time.Duration `yaml:"penalty,omitempty"`         // shortest pause after a refusal without advice; default 1s
	Warmup        time.Duration `yaml:"warmup,omitempty"`          // after a pause, from 10 % of the rate to all of it
	ArrivalWithin time.Duration `yaml:"arrival_within,omitempty"`  // a request has arrived this long after it was sent
	MaxRetryAfter time.Duration `yaml:"max_retry_after,omitempty"` // longer advice is a refusal, not a wait; default 24h
	Adaptive      bool          `yaml:"adaptive,omitempty"`
	Learn         string        `yaml:"learn,omitempty"`       // lower (default) | raise
	BadAnswers    *Limit        `yaml:"bad_answers,omitempty"` // a budget of 401, 403 and 429 answers
	Limits        []Limit       `yaml:"limits,omitempty"`
}

// Limit is one bound: at most Max units Per period, counted by Algorithm. A
// call goes only when every limit that matches it admits it.
type Limit struct {
	Name      string    `yaml:"name"`             // unique in its throttle
	Max       int64     `yaml:"max"`              // N
	Per       Period    `yaml:"per,omitempty"`    // W; none for in_flight
	Zone      string    `yaml:"zone,omitempty"`   // IANA name, for calendar periods; default UTC
	Anchor    string    `yaml:"anchor,omitempty"` // start inside a calendar period, see Validate
	Burst     int64     `yaml:"burst,omitempty"`  // B
	Algorithm Algorithm `yaml:"algorithm,omitempty"`
	Counted   string    `yaml:"counted,omitempty"`   // answered (default) | sent
	Unit      string    `yaml:"unit,omitempty"`      // default "requests"
	Scope     string    `yaml:"scope,omitempty"`     // provider (default) | key | endpoint | key+endpoint
	Endpoints []string  `yaml:"endpoints,omitempty"` // none: all
	Instead   bool      `yaml:"instead,omitempty"`   // its endpoints leave the provider's general limits
	Charges   []Outcome `yaml:"charges,omitempty"`   // none: every answer counts
	Shared    bool      `yaml:"shared,omitempty"`    // kept in the ledger, where there is one
	Basis     string    `yaml:"basis,omitempty"`     // provider (default) | pacing | assumed
	Source    string    `yaml:"source,omitempty"`    // where the number was read
}

// Breaker configures the circuit breaker of a provider.
type Breaker struct {
	Off      bool          `yaml:"off,omitempty"`
	Failures int           `yaml:"failures,omitempty"` // in a row that open it; default 5
	Cooldown time.Duration `yaml:"cooldown,omitempty"` // open for so long; default 30s
	Probes   int           `yaml:"probes,omitempty"`   // successes that close it again; default 1
}

// Retry configures what is sent again.
type Retry struct {
	Off      bool          `yaml:"off,omitempty"`
	Attempts int           `yaml:"attempts,omitempty"` // the first counts; default 3
	Base     time.Duration `yaml:"base,omitempty"`     // first interval; default 500ms
	Max      time.Duration `yaml:"max,omitempty"`      // longest interval; default 30s
	Budget   float64       `yaml:"budget,omitempty"`   // retries as a share of the last 10 s of calls; default 0.2
}

// Endpoint is one named operation of a provider.
type Endpoint struct {
	Name              string            `yaml:"name"`
	Method            string            `yaml:"method,omitempty"` // default GET
	Path              string            `yaml:"path,omitempty"`   // with {placeholders}: {value} is the query's
	Kinds             []Kind            `yaml:"kinds,omitempty"`  // what it looks up
	Params            map[string]string `yaml:"params,omitempty"` // query parameters; values may have {placeholders}
	Cost              map[string]int64  `yaml:"cost,omitempty"`   // by unit, where the call names none
	EmptyIsSuspicious bool              `yaml:"empty_is_suspicious,omitempty"`
}

// Auth says how a request is authenticated.
type Auth struct {
	Kind string   `yaml:"kind,omitempty"` // header | query | basic | bearer | path | none
	Name string   `yaml:"name,omitempty"` // of the header, parameter or placeholder
	Env  []string `yaml:"env,omitempty"`  // the environment variables that hold the keys
}

// Identity says how a client must name itself.
type Identity struct {
	UserAgent string `yaml:"user_agent,omitempty"` // required User-Agent; {contact} is filled in
	Contact   bool   `yaml:"contact,omitempty"`    // an e-mail address or URL of ours is required
}

// Dialect says how a provider tells its limits, as data. The zero value means
// the standard conventions.
type Dialect struct {
	Budgets    []BudgetSource    `yaml:"budgets,omitempty"`
	RetryAfter []Source          `yaml:"retry_after,omitempty"` // the first that gives advice wins
	Used       map[string]Source `yaml:"used,omitempty"`        // real cost by unit
	Signals    []Signal          `yaml:"signals,omitempty"`     // the first that matches wins; then the standard rules
	Only       bool              `yaml:"only,omitempty"`        // only what is declared: no standard conventions besides
}

// BudgetSource says where an answer tells one quota.
type BudgetSource struct {
	Name      string `yaml:"name"`
	Unit      string `yaml:"unit,omitempty"`
	Limit     Source `yaml:"limit,omitempty"`
	Remaining Source `yaml:"remaining,omitempty"`
	Reset     Source `yaml:"reset,omitempty"`
	Used      Source `yaml:"used,omitempty"`
	Window    Source `yaml:"window,omitempty"`
}

// Source is one place in an answer and how its value is written.
type Source struct {
	Header  string `yaml:"header,omitempty"`
	JSON    string `yaml:"json,omitempty"`    // an RFC 9535 path
	Body    bool   `yaml:"body,omitempty"`    // the text of the body
	Pattern string `yaml:"pattern,omitempty"` // RE2 with one capture
	Index   int    `yaml:"index,omitempty"`   // into a list of values
	As      string `yaml:"as,omitempty"`      // seconds | milliseconds | epoch | epoch_ms | http_date | rfc3339 | duration | date | used_of_limit | retry_after
}

// Signal maps an answer to an outcome. All conditions given must hold.
type Signal struct {
	Status  []int   `yaml:"status,omitempty"`
	Header  *Match  `yaml:"header,omitempty"`
	JSON    *Match  `yaml:"json,omitempty"`
	Body    string  `yaml:"body,omitempty"` // RE2
	Outcome Outcome `yaml:"outcome"`
	Scope   string  `yaml:"scope,omitempty"`  // what is paused: provider | endpoint | key
	Limit   string  `yaml:"limit,omitempty"`  // the declared limit that is spent
	Before  bool    `yaml:"before,omitempty"` // refused before acting: may be sent again
}

// Match is a condition on one named value.
type Match struct {
	Name    string `yaml:"name,omitempty"` // of a header
	Path    string `yaml:"path,omitempty"` // of a JSON value, RFC 9535
	Equals  string `yaml:"equals,omitempty"`
	Matches string `yaml:"matches,omitempty"` // RE2
}

// Kind is what a query's value is.
type Kind string

// The kinds of indicator.
const (
	IP      Kind = "ip"
	Domain  Kind = "domain"
	URL     Kind = "url"
	Hash    Kind = "hash"
	Email   Kind = "email"
	Phone   Kind = "phone"
	Company Kind = "company"
	Text    Kind = "text"
)

// Query is one lookup.
type Query struct {
	Kind          Kind
	Value         string
	Endpoint, Key string // Key: the alias that the decision picked
	Params        map[string]string
}

// Result is the answer to a Query. Empty (no data) is an answer; a lookup that
// could not be asked is an error, never a Result.
type Result struct {
	Provider   string          `json:"provider"`
	Endpoint   string          `json:"endpoint,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
	Empty      bool            `json:"empty,omitempty"`
	Suspicious bool            `json:"suspicious,omitempty"` // empty, from a provider that answers so when it throttles
	Feedback   Feedback        `json:"-"`
	At         time.Time       `json:"at"`
}

// Adapter asks one provider. Implementations are safe for concurrent use.
type Adapter interface {
	// Provider returns the declaration: an inert value, asked once, at
	// registration.
	Provider() Provider
	// Lookup makes one call. It is not throttled: the Coordinator does that.
	Lookup(ctx context.Context, q Query) (Result, error)
}
