// Package stage is what the examples play their providers on: a server on loopback
// (or in memory, for tests), a network that delays, and a speed at which the played
// time passes.
//
// Not in it: what a provider answers (each example plays its own), and what is a
// violation (package referee judges).
package stage

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/internal/referee"
)

// Stage is a server for one example and a client that reaches it. Make one with
// [Open]. Its methods are safe for concurrent use.
type Stage struct {
	server   http.Server
	listener net.Listener
	base     *http.Transport
	running  sync.WaitGroup
}

// Loopback returns a listener on a free port of this machine.
func Loopback() (net.Listener, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("no place on loopback for the played provider: %w", err)
	}
	return l, nil
}

// Open serves h on l until Close.
func Open(l net.Listener, h http.Handler) *Stage {
	s := &Stage{listener: l, base: &http.Transport{MaxIdleConnsPerHost: 1 << 20, DisableCompression: true}}
	if p, ok := l.(*referee.PipeListener); ok {
		s.base.DialContext = p.DialContext
	}
	s.server.Handler = h
	s.running.Go(func() { _ = s.server.Serve(l) }) // ends by Close; its error says no more than that
	return s
}

// URL returns the address of the server, without a slash at its end.
func (s *Stage) URL() string { return "http://" + s.listener.Addr().String() }

// Base returns a transport that reaches the server, and keeps its connections until
// Close. Always the same one.
func (s *Stage) Base() *http.Transport { return s.base }

// Close ends the server and its connections, and waits for the server. Requests
// that are being served are cut off.
func (s *Stage) Close() {
	s.server.Close()
	s.running.Wait()
	s.base.CloseIdleConnections()
}

// Network delays requests and answers evenly between two bounds, each way. The
// zero value does not delay. It is safe for concurrent use.
type Network struct{ Min, Max time.Duration }

// At returns the network at a speed.
func (n Network) At(speed float64) Network {
	return Network{Shorten(n.Min, speed), Shorten(n.Max, speed)}
}

// Pass waits one delay; false: ctx ended first.
func (n Network) Pass(ctx context.Context) bool {
	d := n.Min
	if n.Max > n.Min {
		d += rand.N(n.Max - n.Min)
	}
	return Sleep(ctx, d)
}

// Sleep tells whether d passed before ctx ended.
func Sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Speed defines the flag -speed of an example whose default is n. It refuses what is
// no number above 0.
func Speed(set *flag.FlagSet, n float64) *float64 {
	speed := &n
	set.Func("speed", fmt.Sprintf("let the played time pass `N` times as fast (default %g)", n), func(s string) error {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil || !(f > 0) || math.IsInf(f, 0) {
			return errors.New("want a number above 0")
		}
		*speed = f
		return nil
	})
	return speed
}

// Parse parses the arguments of an example that takes flags only, and refuses
// others. Usage and faults go to the set's output.
func Parse(set *flag.FlagSet, args []string) error {
	if err := set.Parse(args); err != nil {
		return err
	}
	if set.NArg() > 0 {
		err := fmt.Errorf("%s: want flags only", strings.Join(set.Args(), " "))
		fmt.Fprintln(set.Output(), err)
		return err
	}
	return nil
}

// ParseQuietly is Parse for an example that tells faults itself: nothing is written but
// usage and the flags, to help, where they are asked for.
func ParseQuietly(set *flag.FlagSet, args []string, usage string, help io.Writer) error {
	set.SetOutput(io.Discard)
	if err := set.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			fmt.Fprint(help, usage)
			set.SetOutput(help)
			set.PrintDefaults()
		}
		return err
	}
	if set.NArg() > 0 {
		return fmt.Errorf("%s: want flags only", set.Arg(0))
	}
	return nil
}

// Percent writes a share of a whole; "–" where there is no whole.
func Percent(part, whole float64) string {
	if whole <= 0 {
		return "–"
	}
	return fmt.Sprintf("%.0f %%", 100*part/whole)
}
