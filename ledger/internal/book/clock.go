package book

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/limit"
)

// The ledger's own time is the wall clock of the machine on which the store is, all of
// whose processes read the same, and an offset. Where the clock steps back the offset
// grows, so that time goes on as the process itself counts it, or at least from where
// it was. A step forward is taken for time that has passed: a machine that was
// suspended looks the same.

// read is the instant of a batch. The wall clock has stepped back where it is before the
// last batch of anybody, or says clearly less than this process has counted since its
// own last batch: then that counts.
func (k *Book) read(m *Meta, t, wall time.Time) limit.Now {
	now := limit.Now{Wall: time.Duration(wall.UnixNano())}
	now.Mono = now.Wall + m.Offset
	least := m.Last
	if k.epoch == m.Epoch {
		if counted := k.last + t.Sub(k.lastAt); counted-now.Mono > slewed {
			least = max(least, counted)
		}
	}
	if back := least - now.Mono; back > 0 {
		now.Mono = least
		m.Offset += back
		if back > slewed {
			m.Stepped, m.By = now.Mono, back
		}
	}
	m.Last = now.Mono
	k.epoch, k.last, k.lastAt = m.Epoch, now.Mono, t
	return now
}

// slewed is by how much a process's monotonic clock and the wall clock may come to
// differ over the time of a call by the ordinary work of a time service.
const slewed = 10 * time.Millisecond

func (m *Meta) warning() string {
	if m.Stepped == 0 || m.Last-m.Stepped > time.Hour {
		return ""
	}
	return fmt.Sprintf("the clock has stepped back by %s: calendar windows follow it", m.By.Round(time.Millisecond))
}

// at is an instant that the caller tells, at most now. Its age is what the wall clock
// says, as long as that did not step: so one instant is the same in every batch, and a
// charge can be found again.
func (x *turn) at(t time.Time) limit.Now {
	age, wall := x.t.Sub(t), x.wall.Round(0).Sub(t.Round(0))
	if d := wall - age; -slewed < d && d < slewed {
		age = wall
	}
	age = max(age, 0)
	return limit.Now{Mono: x.now.Mono - age, Wall: x.now.Wall - age}
}

// until is an instant to come; that of the zero time lies far in the past.
func (x *turn) until(t time.Time) time.Duration {
	d := t.Sub(x.t)
	if sum := x.now.Mono + d; d <= 0 || sum > x.now.Mono {
		return sum
	}
	return limit.Never
}

// time is until, the other way.
func (x *turn) time(at time.Duration) time.Time { return x.t.Add(at - x.now.Mono) }
