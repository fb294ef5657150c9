package trainingtest_test

import (
	"slices"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
)

func said(report events.Report, attempt int, step int64) *events.CrewReport {
	return &events.CrewReport{Report: report, Attempt: attempt, Step: step}
}

// TestTheRecordSaysWhenTheNextAttemptBegins: the crew does not restart by itself, says nothing of its own, and steps pass evenly from
// one recorded line to the next.
func TestTheRecordSaysWhenTheNextAttemptBegins(t *testing.T) {
	r := train(t, trainingtest.Config{Directory: directory, Step: 100})
	began, progress := said(events.ReportStarted, 2, 60), said(events.ReportProgress, 2, 160)
	r.to(100 * time.Second)
	r.Recorded(events.CrewReport{Report: events.ReportExited, Attempt: 1, ExitCode: 1, Step: 110, RestartsLeft: 4}, trainingtest.Follow{Next: began, At: start.Add(time.Hour), Fails: true})
	r.to(59 * time.Minute)
	r.runs("1", false)
	r.to(time.Hour)
	r.Recorded(*began, trainingtest.Follow{Next: progress, At: start.Add(time.Hour + 1000*time.Second)})
	r.runs("1", true)
	r.to(time.Hour + 500*time.Second)
	if s, _ := r.State(); s.Step != 110 || s.Attempt != 2 {
		t.Errorf("attempt %d is at step %d half way from 60 to 160", s.Attempt, s.Step)
	}
	r.wrote()
	r.to(time.Hour + 1000*time.Second)
	r.Recorded(*progress, trainingtest.Follow{}) // the last line: from here on the crew speaks
	r.to(time.Hour + 1300*time.Second)
	if s, _ := r.State(); s.Step != 190 {
		t.Errorf("step %d after the last line, want 190", s.Step)
	}
	if lines := *r.lines; len(lines) != 1 || lines[0].Report != events.ReportProgress || lines[0].Step != 190 {
		t.Errorf("the crew said %+v", lines)
	}
	l, _, err := checkpoint.ReadLease(t.Context(), r.store, directory)
	if err != nil || l.Attempt != 2 {
		t.Errorf("the lease names attempt %d, %v", l.Attempt, err)
	}
}

// TestASilentRecordRepeatsItsLastExit: with the recorded error, once at the restart that follows and then as often as restarts are left.
func TestASilentRecordRepeatsItsLastExit(t *testing.T) {
	r := train(t, trainingtest.Config{Directory: directory, Step: 100})
	exit := events.CrewReport{Report: events.ReportExited, Attempt: 1, Signal: "SIGSEGV", Tail: []string{"boom"}, Step: 110, CheckpointStep: 105, RestartsLeft: 2}
	r.to(100 * time.Second)
	r.Recorded(exit, trainingtest.Follow{Fails: true})
	r.Recorded(exit, trainingtest.Follow{Fails: true}) // of another worker
	r.to(2 * time.Hour)
	var exits []events.CrewReport
	for _, l := range *r.lines {
		if l.Report == events.ReportExited {
			exits = append(exits, l.CrewReport)
		}
	}
	if len(exits) != 3 {
		t.Fatalf("%d exits after the recorded one, want 3", len(exits))
	}
	for _, e := range exits {
		if e.Sign() != exit.Sign() || e.ExitCode != 0 {
			t.Errorf("the error is %q, want %q", e.Sign(), exit.Sign())
		}
	}
	// It fails at the step at which it failed before: three minutes to start, and five steps of ten seconds.
	if began := (*r.lines)[0]; began.Report != events.ReportStarted || (*r.lines)[1].After-began.After != 230*time.Second {
		t.Errorf("the first attempt lasted %v", (*r.lines)[1].After-began.After)
	}
	if last := (*r.lines)[len(*r.lines)-1]; last.Report != events.ReportGaveUp {
		t.Errorf("the last line is %+v", last)
	}
}

func TestARecordedGiveUpLeavesAVerdict(t *testing.T) {
	r := train(t, trainingtest.Config{Directory: directory, Step: 100})
	gaveUp := said(events.ReportGaveUp, 1, 110)
	r.Recorded(*said(events.ReportExited, 1, 110), trainingtest.Follow{Next: gaveUp, At: start.Add(time.Second), Fails: true})
	r.to(time.Second)
	r.Recorded(*gaveUp, trainingtest.Follow{Fails: true})
	r.to(time.Hour)
	r.wrote()
	if s, _ := r.State(); s.Verdict == nil || !s.Verdict.GaveUp() || s.Verdict.Attempt != 1 {
		t.Errorf("the verdict is %+v", s.Verdict)
	}
	// An attempt that Pitstop asks for fails in the same way, until the record shows one that trains.
	r.lease(1, 2, "1")
	r.to(2 * time.Hour)
	if n := slices.IndexFunc(*r.lines, func(l line) bool { return l.Report == events.ReportExited && l.Attempt == 2 }); n < 0 {
		t.Errorf("attempt 2 did not fail: %+v", *r.lines)
	}
	attempt := (*r.lines)[len(*r.lines)-1].Attempt
	r.Recorded(*said(events.ReportStarted, attempt+1, 60), trainingtest.Follow{})
	r.to(4 * time.Hour)
	r.runs("1", true)
}

// TestNoNewStepUntilTheNextLineIsAHang: what the record shows to stand still does not go on.
func TestNoNewStepUntilTheNextLineIsAHang(t *testing.T) {
	r := train(t, trainingtest.Config{Directory: directory, Step: 100})
	r.to(time.Minute)
	r.Recorded(*said(events.ReportProgress, 1, 105), trainingtest.Follow{Next: said(events.ReportExited, 1, 105), At: start.Add(3 * time.Hour)})
	r.to(2 * time.Hour)
	s, _ := r.State()
	if want := start.Add(time.Minute); s.Step != 105 || !s.StepAt.Equal(want) || s.Phase != "running" {
		t.Errorf("%s at step %d since %v, want running at 105 since %v", s.Phase, s.Step, s.StepAt, want)
	}
	r.wrote()
}

func TestACrewThatLeavesRestartsNothing(t *testing.T) {
	r := train(t, trainingtest.Config{Directory: directory, Step: 100})
	r.to(time.Minute)
	r.Recorded(*said(events.ReportExited, 1, 105), trainingtest.Follow{Leaves: true})
	r.to(2 * time.Hour)
	r.runs("1", false)
	r.wrote()
	if _, ok := r.State(); ok {
		t.Error("a crew that is gone has a state")
	}
}

// TestALineAboutAnEarlierAttemptMovesNoStepBack: Pitstop brought the training back sooner than the record.
func TestALineAboutAnEarlierAttemptMovesNoStepBack(t *testing.T) {
	r := train(t, trainingtest.Config{Directory: directory, Step: 100})
	r.machine(cloudtputest.Lost, "1")
	r.machine(cloudtputest.Ready, "2")
	r.lease(1, 2, "2")
	r.to(time.Hour)
	before := r.LastStep()
	r.Recorded(*said(events.ReportStarted, 2, 60), trainingtest.Follow{Next: said(events.ReportProgress, 2, 70), At: start.Add(2 * time.Hour)})
	r.runs("2", true)
	r.to(time.Hour + 100*time.Second)
	if step := r.LastStep(); step != before+10 {
		t.Errorf("step %d, want %d", step, before+10)
	}
	// A recorded exit of that attempt ends the run all the same.
	r.Recorded(*said(events.ReportExited, 2, 90), trainingtest.Follow{Next: said(events.ReportGaveUp, 2, 90), At: start.Add(3 * time.Hour)})
	r.runs("2", false)
}
