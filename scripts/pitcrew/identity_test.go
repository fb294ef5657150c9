//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/metadata/metadatatest"
	"pitstop.internal/scripts/pitcrew/state"
)

// TestAnotherMachineIsNotRemembered: a volume may outlive a machine or a Job, and what lies on it then names a former life.
func TestAnotherMachineIsNotRemembered(t *testing.T) {
	for name, value := range map[string]string{
		metadata.VariableCluster: "us-east5/research", metadata.VariableNamespace: "teams", metadata.VariablePod: "llama-0",
		metadata.VariableJob: "llama", metadata.VariableJobUID: "77aa",
	} {
		t.Setenv(name, value)
	}
	own := memoryOf(metadata.Machine{Node: "llama", Workers: 1})
	pod, host, id := own, own, own
	pod.Pod.JobUID, host.Host, id.ID = "5d1f", "t1v-n-aaaaaaaa-w-0", "another"
	for name, c := range map[string]struct {
		written any
		want    bool
	}{
		"this Pod": {own, true}, "a Pod of a former life": {pod, false}, "a former machine": {host, false}, "a former system": {id, false},
	} {
		path := filepath.Join(t.TempDir(), "machine.json")
		if _, ok := remembered(path); ok {
			t.Errorf("%s: nothing is remembered", name)
		}
		must(t, state.Write(path, c.written))
		if m, ok := remembered(path); ok != c.want || ok && m.Node != "llama" {
			t.Errorf("%s: remembered %t, %+v", name, ok, m)
		}
	}
}

// TestAMachineThatIsNotToldItsPlaceIsNotTheFirst: every worker of a slice would be worker 0.
func TestAMachineThatIsNotToldItsPlaceIsNotTheFirst(t *testing.T) {
	none := func() flags { return flags{worker: metadata.Unknown, slice: metadata.Unknown} }
	given := none()
	given.worker, given.slice = 1, 0
	for name, c := range map[string]struct {
		flags   flags
		machine metadata.Machine
		says    string
	}{
		"the only worker":             {none(), metadata.Machine{Worker: metadata.Unknown, Workers: 1, Slice: metadata.Unknown, Slices: 1}, ""},
		"one of four":                 {none(), metadata.Machine{Worker: metadata.Unknown, Workers: 4, Slices: 1}, "which of the 4 workers"},
		"the third of four":           {none(), metadata.Machine{Worker: 2, Workers: 4, Slices: 1}, ""},
		"the third, of nobody yet":    {none(), metadata.Machine{Worker: 2, Workers: 1, Slices: 1}, "worker 2 of 1"},
		"one of two slices":           {none(), metadata.Machine{Workers: 1, Slice: metadata.Unknown, Slices: 2}, "which of the 2 slices"},
		"the flags say worker, slice": {given, metadata.Machine{Worker: metadata.Unknown, Workers: 4, Slice: metadata.Unknown, Slices: 2}, ""},
	} {
		if err := c.flags.unsure(c.machine); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}

// lockedBuffer is a buffer that a process writes and a test reads.
type lockedBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

// Write implements io.Writer.
func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// String is what was written.
func (l *lockedBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// TestInAContainerTheMetadataServerIsWaitedFor: the machine has just started, and its metadata server does not answer yet. The crew would be
// local/vm for good, under no lease of its workload.
func TestInAContainerTheMetadataServerIsWaitedFor(t *testing.T) {
	t.Parallel()
	s := metadatatest.New("demo", "us-west4-a", "t1v-n-0123abcd-w-0", time.Now)
	s.TPU("llama", "v5litepod-8", 0, "127.0.0.1")
	s.Set("instance/attributes/"+events.MetadataCheckpointDir, "file://"+t.TempDir())
	host, stop := s.Start()
	t.Cleanup(stop)
	s.Break(metadatatest.Fault{Status: 503})
	c := exec.CommandContext(t.Context(), self(t), "run", "--metadata="+host, "--report=none", "--state="+t.TempDir(), "--", "true")
	c.Env = append(os.Environ(), asPitcrew+"=1", "KUBERNETES_SERVICE_HOST=10.0.0.1", metadata.HostVariable+"=")
	var out lockedBuffer
	c.Stdout, c.Stderr = &out, &out
	must(t, c.Start())
	until(t, "it waits or begins", func() bool {
		return strings.Contains(out.String(), "waiting, because only the metadata server knows") || strings.Contains(out.String(), "started")
	})
	s.Break(metadatatest.Fault{})
	if err := c.Wait(); err != nil || !strings.Contains(out.String(), "started for demo/llama; checkpoints in file://") {
		t.Errorf("%v: %s", err, out.String())
	}
}
