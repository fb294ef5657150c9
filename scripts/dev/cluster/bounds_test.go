package cluster

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"pitstop.internal/scripts/pitstop/flex"
	"pitstop.internal/scripts/pitstop/rbac"
)

const maintained = `{"metadata":{"labels":{"cloud.google.com/perform-maintenance":"true"}}}`

// precondition is the body of a deletion of that object alone.
func precondition(o map[string]any) string {
	return fmt.Sprintf(`{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":%q},"propagationPolicy":"Background"}`, within(o, "metadata")["uid"])
}

// object is what stands under a name.
func (b *bed) object(kind, name string) (o map[string]any) {
	b.t.Helper()
	b.must(b.Do(b.t.Context(), http.MethodGet, b.path(kind, name), nil, &o))
	return o
}

// plannedLists are what the owner of a namespace lists for the plans, one item a line.
var plannedLists = map[string]any{"images": "sidecar:1\nllama:1\n", "serviceAccounts": "trainer\n", "privileges": "privileged\n", "secrets": ""}

// lists makes the ConfigMap that the owner of the namespace keeps, from the one that is printed.
func (b *bed) lists(lists map[string]any) {
	b.t.Helper()
	printed, err := Objects([]byte(rbac.Allowed))
	b.must(err)
	within(printed[0], "metadata")["namespace"] = b.namespace
	data := within(printed[0], "data")
	if len(data) != len(lists) {
		b.t.Errorf("%d lists are printed, not %d", len(data), len(lists))
	}
	maps.Copy(data, lists)
	b.create(printed[0])
}

// trained is a plan with a service account of its own.
func trained(o flex.Options) flex.Options {
	o.ServiceAccount = "trainer"
	return o
}

// planned is the Job or JobSet of a plan as Pitstop creates it.
func (b *bed) planned(o flex.Options, name string) map[string]any {
	b.t.Helper()
	objects := b.plan(trained(o))
	i := slices.IndexFunc(objects, func(o map[string]any) bool { return o["kind"] == "Job" || o["kind"] == "JobSet" })
	meta := within(objects[i], "metadata")
	meta["name"], meta["namespace"] = name, b.namespace
	meta["labels"] = map[string]any{"pitstop-policy": "spot", "pitstop-incident": "llama-20261112-1"}
	meta["annotations"] = map[string]any{"pitstop-request": "5f0c"}
	return objects[i]
}

func (b *bed) job(name string) map[string]any    { return b.planned(multiHost(), name) }
func (b *bed) jobSet(name string) map[string]any { return b.planned(asJobSet(multiHost(), 1), name) }

func training(o map[string]any) map[string]any {
	all, _ := template(o)["containers"].([]any)
	c, _ := all[0].(map[string]any)
	return c
}

// abuse is a creation that Pitstop never makes: what is wrong with it, and what its caller is told.
type abuse struct {
	what  string
	wrong func(o map[string]any)
	told  string
}

// What callers are told.
const (
	unlisted  = " of the ConfigMap pitstop-allowed does not list "
	toldUID   = "deletes nothing without the precondition of its uid"
	toldLabel = "changes nothing of a machine but a label"
	toldTPU   = "labels machines with TPUs alone"
)

