package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	checkpointfn "pitstop.internal/functions/checkpoint"
	"pitstop.internal/functions/logevent"
	"pitstop.internal/functions/maintenance"
	"pitstop.internal/functions/patrol"
	"pitstop.internal/functions/recovery"
	"pitstop.internal/functions/recreate"
	"pitstop.internal/scripts/pitstop/flex"
	"pitstop.internal/scripts/pitstop/rbac"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/provider/providertest/trainingtest"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/trigger"
	"pitstop.internal/shared/view"
)

// deployment is Pitstop as it is deployed for a namespace. Patrol and recreate call the cluster, each with the token of its own account.
// The ledger, the checkpoint bucket and the log are those of a bench.
type deployment struct {
	*bed
	bench *fleettest.Bench
	// functions are the handlers of requests, by the type of the request.
	functions        map[string]trigger.Handle
	patrol, logevent trigger.Handle
	// ahead is how far the clock of the functions is set ahead, and entries is how many log entries there were.
	ahead   time.Duration
	entries int
	// left are the requests that come again. While requests are held, all of them do.
	left []cloudevents.Event
	held bool

	mu sync.Mutex
	// changes are the calls that change something in the cluster, as the functions made them. before is called before the next one.
	changes []string
	before  func()
}

// nightPolicy is the policy of the trainings.
const nightPolicy = `{policies: {night: {preset: spot, hang: restart, switches: {early_maintenance: yes, recreate_non_spot: yes, restart: yes}}}}`

// deploy deploys the functions, once the rights of their accounts hold.
func deploy(b *bed) *deployment {
	b.t.Helper()
	b.lists(plannedLists)
	d := &deployment{bed: b, bench: fleettest.New(b.t)}
	file, err := policy.Parse([]byte(nightPolicy))
	b.must(err)
	d.bench.Policies.File = file
	d.bench.Fleet.Provider = provider.Set{provider.CloudTPU: d.bench.Cloud}
	of := func(name, user string) (*fleet.Fleet, provider.Set) {
		client := b.Client
		client.HTTP = &http.Client{Transport: counted{b.Plane.HTTP.Transport, d}}
		client.Token = func(context.Context) (string, error) { return b.Tokens[user], nil }
		clusters := gke.New([]gke.Cluster{{Project: fleettest.Project, Location: "us-east5", Name: "research", Namespaces: []string{b.namespace}}},
			func(context.Context, gke.Cluster) (gke.Client, error) { return client, nil }, d.bench.Clock.Now)
		f, a := *d.bench.Fleet, *d.bench.Fleet.Advancer
		a.Source = "//pitstop/functions/" + name
		f.Advancer, f.Provider = &a, provider.Set{provider.CloudTPU: d.bench.Cloud, provider.GKE: clusters}
		a.Fits = f.Fits
		return &f, provider.Set{provider.CloudTPU: d.bench.Cloud, provider.GKE: clusters}
	}
	us := []string{fleettest.Us}
	watching, providers := of("patrol", Watcher)
	d.patrol = patrol.New(patrol.Deps{
		Fleet: watching, Provider: providers, Audit: d.bench.AuditLog, Publisher: d.bench.Sender, Project: fleettest.Project, Accounts: events.Accounts{Ours: us}, Sleep: d.bench.Sleep,
	})
	d.logevent = logevent.New(logevent.Deps{Fleet: d.bench.Fleet, Projects: []string{fleettest.Project}, Accounts: events.Accounts{Ours: us}})
	acting, providers := of("recreate", Replacer)
	saving, maintainers := of("checkpoint", Maintainer)
	d.functions = map[string]trigger.Handle{
		events.TypeCheckpointRequested: checkpointfn.New(checkpointfn.Deps{
			Fleet: saving, Provider: maintainers, Store: d.bench.Store, Limits: ledger.DefaultLimits,
		}),
		events.TypeRecreateRequested:   recreate.New(recreate.Deps{Fleet: acting, Provider: providers, Buckets: d.bench.Buckets, Limits: ledger.DefaultLimits}),
		events.TypeMaintenanceNotified: maintenance.New(maintenance.Deps{Fleet: d.bench.Fleet}),
		events.TypeRecoveryRequested:   recovery.New(recovery.Deps{Fleet: d.bench.Fleet, Provider: d.bench.Cloud, Store: d.bench.Store}),
	}
	d.allowed()
	return d
}

