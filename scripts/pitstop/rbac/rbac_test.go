package rbac

import (
	"context"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/provider/gke/gketest"
)

var update = flag.Bool("update", false, "write the golden files again")

var (
	patrol     = Account{"pitstop-patrol@demo.iam.gserviceaccount.com", "107000000000000000001"}
	recreate   = Account{"pitstop-recreate@demo.iam.gserviceaccount.com", "107000000000000000002"}
	checkpoint = Account{"pitstop-checkpoint@demo.iam.gserviceaccount.com", "107000000000000000003"}
	recovery   = Account{"pitstop-recovery@demo.iam.gserviceaccount.com", "107000000000000000004"}
)

func TestManifestsAreAsRecorded(t *testing.T) {
	train := []string{"train"}
	for name, o := range map[string]Options{
		"one-namespace": {Patrol: patrol, Namespaces: train},
		"namespaces":    {Patrol: patrol, Namespaces: []string{"train", "research", "train"}},
		"everywhere":    {Patrol: patrol, All: true},
		"unnamed":       {Namespaces: train},
		"acting":        {Patrol: patrol, Recreate: recreate, Checkpoint: checkpoint, Allow: "recreate,early_maintenance", Namespaces: train},
		"restarting":    {Recreate: recreate, Allow: "recreate,restart", Namespaces: train},
		"recreating":    {Patrol: patrol, Recreate: recreate, Recovery: recovery, Allow: "release,recreate_non_spot", All: true},
	} {
		objects, err := Objects(o)
		if err != nil {
			t.Fatal(err)
		}
		text, err := YAML(objects)
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join("testdata", name+".yaml")
		if *update {
			if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), text); diff != "" {
			t.Errorf("%s (-recorded +made):\n%s", file, diff)
		}
	}
}

// recorder notes the calls to a cluster.
type recorder struct {
	to    http.RoundTripper
	calls []string
}

func (r *recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	r.calls = append(r.calls, req.Method+" "+req.URL.Path)
	return r.to.RoundTrip(req)
}

// TestTheRightsAreThoseOfTheCalls: every call that reads a cluster is allowed in the place where it is made, and every resource is read.
func TestTheRightsAreThoseOfTheCalls(t *testing.T) {
	for _, namespace := range []string{"", "train"} {
		server := gketest.New(gketest.Config{Clock: cloudtputest.NewManualClock(time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC))})
		r := &recorder{to: server.Transport()}
		client := gke.Client{HTTP: &http.Client{Transport: r}, URL: "http://cluster.invalid", Namespace: namespace, Token: func(context.Context) (string, error) { return "", nil }}
		// Slices are read only where there is such a machine, what a Job waits in only where one waits, and PodTemplates only where nothing
		// uses a ProvisioningRequest.
		for _, post := range [][2]string{
			{"/api/v1/nodes", `{"metadata":{"name":"ironwood","labels":{"cloud.google.com/gke-tpu-accelerator":"tpu7x"}}}`},
			{"/api/v1/namespaces", `{"metadata":{"name":"train"}}`},
			{"/apis/batch/v1/namespaces/train/jobs", `{"metadata":{"name":"llama"},"spec":{"suspend":true,"template":{"spec":{"restartPolicy":"Never","containers":[{"name":"training","resources":{"limits":{"google.com/tpu":8}}}]}}}}`},
			{"/apis/autoscaling.x-k8s.io/v1/namespaces/train/provisioningrequests", `{"metadata":{"name":"mine"}}`},
		} {
			w := httptest.NewRecorder()
			server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, post[0], strings.NewReader(post[1])))
			if w.Code != http.StatusCreated {
				t.Fatal(w.Body)
			}
		}
		if _, err := client.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		listed := len(r.calls)
		o := Options{Patrol: patrol, Recreate: recreate, Checkpoint: checkpoint, Recovery: recovery, Allow: "recreate,early_maintenance,release", All: namespace == ""}
		if namespace != "" {
			o.Namespaces = []string{namespace}
		}
		clusters := gke.New([]gke.Cluster{{Project: "demo", Location: "us-east5", Name: "research", Namespaces: o.Namespaces}}, func(context.Context, gke.Cluster) (gke.Client, error) { return client, nil }, time.Now)
		if _, _, err := clusters.Leftovers(t.Context(), "demo", "us-east5/research"); err != nil {
			t.Fatal(err)
		}
		objects, err := Objects(o)
		if err != nil {
			t.Fatal(err)
		}
		read := map[string]bool{}
		for i, call := range r.calls {
			verb, group, in, resource := parsed(t, call)
			read[group+"/"+resource] = true
			readers := []Account{patrol, recreate, checkpoint, recovery} // who acts reads first
			if i >= listed {
				readers = readers[:1] // what is left over, patrol alone looks for
			}
			for _, a := range readers {
				if !allowed(objects, a, verb, group, in, resource) {
					t.Errorf("namespace %q: nothing allows %s to %s", namespace, call, a.Email)
				}
			}
		}
		for _, right := range Rights() {
			if slices.Contains(right.Verbs, "list") && !read[right.Group+"/"+right.Resource] {
				t.Errorf("namespace %q: nothing reads %s of %q", namespace, right.Resource, right.Group)
			}
		}
	}
}

