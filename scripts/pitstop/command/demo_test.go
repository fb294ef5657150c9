package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/scripts/pitstop/lab"
	"pitstop.internal/scripts/pitstop/show"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/scripts/sim/demo"
)

// ownHome gives the user of this test a home of its own, in which no demo is noted.
func ownHome(t *testing.T) (environment []string) {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("XDG_CACHE_HOME", home)
	return []string{"HOME=" + home, "XDG_CACHE_HOME=" + home}
}

// endsAtOnce has a process that looks for data races end as fast as one that does not.
const endsAtOnce = "GORACE=atexit_sleep_ms=0"

// process is a demo in a process of its own.
type process struct {
	*exec.Cmd
	t     *testing.T
	lines *bufio.Reader
	// said is what it has said so far.
	said strings.Builder
}

// demoProcess starts a demo and reads until it has said what gcloud needs.
func demoProcess(t *testing.T, environment []string, args ...string) *process {
	t.Helper()
	c := exec.CommandContext(t.Context(), os.Args[0], append([]string{"demo", "--listen", "127.0.0.1:0"}, args...)...) //nolint:gosec // this test
	c.Env = append([]string{isCommand + "=1", "COLUMNS=100", endsAtOnce}, environment...)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	p := &process{Cmd: c, t: t, lines: bufio.NewReader(out)}
	p.until("gcloud compute tpus tpu-vm list")
	return p
}

// until reads to a line that has a text, and returns it.
func (p *process) until(text string) string {
	p.t.Helper()
	for {
		line, err := p.lines.ReadString('\n')
		p.said.WriteString(line)
		if err != nil {
			p.t.Fatalf("it never said %q: %v\n%s", text, err, p.said.String())
		}
		if strings.Contains(line, text) {
			return line
		}
	}
}

// url is where its cloud is.
func (p *process) url() string {
	p.t.Helper()
	found := regexp.MustCompile(`CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU=(http://127\.0\.0\.1:\d+)/`).FindStringSubmatch(p.said.String())
	if found == nil {
		p.t.Fatalf("it does not say where its cloud is:\n%s", p.said.String())
	}
	return found[1]
}

// endsWithin bounds a demo that hangs.
const endsWithin = 30 * time.Second

// end interrupts it, and waits for its end.
func (p *process) end() {
	p.t.Helper()
	hangs := time.AfterFunc(endsWithin, func() { _ = p.Process.Kill() }) //nolint:errcheck // it may have ended
	defer hangs.Stop()
	if err := p.Process.Signal(os.Interrupt); err != nil {
		p.t.Fatal(err)
	}
	rest, err := io.ReadAll(p.lines)
	p.said.Write(rest)
	if err := errors.Join(err, p.Wait()); err != nil {
		p.t.Errorf("it ended badly: %v\n%s", err, p.said.String())
	}
}

// pageSends sends what a page of a browser can, and returns the code of the answer.
func pageSends(t *testing.T, url string) (code int) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "text/plain")
	r.Header.Set("Origin", "https://evil.example")
	res, err := http.DefaultClient.Do(r)
	if err != nil || res.Body.Close() != nil {
		t.Fatal(err)
	}
	return res.StatusCode
}

