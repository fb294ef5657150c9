package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/flex"
	"pitstop.internal/shared/provider/gke"
)

// bed is a namespace with machines of its own, and a client that reads it.
type bed struct {
	*Plane
	gke.Client
	t         testing.TB
	namespace string
	labels    map[string]any // those that the Pods' node selector asks for
}

const labelCase = "pitstop.example/case"

func newBed(t testing.TB, p *Plane, name string) *bed {
	t.Helper()
	b := &bed{Plane: p, t: t, namespace: name, Client: gke.Client{
		HTTP: p.HTTP, URL: p.URL, Namespace: name, Token: func(context.Context) (string, error) { return p.Token, nil },
	}}
	b.create(map[string]any{"kind": "Namespace", "apiVersion": "v1", "metadata": map[string]any{
		"name": name, "annotations": map[string]any{"scheduler.alpha.kubernetes.io/node-selector": labelCase + "=" + name},
	}})
	t.Cleanup(func() { b.remove("/api/v1/namespaces/" + name) })
	return b
}

func (b *bed) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bed) create(o map[string]any) {
	b.t.Helper()
	b.must(b.Create(b.t.Context(), b.namespace, o))
}

func (b *bed) patch(path string, change map[string]any) {
	b.t.Helper()
	b.must(b.Do(b.t.Context(), http.MethodPatch, path, change, nil))
}

// remove deletes an object, which a cleanup does also after the context of its test.
func (b *bed) remove(path string) {
	b.t.Helper()
	b.must(b.Do(context.WithoutCancel(b.t.Context()), http.MethodDelete, path, nil, nil))
}

func (b *bed) path(kind, name string) string { return Path(kind, b.namespace) + "/" + name }

func within(o map[string]any, path ...string) map[string]any {
	for _, step := range path {
		o, _ = o[step].(map[string]any)
	}
	return o
}

// plans applies what pitstop flex plan --yaml prints, unchanged, or changed by a case. Machines can be made from then on.
func (b *bed) plans(o flex.Options, change ...func(spec map[string]any)) {
	b.t.Helper()
	for _, o := range b.plan(o) {
		if selector := within(template(o), "nodeSelector"); selector != nil {
			b.labels = selector
			for _, c := range change {
				c(within(o, "spec"))
			}
		}
		b.create(o)
	}
}

// plan is what plans applies.
func (b *bed) plan(o flex.Options) []map[string]any {
	b.t.Helper()
	o.Cluster, o.Location, o.Zones, o.Pool, o.Name = "research", "us-east5", "us-east5-a", "tpu-flex", "llama"
	o.Image, o.Directory, o.Command, o.Slices = "llama:1", cmp.Or(o.Directory, "gs://research/llama"), []string{"python3", "train.py"}, max(o.Slices, 1)
	o.Policy = cmp.Or(o.Policy, "watch")
	plan, err := flex.Make(o)
	b.must(err)
	objects, err := Objects([]byte(plan.Manifest))
	b.must(err)
	return objects
}

// template is the specification of the Pods that a Job or JobSet makes.
func template(o map[string]any) map[string]any {
	spec := within(o, "spec")
	if replicated, ok := spec["replicatedJobs"].([]any); ok {
		first, _ := replicated[0].(map[string]any)
		spec = within(first, "template", "spec")
	}
	return within(spec, "template", "spec")
}

// machine makes a machine as a node pool for the plan would: with its labels, and the taint of TPUs.
func (b *bed) machine(name, pool string, chips int) string {
	b.t.Helper()
	name = b.namespace + "-" + name
	all := map[string]any{labelCase: b.namespace, "cloud.google.com/gke-nodepool": b.namespace + "-" + pool, "kubernetes.io/hostname": name}
	maps.Copy(all, b.labels)
	size := map[string]any{"google.com/tpu": fmt.Sprint(chips), "cpu": "24", "memory": "48Gi", "pods": "15"}
	b.create(map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": name, "labels": all, "annotations": map[string]any{annotationSimulated: "fake"}},
		"spec":     map[string]any{"taints": []any{map[string]any{"key": "google.com/tpu", "value": "present", "effect": "NoSchedule"}}},
		"status":   map[string]any{"capacity": size, "allocatable": size},
	})
	b.t.Cleanup(func() { // a case may have lost it
		_ = b.Do(context.WithoutCancel(b.t.Context()), http.MethodDelete, "/api/v1/nodes/"+name, nil, nil) //nolint:errcheck // likewise
	})
	return name
}

