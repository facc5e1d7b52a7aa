package console

import (
	"encoding/json"
	"fmt"
	"hash/maphash"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	writeTime  = 5 * time.Second  // for one message: who takes longer does not read
	answerTime = 30 * time.Second // for any other answer, on a server that sets no time of its own
	beat       = 15 * time.Second // an event without news is sent after so long, to find who is gone, and to be missed
	tryAgain   = 10               // seconds: where there are too many streams
)

// streams are the open ones. A stream has a channel with room for one signal: it is
// told that there is a newer snapshot, not which, so that one which is slow misses
// some and holds up nobody.
type streams struct {
	first chan struct{} // signals that there is one, where there was none

	mu   sync.Mutex
	open map[chan struct{}]bool
	most int
	gone chan struct{} // is closed when the last has left; nil: more may come
}

func (s *streams) init(most int) {
	s.first = make(chan struct{}, 1)
	s.open, s.most = make(map[chan struct{}]bool), most
}

func (s *streams) any() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open) > 0
}

// enter returns the signals of one more stream; nil: there are too many, or it is over.
func (s *streams) enter() chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.open) >= s.most || s.gone != nil {
		return nil
	}
	signal := make(chan struct{}, 1)
	signal <- struct{}{} // the first snapshot
	s.open[signal] = true
	select {
	case s.first <- struct{}{}:
	default:
	}
	return signal
}

func (s *streams) leave(signal chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, signal)
	if s.gone != nil && len(s.open) == 0 {
		close(s.gone)
	}
}

// tell signals all. It never waits.
func (s *streams) tell() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for signal := range s.open {
		select {
		case signal <- struct{}{}:
		default: // it has not heard the last one yet
		}
	}
}

// drain lets no more in and waits until all have left: those that do not read have so
// long to be dropped.
func (s *streams) drain() {
	s.mu.Lock()
	open := len(s.open)
	if s.gone == nil {
		s.gone = make(chan struct{})
	}
	s.mu.Unlock()
	if open == 0 {
		return
	}
	select {
	case <-s.gone:
	case <-time.After(2 * writeTime): // on a connection that knows no deadline
	}
}

// message is what a page's script puts in the place of what it has.
type message struct {
	At    time.Time         `json:"at"`
	Order []string          `json:"order"`          // of the rows, by slug
	Parts map[string]string `json:"parts"`          // HTML by the id of its element; what has not changed is left out
	Gone  bool              `json:"gone,omitempty"` // nothing more will come: Close was called
}

// sent remembers what a stream has told, by the id of each part.
type sent struct {
	seed  maphash.Seed
	parts map[string]uint64
}

// news is a message of what has changed since the one before; false: nothing has. Rows
// do not change places without one of them changing.
func (k *Console) news(s *snapshot, q query, before *sent) (message, bool) {
	m := k.whole(s, q)
	parts := make(map[string]uint64, len(m.Parts))
	for id, html := range m.Parts {
		parts[id] = maphash.String(before.seed, html)
		if old, told := before.parts[id]; told && old == parts[id] {
			delete(m.Parts, id)
		}
	}
	before.parts = parts
	return m, len(m.Parts) > 0
}

// rows answers GET /rows: one whole message, for a page without a stream.
func (k *Console) rows(w http.ResponseWriter, r *http.Request) {
	writeJSON(w, http.StatusOK, k.whole(k.now(), asked(r)))
}

// events answers GET /events: messages, as server-sent events, until the client or
// the Console goes.
func (k *Console) events(w http.ResponseWriter, r *http.Request) {
	signal := k.streams.enter()
	if signal == nil {
		w.Header().Set("Retry-After", strconv.Itoa(tryAgain))
		http.Error(w, "console: there are as many streams as there may be; GET /rows tells the same once", http.StatusServiceUnavailable)
		return
	}
	defer k.streams.leave(signal)
	out := &stream{w: w, ctl: http.NewResponseController(w)}
	_ = out.ctl.SetReadDeadline(time.Time{}) // that of the server was for the request
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no") // a proxy that collects would show nothing
	if r.Method == http.MethodHead {
		return
	}
	q, before := asked(r), sent{seed: maphash.MakeSeed()}
	heart := time.NewTimer(beat)
	defer heart.Stop()
	for {
		wrote, err := false, error(nil)
		select {
		case <-r.Context().Done():
			return
		case <-k.closed:
			_ = out.send(message{At: time.Now(), Gone: true})
			return
		case <-heart.C:
			wrote, err = true, out.write(fmt.Sprintf("event: beat\ndata: {\"at\":%q}\n\n", instant(time.Now()).Format(time.RFC3339Nano)))
		case <-signal:
			if m, changed := k.news(k.latest.Load(), q, &before); changed {
				wrote, err = true, out.send(m)
			}
		}
		if err != nil {
			return
		}
		if wrote {
			heart.Reset(beat)
		}
	}
}

// stream writes events.
type stream struct {
	w   http.ResponseWriter
	ctl *http.ResponseController
}

func (s *stream) send(m message) error {
	text, err := json.Marshal(m)
	if err != nil {
		return fmt.Errorf("console: an event: %w", err)
	}
	return s.write("data: " + string(text) + "\n\n")
}

// write gives up where a client does not read.
func (s *stream) write(text string) error {
	_ = s.ctl.SetWriteDeadline(time.Now().Add(writeTime)) // where it cannot be set, only this client's goroutine waits
	if _, err := s.w.Write([]byte(text)); err != nil {
		return err
	}
	return s.ctl.Flush()
}
