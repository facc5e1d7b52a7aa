package limit_test

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/limit"
	"github.com/headgate/headgate/provider"
)

func rule(l provider.Limit) *limit.Rule {
	r, err := limit.New(l)
	if err != nil {
		panic(err)
	}
	return r
}

// at is a reading of the clock, so long after its origin.
func at(d time.Duration) limit.Now { return limit.Now{Mono: d, Wall: d} }

// What is held, what counts, and when units come back.
func ExampleRule_Usage() {
	r := rule(provider.Limit{Name: "minute", Max: 3, Per: "1m"})
	fmt.Println("at most", r.Heaviest(), "per", r.Window(), "- counted as sent:", r.Sent(), "- by dates:", r.Aligned(), "- a cap:", r.InFlight())
	r.Take(at(0), 2)
	fmt.Println(r.Usage(at(0)), r.Held(), r.Idle(at(0)))
	r.Settle(at(0), at(time.Second), 2, 2) // the answer came after a second
	fmt.Println(r.Usage(at(2 * time.Second)))
	fmt.Println(r.Idle(at(time.Hour)))
	// Output:
	// at most 3 per 1m0s - counted as sent: false - by dates: false - a cap: false
	// {0 2 0s} 2 false
	// {2 0 1m1.000000001s}
	// true
}

// A call that was never sent gives exactly back what it took.
func ExampleRule_GiveBack() {
	r := rule(provider.Limit{Name: "pace", Max: 1, Per: "1s", Algorithm: provider.LeakyBucket})
	r.Take(at(0), 1)
	r.GiveBack(at(0), at(100*time.Millisecond), 1)
	fmt.Println(r.Look(at(100*time.Millisecond), 1))
	// Output: 100ms
}

// An answer may tell the real cost, also in a later part.
func ExampleRule_Correct() {
	r := rule(provider.Limit{Name: "tokens", Max: 1000, Per: "1m", Unit: provider.Tokens})
	r.Take(at(0), 500)                         // an estimate
	r.Settle(at(0), at(time.Second), 500, 500) // the answer begins
	r.Correct(at(time.Second), at(2*time.Second), 120-500)
	fmt.Println(r.Usage(at(2 * time.Second)).Used)
	// Output: 120
}

// A plan that changes keeps its history, and what is lowered counts at once.
func ExampleReplace() {
	l := provider.Limit{Name: "minute", Max: 10, Per: "1m"}
	r := rule(l)
	r.Take(at(0), 5)
	r.Settle(at(0), at(0), 5, 5)
	l.Max = 5
	r, err := limit.Replace(r, l, at(time.Second))
	fmt.Println(r.Look(at(time.Second), 1), err)
	// Output: 1m0.000000001s <nil>
}

// Many keys have one limit: its rule is read once, and copied empty or with all it
// knows.
func ExampleRule_Fresh() {
	one := rule(provider.Limit{Name: "minute", Max: 1, Per: "1m"})
	one.Take(at(0), 1)
	other, copied := one.Fresh(), one.Clone()
	fmt.Println(other.Held(), copied.Held(), one.Alike(other))
	other.Adopt(copied, at(0))
	fmt.Println(other.Held())
	// Output:
	// 0 1 true
	// 1
}

// Who decides by the rules of thousands of providers keeps each of them beside what else
// it reads of its provider, and reads all of that before it decides: memory is slow, but
// not if it is asked for many things at once.
func ExampleRule_FreshIn() {
	minute := rule(provider.Limit{Name: "minute", Max: 2, Per: "1m"})
	var known struct {
		name string
		room limit.Room
	}
	r := minute.FreshIn(&known.room)
	r.Take(at(0), 1)
	r.Settle(at(0), at(time.Second), 1, 1)
	_ = known.room.Ahead()
	fmt.Println(r.Usage(at(time.Second)), minute.Idle(at(time.Second)))
	// Output: {1 0 1m1.000000001s} true
}

// A rule is stored in a few bytes, and goes on elsewhere.
func ExampleRule_AppendBinary() {
	r := rule(provider.Limit{Name: "day", Max: 500, Per: provider.Day})
	r.Take(at(0), 1)
	stored, _ := r.AppendBinary(nil)
	again := r.Fresh()
	err := again.UnmarshalBinary(stored)
	fmt.Println(again.Held(), err)
	// Output: 1 <nil>
}

// Windows that follow dates open a guard after their start, wider where the provider's
// clock is known to be off.
func ExampleRule_SetSkew() {
	r := rule(provider.Limit{Name: "day", Max: 500, Per: provider.Day})
	next, _ := r.Boundary(at(0))
	fmt.Println(next)
	r.SetSkew(3 * time.Second)
	next, _ = r.Boundary(at(0))
	fmt.Println(next)
	// Output:
	// 24h0m1s
	// 24h0m4s
}

// What was taken for the instant at which a call counted turns out to be too early.
func ExampleRule_Postpone() {
	r := rule(provider.Limit{Name: "minute", Max: 1, Per: "1m"})
	r.Take(at(0), 1)
	r.Settle(at(0), at(time.Second), 1, 1)
	fmt.Println(r.Look(at(2*time.Second), 1))
	r.Postpone(3 * time.Second)
	fmt.Println(r.Look(at(2*time.Second), 1))
	// Output:
	// 1m1.000000001s
	// 1m4.000000001s
}
