package incident_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

var start = time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC)

func life(n int) events.Incarnation {
	return events.Incarnation{Zone: "us-west4-a", ID: fmt.Sprint(7710 + n), Created: start.Add(time.Duration(n-240) * time.Hour)}
}

// quiet is a workload of one slice of four workers that trains and has a crew.
func quiet(spot bool) incident.Workload {
	w := incident.New("demo", "llama-8b", "tpu")
	w.Label, w.Directory = "night", "gs://ckpt/llama-8b"
	w.Slices = []incident.Slot{{Name: "llama-8b", Life: incident.Life{
		Facts: incident.Facts{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Reclaimable: spot, Spec: "spec1", Label: w.Label},
		Zone:  "us-west4-a", Hosts: "t1v-n-3f2a9c01", Incarnation: life(1), Admission: incident.Admitted, Condition: incident.Ready,
		State: "READY", Since: start.Add(-time.Hour), Spoke: start.Add(-time.Hour),
	}}}
	w.Crew = incident.Crew{Seen: start.Add(-time.Hour), Attempt: 1}
	w.Progress = incident.Progress{
		Step: 48180, High: 48180, At: start.Add(-2 * time.Minute), Attempt: 1, CheckpointStep: 48000,
		Verified: 48000, VerifiedAt: start.Add(-10 * time.Minute),
	}
	return w
}

func allowed(s policy.Switches) policy.Policy {
	return policy.Policy{Name: "night", Switches: s, Zones: []string{"us-west4-a", "us-west4-b"}, Lead: 10 * time.Minute, Save: events.SaveNatural, Hash: "h"}
}

var policies = map[string]policy.Policy{
	"everything": func() policy.Policy { p := allowed(policy.Everything()); p.Hang = policy.HangRestart; return p }(),
	"ask": allowed(policy.Switches{
		RequestCheckpoint: policy.Ask, EarlyMaintenance: policy.Ask, Restart: policy.Ask, Recreate: policy.Ask, RecreateNonSpot: policy.Ask,
		StartStopped: policy.Ask,
	}),
	"spot":       allowed(policy.Switches{RequestCheckpoint: policy.Yes, Restart: policy.Yes, Recreate: policy.Yes}),
	"seldom":     allowed(policy.Switches{RequestCheckpoint: policy.Yes, EarlyMaintenance: policy.Yes}),
	"watch":      allowed(policy.Switches{}),
	"unreadable": {Name: "night", Unreadable: "gs://b/policy.yaml: 503"},
}

// policyOf is a policy by its name. One that gives up is no other where nothing waits, so it is not explored from peace.
func policyOf(name string) policy.Policy {
	if name != "bounded" {
		return policies[name]
	}
	p := policies["everything"]
	p.GiveUpAfter = time.Hour
	return p
}

// node is one explored state.
type node struct {
	w    incident.Workload
	now  time.Time
	path string
}

// evidence is everything that may be learned in a state. Requests are answered as the open effects stand.
func evidence(w incident.Workload, now time.Time) map[string]incident.Evidence {
	out := learned(w, w.Slices[0], now)
	maps.Copy(out, answers(w, w.Slices[0], now))
	return out
}

// ann is who gives the word in tests.
var ann = incident.Word{By: "ann@example.com", Why: "it is mended"}

