package coordinator_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/provider"
)

func lim(n int64, per provider.Period) provider.Limit {
	return sharedLimit(provider.Limit{Max: n, Per: per})
}

// once makes a call of the i-th process that does not wait.
func (x *team) once(i int) error {
	ls, err := x.cs[i].Acquire(context.Background(), coordinator.Call{Provider: "p", Wait: -1})
	if err == nil {
		ls.Report(provider.Feedback{})
		ls.Release()
	}
	return err
}

// A call that is out over an outage counts once.
func TestReturnDoublesNothing(t *testing.T) {
	d := lim(10, "1h")
	teamed(t, 1, ledger.Settings{Replicas: 1}, declare(limits(d)), func(x *team) {
		x.link.cut.Store(true)
		time.Sleep(2 * time.Second)
		ls, err := x.cs[0].Acquire(context.Background(), coordinator.Call{Provider: "p"})
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			x.link.cut.Store(false)
			time.Sleep(2 * time.Second)
			x.link.cut.Store(true)
			time.Sleep(2 * time.Second)
		}
		x.link.cut.Store(false)
		time.Sleep(2 * time.Second)
		t.Logf("out: %+v", x.peek(d))
		ls.Report(provider.Feedback{})
		ls.Release()
		time.Sleep(time.Second)
		u := x.peek(d)
		if u.Used != 1 {
			t.Errorf("used %d, want 1", u.Used)
		}
		// the same, given back
		x.link.cut.Store(true)
		time.Sleep(2 * time.Second)
		ls, err = x.cs[0].Acquire(context.Background(), coordinator.Call{Provider: "p"})
		if err != nil {
			t.Fatal(err)
		}
		x.link.cut.Store(false)
		time.Sleep(2 * time.Second)
		ls.Forget()
		time.Sleep(time.Second)
		if v := x.peek(d); v.Used != u.Used {
			t.Errorf("after Forget used %d, want %d", v.Used, u.Used)
		}
	})
}

// an answer that another process gets must not end a not-before.
func TestOrdinaryAnswerErasesNothingLearned(t *testing.T) {
	d := lim(100, "24h")
	teamed(t, 2, ledger.Settings{}, declare(limits(d)), func(x *team) {
		ctx := context.Background()
		a, _ := x.cs[0].Acquire(ctx, coordinator.Call{Provider: "p"})
		b, _ := x.cs[1].Acquire(ctx, coordinator.Call{Provider: "p"})
		a.Report(provider.Feedback{Outcome: provider.QuotaSpent, Limit: "a", RetryAfter: 5 * time.Hour})
		a.Release()
		time.Sleep(time.Second)
		t.Logf("%+v", x.peek(d))
		b.Report(provider.Feedback{Budgets: []provider.Budget{{Name: "a", Limit: 100, HasLimit: true, Remaining: 50, HasRemaining: true}}})
		b.Release()
		time.Sleep(time.Second)
		u := x.peek(d)
		if u.NotBefore.IsZero() {
			t.Errorf("not-before erased: %+v", u)
		}
		c, err := x.cs[1].Acquire(ctx, coordinator.Call{Provider: "p", Wait: -1})
		t.Logf("second process: %v %v", c != nil, err)
		if c != nil {
			c.Forget()
		}
	})
}

// arrival_within: what the answer says later.
func TestLateAnswerCorrectsThere(t *testing.T) {
	d := lim(100, "1h")
	d.Charges = []provider.Outcome{provider.OK}
	p := declare(limits(d))
	p.Throttle.ArrivalWithin = time.Second
	teamed(t, 1, ledger.Settings{}, p, func(x *team) {
		ls, err := x.cs[0].Acquire(context.Background(), coordinator.Call{Provider: "p"})
		if err != nil {
			t.Fatal(err)
		}
		ls.Sent()
		time.Sleep(3 * time.Second)
		s0 := x.cs[0].States()[0].Limits
		ls.Report(provider.Feedback{Outcome: provider.Rejected})
		ls.Release()
		time.Sleep(time.Second)
		s, _ := x.cs[0].State("p")
		t.Logf("%+v then local %+v; ledger %+v", s0, s.Limits, x.peek(d))
		if u := x.peek(d); u.Used != s.Limits[0].Used {
			t.Errorf("ledger %d local %d", u.Used, s.Limits[0].Used)
		}
	})
}

