package world

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/provider/gke"
)

// clustered is a world with one cluster, and the log entries that were written there.
type clustered struct {
	*World
	*Cluster
	t       *testing.T
	entries []string
}

func newClustered(t *testing.T, jobs ...JobConfig) *clustered {
	t.Helper()
	return newClusteredBy(t, Options{}, jobs...)
}

func newClusteredBy(t *testing.T, how Options, jobs ...JobConfig) *clustered {
	t.Helper()
	w := &clustered{World: New("cluster", Scenario{
		Project: "demo", Start: time.Date(2026, 1, 5, 0, 0, 0, 0, time.UTC),
		Clusters: []ClusterConfig{{
			Name: "research", Location: "us-east5", Jobs: jobs,
			Pools: []PoolConfig{
				{Name: "flex", Machine: "ct6e-standard-4t", Topology: "2x4", FlexStart: true, RunsFor: Duration(20 * time.Hour), Machines: 2},
				{Name: "spot", Machine: "ct5lp-hightpu-4t", Spot: true, Machines: 3},
			},
		}},
	}, how), t: t}
	w.Hooks.Logged = func(raw []byte) { w.entries = append(w.entries, string(raw)) }
	if err := w.Scenario.validate(); err != nil {
		t.Fatal(err)
	}
	if err := w.Found(t.Context()); err != nil {
		t.Fatal(err)
	}
	w.Cluster = w.GKE[0]
	return w
}

func (w *clustered) pass(d time.Duration) {
	w.t.Helper()
	end := w.Clock.Now().Add(d)
	for more := true; more; {
		more = w.Clock.Step(end)
	}
	w.Clock.Advance(end)
	if len(w.Story.Faults) > 0 {
		w.t.Fatal(w.Story.Faults)
	}
}

// reading is what Pitstop reads of a slice.
func (w *clustered) reading(g *Gang) gke.Reading {
	w.t.Helper()
	for _, r := range gke.Readings(w.Objects(), "us-east5", "research", w.Clock.Now()) {
		if r.Name == g.Slice {
			return r
		}
	}
	return gke.Reading{}
}

func (w *clustered) wrote(what string) bool {
	for _, e := range w.entries {
		if strings.Contains(e, what) {
			return true
		}
	}
	return false
}

// TestAJobTrainsUntilItsMachineIsLost: nobody brings it back before its owner does.
func TestAJobTrainsUntilItsMachineIsLost(t *testing.T) {
	job := JobConfig{Name: "llama", Pool: "flex", Directory: "gs://checkpoints/llama", Trainer: TrainerConfig{Step: 100}}
	w := newClustered(t, job)
	g := w.World.Gangs()[0]
	w.pass(time.Hour)
	if _, trains := g.Running(); !trains || g.LastStep() < 400 || w.reading(g).State != gke.Ready {
		t.Fatalf("it does not train: step %d, %+v", g.LastStep(), w.reading(g))
	}
	if !w.wrote(`"pod_name":"llama-0-`) || !w.wrote(`"zone":"us-east5/research/default"`) {
		t.Errorf("its crew writes no lines as in a Pod: %.2000s", w.entries)
	}
	machines := w.Machines(g)
	if len(machines) != 2 {
		t.Fatalf("it is on %v", machines)
	}
	w.Lose(machines[1], events.CausePreemption, 4*time.Minute)
	w.pass(10 * time.Minute)
	if _, trains := g.Running(); trains || w.reading(g).State != gke.Lost {
		t.Fatalf("without a machine: %+v", w.reading(g))
	}
	if !w.wrote("compute.instances.preempted") || !w.wrote("PreemptionEvent") || !w.wrote(`"reason":"BackoffLimitExceeded"`) {
		t.Error("no log tells it")
	}
	w.pass(6 * time.Hour)
	if w.reading(g).State != gke.Lost {
		t.Errorf("somebody brought it back: %+v", w.reading(g))
	}
	if !w.Delete(job, "ada@example.com") {
		t.Fatal("it was not there")
	}
	w.pass(time.Minute)
	if err := w.Apply(job, "ada@example.com"); err != nil {
		t.Fatal(err)
	}
	before := g.Saved()
	w.pass(time.Hour)
	if _, trains := g.Running(); !trains || g.Saved() <= before {
		t.Errorf("its owner brought it back, and it does not train: %+v", w.reading(g))
	}
	if !w.wrote("io.k8s.batch.v1.jobs.delete") || !w.wrote("io.k8s.batch.v1.jobs.create") {
		t.Error("the audit log has no word of its owner's")
	}
	for _, c := range w.entries {
		if strings.Contains(c, "ttl-after-finished") {
			t.Errorf("a controller is said to have deleted it: %s", c)
		}
	}
}

