package limit

import "github.com/headgate/headgate/provider"

// Replace returns a Rule for l that goes on with old's history: what is held and
// charged stays so, under the new numbers, and a lowered limit counts at once.
// Where the algorithm changes, or where it counts, what old counts now is charged
// now, to be on the strict side. A window that becomes longer does not know what
// had already left the shorter one. old may be nil (New) and must not be used any
// more. On an error nothing has changed.
//
// Many Rules of one limit are cheaper by [Rule.Fresh] and [Rule.Adopt].
func Replace(old *Rule, l provider.Limit, now Now) (*Rule, error) {
	r, err := New(l)
	if err != nil {
		return nil, err
	}
	if old != nil {
		r.Adopt(old, now)
	}
	return r, nil
}

// Adopt lets r, which is new, go on with old's history, as [Replace] does. old
// must not be used any more.
func (r *Rule) Adopt(old *Rule, now Now) {
	r.held = old.held
	if r.spec.algorithm == old.spec.algorithm && r.spec.sent == old.spec.sent {
		r.algo.adopt(r.spec, old.algo, old.spec, now)
		return
	}
	counts := old.algo.used(old.spec, now)
	if r.spec.sent && !old.spec.sent {
		counts = add(counts, old.held) // they went, and will not be charged when they are settled
	}
	if counts > 0 {
		r.algo.charge(r.spec, now, counts)
	}
}
