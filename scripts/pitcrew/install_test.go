//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/crew"
	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/metadata/metadatatest"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/checkpoint/buckettest"
)

// pitcrew runs the command to its end.
func pitcrew(t *testing.T, env []string, args ...string) (code int, out string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), self(t), args...)
	cmd.Env = append(append(os.Environ(), asPitcrew+"=1", metadata.HostVariable+"="), env...)
	raw, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(raw)
}

func TestInstall(t *testing.T) {
	root := t.TempDir()
	env := filepath.Join(t.TempDir(), "secrets.env")
	must(t, os.WriteFile(env, []byte("HF_TOKEN=x\n"), 0o600))
	code, out := pitcrew(t, []string{"PATH=/opt/a b:/bin:/usr/bin:/usr/local/bin"}, "install", "--root="+root, "--env-file="+env, "--name=llama", "--from=gs://b/pitcrew-1", "--",
		"--checkpoint-dir=gs://b/run", "--step-pattern=maxtext", "--stop-grace=5m", "--lease-unread=30s", "--", "python3", "train.py", "--name=50% of $HOME", `"quoted" \ 'too'`, "")
	if code != 0 {
		t.Fatal(out)
	}
	if want := "and so has " + env + ", without which systemd does not start it"; !strings.Contains(out, want) {
		t.Errorf("%s\nlacks %s", out, want)
	}
	// What is in the TPU's metadata stays there.
	if want := `--update-metadata="^|||^startup-script=$(cat /usr/local/share/pitcrew/llama-startup.sh)"`; strings.Contains(out, "--metadata-from-file") || !strings.Contains(out, want) {
		t.Errorf("%s\nlacks %s", out, want)
	}
	unit := filepath.Join(root, "etc/systemd/system/llama.service")
	raw, err := os.ReadFile(unit)
	must(t, err)
	for _, want := range []string{
		`ExecStart=/usr/local/bin/pitcrew run --checkpoint-dir=gs://b/run --step-pattern=maxtext --stop-grace=5m --lease-unread=30s -- python3 train.py "--name=50%% of $$HOME" "\"quoted\" \\ 'too'" ""` + "\n",
		"EnvironmentFile=" + env + "\n", "KillMode=process\n", "TimeoutStopSec=317\n",
		`Environment="PATH=/opt/a b:/bin:/usr/bin:/usr/local/bin"` + "\n", "Restart=on-abnormal\n", "WantedBy=multi-user.target\n",
	} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("%s\nlacks %s", raw, want)
		}
	}
	program, err := os.ReadFile(filepath.Join(root, "usr/local/bin/pitcrew"))
	mine, merr := os.ReadFile(self(t))
	if err != nil || merr != nil || !bytes.Equal(program, mine) {
		t.Error("the program is not this one", err, merr)
	}
	script := filepath.Join(root, "usr/local/share/pitcrew/llama-startup.sh")
	if out, err := exec.CommandContext(t.Context(), "sh", "-n", script).CombinedOutput(); err != nil {
		t.Errorf("%v %s", err, out)
	}
	text, err := os.ReadFile(script)
	// The next machine has not the folder either in which the training runs, and systemd would not start it.
	var folder string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "[ -d ") {
			folder = line
		}
	}
	cwd, cerr := os.Getwd()
	if cerr != nil || !strings.Contains(folder, "'"+cwd+"'") || !strings.Contains(string(raw), "WorkingDirectory="+cwd+"\n") {
		t.Errorf("%q makes no %s: %v", folder, cwd, cerr)
	}
	gone := filepath.Join(root, "gone", "it's here")
	for range 2 { // one that is there stays as it is
		if out, err := exec.CommandContext(t.Context(), "sh", "-eu", "-c", strings.ReplaceAll(folder, shell(cwd), shell(gone))).CombinedOutput(); err != nil {
			t.Errorf("%v %s", err, out)
		}
		if info, err := os.Stat(gone); err != nil || !info.IsDir() {
			t.Error(err)
		}
	}
	for _, want := range []string{string(raw), "\ngcloud storage cp 'gs://b/pitcrew-1' /usr/local/bin/pitcrew.new\n", "\nsystemctl enable --now llama\n"} {
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s, %v\nlacks %s", text, err, want)
		}
	}
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not here to verify the unit")
	}
	// What is verified has to exist.
	there := filepath.Join(root, "there.service")
	unitThere := strings.ReplaceAll(string(raw), "/usr/local/bin/pitcrew", filepath.Join(root, "usr/local/bin/pitcrew"))
	must(t, os.WriteFile(there, []byte(unitThere), 0o600))
	if out, err := exec.CommandContext(t.Context(), "systemd-analyze", "verify", "--man=no", there).CombinedOutput(); err != nil || strings.Contains(string(out), "there.service:") {
		t.Errorf("systemd does not take it: %v %s", err, out)
	}
}

