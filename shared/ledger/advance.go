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
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// Publisher stores an event for delivery; see package publish.
type Publisher interface {
	Publish(ctx context.Context, e events.Envelope) error
}

// Taker is a Publisher that says of an event type whether it has somewhere to bring it. What only some deployments want is
// sent by one that says yes.
type Taker interface {
	Takes(eventType string) bool
}

// Policies says what holds for a label now; see package policy.
type Policies interface {
	For(ctx context.Context, label string) policy.Policy
}

// Advancer is the loop around the decision, the same in every function: load, advance, save together with what has to
// be sent, send, clear. When Advance returns nil, what follows from the evidence is stored, and the message that brought
// it may be acknowledged; what could not be sent yet stays in the document's outbox, where patrol finds it.
type Advancer struct {
	Ledger    *Ledger
	Policies  Policies
	Publisher Publisher
	Now       func() time.Time
	// Decide takes the place of incident.Advance, where it is set: simulations break rules on purpose there.
	Decide Decision
	// Sleep waits between two tries.
	Sleep func(ctx context.Context, d time.Duration) error
	// Source names the function in what it sends; Cause is the message that a context was made for.
	Source string
	Cause  func(ctx context.Context) string
	Log    *slog.Logger
	// Fits holds the order of a slice against places that would be asked for it, were it allowed; nil holds nothing.
	Fits func(ctx context.Context, w incident.Workload, slice string, places []incident.Place, p policy.Policy) ([]incident.ZoneFit, error)
	// Saved is told of every write that took effect; nil tells nobody.
	Saved func(ctx context.Context, s Step)
}

// Decision is what incident.Advance does.
type Decision func(p policy.Policy, w incident.Workload, e incident.Evidence, now time.Time) (next incident.Workload, send []events.Event, changed bool)

// Step is one write of a workload's document. Advancing Before by the evidence makes After, but for its outbox.
type Step struct {
	Before, After incident.Workload
	// Evidence is what was learned under Policy at this time; there is none when the outbox was emptied.
	Evidence []incident.Evidence
	Policy   policy.Policy
	At       time.Time
}

// Advance feeds evidence to a workload and returns it as it stands then. Evidence that teaches nothing is not written.
// It returns ErrNotFound for a workload that is not in the ledger, and an error only when nothing could be stored.
func (a *Advancer) Advance(ctx context.Context, id string, evidence ...incident.Evidence) (incident.Workload, error) {
	w, _, err := a.advance(ctx, id, nil, evidence)
	return w, err
}

// AdvanceChanged is Advance that also tells whether this very evidence was stored: of many that say the same, one is.
func (a *Advancer) AdvanceChanged(ctx context.Context, id string, evidence ...incident.Evidence) (incident.Workload, bool, error) {
	return a.advance(ctx, id, nil, evidence)
}

// Introduce is Advance for a workload that may be new: it begins as the given one.
func (a *Advancer) Introduce(ctx context.Context, w incident.Workload, evidence ...incident.Evidence) (incident.Workload, error) {
	w, _, err := a.advance(ctx, w.ID, &w, evidence)
	return w, err
}

func (a *Advancer) advance(ctx context.Context, id string, fresh *incident.Workload, evidence []incident.Evidence) (w incident.Workload, changed bool, err error) {
	for try := range tries {
		if try > 0 {
			// Whoever was faster has most likely stored the same; the jitter keeps the rest apart.
			if err := a.Sleep(ctx, jitter(a.Cause(ctx), try)); err != nil {
				return w, false, fmt.Errorf("ledger: advance %s: %w", id, err)
			}
		}
		if w, changed, err = a.try(ctx, id, fresh, evidence); !errors.Is(err, ErrConflict) {
			return w, changed, err
		}
	}
	return w, false, fmt.Errorf("ledger: advance %s: %w, %d times", id, ErrConflict, tries)
}

// jitter is the time before a new try, the longer the more have failed. It comes from the message and not from chance, so
// that a run can be repeated: what matters is that it differs between those who are in each other's way.
func jitter(message string, try int) time.Duration {
	h := fnv.New32a()
	h.Write([]byte(message + " " + strconv.Itoa(try)))
	return time.Duration(1+h.Sum32()%(1<<try)) * 10 * time.Millisecond
}

