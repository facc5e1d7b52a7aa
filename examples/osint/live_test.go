package main

import (
	"context"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/provider"
)

// Who lacks a key is told apart, by the variable's name; the rest go on.
func TestLiveNamesTheKeysThatAreMissing(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := connect(t, nil, "shodan", "virustotal", "crt-sh")
		delete(n.keys, "VIRUSTOTAL_API_KEY")
		got := n.run(t, "-providers", "shodan,virustotal,crt-sh", "-cache", "off", "-json", "1.1.1.1", "example.com")
		assert.Equal(t, exitOK, got.code)
		assert.Contains(t, got.stderr, "virustotal is not available: no key: set the environment variable VIRUSTOTAL_API_KEY\n")
		assert.Contains(t, got.stderr, "virustotal: not available: no key", "in the summary, too")
		assert.NotContains(t, got.stderr+got.stdout, "s3cret")
		var asked []string
		for _, r := range records(t, got.stdout) {
			assert.True(t, r.OK)
			asked = append(asked, r.Provider)
		}
		assert.ElementsMatch(t, []string{"shodan", "crt-sh"}, asked)

		n.keys = nil
		got = n.run(t, "-providers", "virustotal", "-cache", "off", "-json", "1.1.1.1")
		assert.Equal(t, exitFailed, got.code, "nothing was answered")
	})
}

func TestList(t *testing.T) {
	lines := func(env map[string]string, args ...string) (told, map[string]string) {
		var stdout, stderr buffer
		w := quiet(t, &stdout, &stderr)
		w.getenv = func(name string) string { return env[name] }
		code := w.run(append([]string{"-list"}, args...))
		rows := make(map[string]string)
		for l := range strings.Lines(stdout.String()) {
			slug, rest, _ := strings.Cut(l, " ")
			rows[slug] = strings.Join(strings.Fields(rest), " ")
		}
		return told{code, stdout.String(), stderr.String()}, rows
	}
	got, rows := lines(map[string]string{"SHODAN_API_KEY": "s3cret"})
	assert.Equal(t, exitOK, got.code)
	assert.Equal(t, "ip, text 1 per 1s, 100 credits per month SHODAN_API_KEY (set) yes", rows["shodan"])
	assert.Contains(t, rows["virustotal"], "VIRUSTOTAL_API_KEY no: no key: set the environment variable VIRUSTOTAL_API_KEY")
	assert.Equal(t, "domain 60 per 1m, 5 per 1m (assumed), 1 at once (assumed) – yes", rows["crt-sh"])
	assert.Contains(t, rows, "whois-port43", "those that are written by hand are there, too")
	assert.NotContains(t, got.stdout, "s3cret")
	all, err := sources()
	require.NoError(t, err)
	for _, s := range all {
		assert.Contains(t, rows, s.base.Slug)
	}

	_, rows = lines(nil, "-kinds", "email,phone")
	assert.Contains(t, rows, "hunter")
	assert.NotContains(t, rows, "shodan")
	_, rows = lines(nil, "-providers", "shodan,hunter", "-kinds", "ip")
	assert.Contains(t, rows, "shodan")
	assert.NotContains(t, rows, "hunter")

	config := file(t, "headgate.yaml", `
providers:
  shodan: {off: true}
  virustotal:
    keys: [VT_A, VT_B]
    throttle: {limits: [{name: minute, max: 30}]}
  crt-sh: {endpoints: {identity-search: false}}
`)
	_, rows = lines(map[string]string{"VT_B": "x"}, "-config", config, "-providers", "shodan,virustotal,crt-sh")
	assert.Contains(t, rows["shodan"], "no: switched off")
	assert.Contains(t, rows["crt-sh"], "no: it has no endpoint to which a value is enough")
	assert.Contains(t, rows["virustotal"], "30 per 1m")
	assert.Contains(t, rows["virustotal"], "VT_A, VT_B (set) yes")
	got, _ = lines(map[string]string{"VT_A": "x", "VT_B": "y"}, "-config", config, "-providers", "virustotal")
	assert.Contains(t, got.stdout, "VT_A: 30 of 30 requests per 1m, 500 of 500 requests per day, ")
	assert.Contains(t, got.stdout, "VT_B: 30 of 30 requests per 1m, ")
	assert.Contains(t, got.stdout, "\n1 provider, 1 available\n")
	got, _ = lines(map[string]string{"VT_A": "x", "VT_B": "x"}, "-config", config, "-providers", "virustotal")
	assert.Contains(t, got.stdout, "no: environment variables VT_A and VT_B hold the same key")
}

// A user's file with faults: each is told with its place, and nothing is asked.
func TestFaultyConfig(t *testing.T) {
	for text, says := range map[string]string{
		"providers: {shodan: {throtle: {}}}":                                     "unknown key",
		"providers: {shodan: {throttle: {max_queue: many}}}":                     "max_queue",
		"providers: {shodn: {off: true}}":                                        `no provider "shodn": is it shodan?`,
		"providers: {shodan: {drop: [year]}}":                                    "it must be",
		"providers: {shodan: {endpoints: {hosts: false}}}":                       "is not declared",
		"providers: {crt-sh: {keys: [A]}}":                                       "the provider takes no key",
		"excess: never":                                                          "excess",
		"providers: {shodan: {off: yes please}, virustotal: {throttle: {x: 1}}}": "unknown key",
		"providers: [": "is no valid YAML",
	} {
		var stdout, stderr buffer
		name := file(t, "headgate.yaml", text)
		assert.Equal(t, exitUsage, quiet(t, &stdout, &stderr).run([]string{"-config", name, "1.1.1.1"}), text)
		assert.Contains(t, stderr.String(), "osint: "+name+": ", text)
		assert.Contains(t, stderr.String(), says, text)
		assert.Empty(t, stdout.String(), text)
	}
}

