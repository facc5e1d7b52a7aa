package adapters_test

import (
	"cmp"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/require"
)

// stub keeps the last request and answers each alike; the zero value: with a 204.
type stub struct {
	status int
	text   string
	header http.Header

	asked int
	got   *http.Request
	body  string
}

func (s *stub) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked++
	s.got, s.body = r, ""
	if r.Body != nil {
		text, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		s.body = string(text)
		_ = r.Body.Close()
	}
	return &http.Response{
		StatusCode: cmp.Or(s.status, http.StatusNoContent), Header: s.header.Clone(),
		Body: io.NopCloser(strings.NewReader(s.text)), Request: r,
	}, nil
}

// line is the last request's method and what it asks for.
func (s *stub) line() string { return s.got.Method + " " + s.got.URL.RequestURI() }

// stubbed makes an adapter for p that asks s.
func stubbed(t *testing.T, p provider.Provider, s *stub, env func(string) string) *adapters.HTTP {
	t.Helper()
	a, err := adapters.New(p, adapters.Options{Client: &http.Client{Transport: s}, Getenv: env, Contact: "me@example.org"})
	require.NoError(t, err)
	return a
}

// posts declares an endpoint that posts.
func posts(change func(*provider.Endpoint)) provider.Provider {
	return decl(func(p *provider.Provider) {
		p.Endpoints[0].Method, p.Endpoints[0].Path = "POST", "/find"
		change(&p.Endpoints[0])
	})
}
