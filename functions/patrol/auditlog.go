package patrol

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"pitstop.internal/events"
	"pitstop.internal/shared/cloudlog"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider"
)

// question is what has to be read in the audit log about one slice.
type question struct {
	incident.ToRead
	workload string
	subject  cloudlog.Subject
}

// names reports whether a subject has one of the names in the question.
func (q question) names(s events.Subject) bool {
	group, _, worker := s.Group()
	return s.Node != "" && s.Node == q.Slice || s.QueuedResource != "" && s.QueuedResource == q.subject.QueuedResource ||
		worker && group == q.subject.Group
}

// askLog asks the audit log about the slices of a zone that are gone or stopped without a known cause. It asks once a minute,
// before any other decision about them. A slice deleted by its owner is released, one that Google took is lost, and one that
// no entry claims to have stopped may be started. All entries about a workload are taken in together, so that no decision
// rests on half of them. Only a complete answer counts as proof that the log names nobody.
func (t *round) askLog(ctx context.Context, name string) error {
	asked, err := t.unexplained(ctx, name)
	if err != nil || len(asked) == 0 {
		return err
	}
	now := t.Fleet.Now()
	if mine, err := t.Fleet.Ledger.Ask(ctx, t.Project, name, now); err != nil || !mine {
		return err
	}
	q := cloudlog.Query{Project: t.Project, Zone: name, Since: now}
	for _, a := range asked {
		q.Subjects = append(q.Subjects, a.subject)
		if a.Since.Before(q.Since) {
			q.Since = a.Since
		}
	}
	entries, whole, err := t.Audit.Entries(ctx, q)
	if err != nil {
		return err
	}
	told, open, err := t.answers(ctx, asked, entries)
	if err != nil {
		return err
	}
	if open == "" && !whole {
		open = "it has more entries than it returned"
	}
	for _, a := range asked {
		switch {
		case !a.Silence(now):
		case open != "":
			t.Fleet.Log.WarnContext(ctx, "audit log unclear", "workload", a.workload, "slice", a.Slice, "zone", name, "asked", a.Why, "why", open)
		default:
			told[a.workload] = append(told[a.workload], evidence.Unsaid{
				Origin: evidence.Origin{Time: now, Rank: events.RankReading}, Slice: a.Slice, Incarnation: a.Life,
			})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(told)) {
		t.try("workload "+id, t.take(ctx, id, ownersFirst(told[id])...))
	}
	return nil
}

// ownersFirst has what owners deleted come first: nothing is done about a loss of what they deleted after it.
func ownersFirst(all []evidence.Evidence) []evidence.Evidence {
	deleted := func(e evidence.Evidence) bool { c, is := e.(evidence.Called); return is && c.Act == events.ActDeleted }
	others := slices.DeleteFunc(slices.Clone(all), deleted)
	return append(slices.DeleteFunc(all, func(e evidence.Evidence) bool { return !deleted(e) }), others...)
}

// answers finds in entries what they say about the questions, by workload. Open says why the log may still name somebody.
func (t *round) answers(ctx context.Context, asked []question, entries [][]byte) (told map[string][]evidence.Evidence, open string, err error) {
	told = map[string][]evidence.Evidence{}
	begun := events.Callers{}
	for _, raw := range entries {
		e, err := events.Read(raw)
		if err != nil {
			open = err.Error()
			continue
		}
		begun.Attribute(&e.Call)
		if e.Ignored != "" || e.Kind != events.KindLoss && e.Kind != events.KindCall {
			continue
		}
		if e.Everything() {
			t.allIn(told, asked, e)
			continue
		}
		s, err := t.Fleet.Known(ctx, e.Subject)
		if errors.Is(err, ledger.ErrNotFound) {
			if slices.ContainsFunc(asked, func(a question) bool { return a.names(e.Subject) }) {
				open = "it is not known whose " + e.Subject.String() + " is"
			}
			continue
		}
		if err != nil {
			return nil, "", err
		}
		if !slices.ContainsFunc(asked, func(a question) bool { return a.workload == s.Workload && a.Slice == s.Slice && a.Answers(e) }) {
			continue
		}
		e.Rank = events.RankReading // the log itself says so, not a message
		if evidence := fleet.Evidence(e, s, t.Accounts); evidence != nil {
			told[s.Workload] = append(told[s.Workload], evidence)
		}
	}
	return told, open, nil
}

// allIn takes the deletion of a namespace as that of each slice there that is asked about.
func (t *round) allIn(told map[string][]evidence.Evidence, asked []question, e events.Entry) {
	e.Rank = events.RankReading
	for _, a := range asked {
		if a.Zone != e.Subject.Zone || !a.Answers(e) {
			continue
		}
		if evidence := fleet.Evidence(e, ledger.Subject{Workload: a.workload, Slice: a.Slice}, t.Accounts); evidence != nil {
			told[a.workload] = append(told[a.workload], evidence)
		}
	}
}

// namespaceOf is the namespace of a scope LOCATION/CLUSTER/NAMESPACE; empty for a zone.
func namespaceOf(zone string) string {
	_, namespace, _ := strings.Cut(strings.TrimPrefix(zone, provider.Listed(zone)), "/")
	return namespace
}

// unexplained are the questions about slices of a zone that are gone or stopped for an unknown reason. If there are more
// than fit in one call, each minute takes the next part.
func (t *round) unexplained(ctx context.Context, name string) ([]question, error) {
	z := t.zones[name]
	if z == nil {
		return nil, nil
	}
	now := t.Fleet.Now()
	var asked []question
	for _, at := range z.places() {
		slice, id := at.name, z.known[at]
		gone := z.seen[at].state == goneState
		if !gone && !t.isDue[id] {
			continue
		}
		w, err := t.Fleet.Advancer.Workload(ctx, id)
		if err != nil {
			return nil, err
		}
		all := t.Fleet.Advancer.Reads(w)
		reads := all.Of(incident.ReadStopper, slice)
		if gone { // by a complete listing
			reads = append(reads, all.Of(incident.ReadDeleter, slice)...)
		}
		for _, r := range reads {
			if s := w.Slice(slice); r.Zone == at.zone {
				asked = append(asked, question{r, w.ID, cloudlog.Subject{Node: slice, QueuedResource: s.Group, Group: s.Hosts, Namespace: namespaceOf(at.zone)}})
			}
		}
	}
	if turns := (len(asked) + cloudlog.MaxSubjects - 1) / cloudlog.MaxSubjects; turns > 1 {
		from := int(now.Unix()/60) % turns * cloudlog.MaxSubjects
		asked = asked[from:min(from+cloudlog.MaxSubjects, len(asked))]
	}
	return asked, nil
}
