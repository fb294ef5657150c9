package show

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/uuid"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/publish/publishtest"
	"pitstop.internal/shared/view"
)

func TestStatusTellsHowEveryWorkloadStands(t *testing.T) {
	other := deploymenttest.Begin("bert")
	other.Slice.Zone, other.Slice.Directory, other.Slice.Facts = "us-west4-b", "", evidence.Facts{Accelerator: "v2-8"}
	other.Before(50 * time.Hour).Reads()
	d := deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Llama(deploymenttest.In("us-west4-a")), other.Workload)
	l := d.Ledger
	got, err := d.Call("status", "bert", "llama-8b")
	if err != nil {
		t.Fatal(err)
	}
	deploymenttest.WantText(t, got, "demo/llama-8b  policy spot", "llama-8b us-west4-a v5litepod-16 spot  PREEMPTED for 1 m 30 s",
		"step 48,190 6 m 0 s ago, checkpoint 48,000 reported by the crew 6 m 0 s ago, not verified; 40,000 is verified", "llama-8b-20261121-3: preemption, deleting for 1 m 30 s, until 2026-11-21T12:43:30Z",
		"delete llama-8b: begun 1 m 10 s ago", "demo/bert  no label pitstop-policy: watched", "bert us-west4-b v2-8  READY for 2 d 2 h", "no word from a crew yet")
	if got, err = d.Call("status", "bert"); err != nil || strings.Contains(got, "llama") {
		t.Errorf("status of one: %v\n%s", err, got)
	}
	var wrong cli.UsageError
	if _, err = d.Call("status", "berta"); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "demo/bert, demo/llama-8b") {
		t.Errorf("a workload that is not there: %v", err)
	}
	if err := l.SetPause(t.Context(), &evidence.Pause{By: "ada", Why: "night shift", At: deploymenttest.Noon}); err != nil {
		t.Fatal(err)
	}
	got, _ = d.Call("status") //nolint:errcheck // it went well before
	deploymenttest.WantText(t, got, "everything is paused by ada: night shift")
	got, err = d.Call("status", "--json", "llama-8b")
	if err != nil || !strings.HasPrefix(got, `{`) || strings.Count(got, "\n") != 1 {
		t.Errorf("as JSON: %v\n%s", err, got)
	}
}

func TestStatusTellsThePolicyAndWhatWouldFollow(t *testing.T) {
	deploymenttest.EachStore(t, func(t *testing.T, open ledger.Opener) {
		w := deploymenttest.Trains("llama-8b", deploymenttest.Read(func(r *evidence.Read) { r.Facts.Label = "night" }))
		b := deploymenttest.New(t, open, w)
		b.Want([]string{"status", "llama-8b"}, "the ledger does not say yet what the deployment allows", "policy night, which is no policy: watched")
		if err := b.Ledger.SaveSettings(t.Context(), ledger.Settings{Policy: policy.Config{URI: "gs://ops/policy.yaml", Allow: "recreate,restart"}}); err != nil {
			t.Fatal(err)
		}
		b.ReadFile = func(context.Context, string) ([]byte, error) {
			return []byte("policies:\n  night: {preset: spot, switches: {restart: ask}, zones: [us-west4-b]}\n"), nil
		}
		b.Want([]string{"status", "llama-8b"}, "llama-8b us-west4-a v5litepod-16 spot  READY for 2 d 0 h, life 7711 since 2026-11-19T12:00:00Z",
			"allowed: recreate · no, limited by the deployment: request_checkpoint", "ask, limited by policy night: restart",
			"crew in touch, attempt 2, step 48,190 6 m 0 s ago, checkpoint 48,000 reported by the crew 6 m 0 s ago, not verified",
			"if llama-8b died now: recreate: delete llama-8b first; then create llama-8b in us-west4-a")
		got, err := b.Call("status", "--json")
		if err != nil {
			t.Fatal(err)
		}
		var st struct {
			ID     string `json:"id"`
			Policy struct {
				Name     string `json:"name"`
				Switches []struct {
					Switch, Level string
					LimitedBy     string `json:"limited_by"`
				} `json:"switches"`
			} `json:"policy"`
			IfLost view.Plan `json:"if_lost"`
		}
		if err := json.Unmarshal([]byte(got), &st); err != nil || st.ID != deploymenttest.LlamaID || st.Policy.Name != "night" || len(st.Policy.Switches) != 6 || st.IfLost.Phase != view.Resuming {
			t.Errorf("%v: %s", err, got)
		}
		b.ReadFile = func(context.Context, string) ([]byte, error) { return nil, errors.New("403: you may not") }
		if err := b.Ledger.SaveSettings(t.Context(), ledger.Settings{Policy: policy.Config{URI: "gs://ops/other.yaml"}}); err != nil {
			t.Fatal(err)
		}
		b.Want([]string{"status", "llama-8b"}, "you cannot read it: gs://ops/other.yaml: 403: you may not")
	})
}

