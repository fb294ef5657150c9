package gke

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/shared/evidence"
)

// TestWhatHangsIsEndedByHand: the reading has the command where Pods alone keep a Job from its end, each past its time on a machine that says
// nothing.
func TestWhatHangsIsEndedByHand(t *testing.T) {
	due, lately := now.Add(-2*time.Minute), now.Add(-30*time.Second)
	deleted := func(at time.Time) func(*Pod) {
		return func(p *Pod) {
			p.UID, p.Owners[0].Name, p.Spec.NodeSelector = "p-"+p.Name, "llama", map[string]string{LabelAccelerator: "tpu-v6e-slice"}
			if p.Deleted = &at; at.IsZero() {
				p.Deleted = nil
			}
		}
	}
	for name, c := range map[string]struct {
		change func(o *Objects)
		want   string
	}{
		"both on silent machines":              {func(*Objects) {}, " a b"},
		"one has ended":                        {func(o *Objects) { o.Pods[1].Status.Phase = "Failed" }, " a"},
		"both have ended":                      {func(o *Objects) { o.Pods[0].Status.Phase, o.Pods[1].Status.Phase = "Failed", "Succeeded" }, ""},
		"the Job is gone":                      {func(o *Objects) { o.Jobs = nil }, " a b"},
		"the Job is not deleted":               {func(o *Objects) { o.Jobs[0].Deleted = nil }, ""},
		"the Job has failed, and waits":        {func(o *Objects) { o.Jobs[0] = aJob(t, "", "", condition("FailureTarget", "BackoffLimitExceeded")) }, " a b"},
		"one still has time":                   {func(o *Objects) { o.Pods[1] = aPod(t, "b", "n2", deleted(lately)) }, ""},
		"nobody deletes one":                   {func(o *Objects) { o.Pods[1] = aPod(t, "b", "n2", deleted(time.Time{})) }, ""},
		"one machine answers":                  {func(o *Objects) { o.Nodes[1] = aNode(t, "n2", "", "", "True") }, ""},
		"one machine answers that it is sick":  {func(o *Objects) { o.Nodes[1] = aNode(t, "n2", "", "", "False") }, ""},
		"one machine is gone":                  {func(o *Objects) { o.Nodes = o.Nodes[:1] }, ""},
		"one machine has not said anything":    {func(o *Objects) { o.Nodes[1].Status.Conditions = nil }, ""},
		"another Job of the name makes others": {func(o *Objects) { o.Jobs[0].UID, o.Jobs[0].Deleted = "j2", nil }, ""},
	} {
		o := gang(t)
		o.Jobs[0].Deleted = &due
		o.Nodes = []Node{aNode(t, "n1", "", "", "Unknown"), aNode(t, "n2", "", "", "Unknown")}
		o.Pods = []Pod{aPod(t, "a", "n1", deleted(due)), aPod(t, "b", "n2", deleted(due))}
		c.change(&o)
		got := ""
		for _, r := range Readings(o, "l", "c", now) {
			_, command, _ := strings.Cut(r.Why, "kubectl delete pod --force --namespace teams")
			if got += command; command != "" && r.State != evidence.Deleting && r.State != evidence.Unhealthy {
				t.Errorf("%s: it is %s", name, r.State)
			}
		}
		if got != c.want {
			t.Errorf("%s: ended by hand are%s, want%s", name, got, c.want)
		}
	}
}
