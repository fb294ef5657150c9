package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

func TestModuleRootIsFoundFromInside(t *testing.T) {
	want, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{".", "../..", "command"} {
		t.Run(dir, func(t *testing.T) {
			t.Chdir(dir)
			if got, err := moduleRoot(); err != nil || got != want {
				t.Errorf("moduleRoot() = %q, %v; want %q", got, err, want)
			}
		})
	}
}

func TestOutsideTheRepositoryItSaysWhereToCallIt(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module other.example\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	var errOut bytes.Buffer
	if code := run([]string{"replay"}, strings.NewReader(""), &bytes.Buffer{}, &errOut); code != exitUsage {
		t.Errorf("exit code %d, want %d", code, exitUsage)
	}
	if n := strings.Count(errOut.String(), "\n"); n != 1 || !strings.Contains(errOut.String(), "go run ./scripts/pitstop") {
		t.Errorf("stderr = %q, want one line that says where to call it", errOut.String())
	}
}

func TestTheExitCodeIsTheCommands(t *testing.T) {
	for script, want := range map[string]struct {
		code int
		says string
	}{
		"exit 0":        {0, ""},
		"exit 2":        {2, ""},
		"kill -PIPE $$": {0, ""}, // nobody reads on
		"kill -KILL $$": {1, "pitstop: signal: killed\n"},
	} {
		var errOut bytes.Buffer
		err := exec.CommandContext(t.Context(), "sh", "-c", script).Run() //nolint:gosec // the scripts above
		if code := ended(err, &errOut); code != want.code || errOut.String() != want.says {
			t.Errorf("%s: exit code %d, stderr %q; want %d, %q", script, code, errOut.String(), want.code, want.says)
		}
	}
}

// TestASignalReachesTheCommand: whoever ends this process ends the command, too.
func TestASignalReachesTheCommand(t *testing.T) {
	for _, want := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		ends := make(chan os.Signal, 1)
		ends <- want
		in, feed, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		c := exec.CommandContext(t.Context(), "cat") // until its input ends
		c.Stdin = in
		hangs := time.AfterFunc(30*time.Second, func() { _ = feed.Close() }) //nolint:errcheck // then it ends by itself
		var exit *exec.ExitError
		err = passOn(c, ends)
		if !errors.As(err, &exit) {
			t.Fatalf("%s: it ended with %v", want, err)
		}
		if status, ok := exit.Sys().(syscall.WaitStatus); !ok || status.Signal() != want {
			t.Errorf("%s: it ended with %v", want, err)
		}
		hangs.Stop()
		if err := errors.Join(in.Close(), feed.Close()); err != nil {
			t.Error(err)
		}
	}
}

// said is what a build printed, as it prints it.
type said struct {
	mu   sync.Mutex
	text strings.Builder
	news chan struct{}
}

func (s *said) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.text.Write(p)
	s.news <- struct{}{}
	return len(p), nil
}

// TestALongBuildReportsHowFarItIs: at every tick there is a line. Packages are counted, and what else the build prints passes.
func TestALongBuildReportsHowFarItIs(t *testing.T) {
	in, feed := io.Pipe()
	c := exec.CommandContext(t.Context(), "cat")
	c.Stdin = in
	out, ticks, ended := &said{news: make(chan struct{}, 100)}, make(chan time.Time), make(chan error, 1)
	began := time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC)
	go func() { ended <- reported(c, out, began, ticks) }()
	ticks <- began.Add(5 * time.Second)
	for range 2 {
		<-out.news
	}
	if _, err := io.WriteString(feed, "fmt\ngo: downloading example.com/a v1.0.0\nexample.com/a/b\n# example.com/c\n"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		<-out.news // the lines that pass
	}
	ticks <- began.Add(10 * time.Second)
	if err := feed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	want := "pitstop: building the functions and Google's client libraries; a first build takes one to three minutes\n" +
		"pitstop: 0 packages built in 5 s\ngo: downloading example.com/a v1.0.0\n# example.com/c\npitstop: 2 packages built in 10 s\n"
	if got := out.text.String(); got != want {
		t.Errorf("it said %q, want %q", got, want)
	}
}

func TestABuildThatFailsIsAnError(t *testing.T) {
	var errOut bytes.Buffer
	if err := reported(exec.CommandContext(t.Context(), "go", "no-such-command"), &errOut, time.Now(), nil); err == nil {
		t.Error("no error")
	}
	if !strings.Contains(errOut.String(), "no-such-command") {
		t.Errorf("stderr = %q, want what the build said", errOut.String())
	}
}

func TestExitCodesArePassedOn(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the command")
	}
	var out, errOut bytes.Buffer
	if code := run([]string{"no-such-command"}, strings.NewReader(""), &out, &errOut); code != 2 {
		t.Errorf("exit code %d, want 2; stderr %q", code, errOut.String())
	}
	if code := run([]string{"--help"}, strings.NewReader(""), &out, &errOut); code != 0 || !strings.Contains(out.String(), "replay") {
		t.Errorf("exit code %d, want 0 and a help text; stdout %q", code, out.String())
	}
}
