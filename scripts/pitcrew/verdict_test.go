//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/metadata/metadatatest"
	"pitstop.internal/scripts/pitcrew/trainer"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/checkpoint/buckettest"
)

// aSlice are the flags of the only worker of slice llama.
var aSlice = []string{"--workload=demo/llama", "--node=llama", "--zone=us-west4-a", "--host=t1v-n-0123abcd-w-0"}

// verdictIn waits for the verdict in a directory on this machine.
func verdictIn(t testing.TB, dir string, attempt int) (v events.CrewVerdict) {
	t.Helper()
	store := checkpoint.NewFiles("/", time.Now)
	until(t, fmt.Sprintf("the verdict on attempt %d", attempt), func() bool {
		var err error
		v, err = checkpoint.ReadVerdict(t.Context(), store, "file://"+dir, attempt)
		return err == nil
	})
	return v
}

func TestACrewLeavesAVerdictThatItsLeaseConfirms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		flags    []string
		trainer  []string
		attempt  int
		finished bool
		code     int
		reason   string
		stays    bool
	}{
		{name: "finishes", trainer: []string{"-steps=7"}, attempt: 1, finished: true, reason: "exit code 0"},
		{
			name: "gives up", flags: []string{"--restarts=1", "--job-tries=0"}, trainer: []string{"-at=7", "-exit=9"},
			attempt: 2, code: 9, reason: "all restarts are spent",
		},
		{
			name: "gives up and stays", flags: []string{"--restarts=0", "--job-tries=0", "--give-up=wait"},
			trainer: []string{"-at=7", "-exit=9"}, attempt: 1, code: 9, reason: "all restarts are spent", stays: true,
		},
	} {
		dir, progress := t.TempDir(), filepath.Join(t.TempDir(), "step")
		flags := slices.Concat(aSlice, c.flags, []string{"--checkpoint-dir=file://" + dir, "--progress-file=" + progress})
		before := time.Now()
		p := launch(t, flags, train(t, append(c.trainer, "-dir="+dir, "-progress="+progress)...))
		if !c.stays {
			if code := p.code(); code != c.code {
				t.Errorf("%s: code %d", c.name, code)
			}
		}
		v := verdictIn(t, dir, c.attempt)
		l, ok := lease(t, dir)
		life := events.Admission{
			Slice: "llama", Incarnation: events.Incarnation{Zone: "us-west4-a"}, Workers: "t1v-n-0123abcd",
		}
		if !ok || !l.Confirms(v) || v.Life != life {
			t.Errorf("%s: the lease %+v does not confirm %+v", c.name, l, v)
		}
		if v.Finished != c.finished || v.GaveUp() == c.finished || v.Certain || v.Code != c.code || v.Step != 7 ||
			!strings.Contains(v.Reason, c.reason) || v.Ended.Before(before) || v.Ended.After(time.Now()) {
			t.Errorf("%s: %+v", c.name, v)
		}
		if _, err := os.Stat(filepath.Join(dir, events.VerdictObject(c.attempt-1))); err == nil {
			t.Errorf("%s: an attempt that another one followed has a verdict", c.name)
		}
	}
}

// outage is a storage that writes nothing while it is away.
type outage struct {
	*buckettest.Server
	bucket  string // of this test alone, because a crew locks its directory on the whole machine
	away    atomic.Bool
	refused atomic.Int32 // verdicts
}

// ServeHTTP implements http.Handler.
func (o *outage) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodPost && o.away.Load() {
		body, _ := io.ReadAll(r.Body) //nolint:errcheck // what is there is looked at
		if bytes.Contains(append(body, r.URL.RawQuery...), []byte("verdict.json")) {
			o.refused.Add(1)
		}
		http.Error(w, "injected", http.StatusServiceUnavailable)
		return
	}
	o.Server.ServeHTTP(w, r)
}

// inOutage is a crew whose bucket goes away before its training finishes.
func inOutage(t testing.TB, flags ...string) (*outage, *crewProcess, string) {
	t.Helper()
	o := &outage{bucket: strings.ToLower(t.Name()) + strconv.Itoa(os.Getpid())}
	o.Server = buckettest.New(time.Now, o.bucket)
	h := httptest.NewServer(o)
	t.Cleanup(h.Close)
	log, done := t.TempDir(), filepath.Join(t.TempDir(), "done")
	where := []string{
		"--checkpoint-dir=gs://" + o.bucket + "/run", "--storage-endpoint=" + h.URL + "/storage/v1/",
		"--lease-unread=1m", "--lease-take-over=2m", // the training ends by itself, however slow the machine is
	}
	p := launch(t, slices.Concat(where, aSlice, flags), train(t, "-log="+log, "-done="+done))
	journal(t, log, "began", 1)
	o.away.Store(true)
	touch(t, done)
	return o, p, log
}

