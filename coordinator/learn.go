package coordinator

import (
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/queue"
)

// told is what answers said of a quota: how many units may still go before its
// reset. Two bounds hold, whatever order answers come in; the higher one counts.
//
// By what the call saw: an answer tells what was left when its call arrived. What
// went after that call is not in that number, and what was out when it went may not
// be: it may have arrived later. So both are taken off. The call that went last
// counts; those of earlier calls, which come late, can only tighten it.
//
// By the window: before its reset what is left only falls, so the least that was
// told counts every call that has told. What is out, or ended without telling since
// the call went that told it, is taken off.
type told struct {
	until time.Duration // the reset: before that instant the rest holds
	went  int64         // units that went, ever
	most  int64         // by what the call saw: as many may have gone
	by    time.Duration // grant of that call
	least int64         // by the window: the least that was told, and what was mute as that call went
	mute  int64         // units that ended without telling, ever
	from  *Lease        // whose answer was the last to tell
}

// most is more than any quota holds.
const most = 1 << 53

// sameReset is by how much the told instants of one reset differ: most are written
// in whole seconds.
const sameReset = 2 * time.Second

// mark is what a call saw of a quota as it went: only at a provider that tells.
type mark struct {
	went  int64 // units that had gone, its own among them
	other int64 // of these, those of calls that had no answer
	mute  int64 // units that had ended without telling, ever: an answer to this call counts them
}

// rest is how many more units may go while out have no answer.
func (t *told) rest(out int64) int64 { return max(0, t.most-t.went, t.least-t.mute-out) }

// closed is the instant before which n more units may not go.
func (t *told) closed(now time.Duration, n, out int64) time.Duration {
	if now < t.until && n > t.rest(out) {
		return t.until
	}
	return now
}

// surely is closed if all that is out were given back: a lower bound.
func (t *told) surely(now time.Duration, n, out int64) time.Duration {
	if now < t.until && n > max(0, t.most-t.went+out, t.least-t.mute) {
		return t.until
	}
	return now
}

// learn takes an answer's word that left units were left when its call arrived.
func (t *told) learn(ls *Lease, m mark, left int64, now, until time.Duration) {
	if now < t.until && until < t.until-sameReset {
		return // of a window that is over
	}
	bound := t.went + max(0, left-m.other-(t.went-m.went))
	if now >= t.until || until > t.until+sameReset { // a new window
		*t = told{went: t.went, until: until, most: bound, by: ls.granted, least: left + m.mute, mute: t.mute, from: ls}
		return
	}
	t.until, t.from = max(t.until, until), ls
	t.least = min(t.least, left+m.mute)
	if ls.granted >= t.by {
		t.most, t.by = bound, ls.granted
	} else {
		t.most = min(t.most, bound)
	}
}

// ended counts units whose answer has come, or will not.
func (t *told) ended(ls *Lease, now time.Duration, n int64) {
	if now < t.until && t.from != ls {
		t.mute += n
	}
}

// marks notes what a call sees of each quota as it goes.
func (l *lane) marks(ls *Lease) {
	r := ls.route
	marks := make([]mark, len(r.limits)+1)
	ls.rarely().marks = marks
	for i, g := range r.limits {
		n := ls.wait.Cost[r.skip+i]
		marks[i] = mark{went: g.told.went, other: max(0, g.rule.Held()-n), mute: g.told.mute}
	}
	p := r.keyed
	marks[len(r.limits)] = mark{went: p.told.went, other: p.unsettled - 1, mute: p.told.mute}
}

// spent closes a quota that no limit declares: until the told reset, else for a
// penalty. What is out may be given back: that opens nothing.
func (p *pauseGate) spent(advice time.Duration) {
	l := p.l
	if advice == 0 {
		advice = l.t.Penalty
	}
	p.told = told{went: p.told.went, mute: p.told.mute, most: p.told.went - p.unsettled, until: max(p.told.until, after(l.now.Mono, advice)), by: l.now.Mono}
	l.q.Touch(&p.Gate)
	l.refuseLate(&p.Gate, p.told.until)
}

// skew is by how much the provider's clock is behind ours, at most: the smallest
// difference of the last minutes, since the answer's way and the whole seconds of
// its Date only add to it.
type skew struct {
	least, before time.Duration // of this span and the one before it
	since         time.Duration // start of this span; 0: nothing told
}

const skewSpan = 5 * time.Minute

// unknownSkew is that of a gate whose rule was another gate's, or another limit's: the
// next answer with a date sets it.
const unknownSkew = -1

func (s *skew) learn(now, behind time.Duration) time.Duration {
	switch {
	case s.since == 0:
		s.least, s.before, s.since = behind, behind, now
	case now-s.since >= skewSpan:
		s.before, s.least, s.since = s.least, behind, now
	default:
		s.least = min(s.least, behind)
	}
	return max(0, min(s.least, s.before))
}

// dated widens the guard of windows that follow dates by what an answer's Date
// tells of the provider's clock.
func (l *lane) dated(ls *Lease, date time.Time) {
	if date.IsZero() || !l.aligned {
		return
	}
	behind := l.skew.learn(l.now.Mono, l.wall().Sub(date))
	for _, g := range ls.route.limits {
		if g.rule.Aligned() && g.skew != behind {
			g.skew = behind
			g.rule.SetSkew(behind)
			l.q.Touch(&g.Gate)
		}
	}
}

