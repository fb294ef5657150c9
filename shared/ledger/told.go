package ledger

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Told is what people were told of one incident at one place.
type Told struct {
	// Thread is what the place calls the thread or message that tells of it.
	Thread string `json:"thread,omitzero"`
	// Steps are what was told, each once; Number is that of the newest update among them.
	Steps  []string `json:"steps,omitempty"`
	Number int      `json:"number,omitzero"`
	// Sending is what is being told: it was saved before the call, so what is left of it by a crash may have arrived.
	Sending *Sending `json:"sending,omitempty"`
	// Unsure are steps of which nobody knows whether they have arrived, each as often as that was so; they are said again.
	Unsure []string `json:"unsure,omitempty"`
}

// Sending is one step that is being told.
type Sending struct {
	Step   string    `json:"step"`
	Number int       `json:"number"`
	At     time.Time `json:"at"`
}

// Has reports whether a step was told, or one that is newer than an update of this number.
func (t Told) Has(step string, number int) bool {
	return slices.Contains(t.Steps, step) || number < t.Number
}

// KeepTold is how long after the last word it is remembered that people were told: longer than a message can come late.
const KeepTold = 90 * 24 * time.Hour

const toldSchema = 1

// Told reads what people were told of an incident at a place; nothing yet, if there is no record.
func (l *Ledger) Told(ctx context.Context, place, workload, incident string) (t Told, rev Revision, err error) {
	rev, err = l.load(ctx, Tellings, toldID(place, workload, incident), toldSchema, &t)
	if errors.Is(err, ErrNotFound) {
		return Told{}, Revision{}, nil
	}
	return t, rev, err
}

// SaveTold writes what people were told of an incident if it still is what was read; else ErrConflict.
func (l *Ledger) SaveTold(ctx context.Context, place, workload, incident string, t Told, rev Revision, now time.Time) (Revision, error) {
	return l.store(ctx, Tellings, toldID(place, workload, incident), record{Schema: toldSchema, Expires: now.Add(KeepTold)}, t, rev)
}

func toldID(place, workload, incident string) string { return place + "/" + workload + "/" + incident }
