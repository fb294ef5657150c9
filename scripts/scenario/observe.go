package scenario

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
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/tpu/tputest"
)

// tell adds a line to the story and returns its place.
func (w *world) tell(l Line) int {
	if w.opts.Mute {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l.Scenario = w.story.Name
	l.Time = l.Time.UTC()
	w.story.Lines = append(w.story.Lines, l)
	w.placed(l.Workload, len(w.story.Lines)-1)
	if w.opts.Told != nil {
		w.opts.Told(l)
	}
	return len(w.story.Lines) - 1
}

// deliver brings an entry to the pipeline, as the sinks do: notices on a topic of their own, and unread entries to none.
func (w *world) deliver(raw []byte, e events.Entry, simulated bool) {
	if e.Ignored != "" {
		return // no sink would let it through
	}
	l := Line{
		Time: w.clock.Now(), Kind: Entry, EventType: string(e.Kind), Subject: e.Subject.String(), Text: e.Describe(), Simulated: simulated,
		Crew:    e.Crew,
		Routine: e.Crew != nil && e.Crew.Report == events.ReportProgress || e.Kind == events.KindCall && e.Call.Principal == ours(w.Project),
	}
	if len(e.Missing) > 0 {
		l.Reason = "without " + strings.Join(e.Missing, ", ")
	}
	topic := topicLogs
	if e.Kind == events.KindNotice {
		topic = topicNotices
	}
	attributes := map[string]string{"logging.googleapis.com/timestamp": e.Time.UTC().Format(time.RFC3339Nano)}
	l.MessageID = w.publish(Message{Topic: topic, Data: raw, Attributes: attributes, entry: &e})
	if w.opts.Mute {
		return
	}
	place := w.tell(l)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lines[l.MessageID] = place
}

// publish puts a message on its topic, and returns its ID.
func (w *world) publish(m Message) string {
	if w.carrier != nil {
		return w.carrier.Publish(m.Topic, m.Data, m.Attributes)
	}
	return w.broker.publish(m)
}

func (w *world) inFlight() int {
	if w.carrier != nil {
		return w.carrier.Pending()
	}
	return w.broker.Pending()
}

// delivered completes the line of an entry when it is known whom it concerned.
func (w *world) delivered(sub string, m Message, _, code int) {
	if w.hooks.Delivered != nil {
		w.hooks.Delivered(sub, m, code)
	}
	if w.opts.Mute {
		return
	}
	w.mu.Lock()
	place, ok := w.lines[m.ID]
	w.mu.Unlock()
	if !ok {
		return
	}
	reason := ""
	e, err := m.read()
	if err != nil {
		return
	}
	s, err := w.ledger.Find(context.Background(), e.Subject)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		reason = "nobody known is concerned; parked"
	case err != nil:
		reason = err.Error()
	case code != http.StatusOK:
		reason = "left for redelivery"
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	l := &w.story.Lines[place]
	l.Workload, l.Incident = s.Workload, w.incidents[s.Workload]
	w.placed(l.Workload, place)
	if reason != "" {
		l.Reason = reason
	}
}

func (w *world) workloadOf(slice string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, id := range w.owners {
		if strings.HasSuffix(key, "/"+slice) {
			return id
		}
	}
	return ""
}

func (w *world) incidentOf(workload string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.incidents[workload]
}

// saved reports decisions: only stored ones are real.
func (w *world) saved(function string, s ledger.Step) {
	before, after := s.Before, s.After
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
		w.story.open(after)
	}
	for _, s := range after.Slices {
		w.owners[s.Zone+"/"+s.Name] = after.ID
	}
	switch {
	case w.hooks.Saved != nil && function != operator: // the judge sees the write itself, and not when its answer comes
	case after.Due().IsZero():
		delete(w.busy, after.ID)
	default:
		w.busy[after.ID] = true
	}
	w.mu.Unlock()

	if w.hooks.Saved != nil {
		w.hooks.Saved(s)
	}
	if c := after.Closed; c != nil && (before.Closed == nil || before.Closed.ID != c.ID || before.Closed.Revision != c.Revision) {
		defer w.ended(after, *c)
	}
	if w.tracker != nil {
		w.tracker.saved(s)
	}
	if w.opts.Mute {
		return
	}
	base := Line{Time: w.clock.Now(), Incident: id, Workload: after.ID, Function: function, Subject: after.ID}
	w.tellReadings(base, before, after)
	w.tellNotices(base, before, after)
	w.tellTimeline(base, before, after)
}

