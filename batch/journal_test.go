package batch_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/batch"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// memory is a journal that writes down what it is told. Its functions, where set,
// may refuse.
type memory struct {
	began, finished, failed func(key string) error

	mu    sync.Mutex
	notes []string
	done  map[string]bool
}

func (m *memory) note(what, key string, f func(string) error) error {
	if f != nil {
		if err := f(key); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notes = append(m.notes, what+" "+key)
	if m.done == nil {
		m.done = map[string]bool{}
	}
	m.done[key] = m.done[key] || what == "finished"
	return nil
}

func (m *memory) Done(key string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.done[key]
}

func (m *memory) Began(key string) error    { return m.note("began", key, m.began) }
func (m *memory) Finished(key string) error { return m.note("finished", key, m.finished) }
func (m *memory) Failed(key string) error   { return m.note("failed", key, m.failed) }

func TestTheJournalIsTold(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		tries := 0
		jobs := []batch.Job{
			{Key: "a", Call: to, Do: func(context.Context) error { return nil }},
			{Key: "b", Call: to, Do: func(context.Context) error { return errors.New("no") }},
			{Key: "", Call: to, Do: func(context.Context) error { return nil }},
			{Key: "c", Call: to, Do: func(context.Context) error { // waiting cures it
				if tries++; tries < 3 {
					return provider.Feedback{Outcome: provider.QuotaSpent, RetryAfter: 40 * time.Hour}.Err(nil)
				}
				return nil
			}},
			{Key: "cut", Call: to, Do: func(ctx context.Context) error { return sleep(ctx, 90*time.Hour) }},
			{Key: "unsent", Call: to, Do: func(context.Context) error { return nil }},
			{Key: "a", Call: to, Do: func(context.Context) error { return nil }}, // is pulled too early to be known as done
		}
		var m memory
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Hour)
		defer cancel()
		all := collect(batch.Run(ctx, c, slices.Values(jobs), batch.Options{Journal: &m}))
		require.Len(t, all, 7)
		slices.Sort(m.notes) // the loop's notes race with those of the jobs
		assert.Equal(t, []string{"began a", "began b", "began c", "began cut", "failed b", "finished a", "finished c"}, m.notes)

		again := collect(batch.Run(t.Context(), c, slices.Values(jobs[:4]), batch.Options{Journal: &m}))
		assert.Len(t, again, 2, "b, which failed, and the one without a key")
	}, declare("p", provider.Throttle{MaxInFlight: 1}))
}

// A job of which nobody heard the answer may have been done. One whose last answer
// was a refusal was not.
func TestTheJournalKeepsWhatMayHaveArrived(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		jobs := []batch.Job{
			{Key: "refused", Call: to, Do: func(context.Context) error {
				return provider.Feedback{Outcome: provider.QuotaSpent, RetryAfter: 40 * time.Hour}.Err(nil)
			}},
			{Key: "cut", Call: coordinator.Call{Provider: "q"}, Do: func(ctx context.Context) error { return sleep(ctx, 90*time.Hour) }},
			{Key: "timeout", Call: coordinator.Call{Provider: "timeout"}, Do: func(ctx context.Context) error { return sleep(ctx, time.Hour) }},
			{Key: "unsent", Call: coordinator.Call{Provider: "q"}, Do: func(context.Context) error { return nil }},
		}
		var m memory
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Hour, cancel)
		for job, res := range batch.Run(ctx, c, slices.Values(jobs), batch.Options{Journal: &m}) {
			require.Error(t, res.Err, job.Key)
			if job.Key == "refused" {
				require.ErrorIs(t, res.Err, context.Canceled)
				var e *coordinator.Error
				require.ErrorAs(t, res.Err, &e)
				assert.Equal(t, 39*time.Hour, e.RetryAfter, "the end of the run does not change what is known")
				assert.Equal(t, provider.QuotaSpent, e.Answer.Outcome)
				assert.Equal(t, coordinator.StageRetry, e.Stage)
			}
		}
		slices.Sort(m.notes)
		assert.Equal(t, []string{"began cut", "began refused", "began timeout", "failed refused"}, m.notes)
	}, declare("p", provider.Throttle{}), declare("q", provider.Throttle{MaxInFlight: 1}),
		provider.Provider{Slug: "timeout", Timeout: time.Minute})
}

