package operate

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

func TestApprovedIsWhatIsAsked(t *testing.T) {
	deploymenttest.EachStore(t, func(t *testing.T, open ledger.Opener) {
		b := deploymenttest.New(t, open, deploymenttest.Asking())
		b.Allows("recreate")
		b.Refused([]string{"approve", "llama-8b-20261101-9"}, "there is no incident")
		b.Refused([]string{"approve"}, "takes one incident")
		b.Want([]string{"approve", "llama-8b-20261121-3", "--why", "the run matters"}, "demo/llama-8b: approved by ada@example.com: recreate llama-8b")
		if len(b.Sent) != 1 || b.Sent[0].Type != events.TypeRecreateRequested || b.Sent[0].Source != "//pitstop/operator" {
			t.Fatalf("sent is %+v", b.Sent)
		}
		r, err := events.DecodeRecreateRequested(b.Sent[0].Data)
		if err != nil {
			t.Fatal(err)
		}
		w := b.Workload()
		if _, err := w.Fence(r.Pointer(), deploymenttest.Noon); err != nil || len(w.Outbox) > 0 || r.Action != events.ActionDelete {
			t.Errorf("the request %+v: %v, outbox %+v", r, err, w.Outbox)
		}
		if o := w.Orders; len(o) != 1 || o[0].By != "ada@example.com" || o[0].Why != "the run matters" || o[0].Verb != evidence.VerbApprove {
			t.Errorf("recorded is %+v", o)
		}
		b.Refused([]string{"approve", "llama-8b-20261121-3"}, "waits for no approval: it is deleting")
	})
}

// TestWhatCannotBePublishedIsLeftForPatrol: a person who may not publish has said it all the same.
func TestWhatCannotBePublishedIsLeftForPatrol(t *testing.T) {
	b := deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Asking())
	b.Allows("recreate")
	b.Down = errors.New("PermissionDenied: not authorized to publish")
	b.Want([]string{"approve", "llama-8b-20261121-3"}, "approved by ada@example.com", "patrol publishes the next step within a minute", "not authorized to publish")
	w := b.Workload()
	if len(w.Outbox) != 2 || w.Due().After(deploymenttest.Noon) { // the request, and what people are told
		t.Errorf("the outbox holds %+v, due at %s", w.Outbox, w.Due())
	}
}

func TestAYesIsStoredWhereThePolicyIsNotKnown(t *testing.T) {
	b := deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Asking())
	b.Want([]string{"approve", "llama-8b-20261121-3"}, "patrol acts on it within a minute")
	w := b.Workload()
	if in := w.Shown(deploymenttest.Noon).Incident; !in.Granted || in.Phase != view.Approving || len(b.Sent)+len(w.Outbox) > 0 {
		t.Errorf("it stands at %+v, sent is %v", in, b.Sent)
	}
	b.Refused([]string{"approve", "llama-8b-20261121-3"}, "waits for no approval")
}

// TestPeopleAreToldOfAPersonsWord: where somebody is to be told. Without the topic for that nobody is, and nothing is left.
func TestPeopleAreToldOfAPersonsWord(t *testing.T) {
	b := deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Llama())
	b.Want([]string{"cancel", "llama-8b-20261121-3"}, "cancelled by ada@example.com")
	if len(b.Told) != 1 {
		t.Fatalf("told is %+v", b.Told)
	}
	if u, err := events.DecodeIncidentUpdated(b.Told[0].Data); err != nil || u.Step() != "released" || u.Incident != "llama-8b-20261121-3" {
		t.Errorf("told is %+v, %v", u, err)
	}
	b = deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Llama())
	b.Mute = fmt.Errorf("publish: %w", status.Error(codes.NotFound, "there is no such topic"))
	b.Want([]string{"cancel", "llama-8b-20261121-3"}, "cancelled by ada@example.com")
	if w := b.Workload(); len(w.Outbox) != 0 {
		t.Errorf("the outbox holds %+v", w.Outbox)
	}
}