func TestInstallForOneUser(t *testing.T) {
	home := t.TempDir()
	code, out := pitcrew(t, []string{"HOME=" + home}, "install", "--user", "--dry-run", "--", "sh", "train.sh")
	if code != 0 || !strings.Contains(out, home+"/.config/systemd/user/pitcrew.service") || !strings.Contains(out, "WantedBy=default.target") || strings.Contains(out, "User=") {
		t.Errorf("%d %s", code, out)
	}
	if names, err := os.ReadDir(home); err != nil || len(names) != 0 {
		t.Errorf("a dry run wrote %v, %v", names, err)
	}
}

// TestInstallSaysWhatComesNext on this machine and on the others.
func TestInstallSaysWhatComesNext(t *testing.T) {
	_, env := aTPU(t)
	code, out := pitcrew(t, append(env, "HOME="+t.TempDir()), "install", "--user", "--name=llama", "--", "sh", "train.sh")
	if code != 0 || !strings.Contains(out, "journalctl --user -f -u llama") || !strings.Contains(out, "./pitcrew install --user ...") || strings.Contains(out, "startup-script") {
		t.Errorf("%d %s", code, out)
	}
}

func TestInstallRefusesWhatRunWould(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--", "--restarts=-1", "--", "true"}, "restarts -1"},
		{[]string{"--", "--nope", "--", "true"}, "--nope"},
		{[]string{"--", "--"}, "no command"},
		{[]string{"--", "docker", "run", "-d", "image"}, "-d"},
		{[]string{"--", "no-such-command-here"}, "there is no such command"},
		{[]string{"--from=gs://b", "--", "true"}, "gs://BUCKET/OBJECT"},
		{[]string{"--from=gs://b/p", "--user", "--", "true"}, "run by root"},
		{[]string{"--name=a/b", "--", "true"}, "--name a/b"},
		{[]string{"--env-file=/does/not/exist", "--", "true"}, "--env-file"},
		{[]string{"--", "true", "a\nb"}, "line break"},
	} {
		code, out := pitcrew(t, nil, append([]string{"install", "--dry-run"}, c.args...)...)
		if code != 2 || strings.Count(out, "\n") != 1 || !strings.Contains(out, c.want) {
			t.Errorf("%q: %d %q", c.args, code, out)
		}
	}
}

func TestDoctorOnATPU(t *testing.T) {
	s := metadatatest.New("demo", "us-west4-a", "t1v-n-0123abcd-w-0", time.Now)
	s.TPU("llama", "v5litepod-8", 0, "127.0.0.1")
	s.Set("instance/attributes/"+events.MetadataCheckpointDir, "gs://doctor/run")
	host, stop := s.Start()
	defer stop()
	s.Set("instance/attributes/"+events.MetadataDataDir, "gs://near gs://far/c4 gs://both gs://missing /mnt/disk")
	b := buckettest.New(time.Now, "doctor")
	b.Place("near", buckettest.Location{Name: "US-WEST4"})
	b.Place("far", buckettest.Location{Name: "EUROPE-WEST4"})
	b.Place("both", buckettest.Location{Name: "US", Type: "dual-region", Regions: "US-WEST4,US-EAST1"})
	h := httptest.NewServer(b)
	defer h.Close()
	l := newLogs(t)
	base := []string{"doctor", "--metadata=" + host, "--state=" + t.TempDir(), "--storage-endpoint=" + h.URL + "/storage/v1/", "--logging-endpoint=" + l.address}
	code, out := pitcrew(t, nil, append(base, "--try=10s", "--", "sh", "-c", "trap : TERM; while :; do sleep 0.1; done")...)
	if code != 0 || strings.Contains(out, failing) {
		t.Errorf("%d\n%s", code, out)
	}
	for _, want := range []string{
		"worker 0 of 1 of llama in us-west4-a, v5litepod-8", "gs://doctor/run can be read", "there is none yet", "Cloud Logging takes them",
		"they can be written", "handle SIGTERM",
		"the bucket doctor is in us, which has several regions, and the TPU in us-west4", "the bucket near is in us-west4, as the TPU is",
		"the bucket far is in europe-west4 and the TPU in us-west4: what crosses is slower and charged", "the bucket both is in us-west4, as the TPU is",
		"where the bucket missing is cannot be read (storage.buckets.get); it should be in us-west4", "pitstop-data-dir: /mnt/disk is no bucket",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("%s\nlacks %s", out, want)
		}
	}
	if left := b.List("doctor", ""); len(left) != 0 {
		t.Errorf("it left %v", left)
	}
	if len(l.reports(t)) != 0 {
		t.Error("it left a report")
	}
	// Everything that can be wrong, at once.
	l.fail(codes.PermissionDenied)
	b.Inject(buckettest.Fault{Method: buckettest.MethodInsert, Times: 99, Status: 403})
	code, out = pitcrew(t, nil, append(base, "--", "no-such-command")...)
	if code != 1 || strings.Count(out, failing) != 3 {
		t.Errorf("%d\n%s", code, out)
	}
	for _, want := range []string{"roles/logging.logWriter", "storage.objects.create", "there is no such command"} {
		if !strings.Contains(out, want) {
			t.Errorf("%s\nlacks %s", out, want)
		}
	}
}

