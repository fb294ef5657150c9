// Command package makes the archives from which the functions are deployed:
//
//	go run ./scripts/package [-verify] [-out DIR] [FUNCTION...]
//
// For each function, all of them if none is named, it stages build/FUNCTION and zips it to build/FUNCTION.zip: the files
// that the function is built from, and a root file by which Google's buildpack finds it. An archive changes when one of
// these files does and for no other reason, so that Terraform deploys only functions that changed.
//
// If pitcrew is named, or nothing is, it also builds build/pitcrew, one static program for a TPU's machines.
//
// With -verify it builds each staged folder as the buildpack does, starts the program, and sends it requests that need no cloud.
//
//	go run ./scripts/package release [-out DIR] [-version V] [-target OS/ARCH,...]
//
// It builds pitstop and pitcrew for Linux and macOS into build/release, for a team to hand out: the same bytes from the same
// commit, with checksums and, for each program, a bill of materials.
package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"pitstop.internal/scripts/package/process"
)

// The exit codes.
const (
	exitFailed = 1
	exitUsage  = 2
)

const usage = "go run ./scripts/package [-verify] [-out DIR] [FUNCTION...] [pitcrew], or go run ./scripts/package release"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

func say(w io.Writer, format string, a ...any) {
	_, _ = fmt.Fprintf(w, format+"\n", a...) //nolint:errcheck // there is nobody else to tell
}

// failed prints faults and returns the exit code.
func failed(errOut io.Writer, code int, faults ...error) int {
	for _, err := range faults {
		say(errOut, "package: %v", err)
	}
	return code
}

func runRelease(ctx context.Context, args []string, out, errOut io.Writer) int {
	var wrong usageError
	switch err := release(ctx, args, out, errOut); {
	case errors.As(err, &wrong):
		return failed(errOut, exitUsage, err)
	case err != nil:
		return failed(errOut, exitFailed, err)
	}
	return 0
}

func run(ctx context.Context, args []string, out, errOut io.Writer) int {
	fail := func(code int, faults ...error) int { return failed(errOut, code, faults...) }
	if len(args) > 0 && args[0] == "release" {
		return runRelease(ctx, args[1:], out, errOut)
	}
	flags := flag.NewFlagSet("package", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	verifies := flags.Bool("verify", false, "build each staged folder as Google's buildpack does, start it, and send it requests")
	dir := flags.String("out", "", "the folder for the archives; build in the repository if it is not given")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		say(out, usage)
		flags.SetOutput(out)
		flags.PrintDefaults()
		return 0
	} else if err != nil {
		return fail(exitUsage, fmt.Errorf("%w: %s", err, usage))
	}
	m, err := findModule(ctx)
	if err != nil {
		return fail(exitUsage, err)
	}
	all, err := process.Functions(m.Dir)
	if err != nil {
		return fail(exitUsage, err)
	}
	names, withPitcrew := split(flags.Args())
	chosen, err := choose(all, names)
	if err != nil {
		return fail(exitUsage, err)
	}
	if withPitcrew && len(names) == 0 && flags.NArg() > 0 {
		chosen = nil
	}
	if *dir == "" {
		*dir = filepath.Join(m.Dir, "build")
	}
	width := 0
	for _, f := range chosen {
		width = max(width, len(f.Name))
	}
	for _, f := range chosen {
		files, zipped, err := pack(ctx, m, f.Name, *dir)
		if err != nil {
			return fail(exitFailed, fmt.Errorf("%s: %w", f.Name, err))
		}
		say(out, "%-*s %4d files %8d bytes  sha256 %x", width, f.Name, files, len(zipped), sha256.Sum256(zipped))
	}
	if withPitcrew {
		size, sum, err := buildPitcrew(ctx, m, *dir, *verifies)
		if err != nil {
			return fail(exitFailed, fmt.Errorf("%s: %w", pitcrew, err))
		}
		say(out, "%-*s    1 file  %8d bytes  sha256 %x", width, pitcrew, size, sum)
	}
	if !*verifies || len(chosen) == 0 {
		return 0
	}
	say(errOut, "package: verifying; a first build takes a minute")
	return verifyAll(ctx, m, chosen, *dir, width, out, errOut)
}

// verifyAll verifies staged functions, and returns the exit code.
func verifyAll(ctx context.Context, m module, chosen []process.Function, dir string, width int, out, errOut io.Writer) (code int) {
	for _, f := range chosen {
		began := time.Now()
		checks, faults := verify(ctx, m, f, filepath.Join(dir, f.Name))
		if ctx.Err() != nil {
			return failed(errOut, exitFailed, errors.New("interrupted"))
		}
		if len(faults) > 0 {
			code = failed(errOut, exitFailed, faults...)
			continue
		}
		say(out, "%-*s verified: %d checks in %.1f s", width, f.Name, checks, time.Since(began).Seconds())
	}
	return code
}

// split takes pitcrew out of the names. Without any name, pitcrew is built too.
func split(args []string) (functions []string, withPitcrew bool) {
	for _, a := range args {
		if a != pitcrew {
			functions = append(functions, a)
		}
	}
	return functions, len(functions) < len(args) || len(args) == 0
}

// choose returns the functions of these names, or all of them.
func choose(all []process.Function, names []string) ([]process.Function, error) {
	var known []string
	for _, f := range all {
		known = append(known, f.Name)
	}
	for _, name := range names {
		if !slices.Contains(known, name) {
			return nil, fmt.Errorf("there is no function %q in functions, only %s: %s", name, strings.Join(known, ", "), usage)
		}
	}
	if len(names) == 0 {
		return all, nil
	}
	return slices.DeleteFunc(slices.Clone(all), func(f process.Function) bool { return !slices.Contains(names, f.Name) }), nil
}
