//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pitstop.internal/scripts/pitcrew/metadata/metadatatest"
	"pitstop.internal/scripts/pitcrew/trainer"
	"pitstop.internal/shared/checkpoint/buckettest"
)

// post sends a word to the peer port at an address, as any user of a worker can, and returns the answer's code.
func post(t *testing.T, address, word string) int {
	t.Helper()
	client := http.Client{Timeout: deadline}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+address+"/pitcrew/v1/status", strings.NewReader(word))
	must(t, err)
	res, err := client.Do(req)
	must(t, err)
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

// TestAFakeWorker0EndsNobody: while the crew of worker 0 is down, another program may listen at its port. Exit 0
// completes a Job.
func TestAFakeWorker0EndsNobody(t *testing.T) {
	t.Parallel()
	dir, done := t.TempDir(), filepath.Join(t.TempDir(), "done")
	var lc net.ListenConfig
	l, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
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
	must(t, fake.Close())
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
	must(t, os.Symlink(path, link))
	if os.Geteuid() == 0 { // as another user of the machine makes it
		must(t, os.Lchown(link, 65534, 65534))
	}
	return path
}

// shared is a checkpoint directory into which every user of the machine may write.
func shared(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "shared")
	must(t, os.Mkdir(dir, 0o700))
	must(t, os.Chmod(dir, 0o777)) //nolint:gosec // that is the point
	return dir
}

// TestALinkInASharedFolderIsRefused: in the place of the crews' folder, and of a lock in it.
func TestALinkInASharedFolderIsRefused(t *testing.T) {
	t.Parallel()
	for path, folder := range map[string]bool{"pitstop-crew": true, "pitstop-crew/crew-h-0-0.lock": false} {
		dir := shared(t)
		link := filepath.Join(dir, path)
		must(t, os.MkdirAll(filepath.Dir(link), 0o755)) //nolint:gosec // as a crew makes it
		target := victim(t, link)
		if folder {
			must(t, os.Mkdir(target, 0o700))
		}
		code, out := pitcrew(t, nil, "run", "--metadata=none", "--state="+t.TempDir(), "--host=h", "--checkpoint-dir=file://"+dir, "--", "true")
		if code != 125 || strings.Count(out, "\n") != 1 || !strings.Contains(out, link+" is a link") {
			t.Errorf("%d %q", code, out)
		}
		if made, err := os.ReadDir(target); len(made) > 0 || (err == nil) != folder {
			t.Errorf("%s: the link was followed: %v, %v", path, made, err)
		}
	}
}

// TestAStateFolderThatIsALinkIsRefused where others may write; elsewhere a link belongs to its owner.
func TestAStateFolderThatIsALinkIsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		above string
		code  int
	}{{shared(t), 125}, {t.TempDir(), 0}} {
		link := filepath.Join(c.above, "state")
		target := victim(t, link)
		must(t, os.Mkdir(target, 0o700))
		code, out := pitcrew(t, nil, "run", "--metadata=none", "--state="+link, "--", "true")
		if code != c.code || (code != 0) != strings.Contains(out, link+" is a link") {
			t.Errorf("%d %q", code, out)
		}
		if made, err := os.ReadDir(target); err != nil || (len(made) == 0) != (c.code != 0) {
			t.Errorf("%v, %v", made, err)
		}
	}
}

// keyFileOf writes a key file.
func keyFileOf(t *testing.T, content string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "key")
	must(t, os.WriteFile(path, []byte(content), 0o600))
	must(t, os.Chmod(path, mode))
	return path
}

const aKey = "0123456789abcdef0123456789abcdef\n"

