package browsertest

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/console"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

const hostile = `<script>window.ran=1</script><img src=x onerror="window.ran=1">"'&`

// Names are shown, whoever gave them, and not run.
func TestNamesAreShownAndNotRun(t *testing.T) {
	long := strings.Repeat("long", 100)
	s := show(t, console.Options{Actions: true, Title: hostile, KeyName: func(_, alias string) string { return alias }},
		provider.Provider{Slug: "evil", Name: hostile, Category: hostile, Throttle: provider.Throttle{
			Limits: []provider.Limit{{Name: hostile, Max: 5, Per: "1h"}, {Name: "keyed", Max: 5, Per: "1h", Scope: provider.ScopeKey}, {Name: "requests", Max: 1, Per: "1h"}},
		}},
		provider.Provider{Slug: "long", Name: long, Throttle: provider.Throttle{Limits: []provider.Limit{{Name: long, Max: 5, Per: "1h"}}}},
	)
	require.NoError(t, s.call(t, coordinator.Call{Provider: "evil", Key: hostile, Flow: hostile, Endpoint: hostile}))
	require.Error(t, s.call(t, coordinator.Call{Provider: "evil", Key: hostile, Flow: hostile, Endpoint: hostile, Wait: -1}))
	require.NoError(t, s.call(t, coordinator.Call{Provider: "long"}))
	go func() { _ = s.call(t, coordinator.Call{Provider: "evil", Flow: hostile}) }() // waits
	require.Eventually(t, func() bool { st, err := s.State("evil"); return err == nil && st.Queue.Length == 1 }, patience, time.Millisecond)
	require.NoError(t, s.Pause("evil", time.Now().Add(50*time.Minute), hostile)) // less than it waits for
	x := open(t, wrongInput)
	x.do(chromedp.Navigate(s.url + "?open=evil,long"))
	x.wait(live, patience)
	check := func() {
		assert.True(t, eval[bool](x, `window.ran === undefined`))
		assert.Empty(t, eval[string](x, `[...document.querySelectorAll("script:not([src]), img, [onerror], [style], style")].map(e => e.outerHTML).join()`))
	}
	check()
	assert.Equal(t, hostile, x.text("#n-evil"))
	assert.Equal(t, long, x.text("#n-long"))
	for _, part := range []string{".sub", ".why", ".bars .name", ".keys", ".lines", "td.key + td", "table tbody tr td"} {
		assert.Contains(t, x.text("#p-evil "+part), hostile, part)
	}
	assert.Equal(t, hostile, eval[string](x, "document.title"))
	assert.Equal(t, 0, eval[int](x, "document.documentElement.scrollWidth - innerWidth"), "nothing is too wide")
	// What comes by the stream is not run either.
	require.NoError(t, s.Resume("evil"))
	x.wait(`document.querySelector("#p-evil .pill")?.innerText === "Quota spent"`, patience)
	check()
	// Nor what is typed and given back.
	x.do(chromedp.Navigate(s.url + "?q=" + url.QueryEscape(hostile)))
	check()
	assert.Equal(t, hostile, eval[string](x, `document.getElementById("q").value`))
	x.do(chromedp.Navigate(s.url+"providers/evil/pause"), chromedp.SetValue(chromedp.CSS("#for"), hostile), chromedp.SetValue(chromedp.CSS("#why"), hostile), chromedp.Click(chromedp.CSS(".go")),
		chromedp.WaitVisible(chromedp.CSS(".wrong")))
	check()
	assert.Equal(t, hostile, eval[string](x, `document.getElementById("for").value`))
}

// The policy is there and means what it says: no script, style or connection but the
// page's own.
func TestContentSecurityPolicy(t *testing.T) {
	s := show(t, console.Options{Actions: true}, provider.Provider{Slug: "acme", Throttle: provider.Throttle{RPM: 60}})
	require.NoError(t, s.call(t, coordinator.Call{Provider: "acme"}))
	s.settled(t, 1)
	x := open(t)
	res, err := chromedp.Run(x, chromedp.NavigateResponse(s.url+"?open=acme"))
	require.NoError(t, err)
	policy := fmt.Sprint(res.Headers["Content-Security-Policy"])
	assert.Contains(t, policy, "default-src 'none'")
	assert.NotContains(t, policy, "unsafe")
	x.wait(live, patience)
	for _, page := range []string{"providers/acme/pause", "providers/acme/resume", "providers/acme/limits"} {
		x.do(chromedp.Navigate(s.url + page))
	}
	assert.Empty(t, x.heard(), "no page of ours breaks it")

	y := openQuiet(t)
	y.do(chromedp.Navigate(s.url))
	eval[chromedp.Void](y, `{
		const s = document.createElement("script"); s.textContent = "window.ran = 1"; document.body.append(s);
		document.body.insertAdjacentHTML("beforeend", "<p id=styled style='color:red'>x</p><a id=js href='javascript:window.ran=1'>x</a>");
	}`)
	eval[chromedp.Void](y, `document.getElementById("js").click()`)
	y.wait(`window.ran === undefined`, patience)
	assert.NotEqual(t, "rgb(255, 0, 0)", eval[string](y, `getComputedStyle(document.getElementById("styled")).color`))
	assert.Equal(t, "refused", eval[string](y, fmt.Sprintf(`fetch(%q).then(() => "went", () => "refused")`, serve(t, http.NotFoundHandler()))))
	assert.NotEmpty(t, y.heard(), "and the browser says so")
}

