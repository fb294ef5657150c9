//go:build unix

package main

import (
	"path/filepath"
	"testing"

	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/state"
)

// TestAnotherPodIsNotRemembered: a volume may outlive a Job, and what lies on it then names a former life.
func TestAnotherPodIsNotRemembered(t *testing.T) {
	for name, value := range map[string]string{
		metadata.VariableCluster: "us-east5/research", metadata.VariableNamespace: "teams", metadata.VariablePod: "llama-0",
		metadata.VariableJob: "llama", metadata.VariableJobUID: "77aa",
	} {
		t.Setenv(name, value)
	}
	own := metadata.Local().Pod
	former := own
	former.JobUID = "5d1f"
	for name, c := range map[string]struct {
		pod  metadata.Pod
		want bool
	}{"this Pod": {own, true}, "a Pod of a former life": {former, false}, "a machine": {metadata.Pod{}, false}} {
		path := filepath.Join(t.TempDir(), "machine.json")
		if _, ok := remembered(path); ok {
			t.Errorf("%s: nothing is remembered", name)
		}
		if err := state.Write(path, metadata.Machine{Node: "llama", Workers: 1, Pod: c.pod}); err != nil {
			t.Fatal(err)
		}
		if m, ok := remembered(path); ok != c.want || ok && m.Pod != own {
			t.Errorf("%s: remembered %t, %+v", name, ok, m)
		}
	}
}
