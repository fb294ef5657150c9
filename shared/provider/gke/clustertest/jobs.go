package clustertest

import (
	"net/http"
	"slices"
	"strings"
)

// The policies of the cases.

func ignoresLost() object {
	return object{"podFailurePolicy": object{"rules": []any{object{"action": "Ignore", "onPodConditions": []any{object{"type": "DisruptionTarget", "status": "True"}}}}}}
}

func failsLost() object {
	return object{"podFailurePolicy": object{"rules": []any{
		object{"action": "FailJob", "onExitCodes": object{"containerName": "training", "operator": "In", "values": []any{2, 126, 127}}},
		object{"action": "FailJob", "onPodConditions": []any{object{"type": "DisruptionTarget", "status": "True"}}},
	}}}
}

func theJobs() map[string]func(scene) {
	return map[string]func(scene){
		"Job: it is brought back without what the server gave it":                            jobItIsBroughtBackWithoutWhatTheServerGaveIt,
		"Job: it says what its Pods do at their end":                                         jobItSaysWhatItsPodsDoAtTheirEnd,
		"Job: its template does not change":                                                  jobItsTemplateDoesNotChange,
		"Job: each index has a Pod on a machine of its own":                                  jobEachIndexHasAPodOnAMachineOfItsOwn,
		"Job: without a machine its Pods wait":                                               jobWithoutAMachineItsPodsWait,
		"Job: it is complete when every index is done":                                       jobItIsCompleteWhenEveryIndexIsDone,
		"Job: with no retry one failure is its end":                                          jobWithNoRetryOneFailureIsItsEnd,
		"Job: with retries another Pod comes":                                                jobWithRetriesAnotherPodComes,
		"Job: the loss of a machine is its end, and nobody brings it back":                   jobTheLossOfAMachineIsItsEndAndNobodyBringsItBack,
		"Job: where losses are ignored, only the lost Pod comes anew, and the others run on": jobWhereLossesAreIgnoredOnlyTheLostPodComesAnewAndTheOthersRunOn,
		"Job: an exit code may be its end at once":                                           jobAnExitCodeMayBeItsEndAtOnce,
		"Job: the loss of a machine may be its end at once":                                  jobTheLossOfAMachineMayBeItsEndAtOnce,
		"Job: suspended it has no Pods, and resumed it has":                                  jobSuspendedItHasNoPodsAndResumedItHas,
		"Job: it goes so long after its end as it says":                                      jobItGoesSoLongAfterItsEndAsItSays,
		"Job: when its time after its end is over, it waits for its Pods":                    jobWhenItsTimeAfterItsEndIsOverItWaitsForItsPods,
		"Job: a Pod on a silent machine is not replaced, and leaves when its end is written": jobAPodOnASilentMachineIsNotReplacedAndLeavesWhenItsEndIsWritten,
	}
}

func jobItIsBroughtBackWithoutWhatTheServerGaveIt(s scene) {
	j := s.do(http.MethodPost, s.jobs(), s.idle("j"))
	if text(j, "spec", "selector", "matchLabels", "batch.kubernetes.io/controller-uid") != uid(j) ||
		text(j, "spec", "template", "metadata", "labels", "batch.kubernetes.io/job-name") != "j" {
		s.t.Errorf("selector %v, template %v", field(j, "spec", "selector"), field(j, "spec", "template", "metadata"))
	}
	s.do(http.MethodDelete, s.jobs()+"/j", conditional("uid", uid(j)))
	s.until("the name is free", func() bool { return s.gone(s.jobs() + "/j") })
	spec, _ := j["spec"].(object)
	again := object{"apiVersion": "batch/v1", "kind": "Job", "metadata": object{"name": "j"}, "spec": spec}
	s.refused(s.try(http.MethodPost, s.jobs(), again), http.StatusUnprocessableEntity, "Invalid")
	delete(spec, "selector")
	if template, ok := spec["template"].(object); ok {
		delete(template, "metadata")
	}
	if n := s.do(http.MethodPost, s.jobs(), again); uid(n) == uid(j) {
		s.t.Error("it is the former one")
	}
}

