package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"cloud.google.com/go/auth"
	"github.com/go-json-experiment/json"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
)

// asking is a workload whose policy asks whether it may be created again.
func asking() incident.Workload {
	w := llama()
	w.Epoch = 3
	s := &w.Slices[0]
	s.Spec, s.ToReplace = "spec1", true
	s.Incarnation = events.Incarnation{Zone: s.Zone, ID: "7711", Created: noon.Add(-48 * time.Hour)}
	s.Admission = incident.Admitted
	in := w.Incident
	in.Phase, in.Asked, in.Deadline, w.Effects = incident.Approving, events.ActionDelete, time.Time{}, nil
	in.Switches.Recreate = policy.Ask
	return w
}

func TestApprovedIsWhatIsAsked(t *testing.T) {
	eachStore(t, func(t *testing.T, open ledger.Opener) {
		b := deployedWith(t, open, asking())
		b.allows("recreate")
		b.refused([]string{"approve", "llama-8b-20261101-9"}, "there is no incident")
		b.refused([]string{"approve"}, "takes one incident")
		b.want([]string{"approve", "llama-8b-20261121-3", "--why", "the run matters"}, "demo/llama-8b: approved by ada@example.com: recreate llama-8b")
		if len(b.sent) != 1 || b.sent[0].Type != events.TypeRecreateRequested || b.sent[0].Source != "//pitstop/operator" {
			t.Fatalf("sent is %+v", b.sent)
		}
		r, err := events.DecodeRecreateRequested(b.sent[0].Data)
		if err != nil {
			t.Fatal(err)
		}
		w := b.workload()
		if _, err := w.Fence(r.Pointer(), noon); err != nil || len(w.Outbox) > 0 || r.Action != events.ActionDelete {
			t.Errorf("the request %+v: %v, outbox %+v", r, err, w.Outbox)
		}
		if o := w.Orders; len(o) != 1 || o[0].By != "ada@example.com" || o[0].Why != "the run matters" || o[0].Verb != incident.VerbApprove {
			t.Errorf("recorded is %+v", o)
		}
		b.refused([]string{"approve", "llama-8b-20261121-3"}, "waits for no approval: it is deleting")
	})
}

// TestWhatCannotBePublishedIsLeftForPatrol: a person who may not publish has said it all the same.
func TestWhatCannotBePublishedIsLeftForPatrol(t *testing.T) {
	b := deployedWith(t, ledgertest.NewStore().Open, asking())
	b.allows("recreate")
	b.down = errors.New("PermissionDenied: not authorized to publish")
	b.want([]string{"approve", "llama-8b-20261121-3"}, "approved by ada@example.com", "patrol publishes the next step within a minute", "not authorized to publish")
	w := b.workload()
	if len(w.Outbox) != 2 || w.Due().After(noon) { // the request, and what people are told
		t.Errorf("the outbox holds %+v, due at %s", w.Outbox, w.Due())
	}
}

func TestAYesIsStoredWhereThePolicyIsNotKnown(t *testing.T) {
	b := deployedWith(t, ledgertest.NewStore().Open, asking())
	b.want([]string{"approve", "llama-8b-20261121-3"}, "patrol acts on it within a minute")
	if w := b.workload(); !w.Incident.Granted || w.Incident.Phase != incident.Approving || len(b.sent)+len(w.Outbox) > 0 {
		t.Errorf("it stands at %+v, sent is %v", w.Incident, b.sent)
	}
	b.refused([]string{"approve", "llama-8b-20261121-3"}, "waits for no approval")
}

// TestPeopleAreToldOfAPersonsWord: where somebody is to be told. Without the topic for that nobody is, and nothing is left.
func TestPeopleAreToldOfAPersonsWord(t *testing.T) {
	b := deployedWith(t, ledgertest.NewStore().Open, llama())
	b.want([]string{"cancel", "llama-8b-20261121-3"}, "cancelled by ada@example.com")
	if len(b.told) != 1 {
		t.Fatalf("told is %+v", b.told)
	}
	if u, err := events.DecodeIncidentUpdated(b.told[0].Data); err != nil || u.Step() != "released" || u.Incident != "llama-8b-20261121-3" {
		t.Errorf("told is %+v, %v", u, err)
	}
	b = deployedWith(t, ledgertest.NewStore().Open, llama())
	b.mute = fmt.Errorf("publish: %w", status.Error(codes.NotFound, "there is no such topic"))
	b.want([]string{"cancel", "llama-8b-20261121-3"}, "cancelled by ada@example.com")
	if w := b.workload(); len(w.Outbox) != 0 {
		t.Errorf("the outbox holds %+v", w.Outbox)
	}
}

