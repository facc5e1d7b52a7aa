package book

import (
	"time"

	"github.com/headgate/headgate/ledger"
	"github.com/headgate/headgate/limit"
)

// Storage is what a Book is written in.
type Storage struct {
	Meta    Table[Meta] // one value, under the key ""
	Holders Table[Holder]
	Records Table[Record]
	Holds   Table[Hold]
	Pauses  Table[Pause]
}

// Table keeps values by key; keys are any text. What Get and Scan return belongs to
// the Book until the batch is over: it changes it, and calls Put with it if the change
// is to be kept.
type Table[V any] interface {
	// Get returns nil where there is none.
	Get(key string) (*V, error)
	Put(key string, v *V) error
	Delete(key string) error
	// Scan calls f with all whose keys begin with prefix, in any order. f must not
	// change the table.
	Scan(prefix string, f func(key string, v *V)) error
	// Some returns about n keys, others at each call, so that all get their turn.
	Some(n int) ([]string, error)
}

// Instants of what follows are on the ledger's own scale (limit.Now.Mono), unless they
// say otherwise.

// Meta is what there is one of.
type Meta struct {
	Epoch   string
	Version uint64        // see ledger.Reply
	Rev     uint64        // changes with every change of a pause, its trial included
	Grace   time.Duration // no takes before; 0: no foreign epoch was heard yet
	Last    time.Duration // the last batch
	Offset  time.Duration // from the wall clock to the ledger's scale
	Stepped time.Duration // when the wall clock was last seen to step back; 0: never
	By      time.Duration // and by how much
}

// Holder is one client.
type Holder struct {
	Until time.Duration // its lease; when it died
	Dead  bool          // its holds are settled
	Seq   uint64
}

// Record is what is known of one counter.
type Record struct {
	Rule      *limit.Rule
	NotBefore time.Duration // learned; 0: none
	Max       int64         // learned; 0: none
	MaxUntil  time.Duration // of Max
	Idle      time.Duration // since when it is known to say nothing; 0: it says something

	changed bool
}

// Hold is a grant of which something is not settled.
type Hold struct {
	At     limit.Now // when it was granted
	Units  []Unit    // in the order of the Take
	Trials []string  // keys of the pauses after which it went alone
}

// Unit is what is held of one counter; without an ID it is settled.
type Unit struct {
	ID string
	N  int64
}

// Pause is a pause of one scope, and the call that goes alone after it.
type Pause struct {
	Provider, Scope, Name, Why, Detail string

	Until  time.Duration
	Holder string // whose call goes alone; "": nobody's
	Hold   ledger.Hold
	Since  time.Duration
}
