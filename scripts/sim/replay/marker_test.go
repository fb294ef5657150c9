package replay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"pitstop.internal/functions/notify"
	"pitstop.internal/scripts/sim/replay"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
)

const (
	marker = "ghp_m4rk3r"
	// leaky is the start-up script with a token in it, as JSON writes it.
	leaky = `-- python3 train.py\n# export TOKEN=\"` + marker + `\"`
)

// TestNoValueOfMetadataGetsOut plays every recorded incident with a token in each start-up script, which the Cloud TPU API
// and the audit log repeat in every error. It is in no log line, no message, no notification, and no document outside the
// second database.
func TestNoValueOfMetadataGetsOut(t *testing.T) {
	var created, repeated atomic.Int64
	t.Cleanup(func() {
		if created.Load() == 0 || repeated.Load() == 0 {
			t.Errorf("the token was in %d creations and in %d errors: this shows nothing", created.Load(), repeated.Load())
		}
	})
	for _, r := range some(t, 2, "preemption") {
		t.Run(r.Name, func(t *testing.T) {
			t.Parallel()
			k := &leaks{seen: map[string]string{}}
			tap := &ledgertest.Tap{Before: func(_ context.Context, c ledgertest.Call) error {
				if c.Write {
					k.look("a document of "+c.Collection, fmt.Sprint(*c.Doc))
				}
				return nil
			}}
			var log bytes.Buffer
			story, err := replay.Run(t.Context(), r.Name, r.Scenario, r.Records, replay.Options{Options: world.Options{
				Policy: r.Policy, Log: &log,
				Hooks: world.Hooks{
					Tell:    func(func() time.Time) []notify.Target { return []notify.Target{k} },
					API:     func(next http.RoundTripper) http.RoundTripper { return leaking{next, &created, &repeated} },
					Handler: func(_ string, next http.Handler) http.Handler { return k.handler(next) },
					Ledger: func(database string, open ledger.Opener) ledger.Opener {
						if database != "ledger" { // another one is there to keep values
							return open
						}
						return tap.On(open)
					},
				},
			}})
			must(t, err)
			k.look("the log", log.String())
			k.look("the story", fmt.Sprintf("%+v", story.Lines))
			for where, what := range k.seen {
				t.Errorf("%s has it: %s", where, what)
			}
			ended(t, story)
		})
	}
}

// leaking puts the token into what the Cloud TPU API shows, and has each of its errors repeat it.
type leaking struct {
	next              http.RoundTripper
	created, repeated *atomic.Int64
}

func (l leaking) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil && r.Method == http.MethodPost {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if bytes.Contains(body, []byte(marker)) {
			l.created.Add(1)
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
	}
	answer, err := l.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, err
	}
	body = bytes.ReplaceAll(body, []byte(`-- python3 train.py"`), []byte(leaky+`"`))
	if legacy := strings.HasPrefix(r.URL.Path, "/v1/"); !legacy && bytes.Contains(body, []byte(`"message":`)) { // which have no metadata
		body = repeat(body, l.repeated)
	}
	answer.Body, answer.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	answer.Header.Del("Content-Length")
	return answer, nil
}

// repeat has each error in a JSON text repeat the script.
func repeat(text []byte, times *atomic.Int64) []byte {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v any
	if d.Decode(&v) != nil {
		return text
	}
	var script string
	if json.Unmarshal([]byte(`"`+leaky+`"`), &script) != nil {
		return text
	}
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			if message, ok := v["message"].(string); ok && v["code"] != nil {
				v["message"] = message + " (metadata: " + script + ")"
				times.Add(1)
			}
			for _, inner := range v {
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(v)
	out, err := json.Marshal(v)
	if err != nil {
		return text
	}
	return out
}

// leaks are the places where the token was seen, each with its surroundings.
type leaks struct {
	mu   sync.Mutex
	seen map[string]string
}

func (k *leaks) look(where, text string) {
	if i := strings.Index(text, marker); i >= 0 {
		k.mu.Lock()
		defer k.mu.Unlock()
		k.seen[where] = text[max(0, i-200):min(len(text), i+50)]
	}
}

// handler looks at the messages that a function is handed, and has the errors in log entries repeat the token.
func (k *leaks) handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		var push map[string]any
		if json.Unmarshal(body, &push) == nil {
			if m, ok := push["message"].(map[string]any); ok {
				var data []byte
				if raw, err := json.Marshal(m["data"]); err == nil && json.Unmarshal(raw, &data) == nil {
					k.look("a message", string(data))
					if bytes.Contains(data, []byte(`"protoPayload"`)) {
						m["data"] = repeat(data, new(atomic.Int64))
						if changed, err := json.Marshal(push); err == nil {
							body = changed
						}
					}
				}
			}
		}
		r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
		next.ServeHTTP(w, r)
	})
}

// Name and the methods below are those of a target that hears everything.
func (*leaks) Name() string { return "people" }
func (*leaks) Knows() bool  { return true }
func (k *leaks) Send(_ context.Context, m notify.Message) (string, error) {
	k.look("the notifications", fmt.Sprintf("%+v", m))
	return "", nil
}
