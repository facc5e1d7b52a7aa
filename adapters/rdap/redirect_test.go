package rdap_test

import (
	"strings"
	"testing"

	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWhereARedirectLeads(t *testing.T) {
	const refused = "status 302: a redirect that is not followed: "
	for to, want := range map[string]string{
		"https://rdap.other.test/ip/192.0.2.1":            "2 https://rdap.other.test/ip/192.0.2.1",
		"https://rdap.other.test:8443/x?y=z":              "2 https://rdap.other.test:8443/x?y=z",
		"https://rdap.other.test./x":                      "2 https://rdap.other.test/x",
		"//rdap.other.test/x":                             "2 https://rdap.other.test/x",
		"/v2/domain/example.test":                         "2 https://rdap.nic.test/v2/domain/example.test",
		"https://rdap.org/domain/example.test":            "2 https://rdap.org/domain/example.test",
		"https://rdap.nic.test/domain/éxample":            "2 https://rdap.nic.test/domain/%C3%A9xample",
		"":                                                refused + "it leads to no URL",
		"https://[bad":                                    refused + "it leads to no URL",
		"https://rdap.other.test/\x7f":                    refused + "it leads to no URL",
		"https://rdap.other.test:port/":                   refused + "it leads to no URL",
		"http://rdap.other.test/x":                        refused + "it leads to no https address",
		"ftp://rdap.other.test/x":                         refused + "it leads to no https address",
		"https:rdap.other.test/x":                         refused + "it leads to no public host name",
		"https://key:secret@rdap.other.test/x":            refused + "it holds a user name",
		"https://@rdap.other.test/x":                      refused + "it holds a user name",
		"https://127.0.0.1/x":                             refused + "it leads to no public host name",
		"https://2130706433/x":                            refused + "it leads to no public host name",
		"https://[::1]/x":                                 refused + "it leads to no public host name",
		"https://192.0.32.59/x":                           refused + "it leads to no public host name",
		"https://localhost/x":                             refused + "it leads to no public host name",
		"https://rdap.bücher.test/x":                      refused + "it leads to no public host name",
		"https:///x":                                      refused + "it leads to no public host name",
		"https://a.test/" + strings.Repeat("x", 2048):     refused + "it leads to a URL above 2 KiB",
		"https://rdap.nic.test/domain/example.test":       "status 302: a redirect to itself",
		"https://RDAP.nic.test:443/domain/example.test#x": "status 302: a redirect to itself",
	} {
		r, err := atRegistry(t, redirect(to))
		if strings.HasPrefix(want, "2 ") {
			require.NoError(t, err, to)
			assert.Equal(t, want, r.Next, to)
			assert.True(t, r.Empty)
			assert.Empty(t, items(t, r))
			continue
		}
		f := feedback(t, err)
		assert.Equal(t, provider.Rejected, f.Outcome, to)
		assert.Equal(t, want, f.Detail, to)
		assert.NotContains(t, err.Error(), "secret")
	}
}

func TestEachStatusThatRedirects(t *testing.T) {
	for _, status := range []int{301, 302, 303, 307, 308} {
		r, err := atRoot(t, answer{status: status, header: []string{"Location", "https://rdap.nic.test/x"}})
		require.NoError(t, err)
		assert.Equal(t, "1 https://rdap.nic.test/x", r.Next)
	}
}

// Two servers that refer to each other, each time to another URL: it ends.
func TestAFourthRedirectIsNotFollowed(t *testing.T) {
	s := &servers{answers: map[string]answer{"rdap.org": redirect("https://a.test/1")}}
	a, q := s.adapter(t), example
	var err error
	for i := range 10 {
		var r provider.Result
		if r, err = a.Lookup(t.Context(), q); err != nil {
			break
		}
		q.Page = r.Next
		s.answers["a.test"] = redirect("https://a.test/" + strings.Repeat("x", i+1))
	}
	f := feedback(t, err)
	assert.Equal(t, []any{provider.Rejected, "status 302: more than 3 redirects"}, []any{f.Outcome, f.Detail})
	assert.Len(t, s.asked, 4)
}
