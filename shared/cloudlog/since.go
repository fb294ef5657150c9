package cloudlog

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	api "google.golang.org/api/logging/v2"
)

// maxPages bounds how much of a log Since reads.
const maxPages = 20

// Since reads the entries of a project that a filter passes from a time on, as a sink would send them, the oldest first. More
// than maxPages pages are an error: otherwise the rest would be missing without notice.
//
// Permission: logging.logEntries.list on the project.
func (l *Log) Since(ctx context.Context, project, filter string, since time.Time) ([][]byte, error) {
	var entries [][]byte
	token := ""
	for range maxPages {
		page, next, err := l.Page(ctx, project, filter, since, token)
		if err != nil {
			return nil, err
		}
		entries = append(entries, page...)
		if token = next; token == "" {
			return entries, nil
		}
	}
	return entries, fmt.Errorf("read log of %s: more than %d entries since %s", project, maxPages*MaxEntries, since.UTC().Format(time.RFC3339))
}

// Page reads one page of what Since reads, in one call: the first without a token, each other with the token that came with the
// page before it. The last page comes without a token. A page may be empty and not the last.
func (l *Log) Page(ctx context.Context, project, filter string, since time.Time, token string) (entries [][]byte, next string, err error) {
	svc, err := l.service(ctx)
	if err != nil {
		return nil, "", err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := svc.Entries.List(&api.ListLogEntriesRequest{
		ResourceNames: []string{"projects/" + project}, OrderBy: "timestamp asc", PageSize: MaxEntries, PageToken: token,
		Filter: `timestamp>="` + since.UTC().Format(time.RFC3339Nano) + `" AND (` + filter + ")",
	}).Context(ctx).Do()
	if err != nil {
		return nil, "", fmt.Errorf("read log of %s: %w", project, plain(err))
	}
	for _, e := range answer.Entries {
		raw, err := json.Marshal(e)
		if err != nil {
			return nil, "", fmt.Errorf("read log of %s: %w", project, err)
		}
		entries = append(entries, raw)
	}
	return entries, answer.NextPageToken, nil
}
