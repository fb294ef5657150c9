package peers

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/agree"
	"pitstop.internal/shared/checkpoint"
)

// ear is a worker 0 that notes the statuses that it hears and the addresses that it refuses.
type ear struct {
	*Server
	key     Key
	heard   []agree.Phase
	refused []string
}

func newEar(peers ...string) *ear {
	e := &ear{key: NewKey()}
	e.Server = NewServer("demo/llama", peers, func(s agree.Status) { e.heard = append(e.heard, s.Phase) })
	e.SetKey(e.key)
	e.Hold = 0
	e.Refused = func(err error) { e.refused = append(e.refused, err.Error()) }
	e.Publish(agree.Plan{Version: "a.1", Attempt: 1, Run: true})
	return e
}

// send sends a question with a signature; without one it is unsigned.
func (e *ear) send(t *testing.T, question []byte, signature string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, bytes.NewReader(question))
	if signature != "" {
		r.Header.Set(signatureHeader, signature)
	}
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	return w
}

// say sends a signed question of worker 1.
func (e *ear) say(t *testing.T, m message) *httptest.ResponseRecorder {
	t.Helper()
	q := question(t, m)
	return e.send(t, q, e.key.sign(questionDomain, q))
}

func question(t *testing.T, m message) []byte {
	t.Helper()
	if m.Workload == "" {
		m.Workload = "demo/llama"
	}
	m.Status.Worker, m.Status.Host = 1, "h"
	q, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// TestForgedWordsChangeNothing: worker 1 runs attempt 1, and a stranger has seen its messages.
func TestForgedWordsChangeNothing(t *testing.T) {
	for _, c := range []struct {
		name string
		// forge makes a question and its signature of the last word that was heard.
		forge  func(e *ear, q []byte) (forged []byte, signature string)
		code   int
		refuse bool
	}{
		{"unsigned", func(_ *ear, q []byte) ([]byte, string) { return q, "" }, http.StatusUnauthorized, true},
		{"signed with another key", func(_ *ear, q []byte) ([]byte, string) { return q, NewKey().sign(questionDomain, q) }, http.StatusForbidden, true},
		{"signed with no key", func(_ *ear, q []byte) ([]byte, string) { return q, Key(nil).sign(questionDomain, q) }, http.StatusForbidden, true},
		{"signed as an answer", func(e *ear, q []byte) ([]byte, string) { return q, e.key.sign(answerDomain, q) }, http.StatusForbidden, true},
		{"a word that was heard", func(e *ear, q []byte) ([]byte, string) { return q, e.key.sign(questionDomain, q) }, http.StatusConflict, false},
		{"a word of another attempt", func(e *ear, q []byte) ([]byte, string) {
			return bytes.Replace(q, []byte(`"attempt":1`), []byte(`"attempt":2`), 1), e.key.sign(questionDomain, q)
		}, http.StatusForbidden, true},
		{"a later word", func(e *ear, q []byte) ([]byte, string) {
			return bytes.Replace(q, []byte(`"word":7`), []byte(`"word":8`), 1), e.key.sign(questionDomain, q)
		}, http.StatusForbidden, true},
		{"another phase", func(e *ear, q []byte) ([]byte, string) {
			return bytes.Replace(q, []byte(`"running"`), []byte(`"idle"`), 1), e.key.sign(questionDomain, q)
		}, http.StatusForbidden, true},
		{"a word of another workload", func(e *ear, q []byte) ([]byte, string) {
			q = bytes.Replace(q, []byte(`demo/llama`), []byte(`demo/other`), 1)
			return q, e.key.sign(questionDomain, q)
		}, http.StatusConflict, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newEar()
			m := message{Voice: "a", Word: 7, Status: agree.Status{Phase: agree.Running, Attempt: 1}}
			m.Challenge = e.say(t, m).Body.String()
			if code := e.say(t, m).Code; code != http.StatusOK {
				t.Fatalf("answer %d", code)
			}
			before := e.workers[1]
			forged, signature := c.forge(e, question(t, m))
			for range 3 {
				if w := e.send(t, forged, signature); w.Code != c.code {
					t.Errorf("answer %d: %s", w.Code, w.Body)
				}
			}
			if !slices.Equal(e.heard, []agree.Phase{agree.Running}) || !e.workers[1].at.Equal(before.at) || e.workers[1].word != before.word {
				t.Errorf("heard %v, and worker 1 is %+v", e.heard, e.workers[1])
			}
			if want := map[bool]int{true: 1}[c.refuse]; len(e.refused) != want {
				t.Errorf("told of it %d times: %q", len(e.refused), e.refused)
			}
		})
	}
}

