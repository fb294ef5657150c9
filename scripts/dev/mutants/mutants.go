package main

import (
	"slices"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/dev/deployment/terraform"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
)

// mutant is one way to break a rule.
type mutant struct {
	rule, name string
	// faults are those that it takes to notice; of what a line of Terraform grants, none.
	faults degree
	// hooks break the pipeline. They report each breach, except Decide, whose caller can see it.
	hooks func(fired func()) world.Hooks
	// grant breaks the deployment instead.
	grant func(d *terraform.Deployment) error
}

// degree is how a mutant is run.
type degree string

const (
	heavy   degree = "heavy"
	hostile degree = "hostile"
	jobs    degree = "jobs" // heavy, over a cluster of GKE
	static  degree = "static"
)

// whoever is a principal that counts as an owner.
const whoever = "somebody@example.com"

// mutants are the rules of the design, each broken in two ways at least. They change evidence, the policy, or what a function calls and
// reads, and never the workload's document: so they stay when the heart changes.
var mutants = []mutant{
	{"1 fence", "the body of a request is believed", heavy, believed, nil},
	{"1 fence", "nothing is read before a deletion", heavy, func(fired func()) world.Hooks {
		return world.Hooks{Handler: hears, Provider: unread(fired), Decide: told(func(e evidence.Evidence) evidence.Evidence {
			if r, ok := e.(evidence.Read); ok && r.State == assumed {
				return nil
			}
			return e
		})}
	}, nil},

	{"2 owner", "what an owner deletes is not released", heavy, decides(told(func(e evidence.Evidence) evidence.Evidence {
		if c, ok := e.(evidence.Called); ok && c.Act == events.ActDeleted {
			return nil
		}
		return e
	})), nil},
	{"2 owner", "a slice that is only stopped is deleted", hostile, reads(func(r *evidence.Read) {
		if r.Condition == evidence.Stopped && r.Facts.Group == "" {
			r.Condition = evidence.Lost
		}
	}), nil},
	{"2 owner", "every lost slice counts as its owner's", heavy, decides(told(func(e evidence.Evidence) evidence.Evidence {
		switch e := e.(type) {
		case evidence.Interrupted:
			return evidence.Called{Origin: e.Origin, Slice: e.Slice, Act: events.ActDeleted, Method: "DeleteNode", Principal: whoever}
		case evidence.Read:
			if e.Condition == evidence.Lost {
				return evidence.Called{Origin: e.Origin, Slice: e.Slice, Zone: e.Zone, Act: events.ActDeleted, Method: "DeleteNode", Principal: whoever}
			}
		}
		return e
	})), nil},

	{"3 admitted", "the next one is created before the old one is gone", heavy, func(fired func()) world.Hooks {
		return world.Hooks{Provider: goneBefore(fired)}
	}, nil},
	{"3 admitted", "a Job that may go on is taken for one that has failed for good", jobs, mistaken, nil},

	{"4 one", "an exit counts as the machines' fault", heavy, reports(func(r *events.CrewReport) {
		if r.Report == events.ReportExited {
			r.Interrupted = true
		}
	}), nil},
	{"4 one", "future times are not clamped", heavy, decides(unclamped), nil},

	{"5 budgets", "an exit counts as progress", heavy, reports(func(r *events.CrewReport) {
		if r.Report == events.ReportExited {
			r.Report, r.Step = events.ReportProgress, r.Step+1_000_000
		}
	}), nil},
	{"5 budgets", "each look beside the checkpoints finds a later one", heavy, decides(told(func(e evidence.Evidence) evidence.Evidence {
		if v, ok := e.(evidence.VerdictRead); ok && !v.SavedAt.IsZero() {
			v.Saved, v.SavedAt = v.Saved+1_000_000, v.Time
			return v
		}
		return e
	})), nil},

	{"6 progress", "a start counts as progress", heavy, reports(func(r *events.CrewReport) {
		if r.Report == events.ReportStarted {
			r.Report, r.Step = events.ReportProgress, r.Step+1_000_000
		}
	}), nil},
	{"6 progress", "any step confirms", heavy, decides(told(func(e evidence.Evidence) evidence.Evidence {
		switch e := e.(type) {
		case evidence.Reported:
			e.Report.CheckpointStep = 0
			return e
		case evidence.Checked:
			e.Step = 0
			return e
		}
		return e
	})), nil},

	{"7 rank", "what cannot be read is gone", heavy, func(fired func()) world.Hooks {
		return world.Hooks{Provider: func(_ string, next provider.Provider) provider.Provider { return unreadable(fired)(next) }}
	}, nil},
	{"7 rank", "a list that fails is taken for an empty one", jobs, func(fired func()) world.Hooks {
		return world.Hooks{Provider: only("patrol", emptied(fired))}
	}, nil},

	{"8 save", "maintenance begins though the save is torn", heavy, decides(torn), nil},
	{"8 save", "the maintenance of a machine begins without a verified save", jobs, decides(torn), nil},

	{"9 brake", "no slot is taken", heavy, func(fired func()) world.Hooks {
		return world.Hooks{Ledger: unwritten(ledger.Brake, fired)}
	}, nil},
	{"9 brake", "the bound is not looked at", heavy, func(fired func()) world.Hooks {
		return world.Hooks{Limits: func(l ledger.Limits) ledger.Limits {
			fired()
			return ledger.Limits{Project: l.Project + 100, Zone: l.Zone + 100}
		}}
	}, nil},

	{"10 lost", "acknowledged though nothing was stored", heavy, func(fired func()) world.Hooks {
		return world.Hooks{Handler: acknowledges(fired)}
	}, nil},
	{"10 lost", "no incident is ever opened", heavy, decides(func(p policy.Policy, w incident.Workload, e evidence.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
		next, send, changed := incident.Advance(p, w, e, now)
		if !w.HasOpenIncident() && next.HasOpenIncident() {
			return w, nil, false
		}
		return next, send, changed
	}), nil},
	{"10 lost", "nobody asks the audit log who deleted a slice", heavy, unasked(incident.ReadDeleter), nil},
	{"10 lost", "the first stockout is given up on", heavy, ruled(func(p *policy.Policy) { p.GiveUpAfter = time.Nanosecond }), nil},

	{"steady", "what the policy allows comes and goes", heavy, decides(blinks), nil},
	{"owner's word", "the pause is not read", heavy, func(fired func()) world.Hooks {
		return world.Hooks{Ledger: elsewhere(ledger.Pauses, fired)}
	}, nil},
	{"owner's word", "a policy that was tightened does not count", heavy, func(fired func()) world.Hooks {
		return world.Hooks{Policies: firstRead(fired)}
	}, nil},
	{"owner's word", "suspected abuse stops nothing", hostile, reads(func(r *evidence.Read) { r.Abuse = false }), nil},
	{"as ordered", "a recreate forgets the labels", heavy, func(fired func()) world.Hooks {
		return world.Hooks{Provider: forgetful(fired, "labels")}
	}, nil},
	{"jobs", "the maintenance of a machine is asked for twice", jobs, labelledTwice, nil},
	{"places", "on demand is asked for, and nobody has named it", heavy, misread(func(p *policy.Policy) bool {
		if p.Places != nil {
			return false
		}
		p.Places = []policy.Alternative{{Capacity: events.OnDemand}}
		return true
	}), nil},
	{"places", "no place waits for its time", heavy, misread(func(p *policy.Policy) (waits bool) {
		p.Places = slices.Clone(p.Places)
		for i := range p.Places {
			waits = waits || p.Places[i].After > 0
			p.Places[i].After = 0
		}
		return waits
	}), nil},
	{"places", "a zone that preempts again and again is not left", heavy, misread(func(p *policy.Policy) bool {
		left := p.LeaveZoneFor > 0
		p.LeaveZoneFor = 0
		return left
	}), nil},
	{"places", "a slice on demand is taken for what its owner ordered", heavy, reads(func(r *evidence.Read) {
		if r.Facts.Capacity == events.OnDemand {
			r.Incident = ""
		}
	}), nil},
	{"places", "the place of a slice says which switch counts", heavy, decides(switched), nil},
	{"grants", "every function may delete TPUs", static, nil, func(d *terraform.Deployment) error {
		return d.Root.Set("google_project_iam_member.tpu", "role", `"roles/tpu.admin"`)
	}},
}

