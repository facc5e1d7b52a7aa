package adapters_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// secret is a key that changes its look in each escaping.
const secret = "S3cr=t /k&y+%2F"

// env is an environment of its own.
func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// decl declares one endpoint that takes text in its path.
func decl(change func(*provider.Provider)) provider.Provider {
	p := provider.Provider{
		Slug: "acme", BaseURL: "https://api.acme.example",
		Endpoints: []provider.Endpoint{{Name: "find", Path: "/find/{value}", Kinds: []provider.Kind{provider.Text}}},
	}
	if change != nil {
		change(&p)
	}
	return p
}

func auth(kind, name string) func(*provider.Provider) {
	return func(p *provider.Provider) {
		p.Auth = provider.Auth{Kind: kind, Name: name, Env: []string{"ACME_KEY"}}
	}
}

// serve starts a server and an adapter for p that talks to it.
func serve(t *testing.T, p provider.Provider, opt adapters.Options, handler http.HandlerFunc) *adapters.HTTP {
	t.Helper()
	srv := httptest.NewServer(handler)
	t.Cleanup(srv.Close)
	opt.BaseURL = srv.URL + opt.BaseURL
	if opt.Getenv == nil {
		opt.Getenv = env("ACME_KEY", secret)
	}
	a, err := adapters.New(p, opt)
	require.NoError(t, err)
	return a
}

// ask looks one text up.
func ask(t *testing.T, a *adapters.HTTP, value string) (provider.Result, error) {
	t.Helper()
	return a.Lookup(t.Context(), provider.Query{Kind: provider.Text, Value: value})
}

// answer replies with status, body and header lines.
func answer(status int, body string, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Add(header[i], header[i+1])
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// feedback returns what err says, and fails where it says nothing.
func feedback(t *testing.T, err error) provider.Feedback {
	t.Helper()
	require.Error(t, err)
	f, ok := provider.FeedbackOf(err)
	require.True(t, ok, "no feedback in %v", err)
	return f
}

func TestEachKindOfAuthPutsTheKeyInItsPlaceAndNowhereElse(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*provider.Provider)
		key    string
		want   func(r *http.Request) string // where the key was found
	}{
		"header": {auth("header", "x-apikey"), "k-1", func(r *http.Request) string { return r.Header.Get("X-Apikey") }},
		"query":  {auth("query", "key"), "k&1=/", func(r *http.Request) string { return r.URL.Query().Get("key") }},
		"bearer": {auth("bearer", ""), "k-1", func(r *http.Request) string {
			return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		}},
		"basic": {auth("basic", ""), "user:pass:word", func(r *http.Request) string {
			u, p, _ := r.BasicAuth()
			return u + ":" + p
		}},
		"path": {func(p *provider.Provider) {
			auth("path", "api-key")(p)
			p.Endpoints[0].Path = "/v1/{api-key}/find/{value}"
		}, "k/1?", func(r *http.Request) string {
			assert.Equal(t, "/v1/k%2F1%3F/find/x", r.RequestURI)
			return strings.Split(r.URL.Path, "/find")[0][len("/v1/"):]
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			var req *http.Request
			a := serve(t, decl(c.change), adapters.Options{Getenv: env("ACME_KEY", c.key+"\n")}, func(w http.ResponseWriter, r *http.Request) {
				got, req = c.want(r), r.Clone(context.Background())
				_, _ = io.WriteString(w, `{"a":1}`)
			})
			_, err := ask(t, a, "x")
			require.NoError(t, err)
			assert.Equal(t, c.key, got)
			if name != "header" {
				assert.Empty(t, req.Header.Get("X-Apikey"))
			}
			if name != "bearer" && name != "basic" {
				assert.Empty(t, req.Header.Get("Authorization"))
			}
			if name != "query" {
				assert.Empty(t, req.URL.RawQuery)
			}
		})
	}
}

func TestABasicKeyWithoutColonIsTheUser(t *testing.T) {
	a := serve(t, decl(auth("basic", "")), adapters.Options{Getenv: env("ACME_KEY", "token")}, func(w http.ResponseWriter, r *http.Request) {
		u, p, ok := r.BasicAuth()
		assert.True(t, ok)
		assert.Equal(t, "token", u)
		assert.Empty(t, p)
		w.WriteHeader(204)
	})
	_, err := ask(t, a, "x")
	require.NoError(t, err)
}

func TestTheAliasPicksTheKey(t *testing.T) {
	p := decl(auth("header", "x-apikey"))
	p.Auth.Env = []string{"ACME_KEY", "ACME_KEY_2", "ACME_KEY_3"}
	var got string
	a := serve(t, p, adapters.Options{Getenv: env("ACME_KEY_2", "two", "ACME_KEY_3", "three", "HOME", "/root")}, func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("X-Apikey")
		w.WriteHeader(204)
	})
	q := provider.Query{Kind: provider.Text, Value: "x"}
	for alias, want := range map[string]string{"": "two", "ACME_KEY_2": "two", "ACME_KEY_3": "three"} {
		q.Key = alias
		_, err := a.Lookup(t.Context(), q)
		require.NoError(t, err)
		assert.Equal(t, want, got)
	}
	got = ""
	for alias, want := range map[string]string{
		"ACME_KEY": "set the environment variable ACME_KEY",
		"HOME":     "want one of auth.env: ACME_KEY, ACME_KEY_2, ACME_KEY_3",
		secret:     "want one of auth.env: ACME_KEY, ACME_KEY_2, ACME_KEY_3",
	} {
		q.Key = alias
		_, err := a.Lookup(t.Context(), q)
		require.ErrorContains(t, err, want)
		assert.NotContains(t, err.Error(), secret)
		assert.Empty(t, got, "nothing is sent without its key")
	}
}

