package catalog_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

// These tests play the answers that do not look like what they are: refusals that
// look like data, and "no data" that looks like a refusal.

// A 200 whose text is an error is a spent quota, not a result.
func TestHackerTargetAnswers200WithAnErrorText(t *testing.T) {
	script := func(_ string, n int) referee.Answer {
		switch n {
		case 1:
			return referee.Answer{Body: "www.example.com,192.0.2.1"}
		case 2:
			return referee.Answer{Body: "error check your search parameter"}
		}
		return referee.Answer{Body: "API count exceeded - Increase Quota with Membership"}
	}
	scripted(t, "hackertarget", script, func(t *testing.T, s *stage) {
		res, e := s.ask(t, provider.Domain, "", "example.com")
		require.Nil(t, e)
		assert.JSONEq(t, `"www.example.com,192.0.2.1"`, string(res.Data))
		assert.False(t, res.Empty)
		_, e = s.ask(t, provider.Domain, "", "example..com")
		require.NotNil(t, e)
		assert.Equal(t, coordinator.ReasonRejected, e.Reason)
		assert.Zero(t, e.RetryAfter, "no waiting cures it")

		_, e = s.ask(t, provider.Domain, "", "example.org")
		refused(t, e, coordinator.ReasonQuotaSpent, 24*time.Hour/100)
		assert.Equal(t, 1, e.Attempts)
		assert.Equal(t, "learned", s.limitOf(t, "day").Origin)
		sent := s.arrivals()
		_, e = s.impatient(t, provider.IP, "", "192.0.2.1")
		require.NotNil(t, e)
		assert.Equal(t, coordinator.ReasonQuotaSpent, e.Reason, "the other endpoint shares the day")
		assert.Equal(t, sent, s.arrivals())
	})
}

// The same in JSON: the answer looks like any other.
func TestRobtexAnswers200WithAStatusInTheBody(t *testing.T) {
	script := func(_ string, n int) referee.Answer {
		if n == 1 {
			return referee.Answer{Body: `{"status":"ratelimited"}`}
		}
		return referee.Answer{Body: `{"status":"ok","as":64496}`}
	}
	scripted(t, "robtex", script, func(t *testing.T, s *stage) {
		_, e := s.impatient(t, provider.IP, "", "192.0.2.1")
		refused(t, e, coordinator.ReasonRateLimited, time.Second)
		res, e := s.ask(t, provider.IP, "", "192.0.2.1")
		require.Nil(t, e)
		assert.False(t, res.Empty)
	})
}

// 204 is a refusal at one provider and "nothing known" at another: only the file
// can tell.
func TestA204IsARefusalOfMalprobAndNoDataOfAbstractAPI(t *testing.T) {
	script := func(_ string, n int) referee.Answer {
		if n == 1 {
			return referee.Answer{Status: 204}
		}
		return referee.Answer{Body: `{"score":0.1}`}
	}
	scripted(t, "malprob", script, func(t *testing.T, s *stage) {
		begin := time.Now()
		res, e := s.impatient(t, provider.Hash, "", "ab12")
		refused(t, e, coordinator.ReasonRateLimited, time.Second)
		assert.False(t, res.Empty, "it could not be asked")
		res, e = s.ask(t, provider.Hash, "", "ab12")
		require.Nil(t, e)
		assert.False(t, res.Empty)
		assert.GreaterOrEqual(t, time.Since(begin), 2*time.Second, "the courtesy of the file")
	})
	scripted(t, "abstractapi", script, func(t *testing.T, s *stage) {
		res, e := s.impatient(t, provider.IP, "", "192.0.2.1")
		require.Nil(t, e)
		assert.True(t, res.Empty)
		assert.False(t, res.Suspicious)
		assert.Empty(t, s.state(t).Pauses)
		assert.EqualValues(t, 1, s.limitOf(t, "month").Used, "an answer like any other")
	})
}

