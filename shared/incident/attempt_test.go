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

// newRun is a training in that directory of which only its lines tell. Its last one is of step 1,000 of attempt 1.
func newRun(t *testing.T, directory string) *story {
	n := newStory(t, true, "llama-8b")
	n.w.Directory, n.w.Training = directory, incident.Training{}
	return n.tells(1, 1000, 990)
}

// tells is a line of a step, and of the newest checkpoint, a second later.
func (n *story) tells(attempt int, step, saved int64) *story {
	return n.speaks(events.CrewReport{Report: events.ReportProgress, Attempt: attempt, Step: step, CheckpointStep: saved})
}

// speaks is a line, a second later.
func (n *story) speaks(r events.CrewReport) *story {
	n.now = n.now.Add(time.Second)
	return n.line(n.w.Slices[0].Name, r)
}

// asksToHear counts how often the crew's files were to be read by what was sent last.
func (n *story) asksToHear() int {
	return strings.Count(strings.Join(n.sent, " "), string(events.ActionHear))
}

// hears answers the request to read the crew's files.
func (n *story) hears(e evidence.VerdictRead) {
	n.Helper()
	n.now = n.now.Add(time.Second)
	e.Origin, e.Request = n.reading(), n.begins(events.ActionHear, "")
	n.give(e)
}

// TestAnAttemptOfLinesHidesNoLine: somebody writes that a later attempt runs, has failed or has given up. The true crew's later lines count.
func TestAnAttemptOfLinesHidesNoLine(t *testing.T) {
	t.Parallel()
	for _, forged := range []int{900, 1_000_000} {
		for _, kind := range []events.Report{events.ReportStarted, events.ReportProgress, events.ReportExited, events.ReportGaveUp, events.ReportFinished} {
			n := newRun(t, "gs://ckpt/llama-8b")
			n.speaks(events.CrewReport{Report: kind, Attempt: forged, ExitCode: 1, Step: 1 << 50, CheckpointStep: 1 << 50})
			tr := n.later(time.Minute).tells(1, 2000, 1990).w.Training
			if tr.Step != 2000 || tr.High != 2000 || tr.StepAttempt != 1 || tr.Reported.Step != 1990 || tr.Attempt != 1 || tr.Exit.Attempt > 1 {
				t.Errorf("%s of attempt %d: known is %+v", kind, forged, tr)
			}
			if in := n.w.Incident; in != nil && in.BaseAttempt > 1 {
				t.Errorf("%s of attempt %d: the incident counts from attempt %d", kind, forged, in.BaseAttempt)
			}
			n.speaks(events.CrewReport{Report: kind, Attempt: forged, ExitCode: 1, Step: 1})
			for i := 0; i < 9 && n.w.Incident != nil; i++ {
				n.later(time.Minute).tells(1, n.w.Training.Step+3000, n.w.Training.Step+2000)
			}
			n.opens(false)
			n.later(time.Hour).givesUp(1)
			if doubted := kind == events.ReportGaveUp && forged < 1000; (n.w.Incident == nil) != doubted || n.asksToHear() != 1 && !doubted || n.w.Training.Claim.Attempt != 1 {
				t.Errorf("%s of attempt %d: the crew gave up, and its claim is %+v:\n%s", kind, forged, n.w.Training.Claim, n.tale())
			}
		}
	}
}

