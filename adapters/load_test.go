package adapters_test

import (
	"io/fs"
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// folder holds files, each a text below its name.
func folder(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

// declared is the text of a good declaration.
func declared(slug string) string {
	return "slug: " + slug + "\nbase_url: https://" + slug + ".example\nendpoints:\n  - {name: find, kinds: [ip]}\n"
}

func TestLoadReadsAFolderSortedBySlug(t *testing.T) {
	all, err := adapters.Load(folder(map[string]string{
		"a.yaml": declared("a"), "a-b.yaml": "\ufeff" + strings.ReplaceAll(declared("a-b"), "\n", "\r\n"), "z.yaml": declared("z"),
		"README.md": "# a", "more/b.yaml": "rsp: 1", "old.yaml/b.yaml": "rsp: 1",
	}))
	require.NoError(t, err)
	var slugs []string
	for _, p := range all {
		slugs = append(slugs, p.Slug)
		_, err := adapters.New(p, adapters.Options{})
		require.NoError(t, err)
	}
	assert.Equal(t, []string{"a", "a-b", "z"}, slugs, "by slug and not by file name")

	all, err = adapters.Load(folder(nil))
	require.NoError(t, err)
	assert.Empty(t, all)
}

// lines returns the texts of the errors that err joins.
func lines(t *testing.T, err error) []string {
	t.Helper()
	require.Error(t, err)
	joined, ok := err.(interface{ Unwrap() []error })
	require.True(t, ok)
	var all []string
	for _, e := range joined.Unwrap() {
		all = append(all, e.Error())
	}
	return all
}

func TestLoadTellsEveryFaultWithFileLineAndField(t *testing.T) {
	all, err := adapters.Load(folder(map[string]string{
		"keys.yaml":   "slug: keys\nrsp: 1\nthrottle:\n  rps: two\n",
		"broken.yaml": "slug: [\n",
		"empty.yaml":  "",
		"other.yaml":  declared("another"),
		"good.yaml":   declared("good"),
		"auth.yaml":   "slug: auth\nauth:\n  kind: header\n  name: key\nbase_url: https://auth.example\nendpoints:\n  - name: one\n    headers: {key: x}\n",
		"flow.yaml": `{"slug": "flow", "base_url": "https://flow.example", "endpoints": [` + "\n" +
			`  {"name": "a", "kinds": ["ip"]},` + "\n" + `  {"name": "b", "kinds": ["ip"], "params": {"q.x": "{value|trim}"}}]}`,
		"bare.yaml": "slug: bare\n",
		"late.yml":  declared("late"),
	}))
	assert.Nil(t, all)
	assert.Equal(t, []string{
		`adapters: auth.yaml: line 3, column 3: auth.env: is missing: want the environment variables that hold the keys`,
		`adapters: auth.yaml: line 7, column 5: endpoints[0].kinds: are missing: want what it looks up, such as [ip]`,
		`adapters: auth.yaml: line 8, column 20: endpoints[0].headers.key: is the key's own place: want it in auth alone`,
		`adapters: bare.yaml: line 1, column 1: base_url: is missing: want an absolute http or https URL`,
		`adapters: bare.yaml: line 1, column 1: endpoints: are missing: want at least one`,
		`adapters: broken.yaml: line 1, column 7: is no valid YAML: sequence end token ']' not found`,
		`adapters: empty.yaml: the text is empty: it must be a mapping of keys to values`,
		`adapters: flow.yaml: line 3, column 44: endpoints[1].params["q.x"]: {value|trim}: the filter "trim" is unknown: ` + knownFilters,
		`adapters: keys.yaml: line 2, column 1: unknown key "rsp": it must be one of slug, name, category, base_url, hosts, throttle, endpoints, dialect, breaker, retry, timeout, auth, identity, sources, as_of, confidence`,
		`adapters: keys.yaml: line 4, column 8: throttle.rps: must be a number such as 2.5, in decimal digits and without quotes`,
		`adapters: late.yml: want a name that ends in .yaml`,
		`adapters: other.yaml: line 1, column 7: slug: "another": want the file's name`,
	}, lines(t, err))
	var field *provider.FieldError
	require.ErrorAs(t, err, &field)
	assert.Equal(t, "auth.env", field.Field)
}

func TestLoadNamesBothFilesThatClaimOneThing(t *testing.T) {
	with := func(slug, base, hosts string) string {
		return "slug: " + slug + "\nendpoints: [{name: find, kinds: [ip]}]\nbase_url: " + base + "\nhosts: [" + hosts + "]\n"
	}
	_, err := adapters.Load(folder(map[string]string{
		"a.yaml": with("a", "https://api.example/v1", "alt.example, more.example"),
		"b.yaml": with("b", "https://api.example/v2", "b.example"), // a place of its own
		"c.yaml": with("c", "http://API.example:80/v1/", ""),
		"d.yaml": with("d", "https://d.example", "b.example, MORE.example:443"),
		"e.yaml": with("e", "https://alt.example", ""),
		"f.yaml": with("a", "https://f.example", ""),
	}))
	assert.Equal(t, []string{
		`adapters: f.yaml: line 1, column 7: slug: "a": want the file's name`,
		`adapters: c.yaml: line 3, column 11: base_url: is claimed by a.yaml already: one place belongs to one provider`,
		`adapters: d.yaml: line 4, column 9: hosts[0]: is claimed by b.yaml already: one place belongs to one provider`,
		`adapters: d.yaml: line 4, column 20: hosts[1]: is claimed by a.yaml already: one place belongs to one provider`,
		`adapters: e.yaml: line 3, column 11: base_url: is claimed by a.yaml already: one place belongs to one provider`,
		`adapters: f.yaml: line 1, column 7: slug: "a" is that of a.yaml already: each provider needs its own`,
	}, lines(t, err))
	assert.NotContains(t, err.Error(), "://")
}

// unreadable has one file that cannot be read.
type unreadable struct{ fs.FS }

func (u unreadable) Open(name string) (fs.File, error) {
	if name == "b.yaml" {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return u.FS.Open(name)
}

func TestLoadTellsWhatItCannotRead(t *testing.T) {
	_, err := adapters.Load(os.DirFS(t.TempDir() + "/none"))
	require.ErrorIs(t, err, fs.ErrNotExist, "no folder is not an empty one")
	assert.Contains(t, err.Error(), "adapters: ")

	_, err = adapters.Load(unreadable{folder(map[string]string{"b.yaml": declared("b"), "c.yaml": "rsp: 1\n"})})
	require.ErrorIs(t, err, fs.ErrPermission)
	all := lines(t, err)
	require.Len(t, all, 2, "the others are read all the same")
	assert.Contains(t, all[0], "adapters: b.yaml: ")
	assert.Contains(t, all[1], "adapters: c.yaml: line 1, column 1: ")
}
