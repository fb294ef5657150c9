//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/logging/apiv2/loggingpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/child"
	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/trainer"
	"pitstop.internal/shared/breadth"
)

// asPitcrew makes the command of a test program.
const asPitcrew = "PITCREW_TEST"

func TestMain(m *testing.M) {
	switch {
	case len(os.Args) > 1 && os.Args[1] == child.ParentCommand:
		os.Exit(child.Parent(os.Args[2:]))
	case os.Getenv(trainer.Variable) != "":
		os.Exit(trainer.Main(os.Args[1:]))
	case os.Getenv(asPitcrew) != "":
		identityWait = 300 * time.Millisecond
		os.Exit(Main(context.Background(), os.Args[1:]))
	}
	// Most tests wait for processes and for the spans below, so more of them run at a time than there are processors.
	if err := flag.Set("test.parallel", strconv.Itoa(3*runtime.GOMAXPROCS(0))); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// some are all cases in full, and otherwise the first of every n: each starts several processes.
func some[T any](n int, all []T) (chosen []T) {
	for i, c := range all {
		if i%breadth.Every(n) == 0 {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// deadline bounds every wait; it is long because machines that test may be slow.
const deadline = 40 * time.Second

func self(t testing.TB) string {
	t.Helper()
	path, err := os.Executable()
	must(t, err)
	return path
}

// train is the command of a trainer.
func train(t testing.TB, args ...string) []string {
	t.Helper()
	return append([]string{"env", trainer.Variable + "=1", self(t)}, args...)
}

// quick are spans that let a test wait for what takes minutes.
var quick = []string{
	"--backoff=5ms", "--backoff-max=20ms", "--lease-every=50ms", "--lease-unread=2s", "--lease-take-over=6s", "--stop-grace=1s",
	"--dump-grace=200ms", "--leftovers-grace=1s", "--finish-grace=3s", "--worker-silence=5s", "--look-every=50ms",
	"--hurry-every=10ms", "--step-every=10ms", "--board-every=20ms", "--report-every=50ms",
}

// crewProcess is pitcrew, running.
type crewProcess struct {
	*exec.Cmd
	t    testing.TB
	done chan struct{}
}

// launch starts pitcrew run with the command; at the end of the test it kills everything that still runs.
func launch(t testing.TB, flags, command []string) *crewProcess {
	t.Helper()
	args := append(append(append([]string{"run", "--metadata=none", "-v"}, quick...), flags...), "--")
	c := &crewProcess{t: t, done: make(chan struct{})}
	// The test ends it in order: a context would kill it and leave the training behind.
	c.Cmd = exec.CommandContext(context.WithoutCancel(t.Context()), self(t), append(args, command...)...)
	c.Env = append(os.Environ(), asPitcrew+"=1", metadata.HostVariable+"=")
	if !slices.ContainsFunc(flags, func(f string) bool { return strings.HasPrefix(f, "--state") }) {
		c.Args = slices.Insert(c.Args, 2, "--state="+t.TempDir())
	}
	// A file, not a pipe: the training holds it, too, and outlives pitcrew.
	f, err := os.Create(filepath.Join(t.TempDir(), "output"))
	must(t, err)
	c.Stdout, c.Stderr = f, f
	must(t, c.Start())
	go func() {
		defer close(c.done)
		_ = c.Wait() //nolint:errcheck // the code is looked at
	}()
	t.Cleanup(func() {
		if c.running() {
			_ = c.Process.Signal(syscall.SIGTERM) //nolint:errcheck // it may just have ended
			select {
			case <-c.done:
			case <-time.After(10 * time.Second):
				_ = c.Process.Kill() //nolint:errcheck // likewise
				<-c.done
			}
		}
		c.sweep()
		if raw, err := os.ReadFile(f.Name()); err == nil && t.Failed() {
			t.Logf("%s:\n%s", strings.Join(c.Args[1:], " "), raw[max(0, len(raw)-8<<10):])
		}
		_ = f.Close() //nolint:errcheck // a test's
	})
	return c
}

// sweep kills the training of a pitcrew that was killed itself.
func (c *crewProcess) sweep() {
	for _, a := range c.Args {
		state, ok := strings.CutPrefix(a, "--state=")
		if !ok {
			continue
		}
		var r child.Record
		if raw, err := os.ReadFile(filepath.Join(state, "training.json")); err != nil || json.Unmarshal(raw, &r) != nil {
			continue
		}
		if raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", r.Training.PID)); err == nil && strings.Contains(string(raw), child.RunVariable+"="+r.Run) {
			_ = syscall.Kill(-r.Training.PID, syscall.SIGKILL) //nolint:errcheck // it may just have ended
		}
	}
}

func (c *crewProcess) running() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

func (c *crewProcess) output() string {
	f, ok := c.Stdout.(*os.File)
	if !ok {
		return ""
	}
	raw, err := os.ReadFile(f.Name())
	if err != nil {
		return ""
	}
	return string(raw)
}

// code waits for the end of pitcrew.
func (c *crewProcess) code() int {
	c.t.Helper()
	select {
	case <-c.done:
		return c.ProcessState.ExitCode()
	case <-time.After(deadline):
		c.t.Fatal("pitcrew has not ended")
		return -1
	}
}

func (c *crewProcess) signal(s syscall.Signal) {
	c.t.Helper()
	if err := c.Process.Signal(s); err != nil {
		c.t.Fatal(err)
	}
}

// says waits until a crew has printed something: the crew itself does not wait for that.
func (c *crewProcess) says(t testing.TB, text string) {
	t.Helper()
	until(t, "it says: "+text, func() bool { return strings.Contains(c.output(), text) })
}

func until(t testing.TB, what string, f func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		select {
		case <-ctx.Done():
			t.Fatalf("not within %v: %s", deadline, what)
		case <-tick.C:
		}
	}
}

// journal waits until the journal has n lines that say what.
func journal(t testing.TB, dir, what string, n int) {
	t.Helper()
	until(t, fmt.Sprintf("%d x %q in the journal", n, what), func() bool { return trainer.Count(dir, what) >= n })
}

func alive(pid int) bool {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(raw), ") Z ")
}

// nobodyLeft fails the test if a process of the journal still runs.
func nobodyLeft(t testing.TB, dir string) {
	t.Helper()
	for _, e := range trainer.Read(dir) {
		pid := e.PID
		if text, ok := strings.CutPrefix(e.What, "forked "); ok {
			pid, _ = strconv.Atoi(text) //nolint:errcheck // the trainer wrote a number
		}
		if alive(pid) {
			t.Errorf("process %d still runs (%+v)", pid, e)
		}
	}
}

// logs is a Cloud Logging that keeps its entries.
type logs struct {
	loggingpb.UnimplementedLoggingServiceV2Server
	address string

	mu      sync.Mutex
	entries []*loggingpb.LogEntry
	fails   codes.Code // OK: it does not
}

func newLogs(t testing.TB) *logs {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	s := grpc.NewServer()
	lg := &logs{address: l.Addr().String()}
	loggingpb.RegisterLoggingServiceV2Server(s, lg)
	go func() { _ = s.Serve(l) }() //nolint:errcheck // it ends with the test
	t.Cleanup(s.Stop)
	return lg
}

// WriteLogEntries implements the service.
func (l *logs) WriteLogEntries(_ context.Context, r *loggingpb.WriteLogEntriesRequest) (*loggingpb.WriteLogEntriesResponse, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fails != codes.OK {
		return nil, status.Error(l.fails, "injected")
	}
	if r.DryRun {
		return &loggingpb.WriteLogEntriesResponse{}, nil
	}
	for _, e := range r.Entries {
		if e.LogName == "" {
			e.LogName = r.LogName
		}
		if strings.HasSuffix(e.LogName, "/diagnostic-log") {
			continue // the client library speaks of itself
		}
		if e.Resource == nil {
			e.Resource = r.Resource
		}
		l.entries = append(l.entries, e)
	}
	return &loggingpb.WriteLogEntriesResponse{}, nil
}

func (l *logs) fail(with codes.Code) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fails = with
}

