package rbac

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.yaml.in/yaml/v3"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/provider/gke/gketest"
)

var (
	patrol     = Account{"pitstop-patrol@demo.iam.gserviceaccount.com", "107000000000000000001"}
	recreate   = Account{"pitstop-recreate@demo.iam.gserviceaccount.com", "107000000000000000002"}
	checkpoint = Account{"pitstop-checkpoint@demo.iam.gserviceaccount.com", "107000000000000000003"}
)

// object is what these tests read of an object of a manifest.
type object struct {
	Kind     string
	Metadata struct{ Name, Namespace string }
	Rules    []rule
	RoleRef  *struct{ Kind, Name string } `yaml:"roleRef"`
	Subjects []struct{ Name string }
	Spec     struct {
		FailurePolicy     string   `yaml:"failurePolicy"`
		PolicyName        string   `yaml:"policyName"`
		ValidationActions []string `yaml:"validationActions"`
	}
}

type rule struct {
	APIGroups        []string `yaml:"apiGroups"`
	Resources, Verbs []string
}

// made are the objects of the manifest.
func made(t *testing.T, o Options) (all []object) {
	t.Helper()
	text, err := Manifest(o)
	if err != nil {
		t.Fatal(err)
	}
	d := yaml.NewDecoder(strings.NewReader(text))
	for {
		var one object
		switch err := d.Decode(&one); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatalf("%v in\n%s", err, text)
		}
		all = append(all, one)
	}
}

// everybody may do all that there is in a cluster.
var everybody = Options{Patrol: patrol, Recreate: recreate, Checkpoint: checkpoint, Allow: "recreate,early_maintenance", Namespaces: []string{"train"}}

// TestAManifestIsFilledIn: no word is left in it that stands for something else, unless nobody said what.
func TestAManifestIsFilledIn(t *testing.T) {
	words := regexp.MustCompile(`(?m)^[^#\n]*(ACCOUNT|NUMERIC_ID|NAMESPACE|BOUNDS).*$`)
	both, all := everybody, everybody
	both.Namespaces = []string{"train", "research", "train"}
	all.Namespaces, all.All = nil, true
	for _, c := range []struct {
		options Options
		// namespaces are those of its roles.
		namespaces []string
	}{
		{Options{Patrol: patrol, Namespaces: []string{"train"}}, []string{"", "train"}},
		{everybody, []string{"", "train", "", "train", "", "train"}},
		{both, []string{"", "research", "train", "", "research", "train", "", "research", "train"}},
		{all, []string{"", "", ""}},
	} {
		text, err := Manifest(c.options)
		if err != nil {
			t.Fatal(err)
		}
		if left := words.FindString(text); left != "" {
			t.Errorf("%+v: nothing stands for the word in %q", c.options, left)
		}
		var roles, bindings []string
		for _, o := range made(t, c.options) {
			switch {
			case len(o.Rules) > 0:
				roles = append(roles, o.Metadata.Namespace)
			case o.RoleRef != nil:
				bindings = append(bindings, o.Metadata.Namespace)
			}
		}
		if !slices.Equal(roles, c.namespaces) || !slices.Equal(bindings, c.namespaces) {
			t.Errorf("%+v: roles in %q, bindings in %q, want %q", c.options, roles, bindings, c.namespaces)
		}
	}
	unnamed, err := Manifest(Options{Namespaces: []string{"train"}})
	if err != nil || strings.Count(unnamed, "name: ACCOUNT\n") != 2 || strings.Count(unnamed, `name: "NUMERIC_ID"`) != 2 {
		t.Errorf("without an account: %v\n%s", err, unnamed)
	}
}

// TestANamespaceIsAWord though YAML would read another value in its name: kubectl takes null for the namespace that it is in.
func TestANamespaceIsAWord(t *testing.T) {
	for _, name := range []string{"null", "true", "123", "1e3"} {
		o := everybody
		o.Namespaces = []string{name}
		text, err := Manifest(o)
		if err != nil {
			t.Fatal(err)
		}
		if quoted := strings.Count(text, `namespace: "`+name+`"`); quoted != 6 || strings.Contains(text, "namespace: "+name) {
			t.Errorf("%d of 6 objects have %s as a word in\n%s", quoted, name, text)
		}
	}
}

