package world

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/view"
)

// Tell adds a line to the story and returns its place.
func (w *World) Tell(l Line) int {
	if w.Opts.Mute {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l.Scenario = w.Story.Name
	l.Time = l.Time.UTC()
	w.Story.Lines = append(w.Story.Lines, l)
	w.placed(l.Workload, len(w.Story.Lines)-1)
	if w.Hooks.Told != nil {
		w.Hooks.Told(l)
	}
	return len(w.Story.Lines) - 1
}

// Deliver brings an entry to the pipeline, as the sinks do: notices on a topic of their own, and unread entries to none.
func (w *World) Deliver(raw []byte, e events.Entry, simulated bool) {
	if e.Ignored != "" {
		return // no sink would let it through
	}
	l := Line{
		Time: w.Clock.Now(), Kind: Entry, EventType: string(e.Kind), Subject: e.Subject.String(), Text: e.Describe(), Simulated: simulated,
		Crew:    e.Crew,
		Routine: e.Crew != nil && e.Crew.Report == events.ReportProgress || e.Kind == events.KindCall && e.Call.Principal == Ours(w.Project),
	}
	if len(e.Missing) > 0 {
		l.Reason = "without " + strings.Join(e.Missing, ", ")
	}
	topic := events.TopicLogs
	if e.Kind == events.KindNotice {
		topic = events.TopicNotices
	}
	attributes := map[string]string{"logging.googleapis.com/timestamp": e.Time.UTC().Format(time.RFC3339Nano)}
	l.MessageID = w.Publish(Message{Topic: topic, Data: raw, Attributes: attributes, entry: &e})
	if w.Opts.Mute {
		return
	}
	place := w.Tell(l)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines[l.MessageID] = place
}

// Publish puts a message on its topic, and returns its ID.
func (w *World) Publish(m Message) string { return w.Broker.publish(m) }

// delivered completes the line of an entry when it is known whom it concerned.
func (w *World) delivered(sub string, m Message, _, code int) {
	if w.Hooks.Delivered != nil {
		w.Hooks.Delivered(sub, m, code)
	}
	if w.Opts.Mute {
		return
	}
	w.mu.Lock()
	place, ok := w.lines[m.ID]
	w.mu.Unlock()
	if !ok {
		return
	}
	reason := ""
	e, err := m.Read()
	if err != nil {
		return
	}
	s, err := w.Ledger.Find(context.Background(), e.Subject)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		reason = "nobody known is concerned; parked"
		if _, _, _, job := e.Subject.Scope(); job {
			reason = "no Job of that name is watched"
		}
	case err != nil:
		reason = err.Error()
	case code != http.StatusOK:
		reason = "left for redelivery"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &w.Story.Lines[place]
	l.Workload, l.Incident = s.Workload, w.incidents[s.Workload]
	w.placed(l.Workload, place)
	if reason != "" {
		l.Reason = reason
	}
}

// WorkloadOf is the workload of a slice, empty while nobody has seen it.
func (w *World) WorkloadOf(slice string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, id := range w.owners {
		if strings.HasSuffix(key, "/"+slice) {
			return id
		}
	}
	return ""
}

// IncidentOf is the incident of a workload that lines belong to.
func (w *World) IncidentOf(workload string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.incidents[workload]
}

// saved reports decisions: only stored ones are real.
func (w *World) saved(function string, s ledger.Step) {
	now := w.Clock.Now()
	before, after := s.Before.Shown(now), s.After.Shown(now)
	w.mu.Lock()
	id := ""
	switch {
	case after.Incident != nil:
		id = after.Incident.ID
	case before.Incident != nil:
		id = before.Incident.ID
	}
	w.incidents[after.ID] = id
	if in := after.Incident; in != nil && (before.Incident == nil || before.Incident.ID != in.ID) {
		w.Story.open(after)
	}
	for _, s := range after.Slices {
		w.owners[s.Zone+"/"+s.Name] = after.ID
	}
	switch {
	case w.Hooks.Saved != nil && function != operator: // the judge sees the write itself, and not when its answer comes
	case !s.After.HasDue(now):
		delete(w.Busy, after.ID)
	default:
		w.Busy[after.ID] = true
	}
	w.mu.Unlock()

	if w.Hooks.Saved != nil {
		w.Hooks.Saved(s, before, after)
	}
	if c := after.Closed; c != nil && (before.Closed == nil || before.Closed.ID != c.ID || before.Closed.Revision != c.Revision) {
		defer w.ended(after, *c)
	}
	if w.tracker != nil {
		w.tracker.saved(s)
	}
	if w.Opts.Mute {
		return
	}
	base := Line{Time: now, Incident: id, Workload: after.ID, Function: function, Subject: after.ID}
	w.tellReadings(base, before, after)
	w.tellNotices(base, before, after)
	w.tellTimeline(base, before, after)
}

// tellReadings tells of slices that the API shows in another condition than before.
func (w *World) tellReadings(base Line, before, after view.Workload) {
	for _, s := range after.Slices {
		old := before.Slice(s.Name)
		same := old != nil && (old.Incarnation.Same(s.Incarnation) || !old.Incarnation.Known() && !s.Incarnation.Known())
		l := base
		l.Kind, l.Simulated = Reading, true
		switch {
		case old == nil:
			l.Text = fmt.Sprintf("%s %s is %s", incident.WordsOf(after.Provider).Slice, s.Name, s.State)
			l.Reason = fmt.Sprintf("first seen: %s in %s, incarnation %s", s.Accelerator, s.Zone, s.Incarnation)
			l.Routine = after.Incident == nil
		case old.Condition == s.Condition && same:
			continue
		default:
			l.Text = fmt.Sprintf("%s %s is %s", incident.WordsOf(after.Provider).Slice, s.Name, s.State)
			l.Routine = s.Condition == evidence.Deleting || s.Condition == evidence.Creating
			if !same {
				l.Reason = fmt.Sprintf("incarnation %s in %s", s.Incarnation, s.Zone)
			}
		}
		w.Tell(l)
	}
}

// tellNotices reports the handling of a notice while no incident is open.
func (w *World) tellNotices(base Line, before, after view.Workload) {
	if after.Incident != nil || before.Incident != nil {
		return
	}
	for i := range after.Slices {
		n, was := after.Slices[i].LastNotice, before.Slice(after.Slices[i].Name)
		if n == nil || was != nil && was.LastNotice != nil && was.LastNotice.Equal(n.Notice) && was.LastNotice.Due.Equal(n.Due) {
			continue
		}
		l := base
		l.Kind = Decision
		switch {
		case n.Status == events.NoticeGone:
			l.Decision, l.Reason = "forget the notice", "the maintenance was withdrawn before anything was asked for"
		case n.Due.IsZero():
			l.Decision, l.Reason = "keep the notice", "it does not say when"
		case !n.Due.After(w.Clock.Now()):
			l.Decision, l.Reason = "keep the notice; the save is due now", "the maintenance may be started before its window "+events.Window(n.WindowStart, n.WindowEnd)
		default:
			l.Decision = "keep the notice; the save is due at " + n.Due.UTC().Format("Jan 2 15:04")
			l.Reason = "shortly before the window " + events.Window(n.WindowStart, n.WindowEnd)
		}
		l.Text = l.Decision
		w.Tell(l)
	}
}

// tellTimeline tells the lines that an incident's own story has gained.
func (w *World) tellTimeline(base Line, before, after view.Workload) {
	in := after.Incident
	if in == nil && before.Incident != nil {
		in = after.Closed
	}
	if in == nil {
		if after.Closed != nil && before.Closed != nil && after.Closed.Revision > before.Closed.Revision {
			in = after.Closed
		} else {
			return
		}
	}
	told := 0
	for _, old := range []*view.Incident{before.Incident, before.Closed} {
		if old != nil && old.ID == in.ID {
			told = old.Lines()
		}
	}
	for _, t := range in.LinesAfter(told) {
		l := base
		l.Incident = in.ID
		l.Phase, l.Reason, l.Code, l.Text = string(t.Phase), t.Reason, string(t.Code), t.Text
		switch t.Kind {
		case view.LineSeen:
			if !w.newsFrom(t.Source) {
				continue // the entry or the reading that led to it has its own line
			}
			l.Kind, l.MessageID, l.Simulated = Reading, t.Source, true
		case view.LineDecided:
			l.Kind, l.Decision = Decision, t.Text
		case view.LineAsked, view.LineCame:
			l.Kind, l.Simulated = Answer, true
			// That a call was accepted its own line says.
			l.Routine = t.Reason == "" && (t.Phase == view.PhaseDeleting || t.Phase == view.PhaseCreating || t.Phase == view.Maintaining)
		case view.LineEnded:
			l.Kind, l.Outcome, l.Code = End, string(in.Outcome), string(in.Code)
			l.Calls, l.Plan = in.Calls, in.PlannedCalls
			l.Decision = in.Advice
		}
		w.Tell(l)
	}
}

// newsFrom reports whether evidence of this origin has no line of its own: a person's word, a notice from patrol.
func (w *World) newsFrom(source string) bool {
	return source == ApprovalID
}

const (
	// ApprovalID is the origin of a person's word.
	ApprovalID = "approval"
	operator   = "operator"
)

// placed notes that a line is about a workload, for the moment at which its incident ends.
func (w *World) placed(workload string, place int) {
	if w.Hooks.Ended != nil && workload != "" {
		w.places[workload] = append(w.places[workload], place)
	}
}

func (w *World) ended(d view.Workload, in view.Incident) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.Story.Result(d, in)
	for i := range w.Story.Ended {
		if old := w.Story.Ended[i]; old.Workload == d.ID && old.ID == in.ID {
			w.Story.Ended[i] = r
			return
		}
	}
	w.Story.Ended = append(w.Story.Ended, r)
	if w.Hooks.Ended != nil {
		w.justEnded = append(w.justEnded, r)
	}
}

