package gke

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"pitstop.internal/events"
)

var now = time.Date(2026, 11, 12, 12, 0, 0, 0, time.UTC)

// parsed reads an object as a list of the API has it.
func parsed[T any](t testing.TB, text string) T {
	t.Helper()
	var o T
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return o
}

// aJob is a Job of two Pods with four chips each; more stands in its metadata, spec and status.
func aJob(t testing.TB, meta, spec, status string) Job {
	t.Helper()
	return parsed[Job](t, `{"metadata":{"name":"llama","namespace":"teams","uid":"j1","creationTimestamp":"2026-11-12T10:00:00Z"`+meta+`},`+
		`"spec":{"parallelism":2,"backoffLimit":0`+spec+`,"template":{"spec":{"nodeSelector":{"cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice","cloud.google.com/gke-tpu-topology":"2x4"},`+
		`"containers":[{"resources":{"requests":{"google.com/tpu":"4"},"limits":{"google.com/tpu":"4"}}}]}}},"status":{"startTime":"2026-11-12T10:00:00Z"`+status+`}}`)
}

// aPod is a Pod of the Job j1: on a machine, and ready.
func aPod(t testing.TB, name, node string, change ...func(*Pod)) Pod {
	t.Helper()
	p := parsed[Pod](t, fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"teams","creationTimestamp":"2026-11-12T10:00:00Z","ownerReferences":[{"kind":"Job","uid":"j1","controller":true}]},`+
		`"spec":{"nodeName":%q},"status":{"phase":"Running","startTime":"2026-11-12T10:05:00Z","conditions":[{"type":"Ready","status":"True"}]}}`, name, node))
	for _, c := range change {
		c(&p)
	}
	return p
}

func waits(p *Pod) {
	p.Spec.NodeName, p.Status.Phase, p.Status.Started = "", "Pending", nil
	p.Status.Conditions = conditions{{Type: "PodScheduled", Status: "False", Reason: "Unschedulable"}}
}

func endedWell(p *Pod) { p.Status.Phase, p.Status.Conditions = "Succeeded", nil }

func hasFailed(p *Pod) { p.Status.Phase, p.Status.Conditions = "Failed", nil }

func starts(p *Pod) { p.Status.Conditions, p.Status.Phase = nil, "Pending" }

func aNode(t testing.TB, name, meta, spec, ready string) Node {
	t.Helper()
	return parsed[Node](t, fmt.Sprintf(`{"metadata":{"name":%q,"creationTimestamp":"2026-11-12T09:00:00Z"%s},"spec":{%s},"status":{"conditions":[{"type":"Ready","status":%q}]}}`, name, meta, spec, ready))
}

// aJobSet is the JobSet of the Job llama-slice-0.
func aJobSet(t testing.TB, meta, spec, status string) JobSet {
	t.Helper()
	return parsed[JobSet](t, `{"metadata":{"name":"llama","namespace":"teams","uid":"s1"`+meta+`},"spec":{"replicatedJobs":[{"name":"slice","replicas":1,"template":{"spec":`+
		`{"parallelism":2,"template":{"spec":{"containers":[{"resources":{"limits":{"google.com/tpu":4}}}]}}}}}]`+spec+`},"status":{`+status+`}}`)
}

// gang are two Pods on two machines that are ready.
func gang(t testing.TB) Objects {
	t.Helper()
	return Objects{
		Jobs:  []Job{aJob(t, "", "", "")},
		Pods:  []Pod{aPod(t, "a", "n1"), aPod(t, "b", "n2")},
		Nodes: []Node{aNode(t, "n1", "", "", "True"), aNode(t, "n2", "", "", "True")},
	}
}

// inSet puts the Job into a JobSet.
func inSet(set JobSet, job Job) func(*Objects) {
	return func(o *Objects) {
		o.JobSets = []JobSet{set}
		job.Name, job.Owners = "llama-slice-0", []Owner{{"JobSet", "llama", "s1", true}}
		o.Jobs = []Job{job}
	}
}

func alone(job Job) func(*Objects) { return func(o *Objects) { o.Jobs = []Job{job} } }

func condition(typ, reason string) string {
	return fmt.Sprintf(`,"conditions":[{"type":%q,"status":"True","reason":%q}]`, typ, reason)
}

// failedBy is the condition of a Job that its pod failure policy ended.
func failedBy(message string) string {
	return fmt.Sprintf(`,"conditions":[{"type":"Failed","status":"True","reason":"PodFailurePolicy","message":%q}]`, message)
}

const (
	deleted  = `,"deletionTimestamp":"2026-11-12T11:59:50Z"`
	restarts = `,"failurePolicy":{"maxRestarts":3}`
	losses   = `,"podFailurePolicy":{"rules":[{"action":"FailJob","onExitCodes":{}},{"action":"FailJob","onPodConditions":[{"type":"DisruptionTarget","status":"True"}]}]}`
	rules    = `,"failurePolicy":{"maxRestarts":1,"rules":[{"action":"FailJobSet","onJobFailureReasons":["PodFailurePolicy"],"onJobFailureMessagePatterns":["(","failed with exit code (2|126|127) "]},` +
		`{"action":"RestartJobSetAndIgnoreMaxRestarts","onJobFailureReasons":["PodFailurePolicy"]}]}`
	odd    = `,"failurePolicy":{"maxRestarts":0,"rules":[{"action":"RestartGroup"}]}`
	queued = `,"labels":{"kueue.x-k8s.io/queue-name":"night"}`
)

func TestStates(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Objects)
		state  State
		heals  bool
		why    string
	}{
		"all are ready":                   {func(*Objects) {}, Ready, false, "2 of 2 Pods are ready"},
		"the Job is being deleted":        {alone(aJob(t, deleted, "", "")), Deleting, false, "the Job is being deleted"},
		"the Job is complete":             {alone(aJob(t, "", "", condition("Complete", "CompletionsReached"))), Done, false, "the Job is complete"},
		"the Job has failed":              {alone(aJob(t, "", "", condition("Failed", "BackoffLimitExceeded"))), Lost, false, "the Job has failed: BackoffLimitExceeded"},
		"the Job waits for its last Pods": {alone(aJob(t, "", "", condition("FailureTarget", "BackoffLimitExceeded"))), Unhealthy, false, "waits for Pods that have not ended"},
		"a person suspended it":           {alone(aJob(t, "", `,"suspend":true`, "")), Stopped, false, "it is suspended, and no label names a queue"},
		"Kueue suspended it":              {alone(aJob(t, queued, `,"suspend":true`, "")), Creating, false, "it is suspended, and a label names the queue night"},
		"it asks for no Pods": {
			func(o *Objects) { zero := 0; o.Pods, o.Jobs[0].Spec.Parallelism = nil, &zero }, Stopped, false, "its parallelism is 0",
		},
		"one Pod has ended well": {func(o *Objects) { o.Pods[1] = aPod(t, "b", "n2", endedWell) }, Ready, false, "1 of 2 Pods are ready, and 1 has ended well"},
		"one Pod has ended well, and its machine is gone": {
			func(o *Objects) { o.Pods[1], o.Nodes = aPod(t, "b", "n2", endedWell), o.Nodes[:1] }, Ready, false, "1 has ended well",
		},
		"all Pods have ended well": {func(o *Objects) { o.Pods = []Pod{aPod(t, "a", "n1", endedWell), aPod(t, "b", "n2", endedWell)} }, Ready, false, "all 2 Pods have ended well"},
		"one Pod ended well and is deleted": {
			func(o *Objects) {
				two := 2
				o.Jobs[0].Spec.Completions, o.Pods, o.Jobs[0].Status.Succeeded = &two, o.Pods[:1], 1
			}, Ready, false, "1 of 2 Pods are ready, and 1 has ended well",
		},
		"a machine is gone, retries are left, and a loss ends the Job": {
			func(o *Objects) {
				limit := 3
				o.Jobs, o.Nodes = []Job{aJob(t, "", losses, "")}, o.Nodes[:1]
				o.Jobs[0].Spec.BackoffLimit = &limit
			}, Unhealthy, false, "its machine n2 is gone",
		},
		"more are to end well than run at a time": {
			func(o *Objects) {
				ten := 10
				o.Jobs[0].Spec.Completions, o.Jobs[0].Status.Succeeded = &ten, 3
				o.Pods = append(o.Pods[:1], aPod(t, "c", "n2", endedWell), aPod(t, "d", "n2", endedWell), aPod(t, "e", "n2", endedWell))
			}, Unhealthy, false, "1 of 2 Pods are ready",
		},
		"its work is done": {
			func(o *Objects) {
				o.Jobs = []Job{aJob(t, "", "", condition("SuccessCriteriaMet", "CompletionsReached"))}
				o.Pods[1] = aPod(t, "b", "n2", func(p *Pod) { p.Deleted = &now })
			}, Done, false, "its work is done: CompletionsReached",
		},
		"a Pod is missing": {func(o *Objects) { o.Pods = o.Pods[:1] }, Unhealthy, false, "1 of 2 Pods are ready"},
		"a Pod is missing, and retries are left": {
			func(o *Objects) {
				limit := 3
				o.Pods, o.Jobs[0].Spec.BackoffLimit, o.Jobs[0].Status.Failed = o.Pods[:1], &limit, 2
			}, Unhealthy, true, "1 of 2 Pods are ready",
		},
		"a Pod is missing, and losses do not count": {
			func(o *Objects) {
				o.Pods = o.Pods[:1]
				o.Jobs = []Job{aJob(t, "", `,"podFailurePolicy":{"rules":[{"action":"FailJob","onExitCodes":{}},{"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget"}]}]}`, "")}
			}, Unhealthy, true, "1 of 2 Pods are ready",
		},
		"a Pod is being deleted": {func(o *Objects) { o.Pods[1] = aPod(t, "b", "n2", func(p *Pod) { p.Deleted = &now }) }, Unhealthy, false, "its Pod b is being deleted"},
		"a machine is not ready": {func(o *Objects) { o.Nodes[1] = aNode(t, "n2", "", "", "Unknown") }, Unhealthy, false, "its machine n2 is not ready"},
		"a machine is about to end": {
			func(o *Objects) {
				o.Nodes[1] = aNode(t, "n2", "", `"taints":[{"key":"cloud.google.com/impending-node-termination","effect":"NoSchedule"}]`, "True")
			}, Unhealthy, false, "its machine n2 is about to end",
		},
		"a machine is gone": {func(o *Objects) { o.Nodes = o.Nodes[:1] }, Unhealthy, false, "its machine n2 is gone"},
		"no machine yet":    {func(o *Objects) { o.Pods = []Pod{aPod(t, "a", "", waits), aPod(t, "b", "", waits)} }, Creating, false, "waits for a machine: Unschedulable"},
		"no Pod yet":        {func(o *Objects) { o.Pods = nil }, Creating, false, "0 of 2 Pods have a machine"},
		"the Pods start":    {func(o *Objects) { o.Pods = []Pod{aPod(t, "a", "n1", starts), aPod(t, "b", "n2", starts)} }, Creating, false, "2 of 2 Pods have a machine, and none is ready"},
		"ended Pods are none": {func(o *Objects) {
			o.Pods[1] = aPod(t, "b", "n9", hasFailed)
		}, Unhealthy, false, "1 of 2 Pods are ready"},
		"all Pods have failed": {
			func(o *Objects) { o.Pods = []Pod{aPod(t, "a", "n1", hasFailed), aPod(t, "b", "n9", hasFailed)} }, Unhealthy, false, "2 of its Pods have failed, and the Job has made no others",
		},
		"all Pods have failed, and retries are left": {
			func(o *Objects) {
				limit := 3
				o.Pods, o.Jobs[0].Spec.BackoffLimit = []Pod{aPod(t, "a", "n1", hasFailed)}, &limit
			}, Unhealthy, true, "1 of its Pods have failed, and the Job has made no others",
		},
		"a Pod comes after one that failed": {
			func(o *Objects) { o.Pods = []Pod{aPod(t, "a", "n1", hasFailed), aPod(t, "b", "n1", starts)} }, Creating, false, "1 of 2 Pods have a machine, and none is ready",
		},
		"the JobSet is deleted": {inSet(aJobSet(t, deleted, restarts, ""), aJob(t, "", "", "")), Deleting, false, "its JobSet is being deleted"},
		"the JobSet is complete": {
			inSet(aJobSet(t, "", restarts, `"terminalState":"Completed"`), aJob(t, "", "", condition("Complete", ""))), Done, false, "its JobSet is complete",
		},
		"the JobSet has failed": {
			inSet(aJobSet(t, "", restarts, `"terminalState":"Failed"`+condition("Failed", "ReachedMaxRestarts")), aJob(t, "", "", condition("Failed", ""))), Lost, false, "its JobSet has failed: ReachedMaxRestarts",
		},
		"the JobSet begins again": {
			inSet(aJobSet(t, "", restarts, `"restarts":1`+condition("RestartingJobSet", "DefaultFailurePolicy")), aJob(t, deleted, "", "")), Unhealthy, true, "its JobSet begins again: DefaultFailurePolicy",
		},
		"Kueue suspended the JobSet":                      {inSet(aJobSet(t, queued, `,"suspend":true`, ""), aJob(t, "", `,"suspend":true`, "")), Creating, false, "it is suspended, and a label names the queue night"},
		"a person suspended the JobSet":                   {inSet(aJobSet(t, "", `,"suspend":true`, ""), aJob(t, "", `,"suspend":true`, "")), Stopped, false, "it is suspended, and no label names a queue"},
		"the JobSet has yet to let it begin":              {inSet(aJobSet(t, "", "", ""), aJob(t, "", `,"suspend":true`, "")), Creating, false, "it is suspended, and its JobSet is not"},
		"the JobSet with a queue has yet to let it begin": {inSet(aJobSet(t, queued, "", ""), aJob(t, "", `,"suspend":true`, "")), Creating, false, "it is suspended, and its JobSet is not"},
		"a slice has failed, restarts are left": {
			inSet(aJobSet(t, "", restarts, `"restartsCountTowardsMax":2`), aJob(t, "", "", condition("Failed", ""))), Unhealthy, true, "its JobSet has restarts left",
		},
		"a slice has failed, none are left": {
			inSet(aJobSet(t, "", restarts, `"restartsCountTowardsMax":3`), aJob(t, "", "", condition("Failed", "BackoffLimitExceeded"))), Lost, false, "the Job has failed: BackoffLimitExceeded",
		},
		"a slice has failed, some do not count": {
			inSet(aJobSet(t, "", `,"failurePolicy":{"maxRestarts":1,"rules":[{"action":"RestartJobSetAndIgnoreMaxRestarts"}]}`, `"restartsCountTowardsMax":1`), aJob(t, "", "", condition("Failed", ""))),
			Unhealthy, true, "its JobSet has restarts left",
		},
		"a slice has failed, for a reason that counts": {
			inSet(aJobSet(t, "", rules, `"restartsCountTowardsMax":1`), aJob(t, "", "", condition("Failed", "BackoffLimitExceeded"))), Lost, false, "the Job has failed: BackoffLimitExceeded",
		},
		"a slice has failed, for a reason that does not count": {
			inSet(aJobSet(t, "", rules, `"restartsCountTowardsMax":1`), aJob(t, "", "", failedBy("Pod teams/a has condition DisruptionTarget matching FailJob rule at index 1"))),
			Unhealthy, true, "its JobSet has restarts left",
		},
		"a slice has failed, for a reason that ends the JobSet": {
			inSet(aJobSet(t, "", rules, ""), aJob(t, "", "", failedBy("Container training for pod teams/a failed with exit code 127 matching FailJob rule at index 0"))),
			Lost, false, "the Job has failed: PodFailurePolicy",
		},
		"a slice has failed, and the rule is for others": {
			inSet(aJobSet(t, "", `,"failurePolicy":{"maxRestarts":1,"rules":[{"action":"FailJobSet","targetReplicatedJobs":["leader"]}]}`, ""), aJob(t, "", "", condition("Failed", "x"))),
			Unhealthy, true, "its JobSet has restarts left",
		},
		"a slice has failed, and restarts of single Jobs count": {
			inSet(aJobSet(t, "", restarts, `"restartsCountTowardsMax":1,"replicatedJobsStatus":[{"name":"slice","jobRestartsCountTowardsMax":[1]},{"name":"other","jobRestartsCountTowardsMax":[0,1]}]`),
				aJob(t, "", "", condition("Failed", "x"))),
			Lost, false, "the Job has failed: x",
		},
		"a slice lost a Pod, and the loss does not count": {
			func(o *Objects) {
				inSet(aJobSet(t, "", rules, `"restartsCountTowardsMax":1`), aJob(t, "", losses, ""))(o)
				o.Nodes = o.Nodes[:1]
			}, Unhealthy, true, "its machine n2 is gone",
		},
		"a slice lost a Pod, and the loss counts": {
			func(o *Objects) {
				inSet(aJobSet(t, "", rules, `"restartsCountTowardsMax":1`), aJob(t, "", "", ""))(o)
				o.Nodes = o.Nodes[:1]
			}, Unhealthy, false, "its machine n2 is gone",
		},
		"a slice lost a Pod, and the Job itself has retries": {
			func(o *Objects) {
				j := aJob(t, "", "", "")
				limit := 2
				j.Spec.BackoffLimit = &limit
				inSet(aJobSet(t, "", "", ""), j)(o)
				o.Nodes = o.Nodes[:1]
			}, Unhealthy, true, "its machine n2 is gone",
		},
		"a slice has failed, and the action is not known": {
			inSet(aJobSet(t, "", odd, ""), aJob(t, "", "", condition("Failed", "x"))), Unhealthy, true, "its JobSet has yet to say what follows from the action RestartGroup",
		},
		"a slice has failed, the action is not known, and the JobSet has failed": {
			inSet(aJobSet(t, "", odd, `"terminalState":"Failed"`+condition("Failed", "x")), aJob(t, "", "", condition("Failed", "x"))), Lost, false, "its JobSet has failed: x",
		},
		"the Job is complete, and its time to live is over":    {alone(aJob(t, deleted, "", condition("Complete", "CompletionsReached"))), Done, false, "the Job is complete"},
		"its work is done, and it is being deleted":            {alone(aJob(t, deleted, "", condition("SuccessCriteriaMet", "x"))), Done, false, "its work is done: x"},
		"the Job has failed, and its time to live is over":     {alone(aJob(t, deleted, "", condition("Failed", "x"))), Deleting, false, "the Job is being deleted"},
		"the JobSet is complete, and its time to live is over": {inSet(aJobSet(t, deleted, restarts, `"terminalState":"Completed"`), aJob(t, "", "", "")), Done, false, "its JobSet is complete"},
		"the JobSet makes a complete Job anew":                 {inSet(aJobSet(t, "", restarts, ""), aJob(t, deleted, "", condition("Complete", ""))), Unhealthy, true, "its JobSet makes the Job anew"},
		"the JobSet makes the Job anew":                        {inSet(aJobSet(t, "", restarts, ""), aJob(t, deleted, "", "")), Unhealthy, true, "its JobSet makes the Job anew"},
		"the JobSet has yet to make it": {
			func(o *Objects) { *o = Objects{JobSets: []JobSet{aJobSet(t, "", restarts, "")}} }, Creating, false, "its JobSet has yet to make the Job",
		},
	} {
		o := gang(t)
		c.change(&o)
		all := Readings(o, "us-east5", "research", now)
		if len(all) != 1 {
			t.Errorf("%s: %d readings", name, len(all))
			continue
		}
		if r := all[0]; r.State != c.state || r.Heals != c.heals || !strings.Contains(r.Why, c.why) {
			t.Errorf("%s: %s, heals %t, %q; want %s, %t, %q", name, r.State, r.Heals, r.Why, c.state, c.heals, c.why)
		}
	}
}

func TestAReadingNamesItsSlice(t *testing.T) {
	o := gang(t)
	o.Jobs[0].Labels = map[string]string{"pitstop-policy": "spot"}
	o.Jobs[0].Annotations = map[string]string{"pitstop-checkpoint-dir": "gs://ckpt/llama"}
	want := Reading{
		Scope: "us-east5/research/teams", Name: "llama", Life: "j1", Workload: "llama", State: Ready, Workers: 2, Chips: 8, Accelerator: "tpu-v6e-slice", Topology: "2x4",
		Incarnation: events.Incarnation{Zone: "us-east5/research/teams", ID: "j1", Created: time.Date(2026, 11, 12, 10, 0, 0, 0, time.UTC)},
		Policy:      "spot", Directory: "gs://ckpt/llama", Why: "2 of 2 Pods are ready", Machines: []string{"n1", "n2"},
	}
	if diff := cmp.Diff([]Reading{want}, Readings(o, "us-east5", "research", now), cmpopts.IgnoreUnexported(Reading{})); diff != "" {
		t.Errorf("a Job (-want +read):\n%s", diff)
	}
	inSet(aJobSet(t, `,"labels":{"pitstop-policy":"night","pitstop-workload":"big"},"annotations":{"pitstop-checkpoint-dir":"gs://ckpt/set"}`, restarts, ""), aJob(t, "", "", ""))(&o)
	r := Readings(o, "us-east5", "research", now)[0]
	if r.Name != "llama-slice-0" || r.Group != "llama" || r.Workload != "big" || r.Policy != "night" || r.Directory != "gs://ckpt/set" || r.Incarnation.ID != "j1" || r.Life != "s1" {
		t.Errorf("a JobSet: %+v", r)
	}
}

func TestOnlyTrainingsOnTPUsAreRead(t *testing.T) {
	o := Objects{Jobs: []Job{parsed[Job](t, `{"metadata":{"name":"backup","uid":"x"},"spec":{"template":{"spec":{"containers":[{}]}}}}`)}}
	if all := Readings(o, "l", "c", now); len(all) != 0 {
		t.Errorf("%+v", all)
	}
}

// TestWhatIsLeftOfAJobKeepsItFromBeingGone: until everything has ended, another Job would write to the same checkpoints.
func TestWhatIsLeftOfAJobKeepsItFromBeingGone(t *testing.T) {
	training := func(p *Pod) {
		p.Labels = map[string]string{labelJobName: "llama", labelJobUID: "j1"}
		p.Spec.NodeSelector = map[string]string{LabelAccelerator: "tpu-v6e-slice"}
	}
	orphan := func(p *Pod) { p.Owners = nil }
	ofSet := func(p *Pod) { p.Labels[labelJobName], p.Labels[labelJobSet] = "llama-slice-0", "llama" }
	const pods = "its Pod a of the former Job has not ended"
	for name, c := range map[string]struct {
		change func(*Objects)
		want   string // the reading, or empty where it is gone
	}{
		"its Pods run on": {
			func(o *Objects) { o.Pods = []Pod{aPod(t, "b", "n2", training), aPod(t, "a", "n1", training)} }, "llama  deleting: " + pods,
		},
		"a Pod waits for a machine":    {func(o *Objects) { o.Pods = []Pod{aPod(t, "a", "", training, waits)} }, "llama  deleting: " + pods},
		"a Pod was deleted without it": {func(o *Objects) { o.Pods = []Pod{aPod(t, "a", "n1", training, orphan)} }, "llama  deleting: " + pods},
		"its Pods have ended": {func(o *Objects) {
			o.Pods = []Pod{aPod(t, "a", "n1", training, endedWell), aPod(t, "b", "n2", training, hasFailed)}
		}, ""},
		"a Pod is of something else": {func(o *Objects) { o.Pods = []Pod{aPod(t, "a", "n1")} }, ""},
		"a Pod is left of a JobSet":  {func(o *Objects) { o.Pods = []Pod{aPod(t, "a", "n1", training, ofSet)} }, "llama-slice-0 llama deleting: " + pods},
		"nothing is left":            {func(*Objects) {}, ""},
		"a Job is left, and no Pod":  {func(o *Objects) { inSet(aJobSet(t, "", "", ""), aJob(t, "", "", ""))(o); o.JobSets = nil }, "llama-slice-0 llama deleting: its JobSet no longer has it, and the Job has yet to be deleted"},
		"another Job has its name": {func(o *Objects) {
			o.Jobs = []Job{aJob(t, "", "", "")}
			o.Jobs[0].UID = "j2"
			o.Pods = []Pod{aPod(t, "a", "n1", training)}
		}, "llama  creating: 0 of 2 Pods have a machine, and none is ready"},
		"another JobSet makes its Job": {func(o *Objects) {
			o.JobSets = []JobSet{aJobSet(t, "", "", "")}
			o.Pods = []Pod{aPod(t, "a", "n1", training, ofSet)}
		}, "llama-slice-0 llama creating: its JobSet has yet to make the Job"},
	} {
		o := gang(t)
		o.Jobs, o.Pods = nil, nil
		c.change(&o)
		var got []string
		for _, r := range Readings(o, "us-east5", "research", now) {
			got = append(got, r.Name+" "+r.Group+" "+string(r.State)+": "+r.Why)
			if r.Remains != (r.State == Deleting) || r.Heals || r.Scope != "us-east5/research/teams" || r.Remains && (r.Life != "" || r.Incarnation.Known()) {
				t.Errorf("%s: %+v", name, r)
			}
		}
		if strings.Join(got, "; ") != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

func TestNoticesAndEnds(t *testing.T) {
	at := func(s string) time.Time {
		x, err := time.Parse(time.RFC3339, s)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	six := fmt.Sprint(at("2026-11-12T18:00:00Z").Unix())
	eight := fmt.Sprint(at("2026-11-12T20:00:00Z").Unix())
	for name, c := range map[string]struct {
		a, b    string // what the machines have in their metadata
		notice  *events.Notice
		ends    string
		assumed bool
	}{
		"nothing": {"", "", nil, "", false},
		"a label": {
			`,"labels":{"cloud.google.com/scheduled-maintenance-time":"` + six + `","cloud.google.com/scheduled-maintenance-time-latest":"` + eight + `"}`, "",
			&events.Notice{Status: events.NoticePending, WindowStart: at("2026-11-12T18:00:00Z"), LatestWindowStart: at("2026-11-12T20:00:00Z")}, "", false,
		},
		"a label that is no time": {`,"labels":{"cloud.google.com/scheduled-maintenance-time":"soon"}`, "", nil, "", false},
		"the earlier of two": {
			`,"labels":{"cloud.google.com/scheduled-maintenance-time":"` + eight + `"}`, `,"labels":{"cloud.google.com/scheduled-maintenance-time":"` + six + `"}`,
			&events.Notice{Status: events.NoticePending, WindowStart: at("2026-11-12T18:00:00Z")}, "", false,
		},
		"one under way counts first": {
			`,"labels":{"cloud.google.com/scheduled-maintenance-time":"` + six + `"}`, `,"labels":{"cloud.google.com/active-node-maintenance":"ONGOING"}`,
			&events.Notice{Status: events.NoticeOngoing}, "", false,
		},
		"an annotation in camel case": {
			`,"annotations":{"node.gke.io/upcoming-maintenance":"{\"type\":\"SCHEDULED\",\"maintenanceStatus\":\"PENDING\",\"canReschedule\":true,\"windowStartTime\":\"2026-11-12T18:00:00Z\",\"windowEndTime\":\"2026-11-12T22:00:00Z\",\"latestWindowStartTime\":\"2026-11-12T20:00:00Z\"}"}`, "",
			&events.Notice{
				Status: events.NoticePending, CanReschedule: true, WindowStart: at("2026-11-12T18:00:00Z"), WindowEnd: at("2026-11-12T22:00:00Z"), LatestWindowStart: at("2026-11-12T20:00:00Z"),
			}, "", false,
		},
		"one that cannot be moved, and a later one that can": {
			`,"labels":{"cloud.google.com/scheduled-maintenance-time":"` + six + `"}`,
			`,"annotations":{"node.gke.io/upcoming-maintenance":"{\"maintenanceStatus\":\"PENDING\",\"canReschedule\":true,\"windowStartTime\":\"2026-11-12T20:00:00Z\"}"}`,
			&events.Notice{Status: events.NoticePending, WindowStart: at("2026-11-12T18:00:00Z")}, "", false,
		},
		"one that can be moved, and a later one that cannot": {
			`,"annotations":{"node.gke.io/upcoming-maintenance":"{\"maintenanceStatus\":\"PENDING\",\"canReschedule\":true,\"windowStartTime\":\"2026-11-12T18:00:00Z\"}"}`,
			`,"labels":{"cloud.google.com/scheduled-maintenance-time":"` + eight + `"}`,
			&events.Notice{Status: events.NoticePending, WindowStart: at("2026-11-12T18:00:00Z")}, "", false,
		},
		"two that can be moved": {
			`,"annotations":{"node.gke.io/upcoming-maintenance":"{\"maintenanceStatus\":\"PENDING\",\"canReschedule\":true,\"windowStartTime\":\"2026-11-12T20:00:00Z\"}"}`,
			`,"annotations":{"node.gke.io/upcoming-maintenance":"{\"maintenanceStatus\":\"PENDING\",\"canReschedule\":\"true\",\"windowStartTime\":\"2026-11-12T18:00:00Z\"}"}`,
			&events.Notice{Status: events.NoticePending, CanReschedule: true, WindowStart: at("2026-11-12T18:00:00Z")}, "", false,
		},
		"an annotation with underscores": {
			`,"annotations":{"node.gke.io/upcoming-maintenance":"{\"maintenance_type\":\"UNSCHEDULED\",\"maintenance_status\":\"ONGOING\",\"can_reschedule\":\"TRUE\",\"window_start_time\":\"2026-11-12T18:00:00Z\"}"}`, "",
			&events.Notice{Status: events.NoticeOngoing, Unscheduled: true, CanReschedule: true, WindowStart: at("2026-11-12T18:00:00Z")}, "", false,
		},
		"an annotation that says nothing": {`,"annotations":{"node.gke.io/upcoming-maintenance":"{}"}`, "", nil, "", false},
		"an annotation that is no object": {`,"annotations":{"node.gke.io/upcoming-maintenance":"[]"}`, "", nil, "", false},
		"a planned end":                   {`,"annotations":{"node.gke.io/machine-termination-datetime":"2026-11-18T09:00:00Z"}`, "", nil, "2026-11-18T09:00:00Z", false},
		"a planned end in seconds":        {`,"annotations":{"node.gke.io/machine-termination-datetime":"` + six + `"}`, "", nil, "2026-11-12T18:00:00Z", false},
		"seven days of flex-start":        {`,"labels":{"cloud.google.com/gke-flex-start":"true"}`, "", nil, "2026-11-19T09:00:00Z", true},
		"the first end counts, whichever machine it is": {
			`,"annotations":{"node.gke.io/machine-termination-datetime":"2026-11-18T09:00:00Z"}`, `,"labels":{"cloud.google.com/gke-flex-start":"true"}`, nil, "2026-11-18T09:00:00Z", false,
		},
		"an annotation, and a label that it has begun": {
			`,"labels":{"cloud.google.com/active-node-maintenance":"ONGOING"},"annotations":{"node.gke.io/upcoming-maintenance":"{\"maintenanceStatus\":\"PENDING\"}"}`, "",
			&events.Notice{Status: events.NoticeOngoing}, "", false,
		},
		"the first end counts": {
			`,"labels":{"cloud.google.com/gke-flex-start":"true"}`, `,"annotations":{"node.gke.io/machine-termination-datetime":"2026-11-18T09:00:00Z"}`, nil, "2026-11-18T09:00:00Z", false,
		},
	} {
		o := gang(t)
		o.Nodes = []Node{aNode(t, "n1", c.a, "", "True"), aNode(t, "n2", c.b, "", "True"), aNode(t, "another", `,"labels":{"cloud.google.com/active-node-maintenance":"ONGOING"}`, "", "True")}
		r := Readings(o, "us-east5", "research", now)[0]
		if diff := cmp.Diff(c.notice, r.Notice); diff != "" {
			t.Errorf("%s: notice (-want +read):\n%s", name, diff)
		}
		ends := ""
		if !r.Ends.IsZero() {
			ends = r.Ends.Format(time.RFC3339)
		}
		if ends != c.ends || r.EndsAssumed != c.assumed {
			t.Errorf("%s: it ends at %q, assumed %t; want %q, %t", name, ends, r.EndsAssumed, c.ends, c.assumed)
		}
	}
}

func TestAPodThatDoesNotEndIsNamed(t *testing.T) {
	o := gang(t)
	due, lately := now.Add(-2*time.Minute), now.Add(-30*time.Second)
	o.Pods = append(o.Pods, aPod(t, "old", "n3", func(p *Pod) { p.Deleted = &due }), aPod(t, "leaving", "n2", func(p *Pod) { p.Deleted = &lately }),
		aPod(t, "ended", "n2", func(p *Pod) { p.Deleted, p.Status.Phase = &due, "Failed" }))
	if r := Readings(o, "l", "c", now)[0]; !cmp.Equal(r.Unended, []string{"old"}) {
		t.Errorf("%q", r.Unended)
	}
}

func TestSpotIsSeen(t *testing.T) {
	o := gang(t)
	if Readings(o, "l", "c", now)[0].Capacity == events.Spot {
		t.Error("flex-start and on-demand machines are not taken back")
	}
	o.Nodes[1].Labels = map[string]string{"cloud.google.com/gke-spot": "true"}
	if Readings(o, "l", "c", now)[0].Capacity != events.Spot {
		t.Error("a machine is Spot")
	}
}

// aSlice is a Slice whose owner is named so.
func aSlice(name, owner, reason string) Slice {
	s := Slice{Meta: Meta{Name: name, Annotations: map[string]string{annotationOwnerNamespace: "teams", annotationOwnerName: owner}}}
	s.Status.Conditions = conditions{{Type: "Other", Status: "True", Reason: "FAILED"}, {Type: "Ready", Status: "False", Reason: reason}}
	return s
}

// TestASliceSpeaksOfItsOwner: it names the Job or JobSet itself, or the Workload of this life of it in Kueue. The ends of
// those names are what sha1sum says of kind, group, name and UID, a line each.
func TestASliceSpeaksOfItsOwner(t *testing.T) {
	long := strings.Repeat("l", 60)
	for name, c := range map[string]struct {
		change func(*Objects)
		slices []Slice
		state  State
		heals  bool
		why    string
	}{
		"it is active":        {func(*Objects) {}, []Slice{aSlice("s", "llama", "ACTIVE")}, Ready, false, "2 of 2 Pods are ready"},
		"it is deactivated":   {func(*Objects) {}, []Slice{aSlice("s", "llama", "DEACTIVATING")}, Ready, false, "2 of 2 Pods are ready"},
		"its reason is new":   {func(*Objects) {}, []Slice{aSlice("s", "llama", "ODD")}, Ready, false, "2 of 2 Pods are ready"},
		"it says nothing yet": {func(*Objects) {}, []Slice{{Meta: aSlice("s", "llama", "").Meta}}, Ready, false, "2 of 2 Pods are ready"},
		"it has failed":       {func(*Objects) {}, []Slice{aSlice("s", "llama", "FAILED")}, Unhealthy, false, "its Slice s is FAILED"},
		"it is degraded":      {func(*Objects) {}, []Slice{aSlice("s", "llama", "ACTIVE_DEGRADED")}, Unhealthy, false, "its Slice s is ACTIVE_DEGRADED"},
		"it is activated":     {func(*Objects) {}, []Slice{aSlice("s", "llama", "ACTIVATING")}, Creating, false, "its Slice s is ACTIVATING"},
		"it is activated, and the Pods wait": {
			func(o *Objects) { o.Pods = []Pod{aPod(t, "a", "", waits)} }, []Slice{aSlice("s", "llama", "ACTIVATING")}, Creating, false, "its Slice s is ACTIVATING",
		},
		"it has failed, and the Pods wait": {
			func(o *Objects) { o.Pods = []Pod{aPod(t, "a", "", waits)} }, []Slice{aSlice("s", "llama", "FAILED")}, Unhealthy, false, "its Slice s is FAILED",
		},
		"it has failed, and the Job has retries": {
			func(o *Objects) { two := 2; o.Jobs[0].Spec.BackoffLimit = &two }, []Slice{aSlice("s", "llama", "FAILED")}, Unhealthy, true, "its Slice s is FAILED",
		},
		"it has failed, and a loss ends the Job": {
			func(o *Objects) {
				two := 2
				o.Jobs = []Job{aJob(t, "", losses, "")}
				o.Jobs[0].Spec.BackoffLimit = &two
			}, []Slice{aSlice("s", "llama", "FAILED")}, Unhealthy, false, "its Slice s is FAILED",
		},
		"a machine is gone as well": {
			func(o *Objects) { o.Nodes = o.Nodes[:1] }, []Slice{aSlice("s", "llama", "FAILED")}, Unhealthy, false, "its machine n2 is gone; its Slice s is FAILED",
		},
		"a machine is gone, and it is activated": {
			func(o *Objects) { o.Nodes = o.Nodes[:1] }, []Slice{aSlice("s", "llama", "ACTIVATING")}, Unhealthy, false, "its machine n2 is gone",
		},
		"the Job has failed": {
			alone(aJob(t, "", "", condition("Failed", "BackoffLimitExceeded"))),
			[]Slice{aSlice("s", "llama", "FAILED")},
			Lost, false,
			"the Job has failed: BackoffLimitExceeded; its Slice s is FAILED",
		},
		"the Job is complete":    {alone(aJob(t, "", "", condition("Complete", ""))), []Slice{aSlice("s", "llama", "FAILED")}, Done, false, "the Job is complete"},
		"Kueue suspended it":     {alone(aJob(t, queued, `,"suspend":true`, "")), []Slice{aSlice("s", "llama", "FAILED")}, Creating, false, "it is suspended, and a label names the queue night"},
		"a person suspended it":  {alone(aJob(t, "", `,"suspend":true`, "")), []Slice{aSlice("s", "llama", "FAILED")}, Stopped, false, "it is suspended, and no label names a queue"},
		"the worst of all":       {func(*Objects) {}, []Slice{aSlice("a", "llama", "ACTIVATING"), aSlice("c", "llama", "FAILED"), aSlice("b", "llama", "FAILED"), aSlice("d", "llama", "ACTIVE_DEGRADED")}, Unhealthy, false, "its Slice b is FAILED"},
		"another owner":          {func(*Objects) {}, []Slice{aSlice("s", "other", "FAILED")}, Ready, false, "2 of 2 Pods are ready"},
		"nobody's":               {func(*Objects) {}, []Slice{aSlice("s", "", "FAILED")}, Ready, false, "2 of 2 Pods are ready"},
		"another namespace":      {func(o *Objects) { o.Jobs[0].Namespace = "others" }, []Slice{aSlice("s", "llama", "FAILED")}, Ready, false, "2 of 2 Pods are ready"},
		"Kueue's Workload of it": {func(*Objects) {}, []Slice{aSlice("s", "job-llama-5361a", "FAILED")}, Unhealthy, false, "its Slice s is FAILED"},
		"Kueue's Workload of an earlier life": {
			func(o *Objects) { o.Jobs[0].UID = "j2"; o.Pods[0].Owners[0].UID, o.Pods[1].Owners[0].UID = "j2", "j2" }, []Slice{aSlice("s", "job-llama-5361a", "FAILED")}, Ready, false, "2 of 2 Pods are ready",
		},
		"Kueue's Workload with a long name, cut off": {
			func(o *Objects) { o.Jobs[0].Name = long }, []Slice{aSlice("s", "job-"+long[:53]+"-f20ea", "FAILED")}, Unhealthy, false, "its Slice s is FAILED",
		},
		"Kueue's Workload with a long name": {
			func(o *Objects) { o.Jobs[0].Name = long }, []Slice{aSlice("s", "job-"+long+"-f20ea", "FAILED")}, Unhealthy, false, "its Slice s is FAILED",
		},
		"it is of the JobSet": {
			inSet(aJobSet(t, "", restarts, ""), aJob(t, "", "", "")), []Slice{aSlice("s", "jobset-llama-939d3", "FAILED")}, Unhealthy, true, "the Slice s of its JobSet is FAILED",
		},
		"it is of the JobSet, by its name": {
			inSet(aJobSet(t, "", "", ""), aJob(t, "", "", "")), []Slice{aSlice("s", "llama", "ACTIVE_DEGRADED")}, Unhealthy, false, "the Slice s of its JobSet is ACTIVE_DEGRADED",
		},
		"it is of the Job in the JobSet": {
			inSet(aJobSet(t, "", "", ""), aJob(t, "", "", "")), []Slice{aSlice("s", "llama-slice-0", "FAILED"), aSlice("a", "llama", "ACTIVATING")}, Unhealthy, false, "its Slice s is FAILED",
		},
		"the JobSet begins again": {
			inSet(aJobSet(t, "", restarts, `"restarts":1`+condition("RestartingJobSet", "DefaultFailurePolicy")), aJob(t, deleted, "", "")),
			[]Slice{aSlice("s", "llama", "FAILED")},
			Unhealthy, true,
			"its JobSet begins again: DefaultFailurePolicy; the Slice s of its JobSet is FAILED",
		},
	} {
		o := gang(t)
		c.change(&o)
		o.Slices = c.slices
		all := Readings(o, "us-east5", "research", now)
		if len(all) != 1 || all[0].State != c.state || all[0].Heals != c.heals || all[0].Why != c.why {
			t.Errorf("%s: %+v; want %s, heals %t: %s", name, all, c.state, c.heals, c.why)
		}
	}
}

// TestATrainingThatLostItsSliceDidNotCrash: its Pods ended with an error because the TPU was no whole any more.
func TestATrainingThatLostItsSliceDidNotCrash(t *testing.T) {
	o := gang(t)
	o.Jobs = []Job{aJob(t, "", "", condition("Failed", "BackoffLimitExceeded"))}
	o.Pods[1] = parsed[Pod](t, `{"metadata":{"name":"b","namespace":"teams","ownerReferences":[{"kind":"Job","uid":"j1","controller":true}]},"spec":{"nodeName":"n2"},`+
		`"status":{"phase":"Failed","containerStatuses":[{"state":{"terminated":{"exitCode":1,"reason":"Error"}}}]}}`)
	for reason, want := range map[string]events.Cause{"ACTIVE": events.CauseCrash, "ACTIVATING": events.CauseCrash, "FAILED": "", "ACTIVE_DEGRADED": ""} {
		o.Slices = []Slice{aSlice("s", "llama", reason)}
		if r := Readings(o, "l", "c", now)[0]; r.State != Lost || r.Cause != want {
			t.Errorf("%s: %s, cause %q: %s", reason, r.State, r.Cause, r.Why)
		}
	}
}

// TestAMachineThatRefusesAPodIsAtFault: a kubelet whose TPU has no healthy chips lets no Pod in, and each refusal counts as a failure of
// the Job.
func TestAMachineThatRefusesAPodIsAtFault(t *testing.T) {
	pod := func(name, created, status string) Pod {
		return parsed[Pod](t, fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"teams","creationTimestamp":%q,"ownerReferences":[{"kind":"Job","uid":"j1","controller":true}]},`+
			`"spec":{"nodeName":"n1"},"status":{"phase":"Failed",%s}}`, name, created, status))
	}
	refused := func(name, created, reason string) Pod {
		return pod(name, created, fmt.Sprintf(`"reason":%q,"message":"Pod was rejected: Allocate failed due to requested number of devices unavailable for google.com/tpu. Requested: 4, Available: 0, which is unexpected"`, reason))
	}
	crashed := pod("a", "2026-11-12T09:00:00Z", `"containerStatuses":[{"state":{"terminated":{"exitCode":1,"reason":"Error","finishedAt":"2026-11-12T11:38:00Z"}}}]`)
	const says = "its Pod b was refused by the machine n1: UnexpectedAdmissionError"
	failed := `,"conditions":[{"type":"Failed","status":"True","reason":"BackoffLimitExceeded","lastTransitionTime":"2026-11-12T11:40:30Z"}]`
	for name, c := range map[string]struct {
		job  string
		pods []Pod
		want events.Cause
		says bool
	}{
		"alone":                        {failed, []Pod{refused("b", "2026-11-12T11:39:00Z", "UnexpectedAdmissionError")}, "", true},
		"after the training had ended": {failed, []Pod{crashed, refused("b", "2026-11-12T11:39:00Z", "UnexpectedAdmissionError")}, "", true},
		"for another resource":         {failed, []Pod{crashed, refused("b", "2026-11-12T11:39:00Z", "OutOfgoogle.com/tpu")}, "", false},
		"long before":                  {failed, []Pod{refused("b", "2026-11-12T09:00:00Z", "UnexpectedAdmissionError"), crashed}, events.CauseCrash, false},
		"for another reason":           {failed, []Pod{crashed, refused("b", "2026-11-12T11:39:00Z", "DeadlineExceeded")}, events.CauseCrash, false},
		"while the Job goes on":        {`,"failed":1`, []Pod{refused("b", "2026-11-12T11:39:00Z", "UnexpectedAdmissionError")}, "", true},
	} {
		o := gang(t)
		o.Jobs, o.Pods = []Job{aJob(t, "", "", c.job)}, c.pods
		one := 1
		o.Jobs[0].Spec.Parallelism = &one
		r := Readings(o, "l", "c", now)[0]
		if r.Cause != c.want || strings.Contains(r.Why, says) != c.says || (r.State == Lost) != (c.job == failed) {
			t.Errorf("%s: %s, cause %q: %s", name, r.State, r.Cause, r.Why)
		}
	}
}