// TestTheDemoShowsAPreemptionAndEnds runs it in a process of its own, takes a slice from another process, looks, and interrupts it.
func TestTheDemoShowsAPreemptionAndEnds(t *testing.T) {
	environment := ownHome(t)
	p := demoProcess(t, environment, "--speed", "900")
	if a := ownProcess(t, environment, []string{"demo", "preempt", "llama-8b"}); a.code != cli.ExitDone || !strings.Contains(a.out, "preempt llama-8b: done") {
		t.Errorf("preempt: %+v", a)
	}
	p.until("workers 0, 1, 2, 3 were preempted")
	p.until("RESUMED    llama-8b: step ")
	p.until("its whole story: pitstop incident llama-8b-")
	for _, path := range []string{"/v2alpha1/projects/demo/locations/us-west4-a/nodes/llama-8b:stop", "/HandleLogEvent"} {
		if code := pageSends(t, p.url()+path); code != http.StatusForbidden {
			t.Errorf("a page of a browser is answered %d at %s", code, path)
		}
	}
	pushed, err := http.Post(p.url()+"/HandleLogEvent", "application/json", strings.NewReader(`{"message": {"messageId": "1", "data": "e30="}}`)) //nolint:noctx // the demo answers at once
	if err != nil || pushed.Body.Close() != nil || pushed.StatusCode != http.StatusOK {
		t.Errorf("a push by hand through the functions framework: %v, %v", pushed, err)
	}

	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"status", "llama-8b", "--demo"}, cli.ExitDone, "demo/llama-8b  policy night"},
		{[]string{"status", "llama-9b", "--demo"}, cli.ExitUsage, `pitstop: there is no workload "llama-9b"; the ledger has demo/`},
		{[]string{"status", "--demo", "--project", "mine"}, cli.ExitUsage, "--demo and --project contradict each other"},
		{[]string{"demo", "preempt", "llama-9b"}, cli.ExitUsage, `pitstop: the demo has no slice "llama-9b"; did you mean llama-8b`},
		{[]string{"demo", "preempt", "gemma-27b-0"}, cli.ExitUsage, "gemma-27b-0 is no Spot slice"},
		{[]string{"demo", "stockout", "moon-1-a"}, cli.ExitUsage, `the demo has no zone "moon-1-a"`},
		{[]string{"demo", "hold", "firestore"}, cli.ExitUsage, `the demo has no service to hold "firestore"; there is pubsub`},
		{[]string{"demo", "kill", "recrate"}, cli.ExitUsage, `the demo has no function "recrate"; did you mean recreate`},
		{[]string{"demo", "crash", "llama-8b", "--exit", "0"}, cli.ExitUsage, "--exit 0"},
		{[]string{"demo", "crash", "resnet"}, cli.ExitUsage, "resnet has no crew"},
		{[]string{"demo", "preempt"}, cli.ExitUsage, "demo preempt takes one slice; got 0"},
		{[]string{"demo", "hold", "pubsub", "--for", "-1m"}, cli.ExitUsage, "--for -1m0s: it cannot be negative"},
		{[]string{"demo"}, cli.ExitUsage, "a demo is running already, at " + p.url()},
	} {
		a := ownProcess(t, environment, c.args)
		if said := strings.ReplaceAll(a.out+a.err, "\n  ", " "); a.code != c.code || !strings.Contains(said, c.says) || c.code == cli.ExitUsage && strings.Count(said, "\n") != 1 {
			t.Errorf("%v ends with %d, want %d, and says\n%swant %q", c.args, a.code, c.code, said, c.says)
		}
	}

	address := strings.TrimPrefix(p.url(), "http://")
	p.end()
	l, err := net.Listen("tcp", address) //nolint:noctx // it does not wait
	if err != nil || l.Close() != nil {
		t.Errorf("its port is not free: %v", err)
	}
	if name, err := lab.DemoFile(); err != nil {
		t.Error(err)
	} else if _, err := os.Stat(name); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("it left %s: %v", name, err)
	}
	for _, args := range [][]string{{"status", "--demo"}, {"demo", "preempt", "llama-8b"}} {
		if a := ownProcess(t, environment, args); a.code != cli.ExitUsage || a.err != "pitstop: no demo is running; start one in another terminal: pitstop demo\n" {
			t.Errorf("%v, without a demo: %+v", args, a)
		}
	}
}

