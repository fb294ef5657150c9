package gketest

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The labels by which a Job knows its Pods.
const (
	labelJob      = "batch.kubernetes.io/job-name"
	labelJobUID   = "batch.kubernetes.io/controller-uid"
	labelIndex    = "batch.kubernetes.io/job-completion-index"
	labelOldName  = "job-name"
	labelOldJobID = "controller-uid"
)

// mostPods bounds an indexed Job at Kubernetes, and every Job here.
const mostPods = 100_000

// admitJob completes a new Job, or says why it cannot be.
func admitJob(o object) *refusal {
	if no := wrongJob(o); no != nil {
		return no
	}
	if field(o, "spec", "parallelism") == nil && field(o, "spec", "completions") == nil {
		put(o, 1, "spec", "completions")
	}
	replace := "TerminatingOrFailed"
	if field(o, "spec", "podFailurePolicy") != nil {
		replace = "Failed"
	}
	defaults := object{
		"parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": false, "podReplacementPolicy": replace, "manualSelector": false,
	}
	for k, v := range defaults {
		if field(o, "spec", k) == nil {
			put(o, v, "spec", k)
		}
	}
	if field(o, "spec", "template", "spec", "terminationGracePeriodSeconds") == nil {
		put(o, 30, "spec", "template", "spec", "terminationGracePeriodSeconds")
	}
	return nil
}

// wrongJob says why a Job cannot be.
func wrongJob(o object) *refusal {
	no := func(path, why string) *refusal { return jobs.invalid(nameOf(o), path, why) }
	policy := text(o, "spec", "template", "spec", "restartPolicy")
	switch {
	case field(o, "spec", "selector") != nil:
		return no("spec.selector", "Invalid value: `selector` not auto-generated")
	case templateLabel(o, labelJobUID) != "" || templateLabel(o, labelOldJobID) != "":
		return no("spec.template.metadata.labels", "Invalid value: must be the UID of the Job, or not set")
	case len(list(o, "spec", "template", "spec", "containers")) == 0:
		return no("spec.template.spec.containers", "Required value")
	case policy != "Never" && policy != "OnFailure":
		return no("spec.template.spec.restartPolicy", `Required value: valid values: "OnFailure", "Never"`)
	case number(o, 0, "spec", "parallelism") < 0 || number(o, 0, "spec", "completions") < 0 || number(o, 0, "spec", "backoffLimit") < 0:
		return no("spec", "Invalid value: must be greater than or equal to 0")
	case number(o, 0, "spec", "parallelism") > mostPods || number(o, 0, "spec", "completions") > mostPods:
		return no("spec", fmt.Sprintf("Invalid value: must be less than or equal to %d", mostPods))
	case text(o, "spec", "completionMode") == "Indexed" && field(o, "spec", "completions") == nil:
		return no("spec.completions", "Required value: when completion mode is Indexed")
	case field(o, "spec", "podFailurePolicy") != nil && policy != "Never":
		return no("spec.template.spec.restartPolicy", `Invalid value: only "Never" is supported when podFailurePolicy is specified`)
	}
	return nil
}

func templateLabel(o object, name string) string {
	return text(o, "spec", "template", "metadata", "labels", name)
}

// selects gives a new Job its selector, and its template the labels for that.
func (s *Server) selects(job object) {
	own := map[string]string{labelJob: nameOf(job), labelJobUID: uidOf(job), labelOldName: nameOf(job), labelOldJobID: uidOf(job)}
	put(job, labels(job, own, "spec", "template", "metadata", "labels"), "spec", "template", "metadata", "labels")
	put(job, object{labelJobUID: uidOf(job)}, "spec", "selector", "matchLabels")
}

// podsOf are the Pods of a Job.
func (s *Server) podsOf(job object) (all []object) {
	for _, o := range s.dependents(uidOf(job)) {
		if s.resourceOf(o) == pods {
			all = append(all, o)
		}
	}
	return all
}

// syncJob does what the Job controller does.
func (s *Server) syncJob(job object) {
	before := clone(job["status"])
	defer func() {
		if s.byUID[uidOf(job)] != nil && !same(before, job["status"]) {
			s.touch(job)
		}
	}()
	if isDeleting(job) {
		for _, pod := range s.podsOf(job) {
			if isDeleting(pod) || terminal(pod) {
				s.untrack(pod)
			}
		}
		return
	}
	if holds(job, "Complete") || holds(job, "Failed") {
		s.expire(job)
		return
	}
	if !s.suspends(job) {
		s.countEnded(job)
		s.decide(job)
		s.makePods(job)
	}
	s.sum(job)
	s.finish(job)
}

func (s *Server) untrack(pod object) {
	if unhold(pod, tracking) {
		s.touch(pod)
		s.reap(pods, pod)
	}
}