// TestWhatAJobHadBorneDidNotEndIt: Pods stay listed after they have ended, and what happened to one explains the failure of its Job only
// where the Job failed with it.
func TestWhatAJobHadBorneDidNotEndIt(t *testing.T) {
	ended := func(name, node, at, conditions string) Pod {
		return parsed[Pod](t, fmt.Sprintf(`{"metadata":{"name":%q,"namespace":"teams","ownerReferences":[{"kind":"Job","uid":"j1","controller":true}]},"spec":{"nodeName":%q},`+
			`"status":{"phase":"Failed","containerStatuses":[{"state":{"terminated":{"exitCode":1,"reason":"Error"%s}}}]%s}}`, name, node, at, conditions))
	}
	const (
		hoursAgo = `,"finishedAt":"2026-11-12T09:00:00Z"`
		then     = `,"finishedAt":"2026-11-12T11:40:05Z"`
		taken    = `,"conditions":[{"type":"DisruptionTarget","status":"True","lastTransitionTime":"2026-11-12T09:00:00Z"}]`
	)
	at := func(typ, since string) string {
		return fmt.Sprintf(`{"type":%q,"status":"True","reason":"BackoffLimitExceeded","lastTransitionTime":%q}`, typ, since)
	}
	failed := `,"conditions":[` + at("Failed", "2026-11-12T11:40:30Z") + `]`
	for name, c := range map[string]struct {
		job  string
		pods []Pod
		want events.Cause
	}{
		"it ended hours before":                              {failed, []Pod{ended("a", "n1", hoursAgo, "")}, ""},
		"it ended then":                                      {failed, []Pod{ended("a", "n1", then, "")}, events.CauseCrash},
		"it does not say when":                               {failed, []Pod{ended("a", "n1", "", "")}, events.CauseCrash},
		"the Job does not say when":                          {condition("Failed", "BackoffLimitExceeded"), []Pod{ended("a", "n1", hoursAgo, "")}, events.CauseCrash},
		"one ended then, and another hours before":           {failed, []Pod{ended("a", "n1", hoursAgo, ""), ended("b", "n2", then, "")}, events.CauseCrash},
		"a machine took one along hours before":              {failed, []Pod{ended("a", "n1", "", taken), ended("b", "n2", then, "")}, events.CauseCrash},
		"the machine of one that ended hours before is gone": {failed, []Pod{ended("a", "gone", hoursAgo, ""), ended("b", "n2", then, "")}, events.CauseCrash},
		"the machine of one that ended then is gone":         {failed, []Pod{ended("a", "gone", then, ""), ended("b", "n2", then, "")}, ""},
		"the Job then waited long for its other Pods": {
			`,"conditions":[` + at("FailureTarget", "2026-11-12T09:00:10Z") + "," + at("Failed", "2026-11-12T11:40:30Z") + `]`,
			[]Pod{ended("a", "n1", hoursAgo, "")},
			events.CauseCrash,
		},
	} {
		o := gang(t)
		o.Jobs, o.Pods = []Job{aJob(t, "", "", c.job)}, c.pods
		if len(c.pods) == 1 {
			one := 1
			o.Jobs[0].Spec.Parallelism = &one
		}
		if r := Readings(o, "l", "c", now)[0]; r.State != Lost || r.Cause != c.want {
			t.Errorf("%s: %s, cause %q: %s", name, r.State, r.Cause, r.Why)
		}
	}
}

