package replay_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/scripts/logfile"
	"pitstop.internal/scripts/sim/replay"
	"pitstop.internal/scripts/sim/world"
)

const (
	aNode = `{"name":"projects/p/locations/z/nodes/n","acceleratorType":"v5litepod-32","id":"7711","createTime":"2026-11-01T00:00:00Z",
"labels":{"pitstop-workload":"llama"},"metadata":{"pitstop-checkpoint-dir":"gs://b/n"},"schedulingConfig":{"preemptible":true},
"queuedResource":"projects/p/locations/z/queuedResources/q"}`
	aQueue = `{"name":"projects/p/locations/z/queuedResources/q","state":{"state":"ACTIVE"},"spot":{},
"tpu":{"nodeSpec":[{"nodeId":"n","node":{"acceleratorType":"v5litepod-16","metadata":{"pitstop-checkpoint-dir":"gs://b/q"}}}]}}`
	aLegacy = `{"name":"projects/p/locations/z/nodes/old","acceleratorType":"v3-8","createTime":"2026-11-01T00:00:00Z","tensorflowVersion":"2.12.0",
"serviceAccount":"a@b","schedulingConfig":{"preemptible":true},"port":"8470"}`
	aFlex = `{"name":"projects/p/locations/z/nodes/f","acceleratorType":"v6e-8","createTime":"2026-11-01T00:00:00Z",
"schedulingConfig":{"provisioningModel":"FLEX_START"}}`
	aFlexQueue = `{"name":"projects/p/locations/z/queuedResources/fq","state":{"state":"ACTIVE"},"provisioningModel":"FLEX_START","runDuration":{"maxRunDuration":"7200s"},
"tpu":{"nodeSpec":[{"nodeId":"f","node":{"acceleratorType":"v6e-8"}}]}}`
	someNodes = `{"name":"projects/p/locations/z/queuedResources/two","state":{"state":"SUSPENDED"},
"tpu":{"nodeSpec":[{"multisliceParams":{"nodeCount":2},"node":{"acceleratorType":"v4-8"}}]}}`
)

func TestFleetReadsBothKindsOfListings(t *testing.T) {
	node := world.SliceConfig{
		Name: "n", Zone: "z", Accelerator: "v5litepod-32", Spot: true, ID: 7711, Created: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), QueuedResource: "q",
		Workload: "llama", Directory: "gs://b/n",
	}
	queued := world.SliceConfig{Name: "n", Zone: "z", Accelerator: "v5litepod-16", Spot: true, QueuedResource: "q", Directory: "gs://b/q"}
	for name, c := range map[string]struct {
		files []string
		want  []world.SliceConfig
	}{
		"nodes":                 {[]string{"[" + aNode + "]"}, []world.SliceConfig{node}},
		"queued resources":      {[]string{"[" + aQueue + "]"}, []world.SliceConfig{queued}},
		"both in one":           {[]string{"[" + aQueue + "," + aNode + "]"}, []world.SliceConfig{node}},
		"both, the nodes first": {[]string{"[" + aNode + "]", "[" + aQueue + "]"}, []world.SliceConfig{node}},
		"legacy nodes": {[]string{"[" + aLegacy + "]"}, []world.SliceConfig{{
			Name: "old", Zone: "z", Accelerator: "v3-8", Spot: true, Created: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC), Legacy: true,
		}}},
		"flex-start": {[]string{"[" + aFlex + "]"}, []world.SliceConfig{{
			Name: "f", Zone: "z", Accelerator: "v6e-8", RunsFor: world.LongestRun, Created: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
		}}},
		"flex-start, and the API says until when": {
			[]string{"[" + strings.Replace(aFlex, `"FLEX_START"`, `"FLEX_START","terminationTimestamp":"2026-11-02T00:00:00Z"`, 1) + "]"},
			[]world.SliceConfig{{
				Name: "f", Zone: "z", Accelerator: "v6e-8", RunsFor: world.Duration(24 * time.Hour), Created: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
			}},
		},
		"flex-start in a queue": {
			[]string{"[" + aFlexQueue + "]"},
			[]world.SliceConfig{{Name: "f", Zone: "z", Accelerator: "v6e-8", RunsFor: world.Duration(2 * time.Hour), QueuedResource: "fq"}},
		},
		"one of several nodes": {
			[]string{"[" + someNodes + "]"},
			[]world.SliceConfig{{Name: "two-0", Zone: "z", Accelerator: "v4-8", QueuedResource: "two"}, {Name: "two-1", Zone: "z", Accelerator: "v4-8", QueuedResource: "two"}},
		},
		"one that waits": {[]string{"[" + strings.Replace(aQueue, "ACTIVE", "WAITING_FOR_RESOURCES", 1) + "]"}, nil},
		"nothing":        {[]string{"[]"}, nil},
	} {
		var listings [][]world.SliceConfig
		for _, f := range c.files {
			l, err := replay.Fleet([]byte(f))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			listings = append(listings, l)
		}
		if d := cmp.Diff(c.want, replay.Fleets(listings...)); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	for text, says := range map[string]string{
		`{}`:                              "not a JSON list of TPUs",
		`[7]`:                             "TPU 1: ",
		`[{"name":"projects/p/zones/z"}]`: "neither that of a node nor that of a queued resource",
		`[{"name":"projects/p/locations/z/nodes/n","acceleratorType":"x"}]`:                                                                                 "TPU n: accelerator type",
		`[{"name":"projects/p/locations/z/queuedResources/q","state":{"state":"ACTIVE"},"tpu":{"nodeSpec":[{"nodeId":"n"}]}}]`:                              "TPU q: accelerator type",
		`[{"name":"projects/p/locations/z/queuedResources/q","state":{"state":"ACTIVE"},"tpu":{"nodeSpec":[{"nodeId":"n","node":{"acceleratorType":8}}]}}]`: "TPU q: ",
	} {
		if _, err := replay.Fleet([]byte(text)); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want an error that says %q", text, err, says)
		}
	}
}

