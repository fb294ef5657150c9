package gke

import "strings"

// kept is why nobody but its owner may replace a slice: something else makes it anew or would go with it, or a rule of its owner ended it.
// It is empty if Pitstop may.
func (s slot) kept() string {
	why := ""
	if s.set != nil {
		why = s.set.kept()
	} else if made := s.job.maker(); made != "" {
		why = "it belongs to " + made
	}
	if why == "" && s.job != nil {
		why = s.job.ruledOut()
	}
	if q := s.word(labelled(labelQueue)); why == "" && q != "" {
		why = "Kueue has it in the queue " + q + ", and what is stored is what Kueue admitted"
	}
	return why
}

// whole is what is deleted and created for a slice: its JobSet, or else the Job.
func (s slot) whole() Meta {
	if s.set != nil {
		return s.set.Meta
	}
	return s.job.Meta
}

// kept is why nobody but its owner may replace a JobSet.
func (s JobSet) kept() string {
	if made := s.maker(); made != "" {
		return "its JobSet belongs to " + made
	}
	if c := s.Status.Conditions; c.holds("Failed") && c.of("Failed").Reason == "FailJobSetFailurePolicyAction" {
		return "the failure policy of its JobSet ended it"
	}
	for _, v := range s.Spec.Volumes {
		if v.Retention.WhenDeleted != "Retain" { // without a word they are deleted
			return "the volumes of its JobSet would be deleted with it, and the checkpoints on them"
		}
	}
	for _, r := range s.Spec.ReplicatedJobs {
		if !r.Template.Spec.Template.Spec.trains() {
			return "the replicated Job " + r.Name + " of its JobSet has no TPU, and its Pods are not watched"
		}
	}
	return ""
}

// maker is what makes an object, and makes it anew in its own way; empty where a person or a tool made it.
func (m Meta) maker() string {
	for _, o := range m.Owners {
		if o.Controller {
			return "the " + o.Kind + " " + o.Name + ", which makes its own"
		}
	}
	return ""
}

// ruledOut says which rule of the Job ended it; empty where none did. A rule for Pods that their machine took along rules nothing out: it
// ends a gang that would run on without them.
func (j Job) ruledOut() string {
	failed := j.Status.Conditions.of("Failed")
	switch {
	case failed.Status != "True":
	case failed.Reason == "DeadlineExceeded":
		return "its activeDeadlineSeconds are over"
	case failed.Reason == "PodFailurePolicy" && !strings.Contains(failed.Message, " has condition DisruptionTarget matching "):
		return "its pod failure policy ended it"
	}
	return ""
}