// TestWhenASliceFailed: its JobSet says it, or else the Job that makes no more Pods. What comes back has not failed for good.
func TestWhenASliceFailed(t *testing.T) {
	const target, failed = "2026-11-12T11:38:00Z", "2026-11-12T11:40:30Z"
	at := func(conditions ...string) string { return `"conditions":[` + strings.Join(conditions, ",") + `]` }
	is := func(typ, since string) string {
		return fmt.Sprintf(`{"type":%q,"status":"True","reason":"BackoffLimitExceeded","lastTransitionTime":%q}`, typ, since)
	}
	for name, c := range map[string]struct {
		change func(*Objects)
		want   string
	}{
		"its Job": {func(o *Objects) { o.Jobs[0] = aJob(t, "", "", ","+at(is("Failed", failed))) }, failed},
		"its Job, once its Pods end": {func(o *Objects) {
			o.Jobs[0] = aJob(t, "", "", ","+at(is("FailureTarget", target), is("Failed", failed)))
		}, target},
		"its JobSet": {
			inSet(aJobSet(t, "", "", at(is("Failed", failed))), aJob(t, "", "", ","+at(is("Failed", target)))), failed,
		},
		"its JobSet, which does not say when": {inSet(aJobSet(t, "", "", `"terminalState":"Failed"`), aJob(t, "", "", ","+at(is("Failed", target)))), ""},
		"it has not":                          {func(*Objects) {}, ""},
	} {
		o := gang(t)
		c.change(&o)
		got := Readings(o, "l", "c", now)[0].slice("demo").Evidence("id").Facts.Failed
		if s := got.Format(time.RFC3339); s != c.want && !(got.IsZero() && c.want == "") {
			t.Errorf("%s: it failed at %s, want %s", name, s, c.want)
		}
	}
}

