package main

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"
)

// csvHead names the columns. "No data" is ok and empty; what could not be asked is
// not ok and has a reason.
var csvHead = []string{
	"indicator", "kind", "list", "provider", "endpoint",
	"ok", "empty", "suspicious", "cached", "more",
	"reason", "stage", "attempts", "retry_at", "message",
	"waited_seconds", "at", "data",
}

// cells are the record in the order of csvHead.
func (r record) cells() []string {
	var e failure
	attempts := ""
	if r.Error != nil {
		e = *r.Error
		attempts = strconv.Itoa(e.Attempts)
	}
	cells := []string{
		r.Indicator, string(r.Kind), r.List, r.Provider, r.Endpoint,
		strconv.FormatBool(r.OK), strconv.FormatBool(r.Empty), strconv.FormatBool(r.Suspicious),
		strconv.FormatBool(r.Cached), strconv.FormatBool(r.More),
		string(e.Reason), string(e.Stage), attempts, instant(e.RetryAt), e.Message,
		strconv.FormatFloat(r.Waited, 'f', -1, 64), instant(r.At), compact(r.Data),
	}
	for i, c := range cells {
		cells[i] = harmless(c)
	}
	return cells
}

func instant(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

// compact is the data on one line.
func compact(data json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return string(data)
	}
	return b.String()
}

// harmless is a cell that no spreadsheet takes for a formula: where the answers come
// from, others decide what stands in them. It is one line, so that a torn one is
// seen.
func harmless(cell string) string {
	cell = strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		return r
	}, cell)
	// A spreadsheet may pass over spaces; a full-width sign is a sign to some.
	if start := strings.TrimLeft(cell, " \t\u00a0"); start != "" && strings.ContainsAny(start[:1], "=+-@") ||
		strings.HasPrefix(cell, "\t") || strings.HasPrefix(start, "＝") || strings.HasPrefix(start, "＋") ||
		strings.HasPrefix(start, "－") || strings.HasPrefix(start, "＠") {
		return "'" + cell
	}
	return cell
}
