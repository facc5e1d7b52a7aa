package provider

import (
	"math"
	"time"
)

// Forever is a duration without end. It is written "forever" in YAML and JSON,
// and only MaxWait and MaxRetryAfter may have it.
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

// What answers may change.
const (
	LearnLower = "lower" // told numbers only tighten the declared ones (default)
	LearnRaise = "raise" // and may loosen them
)

// Everything in Throttle.Off switches the whole provider off.
const Everything = "*"

// The units that have a name of their own here. Others may be declared.
const (
	Requests = "requests" // 1 per call unless named
	Tokens   = "tokens"
	Credits  = "credits"
	Bytes    = "bytes"
)

// Throttle declares the limits of a provider and what to do with excess. The
// zero value limits nothing.
//
// RPS, RPM, RPH, RPD, Burst, Algorithm and MaxInFlight are the short form of
// Limits; see [Throttle.Expand]. Zero means absent, never "none at all". For
// the defaults of the other fields see [Throttle.WithDefaults].
//
// LeastRoundTrip is a promise of whoever declares it: the least time that a request
// takes to where the provider counts it, and the least that an answer takes from there
// (the provider's own least work after counting may be added), over all ways that calls
// of this process take, come to as much. It is not the shortest round trip where the
// shortest way there and the shortest way back never meet in one call: of two routes,
// 10 ms there and 190 ms back and the reverse, the leasts come to 20 ms. With it a call
// counts by so much before its answer, never before it went: throughput is W/(W + round
// trip − LeastRoundTrip) of the rate, and never more than one call a unit and round trip.
// Limits whose windows follow the clock (fixed_window, sliding_window_counter), that are
// counted: sent or kept in a ledger, and in_flight caps have nothing of it. If it is too
// long, more goes than the provider allows; an answer in less time refutes it.
type Throttle struct {
	RPS            float64       `yaml:"rps,omitempty"`              // requests a second
	RPM            float64       `yaml:"rpm,omitempty"`              // requests a minute
	RPH            float64       `yaml:"rph,omitempty"`              // requests an hour
	RPD            float64       `yaml:"rpd,omitempty"`              // requests in 24 hours, rolling
	Burst          int64         `yaml:"burst,omitempty"`            // see Expand
	Algorithm      Algorithm     `yaml:"algorithm,omitempty"`        // of the rate with the shortest period
	Excess         ExcessPolicy  `yaml:"excess,omitempty"`           // queue (default) | reject | delay
	MaxQueue       int           `yaml:"max_queue,omitempty"`        // places in the queue; default 1,000
	MaxWait        time.Duration `yaml:"max_wait,omitempty"`         // of a call in all; default 1h, 30s under delay; "forever"
	MaxInFlight    int           `yaml:"max_in_flight,omitempty"`    // calls out at once; 0: no cap
	Penalty        time.Duration `yaml:"penalty,omitempty"`          // shortest pause after a refusal without advice; default 1s
	Warmup         time.Duration `yaml:"warmup,omitempty"`           // after a pause, from 10 % of the rate to all of it
	ArrivalWithin  time.Duration `yaml:"arrival_within,omitempty"`   // a request has arrived this long after it was sent
	LeastRoundTrip time.Duration `yaml:"least_round_trip,omitempty"` // no way there and back is shorter, see below; 0: not known
	MaxRetryAfter  time.Duration `yaml:"max_retry_after,omitempty"`  // longer advice is a refusal, not a wait; default 24h
	Adaptive       bool          `yaml:"adaptive,omitempty"`
	Learn          string        `yaml:"learn,omitempty"`       // lower (default) | raise
	BadAnswers     *Limit        `yaml:"bad_answers,omitempty"` // a budget of 401, 403 and 429 answers; its name may be left out
	Off            []string      `yaml:"off,omitempty"`         // endpoints that may not be called; Everything: none may
	Limits         []Limit       `yaml:"limits,omitempty"`
}

// Limit is one bound: at most Max units Per period, counted by Algorithm. A
// call goes only when every limit that matches it admits it. Name and Max are
// required, and Per unless the algorithm is in_flight; see [Limit.WithDefaults]
// for the rest.
type Limit struct {
	Name      string           `yaml:"name"`                // unique in its throttle
	Max       int64            `yaml:"max"`                 // N, at least 1
	Per       Period           `yaml:"per,omitempty"`       // W; none for in_flight
	Zone      string           `yaml:"zone,omitempty"`      // IANA name, for calendar periods; default UTC
	Anchor    string           `yaml:"anchor,omitempty"`    // where calendar periods start, see AnchorParts
	Burst     int64            `yaml:"burst,omitempty"`     // B, of token_bucket (default Max) and leaky_bucket (default 0)
	Algorithm Algorithm        `yaml:"algorithm,omitempty"` // default sliding_window; fixed_window for calendar periods
	Counted   string           `yaml:"counted,omitempty"`   // answered (default) | sent
	Unit      string           `yaml:"unit,omitempty"`      // default "requests"
	Scope     string           `yaml:"scope,omitempty"`     // provider (default) | key | endpoint | key+endpoint
	Endpoints []string         `yaml:"endpoints,omitempty"` // none: all
	Keys      map[string]int64 `yaml:"keys,omitempty"`      // of scope key: another Max for some keys, by alias
	Instead   bool             `yaml:"instead,omitempty"`   // its endpoints leave the provider's general limits
	Charges   []Outcome        `yaml:"charges,omitempty"`   // none: every answer counts
	Shared    bool             `yaml:"shared,omitempty"`    // kept in the ledger, where there is one
	Basis     string           `yaml:"basis,omitempty"`     // provider (default) | pacing | assumed
	Source    string           `yaml:"source,omitempty"`    // where the number was read
}

// OfKey returns the limit of one key: with the Max that Keys gives it. A burst that
// was as large as Max stays so; a smaller one is no larger than the new Max.
func (l Limit) OfKey(alias string) Limit {
	size, ok := l.Keys[alias]
	if !ok {
		return l
	}
	if l.Burst == l.Max {
		l.Burst = size
	}
	if l.Algorithm == TokenBucket || l.Algorithm == GCRA {
		l.Burst = min(l.Burst, size)
	}
	l.Max = size
	return l
}
