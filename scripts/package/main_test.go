package main

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/scripts/package/process"
	"pitstop.internal/shared/breadth"
)

// checkout is a small module with two functions, made in a new folder.
func checkout(t *testing.T) module {
	t.Helper()
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":                    "module example.test\n\ngo 1.26\n",
		"go.sum":                    "",
		"functions/a/function.go":   "package a\n\nimport _ \"example.test/shared/used\"\n\nfunc init() { trigger.Register(\"HandleA\", nil) }\n",
		"functions/a/handler.go":    "package a\n",
		"functions/a/a_test.go":     "package a\n\nimport _ \"example.test/shared/unused\"\n",
		"functions/a/testdata/x":    "a test reads it",
		"functions/b/function.go":   "package b\n\nimport _ \"example.test/shared/unused\"\n\nfunc init() { trigger.Register(\"HandleB\", nil) }\n",
		"shared/used/used.go":       "package used\n\nimport _ \"embed\"\n\n//go:embed text.txt\nvar Text string\n\n//go:embed used.go\nvar Source string\n",
		"shared/used/text.txt":      "embedded",
		"shared/used/notes.txt":     "not embedded",
		"shared/used/on_linux.go":   "package used\n",
		"shared/used/on_windows.go": "package used\n",
		"shared/unused/unused.go":   "package unused\n",
		"scripts/x/main.go":         "package main\n",
	} {
		write(t, filepath.Join(dir, name), content)
	}
	return module{Path: "example.test", Dir: dir}
}

func write(t *testing.T, name, content string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(name), 0o750))
	must(t, os.WriteFile(name, []byte(content), 0o600))
}

// packed packs the function a and returns its archive and the staged tree, by name.
func packed(t *testing.T, m module) (zipped []byte, tree map[string]string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "build")
	n, zipped, err := pack(t.Context(), m, "a", out)
	must(t, err)
	if stored, err := os.ReadFile(filepath.Join(out, "a.zip")); err != nil || !bytes.Equal(stored, zipped) {
		t.Errorf("the archive is not the stored one: %v", err)
	}
	tree = staged(t, filepath.Join(out, "a"))
	z, err := zip.NewReader(bytes.NewReader(zipped), int64(len(zipped)))
	must(t, err)
	var names []string
	for _, f := range z.File {
		names = append(names, f.Name)
	}
	if d := cmp.Diff(slices.Sorted(maps.Keys(tree)), names); d != "" || n != len(names) {
		t.Errorf("%d files, the archive (-staged +archive):\n%s", n, d)
	}
	return zipped, tree
}

// staged reads a folder.
func staged(t *testing.T, dir string) map[string]string {
	t.Helper()
	tree, fsys := map[string]string{}, os.DirFS(dir)
	err := fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(fsys, name)
		tree[name] = string(data)
		return err
	})
	must(t, err)
	return tree
}

func TestAnArchiveHoldsWhatTheFunctionIsBuiltFrom(t *testing.T) {
	_, tree := packed(t, checkout(t))
	want := []string{
		"function.go", "functions/a/function.go", "functions/a/handler.go", "go.mod", "go.sum",
		"shared/used/on_linux.go", "shared/used/text.txt", "shared/used/used.go",
	}
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(tree))); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
}

func TestArchivesAreTheSameBytes(t *testing.T) {
	m, other := checkout(t), checkout(t)
	first, _ := packed(t, m)
	again, _ := packed(t, m)
	// Another checkout: elsewhere, at another time, under another umask.
	err := filepath.WalkDir(other.Dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		long := time.Date(2001, 2, 3, 4, 5, 6, 7, time.UTC)
		return errors.Join(os.Chtimes(name, long, long), os.Chmod(name, 0o777)) //nolint:gosec // it is to differ
	})
	must(t, err)
	elsewhere, _ := packed(t, other)
	if !bytes.Equal(first, again) || !bytes.Equal(first, elsewhere) {
		t.Error("the same files made archives that differ")
	}
}

