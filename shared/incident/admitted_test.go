package incident_test

import (
	"slices"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// tour leads a workload through what is learned of it, each thing a second after the last.
type tour struct {
	*testing.T
	w      incident.Workload
	now    time.Time
	policy string
}

// newTour begins with a lease of ours in the directory.
func newTour(t *testing.T, w incident.Workload, policy string) *tour {
	w.Crew.LeaseAttempt = 3
	return &tour{T: t, w: w, now: start, policy: policy}
}

// give returns what is asked for then.
func (r *tour) give(e incident.Evidence) (asked string) {
	r.now = r.now.Add(time.Second)
	var sent []events.Event
	if _, ticks := e.(incident.Ticked); ticks {
		r.w, sent, _ = tick(policies[r.policy], r.w, r.now)
	} else {
		r.w, sent, _ = advance(policies[r.policy], r.w, e, r.now)
	}
	for _, o := range sent {
		asked += asks(o)
	}
	return asked
}

func (r *tour) tick(after time.Duration) string {
	r.now = r.now.Add(after)
	return r.give(incident.Ticked{})
}

// learn gives what is known by name of a slice, or as the answer to what was asked for.
func (r *tour) learn(slice string, all ...string) (asked string) {
	r.Helper()
	for _, what := range all {
		e := answers(r.w, r.w.Slices[0], r.now)[what]
		if s := r.w.Slice(slice); s != nil {
			e = learned(r.w, *s, r.now)[what]
		}
		if e == nil {
			r.Fatalf("there is no %q at %s: %s", what, phaseOf(r.w), tale(r.w))
		}
		asked = r.give(e)
	}
	return asked
}

// read shows a life that somebody else has made, or that was there.
func (r *tour) read(slice string, c incident.Condition, life events.Incarnation) string {
	return r.give(incident.Read{
		Origin: incident.Origin{ID: "read", Time: r.now, Rank: events.RankReading}, Slice: slice, Zone: life.Zone, Condition: c, State: string(c), Incarnation: life,
	})
}

// made is a life that begins now.
func (r *tour) made(zone, id string) events.Incarnation {
	return events.Incarnation{Zone: zone, ID: id, Created: r.now}
}

const far = "us-west4-b"

// TestWhatTheLeaseDoesNotNameIsAdmitted: where the lease names the life of another zone, or none, nobody trains until somebody admits
// what is there, whatever came between.
func TestWhatTheLeaseDoesNotNameIsAdmitted(t *testing.T) {
	for name, c := range map[string]struct {
		workload incident.Workload
		story    func(r *tour) (asked string)
		want     string
	}{
		"a lease was written while its owner had deleted it": {multi(true), func(r *tour) string {
			r.learn("a", "owner deletes", "read gone")
			restarted(r)
			r.learn("a", "owner creates", "read foreign")
			return r.tick(time.Minute)
		}, "admit a=7712 b=7760"},
		"another slice was replaced and admitted meanwhile": {multi(true), func(r *tour) string {
			r.learn("a", "owner deletes", "read gone")
			replaced(r, "b")
			r.learn("", "accepted admit 0")
			r.learn("b", "started", "progress", "progress")
			r.learn("a", "owner creates", "read foreign")
			return r.tick(time.Minute)
		}, "admit a=7712 b=7761"},
		"a lease may have been written without it": {multi(true), func(r *tour) string {
			r.learn("a", "owner deletes", "read gone")
			r.learn("b", "exit 139", "gave up", "its verdict")
			r.learn("", "intend restart 0")
			r.learn("b", "cancelled", "started")
			r.learn("a", "owner creates", "read foreign")
			return r.tick(time.Minute)
		}, "admit a=7712 b=7760"},
		"its deletion did not happen, and a lease was written meanwhile": {multi(true), func(r *tour) string {
			r.learn("a", "owner deletes")
			restarted(r)
			r.tick(incident.UnreleaseAfter)
			r.learn("a", "read ready")
			return r.tick(time.Minute)
		}, "admit a=7711 b=7760"},
		"the other one is deleted and created again while it is admitted for another training": {multi(true), func(r *tour) string {
			r.learn("a", "finished", "its verdict", "owner deletes", "read gone")
			r.read("a", incident.Ready, r.made(far, "9001"))
			if asked := r.tick(time.Minute); asked == "" {
				r.Fatal("it is not to be admitted")
			}
			r.learn("b", "owner deletes", "read gone", "owner creates", "read foreign")
			return r.tick(time.Minute)
		}, "admit a=9001 b=7761"},
		"it joins what a lease leads": {multi(true), func(r *tour) string {
			a := r.w.Slices[0]
			r.w.Slices = r.w.Slices[1:]
			restarted(r)
			r.read("a", incident.Ready, a.Incarnation)
			return r.tick(time.Minute)
		}, "admit b=7760 a=7711"},
		"under the first policy that does more than watch": {quiet(true), func(r *tour) string {
			r.policy = "watch"
			r.learn("llama-8b", "owner deletes", "read gone")
			was := r.w.Slices[0].Admitted()
			asked := r.read("llama-8b", incident.Ready, r.made(far, "9001")) + r.tick(time.Minute) + r.tick(time.Hour)
			if w := r.w; asked != "" || w.Incident != nil || !due(w).IsZero() || !w.Slices[0].Admitted().Same(was) {
				r.Errorf("under watch it asks for %q, has opened %v, is due at %v, and calls %v admitted", asked, w.Incident, due(w), w.Slices[0].Admitted())
			}
			r.policy = "everything"
			return r.tick(time.Minute) + r.tick(time.Minute) // the first word of the policy
		}, "admit llama-8b=9001"},
		"but not where the lease names the life before, in its zone": {multi(true), func(r *tour) string {
			restarted(r)
			r.learn("a", "owner deletes", "read gone", "owner creates", "read foreign")
			return r.tick(time.Minute)
		}, ""},
		"but not where no lease of ours leads the others": {multi(true), func(r *tour) string {
			a := r.w.Slices[0]
			r.w.Slices, r.w.Crew.LeaseAttempt = r.w.Slices[1:], 0
			r.read("a", incident.Ready, a.Incarnation)
			return r.tick(time.Minute)
		}, ""},
		"the incident that was to admit it ended when its owner deleted another": {multi(true), func(r *tour) string {
			r.learn("a", "owner deletes", "read gone")
			r.read("a", incident.Ready, r.made(far, "9001"))
			r.tick(time.Minute)
			r.learn("b", "owner deletes", "read gone")
			r.tick(5 * time.Minute)
			return r.read("b", incident.Ready, r.made("us-west4-a", "9002")) + r.tick(time.Minute)
		}, "admit a=9001 b=9002"},
		"the policy only watched in the middle": {multi(true), func(r *tour) string {
			r.learn("a", "owner deletes", "read gone")
			r.read("a", incident.Ready, r.made(far, "9001"))
			r.tick(time.Minute)
			r.policy = "watch"
			r.learn("", "forbidden admit 0")
			r.tick(time.Hour)
			r.policy = "everything"
			return r.tick(time.Minute) + r.tick(time.Minute)
		}, "admit a=9001 b=7760"},
		"nobody has read the end of what its owner deleted": {multi(true), func(r *tour) string {
			r.learn("a", "owner deletes")
			next := r.made(far, "9001")
			r.read("a", incident.Creating, next)
			r.tick(time.Minute)
			if asked := r.read("a", incident.Ready, next) + r.tick(time.Minute); asked != "" {
				r.Errorf("it asks for %q while the former life may still train", asked)
			}
			return r.tick(incident.TakeOverFor)
		}, "admit a=9001 b=7760"},
		"the former life was deleted after the next was made": {multi(true), func(r *tour) string {
			next := r.made(far, "9001")
			r.read("a", incident.Ready, next)
			r.tick(time.Minute)
			r.learn("a", "owner deletes") // what has no zone is taken for the word about what is there
			r.tick(incident.UnreleaseAfter)
			r.read("a", incident.Ready, next)
			if *third { // its end has to be read: a word that was disproved of one life is not taken for another
				r.give(incident.Read{
					Origin: incident.Origin{ID: "read", Time: r.now, Rank: events.RankReading}, Slice: "a", Zone: "us-west4-a", Condition: incident.Gone,
				})
			}
			return r.tick(time.Minute)
		}, "admit a=9001 b=7760"},
		"the former life was stopped": {multi(true), func(r *tour) string {
			r.learn("a", "owner stops", "read stopped")
			r.tick(time.Hour)
			r.read("a", incident.Ready, r.made(far, "9001"))
			return r.tick(time.Minute)
		}, "admit a=9001 b=7760"},
		"it joined between the request to admit the others and its answer": {multi(true), func(r *tour) string {
			a := r.w.Slices[0]
			r.w.Slices = r.w.Slices[1:]
			replaced(r, "b")
			r.read("a", incident.Ready, a.Incarnation)
			return r.learn("", "accepted admit 0")
		}, "admit b=7761 a=7711"},
		"its deletion turned out not to have happened between them": {multi(true), func(r *tour) string {
			a := r.w.Slices[0]
			r.w.Slices[0].End.Released = start.Add(-incident.UnreleaseAfter)
			replaced(r, "b")
			r.read("a", incident.Ready, a.Incarnation)
			return r.learn("", "accepted admit 0")
		}, "admit a=7711 b=7761"},
		"the lease may name the life of a zone that it has left again": {quiet(true), func(r *tour) string {
			r.learn("llama-8b", "preempted", "read lost")
			r.learn("", "intend delete 0", "accepted delete 0")
			r.learn("llama-8b", "read gone")
			r.learn("", "intend create 0", "stockout create 0")
			r.tick(10 * time.Second)
			r.learn("", "intend create 0", "accepted create 0")
			r.give(incident.Read{
				Origin: incident.Origin{ID: "read", Time: r.now, Rank: events.RankReading}, Slice: "llama-8b", Zone: far, Condition: incident.Ready,
				Incarnation: r.made(far, "9001"), Incident: r.w.Incident.ID,
			})
			r.learn("", "intend admit 0") // it is written, and the answer is lost
			r.learn("llama-8b", "cancelled", "owner deletes", "read gone")
			r.tick(time.Hour)
			r.read("llama-8b", incident.Ready, r.made("us-west4-a", "9002"))
			return r.tick(time.Minute)
		}, "admit llama-8b=9002"},
		"and where only lines tell that its crew has begun by itself": {quiet(true), func(r *tour) string {
			r.policy = "watch"
			r.learn("llama-8b", "owner deletes", "read gone")
			r.read("llama-8b", incident.Ready, r.made(far, "9001"))
			r.learn("llama-8b", "mapped", "started", "progress")
			r.policy = "everything"
			return r.tick(time.Minute) + r.tick(time.Minute)
		}, "admit llama-8b=9001"},
		"but not while its owner keeps another one stopped": {multi(true), func(r *tour) string {
			r.learn("b", "owner stops", "read stopped")
			r.learn("a", "owner deletes", "read gone")
			r.read("a", incident.Ready, r.made(far, "9001"))
			asked := r.tick(time.Hour)
			if due := due(r.w); !due.IsZero() {
				r.Errorf("it is due at %v, and there is nothing to do", due)
			}
			return asked
		}, ""},
		"but not under watch, when the policy cannot be read for a moment": {quiet(true), func(r *tour) string {
			r.policy = "watch"
			r.learn("llama-8b", "owner deletes", "read gone")
			r.read("llama-8b", incident.Ready, r.made(far, "9001"))
			r.tick(48 * time.Hour)
			r.policy = "unreadable"
			return r.tick(time.Second) + r.tick(time.Minute)
		}, ""},
		"but not where it names another directory": {quiet(true), func(r *tour) string {
			r.learn("llama-8b", "owner deletes", "read gone")
			r.give(incident.Read{
				Origin: incident.Origin{ID: "read", Time: r.now, Rank: events.RankReading}, Slice: "llama-8b", Zone: far, Condition: incident.Ready,
				Incarnation: r.made(far, "9001"), Facts: incident.Facts{Workers: 4, Spec: "s", Label: "night"}, Directory: "gs://east/llama",
			})
			return r.tick(time.Minute)
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTour(t, c.workload, "everything")
			if asked := c.story(r); asked != c.want {
				t.Errorf("it asks for %q, want %q; it stands as %s", asked, c.want, stands(r.w, nil))
			}
		})
	}
}

// TestAHoldForgetsNoEarlierCall: a delivery that saved its intent may have called before it died. The next one is held back, and what
// the first one may bring is cleaned up all the same when somebody cancels.
func TestAHoldForgetsNoEarlierCall(t *testing.T) {
	for name, c := range map[string]struct {
		again, begun bool
		want         incident.Phase
	}{
		"behind its own intent, and nobody came before": {false, true, ""},
		"behind its own intent":                         {true, true, incident.Clearing},
		"before it":                                     {false, false, incident.Clearing},
	} {
		t.Run(name, func(t *testing.T) {
			n := at(t, policies["everything"], true, "preempted, read gone, intend create 0", nil)
			r := &tour{T: t, w: n.w, now: n.now.Add(incident.CallFor), policy: "everything"}
			if c.again {
				r.learn("", "intend create 0")
			}
			r.give(incident.Held{Request: asked(r.w, r.now), Code: incident.CodePaused, Why: "paused by ann", Begun: c.begun})
			r.learn("llama-8b", "cancelled")
			var phase incident.Phase
			if r.w.Incident != nil {
				phase = r.w.Incident.Phase
			}
			if phase != c.want {
				t.Errorf("it stands as %s, want %q", stands(r.w, nil), c.want)
			}
		})
	}
}

// restarted has the training of b fail, and begin again by the lease.
func restarted(r *tour) {
	r.Helper()
	r.learn("b", "exit 139", "gave up", "its verdict")
	r.learn("", "intend restart 0", "accepted restart 0")
	r.learn("b", "started", "progress", "progress")
}

// replaced has a slice be lost and created again, up to the request to admit it.
func replaced(r *tour, slice string) {
	r.Helper()
	r.learn(slice, "preempted", "read lost")
	r.learn("", "intend delete 0", "accepted delete 0")
	r.learn(slice, "read gone")
	r.learn("", "intend create 0", "accepted create 0")
	r.learn(slice, "read ours")
	r.learn("", "intend admit 0")
	r.tick(time.Minute)
}

// TestWhatWasNeverAdmittedIsAtAPersonsWord: a training was done while its slice was made anew in another zone, the lease could not be
// written, and a person was told of that. No crew may put itself into the place of a life in another zone, so their word has it let in.
func TestWhatWasNeverAdmittedIsAtAPersonsWord(t *testing.T) {
	for policy, want := range map[string]string{"everything": "admit llama-8b=7711", "watch": "", "unreadable": "admit llama-8b=7711"} {
		r := newTour(t, quiet(true), policy)
		r.w.Crew.Finished = true
		admittedIn(&r.w.Slices[0], far)
		if asked := r.tick(time.Hour); asked != "" || r.w.Incident != nil {
			t.Errorf("%s: %q is asked for without a word", policy, asked)
		}
		if asked := r.learn("llama-8b", "retried"); asked != want || r.w.Incident == nil {
			t.Errorf("%s: asked for is %q, want %q; %s", policy, asked, want, r.w.NothingToRetry(r.now))
		}
		if plan := r.w.Incident.PlannedCalls; policy == "watch" && (len(plan) != 1 || plan[0].Action != events.ActionAdmit || plan[0].Switch != "") {
			t.Errorf("it would call %+v", plan)
		}
	}
}

// TestATrainingThatIsDoneWhileItIsWatchedIsNotAdmittedAgain: nobody asked for another one.
func TestATrainingThatIsDoneWhileItIsWatchedIsNotAdmittedAgain(t *testing.T) {
	r := newTour(t, quiet(true), "watch")
	r.learn("llama-8b", "preempted")
	r.read("llama-8b", incident.Ready, r.made(far, "9001"))
	r.now = r.now.Add(incident.StruckWithin)
	r.learn("llama-8b", "finished", "its verdict")
	r.policy = "everything"
	if asked := r.tick(time.Hour) + r.tick(time.Minute); asked != "" {
		t.Errorf("asked for is %q", asked)
	}
}

// TestWhatNobodyAdmittedMayBeRetriedAtOnce: the lease was refused, and training goes on nowhere, whatever was told shortly before.
func TestWhatNobodyAdmittedMayBeRetriedAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		w     incident.Workload
		slice string
		told  []string
	}{
		"a training that is done":             {quiet(true), "llama-8b", []string{"progress", "finished", "its verdict"}},
		"a Multislice":                        {multi(true), "a", []string{"progress"}},
		"no crew has ever been heard":         {quiet(true), "llama-8b", nil},
		"a Multislice, and nothing was heard": {multi(true), "a", nil},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTour(t, c.w, "everything")
			if c.told == nil {
				r.w.Crew.Seen = time.Time{}
			}
			r.learn(c.slice, c.told...)
			r.learn(c.slice, "owner deletes", "read gone")
			r.read(c.slice, incident.Ready, r.made(far, "9001"))
			r.tick(time.Minute)
			r.learn("", "intend admit 0", "permission admit 0")
			if r.w.Incident != nil {
				t.Fatalf("it stands as %s", stands(r.w, nil))
			}
			r.now = r.now.Add(5 * time.Minute)
			if why := r.w.NothingToRetry(r.now); why != "" {
				t.Errorf("%s; and it cannot be retried: %s", r.w.Closed.Reason, why)
			}
		})
	}
}

