package incident_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/incident/incidenttest"
)

// learns gives evidence to a workload at a time, and what it binds.
func learns(w incident.Workload, now time.Time, all ...incident.Evidence) incident.Workload {
	for _, e := range all {
		w = incidenttest.Learn(w, []incidenttest.Told{{At: now, Evidence: e, Policy: policies["everything"]}})
	}
	return w
}

// lineOf is a crew's line of attempt 2 on workers with that group, written at that time.
func lineOf(group string, at time.Time) incident.Reported {
	return incident.Reported{
		Origin: incident.Origin{ID: at.Format(time.TimeOnly), Time: at, Rank: events.RankUser}, Slice: "llama-8b",
		Report: events.CrewReport{
			Schema: 1, Report: events.ReportProgress, Zone: "us-west4-a", Node: "llama-8b", Hostname: group + "-w-0", Attempt: 2, Step: 50_000, CheckpointStep: 49_900, Workers: 4,
		},
	}
}

// nextLife is a reading of the life that its owner has created at that time, and of its workers.
func nextLife(created, now time.Time) (incident.Read, incident.Mapped) {
	o := incident.Origin{Time: now, Rank: events.RankReading}
	of := events.Incarnation{Zone: "us-west4-a", ID: "7712", Created: created}
	return incident.Read{
			Origin: o, Slice: "llama-8b", Zone: "us-west4-a", Condition: incident.Ready, State: "READY", Incarnation: of, Directory: "gs://ckpt/llama-8b",
			Facts: incident.Facts{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Reclaimable: true, Spec: "spec1", Label: "night"},
		},
		incident.Mapped{Origin: o, Slice: "llama-8b", Incarnation: of, Group: "t1v-n-00000002"}
}