func TestAKeyFileThatOthersKnowIsRefused(t *testing.T) {
	t.Parallel()
	good := keyFileOf(t, aKey, 0o600)
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(good, link))
	type refusal struct{ name, path, want string }
	all := []refusal{
		{"others may read it", keyFileOf(t, aKey, 0o644), "may be read by other users (mode 0644)"},
		{"its group may read it", keyFileOf(t, aKey, 0o640), "may be read by other users (mode 0640)"},
		{"a link", link, link + " is a link"},
		{"a folder", t.TempDir(), "is no file"},
		{"short", keyFileOf(t, "secret\n", 0o600), "holds 6 bytes"},
		{"missing", "/does/not/exist", "/does/not/exist"},
	}
	if os.Geteuid() == 0 {
		path := keyFileOf(t, aKey, 0o600)
		must(t, os.Chown(path, 65534, 65534))
		all = append(all, refusal{"another user's", path, "belongs to user 65534, who knows it"})
	}
	for _, c := range all {
		for _, command := range []string{"run", "doctor"} {
			code, out := pitcrew(t, nil, command, "--metadata=none", "--state="+t.TempDir(), "--checkpoint-dir=file://"+t.TempDir(), "--peers=127.0.0.1,127.0.0.1", "--worker=1",
				"--peer-key="+c.path, "--", "true")
			if want := map[string]int{"run": 2, "doctor": 1}[command]; code != want || !strings.Contains(out, c.want) || command == "run" && strings.Count(out, "\n") != 1 {
				t.Errorf("%s, %s: %d %q", command, c.name, code, out)
			}
		}
	}
}

// TestSeveralWorkersWithoutAKeyAreRefused: nobody could believe them. One alone needs no key, and reads none.
func TestSeveralWorkersWithoutAKeyAreRefused(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	env := []string{"STATE_DIRECTORY=" + home}
	args := []string{"run", "--metadata=none", "--peers=127.0.0.1,127.0.0.1", "--worker=1", "--", "true"}
	code, out := pitcrew(t, env, args...)
	if code != 2 || strings.Count(out, "\n") != 1 || !strings.Contains(out, filepath.Join(home, "key")) || !strings.Contains(out, "head -c 32 /dev/urandom") {
		t.Errorf("%d %q", code, out)
	}
	must(t, os.WriteFile(filepath.Join(home, "key"), []byte("short"), 0o600))
	if code, out := pitcrew(t, env, args...); code != 2 || !strings.Contains(out, "holds 5 bytes") {
		t.Errorf("%d %q", code, out)
	}
	dir := t.TempDir()
	if code, out := pitcrew(t, env, "run", "--metadata=none", "--checkpoint-dir=file://"+dir, "--", "true"); code != 0 {
		t.Errorf("one worker: %d %q", code, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "pitstop-crew", "key.json")); err == nil {
		t.Error("one worker made a key")
	}
}

// TestWorkersTrainTogetherUnderAKeyFile, without a checkpoint directory. A worker with another key is not heard.
func TestWorkersTrainTogetherUnderAKeyFile(t *testing.T) {
	t.Parallel()
	log, done := t.TempDir(), filepath.Join(t.TempDir(), "done")
	peers := fmt.Sprintf("--peers=127.0.0.1:%d,127.0.0.1:%d", freePort(t), freePort(t))
	crew := func(w int, key string) *crewProcess {
		return launch(t, []string{peers, fmt.Sprintf("--worker=%d", w), "--peer-key=" + keyFileOf(t, key, 0o600)}, train(t, "-log="+log, "-done="+done))
	}
	first := crew(0, aKey)
	other := crew(1, strings.ToUpper(aKey))
	other.says(t, "worker 0 has another key")
	first.says(t, "does not sign with the key of this worker")
	other.signal(syscall.SIGTERM)
	other.code()
	if n := trainer.Count(log, "began"); n != 0 {
		t.Errorf("%d starts", n)
	}
	second := crew(1, aKey)
	journal(t, log, "began", 2)
	touch(t, done)
	for w, p := range []*crewProcess{first, second} {
		if code := p.code(); code != 0 {
			t.Errorf("worker %d: code %d", w, code)
		}
	}
}

