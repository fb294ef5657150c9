package events_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"pitstop.internal/events"
)

func TestActs(t *testing.T) {
	for method, want := range map[string]struct {
		act   events.Act
		whole bool
	}{
		"CreateNode": {events.ActCreated, false}, "CreateQueuedResource": {events.ActCreated, true},
		"DeleteNode": {events.ActDeleted, false}, "DeleteQueuedResource": {events.ActDeleted, true},
		"StartNode": {events.ActStarted, false}, "StopNode": {events.ActStopped, false},
		"ReimageNode": {"", false}, "ResetQueuedResource": {"", true}, "UpdateNode": {"", false},
	} {
		act, whole := events.Call{Method: method}.Act()
		if act != want.act || whole != want.whole {
			t.Errorf("%q: %q, whole %t", method, act, whole)
		}
		sinks := events.Sinks(events.Accounts{})
		audit := sinks[slices.IndexFunc(sinks, func(s events.Sink) bool { return s.Name == "tpu-audit" })].Filter
		of := regexp.MustCompile(`[(|]` + method + `[|)]`)
		if selected := of.MatchString(audit); selected != (act != "" || method == "ReimageNode" || method == "ResetQueuedResource") {
			t.Errorf("the sink selects %q: %t", method, selected)
		}
	}
}

// TestActsInACluster: both spellings of a group count, and calls on the status or on something else have no act.
func TestActsInACluster(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		method  string
		suspend *bool
		act     events.Act
		whole   bool
	}{
		{"io.k8s.batch.v1.jobs.create", nil, events.ActCreated, false},
		{"io.k8s.batch.v1.jobs.create", &yes, events.ActCreated, false}, // as Kueue has it
		{"batch.v1.jobs.delete", nil, events.ActDeleted, false},
		{"io.k8s.batch.v1.jobs.delete", nil, events.ActDeleted, false},
		{"io.k8s.batch.v1.jobs.patch", nil, "", false},
		{"io.k8s.batch.v1.jobs.patch", &yes, events.ActStopped, false},
		{"io.k8s.batch.v1.jobs.update", &no, events.ActStarted, false},
		{"io.x-k8s.jobset.v1alpha2.jobsets.create", nil, events.ActCreated, true},
		{"io.x-k8s.jobset.v1alpha2.jobsets.delete", nil, events.ActDeleted, true},
		{"jobset.x-k8s.io.v1alpha2.jobsets.delete", nil, events.ActDeleted, true},
		{"io.x-k8s.jobset.v1beta1.jobsets.patch", &yes, events.ActStopped, true},
		{"io.k8s.batch.v1.jobs.status.update", &yes, "", false},
		{"io.k8s.batch.v1.jobs.deletecollection", nil, "", false},
		{"io.k8s.batch.v1.cronjobs.delete", nil, "", false},
		{"io.k8s.batch.v1.jobsets.delete", nil, "", false},
		{"io.k8s.core.v1.pods.delete", nil, "", false},
		{"jobs.delete", nil, "", false},
		{"delete", nil, "", false},
	} {
		if act, whole := (events.Call{Method: c.method, Suspend: c.suspend}).Act(); act != c.act || whole != c.whole {
			t.Errorf("%s: %q, whole %t, want %q, %t", c.method, act, whole, c.act, c.whole)
		}
	}
}

// TestARefusedJobShowsNoValues: the API server repeats the whole template of a Job that it refuses to change.
func TestARefusedJobShowsNoValues(t *testing.T) {
	const secret = "hunter2"
	e, err := events.Read([]byte(`{"protoPayload":{"@type":"type.googleapis.com/google.cloud.audit.AuditLog","serviceName":"k8s.io","methodName":"io.k8s.batch.v1.jobs.update",` +
		`"authenticationInfo":{"principalEmail":"ann@example.com"},"resourceName":"batch/v1/namespaces/train/jobs/llama-8b","request":{"kind":"Job","spec":{"suspend":false}},` +
		`"status":{"code":3,"message":"Job.batch \"llama-8b\" is invalid: spec.template: Invalid value: core.PodTemplateSpec{Env:[]core.EnvVar{core.EnvVar{Name:\"T\", Value:\"` + secret + `\"}}}: field is immutable"}},` +
		`"insertId":"i","resource":{"type":"k8s_cluster","labels":{"project_id":"demo","location":"us-east5","cluster_name":"research"}},` +
		`"timestamp":"2026-11-12T02:14:06.512Z","logName":"projects/demo/logs/cloudaudit.googleapis.com%2Factivity"}`))
	if err != nil || e.Call.Code != 3 {
		t.Fatalf("%+v, %v", e, err)
	}
	for _, said := range []string{e.Call.Message, e.Describe(), e.Text} {
		if strings.Contains(said, secret) {
			t.Errorf("it says %s", said)
		}
	}
	if !strings.Contains(e.Call.Message, "spec.template: Invalid value") {
		t.Errorf("it does not say why: %s", e.Call.Message)
	}
}
