package adapters_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// texts returns all that err's tree prints.
func texts(err error) string {
	if err == nil {
		return ""
	}
	all := fmt.Sprintf("%v|%+v|%#v|%q\n", err, err, err, err)
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		all += texts(e.Unwrap())
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			all += texts(inner)
		}
	}
	return all
}

// silent fails where a text of err shows the key, in whatever escaping, or a
// URL's query.
func silent(t *testing.T, err error) {
	t.Helper()
	require.Error(t, err)
	all := texts(err)
	if f, ok := provider.FeedbackOf(err); ok {
		all += f.Detail
	}
	for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret), "S3cr", "k%26y", "?key=", "://"} {
		assert.NotContains(t, all, form)
	}
}

// echo is a transport that fails with the request's URL in its text, as a
// careless one may.
type echo struct{ wrap func(error) error }

func (e echo) RoundTrip(r *http.Request) (*http.Response, error) {
	err := fmt.Errorf("cannot reach %s with %v: %w", r.URL, r.Header, syscall.ECONNREFUSED)
	if e.wrap != nil {
		err = e.wrap(err)
	}
	return nil, err
}

// quiet hides the text of what it wraps, but not the thing.
type quiet struct{ err error }

func (q quiet) Error() string { return "quiet" }
func (q quiet) Unwrap() error { return q.err }

// quietErrors does so for several.
type quietErrors []error

func (quietErrors) Error() string     { return "quiet" }
func (q quietErrors) Unwrap() []error { return q }

// value is an error that %#v prints whole, unlike a pointer.
type value struct {
	text string
	err  error
}

func (v value) Error() string { return "value" }
func (v value) Unwrap() error { return v.err }

// parts shows the key as a path and as a query have it, but no URL.
type parts struct{}

func (parts) RoundTrip(r *http.Request) (*http.Response, error) {
	key := url.QueryEscape(r.URL.Query().Get("key"))
	return nil, fmt.Errorf("no way to %s with %s: %w", r.URL.EscapedPath(), key, syscall.ECONNREFUSED)
}

func TestNoErrorTextHoldsTheKey(t *testing.T) {
	kinds := map[string]func(*provider.Provider){
		"query": auth("query", "key"), "header": auth("header", "x-apikey"), "bearer": auth("bearer", ""), "basic": auth("basic", ""),
		"path": func(p *provider.Provider) {
			auth("path", "k")(p)
			p.Endpoints[0].Path = "/{k}/{value}"
		},
	}
	clients := map[string]*http.Client{
		"refused":   nil,
		"careless":  {Transport: echo{}},
		"url error": {Transport: echo{func(err error) error { return &url.Error{Op: "Get", URL: "http://h?key=" + secret, Err: err} }}},
		"quiet":     {Transport: echo{func(err error) error { return quiet{err} }}},
		"quiet all": {Transport: echo{func(err error) error { return quietErrors{io.EOF, err} }}},
		"value":     {Transport: echo{func(err error) error { return value{err.Error(), err} }}},
		"parts":     {Transport: parts{}},
		"joined":    {Transport: echo{func(err error) error { return errors.Join(errors.New("first"), err) }}},
	}
	for kind, change := range kinds {
		for name, client := range clients {
			t.Run(kind+" "+name, func(t *testing.T) {
				p := decl(change)
				p.Endpoints[0].Params = map[string]string{"a": "1"}
				a, err := adapters.New(p, adapters.Options{Client: client, BaseURL: refused(t), Getenv: env("ACME_KEY", secret)})
				require.NoError(t, err)
				_, err = ask(t, a, "x")
				silent(t, err)
				assert.Equal(t, provider.Feedback{Outcome: provider.Failed, Unanswered: true, Detail: "connection refused"}, feedback(t, err))
				require.ErrorIs(t, err, syscall.ECONNREFUSED, "the cause is kept")
				if client == nil {
					var op *net.OpError
					require.ErrorAs(t, err, &op, "and reached where it holds nothing")
				}
				assert.Contains(t, err.Error(), "adapters: acme find")
			})
		}
	}
}

