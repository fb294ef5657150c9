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

// leftovers are those of the cluster, as kind and name, with their reasons.
func (c *cluster) leftovers(namespaces ...string) (names, whys []string) {
	c.t.Helper()
	p, _ := c.clusters(namespaces...)
	all, err := p.Leftovers(c.t.Context(), project, "us-east5/research")
	if err != nil {
		c.t.Fatal(err)
	}
	for _, l := range all {
		names, whys = append(names, l.Kind+" "+l.Zone+" "+l.Name), append(whys, fmt.Sprintf("%d chips since %s: %s", l.Chips, l.Since.Format(time.TimeOnly), l.Why))
	}
	return names, whys
}

// wants holds what is left over now, whichever namespaces are read.
func (c *cluster) wants(what string, want ...string) {
	c.t.Helper()
	for _, namespaces := range [][]string{nil, {"default"}} {
		if got, why := c.leftovers(namespaces...); !slices.Equal(got, want) {
			c.t.Errorf("%s: %q (%q), want %q", what, got, why, want)
		}
	}
}

const (
	requestsPath  = "/apis/autoscaling.x-k8s.io/v1/namespaces/default/provisioningrequests"
	workloadsPath = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads"
)

// TestAProvisioningRequestWithoutOwnerIsLeftOver, once it is old, while it holds machines or asks for some.
func TestAProvisioningRequestWithoutOwnerIsLeftOver(t *testing.T) {
	const left = "ProvisioningRequest us-east5/research/default mine"
	c := newCluster(t)
	c.wants("there is none")
	c.do(http.MethodPost, requestsPath, `{"metadata":{"name":"mine"}}`)
	c.do(http.MethodPost, requestsPath, `{"metadata":{"name":"kueues","ownerReferences":[{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload","name":"w","uid":"w1"}]}}`)
	c.clock.Advance(time.Hour)
	c.wants("it is young")
	c.clock.Advance(time.Hour)
	c.wants("nobody names it", left)
	if _, why := c.leftovers(); !strings.HasPrefix(why[0], "0 chips since 02:00:00: it has no owner, and no Job or JobSet names it; it asks for machines") {
		t.Errorf("%q", why)
	}
	c.do(http.MethodPatch, requestsPath+"/mine/status", `{"status":{"conditions":[{"type":"Provisioned","status":"True"}]}}`)
	c.wants("it was provisioned", left)
	c.do(http.MethodPost, "/apis/batch/v1/namespaces/default/jobs", `{"metadata":{"name":"llama"},"spec":`+
		strings.Replace(jobSpec(""), `"template":{`, `"template":{"metadata":{"annotations":{"autoscaling.x-k8s.io/consume-provisioning-request":"mine"}},`, 1)+`}`)
	c.wants("a Job names it")
	c.do(http.MethodDelete, "/apis/batch/v1/namespaces/default/jobs/llama", "")
	c.clock.Advance(time.Minute)
	c.wants("the Job is gone", left)
	c.do(http.MethodPatch, requestsPath+"/mine/status", `{"status":{"conditions":[{"type":"CapacityRevoked","status":"True"}]}}`)
	c.wants("it holds nothing any more")
	c.Inject(gketest.Fault{Verb: "list", Resource: "provisioningrequests", Times: -1, Code: http.StatusForbidden})
	c.wants("it cannot be read")
}

// TestAnInactiveWorkloadIsLeftOver, if it asks for TPUs.
func TestAnInactiveWorkloadIsLeftOver(t *testing.T) {
	c := newCluster(t)
	workload := func(name, active, chips string) {
		c.do(http.MethodPost, workloadsPath, `{"metadata":{"name":"`+name+`"},"spec":{"active":`+active+`,"podSets":[{"name":"main","count":2,"template":{"spec":{"containers":[{"name":"a","resources":{"requests":{`+chips+`}}}]}}}]}}`)
	}
	workload("tpu", "false", `"google.com/tpu":"4"`)
	workload("cpu", "false", `"cpu":"4"`)
	workload("waits", "true", `"google.com/tpu":"4"`)
	c.wants("they are young")
	c.clock.Advance(3 * time.Hour)
	c.wants("one is inactive", "Workload us-east5/research/default tpu")
	c.do(http.MethodPatch, workloadsPath+"/tpu/status", `{"status":{"conditions":[{"type":"Evicted","status":"True","reason":"Deactivated","lastTransitionTime":"2026-11-12T04:00:00Z"}]}}`)
	c.wants("a moment ago")
	c.clock.Advance(2 * time.Hour)
	if _, why := c.leftovers(); len(why) != 1 || why[0] != "8 chips since 04:00:00: it is inactive since 2026-11-12T04:00:00Z: Deactivated; Kueue does not admit it until somebody sets spec.active" {
		t.Errorf("%q", why)
	}
	c.do(http.MethodPatch, workloadsPath+"/tpu/status", `{"status":{"conditions":[{"type":"Finished","status":"True"}]}}`)
	c.wants("it is finished")
}

