package flex

import (
	"bytes"
	"errors"
	"flag"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files again")

// options are those of a person who names nothing but the machines.
func options(change ...func(*Options)) Options {
	o := Options{
		Machine: "ct6e-standard-4t", Cluster: "CLUSTER", Location: "us-east5", Zones: "us-east5-a", Pool: "tpu-flex", Name: "training",
		Slices: 1, Image: "IMAGE", Directory: "gs://BUCKET/run", Policy: "POLICY", Command: []string{"python3", "train.py"},
	}
	for _, c := range change {
		c(&o)
	}
	return o
}

func on(machine, topology string) func(*Options) {
	return func(o *Options) { o.Machine, o.Topology = machine, topology }
}

func set(o *Options) { o.JobSet = true }

func slices2(o *Options) { o.Slices = 2 }

// plans are the kinds of plans that there are.
func plans() map[string]Options {
	return map[string]Options{
		"single-host":        options(on("ct6e-standard-8t", "")),
		"multi-host":         options(on("ct6e-standard-4t", "4x4")),
		"multi-host-jobset":  options(on("ct5p-hightpu-4t", "2x2x4"), set, func(o *Options) { o.Namespace, o.ServiceAccount = "teams", "trainer" }),
		"multislice":         options(on("ct5lp-hightpu-4t", "4x8"), slices2),
		"tpu7x":              options(on("tpu7x-standard-4t", "4x4x4"), func(o *Options) { o.Location, o.Zones = "us-central1-c", "us-central1-c" }),
		"single-host-jobset": options(on("ct5lp-hightpu-1t", ""), set),
	}
}

func made(t *testing.T, o Options) Plan {
	t.Helper()
	p, err := Make(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestPlansAreAsRecorded(t *testing.T) {
	for name, o := range plans() {
		p := made(t, o)
		for kind, text := range map[string]string{".sh": p.Text(false), "-nodes.sh": p.Text(true), ".yaml": p.Manifest} {
			file := filepath.Join("testdata", name+kind)
			if *update {
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(want), text); diff != "" {
				t.Errorf("%s (-recorded +made):\n%s", file, diff)
			}
		}
	}
}

// TestAPlanSaysWhatItCosts: all chips of all slices, by the hour and until Google takes the machines away.
func TestAPlanSaysWhatItCosts(t *testing.T) {
	two := options(on("ct6e-standard-4t", "4x4"), slices2, func(o *Options) { o.ChipHourPrice = 1.35 })
	const want = "# At $1.35 a chip-hour, 32 chips cost $43.20 an hour while the machines are there, and $7257.60 in 7 days.\n"
	for _, nodesOnly := range []bool{false, true} {
		if text := made(t, two).Text(nodesOnly); !strings.Contains(text, want) {
			t.Errorf("%s lacks %q", text, want)
		}
	}
}

// flags are those of the command of a pool.
func flags(t *testing.T, command string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, word := range strings.Fields(strings.ReplaceAll(command, "\\\n", " ")) {
		if name, value, _ := strings.Cut(word, "="); strings.HasPrefix(name, "--") {
			if _, twice := all[name]; twice {
				t.Errorf("%s stands twice in %q", name, command)
			}
			all[name] = value
		}
	}
	return all
}

// TestPoolsHaveWhatTheGuideAsksFor: the flags of Google's guide, for one machine and for several, and no other.
func TestPoolsHaveWhatTheGuideAsksFor(t *testing.T) {
	alone := map[string]string{
		"--cluster": "CLUSTER", "--location": "us-east5", "--node-locations": "us-east5-a", "--machine-type": "ct6e-standard-8t",
		"--reservation-affinity": "none", "--enable-autoscaling": "", "--flex-start": "", "--num-nodes": "0", "--min-nodes": "0", "--max-nodes": "1",
	}
	if diff := cmp.Diff(alone, flags(t, made(t, plans()["single-host"]).Pools[0])); diff != "" {
		t.Errorf("one machine (-guide +made):\n%s", diff)
	}
	several := map[string]string{"--tpu-topology": "4x4", "--no-enable-autorepair": ""}
	for name, value := range alone {
		several[name] = value
	}
	several["--machine-type"], several["--max-nodes"] = "ct6e-standard-4t", "4"
	if diff := cmp.Diff(several, flags(t, made(t, plans()["multi-host"]).Pools[0])); diff != "" {
		t.Errorf("several machines (-guide +made):\n%s", diff)
	}
	ironwood := made(t, plans()["tpu7x"]).Pools
	if len(ironwood) != 2 {
		t.Fatalf("the commands are %q, and should be a workload policy and a pool", ironwood)
	}
	policy, pool := flags(t, ironwood[0]), flags(t, ironwood[1])
	if policy["--accelerator-topology"] != "4x4x4" || policy["--type"] != "HIGH_THROUGHPUT" || policy["--region"] != "us-central1" {
		t.Errorf("the workload policy has %v", policy)
	}
	if _, has := pool["--tpu-topology"]; has || !strings.Contains(ironwood[0], "workload-policy "+pool["--placement-policy"]+" ") {
		t.Errorf("the pool has %v, and the policy is %q", pool, ironwood[0])
	}
	// In several zones the autoscaler is to take the zone that has machines, and not to keep the zones even.
	several["--location-policy"], several["--node-locations"] = "ANY", "us-east5-a,us-east5-b"
	zones := options(on("ct6e-standard-4t", "4x4"), func(o *Options) { o.Zones = "us-east5-a,us-east5-b" })
	if diff := cmp.Diff(several, flags(t, made(t, zones).Pools[0])); diff != "" {
		t.Errorf("several zones (-want +made):\n%s", diff)
	}
	if n := len(made(t, plans()["multislice"]).Pools); n != 2 {
		t.Errorf("two slices have %d pools", n)
	}
}

// documents reads a manifest as Kubernetes would: each document an object without a key that stands twice.
func documents(t *testing.T, manifest string) (all []map[string]any) {
	t.Helper()
	d := yaml.NewDecoder(bytes.NewReader([]byte(manifest)))
	for {
		var o map[string]any
		err := d.Decode(&o)
		if errors.Is(err, io.EOF) {
			return all
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, manifest)
		}
		all = append(all, o)
	}
}

// at walks down into an object; numbers are places in lists.
func at(t *testing.T, o any, path ...any) any {
	t.Helper()
	for i, step := range path {
		switch key := step.(type) {
		case string:
			m, ok := o.(map[string]any)
			if !ok || m[key] == nil {
				return nil
			}
			o = m[key]
		case int:
			l, ok := o.([]any)
			if !ok || len(l) <= key {
				t.Fatalf("%v: no element %d", path[:i], key)
			}
			o = l[key]
		}
	}
	return o
}

// TestManifestsHaveWhatTheGuideAsksFor: selectors, chips as request and limit, ports, privileges, and for several machines one
// indexed Pod on each, under a headless Service.
func TestManifestsHaveWhatTheGuideAsksFor(t *testing.T) {
	for _, c := range []struct {
		plan, accelerator, topology, kind string
		pods, chips                       int
	}{
		{"single-host", "tpu-v6e-slice", "2x4", "Job", 1, 8},
		{"multi-host", "tpu-v6e-slice", "4x4", "Job", 4, 4},
		{"multi-host-jobset", "tpu-v5p-slice", "2x2x4", "JobSet", 4, 4},
		{"multislice", "tpu-v5-lite-podslice", "4x8", "JobSet", 8, 4},
		{"tpu7x", "tpu7x", "4x4x4", "Job", 16, 4},
		{"single-host-jobset", "tpu-v5-lite-podslice", "1x1", "JobSet", 1, 1},
	} {
		objects := documents(t, made(t, plans()[c.plan]).Manifest)
		last := objects[len(objects)-1]
		job := at(t, last, "spec")
		if c.kind == "JobSet" {
			job = at(t, last, "spec", "replicatedJobs", 0, "template", "spec")
		}
		pod := at(t, job, "template", "spec")
		box := at(t, pod, "containers", 0)
		indexed := any(nil)
		if c.pods > 1 {
			indexed = "Indexed"
		}
		for _, f := range []struct {
			what      string
			got, want any
		}{
			{"kind", at(t, last, "kind"), c.kind},
			{"parallelism", at(t, job, "parallelism"), c.pods},
			{"completions", at(t, job, "completions"), c.pods},
			{"completionMode", at(t, job, "completionMode"), indexed},
			{"podReplacementPolicy", at(t, job, "podReplacementPolicy"), "Failed"},
			{"restartPolicy", at(t, pod, "restartPolicy"), "Never"},
			{"nodeSelector", at(t, pod, "nodeSelector"), map[string]any{
				"cloud.google.com/gke-flex-start": "true", "cloud.google.com/gke-tpu-accelerator": c.accelerator, "cloud.google.com/gke-tpu-topology": c.topology,
			}},
			{"requests", at(t, box, "resources", "requests"), map[string]any{"google.com/tpu": c.chips}},
			{"limits", at(t, box, "resources", "limits"), map[string]any{"google.com/tpu": c.chips}},
			{"privileged", at(t, box, "securityContext", "privileged"), true},
			{"ports", at(t, box, "ports"), []any{map[string]any{"containerPort": 8471}, map[string]any{"containerPort": 8431}}},
			{"command", at(t, box, "command"), []any{"pitcrew", "run", "--checkpoint-dir=gs://BUCKET/run", "--", "python3", "train.py"}},
		} {
			if diff := cmp.Diff(f.want, f.got); diff != "" {
				t.Errorf("%s: %s (-guide +made):\n%s", c.plan, f.what, diff)
			}
		}
		if c.kind == "Job" && c.pods > 1 {
			service := objects[0]
			if at(t, service, "kind") != "Service" || at(t, service, "spec", "clusterIP") != "None" ||
				at(t, service, "metadata", "name") != at(t, pod, "subdomain") || at(t, job, "backoffLimit") != 0 ||
				at(t, service, "spec", "selector", "batch.kubernetes.io/job-name") != at(t, last, "metadata", "name") {
				t.Errorf("%s: the Service %v does not lead to the Pods of %v", c.plan, service, at(t, pod, "subdomain"))
			}
		} else if len(objects) != 1 {
			t.Errorf("%s: there are %d objects", c.plan, len(objects))
		}
	}
}

// TestWhatALostMachineMeans: a Job of one machine ignores it, a JobSet begins again, and only a Job of several machines fails.
func TestWhatALostMachineMeans(t *testing.T) {
	rule := func(job any) any {
		if at(t, job, "podFailurePolicy") == nil {
			return nil
		}
		if at(t, job, "podFailurePolicy", "rules", 0, "action") != "FailJob" ||
			!cmp.Equal(at(t, job, "podFailurePolicy", "rules", 0, "onExitCodes", "values"), []any{2, 126, 127}) {
			t.Errorf("a wrong call does not end %v", job)
		}
		if !cmp.Equal(at(t, job, "podFailurePolicy", "rules", 1, "onPodConditions"), []any{map[string]any{"type": "DisruptionTarget", "status": "True"}}) {
			t.Errorf("a lost machine is not known by %v", job)
		}
		return at(t, job, "podFailurePolicy", "rules", 1, "action")
	}
	one := at(t, documents(t, made(t, plans()["single-host"]).Manifest)[0], "spec")
	if rule(one) != "Ignore" || at(t, one, "podFailurePolicy", "rules", 1, "onPodConditions", 0, "type") != "DisruptionTarget" {
		t.Errorf("one machine: %v", one)
	}
	set := at(t, documents(t, made(t, plans()["multi-host-jobset"]).Manifest)[0], "spec")
	if rule(at(t, set, "replicatedJobs", 0, "template", "spec")) != "FailJob" ||
		at(t, set, "failurePolicy", "rules", 0, "action") != "FailJobSet" || at(t, set, "failurePolicy", "rules", 1, "action") != "RestartJobSetAndIgnoreMaxRestarts" ||
		!cmp.Equal(at(t, set, "failurePolicy", "rules", 1, "onJobFailureReasons"), []any{"PodFailurePolicy"}) {
		t.Errorf("JobSet: %v", set)
	}
	for name, o := range plans() {
		p := made(t, o)
		if says := strings.Contains(p.Text(false), "JobSet 0.10 or later has to be in the cluster"); says != strings.Contains(p.Manifest, "kind: JobSet") {
			t.Errorf("%s: it says that it needs JobSet 0.10: %t", name, says)
		}
	}
	gang := made(t, plans()["multi-host"])
	if rule(at(t, documents(t, gang.Manifest)[1], "spec")) != nil || !strings.Contains(gang.Text(false), "stays Failed") {
		t.Errorf("several machines: %v", gang.Text(false))
	}
}

func TestMachinesFollowFromTheTopology(t *testing.T) {
	for _, c := range []struct {
		machine, topology string
		chips, nodes      int
	}{
		{"ct5lp-hightpu-1t", "", 1, 1},
		{"ct5lp-hightpu-4t", "2x2", 4, 1},
		{"ct5lp-hightpu-4t", "2x4", 8, 2},
		{"ct5lp-hightpu-4t", "16x16", 256, 64},
		{"ct5lp-hightpu-8t", "2x4", 8, 1},
		{"ct5p-hightpu-4t", "", 4, 1},
		{"ct5p-hightpu-4t", "2x2x2", 8, 2},
		{"ct5p-hightpu-4t", "4x4x12", 192, 48},
		{"ct5p-hightpu-4t", "16x16x24", 6144, 1536},
		{"ct6e-standard-1t", "1x1", 1, 1},
		{"ct6e-standard-4t", "4x4", 16, 4},
		{"ct6e-standard-8t", "", 8, 1},
		{"tpu7x-standard-1t", "", 1, 1},
		{"tpu7x-standard-4t", "2x2x1", 4, 1},
		{"tpu7x-standard-4t", "2x4x4", 32, 8},
		{"tpu7x-standard-4t", "4x4x4", 64, 16},
	} {
		s, err := SliceOf(c.machine, c.topology)
		if err != nil || s.Chips != c.chips || s.Nodes != c.nodes || s.Several() != (c.nodes > 1) {
			t.Errorf("%s %s: %d chips, %d machines, %v; want %d and %d", c.machine, c.topology, s.Chips, s.Nodes, err, c.chips, c.nodes)
		}
	}
}

// TestAWrongCallNamesTheWayOut: one line, which names what is wrong and what to name instead.
func TestAWrongCallNamesTheWayOut(t *testing.T) {
	for _, c := range []struct {
		change func(*Options)
		says   string
	}{
		{on("", ""), `--machine is missing: the machine type, as in --machine ct6e-standard-4t`},
		{on("n2-standard-4", ""), `machine type "n2-standard-4" has no TPU that is known here; flex-start takes ct5lp-hightpu-1t, `},
		{on("ct4p-hightpu-4t", "2x2x2"), `machine type ct4p-hightpu-4t (v4): GKE has no flex-start for it; flex-start begins with v5e`},
		{on("ct6e-standard-4t", "4by4"), `topology "4by4" cannot be read: it is AxB for v5e and v6e, as in 4x4, and AxBxC for v5p and TPU7x, as in 2x2x4`},
		{on("ct6e-standard-4t", "04x4"), `topology "04x4" cannot be read`},
		{on("ct6e-standard-4t", "4x-4"), `topology "4x-4" cannot be read`},
		{on("ct6e-standard-4t", "2x2x4"), `topology 2x2x4 has 3 sides, and ct6e-standard-4t (v6e) has 2, as in 2x2`},
		{on("tpu7x-standard-4t", "4x4"), `topology 4x4 has 2 sides, and tpu7x-standard-4t (TPU7x) has 3, as in 2x2x1`},
		{on("ct6e-standard-4t", "3x5"), `topology 3x5 is none of ct6e-standard-4t (v6e), which has 2x2, 2x4, 4x4, 4x8, 8x8, 8x16, 16x16`},
		{on("ct6e-standard-4t", "1x1"), `one chip is --machine ct6e-standard-1t`},
		{on("ct6e-standard-8t", "4x4"), `ct6e-standard-8t has 2x4 and not 4x4: it makes slices of one machine only; name --machine ct6e-standard-4t for 4x4`},
		{on("ct5lp-hightpu-1t", "2x4"), `name --machine ct5lp-hightpu-4t for 2x4; name --machine ct5lp-hightpu-8t for 2x4`},
		{on("ct5p-hightpu-4t", "8x4x4"), `topology 8x4x4: its sides go up, as in 4x4x8`},
		{on("ct5p-hightpu-4t", "4x4x6"), `from 4x4x4 on sides that are multiples of 4`},
		{on("ct5p-hightpu-4t", "16x16x28"), `topology 16x16x28 has 7168 chips, and a slice of ct5p-hightpu-4t (v5p) at most 6144: name a smaller one, or several slices with --slices`},
		{slices2, `--slices 2: GKE's Multislice takes slices of several machines, and ct6e-standard-4t with topology 2x2 is one machine; name a larger --topology`},
		{func(o *Options) { o.Slices = 0 }, `--slices 0: it is 1 to 99`},
		{func(o *Options) { o.Name = "Llama_8b" }, `--name "Llama_8b" is no name: one has up to 63 small letters, digits and hyphens, and begins with a letter`},
		{func(o *Options) { o.Name = "TRAINING" }, `--name "TRAINING" is no name: one has up to 63 small letters, digits and hyphens, and begins with a letter or a digit`},
		{func(o *Options) { o.Name = "llama-" }, `--name "llama-" is no name`},
		{func(o *Options) { o.Name, o.JobSet = "8b-llama", true }, `--name 8b-llama begins with a digit: JobSet, and the Service of several machines, take a name that begins with a letter`},
		{func(o *Options) { o.Name, o.Topology = "8b-llama", "4x4" }, `--name 8b-llama begins with a digit`},
		{func(o *Options) { o.Namespace = "MINE" }, `--namespace "MINE" is no name: one has up to 63`},
		{on("ct5p-hightpu-1t", ""), `machine type ct5p-hightpu-1t (v5p): it is not planned here, because its topologies were not checked; name --machine ct5p-hightpu-4t`},
		{on("ct5p-hightpu-2t", ""), `name --machine ct5p-hightpu-4t`},
		{func(o *Options) { o.Name = strings.Repeat("a", 45) }, `has 45 letters: it takes at most 43, because Kubernetes makes the Pods' names from it`},
		{func(o *Options) { o.Pool = strings.Repeat("a", 38) }, `GKE takes at most 37 for a node pool, with its number`},
		{func(o *Options) { o.Cluster = "a; rm -rf /" }, `--cluster "a; rm -rf /" is no name`},
		{func(o *Options) { o.Zones = "us-east5-a us-east5-b" }, `it names zones, separated by commas, as in us-east5-a,us-east5-b`},
		{func(o *Options) { o.Namespace = "a/b" }, `--namespace "a/b" is no name: one has up to 63`},
		{func(o *Options) { o.ServiceAccount = "a b" }, `--service-account "a b" is no name of a service account in Kubernetes`},
		{func(o *Options) { o.Image = "" }, `--image "" is no image: name one with pitcrew and your training in it`},
		{func(o *Options) { o.Directory = "file:///tmp" }, `--checkpoint-dir "file:///tmp": a Pod that comes again finds its checkpoints in a bucket only, as in gs://BUCKET/run`},
		{func(o *Options) { o.Policy = "" }, `--policy "" is no value of a label: name a preset or a policy of your policy file`},
		{func(o *Options) { o.Policy = "a: b" }, `--policy "a: b" is no value of a label`},
		{func(o *Options) { o.ChipHourPrice = -1 }, `--chip-hour-price -1: a price is no less than nothing`},
		{func(o *Options) { o.ChipHourPrice = math.NaN() }, `--chip-hour-price NaN: a price is no less than nothing`},
		{func(o *Options) { o.Command = nil }, `the training's command is missing: name it after --, as in -- python3 train.py`},
	} {
		_, err := Make(options(c.change))
		if err == nil || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%v, want %q", err, c.says)
		}
	}
}

// TestNamesAreThoseOfKubernetes: a Job of one machine and a namespace may begin with a digit.
func TestNamesAreThoseOfKubernetes(t *testing.T) {
	p := made(t, options(func(o *Options) { o.Name, o.Namespace = "8b", "2026" }))
	if o := documents(t, p.Manifest)[0]; at(t, o, "metadata", "name") != "8b" || at(t, o, "metadata", "namespace") != "2026" {
		t.Errorf("%v", o["metadata"])
	}
}

// TestEveryTopologyThatFitsMakesAPlan: whatever a person types, it is a plan whose machines hold all chips, or one line of error.
func TestEveryTopologyThatFitsMakesAPlan(t *testing.T) {
	fitted := 0
	rapid.Check(t, func(t *rapid.T) {
		side := rapid.SampledFrom([]string{"1", "2", "3", "4", "8", "12", "16", "24", "0", "x", "-1", "99999999999"})
		typed := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(side, 1, 4).Draw(t, "sides"), "x") })
		topology := rapid.OneOf(typed, rapid.SampledFrom([]string{"", "2x2", "2x4", "8x16", "2x2x1", "2x4x4", "4x8x12"})).Draw(t, "topology")
		o := options(on(rapid.SampledFrom(Machines()).Draw(t, "machine").Type, topology))
		o.JobSet = rapid.Bool().Draw(t, "jobset")
		p, err := Make(o)
		if err != nil {
			if strings.Contains(err.Error(), "\n") {
				t.Fatalf("%q", err)
			}
			return
		}
		fitted++
		if s := p.Slice; s.Nodes < 1 || s.Nodes*s.Machine.Chips != s.Chips {
			t.Fatalf("%+v", s)
		}
		var o1 map[string]any
		if err := yaml.Unmarshal([]byte(p.Manifest), &o1); err != nil {
			t.Fatal(err)
		}
	})
	if fitted == 0 {
		t.Error("no topology fitted")
	}
}

