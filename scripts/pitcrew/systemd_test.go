//go:build linux

package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// underSystemd runs a systemd for one user in namespaces of its own, as if the machine had been started with one, installs a
// unit, kills pitcrew, and stops the unit. Each wait is bounded by the test.
const underSystemd = `
mount --make-rprivate / && mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/system /run/user || exit 77
mkdir -m 0700 "$XDG_RUNTIME_DIR" || exit 77
/lib/systemd/systemd --user >systemd.log 2>&1 &
for i in $(seq 50); do systemctl --user is-system-running >/dev/null 2>&1 && break; sleep 0.2; done
systemctl --user is-system-running >/dev/null 2>&1 || exit 77
wait_for() { until [ "$(grep -c "$1" log)" -ge "$2" ]; do sleep 0.05; done; }
show() { systemctl --user show pitcrew -p "$1" --value; }

"$PITCREW" install --user --env-file=env -- --metadata=none --state="$HOME/state" -- ./train.sh || exit 1
wait_for began 1
first=$(show MainPID)
kill -9 "$first"
until [ "$(show MainPID)" != 0 ] && [ "$(show MainPID)" != "$first" ] && [ "$(show ActiveState)" = active ]; do sleep 0.05; done
sleep 1 # a crew that did not adopt it would have started another by now
systemctl --user stop pitcrew
echo "restarts $(show NRestarts), status $(show ExecMainStatus)"
ps -C train.sh --no-headers | wc -l

# pitcrew and the parent of the training are killed, and no next pitcrew can adopt it.
systemctl --user start pitcrew
wait_for began 2
rm -r state && touch state
kill -9 "$(show MainPID)" "$(ps -o ppid= -C train.sh | tr -d ' ')"
until [ "$(show ActiveState)" = failed ]; do sleep 0.05; done
echo "then status $(show ExecMainStatus)"
for i in $(seq 100); do ps -C train.sh --no-headers >/dev/null || break; sleep 0.05; done
ps -C train.sh --no-headers | wc -l
`

func TestAUnitOfSystemd(t *testing.T) {
	for _, program := range []string{"/lib/systemd/systemd", "systemctl", "unshare"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s here to run a unit", program)
		}
	}
	home := t.TempDir()
	for name, text := range map[string]string{
		"train.sh": "#!/bin/sh\ntrap 'echo saved >>log; exit 0' TERM\necho began $PITCREW_ATTEMPT with $TOKEN >>log\nwhile :; do sleep 0.05; done\n",
		"env":      asPitcrew + "=1\nTOKEN=secret\n",
		"log":      "",
	} {
		must(t, os.WriteFile(filepath.Join(home, name), []byte(text), 0o755)) //nolint:gosec // one of them is run
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc", "sh", "-c", underSystemd)
	cmd.Dir = home
	cmd.Env = append(os.Environ(), asPitcrew+"=1", "HOME="+home, "XDG_RUNTIME_DIR=/run/user/0", "DBUS_SESSION_BUS_ADDRESS=", "PITCREW="+self(t))
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState != nil && (cmd.ProcessState.ExitCode() == 77 || strings.HasPrefix(string(out), "unshare:")) {
		t.Skipf("no systemd can be started here: %.200s", out)
	}
	if err != nil || !strings.HasSuffix(string(out), "restarts 1, status 143\n0\nthen status 125\n0\n") {
		t.Errorf("%v\n%s", err, out)
	}
	// The crew that was killed was followed by one that adopted the training, and the training saved itself at the end.
	if got := read(t, filepath.Join(home, "log")); got != "began 1 with secret\nsaved\nbegan 2 with secret\n" {
		t.Errorf("%q", got)
	}
}
