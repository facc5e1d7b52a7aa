package tracelog_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/tracelog"
)

func refuse(tr *coordinator.Trace, slug string, n int) {
	for range n {
		tr.Refused(context.Background(), coordinator.CallInfo{Provider: slug}, &coordinator.Error{Provider: slug, Reason: coordinator.ReasonTooLate})
	}
}

// sums are lines of refusals by provider, and what their summaries tell.
func sums(t *testing.T, b *book) (written map[string]int, more map[string][]int) {
	t.Helper()
	written, more = map[string]int{}, map[string][]int{}
	for _, m := range b.lines(t) {
		slug, _ := m["provider"].(string)
		switch m["msg"] {
		case "headgate: call refused":
			written[slug]++
		case "headgate: and more":
			assert.Equal(t, "refused", m["event"])
			assert.Equal(t, "WARN", m["level"], "as what it stands for")
			more[slug] = append(more[slug], int(m["more"].(float64)))
		}
	}
	return written, more
}

func TestSampling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Hour)
		b, tr := newBook(slog.LevelInfo, tracelog.Options{First: 10, Interval: time.Minute})
		refuse(tr, "a", 4221)
		refuse(tr, "b", 10)
		refuse(tr, "c", 11)
		tr.Breaker(coordinator.BreakerChange{Provider: "a", To: "closed"})
		written, more := sums(t, b)
		assert.Equal(t, map[string]int{"a": 10, "b": 10, "c": 10}, written)
		assert.Empty(t, more)
		assert.Contains(t, b.String(), "circuit closed", "another kind is sampled by itself")

		time.Sleep(time.Minute - 1)
		refuse(tr, "a", 1)
		_, more = sums(t, b)
		assert.Empty(t, more, "not over yet")

		time.Sleep(time.Nanosecond)
		tr.Going(t.Context(), coordinator.CallInfo{Provider: "z"}, 0) // is not written itself
		_, more = sums(t, b)
		assert.Equal(t, map[string][]int{"a": {4212}, "c": {1}}, more, "whatever happens next, and once")
		refuse(tr, "a", 12)
		refuse(tr, "b", 1)
		time.Sleep(time.Minute)
		refuse(tr, "a", 1)
		written, more = sums(t, b)
		assert.Equal(t, map[string]int{"a": 21, "b": 11, "c": 10}, written)
		assert.Equal(t, map[string][]int{"a": {4212, 2}, "c": {1}}, more)
		assert.Contains(t, b.String(), `"since":60000000000`)
	})
}

// The summary comes before the line that it precedes in time.
func TestSummaryFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, tr := newBook(slog.LevelInfo, tracelog.Options{First: 1, Interval: time.Second})
		refuse(tr, "a", 3)
		time.Sleep(time.Second)
		refuse(tr, "a", 1)
		var got []string
		for _, m := range b.lines(t) {
			got = append(got, strings.TrimPrefix(m["msg"].(string), "headgate: "))
		}
		assert.Equal(t, []string{"call refused", "and more", "call refused"}, got)
	})
}

// Each interval ends for itself, and a summary is due whoever was told of before.
func TestIntervalsApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, tr := newBook(slog.LevelInfo, tracelog.Options{First: 1, Interval: time.Minute})
		refuse(tr, "a", 3)
		time.Sleep(30 * time.Second)
		refuse(tr, "b", 4)
		time.Sleep(30 * time.Second)
		tr.Going(t.Context(), coordinator.CallInfo{}, 0)
		_, more := sums(t, b)
		assert.Equal(t, map[string][]int{"a": {2}}, more)
		time.Sleep(30 * time.Second)
		tr.Going(t.Context(), coordinator.CallInfo{}, 0)
		_, more = sums(t, b)
		assert.Equal(t, map[string][]int{"a": {2}, "b": {3}}, more)
	})
}

// What is not written for its level does not count: it would not have been written.
func TestSilentEventsDoNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, level := new(book), new(slog.LevelVar)
		tr := tracelog.New(slog.New(slog.NewJSONHandler(b, &slog.HandlerOptions{Level: level})), tracelog.Options{First: 2})
		for range 5 {
			tr.Going(t.Context(), coordinator.CallInfo{}, 0)
		}
		level.Set(slog.LevelDebug)
		tr.Going(t.Context(), coordinator.CallInfo{}, 0)
		time.Sleep(time.Hour)
		tr.Going(t.Context(), coordinator.CallInfo{}, 0)
		require.Len(t, b.lines(t), 2)
		assert.NotContains(t, b.String(), "and more")
	})
}

// Names that nobody declared take no memory each: they are one kind.
func TestUnknownProvidersAreOneKind(t *testing.T) {
	b, tr := newBook(slog.LevelInfo, tracelog.Options{First: 3})
	for i := range 100 {
		slug := fmt.Sprint("p", i)
		tr.Refused(t.Context(), coordinator.CallInfo{Provider: slug}, &coordinator.Error{Provider: slug, Reason: coordinator.ReasonUnknownProvider})
	}
	assert.Len(t, b.lines(t), 3)
}

// Of what many goroutines tell at once nothing is lost and nothing told twice.
func TestConcurrentSampling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, tr := newBook(slog.LevelInfo, tracelog.Options{First: 5, Interval: time.Second})
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for range 50 {
					refuse(tr, fmt.Sprint("p", i%2), 10)
					time.Sleep(70 * time.Millisecond)
				}
			})
		}
		all.Wait()
		time.Sleep(time.Second)
		tr.Pressure(coordinator.PressureChange{})
		written, more := sums(t, b)
		total := 0
		for slug, n := range written {
			require.LessOrEqual(t, n, 5*4, slug)
			total += n
			for _, m := range more[slug] {
				total += m
			}
		}
		assert.Equal(t, 8*50*10, total)
	})
}
