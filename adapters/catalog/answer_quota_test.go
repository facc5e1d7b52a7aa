package catalog_test

import (
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

// These tests play the answers by which a provider says that it will not, each with
// the provider's own file, through adapter and coordinator.

// refused checks an error: the provider was asked, it is the reason, and it lies
// between earliest and a second and a half later when to come back.
func refused(t *testing.T, e *coordinator.Error, reason coordinator.Reason, earliest time.Duration) {
	t.Helper()
	require.NotNil(t, e)
	assert.Equal(t, reason, e.Reason, e)
	assert.GreaterOrEqual(t, e.RetryAfter, earliest, e)
	assert.LessOrEqual(t, e.RetryAfter, earliest+1500*time.Millisecond, e)
	assert.Equal(t, e.RetryAfter, time.Until(e.RetryAt))
}

func boundBy(t *testing.T, e *coordinator.Error, limit string) {
	t.Helper()
	require.NotNil(t, e.Limit, e)
	assert.Equal(t, limit, e.Limit.Name)
}

// limitOf is the limit of that name as it stands for the stage's key.
func (s *stage) limitOf(t *testing.T, name string) coordinator.LimitState {
	t.Helper()
	state := s.state(t)
	limits := state.Limits
	for _, k := range state.Keys {
		if k.Key == s.key() {
			limits = append(limits, k.Limits...)
		}
	}
	for _, l := range limits {
		if l.Name == name {
			return l
		}
	}
	require.Fail(t, "no such limit", name)
	return coordinator.LimitState{}
}

// impatient makes one lookup that does not wait.
func (s *stage) impatient(t *testing.T, kind provider.Kind, endpoint, value string) (provider.Result, *coordinator.Error) {
	t.Helper()
	call := coordinator.Call{Provider: s.p.Slug, Key: s.key(), Wait: -1}
	return s.execute(t, call, provider.Query{Kind: kind, Endpoint: endpoint, Value: value})
}

func (s *stage) arrivals() int64 { return s.referee.Report(s.p.Slug).Arrivals }

// 403 for the rate, which passes by itself, and 429 for the plan, which does not.
func TestHunterSays403ForTheRateAnd429ForTheQuota(t *testing.T) {
	script := func(path string, n int) referee.Answer {
		switch {
		case n == 1:
			return referee.Answer{Status: 403, Body: `{"errors":[{"id":"too_many_requests","code":403,"details":"You have reached the rate limit"}]}`}
		case path == "/email-verifier":
			return referee.Answer{Status: 429, Body: `{"errors":[{"id":"too_many_requests","code":429,"details":"You have reached the limit for the number of verifications per billing period"}]}`}
		}
		return referee.Answer{Body: `{"data":{"total":7}}`}
	}
	scripted(t, "hunter", script, func(t *testing.T, s *stage) {
		_, e := s.impatient(t, provider.Domain, "email-count", "example.com")
		refused(t, e, coordinator.ReasonRateLimited, time.Second)
		require.Len(t, s.state(t).Pauses, 1)
		assert.Equal(t, []string{provider.ScopeEndpoint, "email-count"}, []string{s.state(t).Pauses[0].Scope, s.state(t).Pauses[0].Name})
		_, e = s.impatient(t, provider.Domain, "domain-search", "example.com")
		require.Nil(t, e, "the rate is an endpoint's own")
		_, e = s.ask(t, provider.Domain, "email-count", "example.com")
		require.Nil(t, e, "a second later it goes")
		assert.Empty(t, s.state(t).Pauses)

		_, e = s.ask(t, provider.Email, "email-verifier", "a@example.com")
		refused(t, e, coordinator.ReasonQuotaSpent, 744*time.Hour/100) // nobody says when: a trial after a hundredth
		assert.Equal(t, 1, e.Attempts, "a quota is not waited for")
		boundBy(t, e, "credits")
		assert.Empty(t, s.state(t).Pauses)
		sent := s.arrivals()
		_, e = s.impatient(t, provider.Domain, "domain-search", "example.org")
		refused(t, e, coordinator.ReasonQuotaSpent, 744*time.Hour/100)
		assert.Equal(t, sent, s.arrivals(), "who costs credits is refused here")
		_, e = s.impatient(t, provider.Domain, "email-count", "example.org")
		require.Nil(t, e, "what is free goes on")
	})
}

// A Retry-After of eight hours is a refusal until then, not a sleep; the other
// endpoints of the provider go on.
func TestAbuseIPDBSendsARetryAfterOfEightHours(t *testing.T) {
	const told = 29241 * time.Second
	script := func(path string, n int) referee.Answer {
		if path != "/check" || n > 1 {
			return referee.Answer{Body: `{"data":{"abuseConfidenceScore":0}}`}
		}
		h := http.Header{}
		h.Set("Retry-After", "29241")
		h.Set("X-RateLimit-Limit", "1000")
		h.Set("X-RateLimit-Remaining", "0")
		h.Set("X-RateLimit-Reset", strconv.FormatInt(time.Now().Add(told).Unix(), 10))
		return referee.Answer{Status: 429, Header: h, Body: `{"errors":[{"detail":"Daily rate limit of 1000 requests exceeded for this endpoint. See headers for additional details.","status":429}]}`}
	}
	scripted(t, "abuseipdb", script, func(t *testing.T, s *stage) {
		_, e := s.ask(t, provider.IP, "check", "192.0.2.1")
		refused(t, e, coordinator.ReasonQuotaSpent, told)
		assert.Equal(t, 1, e.Attempts)
		assert.Equal(t, told, e.Answer.RetryAfter)
		open := e.RetryAt
		_, e = s.ask(t, provider.IP, "reports", "192.0.2.1")
		require.Nil(t, e)
		assert.EqualValues(t, 2, s.arrivals())

		_, e = s.impatient(t, provider.IP, "check", "192.0.2.2")
		refused(t, e, coordinator.ReasonQuotaSpent, time.Until(open))
		assert.EqualValues(t, 2, s.arrivals(), "nothing is sent meanwhile")
		res, e := s.ask(t, provider.IP, "check", "192.0.2.2")
		require.Nil(t, e, "who says that he waits is served then")
		assert.False(t, res.Empty)
		assert.GreaterOrEqual(t, time.Since(open), time.Duration(0))
		assert.Less(t, time.Since(open), 2*time.Second)
	})
}

// 402 is a plan that is used up: neither "no data" nor a wrong key.
func TestXForceSays402ForTheQuota(t *testing.T) {
	script := func(_ string, n int) referee.Answer {
		if n == 2 {
			return referee.Answer{Status: 402, Body: `{"error":"Monthly quota exceeded"}`}
		}
		return referee.Answer{Body: `{"ip":"192.0.2.1","score":1}`}
	}
	scripted(t, "xforce-exchange", script, func(t *testing.T, s *stage) {
		_, e := s.ask(t, provider.IP, "", "192.0.2.1")
		require.Nil(t, e)
		_, e = s.ask(t, provider.IP, "", "192.0.2.2")
		refused(t, e, coordinator.ReasonQuotaSpent, 744*time.Hour/100)
		assert.Equal(t, 1, e.Attempts)
		open := e.RetryAt
		assert.Equal(t, "learned", s.limitOf(t, "month").Origin)
		assert.Equal(t, "assumed", s.limitOf(t, "courtesy").Origin)
		for range 5 { // were it a wrong key three of them would pause it
			_, e = s.impatient(t, provider.IP, "", "192.0.2.2")
			refused(t, e, coordinator.ReasonQuotaSpent, time.Until(open))
		}
		assert.Empty(t, s.state(t).Pauses)
		assert.EqualValues(t, 2, s.arrivals())
	})
}

// One status, 429, means the day in one body and the minute in another.
func TestVirusTotalTellsTheQuotaInTheBody(t *testing.T) {
	script := func(_ string, n int) referee.Answer {
		code := map[int]string{1: "TooManyRequestsError", 2: "QuotaExceededError"}[n]
		if code == "" {
			return referee.Answer{Body: `{"data":{"id":"192.0.2.1"}}`}
		}
		return referee.Answer{Status: 429, Body: `{"error":{"code":"` + code + `","message":"Quota exceeded"}}`}
	}
	scripted(t, "virustotal", script, func(t *testing.T, s *stage) {
		_, e := s.impatient(t, provider.IP, "", "192.0.2.1")
		refused(t, e, coordinator.ReasonRateLimited, time.Second)
		require.Len(t, s.state(t).Pauses, 1)
		assert.Equal(t, provider.ScopeKey, s.state(t).Pauses[0].Scope)
		time.Sleep(time.Minute)

		_, e = s.ask(t, provider.IP, "", "192.0.2.1")
		midnight := time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)
		require.NotNil(t, e)
		assert.Equal(t, coordinator.ReasonQuotaSpent, e.Reason)
		boundBy(t, e, "day")
		assert.False(t, e.RetryAt.Before(midnight), "%v: the day ends at 00:00 UTC", e.RetryAt)
		assert.Less(t, e.RetryAt.Sub(midnight), time.Minute)
		assert.Empty(t, s.state(t).Pauses, "a spent day pauses nothing")
		_, e = s.ask(t, provider.IP, "", "192.0.2.1")
		require.Nil(t, e)
		assert.False(t, time.Now().Before(midnight), "and it was waited for by who waits")
	})
}

