package ledger

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"log/slog"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// Publisher stores an event for delivery; see package publish.
type Publisher interface {
	Publish(ctx context.Context, e events.Envelope) error
}

// Taker is a Publisher that says whether it has a topic for an event type. Events that only some deployments want are sent
// only if it says yes.
type Taker interface {
	Takes(eventType string) bool
}

// Policies returns the policy that holds for a label now; see package policy.
type Policies interface {
	For(ctx context.Context, label string) policy.Policy
}

// Advancer is the loop around the decision, the same in every function: load, advance, save together with the events to
// send, send, clear. When Advance returns nil, the consequences of the evidence are stored, and the message that brought it
// may be acknowledged. Unsent events stay in the document's outbox, where patrol finds them.
type Advancer struct {
	Ledger    *Ledger
	Policies  Policies
	Publisher Publisher
	Now       func() time.Time
	// Decide replaces incident.Advance if it is set: simulations break rules on purpose there.
	Decide Decision
	// Omit leaves out some of what has to be read if it is set, likewise.
	Omit func(all incident.Reads) incident.Reads
	// Sleep waits between two tries.
	Sleep func(ctx context.Context, d time.Duration) error
	// Source names the function in the events that it sends; Cause is the message that a context was made for.
	Source string
	Cause  func(ctx context.Context) string
	Log    *slog.Logger
	// Fits checks the order of a slice against places that would be asked for it, were it allowed; nil checks none.
	Fits func(ctx context.Context, w incident.Workload, slice string, places []view.Place, p policy.Policy) ([]view.ZoneFit, error)
	// Saved is called after every write that took effect; nil is no call.
	Saved func(ctx context.Context, s Step)

	held *Held // nil holds nothing
}

// Decision is the type of incident.Advance.
type Decision func(p policy.Policy, w incident.Workload, e evidence.Evidence, now time.Time) (next incident.Workload, send []events.Event, changed bool)

// Step is one write of a workload's document. Advancing Before by the evidence makes After, apart from its outbox.
type Step struct {
	Before, After incident.Workload
	// Evidence is the evidence taken in under Policy at this time; empty if the write only emptied the outbox.
	Evidence []evidence.Evidence
	Policy   policy.Policy
	At       time.Time
}

// Reads says what has to be read about a workload now.
func (a *Advancer) Reads(w incident.Workload) incident.Reads {
	all := w.Reads(a.Now())
	if a.Omit != nil {
		all = a.Omit(all)
	}
	return all
}

// Advance feeds evidence to a workload and returns the workload afterwards. Evidence without news is not written. It returns
// ErrNotFound for a workload that is not in the ledger, and another error only if it could not store.
func (a *Advancer) Advance(ctx context.Context, id string, all ...evidence.Evidence) (incident.Workload, error) {
	w, _, err := a.advance(ctx, id, nil, all)
	return w, err
}

// AdvanceChanged is Advance, and also reports whether this very evidence was stored: of many equal ones, only one is.
func (a *Advancer) AdvanceChanged(ctx context.Context, id string, all ...evidence.Evidence) (incident.Workload, bool, error) {
	return a.advance(ctx, id, nil, all)
}

// Introduce is Advance for a workload that may be new; a new one begins as given.
func (a *Advancer) Introduce(ctx context.Context, w incident.Workload, all ...evidence.Evidence) (incident.Workload, error) {
	w, _, err := a.advance(ctx, w.ID, &w, all)
	return w, err
}

func (a *Advancer) advance(ctx context.Context, id string, fresh *incident.Workload, all []evidence.Evidence) (w incident.Workload, changed bool, err error) {
	for try := range tries {
		if try > 0 {
			// The faster writer has most likely stored the same; the jitter keeps the others apart.
			if err := a.Sleep(ctx, jitter(a.Cause(ctx), try)); err != nil {
				return w, false, fmt.Errorf("ledger: advance %s: %w", id, err)
			}
		}
		if w, changed, err = a.try(ctx, id, fresh, all); !errors.Is(err, ErrConflict) {
			return w, changed, err
		}
	}
	return w, false, fmt.Errorf("ledger: advance %s: %w, %d times", id, ErrConflict, tries)
}

