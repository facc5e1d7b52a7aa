package dialect_test

import (
	"net/http"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/provider"
)

const tenYears = 10 * 365 * 24 * time.Hour

var everyOutcome = []provider.Outcome{
	provider.OK, provider.RateLimited, provider.QuotaSpent, provider.Banned, provider.Overloaded,
	provider.Unauthorized, provider.Rejected, provider.Failed, provider.Unknown,
}

// check fails where a Feedback holds what no answer can mean.
func check(t *testing.T, f provider.Feedback) {
	t.Helper()
	if !slices.Contains(everyOutcome, f.Outcome) {
		t.Fatalf("outcome %q", f.Outcome)
	}
	if f.RetryAfter < 0 || f.RetryAfter > tenYears {
		t.Fatalf("advice %v", f.RetryAfter)
	}
	if f.Outcome == provider.OK && f.RetryAfter != 0 {
		t.Fatalf("advice %v on an ok", f.RetryAfter)
	}
	for _, b := range f.Budgets {
		if b.Limit < 0 || b.Remaining < 0 || b.Used < 0 || b.Reset < 0 || b.Window < 0 || b.Reset > tenYears || b.Window > tenYears {
			t.Fatalf("budget %+v", b)
		}
		if b.HasLimit != (b.Limit > 0) || !b.HasRemaining && b.Remaining != 0 || !b.HasReset && b.Reset != 0 {
			t.Fatalf("budget %+v", b)
		}
		if len(b.Name) > 64 || len(b.Unit) > 64 {
			t.Fatalf("budget %+v", b)
		}
	}
	for unit, n := range f.Used {
		if n < 0 {
			t.Fatalf("%d %s", n, unit)
		}
	}
	if len(f.Budgets) > 64 || len(f.Limit) > 64 || len(f.Detail) > 100 {
		t.Fatalf("%+v", f)
	}
}

// FuzzRead: whatever a provider sends, Read neither panics nor turns it into a
// wait that nobody asked for.
func FuzzRead(f *testing.F) {
	f.Add(429, "Retry-After", "60", "Wed, 21 Oct 2015 07:27:30 GMT", "", []byte(`{"error":"slow down"}`))
	f.Add(403, "retry-after", "Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 2015 07:27:30 GMT", "0", []byte(nil))
	f.Add(503, "Retry-After", "1e999", "junk", "30", []byte("<html>"))
	f.Add(200, "RateLimit", `quota;t=1`, "", "", []byte(`[]`))
	f.Add(429, "RateLimit", `"default";r=0;t=50;pk=:dHJpYWwxMjEzMjM=:`, "", "", []byte(`{"type":"about:blank"}`))
	f.Add(429, "RateLimit", "limit=100, remaining=50, reset=5", "", "", []byte(nil))
	f.Add(429, "X-RateLimit-Limit", `10, 10;window=1;name="per-ip", 1000;window=3600`, "", "", []byte(nil))
	f.Add(429, "X-RateLimit-Reset-Tokens", "6m0s", "", "", []byte(nil))
	f.Add(-1, "", "\xff", "\x00", "-1", []byte{0xff})
	f.Add(529, "RETRY-AFTER", "315360000.000000001", "", "", []byte(nil))
	f.Fuzz(func(t *testing.T, status int, name, value, date, age string, body []byte) {
		h := http.Header{name: {value}, "Date": {date}, "Age": {age}}
		fb := dialect.Read(provider.Dialect{}, &http.Response{StatusCode: status, Header: h}, body, now)
		check(t, fb)
		if fb.RetryAfter != 0 && (value == "" || value[0] == '-' || value[0] == '+') {
			t.Fatalf("advice %v from %q", fb.RetryAfter, value)
		}
		if want := "status " + strconv.Itoa(status); fb.Outcome != provider.OK && fb.Detail != want {
			t.Fatalf("detail %q", fb.Detail)
		}
	})
}

