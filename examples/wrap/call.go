package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

// geo is the declaration: what the provider says (45 a minute for an address, see
// https://ip-api.com/docs/unban), and one a second, which is our own courtesy.
var geo = provider.Provider{Slug: "ip-api", Throttle: provider.Throttle{RPS: 1, RPM: 45}}

// locator is the wrapped call.
type locator struct {
	c      *coordinator.Coordinator
	client *http.Client
	base   string
}

func newLocator(client *http.Client, base string) (*locator, error) {
	c, err := coordinator.New(coordinator.Config{Registry: new(registry.Registry), Providers: []provider.Provider{geo}})
	return &locator{c, client, base}, err
}

// locate asks where an address is. Wait is how long it may wait for its turn; see
// coordinator.Call. An error is a *coordinator.Error.
func (l *locator) locate(ctx context.Context, ip string, wait time.Duration) (string, error) {
	call := coordinator.Call{Provider: geo.Slug, Wait: wait, Replayable: true}
	return coordinator.Get(ctx, l.c, call, func(ctx context.Context) (string, error) {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.base+"/json/"+ip, nil)
		if err != nil {
			return "", err
		}
		res, err := l.client.Do(req)
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		body, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
		if err != nil {
			return "", err
		}
		return string(body), dialect.Read(geo.Dialect, res, body, time.Now()).Err(nil)
	})
}

// playCall locates addresses at the played provider.
func playCall(ctx context.Context, w io.Writer) error {
	played, err := play()
	if err != nil {
		return err
	}
	defer played.Close()
	err = run(ctx, w, played.Client(), played.URL(geo.Slug))
	fmt.Fprintf(w, "violations: %d in %d calls\n", played.Report(geo.Slug).Violated, played.Report(geo.Slug).Arrivals)
	return err
}

// play plays the provider with the limits that it declares.
func play() (*referee.Referee, error) {
	delay := referee.Delay{Min: 10 * time.Millisecond, Max: 100 * time.Millisecond}
	played, err := referee.New(1, referee.Play{Provider: geo, Go: delay, Back: delay, Answer: func(referee.Arrival) referee.Answer {
		return referee.Answer{Body: `{"status":"success","country":"Simulated"}`}
	}})
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		played.Close()
		return nil, err
	}
	played.Serve(listener)
	return played, nil
}

// run locates three addresses: at once, without waiting, and in its turn.
func run(ctx context.Context, w io.Writer, client *http.Client, base string) error {
	l, err := newLocator(client, base)
	if err != nil {
		return err
	}
	const noWait = -1
	for _, ask := range []struct {
		ip   string
		wait time.Duration
	}{{"1.1.1.1", 0}, {"8.8.8.8", noWait}, {"9.9.9.9", 0}} {
		start := time.Now()
		where, err := l.locate(ctx, ask.ip, ask.wait)
		var refusal *coordinator.Error
		switch {
		case errors.As(err, &refusal):
			fmt.Fprintf(w, "%s  refused: %v\n", ask.ip, refusal)
			fmt.Fprintf(w, "         asked %d times; it can go from %s on\n", refusal.Attempts, refusal.RetryAt.Format("15:04:05.000"))
		case err != nil:
			return err
		default:
			fmt.Fprintf(w, "%s  after %v: %s\n", ask.ip, time.Since(start).Round(10*time.Millisecond), where)
		}
	}
	return l.c.Shutdown(ctx)
}
