package ledger

import (
	"context"
	"errors"
	"iter"

	"pitstop.internal/shared/incident"
)

// Held are the documents that one event has read or written, each with its revision. An Advancer that has a Held begins from
// a held document instead of reading it again. The zero value is empty, and one goroutine uses it.
//
// A held document may be out of date, because another function may have written it since. This is safe for two reasons. A
// decision that changes the document is saved by compare-and-swap: if the document has changed, it is read and the evidence is
// decided on again. A decision that changes nothing is saved by nobody, so it may rest on a held document only in two cases:
// the evidence was there before the document was read, or the next tick brings the same evidence again. In any other case the
// caller forgets the document first.
//
// A function that acts holds nothing: right before a call it reads the fence, the intent and the pause from the ledger.
type Held struct{ documents map[string]version }

// version is a workload with the revision of its document.
type version struct {
	workload incident.Workload
	revision Revision
}

// All are the held workloads, in no order.
func (h *Held) All() iter.Seq[incident.Workload] {
	return func(yield func(incident.Workload) bool) {
		for _, d := range h.documents {
			if !yield(d.workload) {
				return
			}
		}
	}
}

// Forget makes the next reader of a workload read its document.
func (h *Held) Forget(id string) {
	if h != nil {
		delete(h.documents, id)
	}
}

func (h *Held) hold(d version) {
	if h == nil {
		return
	}
	if h.documents == nil {
		h.documents = map[string]version{}
	}
	h.documents[d.workload.ID] = d
}

// Holding returns the advancer for one event, which holds the documents that it reads and writes.
func (a *Advancer) Holding(h *Held) *Advancer {
	one := *a
	one.held = h
	return &one
}

// Workload returns a workload: the held one, or else the one in the ledger, which is held from then on.
func (a *Advancer) Workload(ctx context.Context, id string) (incident.Workload, error) {
	d, err := a.document(ctx, id)
	return d.workload, err
}

func (a *Advancer) document(ctx context.Context, id string) (version, error) {
	if a.held != nil {
		if d, ok := a.held.documents[id]; ok {
			return d, nil
		}
	}
	return a.read(ctx, id)
}

// read reads a document whether it is held or not.
func (a *Advancer) read(ctx context.Context, id string) (version, error) {
	w, rev, err := a.Ledger.Workload(ctx, id)
	d := version{w, rev}
	if err != nil {
		a.held.Forget(id)
		return d, err
	}
	a.held.hold(d)
	return d, nil
}

// save writes a document and holds it with its new revision. What another writer has stored, or maybe this one, is unknown
// after a failure.
func (a *Advancer) save(ctx context.Context, w incident.Workload, rev Revision) (Revision, error) {
	next, err := a.Ledger.Save(ctx, w, rev)
	if err != nil {
		a.held.Forget(w.ID)
		return next, err
	}
	a.held.hold(version{w, next})
	return next, nil
}

// Due reads the workloads that have work due by now, and holds them. mine says which IDs concern the caller. It returns the
// readable ones in the order of their IDs, together with an error for the others.
func (a *Advancer) Due(ctx context.Context, mine func(id string) bool) ([]incident.Workload, error) {
	found, err := a.Ledger.query(ctx, Workloads, Query{Due: a.Now().UTC()})
	return a.holdAll(found, mine, err)
}

// Workloads is Due for every workload.
func (a *Advancer) Workloads(ctx context.Context, mine func(id string) bool) ([]incident.Workload, error) {
	found, err := a.Ledger.query(ctx, Workloads, Query{})
	return a.holdAll(found, mine, err)
}

// holdAll holds the documents that were found. Their list is nil only if they could not be read at all.
func (a *Advancer) holdAll(found []Record, mine func(id string) bool, err error) ([]incident.Workload, error) {
	if err != nil {
		return nil, err
	}
	all := make([]incident.Workload, 0, len(found))
	var faults []error
	for _, r := range found {
		if !mine(r.ID) {
			continue
		}
		w, err := a.Ledger.workloadOf(r.ID, r)
		if err != nil {
			a.held.Forget(r.ID)
			faults = append(faults, err)
			continue
		}
		a.held.hold(version{w, r.Revision})
		all = append(all, w)
	}
	return all, errors.Join(faults...)
}
