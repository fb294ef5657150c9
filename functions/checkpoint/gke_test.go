package checkpoint_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	checkpointfn "pitstop.internal/functions/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/provider/gke/gketest"
	"pitstop.internal/shared/view"
)

const scope = "us-east5/trainers/default"

// clusterBench is a bench with a cluster.
type clusterBench struct {
	*bench
	cluster   *gketest.Server
	client    gke.Client
	providers provider.Set
}

func (b *clusterBench) call(method, path, body string) {
	b.T.Helper()
	req, err := http.NewRequestWithContext(b.T.Context(), method, b.client.URL+path, strings.NewReader(body))
	b.Must(err)
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	res, err := b.client.HTTP.Do(req)
	b.Must(err)
	b.Must(res.Body.Close())
	if res.StatusCode >= 300 {
		b.T.Fatalf("%s %s: answer %d", method, path, res.StatusCode)
	}
}

// machine makes one with four chips that announces maintenance.
func (b *clusterBench) machine(name string) {
	b.T.Helper()
	b.call(http.MethodPost, "/api/v1/nodes", fmt.Sprintf(`{"metadata":{"name":%q,"labels":{"cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice"}},`+
		`"status":{"capacity":{"google.com/tpu":"4"},"allocatable":{"google.com/tpu":"4"},"conditions":[{"type":"Ready","status":"True"}]}}`, name))
	b.announces(name, true)
}

// announces writes on a machine that maintenance comes, and whether it can be moved.
func (b *clusterBench) announces(name string, movable bool) {
	b.T.Helper()
	b.call(http.MethodPatch, "/api/v1/nodes/"+name, fmt.Sprintf(`{"metadata":{"annotations":{"node.gke.io/upcoming-maintenance":"{\"maintenanceStatus\":\"PENDING\",\"canReschedule\":%v,\"windowStartTime\":\"%s\",\"windowEndTime\":\"%s\"}"}}}`,
		movable, window.WindowStart.Format(time.RFC3339), window.WindowEnd.Format(time.RFC3339)))
}

// template is that of Pods with four chips each.
const template = `{"spec":{"restartPolicy":"Never","nodeSelector":{"cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice"},"containers":[{"name":"train","image":"train:1","resources":{"limits":{"google.com/tpu":4}}}]}}`

// toLabel is a Job of two Pods, or a JobSet of two slices with one Pod each, whose machines announce maintenance and whose save was
// verified. The request is to start the maintenance now.
func toLabel(t *testing.T, set bool) *clusterBench {
	t.Helper()
	b := &clusterBench{bench: &bench{Bench: fleettest.New(t), limits: ledger.DefaultLimits}}
	b.cluster = gketest.New(gketest.Config{Clock: b.Clock, Seed: 1})
	b.client = gke.Client{HTTP: &http.Client{Transport: b.cluster.Transport()}, URL: "http://cluster.invalid"}
	clusters := gke.New([]gke.Cluster{{Project: fleettest.Project, Location: "us-east5", Name: "trainers"}},
		func(context.Context, gke.Cluster) (gke.Client, error) { return b.client, nil }, b.Clock.Now)
	b.providers = provider.Set{provider.CloudTPU: b.Cloud, provider.GKE: clusters}
	b.Fleet.Provider = b.providers
	file, err := policy.Parse([]byte("policies: {job: {preset: reserved, switches: {recreate_non_spot: yes}}}"))
	b.Must(err)
	b.Policies.File = file
	b.machine("n0")
	b.machine("n1")
	meta := `"name":"llama","labels":{"pitstop-policy":"job"},"annotations":{"pitstop-checkpoint-dir":"` + fleettest.Directory + `"}`
	job := func(pods int) string {
		return fmt.Sprintf(`{"completionMode":"Indexed","parallelism":%d,"completions":%d,"backoffLimit":0,"template":%s}`, pods, pods, template)
	}
	all := []string{slice}
	if set {
		all = []string{"llama-slice-0", "llama-slice-1"}
		b.call(http.MethodPost, "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets", `{"metadata":{`+meta+`},"spec":{"replicatedJobs":[{"name":"slice","replicas":2,"template":{"spec":`+job(1)+`}}]}}`)
	} else {
		b.call(http.MethodPost, "/apis/batch/v1/namespaces/default/jobs", `{"metadata":{`+meta+`},"spec":`+job(2)+`}`)
	}
	b.Clock.Advance(time.Minute)
	b.changes()
	for _, s := range all {
		b.Look(scope, s)
	}
	w := b.Report(b.Workload(id), all[0], fleettest.Progress(1000))
	for _, s := range all { // as patrol has them told
		w = b.Give(w, evidence.Noticed{
			Origin: evidence.Origin{Time: b.Clock.Now(), Rank: events.RankReading}, Slice: s, Incarnation: w.Slice(s).Incarnation, Notice: window, InAPI: true,
		})
	}
	b.Clock.Advance(time.Minute)
	b.Give(b.Workload(id), evidence.Ticked{})
	b.request = b.next()
	b.Want(b.request.Action, events.ActionSave)
	b.Want(b.deliver(), fleettest.Handled)
	b.Clock.Advance(time.Minute)
	b.Report(b.Workload(id), all[0], events.CrewReport{Schema: events.Schema, Report: events.ReportSaved, SaveID: b.request.SaveID, CheckpointStep: 1200})
	b.request = b.next()
	b.Want(b.request.Action, events.ActionVerify)
	b.commit("1200")
	b.Want(b.deliver(), fleettest.Handled)
	b.request = b.next()
	b.Want(b.request.Action, events.ActionMaintain)
	b.Want(b.changes(), []string(nil))
	return b
}

