package adapters

import (
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/headgate/headgate/provider"
)

// check returns what an adapter needs beyond a valid declaration: wrapped calls
// have no use for a key or an endpoint, lookups have.
func check(p provider.Provider) error {
	errs := []error{p.Validate(), checkAuth(p)}
	if p.BaseURL == "" {
		errs = append(errs, errors.New("base_url: is missing: want an absolute http or https URL"))
	}
	if len(p.Endpoints) == 0 {
		errs = append(errs, errors.New("endpoints: are missing: want at least one"))
	}
	for i, e := range p.Endpoints {
		at := fmt.Sprintf("endpoints[%d]", i)
		if _, err := url.Parse("http://host" + placeholder.ReplaceAllString(e.Path, "x")); err != nil {
			errs = append(errs, fmt.Errorf("%s.path: is not escaped: want %%25 for a percent sign", at))
		}
		for name, template := range e.Params {
			if p.Auth.Kind == authQuery && name == p.Auth.Name {
				errs = append(errs, fmt.Errorf("%s.params.%s: is the key's own parameter: want it in auth alone", at, name))
			}
			if p.Auth.Kind == authPath && names(template, p.Auth.Name) {
				errs = append(errs, fmt.Errorf("%s.params.%s: holds the key {%s}: want it in the path alone", at, name, p.Auth.Name))
			}
		}
	}
	return errors.Join(errs...)
}

func checkAuth(p provider.Provider) error {
	if keyless(p.Auth) {
		return nil
	}
	var errs []error
	if len(p.Auth.Env) == 0 {
		errs = append(errs, errors.New("auth.env: is missing: want the environment variables that hold the keys"))
	}
	inPath := func(e provider.Endpoint) bool { return names(e.Path, p.Auth.Name) }
	if p.Auth.Kind == authPath && (p.Auth.Name == "value" || !slices.ContainsFunc(p.Endpoints, inPath)) {
		errs = append(errs, fmt.Errorf("auth.name: {%s}: want a placeholder other than {value} that an endpoint's path has", p.Auth.Name))
	}
	return errors.Join(errs...)
}
