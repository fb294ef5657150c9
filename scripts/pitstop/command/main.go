// Command pitstop is the operator's command. It replays recorded events through the whole pipeline on one machine, simulates
// fleets and their failures, explains log entries, and operates a deployment: it shows it, pauses it, and takes incidents over.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes.
const (
	exitDone   = 0
	exitFailed = 1 // it ran, and something failed
	exitUsage  = 2 // wrong usage, or input that cannot be used

	exitInterrupted = 130 // interrupted before its end, as shells call it
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	context.AfterFunc(ctx, stop) // a second interrupt ends the command at once
	os.Exit(run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// errFailed says that a command ran, and that something in its input or its result failed. The command has printed the fault.
var errFailed = errors.New("failed")

// errInterrupted says that somebody interrupted a command, which has printed its results so far.
var errInterrupted = errors.New("interrupted")

// errUnusable says that a file cannot be used; why is reported already.
var errUnusable = errors.New("a file cannot be used")

// usageError is a wrong call, printed in one line.
type usageError struct{ error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// wrongUsage says that an error is one of a wrong call.
func wrongUsage(err error) error { return usageError{err} }

// noArgs is for commands that only take flags.
func noArgs(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no %q, only flags; see pitstop %s --help", c.Name(), args[0], c.Name())
	}
	return nil
}

// commands is the command with all its verbs.
func commands() *cobra.Command {
	root := &cobra.Command{
		Use: "pitstop", Short: "Keep Cloud TPU training running", Long: about, SilenceErrors: true, SilenceUsage: true,
		Args: cobra.ArbitraryArgs, Version: versionText(), PersistentPreRun: printsVerbatim,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return noCommand(c, args[0])
			}
			return c.Help()
		},
	}
	root.SetVersionTemplate("{{.Version}}")
	root.SetFlagErrorFunc(wrongFlag)
	root.AddCommand(logCommands()...)
	root.AddCommand(labCommands(demoVerbs)...)
	root.AddCommand(preparing(deployed)...)
	for _, c := range verbs(deployed) {
		throughDemo(c)
		root.AddCommand(c)
	}
	described(root)
	return root
}

// deployed is the deployment that --project and its companions name.
var deployed = connected(&google{base: http.DefaultTransport})

// verbs are those on a deployment.
func verbs(d deployment) []*cobra.Command {
	return slices.Concat(operateCommands(d, handlers()), showCommands(d), deployedLogCommands(d))
}

// demoVerbs is a command with the verbs on a demo's deployment.
func demoVerbs(d deployment) *cobra.Command {
	root := &cobra.Command{Use: "pitstop", SilenceErrors: true, SilenceUsage: true, PersistentPreRun: printsVerbatim}
	root.SetFlagErrorFunc(wrongFlag)
	root.AddCommand(verbs(d)...)
	return root
}

func run(ctx context.Context, args []string, in io.Reader, out, errOut io.Writer) int {
	outScreen, errScreen := newScreen(out), newScreen(errOut)
	defer func() { _ = errors.Join(outScreen.flush(), errScreen.flush()) }() //nolint:errcheck // there is nobody else to tell
	out, errOut = outScreen, errScreen
	root := commands()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errOut)
	err := root.ExecuteContext(ctx)
	return exitCode(ctx, err, errOut)
}

// exitCode is the exit code of a command that ended so. It tells an error that nobody has told yet.
func exitCode(ctx context.Context, err error, errOut io.Writer) int {
	var wrong usageError
	var ended endedError
	switch {
	case err == nil:
		return exitDone
	case errors.As(err, &ended):
		return int(ended)
	case errors.Is(err, errFailed):
		return exitFailed
	case errors.Is(err, errInterrupted):
		return exitInterrupted
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		var said reported // it also tells what may have been done
		if !errors.As(err, &said) {
			said.text = errInterrupted.Error()
		}
		tell(errOut, "pitstop: "+said.text)
		return exitInterrupted
	case errors.Is(err, errUnusable):
		return exitUsage
	case errors.As(err, &wrong):
		tell(errOut, "pitstop: "+oneLine(err))
		return exitUsage
	}
	tell(errOut, "pitstop: "+oneLine(err))
	return exitFailed
}

// oneLine puts the faults that an error lists side by side.
func oneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
}

// tell writes a line to people. Where that is not possible there is nobody to tell.
func tell(w io.Writer, line string) {
	_, _ = fmt.Fprintln(w, line) //nolint:errcheck // see above
}
