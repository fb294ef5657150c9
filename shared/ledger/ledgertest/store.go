package ledgertest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"pitstop.internal/shared/ledger"
)

// Store is a store in memory for simulations, which make millions of calls one after another. It decodes each version of a
// document only once; see ledger.Memory. It passes the ledger's conformance suite for stores.
type Store struct {
	mu          sync.Mutex
	collections map[string]*stored
	revision    int64
	decoded     *ledger.Memory
}

// NewStore returns an empty store, which compares every 1,000th read of a decoded document with its bytes.
func NewStore() *Store { return newStore(1000) }

// NewStrictStore returns an empty store that compares every read. Over it a test shows that nobody changes what he was given.
func NewStrictStore() *Store { return newStore(1) }

func newStore(nth int64) *Store {
	return &Store{collections: map[string]*stored{}, decoded: ledger.NewMemory(nth)}
}

// Open opens a collection; every ledger on this opener sees the same documents.
func (s *Store) Open(_ context.Context, name string) (ledger.Collection, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.collections[name] == nil {
		s.collections[name] = &stored{s: s, at: map[string]*ledger.Record{}}
	}
	return s.collections[name], nil
}

var _ ledger.Opener = (*Store)(nil).Open

// stored is a collection. A record in it is never changed, only replaced.
type stored struct {
	s *Store
	// at has the documents by key, sorted has them in the order of their keys.
	at     map[string]*ledger.Record
	sorted []*ledger.Record
}

var errKey = errors.New("a document needs an ID")

// lock begins a call, which ends with the function that it returns.
func (c *stored) lock() (unlock func()) {
	c.s.decoded.Check()
	c.s.mu.Lock()
	return c.s.mu.Unlock
}

// Get and the methods below implement ledger.Collection.
func (c *stored) Get(_ context.Context, key string) (ledger.Record, error) {
	defer c.lock()()
	if r, ok := c.at[key]; ok {
		return *r, nil
	}
	return ledger.Record{}, ledger.ErrNotFound
}

func (c *stored) Put(_ context.Context, r *ledger.Record) error {
	defer c.lock()()
	if r.ID == "" {
		return errKey
	}
	var revision ledger.Revision
	if old, there := c.at[r.ID]; there {
		revision = old.Revision
	}
	if r.Revision != revision {
		return ledger.ErrConflict
	}
	c.write(r)
	return nil
}

func (c *stored) Update(_ context.Context, r *ledger.Record) error {
	defer c.lock()()
	old, there := c.at[r.ID]
	if !there {
		return ledger.ErrNotFound
	}
	next := *old
	if r.Schema != 0 {
		next.Schema = r.Schema
	}
	if r.Body != "" {
		next.Body = r.Body
	}
	if !r.Due.IsZero() {
		next.Due = r.Due
	}
	if !r.Expires.IsZero() {
		next.Expires = r.Expires
	}
	c.write(&next)
	return nil
}

// write stores a record as the newest version of its document.
func (c *stored) write(r *ledger.Record) {
	c.s.revision++
	r.Revision, r.Decoded = ledger.NewRevision(c.s.revision), c.s.decoded.Place()
	kept := *r
	i, there := c.find(r.ID)
	if !there {
		c.sorted = slices.Insert(c.sorted, i, nil)
	}
	c.sorted[i], c.at[r.ID] = &kept, &kept
}

func (c *stored) find(key string) (i int, there bool) {
	return slices.BinarySearchFunc(c.sorted, key, func(r *ledger.Record, key string) int { return strings.Compare(r.ID, key) })
}

// Delete deletes a document, as a person may in Firestore.
func (c *stored) Delete(_ context.Context, key string) error {
	defer c.lock()()
	if i, there := c.find(key); there {
		c.sorted = slices.Delete(c.sorted, i, i+1)
		delete(c.at, key)
	}
	return nil
}

func (c *stored) Query(_ context.Context, q ledger.Query) (found []ledger.Record, err error) {
	defer c.lock()()
	var fits []*ledger.Record
	for _, r := range c.sorted {
		if due := q.Due.IsZero() || !r.Due.IsZero() && !r.Due.After(q.Due); due && strings.HasPrefix(r.ID, q.Prefix) && (q.Ranks == nil || q.Ranks.Has(r.Rank)) {
			fits = append(fits, r)
		}
	}
	if q.Ranks != nil {
		slices.SortFunc(fits, func(a, b *ledger.Record) int { return strings.Compare(a.Rank, b.Rank) })
		if q.Ranks.Last {
			slices.Reverse(fits)
		}
		fits = fits[:min(len(fits), q.Ranks.Limit)]
	}
	for _, r := range fits {
		switch {
		case q.Keys:
			found = append(found, ledger.Record{ID: r.ID})
		case q.Rows:
			found = append(found, ledger.Record{ID: r.ID, Rank: r.Rank, Row: r.Row})
		default:
			found = append(found, *r)
		}
	}
	return found, nil
}

// Close does nothing, because the documents belong to the store.
func (*stored) Close() error { return nil }

// kept is a document as Save writes it.
type kept struct {
	Collection string    `json:"collection"`
	ID         string    `json:"id"`
	Schema     int       `json:"schema"`
	Due        time.Time `json:"due,omitzero"`
	Expires    time.Time `json:"expires,omitzero"`
	Rank       string    `json:"rank,omitzero"`
	Row        string    `json:"row,omitzero"`
	Body       string    `json:"body"`
}

// Save writes every document, one on each line.
func (s *Store) Save(w io.Writer) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := json.NewEncoder(w)
	for _, name := range slices.Sorted(maps.Keys(s.collections)) {
		for _, r := range s.collections[name].sorted {
			if err := e.Encode(kept{name, r.ID, r.Schema, r.Due, r.Expires, r.Rank, r.Row, r.Body}); err != nil {
				return err
			}
		}
	}
	return nil
}

// Restore puts the documents that Save wrote into an empty store.
func (s *Store) Restore(r io.Reader) error {
	d := json.NewDecoder(r)
	for line := 1; ; line++ {
		var k kept
		switch err := d.Decode(&k); {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("document %d: %w", line, err)
		}
		c, err := s.Open(context.Background(), k.Collection)
		if err != nil {
			return err
		}
		if err := c.Put(context.Background(), &ledger.Record{ID: k.ID, Schema: k.Schema, Due: k.Due, Expires: k.Expires, Rank: k.Rank, Row: k.Row, Body: k.Body}); err != nil {
			return fmt.Errorf("document %d: %s in %s: %w", line, k.ID, k.Collection, err)
		}
	}
}
