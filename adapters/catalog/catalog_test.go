package catalog_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/adapters/catalog"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// slugs pins the catalogue: a file that is added or lost shows here.
var slugs = []string{"crt-sh", "ip-api", "shodan", "urlscan", "virustotal"}

func all(t *testing.T) []provider.Provider {
	t.Helper()
	all, err := catalog.All()
	require.NoError(t, err)
	return all
}

func TestTheCatalogueIsPinned(t *testing.T) {
	var got []string
	for _, p := range all(t) {
		got = append(got, p.Slug)
	}
	assert.Equal(t, slugs, got)
}

func TestABlankImportRegistersEveryProvider(t *testing.T) {
	var got []string
	for e := range registry.Default.All() {
		require.IsType(t, (*adapters.HTTP)(nil), e.Adapter)
		got = append(got, e.Provider.Slug)
	}
	assert.Equal(t, slugs, got)
}

func TestAllReturnsFreshValues(t *testing.T) {
	all(t)[0].Throttle.Limits[0].Max = 1e6
	assert.NotEqual(t, int64(1e6), all(t)[0].Throttle.Limits[0].Max)
}

// Each fact has its source, and no courtesy or guess passes for a provider's limit.
func TestEachDeclarationIsSourced(t *testing.T) {
	for _, p := range all(t) {
		require.NoError(t, p.Validate(), p.Slug)
		limits, err := p.Throttle.Expand()
		require.NoError(t, err, p.Slug)
		require.NotEmpty(t, limits, p.Slug)
		assert.NotEmpty(t, p.Name, p.Slug)
		assert.NotEmpty(t, p.Category, p.Slug)
		assert.NotEmpty(t, p.Sources, p.Slug)
		assert.Positive(t, p.Timeout, "%s: a lookup that hangs for good holds its slot", p.Slug)
		assert.Contains(t, []string{"documented", "public-code", "third-party", "unknown"}, p.Confidence, p.Slug)
		_, err = time.Parse(time.DateOnly, p.AsOf)
		require.NoError(t, err, p.Slug)
		for _, l := range p.Throttle.Limits {
			if l.Basis == "" || l.Basis == provider.BasisProvider {
				assert.Contains(t, p.Sources, l.Source, "%s: %s: a provider's limit names one of the file's sources", p.Slug, l.Name)
			} else {
				assert.Contains(t, []string{provider.BasisPacing, provider.BasisAssumed}, l.Basis, "%s: %s", p.Slug, l.Name)
			}
			for _, name := range l.Endpoints {
				named := func(e provider.Endpoint) bool { return e.Name == name }
				assert.True(t, slices.ContainsFunc(p.Endpoints, named), "%s: %s: no endpoint %s", p.Slug, l.Name, name)
			}
		}
		for _, e := range p.Endpoints {
			assert.NotEmpty(t, e.Kinds, "%s: %s", p.Slug, e.Name)
		}
		if p.Auth.Kind != "none" {
			require.Len(t, p.Auth.Env, 1, p.Slug)
			assert.Regexp(t, `^[A-Z]+_API_KEY$`, p.Auth.Env[0])
		}
	}
}

// The numbers as the sources have them; the lower where they disagree.
func TestTheLimitsAreTheSourcedOnes(t *testing.T) {
	want := map[string][]string{
		"crt-sh":     {"60 per 1m provider", "5 per 1m assumed", "1 per  assumed"},
		"ip-api":     {"45 per 1m provider"},
		"shodan":     {"1 per 1s provider", "100 credits per month provider"},
		"urlscan":    {"30 per minute provider", "300 per hour assumed", "1000 per day assumed"},
		"virustotal": {"4 per 1m provider", "500 per day provider", "15500 per month provider"},
	}
	for _, p := range all(t) {
		var got []string
		for _, l := range p.Throttle.Limits {
			text := []string{strconv.FormatInt(l.Max, 10), "per", string(l.Per), l.Basis}
			if l.Basis == "" {
				text[3] = provider.BasisProvider
			}
			if l.Unit != "" && l.Unit != provider.Requests {
				text = slices.Insert(text, 1, l.Unit)
			}
			got = append(got, strings.Join(text, " "))
		}
		assert.Equal(t, want[p.Slug], got, p.Slug)
	}
}

// asked is one lookup and the request that it must become.
type asked struct {
	slug  string
	kind  provider.Kind
	value string
	want  string // request line and the header with the key
	reply int
	body  string
	empty bool
}

