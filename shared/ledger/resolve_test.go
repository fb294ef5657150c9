package ledger_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
)

// deletion loses the slice and returns the body of the request to delete it, as it was sent.
func (l *loop) deletion(t *testing.T) []byte {
	t.Helper()
	l.requested(t)
	return l.sent.events[0].Data
}

// resolve resolves a body, and returns the warnings of that.
func (l *loop) resolve(t *testing.T, body []byte) (r events.RecreateRequested, warnings []map[string]any) {
	t.Helper()
	var b bytes.Buffer
	l.Log = slog.New(slog.NewJSONHandler(&b, &slog.HandlerOptions{Level: slog.LevelWarn}))
	received, err := events.DecodeRequest(events.TypeRecreateRequested, body)
	must(t, err)
	_, r, err = ledger.Resolve[events.RecreateRequested](t.Context(), l.Advancer, received)
	must(t, err)
	for raw := range strings.Lines(b.String()) {
		var line map[string]any
		must(t, json.Unmarshal([]byte(raw), &line))
		delete(line, "time")
		warnings = append(warnings, line)
	}
	return r, warnings
}

func (l *loop) change(t *testing.T, change func(w *incident.Workload)) {
	t.Helper()
	w, rev := l.mustLoad(t, workload)
	change(&w)
	l.mustSave(t, w, rev)
}

func TestABodyThatDiffersIsToldAndNotObeyed(t *testing.T) {
	for name, c := range map[string]struct {
		// old is replaced by forged in the body, and where there is nothing to replace forged is put before it.
		old, forged, fields string
		told                bool
	}{
		"as it was sent":    {},
		"another zone":      {`"zone":"us-west4-a","spec"`, `"zone":"us-east5-b","spec"`, "zone", true},
		"a field more":      {`"spec"`, `"accelerator":"v5p-2048","spec"`, "accelerator", true},
		"a field less":      {`,"spec":"abc"`, ``, "spec", true},
		"two":               {`"attempt":1`, `"attempt":2,"queued_resource":"q"`, "attempt, queued_resource", true},
		"another type":      {`"spec":"abc"`, `"spec":{}`, "unreadable", true},
		"words of its own":  {`"spec"`, `"forged":1,"spec"`, "", true},
		"another form only": {``, ` `, "", true},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLoop(t, memory)
			sent := l.deletion(t)
			want, err := events.DecodeRecreateRequested(sent)
			must(t, err)
			forged := strings.Replace(string(sent), c.old, c.forged, 1)
			if c.told && forged == string(sent) {
				t.Fatalf("nothing is forged in %s", sent)
			}
			got, warnings := l.resolve(t, []byte(forged))
			if d := cmp.Diff(want, got); d != "" {
				t.Errorf("resolved (-sent +resolved):\n%s", d)
			}
			var told []map[string]any
			if c.told {
				told = []map[string]any{{
					"level": "WARN", "msg": "request body differs", "action": "delete", "workload": workload,
					"incident": want.Incident, "epoch": float64(want.Epoch), "slice": "llama-8b",
					"fields": c.fields, "code": "body_differs",
				}}
			}
			if d := cmp.Diff(told, warnings); d != "" {
				t.Errorf("logged (-want +got):\n%s", d)
			}
		})
	}
}

// TestADocumentThatMovedOnIsNoDifference: the request is as the document says by now, and its body is the one that was
// sent.
func TestADocumentThatMovedOnIsNoDifference(t *testing.T) {
	l := newLoop(t, memory)
	body := l.deletion(t)
	l.change(t, func(w *incident.Workload) { w.Slices[0].Spec = "newer" })
	got, warnings := l.resolve(t, body)
	if got.Spec != "newer" || warnings != nil {
		t.Errorf("spec %q, logged %v", got.Spec, warnings)
	}
}

// TestATaskOfTheReleaseBeforeIsNotCompared: it has stored no digest.
func TestATaskOfTheReleaseBeforeIsNotCompared(t *testing.T) {
	l := newLoop(t, memory)
	body := l.deletion(t)
	l.change(t, func(w *incident.Workload) { w.Effects[0].Digest = "" })
	if _, warnings := l.resolve(t, append([]byte(" "), body...)); warnings != nil {
		t.Errorf("logged %v", warnings)
	}
}

// TestWhatIsSentAgainIsComparedWithThat: every request has an epoch of its own, and its own body.
func TestWhatIsSentAgainIsComparedWithThat(t *testing.T) {
	l := newLoop(t, memory)
	l.deletion(t)
	l.now = l.now.Add(bounds.RequestFor + time.Minute)
	if _, err := l.Advance(t.Context(), workload, evidence.Ticked{}); err != nil {
		t.Fatal(err)
	}
	again := l.sent.events[len(l.sent.events)-1]
	r, warnings := l.resolve(t, again.Data)
	if len(l.sent.events) != 2 || r.Attempt != 2 || warnings != nil {
		t.Errorf("%d requests, attempt %d, logged %v", len(l.sent.events), r.Attempt, warnings)
	}
}

func TestARequestOfAnotherFunctionIsNotResolved(t *testing.T) {
	l := newLoop(t, memory)
	received, err := events.DecodeRequest(events.TypeRecreateRequested, l.deletion(t))
	must(t, err)
	if _, _, err := ledger.Resolve[events.RecoveryRequested](t.Context(), l.Advancer, received); !fault.IsPermanent(err) {
		t.Errorf("error %v, want a permanent one", err)
	}
}
