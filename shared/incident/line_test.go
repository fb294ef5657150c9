package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestALineRepeatedOpensOneIncident: for a day somebody writes every ten minutes what nothing else shows: that the crew gave up, or that the
// machine is to be maintained or lost. The training goes on, and readings show a healthy slice. People hear of it once, and the training is
// asked to save once.
func TestALineRepeatedOpensOneIncident(t *testing.T) {
	soon := func(r *tour, of events.NoticeStatus, after time.Duration) events.CrewReport {
		return events.CrewReport{Report: events.ReportNotice, Notice: &events.Notice{Status: of, WindowStart: r.now.Add(after), WindowEnd: r.now.Add(after + time.Hour)}}
	}
	lines := map[string]func(r *tour, i int) events.CrewReport{
		"gave up": func(r *tour, _ int) events.CrewReport {
			return events.CrewReport{Report: events.ReportGaveUp, Attempt: r.w.Crew.Attempt, Reason: "made up"}
		},
		"gave up, each time after another attempt": func(r *tour, _ int) events.CrewReport {
			return events.CrewReport{Report: events.ReportGaveUp, Attempt: r.w.Crew.Attempt + 1, Reason: "made up"}
		},
		"maintenance is pending": func(r *tour, _ int) events.CrewReport { return soon(r, events.NoticePending, 8*time.Minute) },
		"maintenance is pending, and over": func(r *tour, i int) events.CrewReport {
			return soon(r, []events.NoticeStatus{events.NoticePending, events.NoticeGone}[i%2], 8*time.Minute)
		},
		"maintenance is under way": func(r *tour, _ int) events.CrewReport { return soon(r, events.NoticeOngoing, 0) },
		"maintenance is under way, and over": func(r *tour, i int) events.CrewReport {
			return soon(r, []events.NoticeStatus{events.NoticeOngoing, events.NoticeGone}[i%2], 0)
		},
		"preempted": func(*tour, int) events.CrewReport {
			return events.CrewReport{Report: events.ReportNotice, Preempted: true}
		},
		"pending and preempted": func(r *tour, i int) events.CrewReport {
			if i%2 == 0 {
				return events.CrewReport{Report: events.ReportNotice, Preempted: true}
			}
			return soon(r, events.NoticePending, 8*time.Minute)
		},
	}
	for name, line := range lines {
		for _, policy := range []string{"everything", "ask", "watch"} {
			for _, directory := range []string{"gs://ckpt/llama-8b", ""} {
				r := newTour(t, quiet(true), policy)
				r.w.Directory = directory
				opened, saves := r.day(line)
				if opened > 1 || saves > 1 {
					t.Errorf("%s, under %s, with the directory %q: %d incidents, %d requests to save; the last is %s", name, policy, directory, opened, saves, tale(r.w))
				}
				if d := r.w.Budgets; d != (incident.Budgets{}) {
					t.Errorf("%s, under %s: %+v", name, policy, d)
				}
			}
		}
	}
}

