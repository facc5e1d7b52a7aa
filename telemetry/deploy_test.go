package telemetry

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const (
	rulesFile     = "../deploy/prometheus/rules.yml"
	rulesTestFile = "../deploy/prometheus/rules_test.yml"
	dashboardFile = "../deploy/grafana/headgate.json"
)

var (
	word     = regexp.MustCompile(`\b(headgate|error)_\w+`)
	selector = regexp.MustCompile(`(\w+)\{([^}]*)\}`)
	label    = regexp.MustCompile(`(\w+)\s*(=~|!~|!=|=)`)
)

// vocabulary is what PromQL may name: metrics, with the labels of each.
func vocabulary() (metrics map[string][]string, labels map[string]bool) {
	metrics, labels = map[string][]string{}, map[string]bool{}
	for _, x := range instruments[:] {
		of := []string{"job", "instance"}
		for _, a := range x.attrs {
			of = append(of, promLabel(a))
			labels[promLabel(a)] = true
		}
		names := []string{promName(x)}
		if x.kind == histogram {
			names = []string{promName(x) + "_bucket", promName(x) + "_sum", promName(x) + "_count"}
		}
		for _, name := range names {
			metrics[name] = of
		}
	}
	return metrics, labels
}

// faultsOf lists the names in an expression that nobody exports.
func faultsOf(expr string) (faults []string) {
	metrics, labels := vocabulary()
	named := 0
	for _, w := range word.FindAllString(expr, -1) {
		if metrics[w] != nil {
			named++
		} else if !labels[w] {
			faults = append(faults, fmt.Sprintf("%s is no metric and no label", w))
		}
	}
	for _, s := range selector.FindAllStringSubmatch(expr, -1) {
		if metrics[s[1]] == nil {
			faults = append(faults, fmt.Sprintf("%s is no metric", s[1]))
			continue
		}
		for _, l := range label.FindAllStringSubmatch(s[2], -1) {
			if !slices.Contains(metrics[s[1]], l[1]) {
				faults = append(faults, fmt.Sprintf("%s has no label %s", s[1], l[1]))
			}
		}
	}
	if named == 0 {
		faults = append(faults, "no metric is named")
	}
	return faults
}

func TestFaultsOfExpressions(t *testing.T) {
	assert.Empty(t, faultsOf(`sum by (headgate_provider) (rate(headgate_retries_total{headgate_provider=~"p"}[5m]))`))
	for _, wrong := range []string{
		`headgate_retries`, `headgate_call_wait_seconds`, `up`, `headgate_queue_length{headgate_flow="x"}`,
		`headgate_queue_length{headgate_limit="x"}`, `sum by (headgate_key) (headgate_queue_length)`, `queue_length{headgate_provider="p"} / headgate_queue_length`,
	} {
		assert.NotEmpty(t, faultsOf(wrong), wrong)
	}
}

type rules struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []rule `yaml:"rules"`
	} `yaml:"groups"`
}

type rule struct {
	Alert       string            `yaml:"alert"`
	Expr        string            `yaml:"expr"`
	For         string            `yaml:"for"`
	Labels      map[string]string `yaml:"labels"`
	Annotations map[string]string `yaml:"annotations"`
}

func TestAlertsNameWhatIsExported(t *testing.T) {
	text, err := os.ReadFile(rulesFile)
	require.NoError(t, err)
	var all rules
	require.NoError(t, yaml.UnmarshalWithOptions(text, &all, yaml.Strict()))
	tests, err := os.ReadFile(rulesTestFile)
	require.NoError(t, err)
	var alerts []string
	for _, g := range all.Groups {
		for _, r := range g.Rules {
			alerts = append(alerts, r.Alert)
			assert.Empty(t, faultsOf(r.Expr), r.Alert)
			for key, text := range r.Annotations {
				for _, w := range word.FindAllString(text, -1) {
					metrics, labels := vocabulary()
					assert.True(t, labels[w] || metrics[w] != nil, "%s: %s names %s", r.Alert, key, w)
				}
			}
			assert.Contains(t, string(tests), "alertname: "+r.Alert+"\n", "each alert is seen to fire")
		}
	}
	assert.Equal(t, []string{"HeadgateRefusals", "HeadgateQueueLong", "HeadgateBreakerOpen", "HeadgateQuotaRunsOut", "HeadgateLimitLearned", "HeadgateLedgerDown"}, alerts)
}

