// Package docs keeps docs/ in step with the code: what the guide shows is compiled and
// run, links lead somewhere, the picture is that of the packages that there are, and
// what a package offers is shown by an example. It has no code of its own.
//
//	go test ./internal/docs -update   # draws docs/architecture.svg anew
package docs_test

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

var update = flag.Bool("update", false, "write docs/architecture.svg")

// root is the module's folder, seen from here.
var root = filepath.Join("..", "..")

// pages are the pages that are kept.
var pages = []string{"guide.md", "comparison.md", "architecture.md"}

func read(t *testing.T, elem ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(append([]string{root}, elem...)...))
	require.NoError(t, err)
	return string(text)
}

// blocks are the fenced blocks of a page in a language.
func blocks(page, language string) (all []string) {
	fence := regexp.MustCompile("(?ms)^```" + language + "\n(.*?)^```$")
	for _, m := range fence.FindAllStringSubmatch(page, -1) {
		all = append(all, m[1])
	}
	return all
}

// trimmed is text without indentation.
func trimmed(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return "\n" + strings.Join(lines, "\n") + "\n"
}

// Every Go block of the guide stands in guide_test.go, where it is compiled and run.
func TestGuideIsCompiled(t *testing.T) {
	source := trimmed(read(t, "internal", "docs", "guide_test.go"))
	all := blocks(read(t, "docs", "guide.md"), "go")
	require.GreaterOrEqual(t, len(all), 10)
	for _, block := range all {
		assert.Contains(t, source, trimmed(block))
	}
}

// Every declaration in the guide is read, and every override fits to it.
func TestGuideIsDeclared(t *testing.T) {
	var acme provider.Provider
	read := blocks(read(t, "docs", "guide.md"), "yaml")
	require.Len(t, read, 2)
	acme, err := provider.Parse([]byte(read[0]))
	require.NoError(t, err)
	over, err := provider.ParseOverrides([]byte(read[1]))
	require.NoError(t, err)
	plan, err := over.Apply(acme)
	require.NoError(t, err)
	assert.EqualValues(t, 5000, plan.Throttle.Limits[0].Max)
	assert.Equal(t, []string{"scan"}, plan.Throttle.Off)
}

var (
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	noMark  = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
)

// anchors are the names of a page's headings, as GitHub makes them.
func anchors(page string) (all []string) {
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		all = append(all, strings.ReplaceAll(noMark.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	return all
}

// Every link inside the project leads to a file that is there, and to a heading in it.
func TestLinksLeadSomewhere(t *testing.T) {
	for _, page := range pages {
		for _, m := range link.FindAllStringSubmatch(read(t, "docs", page), -1) {
			to, anchor, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") || to == "benchmarks.md" { // that page is written by make bench
				continue
			}
			if to == "" {
				to = page
			}
			_, err := os.Stat(filepath.Join(root, "docs", to))
			if assert.NoError(t, err, "%s: %s", page, m[1]) && anchor != "" {
				assert.True(t, slices.Contains(anchors(read(t, "docs", to)), anchor), "%s: no such heading: %s", page, m[1])
			}
		}
	}
}
