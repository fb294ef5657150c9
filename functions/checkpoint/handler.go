package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/trigger"
)

// Provider is the part of a provider that this function calls.
type Provider interface {
	SetMetadata(ctx context.Context, r provider.Ref, key, value string) error
	Maintain(ctx context.Context, slices []provider.Ref) (operation string, err error)
}

// Deps are the function's dependencies.
type Deps struct {
	Fleet    *fleet.Fleet
	Provider Provider
	Store    checkpoint.Store
	Limits   ledger.Limits
}

// New returns the function over its dependencies.
func New(d Deps) trigger.Handle {
	return trigger.Chain(decode, acting(d))
}

// acting carries out the requests that are current.
func acting(d Deps) func(context.Context, events.Received) error {
	return fleet.Acting(d.Fleet, handler(d).handle)
}

type handler Deps

var decode = fleet.DecodeRequest[events.CheckpointRequested]("checkpoint")

func (h handler) handle(ctx context.Context, w incident.Workload, r events.CheckpointRequested) error {
	switch r.Action {
	case events.ActionSave:
		return h.save(ctx, r)
	case events.ActionVerify:
		return h.verify(ctx, w, r)
	case events.ActionHear:
		return h.hear(ctx, w, r)
	case events.ActionMaintain:
		return h.maintain(ctx, w, r)
	case events.ActionAdmit, events.ActionRestart, events.ActionDelete, events.ActionCreate, events.ActionStart:
	}
	return fault.Permanentf("a checkpoint request cannot ask to %s", r.Action)
}

// save sends the request through both channels: an object next to the checkpoints, and the metadata of every slice. Either
// channel may be absent. The request counts as delivered only when the crew acknowledges it.
func (h handler) save(ctx context.Context, r events.CheckpointRequested) error {
	w, err := h.Fleet.Advancer.Begin(ctx, r.Request, ledger.RequestID(r.Request, ""))
	if err != nil {
		return err
	}
	ask := events.CrewRequest{
		Schema: events.Schema, SaveID: r.SaveID, Workload: r.Workload, Incident: r.Incident, Action: events.ActionSave, Mode: r.Mode, By: r.By,
	}
	var through, leftOut []string
	var faults []error
	failed := map[string]reason.Code{}
	if r.Directory != "" {
		if err := checkpoint.WriteRequest(ctx, h.Store, r.Directory, ask, h.Fleet.Now()); err != nil {
			h.Fleet.TellForeign(ctx, r.Request, r.Directory, err)
			faults = append(faults, err)
			failed[checkpoint.Join(r.Directory, checkpoint.RequestName)] = fleet.DirectoryFailure(err).Reason()
		} else {
			through = append(through, "the bucket")
		}
	}
	value, err := json.Marshal(ask)
	if err != nil {
		return fault.Permanent(err)
	}
	for _, s := range w.Slices {
		if w.Words().Calls[events.ActionSave].Slice == "" {
			break // a Pod has no metadata that others may write
		}
		if s.Condition != evidence.Ready {
			leftOut = append(leftOut, fleet.Ref(w, s).String())
			continue
		}
		if err := h.Provider.SetMetadata(ctx, fleet.Ref(w, s), events.MetadataRequest, string(value)); err != nil {
			faults = append(faults, err)
			failed[fleet.Ref(w, s).String()] = provider.Failure(err).Reason()
		} else {
			through = append(through, "the metadata of "+s.Name)
		}
	}
	foreign := slices.IndexFunc(faults, func(err error) bool { return errors.Is(err, checkpoint.ErrForeign) })
	if through == nil {
		failure := provider.Failure(errors.Join(append(faults, errors.New("no checkpoint directory and no usable slice"))...))
		if foreign >= 0 { // it is tried again, because the other workload's request may be over by then
			failure.Code = reason.CodeForeign
		}
		_, err := h.Fleet.Advancer.Conclude(ctx, evidence.Answered{
			Request: r.Request, Failed: failed, LeftOut: leftOut, Text: "the save request was not delivered", Failure: failure,
		})
		return err
	}
	text := "save request left in " + strings.Join(through, " and ")
	if foreign >= 0 {
		text += ", but not in the bucket: " + faults[foreign].Error()
	}
	_, err = h.Fleet.Advancer.Conclude(ctx, evidence.Answered{Request: r.Request, Failed: failed, LeftOut: leftOut, Text: text})
	return err
}