func TestCancelTakesAnIncidentOver(t *testing.T) {
	eachStore(t, func(t *testing.T, open ledger.Opener) {
		b := deployedWith(t, open, llama())
		b.want([]string{"cancel", "llama-8b-20261121-3", "--why", "I do it myself"}, "demo/llama-8b: cancelled by ada@example.com",
			"a call may still take effect: delete llama-8b: begun 1 m 10 s ago")
		w := b.workload()
		if w.Incident != nil || w.Closed.Outcome != incident.Released || w.Closed.Reason != "cancelled by ada@example.com" {
			t.Fatalf("open is %+v, closed %+v", w.Incident, w.Closed)
		}
		in, err := b.ledger.Closed(t.Context(), llamaID, "llama-8b-20261121-3")
		if err != nil || in.Outcome != incident.Released {
			t.Errorf("the archive has %+v, %v", in, err)
		}
		b.refused([]string{"cancel", "llama-8b-20261121-3"}, "it ended released at 2026-11-21 12:00")

		cleared := llama()
		cleared.Incident.Phase, cleared.Incident.Clearing = incident.Clearing, incident.Released
		cleared.Name, cleared.ID = "other", "demo/other"
		cleared.Incident.ID = "other-20261121-1"
		if _, err := b.ledger.Save(t.Context(), cleared, ledger.Revision{}); err != nil {
			t.Fatal(err)
		}
		b.refused([]string{"cancel", "other-20261121-1"}, "pause other holds that")
	})
}

func TestRetryOpensWhatWasGivenUp(t *testing.T) {
	eachStore(t, func(t *testing.T, open ledger.Opener) {
		w := llama()
		w.Slices[0].Incarnation = events.Incarnation{Zone: "us-west4-a", ID: "7711", Created: noon.Add(-48 * time.Hour)}
		w.Slices[0].End.Reported, w.Budgets.Recreates, w.Incident = true, incident.MaxRecreates, nil
		other := llama()
		other.ID, other.Name, other.Incident, other.Slices[0].Condition = "demo/bert", "bert", nil, incident.Ready
		b := deployedWith(t, open, w, other)
		b.want([]string{"retry", "llama-8b", "--why", "quota raised"}, "demo/llama-8b: tried again in llama-8b-20261121-1; patrol looks at it within a minute")
		got := b.workload()
		if got.Incident == nil || got.Incident.Phase != incident.Looking || !got.Reads(noon).Has(incident.ReadSlices, "") || got.Budgets.Recreates != 0 || len(b.sent) > 0 {
			t.Errorf("it stands at %+v, sent %+v", got.Incident, b.sent)
		}
		b.refused([]string{"retry", "llama-8b"}, "is under way (looking)")
		b.refused([]string{"retry", "bert"}, "training goes on: step 48,190")
		b.refused([]string{"retry", "nobody"}, "there is no workload")
	})
}

// TestARetryUnderALooserPolicyNamesTheWayOut: an open incident keeps the switches of its opening.
func TestARetryUnderALooserPolicyNamesTheWayOut(t *testing.T) {
	w := llama()
	w.Incident, w.Effects = nil, nil
	w.Slices[0].Spec, w.Slices[0].Incarnation = "spec", events.Incarnation{ID: "7", Zone: "us-west4-a", Created: noon.Add(-time.Hour)}
	b := deployedWith(t, ledgertest.NewStore().Open, w)
	b.allows("")
	b.want([]string{"retry", "llama-8b"}, "tried again in llama-8b-20261121-1", "; nothing is allowed, so it is only watched: allow what it needs, and once pitstop status "+
		"shows that, pitstop cancel llama-8b-20261121-1, and then pitstop retry llama-8b")
	b.refused([]string{"retry", "llama-8b"}, "is under way (watching), and nothing of it waits for another try; nothing is allowed")
	b.allows("recreate,restart")
	b.refused([]string{"retry", "llama-8b"}, "; it opened before the policy allowed restart, recreate, which counts from the next incident on: "+
		"pitstop cancel llama-8b-20261121-1, and then pitstop retry llama-8b")
	b.want([]string{"cancel", "llama-8b-20261121-1"}, "cancelled by ada@example.com")
	if got, err := b.call("retry", "llama-8b"); err != nil || strings.Contains(got, "allowed") || b.workload().Incident.Switches.Recreate != policy.Yes {
		t.Errorf("after the way out: %v, %s", err, got)
	}
}