func TestCancelTakesAnIncidentOver(t *testing.T) {
	deploymenttest.EachStore(t, func(t *testing.T, open ledger.Opener) {
		b := deploymenttest.New(t, open, deploymenttest.Llama())
		b.Want([]string{"cancel", "llama-8b-20261121-3", "--why", "I do it myself"}, "demo/llama-8b: cancelled by ada@example.com",
			"a call may still take effect: delete llama-8b: begun 1 m 10 s ago")
		w := b.Workload()
		v := w.Shown(deploymenttest.Noon)
		if v.Incident != nil || v.Closed.Outcome != view.Released || !strings.Contains(v.Closed.Reason, "ada@example.com") {
			t.Fatalf("open is %+v, closed %+v", v.Incident, v.Closed)
		}
		in, err := b.Ledger.Closed(t.Context(), deploymenttest.LlamaID, "llama-8b-20261121-3")
		if err != nil || w.ShownIncident(in, deploymenttest.Noon).Outcome != view.Released {
			t.Errorf("the archive has %+v, %v", in, err)
		}
		b.Refused([]string{"cancel", "llama-8b-20261121-3"}, "it ended released at 2026-11-21 12:00")

		cleared := deploymenttest.Preempted("other").Does("delete-1").Reads(deploymenttest.Is(evidence.Gone, "")).Does("create-1").Cancels()
		if _, err := b.Ledger.Save(t.Context(), cleared.Workload, ledger.Revision{}); err != nil {
			t.Fatal(err)
		}
		b.Refused([]string{"cancel", cleared.Incident.ID}, "pause other holds that")
	})
}

func TestRetryOpensWhatWasGivenUp(t *testing.T) {
	deploymenttest.EachStore(t, func(t *testing.T, open ledger.Opener) {
		b := deploymenttest.New(t, open, deploymenttest.Asking(), deploymenttest.Trains("bert"))
		b.Allows("recreate,restart")
		b.Tells(func(s *deploymenttest.Story) { s.Cancels() })
		said, err := b.Call("retry", "llama-8b", "--why", "quota raised")
		if err != nil || !strings.Contains(said, "demo/llama-8b: tried again in llama-8b-20261121-4") {
			t.Errorf("it says %q, %v", said, err)
		}
		got := b.Workload()
		in := got.Shown(deploymenttest.Noon).Incident
		looks := in != nil && in.Phase == view.Looking && got.Reads(deploymenttest.Noon).Has(incident.ReadSlices, "") && len(b.Sent) == 0
		if deletes := in != nil && in.Phase == view.PhaseDeleting && len(b.Sent) == 1; !looks && !deletes || looks != strings.Contains(said, "patrol looks at it within a minute") {
			t.Errorf("it stands at %+v, sent %+v, and says %q", in, b.Sent, said)
		}
		b.Refused([]string{"retry", "llama-8b"}, "is under way (")
		b.Refused([]string{"retry", "bert"}, "training goes on: step 48,190")
		b.Refused([]string{"retry", "nobody"}, "there is no workload")
	})
}

// TestARetryUnderALooserPolicyNamesTheWayOut: an open incident keeps the switches of its opening.
func TestARetryUnderALooserPolicyNamesTheWayOut(t *testing.T) {
	w := deploymenttest.Preempted("llama-8b").Cancels().Workload
	b := deploymenttest.New(t, ledgertest.NewStore().Open, w)
	b.Allows("")
	b.Want([]string{"retry", "llama-8b"}, "tried again in llama-8b-20261121-4", "; nothing is allowed, so it is only watched: allow what it needs, and once pitstop status "+
		"shows that, pitstop cancel llama-8b-20261121-4, and then pitstop retry llama-8b")
	b.Refused([]string{"retry", "llama-8b"}, "is under way (watching), and nothing of it waits for another try; nothing is allowed")
	b.Allows("recreate,restart")
	b.Refused([]string{"retry", "llama-8b"}, "; it opened before the policy allowed restart, recreate, which counts from the next incident on: "+
		"pitstop cancel llama-8b-20261121-4, and then pitstop retry llama-8b")
	b.Want([]string{"cancel", "llama-8b-20261121-4"}, "cancelled by ada@example.com")
	b.Now = func() time.Time { return deploymenttest.Noon.Add(time.Minute) }
	if got, err := b.Call("retry", "llama-8b"); err != nil || strings.Contains(got, "allowed") || b.Workload().Shown(deploymenttest.Noon).Incident.Switches.Recreate != policy.Yes {
		t.Errorf("after the way out: %v, %s", err, got)
	}
}