// TestAWordOfAFormerLifeIsNotHeardAgain: of the crew of worker 1, or of worker 0. It said then that nothing runs there,
// which would restart all workers now.
func TestAWordOfAFormerLifeIsNotHeardAgain(t *testing.T) {
	e := newEar()
	former := message{Voice: "a", Word: 1, Status: agree.Status{Phase: agree.Idle}}
	former.Challenge = e.say(t, former).Body.String()
	recorded := question(t, former)
	replay := func() int { return e.send(t, recorded, e.key.sign(questionDomain, recorded)).Code }
	if code := replay(); code != http.StatusOK {
		t.Fatalf("answer %d", code)
	}
	now := message{Voice: "b", Word: 1, Status: agree.Status{Phase: agree.Running, Attempt: 1}}
	w := e.say(t, now)
	if w.Code != http.StatusUnauthorized || w.Body.String() == former.Challenge {
		t.Fatalf("answer %d: %s", w.Code, w.Body)
	}
	now.Challenge = w.Body.String()
	if code := e.say(t, now).Code; code != http.StatusOK {
		t.Fatalf("answer %d", code)
	}
	want := []agree.Phase{agree.Idle, agree.Running}
	if code := replay(); code != http.StatusUnauthorized || !slices.Equal(e.heard, want) {
		t.Errorf("a former life of worker 1's crew: answer %d, heard %v", code, e.heard)
	}
	// Words without a challenge, which begin every life, are heard by none.
	now.Challenge = ""
	now.Status.Phase = agree.Idle
	if code := e.say(t, now).Code; code != http.StatusUnauthorized || !slices.Equal(e.heard, want) {
		t.Errorf("answer %d, heard %v", code, e.heard)
	}
	again := newEar() // worker 0's crew has begun anew
	again.key = e.key
	again.SetKey(e.key)
	if code := again.send(t, recorded, e.key.sign(questionDomain, recorded)).Code; code != http.StatusUnauthorized || len(again.heard) > 0 {
		t.Errorf("a former life of worker 0's crew: answer %d, heard %v", code, again.heard)
	}
}

// recorder is a program between a worker and worker 0 that keeps the answers.
type recorder struct {
	http.Handler
	mu      sync.Mutex
	answers []*httptest.ResponseRecorder
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, q *http.Request) {
	a := httptest.NewRecorder()
	r.Handler.ServeHTTP(a, q)
	r.mu.Lock()
	r.answers = append(r.answers, a)
	r.mu.Unlock()
	play(w, a)
}

// play gives a recorded answer.
func play(w http.ResponseWriter, a *httptest.ResponseRecorder) {
	w.Header().Set(signatureHeader, a.Header().Get(signatureHeader))
	w.WriteHeader(a.Code)
	_, _ = w.Write(a.Body.Bytes()) //nolint:errcheck // the worker is looked at
}

// client is a worker that speaks to a handler.
func client(t *testing.T, k Key, h http.Handler) *Client {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	c := NewClient("demo/llama", strings.TrimPrefix(s.URL, "http://"))
	c.SetKey(k)
	c.Retry = time.Millisecond
	c.Say(agree.Status{Worker: 1, Phase: agree.Running, Attempt: 1})
	return c
}

// TestAnAnswerToAnotherQuestionIsNotBelieved: a program that listens at worker 0's port may have seen real answers: the end of
// another training in the same directory, the end that another worker got, a challenge.
func TestAnAnswerToAnotherQuestionIsNotBelieved(t *testing.T) {
	e := newEar()
	e.Publish(agree.Plan{Version: "a.2", Over: true})
	r := &recorder{Handler: e}
	first := client(t, e.key, r)
	if p, err := first.ask(t.Context(), ""); err != nil || !p.Over {
		t.Fatalf("%+v, %v", p, err)
	}
	if len(r.answers) != 2 || r.answers[0].Code != http.StatusUnauthorized || r.answers[1].Code != http.StatusOK {
		t.Fatalf("%+v", r.answers)
	}
	for _, a := range r.answers {
		fake := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { play(w, a) })
		for who, c := range map[string]*Client{"another worker": client(t, e.key, fake), "the worker itself, later": first} {
			c.address = client(t, e.key, fake).address
			challenge := c.challenge
			if p, err := c.ask(t.Context(), ""); !errors.Is(err, ErrUnsigned) || p.Over || c.challenge != challenge {
				t.Errorf("%s, answer %d: %+v, %v", who, a.Code, p, err)
			}
		}
	}
}