func promtool(t *testing.T, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil && testing.Short() {
		t.Skip("promtool is not installed")
	}
	require.NoError(t, err, "promtool is missing, so nothing was checked: make setup installs it (Debian: prometheus), or run with -short")
	out, err := exec.CommandContext(t.Context(), path, args...).CombinedOutput()
	require.NoError(t, err, "promtool %s:\n%s", strings.Join(args, " "), out)
}

func TestAlertsFireWhenTheyShould(t *testing.T) {
	promtool(t, "check", "rules", rulesFile)
	promtool(t, "test", "rules", rulesTestFile)
}

// dashboard is what is looked at of Grafana's schema.
type dashboard struct {
	UID           string
	SchemaVersion int
	Panels        []panel
	Templating    struct{ List []variable }
}

type variable struct{ Name, Type, Definition string }

type panel struct {
	ID          int
	Type, Title string
	GridPos     struct{ H, W, X, Y int }
	Targets     []struct{ RefID, Expr, LegendFormat string }
}

func readDashboard(t *testing.T) dashboard {
	t.Helper()
	text, err := os.ReadFile(dashboardFile)
	require.NoError(t, err)
	var d dashboard
	require.NoError(t, json.Unmarshal(text, &d))
	return d
}

func TestDashboardNamesWhatIsExported(t *testing.T) {
	d := readDashboard(t)
	shown, _ := vocabulary()
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			assert.Empty(t, faultsOf(target.Expr), p.Title)
			for _, w := range word.FindAllString(target.LegendFormat, -1) {
				assert.Contains(t, target.Expr, w, "%s: the legend's label is one that the query keeps", p.Title)
			}
			for _, w := range word.FindAllString(target.Expr, -1) {
				delete(shown, w)
			}
		}
	}
	for _, v := range d.Templating.List {
		if v.Type == "query" {
			assert.Empty(t, faultsOf(v.Definition), v.Name)
		}
	}
	// What is left is for who looks closer.
	for name := range shown {
		if !strings.HasSuffix(name, "_sum") && !strings.HasSuffix(name, "_count") {
			assert.Contains(t, []string{"headgate_keys", "headgate_limit_origin", "headgate_limit_window_seconds", "headgate_pool_waiting", "headgate_units_ignored_total"}, name)
		}
	}
}

// The panels lie beside one another, each with what Grafana wants of it.
func TestDashboardIsWellFormed(t *testing.T) {
	d := readDashboard(t)
	assert.Equal(t, "headgate", d.UID)
	assert.Positive(t, d.SchemaVersion)
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		assert.False(t, ids[p.ID], "two panels have the id %d", p.ID)
		ids[p.ID] = true
		assert.Contains(t, []string{"row", "timeseries", "state-timeline"}, p.Type, p.Title)
		assert.Equal(t, p.Type == "row", len(p.Targets) == 0, p.Title)
		assert.LessOrEqual(t, p.GridPos.X+p.GridPos.W, 24, p.Title)
		for x := range p.GridPos.W {
			for y := range p.GridPos.H {
				at := [2]int{p.GridPos.X + x, p.GridPos.Y + y}
				assert.Empty(t, taken[at], "%s lies over it", p.Title)
				taken[at] = p.Title
			}
		}
		refs := map[string]bool{}
		for _, target := range p.Targets {
			assert.NotEmpty(t, target.RefID, p.Title)
			assert.False(t, refs[target.RefID], p.Title)
			refs[target.RefID] = true
		}
	}
}

// Every query of the dashboard is PromQL.
func TestDashboardQueriesParse(t *testing.T) {
	fill := strings.NewReplacer("$provider", ".*", "$__rate_interval", "5m")
	type recorded struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var all []recorded
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			all = append(all, recorded{fmt.Sprintf("panel:%d:%s", p.ID, strings.ToLower(target.RefID)), fill.Replace(target.Expr)})
		}
	}
	require.NotEmpty(t, all)
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": all}}}) // JSON is YAML
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "dashboard.yml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	promtool(t, "check", "rules", file)
}