// jitter is the time before a new try; it grows with each failure. It is derived from the message, not from chance, so that
// a run can be repeated. It only has to differ between competing writers.
func jitter(message string, try int) time.Duration {
	h := fnv.New32a()
	h.Write([]byte(message + " " + strconv.Itoa(try)))
	return time.Duration(1+h.Sum32()%(1<<try)) * 10 * time.Millisecond
}

func (a *Advancer) try(ctx context.Context, id string, fresh *incident.Workload, all []evidence.Evidence) (w incident.Workload, changed bool, err error) {
	d, err := a.document(ctx, id)
	before, rev := d.workload, d.revision
	label := before.Label
	switch {
	case errors.Is(err, ErrNotFound) && fresh != nil:
		before, label = *fresh, labelOf(all)
	case err != nil:
		return w, false, err
	}
	decide := a.Decide
	if decide == nil {
		decide = incident.Advance
	}
	p := before.Limited(a.Policies.For(ctx, label))
	now := a.Now()
	w = before
	w.Outbox = slices.Clip(w.Outbox)
	var sent []events.Envelope
	var taken []evidence.Evidence
	given := len(all)
	for i := 0; i < len(all); i++ {
		e := all[i]
		next, send, did := decide(p, w, e, now)
		taken = append(taken, e)
		if did {
			for _, f := range a.fitted(ctx, w, next, p) {
				next, _, _ = decide(p, next, f, now)
				taken = append(taken, f)
			}
		}
		w, changed = next, changed || did
		for _, ev := range send {
			env, err := a.envelope(ctx, w, ev, now)
			if err != nil {
				return w, false, fmt.Errorf("ledger: advance %s: %w", id, err)
			}
			sent = append(sent, env)
		}
		if i == given-1 {
			all = slices.Concat(all, w.Bound()) // what was kept until whatever has become known now
		}
	}
	if !changed {
		return before, false, nil
	}
	w.Outbox = append(w.Outbox, sent...)
	if w.Outbox, err = a.update(ctx, before, w, now); err != nil {
		return w, false, fmt.Errorf("ledger: advance %s: %w", id, err)
	}
	rev, err = a.save(ctx, w, rev)
	if err != nil {
		return w, false, err
	}
	if a.Saved != nil {
		a.Saved(ctx, Step{Before: before, After: w, Evidence: taken, Policy: p, At: now})
	}
	a.tell(ctx, before, w, sent, now)
	a.remember(ctx, before, all, now)
	if len(w.Outbox) > 0 {
		w = a.empty(ctx, w, rev)
	}
	return w, true, nil
}

// update adds the update for people to an outbox, after all requests. It replaces one that still waits there.
func (a *Advancer) update(ctx context.Context, before, w incident.Workload, now time.Time) ([]events.Envelope, error) {
	out := w.Outbox
	if !a.takes(events.TypeIncidentUpdated) {
		return out, nil
	}
	for _, u := range incident.Updates(before, w, now) {
		env, err := a.envelope(ctx, w, u, now)
		if err != nil {
			return nil, err
		}
		out = append(slices.DeleteFunc(slices.Clone(out), func(o events.Envelope) bool {
			return o.Type == env.Type && o.Correlation == env.Correlation
		}), env)
	}
	return out, nil
}

// takes reports whether the publisher has a topic for an event that not every deployment wants.
func (a *Advancer) takes(eventType string) bool {
	t, ok := a.Publisher.(Taker)
	return ok && t.Takes(eventType)
}

