package adapters

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/headgate/headgate/provider"
)

// checkAuth returns what is missing to authenticate a request.
func checkAuth(p provider.Provider) error {
	a := p.Auth
	if keyless(a) {
		return nil
	}
	var errs []error
	switch a.Kind {
	case authHeader, authQuery, authPath:
		if a.Name == "" {
			errs = append(errs, fmt.Errorf("auth.name: want the name of the %s", map[string]string{
				authHeader: "header", authQuery: "query parameter", authPath: "placeholder"}[a.Kind]))
		}
	case authBasic, authBearer:
	default:
		errs = append(errs, fmt.Errorf("auth.kind: %q: want header, query, basic, bearer, path or none", a.Kind))
	}
	if len(a.Env) == 0 {
		errs = append(errs, errors.New("auth.env: want the environment variables that hold the keys"))
	}
	if a.Kind == authPath && a.Name != "" {
		inPath := func(e provider.Endpoint) bool { return names(e.Path, a.Name) }
		if a.Name == "value" || !slices.ContainsFunc(p.Endpoints, inPath) {
			errs = append(errs, fmt.Errorf("auth.name: {%s}: want a placeholder other than {value} that an endpoint's path has", a.Name))
		}
	}
	return errors.Join(errs...)
}

// checkEndpoints returns what cannot be made a request.
func checkEndpoints(p provider.Provider) error {
	if len(p.Endpoints) == 0 {
		return errors.New("endpoints: want at least one")
	}
	var errs []error
	for i, e := range p.Endpoints {
		at := fmt.Sprintf("endpoints[%d] %q", i, e.Name)
		if e.Name == "" {
			errs = append(errs, fmt.Errorf("%s: name: want a name", at))
		}
		if _, err := http.NewRequest(e.Method, "http://host", nil); err != nil {
			errs = append(errs, fmt.Errorf("%s: method: %q: want an HTTP method", at, e.Method))
		}
		text := placeholder.ReplaceAllString(e.Path, "x")
		if _, err := url.Parse("http://host/" + text); err != nil || strings.ContainsAny(text, "?#{} ") {
			errs = append(errs, fmt.Errorf("%s: path: want an escaped path with {placeholders}; a query goes into params", at))
		}
		if _, taken := e.Params[p.Auth.Name]; taken && p.Auth.Kind == authQuery {
			errs = append(errs, fmt.Errorf("%s: params: %s is the key's parameter", at, p.Auth.Name))
		}
		if p.Auth.Kind != authPath || p.Auth.Name == "" {
			continue
		}
		for name, template := range e.Params {
			if names(template, p.Auth.Name) {
				errs = append(errs, fmt.Errorf("%s: params: %s: the key {%s} goes into the path only", at, name, p.Auth.Name))
			}
		}
	}
	return errors.Join(errs...)
}
