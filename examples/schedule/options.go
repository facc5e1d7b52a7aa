package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/headgate/headgate/examples/internal/ledgerflag"
	"github.com/headgate/headgate/examples/internal/stage"
)

// options are what the command line says.
type options struct {
	list             string
	dir              string // "": the user's state folder with -live, else a temporary one
	ledger           string // "": a file in dir
	once, show, live bool
	speed            float64
	length           time.Duration // of a played run, at speed 1
	atOnce           int

	listen func() (net.Listener, error) // for the played providers
	client *http.Client                 // for the real ones
	beat   time.Duration                // of the ledger
}

const week = 168 * time.Hour

// defaultSpeed has a week pass in half a minute.
const defaultSpeed = float64(week / (30 * time.Second))

const usage = `usage: schedule [flags]

Fetches each source of a list whenever it is due, and keeps it in a file of its name.
Offline unless -live is given: a week of it is played in half a minute, with a stop of
30 hours in the middle. What was missed then is fetched once.

  schedule                         the list that it ships (schedule/feeds.yaml), played
  schedule -live -f my.yaml        the real ones, until Ctrl-C
  schedule -live -f my.yaml -once  those that are due now: for cron
  schedule -live -f my.yaml -list  when each is due; fetches nothing

An interval is counted from one fetch to the next, with a little added so that the
sources drift apart, and never less. A failed fetch is tried again after a minute, then
two, and so on, within the interval and within the provider's limits, which all of its
sources share. A list:

  providers:
    - slug: acme
      throttle: {limits: [{name: hour, max: 2, per: hour, basis: pacing}]}
  sources:
    - {name: acme-feed, provider: acme, every: 6h, url: "https://acme.example/feed.txt"}

flags:
`

// parse reads the command line. Usage goes to help when asked for.
func parse(args []string, help io.Writer) (*options, error) {
	o := &options{speed: defaultSpeed, length: week, beat: ledgerBeat, listen: stage.Loopback, client: &http.Client{Transport: http.DefaultTransport}}
	set := flag.NewFlagSet("schedule", flag.ContinueOnError)
	set.StringVar(&o.list, "f", "", "fetch the sources of `FILE`, YAML (default: feeds.yaml, which it ships)")
	set.StringVar(&o.dir, "dir", "", "keep what is due, the ledger and the files in `FOLDER` (default: with -live schedule in the user's state folder, else a temporary one)")
	set.StringVar(&o.ledger, "ledger", "", "keep what the limits have counted in `PLACE`: "+ledgerflag.Usage+" (default: $"+ledgerflag.Variable+", else a file in -dir)")
	set.BoolVar(&o.once, "once", false, "fetch what is due now, and end")
	set.BoolVar(&o.show, "list", false, "tell when each source is due, and end")
	set.BoolVar(&o.live, "live", false, "fetch from the real providers")
	set.IntVar(&o.atOnce, "at-once", 4, "have at most `N` fetches out at once")
	speed := set.String("speed", "", fmt.Sprintf("let the played time pass `N` times as fast (default %g)", o.speed))
	length := set.Duration("for", 0, "play so long, in played time (default 168h)")
	if err := stage.ParseQuietly(set, args, usage, help); err != nil {
		return o, err
	}
	var err error
	if *speed != "" {
		o.speed, err = strconv.ParseFloat(*speed, 64)
		if err != nil || !(o.speed > 0) || math.IsInf(o.speed, 0) {
			return o, fmt.Errorf("-speed %s: want a number above 0", *speed)
		}
	}
	if *length != 0 {
		o.length = *length
	}
	return o, o.check(*speed != "" || *length != 0)
}

func (o *options) check(played bool) error {
	switch {
	case o.once && o.show:
		return errors.New("-once and -list: want one of them")
	case o.live && played:
		return errors.New("-speed and -for are for played providers")
	case o.length <= 0:
		return fmt.Errorf("-for %v: want a time above 0", o.length)
	case o.atOnce < 1:
		return fmt.Errorf("-at-once %d: want 1 or more", o.atOnce)
	case !o.live && o.dir == "" && (o.once || o.show):
		return errors.New("-once and -list tell something where something is kept: add -live or -dir FOLDER")
	}
	if o.live {
		o.speed = 1
	}
	if o.ledger == "" {
		o.ledger = os.Getenv(ledgerflag.Variable)
	}
	if o.ledger != "" {
		if _, err := ledgerflag.Parse(o.ledger); err != nil {
			return fmt.Errorf("-ledger: %w", err)
		}
	}
	return nil
}

// folder is where everything is kept. remove is for what was temporary.
func (o *options) folder() (dir string, remove func(), err error) {
	switch {
	case o.dir != "":
		return o.dir, func() {}, nil
	case o.live:
		dir, err := ledgerflag.StateDir(os.Getenv)
		if err != nil {
			return "", nil, fmt.Errorf("%w: name a folder with -dir", err)
		}
		return filepath.Join(dir, "schedule"), func() {}, nil
	}
	dir, err = os.MkdirTemp("", "headgate-schedule-")
	return dir, func() { os.RemoveAll(dir) }, err
}

// place is where the ledger is.
func (o *options) place(dir string) (ledgerflag.Place, error) {
	p := ledgerflag.File(filepath.Join(dir, "ledger.db"))
	if o.ledger != "" {
		var err error
		if p, err = ledgerflag.Parse(o.ledger); err != nil {
			return p, err
		}
	}
	if !o.live {
		p = p.Within(fmt.Sprintf("played-%g", o.speed))
	}
	return p, nil
}
