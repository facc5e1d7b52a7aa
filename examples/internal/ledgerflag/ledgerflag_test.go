package ledgerflag

import (
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

func TestParse(t *testing.T) {
	for text, told := range map[string]string{
		"none":                                 "none",
		"sqlite:a/b.db":                        "a/b.db",
		"sqlite:C:x":                           "C:x",
		"redis://u:s3cret@host:6379/2":         "redis://host:6379/2",
		"rediss://host/?prefix=x&password=s3c": "rediss://host/, prefix x",
		"unix:///run/r.sock?db=1":              "unix:///run/r.sock",
	} {
		p, err := Parse(text)
		require.NoError(t, err, text)
		assert.Equal(t, told, p.String())
		assert.Equal(t, text == "none", p.None())
	}
	for _, text := range []string{"", "x", "sqlite:", "mysql://s3cret", "redis:// s3cret", "redis://a:s3cret@h:x"} {
		_, err := Parse(text)
		require.Error(t, err, text)
		assert.NotContains(t, err.Error(), "s3cret")
	}
}

func TestNamed(t *testing.T) {
	env := map[string]string{Variable: "sqlite:v"}
	getenv := func(name string) string { return env[name] }
	p, given, err := Named("", getenv)
	require.NoError(t, err)
	assert.True(t, given)
	assert.Equal(t, "v", p.String())
	p, given, err = Named("none", getenv)
	require.NoError(t, err)
	assert.True(t, given)
	assert.True(t, p.None())
	env[Variable] = "s3cret"
	_, _, err = Named("", getenv)
	require.ErrorContains(t, err, "$HEADGATE_LEDGER: want sqlite:PATH")
	assert.NotContains(t, err.Error(), "s3cret")
	clear(env)
	p, given, err = Named("", getenv)
	require.NoError(t, err)
	assert.False(t, given)
	assert.True(t, p.None())
}

func TestStateDir(t *testing.T) {
	for _, c := range []struct{ xdg, home, want string }{
		{"/x", "/h", "/x/headgate"}, {"", "/h", "/h/.local/state/headgate"}, {"relative", "/h", "/h/.local/state/headgate"}, {"", "", ""},
	} {
		dir, err := StateDir(func(name string) string { return map[string]string{"XDG_STATE_HOME": c.xdg, "HOME": c.home}[name] })
		assert.Equal(t, c.want, dir)
		assert.Equal(t, c.want == "", err != nil)
	}
}

// take asks a place for one of a limit of one an hour.
func take(t *testing.T, p Place) bool {
	t.Helper()
	l, err := p.Open(ledger.Settings{Budget: 2 * time.Second})
	require.NoError(t, err)
	defer func() { require.NoError(t, Close(l)) }()
	c := ledger.NewCounter("acme", provider.Limit{Name: "hour", Max: 1, Per: "1h"}, "", "")
	g, err := l.Take(t.Context(), ledger.Take{Provider: "acme", Units: []ledger.Units{{Counter: c, N: 1}}})
	require.NoError(t, err)
	return g.Hold != 0
}

// What is spent in a place is spent for the next who opens it, and for nobody else.
func TestOpen(t *testing.T) {
	file := File(filepath.Join(t.TempDir(), "new", "a.db"))
	server, err := Parse("redis://u:s3cret@" + serve(t) + "/0?prefix=x")
	require.NoError(t, err)
	for _, p := range []Place{file, server} {
		assert.Equal(t, p.server != nil, p.Exists())
		assert.True(t, take(t, p), p)
		assert.False(t, take(t, p), p)
		assert.True(t, take(t, p.Within("played")), p)
		assert.False(t, take(t, p.Within("played")), p)
		assert.True(t, p.Exists())
	}
	assert.FileExists(t, file.file+"-played")

	l, err := Place{}.Open(ledger.Settings{})
	require.NoError(t, err)
	assert.Nil(t, l)
	require.NoError(t, Close(nil))
	assert.True(t, Place{}.Within("played").None())
	_, err = file.Open(ledger.Settings{Budget: -1})
	require.ErrorContains(t, err, "budget")
}

// Nobody begins with a ledger that does not answer, or that is none.
func TestOpenFails(t *testing.T) {
	name := filepath.Join(t.TempDir(), "diary")
	require.NoError(t, os.WriteFile(name, []byte("my diary"), 0o600))
	_, err := File(name).Open(ledger.Settings{})
	require.ErrorContains(t, err, name)
	_, err = File("/dev/null/x/y").Open(ledger.Settings{})
	require.ErrorContains(t, err, "no folder for the ledger")

	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := nobody.Addr().String()
	require.NoError(t, nobody.Close())
	p, err := Parse("redis://u:s3cret@" + address)
	require.NoError(t, err)
	_, err = p.Open(ledger.Settings{})
	require.ErrorContains(t, err, "the ledger redis://"+address+" does not answer: ")
	assert.NotContains(t, err.Error(), "s3cret")

	p, err = Parse("redis://u:wrong-s3cret@" + serve(t))
	require.NoError(t, err)
	_, err = p.Open(ledger.Settings{})
	require.ErrorContains(t, err, "user or password are wrong")
	assert.NotContains(t, err.Error(), "s3cret")
}

// serve starts a real server that wants user u and password s3cret, and returns its
// address.
func serve(t *testing.T) string {
	t.Helper()
	program, err := exec.LookPath("redis-server")
	require.NoError(t, err, "redis-server is needed for this test: make setup installs it")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	address := l.Addr().String()
	require.NoError(t, l.Close())
	_, port, err := net.SplitHostPort(address)
	require.NoError(t, err)
	cmd := exec.Command(program, "--bind", "127.0.0.1", "--port", port, "--dir", t.TempDir(), "--save", "",
		"--user", "u", "on", ">s3cret", "~*", "&*", "+@all", "--user", "default", "off")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return false
		}
		defer c.Close()
		_ = c.SetDeadline(time.Now().Add(time.Second))
		_, _ = c.Write([]byte("PING\r\n"))
		answer := make([]byte, 64)
		n, _ := c.Read(answer)
		return strings.HasPrefix(string(answer[:n]), "-NOAUTH")
	}, 20*time.Second, 10*time.Millisecond, "redis-server does not answer")
	return address
}