// TestFlexStartEnds as the machines say.
func TestFlexStartEnds(t *testing.T) {
	w := newClustered(t, JobConfig{Name: "llama", Pool: "flex"})
	g := w.World.Gangs()[0]
	w.pass(19 * time.Hour)
	if r := w.reading(g); r.State != gke.Ready || !r.Ends.Equal(w.Start.Add(20*time.Hour)) || r.EndsAssumed {
		t.Fatalf("%+v", r)
	}
	w.pass(2 * time.Hour)
	if r := w.reading(g); r.State != gke.Lost || !w.wrote("impending-node-termination") {
		t.Errorf("%+v", r)
	}
}

// TestAJobSetBeginsAgain as long as restarts are left, and its slices train together.
func TestAJobSetBeginsAgain(t *testing.T) {
	w := newClustered(t, JobConfig{Name: "pair", Namespace: "teams", Pool: "spot", Slices: 2, Restarts: 1, Directory: "gs://checkpoints/pair"})
	g := w.World.Gangs()
	w.pass(time.Hour)
	for round := range 2 {
		for _, one := range g {
			if _, trains := one.Running(); !trains {
				t.Fatalf("round %d: %s does not train: %+v", round, one.Slice, w.reading(one))
			}
		}
		if round == 0 {
			w.Exit(g[1], w.Pods(g[1])[0], 1)
			w.pass(time.Minute)
			if _, trains := g[0].Running(); trains {
				t.Error("a slice trains without the other one")
			}
			w.pass(time.Hour)
		}
	}
	w.Exit(g[0], w.Pods(g[0])[0], 1)
	w.pass(time.Hour)
	if r := w.reading(g[0]); r.State != gke.Lost || r.Group != "pair" {
		t.Errorf("no restart is left: %+v", r)
	}
}

// TestAJobSetFailsForWhatOneSliceDid: all of it is lost, and for the same reason.
func TestAJobSetFailsForWhatOneSliceDid(t *testing.T) {
	w := newClustered(t, JobConfig{Name: "pair", Pool: "spot", Slices: 2})
	g := w.World.Gangs()
	w.pass(time.Hour)
	w.Exit(g[1], w.Pods(g[1])[0], 1)
	w.pass(time.Minute)
	for _, one := range g {
		if r := w.reading(one); r.State != gke.Lost || r.Cause != events.CauseCrash {
			t.Errorf("%+v", r)
		}
	}
}

// TestAMachineSpeaksAgain soon enough, and its Pods were never away.
func TestAMachineSpeaksAgain(t *testing.T) {
	w := newClustered(t, JobConfig{Name: "llama", Pool: "flex"})
	g := w.World.Gangs()[0]
	w.pass(time.Hour)
	m := w.Machines(g)[0]
	w.Silence(m, false)
	w.pass(2 * time.Minute)
	w.Hear(m)
	w.pass(time.Minute)
	if r := w.reading(g); r.State != gke.Ready {
		t.Errorf("%+v", r)
	}
}

// TestAGangWithoutAMember waits for it, and then ends; the one that was made anew trains with nobody.
func TestAGangWithoutAMember(t *testing.T) {
	for name, waits := range map[string]bool{"ends": false, "waits": true} {
		t.Run(name, func(t *testing.T) {
			w := newClustered(t, JobConfig{Name: "llama", Pool: "flex", BearsLoss: true, Waits: waits})
			g := w.World.Gangs()[0]
			w.pass(time.Hour)
			w.Lose(w.Machines(g)[0], events.CausePreemption, 3*time.Minute)
			w.pass(8 * time.Minute)
			if _, trains := g.Running(); trains || w.reading(g).State != gke.Ready {
				t.Fatalf("%+v", w.reading(g))
			}
			w.pass(time.Hour)
			if got, want := w.reading(g).State, map[bool]gke.State{false: gke.Lost, true: gke.Ready}[waits]; got != want {
				t.Errorf("it is %s, want %s", got, want)
			}
			if _, trains := g.Running(); trains {
				t.Error("it trains")
			}
		})
	}
}

