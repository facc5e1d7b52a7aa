package adapters_test

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

func TestAJSONBodyIsFilledInItsStrings(t *testing.T) {
	for template, want := range map[string]string{
		`{"q": "{value}"}`: `{"q":"a<b>&\"c"}`,
		`{"q": ["x", "<{value}>", {"v": "{value|upper}"}]}`:                        `{"q":["x","<a<b>&\"c>",{"v":"A<B>&\"C"}]}`,
		`{"n": 1.50, "big": 12345678901234567890, "e": 1E3, "t": true, "z": null}`: `{"big":12345678901234567890,"e":1E3,"n":1.50,"t":true,"z":null}`,
		`{"size": "{size|number}", "neg": "{neg|number}"}`:                         `{"neg":-2.5e-3,"size":10}`,
		`{"size": "{size}"}`:     `{"size":"10"}`,
		`["{value|lower|sha1}"]`: `["1bcfcaf06f580936949562244d3e5331c7413ef5"]`,
		`"{value}"`:              `"a<b>&\"c"`,
		`{"query": "query($v: String!) { host(ip: $v) }"}`: `{"query":"query($v: String!) { host(ip: $v) }"}`,
		`{}`: `{}`,
	} {
		s := &stub{}
		a := stubbed(t, posts(func(e *provider.Endpoint) { e.JSON = template }), s, nil)
		params := map[string]string{}
		for name, v := range map[string]string{"size": "10", "neg": "-2.5e-3"} {
			if strings.Contains(template, "{"+name) {
				params[name] = v
			}
		}
		_, err := a.Lookup(t.Context(), provider.Query{Kind: provider.Text, Value: `a<b>&"c`, Params: params})
		require.NoError(t, err, template)
		assert.Equal(t, want, s.body, template)
		assert.Equal(t, int64(len(want)), s.got.ContentLength)
		assert.Equal(t, "application/json", s.got.Header.Get("Content-Type"))
	}
}

func TestWhatCannotStandInABodyIsNotSent(t *testing.T) {
	for name, c := range map[string]struct {
		json, value string
		params      map[string]string
		want        string
	}{
		"no number":       {`{"page": {"n": "{n|number}"}}`, "v", map[string]string{"n": "1O"}, "json: page: n: {n|number}: is no JSON number"},
		"leading zero":    {`["{n|number}"]`, "v", map[string]string{"n": "01"}, "is no JSON number"},
		"plus":            {`["{n|number}"]`, "v", map[string]string{"n": "+1"}, "is no JSON number"},
		"open point":      {`["{n|number}"]`, "v", map[string]string{"n": "1."}, "is no JSON number"},
		"infinite":        {`["{n|number}"]`, "v", map[string]string{"n": "Infinity"}, "is no JSON number"},
		"number and more": {`["{n|number}"]`, "v", map[string]string{"n": "1, 2"}, "is no JSON number"},
		"not in UTF-8":    {`{"q": "{value}"}`, "a\xff", nil, "json: q: a value is not in UTF-8"},
		"empty":           {`{"q": "{value}"}`, "", nil, "json: q: {value} is empty"},
		"one is empty":    {`{"q": "{value}{more}"}`, "", map[string]string{"more": "x"}, "json: q: {value} is empty"},
		"nothing fills":   {`{"q": "{more}"}`, "v", nil, "json: q: nothing fills {more}: give it in the query's params"},
		"unused param":    {`{"q": "{value}"}`, "v", map[string]string{"q": "x"}, `"q" is neither a placeholder nor a declared parameter or form field`},
	} {
		s := &stub{}
		a := stubbed(t, posts(func(e *provider.Endpoint) { e.JSON = c.json }), s, nil)
		_, err := a.Lookup(t.Context(), provider.Query{Endpoint: "find", Kind: provider.Text, Value: c.value, Params: c.params})
		require.ErrorContains(t, err, c.want, name)
		assert.Equal(t, provider.Canceled, feedback(t, err).Outcome, name)
		assert.Zero(t, s.asked, name)
	}
}

// Whatever the value, whoever reads the body as JSON finds it whole in the strings
// that it was put into and everything else as declared, or nothing is sent.
func TestAnyValueRoundTripsInAJSONBody(t *testing.T) {
	s := &stub{}
	a := stubbed(t, posts(func(e *provider.Endpoint) {
		e.JSON = `{"q": "{value}", "in": [{"a": "<{value}{more}>"}, 1.0], "twice": "{value} {value}", "hash": "{value|base64}"}`
	}), s, nil)
	texts := rapid.OneOf(rapid.String(), rapid.SampledFrom(awkward), rapid.StringMatching(`[\\"{}|\x00-\x20<>&]{1,9}`),
		rapid.Map(rapid.SliceOf(rapid.Byte()), func(b []byte) string { return string(b) }))
	rapid.Check(t, func(rt *rapid.T) {
		v, more := texts.Draw(rt, "value"), texts.Draw(rt, "more")
		s.asked = 0
		_, err := a.Lookup(t.Context(), provider.Query{Kind: provider.Text, Value: v, Params: map[string]string{"more": more}})
		if v == "" || more == "" || !utf8.ValidString(v) || !utf8.ValidString(more) {
			if err == nil || s.asked > 0 {
				rt.Fatalf("%q and %q were sent: %s", v, more, s.body)
			}
			return
		}
		if err != nil {
			rt.Fatalf("%q and %q: %v", v, more, err)
		}
		var got struct {
			Q, Twice string
			In       []any
			Hash     []byte
		}
		if err := json.Unmarshal([]byte(s.body), &got); err != nil {
			rt.Fatalf("%q became %s: %v", v, s.body, err)
		}
		if got.Q != v || got.Twice != v+" "+v || got.In[0].(map[string]any)["a"] != "<"+v+more+">" || string(got.Hash) != v || len(got.In) != 2 {
			rt.Fatalf("%q and %q became %s", v, more, s.body)
		}
	})
}