func (a *Advancer) try(ctx context.Context, id string, fresh *incident.Workload, evidence []incident.Evidence) (w incident.Workload, changed bool, err error) {
	before, rev, err := a.Ledger.Workload(ctx, id)
	label := before.Label
	switch {
	case errors.Is(err, ErrNotFound) && fresh != nil:
		before, label = *fresh, labelOf(evidence)
	case err != nil:
		return w, false, err
	}
	decide := a.Decide
	if decide == nil {
		decide = incident.Advance
	}
	p := a.Policies.For(ctx, label)
	now := a.Now()
	w = before
	w.Outbox = slices.Clip(w.Outbox)
	var sent []events.Envelope
	var taken []incident.Evidence
	for _, e := range evidence {
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
	}
	if !changed {
		return before, false, nil
	}
	w.Outbox = append(w.Outbox, sent...)
	if w.Outbox, err = a.update(ctx, before, w, now); err != nil {
		return w, false, fmt.Errorf("ledger: advance %s: %w", id, err)
	}
	rev, err = a.Ledger.Save(ctx, w, rev)
	if err != nil {
		return w, false, err
	}
	if a.Saved != nil {
		a.Saved(ctx, Step{Before: before, After: w, Evidence: taken, Policy: p, At: now})
	}
	a.tell(ctx, before, w, sent, now)
	a.remember(ctx, before, evidence, now)
	if len(w.Outbox) > 0 {
		w = a.empty(ctx, w, rev)
	}
	return w, true, nil
}

// update adds to an outbox, behind all requests, what people have to hear. One that still waits there is overtaken.
func (a *Advancer) update(ctx context.Context, before, w incident.Workload, now time.Time) ([]events.Envelope, error) {
	out := w.Outbox
	if !a.takes(events.TypeIncidentUpdated) {
		return out, nil
	}
	for _, u := range incident.Updates(before, w) {
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

// takes reports whether the publisher has somewhere to bring an event that not every deployment wants.
func (a *Advancer) takes(eventType string) bool {
	t, ok := a.Publisher.(Taker)
	return ok && t.Takes(eventType)
}

// fitted holds the orders of slices against the zones that would be asked, where a decision has come to that. What cannot be read
// stays open, and keeps nothing from being decided.
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
			a.Log.WarnContext(ctx, "order not held against zones", "workload", w.ID, "slice", slice, "error", err.Error())
			continue
		}
		all = append(all, incident.Fitted{Origin: a.origin(), Slice: slice, Zones: fits})
	}
}

// labelOf is the policy that the evidence itself names: the document of a new workload names none yet.
func labelOf(evidence []incident.Evidence) string {
	for _, e := range evidence {
		if r, ok := e.(incident.Read); ok {
			return r.Facts.Label
		}
	}
	return ""
}

// envelope wraps an event that follows from a decision. The event that ends an incident takes the incident's record
// along, because the document forgets it.
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

// Flush sends what an outbox was left full of, and empties it.
func (a *Advancer) Flush(ctx context.Context, id string) error {
	w, rev, err := a.Ledger.Workload(ctx, id)
	if err != nil || len(w.Outbox) == 0 {
		return err
	}
	a.empty(ctx, w, rev)
	return nil
}

// empty sends the outbox of a document that was just read or written and clears what was sent. What goes wrong is
// logged and left: the document is due until its outbox is empty.
func (a *Advancer) empty(ctx context.Context, w incident.Workload, rev Revision) incident.Workload {
	sent := map[string]bool{}
	for _, e := range w.Outbox {
		if err := a.send(ctx, w.ID, e); err != nil {
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
		_, err := a.Ledger.Save(ctx, w, rev)
		if err == nil {
			if a.Saved != nil {
				a.Saved(ctx, Step{Before: full, After: w, At: a.Now()})
			}
			return w
		}
		if errors.Is(err, ErrConflict) {
			if fresh, r, readErr := a.Ledger.Workload(ctx, w.ID); readErr == nil {
				w, rev = fresh, r
				continue
			}
		}
		a.Log.WarnContext(ctx, "outbox not cleared", "workload", w.ID, "error", err.Error())
		return w
	}
	return w
}

func (a *Advancer) send(ctx context.Context, workload string, e events.Envelope) error {
	switch {
	case e.Type == events.TypeIncidentUpdated && !a.takes(e.Type):
		return nil // nobody is to be told any more
	case e.Type != events.TypeIncidentClosed:
		return a.Publisher.Publish(ctx, e)
	}
	var in incident.Incident
	if err := json.Unmarshal(e.Data, &in); err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return a.Ledger.SaveClosed(ctx, workload, in)
}