// abuses are those of Jobs and of JobSets alike.
var abuses = []abuse{
	{"no annotation", func(o map[string]any) { delete(within(o, "metadata"), "annotations") }, "creates nothing without the annotation pitstop-request"},
	{"no incident", func(o map[string]any) { delete(within(o, "metadata", "labels"), "pitstop-incident") }, "creates nothing without the label pitstop-incident"},
	{"no policy", func(o map[string]any) { delete(within(o, "metadata", "labels"), "pitstop-policy") }, "touches nothing without the label pitstop-policy"},
	{"another image", func(o map[string]any) { training(o)["image"] = "other:1" }, "images" + unlisted + "other:1"},
	{"a longer image", func(o map[string]any) { training(o)["image"] = "llama:12" }, "images" + unlisted + "llama:12"},
	{"another container", func(o map[string]any) { adds(template(o), "containers", container("other:1")) }, "images" + unlisted + "other:1"},
	{"another init container", func(o map[string]any) { adds(template(o), "initContainers", container("other:1")) }, "images" + unlisted + "other:1"},
	{"another service account", func(o map[string]any) { template(o)["serviceAccountName"] = "admin" }, "serviceAccounts" + unlisted + "admin"},
	{"another service account by the older name", func(o map[string]any) {
		delete(template(o), "serviceAccountName")
		template(o)["serviceAccount"] = "admin"
	}, "serviceAccounts" + unlisted + "admin"},
	{"the service account that the owner did not list", func(o map[string]any) { template(o)["serviceAccountName"] = "" }, "serviceAccounts" + unlisted + "default"},
	{"the network of the machine", func(o map[string]any) { template(o)["hostNetwork"] = true }, "privileges" + unlisted + "hostNetwork"},
	{"the processes of the machine", func(o map[string]any) { template(o)["hostPID"] = true }, "privileges" + unlisted + "hostPID"},
	{"the memory of the machine", func(o map[string]any) { template(o)["hostIPC"] = true }, "privileges" + unlisted + "hostIPC"},
	{"the disk of the machine", func(o map[string]any) {
		adds(template(o), "volumes", map[string]any{"name": "root", "hostPath": map[string]any{"path": "/"}})
	}, "privileges" + unlisted + "hostPath"},
	{"a claim", func(o map[string]any) {
		adds(template(o), "volumes", map[string]any{"name": "data", "persistentVolumeClaim": map[string]any{"claimName": "others"}})
	}, "privileges" + unlisted + "persistentVolumeClaim"},
	{"a token", func(o map[string]any) {
		adds(template(o), "volumes", projected(map[string]any{"serviceAccountToken": map[string]any{"path": "token", "audience": "vault"}}))
	}, "privileges" + unlisted + "serviceAccountToken"},
	{"capabilities", func(o map[string]any) {
		training(o)["securityContext"] = map[string]any{"capabilities": map[string]any{"add": []any{"SYS_ADMIN"}}}
	}, "privileges" + unlisted + "capabilities"},
	{"a Secret as a variable", func(o map[string]any) {
		adds(training(o), "env", map[string]any{"name": "KEY", "valueFrom": map[string]any{"secretKeyRef": map[string]any{"name": "others", "key": "key"}}})
	}, "secrets" + unlisted + "others"},
	{"a Secret as variables", func(o map[string]any) {
		adds(training(o), "envFrom", map[string]any{"secretRef": map[string]any{"name": "others"}})
	}, "secrets" + unlisted + "others"},
	{"a Secret as a volume", func(o map[string]any) {
		adds(template(o), "volumes", map[string]any{"name": "key", "secret": map[string]any{"secretName": "others"}})
	}, "secrets" + unlisted + "others"},
	{"a Secret in a volume of several", func(o map[string]any) {
		adds(template(o), "volumes", projected(map[string]any{"configMap": map[string]any{"name": "fine"}}, map[string]any{"secret": map[string]any{"name": "others"}}))
	}, "secrets" + unlisted + "others"},
	{"a Secret for a driver", func(o map[string]any) {
		adds(template(o), "volumes", map[string]any{"name": "key", "csi": map[string]any{"driver": "other.example", "nodePublishSecretRef": map[string]any{"name": "others"}}})
	}, "secrets" + unlisted + "others"},
}

func container(image string) map[string]any {
	return map[string]any{"name": "other", "image": image, "command": []any{"sh"}}
}

func projected(sources ...any) map[string]any {
	return map[string]any{"name": "several", "projected": map[string]any{"sources": sources}}
}

// adds appends to a list.
func adds(o map[string]any, list string, item any) {
	all, _ := o[list].([]any)
	o[list] = append(all, item)
}

// everything are lists with everything that the abuses want.
var everything = map[string]any{
	"images": "llama:1\nllama:12\nother:1\n", "serviceAccounts": " admin \ndefault\ntrainer", "secrets": "others\n",
	"privileges": "privileged\ncapabilities\nhostNetwork\nhostPID\nhostIPC\nhostPath\npersistentVolumeClaim\ncsi\nserviceAccountToken\n",
}

