// Package ledgertest stands between a ledger and its store: it counts writes, and lets tests and simulations follow single
// calls, hold them up, fail them, and lose their answers.
package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"pitstop.internal/shared/ledger"
)

// ErrUnwritten makes a write look done to its writer, though the store never sees it.
var ErrUnwritten = errors.New("not written")

// Tap lets calls of a store pass or not. Its fields are set before or between calls.
type Tap struct {
	// Before returns why a call fails before the store sees it; nil lets all of them pass. A write for which it returns
	// ErrUnwritten succeeds, as far as its writer can tell.
	Before func(ctx context.Context, c Call) error
	// After returns the result of a call that the store has answered; nil leaves the answers as they are.
	After func(ctx context.Context, c Call, err error) error

	mu     sync.Mutex
	writes int
	closed int
}

// Call is one call of the store.
type Call struct {
	Collection string
	// Write says that it writes, Creates that no document may be there before.
	Write, Creates bool
	// About is the key of the document, or the condition of a query.
	About string
	// Query says that it asks for documents by a field; then there is no Doc.
	Query bool
	// Doc is the document that is written or was read; before it is read it has only its key. Changes pass the tap.
	Doc *ledger.Record
}

// Body is the JSON body of the document.
func (c Call) Body() string {
	if c.Doc == nil {
		return ""
	}
	return c.Doc.Body
}

// Writes is the number of writes that took effect, Closed that of the collections that were closed.
func (t *Tap) Writes() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.writes
}

// Closed is the number of collections that were closed.
func (t *Tap) Closed() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.closed
}

// On sends an opener's calls through the tap. The collections stay open when the ledger closes them, because they belong to
// their maker.
func (t *Tap) On(open ledger.Opener) ledger.Opener {
	return func(ctx context.Context, name string) (ledger.Collection, error) {
		inner, err := open(ctx, name)
		if err != nil {
			return nil, err
		}
		return &tapped{tap: t, name: name, inner: inner}, nil
	}
}

func (t *Tap) before(ctx context.Context, c Call) error {
	if t.Before == nil {
		return nil
	}
	return t.Before(ctx, c)
}

func (t *Tap) after(ctx context.Context, c Call, err error) error {
	if t.After == nil {
		return err
	}
	return t.After(ctx, c, err)
}

// tapped is a collection behind a tap.
type tapped struct {
	tap   *Tap
	name  string
	inner ledger.Collection
}

// Get and the methods below implement ledger.Collection.
func (c *tapped) Get(ctx context.Context, key string) (ledger.Record, error) {
	doc := ledger.Record{ID: key}
	call := Call{Collection: c.name, About: key, Doc: &doc}
	err := c.tap.before(ctx, call)
	if err != nil {
		return ledger.Record{}, err
	}
	doc, err = c.inner.Get(ctx, key)
	err = c.tap.after(ctx, call, err)
	return doc, err
}

func (c *tapped) Put(ctx context.Context, r *ledger.Record) error {
	return c.write(ctx, r, r.Revision == ledger.Revision{}, c.inner.Put)
}

func (c *tapped) Update(ctx context.Context, r *ledger.Record) error {
	if c.name != ledger.Values {
		return fmt.Errorf("a ledger never updates %s: that would be a blind write", c.name)
	}
	return c.write(ctx, r, false, c.inner.Update)
}

func (c *tapped) write(ctx context.Context, r *ledger.Record, creates bool, write func(context.Context, *ledger.Record) error) error {
	call := Call{Collection: c.name, Write: true, Creates: creates, About: r.ID, Doc: r}
	err := c.tap.before(ctx, call)
	if errors.Is(err, ErrUnwritten) {
		return nil
	}
	if err != nil {
		return err
	}
	err = write(ctx, r)
	if err == nil {
		c.tap.mu.Lock()
		c.tap.writes++
		c.tap.mu.Unlock()
	}
	return c.tap.after(ctx, call, err)
}

func (c *tapped) Query(ctx context.Context, q ledger.Query) ([]ledger.Record, error) {
	call := Call{Collection: c.name, Query: true, About: about(q)}
	if err := c.tap.before(ctx, call); err != nil {
		return nil, err
	}
	found, err := c.inner.Query(ctx, q)
	return found, c.tap.after(ctx, call, err)
}

// about is the condition of a query. A simulation's faults hang on these words.
func about(q ledger.Query) (words string) {
	if !q.Due.IsZero() {
		words += "where due<="
	}
	if q.Keys {
		words += "only ID"
	}
	if q.Ranks != nil || q.Prefix != "" || q.Rows {
		words += "for a page"
	}
	return words
}

func (c *tapped) Close() error {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	c.tap.closed++
	return nil
}
