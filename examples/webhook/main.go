// Command webhook delivers events to 10,000 destinations, each with a limit of its
// own, through one coordinator.
//
//	go run ./examples/webhook
//
// The limits have the scope key, and a call's key is the host that it goes to. A
// destination that has a backlog, asks for time or is down makes its own events
// wait, and no others; one that is idle is forgotten.
//
// It is offline: the destinations are played on loopback, and a referee judges what
// arrives at each.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"github.com/headgate/headgate/examples/internal/stage"
)

func main() { os.Exit(stage.Main("webhook", start)) }

// The bounds of -destinations: fewer have no room for every kind, more are above
// what a small machine delivers in the time.
const least, most = 100, 20_000

func start(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	set := flag.NewFlagSet("webhook", flag.ContinueOnError)
	set.SetOutput(stderr)
	n := set.Int("destinations", 10_000, fmt.Sprintf("deliver to `N` destinations, %d to %d", least, most))
	if err := stage.Parse(set, args); err != nil {
		return errors.Join(stage.ErrUsage, err)
	}
	if *n < least || *n > most {
		fmt.Fprintf(stderr, "-destinations %d: want %d to %d\n", *n, least, most)
		return stage.ErrUsage
	}
	listener, err := stage.Loopback()
	if err != nil {
		return err
	}
	s, err := run(ctx, listener, *n)
	if err != nil {
		return err
	}
	s.write(stdout)
	return ctx.Err()
}