// counted notes the calls to change something that a function makes. A dry run changes nothing.
type counted struct {
	next http.RoundTripper
	d    *deployment
}

func (c counted) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.URL.Query().Has("dryRun") {
		return c.next.RoundTrip(r)
	}
	c.d.mu.Lock()
	before := c.d.before
	c.d.before = nil
	c.d.mu.Unlock()
	if before != nil {
		before()
	}
	res, err := c.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	_, object, within := strings.Cut(r.URL.Path, "/namespaces/"+c.d.namespace+"/")
	if !within {
		object = strings.Replace(strings.TrimPrefix(r.URL.Path, "/api/v1/"), c.d.namespace+"-", "", 1) // a machine of this case
	}
	c.d.mu.Lock()
	defer c.d.mu.Unlock()
	c.d.changes = append(c.d.changes, fmt.Sprint(r.Method, " ", object, " ", res.StatusCode))
	return res, nil
}

// ticks plays a tick of patrol now, and delivers what follows from it.
func (d *deployment) ticks() {
	d.t.Helper()
	d.passes()
	d.deliver(d.patrol, fleettest.Message(nil, d.bench.Clock.Now()))
}

// passes sets the clock of the functions to the present, and to what it is ahead of that.
func (d *deployment) passes() {
	d.bench.Clock.Advance(max(0, time.Since(d.bench.Clock.Now())+d.ahead))
}

// writes writes an entry into the project's log. The sinks deliver it too.
func (d *deployment) writes(raw []byte) {
	d.t.Helper()
	d.bench.Log.Write(raw)
	d.deliver(d.logevent, fleettest.Message(raw, d.bench.Clock.Now()))
}

// deliver delivers a message, and then the requests that the functions send. A request that has to come again comes with the next message.
func (d *deployment) deliver(h trigger.Handle, e cloudevents.Event) {
	d.t.Helper()
	if outcome := d.bench.Deliver(h, e); outcome == fleettest.Redelivered {
		d.t.Fatal("nothing could be stored")
	}
	again := d.left
	d.left = nil
	for {
		for _, sent := range d.bench.Sender.Sent() {
			again = append(again, fleettest.Event(sent))
		}
		if len(again) == 0 {
			return
		}
		e, again = again[0], again[1:]
		h := d.functions[e.Type()]
		if h == nil {
			continue
		}
		if d.held {
			d.left = append(d.left, e)
			continue
		}
		if outcome := d.bench.Deliver(h, e); outcome == fleettest.Redelivered || outcome == fleettest.Later {
			d.left = append(d.left, e)
		}
	}
}

// workload is what is shown of the training.
func (d *deployment) workload() view.Workload {
	d.t.Helper()
	w, err := d.bench.Fleet.Advancer.Workload(d.t.Context(), fleettest.Project+"/llama")
	if !errors.Is(err, ledger.ErrNotFound) {
		d.must(err)
	}
	return w.Shown(d.bench.Clock.Now())
}

// comes lets the functions run until the workload has come to that.
func (d *deployment) comes(what string, so func(w view.Workload) bool) view.Workload {
	d.t.Helper()
	for end := time.Now().Add(150 * time.Second); time.Now().Before(end); time.Sleep(250 * time.Millisecond) { // time passes by itself here
		d.ticks()
		if w := d.workload(); so(w) {
			return w
		}
	}
	w := d.workload()
	d.t.Fatalf("%s: it does not come to this; the calls are %q, the effects %+v, and this was so:%s", what, d.changes, w.Requests, tale(w))
	return w
}

// tale is what has happened to the workload, for people.
func tale(w view.Workload) (text string) {
	for _, in := range []*view.Incident{w.Closed, w.Incident} {
		if in != nil {
			text += fmt.Sprintf("\nincident %s: %s, %s %s", in.ID, in.Cause, in.Outcome, in.Code)
			for _, line := range in.Timeline {
				text += fmt.Sprintf("\n  %s %s: %s; %s", line.At.UTC().Format(time.TimeOnly), line.Kind, line.Text, line.Reason)
			}
		}
	}
	for _, s := range w.Slices {
		text += fmt.Sprintf("\nslice %s: %s", s.Name, s.State)
	}
	return text
}

