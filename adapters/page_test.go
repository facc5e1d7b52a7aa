package adapters_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// told declares pages that the answers tell, counted pages that are numbers.
func told(next provider.Source, items string) func(*provider.Provider) {
	return func(p *provider.Provider) {
		p.Endpoints[0].Params = map[string]string{"cursor": "{page}"}
		p.Endpoints[0].Paging = &provider.Paging{Next: next, Items: items}
	}
}

func counted(start, step int64, items string) func(*provider.Provider) {
	return func(p *provider.Provider) {
		p.Endpoints[0].Params = map[string]string{"offset": "{page}"}
		p.Endpoints[0].Paging = &provider.Paging{Start: start, Step: step, Items: items}
	}
}

// turn asks for one page.
func turn(t *testing.T, a *adapters.HTTP, page string) (provider.Result, error) {
	t.Helper()
	return a.Lookup(t.Context(), provider.Query{Kind: provider.Text, Value: "x", Page: page})
}

func TestAnAnswerTellsTheNextPage(t *testing.T) {
	inJSON := provider.Source{JSON: "$.next"}
	for name, c := range map[string]struct {
		next   provider.Source
		text   string
		header http.Header
		want   string
	}{
		"string":         {next: inJSON, text: `{"data":[1],"next":"a b&c"}`, want: "a b&c"},
		"number":         {next: inJSON, text: `{"data":[1],"next":12345678901234567890}`, want: "12345678901234567890"},
		"zero":           {next: inJSON, text: `{"data":[1],"next":0}`, want: "0"},
		"empty":          {next: inJSON, text: `{"data":[1],"next":""}`},
		"null":           {next: inJSON, text: `{"data":[1],"next":null}`},
		"false":          {next: inJSON, text: `{"data":[1],"next":false}`},
		"absent":         {next: inJSON, text: `{"data":[1]}`},
		"header":         {next: provider.Source{Header: "X-Next"}, text: "{}", header: http.Header{"X-Next": {"a,b"}}, want: "a,b"},
		"no header":      {next: provider.Source{Header: "X-Next"}, text: "{}"},
		"link":           {next: provider.Source{Header: "Link", Pattern: `[?&]page=([^>&]+)[^>]*>; *rel="next"`}, text: "{}", header: http.Header{"Link": {`</i?page=1>; rel="prev", </i?page=3&n=9>; rel="next"`}}, want: "3"},
		"last link":      {next: provider.Source{Header: "Link", Pattern: `[?&]page=([^>&]+)[^>]*>; *rel="next"`}, text: "{}", header: http.Header{"Link": {`</i?page=1>; rel="prev"`}}},
		"in a URL":       {next: provider.Source{JSON: "$.next", Pattern: "after=([^&]+)"}, text: `{"next":"https://x.example/i?n=1&after=abc"}`, want: "abc"},
		"of a list":      {next: provider.Source{JSON: "$.links[*]", Index: 1}, text: `{"links":["a","b"]}`, want: "b"},
		"of the body":    {next: provider.Source{Body: true, Pattern: `"next": *"(\w+)"`}, text: `{"data":[1],"next": "q"}`, want: "q"},
		"of a long body": {next: inJSON, text: `{"data":["` + strings.Repeat("x", 2<<20) + `"],"next":"n"}`, want: "n"},
		"of no items":    {next: inJSON, text: `{"data":[],"next":"n"}`, want: "n"},
	} {
		a := stubbed(t, decl(told(c.next, "$.data[*]")), &stub{status: 200, text: c.text, header: c.header}, nil)
		r, err := turn(t, a, "")
		require.NoError(t, err, name)
		assert.Equal(t, c.want, r.Next, name)
		if c.want == "" {
			continue
		}
		r, err = turn(t, a, c.want)
		require.NoError(t, err, name)
		assert.Empty(t, r.Next, "%s: a page that names itself is the last", name)
	}
}

