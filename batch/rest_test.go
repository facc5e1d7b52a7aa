package batch

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Where a refusal does not tell when to come back, or tells what does not come true,
// tries get rarer; a told instant is kept otherwise.
func TestRefusedNeverSpins(t *testing.T) {
	now := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)
	var tr track
	var waits []time.Duration
	for range 12 {
		waits = append(waits, tr.refused(time.Time{}, now).Sub(now))
	}
	ms := time.Millisecond
	assert.Equal(t, []time.Duration{100 * ms, 200 * ms, 400 * ms, 800 * ms, 1600 * ms, 3200 * ms, 6400 * ms, 12800 * ms, 25600 * ms,
		30 * time.Second, 30 * time.Second, 30 * time.Second}, waits)

	tr.refusals = 0
	assert.Equal(t, 100*ms, tr.refused(now, now).Sub(now), "an instant that is over tells nothing")
	assert.Equal(t, 200*ms, tr.refused(now.Add(-time.Hour), now).Sub(now))

	tr.refusals = 0
	for range inVain {
		assert.Equal(t, ms, tr.refused(now.Add(ms), now).Sub(now))
	}
	assert.Equal(t, 100*ms, tr.refused(now.Add(ms), now).Sub(now))
	assert.Equal(t, time.Second, tr.refused(now.Add(time.Second), now).Sub(now))

	tr = track{until: now}
	for range 100 {
		assert.Equal(t, ms, tr.refused(now.Add(ms), now).Sub(now), "refused together")
	}
}

func TestListKeepsOrder(t *testing.T) {
	var q list
	items := make([]*item, 6)
	for i := range items {
		items[i] = &item{seq: uint64(i)}
	}
	order := func() (seqs []uint64) {
		for it := q.pop(); it != nil; it = q.pop() {
			seqs = append(seqs, it.seq)
		}
		assert.Zero(t, q)
		return seqs
	}
	for _, i := range []int{3, 0, 5, 1, 4} {
		q.insert(items[i])
	}
	assert.Equal(t, 5, q.n)
	assert.Equal(t, []uint64{0, 1, 3, 4, 5}, order())
	q.insert(items[2])
	q.push(items[4])
	q.insert(items[3])
	q.push(items[5])
	assert.Equal(t, []uint64{2, 3, 4, 5}, order())
}
