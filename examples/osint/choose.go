package main

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/headgate/headgate/adapters/catalog"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// demo are the providers that are played where nobody says which: five that tell
// much, and take half a minute together.
var demo = []string{"crt-sh", "ip-api", "shodan", "urlscan", "virustotal"}

// everyProvider is the name that stands for all.
const everyProvider = "all"

// source is one provider that can be chosen.
type source struct {
	base       provider.Provider // as it is declared
	p          provider.Provider // with what the user's file says of it
	overridden bool              // the file changes its throttle
	byHand     provider.Adapter  // nil: asked as its declaration says
}

// sources are all providers: the catalogue's files, and the adapters that are
// written by hand. Sorted by slug. What the declarations hold is shared: it is not
// to be changed.
func sources() ([]source, error) {
	all, err := declarations()
	return slices.Clone(all), err
}

// declarations are read once.
var declarations = sync.OnceValues(func() ([]source, error) {
	declared, err := catalog.All()
	if err != nil {
		return nil, err
	}
	var all []source
	files := make(map[string]bool)
	for _, p := range declared {
		files[p.Slug] = true
		all = append(all, source{base: p, p: p})
	}
	for e := range registry.Default.All() {
		if !files[e.Provider.Slug] && e.Adapter != nil {
			all = append(all, source{base: e.Provider, p: e.Provider, byHand: e.Adapter})
		}
	}
	slices.SortFunc(all, func(a, b source) int { return strings.Compare(a.base.Slug, b.base.Slug) })
	return all, nil
})

// choose are the sources that the options ask for, with the user's file put over
// them. The whole file is checked, also what it says of those that are not asked.
func (o options) choose(all []source) ([]source, error) {
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.base.Slug
	}
	if err := known("provider", names, slices.DeleteFunc(slices.Clone(o.providers), func(n string) bool { return n == everyProvider })); err != nil {
		return nil, fmt.Errorf("-providers: %w", err)
	}
	if o.config != "" {
		over, err := readOverrides(o.config, names)
		if err != nil {
			return nil, err
		}
		if err := override(all, over); err != nil {
			return nil, fmt.Errorf("%s: %w", o.config, err)
		}
	}
	wanted := o.providers
	if wanted == nil && !o.live && !o.list {
		wanted = demo
	}
	if wanted == nil || slices.Contains(wanted, everyProvider) {
		return all, nil
	}
	return slices.DeleteFunc(all, func(s source) bool { return !slices.Contains(wanted, s.base.Slug) }), nil
}

// readOverrides reads the user's file. Providers that nobody has are an error.
func readOverrides(name string, slugs []string) (provider.Overrides, error) {
	text, err := os.ReadFile(name)
	if err != nil {
		return provider.Overrides{}, err
	}
	over, err := provider.ParseOverrides(text)
	if err == nil {
		err = known("provider", slugs, over.Slugs())
	}
	if err != nil {
		return provider.Overrides{}, fmt.Errorf("%s: %w", name, err)
	}
	return over, nil
}

// override puts the user's file over all, or says everything that does not fit.
func override(all []source, over provider.Overrides) error {
	var faults []error
	for i := range all {
		p, err := over.Apply(all[i].base)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		all[i].p, all[i].overridden = p, over.Changes(p.Slug)
	}
	return errors.Join(faults...)
}

// known finds names that are not there, and says which resemble them.
func known(what string, there, names []string) error {
	var faults []error
	for _, name := range names {
		if slices.Contains(there, name) {
			continue
		}
		text := fmt.Sprintf("no %s %q", what, name)
		if near := nearest(name, there); len(near) > 0 {
			text += ": is it " + strings.Join(near, ", ") + "?"
		} else {
			text += " (osint -list tells all)"
		}
		faults = append(faults, errors.New(text))
	}
	return errors.Join(faults...)
}

// nearest are up to three of the names that a slip of the fingers away from name:
// two letters, or that begin with it.
func nearest(name string, there []string) []string {
	var near []string
	for _, t := range there {
		if distance(name, t) <= 2 || len(name) > 1 && strings.HasPrefix(t, name) {
			near = append(near, t)
		}
	}
	slices.SortStableFunc(near, func(a, b string) int { return distance(name, a) - distance(name, b) })
	return near[:min(len(near), 3)]
}

// distance is how many letters have to be changed, added or taken away.
func distance(a, b string) int {
	if len(a)-len(b) > 2 || len(b)-len(a) > 2 {
		return 3 // at least: no more is asked
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := corner
			if a[i] != b[j] {
				change++
			}
			corner = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