func TestABucketThatIsAwayDoesNotKeepACrewFromExiting(t *testing.T) {
	t.Parallel()
	logs := newLogs(t)
	o, p, _ := inOutage(t, "--report=cloud", "--project=demo", "--logging-endpoint="+logs.address)
	if code := p.code(); code != 0 {
		t.Errorf("code %d", code)
	}
	logs.find(t, "finished", is(events.ReportFinished))
	uri := "gs://" + o.bucket + "/run/pitstop-crew/attempt-000001/verdict.json"
	if n := strings.Count(p.output(), "the verdict on attempt 1 could not be written to "+uri+" within 3s"); n != 1 {
		t.Errorf("it says so %d times", n)
	}
}

func TestACrewThatWasKilledBeforeItsVerdictWritesItLater(t *testing.T) {
	t.Parallel()
	o, p, log := inOutage(t, "--finish-grace=10m")
	until(t, "it tries to write its verdict", func() bool { return o.refused.Load() > 0 })
	p.signal(syscall.SIGKILL)
	p.code()
	o.away.Store(false)
	if code := relaunch(t, p).code(); code != 0 || trainer.Count(log, "began") != 1 {
		t.Errorf("code %d after %d starts", code, trainer.Count(log, "began"))
	}
	raw, _, ok := o.Get(o.bucket, "run/"+events.VerdictObject(1))
	if v, err := events.DecodeCrewVerdict(raw); !ok || err != nil || !v.Finished {
		t.Errorf("%s, %v", raw, err)
	}
}

// TestAMetadataServerThatIsAwayDoesNotKeepACrewFromExiting: the crew does not know its machine from it, and exits
// without it.
func TestAMetadataServerThatIsAwayDoesNotKeepACrewFromExiting(t *testing.T) {
	t.Parallel()
	done := filepath.Join(t.TempDir(), "done")
	o := tpu(t, []string{"--give-up=exit"}, "-done="+done)
	o.server.Break(metadatatest.Fault{Status: http.StatusServiceUnavailable})
	touch(t, done)
	if code := o.code(); code != 0 {
		t.Errorf("code %d", code)
	}
	verdictIn(t, o.dir, 1)
}

