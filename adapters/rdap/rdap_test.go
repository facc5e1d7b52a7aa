package rdap_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/headgate/headgate/adapters/rdap"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestImportingRegistersIt(t *testing.T) {
	e, ok := registry.Default.Lookup("rdap")
	require.True(t, ok)
	assert.IsType(t, (*rdap.Adapter)(nil), e.Adapter)
}

// Only the limit that rdap.org publishes passes for a provider's.
func TestTheDeclarationPromisesNothingInARegistrysName(t *testing.T) {
	p := new(servers).adapter(t).Provider()
	require.NoError(t, p.Validate())
	limits, err := p.Throttle.Expand()
	require.NoError(t, err)
	require.Len(t, limits, 2)
	assert.Equal(t, provider.BasisProvider, limits[0].Basis)
	assert.Equal(t, []any{int64(10), provider.Period("10s")}, []any{limits[0].Max, limits[0].Per})
	assert.Contains(t, p.Sources, limits[0].Source)
	assert.Equal(t, provider.BasisPacing, limits[1].Basis)
	assert.Equal(t, []any{int64(1), provider.Period("2s")}, []any{limits[1].Max, limits[1].Per})
	assert.Positive(t, p.Timeout)
	for _, e := range p.Endpoints {
		require.Len(t, e.Kinds, 1)
		assert.Equal(t, 4, e.Paging.Max, e.Name)
		assert.Equal(t, map[string]string{"Accept": "application/rdap+json"}, e.Headers, e.Name)
	}
}

func TestTheRedirectIsThePageThatTheRegistryAnswers(t *testing.T) {
	s := &servers{answers: map[string]answer{
		"rdap.org":      redirect("https://RDAP.nic.test:443/v1/domain/example.test?a=1#x"),
		"rdap.nic.test": {status: 200, body: "\ufeff " + domain + "\n"},
	}}
	a, q := s.adapter(t), provider.Query{Kind: provider.Domain, Value: "Example.TEST."}
	first, err := a.Lookup(t.Context(), q)
	require.NoError(t, err)
	assert.Equal(t, "1 https://rdap.nic.test/v1/domain/example.test?a=1", first.Next)
	assert.True(t, first.Empty, "who knows it is not what it is")
	assert.Empty(t, items(t, first))
	assert.False(t, first.At.IsZero())

	q.Page = first.Next
	second, err := a.Lookup(t.Context(), q)
	require.NoError(t, err)
	assert.False(t, second.Empty)
	assert.Empty(t, second.Next)
	assert.Equal(t, "["+domain+"]", string(second.Data), "to the last digit")
	assert.Equal(t, []string{"rdap", "domain"}, []string{second.Provider, second.Endpoint})
	assert.Equal(t, []string{"GET https://rdap.org/domain/example.test", "GET https://rdap.nic.test/v1/domain/example.test?a=1"}, s.asked)
	assert.Equal(t, http.Header{"User-Agent": {"headgate (+https://github.com/headgate/headgate)"}, "Accept": {"application/rdap+json"}}, s.last.Header)
}

func TestWhatIsAsked(t *testing.T) {
	for want, q := range map[string]provider.Query{
		"/domain/xn--bcher-kva.example":      {Kind: provider.Domain, Value: "XN--bcher-kva.example"},
		"/domain/test":                       {Kind: provider.Domain, Value: "test"},
		"/domain/2.0.192.in-addr.arpa":       {Endpoint: "domain", Value: "2.0.192.in-addr.arpa"},
		"/domain/_dmarc.example.test":        {Kind: provider.Domain, Endpoint: "domain", Value: "_dmarc.example.test"},
		"/ip/203.0.113.7":                    {Kind: provider.IP, Value: "203.0.113.7"},
		"/ip/2001:db8::1":                    {Kind: provider.IP, Value: "2001:DB8:0::0001"},
		"/ip/192.0.2.1":                      {Kind: provider.IP, Value: "::ffff:192.0.2.1"},
		"/autnum/64500":                      {Kind: provider.Text, Value: "AS64500"},
		"/autnum/4294967295":                 {Kind: provider.Text, Value: "as4294967295"},
		"/autnum/65000":                      {Endpoint: "autnum", Value: "0065000"},
		"/domain/" + strings.Repeat("a", 63): {Kind: provider.Domain, Value: strings.Repeat("a", 63)},
	} {
		s := &servers{answers: map[string]answer{"rdap.org": redirect("https://rdap.nic.test/x")}}
		_, err := s.adapter(t).Lookup(t.Context(), q)
		require.NoError(t, err, want)
		assert.Equal(t, []string{"GET https://rdap.org" + want}, s.asked)
	}
}

