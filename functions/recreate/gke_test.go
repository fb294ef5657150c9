package recreate_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/functions/recreate"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/provider/gke/gketest"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/trigger"
	"pitstop.internal/shared/view"
)

const (
	scope   = "us-east5/trainers/default"
	jobs    = "/apis/batch/v1/namespaces/default/jobs"
	jobSets = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
	secret  = "hunter2-hunter2"
)

// clusterBench is a bench with a cluster.
type clusterBench struct {
	*bench
	cluster   *gketest.Server
	client    gke.Client
	providers provider.Set
}

func newClusterBench(t *testing.T) *clusterBench {
	t.Helper()
	b := &clusterBench{bench: &bench{Bench: fleettest.New(t), limits: ledger.DefaultLimits}}
	b.cluster = gketest.New(gketest.Config{Clock: b.Clock, Seed: 1})
	b.client = gke.Client{HTTP: &http.Client{Transport: b.cluster.Transport()}, URL: "http://cluster.invalid"}
	clusters := gke.New([]gke.Cluster{{Project: fleettest.Project, Location: "us-east5", Name: "trainers"}},
		func(context.Context, gke.Cluster) (gke.Client, error) { return b.client, nil }, b.Clock.Now)
	b.providers = provider.Set{provider.CloudTPU: b.Cloud, provider.GKE: clusters}
	b.Fleet.Provider = b.providers
	return b
}

func (b *clusterBench) call(method, path, body string) {
	b.T.Helper()
	req, err := http.NewRequestWithContext(b.T.Context(), method, b.client.URL+path, strings.NewReader(body))
	b.Must(err)
	res, err := b.client.HTTP.Do(req)
	b.Must(err)
	b.Must(res.Body.Close())
	if res.StatusCode >= 300 {
		b.T.Fatalf("%s %s: answer %d", method, path, res.StatusCode)
	}
}

// spec is that of a Job of two Pods with four chips each, which fails with its first loss.
const spec = `{"completionMode":"Indexed","parallelism":2,"completions":2,"backoffLimit":0,"template":{"spec":{"restartPolicy":"Never","nodeSelector":{"cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice"},` +
	`"containers":[{"name":"train","image":"train:1","env":[{"name":"TOKEN","value":"` + secret + `"}],"resources":{"limits":{"google.com/tpu":4},"requests":{"google.com/tpu":4}}}]}}}`

const meta = `"labels":{"pitstop-policy":"spot"},"annotations":{"pitstop-checkpoint-dir":"` + fleettest.Directory + `"}`

// loses makes a Job, or a JobSet of two, and so many machines, of which the first is lost later. The request is to delete it.
func (b *clusterBench) loses(path, manifest string, machines int, slices ...string) {
	b.T.Helper()
	for i := range machines {
		b.call(http.MethodPost, "/api/v1/nodes", fmt.Sprintf(`{"metadata":{"name":"n%d","labels":{"cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice","cloud.google.com/gke-spot":"true"}},`+
			`"status":{"allocatable":{"google.com/tpu":"4"},"conditions":[{"type":"Ready","status":"True"}]}}`, i))
	}
	b.call(http.MethodPost, path, manifest)
	b.Clock.Advance(time.Minute)
	b.looks(slices...)
	b.Report(b.Workload(id), slices[0], fleettest.Progress(1000))
	b.call(http.MethodDelete, "/api/v1/nodes/n0", "")
	b.Clock.Advance(2 * time.Minute)
	b.looks(slices...)
	b.request = b.next()
	b.cluster.Calls()
}

// looks reads slices, as patrol would.
func (b *clusterBench) looks(slices ...string) {
	b.T.Helper()
	for _, s := range slices {
		b.Look(scope, s)
	}
}

func (b *clusterBench) handle() trigger.Handle {
	return recreate.New(recreate.Deps{Fleet: b.Fleet, Provider: b.providers, Buckets: b.Buckets, Limits: b.limits})
}

func (b *clusterBench) deliver() string {
	b.T.Helper()
	return b.Deliver(b.handle(), fleettest.Request(b.request))
}

// changes are the calls that changed something in the cluster, or tried to, since the last time.
func (b *clusterBench) changes() (all []string) {
	for _, c := range b.cluster.Calls() {
		if c.Method != http.MethodGet {
			path, options, _ := strings.Cut(c.Path, "?")
			method := c.Method
			if strings.Contains(options, "dryRun=All") {
				method = "dry " + method
			}
			all = append(all, fmt.Sprint(method, " ", path, " ", c.Status))
		}
	}
	return all
}

func (b *clusterBench) objects() gke.Objects {
	b.T.Helper()
	o, err := b.client.List(b.T.Context())
	b.Must(err)
	return o
}

func loseJob(t *testing.T) *clusterBench {
	t.Helper()
	b := newClusterBench(t)
	b.loses(jobs, `{"metadata":{"name":"llama",`+meta+`},"spec":`+spec+`}`, 2, slice)
	return b
}

