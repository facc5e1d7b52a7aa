package main

import (
	"bytes"
	"encoding/csv"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// oneLookup is an answer for one list.
func oneLookup() *lookup {
	return &lookup{job: job{indicator{provider.Domain, "a.b", []string{"l"}}, "e"}, provider: "p"}
}

func TestResultsStopAtTheFirstError(t *testing.T) {
	b := &buffer{wrote: func() error { return assert.AnError }}
	r := newResults(b)
	assert.ErrorIs(t, r.write(oneLookup()), assert.AnError)
	b.wrote = nil
	assert.ErrorIs(t, r.write(oneLookup()), assert.AnError, "a file with a hole in it is worse than a short one")
	assert.Empty(t, b.String())
	assert.NoError(t, (*results)(nil).write(oneLookup()))
}

func TestBrokenOffBeforeItWasAskedIsNoResult(t *testing.T) {
	b := &buffer{}
	r := newResults(b)
	canceled := &coordinator.Error{Reason: coordinator.ReasonCanceled}
	require.NoError(t, r.write(&lookup{job: oneLookup().job, err: canceled, broken: true}))
	assert.Empty(t, b.String())
	require.NoError(t, r.write(&lookup{job: oneLookup().job, err: canceled, broken: true, attempts: 1}))
	assert.Contains(t, b.String(), "canceled")
}

// Each list that asked gets its record, in one write.
func TestEachListGetsItsRecord(t *testing.T) {
	writes := 0
	b := &buffer{wrote: func() error { writes++; return nil }}
	l := oneLookup()
	l.lists = []string{"a", "b"}
	require.NoError(t, newResults(b).write(l))
	assert.Equal(t, 1, writes)
	var lists []string
	for _, r := range records(t, b.String()) {
		lists = append(lists, r.List)
	}
	assert.Equal(t, []string{"a", "b"}, lists)
}

func TestMendCutsATornLineOff(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"a\nb\n":                             "a\nb\n",
		"a\nb":                               "a\n",
		"torn":                               "",
		"a\n" + strings.Repeat("x", 150<<10): "a\n",
		strings.Repeat("x", 150<<10) + "\n" + "y": strings.Repeat("x", 150<<10) + "\n",
	} {
		name := filepath.Join(t.TempDir(), "f")
		require.NoError(t, os.WriteFile(name, []byte(text), 0o600))
		out, end, err := options{output: name}.results(nil, true)
		require.NoError(t, err)
		require.NoError(t, out.write(oneLookup()))
		require.NoError(t, end())
		got, err := os.ReadFile(name)
		require.NoError(t, err)
		rest, ok := strings.CutPrefix(string(got), want)
		require.True(t, ok, len(text))
		assert.Len(t, records(t, rest), 1)
	}
}

// In CSV, too, "no data" and "could not ask" are columns of their own.
func TestCSV(t *testing.T) {
	name := filepath.Join(t.TempDir(), "x.csv")
	at := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	data, empty, refused := oneLookup(), oneLookup(), oneLookup()
	data.result = provider.Result{Data: []byte("{\"a\":\n [1, \"x,\\\"y\"]}"), At: at}
	data.waited = 1500 * time.Millisecond
	empty.result = provider.Result{Empty: true, Suspicious: true}
	refused.err = &coordinator.Error{Provider: "p", Reason: coordinator.ReasonTooLate, Stage: coordinator.StageQueue, RetryAt: at}
	out, end, err := options{output: name}.results(nil, false)
	require.NoError(t, err)
	for _, l := range []*lookup{data, empty, refused} {
		require.NoError(t, out.write(l))
	}
	require.NoError(t, end())
	text, err := os.ReadFile(name)
	require.NoError(t, err)
	rows, err := csv.NewReader(bytes.NewReader(text)).ReadAll()
	require.NoError(t, err)
	require.Len(t, rows, 4)
	column := func(row int, name string) string {
		for i, h := range rows[0] {
			if h == name {
				return rows[row][i]
			}
		}
		return "no such column"
	}
	assert.JSONEq(t, `{"a":[1,"x,\"y"]}`, column(1, "data"))
	assert.Equal(t, "1.5", column(1, "waited_seconds"))
	for row, want := range [][4]string{1: {"true", "false", "", ""}, 2: {"true", "true", "", ""}, 3: {"false", "false", "too_late", "2026-11-30T12:00:00Z"}} {
		if row > 0 {
			assert.Equal(t, want, [4]string{column(row, "ok"), column(row, "empty"), column(row, "reason"), column(row, "retry_at")})
		}
	}
	assert.Equal(t, 4, strings.Count(string(text), "\n"), "a line each: a torn one is seen")

	// A run that goes on writes no second line of names.
	out, end, err = options{output: name}.results(nil, true)
	require.NoError(t, err)
	require.NoError(t, out.write(data))
	require.NoError(t, end())
	text, err = os.ReadFile(name)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(string(text), "indicator,"))
	assert.Equal(t, 5, strings.Count(string(text), "\n"))
}

// Others decide what stands in a cell: none of them is a formula.
func TestCellsAreNoFormulas(t *testing.T) {
	for cell, want := range map[string]string{
		`=HYPERLINK("http://evil")`: `'=HYPERLINK("http://evil")`,
		"+49301234":                 "'+49301234",
		"-1":                        "'-1",
		"@SUM(1)":                   "'@SUM(1)",
		"\t=1":                      "'\t=1",
		"\r=1":                      "' =1",
		"\n=1":                      "' =1",
		"＝1":                        "'＝1",
		"1.1.1.1":                   "1.1.1.1",
		"a=b":                       "a=b",
		"":                          "",
		"{}":                        "{}",
	} {
		assert.Equal(t, want, harmless(cell))
	}
	assert.Equal(t, "' =1", harmless(" =1"), "spaces are passed over")
	for i, c := range (record{Indicator: "=1", List: "@x", Provider: "+p", Data: []byte(`-5`), Error: &failure{Message: "=m"}}).cells() {
		assert.False(t, c != "" && strings.ContainsAny(c[:1], "=+-@"), csvHead[i])
	}
	assert.Len(t, record{}.cells(), len(csvHead))
}
