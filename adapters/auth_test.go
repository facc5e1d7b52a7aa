package adapters_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sends declares an auth in full.
func sends(a provider.Auth) func(*provider.Provider) {
	return func(p *provider.Provider) {
		a.Env = []string{"ACME_KEY"}
		p.Auth = a
		if a.Kind == "form" {
			p.Endpoints[0].Method = "POST"
		}
	}
}

var user = map[string]string{"user-id": "ACME_USER"}

func TestTheKeyAndWhatGoesAlongHaveTheirPlace(t *testing.T) {
	for name, c := range map[string]struct {
		auth   provider.Auth
		change func(*provider.Endpoint)
		line   string
		header map[string]string
		body   string
	}{
		"prefix":           {auth: provider.Auth{Kind: "header", Name: "Authorization", Prefix: "Token "}, header: map[string]string{"Authorization": "Token k&1"}},
		"headers":          {auth: provider.Auth{Kind: "header", Name: "api-key", Prefix: "K=", With: user}, header: map[string]string{"Api-Key": "K=k&1", "User-Id": "u=2"}},
		"query":            {auth: provider.Auth{Kind: "query", Name: "key", With: user}, line: "GET /find/x?key=k%261&user-id=u%3D2"},
		"form of its own":  {auth: provider.Auth{Kind: "form", Name: "key", With: user}, line: "POST /find/x", body: "key=k%261&user-id=u%3D2"},
		"among the fields": {auth: provider.Auth{Kind: "form", Name: "key"}, change: func(e *provider.Endpoint) { e.Form = map[string]string{"q": "{value}"} }, body: "key=k%261&q=x"},
		"bearer":           {auth: provider.Auth{Kind: "bearer"}, header: map[string]string{"Authorization": "Bearer k&1"}},
		"user alone":       {auth: provider.Auth{Kind: "basic"}, header: map[string]string{"Authorization": "Basic " + base64.StdEncoding.EncodeToString([]byte("k&1:"))}},
		"in JSON": {auth: provider.Auth{Kind: "path", Name: "token"}, change: func(e *provider.Endpoint) {
			e.Method, e.JSON = "POST", `{"auth": "{token}", "q": "{value}"}`
		}, body: `{"auth":"k&1","q":"x"}`},
	} {
		t.Run(name, func(t *testing.T) {
			p := decl(sends(c.auth))
			if c.change != nil {
				c.change(&p.Endpoints[0])
			}
			s := &stub{}
			a := stubbed(t, p, s, env("ACME_KEY", "k&1\n", "ACME_USER", " u=2"))
			require.NoError(t, a.Ready())
			_, err := ask(t, a, "x")
			require.NoError(t, err)
			if c.line != "" {
				assert.Equal(t, c.line, s.line())
			}
			assert.Equal(t, c.body, s.body)
			if c.auth.Kind == "form" {
				assert.Equal(t, "application/x-www-form-urlencoded", s.got.Header.Get("Content-Type"))
			}
			for h, v := range c.header {
				assert.Equal(t, []string{v}, s.got.Header[h])
			}
			want := 2 + len(c.header) // with Accept and User-Agent
			if c.body != "" {
				want++ // with Content-Type
			}
			assert.Len(t, s.got.Header, want, "nothing is sent twice")
		})
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	with := provider.Auth{Kind: "query", Name: "key", With: map[string]string{"user": "ACME_USER", "site": "ACME_SITE"}}
	optional := with
	optional.Optional = true
	for name, c := range map[string]struct {
		auth provider.Auth
		env  []string
		want string
	}{
		"nothing":               {with, nil, "no key: set the environment variable ACME_KEY, and besides it ACME_SITE, ACME_USER"},
		"key alone":             {with, []string{"ACME_KEY", "k"}, "the key does not go alone: set the environment variables ACME_SITE, ACME_USER, too"},
		"no key":                {with, []string{"ACME_USER", "u", "ACME_SITE", "s"}, "no key: set the environment variable ACME_KEY"},
		"one is missing":        {with, []string{"ACME_KEY", "k", "ACME_SITE", "s"}, "the key does not go alone: set the environment variables ACME_USER, too"},
		"blank":                 {with, []string{"ACME_KEY", "k", "ACME_SITE", "s", "ACME_USER", " \n"}, "set the environment variables ACME_USER, too"},
		"control":               {with, []string{"ACME_KEY", "k", "ACME_SITE", "s", "ACME_USER", "a\nb"}, "environment variable ACME_USER: the key holds a control character"},
		"half, though optional": {optional, []string{"ACME_KEY", "k", "ACME_SITE", "s"}, "set the environment variables ACME_USER, too"},
		"without the key":       {optional, []string{"ACME_USER", "u", "ACME_SITE", "s"}, "set the environment variable ACME_KEY"},
		"broken, though optional": {provider.Auth{Kind: "query", Name: "key", Optional: true}, []string{"ACME_KEY", "a\nb"},
			"environment variable ACME_KEY: the key holds a control character"},
	} {
		s := &stub{}
		a := stubbed(t, decl(sends(c.auth)), s, env(c.env...))
		require.ErrorContains(t, a.Ready(), c.want, name)
		_, err := ask(t, a, "x")
		require.ErrorContains(t, err, c.want, name)
		assert.Equal(t, provider.Canceled, feedback(t, err).Outcome)
		assert.NotContains(t, err.Error(), "\n", name)
		assert.Zero(t, s.asked, name)
	}
}

func TestAnOptionalKeyMayBeMissing(t *testing.T) {
	for kind, name := range map[string]string{"header": "x-key", "query": "key", "form": "key", "basic": "", "bearer": ""} {
		p := decl(sends(provider.Auth{Kind: kind, Name: name, Optional: true}))
		if name != "" {
			p.Auth.With = user
		}
		p.Auth.Env = []string{"ACME_KEY", "ACME_KEY_2"}
		s := &stub{}
		a := stubbed(t, p, s, env())
		require.NoError(t, a.Ready(), kind)
		_, err := ask(t, a, "x")
		require.NoError(t, err, kind)
		assert.Len(t, s.got.Header, 2, "%s: Accept and User-Agent alone", kind)
		assert.Empty(t, s.got.URL.RawQuery, kind)
		assert.Empty(t, s.body, kind)

		// The decision picked a key, which is gone: to send without it would be
		// counted elsewhere.
		s.asked = 0
		_, err = a.Lookup(t.Context(), provider.Query{Kind: provider.Text, Value: "x", Key: "ACME_KEY_2"})
		require.ErrorContains(t, err, "no key: set the environment variable ACME_KEY_2", kind)
		assert.Zero(t, s.asked)
	}
}

// spill fails with what was sent in its text, part by part and without a URL.
type spill struct{ part func(*http.Request) string }

func (s spill) RoundTrip(r *http.Request) (*http.Response, error) {
	return nil, fmt.Errorf("cannot send %s: %w", s.part(r), syscall.ECONNREFUSED)
}

func TestNoErrorTextHoldsWhatIsSentForAKey(t *testing.T) {
	const who = "Us3r<\">&"
	body := func(r *http.Request) string {
		var b strings.Builder
		if r.Body != nil {
			_ = r.Write(&b) // head and body
		}
		_, text, _ := strings.Cut(b.String(), "\r\n\r\n")
		return text
	}
	own := func(r *http.Request) http.Header { // without the URL in our name, which no text may show anyway
		h := r.Header.Clone()
		h.Del("User-Agent")
		return h
	}
	shown := map[string]func(*http.Request) string{
		"header": func(r *http.Request) string { return fmt.Sprint(own(r)) },
		"quoted": func(r *http.Request) string { return fmt.Sprintf("%q", own(r)) },
		"url":    func(r *http.Request) string { return r.URL.RequestURI() },
		"path":   func(r *http.Request) string { return fmt.Sprintf("%q", r.URL.Path) },
		"body":   body,
		"fields": func(r *http.Request) string {
			if r.Header.Get("Content-Type") != "application/x-www-form-urlencoded" {
				return ""
			}
			v, _ := url.ParseQuery(body(r))
			return fmt.Sprintf("%v %q", v, v)
		},
		"basic":    func(r *http.Request) string { return strings.TrimPrefix(r.Header.Get("Authorization"), "Basic ") },
		"logged":   func(r *http.Request) string { text, _ := json.Marshal(own(r)); return string(text) },
		"user":     func(r *http.Request) string { user, _, _ := r.BasicAuth(); return user },
		"password": func(r *http.Request) string { _, password, _ := r.BasicAuth(); return password },
		"values":   func(r *http.Request) string { return fmt.Sprint(r.URL.Query().Get("user-id"), r.Header.Get("user-id")) },
	}
	for name, change := range map[string]func(*provider.Provider){
		"header": sends(provider.Auth{Kind: "header", Name: "x-key", Prefix: "Token ", With: user}),
		"query":  sends(provider.Auth{Kind: "query", Name: "key", With: user}),
		"form":   sends(provider.Auth{Kind: "form", Name: "key", With: user}),
		"basic":  sends(provider.Auth{Kind: "basic"}),
		"bearer": sends(provider.Auth{Kind: "bearer"}),
		"json": func(p *provider.Provider) {
			sends(provider.Auth{Kind: "path", Name: "k"})(p)
			p.Endpoints[0].Method, p.Endpoints[0].JSON = "POST", `{"auth": {"k": "{k}"}, "q": "{value}"}`
		},
		"path": func(p *provider.Provider) {
			sends(provider.Auth{Kind: "path", Name: "k"})(p)
			p.Endpoints[0].Path = "/{k}/{value}"
		},
	} {
		for part, show := range shown {
			for _, key := range []string{"S3cr\"t\\ /k&y", "S3cr\"t:P4ss\\ /k&y"} {
				opt := adapters.Options{Client: &http.Client{Transport: spill{show}}, Getenv: env("ACME_KEY", key, "ACME_USER", who)}
				a, err := adapters.New(decl(change), opt)
				require.NoError(t, err)
				_, err = ask(t, a, "x")
				assert.Equal(t, provider.Feedback{Outcome: provider.Failed, Unanswered: true, Detail: "connection refused"}, feedback(t, err))
				user, password, _ := strings.Cut(key, ":")
				basic := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
				for _, secret := range []string{"S3cr", "P4ss", "Us3r", "k&y", "k%26y", basic} {
					assert.NotContains(t, texts(err), secret, "%s: %s", name, part)
				}
			}
		}
	}
}

func TestNoErrorTextHoldsAQuery(t *testing.T) {
	client := &http.Client{Transport: spill{func(r *http.Request) string { return r.URL.RawQuery }}}
	a, err := adapters.New(decl(func(p *provider.Provider) { p.Endpoints[0].Params = map[string]string{"who": "{value}"} }), adapters.Options{Client: client})
	require.NoError(t, err)
	_, err = ask(t, a, "somebody")
	require.ErrorIs(t, err, syscall.ECONNREFUSED)
	assert.NotContains(t, texts(err), "somebody")
}
