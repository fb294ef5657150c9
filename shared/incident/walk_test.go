package incident_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

var start = time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC)

// stepsOfWalk is how long one walk is.
const stepsOfWalk = 40

// TestLawsHoldOnRandomWalks walks through random nights, with evidence that is true, late, double or missing, and holds the laws after each
// step.
func TestLawsHoldOnRandomWalks(t *testing.T) {
	t.Parallel()
	walks := 100_000 / stepsOfWalk
	if testing.Short() {
		walks /= 10
	}
	ends := map[view.Outcome]int{}
	for seed := range walks {
		w := newWalk(uint64(seed))
		for range stepsOfWalk {
			w.step()
			if len(w.broken) > 0 {
				break
			}
		}
		if len(w.broken) == 0 {
			w.waitsForEnd()
		}
		for _, b := range w.broken {
			t.Errorf("seed %d: %s, after%s", seed, b, w.path.String())
		}
		if t.Failed() {
			t.FailNow()
		}
		for o, n := range w.ends {
			ends[o] += n
		}
	}
	for _, o := range []view.Outcome{view.Resumed, view.Escalated, view.Released, view.Observed} {
		if ends[o] == 0 {
			t.Errorf("no incident has ended %s: the walks do not go far enough (%v)", o, ends)
		}
	}
	t.Log(ends)
}

// presets are the policies of the walks.
var presets = map[string]policy.Switches{
	"everything": policy.Everything(),
	"ask": {
		RequestCheckpoint: policy.Ask, EarlyMaintenance: policy.Ask, Restart: policy.Ask, Recreate: policy.Ask, RecreateNonSpot: policy.Ask,
		StartStopped: policy.Ask,
	},
	"spot":     {RequestCheckpoint: policy.Yes, Restart: policy.Yes, Recreate: policy.Yes},
	"reserved": {RequestCheckpoint: policy.Yes, EarlyMaintenance: policy.Yes, Restart: policy.Yes, StartStopped: policy.Yes},
	"watch":    {},
}

// walk is one random night of one workload: the cloud as it is, and the document.
type walk struct {
	rand  *rand.Rand
	p     policy.Policy
	w     incident.Workload
	now   time.Time
	cloud map[string]*truth
	names []string
	lives int
	steps int64
	// open are the requests that nobody has begun, and told what was learned before, which may come again.
	open []events.Request
	told []evidence.Evidence
	// wanted is when each call was first wanted.
	wanted map[string]time.Time

	path   strings.Builder
	broken []string
	ends   map[view.Outcome]int
}

// truth is a slice as it really is.
type truth struct {
	life      events.Incarnation
	condition evidence.Condition
	facts     evidence.Facts
	maker     string
}

func newWalk(seed uint64) *walk {
	r := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a walk has to be repeated
	preset := []string{"everything", "ask", "spot", "reserved", "watch"}[r.IntN(5)]
	provider := []string{"cloud-tpu", "cloud-tpu", "gke"}[r.IntN(3)]
	w := &walk{
		rand: r, now: start, cloud: map[string]*truth{}, wanted: map[string]time.Time{}, ends: map[view.Outcome]int{},
		p: policy.Policy{Name: "night", Switches: presets[preset], Lead: 10 * time.Minute, Save: events.SaveNatural, Hash: "h", LeaveZoneFor: policy.DefaultLeaveZoneFor},
		w: incident.New("demo", "llama-8b", provider), steps: 48000,
	}
	if provider == "cloud-tpu" {
		w.p.Zones = []string{"us-west4-a", "us-west4-b"}
	}
	if r.IntN(4) == 0 {
		w.p.GiveUpAfter = 6 * time.Hour
	}
	names := [][]string{{"llama-8b"}, {"a", "b"}, {"a", "b", "c"}}[r.IntN(3)]
	group := ""
	if len(names) > 1 && r.IntN(2) == 0 {
		group = "set"
	}
	spot, workers := r.IntN(2) == 0, []int{1, 4}[r.IntN(2)]
	for _, name := range names {
		s := &truth{condition: evidence.Ready, facts: evidence.Facts{
			Group: group, Accelerator: "v5litepod-16", Workers: workers, Chips: 16, Capacity: capacity(spot), Spec: "spec-" + name, Label: "night",
		}}
		w.cloud[name] = s
		w.names = append(w.names, name)
		w.newLife(s, w.home())
		w.learn("first "+name, w.reading(name))
	}
	fmt.Fprintf(&w.path, " %s on %s, group %q, spot %v:", preset, provider, group, spot)
	if r.IntN(5) > 0 {
		w.crew(w.names[0], events.CrewReport{Report: events.ReportStarted, Attempt: 1})
		w.advanceSteps()
	}
	return w
}

