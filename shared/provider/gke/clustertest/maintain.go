package clustertest

import (
	"context"
	"net/http"
	"strings"
	"time"

	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/gke"
	"pitstop.internal/shared/reason"
)

// changing notes the paths of the calls that change something. before is called before the first of them.
type changing struct {
	next   http.RoundTripper
	before func()
	paths  []string
}

func (c *changing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet {
		if c.before != nil && len(c.paths) == 0 {
			c.before()
		}
		c.paths = append(c.paths, r.Method+" "+r.URL.Path)
	}
	next := c.next
	if next == nil {
		next = http.DefaultTransport
	}
	return next.RoundTrip(r)
}

// maintains starts the maintenance of slices as the functions do, and returns which calls changed something. Before the first of them,
// something else may happen.
func (s scene) maintains(before func(), of ...provider.Ref) (calls []string, err error) {
	s.t.Helper()
	seen := &changing{next: s.HTTP.Transport, before: before}
	client := gke.Client{HTTP: &http.Client{Transport: seen}, URL: s.URL, Token: func(context.Context) (string, error) { return s.Token, nil }}
	clusters := gke.New([]gke.Cluster{{Project: project, Location: location, Name: research}}, // all namespaces of it
		func(context.Context, gke.Cluster) (gke.Client, error) { return client, nil }, time.Now)
	op, err := clusters.Maintain(s.t.Context(), of)
	if op != "" {
		s.t.Errorf("operation %s", op)
	}
	return seen.paths, err
}

// announces writes on a machine that maintenance comes, and whether it can be moved.
func (s scene) announces(node string, movable bool) {
	s.t.Helper()
	word := map[bool]string{true: "true", false: "false"}[movable]
	s.do(http.MethodPatch, nodes+"/"+node, object{"metadata": object{"annotations": object{
		"node.gke.io/upcoming-maintenance": `{"maintenanceStatus":"PENDING","canReschedule":"` + word + `","windowStartTime":"2099-01-01T00:00:00Z"}`,
	}}})
}

// labelled are the machines of this case that have the label, by the ends of their names.
func (s scene) labelled() string {
	s.t.Helper()
	var all []string
	for _, n := range list(s.read(nodes+"?labelSelector=clustertest="+s.ns), "items") {
		if label(n, gke.LabelMaintain) == "true" {
			all = append(all, strings.TrimPrefix(text(n, "metadata", "name"), s.ns+"-"))
		}
	}
	return strings.Join(all, " ")
}

// trains makes a Job on two machines, of which the first announces maintenance.
func (s scene) trains() provider.Slice {
	s.t.Helper()
	s.announces(s.node("a"), true)
	s.node("b")
	s.do(http.MethodPost, s.jobs(), s.job("j", 2, nil))
	r := s.turns("j", "", evidence.Ready)
	if r.Notice == nil || !r.Notice.CanReschedule {
		s.t.Errorf("its notice is %+v", r.Notice)
	}
	return r
}

// maintaining is the verb that starts maintenance early.
func maintaining() map[string]func(scene) {
	return map[string]func(scene){
		"maintain: a machine is labelled once":                                maintainAMachineIsLabelledOnce,
		"maintain: all machines of a slice that announce it are labelled":     maintainAllMachinesOfASliceThatAnnounceItAreLabelled,
		"maintain: all slices of a JobSet at once":                            maintainAllSlicesOfAJobSetAtOnce,
		"maintain: none is labelled where one cannot be moved":                maintainNoneIsLabelledWhereOneCannotBeMoved,
		"maintain: none is labelled that announces nothing":                   maintainNoneIsLabelledThatAnnouncesNothing,
		"maintain: a machine that another training may share is not labelled": maintainAMachineThatAnotherTrainingMayShareIsNotLabelled,
		"maintain: a machine that was made anew is not labelled":              maintainAMachineThatWasMadeAnewIsNotLabelled,
		"maintain: another life is left alone":                                maintainAnotherLifeIsLeftAlone,
		"maintain: a slice that does not train is left alone":                 maintainASliceThatDoesNotTrainIsLeftAlone,
	}
}

func maintainAMachineIsLabelledOnce(s scene) {
	r := s.trains()
	before := s.read(nodes + "/" + s.ns + "-a")
	calls, err := s.maintains(nil, r.Ref)
	s.must(err)
	if got := s.labelled(); got != "a" || len(calls) != 1 {
		s.t.Errorf("%q; %q have the label", calls, got)
	}
	again, err := s.maintains(nil, r.Ref)
	s.must(err)
	after := s.read(nodes + "/" + s.ns + "-a")
	if len(again) > 0 || label(after, "clustertest") != s.ns || field(after, "spec", "unschedulable") != nil ||
		text(after, "metadata", "annotations", "node.gke.io/upcoming-maintenance") != text(before, "metadata", "annotations", "node.gke.io/upcoming-maintenance") {
		s.t.Errorf("%q: it was %v, and is %v", again, before["metadata"], after["metadata"])
	}
}

