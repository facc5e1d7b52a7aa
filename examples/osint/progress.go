package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"
	"golang.org/x/term"

	"github.com/headgate/headgate/coordinator"
)

const (
	barRefresh  = 120 * time.Millisecond
	lineRefresh = 2 * time.Second

	mostBars  = 20 // more scroll a terminal
	mostNames = 8  // of providers in a line
)

// watch shows how a run gets on: a bar for each provider where w is a terminal,
// else a line every two seconds. The function that it returns shows the end and
// returns when nothing more is written.
func watch(w io.Writer, c *coordinator.Coordinator, b *board) (stop func()) {
	if isTerminal(w) && len(b.counts()) <= mostBars {
		return bars(w, c, b)
	}
	return lines(w, b)
}

// isTerminal tells whether w is a terminal that can move its cursor.
func isTerminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd())) && os.Getenv("TERM") != "dumb"
}

// every runs f at each interval on a goroutine of its own, until the function that
// it returns is called, which waits for that goroutine.
func every(interval time.Duration, f func()) (stop func()) {
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(interval)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				f()
			case <-end:
				return
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// lines writes plain lines: for files, logs and dumb terminals.
func lines(w io.Writer, b *board) (stop func()) {
	write := func() { fmt.Fprintln(w, progressLine(time.Since(b.begin), b.counts())) }
	halt := every(lineRefresh, write)
	return func() {
		halt()
		write()
	}
}

func progressLine(elapsed time.Duration, all []counts) string {
	var text strings.Builder
	fmt.Fprintf(&text, "%6.1fs", elapsed.Seconds())
	if len(all) > mostNames {
		return text.String() + "  " + progressOf(all)
	}
	for _, n := range all {
		fmt.Fprintf(&text, "  %s %d/%d", n.slug, n.done, n.total)
		if n.failed > 0 {
			fmt.Fprintf(&text, " (%d refused)", n.failed)
		}
	}
	return text.String()
}

// progressOf sums many providers up, with the one that has the most to do.
func progressOf(all []counts) string {
	var sum, most counts
	ended := 0
	for _, n := range all {
		sum.total, sum.done, sum.failed = sum.total+n.total, sum.done+n.done, sum.failed+n.failed
		if n.done == n.total {
			ended++
		}
		if n.left > most.left || n.left == most.left && n.total-n.done > most.total-most.done {
			most = n
		}
	}
	text := fmt.Sprintf("%d/%d lookups, %d/%d providers are done", sum.done, sum.total, ended, len(all))
	if sum.failed > 0 {
		text += fmt.Sprintf(" (%d refused)", sum.failed)
	}
	if most.done < most.total {
		text += fmt.Sprintf("; the slowest: %s %d/%d", most.slug, most.done, most.total)
	}
	return text
}

// bars draws a bar for each provider and what it waits for.
func bars(w io.Writer, c *coordinator.Coordinator, b *board, more ...mpb.ContainerOption) (stop func()) {
	p := mpb.New(append(more, mpb.WithOutput(w), mpb.WithRefreshRate(barRefresh))...)
	all := make([]*mpb.Bar, 0, len(b.tallies))
	for _, n := range b.counts() {
		all = append(all, p.New(int64(n.total), mpb.BarStyle().Rbound("]").Lbound("[").Filler("=").Tip(">").Padding(" "),
			mpb.PrependDecorators(decor.Name(n.slug, decor.WCSyncWidthR)),
			mpb.AppendDecorators(
				decor.CountersNoUnit("%d/%d", decor.WCSyncSpace),
				decor.Any(func(s decor.Statistics) string { return "  " + doing(c, b, n.slug, s) }, decor.WC{W: 30, C: decor.DindentRight}),
			)))
	}
	set := func() {
		for i, n := range b.counts() {
			all[i].SetCurrent(int64(n.done))
		}
	}
	halt := every(barRefresh, set)
	return func() {
		halt()
		set()
		for _, bar := range all {
			bar.Abort(false) // no bar waits for what will not come; one that is full is full
		}
		p.Wait()
	}
}

// doing says what a provider's lookups do now. It is called by the drawing
// goroutine.
func doing(c *coordinator.Coordinator, b *board, slug string, s decor.Statistics) string {
	var n counts
	for _, x := range b.counts() {
		if x.slug == slug {
			n = x
		}
	}
	text := "stopped"
	switch {
	case n.done >= n.total:
		text = "done"
	case !s.Aborted:
		state, err := c.State(slug)
		if err != nil {
			return err.Error()
		}
		text = now(state, n.left)
	}
	if n.failed > 0 {
		text += fmt.Sprintf(", %d refused", n.failed)
	}
	return text
}

// now is what holds a provider up.
func now(s coordinator.State, left time.Duration) string {
	if s.Breaker.State == "open" {
		return "does not answer, asked again in " + short(s.Breaker.Until.Sub(s.At))
	}
	for _, p := range s.Pauses {
		if p.Until.After(s.At) {
			return fmt.Sprintf("paused %s: %s", short(p.Until.Sub(s.At)), p.Why)
		}
	}
	if left >= time.Second {
		return fmt.Sprintf("%d wait, %s left", s.Queue.Length, left.Round(time.Second))
	}
	return fmt.Sprintf("%d wait", s.Queue.Length)
}
