package console

import (
	"fmt"
	"slices"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// Condition says how urgent a provider is. A provider has the first that is true of
// it, in the order of [Conditions].
type Condition string

// The conditions.
const (
	Banned      Condition = "banned"       // the provider has banned us: nothing goes
	Paused      Condition = "paused"       // the provider's own refusal, or somebody's: nothing goes
	CircuitOpen Condition = "circuit_open" // it fails: nothing goes, or one call as a trial
	QuotaSpent  Condition = "quota_spent"  // a quota of an hour or more is used up, or the provider said so
	Refusing    Condition = "refusing"     // of the calls of the last minute a twentieth or more was refused, or the next one would be
	PartPaused  Condition = "part_paused"  // an endpoint or a key is paused
	Queueing    Condition = "queueing"     // the queue is half full, or the wait half a minute
	NearLimit   Condition = "near_limit"   // of a limit of a minute or more a fifth or less is left
	Busy        Condition = "busy"         // calls went in the last minute, or wait
	Idle        Condition = "idle"         // none did
	Off         Condition = "off"          // switched off
	Unused      Condition = "unused"       // declared, and never called
)

var conditions = []Condition{Banned, Paused, CircuitOpen, QuotaSpent, Refusing, PartPaused, Queueing, NearLimit, Busy, Idle, Off, Unused}

// Conditions returns all conditions, the most urgent first.
func Conditions() []Condition { return slices.Clone(conditions) }

var labels = map[Condition]string{
	Banned: "Banned", Paused: "Paused", CircuitOpen: "Circuit open", QuotaSpent: "Quota spent", Refusing: "Refusing",
	PartPaused: "Partly paused", Queueing: "Queueing", NearLimit: "Near limit", Busy: "Busy", Idle: "Idle", Off: "Off", Unused: "Not used yet",
}

// Label is the condition for people, such as "Circuit open".
func (c Condition) Label() string { return labels[c] }

// Tone is which of the page's five colours it has.
func (c Condition) Tone() string {
	switch c {
	case Banned, CircuitOpen:
		return "bad"
	case Paused, QuotaSpent, Refusing:
		return "warn"
	case PartPaused, Queueing, NearLimit:
		return "note"
	case Busy:
		return "good"
	}
	return "calm"
}

const (
	longWindow = time.Hour        // a quota: being without it is no matter of pace
	nearWindow = time.Minute      // of shorter ones a busy provider always has little left
	longWait   = 30 * time.Second // worth telling
	nearShare  = 5                // a fifth

	refusedShare = 0.05
)

// verdict is a condition, what it comes from, and when it may be over.
type verdict struct {
	condition Condition
	why       string
	until     time.Time
}

// judge finds the condition of a provider that was used.
func judge(s *coordinator.State, off []string) verdict {
	for _, find := range []func(*coordinator.State) (verdict, bool){paused, broken, spent, refusing, partPaused, queueing, near} {
		if v, ok := find(s); ok {
			return v
		}
	}
	switch {
	case slices.Contains(off, provider.Everything):
		return switchedOff
	case s.InFlight > 0 || s.Queue.Length > 0 || s.Lately.Calls > 0:
		return verdict{condition: Busy}
	}
	return verdict{condition: Idle}
}

var switchedOff = verdict{condition: Off, why: "switched off by its throttle"}

// judgeUnused is the condition of a provider that was never called.
func judgeUnused(off []string) verdict {
	if slices.Contains(off, provider.Everything) {
		return switchedOff
	}
	return verdict{condition: Unused}
}

// inForce tells that nothing goes for a pause, or one call alone.
func inForce(p *coordinator.PauseState, at time.Time) bool { return p.Until.After(at) || p.Trial }

func paused(s *coordinator.State) (verdict, bool) {
	for i := range s.Pauses {
		p := &s.Pauses[i]
		if p.Scope != provider.ScopeProvider || !inForce(p, s.At) {
			continue
		}
		v := verdict{Paused, words(clipped(p.Why)), p.Until}
		if p.Why == string(provider.Banned) {
			v.condition, v.why = Banned, "the provider has banned us"
		}
		if p.Trial {
			v.why, v.until = v.why+": over, one call has gone alone", time.Time{}
		}
		return v, true
	}
	return verdict{}, false
}

func broken(s *coordinator.State) (verdict, bool) {
	switch s.Breaker.State {
	case "open":
		return verdict{CircuitOpen, "too many failures in a row", s.Breaker.Until}, true
	case "half-open":
		return verdict{condition: CircuitOpen, why: "half-open: one call goes as a trial"}, true
	}
	return verdict{}, false
}

// binding finds a limit for which is true, among those of all calls, or among those
// of every key: then it is the one that comes back first.
func binding(s *coordinator.State, is func(*coordinator.LimitState) bool) *coordinator.LimitState {
	if i := slices.IndexFunc(s.Limits, func(l coordinator.LimitState) bool { return is(&l) }); i >= 0 {
		return &s.Limits[i]
	}
	var first *coordinator.LimitState
	for _, k := range s.Keys {
		i := slices.IndexFunc(k.Limits, func(l coordinator.LimitState) bool { return is(&l) })
		if i < 0 || len(s.Keys) < s.KeyCount {
			return nil
		}
		if l := &k.Limits[i]; first == nil || l.ResetAt.Before(first.ResetAt) {
			first = l
		}
	}
	return first
}

// spent finds a quota that is used up.
func spent(s *coordinator.State) (verdict, bool) {
	l := binding(s, func(l *coordinator.LimitState) bool {
		window, _ := l.Per.Duration()
		told := l.Origin == "learned" && l.ResetAt.Sub(s.At) > nearWindow
		return l.Left == 0 && (window >= longWindow || told)
	})
	if l == nil {
		return verdict{}, false
	}
	return verdict{QuotaSpent, fmt.Sprintf("limit %s: none of %s left", l.Name, count(l.Room)), l.ResetAt}, true
}

func refusing(s *coordinator.State) (verdict, bool) {
	switch {
	case s.Queue.Capacity > 0 && s.Queue.Length >= s.Queue.Capacity:
		return verdict{condition: Refusing, why: "every place of the queue is taken"}, true
	case s.Lately.RefusalRate >= refusedShare:
		return verdict{condition: Refusing, why: plural(s.Lately.Refusals, "call") + " refused in the last minute"}, true
	}
	return verdict{}, false
}

func partPaused(s *coordinator.State) (verdict, bool) {
	n, first := 0, (*coordinator.PauseState)(nil)
	for i := range s.Pauses {
		if p := &s.Pauses[i]; inForce(p, s.At) {
			if n++; first == nil || p.Until.Before(first.Until) {
				first = p
			}
		}
	}
	if n == 0 {
		return verdict{}, false
	}
	why := fmt.Sprintf("%d keys or endpoints are paused", n)
	if n == 1 {
		why = "one " + first.Scope + " is paused: " + words(first.Why)
	}
	return verdict{PartPaused, why, first.Until}, true
}

func queueing(s *coordinator.State) (verdict, bool) {
	q := s.Queue
	half := q.Capacity > 0 && q.Length*2 >= q.Capacity
	if q.Length == 0 || !half && q.Wait < longWait && s.Oldest < longWait {
		return verdict{}, false
	}
	return verdict{condition: Queueing, why: plural(int64(q.Length), "call") + " waiting"}, true
}

func near(s *coordinator.State) (verdict, bool) {
	l := binding(s, func(l *coordinator.LimitState) bool {
		window, _ := l.Per.Duration()
		return window >= nearWindow && l.Left <= l.Room/nearShare
	})
	if l == nil {
		return verdict{}, false
	}
	return verdict{NearLimit, fmt.Sprintf("limit %s: %s of %s left", l.Name, count(l.Left), count(l.Room)), l.ResetAt}, true
}