// TestTheRightsToActAreThoseOfTheCalls: recreate's account may make each call that deletes and creates, and each such right has its call.
func TestTheRightsToActAreThoseOfTheCalls(t *testing.T) {
	server := gketest.New(gketest.Config{Clock: cloudtputest.NewManualClock(time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC))})
	pods := `{"spec":{"containers":[{"name":"training","image":"llama:1","resources":{"limits":{"google.com/tpu":8}}}],"restartPolicy":"Never"}}`
	for _, post := range [][2]string{
		{"/api/v1/namespaces", `{"metadata":{"name":"train"}}`},
		{"/apis/batch/v1/namespaces/train/jobs", `{"metadata":{"name":"llama"},"spec":{"template":` + pods + `}}`},
		{
			"/apis/jobset.x-k8s.io/v1alpha2/namespaces/train/jobsets",
			`{"metadata":{"name":"gemma"},"spec":{"replicatedJobs":[{"name":"slice","replicas":1,"template":{"spec":{"template":` + pods + `}}}]}}`,
		},
	} {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, post[0], strings.NewReader(post[1])))
		if w.Code != http.StatusCreated {
			t.Fatal(w.Body)
		}
	}
	r := &recorder{to: server.Transport()}
	clusters := gke.New([]gke.Cluster{{Project: "demo", Location: "us-east5", Name: "research", Namespaces: []string{"train"}}}, func(context.Context, gke.Cluster) (gke.Client, error) {
		return gke.Client{HTTP: &http.Client{Transport: r}, URL: "http://cluster.invalid", Token: func(context.Context) (string, error) { return "", nil }}, nil
	}, time.Now)
	for _, ref := range []provider.Ref{{Name: "llama"}, {Name: "gemma-slice-0", QueuedResource: "gemma"}} {
		ref.Project, ref.Zone = "demo", "us-east5/research/train"
		s, err := clusters.Read(t.Context(), ref)
		if err != nil {
			t.Fatal(err)
		}
		manifest, err := gke.Orders{}.Whole(s.Spec, s.Values)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := clusters.Delete(t.Context(), s.Ref, "delete-1"); err != nil {
			t.Fatal(err)
		}
		for range 2 { // the second time, the name is taken
			if _, err := clusters.Create(t.Context(), s.Ref, manifest, nil, "create-1"); err != nil {
				t.Fatal(err)
			}
		}
	}
	objects, err := Objects(Options{Recreate: recreate, Allow: "recreate", Namespaces: []string{"train"}})
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]bool{}
	for _, call := range r.calls {
		verb, group, in, resource := parsed(t, call)
		made[verb+" "+group+"/"+resource] = true
		if !allowed(objects, recreate, verb, group, in, resource) {
			t.Errorf("nothing allows %s", call)
		}
	}
	for _, right := range Rights() {
		for _, verb := range right.Verbs {
			if what := verb + " " + right.Group + "/" + right.Resource; slices.Equal(right.Functions, []string{Recreate}) && !made[what] {
				t.Errorf("no call has to %s", what)
			}
		}
	}
}

