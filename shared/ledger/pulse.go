package ledger

import (
	"context"
	"errors"
	"fmt"
	"time"

	"pitstop.internal/shared/view"
)

// Pulse shows whether Pitstop sees a project: patrol writes it at the end of each tick.
type Pulse struct {
	// Ticked is when the last tick ended, and Swept when patrol last listed all zones and read all workloads.
	Ticked time.Time `json:"ticked"`
	Swept  time.Time `json:"swept,omitzero"`
	// Faults are what the last tick could not read or do, a few of them; Failed counts them all.
	Faults []string `json:"faults,omitempty"`
	Failed int      `json:"failed,omitzero"`
	// Queues are what waited for Pitstop's functions then.
	Queues []view.Queue `json:"queues,omitempty"`
}

const (
	pulseSchema = 1
	// quietFor is how old the last tick may be: patrol ticks every minute, and one tick may be lost.
	quietFor = 5 * time.Minute
	// maxFaults is how many faults a pulse holds.
	maxFaults = 3
)

// Pulse reads the last pulse of a project, or ErrNotFound.
func (l *Ledger) Pulse(ctx context.Context, project string) (p Pulse, err error) {
	p, _, err = load[Pulse](ctx, l, Deployment, pulseOf(project), pulseSchema)
	return p, err
}

// Sight says whether Pitstop sees a project.
func (l *Ledger) Sight(ctx context.Context, project string, now time.Time) (view.Sight, error) {
	p, err := l.Pulse(ctx, project)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return view.Sight{}, err
	}
	c, err := l.Canary(ctx, project)
	return view.Sight{
		Project: project, Ticked: p.Ticked, Failed: p.Failed, Faults: p.Faults, Blind: now.Sub(p.Ticked) > quietFor,
		CanaryReturned: c.Returned, CanaryMissing: c.Missing(now), Queues: p.Queues,
	}, err
}

func pulseOf(project string) string { return "pulse-" + project }

// SavePulse stores the pulse of a project. A later one stays.
func (l *Ledger) SavePulse(ctx context.Context, project string, p Pulse) error {
	p.Failed, p.Faults = len(p.Faults), p.Faults[:min(len(p.Faults), maxFaults)]
	for range tries {
		old, rev, err := load[Pulse](ctx, l, Deployment, pulseOf(project), pulseSchema)
		switch {
		case err == nil && !p.Ticked.After(old.Ticked):
			return nil
		case err != nil && !errors.Is(err, ErrNotFound):
			return err
		}
		if _, err := l.store(ctx, Deployment, pulseOf(project), Record{Schema: pulseSchema}, p, rev); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("ledger: %s: %w", Deployment, ErrConflict)
}
