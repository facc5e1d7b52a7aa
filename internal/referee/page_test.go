package referee

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

// paged is a provider with one endpoint, which has pages.
func paged(e provider.Endpoint) Play {
	e.Name = "list"
	return Play{Provider: provider.Provider{Slug: "p", Endpoints: []provider.Endpoint{e}}, Limits: []provider.Limit{perDay}, Speak: true}
}

func TestPagesLeadOnByACursorAndEnd(t *testing.T) {
	for _, c := range []struct {
		name   string
		next   provider.Source
		items  string
		bodies []string
	}{
		{"a member", provider.Source{JSON: "$.meta.next"}, "$.data[*]",
			[]string{`{"data":[{"item":"1"}],"meta":{"next":7000002}}`, `{"data":[{"item":"2"}],"meta":{"next":7000003}}`, `{"data":[]}`}},
		{"of the last item", provider.Source{JSON: "$[-1].id"}, "",
			[]string{`[{"item":"1","id":7000002}]`, `[{"item":"2","id":7000003}]`, `[]`}},
		{"in a URL", provider.Source{JSON: "$.next", Pattern: "[?&]after=([^&]+)"}, "$.list[*]",
			[]string{`{"list":[{"item":"1"}],"next":"?after=7000002"}`, `{"list":[{"item":"2"}],"next":"?after=7000003"}`, `{"list":[]}`}},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := paged(provider.Endpoint{Path: "/x", Params: map[string]string{"q": "{value}", "after": "{page}"}, Paging: &provider.Paging{Next: c.next, Items: c.items}})
			p.Limits[0].Max = 100
			served(t, p, func(t *testing.T, r *Referee, url string) {
				for n, want := range c.bodies {
					query := "?q=v"
					if n > 0 {
						query += "&after=" + cursor(n+1)
					}
					_, _, body := do(t, r, "GET", url+"/x"+query)
					assert.JSONEq(t, want, body)
				}
			})
		})
	}
}

func TestPagesInAHeader(t *testing.T) {
	p := paged(provider.Endpoint{Path: "/x", Params: map[string]string{"after": "{page}"}, Paging: &provider.Paging{Next: provider.Source{Header: "Link", Pattern: `<\?after=(\d+)>; rel="next"`}}})
	p.Limits[0].Max = 100
	served(t, p, func(t *testing.T, r *Referee, url string) {
		_, h, _ := do(t, r, "GET", url+"/x")
		assert.Equal(t, `<?after=7000002>; rel="next"`, h.Get("Link"))
		_, h, body := do(t, r, "GET", url+"/x?after=7000003")
		assert.Empty(t, h.Get("Link"))
		assert.Equal(t, `[]`, body)
	})
}

func TestPagesThatAreCounted(t *testing.T) {
	paging := &provider.Paging{Start: 100, Step: 50, Items: "$.data[*]"}
	for name, e := range map[string]provider.Endpoint{
		"in a parameter": {Path: "/x", Params: map[string]string{"from": "{page}"}, Paging: paging},
		"in the path":    {Path: "/x/{page}", Paging: paging},
		"in a form":      {Method: "POST", Path: "/x", Form: map[string]string{"from": "{page}"}, Paging: paging},
		"in JSON":        {Method: "POST", Path: "/x", JSON: `{"q":{"from":"{page|number}"}}`, Paging: paging},
	} {
		t.Run(name, func(t *testing.T) {
			p := paged(e)
			p.Limits[0].Max = 100
			served(t, p, func(t *testing.T, r *Referee, url string) {
				for n, want := range []string{`{"data":[{"item":"1"}]}`, `{"data":[{"item":"2"}]}`, `{"data":[]}`} {
					assert.JSONEq(t, want, askPage(t, r, url, e, fmt.Sprint(100+50*n)))
				}
			})
		})
	}
}

// askPage sends a request of e with page in its place.
func askPage(t *testing.T, r *Referee, url string, e provider.Endpoint, page string) string {
	t.Helper()
	method, kind, body := "GET", "", ""
	switch {
	case e.Form != nil:
		method, kind, body = "POST", "application/x-www-form-urlencoded", "from="+page
	case e.JSON != "":
		method, kind, body = "POST", "application/json", strings.ReplaceAll(e.JSON, `"{page|number}"`, page)
	}
	path := strings.ReplaceAll(e.Path, "{page}", page)
	if e.Params != nil {
		path += "?from=" + page
	}
	req, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
	require.NoError(t, err)
	req.Header.Set("Content-Type", kind)
	res, err := r.Client().Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return string(b)
}

