package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/internal/referee"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
	"github.com/headgate/headgate/transport"
)

// user is one who asks: so many questions, one every so often (0: all at once).
type user struct {
	name      string
	priority  coordinator.Priority
	questions int
	every     time.Duration
	prompt    int // characters
	max       int // tokens of an answer
}

// people are the users of the demo. The batch alone is more than two minutes' worth.
var people = []user{
	{"alice", coordinator.Interactive, 40, 3 * time.Second, 240, 150},
	{"bob", coordinator.Normal, 40, 2 * time.Second, 1200, 400},
	{"batch", coordinator.Bulk, 120, 0, 2000, 800},
}

// tally is what became of one user's questions.
type tally struct {
	user
	answered  int
	waits     []time.Duration
	estimated int64
	used      int64
	refunded  int64 // estimates that were too high: by so much
	surcharge int64 // and too low
	low       int   // estimates that were too low
	faults    []error
}

// summary is a run that has ended.
type summary struct {
	tallies []*tally
	report  referee.Report
	elapsed time.Duration // from the first arrival to the last
	speed   float64
	reserve float64
}

// run has all users ask.
func run(ctx context.Context, listener net.Listener, users []user, speed, reserve float64) (*summary, error) {
	// The referee judges by the plan; what we declare is the same, less the reserve.
	_, plan, err := stage.Scale(declared(0), speed)
	if err != nil {
		return nil, err
	}
	ours, _, err := stage.Scale(declared(reserve), speed)
	if err != nil {
		return nil, err
	}
	judge, err := referee.New(1, referee.Play{Provider: ours, Limits: plan})
	if err != nil {
		return nil, err
	}
	defer judge.Close()
	network := stage.Network{Min: 10 * time.Millisecond, Max: 100 * time.Millisecond}.At(speed)
	played := stage.Open(listener, &model{judge, network, speed})
	defer played.Close()
	ours.BaseURL = played.URL()

	c, err := coordinator.New(coordinator.Config{
		Registry: new(registry.Registry), Providers: []provider.Provider{ours}, Traces: []*coordinator.Trace{&hooks},
	})
	if err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &transport.Transport{Coordinator: c, Base: played.Base()}}
	s := &summary{speed: speed, reserve: reserve, tallies: askAll(ctx, &asker{c, client, played.URL()}, users, speed)}
	s.report = judge.Report(slug)
	s.elapsed = s.report.Last.Sub(s.report.First)
	var faults []error
	for _, t := range s.tallies {
		faults = append(faults, t.faults...)
	}
	return s, errors.Join(append(faults, c.Shutdown(ctx))...)
}

// waitKey finds where a hook is to put how long a call has waited.
type waitKey struct{}

var hooks = coordinator.Trace{
	Going: func(ctx context.Context, _ coordinator.CallInfo, waited time.Duration) {
		if w, ok := ctx.Value(waitKey{}).(*time.Duration); ok {
			*w = waited // on the call's own goroutine
		}
	},
}

// askAll returns when all questions are answered, or have failed.
func askAll(ctx context.Context, a *asker, users []user, speed float64) []*tally {
	var all sync.WaitGroup
	var mu sync.Mutex
	tallies := make([]*tally, len(users))
	for i, u := range users {
		t := &tally{user: u}
		tallies[i] = t
		all.Go(func() {
			for n := range u.questions {
				if n > 0 && !stage.Sleep(ctx, stage.Shorten(u.every, speed)) {
					return
				}
				all.Go(func() {
					q := u.question(n)
					var waited time.Duration
					used, err := a.ask(context.WithValue(ctx, waitKey{}, &waited), u.name, u.priority, q)
					mu.Lock()
					defer mu.Unlock()
					t.add(q, used, waited, err)
				})
			}
		})
	}
	all.Wait()
	return tallies
}

// question is the n-th of a user.
func (u user) question(n int) question {
	text := fmt.Sprintf("%s asks for the %d. time: ", u.name, n+1)
	text += strings.Repeat("why? ", max(0, u.prompt-len(text))/5)
	return question{Messages: []message{{Role: "user", Content: text}}, MaxTokens: u.max, Stream: true}
}

func (t *tally) add(q question, used usage, waited time.Duration, err error) {
	if err != nil {
		t.faults = append(t.faults, err)
		return
	}
	t.answered++
	t.waits = append(t.waits, waited)
	t.estimated += estimate(q)
	t.used += used.Total
	if over := estimate(q) - used.Total; over >= 0 {
		t.refunded += over
	} else {
		t.surcharge -= over
		t.low++
	}
}

// write tells the summary; times are those of speed 1.
func (s *summary) write(w io.Writer) {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "user\tasked\tanswered\twaited p50\tp95\testimated\tused\tgiven back\tcharged on top\t")
	asked, answered := 0, 0
	for _, t := range s.tallies {
		slices.Sort(t.waits)
		fmt.Fprintf(table, "%s\t%d\t%d\t%s\t%s\t%d\t%d\t%d\t%d in %d\t\n", t.name, t.questions, t.answered,
			s.percentile(t.waits, 50), s.percentile(t.waits, 95), t.estimated, t.used, t.refunded, t.surcharge, t.low)
		asked, answered = asked+t.questions, answered+t.answered
	}
	table.Flush()
	all := "all answered"
	if answered < asked {
		all = fmt.Sprintf("answered: %d of %d", answered, asked)
	}
	fmt.Fprintf(w, "violations: %d in %d calls, %s, in %s of played time (%g times the speed)\n",
		s.report.Violated, s.report.Arrivals, all, s.played(s.elapsed), s.speed)
	fmt.Fprintf(w, "utilisation: %s of %d tokens a minute (%.0f %% are kept back), %s of %d requests a minute\n",
		stage.Percent(float64(s.report.Units[provider.Tokens]), s.granted(tokensPerMinute, bucket)), tokensPerMinute, 100*s.reserve,
		stage.Percent(float64(s.report.Units[provider.Requests]), s.granted(requestsPerMinute, 1)), requestsPerMinute)
}

// granted is what a limit grants in all the time: so many minutes' worth at once, and
// what comes back.
func (s *summary) granted(perMinute, atOnce float64) float64 {
	return perMinute * (atOnce + s.elapsed.Minutes()*s.speed)
}

// played is a length of played time.
func (s *summary) played(d time.Duration) time.Duration {
	return time.Duration(float64(d) * s.speed).Round(100 * time.Millisecond)
}

func (s *summary) percentile(sorted []time.Duration, p int) string {
	if len(sorted) == 0 {
		return "–"
	}
	return s.played(sorted[(len(sorted)-1)*p/100]).String()
}