// TestATrainingThatWasDoneIsNotResumedByItsAdmission: it is let in at a person's word, and nothing has made a step.
func TestATrainingThatWasDoneIsNotResumedByItsAdmission(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	r.w.Crew.Finished = true
	admittedIn(&r.w.Slices[0], far)
	r.tick(time.Hour)
	r.learn("llama-8b", "retried")
	r.learn("", "intend admit 0", "accepted admit 0")
	if c := r.w.Closed; r.w.Incident != nil || c.Outcome != incident.Released || c.Code != incident.CodeFinished || r.w.Slices[0].Admitted().Zone == far {
		t.Errorf("it ends as %s", tale(r.w))
	}
	if r.learn("llama-8b", "mapped", "started", "progress"); r.w.Incident != nil || r.tick(time.Minute) != "" {
		t.Errorf("it is begun again, and %s", tale(r.w))
	}
}

// keeps carries out the request to admit, over a lease that names its lives already, and reports whether the lease names the same attempt
// afterwards: then no crew begins anew.
func (r *tour) keeps() bool {
	r.T.Helper()
	for _, effect := range r.w.Effects {
		if effect.Action != events.ActionAdmit {
			continue
		}
		const there = 7
		q := r.w.Request(effect).(events.RecoveryRequested).Request //nolint:forcetypeassert // it admits
		r.give(incident.Intended{Request: q, RequestID: "kept", Lease: incident.Lease{Attempt: there, Names: true}})
		named := r.w.Effects[0].LeaseAttempt
		r.give(incident.Answered{Request: q, Text: "written"})
		return named == there && r.w.Incident.Phase == incident.Resuming
	}
	return false
}

