//go:build linux

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/pitcrew/metadata/metadatatest"
)

// fakeGcloud is a gcloud for TPUs with four workers. Each worker is a folder. It lies below a folder with the TPU's name, if there
// is one. What is copied goes into each, and what is run runs in each. It keeps the TPU's metadata, a file for each key, and
// changes them as gcloud does: --metadata-from-file replaces them all, --update-metadata merges. It notes what it was called with.
const fakeGcloud = `#!/bin/sh
echo "$4 $*" | sed "s|/tmp/[^ ]*/||g" >> "$TPU/calls"
[ "$3" = tpu-vm ] || { cat "$TPU/$5.json"; exit; }
node=$5; [ "$4" = scp ] && node=${6%%:*}
[ "$node" = "$BROKEN" ] && [ "$4" = ssh ] && exit 3
[ -d "$TPU/$node" ] && TPU=$TPU/$node
case "$4" in
describe) cat "$TPU/metadata/startup-script" 2>/dev/null; exit 0 ;;
update)
	mkdir -p "$TPU/metadata"
	for a in "$@"; do case "$a" in
		--metadata-from-file=*) rm -f "$TPU"/metadata/*; a=${a#*=}; cp "${a#*=}" "$TPU/metadata/${a%%=*}" ;;
		--update-metadata=^*^*)
			a=${a#*=^}; delimiter=${a%%^*}; a=${a#*^}
			case "$a" in *"$delimiter"*) echo "bad syntax for dict arg" >&2; exit 2 ;; esac
			printf %s "${a#*=}" > "$TPU/metadata/${a%%=*}" ;;
		--update-metadata=*) echo "bad syntax for dict arg" >&2; exit 2 ;;
	esac; done ;;
scp) for w in 0 1 2 3; do mkdir -p "$TPU/$w"; cp "$5" "$TPU/$w/${6#*:}"; done ;;
ssh)
	for a in "$@"; do case "$a" in --command=*) command=${a#--command=} ;; esac; done
	for w in 0 1 2 3; do mkdir -p "$TPU/$w"; HOME=$TPU/$w STATE_DIRECTORY=$TPU/$w/state sh -c "$command" || exit $?; done ;;
esac
`

// aTPU is what fakeGcloud speaks of, and the environment to find it.
func aTPU(t *testing.T) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{
		"gcloud":    fakeGcloud,
		"python3":   "#!/bin/sh\necho \"$@\" | tee -a \"${0%/*}/events\" >> \"$HOME/python3\"\n[ \"$4\" != nonesuch ]\n",
		"systemctl": "#!/bin/sh\necho \"$@\" | tee -a \"${0%/*}/events\" >> \"$HOME/systemctl\"\n",
		"sudo":      "#!/bin/sh\necho sudo >> \"$HOME/systemctl\"; exec \"$@\"\n",
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o755)) //nolint:gosec // it is run
	}
	return dir, []string{"TPU=" + dir, "PATH=" + dir + ":" + os.Getenv("PATH"), asPitcrew + "=1"}
}

func read(t *testing.T, path string) string {
	t.Helper()
	raw, err := os.ReadFile(path)
	must(t, err)
	return string(raw)
}

func TestInstallOnAllWorkers(t *testing.T) {
	dir, env := aTPU(t)
	code, out := pitcrew(t, env, "install", "--all-workers", "--user", "--node=llama", "--zone=us-west4-a", "--name=llama", "--",
		"--stop-grace=1m", "--", "sh", "-c", "echo 'it is' $HOME; exit 0")
	if code != 0 || !strings.Contains(out, "Every worker of llama runs it") {
		t.Fatalf("%d\n%s", code, out)
	}
	cwd, err := os.Getwd()
	must(t, err)
	if !strings.Contains(out, "Its folder "+cwd+", its user ") {
		t.Errorf("%s\ndoes not say what is taken over from this machine", out)
	}
	for w := range 4 {
		home := filepath.Join(dir, fmt.Sprint(w))
		unit := read(t, filepath.Join(home, ".config/systemd/user/llama.service"))
		if want := `/.local/bin/pitcrew run --stop-grace=1m -- sh -c "echo 'it is' $$HOME; exit 0"` + "\n"; !strings.Contains(unit, "ExecStart="+home+want) {
			t.Errorf("worker %d: %s\nlacks %s", w, unit, want)
		}
		if !strings.Contains(unit, "WorkingDirectory="+cwd+"\n") || !strings.Contains(unit, `Environment="PATH=`+dir+":") {
			t.Errorf("worker %d: it runs elsewhere, or with another PATH: %s", w, unit)
		}
		if said := read(t, filepath.Join(home, "systemctl")); said != "--user show --property=Version\n--user daemon-reload\n--user enable llama\n--user restart llama\n" {
			t.Errorf("worker %d: %q", w, said)
		}
		if _, err := os.Stat(filepath.Join(home, copied)); err == nil {
			t.Errorf("worker %d: what was copied is left", w)
		}
	}
	if calls := read(t, filepath.Join(dir, "calls")); strings.Contains(calls, "update") || strings.Contains(calls, "--internal-ip") || strings.Count(calls, "--zone=us-west4-a") != 3 {
		t.Error(calls)
	}
}

