package adapters

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"

	"github.com/headgate/headgate/provider"
)

// lookup is one query on its way into the texts of its endpoint.
type lookup struct {
	e       provider.Endpoint
	q       provider.Query
	page    page
	contact string
	agent   string
	keyName string // the placeholder of the key, where it is one
	key     credentials
}

// lookup gathers what q's request is made of.
func (h *HTTP) lookup(q provider.Query) (lookup, error) {
	e, err := h.Endpoint(q)
	if err != nil {
		return lookup{}, err
	}
	l := lookup{e: e, q: q}
	if l.page, err = pageOf(e, q.Page); err != nil {
		return lookup{}, fmt.Errorf("endpoint %q %w", e.Name, err)
	}
	if l.key, err = h.credentials(q.Key); err != nil {
		return lookup{}, err
	}
	if h.p.Auth.Kind == authPath {
		l.keyName = h.p.Auth.Name
	}
	if l.contact, err = h.reachable(); err != nil {
		return lookup{}, err
	}
	l.agent = h.agent(l.contact)
	return l, nil
}

// value is what fills a placeholder.
func (l *lookup) value(name string) (string, bool) {
	switch {
	case name == valueName:
		return l.q.Value, true
	case name == pageName:
		return l.page.text, true
	case name == contactName:
		return l.contact, true
	case name == l.keyName:
		return l.key.key, true
	}
	v, ok := l.q.Params[name]
	return v, ok
}

// leftOut says whether a template waits for a page that nothing has told yet.
func (l *lookup) leftOut(template string) bool {
	return l.page.text == "" && names(template, pageName)
}

// request builds the request of one lookup.
func (h *HTTP) request(ctx context.Context, l lookup) (*http.Request, error) {
	fail := func(err error) (*http.Request, error) {
		return nil, fmt.Errorf("endpoint %q: %w", l.e.Name, err)
	}
	path, err := fillPath(l.e.Path, l.value)
	if err != nil {
		return fail(fmt.Errorf("path: %w", err))
	}
	u, err := url.Parse(h.base + path)
	if err != nil {
		return fail(errors.New("the filled path is no valid URL")) // err holds the URL
	}
	query, err := l.fillValues(paramsField, l.e.Params)
	if err != nil {
		return fail(err)
	}
	form, err := l.fillValues(formField, l.e.Form)
	if err != nil {
		return fail(err)
	}
	header, err := l.header()
	if err != nil {
		return fail(err)
	}
	if err := l.unused(); err != nil {
		return fail(err)
	}
	l.key.authorize(h.p.Auth, header, query, form)
	kind, body, err := l.body(form)
	if err != nil {
		return fail(err)
	}
	// Of a bytes.Reader net/http makes GetBody, so that a redirect can send it again.
	req, err := http.NewRequestWithContext(ctx, l.e.Method, h.base, body)
	if err != nil {
		return fail(errors.New("no valid request"))
	}
	if kind != "" && header.Get("Content-Type") == "" {
		header.Set("Content-Type", kind)
	}
	u.RawQuery = query.Encode()
	req.URL, req.Header = u, header
	return req, nil
}

// fillValues fills the query's parameters or the form's fields. The query's params
// may replace a declared one, but add none: every provider would have to make
// sense of it.
func (l *lookup) fillValues(field string, templates map[string]string) (url.Values, error) {
	values := url.Values{}
	for _, name := range slices.Sorted(maps.Keys(templates)) {
		template := templates[name]
		v, given := l.q.Params[name]
		switch {
		case given && names(template, pageName):
			return nil, fmt.Errorf("%s: %s: is the page: want it in the query's page, not in its params", field, name)
		case l.leftOut(template):
			continue
		case !given:
			var err error
			if v, err = fill(template, l.value, asIs); err != nil {
				return nil, fmt.Errorf("%s: %s: %w", field, name, err)
			}
		}
		values.Set(name, v)
	}
	return values, nil
}

// header returns the request's header: ours, and what is declared in its place.
func (l *lookup) header() (http.Header, error) {
	header := http.Header{}
	header.Set("User-Agent", l.agent)
	header.Set("Accept", "application/json, */*;q=0.5")
	for _, name := range slices.Sorted(maps.Keys(l.e.Headers)) {
		template := l.e.Headers[name]
		if l.leftOut(template) {
			continue
		}
		v, err := fill(template, l.value, asIs)
		switch {
		case err != nil:
			return nil, fmt.Errorf("headers: %s: %w", name, err)
		case hasControl(v):
			return nil, fmt.Errorf("headers: %s: a value holds a control character", name)
		}
		header.Set(name, v)
	}
	return header, nil
}

// body returns the body and its media type. form holds the key, where it goes
// there, even if the endpoint declares no field of its own.
func (l *lookup) body(form url.Values) (kind string, body io.Reader, err error) {
	switch {
	case l.e.JSON != "":
		text, err := l.fillJSON(l.e.JSON)
		if err != nil {
			return "", nil, fmt.Errorf("json: %w", err)
		}
		return "application/json", bytes.NewReader(text), nil
	case len(l.e.Form)+len(form) > 0:
		return "application/x-www-form-urlencoded", bytes.NewReader([]byte(form.Encode())), nil
	}
	return "", nil, nil
}

// unused returns an error for a param of the query that nothing asks for: it is
// a slip of the pen, and the answer would not be what was asked for.
func (l *lookup) unused() error {
	if len(l.q.Params) == 0 {
		return nil
	}
	asked := map[string]bool{}
	for _, part := range parts(l.e) {
		if _, replaced := l.q.Params[part.name]; replaced && part.replaceable() {
			asked[part.name] = true
			continue
		}
		for _, p := range placeholder.FindAllString(part.template, -1) {
			name, _ := split(p)
			asked[name] = asked[name] || !reserved(name) && name != l.keyName
		}
	}
	for _, name := range slices.Sorted(maps.Keys(l.q.Params)) {
		if !asked[name] {
			return fmt.Errorf("the query's param %q is neither a placeholder nor a declared parameter or form field", name)
		}
	}
	return nil
}
