package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/dialect"
	"github.com/headgate/headgate/provider"
)

const (
	mostBytes = 256 << 20 // of a source
	mostTime  = 5 * time.Minute
	agent     = "headgate-example-schedule"
)

// fetcher gets sources over HTTP and keeps each in a file of its name.
type fetcher struct {
	client *http.Client
	url    func(s *source) string
	dir    string
	read   map[string]provider.Dialect // how each provider answers
}

// fetch gets a source. A file is replaced when there is a whole new one. What it returns
// is told to the provider's limits, breaker and pauses.
func (f *fetcher) fetch(ctx context.Context, s *source) (bytes int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, mostTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url(s), nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("User-Agent", agent)
	res, err := f.client.Do(req)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	head := make([]byte, 64<<10)
	n, err := io.ReadFull(res.Body, head)
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return 0, err
	}
	head = head[:n]
	told := dialect.Read(f.read[s.Provider], res, head, time.Now())
	if told.Outcome != provider.OK {
		return 0, told.Err(fmt.Errorf("status %d", res.StatusCode))
	}
	if l, ok := coordinator.LeaseFrom(ctx); ok {
		l.Report(told) // what it told of quotas
	}
	return f.save(s, io.MultiReader(strings.NewReader(string(head)), res.Body))
}

func (f *fetcher) save(s *source, body io.Reader) (bytes int64, err error) {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return 0, unsaved(err)
	}
	tmp, err := os.CreateTemp(f.dir, s.Name+".*.part")
	if err != nil {
		return 0, unsaved(err)
	}
	defer os.Remove(tmp.Name())
	bytes, err = io.Copy(tmp, io.LimitReader(body, mostBytes+1))
	if e := tmp.Close(); err == nil && e != nil {
		return 0, unsaved(e)
	}
	switch {
	case err != nil:
		return 0, err
	case bytes > mostBytes:
		return 0, unsaved(fmt.Errorf("more than %d bytes", int64(mostBytes)))
	}
	if err := os.Rename(tmp.Name(), filepath.Join(f.dir, s.Name)); err != nil {
		return 0, unsaved(err)
	}
	return bytes, nil
}

// unsaved is a failure that says nothing of the provider.
func unsaved(err error) error {
	return provider.Feedback{Outcome: provider.Unknown, Detail: "not saved"}.Err(err)
}
