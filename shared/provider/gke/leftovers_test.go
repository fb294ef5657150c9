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
		if l.Kind != "node pool" && l.Made.IsZero() {
			c.t.Errorf("another one of that name would be taken for it: %+v", l)
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

const requestsPath = "/apis/autoscaling.x-k8s.io/v1/namespaces/default/provisioningrequests"

// request makes a ProvisioningRequest for two Pods of a PodTemplate, and the PodTemplate mine.
func (c *cluster) request(meta, template, resource string) {
	c.t.Helper()
	c.do(http.MethodPost, "/api/v1/namespaces/default/podtemplates", `{"metadata":{"name":"mine"},"template":{"spec":{"containers":[{"name":"a","resources":{"limits":{"`+resource+`":"4"}}}]}}}`)
	c.do(http.MethodPost, requestsPath, `{"metadata":{"name":"mine"`+meta+`},"spec":{"podSets":[{"count":2,"podTemplateRef":{"name":"`+template+`"}}]}}`)
}

// says writes a condition of the ProvisioningRequest that is true or not.
func (c *cluster) says(typ, status string) {
	c.t.Helper()
	c.do(http.MethodPatch, requestsPath+"/mine/status", `{"status":{"conditions":[{"type":"Accepted","status":"True"},`+
		`{"type":"`+typ+`","status":"`+status+`","reason":"Said","message":"so it is","lastTransitionTime":"2026-11-12T04:00:00Z"}]}}`)
}

// consuming are the annotations of a Pod that takes the machines of the ProvisioningRequest mine.
const consuming = `"annotations":{"autoscaling.x-k8s.io/consume-provisioning-request":"mine"}`

// TestAProvisioningRequestThatNothingNamesIsLeftOver, if it asks for TPUs and is not over. What takes its machines, or will take them, is a
// Pod of the same namespace, or what makes Pods.
func TestAProvisioningRequestThatNothingNamesIsLeftOver(t *testing.T) {
	const (
		tpu   = "google.com/tpu"
		owned = `,"ownerReferences":[{"apiVersion":"kueue.x-k8s.io/v1beta2","kind":"Workload","name":"w","uid":"w1","controller":true}]`
		idle  = "; no Pod, Job, JobSet or Workload names it, and GKE keeps machines that nobody uses for 10 minutes only"
		set   = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
	)
	spec := func(meta string) string {
		return `{"metadata":{` + meta + `},"spec":{"restartPolicy":"Never","containers":[{"name":"a","image":"a"}]}}`
	}
	jobs := func(namespace, meta string) func(c *cluster) {
		return func(c *cluster) {
			c.do(http.MethodPost, "/apis/batch/v1/namespaces/"+namespace+"/jobs", `{"metadata":{"name":"llama"},"spec":{"suspend":true,"template":`+spec(meta)+`}}`)
		}
	}
	pods := func(namespace, annotations string) func(c *cluster) {
		return func(c *cluster) { c.pod(namespace, "p", "", `,`+annotations, "") }
	}
	condition := func(typ, status string) func(c *cluster) {
		return func(c *cluster) { c.says(typ, status) }
	}
	for name, x := range map[string]struct {
		meta, template, resource string
		more                     func(c *cluster)
		why                      string // empty: it is not left over
		lists                    int    // without machines, with all namespaces
	}{
		"nobody has looked at it":           {"", "mine", tpu, nil, "it is not provisioned" + idle, 7},
		"it waits":                          {"", "mine", tpu, condition("Provisioned", "False"), "it is not provisioned since 2026-11-12T04:00:00Z: Said: so it is" + idle, 7},
		"its machines are there":            {"", "mine", tpu, condition("Provisioned", "True"), "it is provisioned since 2026-11-12T04:00:00Z: Said: so it is" + idle, 7},
		"it is not over":                    {"", "mine", tpu, condition("Failed", "False"), "it is not provisioned" + idle, 7},
		"it has failed":                     {"", "mine", tpu, condition("Failed", "True"), "", 3},
		"its machines are kept no longer":   {"", "mine", tpu, condition("BookingExpired", "True"), "", 3},
		"it has lost its machines":          {"", "mine", tpu, condition("CapacityRevoked", "True"), "", 3},
		"it is another's":                   {owned, "mine", tpu, nil, "", 3},
		"it is being deleted":               {`,"finalizers":["a/b"]`, "mine", tpu, func(c *cluster) { c.do(http.MethodDelete, requestsPath+"/mine", "") }, "", 3},
		"it is for other machines":          {"", "mine", "nvidia.com/gpu", nil, "", 7},
		"its PodTemplate is gone":           {"", "gone", tpu, nil, "", 7},
		"a Pod names it":                    {"", "mine", tpu, pods("default", consuming), "", 4},
		"a Pod names it by the former word": {"", "mine", tpu, pods("default", strings.Replace(consuming, "autoscaling.x-k8s.io", "cluster-autoscaler.kubernetes.io", 1)), "", 4},
		"a Pod names another one":           {"", "mine", tpu, pods("default", strings.Replace(consuming, "mine", "other", 1)), "it is not provisioned" + idle, 7},
		"a Pod of another namespace":        {"", "mine", tpu, pods("other", consuming), "it is not provisioned" + idle, 7},
		"a Job that is suspended names it":  {"", "mine", tpu, jobs("default", consuming), "", 6},
		"a Job names none":                  {"", "mine", tpu, jobs("default", ""), "it is not provisioned" + idle, 7},
		"a Job of another namespace":        {"", "mine", tpu, jobs("other", consuming), "it is not provisioned" + idle, 7},
		"a Workload that is not ours names it": {"", "mine", tpu, func(c *cluster) {
			c.do(http.MethodPost, workloadsPath, `{"metadata":{"name":"w"},"spec":{"podSets":[{"template":`+spec(consuming)+`}]}}`)
		}, "", 4},
		"a JobSet names it": {"", "mine", tpu, func(c *cluster) {
			c.do(http.MethodPost, set, `{"metadata":{"name":"s"},"spec":{"replicatedJobs":[{"name":"a","replicas":0,"template":{"spec":{"template":`+spec(consuming)+`}}}]}}`)
		}, "", 6},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.t = t
			c.do(http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"other"}}`)
			c.request(x.meta, x.template, x.resource)
			if x.more != nil {
				x.more(c)
			}
			var want []string
			if x.why != "" {
				want = []string{"ProvisioningRequest us-east5/research/default mine"}
			}
			c.wants("one namespace", []string{"default"}, want...)
			c.wants("another namespace", []string{"other"})
			c.Calls()
			_, why := c.leftovers()
			if got := len(c.Calls()); got != x.lists {
				t.Errorf("%d lists, want %d", got, x.lists)
			}
			if (x.why == "") != (len(why) == 0) || len(why) > 0 && why[0] != "8 chips: "+x.why {
				t.Errorf("%q, want %q", why, x.why)
			}
		})
	}
}

// TestAClusterWithoutTheAPIsHasNoneLeftOver: neither ProvisioningRequests nor JobSets.
func TestAClusterWithoutTheAPIsHasNoneLeftOver(t *testing.T) {
	c := newCluster(t)
	c.request("", "mine", "google.com/tpu")
	c.Inject(gketest.Fault{Verb: "list", Resource: "jobsets", Code: http.StatusNotFound})
	c.wants("no JobSets", nil, "ProvisioningRequest us-east5/research/default mine")
	c.Inject(gketest.Fault{Verb: "list", Resource: "provisioningrequests", Code: http.StatusNotFound})
	c.wants("no ProvisioningRequests", nil)
}

// TestWhatCannotBeReadIsSaid, and hides nothing of the other namespaces.
func TestWhatCannotBeReadIsSaid(t *testing.T) {
	c := newCluster(t)
	c.do(http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"other"}}`)
	c.workload("other", "theirs", "false", "google.com/tpu")
	c.nodes("spot", 2)
	for _, resource := range []string{"workloads", "provisioningrequests", "nodes", "pods"} {
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

// TestARequestThatCannotBeToldIsSaid with its namespace, and everything else is found: an account that has the rights of an earlier release
// may list no PodTemplates.
func TestARequestThatCannotBeToldIsSaid(t *testing.T) {
	c := newCluster(t)
	c.do(http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"other"}}`)
	c.workload("default", "tpu", "false", "google.com/tpu")
	c.workload("other", "theirs", "false", "google.com/tpu")
	c.nodes("spot", 2)
	c.pod("default", "shell", "spot-0", "", "")
	c.request("", "mine", "google.com/tpu")
	c.do(http.MethodPost, requestsPath, `{"metadata":{"name":"more"}}`)
	c.clock.Advance(time.Minute)
	for resource, of := range map[string][]string{
		"podtemplates": nil, "jobs": nil, "jobsets": nil,
		"pods": {"default"}, "provisioningrequests": {"default"}, // where all namespaces are read, nothing is told without them
	} {
		for _, namespaces := range [][]string{nil, {"default", "other"}} {
			if of != nil && namespaces == nil {
				continue
			}
			withdraw := c.Inject(gketest.Fault{Verb: "list", Resource: resource, Code: http.StatusForbidden, Message: resource + " is forbidden"})
			p, _ := c.clusters(namespaces...)
			all, unread, err := p.Leftovers(t.Context(), project, "us-east5/research")
			withdraw()
			var names []string
			for _, l := range all {
				names = append(names, l.Name)
			}
			want := []string{"tpu", "theirs"}
			if namespaces == nil {
				want = append(want, "spot")
			}
			if err == nil || !strings.Contains(err.Error(), resource+" is forbidden") || !slices.Equal(unread, []string{"us-east5/research/default ProvisioningRequest"}) || !slices.Equal(names, want) {
				t.Errorf("%s, namespaces %q: %q, %q unread, %v", resource, namespaces, names, unread, err)
			}
		}
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
			c.Calls()
			var want []string
			if x.left {
				want = []string{left}
			}
			c.wants(name, nil, want...)
			if calls := len(c.Calls()); calls != 4 {
				t.Errorf("%d calls, want 4, however many machines there are", calls)
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
