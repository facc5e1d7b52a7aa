package arrow

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// within names a package that a pattern matches.
func within(pattern string) string { return strings.Replace(pattern, "...", "inside", 1) }

func of(own string) pack {
	return pack{ImportPath: module + "/" + own, Name: own[strings.LastIndex(own, "/")+1:]}
}

// Every arrow that is not in the table is a fault, and every one in it is none.
func TestEveryArrowCanFail(t *testing.T) {
	for _, from := range rows {
		for _, to := range rows {
			p := of(within(from.pkg))
			p.Imports = []string{module + "/" + within(to.pkg)}
			if matchesAny(from.may, within(to.pkg)) {
				assert.Empty(t, faults(p), "%s → %s", from.pkg, to.pkg)
				continue
			}
			require.NotEmpty(t, from.is, "%s: the table must say why", from.pkg)
			assert.Equal(t, []string{within(from.pkg) + " must not import " + within(to.pkg) + ": " + from.is}, faults(p))
		}
	}
}

// The arrows that docs/design.md forbids by name are not in the table.
func TestForbiddenArrowsAreNotInTheTable(t *testing.T) {
	for _, a := range [][2]string{
		{"limit", "queue"}, {"limit", "breaker"}, {"queue", "limit"}, {"queue", "breaker"}, {"breaker", "limit"}, {"breaker", "queue"},
		{"internal/referee", "limit"},
		{"adapters", "coordinator"}, {"adapters", "transport"}, {"adapters/catalog", "coordinator"}, {"adapters/catalog", "transport"},
		{"coordinator", "adapters"}, {"coordinator", "adapters/catalog"}, {"coordinator", "transport"}, {"coordinator", "telemetry"},
		{"coordinator", "ledger/redis"}, {"ledger", "ledger/sqlite"}, {"provider", "limit"}, {"queue", "provider"},
	} {
		p := of(a[0])
		p.Imports = []string{module + "/" + a[1]}
		assert.Len(t, faults(p), 1, "%s → %s", a[0], a[1])
	}
}

// Every ban is kept for every package that is not excepted, however deep.
func TestEveryBanCanFail(t *testing.T) {
	for _, b := range bans {
		require.NotEmpty(t, b.why)
		for _, r := range rows {
			p := of(within(r.pkg))
			p.Deps = []string{"fmt", within(b.what), "time"}
			if b.direct {
				p.Imports, p.Deps = []string{within(b.what)}, nil
			}
			got := faults(p)
			if matchesAny(b.except, within(r.pkg)) {
				assert.Empty(t, got, "%s, %s", r.pkg, b.what)
				continue
			}
			require.Len(t, got, 1, "%s, %s", r.pkg, b.what)
			assert.Contains(t, got[0], b.why)
		}
	}
}

func TestForbiddenPackagesAreBanned(t *testing.T) {
	for _, own := range []string{"provider", "limit", "queue", "breaker", "registry", "coordinator", "batch", "ledger"} {
		for _, dep := range []string{
			"net/http", "go.opentelemetry.io/otel/trace", "database/sql", "modernc.org/sqlite", "github.com/redis/rueidis",
			"github.com/stretchr/testify/require", "pgregory.net/rapid", "go.uber.org/goleak", module + "/internal/referee",
		} {
			p := of(own)
			p.Deps = []string{dep}
			assert.Len(t, faults(p), 1, "%s, %s", own, dep)
		}
	}
	for _, own := range []string{"dialect", "transport", "adapters", "console", "telemetry"} {
		for _, dep := range []string{"github.com/stretchr/testify/assert", module + "/internal/referee"} {
			p := of(own)
			p.Deps = []string{dep}
			assert.Len(t, faults(p), 1, "%s, %s", own, dep)
		}
	}
	p := of("coordinator")
	p.Deps, p.Imports = []string{"log", "log/slog"}, []string{"log/slog"}
	assert.Empty(t, faults(p), "slog's Value is allowed")
	p.Imports = append(p.Imports, "log")
	assert.Len(t, faults(p), 1)
}

func TestUnknownPackagesAndEmptyNamesFail(t *testing.T) {
	assert.Equal(t, []string{"queue/heap is not in the table of internal/arrow: say there what it may import"}, faults(of("queue/heap")))
	assert.Len(t, faults(of("adaptersx")), 1)
	assert.Empty(t, faults(of("adapters")))
	assert.Empty(t, faults(of("adapters/catalog")))
	for _, own := range []string{"examples/util", "examples/common/x", "adapters/types", "bench/helpers", "examples/pkg"} {
		got := faults(of(own))
		require.NotEmpty(t, got, own)
		assert.Contains(t, got[0], "is no name")
	}
	p := of("adapters/http")
	p.Name = "util"
	assert.Len(t, faults(p), 1)
}
