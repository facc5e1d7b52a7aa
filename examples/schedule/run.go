package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/examples/internal/ledgerflag"
	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

const (
	// Limits with a longer window are kept in the ledger: a restart takes longer than the
	// others need.
	sharedLonger = 10 * time.Second
	// ledgerPatience is the ledger's time for a decision. Nobody here waits for
	// milliseconds.
	ledgerPatience = 250 * time.Millisecond
	// ledgerLease and ledgerBeat are long: between two fetches there is nothing to hear.
	// What a killed process holds counts for so long as if it had just gone.
	ledgerLease, ledgerBeat = 5 * time.Minute, 2 * time.Second

	// The stop in the middle of a played run, at speed 1.
	stop = 30 * time.Hour
	// lastWords is how long fetches that are out may take at the end.
	lastWords = 10 * time.Second
)

// settings are those of the ledger.
func (o *options) settings() ledger.Settings {
	return ledger.Settings{
		Longer: stage.Shorten(sharedLonger, o.speed), Budget: ledgerPatience,
		Lease: max(time.Second, stage.Shorten(ledgerLease, o.speed)), Beat: o.beat,
	}
}

// run does what the options say.
func (o *options) run(ctx context.Context, l *list, stdout, stderr io.Writer) error {
	dir, remove, err := o.folder()
	if err != nil {
		return err
	}
	defer remove()
	sc, err := set(l, o.live, o.speed)
	if err != nil {
		return err
	}
	if sc.judge != nil {
		defer sc.judge.Close()
		listener, err := o.listen()
		if err != nil {
			return err
		}
		sc.judge.Serve(listener)
	}
	r := &run{options: o, scene: sc, dir: dir, told: teller{
		stdout: stdout, stderr: stderr, begin: time.Now(), speed: o.speed, last: make(map[string]time.Time),
	}}
	switch {
	case o.show:
		return r.open(ctx, func(context.Context, *schedule) error { return nil })
	case o.once:
		return r.open(ctx, r.dueOnce)
	case o.live:
		return r.open(ctx, r.keep)
	}
	return r.play(ctx)
}

// run is a list that is being fetched.
type run struct {
	*options
	*scene
	dir  string
	told teller
}

// play plays a while, stops everything, and goes on where it was.
func (r *run) play(ctx context.Context) error {
	fmt.Fprintf(r.told.stdout, "%s, played at %g times the speed\n", r.length, r.speed)
	part := func(d time.Duration) error {
		some, end := context.WithTimeout(ctx, stage.Shorten(d, r.speed))
		defer end()
		return r.open(some, r.keep)
	}
	rest := r.length
	if r.length > 2*stop {
		if err := part((r.length - stop) / 2); err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		fmt.Fprintf(r.told.stdout, "\nstopped for %s; then it goes on where it was\n", stop)
		if !stage.Sleep(ctx, stage.Shorten(stop, r.speed)) {
			return ctx.Err()
		}
		rest = (r.length - stop) / 2
	}
	if err := part(rest); err != nil || ctx.Err() != nil {
		return errors.Join(err, ctx.Err())
	}
	violations, calls := r.judged()
	fmt.Fprintf(r.told.stdout, "violations: %d in %d calls   fetched sooner than its interval: %d times\n", violations, calls, r.told.sooner)
	return nil
}

// open opens what is kept, has f work with it, closes it and tells how it stands.
func (r *run) open(ctx context.Context, f func(context.Context, *schedule) error) (err error) {
	b, err := openBook(r.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	place, err := r.place(r.dir)
	if err != nil {
		return err
	}
	led, err := place.Open(r.settings())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, ledgerflag.Close(led)) }()
	cfg := coordinator.Config{Registry: new(registry.Registry), Providers: r.providers, Pools: map[string]int{"": r.atOnce}}
	if led != nil {
		cfg.Ledger = led
	}
	c, err := coordinator.New(cfg)
	if err != nil {
		return err
	}
	client := r.client
	if r.judge != nil {
		client = r.judge.Client()
	}
	dialects := make(map[string]provider.Dialect)
	for _, p := range r.providers {
		dialects[p.Slug] = p.Dialect
	}
	files := &fetcher{client: client, url: r.url, dir: filepath.Join(r.dir, "files"), read: dialects}
	s := &schedule{c: c, book: b, sources: r.sources, speed: r.speed, fetch: files.fetch, tell: r.told.after}
	err = f(ctx, s)
	closing, done := context.WithTimeout(context.WithoutCancel(ctx), lastWords)
	defer done()
	return errors.Join(err, c.Shutdown(closing), r.told.table(s))
}

func (r *run) keep(ctx context.Context, s *schedule) error { return s.keep(ctx) }

// dueOnce fetches what is due. Failed fetches are an error, so that cron tells of them.
func (r *run) dueOnce(ctx context.Context, s *schedule) error {
	failed, err := s.due(ctx)
	if failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d sources that were due could not be fetched", failed))
	}
	return err
}

// teller tells people how it goes. Played instants are told as they would be at speed 1.
type teller struct {
	stdout, stderr io.Writer
	begin          time.Time
	speed          float64

	mu     sync.Mutex
	last   map[string]time.Time // by source: when its last fetch went
	sooner int                  // fetches that came before their interval was over
}
