// Package clustertest holds what every API server of a GKE cluster promises to Pitstop, as far as Jobs, JobSets, Pods, Nodes, Slices and what
// Jobs wait in are concerned. It asks by plain HTTP with a token. The simulated server of gketest is asked, and by scripts/check --cluster a real one.
//
// A real cluster needs the JobSet controller, and machines that kwok simulates: nodes are made through the API, and Pods end when a
// case writes their status. Each case has a namespace and nodes of its own.
package clustertest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// Cluster is an API server, and what its world can do.
type Cluster struct {
	// URL is the server's address, Token what callers are let in with, and HTTP what calls it.
	URL, Token string
	HTTP       *http.Client
	// Pass lets time pass in the cluster: a simulated one moves its clock, a real one waits.
	Pass func(d time.Duration)
	// Parallel lets the cases run side by side, where time passes by itself.
	Parallel bool
	// Silence stops the heartbeat of a node. Where that is not possible it is nil, and the cases that need it are left out.
	Silence func(t *testing.T, node string)
	// Slices says that the cluster has the Slices of TPU7x. Only GKE defines them: on another cluster the cases that need them are left
	// out.
	Slices bool
	// Name begins the names of namespaces and nodes, and differs between runs on one cluster.
	Name string
}

type object = map[string]any

// scene is a case with its namespace.
type scene struct {
	Cluster
	t  *testing.T
	ns string
}

// answer is what a call was answered with.
type answer struct {
	code   int
	header http.Header
	body   object
}

const mergePatch = "application/merge-patch+json"

// try makes a call.
func (s scene) try(method, path string, body any) answer {
	s.t.Helper()
	return s.send(method, path, map[string]string{http.MethodPatch: mergePatch}[method], s.Token, body)
}

func (s scene) send(method, path, contentType, token string, body any) answer {
	s.t.Helper()
	var raw []byte
	switch b := body.(type) {
	case nil:
	case string:
		raw = []byte(b)
	default:
		var err error
		if raw, err = json.Marshal(b); err != nil {
			s.t.Fatal(err)
		}
	}
	if contentType == "" {
		contentType = "application/json"
	}
	req, err := http.NewRequestWithContext(context.WithoutCancel(s.t.Context()), method, s.URL+path, bytes.NewReader(raw)) // cases tidy up after themselves
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", contentType)
	req.Header.Set("Accept", "application/json")
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := s.HTTP.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	text, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatalf("%s %s: %v", method, path, err)
	}
	a := answer{code: res.StatusCode, header: res.Header}
	if err := json.Unmarshal(text, &a.body); err != nil {
		s.t.Fatalf("%s %s: answer %d is no JSON object: %.200s", method, path, res.StatusCode, text)
	}
	return a
}

// do makes a call that has to succeed.
func (s scene) do(method, path string, body any) object {
	s.t.Helper()
	a := s.try(method, path, body)
	if a.code >= 300 {
		s.t.Fatalf("%s %s: answer %d: %v", method, path, a.code, a.body["message"])
	}
	return a.body
}

// refused makes a call that has to fail in this way.
func (s scene) refused(a answer, code int, reason string) object {
	s.t.Helper()
	if a.code != code || text(a.body, "kind") != "Status" || text(a.body, "status") != "Failure" || text(a.body, "reason") != reason ||
		number(a.body, "code") != code || text(a.body, "message") == "" {
		s.t.Fatalf("answer %d: %v; want %d %s", a.code, a.body, code, reason)
	}
	return a.body
}

func (s scene) read(path string) object {
	s.t.Helper()
	return s.do(http.MethodGet, path, nil)
}

func (s scene) gone(path string) bool {
	return s.try(http.MethodGet, path, nil).code == http.StatusNotFound
}

// until lets time pass until something is so.
func (s scene) until(what string, is func() bool) {
	s.t.Helper()
	for range 400 {
		if is() {
			return
		}
		s.Pass(time.Second)
	}
	s.t.Fatalf("it does not come to this: %s", what)
}

// stays lets a while pass in which something has to stay so.
func (s scene) stays(what string, is func() bool) {
	s.t.Helper()
	for range 20 {
		if !is() {
			s.t.Fatalf("it does not stay so: %s", what)
		}
		s.Pass(time.Second)
	}
}

// The paths of the namespace of a case.

func (s scene) jobs() string { return "/apis/batch/v1/namespaces/" + s.ns + "/jobs" }

func (s scene) jobSets() string {
	return "/apis/jobset.x-k8s.io/v1alpha2/namespaces/" + s.ns + "/jobsets"
}
func (s scene) pods() string     { return "/api/v1/namespaces/" + s.ns + "/pods" }
func (s scene) services() string { return "/api/v1/namespaces/" + s.ns + "/services" }

const nodes = "/api/v1/nodes"