var lookups = []asked{
	{"shodan", provider.IP, "8.8.8.8", "GET /shodan/host/8.8.8.8?key=K", 200, `{"ports":[53]}`, false},
	{"shodan", provider.IP, "10.0.0.1", "GET /shodan/host/10.0.0.1?key=K", 404, `{"error":"No information available for that IP."}`, true},
	{"shodan", provider.Text, "nginx port:80", "GET /shodan/host/search?key=K&query=nginx+port%3A80", 200, `{"matches":[]}`, false},
	{"virustotal", provider.IP, "8.8.8.8", "GET /api/v3/ip_addresses/8.8.8.8 X-Apikey: K", 200, `{"data":{}}`, false},
	{"virustotal", provider.Domain, "example.com", "GET /api/v3/domains/example.com X-Apikey: K", 200, `{"data":{}}`, false},
	{"virustotal", provider.Hash, "44d88612fea8a8f36de82e1278abb02f", "GET /api/v3/files/44d88612fea8a8f36de82e1278abb02f X-Apikey: K",
		404, `{"error":{"code":"NotFoundError","message":"not found"}}`, true},
	{"crt-sh", provider.Domain, "%.example.com", "GET /?output=json&q=%25.example.com", 200, `[{"id":1}]`, false},
	{"crt-sh", provider.Domain, "example.com", "GET /?output=json&q=example.com", 200, `[]`, true},
	{"ip-api", provider.IP, "2001:db8::1", "GET /json/2001:db8::1", 200, `{"status":"success"}`, false},
	{"urlscan", provider.Domain, "example.com", "GET /api/v1/search/?q=domain%3A%22example.com%22 Api-Key: K", 200, `{"results":[]}`, false},
	{"urlscan", provider.IP, "2001:db8::1", "GET /api/v1/search/?q=ip%3A%222001%3Adb8%3A%3A1%22 Api-Key: K", 200, `{"results":[]}`, false},
	{"urlscan", provider.Hash, "ab12", "GET /api/v1/search/?q=hash%3A%22ab12%22 Api-Key: K", 200, `{"results":[]}`, false},
}

func TestEachLookupBecomesTheProvidersOwnRequest(t *testing.T) {
	declared := map[string]provider.Provider{}
	for _, p := range all(t) {
		declared[p.Slug] = p
	}
	untested := map[string]bool{}
	for slug, p := range declared {
		for _, e := range p.Endpoints {
			untested[slug+" "+e.Name] = true
		}
	}
	for _, l := range lookups {
		p := declared[l.slug]
		var got string
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r.Method + " " + r.RequestURI
			if p.Auth.Kind == "header" {
				got += " " + http.CanonicalHeaderKey(p.Auth.Name) + ": " + r.Header.Get(p.Auth.Name)
			}
			w.WriteHeader(l.reply)
			_, _ = io.WriteString(w, l.body)
		}))
		real, err := url.Parse(p.BaseURL)
		require.NoError(t, err)
		a, err := adapters.New(p, adapters.Options{BaseURL: srv.URL + real.Path, Getenv: func(string) string { return "K" }})
		require.NoError(t, err)
		r, err := a.Lookup(t.Context(), provider.Query{Kind: l.kind, Value: l.value})
		srv.Close()
		require.NoError(t, err, "%s %s", l.slug, l.value)
		assert.Equal(t, l.want, got)
		assert.Equal(t, l.empty, r.Empty, "%s %s", l.slug, l.value)
		assert.Equal(t, l.slug == "crt-sh" && l.empty, r.Suspicious, "%s %s", l.slug, l.value)
		delete(untested, l.slug+" "+r.Endpoint)
	}
	assert.Empty(t, untested, "endpoints without a lookup here")
}

func TestAddressesDomainsAndHashesAreCovered(t *testing.T) {
	for kind, want := range map[provider.Kind][]string{
		provider.IP:     {"ip-api", "shodan", "urlscan", "virustotal"},
		provider.Domain: {"crt-sh", "urlscan", "virustotal"},
		provider.Hash:   {"urlscan", "virustotal"},
	} {
		var got []string
		for _, p := range all(t) {
			a, err := adapters.New(p, adapters.Options{})
			require.NoError(t, err)
			if _, err := a.Endpoint(provider.Query{Kind: kind}); err == nil {
				got = append(got, p.Slug)
			}
		}
		assert.Equal(t, want, got, kind)
	}
}
