package dialect_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestValueIsTheTextOfASource(t *testing.T) {
	h := http.Header{
		"X-Next": {"a, b", "c"}, "X-Blank": {" "},
		"Link": {`<https://x.example/?p=1>; rel="prev", <https://x.example/?p=3>; rel="next"`, `<https://x.example/?p=9>; rel="last"`},
	}
	const body = "\ufeff" + ` {"s": " a, b ", "n": 12345678901234567890, "t": true, "f": false, "z": null, "e": "", "a": [], "o": {"x": 1},
		"list": ["u", "v"], "url": "/items?after=abc%3D", "m": {"b": "2", "a": "1"}, "zero": 0, "gaps": [null, "w"]}`
	for name, c := range map[string]struct {
		s    provider.Source
		want string
	}{
		"header with a comma":     {provider.Source{Header: "X-Next"}, "a, b"},
		"header in another case":  {provider.Source{Header: "x-next"}, "a, b"},
		"header's list":           {provider.Source{Header: "X-Next", Index: 2}, "c"},
		"beyond the list":         {provider.Source{Header: "X-Next", Index: 3}, ""},
		"blank header":            {provider.Source{Header: "X-Blank"}, ""},
		"no such header":          {provider.Source{Header: "X-None"}, ""},
		"link":                    {provider.Source{Header: "Link", Pattern: `[?&]p=([^>&]*)>; rel="next"`}, "3"},
		"link of a later line":    {provider.Source{Header: "Link", Pattern: `[?&]p=([^>&]*)>; rel="last"`}, "9"},
		"second match":            {provider.Source{Header: "Link", Pattern: `[?&]p=([^>&]*)>`, Index: 1}, "3"},
		"no match":                {provider.Source{Header: "Link", Pattern: `rel="(up)"`}, ""},
		"string":                  {provider.Source{JSON: "$.s"}, "a, b"},
		"number as written":       {provider.Source{JSON: "$.n"}, "12345678901234567890"},
		"zero":                    {provider.Source{JSON: "$.zero"}, "0"},
		"true":                    {provider.Source{JSON: "$.t"}, "true"},
		"false":                   {provider.Source{JSON: "$.f"}, ""},
		"null":                    {provider.Source{JSON: "$.z"}, ""},
		"empty":                   {provider.Source{JSON: "$.e"}, ""},
		"array":                   {provider.Source{JSON: "$.a"}, ""},
		"object":                  {provider.Source{JSON: "$.o"}, ""},
		"absent":                  {provider.Source{JSON: "$.none"}, ""},
		"null under a pattern":    {provider.Source{JSON: "$.z", Pattern: "(.*)"}, ""},
		"first of several":        {provider.Source{JSON: "$.list[*]"}, "u"},
		"picked":                  {provider.Source{JSON: "$.list[*]", Index: 1}, "v"},
		"the first is null":       {provider.Source{JSON: "$.gaps[*]"}, ""},
		"members in order":        {provider.Source{JSON: "$.m.*"}, "1"},
		"cut out of a URL":        {provider.Source{JSON: "$.url", Pattern: "after=([^&]+)"}, "abc%3D"},
		"body":                    {provider.Source{Body: true, Pattern: `"n": (\d+)`}, "12345678901234567890"},
		"no place":                {provider.Source{}, ""},
		"a path that is none":     {provider.Source{JSON: "$["}, ""},
		"a pattern that is none":  {provider.Source{JSON: "$.s", Pattern: "("}, ""},
		"a pattern without value": {provider.Source{JSON: "$.s", Pattern: "a"}, ""},
	} {
		got, ok := dialect.Value(c.s, h, []byte(body))
		assert.Equal(t, c.want, got, name)
		assert.Equal(t, c.want != "", ok, name)
	}
	for _, none := range []string{"", " ", "{", "text", `{"s":1} {}`} {
		_, ok := dialect.Value(provider.Source{JSON: "$.s"}, nil, []byte(none))
		assert.False(t, ok, "%q is no document", none)
	}
}

func TestItemsAreWhatThePathSelects(t *testing.T) {
	for _, c := range []struct{ path, body, want string }{
		{"$[*]", "[1, {\"a\": 1.50}, [2], null]", `[1,{"a":1.50},[2],null]`},
		{"$[*]", `{"b": 2, "a": 1, "c": 3, "d": 4}`, "[1,2,3,4]"},
		{"$[*]", "[0,1,2,3,4,5,6,7,8,9,10,11]", "[0,1,2,3,4,5,6,7,8,9,10,11]"},
		{"$.data[*]", `{"data": []}`, "[]"},
		{"$.data[*]", `{"error": 1}`, "[]"},
		{"$.data[*]", `{"data": {"b": 2, "a": 1}}`, "[1,2]"},
		{"$.data", `{"data": [1, 2]}`, "[1,2]"}, // one array: its elements
		{"$.data", `{"data": []}`, "[]"},
		{"$.data", `{"data": null}`, "[]"},
		{"$.data", `{"data": {"a": 1}}`, `[{"a":1}]`},
		{"$.data", "{}", "[]"},
		{"$.data[*]", `{"data": [[1], [2]]}`, "[[1],[2]]"},
		{"$.data[*]", `{"data": [[1]]}`, "[[1]]"}, // one item that is an array stays one
		{"$", "[1]", "[1]"},
		{"$[*]", "null", "[]"},
		{"$[*]", `"text"`, "[]"},
		{"$[*]", "\ufeff [1]\n", "[1]"},
	} {
		items, ok := dialect.Items(c.path, []byte(c.body))
		require.True(t, ok, "%s of %s", c.path, c.body)
		got, err := json.Marshal(append([]any{}, items...))
		require.NoError(t, err)
		assert.Equal(t, c.want, string(got), "%s of %s", c.path, c.body)
	}
	for _, none := range []string{"", "\n", "[1,", "<html>", "[1] [2]", strings.Repeat("[", 201) + strings.Repeat("]", 201)} {
		items, ok := dialect.Items("$[*]", []byte(none))
		assert.False(t, ok, "%.20q is no document", none)
		assert.Empty(t, items)
	}
	items, ok := dialect.Items("$[", []byte("[1]"))
	assert.True(t, ok)
	assert.Empty(t, items, "a path that is none selects nothing")
	_, ok = dialect.Items("$[*]", []byte(`[`+strings.Repeat(" ", dialect.MaxUsedBody)+`1]`))
	assert.True(t, ok, "the whole body is looked at")
}
