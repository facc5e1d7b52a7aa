package main

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

// scene is whom the sources are fetched from.
type scene struct {
	judge     *referee.Referee // nil: they are real
	providers []provider.Provider
	sources   []*source
}

// set sets the scene of a list: real, or played at a speed, all lengths of time divided
// by it.
func set(l *list, live bool, speed float64) (*scene, error) {
	sc := new(scene)
	var plays []referee.Play
	for _, d := range l.Providers {
		p := d.Provider
		if !live {
			scaled, limits, err := stage.Scale(p, speed)
			if err != nil {
				return nil, err
			}
			p = scaled
			delay := referee.Delay{Min: stage.Shorten(20*time.Millisecond, speed), Max: stage.Shorten(400*time.Millisecond, speed)}
			plays = append(plays, referee.Play{
				Provider: p, Limits: limits, Go: delay, Back: delay, Answer: answer,
				Phase: time.Duration(time.Now().UnixNano()), // windows begin with the program
			})
		}
		sc.providers = append(sc.providers, p)
	}
	for _, s := range l.Sources {
		s.Every = stage.Shorten(s.Every, speed)
		sc.sources = append(sc.sources, &s)
	}
	if live {
		return sc, nil
	}
	var err error
	sc.judge, err = referee.New(1, plays...)
	return sc, err
}

// answer is what a played provider says: one fetch in eight fails.
func answer(a referee.Arrival) referee.Answer {
	if a.N%8 == 5 {
		return referee.Answer{Status: http.StatusServiceUnavailable, Body: "down for maintenance"}
	}
	return referee.Answer{Header: http.Header{"Content-Type": {"text/plain"}}, Body: fmt.Sprintf("# fetch %d of this provider\n198.51.100.%d\n", a.N, a.N%256)}
}

// url is where a source is to be fetched.
func (sc *scene) url(s *source) string {
	if sc.judge == nil {
		return s.URL
	}
	u, err := url.Parse(s.URL)
	if err != nil {
		return s.URL // cannot be: it was checked
	}
	return sc.judge.URL(s.Provider) + "/" + strings.TrimPrefix(u.Path, "/")
}

// judged tells what the referee has counted.
func (sc *scene) judged() (violations, calls int64) {
	for _, p := range sc.providers {
		r := sc.judge.Report(p.Slug)
		violations, calls = violations+r.Violated, calls+r.Arrivals
	}
	return violations, calls
}