// tellReadings tells of slices that the API shows in another condition than before.
func (w *world) tellReadings(base Line, before, after incident.Workload) {
	for _, s := range after.Slices {
		old := before.Slice(s.Name)
		l := base
		l.Kind, l.Simulated = Reading, true
		switch {
		case old == nil:
			l.Text = fmt.Sprintf("node %s is %s", s.Name, s.State)
			l.Reason = fmt.Sprintf("first seen: %s in %s, incarnation %s", s.Accelerator, s.Zone, s.Incarnation)
			l.Routine = after.Incident == nil
		case old.Condition == s.Condition && old.Incarnation.Same(s.Incarnation):
			continue
		default:
			l.Text = fmt.Sprintf("node %s is %s", s.Name, s.State)
			l.Routine = s.Condition == incident.Deleting || s.Condition == incident.Creating
			if !old.Incarnation.Same(s.Incarnation) {
				l.Reason = fmt.Sprintf("incarnation %s in %s", s.Incarnation, s.Zone)
			}
		}
		w.tell(l)
	}
}

// tellNotices reports the handling of a notice while no incident is open.
func (w *world) tellNotices(base Line, before, after incident.Workload) {
	if after.Incident != nil || before.Incident != nil {
		return
	}
	for _, n := range after.Notices {
		i := slices.IndexFunc(before.Notices, func(o incident.Notice) bool { return o.Slice == n.Slice })
		if i >= 0 && before.Notices[i].Notice.Equal(n.Notice) && before.Notices[i].Due.Equal(n.Due) {
			continue
		}
		l := base
		l.Kind = Decision
		switch {
		case n.Status == events.NoticeGone:
			l.Decision, l.Reason = "forget the notice", "the maintenance was withdrawn before anything was asked for"
		case n.Due.IsZero():
			l.Decision, l.Reason = "keep the notice", "it does not say when"
		case !n.Due.After(w.clock.Now()):
			l.Decision, l.Reason = "keep the notice; the save is due now", "the maintenance may be started before its window "+events.Window(n.WindowStart, n.WindowEnd)
		default:
			l.Decision = "keep the notice; the save is due at " + n.Due.UTC().Format("Jan 2 15:04")
			l.Reason = "shortly before the window " + events.Window(n.WindowStart, n.WindowEnd)
		}
		l.Text = l.Decision
		w.tell(l)
	}
}

// tellTimeline tells the lines that an incident's own story has gained.
func (w *world) tellTimeline(base Line, before, after incident.Workload) {
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
	for _, old := range []*incident.Incident{before.Incident, before.Closed} {
		if old != nil && old.ID == in.ID {
			told = len(old.Timeline) + old.LeftOut
		}
	}
	gained := len(in.Timeline) + in.LeftOut - told
	for _, t := range in.Timeline[max(0, len(in.Timeline)-gained):] {
		l := base
		l.Incident = in.ID
		l.Phase, l.Reason, l.Code, l.Text = string(t.Phase), t.Reason, string(t.Code), t.Text
		switch t.Kind {
		case incident.LineSeen:
			if !w.newsFrom(t.Source) {
				continue // the entry or the reading that led to it has its own line
			}
			l.Kind, l.MessageID, l.Simulated = Reading, t.Source, true
		case incident.LineDecided:
			l.Kind, l.Decision = Decision, t.Text
		case incident.LineAsked, incident.LineCame:
			l.Kind, l.Simulated = Answer, true
			// That a call was accepted its own line says.
			l.Routine = t.Reason == "" && (t.Phase == incident.Removing || t.Phase == incident.Recreating || t.Phase == incident.Maintaining)
		case incident.LineEnded:
			l.Kind, l.Outcome, l.Code = End, string(in.Outcome), string(in.Code)
			l.Calls, l.Plan = in.Calls, in.Plan
			l.Decision = in.Advice
		}
		w.tell(l)
	}
}

// newsFrom reports whether evidence of this origin has no line of its own: a person's word, a notice from patrol.
func (w *world) newsFrom(source string) bool {
	return source == approvalID
}

const (
	approvalID = "approval"
	operator   = "operator"
)

// placed notes that a line is about a workload, for the moment at which its incident ends.
func (w *world) placed(workload string, place int) {
	if w.opts.Ended != nil && workload != "" {
		w.places[workload] = append(w.places[workload], place)
	}
}

func (w *world) ended(d incident.Workload, in incident.Incident) {
	w.mu.Lock()
	defer w.mu.Unlock()
	r := w.story.ended(d, in)
	for i := range w.story.Ended {
		if old := w.story.Ended[i]; old.Workload == d.ID && old.ID == in.ID {
			r.Away, r.ChipHours = old.Away, old.ChipHours // the workload may have other slices by now
			w.story.Ended[i] = r
			return
		}
	}
	w.story.Ended = append(w.story.Ended, r)
	if w.opts.Ended != nil {
		w.justEnded = append(w.justEnded, r)
	}
}