// learned is everything that may be learned of a slice.
func learned(w incident.Workload, s incident.Slot, now time.Time) map[string]incident.Evidence {
	audit := incident.Origin{ID: "entry", Time: now, Rank: events.RankAudit}
	found := incident.Origin{ID: "entry", Time: now, Rank: events.RankReading} // by patrol, in the audit log itself
	late := incident.Origin{ID: "late", Time: now.Add(-25 * time.Minute), Rank: events.RankReading}
	user := incident.Origin{ID: "line", Time: now, Rank: events.RankUser}
	api := incident.Origin{ID: "read", Time: now, Rank: events.RankReading}
	facts := incident.Facts{Group: s.Group, Accelerator: s.Accelerator, Workers: s.Workers, Chips: s.Chips, Reclaimable: s.Reclaimable, Healing: s.Healing, Ends: s.Ends, Spec: "spec1", Label: w.Label}
	in := w.Incident
	id := ""
	if in != nil {
		id = in.ID
	}
	read := func(c incident.Condition, inc events.Incarnation, by string) incident.Read {
		facts := facts
		if !inc.Same(s.Incarnation) {
			facts.Ends = time.Time{}
		}
		return incident.Read{Origin: api, Slice: s.Name, Zone: inc.Zone, Condition: c, Incarnation: inc, State: strings.ToUpper(string(c)), Incident: by, Facts: facts, Directory: w.Directory}
	}
	pending := events.Notice{Status: events.NoticePending, CanReschedule: true, WindowStart: start.Add(2 * time.Hour), WindowEnd: start.Add(6 * time.Hour)}
	moved := pending
	moved.WindowStart, moved.WindowEnd = start.Add(26*time.Hour), start.Add(30*time.Hour)
	ongoing := pending
	ongoing.Status = events.NoticeOngoing
	notice := func(n events.Notice) incident.Noticed {
		return incident.Noticed{Origin: audit, Slice: s.Name, Incarnation: s.Incarnation, Notice: n, Text: "notice"}
	}
	crew := func(r events.CrewReport) incident.Reported {
		r.Schema, r.Zone, r.Node, r.Hostname = 1, s.Zone, s.Name, s.Hosts+"-w-0"
		return incident.Reported{Origin: user, Slice: s.Name, Report: r}
	}
	var n int
	if _, err := fmt.Sscan(s.Incarnation.ID, &n); err != nil && s.Incarnation.Known() {
		panic(err)
	}
	next := life(n - 7710 + 1)
	for _, t := range []time.Time{s.Since, s.Stop.At, s.End.Released} {
		if !t.Before(next.Created) {
			next.Created = t.Add(time.Second) // a name is free for it once the life before is over
		}
	}
	if w.Incident != nil {
		next.Created = w.Incident.Opened.Add(time.Second) // what was there before takes nothing over
	}
	gone := read(incident.Gone, s.Incarnation, "")
	ordered := func(zone, by string) incident.Read {
		r := read(incident.Creating, events.Incarnation{Zone: zone}, by)
		r.State, r.Ordered = "WAITING_FOR_RESOURCES", next.Created
		return r
	}
	where := s.Zone
	if in != nil {
		for _, t := range w.Effects {
			if t.Action == events.ActionCreate && t.Concerns(s.Name) {
				where = t.Zone
			}
		}
	}
	out := map[string]incident.Evidence{
		"preempted":          incident.Interrupted{Origin: found, Slice: s.Name, Incarnation: s.Incarnation, Cause: events.CausePreemption, Text: "worker 2 was preempted"},
		"host error":         incident.Interrupted{Origin: found, Slice: s.Name, Incarnation: s.Incarnation, Cause: events.CauseHostError, Text: "host error"},
		"preempted, it says": incident.Interrupted{Origin: audit, Slice: s.Name, Incarnation: s.Incarnation, Cause: events.CausePreemption, Text: "worker 2 was preempted"},
		"host error late":    incident.Interrupted{Origin: late, Slice: s.Name, Incarnation: s.Incarnation, Cause: events.CauseHostError, Text: "host error"},
		"terminated":         incident.Interrupted{Origin: found, Slice: s.Name, Cause: events.CauseTerminated, Text: "node terminated"},
		"stopped for":        incident.Interrupted{Origin: found, Slice: s.Name, Incarnation: s.Incarnation, Cause: events.CauseMaintenance, Text: "stopped for maintenance"},
		"former life":        incident.Interrupted{Origin: late, Slice: s.Name, Incarnation: life(0), Cause: events.CauseHostError, Text: "host error"},
		"back":               incident.Back{Origin: audit, Slice: s.Name, Text: "restarted"},
		"pending":            notice(pending),
		"moved":              notice(moved),
		"ongoing":            notice(ongoing),
		"notice gone":        notice(events.Notice{Status: events.NoticeGone}),
		"crew notice":        crew(events.CrewReport{Report: events.ReportNotice, Preempted: true}),
		"owner deletes":      incident.Called{Origin: audit, Slice: s.Name, Act: events.ActDeleted, Method: "DeleteNode", Principal: "ann@example.com"},
		"owner creates":      incident.Called{Origin: audit, Slice: s.Name, Act: events.ActCreated, Method: "CreateNode", Principal: "ann@example.com"},
		"owner stops":        incident.Called{Origin: audit, Slice: s.Name, Act: events.ActStopped, Method: "StopNode", Principal: "ann@example.com"},
		"owner starts":       incident.Called{Origin: audit, Slice: s.Name, Act: events.ActStarted, Method: "StartNode", Principal: "ann@example.com"},
		"unsaid":             incident.Unsaid{Origin: api, Slice: s.Name, Incarnation: s.Incarnation},
		"read ready":         read(incident.Ready, s.Incarnation, ""),
		"read unhealthy":     read(incident.Unhealthy, s.Incarnation, ""),
		"read lost":          read(incident.Lost, s.Incarnation, ""),
		"read gone":          gone,
		"read stopped":       read(incident.Stopped, s.Incarnation, ""),
		"read unclear":       read(incident.Unclear, s.Incarnation, ""),
		"read deleting":      read(incident.Deleting, s.Incarnation, ""),
		"read ours":          read(incident.Ready, next, id),
		"read ours made":     read(incident.Creating, next, id),
		"read ours stopped":  read(incident.Stopped, next, id),
		"read foreign":       read(incident.Ready, next, ""),
		"read foreign made":  read(incident.Creating, next, ""),
		"read elsewhere": func() incident.Evidence {
			there := next
			there.Zone = elsewhere(s.Zone)
			return read(incident.Ready, there, "")
		}(),
		"abuse":          func() incident.Evidence { r := read(incident.Ready, s.Incarnation, ""); r.Abuse = true; return r }(),
		"abuse and lost": func() incident.Evidence { r := read(incident.Lost, s.Incarnation, ""); r.Abuse = true; return r }(),
		"started":        crew(events.CrewReport{Report: events.ReportStarted, Attempt: w.Crew.Attempt + 1, Workers: 4, Step: 48000}),
		"progress":       crew(events.CrewReport{Report: events.ReportProgress, Attempt: w.Crew.Attempt, Step: w.Progress.Step + 10, CheckpointStep: 48000}),
		"old progress":   crew(events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: 40000, CheckpointStep: 39000}),
		"exit 139":       crew(events.CrewReport{Report: events.ReportExited, Attempt: w.Crew.Attempt, ExitCode: 139, Step: 48190, RestartsLeft: 4}),
		"exit 1":         crew(events.CrewReport{Report: events.ReportExited, Attempt: w.Crew.Attempt, ExitCode: 1, Tail: []string{"ValueError: bad"}, Step: 48190}),
		"exit 0":         crew(events.CrewReport{Report: events.ReportExited, Attempt: w.Crew.Attempt, Step: 48190}),
		"gave up":        crew(events.CrewReport{Report: events.ReportGaveUp, Attempt: w.Crew.Attempt, Reason: "exit code 1, five times"}),
		"gave up anew":   crew(events.CrewReport{Report: events.ReportGaveUp, Attempt: w.Crew.Attempt + 1, Reason: "exit code 1, five times"}),
		"finished":       crew(events.CrewReport{Report: events.ReportFinished, Attempt: w.Crew.Attempt, Step: 50000}),
		"its verdict": incident.Beat{Origin: user, Slice: s.Name, Incarnation: s.Incarnation, Seen: now, Attempt: w.Crew.Claim.Attempt, Verdict: &events.CrewVerdict{
			Schema: 1, Attempt: max(w.Crew.Claim.Attempt, w.Crew.Attempt, w.Crew.Exited, w.Crew.LeaseAttempt), Finished: w.Crew.Claim.Finished, Ended: now, Step: w.Progress.Step, Reason: "exit code 1, five times",
			Life: events.Admission{Slice: s.Name, Incarnation: events.Incarnation{Zone: s.Zone}, Workers: s.Hosts},
		}},
		"silence":           incident.Beat{Origin: user, Slice: s.Name, Incarnation: s.Incarnation, Seen: now.Add(-6 * time.Hour)},
		"a crew that runs":  incident.Beat{Origin: user, Slice: s.Name, Incarnation: s.Incarnation, Seen: now, Runs: true, Attempt: w.Crew.Attempt},
		"a crew at work":    incident.Beat{Origin: user, Slice: s.Name, Incarnation: s.Incarnation, Seen: now, Runs: true, Attempt: w.Crew.Attempt, StepAt: now},
		"a crew that waits": incident.Beat{Origin: user, Slice: s.Name, Incarnation: s.Incarnation, Seen: now},
		"no crew":           incident.Beat{Origin: user, Slice: s.Name, Incarnation: s.Incarnation},
		"mapped":            incident.Mapped{Origin: api, Slice: s.Name, Incarnation: s.Incarnation, Group: "t1v-n-00000002"},
		"cancelled":         incident.Cancelled{Origin: user, Word: ann, Incident: id},
		"retried":           incident.Retried{Origin: user, Word: ann},
		"tick":              incident.Ticked{},
	}
	if in != nil {
		out["approved"] = incident.Approved{Origin: user, Word: ann, Incident: id, Action: in.Asked}
	}
	if s.Group != "" {
		out["read ordered"], out["read ordered by others"] = ordered(where, id), ordered(where, "")
		if len(w.Creators) > 0 {
			c := w.Creators[0]
			late := ordered(where, c.Incident)
			late.Ordered = c.Opened.Add(2 * time.Second)
			out["read late"] = late
		}
	}
	return out
}

