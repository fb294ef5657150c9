package cloudlog

import (
	"context"
	"fmt"
	"time"

	"google.golang.org/api/googleapi"
	api "google.golang.org/api/logging/v2"

	"pitstop.internal/events"
)

// WriteCanary writes the entry of this ID into the log of a project that has to come back through the sinks. The same one twice
// is one entry. It goes through the API, so that it takes the same way as other people's entries. Standard output would not do:
// no line of a function may pass a sink.
//
// Permission: logging.logEntries.create on the project.
// https://cloud.google.com/logging/docs/reference/v2/rest/v2/entries/write
func (l *Log) WriteCanary(ctx context.Context, project, id string, at time.Time) error {
	svc, err := l.service(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	_, err = svc.Entries.Write(&api.WriteLogEntriesRequest{Entries: []*api.LogEntry{{
		LogName:     "projects/" + project + "/logs/" + events.CanaryLog,
		Resource:    &api.MonitoredResource{Type: "global", Labels: map[string]string{"project_id": project}},
		InsertId:    id,
		Timestamp:   at.UTC().Format(time.RFC3339Nano),
		JsonPayload: googleapi.RawMessage(`{"message":"Pitstop checks that log entries reach it"}`),
	}}}).Context(ctx).Do()
	if err != nil {
		return fmt.Errorf("write the canary of %s: %w", project, plain(err))
	}
	return nil
}