func TestAttachAndDetachLabelTheTPUs(t *testing.T) {
	deploymenttest.EachStore(t, func(t *testing.T, open ledger.Opener) {
		three := deploymenttest.Preempted("llama-8b", func(s *deploymenttest.Story) {
			s.Project, s.Names = "tpus", []string{"llama-8b-2", "llama-8b", "llama-8b-1"}
		})
		w := three.IsDeleted().Workload
		b := deploymenttest.New(t, open, w)
		b.Refused([]string{"attach", "llama-8b"}, "--policy is missing")
		b.Want([]string{"attach", "llama-8b", "--policy", "spot", "--why", "it is ours"}, "llama-8b in us-west4-a: labelled pitstop-policy=spot",
			"llama-8b-2: it is gone")
		const node = "projects/tpus/locations/us-west4-a/nodes/llama-8b"
		if b.Labels[node+" pitstop-policy"] != "spot" || b.Labels[node+"-1 pitstop-policy"] != "spot" || len(b.Labels) != 2 {
			t.Errorf("labels are %v", b.Labels)
		}
		b.Want([]string{"detach", "llama-8b"}, "the label is removed")
		if b.Labels[node+" pitstop-policy"] != "" {
			t.Errorf("labels are %v", b.Labels)
		}
		o := b.Workload().Orders
		if len(o) != 2 || o[0].Verb != evidence.VerbAttach || o[0].Text != "to policy spot" || o[0].Why != "it is ours" || o[1].Verb != evidence.VerbDetach {
			t.Errorf("recorded is %+v", o)
		}
		b.Refuses["llama-8b-1"] = errors.New("set label of llama-8b-1: update is not supported while in state PREEMPTED")
		if _, err := b.Call("attach", "llama-8b", "--policy", "watch"); err == nil || !strings.Contains(err.Error(), "in state PREEMPTED") {
			t.Errorf("one that cannot be labelled: %v", err)
		}
	})
}

// TestAttachSaysWhatAPolicyNeverBringsBack: the label is set all the same.
func TestAttachSaysWhatAPolicyNeverBringsBack(t *testing.T) {
	for name, c := range map[string]struct {
		policy  string
		of      events.Capacity
		workers int
		says    []string
		not     string
	}{
		"an on-demand slice under spot": {"spot", events.OnDemand, 4, []string{
			"llama-8b: no Spot slice, and the switch recreate_non_spot is no, limited by preset spot and the deployment, so the policy spot never creates it again, and only waits for Google's own recovery",
			"you: attach a policy with the switch recreate_non_spot, which the deployment has to allow, too",
		}, "start_stopped"},
		"a Spot slice under reserved": {"reserved", events.Spot, 1, []string{
			"llama-8b: a Spot slice, and the switch recreate is no, limited by preset reserved, so the policy reserved never creates it again\n",
			"you: attach a policy with the switch recreate, which",
		}, "start_stopped"},
		"a Spot slice that the deployment does not bring back": {"spot", events.Spot, 4, []string{"the switch recreate is no, limited by the deployment"}, "no Spot slice"},
		"several workers, which cannot be started": {"reserved", events.OnDemand, 4, []string{
			"llama-8b: the API cannot start a TPU of several workers, so the switch start_stopped of policy reserved does nothing for it",
		}, "never creates it again"},
		"a Spot slice under spot":         {"spot", events.Spot, 4, nil, "never creates it again"},
		"a reserved slice under reserved": {"reserved", events.OnDemand, 1, nil, "you: "},
		"nothing is expected of watching": {"watch", events.Spot, 4, nil, "you: "},
		"one that is left to its owner":   {"spot", events.OnDemand, 4, nil, "never creates it again"},
	} {
		t.Run(name, func(t *testing.T) {
			w := deploymenttest.Training("llama-8b", deploymenttest.Read(func(r *evidence.Read) {
				r.Facts.Capacity, r.Facts.Workers, r.Directory = c.of, c.workers, ""
			}))
			if strings.Contains(name, "its owner") {
				w.Before(0).IsDeleted()
			}
			b := deploymenttest.New(t, ledgertest.NewStore().Open, w.Workload)
			b.Allows("request_checkpoint,early_maintenance,restart,recreate,start_stopped")
			if strings.Contains(name, "the deployment") {
				b.Allows("restart")
			}
			got, err := b.Call("attach", "llama-8b", "--policy", c.policy)
			if err != nil || c.not != "" && strings.Contains(got, c.not) {
				t.Errorf("%v; it says %q in\n%s", err, c.not, got)
			}
			if !strings.Contains(name, "its owner") {
				c.says = append(c.says, "labelled pitstop-policy="+c.policy)
			}
			deploymenttest.WantText(t, got, c.says...)
		})
	}
}

