package goodput

import (
	"fmt"

	"pitstop.internal/events"
)

// doubt is a kind of fact that the logs do not hold.
type doubt int

const (
	sizeUnknown doubt = iota
	notTold
	backUnseen
	notBack
	matched
	apart
	restarts
	plainVM
	ofGKE
	failedWith
	madeAgain
	failedAlone
	failedUntold
	ofGroup
	unnamed
	causeUnknown
	doubts
)

// doubtTexts are the doubts for people, each with its number.
var doubtTexts = [doubts]string{
	sizeUnknown:  "losses of TPUs whose type no entry names: %s. Their generation is unknown, and their chip-hours are a lower bound from their named workers",
	notTold:      "losses that only workers tell of, and Google restarted none of them: %s. A recreated TPU has new workers, so no entry says when it was back",
	backUnseen:   "TPUs that were back at a time that no entry names: %s. Later they were lost or created again, so they were there in between",
	notBack:      "TPUs that were not back under their names when the record ended: %s. Others may have replaced them",
	matched:      "matches of workers to a node by time and zone alone: %s",
	apart:        "of these, more than five minutes apart: %s",
	restarts:     "restarts by Google that follow no loss in the record: %s. The entries of the losses are missing, or they are older",
	plainVM:      "losses of plain VMs, instances of Compute Engine that are no TPUs: %s. They are not in this report",
	ofGKE:        "losses of machines of GKE with which no Job is known to have failed: %s. They are not in this report",
	failedWith:   "Jobs that failed within 10 minutes after a machine of their cluster was lost: %s. Their causes and notices are those of the machines, for no entry says where a Job ran",
	madeAgain:    "Jobs that count as back from their creation on: %s. No entry says when their Pods ran again",
	failedAlone:  "Jobs that failed, and no machine of their clusters was lost shortly before: %s. Their trainings may have ended by themselves",
	failedUntold: "failures of JobSets, or of Jobs whose creation is not in the record, so that they may have no TPU: %s. They are not in this report",
	ofGroup:      "losses of machines that are named like those of managed instance groups: %s. They are not in this report",
	unnamed:      "losses that name no machine: %s. They are not in this report",
	causeUnknown: "losses that have no entry of their own: %s. Somebody deleted or recreated the TPU",
}

// leftOut is what a loss is of that the account leaves out.
func leftOut(s events.Subject) doubt {
	switch platform := s.Platform(); {
	case platform == events.PlatformGKE:
		return ofGKE
	case platform == events.PlatformGroup:
		return ofGroup
	case s.Worker == "":
		return unnamed
	}
	return plainVM
}

// doubtsOf lists in plain words what the logs do not hold.
func (a *Account) doubtsOf(t Sum) []string {
	n := a.unsure
	n[sizeUnknown], n[notTold], n[backUnseen], n[notBack] = t.SizeUnknown, t.NotTold, t.BackUnseen, t.NotBack
	n[causeUnknown] = -n[failedAlone]
	for c, s := range a.byClass {
		if c.Cause == events.CauseUnknown {
			n[causeUnknown] += s.Losses
		}
	}
	out := []string{}
	for d, text := range doubtTexts {
		if n[d] > 0 {
			out = append(out, fmt.Sprintf(text, events.Number(int64(n[d]))))
		}
	}
	return out
}
