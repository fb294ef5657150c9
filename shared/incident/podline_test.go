package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/view"
)

// ofSecond has a line of the second attempt tell of a step.
func ofSecond(step int64) func(*events.CrewReport) {
	return func(r *events.CrewReport) { r.Attempt, r.Step = 2, step }
}

// TestAPodsLineWithdrawsNoMaintenance and announces none: no Pod is told of it.
func TestAPodsLineWithdrawsNoMaintenance(t *testing.T) {
	t.Parallel()
	n := newJob(t)
	notice := events.Notice{Status: events.NoticePending, WindowStart: start.Add(20 * time.Minute), WindowEnd: start.Add(time.Hour)}
	says := func(notice events.Notice) {
		n.says("7711", events.ReportNotice, func(r *events.CrewReport) { r.Notice = &notice })
	}
	if says(notice); n.w.Notice("llama-8b") != nil {
		t.Error("a line announces maintenance")
	}
	n.notes(true, notice).passes(15 * time.Minute)
	n.is("saving")
	says(events.Notice{Status: events.NoticeGone})
	if n.is("saving"); n.w.Notice("llama-8b").Status != events.NoticePending {
		t.Errorf("a line withdraws it:\n%s", n.tale())
	}
}

// TestALineOfAFormerLifeMakesNoCrew: the next Job's image may hold none. A new checkpoint shows that it trains, and a restart is asked for where there is none.
func TestALineOfAFormerLifeMakesNoCrew(t *testing.T) {
	t.Parallel()
	for _, saves := range []bool{true, false} {
		n := newJob(t)
		n.says("7711", events.ReportStarted).breaks(events.CauseTerminated).replaces("uid-1")
		for range 60 {
			if n.passes(time.Minute); n.w.Incident == nil || n.isWanted(events.ActionRestart) {
				break
			}
			if i := n.effect(events.ActionVerify, ""); i >= 0 && n.w.Effects[i].Stage() == view.StageWanted {
				n.give(evidence.Checked{Origin: n.reading(), Request: n.begins(events.ActionVerify, ""), Found: saves, Step: 70_000, At: n.now, Text: "there is none"})
			}
		}
		if saves != (n.ended().By == view.ByCheckpoint) || saves == n.isWanted(events.ActionRestart) {
			t.Errorf("it saves %t:\n%s", saves, n.tale())
		}
	}
}

// TestTheFirstLineOfACrewGivesATrainingItsTime: nobody expected a step of it before, so its silence until then shows nothing.
func TestTheFirstLineOfACrewGivesATrainingItsTime(t *testing.T) {
	t.Parallel()
	for _, looked := range []bool{false, true} {
		n := newJob(t).with(crewless)
		n.w.Slices[0].Healing, n.w.Slices[0].Spoke = evidence.HealsAlways, time.Time{}
		n.reads("llama-8b", evidence.Unhealthy).passes(bounds.SickFor)
		n.reads("llama-8b", evidence.Ready).is("resuming")
		if n.passes(bounds.ResumeFor - 2*time.Minute); looked {
			n.passes(2 * time.Minute)
		}
		if n.isWanted(events.ActionVerify) != looked {
			t.Fatalf("a checkpoint is looked for %t:\n%s", !looked, n.tale())
		}
		n.says("7711", events.ReportStarted)
		if sent := n.passes(bounds.ResumeFor - 2*time.Minute); len(sent) > 0 || n.stands(nil) != "resuming" {
			t.Errorf("looked %t: %q is asked for:\n%s", looked, sent, n.tale())
		}
	}
}

// TestALineOfAMadeUpLifePushesOutNoOther: whoever may write logs can write as many as they like, of a life that will never be read.
func TestALineOfAMadeUpLifePushesOutNoOther(t *testing.T) {
	t.Parallel()
	n := newJob(t)
	n.says("the next Job", events.ReportSaved)
	for range 20 {
		n.says("made up", events.ReportProgress)
	}
	lives := map[string]int{}
	for _, u := range n.w.Unbound {
		lives[u.Report().Life]++
	}
	if lives["the next Job"] != 1 || lives["made up"] != 15 {
		t.Errorf("kept are %v", lives)
	}
}

// TestEverySliceHasRoomForALine: the slices of a JobSet begin anew at once, before any life of them is read.
func TestEverySliceHasRoomForALine(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, strings.Fields(strings.Repeat("llama ", 31))...)
	for i := range n.w.Slices {
		n.w.Slices[i].Name += "-" + events.Number(int64(i))
	}
	for range 2 {
		for _, s := range n.w.Slices {
			n.later(time.Second).wrote(n.now, s.Name, events.CrewReport{Report: events.ReportStarted, Life: "next of " + s.Name, Attempt: 1})
		}
	}
	kept := map[string]incident.Unbound{}
	for _, u := range n.w.Unbound {
		kept[u.Slice] = u
	}
	if len(kept) != 31 {
		t.Errorf("lines of %d slices are kept, want 31", len(kept))
	}
}