// learn tightens limits by what an answer told of its quotas.
func (l *lane) learn(ls *Lease, f *provider.Feedback) {
	if len(f.Budgets) == 0 {
		return
	}
	for _, b := range f.Budgets {
		if !b.HasReset && b.HasRemaining && b.Remaining == 0 && f.RetryAfter > 0 {
			b.Reset, b.HasReset = f.RetryAfter, true // when it comes back is told besides
		}
		b.Reset = min(b.Reset, longestAdvice)
		b.Remaining = min(max(b.Remaining, 0), most)
		g, i := ls.route.limitOf(b)
		if g != nil {
			l.learnMax(g, b)
		}
		if !b.HasRemaining {
			continue
		}
		switch {
		case g != nil:
			g.told.learn(ls, l.markOf(ls, i, g.told.went, g.rule.Held()), b.Remaining, l.now.Mono, l.resetOf(b, g))
			l.toldMoved(&g.Gate, &g.told, g.rule.Held())
		case b.Unit == "" || b.Unit == provider.Requests:
			p := ls.route.keyed
			if b.HasReset {
				p.told.learn(ls, l.markOf(ls, len(ls.route.limits), p.told.went, p.unsettled), b.Remaining, l.now.Mono, after(l.now.Mono, b.Reset))
				l.toldMoved(&p.Gate, &p.told, p.unsettled)
			}
		}
	}
	l.tells = true
}

// markOf is what the call saw as it went. The first calls saw nothing, as nobody
// knew that this provider tells: then all that is out counts against it.
func (l *lane) markOf(ls *Lease, i int, went, out int64) mark {
	if x := ls.rare; x != nil && i < len(x.marks) {
		return x.marks[i]
	}
	return mark{went: went, other: out}
}

func (l *lane) toldMoved(g *queue.Gate, t *told, out int64) {
	l.q.Touch(g)
	if out == 0 && t.rest(out) == 0 { // nothing that is out can tell more
		l.refuseLate(g, t.until)
	}
}

// resetOf is when a told quota comes back: as told, else at the limit's next
// boundary, else a window from now.
func (l *lane) resetOf(b provider.Budget, g *limitGate) time.Duration {
	if b.HasReset {
		return after(l.now.Mono, b.Reset)
	}
	if at, ok := g.rule.Boundary(l.now); ok {
		return at
	}
	w, _ := g.d.Per.Duration()
	return after(l.now.Mono, w)
}

// limitOf is the limit that a budget speaks of: that of its name, else that of the
// same amount, unit and, where told, window.
func (r *route) limitOf(b provider.Budget) (*limitGate, int) {
	for i, g := range r.limits {
		if b.Name != "" && g.d.Name == b.Name {
			return g, i
		}
	}
	unit := b.Unit
	if unit == "" {
		unit = provider.Requests
	}
	for i, g := range r.limits {
		w, _ := g.d.Per.Duration()
		if b.HasLimit && g.d.Max == b.Limit && g.d.Unit == unit && !g.caps() && (b.Window == 0 || b.Window == w) {
			return g, i
		}
	}
	return nil, 0
}

// learnMax takes a told size of a limit: a lower one until its reset, a higher one,
// where that is allowed, until it is told otherwise.
func (l *lane) learnMax(g *limitGate, b provider.Budget) {
	if !b.HasLimit || b.Limit <= 0 || b.Limit > most || g.caps() || b.Limit > g.d.Max && l.t.Learn != provider.LearnRaise {
		return
	}
	g.maxUntil = l.resetOf(b, g)
	if b.Limit > g.d.Max {
		g.maxUntil = queue.Never
	}
	if b.Limit != g.maxNow() {
		g.resize(b.Limit)
	}
	g.tellLearned()
}

// maxNow is the size of the limit that is in force.
func (g *limitGate) maxNow() int64 {
	if g.learned != 0 {
		return g.learned
	}
	return g.d.Max
}

// resize puts another size in force; the declared one is put back by its own.
func (g *limitGate) resize(size int64) {
	before := g.learned
	if g.learned = size; size == g.d.Max {
		g.learned = 0
	}
	if !g.fit() {
		g.learned = before // no such limit
	}
}

// fit gives the rule the size that is in force: the learned or the declared one, and no
// more than this process's share while the ledger does not answer.
func (g *limitGate) fit() bool {
	d := *g.d
	d.Max = g.maxNow()
	if d.Algorithm == provider.TokenBucket && d.Burst > 0 {
		d.Burst = min(d.Burst, d.Max)
	}
	if x := g.shared; x != nil && x.share.size > 0 && x.share.size < d.Max {
		if d.Algorithm == provider.TokenBucket {
			d.Burst = max(1, int64(float64(max(d.Burst, 1))*float64(x.share.size)/float64(d.Max)))
		}
		d.Max = x.share.size
	}
	rule, err := limit.Replace(g.rule, d, g.l.now)
	if err != nil {
		return false
	}
	g.rule = rule
	g.l.q.Touch(&g.Gate)
	return true
}

// tellLearned tells other processes what answers have said of a limit that they share.
func (g *limitGate) tellLearned() {
	if g.shared == nil {
		return
	}
	x := &ledger.Learnt{Counter: g.shared.counter}
	if g.notBefore > g.l.now.Mono {
		x.NotBefore = g.l.c.origin.Add(g.notBefore)
	}
	if g.learned != 0 && g.learned < g.d.Max {
		x.Max, x.Until = g.learned, g.l.c.origin.Add(min(g.maxUntil, g.l.now.Mono+longestAdvice))
	}
	if old := g.shared.learnt; x.Max == old.Max && x.NotBefore.Equal(old.NotBefore) && x.Until.Sub(old.Until).Abs() <= sameReset {
		return // what others have told stays
	}
	g.shared.learnt = *x
	g.l.owe(owed{news: &ledger.News{Learn: x}})
}
