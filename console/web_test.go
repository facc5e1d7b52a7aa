package console

import (
	"fmt"
	"html"
	"math"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// Forms say in their title what they are for, and lead back to a provider wherever it
// stands in the list, though it was never called.
func TestFormsLeadBack(t *testing.T) {
	var ps []provider.Provider
	for i := range 130 {
		ps = append(ps, provider.Provider{Slug: fmt.Sprintf("p%03d", i), Throttle: provider.Throttle{RPM: 60}})
	}
	bubble(t, Options{Actions: true}, func(t *testing.T, w *world) {
		for _, p := range ps[:120] {
			require.NoError(t, w.Do(t.Context(), coordinator.Call{Provider: p.Slug}, nothing))
		}
		for _, slug := range []string{"p000", "p049", "p050", "p119", "p120", "p129"} {
			page := w.get("/providers/" + slug + "/limits").Body.String()
			assert.Contains(t, page, "<title>Set the limits of "+slug+" – Headgate</title>")
			links := regexp.MustCompile(`href="../../(\?\S*?)#p-`+slug+`"`).FindAllStringSubmatch(page, -1)
			require.Len(t, links, 2, slug)
			for _, link := range links {
				assert.Contains(t, w.get("/"+html.UnescapeString(link[1])).Body.String(), `id="d-`+slug+`"`, slug)
			}
		}
		res := w.visit("/providers/p110/limits").post("/providers/p110/limits", "limits", "providers: {p110: {throttle: {rpm: 90}}}", "confirm", "yes")
		require.Equal(t, http.StatusSeeOther, res.Code, res.Body)
		to, _, _ := strings.Cut(strings.TrimPrefix(res.Header().Get("Location"), root), "#")
		assert.Contains(t, w.get("/"+to).Body.String(), `id="d-p110"`)
	}, ps...)
}

// A page on which nothing is to be seen leads to what there is.
func TestNothingIsShown(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, w *world) {
		page := w.get("/").Body.String()
		assert.Contains(t, page, "No provider has been called yet.\n<a href=\"?state=unused\">Show what is declared</a>")
		assert.Contains(t, w.get("/?state=unused").Body.String(), `id="p-acme"`)
		assert.Contains(t, w.get("/?state=banned").Body.String(), "No provider here.\n<a href=\"?\">Show all</a>")
	}, provider.Provider{Slug: "acme"})
	bubble(t, Options{}, func(t *testing.T, w *world) {
		assert.Contains(t, w.get("/").Body.String(), "No provider has been called yet.\n</p>")
	})
}

// A chart says which time it is of while that is not an hour.
func TestChartTellsItsTime(t *testing.T) {
	bubble(t, Options{}, func(t *testing.T, w *world) {
		require.NoError(t, w.call(coordinator.Call{Provider: "acme"}, ok))
		time.Sleep(59*time.Second + time.Second/2) // between two looks
		assert.Contains(t, w.get("/").Body.String(), "up to 1.1/s in 1 min</p>")
		time.Sleep(61 * time.Minute)
		assert.Contains(t, w.get("/").Body.String(), "no call</p>")
	}, provider.Provider{Slug: "acme"})
}

// Text is told from its ground 4.5 : 1 (WCAG 1.4.3), and bars, the edges of what is
// typed into, and the mark of the focus 3 : 1 (1.4.11), in the light and in the dark.
func TestContrast(t *testing.T) {
	light, rest, found := strings.Cut(styleCSS, "@media (prefers-color-scheme: dark)")
	require.True(t, found)
	dark, _, _ := strings.Cut(rest, "*, ::before")
	colours := make(map[string]string)
	for _, scheme := range []string{light, dark} { // what the dark one does not name is as in the light
		for _, m := range regexp.MustCompile(`--([\w-]+): (#[0-9a-f]+);`).FindAllStringSubmatch(scheme, -1) {
			colours[m[1]] = m[2]
		}
		check := func(least float64, a, b string) {
			t.Helper()
			require.Contains(t, colours, a)
			require.Contains(t, colours, b)
			x, y := luminance(t, colours[a]), luminance(t, colours[b])
			assert.GreaterOrEqual(t, (max(x, y)+0.05)/(min(x, y)+0.05), least, "%s on %s", a, b)
		}
		for _, ground := range []string{"ground", "sheet", "inset"} {
			for _, text := range []string{"ink", "soft", "accent"} {
				check(4.5, text, ground)
			}
			check(3, "edge", ground)
		}
		for _, tone := range []string{"bad", "warn", "note", "good", "calm"} {
			for _, ground := range []string{tone + "-wash", "sheet", "inset"} {
				check(4.5, tone, ground)
			}
		}
		check(4.5, "sheet", "ink")
		check(4.5, "sheet", "accent")
		for _, fill := range []string{"used", "note", "full"} {
			check(3, fill, "track")
		}
	}
}

// luminance is the relative one of #rgb or #rrggbb.
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	digits := colour[1:]
	if len(digits) == 3 {
		digits = regexp.MustCompile(`.`).ReplaceAllString(digits, "$0$0")
	}
	var sum float64
	for i, weight := range []float64{0.2126, 0.7152, 0.0722} {
		n, err := strconv.ParseUint(digits[2*i:2*i+2], 16, 8)
		require.NoError(t, err)
		c := float64(n) / 255
		if c <= 0.04045 {
			c /= 12.92
		} else {
			c = math.Pow((c+0.055)/1.055, 2.4)
		}
		sum += weight * c
	}
	return sum
}