func TestInstallOnAllWorkersAndForTheNextLife(t *testing.T) {
	dir, env := aTPU(t)
	root := t.TempDir()
	args := []string{"install", "--all-workers", "--node=llama", "--zone=us-west4-a", "--project=demo", "--root=" + root, "--from=gs://b/pitcrew-1", "--", "sh", "-c", "sh train.sh || echo a,b=c"}
	// What somebody else wrote stays, and then nothing is done at all.
	script := filepath.Join(dir, "metadata/startup-script")
	must(t, os.Mkdir(filepath.Dir(script), 0o750))
	others := map[string]string{"pitstop-checkpoint-dir": "gs://b/run", "ssh-keys": "ada:ssh-ed25519 AAAA ada", "enable-oslogin": "TRUE"}
	write := func(name, text string) {
		t.Helper()
		must(t, os.WriteFile(filepath.Join(dir, "metadata", name), []byte(text), 0o600))
	}
	for name, text := range others {
		write(name, text)
	}
	write("startup-script", "#!/bin/sh\nmount /data\n")
	code, out := pitcrew(t, env, args...)
	if code != 2 || !strings.Contains(out, "llama has a start-up script of its own") || strings.Contains(read(t, filepath.Join(dir, "calls")), "ssh ") {
		t.Fatalf("%d\n%s", code, out)
	}
	must(t, os.Remove(script))
	for range 2 { // its own is replaced
		if code, out := pitcrew(t, env, args...); code != 0 || !strings.Contains(out, "so will its next life") || strings.Contains(out, "without which systemd") {
			t.Fatalf("%d\n%s", code, out)
		}
	}
	for name, text := range others { // and all else stays
		if got := read(t, filepath.Join(dir, "metadata", name)); got != text {
			t.Errorf("%s of the TPU is now %q", name, got)
		}
	}
	text := read(t, script)
	for _, want := range []string{"gcloud storage cp 'gs://b/pitcrew-1'", read(t, filepath.Join(root, "etc/systemd/system/pitcrew.service")), "systemctl enable --now pitcrew"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\nlacks %s", text, want)
		}
	}
	if said := read(t, filepath.Join(dir, "3/systemctl")); said != "sudo\nsudo\n" {
		t.Errorf("%q: it is installed by root, and not started in an image", said)
	}
	// What the script does not bring is named.
	secrets := filepath.Join(t.TempDir(), "secrets.env")
	must(t, os.WriteFile(secrets, nil, 0o600))
	code, out = pitcrew(t, env, append([]string{"install", "--env-file=" + secrets}, args[1:]...)...)
	if code != 0 || !strings.Contains(out, "and so has "+secrets+", without which systemd does not start it") {
		t.Errorf("%d\n%s", code, out)
	}
}

func TestInstallOnAllWorkersTellsWhatFailed(t *testing.T) {
	dir, env := aTPU(t)
	for _, c := range []struct {
		name string
		env  []string
		args []string
		code int
		want string
	}{
		{"no TPU is named", env, nil, 2, "give --node and --zone"},
		{"there is no gcloud", []string{"PATH=" + t.TempDir(), asPitcrew + "=1"}, []string{"--node=n", "--zone=z"}, 125, "there is no gcloud"},
		{"a worker lacks the command", env, []string{"--node=n", "--zone=z", "--env-file=/does/not/exist"}, 125, "gcloud compute tpus tpu-vm ssh: exit status 2"},
	} {
		code, out := pitcrew(t, c.env, append(append([]string{"install", "--all-workers", "--user"}, c.args...), "--", "sh", "train.sh")...)
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s: %d %q", c.name, code, out)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "0/.config")); err == nil {
		t.Error("a worker that lacks something was changed")
	}
	code, out := pitcrew(t, env, "install", "--all-workers", "--user", "--dry-run", "--node=n", "--zone=z", "--", "sh", "train.sh")
	if code != 0 || !strings.Contains(out, `"$p" install --user`) {
		t.Errorf("%d %s", code, out)
	}
}

