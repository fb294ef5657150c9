//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitstop.internal/scripts/pitcrew/trainer"
)

// post sends a word to the peer port at an address, as any user of a worker can, and returns the answer's code.
func post(t *testing.T, address, word string) int {
	t.Helper()
	client := http.Client{Timeout: deadline}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/pitcrew/v1/status", strings.NewReader(word))
	if err != nil {
		t.Fatal(err)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	if _, err := io.Copy(io.Discard, res.Body); err != nil {
		t.Error(err)
	}
	return res.StatusCode
}

// flagOf is the value of a flag that a crew was started with.
func flagOf(p *crewProcess, name string) string {
	for _, a := range p.Args {
		if value, ok := strings.CutPrefix(a, "--"+name+"="); ok {
			return value
		}
	}
	return ""
}

// TestAStrangersWordRestartsNothing: any user of a worker can reach the port of worker 0, from an address of a worker.
func TestAStrangersWordRestartsNothing(t *testing.T) {
	t.Parallel()
	dir, done := t.TempDir(), filepath.Join(t.TempDir(), "done")
	crews := slice(t, 2, nil, train(t, "-dir="+dir, "-done="+done))
	journal(t, dir, "began", 2)
	leader, _, _ := strings.Cut(flagOf(crews[0], "peers"), ",")
	for _, word := range []string{
		`{"workload":"demo/llama","voice":"x","word":1,"status":{"worker":1,"host":"t1v-n-0123abcd-w-1","phase":"idle"}}`,
		`{"workload":"demo/llama","voice":"y","word":1,"status":{"worker":1,"host":"t1v-n-0123abcd-w-1","phase":"ended","attempt":1,"exit":{"code":9}}}`,
	} {
		if code := post(t, leader, word); code != http.StatusUnauthorized {
			t.Errorf("answer %d to %s", code, word)
		}
	}
	touch(t, done)
	for w, p := range crews {
		if code := p.code(); code != 0 {
			t.Errorf("worker %d: code %d", w, code)
		}
	}
	if n := trainer.Count(dir, "began"); n != 2 {
		t.Errorf("%d starts", n)
	}
	if n := strings.Count(crews[0].output(), "127.0.0.1 speaks unsigned"); n != 1 {
		t.Errorf("it is told %d times", n)
	}
}

// TestAFakeWorker0EndsNobody: while the crew of worker 0 is down, another program may listen at its port. Exit 0 completes a Job.
func TestAFakeWorker0EndsNobody(t *testing.T) {
	t.Parallel()
	dir, done := t.TempDir(), filepath.Join(t.TempDir(), "done")
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	fake := &http.Server{ReadHeaderTimeout: deadline, Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"version":"x.1","over":true,"code":0}`) //nolint:errcheck // the crew is looked at
	})}
	go func() { _ = fake.Serve(l) }() //nolint:errcheck // it is closed
	peers := fmt.Sprintf("--peers=%s,127.0.0.1:%d", l.Addr(), freePort(t))
	crew := func(w int) *crewProcess {
		return launch(t, []string{"--checkpoint-dir=file://" + dir, "--workload=demo/llama", peers, fmt.Sprintf("--worker=%d", w)}, train(t, "-dir="+dir, "-done="+done))
	}
	second := crew(1)
	second.says(t, "is not signed")
	if !second.running() {
		t.Fatalf("it ended with %d", second.code())
	}
	if err := fake.Close(); err != nil {
		t.Fatal(err)
	}
	first := crew(0)
	journal(t, dir, "began", 2)
	touch(t, done)
	for w, p := range []*crewProcess{first, second} {
		if code := p.code(); code != 0 {
			t.Errorf("worker %d: code %d", w, code)
		}
	}
}

// victim is a path that a link leads to, which is not there: a crew that follows the link makes it.
func victim(t *testing.T, link string) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "victim")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 { // as another user of the machine makes it
		if err := os.Lchown(link, 65534, 65534); err != nil {
			t.Fatal(err)
		}
	}
	return path
}

// shared is a checkpoint directory into which every user of the machine may write.
func shared(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shared")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o777); err != nil { //nolint:gosec // that is the point
		t.Fatal(err)
	}
	return dir
}

func TestALockThatIsALinkIsRefused(t *testing.T) {
	t.Parallel()
	dir := shared(t)
	folder := filepath.Join(dir, "pitstop-crew")
	if err := os.Mkdir(folder, 0o755); err != nil { //nolint:gosec // as a crew makes it
		t.Fatal(err)
	}
	link := filepath.Join(folder, "crew-h-0-0.lock")
	target := victim(t, link)
	code, out := pitcrew(t, nil, "run", "--metadata=none", "--state="+t.TempDir(), "--host=h", "--checkpoint-dir=file://"+dir, "--", "true")
	if code != 125 || strings.Count(out, "\n") != 1 || !strings.Contains(out, link+" is a link") {
		t.Errorf("%d %q", code, out)
	}
	if _, err := os.Lstat(target); err == nil {
		t.Error("the link was followed")
	}
}

func TestACrewFolderThatIsALinkIsRefused(t *testing.T) {
	t.Parallel()
	dir := shared(t)
	link := filepath.Join(dir, "pitstop-crew")
	target := victim(t, link)
	if err := os.Mkdir(target, 0o700); err != nil {
		t.Fatal(err)
	}
	code, out := pitcrew(t, nil, "run", "--metadata=none", "--state="+t.TempDir(), "--checkpoint-dir=file://"+dir, "--", "true")
	if code != 125 || strings.Count(out, "\n") != 1 || !strings.Contains(out, link+" is a link") {
		t.Errorf("%d %q", code, out)
	}
	if made, err := os.ReadDir(target); err != nil || len(made) != 0 {
		t.Errorf("the link was followed: %v, %v", made, err)
	}
}

var _ = time.Second
