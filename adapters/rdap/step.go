package rdap

import (
	"errors"
	"fmt"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/headgate/headgate/provider"
)

// step is one request of a lookup.
type step struct {
	e    provider.Endpoint
	url  *url.URL
	hops int  // redirects before it
	root bool // to the bootstrap server: it knows who knows, and nothing else
}

// step makes the request's place. The value is checked on every page: a lookup that
// is none has no second page.
func (a *Adapter) step(q provider.Query) (step, error) {
	e, err := a.endpoint(q)
	if err != nil {
		return step{}, err
	}
	for name := range q.Params {
		return step{}, fmt.Errorf("the query's param %q is not a declared parameter: there is none to give", name)
	}
	value, err := canonical(e.Kinds[0], q.Value)
	if err != nil {
		return step{}, err
	}
	s := step{e: e, root: true}
	if q.Page == "" {
		at := *a.base
		at.Path, at.RawPath = at.Path+strings.ReplaceAll(e.Path, "{value}", value), ""
		s.url = &at
		return s, nil
	}
	if s.hops, s.url, err = parsePage(q.Page, a.most(e)); err != nil {
		return step{}, fmt.Errorf("the query's page is none that Result.Next told: %w", err)
	}
	s.root = s.url.Host == a.base.Host // sent home: still nobody who knows
	return s, nil
}

// most is how many redirects a lookup may have.
func (a *Adapter) most(e provider.Endpoint) int { return e.Paging.WithDefaults().Max - 1 }

// endpoint is the one that q names, else the first that takes its kind.
func (a *Adapter) endpoint(q provider.Query) (provider.Endpoint, error) {
	for _, e := range a.p.Endpoints {
		switch {
		case q.Endpoint == "" && e.Takes(q.Kind), q.Endpoint == e.Name && (q.Kind == "" || e.Takes(q.Kind)):
			return e, nil
		case q.Endpoint == e.Name:
			return provider.Endpoint{}, fmt.Errorf("endpoint %q takes no %q, only %s", e.Name, q.Kind, e.Kinds[0])
		}
	}
	if q.Endpoint != "" {
		return provider.Endpoint{}, fmt.Errorf("no endpoint %q, only domain, ip, autnum", q.Endpoint)
	}
	return provider.Endpoint{}, fmt.Errorf("no endpoint takes the kind %q, only domain, ip, text", q.Kind)
}

var asNumber = regexp.MustCompile(`^(?i:AS)?([0-9]+)$`)

// canonical is a value as a path's last segment, in the one form of RFC 9082. It has
// no character that would need an escape or make a second segment.
func canonical(kind provider.Kind, value string) (string, error) {
	switch kind {
	case provider.IP:
		addr, err := netip.ParseAddr(value)
		if err != nil || addr.Zone() != "" {
			return "", errors.New("the value is no IP address: want one such as 203.0.113.7 or 2001:db8::1")
		}
		return addr.Unmap().String(), nil
	case provider.Text:
		if m := asNumber.FindStringSubmatch(value); m != nil {
			if n, err := strconv.ParseUint(m[1], 10, 32); err == nil {
				return strconv.FormatUint(n, 10), nil
			}
		}
		return "", errors.New("the value is no AS number of 32 bits: want one such as AS64500 or 64500")
	}
	name, ok := hostname(value)
	if !ok {
		return "", errors.New("the value is no domain in ASCII: want one such as example.com or xn--bcher-kva.example")
	}
	return name, nil
}

// A page is "2 https://rdap.nic.example/domain/a.example": how many redirects led
// there, so that their number is bounded whoever goes on with a lookup, and where.
func formatPage(hops int, u *url.URL) string { return strconv.Itoa(hops) + " " + u.String() }

func parsePage(page string, most int) (hops int, u *url.URL, err error) {
	number, location, _ := strings.Cut(page, " ")
	hops, err = strconv.Atoi(number)
	if err != nil || hops < 1 || hops > most || strconv.Itoa(hops) != number {
		return 0, nil, fmt.Errorf("want a number from 1 to %d, a space and a URL", most)
	}
	u, err = target(&url.URL{}, location)
	return hops, u, err
}

// maxURL bounds what a server may have us ask another one.
const maxURL = 2 << 10

// target is where a redirect leads. Only the names of public hosts are good, and
// only https: what is asked, and by whom, is nobody else's business, and a plain
// answer can be forged. What a name leads to is checked when it is dialled.
func target(from *url.URL, location string) (*url.URL, error) {
	u, err := from.Parse(location)
	switch {
	case err != nil || location == "":
		return nil, errors.New("it leads to no URL")
	case u.Scheme != "https":
		return nil, errors.New("it leads to no https address")
	case u.User != nil:
		return nil, errors.New("it holds a user name")
	}
	host, ok := hostname(u.Hostname())
	if !ok || !strings.Contains(host, ".") {
		return nil, errors.New("it leads to no public host name")
	}
	if port := u.Port(); port != "" && port != "443" {
		host += ":" + port
	}
	u.Host, u.Fragment, u.RawFragment = host, "", ""
	if len(u.String()) > maxURL {
		return nil, errors.New("it leads to a URL above 2 KiB")
	}
	return u, nil
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