func (b *clusterBench) deliver() string {
	b.T.Helper()
	return b.Deliver(checkpointfn.New(checkpointfn.Deps{Fleet: b.Fleet, Provider: b.providers, Store: b.Store, Limits: b.limits}), fleettest.Request(b.request))
}

// changes are the calls that changed something in the cluster, or tried to, since the last time.
func (b *clusterBench) changes() (all []string) {
	for _, c := range b.cluster.Calls() {
		if c.Method != http.MethodGet {
			path, _, _ := strings.Cut(c.Path, "?")
			all = append(all, fmt.Sprint(c.Method, " ", path, " ", c.Status))
		}
	}
	return all
}

// labelled are the two labels.
var labelled = []string{"PATCH /api/v1/nodes/n0 200", "PATCH /api/v1/nodes/n1 200"}

// TestEachMachineOfAJobIsLabelledOnce: after a verified save, however often the request comes.
func TestEachMachineOfAJobIsLabelledOnce(t *testing.T) {
	for name, set := range map[string]bool{"a Job": false, "a JobSet": true} {
		t.Run(name, func(t *testing.T) {
			b := toLabel(t, set)
			b.Want(b.deliver(), fleettest.Handled)
			b.Want(b.changes(), labelled)
			b.Want(b.Slots(scope), 1)
			b.Want(b.open().Phase, view.Window)
			b.Want(b.deliver(), fleettest.Ignored)
			b.Want(b.changes(), []string(nil))
			var recorded []string
			for _, c := range b.open().Calls {
				if c.Action == events.ActionMaintain {
					recorded = append(recorded, c.Method)
				}
			}
			b.Want(recorded, []string{"io.k8s.core.v1.nodes.patch"})
		})
	}
}

