package recovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider"
)

// release takes a slice out of the lease whose workers hang. Where the lease has not named it for long enough, it ends them. Each call
// rests on readings of its own: of the cluster, and of the lease.
func (h handler) release(ctx context.Context, w incident.Workload, r events.RecoveryRequested) error {
	known := w.Slice(r.Slice)
	ref, read := fleet.Ref(w, *known), h.Fleet.Now()
	s, err := h.Provider.Read(ctx, ref)
	if err != nil {
		return h.unread(ctx, r, r.Slice, err)
	}
	s.At = read
	if w, err = h.Fleet.Feed(ctx, w, s); err != nil {
		return err
	}
	if _, _, err = h.Fleet.Advancer.Check(ctx, r.Pointer()); err != nil {
		return err
	}
	if why := maintained(s, r); why != "" {
		return h.unreleased(ctx, r, why)
	}
	if r.Unleased.IsZero() {
		return h.unlease(ctx, w, r)
	}
	var all, parts []string
	for _, worker := range s.Hung {
		all = append(all, fmt.Sprintf("%s (UID %s) on %s", worker.Name, worker.ID, worker.Machine))
		parts = append(parts, worker.Name)
	}
	w, id, err := h.Fleet.Advancer.BeginAbout(ctx, incident.Intended{
		Request: r.Request, About: "about to end unheard: " + strings.Join(all, ", "), Parts: parts,
	}, read, ref.Zone, h.Limits)
	if err != nil {
		return err
	}
	l, _, err := checkpoint.ReadLease(ctx, h.Store, r.Directory)
	e := incident.Answered{Request: r.Request, Failure: h.unfenced(w, r, l, err)}
	ended := 0
	ref.Life = r.Incarnation.ID
	for ; e.Failure == nil && ended < len(all); ended++ {
		err := h.Provider.Release(ctx, ref, s.Hung[ended])
		var part *provider.PartError
		if errors.As(err, &part) {
			all[ended] += ", which stays in the listings: " + part.Left.Error()
		} else if e.Failure = provider.Failure(err); e.Failure != nil {
			e.Failed = map[string]incident.Code{parts[ended]: e.Failure.Reason()}
			break
		}
	}
	e.NotMade = parts[min(ended+len(e.Failed), len(parts)):]
	e.Text = "nothing of " + r.Slice + " was ended"
	if ended > 0 {
		e.Text = "ended unheard: " + strings.Join(all[:ended], ", ")
	} else if err := h.Fleet.Advancer.Refused(ctx, w, ref.Zone, id, e.Failure); err != nil {
		return err
	}
	_, err = h.Fleet.Advancer.Conclude(ctx, e)
	return err
}

// maintained says why a reading shows no worker that may be released: it does not hang, is of another life, or obeys no lease of the
// directory. Then it may write whatever the lease says.
func maintained(s provider.Slice, r events.RecoveryRequested) string {
	if len(s.Hung) == 0 {
		return r.Slice + " does not hang on a machine that does not answer: " + s.State
	}
	for _, worker := range s.Hung {
		switch {
		case worker.Life != r.Incarnation.ID:
			return "the worker " + worker.Name + " is of another life"
		case worker.Lease == "":
			return "the command of the worker " + worker.Name + " is not pitcrew with a checkpoint directory, so no lease ends its training"
		case strings.TrimRight(worker.Lease, "/") != strings.TrimRight(r.Directory, "/"):
			return "the worker " + worker.Name + " obeys the lease in " + worker.Lease + ", and not that in " + r.Directory
		}
	}
	return ""
}

// ours is who Pitstop's lease is written by.
const ours = "pitstop"

// names reports whether a lease names any life of a slice.
func names(l checkpoint.Lease, slice string) bool {
	return slices.ContainsFunc(l.Admitted, func(a events.Admission) bool { return a.Slice == slice })
}

// unnamed says why it would end nothing, or another training, to take a life out of a lease: its crew runs by another name, or another
// life has that name by now. A lease that Pitstop has written for this incident, and that does not name the slice, is what is wanted.
func unnamed(w incident.Workload, r events.RecoveryRequested, l checkpoint.Lease) string {
	for _, a := range l.Admitted {
		switch {
		case w.Slice(a.Slice) == nil:
			return "the lease names " + a.Slice + ", which is no slice of " + w.Name + ", so a crew may train under a name of its own"
		case a.Slice == r.Slice && a.Incarnation.ID != r.Incarnation.ID:
			return fmt.Sprintf("the lease names the life %v of %s, and %v hangs", a.Incarnation, r.Slice, r.Incarnation)
		}
	}
	if !names(l, r.Slice) && (l.By != ours || l.Incident != r.Incident) {
		return "the lease does not name " + r.Slice + ", so nothing ends it"
	}
	return ""
}

