package main

import (
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/internal/referee"
)

// metricOf is one metric: as docs/telemetry.md has it, or as it was scraped.
type metricOf struct {
	kind   string // as Prometheus says it
	labels []string
}

// documentedMetrics reads the table of docs/telemetry.md, by the names in Prometheus.
func documentedMetrics(t *testing.T) map[string]metricOf {
	t.Helper()
	text, err := os.ReadFile("../../docs/telemetry.md")
	require.NoError(t, err)
	kinds := map[string]string{"counter": "counter", "up-down counter": "gauge", "gauge": "gauge", "histogram": "histogram"}
	all := make(map[string]metricOf)
	for line := range strings.Lines(string(text)) {
		if cells := strings.Split(line, " | "); len(cells) == 6 && strings.HasPrefix(line, "| `headgate.") {
			attrs := strings.Split(strings.NewReplacer("`", "", ".", "_").Replace(cells[4]), ", ")
			if strings.TrimSpace(cells[4]) == "" {
				attrs = nil
			}
			slices.Sort(attrs)
			all[strings.Trim(cells[1], "`")] = metricOf{kinds[cells[2]], attrs}
		}
	}
	require.GreaterOrEqual(t, len(all), 30)
	return all
}

// samples are the series of a scrape, by name and labels as they are written.
type samples map[string]float64

var (
	sampleLine = regexp.MustCompile(`^(\w+?)(_sum|_count)?(?:\{(.*)\})? (\S+)$`)
	labelName  = regexp.MustCompile(`(\w+)="`)
)

// scraped reads a scrape: its series, and the kind and the labels of each metric.
func scraped(t *testing.T, text string) (samples, map[string]metricOf) {
	t.Helper()
	series, all := make(samples), make(map[string]metricOf)
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if about, ok := strings.CutPrefix(line, "# TYPE "); ok {
			name, kind, _ := strings.Cut(about, " ")
			all[name] = metricOf{kind: kind}
		}
		if strings.HasPrefix(line, "#") || strings.Contains(line, "_bucket{") { // with the labels of _sum and _count
			continue
		}
		m := sampleLine.FindStringSubmatch(line)
		require.NotNil(t, m, line)
		x, known := all[m[1]]
		require.True(t, known, "%s: no metric of that name was announced", line)
		for _, l := range labelName.FindAllStringSubmatch(m[3], -1) {
			if !slices.Contains(x.labels, l[1]) {
				x.labels = append(x.labels, l[1])
			}
		}
		all[m[1]] = x
		value, err := strconv.ParseFloat(m[4], 64)
		require.NoError(t, err, line)
		series[m[1]+m[2]+"{"+m[3]+"}"] = value
	}
	return series, all
}

// sum adds the series of a name up that have all of the labels.
func (s samples) sum(name string, labels ...string) (sum float64) {
	for series, value := range s {
		if strings.HasPrefix(series, name+"{") && !slices.ContainsFunc(labels, func(l string) bool { return !strings.Contains(series, l) }) {
			sum += value
		}
	}
	return sum
}

// scraper is who scrapes.
func scraper(l net.Listener) *http.Client {
	transport := &http.Transport{DisableKeepAlives: true, DisableCompression: true}
	if p, ok := l.(*referee.PipeListener); ok {
		transport.DialContext = p.DialContext
	}
	return &http.Client{Transport: transport}
}

func get(t *testing.T, c *http.Client, url string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	res, err := c.Do(req)
	require.NoError(t, err)
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	return res.StatusCode, string(text)
}
