package transport

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/headgate/headgate/provider"
)

// signs tells whether requests to a provider get the key that the Coordinator
// picked: one of several, in a place where a request that is made already can have
// it put. A form and a path are the client's own.
func signs(a provider.Auth) bool {
	switch a.Kind {
	case "header", "query", "bearer", "basic":
		return len(a.Env) > 1
	}
	return false
}

// sign puts a key, and what goes along with it, into a request of ours; what the
// client had put there is replaced. The error names the variable that is empty; it
// is unauthorized, so that the key rests and another one is tried.
func (to *target) sign(req *http.Request, alias string, value func(slug, alias string) string) error {
	if alias == "" || !signs(to.auth) {
		return nil
	}
	read := func(name string) (string, error) {
		if v := strings.TrimSpace(value(to.slug, name)); v != "" {
			return v, nil
		}
		f := provider.Feedback{Outcome: provider.Unauthorized, Detail: "environment variable " + name + " is empty"}
		return "", fmt.Errorf("transport: provider %s: %w", to.slug, f.Err(nil))
	}
	key, err := read(alias)
	if err != nil {
		return err
	}
	values := map[string]string{}
	for name, variable := range to.auth.With {
		if values[name], err = read(variable); err != nil {
			return err
		}
	}
	req.Header = req.Header.Clone()
	if req.Header == nil {
		req.Header = make(http.Header)
	}
	switch to.auth.Kind {
	case "bearer":
		req.Header.Set("Authorization", "Bearer "+key)
	case "basic":
		user, password, _ := strings.Cut(key, ":")
		req.Header.Set("Authorization", "Basic "+base64.StdEncoding.EncodeToString([]byte(user+":"+password)))
	case "header":
		values[to.auth.Name] = to.auth.Prefix + key
		for name, v := range values {
			req.Header.Set(name, v)
		}
	case "query":
		values[to.auth.Name] = key
		u := *req.URL
		query := u.Query()
		for name, v := range values {
			query.Set(name, v)
		}
		u.RawQuery = query.Encode()
		req.URL = &u
	}
	return nil
}

func fromEnvironment(_, alias string) string { return os.Getenv(alias) }
