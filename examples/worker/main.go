// Command worker is a pool of worker processes that take jobs from a queue (NATS
// JetStream) and do each by one call to a provider, within one budget.
//
//	go run ./examples/worker -processes 3 -jobs 60
//
// The queue keeps the jobs: whoever dies loses none. The ledger keeps the budget: the
// processes together never ask more than the provider takes. A job that could not go
// soon goes back to the queue with the delay that the refusal tells, so that no worker
// waits for it.
//
// It is offline: the queue's server is in the first process, and so is a referee that
// plays the provider and counts every call that breaks its limit. See worker -h.
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

func main() {
	if os.Getenv(asWorker) != "" {
		os.Exit(workerMain(os.Stdin, os.Stderr))
	}
	os.Exit(stage.Main("worker", start))
}

// start is the first process.
func start(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	o, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return err
	}
	if err != nil {
		fmt.Fprintf(stderr, "worker: %v (worker -h tells more)\n", err)
		return stage.ErrUsage
	}
	return newPool(o, stdout, stderr).run(ctx)
}
