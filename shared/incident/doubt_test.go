package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestADoubtEnds: nothing has confirmed a line that the crew gave up, and a day later such a line opens an incident again.
func TestADoubtEnds(t *testing.T) {
	for _, policy := range []string{"watch", "everything"} {
		r := newTour(t, quiet(true), policy)
		gaveUp := func(after time.Duration) (opens bool) {
			of := func() (id string) {
				if r.w.Closed != nil {
					id = r.w.Closed.ID
				}
				if r.w.Incident != nil {
					id = r.w.Incident.ID
				}
				return id
			}
			before := of()
			r.now = r.now.Add(after)
			r.line("llama-8b", events.CrewReport{Report: events.ReportGaveUp, Attempt: r.w.Crew.Attempt, Reason: "exit code 1"})
			return of() != before
		}
		if !gaveUp(0) {
			t.Fatalf("%s: the first line opens nothing", policy)
		}
		for range 3 { // its crew goes on
			r.now = r.now.Add(6 * time.Hour)
			r.line("llama-8b", events.CrewReport{Report: events.ReportStarted, Attempt: r.w.Crew.Attempt + 1, Step: r.w.Progress.Step})
			r.now = r.now.Add(5 * time.Minute)
			r.line("llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: r.w.Crew.Attempt, Step: r.w.Progress.Step + 5000})
			r.tick(time.Minute)
		}
		if r.w.Incident != nil {
			t.Fatalf("%s: it is still open: %s", policy, tale(r.w))
		}
		early := gaveUp(time.Hour)
		r.line("llama-8b", events.CrewReport{Report: events.ReportStarted, Attempt: r.w.Crew.Attempt + 1, Step: r.w.Progress.Step})
		if late := gaveUp(6 * time.Hour); early || !late {
			t.Errorf("%s: such a line opens an incident after 19 hours: %t, after 25: %t", policy, early, late)
		}
	}
}

// TestNoLineTakesAwayADoubtedVerdict: while a line that the crew gave up is doubted, the crew gives up. Another line comes before patrol has read
// its verdict.
func TestNoLineTakesAwayADoubtedVerdict(t *testing.T) {
	for name, forged := range map[string]events.CrewReport{
		"another attempt gave up": {Report: events.ReportGaveUp, Attempt: 40, Reason: "made up"},
		"another one has ended":   {Report: events.ReportFinished, Attempt: 40},
	} {
		r := newTour(t, quiet(true), "everything")
		r.w.Crew.LeaseAttempt = 1
		r.line("llama-8b", events.CrewReport{Report: events.ReportGaveUp, Attempt: r.w.Crew.Attempt, Reason: "made up"})
		r.step()
		r.now = r.now.Add(10 * time.Minute)
		a := r.w.Crew.Attempt
		r.line("llama-8b", events.CrewReport{Report: events.ReportExited, Attempt: a})
		r.line("llama-8b", events.CrewReport{Report: events.ReportGaveUp, Attempt: a, Reason: "exit code 1"})
		r.line("llama-8b", forged)
		r.now = r.now.Add(incident.ListenAgain)
		s, asked := r.w.Slices[0], ""
		for range 3 {
			asked += r.tick(time.Minute)
			if readsOf(r.w, r.now).Has(incident.ReadCrew, s.Name) {
				v := events.CrewVerdict{Attempt: a, Reason: "exit code 1", Ended: r.now.Add(-5 * time.Minute), Life: events.Admission{Slice: s.Name, Incarnation: s.Incarnation}}
				asked += r.give(incident.Beat{Origin: incident.Origin{Time: r.now, Rank: events.RankReading}, Slice: s.Name, Incarnation: s.Incarnation, Seen: r.now, Attempt: a, Verdict: &v})
			}
		}
		if asked == "" {
			t.Errorf("%s: the crew gave up after attempt %d, and nothing is asked for: %+v", name, a, r.w.Crew.Claim)
		}
	}
}

// TestAReadingThatFailedIsRepeated: a made-up step delays the end of an incident until the directory is read, and the bucket fails once.
func TestAReadingThatFailedIsRepeated(t *testing.T) {
	r := newRun(t, "gs://ckpt/llama-8b")
	r.steps(1, 1000, 990)
	r.steps(1, 1<<60, 1<<60)
	r.crashes(1)
	r.now = r.now.Add(time.Minute)
	r.says(events.CrewReport{Report: events.ReportStarted, Attempt: 2, Step: 990})
	began, failure := r.now, &incident.Failure{Class: incident.Transient, Message: "503"}
	for n := int64(0); n < 10 && r.w.Incident != nil; n++ {
		r.now = r.now.Add(time.Minute)
		r.steps(2, 1000+10*n, 990)
		asked := r.asked()
		r.learns(incident.Ticked{})
		if asked += r.asked(); asked > 0 && r.w.Incident != nil {
			read := incident.VerdictRead{Attempt: 2, Text: "read", Failure: failure}
			if failure == nil {
				read.Saved, read.SavedAt = 990, began
			}
			r.reads(read)
			failure = nil
		}
	}
	if r.w.Incident != nil || r.w.Closed.Outcome != incident.Resumed {
		t.Errorf("ten minutes of steps later: %s", tale(r.w))
	}
}
