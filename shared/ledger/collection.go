package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Opener opens a collection of a store.
type Opener func(ctx context.Context, name string) (Collection, error)

// Collection is what the ledger needs of a store: single documents by their key, and a few queries. It is safe for concurrent use.
type Collection interface {
	// Get reads the document with a key, or returns ErrNotFound.
	Get(ctx context.Context, key string) (Record, error)
	// Put writes a document and gives the record its new revision. It writes nothing and returns ErrConflict if the document has
	// another revision than the record. A record without a revision is a new document.
	Put(ctx context.Context, r *Record) error
	// Update sets the fields that are not zero in a document that nobody has read, or returns ErrNotFound. Only Secrets writes so.
	Update(ctx context.Context, r *Record) error
	// Query reads the documents that are asked for, in any order.
	Query(ctx context.Context, q Query) ([]Record, error)
	Close() error
}

// Query says which documents of a collection are asked for: all of them, if it is empty.
type Query struct {
	// Due asks only for documents with work due by this time.
	Due time.Time
	// Ranks asks only for documents with a rank in a span, in the order of their ranks; nil for any.
	Ranks *Ranks
	// Prefix asks only for documents whose key begins with it.
	Prefix string
	// Keys asks for nothing but the keys, and Rows for nothing but keys, ranks and rows.
	Keys, Rows bool
}

// Ranks are the ranks after one and before another; an empty one is no bound. The last ones come first where Last says so. Limit bounds them.
type Ranks struct {
	After, Before string
	Last          bool
	Limit         int
}

// Has reports whether a rank is one of them. No document has an empty one.
func (r Ranks) Has(rank string) bool { return rank > r.After && (r.Before == "" || rank < r.Before) }

// Record is a document of any collection.
type Record struct {
	// ID is the key.
	ID     string
	Schema int
	// Due and Expires are absent from the store when they are zero: a zero time would be due for ever.
	Due, Expires time.Time
	// Rank sorts the documents of a collection, and Row is what lists show of one. Both are absent where they are empty.
	Rank, Row string
	Body      string
	Revision  Revision
	// Decoded is where the store keeps the body's value; nil if it keeps none. Who changes the body sets it to nil.
	Decoded *Decoded
}

// Revision is the version of a document that was read. The zero value stands for a missing document.
type Revision struct{ of any }

// NewRevision returns the revision by which a store knows one version of a document.
func NewRevision(of any) Revision { return Revision{of} }

// microseconds is a time as every store keeps it.
func microseconds(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Microsecond)
}

// callTimeout bounds each call: Firestore's client repeats one that nobody answers for as long as its context lasts.
const callTimeout = 60 * time.Second

var errSilent = fmt.Errorf("no answer within %d seconds", callTimeout/time.Second)

// bounded is a collection of which no call takes longer than callTimeout.
type bounded struct{ Collection }

func within(ctx context.Context, call func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, callTimeout, errSilent)
	defer cancel()
	err := call(ctx)
	if err != nil && errors.Is(context.Cause(ctx), errSilent) {
		return fmt.Errorf("%w: %w", errSilent, err)
	}
	return err
}

func (c bounded) Get(ctx context.Context, key string) (r Record, err error) {
	err = within(ctx, func(ctx context.Context) error {
		r, err = c.Collection.Get(ctx, key)
		return err
	})
	return r, err
}

func (c bounded) Put(ctx context.Context, r *Record) error {
	return within(ctx, func(ctx context.Context) error { return c.Collection.Put(ctx, r) })
}

func (c bounded) Update(ctx context.Context, r *Record) error {
	return within(ctx, func(ctx context.Context) error { return c.Collection.Update(ctx, r) })
}

func (c bounded) Query(ctx context.Context, q Query) (found []Record, err error) {
	err = within(ctx, func(ctx context.Context) error {
		found, err = c.Collection.Query(ctx, q)
		return err
	})
	return found, err
}
