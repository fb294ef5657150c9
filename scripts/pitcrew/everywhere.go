//go:build unix

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitstop.internal/scripts/pitcrew/crew"
	"pitstop.internal/scripts/pitcrew/metadata"
)

// target is the TPU that is installed on as a whole: one slice, or those of a Multislice.
type target struct {
	nodes         []string
	zone, project string
	// inside says that this machine is known to belong to it.
	inside bool
}

// locate finds out which TPU it is: the one of the flags, else this machine's own with all its slices.
func (i *installation) locate(ctx context.Context) (target, error) {
	s := target{nodes: i.nodes, zone: i.zone, project: i.project}
	if len(i.nodes) > 0 && i.queued != "" {
		return s, usage("--all-workers: give either --node or --queued-resource")
	}
	if host := metadata.Host(); host != "" && len(s.nodes) == 0 && i.queued == "" {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		m, err := metadata.New(host).Machine(ctx)
		if err != nil {
			return s, exit{crew.CodeFailed, err}
		}
		s.zone, s.project, s.inside = firstOf(s.zone, m.Zone), firstOf(s.project, m.Project), true
		if s.nodes, err = slicesOf(m); err != nil {
			return s, err
		}
	}
	if len(s.nodes) == 0 && i.queued == "" || s.zone == "" {
		return s, usage("--all-workers: which TPU? give --node and --zone, or --queued-resource and --zone")
	}
	if i.queued != "" {
		var err error
		if s.nodes, err = s.ordered(ctx, i.queued); err != nil {
			return s, err
		}
	}
	return s, nil
}

// slicesOf names the TPUs of the Multislice that a machine belongs to. Google names them by a prefix and the number of the slice.
// https://cloud.google.com/tpu/docs/multislice-introduction
func slicesOf(m metadata.Machine) ([]string, error) {
	if m.Slices <= 1 || m.Node == "" {
		return slices.DeleteFunc([]string{m.Node}, func(name string) bool { return name == "" }), nil
	}
	prefix, ok := strings.CutSuffix(m.Node, "-"+strconv.Itoa(m.Slice))
	if !ok {
		return nil, usage("--all-workers: %s is slice %d of %d, and its name does not end with -%d, so the names of the others are not known: "+
			"give --node for each, or --queued-resource", m.Node, m.Slice, m.Slices, m.Slice)
	}
	return numbered(prefix, m.Slices), nil
}

func numbered(prefix string, n int) (names []string) {
	for i := range n {
		names = append(names, prefix+"-"+strconv.Itoa(i))
	}
	return names
}

// ordered reads from a queued resource which TPUs it orders.
func (s target) ordered(ctx context.Context, name string) (nodes []string, err error) {
	var faults strings.Builder
	cmd := s.call(ctx, "queued-resources", "describe", name, "--format=json")
	cmd.Stderr = &faults
	out, err := cmd.Output()
	if err != nil {
		return nil, failed(cmd, err, faults.String())
	}
	type many struct {
		Count  int    `json:"nodeCount"`
		Prefix string `json:"nodeIdPrefix"`
	}
	var q struct {
		TPU struct {
			Specs []struct {
				Node string `json:"nodeId"`
				// The same by its name in v2 of the API, and by the one in v2alpha1. Which one gcloud prints depends on its track.
				Many  many `json:"multisliceParams"`
				Alpha many `json:"multiNodeParams"`
			} `json:"nodeSpec"`
		} `json:"tpu"`
	}
	if err := json.Unmarshal(out, &q); err != nil {
		return nil, exit{crew.CodeFailed, fmt.Errorf("--queued-resource %s: gcloud's answer cannot be read: %w", name, err)}
	}
	for _, spec := range q.TPU.Specs {
		if spec.Node != "" {
			nodes = append(nodes, spec.Node)
		}
		for _, m := range []many{spec.Many, spec.Alpha} {
			nodes = append(nodes, numbered(firstOf(m.Prefix, name), m.Count)...)
		}
	}
	if len(nodes) == 0 {
		return nil, usage("--queued-resource %s: it orders no TPU", name)
	}
	return nodes, nil
}

// call is a call of gcloud for this TPU's project and zone.
func (s target) call(ctx context.Context, group, verb string, args ...string) *exec.Cmd {
	args = append([]string{"compute", "tpus", group, verb}, args...)
	args = append(args, "--zone="+s.zone, "--quiet")
	if s.project != "" {
		args = append(args, "--project="+s.project)
	}
	if s.inside && (verb == "ssh" || verb == "scp") {
		args = append(args, "--internal-ip")
	}
	return exec.CommandContext(ctx, "gcloud", args...)
}

// gcloud is a call for the TPUs themselves.
func (s target) gcloud(ctx context.Context, verb string, args ...string) *exec.Cmd {
	return s.call(ctx, "tpu-vm", verb, args...)
}

