package ledger_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gocloud.dev/docstore"
	"gocloud.dev/docstore/memdocstore"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/publish/publishtest"
)

// store opens an empty store. Every ledger on the opener that it returns sees the same documents.
type store func(t testing.TB) ledger.Opener

// memory is the store of local runs.
func memory(t testing.TB) ledger.Opener {
	t.Helper()
	return kept(t, func(context.Context, string) (ledger.Collection, error) {
		c, err := memdocstore.OpenCollection("ID", nil)
		return ledger.Docstore(c), err
	})
}

// simulated is the store of simulations. It compares whatever is read, so that it also shows whether a ledger changes a value.
func simulated(testing.TB) ledger.Opener { return ledgertest.NewStrictStore().Open }

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
	collections := map[string]ledger.Collection{}
	t.Cleanup(func() {
		for name, c := range collections {
			if err := c.Close(); err != nil {
				t.Errorf("close %s: %v", name, err)
			}
		}
	})
	return func(ctx context.Context, name string) (ledger.Collection, error) {
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

// remove deletes a document, as a person may. No part of Pitstop does that.
func remove(t testing.TB, c ledger.Collection, key string) {
	t.Helper()
	var err error
	switch c := c.(type) {
	case interface {
		Delete(ctx context.Context, key string) error
	}:
		err = c.Delete(t.Context(), key)
	case interface {
		Delete(ctx context.Context, d docstore.Document) error
	}:
		err = c.Delete(t.Context(), map[string]any{"ID": key})
	default:
		t.Fatalf("%T deletes nothing", c)
	}
	must(t, err)
}

// silent is a store that answers no call.
type silent struct{ ledger.Collection }

func (silent) Get(ctx context.Context, _ string) (ledger.Record, error) {
	<-ctx.Done()
	return ledger.Record{}, ctx.Err()
}

func (silent) Put(ctx context.Context, _ *ledger.Record) error    { <-ctx.Done(); return ctx.Err() }
func (silent) Update(ctx context.Context, _ *ledger.Record) error { <-ctx.Done(); return ctx.Err() }

func (silent) Query(ctx context.Context, _ ledger.Query) ([]ledger.Record, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// TestALedgerThatDoesNotAnswerEndsACall after a minute. The time is that of the bubble.
func TestALedgerThatDoesNotAnswerEndsACall(t *testing.T) {
	open := func(context.Context, string) (ledger.Collection, error) { return silent{}, nil }
	l, secrets := ledger.New(open), ledger.NewSecrets(open)
	for name, call := range map[string]func(ctx context.Context) error{
		"a reading": func(ctx context.Context) error {
			_, _, err := l.Workload(ctx, "llama")
			return err
		},
		"a write": func(ctx context.Context) error {
			_, err := l.Save(ctx, incident.Workload{ID: "llama"}, ledger.Revision{})
			return err
		},
		"a query": func(ctx context.Context) error {
			_, err := l.Due(ctx, time.Now())
			return err
		},
		"an update": func(ctx context.Context) error { return secrets.Renew(ctx, "llama@1", time.Now()) },
	} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			err := call(t.Context())
			if took := time.Since(start); took != time.Minute || err == nil || !strings.Contains(err.Error(), "no answer within 60 seconds") {
				t.Errorf("%s: %v after %s, want an error that says so after a minute", name, err, took)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if err := call(ctx); err == nil || strings.Contains(err.Error(), "60 seconds") {
				t.Errorf("%s whose caller leaves after a second: %v, want the caller's own end", name, err)
			}
		})
	}
}
