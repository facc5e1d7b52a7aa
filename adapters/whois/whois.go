// Package whois asks WHOIS servers over port 43 (RFC 3912): one connection, one
// line, and free text until the server closes it. It is written by hand because
// the adapter of package adapters speaks HTTP, and because nothing in an answer
// says by itself whether it is data, "no data" or a refusal: WHOIS has no status.
// What can be said in data stands in whois-port43.yaml beside this file.
//
// A lookup begins at IANA's server, which refers to the registry's. That is told
// as the next page of the lookup ([provider.Result].Next), so that each query is a
// call of its own, which the Coordinator throttles. Registrars' servers, which a
// registry's answer may name, are not asked: give one as the query's param server.
//
// Importing it registers the adapter in registry.Default; the catalogue does so.
//
// Not in it: parsing of records, RDAP, throttling and waiting.
package whois

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/headgate/headgate/adapters/reach"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
)

//go:embed whois-port43.yaml
var declaration []byte

func init() {
	a, err := New(Options{})
	if err != nil {
		panic(err) // a file of ours: the package's tests read it
	}
	registry.Register(a)
}

// iana is where a lookup begins.
const iana = "whois.iana.org"

// serverParam is the query's param that names another server to begin at.
const serverParam = "server"

// Options is what the declaration does not say. The zero value asks the real
// servers.
type Options struct {
	// Dial connects to a server, named as "whois.iana.org:43"; nil: a net.Dialer
	// that connects to public addresses alone, since it is answers that name
	// the servers. Give one for a simulator, a proxy or a server of your own.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Adapter asks WHOIS servers. It is made by [New], does not change afterwards, and
// is safe for concurrent use.
type Adapter struct {
	p     provider.Provider
	refer *regexp.Regexp // of the declaration: one capture, the next server
	dial  func(ctx context.Context, network, address string) (net.Conn, error)
}

var _ provider.Adapter = (*Adapter)(nil)

// New makes an adapter. It opens nothing. The error is nil unless the program was
// built with a broken declaration.
func New(opt Options) (*Adapter, error) {
	p, err := provider.Parse(declaration)
	if err != nil {
		return nil, fmt.Errorf("whois: %w", err)
	}
	a := &Adapter{p: p, refer: regexp.MustCompile(p.Endpoints[0].Paging.Next.Pattern), dial: opt.Dial}
	if a.dial == nil {
		a.dial = (&net.Dialer{Control: reach.PublicOnly}).DialContext
	}
	return a, nil
}

// Provider returns the declaration. Its slices and maps are shared: do not change
// them.
func (a *Adapter) Provider() provider.Provider { return a.p }

// Lookup asks one server about a domain or an address: that of q.Page, else of the
// param server, else IANA's. It is not throttled.
//
// Data is an array of at most one {"server": …, "text": …}, none where the server
// knows nothing (Empty) or only refers to the next one (Empty, Next). Everything
// else is an error whose provider.Feedback says what it means: canceled where
// nothing was sent; failed where the network failed, and unanswered where the
// query may still arrive; rate_limited for a refusal, for which an empty answer
// counts too; unknown for a short text that is neither data nor a known "no";
// rejected for an answer above 256 KiB, and where IANA knows no server for the
// domain. Where ctx's deadline ended the query the error carries no Feedback and
// matches context.DeadlineExceeded.
//
// An error's text holds nothing that a server wrote but a server's name.
func (a *Adapter) Lookup(ctx context.Context, q provider.Query) (provider.Result, error) {
	s, err := a.search(q)
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		f := provider.Feedback{Outcome: provider.Canceled, Detail: "nothing was sent: " + err.Error()}
		return provider.Result{}, fmt.Errorf("whois: %w", f.Err(err))
	}
	text, err := a.ask(ctx, s.server, s.line)
	if err != nil {
		return provider.Result{}, err
	}
	r := provider.Result{Provider: a.p.Slug, Endpoint: a.p.Endpoints[0].Name, At: time.Now()}
	if f := a.read(&r, s, text); f.Outcome != "" {
		return provider.Result{}, fmt.Errorf("whois: %s: %w", s.server, f.Err(nil))
	}
	return r, nil
}

// search is one query to one server.
type search struct {
	server, line string
	ip           bool
}

// atRoot tells whether IANA is asked for what it does not keep itself.
func (s search) atRoot() bool { return s.server == iana && (s.ip || strings.Contains(s.line, ".")) }

// search makes the query line. What is sent is a plain name or address: a space or
// a leading dash would be an option to some servers, a line end a second query.
func (a *Adapter) search(q provider.Query) (search, error) {
	e := a.p.Endpoints[0]
	if q.Endpoint != "" && q.Endpoint != e.Name {
		return search{}, fmt.Errorf("no endpoint %q, only %s", q.Endpoint, e.Name)
	}
	if q.Kind != "" && !e.Takes(q.Kind) {
		return search{}, fmt.Errorf("no endpoint takes the kind %q, only domain, ip", q.Kind)
	}
	s := search{server: iana}
	for name, value := range q.Params {
		if name != serverParam {
			return search{}, fmt.Errorf("the query's param %q is not a declared parameter", name)
		}
		s.server = value
	}
	if q.Page != "" {
		s.server = q.Page
	}
	var ok bool
	if s.server, ok = hostname(s.server); !ok || !strings.Contains(s.server, ".") {
		return search{}, fmt.Errorf("the server is no host name: want one such as %q", iana)
	}
	if addr, err := netip.ParseAddr(q.Value); err == nil && addr.Zone() == "" && q.Kind != provider.Domain {
		s.line, s.ip = addr.String(), true
		return s, nil
	}
	if s.line, ok = hostname(q.Value); !ok || q.Kind == provider.IP {
		return search{}, errors.New("the value is no IP address and no domain in ASCII: want one such as 203.0.113.7, example.com or xn--bcher-kva.example")
	}
	return s, nil
}

var label = regexp.MustCompile(`^[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?$`)

// hostname returns a host name in lower case without a dot at its end. An IP
// address is none.
func hostname(s string) (string, bool) {
	s = strings.TrimSuffix(strings.ToLower(s), ".")
	labels := strings.Split(s, ".")
	bad := slices.ContainsFunc(labels, func(l string) bool { return len(l) > 63 || !label.MatchString(l) })
	return s, !bad && len(s) <= 253 && strings.Trim(labels[len(labels)-1], "0123456789") != ""
}
