package world

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/go-json-experiment/json"
	"google.golang.org/grpc/codes"

	"pitstop.internal/events"
	"pitstop.internal/scripts/trail"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// tracker follows what the functions do, for a comparison with another build. Without one, nobody compares.
type tracker struct {
	*World
	// of holds the actions for each workload, by ID.
	of map[string]*trail.Workload
	// ended are the ends that were noted, by workload, incident and revision.
	ended map[string]bool
	// read is when the documents were read.
	read time.Time
}

func newTracker(w *World) *tracker {
	return &tracker{World: w, of: map[string]*trail.Workload{}, ended: map[string]bool{}}
}

func (t *tracker) workload(id string) *trail.Workload {
	w := t.of[id]
	if w == nil {
		w = &trail.Workload{ID: id, Steps: []trail.Step{}}
		t.of[id] = w
	}
	return w
}

func (t *tracker) note(workload string, s trail.Step) {
	t.mu.Lock()
	defer t.mu.Unlock()
	s.At = t.Clock.Now().UTC()
	w := t.workload(workload)
	w.Steps = append(w.Steps, s)
}

// called notes a call of the TPU API.
func (t *tracker) called(e cloudtputest.Event) {
	s := trail.Step{Method: e.Method, Resource: e.Resource(), Slice: e.Node}
	if e.Code != 0 {
		s.Code = codes.Code(e.Code).String() //nolint:gosec // a code of google.rpc is small
	}
	t.call(t.concerned(e), e.RequestID, s.Resource, s)
}

// calledKubernetes notes a call of a cluster's API server on an object, which a path in the cluster names. The record has the call under
// the name of the Job or JobSet that it is made for.
func (t *tracker) calledKubernetes(c *Cluster, workload, method, object, of string, status int) {
	in := "projects/" + t.Project + "/locations/" + c.Location + "/clusters/" + c.Name + "/k8s/"
	s := trail.Step{Method: method, Resource: in + object}
	if status >= http.StatusMultipleChoices {
		s.Code = strconv.Itoa(status)
	}
	t.call(workload, "", in+of, s)
}

// wrote notes an object of ours beside the checkpoints.
func (t *tracker) wrote(workload, uri string) {
	t.call(workload, "", uri, trail.Step{Method: "storage.objects.create", Resource: uri})
}

// call notes a call, with what the document says of it: a call stands there before it is made, with the request and the resource that it
// is recorded with.
func (t *tracker) call(workload, request, recorded string, s trail.Step) {
	s.Kind = trail.Call
	if doc, _, err := t.Ledger.Workload(context.Background(), workload); err == nil { // another release may hold it
		for _, in := range []*incident.Incident{doc.Incident, doc.Closed} {
			if in != nil && explain(&s, doc, in, request, recorded) {
				break
			}
		}
	}
	t.note(workload, s)
}

// explain adds to a call what the record of an incident says of it. It reports whether the call stands there.
func explain(s *trail.Step, doc incident.Workload, in *incident.Incident, request, recorded string) bool {
	for _, c := range slices.Backward(in.Calls) {
		if c.Method != s.Method || c.Resource != recorded || request != "" && c.RequestID != request {
			continue
		}
		s.Action, s.Slice, s.Epoch, s.Accelerator = string(c.Action), c.Slice, c.Epoch, c.Accelerator
		for _, e := range doc.Effects {
			if e.Maker == in.ID && e.Action == c.Action && e.Slice == c.Slice {
				s.Reason = e.Reason
			}
		}
		return true
	}
	return false
}

// concerned is the workload of what a call is made on.
func (t *tracker) concerned(e cloudtputest.Event) string {
	t.mu.Lock()
	id := t.owners[e.Zone+"/"+e.Node]
	t.mu.Unlock()
	for _, c := range t.Fleet {
		if id == "" && (c.Name == e.Node || e.QueuedResource != "" && c.QueuedResource == e.QueuedResource) {
			id = t.Project + "/" + c.WorkloadName()
		}
	}
	return id
}

// sent notes a request to another function.
func (t *tracker) sent(e events.Envelope) {
	s := trail.Step{Kind: trail.Request, Method: e.Type}
	if e.Type == events.TypeMaintenanceNotified {
		var n events.MaintenanceNotified
		if json.Unmarshal(e.Data, &n) == nil {
			s.Slice = n.Node
			t.note(t.concerned(cloudtputest.Event{Zone: n.Incarnation.Zone, Node: n.Node}), s)
		}
		return
	}
	var r events.Request
	if json.Unmarshal(e.Data, &r) == nil {
		s.Action, s.Slice, s.Epoch, s.Reason = string(r.Action), r.Slice, r.Epoch, r.Reason
		t.note(r.Workload, s)
	}
}

// saved notes the ends of incidents. If a function crashed before it could report a save, the next one reads it.
func (t *tracker) saved(s ledger.Step) {
	t.closed(s.Before)
	t.closed(s.After)
}

func (t *tracker) closed(doc incident.Workload) {
	in := doc.Closed
	if in == nil {
		return
	}
	key := fmt.Sprintf("%s %s %d", doc.ID, in.ID, in.Revision)
	t.mu.Lock()
	told := t.ended[key]
	t.ended[key] = true
	t.mu.Unlock()
	if told {
		return
	}
	t.note(doc.ID, trail.Step{
		Kind: trail.End, Incident: in.ID, Revision: in.Revision, Outcome: string(in.Outcome), Code: string(in.Code), Cause: string(in.Cause),
		ConfirmedBy: string(in.ConfirmedBy), Opened: in.Opened.UTC(), Ended: in.Closed.UTC(), Reason: in.Reason,
	})
}

// Broken are the faults of a replay as broken rules: it has no other ones.
func (s *Story) Broken() (all []trail.Broken) {
	for _, f := range s.Faults {
		all = append(all, trail.Broken{Rule: "replay", Text: f})
	}
	return all
}

// documents keeps the documents as they stand now.
func (t *tracker) documents() error {
	t.read = t.Clock.Now().UTC()
	ids, err := t.Ledger.All(context.Background())
	if err != nil {
		return fmt.Errorf("scenario: %w", err)
	}
	for _, id := range ids {
		doc, _, err := t.Ledger.Workload(context.Background(), id)
		if fault.IsBusy(err) {
			continue // the newer release has it
		}
		if err != nil {
			return fmt.Errorf("scenario: %w", err)
		}
		if t.workload(id).Document, err = json.Marshal(doc, json.Deterministic(true)); err != nil {
			return fmt.Errorf("scenario: %s: %w", id, err)
		}
	}
	return nil
}

// trail is the trail at the end of a run.
func (t *tracker) trail(days float64, broken []trail.Broken) *trail.Trail {
	made := &trail.Trail{Run: t.Story.Name, Days: days, Read: t.read, Workloads: []trail.Workload{}, Broken: []trail.Broken{}}
	for _, id := range slices.Sorted(maps.Keys(t.of)) {
		made.Workloads = append(made.Workloads, *t.of[id])
	}
	made.Broken = append(made.Broken, broken...)
	return made
}

// ReadDocuments keeps the documents as they stand now in the trail, if there is one.
func (w *World) ReadDocuments() error {
	if w.tracker == nil {
		return nil
	}
	return w.tracker.documents()
}

// KeepTrail puts the trail at the end of a run into the story, if there is one.
func (w *World) KeepTrail(days float64, broken []trail.Broken) {
	if w.tracker != nil {
		w.Story.Trail = w.tracker.trail(days, broken)
	}
}