// brings holds that recreate's account may delete and create what the owner of the namespace lists, and nothing else.
func (r account) brings() {
	r.t.Helper()
	kinds := map[string]func(name string) map[string]any{"Job": r.job, "JobSet": r.jobSet}
	taken := map[string]string{"Job": "llama-slice-0", "JobSet": "llama"}
	post := func(kind string, o map[string]any) call {
		return call{http.MethodPost, Path(kind, r.namespace), r.text(o)}
	}
	remove := call{http.MethodDelete, r.path("JobSet", "llama"), precondition(r.object("JobSet", "llama"))}
	lists := r.path("ConfigMap", rbac.AllowedName)

	for kind, manifest := range kinds {
		for _, told := range []string{"creates nothing", unlisted} { // each policy holds a little later than it is there
			a := abuses[slices.IndexFunc(abuses, func(a abuse) bool { return strings.Contains(a.told, told) })]
			o := manifest("again")
			a.wrong(o)
			r.answers("once the policy holds", post(kind, o).dry(), http.StatusUnprocessableEntity, a.told)
		}
		for _, a := range abuses {
			o := manifest("again")
			a.wrong(o)
			r.denies(kind+" with "+a.what, post(kind, o).dry(), a.told)
			r.byAnother(kind+" with "+a.what, post(kind, o).dry(), o)
			within(o, "metadata")["name"] = taken[kind] // it is denied before anybody asks for the name
			r.denies(kind+" under a name that is taken, with "+a.what, post(kind, o).dry(), a.told)
		}
	}
	second := r.jobSet("again")
	spec := within(second, "spec")
	first := spec["replicatedJobs"].([]any) //nolint:forcetypeassert // it fails the test
	other := r.jobSet("other")
	training(other)["image"] = "other:1"
	part := within(other, "spec")["replicatedJobs"].([]any)[0].(map[string]any) //nolint:forcetypeassert // likewise
	part["name"] = "other"
	spec["replicatedJobs"] = append(first, part)
	r.denies("a JobSet of which the second part has another image", post("JobSet", second).dry(), "images"+unlisted+"other:1")

	r.denies("a deletion of whatever stands there", call{method: http.MethodDelete, path: remove.path}.dry(), toldUID)
	wrong := remove.dry()
	wrong.body = precondition(r.object("Job", "llama-slice-0"))
	r.answers("a deletion of another life", wrong, http.StatusConflict, "the UID in the precondition")
	r.patch(r.path("JobSet", "llama"), map[string]any{"metadata": map[string]any{"labels": map[string]any{"pitstop-policy": nil}}})
	r.denies("a deletion of what has no policy", remove.dry(), "touches nothing without the label pitstop-policy")
	r.patch(r.path("JobSet", "llama"), map[string]any{"metadata": map[string]any{"labels": map[string]any{"pitstop-policy": "spot"}}})

	r.patch(lists, map[string]any{"data": map[string]any{"privileges": ""}})
	r.answers("a Job that is privileged", post("Job", r.job("again")).dry(), http.StatusUnprocessableEntity, "privileges"+unlisted+"privileged")
	r.remove(lists)
	for kind, manifest := range kinds {
		o := manifest("again")
		r.answers("a creation without the owner's lists", post(kind, o).dry(), http.StatusUnprocessableEntity, "no params found")
		delete(within(o, "metadata", "labels"), "pitstop-incident")
		r.denies("a creation without the owner's lists and without the label", post(kind, o).dry(), "creates nothing without the label pitstop-incident")
		r.byAnother("without the owner's lists", post(kind, o).dry(), o)
	}

	r.lists(everything)
	for kind, manifest := range kinds {
		r.answers(kind+" that is listed", post(kind, manifest("again")).dry(), http.StatusCreated, "")
		r.answers(kind+" that is listed, under a name that is taken", post(kind, manifest(taken[kind])).dry(), http.StatusConflict, "already exists")
		for _, a := range abuses {
			if strings.Contains(a.told, unlisted) {
				o := manifest("again")
				a.wrong(o)
				c := post(kind, o).dry()
				if code, message := r.ask(c.method, c.path, c.body); code != http.StatusCreated {
					r.t.Errorf("%s with %s, which the owner lists: %d %s", kind, a.what, code, message)
				}
			}
		}
	}

	former := within(r.object("JobSet", "llama"), "metadata")["uid"]
	r.answers("a deletion", remove, http.StatusOK, "")
	r.answers("a creation under the same name", post("JobSet", r.jobSet("llama")), http.StatusCreated, "")
	if now := within(r.object("JobSet", "llama"), "metadata")["uid"]; now == former {
		r.t.Errorf("the JobSet is still %v", now)
	}
	r.answers("a creation", post("Job", r.job("again")), http.StatusCreated, "")
	r.answers("its deletion", call{http.MethodDelete, r.path("Job", "again"), precondition(r.object("Job", "again"))}, http.StatusOK, "")
}

// byAnother holds that a policy denies a creation to this account alone.
func (r account) byAnother(what string, c call, o map[string]any) {
	r.t.Helper()
	if code, body, err := r.call(r.t.Context(), c.method, r.URL+c.path, o); err != nil || code != http.StatusCreated {
		r.t.Errorf("%s, by the administrator: %d %s, %v", what, code, body, err)
	}
}

// denies holds that a policy denies a call, and what it tells.
func (r account) denies(what string, c call, told string) {
	r.t.Helper()
	if code, message := r.ask(c.method, c.path, c.body); code != http.StatusUnprocessableEntity || !strings.Contains(message, told) {
		r.t.Errorf("%s: %d %s; want %q", what, code, message, told)
	}
}

const one = `"cloud.google.com/perform-maintenance":"true"`

