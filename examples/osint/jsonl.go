package main

import (
	"encoding/json"
	"io"
	"os"
	"sync"
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
	Data       json.RawMessage `json:"data,omitempty"`
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

func recordOf(l *lookup) record {
	out := record{
		Indicator: l.value, Kind: l.kind, List: l.list, Provider: l.provider, Endpoint: l.endpoint,
		Waited: l.waited.Round(time.Microsecond).Seconds(),
	}
	if e := l.err; e != nil {
		out.Error = &failure{e.Reason, e.Stage, e.Attempts, e.RetryAt, e.Error()}
		return out
	}
	out.OK, out.Empty, out.Suspicious = true, l.result.Empty, l.result.Suspicious
	out.Data, out.At = l.result.Data, l.result.At
	return out
}

// results writes one line a lookup, at once: what is done is kept whatever comes
// after. It is safe for concurrent use. A nil *results writes nothing.
type results struct {
	mu sync.Mutex
	w  *json.Encoder // after an error it writes nothing more, and returns it again
}

// results opens what the options name for them; nil: nothing. The function closes
// it.
func (o options) results(stdout io.Writer) (*results, func() error, error) {
	switch {
	case o.json:
		return newResults(stdout), func() error { return nil }, nil
	case o.output == "":
		return nil, func() error { return nil }, nil
	}
	f, err := os.Create(o.output)
	if err != nil {
		return nil, nil, err
	}
	return newResults(f), f.Close, nil
}

func newResults(w io.Writer) *results {
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return &results{w: encoder}
}

// write writes a lookup's line, unless the run ended before it was asked: nothing
// is known of it then. It returns the first error that there ever was.
func (r *results) write(l *lookup) error {
	if r == nil || l.broken && !l.asked {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.w.Encode(recordOf(l))
}
