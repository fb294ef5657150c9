package main

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/publish"
	"pitstop.internal/shared/publish/publishtest"
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// bench is a deployment in the tests: its ledger, what was published on its topics, and the TPUs' labels.
type bench struct {
	deployment
	t      *testing.T
	ledger *ledger.Ledger
	// sent are the events published, told those that tell people; down keeps all others from being so, mute the latter.
	sent, told []events.Envelope
	down, mute error
	// labels are set by node; refuses says why one cannot be.
	labels  map[string]string
	refuses map[string]error
	// shown are the slices that the API shows, hidden is why it shows none, and asked are the zones that were listed.
	shown  []provider.Slice
	hidden error
	asked  []string
	// unreached says that a listing has not all nodes, unreachedLegacy that it has not all legacy nodes.
	unreached, unreachedLegacy bool
	// simulated are the nodes that met a maintenance event.
	simulated []string
}

// Publish implements ledger.Publisher.
func (b *bench) Publish(_ context.Context, e events.Envelope) error {
	tells := e.Type == events.TypeIncidentUpdated
	switch {
	case b.down != nil:
		return b.down
	case tells && b.mute != nil:
		return b.mute
	case tells:
		b.told = append(b.told, e)
		return nil
	}
	b.sent = append(b.sent, e)
	return nil
}

// SetLabel implements cloud.
func (b *bench) SetLabel(_ context.Context, r provider.Ref, key, value string) error {
	if err := b.refuses[r.Name]; err != nil {
		return err
	}
	b.labels[r.String()+" "+key] = value
	return nil
}

// List implements tpus.
func (b *bench) List(_ context.Context, project, zone string) (l provider.Listing, err error) {
	b.asked = append(b.asked, project+"/"+zone)
	l.Partial, l.Legacy = b.unreached, !b.unreachedLegacy
	for _, s := range b.shown {
		if s.Project == project && s.Zone == zone {
			l.Slices = append(l.Slices, s)
		}
	}
	return l, b.hidden
}

// Simulate implements cloud.
func (b *bench) Simulate(_ context.Context, r provider.Ref) (string, error) {
	b.simulated = append(b.simulated, r.String())
	return "operation-1", b.refuses[r.Name]
}

// eachStore runs a test on a ledger in memory, and on one in Firestore's emulator where that is wanted.
func eachStore(t *testing.T, test func(t *testing.T, open ledger.Opener)) {
	t.Helper()
	t.Run("memory", func(t *testing.T) { test(t, ledgertest.NewStrictStore().Open) })
	t.Run("Firestore", func(t *testing.T) {
		t.Setenv("FIRESTORE_EMULATOR_HOST", publishtest.Emulator(t, publishtest.Firestore))
		test(t, ledger.Firestore("operate-"+uuid.NewString()[:8], ledger.Database))
	})
}

// deployedWith is a deployment whose ledger holds these workloads.
func deployedWith(t *testing.T, open ledger.Opener, all ...incident.Workload) *bench {
	t.Helper()
	l := ledger.New(open)
	for _, w := range all {
		if _, err := l.Save(t.Context(), w, ledger.Revision{}); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Error(err)
		}
	})
	b := &bench{t: t, ledger: l, labels: map[string]string{}, refuses: map[string]error{}}
	b.deployment = deployment{
		open: func(string, string) *ledger.Ledger { return l }, publish: func(publish.Topics) ledger.Publisher { return b },
		cloud: func(context.Context) (cloud, error) { return b, nil },
		tpus:  func(context.Context, []string) (tpus, error) { return b, nil },
		store: checkpoint.Mux{},
		who:   func(context.Context) string { return "ada@example.com" }, now: func() time.Time { return noon },
	}
	return b
}

// allows has the deployment say what it allows.
func (b *bench) allows(list string) {
	b.t.Helper()
	if err := b.ledger.SaveSettings(b.t.Context(), ledger.Settings{Policy: policy.Config{Allow: list}}); err != nil {
		b.t.Fatal(err)
	}
}