func TestAFunctionChangesWithItsOwnFilesOnly(t *testing.T) {
	m := checkout(t)
	before, was := packed(t, m)
	write(t, filepath.Join(m.Dir, "functions/b/handler.go"), "package b\n")
	write(t, filepath.Join(m.Dir, "shared/unused/unused.go"), "package unused\n\nvar New int\n")
	write(t, filepath.Join(m.Dir, "functions/a/a_test.go"), "package a\n")
	after, is := packed(t, m)
	if d := cmp.Diff(was, is); d != "" || !bytes.Equal(before, after) {
		t.Errorf("the archive changed with a file that is not in it (-before +after):\n%s", d)
	}
	write(t, filepath.Join(m.Dir, "shared/used/text.txt"), "embedded anew")
	if after, _ := packed(t, m); bytes.Equal(before, after) {
		t.Error("the archive did not change with a file that is in it")
	}
}

// TestAnUpgradeOfOneFunctionChangesOneArchive is what an upgrade comes to: an archive is deployed under its hash, so a
// function whose archive stays the same is not deployed again.
func TestAnUpgradeOfOneFunctionChangesOneArchive(t *testing.T) {
	m := checkout(t)
	archives := func() map[string]string {
		all := map[string]string{}
		for _, name := range []string{"a", "b"} {
			_, zipped, err := pack(t.Context(), m, name, filepath.Join(t.TempDir(), "build"))
			must(t, err)
			all[name] = string(zipped)
		}
		return all
	}
	before := archives()
	write(t, filepath.Join(m.Dir, "functions/b/handler.go"), "package b\n\nvar better int\n")
	after := archives()
	if before["a"] != after["a"] || before["b"] == after["b"] {
		t.Errorf("changed: a %v, b %v; want b alone", before["a"] != after["a"], before["b"] != after["b"])
	}
}

func TestStagingTakesThePlaceOfWhatWasStaged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	content := root("example.test", "a")
	for _, files := range [][]file{{{"functions/a/old.go", nil}, {rootName, content}}, {{rootName, content}, {"functions/a/new.go", nil}}} {
		must(t, stage(dir, files))
	}
	want := map[string]string{rootName: string(content), "functions/a/new.go": ""}
	if d := cmp.Diff(want, staged(t, dir)); d != "" {
		t.Errorf("staged (-want +got):\n%s", d)
	}
}

func TestWhatWasNotStagedHereIsLeftAlone(t *testing.T) {
	for _, name := range []string{"function.go", "notes.txt"} {
		dir := t.TempDir()
		write(t, filepath.Join(dir, name), "package maintenance\n")
		if err := stage(dir, []file{{rootName, root("example.test", "a")}}); err == nil {
			t.Errorf("a folder with a foreign %s was staged over", name)
		}
		if d := cmp.Diff(map[string]string{name: "package maintenance\n"}, staged(t, dir)); d != "" {
			t.Errorf("the folder changed (-want +got):\n%s", d)
		}
	}
}

func TestRootFile(t *testing.T) {
	source := root("example.test", "maintenance")
	formatted, err := format.Source(source)
	must(t, err)
	if d := cmp.Diff(string(formatted), string(source)); d != "" {
		t.Errorf("it is not formatted (-formatted +generated):\n%s", d)
	}
	for _, want := range []string{"package function\n", `_ "` + framework + `"`, `_ "example.test/functions/maintenance"`} {
		if !strings.Contains(string(source), want) {
			t.Errorf("it lacks %s:\n%s", want, source)
		}
	}
}

func TestTheFunctionsOfThisRepository(t *testing.T) {
	out := t.TempDir()
	var said, faults bytes.Buffer
	if code := run(t.Context(), []string{"-out", out, "checkpoint"}, &said, &faults); code != 0 {
		t.Fatalf("exit code %d: %s", code, &faults)
	}
	if n := strings.Count(said.String(), "\n"); n != 1 || !strings.HasPrefix(said.String(), "checkpoint ") {
		t.Errorf("it said %q, want one line about checkpoint", &said)
	}
	names := slices.Sorted(maps.Keys(staged(t, filepath.Join(out, "checkpoint"))))
	for _, want := range []string{"function.go", "functions/checkpoint/handler.go", "shared/provider/cloudtpu/cloud.go", "go.sum"} {
		if !slices.Contains(names, want) {
			t.Errorf("%s is not in the archive", want)
		}
	}
	for _, name := range names {
		switch {
		case strings.HasSuffix(name, "_test.go"), strings.Contains(name, "testdata/"), strings.HasPrefix(name, "scripts/"),
			strings.Contains(name, "test/"), path.Dir(path.Dir(name)) == "functions" && path.Dir(name) != "functions/checkpoint":
			t.Errorf("%s is in the archive, which does not need it", name)
		}
	}
}