// Several keys of one provider are a pool: their rates add up, and the summary tells
// what each has left.
func TestSeveralKeysAddUp(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := connect(t, nil, "virustotal")
		n.keys["VT_A"], n.keys["VT_B"] = "one", "two"
		config := file(t, "headgate.yaml", "providers: {virustotal: {keys: [VT_A, VT_B]}}")
		begin := time.Now()
		got := n.run(t, "-providers", "virustotal", "-config", config, "-cache", "off", "-json", "-f", list(t, 16))
		assert.Equal(t, exitOK, got.code)
		assert.Less(t, time.Since(begin), 2*time.Minute, "eight a minute")
		assert.GreaterOrEqual(t, time.Since(begin), time.Minute)
		assert.Contains(t, got.stderr, "virustotal: VT_A: ")
		assert.Contains(t, got.stderr, "492 of 500 requests per day")
		assert.NotContains(t, got.stderr+got.stdout, "two")
	})
}

// The user's limits hold, and the state says that they are his.
func TestConfigIsInForce(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := connect(t, nil, "virustotal")
		config := file(t, "headgate.yaml", "providers: {virustotal: {throttle: {limits: [{name: minute, max: 2}]}}}")
		begin := time.Now()
		got := n.run(t, "-providers", "virustotal", "-config", config, "-cache", "off", "-json", "-f", list(t, 7))
		assert.Equal(t, exitOK, got.code)
		assert.GreaterOrEqual(t, time.Since(begin), 3*time.Minute, "two a minute")
		got = n.run(t, "-providers", "virustotal", "-config", config, "-cache", "off", "-plan", "-f", list(t, 7))
		assert.Contains(t, got.stdout, "minute: 2 per 1m, overridden\n")
	})
	all, err := sources()
	require.NoError(t, err)
	chosen, err := options{live: true, providers: []string{"virustotal"},
		config: file(t, "headgate.yaml", "providers: {virustotal: {throttle: {limits: [{name: day, max: 2}]}}}")}.choose(all)
	require.NoError(t, err)
	j := job{indicator{provider.IP, "1.1.1.1", []string{"l"}}, "ip-report"}
	x := &target{source: chosen[0], jobs: []job{j, j, j}}
	require.NoError(t, x.connect(func(string) string { return "x" }, nil))
	c, err := newCoordinator([]*target{x}, 0, nil)
	require.NoError(t, err)
	f, err := forecastOf(c, x, x.jobs, 0)
	require.NoError(t, err)
	require.NotNil(t, f.Limit)
	assert.Equal(t, []string{"day", "overridden"}, []string{f.Limit.Name, f.Limit.Origin})
}

// A hangup reads the file again while the run goes on: limits change at once, a
// faulty file changes nothing, another key needs a new run.
func TestReload(t *testing.T) {
	bubble(t, func(t *testing.T) {
		n := connect(t, nil, "virustotal")
		config := file(t, "headgate.yaml", "providers: {virustotal: {throttle: {limits: [{name: minute, max: 1}]}}}")
		rewrite := func(text string) { require.NoError(t, os.WriteFile(config, []byte(text), 0o600)) }
		hangup := make(chan os.Signal)
		var stdout, stderr buffer
		w := n.world(t, &stdout, &stderr)
		w.hangup = hangup
		begin, names := time.Now(), list(t, 20)
		done := make(chan int)
		go func() {
			done <- w.run([]string{"-live", "-providers", "virustotal", "-config", config, "-cache", "off", "-json", "-f", names})
		}()
		time.Sleep(5*time.Minute + time.Second)
		before := n.arrivals()
		assert.InDelta(t, 6, before, 1, "one a minute")

		rewrite("providers: {virustotal: {throttle: {limits: [{name: minute, max: lots}]}}}")
		hangup <- syscall.SIGHUP
		synctest.Wait()
		assert.Contains(t, stderr.String(), "osint: nothing was changed: "+config+": ")
		assert.NotContains(t, stderr.String(), "read again")

		rewrite("providers: {virustotal: {keys: [OTHER], throttle: {limits: [{name: minute, max: 4}]}}}")
		hangup <- syscall.SIGHUP
		synctest.Wait()
		assert.Contains(t, stderr.String(), "osint: "+config+" was read again: in force from now on: virustotal\n")
		assert.Contains(t, stderr.String(), "osint: other keys need a new run: virustotal\n")
		hangup <- syscall.SIGHUP
		synctest.Wait()
		assert.Contains(t, stderr.String(), config+" was read again: no limit has changed\n")

		assert.Equal(t, exitOK, <-done)
		assert.EqualValues(t, 20, n.arrivals())
		assert.Less(t, time.Since(begin), 10*time.Minute, "four a minute from then on")
		assert.Zero(t, n.Report("virustotal").Violated)
	})
}

// Nobody is asked where nobody can play.
func TestByHandIsNotPlayed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		got := played(t, "", "-providers", "whois-port43,crt-sh", "-json", "example.com")
		assert.Equal(t, exitOK, got.code)
		assert.Contains(t, got.stderr, "whois-port43 is not available: it is asked by code of its own")
		assert.Len(t, records(t, got.stdout), 1)
	})
	var stdout, stderr buffer
	w := quiet(t, &stdout, &stderr)
	w.listen = func() (net.Listener, error) { return nil, context.DeadlineExceeded }
	assert.Equal(t, exitFailed, w.run([]string{"1.1.1.1"}))
	assert.Contains(t, stderr.String(), "no place on loopback")
}
