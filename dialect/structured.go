package dialect

import (
	"strings"
	"time"

	"github.com/dunglas/httpsfv"
	"github.com/headgate/headgate/provider"
)

const (
	maxField = 8 << 10 // of a structured field
	maxName  = 64      // of a budget
)

// structured reads the field RateLimit: a list of names with r and t, or the
// dictionary of draft-07. A name may be a token and r may be missing, as in the
// draft's own bad example: what remains is unknown then, never 0.
func structured(lines []string) []quota {
	if len(lines) == 0 || length(lines) > maxField {
		return nil
	}
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return dictionary(lines)
	}
	var all []quota
	for _, member := range list {
		name, _, params, ok := itemOf(member)
		if !ok || name == "" || len(all) == maxBudgets {
			continue
		}
		var q quota
		q.Name = name
		q.Remaining, q.HasRemaining = whole(params, "r")
		q.Reset, q.HasReset = secondsOf(params, "t")
		if q.HasRemaining || q.HasReset {
			all = append(all, q)
		}
	}
	return all
}

func dictionary(lines []string) []quota {
	d, err := httpsfv.UnmarshalDictionary(lines)
	if err != nil {
		return nil
	}
	params := httpsfv.NewParams()
	for _, key := range d.Names() {
		if m, ok := d.Get(key); ok {
			if item, ok := m.(httpsfv.Item); ok {
				params.Add(key, item.Value)
			}
		}
	}
	var q quota
	if n, ok := whole(params, "limit"); ok && n > 0 {
		q.Limit, q.HasLimit = n, true
	}
	q.Remaining, q.HasRemaining = whole(params, "remaining")
	q.Reset, q.HasReset = secondsOf(params, "reset")
	return []quota{q}
}

// policies adds what a list of policies tells: the windows of known budgets, and
// budgets of their own. An item is a name with q and w, or a number with w
// (window at Envoy) and perhaps a name.
func policies(all []quota, lines []string) []quota {
	if len(lines) == 0 || length(lines) > maxField {
		return all
	}
	list, err := httpsfv.UnmarshalList(lines)
	if err != nil {
		return all
	}
	for _, member := range list {
		p, ok := policy(member)
		if !ok {
			continue
		}
		if known := p.budget(all); known != nil {
			known.Name, known.Limit, known.HasLimit, known.Window = p.Name, p.Limit, true, p.Window
			if known.Unit == "" {
				known.Unit = p.Unit
			}
		} else if len(all) < maxBudgets {
			all = append(all, p)
		}
	}
	return all
}

func policy(member httpsfv.Member) (p quota, ok bool) {
	name, number, params, ok := itemOf(member)
	if !ok {
		return p, false
	}
	p.Name, p.Limit = name, number
	if name != "" {
		p.Limit, _ = whole(params, "q")
	} else {
		p.Name = text(params, "name")
	}
	if p.Window, ok = secondsOf(params, "w"); !ok {
		p.Window, ok = secondsOf(params, "window")
	}
	p.HasLimit = p.Limit > 0
	p.Unit = map[string]string{"content-bytes": provider.Bytes}[text(params, "qu")]
	if p.Unit == "" {
		p.Unit = text(params, "qu")
	}
	return p, p.HasLimit && (ok || name != "")
}

// budget returns the one that q is the policy of: that of its name, else a
// nameless one of its amount without a window.
func (q quota) budget(all []quota) *quota {
	for i := range all {
		if q.Name != "" && all[i].Name == q.Name && (!all[i].HasLimit || all[i].Limit == q.Limit) {
			return &all[i]
		}
	}
	for i := range all {
		if b := &all[i]; b.Name == "" && b.HasLimit && b.Limit == q.Limit && b.Window == 0 {
			return b
		}
	}
	return nil
}

// itemOf returns what an item is: a name or a number, and its parameters.
func itemOf(m httpsfv.Member) (name string, number int64, params *httpsfv.Params, ok bool) {
	item, ok := m.(httpsfv.Item)
	if !ok {
		return "", 0, nil, false
	}
	switch v := item.Value.(type) {
	case string:
		name = v
	case httpsfv.Token:
		name = string(v)
	case int64:
		return "", v, item.Params, true
	}
	return name, 0, item.Params, name != "" && len(name) <= maxName
}

// whole reads a parameter that is a non-negative number.
func whole(params *httpsfv.Params, key string) (int64, bool) {
	switch v, _ := params.Get(key); v := v.(type) {
	case int64:
		return v, v >= 0
	case float64: // bounded by the format: at most 12 digits before the point
		return int64(v), v >= 0
	}
	return 0, false
}

func secondsOf(params *httpsfv.Params, key string) (time.Duration, bool) {
	switch v, _ := params.Get(key); v := v.(type) {
	case int64:
		if v >= 0 && v <= int64(longest/time.Second) {
			return time.Duration(v) * time.Second, true
		}
	case float64:
		if v >= 0 && v <= longest.Seconds() {
			return span(v), true
		}
	}
	return 0, false
}

func text(params *httpsfv.Params, key string) string {
	switch v, _ := params.Get(key); v := v.(type) {
	case string:
		return v[:min(len(v), maxName)]
	case httpsfv.Token:
		return string(v[:min(len(v), maxName)])
	}
	return ""
}

func length(lines []string) int { return len(strings.Join(lines, ",")) }
