package cloudlog

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	api "google.golang.org/api/logging/v2"
)

// MaxSubjects is how many slices one query may ask about: its filter stays far below the 20,000 characters that a filter
// may have.
const MaxSubjects = 20

// MaxEntries is how many entries an answer has at most, the newest ones.
const MaxEntries = 1000

// Subject is what the log calls a slice.
type Subject struct {
	Node string
	// QueuedResource and Group are empty where there is none, and where it is not known; Group is what the names of the
	// slice's workers have in common.
	QueuedResource, Group string
	// Namespace is that of a Job. Its Node is the Job, and its QueuedResource the JobSet.
	Namespace string
}

// Query asks who or what ended or stopped slices of a zone, or of a cluster LOCATION/CLUSTER, from a time on.
type Query struct {
	Project, Zone string
	Since         time.Time
	Subjects      []Subject
}

// Filter is the query in the Logging query language, in which OR binds tighter than AND: everything is in brackets. Of what
// happens to every worker of a slice it is enough to hear it of the first.
// https://cloud.google.com/logging/docs/view/logging-query-language
func (q Query) Filter() string {
	if location, cluster, is := strings.Cut(q.Zone, "/"); is {
		return q.inCluster(location, cluster)
	}
	var deleted, ended []string
	for _, s := range q.Subjects {
		node := has("resourceName", "/locations/"+q.Zone+"/nodes/"+s.Node)
		deleted, ended = append(deleted, node), append(ended, node)
		if s.QueuedResource != "" {
			deleted = append(deleted, has("resourceName", "/locations/"+q.Zone+"/queuedResources/"+s.QueuedResource))
		}
		if s.Group != "" {
			workers := "/zones/" + q.Zone + "/instances/" + s.Group + "-w-"
			ended = append(ended, has("resourceName", workers+"0"),
				"("+has("methodName", "compute.instances.hostError")+" AND "+has("resourceName", workers)+")")
		}
	}
	return `timestamp>="` + q.Since.UTC().Format(time.RFC3339Nano) + `" AND (` +
		`(log_id("cloudaudit.googleapis.com/activity") AND protoPayload.serviceName="tpu.googleapis.com" AND ` +
		"(" + has("methodName", ".Tpu.Delete") + " OR " + has("methodName", ".Tpu.StopNode") + ") AND (" + strings.Join(deleted, " OR ") + ")) OR " +
		`(log_id("cloudaudit.googleapis.com/system_event") AND (` + strings.Join(ended, " OR ") + ")))"
}

// inCluster is the query for Jobs. A Job ends by a deletion, and stops by a change that suspends it.
func (q Query) inCluster(location, cluster string) string {
	var objects, namespaces []string
	for _, s := range q.Subjects {
		in := "namespaces/" + s.Namespace
		if is := fmt.Sprintf("protoPayload.resourceName=%q", "core/v1/"+in); !slices.Contains(namespaces, is) {
			namespaces = append(namespaces, is)
		}
		objects = append(objects, has("resourceName", in+"/jobs/"+s.Node))
		if s.QueuedResource != "" {
			objects = append(objects, has("resourceName", in+"/jobsets/"+s.QueuedResource))
		}
	}
	var methods []string
	for _, of := range []string{"jobs", "jobsets"} {
		for _, verb := range []string{"delete", "patch", "update"} {
			methods = append(methods, has("methodName", "."+of+"."+verb))
		}
	}
	return `timestamp>="` + q.Since.UTC().Format(time.RFC3339Nano) + `" AND log_id("cloudaudit.googleapis.com/activity") AND protoPayload.serviceName="k8s.io" AND ` +
		fmt.Sprintf(`resource.labels.location=%q AND resource.labels.cluster_name=%q AND `, location, cluster) +
		"(((" + strings.Join(methods, " OR ") + ") AND (" + strings.Join(objects, " OR ") + ")) OR (" +
		has("methodName", ".namespaces.delete") + " AND (" + strings.Join(namespaces, " OR ") + ")))"
}

// has says that a field of an audit entry has a text in it.
func has(field, text string) string { return fmt.Sprintf("protoPayload.%s:%q", field, text) }

// Entries asks the audit log once, and returns the entries as a sink would send them, the oldest first. Whole says that there are
// no others: the log was searched to its end. An answer that is neither whole nor holds an entry is an error: it does not prove
// that there is none.
//
// Permission: logging.logEntries.list on the project.
func (l *Log) Entries(ctx context.Context, q Query) (entries [][]byte, whole bool, err error) {
	svc, err := l.service(ctx)
	if err != nil {
		return nil, false, err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	answer, err := svc.Entries.List(&api.ListLogEntriesRequest{
		ResourceNames: []string{"projects/" + q.Project}, Filter: q.Filter(), OrderBy: "timestamp desc", PageSize: MaxEntries,
	}).Context(ctx).Do()
	if err != nil {
		return nil, false, fmt.Errorf("read audit log of %s: %w", q.Project, plain(err))
	}
	if len(answer.Entries) == 0 && answer.NextPageToken != "" {
		return nil, false, fmt.Errorf("read audit log of %s: it was not searched to its end", q.Project)
	}
	for _, e := range slices.Backward(answer.Entries) {
		raw, err := json.Marshal(e)
		if err != nil {
			return nil, false, fmt.Errorf("read audit log of %s: %w", q.Project, err)
		}
		entries = append(entries, raw)
	}
	return entries, answer.NextPageToken == "", nil
}
