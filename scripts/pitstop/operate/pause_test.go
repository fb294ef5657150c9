package operate

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
)

func TestAPauseHoldsUntilItIsLifted(t *testing.T) {
	deploymenttest.EachStore(t, func(t *testing.T, open ledger.Opener) {
		b := deploymenttest.New(t, open, deploymenttest.Llama())
		pauses := func() (all, one *evidence.Pause) {
			all, err := b.Ledger.Pause(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return all, b.Workload().Pause
		}
		b.Want([]string{"pause", "llama-8b", "--for", "2h", "--why", "a look"}, "demo/llama-8b: paused by ada@example.com until 2026-11-21T14:00:00Z: a look\n")
		if all, one := pauses(); all.Holds(deploymenttest.Noon) || !one.Holds(deploymenttest.Noon) || one.Holds(deploymenttest.Noon.Add(2*time.Hour+evidence.PauseMargin)) || !one.At.Equal(deploymenttest.Noon) {
			t.Errorf("paused are all %+v, one %+v", all, one)
		}
		b.Want([]string{"pause", "--all", "--why", "night"}, "everything: paused by ada@example.com: night")
		if all, one := pauses(); !all.Holds(deploymenttest.Noon.Add(1000*time.Hour)) || !one.Holds(deploymenttest.Noon) || all.By != "ada@example.com" {
			t.Errorf("paused are all %+v, one %+v", all, one)
		}
		b.Want([]string{"resume", "--all", "--why", "morning"}, "everything: ada@example.com lifted the pause")
		b.Want([]string{"resume", "llama-8b"}, "demo/llama-8b: ada@example.com lifted the pause")
		all, one := pauses()
		if all.Holds(deploymenttest.Noon) || one.Holds(deploymenttest.Noon) || all.By != "ada@example.com" || all.Why != "morning" {
			t.Errorf("paused are all %+v, one %+v", all, one)
		}
		b.Want([]string{"resume", "llama-8b"}, "it was not paused")
		w := b.Workload()
		if o := w.Orders; len(o) != 2 || o[0].Verb != evidence.VerbPause || o[1].Verb != evidence.VerbResume || o[0].Why != "a look" {
			t.Errorf("recorded is %+v", o)
		}
		if tl := w.Shown(deploymenttest.Noon).Incident.Timeline; tl[len(tl)-1].Text != "ada@example.com: resume" {
			t.Errorf("the incident tells %+v", tl)
		}
		for _, args := range [][]string{{"pause"}, {"resume"}, {"pause", "llama-8b", "--all"}, {"resume", "nobody"}} {
			b.Refused(args, "")
		}
	})
}

// TestAPauseGoesOnWithTheOthers: what is stored and cannot be published from here is no failure, and one workload that cannot be
// paused keeps no other from it.
func TestAPauseGoesOnWithTheOthers(t *testing.T) {
	var tap ledgertest.Tap
	b := deploymenttest.New(t, tap.On(ledgertest.NewStore().Open), deploymenttest.Llama(), deploymenttest.Trains("bert"), deploymenttest.Trains("aya"))
	b.Down = errors.New("PermissionDenied: not authorized to publish")
	for _, verb := range []string{"pause", "resume"} {
		b.Change(func(w *incident.Workload) { // something that has to be sent
			w.Outbox = append(w.Outbox, events.Envelope{ID: verb, Type: events.TypeRecreateRequested, Data: []byte(`{}`)})
		})
		b.Want([]string{verb, "llama-8b", "bert", "aya"}, "demo/aya: ", "demo/bert: ", "demo/llama-8b: ", "patrol publishes the next step within a minute")
		for _, id := range []string{"demo/aya", "demo/bert", deploymenttest.LlamaID} {
			if w, _, err := b.Ledger.Workload(t.Context(), id); err != nil || w.Pause.Holds(deploymenttest.Noon) != (verb == "pause") {
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
	got, err := b.Call("pause", "bert", "llama-8b")
	if err == nil || !strings.Contains(err.Error(), "demo/bert: ") || !strings.Contains(err.Error(), "the database is not there") {
		t.Errorf("one that cannot be paused: %v", err)
	}
	if deploymenttest.WantText(t, got, "demo/llama-8b: paused"); strings.Contains(got, "demo/bert") || !b.Workload().Pause.Holds(deploymenttest.Noon) {
		t.Errorf("paused is %+v:\n%s", b.Workload().Pause, got)
	}
}