func elsewhere(zone string) string {
	if zone == "us-west4-a" {
		return "us-west4-b"
	}
	return "us-west4-a"
}

// answers is what may come of what the open incident asked for. The crew of slice s answers for the workload.
func answers(w incident.Workload, s incident.Slot, now time.Time) map[string]incident.Evidence {
	in, out := w.Incident, map[string]incident.Evidence{}
	if in == nil {
		return out
	}
	api := incident.Origin{ID: "read", Time: now, Rank: events.RankReading}
	crew := func(r events.CrewReport) incident.Reported {
		r.Schema, r.Zone, r.Node, r.Hostname = 1, s.Zone, s.Name, s.Hosts+"-w-0"
		return incident.Reported{Origin: incident.Origin{ID: "line", Time: now, Rank: events.RankUser}, Slice: s.Name, Report: r}
	}
	if in.Save.ID != "" {
		out["saved"] = crew(events.CrewReport{Report: events.ReportSaved, SaveID: in.Save.ID, CheckpointStep: 48200, CheckpointURI: "gs://ckpt/llama-8b/48200"})
		out["refused"] = crew(events.CrewReport{Report: events.ReportRefused, SaveID: in.Save.ID, Reason: "no handler"})
	}
	for i, t := range w.Effects {
		r := events.Request{
			Schema: 1, Workload: w.ID, Incident: in.ID, Epoch: t.Epoch, Action: t.Action, Slice: t.Slice, Incarnation: t.Incarnation,
			Attempt: t.Attempt, Expires: now.Add(time.Hour),
		}
		name := func(what string) string { return fmt.Sprintf("%s %s %d", what, t.Action, i) }
		out[name("intend")] = incident.Intended{Origin: api, Request: r, RequestID: "uuid"}
		if t.Action == events.ActionVerify {
			found := incident.Checked{Origin: api, Request: r, Found: true, Step: 48200, URI: "gs://x", At: now.Add(-20 * time.Second), Bytes: 3 << 30, More: true}
			out[name("found")] = found
			out[name("none")] = incident.Checked{Origin: api, Request: r, None: true, Text: "the directory is empty"}
			out[name("torn")] = incident.Checked{Origin: api, Request: r, Text: "no commit marker"}
			out[name("stale")] = incident.Checked{Origin: api, Request: r, Stale: true, Text: "the newest is older"}
			out[name("silent")] = incident.Checked{
				Origin: api, Request: r, Stale: true, Text: "the newest is older", Step: 48000, URI: "gs://x", At: start.Add(-10 * time.Minute),
				Saves: []time.Time{start.Add(-30 * time.Minute), start.Add(-20 * time.Minute), start.Add(-10 * time.Minute)},
			}
			continue // nobody holds or forbids a look
		}
		if t.Action == events.ActionHear {
			verdict := events.CrewVerdict{
				Schema: 1, Attempt: max(w.Crew.Claim.Attempt, w.Crew.Attempt, w.Crew.Exited), Ended: now, Step: w.Progress.Step, Reason: "exit code 1, five times",
				Life: events.Admission{Slice: s.Name, Incarnation: events.Incarnation{Zone: s.Zone}, Workers: s.Hosts},
			}
			spent, done, sure := verdict, verdict, verdict
			done.Finished, sure.Finished, sure.Certain = true, true, true
			out[name("spent")] = incident.VerdictRead{Origin: api, Request: r, Verdict: &spent, Saved: 48200, SavedAt: now.Add(-time.Minute)}
			out[name("done")] = incident.VerdictRead{Origin: api, Request: r, Verdict: &done}
			out[name("sure")] = incident.VerdictRead{Origin: api, Request: r, Verdict: &sure}
			out[name("no verdict")] = incident.VerdictRead{Origin: api, Request: r, Text: "attempt 1 has none"}
			out[name("unread")] = incident.VerdictRead{Origin: api, Request: r, Failure: &incident.Failure{Class: incident.Transient, Message: "503"}}
			continue
		}
		out[name("held")] = incident.Held{Origin: api, Request: r, Code: incident.CodePaused, Why: "paused"}
		out[name("forbidden")] = incident.Forbidden{Origin: api, Request: r, Code: incident.CodePolicyNo, Why: "the switch is no"}
		if t.Begun.IsZero() {
			continue
		}
		op := ""
		if t.Action == events.ActionCreate || t.Action == events.ActionDelete || t.Action == events.ActionStart {
			op = "operation-" + string(t.Action)
		}
		out[name("accepted")] = incident.Answered{Origin: api, Request: r, Operation: op, Text: "accepted"}
		for _, c := range []incident.FailureClass{
			incident.Transient, incident.Stockout, incident.WrongZone, incident.CannotMove, incident.Invalid, incident.Permission, incident.NotFound, incident.Exists, incident.NotInState,
		} {
			out[name(string(c))] = incident.Answered{Origin: api, Request: r, Failure: &incident.Failure{Class: c, Message: "text"}, Text: "failed"}
		}
		if t.Operation != "" {
			out[name("done")] = incident.Ended{Origin: api, Operation: t.Operation}
			out[name("late stockout")] = incident.Ended{Origin: api, Operation: t.Operation, Failure: &incident.Failure{Class: incident.Stockout, Message: "no more capacity"}}
		}
	}
	return out
}

