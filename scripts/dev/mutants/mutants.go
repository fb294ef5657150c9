package main

import (
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/dev/deployment/terraform"
	"pitstop.internal/scripts/sim/world"
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
	// seams break the pipeline. They report each breach, except Decide, whose caller can see it.
	seams func(fired func()) world.Seams
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

// mutants are the rules of the design, each broken in more than one way.
var mutants = []mutant{
	{"1 fence", "a request of any epoch passes, and its body is believed", heavy, unfenced, nil},
	{"1 fence", "the body of a request is believed", heavy, believed, nil},
	{"1 fence", "nothing is read before a deletion", heavy, func(fired func()) world.Seams {
		return world.Seams{Handler: hears(nil), Provider: unread(fired), Decide: told(unassumed)}
	}, nil},
	{"1 fence", "two deliveries of one request may both make its call", heavy, func(fired func()) world.Seams {
		return world.Seams{Ledger: claimsNothing(fired)}
	}, nil},

	{"2 owner", "what an owner deletes is not released", heavy, decides(told(func(_ incident.Workload, e incident.Evidence, _ time.Time) incident.Evidence {
		if c, ok := e.(incident.Called); ok && c.Act == events.ActDeleted {
			return nil
		}
		return e
	})), nil},
	{"2 owner", "a slice that is gone is lost at once, unasked", heavy, func(fired func()) world.Seams {
		return world.Seams{Audit: asksNobody(fired), Decide: shown(func(w *incident.Workload, e incident.Evidence, now time.Time) {
			if _, ticks := e.(incident.Ticked); !ticks || w.Incident != nil && phase(*w) != incident.PhaseGrace {
				return
			}
			for i := range w.Slices {
				if s := &w.Slices[i]; s.Condition == incident.Gone && !s.IsReleased() && s.Stop.Unsaid.IsZero() {
					s.Since, s.Stop.Unsaid = now.Add(-incident.Grace), now
				}
			}
		}, nil)}
	}, nil},
	{"2 owner", "a slice that is only stopped is deleted", hostile, decides(told(func(_ incident.Workload, e incident.Evidence, _ time.Time) incident.Evidence {
		if r, ok := e.(incident.Read); ok && r.Condition == incident.Stopped && r.Facts.Group == "" {
			r.Condition = incident.Lost
			return r
		}
		return e
	})), nil},
	{"2 owner", "an order for an incident that cleans up is still created", hostile, func(fired func()) world.Seams {
		return world.Seams{Ledger: recreatesWhatIsCleared(fired)}
	}, nil},
	{"2 owner", "every lost slice counts as its owner's", heavy, decides(told(func(w incident.Workload, e incident.Evidence, _ time.Time) incident.Evidence {
		switch e := e.(type) {
		case incident.Interrupted:
			return incident.Called{Origin: e.Origin, Slice: e.Slice, Act: events.ActDeleted, Method: "DeleteNode", Principal: whoever}
		case incident.Read:
			if s := w.Slice(e.Slice); s != nil && e.Condition == incident.Lost && e.Incarnation.Same(s.Incarnation) && s.Condition == incident.Ready {
				return incident.Called{Origin: e.Origin, Slice: e.Slice, Zone: e.Zone, Act: events.ActDeleted, Method: "DeleteNode", Principal: whoever}
			}
		}
		return e
	})), nil},

	{"3 admitted", "a slice that healed is deleted all the same", heavy, decides(told(func(w incident.Workload, e incident.Evidence, _ time.Time) incident.Evidence {
		if r, ok := e.(incident.Read); ok && r.Condition == incident.Ready && phase(w) == incident.PhaseDeleting {
			if s := w.Slice(r.Slice); s != nil && s.ToReplace && r.Incarnation.Same(s.Incarnation) {
				return nil
			}
		}
		return e
	})), nil},
	{"3 admitted", "the next one is created before the old one is gone", heavy, func(fired func()) world.Seams {
		return world.Seams{Provider: goneBefore(fired)}
	}, nil},

	{"4 one", "evidence older than the progress opens", heavy, decides(shown(func(w *incident.Workload, e incident.Evidence, _ time.Time) {
		switch e.(type) {
		case incident.Interrupted, incident.Reported, incident.Read, incident.Noticed:
			if w.Incident == nil {
				w.Progress.At = time.Time{}
			}
		}
	}, progressAt)), nil},
	{"4 one", "a life whose end was told opens again", heavy, decides(shown(func(w *incident.Workload, _ incident.Evidence, _ time.Time) {
		for i := range w.Slices {
			w.Slices[i].End.Reported = false
		}
	}, nil)), nil},
	{"4 one", "the end of an attempt is reported as often as its line comes", heavy, decides(shown(func(w *incident.Workload, e incident.Evidence, _ time.Time) {
		if r, ok := e.(incident.Reported); ok && r.Report.Report == events.ReportExited {
			w.Crew.Exited = min(w.Crew.Exited, r.Report.Attempt-1)
			w.Progress.At = time.Time{}
		}
	}, func(was incident.Workload, next *incident.Workload) {
		next.Crew.Exited = max(next.Crew.Exited, was.Crew.Exited)
		progressAt(was, next)
	})), nil},
	{"4 one", "lines of a former life count", heavy, decides(told(func(w incident.Workload, e incident.Evidence, now time.Time) incident.Evidence {
		switch e := e.(type) {
		case incident.Reported:
			if group, _, ok := events.WorkerGroup(e.Report.Hostname); ok && w.Slice(e.Slice) != nil && w.Slice(e.Slice).Hosts != group {
				e.Report.Hostname = ""
				return e
			}
		case incident.Interrupted:
			if s := w.Slice(e.Slice); s != nil && (e.Incarnation.Known() && !e.Incarnation.Same(s.Incarnation) || e.Time.Before(s.Incarnation.Created)) {
				e.Incarnation, e.Time = s.Incarnation, now
				return e
			}
		}
		return e
	})), nil},
	{"4 one", "future times are not clamped", heavy, decides(unclamped), nil},
	{"4 one", "suspected abuse is reported again and again", hostile, decides(shown(func(w *incident.Workload, _ incident.Evidence, _ time.Time) {
		for i := range w.Slices {
			if w.Incident == nil {
				w.Slices[i].Abuse.Reported = false
			}
		}
	}, nil)), nil},
	{"4 one", "a suspicion is never taken back", hostile, decides(told(func(w incident.Workload, e incident.Evidence, _ time.Time) incident.Evidence {
		if r, ok := e.(incident.Read); ok && !r.Abuse {
			if s := w.Slice(r.Slice); s != nil && s.Abuse.Suspected && r.Incarnation.Same(s.Incarnation) {
				r.Abuse = true
				return r
			}
		}
		return e
	})), nil},
	{"4 one", "a slice that its owner moves becomes a workload of its own", hostile, func(fired func()) world.Seams {
		return world.Seams{Provider: remembering(fired)}
	}, nil},

	{"5 budgets", "restarts have no bound", heavy, decides(shown(func(w *incident.Workload, _ incident.Evidence, _ time.Time) {
		w.Budgets.Restarts = min(w.Budgets.Restarts, incident.MaxRestarts-1)
	}, func(was incident.Workload, next *incident.Workload) {
		if spent := was.Budgets.Restarts - (incident.MaxRestarts - 1); spent > 0 && next.Budgets.Since.Equal(was.Budgets.Since) {
			next.Budgets.Restarts += spent
		}
	})), nil},
	{"5 budgets", "progress takes from the budgets", heavy, decides(answered(func(was incident.Workload, next *incident.Workload, _ incident.Evidence, _ time.Time) {
		if was.Budgets != (incident.Budgets{}) && next.Budgets == (incident.Budgets{}) && next.Progress.Proven > was.Progress.Proven {
			next.Budgets = incident.Budgets{Restarts: -1, Recreates: -1}
		}
	})), nil},

	{"6 progress", "any step confirms", heavy, decides(shown(func(w *incident.Workload, e incident.Evidence, _ time.Time) {
		if r, ok := e.(incident.Reported); ok && r.Report.Report == events.ReportProgress && w.Incident != nil {
			w.Incident.Baseline = -1
		}
	}, func(was incident.Workload, next *incident.Workload) {
		if in := same(was, *next); in != nil {
			in.Baseline = max(in.Baseline, was.Incident.Baseline)
		}
	})), nil},
	{"6 progress", "READY is taken for training", heavy, decides(readyTrains), nil},

	{"7 rank", "a log entry is believed without a look", heavy, func(fired func()) world.Seams {
		return world.Seams{Handler: hears(nil), Provider: unread(fired), Decide: told(func(w incident.Workload, e incident.Evidence, now time.Time) incident.Evidence {
			i, ok := e.(incident.Interrupted)
			s := w.Slice(i.Slice)
			if !ok || s == nil || w.Incident != nil || i.Incarnation.Known() && !i.Incarnation.Same(s.Incarnation) || s.Condition != incident.Ready {
				return unassumed(w, e, now)
			}
			return incident.Read{Origin: i.Origin, Slice: s.Name, Zone: s.Zone, Condition: incident.Lost, Incarnation: s.Incarnation, State: "PREEMPTED"}
		})}
	}, nil},
	{"7 rank", "what a listing does not reach is gone", heavy, func(fired func()) world.Seams {
		return world.Seams{Provider: only("patrol", whole(fired))}
	}, nil},
	{"7 rank", "finished is believed from any line", heavy, decides(told(func(w incident.Workload, e incident.Evidence, now time.Time) incident.Evidence {
		r, ok := e.(incident.Reported)
		s := w.Slice(r.Slice)
		if !ok || s == nil || r.Report.Report != events.ReportFinished {
			return e
		}
		v := events.CrewVerdict{Attempt: max(r.Report.Attempt, w.Crew.LeaseAttempt), Finished: true, Certain: true, Ended: r.Time, Life: events.Admission{Slice: s.Name}}
		return incident.Beat{Origin: r.Origin, Slice: s.Name, Incarnation: s.Incarnation, Seen: now, Verdict: &v}
	})), nil},

	{"8 progress", "what lives is deleted without a checkpoint", heavy, decides(shown(func(w *incident.Workload, _ incident.Evidence, _ time.Time) {
		if w.Progress.VerifiedAt.IsZero() {
			w.Progress.VerifiedAt = neverVerified
		}
	}, func(_ incident.Workload, next *incident.Workload) {
		if next.Progress.VerifiedAt.Equal(neverVerified) {
			next.Progress.VerifiedAt = time.Time{}
		}
	})), nil},
	{"8 progress", "maintenance begins though the save is torn", heavy, decides(told(func(w incident.Workload, e incident.Evidence, now time.Time) incident.Evidence {
		if c, ok := e.(incident.Checked); ok && !c.Found && (phase(w) == incident.Saving || phase(w) == incident.Window) {
			c.Found, c.At = true, now
			return c
		}
		return e
	})), nil},
	{"8 progress", "a crew's save is taken for verified without a look", heavy, decides(savesUnseen), nil},
	{"8 progress", "a training hangs as soon as its lines are late", heavy, decides(hangsUnheard), nil},

	{"9 brake", "no slot is taken", heavy, func(fired func()) world.Seams {
		return world.Seams{Ledger: unwritten(ledger.Brake, fired)}
	}, nil},
	{"9 brake", "the bound is not looked at", heavy, func(fired func()) world.Seams {
		return world.Seams{Limits: func(l ledger.Limits) ledger.Limits {
			fired()
			return ledger.Limits{Project: l.Project + 100, Zone: l.Zone + 100}
		}}
	}, nil},

	{"10 lost", "acknowledged though nothing was stored", heavy, func(fired func()) world.Seams {
		return world.Seams{Handler: acknowledges(fired)}
	}, nil},
	{"10 lost", "the look has no deadline", heavy, decides(answered(func(was incident.Workload, next *incident.Workload, _ incident.Evidence, _ time.Time) {
		if phase(*next) == incident.Looking && phase(was) != incident.Looking {
			next.Incident.Deadline = time.Time{}
		}
	})), nil},
	{"10 lost", "a hold takes the time of a wait", heavy, decides(answered(func(was incident.Workload, next *incident.Workload, _ incident.Evidence, _ time.Time) {
		if in := next.Incident; in != nil && same(was, *next) == in && in.HeldSeconds > was.Incident.HeldSeconds && in.Phase == was.Incident.Phase {
			in.Deadline = was.Incident.Deadline
		}
	})), nil},
	{"10 lost", "every hold postpones a deadline", heavy, decides(answered(func(_ incident.Workload, next *incident.Workload, _ incident.Evidence, now time.Time) {
		if in := next.Incident; in != nil && in.Held != "" && !in.Deadline.IsZero() {
			in.Deadline = now.Add(incident.HealFor)
		}
	})), nil},
	{"10 lost", "after six requests nothing is looked after", heavy, decides(unopened(func(w incident.Workload, _ *incident.Incident) bool { return w.Epoch > 6 })), nil},
	{"10 lost", "no incident is ever opened", heavy, decides(unopened(func(incident.Workload, *incident.Incident) bool { return true })), nil},
	{"10 lost", "nobody is notified of a training that fails for good", heavy, decides(unopened(func(_ incident.Workload, in *incident.Incident) bool {
		return in.Cause == events.CauseCrash || in.Cause == events.CauseHang
	})), nil},
	{"10 lost", "nobody asks the audit log who deleted a slice", heavy, unasked(incident.ReadDeleter), nil},
	{"10 lost", "the first stockout is given up on", heavy, decides(ruled(func(p *policy.Policy) { p.GiveUpAfter = time.Nanosecond })), nil},
	{"10 lost", "a stockout is taken for a quota error", heavy, decides(told(func(_ incident.Workload, e incident.Evidence, _ time.Time) incident.Evidence {
		switch e := e.(type) {
		case incident.Answered:
			e.Failure = quota(e.Failure)
			return e
		case incident.Ended:
			e.Failure = quota(e.Failure)
			return e
		}
		return e
	})), nil},

	{"record", "a request for a save is not recorded", heavy, decides(answered(func(_ incident.Workload, next *incident.Workload, e incident.Evidence, _ time.Time) {
		if _, begun := e.(incident.Intended); begun && next.Incident != nil {
			next.Incident.Calls = slices.DeleteFunc(next.Incident.Calls, func(c incident.Call) bool { return c.Action == events.ActionSave })
		}
	})), nil},
	{"record", "a call that was held back is reported as made", heavy, decides(answered(func(was incident.Workload, next *incident.Workload, e incident.Evidence, _ time.Time) {
		in := same(was, *next)
		if _, held := e.(incident.Held); !held || in == nil {
			return
		}
		for i := range in.Calls {
			if c := &in.Calls[i]; i < len(was.Incident.Calls) && was.Incident.Calls[i].Answered.IsZero() && c.NotMade {
				c.NotMade, c.Code = false, ""
			}
		}
	})), nil},

	{"owner's word", "a training that hangs is restarted unasked", heavy, decides(ruled(func(p *policy.Policy) { p.Hang = policy.HangRestart })), nil},
	{"owner's word", "the pause is not read", heavy, func(fired func()) world.Seams {
		return world.Seams{Ledger: elsewhere(ledger.Pauses, fired)}
	}, nil},
	{"owner's word", "a policy that was tightened does not count", heavy, func(fired func()) world.Seams {
		return world.Seams{Policies: firstRead(fired)}
	}, nil},
	{"owner's word", "suspected abuse stops nothing", hostile, decides(told(func(_ incident.Workload, e incident.Evidence, _ time.Time) incident.Evidence {
		if r, ok := e.(incident.Read); ok && r.Abuse {
			r.Abuse = false
			return r
		}
		return e
	})), nil},
	{"as ordered", "a recreate forgets the labels", heavy, func(fired func()) world.Seams {
		return world.Seams{Provider: forgetful(fired, without("labels"))}
	}, nil},
	{"as ordered", "a recreate forgets the network", hostile, func(fired func()) world.Seams {
		return world.Seams{Provider: forgetful(fired, without("networkConfig"))}
	}, nil},
	{"as ordered", "recreate forgets that Google should let the training save", hostile, func(fired func()) world.Seams {
		return world.Seams{Provider: forgetful(fired, without("autocheckpointEnabled"))}
	}, nil},

	{"jobs", "Kueue's suspension is taken for the owner's", jobs, misread(func(s *provider.Slice) bool {
		is := s.Condition == incident.Creating && strings.Contains(s.State, "suspended")
		if is {
			s.Condition = incident.Stopped
		}
		return is
	}), nil},
	{"jobs", "a Job that heals is called lost", jobs, misread(func(s *provider.Slice) bool {
		is := s.Condition == incident.Unhealthy && s.Healing == incident.HealsAlways
		if is {
			s.Condition, s.Healing = incident.Lost, incident.HealsNever
		}
		return is
	}), nil},
	{"jobs", "a list that fails is taken for an empty one", jobs, func(fired func()) world.Seams {
		return world.Seams{Provider: only("patrol", emptied(fired))}
	}, nil},
	{"jobs", "the UID of a Job's life is ignored", jobs, misread(func(s *provider.Slice) bool {
		s.Incarnation = events.Incarnation{Zone: s.Zone, ID: s.Name, Created: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
		return true
	}), nil},

	{"jobs", "a wait for machines has no beginning", jobs, misread(func(s *provider.Slice) bool {
		is := !s.WaitsSince.IsZero()
		s.WaitsSince = time.Time{}
		return is
	}), nil},

	{"jobs", "a Job is created beside a Pod of its former life", jobs, unseen, nil},
	{"jobs", "the maintenance of a machine is asked for twice", jobs, labelledTwice, nil},
	{"jobs", "the maintenance of a machine begins without a verified save", jobs, decides(told(func(w incident.Workload, e incident.Evidence, now time.Time) incident.Evidence {
		if c, ok := e.(incident.Checked); ok && !c.Found && (phase(w) == incident.Saving || phase(w) == incident.Window) {
			c.Found, c.At = true, now
			return c
		}
		return e
	})), nil},
	{"jobs", "a gang that saves is taken to stand still", jobs, decides(told(func(w incident.Workload, e incident.Evidence, _ time.Time) incident.Evidence {
		c, ok := e.(incident.Checked)
		if ok && c.Found && phase(w) == incident.Resuming && !w.Slices[0].Torn.IsZero() {
			c.Found, c.Stale = false, true
			for n := range 3 {
				c.Saves = append(c.Saves, w.Slices[0].Torn.Add(time.Duration(n-3)*time.Minute))
			}
			return c
		}
		return e
	})), nil},
	{"jobs", "the manifest is stored with the values of its variables", jobs, unmasked, nil},
	{"jobs", "a line of a former life of a Job counts for the newest", jobs, decides(told(func(w incident.Workload, e incident.Evidence, _ time.Time) incident.Evidence {
		r, ok := e.(incident.Reported)
		s := w.Slice(r.Slice)
		if ok && s != nil && r.Report.Life != "" && slices.ContainsFunc(s.Former, func(l incident.Life) bool { return l.Incarnation.ID == r.Report.Life }) {
			r.Report.Life = s.Incarnation.ID
			return r
		}
		return e
	})), nil},
	{"jobs", "a Job is replaced though its controller has restarts left", jobs, impatient, nil},

	{"10 lost", "no function keeps its dead letters", static, nil, func(d *terraform.Deployment) error {
		return d.Root.Set("module.function", "dead_letter", "false")
	}},
	{"grants", "every function may delete TPUs", static, nil, func(d *terraform.Deployment) error {
		return d.Root.Set("google_project_iam_member.tpu", "role", `"roles/tpu.admin"`)
	}},
	{"grants", "who reads checkpoints may write them", static, nil, func(d *terraform.Deployment) error {
		return d.Root.Set("google_storage_bucket_iam_member.checkpoints", "role", `"roles/storage.objectUser"`)
	}},
}

// neverVerified is the time at which an unverified checkpoint counts as verified.
var neverVerified = time.Unix(1, 0).UTC()

// progressAt puts the time of the last progress back.
func progressAt(was incident.Workload, next *incident.Workload) {
	if was.Progress.At.After(next.Progress.At) {
		next.Progress.At = was.Progress.At
	}
}

// quota takes a lack of capacity for one of quota.
func quota(f *incident.Failure) *incident.Failure {
	if f == nil || f.Class != incident.Stockout {
		return f
	}
	other := *f
	other.Class, other.Code = incident.Quota, ""
	return &other
}

// unclamped follows a clock that goes before.
func unclamped(p policy.Policy, w incident.Workload, e incident.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
	var at time.Time
	switch e := e.(type) {
	case incident.Interrupted:
		at = e.Time
	case incident.Reported:
		at = e.Time
	case incident.Noticed:
		at = e.Time
	case incident.Called:
		at = e.Time
	}
	if at.After(now) {
		now = at
	}
	return incident.Advance(p, w, e, now)
}

// readyTrains ends an incident with the first usable slices.
func readyTrains(p policy.Policy, w incident.Workload, e incident.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
	next, send, changed := incident.Advance(p, w, e, now)
	if !changed || phase(next) != incident.Resuming || phase(w) == incident.Resuming {
		return next, send, changed
	}
	blind := own(next)
	seen, directory := blind.Crew.Seen, blind.Directory
	blind.Crew.Seen, blind.Directory, blind.Incident.Deadline, blind.Incident.Retried = time.Time{}, "", now, false
	ended, send, _ := later(p, blind, send, incident.Ticked{}, now)
	ended.Crew.Seen, ended.Directory = seen, directory
	return ended, send, true
}

// hangsUnheard takes it that the crew of a training of which no line comes says that it runs, and does not listen for it.
func hangsUnheard(p policy.Policy, w incident.Workload, e incident.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
	switch e.(type) {
	case incident.Beat:
		if w.Incident == nil {
			return w, nil, false
		}
	case incident.Ticked:
		if w.Reads(now).Has(incident.ReadTraining, "") {
			w = own(w)
			for i := range w.Slices {
				w.Slices[i].Heard = incident.Heard{At: now, Seen: now, Runs: true, Attempt: w.Crew.Attempt}
			}
		}
	}
	return incident.Advance(p, w, e, now)
}

// savesUnseen takes a checkpoint for complete that the crew says it has written.
func savesUnseen(p policy.Policy, w incident.Workload, e incident.Evidence, now time.Time) (incident.Workload, []events.Event, bool) {
	next, send, changed := incident.Advance(p, w, e, now)
	r, ok := e.(incident.Reported)
	if !ok || !changed || next.Incident == nil || r.Report.Report != events.ReportSaved {
		return next, send, changed
	}
	for _, t := range next.Effects {
		if t.Action == events.ActionVerify {
			asked := events.Request{Workload: next.ID, Incident: t.Maker, Epoch: t.Epoch, Action: t.Action, Attempt: t.Attempt}
			return later(p, next, send, incident.Checked{
				Request: asked, Found: true, Step: r.Report.CheckpointStep, URI: r.Report.CheckpointURI, At: now,
			}, now)
		}
	}
	return next, send, changed
}
