package world

import (
	"context"
	"encoding/json"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/functions/patrol"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/view"
)

// Call is one call of an API that a function makes, in the words of that API: tpu nodes.list.
type Call struct {
	Function, Service, Method string
	// Topic is where a publication goes, Object the URI of the object that is written or deleted in a bucket.
	Topic, Object string
}

type functionKey struct{}

// called tells of a call, if a function makes it and somebody listens.
func (w *World) called(ctx context.Context, c Call) {
	var ok bool
	if c.Function, ok = ctx.Value(functionKey{}).(string); ok && w.Hooks.Called != nil {
		w.Hooks.Called(c)
	}
}

// calling marks the calls in a context as made by the function of an entry point.
func calling(ctx context.Context, entry string) context.Context {
	for _, f := range Functions {
		if f.Entry == entry {
			return context.WithValue(ctx, functionKey{}, f.Name)
		}
	}
	return ctx
}

// overHTTP tells of the calls of a REST API.
func (w *World) overHTTP(service string, inner http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		object, _ := r.Context().Value(objectKey{}).(string)
		w.called(r.Context(), Call{Service: service, Method: restMethod(r.Method, r.URL.Path), Object: object})
		return inner.RoundTrip(r)
	})
}

// named marks the calls that write or delete an object with its URI, which stands in the body of an upload alone.
type named struct{ Buckets }

type objectKey struct{}

// Put implements checkpoint.Store.
func (n named) Put(ctx context.Context, uri string, content []byte, generation int64) (int64, error) {
	return n.Buckets.Put(context.WithValue(ctx, objectKey{}, uri), uri, content, generation)
}

// Delete implements checkpoint.Store.
func (n named) Delete(ctx context.Context, uri string, generation int64) error {
	return n.Buckets.Delete(context.WithValue(ctx, objectKey{}, uri), uri, generation)
}

// overKubernetes tells of the calls of a cluster's API server.
func (w *World) overKubernetes(inner http.RoundTripper) http.RoundTripper {
	return RoundTripper(func(r *http.Request) (*http.Response, error) {
		verbs := map[string]string{http.MethodGet: "list", http.MethodPost: "create", http.MethodDelete: "delete", http.MethodPatch: "patch"}
		of, status := strings.CutSuffix(r.URL.Path, "/status")
		resource := path.Base(of)
		if r.Method == http.MethodDelete || r.Method == http.MethodPatch {
			resource = path.Base(path.Dir(of))
		}
		if status {
			resource += "/status" // rights name it apart
		}
		w.called(r.Context(), Call{Service: "kubernetes", Method: resource + "." + verbs[r.Method]})
		return inner.RoundTrip(r)
	})
}

// restMethod names a call as the API's discovery document does: its resource, and its action.
func restMethod(method, path string) string {
	path, verb, _ := strings.Cut(path, ":")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	// Projects and locations, or buckets, are named in pairs in front of what the call is about. In front of them stands the
	// version, and alone where the call is about no one place.
	parts = parts[max(1, slices.IndexFunc(parts, func(p string) bool { return p == "projects" || p == "b" })):]
	one := len(parts)%2 == 0
	what := parts[len(parts)-1]
	if one {
		what = parts[len(parts)-2]
	}
	if parts[0] == "b" {
		what, one = "objects", len(parts) > 3 // an object's name may have slashes
		if len(parts) == 2 {
			what, one = "buckets", true
		}
	}
	switch {
	case verb != "":
		return what + "." + verb
	case method == http.MethodGet && one:
		return what + ".get"
	case method == http.MethodGet:
		return what + ".list"
	case method == http.MethodPost && parts[0] == "b":
		return what + ".insert"
	case method == http.MethodPost:
		return what + ".create"
	}
	return what + "." + strings.ToLower(method)
}

// overStore tells of the calls of a database, as Firestore is asked for them. Of a write it also tells whether the document is new,
// for that takes another permission.
func (w *World) overStore(database string, open ledger.Opener) ledger.Opener {
	tap := &ledgertest.Tap{Before: func(ctx context.Context, c ledgertest.Call) error {
		method := "documents.batchGet"
		switch {
		case c.Query:
			method = "documents.runQuery"
		case c.Creates:
			method = "documents.commit create"
		case c.Write:
			method = "documents.commit update"
		}
		w.called(ctx, Call{Service: "firestore " + database, Method: method})
		return nil
	}}
	return tap.On(open)
}

// canary writes an entry that the sink brings back.
type canary struct{ *World }

// Canary writes entries that the sink brings back.
func (w *World) Canary() patrol.Canary { return canary{w} }

// sinkTakes is how long Cloud Logging takes to bring an entry.
const sinkTakes = 3 * time.Second

// WriteCanary implements patrol.Canary.
func (c canary) WriteCanary(ctx context.Context, project, id string, at time.Time) error {
	c.called(ctx, Call{Service: "logging", Method: "entries.write"})
	raw, err := json.Marshal(map[string]any{
		"insertId": id, "logName": "projects/" + project + "/logs/" + events.CanaryLog, "timestamp": at.UTC().Format(time.RFC3339Nano),
		"resource": map[string]any{"type": "global"}, "jsonPayload": map[string]any{"message": "canary"},
	})
	if err != nil {
		return err
	}
	c.Clock.At(at.Add(sinkTakes), func() { c.Publish(Message{Topic: events.TopicLogs, Data: raw}) })
	return nil
}

// queues tells what waits for the functions, as Cloud Monitoring does of Pub/Sub.
type queues struct{ *World }

// Queues implements patrol.Queues.
func (q queues) Queues(ctx context.Context, _ time.Time) (all []view.Queue, err error) {
	q.called(ctx, Call{Service: "monitoring", Method: "timeSeries.list"})
	lie := map[string]int{}
	for _, m := range q.Broker.Dead() {
		if m.Topic != events.TopicTicks { // a lost tick has no dead letter: the next one takes up what it left
			lie[m.Topic]++
		}
	}
	for _, f := range Functions {
		all = append(all, view.Queue{Topic: f.Topic, Oldest: q.Broker.Oldest(f.Topic), DeadLetters: lie[f.Topic]})
	}
	return all, nil
}
