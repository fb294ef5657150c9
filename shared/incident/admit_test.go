package incident_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// led has a lease of Pitstop's, of attempt 3, name the lives that are there.
func led(w *incident.Workload) {
	w.Lease = incident.Lease{Attempt: 3, Sure: incident.Write{At: start.Add(-time.Hour), Attempt: 3}}
	for _, s := range w.Slices {
		w.Lease.Sure.Lives = append(w.Lease.Sure.Lives, events.Admission{Slice: s.Name, Incarnation: s.Incarnation})
	}
	w.Training.Attempt, w.Training.StepAttempt = 3, 3
}

// joins has its owner add the slice c in another zone.
func (n *story) joins() *story {
	n.now = n.now.Add(time.Second)
	life := events.Incarnation{Zone: "us-west4-b", ID: "9001", Created: n.now}
	return n.give(evidence.Read{Origin: n.reading(), Slice: "c", Zone: life.Zone, Condition: evidence.Ready, State: "READY", Incarnation: life})
}

const (
	// restarted has the training of b fail, and begin again by the lease; replaced has b be lost and made again, up to the lease that is to name it.
	restarted = "b exit 139, b gave up, b its verdict, do, b started, b progress, b progress"
	replaced  = "b preempted, b read lost, do, b read gone, do, b read ours, intend admit"
	// moved has its owner make a in another zone.
	moved = "a owner deletes, a read gone, a read elsewhere, 1m"
)

// TestWhatTheLeaseDoesNotNameIsAdmitted: where the lease names the life of another zone, or none, nobody trains until somebody admits what is there.
func TestWhatTheLeaseDoesNotNameIsAdmitted(t *testing.T) {
	t.Parallel()
	const both, remade = "admit a=7712 b=7760", "a owner creates, a read foreign, 1m"
	for name, c := range map[string]struct{ path, want string }{
		"a lease was written while its owner had deleted it":             {"a owner deletes, a read gone, " + restarted + ", " + remade, both},
		"another slice was replaced meanwhile":                           {"a owner deletes, a read gone, " + replaced + ", accepted admit, b started, b progress, " + remade, "admit a=7712 b=7761"},
		"a lease may have been written without it":                       {"a owner deletes, a read gone, b exit 139, b gave up, b its verdict, intend restart, cancelled, b started, " + remade, both},
		"its deletion did not happen, and a lease was written meanwhile": {"a owner deletes, " + restarted + ", 15m, a read ready, 1m", "admit a=7711 b=7760"},
		"its deletion did not happen, and no lease was begun":            {"b exit 139, b gave up, b its verdict, a owner deletes, b started, b progress, b progress, 15m, a read ready, b progress, 1m", ""},
		"the lease names the life before, in its zone":                   {restarted + ", a owner deletes, a read gone, " + remade, ""},
		"another one is made again for another training":                 {"a finished, a its verdict, " + moved + ", b owner deletes, b read gone, b owner creates, b read foreign, 1m", "admit a=7712 b=7761"},
		"its owner deletes another in the middle":                        {moved + ", b owner deletes, b read gone, 5m, b read foreign, 1m", "admit a=7712 b=7761"},
		"its owner keeps another stopped":                                {"b owner stops, b read stopped, " + moved + ", 1h", ""},
		"the policy only watched in the middle":                          {moved + ", under watch, 1h, under everything, 3h, 2m", both},
		"under the first policy that does more than watch":               {"under watch, " + moved + ", 1h, under everything, 2m", both},
		"where only lines tell that its crew has begun":                  {"under watch, " + moved + ", a mapped, a started, a progress, under everything, 2m", both},
		"under watch, when the policy cannot be read for a moment":       {"under watch, " + moved + ", 48h, under unreadable, 1m", ""},
		"nobody has read the end of what its owner deleted":              {"a owner deletes, a read elsewhere, 1m, 6m", both},
		"what its owner deleted may train on":                            {"a owner deletes, a read elsewhere, 1m", ""},
		"the life before was stopped":                                    {"a owner stops, a read stopped, 1h, a read elsewhere, 1m", both},
		"a deletion did not happen while the others are let in":          {"a owner deletes, 15m, " + replaced + ", a read ready, accepted admit", "admit a=7711 b=7761"},
		"it joins while the others are let in":                           {replaced + ", joins, accepted admit", "admit a=7711 b=7761 c=9001"},
		"it joins before their lease is begun":                           {"b preempted, b read lost, do, b read gone, do, b read ours, joins", "admit a=7711 b=7761 c=9001"},
		"it joins what no lease of Pitstop's leads":                      {"no lease, joins, 1m", ""},
		"its deletion did not happen, and no lease is Pitstop's":         {"no lease, a owner deletes, 16m, a read ready, 1m", ""},
		"the lease may name the life of a zone that it has left again": {
			"b preempted, b read lost, do, b read gone, stockout create, 10s, does create, b read ours, intend admit, cancelled, b owner deletes, b read gone, 1h, b read elsewhere, 1m",
			"admit a=7711 b=7762",
		},
	} {
		n, sent := multi(t, true).with(led), []string(nil)
		for step := range strings.SplitSeq(c.path, ", ") {
			switch policy, is := strings.CutPrefix(step, "under "); {
			case is:
				n.under(policy)
			case step == "joins":
				sent = n.joins().sent
			case step == "no lease":
				n.w.Lease = incident.Lease{}
			default:
				sent = n.play(step)
			}
		}
		if got := strings.Join(sent, ", "); got != c.want {
			t.Errorf("%s: asked for is %q, want %q:\n%s", name, got, c.want, n.tale())
		}
	}
}

