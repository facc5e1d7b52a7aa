package console

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// What callers and providers name may be as long as they like: the page and memory
// hold a bounded part of it, cut between two letters, and count flows right.
func TestRecordedTextsAreBounded(t *testing.T) {
	long := func(s string) string { return s + strings.Repeat("ä", 1000) }
	bubble(t, Options{}, func(t *testing.T, w *world) {
		for i := range mostKinds {
			name := long(fmt.Sprint(i))
			require.Error(t, w.call(coordinator.Call{Provider: "acme", Endpoint: name}, provider.Feedback{Outcome: provider.Unknown, Detail: name}))
			require.Error(t, w.Do(t.Context(), coordinator.Call{Provider: "acme", Endpoint: name, Wait: -1, Cost: map[string]int64{"requests": 9}}, nothing))
		}
		told := make([]provider.Budget, 1000)
		for i := range told {
			told[i] = provider.Budget{Name: long(fmt.Sprint(i)), Unit: long("u")}
		}
		require.NoError(t, w.call(coordinator.Call{Provider: "acme"}, provider.Feedback{Budgets: told}))
		require.NoError(t, w.Pause("acme", time.Now().Add(time.Minute), "maintenance"))
		for _, flow := range []string{long("a"), long("a"), long("b")} {
			go func() { _ = w.call(coordinator.Call{Provider: "acme", Flow: flow}, ok) }()
		}
		synctest.Wait()
		d := w.told("acme")
		require.Len(t, d.Answers, mostKinds, "they are told apart by their beginnings")
		require.Len(t, d.Refused, mostKinds)
		require.Len(t, d.Flows, 2)
		assert.Equal(t, []int{2, 1}, []int{d.Flows[0].Waiting, d.Flows[1].Waiting})
		require.Len(t, d.Last.Budgets, mostTold)
		texts := []string{d.Flows[0].Name, d.Flows[1].Name, d.Last.Budgets[0].Name, d.Last.Budgets[0].Unit}
		for i := range mostKinds {
			texts = append(texts, d.Answers[i].Endpoint, d.Answers[i].Detail, d.Refused[i].Endpoint)
			assert.LessOrEqual(t, len(d.Refused[i].Message), mostText+len("…"))
		}
		for _, text := range texts {
			assert.LessOrEqual(t, len(text), mostText+len("…"))
			assert.True(t, strings.HasSuffix(text, "ä…"), text)
			assert.True(t, utf8.ValidString(text))
			assert.NotContains(t, text, "\ufffd")
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		assert.Empty(t, w.opt.Recorder.flowsOf("acme", 10), "who waits no more is found under the name that was kept")
	}, provider.Provider{Slug: "acme", Breaker: provider.Breaker{Off: true}, Throttle: provider.Throttle{Limits: []provider.Limit{{Name: "minute", Max: 8, Per: "1s"}}}})
}

// Every link of the page repeats which panels are open: what cannot be a slug is not
// repeated a thousand times.
func TestOpenPanelsAreBounded(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, w *world) {
		usual := w.get("/?q=acme&open=acme").Body.Len()
		page := w.get("/?q=acme&open=acme," + strings.Repeat("x", 100_000)).Body.String()
		assert.Len(t, page, usual)
		assert.Contains(t, page, `id="d-acme"`, "the others stay")
	}, provider.Provider{Slug: "acme"})
}

// A change of a declaration is shown within a second too.
func TestUpdateIsShownWithinASecond(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, w *world) {
		require.NoError(t, w.call(coordinator.Call{Provider: "acme"}, ok))
		time.Sleep(2 * time.Minute)
		c := w.follow("")
		defer c.end()
		m, _ := c.next()
		begin := time.Now()
		require.NoError(t, w.Update("acme", provider.Throttle{RPM: 60, Off: []string{provider.Everything}, Excess: provider.Reject}))
		for !strings.Contains(m.Parts["p-acme"], "switched off") {
			m, _ = c.next()
		}
		assert.LessOrEqual(t, time.Since(begin), time.Second)
		d := w.told("acme")
		assert.Equal(t, []string{provider.Everything}, d.Off)
		assert.Equal(t, "reject", d.Excess)
	}, provider.Provider{Slug: "acme", Throttle: provider.Throttle{RPM: 60}})
}