// saves writes a complete checkpoint of a step, as the training does.
func (d *deployment) saves(step int64) {
	d.t.Helper()
	d.passes()
	for _, name := range []string{"state/manifest.ocdbt", "_CHECKPOINT_METADATA", "commit_success.txt"} {
		d.bench.Storage.Put(fleettest.Bucket, fmt.Sprintf("run/%d/%s", step, name), []byte("{}"))
	}
}

// onCall has something happen just before the next call that changes something.
func (d *deployment) onCall(f func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.before = f
}

// acting are the cases.
var acting = map[string]func(d *deployment){
	"a gang without one of its machines": func(d *deployment) {
		was := d.gang()
		d.remove("/api/v1/nodes/" + d.pods("llama")[1].Spec.NodeName)
		d.machine("c", "pool", 4)
		d.comes("it is created again", d.has(2))
		d.made("DELETE jobs/llama 200", "POST jobs 201")
		d.another(was)
		if w := d.workload(); w.Incident.Cost.Restarts != 0 || w.Incident.Cause != events.CauseTerminated {
			d.t.Errorf("its training is charged: %+v%s", w.Incident.Cost, tale(w))
		}
		d.resumes()
	},
	"a gang with a crew": func(d *deployment) {
		was := d.gang()
		d.reports(fleettest.Progress(1000))
		d.remove("/api/v1/nodes/" + d.pods("llama")[1].Spec.NodeName)
		d.machine("c", "pool", 4)
		d.comes("it is created again", d.has(2))
		d.made("DELETE jobs/llama 200", "POST jobs 201")
		d.another(was)
		d.comes("its training may begin", func(w view.Workload) bool { return w.Incident != nil && w.Incident.Phase == view.Resuming })
		further := events.CrewReport{Schema: events.Schema, Report: events.ReportProgress, Attempt: 2, Step: 1010, CheckpointStep: 1000}
		d.writesOf(was.Incarnation.ID, further)
		if w := d.workload(); w.Incident == nil {
			d.t.Fatalf("a line of its former life confirms it: %s", tale(w))
		}
		d.reports(further)
		if w := d.workload(); w.Incident != nil || w.Closed.Outcome != view.Resumed || w.Closed.ConfirmedBy != view.ByStep {
			d.t.Errorf("its own step does not confirm it: %s", tale(w))
		}
		d.made()
	},
	"a Job whose machines end as planned": func(d *deployment) {
		was := d.gang()
		d.reports(fleettest.Progress(1000))
		d.passes()
		ends := d.bench.Clock.Now().Add(3 * time.Hour).Truncate(time.Second)
		for _, n := range []string{"a", "b"} {
			end := map[string]any{"node.gke.io/machine-termination-datetime": ends.UTC().Format(time.RFC3339)}
			d.patch("/api/v1/nodes/"+d.namespace+"-"+n, map[string]any{"metadata": map[string]any{"annotations": end}})
		}
		d.comes("its end is known", func(w view.Workload) bool {
			return w.Slices[0].LastNotice != nil && w.Slices[0].LastNotice.WindowStart.Equal(ends)
		})
		d.made()
		d.ahead += 2*time.Hour + 55*time.Minute
		w := d.comes("a save is asked for", isAsked)
		d.saves(1100)
		d.reports(events.CrewReport{Schema: events.Schema, Report: events.ReportSaved, SaveID: w.Incident.Save.ID, CheckpointStep: 1100})
		d.comes("it is verified", func(w view.Workload) bool { return w.Incident.Save.Verified && w.Incident.Phase == view.Window })
		d.made()
		d.ahead += 5 * time.Minute
		d.moves(was)
		d.comes("its training may begin", func(w view.Workload) bool { return w.Incident.Phase == view.Resuming })
		d.reports(events.CrewReport{Schema: events.Schema, Report: events.ReportProgress, Attempt: 2, Step: 1110, CheckpointStep: 1100})
		w = d.workload()
		if w.Incident != nil || w.Closed.Outcome != view.Resumed || w.Closed.ConfirmedBy != view.ByStep || w.Closed.Cause != events.CauseEnd {
			d.t.Errorf("it ends otherwise: %s", tale(w))
		}
		if w.Closed.Cost.Restarts != 0 {
			d.t.Errorf("its end is charged: %+v", w.Closed.Cost)
		}
		d.made()
	},
	"a JobSet with a Pod that runs on": func(d *deployment) {
		was, survivor := d.survives()
		d.stays(5 * time.Minute)
		d.speaks(survivor)
		d.comes("it is created again", d.has(1))
		d.made("POST jobsets 201")
		d.another(was)
	},
	"a JobSet with a Pod that runs on where nobody sees it": func(d *deployment) {
		was, survivor := d.survives()
		lease := func() checkpoint.Lease {
			l, _, err := checkpoint.ReadLease(d.t.Context(), d.bench.Store, fleettest.Directory)
			d.must(err)
			return l
		}
		all := []events.Admission{{Slice: was.Name, Incarnation: was.Incarnation}}
		for _, s := range d.workload().Slices[1:] {
			all = append(all, events.Admission{Slice: s.Name, Incarnation: s.Incarnation})
		}
		d.must(checkpoint.WriteLease(d.t.Context(), d.bench.Store, fleettest.Directory, checkpoint.Lease{
			Workload: d.workload().ID, Attempt: 3, Admitted: all, Written: d.bench.Clock.Now(), By: "crew",
		}))
		d.ahead += 7 * time.Minute // its time to end is over
		byHand := "kubectl delete pod --force --namespace " + d.namespace + " " + survivor.Name
		d.comes("a person is told how to end it", func(w view.Workload) bool {
			return slices.ContainsFunc(w.Slices, func(s view.Slice) bool { return strings.HasSuffix(s.State, byHand) })
		})
		for range 8 { // the machine is silent, and the Pod may still write
			d.ticks()
		}
		d.made()
		d.must(d.Do(d.t.Context(), http.MethodDelete, d.path("Pod", survivor.Name), map[string]any{"gracePeriodSeconds": 0}, nil)) // as that command does
		d.comes("it is created again", d.has(1))
		d.made("POST jobsets 201")
		d.patch("/api/v1/nodes/"+survivor.Spec.NodeName, map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotationSilent: nil}}})
		d.another(was)
		d.comes("the lease names the next", func(view.Workload) bool { return lease().By != "crew" })
		for _, a := range lease().Admitted {
			if slices.ContainsFunc(all, func(b events.Admission) bool { return a.Incarnation.ID == b.Incarnation.ID }) {
				d.t.Errorf("the lease names the former %s", a.Slice)
			}
		}
		d.made()
	},
	"a gang that runs": func(d *deployment) {
		d.gang()
		r := newAccount(d.bed, Replacer)
		r.denies("its deletion", call{http.MethodDelete, d.path("Job", "llama"), precondition(d.object("Job", "llama"))}.dry(), toldAlive)
	},
	"a Job whose maintenance can be moved": func(d *deployment) {
		was := d.gang()
		d.reports(fleettest.Progress(1000))
		d.announces("a")
		d.announces("b")
		w := d.comes("a save is asked for", isAsked)
		d.reports(events.CrewReport{Schema: events.Schema, Report: events.ReportSaved, SaveID: w.Incident.Save.ID, CheckpointStep: 1100})
		d.comes("it is not found", func(w view.Workload) bool {
			looksAgain := func(r view.Request) bool { return r.Action == events.ActionVerify && !r.Retry.IsZero() }
			return w.Incident.Save.Failed != "" || slices.ContainsFunc(w.Requests, looksAgain)
		})
		d.made() // the crew's word alone is no save
		d.saves(1100)
		d.ahead += time.Minute
		d.comes("its machines are labelled", d.has(2))
		d.made("PATCH nodes/a 200", "PATCH nodes/b 200")
		for _, n := range []string{"a", "b"} { // and GKE begins
			labels := map[string]any{"cloud.google.com/active-node-maintenance": "ONGOING"}
			d.patch("/api/v1/nodes/"+d.namespace+"-"+n, map[string]any{"metadata": map[string]any{"labels": labels}})
		}
		w = d.comes("it has begun", func(w view.Workload) bool {
			return w.Slices[0].LastNotice != nil && w.Slices[0].LastNotice.Status == events.NoticeOngoing
		})
		d.made()
		if w.Incident.Phase != view.Window || w.Training.Verified != 1100 {
			d.t.Errorf("it does not wait for its maintenance: %s", tale(w))
		}
		d.moves(was)
		if w := d.workload(); w.Incident.Cost.Restarts != 0 || w.Incident.Cause != events.CauseMaintenance {
			d.t.Errorf("its training is charged: %+v%s", w.Incident.Cost, tale(w))
		}
		d.comes("its training may begin", func(w view.Workload) bool { return w.Incident.Phase == view.Resuming })
		d.reports(events.CrewReport{Schema: events.Schema, Report: events.ReportProgress, Attempt: 2, Step: 1110, CheckpointStep: 1100})
		w = d.comes("it has ended", func(w view.Workload) bool { return w.Incident == nil })
		if w.Closed.Outcome != view.Resumed || w.Closed.Cause != events.CauseMaintenance {
			d.t.Errorf("it ends otherwise: %s", tale(w))
		}
		d.made()
	},
	"a Job whose save nobody finds": func(d *deployment) {
		d.gang()
		d.reports(fleettest.Progress(1000))
		d.announces("a")
		w := d.comes("a save is asked for", isAsked)
		d.reports(events.CrewReport{Schema: events.Schema, Report: events.ReportSaved, SaveID: w.Incident.Save.ID, CheckpointStep: 1100})
		d.stays(2 * time.Hour)
		if w := d.workload(); w.Incident == nil || w.Incident.Save.Verified || w.Incident.Phase == view.Maintaining {
			d.t.Errorf("its window is not let come: %s", tale(w))
		}
	},
	"a Job that is replaced in between": func(d *deployment) {
		d.gang()
		d.onCall(func() {
			d.remove(d.path("Job", "llama") + "?propagationPolicy=Background")
			o := d.job("llama")
			within(o, "metadata")["labels"] = map[string]any{events.LabelPolicy: "night"}
			delete(within(o, "metadata"), "annotations")
			d.create(o)
		})
		d.evict(d.pods("llama")[1])
		d.comes("the call is refused", d.has(1))
		d.made("DELETE jobs/llama 409")
		other := d.ready("llama")
		d.comes("it is its owner's", func(w view.Workload) bool { return w.Incident == nil })
		d.stays(time.Hour)
		if r, _ := d.reading("llama", 0); r.State != gke.Ready || r.Incarnation != other.Incarnation {
			d.t.Errorf("it was %+v and is %+v", other, r)
		}
	},
	"a JobSet without restarts left": func(d *deployment) {
		was := d.gangs(restarts(1))
		d.evict(d.pods("llama-slice-0")[1])
		d.restarted(was, 1)
		d.evict(d.pods("llama-slice-0")[1])
		d.comes("it is created again", d.has(2))
		d.made("DELETE jobsets/llama 200", "POST jobsets 201")
		d.another(was)
		if w := d.workload(); w.Incident.Cost.Restarts != 0 {
			d.t.Errorf("its training is charged: %+v%s", w.Incident.Cost, tale(w))
		}
		d.resumes()
	},
	"a JobSet with restarts left": func(d *deployment) {
		was := d.gangs(restarts(1))
		d.evict(d.pods("llama-slice-0")[1])
		d.comes("it has another life", func(w view.Workload) bool { return trains(w) && w.Slices[0].Incarnation.ID != was.Incarnation.ID })
		d.saves(1010)
		d.stays(time.Hour)
	},
	"a Job that its owner deletes": func(d *deployment) {
		d.gang()
		d.remove(d.path("Job", "llama") + "?propagationPolicy=Background")
		d.gone("llama", gke.Ready, gke.Unhealthy, gke.Deleting)
		d.deletedBy(fleettest.Owner)
		d.comes("it is released", func(w view.Workload) bool { return w.Slices[0].Released })
		d.stays(time.Hour)
	},
	"a Job that a tool of its owner deletes": func(d *deployment) {
		d.gang()
		d.remove(d.path("Job", "llama") + "?propagationPolicy=Background")
		d.gone("llama", gke.Ready, gke.Unhealthy, gke.Deleting)
		d.deletedBy("system:serviceaccount:argocd:argocd-application-controller")
		d.comes("it is released", func(w view.Workload) bool { return w.Slices[0].Released })
		d.stays(time.Hour)
	},
	"a Job that a tool creates again once Pitstop has deleted it": func(d *deployment) {
		was := d.gang()
		o := d.job("llama")
		meta := within(o, "metadata")
		meta["labels"], meta["annotations"] = map[string]any{events.LabelPolicy: "night"}, map[string]any{events.MetadataCheckpointDir: fleettest.Directory}
		d.onCall(func() { // the deletion
			d.onCall(func() { d.create(o) })
		})
		d.remove("/api/v1/nodes/" + d.pods("llama")[1].Spec.NodeName)
		d.machine("c", "pool", 4)
		d.comes("it would be created again", d.has(2))
		d.made("DELETE jobs/llama 200", "POST jobs 409")
		d.another(was)
		d.resumes()
	},
	"a failed Job that is removed": func(d *deployment) {
		was := d.gang()
		d.held = true
		d.evict(d.pods("llama")[1])
		d.comes("it is lost", func(w view.Workload) bool { return w.Slices[0].Condition == evidence.Lost })
		d.patch(d.path("Job", "llama"), map[string]any{"spec": map[string]any{"ttlSecondsAfterFinished": 1}})
		d.gone("llama", gke.Lost, gke.Deleting)
		d.deletedBy("system:serviceaccount:kube-system:ttl-after-finished-controller")
		d.held = false
		d.comes("its owner's word is waited for", func(w view.Workload) bool { return w.Incident != nil && w.Incident.Phase == view.PhaseGrace })
		d.ahead += bounds.Grace + time.Minute
		d.comes("it is created again", d.has(1))
		d.made("POST jobs 201")
		d.another(was)
		d.resumes()
	},
	"a Job whose training fails": func(d *deployment) {
		was := d.gang()
		for range bounds.MaxRestarts {
			d.exits(d.pods("llama")[1], 1)
			d.comes("it is created again", d.has(2))
			d.made("DELETE jobs/llama 200", "POST jobs 201")
			was = d.another(was)
			d.comes("it is admitted", func(w view.Workload) bool { return w.Incident == nil || w.Incident.Phase == view.Resuming })
		}
		d.exits(d.pods("llama")[1], 1)
		w := d.comes("it is a person's", func(w view.Workload) bool { return w.Incident == nil && w.Closed != nil })
		if w.Closed.Outcome != view.Escalated || w.Closed.Code != reason.CodeBudget {
			d.t.Errorf("it ends otherwise: %s", tale(w))
		}
		d.made()
	},
	"a Job that its queue suspends": func(d *deployment) {
		d.gang()
		d.patch(d.path("Job", "llama"), map[string]any{"metadata": map[string]any{"labels": map[string]any{"kueue.x-k8s.io/queue-name": "tpus"}}})
		d.patch(d.path("Job", "llama"), map[string]any{"spec": map[string]any{"suspend": true}})
		d.comes("it waits in its queue", func(w view.Workload) bool { return strings.Contains(w.Slices[0].State, "the queue tpus") })
		d.stays(time.Hour)
	},
}