// TestASilentMachine goes on, or has died.
func TestASilentMachine(t *testing.T) {
	for name, died := range map[string]bool{"goes on": false, "has died": true} {
		t.Run(name, func(t *testing.T) {
			w := newClustered(t, JobConfig{Name: "llama", Pool: "flex"})
			g := w.World.Gangs()[0]
			w.pass(time.Hour)
			m := w.Machines(g)[0]
			w.Silence(m, died)
			w.pass(2 * time.Minute)
			if _, trains := g.Running(); trains == died || w.reading(g).State != gke.Unhealthy {
				t.Fatalf("trains %v: %+v", trains, w.reading(g))
			}
			w.pass(10 * time.Minute)
			if r := w.reading(g); len(r.Unended) != 1 || r.State == gke.Lost {
				t.Errorf("its Pod is not ended: %+v", r)
			}
			w.Hear(m)
			w.pass(10 * time.Minute)
			if r := w.reading(g); r.State != gke.Lost {
				t.Errorf("it speaks again: %+v", r)
			}
		})
	}
}

// TestEvictedSuspendedExpired are the other ways in which a Job stops.
func TestEvictedSuspendedExpired(t *testing.T) {
	day := Duration(24 * time.Hour)
	job := JobConfig{Name: "queued", Pool: "spot", Queue: "teams", Expires: &day, Retries: 3}
	w := newClustered(t, job)
	g := w.World.Gangs()[0]
	w.pass(time.Hour)
	w.Evict(g, w.Pods(g)[0])
	w.pass(10 * time.Minute)
	if _, trains := g.Running(); !trains {
		t.Fatalf("it has retries left: %+v", w.reading(g))
	}
	w.Queued(job, true)
	w.pass(time.Minute)
	if _, trains := g.Running(); trains || w.reading(g).State != gke.Creating {
		t.Fatalf("%+v", w.reading(g))
	}
	w.Queued(job, false)
	w.pass(10 * time.Minute)
	if _, trains := g.Running(); !trains {
		t.Fatalf("it is resumed: %+v", w.reading(g))
	}
	for range 3 { // the eviction was one, too
		w.Exit(g, w.Pods(g)[0], 137)
		w.pass(20 * time.Minute)
	}
	if r := w.reading(g); r.State != gke.Lost {
		t.Fatalf("%+v", r)
	}
	w.pass(24 * time.Hour)
	if r := w.reading(g); r.Name != "" || !w.wrote("ttl-after-finished-controller") {
		t.Errorf("it is there: %+v", r)
	}
}

