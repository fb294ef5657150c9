package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// run is a training whose crew writes lines, some of which somebody else has made up.
type run struct {
	*testing.T
	w    incident.Workload
	now  time.Time
	sent []events.Event
}

func newRun(t *testing.T, directory string) *run {
	w := quiet(true)
	w.Directory, w.Progress = directory, incident.Progress{}
	return &run{T: t, w: w, now: start}
}

// learns takes evidence a second later.
func (r *run) learns(e incident.Evidence) {
	r.now = r.now.Add(time.Second)
	r.w, r.sent, _ = advance(policies["everything"], r.w, e, r.now)
}

func (r *run) says(c events.CrewReport) {
	at := r.now.Add(time.Second)
	r.learns(incident.Reported{Origin: incident.Origin{ID: "line " + at.String(), Time: at, Rank: events.RankUser}, Slice: r.w.Slices[0].Name, Report: c})
}

func (r *run) steps(attempt int, step, saved int64) {
	r.says(events.CrewReport{Report: events.ReportProgress, Attempt: attempt, Step: step, CheckpointStep: saved})
}

// asked counts how often the crew's files are to be read by what was sent last.
func (r *run) asked() (n int) {
	for _, e := range r.sent {
		if c, is := e.(events.CheckpointRequested); is && c.Action == events.ActionHear {
			n++
		}
	}
	return n
}

// crashes opens an incident: an attempt ends, and its crew restarts it.
func (r *run) crashes(attempt int) {
	r.says(events.CrewReport{Report: events.ReportExited, Attempt: attempt, ExitCode: 1})
	if r.w.Incident == nil {
		r.Fatal("no incident is open")
	}
}

// reads answers the request for the crew's files.
func (r *run) reads(e incident.VerdictRead) {
	r.Helper()
	for _, effect := range r.w.Effects {
		if effect.Action == events.ActionHear {
			e.Request = r.w.Request(effect).(events.CheckpointRequested).Request //nolint:forcetypeassert // it asks to hear
			e.Origin = incident.Origin{Time: r.now, Rank: events.RankReading}
			r.learns(e)
			return
		}
	}
	r.Fatalf("nobody is to read the crew's files: %s", tale(r.w))
}

// TestAnAttemptOfLinesHidesNoLine: somebody writes that a later attempt runs, has failed or has given up. The true crew's later lines count.
func TestAnAttemptOfLinesHidesNoLine(t *testing.T) {
	for _, forged := range []int{900, 1_000_000} {
		for _, kind := range []events.Report{events.ReportStarted, events.ReportProgress, events.ReportExited, events.ReportGaveUp, events.ReportFinished} {
			r := newRun(t, "gs://ckpt/llama-8b")
			r.steps(1, 1000, 990)
			r.says(events.CrewReport{Report: kind, Attempt: forged, ExitCode: 1, Step: 1 << 50, CheckpointStep: 1 << 50})
			r.now = r.now.Add(time.Minute)
			r.steps(1, 2000, 1990)
			p, c := r.w.Progress, r.w.Crew
			if p.Step != 2000 || p.High != 2000 || p.Attempt != 1 || p.CheckpointStep != 1990 || c.Attempt != 1 || c.Exited > 1 {
				t.Errorf("%s of attempt %d: known is step %d of %d, saved %d, attempt %d of %d, ended %d",
					kind, forged, p.Step, p.High, p.CheckpointStep, p.Attempt, c.Attempt, c.Exited)
			}
			if in := r.w.Incident; in != nil && in.BaseAttempt > 1 {
				t.Errorf("%s of attempt %d: the incident counts from attempt %d", kind, forged, in.BaseAttempt)
			}
			r.says(events.CrewReport{Report: kind, Attempt: forged, ExitCode: 1, Step: 1})
			for r.w.Incident != nil {
				r.now = r.now.Add(time.Minute)
				r.steps(1, r.w.Progress.Step+3000, r.w.Progress.Step+2000)
			}
			r.now = r.now.Add(time.Hour)
			r.says(events.CrewReport{Report: events.ReportGaveUp, Attempt: 1, Reason: "all restarts are spent"})
			if kind == events.ReportGaveUp && forged < 1000 { // such a line was not confirmed before: patrol looks for the verdict
				if r.w.Incident != nil || r.w.Crew.Claim.Attempt != 1 {
					t.Errorf("%s of attempt %d: the crew gave up, and its claim is %+v: %s", kind, forged, r.w.Crew.Claim, tale(r.w))
				}
			} else if r.w.Incident == nil || r.asked() != 1 {
				t.Errorf("%s of attempt %d: the crew gave up, and %s", kind, forged, tale(r.w))
			}
		}
	}
}

