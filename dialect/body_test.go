package dialect_test

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// encode applies one coding.
func encode(t testing.TB, coding string, body []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	var w io.WriteCloser
	switch coding {
	case "gzip":
		gw, err := gzip.NewWriterLevel(&b, gzip.BestSpeed)
		require.NoError(t, err)
		w = gw
	case "zlib":
		w = zlib.NewWriter(&b)
	case "flate":
		fw, err := flate.NewWriter(&b, flate.BestSpeed)
		require.NoError(t, err)
		w = fw
	}
	_, err := w.Write(body)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

func TestDecode(t *testing.T) {
	text := []byte(`{"status":429}` + strings.Repeat(" ", 1000))
	gz, zl, fl := encode(t, "gzip", text), encode(t, "zlib", text), encode(t, "flate", text)
	for name, c := range map[string]struct {
		coding []string
		body   []byte
		most   int
		want   []byte
		ok     bool
	}{
		"none":             {nil, text, 1 << 20, text, true},
		"none, cut":        {nil, text, 14, text[:14], true},
		"identity":         {[]string{"identity"}, text, 1 << 20, text, true},
		"gzip":             {[]string{"gzip"}, gz, 1 << 20, text, true},
		"gzip by any name": {[]string{" X-GZIP "}, gz, 1 << 20, text, true},
		"gzip, cut":        {[]string{"gzip"}, gz, 14, text[:14], true},
		"deflate":          {[]string{"deflate"}, zl, 1 << 20, text, true},
		"deflate, raw":     {[]string{"deflate"}, fl, 1 << 20, text, true},
		"two":              {[]string{"deflate", "gzip"}, encode(t, "gzip", zl), 1 << 20, text, true},
		"two in a line":    {[]string{"deflate, gzip"}, encode(t, "gzip", zl), 1 << 20, text, true},
		"three":            {[]string{"gzip, gzip, gzip"}, encode(t, "gzip", encode(t, "gzip", gz)), 1 << 20, text, true},
		"too many":         {[]string{"gzip, gzip", "gzip, gzip"}, encode(t, "gzip", encode(t, "gzip", encode(t, "gzip", gz))), 1 << 20, nil, false},
		"br":               {[]string{"br"}, text, 1 << 20, nil, false},
		"zstd around gzip": {[]string{"gzip, zstd"}, gz, 1 << 20, nil, false},
		"not gzip":         {[]string{"gzip"}, text, 1 << 20, nil, false},
		"cut in its head":  {[]string{"gzip"}, gz[:5], 1 << 20, nil, false},
		"not deflate":      {[]string{"deflate"}, []byte("\xff\xff\xff"), 1 << 20, nil, false},
		"empty":            {[]string{"gzip"}, nil, 1 << 20, nil, true},
		"nothing wanted":   {nil, text, -1, text[:0], true},
	} {
		got, ok := dialect.Decode(http.Header{"Content-Encoding": c.coding}, c.body, c.most)
		assert.Equal(t, c.ok, ok, name)
		assert.Equal(t, string(c.want), string(got), name)
	}
	// A beginning of an encoded body gives the beginning of the body.
	long := make([]byte, 1<<16)
	for i := range long {
		long[i] = "0123456789abcdef"[(i*7919>>3)%16]
	}
	whole := encode(t, "gzip", long)
	got, ok := dialect.Decode(http.Header{"Content-Encoding": {"gzip"}}, whole[:len(whole)/2], 1<<20)
	require.True(t, ok)
	assert.NotEmpty(t, got)
	assert.True(t, bytes.HasPrefix(long, got))
}

func TestABombIsBounded(t *testing.T) {
	bomb := encode(t, "gzip", encode(t, "gzip", make([]byte, 16<<20)))
	h := http.Header{"Content-Encoding": {"gzip, gzip"}}
	got, ok := dialect.Decode(h, bomb, 64<<10)
	assert.True(t, ok)
	assert.Len(t, got, 64<<10)
	r := answered(200)
	r.Header = h
	d := declare(t, "used: {credits: {json: $.a}}\n"+lying)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	dialect.Read(d, r, bomb, now)
	runtime.ReadMemStats(&after)
	assert.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(8<<20), "of 16 MiB")
}

func TestAnEncodedBodyIsReadAndAnUnknownEncodingSkipped(t *testing.T) {
	d, body := declare(t, lying), []byte(`{"status":429}`)
	r := answered(200, "Content-Encoding: gzip")
	assert.Equal(t, provider.RateLimited, dialect.Read(d, r, encode(t, "gzip", body), now).Outcome)
	assert.Equal(t, provider.OK, dialect.Read(d, r, body, now).Outcome, "what is no gzip is not read as text")
	assert.Equal(t, provider.OK, dialect.Read(d, answered(200, "Content-Encoding: br"), body, now).Outcome)
}

