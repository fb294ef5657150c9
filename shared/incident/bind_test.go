package incident_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
)

// succeeded is a workload whose slice was gone five seconds after the start, and whose owner made it again five seconds later, as is read then.
func succeeded(t *testing.T, inPods bool) (n *story, read func()) {
	n = newStory(t, true, "llama-8b")
	if inPods {
		n = newJob(t)
	}
	n.later(5*time.Second).reads("llama-8b", evidence.Gone).now = start.Add(time.Minute)
	return n, func() {
		n.reads("llama-8b", evidence.Ready, func(e *evidence.Read) {
			e.Incarnation = events.Incarnation{Zone: e.Zone, ID: "7712", Created: start.Add(10 * time.Second)}
		})
		if !inPods {
			n.play("mapped")
		}
		n.binds()
	}
}

// TestALineCountsForTheLifeThatWroteIt, whichever of the two is read first. The life that a line in a Pod names counts, whatever its time says.
func TestALineCountsForTheLifeThatWroteIt(t *testing.T) {
	t.Parallel()
	const former, next = "t1v-n-3f2a9c00-w-0", "t1v-n-00000002-w-0"
	for name, c := range map[string]struct {
		host, pod string
		at        time.Duration
		before    bool // it comes before the next life is read
		counts    bool
		kept      bool
	}{
		"of the new life, before it is read":                          {host: next, at: 20 * time.Second, before: true, counts: true},
		"of the new life, after it is read":                           {host: next, at: 20 * time.Second, counts: true},
		"of the former life, late":                                    {host: former, at: time.Second, counts: true},
		"of the former life, written after its end":                   {host: former, at: 20 * time.Second},
		"of the former life, after its end, before the new one":       {host: former, at: 20 * time.Second, before: true},
		"of workers that nobody knows":                                {host: "t1v-n-ffffffff-w-0", at: 20 * time.Second, before: true, kept: true},
		"on a host of no slice's, of the former life's time":          {host: "vm-w-0", at: time.Second, counts: true},
		"on a host of no slice's, from between two lives":             {host: "vm-w-0", at: 7 * time.Second, before: true},
		"in a Pod of the new life, before it is read":                 {pod: "7712", at: 20 * time.Second, before: true, counts: true},
		"in a Pod of the new life, after it is read":                  {pod: "7712", at: 20 * time.Second, counts: true},
		"in a Pod of the new life, by a clock that is behind":         {pod: "7712", at: 8 * time.Second, counts: true},
		"in a Pod of the former life, late":                           {pod: "7711", at: time.Second, counts: true},
		"in a Pod of the former life, written after its end":          {pod: "7711", at: 20 * time.Second},
		"in a Pod of the former life, after its end, before the next": {pod: "7711", at: 20 * time.Second, before: true},
		"in a Pod of a life that nobody knows":                        {pod: "9999", at: 20 * time.Second, kept: true},
		"in a Pod of which it does not tell":                          {pod: "none", at: 20 * time.Second, kept: true},
	} {
		n, read := succeeded(t, c.pod != "")
		r := events.CrewReport{Report: events.ReportProgress, Hostname: c.host, Life: c.pod, Attempt: 2, Step: 50_000, CheckpointStep: 49_900}
		if c.pod != "" {
			r.Hostname, r.Life = "llama-8b-0", strings.TrimPrefix(r.Life, "none")
		}
		if !c.before {
			read()
		}
		if n.wrote(start.Add(c.at), "llama-8b", r); c.before {
			if n.w.Training.Step == 50_000 {
				t.Errorf("%s: it counts before anybody knows whose it is", name)
			}
			read()
		}
		if got := n.w.Training.Step == 50_000 && n.w.Training.Attempt == 2; got != c.counts {
			t.Errorf("%s: it counts: %v, known is %+v", name, got, n.w.Training)
		}
		if kept := len(n.w.Unbound) > 0; kept != c.kept {
			t.Errorf("%s: it is kept: %v", name, kept)
		}
	}
}

