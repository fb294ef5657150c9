//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pitstop.internal/scripts/pitcrew/crew"
	"pitstop.internal/scripts/pitcrew/metadata"
)

// target is the TPU that is installed on as a whole.
type target struct {
	node, zone, project string
	// inside says that this machine is known to belong to it.
	inside bool
}

// locate finds out which TPU it is: the one of the flags, else this machine's own.
func (i *installation) locate(ctx context.Context) (target, error) {
	s := target{node: i.node, zone: i.zone, project: i.project}
	if host := metadata.Host(); host != "" && s.node == "" {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		m, err := metadata.New(host).Machine(ctx)
		if err != nil {
			return s, exit{crew.CodeFailed, err}
		}
		s.node, s.zone, s.project, s.inside = m.Node, firstOf(s.zone, m.Zone), firstOf(s.project, m.Project), true
	}
	if s.node == "" || s.zone == "" {
		return s, usage("--all-workers: which TPU? give --node and --zone")
	}
	return s, nil
}

// gcloud is a call for this TPU.
func (s target) gcloud(ctx context.Context, verb string, args ...string) *exec.Cmd {
	args = append([]string{"compute", "tpus", "tpu-vm", verb}, args...)
	args = append(args, "--zone="+s.zone, "--quiet")
	if s.project != "" {
		args = append(args, "--project="+s.project)
	}
	if s.inside && (verb == "ssh" || verb == "scp") {
		args = append(args, "--internal-ip")
	}
	return exec.CommandContext(ctx, "gcloud", args...)
}

// everywhere installs on every worker of the slice, this one too, as a person would who logs in on each. With a program in a
// bucket it also gives the TPU its start-up script, so that the next life trains without anybody.
func (i *installation) everywhere(ctx context.Context, given []string, out io.Writer) error {
	s, err := i.locate(ctx)
	if err != nil {
		return err
	}
	if err := i.place(); err != nil {
		return err
	}
	command, err := i.remote(given)
	if err != nil {
		return err
	}
	unit, err := i.render()
	if err != nil {
		return err
	}
	if !s.inside { // what is right here may be wrong there
		if _, err := fmt.Fprintf(out, "# This is not known to be a worker of %s. Its folder %s, its user %s and its PATH are taken over as they are.\n", s.node, i.cwd, i.runAs()); err != nil {
			return err
		}
	}
	if i.dryRun {
		_, err := fmt.Fprintf(out, "# on every worker of %s in %s\n%s\n", s.node, s.zone, command)
		if err == nil && i.from != "" {
			_, err = fmt.Fprintf(out, "# the start-up script of %s\n%s", s.node, i.startup(unit))
		}
		return err
	}
	if err := i.replaceable(ctx, s); err != nil { // before anything is changed
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return exit{crew.CodeFailed, err}
	}
	if err := follow(s.gcloud(ctx, "scp", self, s.node+":"+copied, "--worker=all"), out); err != nil {
		return err
	}
	if err := i.sendKey(ctx, s, out); err != nil {
		return err
	}
	if err := follow(s.gcloud(ctx, "ssh", s.node, "--worker=all", "--command="+command), out); err != nil {
		return err
	}
	if i.from == "" {
		_, err := fmt.Fprintf(out, "\nEvery worker of %s runs it. The next life of the TPU has an empty disk: put pitcrew into a bucket and give --from gs://BUCKET/OBJECT.\n", s.node)
		return err
	}
	return i.nextLife(ctx, s, unit, out)
}

// copied is what this program is called in the home directory of each worker for as long as it installs, copiedKey the
// key.
const (
	copied    = "pitcrew.install"
	copiedKey = copied + ".key"
)

// sendKey copies the key to every worker: a file, because every user of a machine sees the words of a command.
func (i *installation) sendKey(ctx context.Context, s target, out io.Writer) error {
	if i.key == nil {
		return nil
	}
	dir, err := os.MkdirTemp("", "pitcrew-install-")
	if err != nil {
		return exit{crew.CodeFailed, err}
	}
	defer os.RemoveAll(dir) //nolint:errcheck // a folder in the temporary one
	path := filepath.Join(dir, copiedKey)
	if err := os.WriteFile(path, append(slices.Clone(i.key), '\n'), 0o600); err != nil {
		return exit{crew.CodeFailed, err}
	}
	return follow(s.gcloud(ctx, "scp", path, s.node+":"+copiedKey, "--worker=all"), out)
}

