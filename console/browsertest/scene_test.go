package browsertest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/console"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// curtain is when the scene is looked at.
var curtain = time.Date(2026, 12, 1, 14, 32, 10, 0, time.UTC)

// cast are the providers of the scene: the limits are like those that such providers
// publish.
var cast = []provider.Provider{
	{Slug: "abuseipdb", Name: "AbuseIPDB", Category: "reputation", Throttle: provider.Throttle{Limits: []provider.Limit{{Name: "day", Max: 1000, Per: "day"}}}},
	{Slug: "censys", Name: "Censys", Category: "internet-scan", Throttle: provider.Throttle{RPS: 0.4, MaxQueue: 20, Limits: []provider.Limit{{Name: "month", Max: 2500, Per: "month", Unit: provider.Credits}}}},
	{Slug: "crt-sh", Name: "crt.sh", Category: "certificates", Throttle: provider.Throttle{Limits: []provider.Limit{{Name: "courtesy", Max: 1, Per: "1s", Algorithm: provider.LeakyBucket, Basis: provider.BasisPacing}}}},
	{Slug: "github", Name: "GitHub", Category: "code", Throttle: provider.Throttle{MaxInFlight: 100, Limits: []provider.Limit{{Name: "core", Max: 5000, Per: "1h"}, {Name: "search", Max: 30, Per: "1m", Scope: provider.ScopeEndpoint, Endpoints: []string{"search"}}}},
		Endpoints: []provider.Endpoint{{Name: "search", Path: "/search"}, {Name: "repos", Path: "/repos"}}},
	{Slug: "greynoise", Name: "GreyNoise", Category: "reputation", Throttle: provider.Throttle{Penalty: 15 * time.Minute, Limits: []provider.Limit{{Name: "week", Max: 50, Per: "168h"}}}},
	{Slug: "hunter", Name: "Hunter", Category: "e-mail", Auth: provider.Auth{Kind: "query", Name: "api_key", Env: []string{"HUNTER_KEY_A", "HUNTER_KEY_B"}}, Throttle: provider.Throttle{Penalty: 10 * time.Minute, Limits: []provider.Limit{{Name: "second", Max: 10, Per: "1s"}, {Name: "month", Max: 500, Per: "month", Scope: provider.ScopeKey}}}},
	{Slug: "ipinfo", Name: "IPinfo", Category: "geolocation", Throttle: provider.Throttle{Limits: []provider.Limit{{Name: "hour", Max: 1500, Per: "hour"}}}},
	{Slug: "llm", Name: "Language model", Category: "llm", Throttle: provider.Throttle{MaxInFlight: 12, Limits: []provider.Limit{{Name: "requests", Max: 500, Per: "1m"}, {Name: "tokens", Max: 200_000, Per: "1m", Unit: provider.Tokens}}}},
	{Slug: "rdap", Name: "RDAP", Category: "registration", Throttle: provider.Throttle{Limits: []provider.Limit{{Name: "ten-seconds", Max: 10, Per: "10s", Basis: provider.BasisAssumed}}}},
	{Slug: "shodan", Name: "Shodan", Category: "internet-scan", Throttle: provider.Throttle{RPS: 1, Algorithm: provider.LeakyBucket}},
	{Slug: "urlscan", Name: "urlscan.io", Category: "sandbox", Throttle: provider.Throttle{Limits: []provider.Limit{{Name: "minute", Max: 60, Per: "minute"}, {Name: "day", Max: 5000, Per: "day"}}}},
	{Slug: "virustotal", Name: "VirusTotal", Category: "reputation", Throttle: provider.Throttle{Limits: []provider.Limit{{Name: "minute", Max: 4, Per: "minute"}, {Name: "day", Max: 500, Per: "day"}, {Name: "month", Max: 15_500, Per: "month"}}}},
	{Slug: "netlas", Name: "Netlas", Category: "internet-scan", Throttle: provider.Throttle{RPS: 1}},
	{Slug: "whoisxml", Name: "WhoisXML", Category: "registration", Throttle: provider.Throttle{RPS: 30}},
}

