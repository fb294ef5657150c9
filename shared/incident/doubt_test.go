package incident_test

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

var (
	// preempted is a line of a crew that was told to end.
	preempted = events.CrewReport{Report: events.ReportNotice, Preempted: true}
	// hourly is maintenance of an hour.
	hourly = func(of events.NoticeStatus, from time.Time) events.Notice {
		return events.Notice{Status: of, WindowStart: from, WindowEnd: from.Add(time.Hour)}
	}
)

// TestALineRepeatedOpensOneIncident: for a day somebody writes what nothing else shows. People hear of it once, and nothing is charged.
func TestALineRepeatedOpensOneIncident(t *testing.T) {
	t.Parallel()
	const pending, ongoing, gone = events.NoticePending, events.NoticeOngoing, events.NoticeGone
	for name, c := range map[string]struct {
		in    time.Duration // begins the maintenance
		says  []events.NoticeStatus
		after int // the attempt that runs
	}{
		"gave up": {}, "gave up, each time after another attempt": {after: 1}, "preempted": {says: []events.NoticeStatus{""}},
		"maintenance is pending":             {in: 8 * time.Minute, says: []events.NoticeStatus{pending}},
		"maintenance is pending, and over":   {in: 8 * time.Minute, says: []events.NoticeStatus{pending, gone}},
		"maintenance is under way":           {says: []events.NoticeStatus{ongoing}},
		"maintenance is under way, and over": {says: []events.NoticeStatus{ongoing, gone}},
		"pending and preempted":              {in: 8 * time.Minute, says: []events.NoticeStatus{"", pending}},
	} {
		line := func(n *story, i int) events.CrewReport {
			if len(c.says) == 0 {
				return events.CrewReport{Report: events.ReportGaveUp, Attempt: n.w.Training.Attempt + c.after, Reason: "made up"}
			}
			of := c.says[i%len(c.says)]
			if of == "" {
				return preempted
			}
			notice := hourly(of, n.now.Add(c.in))
			return events.CrewReport{Report: events.ReportNotice, Notice: &notice}
		}
		for _, c := range []struct{ policy, directory string }{{"everything", "gs://ckpt/llama-8b"}, {"everything", ""}, {"ask", "gs://ckpt/llama-8b"}, {"watch", ""}} {
			t.Run(name+" "+c.policy+" "+c.directory, func(t *testing.T) {
				t.Parallel()
				n := newStory(t, true, "llama-8b")
				n.p.Switches, n.w.Directory = presets[c.policy], c.directory
				if opened, saves := n.day(line); opened != 1 || saves > 1 || len(n.w.Charges) > 0 {
					t.Errorf("%d incidents, %d saves, charged is %v; the last is\n%s", opened, saves, n.w.Charges, n.tale())
				}
			})
		}
	}
}

// day lets a day pass in which a line comes every ten minutes, and counts the incidents and the saves.
func (n *story) day(line func(*story, int) events.CrewReport) (opened, saves int) {
	known := map[string]bool{}
	for minute := range 24 * 60 {
		if minute%10 == 0 {
			n.line("llama-8b", line(n, minute/10))
		}
		if minute%5 == 0 {
			n.steps(n.w.Training.StepAttempt, n.w.Training.Step+10)
		}
		saves += n.obeys()
		if id := n.newest(); id != "" {
			known[id] = true
		}
		n.reads("llama-8b", evidence.Ready, func(e *evidence.Read) { e.Directory = n.w.Directory })
		n.passes(time.Minute)
	}
	return len(known), saves
}

// TestALineIsHeardOnceTheAPIShowsWhatItSays: after a false alarm the next line of that kind waits for a reading.
func TestALineIsHeardOnceTheAPIShowsWhatItSays(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]func(n *story){
		"a loss": func(n *story) {
			n.goes("read unhealthy, read ready, crew notice").opens(true)
			n.play("read lost")
			n.wants("delete llama-8b")
		},
		"a loss that no line tells of": func(n *story) { n.reads("llama-8b", evidence.Lost).wants("delete llama-8b") },
		"maintenance": func(n *story) {
			n.notes(true, hourly(events.NoticeOngoing, n.now)).wants("save")
			n.reads("llama-8b", evidence.Ready).goesOn() // it is over
			n.notes(false, hourly(events.NoticeOngoing, n.now)).wants("save")
		},
		"another life": func(n *story) {
			n.goes("read gone, owner deletes, 1m, read foreign, 10m, mapped, crew notice").opens(true)
		},
	} {
		t.Run(name, func(t *testing.T) {
			n := newStory(t, true, "llama-8b")
			n.line("llama-8b", preempted).opens(true)
			n.goesOn()
			n.line("llama-8b", preempted).opens(false)
			n.notes(false, hourly(events.NoticeOngoing, n.now)).opens(false)
			c(n)
		})
	}
}

// newest is the incident that is open, or has just ended.
func (n *story) newest() string {
	if in := n.about(); in != nil {
		return in.ID
	}
	return ""
}

