package adapters_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"net"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// noData declares that a 404 says "nothing found".
func noData(p *provider.Provider) {
	p.Dialect.Signals = []provider.Signal{{Status: []int{404, 410, 501}, Outcome: provider.OK}}
}

func TestDataIsJSONAlways(t *testing.T) {
	for body, want := range map[string]string{
		`{"a":1}`:                   `{"a":1}`,
		" [1, 2]\n":                 `[1, 2]`,
		"\ufeff{\"bom\":1}":         `{"bom":1}`,
		`"text"`:                    `"text"`,
		"false":                     "false",
		"0":                         "0",
		"plain text":                `"plain text"`,
		"API count exceeded\n":      `"API count exceeded"`,
		`{"cut":`:                   `"{\"cut\":"`,
		"{\"a\":1}\n{\"b\":2}":      `"{\"a\":1}\n{\"b\":2}"`,
		"\xff\xfe":                  "\"\ufffd\"",
		"\"\xff\"":                  "\"\ufffd\"",
		"<html>":                    `"\u003chtml\u003e"`,
		strings.Repeat("[", 100000): `"` + strings.Repeat("[", 100000) + `"`,
	} {
		p := decl(func(p *provider.Provider) { p.Endpoints[0].EmptyIsSuspicious = true })
		r, err := ask(t, serve(t, p, adapters.Options{}, answer(200, body)), "x")
		require.NoError(t, err)
		assert.Equal(t, want, string(r.Data))
		assert.True(t, json.Valid(r.Data))
		assert.False(t, r.Empty || r.Suspicious, "%q is data", body)
	}
}

func TestNoDataIsAnAnswer(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
	}{
		{204, ""}, {205, ""}, {200, "[]"}, {200, "{ }"}, {200, " null "}, {200, "[ \n]"}, {206, "[]"},
		{404, `{"error":{"code":"NotFoundError"}}`}, {404, ""}, {410, "[]"},
		{501, "{}"}, // as declared, however odd
	} {
		for _, suspicious := range []bool{false, true} {
			p := decl(noData)
			p.Endpoints[0].EmptyIsSuspicious = suspicious
			a := serve(t, p, adapters.Options{}, answer(c.status, c.body))
			r, err := ask(t, a, "x")
			require.NoError(t, err, "%d %q", c.status, c.body)
			assert.True(t, r.Empty, "%d %q", c.status, c.body)
			assert.Equal(t, suspicious, r.Suspicious)
			assert.Equal(t, provider.OK, r.Feedback.Outcome)
			if c.status >= 300 {
				assert.Empty(t, r.Data, "an error's body is no data")
			}
		}
	}
}

func TestCouldNotAskIsAnError(t *testing.T) {
	for name, c := range map[string]struct {
		handler http.HandlerFunc
		want    provider.Outcome
		detail  string
	}{
		"404 that is declared, as a page":  {answer(404, "<html>nginx</html>"), provider.Rejected, "a page that is no answer of the API"},
		"status that nothing declares":     {answer(422, "[]"), provider.Rejected, "status 422"},
		"empty 200":                        {answer(200, ""), provider.Unknown, "the answer is empty"},
		"blank 200":                        {answer(200, " \r\n"), provider.Unknown, "the answer is empty"},
		"304":                              {answer(304, ""), provider.Rejected, "a redirect that is not followed"},
		"302 without place":                {answer(302, "[]"), provider.Rejected, "a redirect that is not followed"},
		"401":                              {answer(401, "[]"), provider.Unauthorized, "status 401"},
		"402":                              {answer(402, "{}"), provider.QuotaSpent, "status 402"},
		"403":                              {answer(403, ""), provider.Unauthorized, "status 403"},
		"429":                              {answer(429, "[]", "Retry-After", "7"), provider.RateLimited, "status 429"},
		"500":                              {answer(500, "[]"), provider.Failed, "status 500"},
		"503":                              {answer(503, "[]", "Retry-After", "7"), provider.Overloaded, "status 503"},
		"an encoding that nobody asked":    {answer(200, "[]", "Content-Encoding", "br"), provider.Rejected, "encoding"},
		"long refusal keeps its class":     {answer(429, strings.Repeat("x", 9<<20), "Retry-After", "7"), provider.RateLimited, "status 429"},
		"longer than 8 MiB":                {answer(200, `"`+strings.Repeat("x", 8<<20-1)+`"`), provider.Rejected, "longer than 8 MiB"},
		"connection closed in the headers": {drop(""), provider.Failed, "connection"},
		"connection closed in the body":    {drop("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n[]"), provider.Failed, "connection closed early"},
		"chunks that end early":            {drop("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n"), provider.Failed, "connection closed early"},
		"refusal that is cut short":        {drop("HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 10\r\n\r\n[]"), provider.RateLimited, "status 429"},
		"no HTTP":                          {drop("SSH-2.0-OpenSSH\r\n"), provider.Failed, "network error"},
		"a protocol that nobody asked":     {drop("HTTP/1.1 101 Switching\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n[1]"), provider.Unknown, "empty"},
	} {
		t.Run(name, func(t *testing.T) {
			a := serve(t, decl(noData), adapters.Options{}, c.handler)
			r, err := ask(t, a, "x")
			f := feedback(t, err)
			assert.Equal(t, provider.Result{}, r, "an error is never a Result")
			assert.Equal(t, c.want, f.Outcome)
			assert.Contains(t, f.Detail, c.detail)
			if c.want == provider.RateLimited || c.want == provider.Overloaded {
				assert.Equal(t, 7*time.Second, f.RetryAfter)
			}
			answered := name != "connection closed in the headers" && name != "no HTTP"
			assert.Equal(t, !answered, f.Unanswered)
		})
	}
}

