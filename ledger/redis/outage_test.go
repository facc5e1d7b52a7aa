package redis

import (
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/ledgertest/outage"
)

// Three coordinators with ninety callers at a provider that counts, while something
// happens to their server.
func TestOutage(t *testing.T) {
	plays := map[string]func(t *testing.T, srv *server) outage.Play{
		"stopped, restarted empty": func(_ *testing.T, srv *server) outage.Play {
			return outage.Play{Begin: func(t *testing.T) { srv.stop(t) }, End: func(t *testing.T) { srv.start(t) }}
		},
		"stopped, denied": func(_ *testing.T, srv *server) outage.Play {
			return outage.Play{Mode: ledger.Deny, Begin: func(t *testing.T) { srv.stop(t) }, End: func(t *testing.T) { srv.start(t) }}
		},
		"SIGSTOP": func(_ *testing.T, srv *server) outage.Play {
			return outage.Play{
				Begin: func(t *testing.T) { srv.signal(t, syscall.SIGSTOP) },
				End:   func(t *testing.T) { srv.signal(t, syscall.SIGCONT) },
			}
		},
		"emptied": func(t *testing.T, srv *server) outage.Play {
			return outage.Play{Short: true, Begin: func(t *testing.T) { do(t, srv.client(t), "FLUSHALL") }}
		},
		"scripts flushed": func(t *testing.T, srv *server) outage.Play {
			return outage.Play{Short: true, Begin: func(t *testing.T) { do(t, srv.client(t), "SCRIPT", "FLUSH") }}
		},
	}
	for name, play := range plays {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t)
			p := play(t, srv)
			p.Store = func(t *testing.T) ledger.Store { return open(t, srv.url("")) }
			outage.Run(t, p)
		})
	}
	for name, disturbed := range map[string]func(r *relay, on bool){
		"half a second away": func(r *relay, on bool) {
			r.delay.Store(0)
			if on {
				r.delay.Store(int64(500 * time.Millisecond))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t)
			r := disturb(t, srv.addr)
			outage.Run(t, outage.Play{
				Budget: 250 * time.Millisecond,
				Store:  func(t *testing.T) ledger.Store { return open(t, "redis://"+r.addr) },
				Begin:  func(*testing.T) { disturbed(r, true) },
				End:    func(*testing.T) { disturbed(r, false) },
			})
		})
	}
	t.Run("answers cut off", func(t *testing.T) {
		t.Parallel()
		srv := serve(t)
		r := disturb(t, srv.addr)
		var stop atomic.Bool
		outage.Run(t, outage.Play{
			Some:  true,
			Store: func(t *testing.T) ledger.Store { return open(t, "redis://"+r.addr) },
			Begin: func(t *testing.T) {
				go func() {
					tick := time.NewTicker(50 * time.Millisecond)
					defer tick.Stop()
					for ; !stop.Load(); <-tick.C {
						r.cut.Store(true)
					}
				}()
			},
			End: func(*testing.T) { stop.Store(true) },
		})
	})
}