func (w *walk) home() string {
	if w.w.Provider == "gke" {
		return "us-west4/cluster/default"
	}
	return "us-west4-a"
}

func (w *walk) newLife(s *truth, zone string) {
	w.lives++
	s.life = events.Incarnation{Zone: zone, ID: fmt.Sprint(7700 + w.lives), Created: w.now}
	s.maker = ""
}

// reading is a true reading of a slice.
func (w *walk) reading(name string) evidence.Read {
	s := w.cloud[name]
	return evidence.Read{
		Origin: evidence.Origin{ID: "read", Time: w.now, Rank: events.RankReading}, Slice: name, Zone: s.life.Zone, Condition: s.condition,
		Incarnation: s.life, State: strings.ToUpper(string(s.condition)), Incident: s.maker, Facts: s.facts, Directory: "gs://ckpt/llama-8b",
	}
}

func (w *walk) pick() string { return w.names[w.rand.IntN(len(w.names))] }

// step lets some time pass, lets something happen, and has somebody learn of it, or of what happened before.
func (w *walk) step() {
	w.now = w.now.Add(time.Duration(w.rand.IntN(w.rand.IntN(3)*900+60)) * time.Second)
	switch w.rand.IntN(12) {
	case 0, 1, 2, 3:
		w.act()
	case 4, 5:
		w.happens()
	case 6, 7:
		name := w.pick()
		w.learn("read "+name, w.reading(name))
	case 8:
		w.advanceSteps()
	case 9:
		w.hearsay()
	case 10:
		w.person()
	case 11:
		if len(w.told) > 0 {
			w.learn("again", w.told[w.rand.IntN(len(w.told))])
		}
	}
	if w.rand.IntN(8) == 0 {
		w.looksAhead()
	}
	if w.rand.IntN(2) == 0 {
		w.learn("tick", evidence.Ticked{Origin: evidence.Origin{Time: w.now, Rank: events.RankReading}})
	}
}

// act has a function begin one of the open requests, and its call answered in some way or not at all.
func (w *walk) act() {
	if len(w.open) == 0 {
		return
	}
	i := w.rand.IntN(len(w.open))
	r := w.open[i]
	w.open = slices.Delete(w.open, i, i+1)
	if _, err := w.w.Fence(r.Pointer(), w.now); err != nil {
		return
	}
	origin := evidence.Origin{Time: w.now, Rank: events.RankReading}
	w.learn("intend "+string(r.Action)+" "+r.Slice, evidence.Intended{Origin: origin, Request: r, RequestID: fmt.Sprint(r.Epoch, r.Action, r.Slice)})
	if x, err := w.w.Fence(r.Pointer(), w.now); err != nil || x.Begun.IsZero() {
		return
	}
	w.now = w.now.Add(time.Duration(w.rand.IntN(60)) * time.Second)
	origin.Time = w.now
	failures := []reason.FailureClass{reason.Transient, reason.Stockout, reason.NotInState, reason.Quota, reason.Permission, reason.WrongZone}
	switch n := w.rand.IntN(10); {
	case n == 0: // the answer is lost, and nobody knows whether the call was made
		if w.rand.IntN(2) == 0 {
			w.does(r)
		}
	case n == 1:
		w.learn("held", evidence.Held{Origin: origin, Request: r, Code: reason.CodePaused, Why: "paused by ann", Begun: true})
	case n < 4:
		f := failures[w.rand.IntN(len(failures))]
		w.learn("fails "+string(f), evidence.Answered{Origin: origin, Request: r, Failure: &evidence.Failure{Class: f, Message: string(f)}})
	default:
		w.does(r)
		w.answer(r, origin)
	}
}

