package incident

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"pgregory.net/rapid"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
)

// told is evidence and when it came.
type told struct {
	at       time.Time
	evidence evidence.Evidence
}

// night is a workload as it truly is, and what functions learn of it: what is read, in the order in which it is taken, and entries, each of
// which may be late.
type night struct {
	t         *rapid.T
	happened  map[string]int
	now       time.Time
	living    int
	slices    []*reality
	attempt   int
	step      int64
	window    time.Time
	opened    time.Time
	closed    bool
	judged    bool
	foreign   bool // its crew runs on hosts whose names tell of no slice
	inPods    bool // its crew names the life, and its zone is a namespace
	taken     []told
	entries   []told
	directory string
}

// reality is a slice as it truly is.
type reality struct {
	name      string
	life      events.Incarnation
	n, made   int
	readGone  bool
	condition evidence.Condition
	notice    events.Notice
	ends      time.Time
}

func newNight(t *rapid.T, happened map[string]int) *night {
	u := &night{t: t, happened: happened, now: time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC), attempt: 1, step: 48180, directory: "gs://ckpt/llama"}
	u.window, u.foreign = u.now.Add(5*time.Hour), rapid.Bool().Draw(t, "foreign hosts")
	u.inPods = u.foreign && rapid.Bool().Draw(t, "in Pods")
	for _, name := range []string{"a", "b"} {
		s := &reality{name: name, condition: evidence.Ready}
		u.begins(s, "us-east5-a")
		u.slices = append(u.slices, s)
		u.passes(5)
		u.read(s)
	}
	if rapid.Bool().Draw(t, "an incident is open") {
		u.opened = u.now
		u.closed = rapid.Bool().Draw(t, "it has closed")
	}
	return u
}

func (u *night) begins(s *reality, zone string) {
	u.living++
	s.made++
	s.n, s.life = u.living, events.Incarnation{Zone: zone, ID: fmt.Sprint(7710 + u.living), Created: u.now}
	s.condition, s.notice = evidence.Ready, events.Notice{}
}

func (u *night) passes(seconds int) {
	u.now = u.now.Add(time.Duration(rapid.IntRange(1, seconds).Draw(u.t, "seconds")) * time.Second)
}

func (u *night) one() *reality { return rapid.SampledFrom(u.slices).Draw(u.t, "slice") }

// lives has one thing happen that may.
func (u *night) lives() {
	s := u.one()
	may := map[string]func(){
		"hearsay": func() {
			u.tells(evidence.Interrupted{Origin: u.origin(events.RankUser), Slice: s.name, Cause: events.CauseHostError, Text: "somebody says"})
		},
		"order to end": func() {
			u.tells(evidence.Back{Origin: u.origin(events.RankUser), Slice: s.name, Incarnation: s.life, Text: "SIGTERM"})
		},
	}
	switch s.condition {
	case evidence.Ready:
		u.mayReady(s, may)
	case evidence.Unhealthy:
		may["repaired"] = func() { s.condition = evidence.Ready }
	case evidence.Stopped:
		may["started"] = func() { s.condition = evidence.Ready; u.called(s, events.ActStarted) }
	case evidence.Lost:
		may["zombie"] = func() { u.crew(s, events.CrewReport{Report: events.ReportProgress}) }
		may["deleted"] = func() { u.deleted(s) }
	case evidence.Gone:
		if clear(may); s.made > maxFormer { // more lives are not remembered
			return
		}
		may["created"] = func() {
			zone := s.life.Zone
			if s.readGone && rapid.Bool().Draw(u.t, "elsewhere") { // what is not known to be gone may be the slice again
				zone = map[string]string{"us-east5-a": "us-east5-b", "us-east5-b": "us-east5-a"}[zone]
			}
			u.begins(s, zone)
			u.called(s, events.ActCreated)
			u.passes(60)
			u.read(s) // who tells of a life knows it from a reading
		}
	default:
	}
	what := rapid.SampledFrom(slices.Sorted(maps.Keys(may))).Draw(u.t, "happens")
	u.happened[what]++
	may[what]()
}

// mayReady is what may happen to a slice that is ready.
func (u *night) mayReady(s *reality, may map[string]func()) {
	may["preempted"] = func() { s.condition = evidence.Lost; u.interrupted(s, events.CausePreemption) }
	may["host error"] = func() { s.condition = evidence.Unhealthy; u.interrupted(s, events.CauseHostError) }
	may["stopped"] = func() { s.condition = evidence.Stopped; u.called(s, events.ActStopped) }
	may["deleted"] = func() { u.deleted(s) }
	may["step"] = func() {
		u.step += 10
		u.crew(s, events.CrewReport{Report: events.ReportProgress, CheckpointStep: u.step - 5})
	}
	may["exit"] = func() {
		u.crew(s, events.CrewReport{Report: events.ReportExited, ExitCode: 1})
		u.restarted(s)
	}
	may["finished"] = func() { u.crew(s, events.CrewReport{Report: events.ReportFinished}) }
	may["gave up"] = func() { u.crew(s, events.CrewReport{Report: events.ReportGaveUp}); u.restarted(s) }
	may["beat"] = func() { u.beats(s) }
	may["planned end"] = func() { s.ends = u.now.Add(20 * time.Hour) }
	may["announced"] = func() {
		u.window = u.window.Add(time.Hour) // none is announced again that was left
		u.announces(s, events.Notice{Status: events.NoticePending, CanReschedule: true, WindowStart: u.window, WindowEnd: u.window.Add(4 * time.Hour)})
	}
	if s.notice.Status == events.NoticePending && rapid.Bool().Draw(u.t, "maintenance goes on") {
		clear(may)
		may["begins"] = func() { n := s.notice; n.Status = events.NoticeOngoing; u.announces(s, n) }
		may["withdrawn"] = func() { u.announces(s, events.Notice{Status: events.NoticeGone}) }
	}
}

