package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

// fewUnavailable is how many providers that cannot be asked are told one by one,
// where nobody asked for them by name.
const fewUnavailable = 5

// set sets the scene: the real providers, or a referee that plays them (nil: they
// are real). It tells which, and how long it will take. speed is what the played
// time passes at.
func (w *world) set(o options, targets []*target, told io.Writer) (judge *referee.Referee, speed float64, err error) {
	for _, t := range targets {
		if !o.live && t.byHand != nil {
			t.missing = errUnplayed
		}
	}
	if o.live {
		if err := live(targets, w.getenv, w.client); err != nil {
			return nil, 1, err
		}
		o.unavailable(targets, told)
		fmt.Fprintln(told, "asking the real providers"+howLong(targets, 1))
		return nil, 1, nil
	}
	o.unavailable(targets, told)
	shortest := shortestOf(limitsOf(targets))
	speed = o.speed
	if speed == 0 {
		speed = 1
		if slow := slowestOf(targets); slow != nil {
			speed = demoSpeed(min(slow.ideal, o.wait), shortest)
		}
	}
	text := "asking providers played on loopback" + howLong(targets, speed)
	judge, err = play(targets, speed, w.listen)
	if err != nil {
		return nil, 1, err
	}
	fmt.Fprintln(told, text)
	if limit := fastest(shortest); speed > limit {
		fmt.Fprintf(told, "above speed %g utilisation suffers: timers are late by about 1ms, windows are down to %s\n", limit, short(stage.Shorten(shortest, speed)))
	}
	return judge, speed, nil
}

func limitsOf(targets []*target) (all []provider.Limit) {
	for _, t := range targets {
		if t.missing == nil {
			all = append(all, t.limits...)
		}
	}
	return all
}

// unavailable tells who cannot be asked, and why. Without -providers most lack a
// key that the user never wanted: they are counted.
func (o options) unavailable(targets []*target, told io.Writer) {
	var lines []string
	for _, t := range targets {
		if t.missing != nil {
			lines = append(lines, fmt.Sprintf("%s is not available: %s", t.p.Slug, oneLine(t.missing)))
		}
	}
	if o.providers == nil && len(lines) > fewUnavailable {
		lines = []string{fmt.Sprintf("%d providers are not available: they lack a key or a contact (osint -list tells which)", len(lines))}
	}
	for _, l := range lines {
		fmt.Fprintln(told, l)
	}
}

// howLong tells what the slowest target needs, at a speed.
func howLong(targets []*target, speed float64) string {
	var text string
	if speed != 1 {
		text = fmt.Sprintf(" at %g times the speed", speed)
	}
	slow := slowestOf(targets)
	if slow == nil {
		return text
	}
	binding, _ := slow.binding()
	text += fmt.Sprintf(": the slowest is %s, %d lookups at %d per %s need %s",
		slow.p.Slug, len(slow.jobs), binding.Max, binding.Per, short(slow.ideal))
	if speed != 1 {
		text += fmt.Sprintf(", here %s", short(stage.Shorten(slow.ideal, speed)))
	}
	return text
}

// oneLine is a joined error on one line.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// deadline is the last instant at which a lookup may go, for a run that begins now.
func (o options) deadline(speed float64) time.Time {
	return time.Now().Add(stage.Shorten(o.wait, speed))
}
