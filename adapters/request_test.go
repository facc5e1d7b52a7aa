package adapters_test

import (
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// awkward are values that would change a request if they were not escaped.
var awkward = []string{
	"1.2.3.4", "2001:db8::1", "a/b", "a?b=c", "a#b", "a b", "a%2Fb", "a+b", "a&b=c", "../../admin", "a/../b", "..a", "...",
	"https://x.example/p?q=1#f", "naïve.例え", "\"'<>\\^`{|}", "{value}", "{key}", ";,:@$!*()", "\x00\r\nHost: evil", "%", "\xff",
}

func TestAValueStaysInItsPlaceInThePath(t *testing.T) {
	p := decl(func(p *provider.Provider) { p.Endpoints[0].Path = "/v1/{value}/report/{part}" })
	var got *http.Request
	a := serve(t, p, adapters.Options{BaseURL: "/base"}, func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.WriteHeader(204)
	})
	for _, v := range awkward {
		got = nil
		_, err := a.Lookup(t.Context(), provider.Query{Kind: provider.Text, Value: v, Params: map[string]string{"part": "p/" + v}})
		require.NoError(t, err, "%q", v)
		segments := strings.Split(got.RequestURI, "/")
		require.Len(t, segments, 6, "%q sent as %s", v, got.RequestURI)
		one, err := url.PathUnescape(segments[3])
		require.NoError(t, err)
		two, err := url.PathUnescape(segments[5])
		require.NoError(t, err)
		assert.Equal(t, []string{"", "base", "v1", v, "report", "p/" + v}, []string{segments[0], segments[1], segments[2], one, segments[4], two})
	}
}

func TestAValueThatIsOnlyDotsCannotStandInAPath(t *testing.T) {
	a := serve(t, decl(nil), adapters.Options{}, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("sent %s", r.RequestURI) })
	for _, v := range []string{".", "..", ""} {
		_, err := ask(t, a, v)
		assert.Equal(t, provider.Canceled, feedback(t, err).Outcome, "%q", v)
		require.ErrorContains(t, err, "{value}")
	}
	// Two harmless values may make a harmful segment together.
	p := decl(func(p *provider.Provider) { p.Endpoints[0].Path = "/find/{value}{more}" })
	a = serve(t, p, adapters.Options{}, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("sent %s", r.RequestURI) })
	_, err := a.Lookup(t.Context(), provider.Query{Kind: provider.Text, Value: ".", Params: map[string]string{"more": "."}})
	require.ErrorContains(t, err, "out of its place")
}

func TestAValueStaysInItsPlaceInAParameter(t *testing.T) {
	p := decl(func(p *provider.Provider) {
		auth("query", "key")(p)
		p.Endpoints[0].Path = "/"
		p.Endpoints[0].Params = map[string]string{"q": `domain:"{value}"`, "output": "json", "filter": `{"a":{"b":1}}`}
	})
	var got url.Values
	a := serve(t, p, adapters.Options{Getenv: env("ACME_KEY", "k")}, func(w http.ResponseWriter, r *http.Request) {
		got = r.URL.Query()
		assert.Equal(t, "/", r.URL.Path)
		w.WriteHeader(204)
	})
	for _, v := range append(awkward, ".", "..") {
		_, err := ask(t, a, v)
		require.NoError(t, err, "%q", v)
		assert.Equal(t, url.Values{
			"q": {`domain:"` + v + `"`}, "output": {"json"}, "filter": {`{"a":{"b":1}}`}, "key": {"k"},
		}, got)
	}
	_, err := ask(t, a, "")
	require.ErrorContains(t, err, "params: q: {value} is empty")
}

func TestTheQuerysParamsFillPlaceholdersAndReplaceDeclaredOnes(t *testing.T) {
	p := decl(func(p *provider.Provider) {
		auth("query", "key")(p)
		p.Endpoints[0].Params = map[string]string{"limit": "10", "since": "{since}"}
	})
	var got string
	a := serve(t, p, adapters.Options{Getenv: env("ACME_KEY", "k")}, func(w http.ResponseWriter, r *http.Request) {
		got = r.RequestURI
		w.WriteHeader(204)
	})
	look := func(params map[string]string) error {
		got = ""
		_, err := a.Lookup(t.Context(), provider.Query{Endpoint: "find", Kind: provider.Text, Value: "v", Params: params})
		return err
	}
	require.NoError(t, look(map[string]string{"since": "{limit}&x=1", "limit": "5"}))
	assert.Equal(t, "/find/v?key=k&limit=5&since=%7Blimit%7D%26x%3D1", got)
	require.NoError(t, look(map[string]string{"since": "1"}))
	assert.Equal(t, "/find/v?key=k&limit=10&since=1", got)
	for param, want := range map[string]string{
		"sinec": `"sinec" is neither a placeholder nor a declared parameter`,
		"key":   `"key" is neither`, // the key cannot be replaced from a query
		"value": `"value" is neither`,
	} {
		require.ErrorContains(t, look(map[string]string{"since": "1", param: "1"}), want)
		assert.Empty(t, got)
	}
	require.ErrorContains(t, look(nil), "nothing fills {since}")
	assert.Empty(t, got)
}

func TestMethodAndSlashesAreAsDeclared(t *testing.T) {
	for path, want := range map[string]string{
		"": "/base", "/": "/base/", "/find/{value}": "/base/find/v", "/find/{value}/": "/base/find/v/", "/a%2Fb/{value}": "/base/a%2Fb/v",
	} {
		p := decl(func(p *provider.Provider) { p.Endpoints[0].Path, p.Endpoints[0].Method = path, "POST" })
		a := serve(t, p, adapters.Options{BaseURL: "/base/"}, func(w http.ResponseWriter, r *http.Request) {
			assert.Equal(t, want, r.RequestURI)
			assert.Equal(t, "POST", r.Method)
			w.WriteHeader(204)
		})
		_, err := ask(t, a, "v")
		require.NoError(t, err)
	}
}

// Whatever the value, the server finds it whole in the segment and parameter
// that it was put into, or nothing is sent.
func TestAnyValueArrivesWhole(t *testing.T) {
	p := decl(func(p *provider.Provider) { p.Endpoints[0].Params = map[string]string{"q": "<{value}>"} })
	var got *http.Request
	a := serve(t, p, adapters.Options{}, func(w http.ResponseWriter, r *http.Request) {
		got = r
		w.WriteHeader(204)
	})
	rapid.Check(t, func(rt *rapid.T) {
		v := rapid.String().Draw(rt, "value")
		got = nil
		_, err := a.Lookup(t.Context(), provider.Query{Kind: provider.Text, Value: v})
		if v == "" || v == "." || v == ".." {
			if err == nil || got != nil {
				rt.Fatalf("%q was sent", v)
			}
			return
		}
		if err != nil {
			rt.Fatalf("%q: %v", v, err)
		}
		path, _, _ := strings.Cut(got.RequestURI, "?")
		if want := "/find/" + url.PathEscape(v); path != want || got.URL.Path != "/find/"+v || got.URL.Query().Get("q") != "<"+v+">" {
			rt.Fatalf("%q arrived as %s", v, got.RequestURI)
		}
	})
}
