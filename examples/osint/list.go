package main

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/examples/internal/ledgerflag"
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// list tells what there is to ask: what it takes, its limits and how they are known,
// its key and whether it is set. Nothing is asked.
func (w *world) list(o options, chosen []source) int {
	known, err := w.lookInto(o)
	if err != nil {
		return w.fail(exitUsage, err)
	}
	defer func() { _ = ledgerflag.Close(known) }() // nothing was spent
	table := [][]string{{"provider", "kinds", "limits", "key", "available"}}
	available := 0
	for _, s := range chosen {
		kinds := kindsOf(s.p)
		if o.kinds != nil && !slices.ContainsFunc(kinds, func(k provider.Kind) bool { return slices.Contains(o.kinds, k) }) {
			continue
		}
		why := w.unavailable(&s)
		var pool, gone []string
		if why == "" {
			why = "yes"
			available++
			if pool, gone, err = w.left(&s, known); err != nil {
				return w.fail(exitFailed, err)
			}
		}
		table = append(table, []string{s.p.Slug, orNone(texts(kinds)), limitsText(s.p.Throttle), w.keys(s.p), why})
		for _, text := range gone {
			table = append(table, []string{"", "", text, "", ""})
		}
		for _, key := range pool {
			table = append(table, []string{"", "", "", key, ""})
		}
	}
	listed := 0
	for _, row := range table[1:] {
		if row[0] != "" {
			listed++
		}
	}
	if listed == 0 {
		w.tell("no provider that was chosen takes these kinds")
		return exitFailed
	}
	columns(w.stdout, table)
	fmt.Fprintf(w.stdout, "\n%d %s, %d available\n", listed, plural(listed, "provider", "providers"), available)
	return exitOK
}

// unavailable is why a provider cannot be asked, "": it can.
func (w *world) unavailable(s *source) string {
	if !s.p.Throttle.Switched("") {
		return "no: switched off"
	}
	if len(kindsOf(s.p)) == 0 {
		return "no: it has no endpoint to which a value is enough"
	}
	a, err := s.connected(w.getenv, w.client)
	if err == nil {
		err = ready(a)
	}
	if err != nil {
		return "no: " + oneLine(err)
	}
	return ""
}

// keys names the variables of a provider's keys, and tells which are set; never
// their values.
func (w *world) keys(p provider.Provider) string {
	if len(p.Auth.Env) == 0 {
		return "–"
	}
	all := make([]string, len(p.Auth.Env))
	for i, name := range p.Auth.Env {
		all[i] = name
		switch {
		case strings.TrimSpace(w.getenv(name)) != "":
			all[i] += " (set)"
		case p.Auth.Optional:
			all[i] += " (optional)"
		}
	}
	return strings.Join(all, ", ")
}

// left tells what each key of a provider that has several has left, and what is gone of
// limits that all calls share, as far as the ledger knows (nil: nothing).
func (w *world) left(s *source, known *ledger.Client) (keys, gone []string, err error) {
	t := &target{source: *s}
	for _, e := range usable(s.p) {
		t.jobs = append(t.jobs, job{endpoint: e.Name})
	}
	if t.adapter, err = s.connected(w.getenv, w.client); err == nil {
		err = t.measure()
	}
	if err != nil {
		return nil, nil, err
	}
	before, err := spent(context.Background(), known, []*target{t})
	if err != nil {
		return nil, nil, err
	}
	for _, x := range before[s.p.Slug] {
		if x.key == "" {
			gone = append(gone, "spent: "+x.String())
		}
	}
	c, err := newCoordinator([]*target{t}, 0, nil)
	if err != nil {
		return nil, nil, err
	}
	state, err := c.State(s.p.Slug)
	return keysLeft(state, before[s.p.Slug]), gone, err
}

// keysLeft tells what each of several keys has left of its own limits, and until
// when it rests; nil where a provider has one key, or none. before is what the ledger
// knows of earlier runs.
func keysLeft(s coordinator.State, before []standing) (all []string) {
	if s.KeyCount < 2 {
		return nil
	}
	keys := slices.Clone(s.Keys)
	slices.SortFunc(keys, func(a, b coordinator.KeyState) int { return strings.Compare(a.Key, b.Key) })
	for _, k := range keys {
		var left []string
		for _, l := range k.Limits {
			for _, x := range before {
				if x.key == k.Key && x.limit.Name == l.Name {
					l.Left = min(l.Left, x.left())
				}
			}
			left = append(left, fmt.Sprintf("%d of %d %s per %s", l.Left, l.Max, l.Unit, l.Per))
		}
		text := k.Key + ": " + orNone(left) + " left"
		if k.Pause != nil {
			text += fmt.Sprintf(", rests until %s (%s)", k.Pause.Until.Format("15:04:05"), k.Pause.Why)
		}
		all = append(all, text)
	}
	return all
}

// limitsText tells the limits, and of each that is not the provider's own word
// what it is: our courtesy, or a guess.
func limitsText(t provider.Throttle) string {
	limits, err := t.Expand()
	if err != nil {
		return oneLine(err)
	}
	all := make([]string, len(limits))
	for i, l := range limits {
		all[i] = limitText(l)
	}
	return orNone(all)
}

func limitText(l provider.Limit) string {
	unit := ""
	if l.Unit != provider.Requests {
		unit = " " + l.Unit
	}
	text := fmt.Sprintf("%d%s per %s", l.Max, unit, l.Per)
	if l.Algorithm == provider.InFlight {
		text = fmt.Sprintf("%d%s at once", l.Max, unit)
	}
	switch l.Basis {
	case "pacing":
		text += " (our courtesy)"
	case "assumed":
		text += " (assumed)"
	}
	return text
}

func texts[S ~string](names []S) []string {
	all := make([]string, len(names))
	for i, n := range names {
		all[i] = string(n)
	}
	return all
}

func orNone(all []string) string {
	if len(all) == 0 {
		return "–"
	}
	return strings.Join(all, ", ")
}