func TestStatusTellsWhyAPersonWouldBeAsked(t *testing.T) {
	w := deploymenttest.Trains("llama-8b", deploymenttest.Read(func(r *evidence.Read) { r.Facts.Bare = true }))
	b := deploymenttest.New(t, ledgertest.NewStore().Open, w)
	b.Want([]string{"status", "llama-8b"}, "if llama-8b died now: wait for approval: recreate llama-8b (llama-8b has no start-up script: what comes back is an empty machine")
}

func TestStatusTellsWhatAnIncidentWaitsFor(t *testing.T) {
	waiting := deploymenttest.Asking()
	looks := deploymenttest.Training("bert").Before(0)
	looks.Learns(evidence.Interrupted{
		Origin: looks.Origin(events.RankAudit), Slice: "bert", Incarnation: looks.Slices[0].Incarnation, Cause: events.CausePreemption, Text: "worker 2 was preempted",
	})
	b := deploymenttest.New(t, ledgertest.NewStore().Open, waiting, looks.Workload)
	b.Want([]string{"status", "bert", "llama-8b"}, "you       recreate llama-8b; pitstop approve llama-8b-20261121-3 (else Pitstop does nothing about it, and reminds)",
		"bert-20261121-1: preemption, looking for 0 s, until 2026-11-21T12:30:00Z", "at its deadline: ", "wait for progress past step 48,000", "now: look at the API first", "cost      away ")
	b.Want([]string{"incident", "bert-20261121-1"}, "preemption, looking for 0 s, until ", "now: look at the API first", "at its deadline: ")
	b.Want([]string{"incident", "llama-8b-20261121-3"}, "now: wait for approval: recreate llama-8b", "you       recreate llama-8b; pitstop approve llama-8b-20261121-3")
}