// TestDoctorLooksAtTheLease: it says what run would do with a lease that is missing, foreign or no lease, and which rule deletes it.
func TestDoctorLooksAtTheLease(t *testing.T) {
	s := metadatatest.New("demo", "us-west4-a", "t1v-n-0123abcd-w-0", time.Now)
	s.TPU("llama", "v5litepod-8", 0, "127.0.0.1")
	host, stop := s.Start()
	defer stop()
	foreign := `{"schema":1,"workload":"dev/llama","epoch":7,"attempt":2,"admitted":[],"written":"2026-11-25T01:07:31Z","by":"pitstop"}`
	for name, c := range map[string]struct{ lease, verdict, rules, says string }{
		"a first start":           {"", "", "", "there is none yet; pitcrew writes the first"},
		"it is gone":              {"", "{}", "", "the crew that it named writes it again, and any other waits 6m0s; a lifecycle rule"},
		"it is garbage":           {"<html>", "", "", "pitcrew replaces it"},
		"a foreign one":           {foreign, "", "", "it belongs to dev/llama: pitcrew trains nothing here"},
		"a rule that deletes it":  {"", "", `[{"action":{"type":"Delete"},"condition":{"age":30}}]`, "a rule of the bucket doctor deletes gs://doctor/run/pitstop-lease.json"},
		"a rule about other ones": {"", "", `[{"action":{"type":"Delete"},"condition":{"age":30,"matchesPrefix":["logs/"]}}]`, "there is none yet"},
	} {
		b := buckettest.New(time.Now, "doctor")
		b.Place("doctor", buckettest.Location{Name: "US-WEST4"})
		if c.rules != "" {
			b.Rules("doctor", c.rules)
		}
		if c.lease != "" {
			b.Put("doctor", "run/"+checkpoint.LeaseName, []byte(c.lease))
		}
		if c.verdict != "" {
			b.Put("doctor", "run/"+events.VerdictObject(3), []byte(c.verdict))
		}
		h := httptest.NewServer(b)
		_, out := pitcrew(t, nil, "doctor", "--metadata="+host, "--report=none", "--state="+t.TempDir(), "--storage-endpoint="+h.URL+"/storage/v1/",
			"--checkpoint-dir=gs://doctor/run", "--", "true")
		h.Close()
		if !strings.Contains(out, c.says) || strings.Contains(out, "a rule of the bucket doctor") != (name == "a rule that deletes it") {
			t.Errorf("%s: %s\nlacks %s", name, out, c.says)
		}
	}
}

// TestAStartUpScriptOutlivesPip: it tries again, in the folder of the training, and starts that in any case.
func TestAStartUpScriptOutlivesPip(t *testing.T) {
	for name, c := range map[string]struct {
		fails, calls int
		warns        bool
	}{
		"pip works": {0, 1, false}, "it works at last": {2, 3, false}, "it never works": {99, 3, true},
	} {
		bin, cwd := t.TempDir(), t.TempDir()
		calls := filepath.Join(bin, "calls")
		for program, text := range map[string]string{
			"python3": fmt.Sprintf("#!/bin/sh\necho $PWD $* >> %s; [ $(wc -l < %[1]s) -gt %d ]\n", calls, c.fails), "sleep": "#!/bin/sh\n",
		} {
			must(t, os.WriteFile(filepath.Join(bin, program), []byte(text), 0o755)) //nolint:gosec // it is run
		}
		t.Setenv("PATH", bin+":/usr/bin:/bin")
		i := installation{user: true, pip: "-r requirements.txt", cwd: cwd}
		cmd := exec.CommandContext(t.Context(), "sh", "-c", "set -eu\n"+i.pipLines()+"echo started\n")
		cmd.Dir = "/"
		out, err := cmd.CombinedOutput()
		want := strings.Repeat(cwd+" -m pip install -r requirements.txt\n", c.calls)
		if got := read(t, calls); err != nil || !strings.HasSuffix(string(out), "started\n") || strings.Contains(string(out), "pip failed 3 times") != c.warns || got != want {
			t.Errorf("%s: %v\n%s\n%s", name, err, out, got)
		}
	}
}