// TestATrainingThatRunsIsNotBegunAgain: the lease names it, though nobody has heard that it was written, and its crew tells of the
// attempt that it names. Another attempt would cost what it has done since its last checkpoint.
func TestATrainingThatRunsIsNotBegunAgain(t *testing.T) {
	for name, told := range map[string][]string{
		"its life is known": {"mapped", "started"},
		"its life is not":   {"started"},
	} {
		for _, ends := range []string{"watched", "released"} {
			t.Run(name+", another is "+ends, func(t *testing.T) {
				r := newTour(t, multi(true), "everything")
				r.learn("a", "owner deletes", "read gone")
				r.read("a", incident.Ready, r.made(far, "9001"))
				r.tick(time.Minute)
				r.learn("", "intend admit 0") // the lease is written, and whoever did it dies before that is stored
				for r.w.Incident != nil {
					r.tick(time.Minute)
				}
				r.w.Crew.Attempt = r.w.Crew.LeaseAttempt - 1
				r.learn("a", told...)
				for range 12 {
					r.now = r.now.Add(5 * time.Minute)
					r.learn("a", "progress")
				}
				if ends == "released" {
					r.learn("b", "read lost", "owner deletes", "read gone")
				} else {
					r.policy = "watch"
					r.learn("b", "preempted", "read ready", "started")
					for r.w.Incident != nil {
						r.tick(5 * time.Minute)
						r.learn("a", "progress")
					}
					r.policy = "everything"
					r.tick(time.Minute)
				}
				r.tick(time.Minute)
				r.now = r.now.Add(time.Minute)
				if ends == "watched" {
					r.learn("a", "retried")
				}
				if r.w.Incident != nil && !r.keeps() {
					t.Errorf("training runs in a, at step %d, and it stands as %s", r.w.Progress.Step, tale(r.w))
				}
			})
		}
	}
}

