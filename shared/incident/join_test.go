package incident_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/incident/incidenttest"
	"pitstop.internal/shared/policy"
)

// TestEntriesJoin: in whatever order entries come within the time that they may be late, and however often, the same is known in the end
// of the slice and of the training. Readings come in the order in which they are taken, for nobody delivers them.
func TestEntriesJoin(t *testing.T) {
	happened, mattered := map[string]int{}, 0
	holds(t, func(t *rapid.T) {
		p := policies[rapid.SampledFrom([]string{"everything", "ask", "watch"}).Draw(t, "policy")]
		u := &tpu{t: t, policy: p, foreign: rapid.Bool().Draw(t, "foreign hosts"), happened: happened, now: start, life: life(1), n: 1, condition: incident.Ready, window: start.Add(time.Hour), step: 48180, attempt: 1}
		for range rapid.IntRange(1, 6).Draw(t, "happenings") {
			u.passes(300)
			u.lives()
			u.passes(90)
			if rapid.Bool().Draw(t, "is read") {
				u.read()
			}
		}
		u.passes(90)
		u.read()
		u.now = u.now.Add(incidenttest.LateMost)
		u.read()
		var late []incidenttest.Told
		for _, e := range u.entries {
			late = append(late, incidenttest.Told{At: e.At.Add(time.Duration(rapid.IntRange(0, int(incidenttest.LateMost/time.Second)).Draw(t, "late")) * time.Second), Evidence: e.Evidence, Policy: p})
			if rapid.Bool().Draw(t, "twice") {
				late = append(late, incidenttest.Told{At: u.now, Evidence: e.Evidence, Policy: p})
			}
		}
		w := quiet(true)
		if u.foreign {
			w.Slices[0].Hosts, w.Slices[0].HostsAsked = "", true
		}
		knows := func(entries []incidenttest.Told) (incidenttest.Known, []incidenttest.Told) {
			all := incidenttest.Order(w, slices.Concat(u.readings, entries))
			return incidenttest.KnownOf(incidenttest.Learn(w, all)), all
		}
		want, _ := knows(u.entries)
		got, all := knows(late)
		if d := cmp.Diff(want, got); d != "" {
			t.Fatalf("what is known (-in time +late):\n%s\n%s", d, strings.Join(toldAs(all), "\n"))
		}
		if without, _ := knows(nil); cmp.Diff(want, without) != "" {
			mattered++
		}
	})
	if testing.Short() {
		return // too few histories for everything to happen
	}
	if mattered == 0 {
		t.Error("no entry ever told more than the readings")
	}
	for _, what := range []string{
		"preempted", "host error", "stopped", "started", "deleted", "created", "announced", "begins", "withdrawn", "step", "zombie", "exit", "finished",
	} {
		if happened[what] == 0 {
			t.Errorf("%s never happened", what)
		}
	}
}

// tpu is a slice as it truly is, and tells what functions learn of it: readings in the order in which they are taken, and entries, each
// of which may be late.
type tpu struct {
	t         *rapid.T
	policy    policy.Policy
	happened  map[string]int
	foreign   bool // its crew runs on hosts whose names tell of no slice
	now       time.Time
	life      events.Incarnation
	n         int
	condition incident.Condition
	notice    events.Notice
	window    time.Time
	step      int64
	attempt   int

	readings, entries []incidenttest.Told
}

func (u *tpu) passes(seconds int) {
	u.now = u.now.Add(time.Duration(rapid.IntRange(1, seconds).Draw(u.t, "seconds")) * time.Second)
}

// lives has one thing happen that may.
func (u *tpu) lives() {
	may := map[string]func(){}
	switch u.condition {
	case incident.Ready:
		may["preempted"] = func() { u.condition = incident.Lost; u.interrupted(events.CausePreemption) }
		may["host error"] = func() { u.condition = incident.Unhealthy; u.interrupted(events.CauseHostError) }
		may["stopped"] = func() { u.condition = incident.Stopped; u.called("StopNode") }
		may["deleted"] = u.deleted
		may["step"] = func() {
			u.step += 10
			u.crew(events.CrewReport{Report: events.ReportProgress, CheckpointStep: u.step - 5})
		}
		may["exit"] = func() {
			u.crew(events.CrewReport{Report: events.ReportExited, ExitCode: 1, RestartsLeft: 4})
			u.restarted()
		}
		may["finished"] = func() { u.crew(events.CrewReport{Report: events.ReportFinished}) }
		may["finished, and begun again"] = func() { u.crew(events.CrewReport{Report: events.ReportFinished}); u.restarted() }
		may["announced"] = func() {
			u.window = u.window.Add(time.Duration(rapid.IntRange(1, 5).Draw(u.t, "hours")) * time.Hour) // none is announced again that was left
			u.announces(events.Notice{Status: events.NoticePending, CanReschedule: true, WindowStart: u.window, WindowEnd: u.window.Add(4 * time.Hour)})
		}
		if u.notice.Status == events.NoticePending && rapid.Bool().Draw(u.t, "maintenance goes on") {
			clear(may)
			may["begins"] = func() { n := u.notice; n.Status = events.NoticeOngoing; u.announces(n) }
			may["withdrawn"] = func() { u.announces(events.Notice{Status: events.NoticeGone}) }
		}
	case incident.Unhealthy:
		may["repaired"] = func() { u.condition = incident.Ready }
	case incident.Stopped:
		may["started"] = func() { u.condition = incident.Ready; u.called("StartNode") }
	case incident.Lost:
		may["zombie"] = func() { u.crew(events.CrewReport{Report: events.ReportProgress}) }
		may["deleted"] = u.deleted
	case incident.Unread, incident.Creating, incident.Deleting, incident.Unclear, incident.Done:
		u.t.Fatalf("nothing happens to what is %s", u.condition)
	case incident.Gone:
		may["created"] = func() {
			u.n++
			zone := rapid.SampledFrom([]string{u.life.Zone, elsewhere(u.life.Zone)}).Draw(u.t, "zone")
			u.life, u.condition = events.Incarnation{Zone: zone, ID: fmt.Sprint(7710 + u.n), Created: u.now}, incident.Ready
			u.called("CreateNode")
		}
	}
	what := rapid.SampledFrom(sorted(may)).Draw(u.t, "happens")
	u.happened[what]++
	may[what]()
}

