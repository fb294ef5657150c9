// Package orders has what a person may tell Pitstop about a workload: which orders are possible now, what each will do, and how one is carried
// out. The terminal, the console's pages and the function order use it alike.
package orders

import (
	"context"
	"errors"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/view"
)

// Order is what a person tells Pitstop about a workload.
type Order struct {
	evidence.Word
	Verb     evidence.Verb
	Workload string
	// Incident is the one that the person saw open; empty without one. Action is the question that an approval answers.
	Incident string
	Action   events.Action
	// Until is when a pause ends by itself; zero for never.
	Until time.Time
	// At is when it was given.
	At time.Time
}

// LateAfter is how old an order may be. What a person saw longer ago is no reason any more to act.
const LateAfter = 10 * time.Minute

// Offer is an order that is possible now.
type Offer struct {
	Verb evidence.Verb
	// Incident and Action are those of the order.
	Incident string
	Action   events.Action
	// Does says what it will do.
	Does string
}

// Offers are the orders that are possible now, the one that is asked for first.
func Offers(w incident.Workload, now time.Time) (all []Offer) {
	open := ""
	var asked events.Action
	if in := w.Shown(now).Incident; in != nil {
		open, asked = in.ID, in.Asked
	}
	for _, verb := range []evidence.Verb{evidence.VerbApprove, evidence.VerbRetry, evidence.VerbCancel, evidence.VerbPause, evidence.VerbResume} {
		o := Offer{Verb: verb, Incident: open}
		if verb == evidence.VerbApprove {
			o.Action = asked
		}
		paused := w.Pause.Holds(now)
		idle := verb == evidence.VerbResume && !paused || verb == evidence.VerbPause && paused
		if idle || Refused(w, Order{Verb: verb, Workload: w.ID, Incident: open, Action: o.Action, At: now}, now) != "" {
			continue
		}
		o.Does = does(w, verb, open)
		all = append(all, o)
	}
	return all
}

// does says what an order will do.
func does(w incident.Workload, verb evidence.Verb, open string) string {
	switch verb {
	case evidence.VerbApprove:
		return w.Question()
	case evidence.VerbCancel:
		return "you take " + open + " over: Pitstop requests, deletes and creates nothing more for it"
	case evidence.VerbRetry:
		if open != "" {
			return "what was refused is asked for again at once, in every place"
		}
		return "what cannot be used is replaced as the policy allows, and a crew that has given up is asked for another attempt"
	case evidence.VerbPause:
		return "Pitstop changes nothing of " + w.Name + " until somebody resumes it; it still watches and reports"
	case evidence.VerbResume:
		return "Pitstop acts again; " + w.Pause.By + " had paused it"
	default:
		return ""
	}
}

// Refused says why an order is not possible now; empty where it is.
func Refused(w incident.Workload, o Order, now time.Time) string {
	in := w.Shown(now).Incident
	switch o.Verb {
	case evidence.VerbPause, evidence.VerbResume:
		return refusedPause(w, o)
	case evidence.VerbApprove, evidence.VerbCancel, evidence.VerbRetry:
	default:
		return "there is no order " + string(o.Verb)
	}
	switch {
	case o.Incident != "" && (in == nil || in.ID != o.Incident):
		return o.Incident + " is over"
	case o.Incident == "" && in != nil:
		return in.ID + " has opened since"
	case o.Verb == evidence.VerbRetry:
		if why := w.NothingToRetry(now); why != "" {
			return "there is nothing to retry of " + w.ID + ": " + why
		}
	case in == nil:
		return w.ID + " has no open incident"
	case o.Verb == evidence.VerbApprove && w.Question() == "":
		return in.ID + " waits for no approval: it is " + string(in.Phase)
	case o.Verb == evidence.VerbApprove && in.Asked != o.Action:
		return in.ID + " asks for something else now"
	case o.Verb == evidence.VerbCancel && in.Phase == view.Clearing:
		return in.ID + " is over except for its clean-up: it deletes the slices that it ordered itself; pitstop pause " + w.Name + " holds that"
	}
	return ""
}

// refusedPause says why a pause, or its end, is not possible; empty where it is. An order that comes as a message may come after a later one: the last
// word of people counts.
func refusedPause(w incident.Workload, o Order) string {
	if o.Verb == evidence.VerbResume && w.Pause == nil {
		return w.ID + " was not paused"
	}
	for _, last := range slices.Backward(w.Orders) {
		switch last.Verb {
		case evidence.VerbPause, evidence.VerbResume:
			if o.ID != "" && last.Verb != o.Verb && last.At.After(o.At) {
				return last.By + " has given the order " + string(last.Verb) + " since"
			}
			return ""
		default:
		}
	}
	return ""
}

// RefusedError is the error of an order that is not possible, or no longer.
type RefusedError string

// Error implements error.
func (r RefusedError) Error() string { return string(r) }

// ErrTaken says that an order came again: what became of it stands in the record.
var ErrTaken = errors.New("this order was taken before")

// moved says that a workload has moved on between the look at it and the order.
func moved(o Order) RefusedError {
	switch o.Verb {
	case evidence.VerbApprove:
		return RefusedError(o.Incident + " does not ask for that any more; pitstop status shows its state")
	case evidence.VerbCancel:
		return RefusedError(o.Incident + " has ended meanwhile, or its clean-up runs; pitstop status shows its state")
	default:
		return RefusedError(o.Workload + " has moved on meanwhile; pitstop status shows its state")
	}
}

// evidence is the order as Pitstop learns of it.
func (o Order) evidence() evidence.Evidence {
	switch o.Verb {
	case evidence.VerbApprove:
		return evidence.Approved{Word: o.Word, Incident: o.Incident, Action: o.Action}
	case evidence.VerbCancel:
		return evidence.Cancelled{Word: o.Word, Incident: o.Incident}
	case evidence.VerbRetry:
		return evidence.Retried{Word: o.Word}
	case evidence.VerbPause, evidence.VerbResume:
		return evidence.Paused{Word: o.Word, Until: o.Until, Lift: o.Verb == evidence.VerbResume}
	default:
		return evidence.Ordered{Word: o.Word, Verb: o.Verb}
	}
}

// Apply carries out an order, once however often it comes: then its error is ErrTaken. It is a RefusedError where the order is not possible.
func Apply(ctx context.Context, a *ledger.Advancer, o Order) (incident.Workload, error) {
	w, err := a.Workload(ctx, o.Workload)
	switch {
	case err != nil:
		return w, err
	case w.Heard(o.ID):
		return w, ErrTaken
	}
	now := a.Now()
	if age := now.Sub(o.At); age > LateAfter {
		return w, RefusedError("it was given " + events.Span(age) + " ago, which is too long")
	}
	if why := Refused(w, o, now); why != "" {
		return w, RefusedError(why)
	}
	w, news, err := a.AdvanceChanged(ctx, o.Workload, o.evidence())
	again := slices.Contains([]evidence.Verb{evidence.VerbPause, evidence.VerbResume}, o.Verb) // to say it twice is no mistake
	switch {
	case err != nil || news:
	case w.Heard(o.ID):
		err = ErrTaken
	case !again:
		err = moved(o)
	}
	return w, err
}

// Note keeps with a workload that an order was refused, for the one who gave it.
func Note(ctx context.Context, a *ledger.Advancer, o Order, why RefusedError) error {
	_, err := a.Advance(ctx, o.Workload, evidence.Ordered{Word: o.Word, Verb: evidence.VerbRefused, Text: string(o.Verb) + ": " + string(why)})
	return err
}
