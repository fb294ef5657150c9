package cloudlog

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	api "google.golang.org/api/logging/v2"
)

// maxPages bounds how much of a log is read at once.
const maxPages = 20

// Since reads the entries of a project that a filter passes from a time on, as a sink would send them, the oldest first. More
// than maxPages pages are an error: otherwise the rest would be missing without notice.
//
// Permission: logging.logEntries.list on the project.
func (l *Log) Since(ctx context.Context, project, filter string, since time.Time) ([][]byte, error) {
	svc, err := l.service(ctx)
	if err != nil {
		return nil, err
	}
	query := &api.ListLogEntriesRequest{
		ResourceNames: []string{"projects/" + project}, OrderBy: "timestamp asc", PageSize: MaxEntries,
		Filter: `timestamp>="` + since.UTC().Format(time.RFC3339Nano) + `" AND (` + filter + ")",
	}
	var entries [][]byte
	for range maxPages {
		answer, err := l.page(ctx, svc, query)
		if err != nil {
			return nil, fmt.Errorf("read log of %s: %w", project, err)
		}
		for _, e := range answer.Entries {
			raw, err := json.Marshal(e)
			if err != nil {
				return nil, fmt.Errorf("read log of %s: %w", project, err)
			}
			entries = append(entries, raw)
		}
		if answer.NextPageToken == "" {
			return entries, nil
		}
		query.PageToken = answer.NextPageToken
	}
	return entries, fmt.Errorf("read log of %s: more than %d entries since %s", project, maxPages*MaxEntries, since.UTC().Format(time.RFC3339))
}

func (l *Log) page(ctx context.Context, svc *api.Service, query *api.ListLogEntriesRequest) (*api.ListLogEntriesResponse, error) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := svc.Entries.List(query).Context(ctx).Do()
	if err != nil {
		return nil, plain(err)
	}
	return answer, nil
}
