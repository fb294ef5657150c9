package clustertest

import (
	"net/http"
	"slices"
	"time"

	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/provider"
)

// hangs makes a Job of one Pod, silences its machine, and deletes the Job, or leaves that to a case. It returns the reading before.
func (s scene) hangs(deletes bool) (r provider.Slice, machine string) {
	s.t.Helper()
	if s.Silence == nil {
		s.t.Skip("no node of this cluster can be silenced")
	}
	machine = s.node("a")
	j := s.job("j", 1, ignoresLost())
	c := list(j, "spec", "template", "spec", "containers")[0].(object) //nolint:forcetypeassert // the template has one
	c["command"], c["args"] = []any{"/bin/pitcrew", "run", "--checkpoint-dir=gs://ckpt/run"}, []any{"--", "python3", "train.py", "--checkpoint-dir=/tmp"}
	s.do(http.MethodPost, s.jobs(), j)
	r = s.turns("j", "", incident.Ready)
	s.Silence(s.t, machine)
	s.until("its machine is silent", func() bool { return status(s.read(nodes+"/"+machine), "Ready") == "Unknown" })
	if deletes {
		s.deletes(r)
	}
	return r, machine
}

// hung waits until the Job hangs, and returns on what.
func (s scene) hung() provider.Hung {
	s.t.Helper()
	var r provider.Slice
	s.until("it hangs", func() bool {
		r = s.reading("j", "")
		return len(r.Hung) > 0
	})
	return r.Hung[0]
}

func releasing() map[string]func(scene) {
	return map[string]func(scene){
		"release: a Pod of a deleted Job hangs on a silent machine, and ends by its UID": func(s scene) {
			r, machine := s.hangs(true)
			h := s.hung()
			pod := s.read(s.pods() + "/" + h.Name)
			if h.ID != uid(pod) || h.Life != r.Incarnation.ID || h.Machine != machine || h.Lease != "gs://ckpt/run" || h.Since.IsZero() {
				s.t.Errorf("it hangs on %+v", h)
			}
			ref := r.Ref
			ref.Life = h.Life
			for what, wrong := range map[string]provider.Hung{"of another UID": {Name: h.Name, ID: "0" + h.ID, Life: h.Life}, "of another name": {Name: "j-0", ID: h.ID, Life: h.Life}} {
				if err := s.provides().Release(s.t.Context(), ref, wrong); err != nil || s.gone(s.pods()+"/"+h.Name) {
					s.t.Errorf("a Pod %s: %v", what, err) // which has ended before
				}
			}
			if err := s.provides().Release(s.t.Context(), ref, h); err != nil {
				s.t.Fatal(err)
			}
			s.until("it is gone", func() bool { return s.gone(s.pods() + "/" + h.Name) })
			s.turns("j", "", incident.Gone)
			if err := s.provides().Release(s.t.Context(), ref, h); err != nil {
				s.t.Errorf("once more: %v", err)
			}
		},
		"release: while its Job waits for it in the foreground": func(s scene) {
			r, _ := s.hangs(false)
			s.do(http.MethodDelete, s.jobs()+"/j", object{"propagationPolicy": "Foreground"})
			h := s.hung()
			ref := r.Ref
			ref.Life = h.Life
			if err := s.provides().Release(s.t.Context(), ref, h); err != nil {
				s.t.Fatal(err)
			}
			s.until("both are gone", func() bool { return s.gone(s.pods()+"/"+h.Name) && s.gone(s.jobs()+"/j") })
		},
		"release: none of a Job that makes others": func(s scene) {
			r, _ := s.hangs(false)
			pod := s.podsOf("j")
			s.do(http.MethodDelete, s.pods()+"/"+text(pod[0], "metadata", "name"), nil)
			s.until("its Pod is being deleted", func() bool { return len(s.podsOf("j")) == 0 })
			for range 70 { // its time to end is over, and a minute more
				s.Pass(time.Second)
			}
			if left := s.reading("j", ""); len(left.Hung) > 0 {
				s.t.Errorf("it hangs on %+v, and the Job is there", left.Hung)
			}
			ref := r.Ref
			ref.Life = r.Incarnation.ID
			name := text(pod[0], "metadata", "name")
			s.classed(s.provides().Release(s.t.Context(), ref, provider.Hung{Name: name, ID: uid(pod[0]), Life: ref.Life}), incident.NotInState, "")
			if o := s.read(s.pods() + "/" + name); text(o, "status", "phase") == "Failed" || slices.Contains([]any{0}, field(o, "metadata", "deletionGracePeriodSeconds")) {
				s.t.Errorf("it is %v", o["status"])
			}
		},
		"release: none of a machine that answers": func(s scene) {
			s.node("a")
			s.do(http.MethodPost, s.jobs(), s.job("j", 1, nil))
			r := s.turns("j", "", incident.Ready)
			pod := s.podsOf("j")[0]
			ref := r.Ref
			ref.Life = r.Incarnation.ID
			s.classed(s.provides().Release(s.t.Context(), ref, provider.Hung{Name: text(pod, "metadata", "name"), ID: uid(pod), Life: ref.Life}), incident.NotInState, "")
			s.classed(s.provides().Release(s.t.Context(), ref, provider.Hung{Name: text(pod, "metadata", "name"), ID: uid(pod), Life: "another"}), incident.Invalid, "")
			if now := s.turns("j", "", incident.Ready); now.Incarnation != r.Incarnation || len(s.podsOf("j")) != 1 {
				s.t.Errorf("it was %+v, and is %+v", r, now)
			}
		},
	}
}