func TestAMissingKeyNamesItsVariableAndNothingIsSent(t *testing.T) {
	p := decl(auth("query", "key"))
	a := serve(t, p, adapters.Options{Getenv: env("ACME_KEY", " \n")}, func(http.ResponseWriter, *http.Request) {
		t.Error("sent without a key")
	})
	require.ErrorContains(t, a.Ready(), "ACME_KEY")
	_, err := ask(t, a, "x")
	assert.Equal(t, provider.Canceled, feedback(t, err).Outcome)
	assert.False(t, feedback(t, err).Unanswered, "nothing was sent")
	require.ErrorContains(t, err, "set the environment variable ACME_KEY")

	p.Auth.Env = []string{"ONE", "TWO"}
	a, err = adapters.New(p, adapters.Options{Getenv: env()})
	require.NoError(t, err)
	require.ErrorContains(t, a.Ready(), "set one of the environment variables ONE, TWO")

	a, err = adapters.New(decl(auth("header", "k")), adapters.Options{Getenv: env("ACME_KEY", "a\nb")})
	require.NoError(t, err)
	_, err = ask(t, a, "x")
	require.ErrorContains(t, err, "ACME_KEY: the key holds a control character")
	assert.NotContains(t, err.Error(), "a\nb")
}

func TestIdentityIsWhatTheProviderAsksFor(t *testing.T) {
	for name, c := range map[string]struct {
		id      provider.Identity
		contact string
		env     string
		want    string
	}{
		"none":         {want: "headgate (+https://github.com/headgate/headgate)"},
		"agent":        {id: provider.Identity{UserAgent: "acme-tool/1"}, contact: "unasked@example.org", want: "acme-tool/1"},
		"filled":       {id: provider.Identity{UserAgent: "acme/1 <{contact}>"}, contact: "me@example.org", want: "acme/1 <me@example.org>"},
		"contact":      {id: provider.Identity{UserAgent: "acme/1", Contact: true}, contact: "me@example.org", want: "acme/1 (me@example.org)"},
		"from env":     {id: provider.Identity{UserAgent: "acme/1", Contact: true}, env: "you@example.org", want: "acme/1 (you@example.org)"},
		"options wins": {id: provider.Identity{UserAgent: "{contact}"}, contact: "me@example.org", env: "you@example.org", want: "me@example.org"},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			p := decl(func(p *provider.Provider) { p.Identity = c.id })
			opt := adapters.Options{Contact: c.contact, Getenv: env(adapters.ContactVariable, c.env)}
			a := serve(t, p, opt, func(w http.ResponseWriter, r *http.Request) {
				got = r.UserAgent()
				w.WriteHeader(204)
			})
			require.NoError(t, a.Ready())
			_, err := ask(t, a, "x")
			require.NoError(t, err)
			assert.Equal(t, c.want, got)
		})
	}
	for _, contact := range []string{"", "a\r\nX-Evil: 1"} {
		p := decl(func(p *provider.Provider) { p.Identity.Contact = true })
		a := serve(t, p, adapters.Options{Contact: contact, Getenv: env()}, func(http.ResponseWriter, *http.Request) {
			t.Error("sent without a contact")
		})
		require.ErrorContains(t, a.Ready(), "contact")
		_, err := ask(t, a, "x")
		assert.Equal(t, provider.Canceled, feedback(t, err).Outcome)
	}
}

func TestLookupsMayRunAtOnce(t *testing.T) {
	a := serve(t, decl(auth("query", "key")), adapters.Options{}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, `"`+r.URL.Path+`"`)
	})
	errs := make(chan error)
	for range 16 {
		go func() {
			r, err := a.Lookup(context.Background(), provider.Query{Kind: provider.Text, Value: "x"})
			if err == nil && string(r.Data) != `"/find/x"` {
				err = io.ErrUnexpectedEOF
			}
			errs <- err
		}()
	}
	for range 16 {
		require.NoError(t, <-errs)
	}
}

func TestAResultSaysWhoAnsweredWhen(t *testing.T) {
	a := serve(t, decl(nil), adapters.Options{}, answer(200, ` {"a": 1} `))
	before := time.Now()
	r, err := ask(t, a, "x")
	require.NoError(t, err)
	assert.Equal(t, "acme", r.Provider)
	assert.Equal(t, "find", r.Endpoint)
	assert.JSONEq(t, `{"a":1}`, string(r.Data))
	assert.WithinDuration(t, before, r.Feedback.Date, time.Hour, "the server's own clock, which is ours")
	r.Feedback.Date = time.Time{}
	assert.Equal(t, provider.Feedback{Outcome: provider.OK}, r.Feedback)
	assert.False(t, r.Empty || r.Suspicious)
	assert.False(t, r.At.Before(before) || r.At.After(time.Now()))
}
