package provider

import (
	"context"
	"encoding/json"
	"time"
)

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
	Page          string // what Result.Next told; "": the first
}

// Result is the answer to a Query. Empty (no data) is an answer; a lookup that
// could not be asked is an error, never a Result. Where an endpoint has pages Data
// is the array of their items.
type Result struct {
	Provider   string          `json:"provider"`
	Endpoint   string          `json:"endpoint,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
	Empty      bool            `json:"empty,omitempty"`
	Suspicious bool            `json:"suspicious,omitempty"` // empty, from a provider that answers so when it throttles
	Next       string          `json:"next,omitempty"`       // there is more: Query.Page of the next page
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