// someSlices has the TPUs of a Multislice, each with four workers.
func someSlices(t *testing.T, names ...string) (dir string, env []string) {
	t.Helper()
	dir, env = aTPU(t)
	for _, name := range names {
		must(t, os.Mkdir(filepath.Join(dir, name), 0o750))
	}
	return dir, env
}

// order counts the calls of pip before the first start of a unit, and those after it.
func order(events string) (before, after int) {
	first, rest, _ := strings.Cut(events, "restart pitcrew\n")
	return strings.Count(first, "pip install"), strings.Count(rest, "pip install")
}

// TestInstallOnAllSlices: every worker of every slice gets the program, the same key, the packages and the unit; and each TPU its
// start-up script.
func TestInstallOnAllSlices(t *testing.T) {
	for _, flags := range some(2, [][]string{
		{"--queued-resource=order"}, {"--node=llama-0,llama-1"}, {"--queued-resource=llama"}, {"--node=llama-0", "--node=llama-1"}, {"--queued-resource=alpha"},
	}) {
		name := strings.Join(flags, " ")
		dir, env := someSlices(t, "llama-0", "llama-1")
		for order, text := range map[string]string{
			"order": `{"tpu":{"nodeSpec":[{"multisliceParams":{"nodeCount":2,"nodeIdPrefix":"llama"}}]}}`, "llama": `{"tpu":{"nodeSpec":[{"multisliceParams":{"nodeCount":2}}]}}`,
			"alpha": `{"tpu":{"nodeSpec":[{"multiNodeParams":{"nodeCount":2,"nodeIdPrefix":"llama"}}]}}`,
		} {
			must(t, os.WriteFile(filepath.Join(dir, order+".json"), []byte(text), 0o600))
		}
		args := slices.Concat([]string{"install", "--all-workers", "--user", "--zone=us-west4-a", "--pip=paxml jax[tpu]"}, flags, []string{"--", "--checkpoint-dir=gs://b/run", "--", "sh", "train.sh"})
		if code, out := pitcrew(t, env, args...); code != 0 || !strings.Contains(out, "Every worker of llama-0 and llama-1 runs it") {
			t.Fatalf("%s: %d\n%s", name, code, out)
		}
		if first, others := order(read(t, filepath.Join(dir, "events"))); first != 8 || others != 0 {
			t.Errorf("%s: %d packages were installed before the first unit started, %d after it", name, first, others)
		}
		keys := map[string]bool{}
		for _, node := range []string{"llama-0", "llama-1"} {
			for w := range 4 {
				home := filepath.Join(dir, node, fmt.Sprint(w))
				if unit := read(t, filepath.Join(home, ".config/systemd/user/pitcrew.service")); !strings.Contains(unit, "pitcrew run --checkpoint-dir=gs://b/run -- sh train.sh\n") {
					t.Errorf("%s: worker %d of %s: %s", name, w, node, unit)
				}
				if got := read(t, filepath.Join(home, "python3")); got != "-m pip install paxml jax[tpu]\n" {
					t.Errorf("%s: worker %d of %s: python3 was called with %q", name, w, node, got)
				}
				keys[read(t, filepath.Join(home, "state/key"))] = true
			}
		}
		if len(keys) != 1 {
			t.Errorf("%s: %d keys", name, len(keys))
		}
	}
}

func TestInstallOnAllSlicesForTheNextLife(t *testing.T) {
	dir, env := someSlices(t, "llama-0", "llama-1")
	args := []string{"install", "--all-workers", "--zone=us-west4-a", "--node=llama-0,llama-1", "--root=" + t.TempDir(), "--from=gs://b/pitcrew-1", "--", "sh", "train.sh"}
	foreign := filepath.Join(dir, "llama-1/metadata/startup-script")
	must(t, os.Mkdir(filepath.Dir(foreign), 0o750))
	must(t, os.WriteFile(foreign, []byte("#!/bin/sh\nmount /data\n"), 0o600))
	code, out := pitcrew(t, env, args...)
	if code != 2 || !strings.Contains(out, "llama-1 has a start-up script of its own") || strings.Contains(read(t, filepath.Join(dir, "calls")), "scp ") {
		t.Fatalf("%d\n%s", code, out)
	}
	must(t, os.Remove(foreign))
	if code, out := pitcrew(t, env, args...); code != 0 || !strings.Contains(out, "Every worker of llama-0 and llama-1 runs it, and so will its next life") {
		t.Fatalf("%d\n%s", code, out)
	}
	first, second := read(t, filepath.Join(dir, "llama-0/metadata/startup-script")), read(t, foreign)
	if first != second || !strings.Contains(first, "systemctl enable --now pitcrew") {
		t.Errorf("%s\n%s", first, second)
	}
}