// Show hands on the incidents that have just ended. By now all that happened at that moment has its lines.
func (w *World) Show() {
	w.mu.Lock()
	ended := w.justEnded
	w.justEnded = nil
	shown := make([][]Line, len(ended))
	for i, r := range ended {
		places := w.places[r.Workload]
		delete(w.places, r.Workload)
		slices.Sort(places)
		for _, place := range slices.Compact(places) {
			w.Story.Lines[place].Shown = true
			shown[i] = append(shown[i], w.Story.Lines[place])
		}
	}
	w.mu.Unlock()
	for i, r := range ended {
		w.Hooks.Ended(r, shown[i])
	}
}

// sent reports a request to another function. Notifications to people are not part of the story.
func (w *World) sent(e events.Envelope, topic, id string) {
	if e.Type == events.TypeIncidentUpdated {
		return
	}
	if w.tracker != nil {
		w.tracker.sent(e)
	}
	if w.Hooks.Sent != nil {
		w.Hooks.Sent(e, topic)
	}
	l := Line{
		Time: w.Clock.Now(), Kind: Sent, Function: functionOf(e.Source), EventType: e.Type, Subject: e.Subject, MessageID: id,
		Workload: e.Subject, Incident: e.Correlation,
	}
	for _, f := range Functions {
		if f.Topic == topic {
			l.To = f.Name
		}
	}
	what := strings.TrimSuffix(strings.TrimPrefix(e.Type, "pitstop."), ".v1")
	switch e.Type {
	case events.TypeMaintenanceNotified:
		l.Workload, l.Routine = "", true
	case events.TypeCheckpointRequested:
		if r, err := events.DecodeCheckpointRequested(e.Data); err == nil {
			what, l.Reason = what+" ("+string(r.Action)+")", r.Reason
			w.count(r.Action)
		}
	case events.TypeRecoveryRequested:
		if r, err := events.DecodeRecoveryRequested(e.Data); err == nil {
			what, l.Reason = what+" ("+string(r.Action)+")", r.Reason
			w.count(r.Action)
		}
	case events.TypeRecreateRequested:
		if r, err := events.DecodeRecreateRequested(e.Data); err == nil {
			what, l.Reason = what+" ("+string(r.Action)+" "+r.Slice+" in "+view.Place{Zone: r.Zone, Accelerator: r.Accelerator, Capacity: r.Capacity}.String()+")", r.Reason
			w.count(r.Action)
		}
	}
	l.Text = what + " -> " + l.To
	w.Tell(l)
}