func jobItSaysWhatItsPodsDoAtTheirEnd(s scene) {
	j := s.idle("j")
	template := s.template()
	delete(template["spec"].(object), "restartPolicy") //nolint:forcetypeassert // the template has a spec
	j["spec"].(object)["template"] = template          //nolint:forcetypeassert // so has the Job
	s.refused(s.try(http.MethodPost, s.jobs(), j), http.StatusUnprocessableEntity, "Invalid")
}

func jobItsTemplateDoesNotChange(s scene) {
	s.do(http.MethodPost, s.jobs(), s.job("j", 1, nil))
	s.until("it has begun", func() bool { return text(s.read(s.jobs()+"/j"), "status", "startTime") != "" })
	s.refused(s.try(http.MethodPatch, s.jobs()+"/j", object{"spec": object{"template": object{"spec": object{"priorityClassName": "other"}}}}),
		http.StatusUnprocessableEntity, "Invalid")
}

func jobEachIndexHasAPodOnAMachineOfItsOwn(s scene) {
	s.node("a")
	s.node("b")
	j := s.do(http.MethodPost, s.jobs(), s.job("j", 2, nil))
	pods := s.runs("j", 2)
	a, b := pods["0"], pods["1"]
	if a == nil || b == nil || text(a, "spec", "nodeName") == text(b, "spec", "nodeName") || text(a, "spec", "hostname") != "j-0" ||
		label(a, "batch.kubernetes.io/controller-uid") != uid(j) || !strings.HasPrefix(text(a, "metadata", "name"), "j-0-") {
		s.t.Errorf("%v and %v", a["metadata"], b["metadata"])
	}
	if owner := list(a, "metadata", "ownerReferences"); len(owner) != 1 || text(owner[0], "uid") != uid(j) || text(owner[0], "kind") != "Job" {
		s.t.Errorf("it belongs to %v", owner)
	}
	s.until("the Job says so", func() bool {
		r := s.read(s.jobs() + "/j")
		return number(r, "status", "active") == 2 && number(r, "status", "ready") == 2
	})
}

func jobWithoutAMachineItsPodsWait(s scene) {
	s.do(http.MethodPost, s.jobs(), s.job("j", 1, nil))
	waits := func() bool {
		pods := s.podsOf("j")
		return len(pods) == 1 && text(pods[0], "status", "phase") == "Pending" && text(conditionOf(pods[0], "PodScheduled"), "reason") == "Unschedulable"
	}
	s.until("the Pod waits", waits)
	s.stays("the Pod waits", waits)
	s.node("a")
	s.runs("j", 1)
}

func jobItIsCompleteWhenEveryIndexIsDone(s scene) {
	s.node("a")
	s.node("b")
	s.do(http.MethodPost, s.jobs(), s.job("j", 2, nil))
	for _, p := range s.runs("j", 2) {
		s.ends(p, 0)
	}
	s.becomes(s.jobs()+"/j", "Complete")
	if r := s.read(s.jobs() + "/j"); number(r, "status", "succeeded") != 2 || text(r, "status", "completionTime") == "" {
		s.t.Errorf("%v", r["status"])
	}
}

func jobWithNoRetryOneFailureIsItsEnd(s scene) {
	s.node("a")
	s.node("b")
	s.do(http.MethodPost, s.jobs(), s.job("j", 2, nil))
	s.ends(s.runs("j", 2)["1"], 1)
	if c := s.becomes(s.jobs()+"/j", "Failed"); text(c, "reason") != "BackoffLimitExceeded" {
		s.t.Errorf("%v", c)
	}
	s.stays("no Pod comes", func() bool {
		return !slices.ContainsFunc(s.podsOf("j"), func(p object) bool { return text(p, "status", "phase") != "Failed" })
	})
}

func jobWithRetriesAnotherPodComes(s scene) {
	s.node("a")
	s.do(http.MethodPost, s.jobs(), s.job("j", 1, object{"backoffLimit": 2}))
	first := s.runs("j", 1)["0"]
	s.ends(first, 1)
	s.until("another Pod is ready", func() bool {
		return slices.ContainsFunc(s.podsOf("j"), func(p object) bool { return uid(p) != uid(first) && status(p, "Ready") == "True" })
	})
	if r := s.read(s.jobs() + "/j"); number(r, "status", "failed") != 1 {
		s.t.Errorf("%v", r["status"])
	}
}