// nested: tokens settled early, then the real use is more.
func TestNestedUseIsToldThere(t *testing.T) {
	tok := sharedLimit(provider.Limit{Name: "t", Max: 1000, Per: "1h", Unit: "tokens"})
	slow := provider.Limit{Name: "r", Max: 1, Per: "1s"}
	p := declare(limits(tok, slow))
	p.Throttle.MaxInFlight = 0
	teamed(t, 1, ledger.Settings{}, p, func(x *team) {
		c := x.cs[0]
		err := c.Do(context.Background(), coordinator.Call{Provider: "p", Cost: map[string]int64{"tokens": 10}}, func(ctx context.Context) error {
			err := c.Do(ctx, coordinator.Call{Provider: "p"}, func(context.Context) error { return nil })
			if err != nil {
				return err
			}
			ls, _ := coordinator.LeaseFrom(ctx)
			ls.Report(provider.Feedback{Used: map[string]int64{"tokens": 500}})
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		s, _ := c.State("p")
		for _, l := range s.Limits {
			if l.Name == "quota" {
				u := x.peek(tok)
				if u.Used != l.Used {
					t.Errorf("ledger %d local %d", u.Used, l.Used)
				}
			}
		}
	})
}

// Update during an outage
func TestUpdateInAnOutageRefillsNothing(t *testing.T) {
	d := lim(10, "1h")
	teamed(t, 2, ledger.Settings{}, declare(limits(d)), func(x *team) {
		n := 0
		for i := range 7 {
			if x.once(i/6) == nil {
				n++
			}
			time.Sleep(time.Second)
		}
		x.link.cut.Store(true)
		time.Sleep(2 * time.Second)
		down := 0
		for i := range 2 {
			for range 5 {
				if x.once(i) == nil {
					down++
				}
			}
		}
		first := down
		for i := range 2 {
			for range 4 {
				if err := x.cs[i].Update("p", declare(limits(d)).Throttle); err != nil {
					t.Fatal(err)
				}
				for range 5 {
					if x.once(i) == nil {
						down++
					}
				}
			}
		}
		t.Logf("before %d, apart %d, with updates %d", n, first, down)
		if n+down > 10 {
			t.Errorf("%d went of 10", n+down)
		}
	})
}

func TestForecastKnowsTheRoom(t *testing.T) {
	d := lim(10, "24h")
	teamed(t, 2, ledger.Settings{}, declare(limits(d)), func(x *team) {
		for range 8 {
			_ = x.once(0)
		}
		_ = x.once(1)
		synctest.Wait()
		f, err := x.cs[1].Forecast(coordinator.Call{Provider: "p"}, 5)
		s, _ := x.cs[1].State("p")
		t.Logf("%v %v; left %+v", f, err, s.Limits)
		if f.Now > 1 {
			t.Errorf("forecast: %d now, 1 is left", f.Now)
		}
	})
}

// a store that comes back for a moment does not refill what was left
func TestFlappingRefillsNothing(t *testing.T) {
	d := lim(10, "24h")
	teamed(t, 2, ledger.Settings{}, declare(limits(d)), func(x *team) {
		n := 0
		do := func(i int) {
			if x.once(i) == nil {
				n++
			}
		}
		for range 7 {
			do(0)
			time.Sleep(time.Second)
		}
		do(1)
		time.Sleep(time.Second)
		for range 4 {
			x.link.cut.Store(true)
			time.Sleep(2 * time.Second)
			for range 5 {
				do(1)
			}
			x.link.cut.Store(false)
			time.Sleep(2 * time.Second)
		}
		if n > 10 {
			t.Errorf("%d went of 10", n)
		}
	})
}

// what asks holds local units for a moment: nobody is refused because of it
func TestAskingMisleadsNobody(t *testing.T) {
	a := lim(1, "24h")
	a.Scope, a.Endpoints = provider.ScopeEndpoint, []string{"e1"}
	loc := provider.Limit{Name: "loc", Max: 1, Per: "1h"}
	p := declare(limits(a, loc))
	p.Endpoints = []provider.Endpoint{{Name: "e1"}, {Name: "e2"}}
	teamed(t, 2, ledger.Settings{}, p, func(x *team) {
		x.link.slow(func() time.Duration { return 5 * time.Millisecond })
		ctx := context.Background()
		ls, err := x.cs[0].Acquire(ctx, coordinator.Call{Provider: "p", Endpoint: "e1"})
		if err != nil {
			t.Fatal(err)
		}
		ls.Report(provider.Feedback{})
		ls.Release()
		time.Sleep(time.Second)
		go func() {
			_, _ = x.cs[1].Acquire(ctx, coordinator.Call{Provider: "p", Endpoint: "e1", Wait: time.Second})
		}()
		time.Sleep(time.Millisecond)
		ls, err = x.cs[1].Acquire(ctx, coordinator.Call{Provider: "p", Endpoint: "e2", Wait: time.Minute})
		if err != nil {
			t.Errorf("%v", err)
			return
		}
		ls.Forget()
	})
}