// TestADemoThatBeginsIsTheOnlyOne: a second one sees it before the first has noted where it runs, and may begin after its end.
func TestADemoThatBeginsIsTheOnlyOne(t *testing.T) {
	ownHome(t)
	first, err := lab.OnlyDemo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, errOut, code := call(t, "", "demo", "--listen", "127.0.0.1:0"); code != cli.ExitUsage || errOut != "pitstop: a demo is running already; Ctrl-C in its terminal ends it\n" {
		t.Errorf("a second demo: exit code %d, %q", code, errOut)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	next, err := lab.OnlyDemo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := next.Close(); err != nil {
		t.Error(err)
	}
}

// TestAKilledDemoIsNoDemo: what it leaves behind leads nobody astray, and the next one takes its place.
func TestAKilledDemoIsNoDemo(t *testing.T) {
	environment := ownHome(t)
	p := demoProcess(t, environment)
	if err := p.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = p.Wait() //nolint:errcheck // it was killed
	if a := ownProcess(t, environment, []string{"status", "--demo"}); a.code != cli.ExitUsage || !strings.HasPrefix(a.err, "pitstop: no demo is running; ") {
		t.Errorf("%+v", a)
	}
	next := demoProcess(t, environment, "--scenario", "hang-restarted")
	if !strings.Contains(next.said.String(), "The recorded incident hang-restarted begins in ten minutes of its time") {
		t.Errorf("it does not say what it plays:\n%s", next.said.String())
	}
	next.end()
}

// TestADemoThatCannotBegin says why in one line.
func TestADemoThatCannotBegin(t *testing.T) {
	ownHome(t)
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not wait
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // a test's
	kept := t.TempDir()
	if err := os.WriteFile(filepath.Join(kept, "fleet.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--listen", "127.0.0.1:0", "--dir", kept}, "fleet.json: unexpected end of JSON input"},
		{[]string{"--listen", "127.0.0.1:0", "--dir", filepath.Join(kept, "fleet.json")}, "fleet.json: not a directory"},
		{[]string{"--scenario", "preemption", "--dir", kept}, "--dir keeps the demo's own fleet; leave out --dir or --scenario"},
		{[]string{"--listen", l.Addr().String()}, "cannot listen on " + l.Addr().String() + ": bind: address already in use; choose another port, or 0 for a free one"},
		{[]string{"--listen", "8090"}, `"8090" is no address such as 127.0.0.1:8090`},
		{[]string{"--scenario", "preemptoin", "--listen", "127.0.0.1:0"}, `there is no recorded incident of that name; did you mean preemption`},
		{[]string{"--scenario", "flood", "--listen", "127.0.0.1:0"}, `there is no recorded incident of that name; pitstop replay --list names them`},
		{[]string{"--speed", "0"}, "--speed 0 is not between 0.01 and 3600"},
		{[]string{"premept"}, `pitstop demo has no command "premept"; did you mean preempt`},
	} {
		out, errOut, code := call(t, "", append([]string{"demo"}, c.args...)...)
		if code != cli.ExitUsage || out != "" || !strings.Contains(errOut, c.says) || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%v: exit code %d, %q%q", c.args, code, out, errOut)
		}
	}
}

// livingDemo is a demo in this process whose clock moves when a verb waits, with the command led to it. A verb that looks again and
// again waits until it is interrupted.
func livingDemo(t *testing.T, start time.Time) *lab.RunningDemo {
	t.Helper()
	ownHome(t)
	var d *lab.RunningDemo
	inner, err := demo.New(t.Context(), demo.Config{Start: start, Token: "secret", CalledAs: lab.CalledAs(), Sleep: func(ctx context.Context, long time.Duration) error {
		if long == show.WatchEvery || long == show.LookEvery {
			<-ctx.Done()
			return ctx.Err()
		}
		d.Forward(long)
		return ctx.Err()
	}})
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it does not wait
	if err != nil {
		t.Fatal(err)
	}
	d = &lab.RunningDemo{Demo: inner, URL: "http://" + l.Addr().String(), Token: "secret", Speed: 60, Grants: lab.GrantsFrom(deployment.ReadGrants()), Verbs: demoVerbs}
	s := &http.Server{Handler: d, ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(l) }()
	remove, err := lab.NoteDemo(lab.DemoPlace{URL: d.URL, Token: d.Token})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		err := errors.Join(s.Close(), remove(), d.Close())
		if served := <-ended; !errors.Is(served, http.ErrServerClosed) {
			err = errors.Join(err, served)
		}
		if err != nil {
			t.Error(err)
		}
	})
	return d
}

// seePreemption takes a slice from the demo and waits until its training is back.
func seePreemption(t *testing.T, d *lab.RunningDemo, slice string) {
	t.Helper()
	seeBack(t, d, slice, d.Preempt(t.Context(), slice))
}

// seeCrash ends the training of a slice and waits until its crew has brought it back.
func seeCrash(t *testing.T, d *lab.RunningDemo, slice string) {
	t.Helper()
	seeBack(t, d, slice, d.Crash(t.Context(), slice, 1, 1))
}

