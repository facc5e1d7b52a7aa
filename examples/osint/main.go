// Command osint looks indicators up (IP addresses, domains, hashes) at every
// provider of the catalogue that takes their kind, through one coordinator: each
// provider at the pace that it allows, none waiting for another.
//
//	go run ./examples/osint
//
// It is offline by default: a referee plays the providers on loopback, enforces
// their declared limits exactly, and counts every call that breaks one. -live asks
// the real ones. See osint -h.
package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/headgate/headgate/adapters/catalog"
	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

//go:embed indicators.txt
var shipped string

// The exit codes.
const (
	exitOK          = 0
	exitFailed      = 1
	exitUsage       = 2
	exitInterrupted = 130
)

// maxComplaints bounds what is told of junk: somebody may give us a photograph.
const maxComplaints = 100

func main() {
	os.Exit(run(interruptible, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// interruptible returns a context that the first Ctrl-C ends. The second kills.
func interruptible() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	context.AfterFunc(ctx, stop)
	return ctx
}

// run is the program. It calls begin when all is read, and stops cleanly when that
// context ends; until then Ctrl-C ends it as it ends any program.
func run(begin func() context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	o, err := parse(args, stdout)
	if errors.Is(err, errHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(stderr, "osint: %v (osint -h tells more)\n", err)
		return exitUsage
	}
	r, err := o.read(stdin)
	if err != nil {
		fmt.Fprintf(stderr, "osint: %v\n", err)
		return exitUsage
	}
	complain(stderr, r.junk)
	if len(r.indicators) == 0 {
		fmt.Fprintln(stderr, "osint: nothing to look up: want IP addresses, domains, URLs or hashes")
		return exitUsage
	}
	told := stdout
	if o.json {
		told = stderr
	}
	code, err := lookUp(begin(), o, r, stdout, stderr, told)
	if err != nil {
		fmt.Fprintf(stderr, "osint: %v\n", err)
	}
	return code
}

func complain(w io.Writer, all []junk) {
	for i, j := range all {
		if i == maxComplaints {
			fmt.Fprintf(w, "osint: and %d more lines that are no indicators\n", len(all)-i)
			return
		}
		fmt.Fprintf(w, "osint: %s: skipped\n", j)
	}
}

// lookUp does the job on what was read. Told is where the table goes.
func lookUp(ctx context.Context, o options, r *reading, stdout, stderr, told io.Writer) (code int, err error) {
	declared, err := catalog.All()
	if err != nil {
		return exitFailed, err
	}
	targets, err := plan(declared, r.indicators)
	if err != nil {
		return exitFailed, err
	}
	out, closeOut, err := o.results(stdout)
	if err != nil {
		return exitUsage, err
	}
	defer func() {
		if e := closeOut(); e != nil && err == nil {
			code, err = exitFailed, e
		}
	}()
	fmt.Fprintln(told, described(r, targets))
	judge, err := o.stage(targets, told)
	if err != nil {
		return exitFailed, err
	}
	if judge != nil {
		defer judge.Close()
	}
	c, err := newCoordinator(targets)
	if err != nil {
		return exitFailed, err
	}
	s, err := perform(ctx, c, judge, targets, out, stderr)
	s.write(told)
	switch {
	case err != nil:
		return exitFailed, err
	case s.stopped:
		return exitInterrupted, nil
	case s.answered() == 0:
		return exitFailed, nil
	}
	if o.output == "" && !o.json {
		fmt.Fprintln(told, "answers: add -json or -o FILE to see them")
	}
	return exitOK, nil
}

// perform asks all targets and sums up.
func perform(ctx context.Context, c *coordinator.Coordinator, judge *referee.Referee, targets []*target, out *results, stderr io.Writer) (*summary, error) {
	runCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	b := newBoard(targets)
	stop := watch(stderr, c, b)
	ask(runCtx, c, targets, func(t *target, l *lookup) {
		b.done(t, l)
		if err := out.write(l); err != nil {
			cancel(fmt.Errorf("the results cannot be written: %w", err)) // no quota is spent on what is lost
		}
	})
	elapsed := time.Since(b.begin)
	stop()
	s := summarise(b, c, judge, elapsed)
	s.stopped = runCtx.Err() != nil && s.givenUp() > 0
	closing, done := context.WithTimeout(context.Background(), 5*time.Second)
	defer done()
	err := c.Shutdown(closing)
	if cause := context.Cause(runCtx); cause != nil && ctx.Err() == nil {
		err = cause
	}
	return s, err
}

// described tells what was read and what it comes to.
func described(r *reading, targets []*target) string {
	var kinds []string
	for _, k := range []provider.Kind{provider.IP, provider.Domain, provider.Hash} {
		if n := r.count(k); n > 0 {
			kinds = append(kinds, fmt.Sprintf("%d %s", n, k))
		}
	}
	lookups, providers := 0, 0
	for _, t := range targets {
		lookups += len(t.jobs)
		providers++
	}
	text := fmt.Sprintf("%d %s (%s)", len(r.indicators), plural(len(r.indicators), "indicator", "indicators"), strings.Join(kinds, ", "))
	if r.duplicates > 0 {
		text += fmt.Sprintf(", %d %s done once", r.duplicates, plural(r.duplicates, "duplicate", "duplicates"))
	}
	if n := len(r.junk); n > 0 {
		text += fmt.Sprintf(", %d %s skipped", n, plural(n, "line", "lines"))
	}
	return text + fmt.Sprintf(": %d lookups at %d providers", lookups, providers)
}
