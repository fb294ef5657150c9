package gke_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/shared/provider/gke/gketest"
)

// leftovers are those of the cluster, as kind and name with their reasons.
func (c *cluster) leftovers(namespaces ...string) (names, whys []string) {
	c.t.Helper()
	p, _ := c.clusters(namespaces...)
	all, unread, err := p.Leftovers(c.t.Context(), project, "us-east5/research")
	if err != nil || len(unread) > 0 {
		c.t.Fatal(unread, err)
	}
	for _, l := range all {
		names, whys = append(names, l.Kind+" "+l.Zone+" "+l.Name), append(whys, fmt.Sprintf("%d chips: %s", l.Chips, l.Why))
		if !l.Since.IsZero() || !l.Seen.IsZero() {
			c.t.Errorf("only sweeps know since when: %+v", l)
		}
	}
	return names, whys
}

// wants holds what is left over now where these namespaces are read; none are all.
func (c *cluster) wants(what string, namespaces []string, want ...string) {
	c.t.Helper()
	if got, why := c.leftovers(namespaces...); !slices.Equal(got, want) {
		c.t.Errorf("%s: %q (%q), want %q", what, got, why, want)
	}
}

const workloadsPath = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads"

func (c *cluster) workload(namespace, name, active, resource string) {
	c.t.Helper()
	c.do(http.MethodPost, strings.Replace(workloadsPath, "default", namespace, 1), `{"metadata":{"name":"`+name+`"},"spec":{"active":`+active+
		`,"podSets":[{"name":"main","count":2,"template":{"spec":{"containers":[{"name":"a","resources":{"requests":{"`+resource+`":"4"}}}]}}}]}}`)
}

// TestAnInactiveWorkloadIsLeftOver, if it asks for TPUs, whatever waits in that namespace or in another one.
func TestAnInactiveWorkloadIsLeftOver(t *testing.T) {
	const left = "Workload us-east5/research/default tpu"
	c := newCluster(t)
	c.do(http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"other"}}`)
	c.workload("default", "tpu", "false", "google.com/tpu")
	c.workload("default", "cpu", "false", "cpu")
	c.workload("default", "waits", "true", "google.com/tpu")
	c.workload("other", "theirs", "false", "google.com/tpu")
	for _, more := range []func(){
		func() {},
		func() { c.job("llama", `,"suspend":true`) },
		func() {
			c.do(http.MethodPost, "/apis/batch/v1/namespaces/other/jobs", `{"metadata":{"name":"bert"},"spec":`+jobSpec("")+`}`)
		},
	} {
		more()
		c.clock.Advance(time.Minute)
		c.wants("one namespace", []string{"default"}, left)
		c.wants("two namespaces", []string{"default", "other"}, left, "Workload us-east5/research/other theirs")
		c.wants("all namespaces", nil, left, "Workload us-east5/research/other theirs")
	}
	c.do(http.MethodPatch, workloadsPath+"/tpu/status", `{"status":{"conditions":[{"type":"Evicted","status":"True","reason":"Deactivated","lastTransitionTime":"2026-11-12T04:00:00Z"}]}}`)
	if _, why := c.leftovers("default"); len(why) != 1 || why[0] != "8 chips: it is inactive since 2026-11-12T04:00:00Z: Deactivated; Kueue does not admit it until somebody sets spec.active" {
		t.Errorf("%q", why)
	}
	c.do(http.MethodPatch, workloadsPath+"/tpu/status", `{"status":{"conditions":[{"type":"Finished","status":"True"}]}}`)
	c.wants("it is finished", []string{"default"})
}

// TestAProvisioningRequestIsNotLeftOver: nobody knows for which machines it asks.
func TestAProvisioningRequestIsNotLeftOver(t *testing.T) {
	c := newCluster(t)
	c.do(http.MethodPost, "/apis/autoscaling.x-k8s.io/v1/namespaces/default/provisioningrequests", `{"metadata":{"name":"mine"}}`)
	c.clock.Advance(3 * time.Hour)
	c.wants("all namespaces", nil)
	c.wants("one namespace", []string{"default"})
}

// TestWhatCannotBeReadIsSaid, and hides nothing of the other namespaces.
func TestWhatCannotBeReadIsSaid(t *testing.T) {
	c := newCluster(t)
	c.do(http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"other"}}`)
	c.workload("other", "theirs", "false", "google.com/tpu")
	c.nodes("spot", 2)
	for _, resource := range []string{"workloads", "nodes", "pods"} {
		for _, code := range []int{http.StatusForbidden, http.StatusServiceUnavailable} {
			c.Inject(gketest.Fault{Verb: "list", Resource: resource, Times: 1, Code: code})
			p, _ := c.clusters()
			if all, unread, err := p.Leftovers(t.Context(), project, "us-east5/research"); err == nil || len(all)+len(unread) > 0 {
				t.Errorf("%s, %d: %+v, %q unread, %v", resource, code, all, unread, err)
			}
		}
	}
	c.Inject(gketest.Fault{Verb: "list", Resource: "workloads", Times: 1, Code: http.StatusForbidden})
	p, _ := c.clusters("default", "other")
	all, unread, err := p.Leftovers(t.Context(), project, "us-east5/research")
	if err == nil || len(all) != 1 || !slices.Equal(unread, []string{"us-east5/research/default"}) {
		t.Errorf("one namespace: %+v, %q unread, %v", all, unread, err)
	}
}