// verify looks for a complete checkpoint. Finding none is an answer too, and so is a bucket that cannot be read. A checkpoint beside the
// lease of another workload is that one's.
func (h handler) verify(ctx context.Context, w incident.Workload, r events.CheckpointRequested) error {
	lease, _, unread := checkpoint.ReadLease(ctx, h.Store, r.Directory)
	if foreign := h.foreign(ctx, w, r, lease, unread); foreign != nil {
		_, err := h.Fleet.Advancer.Advance(ctx, w.ID, evidence.Checked{
			Origin: evidence.Origin{Time: h.Fleet.Now(), Rank: events.RankReading}, Request: r.Request, Text: foreign.Error(),
		})
		return err
	}
	// Buckets store times in whole seconds.
	since := r.Since.Truncate(time.Second).Add(-1)
	look := func() (checkpoint.Found, error) {
		if r.Any {
			return checkpoint.Newest(ctx, h.Store, r.Directory, since)
		}
		return checkpoint.Verify(ctx, h.Store, r.Directory, checkpoint.Want{Since: since, MoreThan: r.MoreThan})
	}
	found, err := look()
	c := evidence.Checked{Origin: evidence.Origin{Time: h.Fleet.Now(), Rank: events.RankReading}, Request: r.Request}
	var missing *checkpoint.Missing
	switch {
	case errors.As(err, &missing):
		c.Text, c.Stale, c.None, c.Saves = err.Error(), missing.Stale, missing.None, missing.Saves
		found = missing.Last
	case err != nil:
		c.Text = err.Error()
	default:
		c.Found = true
	}
	c.Step, c.URI, c.At, c.Bytes, c.More = found.Step, found.URI, found.At, found.Bytes, found.More
	_, err = h.Fleet.Advancer.Advance(ctx, w.ID, c)
	return err
}

// hear reads the crew's files next to the checkpoints: its verdict on the attempt that the lease names, and the last saved
// step. A missing file is an answer too. What is beside the lease of another workload says nothing about this one.
func (h handler) hear(ctx context.Context, w incident.Workload, r events.CheckpointRequested) error {
	e := evidence.VerdictRead{Origin: evidence.Origin{Time: h.Fleet.Now(), Rank: events.RankReading}, Request: r.Request}
	lease, _, unread := checkpoint.ReadLease(ctx, h.Store, r.Directory)
	if foreign := h.foreign(ctx, w, r, lease, unread); foreign != nil {
		e.Text, e.Failure = foreign.Error(), fleet.DirectoryFailure(foreign)
		_, err := h.Fleet.Advancer.Advance(ctx, w.ID, e)
		return err
	}
	var failed error // a verdict that was read counts, even if the rest cannot be read
	e.Attempt, e.Verdict, e.Text, failed = h.verdict(ctx, r.Directory, lease, unread)
	var missing *checkpoint.Missing
	switch found, err := checkpoint.Verify(ctx, h.Store, r.Directory, checkpoint.Want{}); {
	case err == nil:
		e.Saved, e.SavedAt, e.SavedURI, e.SavedBytes = found.Step, found.At, found.URI, found.Bytes
	case !errors.As(err, &missing):
		failed = errors.Join(failed, err)
	}
	if failed != nil {
		e.Failure = fleet.DirectoryFailure(failed)
	}
	_, err := h.Fleet.Advancer.Advance(ctx, w.ID, e)
	return err
}

// foreign is an error if the lease that was read beside the checkpoints is another workload's. It tells people so.
func (h handler) foreign(ctx context.Context, w incident.Workload, r events.CheckpointRequested, l checkpoint.Lease, unread error) error {
	if unread == nil && l.Foreign(w.ID, true, fleet.Places(w)...) {
		err := l.ForeignError(w.ID)
		h.Fleet.TellForeign(ctx, r.Request, r.Directory, err)
		return err
	}
	return nil
}

