package referee

import (
	"errors"
	"fmt"

	"github.com/headgate/headgate/provider"
)

// voice makes the answers that one provider would send, by its declared dialect:
// the refusal for a limit that is broken, and the budgets on every answer, which
// are the referee's own counters. It hears each refusal before it is sent, by its
// own reading of the declaration: one that would be taken for another is an error.
//
// What a dialect cannot say in plain words (see plainPath) is an error of New.
type voice struct {
	dialect  provider.Dialect
	patterns map[string]*pattern
	paths    map[string]member
	tellers  []*teller         // of the declared budgets, or, where there are none,
	nearest  []*teller         // by the conventions: of the limit of which the least is left
	fits     map[string][]int  // by limit: the signals that may tell it, -1: none is declared
	plain    string            // the body of an answer with data
	pagers   map[string]*pager // by endpoint
}

// The bodies that are tried where a dialect asks for none.
var (
	refusedBodies = []string{`{"error":"refused"}`, `{"message":"no"}`, "refused", ""}
	plainBodies   = []string{`{"ok":true}`, `{"data":{"known":true}}`, `{"result":[{"id":1}]}`}
)

func newVoice(j *judge) (*voice, error) {
	p := j.play
	if p.Refuse.Status != 0 || p.Refuse.Header != nil || p.Refuse.Body != "" {
		return nil, errors.New("refuse: would have to be left out, since the dialect says how to refuse")
	}
	v := &voice{dialect: p.Provider.Dialect, patterns: map[string]*pattern{}, paths: map[string]member{}, fits: map[string][]int{}, pagers: map[string]*pager{}}
	if err := v.compile(); err != nil {
		return nil, err
	}
	for i, b := range v.dialect.Budgets {
		t, err := newTeller(b, p, j.rules)
		if err != nil {
			return nil, fmt.Errorf("dialect.budgets[%d].%w", i, err)
		}
		v.tellers = append(v.tellers, t)
	}
	for _, r := range j.routes {
		if r.Paging != nil {
			pager, err := v.newPager(*r.Paging)
			if err != nil {
				return nil, fmt.Errorf("endpoint %q: paging.%w", r.Name, err)
			}
			v.pagers[r.Name] = pager
		}
	}
	for _, r := range j.rules {
		if t, err := newConventional(p, r); err != nil {
			return nil, err
		} else if t != nil && len(v.dialect.Budgets) == 0 && !v.dialect.Only {
			v.nearest = append(v.nearest, t)
		}
		v.fits[r.limit.Name] = v.fitting(r.limit)
	}
	return v, v.rehearse(j)
}

// compile reads every pattern and path of the dialect.
func (v *voice) compile() error {
	var faults []error
	text := func(at, pattern string) {
		if pattern == "" {
			return
		}
		p, err := newPattern(pattern)
		if err != nil {
			faults = append(faults, fmt.Errorf("dialect.%s: %w", at, err))
		}
		v.patterns[pattern] = p
	}
	path := func(at, json string) {
		if json == "" {
			return
		}
		m, err := plainPath(json)
		if err != nil {
			faults = append(faults, fmt.Errorf("dialect.%s: %w", at, err))
		}
		v.paths[json] = m
	}
	for i, s := range v.dialect.Signals {
		at := fmt.Sprintf("signals[%d]", i)
		text(at+".body", s.Body)
		if s.Header != nil {
			text(at+".header.matches", s.Header.Matches)
		}
		if s.JSON != nil {
			text(at+".json.matches", s.JSON.Matches)
			path(at+".json.path", s.JSON.Path)
		}
	}
	for at, s := range v.sources() {
		text(at+".pattern", s.Pattern)
		path(at+".json", s.JSON)
	}
	return errors.Join(faults...)
}

// sources returns every place in which the dialect tells something.
func (v *voice) sources() map[string]provider.Source {
	all := map[string]provider.Source{}
	for i, b := range v.dialect.Budgets {
		for part, s := range map[string]provider.Source{"limit": b.Limit, "remaining": b.Remaining, "reset": b.Reset, "used": b.Used, "window": b.Window} {
			all[fmt.Sprintf("budgets[%d].%s", i, part)] = s
		}
	}
	for i, s := range v.dialect.RetryAfter {
		all[fmt.Sprintf("retry_after[%d]", i)] = s
	}
	for unit, s := range v.dialect.Used {
		all["used."+unit] = s
	}
	return all
}

// sample is the variant-th text that a pattern matches.
func (v *voice) sample(pattern string, variant int) string {
	all := v.patterns[pattern].samples()
	if len(all) == 0 {
		return ""
	}
	return all[variant%len(all)]
}