func jobTheLossOfAMachineIsItsEndAndNobodyBringsItBack(s scene) {
	s.node("a")
	lost := s.node("b")
	s.do(http.MethodPost, s.jobs(), s.job("j", 2, nil))
	s.runs("j", 2)
	s.do(http.MethodDelete, nodes+"/"+lost, nil)
	if c := s.becomes(s.jobs()+"/j", "Failed"); text(c, "reason") != "BackoffLimitExceeded" {
		s.t.Errorf("%v", c)
	}
	s.node("c")
	s.stays("it is failed", func() bool { return status(s.read(s.jobs()+"/j"), "Failed") == "True" })
}

func jobWhereLossesAreIgnoredOnlyTheLostPodComesAnewAndTheOthersRunOn(s scene) {
	nodeOf := map[string]string{}
	s.node("a")
	s.node("b")
	s.do(http.MethodPost, s.jobs(), s.job("j", 2, ignoresLost()))
	pods := s.runs("j", 2)
	for i, p := range pods {
		nodeOf[i] = text(p, "spec", "nodeName")
	}
	s.do(http.MethodDelete, nodes+"/"+nodeOf["1"], nil)
	s.until("the lost Pod is made anew", func() bool {
		return slices.ContainsFunc(s.podsOf("j"), func(p object) bool {
			return label(p, "batch.kubernetes.io/job-completion-index") == "1" && uid(p) != uid(pods["1"]) && text(p, "status", "phase") == "Pending"
		})
	})
	s.node("c")
	after := s.runs("j", 2)
	if uid(after["0"]) != uid(pods["0"]) || uid(after["1"]) == uid(pods["1"]) {
		s.t.Errorf("index 0: %s and %s, index 1: %s and %s", uid(pods["0"]), uid(after["0"]), uid(pods["1"]), uid(after["1"]))
	}
	if r := s.read(s.jobs() + "/j"); number(r, "status", "failed") != 0 {
		s.t.Errorf("%v", r["status"])
	}
}

func jobAnExitCodeMayBeItsEndAtOnce(s scene) {
	s.node("a")
	j := failsLost()
	j["backoffLimit"] = 5
	s.do(http.MethodPost, s.jobs(), s.job("j", 1, j))
	s.ends(s.runs("j", 1)["0"], 127)
	if c := s.becomes(s.jobs()+"/j", "Failed"); text(c, "reason") != "PodFailurePolicy" || !strings.Contains(text(c, "message"), "failed with exit code 127 matching FailJob rule at index 0") {
		s.t.Errorf("%v", c)
	}
}

func jobTheLossOfAMachineMayBeItsEndAtOnce(s scene) {
	lost := s.node("a")
	j := failsLost()
	j["backoffLimit"] = 5
	s.do(http.MethodPost, s.jobs(), s.job("j", 1, j))
	s.runs("j", 1)
	s.do(http.MethodDelete, nodes+"/"+lost, nil)
	if c := s.becomes(s.jobs()+"/j", "Failed"); text(c, "reason") != "PodFailurePolicy" || !strings.Contains(text(c, "message"), "has condition DisruptionTarget matching FailJob rule at index 1") {
		s.t.Errorf("%v", c)
	}
}

func jobSuspendedItHasNoPodsAndResumedItHas(s scene) {
	s.node("a")
	s.do(http.MethodPost, s.jobs(), s.job("j", 1, nil))
	s.runs("j", 1)
	s.do(http.MethodPatch, s.jobs()+"/j", object{"spec": object{"suspend": true}})
	s.becomes(s.jobs()+"/j", "Suspended")
	s.until("its Pods are gone", func() bool { return len(list(s.read(s.pods()), "items")) == 0 })
	s.do(http.MethodPatch, s.jobs()+"/j", object{"spec": object{"suspend": false}})
	s.runs("j", 1)
	s.until("it is resumed", func() bool { return status(s.read(s.jobs()+"/j"), "Suspended") == "False" })
}

func jobItGoesSoLongAfterItsEndAsItSays(s scene) {
	s.node("a")
	s.do(http.MethodPost, s.jobs(), s.job("j", 1, object{"ttlSecondsAfterFinished": 5}))
	s.ends(s.runs("j", 1)["0"], 0)
	s.until("it is gone", func() bool { return s.gone(s.jobs() + "/j") })
}