// nodes makes the machines a, b and so on of a pool.
func (c *cluster) nodes(pool string, n int) {
	c.t.Helper()
	for i := range n {
		c.do(http.MethodPost, "/api/v1/nodes", fmt.Sprintf(`{"metadata":{"name":"%s-%d","labels":{"cloud.google.com/gke-nodepool":%[1]q,"cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice"}},`+
			`"status":{"capacity":{"google.com/tpu":"4"},"allocatable":{"google.com/tpu":"4"},"conditions":[{"type":"Ready","status":"True"}]}}`, pool, i))
	}
}

// pod makes a Pod on a machine, with more metadata and TPU chips.
func (c *cluster) pod(namespace, name, node, meta, chips string) {
	c.t.Helper()
	c.do(http.MethodPost, "/api/v1/namespaces/"+namespace+"/pods", `{"metadata":{"name":"`+name+`"`+meta+`},"spec":{"nodeName":"`+node+
		`","containers":[{"name":"a","resources":{"limits":{`+chips+`}}}]}}`)
}

// TestAPoolThatOnePodMayHoldUpIsLeftOver: nobody uses it, in whichever namespace, and nothing waits for its TPUs.
func TestAPoolThatOnePodMayHoldUpIsLeftOver(t *testing.T) {
	const (
		left  = "node pool us-east5/research spot"
		uses  = `"google.com/tpu":"4"`
		owner = `,"ownerReferences":[{"apiVersion":"apps/v1","kind":"%s","name":"d","uid":"d1","controller":true}]`
	)
	daemons, replicas := fmt.Sprintf(owner, "DaemonSet"), fmt.Sprintf(owner, "ReplicaSet")
	for name, x := range map[string]struct {
		meta, chips string
		more        func(c *cluster)
		left        bool
	}{
		"a Pod of nobody":                   {left: true},
		"a Pod that may be moved":           {meta: `,"annotations":{"cluster-autoscaler.kubernetes.io/safe-to-evict":"true"}`},
		"a Pod of a DaemonSet":              {meta: daemons},
		"a Pod that is made anew":           {meta: replicas},
		"a Pod that must not be moved":      {meta: replicas + `,"annotations":{"cluster-autoscaler.kubernetes.io/safe-to-evict":"false"}`, left: true},
		"a Pod that uses TPUs":              {chips: uses},
		"two Pods":                          {more: func(c *cluster) { c.pod("default", "two", "spot-1", "", "") }},
		"a Pod of a DaemonSet beside it":    {more: func(c *cluster) { c.pod("default", "two", "spot-1", daemons, "") }, left: true},
		"a DaemonSet that uses TPUs":        {more: func(c *cluster) { c.pod("default", "two", "spot-1", daemons, uses) }},
		"a Pod that serves elsewhere":       {more: func(c *cluster) { c.pod("other", "serve", "spot-1", "", uses) }},
		"a Pod that uses TPUs to its end":   {more: func(c *cluster) { c.leaving("spot-1", uses) }},
		"another namespace trains":          {more: func(c *cluster) { c.pod("other", "t", "spot-1", `,"labels":{"batch.kubernetes.io/job-name":"x"}`, "") }},
		"a training, too":                   {more: func(c *cluster) { c.job("llama", "") }},
		"a training that is suspended":      {more: func(c *cluster) { c.job("llama", `,"suspend":true`) }, left: true},
		"a training that waits in a queue":  {more: func(c *cluster) { c.workload("other", "w", "true", "google.com/tpu") }},
		"a Workload for something else":     {more: func(c *cluster) { c.workload("other", "w", "true", "cpu") }, left: true},
		"a training that waits for another": {more: func(c *cluster) { c.waitingJob() }},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.t = t
			c.do(http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"other"}}`)
			c.nodes("spot", 30)
			c.pod("default", "shell", "spot-0", x.meta, x.chips)
			if x.more != nil {
				x.more(c)
			}
			c.clock.Advance(time.Minute)
			before := len(c.Calls())
			var want []string
			if x.left {
				want = []string{left}
			}
			c.wants(name, nil, want...)
			if calls := len(c.Calls()) - before; calls > 3 {
				t.Errorf("%d calls, however many machines there are", calls)
			}
			if _, why := c.leftovers(); x.left && why[0] != "120 chips: nobody uses its TPUs, and the Pod default/shell on spot-0 may keep the autoscaler from removing the pool's 30 machines" {
				t.Errorf("%q", why)
			}
			c.wants("another namespace may use it, and is not read", []string{"default"})
			for _, call := range c.Calls() {
				if call.Method == http.MethodDelete && !strings.HasSuffix(call.Path, "/leaves") {
					t.Errorf("%+v", call)
				}
			}
		})
	}
}

// waitingJob is a Job for which no machine is right.
func (c *cluster) waitingJob() {
	c.t.Helper()
	c.do(http.MethodPost, "/apis/batch/v1/namespaces/default/jobs", `{"metadata":{"name":"llama"},"spec":`+strings.Replace(jobSpec(""), `"nodeSelector":{`, `"nodeSelector":{"other":"pool",`, 1)+`}`)
}

// leaving is a Pod that is being deleted, while its machine does not say that it has ended.
func (c *cluster) leaving(node, chips string) {
	c.t.Helper()
	c.pod("default", "leaves", node, "", chips)
	c.clock.Advance(time.Minute)
	c.Silence(node)
	c.do(http.MethodDelete, "/api/v1/namespaces/default/pods/leaves", "")
}
