package incident_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// hanging is a failed Job that Pitstop has deleted, and whose last Pod hangs on a machine that does not answer.
type hanging struct{ *job }

func hangs(t *testing.T, p policy.Policy) hanging {
	t.Helper()
	h := hanging{newJob(t, p)}
	h.w.Directory = "gs://ckpt/llama"
	if asked := h.fails(events.CauseTerminated); asked != "delete llama-8b" {
		t.Fatalf("it has failed, and %q is asked for", asked)
	}
	h.call(events.ActionDelete)
	return h
}

// shows is a reading of what is left of the Job, which hangs since then. It returns what the reading and the tick after it ask for.
func (h hanging) shows(since time.Time) string {
	e := found(h.w, incident.Deleting, "deleting: its Pod llama-8b-0 of the former Job has not ended", h.now.Add(time.Minute))
	e.Facts, e.Hung = incident.Facts{}, since
	return h.learns(e) + h.learns(incident.Ticked{})
}

// effect is the release that is wanted; nil where none is.
func (h hanging) effect() *incident.Effect {
	i := slices.IndexFunc(h.w.Effects, func(e incident.Effect) bool { return e.Action == events.ActionRelease })
	if i < 0 {
		return nil
	}
	return &h.w.Effects[i]
}

// does has recovery make the call that is asked for.
func (h hanging) does(f *incident.Failure) string {
	h.Helper()
	e := h.effect()
	r := events.Request{Schema: events.Schema, Workload: h.w.ID, Incident: h.w.Incident.ID, Epoch: e.Epoch, Action: e.Action, Attempt: e.Attempt, Slice: e.Slice}
	return h.learns(incident.Intended{Request: r, RequestID: "r-" + h.now.String()}) + h.learns(incident.Answered{Request: r, Text: "said", Failure: f})
}

// TestAHungPodIsReleasedSixMinutesAfterTheLease: the lease first, and what it no longer names once it must have ended.
func TestAHungPodIsReleasedSixMinutesAfterTheLease(t *testing.T) {
	h := hangs(t, policies["everything"])
	since := h.now
	if asked := h.shows(since); asked != "release" {
		t.Fatalf("it hangs, and %q is asked for: %s", asked, stands(h.w, nil))
	}
	r, is := h.w.Request(*h.effect()).(events.RecoveryRequested)
	if !is || !r.Unleased.IsZero() || r.Directory != h.w.Directory || r.Slice != "llama-8b" || r.Validate() != nil {
		t.Errorf("the request is %+v, %v", r, r.Validate())
	}
	if asked := h.does(nil); asked != "" {
		t.Errorf("the lease was written, and %q is asked for", asked)
	}
	written := h.now
	if s := h.w.Slices[0]; s.Admitted().Known() || h.w.Crew.LeaseAttempt == 0 {
		t.Errorf("training may still run in %+v, by lease attempt %d", s.Admitted(), h.w.Crew.LeaseAttempt)
	}
	asked := ""
	for asked == "" && h.now.Sub(written) < time.Hour {
		asked = h.shows(since)
	}
	if waited := h.now.Sub(written); asked != "release" || waited < incident.TakeOverFor || waited > incident.TakeOverFor+3*time.Minute {
		t.Fatalf("after %s %q is asked for", waited, asked)
	}
	if r, is = h.w.Request(*h.effect()).(events.RecoveryRequested); !is || !r.Unleased.Equal(written) {
		t.Errorf("the second request is %+v, and the lease was written at %s", r, written)
	}
	h.does(nil)
	if asked := h.shows(since); asked != "" {
		t.Errorf("it was released, and %q is asked for", asked)
	}
	if asked := h.learns(found(h.w, incident.Gone, "gone", h.now.Add(time.Minute))); asked != "create llama-8b" || h.effect() != nil {
		t.Errorf("it is gone, and %q is asked for: %+v", asked, h.effect())
	}
	if told := tale(h.w); strings.Contains(told, "proven gone") || !strings.Contains(told, "the old one was ended unheard, after") {
		t.Errorf("it says %s", told)
	}
}