// isAsked reports whether the training was asked to save.
func isAsked(w view.Workload) bool {
	return w.Incident != nil && slices.ContainsFunc(w.Incident.Calls, func(c view.Call) bool { return c.Action == events.ActionSave && !c.Answered.IsZero() })
}

// reports writes a line of the crew in a Pod of the Job, which knows the life of its Job by its label.
func (d *deployment) reports(r events.CrewReport) {
	d.t.Helper()
	d.writesOf(d.pods("llama")[0].Labels["batch.kubernetes.io/controller-uid"], r)
}

// writesOf writes a line of the crew in a Pod of a life of the Job.
func (d *deployment) writesOf(life string, r events.CrewReport) {
	d.t.Helper()
	d.passes()
	d.entries++
	r.Project, r.Zone, r.Node, r.Life, r.Hostname = fleettest.Project, "us-east5/research/"+d.namespace, "llama", life, d.pods("llama")[0].Name
	d.writes(trainingtest.PodEntry(r, d.bench.Clock.Now(), d.entries))
}

// gang is the guide's Job of two machines, which trains and is known.
func (d *deployment) gang() gke.Reading {
	d.t.Helper()
	return d.begins("llama", multiHost())
}

// gangs is the same in a JobSet. Change changes its specification.
func (d *deployment) gangs(change func(spec map[string]any)) gke.Reading {
	d.t.Helper()
	return d.begins("llama-slice-0", asJobSet(multiHost(), 1), change)
}

