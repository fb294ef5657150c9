package functions_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pitstop.internal/events"
	"pitstop.internal/functions/checkpoint"
	"pitstop.internal/functions/logevent"
	"pitstop.internal/functions/patrol"
	"pitstop.internal/functions/recovery"
	"pitstop.internal/functions/recreate"
	shared "pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/logging/loggingtest"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/provider/gke/gketest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
	"pitstop.internal/shared/trigger"
)

// Whom the audit log names, and how.
const (
	ann       = `{"principalEmail":"ann@example.com"}`
	argo      = `{"principalEmail":"system:serviceaccount:argocd:argocd-application-controller"}`
	flux      = `{"principalEmail":"system:serviceaccount:flux-system:kustomize-controller"}`
	ci        = `{"principalEmail":"ci@demo.iam.gserviceaccount.com","principalSubject":"serviceAccount:ci@demo.iam.gserviceaccount.com"}`
	federated = `{"principalSubject":"principal://iam.googleapis.com/locations/global/workforcePools/corp/subject/ann"}`
	unnamed   = `{}`
	collector = `{"principalEmail":"system:serviceaccount:kube-system:generic-garbage-collector"}`
)

const (
	jobsPath = "/apis/batch/v1/namespaces/default/jobs"
	setsPath = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
)

// clustered is a deployment that watches a cluster. Every call that changes a Job or JobSet there has its entry in the audit log, and the
// function logevent gets those that the deployed sink lets through.
type clustered struct {
	*fleettest.Bench
	server           *gketest.Server
	patrol, logevent trigger.Handle
	functions        map[string]trigger.Handle
	sink             *loggingtest.Filter
	// entries are those that the sink has yet to bring. Changes are the functions' own calls that changed something.
	entries [][]byte
	changes []string
	// held keeps requests back, and after is what follows the next change that a function makes.
	held  bool
	after func()
	left  []cloudevents.Event
	told  []events.IncidentUpdated
	n     int
}

// inCluster is one with a cluster of four machines.
func inCluster(t *testing.T) *clustered {
	t.Helper()
	b := &clustered{Bench: fleettest.New(t)}
	b.server = gketest.New(gketest.Config{Clock: b.Clock, Seed: 1})
	open := func(context.Context, gke.Cluster) (gke.Client, error) {
		return gke.Client{HTTP: &http.Client{Transport: audited{b}}, URL: "http://cluster.invalid"}, nil
	}
	clusters := gke.New([]gke.Cluster{{Project: fleettest.Project, Location: "us-east5", Name: "trainers"}}, open, b.Clock.Now)
	providers := provider.Set{provider.CloudTPU: b.Cloud, provider.GKE: clusters}
	b.Fleet.Provider = providers
	known := events.Accounts{Ours: []string{fleettest.Us}}
	sinks := events.Sinks(known)
	var err error
	b.sink, err = loggingtest.Parse(sinks[slices.IndexFunc(sinks, func(s events.Sink) bool { return s.Name == "gke-jobs" })].Filter)
	b.Must(err)
	b.patrol = patrol.New(patrol.Deps{
		Fleet: b.Fleet, Provider: providers, Audit: b.AuditLog, Publisher: b.Sender, Project: fleettest.Project, Accounts: known, Sleep: b.Sleep,
	})
	b.logevent = logevent.New(logevent.Deps{Fleet: b.Fleet, Projects: []string{fleettest.Project}, Accounts: known})
	b.functions = map[string]trigger.Handle{
		events.TypeRecreateRequested:   recreate.New(recreate.Deps{Fleet: b.Fleet, Provider: providers, Buckets: b.Buckets, Limits: ledger.DefaultLimits}),
		events.TypeRecoveryRequested:   recovery.New(recovery.Deps{Fleet: b.Fleet, Provider: providers, Store: b.Store}),
		events.TypeCheckpointRequested: checkpoint.New(checkpoint.Deps{Fleet: b.Fleet, Provider: providers, Store: b.Store, Limits: ledger.DefaultLimits}),
	}
	b.Fleet.Advancer.Saved = func(_ context.Context, s ledger.Step) {
		b.told = append(b.told, incident.Updates(s.Before, s.After, s.At)...)
	}
	for i := range 4 {
		b.machine(i)
	}
	return b
}

func (b *clustered) machine(n int) {
	b.T.Helper()
	b.call(http.MethodPost, "/api/v1/nodes", fmt.Sprintf(`{"metadata":{"name":"n%d","labels":{"cloud.google.com/gke-nodepool":"spot","cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice","cloud.google.com/gke-spot":"true"}},`+
		`"status":{"allocatable":{"google.com/tpu":"4"},"conditions":[{"type":"Ready","status":"True"}]}}`, n))
}

