package catalog

import (
	"testing"
	"testing/fstest"

	"github.com/stretchr/testify/require"
)

func TestABrokenFileIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		"slug: acme\nrsp: 1\n": "rsp",
		"slug: other\n":        `slug: "other": want the file's name`,
		"slug: [\n":            "acme.yaml",
	} {
		_, err := read(fstest.MapFS{"acme.yaml": {Data: []byte(text)}})
		require.ErrorContains(t, err, "catalog: acme.yaml: ")
		require.ErrorContains(t, err, want)
	}
}

func TestFilesAreSortedBySlugNotByFileName(t *testing.T) {
	all, err := read(fstest.MapFS{"a.yaml": {Data: []byte("slug: a\n")}, "a-b.yaml": {Data: []byte("slug: a-b\n")}})
	require.NoError(t, err)
	require.Equal(t, []string{"a", "a-b"}, []string{all[0].Slug, all[1].Slug})
}
