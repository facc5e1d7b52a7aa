package adapters

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/provider"
)

// The kinds of auth.
const (
	authHeader = "header"
	authQuery  = "query"
	authForm   = "form"
	authBasic  = "basic"
	authBearer = "bearer"
	authPath   = "path"
	authNone   = "none"
)

func keyless(a provider.Auth) bool { return a.Kind == "" || a.Kind == authNone }

// credentials are what one request is authenticated with; the zero value: nothing.
type credentials struct {
	key  string
	with map[string]string // what goes along, by the name under which it is sent
}

// credentials reads what the environment holds now. It is the zero value for a
// provider that answers without a key, where none of its variables is set: one
// that is set without the others is a mistake, and not to be passed over.
func (h *HTTP) credentials(alias string) (credentials, error) {
	a := h.p.Auth
	if keyless(a) {
		return credentials{}, nil
	}
	key, err := h.key(alias)
	if err != nil {
		return credentials{}, err
	}
	c := credentials{key: key, with: map[string]string{}}
	var unset []string
	for _, name := range slices.Sorted(maps.Keys(a.With)) {
		v, err := h.variable(a.With[name])
		switch {
		case err != nil:
			return credentials{}, err
		case v == "":
			unset = append(unset, a.With[name])
		default:
			c.with[name] = v
		}
	}
	switch {
	case key == "" && len(c.with) == 0 && a.Optional:
		return credentials{}, nil
	case key == "" || len(unset) > 0:
		return credentials{}, lacks(a, key, unset)
	}
	return c, nil
}

// lacks says which variables are to be set; unset are those of what goes along.
func lacks(a provider.Auth, key string, unset []string) error {
	if key != "" {
		return fmt.Errorf("the key does not go alone: set the environment variables %s, too", list(unset))
	}
	text := "no key: set the environment variable "
	if len(a.Env) > 1 {
		text = "no key: set one of the environment variables "
	}
	text += list(a.Env)
	if len(unset) > 0 {
		text += ", and besides it " + list(unset)
	}
	return errors.New(text)
}

// key reads the key that alias names, an alias being the name of its variable;
// none: the first that is set, or "" where none is.
func (h *HTTP) key(alias string) (string, error) {
	env := h.p.Auth.Env
	if alias != "" {
		if !slices.Contains(env, alias) { // not printed: it may be a key that was put there by mistake
			return "", fmt.Errorf("the query's key is not declared: want one of auth.env: %s", list(env))
		}
		env = []string{alias}
	}
	for _, name := range env {
		if key, err := h.variable(name); key != "" || err != nil {
			return key, err
		}
	}
	if alias != "" {
		return "", fmt.Errorf("no key: set the environment variable %s", alias)
	}
	return "", nil
}

// Keys returns the aliases of the keys that are there: the variables of auth.env
// that are set, in the order of the declaration. A Coordinator shares calls out
// among them.
func (h *HTTP) Keys() []string {
	var aliases []string
	for _, name := range h.p.Auth.Env {
		if v, err := h.variable(name); v != "" && err == nil {
			aliases = append(aliases, name)
		}
	}
	return aliases
}

// twice tells of two aliases of one key, which the provider would count as one.
func (h *HTTP) twice() error {
	first := make(map[string]string)
	for _, name := range h.Keys() {
		v, _ := h.variable(name)
		if other, taken := first[v]; taken {
			return fmt.Errorf("environment variables %s and %s hold the same key: want another key, or one variable", other, name)
		}
		first[v] = name
	}
	return nil
}

// variable reads an environment variable.
func (h *HTTP) variable(name string) (string, error) {
	v := strings.TrimSpace(h.getenv(name))
	if hasControl(v) {
		return "", fmt.Errorf("environment variable %s: the key holds a control character", name)
	}
	return v, nil
}

// authorize adds the credentials in their place.
func (c credentials) authorize(a provider.Auth, header http.Header, query, form url.Values) {
	if c.key == "" {
		return
	}
	switch a.Kind {
	case authHeader:
		header.Set(a.Name, a.Prefix+c.key)
		for name, v := range c.with {
			header.Set(name, v)
		}
	case authQuery:
		c.set(a.Name, query)
	case authForm:
		c.set(a.Name, form)
	case authBearer:
		header.Set("Authorization", "Bearer "+c.key)
	case authBasic:
		header.Set("Authorization", "Basic "+c.basic())
	}
}

func (c credentials) set(name string, in url.Values) {
	in.Set(name, c.key)
	for name, v := range c.with {
		in.Set(name, v)
	}
}

// basic is user and password as RFC 7617 has them. A key without a colon is a
// user without a password.
func (c credentials) basic() string {
	user, password, _ := strings.Cut(c.key, ":")
	return base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
}

// secrets returns what must stand in no text: each value in all the forms that it
// may have in a request, and the URL's query.
func (c credentials) secrets(u *url.URL) []string {
	all := []string{u.RawQuery}
	if c.key != "" {
		user, password, _ := strings.Cut(c.key, ":")
		all = append(all, user, password, c.basic())
		for _, v := range append(slices.Collect(maps.Values(c.with)), c.key) {
			all = append(all, v, url.QueryEscape(v), url.PathEscape(v), inside(strconv.Quote(v)))
			if text, err := json.Marshal(v); err == nil {
				all = append(all, inside(string(text)))
			}
		}
	}
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// inside returns a quoted text without its quotes.
func inside(quoted string) string { return quoted[1 : len(quoted)-1] }
