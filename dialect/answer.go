package dialect

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/provider"
)

// answer is what the readers of this package look at. It belongs to one Read.
type answer struct {
	status int
	header http.Header
	now    time.Time
	raw    []byte

	odd   bool // some name is not in its canonical form
	rated bool // some name belongs to the conventions for budgets

	decoded bool   // text and cut are there
	text    []byte // of at most MaxUsedBody
	cut     bool   // the body is longer than text
	parsed  bool   // document is there
	node    any    // of the JSON document
	isJSON  bool
}

func newAnswer(r *http.Response, body []byte, now time.Time) answer {
	a := answer{status: r.StatusCode, header: r.Header, now: now, raw: body}
	for name := range a.header {
		a.odd = a.odd || textproto.CanonicalMIMEHeaderKey(name) != name
		_, _, rated := family(name)
		a.rated = a.rated || rated
	}
	return a
}

// lines returns the field lines of one name, whatever its case: an answer made
// by hand need not have canonical names.
func (a *answer) lines(name string) []string {
	if !a.odd {
		if found, ok := a.header[name]; ok || canonical(name) {
			return found
		}
	}
	var names []string
	for k := range a.header {
		if len(k) == len(name) && strings.EqualFold(k, name) {
			if !a.odd {
				return a.header[k]
			}
			names = append(names, k)
		}
	}
	slices.Sort(names) // so that the same answer always reads the same
	var all []string
	for _, k := range names {
		all = append(all, a.header[k]...)
	}
	return all
}

// canonical tells whether a name of letters and hyphens is written as net/http
// writes it; textproto's own way of telling allocates where it is not.
func canonical(name string) bool {
	upper := true
	for i := range len(name) {
		c := name[i]
		if upper && 'a' <= c && c <= 'z' || !upper && 'A' <= c && c <= 'Z' {
			return false
		}
		upper = c == '-'
	}
	return true
}

// Date is the provider's clock as it answered, in whole seconds; zero where the
// answer does not say, or comes from a cache. It is for Feedback.Date.
func Date(h http.Header) time.Time {
	a := answer{header: h}
	if a.cached() {
		return time.Time{}
	}
	return a.date()
}

// date is the answer's own instant. The two clocks need not agree, so what the
// provider dates is measured against the provider's clock.
func (a *answer) date() time.Time {
	for _, line := range a.lines("Date") {
		if t, err := http.ParseTime(strings.TrimSpace(line)); err == nil {
			return t
		}
	}
	return a.now
}

// cached says whether a cache gave the answer: its fields then tell of an
// earlier moment.
func (a *answer) cached() bool {
	for _, line := range a.lines("Age") {
		age := strings.TrimSpace(line)
		// Not parsed as a number: an age that overflows is old all the same.
		if decimal(age) && strings.Trim(age, "0.") != "" {
			return true
		}
	}
	return false
}

// bodyText returns the decoded body, at most most bytes of it; nil where its
// encoding cannot be read.
func (a *answer) bodyText(most int) []byte {
	if !a.decoded {
		a.decoded = true
		text, ok := Decode(a.header, a.raw, MaxUsedBody+1)
		if ok {
			a.cut = len(text) > MaxUsedBody
			text = text[:min(len(text), MaxUsedBody)]
			a.text = bytes.TrimSpace(bytes.TrimPrefix(text, []byte("\ufeff")))
		}
	}
	return a.text[:min(len(a.text), most)]
}

// document returns the body as JSON where it is whole within most bytes.
func (a *answer) document(most int) (any, bool) {
	text := a.bodyText(MaxUsedBody)
	if a.cut || len(text) == 0 || len(text) > most {
		return nil, false
	}
	if !a.parsed {
		a.parsed = true
		a.node, a.isJSON = parseJSON(text)
	}
	return a.node, a.isJSON
}

// maxNesting bounds what a path descends into.
const maxNesting = 200

// parseJSON reads one JSON value. Numbers stay as they are written.
func parseJSON(text []byte) (any, bool) {
	if strings.IndexByte("{[\"-0123456789tfn", text[0]) < 0 || deep(text) {
		return nil, false
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, false
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, false
	}
	return v, true
}

// deep tells JSON with too many brackets inside each other.
func deep(text []byte) bool {
	open, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{', c == '[':
			if open++; open > maxNesting {
				return true
			}
		case c == '}', c == ']':
			open--
		}
	}
	return false
}

// scalar returns the text of a JSON value; of arrays and objects only where they
// are empty.
func scalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case json.Number:
		return v.String(), true
	case bool:
		if v {
			return "true", true
		}
		return "false", true
	case nil:
		return "null", true
	case []any:
		return "[]", len(v) == 0
	case map[string]any:
		return "{}", len(v) == 0
	}
	return "", false
}

// claims says whether the declaration reads that header itself.
func claims(d *provider.Dialect, name string) bool {
	is := func(s provider.Source) bool { return s.Header != "" && strings.EqualFold(s.Header, name) }
	for _, b := range d.Budgets {
		if is(b.Limit) || is(b.Remaining) || is(b.Reset) || is(b.Used) || is(b.Window) {
			return true
		}
	}
	return slices.ContainsFunc(d.RetryAfter, is)
}
