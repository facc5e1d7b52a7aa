// Package provider is the vocabulary of Headgate: what a provider declares
// (limits, endpoints, breaker, retry, dialect) and what it answers (outcome,
// advice, budgets). It holds plain values, their parsing and their validation.
// Values are safe for concurrent use as long as nobody changes them.
//
// Not in it: time arithmetic (package limit), names of registered providers
// (package registry), HTTP (package dialect).
package provider

import "time"

// Provider is the declaration of one third-party provider. Slug is the only
// required field; every zero value means the documented default. In YAML and
// JSON its keys are lower_snake_case and its durations are text such as "30s".
type Provider struct {
	Slug       string        `yaml:"slug"`               // [a-z0-9-]+, unique in a registry
	Name       string        `yaml:"name,omitempty"`     // for people
	Category   string        `yaml:"category,omitempty"` // internet-scan, reputation, llm, …
	BaseURL    string        `yaml:"base_url,omitempty"` // absolute; the transport routes by it
	Hosts      []string      `yaml:"hosts,omitempty"`    // more hosts that belong to it, "host" or "host:port"
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

// Breaker configures the circuit breaker of a provider. The zero value is the
// default breaker; see [Breaker.WithDefaults].
type Breaker struct {
	Off      bool          `yaml:"off,omitempty"`
	Failures int           `yaml:"failures,omitempty"` // in a row that open it; default 5
	Cooldown time.Duration `yaml:"cooldown,omitempty"` // open for so long; default 30s
	Probes   int           `yaml:"probes,omitempty"`   // successes that close it again; default 1
}

// Retry configures what is sent again. The zero value is the default; see
// [Retry.WithDefaults].
type Retry struct {
	Off      bool          `yaml:"off,omitempty"`
	Attempts int           `yaml:"attempts,omitempty"` // the first counts; default 3
	Base     time.Duration `yaml:"base,omitempty"`     // first interval; default 500ms
	Max      time.Duration `yaml:"max,omitempty"`      // longest interval; default 30s
	Budget   float64       `yaml:"budget,omitempty"`   // retries as a share of the last 10 s of calls; default 0.2
}

// Endpoint is one named operation of a provider. Path, Params, Form, JSON and
// Headers may have {placeholders}; package adapters says what fills them.
type Endpoint struct {
	Name              string            `yaml:"name"`                 // unique in its provider
	Method            string            `yaml:"method,omitempty"`     // default GET
	Path              string            `yaml:"path,omitempty"`       // from base_url on; {value} is the query's
	Kinds             []Kind            `yaml:"kinds,omitempty"`      // what it looks up
	Params            map[string]string `yaml:"params,omitempty"`     // query parameters
	Form              map[string]string `yaml:"form,omitempty"`       // the body, as the fields of an HTML form
	JSON              string            `yaml:"json,omitempty"`       // or the body as JSON text, placeholders inside its strings
	Headers           map[string]string `yaml:"headers,omitempty"`    // further headers, such as Accept
	Replayable        bool              `yaml:"replayable,omitempty"` // may be sent twice, though not by GET or HEAD: a search
	Paging            *Paging           `yaml:"paging,omitempty"`     // where a lookup is several calls
	Cost              map[string]int64  `yaml:"cost,omitempty"`       // by unit, where the call names none; of each page
	EmptyIsSuspicious bool              `yaml:"empty_is_suspicious,omitempty"`
}

// Paging says how an endpoint tells a long answer in pages, each of which is a
// call of its own. The placeholder {page} in the endpoint's params, form, json or
// path is the page that is asked for: what an answer told (Next), else a number.
type Paging struct {
	// Next is where an answer tells the next page; none: the answer was the last.
	// On the first page params, form fields and headers with {page} are left out.
	// Without Next pages are numbers, Start, Start+Step and so on, until one has
	// no items.
	Next  Source `yaml:"next,omitempty"`
	Start int64  `yaml:"start,omitempty"` // the first page's number; default 0
	Step  int64  `yaml:"step,omitempty"`  // to the next; default 1, a page's size where items are counted
	Items string `yaml:"items,omitempty"` // RFC 9535 path of a page's items; default $[*]
	Max   int    `yaml:"max,omitempty"`   // pages of one lookup; default 10
}

// Auth says how a request is authenticated. It never holds a key, only the
// names of the environment variables that do.
type Auth struct {
	Kind     string            `yaml:"kind,omitempty"`     // header | query | form | basic | bearer | path | none
	Name     string            `yaml:"name,omitempty"`     // of the header, parameter, field or placeholder
	Prefix   string            `yaml:"prefix,omitempty"`   // before the key in a header: "Token "
	Env      []string          `yaml:"env,omitempty"`      // the environment variables that hold the keys; basic: user:password
	With     map[string]string `yaml:"with,omitempty"`     // what goes along: further names, each to the variable that holds its value
	Optional bool              `yaml:"optional,omitempty"` // it answers without a key, too
}

// Identity says how a client must name itself.
type Identity struct {
	UserAgent string `yaml:"user_agent,omitempty"` // required User-Agent; {contact} is filled in
	Contact   bool   `yaml:"contact,omitempty"`    // an e-mail address or URL of ours is required
}