// answer tells what came of a call that was made.
func (w *walk) answer(r events.Request, origin evidence.Origin) {
	switch r.Action {
	case events.ActionVerify:
		found := w.rand.IntN(3) > 0
		w.learn("checked", evidence.Checked{Origin: origin, Request: r, Found: found, Step: w.steps, URI: "gs://ckpt/x", At: w.now, Text: "nothing newer"})
	case events.ActionHear:
		e := evidence.VerdictRead{Origin: origin, Request: r, Attempt: w.w.Training.Attempt}
		if w.rand.IntN(2) == 0 {
			e.Saved, e.SavedAt, e.SavedURI = w.steps, w.now, "gs://ckpt/x"
		}
		if w.rand.IntN(3) == 0 {
			e.Verdict = &events.CrewVerdict{Schema: 1, Attempt: w.w.Training.Attempt, Ended: w.now}
		}
		w.learn("verdict", e)
	case events.ActionSave:
		w.learn("delivered", evidence.Answered{Origin: origin, Request: r})
		if w.rand.IntN(3) > 0 && w.w.Incident != nil {
			w.crew(w.names[0], events.CrewReport{Report: events.ReportSaved, SaveID: w.w.Incident.SaveID(), CheckpointStep: w.steps})
		}
	default:
		w.learn("accepted", evidence.Answered{Origin: origin, Request: r, Operation: "operation-" + fmt.Sprint(r.Epoch)})
	}
}

// does makes a call's work true.
func (w *walk) does(r events.Request) {
	x, err := w.w.Fence(r.Pointer(), w.now)
	if err != nil {
		return
	}
	for _, name := range append([]string{x.Slice}, x.With...) {
		s := w.cloud[name]
		switch r.Action {
		case events.ActionDelete:
			if s.condition != evidence.Gone {
				s.condition = evidence.Gone
			}
		case events.ActionCreate:
			if s.condition == evidence.Gone {
				w.newLife(s, x.Zone)
				s.condition, s.maker = evidence.Creating, r.Incident
			}
		case events.ActionStart:
			s.condition = evidence.Ready
		default:
		}
	}
}

// happens changes the cloud.
func (w *walk) happens() {
	s := w.cloud[w.pick()]
	switch c := s.condition; w.rand.IntN(8) {
	case 0, 1:
		if c == evidence.Ready || c == evidence.Unhealthy {
			s.condition = evidence.Lost
		}
	case 2:
		if c == evidence.Ready {
			s.condition = []evidence.Condition{evidence.Unhealthy, evidence.Unclear, evidence.Stopped, evidence.Done}[w.rand.IntN(4)]
		}
	case 3:
		s.condition = evidence.Gone
	default:
		if c == evidence.Creating || c == evidence.Unhealthy || c == evidence.Unclear {
			s.condition = evidence.Ready
		}
	}
}

// advanceSteps has the training do steps if it can, and its crew tell of them.
func (w *walk) advanceSteps() {
	for _, s := range w.cloud {
		if s.condition != evidence.Ready {
			return
		}
	}
	w.steps += int64(w.rand.IntN(500))
	w.crew(w.names[0], events.CrewReport{Report: events.ReportProgress, Attempt: max(1, w.w.Training.Attempt), Step: w.steps, CheckpointStep: w.steps / 1000 * 1000})
}

