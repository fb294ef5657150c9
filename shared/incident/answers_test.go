package incident_test

import (
	"reflect"
	"testing"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/reason"
)

// TestAnAnswerCountsForItsAttemptAlone: an answer to another attempt, under another epoch or for another incident changes no call and asks for nothing.
func TestAnAnswerCountsForItsAttemptAlone(t *testing.T) {
	t.Parallel()
	answers := func(o evidence.Origin, r events.Request) []evidence.Evidence {
		return []evidence.Evidence{
			evidence.Intended{Origin: o, Request: r, RequestID: "1"},
			evidence.Answered{Origin: o, Request: r, Operation: "op"},
			evidence.Answered{Origin: o, Request: r, Failure: &evidence.Failure{Class: reason.Permission, Message: "no"}},
			evidence.Held{Origin: o, Request: r, Code: reason.CodePaused},
			evidence.Checked{Origin: o, Request: r, Found: true, Step: 48200},
			evidence.VerdictRead{Origin: o, Request: r, Attempt: 1},
		}
	}
	for path, action := range map[string]events.Action{
		"preempted, read lost": events.ActionDelete, "preempted, read lost, intend delete": events.ActionDelete,
		created: events.ActionCreate, created + ", intend create": events.ActionCreate,
		created + ", do, read ours": events.ActionAdmit, created + ", do, read ours, intend admit": events.ActionAdmit,
		"exit 139, gave up": events.ActionHear, "exit 139, gave up, its verdict, intend restart": events.ActionRestart,
		"pending, later, tick, intend save": events.ActionSave, "pending, later, tick, do, saved": events.ActionVerify,
	} {
		n := at(t, "everything", true, path)
		for what, change := range map[string]func(*events.Request){
			"another attempt":  func(r *events.Request) { r.Attempt++ },
			"an earlier one":   func(r *events.Request) { r.Attempt-- },
			"another epoch":    func(r *events.Request) { r.Epoch-- },
			"another incident": func(r *events.Request) { r.Incident += "x" },
		} {
			i := n.effect(action, n.w.Effects[0].Slice)
			if i < 0 {
				t.Fatalf("%s: nobody wants %s:\n%s", path, action, n.tale())
			}
			r := n.request(action, n.w.Effects[i].Slice)
			change(&r)
			for _, answer := range answers(n.reading(), r) {
				after, sent, _ := incident.Advance(n.p, n.w, answer, n.now)
				if !reflect.DeepEqual(after.Effects, n.w.Effects) || len(sent) > 0 || after.Incident == nil || after.Incident.Status.Label != n.w.Incident.Status.Label {
					t.Errorf("%s, %T of %s: asked for is %v, and the calls are %+v, want %+v", path, answer, what, sent, after.Effects, n.w.Effects)
				}
			}
		}
	}
}
