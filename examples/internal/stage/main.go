package stage

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
)

// ErrUsage is wrong usage that has been told already.
var ErrUsage = errors.New("wrong usage")

// Main runs an example until it is done or interrupted and returns its exit code: 2
// after ErrUsage, 1 after any other error, which it tells.
func Main(name string, start func(ctx context.Context, args []string, stdout, stderr io.Writer) error) int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	switch err := start(ctx, os.Args[1:], os.Stdout, os.Stderr); {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, ErrUsage):
		return 2
	default:
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		return 1
	}
}
