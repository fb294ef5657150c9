package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestAnExitThatComesAfterTheCrewGaveUpOpensNothing: two lines of one second may overtake each other on their way.
func TestAnExitThatComesAfterTheCrewGaveUpOpensNothing(t *testing.T) {
	w := quiet(true)
	w.Crew.Attempt, w.Crew.Exited, w.Crew.GaveUp = 24, 23, 24
	exited := incident.Reported{
		Origin: incident.Origin{ID: "line", Time: start, Rank: events.RankUser}, Slice: w.Slices[0].Name,
		Report: events.CrewReport{Report: events.ReportExited, ExitCode: 1, Attempt: 24, Step: 48_250},
	}
	after, sent, _ := incident.Advance(policies["everything"], w, exited, start)
	if after.Incident != nil || len(sent) > 0 {
		t.Errorf("it opened %+v and sent %v", after.Incident, sent)
	}
	exited.Report.Attempt = 25
	if after, _, _ = incident.Advance(policies["everything"], after, exited, start); after.Incident == nil {
		t.Error("the exit of a later attempt opened nothing")
	}
}

// TestANoticeOfALifeThatIsLeftAloneIsNotDue: else patrol would be called for it every minute, and never do anything.
func TestANoticeOfALifeThatIsLeftAloneIsNotDue(t *testing.T) {
	noticed := func() incident.Workload {
		w := quiet(true)
		w.Notices = []incident.Notice{{
			Slice: w.Slices[0].Name, Incarnation: w.Slices[0].Incarnation, Due: start,
			Notice: events.Notice{Status: events.NoticePending, WindowStart: start.Add(20 * time.Minute)},
		}}
		return w
	}
	if due := noticed().Due(); !due.Equal(start) {
		t.Errorf("due at %v, want when the save is due", due)
	}
	for name, change := range map[string]func(w *incident.Workload){
		"its end has been told":  func(w *incident.Workload) { w.Slices[0].Told = w.Slices[0].Incarnation },
		"its owner has it":       func(w *incident.Workload) { w.Slices[0].Released = start },
		"the training is done":   func(w *incident.Workload) { w.Crew.Finished = true },
		"it is a former life's":  func(w *incident.Workload) { w.Notices[0].Incarnation.ID = "1" },
		"it was withdrawn":       func(w *incident.Workload) { w.Notices[0].Status = events.NoticeGone },
		"it is of another slice": func(w *incident.Workload) { w.Notices[0].Slice = "x" },
	} {
		w := noticed()
		change(&w)
		if due := w.Due(); !due.IsZero() {
			t.Errorf("%s: due at %v, want never", name, due)
		}
	}
}

// TestAnInterruptedTrainingIsTheMachines: nobody mends the training for what it did not do.
func TestAnInterruptedTrainingIsTheMachines(t *testing.T) {
	for interrupted, want := range map[bool]events.Cause{false: events.CauseCrash, true: events.CauseUnknown} {
		w := quiet(true)
		after, _, _ := incident.Advance(policies["everything"], w, incident.Reported{
			Origin: incident.Origin{ID: "line", Time: start, Rank: events.RankUser}, Slice: w.Slices[0].Name,
			Report: events.CrewReport{Report: events.ReportExited, Signal: "SIGKILL", Interrupted: interrupted, Attempt: w.Crew.Attempt + 1},
		}, start)
		if in := after.Incident; in == nil || in.Cause != want || in.Cause.Infrastructure() != interrupted {
			t.Errorf("interrupted %v: %+v", interrupted, in)
		}
	}
}
