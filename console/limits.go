package console

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// overrideText is a provider's throttle in the form that provider.ParseOverrides
// reads, to be changed. Sizes of keys whose alias is not to be shown are left out: they
// stay as they are.
func overrideText(f *formView) string {
	var b strings.Builder
	fmt.Fprintf(&b, "providers:\n  %s:\n", f.about.slug)
	t := f.about.throttle
	t.Limits = slices.Clone(t.Limits)
	for i, l := range t.Limits {
		if f.hidden(l.Keys) {
			t.Limits[i].Keys = nil
		}
	}
	if t.BadAnswers != nil && f.hidden(t.BadAnswers.Keys) {
		t.BadAnswers = nil
	}
	text, err := t.MarshalYAML()
	body := strings.TrimSpace(string(text))
	if err != nil || body == "" || body == "{}" {
		b.WriteString("    throttle: {rpm: 60}\n")
		return b.String()
	}
	b.WriteString("    throttle:\n")
	for line := range strings.Lines(body) {
		b.WriteString("      " + line)
	}
	b.WriteString("\n")
	return b.String()
}

// hidden tells that an alias among those is not to be shown.
func (f *formView) hidden(keys map[string]int64) bool {
	for alias := range keys {
		if f.keyName(alias) != alias {
			return true
		}
	}
	return false
}

func checkLimits(f *formView) *change {
	p, err := overridden(f.about, f.Value("limits"))
	if err != nil {
		f.fault("limits", err.Error())
		return nil
	}
	before, after := f.throttleLines(f.about.throttle), f.throttleLines(p.Throttle)
	if slices.Equal(before, after) {
		f.fault("limits", "changes nothing: the limits are these already")
		return nil
	}
	before, after = differing(before, after)
	return &change{
		Before: before, After: after,
		Note: "It counts at once; what has been used stays used, and who waits keeps his place. It lasts as long as the program runs: what is to stay belongs into its overrides.",
		do:   func(c *coordinator.Coordinator) error { return c.Update(f.Provider.Slug, p.Throttle) },
	}
}

// overridden is the declaration with the text over it. The error is of provider's
// parser, with line and column, or says what cannot be changed here.
func overridden(d *about, text string) (provider.Provider, error) {
	o, err := provider.ParseOverrides([]byte(text))
	if err != nil {
		return provider.Provider{}, err
	}
	if slugs := o.Slugs(); len(slugs) != 1 || slugs[0] != d.slug {
		return provider.Provider{}, fmt.Errorf("providers: must name %s and no other", d.slug)
	}
	p, err := o.Apply(d.declaration)
	if err != nil {
		return provider.Provider{}, err
	}
	if !slices.Equal(p.Auth.Env, d.declaration.Auth.Env) {
		return provider.Provider{}, errors.New("keys: are read when the program begins: they cannot be changed here")
	}
	return p, nil
}

// throttleLines are a throttle in words, a line each: its limits written out, then
// the rest as it is declared.
func (f *formView) throttleLines(t provider.Throttle) []string {
	var lines []string
	limits, _ := t.Expand() // it is in force, or was checked
	for _, l := range limits {
		line := fmt.Sprintf("%s: %s %s %s", l.Name, count(l.Max), l.Unit, per(string(l.Per)))
		for _, x := range []struct{ name, value, usual string }{
			{"", words(l.Algorithm), ""}, {"burst ", countOr0(l.Burst), ""}, {"counted ", l.Counted, provider.CountedAnswered},
			{"scope ", l.Scope, provider.ScopeProvider}, {"zone ", l.Zone, ""}, {"anchor ", l.Anchor, ""}, {"basis ", l.Basis, provider.BasisProvider},
			{"endpoints ", strings.Join(l.Endpoints, " "), ""}, {"", when(l.Instead, "instead of the general limits"), ""}, {"keys ", f.sizes(l.Keys), ""},
			{"charged for ", charged(l.Charges), ""}, {"", when(l.Shared, "shared"), ""}, {"source ", l.Source, ""},
		} {
			if x.value != "" && x.value != x.usual {
				line += ", " + x.name + x.value
			}
		}
		lines = append(lines, line)
	}
	t.RPS, t.RPM, t.RPH, t.RPD, t.Burst, t.Algorithm, t.MaxInFlight, t.Limits = 0, 0, 0, 0, 0, "", 0, nil
	if b := t.BadAnswers; b != nil && f.hidden(b.Keys) {
		named := *b
		named.Keys = make(map[string]int64, len(b.Keys))
		for alias, size := range b.Keys {
			named.Keys[f.keyName(alias)] = size
		}
		t.BadAnswers = &named
	}
	if text, err := t.MarshalYAML(); err == nil {
		if rest := strings.TrimSpace(string(text)); rest != "" && rest != "{}" {
			lines = append(lines, strings.Split(rest, "\n")...)
		}
	}
	return lines
}

func when(is bool, text string) string {
	if is {
		return text
	}
	return ""
}

// sizes are those of single keys.
func (f *formView) sizes(keys map[string]int64) string {
	var all []string
	for _, alias := range slices.Sorted(maps.Keys(keys)) {
		all = append(all, f.keyName(alias)+": "+count(keys[alias]))
	}
	return strings.Join(all, " ")
}

func charged(outcomes []provider.Outcome) string {
	all := make([]string, len(outcomes))
	for i, o := range outcomes {
		all[i] = words(o)
	}
	return strings.Join(all, " and ")
}

func countOr0(n int64) string {
	if n == 0 {
		return ""
	}
	return count(n)
}

// differing leaves out the lines that both have.
func differing(a, b []string) (onlyA, onlyB []string) {
	none := []string{"nothing"}
	without := func(all, others []string) (only []string) {
		for _, line := range all {
			if !slices.Contains(others, line) {
				only = append(only, line)
			}
		}
		if only == nil {
			return none
		}
		return only
	}
	return without(a, b), without(b, a)
}
