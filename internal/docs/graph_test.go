package docs_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/headgate/headgate/"

// pack is what go list tells of a package.
type pack struct {
	Dir, ImportPath, Doc string
	Module               struct{ Path string }
	Imports              []string
	GoFiles              []string
}

// name is the package's place in the project.
func (p pack) name() string { return strings.TrimPrefix(p.ImportPath, module) }

// own tells that the package is of a module of its own.
func (p pack) own() bool { return p.Module.Path+"/" != module }

// library are the packages that programs may import, of all modules, by name.
func library(t *testing.T) map[string]pack {
	t.Helper()
	tellCache(t)
	args := []string{"list", "-json=Dir,ImportPath,Doc,Module,Imports,GoFiles"}
	for dir := range strings.Lines(goTool(t, "list", "-m", "-f", "{{.Dir}}")) {
		args = append(args, filepath.Join(strings.TrimSpace(dir), "..."))
	}
	all := map[string]pack{}
	for d := json.NewDecoder(strings.NewReader(goTool(t, args...))); ; {
		var p pack
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all
		} else if err != nil {
			require.NoError(t, err)
		}
		if len(p.GoFiles) > 0 && !apart(p.name()) {
			all[p.name()] = p
		}
	}
}

// apart are programs, tests, and what is nobody's to import.
func apart(name string) bool {
	first, _, _ := strings.Cut(name, "/")
	return first == "examples" || first == "bench" || strings.Contains("/"+name+"/", "/internal/") || strings.HasPrefix(name, "ledger/ledgertest") ||
		strings.HasSuffix(name, "/bench") || strings.HasSuffix(name, "/browsertest")
}

func goTool(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	var stderr bytes.Buffer
	cmd.Dir, cmd.Stderr = root, &stderr
	out, err := cmd.Output()
	require.NoError(t, err, stderr.String())
	return string(out)
}

// tellCache looks at every source file: go test keeps a result for as long as the files
// that the test itself has looked at stay as they are, and it does not see what the go
// command reads.
func tellCache(t *testing.T) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "bin"):
			return fs.SkipDir
		case filepath.Ext(p) == ".go" || d.Name() == "go.mod":
			_, err = os.Stat(p)
		}
		return err
	}))
}

// box is one package in the picture, or a folder of them.
type box struct {
	name, says string
	dashed     bool // a module of its own
	uses       []string
}

// boxes are the packages of the picture. Those below adapters are one box; an arrow
// that follows from others is left out.
func boxes(t *testing.T) map[string]*box {
	t.Helper()
	packs := library(t)
	all := map[string]*box{}
	for name, p := range packs {
		at := boxOf(name)
		if all[at] == nil {
			all[at] = &box{name: at}
		}
		b := all[at]
		if name == at {
			b.says, b.dashed = says(p), p.own()
		}
		for _, imp := range p.Imports {
			if to, ours := strings.CutPrefix(imp, module); ours && !apart(to) && boxOf(to) != at && !slices.Contains(b.uses, boxOf(to)) {
				b.uses = append(b.uses, boxOf(to))
			}
		}
	}
	for _, b := range all {
		direct := b.uses
		b.uses = slices.DeleteFunc(slices.Clone(direct), func(to string) bool {
			return slices.ContainsFunc(direct, func(via string) bool { return via != to && reaches(all, via, to) })
		})
		slices.Sort(b.uses)
	}
	return all
}

func boxOf(name string) string {
	if strings.HasPrefix(name, "adapters/") {
		return "adapters"
	}
	return name
}

func reaches(all map[string]*box, from, to string) bool {
	return slices.ContainsFunc(all[from].uses, func(next string) bool { return next == to || reaches(all, next, to) })
}

// says is what a package is, in its own words: the first sentence of its comment,
// without its name, up to the first stop.
func says(p pack) string {
	text := strings.TrimPrefix(p.Doc, "Package "+p.ImportPath[strings.LastIndex(p.ImportPath, "/")+1:]+" ")
	text = strings.NewReplacer("[", "", "]", "").Replace(text)
	for _, stop := range []string{":;(", ","} {
		if i := strings.IndexAny(text, stop); i > 0 && (stop != "," || len(text) > 80) {
			text = text[:i]
		}
	}
	text = strings.TrimSuffix(strings.TrimSpace(text), ".")
	return strings.TrimPrefix(text, "is ")
}
