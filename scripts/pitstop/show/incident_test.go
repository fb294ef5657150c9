package show

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/reason"
)

func TestAnIncidentIsFoundOpenClosedAndInTheArchive(t *testing.T) {
	s := deploymenttest.Training("llama-8b")
	s.Policy.Switches.Restart = policy.No
	s.Before(5 * time.Minute).GivesUp(2)
	s.Policy.Switches.Restart = policy.Yes
	s.Before(4 * time.Minute).Writes(events.CrewReport{Report: events.ReportProgress, Attempt: 3, Step: 48_200, CheckpointStep: 48_000})
	w := s.Before(90 * time.Second).Reads(deploymenttest.Is(evidence.Lost, "PREEMPTED")).Workload
	d := deploymenttest.New(t, ledgertest.NewStore().Open, w)
	l := d.Ledger
	archived := deploymenttest.Healed("llama-8b", deploymenttest.Noon.Add(-20*cli.Day), time.Hour, 0).Closed
	if err := l.SaveClosed(t.Context(), w, *archived); err != nil {
		t.Fatal(err)
	}
	for id, says := range map[string][]string{
		w.Incident.ID: {"preemption · workload demo/llama-8b · policy spot", "Sat Nov 21, 2026", "11:58:30", "recreate: delete llama-8b first"},
		w.Closed.ID:   {"crash · workload demo/llama-8b · policy spot", "Sat Nov 21, 2026", "11:55:00", "ESCALATED", "  you: "},
		archived.ID:   {"host error · workload demo/llama-8b · policy spot", "Sun Nov 1, 2026", "12:00:00", "RESUMED"},
	} {
		got, err := d.Call("incident", id)
		if err != nil {
			t.Fatal(err)
		}
		deploymenttest.WantText(t, got, append(says, id)...)
	}
	d.Refused([]string{"incident", "llama-8b-20261101-9"}, "there is no incident")
	d.Refused([]string{"incident", "llama-8b-1"}, "there is no workload")
}

// TestIncidentsAreListed: those of one workload however old, those of all since a time or open; each once, the newest first.
func TestIncidentsAreListed(t *testing.T) {
	deploymenttest.EachStore(t, func(t *testing.T, open ledger.Opener) {
		ago := func(days int) time.Time { return deploymenttest.Noon.Add(-time.Duration(days) * cli.Day) }
		open20 := deploymenttest.Preempted("llama-8b", func(s *deploymenttest.Story) { s.End = ago(20) }) // it is open, and so listed
		bert := deploymenttest.Healed("bert", ago(1), 12*time.Minute, 1)
		other := incident.New("demo", "gemma-20261101-1", "tpu") // whose name looks like an incident
		d := deploymenttest.New(t, open, open20.Workload, bert, other)
		for _, w := range []incident.Workload{
			bert, deploymenttest.Healed(other.Name, ago(3), 12*time.Minute, 3), deploymenttest.Healed("llama-8b", ago(51), 12*time.Minute, 0),
		} {
			if err := d.Ledger.SaveClosed(t.Context(), w, *w.Closed); err != nil {
				t.Fatal(err)
			}
		}
		const (
			first  = "2026-11-20 12:00  bert-20261120-2"
			gemma  = "2026-11-18 12:00  gemma-20261101-1-20261118-4  host error, resumed after 12 m 0 s\n"
			opened = "2026-11-01 11:58  llama-8b-20261101-3"
			older  = "2026-10-01 12:00  llama-8b-20261001-1  host error, resumed after 12 m 0 s\n"
			lasts  = "  preemption, open: deleting for 20 d 0 h\n"
		)
		for _, c := range []struct {
			args []string
			want string
		}{
			{[]string{"incidents"}, first + "              host error, resumed after 12 m 0 s\n" + gemma + opened + "        " + lasts},
			{[]string{"incidents", "--since", "1d12h"}, first + "      host error, resumed after 12 m 0 s\n" + opened + lasts},
			{[]string{"incident", "llama-8b"}, opened + lasts + older},
			{[]string{"incident", "demo/gemma-20261101-1"}, gemma},
			{[]string{"incident", "gemma-20261101-1", "--json"}, `{"id":"gemma-20261101-1-20261118-4","workload":"demo/gemma-20261101-1","cause":"host_error",` +
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
	theirs := deploymenttest.Llama(func(s *deploymenttest.Story) { s.ID, s.Project = "apart/llama-8b", "apart" })
	b := deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Llama(), theirs)
	b.Want([]string{"incidents"}, "  apart/llama-8b-20261121-3  preemption", "  demo/llama-8b-20261121-3   preemption")
	b = deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Trains("llama-8b"))
	b.Want([]string{"incidents"}, "no incident is open, and none has opened since 2026-11-14T12:00:00Z; --since looks further back")
	b.Want([]string{"incident", "llama-8b"}, "llama-8b has had no incident")
}

// TestAnIncidentHasTheTermsOfTheTrainingService, for people and as JSON.
func TestAnIncidentHasTheTermsOfTheTrainingService(t *testing.T) {
	s := deploymenttest.Training("llama-8b").Before(time.Minute)
	s.Policy.Switches.Restart = policy.No
	s.Writes(events.CrewReport{Report: events.ReportExited, Attempt: 2, ExitCode: 137, Retries: events.JobRetries{Worker: 5, Job: 3}}).GivesUp(2)
	d := deploymenttest.New(t, ledgertest.NewStore().Open, s.Workload)
	id := s.Closed.ID
	d.Want([]string{"incident", id}, "job       FAILED, INVALID_ARGUMENT (3): The replica worker 0 exited with a non-zero status of 137. Termination reason: Error. · "+
		"retries: 5 of a worker, 3 of the whole job")
	d.Want([]string{"incident", id, "--json"}, `"job":{"state":"FAILED","retries":{"worker":5,"job":3},"error":{"code":3,"status":"INVALID_ARGUMENT","message":"The replica worker 0 `)

	b := deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Trains("llama-8b"))
	b.Tells(func(s *deploymenttest.Story) {
		s.Announces(events.Notice{Status: events.NoticePending, WindowStart: s.Now.Add(time.Minute), WindowEnd: s.Now.Add(time.Hour)}).Ticks()
	})
	b.Want([]string{"incident", "llama-8b-20261121-1"}, "job       RUNNING")
	down := deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Llama())
	down.Want([]string{"incident", "llama-8b-20261121-3"}, "job       QUEUED")
	down.Want([]string{"incident", "llama-8b-20261121-3", "--json"}, `"job":{"state":"QUEUED"}`)
}

