package main

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/headgate/headgate/examples/internal/stage"
	"github.com/headgate/headgate/provider"
)

// reloading reads the user's file again at each hangup, until the function that it
// returns is called, which waits for that.
func (w *world) reloading(o options, a *asking, speed float64) (stop func()) {
	if w.hangup == nil {
		return func() {}
	}
	now := inForce(a.targets)
	end, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-w.hangup:
				w.reload(o, a, speed, now)
			case <-end:
				return
			}
		}
	}()
	return func() {
		close(end)
		<-ended
	}
}

// terms are what the user's file decides of a provider.
type terms struct {
	throttle provider.Throttle
	keys     []string
}

// inForce are the terms by slug as the run begins.
func inForce(targets []*target) map[string]terms {
	now := make(map[string]terms)
	for _, t := range targets {
		if t.missing == nil {
			now[t.p.Slug] = terms{t.p.Throttle, t.p.Auth.Env}
		}
	}
	return now
}

// reload puts the limits of the user's file in force. A faulty one changes nothing.
// Keys are read when the adapters are made: another variable needs a new run.
func (w *world) reload(o options, a *asking, speed float64, now map[string]terms) {
	if o.config == "" {
		w.tell("there is nothing to read again: no -config was given")
		return
	}
	next, err := o.again(a.targets, speed)
	if err != nil {
		w.fail(exitFailed, fmt.Errorf("nothing was changed: %w", err))
		return
	}
	var changed, rekeyed []string
	for _, t := range a.targets {
		slug := t.p.Slug
		was, asked := now[slug]
		is := next[slug]
		if !asked {
			continue
		}
		if !slices.Equal(was.keys, is.keys) {
			rekeyed = append(rekeyed, slug)
		}
		if reflect.DeepEqual(was.throttle, is.throttle) {
			continue
		}
		if err := a.c.Update(slug, is.throttle); err != nil {
			w.tell("%v", err)
			continue
		}
		now[slug] = terms{is.throttle, was.keys}
		changed = append(changed, slug)
	}
	text := "no limit has changed"
	if len(changed) > 0 {
		text = "in force from now on: " + strings.Join(changed, ", ")
	}
	w.tell("%s was read again: %s", o.config, text)
	if len(rekeyed) > 0 {
		w.tell("other keys need a new run: %s", strings.Join(rekeyed, ", "))
	}
}

// again are the terms that the user's file gives now.
func (o options) again(targets []*target, speed float64) (map[string]terms, error) {
	all, err := sources()
	if err != nil {
		return nil, err
	}
	names := make([]string, len(all))
	for i, s := range all {
		names[i] = s.base.Slug
	}
	over, err := readOverrides(o.config, names)
	if err != nil {
		return nil, err
	}
	if err := override(all, over); err != nil {
		return nil, fmt.Errorf("%s: %w", o.config, err)
	}
	next := make(map[string]terms)
	var faults []error
	for _, s := range all {
		if !slices.ContainsFunc(targets, func(t *target) bool { return t.p.Slug == s.p.Slug }) {
			continue
		}
		p := s.p
		if !o.live {
			if p, _, err = stage.Scale(p, speed); err != nil {
				faults = append(faults, err)
			}
		}
		next[p.Slug] = terms{p.Throttle, p.Auth.Env}
	}
	return next, errors.Join(faults...)
}
