package coordinator_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// echo is an adapter that answers what it was asked.
type echo struct {
	p provider.Provider
	f provider.Feedback

	lacks error
}

func (e *echo) Ready() error { return e.lacks }

func (e *echo) Provider() provider.Provider { return e.p }

func (e *echo) Lookup(_ context.Context, q provider.Query) (provider.Result, error) {
	data, err := json.Marshal([]string{q.Endpoint, q.Key, q.Value})
	return provider.Result{Provider: e.p.Slug, Data: data, Feedback: e.f}, err
}

func registryOf(t *testing.T, as ...provider.Adapter) *registry.Registry {
	t.Helper()
	r := new(registry.Registry)
	for _, a := range as {
		require.NoError(t, r.Register(a))
	}
	return r
}