func TestAnUndeclared404IsNotNoData(t *testing.T) {
	for _, signal := range []provider.Signal{
		{},
		{Status: []int{404}, Outcome: provider.Rejected},
		{Status: []int{400}, Outcome: provider.OK},
		{Status: []int{404}, Outcome: provider.OK, Body: "not found"},
		{Status: []int{404}, Outcome: provider.OK, Header: &provider.Match{Name: "X", Equals: "1"}},
		{Status: []int{404}, Outcome: provider.OK, JSON: &provider.Match{Path: "$.a", Equals: "1"}},
	} {
		p := decl(nil)
		if signal.Outcome != "" {
			p.Dialect.Signals = []provider.Signal{signal}
		}
		_, err := ask(t, serve(t, p, adapters.Options{}, answer(404, "{}")), "x")
		assert.Equal(t, provider.Rejected, feedback(t, err).Outcome, "%+v", signal)
		var status adapters.StatusError
		require.ErrorAs(t, err, &status)
		assert.Equal(t, 404, status.StatusCode())
	}
}

func TestCase19_AnEmptyListOfAnAdapterThatDeclaredItIsSuspicious(t *testing.T) {
	for _, declared := range []bool{false, true} {
		p := decl(nil)
		p.Endpoints[0].EmptyIsSuspicious = declared
		r, err := ask(t, serve(t, p, adapters.Options{}, answer(200, "[]")), "x")
		require.NoError(t, err)
		assert.True(t, r.Empty)
		assert.Equal(t, declared, r.Suspicious)
		r, err = ask(t, serve(t, p, adapters.Options{}, answer(200, "[1]")), "x")
		require.NoError(t, err)
		assert.False(t, r.Empty || r.Suspicious)
	}
}

func TestAnErrorInA200IsNeverAResult(t *testing.T) {
	p := decl(func(p *provider.Provider) {
		p.Dialect.Signals = []provider.Signal{
			{Status: []int{200}, Body: "^API count exceeded", Outcome: provider.QuotaSpent},
			{Status: []int{200}, JSON: &provider.Match{Path: "$.status", Equals: "429"}, Outcome: provider.RateLimited},
		}
	})
	for body, want := range map[string]provider.Outcome{"API count exceeded - Increase Quota": provider.QuotaSpent, `{"status":429}`: provider.RateLimited} {
		r, err := ask(t, serve(t, p, adapters.Options{}, answer(200, body)), "x")
		assert.Equal(t, want, feedback(t, err).Outcome, body)
		assert.Equal(t, provider.Result{}, r)
	}
}

func TestAConditionOfNoDataMayLookIntoTheBody(t *testing.T) {
	p := decl(func(p *provider.Provider) {
		p.Dialect.Signals = []provider.Signal{{Status: []int{404}, JSON: &provider.Match{Path: "$.error.code", Equals: "NotFoundError"}, Outcome: provider.OK}}
	})
	r, err := ask(t, serve(t, p, adapters.Options{}, answer(404, `{"error":{"code":"NotFoundError"}}`)), "x")
	require.NoError(t, err)
	assert.True(t, r.Empty)
	assert.Equal(t, "status 404: no data", r.Feedback.Detail)
	_, err = ask(t, serve(t, p, adapters.Options{}, answer(404, `{"error":{"code":"Other"}}`)), "x")
	assert.Equal(t, provider.Rejected, feedback(t, err).Outcome)
}

