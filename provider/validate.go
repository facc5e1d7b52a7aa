package provider

import (
	"maps"
	"math"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // so that a zone is known or unknown on every machine alike
)

// Validate returns every fault of the declaration, joined, each a *[FieldError]
// that names its field and what would be right; nil where there is none. No text
// of a fault holds a URL or another value in which a secret could stand.
func (p Provider) Validate() error { return p.faults().join() }

func (p Provider) faults() faults {
	var f faults
	p.checkNames(&f)
	p.checkHosts(&f)
	p.Throttle.check(&f, "throttle")
	p.checkLimitEndpoints(&f)
	p.checkEndpoints(&f)
	p.Dialect.check(&f, p.Throttle.names())
	p.Breaker.check(&f)
	p.Retry.check(&f)
	checkLength(&f, "timeout", p.Timeout, false)
	if least := p.Throttle.LeastRoundTrip; p.Timeout > 0 && least >= p.Timeout && least <= longest {
		f.add("throttle.least_round_trip", "%s is not below timeout, %s: no answer could come in time", durationText(least), durationText(p.Timeout))
	}
	p.Auth.check(&f)
	if strings.ContainsFunc(p.Identity.UserAgent, isControl) {
		f.add("identity.user_agent", "has a control character: a header cannot hold it")
	}
	if _, err := time.Parse(time.DateOnly, p.AsOf); p.AsOf != "" && err != nil {
		f.add("as_of", "%s is no date: write it as 2026-11-30", quoteShort(p.AsOf))
	}
	return f
}

var slugForm = regexp.MustCompile(`^[a-z0-9-]+$`)

func (p Provider) checkNames(f *faults) {
	switch {
	case p.Slug == "":
		f.add("slug", "is missing: a name of a-z, 0-9 and -")
	case !slugForm.MatchString(p.Slug):
		f.add("slug", "%s must consist of a-z, 0-9 and - alone", quoteShort(p.Slug))
	}
}

func isControl(r rune) bool { return r < 0x20 || r == 0x7f }

func (p Provider) checkHosts(f *faults) {
	seen := map[string]string{}
	if p.BaseURL != "" {
		host, problem := baseHost(p.BaseURL)
		if problem != "" {
			f.add("base_url", "%s", problem)
		} else {
			seen[host] = "base_url"
		}
	}
	for i, h := range p.Hosts {
		path := item("hosts", i)
		host, problem := canonicalHost(h)
		if problem != "" {
			f.add(path, "%s", problem)
			continue
		}
		if first, taken := seen[host]; taken {
			f.add(path, "%s is there already, in %s: name a host once", quoteShort(h), first)
			continue
		}
		seen[host] = path
	}
}

// baseHost returns the host of a base URL. Its messages never show the URL: who
// pastes one pastes the key with it.
func baseHost(base string) (host, problem string) {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return "", `is no URL: write it as "https://api.example.com/v1"`
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", `must be absolute, with http or https and a host: "https://api.example.com/v1"`
	case u.User != nil:
		return "", "must not hold a user or password: declare auth instead"
	case strings.ContainsAny(base, "?#"):
		return "", "must not have a query or fragment: declare params and auth instead"
	}
	return canonicalHost(u.Host)
}

var hostLabel = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$`)

// canonicalHost returns the form in which two names of one host are equal: lower
// case, without a default port.
func canonicalHost(host string) (canonical, problem string) {
	const right = `a host name, or host:port, such as "api.example.com"`
	u := url.URL{Host: strings.ToLower(host)}
	name, port := u.Hostname(), u.Port()
	if n, err := strconv.Atoi(port); port != "" && (err != nil || n < 1 || n > math.MaxUint16) {
		return "", "has no valid port: it must be from 1 to 65535"
	}
	whole := name
	if strings.HasPrefix(u.Host, "[") {
		whole = "[" + name + "]"
		if addr, err := netip.ParseAddr(name); err != nil || !addr.Is6() {
			return "", "is no IPv6 address in brackets: it must be " + right
		}
	} else {
		for label := range strings.SplitSeq(name, ".") {
			if !hostLabel.MatchString(label) {
				return "", "is no host: it must be " + right
			}
		}
	}
	if port != "" {
		whole += ":" + port
	}
	if u.Host != whole || len(name) > 253 {
		return "", "is no host: it must be " + right
	}
	if port == "80" || port == "443" {
		return strings.TrimSuffix(whole, ":"+port), ""
	}
	return whole, ""
}

const longest = 10 * 365 * 24 * time.Hour // sums of durations below it never overflow

// checkLength checks a duration of which zero means the default or none.
func checkLength(f *faults, path string, d time.Duration, forever bool) {
	switch {
	case d == Forever && forever:
	case d < 0:
		f.add(path, "%s is negative: write a duration above 0, or leave it out", d)
	case d > longest && forever:
		f.add(path, "%s is too long: at most %s, or forever", durationText(d), durationText(longest))
	case d > longest:
		f.add(path, "%s is too long: at most %s", durationText(d), durationText(longest))
	}
}

func checkCount(f *faults, path string, n int) {
	switch {
	case n < 0:
		f.add(path, "%d is negative: write a number above 0, or leave it out", n)
	case n > math.MaxInt32:
		f.add(path, "%d is too large: at most %d", n, math.MaxInt32)
	}
}

// checkWord checks a word that may be left out.
func checkWord[T ~string](f *faults, path string, word T, known ...T) {
	if word != "" && !slices.Contains(known, word) {
		f.add(path, "%s is unknown: it must be %s", quoteShort(string(word)), oneOf(known))
	}
}

func (b Breaker) check(f *faults) {
	checkCount(f, "breaker.failures", b.Failures)
	checkLength(f, "breaker.cooldown", b.Cooldown, false)
	checkCount(f, "breaker.probes", b.Probes)
}

func (r Retry) check(f *faults) {
	checkCount(f, "retry.attempts", r.Attempts)
	checkLength(f, "retry.base", r.Base, false)
	checkLength(f, "retry.max", r.Max, false)
	if r.Base > 0 && r.Max > 0 && r.Base > r.Max {
		f.add("retry.base", "%s is above max, %s: the first interval is the shortest", durationText(r.Base), durationText(r.Max))
	}
	if !(r.Budget >= 0 && r.Budget <= 1) { // so written for NaN
		f.add("retry.budget", "%v is no share: it must be from 0 to 1", r.Budget)
	}
}

var (
	headerName = regexp.MustCompile("^[!#$%&'*+.^_`|~0-9A-Za-z-]+$")
	envName    = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)
)

