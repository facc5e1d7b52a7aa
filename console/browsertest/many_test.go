package browsertest

import (
	"context"
	"fmt"
	"math"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/console"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// many is a coordinator of so many providers with ten keys each, all in use.
func many(t *testing.T, n int) shown {
	t.Helper()
	ps := make([]provider.Provider, n)
	for i := range ps {
		ps[i] = provider.Provider{Slug: fmt.Sprintf("p%04d", i), Name: fmt.Sprintf("Provider %d", i), Category: "load", Throttle: provider.Throttle{
			RPS: 10, Limits: []provider.Limit{{Name: "hour", Max: 10_000, Per: "1h"}, {Name: "key", Max: 100, Per: "1m", Scope: provider.ScopeKey}},
		}}
	}
	s := show(t, console.Options{}, ps...)
	for i := range ps {
		for k := range 10 {
			require.NoError(t, s.call(t, coordinator.Call{Provider: ps[i].Slug, Key: fmt.Sprintf("KEY_%d", k)}))
		}
	}
	return s
}

// busy makes calls to all of them until the end of the test.
func (s shown) busy(t *testing.T, n int) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	all.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			_ = s.Do(ctx, coordinator.Call{Provider: fmt.Sprintf("p%04d", i%n), Key: "KEY_1", Wait: -1}, func(context.Context) error { return nil })
			select {
			case <-time.After(time.Millisecond):
			case <-ctx.Done():
			}
		}
	})
	t.Cleanup(func() {
		stop()
		all.Wait()
	})
}

// A thousand providers with ten thousand keys (under the race detector, which makes all
// ten times as slow, a tenth of that): something is to be seen within a second, and search,
// pages, panels and the stream are of use while calls go.
func TestThousandProviders(t *testing.T) {
	n := 1000
	if underRace {
		n = 100
	}
	s := many(t, n)
	s.busy(t, n)
	x := open(t)
	const paint = `performance.getEntriesByName("first-contentful-paint")[0]`
	best := math.Inf(1)
	for range 3 {
		x.do(chromedp.Navigate(s.url))
		x.wait(paint, patience)
		took := eval[float64](x, paint+".startTime")
		best = min(best, took)
		t.Logf("%d providers, %d keys: first contentful paint after %.0f ms, %d elements, %d KiB of HTML", n, 10*n, took,
			eval[int](x, `document.querySelectorAll("*").length`), eval[int](x, `performance.getEntriesByType("navigation")[0].decodedBodySize`)/1024)
	}
	if !underRace {
		assert.Less(t, best, 1000.0, "ms until something is to be seen, the best of three: the machine may be busy")
	}
	x.wait(live, patience)
	assert.Equal(t, 50, eval[int](x, `document.querySelectorAll("#rows > article").length`), "as many rows as a page has")
	assert.Contains(t, x.text("#pager"), "1–50 of ")

	x.do(chromedp.SendKeys(chromedp.CSS("#q"), "vider 77"))
	x.wait(fmt.Sprintf(`document.querySelectorAll("#rows > article").length === %d`, map[int]int{100: 1, 1000: 11}[n]), patience) // 77, and 770 to 779
	x.wait(live, patience)
	x.do(chromedp.Click(chromedp.CSS("#p-p0077 .toggle")))
	x.wait(`document.querySelectorAll("#d-p0077 .keys > li").length === 10`, patience)
	eval[chromedp.Void](x, `document.getElementById("q").value = ""; document.getElementById("q").dispatchEvent(new Event("input"))`)
	x.wait(`document.querySelectorAll("#rows > article").length === 50`, patience)
	x.do(chromedp.ScrollIntoView(chromedp.CSS("[rel=next]")), chromedp.Click(chromedp.CSS("[rel=next]")))
	x.wait(`document.querySelector("#pager")?.innerText.includes("51–100 of ")`, patience)
	x.wait(live, patience)
	before := x.text("#at")
	x.wait(fmt.Sprintf(`document.getElementById("at").innerText !== %q`, before), patience)
}

// A hundred tabs of one browser, ten of which are to be seen: a few of these have
// streams, the others ask now and then, those behind do nothing, and one more page can
// be loaded and is kept up to date.
func TestHundredTabs(t *testing.T) {
	s := show(t, console.Options{}, provider.Provider{Slug: "acme", Throttle: provider.Throttle{RPH: 600}}) // of an hour: to open the tabs may take minutes
	require.NoError(t, s.call(t, coordinator.Call{Provider: "acme"}))
	b := &bouncer{next: s.page}
	s.url = serve(t, b) + "/"
	x := openQuiet(t)
	inside := chromedp.FromContext(x).BrowserContextID
	for range 90 {
		_, err := chromedp.CallBrowser(x, target.CreateTarget, target.CreateTargetParams{URL: s.url + "?q=behind", BrowserContextID: inside, Background: new(true)})
		require.NoError(t, err)
	}
	for range 9 {
		openQuiet(t, chromedp.WithExistingBrowserContext(inside)).do(chromedp.Navigate(s.url)) // a window of its own
	}
	require.Eventually(t, func() bool { return b.loaded.Load() == 99 }, patience, 10*time.Millisecond)
	x.do(chromedp.Navigate(s.url))
	require.NoError(t, s.call(t, coordinator.Call{Provider: "acme"}))
	call(x, page.BringToFront, cdp.Empty{})
	x.wait(`document.querySelector("#p-acme .num")?.innerText === "2 / 600"`, patience)
	t.Logf("100 tabs: at most %d streams at once", b.most.Load())
	assert.Positive(t, b.most.Load())
	assert.LessOrEqual(t, b.most.Load(), int64(4), "a browser has six connections to a server")
	assert.Zero(t, b.behind.Load(), "a tab that nobody sees asks nothing")
}

// bouncer counts what pages ask for.
type bouncer struct {
	next                       http.Handler
	loaded, open, most, behind atomic.Int64
}

func (b *bouncer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch path := r.URL.Path; {
	case path == "/":
		defer b.loaded.Add(1)
	case path == "/events" || path == "/rows":
		if r.URL.Query().Get("q") == "behind" {
			b.behind.Add(1)
		}
		if path == "/rows" {
			break
		}
		n := b.open.Add(1)
		defer b.open.Add(-1)
		for old := b.most.Load(); n > old && !b.most.CompareAndSwap(old, n); old = b.most.Load() {
		}
	}
	b.next.ServeHTTP(w, r)
}