func TestABodyOfExactly8MiBIsRead(t *testing.T) {
	body := `"` + strings.Repeat("x", 8<<20-2) + `"`
	a := serve(t, decl(nil), adapters.Options{}, answer(200, body))
	r, err := ask(t, a, "x")
	require.NoError(t, err)
	assert.Len(t, r.Data, 8<<20)
}

func TestGzip(t *testing.T) {
	gzipped := func(body string) string {
		var b bytes.Buffer
		w, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		require.NoError(t, err)
		_, err = w.Write([]byte(body))
		require.NoError(t, err)
		require.NoError(t, w.Close())
		return b.String()
	}
	whole := gzipped(`{"a":1}`)
	r, err := ask(t, serve(t, decl(nil), adapters.Options{}, answer(200, whole, "Content-Encoding", "gzip")), "x")
	require.NoError(t, err)
	assert.JSONEq(t, `{"a":1}`, string(r.Data))

	// Cut short with a Content-Length that agrees: only the encoding can tell.
	cut := answer(200, whole[:len(whole)-6], "Content-Encoding", "gzip")
	_, err = ask(t, serve(t, decl(nil), adapters.Options{}, cut), "x")
	assert.Equal(t, provider.Failed, feedback(t, err).Outcome)

	// A small answer that swells beyond the bound.
	bomb := answer(200, gzipped(`"`+strings.Repeat("x", 9<<20)+`"`), "Content-Encoding", "gzip")
	_, err = ask(t, serve(t, decl(nil), adapters.Options{}, bomb), "x")
	require.ErrorContains(t, err, "longer than 8 MiB")

	// A Client without decompression: bytes that nobody can read are no data.
	raw := adapters.Options{Client: &http.Client{Transport: &http.Transport{DisableCompression: true}}}
	_, err = ask(t, serve(t, decl(nil), raw, answer(200, whole, "Content-Encoding", "gzip")), "x")
	require.ErrorContains(t, err, "encoding")
	identity := answer(200, "[1]", "Content-Encoding", "identity")
	_, err = ask(t, serve(t, decl(nil), raw, identity), "x")
	require.NoError(t, err)
}

func TestStatusErrorSaysTheStatus(t *testing.T) {
	assert.EqualError(t, adapters.StatusError(403), "status 403 Forbidden")
	assert.EqualError(t, adapters.StatusError(529), "status 529")
}

// drop writes text as it stands and closes the connection.
func drop(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			panic(err)
		}
		defer conn.Close()
		_, _ = conn.Write([]byte(text))
	}
}

// refused is a port of loopback at which nobody listens.
func refused(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, l.Close())
	return "http://127.0.0.1:" + strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// Many a provider says "nothing found" in words, in a 200.
func TestNoDataInWordsIsNoData(t *testing.T) {
	words := func(p *provider.Provider) {
		p.Dialect.Signals = []provider.Signal{
			{JSON: &provider.Match{Path: "$.status", Equals: "no_results"}, Outcome: provider.OK, Empty: true},
			{Body: "^(no hits)?$", Outcome: provider.OK, Empty: true},
		}
	}
	for body, data := range map[string]string{`{"status":"no_results"}`: `{"status":"no_results"}`, "no hits\n": `"no hits"`, "": ""} {
		r, err := ask(t, serve(t, decl(words), adapters.Options{}, answer(200, body)), "x")
		require.NoError(t, err)
		assert.True(t, r.Empty, body)
		assert.Equal(t, data, string(r.Data))
	}
	missing := func(p *provider.Provider) {
		p.Dialect.Signals = []provider.Signal{{Status: []int{404}, Body: "^Resource not found", Outcome: provider.OK, Empty: true}}
	}
	r, err := ask(t, serve(t, decl(missing), adapters.Options{}, answer(404, "Resource not found.")), "x")
	require.NoError(t, err)
	assert.True(t, r.Empty, "a text that is declared is no foreign page")
	paged := func(p *provider.Provider) {
		words(p)
		p.Endpoints[0].Params = map[string]string{"p": "{page}"}
		p.Endpoints[0].Paging = &provider.Paging{}
	}
	r, err = ask(t, serve(t, decl(paged), adapters.Options{}, answer(200, "no hits")), "x")
	require.NoError(t, err)
	assert.True(t, r.Empty)
	assert.Equal(t, "[]", string(r.Data))
	assert.Empty(t, r.Next)
}
