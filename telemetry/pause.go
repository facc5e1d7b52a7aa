package telemetry

import (
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// mostPauses bounds what is remembered of pauses: there may be a million keys.
const mostPauses = 1024

type pausedScope struct{ provider, scope, name string }

// paused remembers pauses: the spans of calls that wait behind them tell of them.
func (t *Telemetry) paused(p coordinator.PauseChange) {
	at := pausedScope{p.Provider, p.Scope, p.Name}
	t.mu.Lock()
	defer t.mu.Unlock()
	if p.Until.IsZero() {
		delete(t.pauses, at)
		return
	}
	if _, known := t.pauses[at]; !known && len(t.pauses) >= mostPauses {
		t.forgetPauses()
	}
	t.pauses[at] = p
}

// forgetPauses drops those that are over, or all where none is.
func (t *Telemetry) forgetPauses() {
	now := time.Now()
	for at, p := range t.pauses {
		if p.Until.Before(now) {
			delete(t.pauses, at)
		}
	}
	if len(t.pauses) >= mostPauses {
		clear(t.pauses)
	}
}

// pausesOf are those that hold a call up.
func (t *Telemetry) pausesOf(call coordinator.CallInfo) (all []coordinator.PauseChange) {
	now := time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, at := range []pausedScope{
		{call.Provider, provider.ScopeProvider, ""},
		{call.Provider, provider.ScopeEndpoint, call.Endpoint},
		{call.Provider, provider.ScopeKey, call.Key},
	} {
		if p, ok := t.pauses[at]; ok && p.Until.After(now) {
			all = append(all, p)
		}
	}
	return all
}
