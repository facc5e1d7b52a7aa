// Command osint looks indicators up (IP addresses, domains, URLs, hashes, e-mail
// addresses) at every provider of the catalogue that takes their kind, through one
// coordinator: each provider at the pace that it allows, none waiting for another.
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
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/headgate/headgate/examples/internal/ledgerflag"
	"github.com/headgate/headgate/examples/internal/stage"
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

// world is what the program has around it.
type world struct {
	stdin          io.Reader
	stdout, stderr io.Writer
	begin          func() context.Context // called when all is read; its context ends the run
	hangup         <-chan os.Signal       // each has the user's file read again
	getenv         func(string) string
	listen         func() (net.Listener, error)            // for the played providers
	listenAt       func(addr string) (net.Listener, error) // for -metrics and -serve
	client         *http.Client                            // for the real providers; nil: the default
	state          func() (string, error)                  // the folder for what outlives a run; nil: there is none
}

func main() {
	hangup := make(chan os.Signal, 1)
	signal.Notify(hangup, syscall.SIGHUP)
	w := world{
		stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		begin: interruptible, hangup: hangup, getenv: os.Getenv, listen: stage.Loopback,
		listenAt: func(addr string) (net.Listener, error) { return net.Listen("tcp", addr) },
		state:    func() (string, error) { return ledgerflag.StateDir(os.Getenv) },
	}
	os.Exit(w.run(os.Args[1:]))
}

// interruptible returns a context that the first Ctrl-C, or a request to end, ends.
// The second kills.
func interruptible() context.Context {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx
}

// run is the program. It stops cleanly when the context of begin ends; until that
// is called Ctrl-C ends it as it ends any program.
func (w *world) run(args []string) int {
	o, err := parse(args, w.stdout)
	if errors.Is(err, errHelp) {
		return exitOK
	}
	if err != nil {
		fmt.Fprintf(w.stderr, "osint: %v (osint -h tells more)\n", err)
		return exitUsage
	}
	all, err := sources()
	if err != nil {
		return w.fail(exitFailed, err)
	}
	chosen, err := o.choose(all)
	if err != nil {
		return w.fail(exitUsage, err)
	}
	if o.list {
		return w.list(o, chosen)
	}
	r, err := o.read(w.stdin)
	if err != nil {
		return w.fail(exitUsage, err)
	}
	complain(w.stderr, r.junk)
	if len(r.indicators) == 0 {
		return w.fail(exitUsage, errors.New(nothing(r)))
	}
	targets, err := plan(chosen, r.indicators)
	if err != nil {
		return w.fail(exitFailed, err)
	}
	if len(targets) == 0 {
		return w.fail(exitUsage, errors.New("no provider that was chosen takes these: osint -list tells what each takes"))
	}
	code, err := w.watched(o, r, targets)
	if err != nil {
		return w.fail(code, err)
	}
	return code
}

// fail tells an error. Each of several that are joined has its line.
func (w *world) fail(code int, err error) int {
	for line := range strings.Lines(err.Error()) {
		fmt.Fprintf(w.stderr, "osint: %s\n", strings.TrimSuffix(line, "\n"))
	}
	return code
}

// tell tells what is amiss and does not end the run.
func (w *world) tell(format string, args ...any) {
	fmt.Fprintf(w.stderr, "osint: "+format+"\n", args...)
}

func nothing(r *reading) string {
	if r.left > 0 {
		return fmt.Sprintf("nothing to look up: -kinds leaves %d %s out", r.left, plural(r.left, "indicator", "indicators"))
	}
	return "nothing to look up: want IP addresses, domains, URLs, hashes or e-mail addresses"
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

// described tells what was read and what it comes to.
func described(r *reading, targets []*target) string {
	var kinds []string
	for _, k := range allKinds {
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
	if r.shared > 0 {
		text += fmt.Sprintf(", %d in several lists asked once", r.shared)
	}
	if r.left > 0 {
		text += fmt.Sprintf(", %d left out by -kinds", r.left)
	}
	if n := len(r.junk); n > 0 {
		text += fmt.Sprintf(", %d %s skipped", n, plural(n, "line", "lines"))
	}
	return text + fmt.Sprintf(": %d lookups at %d providers", lookups, providers)
}
