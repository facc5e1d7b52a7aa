package transport

import (
	"cmp"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"github.com/headgate/headgate/provider"
)

var placeholder = regexp.MustCompile(`\{[A-Za-z0-9_.-]+\}`)

// route recognises the requests of one endpoint.
type route struct {
	name, method string
	segments     [][]string // of the path, each cut at its placeholders
	literal      int        // characters outside placeholders
	fixed        url.Values // parameters without a placeholder
}

// newRoutes returns the routes of endpoints with a path, the most literal first,
// else in the order of their declaration.
func newRoutes(endpoints []provider.Endpoint) []route {
	var all []route
	for _, e := range endpoints {
		if e.Path == "" {
			continue
		}
		path := strings.Trim(e.Path, "/")
		x := route{name: e.Name, method: cmp.Or(e.Method, http.MethodGet), fixed: url.Values{}}
		x.literal = len(placeholder.ReplaceAllString(path, ""))
		for s := range strings.SplitSeq(path, "/") {
			literals := placeholder.Split(s, -1)
			for i := range literals {
				literals[i] = plain(literals[i])
			}
			x.segments = append(x.segments, literals)
		}
		for name, value := range e.Params {
			if !placeholder.MatchString(value) {
				x.fixed.Set(name, value)
			}
		}
		all = append(all, x)
	}
	slices.SortStableFunc(all, func(a, b route) int { return cmp.Compare(b.literal, a.literal) })
	return all
}

// endpointOf returns the name of the endpoint that a request asks: among those
// whose method and path match, that with the most literal path; among equals, the
// one most of whose fixed parameters are there; then the first declared. path is
// plain and relative to the provider.
func endpointOf(routes []route, r *http.Request, path string) string {
	path = strings.Trim(path, "/")
	method := cmp.Or(r.Method, http.MethodGet)
	best, most := -1, 0
	for i := range routes {
		x := &routes[i]
		if best >= 0 && x.literal < routes[best].literal {
			break
		}
		if x.method != method || !x.matches(path) {
			continue
		}
		if n := x.params(r); best < 0 || n > most {
			best, most = i, n
		}
	}
	if best < 0 {
		return ""
	}
	return routes[best].name
}

// params counts the fixed parameters that a request has.
func (x *route) params(r *http.Request) (n int) {
	if len(x.fixed) == 0 {
		return 0
	}
	query := r.URL.Query()
	for name := range x.fixed {
		if query.Get(name) == x.fixed.Get(name) {
			n++
		}
	}
	return n
}

func (x *route) matches(path string) bool {
	for i, literals := range x.segments {
		segment, rest, more := strings.Cut(path, "/")
		if last := i == len(x.segments)-1; more == last || !fits(segment, literals) {
			return false
		}
		path = rest
	}
	return true
}

// fits tells whether a segment is these literals with something between each two.
func fits(segment string, literals []string) bool {
	segment, ok := strings.CutPrefix(segment, literals[0])
	if len(literals) == 1 {
		return ok && segment == ""
	}
	last := literals[len(literals)-1]
	for _, literal := range literals[1 : len(literals)-1] {
		if !ok || segment == "" {
			return false
		}
		var i int
		if i = strings.Index(segment[1:], literal); i < 0 {
			return false
		}
		segment = segment[1+i+len(literal):]
	}
	return ok && len(segment) > len(last) && strings.HasSuffix(segment, last)
}