func jobWhenItsTimeAfterItsEndIsOverItWaitsForItsPods(s scene) {
	s.node("a")
	s.do(http.MethodPost, s.jobs(), s.job("j", 1, object{"ttlSecondsAfterFinished": 1}))
	pod := s.runs("j", 1)["0"]
	path := s.pods() + "/" + text(pod, "metadata", "name")
	s.do(http.MethodPatch, path, object{"metadata": object{"finalizers": append(list(pod, "metadata", "finalizers"), "clustertest.example/hold")}})
	s.ends(pod, 0)
	s.until("it is being deleted", func() bool { return text(s.read(s.jobs()+"/j"), "metadata", "deletionTimestamp") != "" })
	s.stays("it waits", func() bool {
		return slices.Contains(list(s.read(s.jobs()+"/j"), "metadata", "finalizers"), any("foregroundDeletion"))
	})
	s.do(http.MethodPatch, path, object{"metadata": object{"finalizers": nil}})
	s.until("both are gone", func() bool { return s.gone(s.jobs()+"/j") && s.gone(path) })
}

func jobAPodOnASilentMachineIsNotReplacedAndLeavesWhenItsEndIsWritten(s scene) {
	if s.Silence == nil {
		s.t.Skip("no node of this cluster can be silenced")
	}
	name := s.node("a")
	s.do(http.MethodPost, s.jobs(), s.job("j", 1, ignoresLost()))
	pod := s.runs("j", 1)["0"]
	path := s.pods() + "/" + text(pod, "metadata", "name")
	s.Silence(s.t, name)
	s.until("the Pod is terminating", func() bool { return text(s.read(path), "metadata", "deletionTimestamp") != "" })
	n := s.read(nodes + "/" + name)
	if status(n, "Ready") != "Unknown" || !slices.ContainsFunc(list(n, "spec", "taints"), func(x any) bool { return text(x, "key") == "node.kubernetes.io/unreachable" }) {
		s.t.Errorf("the node is %v with %v", conditionOf(n, "Ready"), list(n, "spec", "taints"))
	}
	s.node("b")
	none := func() bool {
		r := s.read(s.jobs() + "/j")
		return len(list(s.read(s.pods()), "items")) == 1 && number(r, "status", "active") == 0 && number(r, "status", "terminating") == 1
	}
	s.until("the Job says so", none)
	s.stays("there is no other Pod", none)
	s.do(http.MethodDelete, path, object{"gracePeriodSeconds": 0, "preconditions": object{"uid": uid(pod)}})
	s.stays("even a forced deletion leaves it", func() bool { return !s.gone(path) })
	s.do(http.MethodPatch, path+"/status", object{"status": object{"phase": "Failed"}})
	s.until("it is gone", func() bool { return s.gone(path) })
	s.runs("j", 1)
}

func restarts(n int, rules ...any) object { return object{"maxRestarts": n, "rules": rules} }

func rule(name, action string, more object) object {
	r := object{"name": name, "action": action}
	for k, v := range more {
		r[k] = v
	}
	return r
}

// machines makes so many.
func (s scene) machines(n int) {
	for i := range n {
		s.node(string(rune('a' + i)))
	}
}

// madeAnew waits until the Jobs of the JobSet are others, and run.
func (s scene) madeAnew(former string) {
	s.t.Helper()
	s.until("the Job is made anew", func() bool {
		a := s.try(http.MethodGet, s.jobs()+"/set-slice-0", nil)
		return a.code == http.StatusOK && uid(a.body) != former && text(a.body, "metadata", "deletionTimestamp") == ""
	})
	s.runs("set-slice-0", 2)
}

// begins makes the JobSet, and waits until its first slice runs.
func (s scene) begins(slices int, policy, job object) map[string]object {
	s.t.Helper()
	s.do(http.MethodPost, s.jobSets(), s.jobSet("set", slices, policy, job))
	return s.runs("set-slice-0", 2)
}

