// Package canary writes the entry that has to come back through Cloud Logging's sinks. It goes through the API and not
// through standard output, so that it takes the way of the entries that others write, and so that no line of a function
// ever passes a sink.
package canary

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/api/googleapi"
	"google.golang.org/api/logging/v2"
	"google.golang.org/api/option"

	"pitstop.internal/events"
)

// Writer writes canaries. It is safe for concurrent use.
//
// Permission: logging.logEntries.create on the project.
type Writer struct {
	opts []option.ClientOption

	mu      sync.Mutex
	service *logging.Service
}

// New makes a writer, which connects with these options at its first canary.
func New(opts ...option.ClientOption) *Writer { return &Writer{opts: opts} }

// timeout bounds a call: the generated client has no bound of its own.
const timeout = 30 * time.Second

// Write writes the canary of this ID into the log of a project. The same one twice is one entry.
// https://cloud.google.com/logging/docs/reference/v2/rest/v2/entries/write
func (w *Writer) Write(ctx context.Context, project, id string, at time.Time) error {
	service, err := w.connected(ctx)
	if err != nil {
		return fmt.Errorf("canary: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err = service.Entries.Write(&logging.WriteLogEntriesRequest{Entries: []*logging.LogEntry{{
		LogName:     "projects/" + project + "/logs/" + events.CanaryLog,
		Resource:    &logging.MonitoredResource{Type: "global", Labels: map[string]string{"project_id": project}},
		InsertId:    id,
		Timestamp:   at.UTC().Format(time.RFC3339Nano),
		JsonPayload: googleapi.RawMessage(`{"message":"Pitstop checks that log entries reach it"}`),
	}}}).Context(ctx).Do()
	if err != nil {
		return fmt.Errorf("write the canary of %s: %w", project, oneLine(err))
	}
	return nil
}

// oneLine folds the message of an API error, which may hold a body of many lines.
func oneLine(err error) error {
	var api *googleapi.Error
	if !errors.As(err, &api) {
		return err
	}
	return fmt.Errorf("answer %d: %s", api.Code, strings.Join(strings.Fields(api.Message), " "))
}

func (w *Writer) connected(ctx context.Context) (*logging.Service, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.service == nil {
		s, err := logging.NewService(context.WithoutCancel(ctx), w.opts...)
		if err != nil {
			return nil, err
		}
		w.service = s
	}
	return w.service, nil
}
