package gketest

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
)

// The labels of the Jobs of a JobSet, and of their Pods.
const (
	labelJobSet     = "jobset.sigs.k8s.io/jobset-name"
	labelJobSetUID  = "jobset.sigs.k8s.io/jobset-uid"
	labelReplicated = "jobset.sigs.k8s.io/replicatedjob-name"
	labelJobIndex   = "jobset.sigs.k8s.io/job-index"
	labelRestart    = "jobset.sigs.k8s.io/restart-attempt"
)

// admitJobSet completes a new JobSet, or says why it cannot be.
func admitJobSet(o object) *refusal {
	names := map[string]bool{}
	for i, r := range list(o, "spec", "replicatedJobs") {
		path := fmt.Sprintf("spec.replicatedJobs[%d]", i)
		name := text(r, "name")
		job, _ := clone(field(r, "template")).(object)
		if job == nil {
			job = object{}
		}
		put(job, nameOf(o)+"-"+name, "metadata", "name")
		switch no := admitJob(job); {
		case name == "" || names[name]:
			return jobSets.invalid(nameOf(o), path+".name", "Required value: a name of its own")
		case no != nil:
			return jobSets.invalid(nameOf(o), path+".template.spec", no.message)
		}
		names[name] = true
		if n := number(r, 1, "replicas"); n < 0 || n > mostPods {
			return jobSets.invalid(nameOf(o), path+".replicas", fmt.Sprintf("Invalid value: %d", n))
		}
		if m, ok := r.(object); ok && m["replicas"] == nil {
			m["replicas"] = 1
		}
		if m, ok := r.(object); ok && text(m, "template", "spec", "completionMode") == "" {
			put(m, "Indexed", "template", "spec", "completionMode")
			if field(m, "template", "spec", "completions") == nil {
				put(m, number(m, 1, "template", "spec", "parallelism"), "template", "spec", "completions")
			}
		}
	}
	if len(names) == 0 {
		return jobSets.invalid(nameOf(o), "spec.replicatedJobs", "Required value")
	}
	if field(o, "spec", "suspend") == nil {
		put(o, false, "spec", "suspend")
	}
	return nil
}

// syncJobSet does what the JobSet controller does.
func (s *Server) syncJobSet(set object) {
	before := clone(set["status"])
	defer func() {
		if s.byUID[uidOf(set)] != nil && !same(before, set["status"]) {
			s.touch(set)
		}
	}()
	if isDeleting(set) {
		return
	}
	if holds(set, "Completed") || holds(set, "Failed") {
		s.endJobs(set)
		return
	}
	attempt := strconv.Itoa(number(set, 0, "status", "restarts"))
	var own, failedJobs []object
	former := false
	for _, o := range s.dependents(uidOf(set)) {
		switch {
		case s.resourceOf(o) != jobs:
		case label(o, labelRestart) != attempt || isDeleting(o):
			former = true
			if !isDeleting(o) {
				s.remove(jobs, o, "Foreground", -1)
			}
		default:
			own = append(own, o)
			if holds(o, "Failed") {
				failedJobs = append(failedJobs, o)
			}
		}
	}
	switch {
	case len(failedJobs) > 0:
		s.failJobSet(set, failedJobs)
	case !former && len(own) > 0 && !slices.ContainsFunc(own, func(o object) bool { return !holds(o, "Complete") }) && len(own) == replicas(set):
		hold(set, s.now(), "Completed", "True", "AllJobsCompleted", "jobset completed successfully")
		hold(set, s.now(), "RestartingJobSet", "False", "JobSetCompleted", "jobset completed successfully")
		put(set, "Completed", "status", "terminalState")
	default:
		s.makeJobs(set, attempt)
	}
	s.sumJobs(set)
}

// endJobs deletes the Jobs that have not ended when their JobSet has.
func (s *Server) endJobs(set object) {
	for _, o := range s.dependents(uidOf(set)) {
		if s.resourceOf(o) == jobs && !isDeleting(o) && !holds(o, "Complete") && !holds(o, "Failed") {
			s.remove(jobs, o, "Foreground", -1)
		}
	}
}

func replicas(set object) (n int) {
	for _, r := range list(set, "spec", "replicatedJobs") {
		n += number(r, 1, "replicas")
	}
	return n
}

