package show

import (
	"context"
	"time"

	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/saving"
)

const (
	// wasteful is the likely gain of another interval, in points of goodput, from which on status warns. Lately is how long ago a workload was
	// interrupted last for that: what is lost seldom is little.
	wasteful = 2.0
	lately   = 3 * 24 * time.Hour
)

// historian reads what workloads have lost.
type historian struct {
	ledger *ledger.Ledger
	// known is what was read, and for which state of the workload: a look at a workload without news reads nothing.
	known map[string]remembered
}

type remembered struct {
	state string
	saving.History
}

func newHistorian(l *ledger.Ledger) *historian {
	return &historian{ledger: l, known: map[string]remembered{}}
}

// of reads what a workload has lost: from what is shown of it, and from its rows in the archive.
func (r *historian) of(ctx context.Context, w deployment.Workload, now time.Time) (saving.History, error) {
	state := w.Ended.String()
	if w.Incident != nil {
		state = w.Incident.ID
	}
	if k, ok := r.known[w.ID]; ok && k.state == state {
		return k.History, nil
	}
	archived, err := r.ledger.PastOf(ctx, w.ID)
	if err != nil {
		return saving.History{}, err
	}
	h := saving.HistoryOf(w.Workload, archived, now)
	r.known[w.ID] = remembered{state, h}
	return h, nil
}

// wastes is how a workload saves that likely loses much by the time between its saves; nil is no such one.
func (r *historian) wastes(ctx context.Context, w deployment.Workload, price float64, now time.Time) (*saving.Habit, error) {
	every, atLeast := saving.Every(w.Workload, saving.Unsaved(w.Workload))
	if every == 0 || w.Training.Finished || every <= saving.OftenEnough && w.Incident == nil && now.Sub(w.Ended) > lately {
		return nil, nil //nolint:nilnil // most save often enough
	}
	h, err := r.of(ctx, w, now)
	if err != nil {
		return nil, err
	}
	if s := saving.Of(w.Workload, every, atLeast, h, price); s.Advises() && s.GainPoints > wasteful {
		return &s, nil
	}
	return nil, nil //nolint:nilnil // likewise
}

// resumed is when the training of a workload began again for the last time, as far as that is known: an outage is no time in which it
// could have saved.
func resumed(w deployment.Workload) time.Time {
	at := w.Training.Started
	if w.Closed != nil && w.Closed.Closed.After(at) && !w.Closed.Down.IsZero() {
		at = w.Closed.Closed
	}
	return at
}