// workload is how the workload of the tests stands in the ledger.
func (b *bench) workload() incident.Workload {
	b.t.Helper()
	w, _, err := b.ledger.Workload(b.t.Context(), llamaID)
	if err != nil {
		b.t.Fatal(err)
	}
	return w
}

// change changes the workload of the tests behind everybody's back.
func (b *bench) change(f func(*incident.Workload)) {
	b.t.Helper()
	w, rev, err := b.ledger.Workload(b.t.Context(), llamaID)
	if err != nil {
		b.t.Fatal(err)
	}
	f(&w)
	if _, err := b.ledger.Save(b.t.Context(), w, rev); err != nil {
		b.t.Fatal(err)
	}
}

// want calls a verb, which has to say all of that.
func (b *bench) want(args []string, says ...string) {
	b.t.Helper()
	got, err := b.call(args...)
	if err != nil {
		b.t.Fatalf("%v: %v", args, err)
	}
	wants(b.t, got, says...)
}

// refused calls a verb, which has to be refused as wrong usage for that reason.
func (b *bench) refused(args []string, why string) {
	b.t.Helper()
	var wrong usageError
	if got, err := b.call(args...); !errors.As(err, &wrong) || !strings.Contains(err.Error(), why) {
		b.t.Errorf("%v: %v, want it refused: %s; it says:\n%s", args, err, why, got)
	}
}

// benchVerbs are the verbs that the tests of a package call on a deployment. Its TestMain sets them.
var benchVerbs func(deployment) []*cobra.Command

// call calls one of the deployment's verbs.
func (b *bench) call(args ...string) (string, error) { return b.callAt("demo", args...) }

// callAt is call in a project.
func (b *bench) callAt(project string, args ...string) (string, error) {
	var out bytes.Buffer
	root := &cobra.Command{Use: "pitstop", SilenceErrors: true, SilenceUsage: true}
	root.AddCommand(benchVerbs(b.deployment)...)
	root.SetArgs(append(args, "--project", project))
	root.SetOut(&out)
	root.SetErr(&out)
	err := root.ExecuteContext(context.Background())
	return out.String(), err
}

func llama() incident.Workload {
	w := incident.New("demo", "llama-8b", "tpu")
	w.Label, w.Directory = "spot", "gs://ckpt/llama-8b"
	w.Slices = []incident.Slot{{Name: "llama-8b", Life: incident.Life{
		Facts: incident.Facts{Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Reclaimable: true},
		Zone:  "us-west4-a", Condition: incident.Lost, State: "PREEMPTED", Since: noon.Add(-90 * time.Second),
	}}}
	w.Crew = incident.Crew{Seen: noon.Add(-time.Hour), Attempt: 1}
	w.Progress = incident.Progress{Step: 48_190, At: noon.Add(-6 * time.Minute), Verified: 48_000, VerifiedAt: noon.Add(-12 * time.Minute)}
	w.Incident = &incident.Incident{
		ID: "llama-8b-20261121-3", Cause: events.CausePreemption, Opened: noon.Add(-80 * time.Second), Phase: incident.PhaseDeleting, Policy: "spot",
		Since: noon.Add(-80 * time.Second), Deadline: noon.Add(40 * time.Minute),
		Timeline: []incident.Line{
			{At: noon.Add(-80 * time.Second), Kind: incident.LineSeen, Text: "node llama-8b is PREEMPTED"},
			{At: noon.Add(-80 * time.Second), Kind: incident.LineDecided, Text: "recreate: delete llama-8b first", Reason: "node llama-8b is PREEMPTED"},
		},
	}
	w.Effects = []incident.Effect{{
		Maker: w.Incident.ID, Action: events.ActionDelete, Slice: "llama-8b", Sent: noon.Add(-80 * time.Second), Begun: noon.Add(-70 * time.Second),
	}}
	return w
}

