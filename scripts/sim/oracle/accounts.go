package oracle

import (
	"context"
	"maps"
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
)

// accounts checks the arithmetic of the budgets in one step of a workload, by a count of its own: every unit spent has a
// request, every unit given back was spent, and only proven progress refills.
func (c *Checks) accounts(before, after incident.Workload) {
	b, a := before.Budgets, after.Budgets
	if a == b {
		return
	}
	if after.Progress.Proven > before.Progress.Proven && !a.Since.Equal(b.Since) {
		c.record(after.ID).refilled = c.Clock.Now()
		if a.Restarts > 1 || a.Recreates > 1 { // what follows at once may spend one
			c.Violated("5 budgets", after.ID, "progress refilled the budgets, and they are %+v", a)
		}
		return
	}
	lately := c.Clock.Now().Add(-time.Minute)
	if a == (incident.Budgets{}) && c.did(after.ID, lately, func(d deed) bool { return d.kind == saidRetry }) {
		return // a person says that the cause is mended
	}
	was, charged := charges(before), 0
	for id, n := range charges(after) {
		charged += n - was[id]
	}
	if a.Restarts-b.Restarts != charged {
		c.Violated("5 budgets", after.ID, "the budget of restarts went from %d to %d, and the incidents were charged %d more", b.Restarts, a.Restarts, charged)
	}
	switch removed := a.Recreates - b.Recreates; {
	case removed > 1, removed < -1:
		c.Violated("5 budgets", after.ID, "the budget of recreates went from %d to %d in one step", b.Recreates, a.Recreates)
	case removed == 1 && asks(after, events.ActionDelete) == asks(before, events.ActionDelete) && asks(after, events.ActionCreate) == asks(before, events.ActionCreate) &&
		creates(after) <= creates(before) && after.Incident != nil && before.Incident != nil && after.Incident.Phase == before.Incident.Phase:
		c.Violated("5 budgets", after.ID, "a recreate was charged, and nothing was asked for")
	}
}

// charges is what the incidents of a workload that may still be refunded were charged for restarts, by ID.
func charges(w incident.Workload) map[string]int {
	of := map[string]int{}
	for _, in := range []*incident.Incident{w.Incident, w.Closed} {
		if in != nil {
			of[in.ID] = in.Charged
		}
	}
	return of
}

// asks is the epoch of the last request of a kind.
func asks(w incident.Workload, a events.Action) (epoch int64) {
	if w.Incident == nil {
		return 0
	}
	for _, t := range w.Effects {
		if t.Action == a {
			epoch = max(epoch, t.Epoch)
		}
	}
	return epoch
}

// creates counts the creations that are asked for, or will be once a zone that has just refused may be asked again.
func creates(w incident.Workload) (n int) {
	if w.Incident == nil {
		return 0
	}
	for _, t := range w.Effects {
		if t.Action == events.ActionCreate {
			n++
		}
	}
	return n
}

// late is how long after its deadline a phase may end: patrol looks once a minute, and a deployment that is broken or newer
// keeps it from looking for as long as that takes.
const late = 45 * time.Minute

// inTime checks that a phase has ended by its deadline.
func (c *Checks) inTime(before, after incident.Workload) {
	in := before.Incident
	if in == nil || in.Deadline.IsZero() {
		return
	}
	end := in.Deadline
	if in.Since.After(end) {
		end = in.Since // its wait was already over when it began
	}
	if over := c.Clock.Now().Sub(end); over-c.releases.Down(end) > late {
		c.Violated("10 nothing lost", after.ID, "%s was %s until %s after its deadline", in.ID, in.Phase, over.Round(time.Second))
	}
}

// askedWithin is how long after its time patrol has sent a held request again, and the request is there.
const askedWithin = 2 * time.Minute

