package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// standing is one counter in the ledger.
type standing struct {
	t       *target
	limit   provider.Limit  // as it is told to people
	key     string          // alias; "": the provider has one key, or none
	at      string          // the endpoint; "": it counts all of them
	counter *ledger.Counter // as it is kept
	usage   ledger.Usage
}

// spent asks the ledger what it knows of the targets' limits, by provider. What stands
// at nothing is left out.
func spent(ctx context.Context, l *ledger.Client, targets []*target) (map[string][]standing, error) {
	if l == nil {
		return nil, nil
	}
	var all []standing
	var counters []*ledger.Counter
	for _, t := range targets {
		if t.missing != nil {
			continue
		}
		for _, s := range t.standings(l.Settings()) {
			all, counters = append(all, s), append(counters, s.counter)
		}
	}
	usages, err := l.Peek(ctx, counters)
	if err != nil {
		return nil, err
	}
	by := make(map[string][]standing)
	for i, s := range all {
		if s.usage = usages[i]; s.usage.Used+s.usage.Held > 0 || time.Now().Before(s.usage.NotBefore) {
			by[s.t.p.Slug] = append(by[s.t.p.Slug], s)
		}
	}
	return by, nil
}

// standings are the target's counters in a ledger, without what they stand at.
func (t *target) standings(s ledger.Settings) (all []standing) {
	for _, l := range t.limits {
		if !s.Shares(l) {
			continue
		}
		keys, endpoints := []string{""}, []string{""}
		if l.Scope == provider.ScopeKey || l.Scope == provider.ScopeKeyEndpoint {
			keys = t.pool()
		}
		if l.Scope == provider.ScopeEndpoint || l.Scope == provider.ScopeKeyEndpoint {
			endpoints = slices.Compact(slices.Sorted(slices.Values(t.endpoints())))
		}
		for _, key := range keys {
			for _, at := range endpoints {
				all = append(all, standing{t: t, limit: t.named(l), key: key, at: at, counter: ledger.NewCounter(t.p.Slug, l, at, key)})
			}
		}
	}
	return all
}

// pool are the aliases by which the coordinator counts the target's keys apart.
func (t *target) pool() []string {
	if len(t.p.Auth.Env) > 1 {
		if ring, ok := t.adapter.(interface{ Keys() []string }); ok && len(ring.Keys()) > 0 {
			return ring.Keys()
		}
	}
	return []string{""}
}

// named is a limit as it is declared, where it is played with a shorter window.
func (t *target) named(l provider.Limit) provider.Limit {
	declared, err := t.base.Throttle.Expand()
	if i := slices.IndexFunc(declared, func(d provider.Limit) bool { return d.Name == l.Name }); err == nil && i >= 0 {
		l.Per = declared[i].Per
	}
	return l
}

// left is how many units of the counter there are.
func (s standing) left() int64 {
	most := s.limit.OfKey(s.key).Max
	if s.usage.Max > 0 {
		most = min(most, s.usage.Max)
	}
	if time.Now().Before(s.usage.NotBefore) {
		return 0
	}
	return max(0, most-s.usage.Used-s.usage.Held)
}

// String says what is gone, such as "60 of 500 requests per day".
func (s standing) String() string {
	l := s.limit.OfKey(s.key)
	text := fmt.Sprintf("%d of %d %s", l.Max-s.left(), l.Max, l.Unit)
	if l.Per != "" {
		text += " per " + string(l.Per)
	}
	if s.at != "" {
		text += " at " + s.at
	}
	if s.key != "" {
		text = s.key + " " + text
	}
	if now := time.Now(); now.Before(s.usage.NotBefore) {
		text += ", nothing before " + clock(s.usage.NotBefore, now)
	}
	return text
}

// tellSpent tells what earlier runs have spent, in a line.
func tellSpent(w io.Writer, by map[string][]standing, targets []*target) {
	var all []string
	for _, t := range targets {
		if s := by[t.p.Slug]; len(s) > 0 {
			all = append(all, t.p.Slug+" "+strings.Join(strungs(s), ", "))
		}
	}
	if len(all) > 0 {
		fmt.Fprintf(w, "spent before: %s\n", strings.Join(all, "; "))
	}
}

func strungs[S fmt.Stringer](all []S) []string {
	texts := make([]string, len(all))
	for i, s := range all {
		texts[i] = s.String()
	}
	return texts
}
