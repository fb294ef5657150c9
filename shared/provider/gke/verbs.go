package gke

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
)

// target is the object that is deleted and created for a slice: its JobSet, or else the Job.
type target struct {
	cluster         *watched
	kind, name      string
	namespace, zone string
}

// objectName matches the names of namespaces, Jobs and JobSets. An empty one, or one with dots alone, would name another resource.
var objectName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$`)

// target finds what a call is about. Verb says for people what the call does.
func (c *Clusters) target(verb string, r provider.Ref) (t target, err error) {
	t = target{kind: kindJob, name: r.Name, zone: r.Zone}
	if r.QueuedResource != "" {
		t.kind, t.name = kindJobSet, r.QueuedResource
	}
	_, t.namespace, _ = strings.Cut(strings.TrimPrefix(r.Zone, provider.Listed(r.Zone)), "/")
	t.cluster = c.named(r.Project, provider.Listed(r.Zone))
	refuse := func(why string) (target, error) {
		return t, &provider.Error{Call: t.call(verb), Class: reason.Invalid, Message: why}
	}
	switch {
	case !objectName.MatchString(t.name) || !objectName.MatchString(t.namespace):
		return refuse("this is no name of a Job in LOCATION/CLUSTER/NAMESPACE")
	case t.cluster == nil:
		return refuse("CLUSTERS does not name the cluster " + provider.Listed(r.Zone) + " of " + r.Project)
	case len(t.cluster.Namespaces) > 0 && !slices.Contains(t.cluster.Namespaces, t.namespace):
		return refuse("CLUSTERS does not name its namespace")
	}
	return t, nil
}

// call is a call about the object, for people.
func (t target) call(verb string) string { return verb + " " + t.kind + " " + t.name + " in " + t.zone }

// path is that of all objects of its kind in its namespace.
func (t target) path() string {
	group, plural := "/apis/batch/v1", "/jobs"
	if t.kind == kindJobSet {
		group, plural = "/apis/"+jobSetAPI, "/jobsets"
	}
	return group + "/namespaces/" + t.namespace + plural
}

// deleteOptions are the conditions of a deletion.
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/delete-options/
type deleteOptions struct {
	Kind          string        `json:"kind"`
	APIVersion    string        `json:"apiVersion"`
	Preconditions preconditions `json:"preconditions"`
	Propagation   string        `json:"propagationPolicy"`
}

type preconditions struct {
	UID string `json:"uid"`
}

// Delete implements provider.Provider: it deletes the Job, or its whole JobSet, if that is the life which the reference names. The call
// does everything; what the object owned follows in the background. The UID makes a repeated call harmless, so no request ID is sent.
func (c *Clusters) Delete(ctx context.Context, r provider.Ref, _ string) (operation string, err error) {
	t, err := c.target("delete", r)
	if err != nil {
		return "", err
	}
	what := t.call("delete")
	if r.Life == "" {
		return "", &provider.Error{Call: what, Class: reason.Invalid, Message: "no reading says which life of it is meant"}
	}
	body, err := json.Marshal(deleteOptions{"DeleteOptions", "v1", preconditions{r.Life}, "Background"})
	if err != nil {
		return "", &provider.Error{Call: what, Class: reason.Invalid, Message: err.Error(), Cause: err}
	}
	code, err := c.change(ctx, t, what, http.MethodDelete, t.path()+"/"+t.name, nil, body, provider.Hidden{})
	var no *provider.Error
	if code == http.StatusConflict && errors.As(err, &no) { // the UID is the only condition
		no.Class, no.Code = reason.NotFound, reason.CodeOtherLife
	}
	return "", err
}

// AnnotationRequest is the annotation with the ID of the request that created a Job or JobSet.
const AnnotationRequest = "pitstop-request"

// Create implements provider.Provider: it creates the Job, or its whole JobSet, from a manifest with its values. The call does everything.
// Where the name is taken by what the same request created, an earlier call has worked, and its answer was lost.
func (c *Clusters) Create(ctx context.Context, r provider.Ref, spec []byte, labels map[string]string, requestID string) (operation string, err error) {
	t, err := c.target("create", r)
	if err != nil {
		return "", err
	}
	err = c.creation(ctx, t, t.call("create"), spec, labels, requestID, nil)
	var no *provider.Error
	if !errors.As(err, &no) || no.Class != reason.Exists {
		return "", err
	}
	by, unread := c.createdBy(ctx, t)
	if unread != nil {
		return "", unread
	}
	if requestID != "" && by == requestID {
		return "", nil
	}
	return "", err
}

// Creatable implements provider.Provider. A dry run passes rights, admission and quotas like the creation itself. The API server looks
// last whether the name is taken.
func (c *Clusters) Creatable(ctx context.Context, r provider.Ref, spec []byte, labels map[string]string, requestID string) error {
	t, err := c.target("create", r)
	if err != nil {
		return err
	}
	err = c.creation(ctx, t, t.call("try to create"), spec, labels, requestID, url.Values{"dryRun": {"All"}})
	var no *provider.Error
	if errors.As(err, &no) && (no.Class == reason.Exists || no.Class == reason.Quota && fitsOnceDeleted(no.Message)) {
		return nil
	}
	return err
}

// usedUp is how a quota of one resource says what is used of it, and how much there may be.
var usedUp = regexp.MustCompile(`, used: [^\s,=]+=(\d+), limited: [^\s,=]+=(\d+)$`)

// fitsOnceDeleted reports whether a quota refuses an object only because it still counts that object itself.
func fitsOnceDeleted(refusal string) bool {
	said := usedUp.FindStringSubmatch(refusal)
	if said == nil {
		return false
	}
	used, err := strconv.ParseInt(said[1], 10, 64)
	limit, unread := strconv.ParseInt(said[2], 10, 64)
	return err == nil && unread == nil && used <= limit
}

// creation makes the call that creates an object.
func (c *Clusters) creation(
	ctx context.Context, t target, what string, spec []byte, labels map[string]string, requestID string, options url.Values,
) error {
	body, hides, err := t.manifest(spec, labels, requestID)
	if err != nil {
		return &provider.Error{Call: what, Class: reason.Invalid, Message: err.Error(), Cause: err}
	}
	q := url.Values{"fieldValidation": {"Strict"}} // a field that this server does not know would be left out of the training without a word
	maps.Copy(q, options)
	_, err = c.change(ctx, t, what, http.MethodPost, t.path(), q, body, hides)
	return err
}

// manifest is the body that creates the object from a stored manifest, with Pitstop's labels and annotation and no other change. Hides
// are the values that no error may repeat.
func (t target) manifest(spec []byte, labels map[string]string, requestID string) (body []byte, hides provider.Hidden, err error) {
	var whole map[string]any
	if err := json.Unmarshal(spec, &whole); err != nil {
		return nil, hides, errors.New("the stored manifest is no JSON object")
	}
	meta := object(whole["metadata"])
	if whole["kind"] != t.kind || meta["name"] != t.name || meta["namespace"] != t.namespace {
		return nil, hides, fmt.Errorf("the stored manifest is of %v %v in namespace %v", whole["kind"], meta["name"], meta["namespace"])
	}
	hides = provider.Hidden{Noun: "value of the variable", Values: map[string]string{}, Known: []string{t.kind, t.name, t.namespace, t.cluster.String()}}
	for _, job := range jobsIn(whole) {
		for _, variable := range job.variables() {
			name, _ := variable["name"].(string)
			if variable[valueApart] != nil {
				return nil, hides, fmt.Errorf("the value of the variable %.80s is missing from the stored manifest", name)
			}
			if value, is := variable["value"].(string); is {
				hides.Values[name] += value + "\n"
			}
		}
	}
	put(meta, "labels", labels)
	put(meta, "annotations", map[string]string{AnnotationRequest: requestID})
	if body, err = json.Marshal(whole, json.Deterministic(true)); err != nil {
		return nil, hides, errors.New("the stored manifest cannot be written")
	}
	return body, hides, nil
}

// put sets words in the labels or annotations of an object.
func put(meta map[string]any, field string, words map[string]string) {
	all := object(meta[field])
	if all == nil {
		all = map[string]any{}
		meta[field] = all
	}
	for name, word := range words {
		all[name] = word
	}
}

// createdBy is the ID of the request that created what has the name of an object; empty where no request of Pitstop did. A list needs no
// right that a reader does not have.
func (c *Clusters) createdBy(ctx context.Context, t target) (requestID string, err error) {
	client, err := c.clientOf(ctx, t.cluster)
	if err != nil {
		return "", err
	}
	p := page[struct {
		Meta `json:"metadata"`
	}]{}
	if _, err = client.get(ctx, t.path(), url.Values{"fieldSelector": {"metadata.name=" + t.name}}, func(body io.Reader) error { return p.read(body, tally{}, nil) }); err != nil {
		return "", err
	}
	for _, o := range p.items {
		if o.Name == t.name {
			return o.Annotations[AnnotationRequest], nil
		}
	}
	return "", nil // it is gone again
}

// change makes a call that changes something, and returns the code of the answer: zero without one. Hides are values that the request
// has and that no error may repeat.
func (c *Clusters) change(
	ctx context.Context, t target, what, method, path string, q url.Values, body []byte, hides provider.Hidden,
) (code int, err error) {
	client, err := c.clientOf(ctx, t.cluster)
	if err != nil {
		return 0, err
	}
	res, err := client.send(ctx, what, method, path, q, body)
	if err != nil {
		t.cluster.forget(client)
		return 0, err
	}
	defer res.Body.Close() //nolint:errcheck // it was only read
	if res.StatusCode < http.StatusMultipleChoices {
		return res.StatusCode, nil
	}
	no := readRefusal(res.StatusCode, io.LimitReader(res.Body, 1<<20))
	no.Message = hides.Mask(no.Message)
	if no.class() == reason.Transient {
		t.cluster.forget(client)
	}
	return res.StatusCode, &provider.Error{Call: what, Class: no.class(), Message: no.message()}
}

// refusal is how an API server refuses a call: with a Status.
// https://kubernetes.io/docs/reference/kubernetes-api/common-definitions/status/
type refusal struct {
	code    int
	Kind    string `json:"kind"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// readRefusal reads the answer to a call that was refused.