// A provider that was never called is shown as it is declared: that it is switched off
// comes first, as Conditions has it.
func TestNeverCalled(t *testing.T) {
	off := provider.Throttle{RPM: 60, MaxQueue: 7, Off: []string{provider.Everything}}
	bubble(t, Options{}, func(t *testing.T, w *world) {
		require.NoError(t, w.call(coordinator.Call{Provider: "used"}, ok))
		d := w.told("off")
		assert.Equal(t, Off, d.Condition)
		assert.Equal(t, 7, d.Queue.Capacity, "0 would mean that there is no bound")
		assert.Equal(t, "off", d.Breaker.State)
		d = w.told("plain")
		assert.Equal(t, Unused, d.Condition)
		assert.Equal(t, 1000, d.Queue.Capacity)
		assert.Equal(t, "closed", d.Breaker.State)
		assert.Zero(t, w.told("delay").Queue.Capacity)
		var s Status
		w.read("/api/state", &s)
		assert.Equal(t, 1, s.Total, "who lists providers sees those that were called")
		assert.Equal(t, map[Condition]int{Busy: 1, Off: 1, Unused: 2}, s.Conditions)
		w.read("/api/state?state=off", &s)
		assert.Equal(t, 1, s.Total)
		page := w.get("/?q=off").Body.String()
		assert.Contains(t, page, "never called")
		assert.Contains(t, page, "All <b>1</b>")
		assert.Contains(t, page, "<dt>In use</dt><dd>1</dd>")
	}, provider.Provider{Slug: "off", Throttle: off, Breaker: provider.Breaker{Off: true}}, provider.Provider{Slug: "plain"}, provider.Provider{Slug: "used"},
		provider.Provider{Slug: "delay", Throttle: provider.Throttle{RPM: 1, Excess: provider.Delay}})
}

// A limit as large as there may be is not near its end.
func TestLargestLimit(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, w *world) {
		require.NoError(t, w.call(coordinator.Call{Provider: "acme"}, ok))
		assert.Equal(t, Busy, w.told("acme").Condition)
	}, limited("acme", provider.Limit{Name: "day", Max: math.MaxInt64, Per: "day"}))
	assert.Equal(t, "ok", barOf(Limit{Room: math.MaxInt64, Left: math.MaxInt64 - 1, Used: 1, Per: "day"}).Tone)
}

// Of a limit that is shared the bar shows what all have used, as its number does, and
// says whose the other numbers are.
func TestBarOfASharedLimit(t *testing.T) {
	b := barOf(Limit{Room: 100, Left: 10, Used: 5, Held: 20, Unit: "requests", Shared: true})
	assert.Equal(t, []float64{70, 20}, []float64{b.UsedShare, b.HeldShare})
	assert.Equal(t, int64(90), b.Taken())
	assert.Equal(t, "10 of 100 requests left, 5 used, 20 held by this process", b.Text)
}

// What is declared of the round trip, and whether answers bear it out, is told.
func TestLeastRoundTrip(t *testing.T) {
	p := provider.Throttle{RPM: 60, LeastRoundTrip: 700 * time.Millisecond}
	bubble(t, Options{}, func(t *testing.T, w *world) {
		require.NoError(t, w.call(coordinator.Call{Provider: "acme"}, ok))
		d := w.told("acme")
		assert.InDelta(t, 0.7, d.LeastTrip, 1e-9)
		assert.False(t, d.Refuted)
		assert.Contains(t, w.get("/?open=acme").Body.String(), "<dt>Round trip</dt><dd>1 s lately, taken to be 700 ms at least</dd>")
		require.NoError(t, w.Do(t.Context(), coordinator.Call{Provider: "acme"}, func(context.Context) error {
			time.Sleep(300 * time.Millisecond)
			return nil
		}))
		d = w.told("acme")
		assert.InDelta(t, 0.3, d.LeastTrip, 1e-9)
		assert.True(t, d.Refuted)
		assert.Contains(t, w.get("/?open=acme").Body.String(), `taken to be 300 ms at least <b class="warn">an answer took less than is declared</b>`)
		require.NoError(t, w.call(coordinator.Call{Provider: "plain"}, ok))
		assert.NotContains(t, w.get("/?open=plain").Body.String(), "Round trip")
	}, provider.Provider{Slug: "acme", Throttle: p}, provider.Provider{Slug: "plain"})
}

// The name of a key that may be the key itself stands neither in the form of limits nor
// in its confirmation nor in the log, and its size stays.
func TestLimitsHideKeys(t *testing.T) {
	var log bytes.Buffer
	const secret = "sk-live-secret"
	p := limited("acme", provider.Limit{Name: "day", Max: 5, Per: "day", Scope: provider.ScopeKey, Keys: map[string]int64{secret: 7, "KEY_A": 9}})
	p.Throttle.BadAnswers = &provider.Limit{Max: 3, Per: "1m", Scope: provider.ScopeKey, Keys: map[string]int64{secret: 4}}
	bubble(t, Options{Actions: true, Log: slog.New(slog.NewTextHandler(&log, nil))}, func(t *testing.T, w *world) {
		form := w.get("/providers/acme/limits").Body.String()
		assert.NotContains(t, form, secret)
		assert.Contains(t, form, "name: day")
		v := w.visit("/providers/acme/limits")
		const text = "providers: {acme: {throttle: {limits: [{name: day, max: 6}], bad_answers: {max: 2, per: 1m, scope: key}}}}"
		confirm := v.post("/providers/acme/limits", "limits", text)
		assert.NotContains(t, confirm.Body.String(), secret)
		assert.Contains(t, confirm.Body.String(), aliasName(secret)+": 7")
		require.Equal(t, http.StatusSeeOther, v.post("/providers/acme/limits", "limits", text, "confirm", "yes").Code)
		assert.NotContains(t, log.String(), secret)
		assert.Contains(t, log.String(), aliasName(secret))
		for p := range w.Providers() {
			assert.Equal(t, map[string]int64{secret: 7, "KEY_A": 9}, p.Throttle.Limits[0].Keys)
		}
	}, p)
}

