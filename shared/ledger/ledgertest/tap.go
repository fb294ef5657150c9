// Package ledgertest stands between a ledger and its store: it counts writes, and lets tests and simulations follow single
// calls, hold them up, fail them, and lose their answers.
package ledgertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"gocloud.dev/docstore"
	"gocloud.dev/docstore/driver"
	"gocloud.dev/gcerrors"

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
	Write      bool
	// About is the key of the document, or the condition of a query.
	About string
	// Query says that it asks for documents by a field; then there is no Doc.
	Query bool
	Doc   map[string]any
}

// Body is the JSON body of the document.
func (c Call) Body() string {
	s, _ := c.Doc["body"].(string)
	return s
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
	return func(ctx context.Context, name string) (*docstore.Collection, error) {
		inner, err := open(ctx, name)
		if err != nil {
			return nil, err
		}
		return docstore.NewCollection(&tapped{tap: t, name: name, inner: inner}), nil
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

// tapped is a collection behind a tap. It hands every call on to the collection's own driver.
type tapped struct {
	tap   *Tap
	name  string
	inner *docstore.Collection
}

// Key and the methods below implement the driver of a collection.
func (c *tapped) Key(d driver.Document) (any, error) { return d.GetField("ID") }
func (c *tapped) RevisionField() string              { return docstore.DefaultRevisionField }

func (c *tapped) RunActions(ctx context.Context, actions []*driver.Action, _ *driver.RunActionsOptions) driver.ActionListError {
	errs := make([]error, len(actions))
	for _, a := range actions {
		errs[a.Index] = c.run(ctx, a)
	}
	return driver.NewActionListError(errs)
}

func (c *tapped) run(ctx context.Context, a *driver.Action) error {
	doc, ok := a.Doc.Origin.(map[string]any)
	if !ok {
		return fmt.Errorf("the ledger writes maps, not %T", a.Doc.Origin)
	}
	call := Call{Collection: c.name, Write: a.Kind != driver.Get, Doc: doc}
	call.About, _ = doc["ID"].(string)
	err := c.tap.before(ctx, call)
	switch {
	case call.Write && errors.Is(err, ErrUnwritten):
		return nil
	case err != nil:
		return err
	}
	switch a.Kind {
	case driver.Get:
		err = c.inner.Get(ctx, doc)
	case driver.Create:
		err = c.inner.Create(ctx, doc)
	case driver.Replace:
		err = c.inner.Replace(ctx, doc)
	case driver.Update:
		if c.name != ledger.Values {
			return fmt.Errorf("a ledger never updates %s: that would be a blind write", c.name)
		}
		mods := docstore.Mods{}
		for _, m := range a.Mods {
			mods[docstore.FieldPath(strings.Join(m.FieldPath, "."))] = m.Value
		}
		err = c.inner.Update(ctx, doc, mods)
	default:
		return fmt.Errorf("a ledger never calls %v: that would be a blind write", a.Kind)
	}
	if call.Write && err == nil {
		c.tap.mu.Lock()
		c.tap.writes++
		c.tap.mu.Unlock()
	}
	return c.tap.after(ctx, call, err)
}

func (c *tapped) RunGetQuery(ctx context.Context, q *driver.Query) (driver.DocumentIterator, error) {
	call := Call{Collection: c.name, Query: true}
	inner := c.inner.Query()
	for _, f := range q.Filters {
		field := strings.Join(f.FieldPath, ".")
		inner = inner.Where(docstore.FieldPath(field), f.Op, f.Value)
		call.About += "where " + field + f.Op
	}
	var fields []docstore.FieldPath
	for _, f := range q.FieldPaths {
		field := strings.Join(f, ".")
		fields = append(fields, docstore.FieldPath(field))
		call.About += "only " + field
	}
	if err := c.tap.before(ctx, call); err != nil {
		return nil, err
	}
	it := iterator{inner.Get(ctx, fields...)}
	return it, c.tap.after(ctx, call, nil)
}

type iterator struct{ *docstore.DocumentIterator }

func (i iterator) Next(ctx context.Context, d driver.Document) error {
	return i.DocumentIterator.Next(ctx, d.Origin)
}

func (c *tapped) QueryPlan(*driver.Query) (string, error) { return "", nil }
func (c *tapped) RevisionToBytes(any) ([]byte, error)     { return nil, nil }
func (c *tapped) BytesToRevision([]byte) (any, error)     { return nil, nil } //nolint:nilnil // the ledger never asks
func (c *tapped) As(any) bool                             { return false }
func (c *tapped) ErrorAs(error, any) bool                 { return false }
func (c *tapped) ErrorCode(err error) gcerrors.ErrorCode  { return gcerrors.Code(err) }

func (c *tapped) Close() error {
	c.tap.mu.Lock()
	defer c.tap.mu.Unlock()
	c.tap.closed++
	return nil
}
