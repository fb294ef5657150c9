package clustertest

import (
	"context"
	"errors"
	"net/http"
	"time"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/gke"
)

const (
	project  = "demo"
	location = "us-east5"
	research = "research"
)

// provides is Pitstop's own provider of the namespace of a case.
func (s scene) provides() *gke.Clusters {
	client := gke.Client{HTTP: s.HTTP, URL: s.URL, Token: func(context.Context) (string, error) { return s.Token, nil }}
	return gke.New([]gke.Cluster{{Project: project, Location: location, Name: research, Namespaces: []string{s.ns}}},
		func(context.Context, gke.Cluster) (gke.Client, error) { return client, nil }, time.Now)
}

// ref names a slice; a group is its JobSet.
func (s scene) ref(name, group string) provider.Ref {
	return provider.Ref{Project: project, Zone: location + "/" + research + "/" + s.ns, Name: name, QueuedResource: group}
}

// reading reads a slice as the functions do.
func (s scene) reading(name, group string) provider.Slice {
	s.t.Helper()
	r, err := s.provides().Read(s.t.Context(), s.ref(name, group))
	if err != nil {
		s.t.Fatal(err)
	}
	return r
}

// turns waits until a slice is in a condition, and returns that reading.
func (s scene) turns(name, group string, into incident.Condition) (r provider.Slice) {
	s.t.Helper()
	s.until(name+" is "+string(into), func() bool {
		r = s.reading(name, group)
		return r.Condition == into
	})
	return r
}

// classed fails the case unless an error is one of that class and reason.
func (s scene) classed(err error, class incident.FailureClass, code incident.Code) {
	s.t.Helper()
	var no *provider.Error
	if !errors.As(err, &no) || no.Class != class || no.Code != code || no.Call == "" || no.Message == "" {
		s.t.Fatalf("error %v (%+v), want one of class %s, code %q", err, no, class, code)
	}
}

// deletes deletes a slice that was read.
func (s scene) deletes(r provider.Slice) {
	s.t.Helper()
	if op, err := s.provides().Delete(s.t.Context(), r.Ref, "request-1"); err != nil || op != "" {
		s.t.Fatalf("operation %q, %v", op, err)
	}
}

// verbs are the calls that Pitstop makes to change something.
func verbs() map[string]func(scene) {
	return map[string]func(scene){
		"verb: another life is not deleted": func(s scene) {
			j := s.do(http.MethodPost, s.jobs(), s.idle("j"))
			r := s.ref("j", "")
			r.Life = otherUID
			_, err := s.provides().Delete(s.t.Context(), r, "request-1")
			s.classed(err, incident.NotFound, incident.CodeOtherLife)
			if n := s.read(s.jobs() + "/j"); uid(n) != uid(j) || text(n, "metadata", "deletionTimestamp") != "" {
				s.t.Errorf("%v", n["metadata"])
			}
		},
		"verb: without a life nothing is deleted": func(s scene) {
			s.do(http.MethodPost, s.jobs(), s.idle("j"))
			_, err := s.provides().Delete(s.t.Context(), s.ref("j", ""), "request-1")
			s.classed(err, incident.Invalid, "")
			if text(s.read(s.jobs()+"/j"), "metadata", "deletionTimestamp") != "" {
				s.t.Error("it is being deleted")
			}
		},
		"verb: the life that was read is deleted": func(s scene) {
			s.node("a")
			j := s.do(http.MethodPost, s.jobs(), s.job("j", 1, nil))
			r := s.turns("j", "", incident.Ready)
			if r.Life != uid(j) || r.Incarnation.ID != uid(j) {
				s.t.Errorf("its life is %s, in %+v; want %s", r.Life, r.Incarnation, uid(j))
			}
			s.deletes(r)
			s.until("the Job is gone", func() bool { return s.gone(s.jobs() + "/j") })
			_, err := s.provides().Delete(s.t.Context(), r.Ref, "request-1")
			s.classed(err, incident.NotFound, "")
		},
		"verb: a JobSet is deleted whole": func(s scene) {
			for _, n := range []string{"a", "b", "c", "d"} {
				s.node(n)
			}
			set := s.do(http.MethodPost, s.jobSets(), s.jobSet("big", 2, nil, nil))
			r := s.turns("big-slice-1", "big", incident.Ready)
			if r.Life != uid(set) || r.Incarnation.ID == uid(set) {
				s.t.Errorf("its life is %s, in %+v; want %s", r.Life, r.Incarnation, uid(set))
			}
			wrong := r.Ref
			wrong.Life = r.Incarnation.ID // a Job of it has no say
			_, err := s.provides().Delete(s.t.Context(), wrong, "request-1")
			s.classed(err, incident.NotFound, incident.CodeOtherLife)
			s.deletes(r)
			s.until("all of it is gone", func() bool {
				return s.gone(s.jobSets()+"/big") && len(list(s.read(s.jobs()), "items")) == 0 && len(list(s.read(s.pods()), "items")) == 0
			})
		},
	}
}
