package show

import (
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
)

func TestAnIncidentIsFoundOpenClosedAndInTheArchive(t *testing.T) {
	w := deploymenttest.Llama()
	closed := *w.Incident
	closed.ID, closed.Outcome, closed.Phase, closed.Advice = "llama-8b-20261120-1", incident.Escalated, incident.Closed, "create it by hand"
	closed.Timeline = append(closed.Timeline[:1:1], incident.Line{At: deploymenttest.Noon, Kind: incident.LineEnded, Text: "escalated · away 57 m 0 s", Reason: "why"})
	w.Closed = &closed
	d := deploymenttest.New(t, ledgertest.NewStore().Open, w)
	l := d.Ledger
	archived := closed
	archived.ID, archived.Closed = "llama-8b-20261101-1", deploymenttest.Noon
	if err := l.SaveClosed(t.Context(), w.ID, archived); err != nil {
		t.Fatal(err)
	}
	for id, says := range map[string]string{
		"llama-8b-20261121-3": "recreate: delete llama-8b first", "llama-8b-20261120-1": "you: create it by hand", "llama-8b-20261101-1": "ESCALATED",
	} {
		got, err := d.Call("incident", id)
		if err != nil {
			t.Fatal(err)
		}
		deploymenttest.WantText(t, got, id, "preemption · workload demo/llama-8b · policy spot", "Sat Nov 21, 2026", "11:58:40", says)
	}
	d.Refused([]string{"incident", "llama-8b-20261101-9"}, "there is no incident")
	d.Refused([]string{"incident", "llama-8b-1"}, "there is no workload")
}

// TestIncidentsAreListed: those of one workload however old, those of all since a time or open; each once, the newest first.
func TestIncidentsAreListed(t *testing.T) {
	deploymenttest.EachStore(t, func(t *testing.T, open ledger.Opener) {
		w := deploymenttest.Llama()
		ended := func(id string, at time.Time) incident.Incident {
			return incident.Incident{ID: id, Cause: events.CauseHostError, Opened: at, Closed: at.Add(12 * time.Minute), Phase: incident.Closed, Outcome: incident.Resumed}
		}
		w.Incident.Opened = deploymenttest.Noon.Add(-20 * cli.Day) // it is open, and so listed
		w.Closed = new(ended("llama-8b-20261120-2", deploymenttest.Noon.Add(-cli.Day)))
		other := incident.New("demo", "gemma-20261101-1", "tpu") // whose name looks like an incident
		d := deploymenttest.New(t, open, w, other)
		for id, in := range map[string]incident.Incident{
			w.ID:     *w.Closed,
			other.ID: ended("gemma-20261101-1-20261118-7", deploymenttest.Noon.Add(-3*cli.Day)),
		} {
			if err := d.Ledger.SaveClosed(t.Context(), id, in); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Ledger.SaveClosed(t.Context(), w.ID, ended("llama-8b-20261001-1", deploymenttest.Noon.Add(-51*cli.Day))); err != nil {
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
			if got, err := d.Call(c.args...); err != nil || got != c.want {
				t.Errorf("%v: %v\n%s\nwant\n%s", c.args, err, got, c.want)
			}
		}
		d.Refused([]string{"incident", "llama-8b", "--prices", pricesOf(t, "v5litepod: {spot: 0.50}")}, "--prices is for one incident")
	})
}

// TestIncidentsOfSeveralProjectsAreNamedWithTheirs, as the verb incident takes them; and nothing is told as nothing.
func TestIncidentsOfSeveralProjectsAreNamedWithTheirs(t *testing.T) {
	theirs := deploymenttest.Llama()
	theirs.ID, theirs.Project = "apart/llama-8b", "apart"
	b := deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Llama(), theirs)
	b.Want([]string{"incidents"}, "  apart/llama-8b-20261121-3  preemption", "  demo/llama-8b-20261121-3   preemption")
	quiet := deploymenttest.Llama()
	quiet.Incident = nil
	b = deploymenttest.New(t, ledgertest.NewStore().Open, quiet)
	b.Want([]string{"incidents"}, "no incident is open, and none has opened since 2026-11-14T12:00:00Z; --since looks further back")
	b.Want([]string{"incident", "llama-8b"}, "llama-8b has had no incident")
}

// TestAnIncidentHasTheTermsOfTheTrainingService, for people and as JSON.
func TestAnIncidentHasTheTermsOfTheTrainingService(t *testing.T) {
	w := deploymenttest.Llama()
	in := w.Incident
	in.Cause, in.Outcome, in.Code, in.Phase, in.Closed = events.CauseCrash, incident.Escalated, incident.CodeSameError, incident.Closed, deploymenttest.Noon
	in.Down = deploymenttest.Noon.Add(-time.Minute)
	in.Error = incident.Error{Attempt: 1, Exit: events.Exit{Code: 137, Retries: events.JobRetries{Worker: 5, Job: 3}}}
	w.Closed, w.Incident, w.Ended, w.Effects = in, nil, deploymenttest.Noon, nil
	d := deploymenttest.New(t, ledgertest.NewStore().Open, w)
	d.Want([]string{"incident", in.ID}, "job       FAILED, INVALID_ARGUMENT (3): The replica worker 0 exited with a non-zero status of 137. Termination reason: Error. · "+
		"retries: 5 of a worker, 3 of the whole job")
	d.Want([]string{"incident", in.ID, "--json"}, `"job":{"state":"FAILED","retries":{"worker":5,"job":3},"error":{"code":3,"status":"INVALID_ARGUMENT","message":"The replica worker 0 `)

	open := deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Llama())
	open.Want([]string{"incident", in.ID}, "job       RUNNING")
	down := deploymenttest.Llama()
	down.Incident.Down = deploymenttest.Noon
	open = deploymenttest.New(t, ledgertest.NewStore().Open, down)
	open.Want([]string{"incident", in.ID}, "job       QUEUED")
	open.Want([]string{"incident", in.ID, "--json"}, `"job":{"state":"QUEUED"}`)
}
