package catalog_test

import (
	"fmt"
	"hash/fnv"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/adapters/catalog"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// network is the delay each way.
var network = referee.Delay{Min: 10 * time.Millisecond, Max: 150 * time.Millisecond}

// stage is one provider as the referee plays it, and a coordinator that asks it
// through the adapter of its file.
type stage struct {
	p       provider.Provider
	referee *referee.Referee
	adapter *adapters.HTTP
	gate    *coordinator.Coordinator
}

// today is when the bubbles play. They begin in the year 2000, when an epoch was
// below the least number that is taken for one.
var today = time.Date(2026, 11, 30, 10, 20, 30, 0, time.UTC)

// newStage plays a provider inside a bubble; told is what the caller believes of it.
func newStage(t *testing.T, played referee.Play, told provider.Provider) *stage {
	t.Helper()
	time.Sleep(time.Until(today))
	slug := played.Provider.Slug
	played.Go, played.Back = network, network
	seed := fnv.New64()
	_, _ = seed.Write([]byte(slug))
	r, err := referee.New(seed.Sum64(), played)
	require.NoError(t, err)
	t.Cleanup(r.Close)
	r.Serve(referee.Listen())
	a, err := adapters.New(told, adapters.Options{
		Client:  r.Client(),
		BaseURL: r.URL(slug),
		Getenv:  func(name string) string { return "user-of-" + name + ":secret-of-" + name },
		Contact: "ops@example.com",
	})
	require.NoError(t, err)
	var adapted registry.Registry
	require.NoError(t, adapted.Register(a))
	c, err := coordinator.New(coordinator.Config{Registry: &adapted})
	require.NoError(t, err)
	return &stage{told, r, a, c}
}

// scripted plays the file of a provider in a bubble. It answers by script, which
// gets the path of a request behind the base URL, and its number.
func scripted(t *testing.T, slug string, script func(path string, n int) referee.Answer, f func(t *testing.T, s *stage)) {
	t.Helper()
	p := fileOf(t, slug)
	synctest.Test(t, func(t *testing.T) {
		s := newStage(t, referee.Play{Provider: p, Answer: func(a referee.Arrival) referee.Answer {
			return script(strings.TrimPrefix(a.Request.URL.Path, "/"+slug), a.N)
		}}, p)
		f(t, s)
		report := s.referee.Report(slug)
		require.Zero(t, report.Violated, report.Violations)
		require.NoError(t, s.gate.Shutdown(t.Context()))
	})
}

// ask makes one lookup, which waits for its turn.
func (s *stage) ask(t *testing.T, kind provider.Kind, endpoint, value string) (provider.Result, *coordinator.Error) {
	t.Helper()
	call := coordinator.Call{Provider: s.p.Slug, Key: s.key(), Wait: patience}
	return s.execute(t, call, provider.Query{Kind: kind, Endpoint: endpoint, Value: value})
}

func (s *stage) execute(t *testing.T, call coordinator.Call, q provider.Query) (provider.Result, *coordinator.Error) {
	t.Helper()
	res, err := s.gate.Execute(t.Context(), call, q)
	if err == nil {
		return res, nil
	}
	require.Empty(t, res.Data, "an error comes with no data")
	var e *coordinator.Error
	require.ErrorAs(t, err, &e)
	return res, e
}

// key is the alias of the key that is used, "" where there is none.
func (s *stage) key() string {
	if len(s.p.Auth.Env) == 0 {
		return ""
	}
	return s.p.Auth.Env[0]
}

func (s *stage) state(t *testing.T) coordinator.State {
	t.Helper()
	state, err := s.gate.State(s.p.Slug)
	require.NoError(t, err)
	return state
}

// readOnce reads the files once for all tests, each of which gets copies.
var readOnce = sync.OnceValues(catalog.All)

func files(t *testing.T) []provider.Provider {
	t.Helper()
	all, err := readOnce()
	require.NoError(t, err)
	copies := make([]provider.Provider, len(all))
	for i, p := range all {
		copies[i] = p.Clone()
	}
	return copies
}

func fileOf(t *testing.T, slug string) provider.Provider {
	t.Helper()
	all := files(t)
	i := slices.IndexFunc(all, func(p provider.Provider) bool { return p.Slug == slug })
	require.GreaterOrEqual(t, i, 0, "the catalogue has no %s", slug)
	return all[i]
}

// secondKey is the variable of one more key.
const secondKey = "PLAY_SECOND_KEY"

// inFull is a provider with all of its endpoints and, if it counts by key, two keys.
func inFull(p provider.Provider) provider.Provider {
	p.Throttle.Off = nil
	byKey := func(l provider.Limit) bool { return strings.Contains(l.Scope, provider.ScopeKey) }
	if len(p.Auth.Env) > 0 && slices.ContainsFunc(p.Throttle.Limits, byKey) {
		p.Auth.Env = append(slices.Clone(p.Auth.Env), secondKey)
	}
	return p
}

// lookupOf is the n-th lookup of a provider: its endpoints in turn, the kinds of
// each, and its keys.
func lookupOf(p provider.Provider, n int) (coordinator.Call, provider.Query) {
	e := p.Endpoints[n%len(p.Endpoints)]
	n /= len(p.Endpoints)
	kind := e.Kinds[n%len(e.Kinds)]
	call := coordinator.Call{Provider: p.Slug, Wait: patience}
	if keys := len(p.Auth.Env); keys > 0 {
		call.Key = p.Auth.Env[n%keys]
	}
	return call, provider.Query{Kind: kind, Endpoint: e.Name, Value: valueOf(e, kind, n), Params: paramsOf(p, e)}
}

func valueOf(e provider.Endpoint, kind provider.Kind, n int) string {
	if strings.Contains(e.JSON, "{value|number") {
		return fmt.Sprint(1000 + n)
	}
	switch kind {
	case provider.IP:
		return fmt.Sprintf("198.51.%d.%d", n/250, n%250)
	case provider.Domain:
		return fmt.Sprintf("host-%d.example.com", n)
	case provider.URL:
		return fmt.Sprintf("https://example.com/path/%d?q=a b&c=%%2F", n)
	case provider.Hash:
		return fmt.Sprintf("%064x", n)
	case provider.Email:
		return fmt.Sprintf("user+%d@example.com", n)
	case provider.Phone:
		return fmt.Sprintf("+1202555%04d", n)
	case provider.Company:
		return fmt.Sprintf("Example & Sons %d / Ltd", n)
	}
	return fmt.Sprintf("free text %d", n)
}

var anyPlaceholder = regexp.MustCompile(`\{([A-Za-z0-9_.-]+)(?:\|[a-z0-9|]+)?\}`)

// paramsOf fills the placeholders that only a query can.
func paramsOf(p provider.Provider, e provider.Endpoint) map[string]string {
	templates := []string{e.Path, e.JSON}
	for _, part := range []map[string]string{e.Params, e.Form, e.Headers} {
		for _, template := range part {
			templates = append(templates, template)
		}
	}
	all := map[string]string{}
	for _, found := range anyPlaceholder.FindAllStringSubmatch(strings.Join(templates, " "), -1) {
		switch name := found[1]; {
		case name == "value", name == "page", name == "contact", p.Auth.Kind == "path" && name == p.Auth.Name:
		default:
			all[name] = "1"
		}
	}
	return all
}

// counted counts by name, for many goroutines.
type counted struct {
	mu sync.Mutex
	n  map[string]int
}

func (c *counted) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.n == nil {
		c.n = map[string]int{}
	}
	c.n[name]++
}
