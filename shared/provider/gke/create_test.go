package gke_test

import (
	"net/http"
	"strings"
	"testing"

	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/provider/gke/gketest"
	"pitstop.internal/shared/reason"
)

const token = "hunter2-hunter2"

// toCreate is a cluster whose Job was read and deleted, and the Job's manifest with its values.
func toCreate(t *testing.T) (c *cluster, p *gke.Clusters, r provider.Ref, spec []byte) {
	t.Helper()
	c = newCluster(t)
	c.do(http.MethodPost, "/apis/batch/v1/namespaces/default/jobs",
		`{"metadata":{"name":"llama"},"spec":`+strings.Replace(jobSpec(""), `"name":"training"`, `"name":"training","env":[{"name":"TOKEN","value":"`+token+`"}]`, 1)+`}`)
	p, _ = c.clusters()
	s, err := p.Read(t.Context(), provider.Ref{Project: project, Zone: "us-east5/research/default", Name: "llama"})
	if err != nil {
		t.Fatal(err)
	}
	if spec, err = (gke.Orders{}).Whole(s.Spec, s.Values); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Delete(t.Context(), s.Ref, "delete-1"); err != nil {
		t.Fatal(err)
	}
	return c, p, s.Ref, spec
}

// TestALostAnswerCreatesOnce: the call may have worked, and the same request finds out.
func TestALostAnswerCreatesOnce(t *testing.T) {
	for name, f := range map[string]gketest.Fault{"the answer is lost": {LoseAnswer: true}, "the request is lost": {LoseRequest: true}, "the server has trouble": {Code: http.StatusServiceUnavailable}} {
		c, p, r, spec := toCreate(t)
		f.Verb = "create"
		c.Inject(f)
		if _, err := p.Create(t.Context(), r, spec, nil, "create-1"); provider.Failure(err) == nil || provider.Failure(err).Class != reason.Transient {
			t.Errorf("%s: %v", name, err)
		}
		if op, err := p.Create(t.Context(), r, spec, nil, "create-1"); op != "" || err != nil {
			t.Errorf("%s: asked again: %q, %v", name, op, err)
		}
		if o, err := c.List(t.Context()); err != nil || len(o.Jobs) != 1 || o.Jobs[0].Annotations[gke.AnnotationRequest] != "create-1" {
			t.Errorf("%s: %+v, %v", name, o.Jobs, err)
		}
	}
}

// TestWhoTookTheNameHasToBeRead: until then nobody knows whether the call worked.
func TestWhoTookTheNameHasToBeRead(t *testing.T) {
	c, p, r, spec := toCreate(t)
	c.job("llama", "")
	c.Inject(gketest.Fault{Verb: "list", Resource: "jobs", Code: http.StatusServiceUnavailable})
	if _, err := p.Create(t.Context(), r, spec, nil, "create-1"); provider.Failure(err) == nil || provider.Failure(err).Class != reason.Transient {
		t.Error(err)
	}
	if _, err := p.Create(t.Context(), r, spec, nil, "create-1"); provider.Failure(err) == nil || provider.Failure(err).Class != reason.Exists {
		t.Error(err)
	}
}

// TestARefusalRepeatsNoValue of the manifest's variables, whoever refuses.
func TestARefusalRepeatsNoValue(t *testing.T) {
	for code, class := range map[int]reason.FailureClass{http.StatusForbidden: reason.Invalid, http.StatusUnprocessableEntity: reason.Invalid, http.StatusInternalServerError: reason.Transient} {
		c, p, r, spec := toCreate(t)
		c.Inject(gketest.Fault{Verb: "create", Code: code, Message: `admission webhook "team.example" denied the request: TOKEN="` + token + `" is not allowed`})
		_, err := p.Create(t.Context(), r, spec, nil, "create-1")
		if f := provider.Failure(err); f == nil || f.Class != class || !strings.Contains(f.Message, "is not allowed") || strings.Contains(err.Error(), token) {
			t.Errorf("%d: %v", code, err)
		}
	}
}

// TestAClusterThatDoesNotAnswerIsOpenedAgain: its endpoint may have changed. One that refuses a call is not.
func TestAClusterThatDoesNotAnswerIsOpenedAgain(t *testing.T) {
	c, _, r, spec := toCreate(t)
	p, opened := c.clusters()
	for i, f := range []gketest.Fault{{Code: http.StatusForbidden}, {Code: http.StatusServiceUnavailable}, {LoseRequest: true}} {
		c.Inject(f)
		if _, err := p.Create(t.Context(), r, spec, nil, "create-1"); err == nil {
			t.Error("it was created")
		}
		if want := max(1, i); *opened != want {
			t.Errorf("after call %d it was opened %d times, want %d", i, *opened, want)
		}
	}
	if _, err := p.Create(t.Context(), r, spec, nil, "create-1"); err != nil || *opened != 3 {
		t.Errorf("opened %d times, %v", *opened, err)
	}
}