func functionOf(source string) string { return source[strings.LastIndexByte(source, '/')+1:] }

func (w *World) count(a events.Action) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.Story.Requests[string(a)]++
}

// observe follows the simulated cloud: the training hears of its machine, the log gets its audit entries, the story its
// calls.
func (w *World) observe(e cloudtputest.Event) {
	if e.Kind == cloudtputest.Called && e.Code == 0 && e.Error == "" && e.Node == "" && e.QueuedResource == "" {
		return // a listing changes nothing, and everybody may make one
	}
	if w.Hooks.Seen != nil {
		w.Hooks.Seen(e)
	}
	if e.Kind != cloudtputest.Called { // no training notices a call
		w.trains(e)
	}
	if w.Hooks.Observed != nil {
		w.Hooks.Observed(e)
		for _, raw := range cloudtputest.SystemEntries(e) {
			w.Audited.Write(raw)
			w.Logged(raw)
		}
	}
	switch e.Kind {
	case cloudtputest.Called:
		w.calledLine(e)
		if e.Method == "UpdateNode" { // a label that an owner changes is read at the next tick
			w.Changes()
		}
	case cloudtputest.Ended:
		w.operationLine(e)
	case cloudtputest.Started, cloudtputest.Metadata, cloudtputest.Signalled, cloudtputest.Supply:
	case cloudtputest.Created, cloudtputest.Ready, cloudtputest.Unhealthy, cloudtputest.Stopped, cloudtputest.Lost, cloudtputest.Deleting, cloudtputest.Gone, cloudtputest.Noticed, cloudtputest.Queued:
		w.Changes()
	}
	raw := cloudtputest.AuditEntry(e)
	if raw == nil || e.Principal == Ours(w.Project) && w.Opts.NoOwnAudit || w.hushed(e) {
		return
	}
	w.Audited.Write(raw)
	w.Logged(raw)
}