// X-Rl and X-Ttl are words that only the file knows: what is left, and until when.
func TestIPAPITellsTheWaitInAHeaderOfItsOwn(t *testing.T) {
	script := func(_ string, n int) referee.Answer {
		switch n {
		case 1:
			return referee.Answer{Header: http.Header{"X-Rl": {"0"}, "X-Ttl": {"40"}}, Body: `{"status":"success"}`}
		case 2:
			return referee.Answer{Status: 429, Header: http.Header{"X-Rl": {"0"}, "X-Ttl": {"51"}}}
		}
		return referee.Answer{Body: `{"status":"success"}`}
	}
	scripted(t, "ip-api", script, func(t *testing.T, s *stage) {
		_, e := s.impatient(t, provider.IP, "", "192.0.2.1")
		require.Nil(t, e)
		assert.Equal(t, "learned", s.limitOf(t, "minute").Origin)
		_, e = s.impatient(t, provider.IP, "", "192.0.2.2")
		refused(t, e, coordinator.ReasonRateLimited, 39*time.Second)
		boundBy(t, e, "minute")
		assert.EqualValues(t, 1, s.arrivals(), "at 0 nothing may be sent")
		time.Sleep(e.RetryAfter)

		_, e = s.impatient(t, provider.IP, "", "192.0.2.2")
		refused(t, e, coordinator.ReasonRateLimited, 51*time.Second)
		assert.Equal(t, 51*time.Second, e.Answer.RetryAfter)
		require.Len(t, s.state(t).Pauses, 1)
		assert.Equal(t, provider.ScopeProvider, s.state(t).Pauses[0].Scope)
		assert.Equal(t, e.RetryAt, s.state(t).Pauses[0].Until)
		time.Sleep(e.RetryAfter)
		_, e = s.impatient(t, provider.IP, "", "192.0.2.2")
		require.Nil(t, e, "it comes back exactly then")
	})
}

