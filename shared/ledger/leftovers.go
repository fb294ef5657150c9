package ledger

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"pitstop.internal/shared/provider"
)

const (
	leftoversID     = "leftovers"
	leftoversSchema = 1
)

// leftovers are those of a deployment, by project and by what was listed to find them: a zone, or a cluster.
type leftovers map[string]map[string][]provider.Leftover

// Leftovers reads what the last sweeps of patrol found left over in the zones of each project, in the order of project and zone.
func (l *Ledger) Leftovers(ctx context.Context) (all []provider.Leftover, err error) {
	found, _, err := load[leftovers](ctx, l, Deployment, leftoversID, leftoversSchema)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	for _, project := range sorted(found) {
		for _, zone := range sorted(found[project]) {
			all = append(all, found[project][zone]...)
		}
	}
	return all, nil
}

// SaveLeftovers stores what a sweep found left over in a project, by zone. What was found in a zone before stays where only known names it:
// it could not be read now. Nothing is written where nothing has changed.
func (l *Ledger) SaveLeftovers(ctx context.Context, project string, now map[string][]provider.Leftover, known []string) error {
	for range tries {
		all, rev, err := load[leftovers](ctx, l, Deployment, leftoversID, leftoversSchema)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return err
		}
		next := map[string][]provider.Leftover{}
		for zone, found := range all[project] {
			if slices.Contains(known, zone) {
				next[zone] = found
			}
		}
		for zone, found := range now {
			if next[zone] = found; len(found) == 0 {
				delete(next, zone)
			}
		}
		if len(next) == len(all[project]) && (len(next) == 0 || reflect.DeepEqual(next, all[project])) {
			return nil
		}
		if all == nil {
			all = leftovers{}
		}
		if all[project] = next; len(next) == 0 {
			delete(all, project)
		}
		if _, err := l.store(ctx, Deployment, leftoversID, Record{Schema: leftoversSchema}, all, rev); !errors.Is(err, ErrConflict) {
			return err
		}
	}
	return fmt.Errorf("ledger: %s: %w", Deployment, ErrConflict)
}

func sorted[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
