package main

import (
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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

// onWrite does something before the first write is taken.
type onWrite struct {
	bytes.Buffer
	first func()
}

func (w *onWrite) Write(p []byte) (int, error) {
	if w.first != nil {
		w.first()
		w.first = nil
	}
	return w.Buffer.Write(p)
}

// TestALongBuildIsExplained has a build speak at the moment at which it is explained: both write to standard error.
func TestALongBuildIsExplained(t *testing.T) {
	in, feed := io.Pipe()
	c := exec.CommandContext(t.Context(), "cat")
	c.Stdin = in
	errOut := &onWrite{first: func() {
		go func() {
			_, err := io.WriteString(feed, "# built\n")
			feed.CloseWithError(err)
		}()
	}}
	if err := explained(c, errOut, 0); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(errOut.String(), "\n")
	if len(lines) != 3 || !strings.HasPrefix(lines[0], "pitstop: building the functions and their libraries; after a change,") || lines[1] != "# built" {
		t.Errorf("stderr = %q, want the explanation, and what the build said", lines)
	}
}

func TestABuildThatFailsIsAnError(t *testing.T) {
	var errOut bytes.Buffer
	if err := explained(exec.CommandContext(t.Context(), "go", "no-such-command"), &errOut, time.Hour); err == nil {
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
