package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/google/go-github/v93/github"
	"golang.org/x/sync/errgroup"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
	"github.com/headgate/headgate/transport"
)

// declaration is what GitHub says of its limits and of its answers.
//
//go:embed github.yaml
var declaration []byte

// newSDK returns a stock go-github client whose requests go through c. The one line
// is the transport. The SDK has a guard of its own, which is switched off: once
// nothing remains it refuses every call by itself until the reset, where Headgate
// waits.
func newSDK(c *coordinator.Coordinator, base http.RoundTripper, more ...github.ClientOptionsFunc) (*github.Client, error) {
	return github.NewClient(append(more,
		github.WithTransport(&transport.Transport{Coordinator: c, Base: base}),
		github.WithDisableRateLimitCheck(),
	)...)
}

// The job of the played run: more than is left of the hour, and more searches than
// any minute has. Each half has workers of its own.
const (
	issues, comments, searches = 40, 8, 60
	workers                    = 4
)

// playSDK does the job at the played GitHub.
func playSDK(ctx context.Context, w io.Writer, listener net.Listener, speed float64) error {
	declared, err := provider.Parse(declaration)
	if err != nil {
		return err
	}
	h, declared, err := newHub(declared, speed)
	if err != nil {
		return err
	}
	defer h.judge.Close()
	played := stage.Open(listener, h)
	defer played.Close()
	declared.BaseURL = played.URL()

	told := &log{w: w, begin: h.begin}
	c, err := coordinator.New(coordinator.Config{
		Registry: new(registry.Registry), Providers: []provider.Provider{declared}, Traces: []*coordinator.Trace{told.hooks()},
	})
	if err != nil {
		return err
	}
	url := played.URL() + "/"
	client, err := newSDK(c, played.Base(), github.WithURLs(&url, nil))
	if err != nil {
		return err
	}
	told.printf("go-github at %g times the speed: an hour is %v; its quota comes back in %v", speed, h.short(time.Hour), h.short(hourLeft))
	failed := work(ctx, client)
	h.report(told, failed)
	return errors.Join(failed, c.Shutdown(ctx))
}

// work does the job and returns what failed of it.
func work(ctx context.Context, client *github.Client) error {
	var mu sync.Mutex
	var faults []error
	do := func(pending *errgroup.Group, call func() error) {
		pending.Go(func() error {
			if err := call(); err != nil {
				mu.Lock()
				defer mu.Unlock()
				faults = append(faults, err)
			}
			return nil
		})
	}
	var all sync.WaitGroup
	all.Go(func() {
		var pending errgroup.Group
		pending.SetLimit(workers)
		for n := range issues {
			do(&pending, func() error {
				_, _, err := client.Issues.Get(ctx, "golang", "go", n+1)
				return err
			})
			if n < comments {
				do(&pending, func() error {
					_, _, err := client.Issues.CreateComment(ctx, "headgate", "played", n+1, github.IssueCommentRequest{Body: "simulated"})
					return err
				})
			}
		}
		_ = pending.Wait() // no call returns an error here: faults has them
	})
	all.Go(func() {
		var pending errgroup.Group
		pending.SetLimit(workers)
		for n := range searches {
			do(&pending, func() error {
				_, _, err := client.Search.Issues(ctx, fmt.Sprintf("repo:golang/go %d", n), nil)
				return err
			})
		}
		_ = pending.Wait()
	})
	all.Wait()
	return errors.Join(faults...)
}

// report tells what became of the job, and what the referee and the hub counted.
func (h *hub) report(told *log, failed error) {
	elapsed := time.Since(h.begin)
	h.mu.Lock()
	defer h.mu.Unlock()
	all := "all answered"
	if failed != nil {
		all = "not all answered"
	}
	told.printf("%d issues, %d comments, %d searches: %s", issues, comments, searches, all)
	violations, out := h.violations()
	told.printf("violations: %d, sent while told to wait: %d, in %d calls", violations, h.early, h.calls)
	told.printf("GitHub refused %d for what nobody could know, %d of them out as another program took what was left", h.refused, out)
	told.printf("utilisation: %s: the quota was back after %v, and all was done after %v",
		stage.Percent(float64(h.short(hourLeft)), float64(elapsed)), h.short(hourLeft), elapsed.Round(10*time.Millisecond))
}

// log writes lines with the time since the beginning. It is safe for concurrent
// use.
type log struct {
	begin time.Time

	mu   sync.Mutex
	w    io.Writer
	last string
}

// printf writes a line, unless the last one was the same.
func (l *log) printf(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := fmt.Sprintf(format, args...)
	if line != l.last {
		fmt.Fprintf(l.w, "%6.2fs  %s\n", time.Since(l.begin).Seconds(), line)
	}
	l.last = line
}

// hooks tells of each pause.
func (l *log) hooks() *coordinator.Trace {
	return &coordinator.Trace{Paused: func(p coordinator.PauseChange) {
		what := cmp.Or(p.Name, p.Provider)
		if p.Until.IsZero() {
			l.printf("%s: open again", what)
			return
		}
		l.printf("%s: %s, nothing goes before %.2fs", what, p.Why, p.Until.Sub(l.begin).Seconds())
	}}
}

// read reads three issues at the real GitHub.
func read(ctx context.Context, w io.Writer, token string) error {
	declared, err := provider.Parse(declaration)
	if err != nil {
		return err
	}
	c, err := coordinator.New(coordinator.Config{Registry: new(registry.Registry), Providers: []provider.Provider{declared}})
	if err != nil {
		return err
	}
	var options []github.ClientOptionsFunc
	if token != "" {
		options = append(options, github.WithAuthToken(token))
	}
	client, err := newSDK(c, nil, options...)
	if err != nil {
		return err
	}
	for n := range 3 {
		issue, res, err := client.Issues.Get(ctx, "golang", "go", n+1)
		if err != nil {
			return err
		}
		fmt.Fprintf(w, "golang/go#%d  %s  (%d of %d calls remain)\n", issue.GetNumber(), issue.GetTitle(), res.Rate.Remaining, res.Rate.Limit)
	}
	return c.Shutdown(ctx)
}
