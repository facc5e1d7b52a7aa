// Command backpressure has a producer that is three times as fast as its provider
// slow down and speed up with the provider's queue.
//
//	go run ./examples/backpressure
//
// First a heedless producer, for comparison: its queue overflows, and what finds no
// place is refused. Then one that heeds (heed.go, which is all that a program needs):
// it looks at Coordinator.Pressure before each message, stops taking messages while
// the queue is over its mark, and is woken by Trace.Pressure. Messages that it does
// not take stay at the broker, where nothing is lost.
//
// It is offline: the provider is played on loopback, and a referee judges what
// arrives. There is no -live: a queue is filled to see it full, which no real
// provider is for.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/headgate/headgate/examples/internal/stage"
)

func main() { os.Exit(stage.Main("backpressure", start)) }

// The bounds of -messages: fewer fill no queue, more take minutes.
const least, most = 300, 6000

func start(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	set := flag.NewFlagSet("backpressure", flag.ContinueOnError)
	set.SetOutput(stderr)
	set.Usage = func() {
		fmt.Fprintln(stderr, "backpressure plays a provider on loopback; it asks no real one, so there is no -live")
		set.PrintDefaults()
	}
	n := set.Int("messages", 600, fmt.Sprintf("play `N` messages, %d to %d", least, most))
	if err := stage.Parse(set, args); err != nil {
		return errors.Join(stage.ErrUsage, err)
	}
	if *n < least || *n > most {
		fmt.Fprintf(stderr, "-messages %d: want %d to %d\n", *n, least, most)
		return stage.ErrUsage
	}
	table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "producer\tmessages\tanswered\trefused\tfailed\tqueue, at most\tstopped\telapsed\tused\tviolations\t")
	for _, heeds := range []bool{false, true} {
		listener, err := stage.Loopback()
		if err != nil {
			return err
		}
		s, err := run(ctx, listener, *n, heeds)
		if err != nil {
			return err
		}
		s.write(table)
	}
	table.Flush()
	return ctx.Err()
}