// scene is a coordinator that has been at work for an hour, in virtual time.
type scene struct {
	*coordinator.Coordinator
	ctx  context.Context
	page *console.Console
	rng  *rand.Rand
	all  sync.WaitGroup
}

// play plays the scene and returns what the page says to each request at its end.
func play(t *testing.T, requests ...string) map[string]*httptest.ResponseRecorder {
	t.Helper()
	answers := make(map[string]*httptest.ResponseRecorder)
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(curtain.Add(-70 * time.Minute)))
		ctx, stop := context.WithCancel(t.Context())
		s := &scene{ctx: ctx, rng: rand.New(rand.NewPCG(1, 2))}
		var rec console.Recorder
		var err error
		s.Coordinator, err = coordinator.New(coordinator.Config{Registry: new(registry.Registry), Providers: cast, Traces: []*coordinator.Trace{rec.Trace()}})
		require.NoError(t, err)
		s.page = console.New(s.Coordinator, console.Options{Recorder: &rec, Actions: true})
		s.hour()
		s.troubles()
		time.Sleep(time.Until(curtain))
		synctest.Wait()
		for _, r := range requests {
			answers[r] = httptest.NewRecorder()
			s.page.ServeHTTP(answers[r], httptest.NewRequest(http.MethodGet, r, http.NoBody))
			require.Equal(t, http.StatusOK, answers[r].Code, r)
		}
		stop()
		s.all.Wait()
		require.NoError(t, s.page.Close())
		require.NoError(t, s.Shutdown(t.Context()))
	})
	return answers
}

