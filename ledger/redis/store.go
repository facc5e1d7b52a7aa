package redis

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/headgate/headgate/ledger"
)

// Store is a ledger's store on a Redis or Valkey server, a Sentinel group, or a Cluster.
// It is safe for concurrent use; batches of one holder should be said one after the
// other, as ledger.Client does.
type Store struct {
	option rueidis.ClientOption
	prefix string

	mu      sync.Mutex
	client  rueidis.Client // nil: not connected yet
	dialing chan struct{}  // closed when a dial that is under way has ended
	dialErr error          // of the last one
	closed  bool
	sends   uint64        // the number of the last exchange
	ahead   time.Duration // by how much the server's clock is ahead of ours
	heard   heard         // of the server; in a Cluster, of that with what is common
	quiet   time.Time     // nothing is granted before (Cluster: other servers have to be told)
	lost    bool          // a server has lost its state, and the epoch is the same still
	places  map[string]*place
	holders map[string]*holder
	health  health
	beside  sync.WaitGroup // dials, and questions of health; begun only while not closed
}

var _ ledger.Store = (*Store)(nil)

// heard is what is known of the clock by which the ledger goes.
type heard struct {
	us int64 // what it showed last, in microseconds
	at time.Time

	// best is how far it was ahead of ours, at most, when that was seen best: an answer
	// tells what it showed after the question was sent. since is when that was.
	best  int64
	since time.Time
}

// told takes in that the clock showed us between sent and got.
func (h *heard) told(us int64, sent, got time.Time) {
	ahead := us - onClock(sent)
	if h.us == 0 || ahead <= h.ahead(got) || h.ahead(got) < us-onClock(got) {
		h.best, h.since = ahead, got
	}
	h.us, h.at = us, got
}

// ahead is how far the clock is ahead of ours now, at most: clocks run alike but for a
// thousandth.
func (h *heard) ahead(now time.Time) int64 {
	return h.best + int64(now.Sub(h.since)/time.Microsecond)/1000
}

// least is what it must show by now.
func (h *heard) least(now time.Time) int64 {
	if h.us == 0 {
		return 0
	}
	passed := int64(now.Sub(h.at) / time.Microsecond)
	return h.us + passed - passed/1000
}

// ruler translates instants of ours into those of the clock. What is not known of it yet,
// the scripts make up for: they are told what sent is.
func (h *heard) ruler(now time.Time) ruler {
	if h.us == 0 {
		return ruler{now: now}
	}
	return ruler{now: now, sent: onClock(now) + h.ahead(now)}
}

type ruler struct {
	now  time.Time
	sent int64 // what the clock shows now, as far as we know; 0: not known
}

func (r ruler) at(t time.Time) int64 { return r.sent + max(-most, micros(t.Sub(r.now))) }

// started is an instant whose monotonic reading all of ours are compared with.
var started = time.Now()

func onClock(t time.Time) int64 { return int64(t.Sub(started) / time.Microsecond) }

// heardOf is what was heard of the clock by which a place goes.
func (s *Store) heardOf(k keys, p *place) *heard {
	if k.apart {
		return &p.heard
	}
	return &s.heard
}

// place is what this process remembers of a provider's keys.
type place struct {
	listed  bool // among the providers
	heard   heard
	expires time.Time       // what it keeps there lives until then; zero: never seen
	born    int64           // when its record was made, on its clock
	retell  map[string]bool // holders whose holds the server may have forgotten
}

// holder is what this process remembers of one that it speaks for.
type holder struct {
	holds map[ledger.Hold]*held
	said  map[string]time.Time // by provider: when it was last spoken to
	acked map[string]uint64    // by provider: the last number that was carried out
}

var errClosed = errors.New("redis: the store is closed")

// holderLocked finds or makes it.
func (s *Store) holderLocked(name string) *holder {
	h := s.holders[name]
	if h == nil {
		h = &holder{
			holds: map[ledger.Hold]*held{}, said: map[string]time.Time{}, acked: map[string]uint64{},
		}
		s.holders[name] = h
	}
	return h
}

func (s *Store) placeLocked(slug string) *place {
	p := s.places[slug]
	if p == nil {
		p = &place{retell: map[string]bool{}}
		s.places[slug] = p
	}
	return p
}

func (s *Store) newPartLocked(k keys, slug string, now time.Time) *part {
	pl := s.placeLocked(slug)
	return newPart(slug, pl, s.heardOf(k, pl).ruler(now))
}

// nextSend numbers an exchange: by the clock, so that a holder's numbers rise also over
// several connections; and so that it can be seen by how much time a server has gone
// back.
func (s *Store) nextSendLocked() uint64 {
	s.sends = max(s.sends+1, uint64(time.Now().UnixMicro()))
	return s.sends
}

// Close ends the connection. Exchanges that are under way fail. Where a server is just
// being dialed it waits for that, for some seconds at most.
func (s *Store) Close() error {
	s.mu.Lock()
	s.closed = true
	client := s.client
	s.client = nil
	s.mu.Unlock()
	if client != nil {
		client.Close()
	}
	s.beside.Wait()
	return nil
}

// Exchange implements ledger.Store. A batch of several providers is carried out provider
// by provider, each part undivided.
func (s *Store) Exchange(ctx context.Context, b *ledger.Batch) (*ledger.Reply, error) {
	client, err := s.connected(ctx)
	if err != nil {
		return nil, err
	}
	x := &exchange{s: s, client: client, keys: s.keysOf(client), b: b, reply: &ledger.Reply{
		Grants: make([]ledger.Grant, len(b.Takes)), Usages: make([]ledger.Usage, len(b.Peek)),
	}, verdicts: make([]verdict, len(b.Takes))}
	if err := x.run(ctx); err != nil {
		return nil, s.explain(err)
	}
	return x.reply, nil
}

func (s *Store) keysOf(client rueidis.Client) keys {
	return keys{prefix: s.prefix, apart: client.Mode() == rueidis.ClientModeCluster}
}

// aheadNow is by how much the server's clock is ahead of ours.
func (s *Store) aheadNow() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ahead
}