// training is a cluster in which the Job llama runs on the machine n, which has annotations. Its calls are recorded.
func training(t *testing.T, annotations string) (clock *cloudtputest.ManualClock, server *gketest.Server, r *recorder, clusters *gke.Clusters, s provider.Slice) {
	t.Helper()
	clock = cloudtputest.NewManualClock(time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC))
	server = gketest.New(gketest.Config{Clock: clock})
	for _, post := range [][2]string{
		{"/api/v1/namespaces", `{"metadata":{"name":"train"}}`},
		{"/api/v1/nodes", `{"metadata":{"name":"n","labels":{"cloud.google.com/gke-tpu-accelerator":"tpu-v6e-slice"},"annotations":` + annotations + `},` +
			`"status":{"capacity":{"google.com/tpu":"8"},"allocatable":{"google.com/tpu":"8"},"conditions":[{"type":"Ready","status":"True"}]}}`},
		{"/apis/batch/v1/namespaces/train/jobs", `{"metadata":{"name":"llama"},"spec":{"template":{"spec":{"containers":[{"name":"training","resources":{"limits":{"google.com/tpu":8}}}],"restartPolicy":"Never"}}}}`},
	} {
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, post[0], strings.NewReader(post[1])))
		if w.Code != http.StatusCreated {
			t.Fatal(w.Body)
		}
	}
	clock.Advance(time.Minute)
	r = &recorder{to: server.Transport()}
	clusters = gke.New([]gke.Cluster{{Project: "demo", Location: "us-east5", Name: "research", Namespaces: []string{"train"}}}, func(context.Context, gke.Cluster) (gke.Client, error) {
		return gke.Client{HTTP: &http.Client{Transport: r}, URL: "http://cluster.invalid", Token: func(context.Context) (string, error) { return "", nil }}, nil
	}, clock.Now)
	s, err := clusters.Read(t.Context(), provider.Ref{Project: "demo", Zone: "us-east5/research/train", Name: "llama"})
	if err != nil {
		t.Fatal(err)
	}
	return clock, server, r, clusters, s
}

// TestTheRightToLabelIsThatOfTheCall: checkpoint's account may make each call that starts maintenance early, and no other function may.
func TestTheRightToLabelIsThatOfTheCall(t *testing.T) {
	_, _, r, clusters, s := training(t, `{"node.gke.io/upcoming-maintenance":"{\"maintenanceStatus\":\"PENDING\",\"canReschedule\":true}"}`)
	if _, err := clusters.Maintain(t.Context(), []provider.Ref{s.Ref}); err != nil {
		t.Fatal(err)
	}
	objects, err := Objects(Options{Patrol: patrol, Recreate: recreate, Checkpoint: checkpoint, Allow: "early_maintenance,recreate", Namespaces: []string{"train"}})
	if err != nil {
		t.Fatal(err)
	}
	labels := 0
	for _, call := range r.calls {
		verb, group, in, resource := parsed(t, call)
		if !allowed(objects, checkpoint, verb, group, in, resource) {
			t.Errorf("nothing allows %s", call)
		}
		if verb == "patch" {
			labels++
			if allowed(objects, patrol, verb, group, in, resource) || allowed(objects, recreate, verb, group, in, resource) {
				t.Errorf("another function may %s", call)
			}
		}
	}
	if labels != 1 {
		t.Errorf("%q: it labels %d machines", r.calls, labels)
	}
}

