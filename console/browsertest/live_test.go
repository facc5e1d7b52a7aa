package browsertest

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/console"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// shown is a coordinator and its page.
type shown struct {
	*coordinator.Coordinator
	page *console.Console
	url  string // of the page, with its last slash
}

func show(t *testing.T, opt console.Options, ps ...provider.Provider) shown {
	t.Helper()
	rec := new(console.Recorder)
	c, err := coordinator.New(coordinator.Config{Registry: new(registry.Registry), Providers: ps, Traces: []*coordinator.Trace{rec.Trace()}})
	require.NoError(t, err)
	opt.Recorder = rec
	page := console.New(c, opt)
	t.Cleanup(func() { assert.NoError(t, page.Close()) })
	// Below a path, as most will have it.
	return shown{c, page, serve(t, http.StripPrefix("/ops/gate", page)) + "/ops/gate/"}
}

func (s shown) call(t *testing.T, call coordinator.Call) error {
	t.Helper()
	return s.Do(t.Context(), call, func(context.Context) error { return nil })
}

// settled waits until the page knows of so many providers in use: one look at the
// coordinator serves all who ask within a quarter of a second.
func (s shown) settled(t *testing.T, n int) {
	t.Helper()
	require.Eventually(t, func() bool {
		res, err := http.Get(s.url + "api/state")
		if err != nil {
			return false
		}
		defer res.Body.Close()
		var status console.Status
		return json.NewDecoder(res.Body).Decode(&status) == nil && status.Total == n
	}, patience, 20*time.Millisecond)
}

const live = `document.getElementById("live").dataset.live === "stream"`

// What changes in a coordinator shows within a second: the limit is that of the wait.
func TestChangeShowsWithinASecond(t *testing.T) {
	s := show(t, console.Options{}, provider.Provider{Slug: "acme", Name: "Acme", Throttle: provider.Throttle{RPM: 60}})
	require.NoError(t, s.call(t, coordinator.Call{Provider: "acme"}))
	x := open(t)
	x.do(chromedp.Navigate(s.url))
	x.wait(live, patience)
	x.wait(`document.querySelector("#p-acme .num")?.innerText === "1 / 60"`, patience)
	for i := range 3 {
		begin := time.Now()
		require.NoError(t, s.call(t, coordinator.Call{Provider: "acme"}))
		x.soon(fmt.Sprintf(`document.querySelector("#p-acme .num")?.innerText === "%d / 60"`, i+2))
		t.Logf("a call was shown after %s", time.Since(begin).Round(time.Millisecond))
	}
	require.NoError(t, s.Pause("acme", time.Now().Add(time.Hour), "maintenance"))
	x.soon(`document.querySelector("#p-acme .pill")?.innerText === "Paused"`)
	assert.Contains(t, x.text("#p-acme"), "maintenance")
	assert.Regexp(t, `ends in (1 h|59 min)`, x.text("#p-acme .until"))
	assert.Equal(t, "1\u00a0provider is paused", x.text("#headline"))
	assert.Equal(t, "1\u00a0provider is paused", eval[string](x, `document.getElementById("news").textContent`), "read aloud")
	require.NoError(t, s.Resume("acme"))
	x.soon(`document.querySelector("#p-acme .pill")?.innerText === "Busy"`)
}

// Panels open in place, stay open while news comes, and what has the focus keeps it.
func TestPanelStaysOpen(t *testing.T) {
	s := show(t, console.Options{},
		provider.Provider{Slug: "acme", Name: "Acme", Throttle: provider.Throttle{RPM: 60}}, provider.Provider{Slug: "beta", Throttle: provider.Throttle{RPM: 60}})
	require.NoError(t, s.call(t, coordinator.Call{Provider: "acme"}))
	require.NoError(t, s.call(t, coordinator.Call{Provider: "beta"}))
	x := open(t)
	x.do(chromedp.Navigate(s.url))
	x.wait(live, patience)
	x.do(chromedp.Click(chromedp.CSS("#p-acme .toggle")))
	x.wait(`document.querySelector("#d-acme")`, patience)
	assert.Contains(t, eval[string](x, "location.search"), "open=acme")
	assert.Equal(t, "true", eval[string](x, `document.querySelector("#p-acme .toggle").getAttribute("aria-expanded")`))
	x.wait(live, patience)
	eval[chromedp.Void](x, `document.querySelector("#p-acme .toggle").focus(); window.before = document.activeElement`)
	require.NoError(t, s.call(t, coordinator.Call{Provider: "acme"}))
	x.wait(`document.querySelector("#d-acme .totals")?.innerText.includes("2 attempts went")`, patience)
	assert.True(t, eval[bool](x, `document.activeElement === window.before && window.before.isConnected`))
	// An urgent one comes first, and is the same element as before.
	require.NoError(t, s.Pause("beta", time.Now().Add(time.Hour), "maintenance"))
	x.wait(`document.querySelector("#rows > article").id === "p-beta"`, patience)
	assert.True(t, eval[bool](x, `document.activeElement === window.before && document.querySelector("#d-acme") !== null`))
	x.do(chromedp.Click(chromedp.CSS("#p-acme .toggle")))
	x.wait(`!document.querySelector("#d-acme")`, patience)
	eval[chromedp.Void](x, "history.back()")
	x.wait(`document.querySelector("#d-acme")`, patience)
}

// Close ends the stream: the page goes on with questions. When nobody answers any more
// it says so.
func TestPageWithoutStream(t *testing.T) {
	s := show(t, console.Options{}, provider.Provider{Slug: "acme", Throttle: provider.Throttle{RPM: 60}})
	require.NoError(t, s.call(t, coordinator.Call{Provider: "acme"}))
	server := httptest.NewServer(s.page)
	defer server.Close()
	x := openQuiet(t) // the streams that are refused are told in its console
	x.do(chromedp.Navigate(server.URL))
	x.wait(live, patience)
	require.NoError(t, s.page.Close())
	x.wait(`document.getElementById("live").dataset.live === "poll"`, patience)
	require.NoError(t, s.call(t, coordinator.Call{Provider: "acme"}))
	x.wait(`document.querySelector("#p-acme .num")?.innerText === "2 / 60"`, patience)
	for _, complaint := range x.heard() {
		assert.Contains(t, complaint, "503")
	}
	server.CloseClientConnections()
	server.Close()
	x.wait(`document.getElementById("live").dataset.live === "lost"`, patience)
	assert.Regexp(t, `No answer since\s+\d\d:\d\d:\d\d`, x.text("#live"))
	assert.Contains(t, x.text("#p-acme"), "2 / 60", "the last state stays")
}

func TestCoordinatorThatIsShutDown(t *testing.T) {
	s := show(t, console.Options{Actions: true}, provider.Provider{Slug: "acme", Throttle: provider.Throttle{RPM: 60}})
	require.NoError(t, s.call(t, coordinator.Call{Provider: "acme"}))
	x := open(t)
	x.do(chromedp.Navigate(s.url + "?open=acme"))
	x.wait(live, patience)
	x.wait(`document.querySelector("#d-acme .acts")`, patience)
	require.NoError(t, s.Shutdown(t.Context()))
	x.soon(`document.getElementById("headline")?.innerText.includes("Shut down: no call goes any more")`)
	x.wait(`!document.querySelector("#d-acme .acts")`, patience)
	assert.Contains(t, x.text("#p-acme"), "1 / 60", "the last state stays")
	x.do(chromedp.Reload())
	assert.Contains(t, x.text("#headline"), "Shut down")
}
