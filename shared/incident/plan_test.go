package incident_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/shared/incident"
)

// texts are the decisions in short.
func texts(f incident.Plan) string {
	var all []string
	for _, d := range f.Decisions {
		all = append(all, d.Text)
	}
	if f.Outcome != "" {
		all = append(all, string(f.Outcome)+": "+f.Reason)
	}
	return strings.Join(all, "; ")
}

func TestALossIsForeseenAsItWouldBeDecided(t *testing.T) {
	queuedPair := func(w *incident.Workload) {
		*w = multi(true)
		for i := range w.Slices {
			w.Slices[i].Group = "qr"
		}
	}
	for name, c := range map[string]struct {
		policy string
		spot   bool
		but    func(*incident.Workload)
		want   []string
		phase  incident.Phase
	}{
		"Spot":                     {"spot", true, nil, []string{"recreate: delete llama-8b first", "create llama-8b in us-west4-a", "admit training to the new slice", "wait for progress past step 48,000"}, incident.Resuming},
		"another":                  {"everything", false, nil, []string{"wait for Google's own recovery", "recreate: delete llama-8b first", "create llama-8b in us-west4-a", "admit training to the new slice", "wait for progress past step 48,000"}, incident.Resuming},
		"a person is asked":        {"ask", true, nil, []string{"wait for approval: recreate llama-8b"}, incident.Approving},
		"nothing is allowed":       {"watch", true, nil, []string{"only watch; would: DeleteNode projects/demo/locations/us-west4-a/nodes/llama-8b (recreate); CreateNode projects/demo/locations/us-west4-a/nodes/llama-8b, zone after zone: us-west4-a, us-west4-b (if the order fits) (recreate); storage.objects.create gs://ckpt/llama-8b/pitstop-lease.json"}, incident.Watching},
		"the switch is no":         {"seldom", true, nil, []string{"escalated: node llama-8b is PREEMPTED, and the switch recreate is no"}, ""},
		"no specification":         {"spot", true, func(w *incident.Workload) { w.Slices[0].Spec = "" }, []string{"escalated: the specification of llama-8b was never read"}, ""},
		"the policy is unread":     {"unreadable", true, nil, []string{"hold"}, incident.Looking},
		"one of a queued resource": {"spot", true, queuedPair, []string{"recreate: delete a, b first", "create a, b in us-west4-a"}, incident.Resuming},
	} {
		t.Run(name, func(t *testing.T) {
			w := quiet(c.spot)
			if c.but != nil {
				c.but(&w)
			}
			before := marshal(t, w)
			f := w.IfLost(policies[c.policy], w.Slices[0].Name, start)
			got := texts(f)
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("foreseen is %q, want %q", got, want)
				}
			}
			if f.Phase != c.phase {
				t.Errorf("it would stand at %q, want %q", f.Phase, c.phase)
			}
			if marshal(t, w) != before {
				t.Error("it has changed the workload")
			}
		})
	}
	for why, but := range map[string]func(*incident.Workload){
		"its owner deleted it or took it over":                 func(w *incident.Workload) { w.Slices[0].End.Released = start },
		"its owner ordered it, and it has not been usable yet": func(w *incident.Workload) { w.Slices[0].Condition, w.Slices[0].NeverUsable = incident.Creating, true },
		"the training is finished":                             func(w *incident.Workload) { w.Crew.Finished = true },
		"an incident has told its end already":                 func(w *incident.Workload) { w.Slices[0].End.Reported = true },
		"Google suspects abuse on a slice of it, and a person was told": func(w *incident.Workload) {
			w.Slices[0].Abuse = incident.Abuse{Suspected: true, Reported: true}
		},
	} {
		w := quiet(true)
		but(&w)
		if f := w.IfLost(policies["spot"], "llama-8b", start); f.Reason != why || len(f.Decisions) > 0 || f.Outcome != "" {
			t.Errorf("%+v, want nothing, because %s", f, why)
		}
	}
	w := quiet(true)
	if f := w.IfLost(policies["spot"], "nobody", start); len(f.Decisions) > 0 {
		t.Errorf("of no slice: %+v", f)
	}
}