func (d *deployment) begins(slice string, o flex.Options, change ...func(spec map[string]any)) gke.Reading {
	d.t.Helper()
	d.watched(o, change...)
	d.machine("a", "pool", 4)
	d.machine("b", "pool", 4)
	r := d.ready(slice)
	d.comes("it is known", trains)
	d.saves(1000)
	return r
}

// survives begins a JobSet, and has it fail and be deleted while one Pod of it hangs on a machine that does not answer.
func (d *deployment) survives() (was gke.Reading, survivor gke.Pod) {
	d.t.Helper()
	d.watched(asJobSet(multiHost(), 2), restarts(0))
	for _, pool := range []string{"x", "y"} {
		d.machine(pool+"-a", pool, 4)
		d.machine(pool+"-b", pool, 4)
	}
	was = d.ready("llama-slice-0")
	d.ready("llama-slice-1")
	d.comes("it is known", trains)
	d.saves(1000)
	survivor = d.pods("llama-slice-1")[0]
	d.must(d.Silence(d.t.Context(), survivor.Spec.NodeName))
	d.exits(d.pods("llama-slice-0")[0], 1)
	d.comes("it is deleted", d.has(1))
	d.made("DELETE jobsets/llama 200")
	d.comes("its Pod is waited for", func(w view.Workload) bool {
		return w.Slice("llama-slice-0").Condition == evidence.Gone && w.Slice("llama-slice-1").Condition == evidence.Deleting
	})
	return was, survivor
}

