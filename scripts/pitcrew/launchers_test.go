//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pitstop.internal/scripts/pitcrew/metadata"
)

// TestMaxTextsLaunchersStartACrew runs the examples for both with a stand-in for python3. It does on this machine what each launcher does on
// every worker: it runs the command in a copy of the folder. It prints MaxText's lines in the place of MaxText.
func TestMaxTextsLaunchersStartACrew(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]string{
		"maxtext-job.sh":    {"multihost_job.py", "--ENABLE_AUTOCHECKPOINT=true", "--labels=pitstop-policy=night", "pitstop-checkpoint-dir="},
		"maxtext-runner.sh": {"multihost_runner.py", "--TPU_PREFIX=llama-8b"},
	} {
		folder := t.TempDir()
		python := "#!/bin/sh\n" + `
case "$1" in
-m) echo "completed step: 0, seconds: 0.1"; echo "completed step: 1, seconds: 0.1"; echo "$@" >trained ;;
*)
	printf '%s\n' "$@" >called
	for option; do
		case "$option" in --COMMAND=*) exec sh -c "${option#--COMMAND=}" ;; esac
	done ;;
esac
`
		pitcrew := fmt.Sprintf("#!/bin/sh\nshift\nexec env %s=1 %s= %s run --metadata=none --state=%s/state %s \"$@\"\n",
			asPitcrew, metadata.HostVariable, self(t), folder, strings.Join(quick, " "))
		for file, content := range map[string]string{
			name: example(t, name, folder), "maxtext.sh": example(t, "maxtext.sh", folder), "setup.sh": "echo is set up\n", "maxtext/llama-8b/of-the-run": "",
			"pitcrew": pitcrew, "bin/python3": python,
		} {
			if err := os.MkdirAll(filepath.Dir(filepath.Join(folder, file)), 0o755); err != nil { //nolint:gosec // a test's
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(folder, file), []byte(content), 0o755); err != nil { //nolint:gosec // they are programs
				t.Fatal(err)
			}
		}
		c := exec.CommandContext(t.Context(), "sh", name)
		c.Dir, c.Env = folder, append(os.Environ(), "PATH="+folder+"/bin:"+os.Getenv("PATH"))
		said, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, said)
		}
		for _, want := range []string{"is set up", "completed step: 1", "finished: attempt 1 ended with exit code 0"} {
			if !strings.Contains(string(said), want) {
				t.Errorf("%s does not print %q:\n%s", name, want, said)
			}
		}
		called, err := os.ReadFile(filepath.Join(folder, "called"))
		if err != nil {
			t.Fatal(err)
		}
		for _, want := range options {
			if !strings.Contains(string(called), want) {
				t.Errorf("%s calls the launcher without %s: %s", name, want, called)
			}
		}
		trained, err := os.ReadFile(filepath.Join(folder, "trained"))
		if err != nil || !strings.Contains(string(trained), "enable_autocheckpoint=true") {
			t.Errorf("%s starts MaxText by %q, %v", name, trained, err)
		}
	}
}

// example is one of the examples, with a folder in the place of the bucket.
func example(t *testing.T, name, folder string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("examples", name))
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(raw), "gs://BUCKET", "file://"+folder)
}