// parsed takes the path of a call apart, as an API server does.
func parsed(t *testing.T, call string) (verb, group, namespace, resource string) {
	t.Helper()
	method, path, _ := strings.Cut(call, " ")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch parts[0] {
	case "api":
		parts = parts[2:]
	case "apis":
		group, parts = parts[1], parts[3:]
	default:
		t.Fatalf("%s is no call of an API", call)
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		namespace, parts = parts[1], parts[2:]
	}
	switch {
	case method == http.MethodGet && len(parts) == 1:
		verb = "list"
	case method == http.MethodGet && len(parts) == 2:
		verb = "get"
	case method == http.MethodPost && len(parts) == 1:
		verb = "create"
	case method == http.MethodPatch && len(parts) == 2:
		verb = "patch"
	case method == http.MethodPatch && len(parts) == 3:
		verb, parts = "patch", []string{parts[0] + "/" + parts[2]}
	case method == http.MethodDelete && len(parts) == 2:
		verb = "delete"
	default:
		t.Fatalf("%s has no verb here", call)
	}
	return verb, group, namespace, parts[0]
}

// allowed reports whether the bindings allow a call to both names of an account, as RBAC decides.
func allowed(objects []Object, a Account, verb, group, namespace, resource string) bool {
	rules := map[string][]Rule{}
	key := func(kind, in, name string) string { return fmt.Sprint(kind, " ", in, " ", name) }
	for _, o := range objects {
		rules[key(o.Kind, o.Metadata.Namespace, o.Metadata.Name)] = o.Rules
	}
	who := []Subject{{"rbac.authorization.k8s.io", "User", a.Email}, {"rbac.authorization.k8s.io", "User", a.ID}}
	return slices.ContainsFunc(objects, func(o Object) bool {
		if o.RoleRef == nil || !slices.Equal(o.Subjects, who) || o.Metadata.Namespace != "" && o.Metadata.Namespace != namespace {
			return false
		}
		return slices.ContainsFunc(rules[key(o.RoleRef.Kind, o.Metadata.Namespace, o.RoleRef.Name)], func(r Rule) bool {
			return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb)
		})
	})
}

// TestEachSwitchGrantsItsOwn: what changes something is granted by its switch alone, to the account of its function alone.
func TestEachSwitchGrantsItsOwn(t *testing.T) {
	type grant struct {
		account         Account
		verb, namespace string
		resource        string
	}
	create := []grant{
		{recreate, "create", "train", "batch/jobs"},
		{recreate, "delete", "train", "batch/jobs"},
		{recreate, "create", "train", "jobset.x-k8s.io/jobsets"},
		{recreate, "delete", "train", "jobset.x-k8s.io/jobsets"},
	}
	for _, s := range policy.All() {
		want := map[policy.Switch][]grant{policy.Recreate: create, policy.RecreateNonSpot: create, policy.EarlyMaintenance: {{checkpoint, "patch", "", "/nodes"}}, policy.Release: {{recovery, "delete", "train", "/pods"}, {recovery, "patch", "train", "/pods/status"}}}[s]
		objects, err := Objects(Options{Patrol: patrol, Recreate: recreate, Checkpoint: checkpoint, Recovery: recovery, Allow: string(s), Namespaces: []string{"train"}})
		if err != nil {
			t.Fatal(err)
		}
		var got []grant
		for _, a := range []Account{patrol, recreate, checkpoint, recovery} {
			for _, namespace := range []string{"train", "", "research"} {
				for _, resource := range []string{"batch/jobs", "jobset.x-k8s.io/jobsets", "/nodes", "/pods", "/pods/status", "/secrets", "/configmaps", "/pods/exec", "accelerator.gke.io/slices"} {
					for _, verb := range []string{"create", "delete", "patch", "update", "get", "watch", "deletecollection", "impersonate", "*"} {
						group, name, _ := strings.Cut(resource, "/")
						if allowed(objects, a, verb, group, namespace, name) && (namespace == "" || name != "nodes") {
							got = append(got, grant{a, verb, namespace, resource})
						}
					}
				}
			}
		}
		sorted := func(g []grant) []string {
			var all []string
			for _, one := range g {
				all = append(all, fmt.Sprint(one))
			}
			slices.Sort(all)
			return all
		}
		if diff := cmp.Diff(sorted(want), sorted(got)); diff != "" {
			t.Errorf("--allow=%s (-want +got):\n%s", s, diff)
		}
	}
}