// show hands on the incidents that have just ended. By now all that happened at that moment has its lines.
func (w *world) show() {
	w.mu.Lock()
	ended := w.justEnded
	w.justEnded = nil
	shown := make([][]Line, len(ended))
	for i, r := range ended {
		places := w.places[r.Workload]
		delete(w.places, r.Workload)
		slices.Sort(places)
		for _, place := range slices.Compact(places) {
			w.story.Lines[place].Shown = true
			shown[i] = append(shown[i], w.story.Lines[place])
		}
	}
	w.mu.Unlock()
	for i, r := range ended {
		w.opts.Ended(r, shown[i])
	}
}

// sent reports a request to another function. Notifications to people are not part of the story.
func (w *world) sent(e events.Envelope, topic, id string) {
	if e.Type == events.TypeIncidentUpdated {
		return
	}
	if w.tracker != nil {
		w.tracker.sent(e)
	}
	if w.hooks.Sent != nil {
		w.hooks.Sent(e, topic)
	}
	l := Line{
		Time: w.clock.Now(), Kind: Sent, Function: functionOf(e.Source), EventType: e.Type, Subject: e.Subject, MessageID: id,
		Workload: e.Subject, Incident: e.Correlation,
	}
	for _, f := range functions {
		if f.topic == topic {
			l.To = f.name
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
			what, l.Reason = what+" ("+string(r.Action)+" "+r.Slice+" in "+incident.Place{Zone: r.Zone, Accelerator: r.Accelerator}.String()+")", r.Reason
			w.count(r.Action)
		}
	}
	l.Text = what + " -> " + l.To
	w.tell(l)
}

func functionOf(source string) string { return source[strings.LastIndexByte(source, '/')+1:] }

func (w *world) count(a events.Action) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.story.Requests[string(a)]++
}

// observe follows the simulated cloud: the training hears of its machine, the log gets its audit entries, the story its
// calls.
func (w *world) observe(e tputest.Event) {
	if e.Kind == tputest.Called && e.Code == 0 && e.Error == "" && e.Node == "" && e.QueuedResource == "" {
		return // a listing changes nothing, and everybody may make one
	}
	if e.Kind != tputest.Called { // no training notices a call
		w.trains(e)
	}
	if w.hooks.Observed != nil {
		w.hooks.Observed(e)
		for _, raw := range tputest.SystemEntries(e) {
			w.audited.Write(raw)
			w.logged(raw)
		}
	}
	switch e.Kind {
	case tputest.Called:
		w.calledLine(e)
		if e.Method == "UpdateNode" { // a label that an owner changes is read at the next tick
			w.changes()
		}
	case tputest.Ended:
		w.operationLine(e)
	case tputest.Started, tputest.Metadata, tputest.Signalled, tputest.Supply:
	case tputest.Created, tputest.Ready, tputest.Unhealthy, tputest.Stopped, tputest.Lost, tputest.Deleting, tputest.Gone, tputest.Noticed, tputest.Queued:
		w.changes()
	}
	raw := tputest.AuditEntry(e)
	if raw == nil || e.Principal == ours(w.Project) && w.opts.NoOwnAudit || w.hushed(e) {
		return
	}
	w.audited.Write(raw)
	w.logged(raw)
}

// trains tells the trainings what happens to their machines.
func (w *world) trains(e tputest.Event) {
	on := w.training(e.Zone, e.Node)
	state, _ := w.api.State(e.Zone, e.Node)
	there := state != "" // a node that is gone has no label: the run itself knows whether it was its life
	for _, run := range w.runs {
		if t := w.trainings[run]; t == on || t.Slice != e.Node || !there {
			t.Observe(e)
		}
	}
}

// changes has the next tick look.
func (w *world) changes() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dirty = true
}

// hush says that the record holds the audit entries of a call.
func (w *world) hush(method, slice string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.silent[method+" "+slice] = 2
}

// hushed reports whether the record holds the audit entry of this event already.
func (w *world) hushed(e tputest.Event) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	key := e.Method + " " + e.Node
	if w.silent[key] == 0 || e.Principal == ours(w.Project) {
		return false
	}
	w.silent[key]--
	return true
}