// unlease takes the life that hangs out of the lease, with those that go together with it. The others keep their attempt.
func (h handler) unlease(ctx context.Context, w incident.Workload, r events.RecoveryRequested) error {
	l, over, err := checkpoint.ReadLease(ctx, h.Store, r.Directory)
	switch {
	case errors.Is(err, checkpoint.ErrNotExist):
		return h.unreleased(ctx, r, "there is no lease, so nothing ends the training on a machine that does not answer: "+checkpoint.Vanished)
	case err != nil:
		f := fleet.DirectoryFailure(err)
		return h.fails(ctx, r, incident.Unbegun, f)
	case l.Workload != r.Workload:
		return h.unreleased(ctx, r, "the lease is that of "+l.Workload)
	}
	if why := unnamed(w, r, l); why != "" {
		return h.unreleased(ctx, r, why)
	}
	if w, err = h.Fleet.Advancer.Begin(ctx, r.Request, ledger.RequestID(r.Request, "")); err != nil {
		return err
	}
	if !names(l, r.Slice) { // another slice of the same deletion was first
		return h.answer(ctx, r, "", "the lease does not name "+r.Slice, nil)
	}
	l.Admitted = slices.DeleteFunc(l.Admitted, func(a events.Admission) bool {
		return slices.ContainsFunc(w.UnleasedWith(r.Slice), func(o events.Admission) bool {
			return o.Slice == a.Slice && o.Incarnation.ID == a.Incarnation.ID
		})
	})
	l.Incident, l.Epoch, l.Written, l.By = r.Incident, r.Epoch, h.Fleet.Now(), ours
	switch err := checkpoint.ReplaceLease(ctx, h.Store, r.Directory, l, over); {
	case errors.Is(err, checkpoint.ErrOvertaken):
		return h.fails(ctx, r, incident.Uncalled, fleet.DirectoryFailure(err))
	case err != nil: // it may have been written, and the answer lost
		return h.fails(ctx, r, "", fleet.DirectoryFailure(err))
	}
	return h.answer(ctx, r, "", "the lease does not name "+r.Slice+" any more", nil)
}

// unfenced says why somebody may still train by the lease, or by none.
func (h handler) unfenced(w incident.Workload, r events.RecoveryRequested, l checkpoint.Lease, unread error) *incident.Failure {
	refuse := func(why string) *incident.Failure {
		return &incident.Failure{Class: incident.NotInState, Code: incident.CodeNotReleased, Message: why}
	}
	since := r.Unleased
	if l.Written.After(since) {
		since = l.Written
	}
	switch left := since.Add(incident.TakeOverFor).Sub(h.Fleet.Now()); {
	case errors.Is(unread, checkpoint.ErrNotExist):
		return refuse("the lease is gone: " + checkpoint.Vanished)
	case unread != nil:
		return fleet.DirectoryFailure(unread)
	case l.Workload != w.ID, l.By != ours, l.Incident != r.Incident, l.Epoch > r.Epoch, names(l, r.Slice):
		return refuse("somebody else has written the lease since")
	case unnamed(w, r, l) != "":
		return refuse(unnamed(w, r, l))
	case left > 0:
		return &incident.Failure{Class: incident.Busy, Code: incident.CodeNotReleased, Message: "the lease named it until " + events.Span(incident.TakeOverFor-left) + " ago"}
	}
	return nil
}

func (h handler) unreleased(ctx context.Context, r events.RecoveryRequested, why string) error {
	return h.fails(ctx, r, incident.Unbegun, &incident.Failure{Class: incident.NotInState, Code: incident.CodeNotReleased, Message: why})
}

// fails stores why a call was not made, or failed.
func (h handler) fails(ctx context.Context, r events.RecoveryRequested, how incident.NoCall, f *incident.Failure) error {
	_, err := h.Fleet.Advancer.Conclude(ctx, incident.Answered{Request: r.Request, NoCall: how, Text: r.Slice + " is left to hang", Failure: f})
	return err
}
