package transport

import (
	"cmp"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/headgate/headgate/provider"
)

// target is what a trip needs to know of a provider.
type target struct {
	slug    string
	dialect provider.Dialect
	auth    provider.Auth
	dated   bool // a limit follows dates: the provider's clock matters
}

func newTarget(p provider.Provider) *target {
	to := &target{slug: p.Slug, dialect: p.Dialect, auth: p.Auth}
	limits, _ := p.Throttle.Expand() // a registered one is valid
	for _, l := range limits {
		to.dated = to.dated || l.Algorithm == provider.FixedWindow || l.Algorithm == provider.SlidingWindowCounter
	}
	return to
}

// table says whose a URL is. It does not change once made.
type table struct {
	hosts map[string][]place // by canonical host; the longest prefix first
}

// place is a part of a host that one provider claims: all below a prefix.
type place struct {
	prefix string // plain, without a slash at its end; "" is the whole host
	to     *target
	routes []route
}

// newTable reads the declarations. Two providers that claim one host and prefix
// are an error: their requests could be nobody's or both's.
func newTable(providers iter.Seq[provider.Provider]) (*table, error) {
	tab := &table{hosts: make(map[string][]place)}
	var faults []error
	for p := range providers {
		to, routes := newTarget(p), newRoutes(p.Endpoints)
		for _, h := range p.Hosts {
			faults = append(faults, tab.claim(host(h), place{"", to, routes}))
		}
		if u, err := url.Parse(p.BaseURL); err == nil && u.Host != "" {
			prefix := strings.TrimRight(plain(u.EscapedPath()), "/")
			faults = append(faults, tab.claim(host(u.Host), place{prefix, to, routes}))
		}
	}
	for _, places := range tab.hosts {
		slices.SortFunc(places, func(a, b place) int { return cmp.Compare(len(b.prefix), len(a.prefix)) })
	}
	return tab, errors.Join(faults...)
}

func (tab *table) claim(h string, pl place) error {
	for _, other := range tab.hosts[h] {
		if other.prefix == pl.prefix && other.to.slug != pl.to.slug {
			return fmt.Errorf("transport: providers %q and %q both claim %s%s: give one of them another base_url or host, or set Route",
				other.to.slug, pl.to.slug, h, pl.prefix)
		}
	}
	tab.hosts[h] = append(tab.hosts[h], pl)
	return nil
}

// find returns the provider of a request and the name of its endpoint ("": none
// declared matches); nil: nobody's.
func (tab *table) find(r *http.Request) (to *target, endpoint string) {
	places := tab.hosts[host(r.URL.Host)]
	if places == nil {
		return nil, ""
	}
	path := plain(pathOf(r.URL))
	for i := range places {
		rest, ok := strings.CutPrefix(path, places[i].prefix)
		if ok && (rest == "" || rest[0] == '/' || rest[0] == '?') {
			return places[i].to, endpointOf(places[i].routes, r, rest)
		}
	}
	return nil, ""
}

// pathOf is the escaped path that goes over the wire. An opaque URL hides it from
// EscapedPath.
func pathOf(u *url.URL) string {
	if u.Opaque == "" {
		return u.EscapedPath()
	}
	path, _, _ := strings.Cut(u.Opaque, "?")
	if rest, ok := strings.CutPrefix(path, "//"); ok {
		if i := strings.IndexByte(rest, '/'); i >= 0 {
			return rest[i:]
		}
		return ""
	}
	return path
}

// plain undoes a path's escaping, which two clients may do differently; a slash
// inside a segment is replaced, so that it separates nothing.
func plain(path string) string {
	if strings.IndexByte(path, '%') < 0 {
		return path
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if u, err := url.PathUnescape(s); err == nil {
			segments[i] = strings.ReplaceAll(u, "/", "\x00")
		}
	}
	return strings.Join(segments, "/")
}

// host writes a host so that two names of one are equal: lower case, without the
// port of either scheme and the root's dot.
func host(h string) string {
	h = strings.ToLower(h)
	h = strings.TrimSuffix(strings.TrimSuffix(h, ":80"), ":443")
	return strings.TrimSuffix(h, ".")
}
