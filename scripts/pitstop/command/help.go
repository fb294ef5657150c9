package main

import (
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pitstop.internal/scripts/layout"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/terminal"
)

// The groups of verbs.
const (
	groupMachine = "machine"
	groupProject = "project"
)

const about = `Pitstop keeps Cloud TPU training running through maintenance, preemption, host errors and crashes.
This is its command for people.

Exit codes: 0 when all is well, 1 when something failed, 2 when the call or its input cannot be used,
130 when Ctrl-C ended it.`

// examples are calls of each verb, by the path of the verb. They stand together so that they tell of one project.
var examples = map[string]string{
	"pitstop": `pitstop demo
pitstop watch --project MINE
pitstop status --project MINE`,
	"pitstop replay": `pitstop replay
pitstop replay entries.json
pitstop replay --policy spot entries.json`,
	"pitstop explain": `pitstop explain entries.json
pitstop explain --policy spot --json entries.json
pitstop explain < entry.json`,
	"pitstop filter": `pitstop filter --project MINE
pitstop filter --project MINE | sh
pitstop filter --sink tpu-audit`,
	"pitstop report": `pitstop report --project MINE --since 30d
pitstop report --losses --lead 10m entries.json
pitstop report --json entries.json > report.json`,
	"pitstop goodput": `pitstop goodput --project MINE --since 30d
pitstop goodput --prices prices.yaml entries.json
pitstop goodput --json entries.json > goodput.json`,
	"pitstop simulate": `pitstop simulate
pitstop simulate --seed 42 --days 30 --faults heavy
pitstop simulate --fleet fleet.yaml --policy policy.yaml --seeds 20`,
	"pitstop cloud": `pitstop cloud
pitstop cloud --listen 127.0.0.1:0 --speed 60
pitstop cloud --fleet fleet.yaml`,
	"pitstop demo": `pitstop demo
pitstop demo preempt llama-8b
pitstop demo --speed 300 --scenario hang-restarted`,
	"pitstop demo preempt":     `pitstop demo preempt llama-8b`,
	"pitstop demo host-error":  `pitstop demo host-error gemma-27b-1 --for 20m`,
	"pitstop demo maintenance": "pitstop demo maintenance llama-8b --in 2h",
	"pitstop demo withdraw":    `pitstop demo withdraw llama-8b`,
	"pitstop demo hang":        `pitstop demo hang llama-8b`,
	"pitstop demo crash":       `pitstop demo crash llama-8b --exit 137 --times 3`,
	"pitstop demo delete":      `pitstop demo delete llama-8b`,
	"pitstop demo create":      `pitstop demo create llama-8b`,
	"pitstop demo stockout":    `pitstop demo stockout us-west4-a --for 1h`,
	"pitstop demo room":        `pitstop demo room us-west4-a`,
	"pitstop demo hold":        `pitstop demo hold pubsub --for 10m`,
	"pitstop demo kill":        `pitstop demo kill recreate`,
	"pitstop policy":           `pitstop policy check policy.yaml`,
	"pitstop policy check":     "pitstop policy check policy.yaml\npitstop policy check --allow request_checkpoint,restart policy.yaml",
	"pitstop policy example":   `pitstop policy example > policy.yaml`,
	"pitstop policy schema":    `pitstop policy schema > policy.schema.json`,
	"pitstop flex": `pitstop flex plan --machine ct6e-standard-4t --topology 4x4
pitstop flex check pool.json`,
	"pitstop flex plan": `pitstop flex plan --machine ct6e-standard-4t --topology 4x4
pitstop flex plan --machine tpu7x-standard-4t --topology 4x4x4 -- ./train.sh
pitstop flex plan --machine ct6e-standard-8t --yaml | kubectl apply -f -`,
	"pitstop flex check": `pitstop flex check pool.json
pitstop flex check --topology 4x4 - < pool.json
pitstop flex check --cluster us-east5/research --project MINE`,
	"pitstop gke": `pitstop gke rbac --namespace train`,
	"pitstop gke rbac": `pitstop gke rbac --namespace train
pitstop gke rbac --namespace train --account EMAIL --id NUMBER > reader.yaml
pitstop gke rbac --all-namespaces --json`,
	"pitstop status": `pitstop status --project MINE
pitstop status llama-8b --project MINE
pitstop status --needs-me --watch --project MINE`,
	"pitstop incident": `pitstop incident llama-8b --project MINE
pitstop incident llama-8b-20261112-2 --project MINE
pitstop incident llama-8b-20261112-2 --prices prices.yaml --project MINE`,
	"pitstop incidents": `pitstop incidents --project MINE
pitstop incidents --since 30d --json --project MINE`,
	"pitstop pause": `pitstop pause llama-8b --for 2h --why "the host is debugged" --project MINE
pitstop pause --all --why "calls look wrong" --project MINE`,
	"pitstop resume": `pitstop resume llama-8b --why "debugging is over" --project MINE
pitstop resume --all --project MINE`,
	"pitstop approve": `pitstop approve llama-8b-20261112-2 --why "the run matters" --project MINE`,
	"pitstop cancel":  `pitstop cancel llama-8b-20261112-2 --why "I repair it" --project MINE`,
	"pitstop retry":   `pitstop retry llama-8b --why "quota is raised" --project MINE`,
	"pitstop attach":  `pitstop attach llama-8b --policy spot --why "first one" --project MINE`,
	"pitstop detach":  `pitstop detach llama-8b --why "handed over" --project MINE`,
	"pitstop redrive": `pitstop redrive recreate-requests --why "the role is back" --project MINE`,
	"pitstop check": `pitstop check llama-8b --project MINE
pitstop check llama-8b --prices prices.yaml --project MINE`,
	"pitstop scale": `pitstop scale llama-8b --project MINE
pitstop scale gs://BUCKET/small gs://BUCKET/full
pitstop scale --logs entries.json`,
	"pitstop canary": `pitstop canary --project MINE
pitstop canary --watched OTHER --for 10m --project MINE`,
	"pitstop drill": `pitstop drill llama-8b --yes --why "first drill" --project MINE`,
	"pitstop console": `pitstop console --project MINE
pitstop console --demo`,
	"pitstop watch": `pitstop watch --project MINE
pitstop watch --once --since 24h --project MINE`,
	"pitstop help": `pitstop help replay`,
}

