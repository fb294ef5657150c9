// Command pitstop is the operator's command. It replays recorded events through the whole pipeline on one machine, simulates
// fleets and their failures, explains log entries, and operates a deployment: it shows it, pauses it, and takes incidents over.
package main

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"

	"github.com/spf13/cobra"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/scripts/pitstop/lab"
	"pitstop.internal/scripts/pitstop/logs"
	"pitstop.internal/scripts/pitstop/operate"
	"pitstop.internal/scripts/pitstop/show"
	"pitstop.internal/scripts/pitstop/terminal"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the command at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// commands is the command with all its verbs.
func commands() *cobra.Command {
	root := &cobra.Command{
		Use: "pitstop", Short: "Keep Cloud TPU training running", Long: about, SilenceErrors: true, SilenceUsage: true,
		Args: cobra.ArbitraryArgs, Version: versionText(), PersistentPreRun: printsVerbatim,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.NoCommand(c, args[0])
			}
			return c.Help()
		},
	}
	root.SetVersionTemplate("{{.Version}}")
	root.SetFlagErrorFunc(cli.WrongFlag)
	root.AddCommand(logs.Commands()...)
	root.AddCommand(lab.Commands(demoVerbs)...)
	root.AddCommand(operate.LocalCommands(deployed)...)
	for _, c := range verbs(deployed) {
		lab.ThroughDemo(c)
		root.AddCommand(c)
	}
	described(root)
	return root
}

// deployed is the deployment that --project and its companions name.
var deployed = deployment.Connect(&google.Connection{Base: http.DefaultTransport})

// verbs are those on a deployment.
func verbs(d deployment.Deployment) []*cobra.Command {
	return slices.Concat(operate.Commands(d, lab.Handlers()), show.Commands(d), logs.DeploymentCommands(d))
}

// demoVerbs is a command with the verbs on a demo's deployment.
func demoVerbs(d deployment.Deployment) *cobra.Command {
	root := &cobra.Command{Use: "pitstop", SilenceErrors: true, SilenceUsage: true, PersistentPreRun: printsVerbatim}
	root.SetFlagErrorFunc(cli.WrongFlag)
	root.AddCommand(verbs(d)...)
	return root
}

func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	outScreen, errScreen := terminal.NewScreen(out), terminal.NewScreen(errOut)
	defer func() { _ = errors.Join(outScreen.Flush(), errScreen.Flush()) }() //nolint:errcheck // there is nobody else to tell
	out, errOut = outScreen, errScreen
	root := commands()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	return cli.ExitCode(ctx, err, errOut)
}