// TestWhatIsNotReleased: without leave, a lease or a deletion of Pitstop's own, or while something may end it by itself.
func TestWhatIsNotReleased(t *testing.T) {
	for name, c := range map[string]struct {
		change func(h hanging)
		since  time.Time
	}{
		"it does not hang":             {func(hanging) {}, time.Time{}},
		"no directory has a lease":     {func(h hanging) { h.w.Directory = "" }, start},
		"the switch is no":             {func(h hanging) { h.p.Switches.Release = policy.No }, start},
		"the switch is ask":            {func(h hanging) { h.p.Switches.Release = policy.Ask }, start},
		"the switch was no":            {func(h hanging) { h.w.Incident.Switches.Release = policy.No }, start},
		"the policy cannot be read":    {func(h hanging) { h.p.Unreadable = "away" }, start},
		"the deletion is not answered": {func(h hanging) { h.w.Effects[0].Answered = time.Time{} }, start},
		"it is not replaced":           {func(h hanging) { h.w.Slices[0].ToReplace = false }, start},
		"a person hears of it soon":    {func(h hanging) { h.w.Incident.Deadline = h.now.Add(incident.TakeOverFor + incident.CheckFor) }, start},
	} {
		h := hangs(t, policies["everything"])
		c.change(h)
		for range 3 {
			if asked := h.shows(c.since); asked != "" {
				t.Errorf("%s: %q is asked for", name, asked)
			}
		}
	}
}

// TestAReleaseBeginsAnewWhereItHungAgain: the machine has answered meanwhile, and may have read another lease.
func TestAReleaseBeginsAnewWhereItHungAgain(t *testing.T) {
	h := hangs(t, policies["everything"])
	h.shows(h.now)
	h.does(nil)
	if asked := h.shows(time.Time{}); asked != "" || h.effect() != nil {
		t.Fatalf("its machine answers, and %q is asked for: %+v", asked, h.effect())
	}
	if asked := h.shows(h.now); asked != "release" || !h.effect().By.IsZero() {
		t.Errorf("it hangs again, and %q is asked for: %+v", asked, h.effect())
	}
}

// TestWhatWasEndedUnheardIsNotProvenGone: one Pod of two was, and the other has ended by itself since.
func TestWhatWasEndedUnheardIsNotProvenGone(t *testing.T) {
	h := hangs(t, policies["everything"])
	since := h.now
	h.shows(since)
	h.does(nil)
	for asked := ""; asked == ""; {
		asked = h.shows(since)
	}
	e := h.effect()
	r := events.Request{Schema: events.Schema, Workload: h.w.ID, Incident: h.w.Incident.ID, Epoch: e.Epoch, Action: e.Action, Attempt: e.Attempt, Slice: e.Slice}
	h.learns(incident.Intended{Request: r, RequestID: "r", Parts: []string{"a", "b", "c"}})
	h.learns(incident.Answered{
		Request: r, Text: "said", Failure: &incident.Failure{Class: incident.NotInState}, Failed: map[string]incident.Code{"b": incident.NotInState.Code()}, NotMade: []string{"c"},
	})
	var all []string
	for _, c := range h.w.Incident.Calls {
		if c.Action == events.ActionRelease && c.RequestID == "r" {
			all = append(all, fmt.Sprintf("%s %t %s", c.What(), c.NotMade, c.Code))
		}
	}
	const pods = "io.k8s.core.v1.pods.delete projects/demo/locations/us-west4-a/pods/"
	if want := []string{pods + "a false ", pods + "b false not_in_state", pods + "c true not_in_state"}; !slices.Equal(all, want) {
		t.Errorf("the record has %q, want %q", all, want)
	}
	if h.learns(found(h.w, incident.Gone, "gone", h.now.Add(time.Minute))); !strings.Contains(tale(h.w), "the old one was ended unheard") {
		t.Errorf("it says %s", tale(h.w))
	}
}

// TestARefusedReleaseIsLeftToAPerson: what passes is tried again, and what does not goes the way of a deletion that does not end.
func TestARefusedReleaseIsLeftToAPerson(t *testing.T) {
	for class, again := range map[incident.FailureClass]bool{
		incident.Transient: true, incident.Busy: true, incident.NotInState: false, incident.Permission: false, incident.Invalid: false,
	} {
		h := hangs(t, policies["everything"])
		since := h.now
		h.shows(since)
		h.does(&incident.Failure{Class: class, Code: incident.CodeNotReleased, Message: "why"})
		asked := ""
		for h.w.Incident != nil && h.now.Before(start.Add(2*time.Hour)) {
			asked += h.shows(since)
		}
		if c := h.w.Closed; c == nil || c.Outcome != incident.Escalated || strings.Contains(asked, "release") != again || strings.Contains(asked, "create") {
			t.Errorf("%s: %q is asked for: %s", class, asked, tale(h.w))
		}
	}
}