// key is what distinguishes a state for the exploration: everything but the story, the counts, and exact times.
func key(t *testing.T, w incident.Workload) string {
	t.Helper()
	blur := func(times ...*time.Time) {
		for _, at := range times {
			if !at.IsZero() {
				*at = start
			}
		}
	}
	// What the troubles prove decides what a slice that is gone means.
	var proven []string
	for i := range w.Slices {
		gone := w
		gone.Slices = slices.Clone(w.Slices)
		gone.Slices[i].Condition, gone.Slices[i].ToReplace = incident.Gone, false
		if w.Incident != nil && !readsOf(gone, start).Has(incident.ReadDeleter, w.Slices[i].Name) {
			proven = append(proven, w.Slices[i].Name)
		}
	}
	w.Epoch, w.Progress.Step, w.Progress.High, w.Budgets.Recreates = 0, 0, 0, 0
	w.Crew.Error.Attempt, w.Crew.Spent.Attempt, w.Crew.Error.High, w.Crew.Spent.High = 0, 0, 0, 0
	w.Crew.Attempt, w.Crew.Exited, w.Crew.GaveUp, w.Progress.Attempt = 0, 0, 0, 0
	w.Crew.Claim.Attempt, w.Crew.Done, w.Crew.NotDone, w.Progress.Proven, w.Crew.Restarted = min(w.Crew.Claim.Attempt, 1), 0, 0, 0, nil
	blur(&w.Crew.Claim.At, &w.Crew.Claim.ProbeUntil, &w.Crew.FinishedAt, &w.Budgets.Since)
	blur(&w.Crew.Seen, &w.Crew.Started, &w.Progress.At, &w.Progress.VerifiedAt, &w.Progress.Stepped, &w.Progress.StallReported, &w.Ended, &w.Crew.Left)
	w.Pace, w.Progress.CheckpointAt, w.Progress.GapSeconds, w.Orders = incident.Pace{}, time.Time{}, 0, nil
	w.Slices = slices.Clone(w.Slices)
	for i := range w.Slices {
		s := &w.Slices[i]
		s.End.Reported, s.Heard.Attempt = false, 0
		var former []incident.Life
		for _, l := range s.Former { // which one is admitted, and whether another may train on, is all that counts
			if l.Admission == incident.Admitted || !l.End.SilentBy.IsZero() {
				blur(&l.End.SilentBy)
				former = append(former, incident.Life{Incarnation: l.Incarnation, Admission: l.Admission, End: incident.End{SilentBy: l.End.SilentBy}})
			}
		}
		s.Former = former
		blur(&s.Since, &s.End.Released, &s.Used, &s.Abuse.At, &s.Stop.At, &s.Stop.Unsaid, &s.Heard.At, &s.Heard.Seen, &s.Notice.LastWord, &s.Notice.Listened)
	}
	if w.Closed != nil {
		w.Closed = &incident.Incident{Outcome: w.Closed.Outcome, Cause: w.Closed.Cause}
	}
	if w.Incident != nil {
		in := *w.Incident
		w.Incident = &in
		in.ID, in.Troubles, in.Timeline, in.Zones, in.Would, in.LeftOut, in.Reason, in.Advice, in.Held, in.BaseAttempt = "", nil, nil, nil, nil, 0, "", "", "", 0
		in.Code, in.HeldCode, in.Calls, in.CallsLeftOut, in.PlannedCalls = "", "", nil, 0, nil
		in.Save.ID, in.Starts, in.HeldSeconds, in.HeldUntil = "", min(in.Starts, 1), 0, time.Time{}
		blur(&in.StoodAt, &in.Opened, &in.Since, &in.HeardAt, &in.Deadline, &in.Down, &in.WaitingSince, &in.Reminded, &in.Slow, &in.Save.Requested, &in.Save.Left, &in.Save.Acked, &in.Save.At)
	}
	w.Effects = slices.Clone(w.Effects)
	for i := range w.Effects {
		e := &w.Effects[i]
		e.Maker, e.Epoch, e.Attempt, e.Failures, e.LastFailure, e.LastCode, e.Reason, e.Digest = "", 0, 0, 0, "", "", "", ""
		blur(&e.Sent, &e.Begun, &e.Answered, &e.Retry, &e.By)
	}
	return marshal(t, w) + strings.Join(proven, " ")
}

