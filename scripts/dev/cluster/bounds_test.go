package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/scripts/pitstop/flex"
	"pitstop.internal/scripts/pitstop/rbac"
)

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

// jobSpec is the specification of a Job, or of the first one of a JobSet.
func jobSpec(o map[string]any) map[string]any {
	spec := within(o, "spec")
	if replicated, ok := spec["replicatedJobs"].([]any); ok {
		first, _ := replicated[0].(map[string]any)
		return within(first, "template", "spec")
	}
	return spec
}

// podMeta is the metadata of the Pods that a Job or JobSet makes.
func podMeta(o map[string]any) map[string]any {
	pods := within(jobSpec(o), "template")
	if pods["metadata"] == nil {
		pods["metadata"] = map[string]any{}
	}
	return within(pods, "metadata")
}

// abuse is a creation that Pitstop never makes: what is wrong with it, and what its caller is told.
type abuse struct {
	what  string
	wrong func(o map[string]any)
	told  string
}

// What callers are told.
const (
	unlisted    = " of the ConfigMap pitstop-allowed does not list "
	toldMeta    = "creates nothing with an owner, a finalizer or a generated name"
	toldUID     = "deletes nothing without the precondition of its uid"
	toldOrphans = "deletes nothing without its Pods"
	toldAlive   = "deletes nothing that has neither failed nor the label pitstop-incident"
	toldWatch   = "touches nothing without the label pitstop-policy, or with watch in it"
	toldLabel   = "changes nothing of a machine but a label"
	toldOther   = `sets the label cloud.google.com/perform-maintenance="true" and no other`
	toldTPU     = "labels machines with TPUs that announce maintenance, and no others"
)

