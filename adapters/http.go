// Package adapters turns a declaration into a provider.Adapter: one small HTTP
// adapter that knows no provider. Endpoints, parameters, keys and identity are
// strings of the declaration, and each is data: nothing in one is run.
//
// A path, parameter, form field, header or string of a JSON body may have
// placeholders: {value} is the query's value, {page} the page that is asked for,
// {contact} whom the provider can reach, the name of a key of kind path that key
// (in the path or JSON alone), and any other name a param of the query, which must
// give it. A param with the name of a declared parameter or form field takes its
// place; a param that nothing uses is an error. Filters change a value on its way,
// from left to right, as in {value|lower|sha1}: lower, upper, base64, base64url
// (the URL's alphabet, without padding), md5, sha1, sha256 (in hexadecimal), pad10
// (zeros before it, up to ten characters), unescape (for a cursor that was cut out
// of a URL) and, last in a string of a JSON body that is nothing else, number. A
// brace that is none of this is text: { a } is.
//
// The declarations that ship with Headgate are in package catalog below; a
// blank import of it registers them.
//
// Not in it: throttling, waiting and sending again (the Coordinator does that),
// and how an answer is read (package dialect).
package adapters

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"

	"github.com/headgate/headgate/provider"
)

// Options is what a declaration does not say. The zero value is the real
// provider, asked with keys from the process's environment.
type Options struct {
	// Client sends the requests; nil: one on http.DefaultTransport. It is
	// copied. Redirects are followed only inside the provider's own origin and
	// with the request's body, and then as the Client says.
	Client *http.Client
	// BaseURL takes the place of the declaration's, for a simulator or a proxy.
	BaseURL string
	// Getenv reads the variables that the declaration names; nil: os.Getenv.
	// It is asked at each lookup.
	Getenv func(string) string
	// Contact is the e-mail address or URL at which a provider can reach whoever
	// runs the program; empty: the variable HEADGATE_CONTACT. Only a declaration
	// that asks for it sends it.
	Contact string
}

// ContactVariable is the environment variable that is read where Options.Contact
// is empty.
const ContactVariable = "HEADGATE_CONTACT"

// HTTP asks one provider over HTTP as its declaration says. It is made by [New],
// does not change afterwards, and is safe for concurrent use.
type HTTP struct {
	p       provider.Provider
	base    string // without a slash at the end
	client  *http.Client
	getenv  func(string) string
	contact string

	asksContact bool
}

var _ provider.Adapter = (*HTTP)(nil)

// New makes an adapter for p. It opens nothing and reads no environment
// variable, so that a provider without a key can be registered and listed. The
// error names each field of p that is not usable, and what would be.
func New(p provider.Provider, opt Options) (*HTTP, error) {
	h := &HTTP{p: p, getenv: opt.Getenv, contact: opt.Contact, asksContact: asksContact(p)}
	if h.getenv == nil {
		h.getenv = os.Getenv
	}
	client := http.Client{}
	if opt.Client != nil {
		client = *opt.Client
	}
	client.CheckRedirect = sameOrigin(client.CheckRedirect)
	h.client = &client

	base, err := p.BaseURL, check(p)
	if opt.BaseURL != "" {
		base = opt.BaseURL
		// As a declaration of its own: it need not fit to p's hosts.
		if wrong := (provider.Provider{Slug: p.Slug, BaseURL: base}).Validate(); wrong != nil {
			err = errors.Join(err, fmt.Errorf("options: %w", wrong))
		}
	}
	if err != nil {
		return nil, fmt.Errorf("adapters: provider %q: %w", p.Slug, err)
	}
	h.base = strings.TrimRight(base, "/")
	return h, nil
}

// Provider returns the declaration as it was given to [New]. Its slices and maps
// are shared: do not change them.
func (h *HTTP) Provider() provider.Provider { return h.p }

// Ready says what a lookup lacks that the program has to supply: a key, what goes
// along with it, a contact. It is nil where a lookup could be sent, even without
// an optional key, and names variables, never their values.
func (h *HTTP) Ready() error {
	_, err := h.credentials("")
	_, contactErr := h.reachable()
	return errors.Join(err, h.twice(), contactErr)
}

// Lookup sends one request and reads its answer. It is not throttled.
//
// A Result is an answer; Empty means that the provider has no data: a 204, an
// empty array or object, null, or a status that the declaration reads as an ok
// (signals: [{status: [404], outcome: ok}]) with an API's body. Everything else
// is an error whose provider.Feedback says what it means: canceled where nothing
// was sent, failed and unanswered where the network failed, the dialect's class
// where the provider answered, rejected for an answer that is no data (above 8
// MiB, or a redirect elsewhere), unknown for an empty 200, failed for one cut
// short. Where ctx's deadline ended the request the error carries no Feedback,
// since only the caller knows whose fault that is; it matches
// context.DeadlineExceeded.
//
// Where the endpoint has pages a lookup is one of them: the first where q.Page is
// empty. Data is the array of its items, Empty that it has none, Next the q.Page of
// the page after it, empty after the last one and where a provider names the page
// again that it was asked for. An answer that is no JSON array, object or null is
// rejected there; one in which the items' place is missing has none.
//
// An error's text holds no key, no URL and nothing that the provider wrote; its
// causes hold neither key nor URL. The declaration's Timeout is not applied here.
func (h *HTTP) Lookup(ctx context.Context, q provider.Query) (provider.Result, error) {
	l, err := h.lookup(q)
	if err != nil {
		return provider.Result{}, h.unsent(err)
	}
	req, err := h.request(ctx, l)
	if err != nil {
		return provider.Result{}, h.unsent(err)
	}
	if err := ctx.Err(); err != nil {
		return provider.Result{}, h.unsent(err)
	}
	secrets := l.key.secrets(req.URL)
	res, err := h.client.Do(req)
	if err != nil {
		return provider.Result{}, h.unanswered(ctx, l.e, err, secrets)
	}
	defer res.Body.Close()
	return h.result(ctx, l, res, secrets)
}

// list writes names for an error.
func list[S ~string](names []S) string {
	if len(names) == 0 {
		return "(none)"
	}
	texts := make([]string, len(names))
	for i, n := range names {
		texts[i] = string(n)
	}
	return strings.Join(texts, ", ")
}
