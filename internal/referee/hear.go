package referee

import (
	"slices"
	"strings"

	"github.com/headgate/headgate/provider"
)

// This file is how the voice hears itself: what an answer says by the dialect.

// heard is a finished answer and, if it is JSON, its body.
type heard struct {
	Answer
	doc   any
	isDoc bool
}

func listen(a Answer) *heard {
	h := &heard{Answer: a}
	h.Body = strings.TrimSpace(a.Body)
	var err error
	h.doc, err = parse([]byte(h.Body))
	h.isDoc = err == nil
	return h
}

// signal returns the index of the first signal that a matches, -1 for none.
func (v *voice) signal(a Answer) int {
	h := listen(a)
	return slices.IndexFunc(v.dialect.Signals, func(s provider.Signal) bool { return v.matches(h, s) })
}

func (v *voice) matches(h *heard, s provider.Signal) bool {
	if len(s.Status) > 0 && !slices.Contains(s.Status, h.Status) {
		return false
	}
	fits := func(m *provider.Match, text string) bool {
		if m.Matches == "" {
			return text == m.Equals
		}
		return v.patterns[m.Matches].MatchString(text)
	}
	if s.Header != nil && !slices.ContainsFunc(h.Header.Values(s.Header.Name), func(text string) bool { return fits(s.Header, text) }) {
		return false
	}
	if s.Body != "" && (h.Body == "" || !v.patterns[s.Body].MatchString(h.Body)) {
		return false
	}
	if s.JSON == nil {
		return true
	}
	return h.isDoc && slices.ContainsFunc(v.paths[s.JSON.Path].get(h.doc), func(found any) bool {
		text, ok := scalar(found)
		return ok && fits(s.JSON, text)
	})
}

// read returns the value that a has in a place.
func (v *voice) read(a Answer, s provider.Source) (string, bool) {
	texts := v.texts(a, s)
	var all []string
	for _, text := range texts {
		if s.Pattern == "" {
			all = append(all, items(text, s.As)...)
			continue
		}
		for _, found := range v.patterns[s.Pattern].FindAllStringSubmatch(text, -1) {
			all = append(all, found[1])
		}
	}
	if s.Index >= len(all) {
		return "", false
	}
	return all[s.Index], true
}

// items splits a list at its commas; a date has one of its own.
func items(text, as string) []string {
	if as == "http_date" || as == "date" || as == "" && strings.ContainsAny(text, ":") {
		return []string{text}
	}
	all := strings.Split(text, ",")
	for i := range all {
		all[i] = strings.TrimSpace(all[i])
	}
	return all
}

func (v *voice) texts(a Answer, s provider.Source) []string {
	switch {
	case s.Header != "":
		return a.Header.Values(s.Header)
	case s.JSON == "":
		return []string{strings.TrimSpace(a.Body)}
	}
	h := listen(a)
	if !h.isDoc {
		return nil
	}
	var all []string
	for _, found := range v.paths[s.JSON].get(h.doc) {
		if text, ok := scalar(found); ok {
			all = append(all, text)
		}
	}
	return all
}
