package clustertest

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/reason"
)

const (
	project  = "demo"
	location = "us-east5"
	research = "research"
)

// provides is Pitstop's own provider of the namespace of a case.
func (s scene) provides() *gke.Clusters {
	client := gke.Client{HTTP: s.HTTP, URL: s.URL, Token: func(context.Context) (string, error) { return s.Token, nil }}
	return gke.New([]gke.Cluster{{Project: project, Location: location, Name: research, Namespaces: []string{s.ns}}},
		func(context.Context, gke.Cluster) (gke.Client, error) { return client, nil }, time.Now)
}

// ref names a slice; a group is its JobSet.
func (s scene) ref(name, group string) provider.Ref {
	return provider.Ref{Project: project, Zone: location + "/" + research + "/" + s.ns, Name: name, QueuedResource: group}
}

// reading reads a slice as the functions do.
func (s scene) reading(name, group string) provider.Slice {
	s.t.Helper()
	r, err := s.provides().Read(s.t.Context(), s.ref(name, group))
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// turns waits until a slice is in a condition, and returns that reading.
func (s scene) turns(name, group string, into evidence.Condition) (r provider.Slice) {
	s.t.Helper()
	s.until(name+" is "+string(into), func() bool {
		r = s.reading(name, group)
		return r.Condition == into
	})
	return r
}

// classed fails the case unless an error is one of that class and reason.
func (s scene) classed(err error, class reason.FailureClass, code reason.Code) {
	s.t.Helper()
	var no *provider.Error
	if !errors.As(err, &no) || no.Class != class || no.Code != code || no.Call == "" || no.Message == "" {
		s.t.Fatalf("error %v (%+v), want one of class %s, code %q", err, no, class, code)
	}
}

// deletes deletes a slice that was read.
func (s scene) deletes(r provider.Slice) {
	s.t.Helper()
	if op, err := s.provides().Delete(s.t.Context(), r.Ref, "request-1"); err != nil || op != "" {
		s.t.Fatalf("operation %q, %v", op, err)
	}
}

// secret is the value of a variable that every manifest of these cases has.
const secret = "hunter2-hunter2"

// withSecret is a manifest whose Pods have the secret.
func withSecret(manifest object) object {
	spec := manifest["spec"]
	if parts := list(manifest, "spec", "replicatedJobs"); len(parts) > 0 {
		spec = field(parts[0], "template", "spec")
	}
	containers := list(spec, "template", "spec", "containers")
	containers[0].(object)["env"] = []any{object{"name": "TOKEN", "value": secret}, object{"name": "EMPTY"}} //nolint:forcetypeassert // the template has one
	return manifest
}

// whole is the manifest from which a slice that was read is created again.
func (s scene) whole(r provider.Slice) []byte {
	s.t.Helper()
	if strings.Contains(string(r.Spec), secret) {
		s.t.Fatalf("the stored manifest has a value of a variable: %s", r.Spec)
	}
	spec, err := gke.Orders{}.Whole(r.Spec, r.Values)
	if err != nil {
		s.t.Fatal(err)
	}
	return spec
}

// creates creates a slice as the functions do.
func (s scene) creates(r provider.Ref, spec []byte, request string) error {
	s.t.Helper()
	op, err := s.provides().Create(s.t.Context(), r, spec, map[string]string{events.LabelWorkload: "big", events.LabelIncident: "llama-20261112-1"}, request)
	if op != "" {
		s.t.Errorf("operation %s", op)
	}
	if err != nil && strings.Contains(err.Error(), secret) {
		s.t.Errorf("the error has a value of a variable: %v", err)
	}
	return err
}

// creatable asks whether a slice could be created, as the functions do before they delete one.
func (s scene) creatable(r provider.Ref, spec []byte) error {
	s.t.Helper()
	err := s.provides().Creatable(s.t.Context(), r, spec, map[string]string{events.LabelWorkload: "big", events.LabelIncident: "llama-20261112-1"}, "request-1")
	if err != nil && strings.Contains(err.Error(), secret) {
		s.t.Errorf("the error has a value of a variable: %v", err)
	}
	return err
}

// limits makes a quota of so many Jobs, of which one is used.
func (s scene) limits(name string, jobs string) {
	s.t.Helper()
	quotas := "/api/v1/namespaces/" + s.ns + "/resourcequotas"
	hard := object{"count/jobs.batch": jobs}
	s.do(http.MethodPost, quotas, object{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": object{"name": name}, "spec": object{"hard": hard}})
	s.do(http.MethodPatch, quotas+"/"+name+"/status", object{"status": object{"hard": hard, "used": object{"count/jobs.batch": "1"}}})
}

func (s scene) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

// deleted makes an object, reads its slice and deletes it; then the name is free.
func (s scene) deleted(path string, manifest object, name, group string) provider.Slice {
	s.t.Helper()
	s.do(http.MethodPost, path, withSecret(manifest))
	var r provider.Slice
	s.until(name+" is read", func() bool {
		r = s.reading(name, group)
		return len(r.Spec) > 0
	})
	s.deletes(r)
	s.until("the name is free", func() bool { return s.gone(path + "/" + text(manifest, "metadata", "name")) })
	return r
}

// same fails the case unless both objects ask for the same, apart from what an API server gives each.
func (s scene) same(got, want object) {
	s.t.Helper()
	for _, o := range []object{got, want} {
		spec, _ := o["spec"].(object)
		delete(spec, "selector")
		delete(spec, "suspend") // Kueue writes it, so it is no part of an order
		if template, ok := spec["template"].(object); ok {
			delete(template, "metadata") // its labels name the life
		}
	}
	if diff := cmp.Diff(want["spec"], got["spec"]); diff != "" {
		s.t.Errorf("it differs from what its owner applied (-applied +created):\n%s", diff)
	}
}

// verbs are the calls that Pitstop makes to change something.
func verbs() map[string]func(scene) {
	return map[string]func(scene){
		"verb: a Job is created as it was applied":                          aJobIsCreatedAsItWasApplied,
		"verb: a JobSet is created whole":                                   aJobSetIsCreatedWhole,
		"verb: created twice by one request is created once":                createdTwiceByOneRequestIsCreatedOnce,
		"verb: a name that somebody took is theirs":                         aNameThatSomebodyTookIsTheirs,
		"verb: a dry run creates nothing":                                   aDryRunCreatesNothing,
		"verb: a dry run says that the name is taken after all else":        aDryRunSaysThatTheNameIsTakenAfterAllElse,
		"verb: a manifest that is wrong cannot be created again":            aManifestThatIsWrongCannotBeCreatedAgain,
		"verb: a quota that a Job fills has room for it once it is deleted": aQuotaThatAJobFillsHasRoomForItOnceItIsDeleted,
		"verb: a quota refuses a Job":                                       aQuotaRefusesAJob,
		"verb: a manifest that is wrong is refused":                         aManifestThatIsWrongIsRefused,
		"verb: a slice is gone once its Pods have ended":                    aSliceIsGoneOnceItsPodsHaveEnded,
		"verb: a JobSet is gone once the Pods of all its slices have ended": aJobSetIsGoneOnceThePodsOfAllItsSlicesHaveEnded,
		"verb: a Pod that was left alone is left":                           aPodThatWasLeftAloneIsLeft,
		"verb: there is nothing to create in a namespace that is not there": thereIsNothingToCreateInANamespaceThatIsNotThere,
		"verb: another life is not deleted":                                 anotherLifeIsNotDeleted,
		"verb: without a life nothing is deleted":                           withoutALifeNothingIsDeleted,
		"verb: the life that was read is deleted":                           theLifeThatWasReadIsDeleted,
		"verb: a JobSet is deleted whole":                                   aJobSetIsDeletedWhole,
	}
}

func aJobIsCreatedAsItWasApplied(s scene) {
	first := s.do(http.MethodPost, s.jobs(), withSecret(s.idle("j")))
	r := s.reading("j", "")
	s.deletes(r)
	s.until("the name is free", func() bool { return s.gone(s.jobs() + "/j") })
	s.must(s.creates(r.Ref, s.whole(r), "request-1"))
	second := s.read(s.jobs() + "/j")
	if uid(second) == uid(first) || label(second, events.LabelIncident) != "llama-20261112-1" || label(second, events.LabelWorkload) != "big" ||
		text(second, "metadata", "annotations", gke.AnnotationRequest) != "request-1" {
		s.t.Errorf("%v", second["metadata"])
	}
	s.same(second, first)
	n := s.reading("j", "")
	if n.Life != uid(second) || n.Labels[events.LabelIncident] != "llama-20261112-1" {
		s.t.Errorf("%+v", n)
	}
	if old, err := (gke.Orders{}).Whole(n.Spec, n.Values); err != nil || strings.Contains(string(old), events.LabelIncident) || strings.Contains(string(old), "request-1") {
		s.t.Errorf("what Pitstop wrote became the owner's order: %s, %v", old, err)
	}
}

func aJobSetIsCreatedWhole(s scene) {
	for _, n := range []string{"a", "b", "c", "d"} {
		s.node(n)
	}
	first := s.do(http.MethodPost, s.jobSets(), withSecret(s.jobSet("big", 2, nil, nil)))
	r, other := s.turns("big-slice-0", "big", evidence.Ready), s.turns("big-slice-1", "big", evidence.Ready)
	s.deletes(r)
	s.turns("big-slice-0", "", evidence.Gone)
	s.turns("big-slice-1", "", evidence.Gone)
	spec, err := gke.Orders{}.Together([]string{r.Name, other.Name}, [][]byte{s.whole(r), s.whole(other)})
	s.must(err)
	s.must(s.creates(r.Ref, spec, "request-1"))
	second := s.read(s.jobSets() + "/big")
	s.same(second, first)
	for _, was := range []provider.Slice{r, other} {
		n := s.turns(was.Name, "big", evidence.Ready)
		if n.Life != uid(second) || n.Incarnation.ID == was.Incarnation.ID || n.Labels[events.LabelIncident] != "llama-20261112-1" {
			s.t.Errorf("%+v", n)
		}
	}
	if env := list(s.podsOf("big-slice-0")[0], "spec", "containers"); text(list(env[0], "env")[0], "value") != secret {
		s.t.Errorf("its Pods have %v", env)
	}
}

func createdTwiceByOneRequestIsCreatedOnce(s scene) {
	r := s.deleted(s.jobs(), s.idle("j"), "j", "")
	s.must(s.creates(r.Ref, s.whole(r), "request-1"))
	made := uid(s.read(s.jobs() + "/j"))
	s.must(s.creates(r.Ref, s.whole(r), "request-1"))
	s.classed(s.creates(r.Ref, s.whole(r), "request-2"), reason.Exists, "")
	if now := uid(s.read(s.jobs() + "/j")); now != made {
		s.t.Errorf("it was %s, and is %s", made, now)
	}
}

func aNameThatSomebodyTookIsTheirs(s scene) {
	r := s.deleted(s.jobSets(), s.jobSet("big", 1, nil, object{"suspend": true}), "big-slice-0", "big")
	s.do(http.MethodPost, s.jobSets(), s.jobSet("big", 3, nil, object{"suspend": true}))
	for _, request := range []string{"request-1", ""} {
		s.classed(s.creates(r.Ref, s.whole(r), request), reason.Exists, "")
	}
	if n := number(list(s.read(s.jobSets()+"/big"), "spec", "replicatedJobs")[0], "replicas"); n != 3 {
		s.t.Errorf("it has %d slices", n)
	}
}

func aDryRunCreatesNothing(s scene) {
	for path, manifest := range map[string]object{s.jobs(): s.idle("j"), s.jobSets(): s.jobSet("big", 1, nil, object{"suspend": true})} {
		name, slice, group := text(manifest, "metadata", "name"), "j", ""
		if path == s.jobSets() {
			slice, group = "big-slice-0", "big"
		}
		r := s.deleted(path, manifest, slice, group)
		s.must(s.creatable(r.Ref, s.whole(r)))
		if !s.gone(path + "/" + name) {
			s.t.Errorf("%s is there", name)
		}
		s.must(s.creates(r.Ref, s.whole(r), "request-1"))
		made := uid(s.read(path + "/" + name))
		s.must(s.creatable(r.Ref, s.whole(r)))
		if now := s.read(path + "/" + name); uid(now) != made || text(now, "metadata", "deletionTimestamp") != "" {
			s.t.Errorf("it was %s, and is %v", made, now["metadata"])
		}
	}
}

func aDryRunSaysThatTheNameIsTakenAfterAllElse(s scene) {
	taken := s.idle("j")
	s.do(http.MethodPost, s.jobs(), taken)
	s.refused(s.try(http.MethodPost, s.jobs()+"?dryRun=All", s.idle("j")), http.StatusConflict, "AlreadyExists")
	wrong := s.idle("j")
	wrong["spec"].(object)["backoffLimit"] = -1 //nolint:forcetypeassert // it has one
	s.refused(s.try(http.MethodPost, s.jobs()+"?dryRun=All", wrong), http.StatusUnprocessableEntity, "Invalid")
	s.limits("none", "0")
	s.until("the quota counts", func() bool {
		return s.try(http.MethodPost, s.jobs()+"?dryRun=All", s.idle("j")).code == http.StatusForbidden
	})
}

func aManifestThatIsWrongCannotBeCreatedAgain(s scene) {
	s.do(http.MethodPost, s.jobs(), withSecret(s.idle("j")))
	r := s.reading("j", "")
	s.must(s.creatable(r.Ref, s.whole(r)))
	wrong := strings.Replace(string(s.whole(r)), `"restartPolicy":"Never"`, `"restartPolicy":"`+secret+`"`, 1)
	s.classed(s.creatable(r.Ref, []byte(wrong)), reason.Invalid, "")
	s.classed(s.creatable(r.Ref, r.Spec), reason.Invalid, "") // the values are missing
	s.classed(s.creatable(s.ref("k", ""), s.whole(r)), reason.Invalid, "")
}

func aQuotaThatAJobFillsHasRoomForItOnceItIsDeleted(s scene) {
	s.do(http.MethodPost, s.jobs(), s.idle("j"))
	r := s.reading("j", "")
	s.limits("one", "1")
	s.until("the quota counts", func() bool {
		a := s.try(http.MethodPost, s.jobs()+"?dryRun=All", s.idle("k"))
		return a.code == http.StatusForbidden && strings.Contains(text(a.body, "message"), "exceeded quota: one")
	})
	s.must(s.creatable(r.Ref, s.whole(r)))
	s.limits("none", "0")
	var err error
	s.until("the other quota counts", func() bool {
		err = s.creatable(r.Ref, s.whole(r))
		return err != nil
	})
	s.classed(err, reason.Quota, "")
}

func aQuotaRefusesAJob(s scene) {
	r := s.deleted(s.jobs(), s.idle("j"), "j", "")
	quotas := "/api/v1/namespaces/" + s.ns + "/resourcequotas"
	hard := object{"count/jobs.batch": "0"}
	s.do(http.MethodPost, quotas, object{"apiVersion": "v1", "kind": "ResourceQuota", "metadata": object{"name": "few"}, "spec": object{"hard": hard}})
	s.do(http.MethodPatch, quotas+"/few/status", object{"status": object{"hard": hard, "used": object{"count/jobs.batch": "0"}}})
	var err error
	s.until("the quota counts", func() bool {
		if err = s.creates(r.Ref, s.whole(r), "request-1"); err == nil {
			s.do(http.MethodDelete, s.jobs()+"/j", nil)
		}
		return err != nil
	})
	s.classed(err, reason.Quota, "")
	if !strings.Contains(err.Error(), "exceeded quota: few") || !s.gone(s.jobs()+"/j") {
		s.t.Error(err)
	}
}

func aManifestThatIsWrongIsRefused(s scene) {
	r := s.deleted(s.jobs(), s.idle("j"), "j", "")
	wrong := strings.Replace(string(s.whole(r)), `"restartPolicy":"Never"`, `"restartPolicy":"`+secret+`"`, 1)
	s.classed(s.creates(r.Ref, []byte(wrong), "request-1"), reason.Invalid, "")
	for _, other := range []provider.Ref{s.ref("k", ""), s.ref("j-slice-0", "j")} {
		s.classed(s.creates(other, s.whole(r), "request-1"), reason.Invalid, "")
	}
	s.classed(s.creates(r.Ref, r.Spec, "request-1"), reason.Invalid, "") // the values are missing
	if l := list(s.read(s.jobs()), "items"); len(l) > 0 {
		s.t.Errorf("%v", l)
	}
}

func aSliceIsGoneOnceItsPodsHaveEnded(s scene) {
	if s.Silence == nil {
		return
	}
	node := s.node("a")
	s.do(http.MethodPost, s.jobs(), s.job("j", 1, nil))
	r := s.turns("j", "", evidence.Ready)
	pod := s.podsOf("j")[0]
	s.Silence(s.t, node) // it neither ends the Pod nor says that it has ended
	s.deletes(r)
	s.until("the Job is gone", func() bool { return s.gone(s.jobs() + "/j") })
	s.stays("its Pod keeps the slice", func() bool {
		n := s.reading("j", "")
		return n.Condition == evidence.Deleting && n.Remains && n.Life == "" && strings.Contains(n.State, "its Pod "+text(pod, "metadata", "name")+" of the former Job has not ended")
	})
	s.must(s.creates(r.Ref, s.whole(r), "request-1"))
	s.until("another Job has the name", func() bool {
		n := s.reading("j", "")
		return n.Condition == evidence.Creating && n.Incarnation.Known() && n.Incarnation.ID != r.Incarnation.ID
	})
	s.deletes(s.reading("j", ""))
	s.ends(pod, 1)
	s.turns("j", "", evidence.Gone)
}

func aJobSetIsGoneOnceThePodsOfAllItsSlicesHaveEnded(s scene) {
	if s.Silence == nil {
		return
	}
	for _, n := range []string{"a", "b", "c", "d"} {
		s.node(n)
	}
	s.do(http.MethodPost, s.jobSets(), s.jobSet("big", 2, nil, nil))
	r, other := s.turns("big-slice-0", "big", evidence.Ready), s.turns("big-slice-1", "big", evidence.Ready)
	pod := s.podsOf("big-slice-1")[0]
	s.Silence(s.t, text(pod, "spec", "nodeName"))
	s.deletes(r)
	s.turns("big-slice-0", "big", evidence.Gone)
	if n := s.reading(other.Name, "big"); n.Condition != evidence.Deleting || n.QueuedResource != "big" || len(n.With) > 0 {
		s.t.Errorf("%+v", n)
	}
	s.ends(pod, 1)
	s.turns(other.Name, "big", evidence.Gone)
}

func aPodThatWasLeftAloneIsLeft(s scene) {
	s.node("a")
	s.do(http.MethodPost, s.jobs(), s.job("j", 1, nil))
	s.runs("j", 1)
	s.do(http.MethodDelete, s.jobs()+"/j", object{"propagationPolicy": "Orphan"})
	s.until("the Job is gone", func() bool { return s.gone(s.jobs() + "/j") })
	s.stays("the Pod keeps the slice", func() bool { return s.reading("j", "").Condition == evidence.Deleting })
}

func thereIsNothingToCreateInANamespaceThatIsNotThere(s scene) {
	r := s.deleted(s.jobs(), s.idle("j"), "j", "")
	s.ns += "-not"
	r.Zone += "-not"
	spec := strings.ReplaceAll(string(s.whole(r)), `"namespace":"`+strings.TrimSuffix(s.ns, "-not")+`"`, `"namespace":"`+s.ns+`"`)
	s.classed(s.creates(r.Ref, []byte(spec), "request-1"), reason.NotFound, "")
}

func anotherLifeIsNotDeleted(s scene) {
	j := s.do(http.MethodPost, s.jobs(), s.idle("j"))
	r := s.ref("j", "")
	r.Life = otherUID
	_, err := s.provides().Delete(s.t.Context(), r, "request-1")
	s.classed(err, reason.NotFound, reason.CodeOtherLife)
	if n := s.read(s.jobs() + "/j"); uid(n) != uid(j) || text(n, "metadata", "deletionTimestamp") != "" {
		s.t.Errorf("%v", n["metadata"])
	}
}

func withoutALifeNothingIsDeleted(s scene) {
	s.do(http.MethodPost, s.jobs(), s.idle("j"))
	_, err := s.provides().Delete(s.t.Context(), s.ref("j", ""), "request-1")
	s.classed(err, reason.Invalid, "")
	if text(s.read(s.jobs()+"/j"), "metadata", "deletionTimestamp") != "" {
		s.t.Error("it is being deleted")
	}
}

func theLifeThatWasReadIsDeleted(s scene) {
	s.node("a")
	j := s.do(http.MethodPost, s.jobs(), s.job("j", 1, nil))
	r := s.turns("j", "", evidence.Ready)
	if r.Life != uid(j) || r.Incarnation.ID != uid(j) {
		s.t.Errorf("its life is %s, in %+v; want %s", r.Life, r.Incarnation, uid(j))
	}
	s.deletes(r)
	s.until("the Job is gone", func() bool { return s.gone(s.jobs() + "/j") })
	_, err := s.provides().Delete(s.t.Context(), r.Ref, "request-1")
	s.classed(err, reason.NotFound, "")
}

func aJobSetIsDeletedWhole(s scene) {
	for _, n := range []string{"a", "b", "c", "d"} {
		s.node(n)
	}
	set := s.do(http.MethodPost, s.jobSets(), s.jobSet("big", 2, nil, nil))
	r := s.turns("big-slice-1", "big", evidence.Ready)
	if r.Life != uid(set) || r.Incarnation.ID == uid(set) {
		s.t.Errorf("its life is %s, in %+v; want %s", r.Life, r.Incarnation, uid(set))
	}
	wrong := r.Ref
	wrong.Life = r.Incarnation.ID // a Job of it has no say
	_, err := s.provides().Delete(s.t.Context(), wrong, "request-1")
	s.classed(err, reason.NotFound, reason.CodeOtherLife)
	s.deletes(r)
	s.until("all of it is gone", func() bool {
		return s.gone(s.jobSets()+"/big") && len(list(s.read(s.jobs()), "items")) == 0 && len(list(s.read(s.pods()), "items")) == 0
	})
}