// joined is a Multislice, led by a lease of attempt 3, with a slice that its owner has added in another zone: its admission is asked for.
func joined(t *testing.T) *story {
	t.Helper()
	n := multi(t, true).with(led).joins()
	if sent := n.play("2m"); !slices.Equal(sent, []string{"admit a=7711 b=7760 c=9001"}) {
		t.Fatalf("asked for is %q:\n%s", sent, n.tale())
	}
	return n
}

// TestNothingButALeaseAdmits what has joined, however the others go on without it. The slice is waited for, or a person's word has it let in.
func TestNothingButALeaseAdmits(t *testing.T) {
	t.Parallel()
	const refused, again = "permission admit", "b progress, b exit 139, b started, b progress, b progress, 5m"
	for name, path := range map[string]string{
		"they do steps":                              "b progress",
		"they begin anew":                            "5m, b exit 139, b started, b progress, b progress",
		"it was refused":                             refused + ", " + again + ", " + again + ", " + again,
		"it may have been written, then refused":     "transient admit, 5m, " + refused + ", " + again + ", " + again + ", " + again,
		"it was not asked for in time":               "30m, " + again + ", " + again,
		"it was held behind its intent":              "intend admit, hold, 5m, b exit 139, b started, b progress, b progress",
		"it was held, and then refused":              "intend admit, hold, 2m, " + refused + ", " + again + ", " + again,
		"one was ill":                                "b read unhealthy, b progress, b read ready, b progress, 5m, b progress",
		"one may have been lost":                     "b preempted, b progress, b read ready, b progress, 5m, b progress",
		"one was about to go":                        "a read deleting, b progress, a read ready, 5m, b progress",
		"one was made anew, and its crew takes over": "b preempted, b read lost, do, b read gone, do, b read ours, b mapped, b started, b progress",
	} {
		n := joined(t)
		for step := range strings.SplitSeq(path, ", ") {
			if step == "hold" {
				n.give(evidence.Held{Origin: n.reading(), Request: n.request(events.ActionAdmit, ""), Code: reason.CodePaused, Why: "paused by ann", Begun: true})
			} else if n.play(step); strings.HasPrefix(step, "b read unhealthy") {
				n.play("6m")
			}
		}
		if n.w.AdmittedIn("c").Known() {
			t.Errorf("%s: no lease names c, and it counts as admitted: %+v", name, n.w.Lease)
		}
		if n.w.Incident == nil {
			n.play("retried")
		}
		if !n.isWanted(events.ActionAdmit) {
			t.Fatalf("%s: nobody lets c in (%s):\n%s", name, n.w.NothingToRetry(n.now), n.tale())
		}
		n.goes("intend admit, accepted admit, b started, b progress, b progress")
		if n.opens(false); n.ended().Outcome != view.Resumed || !n.w.AdmittedIn("c").Known() || n.play("1m") != nil {
			t.Errorf("%s: c is let in:\n%s", name, n.tale())
		}
	}
}

// TestWhatWasNeverAdmittedIsAtAPersonsWord: nothing is begun anew without one, and what is let in at a word need not do a step.
func TestWhatWasNeverAdmittedIsAtAPersonsWord(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]string{"everything": "admitting: admit llama-8b=7711", "watch": "watching", "unreadable": "admitting: admit llama-8b=7711"} {
		n := newStory(t, true, "llama-8b").with(led).under(policy)
		n.w.Training.Verdict = incident.Verdict{Finished: true, Certain: true, Attempt: 3, At: start}
		n.w.Lease.Sure.Lives[0].Incarnation.Zone = "us-west4-b"
		n.history("1h", "peace", "retried", want)
		if plan := n.about().Planned; policy == "watch" && (len(plan) != 1 || plan[0].Action != events.ActionAdmit || plan[0].Switch != "") {
			t.Errorf("it would call %+v", plan)
		}
		if policy == "everything" {
			if n.history("does admit", "released", "mapped, started, progress, 1m", "released"); n.ended().Code != reason.CodeFinished {
				t.Errorf("it ends as\n%s", n.tale())
			}
		}
	}
}