func TestAMisspeltFolderIsNotMade(t *testing.T) {
	dir := t.TempDir()
	missing := filepath.Join(dir, "dsik", "run")
	code, out := pitcrew(t, nil, "run", "--metadata=none", "--state="+t.TempDir(), "--checkpoint-dir=file://"+missing, "--", "true")
	if code != 125 || strings.Count(out, "\n") != 1 || !strings.Contains(out, missing) {
		t.Errorf("run: %d\n%s", code, out)
	}
	for _, d := range []string{missing, filepath.Join(dir, "run")} {
		code, out = pitcrew(t, nil, "doctor", "--metadata=none", "--state="+t.TempDir(), "--checkpoint-dir=file://"+d, "--", "true")
		if code != 0 || !strings.Contains(out, d+" is not there yet") {
			t.Errorf("doctor: %d\n%s", code, out)
		}
	}
	if names, err := os.ReadDir(dir); err != nil || len(names) != 0 {
		t.Errorf("%v, %v", names, err)
	}
}

// TestInstallLeavesNothingWhereNoSystemdRuns, as in a container or on a laptop of another kind.
func TestInstallLeavesNothingWhereNoSystemdRuns(t *testing.T) {
	home, bin := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\necho System has not been booted with systemd.; exit 1\n"
	must(t, os.WriteFile(filepath.Join(bin, "systemctl"), []byte(script), 0o755)) //nolint:gosec // it is run
	code, out := pitcrew(t, []string{"HOME=" + home, "PATH=" + bin + ":" + os.Getenv("PATH")}, "install", "--user", "--", "true")
	left, err := os.ReadDir(home)
	if code != 125 || !strings.Contains(out, "nothing was installed: ") || strings.Count(out, "\n") != 1 || err != nil || len(left) != 0 {
		t.Errorf("%d, %q, %v, %v", code, out, left, err)
	}
}

