package report

import (
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func table() Table {
	return Table{
		Title: "Speed", How: "By hand.", Ours: "Headgate", Slack: 0.02,
		Columns: []Column{{Name: "ns", Better: Lower}, {Name: "done", Better: Higher, Format: Percent}, {Name: "of"}},
		Rows: []Row{
			{Name: "Headgate", Values: []float64{1000, 1, 7}},
			{Name: "Headgate, otherwise", Values: []float64{900, 0.5, 7}},
			{Name: "fast", Values: []float64{450, 0.9, 7}, Lacks: "breaker"},
			{Name: "as fast", Values: []float64{890, 1, 7}},
			{Name: "blind", Values: []float64{math.NaN(), math.NaN(), 7}},
		},
	}
}

func TestTable(t *testing.T) {
	var b strings.Builder
	table().Write(&b)
	require.Equal(t, `### Speed

By hand.

| | ns | done | of | it has no |
|---|--:|--:|--:|---|
| Headgate | 1,000 | **100 %** | 7 |  |
| Headgate, otherwise | 900 | 50 % | 7 |  |
| fast | **450** | 90 % | 7 | breaker |
| as fast | 890 | **100 %** | 7 |  |
| blind | – | – | 7 |  |

- *ns*: better than Headgate (900): fast (450).
- Why fast: it has no breaker.

`, b.String())
}

func TestRemarks(t *testing.T) {
	tab := table()
	tab.Slack = 0
	tab.Why = map[string]string{"fast": "it is a toy", "as fast": "it is a toy", "blind": "it cannot see"}
	require.Equal(t, []string{"*ns*: better than Headgate (900): fast (450), as fast (890).", "Why fast, as fast: it is a toy."}, tab.Remarks())
	tab.Columns[0].Better = Higher
	require.Empty(t, tab.Remarks(), "more is better now")
	tab = table()
	tab.Fold = true
	require.Empty(t, tab.Remarks())
	tab = table()
	tab.Columns[0].Format = func(float64) string { return "about the same" }
	require.Empty(t, tab.Remarks(), "nobody could see the difference")
}

func TestFold(t *testing.T) {
	tab := table()
	tab.Fold = true
	var b strings.Builder
	tab.Write(&b)
	require.True(t, strings.HasPrefix(b.String(), "<details><summary>Speed</summary>\n\nBy hand."), b.String())
	require.True(t, strings.HasSuffix(b.String(), "\n\n</details>\n\n"), b.String())
	require.NotContains(t, b.String(), "**")
}

func TestFormats(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 0.123: "0.12", 1.25: "1.2", 12: "12", 99.96: "100", 1234567: "1,234,567", -1234: "-1,234", 0.996: "1"} {
		require.Equal(t, want, Number(v), v)
	}
	for v, want := range map[float64]string{0: "0", 0.0001: "< 0.1 %", 0.012: "1.2 %", 0.5: "50 %", 1: "100 %"} {
		require.Equal(t, want, Percent(v), v)
	}
	for v, want := range map[float64]string{0: "0", 0.02: "20 ms", 1.04: "1.0 s", 300: "300 s", 5400: "5,400 s", 7200: "2.0 h"} {
		require.Equal(t, want, Seconds(v), v)
	}
	require.Equal(t, "0.980", Three(0.98))
}

func TestVerdict(t *testing.T) {
	require.Equal(t, "holds", Target{Known: true, Holds: true}.Verdict())
	require.Equal(t, "**does not hold**", Target{Known: true}.Verdict())
	require.Equal(t, "not measured", Target{Holds: true}.Verdict())
}