// reach leads from a workload in peace to a phase, by the names of the evidence; "later" lets the time come for which
// the state waits, "a while" as long as entries may be late.
var reach = []struct {
	phase  incident.Phase
	policy string
	spot   bool
	path   string
	// but is how the workload differs from the usual one.
	but func(*incident.Workload)
}{
	{incident.Saving, "everything", true, "pending, later, tick", nil},
	{incident.Saving, "everything", false, "pending, later, tick, intend save 0, accepted save 0, saved", nil},
	{incident.Maintaining, "everything", false, "pending, later, tick, intend save 0, saved, found verify 0", nil},
	{incident.Maintaining, "everything", true, "pending, later, tick, intend save 0, saved, found verify 0", nil},
	{incident.Window, "everything", false, "pending, later, tick, intend save 0, saved, found verify 0, intend maintain 0, accepted maintain 0", nil},
	{incident.Window, "spot", true, "ongoing, intend save 0, later, tick", nil},
	{incident.Window, "spot", true, "ongoing, intend save 0, later, tick, saved", nil},
	{incident.Window, "everything", false, "pending, later, tick, intend save 0, saved, found verify 0, intend maintain 0, accepted maintain 0, read stopped, a while, unsaid", single},
	{incident.Looking, "everything", true, "preempted", nil},
	{incident.PhaseGrace, "everything", true, "stopped for, read gone", nil},
	{incident.PhaseGrace, "everything", true, "stopped for, read gone, preempted", nil},
	{incident.Healing, "everything", false, "host error, read lost", nil},
	{incident.Healing, "spot", true, "host error, read unhealthy", nil},
	{incident.Approving, "ask", true, "preempted, read lost", nil},
	{incident.Approving, "ask", true, "pending, later, tick", nil},
	{incident.Approving, "ask", false, "pending, later, tick, approved, intend save 0, saved, found verify 0, forbidden maintain 0", nil},
	{incident.Approving, "ask", true, "exit 139, gave up, its verdict", nil},
	{incident.PhaseDeleting, "everything", true, "preempted, read lost", nil},
	{incident.PhaseDeleting, "everything", true, "preempted, read lost, intend delete 0, accepted delete 0", nil},
	{incident.PhaseCreating, "everything", true, "preempted, read lost, intend delete 0, accepted delete 0, read gone", nil},
	{incident.PhaseCreating, "everything", true, "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0", nil},
	{incident.PhaseCreating, "everything", true, "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0", func(w *incident.Workload) { w.Directory = "" }},
	{incident.PhaseCreating, "everything", true, "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, read ours made", nil},
	{incident.PhaseCreating, "spot", true, "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, read ordered", inQueue},
	{incident.PhaseCreating, "spot", true, "preempted, read lost, intend delete 0, read gone, intend create 0, stockout create 0, intend create 0, stockout create 0", nil},
	{incident.Admitting, "everything", true, "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, read ours", nil},
	{
		incident.Resuming, "everything", true,
		"preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, read ours, intend admit 0, accepted admit 0", nil,
	},
	{incident.Resuming, "spot", false, "exit 139", nil},
	{incident.Restarting, "everything", true, "exit 139, gave up, its verdict", nil},
	{incident.Restarting, "everything", true, "exit 139, gave up, its verdict, intend restart 0", nil},
	{incident.Restarting, "everything", true, "exit 139, gave up, its verdict, intend restart 0", unadmitted},
	{incident.Restarting, "everything", true, "half a day, a crew that runs, tick", nil},
	{incident.Watching, "spot", true, "half a day, a crew that runs, tick", nil},
	{incident.Watching, "everything", true, "half a day, no crew, tick", nil},
	{incident.Starting, "everything", false, "read stopped, later, unsaid, tick", single},
	{incident.Starting, "everything", false, "read stopped, later, unsaid, tick, intend start 0, accepted start 0", single},
	{incident.Starting, "everything", false, "host error, read stopped, a while, unsaid, tick", single},
	{incident.Starting, "everything", true, "read stopped, later, unsaid, tick", single},
	{incident.Starting, "everything", false, "read stopped, later, unsaid, tick, intend start 0, accepted start 0", func(w *incident.Workload) { single(w); unadmitted(w) }},
	{incident.Starting, "everything", false, madeStopped + ", a while, unsaid, tick", single},
	{incident.Healing, "everything", false, "host error, read stopped, a while, unsaid", single},
	{incident.Approving, "ask", false, "read stopped, later, unsaid, tick", single},
	{incident.Watching, "watch", false, "read stopped, later, unsaid, tick", single},
	{incident.Watching, "watch", true, "preempted", nil},
	{incident.Watching, "watch", false, "pending, later, tick", nil},
	{incident.Watching, "watch", true, "exit 139", nil},
	{incident.Clearing, "everything", true, "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, owner deletes", nil},
	{
		incident.Clearing, "bounded", true,
		"preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, read ordered, read ours made, half a day, tick", inQueue,
	},
	{
		incident.Clearing, "everything", true,
		"preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, owner deletes, read ours", nil,
	},
	{
		incident.Clearing, "everything", true,
		"preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, read ordered, owner creates", inQueue,
	},
	{
		incident.Clearing, "everything", true,
		"preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, owner deletes, done create 0, read gone, read late", inQueue,
	},
	{incident.Resuming, "everything", true, "exit 139, gave up, its verdict, " + again + "exit 1, gave up, its verdict, " + again + "exit 139, gave up, its verdict, " + again + "exit 139", nil},
	{incident.Resuming, "seldom", true, "exit 139", nil},
	{incident.Resuming, "everything", false, "host error, read unhealthy, read ready", crewless},
	{incident.Resuming, "everything", false, "host error, read unhealthy, read ready, later, tick", crewless},
	{incident.Resuming, "everything", false, "host error, read unhealthy, read ready", bare},
	{incident.Resuming, "everything", true, "preempted, read gone, intend create 0, accepted create 0, read ours", bare},
	{incident.Window, "everything", true, "pending, later, tick", crewless},
	// The lease could not be written before the maintenance came.
	{incident.Window, "spot", true, "ongoing, intend save 0, later, tick", unadmitted},
	// The incident before was cancelled before the lease was known to be written.
	{incident.Approving, "ask", true, "preempted, read lost", unadmitted},
	{incident.Healing, "spot", true, "host error, read unhealthy", unadmitted},
	{incident.Saving, "everything", true, "pending, later, tick", bare},
	{incident.Saving, "everything", true, "pending, later, tick", unadmitted},
	{incident.Watching, "watch", true, "preempted", crewless},
	{incident.Watching, "watch", false, "ongoing", crewless},
	{incident.Watching, "everything", false, mute, lines},
	{incident.Restarting, "everything", false, mute + ", intend verify 0, silent verify 0", lines},
	{incident.Restarting, "everything", false, mute + ", intend verify 0, silent verify 0, intend restart 0", lines},
	{incident.Resuming, "everything", false, mute + ", intend verify 0, silent verify 0, intend restart 0, accepted restart 0", lines},
}

// mute has a training tell of no step.
const mute = "half a day, no crew, tick"

// again has a requested restart begin and its attempt run.
const again = "intend restart 0, accepted restart 0, started, "

// single is a workload of one worker, which can be stopped and started.
func single(w *incident.Workload) {
	w.Slices[0].Accelerator, w.Slices[0].Workers, w.Slices[0].Chips = "v5litepod-8", 1, 8
}

// lines is a Job, whose crew is heard by its lines alone.
func lines(w *incident.Workload) {
	w.Provider = "gke"
	w.Slices[0].Healing = incident.HealsNever
}

// crewless is a workload beside which no crew runs, bare one without a checkpoint directory either.
func crewless(w *incident.Workload) { w.Crew = incident.Crew{} }
func bare(w *incident.Workload)     { w.Directory = "" }

// overdue is when something follows by itself in quiet times: a slice that is gone is asked about from the first moment on,
// and taken for lost when nobody has said a word about it.
func overdue(w incident.Workload) time.Time {
	for _, s := range w.Slices {
		if w.Due().Equal(s.Since) && s.Condition == incident.Gone {
			return s.Since.Add(incident.Grace)
		}
	}
	w.Slices = slices.Clone(w.Slices)
	for i := range w.Slices {
		if n := &w.Slices[i].Notice; n.Status != "" {
			n.Listened, n.Deaf = start, "" // to listen for the crew opens nothing
		}
	}
	return w.Due()
}

// unadmitted has training not admitted to the life that is there.
func unadmitted(w *incident.Workload) { admitted(&w.Slices[0], life(2)) }

// admitted has training run in a life of a slice, whichever it has now.
func admitted(s *incident.Slot, life events.Incarnation) {
	s.Admission, s.Former = incident.Admitted, nil
	if !life.Same(s.Incarnation) {
		s.Admission, s.Former = "", []incident.Life{{Incarnation: life, Zone: life.Zone, Admission: incident.Admitted}}
	}
}

// admittedIn has training run in a life of a slice that is, or was, in that zone.
func admittedIn(s *incident.Slot, zone string) {
	life := s.Admitted()
	life.Zone = zone
	admitted(s, life)
}