func TestSignalsSeeTheFirst64KiBAndAmountsOneMiB(t *testing.T) {
	assert.Equal(t, 64<<10, dialect.MaxSignalBody)
	assert.Equal(t, 1<<20, dialect.MaxUsedBody)
	d := declare(t, "used: {credits: {json: $.used}}\n"+lying)
	long := func(n int, body string) []byte { // of n bytes
		return []byte(body + strings.Repeat(" ", n-len(body)-1) + "\n")
	}
	padded := func(n int) []byte {
		head, tail := `{"status":429,"used":3,"pad":"`, `"}`
		return []byte(head + strings.Repeat("x", n-len(head)-len(tail)) + tail)
	}
	assert.Equal(t, provider.RateLimited, dialect.Read(d, answered(200), padded(dialect.MaxSignalBody), now).Outcome)
	f := dialect.Read(d, answered(200), padded(dialect.MaxSignalBody+1), now)
	assert.Equal(t, costing("credits", 3, ok()), f, "JSON that is longer is no error's body")
	assert.Equal(t, int64(3), dialect.Read(d, answered(200), padded(dialect.MaxUsedBody), now).Used["credits"])
	assert.Empty(t, dialect.Read(d, answered(200), padded(dialect.MaxUsedBody+1), now).Used)
	assert.Empty(t, dialect.Read(d, answered(200), long(dialect.MaxUsedBody+1, `{"used":3}`), now).Used, "who knows what follows")
	assert.Equal(t, provider.QuotaSpent, dialect.Read(d, answered(200), long(2<<20, "API count exceeded"), now).Outcome)
	waits := declare(t, "retry_after: [{body: true, pattern: 'wait (\\d+)', as: seconds}]")
	assert.Equal(t, 9*s, dialect.Read(waits, answered(429), []byte(strings.Repeat("-", dialect.MaxSignalBody-6)+"wait 9"), now).RetryAfter)
	assert.Zero(t, dialect.Read(waits, answered(429), []byte(strings.Repeat("-", dialect.MaxSignalBody-5)+"wait 9"), now).RetryAfter)
	at := declare(t, `signals: [{body: needle, outcome: failed}]`)
	hay := bytes.Repeat([]byte("-"), dialect.MaxSignalBody)
	assert.Equal(t, provider.OK, dialect.Read(at, answered(200), append(hay[:len(hay)-3:len(hay)-3], "needle"...), now).Outcome)
	assert.Equal(t, provider.Failed, dialect.Read(at, answered(200), append(hay[:len(hay)-6:len(hay)-6], "needle"...), now).Outcome)
}

