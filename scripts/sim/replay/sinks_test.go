package replay_test

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"strings"
	"testing"

	"pitstop.internal/events"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/logging"
	"pitstop.internal/shared/logging/loggingtest"
)

func sinks(t *testing.T) map[string]*loggingtest.Filter {
	t.Helper()
	out := map[string]*loggingtest.Filter{}
	for _, s := range events.Sinks(events.Accounts{}) {
		f, err := loggingtest.Parse(s.Filter)
		must(t, err)
		out[s.Name] = f
	}
	return out
}

// TestNoLineOfAFunctionPassesASink: what the functions say in a whole replay, as text and in the JSON that they write in
// the cloud, made an entry as Cloud Run makes it; and lines that repeat somebody else's entry, as a whole or in words.
func TestNoLineOfAFunctionPassesASink(t *testing.T) {
	breadth.Again(t)
	var said []string
	all := some(t, 3)
	for _, r := range all {
		said = append(said, strings.Split(string(played(t, r).log), "\n")...)
	}
	if len(said) < 100 {
		t.Fatalf("the functions wrote %d lines", len(said))
	}
	said = append(said, "SIGTERM caught at", "Job received termination signal (SIGTERM).", "JOB_STATE_FAILED")
	var payloads []map[string]any
	for _, text := range said {
		var line bytes.Buffer
		logging.New(&line, slog.LevelDebug).ErrorContext(t.Context(), "event rejected", "error", text)
		payloads = append(payloads, map[string]any{"textPayload": text}, map[string]any{"jsonPayload": json.RawMessage(line.Bytes())})
	}
	for _, r := range all {
		for _, rec := range r.Records {
			payloads = append(payloads, map[string]any{"jsonPayload": json.RawMessage(rec.Raw)})
		}
	}
	filters := sinks(t)
	for _, entry := range payloads {
		entry["logName"], entry["severity"] = "projects/demo/logs/run.googleapis.com%2Fstdout", "ERROR"
		entry["resource"] = map[string]any{"type": "cloud_run_revision", "labels": map[string]any{"service_name": "logevent", "location": "us-central1"}}
		raw, err := json.Marshal(entry)
		must(t, err)
		for name, f := range filters {
			if ok, err := f.Matches(raw); err != nil || ok {
				t.Fatalf("%s lets a function's own line through (%v):\n%s", name, err, raw)
			}
		}
	}
}

// TestEveryRecordedEntryPassesOneSink: a played entry reaches the pipeline in the cloud too, on the same topic.
func TestEveryRecordedEntryPassesOneSink(t *testing.T) {
	filters := sinks(t)
	for _, r := range recorded(t) {
		for _, rec := range r.Records {
			e, err := events.Read(rec.Raw)
			must(t, err)
			n := 0
			for _, s := range events.Sinks(events.Accounts{}) {
				ok, err := filters[s.Name].Matches(rec.Raw)
				must(t, err)
				if !ok {
					continue
				}
				n++
				want := events.TopicLogs
				if e.Kind == events.KindNotice {
					want = events.TopicNotices
				}
				if s.Topic != want {
					t.Errorf("%s passes %s to %q, want %s", rec.Where(), s.Name, s.Topic, want)
				}
			}
			if n != 1 {
				t.Errorf("%s passes %d sinks", rec.Where(), n)
			}
		}
	}
}