// postponed checks that a hold moves a deadline by no more than the time that was really held in the phase. The next look may come at the
// end of the brake's hour, or with the next tick, and asks again within askedWithin. The last look may have been RequestFor ago.
func (c *Checks) postponed(s ledger.Step) {
	was, is := s.Before.Incident, s.After.Incident
	held := func(e incident.Evidence) bool { _, ok := e.(incident.Held); return ok }
	if was == nil || is == nil || was.ID != is.ID || was.Phase != is.Phase || was.Deadline.IsZero() || !slices.ContainsFunc(s.Evidence, held) {
		return
	}
	next := later(ledger.NextHour(s.At), s.At.Add(time.Minute)).Add(askedWithin)
	most := later(was.Deadline, s.At).Add(next.Sub(s.At) + c.heldSince(is.Since) + incident.RequestFor)
	if is.Deadline.After(most) {
		c.Violated("10 nothing lost", s.After.ID, "the deadline of %s moved from %s to %s for a hold", is.Phase, was.Deadline.UTC().Format(time.DateTime), is.Deadline.UTC().Format(time.DateTime))
	}
}

// heldSince is for how long everything was paused, or the policy could not be read, since a moment.
func (c *Checks) heldSince(since time.Time) (d time.Duration) {
	now := c.Clock.Now()
	add := func(from, to time.Time) {
		if to.After(now) {
			to = now
		}
		if from = later(from, since); to.After(from) {
			d += to.Sub(from)
		}
	}
	for _, p := range c.pauses {
		add(p.From, p.To)
	}
	for i, p := range c.policies {
		to := now
		if i+1 < len(c.policies) {
			to = c.policies[i+1].from
		}
		if p.fault != nil {
			add(p.from, to)
		}
	}
	return d
}

// leftovers looks for queued resources and leases that nobody wants any more.
func (c *Checks) leftovers() {
	known := map[string]string{}
	for _, f := range c.Fleet {
		if f.QueuedResource != "" {
			known[f.QueuedResource] = f.Name
		}
	}
	there := map[string]string{}
	for _, z := range c.Zones() {
		for _, q := range c.API.QueuedResources(z) {
			slice := known[q]
			switch {
			case slice == "":
				c.Violated("nothing leaked", "", "queued resource %s in %s is nobody's", q, z)
			case there[q] != "" && !c.record(c.Workload(slice)).byHand:
				c.Violated("nothing leaked", c.Workload(slice), "queued resource %s is there in %s and in %s", q, there[q], z)
			}
			there[q] = z
			c.waits(q, z)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(c.Trainings)) {
		t := c.Trainings[name]
		life, trains := t.Running()
		if !trains || t.NoCrew || t.Directory == "" {
			continue
		}
		l, _, err := checkpoint.ReadLease(context.Background(), c.Store, t.Directory)
		if err != nil {
			c.Violated("nothing leaked", c.Workload(name), "the lease of what trains cannot be read: %v", err)
			continue
		}
		for _, a := range l.Admitted {
			if a.Slice == name && !a.Incarnation.Same(life) {
				c.Violated("nothing leaked", c.Workload(name), "the lease names %s as %s, and it trains as %s", name, a.Incarnation, life)
			}
		}
	}
}

// waits checks that no queued resource waits that an incident has ordered which is over.
func (c *Checks) waits(name, zone string) {
	q := c.API.QueuedResource(zone, name)
	if q == nil || q.State == nil || q.Tpu == nil || len(q.Tpu.NodeSpec) == 0 || q.Tpu.NodeSpec[0].Node == nil {
		return
	}
	of := q.Tpu.NodeSpec[0].Node.Labels[events.LabelIncident]
	id := c.Workload(c.held(name)[0])
	if r := c.record(id); of == "" || r.open == of && r.open != r.done {
		return
	}
	if c.record(id).byHand {
		return // it could not be deleted in its state, and a person has been told
	}
	switch q.State.State {
	case "CREATING", "ACCEPTED", "WAITING_FOR_RESOURCES", "PROVISIONING":
		c.Violated("nothing leaked", id, "queued resource %s in %s, ordered in %s, is still %s", name, zone, of, q.State.State)
	}
}
