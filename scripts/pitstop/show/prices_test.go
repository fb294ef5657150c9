package show

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger/ledgertest"
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
	w := deploymenttest.Llama()
	w.Incident.Down, w.Incident.Charged = deploymenttest.Noon.Add(-90*time.Minute), 2
	w.Incident.Zones = []incident.Refusal{{Zone: "us-west4-a", At: deploymenttest.Noon, Until: deploymenttest.Noon.Add(time.Minute), Text: "no more capacity"}}
	w.Incident.Save = incident.Save{ID: "s1", Requested: deploymenttest.Noon, Result: incident.SaveRefused, Failed: "no handler"}
	w.Incident.Calls = []incident.Call{{At: deploymenttest.Noon, Function: "recreate", Method: "DeleteNode", Resource: "projects/demo/locations/us-west4-a/nodes/llama-8b"}}
	w.Slices = append(w.Slices, incident.Slot{Name: "other", Life: incident.Life{Facts: incident.Facts{Accelerator: "v5p-8", Chips: 4}}})
	b := deploymenttest.New(t, ledgertest.NewStore().Open, w)
	id := w.Incident.ID
	b.Want([]string{"incident", id}, "away 1 h 30 m, 30.0 chip-hours; charged to infrastructure, 2 of 3 restarts",
		"refused   us-west4-a at 2026-11-21T12:00:00Z, asked again after 2026-11-21T12:01:00Z: no more capacity", "save      s1 requested at", "refused, no handler",
		"DeleteNode projects/demo/locations/us-west4-a/nodes/llama-8b", "its result is not known", "when it opened: allowed: nothing")
	for text, want := range map[string]string{
		"v5litepod: {spot: 0.50, other: 1.20}":                           "30.0 chip-hours worth $12.00, without the price of other",
		"v5litepod-16: {spot: 1}\nv5litepod: {spot: 9}\nv5p: {other: 4}": "30.0 chip-hours worth $48.00; charged",
	} {
		b.Want([]string{"incident", id, "--prices", pricesOf(t, text)}, want)
	}
	got, err := b.Call("incident", id, "--json", "--prices", pricesOf(t, "v5litepod: {spot: 0.50}"))
	var told struct {
		ID       string `json:"id"`
		Workload string `json:"workload"`
		Cost     Cost   `json:"cost"`
	}
	if err != nil || json.Unmarshal([]byte(got), &told) != nil || told.ID != id || told.Workload != deploymenttest.LlamaID || told.Cost.Dollars != 12 || told.Cost.ChipHours != 30 {
		t.Errorf("%v: %s", err, got)
	}
	for _, faulty := range []string{"v5p: 4", "v5p: {reserved: 3}", "v5p: {other: -1}", "v5p: {other: .nan}", "- v5p", "a: ["} {
		b.Refused([]string{"incident", id, "--prices", pricesOf(t, faulty)}, "--prices")
	}
	b.Refused([]string{"incident", id, "--prices", "/nowhere/prices.yaml"}, "no such file")
}
