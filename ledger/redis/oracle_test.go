package redis

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/provider"
)

// clocked are the scripts with a clock that the test sets, by the last two arguments.
var clocked = newScript(strings.Replace(providerScript.text, "redis.call('TIME')", "{ARGV[#ARGV - 1], ARGV[#ARGV]}", 1))

// duel plays one limit on the server and by package limit, at the same instants.
type duel struct {
	t       *testing.T
	rng     *rand.Rand
	client  rueidis.Client
	keys    keys
	slug    string
	spec    *spec
	counter *ledger.Counter
	rule    *limit.Rule
	now     time.Duration // since the epoch
	send    uint64
	out     []taken
	granted int
	refused int
}

type taken struct {
	hold ledger.Hold
	n    int64
	at   limit.Now
}

func (d *duel) at() time.Time    { return time.Unix(0, int64(d.now)) }
func (d *duel) clock() limit.Now { return limit.Now{Mono: d.now, Wall: d.now} }

// say runs a part at the duel's instant and returns the script's answer.
func (d *duel) say(fill func(p *part)) []rueidis.RedisMessage {
	d.t.Helper()
	d.send++
	p := newPart(d.slug, &place{}, ruler{now: d.at(), sent: int64(d.now / time.Microsecond)})
	fill(p)
	c, err := p.call(d.keys, who{holder: "h", mode: asHolder, send: d.send, seq: d.send, lease: 1000 * time.Hour, epoch: 7}, d.at())
	require.NoError(d.t, err)
	us := d.now / time.Microsecond
	c.script = clocked
	c.args = append(c.args, number(us/1e6), number(us%1e6))
	m, err := d.client.Do(context.Background(), c.short(d.client.B())).ToArray()
	require.NoError(d.t, err)
	status, err := m[0].AsInt64()
	require.NoError(d.t, err)
	require.EqualValues(d.t, statusOK, status, "%v", m)
	return m
}

// take asks both, and has the rule follow where they differ within what the server may
// be later by.
func (d *duel) take(n int64, late time.Duration) {
	id := ledger.Hold(d.send + 1)
	m := d.say(func(p *part) { p.addTake(0, id, share{slug: d.slug, own: true, units: []unit{{spec: d.spec, n: n}}}) })
	grants, refusals := readerOf(m[7]), readerOf(m[8])
	opens := d.rule.Look(d.clock(), n)
	if grants.int() <= 1 {
		d.granted++
		require.LessOrEqual(d.t, opens, d.now, "granted %d too early by %v", n, opens-d.now)
		d.rule.Take(d.clock(), n)
		d.out = append(d.out, taken{id, n, d.clock()})
		return
	}
	d.refused++
	r := readerOf(refusals.m[0])
	wait := r.int()
	if opens == limit.Never {
		require.EqualValues(d.t, -1, wait, "only an event opens it")
		return
	}
	require.GreaterOrEqual(d.t, wait, int64(0), "it opens in %v", opens-d.now)
	told := length(wait)
	require.GreaterOrEqual(d.t, told, opens-d.now, "told too early: %d more", n)
	require.LessOrEqual(d.t, told, max(0, opens-d.now)+late, "told too late: %d more", n)
}

func (d *duel) settle(i int) {
	h := d.out[i]
	d.out = append(d.out[:i], d.out[i+1:]...)
	s := ledger.Settlement{Hold: h.hold, At: d.at().Add(-time.Duration(d.rng.Int64N(2)) * time.Microsecond)}
	charged := h.n
	switch d.rng.IntN(6) {
	case 0:
		s.Back = true
	case 1:
		charged = d.rng.Int64N(2*h.n + 1)
		s.Part = []ledger.Part{{Unit: 0, Charged: charged}}
	}
	d.say(func(p *part) {
		p.addSettlement(s, share{slug: d.slug, own: true, units: []unit{{spec: d.spec, n: h.n}}})
	})
	if s.Back {
		d.rule.GiveBack(h.at, d.clock(), h.n)
		return
	}
	at := time.Duration(s.At.UnixNano())
	if at < h.at.Mono {
		at = h.at.Mono
	}
	now := limit.Now{Mono: at, Wall: at}
	d.rule.Settle(h.at, now, h.n, charged)
}

func (d *duel) charge(n int64, at time.Duration) {
	d.say(func(p *part) {
		p.addCharge(ledger.Charge{Counter: d.counter, At: time.Unix(0, int64(at)), N: n})
	})
	d.rule.Correct(limit.Now{Mono: at, Wall: at}, limit.Now{Mono: at, Wall: at}, n)
}

