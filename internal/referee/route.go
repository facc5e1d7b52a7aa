package referee

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"

	"github.com/headgate/headgate/provider"
)

const costHeader = "X-Cost-"

var placeholder = regexp.MustCompile(`\{[^/{}]*\}`)

// route recognises the requests of one endpoint.
type route struct {
	provider.Endpoint
	path    *regexp.Regexp
	literal int            // characters of the path outside placeholders
	at      map[string]int // the capture of a placeholder in the path, by its name
	rest    templates      // of what it has beside the path
}

func newRoutes(endpoints []provider.Endpoint) []*route {
	var all []*route
	for _, e := range endpoints {
		path, _, _ := strings.Cut(e.Path, "?")
		path = strings.Trim(path, "/")
		r := &route{Endpoint: e, literal: len(placeholder.ReplaceAllString(path, "")), at: map[string]int{}, rest: newTemplates(e.Params, e.Form, e.JSON)}
		names := placeholder.FindAllString(path, -1)
		var expr strings.Builder
		for i, literal := range placeholder.Split(path, -1) {
			if i > 0 {
				expr.WriteString("([^/]+)")
				r.at[nameOf(names[i-1])] = i
			}
			expr.WriteString(regexp.QuoteMeta(plain(literal)))
		}
		r.path = regexp.MustCompile("^(?s:" + expr.String() + ")$")
		all = append(all, r)
	}
	return all
}

// route returns the endpoint that req asks, nil for none: among those whose method
// and path match, the one with the most literal path; among equals, the one whose
// parameters, form and JSON body are most like what was sent; then the first
// declared. path is escaped and relative to the provider.
func (j *judge) route(req *http.Request, path string, body sent) *route {
	path = plain(strings.Trim(path, "/"))
	var best *route
	literal, like := -1, -1
	for _, r := range j.routes {
		method := r.Method
		if method == "" {
			method = http.MethodGet
		}
		if method != req.Method || !r.path.MatchString(path) {
			continue
		}
		if n := r.rest.likeness(body); r.literal > literal || r.literal == literal && n > like {
			best, literal, like = r, r.literal, n
		}
	}
	return best
}

// plain undoes a path's escaping, which two clients may do differently; a slash
// inside a segment is replaced, so that it separates nothing.
func plain(path string) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if u, err := url.PathUnescape(s); err == nil {
			segments[i] = strings.ReplaceAll(u, "/", "\x00")
		}
	}
	return strings.Join(segments, "/")
}

// filled is what an escaped path has in the place of a placeholder; "": nothing.
func (r *route) filled(name, path string) string {
	if r == nil || r.at[name] == 0 {
		return ""
	}
	return r.path.FindStringSubmatch(plain(strings.Trim(path, "/")))[r.at[name]]
}

func (j *judge) named(endpoint string) *route {
	for _, r := range j.routes {
		if r.Name == endpoint {
			return r
		}
	}
	return nil
}

// key tells whose key req carries; r is its endpoint, nil for none.
func (j *judge) key(req *http.Request, r *route, path string, body sent) string {
	if j.play.Key != nil {
		return j.play.Key(req)
	}
	found := ""
	switch auth := j.play.Provider.Auth; auth.Kind {
	case "header":
		found = req.Header.Get(auth.Name)
	case "query":
		found = req.URL.Query().Get(auth.Name)
	case "form":
		found = body.form.Get(auth.Name)
	case "path":
		found = r.filled(auth.Name, path)
	case "basic", "bearer":
		found = req.Header.Get("Authorization")
	}
	if found == "" {
		found = req.Header.Get("X-Api-Key")
	}
	if found == "" {
		found = req.URL.Query().Get("key")
	}
	return found
}

// headerCost reads the headers X-Cost-<unit>.
func headerCost(req *http.Request) (map[string]int64, error) {
	cost := map[string]int64{}
	for name, values := range req.Header {
		unit, ok := strings.CutPrefix(name, costHeader)
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(values[0], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("header %s is not a whole number", name)
		}
		cost[strings.ToLower(unit)] = n
	}
	return cost, nil
}

// fullCost completes a cost by what the endpoint declares, and by one request.
// More than any limit can hold is cut to just that.
func (j *judge) fullCost(endpoint string, cost map[string]int64) (map[string]int64, error) {
	full := map[string]int64{provider.Requests: 1}
	if r := j.named(endpoint); r != nil {
		maps.Copy(full, r.Cost)
	}
	maps.Copy(full, cost)
	for unit, n := range full {
		if n < 0 {
			return nil, fmt.Errorf("cost in %q is %d, would have to be 0 or more", unit, n)
		}
		full[unit] = min(n, largest+1)
	}
	return full, nil
}