// reports are the crew lines as the pipeline reads them. An entry that it cannot read, or ignores, fails the test.
func (l *logs) reports(t testing.TB) (all []events.CrewReport) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, e := range l.entries {
		raw, err := protojson.Marshal(e)
		must(t, err)
		read, err := events.Read(raw)
		if err != nil || read.Kind != events.KindCrew || read.Crew == nil || read.Ignored != "" {
			t.Fatalf("the pipeline does not understand %s: %+v, %v", raw, read, err)
		}
		all = append(all, *read.Crew)
	}
	return all
}

// find waits for a report.
func (l *logs) find(t testing.TB, what string, is func(events.CrewReport) bool) (found events.CrewReport) {
	t.Helper()
	until(t, "the report "+what, func() bool {
		all := l.reports(t)
		i := slices.IndexFunc(all, is)
		if i >= 0 {
			found = all[i]
		}
		return i >= 0
	})
	return found
}

// TestTheTimingsHaveAPageOfTheirOwn, so that the page of run shows what each training needs, and what an exit code means.
func TestTheTimingsHaveAPageOfTheirOwn(t *testing.T) {
	code, first := pitcrew(t, nil, "help", "run")
	if code != 0 || !strings.Contains(first, "125") || !strings.Contains(first, "143") {
		t.Errorf("%d %s", code, first)
	}
	_, second := pitcrew(t, nil, "help", "timings")
	for _, s := range new(flags).spans() {
		if strings.Contains(first, "--"+s.name+" ") || !strings.Contains(second, "--"+s.name+" ") {
			t.Errorf("--%s is on the wrong page", s.name)
		}
	}
}