// TestATrainingThatOnlyItsMachineTellsOfIsNotAdmittedAgain: a crew began by itself where its slice waits to be admitted, and none of its
// lines comes. What it writes on its machine says so.
func TestATrainingThatOnlyItsMachineTellsOfIsNotAdmittedAgain(t *testing.T) {
	for name, c := range map[string]struct {
		runs     bool
		seen     time.Duration
		admitted bool
	}{
		"it runs":     {true, 0, true},
		"it ran":      {true, -time.Hour, false},
		"it does not": {false, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTour(t, quiet(true), "everything")
			r.learn("llama-8b", "owner deletes", "read gone")
			r.policy = "watch"
			life := r.made(far, "9001")
			r.read("llama-8b", incident.Ready, life)
			for r.w.Incident != nil || !readsOf(r.w, r.now).Has(incident.ReadTraining, "") {
				r.tick(time.Minute)
			}
			r.give(incident.Beat{
				Origin: incident.Origin{Time: r.now, Rank: events.RankUser}, Slice: "llama-8b", Incarnation: life,
				Seen: r.now.Add(c.seen), StepAt: r.now.Add(c.seen), Runs: c.runs, Attempt: r.w.Crew.LeaseAttempt,
			})
			r.policy = "everything"
			asked := r.tick(time.Minute) + r.tick(time.Minute)
			if admitted := asked == ""; admitted != c.admitted {
				t.Errorf("asked for is %q: %s", asked, stands(r.w, nil))
			}
		})
	}
}

