// Package ledgerflag is what the flag -ledger of the examples names: where the budget is
// kept that a program shares with its other processes, and with its next run.
//
// Not in it: what is shared (each example's settings say so), and how the budget is kept
// (packages ledger/sqlite and ledger/redis).
package ledgerflag

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/ledger/redis"
	"github.com/headgate/headgate/ledger/sqlite"
)

// Variable is the environment variable that stands for a -ledger that was not given: a
// URL with a password is seen by others on a command line.
const Variable = "HEADGATE_LEDGER"

// opening bounds how long a place is waited for as a program begins.
const opening = 10 * time.Second

// Place is where a budget is kept. The zero value is none: a process has the limits to
// itself.
type Place struct {
	file   string
	server *url.URL // may hold a password
	prefix string   // of keys on the server
}

// Usage says what Parse takes.
const Usage = "sqlite:PATH (a file of this machine), redis://HOST:PORT/DB (rediss:// by TLS, unix:// by a socket), or none"

// Parse reads what a user has written. Its errors do not repeat a URL, which may hold a
// password.
func Parse(s string) (Place, error) {
	scheme, rest, found := strings.Cut(s, ":")
	switch {
	case s == "none":
		return Place{}, nil
	case !found || rest == "":
	case scheme == "sqlite":
		return Place{file: rest}, nil
	case scheme == "redis", scheme == "rediss", scheme == "unix":
		u, err := url.Parse(s)
		if err != nil {
			return Place{}, errors.New("the URL cannot be read: a password may need percent signs (%40 for @)")
		}
		return Place{server: u, prefix: u.Query().Get("prefix")}, nil
	}
	return Place{}, errors.New("want " + Usage)
}

// Named is Parse of what a flag says or, where it says nothing, the variable. given is
// false where both are silent.
func Named(flag string, getenv func(string) string) (p Place, given bool, err error) {
	name := "-ledger"
	if flag == "" {
		flag, name = getenv(Variable), "$"+Variable
	}
	if flag == "" {
		return Place{}, false, nil
	}
	if p, err = Parse(flag); err != nil {
		err = fmt.Errorf("%s: %w", name, err)
	}
	return p, true, err
}

// File is a place in a file.
func File(path string) Place { return Place{file: path} }

// None tells whether it is no place.
func (p Place) None() bool { return p.file == "" && p.server == nil }

// Within is another budget in the same place, which shares nothing with p: the name is
// put behind the file's or the keys' prefix.
func (p Place) Within(name string) Place {
	switch {
	case p.file != "":
		p.file += "-" + name
	case p.server != nil:
		if p.prefix == "" {
			p.prefix = "headgate"
		}
		p.prefix += "-" + name
	}
	return p
}

// String names the place for people: without user, password and parameters.
func (p Place) String() string {
	switch {
	case p.file != "":
		return p.file
	case p.server != nil:
		u := url.URL{Scheme: p.server.Scheme, Host: p.server.Host, Path: p.server.Path}
		if p.prefix != "" {
			return u.String() + ", prefix " + p.prefix
		}
		return u.String()
	}
	return "none"
}

// Exists tells whether there is something to look at: a program that only looks makes no
// file.
func (p Place) Exists() bool {
	if p.file == "" {
		return p.server != nil
	}
	_, err := os.Stat(p.file)
	return err == nil
}

// Open opens the budget; of no place it returns nil. A place that does not answer is an
// error here: whoever starts by hand wants to know. Errors hold no secret.
func (p Place) Open(s ledger.Settings) (*ledger.Client, error) {
	if p.None() {
		return nil, nil
	}
	store, err := p.store()
	if err != nil {
		return nil, err
	}
	l, err := ledger.Open(store, s)
	if err != nil {
		return nil, errors.Join(err, store.Close())
	}
	if status := l.Status(); !status.Up {
		_ = Close(l) // it has heard nothing that it could tell
		return nil, fmt.Errorf("the ledger %s does not answer: %s", p, status.Detail)
	}
	return l, nil
}

func (p Place) store() (ledger.Store, error) {
	if p.file != "" {
		if err := os.MkdirAll(filepath.Dir(p.file), 0o700); err != nil {
			return nil, fmt.Errorf("no folder for the ledger: %w", err)
		}
		return opened(sqlite.Open(p.file, sqlite.Options{}))
	}
	ctx, cancel := context.WithTimeout(context.Background(), opening)
	defer cancel()
	return opened(redis.Open(ctx, p.server.String(), redis.Options{Prefix: p.prefix}))
}

// opened keeps a nil pointer from becoming a Store that is not nil.
func opened[S ledger.Store](s S, err error) (ledger.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// closing bounds how long what is queued may take to be heard.
const closing = 5 * time.Second

// Close closes a budget; nil is none. An error means that it may not know all.
func Close(l *ledger.Client) error {
	if l == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), closing)
	defer cancel()
	return l.Close(ctx)
}

// StateDir is the folder for what the examples remember of a user: headgate in
// $XDG_STATE_HOME, else in ~/.local/state.
func StateDir(getenv func(string) string) (string, error) {
	dir := getenv("XDG_STATE_HOME")
	if !filepath.IsAbs(dir) { // so the specification has it
		home := getenv("HOME")
		if home == "" {
			return "", errors.New("neither XDG_STATE_HOME nor HOME is set")
		}
		dir = filepath.Join(home, ".local", "state")
	}
	return filepath.Join(dir, "headgate"), nil
}
