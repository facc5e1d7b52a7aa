package main

import (
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"time"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

// delaySeed makes the played network's delays the same sequence in every run.
const delaySeed = 1

// play puts a referee on loopback that plays every target with the limits that it
// declares, all lengths of time divided by speed, and points the targets at it.
func play(targets []*target, speed float64) (*referee.Referee, error) {
	begin := time.Now()
	delay := referee.Delay{Min: shorten(shortestDelay, speed), Max: shorten(longestDelay, speed)}
	plays := make([]referee.Play, len(targets))
	for i, t := range targets {
		scaled, limits, err := scale(t.p, speed)
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
