package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/otel/attribute"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/resource"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/telemetry"
)

const (
	metricsPath = "metrics"

	mostScrapes  = 4                // at once; more are told 503
	scrapeTime   = 10 * time.Second // Prometheus's own bound, for a request and for its answer
	lastScrape   = time.Second      // that one may take which is out as the run ends
	scrapeHeader = 64 << 10
)

// scrape serves what a run does to Prometheus. nil serves nothing.
type scrape struct {
	listener net.Listener
	meters   *metric.MeterProvider
	tel      *telemetry.Telemetry
	server   http.Server
	running  sync.WaitGroup
}

// openScrape takes the address that the options name, if they name one. Nothing is
// served before serve.
func (w *world) openScrape(o options) (*scrape, error) {
	if o.metrics == "" {
		return nil, nil
	}
	l, err := w.listenAt(o.metrics)
	if err != nil {
		return nil, fmt.Errorf("-metrics: %w; want a free HOST:PORT, as 127.0.0.1:9464", err)
	}
	s := &scrape{listener: l}
	if err := s.instrument(); err != nil {
		l.Close()
		return nil, err
	}
	return s, nil
}

// instrument makes the way from the instruments to the scrape, on a registry of its
// own: nothing but this run is in it.
func (s *scrape) instrument() error {
	registry := prometheus.NewRegistry()
	// The scope is the same for every series: the labels are those of docs/telemetry.md.
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry), otelprometheus.WithoutScopeInfo())
	if err != nil {
		return fmt.Errorf("no metrics: %w", err)
	}
	s.meters = metric.NewMeterProvider(
		metric.WithReader(exporter),
		metric.WithResource(resource.NewSchemaless(attribute.String("service.name", "osint"))),
	)
	if s.tel, err = telemetry.New(s.meters, nil); err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /"+metricsPath, promhttp.HandlerFor(registry, promhttp.HandlerOpts{MaxRequestsInFlight: mostScrapes}))
	s.server = http.Server{Handler: mux, ReadTimeout: scrapeTime, WriteTimeout: scrapeTime, MaxHeaderBytes: scrapeHeader}
	return nil
}

// traces are the hooks for the coordinator of the run.
func (s *scrape) traces() []*coordinator.Trace {
	if s == nil {
		return nil
	}
	return []*coordinator.Trace{s.tel.Trace()}
}

// tell tells where the scrape is.
func (s *scrape) tell(w io.Writer) {
	if s != nil {
		fmt.Fprintf(w, "metrics for Prometheus: %s\n", urlOf(s.listener)+metricsPath)
	}
}

// serve begins to serve the state of c.
func (s *scrape) serve(c *coordinator.Coordinator) error {
	if s == nil {
		return nil
	}
	if err := s.tel.Observe(c); err != nil {
		return err
	}
	s.running.Go(func() { _ = s.server.Serve(s.listener) }) // ends by close; its error says no more than that
	return nil
}

// close ends the server. A scrape that is out has a moment to end.
func (s *scrape) close() error {
	if s == nil {
		return nil
	}
	ctx, done := context.WithTimeout(context.Background(), lastScrape)
	defer done()
	if s.server.Shutdown(ctx) != nil {
		s.server.Close()
	}
	s.listener.Close() // where it was never served
	s.running.Wait()
	if err := s.tel.Close(); err != nil {
		return err
	}
	return s.meters.Shutdown(context.Background())
}