// each does something for each slice until one fails.
func (s target) each(do func(node string) error) error {
	for _, node := range s.nodes {
		if err := do(node); err != nil {
			return err
		}
	}
	return nil
}

func (s target) String() string {
	if last := len(s.nodes) - 1; last > 0 {
		return strings.Join(s.nodes[:last], ", ") + " and " + s.nodes[last]
	}
	return s.nodes[0]
}

// everywhere installs on every worker of every slice, this one too, as a person would who logs in on each. With a program in a
// bucket it also gives each TPU its start-up script, so that the next life trains without anybody. It ends
// at the first slice that fails; a second call does everything again.
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
		if _, err := fmt.Fprintf(out, "# This is not known to be a worker of %s. Its folder %s, its user %s and its PATH are taken over as they are.\n", s, i.cwd, i.runAs()); err != nil {
			return err
		}
	}
	if i.dryRun {
		return i.previewEverywhere(s, command, unit, out)
	}
	if err := s.each(func(node string) error { return i.replaceable(ctx, s, node) }); err != nil { // before anything is changed
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return exit{crew.CodeFailed, err}
	}
	// Every slice gets packages, program and key before the first one starts, so the slices wait for each other only briefly.
	if packages := i.remotePackages(); packages != "" {
		if err := s.each(func(node string) error {
			return follow(s.gcloud(ctx, "ssh", node, "--worker=all", "--command="+packages), out)
		}); err != nil {
			return err
		}
	}
	if err := s.each(func(node string) error {
		return follow(s.gcloud(ctx, "scp", self, node+":"+copied, "--worker=all"), out)
	}); err != nil {
		return err
	}
	if err := i.sendKey(ctx, s, out); err != nil {
		return err
	}
	if err := s.each(func(node string) error {
		return follow(s.gcloud(ctx, "ssh", node, "--worker=all", "--command="+command), out)
	}); err != nil {
		return err
	}
	if i.from == "" {
		_, err := fmt.Fprintf(out, "\nEvery worker of %s runs it. The next life of the TPU has an empty disk: put pitcrew into a bucket and give --from gs://BUCKET/OBJECT.\n", s)
		return err
	}
	return i.nextLife(ctx, s, unit, out)
}

// previewEverywhere prints what would run on every worker.
func (i *installation) previewEverywhere(s target, command, unit string, out io.Writer) error {
	_, err := fmt.Fprintf(out, "# on every worker of %s in %s\n", s, s.zone)
	if packages := i.remotePackages(); err == nil && packages != "" {
		_, err = fmt.Fprintf(out, "# first, packages\n%s\n# then\n", packages)
	}
	if err == nil {
		_, err = fmt.Fprintln(out, command)
	}
	if err == nil && i.from != "" {
		_, err = fmt.Fprintf(out, "# the start-up script of %s\n%s", s, i.startup(unit))
	}
	return err
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
	return s.each(func(node string) error {
		return follow(s.gcloud(ctx, "scp", path, node+":"+copiedKey, "--worker=all"), out)
	})
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

// remotePackages is what each worker runs first: it installs the packages for whoever logs in there, where the command stands here. It
// says what has failed, because of pip's own words the last ones may not. It is empty if there are no packages.
func (i *installation) remotePackages() string {
	if len(i.packages()) == 0 {
		return ""
	}
	call := quoted(i.pipWords())
	return fmt.Sprintf(`cd %s &&
%s
code=$?; [ $code = 0 ] || echo %s: exit status $code >&2; exit $code`, shell(i.cwd), call, shell(call))
}

// shell writes a word so that a shell reads just that.
func shell(w string) string { return "'" + strings.ReplaceAll(w, "'", `'\''`) + "'" }

// ours marks a start-up script that this program wrote.
const ours = "PITCREW_UNIT"

// replaceable refuses to replace a start-up script of a TPU that somebody else wrote.
func (i *installation) replaceable(ctx context.Context, s target, node string) error {
	if i.from == "" || i.replace {
		return nil
	}
	var faults strings.Builder
	cmd := s.gcloud(ctx, "describe", node, "--format=value(metadata.startup-script)")
	cmd.Stderr = &faults
	script, err := cmd.Output()
	if err != nil {
		return failed(cmd, err, faults.String())
	}
	if text := strings.TrimSpace(string(script)); text != "" && !strings.Contains(text, ours) {
		return usage("%s has a start-up script of its own: add to it what --dry-run prints, or give --replace-startup-script", node)
	}
	return nil
}

// nextLife makes the same the start-up script of each TPU, which goes with its specification into every next life.
func (i *installation) nextLife(ctx context.Context, s target, unit string, out io.Writer) error {
	script := i.startup(unit)
	if err := s.each(func(node string) error {
		return follow(s.gcloud(ctx, "update", node, "--update-metadata="+startupScript(script, script)), out)
	}); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "\nEvery worker of %s runs it, and so will its next life: the start-up script says so.\n%s", s, i.carried())
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