func (u *tpu) deleted() {
	u.condition, u.notice = incident.Gone, events.Notice{}
	u.called("DeleteNode")
}

func (u *tpu) restarted() {
	u.attempt++
	u.now = u.now.Add(time.Second)
	u.crew(events.CrewReport{Report: events.ReportStarted, Workers: 4})
}

func (u *tpu) tells(e incident.Evidence) {
	u.entries = append(u.entries, incidenttest.Told{At: u.now, Evidence: e, Policy: u.policy})
}

func (u *tpu) origin(r events.Rank) incident.Origin {
	return incident.Origin{ID: fmt.Sprintf("entry-%d", len(u.entries)), Time: u.now, Rank: r}
}

func (u *tpu) interrupted(c events.Cause) {
	u.tells(incident.Interrupted{Origin: u.origin(events.RankAudit), Slice: "llama-8b", Incarnation: u.life, Cause: c, Text: string(c)})
}

func (u *tpu) called(method string) {
	act, _ := events.Call{Method: method}.Act()
	u.tells(incident.Called{
		Origin: u.origin(events.RankAudit), Slice: "llama-8b", Zone: u.life.Zone, Act: act, Method: method, Principal: "ann@example.com",
	})
}

func (u *tpu) announces(n events.Notice) {
	u.notice = n
	u.tells(incident.Noticed{Origin: u.origin(events.RankAudit), Slice: "llama-8b", Incarnation: u.life, Notice: n, Text: "notice"})
}

func (u *tpu) crew(r events.CrewReport) {
	r.Schema, r.Zone, r.Node, r.Hostname, r.Attempt, r.Step = 1, u.life.Zone, "llama-8b", u.hosts()+"-w-0", u.attempt, u.step
	u.tells(incident.Reported{Origin: u.origin(events.RankUser), Slice: "llama-8b", Report: r})
}

func (u *tpu) hosts() string {
	if u.foreign {
		return "trainer"
	}
	if u.n == 1 {
		return "t1v-n-3f2a9c01"
	}
	return fmt.Sprintf("t1v-n-0000000%d", u.n)
}

// read has patrol read it, and tell what it read.
func (u *tpu) read() {
	o := incident.Origin{ID: fmt.Sprintf("read-%d", len(u.readings)), Time: u.now, Rank: events.RankReading}
	r := incident.Read{Origin: o, Slice: "llama-8b", Zone: u.life.Zone, Condition: u.condition, State: strings.ToUpper(string(u.condition))}
	if u.condition != incident.Gone {
		r.Incarnation, r.Directory = u.life, "gs://ckpt/llama-8b"
		r.Facts = incident.Facts{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Reclaimable: true, Spec: "spec1", Label: "night"}
	}
	learns := func(e incident.Evidence) {
		u.readings = append(u.readings, incidenttest.Told{At: u.now, Evidence: e, Policy: u.policy})
	}
	if standing := u.notice.Status == events.NoticePending || u.notice.Status == events.NoticeOngoing; standing && u.condition == incident.Ready {
		r.Notice = &u.notice
		learns(r)
		learns(incident.Noticed{Origin: o, Slice: "llama-8b", Incarnation: u.life, Notice: u.notice, InAPI: true, Text: "notice"})
	} else {
		learns(r)
	}
	if u.condition != incident.Gone {
		group := u.hosts()
		if u.foreign {
			group = ""
		}
		learns(incident.Mapped{Origin: o, Slice: "llama-8b", Incarnation: u.life, Group: group})
	}
	learns(incident.Ticked{Origin: incident.Origin{Time: u.now}})
}

func toldAs(all []incidenttest.Told) (lines []string) {
	for _, t := range all {
		line := kind(t.Evidence)
		switch e := t.Evidence.(type) {
		case incident.Read:
			line = fmt.Sprintf("read %s %s", e.Condition, e.Incarnation)
		case incident.Noticed:
			line = fmt.Sprintf("%s noticed %s %s", e.Time.Format(time.TimeOnly), e.Notice.Status, e.Notice.WindowStart.Format(time.TimeOnly))
		case incident.Called:
			line = e.Time.Format(time.TimeOnly) + " called " + e.Method
		case incident.Interrupted:
			line = fmt.Sprintf("%s interrupted %s %s", e.Time.Format(time.TimeOnly), e.Cause, e.Incarnation)
		case incident.Reported:
			r := e.Report
			line = fmt.Sprintf("%s %s attempt %d step %d on %s", e.Time.Format(time.TimeOnly), r.Report, r.Attempt, r.Step, r.Hostname)
		}
		lines = append(lines, t.At.Format(time.TimeOnly)+" "+line)
	}
	return lines
}
