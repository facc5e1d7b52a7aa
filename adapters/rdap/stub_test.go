package rdap_test

import (
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/headgate/headgate/adapters/rdap"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answer is what a server says: a status, a body, and headers in pairs.
type answer struct {
	status int
	body   string
	header []string
	err    error // in the place of an answer
}

// servers answer by host name, and keep what they were asked.
type servers struct {
	answers map[string]answer
	asked   []string
	last    *http.Request
}

func (s *servers) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked, s.last = append(s.asked, r.Method+" "+r.URL.String()), r
	a, ok := s.answers[r.URL.Host]
	if !ok {
		a.err = io.ErrUnexpectedEOF
	}
	if a.err != nil {
		return nil, a.err
	}
	return a.response(r), nil
}

func (a answer) response(r *http.Request) *http.Response {
	res := &http.Response{StatusCode: a.status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(a.body)), ContentLength: -1, Request: r}
	for i := 0; i < len(a.header); i += 2 {
		res.Header.Add(a.header[i], a.header[i+1])
	}
	return res
}

func (s *servers) adapter(t *testing.T) *rdap.Adapter {
	t.Helper()
	a, err := rdap.New(rdap.Options{Transport: s})
	require.NoError(t, err)
	return a
}

// redirect answers with the place where to ask.
func redirect(to string) answer { return answer{status: 302, header: []string{"Location", to}} }

const (
	page   = "1 https://rdap.nic.test/domain/example.test"
	domain = `{"objectClassName":"domain","ldhName":"EXAMPLE.TEST","handle":"1","serial":12345678901234567890}`
)

var example = provider.Query{Kind: provider.Domain, Value: "example.test"}

// atRegistry asks the registry's server, which says this.
func atRegistry(t *testing.T, says answer) (provider.Result, error) {
	t.Helper()
	s := &servers{answers: map[string]answer{"rdap.nic.test": says}}
	q := example
	q.Page = page
	return s.adapter(t).Lookup(t.Context(), q)
}

// atRoot asks the bootstrap server, which says this.
func atRoot(t *testing.T, says answer) (provider.Result, error) {
	t.Helper()
	s := &servers{answers: map[string]answer{"rdap.org": says}}
	return s.adapter(t).Lookup(t.Context(), example)
}

func items(t *testing.T, r provider.Result) []json.RawMessage {
	t.Helper()
	var all []json.RawMessage
	require.NoError(t, json.Unmarshal(r.Data, &all))
	return all
}

// feedback is what err says.
func feedback(t *testing.T, err error) provider.Feedback {
	t.Helper()
	require.Error(t, err)
	f, ok := provider.FeedbackOf(err)
	require.True(t, ok, "%v", err)
	assert.Contains(t, err.Error(), "rdap: ")
	assert.NotContains(t, err.Error(), "://")
	return f
}