// trains tells the trainings what happens to their machines.
func (w *World) trains(e cloudtputest.Event) {
	on := w.Training(e.Zone, e.Node)
	state, _ := w.API.State(e.Zone, e.Node)
	there := state != "" // a node that is gone has no label: the run itself knows whether it was its life
	for _, run := range w.runs {
		if t := w.Trainings[run]; t == on || t.Slice != e.Node || !there {
			t.Observe(e)
		}
	}
}

// Changes has the next tick look.
func (w *World) Changes() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dirty = true
}

// Hush says that the record holds the audit entries of a call.
func (w *World) Hush(method, slice string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent[method+" "+slice] = 2
}

// hushed reports whether the record holds the audit entry of this event already.
func (w *World) hushed(e cloudtputest.Event) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := e.Method + " " + e.Node
	if w.silent[key] == 0 || e.Principal == Ours(w.Project) {
		return false
	}
	w.silent[key]--
	return true
}

// Mutates reports whether a call of the TPU API changes something.
func Mutates(method string) bool {
	switch method {
	case "CreateNode", "DeleteNode", "UpdateNode", "StartNode", "StopNode", "PerformMaintenance", "CreateQueuedResource",
		"DeleteQueuedResource", "PerformMaintenanceQueuedResource":
		return true
	}
	return false
}

// caller is the function that makes a call of the TPU API.
func caller(method string) string {
	switch method {
	case "UpdateNode", "PerformMaintenance", "PerformMaintenanceQueuedResource":
		return "checkpoint"
	case "StartNode":
		return "recovery"
	}
	return "recreate"
}

func (w *World) callLine(e cloudtputest.Event) Line {
	id := w.ownerOf(e.Zone, e.Node)
	return Line{
		Time: w.Clock.Now(), Function: caller(e.Method), Subject: e.Resource(), Workload: id, Incident: w.IncidentOf(id), Simulated: true,
	}
}

func (w *World) ownerOf(zone, node string) string {
	w.mu.Lock()
	id := w.owners[zone+"/"+node]
	w.mu.Unlock()
	if id == "" {
		id = w.WorkloadOf(node)
	}
	return id
}

func (w *World) calledLine(e cloudtputest.Event) {
	if !Mutates(e.Method) || e.Principal != Ours(w.Project) {
		return
	}
	if w.tracker != nil {
		w.tracker.called(e)
	}
	l := w.callLine(e)
	l.Kind, l.Request = Called, e.RequestID
	l.Text = e.Method + " " + e.Node + e.QueuedResource + " in " + e.Zone
	if e.Code != 0 {
		l.Text += ": refused"
		l.Reason = e.Error
	} else {
		l.Text += ": accepted"
		w.mu.Lock()
		w.Story.Calls[e.Method]++
		w.mu.Unlock()
	}
	w.Tell(l)
}

func (w *World) operationLine(e cloudtputest.Event) {
	if !Mutates(e.Method) || e.Principal != Ours(w.Project) || e.Method == "UpdateNode" {
		return
	}
	l := w.callLine(e)
	l.Kind = Answer
	l.Text = e.Method + " " + e.Node + e.QueuedResource + " in " + e.Zone + w.calledAt(e.RequestID)
	if l.Routine = e.Code == 0; l.Routine {
		l.Text += ": done"
	} else {
		l.Text += ": failed"
		l.Reason = fmt.Sprintf("code %d: %s", e.Code, e.Error)
	}
	w.Tell(l)
}

// calledAt says when the call was made that an operation answers to: there may have been a later one of the same kind.
func (w *World) calledAt(request string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range slices.Backward(w.Story.Lines) {
		if l.Kind == Called && l.Request == request && request != "" {
			return l.Time.Format(", called at 15:04:05")
		}
	}
	return ""
}

// byCrew reports whether a crew wrote a lease.
func byCrew(content []byte) bool {
	l, err := checkpoint.DecodeLease(content)
	return err == nil && l.By == "crew"
}