// restarts bounds the restarts of a JobSet, whatever they are for.
func restarts(n int) func(spec map[string]any) {
	return func(spec map[string]any) { spec["failurePolicy"] = map[string]any{"maxRestarts": n} }
}

// has says that so many calls to change something were made.
func (d *deployment) has(n int) func(view.Workload) bool {
	return func(view.Workload) bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.changes) >= n
	}
}

// made checks which calls to change something were made since the last time.
func (d *deployment) made(want ...string) {
	d.t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Equal(d.changes, want) {
		d.t.Errorf("the calls are %q, want %q", d.changes, want)
	}
	d.changes = nil
}

// stays checks that no function changes anything for so long.
func (d *deployment) stays(ahead time.Duration) {
	d.t.Helper()
	for range 10 {
		d.ahead += ahead / 10
		d.ticks()
	}
	d.made()
}

// another waits until a slice is ready, checks that this is another life, and returns its reading.
func (d *deployment) another(former gke.Reading) gke.Reading {
	d.t.Helper()
	r := d.follow(former.Name, "it is ready again", is(gke.Ready), gke.Creating, gke.Unhealthy)
	if r.Incarnation.ID == former.Incarnation.ID {
		d.t.Errorf("it was %+v and is %+v", former, r)
	}
	return r
}

