package peer

import (
	"context"
	"fmt"
	"time"

	"github.com/headgate/headgate/coordinator"
	"github.com/headgate/headgate/provider"
)

// Slug is the name of the provider in the declaration of Headgate.
const Slug = "p"

// Headgate with the declaration and nothing else. Where the windows' phase is not
// known its default, the sliding window, is what its documentation says to write.
var Headgate = Peer{
	Name:   "Headgate",
	Module: "github.com/headgate/headgate",
	New:    func(c Config) *Gate { return gate(c, Declare(Slug, c)) },
}

// Informed is Headgate that is told how far away the provider is, as Slowed is told how
// unevenly the network delays.
var Informed = Peer{
	Name:   "told the least round trip: Headgate", // not one of the rows that are compared as Headgate: it knows more
	Module: "github.com/headgate/headgate",
	New: func(c Config) *Gate {
		p := Declare(Slug, c)
		p.Throttle.LeastRoundTrip = c.LeastRoundTrip
		return gate(c, p)
	},
}

// Declare is the declaration of c.
func Declare(slug string, c Config) provider.Provider {
	p := provider.Provider{Slug: slug, Throttle: provider.Throttle{
		MaxInFlight: c.Cap,
		MaxQueue:    1 << 20, // nobody is refused for want of a place, by any peer
		MaxWait:     provider.Forever,
	}}
	for _, l := range c.Limits {
		d := provider.Limit{Name: l.Per.String(), Max: int64(l.N), Per: provider.Period(l.Per.String())}
		if c.Kind == Bucket {
			d.Algorithm, d.Burst = provider.TokenBucket, int64(l.N)
		}
		p.Throttle.Limits = append(p.Throttle.Limits, d)
	}
	p.Breaker = provider.Breaker{Off: !c.Breaker, Failures: Failures, Cooldown: Cooldown, Probes: 1}
	p.Retry = provider.Retry{Off: c.Attempts < 2, Attempts: c.Attempts, Base: MinDelay, Max: MaxDelay}
	return p
}

func gate(c Config, p provider.Provider) *Gate {
	co, err := coordinator.New(coordinator.Config{Providers: []provider.Provider{p}})
	if err != nil {
		panic(fmt.Sprintf("peer: %v", err)) // a fault of this program
	}
	replayable := c.Attempts > 1
	return &Gate{
		Call: func(ctx context.Context, user string, send Send) error {
			return co.Do(ctx, coordinator.Call{Provider: Slug, Flow: user, Replayable: replayable}, send)
		},
		Permits: func() int64 {
			s, err := co.State(Slug)
			if err != nil {
				panic(fmt.Sprintf("peer: %v", err))
			}
			return s.Granted
		},
		Close: func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			_ = co.Shutdown(ctx) // calls that hang until their own end are no fault here
		},
	}
}
