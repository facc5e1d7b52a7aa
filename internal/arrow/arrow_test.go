// Package arrow holds the tests that keep the arrows of docs/design.md: which
// package of this project may import which, and what none may bring along. It
// has no code of its own.
package arrow

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const module = "github.com/headgate/headgate"

// row is one package, or one folder of them ("adapters/..."): what it may import
// of ours, and what it is, which is the reason why no more.
type row struct {
	pkg string
	is  string
	may []string
}

// rows is the table. A package of ours that is not in it fails the test: whoever
// adds one says here what it may know.
var rows = []row{
	{"provider", "it is the vocabulary, which everybody imports", nil},
	{"queue", "it is a data structure, which knows no provider", nil},
	{"limit", "it is arithmetic on time: its user asks all rules together", []string{"provider"}},
	{"breaker", "it is one rule among others: its user asks all rules together", []string{"provider"}},
	{"registry", "it holds inert descriptions; live state belongs to a coordinator", []string{"provider"}},
	{"coordinator", "it is the core, which knows no adapter and no transport", []string{"provider", "limit", "breaker", "queue", "registry", "ledger"}},
	{"batch/journal", "it keeps keys in a file, whatever they are of", nil},
	{"batch", "it is a user of the core like any other", []string{"coordinator", "provider"}},
	{"dialect", "it reads an answer and decides nothing", []string{"provider"}},
	{"transport", "it is HTTP over the core, whichever the provider", []string{"coordinator", "dialect", "provider"}},
	{"adapters/...", "an adapter is not throttled by itself: it is called by the core", []string{"adapters/...", "provider", "registry", "dialect"}},
	{"ledger", "it is a contract, which knows no store", []string{"provider"}},
	{"ledger/ledgertest/outage", "it judges a whole team with its store", []string{"coordinator", "ledger", "provider", "internal/referee"}},
	{"ledger/ledgertest", "it judges stores, so what the algorithms mean is written down in it a second time", []string{"ledger", "provider"}},
	{"ledger/internal/book", "it is what a store does, wherever it is kept", []string{"ledger", "limit", "provider"}},
	{"ledger/memory", "it is one store under the contract", []string{"ledger", "ledger/internal/book", "limit", "provider"}},
	{"ledger/sqlite", "it is one store under the contract", []string{"ledger", "ledger/internal/book", "limit", "provider"}},
	{"ledger/redis", "it is one store under the contract", []string{"ledger", "limit", "provider"}},
	{"ledger/redis/bench", "", []string{"..."}},
	{"telemetry", "it looks at the core from outside", []string{"coordinator", "provider"}},
	{"tracelog", "it looks at the core from outside", []string{"coordinator", "provider"}},
	{"edge", "it is a user of the core that answers others", []string{"coordinator", "provider", "registry"}},
	{"console", "it looks at the core from outside", []string{"coordinator", "provider"}},
	{"internal/referee", "it judges limit, so it counts by its own code", []string{"provider"}},
	{"internal/arrow", "it has no code of its own", nil},
	{"internal/docs", "it has no code of its own", nil},
	{"internal/mutants", "it has no code of its own", nil},
	{"internal/soak", "it has no code of its own", nil},
	{"console/browsertest", "", []string{"..."}},
	{"examples/...", "", []string{"..."}},
	{"bench/...", "", []string{"..."}},
}

// ban is a package, or a tree of them, that some of ours must not have.
type ban struct {
	what   string
	why    string
	direct bool     // only their own imports count; else also what these bring along
	except []string // all other packages of ours must not
}

var programs = []string{"console/browsertest", "examples/...", "bench/...", "ledger/redis/bench"}

// tests are the packages that only tests import.
var tests = []string{"ledger/ledgertest", "ledger/ledgertest/outage"}

var bans = []ban{
	{what: "net/http", why: "who calls a provider by other means does not compile HTTP into his program",
		except: []string{"dialect", "transport", "adapters/...", "telemetry", "edge", "console", "ledger/redis", "ledger/ledgertest", "ledger/ledgertest/outage", "internal/referee", "examples/...", "bench/..."}},
	{what: "go.opentelemetry.io/...", why: "who does not measure does not compile OpenTelemetry", except: append([]string{"telemetry"}, programs...)},
	{what: "database/sql/...", why: "who limits one process needs no store", except: append([]string{"ledger/sqlite"}, programs...)},
	{what: "modernc.org/...", why: "who limits one process needs no store", except: append([]string{"ledger/sqlite"}, programs...)},
	{what: "github.com/ncruces/...", why: "who limits one process needs no store", except: append([]string{"ledger/sqlite"}, programs...)},
	{what: "github.com/redis/...", why: "who limits one process needs no store", except: append([]string{"ledger/redis"}, programs...)},
	// log/slog, whose Value an Error can become, brings log along: so only their own imports count.
	{what: "log", why: "a library returns errors and calls hooks; it does not write", direct: true, except: programs},
	{what: "github.com/stretchr/testify/...", why: "it is for tests", except: append(tests, programs...)},
	{what: "pgregory.net/rapid/...", why: "it is for tests", except: programs},
	{what: "go.uber.org/goleak/...", why: "it is for tests", except: programs},
	{what: "net/http/httptest", why: "it is for tests", except: append(tests, programs...)},
	{what: module + "/internal/referee", why: "it is for tests and examples", except: append([]string{"internal/referee", "ledger/ledgertest/outage"}, programs...)},
}

