package registry

import (
	"net/url"
	"slices"
	"strings"

	"github.com/headgate/headgate/provider"
)

// places returns what p claims for itself alone: each of its hosts, and its base
// URL as host and path. The scheme is left out: one place reached over http and
// https is one provider. A base URL without a path claims its host, so that it
// and the same name under another's hosts collide. p is valid.
func places(p provider.Provider) []string {
	var all []string
	for _, h := range p.Hosts {
		all = append(all, host(h))
	}
	if u, err := url.Parse(p.BaseURL); err == nil && u.Host != "" {
		h := host(u.Host)
		if port := u.Port(); u.Scheme == "https" && port == "443" || u.Scheme == "http" && port == "80" {
			h = strings.TrimSuffix(h, ":"+port)
		}
		all = append(all, h+strings.TrimRight(u.EscapedPath(), "/"))
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// host writes a host as DNS compares it.
func host(h string) string { return strings.TrimSuffix(strings.ToLower(h), ".") }
