package ledger

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"pitstop.internal/shared/policy"
)

// Settings are what a deployment is configured with, as far as whoever operates it has to know it.
type Settings struct {
	// Policy says what is allowed at the most, and where the policy file is.
	Policy policy.Config `json:"policy"`
	// Watched are the projects whose TPUs are watched.
	Watched []string `json:"watched"`
}

const (
	settingsID     = "settings"
	settingsSchema = 1
)

// Settings reads what the deployment said last of itself, or ErrNotFound.
func (l *Ledger) Settings(ctx context.Context) (s Settings, err error) {
	_, err = l.load(ctx, Deployment, settingsID, settingsSchema, &s)
	return s, err
}

// SaveSettings has the deployment say what it is configured with. What it has said already is not written again.
func (l *Ledger) SaveSettings(ctx context.Context, s Settings) error {
	for range tries {
		var old Settings
		rev, err := l.load(ctx, Deployment, settingsID, settingsSchema, &old)
		switch {
		case err == nil && reflect.DeepEqual(old, s):
			return nil
		case err != nil && !errors.Is(err, ErrNotFound):
			return err
		}
		if _, err := l.store(ctx, Deployment, settingsID, record{Schema: settingsSchema}, s, rev); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("ledger: %s: %w", Deployment, ErrConflict)
}