// node makes a machine with four chips that only this case uses.
func (s scene) node(name string) string {
	s.t.Helper()
	name = s.ns + "-" + name
	now := time.Now().UTC().Format(time.RFC3339)
	size := object{"google.com/tpu": "4", "cpu": "8", "memory": "16Gi", "pods": "16"}
	s.do(http.MethodPost, nodes, object{
		"apiVersion": "v1", "kind": "Node",
		"metadata": object{"name": name, "labels": object{"clustertest": s.ns, "cloud.google.com/gke-nodepool": s.ns, "cloud.google.com/gke-tpu-accelerator": "tpu-v6e-slice"}, "annotations": object{"kwok.x-k8s.io/node": "fake"}},
		"status": object{
			"capacity": size, "allocatable": size,
			"conditions": []any{object{"type": "Ready", "status": "True", "reason": "KubeletReady", "lastHeartbeatTime": now, "lastTransitionTime": now}},
		},
	})
	s.t.Cleanup(func() { s.try(http.MethodDelete, nodes+"/"+name, nil) })
	return name
}

// template is that of a Pod that takes a whole machine of this case.
func (s scene) template() object {
	four := object{"google.com/tpu": "4"}
	return object{"spec": object{
		"restartPolicy": "Never", "nodeSelector": object{"clustertest": s.ns}, "terminationGracePeriodSeconds": 5,
		"containers": []any{object{"name": "training", "image": "training:1", "resources": object{"requests": four, "limits": four}}},
	}}
}

// job is the manifest of an indexed Job of so many Pods, with changes of its spec.
func (s scene) job(name string, n int, spec object) object {
	all := object{"completionMode": "Indexed", "parallelism": n, "completions": n, "backoffLimit": 0, "template": s.template()}
	for k, v := range spec {
		all[k] = v
	}
	return object{"apiVersion": "batch/v1", "kind": "Job", "metadata": object{"name": name}, "spec": all}
}

// jobSet is the manifest of a JobSet of so many slices with two Pods each. A policy of nil is none.
func (s scene) jobSet(name string, slices int, policy, job object) object {
	spec := object{"suspend": false, "network": object{"enableDNSHostnames": true}, "replicatedJobs": []any{object{
		"name": "slice", "replicas": slices, "template": object{"spec": s.job("", 2, job)["spec"]},
	}}}
	if policy != nil {
		spec["failurePolicy"] = policy
	}
	return object{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "metadata": object{"name": name}, "spec": spec}
}

// podsOf are the Pods of a Job that are not on their way out, by index.
func (s scene) podsOf(job string) []object {
	s.t.Helper()
	var all []object
	for _, o := range list(s.read(s.pods()+"?labelSelector=batch.kubernetes.io/job-name="+job), "items") {
		if p, ok := o.(object); ok && text(p, "metadata", "deletionTimestamp") == "" {
			all = append(all, p)
		}
	}
	return all
}

// runs waits until so many Pods of a Job are ready, and returns them by index.
func (s scene) runs(job string, n int) map[string]object {
	s.t.Helper()
	ready := map[string]object{}
	s.until(fmt.Sprintf("%d Pods of %s are ready", n, job), func() bool {
		clear(ready)
		for _, p := range s.podsOf(job) {
			if status(p, "Ready") == "True" {
				ready[label(p, "batch.kubernetes.io/job-completion-index")] = p
			}
		}
		return len(ready) == n
	})
	return ready
}

// ends writes the end of a Pod with a code into its status, as its machine would.
func (s scene) ends(pod object, code int) {
	s.t.Helper()
	phase := "Failed"
	if code == 0 {
		phase = "Succeeded"
	}
	now := time.Now().UTC().Format(time.RFC3339)
	s.do(http.MethodPatch, s.pods()+"/"+text(pod, "metadata", "name")+"/status", object{"status": object{
		"phase": phase, "containerStatuses": []any{object{
			"name": "training", "image": "training:1", "imageID": "", "ready": false, "restartCount": 0,
			"state": object{"terminated": object{"exitCode": code, "startedAt": now, "finishedAt": now}},
		}},
	}})
}

// waits until a condition of an object is true, and returns it.
func (s scene) becomes(path, typ string) (c object) {
	s.t.Helper()
	s.until(path+" is "+typ, func() bool {
		c = conditionOf(s.read(path), typ)
		return text(c, "status") == "True"
	})
	return c
}

// Parts of an object.

func field(o any, path ...string) any {
	for _, step := range path {
		m, ok := o.(object)
		if !ok {
			return nil
		}
		o = m[step]
	}
	return o
}

func text(o any, path ...string) string {
	s, _ := field(o, path...).(string)
	return s
}

func number(o any, path ...string) int {
	n, _ := field(o, path...).(float64)
	return int(n)
}

func list(o any, path ...string) []any {
	l, _ := field(o, path...).([]any)
	return l
}

func uid(o any) string { return text(o, "metadata", "uid") }

func label(o any, name string) string { return text(o, "metadata", "labels", name) }

func conditionOf(o any, typ string) object {
	for _, c := range list(o, "status", "conditions") {
		if m, ok := c.(object); ok && text(m, "type") == typ {
			return m
		}
	}
	return nil
}

func status(o any, typ string) string { return text(conditionOf(o, typ), "status") }

func names(l object) string {
	var all []string
	for _, o := range list(l, "items") {
		all = append(all, text(o, "metadata", "name"))
	}
	return strings.Join(all, " ")
}
