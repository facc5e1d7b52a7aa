package main

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/headgate/headgate/examples/osint/internal/cache"
	"github.com/headgate/headgate/provider"
)

// store is the cache of answers of a run. It never ends the run: what fails is told
// once, and the run goes on without it. The zero value keeps nothing. It is safe for
// concurrent use.
type store struct {
	mode string // live or played: what was played is no answer
	tell func(format string, args ...any)

	mu sync.Mutex
	c  *cache.Cache // nil: off
}

// openStore opens the cache that the options name.
func (o options) openStore(tell func(format string, args ...any)) *store {
	s := &store{mode: o.mode(), tell: tell}
	path := o.cache
	if path == "" && o.live {
		dir, err := os.UserCacheDir()
		if err != nil {
			tell("no cache: %v; name one with -cache FILE", err)
			return s
		}
		path = filepath.Join(dir, "headgate", "osint.db")
	}
	if path == "" || path == "off" {
		return s
	}
	c, err := cache.Open(path, o.ttl)
	if err != nil {
		tell("no cache: %v; the run goes on without it", err)
		return s
	}
	s.c = c
	return s
}

// open is the cache, nil where there is none.
func (s *store) open() *cache.Cache {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.c
}

// close ends it.
func (s *store) close() {
	s.mu.Lock()
	c := s.c
	s.c = nil
	s.mu.Unlock()
	if c == nil {
		return
	}
	if err := c.Close(); err != nil {
		s.tell("%v", err)
	}
}

// failed tells why the cache is used no more.
func (s *store) failed(err error) {
	if s.open() == nil {
		return // told already
	}
	s.tell("%v; the run goes on without the cache", err)
	s.close()
}

// answer is what is kept.
type answer struct {
	Data  json.RawMessage `json:"data,omitempty"`
	Empty bool            `json:"empty,omitempty"`
	Next  string          `json:"next,omitempty"`
}

// get finds a kept answer.
func (s *store) get(t *target, j *job) (provider.Result, bool) {
	c := s.open()
	if c == nil {
		return provider.Result{}, false
	}
	value, at, ok, err := c.Get(s.key(t, j))
	if err != nil {
		s.failed(err)
	}
	var a answer
	if !ok || json.Unmarshal(value, &a) != nil {
		return provider.Result{}, false
	}
	return provider.Result{
		Provider: t.p.Slug, Endpoint: j.endpoint, Data: a.Data, Empty: a.Empty, Next: a.Next, At: at.UTC(),
	}, true
}

// put keeps the answer of a lookup, if it is one to rely on: never what was not ok,
// nor an empty one from a provider that answers so when it is overloaded.
func (s *store) put(t *target, l *lookup) {
	c := s.open()
	if c == nil || l.err != nil || l.cached || l.result.Suspicious {
		return
	}
	value, err := json.Marshal(answer{l.result.Data, l.result.Empty, l.result.Next})
	if err == nil {
		at := l.result.At
		if at.IsZero() {
			at = time.Now()
		}
		err = c.Put(s.key(t, &l.job), value, at)
	}
	if err != nil {
		s.failed(err)
	}
}

// key says what was asked of whom. The declaration is part of it: another path or
// another way to read answers is another question.
func (s *store) key(t *target, j *job) string {
	return strings.Join([]string{s.mode, t.p.Slug, t.version(), j.endpoint, string(j.kind), j.value}, "\x00")
}

// version is a digest of what decides how an endpoint is asked and read; limits do
// not.
func (t *target) version() string {
	t.once.Do(func() {
		text, err := json.Marshal(provider.Provider{
			Slug: t.base.Slug, BaseURL: t.base.BaseURL, Endpoints: t.base.Endpoints, Dialect: t.base.Dialect, Auth: t.base.Auth,
		})
		if err != nil {
			text = fmt.Appendf(nil, "%v", t.base)
		}
		sum := sha256.Sum256(text)
		t.digest = hex.EncodeToString(sum[:8])
	})
	return t.digest
}

func (o options) mode() string {
	if o.live {
		return "live"
	}
	return "played"
}
