package redis

import (
	"bufio"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	crand "crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/headgate/headgate/ledger"
)

func TestMain(m *testing.M) {
	// A look at a Cluster's or a Sentinel's servers that has been put off ends by itself, and
	// so does the end of a connection to a server that a Cluster has no more.
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*call).DelayDo.func1"),
		goleak.IgnoreAnyFunction("github.com/redis/rueidis.(*clusterClient)._refresh.func2"))
}

const secret = "s3cr%25t-w0rd"

// refuses opens a URL that must be refused, with words that a person can act on.
func refuses(t *testing.T, url string, o Options, words ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	s, err := Open(ctx, url, o)
	if err == nil {
		require.NoError(t, s.Close())
	}
	require.Error(t, err)
	require.True(t, strings.HasPrefix(err.Error(), "redis: "), err)
	for _, w := range words {
		require.Contains(t, err.Error(), w)
	}
	for _, no := range []string{"s3cr", "w0rd", "\n"} {
		require.NotContains(t, err.Error(), no)
	}
}

func TestWrongURLs(t *testing.T) {
	for url, words := range map[string]string{
		"redis://user:" + secret + "%zz@h":         "no URL",
		"redis://user:" + secret + "@h:port":       "no URL",
		"http://user:" + secret + "@h":             `begins with "http"`,
		"":                                         `begins with ""`,
		"redis://:" + secret + "@h/zero":           "number of a database",
		"redis://:" + secret + "@h/0/1":            "number of a database",
		"redis://:" + secret + "@h?db=x":           "number of a database",
		"redis://:" + secret + "@h/-1":             "below 0",
		"redis://:" + secret + "@h?prefx=a":        `parameter "prefx"`,
		"redis://:" + secret + "@h?prefix=a%20b":   "prefix",
		"redis://:" + secret + "@h?prefix=%7Ba%7D": "prefix",
		"unix://?db=0":                             "socket",
	} {
		refuses(t, url, Options{}, words)
	}
	refuses(t, "redis://h", Options{Prefix: "ü"}, "prefix")
}

func TestURLs(t *testing.T) {
	o, prefix, err := parse("rediss://ann:pw@h1:7000/3?addr=h2:7001&prefix=mine", Options{})
	require.NoError(t, err)
	require.Equal(t, "mine", prefix)
	require.Equal(t, []string{"h1:7000", "h2:7001"}, o.InitAddress)
	require.Equal(t, "ann", o.Username)
	require.Equal(t, "pw", o.Password)
	require.Equal(t, 3, o.SelectDB)
	require.Equal(t, "h1", o.TLSConfig.ServerName)

	o, prefix, err = parse("redis://h:26379?master_set=main", Options{Prefix: "p", Username: "u", Password: "w", TLS: &tls.Config{MinVersion: tls.VersionTLS13}, DialTimeout: time.Minute})
	require.NoError(t, err)
	require.Equal(t, "p", prefix)
	require.Equal(t, "main", o.Sentinel.MasterSet)
	require.Equal(t, "u w", o.Username+" "+o.Password)
	require.Equal(t, time.Minute, o.Dialer.Timeout)
	require.Equal(t, "h", o.TLSConfig.ServerName)
	require.EqualValues(t, tls.VersionTLS13, o.Sentinel.TLSConfig.MinVersion)

	_, prefix, err = parse("unix:///run/redis.sock?db=2", Options{})
	require.NoError(t, err)
	require.Equal(t, "headgate", prefix)
}

func TestWrongServers(t *testing.T) {
	srv := serve(t, "--requirepass", "s3cr%t-w0rd")
	admin := open(t, "redis://:"+secret+"@"+srv.addr)
	c, err := admin.connected(context.Background())
	require.NoError(t, err)
	do(t, c, "ACL", "SETUSER", "ann", "on", ">s3cr%t-w0rd", "~*", "+@all", "-eval", "-evalsha")
	do(t, c, "ACL", "SETUSER", "bob", "on", ">s3cr%t-w0rd", "~other*", "+@all")
	do(t, c, "SET", "{taken}", "x")
	do(t, c, "HSET", "{newer}", "v", "2")

	refuses(t, "redis://"+srv.addr, Options{}, "password is needed")
	refuses(t, "redis://:wrong-s3cr@"+srv.addr, Options{}, "user or password are wrong")
	refuses(t, "redis://carl:"+secret+"@"+srv.addr, Options{}, "user or password are wrong")
	refuses(t, "redis://:"+secret+"@"+srv.addr+"/99", Options{}, "no such database")
	refuses(t, "redis://ann:"+secret+"@"+srv.addr, Options{}, "may not do what is needed")
	refuses(t, "redis://bob:"+secret+"@"+srv.addr, Options{}, "may not do what is needed")
	refuses(t, "redis://:"+secret+"@"+srv.addr, Options{Prefix: "taken"}, "another kind under our names")
	refuses(t, "redis://:"+secret+"@"+srv.addr, Options{Prefix: "newer"}, "newer version")

	replica := serve(t, "--replicaof", strings.Replace(srv.addr, ":", " ", 1), "--masterauth", "s3cr%t-w0rd")
	refuses(t, "redis://"+replica.addr, Options{}, "read-only replica", "primary")
}