// An error page instead of JSON is an overloaded server, whatever its status: it
// is asked again, and is never "no certificates".
func TestCrtShAnswersWithAPage(t *testing.T) {
	const page = "<html><head><title>502 Bad Gateway</title></head><body><center>nginx</center></body></html>"
	for name, c := range map[string]struct {
		answer referee.Answer
		pages  int
	}{
		"502 once":  {referee.Answer{Status: 502, Body: page}, 1},
		"502 twice": {referee.Answer{Status: 502, Body: page}, 2},
		"502":       {referee.Answer{Status: 502, Body: page}, 100},
		"200":       {referee.Answer{Status: 200, Body: "<!DOCTYPE html>\n" + page}, 100},
		"503":       {referee.Answer{Status: 503, Body: page}, 100},
	} {
		t.Run(name, func(t *testing.T) {
			script := func(_ string, n int) referee.Answer {
				if n <= c.pages {
					return c.answer
				}
				return referee.Answer{Body: `[{"id":1}]`}
			}
			scripted(t, "crt-sh", script, func(t *testing.T, s *stage) {
				res, e := s.ask(t, provider.Domain, "", "example.com")
				assert.False(t, res.Empty)
				if c.pages < 3 {
					require.Nil(t, e)
					assert.JSONEq(t, `[{"id":1}]`, string(res.Data))
					return
				}
				require.NotNil(t, e)
				assert.Equal(t, coordinator.ReasonOverloaded, e.Reason)
				assert.Equal(t, 3, e.Attempts)
				assert.Equal(t, 3, s.state(t).Breaker.Failures)
				assert.Greater(t, e.RetryAfter, 10*time.Second, "12 s lie between two calls")
			})
		})
	}
}

// An empty list is an answer. Where a provider answers so under load, too, it is
// marked; where it means what it says, it is not.
func TestAnEmptyAnswerIsSuspiciousWhereTheFileSaysSo(t *testing.T) {
	empty := func(string, int) referee.Answer { return referee.Answer{Body: "[]"} }
	scripted(t, "crt-sh", empty, func(t *testing.T, s *stage) {
		res, e := s.ask(t, provider.Domain, "", "example.com")
		require.Nil(t, e)
		assert.Equal(t, []bool{true, true}, []bool{res.Empty, res.Suspicious})
		assert.Equal(t, map[provider.Outcome]int64{provider.OK: 1}, s.state(t).Outcomes, "no refusal: nothing is paused by it")
		assert.Empty(t, s.state(t).Pauses)
	})
	scripted(t, "crt-sh", func(string, int) referee.Answer { return referee.Answer{Body: `[{"id":1}]`} }, func(t *testing.T, s *stage) {
		res, e := s.ask(t, provider.Domain, "", "example.com")
		require.Nil(t, e)
		assert.Equal(t, []bool{false, false}, []bool{res.Empty, res.Suspicious})
	})
	unknown := func(string, int) referee.Answer {
		return referee.Answer{Status: 404, Body: `{"error":{"code":"NotFoundError","message":"IP not found"}}`}
	}
	scripted(t, "virustotal", unknown, func(t *testing.T, s *stage) {
		res, e := s.ask(t, provider.IP, "", "192.0.2.1")
		require.Nil(t, e, "nothing known of it is an answer")
		assert.Equal(t, []bool{true, false}, []bool{res.Empty, res.Suspicious})
	})
}

// "Nothing known of it" has as many faces as there are providers: each is an answer,
// is counted as one, and pauses nothing.
func TestNoDataIsAnAnswer(t *testing.T) {
	for _, c := range []struct {
		slug  string
		kind  provider.Kind
		value string
		reply referee.Answer
	}{
		{"hackertarget", provider.Domain, "example.com", referee.Answer{Body: "No DNS A records found"}},
		{"haveibeenpwned", provider.Email, "a@example.com", referee.Answer{Status: 404}},
		{"hunter", provider.Domain, "example.com", referee.Answer{Status: 404, Body: `{"errors":[{"id":"not_found"}]}`}},
		{"netlas", provider.IP, "192.0.2.1", referee.Answer{Status: 404, Body: `{"detail":"Not found."}`}},
		{"shodan", provider.IP, "192.0.2.1", referee.Answer{Status: 404, Body: `{"error":"No information available for that IP."}`}},
		{"threatfox", provider.IP, "192.0.2.1", referee.Answer{Body: `{"query_status":"no_result","data":"Your search did not yield any results"}`}},
		{"urlscan", provider.Domain, "example.com", referee.Answer{Body: `{"results":[],"total":0}`}},
	} {
		t.Run(c.slug, func(t *testing.T) {
			scripted(t, c.slug, func(string, int) referee.Answer { return c.reply }, func(t *testing.T, s *stage) {
				res, e := s.ask(t, c.kind, "", c.value)
				require.Nil(t, e)
				assert.Equal(t, []bool{true, false}, []bool{res.Empty, res.Suspicious})
				assert.Equal(t, map[provider.Outcome]int64{provider.OK: 1}, s.state(t).Outcomes)
				assert.Empty(t, s.state(t).Pauses)
			})
		})
	}
}