// TestAFailedJobIsDeletedAndCreatedOnce: each with one call, however often the request comes. The answer to a call is its end.
func TestAFailedJobIsDeletedAndCreatedOnce(t *testing.T) {
	b := loseJob(t)
	was := b.objects().Jobs[0]
	b.changes()
	b.Want(b.request.Action, events.ActionDelete)
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.deliver(), fleettest.Ignored)
	b.Want(b.changes(), []string{"dry POST " + jobs + " 409", "DELETE " + jobs + "/llama 200"})

	b.request = b.next() // the function has seen that it is gone
	b.Want(b.request.Action, events.ActionCreate)
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.asked().Stage, view.StageDone)
	b.Want(b.deliver(), fleettest.Ignored)
	b.Want(b.changes(), []string{"POST " + jobs + " 201"})
	is := b.objects().Jobs[0]
	b.Want(is.Labels, map[string]string{"pitstop-policy": "spot", "pitstop-workload": "llama", "pitstop-incident": b.request.Incident})
	b.Want(is.Annotations, map[string]string{"pitstop-checkpoint-dir": fleettest.Directory, "pitstop-request": ledger.RequestID(b.request.Request, scope)})
	b.Want(is.UID == was.UID, false)

	b.call(http.MethodPost, "/api/v1/nodes", `{"metadata":{"name":"n9","labels":{"cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice"}},`+
		`"status":{"allocatable":{"google.com/tpu":"4"},"conditions":[{"type":"Ready","status":"True"}]}}`)
	b.Clock.Advance(time.Minute)
	b.looks(slice)
	w := b.Workload(id)
	s := w.Slices[0]
	if s.Condition != evidence.Ready || s.Incarnation.ID != is.UID || w.Incident == nil || s.Maker != w.Incident.ID {
		t.Errorf("the incident does not know what it created: %+v", s)
	}
	b.Want(strings.Contains(b.Logged(), secret), false)
}

// TestALookAfterTheDeletionMayFail: the deletion is done and stored, and patrol sees later that the Job is gone.
func TestALookAfterTheDeletionMayFail(t *testing.T) {
	b := loseJob(t)
	heals := func() {}
	b.cluster.Inject(gketest.Fault{Verb: "delete", Resource: "jobs", Before: func() {
		heals = b.cluster.Inject(gketest.Fault{Code: http.StatusServiceUnavailable, Times: -1})
	}})
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.asked().Stage, view.StageDone)
	b.Want(b.request.Action, events.ActionDelete)
	heals()
	b.Want(len(b.objects().Jobs), 0)
	b.Clock.Advance(time.Minute)
	b.looks(slice)
	b.request = b.next()
	b.Want(b.request.Action, events.ActionCreate)
}

// TestWhatWouldNotComeBackIsNotDeleted: a person is told why, and what has to be mended.
func TestWhatWouldNotComeBackIsNotDeleted(t *testing.T) {
	unlisted := `ValidatingAdmissionPolicy 'lists.p' with binding 'lists.p' denied request: the key images of the ConfigMap pitstop-allowed does not list train:1`
	for name, c := range map[string]struct {
		fault        gketest.Fault
		code         reason.Code
		says, advice string
	}{
		"an image that the owner does not list": {
			gketest.Fault{Code: http.StatusUnprocessableEntity, Message: unlisted},
			reason.Invalid.Code(), "delete was refused as wrong: it could not be created again: " + unlisted, "mend the specification and recreate the slice by hand",
		},
		"a missing right": {
			gketest.Fault{Code: http.StatusForbidden, Message: `jobs.batch is forbidden: User "p@x" cannot create resource "jobs"`},
			reason.Permission.Code(), `delete is not permitted: it could not be created again: jobs.batch is forbidden: User "p@x" cannot create resource "jobs"`,
			"grant the function's account what it asks for, then pitstop retry llama",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := loseJob(t)
			c.fault.Verb, c.fault.Resource = "create", "jobs"
			b.cluster.Inject(c.fault)
			b.Want(b.deliver(), fleettest.Ignored)
			b.Want(b.changes(), []string{fmt.Sprintf("dry POST %s %d", jobs, c.fault.Code)})
			in := b.closed()
			b.Want(in.Outcome, view.Escalated)
			b.Want(in.Code, c.code)
			b.Want(in.Reason, c.says)
			b.Want(in.Advice, c.advice)
			b.Want(b.Slots(scope), 0)
			b.Want(b.deliver(), fleettest.Ignored)
			b.Want(b.changes(), []string(nil))
			if o := b.objects(); len(o.Jobs) != 1 || o.Jobs[0].Deleted != nil {
				t.Errorf("%+v", o.Jobs)
			}
		})
	}
}

