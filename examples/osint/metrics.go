package main

import (
	"context"
	"fmt"
	"io"
	"net/http"

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
	mostScrapes = 4 // at once; more are told 503
)

// scrape serves what a run does to Prometheus. nil serves nothing.
type scrape struct {
	port   port
	meters *metric.MeterProvider
	tel    *telemetry.Telemetry
}

// openScrape takes the address that the options name, if they name one. Nothing is
// served before serve.
func (w *world) openScrape(o options) (*scrape, error) {
	if o.metrics == "" {
		return nil, nil
	}
	s := new(scrape)
	if err := w.openPort(&s.port, "metrics", o.metrics, "127.0.0.1:9464"); err != nil {
		return nil, err
	}
	if err := s.instrument(); err != nil {
		s.port.close()
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
	s.port.server = http.Server{Handler: mux, ReadTimeout: portTime, WriteTimeout: portTime, MaxHeaderBytes: portHeader}
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
		fmt.Fprintf(w, "metrics for Prometheus: %s\n", s.port.url()+metricsPath)
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
	s.port.serve()
	return nil
}

// close ends the server.
func (s *scrape) close() error {
	if s == nil {
		return nil
	}
	s.port.close()
	if err := s.tel.Close(); err != nil {
		return err
	}
	return s.meters.Shutdown(context.Background())
}
