// Package catalog holds the declarations of real providers, one YAML file each,
// and registers an adapter for every one of them in registry.Default:
//
//	import _ "github.com/headgate/headgate/adapters/catalog"
//
// Importing it reads no environment variable and opens nothing. Each number
// carries its source and basis; the date and the confidence are in the file.
//
// To add a provider, add a file named <slug>.yaml.
package catalog

import (
	"embed"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

//go:embed *.yaml
var files embed.FS

func init() {
	all, err := All()
	if err != nil {
		panic(err) // a file of ours: the package's tests read them all
	}
	for _, p := range all {
		a, err := adapters.New(p, adapters.Options{})
		if err != nil {
			panic(err)
		}
		registry.Register(a)
	}
}

// All returns the declarations, sorted by slug, for a program that makes its own
// adapters of them (another base URL, another client). The values are fresh at
// each call. The error names the file; it is nil unless the program was built
// with a broken one.
func All() ([]provider.Provider, error) { return read(files) }

// read parses the YAML files of one folder.
func read(fsys fs.FS) ([]provider.Provider, error) {
	paths, err := fs.Glob(fsys, "*.yaml")
	if err != nil {
		return nil, fmt.Errorf("catalog: %w", err)
	}
	all := make([]provider.Provider, 0, len(paths))
	for _, path := range paths {
		text, err := fs.ReadFile(fsys, path)
		if err != nil {
			return nil, fmt.Errorf("catalog: %s: %w", path, err)
		}
		p, err := provider.Parse(text)
		if err != nil {
			return nil, fmt.Errorf("catalog: %s: %w", path, err)
		}
		if p.Slug+".yaml" != path {
			return nil, fmt.Errorf("catalog: %s: slug: %q: want the file's name", path, p.Slug)
		}
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b provider.Provider) int { return strings.Compare(a.Slug, b.Slug) })
	return all, nil
}