// seeBack waits until the training of a slice is back.
func seeBack(t *testing.T, d *lab.RunningDemo, slice string, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	d.Forward(time.Minute)
	for range 4 * 60 { // a pause may be over first
		w, _, err := d.Ledger.Workload(t.Context(), "demo/"+slice)
		if err != nil {
			t.Fatal(err)
		}
		if w.Incident == nil {
			return
		}
		d.Forward(time.Minute)
	}
	t.Fatalf("the training of %s has not come back", slice)
}

// TestTheHandbookWalksThroughTheDemo makes every call of the handbook that needs a deployment on the demo: word for word, page for
// page, in their order, but for --demo in the place of --project MINE.
func TestTheHandbookWalksThroughTheDemo(t *testing.T) {
	start := time.Date(2026, 11, 12, 9, 0, 0, 0, time.UTC) // the pages name incidents of that day
	for _, c := range []struct {
		page string
		// before is what has happened when the page is read.
		before func(t *testing.T, d *lab.RunningDemo)
		// prints are lines that its calls print, by the verb.
		prints map[string]string
	}{
		{"README.md", func(*testing.T, *lab.RunningDemo) {}, map[string]string{
			"report": "1 loss: 1 back", "goodput": "where the time went", "watch": "demo/llama-8b", "canary": "in total, from its timestamp to the ledger", "status": "demo/llama-8b   trains", "check": "its start-up script starts pitcrew",
		}},
		{"terraform/README.md", func(t *testing.T, d *lab.RunningDemo) {
			seeCrash(t, d, "llama-8b")
			seePreemption(t, d, "llama-8b")
		}, map[string]string{
			"canary": "in total", "status": "demo/gemma-27b", "incident": "RESUMED", "check": "recreate has all", "attach": "labelled pitstop-policy=spot", "drill": "PASSED",
		}},
		{"scripts/pitstop/README.md", func(t *testing.T, d *lab.RunningDemo) {
			seeCrash(t, d, "llama-8b")
			if err := d.Maintain(t.Context(), "llama-8b", 2*time.Hour); err != nil {
				t.Fatal(err)
			}
			d.Forward(30 * time.Minute)
		}, map[string]string{
			"status": "demo/llama-8b  ", "incident": "save", "incidents": "maintenance, open", "report": "no TPU was lost", "goodput": "where the time went", "pause": "demo/llama-8b: paused by", "approve": "approved by", "scale": "advice: ",
		}},
	} {
		t.Run(c.page, func(t *testing.T) {
			text := page(t, c.page)
			d := livingDemo(t, start)
			t.Chdir(t.TempDir())
			if err := os.WriteFile("prices.yaml", []byte("v5litepod: {spot: 0.48, other: 1.20}\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			c.before(t, d)
			called := map[string]bool{}
			for _, line := range callsOn(text) {
				args := words(line)
				if args[0] == "demo" && len(args) == 3 && args[1] == "preempt" {
					seePreemption(t, d, args[2])
					continue
				}
				if !slices.ContainsFunc(verbs(deployed), func(v *cobra.Command) bool { return v.Name() == args[0] }) {
					continue
				}
				if at := slices.Index(args, "--project"); at >= 0 {
					args = slices.Replace(args, at, at+2, "--demo")
				}
				out, errOut, code := callDemoVerb(t, args)
				if want := c.prints[args[0]]; code != cli.ExitDone || errOut != "" || want == "" || !strings.Contains(out, want) {
					t.Errorf("%v: exit code %d, want %q in\n%s%s", args, code, want, out, errOut)
				}
				called[args[0]] = true
			}
			for verb := range c.prints {
				if !called[verb] {
					t.Errorf("the page has no call of %s any more", verb)
				}
			}
		})
	}
}

// TestTheOtherVerbsWorkOnTheDemo makes a call of each verb that is not in the handbook, and has every one of them made somewhere.
func TestTheOtherVerbsWorkOnTheDemo(t *testing.T) {
	d := livingDemo(t, deploymenttest.Noon)
	made := map[string]bool{}
	for _, verb := range []string{"watch", "canary", "status", "check", "incident", "incidents", "report", "goodput", "attach", "drill", "pause", "approve", "scale"} {
		made[verb] = true // TestTheHandbookWalksThroughTheDemo makes it
	}
	want := func(code int, says string, args ...string) {
		t.Helper()
		made[args[0]] = true
		out, errOut, got := callDemoVerb(t, append(args, "--demo"))
		if got != code || !strings.Contains(out+errOut, says) {
			t.Errorf("%v: exit code %d, want %d, and %q in\n%s%s", args, got, code, says, out, errOut)
		}
	}
	opened := func() string {
		t.Helper()
		d.Forward(2 * time.Minute)
		w, _, err := d.Ledger.Workload(t.Context(), "demo/llama-8b")
		if err != nil || w.Incident == nil {
			t.Fatalf("llama-8b has no incident: %v", err)
		}
		return w.Incident.ID
	}
	want(cli.ExitDone, "demo/llama-8b: it was not paused", "resume", "llama-8b")
	want(cli.ExitUsage, "there is nothing to retry of demo/llama-8b", "retry", "llama-8b")
	want(cli.ExitDone, "0 published again", "redrive", "recreate-requests")

	// A request that no instance has answered for hours is a dead letter. By then patrol has sent another one.
	if err := errors.Join(d.Kill(t.Context(), "recreate", 12*time.Hour), d.Preempt(t.Context(), "llama-8b")); err != nil {
		t.Fatal(err)
	}
	id := opened()
	d.Forward(12 * time.Hour)
	if len(d.Broker.Dead()) == 0 {
		t.Fatal("no message is dead")
	}
	want(cli.ExitDone, ": dropped, refused: the incident "+id+" has ended: ", "redrive", "recreate-requests", "--why", "it is back")
	want(cli.ExitDone, "0 published again", "redrive", "recreate-requests")

	want(cli.ExitDone, "ESCALATED", "incident", id)

	if err := d.Kill(t.Context(), "recreate", 0); err != nil {
		t.Fatal(err)
	}
	want(cli.ExitDone, "demo/llama-8b: tried again", "retry", "llama-8b", "--why", "recreate is back")
	seeBack(t, d, "llama-8b", nil)

	if err := d.Maintain(t.Context(), "llama-8b", 4*time.Hour); err != nil {
		t.Fatal(err)
	}
	id = opened()
	want(cli.ExitDone, "demo/llama-8b: cancelled by ", "cancel", id, "--why", "I do it")
	want(cli.ExitDone, "llama-8b in us-west4-a: ", "detach", "llama-8b", "--why", "handed over")
	d.Forward(2 * time.Minute)
	want(cli.ExitDone, "demo/llama-8b  no label pitstop-policy: watched", "status", "llama-8b")

	want(cli.ExitDone, "open http://127.0.0.1:", "console")

	for _, c := range verbs(deployed) {
		if !made[c.Name()] {
			t.Errorf("nobody has tried %s on the demo", c.Name())
		}
	}
}

// callDemoVerb makes a call. One that looks until somebody interrupts it is interrupted at its first output.
func callDemoVerb(t *testing.T, args []string) (out, errOut string, code int) {
	t.Helper()
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var o, e bytes.Buffer
	var to io.Writer = &o
	if args[0] == "watch" || args[0] == "console" || slices.Contains(args, "--watch") {
		to = &interrupting{&o, interrupt}
	}
	code = run(ctx, args, strings.NewReader(""), to, &e)
	return o.String(), e.String(), code
}

// interrupting interrupts whoever writes.
type interrupting struct {
	to        io.Writer
	interrupt func()
}

func (i *interrupting) Write(p []byte) (int, error) {
	i.interrupt()
	return i.to.Write(p)
}

// TestGcloudSeesTheDemo follows the lines that the demo prints for gcloud, and deletes a slice there.
func TestGcloudSeesTheDemo(t *testing.T) {
	if _, err := exec.LookPath("gcloud"); err != nil || testing.Short() {
		t.Skip("gcloud is not asked")
	}
	environment := ownHome(t)
	p := demoProcess(t, environment, "--speed", "900")
	var lines []string
	for line := range strings.SplitSeq(p.said.String(), "\n") {
		if line = strings.TrimSpace(line); strings.HasPrefix(line, "export ") || strings.HasPrefix(line, "gcloud compute ") {
			lines = append(lines, line)
		}
	}
	lines = append(lines, "gcloud compute tpus tpu-vm delete llama-8b --zone=us-west4-a --quiet")
	shell := exec.CommandContext(t.Context(), "sh", "-ec", strings.Join(lines, "\n")) //nolint:gosec // what the demo prints
	shell.Env = append(append(os.Environ(), environment...), "CLOUDSDK_CONFIG="+t.TempDir())
	out, err := shell.CombinedOutput()
	if said := string(out); err != nil || !regexp.MustCompile(`(?m)^llama-8b +us-west4-a +v5litepod-16 .*READY`).MatchString(said) || !strings.Contains(said, "Deleted tpu [llama-8b].") {
		t.Errorf("%v\n%s\nsays\n%s", err, strings.Join(lines, "\n"), said)
	}
	p.until("DeleteNode of node llama-8b by owner@demo.example.com is done")
	p.end()
}

// TestAPushByHandOpensAnIncident runs what the page of the functions says, on the demo.
func TestAPushByHandOpensAnIncident(t *testing.T) {
	if _, err := exec.LookPath("curl"); err != nil {
		t.Skip("curl is not installed")
	}
	d := livingDemo(t, deploymenttest.Noon)
	_, section, _ := strings.Cut(page(t, "functions/README.md"), "\n### Call one yourself\n")
	_, section, _ = strings.Cut(section, "```sh\n")
	section, _, _ = strings.Cut(section, "\n```")
	push, look, ok := strings.Cut(section, "\ngo run ./scripts/pitstop ")
	if !ok || !strings.Contains(push, "http://127.0.0.1:8090/") {
		t.Fatalf("the page pushes nothing to the demo, or looks at nothing:\n%s", section)
	}
	pushed := func(want string) {
		t.Helper()
		shell := exec.CommandContext(t.Context(), "sh", "-ec", strings.Replace(push, "http://127.0.0.1:8090", d.URL, 1)) //nolint:gosec // what the page says
		shell.Dir = "../../.."
		if out, err := shell.Output(); err != nil || !strings.HasPrefix(string(out), "HTTP/1.1 "+want+"\r\n") {
			t.Fatalf("the push is answered with %q, want %s: %v", out, want, err)
		}
	}
	pushed("200 OK")
	if out, errOut, code := callDemoVerb(t, words(look)); code != cli.ExitDone || !strings.Contains(out, ": preemption, looking ") {
		t.Errorf("%s: exit code %d\n%s%s", look, code, out, errOut)
	}

	if err := d.Kill(t.Context(), "logevent", time.Hour); err != nil {
		t.Fatal(err)
	}
	pushed("503 Service Unavailable")
}

// TestTheGreetingBreaksNoCommand: people copy the commands, whatever the width of their terminal.
func TestTheGreetingBreaksNoCommand(t *testing.T) {
	d := livingDemo(t, deploymenttest.Noon)
	t.Setenv("PITSTOP_CALLED_AS", "go run ./scripts/pitstop")
	for _, columns := range []string{"40", "80", "150"} {
		t.Setenv("COLUMNS", columns)
		var shown bytes.Buffer
		lab.NewTeller(d, terminal.NewScreen(&shown)).Greet("")
		lines := strings.Split(shown.String(), "\n")
		for _, want := range []string{
			"go run ./scripts/pitstop demo preempt llama-8b", "go run ./scripts/pitstop check llama-8b --demo", "gcloud compute tpus tpu-vm list --zone=us-west4-a",
			"export CLOUDSDK_AUTH_DISABLE_CREDENTIALS=true CLOUDSDK_CORE_PROJECT=demo", "export CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU=" + d.URL + "/",
			d.URL + "/HandleLogEvent",
		} {
			if !slices.ContainsFunc(lines, func(l string) bool { return strings.HasPrefix(l+"  ", "  "+want+"  ") }) {
				t.Errorf("%s columns: no line begins with %q and is nothing else or a column:\n%s", columns, want, shown.String())
			}
		}
	}
}

// TestAdviceIsForTheDemo: what a verb and the functions advise can be called as it stands.
func TestAdviceIsForTheDemo(t *testing.T) {
	t.Setenv("PITSTOP_CALLED_AS", "go run ./scripts/pitstop")
	for _, c := range []struct{ text, want string }{
		{"raise it; then pitstop retry llama-8b", "raise it; then go run ./scripts/pitstop retry llama-8b --demo"},
		{"pitstop retry demo/llama-8b brings it back", "go run ./scripts/pitstop retry demo/llama-8b --demo brings it back"},
		{"(pitstop resume --all)", "(go run ./scripts/pitstop resume --all --demo)"},
		{"pitstop attach a --policy spot", "go run ./scripts/pitstop attach a --policy spot --demo"},
		{"x; pitstop status shows its state", "x; go run ./scripts/pitstop status --demo shows its state"},
		{"pitstop status x shows its state", "go run ./scripts/pitstop status --demo x shows its state"},
		{"go run ./scripts/pitstop approve a-1", "go run ./scripts/pitstop approve a-1"},
		{"call pitstop status a --demo", "call pitstop status a --demo"},
		{"the label pitstop-policy, and pitstop policy schema", "the label pitstop-policy, and pitstop policy schema"},
	} {
		if got := lab.ForDemo(c.text); got != c.want {
			t.Errorf("%q becomes %q, want %q", c.text, got, c.want)
		}
	}
	livingDemo(t, deploymenttest.Noon)
	if _, _, code := callDemoVerb(t, []string{"pause", "llama-8b", "--demo"}); code != cli.ExitDone {
		t.Fatalf("pause ends with %d", code)
	}
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"check", "llama-8b", "--demo"}, "go run ./scripts/pitstop resume llama-8b --demo"},
		{[]string{"incident", "llama-8b-20200101-1", "--demo"}, "go run ./scripts/pitstop incidents --demo lists those of the last days"},
		{[]string{"demo", "preempt", "gemma-27b-0"}, "go run ./scripts/pitstop demo host-error gemma-27b-0"},
	} {
		out, errOut, _ := callDemoVerb(t, c.args)
		if said := strings.Join(strings.Fields(out+errOut), " "); !strings.Contains(said, c.says) {
			t.Errorf("%v: want %q in\n%s%s", c.args, c.says, out, errOut)
		}
	}
}

