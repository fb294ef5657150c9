package show

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/scripts/pitstop/prices"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

func pricesOf(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "prices.yaml")
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestAnIncidentTellsWhatItCost(t *testing.T) {
	two := deploymenttest.Training("llama-8b")
	two.Learns(evidence.Read{
		Origin: two.Origin(events.RankReading), Slice: "other", Zone: "us-west4-a", Condition: evidence.Ready, State: "READY",
		Incarnation: events.Incarnation{Zone: "us-west4-a", ID: "7712", Created: deploymenttest.Noon.Add(-48 * time.Hour)},
		Facts:       evidence.Facts{Accelerator: "v5p-8", Workers: 1, Chips: 4, Label: "spot"}, Directory: "gs://ckpt/llama-8b",
	})
	w := two.Before(5 * time.Minute).Reads(deploymenttest.Is(evidence.Lost, "PREEMPTED")).Workload
	b := deploymenttest.New(t, ledgertest.NewStore().Open, w)
	b.Now = func() time.Time { return two.Now.Add(90 * time.Minute) }
	id := w.Incident.ID
	b.Want([]string{"incident", id}, "away >= 1 h 30 m · >= 30.0 chip-hours; charged to infrastructure", "since it opened: allowed: request_checkpoint, restart, recreate")
	for text, want := range map[string]string{
		"v5litepod: {spot: 0.50, other: 1.20}":                           "30.0 chip-hours, $12.00, without the price of other",
		"v5litepod-16: {spot: 1}\nv5litepod: {spot: 9}\nv5p: {other: 4}": "30.0 chip-hours, $48.00; charged",
	} {
		b.Want([]string{"incident", id, "--prices", pricesOf(t, text)}, want)
	}
	got, err := b.Call("incident", id, "--json", "--prices", pricesOf(t, "v5litepod: {spot: 0.50}"))
	var told struct {
		ID       string      `json:"id"`
		Workload string      `json:"workload"`
		Cost     prices.Cost `json:"cost"`
	}
	if err != nil || json.Unmarshal([]byte(got), &told) != nil || told.ID != id || told.Workload != deploymenttest.LlamaID || told.Cost.Dollars != 12 || told.Cost.ChipHours != 30 {
		t.Errorf("%v: %s", err, got)
	}
	for _, faulty := range []string{"v5p: 4", "v5p: {reserved: 3}", "v5p: {other: -1}", "v5p: {other: .nan}", "- v5p", "a: ["} {
		b.Refused([]string{"incident", id, "--prices", pricesOf(t, faulty)}, "--prices")
	}
	b.Refused([]string{"incident", id, "--prices", "/nowhere/prices.yaml"}, "no such file")
}

// TestAnIncidentTellsWhatWasTried: its calls, its save, and the zones that refused.
func TestAnIncidentTellsWhatWasTried(t *testing.T) {
	var out bytes.Buffer
	printIncident(terminal.NewPrinter(&out, false), deployment.Workload{}, view.Incident{
		ID:    "llama-8b-20261121-3",
		Zones: []view.Refusal{{Place: view.Place{Zone: "us-west4-a"}, At: deploymenttest.Noon, Until: deploymenttest.Noon.Add(time.Minute), Text: "no more capacity"}},
		Save:  view.Save{ID: "s1", Requested: deploymenttest.Noon, Result: reason.SaveRefused, Failed: "no handler"},
		Calls: []view.Call{{At: deploymenttest.Noon, Function: "recreate", Method: "DeleteNode", Resource: "projects/demo/locations/us-west4-a/nodes/llama-8b"}},
	}, prices.Cost{Cost: view.Cost{ChargedTo: "infrastructure", Restarts: 2}}, true)
	deploymenttest.WantText(t, out.String(), "charged to infrastructure, 2 of 3 restarts", "since it opened: allowed: nothing",
		"refused   us-west4-a at 2026-11-21T12:00:00Z, asked again after 2026-11-21T12:01:00Z: no more capacity", "save      s1 requested at", "refused, no handler",
		"DeleteNode projects/demo/locations/us-west4-a/nodes/llama-8b", "its result is not known")
}