func TestNoErrorTextHoldsWhatTheProviderWrote(t *testing.T) {
	for name, h := range map[string]http.HandlerFunc{
		"body": func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "bad key in "+r.RequestURI, http.StatusForbidden)
		},
		"location": func(w http.ResponseWriter, r *http.Request) {
			answer(302, "", "Location", "http://%zz/"+r.RequestURI)(w, r)
		},
		"elsewhere": func(w http.ResponseWriter, r *http.Request) {
			answer(302, "", "Location", "https://evil.example"+r.RequestURI)(w, r)
		},
		"reason": drop("HTTP/1.1 500 " + secret + "\r\n\r\n"),
		"junk":   drop(secret + "\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ask(t, serve(t, decl(auth("query", "key")), adapters.Options{}, h), "x")
			silent(t, err)
		})
	}
}

func TestACanceledLookupIsCanceled(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	a := serve(t, decl(auth("query", "key")), adapters.Options{}, func(_ http.ResponseWriter, r *http.Request) {
		cancel(errors.New("why: " + secret))
		<-r.Context().Done()
	})
	q := provider.Query{Kind: provider.Text, Value: "x"}
	_, err := a.Lookup(ctx, q)
	assert.Equal(t, provider.Feedback{Outcome: provider.Canceled, Unanswered: true, Detail: "canceled"}, feedback(t, err))
	require.ErrorIs(t, err, context.Canceled)
	silent(t, err)

	// Before anything was sent.
	_, err = a.Lookup(ctx, q)
	assert.Equal(t, provider.Canceled, feedback(t, err).Outcome)
	assert.False(t, feedback(t, err).Unanswered)
	require.ErrorIs(t, err, context.Canceled)
}

func TestALookupCanceledInItsBodyIsCanceled(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	a := serve(t, decl(nil), adapters.Options{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("[1,"))
		w.(http.Flusher).Flush()
		cancel()
		<-r.Context().Done()
	})
	_, err := a.Lookup(ctx, provider.Query{Kind: provider.Text, Value: "x"})
	require.ErrorIs(t, err, context.Canceled)
	assert.Equal(t, provider.Canceled, feedback(t, err).Outcome)
}

// hang is a provider that takes requests and does not answer.
type hang struct{}

func (hang) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, context.Cause(r.Context())
}

func TestTheCallersDeadlineIsLeftToTheCaller(t *testing.T) {
	for name, cause := range map[string]error{"plain": nil, "with a cause": errors.New("why: " + secret)} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeoutCause(t.Context(), time.Hour, cause)
				defer cancel()
				opt := adapters.Options{Client: &http.Client{Transport: hang{}}, Getenv: env("ACME_KEY", secret)}
				a, err := adapters.New(decl(auth("query", "key")), opt)
				require.NoError(t, err)
				_, err = a.Lookup(ctx, provider.Query{Kind: provider.Text, Value: "x"})
				require.ErrorIs(t, err, context.DeadlineExceeded)
				_, classified := provider.FeedbackOf(err)
				assert.False(t, classified, "whether a deadline is a failure depends on how long the call ran")
				assert.EqualError(t, err, "adapters: acme find: the deadline passed")
				silent(t, err)
			})
		})
	}
}

func TestATimeoutBelowTheCallerIsAFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client := &http.Client{Transport: hang{}, Timeout: time.Second}
		a, err := adapters.New(decl(auth("query", "key")), adapters.Options{Client: client, Getenv: env("ACME_KEY", secret)})
		require.NoError(t, err)
		_, err = a.Lookup(t.Context(), provider.Query{Kind: provider.Text, Value: "x"})
		assert.Equal(t, provider.Feedback{Outcome: provider.Failed, Unanswered: true, Detail: "timeout"}, feedback(t, err))
		silent(t, err)
		assert.NotContains(t, err.Error(), "Client.Timeout")
	})
}
