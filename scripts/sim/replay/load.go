package replay

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"pitstop.internal/scripts/logfile"
	"pitstop.internal/scripts/sim/world"
)

// Recorded is a recorded incident: a folder with its entries, its scenario, its policy and its expected result.
type Recorded struct {
	Name     string
	Records  []logfile.Record
	Scenario world.Scenario
	Policy   []byte
	Want     Want
}

// Want is the expected result of a recorded incident.
type Want struct {
	Incidents []WantIncident `json:"incidents"`
	// Calls are the calls of the TPU API that change something, by method; Requests the requests, by action.
	Calls    map[string]int `json:"calls"`
	Requests map[string]int `json:"requests"`
}

// WantIncident is how one incident has to end.
type WantIncident struct {
	Workload    string `json:"workload"`
	Cause       string `json:"cause"`
	Outcome     string `json:"outcome"`
	ConfirmedBy string `json:"confirmed_by,omitempty"`
	Account     string `json:"account"`
}

// Load reads a recorded incident from its folder.
func Load(dir string) (Recorded, error) {
	r := Recorded{Name: filepath.Base(dir)}
	raw, err := os.ReadFile(filepath.Join(dir, "entries.json"))
	if err != nil {
		return r, err
	}
	var entries []json.RawMessage
	if err := json.Unmarshal(raw, &entries); err != nil {
		return r, fmt.Errorf("%s/entries.json: %w", r.Name, err)
	}
	for i, e := range entries {
		r.Records = append(r.Records, logfile.Record{Raw: e, File: fmt.Sprintf("%s entry %d", r.Name, i+1)})
	}
	if raw, err = os.ReadFile(filepath.Join(dir, "scenario.yaml")); err != nil {
		return r, err
	}
	if r.Scenario, err = world.Parse(raw); err != nil {
		return r, fmt.Errorf("%s/scenario.yaml: %w", r.Name, err)
	}
	if r.Policy, err = os.ReadFile(filepath.Join(dir, "policy.yaml")); err != nil {
		return r, err
	}
	if raw, err = os.ReadFile(filepath.Join(dir, "want.json")); err != nil {
		return r, err
	}
	if err := json.Unmarshal(raw, &r.Want); err != nil {
		return r, fmt.Errorf("%s/want.json: %w", r.Name, err)
	}
	return r, nil
}
