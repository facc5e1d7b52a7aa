package browsertest

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/console"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

func minutely(slug string) provider.Provider {
	return provider.Provider{Slug: slug, Throttle: provider.Throttle{RPM: 60}}
}

// Each kind of change shows within a second, whatever is looked at.
func TestEachChangeShowsWithinASecond(t *testing.T) {
	s := show(t, console.Options{}, minutely("calm"), minutely("acme"), minutely("beta"), minutely("late"), minutely("off"),
		provider.Provider{Slug: "slow", Throttle: provider.Throttle{MaxInFlight: 1}})
	require.NoError(t, s.call(t, coordinator.Call{Provider: "acme"}))
	require.NoError(t, s.call(t, coordinator.Call{Provider: "calm"}))
	x := open(t)
	x.do(chromedp.Navigate(s.url + "?open=slow,acme"))
	x.wait(live, patience)
	x.wait(`document.querySelector("#p-acme")`, patience)

	require.NoError(t, s.call(t, coordinator.Call{Provider: "late"}))
	x.soon(`document.querySelector("#p-late .num")?.innerText === "1 / 60"`)
	require.NoError(t, s.Update("late", provider.Throttle{RPM: 70}))
	x.soon(`document.querySelector("#p-late .num")?.innerText === "1 / 70"`)
	require.NoError(t, s.Update("acme", provider.Throttle{RPM: 60, Excess: provider.Reject}))
	x.soon(`document.querySelector("#d-acme")?.innerText.includes("reject")`)
	require.NoError(t, s.call(t, coordinator.Call{Provider: "off"}))
	require.NoError(t, s.Update("off", provider.Throttle{RPM: 60, Off: []string{provider.Everything}}))
	x.soon(`document.querySelector("#p-off .pill")?.innerText === "Off"`)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range 3 {
		go func() {
			_ = s.Do(ctx, coordinator.Call{Provider: "slow", Flow: "night"}, func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		}()
	}
	x.soon(`document.querySelector("#p-slow .wait b")?.innerText === "2" && document.querySelector("#d-slow table")?.innerText.includes("night")`)
	require.Error(t, s.call(t, coordinator.Call{Provider: "slow", Wait: -1}))
	x.soon(`document.querySelector("#p-slow .errors")?.innerText === "1 refused" && document.querySelector("#d-slow .key")`)

	for range 6 {
		_ = s.Do(t.Context(), coordinator.Call{Provider: "beta"}, func(context.Context) error { return provider.Feedback{Outcome: provider.Failed}.Err(nil) })
	}
	x.soon(`document.querySelector("#p-beta .pill")?.innerText === "Circuit open"`)

	// With a filter, and with a search.
	x.do(chromedp.Click(chromedp.CSS(`a[href*="state=circuit_open"]`)))
	x.wait(`document.querySelectorAll("#rows > article").length === 1`, patience)
	x.wait(live, patience)
	x.do(chromedp.SendKeys(chromedp.CSS("#q"), "bet"))
	x.wait(`location.search.includes("q=bet")`, patience)
	x.wait(live, patience)
	require.NoError(t, s.Pause("beta", time.Now().Add(time.Hour), "maintenance"))
	x.soon(`document.querySelector("#pager")?.innerText.includes("No provider matches")`)
	// What shows everything leaves no text that is not searched for.
	x.do(chromedp.Click(chromedp.CSS("#pager a")))
	x.wait(`document.querySelector("#p-beta .pill")?.innerText === "Paused"`, patience)
	assert.Empty(t, eval[string](x, `document.getElementById("q").value`))
}

// The focus stays where it is, though its row becomes the most urgent, sections come
// into its panel, and conditions come before the filter that has it.
func TestFocusStays(t *testing.T) {
	s := show(t, console.Options{Actions: true}, minutely("acme"), minutely("beta"), minutely("calm"), minutely("new"))
	for _, slug := range []string{"acme", "beta", "calm"} {
		require.NoError(t, s.call(t, coordinator.Call{Provider: slug}))
	}
	x := open(t)
	focus := func(selector string) {
		eval[chromedp.Void](x, fmt.Sprintf(`(window.had = document.querySelector(%q)).focus(); window.href = had.getAttribute("href")`, selector))
	}
	const has = `document.activeElement === window.had && window.had.isConnected`
	x.do(chromedp.Navigate(s.url + "?open=calm"))
	x.wait(live, patience)
	x.wait(`document.querySelector("#d-calm .act")`, patience)
	focus("#d-calm .act")
	require.NoError(t, s.Pause("calm", time.Now().Add(time.Hour), "maintenance"))
	x.wait(`document.querySelector("#rows > article").id === "p-calm"`, patience)
	assert.True(t, eval[bool](x, has), "the row has moved up")
	require.NoError(t, s.Pause("beta", time.Now().Add(time.Hour), "maintenance"))
	require.NoError(t, s.Resume("calm"))
	x.wait(`document.querySelector("#rows > article:last-child").id === "p-calm"`, patience)
	assert.True(t, eval[bool](x, has), "and down")
	assert.Equal(t, "p-beta p-acme p-calm", eval[string](x, `[...document.querySelectorAll("#rows > article")].map(r => r.id).join(" ")`))

	focus(`#filters a[href*="state=busy"]`)
	_ = s.Do(t.Context(), coordinator.Call{Provider: "acme"}, func(context.Context) error { return provider.Feedback{Outcome: provider.Banned}.Err(nil) })
	x.wait(`document.querySelector('#filters a[href*="state=banned"]')`, patience)
	assert.True(t, eval[bool](x, has+` && had.getAttribute("href") === window.href`), "the filter is the same")

	x.do(chromedp.Navigate(s.url + "?open=new&state=unused"))
	x.wait(`document.querySelector("#d-new .act")`, patience)
	x.do(chromedp.Navigate(s.url + "?open=new&q=new"))
	x.wait(live, patience)
	focus("#d-new .act")
	require.NoError(t, s.call(t, coordinator.Call{Provider: "new", Key: "KEY_A"}))
	x.wait(`document.querySelector("#d-new .charts") && document.querySelector("#d-new .keys")`, patience)
	assert.True(t, eval[bool](x, has), "sections have come before it")
}

// What is selected stays so, text in a row can be selected, and a click beside the name opens the panel.
func TestTextCanBeSelected(t *testing.T) {
	s := show(t, console.Options{}, minutely("acme"))
	require.NoError(t, s.call(t, coordinator.Call{Provider: "acme"}))
	x := open(t)
	x.do(chromedp.Navigate(s.url))
	x.wait(live, patience)
	x.wait(`document.querySelector("#p-acme .num")`, patience)
	where := eval[[]float64](x, `(r => [r.left, r.right, (r.top + r.bottom) / 2])(document.querySelector("#p-acme .bar .name").getBoundingClientRect())`)
	mouse := func(kind input.DispatchMouseEventType, px float64) {
		call(x, input.DispatchMouseEvent, input.DispatchMouseEventParams{Type: kind, X: px, Y: where[2], Button: input.MouseButtonLeft, Buttons: 1, ClickCount: 1})
	}
	mouse(input.DispatchMouseEventTypeMousePressed, where[0]-1)
	mouse(input.DispatchMouseEventTypeMouseMoved, where[1]+1)
	mouse(input.DispatchMouseEventTypeMouseReleased, where[1]+1)
	assert.Equal(t, "rpm", eval[string](x, `String(getSelection()).trim()`))
	assert.False(t, eval[bool](x, `location.search.includes("open")`), "to select is not to open")
	require.NoError(t, s.call(t, coordinator.Call{Provider: "acme"}))
	x.wait(`document.querySelector("#p-acme .num")?.innerText === "2 / 60"`, patience)
	assert.Equal(t, "rpm", eval[string](x, `String(getSelection()).trim()`))
	x.do(chromedp.Click(chromedp.CSS("#p-acme .wait")))
	x.wait(`document.querySelector("#d-acme")`, patience)
}

// Everything that can be used is reached with the tab key, and is seen when it is.
func TestByKeyboardAlone(t *testing.T) {
	s := show(t, console.Options{Actions: true}, minutely("acme"), minutely("beta"))
	require.NoError(t, s.call(t, coordinator.Call{Provider: "acme"}))
	s.settled(t, 1)
	x := open(t)
	x.do(chromedp.Navigate(s.url))
	x.wait(live, patience)
	var reached []string
	for range 40 {
		x.do(chromedp.KeyEvent(kb.Tab))
		at := eval[[]string](x, `(e => {
			if (e === document.body) return [];
			const s = getComputedStyle(e), b = getComputedStyle(e.closest(".line") ?? e), r = e.getBoundingClientRect();
			const seen = r.width > 4 && r.height > 4 && r.top >= 0 && s.clipPath === "none" && (s.outlineStyle !== "none" || b.outlineStyle !== "none");
			return [(e.innerText || e.id).replace(/\s*\d*$/, ""), String(seen)];
		})(document.activeElement)`)
		if len(at) == 0 {
			break
		}
		assert.Equal(t, "true", at[1], "it is not seen that %q has the focus", at[0])
		reached = append(reached, at[0])
		if at[0] == "acme" && len(reached) < 20 {
			x.do(chromedp.KeyEvent(kb.Enter))
			x.wait(`document.querySelector("#d-acme")`, patience)
		}
	}
	assert.Equal(t, "Skip to the providers, Headgate, q, All, Busy, Not used yet, acme, Pause…, Resume…, Set limits…, The same as JSON", strings.Join(reached, ", "))
	x.do(chromedp.KeyEvent("/"))
	assert.Equal(t, "q", eval[string](x, "document.activeElement.id"))
}

// The page outlives the program that serves it: what is clicked meanwhile is shown as
// soon as there is an answer, and the page is live again with the next process.
func TestServerIsRestarted(t *testing.T) {
	s := show(t, console.Options{}, minutely("acme"))
	require.NoError(t, s.call(t, coordinator.Call{Provider: "acme"}))
	first := httptest.NewServer(s.page)
	addr := first.Listener.Addr().String()
	x := openQuiet(t)
	x.do(chromedp.Navigate(first.URL))
	x.wait(live, patience)
	first.Listener.Close()
	first.CloseClientConnections()
	x.wait(`document.getElementById("live").dataset.live === "lost"`, patience)
	assert.Contains(t, eval[string](x, `document.getElementById("news").textContent`), "No answer", "read aloud")
	eval[chromedp.Void](x, `window.same = true`)
	x.do(chromedp.Click(chromedp.CSS("#p-acme .toggle")))
	x.wait(`location.search.includes("open=acme")`, patience)
	x.wait(`document.getElementById("live").dataset.live === "lost"`, patience)
	assert.True(t, eval[bool](x, `window.same && document.querySelector("#p-acme") !== null`), "the last state is there still")

	next := show(t, console.Options{}, minutely("acme"))
	require.NoError(t, next.call(t, coordinator.Call{Provider: "acme"}))
	require.NoError(t, next.call(t, coordinator.Call{Provider: "acme"}))
	l, err := net.Listen("tcp", addr)
	require.NoError(t, err)
	server := &http.Server{Handler: next.page, ReadHeaderTimeout: patience}
	go func() { _ = server.Serve(l) }()
	t.Cleanup(func() { _ = server.Close() })
	x.wait(live+` && document.querySelector("#p-acme .num")?.innerText === "2 / 60" && document.querySelector("#d-acme")`, patience)
	assert.True(t, eval[bool](x, `window.same`))
}

// Whoever may see the page no more is told so at the next click, by the server itself:
// that may be a page to log in.
func TestPageIsRefused(t *testing.T) {
	var out atomic.Bool
	s := show(t, console.Options{Authorize: func(*http.Request) (string, bool) { return "", !out.Load() }}, minutely("acme"))
	require.NoError(t, s.call(t, coordinator.Call{Provider: "acme"}))
	x := openQuiet(t)
	x.do(chromedp.Navigate(s.url))
	x.wait(live, patience)
	out.Store(true)
	x.do(chromedp.Click(chromedp.CSS("#p-acme .toggle")), chromedp.WaitVisible(chromedp.CSS("pre")))
	assert.Contains(t, x.text("pre"), "you may not see this page")
}

// A browser whose clock is wrong shows the server's times.
func TestClockOfTheBrowserIsWrong(t *testing.T) {
	s := show(t, console.Options{}, minutely("acme"))
	require.NoError(t, s.call(t, coordinator.Call{Provider: "acme"}))
	require.NoError(t, s.Pause("acme", time.Now().Add(2*time.Hour-time.Minute), "maintenance"))
	x := open(t)
	call(x, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: `{ const now = Date.now; Date.now = () => now() - 86400000 }`})
	x.do(chromedp.Navigate(s.url))
	x.wait(live, patience)
	x.wait(`/^ends in 1 h 5\d min$/.test(document.querySelector("#p-acme .until")?.innerText)`, patience)
}
