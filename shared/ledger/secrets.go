package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/recent"
)

// Values is the collection of the second database: the metadata values of TPUs, which may be secrets, by the name of their
// specification.
const Values = "values"

const (
	// KeepValues is how long values are kept after the last document that named them.
	KeepValues = 30 * 24 * time.Hour
	// renewEvery is how often that time is extended while a document names them.
	renewEvery   = 24 * time.Hour
	valuesSchema = 1
)

// Secrets is the second database. A reader of the ledger needs no access here: patrol and recreate write without reading
// first, and only recreate reads. It is safe for concurrent use.
type Secrets struct {
	open  Opener
	conns *connections
	// written are the names that this process wrote, so that unchanged values are written only once a day.
	written recent.Memory[string, written]
}

type written struct {
	// at is when the values were written, renewed when their lifetime was last extended.
	at, renewed time.Time
	sum         string
}

// NewSecrets returns the second database; its first use opens the collection.
func NewSecrets(open Opener) *Secrets { return &Secrets{open: open, conns: newConnections()} }

// SecretsConfig is the part of a function's environment that the second database needs.
type SecretsConfig struct {
	// Database is the Firestore database.
	Database string `env:"SECRETS_DATABASE, default=pitstop-secrets"`
}

// Open returns the deployed second database of a project. Nothing is connected before its first use.
func (c SecretsConfig) Open(project string) *Secrets {
	return NewSecrets(Firestore(project, c.Database))
}

// Close closes the collection, if it was opened.
func (s *Secrets) Close() error { return s.conns.close() }

// Keep stores values under the name of their specification, and sets their lifetime. sum shows whether this process wrote
// the same values last.
func (s *Secrets) Keep(ctx context.Context, name string, values map[string]string, sum string, now time.Time) error {
	if last, ok := s.written.Get(name); ok && last.sum == sum && now.Sub(last.at) < renewEvery {
		return nil
	}
	body, err := json.Marshal(values, json.Deterministic(true))
	switch {
	case err != nil:
		return fmt.Errorf("ledger: %s of %s: %w", Values, name, err)
	case len(body) > MaxBody:
		return fault.Permanentf("ledger: %s of %s: %d bytes are more than the limit of %d for a document", Values, name, len(body), MaxBody)
	}
	r := Record{Schema: valuesSchema, Body: string(body), Expires: expires(now)}
	for range tries {
		there, err := s.update(ctx, name, r)
		if err == nil && !there {
			there, err = s.create(ctx, name, r)
		}
		if err != nil {
			return err
		}
		if there {
			s.written.Put(name, written{now, now, sum}, len(name)+len(sum))
			return nil
		}
	}
	return fmt.Errorf("ledger: %s of %s: %w", Values, name, ErrConflict)
}

// Renew extends the lifetime of the values under a name. If there are none, it does not create them.
func (s *Secrets) Renew(ctx context.Context, name string, now time.Time) error {
	last, ok := s.written.Get(name)
	if ok && now.Sub(last.renewed) < renewEvery {
		return nil
	}
	there, err := s.update(ctx, name, Record{Expires: expires(now)})
	if err == nil {
		if !there {
			last.sum = "" // the written values are gone
		}
		s.written.Put(name, written{last.at, now, last.sum}, len(name)+len(last.sum))
	}
	return err
}

// Of reads the values that belong to a specification, or ErrNotFound. They may be shared, so a caller changes only a copy.
func (s *Secrets) Of(ctx context.Context, name string) (values map[string]string, err error) {
	c, k, err := s.at(ctx, name)
	if err != nil {
		return nil, err
	}
	r, err := c.Get(ctx, k)
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, fmt.Errorf("ledger: %s of %s: %w", Values, name, ErrNotFound)
	case err != nil:
		return nil, fmt.Errorf("ledger: read %s of %s: %w", Values, name, err)
	}
	return decode[map[string]string](Values, name, valuesSchema, r)
}

// expires is when values that a document names now may be forgotten.
func expires(now time.Time) time.Time { return microseconds(now.Add(KeepValues)) }

// at returns the collection, and the key of a name.
func (s *Secrets) at(ctx context.Context, name string) (Collection, string, error) {
	k, err := key(name)
	if err != nil {
		return nil, "", err
	}
	c, err := s.conns.get(ctx, s.open, Values)
	if err != nil {
		return nil, "", fmt.Errorf("ledger: open %s: %w", Values, err)
	}
	return c, k, nil
}

// update sets fields of a document without reading it; there is false if the document is missing.
func (s *Secrets) update(ctx context.Context, name string, fields Record) (there bool, err error) {
	c, k, err := s.at(ctx, name)
	if err != nil {
		return false, err
	}
	fields.ID = k
	err = c.Update(ctx, &fields)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ledger: write %s of %s: %w", Values, name, err)
	}
	return true, nil
}

// create writes a document that does not exist yet; done is false if another writer was faster, whose content may be older.
func (s *Secrets) create(ctx context.Context, name string, r Record) (done bool, err error) {
	c, k, err := s.at(ctx, name)
	if err != nil {
		return false, err
	}
	r.ID = k
	err = c.Put(ctx, &r)
	if errors.Is(err, ErrConflict) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("ledger: write %s of %s: %w", Values, name, err)
	}
	return true, nil
}