func readRefusal(code int, body io.Reader) refusal {
	no := refusal{code: code}
	if json.UnmarshalRead(body, &no) != nil || no.Kind != "Status" {
		return refusal{code: code} // somebody before the API server answered
	}
	return no
}

// longestMessage bounds a message in a document.
const longestMessage = 500

// message is what the API server says, on one line and without the value that it refuses.
func (r refusal) message() string {
	said := strings.ToValidUTF8(strings.Join(strings.Fields(events.WithoutValue(r.Message)), " "), "?")
	if len(said) > longestMessage {
		said = strings.ToValidUTF8(said[:longestMessage], "") + "..."
	}
	return cmp.Or(said, "answer "+strconv.Itoa(r.code))
}

// class is what a refusal means. An answer that is not the API server's proves nothing but a missing permission.
func (r refusal) class() reason.FailureClass {
	has := func(words string) bool { return strings.Contains(r.Message, words) }
	switch code := r.code; {
	case code == http.StatusForbidden && has("exceeded quota"):
		return reason.Quota
	case code == http.StatusForbidden && (has("denied request: ") || has("denied the request")): // by an admission policy or webhook
		return reason.Invalid
	case code == http.StatusForbidden, code == http.StatusUnauthorized:
		return reason.Permission
	case r.Kind == "":
		return reason.Transient
	case code == http.StatusConflict && r.Reason == "AlreadyExists":
		return reason.Exists
	case code == http.StatusConflict:
		return reason.Busy
	case code == http.StatusNotFound:
		return reason.NotFound
	case code == http.StatusTooManyRequests, code == http.StatusRequestTimeout:
		return reason.Transient
	case code >= 400 && code < 500:
		return reason.Invalid
	}
	return reason.Transient
}
