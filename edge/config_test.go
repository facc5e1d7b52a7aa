package edge_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/edge"
	"github.com/headgate/headgate/provider"
)

func TestNewRefuses(t *testing.T) {
	free := func(t provider.Throttle) edge.Config {
		return edge.Config{Service: service, Tiers: map[string]provider.Throttle{"free": t}}
	}
	limit := func(l provider.Limit) edge.Config {
		l.Name, l.Max = "l", 1
		if l.Algorithm == "" {
			l.Per = "1s"
		}
		return free(provider.Throttle{Limits: []provider.Limit{l}})
	}
	for want, cfg := range map[string]edge.Config{
		`tier free: excess has no meaning`:                                     free(provider.Throttle{Excess: provider.Reject}),
		`tier free: max_queue has no meaning`:                                  free(provider.Throttle{MaxQueue: 1}),
		`tier free: penalty has no meaning`:                                    free(provider.Throttle{Penalty: 1}),
		`tier free: bad_answers has no meaning`:                                free(provider.Throttle{BadAnswers: &provider.Limit{}}),
		`tier free: off has no meaning`:                                        free(provider.Throttle{Off: []string{"*"}}),
		`tier free: max_wait must have an end`:                                 free(provider.Throttle{MaxWait: provider.Forever}),
		`service: learn has no meaning`:                                        {Service: provider.Provider{Throttle: provider.Throttle{Learn: "raise"}}},
		`tier free: rpm: -1 is negative`:                                       free(provider.Throttle{RPM: -1}),
		`limit "l": there is no route "serach": it must be an endpoint`:        limit(provider.Limit{Endpoints: []string{"serach"}}),
		`limit "l": unit tokens: only requests are counted here`:               limit(provider.Limit{Unit: "tokens"}),
		`limit "l": charges has no meaning`:                                    limit(provider.Limit{Charges: []provider.Outcome{provider.OK}}),
		`Default: there is no tier "gold": it must be one of free`:             {Default: "gold", Tiers: map[string]provider.Throttle{"free": {}}},
		`Default: there is no tier "": it must be one of free, pro`:            {Tiers: map[string]provider.Throttle{"free": {}, "pro": {}}},
		`tier "a/b": its name must be of printable ASCII, without / and quote`: {Tiers: map[string]provider.Throttle{"a/b": {}}},
		`service: slug`: {Service: provider.Provider{Slug: "Ü"}},
		`endpoint "b"`: {Service: provider.Provider{Endpoints: []provider.Endpoint{
			{Name: "a", Path: "/x/{q}"}, {Name: "b", Path: "/x/{other}"}}}},
	} {
		_, err := edge.New(cfg)
		require.Error(t, err, want)
		assert.ErrorContains(t, err, want)
		assert.True(t, strings.HasPrefix(err.Error(), "edge: "), err)
	}
}

func TestParseTiersRefuses(t *testing.T) {
	for text, want := range map[string]string{
		"providers: {free: {throttle: {rpn: 1}}}": `unknown key "rpn"`,
		"tiers: {}": `unknown key "tiers"`,
		"providers: {free: {throttle: {limits: [{name: l, max: 1, per: 1s, endpoints: [serach]}]}}}": "serach",
	} {
		_, err := edge.ParseTiers([]byte(text), service.Endpoints)
		require.Error(t, err, text)
		assert.ErrorContains(t, err, want)
		assert.ErrorContains(t, err, "edge: tiers: ")
		assert.ErrorContains(t, err, "line 1", "where it is")
	}
}

// Who asks is seen in hooks by a name: of a length that nobody chooses.
func TestClients(t *testing.T) {
	var seen []coordinator.CallInfo
	trace := &coordinator.Trace{Refused: func(_ context.Context, c coordinator.CallInfo, _ *coordinator.Error) { seen = append(seen, c) }}
	e, err := edge.New(edge.Config{Service: provider.Provider{Slug: "api", Throttle: provider.Throttle{RPH: 1}}, Tier: byHeader,
		Tiers: map[string]provider.Throttle{"free": {}}, Traces: []*coordinator.Trace{trace},
		Route: func(*http.Request) string { return "of nobody" }})
	require.NoError(t, err)
	h := e.Handler(http.HandlerFunc(ok))
	long := strings.Repeat("x", 129)
	for _, client := range []string{"a", "a", "", long} {
		ask(h, "GET", "/", "", client)
	}
	require.Len(t, seen, 3)
	assert.Equal(t, []string{"a", "192.0.2.1", edge.Fingerprint(long)}, []string{seen[0].Key, seen[1].Key, seen[2].Key})
	assert.Equal(t, "free/", seen[0].Endpoint, "of a route that there is not")
	assert.Equal(t, "api", seen[0].Provider)
}

func TestServedRequestCosts(t *testing.T) {
	e, err := edge.New(edge.Config{Service: service, Tiers: map[string]provider.Throttle{"free": {RPH: 1 << 40}}})
	require.NoError(t, err)
	h := e.Handler(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/list", http.NoBody)
	h.ServeHTTP(w, r)
	assert.LessOrEqual(t, testing.AllocsPerRun(1000, func() {
		clear(w.Header())
		h.ServeHTTP(w, r)
	}), 15.0, "each is waited for by everybody who asks")
}
