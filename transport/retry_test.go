package transport_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/transport"
)

// script is a Base that answers with one step after the other, the last for ever.
// It reads and remembers the bodies that it gets.
type script struct {
	steps []func(*http.Request) (*http.Response, error)
	got   []string
	at    []time.Time
	given []*body // of the responses
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	text := ""
	if r.Body != nil {
		b, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		text = string(b)
		_ = r.Body.Close()
	}
	step := s.steps[min(len(s.got), len(s.steps)-1)]
	s.got, s.at = append(s.got, text), append(s.at, time.Now())
	res, err := step(r)
	if res != nil {
		s.given = append(s.given, res.Body.(*body))
	}
	return res, err
}

var errReset = &net.OpError{Op: "read", Err: errors.New("connection reset by peer")}

func lost(*http.Request) (*http.Response, error) { return nil, errReset }

func TestWhatMayBeSentTwiceIsAndNothingElse(t *testing.T) {
	reader := func() io.Reader { return strings.NewReader("text") } // net/http gives it a GetBody
	once := func() io.Reader { return &body{Reader: strings.NewReader("text")} }
	for name, test := range map[string]struct {
		method string
		body   io.Reader
		header string
		step   base
		sent   int
	}{
		"GET, lost":                            {http.MethodGet, nil, "", lost, 2},
		"GET, 503":                             {http.MethodGet, nil, "", always(503), 2},
		"GET, 429":                             {http.MethodGet, nil, "", always(429), 2},
		"GET, 404":                             {http.MethodGet, nil, "", always(404), 1},
		"HEAD, 500":                            {http.MethodHead, nil, "", always(500), 2},
		"PUT, 500":                             {http.MethodPut, reader(), "", always(500), 2},
		"DELETE, lost":                         {http.MethodDelete, nil, "", lost, 2},
		"PUT, body only once, 500":             {http.MethodPut, once(), "", always(500), 1},
		"PUT, body only once, lost":            {http.MethodPut, once(), "", lost, 1},
		"POST, 503":                            {http.MethodPost, reader(), "", always(503), 1},
		"POST, lost":                           {http.MethodPost, reader(), "", lost, 1},
		"POST, 429":                            {http.MethodPost, reader(), "", always(429), 2},
		"POST, body only once, 429":            {http.MethodPost, once(), "", always(429), 1},
		"POST, Idempotency-Key, 503":           {http.MethodPost, reader(), "Idempotency-Key", always(503), 2},
		"POST, X-Idempotency-Key, lost":        {http.MethodPost, reader(), "X-Idempotency-Key", lost, 2},
		"POST, key, body only once, 503":       {http.MethodPost, once(), "Idempotency-Key", always(503), 1},
		"PATCH, no body, 503":                  {http.MethodPatch, nil, "", always(503), 1},
		"POST, body only once, an error's 429": {http.MethodPost, once(), "", tells(provider.RateLimited), 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &script{steps: []func(*http.Request) (*http.Response, error){test.step, always(200)}}
				tr := over(t, s, api(provider.Throttle{}))
				r := request(t.Context(), t, test.method, site, test.body)
				if test.header != "" {
					r.Header.Set(test.header, "1")
				}
				res, err := tr.RoundTrip(r)
				if err == nil {
					done(t, res)
				}
				require.Len(t, s.got, test.sent)
				assert.Equal(t, test.sent == 2, err == nil && res.StatusCode == 200)
				if test.body != nil {
					for _, got := range s.got {
						assert.Equal(t, "text", got, "the whole body goes each time")
					}
				}
				if b, ok := test.body.(*body); ok {
					assert.EqualValues(t, 1, b.closed.Load())
				}
				for _, b := range s.given {
					assert.EqualValues(t, 1, b.closed.Load(), "every response is closed, once")
				}
				assert.Zero(t, state(t, tr, "p").InFlight)
				assert.EqualValues(t, test.sent-1, state(t, tr, "p").Retries, "nobody waits for what cannot be sent")
			})
		})
	}
}

// tells is a Base whose error says what it means.
func tells(o provider.Outcome) base {
	return func(*http.Request) (*http.Response, error) { return nil, provider.Feedback{Outcome: o}.Err(errReset) }
}

func TestOutcomeOfWhatIsNotSentAgainCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tr := over(t, always(429, "Retry-After", "60"), api(provider.Throttle{}))
		res, err := tr.RoundTrip(request(t.Context(), t, http.MethodPost, site, &body{Reader: strings.NewReader("x")}))
		require.NoError(t, err)
		assert.Equal(t, 429, res.StatusCode)
		done(t, res)
		s := state(t, tr, "p")
		assert.EqualValues(t, 1, s.Outcomes[provider.RateLimited])
		require.Len(t, s.Pauses, 1)
		assert.Equal(t, time.Minute, time.Until(s.Pauses[0].Until))
	})
}

