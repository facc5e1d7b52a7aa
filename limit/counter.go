package limit

import "time"

// counter is sliding_window_counter: of two aligned windows, what counts is the
// current one and as much of the one before as a window that ends now would still
// cover: previous × (1 − elapsed) + current ≤ max. It assumes that the previous
// window's calls were spread evenly, so that it can admit just under 2×max within
// per: use it where the provider counts like that.
type counter struct{ aligned }

func (c *counter) look(s *spec, now Now, room int64) time.Duration {
	v := c.view(s, now)
	elapsed := max(0, now.Wall-v.start)
	if v.cur <= room {
		if enough := covered(s, v.old, room-v.cur); enough <= elapsed {
			return now.Mono
		} else if enough < s.per {
			return now.on(add(v.start, enough))
		}
	}
	return now.on(add(v.end, covered(s, v.cur, room)))
}

// covered is how far into a window no more than room counts of a previous window
// of that many units.
func covered(s *spec, previous, room int64) time.Duration {
	if previous == 0 {
		return 0
	}
	return max(0, s.per-time.Duration(down(room, int64(s.per), previous)))
}

func (c *counter) charge(s *spec, at Now, n int64) { c.aligned.charge(s, at, n) }

func (c *counter) refund(_ *spec, charged Now, n int64) { c.take(charged, n) }

// when goes from window to window until what one admits repeats, which takes as
// many windows as max has bits, and passes over the repetitions.
func (c *counter) when(s *spec, now Now, held, n int64) time.Duration {
	v := c.view(s, now)
	start, old, cur := v.start, v.old, add(v.cur, held)
	elapsed := max(0, now.Wall-v.start)
	var gone, before [2]int64 // of the last two windows: what they admitted, what was before them
	for i := range 200 {
		room := max(0, sub(s.max, add(cur, up(old, 1, int64(s.per)))))
		if n <= room {
			return now.on(add(start, max(elapsed, covered(s, old, s.max-cur-n))))
		}
		n -= room
		if both := add(room, gone[1]); i > 3 && old == before[0] && both > 0 {
			rounds := (n - 1) / both
			n -= rounds * both
			start = add(start, times(2*s.per, rounds))
		}
		gone, before = [2]int64{gone[1], room}, [2]int64{before[1], old}
		start, old, cur, elapsed = add(start, s.per), add(cur, room), 0, 0
	}
	return now.on(start)
}

func (c *counter) used(s *spec, now Now) int64 {
	v := c.view(s, now)
	return add(v.cur, up(v.old, int64(min(v.end-now.Wall, s.per)), int64(s.per)))
}

func (c *counter) idle(s *spec, now Now) bool { return c.used(s, now) == 0 }

func (c *counter) adopt(s *spec, from algorithm, old *spec, now Now) {
	*c = *from.(*counter)
	c.regrid(s, old, now)
}

func (c *counter) copy(from algorithm) { *c = *from.(*counter) }
