package catalog_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/headgate/headgate/provider"
)

const docsHead = `<!-- Written by go test ./adapters/catalog -run TestProvidersDoc -update; do not edit. -->

# Providers

What a blank import of ` + "`github.com/headgate/headgate/adapters/catalog`" + ` registers: %d providers, each a YAML file in
[adapters/catalog](../adapters/catalog) but for those written by hand. The file has what a row has no room for: all
sources, what is unsure, how the provider answers.

**Limits.** Each is *how much* per *how long*, with its name, which is what an override names. A length (` + "`1m`" + `, ` + "`24h`" + `) slides,
unless it is a bucket's; a word (` + "`day`" + `, ` + "`month`" + `) is the calendar's, in UTC. *By key*: each key has its own; *by endpoint*: each
endpoint. A limit counts requests where it names nothing else. Where the number comes from:

- no mark: the provider says so, or somebody who reports what it says; the file names the source;
- **(pacing)**: our courtesy, or that of another client. The provider does not ask for it;
- **(assumed)**: nobody says so. A low guess, because no limit would mean that there is none.

A free plan's numbers are declared where there is one, the lowest paid plan's elsewhere, and the lower where sources
disagree. If your plan has others, override the throttle.

**Confidence** is that of the file as a whole: *documented* (the provider's own pages or its maintainers), *public-code*
(programs that use it), *third-party* (others who write about it), *unknown* (no source tells a limit).

**Whom to trust.** The provider's page before this one: numbers change, and these were read on the date beside them. What an
answer tells at run time goes before what is declared, downwards.

**Key** is the environment variable that holds it; *optional* where the provider answers without one. A provider that asks
for a contact needs HEADGATE_CONTACT, too.

To add one or to correct a number: [CONTRIBUTING](../CONTRIBUTING.md#how-to-add-a-provider).
`

// leftOut are the providers that were looked at and have no declaration.
var leftOut = [][2]string{
	{"AutoWhois", "no endpoint is told by any source"},
	{"BinaryEdge", "shut down on 31 March 2025 (https://github.com/projectdiscovery/subfinder/issues/1633)"},
	{"BitcoinAbuse", "has become Chainabuse: the old API redirects there (https://github.com/TheHive-Project/Cortex-Analyzers/issues/1360)"},
	{"BlockchainAnalysis.io", "no endpoint is told by any source"},
	{"CaptainDNS", "neither base URL nor endpoint is told by any source"},
	{"CrowdSec Central API (login)", "a login for agents, not a lookup"},
	{"CT Radar", "no endpoint is told by any source"},
	{"IP Location API", "no endpoint is told by any source"},
	{"IP Sonar", "no endpoint is told by any source"},
	{"IpForensics", "neither base URL nor endpoint is told by any source"},
	{"MySSL.info", "no endpoint is told by any source"},
	{"NASA FIRMS", "neither base URL nor endpoint is told by any source"},
	{"Pentest-Tools.com", "starts scans of other people's hosts; it looks nothing up"},
	{"RiskIQ PassiveTotal", "its hosts are gone; the successor is another product (https://github.com/blacklanternsecurity/bbot/pull/3122)"},
	{"Stack Overflow for Teams", "each team has a base URL of its own, and no endpoint is told"},
	{"tlscheck.net", "no endpoint is told by any source"},
	{"Tokenview", "no endpoint is told by any source"},
	{"VantaPrism", "neither base URL nor endpoint is told by any source"},
	{"Wayback Save Page Now", "makes a capture; it looks nothing up"},
	{"WhoisXML API (Bulk WHOIS)", "a job of up to 500,000 names, fetched later as a file; it is no lookup"},
}

