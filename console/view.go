package console

import (
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// Status is what GET /api/state answers: the providers that match, by urgency, one
// page of them. Instants are RFC 3339, lengths of time are seconds; what is zero or
// unknown is left out. Of what callers name (flows, endpoints, the reason of a pause) the
// first 256 bytes are told.
type Status struct {
	At         time.Time         `json:"at"`
	ShutDown   bool              `json:"shut_down"`
	Conditions map[Condition]int `json:"conditions"` // providers in each, whatever is searched for
	InFlight   int               `json:"in_flight"`  // calls, at all providers
	Waiting    int               `json:"waiting"`
	Rate       float64           `json:"calls_per_second"`        // over the last minute
	Budget     *Shared           `json:"shared_budget,omitempty"` // with other processes; nil: none is shared
	Total      int               `json:"total"`                   // providers that match
	Page       int               `json:"page"`                    // from 1
	Pages      int               `json:"pages"`
	Providers  []Provider        `json:"providers"`
}

// Provider is one provider, as a list shows it.
type Provider struct {
	Slug      string    `json:"slug"`
	Name      string    `json:"name,omitempty"`
	Category  string    `json:"category,omitempty"`
	Condition Condition `json:"condition"`
	Why       string    `json:"why,omitempty"`    // what the condition comes from
	Until     time.Time `json:"until,omitzero"`   // when it may be over
	Limits    []Limit   `json:"limits,omitempty"` // that all calls share, and those of endpoints
	Queue     Queue     `json:"queue"`
	InFlight  int       `json:"in_flight"` // calls
	Breaker   Breaker   `json:"breaker"`
	Pauses    []Pause   `json:"pauses,omitempty"` // in force
	Busiest   *Key      `json:"busiest_key,omitempty"`
	KeyCount  int       `json:"key_count"`
	Rate      float64   `json:"calls_per_second"` // over the last minute
	Errors    float64   `json:"error_rate"`       // share of the answers in the last minute
	Refusals  int64     `json:"refused_lately"`   // calls, in the last minute
	P50       float64   `json:"p50_seconds"`      // of attempts, in the last minute
	P99       float64   `json:"p99_seconds"`
	Off       []string  `json:"off,omitempty"`             // endpoints that are switched off; "*": all
	Excess    string    `json:"excess,omitempty"`          // queue, reject or delay
	Pools     []Pool    `json:"pools,omitempty"`           // that its calls share with others'
	Budget    float64   `json:"retry_budget"`              // what is left of it: 1 all, 0 nothing
	OutSince  time.Time `json:"oldest_out_since,omitzero"` // when the oldest call went that is out still
}

// Detail is what GET /api/providers/{slug} answers.
type Detail struct {
	At time.Time `json:"at"`
	Provider
	Keys      []Key                        `json:"keys,omitempty"`    // the 100 busiest
	Flows     []Flow                       `json:"flows,omitempty"`   // who waits, most first; needs a Recorder
	Refused   []Refusal                    `json:"refused,omitempty"` // by us, latest first; needs a Recorder
	Last      *Answer                      `json:"last,omitempty"`    // what the provider told last; needs a Recorder
	Answers   []Answer                     `json:"answers,omitempty"` // that were not ok, latest first; needs a Recorder
	History   *History                     `json:"history,omitempty"`
	Granted   int64                        `json:"granted"` // attempts that went, since the beginning
	Retries   int64                        `json:"retries"`
	Outcomes  map[provider.Outcome]int64   `json:"outcomes,omitempty"`                 // of attempts
	Reasons   map[coordinator.Reason]int64 `json:"reasons,omitempty"`                  // of refusals
	Ignored   int64                        `json:"ignored"`                            // units named by calls that no limit counts
	Lingering int                          `json:"lingering"`                          // calls without an answer whose units are held still
	RoundTrip float64                      `json:"round_trip_seconds"`                 // median of the last few
	LeastTrip float64                      `json:"least_round_trip_seconds,omitzero"`  // that is counted on: the declared one, or the shortest that was seen; 0: none
	Refuted   bool                         `json:"least_round_trip_refuted,omitempty"` // an answer took less than was declared
}

// Limit is one limit as it stands.
type Limit struct {
	Name     string    `json:"name"`
	Endpoint string    `json:"endpoint,omitempty"` // that it is of
	Unit     string    `json:"unit"`
	Max      int64     `json:"max"`
	Room     int64     `json:"room"` // units there are when none is out: max, of a token bucket its burst
	Used     int64     `json:"used"` // charged and still counting
	Held     int64     `json:"held"` // by calls that have no answer yet
	Left     int64     `json:"remaining"`
	Per      string    `json:"per,omitempty"` // none: so many at once
	Reset    time.Time `json:"reset_at,omitzero"`
	Origin   string    `json:"origin"`           // declared, overridden, learned, assumed, pacing
	Shared   bool      `json:"shared,omitempty"` // with other processes: used and held are this one's, remaining is all's
}

// Shared is how the budget stands that is shared with other processes.
type Shared struct {
	Mode      string `json:"mode"`      // shared; while the store does not answer: share, deny or open
	Processes int    `json:"processes"` // 0: not known
	Detail    string `json:"detail,omitempty"`
}

// Queue is who waits for a provider.
type Queue struct {
	Length   int       `json:"length"`
	Capacity int       `json:"capacity"`                // 0: no bound; where excess is reject, no place
	Wait     float64   `json:"estimated_wait_seconds"`  // of a call that came now: at least; limits of keys are left out
	Since    time.Time `json:"oldest_since,omitzero"`   // when the call that waits longest began to wait
	Oldest   float64   `json:"oldest_seconds,omitzero"` // and how long that is
}

// Breaker is the circuit breaker of a provider: closed, open, half-open or off.
type Breaker struct {
	State    string    `json:"state"`
	Failures int       `json:"failures"` // in a row
	Until    time.Time `json:"until,omitzero"`
}

// Pause is one pause: the provider's own refusal of a scope, or somebody's.
type Pause struct {
	Scope string    `json:"scope"`          // provider, endpoint or key
	Name  string    `json:"name,omitempty"` // of the key or the endpoint
	Why   string    `json:"why"`
	Until time.Time `json:"until"`
	Trial bool      `json:"trial"` // it is over: one call has gone alone
}

// Pool is a cap on the calls in flight of several providers together.
type Pool struct {
	Name    string `json:"name"` // the category; "": all providers
	Size    int    `json:"size"`
	Used    int    `json:"used"`
	Waiting int    `json:"waiting"` // providers that wait for a slot
}

// Key is one key, by the name that Options.KeyName gives it.
type Key struct {
	Name     string  `json:"name"`
	InFlight int     `json:"in_flight"`
	Limits   []Limit `json:"limits,omitempty"`
	Pause    *Pause  `json:"pause,omitempty"`
}

// Flow is how many calls of one flow wait.
type Flow struct {
	Name    string `json:"flow"` // "": calls that name none
	Waiting int    `json:"waiting"`
}