// suspends ends the Pods of a suspended Job, and reports whether it is one.
func (s *Server) suspends(job object) bool {
	if !truth(job, "spec", "suspend") {
		if holds(job, "Suspended") {
			hold(job, s.now(), "Suspended", "False", "JobResumed", "Job resumed")
		}
		if field(job, "status", "startTime") == nil {
			put(job, s.now(), "status", "startTime")
		}
		return false
	}
	hold(job, s.now(), "Suspended", "True", "JobSuspended", "Job suspended")
	drop(job, "status", "startTime")
	for _, pod := range s.podsOf(job) {
		if !terminal(pod) && !isDeleting(pod) {
			s.endPod(pod, -1)
		}
		s.untrack(pod)
	}
	return true
}

// failed reports whether a Pod counts as failed.
func failed(job, pod object) bool {
	return phase(pod) == "Failed" ||
		text(job, "spec", "podReplacementPolicy") != "Failed" && isDeleting(pod) && phase(pod) != "Succeeded"
}

// countEnded counts each Pod that has ended, once: as long as it is tracked.
func (s *Server) countEnded(job object) {
	for _, pod := range s.podsOf(job) {
		if !slices.Contains(finalizers(pod), tracking) {
			continue
		}
		switch {
		case phase(pod) == "Succeeded":
			put(job, number(job, 0, "status", "succeeded")+1, "status", "succeeded")
			if i := label(pod, labelIndex); i != "" {
				put(job, withIndex(text(job, "status", "completedIndexes"), i), "status", "completedIndexes")
			}
		case failed(job, pod) || holds(job, "FailureTarget") && (terminal(pod) || isDeleting(pod)):
			action, message := judge(job, pod)
			if action == "FailJob" && !holds(job, "FailureTarget") {
				hold(job, s.now(), "FailureTarget", "True", "PodFailurePolicy", message)
			}
			if action != "Ignore" {
				n := number(job, 0, "status", "failed") + 1
				put(job, n, "status", "failed")
				wait := s.timing.Backoff << min(max(n-1, 0), 6)
				s.retryAt(uidOf(job), s.clock.Now().Add(min(wait, 10*time.Minute)))
			}
		default:
			continue
		}
		s.untrack(pod)
	}
}

// judge finds the first rule of the pod failure policy that fits.
func judge(job, pod object) (action, message string) {
	for i, rule := range list(job, "spec", "podFailurePolicy", "rules") {
		where := text(pod, "metadata", "namespace") + "/" + nameOf(pod)
		if codes := field(rule, "onExitCodes"); codes != nil {
			for _, c := range list(pod, "status", "containerStatuses") {
				code := number(c, 0, "state", "terminated", "exitCode")
				if code == 0 || text(codes, "containerName") != "" && text(codes, "containerName") != text(c, "name") {
					continue
				}
				in := slices.ContainsFunc(list(codes, "values"), func(v any) bool { return same(v, code) })
				if in == (text(codes, "operator") == "In") {
					return text(rule, "action"), fmt.Sprintf("Container %s for pod %s failed with exit code %d matching %s rule at index %d",
						text(c, "name"), where, code, text(rule, "action"), i)
				}
			}
			continue
		}
		for _, p := range list(rule, "onPodConditions") {
			want := text(p, "status")
			if want == "" {
				want = "True"
			}
			if typ := text(p, "type"); text(condition(pod, typ), "status") == want {
				return text(rule, "action"), fmt.Sprintf("Pod %s has condition %s matching %s rule at index %d", where, typ, text(rule, "action"), i)
			}
		}
	}
	return "", ""
}

