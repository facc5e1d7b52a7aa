package dialect

import (
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/headgate/headgate/provider"
	"github.com/theory/jsonpath"
)

// maxFound bounds how many values one source may find.
const maxFound = 1024

// find returns the values that a source finds in its texts; where there are
// several the strictest counts. whole tells that a value may itself hold commas.
func find(s provider.Source, texts []string, whole bool) []string {
	if s.Pattern != "" {
		return pick(captures(s.Pattern, texts), s.Index)
	}
	if s.JSON != "" && s.Index == 0 {
		texts = texts[:min(len(texts), 1)]
	}
	if s.Index == 0 {
		firsts := make([]string, len(texts))
		for i, text := range texts {
			firsts[i] = items(text, whole)[0]
		}
		return firsts
	}
	var all []string
	for _, text := range texts {
		all = append(all, items(text, whole)...)
	}
	return pick(all, s.Index)
}

// pick leaves the value at an index that is given, or all.
func pick(values []string, index int) []string {
	switch {
	case index == 0:
		return values
	case index > 0 && index < len(values):
		return values[index : index+1]
	}
	return nil
}

// texts returns what stands in a source's place, in a body of at most most bytes.
func (a *answer) texts(s provider.Source, most int) []string {
	switch {
	case s.Header != "":
		return a.lines(s.Header)
	case s.JSON != "":
		return a.nodes(s.JSON, most)
	case s.Body:
		if text := a.bodyText(most); len(text) > 0 {
			return []string{string(text)}
		}
	}
	return nil
}

// items splits a list at its commas.
func items(text string, whole bool) []string {
	if whole {
		return []string{strings.TrimSpace(text)}
	}
	list := strings.SplitN(text, ",", maxFound)
	for i, item := range list {
		list[i] = strings.TrimSpace(item)
	}
	return list
}

// captures returns the first capture of each match in each text.
func captures(text string, in []string) []string {
	re := pattern(text)
	if re == nil || re.NumSubexp() < 1 {
		return nil
	}
	var all []string
	for _, t := range in {
		for _, m := range re.FindAllStringSubmatch(t, maxFound) {
			all = append(all, strings.TrimSpace(m[1]))
		}
	}
	return all
}

// nodes returns the text of each value that a path selects in a body of at most
// most bytes.
func (a *answer) nodes(path string, most int) []string {
	p := jsonPath(path)
	if p == nil {
		return nil
	}
	root, ok := a.document(most)
	if !ok {
		return nil
	}
	var all []string
	add := func(v any) {
		if text, ok := scalar(v); ok {
			all = append(all, text)
		}
	}
	if p.Query().Singular() != nil {
		for _, v := range p.Select(root) {
			add(v)
		}
		return all
	}
	located := p.SelectLocated(root)
	located.Sort() // the members of an object come in any order otherwise
	for _, n := range located {
		add(n.Node)
	}
	return all
}

// pattern and jsonPath return nil for a text that is none: a validated
// declaration has no such text.
func pattern(text string) *regexp.Regexp { return patterns.get(text, regexp.Compile) }

func jsonPath(text string) *jsonpath.Path { return paths.get(text, jsonpath.Parse) }

var (
	patterns cache[*regexp.Regexp]
	paths    cache[*jsonpath.Path]
)

// cache keeps what was compiled, by its text. Only declarations write into it,
// never answers; its bound is for a program that makes declarations for ever.
type cache[T any] struct {
	m    sync.Map
	size atomic.Int64
}

const maxCached = 4096

func (c *cache[T]) get(text string, compile func(string) (T, error)) T {
	if v, ok := c.m.Load(text); ok {
		return v.(T)
	}
	v, err := compile(text)
	if err != nil {
		v = *new(T)
	}
	if c.size.Load() < maxCached {
		if _, there := c.m.LoadOrStore(strings.Clone(text), v); !there {
			c.size.Add(1)
		}
	}
	return v
}

// split says whether a text is a list of bare numbers.
func split(texts []string) bool {
	return !slices.ContainsFunc(texts, func(t string) bool { return strings.Trim(t, "0123456789., ") != "" })
}
