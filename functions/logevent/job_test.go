package logevent_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/fleet/fleettest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider"
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
			Condition:   incident.Ready, State: "ready", At: b.Clock.Now(),
		})
		b.Must(err)
	}
	b.Clock.Advance(time.Minute)
	b.Calls()
	return b
}

// onMachines has a Job alone be on these machines since a time, as patrol reads it, and on no others.
func (b *bench) onMachines(job string, since time.Time, names ...string) {
	b.T.Helper()
	w, ref := b.Workload(fleettest.Project+"/"+job), provider.Ref{Project: fleettest.Project, Zone: "us-east5/research/train", Name: job}
	was, err := b.Ledger.Machines(b.T.Context(), ref.Project, ref.Zone, ref.Name)
	b.Must(err)
	is := ledger.Machines{Incarnation: w.Slices[0].Incarnation, Names: names}
	b.Must(b.Fleet.MapMachines(b.T.Context(), w, provider.Slice{Ref: ref, At: since}, was, is))
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
		Condition:   incident.Lost, State: "Failed", At: b.Clock.Now(),
	})
	b.Must(err)
	b.Clock.Advance(time.Minute)
	if b.Workload("demo/gemma").Incident == nil {
		t.Fatal("a lost Job opens no incident")
	}
	b.Want(b.deliver(b.called("job-deleted", "gemma")), fleettest.Handled)
	w := b.Workload("demo/gemma")
	b.Want(w.Incident == nil || w.Incident.Outcome != "", true)
	b.Want(b.released("demo/gemma"), []string{"gemma"})
}

// TestALostMachineIsTheCauseOfItsJob: the entry of a machine finds the Job that patrol read on it, and names the cause. Nothing is read
// for it, and nothing is asked of anybody.
func TestALostMachineIsTheCauseOfItsJob(t *testing.T) {
	const machine, other = "gke-research-tpu-2f41c6aa-bq7x", "gke-research-tpu-2f41c6aa-0000"
	lost := func(b *bench, name string) []byte { return b.preempted("zones/us-east5-a/instances/" + name) }
	b := inCluster(t)
	b.onMachines("gemma", b.Clock.Now().Add(-time.Hour), machine)
	before := b.Workload("demo/llama-8b")
	b.Want(b.deliver(lost(b, other)), fleettest.Ignored)
	b.Want(b.Workload("demo/gemma").Incident, (*incident.Incident)(nil))
	b.Want(b.deliver(lost(b, machine)), fleettest.Handled)
	b.nothingSent()
	in := b.Workload("demo/gemma").Incident
	if in == nil || in.Cause != events.CausePreemption {
		t.Fatalf("the incident: %+v", in)
	}
	b.Want(b.Workload("demo/llama-8b"), before)
}

// TestAMachineConcernsTheJobThatWasOnIt: Jobs use it one after the other, and its entry may come late.
func TestAMachineConcernsTheJobThatWasOnIt(t *testing.T) {
	const machine = "gke-research-tpu-2f41c6aa-bq7x"
	for name, c := range map[string]struct {
		since, until time.Duration // before now; an until of zero is none
		want         string
	}{
		"it is on it":                 {time.Hour, 0, fleettest.Handled},
		"it was on it then":           {time.Hour, time.Nanosecond, fleettest.Ignored},
		"it left in the same moment":  {time.Hour, -time.Nanosecond, fleettest.Handled},
		"it came in the same moment":  {0, 0, fleettest.Handled},
		"it has come since the entry": {-time.Nanosecond, 0, fleettest.Ignored},
	} {
		t.Run(name, func(t *testing.T) {
			b := inCluster(t)
			b.onMachines("gemma", b.Clock.Now().Add(-c.since), machine)
			if c.until != 0 {
				b.onMachines("gemma", b.Clock.Now().Add(-c.until))
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
