package catalog_test

import (
	"testing"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/adapters/catalog"
	"github.com/headgate/headgate/registry"
)

// BenchmarkLoad reads, checks and compares all files, which each program that
// imports the catalogue does once.
func BenchmarkLoad(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := catalog.All(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkImport is what a blank import costs: the files, an adapter for each and
// their registration.
func BenchmarkImport(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		all, err := catalog.All()
		if err != nil {
			b.Fatal(err)
		}
		var r registry.Registry
		for _, p := range all {
			a, err := adapters.New(p, adapters.Options{})
			if err != nil {
				b.Fatal(err)
			}
			if err := r.Register(a); err != nil {
				b.Fatal(err)
			}
		}
	}
}