// FuzzReadDeclared: the same with a declaration that reads everything, from one
// header and from the body, in a notation of the fuzzer's choice.
func FuzzReadDeclared(f *testing.F) {
	f.Add(uint8(0), 0, 429, "60", "application/json", "", []byte(`{"a":{"wait":5}}`))
	f.Add(uint8(1), 1, 200, "1, 2", "", "gzip", []byte("\x1f\x8b\x08"))
	f.Add(uint8(6), 0, 403, "6m0s", "", "deflate", []byte("retry in 45.8s"))
	f.Add(uint8(7), 0, 429, "Mon Mar 02 2026 11:05:00 GMT+0000 (UTC)", "", "", []byte(`{"wait":"2026-03-02T11:05Z"}`))
	f.Add(uint8(8), 2, 418, "32/40", "application/problem+json", "", []byte(`{"type":"https://iana.org/assignments/http-problem-types#quota-exceeded","violated-policies":["a"]}`))
	f.Add(uint8(11), 0, 200, "0.5", "", "", []byte("API count exceeded"))
	notations := []string{"", "seconds", "milliseconds", "epoch", "epoch_ms", "http_date", "rfc3339", "duration", "date", "used_of_limit", "retry_after", "percent", "rate"}
	f.Fuzz(func(t *testing.T, notation uint8, index, status int, value, kind, encoding string, body []byte) {
		as := notations[int(notation)%len(notations)]
		header := provider.Source{Header: "X-Value", Index: index, As: as}
		node, text := provider.Source{JSON: "$..wait", Index: index, As: as}, provider.Source{Body: true, Pattern: `([0-9][0-9a-zA-Z:.+-]*)`, Index: index, As: as}
		d := provider.Dialect{
			Budgets: []provider.BudgetSource{
				{Name: "h", Limit: header, Remaining: header, Reset: header, Used: header, Window: header},
				{Name: "j", Limit: node, Remaining: node, Reset: node, Used: node, Window: node},
				{Name: "t", Limit: text, Remaining: text, Reset: text, Used: text, Window: text},
			},
			RetryAfter: []provider.Source{header, node, text},
			Used:       map[string]provider.Source{"h": header, "j": node, "t": text},
			Signals: []provider.Signal{
				{Status: []int{418}, Outcome: provider.Banned},
				{Header: &provider.Match{Name: "x-value", Matches: `^(\w+\s?)*$`}, JSON: &provider.Match{Path: "$..code", Equals: "429"}, Outcome: provider.QuotaSpent, Limit: "h"},
				{Body: "(?i)exceeded", Outcome: provider.RateLimited},
			},
		}
		r := &http.Response{StatusCode: status, Header: http.Header{"X-Value": {value, value}, "Content-Type": {kind}, "Content-Encoding": {encoding}}}
		check(t, dialect.Read(d, r, body, now))
		again := dialect.Read(d, r, body, now)
		check(t, again)
	})
}

// FuzzDeclaration: a dialect that Parse accepts can be read by, whatever it says.
func FuzzDeclaration(f *testing.F) {
	for _, v := range vectors {
		if v.dialect != "" {
			f.Add(v.dialect, v.status, []byte(v.body))
		}
	}
	f.Add("retry_after: [{json: '$..[?@.a && (@.b || !@[0:2:-1])]', pattern: '(.)'}]", 429, []byte(`{"a":[1,2,{"b":3}]}`))
	f.Fuzz(func(t *testing.T, text string, status int, body []byte) {
		p, err := provider.Parse([]byte("slug: x\nthrottle: {limits: [{name: day, max: 5, per: day}]}\ndialect: {" + text + "}"))
		if err != nil {
			p, err = provider.Parse([]byte("slug: x\nthrottle: {limits: [{name: day, max: 5, per: day}]}\ndialect:\n  " + text))
		}
		if err != nil || len(text) > 4096 {
			return
		}
		r := &http.Response{StatusCode: status, Header: http.Header{"X-Ratelimit-Reset": {"5"}, "Retry-After": {"7"}}}
		dialect.NeedsBody(p.Dialect, r)
		fb := dialect.Read(p.Dialect, r, body, now)
		if fb.RetryAfter < 0 || fb.RetryAfter > tenYears {
			t.Fatalf("advice %v", fb.RetryAfter)
		}
	})
}
