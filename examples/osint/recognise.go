package main

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"regexp"
	"strings"

	"golang.org/x/net/idna"

	"github.com/headgate/headgate/provider"
)

// errJunk is the complaint about what resembles nothing.
var errJunk = errors.New("no IP address, domain, URL, hash or e-mail address")

var (
	hexadecimal = regexp.MustCompile(`^[0-9a-fA-F]+$`)
	scheme      = regexp.MustCompile(`^(?i)(h(?:tt|xx|\*\*)ps?|s?ftp|fxps?)://`)
	label       = regexp.MustCompile(`^[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?$`)
	numeric     = regexp.MustCompile(`^[0-9.]+$`)
)

// fangs are the spellings that keep an indicator from being clicked on.
var fangs = strings.NewReplacer(
	"[.]", ".", "(.)", ".", "{.}", ".", "[dot]", ".", "(dot)", ".", "{dot}", ".", "[DOT]", ".", "(DOT)", ".",
	"[@]", "@", "(@)", "@", "[at]", "@", "(at)", "@", "[:]", ":", "[://]", "://", "[/]", "/", `\.`, ".",
)

// found is one thing that a line names.
type found struct {
	kind  provider.Kind
	value string
}

// recognise says what text is, in normal form: an IP address (IPv4 in IPv6 is
// IPv4), a hash in lower case, a domain in lower case and Punycode, an e-mail
// address, a URL. Of a URL it is the host, too, and the host alone where the URL
// says no more than that. The error says what is wrong, for a person.
func recognise(text string) ([]found, error) {
	text = fangs.Replace(text)
	if hexadecimal.MatchString(text) && !numeric.MatchString(text) || len(text) >= 32 && hexadecimal.MatchString(text) {
		return one(hash(text))
	}
	if m := scheme.FindString(text); m == "" && strings.Contains(text, "@") {
		return one(email(text))
	}
	host, err := hostOf(text)
	if err != nil {
		return nil, err
	}
	all, err := one(place(text, host))
	if err != nil {
		return nil, err
	}
	if u, ok := full(text); ok {
		all = append([]found{{provider.URL, u}}, all...)
	}
	return all, nil
}

func one(kind provider.Kind, value string, err error) ([]found, error) {
	if err != nil {
		return nil, err
	}
	return []found{{kind, value}}, nil
}

// place takes the host of text for an address or a name.
func place(text, host string) (provider.Kind, string, error) {
	if addr, err := netip.ParseAddr(host); err == nil {
		if addr.Zone() != "" {
			return "", "", errors.New("an address with a zone means something on one machine only")
		}
		return provider.IP, addr.Unmap().String(), nil
	}
	if _, err := netip.ParsePrefix(text); err == nil {
		return "", "", errors.New("a network: want single addresses")
	}
	name, err := domain(host)
	return provider.Domain, name, err
}

// full is text as a URL; false: it is none, or names a host and no more.
func full(text string) (string, bool) {
	m := scheme.FindString(text)
	if m == "" {
		return "", false
	}
	u, err := url.Parse("http://" + text[len(m):])
	if err != nil || (u.Path == "" || u.Path == "/") && u.RawQuery == "" {
		return "", false
	}
	u.Scheme = strings.NewReplacer("xx", "tt", "**", "tt", "fxp", "ftp").Replace(strings.ToLower(strings.TrimSuffix(m, "://")))
	u.Host, u.User, u.Fragment = strings.ToLower(u.Host), nil, "" // a login is nobody's business
	return u.String(), true
}

// hash takes hexadecimal digits by their number.
func hash(text string) (provider.Kind, string, error) {
	switch len(text) {
	case 32, 40, 64:
		return provider.Hash, strings.ToLower(text), nil
	}
	return "", "", fmt.Errorf("%d hexadecimal digits: want 32 (MD5), 40 (SHA-1) or 64 (SHA-256)", len(text))
}

// hostOf is the host of a URL, or of host:port, or text itself.
func hostOf(text string) (string, error) {
	if m := scheme.FindString(text); m != "" {
		u, err := url.Parse("http://" + text[len(m):])
		if err != nil || u.Hostname() == "" {
			return "", errors.New("a URL without a host")
		}
		return u.Hostname(), nil
	}
	if host, port, err := net.SplitHostPort(text); err == nil && numeric.MatchString(port) {
		return host, nil
	}
	if inner, ok := strings.CutPrefix(text, "["); ok && strings.HasSuffix(inner, "]") {
		return strings.TrimSuffix(inner, "]"), nil
	}
	if host, _, ok := strings.Cut(text, "/"); ok && strings.Contains(host, ".") {
		if _, err := netip.ParsePrefix(text); err != nil {
			return host, nil // a URL that lost its scheme
		}
	}
	return text, nil
}

// domain checks a name and gives its normal form.
func domain(name string) (string, error) {
	name = strings.TrimSuffix(name, ".")
	if numeric.MatchString(name) {
		return "", errors.New("no IP address: want four numbers from 0 to 255")
	}
	ascii, err := idna.Lookup.ToASCII(name)
	if err != nil { // underscores are not in IDNA's rules, and common in lists
		ascii = strings.ToLower(name)
	}
	labels := strings.Split(ascii, ".")
	if len(labels) < 2 || len(ascii) > 253 || numeric.MatchString(labels[len(labels)-1]) {
		return "", errJunk
	}
	for _, l := range labels {
		if !label.MatchString(l) {
			return "", errJunk
		}
	}
	return ascii, nil
}
