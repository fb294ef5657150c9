package gke

import (
	"strings"
	"testing"
	"time"
)

// ago is a time so many minutes before now.
func ago(minutes int) time.Time { return now.Add(-time.Duration(minutes) * time.Minute) }

// unplaced has a Pod wait for a machine since a time, with the scheduler's words.
func unplaced(since time.Time, message string) func(*Pod) {
	return func(p *Pod) {
		waits(p)
		p.Status.Conditions[0].Since, p.Status.Conditions[0].Message = since, message
	}
}

// aWorkload is a Workload of the Job with that UID, and aRequest a ProvisioningRequest of the object with that UID.
func aWorkload(t *testing.T, of, active, conditions string) Workload {
	t.Helper()
	return parsed[Workload](t, `{"metadata":{"name":"job-llama","namespace":"teams","uid":"w1","creationTimestamp":"2026-11-12T10:00:00Z","ownerReferences":[{"kind":"Job","uid":"`+of+`","controller":true}]},`+
		`"spec":{"active":`+active+`},"status":{"conditions":[`+conditions+`]}}`)
}

func aRequest(t *testing.T, name, of, created, conditions string) ProvisioningRequest {
	t.Helper()
	return parsed[ProvisioningRequest](t, `{"metadata":{"name":"`+name+`","namespace":"teams","uid":"`+name+`","creationTimestamp":"`+created+`","ownerReferences":[{"kind":"Any","uid":"`+of+`"}]},`+
		`"status":{"conditions":[`+conditions+`]}}`)
}

