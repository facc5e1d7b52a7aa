package browsertest

import (
	"testing"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/console"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// noScript is a tab of a browser without JavaScript.
func noScript(t *testing.T) *tab {
	t.Helper()
	x := open(t, wrongInput)
	call(x, emulation.SetScriptExecutionDisabled, emulation.SetScriptExecutionDisabledParams{Value: true})
	return x
}

// Without JavaScript the page shows the same: everything, with links and forms for
// search, filters and panels, and says how it is kept up to date.
func TestWithoutScript(t *testing.T) {
	s := show(t, console.Options{}, provider.Provider{Slug: "acme", Name: "Acme", Throttle: provider.Throttle{RPM: 60}},
		provider.Provider{Slug: "beta", Name: "Beta", Throttle: provider.Throttle{RPM: 60}}, provider.Provider{Slug: "new", Name: "Newcomer"})
	require.NoError(t, s.call(t, coordinator.Call{Provider: "acme"}))
	require.NoError(t, s.call(t, coordinator.Call{Provider: "beta"}))
	s.settled(t, 2)
	x := noScript(t)
	x.do(chromedp.Navigate(s.url))
	assert.Equal(t, "All providers take calls", x.text("#headline"))
	assert.Contains(t, x.text("#p-acme"), "1 / 60")
	assert.Equal(t, "still", eval[string](x, `document.getElementById("live").dataset.live`), "nothing runs")
	assert.Contains(t, eval[string](x, `document.querySelector("head noscript").innerHTML`), `http-equiv="refresh"`)

	x.do(chromedp.Click(chromedp.CSS("#p-acme .toggle")), chromedp.WaitVisible(chromedp.CSS("#d-acme")))
	assert.Contains(t, x.text("#d-acme .totals"), "1 attempt went")
	x.do(chromedp.SetValue(chromedp.CSS("#q"), "BET"), chromedp.Click(chromedp.CSS(".search button")), chromedp.WaitNotPresent(chromedp.CSS("#p-acme")))
	assert.Contains(t, x.text("#p-beta"), "Beta")
	assert.Contains(t, eval[string](x, "location.search"), "open=acme", "what was open is open still")
	x.do(chromedp.Click(chromedp.CSS(".empty a, .brand")), chromedp.WaitVisible(chromedp.CSS("#p-acme")))
	x.do(chromedp.Click(chromedp.CSS(`a[href*="state=unused"]`)), chromedp.WaitVisible(chromedp.CSS("#p-new")))
	assert.Equal(t, "Newcomer", x.text("#n-new"))
}

func TestActionsWithoutScript(t *testing.T) {
	s, log := guarded(t)
	x := noScript(t)
	pauseByHand(t, s, x)
	assert.True(t, s.paused(t))
	x.do(chromedp.Click(`//a[starts-with(., "Resume")]`), chromedp.WaitVisible(chromedp.CSS(".change")))
	assert.Contains(t, x.text(".change"), "a deploy")
	x.do(chromedp.Click(chromedp.CSS(".go")), chromedp.WaitVisible(chromedp.CSS("#p-acme")))
	assert.False(t, s.paused(t))
	x.do(chromedp.Click(`//a[starts-with(., "Set limits")]`), chromedp.WaitVisible(chromedp.CSS("#limits")),
		chromedp.SetValue(chromedp.CSS("#limits"), "providers: {acme: {throttle: {rpm: 0x}}}"), chromedp.Click(chromedp.CSS(".go")), chromedp.WaitVisible(chromedp.CSS(".wrong")))
	assert.Contains(t, x.text(".wrong"), "line 1, column")
	assert.Equal(t, "providers: {acme: {throttle: {rpm: 0x}}}", eval[string](x, `document.getElementById("limits").value`), "what was typed is kept")
	x.do(chromedp.SetValue(chromedp.CSS("#limits"), "providers: {acme: {throttle: {rpm: 90}}}"), chromedp.Click(chromedp.CSS(".go")), chromedp.WaitVisible(chromedp.CSS(".change")))
	assert.Contains(t, x.text(".change"), "rpm: 60 requests per minute")
	x.do(chromedp.Click(chromedp.CSS(".go")), chromedp.WaitVisible(chromedp.CSS("#p-acme")))
	assert.Contains(t, x.text("#p-acme"), "1 / 90")
	assert.Contains(t, x.text("#p-acme .tag"), "overridden")
	assert.Regexp(t, `(?s)action=pause.*action=resume.*action=limits.*before="?\[rpm: 60 requests per minute.*after="?\[rpm: 90`, log.String())
}
