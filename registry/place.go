package registry

import (
	"net/url"
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
		all = append(all, host(u.Host)+strings.TrimRight(u.EscapedPath(), "/"))
	}
	return all
}

// host writes a host so that two names of one are equal.
func host(h string) string {
	h = strings.ToLower(h)
	return strings.TrimSuffix(strings.TrimSuffix(h, ":80"), ":443")
}
