package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/headgate/headgate/internal/referee"
)

// lookUp does the job on what was read: it opens everything, asks, and sums up.
func (w *world) lookUp(o options, r *reading, targets []*target, v windows) (code int, err error) {
	told := w.stdout
	if o.json {
		told = w.stderr
	}
	resume, err := o.openJournal(r, targets)
	if err != nil {
		return exitUsage, err
	}
	defer closing(resume.close, &code, &err)
	kept := o.openStore(w.tell)
	defer kept.close()
	if o.plan {
		fmt.Fprintln(told, described(r, targets))
		return w.forecast(o, targets, resume.journal, kept, told)
	}
	w.tellAnew(o, resume)
	out, closeOut, err := o.results(w.stdout, resume.goesOn)
	if err != nil {
		return exitUsage, err
	}
	defer closing(closeOut, &code, &err)
	fmt.Fprintln(told, described(r, targets))
	v.tell(told)
	resume.tell(told)
	judge, speed, err := w.set(o, targets, told)
	if err != nil {
		return exitFailed, err
	}
	if judge != nil {
		defer judge.Close()
	}
	spent, err := w.openAccount(o, speed, targets, told)
	if err != nil {
		return exitUsage, err
	}
	defer w.closeAccount(spent)
	budgeted(targets, o.maxCalls)
	a := &asking{targets: targets, out: out, store: kept, journal: resume.journal, until: o.deadline(speed), before: spent.before}
	if a.c, err = newCoordinator(targets, o.atOnce, spent.ledger, append(v.traces(), w.ledgerTrace())...); err == nil {
		err = v.serve(a.c)
	}
	if err != nil {
		return exitFailed, err
	}
	stop := w.reloading(o, a, speed)
	ctx := w.begin()
	s, err := perform(ctx, a, judge, w.stderr)
	stop()
	s.detailed = o.providers != nil
	s.write(told)
	resume.tell(told)
	if err != nil {
		return exitFailed, err
	}
	if o.stay {
		v.status.stay(ctx, w.stderr)
	}
	return o.verdict(s, told), nil
}

// tellAnew tells where a run goes on whose results are gone.
func (w *world) tellAnew(o options, r resumed) {
	if !r.goesOn || o.output == "" {
		return
	}
	if _, err := os.Stat(o.output); errors.Is(err, fs.ErrNotExist) {
		w.tell("%s is not there: it begins anew, without what the earlier run has done", o.output)
	}
}

// closing closes what must not fail silently.
func closing(end func() error, code *int, err *error) {
	if e := end(); e != nil && *err == nil {
		*code, *err = exitFailed, e
	}
}

// verdict is the exit code of a run that came to its end.
func (o options) verdict(s *summary, told io.Writer) int {
	switch {
	case s.stopped:
		if o.resume != "" {
			fmt.Fprintf(told, "the same command goes on where this run ended: -resume %s\n", o.resume)
		}
		return exitInterrupted
	case s.answered() == 0 && s.before() == 0:
		return exitFailed
	}
	if o.output == "" && !o.json {
		fmt.Fprintln(told, "answers: add -json or -o FILE to see them")
	}
	return exitOK
}

// perform asks all targets and sums up.
func perform(ctx context.Context, a *asking, judge *referee.Referee, stderr io.Writer) (*summary, error) {
	runCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a.end = cancel
	a.board = newBoard(a.targets)
	stop := watch(stderr, a.c, a.board)
	a.ask(runCtx)
	elapsed := time.Since(a.board.begin)
	stop()
	s := summarise(a.board, a.c, judge, a.before, elapsed)
	s.stopped = runCtx.Err() != nil && s.givenUp() > 0
	closing, done := context.WithTimeout(context.Background(), 5*time.Second)
	defer done()
	err := a.c.Shutdown(closing)
	if cause := context.Cause(runCtx); cause != nil && ctx.Err() == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return s, err
}
