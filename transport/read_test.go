package transport_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/transport"
)

// quota is a dialect whose refusals are 200s with a word in the body.
func quota() provider.Provider {
	p := api(provider.Throttle{RPM: 10})
	p.Dialect.Signals = []provider.Signal{{Status: []int{200}, JSON: &provider.Match{Path: "$.error", Equals: "quota"}, Outcome: provider.QuotaSpent}}
	return p
}

// with is a Base that answers 200 with a body.
func with(text io.Reader, header ...string) base {
	return func(r *http.Request) (*http.Response, error) {
		res := answer(r, 200, "", header...)
		res.Body, res.ContentLength = &body{Reader: text}, -1
		return res, nil
	}
}

func zipped(t *testing.T, text string) *bytes.Buffer {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := io.WriteString(z, text)
	require.NoError(t, err)
	require.NoError(t, z.Close())
	return &b
}

func TestSignalInTheBodyCountsAndTheBodyIsPutBack(t *testing.T) {
	const spent = `{"error":"quota"}`
	long := `{"error":"quota","pad":"` + strings.Repeat("x", 3*dialect.MaxSignalBody) + `"}`
	for name, test := range map[string]struct {
		text   string
		zip    bool
		status provider.Outcome
	}{
		"spent": {spent, false, provider.QuotaSpent}, "spent, gzip": {spent, true, provider.QuotaSpent},
		"not spent": {`{"error":"none"}`, false, provider.OK}, "too long for a signal": {long, false, provider.OK},
	} {
		t.Run(name, func(t *testing.T) {
			b, want := with(strings.NewReader(test.text)), test.text
			if test.zip {
				z := zipped(t, test.text)
				want = z.String()
				b = with(z, "Content-Encoding", "gzip")
			}
			tr := over(t, b, quota())
			res, err := tr.RoundTrip(get(t.Context(), t, site))
			require.NoError(t, err)
			assert.Equal(t, 200, res.StatusCode)
			assert.Equal(t, 1, state(t, tr, "p").InFlight)
			assert.Equal(t, want, done(t, res))
			s := state(t, tr, "p")
			assert.EqualValues(t, 1, s.Outcomes[test.status], s.Outcomes)
			assert.Zero(t, s.InFlight)
		})
	}
}

func TestRefusalInA200IsSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := quota()
		p.Dialect.Signals[0].Outcome = provider.RateLimited
		texts := []string{`{"error":"quota"}`, `{}`}
		tr := over(t, base(func(r *http.Request) (*http.Response, error) {
			text := texts[0]
			texts = texts[1:]
			return answer(r, 200, text), nil
		}), p)
		res, err := tr.RoundTrip(get(t.Context(), t, site))
		require.NoError(t, err)
		assert.Equal(t, `{}`, done(t, res))
		assert.Zero(t, state(t, tr, "p").InFlight)
	})
}

func TestErrorWhileASignalIsReadIsPutBackToo(t *testing.T) {
	mine := errors.New("mine")
	tr := over(t, with(io.MultiReader(strings.NewReader("begin"), failingReader{mine})), quota())
	res, err := tr.RoundTrip(get(t.Context(), t, site))
	require.NoError(t, err, "there is an answer")
	text, err := io.ReadAll(res.Body)
	assert.Equal(t, "begin", string(text))
	require.ErrorIs(t, err, mine)
	assert.Zero(t, state(t, tr, "p").InFlight)
	require.NoError(t, res.Body.Close())
}

// tokens is a provider that tells in the body what a call has cost.
func tokens() provider.Provider {
	p := api(provider.Throttle{Limits: []provider.Limit{{Name: "tokens", Max: 1000, Per: "1h", Unit: "tokens"}}})
	p.Dialect.Used = map[string]provider.Source{"tokens": {JSON: "$.usage"}}
	return p
}

func TestUsedAmountIsReportedWhenTheBodyHasBeenRead(t *testing.T) {
	estimate := transport.WithCall(t.Context(), coordinator.Call{Cost: map[string]int64{"tokens": 100}})
	pad := strings.Repeat("x", 2*dialect.MaxSignalBody)
	for name, test := range map[string]struct {
		text string
		read int // 0: to its end
		used int64
	}{
		"read": {`{"usage":7}`, 0, 7}, "long": {`{"pad":"` + pad + `","usage":500}`, 0, 500},
		"left half-way": {`{"pad":"` + pad + `","usage":500}`, 10, 100}, "says nothing": {`{}`, 0, 100},
		"too long": {`{"usage":7,"pad":"` + strings.Repeat("x", dialect.MaxUsedBody) + `"}`, 0, 100},
	} {
		t.Run(name, func(t *testing.T) {
			tr := over(t, with(strings.NewReader(test.text)), tokens())
			res, err := tr.RoundTrip(get(estimate, t, site))
			require.NoError(t, err)
			assert.EqualValues(t, 100, used(t, tr, "p", "tokens"), "the estimate stands until then")
			if test.read > 0 {
				_, err = io.ReadFull(res.Body, make([]byte, test.read))
				require.NoError(t, err)
				require.NoError(t, res.Body.Close())
			} else {
				assert.Equal(t, test.text, done(t, res))
			}
			assert.Equal(t, test.used, used(t, tr, "p", "tokens"))
		})
	}
}

func TestUsedAmountUnderALease(t *testing.T) {
	tr := over(t, with(strings.NewReader(`{"usage":7}`)), tokens())
	call := coordinator.Call{Provider: "p", Cost: map[string]int64{"tokens": 100}}
	require.NoError(t, tr.Coordinator.Do(t.Context(), call, func(ctx context.Context) error {
		res, err := tr.RoundTrip(get(ctx, t, site))
		require.NoError(t, err)
		done(t, res)
		assert.EqualValues(t, 7, used(t, tr, "p", "tokens"))
		assert.Equal(t, 1, state(t, tr, "p").InFlight, "the slot is its caller's")
		return nil
	}))
}

func TestUsedAmountInAHeaderIsReportedAtOnce(t *testing.T) {
	p := tokens()
	p.Dialect.Used["tokens"] = provider.Source{Header: "X-Used"}
	tr := over(t, always(200, "X-Used", "42"), p)
	res, err := tr.RoundTrip(get(transport.WithCall(t.Context(), coordinator.Call{Cost: map[string]int64{"tokens": 100}}), t, site))
	require.NoError(t, err)
	assert.EqualValues(t, 42, used(t, tr, "p", "tokens"))
	done(t, res)
}

// countedReader counts what is read of an endless body.
type countedReader struct{ n int64 }

func (c *countedReader) Read(p []byte) (int, error) {
	c.n += int64(len(p))
	return len(p), nil
}

func TestHostileBodyIsReadWithinBounds(t *testing.T) {
	p := tokens()
	p.Dialect.Signals = quota().Dialect.Signals
	var sent countedReader
	tr := over(t, with(&sent), p)
	res, err := tr.RoundTrip(get(t.Context(), t, site))
	require.NoError(t, err)
	assert.LessOrEqual(t, sent.n, int64(dialect.MaxSignalBody))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	n, err := io.CopyN(io.Discard, res.Body, 64<<20)
	require.NoError(t, err)
	assert.EqualValues(t, 64<<20, n)
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(16*dialect.MaxUsedBody), "what is kept of it is bounded")
	require.NoError(t, res.Body.Close())
	assert.Zero(t, state(t, tr, "p").InFlight)
}
