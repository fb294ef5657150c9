//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/metadata/metadatatest"
	"pitstop.internal/scripts/pitcrew/peers"
	"pitstop.internal/scripts/pitcrew/trainer"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/checkpoint/buckettest"
)

// onTPU is a crew on a worker of a simulated TPU, with a metadata server and Cloud Logging.
type onTPU struct {
	*crewProcess
	server *metadatatest.Server
	logs   *logs
	dir    string
	host   string
}

func tpu(t testing.TB, flags []string, trainerArgs ...string) *onTPU {
	t.Helper()
	o := &onTPU{server: metadatatest.New("demo", "us-west4-a", "t1v-n-0123abcd-w-0", time.Now), logs: newLogs(t), dir: t.TempDir()}
	o.server.TPU("llama", "v5litepod-8", 0, "127.0.0.1")
	o.server.Set("instance/attributes/"+events.MetadataCheckpointDir, "file://"+o.dir)
	host, stop := o.server.Start()
	t.Cleanup(stop)
	o.host = host
	o.crewProcess = launch(t, append([]string{"--metadata=" + host, "--logging-endpoint=" + o.logs.address}, flags...),
		train(t, append([]string{"-dir=" + o.dir}, trainerArgs...)...))
	journal(t, o.dir, "began", 1)
	return o
}

func (o *onTPU) ask(id string, mode events.SaveMode, by time.Time) {
	o.t.Helper()
	value, err := json.Marshal(events.CrewRequest{
		Schema: events.Schema, SaveID: id, Workload: "demo/llama", Incident: "i1", Action: events.ActionSave, Mode: mode, By: by,
	})
	if err != nil {
		o.t.Fatal(err)
	}
	o.server.Set("instance/attributes/"+events.MetadataRequest, string(value))
}

func is(kind events.Report) func(events.CrewReport) bool {
	return func(r events.CrewReport) bool { return r.Report == kind }
}

// TestExamplesASecondAreReportedAndKept: with the shape and the attempt, from steps and the batch, or as the output says them.
func TestExamplesASecondAreReportedAndKept(t *testing.T) {
	t.Parallel()
	done, first := filepath.Join(t.TempDir(), "done"), filepath.Join(t.TempDir(), "fail.")
	o := tpu(t, []string{"--step-pattern=maxtext", "--examples-per-step=64"}, "-print-steps", "-when="+first, "-exit=1", "-once", "-done="+done)
	// The first attempt has to be seen at two steps before it fails.
	o.logs.find(t, "examples a second", func(r events.CrewReport) bool { return r.Attempt == 1 && r.ExamplesPerSecond > 0 })
	touch(t, first+"1")
	r := o.logs.find(t, "examples a second", func(r events.CrewReport) bool { return r.Attempt == 2 && r.ExamplesPerSecond > 0 })
	touch(t, done)
	if code := o.code(); code != 0 {
		t.Fatal(code, o.output())
	}
	all, err := peers.Board{Store: checkpoint.NewFiles("/", time.Now), Directory: "file://" + o.dir}.Speeds(t.Context())
	if err != nil || len(all) != 2 {
		t.Fatalf("%+v, %v", all, err)
	}
	for i, s := range all {
		if s.Attempt != i+1 || s.Accelerator != "v5litepod-8" || s.Slices != 1 || s.Chips != 8 || s.GlobalBatch != 64 || s.Steps < 1 || s.Seconds <= 0 ||
			math.Abs(s.ExamplesPerSecond-float64(s.Steps*64)/s.Seconds) > 0.01 {
			t.Errorf("%+v", s)
		}
	}
	// A step of the trainer takes a millisecond at least.
	if m := r.Measured; r.ExamplesPerSecond > 64_000 || m == nil || m.Accelerator != "v5litepod-8" || m.Slices != 1 || m.GlobalBatch != 64 || m.Steps < 1 {
		t.Errorf("%+v", r)
	}
	dir := t.TempDir()
	p := launch(t, []string{"--checkpoint-dir=file://" + dir, "--examples-pattern=([0-9.]+) images/s", "--accelerator=v2-8"},
		[]string{"sh", "-c", "for i in 1 2 3 4; do echo loss 0.3, 128.5 images/s; sleep 0.02; done"})
	if code := p.code(); code != 0 {
		t.Fatal(code, p.output())
	}
	all, err = peers.Board{Store: checkpoint.NewFiles("/", time.Now), Directory: "file://" + dir}.Speeds(t.Context())
	if err != nil || len(all) != 1 || all[0].ExamplesPerSecond != 128.5 || all[0].Chips != 4 || all[0].Steps != 0 {
		t.Errorf("%+v, %v", all, err)
	}
}