// TestARefusedRestartMakesNoTrainingUnadmitted: the lease that names its life was written, though its answer was lost, and one for a
// restart was refused later. Training runs by the first.
func TestARefusedRestartMakesNoTrainingUnadmitted(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	r.learn("llama-8b", "owner deletes", "read gone")
	r.read("llama-8b", incident.Ready, r.made(far, "9001"))
	r.tick(time.Minute)
	r.learn("", "intend admit 0") // it is written, and whoever did it dies before that is stored
	for r.w.Incident != nil {
		r.tick(time.Minute)
	}
	r.w.Crew.Attempt = r.w.Crew.LeaseAttempt - 1
	r.learn("llama-8b", "started")
	for range 12 {
		r.now = r.now.Add(5 * time.Minute)
		r.learn("llama-8b", "progress")
	}
	for i := 0; i < 600 && (r.w.Incident == nil || r.w.Incident.Phase != incident.Restarting); i++ {
		r.tick(time.Minute)
		r.learn("llama-8b", "a crew that runs")
	}
	r.learn("", "intend restart 0", "permission restart 0")
	r.learn("llama-8b", "progress")
	r.policy = "watch"
	r.learn("llama-8b", "preempted")
	for i := 0; i < 20 && r.w.Incident != nil; i++ {
		r.now = r.now.Add(5 * time.Minute)
		r.learn("llama-8b", "read ready", "progress")
	}
	if c := r.w.Closed; r.w.Incident != nil || c.Outcome != incident.Observed {
		t.Fatalf("it stands as %s", tale(r.w))
	}
	r.policy = "everything"
	if asked := r.tick(time.Minute) + r.tick(time.Minute); asked != "" {
		t.Errorf("training runs, at step %d, and asked for is %q", r.w.Progress.Step, asked)
	}
}

// joined is a Multislice, led by a lease of attempt 3, with a slice that its owner has added in another zone: its admission is asked
// for.
func joined(t *testing.T) *tour {
	t.Helper()
	r := newTour(t, multi(true), "everything")
	r.w.Crew.Attempt, r.w.Progress.Attempt = 3, 3
	r.read("c", incident.Ready, r.made(far, "9001"))
	if asked := r.tick(time.Minute) + r.tick(time.Minute); asked != "admit a=7711 b=7760 c=9001" {
		t.Fatalf("asked for is %q", asked)
	}
	return r
}

// TestTheOthersStepsAreNoAdmission: they go on without the slice that has joined them, by the lease of before.
func TestTheOthersStepsAreNoAdmission(t *testing.T) {
	r := joined(t)
	if r.learn("b", "progress"); r.w.Incident == nil || r.w.Incident.Phase != incident.Admitting {
		t.Fatalf("nobody has written a lease that names c, and %s", tale(r.w))
	}
	r.learn("", "intend admit 0", "accepted admit 0")
	r.learn("b", "started", "progress", "progress")
	if r.w.Incident != nil || r.w.Closed.Outcome != incident.Resumed || !r.w.Slice("c").Admitted().Known() || r.tick(time.Minute) != "" {
		t.Errorf("it stands as %s", tale(r.w))
	}
}

// TestTheOthersOwnRestartsAreNoAdmission: they count up to the attempt that a lease was to name, which was refused.
func TestTheOthersOwnRestartsAreNoAdmission(t *testing.T) {
	for name, c := range map[string]struct {
		answers []string
		retried string
	}{
		"refused at once":           {[]string{"intend admit 0", "permission admit 0"}, "admit a=7711 b=7760 c=9001"},
		"it may have been written":  {[]string{"intend admit 0", "transient admit 0", "intend admit 0", "permission admit 0"}, "admit a=7711 b=7760 c=9001"},
		"nobody has begun to write": {nil, "admit a=7711 b=7760 c=9001"},
	} {
		t.Run(name, func(t *testing.T) {
			r := joined(t)
			for _, a := range c.answers {
				if a == "intend admit 0" {
					r.tick(time.Minute)
				}
				r.learn("", a)
			}
			for r.w.Incident != nil {
				r.tick(time.Minute)
			}
			for range 3 {
				r.now = r.now.Add(5 * time.Minute)
				r.learn("b", "progress", "exit 139", "started", "progress", "progress")
			}
			if asked := r.tick(time.Minute); asked != "" || r.w.Incident != nil {
				t.Fatalf("a person was told, and asked for is %q, and it stands as %s", asked, stands(r.w, nil))
			}
			if asked := r.learn("c", "retried"); asked != c.retried {
				t.Errorf("c was never admitted, and their word asks for %q, want %q: %s", asked, c.retried, r.w.NothingToRetry(r.now))
			}
		})
	}
}