func (u *night) deleted(s *reality) {
	s.condition, s.notice, s.ends = evidence.Gone, events.Notice{}, time.Time{}
	u.called(s, events.ActDeleted)
}

func (u *night) restarted(s *reality) {
	u.attempt++
	u.passes(3)
	u.crew(s, events.CrewReport{Report: events.ReportStarted, Workers: 4})
}

func (u *night) tells(e evidence.Evidence) { u.entries = append(u.entries, told{u.now, e}) }

func (u *night) takes(e evidence.Evidence) { u.taken = append(u.taken, told{u.now, e}) }

func (u *night) origin(r events.Rank) evidence.Origin {
	return evidence.Origin{ID: fmt.Sprintf("%d-%d", len(u.entries), len(u.taken)), Time: u.now, Rank: r}
}

func (u *night) interrupted(s *reality, c events.Cause) {
	for range rapid.IntRange(1, 2).Draw(u.t, "workers") {
		u.tells(evidence.Interrupted{Origin: u.origin(events.RankAudit), Slice: s.name, Incarnation: s.life, Cause: c, Text: string(c)})
		u.passes(2)
	}
}

func (u *night) called(s *reality, act events.Act) {
	u.tells(evidence.Called{Origin: u.origin(events.RankAudit), Slice: s.name, Zone: s.life.Zone, Act: act, Principal: "ann@example.com"})
}

func (u *night) announces(s *reality, n events.Notice) {
	s.notice = n
	u.tells(evidence.Noticed{Origin: u.origin(events.RankAudit), Slice: s.name, Incarnation: s.life, Notice: n, Text: "notice"})
}

func (u *night) crew(s *reality, r events.CrewReport) {
	r.Schema, r.Zone, r.Node, r.Hostname, r.Attempt, r.Step = 1, s.life.Zone, s.name, u.hosts(s)+"-w-0", u.attempt, u.step
	if u.inPods {
		r.Zone, r.Life = "us-east5/c/ns", s.life.ID
	}
	u.tells(evidence.Reported{Origin: u.origin(events.RankUser), Slice: s.name, Report: r})
}

// beats has patrol listen for a crew.
func (u *night) beats(s *reality) {
	b := evidence.Beat{Origin: u.origin(events.RankReading), Slice: s.name, Incarnation: s.life, Seen: u.now, Looked: u.now, Runs: true, Attempt: u.attempt, Step: u.step, StepAt: u.now}
	if !u.judged && rapid.Bool().Draw(u.t, "it has ended") { // no verdict but the newest is remembered
		b.Runs, u.judged = false, true
		b.Verdict = &events.CrewVerdict{Schema: 1, Attempt: u.attempt, Life: events.Admission{Slice: s.name}, Finished: rapid.Bool().Draw(u.t, "well"), Ended: u.now, Step: u.step}
	}
	u.takes(b)
}

func (u *night) hosts(s *reality) string {
	if u.foreign {
		return "trainer"
	}
	return fmt.Sprintf("t1v-n-%08x", s.n)
}

// read has patrol read a slice, and tell what it read.
func (u *night) read(s *reality) {
	o := u.origin(events.RankReading)
	r := evidence.Read{Origin: o, Slice: s.name, Zone: s.life.Zone, Condition: s.condition, State: strings.ToUpper(string(s.condition))}
	standing := s.condition == evidence.Ready && (s.notice.Status == events.NoticePending || s.notice.Status == events.NoticeOngoing)
	if s.condition != evidence.Gone {
		r.Incarnation, r.Directory = s.life, u.directory
		r.Facts = evidence.Facts{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Capacity: events.Spot, Spec: "spec1", Label: "night", Ends: s.ends}
	}
	if standing {
		r.Notice = &s.notice
	}
	s.readGone = s.condition == evidence.Gone
	if u.takes(r); standing {
		u.takes(evidence.Noticed{Origin: o, Slice: s.name, Incarnation: s.life, Notice: s.notice, InAPI: true, Text: "notice"})
	}
	if group := u.hosts(s); s.condition != evidence.Gone {
		u.takes(evidence.Mapped{Origin: o, Slice: s.name, Incarnation: s.life, Group: strings.TrimPrefix(group, "trainer")})
	}
}
