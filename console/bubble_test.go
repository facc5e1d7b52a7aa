package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a coordinator with its page.
type world struct {
	*coordinator.Coordinator
	*Console
	t *testing.T
}

// bubble runs f in virtual time.
func bubble(t *testing.T, opt Options, f func(*testing.T, *world), ps ...provider.Provider) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, opt, ps...)
		defer func() {
			assert.NoError(t, w.Close())
			assert.NoError(t, w.Shutdown(context.Background()))
			synctest.Wait()
		}()
		f(t, w)
	})
}

func newWorld(t *testing.T, opt Options, ps ...provider.Provider) *world {
	t.Helper()
	opt.Recorder = new(Recorder)
	c, err := coordinator.New(coordinator.Config{Registry: new(registry.Registry), Providers: ps, Traces: []*coordinator.Trace{opt.Recorder.Trace()}})
	require.NoError(t, err)
	return &world{c, New(c, opt), t}
}

// call makes a call that takes a second and ends so.
func (w *world) call(call coordinator.Call, f provider.Feedback) error {
	return w.Do(w.t.Context(), call, func(ctx context.Context) error {
		time.Sleep(time.Second)
		if lease, found := coordinator.LeaseFrom(ctx); found && f.Budgets != nil {
			lease.Report(f)
		}
		return f.Err(nil)
	})
}

var ok = provider.Feedback{Outcome: provider.OK}

// get asks the page.
func (w *world) get(target string) *httptest.ResponseRecorder {
	w.t.Helper()
	res := httptest.NewRecorder()
	w.ServeHTTP(res, httptest.NewRequest(http.MethodGet, target, http.NoBody))
	return res
}

// told asks for one provider as JSON, when the last snapshot is too old to be shown.
func (w *world) told(slug string) (d Detail) {
	w.t.Helper()
	time.Sleep(freshFor)
	w.read("/api/providers/"+slug, &d)
	return d
}

func (w *world) read(target string, into any) {
	w.t.Helper()
	res := w.get(target)
	require.Equal(w.t, http.StatusOK, res.Code, res.Body)
	require.Equal(w.t, "application/json", res.Header().Get("Content-Type"))
	d := json.NewDecoder(res.Body)
	d.DisallowUnknownFields()
	require.NoError(w.t, d.Decode(into))
}

func limited(slug string, limits ...provider.Limit) provider.Provider {
	return provider.Provider{Slug: slug, Throttle: provider.Throttle{Limits: limits}}
}