// TestACrashIsProvenByTheWholeGang: a Pod that is listed no more may have been collected with its machine, and the others followed it. But a
// failed Job ends its other Pods itself, and then all machines of the slice stand.
func TestACrashIsProvenByTheWholeGang(t *testing.T) {
	of := func(pool string) string { return `,"labels":{"cloud.google.com/gke-nodepool":"` + pool + `"}` }
	since := func(n Node, at string) Node {
		return parsed[Node](t, fmt.Sprintf(`{"metadata":{"name":%q,"creationTimestamp":"2026-11-12T09:00:00Z","labels":{"cloud.google.com/gke-nodepool":"a"}},`+
			`"status":{"conditions":[{"type":"Ready","status":"True","lastTransitionTime":%q}]}}`, n.Name, at))
	}
	for name, c := range map[string]struct {
		change func(*Objects)
		want   events.Cause
	}{
		"its machines stand":                          {func(*Objects) {}, events.CauseCrash},
		"the other Pod is listed":                     {func(o *Objects) { o.Nodes = o.Nodes[:1]; o.Pods = append(o.Pods, aPod(t, "b", "n1", hasFailed)) }, events.CauseCrash},
		"the other machine is gone":                   {func(o *Objects) { o.Nodes = o.Nodes[:1] }, events.CauseUnknown},
		"the other machine is not ready":              {func(o *Objects) { o.Nodes[1] = aNode(t, "n2", of("a"), "", "False") }, events.CauseUnknown},
		"the other machine is of another pool":        {func(o *Objects) { o.Nodes[1] = aNode(t, "n2", of("b"), "", "True") }, events.CauseUnknown},
		"no machine names its pool":                   {func(o *Objects) { o.Nodes[0].Labels, o.Nodes[1].Labels = nil, nil }, events.CauseUnknown},
		"the pool has more machines":                  {func(o *Objects) { o.Nodes = append(o.Nodes, aNode(t, "n3", of("a"), "", "True")) }, events.CauseUnknown},
		"the other machine came later":                {func(o *Objects) { o.Nodes[1].Created = now }, events.CauseUnknown},
		"the other machine had been well":             {func(o *Objects) { o.Nodes[1] = since(o.Nodes[1], "2026-11-12T11:40:00Z") }, events.CauseCrash},
		"the other machine is being maintained":       {func(o *Objects) { o.Nodes[1].Labels[labelActive] = "ONGOING" }, events.CauseUnknown},
		"maintenance of the other one was begun":      {func(o *Objects) { o.Nodes[1].Labels[LabelMaintain] = "true" }, events.CauseUnknown},
		"its own machine is being maintained":         {func(o *Objects) { o.Nodes[0].Labels[labelActive] = "ONGOING" }, ""},
		"maintenance of its own machine was begun":    {func(o *Objects) { o.Nodes[0].Labels[LabelMaintain] = "true" }, ""},
		"the other machine was unwell for a while":    {func(o *Objects) { o.Nodes[1] = since(o.Nodes[1], "2026-11-12T11:50:00Z") }, events.CauseUnknown},
		"the slice is another one than its node pool": {func(o *Objects) { o.Jobs[0].Spec.Template.Spec.NodeSelector[labelTopology] = "2x2" }, events.CauseUnknown},
		"the Pod does not say when it ended":          {func(o *Objects) { o.Pods[0].Status.Containers[0].State.Terminated.At = time.Time{} }, events.CauseUnknown},
	} {
		o := Objects{
			Jobs:  []Job{aJob(t, "", "", `,"conditions":[{"type":"Failed","status":"True","reason":"BackoffLimitExceeded","lastTransitionTime":"2026-11-12T11:40:30Z"}]`)},
			Nodes: []Node{aNode(t, "n1", of("a"), "", "True"), aNode(t, "n2", of("a"), "", "True")},
			Pods: []Pod{parsed[Pod](t, `{"metadata":{"name":"a","namespace":"teams","ownerReferences":[{"kind":"Job","uid":"j1","controller":true}]},"spec":{"nodeName":"n1"},`+
				`"status":{"phase":"Failed","containerStatuses":[{"state":{"terminated":{"exitCode":1,"reason":"Error","finishedAt":"2026-11-12T11:40:05Z"}}}]}}`)},
		}
		c.change(&o)
		if r := Readings(o, "l", "c", now)[0]; r.State != Lost || r.Cause != c.want {
			t.Errorf("%s: %s, cause %q: %s", name, r.State, r.Cause, r.Why)
		}
	}
}