// TestALateLineOfAFormerAttemptIsLate: the crew restarts the training itself, which no lease has told Pitstop, and a line comes late.
func TestALateLineOfAFormerAttemptIsLate(t *testing.T) {
	r := newRun(t, "gs://ckpt/llama-8b")
	r.steps(1, 1000, 990)
	late := r.now
	r.now = r.now.Add(time.Minute)
	r.says(events.CrewReport{Report: events.ReportStarted, Attempt: 2})
	r.steps(2, 995, 990)
	r.now = late.Add(10 * time.Second)
	r.steps(1, 1010, 990)
	if p := r.w.Progress; p.Attempt != 2 || p.Step != 995 || r.w.Crew.Attempt != 2 {
		t.Errorf("known is step %d of attempt %d of %d", p.Step, p.Attempt, r.w.Crew.Attempt)
	}
}

// TestAnAttemptFarAboveTheLeaseIsRefused: it has the lease read once an hour, and counts only where the lease names it.
func TestAnAttemptFarAboveTheLeaseIsRefused(t *testing.T) {
	for _, named := range []int{1, 5000} {
		r := newRun(t, "gs://ckpt/llama-8b")
		r.steps(1, 1000, 990)
		r.crashes(1)
		reads := 0
		for range 20 {
			r.steps(5000, 2000, 1990)
			reads += r.asked()
		}
		if reads != 1 || r.w.Incident == nil {
			t.Fatalf("it is read %d times: %s", reads, tale(r.w))
		}
		r.reads(incident.VerdictRead{Attempt: named, Text: "there is no verdict", Saved: 1990, SavedAt: r.now})
		r.steps(5000, 2000, 1990)
		if taken := r.w.Incident == nil; taken != (named == 5000) {
			t.Errorf("the lease names %d: taken %t, %s", named, taken, tale(r.w))
		}
		if r.asked() != 0 {
			t.Error("it is read again within the hour")
		}
	}
}

// TestAFarAttemptIsReadOnTheMachineInQuietTimes: no request can be made outside an incident.
func TestAFarAttemptIsReadOnTheMachineInQuietTimes(t *testing.T) {
	r := newRun(t, "gs://ckpt/llama-8b")
	r.steps(1, 1000, 990)
	r.steps(5000, 2000, 1990)
	if due := due(r.w); due.IsZero() || due.After(r.now.Add(time.Minute)) || r.w.Progress.Step != 1000 {
		t.Fatalf("due at %v, step %d", due, r.w.Progress.Step)
	}
	r.learns(incident.Beat{Slice: r.w.Slices[0].Name, Incarnation: r.w.Slices[0].Incarnation, Seen: r.now, Runs: true, Attempt: 5000})
	if r.steps(5000, 2000, 1990); r.w.Progress.Step != 2000 {
		t.Errorf("step %d", r.w.Progress.Step)
	}
	for range 3 { // nobody can answer the next one, which ends by itself
		r.steps(9000, 2000, 1990)
		r.now = r.now.Add(incident.ListenAgain)
		r.learns(incident.Ticked{})
	}
	r.now = r.now.Add(incident.Linger)
	r.learns(incident.Beat{Slice: r.w.Slices[0].Name, Incarnation: r.w.Slices[0].Incarnation})
	if due := due(r.w); !due.IsZero() {
		t.Errorf("it is due at %v, %v from now", due, due.Sub(r.now))
	}
}