// described gives every command its example, its group and its help, and adds the commands about the command itself.
func described(root *cobra.Command) {
	root.AddGroup(
		&cobra.Group{ID: groupMachine, Title: "On this machine, from logs or made-up fleets:"},
		&cobra.Group{ID: groupProject, Title: "On your project in Google Cloud:"},
	)
	for _, c := range root.Commands() {
		c.GroupID = groupMachine
		if c.Flags().Lookup("project") != nil && c.Name() != "filter" {
			c.GroupID = groupProject
		}
	}
	root.InitDefaultHelpCmd()
	for _, c := range root.Commands() {
		if c.Name() == "help" {
			c.Short, c.Long = "Print the help of a command", "Print the help of a command, as its flag --help does."
			c.Run, c.RunE = nil, helpOf
		}
	}
	everyCommand(root, func(c *cobra.Command) {
		if c.Example == "" {
			c.Example = indented(examples[c.CommandPath()])
		}
	})
	plain := root.HelpFunc()
	root.SetHelpFunc(func(c *cobra.Command, args []string) {
		c.Long = strings.Join(flowed(c.Long, layout.Width()), "\n")
		plain(c, args)
	})
}

// indented moves every line of a text to the right.
func indented(text string) string {
	if text == "" {
		return ""
	}
	return "  " + strings.ReplaceAll(text, "\n", "\n  ")
}

// helpOf prints the help of the command that args name. The help of cobra would print that of the root for a name that there is not,
// since the root takes any argument.
func helpOf(c *cobra.Command, args []string) error {
	named, rest, err := c.Root().Find(args)
	switch {
	case err != nil:
		return cli.WrongUsage(err)
	case named.HasSubCommands() && len(rest) > 0:
		return cli.NoCommand(named, rest[0])
	}
	named.InitDefaultHelpFlag()
	named.InitDefaultVersionFlag()
	return named.Help()
}

func everyCommand(c *cobra.Command, do func(*cobra.Command)) {
	do(c)
	for _, sub := range c.Commands() {
		everyCommand(sub, do)
	}
}

// flowed breaks paragraphs to the width. A line that begins with a space belongs to a list or a file and keeps its place; the lines
// under its text continue it.
func flowed(text string, width int) (lines []string) {
	open := ""
	end := func() {
		switch {
		case open == "":
		case open[0] == ' ':
			lines = append(lines, terminal.Fit(open, width)...)
		default:
			lines = append(lines, terminal.Wrap(open, width)...)
		}
	}
	for l := range strings.SplitSeq(text, "\n") {
		bare := strings.TrimLeft(l, " ")
		indent := len(l) - len(bare)
		if bare != "" && open != "" && (indent == 0) == (open[0] != ' ') && (indent == 0 || indent == terminal.LastColumn(open, width/2)) {
			open += " " + bare
			continue
		}
		end()
		if open = l; bare == "" {
			lines, open = append(lines, ""), ""
		}
	}
	end()
	return lines
}

// forPrograms reports whether a command prints what a program or a shell reads, which has lines of any width.
func forPrograms(c *cobra.Command) bool {
	for _, name := range []string{"json", "trail"} {
		if f := c.Flags().Lookup(name); f != nil && f.Value.String() == "true" {
			return true
		}
	}
	return slices.Contains([]string{
		"pitstop filter", "pitstop flex plan", "pitstop gke rbac", "pitstop policy example", "pitstop policy schema", "pitstop " + cobra.ShellCompRequestCmd, "pitstop " + cobra.ShellCompNoDescRequestCmd,
	}, c.CommandPath()) || strings.HasPrefix(c.CommandPath(), "pitstop completion ")
}

// printsVerbatim stops the screen from breaking the lines of a command that prints for programs.
func printsVerbatim(c *cobra.Command, _ []string) {
	if !forPrograms(c) {
		return
	}
	for _, w := range []io.Writer{c.OutOrStdout(), c.ErrOrStderr()} {
		if s, ok := w.(*terminal.Screen); ok {
			s.Verbatim = true
		}
	}
}
