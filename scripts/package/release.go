package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const releaseUsage = "go run ./scripts/package release [-out DIR] [-version V] [-target OS/ARCH,...]"

// sumsName is the file of checksums, in the form that sha256sum --check reads.
const sumsName = "SHA256SUMS"

// targets are the systems that a release is built for.
var targets = []target{{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}}

type target struct{ system, arch string }

func (t target) String() string { return t.system + "/" + t.arch }

// program is one that a release hands out.
type program struct{ name, source, tags string }

var (
	// pitstop is the command itself. scripts/pitstop only builds it.
	pitstopProgram = program{name: "pitstop", source: "./scripts/pitstop/command"}
	// gRPC's own trace of calls, which nobody looks at here, brings a server of web pages with it.
	pitcrewProgram = program{name: pitcrew, source: "./scripts/pitcrew", tags: "grpcnotrace"}
)

// release builds every program for every target, with a bill of materials for each and the checksums of all.
func release(ctx context.Context, args []string, out, errOut io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	dir := flags.String("out", "", "the folder for the release; build/release in the repository if it is not given")
	name := flags.String("version", "", "the version; git describe gives it if it is not given")
	only := flags.String("target", "", "the systems to build for, as in linux/amd64,darwin/arm64; all four if it is not given")
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		flags.SetOutput(out)
		if _, err := fmt.Fprintln(out, releaseUsage); err != nil {
			return err
		}
		flags.PrintDefaults()
		return nil
	case err != nil:
		return usageError{fmt.Errorf("%w: %s", err, releaseUsage)}
	case flags.NArg() > 0:
		return usageError{fmt.Errorf("release takes no %q: %s", flags.Arg(0), releaseUsage)}
	}
	chosen, err := chooseTargets(*only)
	if err != nil {
		return usageError{err}
	}
	m, err := findModule(ctx)
	if err != nil {
		return usageError{err}
	}
	version, commit, err := describe(ctx, m.Dir, *name)
	if err != nil {
		return usageError{err}
	}
	if *dir == "" {
		*dir = filepath.Join(m.Dir, "build", "release")
	}
	if *dir, err = filepath.Abs(*dir); err != nil {
		return err
	}
	if _, err := released(*dir); err != nil {
		return err
	}
	if strings.HasSuffix(version, unclean) {
		_, _ = fmt.Fprintln(errOut, "package: the tree has changes that are not committed, so the version says", version) //nolint:errcheck // there is nobody else to tell
	}
	return releaseInto(ctx, *dir, m, chosen, edition{version: version, commit: commit}, out, errOut)
}

// usageError is a wrong call.
type usageError struct{ error }