// TestALegacyNodeKeepsItsLabels: version 1 of the API changes none, so the way out is said at once.
func TestALegacyNodeKeepsItsLabels(t *testing.T) {
	w := deploymenttest.Trains("llama-8b", deploymenttest.Read(func(r *evidence.Read) { r.Facts.Legacy = true }))
	b := deploymenttest.New(t, ledgertest.NewStore().Open, w)
	b.Refused([]string{"attach", "llama-8b", "--policy", "spot"},
		"llama-8b in us-west4-a is a legacy node, which keeps the labels that it was created with: create it again with the label pitstop-policy=spot")
	b.Refused([]string{"detach", "llama-8b"},
		"llama-8b in us-west4-a is a legacy node, which keeps the labels that it was created with: create it again without the label pitstop-policy, or pause llama-8b")
	if len(b.Labels) > 0 || len(b.Workload().Orders) > 0 {
		t.Errorf("labels %v, orders %+v", b.Labels, b.Workload().Orders)
	}
}

// TestAttachKnowsThePoliciesOfTheDeployment: a label that names nothing would be watched.
func TestAttachKnowsThePoliciesOfTheDeployment(t *testing.T) {
	b := deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Llama())
	b.ReadFile = func(_ context.Context, uri string) ([]byte, error) {
		if uri != "gs://ops/policy.yaml" {
			return nil, errors.New(uri)
		}
		return []byte("policies:\n  night: {preset: spot}\n"), nil
	}
	say := func(s ledger.Settings) {
		t.Helper()
		if err := b.Ledger.SaveSettings(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	b.Want([]string{"attach", "llama-8b", "--policy", "day"}, "labelled") // nobody can tell yet
	say(ledger.Settings{})
	b.Refused([]string{"attach", "llama-8b", "--policy", "day"}, "the deployment has no policy file")
	say(ledger.Settings{Policy: policy.Config{URI: "gs://ops/policy.yaml"}})
	b.Refused([]string{"attach", "llama-8b", "--policy", "day"}, "has no such policy; it has night")
	b.Want([]string{"attach", "llama-8b", "--policy", "night"}, "labelled pitstop-policy=night")
	// Who may not read the file may label all the same, and is told; a file that is broken is not taken.
	b.ReadFile = func(context.Context, string) ([]byte, error) {
		return nil, errors.New("read gs://ops/policy.yaml: HTTP status 403")
	}
	b.Want([]string{"attach", "llama-8b", "--policy", "day"}, "does not know whether there is a policy day", "HTTP status 403", "labelled pitstop-policy=day")
	b.ReadFile = func(context.Context, string) ([]byte, error) { return []byte("policies: ["), nil }
	if got, err := b.Call("attach", "llama-8b", "--policy", "night"); err == nil || strings.Contains(got, "labelled") {
		t.Errorf("a file that cannot be understood: %v, %s", err, got)
	}
}

func TestSettingsAreWrittenOnce(t *testing.T) {
	deploymenttest.EachStore(t, func(t *testing.T, open ledger.Opener) {
		l := ledger.New(open)
		if _, err := l.Settings(t.Context()); !errors.Is(err, ledger.ErrNotFound) {
			t.Errorf("of nobody: %v", err)
		}
		want := ledger.Settings{Policy: policy.Config{URI: "gs://ops/policy.yaml", Allow: "recreate"}, Watched: []string{"demo"}}
		for range 2 {
			if err := l.SaveSettings(t.Context(), want); err != nil {
				t.Fatal(err)
			}
		}
		got, err := l.Settings(t.Context())
		a, _ := json.Marshal(got)  //nolint:errcheck // strings alone
		b, _ := json.Marshal(want) //nolint:errcheck // likewise
		if err != nil || string(a) != string(b) {
			t.Errorf("%s, %v", a, err)
		}
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
}
