package main

import (
	"encoding/json"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// record is one lookup as JSON. OK says whether the provider answered: an answer
// without data is ok and empty, and a provider that could not be asked, or did not
// answer, is not ok and has an error. The two are never mixed up.
type record struct {
	Indicator  string          `json:"indicator"`
	Kind       provider.Kind   `json:"kind"`
	List       string          `json:"list"`
	Provider   string          `json:"provider"`
	Endpoint   string          `json:"endpoint"`
	OK         bool            `json:"ok"`
	Empty      bool            `json:"empty,omitempty"`      // the provider has no data
	Suspicious bool            `json:"suspicious,omitempty"` // empty, from one that has been seen to answer so when overloaded
	Cached     bool            `json:"cached,omitempty"`     // answered before, at At
	More       bool            `json:"more,omitempty"`       // the provider has more pages than are asked for
	Data       json.RawMessage `json:"data,omitempty"`       // with an error: the pages that came before it
	Error      *failure        `json:"error,omitempty"`
	Waited     float64         `json:"waited_seconds"` // for its turn
	At         time.Time       `json:"at,omitzero"`    // of the answer
}

type failure struct {
	Reason   coordinator.Reason `json:"reason"`
	Stage    coordinator.Stage  `json:"stage"` // attempt: the provider was asked; entry, queue: it was not
	Attempts int                `json:"attempts"`
	RetryAt  time.Time          `json:"retry_at,omitzero"`
	Message  string             `json:"message"`
}

// recordOf is what a list is told of a lookup.
func recordOf(l *lookup, list string) record {
	out := record{
		Indicator: l.value, Kind: l.kind, List: list, Provider: l.provider, Endpoint: l.endpoint,
		Waited: l.waited.Round(time.Microsecond).Seconds(), Data: l.result.Data,
	}
	if e := l.err; e != nil {
		out.Error = &failure{e.Reason, e.Stage, e.Attempts, e.RetryAt, e.Error()}
		if e.Reason == reasonMaxCalls {
			out.Error.Message = e.Err.Error() // ours, and without a secret
		}
		return out
	}
	out.OK, out.Empty, out.Suspicious, out.Cached = true, l.result.Empty, l.result.Suspicious, l.cached
	out.More, out.At = l.result.Next != "", l.result.At
	return out
}
