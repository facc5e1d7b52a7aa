package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// list tells what there is to ask: what it takes, its limits and how they are known,
// its key and whether it is set. Nothing is asked.
func (w *world) list(o options, chosen []source) int {
	table := [][]string{{"provider", "kinds", "limits", "key", "available"}}
	available := 0
	for _, s := range chosen {
		kinds := kindsOf(s.p)
		if o.kinds != nil && !slices.ContainsFunc(kinds, func(k provider.Kind) bool { return slices.Contains(o.kinds, k) }) {
			continue
		}
		why := w.unavailable(&s)
		var pool []string
		if why == "" {
			why = "yes"
			available++
			pool = w.pool(&s)
		}
		table = append(table, []string{s.p.Slug, orNone(texts(kinds)), limitsText(s.p.Throttle), w.keys(s.p), why})
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

// pool tells what each key of a provider that has several has left. It knows of no
// other run.
func (w *world) pool(s *source) []string {
	a, err := s.connected(w.getenv, w.client)
	if err != nil {
		return nil
	}
	c, err := newCoordinator([]*target{{source: *s, adapter: a}}, 0)
	if err != nil {
		return nil
	}
	state, err := c.State(s.p.Slug)
	if err != nil {
		return nil
	}
	return keysLeft(state)
}

// keysLeft tells what each of several keys has left of its own limits, and until
// when it rests; nil where a provider has one key, or none.
func keysLeft(s coordinator.State) (all []string) {
	if s.KeyCount < 2 {
		return nil
	}
	keys := slices.Clone(s.Keys)
	slices.SortFunc(keys, func(a, b coordinator.KeyState) int { return strings.Compare(a.Key, b.Key) })
	for _, k := range keys {
		var left []string
		for _, l := range k.Limits {
			left = append(left, fmt.Sprintf("%d of %d %s per %s", max(0, l.Max-l.Used-l.Held), l.Max, l.Unit, l.Per))
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
