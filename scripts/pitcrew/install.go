//go:build unix

package main

import (
	"context"
	"crypto/rand"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pitstop.internal/scripts/pitcrew/child"
	"pitstop.internal/scripts/pitcrew/crew"
	"pitstop.internal/scripts/pitcrew/peers"
)

//go:embed examples/pitcrew.service
var unitText string

// installation is what install puts where.
type installation struct {
	user, dryRun, start bool
	envFile, name, root string
	// from is where the next life of the TPU finds this program; without it there is no start-up script.
	from string
	// all installs on every worker of the TPU that node, zone and project name; replace has a start-up script of somebody
	// else's replaced.
	all, replace bool
	// peerKey is a file with the key of the workers. With all there is a new one where none is named, unless the flags
	// of run name one; key is its content.
	peerKey               string
	key                   peers.Key
	nodes                 []string
	queued, zone, project string
	// pip are packages for the training's Python.
	pip string
	// Flags are those of run, as given behind --run-flags; Command is the training's.
	runFlags []string
	args     []string
	// stop is how long pitcrew may take to end.
	stop time.Duration

	binary, unit, script string // paths on the machine
	cwd                  string // where the training runs
}

func installCommand() *cobra.Command {
	var i installation
	c := &cobra.Command{
		Use:   "install [flags] -- [RUN FLAGS... --] COMMAND [ARG...]",
		Short: "Let systemd run pitcrew with this training, now and at every start of the machine",
		Long: "Installs this program and a systemd unit on this worker, and starts the training under it. First end a training that " +
			"you started by SSH or tmux. The flags of pitcrew run stand between the first and the second --.\n\n" +
			"With --all-workers it does so on every worker of every slice, through gcloud, in the same folder and with the same PATH. " +
			"--from also gives the TPU a start-up script, so that the next machine of this TPU trains too. Without --all-workers " +
			"it changes this machine only and prints the commands for the others.\n\n" +
			"--pip first installs packages with python3 -m pip of that PATH, as the user of the training; the start-up script does so, too.",
		Example: "  sudo pitcrew install -- python3 train.py\n" +
			"  pitcrew install --user --dry-run -- \\\n    --checkpoint-dir gs://BUCKET/run -- python3 train.py\n" +
			"  pitcrew install --all-workers --from gs://BUCKET/pitcrew -- python3 train.py\n" +
			"  pitcrew install --all-workers --queued-resource llama --zone us-west4-a \\\n    --pip \"jax[tpu]\" -- python3 train.py",
		Args: cobra.ArbitraryArgs,
		RunE: func(c *cobra.Command, args []string) error {
			args, err := command(c, args)
			if err != nil {
				return err
			}
			return i.install(c.Context(), args, c.OutOrStdout())
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.BoolVar(&i.all, "all-workers", false, "install on every worker of every slice, through gcloud")
	f.StringVar(&i.from, "from", "", "pitcrew in a bucket, gs://BUCKET/OBJECT (`URI`): a start-up script fetches it on the next machine")
	f.BoolVar(&i.replace, "replace-startup-script", false, "with --all-workers and --from, replace a start-up script that somebody else wrote")
	f.StringSliceVar(&i.nodes, "node", nil, "with --all-workers, the `NAMES` of the TPUs, if it is not this machine's: one, or all slices of a Multislice")
	f.StringVar(&i.queued, "queued-resource", "", "with --all-workers, the `NAME` of the queued resource that orders the TPUs, instead of --node")
	f.StringVar(&i.zone, "zone", "", "with --all-workers, the `ZONE` of the TPU")
	f.StringVar(&i.project, "project", "", "with --all-workers, the `PROJECT` of the TPU")
	f.BoolVar(&i.user, "user", false, "install for this user alone (systemd --user), without root")
	f.StringVar(&i.name, "name", "pitcrew", "the `NAME` of the unit")
	f.StringVar(&i.envFile, "env-file", "", "a `FILE` of NAME=VALUE lines for the environment; put secrets there, not into the unit")
	f.StringVar(&i.peerKey, "peer-key", "", "a `FILE` with the key of the workers, copied to where run looks for it; --all-workers makes one")
	f.StringVar(&i.pip, "pip", "", "`PACKAGES` for the training's Python, as pip install takes them: \"paxml jax[tpu]\"")
	f.BoolVar(&i.dryRun, "dry-run", false, "print the files and write nothing")
	f.BoolVar(&i.start, "start", true, "start the unit now")
	f.StringVar(&i.root, "root", "", "write below this `DIR` and start nothing, for images")
	takesCommand(c)
	return c
}

var (
	unitName = regexp.MustCompile(`^[A-Za-z0-9_.@-]{1,64}$`)
	object   = regexp.MustCompile(`^gs://[a-z0-9._-]+/[^\s'"]+$`)
)

func (i *installation) install(ctx context.Context, args []string, out io.Writer) error {
	given := args
	i.args = args
	if n := slices.Index(args, "--"); n >= 0 {
		i.runFlags, i.args = args[:n], args[n+1:]
	}
	run, err := i.check()
	if err != nil {
		return err
	}
	i.stop = run.times.Stop + run.times.Dump + run.times.Leftovers
	if err := i.takeKey(run.peerKey != ""); err != nil {
		return err
	}
	if i.all {
		return i.everywhere(ctx, given, out)
	}
	if err := i.place(); err != nil {
		return err
	}
	unit, err := i.render()
	if err != nil {
		return err
	}
	files := []file{{i.unit, []byte(unit), 0o644}}
	if i.from != "" {
		files = append(files, file{i.script, []byte(i.startup(unit)), 0o755})
	}
	if i.dryRun {
		return i.preview(files, out)
	}
	starts := i.start && i.root == ""
	if starts { // a machine without systemd is left as it was
		if err := i.systemctl(ctx, "show", "--property=Version"); err != nil {
			return exit{crew.CodeFailed, fmt.Errorf("nothing was installed: %w; without systemd call pitcrew run, in a container as its entrypoint", err)}
		}
	}
	if err := i.packaged(ctx, out); err != nil {
		return exit{crew.CodeFailed, fmt.Errorf("nothing was installed: %w", err)}
	}
	if err := errors.Join(i.write(files, out), i.placeKey(out)); err != nil {
		return exit{crew.CodeFailed, err}
	}
	if starts {
		if err := i.begin(ctx, out); err != nil {
			return exit{crew.CodeFailed, err}
		}
	}
	return i.advise(unit, out)
}

// check refuses what cannot be installed. It returns the flags of run, which run would refuse at the next start of the machine.
func (i *installation) check() (run flags, err error) {
	if len(i.args) == 0 {
		return run, usage("there is no command behind the second --")
	}
	c := &cobra.Command{}
	run.define(c)
	if err := c.ParseFlags(i.runFlags); err != nil {
		return run, usage("the flags of run: %v", err)
	}
	if err := run.check(i.args); err != nil {
		return run, err
	}
	if i.root == "" && !i.all && i.pip == "" { // an image may get the command later, and so may a package bring it
		if _, err := child.Look(i.args); err != nil {
			return run, exit{crew.CodeUsage, err}
		}
	}
	if i.from != "" && i.user {
		return run, usage("--from with --user: a start-up script is run by root; install for the whole machine")
	}
	if i.from != "" && !object.MatchString(i.from) {
		return run, usage("--from %s: it is gs://BUCKET/OBJECT", i.from)
	}
	if !unitName.MatchString(i.name) {
		return run, usage("--name %s: letters, digits, and - _ . @", i.name)
	}
	if i.root != "" && i.pip != "" && !i.dryRun {
		return run, usage("--pip with --root: an image gets its packages when it is built")
	}
	return run, nil
}

// preview prints what would be written.
func (i *installation) preview(files []file, out io.Writer) error {
	if len(i.packages()) > 0 {
		files = append([]file{{path: "first, packages", content: []byte(quoted(i.pipCall()) + "\n")}}, files...)
	}
	for _, f := range files {
		if _, err := fmt.Fprintf(out, "# %s\n%s\n", f.path, f.content); err != nil {
			return err
		}
	}
	if i.key != nil {
		_, err := fmt.Fprintf(out, "# %s\nthe key in %s\n", i.keyPath(), i.peerKey)
		return err
	}
	return nil
}

// place decides where everything goes.
func (i *installation) place() error {
	i.binary, i.unit, i.script = "/usr/local/bin/pitcrew", "/etc/systemd/system/"+i.name+".service", "/usr/local/share/pitcrew/"+i.name+"-startup.sh"
	if i.user {
		dir, err := os.UserHomeDir()
		if err != nil {
			return usage("--user: %v", err)
		}
		i.binary, i.unit = filepath.Join(dir, ".local/bin/pitcrew"), filepath.Join(dir, ".config/systemd/user", i.name+".service")
	} else if os.Geteuid() != 0 && i.root == "" && !i.dryRun && !i.all {
		return usage("to install for the whole machine takes root: sudo pitcrew install ..., or --user")
	}
	if i.envFile != "" {
		path, err := filepath.Abs(i.envFile)
		if err != nil {
			return usage("--env-file: %v", err)
		}
		if _, err := os.Stat(path); err != nil && !i.all { // each worker looks for itself
			return usage("--env-file: %v", err)
		}
		i.envFile = path
	}
	return nil
}

// render writes the unit.
func (i *installation) render() (string, error) {
	var err error
	if i.cwd, err = os.Getwd(); err != nil {
		return "", err
	}
	words := slices.Concat([]string{i.binary, "run"}, i.runFlags, []string{"--"}, i.args)
	for n, w := range words {
		if strings.ContainsAny(w, "\n\r\x00") {
			return "", usage("argument %q holds a line break, which a unit cannot: put the command into a script", w)
		}
		words[n] = quote(w)
	}
	asRoot, ofUser, target, user, state, env := "+", "", "multi-user.target", "User="+i.runAs()+"\n", "StateDirectory=pitcrew\n", ""
	if i.user {
		asRoot, ofUser, target, user, state = "", "--user ", "default.target", "", ""
	}
	if i.envFile != "" {
		env = "EnvironmentFile=" + escape(i.envFile) + "\n"
	}
	// Package text/template would keep every method of every type in the program.
	return strings.NewReplacer(
		"@User@", user, "@Directory@", escape(i.cwd), "@Path@", strings.NewReplacer(`\`, `\\`, `"`, `\"`, "%", "%%").Replace(os.Getenv("PATH")),
		"@EnvFile@", env, "@Exec@", strings.Join(words, " "), "@AsRoot@", asRoot, "@OfUser@", ofUser,
		"@StopSeconds@", strconv.Itoa(int(math.Ceil(i.stop.Seconds()))+10), "@StateDirectory@", state, "@Target@", target,
	).Replace(unitText), nil
}

// escape keeps systemd from reading a specifier into a text.
func escape(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// quote writes an argument so that systemd passes on just that: no specifier, no variable, no escape.
// https://www.freedesktop.org/software/systemd/man/latest/systemd.service.html#Command%20lines
func quote(s string) string {
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `%`, `%%`, `$`, `$$`, "\t", `\t`).Replace(s)
	if s == "" || s == ";" || strings.ContainsAny(s, " '\"\\") {
		return `"` + s + `"`
	}
	return s
}

// startup is a start-up script, run by root, that does the same on the next machine, which has neither program nor unit nor
// the people who logged in on this one.
func (i *installation) startup(unit string) string {
	return fmt.Sprintf(`#!/bin/sh
set -eu
id '%[1]s' >/dev/null 2>&1 || useradd --create-home '%[1]s'
[ -d %[7]s ] || install -d -o '%[1]s' %[7]s
gcloud storage cp '%[2]s' %[3]s.new
chmod 0755 %[3]s.new
mv %[3]s.new %[3]s
cat > %[4]s <<'PITCREW_UNIT'
%[5]sPITCREW_UNIT
%[8]ssystemctl daemon-reload
systemctl enable --now %[6]s
`, i.runAs(), i.from, i.binary, i.unit, unit, i.name, shell(i.cwd), i.pipLines())
}

// packages are those that the training needs.
func (i *installation) packages() []string { return strings.Fields(i.pip) }

// pipCall installs the packages for the user of the training, with the Python that the unit finds. Root does so as that user.
func (i *installation) pipCall() []string {
	call := i.pipWords()
	if !i.user && i.runAs() != "root" {
		call = append([]string{"sudo", "-H", "-u", i.runAs()}, call...)
	}
	return call
}

// pipWords is the call itself, for whoever makes it.
func (i *installation) pipWords() []string {
	return append([]string{"env", "PATH=" + os.Getenv("PATH"), "python3", "-m", "pip", "install"}, i.packages()...)
}

// pipLines are the lines of the start-up script that install the packages; empty if there are none. They run in the folder of the
// training, where --pip may name files. The index of packages may fail for a while, and the image may hold the packages: the
// training starts in any case.
func (i *installation) pipLines() string {
	if len(i.packages()) == 0 {
		return ""
	}
	return fmt.Sprintf(`tries=0
until cd %s &&
	%s
do
	tries=$((tries+1))
	if [ $tries = 3 ]; then
		echo "pitcrew install: pip failed 3 times; the training starts without what it would have installed" >&2
		break
	fi
	sleep 10
done
`, shell(i.cwd), quoted(i.pipCall()))
}

// packaged installs the packages.
func (i *installation) packaged(ctx context.Context, out io.Writer) error {
	if len(i.packages()) == 0 {
		return nil
	}
	call := i.pipCall()
	cmd := exec.CommandContext(ctx, call[0], call[1:]...)
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w", quoted(call), err)
	}
	_, err := child.Look(i.args)
	return err
}

// runAs is the user of the training, where the unit is the machine's.
func (i *installation) runAs() string {
	if name := os.Getenv("SUDO_USER"); name != "" {
		return name
	}
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return "root"
}

// file is one file to write.
type file struct {
	path    string
	content []byte
	mode    os.FileMode
}

func (i *installation) write(files []file, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	for _, f := range append([]file{{i.binary, program, 0o755}}, files...) {
		path := filepath.Join(i.root, f.path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // a system's folder
			return err
		}
		// The program may be running, and then cannot be written to: it is replaced.
		temp := path + ".new"
		if err := os.WriteFile(temp, f.content, f.mode); err != nil {
			return err
		}
		if err := errors.Join(os.Chmod(temp, f.mode), os.Rename(temp, path)); err != nil {
			return err
		}
		if _, err := fmt.Fprintf(out, "wrote %s\n", path); err != nil {
			return err
		}
	}
	return nil
}

// takeKey reads the key that is to be placed, or makes it.
func (i *installation) takeKey(runHasOne bool) error {
	switch {
	case i.peerKey != "":
		owners := []int{os.Geteuid(), 0}
		if uid, err := strconv.Atoi(os.Getenv("SUDO_UID")); err == nil {
			owners = append(owners, uid) // the person's own
		}
		var err error
		if i.key, err = readKeyFile(i.peerKey, owners...); err != nil {
			return usage("--peer-key: %v", err)
		}
	case i.all && !runHasOne:
		i.key = []byte(rand.Text() + rand.Text())
	}
	return nil
}

// keyPath is where the unit's crew looks for the key: in the folder that systemd makes for it, or in its user's.
func (i *installation) keyPath() string {
	if i.user {
		return keyFile()
	}
	return "/var/lib/pitcrew/key"
}

// placeKey writes the key for the unit's user alone. The folder is that user's, who could put a link there: the file is
// new and belongs to the user before it has its name.
func (i *installation) placeKey(out io.Writer) error {
	if i.key == nil {
		return nil
	}
	path := filepath.Join(i.root, i.keyPath())
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as systemd makes it
		return err
	}
	temp := path + ".new"
	if err := os.Remove(temp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(slices.Clone(i.key), '\n'))
	if err == nil && !i.user {
		err = give(f, i.runAs())
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "wrote %s\n", path)
	return err
}

// give makes a file a user's.
func give(f *os.File, name string) error {
	u, err := user.Lookup(name)
	if err != nil {
		return err
	}
	uid, uerr := strconv.Atoi(u.Uid)
	gid, gerr := strconv.Atoi(u.Gid)
	if err := errors.Join(uerr, gerr); err != nil {
		return err
	}
	return f.Chown(uid, gid)
}

// begin has systemd start the unit; an older one that runs keeps its old text until it is restarted.
func (i *installation) begin(ctx context.Context, out io.Writer) error {
	for _, args := range [][]string{{"daemon-reload"}, {"enable", i.name}, {"restart", i.name}} {
		if err := i.systemctl(ctx, args...); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%s runs; see it with: journalctl %s\n", i.name, strings.Join(append(i.forUser(), "-f", "-u", i.name), " "))
	return err
}

func (i *installation) systemctl(ctx context.Context, args ...string) error {
	args = append(i.forUser(), args...)
	if text, err := exec.CommandContext(ctx, "systemctl", args...).CombinedOutput(); err != nil {
		return fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, strings.Join(strings.Fields(string(text)), " "))
	}
	return nil
}

// forUser is what systemd's own commands are given for one user's unit.
func (i *installation) forUser() []string {
	if i.user {
		return []string{"--user"}
	}
	return nil
}

// carried says what a start-up script counts on and does not bring: secrets, above all, do not belong into the metadata.
func (i *installation) carried() string {
	text := "The command and its files have to be there too"
	if i.envFile != "" {
		text += ", and so has " + i.envFile + ", without which systemd does not start it"
	}
	return text + `: in the image, or fetched by the same script before pitcrew is.
No key is in the script, because every user of a machine reads its metadata: the workers of the next life use the key
beside the checkpoints. Without a checkpoint directory fetch one, too.
`
}

// advise prints the commands for the other machines.
func (i *installation) advise(unit string, out io.Writer) error {
	command := "sudo ./pitcrew install ..."
	if i.user {
		command = "./pitcrew install --user ..."
	}
	text := fmt.Sprintf(`
On every other worker of the slice, the same command; or all at once with --all-workers:
  gcloud compute tpus tpu-vm scp pitcrew NODE: --zone=ZONE --worker=all
  gcloud compute tpus tpu-vm ssh NODE --zone=ZONE --worker=all --command='%s'
The workers speak to each other under the key beside the checkpoints. To give them one of their own, or where there is
no checkpoint directory, call it on each with --peer-key and the same file; --all-workers does so.
`, command)
	if i.from == "" {
		text += "The next life of the TPU has an empty disk: put pitcrew into a bucket and give --from gs://BUCKET/OBJECT for its start-up script.\n"
	} else {
		text += fmt.Sprintf(`For the next life of the TPU, which has an empty disk, make %s its start-up script:
  gcloud compute tpus tpu-vm update NODE --zone=ZONE --update-metadata="%[2]s"
%[3]s`, i.script, startupScript(i.startup(unit), "$(cat "+i.script+")"), i.carried())
	}
	if i.user {
		text += "So that it runs without anybody logged in: loginctl enable-linger\n"
	}
	_, err := io.WriteString(out, text)
	return err
}