func TestRunIsItsCommand(t *testing.T) {
	for _, c := range []struct {
		command   []string
		code      int
		out, says string
	}{
		{command: []string{"true"}},
		{command: []string{"sh", "-c", "echo out; echo err >&2"}, out: "out\n", says: "err\n"},
		{command: []string{"no-such-command-here"}, code: 127, says: "pitcrew: no-such-command-here: there is no such command\n"},
		{command: []string{"/"}, code: 126, says: "pitcrew: /: it cannot be executed: is a directory\n"},
	} {
		cmd := exec.CommandContext(t.Context(), self(t), append([]string{"run", "--"}, c.command...)...)
		cmd.Env = append(os.Environ(), asPitcrew+"=1", "STATE_DIRECTORY="+t.TempDir(), metadata.HostVariable+"=")
		var faults strings.Builder
		cmd.Stderr = &faults
		out, err := cmd.Output()
		said := ownLine.ReplaceAllString(faults.String(), "")
		if code := cmd.ProcessState.ExitCode(); code != c.code || string(out) != c.out || said != c.says {
			t.Errorf("%q: code %d, %v, prints %q and %q; want %d, %q and %q", c.command, code, err, out, said, c.code, c.out, c.says)
		}
		if own := ownLine.FindAllString(faults.String(), -1); c.code == 0 && (len(own) != 3 || !strings.Contains(own[0], "started for local/") ||
			!strings.Contains(own[1], "attempt 1 began, process ") || !strings.Contains(own[2], "finished: attempt 1 ended with exit code 0")) {
			t.Errorf("%q: its own lines are %q", c.command, own)
		}
	}
}

// ownLine is a line of pitcrew's own.
var ownLine = regexp.MustCompile(`(?m)^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ pitcrew: .*\n`)

