package catalog_test

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answersOf are the sample answers of one provider in testdata/answers.yaml.
type answersOf struct {
	Provider string   `yaml:"provider"`
	Source   string   `yaml:"source"` // one of the file's: where its answers are told
	Answers  []answer `yaml:"answers"`
}

// answer is one answer, and what a lookup makes of it.
type answer struct {
	Endpoint string   `yaml:"endpoint"` // none: the first
	Status   int      `yaml:"status"`
	Header   []string `yaml:"header"`
	Body     string   `yaml:"body"`
	Want     string   `yaml:"want"` // as meant writes it
}

// RoundTrip gives the answer, dated so that an absolute reset is a wait.
func (a answer) RoundTrip(r *http.Request) (*http.Response, error) {
	h := http.Header{"Date": {"Mon, 30 Nov 2026 12:00:00 GMT"}}
	for _, line := range a.Header {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Date" {
			h.Del(name)
		}
		h.Add(name, value)
	}
	return &http.Response{StatusCode: a.Status, Header: h, Body: io.NopCloser(strings.NewReader(a.Body)), Request: r}, nil
}

func answers(t *testing.T) (all []answersOf) {
	t.Helper()
	text, err := os.ReadFile("testdata/answers.yaml")
	require.NoError(t, err)
	require.NoError(t, yaml.UnmarshalWithOptions(text, &all, yaml.Strict()))
	return all
}

// The answers as the sources of each file tell them: the provider's own words for
// a refusal, for "nothing found", and what an ordinary answer looks like.
func TestEachProvidersAnswersAreReadAsItMeansThem(t *testing.T) {
	for _, of := range answers(t) {
		p := fileOf(t, of.Provider)
		assert.Contains(t, p.Sources, of.Source, p.Slug)
		for _, c := range of.Answers {
			assert.Equal(t, c.Want, read(t, p, c), "%s %s: %d %v %s", p.Slug, c.Endpoint, c.Status, c.Header, c.Body)
		}
	}
}

// A provider with words of its own has a sample of an ordinary answer, and one of
// what its words say.
func TestEachDialectHasSamples(t *testing.T) {
	sampled := map[string][2]bool{}
	var slugs []string
	for _, of := range answers(t) {
		slugs = append(slugs, of.Provider)
		var has [2]bool
		for _, c := range of.Answers {
			ordinary := c.Want == "ok" || strings.HasPrefix(c.Want, "ok budget") || strings.HasPrefix(c.Want, "ok used")
			has[0], has[1] = has[0] || ordinary, has[1] || !ordinary
		}
		sampled[of.Provider] = has
	}
	assert.True(t, slices.IsSorted(slugs))
	assert.Len(t, sampled, len(slugs), "a provider is there twice")
	for _, p := range files(t) {
		if len(p.Dialect.Signals) > 0 {
			assert.Equal(t, [2]bool{true, true}, sampled[p.Slug], "%s: an ordinary answer, and another", p.Slug)
		}
	}
}

// Each signal says something that nothing else does: without it a sample would be
// read otherwise.
func TestEachSignalIsNeeded(t *testing.T) {
	for _, of := range answers(t) {
		p := fileOf(t, of.Provider)
		for i, s := range p.Dialect.Signals {
			without := p.Clone()
			without.Dialect.Signals = slices.Delete(without.Dialect.Signals, i, i+1)
			needed := slices.ContainsFunc(of.Answers, func(c answer) bool { return read(t, without, c) != c.Want })
			assert.True(t, needed, "%s: signals[%d]: %+v", p.Slug, i, s)
		}
	}
}

// read is what a lookup makes of an answer.
func read(t *testing.T, p provider.Provider, c answer) string {
	t.Helper()
	a, err := adapters.New(p, adapters.Options{Client: &http.Client{Transport: c}, Getenv: func(string) string { return "k" }, Contact: "ops@example.com"})
	require.NoError(t, err)
	i := slices.IndexFunc(p.Endpoints, func(e provider.Endpoint) bool { return c.Endpoint == "" || e.Name == c.Endpoint })
	require.GreaterOrEqual(t, i, 0, "%s: no endpoint %s", p.Slug, c.Endpoint)
	return meant(a.Lookup(t.Context(), provider.Query{Endpoint: p.Endpoints[i].Name, Value: "v", Params: needed(p, p.Endpoints[i])}))
}

// meant writes what a lookup came to: the outcome; empty, suspicious, before; what
// is paused or spent; the wait; and what was told of budgets and costs.
func meant(r provider.Result, err error) string {
	f := r.Feedback
	if err != nil {
		var known bool
		if f, known = provider.FeedbackOf(err); !known {
			return errors.Join(errors.New("no feedback"), err).Error()
		}
	}
	words := []string{string(cmp.Or(f.Outcome, provider.OK))}
	for word, on := range map[string]bool{" empty": r.Empty, " suspicious": r.Suspicious, " before": f.Before} {
		if on {
			words = append(words, word)
		}
	}
	slices.Sort(words[1:])
	for _, named := range [][2]string{{"scope", f.Scope}, {"limit", f.Limit}, {"wait", strings.TrimPrefix(f.RetryAfter.String(), "0s")}} {
		if named[1] != "" {
			words = append(words, " "+named[0]+"="+named[1])
		}
	}
	for _, b := range f.Budgets {
		words = append(words, " budget="+told(b))
	}
	for _, unit := range slices.Sorted(maps.Keys(f.Used)) {
		words = append(words, fmt.Sprintf(" used=%s:%d", unit, f.Used[unit]))
	}
	return strings.Join(words, "")
}

// told writes a budget: name:remaining/limit@reset, with ? for what was not told.
func told(b provider.Budget) string {
	amount := func(n int64, has bool) string {
		if !has {
			return "?"
		}
		return strconv.FormatInt(n, 10)
	}
	text := b.Name + ":" + amount(b.Remaining, b.HasRemaining) + "/" + amount(b.Limit, b.HasLimit)
	if b.HasReset {
		text += "@" + b.Reset.Round(time.Millisecond).String()
	}
	if b.Used > 0 {
		text += fmt.Sprintf(" used %d", b.Used)
	}
	if b.Window > 0 {
		text += " per " + b.Window.String()
	}
	return text
}