// moves takes the two machines of a Job away and brings two others, and waits until the Job is another one there.
func (d *deployment) moves(former gke.Reading) {
	d.t.Helper()
	for _, n := range []string{"a", "b"} {
		d.remove("/api/v1/nodes/" + d.namespace + "-" + n)
	}
	d.machine("c", "pool", 4)
	d.machine("d", "pool", 4)
	d.comes("it is created again", d.has(2))
	d.made("DELETE jobs/llama 200", "POST jobs 201")
	d.another(former)
}

// resumes checks that the incident ends once the training has saved a later step. Without a crew's line, Pitstop looks for the checkpoint
// when the time to resume is over.
func (d *deployment) resumes() {
	d.t.Helper()
	const step = 1010
	d.comes("its training may begin", func(w view.Workload) bool { return w.Incident != nil && w.Incident.Phase == view.Resuming })
	d.saves(step)
	d.ahead += bounds.ResumeFor + time.Minute
	w := d.comes("it has ended", func(w view.Workload) bool { return w.Incident == nil })
	if w.Closed.Outcome != view.Resumed || w.Training.Verified != step {
		d.t.Errorf("it ends otherwise: %+v %s", w.Training, tale(w))
	}
	d.made()
}

// speaks ends the silence of a Pod and of its machine.
func (d *deployment) speaks(pod gke.Pod) {
	d.t.Helper()
	again := map[string]any{"metadata": map[string]any{"annotations": map[string]any{annotationSilent: nil}}}
	d.patch(d.path("Pod", pod.Name), again)
	d.patch("/api/v1/nodes/"+pod.Spec.NodeName, again)
}

