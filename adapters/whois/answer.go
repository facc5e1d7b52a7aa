package whois

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/headgate/headgate/provider"
)

// item is what Data holds of one answer.
type item struct {
	Server string `json:"server"`
	Text   string `json:"text"`
}

// read fills r with what an answer says. A feedback with an outcome says why it is
// no answer to the question.
func (a *Adapter) read(r *provider.Result, s search, text string) provider.Feedback {
	r.Data, r.Empty = json.RawMessage("[]"), true
	switch classify(text) {
	case blank:
		return provider.Feedback{Outcome: provider.RateLimited, Detail: "the answer is empty"}
	case refusal:
		return provider.Feedback{Outcome: provider.RateLimited, Detail: "the server refuses"}
	case unclear:
		return provider.Feedback{Outcome: provider.Unknown, Detail: "a short answer that is neither data nor a known no"}
	case nothing:
		return provider.Feedback{}
	}
	r.Next = a.next(s.server, text)
	switch {
	case s.atRoot() && r.Next != "":
		return provider.Feedback{} // who keeps it, not what it is
	case s.atRoot() && !s.ip:
		return provider.Feedback{Outcome: provider.Rejected, Detail: "knows no WHOIS server for this domain"}
	case s.server == iana:
		r.Next = "" // its own record
	}
	r.Data, _ = json.Marshal([]item{{s.server, text}}) // strings always marshal, with U+FFFD for what is no UTF-8
	r.Empty = false
	return provider.Feedback{}
}

// next is the server that an answer refers to, if there is one to go on with.
func (a *Adapter) next(asked, text string) string {
	m := a.refer.FindStringSubmatch(text)
	if m == nil {
		return ""
	}
	server, ok := hostname(m[1])
	if !ok || !strings.Contains(server, ".") || server == asked || server == iana {
		return ""
	}
	return server
}

// meaning is what a text is. WHOIS has no status: only its words tell.
type meaning int

const (
	data meaning = iota
	nothing
	refusal
	blank   // throttling, as a rule: who knows nothing says so
	unclear // too short to be a record
)

// Below shortest SpiderFoot takes a text for throttling; above longest none is a
// refusal, but a record with terms of use, which are full of its words.
const (
	shortest = 250
	longest  = 1 << 10
)

var (
	// One "Key: value" of a record. A link is none.
	field = regexp.MustCompile(`(?m)^[ \t]*([A-Za-z][A-Za-z0-9 /_-]{0,40}):[ \t]*[^\s/]`)
	// A key that is none of a record.
	remark = regexp.MustCompile(`(?i)^(error|note|notice|warning|message)\b`)
	none   = regexp.MustCompile(`(?im)^[\s%#*>"-]*(` +
		`no match\b|not found\b|no (entries|data|objects?|records?|information)\b.{0,40}\b(found|available)\b|nothing found\b|` +
		`(the queried )?object does not exist\b|(the )?domain\b.{0,80}\b(not found|does not exist|is not registered|has not been registered|is available for)\b|` +
		`this query returned 0 objects\b|error:[ \t]*101\b|(domain )?status:[ \t]*(free|available|no object found|not registered)\b)`)
	refused = regexp.MustCompile(`(?i)\b(limit|quota|rate|maximum)\b[^\n]{0,80}\b(exceeded|reached)\b|\b(exceeded|reached)\b[^\n]{0,80}\b(limit|quota|rate|maximum)\b|` +
		`\btoo many (connections|lookups|queries|requests)\b|\b(access|permission) (is |has been )?denied\b|\b(lookup|query|request|connection) refused\b|\bblack-?listed\b|\bblock-?list\b|\bslow down\b`)
)

// classify reads a text. Only one without a record can be a refusal, and only a
// line of its own says that there is nothing.
func classify(text string) meaning {
	switch {
	case strings.TrimSpace(text) == "":
		return blank
	case none.MatchString(text):
		return nothing
	case isRecord(text), len(text) >= longest:
		return data
	case refused.MatchString(text):
		return refusal
	case len(text) < shortest:
		return unclear
	}
	return data
}

// isRecord tells a text with two fields.
func isRecord(text string) bool {
	n := 0
	for _, m := range field.FindAllStringSubmatch(text, 20) {
		if !remark.MatchString(m[1]) {
			n++
		}
	}
	return n >= 2
}
