package main

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

// delaySeed makes the played network's delays the same sequence in every run.
const delaySeed = 1

// errUnplayed is why a provider is not played.
var errUnplayed = errors.New("it is asked by code of its own, which nobody plays: -live asks the real one")

// play puts a referee on a listener that plays every target with the limits that it
// declares, all lengths of time divided by speed, and points the targets at it.
func play(targets []*target, speed float64, listen func() (net.Listener, error)) (*referee.Referee, error) {
	begin := time.Now()
	delay := referee.Delay{Min: stage.Shorten(shortestDelay, speed), Max: stage.Shorten(longestDelay, speed)}
	var plays []referee.Play
	for _, t := range targets {
		if t.missing != nil {
			continue
		}
		scaled, limits, err := stage.Scale(t.p, speed)
		if err != nil {
			return nil, err
		}
		t.p = scaled
		plays = append(plays, referee.Play{
			Provider: taciturn(scaled), Limits: limits, Go: delay, Back: delay, Speak: true,
			Phase:  time.Duration(begin.UnixNano()), // windows begin with the program
			Answer: answerOf(scaled),
		})
	}
	judge, err := referee.New(delaySeed, plays...)
	if err != nil {
		return nil, err
	}
	listener, err := listen()
	if err != nil {
		judge.Close()
		return nil, fmt.Errorf("no place on loopback for the played providers: %w", err)
	}
	judge.Serve(listener)
	for _, t := range targets {
		if t.missing != nil {
			continue
		}
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

// taciturn is a provider that does not tell what is left: it could do so in whole
// seconds only, which are minutes of a time that passes faster.
func taciturn(p provider.Provider) provider.Provider {
	p.Dialect.Budgets, p.Dialect.RetryAfter, p.Dialect.Used = nil, nil, nil
	p.Dialect.Only = true // nor in the conventional headers
	return p
}

// answerOf makes the answers of a played provider. What is asked for decides: one
// in eight has no data, told by 404 where the provider does so, else by an empty
// list. Where the declaration takes that for something else, the referee answers in
// the provider's own way.
func answerOf(p provider.Provider) func(referee.Arrival) referee.Answer {
	var none referee.Answer
	simulated := fmt.Sprintf(`{"simulated":true,"provider":%q,"call":1}`, p.Slug)
	speaks := means(p, http.StatusOK, simulated)
	switch {
	case saysNotFound(p):
		none = referee.Answer{Status: http.StatusNotFound, Body: `{"error":"not found"}`, Outcome: provider.OK}
	case means(p, http.StatusOK, "[]"):
		none = referee.Answer{Body: "[]"}
	}
	return func(a referee.Arrival) referee.Answer {
		if pages(p, a.Endpoint) {
			return referee.Answer{}
		}
		h := fnv.New32a()
		_, _ = h.Write([]byte(a.Request.URL.RequestURI())) // a hash takes everything
		switch {
		case h.Sum32()%8 == 0:
			return none
		case !speaks:
			return referee.Answer{}
		}
		return referee.Answer{Body: fmt.Sprintf(`{"simulated":true,"provider":%q,"call":%d}`, p.Slug, a.N)}
	}
}

// saysNotFound tells whether a provider has no data where it answers 404.
func saysNotFound(p provider.Provider) bool {
	return slices.ContainsFunc(p.Dialect.Signals, func(s provider.Signal) bool {
		return slices.Contains(s.Status, http.StatusNotFound) && s.Outcome == provider.OK
	}) && means(p, http.StatusNotFound, `{"error":"not found"}`)
}

// means tells whether an answer is ok by a provider's dialect.
func means(p provider.Provider, status int, body string) bool {
	res := &http.Response{StatusCode: status, Header: http.Header{"Content-Type": {"application/json"}}}
	return dialect.Read(p.Dialect, res, []byte(body), time.Now()).Outcome == provider.OK
}

// live points the targets at the real providers. Those that lack a key, or whatever
// else they ask for, stay without.
func live(targets []*target, getenv func(string) string, client *http.Client) error {
	for _, t := range targets {
		if err := t.connect(getenv, client); err != nil {
			return err
		}
	}
	return nil
}

// connected makes the adapter for the real provider.
func (s *source) connected(getenv func(string) string, client *http.Client) (provider.Adapter, error) {
	if s.byHand != nil {
		return s.byHand, nil
	}
	p := s.p
	p.Throttle = s.base.Throttle // what the user's file says of it is the coordinator's to know
	return adapters.New(p, adapters.Options{Client: client, Getenv: getenv})
}

func (t *target) connect(getenv func(string) string, client *http.Client) (err error) {
	if t.adapter, err = t.connected(getenv, client); err == nil {
		t.missing = ready(t.adapter)
	}
	return err
}