// decide notes that a Job has failed or succeeded. Both are final when its last Pod has ended.
func (s *Server) decide(job object) {
	completions := number(job, -1, "spec", "completions")
	done := number(job, 0, "status", "succeeded")
	switch {
	case holds(job, "FailureTarget") || holds(job, "SuccessCriteriaMet"):
	case number(job, 0, "status", "failed") > number(job, 0, "spec", "backoffLimit"):
		hold(job, s.now(), "FailureTarget", "True", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
	case completions >= 0 && done >= completions || completions < 0 && done > 0:
		hold(job, s.now(), "SuccessCriteriaMet", "True", "CompletionsReached", "Reached expected number of succeeded pods")
	}
	if !holds(job, "FailureTarget") && !holds(job, "SuccessCriteriaMet") {
		return
	}
	for _, pod := range s.podsOf(job) {
		if !terminal(pod) && !isDeleting(pod) {
			s.endPod(pod, -1)
		}
		if holds(job, "FailureTarget") && (terminal(pod) || isDeleting(pod)) && slices.Contains(finalizers(pod), tracking) {
			put(job, number(job, 0, "status", "failed")+1, "status", "failed")
			s.untrack(pod)
		}
	}
}

// makePods makes the Pods that are missing.
func (s *Server) makePods(job object) {
	if holds(job, "FailureTarget") || holds(job, "SuccessCriteriaMet") || s.clock.Now().Before(s.retry[uidOf(job)]) {
		return
	}
	indexed := text(job, "spec", "completionMode") == "Indexed"
	taken, live := map[string]bool{}, 0
	for _, pod := range s.podsOf(job) {
		if terminal(pod) || isDeleting(pod) && text(job, "spec", "podReplacementPolicy") != "Failed" {
			continue
		}
		taken[label(pod, labelIndex)] = true
		live++
	}
	parallel := number(job, 1, "spec", "parallelism")
	completions := number(job, -1, "spec", "completions")
	if !indexed {
		want := parallel
		if completions >= 0 {
			want = min(want, completions-number(job, 0, "status", "succeeded"))
		}
		for range want - live {
			s.makePod(job, "")
		}
		return
	}
	done := indexes(text(job, "status", "completedIndexes"))
	for i := 0; i < completions && live < parallel; i++ {
		if index := strconv.Itoa(i); !taken[index] && !done[i] {
			s.makePod(job, index)
			live++
		}
	}
}

func (s *Server) makePod(job object, index string) {
	template, _ := clone(field(job, "spec", "template")).(object)
	pod := object{"spec": template["spec"], "metadata": object{}}
	meta := map[string]string{}
	name := nameOf(job) + "-"
	if index != "" {
		name += index + "-"
		meta[labelIndex] = index
		put(pod, nameOf(job)+"-"+index, "spec", "hostname")
	}
	ns := text(job, "metadata", "namespace")
	put(pod, s.generate(pods, ns, name), "metadata", "name")
	put(pod, ns, "metadata", "namespace")
	put(pod, labels(template, meta, "metadata", "labels"), "metadata", "labels")
	put(pod, labels(template, meta, "metadata", "annotations"), "metadata", "annotations")
	put(pod, owned("Job", "batch/v1", job), "metadata", "ownerReferences")
	setFinalizers(pod, []string{tracking})
	put(pod, "Pending", "status", "phase")
	s.add(pods, pod)
}

// sum writes how many Pods there are of each sort.
func (s *Server) sum(job object) {
	active, ready, terminating := 0, 0, 0
	for _, pod := range s.podsOf(job) {
		switch {
		case terminal(pod):
		case isDeleting(pod):
			terminating++
		default:
			active++
			if holds(pod, "Ready") {
				ready++
			}
		}
	}
	for k, n := range map[string]int{"active": active, "ready": ready, "terminating": terminating} {
		if n > 0 || k != "active" {
			put(job, n, "status", k)
		} else {
			drop(job, "status", k)
		}
	}
}

// finish makes the end of a Job final.
func (s *Server) finish(job object) {
	if number(job, 0, "status", "active")+number(job, 0, "status", "terminating") > 0 {
		return
	}
	for target, final := range map[string]string{"FailureTarget": "Failed", "SuccessCriteriaMet": "Complete"} {
		if c := condition(job, target); text(c, "status") == "True" {
			hold(job, s.now(), final, "True", text(c, "reason"), text(c, "message"))
			if final == "Complete" {
				put(job, s.now(), "status", "completionTime")
			}
			s.changed[uidOf(job)] = true // it may expire
		}
	}
}

// expire deletes a Job so long after its end as it says.
func (s *Server) expire(job object) {
	if field(job, "spec", "ttlSecondsAfterFinished") == nil {
		return
	}
	end := text(condition(job, "Failed"), "lastTransitionTime")
	if holds(job, "Complete") {
		end = text(condition(job, "Complete"), "lastTransitionTime")
	}
	ended, err := time.Parse(time.RFC3339, end)
	if err != nil {
		return
	}
	at := ended.Add(time.Duration(number(job, 0, "spec", "ttlSecondsAfterFinished")) * time.Second)
	if s.clock.Now().Before(at) {
		s.retryAt(uidOf(job), at)
		return
	}
	s.remove(jobs, job, "Foreground", -1)
}

// indexes reads completed indexes, as in 0,2-4.
func indexes(s string) map[int]bool {
	all := map[int]bool{}
	for part := range strings.SplitSeq(s, ",") {
		from, to, span := strings.Cut(part, "-")
		a, err := strconv.Atoi(from)
		if err != nil {
			continue
		}
		b := a
		if span {
			b, _ = strconv.Atoi(to) //nolint:errcheck // the server wrote it
		}
		for i := a; i <= b; i++ {
			all[i] = true
		}
	}
	return all
}

// withIndex adds an index to completed ones.
func withIndex(s, index string) string {
	all := indexes(s)
	n, err := strconv.Atoi(index)
	if err != nil {
		return s
	}
	all[n] = true
	var parts []string
	sorted := slices.Sorted(maps.Keys(all))
	for i := 0; i < len(sorted); {
		j := i
		for j+1 < len(sorted) && sorted[j+1] == sorted[j]+1 {
			j++
		}
		part := strconv.Itoa(sorted[i])
		if j > i {
			part += map[bool]string{true: ",", false: "-"}[j == i+1] + strconv.Itoa(sorted[j])
		}
		parts = append(parts, part)
		i = j + 1
	}
	return strings.Join(parts, ",")
}