func TestDroppedAnswerGivesItsSlotBackBeforeTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []func(*http.Request) (*http.Response, error){always(429, "Retry-After", "60"), always(200)}}
		tr := over(t, s, api(provider.Throttle{MaxInFlight: 1}))
		time.AfterFunc(time.Second, func() { assert.Zero(t, state(t, tr, "p").InFlight) })
		res, err := tr.RoundTrip(get(t.Context(), t, site))
		require.NoError(t, err)
		assert.Equal(t, time.Minute, s.at[1].Sub(s.at[0]).Truncate(time.Second))
		assert.Equal(t, s.at[0], s.given[0].closedAt, "nobody reads it")
		rest, _ := io.ReadAll(s.given[0].Reader)
		assert.Empty(t, rest, "drained, so that its connection is used again")
		assert.Equal(t, 1, state(t, tr, "p").InFlight)
		done(t, res)
	})
}

// endless is a body that never ends; hanging one that says nothing until closed.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

type hanging struct{ closed chan struct{} }

func (h hanging) Read([]byte) (int, error) {
	<-h.closed
	return 0, net.ErrClosed
}

func (h hanging) Close() error {
	close(h.closed) // a second time would panic
	return nil
}

func TestDrainIsBounded(t *testing.T) {
	for name, b := range map[string]func() io.ReadCloser{
		"endless": func() io.ReadCloser { return io.NopCloser(endless{}) },
		"hanging": func() io.ReadCloser { return hanging{make(chan struct{})} },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				n := 0
				tr := over(t, base(func(r *http.Request) (*http.Response, error) {
					if n++; n == 1 {
						res := answer(r, 503, "")
						res.Body = b()
						return res, nil
					}
					return answer(r, 200, "{}"), nil
				}), api(provider.Throttle{}))
				start := time.Now()
				res, err := tr.RoundTrip(get(t.Context(), t, site))
				require.NoError(t, err)
				assert.Equal(t, 200, res.StatusCode)
				assert.Less(t, time.Since(start), time.Second+time.Second/2)
				done(t, res)
			})
		})
	}
}

func TestLastAnswerIsReturnedThoughItsRetryIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []func(*http.Request) (*http.Response, error){always(429, "Retry-After", "10")}}
		tr := over(t, s, api(provider.Throttle{}))
		time.AfterFunc(time.Second, func() { // it waits; now its turn comes too late
			assert.NoError(t, tr.Coordinator.Pause("p", time.Now().Add(time.Hour), "maintenance"))
		})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		start := time.Now()
		res, err := tr.RoundTrip(get(ctx, t, site))
		require.NoError(t, err)
		assert.Equal(t, time.Second, time.Since(start).Truncate(time.Millisecond))
		assert.Equal(t, 429, res.StatusCode)
		assert.Equal(t, "{}", done(t, res), "as it was")
	})
}

func TestContextThatEndsBeforeTheNextAttemptIsTheError(t *testing.T) {
	for name, step := range map[string]base{"429": always(429, "Retry-After", "10"), "503": always(503), "lost": lost, "429 to HEAD": func(r *http.Request) (*http.Response, error) {
		res := answer(r, 429, "")
		res.Body = http.NoBody
		return res, nil
	}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tr := over(t, step, api(provider.Throttle{Penalty: time.Minute}))
				ctx, cancel := context.WithCancel(t.Context())
				time.AfterFunc(250*time.Millisecond, cancel)
				_, err := tr.RoundTrip(get(ctx, t, site))
				require.ErrorIs(t, err, context.Canceled)
				var e *coordinator.Error
				require.ErrorAs(t, err, &e)
				assert.Equal(t, 1, e.Attempts)
				if name == "lost" {
					assert.ErrorIs(t, err, errReset)
				}
				assert.Zero(t, state(t, tr, "p").InFlight)
			})
		})
	}
}

func TestBodyThatCannotBeHadAgainEndsTheTries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, step := range map[string]base{"503": always(503), "lost": lost} {
			s := &script{steps: []func(*http.Request) (*http.Response, error){step}}
			tr := over(t, s, api(provider.Throttle{}))
			r := request(t.Context(), t, http.MethodPut, site, strings.NewReader("text"))
			r.GetBody = func() (io.ReadCloser, error) { return nil, errors.New("the file is gone") }
			res, err := tr.RoundTrip(r)
			assert.Len(t, s.got, 1, name)
			if name == "lost" {
				assert.Same(t, errReset, err)
			} else {
				require.NoError(t, err)
				assert.Equal(t, 503, res.StatusCode)
				assert.Equal(t, "{}", done(t, res))
			}
			got := state(t, tr, "p")
			assert.Zero(t, got.InFlight)
			assert.EqualValues(t, 1, got.Granted, "what was not sent was given back")
		}
	})
}

func TestCallersWordOnSendingTwiceCounts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &script{steps: []func(*http.Request) (*http.Response, error){always(503), always(200)}}
		tr := over(t, s, api(provider.Throttle{}))
		ctx := transport.WithCall(t.Context(), coordinator.Call{Replayable: true})
		res, err := tr.RoundTrip(request(ctx, t, http.MethodPost, site, strings.NewReader("text")))
		require.NoError(t, err)
		assert.Equal(t, 200, res.StatusCode)
		done(t, res)
		s.got = nil
		res, err = tr.RoundTrip(request(ctx, t, http.MethodPost, site, &body{Reader: strings.NewReader("text")}))
		require.NoError(t, err)
		assert.Equal(t, 503, res.StatusCode, "but its body is there only once")
		done(t, res)
	})
}
