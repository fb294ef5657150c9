package cloud

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"

	"cloud.google.com/go/logging/apiv2/loggingpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
)

// write is what entries.write takes. What stands beside the entries stands for what an entry does not say itself.
// https://cloud.google.com/logging/docs/reference/v2/rest/v2/entries/write
type write struct {
	LogName        string            `json:"logName"`
	Resource       json.RawMessage   `json:"resource"`
	Labels         map[string]string `json:"labels"`
	Entries        []map[string]any  `json:"entries"`
	PartialSuccess bool              `json:"partialSuccess"`
	DryRun         bool              `json:"dryRun"`
}

// written takes the entries that somebody writes.
func (c *Cloud) written(body []byte) error {
	var w write
	if err := json.Unmarshal(body, &w); err != nil {
		return fmt.Errorf("invalid JSON payload received: %w", err)
	}
	present := c.clock.Now().UTC().Format(time.RFC3339Nano)
	var entries [][]byte
	for i, e := range w.Entries {
		if e == nil {
			return fmt.Errorf("entry %d is null", i)
		}
		if e["logName"] == nil {
			e["logName"] = w.LogName
		}
		if e["logName"] == "" {
			return fmt.Errorf("a log entry has no log_name")
		}
		if e["resource"] == nil && w.Resource != nil {
			e["resource"] = w.Resource
		}
		if len(w.Labels) > 0 {
			labels := map[string]any{}
			for k, v := range w.Labels {
				labels[k] = v
			}
			if own, ok := e["labels"].(map[string]any); ok {
				maps.Copy(labels, own)
			}
			e["labels"] = labels
		}
		if e["timestamp"] == nil {
			e["timestamp"] = present
		}
		if e["insertId"] == nil {
			e["insertId"] = "written-" + strconv.FormatUint(c.inserted.Add(1), 36)
		}
		e["receiveTimestamp"] = present
		for _, name := range []string{"logName", "insertId", "timestamp"} {
			text, valid := e[name].(string)
			if name == "timestamp" {
				_, err := time.Parse(time.RFC3339Nano, text)
				valid = err == nil
			}
			if !valid {
				return fmt.Errorf("invalid value at entries[%d].%s: %v", i, name, e[name])
			}
		}
		entry, err := json.Marshal(e)
		if err != nil {
			return err
		}
		entries = append(entries, entry)
	}
	if w.DryRun {
		return nil
	}
	for _, e := range entries {
		c.Enter(e)
	}
	return nil
}

// Enter brings an entry into the log, and to whom the sinks bring it.
func (c *Cloud) Enter(raw []byte) {
	c.Log.Write(raw)
	if c.logged != nil {
		c.logged(raw)
	}
}

// serveLogs serves entries.list and entries.write over HTTP.
func (c *Cloud) serveLogs(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(io.LimitReader(r.Body, 10<<20))
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if r.Method != http.MethodPost || r.URL.Path != "/v2/entries:write" {
		r.Body = io.NopCloser(bytes.NewReader(filtered(body)))
		c.Log.ServeHTTP(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	if err := c.written(body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		answer(w, map[string]any{"error": map[string]any{"code": http.StatusBadRequest, "message": err.Error(), "status": "INVALID_ARGUMENT"}})
		return
	}
	answer(w, map[string]any{})
}

// filtered is a question for the log with a filter. Google takes none for all entries; the log refuses it, because Pitstop must not ask so.
func filtered(question []byte) []byte {
	var q map[string]json.RawMessage
	if json.Unmarshal(question, &q) != nil || q == nil {
		return question
	}
	var filter string
	if raw, given := q["filter"]; given && json.Unmarshal(raw, &filter) != nil || strings.TrimSpace(filter) != "" {
		return question
	}
	q["filter"] = json.RawMessage(`"NOT logName=\"none\""`)
	with, err := json.Marshal(q)
	if err != nil {
		panic("cloud: " + err.Error()) // it was JSON before
	}
	return with
}

func answer(w io.Writer, v any) {
	raw, err := json.Marshal(v)
	if err != nil {
		panic("cloud: " + err.Error()) // the answers are maps of strings and numbers
	}
	_, _ = w.Write(raw) //nolint:errcheck // the caller sees that it is short
}

// logWriter takes entries by gRPC, as Google's client for programs writes them.
type logWriter struct {
	loggingpb.UnimplementedLoggingServiceV2Server
	cloud *Cloud
}

func newLogWriter(c *Cloud) *grpc.Server {
	s := grpc.NewServer()
	loggingpb.RegisterLoggingServiceV2Server(s, logWriter{cloud: c})
	return s
}

// WriteLogEntries implements loggingpb.LoggingServiceV2Server.
func (l logWriter) WriteLogEntries(_ context.Context, r *loggingpb.WriteLogEntriesRequest) (*loggingpb.WriteLogEntriesResponse, error) {
	body, err := protojson.Marshal(r)
	if err == nil {
		err = l.cloud.written(body)
	}
	if err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	return &loggingpb.WriteLogEntriesResponse{}, nil
}