func maintainAllMachinesOfASliceThatAnnounceItAreLabelled(s scene) {
	r := s.trains()
	s.announces(s.ns+"-b", true)
	calls, err := s.maintains(nil, r.Ref)
	s.must(err)
	if got := s.labelled(); got != "a b" || len(calls) != 2 {
		s.t.Errorf("%q; %q have the label", calls, got)
	}
}

func maintainAllSlicesOfAJobSetAtOnce(s scene) {
	for _, n := range []string{"a", "b", "c", "d"} {
		s.announces(s.node(n), true)
	}
	s.do(http.MethodPost, s.jobSets(), s.jobSet("big", 2, nil, nil))
	r, other := s.turns("big-slice-0", "big", evidence.Ready), s.turns("big-slice-1", "big", evidence.Ready)
	calls, err := s.maintains(nil, r.Ref, other.Ref)
	s.must(err)
	if got := s.labelled(); got != "a b c d" || len(calls) != 4 {
		s.t.Errorf("%q; %q have the label", calls, got)
	}
}

func maintainNoneIsLabelledWhereOneCannotBeMoved(s scene) {
	r := s.trains()
	s.announces(s.ns+"-b", false)
	calls, err := s.maintains(nil, r.Ref)
	s.classed(err, reason.NotInState, reason.CodeNotEarly)
	if n := s.reading("j", "").Notice; n == nil || n.CanReschedule || len(calls) > 0 {
		s.t.Errorf("%q, and its notice is %+v", calls, n)
	}
}

func maintainNoneIsLabelledThatAnnouncesNothing(s scene) {
	s.node("a")
	s.do(http.MethodPost, s.jobs(), s.job("j", 1, nil))
	calls, err := s.maintains(nil, s.turns("j", "", evidence.Ready).Ref)
	s.classed(err, reason.NotInState, reason.CodeNotEarly)
	if len(calls) > 0 {
		s.t.Errorf("%q", calls)
	}
}

func maintainAMachineThatAnotherTrainingMayShareIsNotLabelled(s scene) {
	s.announces(s.node("a"), true)
	j := s.job("j", 1, nil)
	two := object{"google.com/tpu": "2"}
	list(j, "spec", "template", "spec", "containers")[0].(object)["resources"] = object{"requests": two, "limits": two} //nolint:forcetypeassert // the template has one
	s.do(http.MethodPost, s.jobs(), j)
	calls, err := s.maintains(nil, s.turns("j", "", evidence.Ready).Ref)
	s.classed(err, reason.NotInState, reason.CodeNotEarly)
	if len(calls) > 0 || !strings.Contains(err.Error(), "it has 2 of the 4 chips there") {
		s.t.Errorf("%q: %v", calls, err)
	}
}

func maintainAMachineThatWasMadeAnewIsNotLabelled(s scene) {
	r := s.trains()
	calls, err := s.maintains(func() {
		s.do(http.MethodDelete, nodes+"/"+s.ns+"-a", nil)
		s.until("the machine is gone", func() bool { return s.gone(nodes + "/" + s.ns + "-a") })
		s.node("a")
	}, r.Ref)
	s.classed(err, reason.Invalid, "")
	if got := s.labelled(); got != "" || len(calls) != 1 {
		s.t.Errorf("%q; %q has the label", calls, got)
	}
}

func maintainAnotherLifeIsLeftAlone(s scene) {
	r := s.trains()
	for life, class := range map[string]reason.FailureClass{otherUID: reason.NotFound, "": reason.Invalid} {
		other := r.Ref
		other.Life = life
		if calls, err := s.maintains(nil, other); len(calls) > 0 || provider.Failure(err) == nil || provider.Failure(err).Class != class {
			s.t.Errorf("%q: %v", calls, err)
		}
	}
}

func maintainASliceThatDoesNotTrainIsLeftAlone(s scene) {
	s.announces(s.node("a"), true)
	s.do(http.MethodPost, s.jobs(), s.job("j", 2, nil)) // one of its Pods finds no machine
	s.runs("j", 1)
	calls, err := s.maintains(nil, s.reading("j", "").Ref)
	s.classed(err, reason.NotInState, reason.CodeNotReady)
	if len(calls) > 0 {
		s.t.Errorf("%q", calls)
	}
}
