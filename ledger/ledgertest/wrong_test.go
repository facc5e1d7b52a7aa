package ledgertest_test

import (
	"context"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/ledgertest"
	"github.com/headgate/headgate/ledger/memory"
)

// wrong is a store with a fault: it mishears batches, or misstates its answers.
type wrong struct {
	ledger.Store
	name, caught string // by which subtest
	hears        func(b *ledger.Batch)
	says         func(b *ledger.Batch, r *ledger.Reply)
}

func (w wrong) Exchange(ctx context.Context, b *ledger.Batch) (*ledger.Reply, error) {
	c := *b
	c.Charges, c.Settlements = slices.Clone(b.Charges), slices.Clone(b.Settlements)
	c.News, c.Takes, c.Holds = slices.Clone(b.News), slices.Clone(b.Takes), slices.Clone(b.Holds)
	if w.hears != nil {
		w.hears(&c)
	}
	r, err := w.Store.Exchange(ctx, &c)
	if err == nil && w.says != nil {
		w.says(b, r)
	}
	return r, err
}

func settlements(f func(s *ledger.Settlement)) func(*ledger.Batch) {
	return func(b *ledger.Batch) {
		for i := range b.Settlements {
			f(&b.Settlements[i])
		}
	}
}

func grants(f func(g *ledger.Grant)) func(*ledger.Batch, *ledger.Reply) {
	return func(_ *ledger.Batch, r *ledger.Reply) {
		for i := range r.Grants {
			f(&r.Grants[i])
		}
	}
}

var seq uint64

var wrongs = []wrong{
	{name: "a wait 1 ns short", caught: "sliding_window/free strictly after settle and window", says: grants(func(g *ledger.Grant) {
		if g.Wait != ledger.Event {
			g.Wait--
		}
	})},
	{name: "a wait 1 ns long", caught: "token_bucket/a burst, then one after the other", says: grants(func(g *ledger.Grant) {
		if g.Wait > 0 && g.Wait != ledger.Event {
			g.Wait++
		}
	})},
	{name: "an event told as a time", caught: "in_flight/so many at once and no more", says: grants(func(g *ledger.Grant) { g.Wait = min(g.Wait, time.Hour) })},
	{name: "by the first", caught: "units/a refusal names the limit that opens last", says: grants(func(g *ledger.Grant) { g.By = min(g.By, 0) })},
	{name: "room for one more", caught: "units/room", says: grants(func(g *ledger.Grant) {
		for i := range g.Room {
			g.Room[i]++
		}
	})},
	{name: "nobody is alone", caught: "trial/one goes alone, its answer opens", says: grants(func(g *ledger.Grant) { g.Alone = false })},
	{name: "takes from the last on", caught: "units/takes of one batch are served in their order",
		hears: func(b *ledger.Batch) { slices.Reverse(b.Takes) },
		says:  func(_ *ledger.Batch, r *ledger.Reply) { slices.Reverse(r.Grants) }},
	{name: "settled when heard", caught: "settle/counts from the instant that is told", hears: settlements(func(s *ledger.Settlement) { s.At = time.Now() })},
	{name: "charged as taken", caught: "settle/less, more and nothing are charged", hears: settlements(func(s *ledger.Settlement) {
		if !s.Back {
			s.Part = nil
		}
	})},
	{name: "no part is every part", caught: "settle/parts that name nothing settle nothing", hears: settlements(func(s *ledger.Settlement) {
		if len(s.Part) == 0 {
			s.Part = nil
		}
	})},
	{name: "what comes back counts", caught: "give back/every algorithm, as if it had never been taken", hears: settlements(func(s *ledger.Settlement) { s.Back = false })},
	{name: "trials tell nothing", caught: "trial/one goes alone, its answer opens", hears: settlements(func(s *ledger.Settlement) { s.Trial = "" })},
	{name: "all trials open", caught: "trial/an answer that tells nothing lets the next go alone", hears: settlements(func(s *ledger.Settlement) { s.Trial = ledger.Opens })},
	{name: "nothing is taken back", caught: "charge/below 0 takes back what was charged then, and no more", hears: func(b *ledger.Batch) {
		b.Charges = slices.DeleteFunc(b.Charges, func(c ledger.Charge) bool { return c.N < 0 })
	}},
	{name: "charged when heard", caught: "charge/units that went without asking", hears: func(b *ledger.Batch) {
		for i := range b.Charges {
			b.Charges[i].At = time.Now()
		}
	}},
	{name: "each number is new", caught: "said again/charges count once", hears: func(b *ledger.Batch) { seq++; b.Seq = 1<<40 + seq }},
	{name: "nobody leaves", caught: "holder/leaves, what it held counts from then on", hears: func(b *ledger.Batch) { b.Gone = false }},
	{name: "leases twice as long", caught: "holder/dies, what it held counts from its lease's end", hears: func(b *ledger.Batch) { b.Lease *= 2 }},
	{name: "names cut short", caught: "apart/odd names of holders", hears: func(b *ledger.Batch) { b.Holder = b.Holder[:min(len(b.Holder), 8)] }},
	{name: "names without case", caught: "apart/odd names of what is paused", says: func(_ *ledger.Batch, r *ledger.Reply) {
		for i := range r.Pauses {
			r.Pauses[i].Name = strings.TrimSpace(strings.ToValidUTF8(strings.ReplaceAll(r.Pauses[i].Name, "\x00", ""), ""))
		}
	}},
	{name: "pauses without a reason", caught: "pause/all that there are, when they change", says: func(_ *ledger.Batch, r *ledger.Reply) {
		for i := range r.Pauses {
			r.Pauses[i].Detail = ""
		}
	}},
	{name: "pauses told always", caught: "pause/all that there are, when they change", hears: func(b *ledger.Batch) { b.Known = 0 }},
	{name: "a shorter pause replaces", caught: "pause/a longer one extends it, a shorter one changes nothing", hears: func(b *ledger.Batch) {
		for i := range b.News {
			if p := b.News[i].Pause; p != nil {
				b.News = slices.Insert(b.News, i, ledger.News{Resume: p})
				return
			}
		}
	}},
	{name: "nothing is forgotten", caught: "forget/a provider's counters and what is held", hears: func(b *ledger.Batch) { b.Forget = nil }},
	{name: "usages in another order", caught: "peek/in their order", says: func(_ *ledger.Batch, r *ledger.Reply) { slices.Reverse(r.Usages) }},
	{name: "one replica too many", caught: "holder/how many there are, and which", says: func(_ *ledger.Batch, r *ledger.Reply) { r.Replicas++ }},
	{name: "every state is known", caught: "epoch/who knows another is told so, and nothing else happens", hears: func(b *ledger.Batch) { b.Epoch = "" }},
	{name: "holds are not taken up", caught: "epoch/what was held and charged is told again", hears: func(b *ledger.Batch) { b.Holds = nil }},
	{name: "holds are taken up whole", caught: "epoch/a hold of which a part is left", hears: func(b *ledger.Batch) {
		for i := range b.Holds {
			b.Holds[i].Part = nil
		}
	}},
	{name: "sizes are not learned", caught: "learn/a lower size counts at once, and until it ends", hears: func(b *ledger.Batch) {
		for i, n := range b.News {
			if n.Learn != nil {
				l := *n.Learn
				l.Max = 0
				b.News[i].Learn = &l
			}
		}
	}},
}