// audited notes each change that a function makes, and the entry of it.
type audited struct{ b *clustered }

func (a audited) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := a.b.server.Transport().RoundTrip(r)
	if err != nil || r.Method == http.MethodGet || r.URL.Query().Has("dryRun") {
		return res, err
	}
	a.b.changes = append(a.b.changes, fmt.Sprint(r.Method, " ", strings.TrimPrefix(r.URL.Path, "/apis/"), " ", res.StatusCode))
	a.b.happened(`{"principalEmail":"`+fleettest.Us+`"}`, r.Method, r.URL.Path, res.StatusCode)
	if after := a.b.after; after != nil {
		a.b.after = nil
		after()
	}
	return res, nil
}

// call makes a call to the cluster that no log tells of.
func (b *clustered) call(method, path, body string) {
	b.T.Helper()
	r, err := http.NewRequestWithContext(b.T.Context(), method, "http://cluster.invalid"+path, strings.NewReader(body))
	b.Must(err)
	res, err := b.server.Transport().RoundTrip(r)
	b.Must(err)
	text, err := io.ReadAll(res.Body)
	b.Must(err)
	b.Must(res.Body.Close())
	if res.StatusCode >= 300 {
		b.T.Fatalf("%s %s: answer %d: %s", method, path, res.StatusCode, text)
	}
}

// does makes a call as somebody.
func (b *clustered) does(who, method, path, body string) {
	b.T.Helper()
	b.call(method, path, body)
	b.happened(who, method, path, http.StatusOK)
}

var resourcePath = regexp.MustCompile(`^/(?:apis|api)/(?:(batch|jobset[.]x-k8s[.]io)/)?(v[0-9a-z]+)(?:/namespaces/([^/]+))?/([a-z]+)(?:/([^/]+))?$`)

// happened writes the entry of a call that took effect.
func (b *clustered) happened(who, method, path string, code int) {
	b.T.Helper()
	at := resourcePath.FindStringSubmatch(path)
	if code >= 300 || at == nil || at[4] == "nodes" || at[4] == "pods" {
		return
	}
	group := map[string]string{"batch": "io.k8s.batch", "jobset.x-k8s.io": "io.x-k8s.jobset", "": "io.k8s.core"}[at[1]]
	verb := map[string]string{http.MethodPost: "create", http.MethodDelete: "delete"}[method]
	b.said(who, group+"."+at[2]+"."+at[4]+"."+verb, strings.TrimPrefix(strings.TrimPrefix(path, "/apis/"), "/api/"), at[5])
}

// said writes an entry of the audit log.
func (b *clustered) said(who, method, resource, name string) {
	b.T.Helper()
	b.n++
	if name == "" && strings.HasSuffix(method, ".create") {
		resource += "/llama"
	}
	raw, err := json.Marshal(map[string]any{
		"insertId": fmt.Sprintf("entry-%d", b.n), "logName": "projects/demo/logs/cloudaudit.googleapis.com%2Factivity", "timestamp": b.Clock.Now().UTC().Format(time.RFC3339Nano),
		"resource":  map[string]any{"type": "k8s_cluster", "labels": map[string]any{"project_id": fleettest.Project, "location": "us-east5", "cluster_name": "trainers"}},
		"operation": map[string]any{"id": fmt.Sprintf("operation-%d", b.n), "producer": "k8s.io", "first": true, "last": true},
		"protoPayload": map[string]any{
			"@type": "type.googleapis.com/google.cloud.audit.AuditLog", "serviceName": "k8s.io", "methodName": method, "resourceName": resource,
			"authenticationInfo": jsontext.Value(who),
		},
	})
	b.Must(err)
	b.Log.Write(raw)
	b.entries = append(b.entries, raw)
}

// follows delivers what the sink lets through, and then the requests that the functions send, until nothing follows any more.
func (b *clustered) follows() {
	b.T.Helper()
	for {
		for _, sent := range b.Sender.Sent() {
			b.left = append(b.left, fleettest.Event(sent))
		}
		switch {
		case len(b.entries) > 0:
			raw := b.entries[0]
			b.entries = b.entries[1:]
			passes, err := b.sink.Matches(raw)
			b.Must(err)
			if passes {
				b.Deliver(b.logevent, fleettest.Message(raw, b.Clock.Now()))
			}
		case len(b.left) > 0 && !b.held:
			e := b.left[0]
			b.left = b.left[1:]
			if h := b.functions[e.Type()]; h != nil {
				b.Deliver(h, e)
			}
		default:
			return
		}
	}
}

// minutes lets ticks of patrol pass.
func (b *clustered) minutes(n int) {
	b.T.Helper()
	for range n {
		b.Clock.Advance(time.Minute)
		b.follows()
		b.Want(b.Deliver(b.patrol, fleettest.Message([]byte("{}"), b.Clock.Now())), fleettest.Handled)
		b.follows()
	}
}

