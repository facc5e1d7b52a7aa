package registry_test

import (
	"context"
	"fmt"

	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

type shodan struct{}

func (shodan) Provider() provider.Provider {
	return provider.Provider{Slug: "shodan", Name: "Shodan", Throttle: provider.Throttle{RPS: 1}}
}

func (shodan) Lookup(context.Context, provider.Query) (provider.Result, error) {
	return provider.Result{}, nil
}

func init() { registry.Register(shodan{}) }

// An adapter registers itself from init: a blank import is all that its user
// writes.
func ExampleRegister() {
	e, ok := registry.Default.Lookup("shodan")
	fmt.Println(e.Provider.Name, ok)
	// Output: Shodan true
}

// A registry of one's own needs no construction.
func ExampleRegistry_Register() {
	var r registry.Registry
	if err := r.Register(shodan{}); err != nil {
		fmt.Println(err)
	}
	if err := r.Register(nil); err != nil {
		fmt.Println("refused: a nil adapter")
	}
	// Output: refused: a nil adapter
}

// A provider that the program calls with a client of its own is only declared.
func ExampleRegistry_Declare() {
	var r registry.Registry
	err := r.Declare(provider.Provider{Slug: "billing", Throttle: provider.Throttle{RPM: 60}})
	e, _ := r.Lookup("billing")
	fmt.Println(err, e.Provider.Throttle.RPM, e.Adapter == nil)
	// Output: <nil> 60 true
}

// A paid plan allows more than the adapter's declaration says.
func ExampleRegistry_Replace() {
	var r registry.Registry
	_ = r.Register(shodan{})
	e, _ := r.Lookup("shodan")
	e.Provider.Throttle.RPS = 10
	err := r.Replace(e.Provider)
	e, _ = r.Lookup("shodan")
	fmt.Println(err, e.Provider.Throttle.RPS, e.Adapter)
	// Output: <nil> 10 {}
}

func ExampleRegistry_Lookup() {
	var r registry.Registry
	_, ok := r.Lookup("shodan")
	fmt.Println(ok)
	// Output: false
}

func ExampleRegistry_All() {
	var r registry.Registry
	for _, slug := range []string{"virustotal", "crt-sh", "shodan"} {
		_ = r.Declare(provider.Provider{Slug: slug})
	}
	for e := range r.All() {
		fmt.Println(e.Provider.Slug)
	}
	// Output:
	// crt-sh
	// shodan
	// virustotal
}

func ExampleRegistry_Near() {
	var r registry.Registry
	for _, slug := range []string{"virustotal", "crt-sh", "shodan"} {
		_ = r.Declare(provider.Provider{Slug: slug})
	}
	fmt.Println(r.Near("shodna"), r.Near("virus-total"), r.Near("censys"))
	// Output: [shodan] [virustotal] []
}

func ExampleClose() {
	fmt.Println(registry.Close("crtsh", "crt-sh"), registry.Close("crtsh", "shodan"))
	// Output: true false
}
