package incident

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
)

// This file is the account of what Pitstop spends: what is charged, what is paid back, and what a budget still counts. The
// starts of stopped slices alone are counted by the record of calls.

// Charge is one call that counts against a budget.
type Charge struct {
	// Action names the budget: that of the restarts, or that of the deletions with the creations after them.
	Action   events.Action `json:"action"`
	Incident string        `json:"incident"`
	At       time.Time     `json:"at"`
	// Error is the error that a restart answered; see lastError.
	Error string `json:"error,omitzero"`
	// Void says that late evidence, or a person, has given it back.
	Void bool `json:"void,omitzero"`
}

// charge counts a call against the budget of its payer, once for all slices that are replaced together and for all its tries. A clean-up is
// charged to nobody, and a creation with the deletion before it.
func (x *effects) charge(effect Effect) {
	payer, first := effect.Action, effect.First
	switch {
	case payer == events.ActionRestart:
	case !effect.exclusive() || x.w.Incident.Ending != nil || effect.Action == events.ActionCreate && x.w.hasDeletedFor(effect):
		return
	default:
		payer = x.w.payer(x.w.Incident, effect.Slice)
	}
	if effect.Action == events.ActionDelete {
		first = x.w.firstWanted(effect.Action)
	}
	paid := func(c Charge) bool { return c.Incident == x.w.Incident.ID && !c.At.Before(first) }
	if payer != "" && x.w.charges(payer, paid) == 0 {
		x.w.Charges = append(x.w.Charges, Charge{Action: payer, Incident: x.w.Incident.ID, At: x.now, Error: x.w.Training.lastError()})
	}
}

// hasDeletedFor reports whether a call of the incident ended a life in whose place a creation makes the next one.
func (w *Workload) hasDeletedFor(creation Effect) bool {
	return slices.ContainsFunc(creation.all(), func(name string) bool { return w.life(name).EndedBy == w.Incident.ID })
}

// charges counts the charges of a budget that are so.
func (w *Workload) charges(a events.Action, so func(Charge) bool) (n int) {
	for _, c := range w.Charges {
		if c.Action == a && so(c) {
			n++
		}
	}
	return n
}

// Spent is how much of a budget is spent: what was charged since the last proof of progress, and not paid back.
func (w *Workload) Spent(a events.Action) int { return w.charges(a, w.isSpent) }

func (w *Workload) isSpent(c Charge) bool {
	return !w.isPaidBack(c) && c.At.After(w.Training.ProvenAt)
}

// isSpent reports whether a budget is spent, and whether that of the restarts is for today, whatever has paid them back or refilled the budget.
func (d *diagnosis) isSpent(budget events.Action) (spent, today bool) {
	switch budget {
	case events.ActionDelete:
		return d.w.Spent(budget) >= bounds.MaxRecreates, false
	case events.ActionRestart:
		lately := func(c Charge) bool { return c.At.After(before(d.now, day)) }
		return d.w.Spent(budget) >= bounds.MaxRestarts, d.p.Unreadable == "" && d.w.charges(budget, lately) >= d.p.DailyRestarts()
	default:
	}
	return false, false // nobody pays
}

// spentSince is since when budgets have been spent; zero where they are full.
func (w *Workload) spentSince() time.Time {
	if i := slices.IndexFunc(w.Charges, w.isSpent); i >= 0 {
		return w.Charges[i].At
	}
	return time.Time{}
}

// restartsIn counts the restarts that an incident has spent.
func (w *Workload) restartsIn(incident string) int {
	return w.charges(events.ActionRestart, func(c Charge) bool { return c.Incident == incident && !w.isPaidBack(c) })
}

// isSameError reports whether the crew gave up on the very error that the last restart had answered, without a new step in between.
func (w *Workload) isSameError() bool {
	for _, c := range slices.Backward(w.Charges) {
		if c.Action == events.ActionRestart && w.Training.Exit.At.After(c.At) {
			return c.Error != "" && c.Error == w.Training.lastError() && !w.isPaidBack(c)
		}
	}
	return false
}

// isPaidBack reports whether a charge counts no more: for what the training did there was a cause in its machines, or a slice that was
// replaced had ended as planned. What users can write pays nothing back.
func (w *Workload) isPaidBack(c Charge) bool {
	return c.Void || w.Incident.paysBack(c) || w.Closed.paysBack(c)
}

// paysBack reports whether an incident pays a charge back. A later event explains none of its trouble, and what was begun in the knowledge of the
// cause is spent.
func (in *Incident) paysBack(c Charge) bool {
	if in == nil || in.ID != c.Incident {
		return false
	}
	if c.Action != events.ActionRestart {
		return in.cause() == events.CauseEnd
	}
	var heard time.Time
	by := in.Troubles[0].At.Add(bounds.SickFor)
	for _, t := range in.Troubles {
		if t.Rank > events.RankUser && !t.Announced && t.Cause.Infrastructure() && t.At.Before(by) {
			heard = earliest(heard, t.Heard)
		}
	}
	return !c.At.After(heard)
}
