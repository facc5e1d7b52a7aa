package registry

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

// adapter counts how often it is asked for its declaration.
type adapter struct {
	p     provider.Provider
	asked atomic.Int32
}

func (a *adapter) Provider() provider.Provider { a.asked.Add(1); return a.p }

func (a *adapter) Lookup(context.Context, provider.Query) (provider.Result, error) {
	return provider.Result{}, nil
}

func named(slug string) *adapter { return &adapter{p: provider.Provider{Slug: slug}} }

// slugs also checks that every entry is under its own slug.
func slugs(t *testing.T, r *Registry) []string {
	t.Helper()
	all := []string{}
	for e := range r.All() {
		all = append(all, e.Provider.Slug)
		found, ok := r.Lookup(e.Provider.Slug)
		require.True(t, ok)
		require.Equal(t, e, found)
	}
	return all
}

func TestZeroRegistryIsEmptyAndReady(t *testing.T) {
	var r Registry
	_, ok := r.Lookup("shodan")
	assert.False(t, ok)
	assert.Empty(t, slugs(t, &r))
	assert.Empty(t, r.Near("shodan"))
	require.NoError(t, r.Register(named("shodan")))
	assert.Equal(t, []string{"shodan"}, slugs(t, &r))
}

func TestRegisterAsksOnceAndKeepsTheAdapter(t *testing.T) {
	var r Registry
	a := named("shodan")
	require.NoError(t, r.Register(a))
	for range 3 {
		e, ok := r.Lookup("shodan")
		require.True(t, ok)
		assert.Same(t, a, e.Adapter)
	}
	slugs(t, &r)
	assert.EqualValues(t, 1, a.asked.Load())
}

func TestDeclareHasNoAdapter(t *testing.T) {
	var r Registry
	require.NoError(t, r.Declare(provider.Provider{Slug: "shodan"}))
	e, ok := r.Lookup("shodan")
	require.True(t, ok)
	assert.Nil(t, e.Adapter)
}

func TestAllIsSortedAndStops(t *testing.T) {
	var r Registry
	for _, s := range []string{"m", "z", "a", "b-2", "b-10"} {
		require.NoError(t, r.Register(named(s)))
	}
	assert.Equal(t, []string{"a", "b-10", "b-2", "m", "z"}, slugs(t, &r))
	for e := range r.All() {
		require.NoError(t, r.Declare(provider.Provider{Slug: "new"}), "the loop may use the registry")
		assert.Equal(t, "a", e.Provider.Slug)
		break
	}
}

func TestDuplicateNamesBothSources(t *testing.T) {
	var r Registry
	first, second := named("shodan"), named("shodan")
	require.NoError(t, r.Register(first))
	for _, err := range []error{r.Register(second), r.Declare(provider.Provider{Slug: "shodan"}), inAnotherPlace(&r)} {
		require.ErrorContains(t, err, `provider "shodan"`)
		require.Regexp(t, `by registry\.TestDuplicateNamesBothSources \(registry_test\.go:\d+\) and by registry\.`, err.Error())
		require.NotContains(t, err.Error(), "/registry_test.go", "a folder belongs to the machine")
	}
	assert.ErrorContains(t, inAnotherPlace(&r), "and by registry.inAnotherPlace (registry_test.go:")
	e, _ := r.Lookup("shodan")
	assert.Same(t, first, e.Adapter, "the first stays")
}

func inAnotherPlace(r *Registry) error { return r.Register(named("shodan")) }

var early Registry

func init() { _ = early.Register(named("shodan")) }

func TestSourceInInitIsNamedPlainly(t *testing.T) {
	require.ErrorContains(t, early.Register(named("shodan")), "by registry.init (registry_test.go:")
}

func TestInvalidDeclarationIsRefused(t *testing.T) {
	var r Registry
	require.NoError(t, r.Declare(provider.Provider{Slug: "shodan"}))
	bad := provider.Provider{Slug: "No Slug"}
	assert.ErrorContains(t, r.Register(&adapter{p: bad}), "registry.TestInvalidDeclarationIsRefused")
	assert.ErrorContains(t, r.Declare(bad), "No Slug")
	bad = provider.Provider{Slug: "shodan", Timeout: -1}
	assert.ErrorContains(t, r.Replace(bad), "timeout")
	assert.Equal(t, []string{"shodan"}, slugs(t, &r))
	e, _ := r.Lookup("shodan")
	assert.Zero(t, e.Provider.Timeout)
}

