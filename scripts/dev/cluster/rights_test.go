package cluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/scripts/pitstop/rbac"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/gke"
)

// reader is a bed, and a client of it with the reader's rights alone.
type reader struct {
	*bed
	gke.Client
}

// until asks as the reader until it comes to that: the API server learns a little later what changed in a role.
func (r reader) until(what string, so func(gke.Objects, error) bool) {
	r.t.Helper()
	var o gke.Objects
	var err error
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // time passes by itself here
		if o, err = r.Client.List(r.t.Context()); so(o, err) {
			return
		}
	}
	r.t.Fatalf("it does not come to this: %s; it is %d Jobs, %v", what, len(o.Jobs), err)
}

// denied reports whether a list was refused, with an error that names what is not allowed, and where.
func (r reader) denied(group, resource string) func(gke.Objects, error) bool {
	where := fmt.Sprintf(`in the namespace %q`, r.namespace)
	if resource == "nodes" {
		where = "at the cluster scope"
	}
	return func(_ gke.Objects, err error) bool {
		var no *provider.Error
		return errors.As(err, &no) && no.Class == incident.Permission &&
			strings.Contains(err.Error(), fmt.Sprintf(`User %q cannot list resource %q in API group %q %s`, Reader, resource, group, where))
	}
}

// ask makes a call as the reader, and returns the code and the message of the answer.
func (r reader) ask(method, path, body string) (code int, message string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.URL+path, strings.NewReader(body))
	r.must(err)
	req.Header.Set("Authorization", "Bearer "+r.ReaderToken)
	req.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		req.Header.Set("Content-Type", "application/merge-patch+json")
	}
	res, err := r.HTTP.Do(req)
	r.must(err)
	defer res.Body.Close() //nolint:errcheck // it was only read
	raw, err := io.ReadAll(res.Body)
	r.must(err)
	var status struct {
		Message string `json:"message"`
	}
	if res.StatusCode == http.StatusNotFound && !strings.HasPrefix(res.Header.Get("Content-Type"), "application/json") {
		return res.StatusCode, string(raw) // no API has this path
	}
	r.must(json.Unmarshal(raw, &status))
	return res.StatusCode, status.Message
}

// manifest is what pitstop gke rbac prints for the reader: the role and its binding for the machines, then those for the namespace.
func (b *bed) manifest() []map[string]any {
	b.t.Helper()
	made, err := rbac.Objects(rbac.Options{Account: Reader, ID: "107000000000000000001", Namespaces: []string{b.namespace}})
	b.must(err)
	text, err := rbac.YAML(made)
	b.must(err)
	all, err := Objects([]byte(text))
	b.must(err)
	return all
}

// without is a role without a verb on a resource.
func without(role map[string]any, resource, verb string) (rules []any) {
	all, _ := role["rules"].([]any)
	for _, o := range all {
		rule, _ := o.(map[string]any)
		verbs, _ := rule["verbs"].([]any)
		if resources, _ := rule["resources"].([]any); slices.Contains(resources, any(resource)) {
			verbs = slices.DeleteFunc(slices.Clone(verbs), func(v any) bool { return v == verb })
		}
		if len(verbs) > 0 {
			rules = append(rules, map[string]any{"apiGroups": rule["apiGroups"], "resources": rule["resources"], "verbs": verbs})
		}
	}
	return rules
}

// reading holds that the reader's rights are enough, that it needs each of them, and that it has no others.
func reading(t *testing.T, p *Plane) {
	t.Helper()
	b := newBed(t, p, "rights")
	b.plans(asJobSet(multiHost(), 1))
	b.machine("a", "pool", 4)
	b.machine("b", "pool", 4)
	b.ready("llama-slice-0")
	r := reader{b, b.Client}
	r.Client.Token = func(context.Context) (string, error) { return p.ReaderToken, nil }

	r.until("nothing is allowed", r.denied("batch", "jobs"))
	all := b.manifest()
	paths := make([]string, len(all))
	for i, o := range all {
		b.create(o)
		kind, _ := o["kind"].(string)
		name, _ := within(o, "metadata")["name"].(string)
		paths[i] = b.path(kind, name)
		t.Cleanup(func() { b.remove(paths[i]) })
	}
	enough := func(o gke.Objects, err error) bool {
		return err == nil && len(o.Jobs) == 1 && len(o.JobSets) == 1 && len(o.Pods) == 2 && len(o.Nodes) >= 2
	}
	r.until("all is read", enough)

	pod := b.pods("llama-slice-0")[0]
	objects := map[string]string{
		"jobs": b.path("Job", "llama-slice-0"), "jobsets": b.path("JobSet", "llama"), "pods": b.path("Pod", pod.Name), "nodes": b.path("Node", pod.Spec.NodeName),
	}
	for _, right := range rbac.Rights() {
		i := slices.IndexFunc(all, func(o map[string]any) bool {
			return o["kind"] == map[bool]string{true: "ClusterRole", false: "Role"}[right.Everywhere]
		})
		for _, verb := range right.Verbs {
			b.patch(paths[i], map[string]any{"rules": without(all[i], right.Resource, verb)})
			switch {
			case right.Resource == "slices" && verb == "list":
				// This plane has no Slices. Whether they may be listed shows all the same, for rights are checked before that.
				formed := "/apis/" + right.Group + "/v1beta1/slices"
				r.until("no slices are listed", func(o gke.Objects, err error) bool {
					code, message := r.ask(http.MethodGet, formed, "")
					return enough(o, err) && code == http.StatusForbidden && strings.Contains(message, `cannot list resource "slices" in API group "accelerator.gke.io" at the cluster scope`)
				})
				b.patch(paths[i], map[string]any{"rules": all[i]["rules"]})
				r.until("slices may be listed", func(gke.Objects, error) bool {
					code, _ := r.ask(http.MethodGet, formed, "")
					return code == http.StatusNotFound
				})
			case verb == "list":
				r.until("no "+right.Resource+" are listed", r.denied(right.Group, right.Resource))
			default:
				t.Errorf("nothing here needs the verb %s of %s", verb, right.Resource)
			}
			b.patch(paths[i], map[string]any{"rules": all[i]["rules"]})
			r.until("all is read", enough)
		}
	}

	for _, other := range [][3]string{
		{http.MethodDelete, objects["jobs"], ""},
		{http.MethodGet, objects["jobs"], ""},
		{http.MethodPatch, objects["jobsets"], `{"spec":{"suspend":true}}`},
		{http.MethodPatch, objects["nodes"], `{"metadata":{"labels":{"cloud.google.com/perform-maintenance":"true"}}}`},
		{http.MethodDelete, objects["pods"], ""},
		{http.MethodPost, Path("Job", b.namespace), `{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"other"}}`},
		{http.MethodGet, "/api/v1/namespaces/" + b.namespace + "/secrets", ""},
		{http.MethodGet, Path("Job", "default"), ""},
		{http.MethodGet, "/apis/batch/v1/jobs", ""},
	} {
		if code, message := r.ask(other[0], other[1], other[2]); code != http.StatusForbidden || !strings.Contains(message, "cannot") {
			t.Errorf("%s %s: %d %s", other[0], other[1], code, message)
		}
	}
}
