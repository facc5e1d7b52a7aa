package whois_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/adapters/whois"
	"github.com/headgate/headgate/provider"
	"github.com/headgate/headgate/registry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestImportingRegistersIt(t *testing.T) {
	e, ok := registry.Default.Lookup("whois-port43")
	require.True(t, ok)
	assert.IsType(t, (*whois.Adapter)(nil), e.Adapter)
}

// No number of the declaration passes for one that a server publishes.
func TestTheDeclarationPromisesNothingInTheServersName(t *testing.T) {
	a, err := whois.New(whois.Options{})
	require.NoError(t, err)
	p := a.Provider()
	require.NoError(t, p.Validate())
	limits, err := p.Throttle.Expand()
	require.NoError(t, err)
	require.Len(t, limits, 1)
	assert.Equal(t, provider.BasisPacing, limits[0].Basis)
	assert.Equal(t, int64(1), limits[0].Max)
	assert.Equal(t, provider.Period("1s"), limits[0].Per)
	assert.NotEmpty(t, p.Sources)
	assert.Positive(t, p.Timeout)
	assert.True(t, p.Retry.Off, "a second question after a dropped connection is what gets one blocked")
}

func TestIANARefersAndTheRegistryAnswers(t *testing.T) {
	s := &servers{answers: map[string]string{"whois.iana.org": ianaTest, "whois.nic.test": record}}
	a, q := s.adapter(t), provider.Query{Kind: provider.Domain, Value: "Example.TEST."}
	first, err := a.Lookup(t.Context(), q)
	require.NoError(t, err)
	assert.Equal(t, "whois.nic.test", first.Next)
	assert.True(t, first.Empty, "who keeps it is not what it is")
	assert.Empty(t, items(t, first))

	q.Page = first.Next
	second, err := a.Lookup(t.Context(), q)
	require.NoError(t, err)
	assert.False(t, second.Empty)
	assert.Empty(t, second.Next, "a registrar's server is not asked")
	assert.Equal(t, []item{{"whois.nic.test", record}}, items(t, second))
	assert.Equal(t, "whois-port43", second.Provider)
	assert.Equal(t, "lookup", second.Endpoint)
	assert.Equal(t, []string{"whois.iana.org < example.test", "whois.nic.test < example.test"}, s.asked)
}