// verdict reads the crew's verdict and checks it against the lease in the directory, which was read before and names an attempt. If no
// verdict counts, why says the reason. A lease that vanished confirms none; the crew that it named writes it again.
func (h handler) verdict(ctx context.Context, dir string, lease checkpoint.Lease, unread error) (attempt int, v *events.CrewVerdict, why string, err error) {
	absent := func(err error) bool {
		return errors.Is(err, checkpoint.ErrNotExist) || errors.Is(err, checkpoint.ErrMalformed)
	}
	switch {
	case errors.Is(unread, checkpoint.ErrNotExist):
		return 0, nil, unread.Error() + ": " + checkpoint.Vanished, nil
	case absent(unread):
		return 0, nil, unread.Error(), nil
	case unread != nil:
		return 0, nil, "", unread
	}
	read, err := checkpoint.ReadVerdict(ctx, h.Store, dir, lease.Attempt)
	switch {
	case absent(err):
		return lease.Attempt, nil, err.Error(), nil
	case err != nil:
		return lease.Attempt, nil, "", err
	case !lease.Confirms(read):
		return lease.Attempt, nil, fmt.Sprintf("the verdict on attempt %d is about another life than the one in the lease", read.Attempt), nil
	}
	return lease.Attempt, &read, "", nil
}

// maintain starts the announced maintenance of a slice now, and of the slices in the same queued resource. It does so only
// if each is still in the state that the decision saw.
func (h handler) maintain(ctx context.Context, w incident.Workload, r events.CheckpointRequested) error {
	read := h.Fleet.Now()
	var refs []provider.Ref
	var names []string
	for _, slice := range w.MaintainedWith(r.Slice) {
		ref := fleet.Ref(w, slice)
		s, err := h.Fleet.Read(ctx, ref)
		if err != nil {
			// An unreadable slice is no reason to call.
			return h.unbegun(ctx, r, slice.Name+" is not readable", provider.Failure(err))
		}
		if _, err := h.Fleet.Feed(ctx, w, s); err != nil {
			return err
		}
		if _, _, err := h.Fleet.Advancer.Check(ctx, r.Pointer()); err != nil {
			return err
		}
		if s.Condition != evidence.Ready || !s.Incarnation.Same(slice.Incarnation) {
			return fault.Ignored(reason.CodeNotReady, "maintain refused: %s is %s", slice.Name, s.State)
		}
		if f := notOffered(s); f != nil {
			return h.unbegun(ctx, r, "maintenance of "+slice.Name+" not started", f)
		}
		ref.Life = s.Life // the one that was read
		refs, names = append(refs, ref), append(names, slice.Name)
	}
	what := "maintenance of " + strings.Join(names, ", ")
	w, id, err := h.Fleet.Advancer.BeginDestructive(ctx, r.Request, read, refs[0].Zone, h.Limits)
	if err != nil {
		return err
	}
	op, err := h.Provider.Maintain(ctx, refs)
	var part *provider.PartError
	if errors.As(err, &part) { // what began ends the training of all
		return h.answer(ctx, r, op, what+" started, but not all of it: "+part.Left.Error(), nil)
	}
	if err != nil {
		failure := provider.Failure(err)
		if err := h.Fleet.Advancer.Refused(ctx, w, refs[0].Zone, id, failure); err != nil {
			return err
		}
		return h.answer(ctx, r, "", what+" not started", failure)
	}
	return h.answer(ctx, r, op, what+" started", nil)
}

// notOffered says why the maintenance of a slice cannot be started now, judged by its last reading. A reading without a
// notice offers no maintenance. A legacy node never has a notice: its API announces no maintenance.
func notOffered(s provider.Slice) *evidence.Failure {
	why := ""
	switch n := s.Notice; {
	case s.NoticeUnread: // an unread notice is no reason to call
		why = "the announced maintenance could not be read"
		return &evidence.Failure{Class: reason.Transient, Code: reason.CodeUnread, Message: why}
	case n == nil:
		why = "the API shows no announced maintenance"
	case n.Status != events.NoticePending || !n.CanReschedule:
		why = "the API no longer offers it"
	default:
		return nil
	}
	return &evidence.Failure{Class: reason.NotInState, Code: reason.CodeNotEarly, Message: why}
}

// unbegun stores why no maintenance was begun.
func (h handler) unbegun(ctx context.Context, r events.CheckpointRequested, text string, f *evidence.Failure) error {
	_, err := h.Fleet.Advancer.Conclude(ctx, evidence.Answered{Request: r.Request, NoCall: evidence.Unbegun, Text: text, Failure: f})
	return err
}

func (h handler) answer(ctx context.Context, r events.CheckpointRequested, op, text string, f *evidence.Failure) error {
	_, err := h.Fleet.Advancer.Answer(ctx, r.Request, op, text, f)
	return err
}