// TestTheOrderOfListsMeansNothing: a cluster lists its objects as it likes.
func TestTheOrderOfListsMeansNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		o := gang(t)
		o.JobSets = append(o.JobSets, aJobSet(t, "", restarts, ""))
		o.Jobs = append(o.Jobs, parsed[Job](t, `{"metadata":{"name":"other","namespace":"teams","uid":"j2"},"spec":{"template":{"spec":{"containers":[{"resources":{"limits":{"google.com/tpu":4}}}]}}}}`))
		o.Nodes[0].Labels = map[string]string{labelScheduled: "1794000000"}
		o.Slices = []Slice{aSlice("a", "llama", "ACTIVATING"), aSlice("b", "llama", "FAILED"), aSlice("c", "llama", "FAILED"), aSlice("d", "llama-slice-0", "FAILED")}
		o.JobSets[0].Spec.Suspend = true
		o.JobSets[0].Labels = map[string]string{labelQueue: "night"}
		o.Workloads = []Workload{{Meta: Meta{Name: "x", UID: "w1", Owners: []Owner{{UID: "s1"}}}}, {Meta: Meta{Name: "y", UID: "w2", Owners: []Owner{{UID: "s1"}}}}}
		o.Workloads[1].Status.Conditions = conditions{{Type: "QuotaReserved", Status: "True"}}
		o.Requests = []ProvisioningRequest{{Meta: Meta{Name: "a", Owners: []Owner{{UID: "w2"}}}}, {Meta: Meta{Name: "b", Owners: []Owner{{UID: "w2"}}}}}
		want := Readings(o, "l", "c", now)
		o.Jobs = rapid.Permutation(o.Jobs).Draw(rt, "jobs")
		o.Pods = rapid.Permutation(o.Pods).Draw(rt, "pods")
		o.Nodes = rapid.Permutation(o.Nodes).Draw(rt, "nodes")
		o.Slices = rapid.Permutation(o.Slices).Draw(rt, "slices")
		o.Requests = rapid.Permutation(o.Requests).Draw(rt, "requests")
		o.Workloads = rapid.Permutation(o.Workloads).Draw(rt, "workloads")
		if diff := cmp.Diff(want, Readings(o, "l", "c", now), cmpopts.IgnoreUnexported(Reading{})); diff != "" || len(want) != 3 {
			rt.Fatalf("%d readings (-want +read):\n%s", len(want), diff)
		}
		if !strings.HasSuffix(want[1].Why, "its ProvisioningRequest b is not provisioned") {
			rt.Fatalf("%s", want[1].Why)
		}
	})
}

