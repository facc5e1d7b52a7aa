package provider

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestOfStatus(t *testing.T) {
	want := map[int]Outcome{
		-1: Unknown, 0: Unknown, 99: Unknown, 100: Unknown, 101: OK, 199: Unknown, 200: OK, 204: OK, 299: OK, 304: OK, 399: OK,
		400: Rejected, 401: Unauthorized, 402: QuotaSpent, 403: Unauthorized, 404: Rejected, 408: Failed, 410: Rejected, 418: Rejected,
		422: Rejected, 429: RateLimited, 499: Rejected, 500: Failed, 502: Failed, 503: Overloaded, 504: Failed, 529: Overloaded, 599: Failed, 600: Unknown,
	}
	for status, outcome := range want {
		assert.Equal(t, outcome, OfStatus(status), status)
	}
}

func TestTakes(t *testing.T) {
	e := Endpoint{Kinds: []Kind{IP, Hash}}
	assert.True(t, e.Takes(Hash))
	assert.False(t, e.Takes(Domain))
	assert.False(t, Endpoint{}.Takes(IP))
}
