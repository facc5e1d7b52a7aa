package main

import (
	"fmt"
	"hash/fnv"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

// delaySeed makes the played network's delays the same sequence in every run.
const delaySeed = 1

// play puts a referee on loopback that plays every target with the limits that it
// declares, all lengths of time divided by speed, and points the targets at it.
func play(targets []*target, speed float64) (*referee.Referee, error) {
	begin := time.Now()
	delay := referee.Delay{Min: stage.Shorten(shortestDelay, speed), Max: stage.Shorten(longestDelay, speed)}
	plays := make([]referee.Play, len(targets))
	for i, t := range targets {
		scaled, limits, err := stage.Scale(t.p, speed)
		if err != nil {
			return nil, err
		}
		t.p = scaled
		plays[i] = referee.Play{
			Provider: scaled, Limits: limits, Go: delay, Back: delay,
			Phase:  time.Duration(begin.UnixNano()), // windows begin with the program
			Answer: answerOf(scaled),
		}
	}
	judge, err := referee.New(delaySeed, plays...)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		judge.Close()
		return nil, fmt.Errorf("no place on loopback for the played providers: %w", err)
	}
	judge.Serve(listener)
	for _, t := range targets {
		t.adapter, err = adapters.New(t.p, adapters.Options{
			Client:  judge.Client(),
			BaseURL: judge.URL(t.p.Slug),
			Getenv:  func(string) string { return "played" }, // no real key leaves the environment
		})
		if err == nil {
			err = t.measure()
		}
		if err != nil {
			judge.Close()
			return nil, err
		}
	}
	return judge, nil
}

// answerOf makes the answers of a played provider. What is asked for decides: one
// in eight has no data, told by 404 where the provider does so, else by an empty
// list.
func answerOf(p provider.Provider) func(referee.Arrival) referee.Answer {
	none := referee.Answer{Body: "[]"}
	for _, s := range p.Dialect.Signals {
		for _, status := range s.Status {
			if status == http.StatusNotFound && s.Outcome == provider.OK {
				none = referee.Answer{Status: status, Body: `{"error":"not found"}`, Outcome: provider.OK}
			}
		}
	}
	return func(a referee.Arrival) referee.Answer {
		h := fnv.New32a()
		_, _ = h.Write([]byte(a.Request.URL.RequestURI())) // a hash takes everything
		if h.Sum32()%8 == 0 {
			return none
		}
		return referee.Answer{Body: fmt.Sprintf(`{"simulated":true,"provider":%q,"call":%d}`, p.Slug, a.N)}
	}
}

// live points the targets at the real providers. Those that lack a key, or whatever
// else they ask for, stay without.
func live(targets []*target, getenv func(string) string) error {
	for _, t := range targets {
		adapter, err := adapters.New(t.p, adapters.Options{Getenv: getenv})
		if err != nil {
			return err
		}
		t.adapter, t.missing = adapter, adapter.Ready()
	}
	return nil
}

// stage sets the scene: the real providers, or a referee that plays them. It tells
// which, and how long it will take.
func (o options) stage(targets []*target, told io.Writer) (*referee.Referee, error) {
	if o.live {
		if err := live(targets, os.Getenv); err != nil {
			return nil, err
		}
		for _, t := range targets {
			if t.missing != nil {
				fmt.Fprintf(told, "%s is not available: %s\n", t.p.Slug, oneLine(t.missing))
			}
		}
		fmt.Fprintln(told, "asking the real providers"+howLong(targets, 1))
		return nil, nil
	}
	var all []provider.Limit
	for _, t := range targets {
		all = append(all, t.limits...)
	}
	speed, shortest := o.speed, shortestOf(all)
	if speed == 0 {
		speed = 1
		if slow := slowestOf(targets); slow != nil {
			speed = demoSpeed(slow.ideal, shortest)
		}
	}
	text := "asking providers played on loopback" + howLong(targets, speed)
	judge, err := play(targets, speed)
	if err != nil {
		return nil, err
	}
	fmt.Fprintln(told, text)
	if limit := fastest(shortest); speed > limit {
		fmt.Fprintf(told, "above speed %g utilisation suffers: timers are late by about 1ms, windows are down to %s\n", limit, short(stage.Shorten(shortest, speed)))
	}
	return judge, nil
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