// TestAPoolThatOnePodHoldsUpIsLeftOver: no training uses it, and none may be about to.
func TestAPoolThatOnePodHoldsUpIsLeftOver(t *testing.T) {
	const left = "node pool us-east5/research spot"
	for name, x := range map[string]struct {
		meta, resources string
		more            func(c *cluster)
		left            bool
	}{
		"a Pod of nobody":              {left: true},
		"a Pod that may be moved":      {meta: `,"annotations":{"cluster-autoscaler.kubernetes.io/safe-to-evict":"true"}`},
		"a Pod of a DaemonSet":         {meta: `,"ownerReferences":[{"apiVersion":"apps/v1","kind":"DaemonSet","name":"d","uid":"d1","controller":true}]`},
		"a Pod that is made anew":      {meta: `,"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"d","uid":"d1","controller":true}]`},
		"a Pod that must not be moved": {meta: `,"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"d","uid":"d1","controller":true}],"annotations":{"cluster-autoscaler.kubernetes.io/safe-to-evict":"false"}`, left: true},
		"a Pod that uses a TPU":        {resources: `,"resources":{"limits":{"google.com/tpu":"4"}}`},
		"two Pods": {more: func(c *cluster) {
			c.do(http.MethodPost, "/api/v1/namespaces/default/pods", `{"metadata":{"name":"other"},"spec":{"nodeName":"b","containers":[{"name":"a"}]}}`)
			c.clock.Advance(3 * time.Hour)
		}},
		"a training, too": {more: func(c *cluster) {
			c.job("llama", "")
			c.clock.Advance(time.Minute)
		}},
		"a training that is suspended": {more: func(c *cluster) { c.job("llama", `,"suspend":true`) }, left: true},
		"a training that waits": {more: func(c *cluster) {
			c.do(http.MethodPost, "/apis/batch/v1/namespaces/default/jobs", `{"metadata":{"name":"llama"},"spec":`+strings.Replace(jobSpec(""), `"nodeSelector":{`, `"nodeSelector":{"other":"pool",`, 1)+`}`)
			c.clock.Advance(time.Minute)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.t = t
			for _, n := range []string{"a", "b"} {
				c.do(http.MethodPost, "/api/v1/nodes", `{"metadata":{"name":"`+n+`","labels":{"cloud.google.com/gke-nodepool":"spot","cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice"}},`+
					`"status":{"capacity":{"google.com/tpu":"4"},"allocatable":{"google.com/tpu":"4"},"conditions":[{"type":"Ready","status":"True"}]}}`)
			}
			c.do(http.MethodPost, "/api/v1/namespaces/default/pods", `{"metadata":{"name":"shell"`+x.meta+`},"spec":{"nodeName":"a","containers":[{"name":"a"`+x.resources+`}]}}`)
			c.clock.Advance(time.Hour)
			c.wants("it is young")
			c.clock.Advance(2 * time.Hour)
			if x.more != nil {
				x.more(c)
			}
			var want []string
			if x.left {
				want = []string{left}
			}
			c.wants(name, want...)
			if _, why := c.leftovers(); x.left && why[0] != "8 chips since 02:00:00: no training uses its 2 machines, and the Pod default/shell on a keeps the autoscaler from removing them" {
				t.Errorf("%q", why)
			}
			for _, call := range c.Calls() {
				if call.Method == http.MethodDelete {
					t.Errorf("%+v", call)
				}
			}
		})
	}
}
