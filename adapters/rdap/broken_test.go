package rdap_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/adapters/rdap"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestABrokenConnectionIsFailed(t *testing.T) {
	dial := func(err error) error { return &net.OpError{Op: "dial", Net: "tcp", Err: err} }
	for _, c := range []struct {
		err        error
		unanswered bool
		text       string
	}{
		{dial(&net.DNSError{Err: "no such host", IsNotFound: true}), false, "no such host"},
		{dial(&net.DNSError{Err: "server misbehaving"}), false, "name lookup failed"},
		{dial(syscall.ECONNREFUSED), false, "connection refused"},
		{&tls.CertificateVerificationError{Err: errors.New("secret")}, false, "certificate not trusted"},
		{&net.OpError{Op: "read", Err: syscall.ECONNRESET}, true, "connection reset"},
		{&net.OpError{Op: "write", Err: syscall.EPIPE}, true, "connection reset"},
		{io.EOF, true, "connection closed early"},
		{&net.OpError{Op: "read", Err: &net.DNSError{IsTimeout: true}}, true, "timeout"},
		{errors.New("secret"), true, "network error"},
	} {
		_, err := atRoot(t, answer{err: c.err})
		assert.Equal(t, provider.Feedback{Outcome: provider.Failed, Unanswered: c.unanswered, Detail: c.text}, feedback(t, err))
		assert.ErrorIs(t, err, c.err)
		assert.Equal(t, "rdap: rdap.org: failed: "+c.text, err.Error())
	}
}

// body gives what it holds and then its error.
type body struct {
	io.Reader
	err error
}

func (b body) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = b.err
	}
	return n, err
}

func (b body) Close() error { return nil }

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A record that was cut short is none, even where what came of it is one; nor is it
// "no data".
func TestAnAnswerThatWasCutShortIsFailed(t *testing.T) {
	for _, status := range []int{200, 404} {
		a, err := rdap.New(rdap.Options{Transport: tripper(func(r *http.Request) (*http.Response, error) {
			res := answer{status: status}.response(r)
			res.Body = body{strings.NewReader(domain), io.ErrUnexpectedEOF}
			return res, nil
		})})
		require.NoError(t, err)
		q := example
		q.Page = page
		_, err = a.Lookup(t.Context(), q)
		assert.Equal(t, provider.Feedback{Outcome: provider.Failed, Detail: "connection closed early"}, feedback(t, err))
	}
}

func TestTheContextEndsASilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, err := rdap.New(rdap.Options{Transport: tripper(func(r *http.Request) (*http.Response, error) {
			<-r.Context().Done()
			return nil, context.Cause(r.Context())
		})})
		require.NoError(t, err)
		start := time.Now()
		ctx, cancel := context.WithTimeoutCause(t.Context(), 15*time.Second, errors.New("a cause of its own"))
		defer cancel()
		_, err = a.Lookup(ctx, example)
		require.ErrorIs(t, err, context.DeadlineExceeded)
		assert.Equal(t, "rdap: rdap.org: the deadline passed", err.Error())
		_, told := provider.FeedbackOf(err)
		assert.False(t, told, "only the Coordinator knows whose fault a deadline is")
		assert.Equal(t, 15*time.Second, time.Since(start))

		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		_, err = a.Lookup(ctx, example)
		assert.Equal(t, provider.Feedback{Outcome: provider.Canceled, Unanswered: true, Detail: "canceled"}, feedback(t, err))
		require.ErrorIs(t, err, context.Canceled)
	})
}
