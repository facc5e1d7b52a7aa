package transport

import (
	"context"
	"reflect"
	"runtime"
	"sync"
	"weak"

	"github.com/headgate/headgate/coordinator"
)

// claimed are the leases under which a request has gone already: each is good for
// one. A lease is forgotten when nobody has it any more.
var claimed sync.Map // weak.Pointer[coordinator.Lease] → struct{}

// claim returns the lease of the provider that ctx runs under, the first time;
// nil: there is none, or it has had its request.
func claim(ctx context.Context, c *coordinator.Coordinator, slug string) *coordinator.Lease {
	ls, ok := coordinator.LeaseFrom(ctx)
	if !ok || !isOf(ls, c, slug) {
		return nil
	}
	key := weak.Make(ls)
	if _, taken := claimed.LoadOrStore(key, struct{}{}); taken {
		return nil
	}
	runtime.AddCleanup(ls, func(key weak.Pointer[coordinator.Lease]) { claimed.Delete(key) }, key)
	return ls
}

// isOf tells whether a lease is of a provider in a coordinator. A lease does not
// say so itself; these fields never change in its life.
func isOf(ls *coordinator.Lease, c *coordinator.Coordinator, slug string) bool {
	lane := reflect.ValueOf(ls).Elem().FieldByName("l").Elem()
	return lane.FieldByName("slug").String() == slug && lane.FieldByName("c").Pointer() == reflect.ValueOf(c).Pointer()
}