// torn has every look at the checkpoints find a complete one.
func torn(p policy.Policy, w incident.Workload, e evidence.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
	if c, ok := e.(evidence.Checked); ok && !c.Found {
		c.Found, c.At = true, now
		e = c
	}
	return incident.Advance(p, w, e, now)
}

// switched asks of a slice on demand what the policy allows for slices that were ordered so, and likewise for Spot.
func switched(p policy.Policy, w incident.Workload, e evidence.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
	for _, s := range w.Shown(now).Slices {
		switch {
		case s.OrderedCapacity == "":
		case s.OrderedCapacity == events.Spot:
			p.Switches.Recreate = p.Switches.RecreateNonSpot
		case s.Capacity == events.Spot:
			p.Switches.RecreateNonSpot = p.Switches.Recreate
		}
	}
	return incident.Advance(p, w, e, now)
}

// blinks decides every other minute as if nothing were allowed.
func blinks(p policy.Policy, w incident.Workload, e evidence.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
	if now.Minute()%2 > 0 {
		p.Switches = policy.Switches{}
	}
	return incident.Advance(p, w, e, now)
}

// unclamped follows a clock that goes before.
func unclamped(p policy.Policy, w incident.Workload, e evidence.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
	var at time.Time
	switch e := e.(type) {
	case evidence.Interrupted:
		at = e.Time
	case evidence.Reported:
		at = e.Time
	case evidence.Noticed:
		at = e.Time
	case evidence.Called:
		at = e.Time
	}
	if at.After(now) {
		now = at
	}
	return incident.Advance(p, w, e, now)
}
