package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
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
		{[]string{"-list", "-plan"}, "want one of them"},
		{[]string{"-format", "xml"}, "want jsonl or csv"},
		{[]string{"-json", "-format", "csv"}, "want one format"},
		{[]string{"-resume", filepath.Join(dir, "r")}, "say where the answers go"},
		{[]string{"-resume", file, "-o", file}, "name one file: want two"},
		{[]string{"-f", file, "-o", file}, "would overwrite what is read from there"},
		{[]string{"-config", file, "-o", filepath.Join(dir, ".", filepath.Base(file))}, "would overwrite what is read from there"},
		{[]string{"-max-calls", "0"}, "-max-calls: want a whole number above 0"},
		{[]string{"-at-once", "0"}, "-at-once: want a whole number above 0"},
		{[]string{"-at-once", "2", "-plan"}, "a plan takes each provider by itself"},
		{[]string{"-metrics", ""}, "-metrics: want HOST:PORT"},
		{[]string{"-metrics", "9464"}, "missing port in address; want a free HOST:PORT"},
		{[]string{"-metrics", "127.0.0.1:99999"}, "invalid port"},
		{[]string{"-metrics", ":0", "-list"}, "-list and -plan ask nobody"},
		{[]string{"-metrics", ":0", "-plan"}, "-list and -plan ask nobody"},
		{[]string{"-ttl", "0s"}, "-ttl: want a length of time above 0"},
		{[]string{"-wait", "-1h"}, "-wait: want a length of time above 0"},
		{[]string{"-kinds", "ip,name"}, "-kinds: no kind: want one of ip, domain"},
		{[]string{"-as", "x"}, "-as: no kind"},
		{[]string{"-providers", "shodn,virustotal"}, `-providers: no provider "shodn": is it shodan?`},
		{[]string{"-providers", "qqqqqq"}, `no provider "qqqqqq" (osint -list tells all)`},
		{[]string{"-kinds", "email", "1.1.1.1"}, "-kinds leaves 1 indicator out"},
		{[]string{"-providers", "crt-sh", "1.1.1.1"}, "no provider that was chosen takes these"},
		{[]string{"-config", filepath.Join(dir, "none")}, "no such file"},
	} {
		var stdout, stderr buffer
		assert.Equal(t, exitUsage, quiet(t, &stdout, &stderr).run(c.args), c.args)
		assert.Contains(t, stderr.String(), c.says, c.args)
		assert.Empty(t, stdout.String(), c.args)
	}
	var stdout, stderr buffer
	assert.Equal(t, exitOK, quiet(t, &stdout, &stderr).run([]string{"-h"}))
	assert.Contains(t, stdout.String(), "usage: osint")
	assert.Empty(t, stderr.String())
}

func TestComplaintsAreBounded(t *testing.T) {
	var b buffer
	complain(&b, make([]junk, maxComplaints+7))
	assert.Equal(t, maxComplaints+1, strings.Count(b.String(), "\n"))
	assert.Contains(t, b.String(), "and 7 more lines")
}

func TestFormatOf(t *testing.T) {
	for want, o := range map[string][]options{
		formatCSV:   {{output: "a.csv"}, {output: "a.CSV"}, {format: "csv", output: "x"}},
		formatJSONL: {{}, {output: "a.jsonl"}, {output: "a.csv", format: "jsonl"}, {json: true}},
	} {
		for _, x := range o {
			assert.Equal(t, want, x.formatOf(), x)
		}
	}
}

func TestNearest(t *testing.T) {
	there := []string{"shodan", "virustotal", "urlscan", "urlhaus", "urldna", "ip-api"}
	assert.Equal(t, []string{"shodan"}, nearest("sohdan", there))
	assert.Equal(t, []string{"ip-api"}, nearest("ipapi", there))
	assert.Equal(t, []string{"urlscan", "urlhaus", "urldna"}, nearest("url", there))
	assert.Equal(t, []string{"virustotal"}, nearest("virus", there))
	assert.Empty(t, nearest("x", there))
	assert.Equal(t, 0, distance("abc", "abc"))
	assert.Equal(t, 1, distance("abc", "abd"))
	assert.Equal(t, 2, distance("abcd", "bcda"))
}
