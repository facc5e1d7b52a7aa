package main

import (
	"encoding/json"
	"io"
	"net/http"
	"time"

	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
)

// play has a referee play the provider on loopback.
func play(p provider.Provider) (*referee.Referee, string, error) {
	delay := referee.Delay{Min: 10 * time.Millisecond, Max: 60 * time.Millisecond}
	judge, err := referee.New(1, referee.Play{Provider: p, Go: delay, Back: delay, Answer: answer})
	if err != nil {
		return nil, "", err
	}
	l, err := stage.Loopback()
	if err != nil {
		judge.Close()
		return nil, "", err
	}
	judge.Serve(l)
	return judge, judge.URL(p.Slug), nil
}

// body is what a made-up job says.
type body struct {
	Job    int    `json:"job"`
	Poison string `json:"poison,omitempty"`
}

// Two of sixty jobs cannot be done: one is no job at all to the provider, one breaks it.
const (
	nonsense = "nonsense"
	breaks   = "breaks"
)

func madeUp(n int) []byte {
	b := body{Job: n}
	switch n % 60 {
	case 13:
		b.Poison = nonsense
	case 29:
		b.Poison = breaks
	}
	text, err := json.Marshal(b)
	if err != nil {
		panic(err) // a struct of an int and a string
	}
	return text
}

func answer(a referee.Arrival) referee.Answer {
	var b body
	if text, err := io.ReadAll(a.Request.Body); err == nil {
		_ = json.Unmarshal(text, &b) // what is no made-up job is done, too
	}
	switch b.Poison {
	case nonsense:
		return referee.Answer{Status: http.StatusBadRequest}
	case breaks:
		return referee.Answer{Status: http.StatusInternalServerError}
	}
	return referee.Answer{}
}

// ideal is the least time between the first and the last of so many calls.
func ideal(p provider.Provider, calls int64) (least time.Duration) {
	limits, err := p.Throttle.Expand()
	if err != nil {
		return 0
	}
	for _, l := range limits {
		per, _ := l.Per.Duration()
		if l.Max <= 0 || per <= 0 || l.Unit != provider.Requests {
			continue
		}
		var t time.Duration
		switch l.Algorithm {
		case provider.LeakyBucket:
			t = time.Duration(calls-1) * per / time.Duration(l.Max)
		case provider.TokenBucket:
			t = time.Duration(calls-l.Burst) * per / time.Duration(l.Max)
		default:
			t = time.Duration((calls-1)/l.Max) * per
		}
		least = max(least, t)
	}
	return least
}
