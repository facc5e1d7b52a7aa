package dialect

import (
	"time"

	"github.com/headgate/headgate/provider"
)

// advice returns what the answer asks to wait, 0 where it says nothing usable:
// the declared sources in their order, then the conventions.
func (a *answer) advice(d *provider.Dialect) time.Duration {
	for _, s := range d.RetryAfter {
		if w, ok := a.time(s, MaxSignalBody); ok && w > 0 {
			return w
		}
	}
	if d.Only {
		return 0
	}
	for _, field := range advices {
		lines := a.lines(field.name)
		if len(lines) == 0 || claims(d, field.name) {
			continue
		}
		if w, ok := a.latest(lines, field.as); ok && w > 0 {
			return w
		}
	}
	return 0
}

// advices are the conventional fields. The more exact one comes first, as in the
// SDKs of those who send both.
var advices = []struct{ name, as string }{
	{"Retry-After-Ms", "milliseconds"},
	{"X-Ms-Retry-After-Ms", "milliseconds"},
	{"Retry-After", "retry_after"},
	{"X-Ratelimit-Retry-After", "retry_after"},
	{"X-Rate-Limit-Retry-After", "retry_after"},
	{"X-Retry-After", "retry_after"},
}

// time reads a source of a wait or a reset: of several values the latest, never
// earlier than told. ok says that there is a usable one, which may be 0.
func (a *answer) time(s provider.Source, most int) (w time.Duration, ok bool) {
	if s == (provider.Source{}) {
		return 0, false
	}
	texts, whole := a.texts(s, most), true
	switch s.As {
	case "seconds", "milliseconds", "epoch", "epoch_ms", "rfc3339":
		whole = false
	case "":
		whole = !split(texts)
	}
	return a.latest(find(s, texts, whole), s.As)
}

// latest is the longest of the values that are usable.
func (a *answer) latest(values []string, as string) (w time.Duration, ok bool) {
	for _, value := range values {
		if d, usable := a.wait(value, as); usable {
			w, ok = max(w, d), true
		}
	}
	return w, ok
}
