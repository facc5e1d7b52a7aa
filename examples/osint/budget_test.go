package main

import (
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/headgate/headgate/internal/referee"
)

// No provider gets more than so many calls; what is left is told as not asked, in
// the table, in the results, and never dropped.
func TestMaxCalls(t *testing.T) {
	bubble(t, func(t *testing.T) {
		begin := time.Now()
		n := connect(t, nil, "shodan", "virustotal")
		got := n.run(t, "-providers", "shodan,virustotal", "-cache", "off", "-max-calls", "7", "-json", "-f", list(t, 20))
		assert.Equal(t, exitOK, got.code)
		assert.Less(t, time.Since(begin), 2*time.Minute)
		assert.EqualValues(t, 7, n.Report("shodan").Arrivals)
		assert.EqualValues(t, 7, n.Report("virustotal").Arrivals)
		left := 0
		all := records(t, got.stdout)
		for _, r := range all {
			if r.OK {
				continue
			}
			left++
			assert.Equal(t, reasonMaxCalls, r.Error.Reason)
			assert.Zero(t, r.Error.Attempts)
			assert.Contains(t, r.Error.Message, "-max-calls")
		}
		assert.Len(t, all, 40)
		assert.Equal(t, 26, left)
		assert.Contains(t, got.stderr, "shodan: 13 not asked: its calls of this run are spent (-max-calls)\n")
		assert.Contains(t, got.stderr, "answered: 14 of 40 lookups, 26 not asked in")
	})
}

// Nobody waits for a turn to hear that there is no call left.
func TestMaxCallsAreCountedBeforeTheWait(t *testing.T) {
	bubble(t, func(t *testing.T) {
		begin := time.Now()
		n := connect(t, nil, "virustotal")
		got := n.run(t, "-providers", "virustotal", "-cache", "off", "-max-calls", "4", "-json", "-f", list(t, 20))
		assert.Equal(t, exitOK, got.code)
		assert.EqualValues(t, 4, n.arrivals())
		assert.Less(t, time.Since(begin), 30*time.Second, "four go at once, the fifth would have had to wait for a minute")
	})
}

// Retries are calls, too.
func TestMaxCallsCountsRetries(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := connect(t, func(p *referee.Play) {
			p.Answer = func(referee.Arrival) referee.Answer {
				return referee.Answer{Status: http.StatusBadGateway, Body: "{}"}
			}
		}, "ip-api")
		got := n.run(t, "-providers", "ip-api", "-cache", "off", "-max-calls", "4", "-json", "1.1.1.1", "8.8.8.8", "9.9.9.9")
		assert.Equal(t, exitFailed, got.code)
		assert.EqualValues(t, 4, n.arrivals())
		assert.Len(t, records(t, got.stdout), 3)
		assert.Contains(t, got.stdout, `"reason":"max_calls"`)
	})
}

// So are pages. What the pages brought before is kept.
func TestMaxCallsCountsPages(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := connect(t, nil, "certspotter")
		got := n.run(t, "-providers", "certspotter", "-cache", "off", "-max-calls", "5", "-json", "a.example", "b.example", "c.example", "d.example")
		assert.Equal(t, exitOK, got.code)
		assert.EqualValues(t, 5, n.arrivals())
		all := records(t, got.stdout)
		assert.Len(t, all, 4)
		assert.True(t, all[0].OK, "three pages")
		var stages []string
		for _, r := range all[1:] {
			assert.Equal(t, reasonMaxCalls, r.Error.Reason)
			stages = append(stages, string(r.Error.Stage))
			if r.Error.Attempts > 0 {
				assert.NotEmpty(t, r.Data, "the pages before")
			}
		}
		assert.Contains(t, stages, "retry", "the second lookup's third page was one too many")
	})
}

// A lookup that has pages is done before the next begins: a small quota answers a
// few lookups, and not the first page of many.
func TestPagedLookupsGoOneByOne(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := connect(t, nil, "certspotter")
		got := n.run(t, "-providers", "certspotter", "-cache", "off", "-wait", "30m", "-json", "a.example", "b.example", "c.example", "d.example", "e.example")
		answered := 0
		for _, r := range records(t, got.stdout) {
			if r.OK {
				answered++
			}
		}
		assert.Equal(t, 3, answered, "of ten calls an hour, three each")
		assert.Zero(t, n.Report("certspotter").Violated)
	})
}
