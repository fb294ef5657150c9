// Package logging writes structured lines as Cloud Logging reads them from a function's standard output.
// https://cloud.google.com/logging/docs/structured-logging
package logging

import (
	"io"
	"log/slog"
	"strconv"
	"time"
)

// New returns a logger of JSON lines with Cloud Logging's keys.
func New(w io.Writer, level slog.Leveler) *slog.Logger {
	return slog.New(slog.NewJSONHandler(w, &slog.HandlerOptions{AddSource: true, Level: level, ReplaceAttr: replace}))
}

// replace names the standard keys as Cloud Logging wants them. Only keys at the top level are standard ones.
func replace(groups []string, a slog.Attr) slog.Attr {
	if len(groups) > 0 {
		return a
	}
	switch a.Key {
	case slog.LevelKey:
		return slog.String("severity", severity(a.Value))
	case slog.MessageKey:
		a.Key = "message"
	case slog.TimeKey:
		return slog.String("time", a.Value.Time().UTC().Format(time.RFC3339Nano))
	case slog.SourceKey:
		if s, ok := a.Value.Any().(*slog.Source); ok {
			return slog.Group("logging.googleapis.com/sourceLocation", //nolint:sloglint // Cloud Logging's key
				slog.String("file", s.File), slog.String("line", strconv.Itoa(s.Line)), slog.String("function", s.Function))
		}
	}
	return a
}

func severity(v slog.Value) string {
	level, ok := v.Any().(slog.Level)
	switch {
	case !ok:
		return "DEFAULT"
	case level >= slog.LevelError:
		return "ERROR"
	case level >= slog.LevelWarn:
		return "WARNING"
	case level >= slog.LevelInfo:
		return "INFO"
	}
	return "DEBUG"
}

// Trace is the attribute that ties a line to a trace of the project.
func Trace(project, trace string) slog.Attr {
	if project == "" || trace == "" {
		return slog.Attr{}
	}
	return slog.String("logging.googleapis.com/trace", "projects/"+project+"/traces/"+trace) //nolint:sloglint // likewise
}
