package clustertest

import (
	"slices"
	"time"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/provider"
)

// begins makes a Job or JobSet, waits until so many Pods of each Job of it run, and returns their readings and a time after which they
// were made.
func (s scene) begins(manifest object, group string, n int, jobs ...string) (all []provider.Slice, before time.Time) {
	s.t.Helper()
	path := s.jobs()
	if group != "" {
		path = s.jobSets()
	}
	s.do("POST", path, manifest)
	for _, job := range jobs {
		for i := range n {
			s.node(job + "-" + string(rune('a'+i)))
		}
	}
	for _, job := range jobs {
		for _, p := range s.runs(job, n) {
			at, err := time.Parse(time.RFC3339, text(p, "metadata", "creationTimestamp"))
			if err != nil {
				s.t.Fatal(err)
			}
			if at.After(before) {
				before = at
			}
		}
	}
	for _, job := range jobs {
		all = append(all, s.turns(job, group, incident.Ready))
	}
	s.Pass(2 * time.Second)
	return all, before.Add(time.Second)
}

// restarts has the Pods of slices restarted as the functions do.
func (s scene) restarts(before time.Time, all ...provider.Slice) error {
	s.t.Helper()
	var refs []provider.Ref
	for _, r := range all {
		ref := r.Ref
		ref.Life = r.Incarnation.ID
		refs = append(refs, ref)
	}
	return s.provides().Restart(s.t.Context(), refs, before)
}

// uids are those of the Pods of a Job that are not on their way out.
func (s scene) uids(job string) (all []string) {
	s.t.Helper()
	for _, p := range s.podsOf(job) {
		all = append(all, uid(p))
	}
	slices.Sort(all)
	return all
}

// keepsPods fails the case unless a restart is refused like that, and no Pod of the Job is touched.
func (s scene) keepsPods(job string, class incident.FailureClass, code incident.Code, restart func() error) {
	s.t.Helper()
	was := s.uids(job)
	s.classed(restart(), class, code)
	if is := s.uids(job); len(was) == 0 || !slices.Equal(is, was) {
		s.t.Errorf("the Pods %v were touched: %v", was, is)
	}
}

// restarting are the promises about restarts.
func restarting() map[string]func(scene) {
	never := func(change object) func(scene) {
		return func(s scene) {
			all, before := s.begins(s.job("a", 2, change), "", 2, "a")
			if all[0].Restartable {
				s.t.Errorf("%+v", all[0])
			}
			s.keepsPods("a", incident.NotInState, "", func() error { return s.restarts(before, all...) })
		}
	}
	return map[string]func(scene){
		"restart: a Job makes all its Pods anew, and each counts as a failure": func(s scene) {
			all, before := s.begins(s.job("a", 2, object{"backoffLimit": 2}), "", 2, "a")
			was := s.uids("a")
			if !all[0].Restartable || !all[0].Torn.IsZero() {
				s.t.Fatalf("%+v", all[0])
			}
			if err := s.restarts(before, all...); err != nil {
				s.t.Fatal(err)
			}
			s.until("both Pods are made anew", func() bool {
				is := s.runs("a", 2)
				return !slices.Contains(was, uid(is["0"])) && !slices.Contains(was, uid(is["1"]))
			})
			job := s.read(s.jobs() + "/a")
			if uid(job) != all[0].Incarnation.ID || number(job, "status", "failed") != 2 || status(job, "Failed") != "" {
				s.t.Errorf("the Job is %v", job["status"])
			}
			if r := s.turns("a", "", incident.Ready); !r.Torn.IsZero() || r.Restartable {
				s.t.Errorf("its restarts are spent: %+v", r)
			}
		},
		"restart: a repeated call touches no new Pod": func(s scene) {
			all, before := s.begins(s.job("a", 2, object{"backoffLimit": 9}), "", 2, "a")
			was := s.uids("a")
			if err := s.restarts(before, all...); err != nil {
				s.t.Fatal(err)
			}
			s.until("both Pods are made anew", func() bool {
				is := s.runs("a", 2)
				return !slices.Contains(was, uid(is["0"])) && !slices.Contains(was, uid(is["1"]))
			})
			is := s.uids("a")
			if err := s.restarts(before, all...); err != nil || !slices.Equal(s.uids("a"), is) {
				s.t.Errorf("%v; the Pods are %v, and were %v", err, s.uids("a"), is)
			}
		},
		"restart: a deletion beyond the last restart fails the Job": func(s scene) { // which is why Pitstop makes no such call
			s.begins(s.job("a", 2, object{"backoffLimit": 1}), "", 2, "a")
			for _, p := range s.podsOf("a") {
				s.try("DELETE", s.pods()+"/"+text(p, "metadata", "name"), nil)
			}
			if c := s.becomes(s.jobs()+"/a", "Failed"); text(c, "reason") != "BackoffLimitExceeded" {
				s.t.Errorf("it has failed: %v", c)
			}
		},
		"restart: no restart is left":               never(object{"backoffLimit": 1}),
		"restart: the end of a Pod is judged":       never(object{"backoffLimit": 9, "podReplacementPolicy": "Failed"}),
		"restart: the failures of each index count": never(object{"backoffLimitPerIndex": 9}),
		"restart: a JobSet makes all its Jobs anew": func(s scene) {
			jobs := []string{"a-slice-0", "a-slice-1"}
			all, before := s.begins(s.jobSet("a", 2, object{"maxRestarts": 1}, nil), "a", 2, jobs...)
			for _, r := range all {
				if !r.Restartable {
					s.t.Fatalf("%+v", r)
				}
			}
			if err := s.restarts(before, all...); err != nil {
				s.t.Fatal(err)
			}
			for i, job := range jobs {
				s.until(job+" is another one", func() bool {
					r := s.reading(job, "a")
					return r.Condition == incident.Ready && !r.Incarnation.Same(all[i].Incarnation)
				})
			}
			if n := number(s.read(s.jobSets()+"/a"), "status", "restartsCountTowardsMax"); n != 1 {
				s.t.Errorf("%d restarts count", n)
			}
			if r := s.reading(jobs[0], "a"); r.Restartable {
				s.t.Errorf("its restarts are spent: %+v", r)
			}
		},
		"restart: another life is left alone": func(s scene) {
			all, before := s.begins(s.job("a", 2, object{"backoffLimit": 9}), "", 2, "a")
			for _, life := range []string{"another-uid", ""} {
				all[0].Incarnation.ID = life
				s.keepsPods("a", incident.NotFound, incident.CodeOtherLife, func() error { return s.restarts(before, all...) })
			}
		},
		"restart: what is suspended is left alone": func(s scene) {
			all, before := s.begins(s.job("a", 1, object{"backoffLimit": 9}), "", 1, "a")
			s.do("PATCH", s.jobs()+"/a", object{"spec": object{"suspend": true}})
			if err := s.restarts(before, all...); err != nil {
				s.classed(err, incident.NotInState, "")
			}
			if n := number(s.read(s.jobs()+"/a"), "status", "failed"); n != 0 {
				s.t.Errorf("%d Pods count as failed", n)
			}
		},
	}
}