func TestInstallOnAllSlicesTellsWhatFailed(t *testing.T) {
	_, env := someSlices(t, "llama-0", "llama-1")
	for _, c := range []struct {
		name string
		env  []string
		args []string
		code int
		want string
	}{
		{"both ways to name them", nil, []string{"--node=a", "--queued-resource=b"}, 2, "either --node or --queued-resource"},
		{"no such queued resource", nil, []string{"--queued-resource=none"}, 125, "gcloud compute tpus queued-resources describe: exit status 1"},
		{"one slice refuses", []string{"BROKEN=llama-1"}, []string{"--node=llama-0,llama-1"}, 125, "gcloud compute tpus tpu-vm ssh: exit status 3"},
		{"a package that there is not", nil, []string{"--node=llama-0", "--pip=nonesuch"}, 125, "python3 -m pip install nonesuch: exit status 1"},
	} {
		code, out := pitcrew(t, append(c.env, env...), slices.Concat([]string{"install", "--all-workers", "--user", "--zone=z"}, c.args, []string{"--", "sh", "train.sh"})...)
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s: %d %q", c.name, code, out)
		}
	}
	if code, out := pitcrew(t, nil, "install", "--root="+t.TempDir(), "--pip=jax", "--", "sh", "train.sh"); code != 2 || !strings.Contains(out, "--pip with --root") {
		t.Errorf("%d %q", code, out)
	}
}

// TestInstallShowsItsPackages: alone, on all workers, and in the start-up script.
func TestInstallShowsItsPackages(t *testing.T) {
	for _, args := range [][]string{{"--user"}, {"--from=gs://b/pitcrew"}, {"--all-workers", "--node=n", "--zone=z", "--user"}, {"--all-workers", "--node=n", "--zone=z", "--from=gs://b/pitcrew"}} {
		code, out := pitcrew(t, []string{"PATH=/opt/venv/bin:/bin"}, slices.Concat([]string{"install", "--dry-run", "--pip=paxml jax[tpu]"}, args, []string{"--", "sh", "train.sh"})...)
		want := 1
		if strings.HasPrefix(args[len(args)-1], "--from") {
			want = 2
		}
		if got := strings.Count(out, "env PATH=/opt/venv/bin:/bin python3 -m pip install paxml 'jax[tpu]'\n"); code != 0 || got != want {
			t.Errorf("%q: %d, %d times, want %d:\n%s", args, code, got, want, out)
		}
	}
}

// TestInstallOnAllSlicesFromOne: what is right on one worker is right on all, and Google's names of the slices tell what the others are
// called.
func TestInstallOnAllSlicesFromOne(t *testing.T) {
	for node, c := range map[string]struct {
		slices, code int
		want         string
	}{
		"one":     {1, 0, "# on every worker of one in us-west4-a\n"},
		"llama-1": {3, 0, "# on every worker of llama-0, llama-1 and llama-2 in us-west4-a\n"},
		"llama":   {3, 2, "its name does not end with -1, so the names of the others are not known"},
	} {
		s := metadatatest.New("demo", "us-west4-a", "t1v-n-0123abcd-w-0", time.Now)
		s.TPU(node, "v5litepod-8", 0, "127.0.0.1")
		host, stop := s.Start()
		env := []string{metadata.HostVariable + "=" + host}
		if c.slices > 1 {
			env = append(env, fmt.Sprintf("MEGASCALE_NUM_SLICES=%d", c.slices), "MEGASCALE_SLICE_ID=1")
		}
		code, out := pitcrew(t, env, "install", "--all-workers", "--user", "--dry-run", "--", "sh", "train.sh")
		if code != c.code || !strings.Contains(out, c.want) {
			t.Errorf("%s: %d %s", node, code, out)
		}
		stop()
	}
}
