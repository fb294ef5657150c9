package ledger_test

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gocloud.dev/docstore"
	"gocloud.dev/docstore/driver"
	"gocloud.dev/docstore/memdocstore"
	"gocloud.dev/gcerrors"

	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/publish/publishtest"
)

// store opens an empty store. Every ledger on the opener that it returns sees the same documents.
type store func(t testing.TB) ledger.Opener

// memory is the store of local runs.
func memory(t testing.TB) ledger.Opener {
	t.Helper()
	return kept(t, func(context.Context, string) (*docstore.Collection, error) {
		return memdocstore.OpenCollection("ID", nil)
	})
}

// projects numbers the projects in Firestore's emulator: no test meets the documents of another one.
var projects atomic.Int64

// firestore is the store of a deployment, as far as Google's emulator is one.
func firestore(t testing.TB) ledger.Opener {
	t.Helper()
	t.Setenv("FIRESTORE_EMULATOR_HOST", publishtest.Emulator(t, publishtest.Firestore))
	return kept(t, ledger.Firestore(fmt.Sprintf("ledger-test-%d", projects.Add(1)), ledger.Database))
}

// kept opens every collection once and closes it when the test is over: in memory the collection is the store.
func kept(t testing.TB, open ledger.Opener) ledger.Opener {
	t.Helper()
	var mu sync.Mutex
	collections := map[string]*docstore.Collection{}
	t.Cleanup(func() {
		for name, c := range collections {
			if err := c.Close(); err != nil {
				t.Errorf("close %s: %v", name, err)
			}
		}
	})
	return func(ctx context.Context, name string) (*docstore.Collection, error) {
		mu.Lock()
		defer mu.Unlock()
		if c, ok := collections[name]; ok {
			return c, nil
		}
		c, err := open(ctx, name)
		if err == nil {
			collections[name] = c
		}
		return c, err
	}
}

// tap sits between a ledger and its store: it counts the writes that took effect, and lets a test fail or follow single
// calls.
type tap struct {
	mu    sync.Mutex
	count int
	// fail returns why a call fails before the store sees it; nil lets all of them pass.
	fail func(c call) error
	// after returns what becomes of a call that the store has answered; nil leaves the answers as they are.
	after func(c call, err error) error
	// wrote is told of every write that took effect, one at a time.
	wrote func(c call)
	// closed counts the collections that were closed.
	closed int
}

// call is one call of the store.
type call struct {
	collection string
	write      bool
	doc        map[string]any
}

// writes is the number of writes that took effect.
func (t *tap) writes() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.count
}

// on has an opener go through the tap.
func (t *tap) on(open ledger.Opener) ledger.Opener {
	return func(ctx context.Context, name string) (*docstore.Collection, error) {
		inner, err := open(ctx, name)
		if err != nil {
			return nil, err
		}
		return docstore.NewCollection(&tapped{tap: t, name: name, inner: inner}), nil
	}
}

// tapped is a collection behind a tap. It hands every call on to the collection's own driver.
type tapped struct {
	*tap
	name  string
	inner *docstore.Collection
}

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
	what := call{collection: c.name, write: a.Kind != driver.Get, doc: doc}
	if c.fail != nil {
		if err := c.fail(what); err != nil {
			return err
		}
	}
	var err error
	switch a.Kind {
	case driver.Get:
		err = c.inner.Get(ctx, doc)
	case driver.Create:
		err = c.inner.Create(ctx, doc)
	case driver.Replace:
		err = c.inner.Replace(ctx, doc)
	default:
		return fmt.Errorf("a ledger never calls %v: that would be a blind write", a.Kind)
	}
	if what.write && err == nil {
		c.mu.Lock()
		c.count++
		if c.wrote != nil {
			c.wrote(call{collection: c.name, write: true, doc: maps.Clone(doc)})
		}
		c.mu.Unlock()
	}
	if c.after != nil {
		return c.after(what, err)
	}
	return err
}

func (c *tapped) RunGetQuery(ctx context.Context, q *driver.Query) (driver.DocumentIterator, error) {
	inner := c.inner.Query()
	for _, f := range q.Filters {
		inner = inner.Where(docstore.FieldPath(strings.Join(f.FieldPath, ".")), f.Op, f.Value)
	}
	var fields []docstore.FieldPath
	for _, f := range q.FieldPaths {
		fields = append(fields, docstore.FieldPath(strings.Join(f, ".")))
	}
	return iterator{inner.Get(ctx, fields...)}, nil
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

// Close leaves the store open: it is the test's.
func (c *tapped) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed++
	return nil
}