// reading is the reading of a slice at a time so much later than now; there is none while the cluster lists none.
func (b *bed) reading(name string, later time.Duration) (r gke.Reading, is bool) {
	b.t.Helper()
	o, err := b.List(b.t.Context())
	b.must(err)
	all := gke.Readings(o, "us-east5", "research", time.Now().Add(later))
	i := slices.IndexFunc(all, func(r gke.Reading) bool { return r.Name == name })
	if i < 0 {
		return gke.Reading{}, false
	}
	return all[i], true
}

// follow reads a slice until it is told so, and returns that reading. Until then it may be in these states only.
func (b *bed) follow(name, what string, so func(gke.Reading) bool, until ...gke.State) gke.Reading {
	b.t.Helper()
	var last gke.Reading
	for end := time.Now().Add(150 * time.Second); time.Now().Before(end); time.Sleep(250 * time.Millisecond) { // time passes by itself here
		r, is := b.reading(name, 0)
		switch {
		case is && so(r):
			return r
		case is && !slices.Contains(until, r.State):
			b.t.Fatalf("%s is %s: %s; it may be %v, until %s", name, r.State, r.Why, until, what)
		}
		last = r
	}
	b.t.Fatalf("%s: it does not come to this: %s; it is %+v", name, what, last)
	return last
}

func (b *bed) ready(name string) gke.Reading {
	b.t.Helper()
	return b.follow(name, "it is ready", is(gke.Ready), gke.Creating, gke.Unhealthy) // while it begins, some of its Pods are ready before others
}

func is(s gke.State) func(gke.Reading) bool { return func(r gke.Reading) bool { return r.State == s } }

// says that a slice is in that state, whether it heals, and that the reason has these words.
func says(s gke.State, heals bool, words string) func(gke.Reading) bool {
	return func(r gke.Reading) bool { return r.State == s && r.Heals == heals && strings.Contains(r.Why, words) }
}

// gone waits until the cluster lists a slice no more.
func (b *bed) gone(name string, until ...gke.State) {
	b.t.Helper()
	for end := time.Now().Add(60 * time.Second); time.Now().Before(end); time.Sleep(250 * time.Millisecond) { // time passes by itself here
		r, is := b.reading(name, 0)
		if !is {
			return
		}
		if !slices.Contains(until, r.State) {
			b.t.Fatalf("%s is %s: %s", name, r.State, r.Why)
		}
	}
	b.t.Fatalf("%s does not go", name)
}

// pods are the Pods of a Job, in the order of their indexes.
func (b *bed) pods(job string) (all []gke.Pod) {
	b.t.Helper()
	o, err := b.List(b.t.Context())
	b.must(err)
	for _, p := range o.Pods {
		if p.Labels["batch.kubernetes.io/job-name"] == job && p.Deleted == nil {
			all = append(all, p)
		}
	}
	slices.SortFunc(all, func(x, y gke.Pod) int { return strings.Compare(x.Name, y.Name) })
	return all
}

// exits ends a Pod with a code, as its machine would write it.
func (b *bed) exits(pod gke.Pod, code int) {
	b.t.Helper()
	phase, now := "Failed", time.Now().UTC().Format(time.RFC3339)
	if code == 0 {
		phase = "Succeeded"
	}
	b.patch(b.path("Pod", pod.Name)+"/status", map[string]any{"status": map[string]any{"phase": phase, "containerStatuses": []any{map[string]any{
		"name": "training", "image": "llama:1", "imageID": "", "ready": false, "restartCount": 0,
		"state": map[string]any{"terminated": map[string]any{"exitCode": code, "startedAt": now, "finishedAt": now}},
	}}}})
}