// abuses are those of Jobs and of JobSets alike.
var abuses = []abuse{
	{"no annotation", func(o map[string]any) { delete(within(o, "metadata"), "annotations") }, "creates nothing without the annotation pitstop-request"},
	{"no incident", func(o map[string]any) { delete(within(o, "metadata", "labels"), "pitstop-incident") }, "creates nothing without the label pitstop-incident"},
	{"no policy", func(o map[string]any) { delete(within(o, "metadata", "labels"), "pitstop-policy") }, toldWatch},
	{"an empty policy", func(o map[string]any) { within(o, "metadata", "labels")["pitstop-policy"] = "" }, toldWatch},
	{"the policy watch", func(o map[string]any) { within(o, "metadata", "labels")["pitstop-policy"] = "watch" }, toldWatch},
	{"an owner", func(o map[string]any) {
		adds(within(o, "metadata"), "ownerReferences", map[string]any{"apiVersion": "v1", "kind": "Pod", "name": "other", "uid": "1"})
	}, toldMeta},
	{"a finalizer", func(o map[string]any) { adds(within(o, "metadata"), "finalizers", "other.example/kept") }, toldMeta},
	{"a generated name", func(o map[string]any) { within(o, "metadata")["generateName"] = "other-" }, toldMeta},
	{"a finalizer of its Pods", func(o map[string]any) { adds(podMeta(o), "finalizers", "other.example/kept") }, toldMeta},
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

// fields are abuses of one field each, which the owner may list by its name.
var fields = func() (all []abuse) {
	type object = map[string]any
	type part func(o object) object
	probe := object{"httpGet": object{"host": "metadata.google.internal", "port": 80}}
	for _, f := range []struct {
		of    part
		field string
		value any
		told  string // the field, if empty
	}{
		{podMeta, "labels", object{"app": "web"}, "labels.app=web"},
		{podMeta, "annotations", object{"other.example/does": "it"}, "annotations.other.example/does=it"},
		{template, "nodeName", "other", ""},
		{template, "tolerations", []any{object{"operator": "Exists"}}, ""},
		{template, "priorityClassName", "system-node-critical", ""},
		{template, "preemptionPolicy", "PreemptLowerPriority", ""},
		{template, "runtimeClassName", "other", ""},
		{template, "schedulerName", "other", ""},
		{template, "affinity", object{"podAntiAffinity": object{}}, ""},
		{template, "hostAliases", []any{object{"ip": "10.0.0.1", "hostnames": []any{"storage.googleapis.com"}}}, ""},
		{template, "resourceClaims", []any{object{"name": "other", "resourceClaimName": "others"}}, ""},
		{template, "automountServiceAccountToken", true, ""},
		{template, "securityContext", object{"runAsUser": 0}, "runAsUser"},
		{template, "securityContext", object{"fsGroup": 0}, "fsGroup"},
		{template, "securityContext", object{"seccompProfile": object{"type": "Unconfined"}}, "seccompProfile"},
		{template, "securityContext", object{"appArmorProfile": object{"type": "Unconfined"}}, "appArmorProfile"},
		{template, "securityContext", object{"seLinuxOptions": object{"type": "spc_t"}}, "seLinuxOptions"},
		{template, "securityContext", object{"sysctls": []any{object{"name": "kernel.shm_rmid_forced", "value": "1"}}}, "sysctls"},
		{template, "securityContext", object{"windowsOptions": object{"runAsUserName": "ContainerAdministrator"}}, "windowsOptions"},
		{training, "securityContext", object{"runAsUser": 0}, "runAsUser"},
		{training, "securityContext", object{"seccompProfile": object{"type": "Unconfined"}}, "seccompProfile"},
		{training, "securityContext", object{"appArmorProfile": object{"type": "Localhost", "localhostProfile": "other"}}, "appArmorProfile"},
		{training, "securityContext", object{"seLinuxOptions": object{"type": "spc_t"}}, "seLinuxOptions"},
		{training, "ports", []any{object{"containerPort": 80, "hostPort": 80}}, "hostPort"},
		{training, "livenessProbe", probe, ""},
		{training, "lifecycle", object{"postStart": probe}, ""},
		{jobSpec, "managedBy", "kueue.x-k8s.io/multikueue", ""},
	} {
		told := cmp.Or(f.told, f.field)
		all = append(all, abuse{"the field " + told, func(o object) { f.of(o)[f.field] = f.value }, "privileges" + unlisted + told})
	}
	return append(all,
		abuse{"a process of the machine", func(o object) {
			template(o)["hostNetwork"] = true
			template(o)["securityContext"] = object{"windowsOptions": object{"hostProcess": true}}
			training(o)["securityContext"] = nil
		}, "privileges" + unlisted + "hostNetwork, windowsOptions"},
		abuse{"all of /proc", func(o object) {
			template(o)["hostUsers"] = false
			training(o)["securityContext"] = object{"procMount": "Unmasked"}
		}, "privileges" + unlisted + "procMount"},
		abuse{"a device", func(o object) {
			adds(template(o), "volumes", object{"name": "raw", "persistentVolumeClaim": object{"claimName": "others"}})
			training(o)["volumeDevices"] = []any{object{"name": "raw", "devicePath": "/dev/raw"}}
		}, "privileges" + unlisted + "volumeDevices, persistentVolumeClaim"},
		abuse{"a selector of its own", func(o object) {
			podMeta(o)["labels"] = object{"app": "web"}
			jobSpec(o)["manualSelector"], jobSpec(o)["selector"] = true, object{"matchLabels": object{"app": "web"}}
		}, "privileges" + unlisted + "manualSelector, labels.app=web"},
		abuse{"a Secret that pulls images", func(o object) { template(o)["imagePullSecrets"] = []any{object{"name": "others"}} }, "secrets" + unlisted + "others"},
		abuse{"an image as a volume", func(o object) {
			adds(template(o), "volumes", object{"name": "files", "image": object{"reference": "other:1"}})
		}, "images" + unlisted + "other:1"},
		abuse{"an image as a volume, where it is listed", func(o object) {
			adds(template(o), "volumes", object{"name": "files", "image": object{"reference": "sidecar:1"}})
		}, "privileges" + unlisted + "image"},
	)
}()

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
func everything() map[string]any {
	lists := map[string]any{"images": "sidecar:1\nllama:1\n", "serviceAccounts": " trainer \n", "secrets": "", "privileges": "privileged\ncsi\nimage\nvolumeClaimPolicies\n"}
	for _, a := range slices.Concat(abuses, fields) {
		if list, items, listed := strings.Cut(a.told, unlisted); listed {
			lists[list] = fmt.Sprint(lists[list], strings.ReplaceAll(items, ", ", "\n"), "\n")
		}
	}
	return lists
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
		for _, a := range slices.Concat(abuses, fields) {
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
	claiming := r.jobSet("again")
	within(claiming, "spec")["volumeClaimPolicies"] = []any{map[string]any{"templates": []any{map[string]any{
		"metadata": map[string]any{"name": "data"},
		"spec":     map[string]any{"accessModes": []any{"ReadWriteOnce"}, "resources": map[string]any{"requests": map[string]any{"storage": "1Gi"}}},
	}}}}
	adds(training(claiming), "volumeMounts", map[string]any{"name": "data", "mountPath": "/data"})
	r.denies("a JobSet with claims", post("JobSet", claiming).dry(), "privileges"+unlisted+"volumeClaimPolicies")
	r.byAnother("a JobSet with claims", post("JobSet", claiming).dry(), claiming)
	training(other)["image"] = "llama:1"                                                                      // nobody knows which of two policies is named
	part["template"].(map[string]any)["metadata"] = map[string]any{"finalizers": []any{"other.example/kept"}} //nolint:forcetypeassert // likewise
	r.denies("a JobSet of which the second part has a finalizer", post("JobSet", second).dry(), toldMeta)
	bound := r.job("again")
	within(bound, "spec")["suspend"] = true
	template(bound)["tolerations"] = []any{map[string]any{"key": "google.com/tpu", "operator": "Exists"}}
	template(bound)["automountServiceAccountToken"], template(bound)["hostUsers"] = false, false
	template(bound)["securityContext"] = map[string]any{"runAsNonRoot": true, "seccompProfile": map[string]any{"type": "RuntimeDefault"}}
	training(bound)["securityContext"] = map[string]any{
		"allowPrivilegeEscalation": false, "privileged": false, "readOnlyRootFilesystem": true, "capabilities": map[string]any{"drop": []any{"ALL"}},
	}
	r.answers("a Job that is bound", post("Job", bound).dry(), http.StatusCreated, "")

	large := r.jobSet("again")
	within(large, "spec")["replicatedJobs"] = nil
	for i := range 20 {
		o := r.jobSet("again")
		for k := range 200 {
			adds(training(o), "env", map[string]any{"name": fmt.Sprint("VALUE_", k), "value": "a value"})
		}
		part := within(o, "spec")["replicatedJobs"].([]any)[0].(map[string]any) //nolint:forcetypeassert // likewise
		part["name"] = fmt.Sprint("slice-", i)
		adds(within(large, "spec"), "replicatedJobs", part)
	}
	r.answers("a large JobSet, which costs much to judge", post("JobSet", large).dry(), http.StatusCreated, "")

	for _, propagation := range []string{`,"propagationPolicy":"Orphan"`, ""} { // without a word, a Job leaves its Pods
		leaving := remove.dry()
		leaving.body = strings.Replace(leaving.body, `,"propagationPolicy":"Background"`, propagation, 1)
		r.denies("a deletion that leaves what trains: "+propagation, leaving, toldOrphans)
	}
	r.denies("a deletion of whatever stands there", call{method: http.MethodDelete, path: remove.path}.dry(), toldUID)
	wrong := remove.dry()
	wrong.body = precondition(r.object("Job", "llama-slice-0"))
	r.answers("a deletion of another life", wrong, http.StatusConflict, "the UID in the precondition")
	r.patch(r.path("JobSet", "llama"), map[string]any{"metadata": map[string]any{"labels": map[string]any{"pitstop-policy": nil}}})
	r.denies("a deletion of what has no policy", remove.dry(), toldWatch)
	r.patch(r.path("JobSet", "llama"), map[string]any{"metadata": map[string]any{"labels": map[string]any{"pitstop-policy": "watch"}}})
	r.denies("a deletion of what is only watched", remove.dry(), toldWatch)
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

	r.lists(everything())
	for kind, manifest := range kinds {
		r.answers(kind+" that is listed", post(kind, manifest("again")).dry(), http.StatusCreated, "")
		r.answers(kind+" that is listed, under a name that is taken", post(kind, manifest(taken[kind])).dry(), http.StatusConflict, "already exists")
		for _, a := range slices.Concat(abuses, fields) {
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

	ended := call{http.MethodDelete, r.path("Job", "llama-slice-0"), precondition(r.object("Job", "llama-slice-0"))}
	for _, c := range []call{remove, ended} {
		r.answers("a deletion of what Pitstop created", c.dry(), http.StatusOK, "")
		r.patch(c.path, map[string]any{"metadata": map[string]any{"labels": map[string]any{"pitstop-incident": nil}}})
		r.denies("a deletion of what trains", c.dry(), toldAlive)
	}
	r.exits(r.pods("llama-slice-0")[0], 2)
	for _, c := range []call{ended, remove} {
		r.answers("a deletion of what has failed", c.dry(), http.StatusOK, "")
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

// maintained is the one change of a machine that checkpoint's account may make.
const maintained = `{"metadata":{"labels":{` + one + `}}}`

// machineAbuses are changes of a machine that Pitstop never makes, and what their caller is told.
var machineAbuses = map[string]struct{ change, told string }{
	"another label":           {`{"metadata":{"labels":{"other":"true"}}}`, toldOther},
	"another label beside it": {`{"metadata":{"labels":{` + one + `,"other":"true"}}}`, toldOther},
	"another value":           {`{"metadata":{"labels":{"cloud.google.com/perform-maintenance":"false"}}}`, toldOther},
	"a changed label":         {`{"metadata":{"labels":{` + one + `,"cloud.google.com/gke-nodepool":"other"}}}`, toldOther},
	"a label less":            {`{"metadata":{"labels":{` + one + `,"cloud.google.com/gke-nodepool":null}}}`, toldOther},
	"no labels":               {`{"metadata":{"labels":null}}`, toldOther},
	"no change":               {`{}`, toldOther},
	"no schedule":             {`{"metadata":{"labels":{` + one + `}},"spec":{"unschedulable":true}}`, toldLabel},
	"a taint":                 {`{"metadata":{"labels":{` + one + `}},"spec":{"taints":[{"key":"other","effect":"NoExecute"}]}}`, toldLabel},
	"no taint":                {`{"metadata":{"labels":{` + one + `}},"spec":{"taints":null}}`, toldLabel},
	"a provider":              {`{"metadata":{"labels":{` + one + `}},"spec":{"providerID":"other"}}`, toldLabel},
	"an annotation":           {`{"metadata":{"labels":{` + one + `},"annotations":{"other":"true"}}}`, toldLabel},
	"an annotation less":      {`{"metadata":{"labels":{` + one + `},"annotations":null}}`, toldLabel},
	"a finalizer":             {`{"metadata":{"labels":{` + one + `},"finalizers":["other.example/kept"]}}`, toldLabel},
	"an owner":                {`{"metadata":{"labels":{` + one + `},"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"other","uid":"1"}]}}`, toldLabel},
}

// announces writes on a machine of the case that maintenance comes in three hours, and can be moved.
func (b *bed) announces(name string) {
	b.t.Helper()
	b.patch("/api/v1/nodes/"+b.namespace+"-"+name, map[string]any{"metadata": map[string]any{"annotations": map[string]any{
		"node.gke.io/upcoming-maintenance": fmt.Sprintf(`{"maintenanceStatus":"PENDING","canReschedule":true,"windowStartTime":%q}`, time.Now().UTC().Add(3*time.Hour).Format(time.RFC3339)),
	}}})
}

// maintains holds that checkpoint's account may set the one label of machines that announce maintenance, and change nothing else.
func (r account) maintains() {
	r.t.Helper()
	path := "/api/v1/nodes/" + r.namespace + "-a"
	r.answers("once the policy holds", call{http.MethodPatch, path, `{"metadata":{"labels":{"other":"true"}}}`}.dry(), http.StatusUnprocessableEntity, toldOther)
	for what, c := range machineAbuses {
		r.denies(what, call{http.MethodPatch, path, c.change}.dry(), c.told)
		if code, message := r.ask(http.MethodPut, path, c.change); code != http.StatusForbidden {
			r.t.Errorf("an update with %s: %d %s", what, code, message)
		}
	}
	node := r.object("Node", r.namespace+"-a")
	named := fmt.Sprintf(`{"metadata":{"uid":%q,"labels":{%s}}}`, within(node, "metadata")["uid"], one)
	r.denies("another machine of that name", call{http.MethodPatch, path, strings.Replace(named, fmt.Sprint(within(node, "metadata")["uid"]), "00000000-0000-4000-8000-000000000000", 1)}.dry(), "")
	r.answers("the label", call{http.MethodPatch, path, named}, http.StatusOK, "")
	r.answers("the label again", call{http.MethodPatch, path, maintained}, http.StatusOK, "")
	r.denies("no label", call{http.MethodPatch, path, `{"metadata":{"labels":{"cloud.google.com/perform-maintenance":null}}}`}, toldOther)
	if labels := within(r.object("Node", r.namespace+"-a"), "metadata", "labels"); labels["cloud.google.com/perform-maintenance"] != "true" {
		r.t.Errorf("%v", labels)
	}
	r.patch(path, map[string]any{"spec": map[string]any{"unschedulable": true}}) // it binds this account alone
	r.denies("a machine that announces nothing", call{http.MethodPatch, "/api/v1/nodes/" + r.namespace + "-b", maintained}.dry(), toldTPU)
	r.patch(path, map[string]any{"metadata": map[string]any{"labels": map[string]any{"cloud.google.com/gke-tpu-accelerator": nil}}})
	r.denies("a machine without TPUs", call{http.MethodPatch, path, maintained}.dry(), toldTPU)
}

// hasFailed is a change of a Pod that no account may make.
const hasFailed = `{"status":{"phase":"Failed"}}`

// ends makes a Pod that asks for so many chips, and whose deletion waits. Its controller is a Job of that UID, or nobody.
func (b *bed) ends(name, job string, chips int) {
	b.t.Helper()
	container := map[string]any{"name": "training", "image": "training:1"}
	if chips > 0 {
		container["resources"] = map[string]any{"limits": map[string]any{"google.com/tpu": fmt.Sprint(chips)}}
	}
	meta := map[string]any{"name": name, "finalizers": []any{"example.com/test"}, "annotations": map[string]any{annotationSilent: "true"}}
	if job != "" {
		meta["ownerReferences"] = []any{map[string]any{"apiVersion": "batch/v1", "kind": "Job", "controller": true, "name": "former", "uid": job}}
	}
	b.create(map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": meta,
		// Kubernetes says of a Pod without a machine that it has failed, as soon as it is being deleted.
		"spec": map[string]any{"nodeName": b.machine(name, name, chips), "containers": []any{container}},
	})
	b.t.Cleanup(func() {
		b.must(b.Do(context.WithoutCancel(b.t.Context()), http.MethodPatch, b.path("Pod", name), map[string]any{"metadata": map[string]any{"finalizers": nil}}, nil))
	})
	b.must(b.Do(b.t.Context(), http.MethodDelete, b.path("Pod", name), map[string]any{"gracePeriodSeconds": 0}, nil))
}

// TestEveryBoundIsTried: for each thing that a policy demands there is an abuse that lacks it.
func TestEveryBoundIsTried(t *testing.T) {
	told := []string{toldUID, toldOrphans, toldAlive, toldTPU}
	for _, a := range slices.Concat(abuses, fields) {
		before, after, listed := strings.Cut(a.told, unlisted)
		if listed && after == "" {
			t.Errorf("%s: it has to say what is not listed", a.what)
		}
		told = append(told, map[bool]string{true: before + unlisted, false: a.told}[listed])
	}
	for _, a := range machineAbuses {
		told = append(told, a.told)
	}
	text, err := rbac.Manifest(rbac.Options{
		Recreate: rbac.Account{Email: Recreator, ID: "1"}, Checkpoint: rbac.Account{Email: Checkpointer, ID: "2"},
		Allow: "recreate,early_maintenance", All: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	objects, err := Objects([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, o := range objects {
		spec, _ := o["spec"].(map[string]any)
		validations, _ := spec["validations"].([]any)
		for _, v := range validations {
			n++
			one, _ := v.(map[string]any)
			if says := fmt.Sprint(one["message"], one["messageExpression"]); !slices.ContainsFunc(told, func(words string) bool { return strings.Contains(says, words) }) {
				t.Errorf("nothing here is denied by %s", one["expression"])
			}
		}
	}
	if n < 10 {
		t.Errorf("there are only %d demands", n)
	}
}