// TestCrewsWaitForAKeyThatIsOne: they name once the fault of the key beside the checkpoints, and go on when a
// person has deleted it.
func TestCrewsWaitForAKeyThatIsOne(t *testing.T) {
	t.Parallel()
	dir, done := t.TempDir(), filepath.Join(t.TempDir(), "done")
	path := filepath.Join(dir, "pitstop-crew", "key.json")
	must(t, os.Mkdir(filepath.Dir(path), 0o755)) //nolint:gosec // as a crew makes it
	must(t, os.WriteFile(path, []byte(`{"schema":1,"key":"c2hvcnQ="}`), 0o600))
	crews := slice(t, 2, nil, train(t, "-dir="+dir, "-done="+done))
	const told = "key.json holds no key: delete it, and the crews make another"
	for _, p := range crews {
		p.says(t, told)
	}
	crews[0].says(t, "waiting for 1 of 2: worker 1 (")
	for w, p := range crews {
		if n := strings.Count(p.output(), told); n != 1 || !p.running() {
			t.Errorf("worker %d told it %d times", w, n)
		}
	}
	if n := trainer.Count(dir, "began"); n != 0 {
		t.Errorf("%d starts", n)
	}
	must(t, os.Remove(path))
	journal(t, dir, "began", 2)
	touch(t, done)
	for w, p := range crews {
		if code := p.code(); code != 0 {
			t.Errorf("worker %d: code %d", w, code)
		}
	}
	crews[1].says(t, "key of the crews: it works again")
}

// TestCrewsTakeTheKeyThatReplacedADeletedOne: a person who empties a folder may delete the key. The next crew makes another,
// and the crews that run take it without a restart.
func TestCrewsTakeTheKeyThatReplacedADeletedOne(t *testing.T) {
	t.Parallel()
	for _, killed := range some(2, []int{0, 1}) {
		dir, done := t.TempDir(), filepath.Join(t.TempDir(), "done")
		crews := slice(t, 2, []string{"--worker-silence=1m", "--lease-unread=40s", "--lease-take-over=2m"}, train(t, "-dir="+dir, "-done="+done))
		journal(t, dir, "began", 2)
		leader, _, _ := strings.Cut(flagOf(crews[0], "peers"), ",")
		if code := post(t, leader, "{}"); code != http.StatusUnauthorized { // what is told once must not hide what follows
			t.Errorf("answer %d", code)
		}
		must(t, os.Remove(filepath.Join(dir, "pitstop-crew", "key.json")))
		crews[killed].signal(syscall.SIGKILL)
		crews[killed].code()
		crews[killed] = relaunch(t, crews[killed])
		crews[1].says(t, "its answer is not believed")
		crews[1].says(t, "pitcrew: worker 0 answers\n")
		touch(t, done)
		for w, p := range crews {
			if code := p.code(); code != 0 {
				t.Errorf("worker %d: code %d", w, code)
			}
		}
		if n := trainer.Count(dir, "began"); n != 2 {
			t.Errorf("%d starts", n)
		}
	}
}

// TestDoctorSaysWhoMaySpeak: under which key the workers speak, and who can take it.
func TestDoctorSaysWhoMaySpeak(t *testing.T) {
	t.Parallel()
	s := metadatatest.New("demo", "us-west4-a", "t1v-n-0123abcd-w-1", time.Now)
	s.TPU("llama", "v5litepod-16", 1, "127.0.0.1", "127.0.0.1")
	host, stop := s.Start()
	defer stop()
	bucket := httptest.NewServer(buckettest.New(time.Now, "doctor"))
	defer bucket.Close()
	open, closed, readable := shared(t), t.TempDir(), t.TempDir()
	folder := filepath.Join(readable, "pitstop-crew")
	content := `{"schema":1,"key":"` + strings.Repeat("A", 43) + `="}`
	must(t, os.Mkdir(folder, 0o755))                                                 //nolint:gosec // as a crew makes it
	must(t, os.WriteFile(filepath.Join(folder, "key.json"), []byte(content), 0o644)) //nolint:gosec // that is the point
	key := keyFileOf(t, aKey, 0o600)
	// Only root can try as another user.
	tried := "as root, doctor tries it"
	if os.Geteuid() == 0 {
		tried = "user 65534 of this machine reaches the metadata server"
	}
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{
			"a bucket",
			[]string{"--checkpoint-dir=gs://doctor/run"},
			[]string{"everybody who can read it can speak as a worker", tried},
		},
		{"a key file", []string{"--checkpoint-dir=gs://doctor/run", "--peer-key=" + key}, []string{"the workers sign them with the key in " + key}},
		{"a folder", []string{"--checkpoint-dir=file://" + closed}, []string{"which one user alone may read"}},
		{"a folder that others write", []string{"--checkpoint-dir=file://" + open}, []string{"other users may write into " + open + " (mode 0777)"}},
		{"a key that others read", []string{"--checkpoint-dir=file://" + readable}, []string{"key.json, which other users may read (mode 0644)"}},
		{"no key", nil, []string{"FAILED", "has neither a checkpoint directory nor"}},
	} {
		args := slices.Concat([]string{"doctor", "--metadata=" + host, "--state=" + t.TempDir(), "--report=none", "--storage-endpoint=" + bucket.URL + "/storage/v1/"}, c.args, []string{"--", "true"})
		_, out := pitcrew(t, []string{"STATE_DIRECTORY=" + t.TempDir()}, args...)
		for _, want := range c.want {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %s\nlacks %s", c.name, out, want)
			}
		}
	}
	// Where the server answers nobody, others are kept out.
	if code, out := pitcrew(t, nil, "reach-metadata", fmt.Sprintf("127.0.0.1:%d", freePort(t))); code != unreached {
		t.Errorf("%d %q", code, out)
	}
}