// TestALeftReleaseLeavesTheSliceWithoutALease: its owner's next Job needs one that names it.
func TestALeftReleaseLeavesTheSliceWithoutALease(t *testing.T) {
	h := hangs(t, policies["everything"])
	h.shows(h.now)
	h.does(nil)
	h.p.Switches.Release = policy.No
	for h.w.Incident != nil {
		h.shows(start)
	}
	e := found(h.w, incident.Ready, "ready", h.now.Add(time.Minute))
	e.Incarnation = events.Incarnation{Zone: e.Zone, ID: "uid-9", Created: h.now}
	asked := h.learns(e)
	for range 60 {
		asked += h.learns(incident.Ticked{})
	}
	if !strings.HasPrefix(asked, "admit") {
		t.Errorf("its owner has made it anew, and %q is asked for: %s", asked, stands(h.w, nil))
	}
}

// TestAFailureThatHangsIsReleased: the Job has failed, and says so only once its last Pod has ended.
func TestAFailureThatHangsIsReleased(t *testing.T) {
	for name, c := range map[string]struct {
		change func(e *incident.Read)
		want   string
	}{
		"a Job":                           {func(*incident.Read) {}, "release"},
		"a Job that does not hang":        {func(e *incident.Read) { e.Hung = time.Time{} }, ""},
		"a slice of a JobSet":             {func(e *incident.Read) { e.Facts.Group = "llama" }, ""},
		"a Job that its owner replaces":   {func(e *incident.Read) { e.Facts.Kept = "Kueue has it in the queue teams" }, ""},
		"a Job that somebody is deleting": {func(e *incident.Read) { e.Condition = incident.Deleting }, ""},
	} {
		j := newJob(t, policies["everything"])
		h := hanging{j}
		j.w.Directory = "gs://ckpt/llama"
		reads := func(change func(e *incident.Read)) string {
			e := found(j.w, incident.Unhealthy, "unhealthy: the Job has failed, and waits for Pods that have not ended", j.now.Add(time.Minute))
			e.Facts.Healing, e.Hung = incident.HealsNever, start
			change(&e)
			return j.learns(e) + j.learns(incident.Ticked{})
		}
		asked := ""
		for range 5 {
			asked += reads(func(e *incident.Read) { e.Hung = time.Time{} })
		}
		if j.w.Incident == nil || j.w.Incident.Phase != incident.Healing || asked != "" {
			t.Fatalf("%s: it cannot be used, and %q is asked for: %s", name, asked, stands(j.w, nil))
		}
		if asked = reads(c.change); asked != c.want {
			t.Errorf("%s: %q is asked for, want %q: %s", name, asked, c.want, stands(j.w, nil))
		}
		if c.want == "" {
			continue
		}
		h.does(nil)
		for asked = ""; asked == ""; {
			asked = reads(c.change)
		}
		h.does(nil)
		if asked = j.fails(events.CauseTerminated); asked != "delete llama-8b" || h.effect() != nil {
			t.Errorf("%s: it has failed, and %q is asked for", name, asked)
		}
	}
}

// TestAFailureThatHangsWaitsForLeaveToReplaceIt: it may train and save, and nobody else would.
func TestAFailureThatHangsWaitsForLeaveToReplaceIt(t *testing.T) {
	for name, c := range map[string]struct {
		change func(j *job)
		want   string
	}{
		"every switch is yes":                {func(*job) {}, "release"},
		"the switch for Spot is no":          {func(j *job) { j.p.Switches.Recreate = policy.No }, "release"},
		"the switch is no":                   {func(j *job) { j.p.Switches.RecreateNonSpot = policy.No }, ""},
		"the switch is ask":                  {func(j *job) { j.p.Switches.RecreateNonSpot = policy.Ask }, ""},
		"the replacements are spent":         {func(j *job) { j.w.Budgets.Recreates = incident.MaxRecreates }, ""},
		"its specification was never read":   {func(j *job) { j.w.Slices[0].Spec = "" }, ""},
		"the switch was no at its beginning": {func(j *job) { j.w.Incident.Switches.RecreateNonSpot = policy.No }, ""},
	} {
		j := newJob(t, policies["everything"])
		j.w.Directory = "gs://ckpt/llama"
		reads := func(hung time.Time) string {
			e := found(j.w, incident.Unhealthy, "unhealthy: the Job has failed, and waits for Pods that have not ended", j.now.Add(time.Minute))
			e.Facts.Healing, e.Hung = incident.HealsNever, hung
			return j.learns(e) + j.learns(incident.Ticked{})
		}
		for range 5 {
			reads(time.Time{})
		}
		c.change(j)
		asked := ""
		for range 3 {
			asked += reads(start)
		}
		if asked != c.want {
			t.Errorf("%s: %q is asked for, want %q: %s", name, asked, c.want, stands(j.w, nil))
		}
	}
}

