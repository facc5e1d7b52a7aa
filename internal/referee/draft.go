package referee

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/provider"
)

// draft is an answer in the making: pieces of text in the places of a dialect.
// The finished answer is read again, so that nothing is told that is not there.
type draft struct {
	v      *voice
	status int
	header map[string][]string // by name; the elements of a list
	doc    any                 // the body, where it is JSON
	isDoc  bool
	text   []string // pieces of the body, where it is text; of its message, where it is JSON
	told   []told
}

// told is what must be found in the finished answer.
type told struct {
	source provider.Source
	value  string
}

func (v *voice) draft(status int) *draft {
	return &draft{v: v, status: status, header: map[string][]string{}}
}

// clone returns a draft that can go another way. A document is never changed: a
// member that is put into it makes another.
func (d *draft) clone() *draft {
	c := *d
	c.header = maps.Clone(d.header)
	for name, items := range c.header {
		c.header[name] = slices.Clone(items)
	}
	c.text, c.told = slices.Clone(d.text), slices.Clone(d.told)
	return &c
}

// say puts a value into its place, the first way of writing it that fits there.
func (d *draft) say(l line) error {
	s := l.source
	if s.Header == "" && s.Index > 0 {
		return fmt.Errorf("index: %d, would have to be that of a header's list", s.Index)
	}
	for _, value := range l.values {
		pieces := []string{value}
		if s.Pattern != "" {
			pieces = d.v.patterns[s.Pattern].around(value)
		}
		if len(pieces) == 0 {
			continue
		}
		d.told = append(d.told, told{s, value})
		return d.place(s, pieces[0])
	}
	return fmt.Errorf("pattern: %q finds none of %q in any text that was tried", s.Pattern, l.values)
}

func (d *draft) place(s provider.Source, piece string) error {
	switch {
	case s.Header != "":
		d.list(s.Header, s.Index, piece)
	case s.JSON != "":
		var v any = piece
		if s.Pattern == "" && number(piece) {
			v = json.Number(piece)
		}
		return d.member(s.JSON, v)
	default:
		d.write(piece)
	}
	return nil
}

func number(text string) bool {
	_, err := strconv.ParseFloat(text, 64)
	return err == nil
}

// list sets an element of a header. What is there already stays, beside it.
func (d *draft) list(name string, index int, piece string) {
	name = http.CanonicalHeaderKey(name)
	items := d.header[name]
	for len(items) <= index {
		items = append(items, "")
	}
	if items[index] != "" && items[index] != piece {
		piece = items[index] + ";" + piece
	}
	items[index] = piece
	d.header[name] = items
}

func (d *draft) member(path string, v any) error {
	doc, err := d.v.paths[path].put(d.doc, v)
	if err != nil {
		return fmt.Errorf("json: %s %w", path, err)
	}
	d.doc, d.isDoc = doc, true
	return nil
}

func (d *draft) write(piece string) {
	if !slices.Contains(d.text, piece) {
		d.text = append(d.text, piece)
	}
}

// meet makes the conditions of a signal true, by the variant-th text that matches
// each.
func (d *draft) meet(s provider.Signal, variant int) error {
	texts := func(m *provider.Match) string {
		if m.Equals != "" {
			return m.Equals
		}
		return d.v.sample(m.Matches, variant)
	}
	if s.Header != nil {
		d.list(s.Header.Name, 0, texts(s.Header))
	}
	if s.JSON != nil {
		var v any = texts(s.JSON)
		if s.JSON.Equals != "" {
			v = valueOf(s.JSON.Equals)
		}
		if err := d.member(s.JSON.Path, v); err != nil {
			return err
		}
	}
	if s.Body == "" {
		return nil
	}
	sample := d.v.sample(s.Body, variant)
	if object, ok := d.doc.(map[string]any); ok {
		if text, err := written(object); err == nil && d.v.patterns[s.Body].MatchString(text) {
			return nil
		}
		if more := members(sample); more != nil {
			maps.Copy(more, object)
			d.doc = more
			return nil
		}
	}
	d.write(sample)
	return nil
}

// members reads a piece of a JSON object, such as "code": 7 or the beginning of
// that; nil: it is none.
func members(piece string) map[string]any {
	for _, end := range []string{"", `"`, "1", ":1"} {
		if v, err := parse([]byte("{" + piece + end + "}")); err == nil {
			object, _ := v.(map[string]any)
			return object
		}
	}
	return nil
}

// finish returns the answer, with the body filler where nothing asks for one, or
// says what it does not tell.
func (d *draft) finish(filler string) (Answer, error) {
	a := Answer{Status: d.status, Header: http.Header{}, Body: filler}
	for name, items := range d.header {
		a.Header.Set(name, strings.Join(items, ", "))
	}
	switch {
	case bodiless(d.status):
		if a.Body = ""; d.isDoc || len(d.text) > 0 {
			return Answer{}, fmt.Errorf("body: an answer with status %d has none", d.status)
		}
	case d.isDoc:
		doc, err := d.withMessage()
		if err != nil {
			return Answer{}, err
		}
		if a.Body, err = written(doc); err != nil {
			return Answer{}, fmt.Errorf("json: %w", err)
		}
	case len(d.text) > 0:
		a.Body = strings.Join(d.text, " ")
		a.Header.Set("Content-Type", "text/plain")
	}
	for _, t := range d.told {
		if got, ok := d.v.read(a, t.source); !ok || got != t.value {
			return Answer{}, fmt.Errorf("%s: says %q where it would have to say %q", placeOf(t.source), got, t.value)
		}
	}
	return a, nil
}

// bodiless tells the statuses whose answers have no body.
func bodiless(status int) bool {
	return status < 200 || status == http.StatusNoContent || status == http.StatusResetContent || status == http.StatusNotModified
}

// written is a document as JSON; signs of HTML stay as they are, for patterns.
func written(doc any) (string, error) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(doc)
	return strings.TrimSpace(b.String()), err
}

// withMessage is the JSON body with the text as its message for people.
func (d *draft) withMessage() (any, error) {
	if len(d.text) == 0 {
		return d.doc, nil
	}
	object, ok := d.doc.(map[string]any)
	if !ok || object["message"] != nil {
		return nil, errors.New("body: has no place for text beside its JSON")
	}
	object = maps.Clone(object)
	object["message"] = strings.Join(d.text, " ")
	return object, nil
}

func placeOf(s provider.Source) string {
	switch {
	case s.Header != "":
		return "header " + s.Header
	case s.JSON != "":
		return "json " + s.JSON
	}
	return "body"
}
