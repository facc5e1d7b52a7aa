package edge

import (
	"net/http"
	"strconv"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// standing is one limit as a header tells it.
type standing struct {
	name, unit string
	max        int64
	window     time.Duration // 0: of what is in flight
	remaining  int64
	reset      time.Duration // until more is there; 0: none is out, or nobody knows
	now        time.Time
}

// standingOf is a limit of which capacity units are there when none is out.
func standingOf(l coordinator.LimitState, now time.Time) standing {
	s := standing{name: l.Name, unit: l.Unit, max: l.Max, remaining: max(0, l.Max-l.Used-l.Held), now: now}
	s.window, _ = l.Per.Duration()
	if !l.ResetAt.IsZero() {
		s.reset = max(0, l.ResetAt.Sub(now))
	}
	return s
}

// The names of the fields, as http.Header has them: Set would make them anew for
// each answer.
const (
	fieldLimits    = "Ratelimit"
	fieldPolicy    = "Ratelimit-Policy"
	fieldMax       = "X-Ratelimit-Limit"
	fieldRemaining = "X-Ratelimit-Remaining"
	fieldReset     = "X-Ratelimit-Reset"
)

// setLimits sets RateLimit to what is left of each limit, RateLimit-Policy to what
// they are ("": as all says), and X-RateLimit-* to the scarcest.
func setLimits(h http.Header, all []standing, policy string) {
	if len(all) == 0 {
		return
	}
	field := make([]byte, 0, 128)
	var least *standing
	for i := range all {
		l := &all[i]
		if i > 0 {
			field = append(field, ", "...)
		}
		field = appendService(field, *l)
		if l.window > 0 && (least == nil || l.scarcer(*least)) {
			least = l
		}
	}
	if policy == "" {
		policy = policyOf(all)
	}
	values := [...]string{string(field), policy, "", "", ""}
	h[fieldLimits], h[fieldPolicy] = values[0:1:1], values[1:2:2]
	if least == nil { // nothing that these can tell; another's must not stand beside it
		delete(h, fieldMax)
		delete(h, fieldRemaining)
		delete(h, fieldReset)
		return
	}
	values[2] = strconv.FormatInt(least.max, 10)
	values[3] = strconv.FormatInt(least.remaining, 10)
	values[4] = strconv.FormatInt(least.now.Add(least.reset+time.Second-1).Unix(), 10)
	h[fieldMax], h[fieldRemaining], h[fieldReset] = values[2:3:3], values[3:4:4], values[4:5:5]
}

// scarcer tells that fewer units are left, or as few for longer.
func (s standing) scarcer(other standing) bool {
	if s.remaining != other.remaining {
		return s.remaining < other.remaining
	}
	return s.reset > other.reset
}

// The fields RateLimit and RateLimit-Policy are structured fields (RFC 9651) as
// draft-ietf-httpapi-ratelimit-headers has them since -08: lists of strings, each
// the name of a limit, with whole numbers of units and of seconds as parameters.

// appendService adds an item of RateLimit: "name";r=9;t=30.
func appendService(b []byte, l standing) []byte {
	b = append(appendString(b, l.name), ";r="...)
	b = strconv.AppendInt(b, min(l.remaining, maxInteger), 10)
	if l.reset > 0 {
		b = append(b, ";t="...)
		b = strconv.AppendInt(b, wholeSeconds(l.reset), 10)
	}
	return b
}

// policyOf is the field RateLimit-Policy.
func policyOf(all []standing) string {
	var field []byte
	for i, l := range all {
		if i > 0 {
			field = append(field, ", "...)
		}
		field = appendPolicy(field, l)
	}
	return string(field)
}

// appendPolicy adds an item of RateLimit-Policy: "name";q=10;w=60. A window has no
// parts of a second there: it is rounded up, which is the strict side.
func appendPolicy(b []byte, l standing) []byte {
	b = append(appendString(b, l.name), ";q="...)
	b = strconv.AppendInt(b, min(l.max, maxInteger), 10)
	if unit := quotaUnit(l); unit != "" {
		b = appendString(append(b, ";qu="...), unit)
	}
	if l.window > 0 {
		b = append(b, ";w="...)
		b = strconv.AppendInt(b, wholeSeconds(l.window), 10)
	}
	return b
}

// quotaUnit is the draft's name of a unit; "" is its default, requests. It has no
// names for tokens and credits: they go by their own.
func quotaUnit(l standing) string {
	switch {
	case l.window == 0:
		return "concurrent-requests"
	case l.unit == provider.Requests:
		return ""
	case l.unit == provider.Bytes:
		return "content-bytes"
	}
	return l.unit
}

const (
	maxInteger = 999_999_999_999_999 // of a structured field
	maxName    = 64                  // readers drop a longer one
)

// appendString adds a String of RFC 9651. It holds printable ASCII only: anything
// else in a name becomes a question mark.
func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	for i, c := range s {
		switch {
		case i >= maxName:
			return append(b, '"')
		case c < ' ' || c > '~':
			b = append(b, '?')
		case c == '"' || c == '\\':
			b = append(b, '\\', byte(c))
		default:
			b = append(b, byte(c))
		}
	}
	return append(b, '"')
}
