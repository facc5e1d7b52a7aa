package redis

import (
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

// bytesPerLimit is the table of the package's documentation: what the keys of one counter
// take at most, with the ID of about 30 letters that most have.
var bytesPerLimit = map[string]struct {
	limit provider.Limit
	most  int
}{
	"sliding_window, 60":      {provider.Limit{Max: 60, Per: "1h"}, 1_300},
	"sliding_window, 1,000":   {provider.Limit{Max: 1000, Per: "1h"}, 16_000},
	"sliding_window, 100,000": {provider.Limit{Max: 100_000, Per: "1h"}, 16_000},
	"leaky_bucket, 1,000":     {provider.Limit{Max: 1000, Per: "1h", Algorithm: provider.LeakyBucket}, 16_000},
	"token_bucket":            {provider.Limit{Max: 100_000, Per: "1h", Algorithm: provider.TokenBucket}, 700},
	"fixed_window":            {provider.Limit{Max: 100_000, Per: provider.Hour}, 400},
	"sliding_window_counter":  {provider.Limit{Max: 100_000, Per: "1h", Algorithm: provider.SlidingWindowCounter}, 400},
	"in_flight":               {provider.Limit{Max: 100_000, Algorithm: provider.InFlight}, 300},
}

func TestMemory(t *testing.T) {
	srv := serve(t)
	plain := srv.client(t)
	s := open(t, srv.url(""))
	a := hand{t: t, s: s, name: "a"}
	now := time.Now()
	for name, row := range bytesPerLimit {
		row.limit.Name = "requests-per-hour"
		l := ledger.NewCounter(strings.ReplaceAll(name, " ", ""), row.limit, "", "")
		n := min(row.limit.Max, 4000)
		for from := int64(0); from < n; from += 500 { // each at an instant of its own
			var b ledger.Batch
			for i := from; i < min(n, from+500); i++ {
				at := now.Add(time.Duration(i-n) * time.Hour / time.Duration(n+1))
				b.Charges = append(b.Charges, ledger.Charge{Counter: l, At: at, N: 100})
			}
			a.say(b)
		}
		record, list := keys{prefix: "headgate"}.counter(l.Provider(), l.ID())
		total := 0
		for _, key := range []string{record, list} {
			bytes, _ := strconv.Atoi(do(t, plain, "MEMORY", "USAGE", key, "SAMPLES", "0"))
			total += bytes
			if bytes > 0 {
				ttl, err := strconv.Atoi(do(t, plain, "TTL", key))
				require.NoError(t, err)
				require.Positive(t, ttl, "every key expires: %s", key)
				require.Less(t, ttl, 4*3600)
			}
		}
		t.Logf("%-24s %6d bytes", name, total)
		require.LessOrEqual(t, total, row.most, name)
		require.Greater(t, total, row.most/2, "%s: the table says too much", name)
	}
	l := hourly("acme", 9)
	a.take(l, 1).granted()
	a.say(ledger.Batch{News: []ledger.News{{Pause: &ledger.Pause{Provider: "acme", Scope: "provider", Until: now.Add(time.Hour)}}}})
	many := hourly("many", 2000)
	a.take(many, 1).granted()
	holds := keys{prefix: "headgate"}.holds("many", "a")
	usage := func() int {
		n, err := strconv.Atoi(do(t, plain, "MEMORY", "USAGE", holds, "SAMPLES", "0"))
		require.NoError(t, err)
		return n
	}
	one := usage()
	var b ledger.Batch
	for i := range 1000 {
		b.Takes = append(b.Takes, ledger.Asked{Hold: ledger.Hold(1000 + i), Take: takeOf(many, 1)})
	}
	require.NotZero(t, a.say(b).Grants[999].Hold)
	t.Logf("a process and a provider %d bytes, a hold %d", one, (usage()-one)/1000)
	require.Less(t, one, 300)
	require.Less(t, usage()-one, 150*1000)
	all := allKeys(t, plain)
	require.Contains(t, all, keys{prefix: "headgate"}.leases("acme"))
	require.Contains(t, all, keys{prefix: "headgate"}.pauses("acme"))
	for _, key := range all {
		require.NotEqual(t, "-1", do(t, plain, "TTL", key), "every key expires: %s", key)
	}
}

// What is held is held however long it takes: its keys are kept.
func TestHeldForLong(t *testing.T) {
	srv := serve(t)
	plain := srv.client(t)
	s := open(t, srv.url(""))
	a := hand{t: t, s: s, name: "a"}
	l := ledger.NewCounter("acme", provider.Limit{Name: "slots", Max: 1, Algorithm: provider.InFlight}, "", "")
	id := a.take(l, 1).granted()
	record, _ := keys{prefix: "headgate"}.counter("acme", l.ID())
	do(t, plain, "PEXPIRE", record, "60000")
	s.mu.Lock()
	s.holders["a"].holds[id].named = time.Now().Add(-2 * touch)
	s.holders["a"].said["acme"] = time.Now().Add(-time.Minute)
	s.mu.Unlock()
	a.say(ledger.Batch{}) // of another provider, or of none
	ttl, err := strconv.Atoi(do(t, plain, "TTL", record))
	require.NoError(t, err)
	require.Greater(t, ttl, 120)
	a.settle(id)
	require.Empty(t, do(t, plain, "ZCARD", keys{prefix: "headgate"}.leases("acme"))[1:], "a lease only while something is held")
}