func TestASignalledSaveIsAcknowledged(t *testing.T) {
	t.Parallel()
	o := tpu(t, nil, "-on-term=save", "-save-takes=50ms", "-every=50")
	o.logs.find(t, "progress", is(events.ReportProgress))
	o.ask("save-1", events.SaveSignal, time.Now().Add(time.Minute))
	r := o.logs.find(t, "saved", is(events.ReportSaved))
	if r.SaveID != "save-1" || r.CheckpointStep == 0 || r.CheckpointURI != fmt.Sprintf("file://%s/%d", o.dir, r.CheckpointStep) ||
		r.Node != "llama" || r.Zone != "us-west4-a" || r.Project != "demo" || r.Hostname != "t1v-n-0123abcd-w-0" || r.Attempt != 1 {
		t.Errorf("%+v", r)
	}
	// A repetition asks for nothing new.
	o.server.Set("instance/attributes/another", "value")
	o.ask("save-1", events.SaveSignal, time.Now().Add(2*time.Minute))
	o.ask("save-2", events.SaveSignal, time.Now().Add(time.Minute))
	o.logs.find(t, "saved again", func(r events.CrewReport) bool { return r.SaveID == "save-2" })
	if n := trainer.Count(o.dir, "caught terminated"); n != 2 {
		t.Errorf("%d signals", n)
	}
	if n := trainer.Count(o.dir, "began"); n != 1 {
		t.Errorf("%d starts", n)
	}
}

func TestANaturalSaveSendsNothing(t *testing.T) {
	t.Parallel()
	o := tpu(t, nil, "-on-term=save", "-step=20ms", "-every=40")
	o.logs.find(t, "the first checkpoint", func(r events.CrewReport) bool { return r.Report == events.ReportProgress && r.CheckpointStep > 0 })
	o.ask("save-1", events.SaveNatural, time.Now().Add(time.Minute))
	r := o.logs.find(t, "saved", is(events.ReportSaved))
	if r.CheckpointStep == 0 || r.CheckpointStep%40 != 0 || trainer.Count(o.dir, "caught terminated") != 0 {
		t.Errorf("%+v", r)
	}
}

// TestASaveThatDoesNotComeByItselfIsAskedFor on every worker, though only worker 0 sees how often the training saves.
func TestASaveThatDoesNotComeByItselfIsAskedFor(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	peers := fmt.Sprintf("--peers=127.0.0.1:%d,127.0.0.1:%d", freePort(t), freePort(t))
	for w := range 2 {
		launch(t, []string{
			"--checkpoint-dir=file://" + dir, "--workload=demo/llama", "--node=llama", "--zone=us-west4-a", peers,
			fmt.Sprintf("--host=t1v-n-0123abcd-w-%d", w), fmt.Sprintf("--worker=%d", w),
		}, train(t, "-dir="+dir, "-on-term=save"))
	}
	journal(t, dir, "began", 2)
	if err := checkpoint.WriteRequest(t.Context(), checkpoint.NewFiles("/", time.Now), "file://"+dir, events.CrewRequest{
		SaveID: "save-1", Action: events.ActionSave, Mode: events.SaveNatural, By: time.Now().Add(time.Minute),
	}, time.Now()); err != nil {
		t.Fatal(err)
	}
	journal(t, dir, "caught terminated", 2)
	journal(t, dir, "saved", 1)
	workers := map[string]bool{}
	for _, e := range trainer.Read(dir) {
		workers[e.Worker] = workers[e.Worker] || e.What == "caught terminated"
	}
	if !workers["0"] || !workers["1"] || trainer.Count(dir, "caught terminated") != 2 || trainer.Count(dir, "began") != 2 {
		t.Errorf("%v", trainer.Read(dir))
	}
}

func TestASaveIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	for _, c := range some(2, []struct {
		name   string
		train  []string
		mode   events.SaveMode
		by     time.Duration
		reason string
	}{
		{name: "it ignores the signal", train: []string{"-on-term=ignore"}, mode: events.SaveSignal, by: 500 * time.Millisecond, reason: "no process of the training handles SIGTERM"},
		{name: "nothing is saved in time", train: []string{"-on-term=ignore"}, mode: events.SaveNatural, by: 300 * time.Millisecond, reason: "no checkpoint was complete by"},
		{name: "it crashes while saving", train: []string{"-on-term=save", "-save-takes=50ms", "-crash-saving", "-once"}, mode: events.SaveSignal, by: time.Minute, reason: "ended before a new checkpoint was complete: SIGKILL"},
		{name: "it stops without a save", train: []string{"-on-term=stop"}, mode: events.SaveSignal, by: time.Minute, reason: "ended before a new checkpoint was complete"},
		{name: "it came too late", train: []string{"-on-term=save"}, mode: events.SaveSignal, by: -time.Second, reason: "too late"},
	}) {
		o := tpu(t, nil, c.train...)
		o.ask("save-1", c.mode, time.Now().Add(c.by))
		r := o.logs.find(t, "refused", is(events.ReportRefused))
		if r.SaveID != "save-1" || !strings.Contains(r.Reason, c.reason) {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}

func TestARequestWaitsForTheTraining(t *testing.T) {
	t.Parallel()
	// It is there before pitcrew is, and the handler of the signal comes later still.
	o := &onTPU{server: metadatatest.New("demo", "us-west4-a", "t1v-n-0123abcd-w-0", time.Now), logs: newLogs(t), dir: t.TempDir()}
	o.server.TPU("llama", "v5litepod-8", 0, "127.0.0.1")
	host, stop := o.server.Start()
	t.Cleanup(stop)
	handles := filepath.Join(o.dir, "handles")
	script := fmt.Sprintf(`while ! test -e %s; do sleep 0.01; done; trap 'mkdir %s/40; echo x > %s/40/data' TERM; echo > %s/ready; while :; do sleep 0.01; done`, handles, o.dir, o.dir, o.dir)
	o.crewProcess = &crewProcess{t: t}
	o.ask("save-1", events.SaveSignal, time.Now().Add(deadline))
	o.crewProcess = launch(t, []string{"--metadata=" + host, "--logging-endpoint=" + o.logs.address, "--checkpoint-dir=file://" + o.dir}, []string{"sh", "-c", script})
	o.logs.find(t, "started", is(events.ReportStarted))
	touch(t, handles)
	if r := o.logs.find(t, "saved", is(events.ReportSaved)); r.SaveID != "save-1" || r.CheckpointStep != 40 {
		t.Errorf("%+v", r)
	}
}

func TestARequestIsCarriedOutOnceWhoeverReadsIt(t *testing.T) {
	t.Parallel()
	state := t.TempDir()
	o := tpu(t, []string{"--state=" + state, "--workload=demo/llama"}, "-on-term=save")
	o.ask("save-1", events.SaveSignal, time.Now().Add(time.Minute))
	o.logs.find(t, "saved", is(events.ReportSaved))
	o.signal(syscall.SIGKILL)
	o.crewProcess.code()
	again := relaunch(t, o.crewProcess)
	until(t, "adopted", func() bool { return strings.Contains(again.output(), "adopted attempt 1") })
	// Another workload's, and another one of this one.
	value, err := json.Marshal(events.CrewRequest{
		Schema: events.Schema, SaveID: "foreign", Workload: "demo/other", Incident: "i1", Action: events.ActionSave, Mode: events.SaveSignal, By: time.Now().Add(time.Minute),
	})
	must(t, err)
	o.server.Set("instance/attributes/"+events.MetadataRequest, string(value))
	until(t, "it says so", func() bool {
		return strings.Contains(again.output(), "request foreign asks demo/other to save, and this is demo/llama")
	})
	o.ask("save-2", events.SaveSignal, time.Now().Add(time.Minute))
	o.logs.find(t, "saved again", func(r events.CrewReport) bool { return r.SaveID == "save-2" })
	if n := trainer.Count(o.dir, "caught terminated"); n != 2 {
		t.Errorf("%d signals", n)
	}
}

func TestACommandThatSaves(t *testing.T) {
	t.Parallel()
	o := tpu(t, []string{"--save-command=kill -USR1 $PITCREW_PID"}, "-on-term=save")
	// The request names no command, and nothing in it would be executed.
	o.ask("$(touch /tmp/pwned); `id`", events.SaveSignal, time.Now().Add(time.Minute))
	o.logs.find(t, "saved", is(events.ReportSaved))
	if n := trainer.Count(o.dir, "caught user defined signal 1"); n != 1 {
		t.Errorf("%d signals", n)
	}
}

func TestACommandThatCannotSave(t *testing.T) {
	t.Parallel()
	// It says why, and nothing of it is left: neither when its time is over, nor at pitcrew's end.
	started := filepath.Join(t.TempDir(), "started")
	script := fmt.Sprintf("[ -e %[1]s ] || { : >%[1]s; exit 3; }; sleep 1000 & echo $! >>%[1]s; wait; :", started)
	o := tpu(t, []string{"--save-command=" + script}, "-on-term=save")
	refused := func(id string) events.CrewReport {
		t.Helper()
		return o.logs.find(t, "refused", func(r events.CrewReport) bool { return r.Report == events.ReportRefused && r.SaveID == id })
	}
	pids := func(n int) (all []int) {
		t.Helper()
		until(t, "the command runs", func() bool {
			all = nil
			for f := range strings.FieldsSeq(read(t, started)) {
				if pid, err := strconv.Atoi(f); err == nil {
					all = append(all, pid)
				}
			}
			return len(all) == n
		})
		return all
	}
	o.ask("one", events.SaveSignal, time.Now().Add(time.Minute))
	if r := refused("one"); r.Reason != "--save-command: exit status 3" {
		t.Errorf("%+v", r)
	}
	o.ask("two", events.SaveSignal, time.Now().Add(2*time.Second))
	late := pids(1)[0]
	refused("two")
	until(t, "what had to end has ended", func() bool { return !alive(late) })
	o.ask("three", events.SaveSignal, time.Now().Add(time.Minute))
	left := pids(2)[1]
	o.signal(syscall.SIGTERM)
	o.code()
	until(t, "what is left has ended", func() bool { return !alive(left) })
}

func TestMaintenanceSavesAndTheTrainingGoesOnLater(t *testing.T) {
	t.Parallel()
	o := tpu(t, nil, "-on-term=save-stop")
	o.server.Set("instance/maintenance-event", "TERMINATE_ON_HOST_MAINTENANCE")
	r := o.logs.find(t, "notice", is(events.ReportNotice))
	if r.Notice == nil || r.Notice.Status != events.NoticeOngoing || r.Preempted {
		t.Errorf("%+v", r)
	}
	// Exit 0 near maintenance is saved, not finished: it begins again from there.
	journal(t, o.dir, "began", 2)
	all := trainer.Read(o.dir)
	if last := all[len(all)-1]; trainer.Count(o.dir, "saved") != 1 || !o.running() || last.Attempt != "2" {
		t.Errorf("%v", all)
	}
	for _, r := range o.logs.reports(t) {
		if r.Report == events.ReportFinished || r.Report == events.ReportExited {
			t.Errorf("%+v", r)
		}
	}
}

// TestOnlyDocumentedWordsAnnounceMaintenance: what else stands there is told once. It saves nothing, and a training that ends is finished.
func TestOnlyDocumentedWordsAnnounceMaintenance(t *testing.T) {
	t.Parallel()
	done := filepath.Join(t.TempDir(), "done")
	o := tpu(t, nil, "-on-term=save-stop", "-done="+done)
	o.server.Set("instance/preempted", "<html>")
	o.server.Set("instance/maintenance-event", "<html>not now</html>")
	for _, path := range []string{"instance/preempted", "instance/maintenance-event"} {
		o.says(t, fmt.Sprintf("%s: %q is no word that the metadata server has for it; it counts for nothing", path, map[string]string{
			"instance/preempted": "<html>", "instance/maintenance-event": "<html>not now</html>",
		}[path]))
	}
	touch(t, done)
	if code := o.code(); code != 0 || trainer.Count(o.dir, "began") != 1 || trainer.Count(o.dir, "caught terminated") != 0 {
		t.Errorf("code %d: %v", code, trainer.Read(o.dir))
	}
	for _, r := range o.logs.reports(t) {
		if r.Report == events.ReportNotice {
			t.Errorf("%+v", r)
		}
	}
}

func TestAJobThatIsDoneDoesNotRaceUnderMaintenance(t *testing.T) {
	t.Parallel()
	o := tpu(t, []string{"--backoff=20s", "--backoff-max=1h"}, "-on-term=save", "-steps=500")
	o.server.Set("instance/maintenance-event", "TERMINATE_ON_HOST_MAINTENANCE")
	until(t, "it waits", func() bool {
		return strings.Contains(o.output(), "exit code 0 without a new checkpoint; the job is not done; starting again in")
	})
	if n := trainer.Count(o.dir, "began"); n != 2 || !o.running() {
		t.Errorf("%d starts: %v", n, trainer.Read(o.dir))
	}
}

func TestWhatFollowsASaveMayFinish(t *testing.T) {
	t.Parallel()
	o := tpu(t, []string{"--give-up=exit"}, "-on-term=save-stop", "-steps=1000000", "-at=1000", "-exit=0")
	o.ask("save-1", events.SaveSignal, time.Now().Add(time.Minute))
	if code := o.code(); code != 0 || trainer.Count(o.dir, "stopped") != 1 || trainer.Count(o.dir, "exits") != 1 {
		t.Errorf("code %d: %v", code, trainer.Read(o.dir))
	}
}

func TestAnnouncedMaintenanceIsReportedAndNothingElse(t *testing.T) {
	t.Parallel()
	o := tpu(t, nil, "-on-term=save-stop")
	o.server.Set("instance/upcoming-maintenance", `{"maintenanceType":"SCHEDULED","canReschedule":"TRUE","maintenanceStatus":"PENDING","windowStartTime":"2026-12-01T02:00:00Z","windowEndTime":"2026-12-01T06:00:00Z"}`)
	r := o.logs.find(t, "notice", is(events.ReportNotice))
	if n := r.Notice; n == nil || n.Status != events.NoticePending || !n.CanReschedule || n.Unscheduled || n.WindowStart.Hour() != 2 {
		t.Errorf("%+v", r)
	}
	o.server.Remove("instance/upcoming-maintenance")
	o.logs.find(t, "gone", func(r events.CrewReport) bool { return r.Notice != nil && r.Notice.Status == events.NoticeGone })
	if n := trainer.Count(o.dir, "caught terminated"); n != 0 {
		t.Errorf("%d signals", n)
	}
}

func TestAPreemptionSavesAndStartsNothing(t *testing.T) {
	t.Parallel()
	o := tpu(t, nil, "-on-term=save-stop")
	o.server.Set("instance/preempted", "TRUE")
	o.logs.find(t, "notice", func(r events.CrewReport) bool { return r.Preempted })
	until(t, "saved", func() bool {
		return strings.Contains(o.output(), "it saved itself; the job is not done; nothing starts on this machine any more")
	})
	o.signal(syscall.SIGTERM) // the machine shuts down
	if code := o.code(); code != 143 || trainer.Count(o.dir, "began") != 1 {
		t.Errorf("code %d: %v", code, trainer.Read(o.dir))
	}
}

func TestReportsOfALife(t *testing.T) {
	t.Parallel()
	o := tpu(t, []string{"--step-pattern=maxtext", "--give-up=exit"}, "-every=50", "-print-steps", "-at=120", "-exit=3", "-once", "-steps=300")
	if code := o.code(); code != 0 {
		t.Fatal(code)
	}
	var got []string
	steps := int64(0)
	for _, r := range o.logs.reports(t) {
		switch r.Report {
		case events.ReportProgress:
			if r.Workers != 1 || r.Step <= 0 {
				t.Errorf("%+v", r)
			}
			steps = max(steps, r.Step)
			continue
		case events.ReportExited:
			if r.ExitCode != 3 || r.RestartsLeft == 0 || r.Retries != (events.JobRetries{Worker: 1}) || len(r.Tail) == 0 || !strings.HasPrefix(r.Tail[len(r.Tail)-1], "completed step: 120") || r.Step != 120 {
				t.Errorf("%+v", r)
			}
		case events.ReportStarted:
			if r.Attempt == 2 && r.Step != 100 {
				t.Errorf("attempt 2 begins at %d", r.Step)
			}
		default: // they are counted
		}
		got = append(got, fmt.Sprint(r.Report, " ", r.Attempt))
	}
	if want := "started 1, exited 1, started 2, finished 2"; strings.Join(got, ", ") != want {
		t.Errorf("%v, want %s", got, want)
	}
	if steps == 0 {
		t.Error("no progress was reported")
	}
	value, refused := o.server.Guest(events.GuestNamespace, events.GuestKey)
	state, err := events.DecodeCrewState([]byte(value))
	if err != nil || refused != 0 || state.Attempt != 2 || state.Verdict == nil || state.Verdict.Step != 300 {
		t.Errorf("%+v, %v, %d refused", state, err, refused)
	}
}

func TestWithoutMetadataServerAndLoggingTrainingGoesOn(t *testing.T) {
	t.Parallel()
	for _, f := range some(3, []metadatatest.Fault{{Status: 503}, {Gone: true}, {Slow: 300 * time.Millisecond}}) {
		state := t.TempDir()
		o := tpu(t, []string{"--state=" + state}, "-on-term=save", "-every=50", "-at=150", "-exit=1", "-once")
		o.server.Break(f)
		o.logs.fail(codes.Unavailable)
		journal(t, o.dir, "began", 2)
		until(t, "reports are kept", func() bool {
			raw, err := os.ReadFile(filepath.Join(state, "reports.jsonl"))
			return err == nil && strings.Contains(string(raw), `"exited"`)
		})
		o.logs.fail(codes.OK)
		o.logs.find(t, "exit, later", is(events.ReportExited))
		o.server.Break(metadatatest.Fault{})
		o.ask("save-1", events.SaveSignal, time.Now().Add(time.Minute))
		o.logs.find(t, "saved, when the server is back", is(events.ReportSaved))
		if trainer.Count(o.dir, "began") != 2 || !o.running() {
			t.Errorf("%+v: %v", f, trainer.Read(o.dir))
		}
	}
}

func TestGivingUpWaitsForPitstop(t *testing.T) {
	t.Parallel()
	o := tpu(t, []string{"--restarts=1", "--job-tries=0", "--give-up=wait"}, "-at=2", "-exit=1")
	r := o.logs.find(t, "gave up", is(events.ReportGaveUp))
	if r.Attempt != 2 || !strings.Contains(r.Reason, "all restarts are spent") {
		t.Errorf("%+v", r)
	}
	store := checkpoint.NewFiles("/", time.Now)
	l, _, err := checkpoint.ReadLease(t.Context(), store, "file://"+o.dir)
	must(t, err)
	l.Epoch, l.Attempt, l.By, l.Incident = 2, 3, "pitstop", "i1"
	must(t, checkpoint.WriteLease(t.Context(), store, "file://"+o.dir, l))
	o.logs.find(t, "gave up again, with a new budget", func(r events.CrewReport) bool { return r.Report == events.ReportGaveUp && r.Attempt == 4 })
	if n := trainer.Count(o.dir, "began"); n != 4 || !o.running() {
		t.Errorf("%d starts", n)
	}
}

// bucket is a crew whose checkpoint directory is in a simulated bucket.
func bucket(t testing.TB, flags []string, trainerArgs ...string) (*buckettest.Server, *crewProcess, string) {
	t.Helper()
	s := buckettest.New(time.Now, "unreadable")
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	log := t.TempDir()
	return s, launch(t, append([]string{
		"--checkpoint-dir=gs://unreadable/run", "--storage-endpoint=" + h.URL + "/storage/v1/", "--workload=demo/llama", "--node=llama",
		"--zone=us-west4-a", "--host=t1v-n-0123abcd-w-0",
	}, flags...), train(t, append([]string{"-log=" + log}, trainerArgs...)...)), log
}

func TestALeaseThatCannotBeReadEndsTheTraining(t *testing.T) {
	t.Parallel()
	s, p, log := bucket(t, nil)
	journal(t, log, "began", 1)
	s.Inject(buckettest.Fault{Method: buckettest.MethodGet, Times: 1 << 30, Status: 503})
	until(t, "the training ends", func() bool { return !alive(trainer.Read(log)[0].PID) })
	// The crew ends it, or on a busy machine its parent, which waits a twentieth longer. Neither waits until its line is written.
	until(t, "it is said why", func() bool {
		return strings.Contains(p.output(), "the lease was not read for 2s") || strings.Contains(p.output(), "no crew has read the lease for 2.1s")
	})
	if !p.running() {
		t.Error("the crew has ended too")
	}
}

func TestALeaseThatCannotBeReadStartsNothing(t *testing.T) {
	t.Parallel()
	s := buckettest.New(time.Now, "forbidden")
	s.Inject(buckettest.Fault{Method: buckettest.MethodGet, Times: 1 << 30, Status: 403})
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	log := t.TempDir()
	p := launch(t, []string{"--checkpoint-dir=gs://forbidden/run", "--storage-endpoint=" + h.URL + "/storage/v1/"}, train(t, "-log="+log))
	until(t, "it says so", func() bool { return strings.Contains(p.output(), "is not permitted") })
	if trainer.Read(log) != nil || !p.running() {
		t.Errorf("%v", trainer.Read(log))
	}
	p.signal(syscall.SIGTERM)
	if code := p.code(); code != 143 {
		t.Errorf("code %d", code)
	}
}

func TestACheckpointDirectoryOfThisMachineHasToBeReadable(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(file, nil, 0o600))
	p := launch(t, []string{"--checkpoint-dir=file://" + file}, []string{"true"})
	if code := p.code(); code != 125 || strings.Count(p.output(), "\n") != 1 || !strings.Contains(p.output(), "checkpoint directory: ") {
		t.Errorf("code %d", code)
	}
}