// TestALineOfAReleasedCrewLetsNobodyTrain: it was written before the crew read the lease, or comes late. The Job that its owner makes
// next is let in by a lease of its own.
func TestALineOfAReleasedCrewLetsNobodyTrain(t *testing.T) {
	for _, suspended := range []bool{false, true} {
		j := newJob(t, policies["everything"])
		h := hanging{j}
		j.w.Directory = "gs://ckpt/llama"
		fails := func(hung time.Time) string {
			e := found(j.w, incident.Unhealthy, "unhealthy: the Job has failed, and waits for Pods that have not ended", j.now.Add(time.Minute))
			e.Facts.Healing, e.Hung = incident.HealsNever, hung
			return j.learns(e) + j.learns(incident.Ticked{})
		}
		for range 5 {
			fails(time.Time{})
		}
		if asked := fails(start); asked != "release" {
			t.Fatalf("%q is asked for: %s", asked, stands(j.w, nil))
		}
		h.does(nil)
		if suspended {
			j.learns(incident.Called{Origin: incident.Origin{ID: "stop", Time: j.now, Rank: events.RankAudit}, Slice: "llama-8b", Act: events.ActStopped, Method: "jobs.patch", Principal: "ann@example.com"})
			j.learns(found(j.w, incident.Stopped, "suspended", j.now.Add(time.Minute)))
		} else {
			fails(time.Time{}) // its machine answers again
		}
		for _, attempt := range []int{1, 2, 50} {
			j.says(j.w.Slices[0].Incarnation.ID, events.ReportProgress, func(r *events.CrewReport) { r.Attempt, r.Step = attempt, j.w.Progress.High+1000 })
		}
		if s := j.w.Slices[0]; s.Admitted().Known() {
			t.Errorf("a line has let it in again: %+v", s)
		}
		j.p.Switches.Recreate, j.p.Switches.RecreateNonSpot = policy.No, policy.No
		if j.fails(events.CauseTerminated); j.w.Incident != nil {
			t.Fatalf("it is a person's: %s", stands(j.w, nil))
		}
		e := found(j.w, incident.Ready, "ready", j.now.Add(time.Minute))
		e.Incarnation = events.Incarnation{Zone: e.Zone, ID: "uid-9", Created: j.now}
		asked := j.learns(e)
		for range 60 {
			asked += j.learns(incident.Ticked{})
		}
		if !strings.HasPrefix(asked, "admit") {
			t.Errorf("its owner has made it anew, and %q is asked for: %s", asked, stands(j.w, nil))
		}
	}
}

// TestAReleaseIsRehearsed: where nothing is allowed, the record has the calls that it would be, whether the Job hung before its incident
// opened or later.
func TestAReleaseIsRehearsed(t *testing.T) {
	const at = "projects/demo/locations/us-west4-a/jobs/llama-8b"
	released := []string{
		"storage.objects.create gs://ckpt/llama/pitstop-lease.json, if pitcrew is the command of its Pods (release)",
		"io.k8s.core.v1.pods.delete " + at + ", 6 m 0 s later (release)",
		"io.k8s.batch.v1.jobs.delete " + at + " (recreate_non_spot)",
		"io.k8s.batch.v1.jobs.create " + at + " (recreate_non_spot)",
		"storage.objects.create gs://ckpt/llama/pitstop-lease.json",
	}
	for name, c := range map[string]struct {
		hung   int // the reading that first shows it
		change func(w *incident.Workload)
		want   bool
	}{
		"it hung before":               {0, func(*incident.Workload) {}, true},
		"it hangs later":               {8, func(*incident.Workload) {}, true},
		"it never hangs":               {99, func(*incident.Workload) {}, false},
		"no directory has a lease":     {0, func(w *incident.Workload) { w.Directory = "" }, false},
		"nobody may make it once more": {0, func(w *incident.Workload) { w.Slices[0].Spec = "" }, false},
	} {
		j := newJob(t, policies["watch"])
		j.w.Directory = "gs://ckpt/llama"
		c.change(&j.w)
		for n := range 12 {
			e := found(j.w, incident.Unhealthy, "unhealthy: the Job has failed, and waits for Pods that have not ended", j.now.Add(time.Minute))
			e.Facts.Healing = incident.HealsNever
			if n >= c.hung {
				e.Hung = start
			}
			if asked := j.learns(e) + j.learns(incident.Ticked{}); asked != "" {
				t.Errorf("%s: %q is asked for", name, asked)
			}
		}
		if j.w.Incident == nil {
			t.Errorf("%s: it is not watched", name)
		} else if would := j.w.Incident.WouldHave(); slices.Equal(would[max(0, len(would)-len(released)):], released) != c.want {
			t.Errorf("%s: would have %s", name, strings.Join(would, "\n"))
		}
	}
}