// TestSinceWhenASliceWaits, and for what, in the cluster's own words.
func TestSinceWhenASliceWaits(t *testing.T) {
	const scheduler = "0/7 nodes are available: 2 Insufficient google.com/tpu, 5 node(s) didn't match Pod's node affinity/selector. " +
		"preemption: 0/7 nodes are available: 7 Preemption is not helpful for scheduling."
	held := func(finalizers string) string { return deleted + `,"finalizers":[` + finalizers + `]` }
	for name, c := range map[string]struct {
		change func(*Objects)
		state  State
		since  time.Time
		why    string
	}{
		"it is ready": {func(*Objects) {}, Ready, time.Time{}, "2 of 2 Pods are ready"},
		"no machine": {func(o *Objects) {
			o.Pods = []Pod{aPod(t, "a", "", unplaced(ago(30), scheduler)), aPod(t, "b", "", unplaced(ago(50), scheduler))}
		}, Creating, ago(50), "its Pod b waits for a machine: Unschedulable: Insufficient google.com/tpu, node(s) didn't match Pod's node affinity/selector"},
		"one of two has a machine": {func(o *Objects) {
			o.Pods = []Pod{aPod(t, "a", "", unplaced(ago(30), "")), aPod(t, "b", "n2", starts)}
		}, Creating, now.Add(-2 * time.Hour), "its Pod a waits for a machine: Unschedulable"},
		"its image cannot be had": {func(o *Objects) {
			pulls := func(p *Pod) {
				starts(p)
				p.Status.Conditions = conditions{{Type: "Ready", Status: "False", Since: ago(20)}}
				p.Status.Containers = parsed[Pod](t, `{"status":{"containerStatuses":[{"state":{"waiting":{"reason":"ImagePullBackOff"}}}]}}`).Status.Containers
			}
			o.Pods = []Pod{aPod(t, "a", "n1", pulls), aPod(t, "b", "n2", pulls)}
		}, Creating, ago(20), "2 of 2 Pods have a machine, and none is ready; its Pod a waits: ImagePullBackOff"},
		"one runs, and the other has no machine": {func(o *Objects) {
			o.Pods[1] = aPod(t, "b", "", unplaced(ago(30), scheduler))
		}, Unhealthy, time.Time{}, "1 of 2 Pods are ready; its Pod b waits for a machine: Unschedulable: Insufficient google.com/tpu, node(s) didn't match Pod's node affinity/selector"},
		"it has no Pods":                {func(o *Objects) { o.Pods = nil }, Creating, time.Time{}, "0 of 2 Pods have a machine, and none is ready"},
		"it was suspended a moment ago": {func(o *Objects) { o.Jobs = []Job{aJob(t, queued, `,"suspend":true`, "")} }, Creating, time.Time{}, "it is suspended, and a label names the queue night"},
		"its Slice is formed beside ready Pods": {func(o *Objects) {
			o.Slices = []Slice{parsed[Slice](t, `{"metadata":{"name":"s","annotations":{"slice.accelerator.gke.io/owner-workload-namespace":"teams","slice.accelerator.gke.io/owner-workload-name":"llama"}},`+
				`"status":{"conditions":[{"type":"Ready","status":"False","reason":"ACTIVATING","lastTransitionTime":"2026-11-12T11:50:00Z"}]}}`)}
		}, Creating, ago(10), "its Slice s is ACTIVATING"},
		"it waits for its turn": {func(o *Objects) {
			o.Jobs, o.Pods = []Job{aJob(t, queued, `,"suspend":true`, "")}, nil
		}, Creating, time.Time{}, "it is suspended, and a label names the queue night"},
		"Kueue has no quota for it": {func(o *Objects) {
			o.Jobs, o.Pods = []Job{aJob(t, queued, `,"suspend":true`, "")}, nil
			o.Workloads = []Workload{aWorkload(t, "j1", "true", `{"type":"QuotaReserved","status":"False","reason":"Pending","message":"8 more needed","lastTransitionTime":"2026-11-12T11:00:00Z"}`)}
		}, Creating, time.Time{}, "it is suspended, and a label names the queue night; its Workload job-llama has no quota since 2026-11-12T11:00:00Z: Pending: 8 more needed"},
		"Kueue evicted it": {func(o *Objects) {
			o.Jobs, o.Pods = []Job{aJob(t, queued, `,"suspend":true`, "")}, nil
			o.Workloads = []Workload{aWorkload(t, "j1", "true", `{"type":"QuotaReserved","status":"False"},{"type":"Evicted","status":"True","reason":"Preempted","lastTransitionTime":"2026-11-12T11:00:00Z"}`)}
		}, Creating, ago(60), "it is suspended, and a label names the queue night; its Workload job-llama is evicted since 2026-11-12T11:00:00Z: Preempted"},
		"its Workload is inactive": {func(o *Objects) {
			o.Jobs, o.Pods = []Job{aJob(t, queued, `,"suspend":true`, "")}, nil
			o.Workloads = []Workload{aWorkload(t, "j1", "false", `{"type":"Evicted","status":"True","reason":"Deactivated","lastTransitionTime":"2026-11-12T11:30:00Z"}`)}
		}, Creating, ago(30), "it is suspended, and a label names the queue night; its Workload job-llama is inactive since 2026-11-12T11:30:00Z: Deactivated; Kueue does not admit it until somebody sets spec.active"},
		"it has quota, and its machines have yet to be provided": {func(o *Objects) {
			o.Jobs, o.Pods = []Job{aJob(t, queued, `,"suspend":true`, "")}, nil
			o.Workloads = []Workload{aWorkload(t, "j1", "true", `{"type":"QuotaReserved","status":"True"}`)}
			o.Requests = []ProvisioningRequest{
				aRequest(t, "first", "w1", "2026-11-12T09:00:00Z", `{"type":"Failed","status":"True","message":"it was too long"}`),
				aRequest(t, "second", "w1", "2026-11-12T10:00:00Z", `{"type":"Provisioned","status":"False","reason":"Waiting","message":"no capacity","lastTransitionTime":"2026-11-12T11:10:00Z"}`),
			}
		}, Creating, ago(50), "it is suspended, and a label names the queue night; its ProvisioningRequest second is not provisioned since 2026-11-12T11:10:00Z: Waiting: no capacity"},
		"its Pods name a ProvisioningRequest that failed": {func(o *Objects) {
			o.Pods = []Pod{aPod(t, "a", "", unplaced(ago(30), "")), aPod(t, "b", "", unplaced(ago(30), ""))}
			o.Jobs[0].Spec.Template.Meta.Annotations = map[string]string{"autoscaling.x-k8s.io/consume-provisioning-request": "mine"}
			o.Requests = []ProvisioningRequest{aRequest(t, "mine", "", "2026-11-12T09:00:00Z", `{"type":"Failed","status":"True","reason":"Quota","message":"over quota","lastTransitionTime":"2026-11-12T11:50:00Z"}`)}
		}, Creating, ago(30), "its Pod b waits for a machine: Unschedulable; its ProvisioningRequest mine has failed since 2026-11-12T11:50:00Z: Quota: over quota"},
		"its machines were taken back before its Pods came": {func(o *Objects) {
			o.Pods = []Pod{aPod(t, "a", "", unplaced(ago(30), "")), aPod(t, "b", "", unplaced(ago(30), ""))}
			o.Requests = []ProvisioningRequest{aRequest(t, "mine", "j1", "2026-11-12T09:00:00Z", `{"type":"Provisioned","status":"True"},{"type":"CapacityRevoked","status":"True","lastTransitionTime":"2026-11-12T11:20:00Z"}`)}
		}, Creating, ago(40), "its Pod b waits for a machine: Unschedulable; its ProvisioningRequest mine has lost its machines again since 2026-11-12T11:20:00Z"},
		"its Pods name a ProvisioningRequest that has done its part for a former Job": {func(o *Objects) {
			o.Pods = []Pod{aPod(t, "a", "", unplaced(ago(30), "")), aPod(t, "b", "", unplaced(ago(30), ""))}
			o.Jobs[0].Spec.Template.Meta.Annotations = map[string]string{"autoscaling.x-k8s.io/consume-provisioning-request": "mine"}
			o.Requests = []ProvisioningRequest{aRequest(t, "mine", "", "2026-11-07T09:00:00Z", `{"type":"Provisioned","status":"True"},{"type":"BookingExpired","status":"True","lastTransitionTime":"2026-11-07T09:30:00Z"}`)}
		}, Creating, ago(30), "its Pod b waits for a machine: Unschedulable; its ProvisioningRequest mine no longer keeps its machines since 2026-11-07T09:30:00Z"},
		"it was created long after its ProvisioningRequest failed": {func(o *Objects) {
			o.Jobs[0].Created = ago(20)
			o.Pods = []Pod{aPod(t, "a", "", unplaced(ago(19), "")), aPod(t, "b", "", unplaced(ago(19), ""))}
			o.Jobs[0].Spec.Template.Meta.Annotations = map[string]string{"autoscaling.x-k8s.io/consume-provisioning-request": "mine"}
			o.Requests = []ProvisioningRequest{aRequest(t, "mine", "", "2026-11-07T09:00:00Z", `{"type":"Failed","status":"True","lastTransitionTime":"2026-11-07T09:30:00Z"}`)}
		}, Creating, ago(20), "its Pod b waits for a machine: Unschedulable; its ProvisioningRequest mine has failed since 2026-11-07T09:30:00Z"},
		"what it waited in has done its part": {func(o *Objects) {
			o.Pods = []Pod{aPod(t, "a", "", unplaced(ago(30), "")), aPod(t, "b", "", unplaced(ago(30), ""))}
			o.Workloads = []Workload{aWorkload(t, "j1", "true", `{"type":"QuotaReserved","status":"True"},{"type":"Admitted","status":"True"},{"type":"Evicted","status":"True"}`)}
			o.Requests = []ProvisioningRequest{aRequest(t, "mine", "w1", "2026-11-12T09:00:00Z", `{"type":"Provisioned","status":"True"}`)}
		}, Creating, ago(30), "its Pod b waits for a machine: Unschedulable"},
		"what waits is another's": {func(o *Objects) {
			o.Pods = []Pod{aPod(t, "a", "", unplaced(ago(30), "")), aPod(t, "b", "", unplaced(ago(30), ""))}
			o.Workloads = []Workload{aWorkload(t, "j2", "false", "")}
			o.Requests = []ProvisioningRequest{aRequest(t, "mine", "j2", "2026-11-12T09:00:00Z", "")}
		}, Creating, ago(30), "its Pod b waits for a machine: Unschedulable"},
		"it runs": {func(o *Objects) {
			o.Requests = []ProvisioningRequest{aRequest(t, "mine", "j1", "2026-11-12T09:00:00Z", `{"type":"BookingExpired","status":"True"}`)}
		}, Ready, time.Time{}, "2 of 2 Pods are ready"},
		"a finalizer holds it": {func(o *Objects) {
			o.Jobs, o.Pods = []Job{aJob(t, held(`"acme.dev/archive","orphan"`), "", "")}, nil
		}, Deleting, now.Add(-10 * time.Second), "the Job is being deleted; the finalizer acme.dev/archive holds the Job"},
		"its Pods hold it":        {alone(aJob(t, held(`"foregroundDeletion"`), "", "")), Deleting, now.Add(-10 * time.Second), "the Job is being deleted; 2 of its Pods have not ended"},
		"its JobSet is held":      {inSet(aJobSet(t, held(`"acme.dev/archive"`), "", ""), aJob(t, "", "", "")), Deleting, now.Add(-10 * time.Second), "its JobSet is being deleted; the finalizer acme.dev/archive holds the JobSet"},
		"its JobSet makes it new": {inSet(aJobSet(t, "", restarts, ""), aJob(t, held(`"acme.dev/archive"`), "", "")), Unhealthy, time.Time{}, "its JobSet makes the Job anew"},
	} {
		t.Run(name, func(t *testing.T) {
			o := gang(t)
			c.change(&o)
			all := Readings(o, "us-east5", "trainers", now)
			if len(all) != 1 {
				t.Fatalf("%d readings", len(all))
			}
			if r := all[0]; r.State != c.state || !r.WaitsSince.Equal(c.since) || r.Why != c.why {
				t.Errorf("it is %s since %v: %s\nwant %s since %v: %s", r.State, r.WaitsSince, r.Why, c.state, c.since, c.why)
			}
		})
	}
}

// TestASchedulersWordsStayTheSame while the machines come and go: a reading that changes is written.
func TestASchedulersWordsStayTheSame(t *testing.T) {
	for _, c := range [][2]string{
		{"0/3 nodes are available: 1 Insufficient cpu, 3 Insufficient google.com/tpu.", "0/12 nodes are available: 10 Insufficient google.com/tpu, 2 Insufficient cpu. preemption: not helpful"},
		{"no nodes available to schedule pods", "no  nodes\navailable to schedule pods"},
	} {
		if a, b := reduced(c[0]), reduced(c[1]); a != b || a == "" {
			t.Errorf("%q and %q", a, b)
		}
	}
	if got := reduced(strings.Repeat("é", 1000)); len([]rune(got)) != mostWords+1 {
		t.Errorf("%d characters", len([]rune(got)))
	}
}
