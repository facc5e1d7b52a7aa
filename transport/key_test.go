package transport_test

import (
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

var values = map[string]string{"A": "alpha", "B": "beta", "USER": "me", "P": "u:pw", "Q": "v"}

func ring(a provider.Auth) provider.Provider {
	p := api(provider.Throttle{Limits: []provider.Limit{{Name: "s", Max: 1, Per: "1s", Scope: provider.ScopeKey}}})
	if len(a.Env) == 0 {
		a.Env = []string{"A", "B"}
	}
	p.Auth = a
	return p
}

func valueOf(_, alias string) string { return values[alias] }

// Each request has the key that was picked, wherever the provider wants it, and the
// caller's request is as it was.
func TestTheKeyThatWasPickedIsPutIn(t *testing.T) {
	for _, x := range []struct {
		auth provider.Auth
		got  func(*http.Request) string
		want []string
	}{
		{provider.Auth{Kind: "header", Name: "X-Key", Prefix: "Token "}, func(r *http.Request) string { return r.Header.Get("X-Key") }, []string{"Token alpha", "Token beta"}},
		{provider.Auth{Kind: "bearer"}, func(r *http.Request) string { return r.Header.Get("Authorization") }, []string{"Bearer alpha", "Bearer beta"}},
		{provider.Auth{Kind: "query", Name: "key", With: map[string]string{"user": "USER"}}, func(r *http.Request) string { return r.URL.RawQuery }, []string{"key=alpha&q=1&user=me", "key=beta&q=1&user=me"}},
		{provider.Auth{Kind: "basic", Env: []string{"P", "Q"}}, func(r *http.Request) string { user, pw, _ := r.BasicAuth(); return user + "/" + pw }, []string{"u/pw", "v/"}},
		{provider.Auth{Kind: "path", Name: "k"}, func(r *http.Request) string { return r.Header.Get("X-Key") }, []string{"mine", "mine"}},
		{provider.Auth{Kind: "header", Name: "X-Key", Env: []string{"A"}}, func(r *http.Request) string { return r.Header.Get("X-Key") }, []string{"mine", "mine"}},
	} {
		synctest.Test(t, func(t *testing.T) {
			var got []string
			tr := over(t, base(func(r *http.Request) (*http.Response, error) {
				got = append(got, x.got(r))
				return answer(r, 200, "{}"), nil
			}), ring(x.auth))
			tr.Key = valueOf
			for range 2 {
				r, err := http.NewRequest(http.MethodGet, site+"/hosts/1?q=1", nil)
				require.NoError(t, err)
				r.Header.Set("X-Key", "mine")
				res, err := tr.RoundTrip(r)
				require.NoError(t, err)
				res.Body.Close()
				assert.Equal(t, http.Header{"X-Key": {"mine"}}, r.Header)
				assert.Equal(t, "q=1", r.URL.RawQuery)
			}
			assert.Equal(t, x.want, got)
		})
	}
}

// A key that the provider refuses rests, and the request goes with the other one; so
// does one whose variable is empty, without a request.
func TestARefusedKeyIsNotTheCallersConcern(t *testing.T) {
	for name, value := range map[string]func(string, string) string{
		"refused": valueOf,
		"empty":   func(_, alias string) string { return strings.TrimPrefix(values[alias], "alpha") },
	} {
		synctest.Test(t, func(t *testing.T) {
			var sent []string
			tr := over(t, base(func(r *http.Request) (*http.Response, error) {
				sent = append(sent, r.Header.Get("X-Key"))
				if r.Header.Get("X-Key") == "alpha" {
					return answer(r, 401, "{}"), nil
				}
				return answer(r, 200, "{}"), nil
			}), ring(provider.Auth{Kind: "header", Name: "X-Key"}))
			tr.Key = value
			r, err := http.NewRequest(http.MethodPost, site+"/hosts/1", strings.NewReader("{}"))
			require.NoError(t, err)
			res, err := tr.RoundTrip(r)
			require.NoError(t, err)
			res.Body.Close()
			assert.Equal(t, 200, res.StatusCode)
			assert.Equal(t, map[string][]string{"refused": {"alpha", "beta"}, "empty": {"beta"}}[name], sent)
			s, err := tr.Coordinator.State("p")
			require.NoError(t, err)
			require.NotEmpty(t, s.Pauses)
			assert.Equal(t, "A", s.Pauses[0].Name)
		})
	}
}

func TestNoKeyAtAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := ring(provider.Auth{Kind: "header", Name: "X-Key"})
		p.Throttle.MaxWait = 1
		tr := over(t, always(200), p)
		tr.Key = func(string, string) string { return "" }
		r, err := http.NewRequest(http.MethodGet, site+"/hosts/1", nil)
		require.NoError(t, err)
		_, err = tr.RoundTrip(r)
		require.Error(t, err)
		assert.EqualError(t, err, "transport: provider p: unauthorized: environment variable B is empty")
	})
}