// tick is one minute of patrol, which asks the audit log before it lets time pass. The log names nobody.
func tick(p policy.Policy, w incident.Workload, now time.Time) (incident.Workload, []events.Event, bool) {
	changed := false
	var sent []events.Event
	for _, s := range w.Slices {
		if s.Condition == incident.Gone && readsOf(w, now).Has(incident.ReadDeleter, s.Name) && now.Sub(s.Since) >= incident.Grace {
			next, more, did := advance(p, w, incident.Unsaid{
				Origin: incident.Origin{Time: now, Rank: events.RankReading}, Slice: s.Name, Incarnation: s.Incarnation,
			}, now)
			if w, changed = next, changed || did; more != nil {
				sent = more
			}
		}
	}
	w, more, did := advance(p, w, incident.Ticked{}, now)
	if more != nil {
		sent = more // it sends again what nobody has begun
	}
	return w, sent, changed || did
}

// at plays a path.
func at(t fataler, p policy.Policy, spot bool, path string, but func(*incident.Workload)) node {
	t.Helper()
	n := node{w: quiet(spot), now: start, path: path}
	if but != nil {
		but(&n.w)
	}
	for name := range strings.SplitSeq(path, ", ") {
		if name == "half a day" {
			n.now = n.now.Add(12 * time.Hour)
			continue
		}
		if name == "an hour" {
			n.now = n.now.Add(time.Hour)
			continue
		}
		if name == "a while" {
			n.now = n.now.Add(incident.Grace)
			continue
		}
		if name == "later" {
			when := overdue(n.w)
			if n.w.Incident != nil {
				when = n.w.Incident.Deadline
			}
			n.now = when.Add(time.Second)
			continue
		}
		n.now = n.now.Add(time.Second)
		if name == "tick" {
			n.w, _, _ = tick(p, n.w, n.now)
			continue
		}
		e, ok := evidence(n.w, n.now)[name]
		if !ok {
			t.Fatalf("%s: there is no %q in this state", path, name)
		}
		n.w, _, _ = advance(p, n.w, e, n.now)
	}
	return n
}

var update = flag.Bool("update", false, "write the table of transitions in doc.go anew")

// TestExplore walks every state that few pieces of evidence reach, from peace and from every phase, in time, late and
// twice, under each policy, and holds the rules at every step; then it holds the table of transitions in the package
// documentation against what it has seen.
func TestExplore(t *testing.T) {
	if testing.Short() {
		t.Skip("it takes long under the race detector, which sees nothing in pure functions")
	}
	t.Run("states", exploreAll)
	if t.Failed() {
		return
	}
	if *update {
		if !breadth.Full() {
			t.Fatalf("the short form does not see every transition: set %s", breadth.Variable)
		}
		save(t, "transitions.txt", observed.table())
		doc := read(t, "doc.go")
		save(t, "doc.go", strings.Replace(doc, following(doc), observed.following(), 1))
		return
	}
	want := map[string][]string{} // by the two phases, which take two columns of thirteen
	for line := range strings.Lines(read(t, "transitions.txt")) {
		want[line[:26]] = strings.Fields(line[26:])
	}
	got := observed.rows()
	if breadth.Full() {
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("transitions.txt is not what the machine does (-file +machine):\n%s", d)
		}
		if d := cmp.Diff(following(read(t, "doc.go")), observed.following()); d != "" {
			t.Errorf("the table in doc.go is not what the machine does (-doc +machine):\n%s", d)
		}
		return
	}
	for phases, kinds := range got {
		for _, kind := range kinds {
			if !slices.Contains(want[phases], kind) {
				t.Errorf("transitions.txt lacks what the machine does: %s%s", phases, kind)
			}
		}
	}
	if len(got) < len(want)*9/10 {
		t.Errorf("%d transitions of %d were seen: the exploration does not go far", len(got), len(want))
	}
}

// following is the table of what follows in the package documentation.
func following(doc string) string {
	_, table, _ := strings.Cut(doc, "//\twhile         a slice is    then\n")
	table, _, _ = strings.Cut(table, "\n//\n")
	return table
}