// opens fails unless an incident is open, or none is.
func (n *story) opens(want bool) {
	n.Helper()
	if opened := n.w.Incident != nil; opened != want {
		n.Fatalf("an incident is open: %v:\n%s", opened, n.tale())
	}
}

// TestWhatTheAPIShowsOfMaintenanceNoLineChanges but for one thing: that it has begun. It is not moved and not withdrawn.
func TestWhatTheAPIShowsOfMaintenanceNoLineChanges(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, "llama-8b")
	n.p.Switches = presets["spot"]
	shown := hourly(events.NoticePending, start.Add(12*time.Hour))
	n.notes(true, shown)
	for _, said := range []events.Notice{
		{Status: events.NoticeGone}, hourly(events.NoticePending, start.Add(5*time.Minute)), hourly(events.NoticeOngoing, start), hourly(events.NoticePending, start.Add(40*time.Hour)),
	} {
		sent := n.notes(false, said).passes(time.Minute)
		if notice := n.w.Slices[0].Notice; n.w.Incident != nil || sent != nil || !notice.Notice.Equal(shown) {
			t.Errorf("a line says %v: known is %v, asked for is %q", said, notice.Notice, sent)
		}
	}
	shown.Status = events.NoticeOngoing
	n.notes(false, shown).wants("save")
	n.begins(events.ActionSave, "")
	if n.notes(false, events.Notice{Status: events.NoticeGone}); n.w.Incident == nil || n.w.Incident.Status.Label != view.Saving {
		t.Errorf("a line ends it:\n%s", n.tale())
	}
}

// doubted is a training of which a line has said in vain that its crew gave up.
func doubted(t *testing.T) *story {
	n := newStory(t, true, "llama-8b")
	n.w.Lease.Attempt = 1
	n.givesUp(1).opens(true)
	n.goesOn()
	return n.later(10 * time.Minute)
}

// TestACrewThatGaveUpIsHeardAgain: a doubted line opens nothing, and the verdict that confirms it opens the incident and asks for another attempt.
func TestACrewThatGaveUpIsHeardAgain(t *testing.T) {
	t.Parallel()
	n := doubted(t)
	n.givesUp(1).wants()
	n.opens(false)
	if n.later(bounds.ListenAgain); !n.w.Reads(n.now).Has("crew", "llama-8b") || n.w.Due().After(n.now) {
		t.Error("nobody reads the verdict")
	}
	n.beats(n.verdict(1, false)).wants("restart llama-8b=7711")
	n.goes("do, 1m, started").goesOn()
	n.givesUp(2).wants("hear")
}

// TestNoLineTakesAwayADoubtedVerdict: a line comes between a doubted end of its crew and the reading of its verdict.
func TestNoLineTakesAwayADoubtedVerdict(t *testing.T) {
	t.Parallel()
	for name, forged := range map[string]events.CrewReport{
		"another attempt gave up": {Report: events.ReportGaveUp, Attempt: 40, Reason: "made up"},
		"another one has ended":   {Report: events.ReportFinished, Attempt: 40},
	} {
		n := doubted(t).line("llama-8b", events.CrewReport{Report: events.ReportExited, Attempt: 1}).givesUp(1)
		ended := n.verdict(1, false)
		n.later(time.Second).line("llama-8b", forged)
		if n.later(bounds.ListenAgain); !n.w.Reads(n.now).Has("crew", "llama-8b") {
			t.Errorf("%s: nobody reads the verdict", name)
		}
		if n.beats(ended); n.isWanted(events.ActionHear) { // one that somebody calls finished is not restarted unheard
			n.give(evidence.VerdictRead{Origin: n.reading(), Request: n.begins(events.ActionHear, ""), Verdict: ended, Attempt: 1})
		}
		if !n.isWanted(events.ActionRestart) {
			t.Errorf("%s: the crew gave up, and nothing is asked for:\n%s", name, n.tale())
		}
	}
}

// TestADoubtEnds: nothing has confirmed a line that the crew gave up, and a day later such a line opens an incident again.
func TestADoubtEnds(t *testing.T) {
	t.Parallel()
	for _, switches := range []policy.Switches{policy.Everything(), {}} {
		n := newStory(t, true, "llama-8b")
		n.p.Switches = switches
		again := func(after time.Duration) (opens bool) {
			before := n.later(after).line("llama-8b", events.CrewReport{Report: events.ReportStarted, Attempt: n.w.Training.Attempt + 1}).newest()
			return n.givesUp(n.w.Training.Attempt).newest() != before
		}
		first := again(0)
		for range 3 { // its crew goes on
			n.later(6*time.Hour).line("llama-8b", events.CrewReport{Report: events.ReportStarted, Attempt: n.w.Training.Attempt + 1})
			n.later(5*time.Minute).steps(n.w.Training.Attempt, n.w.Training.Step+5000)
			n.passes(time.Minute)
		}
		if n.opens(false); !first || again(time.Hour) || !again(6*time.Hour) {
			t.Errorf("%+v: it opens an incident at first %v, or after 19 hours, or not after 25:\n%s", switches, first, n.tale())
		}
	}
}
