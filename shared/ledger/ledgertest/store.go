package ledgertest

import (
	"context"
	"errors"
	"io"
	"maps"
	"sync"
	"time"

	"gocloud.dev/docstore"
	"gocloud.dev/docstore/driver"
	"gocloud.dev/gcerrors"

	"pitstop.internal/shared/ledger"
)

// Store is a store for simulations, which make millions of calls one after another: memdocstore starts a goroutine for each.
// It passes the ledger's conformance suite for stores.
type Store struct {
	mu       sync.Mutex
	docs     map[string]map[string]map[string]any
	revision int64
}

// NewStore returns an empty store.
func NewStore() *Store { return &Store{docs: map[string]map[string]map[string]any{}} }

// Open opens a collection; every ledger on this opener sees the same documents.
func (s *Store) Open(_ context.Context, name string) (*docstore.Collection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.docs[name] == nil {
		s.docs[name] = map[string]map[string]any{}
	}
	return docstore.NewCollection(&stored{s: s, docs: s.docs[name]}), nil
}

var _ ledger.Opener = (*Store)(nil).Open

type stored struct {
	s    *Store
	docs map[string]map[string]any
}

var (
	errNotFound = errors.New("there is no such document")
	errExists   = errors.New("the document is there already")
	errChanged  = errors.New("the document has changed")
	errKey      = errors.New("a document needs an ID")
)

// Key and the methods below implement the driver of a collection.
func (c *stored) Key(d driver.Document) (any, error) { return d.GetField("ID") }
func (c *stored) RevisionField() string              { return docstore.DefaultRevisionField }

func (c *stored) RunActions(_ context.Context, actions []*driver.Action, _ *driver.RunActionsOptions) driver.ActionListError {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	errs := make([]error, len(actions))
	for _, a := range actions {
		errs[a.Index] = c.run(a)
	}
	return driver.NewActionListError(errs)
}

func (c *stored) run(a *driver.Action) error {
	doc, ok := a.Doc.Origin.(map[string]any)
	key, isString := a.Key.(string)
	if !ok || !isString || key == "" {
		return errKey
	}
	old, there := c.docs[key]
	if a.Kind == driver.Get {
		if !there {
			return errNotFound
		}
		maps.Copy(doc, old)
		return nil
	}
	if a.Kind == driver.Delete {
		delete(c.docs, key)
		return nil
	}
	if a.Kind == driver.Create && there {
		return errExists
	}
	if a.Kind == driver.Update {
		if !there {
			return errNotFound
		}
		next := maps.Clone(old)
		for _, m := range a.Mods {
			next[m.FieldPath[0]] = m.Value
		}
		doc = next
	}
	if a.Kind == driver.Replace {
		if !there {
			return errNotFound
		}
		if rev := doc[docstore.DefaultRevisionField]; rev != nil && rev != old[docstore.DefaultRevisionField] {
			return errChanged
		}
	}
	c.s.revision++
	doc[docstore.DefaultRevisionField] = c.s.revision
	c.docs[key] = maps.Clone(doc)
	return nil
}

// RunGetQuery supports the queries of the ledger: documents whose time is at or before another one, and documents of an
// older schema.
func (c *stored) RunGetQuery(_ context.Context, q *driver.Query) (driver.DocumentIterator, error) {
	c.s.mu.Lock()
	defer c.s.mu.Unlock()
	found := &listed{}
	for _, d := range c.docs {
		fits := true
		for _, f := range q.Filters {
			switch v := d[f.FieldPath[0]].(type) {
			case time.Time:
				by, ok := f.Value.(time.Time)
				fits = fits && ok && f.Op == "<=" && !v.After(by)
			case int64:
				below, ok := f.Value.(int)
				fits = fits && ok && f.Op == "<" && v < int64(below)
			default:
				fits = false
			}
		}
		if fits {
			found.docs = append(found.docs, d)
		}
	}
	return found, nil
}

type listed struct{ docs []map[string]any }

func (l *listed) Next(_ context.Context, d driver.Document) error {
	doc, ok := d.Origin.(map[string]any)
	if !ok {
		return errKey
	}
	if len(l.docs) == 0 {
		return io.EOF
	}
	maps.Copy(doc, l.docs[0])
	l.docs = l.docs[1:]
	return nil
}

func (*listed) Stop()       {}
func (*listed) As(any) bool { return false }

func (c *stored) QueryPlan(*driver.Query) (string, error) { return "", nil }
func (c *stored) RevisionToBytes(any) ([]byte, error)     { return nil, nil }
func (c *stored) BytesToRevision([]byte) (any, error)     { return nil, nil } //nolint:nilnil // the ledger never asks
func (c *stored) As(any) bool                             { return false }
func (c *stored) ErrorAs(error, any) bool                 { return false }
func (c *stored) Close() error                            { return nil }

func (c *stored) ErrorCode(err error) gcerrors.ErrorCode {
	switch {
	case errors.Is(err, errNotFound):
		return gcerrors.NotFound
	case errors.Is(err, errExists):
		return gcerrors.AlreadyExists
	case errors.Is(err, errChanged):
		return gcerrors.FailedPrecondition
	case errors.Is(err, errKey):
		return gcerrors.InvalidArgument
	}
	return gcerrors.Unknown
}
