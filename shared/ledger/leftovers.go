package ledger

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pitstop.internal/shared/provider"
)

const (
	leftoversID     = "leftovers"
	leftoversSchema = 1
)

// mostLeftovers is how many of a zone or cluster are kept by name. All zones share one document.
const mostLeftovers = 100

// sweptAgain is how far apart two sweeps are at most that found something all the time between. Longer ago, nobody knows.
const sweptAgain = time.Hour

// leftovers are those of a deployment, by project and by what was listed to find them: a zone, or a cluster.
type leftovers map[string]map[string][]provider.Leftover

// Sweep is what a sweep of patrol found left over in a project.
type Sweep struct {
	At time.Time
	// Found are those of the zones and clusters that could be read.
	Found map[string][]provider.Leftover
	// Unread are the scopes, or parts, of these that could not be read, and Zones all zones and clusters that there are. Where nothing could be
	// read, what was found before counts on.
	Unread, Zones []string
}

// Leftovers reads what the sweeps of patrol found left over in the zones of each project, in the order of project and zone.
func (l *Ledger) Leftovers(ctx context.Context) (all []provider.Leftover, err error) {
	found, _, err := load[leftovers](ctx, l, Deployment, leftoversID, leftoversSchema)
	if err != nil && !errors.Is(err, ErrNotFound) {
		return nil, err
	}
	for _, project := range sorted(found) {
		all = append(all, inOrder(found[project])...)
	}
	return all, nil
}

// SaveLeftovers stores what a sweep found left over in a project. It returns all that the ledger then has of the project. Nothing is written
// where there is none.
func (l *Ledger) SaveLeftovers(ctx context.Context, project string, s Sweep) ([]provider.Leftover, error) {
	for range tries {
		all, rev, err := load[leftovers](ctx, l, Deployment, leftoversID, leftoversSchema)
		if err != nil && !errors.Is(err, ErrNotFound) {
			return nil, err
		}
		next := map[string][]provider.Leftover{}
		for _, zone := range s.Zones {
			if left := s.after(zone, all[project][zone]); len(left) > 0 {
				next[zone] = left
			}
		}
		if len(next) == 0 && len(all[project]) == 0 {
			return nil, nil
		}
		if all = maps.Clone(all); all == nil { // the value is shared with other readers
			all = leftovers{}
		}
		if all[project] = next; len(next) == 0 {
			delete(all, project)
		}
		if _, err := l.store(ctx, Deployment, leftoversID, Record{Schema: leftoversSchema}, all, rev); !errors.Is(err, ErrConflict) {
			return inOrder(next), err
		}
	}
	return nil, fmt.Errorf("ledger: %s: %w", Deployment, ErrConflict)
}

// after are those of a zone after the sweep. Those that were found first come first, so that new ones push none of them out.
func (s Sweep) after(zone string, before []provider.Leftover) (all []provider.Leftover) {
	found, read := s.Found[zone]
	if !read {
		return before
	}
	for _, o := range before {
		if o.Unread(s.Unread) {
			all = append(all, o)
		}
	}
	for _, o := range found {
		o.Since, o.Seen = s.At, s.At
		same := func(b provider.Leftover) bool { return b.Kind == o.Kind && b.Zone == o.Zone && b.Name == o.Name }
		if i := slices.IndexFunc(before, same); i >= 0 && s.At.Sub(before[i].Seen) <= sweptAgain && !o.Made.After(before[i].Since) {
			o.Since = before[i].Since
		}
		all = append(all, o)
	}
	slices.SortFunc(all, func(a, b provider.Leftover) int {
		return cmp.Or(a.Since.Compare(b.Since), strings.Compare(a.Zone, b.Zone), strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name))
	})
	for i := range all {
		all[i].More = 0
	}
	if more := len(all) - mostLeftovers; more > 0 {
		all = all[:mostLeftovers]
		all[mostLeftovers-1].More = more
	}
	return all
}

func inOrder(zones map[string][]provider.Leftover) (all []provider.Leftover) {
	for _, zone := range sorted(zones) {
		all = append(all, zones[zone]...)
	}
	return all
}

func sorted[V any](m map[string]V) []string {
	return slices.Sorted(maps.Keys(m))
}
