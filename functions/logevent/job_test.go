package logevent_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/providertest/trainingtest"
)

// inCluster is a bench with a training of two Jobs of a JobSet, as patrol reads it, and one of a Job alone.
func inCluster(t *testing.T) *bench {
	t.Helper()
	b := newBench(t)
	for _, job := range [][2]string{{"llama-8b-slice-0", "llama-8b"}, {"llama-8b-slice-1", "llama-8b"}, {"gemma", ""}} {
		name, set := job[0], job[1]
		_, err := b.Fleet.Observe(t.Context(), provider.Slice{
			Ref:         provider.Ref{Project: fleettest.Project, Zone: "us-east5/research/train", Name: name, QueuedResource: set},
			Incarnation: events.Incarnation{Zone: "us-east5/research/train", ID: "uid-" + name, Created: b.Clock.Now()},
			Condition:   evidence.Ready, State: "ready", At: b.Clock.Now(),
		})
		b.Must(err)
	}
	b.Clock.Advance(time.Minute)
	b.Calls()
	return b
}

// onMachines has a Job alone be on these machines since a time, as patrol reads it, and on no others. Failed is when it failed; zero is never.
func (b *bench) onMachines(job string, since, failed time.Time, names ...string) {
	b.T.Helper()
	w, ref := b.Workload(fleettest.Project+"/"+job), provider.Ref{Project: fleettest.Project, Zone: "us-east5/research/train", Name: job}
	was, err := b.Ledger.Machines(b.T.Context(), ref.Project, ref.Zone, ref.Name)
	b.Must(err)
	is := ledger.Machines{Incarnation: w.Slices[0].Incarnation, Names: names}
	b.Must(b.Fleet.MapMachines(b.T.Context(), w, provider.Slice{Ref: ref, At: since, Failed: failed}, was, is))
}

// called is an entry of a recorded call to a cluster, made now, about a Job or JobSet of that name.
func (b *bench) called(id, name string) []byte {
	b.T.Helper()
	raw, err := os.ReadFile("../../events/testdata/sources/gke-jobs.json")
	b.Must(err)
	var all []map[string]any
	b.Must(json.Unmarshal(raw, &all))
	for _, e := range all {
		if e["insertId"] == id {
			e["timestamp"] = b.Clock.Now()
			raw, err := json.Marshal(e)
			b.Must(err)
			return []byte(strings.ReplaceAll(string(raw), "/llama-8b", "/"+name))
		}
	}
	b.T.Fatalf("no entry %s", id)
	return nil
}

// released are the slices of a workload that are left to their owner.
func (b *bench) released(id string) (names []string) {
	for _, s := range b.Workload(id).Slices {
		if s.IsReleased() {
			names = append(names, s.Name)
		}
	}
	return names
}

func TestAJobThatItsOwnerDeletesIsReleased(t *testing.T) {
	b := inCluster(t)
	b.Want(b.deliver(b.called("job-deleted", "gemma")), fleettest.Handled)
	b.Want(b.released("demo/gemma"), []string{"gemma"})
	b.Want(b.released("demo/llama-8b"), []string(nil))
	b.Want(b.deliver(b.called("job-deleted", "gemma")), fleettest.Handled) // once more
	b.nothingSent()
}

func TestAJobSetThatItsOwnerDeletesGoesWithAllItsJobs(t *testing.T) {
	for _, entry := range []string{"jobset-deleted", "jobset-deleted-in-the-other-order"} {
		b := inCluster(t)
		b.Want(b.deliver(b.called(entry, "llama-8b")), fleettest.Handled)
		b.Want(b.released("demo/llama-8b"), []string{"llama-8b-slice-0", "llama-8b-slice-1"})
		b.Want(b.released("demo/gemma"), []string(nil))
		b.nothingSent()
	}
}

func TestWhatIsNoOwnersWordOnAJobChangesNothing(t *testing.T) {
	for entry, want := range map[string]string{
		"job-deleted-by-its-ttl": fleettest.Ignored, "job-delete-refused": fleettest.Ignored, "job-labelled": fleettest.Ignored, "job-failed": fleettest.Ignored,
	} {
		b := inCluster(t)
		before := b.Workload("demo/gemma")
		b.Want(b.deliver(b.called(entry, "gemma")), want)
		b.Want(b.Workload("demo/gemma"), before)
		b.nothingSent()
	}
}

