package catalog_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/require"
)

// sample is what is asked for, by kind: with what has to be escaped, where it may
// occur.
var sample = map[provider.Kind]string{
	provider.IP:      "203.0.113.7",
	provider.Domain:  "example.com",
	provider.URL:     "https://example.com/a b?q=1&r=%2F",
	provider.Hash:    "44d88612fea8a8f36de82e1278abb02f",
	provider.Email:   "user+tag@example.com",
	provider.Phone:   "+12025550123",
	provider.Company: "Smith & Sons",
	provider.Text:    `free "text" & more/less`,
}

// recorder keeps the requests that it is given, and answers each alike.
type recorder struct{ got []string }

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	text := req.Method + " " + req.URL.String() + "\n"
	for _, name := range slices.Sorted(maps.Keys(req.Header)) {
		for _, value := range req.Header[name] {
			switch {
			case name == "Accept" && strings.HasPrefix(value, "application/json, "), name == "User-Agent" && value == "headgate (+https://github.com/headgate/headgate)":
				continue // ours, where nothing else is declared
			case name == "Authorization" && strings.HasPrefix(value, "Basic "):
				user, password, _ := req.BasicAuth()
				value = "Basic, " + user + ":" + password
			}
			text += "    " + name + ": " + value + "\n"
		}
	}
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		text += "    " + string(body) + "\n"
	}
	r.got = append(r.got, text)
	return &http.Response{StatusCode: http.StatusNoContent, Header: http.Header{}, Body: http.NoBody, Request: req}, nil
}

// Every request that the catalogue can make, as it goes out: for each endpoint and
// kind, and for the second page where there are pages. Keys are the names of their
// variables. A change shows in testdata/requests.txt, where it is reviewed.
func TestEachLookupBecomesTheProvidersOwnRequest(t *testing.T) {
	var b strings.Builder
	for _, p := range files(t) {
		fmt.Fprintf(&b, "== %s\n", p.Slug)
		for _, e := range p.Endpoints {
			for _, kind := range e.Kinds {
				requests(t, &b, p, provider.Query{Kind: kind, Endpoint: e.Name, Value: sample[kind], Params: needed(p, e)}, e)
			}
		}
	}
	golden(t, "testdata/requests.txt", b.String())
}

// requests writes the requests of one query.
func requests(t *testing.T, b *strings.Builder, p provider.Provider, q provider.Query, e provider.Endpoint) {
	t.Helper()
	var r recorder
	a, err := adapters.New(p, adapters.Options{
		Client:  &http.Client{Transport: &r},
		Getenv:  func(name string) string { return name },
		Contact: "ops@example.com",
	})
	require.NoError(t, err)
	_, err = a.Lookup(t.Context(), q)
	require.Len(t, r.got, 1, "%s %s: %v", p.Slug, e.Name, err)
	fmt.Fprintf(b, "%s %s: %s", e.Name, q.Kind, r.got[0])
	if e.Paging == nil {
		return
	}
	q.Page = "20" // counted, or a cursor; that of a URL is escaped there
	if e.Paging.Next != (provider.Source{}) {
		q.Page = "c%2B2"
	}
	_, err = a.Lookup(t.Context(), q)
	require.Len(t, r.got, 2, "%s %s: %v", p.Slug, e.Name, err)
	fmt.Fprintf(b, "%s %s, page %s: %s", e.Name, q.Kind, q.Page, r.got[1])
}

// needed gives a query's params their own names as values.
func needed(p provider.Provider, e provider.Endpoint) map[string]string {
	params := map[string]string{}
	for _, name := range p.Needs(e) {
		params[name] = name
	}
	return params
}