// TestAStepThatNobodyDidDelaysNoEnd: the last line before a loss tells of a checkpoint that stands nowhere, and the training that comes back
// does true steps.
func TestAStepThatNobodyDidDelaysNoEnd(t *testing.T) {
	for name, c := range map[string]struct {
		directory string
		forged    [2]int64
		reads     int
	}{
		"with a directory":                {"gs://ckpt/llama-8b", [2]int64{1 << 60, 1 << 60}, 1},
		"a plausible step":                {"gs://ckpt/llama-8b", [2]int64{1010, 1 << 60}, either(1, 0, "fewer")},
		"a little more than was saved":    {"gs://ckpt/llama-8b", [2]int64{1400, 1400}, 1},
		"no directory":                    {"", [2]int64{1 << 60, 1 << 60}, 0},
		"no directory, a plausible step":  {"", [2]int64{1010, 1 << 60}, 0},
		"told long before, true ones too": {"gs://ckpt/llama-8b", [2]int64{0, 1 << 60}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRun(t, c.directory)
			r.steps(1, 1000, 990)
			r.steps(1, c.forged[0], c.forged[1])
			if c.forged[0] == 0 {
				r.now = r.now.Add(5 * time.Minute)
				r.steps(1, 1005, 990)
			}
			r.crashes(1)
			r.now = r.now.Add(time.Minute)
			r.says(events.CrewReport{Report: events.ReportStarted, Attempt: 2, Step: 990})
			reads := 0
			for n := int64(0); n < 3 && r.w.Incident != nil; n++ {
				r.now = r.now.Add(5 * time.Minute)
				r.steps(2, 1000+10*n, 990)
				if reads += r.asked(); r.asked() > 0 {
					r.reads(incident.VerdictRead{Attempt: 2, Text: "there is no verdict", Saved: 990, SavedAt: r.now.Add(-time.Hour)})
				}
			}
			if r.w.Incident != nil || r.w.Closed.ConfirmedBy != incident.ByStep || reads != c.reads {
				t.Errorf("after 15 minutes of steps, and %d readings, it stands as %s", reads, tale(r.w))
			}
		})
	}
}

// TestALeapHidesNoLaterStep: a line of the attempt that runs tells of half as many steps again.
func TestALeapHidesNoLaterStep(t *testing.T) {
	r := newRun(t, "")
	r.steps(1, 100_000, 0)
	r.steps(1, 150_000, 0)
	for n := range int64(4) {
		r.now = r.now.Add(5 * time.Minute)
		r.steps(1, 100_100+100*n, 0)
		r.learns(incident.Ticked{})
	}
	if p := r.w.Progress; p.Step != 100_400 || p.High != p.Step || r.w.Incident != nil {
		t.Errorf("step %d of %d: %s", p.Step, p.High, tale(r.w))
	}
}

// TestALineOfThePastStretchesNoGap: how long a training may be silent follows from the time between its lines, and not from the time that
// somebody writes into one.
func TestALineOfThePastStretchesNoGap(t *testing.T) {
	r := newRun(t, "")
	for n := range int64(4) {
		r.steps(1, 1000+10*n, 0)
		r.now = r.now.Add(5 * time.Minute)
	}
	r.learns(incident.Reported{
		Origin: incident.Origin{ID: "forged", Time: r.now.Add(-6 * time.Hour), Rank: events.RankUser}, Slice: r.w.Slices[0].Name,
		Report: events.CrewReport{Report: events.ReportProgress, Attempt: 1, Step: 1031},
	})
	r.steps(1, 1040, 0)
	if p := r.w.Progress; p.GapSeconds > 6*60 || p.Step != 1040 {
		t.Errorf("step %d, and the longest time between two lines is %d s", p.Step, p.GapSeconds)
	}
}