// TestAClusterIsReached in memory and over a socket, a few objects at a time.
func TestAClusterIsReached(t *testing.T) {
	for name, wire := range map[string]bool{"in memory": false, "over a socket": true} {
		t.Run(name, func(t *testing.T) {
			w := newClustered(t, JobConfig{Name: "pair", Pool: "spot", Slices: 12})
			url, through, err := w.reached(wire)
			if err != nil {
				t.Fatal(err)
			}
			o, err := gke.Client{HTTP: &http.Client{Transport: through}, URL: url}.List(t.Context())
			if err != nil || len(o.Jobs) != 12 || len(o.Nodes) != 5 || len(o.Pods) != 12 {
				t.Errorf("%d Jobs, %d machines, %d Pods: %v", len(o.Jobs), len(o.Nodes), len(o.Pods), err)
			}
			if n := len(w.Server.Calls()); n != 8 { // two of them for what some of them wait in: there are fewer machines than slices
				t.Errorf("%d calls: each page has %d objects", n, page)
			}
			if err := w.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestADryRunCountsForNothing: the pipeline asks, and nobody takes it for a creation.
func TestADryRunCountsForNothing(t *testing.T) {
	job := JobConfig{Name: "llama", Pool: "spot"}
	w := newClustered(t, job)
	w.Hooks.Ours = func(context.Context, *Cluster, JobConfig, string, []byte, gke.Objects) {
		t.Error("it was taken for a call that changes something")
	}
	before := len(w.entries)
	_, _, path := job.paths()
	manifest, err := w.Ordered(job)
	if err != nil {
		t.Fatal(err)
	}
	body, err := json.Marshal(manifest)
	if err != nil {
		t.Fatal(err)
	}
	dry := func() int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://research"+path+"?dryRun=All", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		res, err := w.audited(w.Server.Transport()).RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := res.Body.Close(); err != nil {
			t.Fatal(err)
		}
		return res.StatusCode
	}
	if code := dry(); code != http.StatusConflict {
		t.Errorf("answer %d while the Job is there", code)
	}
	if !w.Cluster.Delete(job, "ada@example.com") {
		t.Fatal("it is not there")
	}
	w.pass(time.Minute)
	deleted := len(w.entries)
	if code := dry(); code != http.StatusCreated {
		t.Errorf("answer %d once it is gone", code)
	}
	w.pass(time.Minute)
	if len(w.Story.Calls) > 0 || deleted-before != 1 || len(w.entries) > deleted || len(w.Objects().Jobs) > 0 {
		t.Errorf("calls %v, entries %v, %d Jobs", w.Story.Calls, w.entries[before:], len(w.Objects().Jobs))
	}
}

// TestPatrolWatchesAJob: its document says what its cluster says.
func TestPatrolWatchesAJob(t *testing.T) {
	for name, wire := range map[string]bool{"in memory": false, "over a socket": true} {
		t.Run(name, func(t *testing.T) {
			job := JobConfig{Name: "llama", Namespace: "teams", Pool: "flex", Policy: "spot", Secret: "hf_secret"}
			w := newClusteredBy(t, Options{Wire: wire}, job)
			defer func() {
				if err := w.Close(); err != nil {
					t.Error(err)
				}
			}()
			g := w.World.Gangs()[0]
			w.Tick(w.Start.Add(time.Minute))
			slot := func() incident.Slot {
				t.Helper()
				doc, _, err := w.Ledger.Workload(t.Context(), "demo/llama")
				if err != nil || doc.Provider != gke.Name || doc.Slice("llama") == nil {
					t.Fatalf("%+v: %v", doc, err)
				}
				return *doc.Slice("llama")
			}
			w.pass(10 * time.Minute)
			if s := slot(); s.Condition != evidence.Ready || s.Zone != "us-east5/research/teams" || s.Incarnation.ID != g.Job().UID || s.Label != "spot" {
				t.Fatalf("%+v", s)
			}
			w.Lose(w.Machines(g)[0], events.CausePreemption, time.Hour)
			w.pass(10 * time.Minute)
			if s := slot(); s.Condition != evidence.Lost {
				t.Errorf("it has failed for good, and is %s", s.Condition)
			}
			w.Delete(job, "ada@example.com")
			w.pass(10 * time.Minute)
			if s := slot(); s.Condition != evidence.Gone {
				t.Errorf("it was deleted, and is %s", s.Condition)
			}
			if len(w.Story.Calls) > 0 {
				t.Errorf("it was only to be watched: %v", w.Story.Calls)
			}
		})
	}
}

func TestClusterFaultsAreTold(t *testing.T) {
	_, err := Parse([]byte(`
project: demo
clusters:
  - name: research
    location: us-east5
    pools: [{name: a, machine: ct6e-standard-4t, topology: 3x3, machines: 1}, {name: b, machine: ct6e-standard-4t, spot: true, flex_start: true, machines: 1}]
    jobs: [{name: x, pool: c}, {name: y, pool: b, restarts: 2}, {name: y, pool: b}]
`))
	for _, want := range []string{"pool a: topology 3x3", "pool b: it is flex_start or spot", `there is no pool "c"`, "only a JobSet", `job "y": each Job`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
}

// TestMachinesThatComeInTheCalmLiveLong: those that are there end as planned.
func TestMachinesThatComeInTheCalmLiveLong(t *testing.T) {
	w := newClustered(t, JobConfig{Name: "llama", Pool: "flex", Directory: "gs://checkpoints/llama"})
	w.Calm()
	before := w.Names()
	w.pass(21 * time.Hour)
	for _, name := range w.Names() {
		end := w.node(name).Annotations["node.gke.io/machine-termination-datetime"]
		at, err := time.Parse(time.RFC3339, end)
		if n := w.node(name); n.Labels["cloud.google.com/gke-flex-start"] != "" && (err != nil || at.Sub(n.Created) != time.Duration(LongestRun) || slices.Contains(before, name)) {
			t.Errorf("%s ends at %q", name, end)
		}
	}
}