func TestTheLastStepMakesTheEndCertain(t *testing.T) {
	t.Parallel()
	for _, c := range some(2, []struct {
		name, script string // step is the progress file
		flags        []string
		starts       int
		certain      bool
		says         string
	}{
		{name: "without the flag", script: `echo 10 > step`, starts: 1},
		{name: "reached", script: `echo 10 > step`, flags: []string{"--done-at=10"}, starts: 1, certain: true},
		{name: "passed", script: `echo 11 > step`, flags: []string{"--done-at=10"}, starts: 1, certain: true},
		{name: "step 0", script: `echo 0 > step`, flags: []string{"--done-at=0"}, starts: 1, certain: true},
		{
			name: "reached at the second attempt", script: `echo $((PITCREW_ATTEMPT * 5)) > step`,
			flags: []string{"--done-at=10"}, starts: 2, certain: true,
			says: "attempt 1 ended with exit code 0 at step 5, before --done-at 10: the training is not finished",
		},
		{
			name: "no step is known", script: `true`, flags: []string{"--done-at=10"}, starts: 1,
			says: "--done-at 10: no step is known",
		},
		{
			name: "the last checkpoint tells it", script: `mkdir 10; echo x > 10/data`,
			flags: []string{"--done-at=10", "--look-every=1h"}, starts: 1, certain: true,
		},
		{
			name:   "the checkpoint that it resumes from tells it",
			script: `if [ $PITCREW_ATTEMPT = 1 ]; then mkdir 10; echo x > 10/data; exit 127; fi`,
			flags:  []string{"--done-at=10"}, starts: 1, certain: true,
		},
		{
			name: "it aborts when the last step is saved", script: `echo 10 > step; mkdir 10; echo x > 10/data; ulimit -c 0; kill -6 $$`,
			flags: []string{"--done-at=10", "--look-every=1h"}, starts: 1, certain: true,
			says: "finished: attempt 1 ended on worker 0: its last step was saved before it ended: SIGABRT",
		},
		{
			name: "it aborts before the last step is saved", script: `echo 10 > step; if [ $PITCREW_ATTEMPT = 1 ]; then ulimit -c 0; kill -6 $$; fi`,
			flags: []string{"--done-at=10"}, starts: 2, certain: true,
		},
		{
			name:   "a save was asked for",
			script: `trap 'echo 10 > step; exit 0' TERM; touch ready; while :; do sleep 0.01; done`,
			flags:  []string{"--done-at=10"}, starts: 1, certain: true,
		},
	}) {
		dir := t.TempDir()
		where := []string{"--checkpoint-dir=file://" + dir, "--progress-file=" + filepath.Join(dir, "step")}
		script := "cd " + dir + " && echo x >> starts; " + c.script
		p := launch(t, slices.Concat(where, aSlice, c.flags), []string{"sh", "-c", script})
		if strings.Contains(c.script, "ready") {
			until(t, "the handler", func() bool { _, err := os.Stat(filepath.Join(dir, "ready")); return err == nil })
			if err := checkpoint.WriteRequest(t.Context(), checkpoint.NewFiles("/", time.Now), "file://"+dir, events.CrewRequest{
				SaveID: "save-1", Action: events.ActionSave, Mode: events.SaveSignal, By: time.Now().Add(time.Minute),
			}, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if code := p.code(); code != 0 {
			t.Errorf("%s: code %d", c.name, code)
		}
		raw, err := os.ReadFile(filepath.Join(dir, "starts"))
		if n := strings.Count(string(raw), "x\n"); n != c.starts || err != nil {
			t.Errorf("%s: %d starts, %v", c.name, n, err)
		}
		if v := verdictIn(t, dir, c.starts); !v.Finished || v.Certain != c.certain {
			t.Errorf("%s: %+v", c.name, v)
		}
		if n := strings.Count(p.output(), c.says); c.says != "" && n != 1 {
			t.Errorf("%s: it says %d times %q", c.name, n, c.says)
		}
	}
}

// TestTheLastStepEndsTheJobUnderMaintenance: without it, exit 0 near maintenance counts as a save.
func TestTheLastStepEndsTheJobUnderMaintenance(t *testing.T) {
	t.Parallel()
	done, step := filepath.Join(t.TempDir(), "done"), filepath.Join(t.TempDir(), "step")
	flags := []string{"--give-up=exit", "--done-at=0", "--on-maintenance=none", "--progress-file=" + step}
	o := tpu(t, flags, "-progress="+step, "-done="+done)
	o.server.Set("instance/maintenance-event", "TERMINATE_ON_HOST_MAINTENANCE")
	o.logs.find(t, "notice", is(events.ReportNotice))
	touch(t, done)
	if code := o.code(); code != 0 || trainer.Count(o.dir, "began") != 1 {
		t.Errorf("code %d: %v", code, trainer.Read(o.dir))
	}
	if v := verdictIn(t, o.dir, 1); !v.Finished || !v.Certain {
		t.Errorf("%+v", v)
	}
}

// TestAStopAtTheLastStepIsTheEndOfTheJob: a signal ends pitcrew, and at 143 a container platform would start it
// again.
func TestAStopAtTheLastStepIsTheEndOfTheJob(t *testing.T) {
	t.Parallel()
	dir, step := t.TempDir(), filepath.Join(t.TempDir(), "step")
	flags := []string{"--checkpoint-dir=file://" + dir, "--done-at=0", "--progress-file=" + step}
	p := launch(t, slices.Concat(flags, aSlice),
		train(t, "-dir="+dir, "-progress="+step, "-on-term=save-stop"))
	until(t, "a step", func() bool { _, err := os.Stat(step); return err == nil })
	p.signal(syscall.SIGTERM)
	if code := p.code(); code != 0 {
		t.Errorf("code %d", code)
	}
	if v := verdictIn(t, dir, 1); !v.Certain {
		t.Errorf("%+v", v)
	}
}

// TestASignalThatTheOutputTellsOfIsNoEndOfTheJob: Google's autocheckpoint sends it, and nothing else announces it.
func TestASignalThatTheOutputTellsOfIsNoEndOfTheJob(t *testing.T) {
	t.Parallel()
	const line = "W1112 02:14:08.123456 4711 preemption_notifier.cc:89] SIGTERM caught at 2026-11-12T02:14:08Z"
	const script = `if [ $PITCREW_ATTEMPT = 1 ]; then echo "` + line + `" >&2; fi`
	for flag, starts := range map[string]int{"--read-output=false": 1, "--read-output": 2, "--step-pattern=maxtext": 2} {
		count := filepath.Join(t.TempDir(), "count")
		p := launch(t, []string{flag}, []string{"sh", "-c", "echo x >> " + count + "; " + script})
		if code := p.code(); code != 0 {
			t.Errorf("%s: code %d", flag, code)
		}
		if raw, err := os.ReadFile(count); err != nil || strings.Count(string(raw), "x\n") != starts {
			t.Errorf("%s: %q, %v", flag, raw, err)
		}
	}
}

func TestASingleSliceClearsWhatEarlierAttemptsLeft(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	flags := []string{"--checkpoint-dir=file://" + dir, "--restarts=0", "--job-tries=0", "--give-up=wait"}
	launch(t, slices.Concat(flags, aSlice), train(t, "-dir="+dir, "-at=2", "-exit=1"))
	store := checkpoint.NewFiles("/", time.Now)
	for attempt := range 6 {
		verdictIn(t, dir, attempt+1)
		l, _, err := checkpoint.ReadLease(t.Context(), store, "file://"+dir)
		must(t, err)
		l.Epoch, l.Attempt, l.By = int64(attempt+2), attempt+2, "pitstop"
		must(t, checkpoint.WriteLease(t.Context(), store, "file://"+dir, l))
	}
	verdictIn(t, dir, 7)
	until(t, "attempts 1 to 4 are cleared", func() bool {
		all := checkpoint.ListOptions{Prefix: "attempt-", Recursive: true}
		names, err := store.List(t.Context(), "file://"+dir+"/pitstop-crew", all)
		return err == nil && len(names.Entries) == 3 && names.Entries[0].Name == "attempt-000005/verdict.json"
	})
}