func wants(t *testing.T, got string, want ...string) {
	t.Helper()
	for _, w := range want {
		if !strings.Contains(got, w) {
			t.Errorf("it does not say %q:\n%s", w, got)
		}
	}
}

func TestStatusTellsHowEveryWorkloadStands(t *testing.T) {
	other := incident.New("demo", "bert", "tpu")
	other.Slices = []incident.Slot{{Name: "bert", Life: incident.Life{
		Facts: incident.Facts{Accelerator: "v2-8"},
		Zone:  "us-west4-b", Condition: incident.Ready, State: "READY", Since: noon.Add(-50 * time.Hour),
	}}}
	d := deployedWith(t, ledgertest.NewStore().Open, llama(), other)
	l := d.ledger
	got, err := d.call("status")
	if err != nil {
		t.Fatal(err)
	}
	wants(t, got, "demo/llama-8b  policy spot", "llama-8b us-west4-a v5litepod-16 spot  PREEMPTED for 1 m 30 s",
		"step 48,190 6 m 0 s ago, checkpoint 48,000 verified, 12 m 0 s old", "llama-8b-20261121-3: preemption, deleting for 1 m 20 s, until 2026-11-21T12:40:00Z",
		"delete llama-8b: begun 1 m 10 s ago", "demo/bert  no label pitstop-policy: watched", "bert us-west4-b v2-8  READY for 2 d 2 h", "no word from a crew yet")
	if got, err = d.call("status", "bert"); err != nil || strings.Contains(got, "llama") {
		t.Errorf("status of one: %v\n%s", err, got)
	}
	var wrong usageError
	if _, err = d.call("status", "berta"); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "demo/bert, demo/llama-8b") {
		t.Errorf("a workload that is not there: %v", err)
	}
	if err := l.SetPause(t.Context(), &incident.Pause{By: "ada", Why: "night shift", At: noon}); err != nil {
		t.Fatal(err)
	}
	got, _ = d.call("status") //nolint:errcheck // it went well before
	wants(t, got, "everything is paused by ada: night shift")
	got, err = d.call("status", "--json", "llama-8b")
	if err != nil || !strings.HasPrefix(got, `{`) || strings.Count(got, "\n") != 1 {
		t.Errorf("as JSON: %v\n%s", err, got)
	}
}

func TestAnIncidentIsFoundOpenClosedAndInTheArchive(t *testing.T) {
	w := llama()
	closed := *w.Incident
	closed.ID, closed.Outcome, closed.Phase, closed.Advice = "llama-8b-20261120-1", incident.Escalated, incident.Closed, "create it by hand"
	closed.Timeline = append(closed.Timeline[:1:1], incident.Line{At: noon, Kind: incident.LineEnded, Text: "escalated · away 57 m 0 s", Reason: "why"})
	w.Closed = &closed
	d := deployedWith(t, ledgertest.NewStore().Open, w)
	l := d.ledger
	archived := closed
	archived.ID, archived.Closed = "llama-8b-20261101-1", noon
	if err := l.SaveClosed(t.Context(), w.ID, archived); err != nil {
		t.Fatal(err)
	}
	for id, says := range map[string]string{
		"llama-8b-20261121-3": "recreate: delete llama-8b first", "llama-8b-20261120-1": "you: create it by hand", "llama-8b-20261101-1": "ESCALATED",
	} {
		got, err := d.call("incident", id)
		if err != nil {
			t.Fatal(err)
		}
		wants(t, got, id, "preemption · workload demo/llama-8b · policy spot", "Sat Nov 21, 2026", "11:58:40", says)
	}
	d.refused([]string{"incident", "llama-8b-20261101-9"}, "there is no incident")
	d.refused([]string{"incident", "llama-8b-1"}, "there is no workload")
}

