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
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/reason"
)

// account is a bed, and a client of it with the rights of one user alone.
type account struct {
	*bed
	gke.Client
	user string
}

func newAccount(b *bed, user string) account {
	a := account{b, b.Client, user}
	a.Client.Token = func(context.Context) (string, error) { return b.Tokens[user], nil }
	return a
}

// until asks as the account until it comes to that: the API server learns a little later what changed in a role.
func (r account) until(what string, so func(gke.Objects, error) bool) {
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
func (r account) denied(group, resource string) func(gke.Objects, error) bool {
	where := fmt.Sprintf(`in the namespace %q`, r.namespace)
	if resource == "nodes" {
		where = "at the cluster scope"
	}
	return func(_ gke.Objects, err error) bool {
		var no *provider.Error
		return errors.As(err, &no) && no.Class == reason.Permission &&
			strings.Contains(err.Error(), fmt.Sprintf(`User %q cannot list resource %q in API group %q %s`, r.user, resource, group, where))
	}
}

// ask makes a call as the account, and returns the code and the message of the answer.
func (r account) ask(method, path, body string) (code int, message string) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), method, r.URL+path, strings.NewReader(body))
	r.must(err)
	req.Header.Set("Authorization", "Bearer "+r.Tokens[r.user])
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

// manifest is what pitstop gke rbac prints for the account, and not for others: what bounds it, its role and binding for the machines,
// then those for the namespace.
func (r account) manifest() []map[string]any {
	r.t.Helper()
	all := map[string]rbac.Account{}
	for i, user := range Users() {
		all[user] = rbac.Account{Email: user, ID: fmt.Sprintf("10700000000000000000%d", i+1)}
	}
	text, err := rbac.Manifest(rbac.Options{
		Patrol: all[Reader], Recreate: all[Recreator], Checkpoint: all[Checkpointer],
		Allow: "recreate,early_maintenance", Namespaces: []string{r.namespace},
	})
	r.must(err)
	objects, err := Objects([]byte(text))
	r.must(err)
	return slices.DeleteFunc(objects, func(o map[string]any) bool {
		named, _ := within(o, "metadata")["name"].(string)
		name := strings.TrimPrefix(named, "lists.")
		return name != "pitstop:"+r.user && name != strings.ReplaceAll(r.user, "@", ".")
	})
}

// granted makes the objects of the manifest. Paths are where they are.
func (r account) granted() (all []map[string]any, paths []string) {
	r.t.Helper()
	all = r.manifest()
	for _, o := range all {
		r.create(o)
		kind, _ := o["kind"].(string)
		name, _ := within(o, "metadata")["name"].(string)
		path := r.path(kind, name)
		r.t.Cleanup(func() { r.remove(path) })
		paths = append(paths, path)
	}
	return all, paths
}

// answers asks until the answer has that code and these words: the API server learns a little later what changed in a role or a policy.
func (r account) answers(what string, c call, code int, words string) {
	r.t.Helper()
	var got int
	var message string
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) { // time passes by itself here
		if got, message = r.ask(c.method, c.path, c.body); got == code && strings.Contains(message, words) {
			return
		}
	}
	r.t.Errorf("%s: %s %s: %d %s; want %d %q", what, c.method, c.path, got, message, code, words)
}

// call is one call of the API.
type call struct{ method, path, body string }

// dry makes a call change nothing. It is allowed and denied as if it did.
func (c call) dry() call {
	if c.method == http.MethodDelete && c.body != "" { // options in the body take the place of those in the query
		c.body = strings.Replace(c.body, "{", `{"dryRun":["All"],`, 1)
		return c
	}
	c.path += "?dryRun=All"
	return c
}

