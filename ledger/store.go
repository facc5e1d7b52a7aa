package ledger

import (
	"context"
	"time"
)

// Store is a place that all processes ask: memory, a file, a server. It is safe for
// concurrent use.
type Store interface {
	// Exchange carries out a batch at one instant of the store's clock, undivided: no
	// other batch sees a part of it. The order is that of Batch's fields. An error means
	// that it is not known whether it was carried out; the client says it again (but for
	// Takes), so everything else has to be harmless when heard twice: settlements by
	// their hold, charges and news by Batch.Seq. The error's text is shown (in
	// Status.Detail), so it holds no secret. What b holds may be read, not changed.
	Exchange(ctx context.Context, b *Batch) (*Reply, error)
	// Close frees what the store holds in this process.
	Close() error
}

// Batch is what a client says in one round trip.
type Batch struct {
	Holder string        // who says it: one client, named anew at each start
	Seq    uint64        // of this holder, from 1; the same where a batch is said again after an error. A store that has carried out a batch of that number (or a later one) of the holder skips all of it but Forget, Takes and Peek
	Lease  time.Duration // without another batch the holder is dead after so long
	Gone   bool          // the holder leaves: its lease is over with this batch
	// Epoch is the state of the store that the client knows; "": none yet. A store that
	// has another one (it was emptied, replaced, or failed over to a copy without
	// memory) carries out nothing but says so in Reply.Epoch. The first time that it hears
	// a foreign Epoch it refuses all Takes for Grace, so that all clients can tell what
	// they know first.
	Epoch string
	// Known is Reply.Version of the last reply; 0: none.
	Known uint64

	Forget      []string // providers
	Holds       []Held   // that a store which has lost its state must know
	Charges     []Charge
	Settlements []Settlement
	News        []News
	Takes       []Asked
	Peek        []*Counter
}

// Grace is how long a store that has lost its state grants nothing: a client that hangs
// as that happens tells what it knows a second and a half later.
const Grace = 2 * time.Second

// Held is units that are held by an earlier grant.
type Held struct {
	Hold Hold
	At   time.Time // when they were taken
	Take Take
	Part []int // places in Take.Units that are held still; nil: all
}

// Asked is a Take with the name that its hold will have if it is granted.
type Asked struct {
	Hold Hold // unique within Holder
	Take Take
}

// Reply is the store's answer.
type Reply struct {
	Epoch    string // of the store's state
	Replicas int    // holders whose lease runs
	Rank     int    // of the one that asked, in the order of their names
	Grants   []Grant
	Usages   []Usage // of Peek
	// Version changes whenever a pause begins, changes or ends; Pauses are all that are
	// there, given where Version is not Batch.Known.
	Version uint64
	Pauses  []Pause
	// Warning is what a person should know of the store (it evicts keys, its clock has
	// stepped), without a secret; "": nothing.
	Warning string
}
