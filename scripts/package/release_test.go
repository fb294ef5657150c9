package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	cdx "github.com/CycloneDX/cyclonedx-go"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/shared/breadth"
)

// here is the target that this machine runs, or one that it builds fastest.
func here() string {
	for _, t := range targets {
		if t.system == runtime.GOOS && t.arch == runtime.GOARCH {
			return t.String()
		}
	}
	return targets[0].String()
}

// TestAReleaseIsTheSameBytes builds both programs twice, into two folders. pitstop names its version, and the sums and bills belong
// to the programs.
func TestAReleaseIsTheSameBytes(t *testing.T) {
	breadth.Rarely(t)
	dir := t.TempDir()
	var trees []map[string]string
	for _, out := range []string{filepath.Join(dir, "first"), filepath.Join(dir, "elsewhere", "second")} {
		var said, faults bytes.Buffer
		if code := run(t.Context(), []string{"release", "-version", "v1.2.3", "-target", here(), "-out", out}, &said, &faults); code != 0 {
			t.Fatalf("code %d: %s", code, &faults)
		}
		if !strings.HasPrefix(said.String(), "version v1.2.3") || !strings.Contains(faults.String(), "building pitcrew for "+here()+" (2 of 2)") {
			t.Errorf("it said %q and %q", &said, &faults)
		}
		trees = append(trees, staged(t, out))
	}
	if d := cmp.Diff(trees[0], trees[1]); d != "" {
		t.Fatalf("two builds of one commit differ:\n%.2000s", d)
	}
	suffix := "-" + strings.ReplaceAll(here(), "/", "-")
	var sums strings.Builder
	for _, name := range []string{"pitstop", "pitcrew"} {
		binary, bill := trees[0][name+suffix], trees[0][name+suffix+".cdx.json"]
		fmt.Fprintf(&sums, "%x  %s\n%x  %s\n", sha256.Sum256([]byte(binary)), name+suffix, sha256.Sum256([]byte(bill)), name+suffix+".cdx.json")
		for _, local := range []string{dir, mustWD(t)} {
			if strings.Contains(binary, local) || strings.Contains(bill, local) {
				t.Errorf("%s names the folder %s of this machine", name, local)
			}
		}
		holdsBill(t, name, binary, bill)
	}
	if trees[0][sumsName] != sums.String() || len(trees[0]) != 5 {
		t.Errorf("%d files, and the sums are\n%s\nwant\n%s", len(trees[0]), trees[0][sumsName], sums.String())
	}
	for name, want := range map[string]string{"pitstop": "pitstop  v1.2.3", "pitcrew": "pitcrew version v1.2.3"} {
		said, err := exec.CommandContext(t.Context(), filepath.Join(dir, "first", name+suffix), "--version").Output() //nolint:gosec // it was built above
		if err != nil || !strings.HasPrefix(string(said), want) {
			t.Errorf("%s --version says %q, %v", name, said, err)
		}
	}
}

func mustWD(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	must(t, err)
	return dir
}

// holdsBill holds a bill of materials against its program.
func holdsBill(t *testing.T, name, binary, bill string) {
	t.Helper()
	var b cdx.BOM
	must(t, cdx.NewBOMDecoder(strings.NewReader(bill), cdx.BOMFileFormatJSON).Decode(&b))
	c := b.Metadata.Component
	sum := sha256.Sum256([]byte(binary))
	if c.Name != name || !strings.HasPrefix(c.Version, "v1.2.3") || (*c.Hashes)[0].Value != hex.EncodeToString(sum[:]) {
		t.Errorf("the bill of %s is about %+v", name, c)
	}
	found := map[string]string{}
	for _, c := range *b.Components {
		found[c.Name] = c.PackageURL
		if c.Name != "std" && len((*c.Hashes)[0].Value) != 64 {
			t.Errorf("%s has the hashes %v", c.Name, c.Hashes)
		}
	}
	if found["std"] == "" || !strings.HasPrefix(found["google.golang.org/grpc"], "pkg:golang/google.golang.org/grpc@v1.") {
		t.Errorf("the bill of %s lists %v", name, found)
	}
	if refs := *(*b.Dependencies)[0].Dependencies; len(refs) != len(*b.Components) {
		t.Errorf("the bill of %s has %d dependencies of %d components", name, len(refs), len(*b.Components))
	}
}

