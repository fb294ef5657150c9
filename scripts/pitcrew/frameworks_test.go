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

// python is a stand-in for python3. It does on this machine what MaxText's launchers do on every worker: it runs their command in a copy of
// the folder. In the place of a training it keeps the call, and prints what the framework prints of a step.
const python = `#!/bin/sh
case "$1" in
multihost_*)
	printf '%s\n' "$@" >launched
	for option; do
		case "$option" in --COMMAND=*) exec sh -c "${option#--COMMAND=}" ;; esac
	done ;;
paxml/main.py) echo "$@" >called; echo "[PAX STATUS] step_i: 1, training loss: 5.3" ;;
*) echo "$@" >called; echo "completed step: 1, seconds: 0.1" ;;
esac
`

// TestTheFrameworksExamplesTrain runs the examples for MaxText and Pax with a stand-in for python3.
func TestTheFrameworksExamplesTrain(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ launched, called, said []string }{
		"maxtext.sh": {nil, []string{"-m maxtext.", "enable_autocheckpoint=true"}, []string{"completed step: 1"}},
		"maxtext-job.sh": {
			[]string{"multihost_job.py", "--ENABLE_AUTOCHECKPOINT=true", "--labels=pitstop-policy=night", "pitstop-checkpoint-dir="},
			[]string{"-m maxtext.", "enable_autocheckpoint=true"},
			[]string{"is set up", "completed step: 1"},
		},
		"maxtext-runner.sh": {
			[]string{"multihost_runner.py", "--TPU_PREFIX=llama-8b"}, []string{"-m maxtext.", "enable_autocheckpoint=true"}, []string{"is set up", "completed step: 1"},
		},
		"pax.sh":            {nil, []string{"--exit_after_ondemand_checkpoint=true"}, []string{"step_i: 1"}},
		"pax-multislice.sh": {nil, []string{"--num_hosts=1 --host_index=0 --server_addr=127.0.0.1:"}, []string{"step_i: 1"}},
	} {
		folder := t.TempDir()
		pitcrew := fmt.Sprintf("#!/bin/sh\nshift\nexec env %s=1 %s= %s run --metadata=none --state=%s/state %s \"$@\"\n",
			asPitcrew, metadata.HostVariable, self(t), folder, strings.Join(quick, " "))
		for file, content := range map[string]string{
			name: example(t, name, folder), "maxtext.sh": example(t, "maxtext.sh", folder), "setup.sh": "echo is set up\n",
			"maxtext/llama-8b/of-the-run": "", "pax/lm/of-the-run": "", "bin/pitcrew": pitcrew, "pitcrew": pitcrew, "bin/python3": python,
		} {
			must(t, os.MkdirAll(filepath.Dir(filepath.Join(folder, file)), 0o755))     //nolint:gosec // a test's
			must(t, os.WriteFile(filepath.Join(folder, file), []byte(content), 0o755)) //nolint:gosec // they are programs
		}
		shell := exec.CommandContext(t.Context(), "sh", name)
		shell.Dir, shell.Env = folder, append(os.Environ(), "PATH="+folder+"/bin:"+os.Getenv("PATH"))
		said, err := shell.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", name, err, said)
		}
		holds := func(what, text string, wants ...string) {
			for _, want := range wants {
				if !strings.Contains(text, want) {
					t.Errorf("%s %s without %q:\n%s", name, what, want, text)
				}
			}
		}
		holds("ends", string(said), append(c.said, "finished: attempt 1 ended with exit code 0")...)
		for file, wants := range map[string][]string{"launched": c.launched, "called": c.called} {
			if wants == nil {
				continue
			}
			kept, err := os.ReadFile(filepath.Join(folder, file))
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			holds("is "+file, string(kept), wants...)
		}
	}
}

// example is one of the examples, with a folder in the place of the bucket.
func example(t *testing.T, name, folder string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("examples", name))
	must(t, err)
	return strings.ReplaceAll(string(raw), "gs://BUCKET", "file://"+folder)
}
