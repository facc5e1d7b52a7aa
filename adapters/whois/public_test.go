package whois

import (
	"net"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/adapters/reach"
)

// An answer that names a host of ours leads nowhere.
func TestOnlyPublicAddressesAreDialled(t *testing.T) {
	for address, public := range map[string]bool{
		"192.0.32.59:43": true, "[2620:0:2d0:200::59]:43": true,
		"127.0.0.1:43": false, "[::1]:43": false, "10.1.2.3:43": false, "192.168.0.1:43": false, "169.254.169.254:43": false,
		"[fd00::1]:43": false, "[fe80::1]:43": false, "[::ffff:10.0.0.1]:43": false, "0.0.0.0:43": false, "224.0.0.1:43": false, "x": false,
	} {
		assert.Equal(t, public, reach.PublicOnly("tcp", address, nil) == nil, address)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	a, err := New(Options{})
	require.NoError(t, err)
	_, err = a.dial(t.Context(), "tcp", l.Addr().String())
	require.ErrorIs(t, err, reach.ErrPrivate)
	assert.Equal(t, "the server's address is private", reach.Reason(err))
}
