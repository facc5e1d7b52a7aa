package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate/ledger"
)

// exchange is one batch on its way.
type exchange struct {
	s      *Store
	client rueidis.Client
	keys   keys
	b      *ledger.Batch
	reply  *ledger.Reply

	verdicts []verdict // of takes
	epoch    int64
	parts    []*part  // not carried out yet
	told     []string // news for who only listens
	common   bool     // the common script has to be run (again)
	renew    bool     // the state of a provider is lost, so all of it is
	warning  []string
	sent     time.Time     // the last round
	quiet    time.Duration // for so long nothing is granted
}

// rounds bounds how often a part is said again: it needs a dead holder buried, or other
// calendar windows.
const rounds = 12

var errRestless = errors.New("redis: the server asks for the same again and again; is its clock set back and forth?")

func (x *exchange) run(ctx context.Context) error {
	x.epoch = parseEpoch(x.b.Epoch)
	x.common = true
	x.s.mu.Lock()
	x.renew = x.s.lost
	x.s.mu.Unlock()
	if x.b.Epoch == "" { // the first word: which state is it?
		if _, err := x.round(ctx); err != nil {
			return err
		}
	}
	if err := x.locate(ctx); err != nil {
		return err
	}
	x.plan()
	for range rounds {
		if len(x.parts) == 0 && !x.common {
			x.reply.Warning = x.s.warn(x.client, x.warning)
			return x.conclude(ctx)
		}
		foreign, err := x.round(ctx)
		if err != nil {
			return err
		}
		if foreign {
			x.foreign()
			return nil
		}
	}
	return errRestless
}

// foreign answers that the state is another one, so that nothing has been carried out:
// what some providers' scripts may have done is of a state that is over.
func (x *exchange) foreign() {
	clear(x.reply.Grants)
	clear(x.reply.Usages)
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	x.s.lost = false
	for _, a := range x.b.Takes {
		if h := x.s.holders[x.b.Holder]; h != nil {
			delete(h.holds, a.Hold)
		}
	}
	for _, p := range x.s.places {
		p.expires = time.Time{}
	}
}

// round runs what is left: the common script, where it is needed, and that of each part,
// in one round trip.
func (x *exchange) round(ctx context.Context) (foreign bool, err error) {
	calls, lists, err := x.calls()
	if err != nil {
		return false, err
	}
	results, err := x.do(ctx, calls, lists)
	if err != nil {
		return false, err
	}
	parts := x.parts
	if x.common {
		x.common, x.told = false, nil
		if foreign, err = x.hearCommon(results[0]); err != nil || foreign {
			return foreign, err
		}
		results = results[1:]
	}
	x.parts = nil
	for i, p := range parts {
		foreign, err := x.hearPart(ctx, p, results[i])
		if err != nil {
			return false, err
		}
		if foreign { // which epoch it is, the common record says
			x.common, x.parts = true, nil
			if foreign, err = x.round(ctx); err == nil && !foreign {
				err = errRestless
			}
			return foreign, err
		}
	}
	if x.renew || len(x.told) > 0 {
		x.common = true
	}
	return false, nil
}

// calls are the scripts to be run, and commands besides of which nobody needs the answer.
func (x *exchange) calls() (calls []call, besides []rueidis.Completed, err error) {
	x.s.mu.Lock()
	defer x.s.mu.Unlock()
	now := time.Now()
	x.sent = now
	if x.common {
		c := call{script: commonScript, keys: x.keys.common()}
		c.args = append([]string{
			number(x.epoch), x.b.Holder, number(min(micros(x.b.Lease), most)), flag(x.b.Gone), flag(x.renew), number(x.b.Known), number(x.s.heard.least(now)),
		}, x.told...)
		calls = append(calls, c)
	}
	for _, p := range x.parts {
		w := who{
			holder: x.b.Holder, mode: asHolder, seq: x.b.Seq, lease: x.b.Lease, gone: x.b.Gone, epoch: x.epoch,
			send: x.s.nextSendLocked(), least: x.s.heardOf(x.keys, p.place).least(now), grace: max(0, x.s.quiet.Sub(now)),
		}
		c, err := p.call(x.keys, w, now.Add(x.s.ahead))
		if err != nil {
			return nil, nil, err
		}
		p.send = w.send
		calls = append(calls, c)
		if !p.place.listed {
			p.place.listed = true
			b := x.client.B()
			besides = append(besides,
				b.Sadd().Key(x.keys.providers()).Member(p.slug).Build(),
				b.Expire().Key(x.keys.providers()).Seconds(50*24*3600).Build())
		}
	}
	return calls, besides, nil
}

// do runs scripts, whole where the server does not know them.
func (x *exchange) do(ctx context.Context, calls []call, besides []rueidis.Completed) ([][]rueidis.RedisMessage, error) {
	cmds := make([]rueidis.Completed, 0, len(calls)+len(besides))
	for _, c := range calls {
		cmds = append(cmds, c.short(x.client.B()))
	}
	answers := x.client.DoMulti(ctx, append(cmds, besides...)...)
	results := make([][]rueidis.RedisMessage, len(calls))
	for i, c := range calls {
		r := answers[i]
		if e, ok := rueidis.IsRedisErr(r.Error()); ok && e.IsNoScript() {
			r = x.client.Do(ctx, c.whole(x.client.B()))
		}
		var err error
		if results[i], err = r.ToArray(); err != nil {
			return nil, err
		}
		if len(results[i]) == 0 {
			return nil, errors.New("redis: an empty answer")
		}
	}
	return results, nil
}

func (x *exchange) hearCommon(m []rueidis.RedisMessage) (foreign bool, err error) {
	r := reader{m: m}
	status, epoch, quiet := r.int(), r.int(), length(r.int())
	x.s.mu.Lock()
	x.s.quiet, x.quiet = time.Now().Add(quiet), quiet
	x.s.mu.Unlock()
	x.reply.Epoch = formatEpoch(epoch)
	if status == statusForeign {
		return true, r.err
	}
	x.epoch = epoch
	x.reply.Replicas, x.reply.Rank = int(r.int()), int(r.int())
	x.reply.Version = uint64(r.int()) //nolint:gosec // not below 0
	now := time.Now()
	x.s.mu.Lock()
	x.s.heard.told(r.int(), x.sent, now)
	x.s.mu.Unlock()
	x.stepped(r.int())
	x.reply.Pauses = nil
	list := r.list()
	for len(list.m) >= 6 {
		x.reply.Pauses = append(x.reply.Pauses, list.pause(list.text(), now))
	}
	return false, errors.Join(r.err, list.err)
}

func (x *exchange) stepped(us int64) {
	if d := length(us); d > 10*time.Millisecond {
		x.warning = append(x.warning, fmt.Sprintf("the server's clock has stepped back by %v", d))
	}
}

// Epochs are numbers that rise from one state to the next.
func formatEpoch(n int64) string { return "e" + strconv.FormatInt(n, 10) }

// parseEpoch is 0 where none is known, and the first one of all where it is not ours.
func parseEpoch(s string) int64 {
	if s == "" {
		return 0
	}
	if len(s) < 2 || s[0] != 'e' {
		return 1
	}
	n, err := strconv.ParseInt(s[1:], 10, 64)
	if err != nil || n < 1 || n > most {
		return 1
	}
	return n
}