// FuzzReadings: whatever a cluster lists, each training has one reading with a known state and a reason.
func FuzzReadings(f *testing.F) {
	f.Add(`[{"metadata":{"name":"a","uid":"j1"},"spec":{"parallelism":-1,"template":{"spec":{"containers":[{"resources":{"limits":{"google.com/tpu":"1e9"}}}]}}}}]`,
		`[{"metadata":{"name":"s","uid":"s1"},"spec":{"replicatedJobs":[{"name":"x","replicas":99999999,"template":{"spec":{"template":{"spec":{"nodeSelector":{"cloud.google.com/gke-tpu-accelerator":"t"}}}}}}]}}]`,
		`[{"metadata":{"ownerReferences":[{"kind":"Job","uid":"j1","controller":true}],"deletionTimestamp":null},"spec":{"nodeName":"n"}}]`,
		`[{"metadata":{"name":"n","annotations":{"node.gke.io/upcoming-maintenance":"{","node.gke.io/machine-termination-datetime":"-1"}}}]`,
		`[{"metadata":{"name":"x","annotations":{"slice.accelerator.gke.io/owner-workload-name":"a"}},"status":{"conditions":[{"type":"Ready","reason":"FAILED"}]}}]`,
		`[{"metadata":{"name":"r","ownerReferences":[{"uid":"j1"}]},"status":{"conditions":[{"type":"Failed","status":"True","message":"no\ncapacity"}]}}]`,
		`[{"metadata":{"name":"w","ownerReferences":[{"uid":"s1"}]},"spec":{"active":false}}]`)
	f.Fuzz(func(t *testing.T, jobs, sets, pods, nodes, formed, requests, workloads string) {
		var o Objects
		for _, x := range []struct {
			text string
			into any
		}{{jobs, &o.Jobs}, {sets, &o.JobSets}, {pods, &o.Pods}, {nodes, &o.Nodes}, {formed, &o.Slices}, {requests, &o.Requests}, {workloads, &o.Workloads}} {
			if json.Unmarshal([]byte(x.text), x.into) != nil {
				return
			}
		}
		for _, r := range Readings(o, "l", "c", now) {
			switch r.State {
			case Creating, Ready, Unhealthy, Stopped, Lost, Deleting, Done:
			default:
				t.Errorf("%+v", r)
			}
			if r.Why == "" || r.Heals && r.State != Unhealthy {
				t.Errorf("%+v", r)
			}
		}
	})
}
