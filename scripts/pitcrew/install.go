//go:build unix

package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"github.com/spf13/cobra"

	"pitstop.internal/scripts/pitcrew/crew"
)

//go:embed examples/pitcrew.service
var unitText string

// installation is what install puts where.
type installation struct {
	user, dryRun, start bool
	envFile, name, root string
	// Flags are those of run, as given behind --run-flags; Command is the training's.
	runFlags []string
	args     []string

	binary, unit, script string // paths on the machine
}

func installCommand() *cobra.Command {
	var i installation
	c := &cobra.Command{
		Use:   "install [flags] -- [RUN FLAGS... --] COMMAND [ARG...]",
		Short: "Have systemd run pitcrew with this training, now and after every start of the machine",
		Long: "Installs this program, a systemd unit and a start-up script on this worker, and starts the training under it. A training\n" +
			"that was started by SSH or tmux has to be ended first. What has to be done on the other workers, and for the next life of\n" +
			"the TPU, it prints: it changes nothing but this machine.",
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
	f.BoolVar(&i.user, "user", false, "for this user alone (systemd --user), without root")
	f.StringVar(&i.envFile, "env-file", "", "a file of NAME=VALUE lines for the environment; secrets belong there and not into the unit")
	f.StringVar(&i.name, "name", "pitcrew", "the name of the unit")
	f.BoolVar(&i.dryRun, "dry-run", false, "print what would be written, and write nothing")
	f.BoolVar(&i.start, "start", true, "start it now")
	f.StringVar(&i.root, "root", "", "write below this folder and start nothing, for images")
	return c
}

var unitName = regexp.MustCompile(`^[A-Za-z0-9_.@-]{1,64}$`)

func (i *installation) install(ctx context.Context, args []string, out io.Writer) error {
	i.args = args
	if n := slices.Index(args, "--"); n >= 0 {
		i.runFlags, i.args = args[:n], args[n+1:]
	}
	if len(i.args) == 0 {
		return usage("there is no command behind the second --")
	}
	// What run would refuse is refused here, and not at the next start of the machine.
	var check flags
	c := &cobra.Command{}
	check.define(c)
	if err := c.ParseFlags(i.runFlags); err != nil {
		return usage("the flags of run: %v", err)
	}
	if err := check.check(i.args); err != nil {
		return err
	}
	if !unitName.MatchString(i.name) {
		return usage("--name %s: letters, digits, and - _ . @", i.name)
	}
	if err := i.place(); err != nil {
		return err
	}
	unit, err := i.render()
	if err != nil {
		return err
	}
	script := i.startup(unit)
	if i.dryRun {
		_, err := fmt.Fprintf(out, "# %s\n%s\n# %s\n%s", i.unit, unit, i.script, script)
		return err
	}
	if err := i.write(unit, script); err != nil {
		return exit{crew.CodeFailed, err}
	}
	if _, err := fmt.Fprintf(out, "wrote %s, %s and %s\n", i.binary, i.unit, i.script); err != nil {
		return err
	}
	if i.start && i.root == "" {
		if err := i.systemctl(ctx, out); err != nil {
			return exit{crew.CodeFailed, err}
		}
	}
	return i.advise(out)
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
		i.script = filepath.Join(dir, ".local/share/pitcrew", i.name+"-startup.sh")
	} else if os.Geteuid() != 0 && i.root == "" && !i.dryRun {
		return usage("to install for the whole machine takes root: sudo pitcrew install ..., or --user")
	}
	if i.envFile != "" {
		path, err := filepath.Abs(i.envFile)
		if err != nil {
			return usage("--env-file: %v", err)
		}
		if _, err := os.Stat(path); err != nil {
			return usage("--env-file: %v", err)
		}
		i.envFile = path
	}
	return nil
}

// render writes the unit.
func (i *installation) render() (string, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return "", err
	}
	words := slices.Concat([]string{i.binary, "run"}, i.runFlags, []string{"--"}, i.args)
	for n, w := range words {
		if strings.ContainsAny(w, "\n\r\x00") {
			return "", usage("argument %q holds a line break, which a unit cannot: put the command into a script", w)
		}
		words[n] = quote(w)
	}
	name := ""
	if u, err := user.Current(); err == nil && !i.user {
		if name = os.Getenv("SUDO_USER"); name == "" {
			name = u.Username
		}
	}
	var b strings.Builder
	err = template.Must(template.New("unit").Parse(unitText)).Execute(&b, map[string]any{
		"Exec": strings.Join(words, " "), "Directory": escape(cwd), "EnvFile": escape(i.envFile), "User": name, "ForUser": i.user,
	})
	return b.String(), err
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

// startup is a start-up script that does the same on the next machine, which has neither program nor unit.
func (i *installation) startup(unit string) string {
	fetch := `# The program: from your bucket, by the hash of its content.
#   gcloud storage cp gs://BUCKET/pitcrew-HASH ` + i.binary + ` && chmod 0755 ` + i.binary
	enable := "systemctl daemon-reload\nsystemctl enable --now " + i.name + "\n"
	if i.user {
		enable = "# As the user of the training:\nsystemctl --user daemon-reload\nsystemctl --user enable --now " + i.name + "\n"
	}
	return fmt.Sprintf("#!/bin/sh\nset -eu\n%s\nmkdir -p %s\ncat > %s <<'PITCREW_UNIT'\n%sPITCREW_UNIT\n%s",
		fetch, shell(filepath.Dir(i.unit)), shell(i.unit), unit, enable)
}

func shell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

func (i *installation) write(unit, script string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	program, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	for _, f := range []struct {
		path    string
		content []byte
		mode    os.FileMode
	}{
		{i.binary, program, 0o755}, {i.unit, []byte(unit), 0o644}, {i.script, []byte(script), 0o755},
	} {
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
	}
	return nil
}

func (i *installation) systemctl(ctx context.Context, out io.Writer) error {
	base := []string{"systemctl"}
	if i.user {
		base = append(base, "--user")
	}
	for _, args := range [][]string{{"daemon-reload"}, {"enable", "--now", i.name}} {
		args = append(base[1:len(base):len(base)], args...)
		if text, err := exec.CommandContext(ctx, base[0], args...).CombinedOutput(); err != nil {
			return fmt.Errorf("systemctl %s: %w: %s", strings.Join(args, " "), err, strings.Join(strings.Fields(string(text)), " "))
		}
	}
	_, err := fmt.Fprintf(out, "%s runs; see it with: journalctl -u %s -f\n", i.name, i.name)
	return err
}

// advise says what is left to do elsewhere.
func (i *installation) advise(out io.Writer) error {
	sudo := "sudo "
	if i.user {
		sudo = ""
	}
	_, err := fmt.Fprintf(out, `
On every other worker of the slice, the same command:
  gcloud compute tpus tpu-vm scp pitcrew NODE: --zone=ZONE --worker=all
  gcloud compute tpus tpu-vm ssh NODE --zone=ZONE --worker=all --command='%s./pitcrew install ...'
For the next life of the TPU, which has an empty disk, make %s its start-up script:
  gcloud compute tpus tpu-vm update NODE --zone=ZONE --metadata-from-file=startup-script=%s
`, sudo, i.script, i.script)
	if i.user && err == nil {
		_, err = fmt.Fprintln(out, "So that it runs without anybody logged in: loginctl enable-linger")
	}
	return err
}
