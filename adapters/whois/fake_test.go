package whois_test

import (
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/headgate/headgate/adapters/whois"
	"github.com/headgate/headgate/provider"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// servers answer by host name, and note each query as "host < line". One that
// holds stays silent until its client goes.
type servers struct {
	answers map[string]string
	holds   map[string]bool

	dialled int

	mu    sync.Mutex
	asked []string
}

func (s *servers) dial(_ context.Context, network, address string) (net.Conn, error) {
	s.dialled++
	host, ok := strings.CutSuffix(address, ":43")
	answer, known := s.answers[host]
	if network != "tcp" || !ok || !known {
		return nil, &net.DNSError{Err: "no such host", Name: address, IsNotFound: true}
	}
	client, server := net.Pipe()
	go s.serve(host, answer, server)
	return client, nil
}

func (s *servers) serve(host, answer string, conn net.Conn) {
	defer conn.Close()
	var line []byte
	for b := make([]byte, 1); !strings.HasSuffix(string(line), "\r\n"); line = append(line, b[0]) {
		if _, err := conn.Read(b); err != nil {
			return
		}
	}
	s.mu.Lock()
	s.asked = append(s.asked, host+" < "+strings.TrimSuffix(string(line), "\r\n"))
	s.mu.Unlock()
	if s.holds[host] {
		_, _ = conn.Read(make([]byte, 1))
		return
	}
	_, _ = io.WriteString(conn, answer)
}

func (s *servers) adapter(t *testing.T) *whois.Adapter {
	t.Helper()
	a, err := whois.New(whois.Options{Dial: s.dial})
	require.NoError(t, err)
	return a
}

// one makes an adapter whose every lookup begins at a server with this answer.
func one(t *testing.T, answer string) (*whois.Adapter, provider.Query) {
	t.Helper()
	s := &servers{answers: map[string]string{"whois.nic.test": answer}}
	return s.adapter(t), provider.Query{Kind: provider.Domain, Value: "example.test", Params: map[string]string{"server": "whois.nic.test"}}
}

type item struct{ Server, Text string }

func items(t *testing.T, r provider.Result) []item {
	t.Helper()
	var all []item
	require.NoError(t, json.Unmarshal(r.Data, &all))
	return all
}

// feedback is what err says, without the detail.
func feedback(t *testing.T, err error) provider.Feedback {
	t.Helper()
	require.Error(t, err)
	f, ok := provider.FeedbackOf(err)
	require.True(t, ok, "%v", err)
	assert.Contains(t, err.Error(), "whois: ")
	f.Detail = ""
	return f
}

const ianaTest = `% IANA WHOIS server
% for more information on IANA, visit http://www.iana.org
% This query returned 1 object

refer:        whois.nic.test

domain:       TEST
organisation: Test Registry
status:       ACTIVE
`

const record = `Domain Name: EXAMPLE.TEST
Registrar WHOIS Server: whois.registrar.test
Registrar: Test Registrar, Inc.
Creation Date: 1995-08-14T04:00:00Z
Domain Status: ok
>>> Last update of WHOIS database: 2026-11-30T12:00:00Z <<<

TERMS OF USE: You agree not to send more queries once a limit is exceeded. Access
denied to those who do; too many queries are reason enough.
`