// TestWhatIsSaidIsOneLine: several troubles may come as one.
func TestWhatIsSaidIsOneLine(t *testing.T) {
	at := func() time.Time { return time.Date(2026, 7, 4, 9, 5, 1, 7, time.UTC) }
	for _, c := range []struct {
		width int
		want  string
	}{
		{0, "2026-07-04T09:05:01Z pitcrew: the other slices: one and a few words more; two\n"},
		{59, "2026-07-04T09:05:01Z pitcrew: the other slices: one and a few words more; two\n"},
		{60, "2026-07-04T09:05:01Z pitcrew: the other slices: one and a\n    few words more; two\n"},
		{76, "2026-07-04T09:05:01Z pitcrew: the other slices: one and a few words more;\n    two\n"},
		{80, "2026-07-04T09:05:01Z pitcrew: the other slices: one and a few words more; two\n"},
	} {
		var out bytes.Buffer
		say, said := speak(&out, at, func() int { return c.width })
		say("the other slices: %v", errors.Join(errors.New("one and a few words more"), errors.New("two")))
		said()
		if out.String() != c.want {
			t.Errorf("%d columns: %q, want %q", c.width, out.String(), c.want)
		}
	}
}

func TestVersionNamesTheCommitAndGo(t *testing.T) {
	code, out := pitcrew(t, nil, "--version")
	if code != 0 || !regexp.MustCompile(`^pitcrew version \S+, commit .+, `+regexp.QuoteMeta(runtime.Version())+`\n$`).MatchString(out) {
		t.Errorf("%d %q", code, out)
	}
}