// fitted checks the orders of slices against the zones that would be asked, if the decision needs it. An unreadable order
// stays unchecked, and does not hold up the decision.
func (a *Advancer) fitted(ctx context.Context, before, w incident.Workload, p policy.Policy) (all []incident.Fitted) {
	in := w.Incident
	if in == nil && idOf(w.Closed) != idOf(before.Closed) {
		in = w.Closed // it has just ended
	}
	if a.Fits == nil || in == nil {
		return nil
	}
	var asked []string
	for {
		slice, places := in.Unfitted(asked...)
		if places == nil {
			return all
		}
		asked = append(asked, slice)
		fits, err := a.Fits(ctx, w, slice, places, p)
		if err != nil {
			a.Log.WarnContext(ctx, "order not checked against zones", "workload", w.ID, "slice", slice, "error", err.Error())
			continue
		}
		all = append(all, incident.Fitted{Origin: a.origin(), Slice: slice, Zones: fits})
	}
}

// labelOf is the policy in the evidence itself, because the document of a new workload names none yet.
func labelOf(all []evidence.Evidence) string {
	for _, e := range all {
		if r, ok := e.(evidence.Read); ok {
			return r.Facts.Label
		}
	}
	return ""
}

// envelope wraps an event that follows from a decision. The event that ends an incident carries the incident's record,
// because the document forgets it.
func (a *Advancer) envelope(ctx context.Context, w incident.Workload, e events.Event, now time.Time) (events.Envelope, error) {
	var correlation string
	switch e := e.(type) {
	case events.IncidentClosed:
		correlation = e.Incident
	case events.IncidentUpdated:
		correlation = e.Incident
	case interface{ Header() events.Request }:
		correlation = e.Header().Incident
	}
	env, err := events.Wrap(e, a.Source, a.Cause(ctx), correlation, now)
	if err != nil || env.Type != events.TypeIncidentClosed {
		return env, err
	}
	env.Data, err = json.Marshal(w.Closed)
	return env, err
}

// Flush sends the events left in an outbox, and empties it.
func (a *Advancer) Flush(ctx context.Context, id string) error {
	d, err := a.read(ctx, id) // what another function has sent is not sent again
	if err != nil || len(d.workload.Outbox) == 0 {
		return err
	}
	a.empty(ctx, d.workload, d.revision)
	return nil
}

// empty sends the outbox of a document that was just read or written, and clears the sent events. Failures are logged and
// left: the document is due until its outbox is empty.
func (a *Advancer) empty(ctx context.Context, w incident.Workload, rev Revision) incident.Workload {
	sent := map[string]bool{}
	for _, e := range w.Outbox {
		if err := a.send(ctx, w, e); err != nil {
			a.Log.WarnContext(ctx, "event left in the outbox", "workload", w.ID, "event_type", e.Type, "event_id", e.ID, "error", err.Error())
			continue
		}
		sent[e.ID] = true
	}
	if len(sent) == 0 {
		return w
	}
	for range tries {
		full := w
		w.Outbox = slices.DeleteFunc(slices.Clone(w.Outbox), func(e events.Envelope) bool { return sent[e.ID] })
		if len(w.Outbox) == 0 {
			w.Outbox = nil
		}
		_, err := a.save(ctx, w, rev)
		if err == nil {
			if a.Saved != nil {
				a.Saved(ctx, Step{Before: full, After: w, At: a.Now()})
			}
			return w
		}
		if errors.Is(err, ErrConflict) {
			if d, readErr := a.read(ctx, w.ID); readErr == nil {
				w, rev = d.workload, d.revision
				continue
			}
		}
		a.Log.WarnContext(ctx, "outbox not cleared", "workload", w.ID, "error", err.Error())
		return w
	}
	return w
}

func (a *Advancer) send(ctx context.Context, w incident.Workload, e events.Envelope) error {
	switch {
	case e.Type == events.TypeIncidentUpdated && !a.takes(e.Type):
		return nil // this deployment no longer notifies anybody
	case e.Type != events.TypeIncidentClosed:
		return a.Publisher.Publish(ctx, e)
	}
	var in incident.Incident
	if err := json.Unmarshal(e.Data, &in); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return a.Ledger.SaveClosed(ctx, w, in)
}
