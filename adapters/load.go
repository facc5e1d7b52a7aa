package adapters

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// What a declaration's file ends in, and what would be overlooked in silence.
const (
	extension = ".yaml"
	mistaken  = ".yml"
)

// Load reads a folder of declarations: each file named <slug>.yaml holds one, the
// others and the folders below are left alone. It is strict, and the error holds
// every fault of every file, joined: what [provider.Parse] finds, what [New] would,
// a file that is not named for its slug, two files with one slug, and two that
// claim one host or base URL. Each is named with its file, its place and its field;
// no text holds a URL or a secret. Declarations are sorted by slug, fresh at each
// call, and nil beside an error.
func Load(fsys fs.FS) ([]provider.Provider, error) {
	entries, err := fs.ReadDir(fsys, ".")
	if err != nil {
		return nil, fmt.Errorf("adapters: %w", err)
	}
	var names []string
	for _, entry := range entries {
		if ext := path.Ext(entry.Name()); !entry.IsDir() && (ext == extension || ext == mistaken) {
			names = append(names, entry.Name())
		}
	}
	all, faults := readFiles(fsys, names)
	faults = append(faults, rivals(all)...)
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	providers := make([]provider.Provider, len(all))
	for i, f := range all {
		providers[i] = f.p
	}
	slices.SortFunc(providers, func(a, b provider.Provider) int { return strings.Compare(a.Slug, b.Slug) })
	return providers, nil
}

// readFiles reads the files, as many at a time as there are processors: a program
// that imports the catalogue waits for it before its main begins.
func readFiles(fsys fs.FS, names []string) ([]file, []error) {
	all, faults := make([]file, len(names)), make([][]error, len(names))
	var next atomic.Int64
	var wg sync.WaitGroup
	for range min(runtime.GOMAXPROCS(0), len(names)) {
		wg.Go(func() {
			for i := next.Add(1) - 1; i < int64(len(names)); i = next.Add(1) - 1 {
				all[i], faults[i] = readFile(fsys, names[i])
			}
		})
	}
	wg.Wait()
	return all, slices.Concat(faults...)
}

// file is one declaration and where it stands. p is zero where it cannot be read.
type file struct {
	name string
	text []byte
	p    provider.Provider
}

// readFile reads one declaration and returns its faults.
func readFile(fsys fs.FS, name string) (file, []error) {
	f := file{name: name}
	if path.Ext(name) == mistaken {
		return f, []error{fmt.Errorf("adapters: %s: want a name that ends in %s", name, extension)}
	}
	var err error
	if f.text, err = fs.ReadFile(fsys, name); err != nil {
		return f, []error{f.fault(err)}
	}
	if f.p, err = provider.Parse(f.text); err != nil {
		return f, f.faults(err)
	}
	faults := f.faults(usable(f.p)) // Parse has validated it
	if f.p.Slug+extension != name {
		faults = append(faults, f.wrong("slug", "%q: want the file's name", f.p.Slug))
	}
	return f, faults
}

// faults names the file in each of the errors that err joins.
func (f file) faults(err error) []error {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return []error{f.fault(err)}
	}
	var all []error
	for _, e := range joined.Unwrap() {
		all = append(all, f.faults(e)...)
	}
	return all
}

// wrong is a fault of one field.
func (f file) wrong(field, format string, args ...any) error {
	return f.fault(&provider.FieldError{Field: field, Problem: fmt.Sprintf(format, args...)})
}

// fault names the file, and the line of a field that has none yet.
func (f file) fault(err error) error {
	var field *provider.FieldError
	if f.p.Slug != "" && errors.As(err, &field) && field.Line == 0 { // what Parse refused is not parsed again
		field.Line, field.Column = place(f.text, field.Field)
	}
	return fmt.Errorf("adapters: %s: %w", f.name, err)
}

// claim is a place that one file wants for itself, as a declaration of its own.
type claim struct {
	file
	field string
	p     provider.Provider
}

// claims returns each place that a file claims by itself.
func (f file) claims() []claim {
	var all []claim
	if f.p.BaseURL != "" {
		all = append(all, claim{file: f, field: "base_url", p: provider.Provider{BaseURL: f.p.BaseURL}})
	}
	for i, host := range f.p.Hosts {
		all = append(all, claim{file: f, field: fmt.Sprintf("hosts[%d]", i), p: provider.Provider{Hosts: []string{host}}})
	}
	return all
}

// rivals returns a fault for each slug and each place that two files claim. Whether
// two places are one is for the registry to say.
func rivals(all []file) []error {
	var faults []error
	var taken registry.Registry
	var before []claim
	slugs := map[string]string{}
	for _, f := range all {
		if first, twice := slugs[f.p.Slug]; twice && f.p.Slug != "" {
			faults = append(faults, f.wrong("slug", "%q is that of %s already: each provider needs its own", f.p.Slug, first))
		} else {
			slugs[f.p.Slug] = f.name
		}
		for _, c := range f.claims() {
			c.p.Slug = strconv.Itoa(len(before))
			if taken.Declare(c.p) != nil {
				faults = append(faults, f.wrong(c.field, "is claimed by %s already: one place belongs to one provider", c.rival(before)))
			}
			before = append(before, c)
		}
	}
	return faults
}

// rival returns the file of the claim that c collides with.
func (c claim) rival(before []claim) string {
	for _, b := range before {
		var pair registry.Registry
		if pair.Declare(b.p) == nil && pair.Declare(c.p) != nil {
			return b.name
		}
	}
	return "another file"
}
