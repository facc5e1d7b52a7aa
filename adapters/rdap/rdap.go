// Package rdap asks RDAP servers (RFC 7480) about domains, IP addresses and AS
// numbers. It is written by hand because rdap.org, at which a lookup begins, answers
// with a redirect to the server of the registry that knows (the bootstrap of RFC
// 9224). The adapter of package adapters follows no redirect to another host, and
// rightly so; here the redirect is the answer. What can be said in data stands in
// rdap.yaml beside this file.
//
// A redirect is told as the next page of the lookup ([provider.Result].Next), so
// that each request is a call of its own, which the Coordinator throttles. At most
// three redirects are followed, by https alone, and never to a private address.
// Nothing is sent but the question; there are no credentials.
//
// Importing it registers the adapter in registry.Default; the catalogue does so.
//
// Not in it: registrars' servers, which a registry's answer may link to; parsing of
// records; IANA's bootstrap files; throttling and waiting.
package rdap

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/headgate/headgate/adapters/reach"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

//go:embed rdap.yaml
var declaration []byte

func init() {
	a, err := New(Options{})
	if err != nil {
		panic(err) // a file of ours: the package's tests read it
	}
	registry.Register(a)
}

// agent names us.
const agent = "headgate (+https://github.com/headgate/headgate)"

// Options is what the declaration does not say. The zero value asks the real
// servers.
type Options struct {
	// Transport sends the requests; nil: one that connects to public addresses
	// alone, since it is answers that name the servers, and that uses no proxy,
	// behind which nobody sees an address. Give one for a simulator or a proxy,
	// and leave it to that one where it connects to. Its redirects, cookies and
	// credentials are its own affair: none are asked for here.
	Transport http.RoundTripper
	// BaseURL takes the place of https://rdap.org: another bootstrap server or a
	// simulator. It alone may be http.
	BaseURL string
}

// Adapter asks RDAP servers. It is made by [New], does not change afterwards, and is
// safe for concurrent use.
type Adapter struct {
	p         provider.Provider
	base      *url.URL // the bootstrap server
	transport http.RoundTripper
}

var _ provider.Adapter = (*Adapter)(nil)

// New makes an adapter. It opens nothing. The error names what is wrong with
// opt.BaseURL; without one it is nil unless the program was built with a broken
// declaration.
func New(opt Options) (*Adapter, error) {
	p, err := provider.Parse(declaration)
	if err != nil {
		return nil, fmt.Errorf("rdap: %w", err)
	}
	a := &Adapter{p: p, transport: opt.Transport}
	base := p.BaseURL
	if opt.BaseURL != "" {
		base = opt.BaseURL
		if err := (provider.Provider{Slug: p.Slug, BaseURL: base}).Validate(); err != nil {
			return nil, fmt.Errorf("rdap: options: %w", err)
		}
	}
	if a.base, err = url.Parse(strings.TrimRight(base, "/")); err != nil {
		return nil, errors.New("rdap: options: base_url is no URL") // err holds it
	}
	a.base.Host = strings.ToLower(a.base.Host)
	if a.base.Scheme == "https" {
		a.base.Host = strings.TrimSuffix(a.base.Host, ":443") // as in a page
	}
	if a.transport == nil {
		a.transport = public()
	}
	return a, nil
}

// public is a transport of this package's own that reaches public addresses alone.
func public() http.RoundTripper {
	return &http.Transport{
		DialContext:         (&net.Dialer{Timeout: 10 * time.Second, Control: reach.PublicOnly}).DialContext,
		ForceAttemptHTTP2:   true,
		TLSHandshakeTimeout: 10 * time.Second,
		MaxIdleConns:        100, // many servers, few questions to each
		MaxIdleConnsPerHost: 2,
		IdleConnTimeout:     90 * time.Second,
	}
}

// Provider returns the declaration. Its slices and maps are shared: do not change
// them.
func (a *Adapter) Provider() provider.Provider { return a.p }

// Lookup asks one server: that of q.Page, else the bootstrap server. It is not
// throttled. A value is a domain in ASCII, an IP address, or an AS number (kind
// text: AS64500 or 64500).
//
// Data is an array of at most one RDAP object (RFC 9083). A redirect has none yet:
// it is Empty, and Next is what to ask next, the number of redirects so far and a
// URL. Empty without Next is "no data": a 404 of a server to which the bootstrap
// server led. The bootstrap server's own 404 is no such answer, since it only says
// that no registry has registered a server for that part of the name space: nobody
// who would know was asked, and the error is rejected.
//
// Everything else is an error whose provider.Feedback says what it means: canceled
// where nothing was sent; failed where the network failed or an answer was cut
// short, and unanswered where the request may still arrive; the dialect's class of a
// refusal; banned for the bootstrap server's 403, which it documents so; rejected
// for an answer that is no RDAP object or longer than 1 MiB, and for a redirect that
// is not followed (the fourth one, to the same URL, not to https, to no public host
// name); unknown for an empty answer. What a registry's server refuses pauses the
// endpoint, not the provider, and its budgets are not told: they are not those of
// the other servers. Where ctx's deadline ended the request the error carries no
// Feedback and matches context.DeadlineExceeded.
//
// An error's text holds nothing that a server wrote but a server's name.
func (a *Adapter) Lookup(ctx context.Context, q provider.Query) (provider.Result, error) {
	s, err := a.step(q)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		f := provider.Feedback{Outcome: provider.Canceled, Detail: "nothing was sent: " + err.Error()}
		return provider.Result{}, fmt.Errorf("rdap: %w", f.Err(err))
	}
	req := (&http.Request{Method: http.MethodGet, URL: s.url, Host: s.url.Host, Header: http.Header{"User-Agent": {agent}}}).WithContext(ctx)
	for name, value := range s.e.Headers {
		req.Header.Set(name, value)
	}
	// Not by a Client: it would read a Location before we do, and follow it.
	res, err := a.transport.RoundTrip(req)
	if err != nil {
		return provider.Result{}, s.broken(ctx, err, provider.Feedback{Unanswered: mayArrive(err)})
	}
	defer res.Body.Close()
	return a.read(ctx, s, res)
}