func TestNilAdapterIsRefused(t *testing.T) {
	var r Registry
	assert.ErrorContains(t, r.Register(nil), "nil adapter")
	assert.ErrorContains(t, r.Register((*adapter)(nil)), "*registry.adapter: its Provider() panicked with a runtime.errorString")
	assert.Empty(t, slugs(t, &r))
}

type panicking struct {
	adapter
	thrown any
}

func (a *panicking) Provider() provider.Provider { panic(a.thrown) }

func TestPanickingAdapterIsRefusedWithoutItsText(t *testing.T) {
	var r Registry
	for _, thrown := range []any{"key=hunter2", errors.New("key=hunter2"), fmt.Errorf("x: %w", errors.New("key=hunter2")), 7} {
		err := r.Register(&panicking{thrown: thrown})
		require.ErrorContains(t, err, "*registry.panicking")
		require.ErrorContains(t, err, fmt.Sprintf("%T", thrown))
		require.NotContains(t, err.Error(), "hunter2")
	}
	require.NoError(t, r.Register(named("shodan")), "the registry is not left locked")
}

// asking is an adapter whose Provider uses the registry that asks it.
type asking struct {
	adapter
	r *Registry
}

func (a *asking) Provider() provider.Provider {
	_ = a.r.Declare(provider.Provider{Slug: "inner"})
	return provider.Provider{Slug: "outer"}
}

func TestProviderIsAskedWithNoLockHeld(t *testing.T) {
	var r Registry
	require.NoError(t, r.Register(&asking{r: &r}))
	assert.Equal(t, []string{"inner", "outer"}, slugs(t, &r))
}

func TestReplaceKeepsTheAdapter(t *testing.T) {
	var r Registry
	a := named("shodan")
	require.NoError(t, r.Register(a))
	require.NoError(t, r.Replace(provider.Provider{Slug: "shodan", Name: "other"}))
	e, _ := r.Lookup("shodan")
	assert.Same(t, a, e.Adapter)
	assert.Equal(t, "other", e.Provider.Name)
	assert.EqualValues(t, 1, a.asked.Load())
}

func TestReplaceOfAnUnknownNamesNearOnes(t *testing.T) {
	var r Registry
	require.NoError(t, r.Register(named("shodan")))
	err := r.Replace(provider.Provider{Slug: "shodna"})
	require.ErrorContains(t, err, `"shodna", which is not registered; did you mean shodan?`)
	require.ErrorContains(t, err, "registry.TestReplaceOfAnUnknownNamesNearOnes (registry_test.go:")
	err = r.Replace(provider.Provider{Slug: "virustotal"})
	assert.Regexp(t, `not registered$`, err.Error())
	assert.Equal(t, []string{"shodan"}, slugs(t, &r))
}

func TestDefaultPanicsOnAnError(t *testing.T) {
	defer func(old map[string]entry) { Default.entries = old }(Default.entries)
	Default.entries = nil
	Register(named("shodan"))
	_, ok := Default.Lookup("shodan")
	assert.True(t, ok)
	defer func() {
		err, _ := recover().(error)
		require.ErrorContains(t, err, "registry.TestDefaultPanicsOnAnError (registry_test.go:")
	}()
	Register(named("shodan"))
	t.Error("no panic")
}

func TestConcurrentUse(t *testing.T) {
	var r Registry
	var wg sync.WaitGroup
	var taken atomic.Int32
	for i := range 8 {
		wg.Go(func() {
			for j := range 50 {
				slug := fmt.Sprintf("p-%d", j)
				if r.Register(named(slug)) == nil {
					taken.Add(1)
				}
				_ = r.Replace(provider.Provider{Slug: slug, Name: fmt.Sprint(i)})
				e, ok := r.Lookup(slug)
				assert.True(t, ok)
				assert.NotNil(t, e.Adapter)
				for e := range r.All() {
					e.Provider.Name = "mine"
				}
				r.Near("p-x")
			}
		})
	}
	wg.Wait()
	assert.EqualValues(t, 50, taken.Load(), "each slug is taken once")
}