func TestAttachAndDetachLabelTheTPUs(t *testing.T) {
	eachStore(t, func(t *testing.T, open ledger.Opener) {
		w := llama()
		w.Project = "tpus"
		w.Slices = append(w.Slices, w.Slices[0], w.Slices[0])
		w.Slices[1].Name, w.Slices[2].Name, w.Slices[2].Condition = "llama-8b-1", "llama-8b-2", incident.Gone
		b := deployedWith(t, open, w)
		b.refused([]string{"attach", "llama-8b"}, "--policy is missing")
		b.want([]string{"attach", "llama-8b", "--policy", "spot", "--why", "it is ours"}, "llama-8b in us-west4-a: labelled pitstop-policy=spot",
			"llama-8b-2: it is gone")
		const node = "projects/tpus/locations/us-west4-a/nodes/llama-8b"
		if b.labels[node+" pitstop-policy"] != "spot" || b.labels[node+"-1 pitstop-policy"] != "spot" || len(b.labels) != 2 {
			t.Errorf("labels are %v", b.labels)
		}
		b.want([]string{"detach", "llama-8b"}, "the label is removed")
		if b.labels[node+" pitstop-policy"] != "" {
			t.Errorf("labels are %v", b.labels)
		}
		o := b.workload().Orders
		if len(o) != 2 || o[0].Verb != incident.VerbAttach || o[0].Text != "to policy spot" || o[0].Why != "it is ours" || o[1].Verb != incident.VerbDetach {
			t.Errorf("recorded is %+v", o)
		}
		b.refuses["llama-8b-1"] = errors.New("set label of llama-8b-1: update is not supported while in state PREEMPTED")
		if _, err := b.call("attach", "llama-8b", "--policy", "watch"); err == nil || !strings.Contains(err.Error(), "in state PREEMPTED") {
			t.Errorf("one that cannot be labelled: %v", err)
		}
	})
}

// TestAttachSaysWhatAPolicyNeverBringsBack: the label is set all the same.
func TestAttachSaysWhatAPolicyNeverBringsBack(t *testing.T) {
	for name, c := range map[string]struct {
		policy  string
		spot    bool
		workers int
		says    []string
		not     string
	}{
		"an on-demand slice under spot": {"spot", false, 4, []string{
			"llama-8b: no Spot slice, and the switch recreate_non_spot is no, limited by preset spot and the deployment, so the policy spot never creates it again, and only waits for Google's own recovery",
			"you: attach a policy with the switch recreate_non_spot, which the deployment has to allow, too",
		}, "start_stopped"},
		"a Spot slice under reserved": {"reserved", true, 1, []string{
			"llama-8b: a Spot slice, and the switch recreate is no, limited by preset reserved, so the policy reserved never creates it again\n",
			"you: attach a policy with the switch recreate, which",
		}, "start_stopped"},
		"a Spot slice that the deployment does not bring back": {"spot", true, 4, []string{"the switch recreate is no, limited by the deployment"}, "no Spot slice"},
		"several workers, which cannot be started": {"reserved", false, 4, []string{
			"llama-8b: the API cannot start a TPU of several workers, so the switch start_stopped of policy reserved does nothing for it",
		}, "never creates it again"},
		"a Spot slice under spot":         {"spot", true, 4, nil, "never creates it again"},
		"a reserved slice under reserved": {"reserved", false, 1, nil, "you: "},
		"nothing is expected of watching": {"watch", true, 4, nil, "you: "},
		"one that is left to its owner":   {"spot", false, 4, nil, "never creates it again"},
	} {
		t.Run(name, func(t *testing.T) {
			w := llama()
			w.Slices[0].Reclaimable, w.Slices[0].Workers, w.Directory = c.spot, c.workers, ""
			if strings.Contains(name, "its owner") {
				w.Slices[0].End.Released = noon
			}
			b := deployedWith(t, ledgertest.NewStore().Open, w)
			b.allows("request_checkpoint,early_maintenance,restart,recreate,start_stopped")
			if strings.Contains(name, "the deployment") {
				b.allows("restart")
			}
			got, err := b.call("attach", "llama-8b", "--policy", c.policy)
			if err != nil || c.not != "" && strings.Contains(got, c.not) {
				t.Errorf("%v; it says %q in\n%s", err, c.not, got)
			}
			wants(t, got, append(c.says, "labelled pitstop-policy="+c.policy)...)
		})
	}
}

