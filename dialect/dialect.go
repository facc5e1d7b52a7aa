// Package dialect reads an HTTP answer as its provider means it.
package dialect

import (
	"net/http"
	"time"

	"github.com/headgate/headgate/provider"
)

// Read classifies an answer by the declared dialect, then by the standard rules.
// It never panics and never blocks; body may be nil or cut short.
func Read(d provider.Dialect, r *http.Response, body []byte, now time.Time) provider.Feedback {
	return provider.Feedback{}
}
