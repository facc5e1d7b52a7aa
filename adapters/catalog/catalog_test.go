package catalog_test

import (
	"flag"
	"maps"
	"os"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/headgate/headgate/adapters"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "write testdata/requests.txt and docs/providers.md anew")

// golden compares with a file that is kept under review, or writes it.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if got != string(want) { // the whole of both says nothing to a reader
		assert.Equal(t, string(want), got, "%s is out of step: run go test ./adapters/catalog -update and look at what changes", path)
	}
}

// byHand are the providers whose adapters are no files of this folder. The reason
// stands in each package's comment, in short in imports.go and docs/providers.md.
var byHand = map[string]string{
	"rdap":         "a lookup is led on by redirects to other hosts",
	"whois-port43": "WHOIS is no HTTP",
}

func TestABlankImportRegistersEveryProvider(t *testing.T) {
	var fromFiles, got, handmade []string
	for _, p := range files(t) {
		fromFiles = append(fromFiles, p.Slug)
	}
	for e := range registry.Default.All() {
		if _, file := e.Adapter.(*adapters.HTTP); file {
			got = append(got, e.Provider.Slug)
			continue
		}
		handmade = append(handmade, e.Provider.Slug)
		assert.Contains(t, byHand, e.Provider.Slug)
	}
	assert.Equal(t, fromFiles, got)
	assert.Len(t, handmade, len(byHand))
}

func TestAllReturnsFreshValues(t *testing.T) {
	files(t)[0].Throttle.Limits[0].Max = 1e6
	assert.NotEqual(t, int64(1e6), files(t)[0].Throttle.Limits[0].Max)
}

// registered are all providers that the blank import brings.
func registered() (all []provider.Provider) {
	for e := range registry.Default.All() {
		all = append(all, e.Provider)
	}
	return all
}

// Each fact has its source, and no courtesy or guess passes for a provider's limit.
func TestEachDeclarationIsSourced(t *testing.T) {
	address := regexp.MustCompile(`^https?://[^ ]+( \([^()]+\))?$`)
	for _, p := range registered() {
		require.NotEmpty(t, p.Throttle.Limits, "%s: an absent limit would mean that there is none", p.Slug)
		assert.NotEmpty(t, p.Name, p.Slug)
		assert.Regexp(t, `^[a-z][a-z/-]+$`, p.Category, p.Slug)
		assert.Positive(t, p.Timeout, "%s: a lookup that hangs for good holds its slot", p.Slug)
		assert.Contains(t, []string{"documented", "public-code", "third-party", "unknown"}, p.Confidence, p.Slug)
		_, err := time.Parse(time.DateOnly, p.AsOf)
		require.NoError(t, err, p.Slug)
		require.NotEmpty(t, p.Sources, p.Slug)
		for i, s := range p.Sources {
			assert.Regexp(t, address, s, "%s: an address, and in brackets what to look at there", p.Slug)
			assert.Equal(t, i, slices.Index(p.Sources, s), "%s: %s is there twice", p.Slug, s)
		}
		limits := p.Throttle.Limits
		if p.Throttle.BadAnswers != nil {
			limits = append(slices.Clone(limits), *p.Throttle.BadAnswers)
		}
		for _, l := range limits {
			if l.WithDefaults().Basis == provider.BasisProvider {
				assert.Contains(t, p.Sources, l.Source, "%s: %s: a provider's limit names one of the file's sources", p.Slug, l.Name)
			} else if l.Source != "" {
				assert.Contains(t, p.Sources, l.Source, "%s: %s: a source is one of the file's", p.Slug, l.Name)
			}
		}
	}
}

// A pace of seconds that is not the provider's is named for what it is, so that
// who overrides "second" or "interval" knows that he goes against the provider.
func TestAPaceOfOursIsACourtesy(t *testing.T) {
	for _, p := range registered() {
		for _, l := range p.Throttle.Limits {
			length, _ := l.Per.Duration()
			ours := l.WithDefaults().Basis != provider.BasisProvider && l.Algorithm != provider.InFlight && length <= 10*time.Second
			if l.Name == "method" { // of Stack Exchange: it carries what a backoff orders
				continue
			}
			assert.Equal(t, ours, l.Name == "courtesy", "%s: %s: %d per %s, %s", p.Slug, l.Name, l.Max, l.Per, l.WithDefaults().Basis)
		}
	}
}

// What a spent day is read as depends on when it begins: a word of the calendar is
// right only where a source tells the reset.
func TestCalendarWordsAreThoseOfASource(t *testing.T) {
	var got []string
	for _, p := range registered() {
		for _, l := range p.Throttle.Limits {
			if _, calendar := l.Per.Duration(); calendar {
				got = append(got, p.Slug+" "+l.Name)
			}
		}
	}
	assert.Equal(t, []string{
		"blockchair day", "censys-platform month", "dnsdb day", "iplocate day", "opensanctions month", "shodan query-credits",
		"urlscan search-minute", "urlscan search-hour", "urlscan search-day", "virustotal day", "virustotal month",
	}, got)
}

// One variable holds the key of one account: abuse.ch's serves three providers.
func TestKeysAreNamedAlike(t *testing.T) {
	holders := map[string][]string{}
	for _, p := range registered() {
		if p.Auth.Kind == "none" {
			assert.Empty(t, p.Auth.Env, p.Slug)
			continue
		}
		require.Len(t, p.Auth.Env, 1, p.Slug)
		assert.Regexp(t, `^[A-Z][A-Z0-9_]*_(KEY|TOKEN|AUTH)$`, p.Auth.Env[0], p.Slug)
		holders[p.Auth.Env[0]] = append(holders[p.Auth.Env[0]], p.Slug)
		for _, name := range p.Auth.With {
			assert.Regexp(t, `^[A-Z][A-Z0-9_]*_(USERNAME|USER_ID)$`, name, p.Slug)
		}
	}
	for name, slugs := range holders {
		if name == "ABUSECH_AUTH_KEY" {
			assert.Equal(t, []string{"malwarebazaar", "threatfox", "urlhaus"}, slugs)
			continue
		}
		assert.Len(t, slugs, 1, name)
	}
}

// A bulk lookup names no endpoint: where one costs nothing beyond the request, the
// one that costs more has to be named, and a search in free text is only for who
// asks for text.
func TestNoLookupSpendsCreditsUnasked(t *testing.T) {
	free := func(e provider.Endpoint) bool {
		return !slices.ContainsFunc(slices.Collect(maps.Keys(e.Cost)), func(unit string) bool { return unit != provider.Requests && e.Cost[unit] > 0 })
	}
	for _, p := range files(t) {
		a, err := adapters.New(p, adapters.Options{})
		require.NoError(t, err)
		for _, kind := range []provider.Kind{provider.IP, provider.Domain, provider.URL, provider.Hash, provider.Email, provider.Phone, provider.Company} {
			e, err := a.Endpoint(provider.Query{Kind: kind})
			if err != nil || free(e) {
				continue
			}
			for _, other := range p.Endpoints {
				assert.False(t, other.Takes(kind) && free(other), "%s: %s costs, %s does not: put it first", p.Slug, e.Name, other.Name)
			}
			assert.False(t, e.Takes(provider.Text), "%s: %s", p.Slug, e.Name)
		}
	}
}