// docs/providers.md lists what is registered.
func TestProvidersDoc(t *testing.T) {
	all := registered()
	byCategory := map[string][]provider.Provider{}
	for _, p := range all {
		byCategory[p.Category] = append(byCategory[p.Category], p)
	}
	var b strings.Builder
	fmt.Fprintf(&b, docsHead, len(all))
	for _, category := range slices.Sorted(maps.Keys(byCategory)) {
		fmt.Fprintf(&b, "\n## %s\n\n| provider | looks up | limits | confidence, as of | key | first source |\n|---|---|---|---|---|---|\n", category)
		for _, p := range byCategory[category] {
			b.WriteString(row(p))
		}
	}
	b.WriteString("\n## Written by hand\n\n")
	for _, slug := range slices.Sorted(maps.Keys(byHand)) {
		fmt.Fprintf(&b, "- **%s**: %s.\n", slug, byHand[slug])
	}
	b.WriteString("\n## Left out\n\nLooked at, and not declared:\n\n")
	for _, out := range leftOut {
		fmt.Fprintf(&b, "- **%s**: %s.\n", out[0], out[1])
	}
	golden(t, "../../docs/providers.md", b.String())
}

func row(p provider.Provider) string {
	var kinds, limits []string
	for _, e := range p.Endpoints {
		for _, k := range e.Kinds {
			kinds = append(kinds, string(k))
		}
	}
	slices.Sort(kinds)
	for _, l := range p.Throttle.Limits {
		limits = append(limits, bound(l))
	}
	if l := p.Throttle.BadAnswers; l != nil {
		bad := *l
		bad.Name, bad.Unit = cmp.Or(bad.Name, "bad answers"), "refused"
		limits = append(limits, bound(bad))
	}
	key := "none"
	if len(p.Auth.Env) > 0 {
		key = "`" + strings.Join(append(slices.Clone(p.Auth.Env), slices.Sorted(maps.Values(p.Auth.With))...), "`, `") + "`"
		if p.Auth.Optional {
			key += ", optional"
		}
	}
	cells := []string{
		"**" + p.Slug + "**<br>" + p.Name, strings.Join(slices.Compact(kinds), ", "), strings.Join(limits, "<br>"),
		p.Confidence + ", " + p.AsOf, key, link(p.Sources[0]),
	}
	for i := range cells {
		cells[i] = strings.ReplaceAll(cells[i], "|", `\|`)
	}
	return "| " + strings.Join(cells, " | ") + " |\n"
}

// bound writes one limit.
func bound(l provider.Limit) string {
	l = l.WithDefaults()
	text := fmt.Sprintf("%s: %d", l.Name, l.Max)
	if l.Unit != provider.Requests {
		text += " " + strings.ReplaceAll(l.Unit, "_", " ")
	}
	switch l.Algorithm {
	case provider.InFlight:
		text += " at once"
	case provider.SlidingWindow, provider.FixedWindow:
		text += " per " + string(l.Per)
	default:
		text += " per " + string(l.Per) + ", " + strings.ReplaceAll(string(l.Algorithm), "_", " ")
	}
	if l.Zone != "" && l.Zone != "UTC" {
		text += " of " + l.Zone
	}
	if by := strings.ReplaceAll(l.Scope, "+", " and "); l.Scope != provider.ScopeProvider {
		text += ", by " + by
	}
	if len(l.Endpoints) > 0 {
		text += ", of " + strings.Join(l.Endpoints, ", ")
	}
	if len(l.Charges) > 0 {
		outcomes := make([]string, len(l.Charges))
		for i, o := range l.Charges {
			outcomes[i] = string(o)
		}
		text += ", counting " + strings.Join(outcomes, ", ")
	}
	if l.Basis != provider.BasisProvider {
		text += " **(" + l.Basis + ")**"
	}
	return text
}

// link writes a source: an address, and in brackets what to look at there.
func link(source string) string {
	address, _, _ := strings.Cut(source, " ")
	host, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(address, "https://"), "http://"), "/")
	return "[" + strings.TrimPrefix(host, "www.") + "](" + address + ")"
}