func TestAnyValueRoundTripsInAForm(t *testing.T) {
	s := &stub{}
	a := stubbed(t, posts(func(e *provider.Endpoint) { e.Form = map[string]string{"q": "<{value}>", "fixed": "a b"} }), s, nil)
	rapid.Check(t, func(rt *rapid.T) {
		v := rapid.OneOf(rapid.StringN(1, -1, -1), rapid.SampledFrom(awkward)).Draw(rt, "value")
		if _, err := a.Lookup(t.Context(), provider.Query{Kind: provider.Text, Value: v}); err != nil {
			rt.Fatalf("%q: %v", v, err)
		}
		got, err := url.ParseQuery(s.body)
		if err != nil || len(got) != 2 || got.Get("q") != "<"+v+">" || got.Get("fixed") != "a b" {
			rt.Fatalf("%q became %s: %v", v, s.body, err)
		}
	})
}

func TestAFormIsABodyOfItsOwn(t *testing.T) {
	p := posts(func(e *provider.Endpoint) {
		e.Form = map[string]string{"domain": "{value|lower}", "limit": "10", "since": "{since}"}
		e.Params = map[string]string{"format": "json"}
	})
	s := &stub{}
	a := stubbed(t, p, s, nil)
	look := func(params map[string]string) error {
		_, err := a.Lookup(t.Context(), provider.Query{Endpoint: "find", Kind: provider.Text, Value: "A&B", Params: params})
		return err
	}
	require.NoError(t, look(map[string]string{"since": "1"}))
	assert.Equal(t, "POST /find?format=json", s.line())
	assert.Equal(t, "domain=a%26b&limit=10&since=1", s.body)
	assert.Equal(t, "application/x-www-form-urlencoded", s.got.Header.Get("Content-Type"))
	require.NoError(t, look(map[string]string{"since": "1", "limit": "{value}", "format": "xml"}), "the query's params replace fields, too")
	assert.Equal(t, "POST /find?format=xml", s.line())
	assert.Equal(t, "domain=a%26b&limit=%7Bvalue%7D&since=1", s.body)
	require.ErrorContains(t, look(nil), "form: since: nothing fills {since}")
	require.ErrorContains(t, look(map[string]string{"since": "1", "limi": "1"}), `"limi" is neither`)
}

// A param that fills nothing is a mistake, even where the text that names it has
// been replaced by another one.
func TestAParamOfAReplacedTextIsUnused(t *testing.T) {
	a := stubbed(t, decl(func(p *provider.Provider) { p.Endpoints[0].Params = map[string]string{"since": "{day}T00:00"} }), &stub{}, nil)
	_, err := a.Lookup(t.Context(), provider.Query{Kind: provider.Text, Value: "v", Params: map[string]string{"since": "x", "day": "y"}})
	require.ErrorContains(t, err, `"day" is neither`)
}

func TestDeclaredHeadersAreFilledAndReplaceOurs(t *testing.T) {
	s := &stub{}
	a := stubbed(t, posts(func(e *provider.Endpoint) {
		e.JSON = `{"q": "{value}"}`
		e.Headers = map[string]string{"accept": "application/vnd.acme+json", "User-Agent": "acme-tool/1", "Content-Type": "application/vnd.acme+json", "X-Query": "<{value|md5}>"}
	}), s, nil)
	_, err := ask(t, a, "v")
	require.NoError(t, err)
	assert.Equal(t, http.Header{
		"Accept": {"application/vnd.acme+json"}, "User-Agent": {"acme-tool/1"}, "Content-Type": {"application/vnd.acme+json"},
		"X-Query": {"<9e3669d19b675bd57058fd4664205d2a>"},
	}, s.got.Header)

	a = stubbed(t, decl(func(p *provider.Provider) { p.Endpoints[0].Headers = map[string]string{"X-Query": "{value}"} }), s, nil)
	s.asked = 0
	_, err = a.Lookup(t.Context(), provider.Query{Kind: provider.Text, Value: "v", Params: map[string]string{"X-Query": "w"}})
	require.ErrorContains(t, err, `"X-Query" is neither`, "a header is not for the query's params to replace")
	_, err = ask(t, a, "a\r\nX-Evil: 1")
	require.ErrorContains(t, err, "headers: X-Query: a value holds a control character")
	assert.Zero(t, s.asked)
	_, err = ask(t, a, "")
	require.Error(t, err)

	_, err = ask(t, stubbed(t, decl(nil), s, nil), "v")
	require.NoError(t, err)
	assert.Equal(t, http.Header{"Accept": {"application/json, */*;q=0.5"}, "User-Agent": {"headgate (+https://github.com/headgate/headgate)"}}, s.got.Header)
	assert.Nil(t, s.got.Body, "a GET has no body")
}
