package gke_test

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/gke/gketest"
	"pitstop.internal/shared/reason"
)

// announced is a Job on two machines that both announce maintenance which can be moved.
func announced(t *testing.T) (c *cluster, r provider.Ref) {
	t.Helper()
	c = newCluster(t)
	for _, n := range []string{"a", "b"} {
		c.node(n)
		c.do(http.MethodPatch, "/api/v1/nodes/"+n, `{"metadata":{"annotations":{"node.gke.io/upcoming-maintenance":"{\"maintenanceStatus\":\"PENDING\",\"canReschedule\":true}"}}}`)
		c.do(http.MethodPatch, "/api/v1/nodes/"+n+"/status", `{"status":{"capacity":{"google.com/tpu":"4"}}}`)
	}
	c.job("llama", "")
	c.clock.Advance(time.Minute)
	p, _ := c.clusters()
	s, err := p.Read(t.Context(), provider.Ref{Project: project, Zone: "us-east5/research/default", Name: "llama"})
	if err != nil || s.Condition != evidence.Ready || s.Notice == nil || !s.Notice.CanReschedule {
		t.Fatalf("%+v, %v", s, err)
	}
	c.Calls()
	return c, s.Ref
}

// patched are the machines that were labelled or tried since it was last asked, with the status of the answer.
func (c *cluster) patched() (all []string) {
	for _, call := range c.Calls() {
		if call.Method == http.MethodPatch {
			all = append(all, strings.TrimPrefix(call.Path, "/api/v1/nodes/")+" "+http.StatusText(call.Status))
		}
	}
	return all
}

// TestARefusedLabelIsTriedAgainWhereItIsMissing: the other machine is labelled at once, for the slice ends with it.
func TestARefusedLabelIsTriedAgainWhereItIsMissing(t *testing.T) {
	c, r := announced(t)
	p, _ := c.clusters()
	c.Inject(gketest.Fault{Verb: "patch", Resource: "nodes", Name: "a", Code: http.StatusServiceUnavailable, Message: "later"})
	_, err := p.Maintain(t.Context(), []provider.Ref{r})
	if f := provider.Failure(err); f == nil || f.Class != reason.Transient || !strings.Contains(err.Error(), "label the machine a in us-east5/research") {
		t.Errorf("%v", err)
	}
	if got := c.patched(); !slices.Equal(got, []string{"a? Service Unavailable", "b? OK"}) {
		t.Errorf("%q", got)
	}
	if _, err := p.Maintain(t.Context(), []provider.Ref{r}); err != nil {
		t.Error(err)
	}
	if got := c.patched(); !slices.Equal(got, []string{"a? OK"}) {
		t.Errorf("%q", got)
	}
}

// TestMaintenanceThatBeganInPartHasBegun: the slice ends with the machine that is labelled, now or before.
func TestMaintenanceThatBeganInPartHasBegun(t *testing.T) {
	c, r := announced(t)
	p, _ := c.clusters()
	c.Inject(gketest.Fault{Verb: "patch", Resource: "nodes", Name: "a", Times: -1, Code: http.StatusUnprocessableEntity, Message: "denied"})
	for _, tried := range [][]string{{"a? Unprocessable Entity", "b? OK"}, {"a? Unprocessable Entity"}} {
		_, err := p.Maintain(t.Context(), []provider.Ref{r})
		var part *provider.PartError
		if !errors.As(err, &part) || !strings.Contains(err.Error(), "label the machine a in us-east5/research") {
			t.Errorf("%v", err)
		}
		if got := c.patched(); !slices.Equal(got, tried) {
			t.Errorf("%q, want %q", got, tried)
		}
	}
}

// TestASliceOfSeveralMachinesIsMaintainedAsAWhole: another Job may have the rest of its node pool. In some pools
// each machine is a slice by itself.
func TestASliceOfSeveralMachinesIsMaintainedAsAWhole(t *testing.T) {
	for name, c := range map[string]struct {
		topology, pool string
		refused        bool
	}{
		"the rest is not the Job's":    {"2x8", "a", true},
		"nobody knows its topology":    {"", "a", true},
		"each machine is a slice":      {"2x2", "a", false},
		"the third is of another pool": {"2x4", "b", false},
	} {
		t.Run(name, func(t *testing.T) {
			cl, r := announced(t)
			cl.node("c")
			cl.do(http.MethodPatch, "/api/v1/nodes/c/status", `{"status":{"capacity":{"google.com/tpu":"4"}}}`)
			for node, pool := range map[string]string{"a": "a", "b": "a", "c": c.pool} {
				cl.do(http.MethodPatch, "/api/v1/nodes/"+node, `{"metadata":{"labels":{"cloud.google.com/gke-nodepool":"`+pool+`","cloud.google.com/gke-tpu-topology":"`+c.topology+`"}}}`)
			}
			cl.Calls()
			p, _ := cl.clusters()
			_, err := p.Maintain(t.Context(), []provider.Ref{r})
			if f := provider.Failure(err); (f != nil) != c.refused || f != nil && (f.Code != reason.CodeNotEarly || !strings.Contains(f.Message, "all chips of c")) {
				t.Errorf("%v", err)
			}
			if got := cl.patched(); len(got) != map[bool]int{false: 2}[c.refused] {
				t.Errorf("%q", got)
			}
		})
	}
}

// TestAMissingRightIsNamed: with what gives it.
func TestAMissingRightIsNamed(t *testing.T) {
	c, r := announced(t)
	p, _ := c.clusters()
	c.Inject(gketest.Fault{Verb: "patch", Times: -1, Code: http.StatusForbidden, Message: `nodes "a" is forbidden: User "p@x" cannot patch resource "nodes" in API group "" at the cluster scope`})
	_, err := p.Maintain(t.Context(), []provider.Ref{r})
	if f := provider.Failure(err); f == nil || f.Class != reason.Permission || !strings.Contains(f.Message, `cannot patch resource "nodes"`) || !strings.Contains(f.Message, "pitstop gke rbac --allow=early_maintenance") {
		t.Errorf("%v", err)
	}
}

// TestNothingIsLabelledWithoutALook: what cannot be read is no reason to call.
func TestNothingIsLabelledWithoutALook(t *testing.T) {
	for _, resource := range []string{"jobs", "jobsets", "pods", "nodes"} {
		c, r := announced(t)
		p, _ := c.clusters()
		c.Inject(gketest.Fault{Verb: "list", Resource: resource, Times: -1, Code: http.StatusInternalServerError, Message: "no"})
		if _, err := p.Maintain(t.Context(), []provider.Ref{r}); provider.Failure(err) == nil || provider.Failure(err).Class != reason.Transient {
			t.Errorf("%s: %v", resource, err)
		}
		if got := c.patched(); len(got) > 0 {
			t.Errorf("%s: %q", resource, got)
		}
	}
}

// TestMaintenanceOfNothingIsRefused: and of slices that no one call concerns.
func TestMaintenanceOfNothingIsRefused(t *testing.T) {
	c, r := announced(t)
	p, _ := c.clusters("default", "other")
	elsewhere, nowhere := r, r
	elsewhere.Zone, nowhere.Zone = "us-east5/research/other", "us-east5/another/default"
	for _, of := range [][]provider.Ref{nil, {r, elsewhere}, {nowhere}} {
		if _, err := p.Maintain(t.Context(), of); provider.Failure(err) == nil || provider.Failure(err).Class != reason.Invalid {
			t.Errorf("%v: %v", of, err)
		}
	}
	if calls := c.Calls(); len(calls) > 0 {
		t.Errorf("%+v", calls)
	}
}
