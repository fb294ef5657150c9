package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/scripts/pitstop/scaling"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider/providertest/trainingtest"
)

func TestScaleComparesTheAttemptsOfAWorkload(t *testing.T) {
	b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
	b.Want([]string{"scale", "llama-8b"}, "no attempt with a known speed: pitcrew run measures it with --examples-per-step N")
	b.Measures("gs://ckpt/llama-8b", deploymenttest.SpeedOn(1, "v5litepod-16", 512, 4000), deploymenttest.SpeedOn(2, "v5litepod-64", 512, 7000), deploymenttest.SpeedOn(4, "", 512, 10))
	b.Want([]string{"scale", "llama-8b"},
		"v5litepod-16  16     4,000       250       100 %       512           32        1         100\n",
		"v5litepod-64  64     7,000       109       44 %        512           8         1         100\n",
		"advice: give each core of v5litepod-64 32 examples a step, a global batch of 2,048: now it gets 8, too small a batch per core",
		"1 attempt left out: the accelerator type is not known (--accelerator names it)",
	)
	got, err := b.Call("scale", "llama-8b", "--json")
	var table scaling.Table
	if err == nil {
		err = json.Unmarshal([]byte(got), &table)
	}
	if err != nil || len(table.Rows) != 2 || table.Rows[1].Efficiency != 0.4375 || table.LeftOut != 1 || !strings.HasPrefix(table.Advice, "give each core") {
		t.Errorf("%v: %s", err, got)
	}
}

// TestScaleComparesDirectories: each size may have trained in a directory of its own, and nobody needs a ledger for that.
func TestScaleComparesDirectories(t *testing.T) {
	b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
	b.OpenLedger = func(string, string) *ledger.Ledger { t.Error("it opens the ledger"); return b.Ledger }
	b.Measures("gs://ckpt/small", deploymenttest.SpeedOn(1, "v5litepod-16", 512, 4000))
	dir := "file://" + t.TempDir()
	in := b.Checkpoints
	b.Checkpoints = checkpoint.Mux{"file": checkpoint.NewFiles("/", time.Now)}
	b.Measures(dir, deploymenttest.SpeedOn(1, "v5litepod-64", 2048, 15_000))
	b.Checkpoints = in
	b.Want([]string{"scale", "gs://ckpt/small", dir},
		"  of\n", "gs://ckpt/small\n", dir+"\n", "advice: go on with v5litepod-64: it scales well, because a chip of v5litepod-64 (batch 2,048) does 94 %")
}

func TestScaleRefusesWhatItCannotCompare(t *testing.T) {
	b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
	b.Refused([]string{"scale"}, "scale takes a workload, as in llama-8b, or a checkpoint directory")
	b.Refused([]string{"scale", "llama 8b"}, `"llama 8b" is no workload`)
	b.Refused([]string{"scale", "other"}, `there is no workload "other"`)
	b, _, _ = deploymenttest.Healthy(t, deploymenttest.StartsCrew, deploymenttest.Read(func(r *evidence.Read) { r.Directory = "" }))
	b.Refused([]string{"scale", "llama-8b"}, "the checkpoint directory of demo/llama-8b is not known: set the metadata key pitstop-checkpoint-dir")
	if _, err := b.Call("scale", "s3://bucket/run"); err == nil || !strings.Contains(err.Error(), "a URI has to begin with gs://") {
		t.Error(err)
	}
	if _, err := b.Checkpoints.Put(t.Context(), "gs://ckpt/broken/pitstop-crew/speed.json", []byte("{"), 0); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Call("scale", "gs://ckpt/broken"); err == nil || !strings.Contains(err.Error(), "gs://ckpt/broken/pitstop-crew/speed.json: ") {
		t.Error(err)
	}
}

// crewLine is a crew's progress line, as gcloud logging read writes it.
func crewLine(n int, node string, attempt int, rate float64, m *events.Measured) string {
	return string(trainingtest.CrewEntry(events.CrewReport{
		Schema: events.Schema, Report: events.ReportProgress, Project: "demo", Zone: "us-west4-a", Node: node, Hostname: "t1v-n-0123abcd-w-0",
		Attempt: attempt, Step: int64(100 * n), ExamplesPerSecond: rate, Measured: m,
	}, deploymenttest.Noon.Add(time.Duration(n)*5*time.Minute), n))
}

// TestScaleReadsLogs: of each attempt the last line counts, in whatever order the lines stand.
func TestScaleReadsLogs(t *testing.T) {
	small := &events.Measured{Accelerator: "v2-8", Slices: 1, GlobalBatch: 1024, Steps: 100, Seconds: 100}
	large := &events.Measured{Accelerator: "v2-8", Slices: 2, GlobalBatch: 2048, Steps: 100, Seconds: 100}
	lines := []string{
		crewLine(2, "small", 1, 1000, small), crewLine(1, "small", 1, 10, small), crewLine(3, "small", 1, 0, nil), // the speed of a release before
		crewLine(3, "large", 1, 1050, large), crewLine(4, "large", 2, 1050, large), crewLine(4, "other", 1, 9000, large),
	}
	file := filepath.Join(t.TempDir(), "entries.json")
	if err := os.WriteFile(file, []byte("["+strings.Join(lines, ",")+"]"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, code := call(t, "", "scale", "--logs", file, "small", "large")
	if code != 0 || strings.Contains(out, "other") {
		t.Errorf("%d: %s", code, out)
	}
	deploymenttest.WantText(t, out, "v2-8    4      1,000       250       100 %       1,024         128       1         100    small\n",
		"2xv2-8  8      1,050       131       53 %        2,048         128       2         200    large\n",
		"advice: profile a step on 2xv2-8 for the input and for the network between the slices: a chip of 2xv2-8 (batch 2,048) does 53 % of")
	out, _, code = call(t, "", "scale", "--logs", file)
	if code != 0 || !strings.Contains(out, "large, other") {
		t.Errorf("%d: %s", code, out)
	}
	out, errOut, code := call(t, strings.Join(append(lines, `{"logName":`), "\n"), "scale", "--logs", "-", "--json")
	if code != 1 || !strings.Contains(out, `"advice"`) || errOut == "" {
		t.Errorf("%d: %s%s", code, out, errOut)
	}
	if out, errOut, code = call(t, "", "scale", "--logs", file+".missing"); code != 2 || out != "" || !strings.Contains(errOut, "no such file") {
		t.Errorf("%d: %s%s", code, out, errOut)
	}
	if _, errOut, code = call(t, "[]", "scale", "--logs", "-"); code != 0 || !strings.Contains(errOut, "0 entries") {
		t.Errorf("%d: %s", code, errOut)
	}
}
