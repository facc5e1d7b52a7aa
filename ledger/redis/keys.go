package redis

import (
	"net/url"
	"strings"
)

// keys names the keys. Those of one provider have one hash tag, so that one script may
// touch them all in a Cluster; those that are common to all have another.
type keys struct {
	prefix string
	apart  bool // in a Cluster what is common may be on another server
}

func (k keys) common() []string {
	tag := "{" + k.prefix + "}"
	return []string{tag, tag + ":holders", tag + ":names", tag + ":news"}
}

// providers is the set of all that have ever had keys.
func (k keys) providers() string { return "{" + k.prefix + "}:providers" }

// place is the record of a provider, and how all of its keys begin.
func (k keys) place(slug string) string { return "{" + k.prefix + ":" + url.QueryEscape(slug) + "}" }

func (k keys) leases(slug string) string { return k.place(slug) + ":leases" }
func (k keys) pauses(slug string) string { return k.place(slug) + ":pauses" }

func (k keys) holds(slug, holder string) string { return k.place(slug) + ":h:" + holder }

// counter names the record and the list of a counter. The ID begins with the slug, which
// the tag says.
func (k keys) counter(slug, id string) (record, list string) {
	_, rest, _ := strings.Cut(id, "/")
	return k.place(slug) + ":c:" + rest, k.place(slug) + ":l:" + rest
}

// guard is the common record, where a provider's script can reach it: the epoch and the
// clock are in it.
func (k keys) guard(slug string) string {
	if k.apart {
		return k.place(slug)
	}
	return k.common()[0]
}
