package adapters_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestDataIsTheArrayOfAPagesItems(t *testing.T) {
	for _, c := range []struct {
		items, text, want string
	}{
		{"", `[1, "a<b>", {"b": 1.50, "a": null}, 12345678901234567890]`, `[1,"a<b>",{"a":null,"b":1.50},12345678901234567890]`},
		{"", `{"b": 1, "a": 2}`, "[2,1]"},
		{"", "[]", "[]"},
		{"", "null", "[]"},
		{"$.data[*]", `{"data": [{"id": 1}], "next": "n"}`, `[{"id":1}]`},
		{"$.data", `{"data": [[1], [2]]}`, "[[1],[2]]"},
		{"$.data", `{"data": []}`, "[]"},
		{"$.data[*]", `{"total": 0}`, "[]"},
		{"$.data[*].name", "\ufeff" + `{"data": [{"name": "a"}, {}, {"name": "b"}]}` + "\n", `["a","b"]`},
	} {
		for _, change := range []func(*provider.Provider){counted(0, 0, c.items), told(provider.Source{JSON: "$.next"}, c.items)} {
			r, err := turn(t, stubbed(t, decl(change), &stub{status: 200, text: c.text}, nil), "")
			require.NoError(t, err)
			assert.Equal(t, c.want, string(r.Data), "%s of %s", c.items, c.text)
			assert.Equal(t, c.want == "[]", r.Empty, "%s of %s", c.items, c.text)
			assert.Equal(t, provider.OK, r.Feedback.Outcome)
		}
	}
}

func TestNoPageIsNotAnEmptyPage(t *testing.T) {
	for _, change := range []func(*provider.Provider){counted(0, 0, ""), told(provider.Source{JSON: "$.next"}, "$.data[*]")} {
		for _, page := range []string{"", "7"} {
			for _, c := range []struct {
				status int
				text   string
				want   provider.Outcome
			}{
				{200, "", provider.Unknown},
				{200, "<html>busy</html>", provider.Rejected},
				{200, `[1,`, provider.Rejected},
				{200, `"API count exceeded"`, provider.Rejected},
				{200, "0", provider.Rejected},
				{200, strings.Repeat("[", 300) + strings.Repeat("]", 300), provider.Rejected}, // nobody can look for items there
				{404, "<html>nginx</html>", provider.Rejected},
				{422, "[]", provider.Rejected},
				{429, "[]", provider.RateLimited},
				{503, "[]", provider.Overloaded},
			} {
				r, err := turn(t, stubbed(t, decl(func(p *provider.Provider) { noData(p); change(p) }), &stub{status: c.status, text: c.text}, nil), page)
				assert.Equal(t, c.want, feedback(t, err).Outcome, "%d %.20q", c.status, c.text)
				assert.Equal(t, provider.Result{}, r)
			}
		}
	}
}

func TestOnlyTheFirstPageCanBeSuspiciouslyEmpty(t *testing.T) {
	next := provider.Source{Header: "X-Next"}
	for name, c := range map[string]struct {
		change func(*provider.Provider)
		page   string
		want   bool
	}{
		"first":                   {told(next, ""), "", true},
		"later":                   {told(next, ""), "7", false},
		"first counted":           {counted(1, 0, ""), "", true},
		"first counted, by name":  {counted(1, 0, ""), "1", true},
		"later counted":           {counted(1, 0, ""), "2", false},
		"where nothing is paged":  {nil, "", true},
		"before where it started": {counted(1, 0, ""), "0", false},
	} {
		for _, answer := range []stub{{status: 200, text: "[]"}, {status: 204}, {status: 404, text: "{}"}} {
			p := decl(noData)
			if c.change != nil {
				c.change(&p)
			}
			p.Endpoints[0].EmptyIsSuspicious = true
			answer.header = http.Header{"X-Next": {"8"}}
			r, err := turn(t, stubbed(t, p, &answer, nil), c.page)
			require.NoError(t, err)
			assert.True(t, r.Empty)
			assert.Equal(t, c.want, r.Suspicious, "%s: %d", name, answer.status)
			if c.change == nil {
				continue
			}
			assert.Equal(t, "[]", string(r.Data), "%s: %d: of a page always an array", name, answer.status)
			if answer.status != 200 || strings.Contains(name, "counted") {
				assert.Empty(t, r.Next, "%s: %d: no data is the end", name, answer.status)
			}
		}
		p := decl(nil)
		if c.change != nil {
			c.change(&p)
		}
		p.Endpoints[0].EmptyIsSuspicious = true
		r, err := turn(t, stubbed(t, p, &stub{status: 200, text: "[1]"}, nil), c.page)
		require.NoError(t, err)
		assert.False(t, r.Empty || r.Suspicious, name)
	}
}

// Whoever follows Next from the first page on gets each item once, and an end.
func TestFollowingNextReadsAllOnce(t *testing.T) {
	const items, size = 23, 5
	cursors := map[string]int{"": 0, "c/5": 5, "c=10": 10, "c 15": 15, "c+20&": 20}
	byStart := map[int]string{}
	for c, start := range cursors {
		byStart[start] = c
	}
	for name, change := range map[string]func(*provider.Provider){
		"offsets": counted(0, size, "$.items[*]"),
		"cursors": told(provider.Source{JSON: "$.next"}, "$.items[*]"),
		"links": func(p *provider.Provider) {
			told(provider.Source{Header: "Link", Pattern: `[?&]cursor=([^&>]+)`}, "$.items")(p)
			p.Endpoints[0].Params["cursor"] = "{page|unescape}" // it was cut out of a URL
		},
	} {
		a := serve(t, decl(change), adapters.Options{}, func(w http.ResponseWriter, r *http.Request) {
			start, known := cursors[r.URL.Query().Get("cursor")]
			if offset := r.URL.Query().Get("offset"); offset != "" {
				start, _ = strconv.Atoi(offset)
			}
			if !known {
				t.Errorf("%s: asked for %s", name, r.RequestURI)
			}
			page := map[string]any{"items": []int{}}
			for i := start; i < min(start+size, items); i++ {
				page["items"] = append(page["items"].([]int), i)
			}
			if next, more := byStart[start+size]; more {
				page["next"] = next
				q := r.URL.Query()
				q.Set("cursor", next)
				w.Header().Set("Link", "<"+r.URL.Path+"?n=1&"+q.Encode()+`>; rel="next"`)
			}
			_ = json.NewEncoder(w).Encode(page)
		})
		var all []int
		pages := 0
		for page := ""; pages == 0 || page != ""; pages++ {
			require.Less(t, pages, 10, name)
			r, err := turn(t, a, page)
			require.NoError(t, err, name)
			var some []int
			require.NoError(t, json.Unmarshal(r.Data, &some))
			all, page = append(all, some...), r.Next
		}
		require.Len(t, all, items, name)
		for i, n := range all {
			assert.Equal(t, i, n, name)
		}
	}
}