// chooseTargets returns the targets of these names, or all of them.
func chooseTargets(names string) ([]target, error) {
	if names == "" {
		return targets, nil
	}
	var chosen []target
	for name := range strings.SplitSeq(names, ",") {
		i := slices.IndexFunc(targets, func(t target) bool { return t.String() == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no target %q, only %v", name, targets)
		}
		if !slices.Contains(chosen, targets[i]) { // it would be built twice, and stand twice in the sums
			chosen = append(chosen, targets[i])
		}
	}
	return chosen, nil
}

// released are the files that the checksums in a folder name: those of the release that lies there.
func released(dir string) (names []string, err error) {
	sums, err := os.ReadFile(filepath.Join(dir, sumsName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(bytes.NewReader(sums)); lines.Scan(); {
		_, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok || name != filepath.Base(name) {
			return nil, fmt.Errorf("%s in %s is none of this program: choose another folder with -out", sumsName, dir)
		}
		names = append(names, name)
	}
	return append(names, sumsName), nil // the sums last, so that what is left of a release is always named
}

// clearRelease removes the files that the checksums of an earlier release name, and no others.
func clearRelease(dir string) error {
	names, err := released(dir)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := os.Remove(filepath.Join(dir, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// unfinished is the folder, in that of the release, where a release lies until all of it is built. A build that is cut short leaves
// the release before it as it was, and the next one removes what the cut left here.
const unfinished = ".unfinished"

// takePlace moves a release that is built to the place of the one before. The sums go first: if the rest is cut short, they name
// every file that is there, so a check of them fails, and the next release removes them all.
func takePlace(dir string, names []string) error {
	if err := clearRelease(dir); err != nil {
		return err
	}
	for _, name := range append([]string{sumsName}, names...) {
		if err := os.Rename(filepath.Join(dir, unfinished, name), filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func releaseInto(ctx context.Context, dir string, m module, chosen []target, e edition, out, errOut io.Writer) (err error) {
	work := filepath.Join(dir, unfinished)
	if err := os.RemoveAll(work); err != nil {
		return err
	}
	if err := os.MkdirAll(work, 0o750); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	programs := []program{pitstopProgram, pitcrewProgram}
	if _, err := fmt.Fprintf(out, "version %s, commit %s\n", e.version, e.commit); err != nil {
		return err
	}
	var sums bytes.Buffer
	var names []string
	for i, p := range programs {
		for j, t := range chosen {
			at, all := i*len(chosen)+j+1, len(programs)*len(chosen)
			_, _ = fmt.Fprintf(errOut, "package: building %s for %s (%d of %d); a first build for a system takes a minute or two\n", p.name, t, at, all) //nolint:errcheck // there is nobody else to tell
			e.target = t
			name := p.name + "-" + t.system + "-" + t.arch
			binary, err := e.program(ctx, m, p, filepath.Join(work, name))
			if err != nil {
				return fmt.Errorf("%s for %s: %w", p.name, t, err)
			}
			bill, err := billOfMaterials(p.name, e.version, binary)
			if err != nil {
				return fmt.Errorf("%s for %s: %w", p.name, t, err)
			}
			billName := name + ".cdx.json"
			if err := os.WriteFile(filepath.Join(work, billName), bill, 0o644); err != nil { //nolint:gosec // it is handed out
				return err
			}
			fmt.Fprintf(&sums, "%x  %s\n%x  %s\n", sha256.Sum256(binary), name, sha256.Sum256(bill), billName)
			names = append(names, name, billName)
			if _, err := fmt.Fprintf(out, "%-22s %5.1f MB\n", name, float64(len(binary))/1e6); err != nil {
				return err
			}
		}
	}
	if err := os.WriteFile(filepath.Join(work, sumsName), sums.Bytes(), 0o644); err != nil { //nolint:gosec // it is handed out
		return err
	}
	if err := takePlace(dir, names); err != nil {
		return err
	}
	_, err = fmt.Fprintf(out, "all in %s, with a bill of materials for each and %s\n", dir, sumsName)
	return err
}

// edition is what a program says of itself, and the system that it is built for.
type edition struct {
	target
	version, commit string
}

// program builds a program and returns it. The same sources make the same bytes: no path of this machine goes in, no time, and of
// git only the version and the commit.
func (e edition) program(ctx context.Context, m module, p program, path string) ([]byte, error) {
	link := "-s -w -buildid="
	if e.version != "" {
		link += " -X main.version=" + e.version + " -X main.commit=" + e.commit
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-tags="+p.tags, "-trimpath", "-buildvcs=false", "-ldflags="+link, "-o", path, p.source) //nolint:gosec // our own words, and a version that describe has looked at
	cmd.Dir = m.Dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+e.system, "GOARCH="+e.arch, "GOFLAGS=", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=")
	if said, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go build: %w: %s", err, strings.Join(strings.Fields(string(said)), " "))
	}
	return os.ReadFile(path)
}

// unclean ends the version of a tree with changes that are not committed.
const unclean = "-unclean"

// versionForm is what a version may look like: the linker takes it as a word.
var versionForm = regexp.MustCompile(`^[0-9A-Za-z][0-9A-Za-z.+_-]*$`)

// describe returns the version of a checkout and its commit. A version that is given is taken; else the last tag vX gives it, with
// the number of commits since and the commit, or v0.0.0 with all commits where there is no tag.
func describe(ctx context.Context, dir, given string) (version, commit string, err error) {
	git := func(args ...string) (string, error) {
		c := exec.CommandContext(ctx, "git", args...) //nolint:gosec // our own words
		c.Dir = dir
		said, err := c.Output()
		return strings.TrimSpace(string(said)), err
	}
	if given != "" && !versionForm.MatchString(given) {
		return "", "", fmt.Errorf("the version %q may have letters, digits and .+_- alone", given)
	}
	commit, err = git("rev-parse", "HEAD")
	if err != nil {
		if given != "" {
			return given, "unknown", nil // a copy of the sources without their history
		}
		return "", "", errors.New("git does not know this checkout: name the release with -version")
	}
	if given != "" {
		version = given
	} else if version, err = git("describe", "--tags", "--match=v[0-9]*", "--abbrev=12"); err != nil {
		count, err := git("rev-list", "--count", "HEAD")
		if err != nil {
			return "", "", fmt.Errorf("git rev-list: %w", err)
		}
		version = "v0.0.0-" + count + "-g" + commit[:12]
	}
	changes, err := git("status", "--porcelain")
	if err != nil {
		return "", "", fmt.Errorf("git status: %w", err)
	}
	if changes != "" {
		version += unclean
	}
	return version, commit, nil
}
