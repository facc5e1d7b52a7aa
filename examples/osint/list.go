package main

import (
	"fmt"
	"slices"
	"strings"

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
		if why == "" {
			why = "yes"
			available++
		}
		table = append(table, []string{s.p.Slug, orNone(texts(kinds)), limitsText(s.p.Throttle), w.keys(s.p), why})
	}
	if len(table) == 1 {
		w.tell("no provider that was chosen takes these kinds")
		return exitFailed
	}
	columns(w.stdout, table)
	fmt.Fprintf(w.stdout, "\n%d %s, %d available\n", len(table)-1, plural(len(table)-1, "provider", "providers"), available)
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