// noNames are the names of packages that have no one idea.
var noNames = []string{"util", "utils", "common", "types", "helper", "helpers", "pkg", "misc", "shared", "base"}

// pack is what go list tells of one package, tests left out.
type pack struct {
	ImportPath, Name string
	Imports, Deps    []string
}

// matches tells whether pkg is pattern, or below it where it ends in "/...".
func matches(pattern, pkg string) bool {
	tree, isTree := strings.CutSuffix(pattern, "...")
	return pattern == pkg || isTree && strings.HasPrefix(pkg+"/", tree)
}

func matchesAny(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, pkg) })
}

// faults lists everything that one package of ours does against the table.
func faults(p pack) (all []string) {
	own := strings.TrimPrefix(p.ImportPath, module+"/")
	for _, name := range slices.Compact(append(strings.Split(own, "/"), p.Name)) {
		if slices.Contains(noNames, name) {
			all = append(all, fmt.Sprintf("%s: %q is no name: name the one thing that is in it", own, name))
		}
	}
	i := slices.IndexFunc(rows, func(r row) bool { return matches(r.pkg, own) })
	if i < 0 {
		return append(all, own+" is not in the table of internal/arrow: say there what it may import")
	}
	for _, imp := range p.Imports {
		if theirs, ours := strings.CutPrefix(imp, module+"/"); ours && !matchesAny(rows[i].may, theirs) {
			all = append(all, fmt.Sprintf("%s must not import %s: %s", own, theirs, rows[i].is))
		}
	}
	for _, b := range bans {
		if matchesAny(b.except, own) {
			continue
		}
		has, how := p.Deps, "depend on"
		if b.direct {
			has, how = p.Imports, "import"
		}
		for _, dep := range has {
			if matches(b.what, dep) {
				all = append(all, fmt.Sprintf("%s must not %s %s: %s", own, how, dep, b.why))
			}
		}
	}
	return all
}

func TestArrows(t *testing.T) {
	root := filepath.Join("..", "..")
	tellCache(t, root)
	packs := list(t, root)
	seen := map[string]pack{}
	for _, p := range packs {
		seen[strings.TrimPrefix(p.ImportPath, module+"/")] = p
		for _, f := range faults(p) {
			t.Error(f)
		}
	}
	// The list is the real one: an arrow that is known to be there is in it.
	require.Contains(t, seen["coordinator"].Imports, module+"/provider")
	require.Contains(t, seen["dialect"].Deps, "net/http")
}

// list asks the go command for all packages of all modules of the workspace.
func list(t *testing.T, root string) (packs []pack) {
	t.Helper()
	args := []string{"list", "-json=ImportPath,Name,Imports,Deps"}
	for dir := range strings.Lines(run(t, root, "list", "-m", "-f", "{{.Dir}}")) {
		args = append(args, filepath.Join(strings.TrimSpace(dir), "..."))
	}
	for d := json.NewDecoder(strings.NewReader(run(t, root, args...))); ; {
		var p pack
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packs
		} else if err != nil {
			t.Fatal(err)
		}
		packs = append(packs, p)
	}
}

func run(t *testing.T, dir string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	var stderr bytes.Buffer
	cmd.Dir, cmd.Stderr = dir, &stderr
	out, err := cmd.Output()
	require.NoError(t, err, "go %s: %s", path.Join(args...), stderr.String())
	return string(out)
}

// tellCache looks at every source file: go test caches a result for as long as
// the files that the test itself looked at stay the same, and it does not see
// what the go command read.
func tellCache(t *testing.T, root string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == "bin") {
			return fs.SkipDir
		}
		if filepath.Ext(p) == ".go" || d.Name() == "go.mod" || d.Name() == "go.work" {
			_, err = os.Stat(p)
		}
		return err
	}))
}
