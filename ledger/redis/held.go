package redis

import (
	"strings"
	"time"

	"github.com/headgate/headgate/ledger"
)

// held is what this process knows of a hold: at which providers it has shares, and so
// what a settlement of it has to be told to.
type held struct {
	at     time.Time // when it was granted
	named  time.Time // when its counters were named last, which keeps their keys
	asked  bool      // nobody knows yet whether it was granted
	shares []share   // the first is that of the take's own provider
}

// share is what a take asks of one provider: nearly always all of it.
type share struct {
	slug          string
	endpoint, key string
	own           bool // the provider's pauses are asked
	units         []unit
}

type unit struct {
	spec  *spec
	n     int64 // 0: not held (any more)
	place int   // in Take.Units
}

// sharesOf splits a take by provider. part are the places that are held; nil: all.
func sharesOf(t ledger.Take, part []int) []share {
	shares := []share{{slug: t.Provider, endpoint: t.Endpoint, key: t.Key, own: true}}
	for i, u := range t.Units {
		x := unit{specOf(u.Counter), u.N, i}
		if part != nil && !contains(part, i) {
			x.n = 0
		}
		at := 0
		for at < len(shares) && shares[at].slug != x.spec.slug {
			at++
		}
		if at == len(shares) {
			shares = append(shares, share{slug: x.spec.slug})
		}
		shares[at].units = append(shares[at].units, x)
	}
	return shares
}

func contains(all []int, i int) bool {
	for _, x := range all {
		if x == i {
			return true
		}
	}
	return false
}

// settled takes note that some units are not held any more; nil: none is.
func (h *held) settled(slug string, parts []ledger.Part) {
	for i := range h.shares {
		if h.shares[i].slug != slug {
			continue
		}
		for j := range h.shares[i].units {
			if u := &h.shares[i].units[j]; parts == nil || named(parts, u.place) {
				u.n = 0
			}
		}
	}
}

// left tells whether a unit is held still.
func (h *held) left() bool {
	for _, s := range h.shares {
		if s.left() {
			return true
		}
	}
	return false
}

func (s share) left() bool {
	for _, u := range s.units {
		if u.n > 0 {
			return true
		}
	}
	return false
}

func named(parts []ledger.Part, place int) bool {
	for _, p := range parts {
		if p.Unit == place {
			return true
		}
	}
	return false
}

// parseUnits reads what the server remembers of a hold: since when, and units and counter
// by turns.
func parseUnits(slug, text string) (units []unit) {
	words := strings.Fields(text)
	for i := 1; i+1 < len(words); i += 2 {
		units = append(units, unit{&spec{id: words[i+1], slug: slug}, int64(parseHold(words[i])), (i - 1) / 2}) //nolint:gosec // not above 2^52
	}
	return units
}