func TestWhoIsAsked(t *testing.T) {
	const arin = "NetRange: 192.0.2.0 - 192.0.2.255\nReferralServer:  whois://whois.ripe.net:43\nOrgName: RIPE\n"
	for name, c := range map[string]struct {
		q     provider.Query
		text  string
		asked string
		next  string
		empty bool
	}{
		"an address":          {provider.Query{Kind: provider.IP, Value: "2001:DB8::0001"}, "refer: whois.apnic.net\nstatus: x\ninetnum: y\n", "whois.iana.org < 2001:db8::1", "whois.apnic.net", true},
		"IANA's own block":    {provider.Query{Kind: provider.IP, Value: "10.0.0.1"}, "inetnum: 10.0.0.0\norganisation: IANA\n", "whois.iana.org < 10.0.0.1", "", false},
		"a top-level domain":  {provider.Query{Kind: provider.Domain, Value: "test"}, ianaTest, "whois.iana.org < test", "", false},
		"no kind":             {provider.Query{Value: "192.0.2.1"}, arin, "whois.iana.org < 192.0.2.1", "whois.ripe.net", true},
		"ARIN knows and asks": {provider.Query{Value: "192.0.2.1", Page: "whois.arin.net"}, arin, "whois.arin.net < 192.0.2.1", "whois.ripe.net", false},
		"a server of one's own": {provider.Query{Kind: provider.Domain, Value: "a.test", Params: map[string]string{"server": "WHOIS.nic.test"}}, record,
			"whois.nic.test < a.test", "", false},
		"the page before the param": {provider.Query{Kind: provider.Domain, Value: "a.test", Page: "b.nic.test", Params: map[string]string{"server": "whois.nic.test"}}, record,
			"b.nic.test < a.test", "", false},
		"itself":        {provider.Query{Kind: provider.Domain, Value: "a.test", Page: "whois.nic.test"}, "refer: whois.nic.test\na: b\nc: d\n", "whois.nic.test < a.test", "", false},
		"back to IANA":  {provider.Query{Kind: provider.Domain, Value: "a.test", Page: "whois.nic.test"}, "refer: whois.iana.org\na: b\nc: d\n", "whois.nic.test < a.test", "", false},
		"an address as": {provider.Query{Kind: provider.Domain, Value: "a.test", Page: "whois.nic.test"}, "refer: 127.0.0.1\na: b\nc: d\n", "whois.nic.test < a.test", "", false},
		"a local name":  {provider.Query{Kind: provider.Domain, Value: "a.test", Page: "whois.nic.test"}, "refer: localhost\na: b\nc: d\n", "whois.nic.test < a.test", "", false},
		"another port":  {provider.Query{Kind: provider.Domain, Value: "a.test", Page: "whois.nic.test"}, "ReferralServer: rwhois://x.test:4321\na: b\nc: d\n", "whois.nic.test < a.test", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := &servers{answers: map[string]string{"whois.iana.org": c.text, "whois.nic.test": c.text, "b.nic.test": c.text, "whois.arin.net": c.text}}
			r, err := s.adapter(t).Lookup(t.Context(), c.q)
			require.NoError(t, err)
			assert.Equal(t, []string{c.asked}, s.asked)
			assert.Equal(t, c.next, r.Next)
			assert.Equal(t, c.empty, r.Empty)
			assert.Equal(t, c.empty, len(items(t, r)) == 0)
		})
	}
}

func TestIANAWithoutAServerIsNotNoData(t *testing.T) {
	s := &servers{answers: map[string]string{"whois.iana.org": strings.Replace(ianaTest, "refer: ", "remarks: ", 1)}}
	_, err := s.adapter(t).Lookup(t.Context(), provider.Query{Kind: provider.Domain, Value: "example.test"})
	assert.Equal(t, provider.Feedback{Outcome: provider.Rejected}, feedback(t, err))
	s.answers["whois.iana.org"] = "% IANA WHOIS server\n% This query returned 0 objects.\n"
	r, err := s.adapter(t).Lookup(t.Context(), provider.Query{Kind: provider.Domain, Value: "example.nosuch"})
	require.NoError(t, err)
	assert.True(t, r.Empty)
}

