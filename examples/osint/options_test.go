package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/adapters/catalog"
	"github.com/headgate/headgate/provider"
)

func TestUsage(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a-file")
	require.NoError(t, os.WriteFile(file, []byte("only junk\n"), 0o600))
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"-speed", "0"}, "-speed: want a number above 0"},
		{[]string{"-speed", "-3"}, "-speed: want a number above 0"},
		{[]string{"-speed", "NaN"}, "-speed: want a number above 0"},
		{[]string{"-speed", "Inf"}, "-speed: want a number above 0"},
		{[]string{"-speed", "fast"}, "-speed: want a number above 0"},
		{[]string{"-f", filepath.Join(dir, "none")}, "no such file"},
		{[]string{"-f", dir}, "is a directory"},
		{[]string{"-f", file}, "nothing to look up"},
		{[]string{file}, "a file: want -f before its name"},
		{[]string{"-"}, "nothing to look up"},
		{[]string{"-nonsense"}, "-nonsense"},
		{[]string{"1.1.1.1", "-json"}, "-json after an indicator: want flags first"},
		{[]string{"-json", "-o", "x"}, "want one place"},
		{[]string{"-o", filepath.Join(dir, "none", "x"), "1.1.1.1"}, "no such file"},
		{[]string{"-live"}, "say where the answers go"},
		{[]string{"-live", "-json", "-speed", "2"}, "-speed is for played providers"},
	} {
		var stdout, stderr buffer
		assert.Equal(t, exitUsage, run(t.Context, c.args, strings.NewReader(""), &stdout, &stderr), c.args)
		assert.Contains(t, stderr.String(), c.says, c.args)
		assert.Empty(t, stdout.String(), c.args)
	}
	var stdout, stderr buffer
	assert.Equal(t, exitOK, run(t.Context, []string{"-h"}, nil, &stdout, &stderr))
	assert.Contains(t, stdout.String(), "usage: osint")
	assert.Empty(t, stderr.String())
}

func TestComplaintsAreBounded(t *testing.T) {
	var b buffer
	complain(&b, make([]junk, maxComplaints+7))
	assert.Equal(t, maxComplaints+1, strings.Count(b.String(), "\n"))
	assert.Contains(t, b.String(), "and 7 more lines")
}

// Nothing is sent here: who lacks a key is told apart, by the variable's name.
func TestLiveNamesTheKeysThatAreMissing(t *testing.T) {
	declared, err := catalog.All()
	require.NoError(t, err)
	targets, err := plan(declared, []indicator{{provider.IP, "1.1.1.1", "l"}, {provider.Domain, "example.com", "l"}})
	require.NoError(t, err)
	require.NoError(t, live(targets, func(name string) string {
		return map[string]string{"SHODAN_API_KEY": "s3cret"}[name]
	}))
	for _, x := range targets {
		switch x.p.Slug {
		case "virustotal", "urlscan":
			assert.ErrorContains(t, x.missing, x.p.Auth.Env[0])
		case "shodan", "crt-sh", "ip-api":
			assert.NoError(t, x.missing)
		}
	}
	c, err := newCoordinator(targets)
	require.NoError(t, err)
	var told buffer
	t.Setenv("SHODAN_API_KEY", "s3cret")
	t.Setenv("VIRUSTOTAL_API_KEY", "")
	judge, err := options{live: true}.stage(targets, &told)
	require.NoError(t, err)
	assert.Nil(t, judge, "nobody plays the real ones")
	assert.Contains(t, told.String(), "virustotal is not available: no key: set the environment variable VIRUSTOTAL_API_KEY")
	assert.NotContains(t, told.String(), "shodan is not")
	assert.NotContains(t, told.String(), "s3cret")
	var left []string
	for p := range c.Providers() {
		left = append(left, p.Slug)
	}
	assert.NotContains(t, left, "virustotal")
	assert.Contains(t, left, "shodan")
}
