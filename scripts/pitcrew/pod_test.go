//go:build linux

package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/metadata/metadatatest"
	"pitstop.internal/scripts/pitcrew/trainer"
	"pitstop.internal/shared/checkpoint"
)

// inPod runs pitcrew as the command of a Pod of a Job, and returns what it printed and its code.
func inPod(t *testing.T, uid, dir string, lg *logs, flags, command []string) (out string, code int) {
	t.Helper()
	s := metadatatest.New("demo", "us-east5-a", "gke-research-tpu-1", time.Now)
	host, stop := s.Start()
	defer stop()
	args := slices.Concat([]string{"run", "-v", "--state=" + t.TempDir(), "--checkpoint-dir=file://" + dir, "--logging-endpoint=" + lg.address}, quick, flags, []string{"--"})
	c := exec.CommandContext(t.Context(), self(t), append(args, command...)...)
	c.Env = append(os.Environ(), asPitcrew+"=1", metadata.HostVariable+"="+host, "KUBERNETES_SERVICE_HOST=10.0.0.1",
		"PITCREW_CLUSTER=us-east5/research", "PITCREW_NAMESPACE=teams", "PITCREW_POD=llama-slice-0-0-x7k2p", "PITCREW_JOB=llama-slice-0",
		"PITCREW_JOB_UID="+uid, "PITCREW_JOBSET=llama")
	raw, _ := c.CombinedOutput() //nolint:errcheck // the code says it
	if _, refused := s.Guest(events.GuestNamespace, events.GuestKey); refused > 0 {
		t.Error("it put guest attributes of a machine that is not its own")
	}
	return string(raw), c.ProcessState.ExitCode()
}

// TestAPodTrainsAndReportsUnderItsJob: its lines, its lease and its verdict name the Job and its life, and the pipeline takes the lines.
func TestAPodTrainsAndReportsUnderItsJob(t *testing.T) {
	t.Parallel()
	dir, log, lg := t.TempDir(), t.TempDir(), newLogs(t)
	out, code := inPod(t, "5d1f", dir, lg, nil, train(t, "-steps=3", "-log="+log))
	if code != 0 || trainer.Count(log, "began") != 1 {
		t.Fatalf("code %d: %s", code, out)
	}
	lg.mu.Lock()
	defer lg.mu.Unlock()
	var kinds []events.Report
	for _, e := range lg.entries {
		labels := e.GetResource().GetLabels()
		if e.GetResource().GetType() != "k8s_container" || labels["project_id"] != "demo" || labels["location"] != "us-east5" || labels["cluster_name"] != "research" ||
			labels["namespace_name"] != "teams" || labels["pod_name"] != "llama-slice-0-0-x7k2p" || labels["container_name"] != "training" {
			t.Errorf("the line is about %v", e.GetResource())
		}
		raw, err := protojson.Marshal(e)
		must(t, err)
		read, err := events.Read(raw)
		if err != nil || read.Crew == nil || read.Ignored != "" {
			t.Fatalf("the pipeline makes %+v of %s: %v", read, raw, err)
		}
		if r := read.Crew; r.Zone != "us-east5/research/teams" || r.Node != "llama-slice-0" || r.Life != "5d1f" || r.Hostname != "llama-slice-0-0-x7k2p" {
			t.Errorf("the line names %+v", r)
		}
		kinds = append(kinds, read.Crew.Report)
	}
	if !slices.Contains(kinds, events.ReportStarted) || !slices.Contains(kinds, events.ReportFinished) {
		t.Errorf("it reported %v", kinds)
	}
	want := events.Admission{Slice: "llama-slice-0", Incarnation: events.Incarnation{Zone: "us-east5/research/teams", ID: "5d1f"}, Workers: "5d1f"}
	l, _, err := checkpoint.ReadLease(t.Context(), checkpoint.NewFiles("/", time.Now), "file://"+dir)
	if err != nil || l.Workload != "demo/llama" || len(l.Admitted) != 1 || l.Admitted[0] != want {
		t.Errorf("the lease is %+v, %v", l, err)
	}
	raw, err := os.ReadFile(filepath.Join(dir, events.VerdictObject(1)))
	var v events.CrewVerdict
	if err == nil {
		err = json.Unmarshal(raw, &v)
	}
	if err != nil || !v.Finished || v.Life != want {
		t.Errorf("the verdict is %s, %v", raw, err)
	}
}

// TestAnotherLifeOfAJobWaitsForTheLease: a Job that is made again has the old names, and a Pod of the former one may still train where
// nobody reaches its machine. Without a sign of life the new one takes the lease over after its time.
func TestAnotherLifeOfAJobWaitsForTheLease(t *testing.T) {
	t.Parallel()
	dir, log, lg := t.TempDir(), t.TempDir(), newLogs(t)
	if out, code := inPod(t, "5d1f", dir, lg, []string{"--restarts=0", "--job-tries=0"}, train(t, "-at=2", "-exit=7", "-log="+log)); code != 7 {
		t.Fatalf("code %d: %s", code, out)
	}
	out, code := inPod(t, "77aa", dir, lg, nil, train(t, "-steps=3", "-log="+log))
	if code != 0 || !strings.Contains(out, "names another life of llama-slice-0; waiting") || !strings.Contains(out, "taking the lease over") {
		t.Errorf("code %d: %s", code, out)
	}
	l, _, err := checkpoint.ReadLease(t.Context(), checkpoint.NewFiles("/", time.Now), "file://"+dir)
	if err != nil || len(l.Admitted) != 1 || l.Admitted[0].Incarnation.ID != "77aa" || l.Attempt != 2 {
		t.Errorf("the lease is %+v, %v", l, err)
	}
}

// TestAHalfToldPodIsRefused: a crew that guessed the rest could take the place of another one.
func TestAHalfToldPodIsRefused(t *testing.T) {
	t.Parallel()
	c := exec.CommandContext(t.Context(), self(t), "run", "--metadata=none", "--", "true")
	c.Env = append(os.Environ(), asPitcrew+"=1", "PITCREW_JOB=llama")
	out, _ := c.CombinedOutput() //nolint:errcheck // the code says it
	if text := string(out); c.ProcessState.ExitCode() != 2 || strings.Count(text, "\n") != 1 || !strings.Contains(text, "the manifest of this Pod does not set PITCREW_CLUSTER, ") {
		t.Errorf("code %d: %s", c.ProcessState.ExitCode(), text)
	}
}