// TestDoctorTriesTheCommand: it says what it saw of steps, checkpoints and a save, and leaves no process.
func TestDoctorTriesTheCommand(t *testing.T) {
	t.Parallel()
	for _, c := range some(2, []struct {
		name             string
		flags            []string
		trainer, command []string
		wrapper          []string
		says, not        []string
	}{
		{
			name: "all is well", flags: []string{"--step-pattern=maxtext", "--examples-per-step=64", "--try=20s"}, trainer: []string{"-print-steps", "-every=10", "-on-term=save-stop"},
			says: []string{
				`ok +signal +1 processes of the command handle SIGTERM`, `ok +steps +step \d+ was seen, and \d+ more in \S+, \S+ examples a second`,
				`warning +metadata server +there is none: no requests`, `ok +checkpoint +step \d+ came and is complete: file://`, `ok +save +SIGTERM: the training was saved within \S+; the command ended with exit code 0`,
			},
		},
		{
			name: "it saves and goes on", flags: []string{"--step-pattern=maxtext", "--try=20s"}, trainer: []string{"-print-steps", "-on-term=save"},
			says: []string{`ok +save +SIGTERM: the training was saved within \S+; the command went on`}, not: []string{"examples a second"},
		},
		{
			name: "it saves and goes on, as it also does without a signal", flags: []string{"--step-pattern=maxtext", "--try=20s"}, trainer: []string{"-print-steps", "-every=10", "-on-term=save"},
			says: []string{`warning +save +SIGTERM: a checkpoint came within \S+; whether by the signal is not known`}, not: []string{"was saved within"},
		},
		{
			name: "a wrapper around it would die of the signal, so it gets none", flags: []string{"--step-pattern=maxtext", "--try=20s"}, trainer: []string{"-print-steps", "-on-term=save-stop"},
			wrapper: []string{"sh", "-c", `"$@"; exit 7`, "sh"},
			says:    []string{`ok +save +SIGTERM: the training was saved within \S+; the command ended with exit code 7`},
		},
		{
			name: "it ends and saves nothing", flags: []string{"--step-pattern=maxtext", "--try=20s"}, trainer: []string{"-print-steps", "-on-term=stop"},
			says: []string{`warning +save +SIGTERM: the training was not saved within \S+; the command ended with exit code 0`, `warning +checkpoint +none came: `},
		},
		{
			name: "it would die of the signal, so it gets none", flags: []string{"--step-pattern=maxtext", "--try=2s"},
			command: []string{"sh", "-c", "i=0; while :; do i=$((i+1)); echo completed step: $i; sleep 0.05; done"},
			says:    []string{`warning +signal +no process of the command handles SIGTERM`, `ok +steps +step \d+ was seen`}, not: []string{" save "},
		},
		{
			name: "steps are looked for in the wrong place", flags: []string{"--step-pattern=levanter", "--try=1s"}, trainer: []string{"-print-steps", "-on-term=save-stop"},
			says: []string{`warning +steps +none was seen`}, not: []string{" save "},
		},
		{
			name: "nobody says where steps are", flags: []string{"--try=20s"}, trainer: []string{"-on-term=save-stop"},
			says: []string{`warning +steps +not looked for, and so no save was tried`}, not: []string{" save +SIGTERM"},
		},
		{
			name: "it ends at once", flags: []string{"--step-pattern=maxtext", "--try=20s"}, command: []string{"sh", "-c", "exit 3"},
			says: []string{`warning +signal +the command ended with exit code 3 before it handled SIGTERM`},
		},
	}) {
		dir := t.TempDir()
		args := append([]string{"doctor", "--metadata=none", "--state=" + t.TempDir(), "--checkpoint-dir=file://" + dir}, c.flags...)
		if c.command == nil {
			c.command = append(c.wrapper, train(t, append([]string{"-dir=" + dir}, c.trainer...)...)...)
		}
		code, out := pitcrew(t, nil, append(append(args, "--"), c.command...)...)
		if code != 0 {
			t.Errorf("%s: code %d", c.name, code)
		}
		for _, want := range c.says {
			if !regexp.MustCompile(`(?m)^` + want).MatchString(out) {
				t.Errorf("%s:\n%s\nlacks %s", c.name, out, want)
			}
		}
		for _, not := range c.not {
			if regexp.MustCompile(`(?m)^[^:]*` + not).MatchString(out) {
				t.Errorf("%s:\n%s\nhas %s", c.name, out, not)
			}
		}
		nobodyLeft(t, dir)
	}
}

// TestDoctorTriesWithTheNumbersOfRun: a training may read its batch, its checkpoint directory and where to meet from the environment.
func TestDoctorTriesWithTheNumbersOfRun(t *testing.T) {
	dir := t.TempDir()
	code, out := pitcrew(t, []string{"PITCREW_STEPS=9"}, "doctor", "--metadata=none", "--state="+t.TempDir(), "--checkpoint-dir=file://"+dir, "--try=20s",
		"--scale-from=v2-8", "--accelerator=v2-32", "--global-batch=1024", "--steps=1000", "--", "sh", "-c",
		`test "$PITCREW_GLOBAL_BATCH $PITCREW_STEPS ${PITCREW_SERVER_ADDR%:*} $PITCREW_CHECKPOINT_DIR $PITCREW_ATTEMPT $PITCREW_WORKERS" = "4096 250 127.0.0.1 file://`+
			dir+` 1 1" && trap : TERM; while :; do sleep 0.1; done`)
	if code != 0 || !strings.Contains(out, "processes of the command handle SIGTERM") {
		t.Errorf("%d\n%s", code, out)
	}
}

// TestDoctorClaimsNoSaveWhereItCouldNotLook: nor does it say that there was none.
func TestDoctorClaimsNoSaveWhereItCouldNotLook(t *testing.T) {
	var d doctor
	d.o.Directory = "gs://b/run"
	d.tried(crew.Seen{First: -1, Asked: true, Unread: errors.New("gs://b/run: 403"), Looked: errors.New("gs://b/run: 403")}, "SIGTERM")
	if got := d.found[len(d.found)-1]; got.what != "save" || got.grade != warning || got.text != "SIGTERM: whether the training was saved is not known; the command went on: gs://b/run: 403" {
		t.Errorf("%+v", got)
	}
}