// A provider that is limited by concurrency alone, as far as ten calls can tell:
// one is served at a time, however long each takes, and none is refused.
func TestOverpassServesOneAtATime(t *testing.T) {
	script := func(string, int) referee.Answer {
		return referee.Answer{Body: `{"elements":[{"id":1}]}`, Delay: 30 * time.Second}
	}
	scripted(t, "overpass", script, func(t *testing.T, s *stage) {
		begin := time.Now()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				_, e := s.ask(t, provider.Text, "", "[out:json];node(1);out;")
				assert.Nil(t, e)
			})
		}
		time.Sleep(time.Minute)
		assert.Equal(t, 1, s.state(t).InFlight)
		wg.Wait()
		report := s.referee.Report("overpass")
		assert.EqualValues(t, 10, report.Answered)
		assert.Equal(t, 1, report.InFlight)
		assert.Less(t, time.Since(begin), 10*(30*time.Second+network.Max*2), "nothing but the slot holds them up")
	})
}

// Others take the slots, too: "not processed, too many at once" is sent again, and
// says nothing about the number that was asked for.
func TestVIESIsBusyWithTheCallsOfOthers(t *testing.T) {
	busy := `{"actionSucceed":false,"errorWrappers":[{"error":"MS_MAX_CONCURRENT_REQ"}]}`
	for name, c := range map[string]struct {
		busy     int // answers before the slot is free
		answered bool
		sent     int64
	}{
		"for a moment": {1, true, 2},
		"for good":     {100, false, 3}, // three attempts are what the file allows, by default
	} {
		t.Run(name, func(t *testing.T) {
			script := func(_ string, n int) referee.Answer {
				if n <= c.busy {
					return referee.Answer{Status: 500, Body: busy}
				}
				return referee.Answer{Body: `{"countryCode":"DE","valid":true}`}
			}
			scripted(t, "vies", script, func(t *testing.T, s *stage) {
				call := coordinator.Call{Provider: "vies", Wait: patience}
				res, e := s.execute(t, call, provider.Query{Kind: provider.Text, Value: "129273398", Params: map[string]string{"country": "DE"}})
				assert.Equal(t, c.answered, e == nil)
				assert.Equal(t, c.answered, strings.Contains(string(res.Data), "valid"))
				assert.False(t, res.Empty)
				if e != nil {
					assert.Equal(t, coordinator.ReasonOverloaded, e.Reason)
					assert.True(t, e.Answer.Before)
				}
				assert.Equal(t, c.sent, s.arrivals())
			})
		})
	}
}