func TestHostileBodies(t *testing.T) {
	d := declare(t, `
used: {credits: {json: '$..used'}}
retry_after: [{json: '$..wait', as: seconds}, {body: true, pattern: '(\d+)+x', as: seconds}]
signals:
  - {json: {path: '$..[?@.a == 1].b', equals: "2"}, outcome: failed}
  - {body: '(a+)+b', outcome: failed}`)
	for name, body := range map[string]string{
		"deep arrays":  strings.Repeat("[", 500_000) + strings.Repeat("]", 500_000),
		"deep objects": strings.Repeat(`{"a":`, 150_000) + "1" + strings.Repeat("}", 150_000),
		"unclosed":     strings.Repeat("[", 1<<17),
		"wide":         "[" + strings.Repeat(`{"a":2},`, 8_000) + "1]",
		"deep enough":  strings.Repeat("[", 201) + strings.Repeat("]", 201),
		"a's":          strings.Repeat("a", 1<<16),
		"digits":       strings.Repeat("1", 1<<16),
		"quotes":       strings.Repeat(`"`, 1<<17),
		"not UTF-8":    strings.Repeat("\xff", 1<<17),
		"a quote open": `{"a":"` + strings.Repeat(`\`, 1<<17),
		"NUL":          strings.Repeat("\x00", 1<<17),
	} {
		f := dialect.Read(d, answered(429), []byte(body), now)
		f.Detail = ""
		assert.Equal(t, limited(0), f, name)
	}
	inside := strings.Repeat("[", 198) + `{"wait":5}` + strings.Repeat("]", 198)
	assert.Equal(t, 5*s, dialect.Read(d, answered(429), []byte(inside), now).RetryAfter, "brackets within the bound are read")
	assert.Zero(t, dialect.Read(d, answered(429), []byte("[[["+inside+"]]]"), now).RetryAfter, "deeper they are not")
	assert.Equal(t, 5*s, dialect.Read(d, answered(429), []byte(`{"t":"\"`+strings.Repeat("[", 300)+`","wait":5}`), now).RetryAfter, "brackets in a string do not count")
}

func TestReadLeavesTheBodyAlone(t *testing.T) {
	d, body := declare(t, lying), []byte("\ufeff API count exceeded \n")
	kept := bytes.Clone(body)
	r := answered(200)
	r.Body = io.NopCloser(strings.NewReader("unread"))
	dialect.Read(d, r, body, now)
	assert.Equal(t, kept, body)
	rest, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	assert.Equal(t, "unread", string(rest))
}

func TestWhoseBodyIsNeeded(t *testing.T) {
	problem := "Content-Type: application/problem+json"
	for name, c := range map[string]struct {
		dialect string
		status  int
		lines   []string
		needs   bool
		whole   bool
	}{
		"nothing declared":                   {"", 429, nil, false, false},
		"signal on the body":                 {lying, 200, nil, true, false},
		"signal of another status":           {lying, 500, nil, false, false},
		"signal whose header does not match": {`signals: [{header: {name: A, equals: "1"}, body: x, outcome: failed}]`, 200, []string{"A: 2"}, false, false},
		"signal whose header matches":        {`signals: [{header: {name: A, equals: "1"}, body: x, outcome: failed}]`, 200, []string{"A: 1"}, true, false},
		"an earlier signal wins":             {"signals:\n  - {status: [200], outcome: ok}\n  - {body: x, outcome: failed}", 200, nil, false, false},
		"it does not win elsewhere":          {"signals:\n  - {status: [200], outcome: ok}\n  - {body: x, outcome: failed}", 201, nil, true, false},
		"advice of a refusal":                {`retry_after: [{json: $.a}]`, 429, nil, true, false},
		"advice of a failure":                {`retry_after: [{body: true, pattern: '(\d+)'}]`, 500, nil, true, false},
		"advice may make a 403 a limit":      {`retry_after: [{json: $.a}]`, 403, nil, true, false},
		"no advice for a 404":                {`retry_after: [{json: $.a}]`, 404, nil, false, false},
		"advice of a signalled refusal":      {"retry_after: [{json: $.a}]\nsignals: [{status: [204, 422], outcome: rate_limited}]", 422, nil, true, false},
		"a 403 that a signal calls a right":  {"retry_after: [{json: $.a}]\nsignals: [{status: [403], outcome: unauthorized}]", 403, nil, false, false},
		"advice in a header":                 {`retry_after: [{header: A}]`, 429, nil, false, false},
		"used":                               {`used: {credits: {json: $.a}}`, 200, nil, false, true},
		"used in a header":                   {`used: {credits: {header: A}}`, 200, nil, false, false},
		"budgets of an ok":                   {`budgets: [{name: a, remaining: {json: $.a}}]`, 200, nil, false, true},
		"budgets of a refusal":               {`budgets: [{name: a, reset: {body: true, pattern: '(\d+)'}}]`, 429, nil, true, true},
		"budgets in a header":                {`budgets: [{name: a, reset: {header: A}}]`, 429, nil, false, false},
		"problem":                            {"", 429, []string{problem}, true, false},
		"problem, but only the declared":     {"only: true", 429, []string{problem}, false, false},
		"problem of an ok":                   {"", 200, []string{problem}, false, false},
		"unknown encoding":                   {lying, 200, []string{"Content-Encoding: br"}, false, false},
		"gzip":                               {lying, 200, []string{"Content-Encoding: gzip"}, true, false},
		"a stream":                           {"used: {tokens: {body: true, pattern: '(\\d+)'}}\n" + lying, 200, []string{"Content-Type: text/event-stream; charset=utf-8"}, false, true},
		"no body by its status":              {"used: {tokens: {json: $.a}}\nsignals: [{body: x, outcome: failed}]", 204, nil, false, false},
	} {
		d, r := declare(t, c.dialect), answered(c.status, c.lines...)
		r.ContentLength, r.Body = -1, io.NopCloser(strings.NewReader("x"))
		assert.Equal(t, c.needs, dialect.NeedsBody(d, r), name)
		assert.Equal(t, c.whole, dialect.NeedsWholeBody(d, r), name)
		// Where there is none, none is needed.
		for how, without := range map[string]func(r *http.Response){
			"nil":    func(r *http.Response) { r.Body = nil },
			"NoBody": func(r *http.Response) { r.Body = http.NoBody },
			"length": func(r *http.Response) { r.ContentLength = 0 },
			"HEAD":   func(r *http.Response) { r.Request = &http.Request{Method: "HEAD"} },
			"101":    func(r *http.Response) { r.StatusCode = 101 },
			"304":    func(r *http.Response) { r.StatusCode = 304 },
		} {
			bare := *r
			without(&bare)
			assert.False(t, dialect.NeedsBody(d, &bare) || dialect.NeedsWholeBody(d, &bare), "%s, %s", name, how)
		}
	}
	assert.False(t, dialect.NeedsBody(provider.Dialect{}, nil) || dialect.NeedsWholeBody(provider.Dialect{}, nil))
}

// What NeedsBody calls not needed does not change the classification.
func TestABodyThatIsNotNeededDoesNotClassify(t *testing.T) {
	for _, v := range vectors {
		if v.body == "" {
			continue
		}
		d, r := declare(t, v.dialect), answered(v.status, v.lines...)
		r.ContentLength, r.Body = -1, io.NopCloser(strings.NewReader("x"))
		if dialect.NeedsBody(d, r) {
			continue
		}
		with, without := dialect.Read(d, r, []byte(v.body), now), dialect.Read(d, r, nil, now)
		if dialect.NeedsWholeBody(d, r) {
			with.Used, with.Budgets, without.Used, without.Budgets = nil, nil, nil, nil
		}
		assert.Equal(t, with, without, "%s %d", v.id, v.status)
	}
}