// guarded is a coordinator with a page that allows actions, and what its log says.
func guarded(t *testing.T) (shown, *strings.Builder) {
	t.Helper()
	var log strings.Builder
	s := show(t, console.Options{Actions: true, Log: slog.New(slog.NewTextHandler(&log, nil))}, provider.Provider{Slug: "acme", Name: "Acme", Throttle: provider.Throttle{RPM: 60}})
	require.NoError(t, s.call(t, coordinator.Call{Provider: "acme"}))
	s.settled(t, 1)
	return s, &log
}

func (s shown) paused(t *testing.T) bool {
	t.Helper()
	state, err := s.State("acme")
	require.NoError(t, err)
	return len(state.Pauses) > 0
}

const pauseForm = `new URLSearchParams({for: "10m", why: "attack", confirm: "yes", token: window.token ?? ""})`

// Nothing is changed by GET, without a token, with another session's token, or from
// another origin, though the browser has a session.
func TestForeignRequestsChangeNothing(t *testing.T) {
	s, log := guarded(t)
	x := openQuiet(t) // what is refused is told in its console
	action := s.url + "providers/acme/pause"

	x.do(chromedp.Navigate(action + "?for=10m&why=attack&confirm=yes&token=x"))
	assert.Equal(t, "Pause Acme", x.text("h1"), "a GET shows the form")
	post := fmt.Sprintf(`fetch(%q, {method: "POST", body: %s, redirect: "manual"}).then(r => r.status)`, action, pauseForm)
	assert.Equal(t, http.StatusForbidden, eval[int](x, post), "without a token")
	eval[chromedp.Void](x, `window.token = "`+strings.Repeat("0", 64)+`"`)
	assert.Equal(t, http.StatusForbidden, eval[int](x, post), "a wrong token")
	_, token := someToken(t, action)
	eval[chromedp.Void](x, `window.token = "`+token+`"`)
	assert.Equal(t, http.StatusForbidden, eval[int](x, post), "the token of another session")
	for _, method := range []string{"PUT", "DELETE", "PATCH"} {
		assert.Equal(t, http.StatusMethodNotAllowed, eval[int](x, strings.Replace(post, `"POST"`, `"`+method+`"`, 1)), method)
	}
	assert.False(t, s.paused(t))

	// Another origin knows the token, and sends the form as a person would.
	x.do(chromedp.Navigate(action))
	token = eval[string](x, `document.querySelector("[name=token]").value`)
	attacker := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<form method=post action=%q><input name=for value=10m><input name=why value=attack><input name=confirm value=yes><input name=token value=%s></form>`, action, token)
	}))
	for _, from := range []string{attacker, strings.Replace(attacker, "127.0.0.1", "evil.test", 1)} {
		x.do(chromedp.Navigate(from))
		res, err := chromedp.RunResponse(x, chromedp.Submit(chromedp.CSS("form")))
		require.NoError(t, err)
		assert.Equal(t, int64(http.StatusForbidden), res.Status, from)
		assert.Contains(t, x.text("body"), "another origin")
	}
	assert.False(t, s.paused(t))
	assert.Empty(t, log.String())

	// The same from the page itself, so the refusals were for the reasons given.
	x.do(chromedp.Navigate(action))
	eval[chromedp.Void](x, `window.token = document.querySelector("[name=token]").value`)
	eval[int](x, post)
	assert.True(t, s.paused(t))
	assert.Contains(t, log.String(), "action=pause provider=acme")
}

// someToken gets a form as another browser would.
func someToken(t *testing.T, action string) (session, token string) {
	t.Helper()
	jar, err := cookiejar.New(nil)
	require.NoError(t, err)
	res, err := (&http.Client{Jar: jar}).Get(action)
	require.NoError(t, err)
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(body), `name="token" value="`)
	require.True(t, found)
	token, _, _ = strings.Cut(rest, `"`)
	return res.Header.Get("Set-Cookie"), token
}

// A page without TLS on a name of its own: the browser tells no Sec-Fetch-Site there,
// and the origin alone tells our forms from others'.
func TestActionsWithoutTLS(t *testing.T) {
	s, _ := guarded(t)
	s.url = strings.Replace(s.url, "127.0.0.1", "console.test", 1)
	pauseByHand(t, s, open(t, wrongInput))
	assert.True(t, s.paused(t))
}

// wrongInput is what the browser's console says of an answer to wrong input.
const wrongInput = "status of 422"

// pauseByHand pauses acme as a person does it.
func pauseByHand(t *testing.T, s shown, x *tab) {
	t.Helper()
	x.do(chromedp.Navigate(s.url+"?open=acme"), chromedp.Click(`//a[starts-with(., "Pause")]`),
		chromedp.WaitVisible(chromedp.CSS("#for")), chromedp.SetValue(chromedp.CSS("#for"), "yesterday"), chromedp.SetValue(chromedp.CSS("#why"), "a deploy"), chromedp.Click(chromedp.CSS(".go")),
		chromedp.WaitVisible(chromedp.CSS(".wrong")))
	assert.Contains(t, x.text(".wrong"), "For how long: want a length of time from 1s to 744h")
	x.do(chromedp.SetValue(chromedp.CSS("#for"), "2h"), chromedp.Click(chromedp.CSS(".go")), chromedp.WaitVisible(chromedp.CSS(".change")))
	assert.Equal(t, "Pause Acme?", x.text("h1"))
	assert.Contains(t, x.text(".change"), "a deploy")
	assert.False(t, s.paused(t), "it is to be confirmed")
	x.do(chromedp.Click(chromedp.CSS(".go")), chromedp.WaitVisible(chromedp.CSS("#p-acme")))
	assert.Equal(t, "Paused", x.text("#p-acme .pill"))
}