// remote is what each worker runs: this very command without --all-workers, where the command stands here and with the same PATH.
func (i *installation) remote(given []string) (string, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return "", exit{crew.CodeFailed, err}
	}
	words := []string{"env", "PATH=" + os.Getenv("PATH")}
	if !i.user {
		words = slices.Concat([]string{"sudo"}, words)
	}
	for n, w := range words {
		words[n] = shell(w)
	}
	words = append(words, `"$p"`, "install")
	if i.user {
		words = append(words, "--user")
	}
	add := func(name, value string) {
		if value != "" {
			words = append(words, shell("--"+name+"="+value))
		}
	}
	add("name", i.name)
	add("env-file", i.envFile)
	add("root", i.root)
	key := ""
	if i.key != nil {
		words = append(words, `--peer-key="$k"`)
		key = ` && chmod 0600 "$k"`
	}
	if !i.start {
		words = append(words, "--start=false")
	}
	words = append(words, "--")
	for _, w := range given {
		words = append(words, shell(w))
	}
	return fmt.Sprintf(`p=$HOME/%s; k=$HOME/%s; chmod 0755 "$p"%s && cd %s && %s; code=$?; rm -f "$p" "$k"; exit $code`,
		copied, copiedKey, key, shell(cwd), strings.Join(words, " ")), nil
}

// shell writes a word so that a shell reads just that.
func shell(w string) string { return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'" }

// ours marks a start-up script that this program wrote.
const ours = "PITCREW_UNIT"

// replaceable refuses to replace a start-up script that somebody else wrote.
func (i *installation) replaceable(ctx context.Context, s target) error {
	if i.from == "" || i.replace {
		return nil
	}
	var faults strings.Builder
	cmd := s.gcloud(ctx, "describe", s.node, "--format=value(metadata.startup-script)")
	cmd.Stderr = &faults
	script, err := cmd.Output()
	if err != nil {
		return failed(cmd, err, faults.String())
	}
	if text := strings.TrimSpace(string(script)); text != "" && !strings.Contains(text, ours) {
		return usage("%s has a start-up script of its own: add to it what --dry-run prints, or give --replace-startup-script", s.node)
	}
	return nil
}

// nextLife makes the same the start-up script of the TPU, which goes with its specification into every next life.
func (i *installation) nextLife(ctx context.Context, s target, unit string, out io.Writer) error {
	script := i.startup(unit)
	if err := follow(s.gcloud(ctx, "update", s.node, "--update-metadata="+startupScript(script, script)), out); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nEvery worker of %s runs it, and so will its next life: the start-up script says so.\n%s", s.node, i.carried())
	return err
}

// startupScript is what gcloud's flag --update-metadata is given to make a script a TPU's start-up script; written is the script
// as it stands there. It has to be that flag: --metadata-from-file replaces all metadata, the checkpoint directory and people's
// keys among them. The text between the carets parts one key from the next, so the script may not hold it: gcloud topic escaping.
func startupScript(script, written string) string {
	delimiter := "|"
	for strings.Contains(script, delimiter) {
		delimiter += "|"
	}
	return "^" + delimiter + "^startup-script=" + written
}

// follow runs a command whose output the user sees.
func follow(cmd *exec.Cmd, out io.Writer) error {
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return failed(cmd, err, "")
	}
	return nil
}

func failed(cmd *exec.Cmd, err error, said string) error {
	if errors.Is(err, exec.ErrNotFound) {
		return exit{crew.CodeFailed, errors.New("--all-workers: there is no gcloud in PATH")}
	}
	said = strings.Join(strings.Fields(said), " ")
	if said != "" {
		said = ": " + said
	}
	return exit{crew.CodeFailed, fmt.Errorf("gcloud %s: %w%s", strings.Join(cmd.Args[1:5], " "), err, said)}
}
