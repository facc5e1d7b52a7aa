package referee

import (
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/headgate/headgate/provider"
)

// answer completes an answer with data: a body, what it means, the budgets.
func (v *voice) answer(a Answer, c *call) (Answer, error) {
	if a.Body == "" && a.Status == http.StatusOK {
		told, err := v.data(c)
		if err != nil {
			return Answer{}, err
		}
		a.Header, a.Body = merged(told.Header, a.Header), told.Body
	}
	if a.Outcome == "" {
		if i := v.signal(a); i >= 0 {
			a.Outcome = v.dialect.Signals[i].Outcome
		}
	}
	return v.withLines(a, c.told)
}

// data is an answer with data: a page where the endpoint has pages.
func (v *voice) data(c *call) (Answer, error) {
	if p := v.pagers[c.Endpoint]; p != nil {
		return v.page(p, p.number(c.page))
	}
	return Answer{Body: v.plain}, nil
}

// withLines adds what is told to an answer.
func (v *voice) withLines(a Answer, lines []line) (Answer, error) {
	if len(lines) == 0 {
		return a, nil
	}
	d := v.draft(a.Status)
	for _, l := range lines {
		if l.source.Header == "" && bodiless(a.Status) {
			continue // it is told by the answers that have a body
		}
		if l.source.JSON != "" && !d.isDoc {
			doc, err := parse([]byte(a.Body))
			if err != nil {
				return Answer{}, fmt.Errorf("json: %s is to be told in a body that is no JSON", l.source.JSON)
			}
			d.doc, d.isDoc = doc, true
		}
		if err := d.say(l); err != nil {
			return Answer{}, fmt.Errorf("%s: %w", placeOf(l.source), err)
		}
	}
	told, err := d.finish(a.Body)
	if err != nil {
		return Answer{}, err
	}
	a.Header, a.Body = merged(told.Header, a.Header), told.Body
	return a, nil
}

// merged is what is told, and what a test has scripted, which wins.
func merged(told, scripted http.Header) http.Header {
	all := http.Header{}
	maps.Copy(all, told)
	maps.Copy(all, scripted)
	return all
}

// tell is what the budgets say of c, and its real cost where that is told.
func (v *voice) tell(c *call) []line {
	var all []line
	for _, t := range v.tellers {
		if s, ok := t.count(c); ok {
			all = append(all, t.lines(s, c.At)...)
		}
	}
	if t, s := v.near(c); t != nil {
		all = append(all, t.lines(s, c.At)...)
	}
	return append(all, v.used(c.Cost)...)
}

// near is the limit of c of which the smallest share is left; nil: there is none.
func (v *voice) near(c *call) (near *teller, least said) {
	for _, t := range v.nearest {
		s, ok := t.count(c)
		if ok && (near == nil || s.share() < least.share()) {
			near, least = t, s
		}
	}
	return near, least
}

func (v *voice) used(cost map[string]int64) []line {
	var all []line
	for _, unit := range slices.Sorted(maps.Keys(v.dialect.Used)) {
		all = append(all, line{v.dialect.Used[unit], []string{strconv.FormatInt(cost[unit], 10)}})
	}
	return all
}

// rehearse says everything once, so that New finds what cannot be said.
func (v *voice) rehearse(j *judge) error {
	now, wait := time.Unix(1e9, 0), 90*time.Second
	var faults []error
	for _, body := range plainBodies {
		if i := v.signal(Answer{Status: http.StatusOK, Body: body}); i < 0 || v.dialect.Signals[i].Outcome == provider.OK && !v.dialect.Signals[i].Empty {
			v.plain = body
			break
		}
	}
	if v.plain == "" {
		faults = append(faults, errors.New("dialect.signals: an answer with data would be heard as none"))
	}
	for _, c := range j.calls() {
		lines := v.used(c.Cost)
		for _, t := range v.tellers {
			if t.rule.cost(c) > 0 {
				s := t.says(1, t.rule.most()-1)
				s.more = wait
				lines = append(lines, t.lines(s, now)...)
			}
		}
		a, err := v.data(c)
		if err == nil {
			_, err = v.withLines(Answer{Status: http.StatusOK, Body: a.Body}, lines)
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("dialect: an answer of endpoint %q: %w", c.Endpoint, err))
		}
	}
	for i, s := range v.dialect.RetryAfter {
		d := v.draft(http.StatusTooManyRequests)
		err := d.say(line{s, waits(wait, now, s.As)})
		if err == nil {
			_, err = d.finish("")
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("dialect.retry_after[%d]: %w", i, err))
		}
	}
	for _, r := range j.rules {
		for _, signal := range v.fits[r.limit.Name] {
			if _, err := v.refusal(signal, wait, now, nil); err != nil {
				faults = append(faults, fmt.Errorf("limit %q: %w", r.limit.Name, err))
			}
		}
	}
	return errors.Join(faults...)
}

// calls returns one call of each endpoint, and one of none.
func (j *judge) calls() []*call {
	all := []*call{{}}
	for _, r := range j.routes {
		all = append(all, &call{Arrival: Arrival{Endpoint: r.Name}})
	}
	for _, c := range all {
		c.Cost, _ = j.fullCost(c.Endpoint, nil) // what is declared is not below 0
	}
	return all
}