func theJobSets() map[string]func(scene) {
	return map[string]func(scene){
		"JobSet: each slice has a Job":                                             jobSetEachSliceHasAJob,
		"JobSet: a slice that fails restarts them all":                             jobSetASliceThatFailsRestartsThemAll,
		"JobSet: a lost machine need not count":                                    jobSetALostMachineNeedNotCount,
		"JobSet: a message tells a wrong call from a lost machine":                 jobSetAMessageTellsAWrongCallFromALostMachine,
		"JobSet: its restarts end":                                                 jobSetItsRestartsEnd,
		"JobSet: when it has failed, the Job that failed stays, and the others go": jobSetWhenItHasFailedTheJobThatFailedStaysAndTheOthersGo,
		"JobSet: without a policy one failure is its end":                          jobSetWithoutAPolicyOneFailureIsItsEnd,
		"JobSet: it is complete when every slice is":                               jobSetItIsCompleteWhenEverySliceIs,
		"JobSet: suspended its Jobs are, and resumed they run":                     jobSetSuspendedItsJobsAreAndResumedTheyRun,
		"JobSet: its Jobs and Pods go with it":                                     jobSetItsJobsAndPodsGoWithIt,
		"JobSet: its slices do not change":                                         jobSetItsSlicesDoNotChange,
	}
}

func jobSetEachSliceHasAJob(s scene) {
	s.machines(4)
	set := s.do(http.MethodPost, s.jobSets(), s.jobSet("set", 2, nil, nil))
	for _, name := range []string{"set-slice-0", "set-slice-1"} {
		s.runs(name, 2)
		j := s.read(s.jobs() + "/" + name)
		owner := list(j, "metadata", "ownerReferences")
		if len(owner) != 1 || text(owner[0], "uid") != uid(set) || label(j, "jobset.sigs.k8s.io/jobset-name") != "set" ||
			label(j, "jobset.sigs.k8s.io/replicatedjob-name") != "slice" || label(j, "jobset.sigs.k8s.io/job-index") != name[len(name)-1:] ||
			text(j, "spec", "template", "metadata", "labels", "jobset.sigs.k8s.io/jobset-name") != "set" {
			s.t.Errorf("%s: %v", name, j["metadata"])
		}
	}
	s.until("the JobSet says so", func() bool {
		sums := list(s.read(s.jobSets()+"/set"), "status", "replicatedJobsStatus")
		return len(sums) == 1 && number(sums[0], "ready") == 2
	})
}

func jobSetASliceThatFailsRestartsThemAll(s scene) {
	s.machines(4)
	pods := s.begins(2, restarts(3), nil)
	s.runs("set-slice-1", 2)
	other := uid(s.read(s.jobs() + "/set-slice-1"))
	former := uid(s.read(s.jobs() + "/set-slice-0"))
	s.ends(pods["0"], 1)
	s.madeAnew(former)
	if uid(s.read(s.jobs()+"/set-slice-1")) == other {
		s.t.Error("the other slice runs on")
	}
	r := s.read(s.jobSets() + "/set")
	if number(r, "status", "restarts") != 1 || number(r, "status", "restartsCountTowardsMax") != 1 || text(r, "status", "terminalState") != "" {
		s.t.Errorf("%v", r["status"])
	}
}

func jobSetALostMachineNeedNotCount(s scene) {
	s.machines(2)
	pods := s.begins(1, restarts(1, rule("lost", "RestartJobSetAndIgnoreMaxRestarts", object{"onJobFailureReasons": []any{"PodFailurePolicy"}})), failsLost())
	former := uid(s.read(s.jobs() + "/set-slice-0"))
	s.do(http.MethodDelete, nodes+"/"+text(pods["1"], "spec", "nodeName"), nil)
	s.node("z")
	s.madeAnew(former)
	if r := s.read(s.jobSets() + "/set"); number(r, "status", "restarts") != 1 || number(r, "status", "restartsCountTowardsMax") != 0 {
		s.t.Errorf("%v", r["status"])
	}
}

