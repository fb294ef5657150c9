package faults

import (
	"context"
	"time"

	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/view"
)

// Operators are on call for a simulated deployment: now and then one takes an incident over, or has tried again what waits or
// was given up. Their words reach the ledger as the operator's command brings them.
type Operators struct {
	*Troubles
	dice Dice
	// looks is how often they have looked.
	looks int
}

// onCall is how often somebody on call looks at everything. The other numbers are percentages: of the open incidents that
// they cancel, and of the failed workloads that they retry.
const (
	onCall  = 71 * time.Minute
	cancels = 4
	retries = 25
)

// NewOperators are those of a fleet with its troubles.
func NewOperators(t *Troubles) *Operators {
	return &Operators{Troubles: t, dice: NewDice(t.sim.Seed).Of("operators")}
}

// Plan has them look from now on, for as long as things happen.
func (o *Operators) Plan() {
	o.after(onCall, func() {
		if o.over {
			return
		}
		o.look()
		o.Plan()
	})
}

func (o *Operators) look() {
	o.looks++
	ids, err := o.Ledger.All(context.Background())
	o.Must(err)
	for _, id := range ids {
		doc, _, err := o.Ledger.Workload(context.Background(), id)
		if fault.IsBusy(err) {
			continue // a newer release wrote it
		}
		o.Must(err)
		drawn := o.dice.Of(id).nth(o.looks).intN(100)
		word := evidence.Word{By: "eve@example.com", Why: "on call"}
		origin := evidence.Origin{ID: world.ApprovalID, Time: o.Clock.Now()}
		switch w := doc.Shown(o.Clock.Now()); {
		case w.Incident != nil && w.Incident.Phase != view.Clearing && drawn < cancels:
			o.orders(w, evidence.Cancelled{Origin: origin, Word: word, Incident: w.Incident.ID}, "incident cancelled")
		case doc.NothingToRetry(o.Clock.Now()) == "" && drawn >= 100-retries:
			o.orders(w, evidence.Retried{Origin: origin, Word: word}, "retried")
		}
	}
}

// orders gives a word to a workload. That somebody did is a reason for what follows.
func (t *Troubles) orders(w view.Workload, e evidence.Evidence, what string) {
	t.checks.Happened(what, w.Slices[0].Name)
	t.Clock.Go(func() { t.Says(w.ID, e) })
	t.Clock.Settle()
}
