package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/examples/internal/ledgerflag"
	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/ledger"
)

const (
	// sharedLonger: limits with a longer window are kept in the ledger, besides those
	// that are declared shared. What a shorter one has counted is over before the next
	// run begins.
	sharedLonger = 10 * time.Second
	// patience is the ledger's time for a decision. Nobody here waits for milliseconds,
	// and a busy machine must not pass for a ledger that is lost.
	patience = 250 * time.Millisecond
)

// settings are those of the ledger at a speed.
func settings(speed float64) ledger.Settings {
	return ledger.Settings{Longer: stage.Shorten(sharedLonger, speed), Budget: patience}
}

// place is where the options have the budget kept, and whether the user has said so.
// Each speed at which providers are played is a world of its own: its windows have other
// lengths, and no real provider was asked.
func (w *world) place(o options, speed float64) (p ledgerflag.Place, given bool, err error) {
	p, given, err = ledgerflag.Named(o.ledger, w.getenv)
	if err != nil {
		return p, given, err
	}
	if !given && w.state != nil {
		dir, err := w.state()
		if err != nil {
			return p, given, fmt.Errorf("no place for the ledger: %w", err)
		}
		p = ledgerflag.File(filepath.Join(dir, "osint.db"))
	}
	if !o.live {
		p = p.Within(fmt.Sprintf("played-%g", speed))
	}
	return p, given, nil
}

// account is the ledger of a run and what was spent before it.
type account struct {
	ledger *ledger.Client        // nil: there is none
	before map[string][]standing // by provider
}

// openAccount opens the ledger of a run, and tells where it is and what was spent. Where
// the providers are played and nobody has named a place, a run that can have none goes on
// without.
func (w *world) openAccount(o options, speed float64, targets []*target, told io.Writer) (a account, err error) {
	p, given, err := w.place(o, speed)
	if err == nil {
		a.ledger, err = p.Open(settings(speed))
	}
	if err == nil {
		a.before, err = spent(context.Background(), a.ledger, targets)
	}
	switch {
	case err != nil:
		w.closeAccount(a)
		if !given {
			err = fmt.Errorf("%w; name another place with -ledger, or none", err)
		}
		if !given && !o.live {
			w.tell("%v; the run goes on without a ledger", err)
			err = nil
		}
		return account{}, err
	case a.ledger == nil:
		return a, nil
	}
	text := ""
	if n := a.ledger.Status().Replicas; n > 1 {
		text = fmt.Sprintf(", shared with %d others that run now", n-1)
	}
	if !o.live {
		text += "; what it knows the played providers have forgotten: they begin anew with each run"
	}
	fmt.Fprintf(told, "ledger: %s%s\n", p, text)
	tellSpent(told, a.before, targets)
	return a, nil
}

// closeAccount tells where the ledger may not know all.
func (w *world) closeAccount(a account) {
	if err := ledgerflag.Close(a.ledger); err != nil {
		w.tell("the ledger may not know all that this run has spent: %v", err)
	}
}

// lookInto opens the ledger of the real providers, to look at it; nil: there is none. It
// makes no file.
func (w *world) lookInto(o options) (*ledger.Client, error) {
	o.live = true
	p, _, err := w.place(o, 1)
	if err != nil || !p.Exists() {
		return nil, err
	}
	return p.Open(settings(1))
}

// ledgerTrace tells when the ledger is lost, and when it is back.
func (w *world) ledgerTrace() *coordinator.Trace {
	return &coordinator.Trace{Ledger: func(x coordinator.LedgerChange) {
		if x.Up {
			w.tell("the ledger answers again")
			return
		}
		w.tell("the ledger does not answer (%s): until it does the run keeps to its share of each limit", x.State.Detail)
	}}
}

// known opens the ledger for a plan of real calls, and tells what was spent before; nil:
// there is none.
func (w *world) known(o options, targets []*target, told io.Writer) (*ledger.Client, error) {
	if !o.live {
		return nil, nil
	}
	l, err := w.lookInto(o)
	if err != nil || l == nil {
		return nil, err
	}
	before, err := spent(context.Background(), l, targets)
	if err != nil {
		_ = ledgerflag.Close(l)
		return nil, err
	}
	tellSpent(told, before, targets)
	return l, nil
}