// day lets a day pass in which a line comes every ten minutes, and counts the incidents and the requests to save.
func (r *tour) day(line func(r *tour, i int) events.CrewReport) (opened, saves int) {
	r.Helper()
	known := map[string]bool{}
	for i, end := 0, r.now.Add(24*time.Hour); r.now.Before(end); i++ {
		asked := r.line("llama-8b", line(r, i))
		for range 10 {
			if r.w.Incident != nil {
				known[r.w.Incident.ID] = true
			} else if r.w.Closed != nil {
				known[r.w.Closed.ID] = true
			}
			if asked == "save" {
				saves++
				r.learn("", "intend save 0")
				asked = r.learn("", "saved")
			}
			switch asked {
			case "verify":
				r.learn("", "found verify 0")
			case "hear":
				r.learn("", "intend hear 0", "no verdict hear 0")
			}
			asked = r.readAs("llama-8b", incident.Ready, func(e *incident.Read) { e.Directory = r.w.Directory }) + r.tick(time.Minute)
			if r.now.Minute()%5 == 0 {
				asked += r.line("llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: r.w.Progress.Attempt, Step: r.w.Progress.Step + 10, CheckpointStep: 48000})
			}
		}
	}
	return len(known), saves
}

// notice gives what a crew's line says of maintenance, or what the API shows of it.
func (r *tour) notice(inAPI bool, n events.Notice) string {
	r.Helper()
	if !inAPI {
		return r.line("llama-8b", events.CrewReport{Report: events.ReportNotice, Notice: &n})
	}
	return r.give(incident.Noticed{
		Origin: incident.Origin{ID: "api", Time: r.now, Rank: events.RankReading}, Slice: "llama-8b", Incarnation: r.w.Slices[0].Incarnation, Notice: n, InAPI: true, Text: "notice",
	})
}

// step is a line of the crew that confirms an open incident.
func (r *tour) step() {
	r.Helper()
	r.now = r.now.Add(10 * time.Minute)
	r.readAs("llama-8b", incident.Ready, nil)
	r.tick(time.Minute)
	r.line("llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: r.w.Crew.Attempt, Step: max(r.w.Progress.Step, r.w.Progress.Verified) + 1000, CheckpointStep: 48000})
	if r.w.Incident != nil {
		r.Fatalf("a step ends nothing: %s", tale(r.w))
	}
	r.now = r.now.Add(time.Minute)
}

// TestALineIsHeardOnceTheAPIShowsWhatItSays: after a false alarm the next line of that kind waits for a reading, and after that one a line is
// heard as at first.
func TestALineIsHeardOnceTheAPIShowsWhatItSays(t *testing.T) {
	preempted := events.CrewReport{Report: events.ReportNotice, Preempted: true}
	soon := func(r *tour) events.Notice {
		return events.Notice{Status: events.NoticeOngoing, WindowStart: r.now, WindowEnd: r.now.Add(time.Hour)}
	}
	opens := func(t *testing.T, r *tour, want bool, what string) {
		t.Helper()
		if opened := r.w.Incident != nil; opened != want {
			t.Fatalf("%s opens an incident: %v; %s", what, opened, tale(r.w))
		}
	}
	falseAlarm := func(t *testing.T) *tour {
		r := newTour(t, quiet(true), "everything")
		r.line("llama-8b", preempted)
		opens(t, r, true, "the first line")
		r.step()
		r.line("llama-8b", preempted)
		opens(t, r, false, "the second line")
		r.notice(false, soon(r))
		opens(t, r, false, "a line of maintenance")
		return r
	}
	t.Run("a loss", func(t *testing.T) {
		r := falseAlarm(t)
		r.readAs("llama-8b", incident.Unhealthy, nil)
		r.readAs("llama-8b", incident.Ready, nil)
		r.line("llama-8b", preempted)
		opens(t, r, true, "a line after a loss")
		if asked := r.readAs("llama-8b", incident.Lost, nil); asked != "delete llama-8b" {
			t.Errorf("lost, asked for is %q", asked)
		}
	})
	t.Run("a loss that no line tells of", func(t *testing.T) {
		r := falseAlarm(t)
		if asked := r.readAs("llama-8b", incident.Lost, nil); asked != "delete llama-8b" {
			t.Errorf("lost, asked for is %q", asked)
		}
	})
	t.Run("maintenance", func(t *testing.T) {
		r := falseAlarm(t)
		if asked := r.notice(true, soon(r)); asked != "save" {
			t.Errorf("under way, asked for is %q", asked)
		}
		r.readAs("llama-8b", incident.Ready, nil) // it is over
		r.step()
		if asked := r.notice(false, soon(r)); asked != "save" {
			t.Errorf("a line after maintenance asks for %q", asked)
		}
	})
	t.Run("another life", func(t *testing.T) {
		r := falseAlarm(t)
		r.learn("llama-8b", "owner deletes", "read gone", "owner creates", "read foreign")
		r.now = r.now.Add(10 * time.Minute)
		r.line("llama-8b", preempted)
		opens(t, r, true, "a line of the next life")
	})
}

// TestWhatTheAPIShowsOfMaintenanceNoLineChanges but for one thing: that it has begun. It is not moved and not withdrawn.
func TestWhatTheAPIShowsOfMaintenanceNoLineChanges(t *testing.T) {
	r := newTour(t, quiet(false), "spot")
	shown := events.Notice{Status: events.NoticePending, WindowStart: start.Add(12 * time.Hour), WindowEnd: start.Add(16 * time.Hour)}
	r.notice(true, shown)
	for _, said := range []events.Notice{
		{Status: events.NoticeGone},
		{Status: events.NoticePending, WindowStart: start.Add(5 * time.Minute), WindowEnd: start.Add(time.Hour)},
		{Status: events.NoticeOngoing, WindowStart: start, WindowEnd: start.Add(time.Hour)},
		{Status: events.NoticePending, WindowStart: start.Add(40 * time.Hour), WindowEnd: start.Add(41 * time.Hour)},
	} {
		asked := r.notice(false, said) + r.tick(time.Minute)
		if n := r.w.Slices[0].Notice; r.w.Incident != nil || asked != "" || !n.Notice.Equal(shown) {
			t.Errorf("a line says %v: known is %v, asked for is %q", said, n.Notice, asked)
		}
	}
	begun := shown
	begun.Status = events.NoticeOngoing
	if asked := r.notice(false, begun); asked != "save" {
		t.Errorf("it has begun, and asked for is %q", asked)
	}
	r.learn("", "intend save 0")
	r.notice(false, events.Notice{Status: events.NoticeGone})
	if r.w.Incident == nil || r.w.Incident.Phase != incident.Saving {
		t.Errorf("a line ends it: %s", tale(r.w))
	}
}

// TestACrewThatGaveUpIsHeardAgain: a doubted line opens nothing, and the verdict that confirms it opens the incident and asks for another
// attempt. After that a line opens one as at first.
func TestACrewThatGaveUpIsHeardAgain(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	r.w.Crew.LeaseAttempt = 1
	gaveUp := func() string {
		r.now = r.now.Add(10 * time.Minute)
		return r.line("llama-8b", events.CrewReport{Report: events.ReportGaveUp, Attempt: r.w.Crew.Attempt, Reason: "exit code 1"})
	}
	gaveUp()
	r.step()
	if asked := gaveUp(); r.w.Incident != nil || asked != "" {
		t.Fatalf("a doubted line asks for %q: %s", asked, tale(r.w))
	}
	if r.now = r.now.Add(incident.ListenAgain); !readsOf(r.w, r.now).Has(incident.ReadCrew, "llama-8b") || due(r.w).After(r.now) {
		t.Error("nobody reads the verdict")
	}
	if asked := r.learn("llama-8b", "its verdict"); asked != "restart llama-8b=7711" {
		t.Fatalf("confirmed, asked for is %q: %s", asked, tale(r.w))
	}
	r.do()
	r.line("llama-8b", events.CrewReport{Report: events.ReportStarted, Attempt: r.w.Crew.LeaseAttempt})
	r.step()
	if asked := gaveUp(); r.w.Incident == nil || asked != "hear" {
		t.Errorf("the next line asks for %q: %s", asked, tale(r.w))
	}
}