// TestWhatTrainsAgainWithoutASliceStillAdmitsIt: the lease was not written before another slice was ill for a moment, and the others
// have gone on since.
func TestWhatTrainsAgainWithoutASliceStillAdmitsIt(t *testing.T) {
	for name, between := range map[string][]string{
		"one was ill":         {"read unhealthy", "progress", "read ready", "progress"},
		"one may be lost":     {"preempted", "progress", "read ready", "progress"},
		"they began anew too": {"read unhealthy", "exit 139", "started", "progress", "read ready", "progress"},
	} {
		t.Run(name, func(t *testing.T) {
			r := joined(t)
			r.learn("b", between...)
			for i := 0; i < 15 && r.w.Incident != nil && r.w.Incident.Phase != incident.Admitting; i++ {
				r.now = r.now.Add(time.Minute)
				r.learn("b", "read ready", "progress")
			}
			if r.w.Incident == nil {
				t.Fatalf("c waits for its admission, and it stands as %s", tale(r.w))
			}
			r.learn("", "intend admit 0", "accepted admit 0")
			if !r.w.Slice("c").Admitted().Known() {
				t.Errorf("it stands as %s", tale(r.w))
			}
		})
	}
}

// TestAPausedLeaseAdmitsNobody: a pause holds the writing of the lease behind its intent, and nothing was called. The others get as far
// as it was to name by themselves.
func TestAPausedLeaseAdmitsNobody(t *testing.T) {
	r := joined(t)
	r.learn("", "intend admit 0")
	r.give(incident.Held{Request: asked(r.w, r.now), Code: incident.CodePaused, Why: "paused by ann", Until: r.now.Add(2 * time.Hour), Begun: true})
	r.now = r.now.Add(5 * time.Minute)
	r.learn("b", "exit 139", "started", "progress", "progress")
	if r.w.Slice("c").Admitted().Known() {
		t.Errorf("no lease that names c was ever written, and c counts as admitted (Lease %d); it stands as %s", r.w.Slice("c").Leased, tale(r.w))
	}
}

// TestALeaseHeldAndThenRefusedAdmitsNobody: of neither try it is unknown what came of it.
func TestALeaseHeldAndThenRefusedAdmitsNobody(t *testing.T) {
	r := joined(t)
	r.learn("", "intend admit 0")
	r.give(incident.Held{Request: asked(r.w, r.now), Code: incident.CodePaused, Why: "paused by ann", Begun: true})
	r.tick(2 * time.Minute)
	r.learn("", "intend admit 0", "permission admit 0")
	for range 3 {
		r.now = r.now.Add(5 * time.Minute)
		r.learn("b", "progress", "exit 139", "started", "progress", "progress")
	}
	if asked := r.learn("c", "retried"); asked == "" {
		t.Errorf("c was never admitted (Lease %d), and a person's word asks for nothing: %s", r.w.Slice("c").Leased, r.w.NothingToRetry(r.now))
	}
}

// TestWhatJoinsBeforeTheLeaseIsBegunIsNotNamedByIt: the lease names what was asked for, and nothing that came since.
func TestWhatJoinsBeforeTheLeaseIsBegunIsNotNamedByIt(t *testing.T) {
	r := newTour(t, multi(true), "everything")
	a := r.w.Slices[0]
	r.w.Slices = r.w.Slices[1:]
	r.learn("b", "preempted", "read lost")
	r.learn("", "intend delete 0", "accepted delete 0")
	r.learn("b", "read gone")
	r.learn("", "intend create 0", "accepted create 0")
	if asked := r.learn("b", "read ours"); asked != "admit b=7761" {
		t.Fatalf("asked %q", asked)
	}
	r.learn("b", "mapped")
	r.read("a", incident.Ready, a.Incarnation)
	r.learn("", "intend admit 0") // the lease names b alone, is written, and the answer is lost
	r.w.Crew.Attempt = r.w.Crew.LeaseAttempt - 1
	r.learn("b", "started")
	r.learn("b", "progress")
	var more string
	for range 30 {
		more += r.tick(time.Minute)
	}
	if more == "" && r.w.Slice("a").Admitted().Known() {
		t.Errorf("the lease never named a (Lease %d, admitted %v): %s", r.w.Slice("a").Leased, r.w.Slice("a").Admitted(), tale(r.w))
	}
}

// asksForLease lets time pass until a lease is asked for that is to name what has joined, and says what for: for a restart once progress is
// overdue. The third edition lets in what has joined at once.
func (r *tour) asksForLease() (action events.Action) {
	r.Helper()
	action = either(events.ActionRestart, events.ActionAdmit, "at once")
	for range 40 {
		if slices.ContainsFunc(r.w.Effects, func(x incident.Effect) bool { return x.Action == action }) {
			return action
		}
		r.tick(time.Minute)
	}
	r.Fatalf("%s", tale(r.w))
	return ""
}