func (a Auth) check(f *faults) {
	kinds := []string{"header", "query", "form", "basic", "bearer", "path", "none"}
	checkWord(f, "auth.kind", a.Kind, kinds...)
	if a.Kind == "" && (a.Name != "" || a.Prefix != "" || a.Optional || len(a.Env)+len(a.With) > 0) {
		f.add("auth.kind", "is missing: it must be %s", oneOf(kinds))
	}
	named := map[string]string{"header": "header", "query": "parameter", "form": "form field", "path": "placeholder"}
	switch {
	case a.Name == "" && named[a.Kind] != "":
		f.add("auth.name", "is missing: the name of the %s that takes the key", named[a.Kind])
	case a.Kind == "header" && !headerName.MatchString(a.Name):
		f.add("auth.name", `is no name of a header: write it as "X-Api-Key"`)
	}
	if a.Prefix != "" && a.Kind != "header" || strings.ContainsFunc(a.Prefix, isControl) {
		f.add("auth.prefix", `must be plain text before the key in a header, such as "Token "`)
	}
	if a.Optional && a.Kind == "path" {
		f.add("auth.optional", "is of no use where the path holds the key: declare another endpoint without it")
	}
	for i, name := range a.Env {
		checkVariable(f, item("auth.env", i), name)
		if slices.Contains(a.Env[:i], name) {
			f.add(item("auth.env", i), "is there twice: name a variable once")
		}
	}
	for _, name := range slices.Sorted(maps.Keys(a.With)) {
		path := at("auth.with", name)
		checkVariable(f, path, a.With[name])
		switch {
		case a.Kind != "header" && a.Kind != "query" && a.Kind != "form":
			f.add(path, "goes along with a key in a header, query or form alone")
		case name == a.Name || name == "":
			f.add(path, "must have a name of its own, beside that of the key")
		case a.Kind == "header" && !headerName.MatchString(name):
			f.add(path, `is no name of a header: write it as "X-Api-Id"`)
		}
	}
}

// checkVariable never shows what it finds: it may be the key itself.
func checkVariable(f *faults, path, name string) {
	if !envName.MatchString(name) {
		f.add(path, "must be the name of an environment variable, such as SHODAN_API_KEY, never the key itself")
	}
}

// names are those of all limits of t, the short form's included.
func (t Throttle) names() []string {
	var names []string
	for _, l := range append(t.short(), t.Limits...) {
		names = append(names, l.Name)
	}
	return names
}

func (p Provider) checkLimitEndpoints(f *faults) {
	for i, name := range p.Throttle.Off {
		if name != Everything && !slices.ContainsFunc(p.Endpoints, func(e Endpoint) bool { return e.Name == name }) {
			f.add(item("throttle.off", i), "%s is not declared: it must be %s", quoteShort(name), p.endpointNames())
		}
	}
	for i, l := range p.Throttle.Limits {
		for _, alias := range slices.Sorted(maps.Keys(l.Keys)) {
			if len(p.Auth.Env) > 0 && !slices.Contains(p.Auth.Env, alias) {
				f.add(at(at(item("throttle.limits", i), "keys"), alias), "is no key of this provider: it must be %s, as in auth.env", oneOf(p.Auth.Env))
			}
		}
		for j, name := range l.Endpoints {
			if name != "" && !slices.ContainsFunc(p.Endpoints, func(e Endpoint) bool { return e.Name == name }) {
				f.add(item(at(item("throttle.limits", i), "endpoints"), j), "%s is not declared: it must be %s", quoteShort(name), p.endpointNames())
			}
		}
	}
}

func (p Provider) endpointNames() string {
	if len(p.Endpoints) == 0 {
		return "declared under endpoints, where there is none"
	}
	names := make([]string, len(p.Endpoints))
	for i, e := range p.Endpoints {
		names[i] = e.Name
	}
	return oneOf(names)
}