func TestBadUsageIsOneLineAnd2(t *testing.T) {
	for _, c := range []struct {
		args []string
		want []string
	}{
		{args: []string{"run"}, want: []string{"the command is missing: pitcrew run -- COMMAND"}},
		{args: []string{"run", "true"}, want: []string{"put -- before the command: pitcrew run -- true"}},
		{args: []string{"run", "python3", "x.py", "--lr=3", "a b"}, want: []string{"pitcrew run -- python3 x.py --lr=3 'a b'"}},
		{args: []string{"run", "--worker=0", "python3", "x.py"}, want: []string{"pitcrew run [flags] -- python3 x.py"}},
		{args: []string{"doctor", "python3", "x.py"}, want: []string{"pitcrew doctor -- python3 x.py"}},
		{args: []string{"run", "--nonsense", "--", "true"}, want: []string{"--nonsense; see pitcrew help run"}},
		{args: []string{"run", "--checkpont-dir=x", "--", "true"}, want: []string{"did you mean --checkpoint-dir?"}},
		{args: []string{"instal"}, want: []string{"did you mean pitcrew install?"}},
		{args: []string{"sh", "train.sh"}, want: []string{"pitcrew run -- sh train.sh"}},
		{args: []string{"run", "--restarts=-1", "--save-signal=SIGKILL", "--checkpoint-dir=/tmp", "--step-pattern=(", "--", "true"}, want: []string{"restarts -1", "SIGKILL", "gs:// or file:///", "step pattern"}},
		{args: []string{"run", "--on-maintenance=x", "--after-save=x", "--give-up=x", "--report=x", "--workload=x", "--", "true"}, want: []string{"--on-maintenance", "--after-save", "--give-up", "--report", "--workload"}},
		{args: []string{"run", "--done-at=-1", "--", "true"}, want: []string{"--done-at", "0 or more"}},
		{args: []string{"run", "--done-at=1e3", "--", "true"}, want: []string{"--done-at", "the number of a step"}},
		{args: []string{"run", "--scale-from=v4-8", "--", "true"}, want: []string{"belong together"}},
		{args: []string{"run", "--examples-pattern=[0-9]+", "--", "true"}, want: []string{"examples pattern", "needs a group"}},
		{args: []string{"run", "--examples-pattern=(", "--", "true"}, want: []string{"examples pattern", "missing closing"}},
		{args: []string{"run", "--examples-per-step=-1", "--", "true"}, want: []string{"--examples-per-step -1"}},
		{
			args: []string{"run", "--examples-per-step=8", "--scale-from=v4-8", "--global-batch=8", "--steps=1", "--", "true"},
			want: []string{"--scale-from says it already"},
		},
		{args: []string{"run", "--service-rules", "--restarts=2", "--", "true"}, want: []string{"--service-rules has numbers of its own", "--restarts"}},
		{args: []string{"run", "--global-batch=8", "--", "true"}, want: []string{"belong together"}},
		{args: []string{"run", "--scale-from=v4-8", "--global-batch=-8", "--steps=1", "--", "true"}, want: []string{"--global-batch -8"}},
		{args: []string{"run", "--stop-grace=-1s", "--look-every=0", "--peer-port=0", "--worker=-2", "--", "true"}, want: []string{"--stop-grace -1s", "--look-every 0s", "--peer-port 0", "--worker -2"}},
		{args: []string{"run", "--lease-unread=1s", "--", "true"}, want: []string{"--lease-unread"}},
		{args: []string{"run", "--checkpoint-dir=gs://b/run", "--stop-grace=5m", "--", "true"}, want: []string{"--stop-grace 5m0s", "after 6m0s another training may write", "lower --lease-unread"}},
		{args: []string{"run", "--checkpoint-dir=gs://b/run", "--stop-grace=10m", "--lease-take-over=1h", "--", "true"}, want: []string{"after 6m0s another"}},
		{args: []string{"run", "--worker=3", "--metadata=none", "--", "true"}, want: []string{"worker 3 of 1"}},
		{args: []string{"run", "--peers=10.0.0.1,10.0.0.2", "--metadata=none", "--", "true"}, want: []string{"which of the 2 workers", "give --worker"}},
		{args: []string{"run", "--slices=2", "--metadata=none", "--", "true"}, want: []string{"which of the 2 slices", "--slice"}},
		{args: []string{"run", "--slices=2", "--slice=1", "--metadata=none", "--", "true"}, want: []string{"2 slices of a Multislice", "--checkpoint-dir"}},
		{args: []string{"run", "--after-save=wait", "--metadata=none", "--", "true"}, want: []string{"checkpoint directory"}},
		{args: []string{"run", "--", "docker", "run", "-d", "image", "train"}, want: []string{"exit 0 would read as a training that is finished"}},
		{args: []string{"run", "--", "sudo", "docker", "run", "--rm", "-v", "/a:/b", "-itd", "image"}, want: []string{"-itd"}},
		{args: []string{"run", "--", "podman", "--log-level", "debug", "run", "--net=host", "--detach", "image"}, want: []string{"--detach"}},
		{args: []string{"run", "--", "docker", "container", "run", "--detach=1", "image"}, want: []string{"--detach=1"}},
		{args: []string{"run", "--", "docker", "run", "--rm", "-d=true", "image"}, want: []string{"-d=true"}},
		{args: []string{"run", "--", "podman", "run", "--replace", "-d", "image"}, want: []string{"-d"}},
		{args: []string{"run", "--", "env", "A=B", "/usr/bin/docker", "exec", "-d", "name", "train"}, want: []string{"docker exec -d"}},
		{args: []string{"run", "--", "sudo", "-E", "docker", "compose", "-f", "a.yaml", "up", "train", "-d"}, want: []string{"docker up -d"}},
		{args: []string{"run", "--", "docker-compose", "up", "--detach"}, want: []string{"docker-compose up --detach"}},
		{args: []string{"run", "--", "docker", "start", "name"}, want: []string{"docker start"}},
		{args: []string{"run", "--", "docker", "create", "image"}, want: []string{"docker create"}},
		{args: []string{"scale", "--from=v2-8"}, want: []string{"--to"}},
		{args: []string{"scale", "--from=v2-8", "--to=v2-32", "--global-batch=8"}, want: []string{"either --steps or --epochs"}},
		{args: []string{"scale", "--from=v2-8", "--to=v2-32", "--global-batch=8", "--steps=1", "--epochs=1"}, want: []string{"either --steps or --epochs"}},
		{args: []string{"scale", "--from=v2-8", "--to=v2-32", "--global-batch=8", "--epochs=-1"}, want: []string{"--epochs -1"}},
		{args: []string{"scale", "--from=v2-8", "--to=v2-32", "--global-batch=8", "--steps=-1"}, want: []string{"-1 steps"}},
		{args: []string{"scale", "--from=v2-8", "--to=v9-8", "--global-batch=8", "--steps=1"}, want: []string{"v9-8"}},
		{args: []string{"nope"}, want: []string{"nope"}},
		{args: []string{"help", "nope"}, want: []string{`there is no command "nope"; see pitcrew --help`}},
		{args: []string{"help", "instal"}, want: []string{"did you mean pitcrew install?"}},
	} {
		cmd := exec.CommandContext(t.Context(), self(t), c.args...)
		cmd.Env = append(os.Environ(), asPitcrew+"=1", metadata.HostVariable+"=")
		out, err := cmd.CombinedOutput()
		var failed *exec.ExitError
		if !errors.As(err, &failed) || failed.ExitCode() != 2 || strings.Count(string(out), "\n") != 1 {
			t.Errorf("%q: %v, %q", c.args, err, out)
		}
		for _, w := range c.want {
			if !strings.Contains(string(out), w) {
				t.Errorf("%q: %q lacks %q", c.args, out, w)
			}
		}
	}
}