const theWrong = "LEDGERTEST_WRONG"

// TestWrongStoresAreCaught: each fault fails the subtest that is there for it. The suite
// is played by this program once more for each, since a test that fails fails its
// parents, too. (That the memory store itself passes is its own test.)
func TestWrongStoresAreCaught(t *testing.T) {
	if name := os.Getenv(theWrong); name != "" {
		i := slices.IndexFunc(wrongs, func(w wrong) bool { return w.name == name })
		ledgertest.Run(t, func(*testing.T) ledgertest.Bench {
			s, w := memory.New(), wrongs[i]
			w.Store = s
			return ledgertest.Bench{Store: func(*testing.T) ledger.Store { return w }, Virtual: true, Lose: func(*testing.T) { s.Lose() }}
		})
		return
	}
	for _, w := range wrongs {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			require.Contains(t, plays(t, w.caught, w.name), "--- FAIL: TestWrongStoresAreCaught/"+strings.ReplaceAll(w.caught, " ", "_"))
		})
	}
}

// plays runs one subtest against a wrong store, and returns what it printed.
func plays(t *testing.T, subtest, wrong string) string {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	run := "^TestWrongStoresAreCaught$"
	for part := range strings.SplitSeq(subtest, "/") {
		run += "/^" + regexp.QuoteMeta(strings.ReplaceAll(part, " ", "_")) + "$"
	}
	cmd := exec.CommandContext(t.Context(), exe, "-test.v", "-test.run", run)
	cmd.Env = append(os.Environ(), theWrong+"="+wrong)
	out, err := cmd.CombinedOutput()
	if err != nil {
		require.ErrorAs(t, err, new(*exec.ExitError), string(out))
	}
	return string(out)
}