func jobSetAMessageTellsAWrongCallFromALostMachine(s scene) {
	s.machines(2)
	reason := object{"onJobFailureReasons": []any{"PodFailurePolicy"}}
	wrong := object{"onJobFailureReasons": []any{"PodFailurePolicy"}, "onJobFailureMessagePatterns": []any{"failed with exit code (2|126|127) "}}
	pods := s.begins(1, restarts(5, rule("wrongCall", "FailJobSet", wrong), rule("lost", "RestartJobSetAndIgnoreMaxRestarts", reason)), failsLost())
	s.ends(pods["0"], 2)
	if c := s.becomes(s.jobSets()+"/set", "Failed"); text(c, "reason") != "FailJobSetFailurePolicyAction" {
		s.t.Errorf("%v", c)
	}
}

func jobSetItsRestartsEnd(s scene) {
	s.machines(2)
	pods := s.begins(1, restarts(1), nil)
	former := uid(s.read(s.jobs() + "/set-slice-0"))
	s.ends(pods["0"], 1)
	s.madeAnew(former)
	s.ends(s.runs("set-slice-0", 2)["1"], 1)
	if c := s.becomes(s.jobSets()+"/set", "Failed"); text(c, "reason") != "ReachedMaxRestarts" {
		s.t.Errorf("%v", c)
	}
	if r := s.read(s.jobSets() + "/set"); text(r, "status", "terminalState") != "Failed" || number(r, "status", "restarts") != 1 {
		s.t.Errorf("%v", r["status"])
	}
}

func jobSetWhenItHasFailedTheJobThatFailedStaysAndTheOthersGo(s scene) {
	s.machines(4)
	s.ends(s.begins(2, nil, nil)["0"], 1)
	s.becomes(s.jobSets()+"/set", "Failed")
	s.until("the other Job is gone", func() bool { return s.gone(s.jobs() + "/set-slice-1") })
	s.stays("nothing is made anew", func() bool { return s.gone(s.jobs()+"/set-slice-1") && !s.gone(s.jobs()+"/set-slice-0") })
}

func jobSetWithoutAPolicyOneFailureIsItsEnd(s scene) {
	s.machines(2)
	s.ends(s.begins(1, nil, nil)["0"], 1)
	if c := s.becomes(s.jobSets()+"/set", "Failed"); text(c, "reason") != "FailedJobs" {
		s.t.Errorf("%v", c)
	}
}

func jobSetItIsCompleteWhenEverySliceIs(s scene) {
	s.machines(2)
	for _, p := range s.begins(1, nil, nil) {
		s.ends(p, 0)
	}
	s.becomes(s.jobSets()+"/set", "Completed")
	if r := s.read(s.jobSets() + "/set"); text(r, "status", "terminalState") != "Completed" {
		s.t.Errorf("%v", r["status"])
	}
}

func jobSetSuspendedItsJobsAreAndResumedTheyRun(s scene) {
	s.machines(2)
	set := s.jobSet("set", 1, nil, nil)
	set["spec"].(object)["suspend"] = true //nolint:forcetypeassert // the JobSet has a spec
	s.do(http.MethodPost, s.jobSets(), set)
	s.until("its Job is suspended", func() bool {
		a := s.try(http.MethodGet, s.jobs()+"/set-slice-0", nil)
		return a.code == http.StatusOK && field(a.body, "spec", "suspend") == true
	})
	s.stays("there are no Pods", func() bool { return len(list(s.read(s.pods()), "items")) == 0 })
	s.do(http.MethodPatch, s.jobSets()+"/set", object{"spec": object{"suspend": false}})
	s.runs("set-slice-0", 2)
}

func jobSetItsJobsAndPodsGoWithIt(s scene) {
	s.machines(2)
	s.begins(1, nil, nil)
	set := s.read(s.jobSets() + "/set")
	s.do(http.MethodDelete, s.jobSets()+"/set", conditional("uid", uid(set)))
	s.until("all are gone", func() bool {
		return s.gone(s.jobSets()+"/set") && s.gone(s.jobs()+"/set-slice-0") && len(list(s.read(s.pods()), "items")) == 0
	})
}

func jobSetItsSlicesDoNotChange(s scene) {
	s.do(http.MethodPost, s.jobSets(), s.jobSet("set", 1, nil, nil))
	s.refused(s.try(http.MethodPatch, s.jobSets()+"/set", object{"spec": object{"replicatedJobs": []any{
		object{"name": "slice", "replicas": 3, "template": object{"spec": s.job("", 2, nil)["spec"]}},
	}}}), http.StatusUnprocessableEntity, "Invalid")
}