// ask makes a call that takes so long and ends so; it does not wait for it, but until it
// has gone or waits: what comes next comes behind it.
func (s *scene) ask(call coordinator.Call, took time.Duration, f provider.Feedback) {
	s.all.Go(func() {
		_ = s.Do(s.ctx, call, func(ctx context.Context) error {
			select {
			case <-time.After(took):
				return f.Err(nil)
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
	synctest.Wait()
}

var ok = provider.Feedback{Outcome: provider.OK}

// hour is everyday traffic: its rate swells and ebbs.
func (s *scene) hour() {
	begin := time.Now()
	rates := map[string]float64{ // a minute
		"abuseipdb": 9, "censys": 8, "crt-sh": 20, "github": 45, "hunter": 3, "ipinfo": 15.5, "llm": 26, "rdap": 14, "shodan": 24, "urlscan": 16, "whoisxml": 30,
	}
	for time.Until(curtain) > 5*time.Minute {
		minute := time.Since(begin).Minutes()
		for i, p := range cast {
			swell := 0.75 + 0.5*math.Sin(minute/6+float64(i)*1.7) + 0.25*math.Sin(minute*1.3+float64(i))
			if p.Slug == "ipinfo" || p.Slug == "whoisxml" && minute > 40 {
				swell = 1
			}
			if p.Slug == "whoisxml" && minute > 40 {
				swell = 0
			}
			if s.rng.Float64() < rates[p.Slug]*max(swell, 0)/12 {
				s.usual(p.Slug)
			}
		}
		time.Sleep(5*time.Second - time.Duration(s.rng.IntN(3))*time.Millisecond)
	}
}

func (s *scene) usual(slug string) {
	call := coordinator.Call{Provider: slug, Flow: fmt.Sprintf("case-%d", 2040+s.rng.IntN(3))}
	switch slug {
	case "llm":
		call.Cost = map[string]int64{provider.Tokens: 2000 + s.rng.Int64N(4000)}
	case "censys":
		call.Cost = map[string]int64{provider.Credits: 1}
	case "github":
		call.Endpoint = []string{"repos", "repos", "search"}[s.rng.IntN(3)]
	}
	f := ok
	if s.rng.IntN(60) == 0 {
		f = provider.Feedback{Outcome: provider.Failed, Detail: "status 502"}
	}
	for range 1 + s.rng.IntN(3) {
		s.ask(call, time.Duration(60+s.rng.IntN(300))*time.Millisecond, f)
	}
}

// troubles are the last five minutes.
func (s *scene) troubles() {
	for range 500 { // the day's quota was spent before: the provider says so
		s.ask(coordinator.Call{Provider: "virustotal", Wait: time.Second}, 0, provider.Feedback{Outcome: provider.QuotaSpent, Limit: "day", Detail: "status 429, QuotaExceededError"})
	}
	s.ask(coordinator.Call{Provider: "hunter", Key: "HUNTER_KEY_B"}, 90*time.Millisecond, provider.Feedback{Outcome: provider.Unauthorized, Detail: "status 401"})
	s.ask(coordinator.Call{Provider: "greynoise"}, 80*time.Millisecond, provider.Feedback{Outcome: provider.Banned, Detail: "status 403, address blocked"})
	for range 640 {
		s.ask(coordinator.Call{Provider: "ipinfo"}, 50*time.Millisecond, ok)
	}
	time.Sleep(time.Until(curtain.Add(-90 * time.Second)))
	for i := range 150 {
		s.ask(coordinator.Call{Provider: "shodan", Flow: []string{"case-2041", "case-2041", "case-2041", "case-2042", "case-2040"}[i%5]}, 210*time.Millisecond, ok)
	}
	time.Sleep(time.Until(curtain.Add(-40 * time.Second)))
	for range 60 {
		s.ask(coordinator.Call{Provider: "censys", Flow: "case-2042", Cost: map[string]int64{provider.Credits: 1}}, 400*time.Millisecond, ok)
	}
	remaining, size := int64(41), int64(1000)
	s.ask(coordinator.Call{Provider: "abuseipdb"}, 120*time.Millisecond, provider.Feedback{
		Outcome: provider.RateLimited, RetryAfter: 92 * time.Second, Detail: "status 429",
		Budgets: []provider.Budget{{Name: "day", Limit: size, Remaining: remaining, Reset: time.Until(curtain.Add(34070 * time.Second)), HasLimit: true, HasRemaining: true, HasReset: true}},
	})
	time.Sleep(time.Until(curtain.Add(-13 * time.Second)))
	for range 6 {
		s.ask(coordinator.Call{Provider: "urlscan"}, 200*time.Millisecond, provider.Feedback{Outcome: provider.Failed, Detail: "status 503"})
	}
	for range 14 {
		s.usual("rdap")
	}
	for i := range 18 {
		s.ask(coordinator.Call{Provider: "abuseipdb", Flow: fmt.Sprintf("case-%d", 2040+i%3), Replayable: true}, 100*time.Millisecond, ok)
	}
	time.Sleep(time.Until(curtain.Add(-2 * time.Second)))
	for range 9 { // are out as the curtain falls
		s.ask(coordinator.Call{Provider: "llm", Flow: "case-2042", Cost: map[string]int64{provider.Tokens: 6400}}, 20*time.Second, ok)
	}
	for range 4 {
		s.usual("github")
		s.usual("crt-sh")
	}
}

// stage serves what was played: the page stands still, and believes to be live.
func stage(t *testing.T, answers map[string]*httptest.ResponseRecorder) http.Handler {
	t.Helper()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		at := r.URL.RequestURI()
		if rest, stream := strings.CutPrefix(at, "/events"); stream {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: %s\n\n", answers["/rows"+rest].Body)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return
		}
		a := answers[at]
		if a == nil {
			a = answers[r.URL.Path] // the sheet, the script
		}
		if a == nil {
			http.NotFound(w, r)
			return
		}
		for name, values := range a.Header() {
			w.Header()[name] = values
		}
		_, err := w.Write(a.Body.Bytes())
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Log(err)
		}
	})
}
