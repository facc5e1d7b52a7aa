package adapters_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// script answers each URL with a redirect to the next one it has for it, else a 204.
type script map[string]string

func (s script) RoundTrip(r *http.Request) (*http.Response, error) {
	res := &http.Response{StatusCode: 204, Header: http.Header{}, Body: http.NoBody, Request: r}
	if to := s[r.URL.Scheme+"://"+r.URL.Host]; to != "" && r.URL.Path != "/moved" {
		res.StatusCode = 302
		res.Header.Set("Location", to+"/moved")
	}
	return res, nil
}

func TestARedirectElsewhereIsNotFollowed(t *testing.T) {
	for name, change := range map[string]func(*provider.Provider){"header": auth("header", "x-apikey"), "query": auth("query", "key")} {
		t.Run(name, func(t *testing.T) {
			other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				t.Errorf("another origin was asked: %s %v", r.RequestURI, r.Header)
			}))
			defer other.Close()
			for _, status := range []int{301, 302, 303, 307, 308} {
				a := serve(t, decl(change), adapters.Options{}, answer(status, "[]", "Location", other.URL+"/x"))
				_, err := ask(t, a, "x")
				f := feedback(t, err)
				assert.Equal(t, provider.Rejected, f.Outcome)
				assert.Contains(t, f.Detail, "a redirect that is not followed")
				silent(t, err)
			}
		})
	}
}

func TestARedirectInsideTheOriginIsFollowedWithoutReferer(t *testing.T) {
	p := decl(func(p *provider.Provider) {
		auth("header", "x-apikey")(p)
		p.Endpoints[0].Params = map[string]string{"a": "1"}
	})
	var hops int
	var asked []string
	opt := adapters.Options{Client: &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error {
		hops++
		return nil
	}}}
	h := func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.Path)
		assert.Equal(t, secret, r.Header.Get("X-Apikey"))
		assert.Empty(t, r.Referer())
		if r.URL.Path == "/find/x" {
			http.Redirect(w, r, "/moved/x?key=1", http.StatusMovedPermanently)
			return
		}
		answer(200, "[1]")(w, r)
	}
	r, err := ask(t, serve(t, p, opt, h), "x")
	require.NoError(t, err)
	assert.Equal(t, "[1]", string(r.Data))
	assert.Equal(t, []string{"/find/x", "/moved/x"}, asked)
	assert.Equal(t, 1, hops, "the Client's own rule is asked too")

	count := 0
	a := serve(t, decl(nil), adapters.Options{}, func(w http.ResponseWriter, r *http.Request) {
		if count++; count > 10 {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		http.Redirect(w, r, "/find/x", http.StatusFound)
	})
	_, err = ask(t, a, "x")
	assert.Equal(t, provider.Rejected, feedback(t, err).Outcome)
	assert.Equal(t, 4, count, "a circle ends after three redirects")
}

// moved answers the first request with a redirect and keeps what came after it.
func moved(t *testing.T, p provider.Provider, status int) (asked []string, err error) {
	t.Helper()
	a := serve(t, p, adapters.Options{}, func(w http.ResponseWriter, r *http.Request) {
		text, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		asked = append(asked, r.Method+" "+r.URL.Path+" "+string(text))
		if r.URL.Path != "/moved" {
			w.Header().Set("Location", "/moved")
			w.WriteHeader(status)
			return
		}
		answer(200, "[1]")(w, r)
	})
	_, err = ask(t, a, "x")
	return asked, err
}

func TestARedirectSendsTheBodyAgainOrIsNotFollowed(t *testing.T) {
	form := posts(func(e *provider.Endpoint) { e.Form = map[string]string{"q": "{value}"} })
	json := posts(func(e *provider.Endpoint) { e.JSON = `{"q":"{value}"}` })
	for _, status := range []int{307, 308} {
		asked, err := moved(t, form, status)
		require.NoError(t, err)
		assert.Equal(t, []string{"POST /find q=x", "POST /moved q=x"}, asked)
		asked, err = moved(t, json, status)
		require.NoError(t, err)
		assert.Equal(t, []string{`POST /find {"q":"x"}`, `POST /moved {"q":"x"}`}, asked)
	}
	for _, status := range []int{301, 302} { // net/http would make a GET of it, without the question
		asked, err := moved(t, json, status)
		assert.Equal(t, provider.Rejected, feedback(t, err).Outcome)
		assert.Equal(t, []string{`POST /find {"q":"x"}`}, asked)
	}
	asked, err := moved(t, form, 303) // which says that the answer is there, by GET
	require.NoError(t, err)
	assert.Equal(t, []string{"POST /find q=x", "GET /moved "}, asked)
}

func TestAnOriginIsSchemeHostAndPort(t *testing.T) {
	for from, to := range map[string]map[string]bool{
		"https://api.acme.example": {
			"https://api.acme.example": true, "http://api.acme.example": false, "https://api.acme.example:444": false,
			"https://acme.example": false, "https://x.api.acme.example": false,
		},
		"http://api.acme.example":    {"https://api.acme.example": true, "https://api.acme.example:8443": false, "https://evil.example": false},
		"http://api.acme.example:81": {"http://api.acme.example:81": true, "https://api.acme.example:81": false},
	} {
		for to, followed := range to {
			opt := adapters.Options{BaseURL: from, Client: &http.Client{Transport: script{from: to}}}
			a, err := adapters.New(decl(nil), opt)
			require.NoError(t, err)
			_, err = ask(t, a, "x")
			assert.Equal(t, followed, err == nil, "%s to %s: %v", from, to, err)
		}
	}
}