// What a provider's detail says is what its State says, and what hooks have told.
func TestDetail(t *testing.T) {
	p := provider.Provider{Slug: "acme", Name: "Acme", Category: "test", Throttle: provider.Throttle{MaxInFlight: 2, Limits: []provider.Limit{
		{Name: "minute", Max: 5, Per: "1m", Basis: provider.BasisAssumed}, {Name: "key", Max: 9, Per: "1h", Scope: provider.ScopeKey},
		{Name: "search", Max: 7, Per: "1h", Scope: provider.ScopeEndpoint, Endpoints: []string{"find"}},
	}}, Endpoints: []provider.Endpoint{{Name: "find"}, {Name: "get"}}}
	bubble(t, Options{}, func(t *testing.T, w *world) {
		left, size := int64(1), int64(5)
		require.NoError(t, w.call(coordinator.Call{Provider: "acme", Key: "KEY_A", Endpoint: "find"}, provider.Feedback{Budgets: []provider.Budget{
			{Name: "minute", Remaining: left, Limit: size, Reset: 30 * time.Second, HasRemaining: true, HasLimit: true, HasReset: true}, {Name: "other", Unit: "credits"},
		}}))
		require.Error(t, w.call(coordinator.Call{Provider: "acme", Key: "sk-secret", Endpoint: "get"}, provider.Feedback{Outcome: provider.Failed, Detail: "status 502"}))
		for range 2 {
			require.Error(t, w.Do(t.Context(), coordinator.Call{Provider: "acme", Cost: map[string]int64{"requests": 50}}, func(context.Context) error { return nil }))
		}
		for _, flow := range []string{"a", "b", "b", "", "a", "b", "c"} { // three go, of which one is out at a time
			go func() { _ = w.call(coordinator.Call{Provider: "acme", Flow: flow}, ok) }()
			synctest.Wait()
		}
		d := w.told("acme")
		s, err := w.State("acme")
		require.NoError(t, err)
		assert.Equal(t, "Acme", d.Name)
		assert.Equal(t, "test", d.Category)
		names := func(all []Limit) (names []string) {
			for _, l := range all {
				names = append(names, l.Endpoint+"/"+l.Name)
			}
			return names
		}
		assert.Equal(t, []string{"/max_in_flight", "/minute", "find/search"}, names(d.Limits))
		minute := d.Limits[1]
		assert.Equal(t, s.Limits[1].Used, minute.Used)
		assert.Equal(t, s.Limits[1].Held, minute.Held)
		assert.Equal(t, s.Limits[1].Left, minute.Left)
		assert.Equal(t, "learned", minute.Origin)
		assert.Equal(t, "1m", minute.Per)
		assert.WithinDuration(t, s.Limits[1].ResetAt, minute.Reset, time.Millisecond)
		assert.Equal(t, s.Queue.Length, d.Queue.Length)
		assert.Positive(t, d.Queue.Length)
		assert.WithinDuration(t, time.Now().Add(-freshFor), d.Queue.Since, 2*time.Millisecond)
		assert.Equal(t, s.InFlight, d.InFlight)
		assert.Equal(t, 2, d.KeyCount)
		keyed := make(map[string]int64)
		for _, k := range d.Keys {
			keyed[k.Name] = k.Limits[0].Used
		}
		assert.Equal(t, map[string]int64{"KEY_A": 1, aliasName("sk-secret"): 1}, keyed, "a name that may be the key itself is not shown")
		sum := 0
		for _, f := range d.Flows {
			sum += f.Waiting
		}
		assert.Equal(t, d.Queue.Length, sum)
		require.Len(t, d.Refused, 1)
		assert.Equal(t, coordinator.ReasonTooHeavy, d.Refused[0].Reason)
		assert.Equal(t, int64(2), d.Refused[0].Count)
		assert.Equal(t, "minute", d.Refused[0].Limit)
		assert.True(t, strings.HasPrefix(d.Refused[0].Message, "too heavy"), d.Refused[0].Message)
		require.Len(t, d.Answers, 1)
		assert.Equal(t, "status 502", d.Answers[0].Detail)
		assert.Equal(t, "#"+fingerprint("sk-secret"), d.Answers[0].Key)
		require.NotNil(t, d.Last)
		assert.Equal(t, int64(1), d.Reasons[coordinator.ReasonFailed]+d.Outcomes[provider.Failed])
		html := w.get("/?open=acme").Body.String()
		assert.NotContains(t, html, "sk-secret")
		assert.Contains(t, html, fmt.Sprintf(`aria-valuemax="5" aria-valuenow="%d" aria-valuetext="%d of 5 requests left, `, 5-minute.Left, minute.Left))
		for _, part := range []string{"status 502", "KEY_A", "learned", "by flow", "#" + fingerprint("sk-secret")} {
			assert.Contains(t, strings.ToLower(html), strings.ToLower(part))
		}
	}, p)
}

var errBoom = errors.New("boom: https://example.com/?key=sk-secret")

// The text of a cause may hold a secret: it is nowhere.
func TestCausesAreNotShown(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, w *world) {
		for range 6 {
			_ = w.Do(t.Context(), coordinator.Call{Provider: "acme"}, func(context.Context) error { return provider.Feedback{Outcome: provider.Failed}.Err(errBoom) })
		}
		time.Sleep(time.Second)
		for _, target := range []string{"/?open=acme", "/api/state", "/api/providers/acme", "/rows?open=acme"} {
			body := w.get(target).Body.String()
			assert.Contains(t, body, "acme")
			assert.NotContains(t, body, "boom")
			assert.NotContains(t, body, "sk-secret")
		}
	}, provider.Provider{Slug: "acme"})
}