// TestAReplayedEndEndsNobody: a worker that runs asks a fake worker 0 again and again, takes nothing from it, and goes
// on when the real one is back.
func TestAReplayedEndEndsNobody(t *testing.T) {
	e := newEar()
	e.Publish(agree.Plan{Version: "a.2", Over: true})
	r := &recorder{Handler: e}
	if _, err := client(t, e.key, r).ask(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	end := r.answers[1]
	genuine := newEar()
	genuine.SetKey(e.key)
	asked := 0
	c := client(t, e.key, http.HandlerFunc(func(w http.ResponseWriter, q *http.Request) {
		if asked++; asked <= 5 {
			play(w, end)
			return
		}
		genuine.ServeHTTP(w, q)
	}))
	before := c.Heard()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var faults []string
	var plans []agree.Plan
	c.Run(ctx, func(p agree.Plan) {
		plans = append(plans, p)
		cancel()
	}, func(err error) {
		if err != nil && !c.Heard().Equal(before) {
			t.Error("a fake worker 0 counts as heard")
		}
		faults = append(faults, fmt.Sprint(err))
	})
	if len(plans) != 1 || plans[0].Over || !plans[0].Run {
		t.Errorf("%+v", plans)
	}
	if len(faults) != 2 || !strings.Contains(faults[0], "its answer is not believed") || faults[1] != "<nil>" {
		t.Errorf("%q", faults)
	}
}

// TestAnAnswerThatIsNotBelievedIsToldAfterAnotherFailure: worker 0 was away before another program took its port.
func TestAnAnswerThatIsNotBelievedIsToldAfterAnotherFailure(t *testing.T) {
	asked := 0
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	c := client(t, NewKey(), http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		switch asked++; asked {
		case 2, 3:
			return // an answer, and no signature
		case 5:
			cancel()
		}
		panic(http.ErrAbortHandler)
	}))
	var faults []error
	c.Run(ctx, func(agree.Plan) { t.Error("it was told a plan") }, func(err error) { faults = append(faults, err) })
	if len(faults) != 2 || errors.Is(faults[0], ErrUnsigned) || !errors.Is(faults[1], ErrUnsigned) {
		t.Errorf("%v", faults)
	}
}

// TestPartsOfASignatureAreNotMovedIntoEachOther: their lengths are signed, too.
func TestPartsOfASignatureAreNotMovedIntoEachOther(t *testing.T) {
	k := NewKey()
	if k.sign("d", []byte("ab"), []byte("c")) == k.sign("d", []byte("a"), []byte("bc")) || k.sign("d", []byte("a")) == k.sign("da") {
		t.Error("two lists of parts have one signature")
	}
	if !k.signed(k.sign("d", []byte("a")), "d", []byte("a")) || Key(nil).signed(Key(nil).sign("d"), "d") {
		t.Error("a key does not know its own signature, or there is one without a key")
	}
}

// TestRefusedWordsAreNotToldInAFlood: a stranger may have many addresses.
func TestRefusedWordsAreNotToldInAFlood(t *testing.T) {
	e := newEar()
	for n := range 100 {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader("{}"))
		r.RemoteAddr = fmt.Sprintf("10.0.0.%d:1", n)
		e.ServeHTTP(httptest.NewRecorder(), r)
	}
	if len(e.refused) != refusedMost || !strings.HasPrefix(e.refused[0], "10.0.0.0 speaks unsigned, and is not heard: its pitcrew is older") {
		t.Errorf("%d: %q", len(e.refused), e.refused)
	}
}

// TestWhatWasOvertakenOnItsWayIsNotHeard: a worker that has something new to say gives up its last message, and both
// may arrive in either order.
func TestWhatWasOvertakenOnItsWayIsNotHeard(t *testing.T) {
	e := newEar()
	challenge := func(voice string) string { return e.say(t, message{Voice: voice}).Body.String() }
	first := challenge("a")
	for _, m := range []message{
		{Voice: "a", Word: 3, Challenge: first, Status: agree.Status{Phase: agree.Ended, Attempt: 1}},
		{Voice: "a", Word: 2, Challenge: first, Status: agree.Status{Phase: agree.Running, Attempt: 1}},
	} {
		e.say(t, m)
	}
	e.say(t, message{Voice: "b", Word: 1, Challenge: challenge("b"), Status: agree.Status{Phase: agree.Idle}})
	if want := []agree.Phase{agree.Ended, agree.Idle}; !slices.Equal(e.heard, want) {
		t.Errorf("heard %v, want %v", e.heard, want)
	}
}

