package registry

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

func TestNobodyReachesTheRegistrysValues(t *testing.T) {
	var r Registry
	p := provider.Provider{
		Slug:      "x",
		Hosts:     []string{"x.test"},
		Throttle:  provider.Throttle{Limits: []provider.Limit{{Name: "a", Max: 1, Per: "1s"}}},
		Endpoints: []provider.Endpoint{{Name: "e", Cost: map[string]int64{"requests": 1}}},
	}
	want := p.Clone()
	spoil := func(p provider.Provider) {
		p.Hosts[0] = "y.test"
		p.Throttle.Limits[0].Max = 99
		p.Endpoints[0].Cost["requests"] = 99
	}
	check := func() {
		t.Helper()
		e, ok := r.Lookup("x")
		require.True(t, ok)
		require.Equal(t, want, e.Provider)
	}
	a := &adapter{p: p.Clone()}
	require.NoError(t, r.Register(a))
	spoil(a.p)
	check()
	require.NoError(t, r.Replace(p))
	spoil(p)
	check()
	e, _ := r.Lookup("x")
	spoil(e.Provider)
	check()
	for e := range r.All() {
		spoil(e.Provider)
	}
	check()
}

func BenchmarkLookup(b *testing.B) {
	var r Registry
	p := provider.Provider{
		Slug:      "x",
		Hosts:     []string{"x.test"},
		Throttle:  provider.Throttle{Limits: []provider.Limit{{Name: "a", Max: 1, Per: "1s"}, {Name: "b", Max: 1, Per: "1h"}}},
		Endpoints: []provider.Endpoint{{Name: "e", Cost: map[string]int64{"requests": 1}}},
	}
	if err := r.Declare(p); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		r.Lookup("x")
	}
}