// What is asked reaches a server as one plain word: no second line, no option.
func TestNothingElseIsSent(t *testing.T) {
	s := &servers{answers: map[string]string{"whois.iana.org": ianaTest}}
	a := s.adapter(t)
	with := func(change func(*provider.Query)) provider.Query {
		q := provider.Query{Kind: provider.Domain, Value: "example.test"}
		change(&q)
		return q
	}
	for name, q := range map[string]provider.Query{
		"second line": with(func(q *provider.Query) { q.Value = "example.test\r\nother.test" }),
		"option":      with(func(q *provider.Query) { q.Value = "-B example.test" }),
		"dash":        with(func(q *provider.Query) { q.Value = "-h.test" }),
		"empty":       with(func(q *provider.Query) { q.Value = "" }),
		"not ASCII":   with(func(q *provider.Query) { q.Value = "bücher.test" }),
		"no address":  with(func(q *provider.Query) { q.Kind = provider.IP }),
		"no domain":   with(func(q *provider.Query) { q.Value = "192.0.2.1" }),
		"zone":        with(func(q *provider.Query) { q.Kind, q.Value = provider.IP, "fe80::1%eth0" }),
		"kind":        with(func(q *provider.Query) { q.Kind = provider.Email }),
		"endpoint":    with(func(q *provider.Query) { q.Endpoint = "other" }),
		"param":       with(func(q *provider.Query) { q.Params = map[string]string{"host": "whois.iana.org"} }),
		"server":      with(func(q *provider.Query) { q.Params = map[string]string{"server": "whois.test:25"} }),
		"page":        with(func(q *provider.Query) { q.Page = "127.0.0.1" }),
		"local page":  with(func(q *provider.Query) { q.Page = "localhost" }),
	} {
		_, err := a.Lookup(t.Context(), q)
		assert.Equal(t, provider.Feedback{Outcome: provider.Canceled}, feedback(t, err), name)
		assert.ErrorContains(t, err, "nothing was sent: ", name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := a.Lookup(ctx, with(func(*provider.Query) {}))
	assert.Equal(t, provider.Canceled, feedback(t, err).Outcome)
	assert.Zero(t, s.dialled)
}

func TestABrokenConnectionIsFailed(t *testing.T) {
	a, q := one(t, "")
	q.Params["server"] = "no.such.test"
	_, err := a.Lookup(t.Context(), q)
	assert.Equal(t, provider.Feedback{Outcome: provider.Failed}, feedback(t, err), "no query was sent: nothing can arrive")
	assert.ErrorContains(t, err, "no such host")

	for _, c := range []struct {
		conn       broken
		unanswered bool
		text       string
	}{
		{broken{write: syscall.EPIPE}, true, "connection reset"},
		{broken{read: syscall.ECONNRESET}, true, "connection reset"},
		{broken{data: "Domain Name: X\nStatus: ok\n", read: syscall.ECONNRESET}, false, "connection reset"},
		{broken{read: errors.New("secret")}, true, "network error"},
	} {
		a, err := whois.New(whois.Options{Dial: func(context.Context, string, string) (net.Conn, error) { return &c.conn, nil }})
		require.NoError(t, err)
		_, err = a.Lookup(t.Context(), provider.Query{Value: "example.test"})
		assert.Equal(t, provider.Feedback{Outcome: provider.Failed, Unanswered: c.unanswered}, feedback(t, err))
		assert.ErrorContains(t, err, c.text)
		assert.NotContains(t, err.Error(), "secret")
	}
}

func TestTheContextEndsASilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &servers{answers: map[string]string{"whois.iana.org": ""}, holds: map[string]bool{"whois.iana.org": true}}
		a := s.adapter(t)
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		_, err := a.Lookup(ctx, provider.Query{Value: "example.test"})
		require.ErrorIs(t, err, context.DeadlineExceeded)
		_, told := provider.FeedbackOf(err)
		assert.False(t, told, "only the Coordinator knows whose fault a deadline is")
		assert.Equal(t, 15*time.Second, time.Since(start))

		ctx, stop := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, stop)
		_, err = a.Lookup(ctx, provider.Query{Value: "example.test"})
		assert.Equal(t, provider.Feedback{Outcome: provider.Canceled, Unanswered: true}, feedback(t, err))
		require.ErrorIs(t, err, context.Canceled)
	})
}

func TestAnAnswerIsBounded(t *testing.T) {
	for size, want := range map[int]provider.Outcome{256 << 10: provider.OK, 256<<10 + 1: provider.Rejected, 1 << 20: provider.Rejected} {
		a, q := one(t, record+strings.Repeat("x", size-len(record)))
		r, err := a.Lookup(t.Context(), q)
		if want == provider.OK {
			require.NoError(t, err)
			assert.Len(t, items(t, r)[0].Text, size)
			continue
		}
		assert.Equal(t, provider.Feedback{Outcome: want}, feedback(t, err))
	}
}

func TestAnyBytesBecomeJSON(t *testing.T) {
	a, q := one(t, record+"\xff\x00 <é> \u2028")
	r, err := a.Lookup(t.Context(), q)
	require.NoError(t, err)
	assert.Equal(t, record+"\ufffd\x00 <é> \u2028", items(t, r)[0].Text)
}
