package main

import (
	"net/http"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
)

// asked counts who is out.
type asked struct {
	http.RoundTripper
	now, most atomic.Int64
}

func (a *asked) RoundTrip(req *http.Request) (*http.Response, error) {
	n := a.now.Add(1)
	defer a.now.Add(-1)
	for was := a.most.Load(); n > was && !a.most.CompareAndSwap(was, n); was = a.most.Load() {
	}
	return a.RoundTripper.RoundTrip(req)
}

func TestAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		for _, atOnce := range []int64{1, 2, 100} {
			n := connect(t, nil, "shodan", "urlscan", "virustotal")
			out := &asked{RoundTripper: n}
			var stdout, stderr buffer
			w := n.world(t, &stdout, &stderr)
			w.client = &http.Client{Transport: out}
			code := w.run([]string{
				"-live", "-at-once", strconv.FormatInt(atOnce, 10), "-cache", "off", "-json",
				"-providers", "shodan,urlscan,virustotal", "-f", list(t, 20),
			})
			assert.Equal(t, exitOK, code)
			if atOnce < 3 {
				assert.Equal(t, atOnce, out.most.Load())
			} else {
				assert.Greater(t, out.most.Load(), int64(2), "else nothing was bounded above")
			}
			for _, r := range records(t, stdout.String()) {
				assert.True(t, r.OK, r.Error)
			}
		}
	})
}