func (d *duel) usage() {
	m := d.say(func(p *part) { p.addPeek(0, d.spec) })
	u := readerOf(m[9]).usage(d.at())
	want := d.rule.Usage(d.clock())
	require.Equal(d.t, want.Held, u.Held)
	require.GreaterOrEqual(d.t, u.Used, want.Used, "used")
	require.LessOrEqual(d.t, u.Used, want.Used+1+want.Used/100, "used")
}

func TestEveryAlgorithmAsPackageLimit(t *testing.T) {
	srv := serve(t)
	client := srv.client(t)
	do(t, client, "SCRIPT", "LOAD", clocked.text)
	for name, l := range map[string]provider.Limit{
		"window":        {Max: 5, Per: "1s"},
		"window, sent":  {Max: 5, Per: "1s", Counted: provider.CountedSent},
		"window, large": {Max: 5000, Per: "60s"},
		"leaky":         {Max: 5, Per: "1s", Algorithm: provider.LeakyBucket},
		"leaky, sent":   {Max: 7, Per: "1s", Algorithm: provider.LeakyBucket, Counted: provider.CountedSent},
		"bucket":        {Max: 5, Per: "1s", Burst: 3, Algorithm: provider.TokenBucket},
		"bucket, odd":   {Max: 7, Per: "3s", Burst: 9, Algorithm: provider.TokenBucket},
		"bucket, sent":  {Max: 5, Per: "1s", Burst: 3, Algorithm: provider.TokenBucket, Counted: provider.CountedSent},
		"fixed":         {Max: 5, Per: "1s", Algorithm: provider.FixedWindow},
		"fixed, sent":   {Max: 5, Per: "1s", Algorithm: provider.FixedWindow, Counted: provider.CountedSent},
		"fixed, odd":    {Max: 5, Per: "333333333ns", Algorithm: provider.FixedWindow},
		"minute":        {Max: 50, Per: provider.Minute, Anchor: "13s"},
		"day":           {Max: 50, Per: provider.Day, Zone: "America/New_York", Anchor: "17:30"},
		"month":         {Max: 50, Per: provider.Month, Zone: "Europe/Berlin", Anchor: "31"},
		"counter":       {Max: 5, Per: "1s", Algorithm: provider.SlidingWindowCounter},
		"counter, sent": {Max: 8, Per: "1s", Algorithm: provider.SlidingWindowCounter, Counted: provider.CountedSent},
		"flight":        {Max: 5, Algorithm: provider.InFlight},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(4) {
				play(t, client, l, seed, fmt.Sprintf("%s %d", strings.ReplaceAll(name, ", ", "-"), seed))
			}
		})
	}
}

func newDuel(t *testing.T, client rueidis.Client, l provider.Limit, seed uint64, name string) *duel {
	t.Helper()
	l.Name = "x"
	d := &duel{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), client: client, slug: name,
		keys: keys{prefix: "duel", apart: true}, now: time.Duration(time.Date(2026, 10, 31, 12, 0, 0, 0, time.UTC).UnixNano()),
	}
	d.counter = ledger.NewCounter(d.slug, l, "", "")
	d.spec = specOf(d.counter)
	var err error
	d.rule, err = limit.New(l)
	require.NoError(t, err)
	return d
}

func play(t *testing.T, client rueidis.Client, l provider.Limit, seed uint64, name string, then ...provider.Limit) {
	d := newDuel(t, client, l, seed, name)
	per, _ := l.Per.Duration()
	if per == 0 {
		per = time.Second
	}
	step := per / 12
	heavy := max(1, l.Max/4)
	late := 2*time.Microsecond + per/512
	for i := range 300 {
		if i == 100 && len(then) > 0 {
			d.change(then[0])
		}
		d.now += time.Duration(1+d.rng.Int64N(int64(step/time.Microsecond))) * time.Microsecond
		if d.rng.IntN(40) == 0 {
			d.now += 2 * per
		}
		switch k := d.rng.IntN(12); {
		case k < 6:
			d.take(1+d.rng.Int64N(heavy), late)
		case k < 10 && len(d.out) > 0:
			d.settle(d.rng.IntN(len(d.out)))
		case k == 10 && d.rng.IntN(3) == 0:
			d.charge(1+d.rng.Int64N(heavy), d.now)
		case k == 11:
			d.usage()
		}
	}
	require.Positive(t, d.granted)
	require.Positive(t, d.refused, "the limit has not been in the way")
}
