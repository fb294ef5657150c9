package gke

import (
	"strings"
	"testing"
)

// owned is in the metadata of what such a controller made.
func owned(kind, name string) string {
	return `,"ownerReferences":[{"kind":"ConfigMap","name":"other","uid":"o0"},{"kind":"` + kind + `","name":"` + name + `","uid":"o1","controller":true}]`
}

// TestWhatIsItsOwnersToReplace: another controller makes it anew, a deletion takes more along than the training, or its owner ruled another
// try out.
func TestWhatIsItsOwnersToReplace(t *testing.T) {
	const (
		over   = `"terminalState":"Failed"` // more follows
		volume = `,"volumeClaimPolicies":[{"retentionPolicy":{"whenDeleted":"Retain"}},{"templates":[]`
		inNone = "Kueue has it in the queue night, and what is stored is what Kueue admitted"
	)
	spent := func(job Job) func(*Objects) {
		return inSet(aJobSet(t, "", restarts, over+condition("Failed", "ReachedMaxRestarts")), job)
	}
	head := func(o *Objects) {
		inSet(aJobSet(t, "", "", ""), aJob(t, "", "", ""))(o)
		parts := &o.JobSets[0].Spec.ReplicatedJobs
		*parts = append(*parts, (*parts)[0])
		(*parts)[1].Name, (*parts)[1].Template.Spec.Template.Spec = "head", PodSpec{}
	}
	for name, c := range map[string]struct {
		change func(*Objects)
		want   string
	}{
		"a Job":                            {alone(aJob(t, "", "", "")), ""},
		"a Job that failed":                {alone(aJob(t, "", "", condition("Failed", "BackoffLimitExceeded"))), ""},
		"a Job of a CronJob":               {alone(aJob(t, owned("CronJob", "nightly"), "", "")), "it belongs to the CronJob nightly, which makes its own"},
		"a Job with an owner that waits":   {alone(aJob(t, `,"ownerReferences":[{"kind":"ConfigMap","name":"other","uid":"o0"}]`, "", "")), ""},
		"a JobSet":                         {inSet(aJobSet(t, "", restarts, ""), aJob(t, "", "", "")), ""},
		"a JobSet of a TrainJob":           {inSet(aJobSet(t, owned("TrainJob", "tune"), "", ""), aJob(t, "", "", "")), "its JobSet belongs to the TrainJob tune, which makes its own"},
		"a Job over its deadline":          {alone(aJob(t, "", "", condition("Failed", "DeadlineExceeded"))), "its activeDeadlineSeconds are over"},
		"a Job whose policy ended it":      {alone(aJob(t, "", "", failedBy("Container training for pod teams/a failed with exit code 127 matching FailJob rule at index 0"))), "its pod failure policy ended it"},
		"a Job whose policy is for losses": {alone(aJob(t, "", losses, failedBy("Pod teams/a has condition DisruptionTarget matching FailJob rule at index 1"))), ""},
		"a Job of a queue":                 {alone(aJob(t, queued, "", "")), inNone},
		"a JobSet of a queue":              {inSet(aJobSet(t, queued, "", ""), aJob(t, "", "", "")), inNone},
		"a JobSet without restarts left":   {spent(aJob(t, "", "", condition("Failed", "BackoffLimitExceeded"))), ""},
		"the same, for a Job of it that is over its deadline": {
			spent(aJob(t, "", "", condition("Failed", "DeadlineExceeded"))), "its activeDeadlineSeconds are over",
		},
		"a JobSet whose policy ended it": {
			inSet(aJobSet(t, "", rules, over+condition("Failed", "FailJobSetFailurePolicyAction")), aJob(t, "", "", condition("Failed", "BackoffLimitExceeded"))), "the failure policy of its JobSet ended it",
		},
		"a JobSet whose volumes go with it": {
			inSet(aJobSet(t, "", volume+`}]`, ""), aJob(t, "", "", "")), "the volumes of its JobSet would be deleted with it, and the checkpoints on them",
		},
		"a JobSet that says so": {
			inSet(aJobSet(t, "", volume+`,"retentionPolicy":{"whenDeleted":"Delete"}}]`, ""), aJob(t, "", "", "")), "the volumes of its JobSet would be deleted with it, and the checkpoints on them",
		},
		"a JobSet whose volumes stay": {inSet(aJobSet(t, "", volume+`,"retentionPolicy":{"whenDeleted":"Retain"}}]`, ""), aJob(t, "", "", "")), ""},
		"a JobSet with a head":        {head, "the replicated Job head of its JobSet has no TPU, and its Pods are not watched"},
		"a JobSet yet to make its Job, of a queue": {
			func(o *Objects) { *o = Objects{JobSets: []JobSet{aJobSet(t, queued, "", "")}} }, inNone,
		},
	} {
		o := gang(t)
		c.change(&o)
		all := Readings(o, "us-east5", "research", now)
		if len(all) != 1 || all[0].Kept != c.want {
			t.Errorf("%s: %+v, want %q", name, all, c.want)
			continue
		}
		if got := all[0].slice("p").Evidence("e").Facts.Controlled; got != strings.HasSuffix(c.want, ", which makes its own") {
			t.Errorf("%s: its evidence says that another object makes it: %t", name, got)
		}
		if got := all[0].slice("p").Evidence("e").Facts.Kept; got != c.want {
			t.Errorf("%s: its evidence says %q", name, got)
		}
	}
}

// TestAReasonOfOneSliceIsOneOfItsJobSet: it is deleted as a whole.
func TestAReasonOfOneSliceIsOneOfItsJobSet(t *testing.T) {
	two := 2
	set := aJobSet(t, "", restarts, `"terminalState":"Failed"`+condition("Failed", "ReachedMaxRestarts"))
	set.Spec.ReplicatedJobs[0].Replicas = &two
	var o Objects
	inSet(set, aJob(t, "", "", condition("Failed", "DeadlineExceeded")))(&o)
	other := aJob(t, "", "", "")
	other.Name, other.UID, other.Owners = "llama-slice-1", "j2", o.Jobs[0].Owners
	alone := aJob(t, "", "", "")
	alone.UID = "j3"
	o.Jobs = append(o.Jobs, other, alone)
	for _, r := range Readings(o, "us-east5", "research", now) {
		if want := map[bool]string{true: "its activeDeadlineSeconds are over"}[r.Group != ""]; r.Kept != want {
			t.Errorf("%s: %q, want %q", r.Name, r.Kept, want)
		}
	}
}