// makeJobs makes the Jobs whose names are free, and suspends or resumes those that there are.
func (s *Server) makeJobs(set object, attempt string) {
	suspend := truth(set, "spec", "suspend")
	switch {
	case suspend:
		hold(set, s.now(), "Suspended", "True", "SuspendedJobs", "jobset is suspended")
	case condition(set, "Suspended") != nil:
		hold(set, s.now(), "Suspended", "False", "ResumeJobs", "jobset is resumed")
	}
	for _, r := range list(set, "spec", "replicatedJobs") {
		for i := range number(r, 1, "replicas") {
			name := fmt.Sprintf("%s-%s-%d", nameOf(set), text(r, "name"), i)
			ns := text(set, "metadata", "namespace")
			if old := s.stored[jobs][ns+"/"+name]; old != nil {
				if controller(old) == uidOf(set) && !isDeleting(old) && truth(old, "spec", "suspend") != suspend {
					put(old, suspend, "spec", "suspend")
					s.touch(old)
				}
				continue
			}
			job, _ := clone(field(r, "template")).(object)
			own := map[string]string{
				labelJobSet: nameOf(set), labelJobSetUID: uidOf(set), labelReplicated: text(r, "name"), labelJobIndex: strconv.Itoa(i), labelRestart: attempt,
			}
			put(job, name, "metadata", "name")
			put(job, ns, "metadata", "namespace")
			put(job, labels(job, own, "metadata", "labels"), "metadata", "labels")
			put(job, labels(job, own, "spec", "template", "metadata", "labels"), "spec", "template", "metadata", "labels")
			put(job, owned("JobSet", "jobset.x-k8s.io/v1alpha2", set), "metadata", "ownerReferences")
			put(job, suspend, "spec", "suspend")
			if text(job, "spec", "template", "spec", "subdomain") == "" {
				put(job, nameOf(set), "spec", "template", "spec", "subdomain")
			}
			if no := admitJob(job); no != nil {
				continue // the JobSet was admitted with it
			}
			s.selects(s.add(jobs, job))
		}
	}
}

// failJobSet does what the failure policy says of a failed Job.
func (s *Server) failJobSet(set object, failedJobs []object) {
	first := failedJobs[0]
	about := func(message string) string { return message + " (first failed job: " + nameOf(first) + ")" }
	over := func(reason, message string) {
		hold(set, s.now(), "Failed", "True", reason, about(message))
		hold(set, s.now(), "RestartingJobSet", "False", "JobSetFailed", "jobset failed")
		put(set, "Failed", "status", "terminalState")
	}
	if field(set, "spec", "failurePolicy") == nil {
		over("FailedJobs", "jobset failed due to one or more job failures")
		return
	}
	action, reason := "RestartJobSet", "DefaultFailurePolicy"
	for _, r := range list(set, "spec", "failurePolicy", "rules") {
		i := slices.IndexFunc(failedJobs, func(j object) bool { return ruleFits(r, j) })
		if i >= 0 {
			first, action, reason = failedJobs[i], text(r, "action"), "FailurePolicy_"+text(r, "name")
			break
		}
	}
	counts := action == "RestartJobSet"
	counted := number(set, 0, "status", "restartsCountTowardsMax")
	switch {
	case action == "FailJobSet":
		over("FailJobSetFailurePolicyAction", "applying FailJobSet failure policy action")
		return
	case counts && counted >= number(set, 0, "spec", "failurePolicy", "maxRestarts"):
		over("ReachedMaxRestarts", "jobset failed due to reaching max number of restarts")
		return
	case counts:
		put(set, counted+1, "status", "restartsCountTowardsMax")
	}
	put(set, number(set, 0, "status", "restarts")+1, "status", "restarts")
	hold(set, s.now(), "RestartingJobSet", "True", reason, about("applying "+action+" failure policy action"))
	s.changed[uidOf(set)] = true // the former Jobs have to go
}

// ruleFits reports whether a rule of a failure policy is for a failed Job.
func ruleFits(rule any, job object) bool {
	c := condition(job, "Failed")
	has := func(what, value string) bool {
		l := list(rule, what)
		return len(l) == 0 || slices.Contains(l, any(value))
	}
	patterns := list(rule, "onJobFailureMessagePatterns")
	return has("onJobFailureReasons", text(c, "reason")) && has("targetReplicatedJobs", label(job, labelReplicated)) &&
		(len(patterns) == 0 || slices.ContainsFunc(patterns, func(p any) bool {
			s, _ := p.(string)
			fits, err := regexp.MatchString(s, text(c, "message"))
			return err == nil && fits
		}))
}

// sumJobs writes how many Jobs there are of each sort.
func (s *Server) sumJobs(set object) {
	var all []any
	ready := 0
	for _, r := range list(set, "spec", "replicatedJobs") {
		sum := object{"name": text(r, "name"), "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0}
		for _, o := range s.dependents(uidOf(set)) {
			if s.resourceOf(o) != jobs || label(o, labelReplicated) != text(r, "name") || isDeleting(o) {
				continue
			}
			more := func(what string, is bool) {
				if is {
					sum[what] = number(sum, 0, what) + 1
				}
			}
			pods := number(o, 0, "status", "ready") + number(o, 0, "status", "succeeded")
			isReady := pods >= min(number(o, 1, "spec", "parallelism"), number(o, 1, "spec", "completions"))
			more("ready", isReady)
			more("succeeded", holds(o, "Complete"))
			more("failed", holds(o, "Failed"))
			more("active", number(o, 0, "status", "active") > 0)
			more("suspended", truth(o, "spec", "suspend"))
			if isReady {
				ready++
			}
		}
		all = append(all, sum)
	}
	put(set, all, "status", "replicatedJobsStatus")
	if field(set, "status", "restarts") == nil {
		put(set, 0, "status", "restarts")
	}
	if holds(set, "RestartingJobSet") && ready == replicas(set) && !slices.ContainsFunc(s.dependents(uidOf(set)), isDeleting) {
		hold(set, s.now(), "RestartingJobSet", "False", "JobsReady", "all jobs are ready")
	}
}
