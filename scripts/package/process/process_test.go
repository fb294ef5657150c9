package process_test

import (
	"go/format"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/scripts/package/process"
)

func TestFunctionsAreFoundWithTheirEntryPoints(t *testing.T) {
	got, err := process.Functions("../../..")
	if err != nil {
		t.Fatal(err)
	}
	targets := map[string]string{}
	for _, f := range got {
		targets[f.Name] = f.Target
	}
	for name, want := range map[string]string{"logevent": "HandleLogEvent", "maintenance": "HandleMaintenance"} {
		if targets[name] != want {
			t.Errorf("%s has the entry point %q, want %q", name, targets[name], want)
		}
	}
}

func TestAFunctionRegisters(t *testing.T) {
	root := t.TempDir()
	write := func(name, source string) {
		t.Helper()
		name = filepath.Join(root, "functions", name)
		if err := os.MkdirAll(filepath.Dir(name), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(source), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("a/function.go", "package a\n\nfunc init() { trigger.Register(\"HandleA\", trigger.Function[config, event]{Decode: decode}) }\n")
	write("notes/README.md", "no function")
	got, err := process.Functions(root)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]process.Function{{Name: "a", Target: "HandleA"}}, got); d != "" {
		t.Errorf("functions (-want +got):\n%s", d)
	}
	write("b/function.go", "package b\n")
	if _, err := process.Functions(root); err == nil {
		t.Error("a function that registers nothing was found without an error")
	}
}

func TestMainIsFormatted(t *testing.T) {
	source := process.Main("example.test/functions/a")
	want, err := format.Source(source)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(source)); d != "" {
		t.Errorf("main (-formatted +generated):\n%s", d)
	}
}