// TestManifestsNameWhatPitstopWrites: the words of the policies are those of the product.
func TestManifestsNameWhatPitstopWrites(t *testing.T) {
	for file, words := range map[string][]string{
		"recreate.yaml":   {`"` + events.LabelIncident + `"`, "key: " + events.LabelIncident, `"` + events.LabelPolicy + `"`, `"` + gke.AnnotationRequest + `"`, "name: " + AllowedName},
		"checkpoint.yaml": {`"` + gke.LabelMaintain + `"`, `"` + gke.LabelAccelerator + `"`, `"` + gke.AnnotationMaintenance + `"`},
		"allowed.yaml":    {"name: " + AllowedName},
	} {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range words {
			if !strings.Contains(string(raw), word) {
				t.Errorf("%s has no %s", file, word)
			}
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
		o := Options{Patrol: patrol, Recreate: recreate, Checkpoint: checkpoint, Allow: "recreate,early_maintenance", All: namespace == ""}
		if namespace != "" {
			o.Namespaces = []string{namespace}
		}
		clusters := gke.New([]gke.Cluster{{Project: "demo", Location: "us-east5", Name: "research", Namespaces: o.Namespaces}}, func(context.Context, gke.Cluster) (gke.Client, error) { return client, nil }, time.Now)
		if _, _, err := clusters.Leftovers(t.Context(), "demo", "us-east5/research"); err != nil {
			t.Fatal(err)
		}
		objects := made(t, o)
		read := map[string]bool{}
		for i, call := range r.calls {
			verb, group, in, resource := parsed(t, call)
			read[group+"/"+resource] = true
			readers := []Account{patrol, recreate, checkpoint} // who acts reads first
			if i >= listed {
				readers = readers[:1] // what is left over, patrol alone looks for
			}
			for _, a := range readers {
				if !allowed(objects, a, verb, group, in, resource) {
					t.Errorf("namespace %q: nothing allows %s to %s", namespace, call, a.Email)
				}
			}
		}
		for _, o := range objects {
			for _, r := range o.Rules {
				if slices.Contains(r.Verbs, "list") && !read[r.APIGroups[0]+"/"+r.Resources[0]] {
					t.Errorf("namespace %q: nothing reads %s of %q", namespace, r.Resources, r.APIGroups)
				}
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
	objects := made(t, Options{Recreate: recreate, Allow: "recreate", Namespaces: []string{"train"}})
	called := map[string]bool{}
	for _, call := range r.calls {
		verb, group, in, resource := parsed(t, call)
		called[verb+" "+group+"/"+resource] = true
		if !allowed(objects, recreate, verb, group, in, resource) {
			t.Errorf("nothing allows %s", call)
		}
	}
	for _, o := range objects {
		for _, r := range o.Rules {
			for _, verb := range r.Verbs {
				if what := verb + " " + r.APIGroups[0] + "/" + r.Resources[0]; verb != "list" && !called[what] {
					t.Errorf("no call has to %s", what)
				}
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
	objects := made(t, Options{Patrol: patrol, Recreate: recreate, Checkpoint: checkpoint, Allow: "early_maintenance,recreate", Namespaces: []string{"train"}})
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
func allowed(objects []object, a Account, verb, group, namespace, resource string) bool {
	rules := map[string][]rule{}
	key := func(kind, in, name string) string { return fmt.Sprint(kind, " ", in, " ", name) }
	for _, o := range objects {
		rules[key(o.Kind, o.Metadata.Namespace, o.Metadata.Name)] = o.Rules
	}
	who := []struct{ Name string }{{a.Email}, {a.ID}}
	return slices.ContainsFunc(objects, func(o object) bool {
		if o.RoleRef == nil || !slices.Equal(o.Subjects, who) || o.Metadata.Namespace != "" && o.Metadata.Namespace != namespace {
			return false
		}
		return slices.ContainsFunc(rules[key(o.RoleRef.Kind, o.Metadata.Namespace, o.RoleRef.Name)], func(r rule) bool {
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
		want := map[policy.Switch][]grant{policy.Recreate: create, policy.RecreateNonSpot: create, policy.EarlyMaintenance: {{checkpoint, "patch", "", "/nodes"}}}[s]
		objects := made(t, Options{Patrol: patrol, Recreate: recreate, Checkpoint: checkpoint, Allow: string(s), Namespaces: []string{"train"}})
		var got []grant
		for _, a := range []Account{patrol, recreate, checkpoint} {
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
	objects := made(t, Options{Recreate: recreate, Checkpoint: checkpoint, Allow: "recreate,recreate_non_spot,early_maintenance", All: true})
	bounded := map[string]bool{} // by policy
	acting := 0
	for _, o := range objects {
		switch o.Kind {
		case "ValidatingAdmissionPolicy":
			bounded[o.Metadata.Name] = false
			if o.Spec.FailurePolicy != "Fail" {
				t.Errorf("where %s cannot be asked, all is allowed", o.Metadata.Name)
			}
		case "ValidatingAdmissionPolicyBinding":
			if _, is := bounded[o.Spec.PolicyName]; !is || !slices.Equal(o.Spec.ValidationActions, []string{"Deny"}) {
				t.Errorf("%+v binds no policy", o.Spec)
			}
			bounded[o.Spec.PolicyName] = true
		}
		changes := func(r rule) bool { return !slices.Equal(r.Verbs, []string{"list"}) }
		if name := strings.TrimPrefix(o.Metadata.Name, "pitstop:"); slices.ContainsFunc(o.Rules, changes) {
			acting++
			if !bounded[strings.ReplaceAll(name, "@", ".")] {
				t.Errorf("nothing bounds %s yet when it gets its rights", name)
			}
		}
	}
	if acting != 2 {
		t.Errorf("%d accounts act, want 2", acting)
	}
}

// TestNoRightIsWide: no right takes in what a training hides, or any resource there is.
func TestNoRightIsWide(t *testing.T) {
	rights := 0
	for _, o := range made(t, everybody) {
		for _, r := range o.Rules {
			rights++
			if len(r.APIGroups) != 1 || len(r.Resources) != 1 || r.Resources[0] == "secrets" || r.Resources[0] == "configmaps" ||
				strings.ContainsAny(r.APIGroups[0]+strings.TrimSuffix(r.Resources[0], "/status")+strings.Join(r.Verbs, ""), "*/") {
				t.Errorf("%s has more than a call needs: %+v", o.Metadata.Name, r)
			}
		}
	}
	if rights < 20 {
		t.Errorf("there are only %d rights", rights)
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
		{Options{Namespaces: train, Allow: "recreate", Patrol: patrol, Recreate: patrol}, "--account and --recreate-account name one account; each function has its own"},
	} {
		if _, err := Manifest(c.options); err == nil || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.options, err, c.says)
		}
	}
}