// crew has a crew write a line.
func (w *walk) crew(name string, r events.CrewReport) {
	s := w.cloud[name]
	r.Schema, r.Zone, r.Node, r.Hostname = 1, s.life.Zone, name, "t1v-n-"+s.life.ID+"-w-0"
	if w.w.Provider == "gke" {
		r.Life = s.life.ID
	}
	at := w.now.Add(-time.Duration(w.rand.IntN(3)*w.rand.IntN(300)) * time.Second)
	w.learn("line "+string(r.Report), evidence.Reported{Origin: evidence.Origin{ID: fmt.Sprint("line", len(w.told)), Time: at, Rank: events.RankUser}, Slice: name, Report: r})
}

// hearsay is what logs tell: true or not, and late.
func (w *walk) hearsay() {
	name := w.pick()
	s := w.cloud[name]
	at := evidence.Origin{ID: "entry", Time: w.now.Add(-time.Duration(w.rand.IntN(1500)) * time.Second), Rank: events.RankAudit}
	window := w.now.Add(time.Duration(w.rand.IntN(7200)) * time.Second)
	status := []events.NoticeStatus{events.NoticePending, events.NoticePending, events.NoticeOngoing, events.NoticeGone}[w.rand.IntN(4)]
	acts := []events.Act{events.ActDeleted, events.ActStopped, events.ActStarted, events.ActCreated}
	causes := []events.Cause{events.CausePreemption, events.CauseHostError, events.CauseTerminated, events.CauseGuest, events.CauseUnknown}
	switch w.rand.IntN(7) {
	case 0, 1:
		w.learn("interrupted "+name, evidence.Interrupted{Origin: at, Slice: name, Incarnation: s.life, Cause: causes[w.rand.IntN(len(causes))], Text: "it was interrupted"})
	case 2:
		w.learn("notice "+name, evidence.Noticed{Origin: at, Slice: name, Incarnation: s.life, Text: "maintenance", InAPI: w.rand.IntN(2) == 0, Notice: events.Notice{
			Status: status, CanReschedule: w.rand.IntN(2) == 0, WindowStart: window, WindowEnd: window.Add(4 * time.Hour),
		}})
	case 3:
		if w.rand.IntN(3) == 0 {
			w.learn("called "+name, evidence.Called{Origin: at, Slice: name, Zone: s.life.Zone, Act: acts[w.rand.IntN(4)], Method: "m", Principal: "bob@example.com", Whole: w.rand.IntN(2) == 0})
		}
	case 4:
		w.learn("unsaid "+name, evidence.Unsaid{Origin: evidence.Origin{Time: w.now, Rank: events.RankReading}, Slice: name, Incarnation: s.life})
	case 5:
		w.crew(name, events.CrewReport{Report: events.ReportExited, Attempt: max(1, w.w.Training.Attempt), ExitCode: 1})
	case 6:
		w.crew(name, events.CrewReport{Report: []events.Report{events.ReportGaveUp, events.ReportFinished}[w.rand.IntN(2)], Attempt: max(1, w.w.Training.Attempt)})
	}
}

// person has somebody give an order.
func (w *walk) person() {
	by, at := evidence.Word{By: "ann@example.com", Why: "it is mended"}, evidence.Origin{Time: w.now, Rank: events.RankReading}
	if in := w.w.Incident; in != nil && in.Status.Asks != "" && w.rand.IntN(3) > 0 {
		w.learn("approve", evidence.Approved{Origin: at, Word: by, Incident: in.ID, Action: in.Status.Asks})
		return
	}
	switch w.rand.IntN(8) {
	case 0:
		if in := w.w.Incident; in != nil {
			w.learn("cancel", evidence.Cancelled{Origin: at, Word: by, Incident: in.ID})
		}
	case 1:
		w.learn("retry", evidence.Retried{Origin: at, Word: by})
	case 2:
		w.learn("pause", evidence.Paused{Origin: at, Word: by})
	case 3:
		w.learn("resume", evidence.Paused{Origin: at, Word: by, Lift: true})
	}
}