// TestALateLineOfAFormerAttemptIsLate: the crew restarts the training itself, which no lease has told Pitstop, and a line comes late.
func TestALateLineOfAFormerAttemptIsLate(t *testing.T) {
	t.Parallel()
	n := newRun(t, "gs://ckpt/llama-8b")
	late := n.now.Add(10 * time.Second)
	n.later(time.Minute).speaks(events.CrewReport{Report: events.ReportStarted, Attempt: 2}).tells(2, 995, 990)
	n.wrote(late, "llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: 1010, CheckpointStep: 990})
	if tr := n.w.Training; tr.StepAttempt != 2 || tr.Step != 995 || tr.Attempt != 2 {
		t.Errorf("known is step %d of attempt %d of %d", tr.Step, tr.StepAttempt, tr.Attempt)
	}
}

// TestAnAttemptFarAboveTheLeaseIsRefused: it has the lease read once an hour, and counts only where the lease names it.
func TestAnAttemptFarAboveTheLeaseIsRefused(t *testing.T) {
	t.Parallel()
	for _, named := range []int{1, 5000} {
		n := newRun(t, "gs://ckpt/llama-8b")
		n.exits(1, "an error").opens(true)
		reads := 0
		for range 20 {
			n.tells(5000, 2000, 1990)
			reads += n.asksToHear()
		}
		if n.opens(true); reads != 1 {
			t.Fatalf("it is read %d times:\n%s", reads, n.tale())
		}
		n.hears(evidence.VerdictRead{Attempt: named, Text: "there is no verdict", Saved: 1990, SavedAt: n.now})
		n.tells(5000, 2000, 1990)
		if taken := n.w.Incident == nil; taken != (named == 5000) {
			t.Errorf("the lease names %d: taken %t\n%s", named, taken, n.tale())
		}
		if n.asksToHear() != 0 {
			t.Error("it is read again within the hour")
		}
	}
}

// TestAFarAttemptIsReadOnTheMachineInQuietTimes: no request can be made outside an incident.
func TestAFarAttemptIsReadOnTheMachineInQuietTimes(t *testing.T) {
	t.Parallel()
	n := newRun(t, "gs://ckpt/llama-8b").tells(5000, 2000, 1990)
	if due := n.w.Due(); due.IsZero() || due.After(n.now.Add(time.Minute)) || n.w.Training.Step != 1000 {
		t.Fatalf("due at %v, step %d", due, n.w.Training.Step)
	}
	s := n.w.Slices[0]
	n.give(evidence.Beat{Origin: n.reading(), Slice: s.Name, Incarnation: s.Incarnation, Seen: n.now, Runs: true, Attempt: 5000})
	if n.tells(5000, 2000, 1990); n.w.Training.Step != 2000 {
		t.Errorf("step %d", n.w.Training.Step)
	}
	for range 3 { // nobody can answer the next one, which ends by itself
		n.tells(9000, 2000, 1990)
		n.passes(bounds.ListenAgain)
	}
	n.later(bounds.Linger).give(evidence.Beat{Origin: n.reading(), Slice: s.Name, Incarnation: s.Incarnation})
	if due := n.w.Due(); !due.IsZero() {
		t.Errorf("it is due at %v, %v from now", due, due.Sub(n.now))
	}
}

// TestAStepThatNobodyDidDelaysNoEnd: the last line before a loss tells of a checkpoint that stands nowhere.
func TestAStepThatNobodyDidDelaysNoEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		directory string
		forged    [2]int64
		reads     int
	}{
		"with a directory":                {"gs://ckpt/llama-8b", [2]int64{1 << 60, 1 << 60}, 1},
		"a plausible step":                {"gs://ckpt/llama-8b", [2]int64{1010, 1 << 60}, 0},
		"a little more than was saved":    {"gs://ckpt/llama-8b", [2]int64{1400, 1400}, 1},
		"no directory":                    {"", [2]int64{1 << 60, 1 << 60}, 0},
		"no directory, a plausible step":  {"", [2]int64{1010, 1 << 60}, 0},
		"told long before, true ones too": {"gs://ckpt/llama-8b", [2]int64{0, 1 << 60}, 0},
	} {
		n := newRun(t, c.directory).tells(1, c.forged[0], c.forged[1])
		if c.forged[0] == 0 {
			n.later(5*time.Minute).tells(1, 1005, 990)
		}
		reads := n.comesBack(5*time.Minute, 3, func() evidence.VerdictRead {
			return evidence.VerdictRead{Attempt: 2, Text: "there is no verdict", Saved: 990, SavedAt: n.now.Add(-time.Hour)}
		})
		if n.opens(false); n.ended().By != view.ByStep || reads != c.reads {
			t.Errorf("%s: after 15 minutes of steps, and %d readings:\n%s", name, reads, n.tale())
		}
	}
}

// comesBack has the attempt fail and its crew do true steps in the next one. Each reading of the crew's files is answered, and counted.
func (n *story) comesBack(every time.Duration, most int64, answer func() evidence.VerdictRead) (reads int) {
	n.exits(1, "an error").opens(true)
	n.later(time.Minute).speaks(events.CrewReport{Report: events.ReportStarted, Attempt: 2, Step: 990})
	for i := int64(0); i < most && n.w.Incident != nil; i++ {
		if n.later(every).tells(2, 1000+10*i, 990); n.asksToHear() == 0 {
			n.passes(time.Second)
		}
		if n.asksToHear() > 0 && n.w.Incident != nil {
			reads++
			n.hears(answer())
		}
	}
	return reads
}

// TestAReadingThatFailedIsRepeated: a made-up step delays the end of an incident until the directory is read, and the bucket fails once.
func TestAReadingThatFailedIsRepeated(t *testing.T) {
	t.Parallel()
	n := newRun(t, "gs://ckpt/llama-8b").tells(1, 1<<60, 1<<60)
	began, failure := n.now, &evidence.Failure{Class: "transient", Message: "503"}
	reads := n.comesBack(time.Minute, 10, func() (read evidence.VerdictRead) {
		if read.Failure = failure; failure == nil {
			read.Saved, read.SavedAt = 990, began
		}
		failure = nil
		return read
	})
	if n.opens(false); n.ended().Outcome != view.Resumed || reads != 2 {
		t.Errorf("ten minutes of steps later, and after %d readings:\n%s", reads, n.tale())
	}
}

// TestALeapHidesNoLaterStep: a line of the attempt that runs tells of half as many steps again.
func TestALeapHidesNoLaterStep(t *testing.T) {
	t.Parallel()
	n := newRun(t, "").tells(1, 100_000, 0).tells(1, 150_000, 0)
	for i := range int64(4) {
		n.later(5*time.Minute).tells(1, 100_100+100*i, 0).passes(time.Second)
	}
	if tr := n.w.Training; tr.Step != 100_400 || tr.High != tr.Step || n.w.Incident != nil {
		t.Errorf("step %d of %d:\n%s", tr.Step, tr.High, n.tale())
	}
}

// TestALineOfThePastStretchesNoGap: how long a training may be silent does not follow from the time that somebody writes into a line.
func TestALineOfThePastStretchesNoGap(t *testing.T) {
	t.Parallel()
	n := newRun(t, "")
	for i := range int64(4) {
		n.later(5*time.Minute).tells(1, 1010+10*i, 0)
	}
	n.wrote(n.now.Add(-6*time.Hour), "llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: 1041})
	n.later(5*time.Minute).tells(1, 1050, 0)
	if tr := n.w.Training; tr.GapSeconds > 6*60 || tr.Step != 1050 {
		t.Errorf("step %d, and the longest time between two lines is %d s", tr.Step, tr.GapSeconds)
	}
}