// TestNoMachineOfAJobIsLabelled: where the reading, the policy, the pause or the brake is against it.
func TestNoMachineOfAJobIsLabelled(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *clusterBench)
		phase  view.Phase
	}{
		"that cannot be moved any more": {func(b *clusterBench) { b.announces("n1", false) }, view.Window},
		"that begins": {func(b *clusterBench) {
			b.call(http.MethodPatch, "/api/v1/nodes/n1", `{"metadata":{"labels":{"cloud.google.com/active-node-maintenance":"ONGOING"}}}`)
		}, view.Window},
		"that another training may share": {func(b *clusterBench) {
			b.call(http.MethodPatch, "/api/v1/nodes/n1/status", `{"status":{"capacity":{"google.com/tpu":"8"}}}`)
		}, view.Window},
		"when its machines cannot be listed": {func(b *clusterBench) {
			b.cluster.Inject(gketest.Fault{Verb: "list", Resource: "nodes", Times: -1, Code: http.StatusServiceUnavailable})
		}, view.Maintaining},
		"when the switch is no by now":     {func(b *clusterBench) { b.Policies.Ceiling.EarlyMaintenance = policy.No }, view.Window},
		"when it may not be brought back":  {func(b *clusterBench) { b.Policies.Ceiling.RecreateNonSpot = policy.No }, view.Window},
		"when the brake of the zone holds": {func(b *clusterBench) { b.limits.Zone = 0 }, view.Maintaining},
	} {
		t.Run(name, func(t *testing.T) {
			b := toLabel(t, false)
			c.change(b)
			b.changes()
			if got := b.deliver(); got != fleettest.Ignored && got != fleettest.Handled {
				t.Errorf("the request is %s", got)
			}
			b.Want(b.changes(), []string(nil))
			b.Want(b.Slots(scope), 0)
			b.stands(c.phase)
		})
	}
}

// TestALabelThatIsRefusedComesInTheWindow: without the right to set it, and where an admission policy refuses it.
func TestALabelThatIsRefusedComesInTheWindow(t *testing.T) {
	for code, message := range map[int]string{
		http.StatusForbidden:           `nodes "n0" is forbidden: User "p@x" cannot patch resource "nodes" in API group "" at the cluster scope`,
		http.StatusUnprocessableEntity: "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: Pitstop sets the label and no other",
	} {
		b := toLabel(t, false)
		b.cluster.Inject(gketest.Fault{Verb: "patch", Resource: "nodes", Times: -1, Code: code, Message: message})
		b.Want(b.deliver(), fleettest.Handled)
		b.Want(b.open().Phase, view.Window)
		b.Want(b.Slots(scope), 0)
	}
}

// TestALostAnswerCostsNoSecondLabel: the machine that was labelled has it already.
func TestALostAnswerCostsNoSecondLabel(t *testing.T) {
	b := toLabel(t, false)
	b.cluster.Inject(gketest.Fault{Verb: "patch", Resource: "nodes", Name: "n0", LoseAnswer: true})
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.changes(), []string{"PATCH /api/v1/nodes/n0 0", "PATCH /api/v1/nodes/n1 200"})
	b.Want(b.open().Phase, view.Maintaining)
	b.Clock.Advance(time.Minute)
	b.Give(b.Workload(id), evidence.Ticked{})
	b.request = b.next()
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.changes(), []string(nil))
	b.Want(b.open().Phase, view.Window)
}

// TestAHeldLabelWaitsForAnotherSave: the training has gone on since the first one.
func TestAHeldLabelWaitsForAnotherSave(t *testing.T) {
	b := toLabel(t, false)
	b.limits.Zone = 0
	b.Want(b.deliver(), fleettest.Ignored)
	b.limits.Zone = ledger.DefaultLimits.Zone
	b.Clock.Advance(time.Hour)
	b.Look(scope, slice)
	b.Give(b.Workload(id), evidence.Ticked{})
	if b.request = b.next(); b.request.Action == events.ActionMaintain {
		b.Want(b.deliver(), fleettest.Ignored)
		b.request = b.next()
	}
	b.Want(b.request.Action, events.ActionSave)
	b.Want(b.changes(), []string(nil))
	b.Want(b.Slots(scope), 0)
	b.Want(b.open().Phase, view.Saving)
}

// TestMaintenanceThatBeganInPartHasBegun: GKE ends the Pods of the labelled machine, and the others follow.
func TestMaintenanceThatBeganInPartHasBegun(t *testing.T) {
	b := toLabel(t, false)
	b.cluster.Inject(gketest.Fault{Verb: "patch", Resource: "nodes", Name: "n1", Times: -1, Code: http.StatusUnprocessableEntity, Message: "denied"})
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.changes(), []string{"PATCH /api/v1/nodes/n0 200", "PATCH /api/v1/nodes/n1 422"})
	b.Want(b.open().Phase, view.Window)
	b.Want(b.Slots(scope), 1)
}
