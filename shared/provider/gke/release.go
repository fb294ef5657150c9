package gke

import (
	"context"
	"errors"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/provider"
)

// hung are the Pods of a life that is over, if each that has not ended hangs: its time to end is over, and its machine has stopped to
// answer. Where a machine is gone, the cluster itself ends its Pods, and where it answers, in whatever state, the machine does.
func hung(pods []Pod, nodes map[string]*Node, now time.Time) (all []provider.Hung) {
	for _, p := range pods {
		if p.ended() {
			continue
		}
		n := nodes[p.Spec.NodeName]
		if p.Deleted == nil || now.Sub(*p.Deleted) <= unendedAfter || n == nil || !n.silent() {
			return nil
		}
		life, _ := p.job()
		since := p.Deleted.UTC()
		if at := n.Status.Conditions.of("Ready").Since.UTC(); at.After(since) {
			since = at
		}
		all = append(all, provider.Hung{Name: p.Name, ID: p.UID, Machine: n.Name, Life: life, Since: since, Lease: p.Spec.lease()})
	}
	slices.SortFunc(all, func(a, b provider.Hung) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// over reports whether a Job makes no Pod any more: it is being deleted, or has failed and waits for the ends of its Pods.
// https://kubernetes.io/docs/concepts/workloads/controllers/job/#termination-of-job-pods
func (j Job) over() bool { return j.Deleted != nil || j.Status.Conditions.holds("FailureTarget") }

// silent reports whether the control plane has heard nothing from a machine for its time: a machine that is not ready and says so still
// ends its Pods.
func (n Node) silent() bool { return n.Status.Conditions.of("Ready").Status == "Unknown" }

// leftOf are the Pods of a slice of which only something is left, or none where a Job is left that may make others.
func (o Objects) leftOf(r Reading) (all []Pod) {
	in := func(m Meta) bool { return r.Scope[strings.LastIndex(r.Scope, "/")+1:] == m.Namespace }
	if slices.ContainsFunc(o.Jobs, func(j Job) bool { return in(j.Meta) && j.Name == r.Name && !j.over() }) {
		return nil
	}
	for _, p := range o.Pods {
		if _, name := p.job(); in(p.Meta) && name == r.Name && p.Spec.trains() {
			all = append(all, p)
		}
	}
	return all
}

// lease is the checkpoint directory by whose lease a Pod runs: the command of its one container is pitcrew run, and names the directory
// once. An entry point of the image, a shell, a second container, a second directory, another storage, a name that the crew gives itself, or
// times of its own say nothing for certain.
func (s PodSpec) lease() (dir string) {
	runsOn := slices.ContainsFunc(s.InitContainers, func(c initContainer) bool { return c.RestartPolicy == "Always" })
	if len(s.Containers) != 1 || len(s.Containers[0].Command) == 0 || runsOn {
		return ""
	}
	words := slices.Concat(s.Containers[0].Command, s.Containers[0].Args)
	end := slices.Index(words, "--")
	if end < 2 || path.Base(words[0]) != "pitcrew" || words[1] != "run" {
		return ""
	}
	words = words[:end]
	for i, w := range words {
		flag, value, joined := strings.Cut(w, "=")
		if !joined {
			value = strings.Join(words[i+1:min(i+2, end)], "")
		}
		switch {
		case strings.HasPrefix(flag, "--lease-"), strings.HasSuffix(flag, "-grace"),
			slices.Contains([]string{"--node", "--host", "--slice", "--slices", "--zone", "--project", "--metadata", "--storage-endpoint"}, flag):
			return ""
		case flag != "--checkpoint-dir":
		case dir != "" || value == "" || strings.Contains(value, "$("):
			return ""
		default:
			dir = value
		}
	}
	return dir
}

// Release implements provider.Releaser: it writes that the Pod has failed, and deletes it at once. While its Job is there, that one holds
// every Pod whose end it has not counted, so a deletion alone would not do.
// https://kubernetes.io/docs/concepts/workloads/pods/pod-lifecycle/#pod-termination-forced
func (c *Clusters) Release(ctx context.Context, r provider.Ref, h provider.Hung) error {
	t, err := c.target("release a Pod of", r)
	if err != nil {
		return err
	}
	what := "release Pod " + h.Name + " in " + t.zone
	refuse := func(class incident.FailureClass, why string) error {
		return &provider.Error{Call: what, Class: class, Message: why}
	}
	if !objectName.MatchString(h.Name) || h.ID == "" || h.Life == "" || r.Life != "" && r.Life != h.Life {
		return refuse(incident.Invalid, "no reading says which Pod of which life is meant")
	}
	o, err := c.inNamespace(ctx, t)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(o.Pods, func(p Pod) bool { return p.Name == h.Name && p.UID == h.ID })
	switch {
	case i < 0:
		return nil // it has ended
	case !o.Pods[i].ended():
		readings := Readings(o, t.cluster.Location, t.cluster.Name, c.now())
		same := func(is provider.Hung) bool { return is.ID == h.ID && is.Name == h.Name && is.Life == h.Life }
		k := slices.IndexFunc(readings, func(x Reading) bool {
			return x.Name == r.Name && x.Scope == r.Zone && slices.ContainsFunc(x.Hung, same)
		})
		if k < 0 {
			return refuse(incident.NotInState, "it does not hang any more: its machine answers, or something else of its Job is there")
		}
		if err := c.callPod(ctx, t, what, http.MethodPatch, h.Name+"/status", map[string]any{"metadata": uidOnly(h), "status": map[string]string{"phase": "Failed"}}); err != nil {
			return err
		}
	case o.Pods[i].Deleted == nil:
		return refuse(incident.NotInState, "nobody deletes it")
	}
	if err := c.callPod(ctx, t, what, http.MethodDelete, h.Name, map[string]any{
		"kind": "DeleteOptions", "apiVersion": "v1", "preconditions": uidOnly(h), "gracePeriodSeconds": 0,
	}); err != nil {
		return &provider.PartError{Left: err}
	}
	return nil
}

func uidOnly(h provider.Hung) map[string]string { return map[string]string{"uid": h.ID} }

// callPod makes a call about one Pod. One that is gone needs none.
func (c *Clusters) callPod(ctx context.Context, t target, what, method, name string, body any) error {
	raw, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		return &provider.Error{Call: what, Class: incident.Invalid, Message: err.Error(), Cause: err}
	}
	code, err := c.change(ctx, t, what, method, "/api/v1/namespaces/"+t.namespace+"/pods/"+name, nil, raw, provider.Hidden{})
	var no *provider.Error
	switch {
	case code == http.StatusNotFound:
		return nil
	case errors.As(err, &no) && no.Class == incident.Permission:
		no.Message += "; pitstop gke rbac --allow=release prints the right"
	}
	return err
}