func TestWhatIsNoDetachedContainer(t *testing.T) {
	for _, command := range []string{
		"docker run --rm image train -d", "docker run -e A=B image -d", "docker ps -d", "docker run -v /d:/d image", "docker start -ai name",
		"docker run --detach=false image", "docker run -it=true image", "docker compose up --build", "docker start --attach name", "python3 docker run -d",
		"docker run --name -d image", "python3 -d", "docker run -p8080:80 image",
	} {
		if why := endsEarly(strings.Fields(command)); why != "" {
			t.Errorf("%s: %s", command, why)
		}
	}
}

func TestScale(t *testing.T) {
	for _, c := range []struct {
		args, want []string
	}{
		{args: []string{"--from=v2-8", "--to=v2-32", "--global-batch=1024", "--steps=100"}, want: []string{"global batch  4096\n", "steps         25\n", "a core on v2 and v3", "exactly as before"}},
		{args: []string{"--from=v3-8", "--to=v4-8", "--global-batch=1024", "--steps=100"}, want: []string{"global batch  512\n", "steps         200\n", "a core on v2 and v3", "a chip from v4 on"}},
		{args: []string{"--from=v4-8", "--to=2xv5litepod-16", "--global-batch=64", "--steps=101"}, want: []string{"global batch  512\n", "steps         13\n", "192 more"}},
		{
			args: []string{"--from=v2-8", "--to=v2-32", "--global-batch=1024", "--epochs=90", "--learning-rate=0.1"},
			want: []string{
				"global batch  4096\n", "epochs        90, as before: the framework computes the steps\n", "learning rate 0.4 by the linear rule, 0.2 by the square root\n",
				"each device would have 32. Steps then do not get 4 times as fast", "multiply it by 4 for SGD (linear rule), or by 2", "up to a batch of about 8,192",
			},
		},
		{args: []string{"--from=v2-8", "--to=v5litepod-8", "--global-batch=64", "--steps=10"}, want: []string{"The global batch is the same, so the learning rate is, too"}},
	} {
		cmd := exec.CommandContext(t.Context(), self(t), append([]string{"scale"}, c.args...)...)
		cmd.Env = append(os.Environ(), asPitcrew+"=1")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Errorf("%q: %v %s", c.args, err, out)
		}
		for _, w := range c.want {
			if !strings.Contains(string(out), w) {
				t.Errorf("%q: %q lacks %q", c.args, out, w)
			}
		}
	}
}

func freePort(t testing.TB) int {
	t.Helper()
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close() //nolint:errcheck // a test's
	a, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatal(l.Addr())
	}
	return a.Port
}

func TestAFolderThatIsTakenAwayIsLockedByOne(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	var holders, held atomic.Int32
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for held.Load() < 500 {
				unlock, err := lockFolder(dir)
				if errors.As(err, new(busyError)) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if holders.Add(1) != 1 {
					t.Error("two have it")
				}
				held.Add(1)
				holders.Add(-1)
				removeFolder(dir)
				unlock()
			}
		})
	}
	all.Wait()
}
