package incident_test

import (
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
)

// Two callers of a cluster: a tool that keeps what its owner declared, and the garbage collector.
const (
	tool      = "system:serviceaccount:argocd:argocd-application-controller"
	collector = "system:serviceaccount:kube-system:generic-garbage-collector"
)

// acts is word that somebody did something to the Job, or to its whole group, a minute from now.
func (n *story) acts(who string, act events.Act, whole bool) evidence.Called {
	n.later(time.Minute)
	return evidence.Called{
		Origin: evidence.Origin{ID: "log", Time: n.now, Rank: events.RankAudit}, Slice: "llama-8b", Act: act, Whole: whole, Method: "jobs." + string(act),
		Principal: who, Automatic: who == tool || who == collector, Orphaned: who == collector,
	}
}
