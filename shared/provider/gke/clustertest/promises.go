package clustertest

import (
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// Run checks each promise in a namespace of its own, and returns how many it checked.
func Run(t *testing.T, c Cluster) int {
	t.Helper()
	var checked atomic.Int64
	all := c.cases()
	t.Run(c.Name, func(t *testing.T) {
		for i, name := range slices.Sorted(maps.Keys(all)) {
			t.Run(name, func(t *testing.T) {
				if c.Parallel {
					t.Parallel()
				}
				s := scene{Cluster: c, t: t, ns: fmt.Sprintf("%s-%d", c.Name, i)}
				s.do(http.MethodPost, "/api/v1/namespaces", object{"apiVersion": "v1", "kind": "Namespace", "metadata": object{"name": s.ns}})
				t.Cleanup(func() { s.try(http.MethodDelete, "/api/v1/namespaces/"+s.ns, nil) })
				checked.Add(1)
				all[name](s)
			})
		}
	})
	return int(checked.Load())
}

// cases are the promises, by name.
func (c Cluster) cases() map[string]func(scene) {
	all := map[string]func(scene){}
	for _, of := range []map[string]func(scene){objects(), changes(), lists(), deletions(), theJobs(), theJobSets(), verbs(), maintaining(), theQueue()} {
		maps.Copy(all, of)
	}
	if c.Slices {
		maps.Copy(all, theSlices())
	}
	return all
}

// service is a small object that nothing happens to.
func (s scene) service(name string, labels object) object {
	s.t.Helper()
	return s.do(http.MethodPost, s.services(), service(name, labels))
}

func service(name string, labels object) object {
	return object{
		"apiVersion": "v1", "kind": "Service", "metadata": object{"name": name, "labels": labels},
		"spec": object{"clusterIP": "None", "selector": object{"a": "b"}, "ports": []any{object{"port": 8471}}},
	}
}

// idle is a Job that makes no Pods.
func (s scene) idle(name string) object { return s.job(name, 1, object{"suspend": true}) }

func objects() map[string]func(scene) {
	return map[string]func(scene){
		"object: a new one gets an identity":                 objectANewOneGetsAnIdentity,
		"object: creating is answered with 201":              objectCreatingIsAnsweredWith201,
		"object: a name is taken once":                       objectANameIsTakenOnce,
		"object: one that is not there is not found":         objectOneThatIsNotThereIsNotFound,
		"object: there is none in an unknown namespace":      objectThereIsNoneInAnUnknownNamespace,
		"object: its namespace is that of the path":          objectItsNamespaceIsThatOfThePath,
		"object: its kind is that of the path":               objectItsKindIsThatOfThePath,
		"object: what is no JSON is refused":                 objectWhatIsNoJSONIsRefused,
		"object: it needs a name":                            objectItNeedsAName,
		"object: its name has a form":                        objectItsNameHasAForm,
		"object: a name can be generated":                    objectANameCanBeGenerated,
		"object: its identity is not the caller's to choose": objectItsIdentityIsNotTheCallersToChoose,
		"object: a new one has no status":                    objectANewOneHasNoStatus,
		"object: a new node keeps its status":                objectANewNodeKeepsItsStatus,
		"call: a path that nobody knows is not found":        objectAPathThatNobodyKnowsIsNotFound,
		"call: creating under a name is not allowed":         objectCreatingUnderANameIsNotAllowed,
		"call: a wrong token is refused":                     objectAWrongTokenIsRefused,
	}
}

func objectANewOneGetsAnIdentity(s scene) {
	j := s.do(http.MethodPost, s.jobs(), s.idle("a"))
	if uid(j) == "" || text(j, "metadata", "creationTimestamp") == "" || text(j, "metadata", "resourceVersion") == "" ||
		number(j, "metadata", "generation") != 1 || text(j, "metadata", "namespace") != s.ns || text(j, "kind") != "Job" || text(j, "apiVersion") != "batch/v1" {
		s.t.Errorf("%v", j["metadata"])
	}
	if r := s.read(s.jobs() + "/a"); uid(r) != uid(j) {
		s.t.Errorf("read is %v", r["metadata"])
	}
}

func objectCreatingIsAnsweredWith201(s scene) {
	if a := s.try(http.MethodPost, s.services(), service("a", nil)); a.code != http.StatusCreated {
		s.t.Errorf("answer %d", a.code)
	}
}

func objectANameIsTakenOnce(s scene) {
	s.service("a", nil)
	s.refused(s.try(http.MethodPost, s.services(), service("a", nil)), http.StatusConflict, "AlreadyExists")
}

func objectOneThatIsNotThereIsNotFound(s scene) {
	no := s.refused(s.try(http.MethodGet, s.jobs()+"/nobody", nil), http.StatusNotFound, "NotFound")
	if text(no, "message") != `jobs.batch "nobody" not found` || text(no, "details", "name") != "nobody" || text(no, "details", "kind") != "jobs" {
		s.t.Errorf("%v", no)
	}
}

func objectThereIsNoneInAnUnknownNamespace(s scene) {
	s.refused(s.try(http.MethodPost, "/apis/batch/v1/namespaces/nowhere-at-all/jobs", s.idle("a")), http.StatusNotFound, "NotFound")
}

func objectItsNamespaceIsThatOfThePath(s scene) {
	j := s.idle("a")
	j["metadata"] = object{"name": "a", "namespace": "other"}
	s.refused(s.try(http.MethodPost, s.jobs(), j), http.StatusBadRequest, "BadRequest")
}

func objectItsKindIsThatOfThePath(s scene) {
	s.refused(s.try(http.MethodPost, s.jobs(), service("a", nil)), http.StatusBadRequest, "BadRequest")
}

func objectWhatIsNoJSONIsRefused(s scene) {
	s.refused(s.try(http.MethodPost, s.jobs(), `{"kind": `), http.StatusBadRequest, "BadRequest")
}

func objectItNeedsAName(s scene) {
	s.refused(s.try(http.MethodPost, s.services(), service("", nil)), http.StatusUnprocessableEntity, "Invalid")
}

func objectItsNameHasAForm(s scene) {
	s.refused(s.try(http.MethodPost, s.services(), service("A_b", nil)), http.StatusUnprocessableEntity, "Invalid")
}

func objectANameCanBeGenerated(s scene) {
	j := s.idle("")
	j["metadata"] = object{"generateName": "night-"}
	a, b := s.do(http.MethodPost, s.jobs(), j), s.do(http.MethodPost, s.jobs(), j)
	if n := text(a, "metadata", "name"); !strings.HasPrefix(n, "night-") || len(n) != len("night-")+5 || n == text(b, "metadata", "name") {
		s.t.Errorf("%q and %q", n, text(b, "metadata", "name"))
	}
}

func objectItsIdentityIsNotTheCallersToChoose(s scene) {
	j := s.idle("a")
	j["metadata"] = object{"name": "a", "uid": "mine", "creationTimestamp": "2001-01-01T00:00:00Z", "generation": 7}
	if r := s.do(http.MethodPost, s.jobs(), j); uid(r) == "mine" || strings.HasPrefix(text(r, "metadata", "creationTimestamp"), "2001") || number(r, "metadata", "generation") != 1 {
		s.t.Errorf("%v", r["metadata"])
	}
}

func objectANewOneHasNoStatus(s scene) {
	j := s.idle("a")
	j["status"] = object{"succeeded": 3}
	if r := s.do(http.MethodPost, s.jobs(), j); number(r, "status", "succeeded") != 0 {
		s.t.Errorf("%v", r["status"])
	}
}

func objectANewNodeKeepsItsStatus(s scene) {
	if n := s.read(nodes + "/" + s.node("a")); status(n, "Ready") != "True" || text(n, "status", "allocatable", "google.com/tpu") != "4" {
		s.t.Errorf("%v", n["status"])
	}
}

func objectAPathThatNobodyKnowsIsNotFound(s scene) {
	s.refused(s.try(http.MethodGet, "/apis/batch/v1/namespaces/"+s.ns+"/trains", nil), http.StatusNotFound, "NotFound")
}

func objectCreatingUnderANameIsNotAllowed(s scene) {
	s.refused(s.try(http.MethodPost, s.jobs()+"/a", s.idle("a")), http.StatusMethodNotAllowed, "MethodNotAllowed")
}

func objectAWrongTokenIsRefused(s scene) {
	s.refused(s.send(http.MethodGet, s.jobs(), "", "wrong", nil), http.StatusUnauthorized, "Unauthorized")
}

func changes() map[string]func(scene) {
	return map[string]func(scene){
		"change: a stale version is refused": func(s scene) {
			old := s.service("a", nil)
			put := func(from object, value string) answer {
				n := maps.Clone(from)
				n["metadata"] = maps.Clone(from["metadata"].(object)) //nolint:forcetypeassert // every object has metadata
				n["metadata"].(object)["labels"] = object{"v": value} //nolint:forcetypeassert // likewise
				return s.try(http.MethodPut, s.services()+"/a", n)
			}
			if a := put(old, "1"); a.code != http.StatusOK || text(a.body, "metadata", "resourceVersion") == text(old, "metadata", "resourceVersion") {
				s.t.Fatalf("answer %d: %v", a.code, a.body)
			}
			s.refused(put(old, "2"), http.StatusConflict, "Conflict")
			if v := label(s.read(s.services()+"/a"), "v"); v != "1" {
				s.t.Errorf("it is %q now", v)
			}
		},
		"change: a merge patch sets and removes": func(s scene) {
			s.service("a", object{"keep": "1", "drop": "1"})
			r := s.do(http.MethodPatch, s.services()+"/a", object{"metadata": object{"labels": object{"drop": nil, "new": "2"}}})
			if labels, _ := field(r, "metadata", "labels").(object); len(labels) != 2 || labels["keep"] != "1" || labels["new"] != "2" {
				s.t.Errorf("%v", labels)
			}
		},
		"change: a patch of a stale version is refused": func(s scene) {
			old := s.service("a", nil)
			s.do(http.MethodPatch, s.services()+"/a", object{"metadata": object{"labels": object{"v": "1"}}})
			s.refused(s.try(http.MethodPatch, s.services()+"/a", object{"metadata": object{
				"resourceVersion": text(old, "metadata", "resourceVersion"), "labels": object{"v": "2"},
			}}), http.StatusConflict, "Conflict")
		},
		"change: a patch of another life is refused": func(s scene) {
			s.service("a", nil)
			s.do(http.MethodPost, s.jobSets(), s.jobSet("a", 1, nil, nil))
			for _, path := range []string{s.services(), s.jobSets()} {
				s.refused(s.try(http.MethodPatch, path+"/a", object{"metadata": object{"uid": otherUID, "labels": object{"v": "2"}}}), http.StatusUnprocessableEntity, "Invalid")
			}
		},
		"change: an update of another life is refused": func(s scene) {
			n := s.service("a", nil)
			put := func(uid string) answer {
				n["metadata"] = object{"name": "a", "uid": uid, "labels": object{"v": "2"}}
				return s.try(http.MethodPut, s.services()+"/a", n)
			}
			own := uid(n)
			s.refused(put(otherUID), http.StatusConflict, "Conflict")
			if a := put(own); a.code != http.StatusOK || label(a.body, "v") != "2" {
				s.t.Errorf("answer %d: %v", a.code, a.body)
			}
		},
		"change: only one of the spec makes a generation": func(s scene) {
			s.do(http.MethodPost, s.jobs(), s.idle("a"))
			if r := s.do(http.MethodPatch, s.jobs()+"/a", object{"metadata": object{"labels": object{"v": "1"}}}); number(r, "metadata", "generation") != 1 {
				s.t.Errorf("a label made generation %d", number(r, "metadata", "generation"))
			}
			if r := s.do(http.MethodPatch, s.jobs()+"/a", object{"spec": object{"backoffLimit": 5}}); number(r, "metadata", "generation") != 2 {
				s.t.Errorf("the spec made generation %d", number(r, "metadata", "generation"))
			}
		},
		"change: one that changes nothing makes no version": func(s scene) {
			old := s.service("a", object{"v": "1"})
			r := s.do(http.MethodPatch, s.services()+"/a", object{"metadata": object{"labels": object{"v": "1"}}})
			if text(r, "metadata", "resourceVersion") != text(old, "metadata", "resourceVersion") {
				s.t.Errorf("%s became %s", text(old, "metadata", "resourceVersion"), text(r, "metadata", "resourceVersion"))
			}
		},
		"change: the status is changed by itself": func(s scene) {
			name := s.node("a")
			r := s.do(http.MethodPatch, nodes+"/"+name+"/status", object{"metadata": object{"labels": object{"clustertest-b": "1"}}, "status": object{"phase": "Running"}})
			if text(r, "status", "phase") != "Running" {
				s.t.Errorf("status %v", r["status"])
			}
			s.do(http.MethodPatch, nodes+"/"+name, object{"metadata": object{"labels": object{"clustertest-c": "1"}}, "status": object{"phase": "Pending"}})
			if r := s.read(nodes + "/" + name); text(r, "status", "phase") != "Running" || label(r, "clustertest-c") != "1" {
				s.t.Errorf("phase %s, labels %v", text(r, "status", "phase"), field(r, "metadata", "labels"))
			}
		},
		"change: a custom resource takes no strategic patch": func(s scene) {
			s.do(http.MethodPost, s.jobSets(), s.jobSet("a", 1, nil, nil))
			s.refused(s.send(http.MethodPatch, s.jobSets()+"/a", "application/strategic-merge-patch+json", s.Token, object{"metadata": object{}}),
				http.StatusUnsupportedMediaType, "UnsupportedMediaType")
		},
		"change: an update of a custom resource names its version": func(s scene) {
			s.do(http.MethodPost, s.jobSets(), s.jobSet("a", 1, nil, nil))
			s.refused(s.try(http.MethodPut, s.jobSets()+"/a", s.jobSet("a", 1, nil, nil)), http.StatusUnprocessableEntity, "Invalid")
		},
		"change: what is not there cannot be patched": func(s scene) {
			s.refused(s.try(http.MethodPatch, s.services()+"/nobody", object{"metadata": object{}}), http.StatusNotFound, "NotFound")
		},
	}
}

func lists() map[string]func(scene) {
	return map[string]func(scene){
		"list: selectors choose by labels":                           listSelectorsChooseByLabels,
		"list: a selector that cannot be read is refused":            listASelectorThatCannotBeReadIsRefused,
		"list: one of all namespaces has them all":                   listOneOfAllNamespacesHasThemAll,
		"list: pages hold what was there at the first":               listPagesHoldWhatWasThereAtTheFirst,
		"list: one of all namespaces leaves some out":                listOneOfAllNamespacesLeavesSomeOut,
		"list: what belongs to no namespace cannot be chosen by one": listWhatBelongsToNoNamespaceCannotBeChosenByOne,
		"list: only items of custom resources name their kind":       listOnlyItemsOfCustomResourcesNameTheirKind,
		"list: Pods are found by their node":                         listPodsAreFoundByTheirNode,
	}
}

func listSelectorsChooseByLabels(s scene) {
	s.service("a", object{"app": "x", "tier": "1"})
	s.service("b", object{"app": "y"})
	s.service("c", nil)
	for sel, want := range map[string]string{
		"": "a b c", "app=x": "a", "app==y": "b", "app!=x": "b c", "app": "a b", "!app": "c", "app in (x,y)": "a b", "app notin (x)": "b c",
		"app in (x, y),tier": "a", "app=x,tier=2": "",
	} {
		if got := names(s.read(s.services() + "?labelSelector=" + url.QueryEscape(sel))); got != want {
			s.t.Errorf("%q: %q, want %q", sel, got, want)
		}
	}
}

func listASelectorThatCannotBeReadIsRefused(s scene) {
	s.refused(s.try(http.MethodGet, s.services()+"?labelSelector="+url.QueryEscape("app in x"), nil), http.StatusBadRequest, "BadRequest")
}

func listOneOfAllNamespacesHasThemAll(s scene) {
	s.service("a", object{"clustertest": s.ns})
	if got := names(s.read("/api/v1/services?labelSelector=clustertest=" + s.ns)); got != "a" {
		s.t.Errorf("%q", got)
	}
	if l := s.read("/apis/batch/v1/jobs?labelSelector=clustertest=nobody"); l["items"] == nil || len(list(l, "items")) > 0 || text(l, "kind") != "JobList" {
		s.t.Errorf("%v", l)
	}
}

func listPagesHoldWhatWasThereAtTheFirst(s scene) {
	for _, n := range []string{"a", "b", "c", "d", "e"} {
		s.service(n, nil)
	}
	var got []string
	token := ""
	for range 5 {
		l := s.read(s.services() + "?limit=2&continue=" + url.QueryEscape(token))
		got = append(got, names(l))
		if token = text(l, "metadata", "continue"); token == "" {
			break
		}
		if len(got) == 1 {
			if n := number(l, "metadata", "remainingItemCount"); n != 3 {
				s.t.Errorf("%d remain", n)
			}
			s.do(http.MethodDelete, s.services()+"/d", nil)
			s.service("bb", nil)
		}
	}
	if want := []string{"a b", "c d", "e"}; !slices.Equal(got, want) {
		s.t.Errorf("%q, want %q", got, want)
	}
}

func listOneOfAllNamespacesLeavesSomeOut(s scene) {
	s.do(http.MethodPost, s.jobs(), s.job("a", 1, nil))
	s.do(http.MethodPost, s.jobSets(), s.jobSet("b", 1, nil, nil))
	s.do(http.MethodPost, "/api/v1/namespaces/"+s.ns+"/podtemplates", object{"apiVersion": "v1", "kind": "PodTemplate", "metadata": object{"name": "a"}, "template": s.template()})
	s.until("the Job has a Pod", func() bool { return len(s.podsOf("a")) == 1 })
	for _, path := range []string{"/apis/batch/v1/jobs", "/apis/jobset.x-k8s.io/v1alpha2/jobsets", "/api/v1/pods", "/api/v1/podtemplates"} {
		has := func(without ...string) bool {
			return slices.ContainsFunc(list(s.read(path+"?fieldSelector="+url.QueryEscape("metadata.namespace!="+strings.Join(without, ",metadata.namespace!="))), "items"), func(o any) bool {
				return text(o, "metadata", "namespace") == s.ns
			})
		}
		if has(s.ns) || has("nobody", s.ns) || !has("nobody", "nothing") {
			s.t.Errorf("%s: alone %t, as one of two %t, two others %t", path, has(s.ns), has("nobody", s.ns), has("nobody", "nothing"))
		}
	}
}

func listWhatBelongsToNoNamespaceCannotBeChosenByOne(s scene) {
	s.refused(s.try(http.MethodGet, "/api/v1/nodes?fieldSelector="+url.QueryEscape("metadata.namespace!="+s.ns), nil), http.StatusBadRequest, "BadRequest")
}

func listOnlyItemsOfCustomResourcesNameTheirKind(s scene) {
	s.service("a", nil)
	s.do(http.MethodPost, s.jobSets(), s.jobSet("a", 1, nil, nil))
	if l := list(s.read(s.services()), "items"); len(l) != 1 || text(l[0], "kind") != "" {
		s.t.Errorf("services: %v", l)
	}
	if l := list(s.read(s.jobSets()), "items"); len(l) != 1 || text(l[0], "kind") != "JobSet" || text(l[0], "apiVersion") != "jobset.x-k8s.io/v1alpha2" {
		s.t.Errorf("JobSets: %v", l)
	}
}

func listPodsAreFoundByTheirNode(s scene) {
	name := s.node("a")
	s.do(http.MethodPost, s.jobs(), s.job("j", 1, nil))
	s.runs("j", 1)
	if l := s.read(s.pods() + "?fieldSelector=spec.nodeName=" + name); len(list(l, "items")) != 1 {
		s.t.Errorf("%q", names(l))
	}
	if l := s.read(s.pods() + "?fieldSelector=spec.nodeName=another"); len(list(l, "items")) != 0 {
		s.t.Errorf("%q", names(l))
	}
}

// otherUID is that of no object.
const otherUID = "00000000-0000-4000-8000-000000000000"

// conditional is a deletion under a condition.
func conditional(what, value string) object {
	return object{"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": object{what: value}, "propagationPolicy": "Background"}
}

func deletions() map[string]func(scene) {
	return map[string]func(scene){
		"delete: another life is left alone": func(s scene) {
			j := s.do(http.MethodPost, s.jobs(), s.idle("a"))
			s.refused(s.try(http.MethodDelete, s.jobs()+"/a", conditional("uid", otherUID)), http.StatusConflict, "Conflict")
			if r := s.read(s.jobs() + "/a"); uid(r) != uid(j) || text(r, "metadata", "deletionTimestamp") != "" {
				s.t.Errorf("%v", r["metadata"])
			}
		},
		"delete: another version is left alone": func(s scene) {
			old := s.service("a", nil)
			s.do(http.MethodPatch, s.services()+"/a", object{"metadata": object{"labels": object{"v": "1"}}})
			s.refused(s.try(http.MethodDelete, s.services()+"/a", conditional("resourceVersion", text(old, "metadata", "resourceVersion"))), http.StatusConflict, "Conflict")
		},
		"delete: the name is free for another life": func(s scene) {
			j := s.do(http.MethodPost, s.jobs(), s.idle("a"))
			s.do(http.MethodDelete, s.jobs()+"/a", conditional("uid", uid(j)))
			s.until("the name is free", func() bool { return s.gone(s.jobs() + "/a") })
			if n := s.do(http.MethodPost, s.jobs(), s.idle("a")); uid(n) == uid(j) {
				s.t.Errorf("it has the same UID %s", uid(n))
			}
		},
		"delete: a finalizer holds": func(s scene) {
			n := service("a", nil)
			n["metadata"] = object{"name": "a", "finalizers": []any{"clustertest.example/hold"}}
			s.do(http.MethodPost, s.services(), n)
			s.do(http.MethodDelete, s.services()+"/a", nil)
			if text(s.read(s.services()+"/a"), "metadata", "deletionTimestamp") == "" {
				s.t.Error("it is not being deleted")
			}
			s.do(http.MethodPatch, s.services()+"/a", object{"metadata": object{"finalizers": nil}})
			s.until("it is gone", func() bool { return s.gone(s.services() + "/a") })
		},
		"delete: in the background the Pods follow": func(s scene) {
			s.node("a")
			j := s.do(http.MethodPost, s.jobs(), s.job("j", 1, nil))
			s.runs("j", 1)
			s.do(http.MethodDelete, s.jobs()+"/j", conditional("uid", uid(j)))
			s.until("the Job is gone", func() bool { return s.gone(s.jobs() + "/j") })
			s.until("its Pods are gone", func() bool { return len(list(s.read(s.pods()), "items")) == 0 })
		},
		"delete: in the foreground the Job waits for its Pods": func(s scene) {
			s.node("a")
			s.do(http.MethodPost, s.jobs(), s.job("j", 1, nil))
			s.runs("j", 1)
			s.do(http.MethodDelete, s.jobs()+"/j", object{"propagationPolicy": "Foreground"})
			s.until("both are gone", func() bool {
				left := len(list(s.read(s.pods()), "items"))
				if a := s.try(http.MethodGet, s.jobs()+"/j", nil); a.code == http.StatusOK {
					if !slices.Contains(list(a.body, "metadata", "finalizers"), any("foregroundDeletion")) {
						s.t.Errorf("its finalizers are %v", list(a.body, "metadata", "finalizers"))
					}
					return false
				}
				if left > 0 {
					s.t.Errorf("the Job went before %d Pods", left)
				}
				return true
			})
		},
		"delete: orphans stay": func(s scene) {
			s.node("a")
			s.do(http.MethodPost, s.jobs(), s.job("j", 1, nil))
			s.runs("j", 1)
			s.do(http.MethodDelete, s.jobs()+"/j", object{"propagationPolicy": "Orphan"})
			s.until("the Job is gone", func() bool { return s.gone(s.jobs() + "/j") })
			s.stays("the Pod is there", func() bool { return len(list(s.read(s.pods()), "items")) == 1 })
		},
	}
}
