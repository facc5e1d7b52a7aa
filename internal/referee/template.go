package referee

import (
	"net/http"
	"net/url"
	"regexp"
	"strings"
)

// filler is a placeholder outside a path, where other braces are text.
var filler = regexp.MustCompile(`\{[A-Za-z0-9_.-]+(\|[a-z0-9]+)*\}`)

// nameOf is the name of a placeholder, without its filters.
func nameOf(placeholder string) string {
	name, _, _ := strings.Cut(strings.Trim(placeholder, "{}"), "|")
	return name
}

// template is a declared text with placeholders.
type template struct {
	re      *regexp.Regexp
	literal int            // characters outside placeholders
	at      map[string]int // the capture of a placeholder, by its name
}

func newTemplate(text string) template {
	t := template{literal: len(filler.ReplaceAllString(text, "")), at: map[string]int{}}
	var expr strings.Builder
	names := filler.FindAllString(text, -1)
	for i, literal := range filler.Split(text, -1) {
		if i > 0 {
			t.at[nameOf(names[i-1])] = i
			expr.WriteString("(.+)")
		}
		expr.WriteString(regexp.QuoteMeta(literal))
	}
	t.re = regexp.MustCompile("^(?s:" + expr.String() + ")$")
	return t
}

// fill is what text has in the place of a placeholder.
func (t template) fill(name, text string) (string, bool) {
	i := t.at[name]
	found := t.re.FindStringSubmatch(text)
	if i == 0 || found == nil {
		return "", false
	}
	return found[i], true
}

// templates are those of a request beside its path: of its parameters, its form
// and the strings of its JSON body.
type templates struct {
	params, form map[string]template
	json         any // a document whose strings are templates
}

func newTemplates(params, form map[string]string, body string) templates {
	all := func(texts map[string]string) map[string]template {
		made := map[string]template{}
		for name, text := range texts {
			made[name] = newTemplate(text)
		}
		return made
	}
	t := templates{params: all(params), form: all(form)}
	if doc, err := parse([]byte(body)); err == nil {
		t.json = templated(doc)
	}
	return t
}

func templated(doc any) any {
	switch v := doc.(type) {
	case string:
		return newTemplate(v)
	case map[string]any:
		for name := range v {
			v[name] = templated(v[name])
		}
	case []any:
		for i := range v {
			v[i] = templated(v[i])
		}
	}
	return doc
}

// sent is what a request has beside its path.
type sent struct {
	params, form url.Values
	json         any
}

func newSent(req *http.Request, body []byte) sent {
	s := sent{params: req.URL.Query()}
	if strings.HasPrefix(req.Header.Get("Content-Type"), "application/x-www-form-urlencoded") {
		s.form, _ = url.ParseQuery(string(body)) // what can be read of it
	}
	if doc, err := parse(body); err == nil {
		s.json = doc
	}
	return s
}

// each calls f for every template beside the text that was sent in its place.
func (t templates) each(s sent, f func(t template, text string)) {
	values := func(made map[string]template, sent url.Values) {
		for name, t := range made {
			if sent.Has(name) {
				f(t, sent.Get(name))
			}
		}
	}
	values(t.params, s.params)
	values(t.form, s.form)
	walk(t.json, s.json, f)
}

func walk(made, sent any, f func(t template, text string)) {
	switch m := made.(type) {
	case template:
		if text, ok := scalar(sent); ok {
			f(m, text)
		}
	case map[string]any:
		object, _ := sent.(map[string]any)
		for name := range m {
			if v, ok := object[name]; ok {
				walk(m[name], v, f)
			}
		}
	case []any:
		list, _ := sent.([]any)
		for i := range min(len(m), len(list)) {
			walk(m[i], list[i], f)
		}
	}
}

// likeness tells how much of what was sent is as the templates have it.
func (t templates) likeness(s sent) int {
	n := 0
	t.each(s, func(t template, text string) {
		if t.re.MatchString(text) {
			n += 1 + t.literal
		}
	})
	return n
}

// filled is what was sent in the place of a placeholder; "": nothing.
func (t templates) filled(name string, s sent) string {
	found := ""
	t.each(s, func(t template, text string) {
		if fill, ok := t.fill(name, text); ok {
			found = fill
		}
	})
	return found
}
