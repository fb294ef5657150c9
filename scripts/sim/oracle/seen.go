package oracle

import (
	"context"
	"reflect"
	"slices"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// seen is what the judge sees of a workload's document. It is taken from what is shown of it.
type seen struct {
	ID, Directory string
	// Epoch counts the requests and the incidents.
	Epoch int64
	// Open is the incident that is open, Over the one that ended last; nil where there is none. Ended is when the last one ended.
	Open, Over *seenIncident
	Ended      time.Time
	Slices     []seenSlice
	Requests   []seenRequest
	// Verified is the checkpoint that is called complete, Proven the step that is called done, and Spending is since when the budgets have
	// been spent.
	Verified string
	Proven   int64
	Spending time.Time
	// Finished says that the training is called finished, and WaitTold is when people were told last of a wait without an incident.
	Finished bool
	WaitTold time.Time
	// Unsent is how many events are not published yet.
	Unsent int

	shown    view.Workload
	document incident.Workload
}

// seenIncident is what it sees of an incident.
type seenIncident struct {
	ID             string
	Cause          events.Cause
	Opened, Closed time.Time
	Outcome        view.Outcome
	Code           reason.Code
	Reason         string
	ConfirmedBy    view.Confirmation
	// Phase names its wait. Until bounds that wait; only a Patient one may have no bound.
	Phase   view.Phase
	Until   time.Time
	Patient bool
	// First is when its first evidence gave itself, or was to be acted on, and Text what that evidence said.
	First time.Time
	Text  string
	// Down is when the training stopped, on so many Chips.
	Down  time.Time
	Chips int
	// Watches says that Pitstop may do nothing about it, and Forbidden that its policy has allowed nothing since it opened, for a while at least.
	Watches, Forbidden bool
	// Clears says that it only deletes what another one has left.
	Clears bool

	shown *view.Incident
}

// seenSlice is what it sees of a slice.
type seenSlice struct {
	Name, Zone string
	// Life is the one that is known last, in a Condition which the API calls State.
	Life      events.Incarnation
	Condition evidence.Condition
	State     string
	// Released says that it is called its owner's, StoppedBy who is said to have stopped it, Suspected that Google suspects abuse.
	Released  bool
	StoppedBy string
	Suspected bool
	// Spoke is when its crew was heard first in that life, Used since when it had been usable, and Waits since when it waits for a machine.
	Spoke, Used, Waits time.Time
}

// seenRequest is what it sees of a request that is not answered.
type seenRequest struct {
	Action events.Action
	// Slice and With are those that it is about, in a zone.
	Slice, Zone string
	With        []string
	Epoch       int64
	Attempt     int
	Sent        time.Time
	// Begun says that its call may be under way, with an ID.
	Begun bool
	ID    string
}

func (r seenRequest) concerns(slice string) bool {
	return r.Slice == slice || slices.Contains(r.With, slice)
}

// seenCall is what it sees of a call in the record of an incident.
type seenCall struct {
	Method, Resource, RequestID, Operation string
	At, Answered                           time.Time
	// Again and Folded count its later deliveries and the later calls that it stands for.
	Again, Folded int
	Code          reason.Code
	NotMade       bool
}

// see is what the judge sees of a document that shows this.
func see(w incident.Workload, v view.Workload) seen {
	s := seen{
		ID: v.ID, Directory: v.Directory, Epoch: v.Epoch, Open: seeIncident(v, v.Incident), Over: seeIncident(v, v.Closed), Ended: v.Ended,
		Verified: v.Training.VerifiedURI, Proven: v.Training.Proven, Spending: v.BudgetsSince, Finished: v.Training.Finished, WaitTold: v.WaitTold,
		Unsent: v.Unsent, shown: v, document: w,
	}
	for _, l := range v.Slices {
		s.Slices = append(s.Slices, seenSlice{
			l.Name, l.Zone, l.Incarnation, l.Condition, l.State, l.Released, l.StoppedBy, l.Suspected, l.Spoke, l.Used, l.WaitingSince,
		})
	}
	for _, r := range v.Requests {
		s.Requests = append(s.Requests, seenRequest{r.Action, r.Slice, r.Zone, r.With, r.Epoch, r.Attempt, r.Sent, !r.Begun.IsZero(), r.RequestID})
	}
	return s
}

func seeIncident(w view.Workload, in *view.Incident) *seenIncident {
	if in == nil {
		return nil
	}
	s := &seenIncident{
		ID: in.ID, Cause: in.Cause, Opened: in.Opened, Closed: in.Closed, Outcome: in.Outcome, Code: in.Code, Reason: in.Reason, ConfirmedBy: in.ConfirmedBy,
		Phase: in.Phase, Patient: in.Phase == view.Approving || in.Phase == view.PhaseCreating, Down: in.Down, Watches: in.OnlyWatched,
		Forbidden: in.Switches.WatchOnly(), Clears: in.Clears != "", shown: in,
	}
	if s.Until = in.Deadline; !s.Until.IsZero() {
		s.Until = later(s.Until, in.Since) // its wait may be over when it begins
	}
	if len(in.Troubles) > 0 {
		first := in.Troubles[0]
		s.First, s.Text = first.At, first.Text
		if n := w.Announced(first.Slice); first.Announced && n != nil {
			s.First = later(s.First, n.Due) // that maintenance is announced is no reason to do anything before the save is due
		}
	}
	for _, l := range in.Cost.Slices {
		s.Chips += l.Chips
	}
	return s
}

// calls are those in the record of an incident.
func (in *seenIncident) calls() (all []seenCall) {
	for _, c := range in.shown.Calls {
		all = append(all, seenCall{c.Method, c.Resource, c.RequestID, c.Operation, c.At, c.Answered, c.Again, c.Folded, c.Code, c.NotMade})
	}
	return all
}

// slice is one of a workload; nil where it has none of that name.
func (w seen) slice(name string) *seenSlice {
	if i := slices.IndexFunc(w.Slices, func(s seenSlice) bool { return s.Name == name }); i >= 0 {
		return &w.Slices[i]
	}
	return nil
}

// asks reports whether one of its requests is as it should be.
func (w seen) asks(is func(r seenRequest) bool) bool { return slices.ContainsFunc(w.Requests, is) }

// due is when somebody has to look at it again.
func (w seen) due() time.Time { return w.shown.Due }

// phase is where a workload stands.
func (w seen) phase() string {
	if w.Open == nil {
		return "peace"
	}
	return string(w.Open.Phase)
}

// document is what the judge sees of a workload in the ledger.
func (c *Checks) document(workload string) (seen, error) {
	w, _, err := c.Ledger.Workload(context.Background(), workload)
	return see(w, w.Shown(c.Clock.Now())), err
}

// archived is an incident in the archive.
func (c *Checks) archived(workload, id string) (*seenIncident, error) {
	in, err := c.Ledger.Closed(context.Background(), workload, id)
	v := incident.Workload{}.ShownIncident(in, c.Clock.Now())
	return seeIncident(view.Workload{}, &v), err
}

// handed is the document that a handling has read or written last.
func (c *Checks) handed(inst *world.Instance) (seen, error) {
	w, err := ledger.Value[incident.Workload](inst.Workload)
	return see(w, w.Shown(c.Clock.Now())), err
}

// alike reports whether two documents say the same.
func alike(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	one, errOne := json.Marshal(a, json.Deterministic(true))
	two, errTwo := json.Marshal(b, json.Deterministic(true))
	return errOne == nil && errTwo == nil && slices.Equal(one, two)
}