// changed follows the checkpoint directories: the training reads its lease and its requests there.
func (w *World) changed(bucket, name string, deleted bool) {
	for _, slice := range w.runs {
		w.Trainings[slice].Changed(bucket, name, deleted)
	}
	for _, g := range w.Gangs() {
		g.Changed(bucket, name, deleted)
	}
	if deleted {
		return
	}
	if w.Hooks.Changed != nil {
		w.Hooks.Changed(bucket, name)
	}
	what := ""
	function := ""
	switch {
	case strings.HasSuffix(name, checkpoint.LeaseName):
		if content, _, _ := w.Bucket.Get(bucket, name); byCrew(content) {
			return // a restart of the crew's own
		}
		what, function = "lease", "recovery"
	case strings.HasSuffix(name, checkpoint.RequestName):
		what, function = "request to the crew", "checkpoint"
	default:
		return
	}
	id := ""
	for _, c := range w.Fleet {
		if strings.HasPrefix("gs://"+bucket+"/"+name, c.Directory+"/") {
			id = w.WorkloadOf(c.Name)
		}
	}
	if id == "" {
		return // a crew's own lease, before anybody looked
	}
	if w.tracker != nil {
		w.tracker.wrote(id, "gs://"+bucket+"/"+name)
	}
	w.Tell(Line{
		Time: w.Clock.Now(), Kind: Called, Function: function, Subject: "gs://" + bucket + "/" + name, Workload: id, Incident: w.IncidentOf(id),
		Text: what + " written to gs://" + bucket + "/" + name, Simulated: true, Routine: true,
	})
}

// Approve gives a person's yes to what a workload asks for.
func (w *World) Approve(id, by string) {
	doc, _, err := w.Ledger.Workload(context.Background(), id)
	if fault.IsBusy(err) {
		return
	}
	w.Must(err)
	if in := doc.Shown(w.Clock.Now()).Incident; in != nil {
		w.Says(id, evidence.Approved{
			Origin: evidence.Origin{ID: ApprovalID, Time: w.Clock.Now()}, Word: evidence.Word{By: by}, Incident: in.ID, Action: in.Asked,
		})
	}
}

// Says has a workload learn what a person says, as the operator's command does: on the ledger.
func (w *World) Says(id string, e evidence.Evidence) {
	if w.Hooks.Said != nil {
		w.Hooks.Said(id, e)
	}
	a := &ledger.Advancer{
		Ledger: w.Ledger, Now: w.Clock.Now, Sleep: w.Clock.Sleep, Source: "//pitstop/operator", Log: w.log, Decide: w.Hooks.Decide,
		Cause:     func(context.Context) string { return ApprovalID },
		Policies:  policy.NewSource(policyURI(w.Opts.Policy), func(context.Context, string) ([]byte, error) { return w.Opts.Policy, nil }, w.Opts.Ceiling(), w.Clock.Now),
		Publisher: w.Publisher(),
		Saved:     w.Said,
	}
	if _, err := a.Advance(context.Background(), id, e); err != nil && !fault.IsIgnored(err) {
		w.Must(err)
	}
}

// Lines are the lines of the story from a place on, as they stand now.
func (w *World) Lines(from int) []Line {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.Story.Lines[min(from, len(w.Story.Lines)):])
}

// Said has the story tell what followed from a person's word, which a verb of the operator's command has stored.
func (w *World) Said(_ context.Context, s ledger.Step) { w.saved(operator, s) }

// Publisher publishes events as the functions do.
func (w *World) Publisher() ledger.Publisher {
	return eventPublisher{broker: w.Broker, topics: routes, sent: w.sent, unnotified: w.Opts.Unnotified}
}

// SinksTake is how long the sinks take to bring an entry.
const SinksTake = 600 * time.Millisecond

// Logged has the sinks bring an entry of the simulated world.
func (w *World) Logged(raw []byte) {
	if w.Hooks.Logged != nil {
		w.Hooks.Logged(raw)
		return
	}
	e, err := events.Read(raw)
	w.Bring(raw, e, err, SinksTake)
}

// Bring brings an entry to the pipeline after some time; err is why it cannot be read.
func (w *World) Bring(raw []byte, e events.Entry, err error, wait time.Duration) {
	w.Awaits()
	w.Clock.At(w.Clock.Now().Add(wait), func() {
		defer w.Played()
		if err != nil {
			w.Must(fmt.Errorf("the simulated world wrote a faulty entry: %w", err))
			return
		}
		w.Deliver(raw, e, true)
	})
}

// IncidentsEnded is how many incidents have ended.
func (w *World) IncidentsEnded() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.Story.Ended)
}
