package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// TestALateSaveIsNotThrownAway: a checkpoint that is complete behind the deadline and before the maintenance is as good as one
// in time, and so is one whose verification took too long.
func TestALateSaveIsNotThrownAway(t *testing.T) {
	for _, path := range []string{
		"ongoing, do, later, tick, saved, found verify 0",
		"ongoing, do, later, tick, saved, do, torn verify 0, a minute, tick, found verify 0",
		"ongoing, do, saved, later, tick, found verify 0",
		"ongoing, do, saved, do, torn verify 0, later, tick, found verify 0",
	} {
		w := drive(t, path).w
		switch in := w.Incident; {
		case in == nil || in.Phase != incident.Window:
			t.Errorf("%s: it waits for %+v, not for the window", path, in)
		case !in.Save.Verified || in.Baseline != 48200 || w.Progress.Verified != 48200 || len(w.Effects) != 0:
			t.Errorf("%s: verified %v, baseline %d, %d is the last verified, effects %+v", path, in.Save.Verified, in.Baseline, w.Progress.Verified, w.Effects)
		}
	}
}

// TestALateSaveThatIsTornIsNotLookedForForEver, and it costs nobody a call at night: the maintenance comes all the same.
func TestALateSaveThatIsTornIsNotLookedForForEver(t *testing.T) {
	n := drive(t, "ongoing, do, later, tick, saved")
	looked := 0
	for range 120 {
		n.now = n.now.Add(time.Minute)
		n.w, _, _ = tick(policies["spot"], n.w, n.now)
		if e, ok := evidence(n.w, n.now)["torn verify 0"]; ok && n.w.Effects[0].Retry.IsZero() {
			n.w, _, _ = advance(policies["spot"], n.w, e, n.now)
			looked++
		}
	}
	in := n.w.Incident
	most := either(incident.MaxFailures, int(bounds.CheckFor/bounds.LookEvery), "by time")
	if in == nil || in.Phase != incident.Window || len(n.w.Effects) != 0 || looked > most || !strings.HasSuffix(in.Save.Failed, "no commit marker") {
		t.Errorf("after two hours it was looked for %d times: %+v", looked, in)
	}
}

// TestEverySaveHasItsOutcome, one for each way in which it may end.
func TestEverySaveHasItsOutcome(t *testing.T) {
	denied := policies["everything"]
	denied.Switches.RequestCheckpoint = policy.No
	for path, c := range map[string]struct {
		policy policy.Policy
		but    func(*incident.Workload)
		want   incident.SaveResult
	}{
		"ongoing, do, saved, do, found verify 0":                     {policies["spot"], nil, incident.SaveVerified},
		"ongoing, do, later, tick, saved, found verify 0":            {policies["spot"], nil, either(incident.SaveLate, incident.SaveVerified, "complete")},
		"ongoing, do, saved, do, stale verify 0, later, tick":        {policies["spot"], nil, either(incident.SaveStale, incident.SaveIncomplete, "stale")},
		"ongoing, do, saved, do, torn verify 0, later, tick":         {policies["spot"], nil, incident.SaveIncomplete},
		"ongoing, do, saved, do, later, tick":                        {policies["spot"], nil, incident.SaveIncomplete},
		"ongoing, do, saved":                                         {policies["spot"], bare, incident.SaveIncomplete},
		"ongoing, do, later, tick":                                   {policies["spot"], nil, incident.SaveUnanswered},
		"ongoing, do, refused":                                       {policies["spot"], nil, incident.SaveRefused},
		"ongoing, intend save 0, permission save 0":                  {policies["spot"], nil, incident.SaveUndelivered},
		"ongoing, intend save 0, transient save 0, later, tick":      {policies["spot"], nil, incident.SaveUndelivered},
		"ongoing, later, tick":                                       {policies["spot"], nil, incident.SaveUndelivered},
		"ongoing, tick":                                              {denied, nil, incident.SaveForbidden},
		"ongoing, tick, tick":                                        {policies["spot"], crewless, incident.SaveUnheard},
		"ongoing, do, read unhealthy":                                {policies["spot"], nil, incident.SaveOvertaken},
		"ongoing, do, preempted, read lost":                          {policies["spot"], nil, incident.SaveOvertaken},
		"ongoing, do, saved, later, tick, found verify 0, preempted": {policies["spot"], nil, either(incident.SaveLate, incident.SaveVerified, "complete")},
		either("ongoing, do, finished, sure hear 1", "ongoing, do, finished, its verdict", "on its machine"): {policies["spot"], nil, incident.SaveOvertaken},
		"ongoing, do, saved, do, torn verify 0, stopped for, read lost":                                      {policies["spot"], nil, incident.SaveIncomplete},
	} {
		w := quiet(true)
		if c.but != nil {
			c.but(&w)
		}
		n := driveFrom(t, c.policy, w, path)
		in := n.w.Incident
		if in == nil {
			in = n.w.Closed
		}
		if in.Save.Result != c.want || (in.Save.Failed == "") != (c.want == incident.SaveVerified || c.want == incident.SaveLate || c.want == incident.SaveOvertaken) {
			t.Errorf("%s: %q because of %q, want %q", path, in.Save.Result, in.Save.Failed, c.want)
		}
	}
}

// TestWhatIsKnownOfASaveIsKept: how large the checkpoint is, and when it was complete.
func TestWhatIsKnownOfASaveIsKept(t *testing.T) {
	n := drive(t, "ongoing, do, saved, do, found verify 0")
	in, p := n.w.Incident, n.w.Progress
	if in.Save.Bytes != 3<<30 || !in.Save.At.Equal(p.VerifiedAt) || p.VerifiedBytes != 3<<30 {
		t.Errorf("save %+v, progress %+v", in.Save, p)
	}
	if l := in.Timeline[len(in.Timeline)-2]; l.Text != "checkpoint 48,200 is complete: 3.0 GiB or more, 20 s old" {
		t.Errorf("told %q", l.Text)
	}
}

// drive plays a path of a workload in peace.
func drive(t *testing.T, path string) node {
	t.Helper()
	return driveFrom(t, policies["spot"], quiet(true), path)
}

func driveFrom(t *testing.T, p policy.Policy, w incident.Workload, path string) node {
	t.Helper()
	n := node{w: w, now: start, path: "peace"}
	for what := range strings.SplitSeq(path, ", ") {
		if _, ok := evidenceOfBoth(n.w, n.now)[n.w.Slices[0].Name+" "+what]; ok && what != "tick" {
			what = n.w.Slices[0].Name + " " + what
		}
		n, _ = play(t, p, n, what)
	}
	return n
}
