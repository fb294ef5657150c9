package scenario

import (
	"maps"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/tpu/tputest"
)

// complete works out what follows from the counts and samples of a report.
func (r *Report) complete() {
	r.Reaction = map[string]Percentiles{}
	for stage, samples := range r.samples {
		r.Reaction[stage] = percentiles(samples)
	}
	r.TransitionsMissing, r.ErrorClassesMissing = []string{}, []string{}
	for _, t := range incident.Transitions() {
		if name := t[0] + " -> " + t[1]; r.Transitions[name] == 0 {
			r.TransitionsMissing = append(r.TransitionsMissing, name)
		}
	}
	for _, c := range incident.FailureClasses() {
		if c == incident.CannotMove || c == incident.OtherRegion {
			continue // they are our own word, and no API's
		}
		if r.ErrorClasses[string(c)] == 0 {
			r.ErrorClassesMissing = append(r.ErrorClassesMissing, string(c))
		}
	}
}

// Sum is one report of several seeds in a row. Its percentiles are those of all samples together, its goodput is the mean.
func Sum(reports []*Report) *Report {
	sum := *reports[0]
	sum.samples = map[string][]time.Duration{}
	for stage, samples := range reports[0].samples {
		sum.samples[stage] = slices.Clone(samples)
	}
	for _, r := range reports[1:] {
		sum.Seeds += r.Seeds
		sum.Incidents += r.Incidents
		sum.Faults += r.Faults
		sum.Handled += r.Handled
		sum.Braked += r.Braked
		sum.Goodput += r.Goodput
		sum.ChipHours.Total += r.ChipHours.Total
		sum.ChipHours.Lost += r.ChipHours.Lost
		sum.Violations = slices.Concat(sum.Violations, r.Violations)
		for _, c := range []struct{ to, from *map[string]int }{
			{&sum.Ended, &r.Ended},
			{&sum.Confirmed, &r.Confirmed},
			{&sum.Causes, &r.Causes},
			{&sum.Actions, &r.Actions},
			{&sum.Transitions, &r.Transitions},
			{&sum.ErrorClasses, &r.ErrorClasses},
			{&sum.Happened, &r.Happened},
		} {
			*c.to = added(*c.to, *c.from)
		}
		ends := map[string]map[string]int{}
		for _, of := range []map[string]map[string]int{sum.Ends, r.Ends} {
			for trouble, how := range of {
				ends[trouble] = added(how, ends[trouble])
			}
		}
		sum.Ends = ends
		sum.LostHours = added(sum.LostHours, r.LostHours)
		for stage, samples := range r.samples {
			sum.samples[stage] = append(sum.samples[stage], samples...)
		}
	}
	sum.Goodput /= float64(len(reports))
	sum.complete()
	return &sum
}

func added[N int | float64](a, b map[string]N) map[string]N {
	sum := maps.Clone(a)
	for k, v := range b {
		sum[k] += v
	}
	return sum
}

// decided measures from the first evidence of an incident to its opening. That maintenance is announced is no reason to do
// anything before the save is due.
func (c *checks) decided(w incident.Workload, now time.Time) {
	if len(w.Incident.Troubles) == 0 {
		return
	}
	first := w.Incident.Troubles[0]
	from := first.At
	if n := w.Notice(first.Slice); first.Announced && n != nil && n.Due.After(from) {
		from = n.Due
	}
	if !from.IsZero() && !from.After(now) {
		c.reaction["evidence_to_decision"] = append(c.reaction["evidence_to_decision"], now.Sub(from))
	}
}

// prompt measures from the sending of a request to the call that it led to.
func (c *checks) prompt(e tputest.Event, inst *instance) {
	doc, err := ledger.Value[incident.Workload](inst.workload)
	if err != nil || doc.Incident == nil {
		return
	}
	for _, t := range doc.Incident.Tasks {
		saves := e.RequestID == "" && t.Action == events.ActionSave && !t.Begun.IsZero()
		if saves || e.RequestID != "" && e.RequestID == t.RequestID {
			c.reaction["decision_to_call"] = append(c.reaction["decision_to_call"], c.clock.Now().Sub(t.Sent))
			return
		}
	}
}
