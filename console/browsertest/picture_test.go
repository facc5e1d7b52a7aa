package browsertest

import (
	"bytes"
	"fmt"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The pictures of the documentation. They are always the same scene at the same
// instant; with -update they are written.
func TestPictures(t *testing.T) {
	const list, panel = "?", "?open=censys"
	answers := play(t, "/", "/"+panel, "/rows?", "/rows"+panel, "/style.css", "/app.js", "/providers/shodan/limits", "/api/state")
	assert.Contains(t, answers["/api/state"].Body.String(), `"banned":1,"busy":4,"circuit_open":1,"idle":1,"near_limit":1,"part_paused":1,"paused":1,"queueing":1,"quota_spent":1,"refusing":1,"unused":1`)
	answers["/?"] = answers["/"]
	url := serve(t, stage(t, answers))
	for _, p := range []struct {
		name, address string
		width, height int64 // 0: as high as the page
		scale         float64
		scheme        string
	}{
		{"light", "/", 1360, 0, 1.5, "light"},
		{"dark", "/" + panel, 1360, 0, 1.5, "dark"},
		{"phone", "/", 390, 1600, 2, "light"},
		{"phone panel", "/" + panel, 390, 0, 1, "dark"},
		{"tablet", "/" + panel, 820, 0, 1, "light"},
		{"phone form", "/providers/shodan/limits", 390, 0, 1, "light"},
	} {
		t.Run(p.name, func(t *testing.T) {
			x := open(t)
			call(x, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
				{Name: "prefers-color-scheme", Value: p.scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
			}})
			call(x, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: fmt.Sprintf("Date.now = () => %d", curtain.UnixMilli())})
			x.do(chromedp.EmulateViewport(p.width, max(p.height, 800), chromedp.EmulateScale(p.scale)), chromedp.Navigate(url+p.address))
			if p.name != "phone form" {
				x.wait(live, patience)
			}
			assert.LessOrEqual(t, eval[int64](x, "document.documentElement.scrollWidth"), p.width, "no scrolling sideways")
			var picture []byte
			var err error
			if p.height == 0 {
				picture, err = chromedp.Run(x, chromedp.FullScreenshot(100))
			} else {
				picture, err = chromedp.Run(x, chromedp.CaptureScreenshot())
			}
			require.NoError(t, err)
			size, err := png.DecodeConfig(bytes.NewReader(picture))
			require.NoError(t, err)
			assert.Equal(t, int(float64(p.width)*p.scale), size.Width)
			file := filepath.Join("..", "..", "docs", "console-"+p.name+".png")
			switch _, documented := map[string]bool{"light": true, "dark": true, "phone": true}[p.name]; {
			case *update && documented:
				require.NoError(t, os.WriteFile(file, picture, 0o644))
			case documented:
				require.FileExists(t, file)
			}
			if dir := os.Getenv("PICTURES"); dir != "" { // all of them, to be looked at
				require.NoError(t, os.WriteFile(filepath.Join(dir, p.name+".png"), picture, 0o644))
			}
		})
	}
}