// TestTheVersionComesFromGit has a checkout without and with a tag, clean and unclean, and a copy without git.
func TestTheVersionComesFromGit(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) string {
		t.Helper()
		c := exec.CommandContext(t.Context(), "git", args...) //nolint:gosec // this test
		c.Dir = dir
		c.Env = append(
			os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
			"GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_NAME=a", "GIT_COMMITTER_EMAIL=a@example.com",
		)
		said, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, said)
		}
		return strings.TrimSpace(string(said))
	}
	is := func(given, want string) {
		t.Helper()
		got, commit, err := describe(t.Context(), dir, given)
		if err != nil || got != want || commit != git("rev-parse", "HEAD") {
			t.Errorf("version %q of commit %q, %v; want %q", got, commit, err, want)
		}
	}
	if _, _, err := describe(t.Context(), dir, ""); err == nil || !strings.Contains(err.Error(), "-version") {
		t.Errorf("without git: %v", err)
	}
	if got, commit, err := describe(t.Context(), dir, "v9"); got != "v9" || commit != "unknown" || err != nil {
		t.Errorf("without git: %q, %q, %v", got, commit, err)
	}
	git("init", "-q")
	write(t, filepath.Join(dir, "a"), "a")
	git("add", "a")
	git("commit", "-qm", "one")
	is("", "v0.0.0-1-g"+git("rev-parse", "HEAD")[:12])
	git("tag", "v1.4.0")
	git("tag", "no-version")
	is("", "v1.4.0")
	is("v1.5.0", "v1.5.0")
	write(t, filepath.Join(dir, "b"), "not added")
	is("", "v1.4.0-unclean")
	is("v1.5.0", "v1.5.0-unclean")
	git("add", "b")
	git("commit", "-qm", "two")
	is("", "v1.4.0-1-g"+git("rev-parse", "--short=12", "HEAD"))
	if _, _, err := describe(t.Context(), dir, "v1 -X main.x=y"); err == nil {
		t.Error("a version of several words is taken")
	}
}

func TestAReleaseTakesThePlaceOfTheOneBeforeAndOfNothingElse(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"pitstop-linux-amd64", "pitcrew-linux-amd64", "notes.txt"} {
		write(t, filepath.Join(dir, name), name)
	}
	write(t, filepath.Join(dir, sumsName), "00  pitstop-linux-amd64\n00  gone\n")
	must(t, clearRelease(dir))
	if d := cmp.Diff(map[string]string{"pitcrew-linux-amd64": "pitcrew-linux-amd64", "notes.txt": "notes.txt"}, staged(t, dir)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	write(t, filepath.Join(dir, sumsName), "00  ../notes.txt\n")
	if err := clearRelease(dir); err == nil {
		t.Error("it would remove a file of another folder")
	}
}

// TestAReleaseThatIsCutShortLeavesTheOneBefore has a second program that does not build, and what an earlier cut left.
func TestAReleaseThatIsCutShortLeavesTheOneBefore(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program")
	}
	source, dir := t.TempDir(), t.TempDir()
	write(t, filepath.Join(source, "go.mod"), "module pitstop.internal\n\ngo 1.24\n")
	write(t, filepath.Join(source, "scripts/pitstop/command/main.go"), "package main\n\nfunc main() {}\n")
	write(t, filepath.Join(source, "scripts/pitcrew/main.go"), "package main\n\nfunc main() { no }\n")
	write(t, filepath.Join(dir, "pitstop-linux-amd64"), "the one before")
	write(t, filepath.Join(dir, sumsName), "00  pitstop-linux-amd64\n")
	before := staged(t, dir)
	write(t, filepath.Join(dir, unfinished, "pitstop-darwin-arm64"), "half")
	chosen, err := chooseTargets(here())
	must(t, err)
	var said bytes.Buffer
	err = releaseInto(t.Context(), dir, module{Dir: source}, chosen, edition{version: "v1", commit: "c"}, &said, &said)
	if err == nil || !strings.Contains(err.Error(), "pitcrew for "+here()) || !strings.Contains(said.String(), "MB") {
		t.Errorf("%v, and it said %q", err, &said)
	}
	if d := cmp.Diff(before, staged(t, dir)); d != "" {
		t.Errorf("(-before +after):\n%.500s", d)
	}
}

// TestFilesOfAReleaseAreAlwaysNamed cuts the move of a release short: what is there then is named, so the next one removes it.
func TestFilesOfAReleaseAreAlwaysNamed(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, unfinished, sumsName), "00  a\n00  b\n")
	write(t, filepath.Join(dir, unfinished, "a"), "a")
	if err := takePlace(dir, []string{"a", "b"}); err == nil {
		t.Error("a file that is missing is moved")
	}
	if d := cmp.Diff(map[string]string{"a": "a", sumsName: "00  a\n00  b\n"}, staged(t, dir)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if err := clearRelease(dir); err != nil || len(staged(t, dir)) > 0 {
		t.Errorf("%v, %v is left", err, staged(t, dir))
	}
}

func TestATargetIsBuiltOnce(t *testing.T) {
	got, err := chooseTargets("linux/arm64,linux/amd64,linux/arm64")
	if want := []target{{"linux", "arm64"}, {"linux", "amd64"}}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

func TestAWrongReleaseIsOneLine(t *testing.T) {
	for want, args := range map[string][]string{
		`no target "plan9/386", only [linux/amd64 linux/arm64 darwin/amd64 darwin/arm64]`: {"release", "-target", "plan9/386"},
		`release takes no "pitstop"`:         {"release", "pitstop"},
		`not defined: -verfy`:                {"release", "-verfy"},
		`the version "a b" may have letters`: {"release", "-version", "a b"},
	} {
		var said, faults bytes.Buffer
		if code := run(t.Context(), args, &said, &faults); code != exitUsage || strings.Count(faults.String(), "\n") != 1 || !strings.Contains(faults.String(), want) {
			t.Errorf("%q: exit code %d, %q, want one line with %q", args, code, &faults, want)
		}
	}
}