// TestAJobThatNobodyKnowsIsNotLookedFor: a Job is read by patrol, and no call is made for its entry.
func TestAJobThatNobodyKnowsIsNotLookedFor(t *testing.T) {
	b := inCluster(t)
	b.Want(b.deliver(b.called("job-deleted", "another")), fleettest.Ignored)
	b.Want(b.deliver(b.called("job-created", "another")), fleettest.Ignored)
	b.Want(b.Workloads(), []string{"demo/gemma", "demo/llama-8b"})
	b.nothingSent()
}

// TestAnOwnerWhoDeletesALostJobEndsItsIncident: nobody brings back what its owner has taken away.
func TestAnOwnerWhoDeletesALostJobEndsItsIncident(t *testing.T) {
	b := inCluster(t)
	_, err := b.Fleet.Observe(t.Context(), provider.Slice{
		Ref:         provider.Ref{Project: fleettest.Project, Zone: "us-east5/research/train", Name: "gemma"},
		Incarnation: events.Incarnation{Zone: "us-east5/research/train", ID: "uid-gemma", Created: fleettest.Start},
		Condition:   evidence.Lost, State: "Failed", At: b.Clock.Now(),
	})
	b.Must(err)
	b.Clock.Advance(time.Minute)
	if b.Workload("demo/gemma").Incident == nil {
		t.Fatal("a lost Job opens no incident")
	}
	b.Want(b.deliver(b.called("job-deleted", "gemma")), fleettest.Handled)
	w := b.Shown("demo/gemma")
	b.Want(w.Incident == nil || w.Incident.Outcome != "", true)
	b.Want(b.released("demo/gemma"), []string{"gemma"})
}

// TestALostMachineIsTheCauseOfItsJob: the entry of a machine finds the Job that patrol read on it, and names the cause. Nothing is read
// for it, and nothing is asked of anybody.
func TestALostMachineIsTheCauseOfItsJob(t *testing.T) {
	const machine, other = "gke-research-tpu-2f41c6aa-bq7x", "gke-research-tpu-2f41c6aa-0000"
	lost := func(b *bench, name string) []byte { return b.preempted("zones/us-east5-a/instances/" + name) }
	b := inCluster(t)
	b.onMachines("gemma", b.Clock.Now().Add(-time.Hour), time.Time{}, machine)
	before := b.Workload("demo/llama-8b")
	b.Want(b.deliver(lost(b, other)), fleettest.Ignored)
	b.Want(b.Workload("demo/gemma").Incident, (*incident.Incident)(nil))
	b.Want(b.deliver(lost(b, machine)), fleettest.Handled)
	b.nothingSent()
	in := b.Shown("demo/gemma").Incident
	if in == nil || in.Cause != events.CausePreemption {
		t.Fatalf("the incident: %+v", in)
	}
	b.Want(b.Workload("demo/llama-8b"), before)
}

// TestAMachineConcernsTheJobThatWasOnIt: Jobs use it one after the other, and its entry may come late.
func TestAMachineConcernsTheJobThatWasOnIt(t *testing.T) {
	const machine = "gke-research-tpu-2f41c6aa-bq7x"
	for name, c := range map[string]struct {
		since, until, failed time.Duration // before now; an until or failed of zero is none
		want                 string
	}{
		"it is on it":                              {time.Hour, 0, 0, fleettest.Handled},
		"it was on it then":                        {time.Hour, time.Nanosecond, 0, fleettest.Ignored},
		"it left in the same moment":               {time.Hour, -time.Nanosecond, 0, fleettest.Handled},
		"it came in the same moment":               {0, 0, 0, fleettest.Handled},
		"it has come since the entry":              {-time.Nanosecond, 0, 0, fleettest.Ignored},
		"it had failed, and was read later":        {time.Hour, -time.Minute, bounds.NoticedFor + time.Second, fleettest.Ignored},
		"it failed within the notice of that":      {time.Hour, -time.Minute, bounds.NoticedFor - time.Second, fleettest.Handled},
		"it failed just before the reading showed": {time.Hour, time.Second, time.Minute, fleettest.Ignored},
	} {
		t.Run(name, func(t *testing.T) {
			b := inCluster(t)
			var failed time.Time
			if c.failed != 0 {
				failed = b.Clock.Now().Add(-c.failed)
			}
			b.onMachines("gemma", b.Clock.Now().Add(-c.since), time.Time{}, machine)
			if c.until != 0 {
				b.onMachines("gemma", b.Clock.Now().Add(-c.until), failed)
			}
			b.Want(b.deliver(b.preempted("zones/us-east5-a/instances/"+machine)), c.want)
			b.Want(b.Workload("demo/gemma").Incident != nil, c.want == fleettest.Handled)
		})
	}
}

