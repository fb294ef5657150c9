package rbac

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/provider/gke/gketest"
)

var update = flag.Bool("update", false, "write the golden files again")

func patrol(change func(*Options)) Options {
	o := Options{Account: "pitstop-patrol@demo.iam.gserviceaccount.com", ID: "107000000000000000001"}
	change(&o)
	return o
}

func TestManifestsAreAsRecorded(t *testing.T) {
	for name, o := range map[string]Options{
		"one-namespace": patrol(func(o *Options) { o.Namespaces = []string{"train"} }),
		"namespaces":    patrol(func(o *Options) { o.Namespaces = []string{"train", "research", "train"} }),
		"everywhere":    patrol(func(o *Options) { o.All = true }),
		"unnamed":       {Namespaces: []string{"train"}},
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
		// Slices are read only where there is such a machine.
		ironwood := `{"metadata":{"name":"ironwood","labels":{"cloud.google.com/gke-tpu-accelerator":"tpu7x"}}}`
		w := httptest.NewRecorder()
		server.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/v1/nodes", strings.NewReader(ironwood)))
		if w.Code != http.StatusCreated {
			t.Fatal(w.Body)
		}
		if _, err := client.List(t.Context()); err != nil {
			t.Fatal(err)
		}
		o := patrol(func(o *Options) { o.All = namespace == "" })
		if namespace != "" {
			o.Namespaces = []string{namespace}
		}
		objects, err := Objects(o)
		if err != nil {
			t.Fatal(err)
		}
		read := map[string]bool{}
		for _, call := range r.calls {
			verb, group, in, resource := parsed(t, call)
			read[group+"/"+resource] = true
			if !allowed(objects, verb, group, in, resource) {
				t.Errorf("namespace %q: nothing allows %s", namespace, call)
			}
		}
		for _, right := range Rights() {
			if !read[right.Group+"/"+right.Resource] {
				t.Errorf("namespace %q: nothing reads %s of %q", namespace, right.Resource, right.Group)
			}
		}
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
	default:
		t.Fatalf("%s reads nothing", call)
	}
	return verb, group, namespace, parts[0]
}

// allowed reports whether the bindings allow a call to both names of the account, as RBAC decides.
func allowed(objects []Object, verb, group, namespace, resource string) bool {
	rules := map[string][]Rule{}
	key := func(kind, in, name string) string { return fmt.Sprint(kind, " ", in, " ", name) }
	for _, o := range objects {
		rules[key(o.Kind, o.Metadata.Namespace, o.Metadata.Name)] = o.Rules
	}
	return slices.ContainsFunc(objects, func(o Object) bool {
		if o.RoleRef == nil || len(o.Subjects) != 2 || o.Metadata.Namespace != "" && o.Metadata.Namespace != namespace {
			return false
		}
		return slices.ContainsFunc(rules[key(o.RoleRef.Kind, o.Metadata.Namespace, o.RoleRef.Name)], func(r Rule) bool {
			return slices.Contains(r.APIGroups, group) && slices.Contains(r.Resources, resource) && slices.Contains(r.Verbs, verb)
		})
	})
}

// TestNothingMayBeChanged: no right changes anything, and none reads what a training hides.
func TestNothingMayBeChanged(t *testing.T) {
	for _, r := range Rights() {
		if !slices.Equal(r.Verbs, []string{"list"}) {
			t.Errorf("%s: %q", r.Resource, r.Verbs)
		}
		if strings.ContainsAny(r.Group+r.Resource, "*/") || r.Resource == "secrets" || r.Resource == "configmaps" {
			t.Errorf("%s of %q is more than a reading needs", r.Resource, r.Group)
		}
	}
}

func TestAWrongOptionIsNamed(t *testing.T) {
	for _, c := range []struct {
		options Options
		says    string
	}{
		{Options{}, "--namespace is missing"},
		{Options{All: true, Namespaces: []string{"train"}}, "--all-namespaces reads every namespace"},
		{Options{All: true, Account: "pitstop-patrol@demo.iam.gserviceaccount.com"}, "--account and --id belong together"},
		{Options{All: true, ID: "1"}, "--account and --id belong together"},
		{Options{All: true, Account: "me@example.com", ID: "1"}, `--account "me@example.com" is no e-mail address of a service account`},
		{Options{All: true, Account: "pitstop-patrol@demo.iam.gserviceaccount.com", ID: "one"}, `--id "one" is no numeric ID`},
		{Options{Namespaces: []string{"train", "Train"}}, `--namespace "Train" is no name of a namespace`},
		{Options{Namespaces: []string{"a\nb"}}, `--namespace "a\nb" is no name of a namespace`},
	} {
		if _, err := Objects(c.options); err == nil || !strings.HasPrefix(err.Error(), c.says) {
			t.Errorf("%+v: %v, want %q", c.options, err, c.says)
		}
	}
}