const gang = `{"completionMode":"Indexed","parallelism":2,"completions":2,"backoffLimit":0,"template":{"spec":{"restartPolicy":"Never","nodeSelector":{"cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice"},` +
	`"containers":[{"name":"train","image":"train:1","resources":{"limits":{"google.com/tpu":4},"requests":{"google.com/tpu":4}}}]}}}`

// declares is the manifest of a training as its owner keeps it.
func declares(kind, more string) (path, manifest string) {
	meta := `{"metadata":{"name":"llama","labels":{"pitstop-policy":"spot"},"annotations":{"pitstop-checkpoint-dir":"` + fleettest.Directory + `"}` + more + `},"spec":`
	if kind == "Job" {
		return jobsPath, meta + gang + `}`
	}
	return setsPath, meta + `{"replicatedJobs":[{"name":"s","replicas":2,"template":{"spec":` + gang + `}}]}}`
}

// trains begins a training, and waits until it is known.
func (b *clustered) trains(kind, more string) {
	b.T.Helper()
	path, manifest := declares(kind, more)
	b.call(http.MethodPost, path, manifest)
	b.minutes(2)
	b.steps(1000)
	if w := b.workload(); w.Incident != nil || w.Slices[0].Condition != evidence.Ready {
		b.T.Fatalf("it does not train: %+v", w.Slices)
	}
}

// steps writes a line of the crews, in the present lives.
func (b *clustered) steps(step int64) {
	b.T.Helper()
	attempt := 1
	if content, _, ok := b.Storage.Get(fleettest.Bucket, "run/"+shared.LeaseName); ok {
		lease, err := shared.DecodeLease(content)
		b.Must(err)
		attempt = lease.Attempt
	}
	for _, s := range b.workload().Slices[:1] {
		b.n++
		r := events.CrewReport{
			Schema: events.Schema, Project: fleettest.Project, Zone: s.Zone, Node: s.Name, Life: s.Incarnation.ID, Hostname: s.Name + "-0", Report: events.ReportProgress,
			Attempt: attempt, Step: step, CheckpointStep: step,
		}
		for _, name := range []string{"state/manifest.ocdbt", "_CHECKPOINT_METADATA", "commit_success.txt"} {
			b.Storage.Put(fleettest.Bucket, fmt.Sprintf("run/%d/%s", step, name), []byte("{}"))
		}
		b.Deliver(b.logevent, fleettest.Message(trainingtest.PodEntry(r, b.Clock.Now(), b.n), b.Clock.Now()))
	}
	b.follows()
}

func (b *clustered) workload() incident.Workload {
	b.T.Helper()
	w, err := b.Fleet.Advancer.Workload(b.T.Context(), llamaID)
	b.Must(err)
	return w
}

// ends are the outcomes of the incidents so far, with their codes, as people were told.
func (b *clustered) ends() (all []string) {
	for _, u := range b.told {
		if u.Outcome != "" {
			all = append(all, fmt.Sprint(u.Outcome, " ", u.Code))
		}
	}
	return all
}

// isGone reports whether a Job or JobSet of that name is in the cluster.
func (b *clustered) objects() gke.Objects {
	b.T.Helper()
	o, err := gke.Client{HTTP: &http.Client{Transport: b.server.Transport()}, URL: "http://cluster.invalid"}.List(b.T.Context())
	b.Must(err)
	return o
}

var owners = map[string]string{"a person": ann, "Argo CD": argo, "Flux": flux, "a CI account": ci, "a federated person": federated, "somebody unnamed": unnamed}

// TestWhatIsPrunedIsReleased: whoever deletes a healthy training, nobody is told to create it again, and Pitstop creates nothing.
func TestWhatIsPrunedIsReleased(t *testing.T) {
	for _, kind := range []string{"Job", "JobSet"} {
		for name, who := range owners {
			t.Run(kind+" by "+name, func(t *testing.T) {
				b := inCluster(t)
				b.trains(kind, "")
				path, _ := declares(kind, "")
				b.does(who, http.MethodDelete, path+"/llama", "")
				b.minutes(90)
				for _, s := range b.workload().Slices {
					if !s.IsReleased() {
						t.Errorf("%s is not released: %+v", s.Name, s)
					}
				}
				b.Want(b.changes, []string(nil))
				b.Want(len(b.told), 0)
			})
		}
	}
}