func read(t *testing.T, file string) string {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func save(t *testing.T, file, text string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func exploreAll(t *testing.T) {
	for name, p := range policies {
		for _, spot := range []bool{true, false} {
			t.Run(fmt.Sprintf("peace/%s/spot=%v", name, spot), func(t *testing.T) {
				t.Parallel()
				explore(t, p, node{w: quiet(spot), now: start, path: "peace"}, 3, evidence)
				gone := node{w: quiet(spot), now: start, path: "gone in peace"}
				gone.w.Crew.LeaseAttempt, gone.w.Slices[0].Condition, gone.w.Slices[0].End.Released = 1, incident.Gone, start
				explore(t, p, gone, 2, evidence)
				for _, left := range []time.Duration{5 * time.Minute, -time.Minute} {
					ending := node{w: quiet(spot), now: start, path: fmt.Sprintf("its planned end is in %s", left)}
					ending.w.Slices[0].Ends = start.Add(left)
					explore(t, p, ending, 3, evidence)
				}
				explore(t, p, at(t, p, spot, "half a day, a crew that runs", nil), 2, evidence)
				explore(t, p, at(t, p, spot, "half a day, no crew", nil), 2, evidence)
				explore(t, p, at(t, p, spot, "read stopped, later, unsaid", single), 2, evidence)
				explore(t, p, at(t, p, spot, "read stopped, later, unsaid", nil), 2, evidence)
			})
		}
	}
	for i, r := range reach {
		t.Run(fmt.Sprintf("%s/%d", r.phase, i), func(t *testing.T) {
			t.Parallel()
			n := at(t, policyOf(r.policy), r.spot, r.path, r.but)
			if n.w.Incident == nil || n.w.Incident.Phase != r.phase {
				t.Fatalf("%s leads to %+v, not to phase %s", r.path, n.w.Incident, r.phase)
			}
			explore(t, policyOf(r.policy), n, 2, evidence)
			change(t, n, evidence)
			if r.phase == incident.Approving { // whoever took the yes in could not read the policy
				m := node{now: n.now.Add(time.Second), path: n.path + " > approved unread"}
				m.w, _ = step(t, policies["unreadable"], n, evidence(n.w, m.now)["approved"], m)
				explore(t, policyOf(r.policy), m, 1, evidence)
			}
		})
	}
	exploreMulti(t)
}

// change has every piece of evidence come after the owner has changed the policy. What is asked for then under one that was
// tightened is refused before its call, and what is watched only then is followed further.
func change(t *testing.T, n node, evidence func(incident.Workload, time.Time) map[string]incident.Evidence) {
	t.Helper()
	seen := map[string]bool{}
	for _, name := range []string{"ask", "everything", "spot", "watch", "unreadable"} {
		at := each(n, evidence)
		for _, what := range sorted(at[0].evidence) {
			for _, a := range at {
				m := node{now: n.now.Add(a.later), path: n.path + " > " + name + " > " + what + fmt.Sprintf("@%v", a.later)}
				e := a.evidence[what]
				w, _, _ := advance(policies[name], n.w, e, m.now)
				observed.add(n.w, w, e)
				checkDocument(t, m, w)
				followed := w.Incident != nil && w.Incident.Phase != n.w.Incident.Phase && (w.Incident.Phase == incident.Watching || w.Incident.Clearing == incident.Observed)
				if !followed {
					continue
				}
				if k := key(t, w); !seen[k] {
					seen[k], m.w = true, w
					explore(t, policies[name], m, 2, evidence)
				}
			}
		}
	}
}

// TestEveryIncidentEnds lets nothing but time pass in every phase: a deadline ends each, but for the two waits that only
// a person and the cloud can end.
func TestEveryIncidentEnds(t *testing.T) {
	for i, r := range reach {
		t.Run(fmt.Sprintf("%s/%d", r.phase, i), func(t *testing.T) {
			n := at(t, policyOf(r.policy), r.spot, r.path, r.but)
			bound := n.now.Add(14 * 24 * time.Hour)
			for n.w.Incident != nil && n.now.Before(bound) {
				n.now = n.now.Add(time.Minute)
				n.w, _, _ = tick(policies[r.policy], n.w, n.now)
			}
			in := n.w.Incident
			if in != nil && in.Phase != incident.Approving && !(in.Phase == incident.PhaseCreating && !in.WaitingSince.IsZero()) {
				t.Errorf("%s: still in phase %s after two weeks", r.path, in.Phase)
			}
			if in == nil && n.w.Closed == nil {
				t.Errorf("%s: the incident vanished", r.path)
			}
		})
	}
}

// sampled: in its short form the exploration follows one of so many states beyond the first step. It takes the first step from
// each that a path leads to, with every piece of evidence.
const sampled = 8

// fewest is how many states an exploration finds at least.
const fewest = 20

func explore(t *testing.T, p policy.Policy, from node, most int, evidence func(incident.Workload, time.Time) map[string]incident.Evidence) {
	t.Helper()
	seen := map[string]bool{}
	level := []node{from}
	for depth := range most {
		var next []node
		for i, n := range level {
			if depth > 0 && i%breadth.Every(sampled) != 0 {
				continue
			}
			before, same := marshal(t, n.w), key(t, n.w)
			at := each(n, evidence)
			for _, what := range sorted(at[0].evidence) {
				for _, a := range at {
					m := node{now: n.now.Add(a.later), path: n.path + " > " + what + fmt.Sprintf("@%v", a.later)}
					var changed bool
					m.w, changed = step(t, p, n, a.evidence[what], m)
					if depth == most-1 && len(seen) >= fewest {
						continue // no step begins there, and half of the time would go into telling it from others
					}
					k := same
					if changed {
						k = key(t, m.w)
					}
					if !seen[k] {
						seen[k] = true
						next = append(next, m)
					}
				}
			}
			if marshal(t, n.w) != before {
				t.Fatalf("%s: Advance changed what it was given", n.path)
			}
		}
		level = next
	}
	if len(seen) < fewest {
		t.Errorf("only %d states explored: the evidence moves nothing", len(seen))
	}
}

func sorted[V any](m map[string]V) []string {
	var keys []string
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// moment is what may be learned in a state so much later.
type moment struct {
	later    time.Duration
	evidence map[string]incident.Evidence
}

// each is what may be learned at each of a state's moments.
func each(n node, evidence func(incident.Workload, time.Time) map[string]incident.Evidence) (all []moment) {
	for _, later := range moments(n) {
		all = append(all, moment{later, evidence(n.w, n.now.Add(later))})
	}
	return all
}

// moments are when the next evidence may come: soon, and right after what the state waits for is overdue.
func moments(n node) []time.Duration {
	out := []time.Duration{time.Second}
	if in := n.w.Incident; in != nil && in.Deadline.After(n.now) {
		out = append(out, in.Deadline.Sub(n.now)+time.Second)
	} else if due := overdue(n.w); due.After(n.now) {
		out = append(out, due.Sub(n.now)+time.Second)
	}
	return out
}

// step advances once and checks what must hold for every step.
func step(t *testing.T, p policy.Policy, n node, e incident.Evidence, m node) (w incident.Workload, changed bool) {
	t.Helper()
	w, sent, changed := advance(p, n.w, e, m.now)
	if !changed && len(sent) > 0 {
		t.Fatalf("%s: nothing changed and %d events are sent", m.path, len(sent))
	}
	observed.add(n.w, w, e)
	checkDocument(t, m, w)
	checkSent(t, p, n, m, w, e, sent)
	again, twice, _ := advance(p, w, e, m.now)
	for _, s := range twice {
		if _, tick := e.(incident.Ticked); !tick {
			t.Fatalf("%s: the same evidence twice sends %s", m.path, s.EventType())
		}
	}
	if _, tick := e.(incident.Ticked); !tick && w.Incident == nil && again.Incident != nil && n.w.Incident != nil {
		t.Fatalf("%s: the evidence that closed an incident opens another when it comes twice", m.path)
	}
	return w, changed
}

// transitions are the steps from phase to phase that were seen, with the evidence that made them.
type transitions struct {
	mu   sync.Mutex
	seen map[[2]string]map[string]bool
	// follows is where a phase leads: by the phase, and by what a slice is in.
	follows map[[2]string]map[string]bool
}

var observed = transitions{seen: map[[2]string]map[string]bool{}, follows: map[[2]string]map[string]bool{}}

// phaseOf names where a workload stands: peace, or the phase of its incident.
func phaseOf(w incident.Workload) string {
	if w.Incident == nil {
		return "peace"
	}
	return string(w.Incident.Phase)
}

func (o *transitions) add(before, after incident.Workload, e incident.Evidence) {
	from, to := phaseOf(before), phaseOf(after)
	if from == to && (before.Incident == nil || after.Incident == nil || before.Incident.ID == after.Incident.ID) {
		return
	}
	if to == "peace" {
		to = string(after.Closed.Outcome)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	key := [2]string{from, to}
	if o.seen[key] == nil {
		o.seen[key] = map[string]bool{}
	}
	o.seen[key][kind(e)] = true
	if what := situation(before, e); what != "" {
		key := [2]string{from, what}
		if o.follows[key] == nil {
			o.follows[key] = map[string]bool{}
		}
		o.follows[key][to] = true
	}
}

// situation is what a slice is in as evidence shows it, if evidence shows the life that the document knows; time for the clock.
func situation(w incident.Workload, e incident.Evidence) string {
	switch e := e.(type) {
	case incident.Ticked:
		return "time"
	case incident.Read:
		if s := w.Slice(e.Slice); s != nil && (e.Incarnation.Same(s.Incarnation) || e.Condition == incident.Gone) && !e.Abuse {
			return map[incident.Condition]string{
				incident.Ready: "serving", incident.Unhealthy: "unusable", incident.Unclear: "unusable", incident.Stopped: "stopped",
				incident.Lost: "lost", incident.Gone: "gone",
			}[e.Condition]
		}
	}
	return ""
}

// following is what was seen to follow, in the form of the package documentation.
func (o *transitions) following() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	var lines []string
	for key, to := range o.follows {
		lines = append(lines, fmt.Sprintf("//\t%-13s %-13s %s", key[0], key[1], strings.Join(sorted(to), " ")))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// rows are what was seen: the two phases as two columns of the table, and on what.
func (o *transitions) rows() map[string][]string {
	o.mu.Lock()
	defer o.mu.Unlock()
	rows := map[string][]string{}
	for key, kinds := range o.seen {
		rows[fmt.Sprintf("%-12s %-12s ", key[0], key[1])] = sorted(kinds)
	}
	return rows
}

// table is what was seen, in the form of the package documentation.
func (o *transitions) table() string {
	var lines []string
	for phases, kinds := range o.rows() {
		lines = append(lines, phases+strings.Join(kinds, " "))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n") + "\n"
}

// fataler is a test, or one check of a law.
type fataler interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func marshal(t fataler, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func checkDocument(t *testing.T, n node, w incident.Workload) {
	t.Helper()
	if c := w.Closed; c != nil && (c.Outcome != incident.Resumed) != (meanings[c.Code] != "") {
		t.Fatalf("%s: it ended %s with the code %q: %s", n.path, c.Outcome, c.Code, c.Reason)
	}
	in := w.Incident
	if in == nil {
		return
	}
	if (in.Held != "") != (meanings[in.HeldCode] != "") {
		t.Fatalf("%s: it is held by %q with the code %q", n.path, in.Held, in.HeldCode)
	}
	spot := slices.ContainsFunc(w.Slices, func(s incident.Slot) bool { return s.Reclaimable })
	waits := in.Phase == incident.Approving || in.Phase == incident.PhaseCreating && spot && !in.WaitingSince.IsZero()
	if in.Deadline.IsZero() && !waits {
		t.Fatalf("%s: phase %s has deadline %v", n.path, in.Phase, in.Deadline)
	}
	if p := phaseIs(w); p != in.Phase {
		t.Fatalf("%s: the phase is %s, and the facts say %s", n.path, in.Phase, p)
	}
	if in.Outcome != "" || in.Phase == incident.Closed || in.Phase == "" {
		t.Fatalf("%s: the open incident has phase %q and outcome %q", n.path, in.Phase, in.Outcome)
	}
	if len(in.Timeline) == 0 {
		t.Fatalf("%s: an incident without a story", n.path)
	}
	if in.Phase != incident.Saving && !in.Save.Requested.IsZero() && in.Save.Result == "" {
		t.Fatalf("%s: in phase %s the save has no outcome: %+v", n.path, in.Phase, in.Save)
	}
	for i, effect := range w.Effects {
		for _, other := range w.Effects[:i] {
			if other.Action == effect.Action && other.Slice == effect.Slice {
				t.Fatalf("%s: two effects to %s %s at once", n.path, effect.Action, effect.Slice)
			}
		}
		if effect.Begun.IsZero() && effect.Retry.IsZero() && effect.Epoch != w.Epoch {
			t.Fatalf("%s: %s waits under epoch %d, the current one is %d: its fence would refuse it", n.path, effect.Action, effect.Epoch, w.Epoch)
		}
	}
}

func checkSent(t *testing.T, p policy.Policy, n, m node, w incident.Workload, e incident.Evidence, sent []events.Event) {
	t.Helper()
	requests := 0
	for _, ev := range sent {
		if err := ev.Validate(); err != nil {
			t.Fatalf("%s: sends a faulty %s: %v", m.path, ev.EventType(), err)
		}
		h, ok := ev.(interface{ Header() events.Request })
		if !ok {
			continue
		}
		requests++
		r := h.Header()
		again, digest, err := fence(w, r.Pointer(), m.now)
		if err != nil {
			t.Fatalf("%s: sends a request that its own fence refuses: %v", m.path, err)
		}
		if !reflect.DeepEqual(again, ev) || digest != events.Digest(ev) {
			t.Fatalf("%s: the document makes %+v, sent was %+v, of digest %s", m.path, again, ev, digest)
		}
		// Where the policy was tightened in the middle, a clean-up asks, is refused before its call, and tells that.
		cleans := r.Action == events.ActionDelete && w.Incident.Phase == incident.Clearing && !w.Incident.Switches.WatchOnly()
		if r.Action.Mutating() && p.Switches.WatchOnly() && (p.Unreadable == "" || r.Action != events.ActionAdmit) && !cleans {
			t.Fatalf("%s: asks for %s under a policy that allows nothing", m.path, r.Action)
		}
		if r.Action != events.ActionDelete {
			continue
		}
		s := w.Slice(r.Slice)
		if s.Condition == incident.Stopped && s.Group == "" && w.Incident.Phase != incident.Clearing {
			t.Fatalf("%s: deletes a slice that is only stopped", m.path)
		}
		if s.Condition != incident.Lost && w.Progress.VerifiedAt.IsZero() && w.Incident.Phase != incident.Clearing {
			t.Fatalf("%s: deletes a slice that lives (%s) without a verified checkpoint", m.path, s.Condition)
		}
		switch e.(type) {
		case incident.Interrupted, incident.Noticed, incident.Reported, incident.Back:
			t.Fatalf("%s: deletes on a log entry, without a reading of the API", m.path)
		}
	}
	opened := (n.w.Incident == nil) != (w.Incident == nil)
	suspected := slices.ContainsFunc(w.Slices, func(s incident.Slot) bool { return s.Abuse.Suspected }) // what is decided in that step does not leave
	if w.Epoch < n.w.Epoch || w.Epoch > n.w.Epoch && requests == 0 && !opened && !suspected && len(sent) == 0 {
		t.Fatalf("%s: the epoch went from %d to %d for nothing", m.path, n.w.Epoch, w.Epoch)
	}
	if requests > 0 && w.Epoch == n.w.Epoch {
		t.Fatalf("%s: a request was sent under the old epoch", m.path)
	}
}

// kind names the type of evidence.
func kind(e incident.Evidence) string { return reflect.TypeOf(e).Name() }
