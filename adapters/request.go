package adapters

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/headgate/headgate/provider"
)

// The kinds of auth.
const (
	authHeader = "header"
	authQuery  = "query"
	authBasic  = "basic"
	authBearer = "bearer"
	authPath   = "path"
	authNone   = "none"
)

// defaultAgent names us where the declaration does not say how.
const defaultAgent = "headgate (+https://github.com/headgate/headgate)"

// request builds the request of one lookup.
func (h *HTTP) request(ctx context.Context, e provider.Endpoint, q provider.Query, key string) (*http.Request, error) {
	used := map[string]bool{}
	value := func(name string) (string, bool) {
		if name == "value" {
			return q.Value, true
		}
		if h.p.Auth.Kind == authPath && name == h.p.Auth.Name {
			return key, true
		}
		used[name] = true
		v, ok := q.Params[name]
		return v, ok
	}
	path, err := fillPath(e.Path, value)
	if err != nil {
		return nil, fmt.Errorf("endpoint %q: path: %w", e.Name, err)
	}
	query, err := h.query(e, q, value, used)
	if err != nil {
		return nil, fmt.Errorf("endpoint %q: %w", e.Name, err)
	}
	u, err := url.Parse(h.base + path)
	if err != nil {
		return nil, fmt.Errorf("endpoint %q: the filled path is no valid URL", e.Name) // err holds the URL
	}
	req, err := http.NewRequestWithContext(ctx, e.Method, h.base, nil)
	if err != nil {
		return nil, fmt.Errorf("endpoint %q: no valid request", e.Name)
	}
	req.URL = u
	agent, err := h.userAgent()
	if err != nil {
		return nil, err
	}
	req.Header.Set("User-Agent", agent)
	req.Header.Set("Accept", "application/json, */*;q=0.5")
	h.authorize(req, query, key)
	u.RawQuery = query.Encode()
	return req, nil
}

// query fills the endpoint's parameters. The query's params may replace a
// declared one, but add none: every provider would have to make sense of it.
func (h *HTTP) query(e provider.Endpoint, q provider.Query, value filler, used map[string]bool) (url.Values, error) {
	query := url.Values{}
	for name, template := range e.Params {
		if v, ok := q.Params[name]; ok {
			used[name] = true
			query.Set(name, v)
			continue
		}
		v, err := fill(template, value, asIs)
		if err != nil {
			return nil, fmt.Errorf("params: %s: %w", name, err)
		}
		query.Set(name, v)
	}
	for name := range q.Params {
		if !used[name] {
			return nil, fmt.Errorf("the query's param %q is neither a placeholder nor a declared parameter", name)
		}
	}
	return query, nil
}

// authorize adds the key.
func (h *HTTP) authorize(req *http.Request, query url.Values, key string) {
	switch h.p.Auth.Kind {
	case authHeader:
		req.Header.Set(h.p.Auth.Name, key)
	case authQuery:
		query.Set(h.p.Auth.Name, key)
	case authBearer:
		req.Header.Set("Authorization", "Bearer "+key)
	case authBasic:
		user, password, _ := strings.Cut(key, ":")
		req.SetBasicAuth(user, password)
	}
}

// key reads the key that alias names, an alias being the name of its variable;
// none: the first that is set.
func (h *HTTP) key(alias string) (string, error) {
	if keyless(h.p.Auth) {
		return "", nil
	}
	declared := false
	for _, name := range h.p.Auth.Env {
		if alias != "" && name != alias {
			continue
		}
		declared = true
		key := strings.TrimSpace(h.getenv(name))
		if key == "" {
			continue
		}
		if hasControl(key) {
			return "", fmt.Errorf("environment variable %s: the key holds a control character", name)
		}
		return key, nil
	}
	switch {
	case !declared: // the alias is not printed: it may be a key that was put there by mistake
		return "", fmt.Errorf("the query's key is not declared: want one of auth.env: %s", list(h.p.Auth.Env))
	case alias != "":
		return "", fmt.Errorf("no key: set the environment variable %s", alias)
	case len(h.p.Auth.Env) == 1:
		return "", fmt.Errorf("no key: set the environment variable %s", h.p.Auth.Env[0])
	}
	return "", fmt.Errorf("no key: set one of the environment variables %s", list(h.p.Auth.Env))
}

// userAgent names us as the provider wants it.
func (h *HTTP) userAgent() (string, error) {
	agent := h.p.Identity.UserAgent
	if agent == "" {
		agent = defaultAgent
	}
	wanted := names(agent, "contact")
	if !wanted && !h.p.Identity.Contact {
		return agent, nil
	}
	contact := strings.TrimSpace(h.contact)
	if contact == "" {
		contact = strings.TrimSpace(h.getenv(ContactVariable))
	}
	switch {
	case contact == "":
		return "", fmt.Errorf("the provider asks for a contact: set Options.Contact or the environment variable %s", ContactVariable)
	case hasControl(contact):
		return "", errors.New("the contact holds a control character")
	case !wanted:
		return agent + " (" + contact + ")", nil
	}
	return strings.ReplaceAll(agent, "{contact}", contact), nil
}

func keyless(a provider.Auth) bool { return a.Kind == "" || a.Kind == authNone }

func hasControl(s string) bool {
	return strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f })
}
