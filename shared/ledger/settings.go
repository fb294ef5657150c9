package ledger

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	"pitstop.internal/shared/policy"
)

// Settings is a deployment's configuration, as far as its operator must know it.
type Settings struct {
	// Policy says the upper limit of permissions, and the place of the policy file.
	Policy policy.Config `json:"policy"`
	// Watched are the projects whose TPUs are watched.
	Watched []string `json:"watched"`
}

const (
	settingsID     = "settings"
	settingsSchema = 1
)

// Settings reads the deployment's last settings, or ErrNotFound.
func (l *Ledger) Settings(ctx context.Context) (s Settings, err error) {
	s, _, err = load[Settings](ctx, l, Deployment, settingsID, settingsSchema)
	return s, err
}

// SaveSettings stores the deployment's configuration. Unchanged settings are not written again.
func (l *Ledger) SaveSettings(ctx context.Context, s Settings) error {
	for range tries {
		old, rev, err := load[Settings](ctx, l, Deployment, settingsID, settingsSchema)
		switch {
		case err == nil && reflect.DeepEqual(old, s):
			return nil
		case err != nil && !errors.Is(err, ErrNotFound):
			return err
		}
		if _, err := l.store(ctx, Deployment, settingsID, Record{Schema: settingsSchema}, s, rev); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("ledger: %s: %w", Deployment, ErrConflict)
}
