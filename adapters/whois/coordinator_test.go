package whois_test

import (
	"context"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/adapters/whois"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A referral is not a second query in the shadow of the first: it is paced, too.
func TestEachQueryIsACallOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &servers{answers: map[string]string{"whois.iana.org": ianaTest, "whois.nic.test": record}}
		start := time.Now()
		var at []time.Duration
		a, err := whois.New(whois.Options{Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			at = append(at, time.Since(start).Truncate(time.Millisecond))
			return s.dial(ctx, network, address)
		}})
		require.NoError(t, err)
		var r registry.Registry
		require.NoError(t, r.Register(a))
		c, err := coordinator.New(coordinator.Config{Registry: &r})
		require.NoError(t, err)

		all, err := c.Execute(t.Context(), coordinator.Call{Provider: "whois-port43"}, provider.Query{Kind: provider.Domain, Value: "example.test"})
		require.NoError(t, err)
		assert.Equal(t, []item{{"whois.nic.test", record}}, items(t, all))
		assert.False(t, all.Empty)
		assert.Empty(t, all.Next)
		assert.Equal(t, []time.Duration{0, time.Second}, at)

		// A refusal is not asked again: the second lookup finds the lane at rest.
		s.answers["whois.nic.test"] = "Query rate limit exceeded\n"
		_, err = c.Execute(t.Context(), coordinator.Call{Provider: "whois-port43", Wait: time.Minute}, provider.Query{Kind: provider.Domain, Value: "example.test"})
		require.ErrorIs(t, err, coordinator.ErrRateLimited)
		assert.Len(t, at, 4)
		time.Sleep(50 * time.Second)
		_, err = c.Execute(t.Context(), coordinator.Call{Provider: "whois-port43", Wait: -1}, provider.Query{Kind: provider.Domain, Value: "example.test"})
		require.ErrorIs(t, err, coordinator.ErrRateLimited)
		assert.Len(t, at, 4, "nothing is sent while it rests")
		require.NoError(t, c.Shutdown(t.Context()))
	})
}