// What is asked reaches a server as one plain segment of a path, and goes nowhere
// but to the bootstrap server and where one has sent us.
func TestNothingElseIsSent(t *testing.T) {
	s := &servers{answers: map[string]answer{"rdap.org": redirect("https://rdap.nic.test/x"), "rdap.nic.test": {status: 200, body: domain}}}
	a := s.adapter(t)
	with := func(kind provider.Kind, value string) provider.Query { return provider.Query{Kind: kind, Value: value} }
	at := func(page string) provider.Query { q := example; q.Page = page; return q }
	for name, q := range map[string]provider.Query{
		"two segments":     with(provider.Domain, "a/../ip/1.example"),
		"query":            with(provider.Domain, "a.example?x=1"),
		"escape":           with(provider.Domain, "a%2eexample"),
		"not ASCII":        with(provider.Domain, "bücher.example"),
		"address":          with(provider.Domain, "192.0.2.1"),
		"long label":       with(provider.Domain, strings.Repeat("a", 64)+".example"),
		"long name":        with(provider.Domain, strings.Repeat("a.", 127)+"aa"),
		"no domain":        with(provider.Domain, ""),
		"no address":       with(provider.IP, "example.test"),
		"zone":             with(provider.IP, "fe80::1%eth0"),
		"prefix":           with(provider.IP, "192.0.2.0/24"),
		"no number":        with(provider.Text, "example"),
		"AS alone":         with(provider.Text, "AS"),
		"33 bits":          with(provider.Text, "AS4294967296"),
		"dotted":           with(provider.Text, "AS1.10"),
		"signed":           with(provider.Text, "-1"),
		"kind":             with(provider.Email, "a@example.test"),
		"no kind":          with("", "example.test"),
		"endpoint":         {Endpoint: "entity", Value: "x"},
		"endpoint's kind":  {Endpoint: "ip", Kind: provider.Domain, Value: "192.0.2.1"},
		"param":            {Kind: provider.Domain, Value: "example.test", Params: map[string]string{"location": "https://rdap.nic.test/x"}},
		"value on a page":  {Kind: provider.IP, Value: "x", Page: page},
		"page is a URL":    at("https://rdap.nic.test/x"),
		"page zero":        at("0 https://rdap.nic.test/x"),
		"page too late":    at("4 https://rdap.nic.test/x"),
		"page signed":      at("+1 https://rdap.nic.test/x"),
		"page alone":       at("1"),
		"page relative":    at("1 /domain/x"),
		"page over http":   at("1 http://rdap.nic.test/x"),
		"page of ours":     at("1 https://localhost/x"),
		"page's address":   at("1 https://127.0.0.1/x"),
		"page's user name": at("1 https://a:b@rdap.nic.test/x"),
		"page's line":      at("1 https://rdap.nic.test/x\r\nX: y"),
	} {
		_, err := a.Lookup(t.Context(), q)
		assert.Equal(t, provider.Canceled, feedback(t, err).Outcome, name)
		assert.ErrorContains(t, err, "nothing was sent: ", name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := a.Lookup(ctx, example)
	assert.Equal(t, provider.Canceled, feedback(t, err).Outcome)
	assert.Empty(t, s.asked)
}

func TestAnotherBootstrapServer(t *testing.T) {
	s := &servers{answers: map[string]answer{"boot.test": {status: 404}}}
	a, err := rdap.New(rdap.Options{Transport: s, BaseURL: "https://Boot.test:443/rdap/"})
	require.NoError(t, err)
	q := example
	for _, q.Page = range []string{"", "1 https://boot.test/rdap/domain/example.test"} {
		_, err = a.Lookup(t.Context(), q)
		assert.Equal(t, provider.Rejected, feedback(t, err).Outcome, "it knows of servers, not of domains, whoever leads to it")
	}
	assert.Equal(t, []string{"GET https://boot.test/rdap/domain/example.test", "GET https://boot.test/rdap/domain/example.test"}, s.asked)
	_, err = rdap.New(rdap.Options{BaseURL: "boot.test?key=secret"})
	require.ErrorContains(t, err, "rdap: options: ")
	assert.NotContains(t, err.Error(), "secret")
}

// Over a real connection, with a certificate that is checked: nothing follows the
// redirect by itself.
func TestOverARealConnection(t *testing.T) {
	var asked []string
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Host+r.RequestURI)
		switch r.Host {
		case "boot.example.com":
			http.SetCookie(w, &http.Cookie{Name: "a", Value: "b"})
			http.Redirect(w, r, "https://rdap.example.com/domain/example.test", http.StatusFound)
		default:
			for name := range r.Header {
				assert.Contains(t, []string{"User-Agent", "Accept", "Accept-Encoding"}, name)
			}
			w.Header().Set("Content-Type", "application/rdap+json")
			_, _ = w.Write([]byte(domain))
		}
	}))
	defer srv.Close()
	a, err := rdap.New(rdap.Options{Transport: srv.Client().Transport, BaseURL: "https://boot.example.com"})
	require.NoError(t, err)
	r, err := a.Lookup(t.Context(), example)
	require.NoError(t, err)
	assert.Equal(t, []string{"boot.example.com/domain/example.test"}, asked)
	q := example
	q.Page = r.Next
	r, err = a.Lookup(t.Context(), q)
	require.NoError(t, err)
	assert.Equal(t, "["+domain+"]", string(r.Data))
	assert.Equal(t, []string{"boot.example.com/domain/example.test", "rdap.example.com/domain/example.test"}, asked)
}