func TestTheFirstPageLeavesOutWhatNamesIt(t *testing.T) {
	paging := &provider.Paging{Next: provider.Source{JSON: "$.next"}}
	s := &stub{}
	a := stubbed(t, decl(func(p *provider.Provider) {
		p.Endpoints[0].Params = map[string]string{"q": "{value}", "cursor": "{page}", "also": "{day}-{page}"}
		p.Endpoints[0].Headers = map[string]string{"X-Page": "{page|base64}", "X-Value": "{value}"}
		p.Endpoints[0].Paging = paging
	}), s, nil)
	for page, want := range map[string][3]string{
		"":    {"GET /find/x?q=x", "", "x"},
		"a&b": {"GET /find/x?also=1-a%26b&cursor=a%26b&q=x", "YSZi", "x"},
	} {
		_, err := a.Lookup(t.Context(), provider.Query{Kind: provider.Text, Value: "x", Page: page, Params: map[string]string{"day": "1"}})
		require.NoError(t, err)
		assert.Equal(t, want, [3]string{s.line(), s.got.Header.Get("X-Page"), s.got.Header.Get("X-Value")})
	}

	a = stubbed(t, posts(func(e *provider.Endpoint) {
		e.Form, e.Paging = map[string]string{"q": "{value}", "cursor": "{page}"}, paging
	}), s, nil)
	for page, want := range map[string]string{"": "q=x", "a&b": "cursor=a%26b&q=x"} {
		_, err := turn(t, a, page)
		require.NoError(t, err)
		assert.Equal(t, want, s.body)
	}

	for template, want := range map[string][2]string{
		`{"q": "{value}", "cursor": "{page}"}`:                       {`{"q":"x"}`, `{"cursor":"7","q":"x"}`},
		`{"q": {"v": "{value}", "p": "{page|number}"}}`:              {`{"q":{"v":"x"}}`, `{"q":{"p":7,"v":"x"}}`},
		`{"q": "{value}", "search_after": [["a", "{page|number}"]]}`: {`{"q":"x"}`, `{"q":"x","search_after":[["a",7]]}`},
		`{"q": [{"page": "{page}"}, "{value}"]}`:                     {`{"q":[{},"x"]}`, `{"q":[{"page":"7"},"x"]}`},
	} {
		a := stubbed(t, posts(func(e *provider.Endpoint) { e.JSON, e.Paging = template, paging }), s, nil)
		for i, page := range []string{"", "7"} {
			_, err := turn(t, a, page)
			require.NoError(t, err, template)
			assert.Equal(t, want[i], s.body, template)
		}
	}
}

func TestPagesAreCounted(t *testing.T) {
	for _, c := range []struct {
		start, step int64
		page, sent  string
		text, next  string
	}{
		{0, 0, "", "0", "[1]", "1"},
		{0, 0, "0", "0", "[1]", "1"},
		{1, 0, "", "1", "[1]", "2"},
		{1, 0, "2", "2", "[1]", "3"},
		{0, 100, "", "0", "[1]", "100"},
		{0, 100, "100", "100", "[1]", "200"},
		{5, 100, "", "5", "[1]", "105"},
		{0, 0, "", "0", "[]", ""},
		{0, 0, "9", "9", "[]", ""},
		{0, 0, "9", "9", "null", ""},
		{0, 0, "9223372036854775807", "9223372036854775807", "[1]", ""}, // no number comes after it
	} {
		s := &stub{status: 200, text: c.text}
		r, err := turn(t, stubbed(t, decl(counted(c.start, c.step, "")), s, nil), c.page)
		require.NoError(t, err)
		assert.Equal(t, "GET /find/x?offset="+c.sent, s.line())
		assert.Equal(t, c.next, r.Next, "%+v", c)
	}
	s := &stub{}
	a := stubbed(t, decl(func(p *provider.Provider) {
		p.Endpoints[0].Path = "/{value}/{page}"
		p.Endpoints[0].Method, p.Endpoints[0].JSON = "POST", `{"page": "{page|number}"}`
		p.Endpoints[0].Paging = &provider.Paging{Start: 1}
	}), s, nil)
	_, err := turn(t, a, "")
	require.NoError(t, err)
	assert.Equal(t, "POST /x/1", s.line())
	assert.Equal(t, `{"page":1}`, s.body, "the first page is counted, too")
}

func TestAPageThatCannotBeAskedForIsNotSent(t *testing.T) {
	s := &stub{}
	for _, page := range []string{"x", "-1", "+1", "01", "1.0", " 1", "9223372036854775808", "0x1"} {
		_, err := turn(t, stubbed(t, decl(counted(1, 0, "")), s, nil), page)
		require.ErrorContains(t, err, `endpoint "find" counts its pages: the query's page is no number such as 1`, page)
		assert.Equal(t, provider.Canceled, feedback(t, err).Outcome)
	}
	_, err := turn(t, stubbed(t, decl(nil), s, nil), "1")
	require.ErrorContains(t, err, `endpoint "find" has no pages: leave the query's page out`)
	assert.Equal(t, provider.Canceled, feedback(t, err).Outcome)

	for _, p := range []provider.Provider{decl(counted(0, 0, "")), decl(told(provider.Source{JSON: "$.next"}, ""))} {
		for name := range p.Endpoints[0].Params { // with it every page would be the same one
			_, err = stubbed(t, p, s, nil).Lookup(t.Context(), provider.Query{Kind: provider.Text, Value: "x", Params: map[string]string{name: "3"}})
			require.ErrorContains(t, err, "params: "+name+": is the page: want it in the query's page")
		}
	}
	assert.Zero(t, s.asked)
}