// TestWhatNobodyCanSayNowIsDeletedLater: without an answer nothing is deleted, and the next try asks again.
func TestWhatNobodyCanSayNowIsDeletedLater(t *testing.T) {
	for name, f := range map[string]gketest.Fault{
		"the server has trouble": {Code: http.StatusServiceUnavailable}, "too many requests": {Code: http.StatusTooManyRequests, Message: "try again later"},
		"the answer is lost": {LoseAnswer: true}, "another change": {Code: http.StatusConflict, Message: "the object has been modified"},
	} {
		t.Run(name, func(t *testing.T) {
			b := loseJob(t)
			f.Verb, f.Resource = "create", "jobs"
			b.cluster.Inject(f)
			b.Want(b.deliver(), fleettest.Ignored)
			effect := b.asked()
			if effect.Stage != view.StageRefused || !effect.Begun.IsZero() || effect.Failures != 1 || !strings.HasPrefix(effect.Failure, "it could not be created again: ") {
				t.Errorf("%+v", effect)
			}
			b.Want(b.Slots(scope), 0)
			b.Want(len(b.objects().Jobs), 1)
			b.Clock.Advance(time.Minute)
			b.looks(slice)
			b.tick(time.Minute)
			b.request = b.next()
			b.changes()
			b.Want(b.deliver(), fleettest.Handled)
			b.Want(b.changes(), []string{"dry POST " + jobs + " 409", "DELETE " + jobs + "/llama 200"})
		})
	}
}

// TestAJobThatWasReplacedIsLeftAlone, though it was read a moment before: the call names the life that was read.
func TestAJobThatWasReplacedIsLeftAlone(t *testing.T) {
	b := loseJob(t)
	b.cluster.Inject(gketest.Fault{Verb: "delete", Resource: "jobs", Before: func() {
		b.call(http.MethodDelete, jobs+"/llama", `{"propagationPolicy":"Background"}`)
		b.call(http.MethodPost, jobs, `{"metadata":{"name":"llama",`+meta+`},"spec":`+spec+`}`)
	}})
	b.Want(b.deliver(), fleettest.Handled)
	all := b.changes()
	b.Want(all[len(all)-1], "DELETE "+jobs+"/llama 409")
	effect := b.asked()
	if effect.Stage != view.StageRefused || effect.Code != reason.CodeOtherLife || !effect.Begun.IsZero() {
		t.Errorf("%+v", effect)
	}
	if o := b.objects(); len(o.Jobs) != 1 || o.Jobs[0].Deleted != nil {
		t.Errorf("%+v", o.Jobs)
	}
}

// TestNoJobIsCreatedBesideAPodOfTheFormerOne, whatever an earlier reading said: both would write to the same checkpoints.
func TestNoJobIsCreatedBesideAPodOfTheFormerOne(t *testing.T) {
	b := loseJob(t)
	uid := b.objects().Jobs[0].UID
	b.Want(b.deliver(), fleettest.Handled)
	b.Clock.Advance(time.Minute)
	b.looks(slice)
	b.request = b.next()
	b.Want(b.request.Action, events.ActionCreate)
	b.call(http.MethodPost, "/api/v1/namespaces/default/pods", `{"metadata":{"name":"late","labels":{"batch.kubernetes.io/job-name":"llama","batch.kubernetes.io/controller-uid":"`+uid+`"}},`+
		`"spec":{"containers":[{"name":"train","resources":{"limits":{"google.com/tpu":4}}}]}}`)
	b.changes()
	b.Want(b.deliver(), fleettest.Ignored)
	b.Want(b.changes(), []string(nil))
	b.call(http.MethodDelete, "/api/v1/namespaces/default/pods/late", `{"gracePeriodSeconds":0}`)
	b.Clock.Advance(10 * time.Minute)
	b.looks(slice)
	b.tick(time.Minute)
	b.request = b.next()
	b.changes()
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.changes(), []string{"POST " + jobs + " 201"})
}

// TestAJobSetIsDeletedAndCreatedWhole: with one call each, for all of its slices.
func TestAJobSetIsDeletedAndCreatedWhole(t *testing.T) {
	b := newClusterBench(t)
	slices := []string{"llama-s-0", "llama-s-1"}
	b.loses(jobSets, `{"metadata":{"name":"llama",`+meta+`},"spec":{"replicatedJobs":[{"name":"s","replicas":2,"template":{"spec":`+spec+`}}]}}`, 4, slices...)
	b.Want(len(b.request.With), 1)
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.changes(), []string{"dry POST " + jobSets + " 409", "DELETE " + jobSets + "/llama 200"})
	b.Clock.Advance(time.Minute)
	b.looks(slices...)
	b.request = b.next()
	b.Want(b.request.Action, events.ActionCreate)
	b.Want(b.deliver(), fleettest.Handled)
	b.Want(b.changes(), []string{"POST " + jobSets + " 201"})
	if o := b.objects(); len(o.JobSets) != 1 || o.JobSets[0].Labels[events.LabelIncident] != b.request.Incident || len(o.Jobs) != 2 {
		t.Errorf("%+v", o)
	}
}
