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

// FuzzRead: whatever a provider sends, Read neither panics nor turns it into a
// wait that nobody asked for.
func FuzzRead(f *testing.F) {
	f.Add(429, "Retry-After", "60", "Wed, 21 Oct 2015 07:27:30 GMT", "", []byte(`{"error":"slow down"}`))
	f.Add(403, "retry-after", "Wed, 21 Oct 2015 07:28:00 GMT", "Wed, 21 Oct 2015 07:27:30 GMT", "0", []byte(nil))
	f.Add(503, "Retry-After", "1e999", "junk", "30", []byte("<html>"))
	f.Add(200, "RateLimit", `quota;t=1`, "", "", []byte(`[]`))
	f.Add(-1, "", "\xff", "\x00", "-1", []byte{0xff})
	f.Add(529, "RETRY-AFTER", "315360000.000000001", "", "", []byte(nil))
	outcomes := []provider.Outcome{
		provider.OK, provider.RateLimited, provider.QuotaSpent, provider.Overloaded,
		provider.Unauthorized, provider.Rejected, provider.Failed, provider.Unknown,
	}
	f.Fuzz(func(t *testing.T, status int, name, value, date, age string, body []byte) {
		h := http.Header{name: {value}, "Date": {date}, "Age": {age}}
		fb := dialect.Read(provider.Dialect{}, &http.Response{StatusCode: status, Header: h}, body, now)
		if !slices.Contains(outcomes, fb.Outcome) {
			t.Fatalf("outcome %q", fb.Outcome)
		}
		if fb.RetryAfter < 0 || fb.RetryAfter > 10*365*24*time.Hour {
			t.Fatalf("advice %v", fb.RetryAfter)
		}
		if fb.Outcome == provider.OK && fb.RetryAfter != 0 {
			t.Fatalf("advice %v on an ok", fb.RetryAfter)
		}
		if fb.RetryAfter != 0 && (value == "" || value[0] == '-' || value[0] == '+') {
			t.Fatalf("advice %v from %q", fb.RetryAfter, value)
		}
		if want := "status " + strconv.Itoa(status); fb.Outcome != provider.OK && fb.Detail != want {
			t.Fatalf("detail %q", fb.Detail)
		}
	})
}