// TestWhatIsLetInWhenItsTrainingIsDone: what its owner makes after the end, and what waits at the end; once, and nothing that nobody asked for.
func TestWhatIsLetInWhenItsTrainingIsDone(t *testing.T) {
	t.Parallel()
	const moved, asked = "owner deletes, read gone, read elsewhere", "admitting: admit llama-8b=7712"
	n := newStory(t, true, "llama-8b").with(led).history("finished, its verdict, "+moved, "peace", "1m", asked, "does admit", "released")
	if n.ended().Code != reason.CodeFinished || n.w.AdmittedIn("llama-8b").ID != "7712" {
		t.Errorf("it is made after the end:\n%s", n.tale())
	}
	n = newStory(t, true, "llama-8b").with(led).history(moved+", 1m", asked, "finished, its verdict, 1m", "admitting", "does admit", "resumed")
	if n.w.AdmittedIn("llama-8b").ID != "7712" {
		t.Errorf("the end comes in between:\n%s", n.tale())
	}
	n = newStory(t, true, "llama-8b").with(led).under("watch").history("preempted, read elsewhere, 15m, finished, its verdict", "observed")
	if n.under("everything").history("61m", "observed"); n.w.AdmittedIn("llama-8b").ID == "7712" {
		t.Errorf("nobody has asked for it:\n%s", n.tale())
	}
}

// TestATrainingThatOnlyItsMachineTellsOfIsNotAdmittedAgain: its crew began by itself, and none of its lines comes.
func TestATrainingThatOnlyItsMachineTellsOfIsNotAdmittedAgain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		runs     bool
		seen     time.Duration
		admitted bool
	}{
		"it runs": {true, 0, true}, "it ran": {true, -time.Hour, false}, "it does not": {false, 0, false},
	} {
		n := newStory(t, true, "llama-8b").with(led)
		n.goes("owner deletes, read gone").under("watch").goes("read elsewhere, 4h")
		if s := n.w.Slices[0]; !n.w.Reads(n.now).Has(incident.ReadTraining, "") {
			t.Errorf("%s: nobody reads it", name)
		} else {
			n.give(evidence.Beat{
				Origin: n.reading(), Slice: s.Name, Incarnation: s.Incarnation, Seen: n.now.Add(c.seen), StepAt: n.now.Add(c.seen), Runs: c.runs, Attempt: n.w.Lease.Attempt,
			})
		}
		if sent := n.under("everything").play("2m"); (sent == nil) != c.admitted {
			t.Errorf("%s: asked for is %q:\n%s", name, sent, n.tale())
		}
	}
}

// TestTheNextLifeReadFirstIsAdmittedInTheEnd: in another zone, before the end of the one before, which its owner has deleted.
func TestTheNextLifeReadFirstIsAdmittedInTheEnd(t *testing.T) {
	t.Parallel()
	for name, path := range map[string]string{
		"its deletion is read":           "deletes, next, deleting, gone, 1m",
		"word of it comes late":          "next, deleting, late, gone, ready, 1m",
		"nobody says who deletes it":     "next, deleting, 6m, ready, 1m",
		"word of it is disproved of one": "next, 1m, deletes, 15m, ready, gone, 1m",
	} {
		n := newStory(t, true, "llama-8b").with(led)
		first := n.w.Slices[0].Incarnation
		second := events.Incarnation{Zone: "us-west4-b", ID: "9001", Created: start.Add(5 * time.Second)}
		of := func(life events.Incarnation) func(*evidence.Read) {
			return func(e *evidence.Read) { e.Zone, e.Incarnation = life.Zone, life }
		}
		n.now = n.now.Add(10 * time.Second)
		for step := range strings.SplitSeq(path, ", ") {
			switch step {
			case "next", "ready":
				n.later(time.Second).reads("llama-8b", evidence.Ready, of(second))
			case "deleting", "gone":
				n.later(time.Second).reads("llama-8b", evidence.Condition(step), of(first))
			case "late":
				n.give(evidence.Called{Origin: evidence.Origin{ID: "e", Time: start, Rank: events.RankAudit}, Slice: "llama-8b", Act: events.ActDeleted, Principal: ann.By})
			case "deletes":
				n.play("owner deletes")
			default:
				n.play(step)
			}
		}
		if !n.isWanted(events.ActionAdmit) {
			t.Errorf("%s: the old life is deleted, the new one is READY, and nobody admits training:\n%s", name, n.tale())
		}
	}
}

// TestACrewThatRunsProvesItsAdmission: the lease was written, and nobody has answered. Its own record is read before that is left to a person, also
// where only crews have written the lease before.
func TestACrewThatRunsProvesItsAdmission(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*incident.Workload){"Pitstop led it": led, "crews led it": func(*incident.Workload) {}} {
		n := at(t, "everything", true, "preempted, read lost, do, read gone, do, read ours, intend admit", change)
		until := n.w.Incident.Status.Until
		for !n.w.Reads(n.now).Has(incident.ReadCrew, "llama-8b") && n.now.Before(until) {
			n.play("1m")
		}
		if at := n.stands(n.play("a crew that runs")); at != "resuming" || !n.now.Before(until) {
			t.Errorf("%s: it stands at %s:\n%s", name, at, n.tale())
		}
	}
}
