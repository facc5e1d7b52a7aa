package dialect_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// vector is one answer of a provider and what it means. Several may share an ID:
// the list of dialects that were collected from public pages, by number.
type vector struct {
	id      string
	dialect string // YAML; empty: the conventions alone
	status  int
	lines   []string
	body    string
	want    provider.Feedback // without Detail
}

// written are the dialects of the collection. Its other numbers are not in use.
const written = `D01 D02 D03 D04 D05 D06 D07 D08 D09 D10 D11 D13 D14 D15 D16 D17 D18 D20 D21 D22 D23 D25 D26 D27 D28 D29 D30 D35 D36 D37 D38
 D40 D42 D43 D44 D45 D46 D47 D48 D49 D51 D52 D54 D56 D57 D58 D60 D61 D63 D64 D65 D66 D68 D69 D71 D72 D73 D74 D75 D76 D77 D78 D79 D81 D82 D83`

var vectors = slices.Concat(standardVectors, epochVectors, deltaVectors, textVectors, usageVectors, signalVectors)

func TestNoDialectIsMissing(t *testing.T) {
	tested := map[string]bool{}
	for _, v := range vectors {
		tested[v.id] = true
	}
	assert.Equal(t, strings.Fields(written), slices.Sorted(maps.Keys(tested)))
}

// TestDialects reads each answer as its declaration says, and the declarations
// as a provider's file would have them.
func TestDialects(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.id, func(t *testing.T) {
			got := readBy(t, v.dialect, v.status, v.body, v.lines...)
			if v.want.Outcome != provider.OK {
				assert.NotEmpty(t, got.Detail)
			}
			got.Detail = ""
			assert.Equal(t, v.want, got, "%d %q %s", v.status, v.lines, v.body)
		})
	}
}

// declare parses a dialect; the limits that its signals may name are there.
func declare(t testing.TB, text string) provider.Dialect {
	t.Helper()
	if text == "" {
		return provider.Dialect{}
	}
	p, err := provider.Parse([]byte(`slug: x
throttle: {limits: [{name: minute, max: 60, per: 1m}, {name: day, max: 500, per: day}]}
dialect:
  ` + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n  ") + "\n"))
	require.NoError(t, err, text)
	return p.Dialect
}

func readBy(t *testing.T, text string, status int, body string, lines ...string) provider.Feedback {
	t.Helper()
	h := http.Header{}
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ":")
		h.Add(name, strings.TrimPrefix(value, " "))
	}
	return dialect.Read(declare(t, text), &http.Response{StatusCode: status, Header: h}, []byte(body), now)
}

const unknown = -1

// budget is one with the parts that are not unknown (a reset and a window: 0 or
// below).
func budget(name string, limit, remaining int64, reset, window time.Duration) provider.Budget {
	b := provider.Budget{Name: name, Window: max(window, 0)}
	if limit != unknown {
		b.Limit, b.HasLimit = limit, true
	}
	if remaining != unknown {
		b.Remaining, b.HasRemaining = remaining, true
	}
	if reset > 0 {
		b.Reset, b.HasReset = reset, true
	}
	return b
}

func of(unit string, b provider.Budget) provider.Budget {
	b.Unit = unit
	return b
}

func using(n int64, b provider.Budget) provider.Budget {
	b.Used = n
	return b
}

func told(o provider.Outcome, wait time.Duration, budgets ...provider.Budget) provider.Feedback {
	return provider.Feedback{Outcome: o, RetryAfter: wait, Budgets: budgets}
}

func ok(budgets ...provider.Budget) provider.Feedback { return told(provider.OK, 0, budgets...) }

func limited(wait time.Duration, budgets ...provider.Budget) provider.Feedback {
	return told(provider.RateLimited, wait, budgets...)
}

func spentLimit(limit string, wait time.Duration, budgets ...provider.Budget) provider.Feedback {
	f := told(provider.QuotaSpent, wait, budgets...)
	f.Limit = limit
	return f
}

func scoped(scope string, f provider.Feedback) provider.Feedback {
	f.Scope = scope
	return f
}

func costing(unit string, n int64, f provider.Feedback) provider.Feedback {
	f.Used = map[string]int64{unit: n}
	return f
}

// stamp is a Date line so long before an epoch.
func stamp(epoch int64, before time.Duration) string {
	return "Date: " + time.Unix(epoch, 0).Add(-before).UTC().Format(http.TimeFormat)
}
