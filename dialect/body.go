package dialect

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"compress/zlib"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/provider"
)

// How much of a body, decoded, is looked at.
const (
	MaxSignalBody = 64 << 10 // for signals, advice and problem types
	MaxUsedBody   = 1 << 20  // for used amounts and budgets
)

// NeedsBody says whether [Read] can classify r only with the first
// [MaxSignalBody] bytes of its body: a signal that could still match asks for it,
// a refusal's advice may stand in it, or it is of a problem type. It is false
// where there is none (HEAD, 101, 204, 205, 304), where its encoding cannot be
// read, and for streams (text/event-stream and the like), whose beginning may
// come late. It does not touch r.Body. It is safe for concurrent use.
func NeedsBody(d provider.Dialect, r *http.Response) bool {
	if !hasBody(r) {
		return false
	}
	a := newAnswer(r, nil, time.Time{})
	if streams(a.lines("Content-Type")) {
		return false
	}
	outcome := provider.OfStatus(a.status)
	signalled := false
	for i := range d.Signals {
		s := &d.Signals[i]
		if !a.opens(s) {
			continue
		}
		if asksBody(s) {
			return true
		}
		outcome, signalled = s.Outcome, true
		break
	}
	if waits(outcome) || !signalled && a.status == http.StatusForbidden {
		if slices.ContainsFunc(d.RetryAfter, inBody) || slices.ContainsFunc(d.Budgets, budgetInBody) {
			return true
		}
	}
	return !signalled && !d.Only && a.status >= 400 && isProblem(a.lines("Content-Type"))
}

// NeedsWholeBody says whether r's body, up to [MaxUsedBody], may tell used
// amounts or budgets: whoever has read it calls [Read] again with it and takes
// Used and Budgets from there. It is true for streams too: a pattern can read
// them. Where a body needs to be read for classification ([NeedsBody]) is
// another question. It is safe for concurrent use.
func NeedsWholeBody(d provider.Dialect, r *http.Response) bool {
	if !hasBody(r) {
		return false
	}
	for _, s := range d.Used {
		if inBody(s) {
			return true
		}
	}
	return slices.ContainsFunc(d.Budgets, budgetInBody)
}

func inBody(s provider.Source) bool { return s.JSON != "" || s.Body }

func budgetInBody(b provider.BudgetSource) bool {
	return inBody(b.Limit) || inBody(b.Remaining) || inBody(b.Reset) || inBody(b.Used) || inBody(b.Window)
}

// hasBody says whether r has a body that can be read.
func hasBody(r *http.Response) bool {
	switch {
	case r == nil, r.Body == nil, r.Body == http.NoBody, r.ContentLength == 0,
		r.Request != nil && r.Request.Method == http.MethodHead:
		return false
	}
	switch status := r.StatusCode; {
	case status < 200, status == http.StatusNoContent, status == http.StatusResetContent, status == http.StatusNotModified:
		return false
	}
	_, ok := encodings(r.Header)
	return ok
}

func streams(contentTypes []string) bool {
	if len(contentTypes) == 0 {
		return false
	}
	kind, _, _ := mime.ParseMediaType(contentTypes[0])
	switch kind {
	case "text/event-stream", "application/x-ndjson", "application/jsonl", "application/stream+json", "multipart/x-mixed-replace":
		return true
	}
	return strings.HasPrefix(kind, "application/grpc")
}

// maxEncodings bounds how many encodings one body may have around it.
const maxEncodings = 3

// encodings returns the codings of Content-Encoding in the order in which they
// were applied. ok is false where one is not known: br and zstd are not in the
// standard library.
func encodings(h http.Header) (all []string, ok bool) {
	a := newAnswer(&http.Response{Header: h}, nil, time.Time{})
	for _, line := range a.lines("Content-Encoding") {
		for _, coding := range items(line, false) {
			switch coding = strings.ToLower(coding); coding {
			case "", "identity":
			case "gzip", "x-gzip", "deflate":
				all = append(all, coding)
			default:
				return nil, false
			}
		}
	}
	return all, len(all) <= maxEncodings
}

// Decode undoes the Content-Encoding (gzip, deflate) of a body, up to most bytes
// of the result. A body that is cut short gives what it holds. ok is false where
// an encoding is not known, or nothing can be read; memory and time are bounded
// by most, however much the body would swell. Without an encoding the result is
// body itself, cut to most.
func Decode(h http.Header, body []byte, most int) (decoded []byte, ok bool) {
	most = max(most, 0)
	codings, ok := encodings(h)
	if !ok {
		return nil, false
	}
	if len(codings) == 0 || len(body) == 0 {
		return body[:min(len(body), most)], true
	}
	for _, coding := range slices.Backward(codings) {
		if body, ok = decode(coding, body, most); !ok {
			return nil, false
		}
	}
	return body, true
}

func decode(coding string, body []byte, most int) ([]byte, bool) {
	in := bufio.NewReader(bytes.NewReader(body))
	var r io.Reader
	var err error
	switch {
	case coding != "deflate":
		r, err = gzip.NewReader(in)
	case isZlib(body):
		r, err = zlib.NewReader(in)
	default: // what some servers mean by deflate
		r = flate.NewReader(in)
	}
	if err != nil {
		return nil, false
	}
	out, err := io.ReadAll(io.LimitReader(r, int64(most)))
	return out, err == nil || len(out) > 0
}

// isZlib knows the two bytes that a zlib stream begins with (RFC 1950).
func isZlib(body []byte) bool {
	return len(body) > 1 && body[0]&0x0f == 8 && (int(body[0])<<8|int(body[1]))%31 == 0
}
