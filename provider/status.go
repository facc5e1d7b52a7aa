package provider

import (
	"slices"
	"strings"
)

// OfStatus is the outcome of an HTTP status alone, where nothing else is known of
// the answer:
//
//	2xx, 3xx, 101  ok
//	401, 403       unauthorized
//	402            quota_spent: providers that use it mean "your credits are used up"
//	408            failed: the server's own word for a timeout
//	429            rate_limited
//	other 4xx      rejected (400, 404, 410, 418, 422, …): the provider answered
//	503, 529       overloaded (529 is in no RFC; several providers send it)
//	other 5xx      failed
//	anything else  unknown: no HTTP status
func OfStatus(status int) Outcome {
	switch {
	case status == 101, status >= 200 && status < 400:
		return OK
	case status == 401, status == 403:
		return Unauthorized
	case status == 402:
		return QuotaSpent
	case status == 408:
		return Failed
	case status == 429:
		return RateLimited
	case status >= 400 && status < 500:
		return Rejected
	case status == 503, status == 529:
		return Overloaded
	case status >= 500 && status < 600:
		return Failed
	}
	return Unknown
}

// Takes tells whether the endpoint looks up that kind.
func (e Endpoint) Takes(k Kind) bool { return slices.Contains(e.Kinds, k) }

// Needs returns the names that a query's Params must give for a lookup at e: its
// placeholders that nothing else fills. Sorted; nil where the value is enough.
func (p Provider) Needs(e Endpoint) []string {
	var names []string
	look := func(template string) {
		for _, found := range placeholder.FindAllString(template, -1) {
			name, _, _ := strings.Cut(strings.Trim(found, "{}"), "|")
			switch {
			case name == "value", name == "page", name == "contact", p.Auth.Kind == "path" && name == p.Auth.Name:
			default:
				names = append(names, name)
			}
		}
	}
	look(e.Path)
	look(e.JSON)
	for _, part := range []map[string]string{e.Params, e.Form, e.Headers} {
		for _, template := range part {
			look(template)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// Switched tells whether an endpoint (or "", of calls that name none) is on: not
// in Off.
func (t Throttle) Switched(endpoint string) bool {
	return !slices.Contains(t.Off, Everything) && (endpoint == "" || !slices.Contains(t.Off, endpoint))
}