func TestAMultisliceInABucket(t *testing.T) {
	t.Parallel()
	s := buckettest.New(time.Now, "multislice")
	h := httptest.NewServer(s)
	t.Cleanup(h.Close)
	log, fail := t.TempDir(), filepath.Join(t.TempDir(), "fail")
	var crews []*crewProcess
	for i := range 2 {
		crews = append(crews, launch(t, []string{
			"--checkpoint-dir=gs://multislice/run", "--storage-endpoint=" + h.URL + "/storage/v1/", "--workload=demo/llama", fmt.Sprintf("--node=llama-%d", i),
			"--zone=us-west4-a", fmt.Sprintf("--host=t1v-n-0000000%d-w-0", i), fmt.Sprintf("--slice=%d", i), "--slices=2", "--restarts=1", "--job-tries=0",
		}, train(t, "-log="+log, fmt.Sprintf("-when=%s%d-", fail, i), "-exit=7")))
	}
	for attempt := 1; attempt <= 2; attempt++ {
		journal(t, log, "began", 2*attempt)
		touch(t, fmt.Sprintf("%s1-%d", fail, attempt))
	}
	// Slice 1 fails twice; slice 0 is ended with it. Then both give up, with the code of the cause.
	for i, p := range crews {
		if code := p.code(); code != 7 {
			t.Errorf("slice %d: code %d", i, code)
		}
	}
	if n := trainer.Count(log, "began"); n != 4 {
		t.Errorf("%d starts", n)
	}
	nobodyLeft(t, log)
}

func TestTheMetadataServerIsAskedWhoThisIs(t *testing.T) {
	s := metadatatest.New("demo", "us-west4-a", "t1v-n-0123abcd-w-2", time.Now)
	s.TPU("llama", "v5litepod-16", 2, "10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4")
	s.Set("instance/attributes/"+events.MetadataCheckpointDir, "gs://b/run")
	host, stop := s.Start()
	defer stop()
	m, err := metadata.New(host).Machine(t.Context())
	must(t, err)
	if m.Project != "demo" || m.Zone != "us-west4-a" || m.Node != "llama" || m.Host != "t1v-n-0123abcd-w-2" || m.Worker != 2 || m.Workers != 4 ||
		m.Peers[3] != "10.0.0.4" || m.Accelerator != "v5litepod-16" || m.Directory != "gs://b/run" || m.Slices != 1 || !m.ServiceAccounts || m.InstanceID != "4711" {
		t.Errorf("%+v", m)
	}
}