func TestEveryFunctionHasItsExam(t *testing.T) {
	m, err := findModule(t.Context())
	must(t, err)
	functions, err := process.Functions(m.Dir)
	must(t, err)
	for _, f := range functions {
		if _, err := questions(m, f.Name); err != nil {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
}

func TestWrongUsageIsOneLine(t *testing.T) {
	for name, args := range map[string][]string{
		"there is no function \"maintain\"": {"checkpoint", "maintain"},
		"not defined: -verfy":               {"-verfy"},
	} {
		var said, faults bytes.Buffer
		if code := run(t.Context(), args, &said, &faults); code != exitUsage {
			t.Errorf("%q: exit code %d, want %d", args, code, exitUsage)
		}
		if n := strings.Count(faults.String(), "\n"); n != 1 || !strings.Contains(faults.String(), name) || said.Len() > 0 {
			t.Errorf("%q: it said %q and %q, want one line with %q", args, &said, &faults, name)
		}
	}
	t.Run("outside of the repository", func(t *testing.T) {
		t.Chdir(t.TempDir())
		var said, faults bytes.Buffer
		if code := run(t.Context(), nil, &said, &faults); code != exitUsage || strings.Count(faults.String(), "\n") != 1 {
			t.Errorf("exit code %d and %q, want %d and one line", code, &faults, exitUsage)
		}
	})
}

func TestAnswersAreJudged(t *testing.T) {
	q := question{status: 500, log: []string{left}, says: []string{"ledger: write"}}
	good := `{"severity":"WARNING","message":"event left for redelivery","error":"ledger: write parked: no"}` + "\n"
	if err := q.judge(500, []byte(good)); err != nil {
		t.Errorf("the right answer: %v", err)
	}
	for name, c := range map[string]struct {
		status int
		log    string
	}{
		"another status":     {200, good},
		"another line":       {500, strings.Replace(good, "WARNING", "ERROR", 1)},
		"another reason":     {500, strings.Replace(good, "write", "read", 1)},
		"one line too many":  {500, good + good},
		"no line":            {500, ""},
		"a line of no JSON":  {500, "Function error: no\n" + good},
		"a line cut in half": {500, good[:20]},
	} {
		if err := q.judge(c.status, []byte(c.log)); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want an error of one line", name, err)
		}
	}
}

func TestPitcrewIsOneStaticProgram(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a program")
	}
	dir := t.TempDir()
	folders := []string{filepath.Join(dir, "first"), filepath.Join(dir, "second")}
	if !breadth.Full() {
		folders = folders[:1] // TestAReleaseIsTheSameBytes builds it twice, too
	}
	var said, faults bytes.Buffer
	for _, out := range folders {
		if code := run(t.Context(), []string{"-verify", "-out", out, "pitcrew"}, &said, &faults); code != 0 {
			t.Fatalf("code %d: %s", code, &faults)
		}
	}
	lines := strings.Split(strings.TrimSpace(said.String()), "\n")
	if len(lines) != len(folders) || len(slices.Compact(slices.Clone(lines))) != 1 || !strings.Contains(lines[0], "sha256") {
		t.Errorf("two builds differ: %q", lines)
	}
	if names, err := os.ReadDir(filepath.Join(dir, "first")); err != nil || len(names) != 1 || names[0].Name() != "pitcrew" {
		t.Errorf("%v, %v", names, err)
	}
}