func (b *bed) text(o map[string]any) string {
	b.t.Helper()
	raw, err := json.Marshal(o)
	b.must(err)
	return string(raw)
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

// right is one verb on one resource.
type right struct{ group, resource, verb string }

// rightsOf are those of a role, and none of another object.
func rightsOf(role map[string]any) (all []right) {
	rules, _ := role["rules"].([]any)
	for _, o := range rules {
		rule, _ := o.(map[string]any)
		groups, _ := rule["apiGroups"].([]any)
		resources, _ := rule["resources"].([]any)
		verbs, _ := rule["verbs"].([]any)
		for _, verb := range verbs {
			all = append(all, right{fmt.Sprint(groups...), fmt.Sprint(resources...), fmt.Sprint(verb)})
		}
	}
	return all
}

// rights holds for each account that its rights are enough, that it needs each of them, and that it has no others.
func rights(t *testing.T, p *Plane) {
	t.Helper()
	for name, user := range map[string]string{"patrol": Reader, "recreate": Recreator, "checkpoint": Checkpointer} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newAccount(newBed(t, p, "rights-"+name), user)
			r.plans(trained(asJobSet(multiHost(), 1)))
			r.machine("a", "pool", 4)
			r.machine("b", "pool", 4)
			r.announces("a")
			r.ready("llama-slice-0")
			r.ends("ending", "00000000-0000-4000-8000-000000000000", 4)
			for _, path := range []string{r.path("JobSet", "llama"), r.path("Job", "llama-slice-0")} {
				r.patch(path, map[string]any{"metadata": map[string]any{"labels": map[string]any{"pitstop-policy": "spot", "pitstop-incident": "llama-20261112-1"}}})
			}
			r.until("nothing is allowed", r.denied("batch", "jobs"))
			r.lists(plannedLists)
			all, paths := r.granted()
			r.needsEach(all, paths)
			r.hasNoOther()
			switch name {
			case "recreate":
				r.brings()
			case "checkpoint":
				r.maintains()
			}
		})
	}
}

// acts are the calls by which an account changes something, by verb and resource.
func (r account) acts() map[string]call {
	r.t.Helper()
	set := r.object("JobSet", "llama")
	return map[string]call{
		"create jobs":       {http.MethodPost, Path("Job", r.namespace), r.text(r.job("again"))},
		"create jobsets":    {http.MethodPost, Path("JobSet", r.namespace), r.text(r.jobSet("again"))},
		"delete jobs":       {http.MethodDelete, r.path("Job", "llama-slice-0"), precondition(r.object("Job", "llama-slice-0"))},
		"delete jobsets":    {http.MethodDelete, r.path("JobSet", "llama"), precondition(set)},
		"delete pods":       {http.MethodDelete, r.path("Pod", "ending"), precondition(r.object("Pod", "ending"))},
		"patch pods/status": {http.MethodPatch, r.path("Pod", "ending") + "/status", hasFailed},
		"patch nodes":       {http.MethodPatch, "/api/v1/nodes/" + r.namespace + "-a", maintained},
	}
}

// needsEach takes each verb away, and gives it back.
func (r account) needsEach(all []map[string]any, paths []string) {
	r.t.Helper()
	enough := func(o gke.Objects, err error) bool {
		return err == nil && len(o.Jobs) == 1 && len(o.JobSets) == 1 && len(o.Pods) == 2 && len(o.Nodes) >= 2
	}
	r.until("all is read", enough)
	acts := r.acts()
	for i, role := range all {
		for _, right := range rightsOf(role) {
			verb := right.verb
			act, acting := acts[verb+" "+right.resource]
			if acting {
				act = act.dry()
				r.answers("with its verb", act, map[bool]int{true: http.StatusCreated, false: http.StatusOK}[verb == "create"], "")
			}
			r.patch(paths[i], map[string]any{"rules": without(role, right.resource, verb)})
			switch {
			case acting:
				r.answers("without its verb", act, http.StatusForbidden, fmt.Sprintf("cannot %s resource %q", verb, right.resource))
			case r.explains(right.resource) != "" && verb == "list":
				// Without them everything else is read. This plane has no Slices, and all the same it shows whether they may be listed: rights
				// are checked before that.
				formed := call{http.MethodGet, r.explains(right.resource), ""}
				r.answers("no "+right.resource+" are listed", formed, http.StatusForbidden, fmt.Sprintf("cannot list resource %q in API group %q", right.resource, right.group))
				r.until("all else is read", enough)
				r.patch(paths[i], map[string]any{"rules": role["rules"]})
				r.answers(right.resource+" may be listed", formed, map[bool]int{true: http.StatusNotFound, false: http.StatusOK}[role["kind"] == "ClusterRole"], "")
			case verb == "list":
				r.until("no "+right.resource+" are listed", r.denied(right.group, right.resource))
			default:
				r.t.Errorf("nothing here needs the verb %s of %s", verb, right.resource)
			}
			r.patch(paths[i], map[string]any{"rules": role["rules"]})
			r.until("all is read", enough)
		}
	}
}

