package adapters

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/headgate/headgate/adapters/reach"
	"github.com/headgate/headgate/provider"
)

// StatusError is the cause of a lookup that was answered with something other
// than data. Its text is the status and nothing that the provider wrote.
type StatusError int

// Error returns, for instance, "status 403 Forbidden".
func (e StatusError) Error() string {
	return strings.TrimSpace("status " + strconv.Itoa(int(e)) + " " + http.StatusText(int(e)))
}

// StatusCode returns the HTTP status.
func (e StatusError) StatusCode() int { return int(e) }

// unsent is the error of a lookup that never left. why is ours: it holds names,
// never values.
func (h *HTTP) unsent(why error) error {
	f := provider.Feedback{Outcome: provider.Canceled, Detail: "nothing was sent: " + why.Error()}
	return fmt.Errorf("adapters: %s: %w", h.p.Slug, f.Err(why))
}

// failed is the error of a lookup that f ended.
func (h *HTTP) failed(e provider.Endpoint, f provider.Feedback, cause error) error {
	return fmt.Errorf("adapters: %s %s: %w", h.p.Slug, e.Name, f.Err(cause))
}

// unanswered is the error of a request that got no answer: it may still arrive.
func (h *HTTP) unanswered(ctx context.Context, e provider.Endpoint, err error, secrets []string) error {
	return h.broken(ctx, e, err, secrets, provider.Feedback{Unanswered: true})
}

// cut is the error of an answer that broke off.
func (h *HTTP) cut(ctx context.Context, e provider.Endpoint, err error, secrets []string) error {
	return h.broken(ctx, e, err, secrets, provider.Feedback{})
}

// broken says why the connection gave no whole answer.
func (h *HTTP) broken(ctx context.Context, e provider.Endpoint, err error, secrets []string, f provider.Feedback) error {
	return fmt.Errorf("adapters: %s %s: %w", h.p.Slug, e.Name, reach.Broken(ctx, err, clean(err, secrets), f))
}

// clean returns err without the layers of net/http that hold the URL, and
// withholds it where a text below still holds a secret. errors.Is works on both.
func clean(err error, secrets []string) error {
	for u := (*url.Error)(nil); errors.As(err, &u); {
		err = u.Err
	}
	if err == nil || holds(err, secrets) {
		return &withheld{err}
	}
	return err
}

// holds says whether a text of err's tree holds a secret or any URL (which may
// be one that a provider made of ours). Each text is looked at: a wrapper need
// not print what it wraps.
func holds(err error, secrets []string) bool {
	if err == nil {
		return false
	}
	text := err.Error()
	if strings.Contains(text, "://") {
		return true
	}
	for _, s := range secrets {
		if strings.Contains(text, s) {
			return true
		}
	}
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return holds(e.Unwrap(), secrets)
	case interface{ Unwrap() []error }:
		for _, inner := range e.Unwrap() {
			if holds(inner, secrets) {
				return true
			}
		}
	}
	return false
}

// withheld stands for an error whose text holds a key or a URL. It does not
// unwrap, since whoever prints the chain would print it. It is a pointer, and has
// a Format, because %#v looks into values.
type withheld struct{ err error }

func (w *withheld) Error() string { return "text withheld: it holds a key or a URL" }

func (w *withheld) Is(target error) bool { return errors.Is(w.err, target) }

// Format keeps the error out of %#v.
func (w *withheld) Format(s fmt.State, _ rune) { _, _ = io.WriteString(s, w.Error()) }