// TestARestartThatIsOvertakenForgetsNoSlice: c joins while the training is waited for; a restart is asked for, which is to name it too,
// and steps end the incident before that lease is written.
func TestARestartThatIsOvertakenForgetsNoSlice(t *testing.T) {
	for name, answers := range map[string][]string{
		"nobody has begun":   nil,
		"refused in passing": {"intend", "not_found"},
	} {
		t.Run(name, func(t *testing.T) {
			r := newTour(t, multi(true), "everything")
			r.w.Crew.Attempt, r.w.Progress.Attempt = 3, 3
			r.learn("b", "exit 139")
			r.learn("b", "started") // attempt 4, by the crew itself
			r.read("c", incident.Ready, r.made(far, "9001"))
			action := r.asksForLease()
			for _, a := range answers {
				r.learn("", a+" "+string(action)+" 0")
			}
			if r.w.Incident == nil {
				t.Fatalf("%s", tale(r.w))
			}
			r.learn("b", "progress") // restoring took long
			if r.w.Incident != nil {
				return
			}
			var more string
			end := r.w.Closed.Outcome
			for range 60 {
				r.now = r.now.Add(time.Minute)
				more += r.tick(0)
				r.learn("b", "progress")
			}
			if c := r.w.Slice("c"); more == "" {
				t.Errorf("closed as %s; c is READY, in no lease, and nobody asks for it or was told: %s, admitted %v, lease %d; retry: %q", end, c.Admission, c.Admitted(), c.Leased, r.w.NothingToRetry(r.now))
			}
		})
	}
}

// TestOwnRestartsAdmitNothingThatARestartWasToName: the crews go on to its attempt by themselves before anybody has begun to write.
func TestOwnRestartsAdmitNothingThatARestartWasToName(t *testing.T) {
	r := newTour(t, multi(true), "everything")
	r.w.Crew.Attempt, r.w.Progress.Attempt = 3, 3
	r.learn("b", "exit 139")
	r.read("c", incident.Ready, r.made(far, "9001"))
	r.asksForLease()
	r.learn("b", "started") // attempt 4 of its own, not by our lease
	if c := r.w.Slice("c"); c.Admitted().Known() {
		t.Errorf("nobody has begun to write a lease that names c (Lease %d), and c counts as admitted: %s", c.Leased, tale(r.w))
	}
}

// TestALeaseNamesNoAttemptThatRuns: no crew would begin anew for it, with the slice that has joined them.
func TestALeaseNamesNoAttemptThatRuns(t *testing.T) {
	r := joined(t)
	r.learn("b", "exit 139", "started", "progress")                     // attempt 4 of their own
	q := r.w.Request(r.w.Effects[0]).(events.RecoveryRequested).Request //nolint:forcetypeassert // it admits
	r.give(incident.Intended{Request: q, RequestID: "admit", Lease: incident.Lease{Attempt: r.w.Progress.Attempt}})
	names := r.w.Effects[0].LeaseAttempt
	r.learn("", "accepted admit 0")
	r.learn("b", "progress")
	if names <= r.w.Progress.Attempt {
		t.Errorf("the lease names attempt %d, which a and b run without c since before: no crew begins anew, and it stands as %s", names, tale(r.w))
	}
}

// TestTheNextLifeReadFirstIsAdmittedInTheEnd: in another zone, before the end of the one before, which its owner has deleted.
func TestTheNextLifeReadFirstIsAdmittedInTheEnd(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	deleted := r.now
	r.now = r.now.Add(30 * time.Second)
	next := r.made(far, "9001")
	r.now = r.now.Add(30 * time.Second)
	old := r.w.Slices[0].Incarnation
	r.read("llama-8b", incident.Creating, next) // zones are listed one after the other
	r.read("llama-8b", incident.Deleting, old)
	r.give(incident.Called{Origin: incident.Origin{ID: "e", Time: deleted, Rank: events.RankAudit}, Slice: "llama-8b", Act: events.ActDeleted, Method: "DeleteNode", Principal: "ann@example.com"})
	r.now = r.now.Add(time.Minute)
	r.give(incident.Read{Origin: incident.Origin{ID: "read", Time: r.now, Rank: events.RankReading}, Slice: "llama-8b", Zone: "us-west4-a", Condition: incident.Gone})
	r.tick(time.Minute)
	r.read("llama-8b", incident.Ready, next)
	var more string
	for range 120 {
		more += r.tick(time.Minute)
	}
	if more == "" {
		t.Errorf("the old life was deleted two hours ago, the new one is READY, and nobody admits training: %s", stands(r.w, nil))
	}
}

// TestStepsBesideASliceThatIsNotUsableEndNoAdmission: the admission of c is asked for, and another slice is on its way out for a moment.
func TestStepsBesideASliceThatIsNotUsableEndNoAdmission(t *testing.T) {
	r := joined(t)
	r.learn("a", "read deleting")
	r.learn("b", "progress") // a line from a moment ago
	r.learn("a", "read ready")
	var more string
	open := r.w.Incident != nil
	for range 30 {
		more += r.tick(time.Minute)
	}
	if c := r.w.Slice("c"); !open && more == "" {
		t.Errorf("c was never admitted (%s, admitted %v, lease %d), its incident ended as resumed, and nothing is asked for", c.Admission, c.Admitted(), c.Leased)
	}
}