// TestNobodyActsUnbounded: an account that may change something has a policy and its binding, and both come before its rights.
func TestNobodyActsUnbounded(t *testing.T) {
	objects, err := Objects(Options{Recreate: recreate, Checkpoint: checkpoint, Recovery: recovery, Allow: "recreate,recreate_non_spot,early_maintenance,release", All: true})
	if err != nil {
		t.Fatal(err)
	}
	bounded := map[string]bool{} // by policy
	acting := 0
	for _, o := range objects {
		switch spec := o.Spec.(type) {
		case Policy:
			bounded[o.Metadata.Name] = false
			if spec.FailurePolicy != "Fail" {
				t.Errorf("where %s cannot be asked, all is allowed", o.Metadata.Name)
			}
		case PolicyBinding:
			if _, is := bounded[spec.PolicyName]; !is || !slices.Equal(spec.ValidationActions, []string{"Deny"}) {
				t.Errorf("%+v binds no policy", spec)
			}
			bounded[spec.PolicyName] = true
		}
		changes := func(r Rule) bool { return !slices.Equal(r.Verbs, []string{"list"}) }
		if name := strings.TrimPrefix(o.Metadata.Name, "pitstop:"); slices.ContainsFunc(o.Rules, changes) {
			acting++
			if !bounded[strings.ReplaceAll(name, "@", ".")] {
				t.Errorf("nothing bounds %s yet when it gets its rights", name)
			}
		}
	}
	if acting != 3 {
		t.Errorf("%d accounts act, want 3", acting)
	}
}

// TestNoRightIsWide: no right takes in what a training hides, or any resource there is.
func TestNoRightIsWide(t *testing.T) {
	for _, r := range Rights() {
		if strings.ContainsAny(r.Group+strings.TrimSuffix(r.Resource, "/status")+strings.Join(r.Verbs, ""), "*/") || r.Resource == "secrets" || r.Resource == "configmaps" || r.Why == "" {
			t.Errorf("%s of %q is more than a call needs", r.Resource, r.Group)
		}
	}
}

func TestAWrongOptionIsNamed(t *testing.T) {
	train := []string{"train"}
	for _, c := range []struct {
		options Options
		says    string
	}{
		{Options{}, "--namespace is missing"},
		{Options{All: true, Namespaces: train}, "--all-namespaces takes every namespace"},
		{Options{All: true, Patrol: Account{Email: patrol.Email}}, "--account and --id belong together"},
		{Options{All: true, Patrol: Account{ID: "1"}}, "--account and --id belong together"},
		{Options{All: true, Recreate: Account{ID: "1"}}, "--recreate-account and --recreate-id belong together"},
		{Options{All: true, Patrol: Account{"me@example.com", "1"}}, `--account "me@example.com" is no e-mail address of a service account`},
		{Options{All: true, Patrol: Account{patrol.Email, "one"}}, `--id "one" is no numeric ID`},
		{Options{Namespaces: []string{"train", "Train"}}, `--namespace "Train" is no name of a namespace`},
		{Options{Namespaces: []string{"a\nb"}}, `--namespace "a\nb" is no name of a namespace`},
		{Options{Namespaces: train, Allow: "recreate,fly"}, `--allow: ["fly"] is no switch; the switches are ["request_checkpoint"`},
		{Options{Namespaces: train, Allow: "recreate_non_spot"}, "--allow=recreate_non_spot lets recreate act, so --recreate-account and --recreate-id are needed; "},
		{Options{Namespaces: train, Allow: "early_maintenance"}, "--allow=early_maintenance lets checkpoint act, so --checkpoint-account and --checkpoint-id are needed; "},
		{Options{Namespaces: train, Allow: "release"}, "--allow=release lets recovery act, so --recovery-account and --recovery-id are needed; "},
		{Options{Namespaces: train, Allow: "recreate", Patrol: patrol, Recreate: patrol}, "--account and --recreate-account name one account; each function has its own"},
	} {
		if _, err := Objects(c.options); err == nil || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.options, err, c.says)
		}
	}
}
