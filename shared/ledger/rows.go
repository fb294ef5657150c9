package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/view"
)

// What a page lists is read in the order of ranks, so that a page reads no more documents than it shows, however many there are. A document gets its
// rank, and a closed incident its row, where it is saved. What can be read comes with an UnreadableError for the others.

// Worst reads workloads, the worst first: so many at most, after a rank; an empty one begins. Next is the rank after which the rest follows; empty
// where nothing does.
func (l *Ledger) Worst(ctx context.Context, after string, most int) (all []incident.Workload, next string, err error) {
	found, next, err := l.ranked(ctx, Workloads, Ranks{After: after, Limit: most}, false)
	if err != nil {
		return nil, "", err
	}
	all, err = l.workloads(found)
	return all, next, err
}

// Open reads the workloads that may have an open incident, so many at most, the worst first.
func (l *Ledger) Open(ctx context.Context, most int) ([]incident.Workload, error) {
	found, err := l.query(ctx, Workloads, Query{Ranks: &Ranks{Before: view.RankedBefore(view.Beginning), Limit: most}})
	if err != nil {
		return nil, err
	}
	return l.workloads(found)
}

// Ended says which closed incidents are asked for.
type Ended struct {
	// From and Until bound when they ended; zero for no bound. Before is the rank before which the rest follows; empty begins.
	From, Until time.Time
	Before      string
	// Most bounds them.
	Most int
}

// Past reads closed incidents, those that ended last first. Next is the rank before which the rest follows; empty where nothing does.
func (l *Ledger) Past(ctx context.Context, e Ended) (all []view.Past, next string, err error) {
	r := Ranks{Before: e.Before, Last: true, Limit: e.Most}
	if !e.From.IsZero() {
		r.After = view.RankTime(e.From)
	}
	if until := view.RankTime(e.Until); !e.Until.IsZero() && (r.Before == "" || until < r.Before) {
		r.Before = until
	}
	found, next, err := l.ranked(ctx, Archive, r, true)
	if err != nil {
		return nil, "", err
	}
	all, err = pasts(found)
	return all, next, err
}

// PastOf reads all closed incidents of a workload, those that ended last first.
func (l *Ledger) PastOf(ctx context.Context, workload string) ([]view.Past, error) {
	k, err := key(workload + "/")
	if err != nil {
		return nil, err
	}
	found, err := l.query(ctx, Archive, Query{Prefix: k, Rows: true})
	if err == nil {
		found, err = l.complete(ctx, Archive, found)
	}
	if err != nil {
		return nil, err
	}
	all, err := pasts(found)
	slices.SortFunc(all, view.Newest)
	return all, err
}

// ranked reads documents by their ranks, or only their rows. An older release has saved documents without a rank: as many of them as one page has come
// after the last of the others.
func (l *Ledger) ranked(ctx context.Context, collection string, r Ranks, rows bool) (found []Record, next string, err error) {
	whole := !r.Last || r.After == "" // the span ends where the documents do
	most := r.Limit
	r.Limit++
	if found, err = l.query(ctx, collection, Query{Ranks: &r, Rows: rows}); err != nil || len(found) > most {
		found = found[:min(len(found), most)]
		if err == nil {
			next = found[most-1].Rank
		}
		return found, next, err
	}
	if !whole {
		return found, "", nil
	}
	others, err := l.query(ctx, collection, Query{Rows: true})
	others = slices.DeleteFunc(others, func(o Record) bool { return o.Rank != "" })
	others = others[:min(len(others), most)]
	if err == nil {
		others, err = l.complete(ctx, collection, others)
	}
	return append(found, others...), "", err
}

// complete reads the bodies of documents that have no rank: they have to say what a row would.
func (l *Ledger) complete(ctx context.Context, collection string, found []Record) (whole []Record, err error) {
	for _, r := range found {
		if r.Rank == "" {
			id := r.ID
			switch r, err = l.get(ctx, collection, id); {
			case errors.Is(err, ErrNotFound):
				continue // it has expired since
			case err != nil:
				return nil, err
			}
			r.ID = id
		}
		whole = append(whole, r)
	}
	return whole, nil
}

// pasts are the rows of archived incidents, or what one without a row says of itself: the chips of its slices are not known.
func pasts(found []Record) (all []view.Past, err error) {
	var faults []error
	for _, r := range found {
		var p view.Past
		var err error
		if r.Row != "" {
			err = json.Unmarshal([]byte(r.Row), &p)
		} else {
			var in incident.Incident
			if in, err = decode[incident.Incident](Archive, r.ID, incident.Schema, r); err == nil {
				w := incident.Workload{ID: r.ID[:max(0, strings.LastIndexByte(r.ID, '/'))]}
				p = w.Past(in, in.Closed)
			}
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("ledger: %s %s: %w", Archive, r.ID, err))
			continue
		}
		all = append(all, p)
	}
	return all, unread(faults)
}

// View is what is shown of a workload under the policy that its label names.
func View(ctx context.Context, policies Policies, w incident.Workload, now time.Time) view.Workload {
	return incident.View(w.Limited(policies.For(ctx, w.Label)), w, now)
}

// Projects are those whose patrol has ticked.
func (l *Ledger) Projects(ctx context.Context) (all []string, err error) {
	found, err := l.query(ctx, Deployment, Query{Prefix: pulseOf(""), Keys: true})
	for _, r := range found {
		all = append(all, strings.TrimPrefix(r.ID, pulseOf("")))
	}
	return all, err
}

// Sights say whether Pitstop sees: each project whose patrol has ticked, and each of these, the one first that it has not seen for longest.
func (l *Ledger) Sights(ctx context.Context, projects []string, now time.Time) (all []view.Sight, err error) {
	ticked, err := l.Projects(ctx)
	if err != nil {
		return nil, err
	}
	projects = slices.Concat(projects, ticked)
	slices.Sort(projects)
	for _, p := range slices.Compact(projects) {
		s, err := l.Sight(ctx, p, now)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	slices.SortStableFunc(all, func(a, b view.Sight) int { return a.Ticked.Compare(b.Ticked) })
	return all, nil
}