func TestPagesThatCannotBeSaid(t *testing.T) {
	for text, paging := range map[string]provider.Paging{
		`endpoint "list": paging.items: $.data[0] would have to end in [*]`: {Items: "$.data[0]"},
		`paging.items: $.data[?@.a]: would have to be plain`:                {Items: "$.data[?@.a][*]"},
		`paging.next.json: $.a[1:]: would have to be plain`:                 {Next: provider.Source{JSON: "$.a[1:]"}},
		`paging.next.pattern: no RE2 pattern`:                               {Next: provider.Source{Header: "Link", Pattern: "("}},
		`next: pattern: "(x)" finds none of`:                                {Next: provider.Source{Header: "Link", Pattern: "(x)"}},
	} {
		_, err := New(1, paged(provider.Endpoint{Path: "/x", Params: map[string]string{"after": "{page}"}, Paging: &paging}))
		require.ErrorContains(t, err, text)
	}
}

// Endpoints of one path are told apart by what is sent beside it, and keys are
// found there, too.
func TestEndpointsOfOnePath(t *testing.T) {
	form := func(kind string) map[string]string {
		return map[string]string{"type": kind, "query": "{value}"}
	}
	p := provider.Provider{Slug: "p", Auth: provider.Auth{Kind: "form", Name: "secret"}, Endpoints: []provider.Endpoint{
		{Name: "email", Method: "POST", Path: "/s", Form: form("email")},
		{Name: "ip", Method: "POST", Path: "/s", Form: form("ip")},
		{Name: "hash", Method: "POST", Path: "/s", JSON: `{"query":"hash","term":["{value|lower}"]}`},
		{Name: "url", Method: "POST", Path: "/s", JSON: `{"query":"url","term":["{value}"]}`},
		{Name: "by domain", Path: "/q", Params: map[string]string{"q": `domain:"{value}"`}},
		{Name: "by ip", Path: "/q", Params: map[string]string{"q": `ip:"{value}"`}},
		{Name: "free", Path: "/r", Params: map[string]string{"q": "{value}"}},
		{Name: "by hash", Path: "/r", Params: map[string]string{"q": `hash:{value}`}},
	}}
	j, err := newJudge(Play{Provider: p}, time.Now)
	require.NoError(t, err)
	for _, c := range []struct{ method, url, kind, body, want, key string }{
		{"POST", "/s", "application/x-www-form-urlencoded", "type=ip&query=email&secret=k", "ip", "k"},
		{"POST", "/s", "application/x-www-form-urlencoded", "type=email&query=ip", "email", ""},
		{"POST", "/s", "application/json", `{"query":"url","term":["hash"]}`, "url", ""},
		{"POST", "/s", "application/json", `{"query":"hash","term":["url"]}`, "hash", ""},
		{"GET", "/q?q=ip%3A%22x%22", "", "", "by ip", ""},
		{"GET", "/q?q=domain%3A%22x%22", "", "", "by domain", ""},
		{"GET", "/r?q=hash%3Aab", "", "", "by hash", ""}, {"GET", "/r?q=ab", "", "", "free", ""},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, "http://referee/p"+c.url, strings.NewReader(c.body))
		require.NoError(t, err)
		req.Header.Set("Content-Type", c.kind)
		read, err := j.read(req, strings.TrimPrefix(req.URL.EscapedPath(), "/p"))
		require.NoError(t, err)
		assert.Equal(t, c.want, read.Endpoint, c.body+c.url)
		assert.Equal(t, c.key, read.Key)
	}
}

func TestAKeyInThePath(t *testing.T) {
	p := provider.Provider{Slug: "p", Auth: provider.Auth{Kind: "path", Name: "token"}, Endpoints: []provider.Endpoint{{Name: "x", Path: "/v1/{token}/{value}"}}}
	j, err := newJudge(Play{Provider: p}, time.Now)
	require.NoError(t, err)
	for path, want := range map[string]string{"/v1/abc/8.8.8.8": "abc", "/v1/a%2Fc/x": "a\x00c", "/other": ""} {
		req, err := http.NewRequestWithContext(t.Context(), "GET", "http://referee/p"+path, nil)
		require.NoError(t, err)
		read, err := j.read(req, path)
		require.NoError(t, err)
		assert.Equal(t, want, read.Key)
	}
}