// TestADryRunDeletesNothing: kubectl delete --dry-run=server leaves the same entry, with one more option.
func TestADryRunDeletesNothing(t *testing.T) {
	b := inCluster(t)
	raw := strings.Replace(string(b.called("job-deleted", "gemma")), `"methodName"`, `"request":{"kind":"DeleteOptions","dryRun":["All"]},"methodName"`, 1)
	b.Want(b.deliver([]byte(raw)), fleettest.Ignored)
	b.Want(b.released("demo/gemma"), []string(nil))
}

// inPod is a line of the crew in a Pod of a Job's life, written now into the log of a project.
func (b *bench) inPod(project, job, life string, step int64) []byte {
	return trainingtest.PodEntry(events.CrewReport{
		Schema: events.Schema, Report: events.ReportProgress, Project: project, Zone: "us-east5/research/train", Node: job, Life: life, Hostname: job + "-0-x7k2p", Attempt: 1, Step: step,
	}, b.Clock.Now(), int(step))
}

// TestACrewInAPodIsHeard: its line is of the Job's life that it names, and of the project whose log has it. No call is made for it.
func TestACrewInAPodIsHeard(t *testing.T) {
	for name, c := range map[string]struct {
		project, job, life string
		want               string
		step               int64
		kept               int
	}{
		"of a Job":                            {fleettest.Project, "gemma", "uid-gemma", fleettest.Handled, 0, 0},
		"of a Job of a JobSet":                {fleettest.Project, "llama-8b-slice-1", "uid-llama-8b-slice-1", fleettest.Handled, 100, 0},
		"in another slice's life":             {fleettest.Project, "llama-8b-slice-1", "uid-llama-8b-slice-0", fleettest.Handled, 0, 1},
		"in a life that is still to be read":  {fleettest.Project, "llama-8b-slice-1", "uid-next", fleettest.Handled, 0, 1},
		"of the previous release":             {fleettest.Project, "llama-8b-slice-1", "", fleettest.Ignored, 0, 0},
		"of a Job that nobody knows":          {fleettest.Project, "another", "uid-another", fleettest.Ignored, 0, 0},
		"in the log of a project not watched": {"other", "llama-8b-slice-1", "uid-llama-8b-slice-1", fleettest.Ignored, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			b := inCluster(t)
			b.Want(b.deliver(b.inPod(c.project, c.job, c.life, 100)), c.want)
			w := b.Workload("demo/llama-8b")
			b.Want(b.Shown(w.ID).Training.Step, c.step)
			b.Want(len(w.Unbound), c.kept)
			b.Want(b.Shown("demo/gemma").Training.Step == 100, c.job == "gemma")
			b.nothingSent()
		})
	}
}

// TestALineInAPodWaitsForTheReadingOfItsLife: JobSet has made the Job anew, and patrol lists it a minute later.
func TestALineInAPodWaitsForTheReadingOfItsLife(t *testing.T) {
	b := inCluster(t)
	b.Want(b.deliver(b.inPod(fleettest.Project, "gemma", "uid-next", 100)), fleettest.Handled)
	b.Clock.Advance(time.Minute)
	_, err := b.Fleet.Observe(t.Context(), provider.Slice{
		Ref:         provider.Ref{Project: fleettest.Project, Zone: "us-east5/research/train", Name: "gemma"},
		Incarnation: events.Incarnation{Zone: "us-east5/research/train", ID: "uid-next", Created: b.Clock.Now().Add(-90 * time.Second)},
		Condition:   evidence.Ready, State: "ready", At: b.Clock.Now(),
	})
	b.Must(err)
	w := b.Workload("demo/gemma")
	b.Want(b.Shown(w.ID).Training.Step, int64(100))
	b.Want(len(w.Unbound), 0)
}
