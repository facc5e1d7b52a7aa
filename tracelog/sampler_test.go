package tracelog

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

// An interval may end between the look for what is due and the event's own turn:
// what was counted is told later, not lost.
func TestTurnAfterTheLook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSampler(1, time.Second)
		k := kind{"a", Refused}
		assert.True(t, s.turn(k))
		assert.False(t, s.turn(k))
		assert.Empty(t, s.overdue())
		time.Sleep(time.Second)
		assert.False(t, s.turn(k))
		assert.Equal(t, []more{{k, 2, time.Second}}, s.overdue())
		assert.True(t, s.turn(k))
	})
}
