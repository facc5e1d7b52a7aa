package reach_test

import (
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/headgate/headgate/adapters/reach"
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
		assert.Equal(t, public, reach.PublicOnly("tcp", address, nil) == nil, address)
	}
}

// No reason holds a word of the error's own.
func TestReasons(t *testing.T) {
	const secret = "https://example.org/?key=secret"
	for want, err := range map[string]error{
		"the server's address is private": reach.ErrPrivate,
		"timeout":                         os.ErrDeadlineExceeded,
		"no such host":                    &net.DNSError{Err: secret, IsNotFound: true},
		"name lookup failed":              &net.DNSError{Err: secret},
		"certificate not trusted":         &tls.CertificateVerificationError{Err: errors.New(secret)},
		"connection refused":              syscall.ECONNREFUSED,
		"connection reset":                syscall.EPIPE,
		"connection closed early":         io.ErrUnexpectedEOF,
		"network error":                   errors.New(secret),
	} {
		assert.Equal(t, want, reach.Reason(fmt.Errorf("%s: %w", secret, err)))
	}
}