// What is refused, and a form that is looked at, costs the Coordinator no look of its
// own: any site can have a browser ask for them.
func TestForeignRequestsCostNoLook(t *testing.T) {
	bubble(t, Options{Actions: true}, func(t *testing.T, w *world) {
		time.Sleep(2 * freshFor)
		v := w.visit("/providers/acme/pause")
		before := w.latest.Load()
		v.token = ""
		for range 10 {
			w.get("/providers/acme/limits")
			assert.Equal(t, http.StatusForbidden, v.post("/providers/acme/pause", "for", "10m", "why", "x", "confirm", "yes").Code)
		}
		assert.Same(t, before, w.latest.Load())
	}, provider.Provider{Slug: "acme"})
}

// A provider that declares no endpoints has as many limits of endpoints as callers name:
// a panel shows those that have the least left, and says that there are more.
func TestManyEndpoints(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, w *world) {
		for i := range 1000 {
			for range 1 + i/998 {
				require.NoError(t, w.Do(t.Context(), coordinator.Call{Provider: "acme", Endpoint: fmt.Sprintf("users/%03d", i)}, nothing))
			}
		}
		assert.Len(t, w.told("acme").Limits, 1001, "the JSON has them all, and that of calls that name none")
		page := w.get("/?open=acme").Body.String()
		assert.Equal(t, mostBars+mostPanelBars, strings.Count(page, `role="meter"`))
		assert.Contains(t, page, "and 998 more")
		assert.Contains(t, page, "and 901 more, which have more left")
		for _, name := range []string{"users/998", "users/999", "users/000"} { // the tightest, and the first of those that are alike
			assert.Equal(t, 2, strings.Count(page, "<span>"+name+"</span>"), name)
		}
	}, limited("acme", provider.Limit{Name: "each", Max: 100, Per: "1h", Scope: provider.ScopeEndpoint}))
}

// A call that names no key has none, whatever KeyName makes of nothing.
func TestNoKeyHasNoName(t *testing.T) {
	bubble(t, Options{KeyName: func(_, alias string) string { return "key-" + alias }}, func(t *testing.T, w *world) {
		require.Error(t, w.call(coordinator.Call{Provider: "acme"}, provider.Feedback{Outcome: provider.Unknown}))
		d := w.told("acme")
		assert.Empty(t, d.Last.Key)
		assert.Empty(t, d.Answers[0].Key)
		assert.NotContains(t, w.get("/?open=acme").Body.String(), "with key")
		require.NoError(t, w.call(coordinator.Call{Provider: "acme", Key: "A"}, ok))
		assert.Equal(t, "key-A", w.told("acme").Last.Key)
	}, provider.Provider{Slug: "acme"})
}

// So it is with the reason of a pause and the names of endpoints.
func TestStatesTextsAreBounded(t *testing.T) {
	long := strings.Repeat("a_", 100_000)
	bubble(t, Options{}, func(t *testing.T, w *world) {
		require.NoError(t, w.call(coordinator.Call{Provider: "whole", Endpoint: long}, ok))
		require.NoError(t, w.Pause("whole", time.Now().Add(time.Hour), long))
		require.Error(t, w.call(coordinator.Call{Provider: "part", Endpoint: long}, provider.Feedback{Outcome: provider.RateLimited, Scope: provider.ScopeEndpoint, RetryAfter: 2 * time.Hour}))
		require.Error(t, w.call(coordinator.Call{Provider: "whole", Wait: -1}, ok)) // is told the reason
		require.Len(t, w.told("whole").Refused, 1)
		assert.Equal(t, PartPaused, w.told("part").Condition)
		for _, target := range []string{"/?open=whole,part", "/api/state", "/api/providers/whole", "/api/providers/part"} {
			assert.Less(t, w.get(target).Body.Len(), 50_000, target)
		}
	}, limited("whole", provider.Limit{Name: "each", Max: 100, Per: "1h", Scope: provider.ScopeEndpoint}), limited("part", provider.Limit{Name: "each", Max: 100, Per: "1h", Scope: provider.ScopeEndpoint}))
}

// A link without the last slash leads to what it asks for.
func TestRedirectKeepsTheQuery(t *testing.T) {
	w := newWorld(t, Options{}, provider.Provider{Slug: "acme"})
	defer w.Close()
	res := httptest.NewRecorder()
	http.StripPrefix("/ops/gate", w).ServeHTTP(res, httptest.NewRequest(http.MethodGet, "/ops/gate?open=acme&q=a", http.NoBody))
	assert.Equal(t, http.StatusPermanentRedirect, res.Code)
	assert.Equal(t, "gate/?open=acme&q=a", res.Header().Get("Location"))
}
