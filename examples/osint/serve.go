package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/headgate/headgate/console"
	"github.com/headgate/headgate/coordinator"
)

// status serves the status page of a run. nil serves nothing.
type status struct {
	port     port
	recorder console.Recorder
	page     *console.Console // nil: not yet
}

// openStatus takes the address that the options name, if they name one. Nothing is
// served before serve.
func (w *world) openStatus(o options) (*status, error) {
	if o.serve == "" {
		return nil, nil
	}
	s := new(status)
	if err := w.openPort(&s.port, "serve", o.serve, "127.0.0.1:8080"); err != nil {
		return nil, err
	}
	if host, _, err := net.SplitHostPort(s.port.listener.Addr().String()); err == nil && !net.ParseIP(host).IsLoopback() {
		w.tell("-serve %s: whoever reaches this machine can see the page; 127.0.0.1 is for you alone", o.serve)
	}
	return s, nil
}

func (s *status) traces() []*coordinator.Trace {
	if s == nil {
		return nil
	}
	return []*coordinator.Trace{s.recorder.Trace()}
}

// tell tells where the page is.
func (s *status) tell(w io.Writer) {
	if s != nil {
		fmt.Fprintf(w, "status page: %s\n", s.port.url())
	}
}

// serve begins to serve the page of c.
func (s *status) serve(c *coordinator.Coordinator) {
	if s == nil {
		return
	}
	s.page = console.New(c, console.Options{Title: "osint", Recorder: &s.recorder})
	s.port.server = http.Server{Handler: s.page, ReadHeaderTimeout: portTime, MaxHeaderBytes: portHeader}
	s.port.serve()
}

// stay keeps the page until the run's context ends.
func (s *status) stay(ctx context.Context, told io.Writer) {
	if s == nil || ctx.Err() != nil {
		return
	}
	fmt.Fprintf(told, "osint: done; %s stays until Ctrl-C\n", s.port.url())
	<-ctx.Done()
}

// close ends the page, and its server.
func (s *status) close() error {
	if s == nil {
		return nil
	}
	if s.page != nil {
		if err := s.page.Close(); err != nil { // else its streams would not end
			return err
		}
	}
	s.port.close()
	return nil
}

// windows are what others can look at a run through.
type windows struct {
	scrape *scrape
	status *status
}

// windows defines the flags that let others look on.
func (o *options) windows(set *flag.FlagSet) {
	set.Func("metrics", "serve the run's metrics to Prometheus on `ADDR`, as 127.0.0.1:9464 (port 0: a free one), until it ends", func(s string) error {
		if o.metrics = s; s == "" {
			return errors.New("want HOST:PORT, as 127.0.0.1:9464")
		}
		return nil
	})
	set.Func("serve", "show the run on a status page at `ADDR`, as 127.0.0.1:8080 (port 0: a free one), until it ends", func(s string) error {
		if o.serve = s; s == "" {
			return errors.New("want HOST:PORT, as 127.0.0.1:8080")
		}
		return nil
	})
	set.BoolVar(&o.stay, "stay", false, "with -serve: keep the page when all is done, until Ctrl-C")
}

// watched does the job while others can look on, if the options want that. An address
// that cannot be had is told before anything else is opened.
func (w *world) watched(o options, r *reading, targets []*target) (code int, err error) {
	var v windows
	if v.scrape, err = w.openScrape(o); err == nil {
		v.status, err = w.openStatus(o)
	}
	defer func() {
		if err := errors.Join(v.scrape.close(), v.status.close()); err != nil {
			w.tell("%v", err)
		}
	}()
	if err != nil {
		return exitUsage, err
	}
	return w.lookUp(o, r, targets, v)
}

func (v windows) traces() []*coordinator.Trace {
	return append(v.scrape.traces(), v.status.traces()...)
}

func (v windows) tell(w io.Writer) {
	v.scrape.tell(w)
	v.status.tell(w)
}

func (v windows) serve(c *coordinator.Coordinator) error {
	v.status.serve(c)
	return v.scrape.serve(c)
}
