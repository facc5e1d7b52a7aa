package queue_test

import (
	"fmt"
	"time"

	"github.com/headgate/headgate/queue"
)

// tap lets one through in each second.
type tap struct{ next time.Duration }

func (t *tap) Look(now time.Duration, _ int64) time.Duration { return max(now, t.next) }

// place is a gate with its tap, and the route of calls that need no other.
func place() (*tap, *queue.Gate, *queue.Route) {
	t, g := new(tap), new(queue.Gate)
	g.Init(t, false)
	return t, g, &queue.Route{Gates: []*queue.Gate{g}}
}

var one = []int64{1}

func call(name string) *queue.Waiter {
	return &queue.Waiter{Owner: name, Cost: one, Deadline: queue.Never}
}

// Two flows take turns at a gate, however many calls each has queued. The user of the
// queue takes what the gate counts, in the callback.
func ExampleQueue() {
	var q queue.Queue
	t, g, route := place()
	a, b := queue.Flow{Name: "a", Weight: 1}, queue.Flow{Name: "b", Weight: 1}
	for _, name := range []string{"a1", "a2", "a3"} {
		q.Enter(0, call(name), route, a)
	}
	q.Enter(0, call("b1"), route, b)
	for now := time.Duration(0); q.Len() > 0; now = q.Next() {
		q.Hand(now, func(w *queue.Waiter) {
			fmt.Println(now, w.Owner)
			t.next = now + time.Second
			q.Touch(g)
		})
	}
	// Output:
	// 0s a1
	// 1s b1
	// 2s a2
	// 3s a3
}

// A call that need not wait passes nobody: it looks, takes, and tells the queue.
func ExampleQueue_Blocked() {
	var q queue.Queue
	t, g, route := place()
	f := queue.Flow{Name: "a", Weight: 1}
	if q.Blocked(0, route, f, one) == nil {
		t.next = time.Second
		q.Went(route, f, one)
		fmt.Println("goes at once")
	}
	if in := q.Blocked(0, route, f, one); in == g {
		fmt.Println("waits until", in.Rule().Look(0, 1))
	}
	// Output:
	// goes at once
	// waits until 1s
}

// Who leaves costs nothing and frees his place at once.
func ExampleQueue_Leave() {
	var q queue.Queue
	t, g, route := place()
	f := queue.Flow{Name: "a", Weight: 1}
	t.next = time.Hour
	first, second := call("first"), call("second")
	q.Enter(0, first, route, f)
	q.Enter(0, second, route, f)
	fmt.Println(q.Oldest().Owner, q.Len(), len(q.All()), q.Ahead(route, f, one), first.Earlier(second), g.Waiting())
	q.Leave(first)
	fmt.Println(q.Oldest().Owner, q.Len(), first.Waits(), second.Route() == route)
	// Output:
	// first 2 2 [2] true true
	// second 1 false true
}

// Who cannot go before his deadline is found when the gate says so, and afterwards in
// any case.
func ExampleQueue_Before() {
	var q queue.Queue
	t, _, route := place()
	t.next = time.Minute
	w := call("impatient")
	w.Deadline = time.Second
	q.Enter(0, w, route, queue.Flow{Name: "a", Weight: 1})
	q.Hand(0, func(*queue.Waiter) {})
	for _, late := range q.Before(q.Opens()) {
		fmt.Println(late.Owner, "would wait until", q.Opens())
	}
	fmt.Println("look again at", q.Next())
	fmt.Println(q.Expired(q.Next()).Owner, "is too late")
	// Output:
	// impatient would wait until 1m0s
	// look again at 1.000000001s
	// impatient is too late
}

// A call that comes back keeps its place.
func ExampleWaiter_Keep() {
	var q queue.Queue
	t, g, route := place()
	t.next = time.Hour
	f := queue.Flow{Name: "a", Weight: 1}
	early := q.Arrive() // it went at once, and failed
	q.Enter(0, call("later"), route, f)
	again := call("again")
	again.Keep(early)
	q.Enter(0, again, route, f)
	t.next = 0
	q.Touch(g)
	q.Hand(0, func(w *queue.Waiter) { fmt.Println(w.Place(), w.Owner) })
	// Output:
	// 1 again
	// 2 later
}

// What other queues take turns at is shared.
func ExampleGate_Share() {
	var q queue.Queue
	g := new(queue.Gate)
	g.Init(&tap{next: time.Second}, true) // an answer opens it
	g.Share()
	q.Enter(0, call("a"), &queue.Route{Gates: []*queue.Gate{g}}, queue.Flow{Name: "a", Weight: 1})
	fmt.Println(g.Waiting())
	// Output: true
}