// TestIncidentsAreListed: those of one workload however old, those of all since a time or open; each once, the newest first.
func TestIncidentsAreListed(t *testing.T) {
	eachStore(t, func(t *testing.T, open ledger.Opener) {
		w := llama()
		ended := func(id string, at time.Time) incident.Incident {
			return incident.Incident{ID: id, Cause: events.CauseHostError, Opened: at, Closed: at.Add(12 * time.Minute), Phase: incident.Closed, Outcome: incident.Resumed}
		}
		w.Incident.Opened = noon.Add(-20 * day) // it is open, and so listed
		w.Closed = new(ended("llama-8b-20261120-2", noon.Add(-day)))
		other := incident.New("demo", "gemma-20261101-1", "tpu") // whose name looks like an incident
		d := deployedWith(t, open, w, other)
		for id, in := range map[string]incident.Incident{
			w.ID:     *w.Closed,
			other.ID: ended("gemma-20261101-1-20261118-7", noon.Add(-3*day)),
		} {
			if err := d.ledger.SaveClosed(t.Context(), id, in); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.ledger.SaveClosed(t.Context(), w.ID, ended("llama-8b-20261001-1", noon.Add(-51*day))); err != nil {
			t.Fatal(err)
		}
		const (
			first  = "2026-11-20 12:00  llama-8b-20261120-2"
			gemma  = "2026-11-18 12:00  gemma-20261101-1-20261118-7  host error, resumed after 12 m 0 s\n"
			opened = "2026-11-01 12:00  llama-8b-20261121-3"
			older  = "2026-10-01 12:00  llama-8b-20261001-1  host error, resumed after 12 m 0 s\n"
		)
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"incidents"}, first + "          host error, resumed after 12 m 0 s\n" + gemma + opened + "          preemption, open: deleting for 1 m 20 s\n"},
			{[]string{"incidents", "--since", "1d12h"}, first + "  host error, resumed after 12 m 0 s\n" + opened + "  preemption, open: deleting for 1 m 20 s\n"},
			{[]string{"incident", "llama-8b"}, first + "  host error, resumed after 12 m 0 s\n" + opened + "  preemption, open: deleting for 1 m 20 s\n" + older},
			{[]string{"incident", "demo/gemma-20261101-1"}, gemma},
			{[]string{"incident", "gemma-20261101-1", "--json"}, `{"id":"gemma-20261101-1-20261118-7","workload":"demo/gemma-20261101-1","cause":"host_error",` +
				`"opened":"2026-11-18T12:00:00Z","closed":"2026-11-18T12:12:00Z","phase":"closed","outcome":"resumed"}` + "\n"},
		} {
			if got, err := d.call(c.args...); err != nil || got != c.want {
				t.Errorf("%v: %v\n%s\nwant\n%s", c.args, err, got, c.want)
			}
		}
		d.refused([]string{"incident", "llama-8b", "--prices", pricesOf(t, "v5litepod: {spot: 0.50}")}, "--prices is for one incident")
	})
}

// TestIncidentsOfSeveralProjectsAreNamedWithTheirs, as the verb incident takes them; and nothing is told as nothing.
func TestIncidentsOfSeveralProjectsAreNamedWithTheirs(t *testing.T) {
	theirs := llama()
	theirs.ID, theirs.Project = "apart/llama-8b", "apart"
	b := deployedWith(t, ledgertest.NewStore().Open, llama(), theirs)
	b.want([]string{"incidents"}, "  apart/llama-8b-20261121-3  preemption", "  demo/llama-8b-20261121-3   preemption")
	quiet := llama()
	quiet.Incident = nil
	b = deployedWith(t, ledgertest.NewStore().Open, quiet)
	b.want([]string{"incidents"}, "no incident is open, and none has opened since 2026-11-14T12:00:00Z; --since looks further back")
	b.want([]string{"incident", "llama-8b"}, "llama-8b has had no incident")
}