// TestALineIsOfTheLifeThatWroteIt: a new life's crew may be heard before the API shows that life, and the former one's after it.
func TestALineIsOfTheLifeThatWroteIt(t *testing.T) {
	created, read := start.Add(10*time.Second), start.Add(time.Minute)
	gone := incident.Read{Origin: incident.Origin{Time: start.Add(5 * time.Second), Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-west4-a", Condition: incident.Gone, State: "gone"}
	for _, c := range []struct {
		what   string
		line   incident.Reported
		before bool
		counts bool
	}{
		{"of the new life, before it is read", lineOf("t1v-n-00000002", start.Add(20*time.Second)), true, true},
		{"of the new life, after it is read", lineOf("t1v-n-00000002", start.Add(20*time.Second)), false, true},
		{"of the former life, late", lineOf("t1v-n-3f2a9c01", start.Add(time.Second)), false, true},
		{"of the former life, written after its end", lineOf("t1v-n-3f2a9c01", start.Add(20*time.Second)), false, false},
		{"of the former life, written after its end, before the new one is read", lineOf("t1v-n-3f2a9c01", start.Add(20*time.Second)), true, false},
		{"of workers that nobody knows", lineOf("t1v-n-ffffffff", start.Add(20*time.Second)), true, false},
		{"on a host of no slice's, from the time of the former life, late", lineOf("vm", start.Add(time.Second)), false, true},
		{"on a host of no slice's, from between two lives", lineOf("vm", start.Add(7*time.Second)), true, false},
	} {
		w := learns(quiet(true), gone.Time, gone)
		if c.before {
			w = learns(w, read, c.line)
			if w.Progress.Step == 50_000 {
				t.Errorf("%s: it counts before anybody knows whose it is", c.what)
			}
		}
		reads, maps := nextLife(created, read)
		w = learns(w, read, reads, maps)
		if !c.before {
			w = learns(w, read, c.line)
		}
		if got := w.Progress.Step == 50_000 && w.Crew.Attempt == 2; got != c.counts {
			t.Errorf("%s: it counts: %v, step %d of attempt %d", c.what, got, w.Progress.Step, w.Crew.Attempt)
		}
		if c.counts && len(w.Unbound) > 0 {
			t.Errorf("%s: it is kept still", c.what)
		}
	}
}

// podLine is a crew's line of attempt 2 in a Pod of a Job with that UID, written at that time. Pods of all lives have one host name.
func podLine(uid string, at time.Time) incident.Reported {
	r := lineOf("llama-8b-0", at)
	r.Report.Hostname, r.Report.Life = "llama-8b-0", uid
	return r
}

// TestALineInAPodIsOfTheLifeThatItNames, whatever its time says and whoever else has the same host name.
func TestALineInAPodIsOfTheLifeThatItNames(t *testing.T) {
	created, read := start.Add(10*time.Second), start.Add(time.Minute)
	gone := incident.Read{Origin: incident.Origin{Time: start.Add(5 * time.Second), Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-west4-a", Condition: incident.Gone, State: "gone"}
	w := quiet(true)
	w.Provider, w.Slices[0].Hosts = "gke", ""
	former := w.Slices[0].Incarnation.ID
	for _, c := range []struct {
		what                 string
		line                 incident.Reported
		before, counts, kept bool
	}{
		{"of the new life, before it is read", podLine("7712", start.Add(20*time.Second)), true, true, false},
		{"of the new life, after it is read", podLine("7712", start.Add(20*time.Second)), false, true, false},
		{"of the new life, by a clock that is behind", podLine("7712", start.Add(8*time.Second)), false, true, false},
		{"of the former life, late", podLine(former, start.Add(time.Second)), false, true, false},
		{"of the former life, written after its end", podLine(former, start.Add(20*time.Second)), false, false, false},
		{"of the former life, written after its end, before the new one is read", podLine(former, start.Add(20*time.Second)), true, false, false},
		{"of a life that nobody knows, from the time of the new one", podLine("9999", start.Add(20*time.Second)), false, false, true},
		{"of a life that nobody knows, from the time of the former one", podLine("9999", start.Add(time.Second)), false, false, false},
	} {
		w := learns(w, gone.Time, gone)
		if c.before {
			w = learns(w, read, c.line)
			if w.Progress.Step == 50_000 {
				t.Errorf("%s: it counts before anybody knows whose it is", c.what)
			}
		}
		reads, _ := nextLife(created, read)
		w = learns(w, read, reads)
		if !c.before {
			w = learns(w, read, c.line)
		}
		if got := w.Progress.Step == 50_000 && w.Crew.Attempt == 2; got != c.counts {
			t.Errorf("%s: it counts: %v, step %d of attempt %d", c.what, got, w.Progress.Step, w.Crew.Attempt)
		}
		if got := len(w.Unbound) > 0; got != c.kept {
			t.Errorf("%s: it is kept: %v", c.what, got)
		}
	}
}

// TestALineOfAnotherTrainingIsLeft: attempts begin anew with another checkpoint directory, and a line that comes late counts the former ones.
func TestALineOfAnotherTrainingIsLeft(t *testing.T) {
	w := quiet(true)
	r, maps := nextLife(start, start.Add(time.Minute))
	r.Directory = "gs://ckpt/another"
	w = learns(w, r.Time, r, maps, lineOf("t1v-n-3f2a9c01", start.Add(-time.Second)))
	if w.Crew.Attempt != 0 || w.Progress.Step != 0 {
		t.Errorf("attempt %d, step %d of the former training count", w.Crew.Attempt, w.Progress.Step)
	}
	if w = learns(w, r.Time, lineOf("t1v-n-00000002", start.Add(time.Second))); w.Crew.Attempt != 2 || w.Progress.Step != 50_000 {
		t.Errorf("attempt %d, step %d: what the new one writes does not count", w.Crew.Attempt, w.Progress.Step)
	}
}

// TestTheNewestCallCounts: of a stop and a start that were delivered in the wrong order.
func TestTheNewestCallCounts(t *testing.T) {
	call := func(method string, at time.Time) incident.Evidence {
		act, _ := events.Call{Method: method}.Act()
		return incident.Called{
			Origin: incident.Origin{ID: method, Time: at, Rank: events.RankAudit}, Slice: "llama-8b", Zone: "us-west4-a", Act: act, Method: method, Principal: "ann@example.com",
		}
	}
	stopped, started := call("StopNode", start), call("StartNode", start.Add(5*time.Minute))
	if w := learns(quiet(true), start.Add(10*time.Minute), started, stopped); w.Slices[0].Stop.By != "" {
		t.Errorf("it is taken for stopped by %s, who has started it since", w.Slices[0].Stop.By)
	}
	if w := learns(quiet(true), start.Add(10*time.Minute), stopped); w.Slices[0].Stop.By == "" {
		t.Error("nobody is known to have stopped it")
	}
}

// TestADeletionToldLateTakesNothingBack: its owner has ordered the queued resource again before anybody heard that they had deleted it.
func TestADeletionToldLateTakesNothingBack(t *testing.T) {
	deleted, ordered, now := start, start.Add(time.Minute), start.Add(20*time.Minute)
	w := learns(quiet(true), now,
		incident.Called{Origin: incident.Origin{ID: "d", Time: deleted, Rank: events.RankAudit}, Slice: "llama-8b", Zone: "us-west4-a", Act: events.ActDeleted, Method: "DeleteNode", Principal: "ann@example.com"},
		incident.Read{
			Origin: incident.Origin{Time: now, Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-west4-a", Condition: incident.Creating, State: "WAITING_FOR_RESOURCES",
			Incarnation: events.Incarnation{Zone: "us-west4-a"}, Ordered: ordered,
		})
	if s := w.Slices[0]; s.IsReleased() {
		t.Errorf("released at %s, and ordered again at %s: it is taken for given up", s.End.Released, ordered)
	}
}

// TestMaintenanceThatHasBegunIsUnderWay, whichever of the two entries comes first, and it concerns nobody once its owner has deleted the slice.
func TestMaintenanceThatHasBegunIsUnderWay(t *testing.T) {
	notice := func(s events.NoticeStatus, at time.Time) incident.Evidence {
		return incident.Noticed{
			Origin: incident.Origin{ID: string(s), Time: at, Rank: events.RankAudit}, Slice: "llama-8b", Incarnation: life(1), Text: "notice",
			Notice: events.Notice{Status: s, WindowStart: start.Add(time.Hour), WindowEnd: start.Add(5 * time.Hour)},
		}
	}
	begun, announced := notice(events.NoticeOngoing, start), notice(events.NoticePending, start.Add(time.Second))
	for first, order := range map[string][]incident.Evidence{"its beginning": {begun, announced}, "its announcement": {announced, begun}} {
		if w := learns(quiet(true), start.Add(time.Minute), order...); w.Slices[0].Notice.Status != events.NoticeOngoing {
			t.Errorf("told of %s first: it is %s", first, w.Slices[0].Notice.Status)
		}
	}
	w := quiet(true)
	w.Slices[0].End.Released = start
	if w = learns(w, start.Add(time.Minute), begun); w.Incident != nil || w.Slices[0].Notice.Status != events.NoticeOngoing {
		t.Errorf("of a released slice: incident %v, notice %q", w.Incident != nil, w.Slices[0].Notice.Status)
	}
}

// TestADeadCrewsLinesLeaveRoomForTheNextOnes: the lines that are kept are few, and those of a life that is over are bound to none.
func TestADeadCrewsLinesLeaveRoomForTheNextOnes(t *testing.T) {
	gone := incident.Read{
		Origin: incident.Origin{Time: start, Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-west4-a", Condition: incident.Gone, State: "gone",
	}
	w := learns(quiet(true), start, gone)
	for i := range 40 {
		line := lineOf("t1v-n-3f2a9c01", start.Add(time.Duration(i)*time.Second))
		line.Report.Reason, line.Report.Tail = strings.Repeat("reason ", 5000), []string{strings.Repeat("x", 100_000), "the last word", " "}
		w = learns(w, start.Add(time.Minute), line)
	}
	if n := len(w.Unbound); n != 16 {
		t.Errorf("%d lines are kept, want 16", n)
	}
	if last := w.Unbound[len(w.Unbound)-1]; len(last.Report.Reason) > 200 || cmp.Diff(last.Report.Tail, []string{"the last word"}) != "" || !last.Time.Equal(start.Add(39*time.Second)) {
		t.Errorf("it keeps %d bytes of a reason and %d lines, of %s", len(last.Report.Reason), len(last.Report.Tail), last.Time)
	}
	w = learns(w, start.Add(90*time.Second), lineOf("t1v-n-00000002", start.Add(80*time.Second)))
	reads, maps := nextLife(start.Add(70*time.Second), start.Add(2*time.Minute))
	if w = learns(w, start.Add(2*time.Minute), reads, maps); w.Crew.Attempt != 2 || len(w.Unbound) != 0 {
		t.Errorf("attempt %d, and %d lines are kept still", w.Crew.Attempt, len(w.Unbound))
	}
}

// TestADirectoryThatChangesOnALiveNodeHidesNoLine: its crew begins the new training before anybody reads that it has another directory.
func TestADirectoryThatChangesOnALiveNodeHidesNoLine(t *testing.T) {
	w := quiet(true)
	r, _ := nextLife(start, start.Add(time.Minute))
	r.Incarnation, r.Directory = life(1), "gs://ckpt/another"
	line := lineOf("t1v-n-3f2a9c01", start.Add(30*time.Second))
	if w = learns(w, r.Time, r, line); w.Crew.Attempt != 2 {
		t.Errorf("attempt %d: what the crew wrote before the reading is lost", w.Crew.Attempt)
	}
}

// TestTheEndIsClaimedByTheLatestLine: each slice's crew writes its own, and a step between two of them takes nothing back.
func TestTheEndIsClaimedByTheLatestLine(t *testing.T) {
	end := func(at time.Duration) incident.Evidence {
		e := lineOf("t1v-n-3f2a9c01", start.Add(at))
		e.Report.Report = events.ReportFinished
		return e
	}
	for order, all := range map[string][]incident.Evidence{
		"in order":            {end(0), lineOf("t1v-n-3f2a9c01", start.Add(time.Second)), end(2 * time.Second)},
		"the step comes last": {end(0), end(2 * time.Second), lineOf("t1v-n-3f2a9c01", start.Add(time.Second))},
	} {
		if w := learns(quiet(true), start.Add(time.Minute), all...); !w.Crew.Claim.Finished {
			t.Errorf("%s: nothing is claimed", order)
		}
	}
}

// TestANoticeIsNoPartOfATraining: it tells of a machine, also where attempts count anew since.
func TestANoticeIsNoPartOfATraining(t *testing.T) {
	w := quiet(true)
	w.Crew.Since = start.Add(time.Minute)
	line := lineOf("t1v-n-3f2a9c01", start)
	line.Report.Report, line.Report.Preempted = events.ReportNotice, true
	if w = learns(w, start.Add(time.Minute), line); w.Incident == nil {
		t.Error("nobody looks at a machine that was told to end")
	}
}

// TestTheWorkerThatFailedFirstIsTheCause, whichever line comes first.
func TestTheWorkerThatFailedFirstIsTheCause(t *testing.T) {
	exit := func(at time.Duration, code int) incident.Evidence {
		e := lineOf("t1v-n-3f2a9c01", start.Add(at))
		e.Report.Report, e.Report.ExitCode = events.ReportExited, code
		return e
	}
	first, second := exit(0, 139), exit(time.Second, 1)
	for order, all := range map[string][]incident.Evidence{"in order": {first, second}, "late": {second, first}, "twice": {second, first, second, first}} {
		w := learns(quiet(true), start.Add(time.Minute), all...)
		if w.Crew.Error.Sign != "exit code 139" || w.Incident == nil || w.Incident.Error.Exit.Code != 139 {
			t.Errorf("%s: it is put down to %q", order, w.Crew.Error.Sign)
		}
		if n := len(w.Incident.Troubles); n != 1 {
			t.Errorf("%s: %d troubles", order, n)
		}
	}
}