// TestAnIncidentThatIsOverIsNotForeseen: what opens none is not told as the one that closed last.
func TestAnIncidentThatIsOverIsNotForeseen(t *testing.T) {
	for name, c := range map[string]struct {
		but  func(*incident.Workload)
		want string
	}{
		"what its owner has taken over": {func(w *incident.Workload) { w.Slices[0].End.Released = start.Add(-time.Minute) }, ""},
		"what opens one that ends at once": {
			func(w *incident.Workload) { w.Slices[0].Spec = "" },
			"escalated: the specification of llama-8b was never read",
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := quiet(true)
			w.Closed = &incident.Incident{
				ID: "old", Closed: start.Add(-time.Minute), Phase: incident.Closed, Outcome: incident.Escalated, Reason: "long ago", Advice: "none",
				Timeline: []incident.Line{{At: start.Add(-time.Minute), Kind: incident.LineDecided, Text: "told long ago"}},
			}
			c.but(&w)
			f := w.IfLost(policies["spot"], "llama-8b", start)
			if got := texts(f); strings.Contains(got, "long ago") || !strings.Contains(got, c.want) || c.want == "" && !cmp.Equal(f, incident.Plan{Reason: "its owner deleted it or took it over"}) {
				t.Errorf("foreseen is %+v, want %q", f, c.want)
			}
		})
	}
}

func TestTheDeadlineIsForeseen(t *testing.T) {
	for path, want := range map[string]string{
		"preempted":                  "wait for progress past step 48,000",
		"host error, read unhealthy": "recreate: delete llama-8b first",
		"exit 139":                   "ask the crew for another attempt",
	} {
		n := at(t, policies["everything"], true, path, nil)
		before := len(n.w.Incident.Timeline)
		if got := texts(n.w.AtDeadline(policies["everything"])); !strings.Contains(got, want) {
			t.Errorf("%s: foreseen is %q, want %q", path, got, want)
		}
		if len(n.w.Incident.Timeline) != before {
			t.Errorf("%s: it has changed the workload", path)
		}
	}
	if f := quiet(true).AtDeadline(policies["spot"]); len(f.Decisions) > 0 {
		t.Errorf("in peace: %+v", f)
	}
}

func TestZonesAreThoseThatWouldBeAsked(t *testing.T) {
	w := quiet(true)
	asked := func(slice string) string {
		var all []string
		for _, at := range w.PlacesFor(policies["spot"], slice) {
			all = append(all, at.String())
		}
		return strings.Join(all, " ")
	}
	if got := asked("llama-8b"); got != "us-west4-a us-west4-b" {
		t.Errorf("zones are %s", got)
	}
	w = multi(true)
	admittedIn(&w.Slices[0], "us-west4-a")
	admittedIn(&w.Slices[1], "us-west4-a")
	if got := asked("a"); got != "us-west4-a" {
		t.Errorf("zones of one of two are %s", got)
	}
}

// TestAPlanFindsNoCheckpointThatNobodyHasTold: what a look will find is not foreseen.
func TestAPlanFindsNoCheckpointThatNobodyHasTold(t *testing.T) {
	const admitted = "preempted, read lost, intend delete 0, accepted delete 0, read gone, intend create 0, accepted create 0, read ours, intend admit 0, accepted admit 0"
	for name, c := range map[string]struct {
		path     string
		progress incident.Progress
		want     string
	}{
		"of a training without a crew": {admitted, incident.Progress{}, "look for a new checkpoint"},
		"of one that has saved before": {admitted, incident.Progress{Verified: 48_000, VerifiedAt: start, CheckpointStep: 48_000}, "look for a new checkpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			n := at(t, policies["everything"], true, c.path, func(w *incident.Workload) { w.Progress, w.Crew = c.progress, incident.Crew{} })
			if got := texts(n.w.AtDeadline(policies["everything"])); got != c.want {
				t.Errorf("foreseen is %q, want %q", got, c.want)
			}
		})
	}
}
