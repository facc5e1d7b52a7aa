// Package console is a status page: what a Coordinator is doing now, as one page for
// people and as JSON for programs, behind one http.Handler.
//
//	var rec console.Recorder
//	c, err := coordinator.New(coordinator.Config{Traces: []*coordinator.Trace{rec.Trace()}})
//	page := console.New(c, console.Options{Recorder: &rec})
//	defer page.Close()
//	mux.Handle("/headgate/", http.StripPrefix("/headgate", page))
//
// The page is written on the server, so a browser without JavaScript shows all of
// it; one with it is kept up to date by server-sent events. Its addresses are
// relative: it works below any path. Paths and fields are listed at [Console] and
// [Status].
//
// It asks for no password. Put it behind what your other internal pages are behind,
// or give it Options.Authorize, before you bind it to more than the loopback
// address; all the more with Options.Actions. Without either, a foreign site whose name
// is made to resolve to that address (DNS rebinding) counts as the page's own: check the
// Host where that matters. It shows names and numbers, never a key or the text of an
// error's cause.
//
// Not in it: metrics (package telemetry), logs (package tracelog), a listener.
package console

import (
	"cmp"
	"log/slog"
	"net/http"
	"path"
	"sync"
	"sync/atomic"
	"time"

	"github.com/headgate/headgate/coordinator"
)

// Options say what a Console shows and allows. The zero value is a read-only page.
type Options struct {
	// Title is the page's, to tell several programs apart. Default "Headgate".
	Title string
	// Recorder knows who waits, what was refused and what providers answered; its
	// Trace has to be in the Coordinator's Config. nil: the page leaves those out.
	Recorder *Recorder
	// Actions lets who can open the page pause and resume providers and set their
	// limits. Default: the page is read-only.
	Actions bool
	// Log is told of each action: who, what, before and after. nil: slog.Default().
	Log *slog.Logger
	// Authorize is asked for every request; false: it is answered 403. who names the
	// person in the log, beside the address. nil: everybody may.
	Authorize func(*http.Request) (who string, ok bool)
	// KeyName is how a key is shown, by its alias. nil: as it is where it is named
	// like a variable (VT_KEY_A), else by a fingerprint (#1f2e3d4c), for a program
	// that mistakes the key for its alias must not find it on a page.
	KeyName func(provider, alias string) string
	// MaxStreams bounds the open streams of events; the next one is answered 503, and
	// its page asks every few seconds instead. Default 64.
	MaxStreams int
	// Interval is the time between two looks at the Coordinator while a stream is open: a
	// change is shown that much later at most. Default 250ms. Looks are rarer where one
	// takes more than a twentieth of it.
	Interval time.Duration
}

// Console serves a Coordinator's state. It is made by [New] and safe for concurrent
// use.
//
//	GET  /                            the page; ?q= text, state= condition, page= number, open= slugs
//	GET  /api/state                   Status; q, state and page as above, per= providers on a page
//	GET  /api/providers/{slug}        Detail
//	GET  /events, /rows               what changed, for the page's own script
//	GET  /providers/{slug}/{action}   pause, resume or limits: the form (with Options.Actions)
//	POST /providers/{slug}/{action}   the action: token as the form has it, confirm=yes
//
// The Coordinator is looked at by one goroutine for all who look at the page: every
// Options.Interval while there are streams, else as often as the history of the last
// hour wants it, which is once a second at first and every 30 s after an hour.
// A client that does not read is dropped and holds up nobody. History takes 2 KB for
// each provider that was used.
type Console struct {
	c     *coordinator.Coordinator
	opt   Options
	guard guard
	mux   http.ServeMux

	latest  atomic.Pointer[snapshot]
	history history
	streams streams

	closing sync.Once
	closed  chan struct{}
	ended   sync.WaitGroup

	mu       sync.Mutex // held while a snapshot is taken
	declared *declarations
}

var _ http.Handler = (*Console)(nil)

// New returns the page of c. Close ends its goroutine.
func New(c *coordinator.Coordinator, opt Options) *Console {
	opt.Title = cmp.Or(opt.Title, "Headgate")
	if opt.MaxStreams <= 0 {
		opt.MaxStreams = 64
	}
	if opt.Interval <= 0 {
		opt.Interval = 250 * time.Millisecond
	}
	if opt.KeyName == nil {
		opt.KeyName = func(_, alias string) string { return aliasName(alias) }
	}
	k := &Console{c: c, opt: opt, guard: newGuard(), closed: make(chan struct{})}
	k.history.init(time.Now())
	k.streams.init(opt.MaxStreams)
	k.routes()
	k.take(0)
	k.ended.Go(k.watch)
	return k
}

// Close ends all streams and the goroutine that looks at the Coordinator, and waits
// for both; a client that does not read is dropped within 5 s. The page can be asked
// still, and is as fresh as ever, but has no streams, and history only of when it is
// asked. Call it before http.Server.Shutdown, which waits for streams. A second Close
// does nothing. It returns nil.
func (k *Console) Close() error {
	k.closing.Do(func() { close(k.closed) })
	k.ended.Wait()
	k.streams.drain()
	return nil
}

func (k *Console) routes() {
	k.mux.HandleFunc("GET /{$}", k.page)
	k.mux.HandleFunc("GET /rows", k.rows)
	k.mux.HandleFunc("GET /events", k.events)
	k.mux.HandleFunc("GET /api/state", k.apiState)
	k.mux.HandleFunc("GET /api/providers/{slug}", k.apiProvider)
	k.mux.HandleFunc("GET /style.css", asset(styleCSS, "text/css; charset=utf-8"))
	k.mux.HandleFunc("GET /app.js", asset(appJS, "text/javascript; charset=utf-8"))
	k.mux.HandleFunc("GET /providers/{slug}/{action}", k.form)
	k.mux.HandleFunc("POST /providers/{slug}/{action}", k.act)
}

// ServeHTTP implements http.Handler.
func (k *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	harden(w.Header())
	if srv, ok := r.Context().Value(http.ServerContextKey).(*http.Server); ok && srv.WriteTimeout == 0 {
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(answerTime)) // a stream has its own
	}
	if k.opt.Authorize != nil {
		who, ok := k.opt.Authorize(r)
		if !ok {
			http.Error(w, "console: you may not see this page", http.StatusForbidden)
			return
		}
		r = withWho(r, who)
	}
	if r.URL.Path == "" { // below a prefix, asked for without its slash: the page's addresses are relative
		w.Header().Set("Location", path.Base(pathAsked(r))+"/"+asked(r).address())
		w.WriteHeader(http.StatusPermanentRedirect)
		return
	}
	k.mux.ServeHTTP(w, r)
}
