package transport

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"time"
)

// What is read of a response that nobody gets: its connection can be used again if
// that is all of it.
const (
	drainBytes = 16 << 10
	drainTime  = 100 * time.Millisecond
)

// hold keeps the slot until the response's body is closed or read to its end. One
// that was refused may be dropped before.
func (a *attempt) hold(refused bool) {
	if a.res.Body == http.NoBody { // the slot ends with the function
		a.finish()
		return
	}
	a.wrap()
	if refused {
		a.lease.Hold(a.drop)
	} else {
		a.lease.Hold(nil)
	}
}

// wrap has the end of the response's body noticed.
func (a *attempt) wrap() {
	a.body = heldBody{a.res.Body, a}
	if w, ok := a.res.Body.(io.Writer); ok {
		a.res.Body = &duplexBody{&a.body, w}
	} else {
		a.res.Body = &a.body
	}
}

// finish gives back what an attempt holds: its slot and its context.
func (a *attempt) finish() {
	if a.done.Swap(true) {
		return
	}
	if a.cancel != nil {
		a.cancel()
	}
	if a.tee != nil {
		a.used()
	}
	if a.body.ReadCloser != nil && !a.lent {
		a.lease.Release()
	}
}

// drop is called when the request is to be sent again. What there was of the
// response is kept, if that is all of it: should the wait be refused, it is the
// last response.
func (a *attempt) drop() {
	a.dropped = true
	kept, whole := drain(&a.body)
	if whole {
		a.res.Body = io.NopCloser(bytes.NewReader(kept))
	} else {
		a.res = nil
	}
}

// drain reads a body to its end, within bounds, and closes it.
func drain(body io.ReadCloser) (kept []byte, whole bool) {
	late := time.AfterFunc(drainTime, func() { _ = body.Close() }) // ends a read that hangs
	kept, err := io.ReadAll(io.LimitReader(body, drainBytes+1))
	if late.Stop() {
		_ = body.Close()
	}
	return kept, err == nil && len(kept) <= drainBytes
}

// heldBody is a response's body: at its end, the end of the call.
type heldBody struct {
	io.ReadCloser
	a *attempt
}

func (b *heldBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.a.tee != nil {
		b.a.tee.add(p[:n])
	}
	if err != nil {
		b.a.finish()
	}
	return n, err
}

func (b *heldBody) Close() error {
	defer b.a.finish()
	return b.ReadCloser.Close()
}

// duplexBody is the body of a 101: a connection of both directions.
type duplexBody struct {
	*heldBody
	io.Writer
}

// CloseWrite ends our direction alone, where the connection can do that.
func (b *duplexBody) CloseWrite() error {
	if c, ok := b.Writer.(interface{ CloseWrite() error }); ok {
		return c.CloseWrite()
	}
	return fmt.Errorf("transport: CloseWrite: %w", http.ErrNotSupported)
}

// emptyBody stands for a body that Base left nil. One that should have had a
// length is cut short, not empty.
func emptyBody(req *http.Request, res *http.Response) io.ReadCloser {
	bodiless := req.Method == http.MethodHead || res.StatusCode == http.StatusNoContent || res.StatusCode == http.StatusNotModified
	if res.ContentLength <= 0 || bodiless {
		return http.NoBody
	}
	return io.NopCloser(truncated{})
}

type truncated struct{}

func (truncated) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