// TestStatusTellsWhatIsLeftOver, unless somebody asks for workloads.
func TestStatusTellsWhatIsLeftOver(t *testing.T) {
	b := deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Trains("llama-8b"))
	var found []provider.Leftover
	for i := range 102 {
		found = append(found, provider.Leftover{Kind: "node pool", Zone: "us-east5/trainers", Name: fmt.Sprintf("spot-%03d", i), Chips: 16, Why: "the Pod train/shell may keep it"})
	}
	for _, minutes := range []int{180, 135, 90, 45} {
		if got, err := b.Call("status"); err != nil || strings.Contains(got, "left over") {
			t.Errorf("sweeps have not found it for 2 hours: %v: %s", err, got)
		}
		_, err := b.Ledger.SaveLeftovers(t.Context(), "demo", ledger.Sweep{
			At: deploymenttest.Noon.Add(-time.Duration(minutes) * time.Minute), Found: map[string][]provider.Leftover{"us-east5/trainers": found}, Zones: []string{"us-east5/trainers"},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for kind, hours := range map[string]float64{provider.NodePool: 8, "Workload": 0, "queued resource": 0} { // only machines stand unused
		if o := (provider.Leftover{Kind: kind, Chips: 4, Since: deploymenttest.Noon, Seen: deploymenttest.Noon.Add(2 * time.Hour)}); o.IdleChipHours() != hours {
			t.Errorf("%s: %v chip-hours", kind, o.IdleChipHours())
		}
	}
	const line = "left over, for its owners to delete:\n  node pool spot-000 in us-east5/trainers, 16 chips, at least 36.0 chip-hours unused, for 2 h 15 m as of 2026-11-21T11:15:00Z: the Pod train/shell may keep it\n"
	b.Want([]string{"status"}, "  and 2 more in us-east5/trainers\n")
	b.Want([]string{"status"}, line)
	for _, args := range [][]string{{"status", "--json"}, {"status", "llama-8b"}} {
		if got, err := b.Call(args...); err != nil || strings.Contains(got, "left over") {
			t.Errorf("%q: %v: %s", args, err, got)
		}
	}
}

// TestStatusReadsOneListing: a thousand workloads are no thousand reads.
func TestStatusReadsOneListing(t *testing.T) {
	const n = 1000
	store := ledgertest.NewStore()
	fill := ledger.New(store.Open)
	for i := range n {
		if _, err := fill.Save(t.Context(), deploymenttest.Trains(fmt.Sprintf("w%04d", i)), ledger.Revision{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := fill.Close(); err != nil {
		t.Fatal(err)
	}
	calls := 0
	tap := &ledgertest.Tap{Before: func(context.Context, ledgertest.Call) error { calls++; return nil }}
	b := deploymenttest.New(t, tap.On(store.Open))
	got, err := b.Call("status")
	if lines := strings.Count(got, "demo/w"); err != nil || lines != n || strings.Count(got, "\n") > n+10 {
		t.Errorf("%v, %d workloads in %d lines", err, lines, strings.Count(got, "\n"))
	}
	if calls != 7 { // the listing, the pause, the settings, which projects tick, the pulse, the canary, what is left over
		t.Errorf("%d calls of the store", calls)
	}
}

func TestStatusIsWatchedUntilSomebodyHasSeenEnough(t *testing.T) {
	b := deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Trains("llama-8b"))
	looks := 0
	b.Sleep = func(context.Context, time.Duration) error {
		if looks++; looks == 3 {
			return context.Canceled
		}
		return nil
	}
	got, err := b.Call("status", "--watch")
	if err != nil || strings.Count(got, "2026-11-21T12:00:00Z\n\n") != 3 || strings.Count(got, "demo/llama-8b  trains") != 3 {
		t.Errorf("%v: %s", err, got)
	}
}

func BenchmarkStatus(b *testing.B) {
	b.Run("memory", func(b *testing.B) { benchmarkStatus(b, ledgertest.NewStore().Open) })
	b.Run("Firestore", func(b *testing.B) {
		b.Setenv("FIRESTORE_EMULATOR_HOST", publishtest.Emulator(b, publishtest.Firestore))
		benchmarkStatus(b, ledger.Firestore("status-"+uuid.NewString()[:8], ledger.Database))
	})
}

func benchmarkStatus(b *testing.B, open ledger.Opener) {
	b.Helper()
	const n = 1000
	l := ledger.New(open)
	for i := range n {
		w := deploymenttest.Trains(fmt.Sprintf("w%04d", i))
		if i%10 == 0 {
			w = deploymenttest.Preempted(fmt.Sprintf("w%04d", i)).Workload
		}
		if _, err := l.Save(b.Context(), w, ledger.Revision{}); err != nil {
			b.Fatal(err)
		}
	}
	d := deploymenttest.Bench{Deployment: deployment.Deployment{
		OpenLedger: func(string, string) *ledger.Ledger { return l }, Now: func() time.Time { return deploymenttest.Noon },
		OpenNodeLister: func(context.Context, []string) (deployment.NodeLister, error) {
			return nil, errors.New("the ledger alone is measured")
		},
	}}
	for b.Loop() {
		if got, err := d.Call("status"); err != nil || strings.Count(got, "demo/w") != n {
			b.Fatal(err, strings.Count(got, "demo/w"))
		}
	}
	if err := l.Close(); err != nil {
		b.Error(err)
	}
}

// TestAPlannedEndIsNoMaintenance: status tells when a TPU ends, and when the save before it comes.
func TestAPlannedEndIsNoMaintenance(t *testing.T) {
	now := time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC)
	end := view.Notice{
		Notice: events.Notice{Status: events.NoticePending, WindowStart: now.Add(2 * time.Hour), WindowEnd: now.Add(2 * time.Hour)}, End: true, Due: now.Add(time.Hour),
	}
	if got, want := announced(end, now), "planned end at 2026-11-12T04:00:00Z, the save is requested in 1 h 0 m"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestStatusIsATableTheWorstFirst: with what each costs so far, and what those need that wait for a person.
func TestStatusIsATableTheWorstFirst(t *testing.T) {
	b := deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Trains("bert"), deploymenttest.Preempted("gemma").Workload, deploymenttest.Asking())
	got, err := b.Call("status")
	if err != nil {
		t.Fatal(err)
	}
	const want = `the ledger does not say yet what the deployment allows; the switches of the presets are shown
patrol ticked 20 s ago

3 workloads
WORKLOAD       STATE     SINCE     NEEDS YOU  COST SO FAR     NEXT
demo/llama-8b  recovers  1 m 30 s  yes        0.4 chip-hours  wait for approval: recreate llama-8b
demo/gemma     recovers  1 m 30 s  -          0.4 chip-hours  recreate: delete gemma first, until 12:43
demo/bert      trains    2 d 0 h   -          -               -

you  demo/llama-8b: recreate llama-8b; pitstop approve llama-8b-20261121-3 (else Pitstop does nothing about it, and reminds)
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
}

// TestStatusSaysFirstThatPitstopIsBlind: after a silent hour nobody knows how a workload stands.
func TestStatusSaysFirstThatPitstopIsBlind(t *testing.T) {
	b := deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Trains("bert"))
	noon := b.Now()
	for after, want := range map[time.Duration]string{
		4 * time.Minute: "patrol ticked 4 m 20 s ago\n", time.Hour: "BLIND for 1 h 0 m: patrol's last tick was at 2026-11-21T11:59:40Z, and what follows is as of then; see the log of the function patrol",
	} {
		b.Now = func() time.Time { return noon.Add(after) }
		b.Want([]string{"status"}, want)
		b.Want([]string{"status", "bert"}, want)
	}
	b.Now = func() time.Time { return noon.Add(time.Hour) }
	b.Want([]string{"status"}, "demo/bert  unknown, was trains")
	later := noon.Add(2 * time.Hour)
	if err := b.Ledger.SavePulse(t.Context(), "demo", ledger.Pulse{Ticked: later, Faults: []string{"zone us-west4-a: 403"}}); err != nil {
		t.Fatal(err)
	}
	if err := b.Ledger.CanaryWritten(t.Context(), "demo", "c", noon); err != nil {
		t.Fatal(err)
	}
	b.Now = func() time.Time { return later }
	b.Want([]string{"status"}, "patrol ticked 0 s ago\nNOT WHOLE: the last tick could not do all: zone us-west4-a: 403\nDEAF: the last canary has not come back")
	without := deploymenttest.New(t, ledgertest.NewStore().Open)
	if _, err := without.Ledger.Save(t.Context(), deploymenttest.Trains("bert"), ledger.Revision{}); err != nil {
		t.Fatal(err)
	}
	without.Want([]string{"status"}, "BLIND: patrol has never ticked")
}

// TestADocumentThatCannotBeReadHidesNoOther: the table has the rest, a workload that is named is shown, and one that may be the torn one is not denied.
func TestADocumentThatCannotBeReadHidesNoOther(t *testing.T) {
	store := ledgertest.NewStrictStore()
	b := deploymenttest.New(t, store.Open, deploymenttest.Trains("bert"))
	c, err := store.Open(t.Context(), ledger.Workloads)
	if err == nil {
		err = c.Put(t.Context(), &ledger.Record{ID: "demo%2Ftorn", Schema: incident.Schema, Body: "{"})
	}
	if err != nil {
		t.Fatal(err)
	}
	b.Want([]string{"status"}, "NOT READ: ", "torn", "demo/bert  trains")
	b.Want([]string{"status", "bert"}, "demo/bert  policy")
	if got, err := b.Call("status", "torn"); err == nil || strings.Contains(err.Error(), "there is no workload") {
		t.Errorf("%v: %s", err, got)
	}
}
