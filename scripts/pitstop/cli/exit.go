// Package cli has what every verb of the operator's command has in common: its arguments and flags, the errors of a wrong call, and the exit
// codes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"pitstop.internal/scripts/pitstop/terminal"
)

// ExplainedError is an error whose text says why Google could not be asked, and the way out.
type ExplainedError struct {
	Text string
	// Of is the error underneath, where the code may look at it.
	Of error
}

func (e ExplainedError) Error() string { return e.Text }

func (e ExplainedError) Unwrap() error { return e.Of }

// ExitError is the exit code of a verb that has printed everything.
type ExitError int

func (e ExitError) Error() string { return fmt.Sprintf("exit code %d", int(e)) }

// The exit codes.
const (
	ExitDone   = 0
	ExitFailed = 1 // it ran, and something failed
	ExitUsage  = 2 // wrong usage, or input that cannot be used

	ExitInterrupted = 130 // interrupted before its end, as shells call it
)

// ErrFailed says that a command ran, and that something in its input or its result failed. The command has printed the fault.
var ErrFailed = errors.New("failed")

// ErrInterrupted says that somebody interrupted a command, which has printed its results so far.
var ErrInterrupted = errors.New("interrupted")

// ErrUnusable says that a file cannot be used; why is reported already.
var ErrUnusable = errors.New("a file cannot be used")

// UsageError is a wrong call, printed in one line.
type UsageError struct{ error }

// Usage is the error of a wrong call.
func Usage(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// WrongUsage says that an error is one of a wrong call.
func WrongUsage(err error) error { return UsageError{err} }

// ExitCode is the exit code of a command that ended so. It tells an error that nobody has told yet.
func ExitCode(ctx context.Context, err error, errOut io.Writer) int {
	var wrong UsageError
	var ended ExitError
	switch {
	case err == nil:
		return ExitDone
	case errors.As(err, &ended):
		return int(ended)
	case errors.Is(err, ErrFailed):
		return ExitFailed
	case errors.Is(err, ErrInterrupted):
		return ExitInterrupted
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		var said ExplainedError // it also tells what may have been done
		if !errors.As(err, &said) {
			said.Text = ErrInterrupted.Error()
		}
		terminal.Print(errOut, "pitstop: "+said.Text)
		return ExitInterrupted
	case errors.Is(err, ErrUnusable):
		return ExitUsage
	case errors.As(err, &wrong):
		terminal.Print(errOut, "pitstop: "+OneLine(err))
		return ExitUsage
	}
	terminal.Print(errOut, "pitstop: "+OneLine(err))
	return ExitFailed
}

// OneLine puts the faults that an error lists side by side.
func OneLine(err error) string {
	return strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' }), "; ")
}
