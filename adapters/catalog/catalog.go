// Package catalog holds the declarations of real providers, one YAML file each,
// and registers an adapter for every one of them in registry.Default:
//
//	import _ "github.com/headgate/headgate/adapters/catalog"
//
// Importing it reads no environment variable and opens nothing. Each number
// carries its source and basis; the date and the confidence are in the file.
//
// To add a provider, add a file named <slug>.yaml and samples of its answers to
// testdata/answers.yaml; go test -update then writes testdata/requests.txt and
// docs/providers.md, which list the rest.
package catalog

import (
	"embed"

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
// each call. The error is that of [adapters.Load]; it is nil unless the program was
// built with a broken file.
func All() ([]provider.Provider, error) { return adapters.Load(files) }