// TestAQueuedResourceOfSeveralTPUsIsThereOnce plays a loss in one of two TPUs that stand in one queued resource.
func TestAQueuedResourceOfSeveralTPUsIsThereOnce(t *testing.T) {
	fleet, err := replay.Fleet([]byte("[" + strings.Replace(someNodes, "SUSPENDED", "ACTIVE", 1) + "]"))
	if err != nil {
		t.Fatal(err)
	}
	record := logfile.Record{Raw: []byte(`{"logName":"projects/p/logs/cloudaudit.googleapis.com%2Fsystem_event","timestamp":"2026-11-12T02:14:06Z",` +
		`"protoPayload":{"methodName":"tpu.nodes.terminate","resourceName":"projects/p/locations/z/nodes/two-1"}}`)}
	s, err := replay.Guess(t.Context(), []logfile.Record{record}, replay.Given{World: world.Scenario{Fleet: fleet}})
	if err != nil || len(s.Fleet) != 2 {
		t.Fatalf("%d slices, %v", len(s.Fleet), err)
	}
	story, err := replay.Run(t.Context(), "two", s, []logfile.Record{record}, replay.Options{})
	if err != nil || len(story.Faults) > 0 || len(story.Ended) != 1 || story.Ended[0].Workload != "p/two" {
		t.Errorf("%v, faults %v, ended %+v", err, story, story)
	}
}

// TestAFlexStartTPUThatIsTerminatedIsNotSpot: its run duration is over, and that is nobody's failure.
func TestAFlexStartTPUThatIsTerminatedIsNotSpot(t *testing.T) {
	for name, listing := range map[string]string{"a node": aFlex, "a queued resource": aFlexQueue} {
		fleet, err := replay.Fleet([]byte("[" + listing + "]"))
		if err != nil {
			t.Fatal(err)
		}
		record := logfile.Record{Raw: []byte(`{"logName":"projects/p/logs/cloudaudit.googleapis.com%2Fsystem_event","timestamp":"2026-11-08T00:00:20Z",` +
			`"protoPayload":{"methodName":"tpu.nodes.terminate","resourceName":"projects/p/locations/z/nodes/f"}}`)}
		s, err := replay.Guess(t.Context(), []logfile.Record{record}, replay.Given{World: world.Scenario{Fleet: fleet}})
		if err != nil || len(s.Fleet) != 1 || s.Fleet[0].Spot {
			t.Fatalf("%s: %+v, %v", name, s.Fleet, err)
		}
		story, err := replay.Run(t.Context(), "flex", s, []logfile.Record{record}, replay.Options{})
		if err != nil || len(story.Faults) > 0 || len(story.Ended) != 1 || story.Ended[0].Cause != "planned_end" || story.Ended[0].Cost.ChargedTo != "nobody" {
			t.Errorf("%s: %v, faults %v, ended %+v", name, err, story.Faults, story.Ended)
		}
	}
}

func FuzzFleet(f *testing.F) {
	f.Add([]byte("[" + aNode + "," + aQueue + "," + aFlex + "," + aFlexQueue + "," + someNodes + "]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		fleet, err := replay.Fleet(data)
		if err != nil {
			return
		}
		for _, c := range replay.Fleets(fleet, fleet) {
			if c.Name == "" || c.Zone == "" || c.Accelerator == "" {
				t.Errorf("a slice of which nothing is known: %+v", c)
			}
		}
	})
}
