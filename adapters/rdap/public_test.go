package rdap

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// An answer that names a host of ours leads nowhere.
func TestOnlyPublicAddressesAreDialled(t *testing.T) {
	for address, public := range map[string]bool{
		"192.0.32.59:443": true, "[2620:0:2d0:200::59]:443": true, "[::ffff:192.0.32.59]:443": true, "[64:ff9b::c000:203b]:443": true,
		"127.0.0.1:443": false, "[::1]:443": false, "10.1.2.3:443": false, "172.16.0.1:443": false, "192.168.0.1:443": false,
		"169.254.169.254:443": false, "100.100.100.200:443": false, "0.0.0.0:443": false, "0.1.2.3:443": false, "224.0.0.1:443": false,
		"255.255.255.255:443": false, "240.0.0.1:443": false, "198.18.0.1:443": false, "192.0.0.170:443": false,
		"[fd00::1]:443": false, "[fe80::1]:443": false, "[fe80::1%eth0]:443": false, "[fec0::1]:443": false, "[fec0::1%eth0]:443": false, "[ff02::1]:443": false, "[::]:443": false,
		"[::ffff:10.0.0.1]:443": false, "[::ffff:127.0.0.1]:443": false, "[::ffff:100.64.0.1]:443": false, "[64:ff9b::a00:1]:443": false, "[64:ff9b::7f00:1]:443": false,
		"[64:ff9b:1::1]:443": false, "[2002:a00:1::]:443": false, "[2001::1]:443": false, "x": false, "": false, "rdap.nic.test:443": false,
	} {
		assert.Equal(t, public, publicOnly("tcp", address, nil) == nil, address)
	}
}

// The transport that asks the real servers reaches nothing of ours, and no proxy,
// which would reach it in our place.
func TestTheTransportIsGuarded(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("a host of ours was asked") }))
	defer srv.Close()
	_, port, err := net.SplitHostPort(strings.TrimPrefix(srv.URL, "http://"))
	require.NoError(t, err)
	for _, base := range []string{srv.URL, "http://localhost:" + port} {
		a, err := New(Options{BaseURL: base})
		require.NoError(t, err)
		assert.Nil(t, a.transport.(*http.Transport).Proxy)
		_, err = a.Lookup(t.Context(), provider.Query{Kind: provider.Domain, Value: "example.test"})
		require.ErrorIs(t, err, errPrivate)
		f, ok := provider.FeedbackOf(err)
		require.True(t, ok)
		assert.Equal(t, provider.Feedback{Outcome: provider.Rejected, Detail: "the server's address is private"}, f)
	}
}