// TestAFunctionCallsTheEndpointOfItsEnvironment builds a function as it is deployed and has a tick come: it calls the API that
// TPU_ENDPOINT names, and one that would be called in the clear is refused in one line.
func TestAFunctionCallsTheEndpointOfItsEnvironment(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a function")
	}
	ctx, dir := t.Context(), t.TempDir()
	m, err := findModule(ctx)
	must(t, err)
	_, _, err = pack(ctx, m, "patrol", filepath.Join(dir, "out"))
	must(t, err)
	must(t, build(ctx, m, filepath.Join(dir, "out", "patrol"), dir))
	database, err := emptyDatabase(ctx)
	must(t, err)
	defer database.Stop()
	world, err := noCloud(dir, database.address)
	must(t, err)
	called := make(chan string, 100)
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called <- r.URL.Path
		http.NotFound(w, r)
	}))
	defer fake.Close()
	tick := bytes.ReplaceAll(push(nil, nil), []byte("2026-11-12T02:14:08Z"), []byte(time.Now().UTC().Format(time.RFC3339)))
	for _, c := range []struct {
		endpoint, says string
		calls          bool
	}{
		{endpoint: fake.URL, calls: true},
		{endpoint: "http://tpu.example.com/", says: "TPU_ENDPOINT"},
	} {
		p, err := start(ctx, dir, "HandlePatrol", append(append(process.Environment(), world...), "TPU_ENDPOINT="+c.endpoint))
		must(t, err)
		_ = p.ask(ctx, question{body: tick}) //nolint:errcheck // what it answers is not asked here
		said, err := os.ReadFile(p.log)
		must(t, err)
		must(t, p.end())
		if !strings.Contains(string(said), c.says) {
			t.Errorf("%s: it does not say %q: %s", c.endpoint, c.says, said)
		}
		select {
		case path := <-called:
			if !c.calls || !strings.HasPrefix(path, "/v2alpha1/projects/demo/locations") {
				t.Errorf("%s: it called %s", c.endpoint, path)
			}
		default:
			if c.calls {
				t.Errorf("it called nothing: %s", said)
			}
		}
	}
}

// TestASignalLosesNoAnswerOfAFunction builds a function as it is deployed and ends its process while 200 requests wait for the API:
// a real client gets the whole answer to each of them, and to what comes later a refusal.
func TestASignalLosesNoAnswerOfAFunction(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds a function")
	}
	const requests = 200
	ctx, dir := t.Context(), t.TempDir()
	m, err := findModule(ctx)
	must(t, err)
	_, _, err = pack(ctx, m, "logevent", filepath.Join(dir, "out"))
	must(t, err)
	must(t, build(ctx, m, filepath.Join(dir, "out", "logevent"), dir))
	database, err := emptyDatabase(ctx)
	must(t, err)
	defer database.Stop()
	world, err := noCloud(dir, database.address)
	must(t, err)
	waiting, release := make(chan struct{}, 10*requests), make(chan struct{})
	fake := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		waiting <- struct{}{}
		<-release
		http.NotFound(w, r)
	}))
	defer fake.Close()
	p, err := start(ctx, dir, "HandleLogEvent", append(append(process.Environment(), world...), "TPU_ENDPOINT="+fake.URL))
	must(t, err)

	client := &http.Client{Transport: &http.Transport{}}
	ask := func(method string, body []byte) (int, error) {
		r, err := http.NewRequestWithContext(ctx, method, p.url, bytes.NewReader(body))
		if err != nil {
			return 0, err
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := client.Do(r)
		if err != nil {
			return 0, err
		}
		defer resp.Body.Close() //nolint:errcheck // it is read to its end
		_, err = io.Copy(io.Discard, resp.Body)
		return resp.StatusCode, err
	}
	entry := []byte(`{"insertId":"i1","timestamp":"2026-11-12T02:14:08Z","logName":"projects/demo/logs/cloudaudit.googleapis.com%2Factivity",
"resource":{"type":"audited_resource","labels":{"service":"tpu.googleapis.com","method":"google.cloud.tpu.v2alpha1.Tpu.DeleteNode"}},
"protoPayload":{"serviceName":"tpu.googleapis.com","methodName":"google.cloud.tpu.v2alpha1.Tpu.DeleteNode",
"resourceName":"projects/demo/locations/us-west4-a/nodes/llama-8b","authenticationInfo":{"principalEmail":"ann@example.com"}}}`)
	answers := make(chan error, requests)
	for range requests {
		go func() {
			status, err := ask(http.MethodPost, push(entry, nil))
			if err == nil && status != http.StatusInternalServerError { // nothing can be stored here, so it has to come again
				err = fmt.Errorf("status %d", status)
			}
			answers <- err
		}()
	}
	for range requests {
		<-waiting
	}
	must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	for status := 0; status != http.StatusServiceUnavailable; { // until the signal has arrived it is told that it is wrong
		status, err = ask(http.MethodGet, nil)
		must(t, err)
	}
	close(release)
	for range requests {
		if err := <-answers; err != nil {
			t.Error(err)
		}
	}
	if err := <-p.ended; err != nil {
		t.Errorf("the process ended with %v", err)
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
