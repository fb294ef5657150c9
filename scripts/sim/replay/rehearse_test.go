package replay_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"go.yaml.in/yaml/v3"

	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// dry has the policies of a file allow nothing, and leaves the rest of them as it is.
func dry(t *testing.T, file []byte) []byte {
	t.Helper()
	var f struct {
		Policies map[string]map[string]any `yaml:"policies"`
	}
	must(t, yaml.Unmarshal(file, &f))
	for _, p := range f.Policies {
		p["preset"] = "watch"
		delete(p, "switches")
	}
	raw, err := yaml.Marshal(f)
	must(t, err)
	return raw
}

// TestWhatIsRehearsedIsWhatIsCalled plays recorded incidents as they are, and again under the same policy with every switch
// at no. The rehearsed calls then equal the real ones, in the same order, zone after zone.
func TestWhatIsRehearsedIsWhatIsCalled(t *testing.T) {
	breadth.Again(t)
	compared := 0
	for _, r := range some(t, 2) {
		if why := otherwise[r.Name]; why != "" {
			continue
		}
		compared++
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			acted, watched := played(t, r).story.Ended, run(t, r, world.Options{Policy: dry(t, r.Policy)}).Ended
			if len(acted) == 0 || len(watched) == 0 {
				t.Fatalf("%d incidents acted on, %d watched", len(acted), len(watched))
			}
			called, would := made(acted[0].Incident), rehearsed(watched[0].Incident, acted[0].Incident)
			if acted[0].Outcome != view.Resumed && len(would) > len(called) {
				would = would[:len(called)] // it ended before all of it was done
			}
			if d := cmp.Diff(called, would, cmpopts.EquateEmpty()); d != "" {
				t.Errorf("(-made +rehearsed):\n%s\nwould have: %s", d, strings.Join(watched[0].WouldHave(), "\n            "))
			}
		})
	}
	if compared < 12 {
		t.Errorf("only %d recorded incidents are compared", compared)
	}
}

// jobGone is why a watched Job is another story than one that is brought back: in the end it has only to be created.
const jobGone = "its owner deletes the failed Job in the end, while its incident is still watched"

// onDemand is that of what comes on demand in the end: a rehearsal names all places in one call.
const onDemand = "its last place is asked in a call of its own"

// otherwise are the recorded incidents in which later events depend on earlier actions.
var otherwise = map[string]string{
	"preempted-while-creating": "what is lost the second time is what was created",
	"preempted-before-ready":   "what is lost the second time is what was created",
	"hang":                     "its policy reports a hang, whatever the switches allow",
	"stopped-by-owner":         "nothing is opened",
	"watched":                  "nothing was allowed in the first place",
	"maintenance-unanswered":   "nobody answers the request for a save",
	"spot-to-on-demand":        onDemand,
	"queue-left":               "a rehearsal finds its order granted in the first queue",
	"back-again":               onDemand,
	"back-by-save":             onDemand,
	"gke-preempted":            jobGone,
	"gke-failed":               jobGone,
	"gke-flex-start-end":       jobGone,
	"gke-maintenance":          jobGone,
	"gke-maintenance-early":    jobGone,
}

// made are the calls that were made or refused for want of a zone that takes the order, each once for an action. A Pod counts as its Job:
// a rehearsal does not know which Pods hang.
func made(in view.Incident) (all []string) {
	var seen []string
	for _, c := range in.Calls {
		if c.NotMade {
			continue
		}
		s := c.What()
		if at, pod, is := strings.Cut(s, "/pods/"); is && strings.HasPrefix(pod, c.Slice+"-") {
			s = at + "/jobs/" + c.Slice
		}
		if as := string(c.Action) + " " + s; !slices.Contains(seen, as) {
			seen, all = append(seen, as), append(all, s)
		}
	}
	return all
}

// rehearsed are the calls of a rehearsal, with a creation for each zone up to the one that gave the slice.
func rehearsed(watched, acted view.Incident) (all []string) {
	given := func(what string) bool {
		return slices.ContainsFunc(acted.Calls, func(c view.Call) bool { return c.What() == what && c.Code == "" })
	}
	var creations []view.Planned
	asked := func() {
		for i := range maxZones {
			for _, c := range creations {
				before := func(z view.ZoneFit) bool { return given(at(c, z)) }
				if i >= len(c.Zones) || c.Zones[i].Code != "" || slices.ContainsFunc(c.Zones[:i], before) {
					continue
				}
				notMade := func(o view.Call) bool { return o.NotMade && o.What() == at(c, c.Zones[i]) }
				if c.Zones[i].Text != "" && slices.ContainsFunc(acted.Calls, notMade) {
					continue // where the checkpoints are is found out when it comes to that
				}
				all = append(all, at(c, c.Zones[i]))
			}
		}
		creations = nil
	}
	for _, c := range watched.PlannedCalls {
		if len(c.Zones) > 0 {
			creations = append(creations, c)
			continue
		}
		asked()
		if c.Switch == "" || acted.Switches.Level(c.Switch) != policy.No {
			all = append(all, c.Method+" "+c.Resource)
		}
	}
	asked()
	return all
}

const maxZones = 8

// at is a creation in one of its zones.
func at(c view.Planned, z view.ZoneFit) string {
	there := strings.Replace(c.Resource, "/"+c.Zones[0].Zone+"/", "/"+z.Zone+"/", 1)
	return view.Call{Method: c.Method, Resource: there, Accelerator: z.Accelerator}.What()
}