// machineAbuses are changes of a machine that Pitstop never makes, and what their caller is told.
var machineAbuses = map[string]struct{ change, told string }{
	"another label":           {`{"metadata":{"labels":{"other":"true"}}}`, "and no other"},
	"another label beside it": {`{"metadata":{"labels":{` + one + `,"other":"true"}}}`, "and no other"},
	"another value":           {`{"metadata":{"labels":{"cloud.google.com/perform-maintenance":"false"}}}`, "and no other"},
	"a changed label":         {`{"metadata":{"labels":{` + one + `,"cloud.google.com/gke-nodepool":"other"}}}`, "and no other"},
	"a label less":            {`{"metadata":{"labels":{` + one + `,"cloud.google.com/gke-nodepool":null}}}`, "and no other"},
	"no schedule":             {`{"metadata":{"labels":{` + one + `}},"spec":{"unschedulable":true}}`, toldLabel},
	"a taint":                 {`{"metadata":{"labels":{` + one + `}},"spec":{"taints":[{"key":"other","effect":"NoExecute"}]}}`, toldLabel},
	"no taint":                {`{"metadata":{"labels":{` + one + `}},"spec":{"taints":null}}`, toldLabel},
	"an annotation":           {`{"metadata":{"labels":{` + one + `},"annotations":{"other":"true"}}}`, toldLabel},
	"an annotation less":      {`{"metadata":{"labels":{` + one + `},"annotations":null}}`, toldLabel},
	"a finalizer":             {`{"metadata":{"labels":{` + one + `},"finalizers":["other.example/kept"]}}`, toldLabel},
	"an owner":                {`{"metadata":{"labels":{` + one + `},"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"other","uid":"1"}]}}`, toldLabel},
}

// maintains holds that checkpoint's account may set the one label of machines with TPUs, and change nothing else.
func (r account) maintains() {
	r.t.Helper()
	path := "/api/v1/nodes/" + r.namespace + "-a"
	r.answers("once the policy holds", call{http.MethodPatch, path, `{"metadata":{"labels":{"other":"true"}}}`}.dry(), http.StatusUnprocessableEntity, "and no other")
	for what, c := range machineAbuses {
		change := call{http.MethodPatch, path, c.change}
		r.denies(what, change.dry(), c.told)
		if code, message := r.ask(http.MethodPut, path, c.change); code != http.StatusForbidden {
			r.t.Errorf("an update with %s: %d %s", what, code, message)
		}
	}
	r.answers("the label", call{http.MethodPatch, path, maintained}, http.StatusOK, "")
	r.answers("the label again", call{http.MethodPatch, path, maintained}, http.StatusOK, "")
	r.denies("no label", call{http.MethodPatch, path, `{"metadata":{"labels":{"cloud.google.com/perform-maintenance":null}}}`}, "and no other")
	var node map[string]any
	r.must(r.Do(r.t.Context(), http.MethodGet, path, nil, &node))
	if labels := within(node, "metadata", "labels"); labels["cloud.google.com/perform-maintenance"] != "true" {
		r.t.Errorf("%v", labels)
	}
	r.patch(path, map[string]any{"spec": map[string]any{"unschedulable": true}}) // it binds this account alone
	r.patch(path, map[string]any{"metadata": map[string]any{"labels": map[string]any{"cloud.google.com/gke-tpu-accelerator": nil}}})
	r.denies("a machine without TPUs", call{http.MethodPatch, path, maintained}, toldTPU)
}

// TestEveryBoundIsTried: for each thing that a policy demands there is an abuse that lacks it.
func TestEveryBoundIsTried(t *testing.T) {
	told := []string{toldUID, toldTPU}
	for _, a := range abuses {
		before, after, listed := strings.Cut(a.told, unlisted)
		if listed && after == "" {
			t.Errorf("%s: it has to say what is not listed", a.what)
		}
		told = append(told, map[bool]string{true: before + unlisted, false: a.told}[listed])
	}
	for _, a := range machineAbuses {
		told = append(told, a.told)
	}
	objects, err := rbac.Objects(rbac.Options{
		Recreate: rbac.Account{Email: Recreator, ID: "1"}, Checkpoint: rbac.Account{Email: Checkpointer, ID: "2"}, Allow: "recreate,early_maintenance", All: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, o := range objects {
		p, _ := o.Spec.(rbac.Policy)
		for _, v := range p.Validations {
			n++
			if !slices.ContainsFunc(told, func(words string) bool { return strings.Contains(v.Message+v.How, words) }) {
				t.Errorf("nothing here is denied by %s", v.Expression)
			}
		}
	}
	if n < 10 {
		t.Errorf("there are only %d demands", n)
	}
}