// TestALineOfAnotherTrainingIsLeft: attempts begin anew with another directory. On a live node the crew begins that training before it is read.
func TestALineOfAnotherTrainingIsLeft(t *testing.T) {
	t.Parallel()
	for _, lives := range []bool{false, true} {
		n := newStory(t, true, "llama-8b").later(time.Minute).reads("llama-8b", evidence.Ready, func(e *evidence.Read) {
			if e.Directory = "gs://ckpt/another"; !lives {
				e.Incarnation = events.Incarnation{Zone: e.Zone, ID: "7712", Created: start}
			}
		})
		line := events.CrewReport{Report: events.ReportProgress, Attempt: 2, Step: 50_000, Hostname: "t1v-n-3f2a9c00-w-0"}
		if n.wrote(start.Add(-time.Second), "llama-8b", line); (n.w.Training.Attempt == 2) != lives {
			t.Errorf("it lives on %v: known is attempt %d, step %d", lives, n.w.Training.Attempt, n.w.Training.Step)
		}
		if !lives {
			line.Hostname = "t1v-n-00000002-w-0"
			n.play("mapped")
		}
		if n.wrote(start.Add(time.Second), "llama-8b", line); n.w.Training.Step != 50_000 {
			t.Errorf("it lives on %v: what the new one writes does not count", lives)
		}
	}
}

// TestADeadCrewsLinesLeaveRoomForTheNextOnes: those of a life that is over are bound to none, and what is kept of a line is short.
func TestADeadCrewsLinesLeaveRoomForTheNextOnes(t *testing.T) {
	t.Parallel()
	n, read := succeeded(t, false)
	for i := range 40 {
		n.wrote(start.Add(time.Duration(10+i)*time.Second), "llama-8b", events.CrewReport{
			Report: events.ReportProgress, Attempt: 2, Reason: strings.Repeat("reason ", 5000), Tail: []string{strings.Repeat("x", 100_000), "the last word", " "},
		})
	}
	last := n.w.Unbound[len(n.w.Unbound)-1]
	if r := last.Report(); len(n.w.Unbound) != 16 || len(r.Reason) > 200 || len(r.Tail) != 1 || r.Tail[0] != "the last word" || !last.Time.Equal(start.Add(49*time.Second)) {
		t.Errorf("%d lines are kept; of %s, %d bytes of a reason, and %q", len(n.w.Unbound), last.Time, len(r.Reason), r.Tail)
	}
	n.wrote(start.Add(50*time.Second), "llama-8b", events.CrewReport{Report: events.ReportProgress, Attempt: 2, Hostname: "t1v-n-00000002-w-0"})
	if read(); n.w.Training.Attempt != 2 || len(n.w.Unbound) != 0 {
		t.Errorf("attempt %d, and %d lines are kept still", n.w.Training.Attempt, len(n.w.Unbound))
	}
}

// TestTheWorkerThatFailedFirstIsTheCause, whichever tells of it first.
func TestTheWorkerThatFailedFirstIsTheCause(t *testing.T) {
	t.Parallel()
	for _, order := range [][2]int{{139, 1}, {1, 139}} {
		n := newStory(t, true, "llama-8b").later(10 * time.Minute)
		for _, code := range order {
			n.wrote(start.Add(time.Duration(140-code)*time.Second), "llama-8b", events.CrewReport{Report: events.ReportExited, Attempt: 2, Step: 50_000, ExitCode: code})
		}
		if n.w.Training.Exit.Sign != "exit code 139" || n.w.Incident == nil || len(n.w.Incident.Troubles) != 1 {
			t.Errorf("told in the order %v, the training ended by %q:\n%s", order, n.w.Training.Exit.Sign, n.tale())
		}
	}
}

// TestADeletionToldLateTakesNothingBack: its owner has ordered the queued resource again before anybody heard that they had deleted it.
func TestADeletionToldLateTakesNothingBack(t *testing.T) {
	t.Parallel()
	n := newStory(t, true, "llama-8b")
	n.now = start.Add(20 * time.Minute)
	n.give(evidence.Called{Origin: evidence.Origin{ID: "d", Time: start, Rank: events.RankAudit}, Slice: "llama-8b", Zone: "us-west4-a", Act: events.ActDeleted, Principal: ann.By})
	n.reads("llama-8b", evidence.Creating, func(e *evidence.Read) {
		e.Incarnation, e.Ordered = events.Incarnation{Zone: e.Zone}, start.Add(time.Minute)
	})
	if s := n.w.Slices[0]; s.IsReleased() {
		t.Errorf("released at %s, and ordered again: it is taken for given up", s.Released)
	}
}

// TestANoticeIsNoPartOfATraining: it tells of a machine, also where attempts count anew since; and of none that its owner has deleted.
func TestANoticeIsNoPartOfATraining(t *testing.T) {
	t.Parallel()
	for _, released := range []bool{false, true} {
		n := newStory(t, true, "llama-8b")
		n.now = start.Add(time.Minute)
		if n.w.Training.Since = n.now; released {
			n.w.Slices[0].Released = start
		}
		n.wrote(start, "llama-8b", preempted).opens(!released)
	}
}