// TestAnIncidentHasTheTermsOfTheTrainingService, for people and as JSON.
func TestAnIncidentHasTheTermsOfTheTrainingService(t *testing.T) {
	w := llama()
	in := w.Incident
	in.Cause, in.Outcome, in.Code, in.Phase, in.Closed = events.CauseCrash, incident.Escalated, incident.CodeSameError, incident.Closed, noon
	in.Down = noon.Add(-time.Minute)
	in.Error = incident.Error{Attempt: 1, Exit: events.Exit{Code: 137, Retries: events.JobRetries{Worker: 5, Job: 3}}}
	w.Closed, w.Incident, w.Ended, w.Effects = in, nil, noon, nil
	d := deployedWith(t, ledgertest.NewStore().Open, w)
	d.want([]string{"incident", in.ID}, "job       FAILED, INVALID_ARGUMENT (3): The replica worker 0 exited with a non-zero status of 137. Termination reason: Error. · "+
		"retries: 5 of a worker, 3 of the whole job")
	d.want([]string{"incident", in.ID, "--json"}, `"job":{"state":"FAILED","retries":{"worker":5,"job":3},"error":{"code":3,"status":"INVALID_ARGUMENT","message":"The replica worker 0 `)

	open := deployedWith(t, ledgertest.NewStore().Open, llama())
	open.want([]string{"incident", in.ID}, "job       RUNNING")
	down := llama()
	down.Incident.Down = noon
	open = deployedWith(t, ledgertest.NewStore().Open, down)
	open.want([]string{"incident", in.ID}, "job       QUEUED")
	open.want([]string{"incident", in.ID, "--json"}, `"job":{"state":"QUEUED"}`)
}

// TestAnIncidentOfTwoProjectsIsNamedWithItsOwn: an incident's ID does not say the project, so nobody's incident is taken for
// another's.
func TestAnIncidentOfTwoProjectsIsNamedWithItsOwn(t *testing.T) {
	const id = "llama-8b-20261121-3"
	theirs := asking()
	theirs.ID, theirs.Project = "apart/llama-8b", "apart"
	b := deployedWith(t, ledgertest.NewStore().Open, asking(), theirs)
	b.allows("recreate,restart")
	for _, verb := range []string{"incident", "approve", "cancel"} {
		b.refused([]string{verb, id}, "may be apart/llama-8b/"+id+" (open) or demo/llama-8b/"+id+" (open)")
		b.refused([]string{verb, "nobody/" + id}, "there is no incident")
	}
	b.want([]string{"incident", "apart/" + id}, "workload apart/llama-8b")
	b.want([]string{"approve", "demo/" + id}, "demo/llama-8b: approved by ada@example.com")
	b.want([]string{"cancel", "demo/llama-8b/" + id}, "demo/llama-8b: cancelled by ada@example.com")
	// One that is over may still be the one that is meant.
	b.refused([]string{"cancel", id}, "may be apart/llama-8b/"+id+" (open) or demo/llama-8b/"+id+" (released)")
	w, _, err := b.ledger.Workload(t.Context(), theirs.ID)
	if err != nil || w.Incident == nil || w.Incident.Phase != incident.Approving || len(w.Orders) > 0 {
		t.Errorf("the other project's stands at %+v, %v", w.Incident, err)
	}
	b.want([]string{"cancel", "apart/" + id}, "apart/llama-8b: cancelled by ada@example.com")
}