// TestANightWithoutCapacityFitsAScreen of 24 lines prints each call, and what each
// zone said last. status and the JSON have the wait too.
func TestANightWithoutCapacityFitsAScreen(t *testing.T) {
	const full = `There is no more capacity in the zone; you can try in another zone where Cloud TPU Nodes are offered (see https://cloud.google.com/tpu/docs/regions)`
	s := deploymenttest.Training("llama-8b", func(s *deploymenttest.Story) {
		s.End = deploymenttest.Noon.Add(-8 * time.Hour)
		s.Policy.Zones = []string{"us-west4-a", "us-west4-b", "us-central1-a", "us-central1-b", "europe-west4-b"}
	})
	s.Before(0).Reads(deploymenttest.Is(evidence.Lost, "PREEMPTED")).Does("delete-1").Reads(deploymenttest.Is(evidence.Gone, "gone"))
	tries := 0
	for asked := len(s.Asked) - 1; s.Now.Before(deploymenttest.Noon); s.Now = s.Now.Add(time.Minute) {
		for ; len(s.Asked) > asked; asked++ {
			s.Learns(evidence.Answered{
				Request: s.Begins(), Origin: s.Origin(events.RankReading), Text: "create of llama-8b refused", Failure: &evidence.Failure{Class: reason.Stockout, Message: full},
			})
			tries++
		}
		s.Ticks()
	}
	b := deploymenttest.New(t, ledgertest.NewStore().Open, s.Workload)
	id := s.Incident.ID
	got, err := b.Call("incident", id)
	if lines := strings.Count(got, "\n"); err != nil || lines > 24 {
		t.Errorf("%v: the night takes %d lines:\n%s", err, lines, got)
	}
	of := fmt.Sprintf("%d tries since Nov 21 04:00", tries)
	deploymenttest.WantText(t, got, "wait for capacity", of, fmt.Sprintf("calls     1 DeleteNode, %d CreateNode (%d in vain); pitstop incident %s --all prints each", tries, tries, id))
	b.Want([]string{"incident", id, "--all"}, "CreateNode projects/demo/locations/europe-west4-b", "refused   us-west4-a", "more times until Nov 21", full)
	b.Want([]string{"status", "llama-8b"}, "no capacity: "+of, "Spot waits without end")
	b.Want([]string{"status"}, "wait for capacity")
	b.Want([]string{"incident", id, "--json"}, `"wait":{"for":"creating","since":"2026-11-21T04:00:00Z"`, fmt.Sprintf(`"tries":%d`, tries), `"next":{"zone":"`)
}