// explains is the path of a resource that only explains what other readings show; empty for those that are needed.
func (r account) explains(resource string) string {
	return map[string]string{
		"slices":               "/apis/accelerator.gke.io/v1beta1/slices",
		"provisioningrequests": "/apis/autoscaling.x-k8s.io/v1/namespaces/" + r.namespace + "/provisioningrequests",
		"workloads":            "/apis/kueue.x-k8s.io/v1beta2/namespaces/" + r.namespace + "/workloads",
		"podtemplates":         r.templates(),
	}[resource]
}

func (r account) templates() string { return "/api/v1/namespaces/" + r.namespace + "/podtemplates" }

// hasNoOther tries what no account may do, and what only others may.
func (r account) hasNoOther() {
	r.t.Helper()
	pod := r.pods("llama-slice-0")[0]
	acts := r.acts()
	for _, act := range map[string][]string{
		Reader:       {"create jobs", "create jobsets", "delete jobs", "delete jobsets", "delete pods", "patch pods/status", "patch nodes"},
		Recreator:    {"delete pods", "patch pods/status", "patch nodes"},
		Checkpointer: {"create jobs", "create jobsets", "delete jobs", "delete jobsets", "delete pods", "patch pods/status"},
	}[r.user] {
		r.refused(acts[act].dry())
	}
	if r.user != Reader {
		r.refused(call{http.MethodGet, r.templates(), ""})
	}
	for _, c := range []call{
		{http.MethodGet, r.path("Job", "llama-slice-0"), ""},
		{http.MethodPatch, r.path("JobSet", "llama"), `{"spec":{"suspend":true}}`},
		{http.MethodDelete, Path("Job", r.namespace), ""}, // all of them
		{http.MethodPost, Path("Pod", r.namespace), `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"other"}}`},
		{http.MethodPost, r.path("Pod", pod.Name) + "/exec?command=sh", ""},
		{http.MethodGet, r.path("Pod", pod.Name) + "/exec?command=sh", ""},
		{http.MethodPatch, "/api/v1/nodes/" + pod.Spec.NodeName + "/status", `{"status":{"phase":"Running"}}`},
		{http.MethodDelete, "/api/v1/nodes/" + pod.Spec.NodeName, ""},
		{http.MethodGet, "/api/v1/namespaces/" + r.namespace + "/secrets", ""},
		{http.MethodPatch, r.path("ConfigMap", rbac.AllowedName), `{"data":{"images":"other:1"}}`},
		{http.MethodPost, Path("RoleBinding", r.namespace), `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"RoleBinding","metadata":{"name":"other"}}`},
		{http.MethodGet, Path("Job", "default"), ""},
		{http.MethodPost, Path("Job", "default"), r.text(r.job("again"))},
		{http.MethodGet, "/apis/batch/v1/jobs", ""},
	} {
		r.refused(c)
	}
}

// refused holds that no role allows a call.
func (r account) refused(c call) {
	r.t.Helper()
	if code, message := r.ask(c.method, c.path, c.body); code != http.StatusForbidden || !strings.Contains(message, "cannot") {
		r.t.Errorf("%s %s: %d %s", c.method, c.path, code, message)
	}
}
