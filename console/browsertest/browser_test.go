package browsertest

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write the screenshots into docs")

// patience bounds every wait for what has no bound of its own: the machine may be busy.
const patience = 60 * time.Second

// browser is the one of all tests; each test has tabs of its own in it.
var browser context.Context

func TestMain(m *testing.M) {
	flag.Parse()
	name, err := find()
	if err != nil {
		fmt.Fprintln(os.Stderr, "browsertest:", err)
		os.Exit(1)
	}
	folder, err := os.MkdirTemp("", "browsertest")
	if err != nil {
		fmt.Fprintln(os.Stderr, "browsertest:", err)
		os.Exit(1)
	}
	opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(name), chromedp.UserDataDir(folder), chromedp.NoSandbox, chromedp.DisableGPU,
		chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true), chromedp.Flag("hide-scrollbars", true),
		chromedp.Flag("font-render-hinting", "none"), chromedp.Flag("host-resolver-rules", "MAP *.test 127.0.0.1"))
	ctx, stop := chromedp.NewExecAllocator(context.Background(), opts...)
	browser, _ = chromedp.NewContext(ctx)
	code := 1
	if err := chromedp.Do(browser); err != nil { // starts it
		fmt.Fprintf(os.Stderr, "browsertest: %s does not start: %v\n", name, err)
	} else {
		code = m.Run()
	}
	_ = chromedp.Cancel(browser)
	stop()
	_ = os.RemoveAll(folder)
	os.Exit(code)
}

// find finds the browser. Without one nothing here is tested, and that is a failure.
func find() (string, error) {
	if name := os.Getenv("CHROME"); name != "" {
		found, err := exec.LookPath(name)
		if err != nil {
			err = fmt.Errorf("no browser: CHROME is %q: %w; want a Chromium's path, or leave it out", name, err)
		}
		return found, err
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			return found, nil
		}
	}
	return "", fmt.Errorf("no browser: want $CHROME, or one of chromium, chromium-browser, google-chrome; make setup installs it")
}

// tab is one page of the browser, and what it complained of.
type tab struct {
	context.Context
	t *testing.T

	mu         sync.Mutex
	complaints []string
}

// open returns a new tab, with cookies and storage of its own. A complaint in its
// console (an error, a breach of the content security policy) fails the test, but for
// those that say what is allowed.
func open(t *testing.T, allowed ...string) *tab {
	t.Helper()
	x := openQuiet(t)
	t.Cleanup(func() {
		for _, complaint := range x.heard() {
			assert.True(t, slices.ContainsFunc(allowed, func(a string) bool { return strings.Contains(complaint, a) }), complaint)
		}
	})
	return x
}

// openQuiet is open where complaints are expected.
func openQuiet(t *testing.T, opts ...chromedp.ContextOption) *tab {
	t.Helper()
	if opts == nil {
		opts = []chromedp.ContextOption{chromedp.WithNewBrowserContext()}
	}
	ctx, _ := chromedp.NewContext(browser, opts...)
	x := &tab{Context: ctx, t: t}
	require.NoError(t, chromedp.Listen(ctx, x.listen))
	call(x, cdplog.Enable, cdp.Empty{})
	t.Cleanup(func() { _ = chromedp.Cancel(ctx) })
	return x
}

func (x *tab) listen(ev any) {
	x.mu.Lock()
	defer x.mu.Unlock()
	switch e := ev.(type) {
	case *cdplog.EventEntryAdded:
		x.complaints = append(x.complaints, fmt.Sprintf("%s %s: %s", e.Entry.Source, e.Entry.Level, e.Entry.Text))
	case *runtime.EventExceptionThrown:
		x.complaints = append(x.complaints, "exception: "+e.ExceptionDetails.Text)
	case *runtime.EventConsoleAPICalled:
		x.complaints = append(x.complaints, fmt.Sprintf("console.%s", e.Type))
	}
}

func (x *tab) heard() []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.complaints
}

func (x *tab) do(steps ...chromedp.Action[chromedp.Void]) {
	x.t.Helper()
	ctx, done := context.WithTimeout(x, patience)
	defer done()
	require.NoError(x.t, chromedp.Do(ctx, steps...))
}

// eval returns what an expression gives in the page.
func eval[T any](x *tab, expression string) T {
	x.t.Helper()
	got, err := chromedp.Run(x, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
	require.NoError(x.t, err, expression)
	return got
}

// wait waits until an expression is true in the page.
func (x *tab) wait(expression string, limit time.Duration) {
	x.t.Helper()
	_, err := chromedp.Run(x, chromedp.Poll[bool]("!!("+expression+")", chromedp.WithPollingTimeout(limit), chromedp.WithPollingMutation()))
	if err != nil {
		require.NoError(x.t, err, "%s\nthe page:\n%s", expression, eval[string](x, "document.body.innerText"))
	}
}

// soon waits as long as a change may take to be shown: a second, of which the race
// detector, that makes all ten times as slow, is given three (make test runs these tests
// without it, too).
func (x *tab) soon(expression string) {
	x.t.Helper()
	limit := time.Second
	if underRace {
		limit *= 3
	}
	x.wait(expression, limit)
}

func call[P, R any](x *tab, cmd cdp.Command[P, R], params P) R {
	x.t.Helper()
	res, err := chromedp.Call(x, cmd, params)
	require.NoError(x.t, err)
	return res
}

// serve serves h on a loopback port until the end of the test.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// text is what a person reads of an element.
func (x *tab) text(selector string) string {
	x.t.Helper()
	return eval[string](x, fmt.Sprintf("document.querySelector(%q)?.innerText ?? ''", selector))
}
