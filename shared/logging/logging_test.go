package logging_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"pitstop.internal/shared/logging"
)

func TestLineHasCloudLoggingsKeys(t *testing.T) {
	for level, severity := range map[slog.Level]string{
		slog.LevelDebug: "DEBUG", slog.LevelInfo: "INFO", slog.LevelWarn: "WARNING", slog.LevelError: "ERROR",
	} {
		var out bytes.Buffer
		log := logging.New(&out, slog.LevelDebug)
		log.Log(t.Context(), level, "event rejected", slog.Any("error", errors.New("100% full")), slog.Group("g", "message", "inner"), logging.Trace("demo", "abc"))
		if n := strings.Count(out.String(), "\n"); n != 1 {
			t.Errorf("%v: %d lines, want 1", level, n)
		}
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatalf("%v: %v", level, err)
		}
		for key, want := range map[string]any{
			"severity": severity, "message": "event rejected", "error": "100% full", "logging.googleapis.com/trace": "projects/demo/traces/abc",
		} {
			if line[key] != want {
				t.Errorf("%v: %s = %v, want %v", level, key, line[key], want)
			}
		}
		source, ok := line["logging.googleapis.com/sourceLocation"].(map[string]any)
		if line, isString := source["line"].(string); !ok || !isString || line == "" {
			t.Errorf("%v: sourceLocation = %v, want a line as a string", level, source)
		}
		if g, ok := line["g"].(map[string]any); !ok || g["message"] != "inner" {
			t.Errorf("%v: a key inside a group was renamed: %v", level, line["g"])
		}
	}
}

func TestNoTraceNoAttribute(t *testing.T) {
	if a := logging.Trace("", "abc"); !a.Equal(slog.Attr{}) {
		t.Errorf("Trace without a project = %v", a)
	}
}
