package redis

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/provider"
)

// change goes on with other numbers, or by another algorithm.
func (d *duel) change(l provider.Limit) {
	d.t.Helper()
	d.charge(1, d.now) // so that both forget what counts no more
	l.Name = "x"
	d.counter = ledger.NewCounter(d.slug, l, "", "")
	d.spec = specOf(d.counter)
	var err error
	d.rule, err = limit.Replace(d.rule, l, d.clock())
	require.NoError(d.t, err)
	d.usage()
}

// What is held and charged stays when a limit changes, as it does in package limit.
func TestChangedLimits(t *testing.T) {
	srv := serve(t)
	client := srv.client(t)
	do(t, client, "SCRIPT", "LOAD", clocked.text)
	window := provider.Limit{Max: 5, Per: "1s"}
	sent := provider.Limit{Max: 5, Per: "1s", Counted: provider.CountedSent}
	leaky := provider.Limit{Max: 6, Per: "1s", Algorithm: provider.LeakyBucket}
	bucket := provider.Limit{Max: 5, Per: "1s", Algorithm: provider.TokenBucket, Burst: 4}
	fixed := provider.Limit{Max: 5, Per: "1s", Algorithm: provider.FixedWindow}
	for name, pair := range map[string][2]provider.Limit{
		"lower":       {{Max: 9, Per: "1s"}, window},
		"higher":      {window, {Max: 9, Per: "1s"}},
		"longer":      {window, {Max: 5, Per: "2s"}},
		"shorter":     {{Max: 5, Per: "2s"}, window},
		"to-sent":     {window, sent},
		"to-answered": {sent, window},
		"to-bucket":   {window, bucket},
		"to-leaky":    {bucket, leaky},
		"from-leaky":  {leaky, fixed},
		"to-flight":   {window, {Max: 3, Algorithm: provider.InFlight}},
		"bucket":      {bucket, {Max: 7, Per: "2s", Algorithm: provider.TokenBucket, Burst: 5}},
		"leaky":       {leaky, {Max: 4, Per: "2s", Algorithm: provider.LeakyBucket}},
		"grid":        {fixed, {Max: 5, Per: "3s", Algorithm: provider.FixedWindow}},
		"finer":       {{Max: 5, Per: "3s", Algorithm: provider.FixedWindow}, fixed},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(4) {
				play(t, client, pair[0], seed, "change-"+name+number(seed), pair[1])
			}
		})
	}
}
