package book

import (
	"net/url"
	"strings"
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/provider"
)

const (
	// longestTrial is how long the one call after a pause is waited for.
	longestTrial = time.Minute
	// stale is how long after its end a pause is forgotten which nobody has tried.
	stale = 24 * time.Hour
)

func pauseKey(slug, scope, name string) string {
	if scope == provider.ScopeProvider {
		name = ""
	}
	return url.QueryEscape(slug) + "/" + scope + "/" + url.QueryEscape(name)
}

func (x *turn) readPauses(*ledger.Reply) error {
	if x.pauses != nil {
		return nil
	}
	pauses := map[string]*Pause{}
	err := x.s.Pauses.Scan("", func(key string, p *Pause) { pauses[key] = p })
	if err == nil {
		x.pauses, x.rev = pauses, x.meta.Rev
	}
	return err
}

// put stores a pause. told: one that others see has begun or changed.
func (x *turn) put(key string, p *Pause, told bool) error {
	x.pauses[key] = p
	x.revise(told)
	return x.s.Pauses.Put(key, p)
}

func (x *turn) drop(key string) error {
	delete(x.pauses, key)
	x.revise(true)
	return x.s.Pauses.Delete(key)
}

func (x *turn) revise(told bool) {
	x.meta.Rev++
	x.rev = x.meta.Rev
	if told {
		x.meta.Version++
	}
}

// of calls f with the pauses whose scope a Take is in.
func (x *turn) of(t *ledger.Take, f func(key string, p *Pause)) {
	if len(x.pauses) == 0 {
		return
	}
	for _, in := range [...][2]string{{provider.ScopeProvider, ""}, {provider.ScopeEndpoint, t.Endpoint}, {provider.ScopeKey, t.Key}} {
		key := pauseKey(t.Provider, in[0], in[1])
		if p := x.pauses[key]; p != nil {
			f(key, p)
		}
	}
}

// paused returns the pause that opens last, and when; nil: none refuses.
func (x *turn) paused(t *ledger.Take) (refuses *ledger.Pause, opens time.Duration) {
	x.of(t, func(_ string, p *Pause) {
		at := p.Until
		if at <= x.now.Mono && p.Holder != "" && x.now.Mono-p.Since < longestTrial {
			at = limit.Never
		}
		if at > x.now.Mono && at > opens {
			refuses, opens = x.told(p), at
		}
	})
	return refuses, opens
}

// alone makes a call that has been granted the one that goes after the pauses that it
// has passed, and returns their keys.
func (x *turn) alone(a *ledger.Asked) (keys []string, err error) {
	x.of(&a.Take, func(key string, p *Pause) {
		p.Holder, p.Hold, p.Since = x.b.Holder, a.Hold, x.now.Mono
		keys = append(keys, key)
		if err == nil {
			err = x.put(key, p, false)
		}
	})
	return keys, err
}

// tried ends the trials of a hold, as far as they are still its own.
func (x *turn) tried(hold string, h *Hold, opens bool) error {
	keys := h.Trials
	h.Trials = nil
	for _, key := range keys {
		p := x.pauses[key]
		if p == nil || p.Holder == "" || holdKey(p.Holder, p.Hold) != hold {
			continue
		}
		if opens {
			if err := x.drop(key); err != nil {
				return err
			}
			continue
		}
		p.Holder = ""
		if err := x.put(key, p, false); err != nil {
			return err
		}
	}
	return nil
}

func (x *turn) tell(n *ledger.News) error {
	switch {
	case n.Pause != nil:
		return x.pause(n.Pause)
	case n.Resume != nil:
		return x.resume(n.Resume)
	case n.Learn != nil:
		return x.learn(n.Learn)
	}
	return nil
}

// pause begins a pause or extends it: then it is another one, and the call that went
// alone after the old one has nothing to say of it.
func (x *turn) pause(n *ledger.Pause) error {
	key, until := pauseKey(n.Provider, n.Scope, n.Name), x.until(n.Until)
	if p := x.pauses[key]; p != nil && until <= p.Until {
		return nil
	}
	p := &Pause{Provider: n.Provider, Scope: n.Scope, Name: n.Name, Why: n.Why, Detail: n.Detail, Until: until}
	return x.put(key, p, true)
}

func (x *turn) resume(n *ledger.Pause) error {
	if n.Scope != "" {
		if key := pauseKey(n.Provider, n.Scope, n.Name); x.pauses[key] != nil {
			return x.drop(key)
		}
		return nil
	}
	for key := range x.pauses {
		if strings.HasPrefix(key, url.QueryEscape(n.Provider)+"/") {
			if err := x.drop(key); err != nil {
				return err
			}
		}
	}
	return nil
}

// tidyPauses looks at two pauses.
func (x *turn) tidyPauses() error {
	looked := 0
	for key, p := range x.pauses {
		if looked++; looked > 2 {
			break
		}
		if x.now.Mono-p.Until > stale && p.Holder == "" {
			if err := x.drop(key); err != nil {
				return err
			}
		}
	}
	return nil
}

// tellPauses answers with all pauses, where the client knows others.
func (x *turn) tellPauses(reply *ledger.Reply) error {
	if reply.Version = x.meta.Version; reply.Version == x.b.Known {
		return nil
	}
	for _, p := range x.pauses {
		reply.Pauses = append(reply.Pauses, *x.told(p))
	}
	return nil
}

func (x *turn) told(p *Pause) *ledger.Pause {
	return &ledger.Pause{Provider: p.Provider, Scope: p.Scope, Name: p.Name, Until: x.time(p.Until), Why: p.Why, Detail: p.Detail}
}
