package main

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"regexp"
	"time"

	_ "embed"

	"github.com/goccy/go-yaml"

	"github.com/headgate/headgate/adapters/catalog"
	"github.com/headgate/headgate/provider"
)

//go:embed feeds.yaml
var shipped []byte

// source is one thing that is fetched now and then.
type source struct {
	Name     string        `yaml:"name"` // of its file, too
	Provider string        `yaml:"provider"`
	URL      string        `yaml:"url"`
	Every    time.Duration `yaml:"every"` // from one fetch to the next, at least
}

// The bounds of an interval.
const leastEvery, mostEvery = time.Hour, 168 * time.Hour

// list is a file of sources and whom they belong to.
type list struct {
	Providers []declared `yaml:"providers"`
	Sources   []source   `yaml:"sources"`
}

// declared is a provider as any declaration of Headgate is read.
type declared struct{ provider.Provider }

// UnmarshalYAML implements yaml.BytesUnmarshaler.
func (d *declared) UnmarshalYAML(text []byte) (err error) {
	d.Provider, err = provider.Parse(text)
	var fault *provider.FieldError
	if errors.As(err, &fault) {
		fault.Line, fault.Column = 0, 0 // they are those within the declaration
	}
	return err
}

// readList reads a list, strictly; "": the shipped one. Every fault is told, and a URL is
// not: it may hold a key.
func readList(name string) (*list, error) {
	text := shipped
	if name != "" {
		var err error
		if text, err = os.ReadFile(name); err != nil {
			return nil, fmt.Errorf("-f: %w", err)
		}
	}
	var l list
	err := yaml.UnmarshalWithOptions(text, &l, yaml.Strict())
	if err != nil {
		return nil, fmt.Errorf("-f: %s: %s", name, yaml.FormatError(err, false, false))
	}
	if err := l.check(); err != nil {
		return nil, fmt.Errorf("-f: %s: %w", name, err)
	}
	return &l, nil
}

var nameOf = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]*$`)

func (l *list) check() error {
	var faults []error
	fault := func(format string, args ...any) { faults = append(faults, fmt.Errorf(format, args...)) }
	known := make(map[string]bool)
	for i, p := range l.Providers {
		if known[p.Slug] {
			fault("providers[%d]: %s is declared twice", i, p.Slug)
		}
		known[p.Slug] = true
	}
	if len(l.Sources) == 0 {
		fault("sources: want one at least")
	}
	names := make(map[string]bool)
	for i, s := range l.Sources {
		at := fmt.Sprintf("sources[%d] (%s)", i, s.Name)
		switch u, err := url.Parse(s.URL); {
		case !nameOf.MatchString(s.Name) || len(s.Name) > 100:
			fault("sources[%d]: name %q: want letters a to z, digits, dots, dashes: it names a file", i, s.Name)
		case names[s.Name]:
			fault("%s: the name is there twice", at)
		case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
			fault("%s: url: want http:// or https:// and a host", at)
		case s.Every < leastEvery || s.Every > mostEvery:
			fault("%s: every: %v: want 1h to 168h", at, s.Every)
		}
		names[s.Name] = true
		if !known[s.Provider] && !l.adopt(s.Provider) {
			fault("%s: provider %q: declare it under providers, or name one of the catalogue", at, s.Provider)
		}
		known[s.Provider] = true
	}
	return errors.Join(faults...)
}

// adopt takes a provider's declaration from the catalogue.
func (l *list) adopt(slug string) bool {
	all, err := catalog.All()
	if err != nil {
		return false
	}
	for _, p := range all {
		if p.Slug == slug {
			l.Providers = append(l.Providers, declared{p})
			return true
		}
	}
	return false
}
