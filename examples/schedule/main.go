// Command schedule fetches sources at intervals of an hour to a week, which hold over
// restarts: when each is due is kept in a file, and what its provider's limits have
// counted in a ledger.
//
//	go run ./examples/schedule
//
// It is offline by default and plays a week in half a minute, with a stop of 30 hours in
// the middle: a referee plays the providers, counts every call that breaks a limit, and
// has one fetch in eight fail. -live fetches the real ones. See schedule -h.
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

func main() { os.Exit(stage.Main("schedule", start)) }

func start(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	if err != nil {
		fmt.Fprintf(stderr, "schedule: %v (schedule -h tells more)\n", err)
		return stage.ErrUsage
	}
	l, err := readList(o.list)
	if err != nil {
		fmt.Fprintf(stderr, "schedule: %v\n", err)
		return stage.ErrUsage
	}
	return o.run(ctx, l, stdout, stderr)
}
