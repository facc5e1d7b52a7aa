package dialect_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/provider"
)

func response(status int, header ...string) *http.Response {
	h := http.Header{}
	for i := 0; i < len(header); i += 2 {
		h.Add(header[i], header[i+1])
	}
	return &http.Response{StatusCode: status, Header: h, Body: io.NopCloser(strings.NewReader("")), ContentLength: -1, Request: &http.Request{Method: http.MethodGet}}
}

// Without a declaration the conventions hold.
func ExampleRead() {
	r := response(http.StatusTooManyRequests, "Retry-After", "30", "RateLimit-Policy", `"day";q=500;w=86400`, "RateLimit", `"day";r=0;t=30`)
	f := dialect.Read(provider.Dialect{}, r, nil, time.Now())
	fmt.Println(f.Outcome, f.RetryAfter)
	for _, b := range f.Budgets {
		fmt.Println(b.Name, b.Remaining, "of", b.Limit, "until", b.Reset)
	}
	// Output:
	// rate_limited 30s
	// day 0 of 500 until 30s
}

// A provider that refuses in words of its own is declared so. Only then is a body needed
// to know what an answer means.
func ExampleNeedsBody() {
	d := provider.Dialect{
		Signals:    []provider.Signal{{Status: []int{200}, JSON: &provider.Match{Path: "$.error", Equals: "over_limit"}, Outcome: provider.RateLimited}},
		RetryAfter: []provider.Source{{JSON: "$.wait", As: "seconds"}},
		Used:       map[string]provider.Source{provider.Tokens: {JSON: "$.usage.total"}},
	}
	r := response(http.StatusOK, "Content-Type", "application/json")
	fmt.Println(dialect.NeedsBody(provider.Dialect{}, r), dialect.NeedsBody(d, r), dialect.NeedsWholeBody(d, r))

	f := dialect.Read(d, r, []byte(`{"error":"over_limit","wait":12}`), time.Now())
	fmt.Println(f.Outcome, f.RetryAfter)
	f = dialect.Read(d, r, []byte(`{"usage":{"total":120}}`), time.Now())
	fmt.Println(f.Outcome, f.Used)
	// Output:
	// false true true
	// rate_limited 12s
	// ok map[tokens:120]
}

// Values of an answer of which nothing is asked but to be there, such as a cursor.
func ExampleValue() {
	body := []byte(`{"items":[{"ip":"192.0.2.1"},{"ip":"192.0.2.2"}],"next":"c1"}`)
	cursor, ok := dialect.Value(provider.Source{JSON: "$.next"}, http.Header{}, body)
	fmt.Println(cursor, ok)
	items, ok := dialect.Items("$.items", body)
	fmt.Println(len(items), ok)
	// Output:
	// c1 true
	// 2 true
}

// A body is decoded up to a bound, however much it would swell.
func ExampleDecode() {
	body, ok := dialect.Decode(http.Header{}, []byte("as it is"), 5)
	fmt.Printf("%s %v\n", body, ok)
	_, ok = dialect.Decode(http.Header{"Content-Encoding": {"gzip"}}, []byte("not gzip"), 5)
	fmt.Println(ok)
	// Output:
	// as it true
	// false
}

// The provider's clock, against which its absolute times are measured.
func ExampleDate() {
	h := http.Header{"Date": {"Tue, 01 Dec 2026 00:00:00 GMT"}}
	fmt.Println(dialect.Date(h).UTC())
	h.Set("Age", "60") // from a cache: that clock tells nothing
	fmt.Println(dialect.Date(h).IsZero())
	// Output:
	// 2026-12-01 00:00:00 +0000 UTC
	// true
}
