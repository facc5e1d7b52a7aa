package whois_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The three things that a text can be, as servers write them.
func TestWhatAnAnswerMeans(t *testing.T) {
	for _, c := range []struct {
		want string // data, nothing, or an outcome
		text string
	}{
		{"data", record},
		{"data", "Domain: example.test\nStatus: connect\n"},
		{"data", "Domain name:\n  example.test\nRegistrar: limit exceeded Ltd\n  Tag: X\n"},
		{"data", "[Domain Name] EXAMPLE.TEST\n" + strings.Repeat("[Name Server] ns.example.test\n", 10)},
		{"data", "Registrant Organization: Not Found Inc\nDomain Status: ok\n"},
		{"data", strings.Repeat("% Conditions: too many queries are refused, limit exceeded\n", 20)},
		{"nothing", "No match for domain \"EXAMPLE.TEST\".\r\n>>> Last update: 2026 <<<\r\n\r\nNOTICE: your limit is exceeded when you send too many queries.\r\n"},
		{"nothing", "NOT FOUND\n"},
		{"nothing", "Domain not found.\n"},
		{"nothing", "No Data Found\n"},
		{"nothing", "% No entries found in the TEST database.\n"},
		{"nothing", "%ERROR:101: no entries found\n%\n% No entries found in source TEST.\n"},
		{"nothing", "Domain: example.test\nStatus: free\n"},
		{"nothing", "Domain:\texample.test\nStatus:\tAVAILABLE\n"},
		{"nothing", "The queried object does not exist: no matching objects found\n"},
		{"nothing", "# No match found for 192.0.2.1\n"},
		{"nothing", "The domain has not been registered.\n"},
		{"rate_limited", ""},
		{"rate_limited", " \r\n\r\n"},
		{"rate_limited", "Query rate limit exceeded\n"},
		{"rate_limited", "WHOIS LIMIT EXCEEDED - SEE WWW.REGISTRY.TEST/WHOIS FOR DETAILS\n"},
		{"rate_limited", "Maximum daily connection limit reached. Lookup refused.\n"},
		{"rate_limited", "WHOIS lookup refused for this IP range. This IP range is on the block-list.\n"},
		{"rate_limited", "% This is the TEST database.\n% See https://docs.registry.test/terms\n\n%ERROR:201: access denied for 192.0.2.1\n%\n% Queries from your address have passed the daily limit.\n"},
		{"rate_limited", "Error: too many requests\nMessage: try again later\n"},
		{"rate_limited", "The WHOIS query quota for 192.0.2.1 has been exceeded\nand will be replenished in 120 seconds\n"},
		{"rate_limited", "Your connection limit exceeded. Please slow down and try again later.\n"},
		{"unknown", "Timeout.\n"},
		{"unknown", "Error: internal\n"},
		{"unknown", "Status: maintenance\n"},
	} {
		a, q := one(t, c.text)
		r, err := a.Lookup(t.Context(), q)
		switch c.want {
		case "data":
			require.NoError(t, err, c.text)
			assert.False(t, r.Empty, c.text)
			assert.Equal(t, []item{{"whois.nic.test", c.text}}, items(t, r))
		case "nothing":
			require.NoError(t, err, c.text)
			assert.True(t, r.Empty, c.text)
			assert.Empty(t, items(t, r), c.text)
			assert.Empty(t, r.Next, c.text)
		default:
			assert.Equal(t, provider.Feedback{Outcome: provider.Outcome(c.want)}, feedback(t, err), c.text)
			assert.Contains(t, []string{"the server refuses", "the answer is empty", "a short answer that is neither data nor a known no"},
				strings.TrimPrefix(err.Error(), "whois: whois.nic.test: "+c.want+": "), "nothing that a server wrote")
		}
	}
}