// A user needs no more than the documentation says.
func TestLeastUser(t *testing.T) {
	srv := serve(t)
	words := append([]string{"ACL", "SETUSER", "headgate", "on", ">pw", "~{headgate*"}, documented(t)...)
	do(t, srv.client(t), words...)
	s := open(t, "redis://headgate:pw@"+srv.addr)
	h, l := hand{t: t, s: s, name: "a"}, hourly("acme", 3)
	id := h.take(l, 3).granted()
	h.settle(id)
	h.settle(id + 100) // one that nobody knows is looked for
	h.take(l, 1).refused()
	h.say(ledger.Batch{News: []ledger.News{{Pause: &ledger.Pause{Provider: "acme", Scope: "provider", Until: time.Now().Add(time.Hour)}}}})
	h.say(ledger.Batch{Forget: []string{"acme"}})
	h.lease = time.Second
	h.take(l, 3).granted()
	b := hand{t: t, s: s, name: "b"}
	require.Eventually(t, func() bool { return b.used(l).Used == 3 }, 10*time.Second, 20*time.Millisecond, "a dead one is buried")
}

// answer is a listener that says the same to whoever asks anything.
func answer(t *testing.T, text string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	var wg sync.WaitGroup
	wg.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			wg.Go(func() {
				defer c.Close()
				for r := bufio.NewReader(c); ; {
					line, err := r.ReadString('\n')
					if err != nil {
						return
					}
					if strings.HasPrefix(line, "*") {
						_, _ = c.Write([]byte(text))
					}
				}
			})
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		wg.Wait()
	})
	return l.Addr().String()
}

func TestVersionTooOld(t *testing.T) {
	refuses(t, "redis://"+answer(t, "-ERR unknown command 'HELLO'\r\n"), Options{}, "6.2")
	for version, fine := range map[string]bool{
		"5.0.14": false, "6.0.16": false, "6.2.0": true, "7.0.15": true, "8.0.1": true, "10.0": true, "255.255.255": true, "x": false,
	} {
		err := checkVersion(version)
		require.Equal(t, fine, err == nil, version)
		if err != nil {
			require.Contains(t, err.Error(), "6.2")
		}
	}
}

// certificate is a self-signed one, in files.
func certificate(t *testing.T, dir string) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), crand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(crand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	require.NoError(t, os.WriteFile(cert, certPEM, 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	pool = x509.NewCertPool()
	require.True(t, pool.AppendCertsFromPEM(certPEM))
	return cert, key, pool
}

func TestTLS(t *testing.T) {
	addr := free(t)
	_, port, err := net.SplitHostPort(addr)
	require.NoError(t, err)
	cert, key, pool := certificate(t, t.TempDir())
	serve(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "no")
	refuses(t, "rediss://"+addr, Options{}, "TLS", "certificate")
	for url, o := range map[string]Options{
		"rediss://" + addr + "?skip_verify=true": {},
		"rediss://" + addr:                       {TLS: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}},
		"redis://" + addr:                        {TLS: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}},
	} {
		s, err := Open(context.Background(), url, o)
		require.NoError(t, err)
		(&hand{t: t, s: s, name: "a"}).say(ledger.Batch{})
		require.NoError(t, s.Close())
	}
}

// A server that is not there yet is no mistake: the store connects when it comes.
func TestServerComesLater(t *testing.T) {
	s := &server{name: "redis-server", addr: free(t), dir: t.TempDir()}
	store := open(t, s.url(""))
	h := hand{t: t, s: store, name: "a"}
	_, err := h.try(ledger.Batch{})
	require.Error(t, err)
	require.True(t, strings.HasPrefix(err.Error(), "redis: "), err)
	s.start(t)
	require.Eventually(t, func() bool { _, err := h.try(ledger.Batch{}); return err == nil }, 10*time.Second, 20*time.Millisecond)
	h.take(hourly("acme", 1), 1).granted()
}

func TestClosed(t *testing.T) {
	srv := serve(t)
	s := open(t, srv.url(""))
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	_, err := s.Exchange(context.Background(), &ledger.Batch{Holder: "a", Seq: 1, Lease: time.Second})
	require.ErrorIs(t, err, errClosed)
}

// documented are the commands that the package's documentation says a user needs.
func documented(t *testing.T) (words []string) {
	t.Helper()
	text, err := os.ReadFile("doc.go")
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		if list, ok := strings.CutPrefix(line, "//\t+"); ok {
			words = append(words, strings.Fields("+"+list)...)
		}
	}
	require.Greater(t, len(words), 20)
	return words
}