// What the journal cannot note is not sent: no quota is spent on what would be
// lost. What is out comes back; the rest of what was pulled comes out with the
// journal's error.
func TestAJournalThatFailsEndsTheRun(t *testing.T) {
	full := errors.New("no space left on device")
	for _, when := range []string{"began", "finished", "failed"} {
		t.Run(when, func(t *testing.T) {
			limit := every("1s")
			limit.Limits[0].Counted = provider.CountedSent
			bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
				refuse := func(key string) error {
					if key == "" || time.Since(epoch) < 20*time.Second {
						return nil
					}
					return full
				}
				m := memory{}
				switch when {
				case "began":
					m.began = refuse
				case "finished":
					m.finished = refuse
				case "failed":
					m.failed = refuse
				}
				pulled, sent := 0, 0
				var mu sync.Mutex
				jobs := endless(&pulled, to, func(ctx context.Context) error {
					mu.Lock()
					sent++
					mu.Unlock()
					if err := sleep(ctx, 3500*time.Millisecond); err != nil || when != "failed" {
						return err
					}
					return provider.Feedback{Outcome: provider.Rejected}.Err(nil)
				})
				byKind := map[string]int{}
				for _, res := range batch.Run(t.Context(), c, jobs, batch.Options{Journal: &m, Ahead: 50}) {
					switch {
					case errors.Is(res.Err, full):
						byKind["journal"]++
						require.Contains(t, res.Err.Error(), "batch: journal: no space left on device")
					case res.Err == nil, when == "failed" && res.Attempts == 1:
						byKind["back"]++
					default:
						require.NoError(t, res.Err)
					}
				}
				assert.Equal(t, sent, byKind["back"], "all that was sent came back")
				assert.Equal(t, pulled, byKind["back"]+byKind["journal"], "each comes out once")
				assert.Less(t, time.Since(epoch), 24*time.Second, "nobody waits for a turn")
				s, err := c.State("p")
				require.NoError(t, err)
				assert.Zero(t, s.Outcomes[provider.Canceled], "what was not sent is forgotten, not charged")
				went := 0
				for _, n := range m.notes {
					if strings.HasPrefix(n, "began ") {
						went++
					}
				}
				assert.Equal(t, sent, went, "what began was sent")
			}, declare("p", limit))
		})
	}
}

// A refusal that waiting would cure is not waited for when the run is over.
func TestARefusalAfterTheJournalFailed(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		jobs := []batch.Job{
			{Key: "a", Call: to, Do: func(ctx context.Context) error {
				return errors.Join(sleep(ctx, time.Minute), provider.Feedback{Outcome: provider.QuotaSpent, RetryAfter: time.Hour}.Err(nil))
			}},
			{Key: "b", Call: coordinator.Call{Provider: "q"}, Do: func(ctx context.Context) error { return sleep(ctx, time.Second) }},
		}
		m := memory{finished: func(string) error { return errors.New("full") }}
		all := collect(batch.Run(t.Context(), c, slices.Values(jobs), batch.Options{Journal: &m}))
		require.Len(t, all, 2)
		require.ErrorIs(t, all[1].res.Err, coordinator.ErrQuotaSpent)
		assert.Equal(t, time.Minute, all[1].at)
	}, declare("p", provider.Throttle{}), declare("q", provider.Throttle{}))
}

// epoch is the beginning of every bubble.
var epoch = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// What was done before is skipped; no key, no question.
func TestDoneIsSkipped(t *testing.T) {
	bubble(t, func(t *testing.T, c *coordinator.Coordinator) {
		var asked []string
		var jobs []batch.Job
		for i := range 10 {
			key := fmt.Sprint(i)
			if i == 9 {
				key = ""
			}
			jobs = append(jobs, batch.Job{Key: key, Call: to, Do: func(context.Context) error { return nil }})
		}
		var p batch.Progress
		all := collect(batch.Run(t.Context(), c, slices.Values(jobs), batch.Options{Progress: &p, Done: func(key string) bool {
			asked = append(asked, key)
			return key < "5"
		}}))
		assert.Len(t, all, 5)
		assert.Equal(t, strings.Split("012345678", ""), asked)
		assert.Equal(t, []batch.Tally{{Provider: "p", Skipped: 5, Pulled: 5, Done: 5}}, p.Snapshot())
	}, declare("p", provider.Throttle{}))
}
