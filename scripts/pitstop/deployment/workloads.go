package deployment

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/view"
)

// Workload is what is shown of a workload, with its document: for the ledger, and for questions that the heart answers.
type Workload struct {
	view.Workload
	Document incident.Workload
}

// ShownAt is a workload as it is shown at one moment.
func ShownAt(w incident.Workload, now time.Time) Workload { return Workload{w.Shown(now), w} }

// Ref names a slice of it for its provider.
func (w Workload) Ref(slice string) provider.Ref {
	return fleet.Ref(w.Document, *w.Document.Slice(slice))
}

// ReadIncident reads one of its incidents, open or in the archive. It returns ledger.ErrNotFound for one that is in neither.
func (w Workload) ReadIncident(ctx context.Context, l *ledger.Ledger, id string, now time.Time) (view.Incident, error) {
	in, err := l.Incident(ctx, w.Document, id)
	return w.Document.ShownIncident(in, now), err
}

// Workloads reads the workloads of these IDs or names, or all, in one listing. All that can be read come with an UnreadableError for the
// others.
func (d Deployment) Workloads(ctx context.Context, l *ledger.Ledger, names []string) (found []Workload, err error) {
	documents, err := l.Workloads(ctx)
	var unread ledger.UnreadableError
	if err != nil && !errors.As(err, &unread) {
		return nil, err
	}
	for _, w := range documents {
		found = append(found, ShownAt(w, d.Now()))
	}
	if len(names) == 0 {
		return found, err
	}
	named, unknown := WorkloadsNamed(found, names)
	if unknown != nil && err != nil {
		return nil, err // it may be the one that cannot be read
	}
	return named, unknown
}

// WorkloadsNamed are those of these IDs or names.
func WorkloadsNamed(all []Workload, names []string) ([]Workload, error) {
	for _, name := range names {
		if !slices.ContainsFunc(all, func(w Workload) bool { return isNamed(w.ID, name) }) {
			var ids []string
			for _, w := range all {
				ids = append(ids, w.ID)
			}
			return nil, cli.Usage("there is no workload %q; the ledger has %s", name, cmp.Or(strings.Join(ids, ", "), "none"))
		}
	}
	return slices.DeleteFunc(slices.Clone(all), func(w Workload) bool {
		return !slices.ContainsFunc(names, func(name string) bool { return isNamed(w.ID, name) })
	}), nil
}

// isNamed reports whether a word is the ID of a workload, or its name.
func isNamed(id, word string) bool { return id == word || strings.HasSuffix(id, "/"+word) }

// FindIncident looks for an incident of these workloads by its ID. If incidents of several projects have that ID, the word has to be PROJECT/ID or
// PROJECT/NAME/ID.
func (d Deployment) FindIncident(ctx context.Context, l *ledger.Ledger, all []Workload, word string) (Workload, view.Incident, error) {
	type match struct {
		w  Workload
		in view.Incident
	}
	var found []match
	of, id := "", word
	if i := strings.LastIndexByte(word, '/'); i >= 0 {
		of, id = word[:i], word[i+1:]
	}
	for _, w := range all {
		if of != "" && w.ID != of && !strings.HasPrefix(w.ID, of+"/") {
			continue
		}
		in, err := w.ReadIncident(ctx, l, id, d.Now())
		switch {
		case err == nil:
			found = append(found, match{w, in})
		case !errors.Is(err, ledger.ErrNotFound):
			return w, in, err
		}
	}
	switch len(found) {
	case 0:
		return Workload{}, view.Incident{}, cli.Usage("there is no incident %q; pitstop incidents lists those of the last days", word)
	case 1:
		return found[0].w, found[0].in, nil
	}
	var open, over []string
	for _, f := range found {
		if f.in.Outcome == "" {
			open = append(open, f.w.ID+"/"+id+" (open)")
		} else {
			over = append(over, f.w.ID+"/"+id+" ("+string(f.in.Outcome)+")")
		}
	}
	return Workload{}, view.Incident{}, cli.Usage("%s may be %s: write it with its project", word,
		strings.Join(append(open, over...), " or "))
}

// Workload finds the one workload that is named.
func (d Deployment) Workload(ctx context.Context, where Place, name string) (*ledger.Ledger, Workload, error) {
	l, w, _, err := d.WorkloadAndAll(ctx, where, name)
	return l, w, err
}

// WorkloadAndAll is one, with all workloads of the ledger.
func (d Deployment) WorkloadAndAll(ctx context.Context, where Place, name string) (*ledger.Ledger, Workload, []Workload, error) {
	l, err := d.Ledger(where)
	if err != nil {
		return nil, Workload{}, nil, err
	}
	all, err := d.Workloads(ctx, l, nil)
	if err != nil {
		return nil, Workload{}, nil, err
	}
	found, err := WorkloadsNamed(all, []string{name})
	if err == nil && len(found) > 1 {
		var ids []string
		for _, w := range found {
			ids = append(ids, w.ID)
		}
		err = cli.Usage("%s may be %s: name the whole ID", name, strings.Join(ids, " or "))
	}
	if err != nil {
		return nil, Workload{}, nil, err
	}
	return l, found[0], all, nil
}
