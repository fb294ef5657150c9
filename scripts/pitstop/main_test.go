package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
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
