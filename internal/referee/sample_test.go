package referee

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestSamplesMatch(t *testing.T) {
	for text, want := range map[string]string{
		"secondary rate limit":                        "secondary rate limit",
		"(?i)^API count exceeded":                     "api count exceeded",
		"^(GLOBAL|MS)_MAX_CONCURRENT_REQ(_TIME)?$":    "GLOBAL_MAX_CONCURRENT_REQ",
		"exceeded your request quota of \\d+ per day": "exceeded your request quota of 1 per day",
		"^[0-9]+$":              "1",
		"^10[12]$":              "101",
		".":                     "a",
		"[^a-zA-Z0-9 ]":         "-",
		"^x{3,5}$":              "xxx",
		"(?s)^<html.*</html>$":  "<html</html>",
		"\\bquota\\b":           "quota",
		"^!.*(limit|exceed)":    "!limit",
		"a?b*c":                 "c",
		"[\\x{4e00}-\\x{4e02}]": "\u4e00",
	} {
		p, err := newPattern(text)
		require.NoError(t, err, text)
		all := p.samples()
		require.NotEmpty(t, all, text)
		assert.Equal(t, want, all[0], text)
		for _, s := range all {
			assert.Regexp(t, text, s)
		}
	}
	for _, text := range []string{"[^\\x00-\\x{10FFFF}]", "^$", "^ +$", "a\\Bb c\\b\\B"} {
		p, err := newPattern(text)
		require.NoError(t, err)
		assert.Empty(t, p.samples(), text)
	}
}

func TestAllAlternativesAreTried(t *testing.T) {
	p, err := newPattern("^(day|week|month)( quota)?$")
	require.NoError(t, err)
	assert.ElementsMatch(t, []string{"day", "week", "month", "day quota", "week quota", "month quota"}, p.samples())
}

func TestTextsAroundAValue(t *testing.T) {
	for _, c := range []struct{ pattern, value, want string }{
		{`available in (\d+(?:\.\d+)?) second`, "60", "available in 60 second"},
		{`[?&]after=([^&]+)`, "abc", "?after=abc"},
		{`^(\d+)\d{6}$`, "59500", "59500111111"},
		{`w=(\d+)`, "10", "w=10"},
		{`(\d{1,3})`, "1000", ""},
		{`^(\d+)s$`, "1m0s", ""},
		{`(a)+`, "x", ""},
	} {
		p, err := newPattern(c.pattern)
		require.NoError(t, err)
		all := p.around(c.value)
		if c.want == "" {
			assert.Empty(t, all, c.pattern)
			continue
		}
		require.NotEmpty(t, all, c.pattern)
		assert.Equal(t, c.want, all[0])
		for _, s := range all {
			assert.Equal(t, c.value, regexp.MustCompile(c.pattern).FindStringSubmatch(s)[1])
		}
	}
}

func TestPlainPaths(t *testing.T) {
	for _, path := range []string{"$", "$.a", "$.a.b-c_d", "$['a b']", `$["api-error"].x`, "$.a[0]", "$.a[3].b", "$[-1].id", "$.a[*].b", "$..code", "$['a', 'b'].c"} {
		m, err := plainPath(path)
		require.NoError(t, err, path)
		doc, err := m.put(nil, json.Number("7"))
		require.NoError(t, err, path)
		text, err := written(doc)
		require.NoError(t, err)
		read, err := parse([]byte(text))
		require.NoError(t, err)
		assert.Equal(t, []any{json.Number("7")}, m.get(read), "%s: %s", path, text)
		again, err := m.put(doc, json.Number("7"))
		require.NoError(t, err, "the same once more")
		assert.Equal(t, doc, again)
		_, err = m.put(doc, "other")
		require.Error(t, err, path)
	}
	for _, path := range []string{"", "a", "$a", "$.", "$.a[?@.b]", "$.a[1:2]", "$.a[0,1]", "$.*", "$.a[-2]", "$.a[1000]", "$['a',1]"} {
		_, err := plainPath(path)
		assert.Error(t, err, path)
	}
}

func TestOneOfSeveralNames(t *testing.T) {
	m, err := plainPath("$['a','b']")
	require.NoError(t, err)
	assert.Equal(t, []any{"x", "y"}, m.get(map[string]any{"b": "y", "a": "x", "c": "z"}))
}

// A document that something is put into is another one.
func TestPutChangesNothing(t *testing.T) {
	before := `{"a":{"b":1},"l":[{"x":1},2]}`
	doc, err := parse([]byte(before))
	require.NoError(t, err)
	for _, path := range []string{"$.a.c", "$.l[0].y", "$.l[4]", "$.n", "$.l[*].z", "$.l[-1]"} {
		m, err := plainPath(path)
		require.NoError(t, err)
		_, _ = m.put(doc, "v") // some have no room
		after, err := written(doc)
		require.NoError(t, err)
		assert.Equal(t, before, after, path)
	}
}

// Whatever stands at random paths of one document is found again.
func TestManyMembersOfOneDocument(t *testing.T) {
	rng := rand.New(rand.NewPCG(7, 0))
	names := []string{".a", ".b", "['c d']", "[0]", "[1]", "..e"}
	for range 2000 {
		var doc any
		put := map[string]string{}
		for n := range 4 {
			path := "$"
			for range 1 + rng.IntN(3) {
				path += names[rng.IntN(len(names))]
			}
			m, err := plainPath(path)
			require.NoError(t, err)
			value := string(rune('p' + n))
			next, err := m.put(doc, value)
			if err != nil {
				continue // no room beside what is there
			}
			doc, put[path] = next, value
		}
		for path, value := range put {
			m, err := plainPath(path)
			require.NoError(t, err)
			assert.Contains(t, m.get(doc), value, "%s of %v", path, doc)
		}
	}
}
