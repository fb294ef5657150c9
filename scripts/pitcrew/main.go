//go:build unix

// Command pitcrew keeps a training running on a Cloud TPU, on one worker or on each of many:
//
//	pitcrew run [flags] -- python3 train.py ...
//
// It needs nothing else of Pitstop, and no Cloud TPU either.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"pitstop.internal/scripts/pitcrew/child"
	"pitstop.internal/scripts/pitcrew/crew"
)

func main() {
	// The parent of a training is this program, too, and the first thing that it does is to be small.
	if len(os.Args) > 1 && os.Args[1] == child.ParentCommand {
		os.Exit(child.Parent(os.Args[2:]))
	}
	os.Exit(Main(context.Background(), os.Args[1:]))
}

// exit is an error that knows its exit code. Without a text everything has been said.
type exit struct {
	code int
	err  error
}

func (e exit) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e exit) Unwrap() error { return e.err }

func usage(format string, a ...any) error { return exit{crew.CodeUsage, fmt.Errorf(format, a...)} }

// Main runs the command and returns the code to exit with.
func Main(ctx context.Context, args []string) int {
	root := commands()
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	code := crew.CodeUsage
	if e := (exit{}); errors.As(err, &e) {
		code = e.code
	}
	if err.Error() != "" {
		fmt.Fprintln(os.Stderr, "pitcrew:", err)
	}
	return code
}

// commands are pitcrew's.
func commands() *cobra.Command {
	root := &cobra.Command{
		Use:   "pitcrew",
		Short: "Keep a training running on a Cloud TPU",
		Long: "pitcrew keeps a training running on a Cloud TPU, on one worker or on each of many. It starts the training, restarts " +
			"it when it fails, asks it to save before maintenance, and exits with its exit code. It needs no other part of Pitstop.",
		Example: "  pitcrew run -- python3 train.py\n" +
			"  pitcrew run --checkpoint-dir gs://BUCKET/run -- python3 train.py\n" +
			"  pitcrew doctor --checkpoint-dir gs://BUCKET/run -- python3 train.py\n" +
			"  pitcrew install -- python3 train.py",
		Version:       versionText(),
		SilenceErrors: true, SilenceUsage: true,
		Args:                       cobra.ArbitraryArgs,
		SuggestionsMinimumDistance: 2,
		RunE: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return unknown(c, args)
			}
			return c.Help()
		},
	}
	root.SetHelpFunc(explain)
	root.SetFlagErrorFunc(unknownFlag)
	root.Flags().SetInterspersed(false)
	root.AddCommand(runCommand(), scaleCommand(), doctorCommand(), installCommand(), reachCommand(), timingsTopic())
	root.InitDefaultHelpCmd()
	helpKnowsItsTopics(root)
	return root
}

// command returns the training's command, which follows --.
func command(c *cobra.Command, args []string) ([]string, error) {
	given := ""
	if c.Flags().NFlag() > 0 {
		given = "[flags] "
	}
	switch dash := c.ArgsLenAtDash(); {
	case len(args) == 0:
		return nil, usage("the command is missing: pitcrew %s %s-- COMMAND", c.Name(), given)
	case dash != 0:
		return nil, usage("put -- before the command: pitcrew %s %s-- %s", c.Name(), given, quoted(args))
	}
	return args, nil
}

// takesCommand ends the flags of a command at the first word that is none: the rest is the training's.
func takesCommand(c *cobra.Command) { c.Flags().SetInterspersed(false) }
