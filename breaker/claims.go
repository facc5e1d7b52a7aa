package breaker

import "time"

// Token is a call's claim on the breaker; the zero Token claims nothing. It is a
// value and may be copied: its copies are one claim.
type Token struct {
	id    uint64
	slot  int32
	probe bool
}

// Probe tells that the call is a half-open probe.
func (t Token) Probe() bool { return t.probe }

// claims are the tokens that are out: slots that are used again, each with the
// id of the token that it stands for, so that a token's second report and a
// token of an earlier state find nothing. Ids are never used twice.
type claims struct {
	slots []claim
	free  []int32 // slots that stand for nothing
	last  uint64
}

type claim struct {
	id uint64 // 0: none
	at time.Time
}

func (c *claims) add(at time.Time) (id uint64, slot int32) {
	c.last++
	if n := len(c.free); n > 0 {
		slot, c.free = c.free[n-1], c.free[:n-1]
	} else {
		slot, c.slots = int32(len(c.slots)), append(c.slots, claim{})
	}
	c.slots[slot] = claim{id: c.last, at: at}
	return c.last, slot
}

// drop tells whether the token was out; it is not any more.
func (c *claims) drop(id uint64, slot int32) bool {
	if id == 0 || int(slot) >= len(c.slots) || c.slots[slot].id != id {
		return false
	}
	c.slots[slot].id = 0
	c.free = append(c.free, slot)
	return true
}

func (c *claims) len() int { return len(c.slots) - len(c.free) }

// oldest returns when the oldest claim was made; there is at least one. It walks
// all slots: it is asked while probes are out, and they are few.
func (c *claims) oldest() (at time.Time) {
	for _, s := range c.slots {
		if s.id != 0 && (at.IsZero() || s.at.Before(at)) {
			at = s.at
		}
	}
	return at
}

// clear voids all tokens and lets the memory of a busy state go.
func (c *claims) clear() { c.slots, c.free = nil, nil }