// expands does what Kubernetes does with a word of a command: $$ is $, and $(NAME) is the value of a variable.
func expands(word string) string {
	return regexp.MustCompile(`\$\$|\$\([^)]*\)`).ReplaceAllStringFunc(word, func(found string) string {
		if found == "$$" {
			return "$"
		}
		return "the value of a variable"
	})
}

// TestACommandStaysACommand: whatever the words of the training are, the container gets them as they were typed, and they cannot end
// the text that the shell hands to kubectl.
func TestACommandStaysACommand(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		word := rapid.OneOf(rapid.StringOf(rapid.RuneFrom([]rune("a-'\"$()\\\n\t :#&*{}[]%@`EOF"))), rapid.SampledFrom([]string{"\nEOF\n", "yes", "1e3", "~", "- x", "$(HOME)", "$$(HOME)", "$$"}))
		words := rapid.SliceOfN(word, 1, 4).Draw(t, "words")
		p, err := Make(options(func(o *Options) { o.Command = words }))
		if err != nil {
			t.Fatal(err)
		}
		var o struct {
			Spec struct {
				Template struct {
					Spec struct {
						Containers []struct{ Command []string }
					}
				}
			}
		}
		if err := yaml.Unmarshal([]byte(p.Manifest), &o); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, word := range o.Spec.Template.Spec.Containers[0].Command[4:] {
			got = append(got, expands(word))
		}
		if !cmp.Equal(got, words) {
			t.Fatalf("%q became %q", words, got)
		}
		for line := range strings.SplitSeq(p.Manifest, "\n") {
			if line == "EOF" {
				t.Fatalf("the manifest ends early:\n%s", p.Manifest)
			}
		}
	})
}