// TestInstallPlacesTheKey where run finds it, for the unit's user alone; on all workers the same one, and a new one
// each time.
func TestInstallPlacesTheKey(t *testing.T) {
	t.Parallel()
	placed := func(path string) string {
		t.Helper()
		info, err := os.Stat(path)
		if err != nil || info.Mode() != 0o600 {
			t.Fatalf("%v, %v", info, err)
		}
		k, err := readKeyFile(path, os.Geteuid())
		must(t, err)
		return string(k)
	}
	dir, env := aTPU(t)
	all := []string{"install", "--all-workers", "--user", "--node=llama", "--zone=us-west4-a"}
	var last string
	for range 2 {
		code, out := pitcrew(t, env, append(slices.Clone(all), "--", "sh", "train.sh")...)
		if code != 0 {
			t.Fatalf("%d %s", code, out)
		}
		first := placed(filepath.Join(dir, "0/state/key"))
		for w := range 4 {
			if placed(filepath.Join(dir, fmt.Sprint(w), "state/key")) != first {
				t.Errorf("worker %d has another key", w)
			}
			if _, err := os.Stat(filepath.Join(dir, fmt.Sprint(w), copiedKey)); err == nil {
				t.Errorf("worker %d: the copy is left", w)
			}
		}
		if first == last || strings.Contains(out, first) || strings.Contains(read(t, filepath.Join(dir, "calls")), first) {
			t.Error("the key is an old one, or is shown")
		}
		last = first
	}
	// A key of the user's is taken as it is; one that the flags of run name is left where it is.
	mine := keyFileOf(t, aKey, 0o600)
	if code, out := pitcrew(t, env, slices.Concat(all, []string{"--peer-key=" + mine, "--", "sh", "train.sh"})...); code != 0 || placed(filepath.Join(dir, "3/state/key")) != strings.TrimSpace(aKey) {
		t.Errorf("%d %s", code, out)
	}
	must(t, os.Remove(filepath.Join(dir, "3/state/key")))
	if code, out := pitcrew(t, env, slices.Concat(all, []string{"--", "--peer-key=" + mine, "--", "sh", "train.sh"})...); code != 0 {
		t.Errorf("%d %s", code, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "3/state/key")); err == nil {
		t.Error("a key is placed that run does not look for")
	}
	// For the machine, the folder may be the user's, who could have put a link there.
	root := t.TempDir()
	path := filepath.Join(root, "var/lib/pitcrew/key")
	must(t, os.MkdirAll(filepath.Dir(path), 0o755)) //nolint:gosec // as systemd makes it
	target := victim(t, path+".new")
	if code, out := pitcrew(t, nil, "install", "--root="+root, "--peer-key="+mine, "--", "sh", "train.sh"); code != 0 || placed(path) != strings.TrimSpace(aKey) {
		t.Errorf("%d %s", code, out)
	}
	if _, err := os.Lstat(target); err == nil {
		t.Error("the link was followed")
	}
	if code, out := pitcrew(t, nil, "install", "--root="+root, "--peer-key="+keyFileOf(t, aKey, 0o644), "--", "sh", "train.sh"); code != 2 || !strings.Contains(out, "may be read by other users") {
		t.Errorf("%d %s", code, out)
	}
}