// TestALegacyNodeKeepsItsLabels: version 1 of the API changes none, so the way out is said at once.
func TestALegacyNodeKeepsItsLabels(t *testing.T) {
	w := llama()
	w.Slices[0].Legacy = true
	b := deployedWith(t, ledgertest.NewStore().Open, w)
	b.refused([]string{"attach", "llama-8b", "--policy", "spot"},
		"llama-8b in us-west4-a is a legacy node, which keeps the labels that it was created with: create it again with the label pitstop-policy=spot")
	b.refused([]string{"detach", "llama-8b"},
		"llama-8b in us-west4-a is a legacy node, which keeps the labels that it was created with: create it again without the label pitstop-policy, or pause llama-8b")
	if len(b.labels) > 0 || len(b.workload().Orders) > 0 {
		t.Errorf("labels %v, orders %+v", b.labels, b.workload().Orders)
	}
}

// TestAttachKnowsThePoliciesOfTheDeployment: a label that names nothing would be watched.
func TestAttachKnowsThePoliciesOfTheDeployment(t *testing.T) {
	b := deployedWith(t, ledgertest.NewStore().Open, llama())
	b.read = func(_ context.Context, uri string) ([]byte, error) {
		if uri != "gs://ops/policy.yaml" {
			return nil, errors.New(uri)
		}
		return []byte("policies:\n  night: {preset: spot}\n"), nil
	}
	say := func(s ledger.Settings) {
		t.Helper()
		if err := b.ledger.SaveSettings(t.Context(), s); err != nil {
			t.Fatal(err)
		}
	}
	b.want([]string{"attach", "llama-8b", "--policy", "day"}, "labelled") // nobody can tell yet
	say(ledger.Settings{})
	b.refused([]string{"attach", "llama-8b", "--policy", "day"}, "the deployment has no policy file")
	say(ledger.Settings{Policy: policy.Config{URI: "gs://ops/policy.yaml"}})
	b.refused([]string{"attach", "llama-8b", "--policy", "day"}, "has no such policy; it has night")
	b.want([]string{"attach", "llama-8b", "--policy", "night"}, "labelled pitstop-policy=night")
	// Who may not read the file may label all the same, and is told; a file that is broken is not taken.
	b.read = func(context.Context, string) ([]byte, error) {
		return nil, errors.New("read gs://ops/policy.yaml: HTTP status 403")
	}
	b.want([]string{"attach", "llama-8b", "--policy", "day"}, "does not know whether there is a policy day", "HTTP status 403", "labelled pitstop-policy=day")
	b.read = func(context.Context, string) ([]byte, error) { return []byte("policies: ["), nil }
	if got, err := b.call("attach", "llama-8b", "--policy", "night"); err == nil || strings.Contains(got, "labelled") {
		t.Errorf("a file that cannot be understood: %v, %s", err, got)
	}
}

// fixed is a token that never changes.
type fixed string

// Token implements auth.TokenProvider.
func (f fixed) Token(context.Context) (*auth.Token, error) { return &auth.Token{Value: string(f)}, nil }

func TestTheCallerIsTheAccount(t *testing.T) {
	answer := `{"email":"ada@example.com","scope":"x"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.PostFormValue("access_token") != "secret" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = w.Write([]byte(answer)) //nolint:errcheck // the client tells
	}))
	defer server.Close()
	for file, want := range map[string]string{ //nolint:gosec // they hold names of accounts alone
		`{"type":"service_account","client_email":"robot@demo.iam.gserviceaccount.com"}`:                                                                                                                        "robot@demo.iam.gserviceaccount.com",
		`{"type":"impersonated_service_account","service_account_impersonation_url":"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/as@demo.iam.gserviceaccount.com:generateAccessToken"}`: "as@demo.iam.gserviceaccount.com",
		`{"type":"authorized_user"}`: "ada@example.com",
		``:                           "ada@example.com",
	} {
		got, err := accountOf(t.Context(), auth.NewCredentials(&auth.CredentialsOptions{JSON: []byte(file), TokenProvider: fixed("secret")}), server.Client(), server.URL)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", file, got, err, want)
		}
	}
	answer = `{}`
	if got, err := accountOf(t.Context(), auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: fixed("secret")}), server.Client(), server.URL); err == nil {
		t.Errorf("a token without an account: %q", got)
	}
}

func TestSettingsAreWrittenOnce(t *testing.T) {
	eachStore(t, func(t *testing.T, open ledger.Opener) {
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