// TestATakeOverOfOneSliceAdmitsNoOther: b is made anew in its zone while c has joined in another. Its crew puts itself into the place of
// the former one, under the lease that is there, before anybody has begun to write the next.
func TestATakeOverOfOneSliceAdmitsNoOther(t *testing.T) {
	r := newTour(t, multi(true), "everything")
	r.w.Crew.Attempt, r.w.Progress.Attempt = 3, 3
	r.read("c", incident.Ready, r.made(far, "9001"))
	r.learn("b", "preempted", "read lost")
	r.learn("", "intend delete 0", "accepted delete 0")
	r.learn("b", "read gone")
	r.learn("", "intend create 0", "accepted create 0")
	if asked := r.learn("b", "read ours"); asked != "admit a=7711 b=7761 c=9001" {
		t.Fatalf("asked %q", asked)
	}
	r.learn("b", "mapped", "started", "progress")
	if c := r.w.Slice("c"); c.Admitted().Known() {
		t.Errorf("nobody has begun to write a lease that names c (Lease %d), and c counts as admitted: %s", c.Leased, tale(r.w))
	}
}

// TestARestartThatNobodyBeganUnnamesNoSlice: the deletion of a by its owner came to nothing; a restart without it was asked for meanwhile,
// and overtaken by steps. The lease that was there before still names it.
func TestARestartThatNobodyBeganUnnamesNoSlice(t *testing.T) {
	r := newTour(t, multi(true), "everything")
	r.w.Crew.Attempt, r.w.Progress.Attempt = 3, 3
	r.w.Slices[0].Leased, r.w.Slices[1].Leased = 3, 3
	r.learn("b", "exit 139", "started")
	r.tick(24 * time.Minute)
	r.learn("a", "owner deletes")
	if r.w.Incident == nil { // it ends what was open; the next crash opens another
		r.now = r.now.Add(time.Second)
		r.learn("b", "exit 139")
	}
	for i := 0; i < 40 && r.w.Incident != nil && r.w.Incident.Phase != incident.Restarting; i++ {
		r.tick(time.Minute)
	}
	if r.w.Incident == nil || r.w.Incident.Phase != incident.Restarting {
		t.Fatalf("%s", tale(r.w))
	}
	r.learn("b", "started", "progress", "progress")
	if r.w.Incident != nil {
		t.Fatalf("%s", tale(r.w))
	}
	r.now = r.now.Add(time.Minute)
	r.learn("b", "progress")
	r.learn("a", "read ready")
	if asked := r.tick(time.Second); asked != "" {
		t.Errorf("the lease names a and b, both train, at step %d; asked for is %q", r.w.Progress.Step, asked)
	}
}

// TestALineOfWhatIsGoneAdmitsNobody: it comes hours late, and what its owner creates there is named by no lease.
func TestALineOfWhatIsGoneAdmitsNobody(t *testing.T) {
	r := newTour(t, multi(true), "everything")
	r.learn("a", "owner deletes", "read gone")
	restarted(r)
	r.learn("a", "owner creates", "read foreign", "mapped")
	r.learn("a", "owner deletes", "read gone", "started")
	if s := r.w.Slice("a"); s.Admitted().Known() {
		t.Errorf("it is gone, no lease names it, and training may run in %v", s.Admitted())
	}
}

// TestWhatIsCreatedAfterItsTrainingWasDoneIsTheirs: it is let in, and whether anything trains there is its owner's business.
func TestWhatIsCreatedAfterItsTrainingWasDoneIsTheirs(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	r.learn("llama-8b", "finished", "its verdict", "owner deletes", "read gone")
	r.read("llama-8b", incident.Ready, r.made(far, "9001"))
	if asked := r.tick(time.Minute); asked != "admit llama-8b=9001" {
		t.Fatalf("asked for is %q", asked)
	}
	r.learn("", "intend admit 0", "accepted admit 0")
	if c := r.w.Closed; r.w.Incident != nil || c.Outcome != incident.Released || c.Code != incident.CodeFinished || !r.w.Slices[0].Admitted().Known() {
		t.Errorf("it stands as %s", tale(r.w))
	}
}

// TestATrainingThatIsDoneInTheMiddleOfItsAdmission: what waits is let in all the same, once, and nobody waits for a step that nobody
// will do.
func TestATrainingThatIsDoneInTheMiddleOfItsAdmission(t *testing.T) {
	r := newTour(t, quiet(true), "everything")
	r.learn("llama-8b", "owner deletes", "read gone")
	r.read("llama-8b", incident.Ready, r.made(far, "9001"))
	if asked := r.tick(time.Minute); asked != "admit llama-8b=9001" {
		t.Fatalf("asked for is %q", asked)
	}
	r.learn("llama-8b", "finished", "its verdict")
	if asked := r.tick(time.Minute); asked != "" || r.w.Incident == nil {
		t.Fatalf("asked for is %q beside the admission that is under way: %s", asked, tale(r.w))
	}
	r.learn("", "intend admit 0", "accepted admit 0")
	if c := r.w.Closed; r.w.Incident != nil || c.Outcome != incident.Resumed || c.ConfirmedBy != incident.ByStep || !r.w.Slices[0].Admitted().Known() {
		t.Errorf("it stands as %s", tale(r.w))
	}
}
