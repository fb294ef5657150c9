package gke

import (
	"testing"
	"time"

	"pitstop.internal/shared/incident"
)

// TestWhatHangs: Pods that alone keep a Job from its end, each past its time on a machine that says nothing.
func TestWhatHangs(t *testing.T) {
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
		want   int
	}{
		"both on silent machines":              {func(*Objects) {}, 2},
		"one has ended":                        {func(o *Objects) { o.Pods[1].Status.Phase = "Failed" }, 1},
		"both have ended":                      {func(o *Objects) { o.Pods[0].Status.Phase, o.Pods[1].Status.Phase = "Failed", "Succeeded" }, 0},
		"the Job is gone":                      {func(o *Objects) { o.Jobs = nil }, 2},
		"the Job is not deleted":               {func(o *Objects) { o.Jobs[0].Deleted = nil }, 0},
		"the Job has failed, and waits":        {func(o *Objects) { o.Jobs[0] = aJob(t, "", "", condition("FailureTarget", "BackoffLimitExceeded")) }, 2},
		"one still has time":                   {func(o *Objects) { o.Pods[1] = aPod(t, "b", "n2", deleted(lately)) }, 0},
		"nobody deletes one":                   {func(o *Objects) { o.Pods[1] = aPod(t, "b", "n2", deleted(time.Time{})) }, 0},
		"one machine answers":                  {func(o *Objects) { o.Nodes[1] = aNode(t, "n2", "", "", "True") }, 0},
		"one machine answers that it is sick":  {func(o *Objects) { o.Nodes[1] = aNode(t, "n2", "", "", "False") }, 0},
		"one machine is gone":                  {func(o *Objects) { o.Nodes = o.Nodes[:1] }, 0},
		"one machine has not said anything":    {func(o *Objects) { o.Nodes[1].Status.Conditions = nil }, 0},
		"another Job of the name makes others": {func(o *Objects) { o.Jobs[0].UID, o.Jobs[0].Deleted = "j2", nil }, 0},
	} {
		o := gang(t)
		o.Jobs[0].Deleted = &due
		o.Nodes = []Node{aNode(t, "n1", "", "", "Unknown"), aNode(t, "n2", "", "", "Unknown")}
		o.Pods = []Pod{aPod(t, "a", "n1", deleted(due)), aPod(t, "b", "n2", deleted(due))}
		c.change(&o)
		all := Readings(o, "l", "c", now)
		hung := 0
		for _, r := range all {
			hung += len(r.Hung)
			for _, h := range r.Hung {
				if h.Life != "j1" || h.ID == "" || h.Machine == "" || h.Since.Before(due) || h.Since.After(now) {
					t.Errorf("%s: %+v", name, h)
				}
			}
			if len(r.Hung) > 0 && r.State != incident.Deleting && r.State != incident.Unhealthy {
				t.Errorf("%s: it is %s", name, r.State)
			}
		}
		if hung != c.want {
			t.Errorf("%s: %d hang, want %d: %+v", name, hung, c.want, all)
		}
	}
}

// TestWhichLeaseAPodObeys: only one that its own command names beyond doubt.
func TestWhichLeaseAPodObeys(t *testing.T) {
	for command, want := range map[string]string{
		`["pitcrew","run","--checkpoint-dir=gs://b/run","--","python3"]`:                                  "gs://b/run",
		`["/usr/bin/pitcrew","run","--step-pattern","hf","--checkpoint-dir","gs://b/run","--","python3"]`: "gs://b/run",
		`["pitcrew","run","--","python3","--checkpoint-dir=gs://b/run"]`:                                  "",
		`["pitcrew","run","--checkpoint-dir=gs://b/run"]`:                                                 "",
		`["pitcrew","run","--checkpoint-dir=gs://b/$(RUN)","--","python3"]`:                               "",
		`["pitcrew","run","--checkpoint-dir=gs://b/a","--checkpoint-dir=gs://b/c","--","python3"]`:        "",
		`["pitcrew","run","--checkpoint-dir=","--","python3"]`:                                            "",
		`["pitcrew","run","--checkpoint-dir"]`:                                                            "",
		`["pitcrew","run","--checkpoint-dir","--","python3"]`:                                             "",
		`["pitcrew","doctor","--checkpoint-dir=gs://b/run","--","python3"]`:                               "",
		`["python3","train.py","--checkpoint-dir=gs://b/run","--","x"]`:                                   "",
		`["sh","-c","pitcrew run --checkpoint-dir=gs://b/run -- python3"]`:                                "",
		`["pitcrew","run","--node=x","--checkpoint-dir=gs://b/run","--","python3"]`:                       "",
		`["pitcrew","run","--checkpoint-dir=gs://b/run","--host","x","--","python3"]`:                     "",
		`["pitcrew","run","--checkpoint-dir=gs://b/run","--storage-endpoint=http://x","--","python3"]`:    "",
		`["pitcrew","run","--checkpoint-dir=gs://b/run","--lease-unread=1h","--","python3"]`:              "",
		`["pitcrew","run","--checkpoint-dir=gs://b/run","--stop-grace","1h","--","python3"]`:              "",
		`["pitcrew","run","--checkpoint-dir=gs://b/run","--","python3","--node=x"]`:                       "gs://b/run",
		`[]`: "",
	} {
		p := parsed[Pod](t, `{"spec":{"containers":[{"command":`+command+`}]}}`)
		if got := p.Spec.lease(); got != want {
			t.Errorf("%s: %q, want %q", command, got, want)
		}
		p = parsed[Pod](t, `{"spec":{"containers":[{"command":`+command+`},{"command":["sidecar"]}]}}`)
		if got := p.Spec.lease(); got != "" {
			t.Errorf("%s beside another container: %q", command, got)
		}
		p = parsed[Pod](t, `{"spec":{"containers":[{"command":`+command+`}],"initContainers":[{"command":["x"]},{"restartPolicy":"Always"}]}}`)
		if got := p.Spec.lease(); got != "" {
			t.Errorf("%s beside a sidecar: %q", command, got)
		}
		p = parsed[Pod](t, `{"spec":{"containers":[{"command":`+command+`}],"initContainers":[{"command":["x"]}]}}`)
		if got := p.Spec.lease(); got != want {
			t.Errorf("%s after another container: %q, want %q", command, got, want)
		}
		p = parsed[Pod](t, `{"spec":{"containers":[{"args":`+command+`}]}}`)
		if got := p.Spec.lease(); got != "" {
			t.Errorf("%s after the entry point of an image: %q", command, got)
		}
		p = parsed[Pod](t, `{"spec":{"containers":[{"command":`+command+`},{"command":`+command+`}]}}`)
		if got := p.Spec.lease(); got != "" {
			t.Errorf("%s twice: %q", command, got)
		}
	}
	apart := parsed[Pod](t, `{"spec":{"containers":[{"command":["pitcrew"],"args":["run","--checkpoint-dir=gs://b/run","--","python3"]}]}}`)
	if got := apart.Spec.lease(); got != "gs://b/run" {
		t.Errorf("its arguments say %q", got)
	}
	two := parsed[Pod](t, `{"spec":{"containers":[{"command":["pitcrew","run","--checkpoint-dir=gs://b/run","--","python3"]},{"command":["pitcrew","run","--","other"]}]}}`)
	if got := two.Spec.lease(); got != "" {
		t.Errorf("beside a crew without a directory: %q", got)
	}
}