// TestWhatIsDeletedInTheMiddleOfAnIncidentIsReleased: it has failed, and its owner's tool takes it away before Pitstop has begun.
func TestWhatIsDeletedInTheMiddleOfAnIncidentIsReleased(t *testing.T) {
	for _, kind := range []string{"Job", "JobSet"} {
		for name, who := range owners {
			t.Run(kind+" by "+name, func(t *testing.T) {
				b := inCluster(t)
				b.trains(kind, "")
				b.held = true
				b.call(http.MethodDelete, "/api/v1/nodes/n0", "")
				b.minutes(2)
				if b.workload().Incident == nil {
					t.Fatal("it has not failed")
				}
				path, _ := declares(kind, "")
				b.does(who, http.MethodDelete, path+"/llama", "")
				b.minutes(1)
				b.held = false
				b.minutes(90)
				b.Want(b.ends(), []string{"released owner"})
				b.Want(b.changes, []string(nil))
			})
		}
	}
}

// TestWhatSelfHealsAnswersOurCreation: a tool creates at once what Pitstop has deleted, as it keeps what is declared. Training goes on there,
// and nobody takes anything over.
func TestWhatSelfHealsAnswersOurCreation(t *testing.T) {
	for _, kind := range []string{"Job", "JobSet"} {
		for name, who := range map[string]string{"Argo CD": argo, "Flux": flux, "a CI account": ci} {
			for when, at := range map[string]string{"after the deletion": "DELETE", "when Pitstop would create it": "look", "while Pitstop is about to": "POST"} {
				t.Run(kind+" by "+name+" "+when, func(t *testing.T) {
					b := inCluster(t)
					b.trains(kind, "")
					path, manifest := declares(kind, "")
					heal := func() { b.does(who, http.MethodPost, path, manifest) }
					switch at {
					case "DELETE":
						b.after = heal
					case "look":
						b.after = func() { b.held = true }
					case "POST":
						b.server.Inject(gketest.Fault{Verb: "create", Resource: strings.ToLower(kind) + "s", Before: func() {
							// the first one is the dry run before the deletion
							b.server.Inject(gketest.Fault{Verb: "create", Resource: strings.ToLower(kind) + "s", Before: heal})
						}})
					}
					b.call(http.MethodDelete, "/api/v1/nodes/n0", "")
					b.minutes(2)
					if at == "look" {
						b.held = false
						heal()
					}
					b.minutes(2)
					b.machine(9)
					b.minutes(5)
					w := b.workload()
					if w.Incident == nil {
						t.Fatalf("it has ended: %q", b.ends())
					}
					b.steps(1010)
					b.minutes(2)
					b.Want(b.ends(), []string{"resumed "})
					var made []string
					for _, c := range b.changes {
						if !strings.HasSuffix(c, "409") {
							made = append(made, c)
						}
					}
					b.Want(made, []string{"DELETE " + strings.TrimPrefix(path, "/apis/") + "/llama 200"})
					o := b.objects()
					if len(o.Jobs)+len(o.JobSets) == 0 || slices.ContainsFunc(o.Jobs, func(j gke.Job) bool { return j.Labels[events.LabelIncident] != "" }) {
						t.Errorf("%+v", o)
					}
				})
			}
		}
	}
}

// TestWhatGoesWithItsOwnerIsReleased: nobody deletes the training itself. Its namespace is deleted, or the object that made it, and controllers
// of the cluster carry that out.
func TestWhatGoesWithItsOwnerIsReleased(t *testing.T) {
	for _, kind := range []string{"Job", "JobSet"} {
		for name, c := range map[string]struct {
			more     string
			says     func(b *clustered, path string)
			released bool
		}{
			"its namespace, by a person": {"", func(b *clustered, _ string) {
				b.said(ann, "io.k8s.core.v1.namespaces.delete", "core/v1/namespaces/default", "default")
			}, true},
			"its namespace, by a tool": {"", func(b *clustered, _ string) {
				b.said(argo, "io.k8s.core.v1.namespaces.delete", "core/v1/namespaces/default", "default")
			}, true},
			"another namespace": {"", func(b *clustered, _ string) {
				b.said(ann, "io.k8s.core.v1.namespaces.delete", "core/v1/namespaces/default-2", "default-2")
			}, false},
			"the object that made it": {
				`,"ownerReferences":[{"apiVersion":"ray.io/v1","kind":"RayJob","name":"tune","uid":"o1","controller":true}]`, func(b *clustered, path string) {
					b.happened(collector, http.MethodDelete, path, http.StatusOK)
				}, true,
			},
		} {
			t.Run(kind+" with "+name, func(t *testing.T) {
				b := inCluster(t)
				b.trains(kind, c.more)
				path, _ := declares(kind, "")
				b.call(http.MethodDelete, path+"/llama", "")
				c.says(b, path+"/llama")
				b.minutes(5)
				for _, s := range b.workload().Slices {
					if s.IsReleased() != c.released {
						t.Errorf("%s is released %t", s.Name, s.IsReleased())
					}
				}
				b.Want(b.changes, []string(nil))
			})
		}
	}
}
