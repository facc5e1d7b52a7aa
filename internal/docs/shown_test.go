package docs_test

import (
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// shown are the packages whose verbs are shown by examples.
var shown = []string{"provider", "limit", "queue", "breaker", "registry", "coordinator", "dialect", "transport", "adapters", "batch", "batch/journal", "edge", "telemetry", "tracelog"}

// quiet are methods that nobody calls by name: what they do is what the interface says
// that they implement.
var quiet = []string{"Error", "String", "Is", "Unwrap", "LogValue", "MarshalJSON", "UnmarshalJSON", "MarshalYAML", "UnmarshalYAML"}

// Every exported function and method stands in a runnable example of its package: in
// one of its own, or where it is used together with others.
func TestEveryVerbIsShown(t *testing.T) {
	tellCache(t)
	for _, name := range shown {
		p, examples := packageOf(t, filepath.Join(root, name))
		used := map[string]bool{}
		for _, e := range examples {
			assert.True(t, e.Output != "" || e.EmptyOutput, "%s: Example%s has no output: it is not run", name, e.Name)
			used[e.Name] = true
			ast.Inspect(e.Code, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok {
					used["."+s.Sel.Name] = true
				}
				return true
			})
		}
		for _, verb := range verbs(p) {
			_, method, _ := strings.Cut(verb, ".")
			if method == "" {
				method = verb
			}
			assert.True(t, used[strings.Replace(verb, ".", "_", 1)] || used["."+method], "%s.%s: no example shows it", name, verb)
		}
	}
}

// packageOf reads a package, and the examples beside it.
func packageOf(t *testing.T, dir string) (*doc.Package, []*doc.Example) {
	t.Helper()
	set := token.NewFileSet()
	var files, tests []*ast.File
	names, err := filepath.Glob(filepath.Join(dir, "*.go"))
	require.NoError(t, err)
	for _, name := range names {
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		require.NoError(t, err)
		if strings.HasSuffix(name, "_test.go") {
			tests = append(tests, f)
		} else {
			files = append(files, f)
		}
	}
	require.NotEmpty(t, files, "%v: %s", fs.ErrNotExist, dir)
	p, err := doc.NewFromFiles(set, files, module+filepath.Base(dir))
	require.NoError(t, err)
	return p, doc.Examples(tests...)
}

// verbs are the functions and methods that do something.
func verbs(p *doc.Package) (all []string) {
	for _, f := range p.Funcs {
		all = append(all, f.Name)
	}
	for _, typ := range p.Types {
		for _, f := range typ.Funcs {
			all = append(all, f.Name)
		}
		for _, m := range typ.Methods {
			if !slices.Contains(quiet, m.Name) {
				all = append(all, typ.Name+"."+m.Name)
			}
		}
	}
	return all
}