func TestWhoIsNoWorkerIsNotHeard(t *testing.T) {
	e := newEar("10.0.0.1", "10.0.0.2")
	for name, c := range map[string]struct {
		method, path, body, from string
		want                     int
	}{
		"a stranger":        {http.MethodPost, "/pitcrew/v1/status", `{"workload":"demo/llama"}`, "10.0.0.9:1", http.StatusForbidden},
		"another path":      {http.MethodPost, "/", `{"workload":"demo/llama"}`, "10.0.0.2:1", http.StatusNotFound},
		"another method":    {http.MethodGet, "/pitcrew/v1/status", ``, "10.0.0.2:1", http.StatusNotFound},
		"no status":         {http.MethodPost, "/pitcrew/v1/status", `[`, "10.0.0.2:1", http.StatusBadRequest},
		"no such worker":    {http.MethodPost, "/pitcrew/v1/status", `{"workload":"demo/llama","status":{"worker":2}}`, "10.0.0.2:1", http.StatusConflict},
		"worker 0 itself":   {http.MethodPost, "/pitcrew/v1/status", `{"workload":"demo/llama","status":{"worker":0}}`, "10.0.0.2:1", http.StatusConflict},
		"too much":          {http.MethodPost, "/pitcrew/v1/status", strings.Repeat(" ", 1<<20), "10.0.0.2:1", http.StatusBadRequest},
		"another workload":  {http.MethodPost, "/pitcrew/v1/status", `{"workload":"demo/other"}`, "10.0.0.2:1", http.StatusConflict},
		"nobody's address":  {http.MethodPost, "/pitcrew/v1/status", `{"workload":"demo/llama"}`, "?", http.StatusForbidden},
		"in the other form": {http.MethodPost, "/pitcrew/v1/status", `{"workload":"demo/other"}`, "[::ffff:10.0.0.2]:1", http.StatusConflict},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequestWithContext(t.Context(), c.method, c.path, strings.NewReader(c.body))
		r.RemoteAddr = c.from
		r.Header.Set(signatureHeader, e.key.sign(questionDomain, []byte(c.body)))
		e.ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s: %d, want %d", name, w.Code, c.want)
		}
	}
	if len(e.heard) > 0 {
		t.Errorf("heard %v", e.heard)
	}
}

func TestTheFirstKeyIsEverybodys(t *testing.T) {
	dir := t.TempDir()
	b := Board{Store: checkpoint.NewFiles("/", time.Now), Directory: "file://" + dir}
	keys := make(chan Key, 8)
	for range cap(keys) {
		go func() {
			k, err := b.Key(t.Context())
			if err != nil {
				t.Error(err)
			}
			keys <- k
		}()
	}
	first := <-keys
	for range cap(keys) - 1 {
		if k := <-keys; !bytes.Equal(k, first) || len(k) != keyBytes {
			t.Errorf("keys of %d and %d bytes", len(first), len(k))
		}
	}
	path := filepath.Join(dir, Folder, checkpoint.CrewKeyName)
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v: others may read it", info.Mode(), err)
	}
	raw, err := os.ReadFile(path)
	var o struct{ Schema int }
	if err != nil || json.Unmarshal(raw, &o) != nil || o.Schema != events.Schema {
		t.Errorf("%v: schema %d", err, o.Schema)
	}
}

func TestAKeyThatIsNoneIsNamedWithTheWayOut(t *testing.T) {
	dir := t.TempDir()
	b := Board{Store: checkpoint.NewFiles("/", time.Now), Directory: "file://" + dir}
	path := filepath.Join(dir, Folder, checkpoint.CrewKeyName)
	if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil { //nolint:gosec // as a crew makes it
		t.Fatal(err)
	}
	for content, want := range map[string]string{
		"":                              "delete it",
		"{":                             "delete it",
		`{"schema":1}`:                  "delete it",
		`{"schema":1,"key":"c2hvcnQ="}`: "delete it",
		`{"key":"` + strings.Repeat("A", 43) + `="}`:            "delete it",
		`{"schema":2,"key":"` + strings.Repeat("A", 43) + `="}`: "upgrade",
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		k, err := b.Key(t.Context())
		if k != nil || err == nil || !strings.Contains(err.Error(), "file://"+path) || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "AAAA") {
			t.Errorf("%q: %v, %v", content, k, err)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if k, err := b.Key(t.Context()); err != nil || len(k) != keyBytes {
		t.Errorf("%v", err)
	}
}
