package ledger

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Told records the notifications sent about one incident to one target.
type Told struct {
	// Thread is the target's name of the thread or message about the incident.
	Thread string `json:"thread,omitzero"`
	// Steps are the sent steps, each once; Number is the number of the newest update among them.
	Steps  []string `json:"steps,omitempty"`
	Number int      `json:"number,omitzero"`
	// Sending is the step that is being sent. It is saved before the call, so if a crash leaves it here, it may have arrived.
	Sending *Sending `json:"sending,omitempty"`
	// Unsure are steps that may or may not have arrived, once for each such call; they are sent again.
	Unsure []string `json:"unsure,omitempty"`
}

// Sending is one step that is being sent.
type Sending struct {
	Step   string    `json:"step"`
	Number int       `json:"number"`
	At     time.Time `json:"at"`
}

// Has reports whether a step was sent, or an update with a higher number.
func (t Told) Has(step string, number int) bool {
	return slices.Contains(t.Steps, step) || number < t.Number
}

// KeepTold is how long the record is kept after the last notification: longer than a message can come late.
const KeepTold = 90 * 24 * time.Hour

const toldSchema = 1

// Journal is the third database: what notify told people. Notify alone calls addresses outside, so it may write here and only
// read the ledger. A Journal is safe for concurrent use.
type Journal struct{ documents *Ledger }

// NewJournal returns the third database; its first use opens the collection.
func NewJournal(open Opener) *Journal { return &Journal{New(open)} }

// JournalConfig is the part of a function's environment that the third database needs.
type JournalConfig struct {
	// Database is the Firestore database.
	Database string `env:"TOLD_DATABASE, default=pitstop-told"`
}

// Open returns the deployed third database of a project. Nothing is connected before its first use.
func (c JournalConfig) Open(project string) *Journal {
	return NewJournal(Firestore(project, c.Database))
}

// Close closes the collection, if it was opened.
func (j *Journal) Close() error { return j.documents.Close() }

// Told reads the notifications sent about an incident to a target; it is empty if there is no record. It may be shared, so a
// caller changes only a copy.
func (j *Journal) Told(ctx context.Context, place, workload, incident string) (t Told, rev Revision, err error) {
	t, rev, err = load[Told](ctx, j.documents, Tellings, toldID(place, workload, incident), toldSchema)
	if errors.Is(err, ErrNotFound) {
		return Told{}, Revision{}, nil
	}
	return t, rev, err
}

// Save writes the record of notifications about an incident if it has not changed since it was read; otherwise it
// returns ErrConflict.
func (j *Journal) Save(ctx context.Context, place, workload, incident string, t Told, rev Revision, now time.Time) (Revision, error) {
	return j.documents.store(ctx, Tellings, toldID(place, workload, incident), Record{Schema: toldSchema, Expires: now.Add(KeepTold)}, t, rev)
}

func toldID(place, workload, incident string) string { return place + "/" + workload + "/" + incident }
