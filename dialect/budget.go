package dialect

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/headgate/headgate/provider"
)

// maxBudgets bounds what one answer may tell.
const maxBudgets = 64

// quota is a budget in the making.
type quota struct {
	provider.Budget
	hasUsed bool
}

// budgets returns every quota that the answer tells: the declared ones in their
// order, then the conventional ones.
func (a *answer) budgets(d *provider.Dialect) []provider.Budget {
	var all []provider.Budget
	for i := range d.Budgets {
		if q, told := a.budget(&d.Budgets[i]); told {
			all = append(all, q.Budget)
		}
	}
	if !d.Only && a.rated {
		all = append(all, a.conventional(d)...)
	}
	return all[:min(len(all), maxBudgets)]
}

// budget reads a declared one. told says that the answer tells anything of it.
func (a *answer) budget(s *provider.BudgetSource) (q quota, told bool) {
	q.Name, q.Unit = s.Name, s.Unit
	a.limit(&q, s.Limit)
	a.remaining(&q, s.Remaining)
	a.usedOf(&q, s.Used)
	q.finish()
	a.reset(&q, s.Reset)
	told = q.HasLimit || q.HasRemaining || q.HasReset || q.hasUsed
	if q.Window == 0 {
		q.Window = a.window(s)
	}
	return q, told
}

func (a *answer) limit(q *quota, s provider.Source) {
	for _, v := range a.amounts(s) {
		switch s.As {
		case "rate":
			q.rate(v)
		case "used_of_limit", "percent":
			q.fraction(v, s.As)
		default:
			q.setLimit(v)
		}
		if q.HasLimit {
			return
		}
	}
}

func (a *answer) remaining(q *quota, s provider.Source) {
	for _, v := range a.amounts(s) {
		if s.As == "" {
			q.setRemaining(v)
		} else {
			q.fraction(v, s.As)
		}
	}
}

func (a *answer) usedOf(q *quota, s provider.Source) {
	for _, v := range a.amounts(s) {
		if s.As == "" {
			q.setUsed(v)
		} else {
			q.fraction(v, s.As)
		}
	}
}

func (a *answer) amounts(s provider.Source) []string {
	if s == (provider.Source{}) {
		return nil
	}
	return find(s, a.texts(s, MaxUsedBody), false)
}

func (a *answer) reset(q *quota, s provider.Source) {
	if s.As != "rate" {
		q.Reset, q.HasReset = a.time(s, MaxUsedBody)
		return
	}
	for _, v := range a.amounts(s) {
		if r, ok := rate(v); ok && q.HasLimit && q.HasRemaining {
			q.Reset, q.HasReset = span(float64(max(q.Limit-q.Remaining, 0))/r), true
			q.Window = span(float64(q.Limit) / r)
			return
		}
	}
}

// window reads a budget's window, or takes it from the name of a header.
func (a *answer) window(s *provider.BudgetSource) time.Duration {
	if s.Window != (provider.Source{}) {
		for _, v := range find(s.Window, a.texts(s.Window, MaxUsedBody), s.Window.As == "duration") {
			if w, ok := a.windowLength(v, s.Window.As); ok {
				return w
			}
		}
		return 0
	}
	for _, source := range []provider.Source{s.Limit, s.Remaining, s.Used} {
		if w := windowOf(source.Header); w > 0 {
			return w
		}
	}
	return 0
}

func (a *answer) windowLength(v, as string) (time.Duration, bool) {
	v = strings.TrimSpace(v)
	if as == "" {
		if w := windowOf(v); w > 0 {
			return w, true
		}
		as = "duration"
		if decimal(v) {
			as = "seconds"
		}
	}
	w, ok := a.wait(v, as)
	return w, ok && w > 0
}

// used reads what the call really cost, in each unit.
func (a *answer) used(sources map[string]provider.Source) map[string]int64 {
	var all map[string]int64
	for unit, s := range sources {
		for _, v := range a.amounts(s) {
			n, ok := amount(v, true)
			if !ok {
				continue
			}
			if all == nil {
				all = map[string]int64{}
			}
			all[unit] = max(all[unit], n)
		}
	}
	return all
}

// A limit of 0 is not one: it is how some write "none", and would stop a
// provider for good.
func (q *quota) setLimit(v string) {
	if n, ok := amount(v, false); ok && n > 0 && (!q.HasLimit || n < q.Limit) {
		q.Limit, q.HasLimit = n, true
	}
}

func (q *quota) setRemaining(v string) {
	if n, ok := amount(v, false); ok && (!q.HasRemaining || n < q.Remaining) {
		q.Remaining, q.HasRemaining = n, true
	}
}

func (q *quota) setUsed(v string) {
	if n, ok := amount(v, true); ok && (!q.hasUsed || n > q.Used) {
		q.Used, q.hasUsed = n, true
	}
}

// fraction reads 32/40, or a percentage: both are used, of a limit.
func (q *quota) fraction(v, as string) {
	used, limit, ok := strings.Cut(v, "/")
	if as == "percent" {
		used, limit, ok = strings.TrimSpace(strings.TrimSuffix(v, "%")), "100", true
	}
	n, usedOK := amount(strings.TrimSpace(used), true)
	most, limitOK := amount(strings.TrimSpace(limit), false)
	if !ok || !usedOK || !limitOK || most == 0 {
		return
	}
	if q.hasUsed && q.HasLimit && float64(n)*float64(q.Limit) <= float64(q.Used)*float64(most) {
		return // the larger share is there already
	}
	q.Used, q.hasUsed = n, true
	q.Limit, q.HasLimit = most, true
}

// rate makes so many a second a limit and its window, as the short form of a
// throttle does.
func (q *quota) rate(v string) {
	if r, ok := rate(v); ok {
		n := max(math.Floor(r), 1)
		if w := span(n / r); w > 0 {
			q.Limit, q.HasLimit, q.Window = int64(n), true, w
		}
	}
}

func rate(v string) (float64, bool) {
	if !decimal(v) {
		return 0, false
	}
	r, err := strconv.ParseFloat(v, 64)
	return r, err == nil && r > 0 && r < 1e15
}

// span is so many seconds, rounded up to the nanosecond; 0 where that is out of
// reason.
func span(s float64) time.Duration {
	if s > longest.Seconds() {
		return 0
	}
	return time.Duration(math.Ceil(s * float64(time.Second)))
}

// finish derives what remains where limit and use are told.
func (q *quota) finish() {
	if !q.HasRemaining && q.HasLimit && q.hasUsed {
		q.Remaining, q.HasRemaining = max(q.Limit-q.Used, 0), true
	}
}

// spent says whether some budget is told to be at zero.
func spent(budgets []provider.Budget) bool {
	for _, b := range budgets {
		if b.HasRemaining && b.Remaining == 0 {
			return true
		}
	}
	return false
}

// binding is the wait that the budgets of a refusal give: the reset of the limit
// that is named, else the latest of those at zero, else the latest of those that
// do not tell what remains. What remains elsewhere is not trusted to have been
// the reason.
func binding(budgets []provider.Budget, limit string) time.Duration {
	var named, zero, open time.Duration
	for _, b := range budgets {
		switch {
		case !b.HasReset:
		case limit != "" && b.Name == limit:
			named = max(named, b.Reset)
		case b.HasRemaining && b.Remaining == 0:
			zero = max(zero, b.Reset)
		case !b.HasRemaining:
			open = max(open, b.Reset)
		}
	}
	for _, w := range []time.Duration{named, zero, open} {
		if w > 0 {
			return w
		}
	}
	return 0
}