func mutates(method string) bool {
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

func (w *world) callLine(e tputest.Event) Line {
	id := w.ownerOf(e.Zone, e.Node)
	return Line{
		Time: w.clock.Now(), Function: caller(e.Method), Subject: e.Resource(), Workload: id, Incident: w.incidentOf(id), Simulated: true,
	}
}

func (w *world) ownerOf(zone, node string) string {
	w.mu.Lock()
	id := w.owners[zone+"/"+node]
	w.mu.Unlock()
	if id == "" {
		id = w.workloadOf(node)
	}
	return id
}

func (w *world) calledLine(e tputest.Event) {
	if !mutates(e.Method) || e.Principal != ours(w.Project) {
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
		w.story.Calls[e.Method]++
		w.mu.Unlock()
	}
	w.tell(l)
}

func (w *world) operationLine(e tputest.Event) {
	if !mutates(e.Method) || e.Principal != ours(w.Project) || e.Method == "UpdateNode" {
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
	w.tell(l)
}

// calledAt says when the call was made that an operation answers to: there may have been a later one of the same kind.
func (w *world) calledAt(request string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, l := range slices.Backward(w.story.Lines) {
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
func (w *world) changed(bucket, name string, deleted bool) {
	for _, slice := range w.runs {
		w.trainings[slice].Changed(bucket, name, deleted)
	}
	if deleted {
		return
	}
	if w.hooks.Changed != nil {
		w.hooks.Changed(bucket, name)
	}
	what := ""
	function := ""
	switch {
	case strings.HasSuffix(name, checkpoint.LeaseName):
		if content, _, _ := w.bucket.Get(bucket, name); byCrew(content) {
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
			id = w.workloadOf(c.Name)
		}
	}
	if id == "" {
		return // a crew's own lease, before anybody looked
	}
	if w.tracker != nil {
		w.tracker.wrote(id, "gs://"+bucket+"/"+name)
	}
	w.tell(Line{
		Time: w.clock.Now(), Kind: Called, Function: function, Subject: "gs://" + bucket + "/" + name, Workload: id, Incident: w.incidentOf(id),
		Text: what + " written to gs://" + bucket + "/" + name, Simulated: true, Routine: true,
	})
}

// approve gives a person's yes to what a workload asks for.
func (w *world) approve(id, by string) {
	doc, _, err := w.ledger.Workload(context.Background(), id)
	if fault.IsBusy(err) {
		return
	}
	w.must(err)
	if in := doc.Incident; in != nil {
		w.says(id, incident.Approved{
			Origin: incident.Origin{ID: approvalID, Time: w.clock.Now()}, Word: incident.Word{By: by}, Incident: in.ID, Action: in.Asked,
		})
	}
}

// says has a workload learn what a person says, as the operator's command does: on the ledger.
func (w *world) says(id string, e incident.Evidence) {
	if w.hooks.Said != nil {
		w.hooks.Said(id, e)
	}
	a := &ledger.Advancer{
		Ledger: w.ledger, Now: w.clock.Now, Sleep: w.clock.Sleep, Source: "//pitstop/operator", Log: w.log, Decide: w.opts.Seams.Decide,
		Cause:     func(context.Context) string { return approvalID },
		Policies:  policy.NewSource(policyURI(w.opts.Policy), func(context.Context, string) ([]byte, error) { return w.opts.Policy, nil }, w.opts.ceiling(), w.clock.Now),
		Publisher: eventPublisher{broker: w.broker, topics: routes, sent: w.sent, carrier: w.carrier, unnotified: w.opts.Unnotified},
		Saved:     func(_ context.Context, s ledger.Step) { w.saved(operator, s) },
	}
	if _, err := a.Advance(context.Background(), id, e); err != nil && !fault.IsIgnored(err) {
		w.must(err)
	}
}

// sinksTake is how long the sinks take to bring an entry.
const sinksTake = 600 * time.Millisecond

// logged has the sinks bring an entry of the simulated world.
func (w *world) logged(raw []byte) {
	if w.hooks.Logged != nil {
		w.hooks.Logged(raw)
		return
	}
	e, err := events.Read(raw)
	w.bring(raw, e, err, sinksTake)
}

// bring brings an entry to the pipeline after some time; err is why it cannot be read.
func (w *world) bring(raw []byte, e events.Entry, err error, wait time.Duration) {
	w.awaits()
	w.clock.At(w.clock.Now().Add(wait), func() {
		defer w.played()
		if err != nil {
			w.must(fmt.Errorf("the simulated world wrote a faulty entry: %w", err))
			return
		}
		w.deliver(raw, e, true)
	})
}

// incidentsEnded is how many incidents have ended.
func (w *world) incidentsEnded() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.story.Ended)
}