// deletedBy writes the entry of the audit log that somebody has deleted the Job.
func (d *deployment) deletedBy(who string) {
	d.t.Helper()
	d.passes()
	d.entries++
	now := d.bench.Clock.Now().UTC().Format(time.RFC3339Nano)
	raw, err := json.Marshal(map[string]any{
		"insertId": fmt.Sprintf("entry-%d", d.entries), "logName": "projects/" + fleettest.Project + "/logs/cloudaudit.googleapis.com%2Factivity",
		"timestamp": now, "receiveTimestamp": now, "severity": "NOTICE",
		"resource": map[string]any{"type": "k8s_cluster", "labels": map[string]any{"project_id": fleettest.Project, "location": "us-east5", "cluster_name": "research"}},
		"protoPayload": map[string]any{
			"@type": "type.googleapis.com/google.cloud.audit.AuditLog", "status": map[string]any{}, "authenticationInfo": map[string]any{"principalEmail": who},
			"serviceName": "k8s.io", "methodName": "io.k8s.batch.v1.jobs.delete", "resourceName": "batch/v1/namespaces/" + d.namespace + "/jobs/llama",
		},
		"operation": map[string]any{"producer": "k8s.io", "first": true, "last": true},
	})
	d.must(err)
	d.writes(raw)
}

// trains says that nothing is the matter with any slice.
func trains(w view.Workload) bool {
	return len(w.Slices) > 0 && w.Incident == nil && !slices.ContainsFunc(w.Slices, func(s view.Slice) bool { return s.Condition != evidence.Ready })
}

// watched applies a plan whose owner lets Pitstop act on it.
func (d *deployment) watched(o flex.Options, change ...func(spec map[string]any)) {
	d.t.Helper()
	o.Policy, o.Directory = "night", fleettest.Directory
	d.plans(trained(o), change...)
}

// grants gives the accounts the rights and the bounds that pitstop gke rbac prints, and returns what gives them those of one namespace.
func grants(t testing.TB, p *Plane, namespaces []string) func(b *bed) {
	t.Helper()
	text, err := rbac.Manifest(rbac.Options{
		Patrol: rbac.Account{Email: Watcher, ID: "107000000000000000011"}, Recreate: rbac.Account{Email: Replacer, ID: "107000000000000000012"},
		Checkpoint: rbac.Account{Email: Maintainer, ID: "107000000000000000013"},
		Allow:      "recreate,recreate_non_spot,restart,early_maintenance", Namespaces: namespaces,
	})
	if err != nil {
		t.Fatal(err)
	}
	printed := func(b *bed, namespace string) {
		objects, err := Objects([]byte(text))
		b.must(err)
		for _, o := range objects {
			if in, _ := within(o, "metadata")["namespace"].(string); in != namespace {
				continue
			}
			b.create(o)
			kind, _ := o["kind"].(string)
			name, _ := within(o, "metadata")["name"].(string)
			path := b.path(kind, name)
			b.t.Cleanup(func() { b.remove(path) })
		}
	}
	printed(newBed(t, p, "acts"), "")
	return func(b *bed) { printed(b, b.namespace) }
}

// acts plays the cases side by side.
func acts(t *testing.T, p *Plane) {
	t.Helper()
	names := slices.Sorted(maps.Keys(acting))
	namespaces := numbered("acts", len(names))
	granted := grants(t, p, namespaces)
	for i, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBed(t, p, namespaces[i])
			granted(b)
			acting[name](deploy(b))
		})
	}
}

// numbered are so many names.
func numbered(name string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprintf("%s-%d", name, i))
	}
	return all
}

// allowed waits until the rights and the bounds of the accounts hold: the API server learns of them a little later.
func (d *deployment) allowed() {
	d.t.Helper()
	for _, user := range []string{Watcher, Replacer, Maintainer} {
		newAccount(d.bed, user).until(user+" may read", func(_ gke.Objects, err error) bool { return err == nil })
	}
	r := newAccount(d.bed, Replacer)
	for _, told := range []string{"creates nothing", unlisted} {
		o := d.job("again")
		abuses[slices.IndexFunc(abuses, func(a abuse) bool { return strings.Contains(a.told, told) })].wrong(o)
		r.answers("once the policy holds", call{http.MethodPost, Path("Job", d.namespace), r.text(o)}.dry(), http.StatusUnprocessableEntity, told)
	}
}
