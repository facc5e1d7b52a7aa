package console

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// Each condition, the most urgent first, with why and until when.
func TestConditions(t *testing.T) {
	hour := provider.Limit{Name: "hour", Max: 10, Per: "1h"}
	cases := []struct {
		slug  string
		p     provider.Throttle
		keys  []string
		play  func(w *world, slug string)
		want  Condition
		why   string
		until time.Duration // from the beginning; 0: none
	}{
		{"banned", provider.Throttle{Penalty: time.Hour}, nil, func(w *world, slug string) {
			_ = w.call(coordinator.Call{Provider: slug}, provider.Feedback{Outcome: provider.Banned})
		}, Banned, "the provider has banned us", time.Hour + time.Second},
		{"paused", provider.Throttle{}, nil, func(w *world, slug string) {
			_ = w.Pause(slug, time.Now().Add(time.Hour), "maintenance")
		}, Paused, "maintenance", time.Hour},
		{"trial", provider.Throttle{}, nil, func(w *world, slug string) {
			_ = w.Pause(slug, time.Now().Add(time.Second), "maintenance")
			go func() { _ = w.call(coordinator.Call{Provider: slug}, ok) }()
			time.Sleep(1500 * time.Millisecond)
		}, Paused, "maintenance: over, one call has gone alone", 0},
		{"broken", provider.Throttle{}, nil, func(w *world, slug string) {
			for range 5 {
				_ = w.call(coordinator.Call{Provider: slug}, provider.Feedback{Outcome: provider.Failed})
			}
		}, CircuitOpen, "too many failures in a row", 35 * time.Second},
		{"probing", provider.Throttle{}, nil, func(w *world, slug string) {
			for range 5 {
				_ = w.call(coordinator.Call{Provider: slug}, provider.Feedback{Outcome: provider.Failed})
			}
			time.Sleep(31 * time.Second)
			go func() { _ = w.call(coordinator.Call{Provider: slug}, ok) }()
			time.Sleep(500 * time.Millisecond)
		}, CircuitOpen, "half-open: one call goes as a trial", 0},
		{"spent", provider.Throttle{Limits: []provider.Limit{hour}}, nil, func(w *world, slug string) {
			for range 10 {
				_ = w.call(coordinator.Call{Provider: slug}, ok)
			}
		}, QuotaSpent, "limit hour: none of 10 left", time.Hour + time.Second},
		{"spent-keys", provider.Throttle{Limits: []provider.Limit{{Name: "hour", Max: 1, Per: "1h", Scope: provider.ScopeKey}}}, []string{"A", "B"}, func(w *world, slug string) {
			for range 2 {
				_ = w.call(coordinator.Call{Provider: slug}, ok)
			}
		}, QuotaSpent, "limit hour: none of 1 left", time.Hour + time.Second},
		{"told", provider.Throttle{RPM: 60}, nil, func(w *world, slug string) {
			_ = w.call(coordinator.Call{Provider: slug}, provider.Feedback{Outcome: provider.QuotaSpent, RetryAfter: 10 * time.Minute})
		}, QuotaSpent, "limit rpm: none of 60 left", 0},
		{"refusing", provider.Throttle{RPM: 60}, nil, func(w *world, slug string) {
			_ = w.call(coordinator.Call{Provider: slug}, ok)
			for range 63 {
				_ = w.Do(w.t.Context(), coordinator.Call{Provider: slug, Wait: -1}, func(context.Context) error { return nil })
			}
		}, Refusing, "4 calls refused in the last minute", 0},
		{"full", provider.Throttle{RPS: 1, MaxQueue: 2}, nil, func(w *world, slug string) {
			for range 3 {
				go func() { _ = w.call(coordinator.Call{Provider: slug}, ok) }()
			}
			synctest.Wait()
		}, Refusing, "every place of the queue is taken", 0},
		{"part", provider.Throttle{Penalty: time.Hour}, []string{"A", "B"}, func(w *world, slug string) {
			_ = w.call(coordinator.Call{Provider: slug, Key: "A"}, provider.Feedback{Outcome: provider.Unauthorized})
		}, PartPaused, "one key is paused: unauthorized", time.Hour + time.Second},
		{"queueing", provider.Throttle{RPM: 1}, nil, func(w *world, slug string) {
			for range 3 {
				go func() { _ = w.call(coordinator.Call{Provider: slug}, ok) }()
			}
			synctest.Wait()
		}, Queueing, "2 calls waiting", 0},
		{"half", provider.Throttle{RPS: 1, MaxQueue: 4}, nil, func(w *world, slug string) {
			for range 3 {
				go func() { _ = w.call(coordinator.Call{Provider: slug}, ok) }()
			}
			synctest.Wait()
		}, Queueing, "2 calls waiting", 0},
		{"near", provider.Throttle{Limits: []provider.Limit{hour}}, nil, func(w *world, slug string) {
			for range 8 {
				_ = w.call(coordinator.Call{Provider: slug}, ok)
			}
		}, NearLimit, "limit hour: 2 of 10 left", time.Hour + time.Second},
		{"busy", provider.Throttle{RPS: 1}, nil, func(w *world, slug string) { _ = w.call(coordinator.Call{Provider: slug}, ok) }, Busy, "", 0},
		{"idle", provider.Throttle{RPS: 1}, nil, func(w *world, slug string) {
			_ = w.call(coordinator.Call{Provider: slug}, ok)
			time.Sleep(2 * time.Minute)
		}, Idle, "", 0},
		{"off", provider.Throttle{Off: []string{provider.Everything}}, nil, func(w *world, slug string) { _, _ = w.State(slug) }, Off, "switched off by its throttle", 0},
		{"unused", provider.Throttle{}, nil, func(*world, string) {}, Unused, "", 0},
	}
	seen := make(map[Condition]bool)
	for _, c := range cases {
		seen[c.want] = true
		t.Run(c.slug, func(t *testing.T) {
			p := provider.Provider{Slug: c.slug, Throttle: c.p}
			if c.keys != nil {
				p.Auth = provider.Auth{Kind: "query", Name: "key", Env: c.keys}
			}
			bubble(t, Options{}, func(t *testing.T, w *world) {
				begin := time.Now()
				c.play(w, c.slug)
				w.renew()
				got := w.told(c.slug)
				assert.Equal(t, c.want, got.Condition)
				assert.Equal(t, c.why, got.Why)
				if c.until != 0 {
					assert.WithinDuration(t, begin.Add(c.until), got.Until, 2*time.Millisecond)
				}
				page := w.get("/?open=" + c.slug + "&q=" + c.slug).Body.String()
				assert.Contains(t, page, "</span>"+c.want.Label()+"</span>")
				assert.Contains(t, page, `id="d-`+c.slug)
			}, p)
		})
	}
	for _, c := range Conditions() {
		assert.True(t, seen[c], "%s is not tested", c)
		assert.NotEmpty(t, c.Label())
		assert.Contains(t, []string{"bad", "warn", "note", "good", "calm"}, c.Tone())
	}
}
