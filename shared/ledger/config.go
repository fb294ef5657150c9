package ledger

import (
	"context"
	"time"
)

// Config is the part of a function's environment that the ledger needs.
type Config struct {
	// ProjectID is the project of the database.
	ProjectID string `env:"PROJECT_ID, required"`
	// Database is the Firestore database.
	Database string `env:"LEDGER_DATABASE, default=pitstop"`
}

// Open returns the deployed ledger. Nothing is connected before its first use.
func (c Config) Open() *Ledger { return New(Firestore(c.ProjectID, c.Database)) }

// BrakeConfig is the part of a function's environment that bounds destructive calls.
type BrakeConfig struct {
	PerProject int `env:"BRAKE_PER_PROJECT, default=30"`
	PerZone    int `env:"BRAKE_PER_ZONE, default=10"`
}

// Limits are the bounds per hour.
func (c BrakeConfig) Limits() Limits { return Limits{Project: c.PerProject, Zone: c.PerZone} }

// Sleep waits in real time, or until the context ends.
func Sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
