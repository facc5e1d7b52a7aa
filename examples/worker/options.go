package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"net/url"
	"os"
	"time"

	_ "embed"

	"github.com/headgate/headgate/examples/internal/ledgerflag"
	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/provider"
)

//go:embed provider.yaml
var shipped []byte

// options are what the command line says.
type options struct {
	processes, jobs, at int
	list                string // file with a job a line; "": made up
	nats                string // "": a server of our own
	dir                 string // of our own server and the ledger; "": a temporary one
	ledger              string // "": a file in dir
	live                string // URL; "": played
	provider            provider.Provider
	wait                time.Duration
	tries               int
	stay, crash         bool

	ackWait, lease time.Duration // how soon a dead worker's jobs, and its units, are free
}

// The defaults of what a dead worker delays. Heartbeats are three times as frequent, and
// a busy machine must not miss three.
const defaultAckWait, defaultLease = 5 * time.Second, 5 * time.Second

const most = 64 // processes, and jobs at a time in each

const usage = `usage: worker [flags]

Starts worker processes, gives them jobs, and shows what became of them. Offline unless
-live is given: the provider (ten calls in any three seconds) is played here.

  worker -processes 3 -jobs 60        sixty jobs, two of which nobody can do
  worker -crash                       the same, and one worker is killed in the middle
  worker -ledger none                 each process by itself: see what the provider says
  worker -dir d                       the jobs are in d: after Ctrl-C (or kill -9) they are
  worker -dir d -jobs 0               still there, and this does what is left

Several machines, one queue and one budget (on each; -jobs on one of them):

  worker -nats nats://queue:4222 -ledger redis://store:6379/0 -live https://api.example/hook -jobs 0 -stay

flags:
`

// parse reads the command line. Usage goes to help when asked for.
func parse(args []string, help io.Writer) (o options, err error) {
	set := flag.NewFlagSet("worker", flag.ContinueOnError)
	set.IntVar(&o.processes, "processes", 3, "start `N` worker processes")
	set.IntVar(&o.at, "at-once", 8, "do `N` jobs at a time in each")
	set.IntVar(&o.jobs, "jobs", 60, "put `N` made-up jobs into the queue; 0: only do what is there")
	set.StringVar(&o.list, "f", "", "put each line of `FILE` into the queue as a job's body instead")
	set.StringVar(&o.nats, "nats", "", "take the queue of the server at `URL` (default: one of our own, on loopback)")
	set.StringVar(&o.dir, "dir", "", "keep the queue and the ledger in `FOLDER` (default: a temporary one, kept where jobs are left)")
	set.StringVar(&o.ledger, "ledger", "", "keep the budget in `PLACE`: "+ledgerflag.Usage+" (default: $"+ledgerflag.Variable+", else a file in -dir)")
	set.StringVar(&o.live, "live", "", "post the jobs to `URL`, for real")
	declared := set.String("provider", "", "take the provider's limits from `FILE`, YAML as in adapters/catalog (default: ten in 3 s)")
	set.DurationVar(&o.wait, "wait", time.Second, "let a job wait for its turn in a worker for `DURATION` at most; one that must wait longer goes back to the queue")
	set.IntVar(&o.tries, "tries", 3, "give a job up that has failed `N` times: it goes to the dead letters ("+deadSubject+")")
	set.BoolVar(&o.stay, "stay", false, "wait for more jobs when the queue is empty, until Ctrl-C")
	set.BoolVar(&o.crash, "crash", false, "kill -9 one of the workers in the middle")
	o.ackWait, o.lease = defaultAckWait, defaultLease

	if err := stage.ParseQuietly(set, args, usage, help); err != nil {
		return o, err
	}
	if o.provider, err = declaration(*declared); err != nil {
		return o, err
	}
	return o, o.check()
}

// declaration is the provider that a file declares, or the shipped one.
func declaration(name string) (provider.Provider, error) {
	if name == "" {
		return provider.Parse(shipped)
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return provider.Provider{}, fmt.Errorf("-provider: %w", err)
	}
	p, err := provider.Parse(text)
	if err != nil {
		return p, fmt.Errorf("-provider: %s: %w", name, err)
	}
	return p, nil
}

func (o *options) check() (err error) {
	between := func(name string, n, least, most int) {
		if n < least || n > most {
			err = errors.Join(err, fmt.Errorf("-%s %d: want %d to %d", name, n, least, most))
		}
	}
	between("processes", o.processes, 1, most)
	between("at-once", o.at, 1, most)
	between("jobs", o.jobs, 0, 100_000)
	between("tries", o.tries, 1, 1000)
	if o.wait <= 0 {
		err = errors.Join(err, fmt.Errorf("-wait %v: want a time above 0", o.wait))
	}
	if o.crash && o.processes < 2 {
		err = errors.Join(err, errors.New("-crash wants two processes: somebody has to go on"))
	}
	if o.nats != "" && o.live == "" {
		// Each first process would play a provider of its own, to which its workers alone are known.
		err = errors.Join(err, errors.New("-nats wants -live: workers of other machines cannot reach a provider that is played here"))
	}
	for name, text := range map[string]string{"nats": o.nats, "live": o.live} {
		if u, e := url.Parse(text); text != "" && (e != nil || u.Host == "") {
			err = errors.Join(err, fmt.Errorf("-%s: want a URL with a host", name)) // it may hold a secret: it is not repeated
		}
	}
	if u, e := url.Parse(o.live); o.live != "" && e == nil && u.Scheme != "http" && u.Scheme != "https" {
		err = errors.Join(err, errors.New("-live: want http:// or https://"))
	}
	if o.ledger == "" {
		o.ledger = os.Getenv(ledgerflag.Variable)
	}
	if o.ledger != "" {
		if _, e := ledgerflag.Parse(o.ledger); e != nil {
			err = errors.Join(err, fmt.Errorf("-ledger: %w", e))
		}
	}
	return err
}
