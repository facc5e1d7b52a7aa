package ledger

import (
	"sync"
	"time"
)

// known is a pause that the store has told. Its instant came as a time from then, so it
// is off by as much as the exchange took, at most.
type known struct {
	Pause
	fuzz time.Duration
}

// same tells that two instants of a pause may be one.
func (k known) same(other known) bool {
	return k.Until.Sub(other.Until).Abs() <= k.fuzz+other.fuzz+time.Millisecond
}

// compare finds what has changed of the pauses, and tells it to those who watch, unless
// this client itself has said so with the batch that was answered.
func (c *Client) compare(s *said, list []Pause, took time.Duration) {
	begun, ended := s.own()
	old := c.pauses
	c.pauses = make(map[scope]known, len(list))
	for _, p := range list {
		k, sc := known{p, took}, scopeOf(&p)
		was, there := old[sc]
		own, told := begun[sc]
		switch {
		case there && k.same(was):
			k = was // the same; small steps add up
		case told && k.same(known{Pause: *own}):
			c.post(sc, change{})
		case there && k.Until.Before(was.Until): // pauses are only extended: this is another one
			c.post(sc, change{ended: &was.Pause, begun: &k.Pause})
		default:
			c.post(sc, change{begun: &k.Pause})
		}
		c.pauses[sc] = k
	}
	for sc, was := range old {
		if _, there := c.pauses[sc]; there {
			continue
		}
		if ended(sc) {
			c.post(sc, change{})
		} else {
			c.post(sc, change{ended: &was.Pause})
		}
	}
}

// own returns which pauses a batch itself has begun or extended, and which it has ended.
func (s *said) own() (begun map[scope]*Pause, ended func(scope) bool) {
	begun = map[scope]*Pause{}
	over := map[scope]bool{}
	for _, sc := range s.opened {
		over[sc] = true
	}
	for _, n := range s.News {
		switch {
		case n.Pause != nil:
			begun[scopeOf(n.Pause)] = n.Pause
		case n.Resume != nil:
			over[scopeOf(n.Resume)] = true
		}
	}
	return begun, func(sc scope) bool { return over[sc] || over[scope{provider: sc.provider}] }
}

// watcher calls a function with what has changed, on a goroutine of its own: it may be
// slow, may panic, and may call the client.
type watcher struct {
	f    func(Change)
	wake chan struct{}
	stop chan struct{}

	// What it has not been told yet; guarded by Client.mu.
	pauses map[scope]change
	status *Status
}

// change of a scope: a pause has ended, or begun (or both, in that order).
type change struct{ ended, begun *Pause }

// post leaves a change for all who watch. It replaces one of the same scope that they
// have not been told; no change at all does so, too: this client has gone on from there.
func (c *Client) post(sc scope, ch change) {
	for w := range c.watchers {
		w.post(sc, ch)
	}
}

func (w *watcher) post(sc scope, ch change) {
	if ch.ended == nil && ch.begun == nil {
		delete(w.pauses, sc)
		return
	}
	if ch.ended == nil {
		ch.ended = w.pauses[sc].ended
	}
	w.pauses[sc] = ch
	w.signal()
}

func (w *watcher) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// Watch implements Ledger. f is told first which pauses there are. Of several changes of
// one scope that happen while f is busy it hears the last. A panic of f ends that one
// call, and nothing else. After stop has returned no call begins.
func (c *Client) Watch(f func(Change)) (stop func()) {
	w := &watcher{f: f, wake: make(chan struct{}, 1), stop: make(chan struct{}), pauses: map[scope]change{}}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closing {
		return func() {}
	}
	c.watchers[w] = struct{}{}
	for sc, k := range c.pauses {
		w.post(sc, change{begun: &k.Pause})
	}
	go c.watch(w)
	return sync.OnceFunc(func() {
		close(w.stop)
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.watchers, w)
	})
}

func (c *Client) watch(w *watcher) {
	for {
		select {
		case <-w.wake:
		case <-w.stop:
			return
		case <-c.quit:
			return
		}
		for _, ch := range c.collect(w) {
			select {
			case <-w.stop:
				return
			default:
				w.tell(ch)
			}
		}
	}
}

// collect empties what was left for a watcher.
func (c *Client) collect(w *watcher) (all []Change) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if w.status != nil {
		st := *w.status
		all = append(all, Change{Status: &st})
	}
	for _, ch := range w.pauses {
		if ch.ended != nil {
			p := *ch.ended
			all = append(all, Change{Resume: &p})
		}
		if ch.begun != nil {
			p := *ch.begun
			all = append(all, Change{Pause: &p})
		}
	}
	w.status = nil
	clear(w.pauses)
	return all
}

func (w *watcher) tell(ch Change) {
	defer func() { _ = recover() }()
	w.f(ch)
}