// evict asks the API to evict a Pod, as a drain does.
func (b *bed) evict(pod gke.Pod) {
	b.t.Helper()
	b.must(b.Do(b.t.Context(), http.MethodPost, b.path("Pod", pod.Name)+"/eviction", map[string]any{
		"apiVersion": "policy/v1", "kind": "Eviction", "metadata": map[string]any{"name": pod.Name, "namespace": b.namespace},
	}, nil))
}

// The plans of the cases.

func singleHost() flex.Options {
	return flex.Options{Machine: "ct6e-standard-8t"}
}

func multiHost() flex.Options {
	return flex.Options{Machine: "ct6e-standard-4t", Topology: "2x4"}
}

func asJobSet(o flex.Options, slices int) flex.Options {
	o.JobSet, o.Slices = true, slices
	return o
}

// losses are the cases: each applies a plan, loses it in some way, and checks what the readings say.
var losses = map[string]func(b *bed){
	"a single host through its life": func(b *bed) {
		b.plans(singleHost())
		b.follow("llama", "it waits for a machine", says(gke.Creating, false, "waits for a machine: Unschedulable"), gke.Creating)
		node := b.machine("a", "pool", 8)
		r := b.ready("llama")
		if r.Workers != 1 || r.Chips != 8 || r.Accelerator != "tpu-v6e-slice" || r.Topology != "2x4" || r.Workload != "llama" || r.Scope != "us-east5/research/"+b.namespace {
			b.t.Errorf("%+v", r)
		}
		if !r.EndsAssumed || time.Until(r.Ends) < 7*24*time.Hour-time.Minute || time.Until(r.Ends) > 7*24*time.Hour {
			b.t.Errorf("it ends at %v, assumed %v", r.Ends, r.EndsAssumed)
		}
		start := time.Now().Add(3 * time.Hour).Truncate(time.Second).UTC()
		b.patch("/api/v1/nodes/"+node, map[string]any{"metadata": map[string]any{
			"labels":      map[string]any{"cloud.google.com/scheduled-maintenance-time": fmt.Sprint(start.Unix())},
			"annotations": map[string]any{"node.gke.io/machine-termination-datetime": start.Add(time.Hour).Format(time.RFC3339)},
		}})
		r = b.follow("llama", "maintenance is announced", func(r gke.Reading) bool { return r.Notice != nil }, gke.Ready)
		if r.Notice.Status != events.NoticePending || !r.Notice.WindowStart.Equal(start) || r.EndsAssumed || !r.Ends.Equal(start.Add(time.Hour)) {
			b.t.Errorf("%+v, it ends at %v", r.Notice, r.Ends)
		}
		b.exits(b.pods("llama")[0], 0)
		b.follow("llama", "it is done", is(gke.Done), gke.Ready)
		b.patch(b.path("Job", "llama"), map[string]any{"spec": map[string]any{"ttlSecondsAfterFinished": 1}})
		b.gone("llama", gke.Done, gke.Deleting)
	},
	"a single host without its machine": func(b *bed) {
		b.plans(singleHost())
		node := b.machine("a", "pool", 8)
		r := b.ready("llama")
		b.remove("/api/v1/nodes/" + node)
		b.follow("llama", "its machine is gone", says(gke.Unhealthy, true, "its machine "+node+" is gone"), gke.Ready)
		b.follow("llama", "another Pod waits for a machine", says(gke.Creating, false, "waits for a machine: Unschedulable"), gke.Unhealthy, gke.Creating)
		b.machine("b", "pool", 8)
		if n := b.ready("llama"); n.Incarnation != r.Incarnation {
			b.t.Errorf("the Job is the same: %+v was %+v", n, r)
		}
	},
	"a single host that fails, and retries": func(b *bed) {
		b.plans(singleHost())
		b.machine("a", "pool", 8)
		b.ready("llama")
		b.exits(b.pods("llama")[0], 1)
		b.follow("llama", "the Job waits before it retries", says(gke.Unhealthy, true, "1 of its Pods have failed"), gke.Ready)
		b.ready("llama")
	},
	"a single host with a wrong call": func(b *bed) {
		b.plans(singleHost())
		b.machine("a", "pool", 8)
		b.ready("llama")
		b.exits(b.pods("llama")[0], 127)
		b.follow("llama", "it is lost", says(gke.Lost, false, "PodFailurePolicy"), gke.Ready, gke.Unhealthy)
		b.patch(b.path("Job", "llama"), map[string]any{"spec": map[string]any{"ttlSecondsAfterFinished": 1}})
		b.gone("llama", gke.Lost, gke.Deleting)
	},
	"a gang without one of its machines": func(b *bed) {
		b.plans(multiHost())
		b.machine("a", "pool", 4)
		b.follow("llama", "one of two runs", says(gke.Unhealthy, false, "1 of 2 Pods are ready"), gke.Creating, gke.Unhealthy)
		b.machine("b", "pool", 4)
		if r := b.ready("llama"); r.Workers != 2 || r.Chips != 8 {
			b.t.Errorf("%+v", r)
		}
		node := b.pods("llama")[1].Spec.NodeName
		b.remove("/api/v1/nodes/" + node)
		b.follow("llama", "its machine is gone", says(gke.Unhealthy, false, "its machine "+node+" is gone"), gke.Ready)
		b.machine("c", "pool", 4) // it is of no use any more
		b.follow("llama", "it is lost", says(gke.Lost, false, "BackoffLimitExceeded"), gke.Unhealthy)
	},
	"a gang whose machine is about to end": func(b *bed) {
		b.plans(multiHost())
		node := b.machine("a", "pool", 4)
		b.machine("b", "pool", 4)
		b.ready("llama")
		b.patch("/api/v1/nodes/"+node, map[string]any{"spec": map[string]any{"taints": []any{
			map[string]any{"key": "cloud.google.com/impending-node-termination", "effect": "NoSchedule"},
		}}})
		b.follow("llama", "its machine is about to end", says(gke.Unhealthy, false, "its machine "+node+" is about to end"), gke.Ready)
	},
	"a gang with a silent machine": func(b *bed) {
		b.plans(multiHost())
		b.machine("a", "pool", 4)
		b.machine("b", "pool", 4)
		b.ready("llama")
		pod := b.pods("llama")[0]
		b.must(b.Silence(b.t.Context(), pod.Spec.NodeName))
		b.follow("llama", "its machine is silent", says(gke.Unhealthy, false, "its machine "+pod.Spec.NodeName+" is not ready"), gke.Ready)
		b.follow("llama", "its Pod should end", says(gke.Unhealthy, false, "its Pod "+pod.Name+" is being deleted"), gke.Unhealthy)
		if r, _ := b.reading("llama", 0); len(r.Unended) > 0 {
			b.t.Errorf("%v have time to end", r.Unended)
		}
		if r, _ := b.reading("llama", 7*time.Minute); !slices.Equal(r.Unended, []string{pod.Name}) || r.State != gke.Unhealthy {
			b.t.Errorf("seven minutes later: %+v", r)
		}
	},
	"a gang in which a Pod fails": func(b *bed) {
		b.plans(multiHost())
		b.machine("a", "pool", 4)
		b.machine("b", "pool", 4)
		b.ready("llama")
		b.exits(b.pods("llama")[1], 1)
		b.follow("llama", "it is lost", says(gke.Lost, false, "BackoffLimitExceeded"), gke.Ready, gke.Unhealthy)
	},
	"a gang in which a Pod is evicted": func(b *bed) {
		b.plans(multiHost())
		b.machine("a", "pool", 4)
		b.machine("b", "pool", 4)
		b.ready("llama")
		b.evict(b.pods("llama")[1])
		b.follow("llama", "it is lost", says(gke.Lost, false, "BackoffLimitExceeded"), gke.Ready, gke.Unhealthy)
	},
	"a gang that is mended and not made anew": func(b *bed) {
		b.plans(multiHost(), func(spec map[string]any) {
			spec["podFailurePolicy"] = map[string]any{"rules": []any{map[string]any{
				"action": "Ignore", "onPodConditions": []any{map[string]any{"type": "DisruptionTarget", "status": "True"}},
			}}}
		})
		b.machine("a", "pool", 4)
		b.machine("b", "pool", 4)
		b.ready("llama")
		node := b.pods("llama")[1].Spec.NodeName
		b.remove("/api/v1/nodes/" + node)
		b.follow("llama", "its machine is gone", says(gke.Unhealthy, true, "its machine "+node+" is gone"), gke.Ready)
		b.machine("c", "pool", 4)
		b.follow("llama", "it is ready", is(gke.Ready), gke.Unhealthy)
	},
	"a gang that is suspended": func(b *bed) {
		b.plans(multiHost())
		b.machine("a", "pool", 4)
		b.machine("b", "pool", 4)
		b.ready("llama")
		b.patch(b.path("Job", "llama"), map[string]any{"spec": map[string]any{"suspend": true}})
		b.follow("llama", "it is stopped", says(gke.Stopped, false, "no label names a queue"), gke.Ready, gke.Unhealthy)
		b.patch(b.path("Job", "llama"), map[string]any{"metadata": map[string]any{"labels": map[string]any{"kueue.x-k8s.io/queue-name": "tpus"}}})
		b.follow("llama", "it waits in a queue", says(gke.Creating, false, "the queue tpus"), gke.Stopped)
		b.patch(b.path("Job", "llama"), map[string]any{"spec": map[string]any{"suspend": false}})
		b.ready("llama")
	},
	"a JobSet without one of its machines": func(b *bed) {
		b.plans(asJobSet(multiHost(), 1))
		b.machine("a", "pool", 4)
		b.machine("b", "pool", 4)
		r := b.ready("llama-slice-0")
		if r.Group != "llama" || r.Workload != "llama" || r.Workers != 2 {
			b.t.Errorf("%+v", r)
		}
		node := b.pods("llama-slice-0")[1].Spec.NodeName
		b.remove("/api/v1/nodes/" + node)
		b.follow("llama-slice-0", "its machine is gone", says(gke.Unhealthy, true, "its machine "+node+" is gone"), gke.Ready)
		b.machine("c", "pool", 4)
		b.restarted(r, 0)
	},
	"a JobSet with a silent machine": func(b *bed) {
		b.plans(asJobSet(multiHost(), 1))
		b.machine("a", "pool", 4)
		b.machine("b", "pool", 4)
		b.ready("llama-slice-0")
		pod := b.pods("llama-slice-0")[0]
		b.must(b.Silence(b.t.Context(), pod.Spec.NodeName))
		b.follow("llama-slice-0", "its machine is silent", says(gke.Unhealthy, true, "its machine "+pod.Spec.NodeName+" is not ready"), gke.Ready)
		b.follow("llama-slice-0", "its Pod should end", says(gke.Unhealthy, true, "its Pod "+pod.Name+" is being deleted"), gke.Unhealthy)
		if r, _ := b.reading("llama-slice-0", 7*time.Minute); !slices.Equal(r.Unended, []string{pod.Name}) || r.State != gke.Unhealthy || r.Heals {
			b.t.Errorf("seven minutes later: %+v", r)
		}
	},
	"a JobSet in which a Pod fails": func(b *bed) {
		b.plans(asJobSet(multiHost(), 1), func(spec map[string]any) { within(spec, "failurePolicy")["maxRestarts"] = 1 })
		b.machine("a", "pool", 4)
		b.machine("b", "pool", 4)
		r := b.ready("llama-slice-0")
		b.exits(b.pods("llama-slice-0")[0], 1)
		b.restarted(r, 1)
		b.exits(b.pods("llama-slice-0")[0], 1)
		b.follow("llama-slice-0", "it is lost", says(gke.Lost, false, "ReachedMaxRestarts"), gke.Ready, gke.Unhealthy, gke.Lost)
	},
	"a JobSet with a wrong call": func(b *bed) {
		b.plans(asJobSet(singleHost(), 1))
		b.machine("a", "pool", 8)
		b.ready("llama-slice-0")
		b.exits(b.pods("llama-slice-0")[0], 127)
		b.follow("llama-slice-0", "it is lost", says(gke.Lost, false, "FailJobSetFailurePolicyAction"), gke.Ready, gke.Unhealthy, gke.Lost)
		b.patch(b.path("JobSet", "llama"), map[string]any{"spec": map[string]any{"ttlSecondsAfterFinished": 1}})
		b.gone("llama-slice-0", gke.Lost, gke.Deleting)
	},
	"a JobSet in which a Pod is evicted": func(b *bed) {
		b.plans(asJobSet(multiHost(), 1))
		b.machine("a", "pool", 4)
		b.machine("b", "pool", 4)
		r := b.ready("llama-slice-0")
		b.evict(b.pods("llama-slice-0")[1])
		b.restarted(r, 0)
	},
	"a JobSet of two slices, of which one loses a machine": func(b *bed) {
		b.plans(asJobSet(multiHost(), 2))
		for _, pool := range []string{"x", "y"} {
			b.machine(pool+"-a", pool, 4)
			b.machine(pool+"-b", pool, 4)
		}
		one, other := b.ready("llama-slice-0"), b.ready("llama-slice-1")
		node := b.pods("llama-slice-1")[0].Spec.NodeName
		b.remove("/api/v1/nodes/" + node)
		b.follow("llama-slice-1", "its machine is gone", says(gke.Unhealthy, true, "its machine "+node+" is gone"), gke.Ready)
		if r, _ := b.reading("llama-slice-0", 0); r.State != gke.Ready {
			b.t.Errorf("the other slice has all its machines: %+v", r)
		}
		pool := strings.Split(strings.TrimPrefix(node, b.namespace+"-"), "-")[0]
		b.machine(pool+"-c", pool, 4)
		b.restarted(other, 0)
		b.restarted(one, 0)
	},
	"a JobSet that its owner suspends, and deletes": func(b *bed) {
		b.plans(asJobSet(multiHost(), 1))
		b.machine("a", "pool", 4)
		b.machine("b", "pool", 4)
		b.ready("llama-slice-0")
		b.patch(b.path("JobSet", "llama"), map[string]any{"spec": map[string]any{"suspend": true}})
		b.follow("llama-slice-0", "it is stopped", says(gke.Stopped, false, "no label names a queue"), gke.Ready)
		b.patch(b.path("JobSet", "llama"), map[string]any{"spec": map[string]any{"suspend": false}})
		b.follow("llama-slice-0", "it is ready", is(gke.Ready), gke.Stopped, gke.Creating, gke.Unhealthy)
		b.remove(b.path("JobSet", "llama"))
		b.gone("llama-slice-0", gke.Ready, gke.Unhealthy, gke.Deleting)
	},
	"a JobSet that is complete": func(b *bed) {
		b.plans(asJobSet(multiHost(), 1))
		b.machine("a", "pool", 4)
		b.machine("b", "pool", 4)
		b.ready("llama-slice-0")
		for _, p := range b.pods("llama-slice-0") {
			b.exits(p, 0)
		}
		b.follow("llama-slice-0", "it is done", is(gke.Done), gke.Ready)
	},
}

// restarted follows a slice until its JobSet has made it anew: another life, which nobody had to ask for. Counted is how many restarts
// count towards the maximum.
func (b *bed) restarted(former gke.Reading, counted int) {
	b.t.Helper()
	r := b.follow(former.Name, "it begins again", func(r gke.Reading) bool {
		return r.State == gke.Ready && r.Incarnation.ID != former.Incarnation.ID
	}, gke.Ready, gke.Unhealthy, gke.Creating)
	if len(r.Unended) > 0 || r.Incarnation.Created.Before(former.Incarnation.Created) {
		b.t.Errorf("%+v", r)
	}
	o, err := b.List(b.t.Context())
	b.must(err)
	if n := o.JobSets[0].Status.Counted; n != counted {
		b.t.Errorf("%d restarts count, want %d", n, counted)
	}
}

// losing plays the cases side by side: each has a namespace and machines of its own.
func losing(t *testing.T, p *Plane) {
	t.Helper()
	for i, name := range slices.Sorted(maps.Keys(losses)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			losses[name](newBed(t, p, fmt.Sprintf("losses-%d", i)))
		})
	}
}