// TestTheTerminalShowsWhatAPersonSays: one line has who, which word, and which incident.
func TestTheTerminalShowsWhatAPersonSays(t *testing.T) {
	t.Setenv("COLUMNS", "150")
	d := livingDemo(t, deploymenttest.Noon)
	if err := d.Maintain(t.Context(), "llama-8b", 2*time.Hour); err != nil {
		t.Fatal(err)
	}
	d.Forward(30 * time.Minute)
	w, _, err := d.Ledger.Workload(t.Context(), "demo/llama-8b")
	if err != nil || w.Incident == nil {
		t.Fatalf("llama-8b has no incident: %v", err)
	}
	id := w.Incident.ID
	var shown bytes.Buffer
	teller := lab.NewTeller(d, terminal.NewScreen(&shown))
	for _, args := range [][]string{{"pause", "mixtral"}, {"pause", "--all"}, {"resume", "--all"}, {"approve", id}, {"cancel", id}} {
		if out, errOut, code := callDemoVerb(t, append(args, "--why", "a test", "--demo")); code != cli.ExitDone {
			t.Errorf("%v: exit code %d, %s%s", args, code, out, errOut)
		}
	}
	d.Forward(time.Minute)
	teller.Further()
	for _, want := range []string{
		"said       mixtral: " + lab.Visitor() + ": pause", "said       " + lab.Visitor() + ": pause everything", "said       " + lab.Visitor() + ": resume everything",
		"said       " + lab.Visitor() + ": approve", "said       " + lab.Visitor() + ": cancel, in " + id,
	} {
		if strings.Count(shown.String(), want) != 1 {
			t.Errorf("want %q once in\n%s", want, shown.String())
		}
	}
}

// TestStepsSayWhatStandsStill names no training that hangs as one that goes on.
func TestStepsSayWhatStandsStill(t *testing.T) {
	t.Setenv("COLUMNS", "150")
	d := livingDemo(t, deploymenttest.Noon)
	if err := errors.Join(d.Hang(t.Context(), "llama-8b"), d.Preempt(t.Context(), "mixtral")); err != nil {
		t.Fatal(err)
	}
	var shown bytes.Buffer
	lab.NewTeller(d, terminal.NewScreen(&shown)).TellSteps(d.Now())
	for _, want := range []string{"llama-8b stands at ", "mixtral stands at ", "gemma-27b 120,"} {
		if !strings.Contains(shown.String(), want) {
			t.Errorf("want %q in %s", want, shown.String())
		}
	}
}