func TestAPauseHoldsUntilItIsLifted(t *testing.T) {
	eachStore(t, func(t *testing.T, open ledger.Opener) {
		b := deployedWith(t, open, llama())
		pauses := func() (all, one *incident.Pause) {
			all, err := b.ledger.Pause(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return all, b.workload().Pause
		}
		b.want([]string{"pause", "llama-8b", "--for", "2h", "--why", "a look"}, "demo/llama-8b: paused by ada@example.com until 2026-11-21T14:00:00Z: a look\n")
		if all, one := pauses(); all.Holds(noon) || !one.Holds(noon) || one.Holds(noon.Add(2*time.Hour+incident.PauseMargin)) || !one.At.Equal(noon) {
			t.Errorf("paused are all %+v, one %+v", all, one)
		}
		b.want([]string{"pause", "--all", "--why", "night"}, "everything: paused by ada@example.com: night")
		if all, one := pauses(); !all.Holds(noon.Add(1000*time.Hour)) || !one.Holds(noon) || all.By != "ada@example.com" {
			t.Errorf("paused are all %+v, one %+v", all, one)
		}
		b.want([]string{"resume", "--all", "--why", "morning"}, "everything: ada@example.com lifted the pause")
		b.want([]string{"resume", "llama-8b"}, "demo/llama-8b: ada@example.com lifted the pause")
		all, one := pauses()
		if all.Holds(noon) || one.Holds(noon) || all.By != "ada@example.com" || all.Why != "morning" {
			t.Errorf("paused are all %+v, one %+v", all, one)
		}
		b.want([]string{"resume", "llama-8b"}, "it was not paused")
		w := b.workload()
		if o := w.Orders; len(o) != 2 || o[0].Verb != incident.VerbPause || o[1].Verb != incident.VerbResume || o[0].Why != "a look" {
			t.Errorf("recorded is %+v", o)
		}
		if tl := w.Incident.Timeline; tl[len(tl)-1].Text != "ada@example.com: resume" {
			t.Errorf("the incident tells %+v", tl)
		}
		for _, args := range [][]string{{"pause"}, {"resume"}, {"pause", "llama-8b", "--all"}, {"pause", "--all", "--for", "-1h"}, {"resume", "nobody"}} {
			b.refused(args, "")
		}
	})
}

// TestAPauseGoesOnWithTheOthers: what is stored and cannot be published from here is no failure, and one workload that cannot be
// paused keeps no other from it.
func TestAPauseGoesOnWithTheOthers(t *testing.T) {
	other := llama()
	other.ID, other.Name, other.Incident.ID = "demo/bert", "bert", "bert-20261121-1"
	newer := llama()
	newer.ID, newer.Name, newer.Incident.ID = "demo/aya", "aya", "aya-20261121-1"
	var tap ledgertest.Tap
	b := deployedWith(t, tap.On(ledgertest.NewStore().Open), llama(), other, newer)
	b.down = errors.New("PermissionDenied: not authorized to publish")
	for _, verb := range []string{"pause", "resume"} {
		b.change(func(w *incident.Workload) { // something that has to be sent
			w.Outbox = append(w.Outbox, events.Envelope{ID: verb, Type: events.TypeRecreateRequested, Data: []byte(`{}`)})
		})
		b.want([]string{verb, "llama-8b", "bert", "aya"}, "demo/aya: ", "demo/bert: ", "demo/llama-8b: ", "patrol publishes the next step within a minute")
		for _, id := range []string{"demo/aya", "demo/bert", llamaID} {
			if w, _, err := b.ledger.Workload(t.Context(), id); err != nil || w.Pause.Holds(noon) != (verb == "pause") {
				t.Errorf("%s: %s is paused as %+v, %v", verb, id, w.Pause, err)
			}
		}
	}
	tap.Before = func(_ context.Context, c ledgertest.Call) error {
		if c.Write && strings.Contains(c.Body(), `"demo/bert"`) {
			return errors.New("the database is not there")
		}
		return nil
	}
	got, err := b.call("pause", "bert", "llama-8b")
	if err == nil || !strings.Contains(err.Error(), "demo/bert: ") || !strings.Contains(err.Error(), "the database is not there") {
		t.Errorf("one that cannot be paused: %v", err)
	}
	if wants(t, got, "demo/llama-8b: paused"); strings.Contains(got, "demo/bert") || !b.workload().Pause.Holds(noon) {
		t.Errorf("paused is %+v:\n%s", b.workload().Pause, got)
	}
}

const llamaID = "demo/llama-8b"
