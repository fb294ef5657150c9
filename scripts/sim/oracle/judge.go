// Package oracle is the judge of a simulation: it sees the truth of the simulated world, holds what happens against the rules of the
// design, and reports.
package oracle

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/view"
)

// A rule stands in a file of its own, named after it: the ten of the design from fence.go to lost.go, and those of ends.go, told.go, leaked.go,
// record.go and cause.go. This file brings them what happens. What the judge knows of the world stands in past.go, pods.go and trainings.go,
// what it sees of a document in seen.go.

// called follows the calls of ours that change something in the simulated cloud.
func (c *Checks) called(e cloudtputest.Event) {
	if e.Kind != cloudtputest.Called || e.Principal != world.Ours(c.Project) || !world.Mutates(e.Method) {
		return
	}
	held := []string{e.Node}
	if e.QueuedResource != "" {
		held = c.held(e.QueuedResource)
	}
	id := c.Workload(held[0])
	r := c.record(id)
	if askedInVain.MatchString(e.Error) {
		c.Violated(ruleOrdered, "", "%s of %s asks for what is not there: %s", e.Method, e.Resource(), e.Error)
	}
	c.wrote(id, "", arrival{e.Method, e.Resource(), e.RequestID, c.Clock.Now()})
	if e.Method == "CreateNode" || e.Method == "CreateQueuedResource" {
		for _, slice := range held {
			c.asksIn(id, slice, e.Place())
		}
	}
	if e.Code != 0 {
		r.refused = append(r.refused, c.Clock.Now())
		return
	}
	c.actions[e.Method]++
	if e.Method != "UpdateNode" { // which asks for a save
		r.called = c.Clock.Now()
	}
	inst := c.chaos.Current
	doc, err := c.document(id)
	if fault.IsBusy(err) {
		return // the newer release has taken the document meanwhile
	}
	if err != nil || inst == nil {
		c.Violated("1 fence", id, "%s of %s by nobody, or for a workload that is not there: %v", e.Method, held[0], err)
		return
	}
	c.allowed(inst, id, e.Method+" of "+e.Resource(), func(p policy.Policy) bool { return !p.Switches.WatchOnly() })
	c.unsuspected(e, inst, id)
	if e.Method == "StartNode" {
		doc = c.asSeen(inst, doc)
	}
	for i, slice := range held {
		k := call{Event: e, by: inst, slice: slice, doc: doc, known: doc.slice(slice)}
		k.read, k.looked = inst.Read[world.Place{Zone: e.Zone, Slice: slice}]
		if e.Legacy {
			k.RequestID = c.legacyID(k)
		}
		if i == 0 {
			c.current(k)
			c.prompt(k)
		}
		c.ownersWord(k)
		c.sparesProgress(k)
		if e.Method == "UpdateNode" || strings.HasPrefix(e.Method, "PerformMaintenance") {
			continue
		}
		c.overtaken(k)
		c.aimed(k)
		c.admittedAlone(k)
		c.brakedDeletion(k)
	}
}

// saved checks one write of a workload's document, and what led to it.
func (c *Checks) saved(s ledger.Step, was, is view.Workload) {
	before, after := see(s.Before, was), see(s.After, is)
	c.repeats(s, before, after)
	for _, e := range s.Evidence {
		if e, held := e.(evidence.Held); held && strings.Contains(e.Why, ledger.ErrBraked.Error()) {
			c.braked++
		}
	}
	c.moved(before, after)
}

// Unheard takes a write that took effect and of which its writer never heard.
func (c *Checks) Unheard(call ledgertest.Call) {
	if call.Collection != ledger.Workloads {
		return
	}
	doc, err := ledger.Value[incident.Workload](*call.Doc)
	if err != nil {
		return
	}
	// If others have written since, only their reports show it.
	after := see(doc, doc.Shown(c.Clock.Now()))
	r := c.record(after.ID)
	if r.last == nil || r.stored.Body != call.Body() {
		return
	}
	doc, err = ledger.Value[incident.Workload](r.prior)
	before := see(doc, doc.Shown(c.Clock.Now()))
	if err != nil || before.Epoch < r.last.Epoch {
		before = *r.last
	}
	c.moved(before, after)
}

// moved checks one step of a workload.
func (c *Checks) moved(before, after seen) {
	r := c.record(after.ID)
	if r.last != nil && r.last.Epoch > after.Epoch {
		return // it is reported late: later events were reported already
	}
	r.last = &after
	c.pace(r, before, after)
	if after.Epoch < before.Epoch {
		c.Violated("1 fence", after.ID, "the epoch went from %d to %d", before.Epoch, after.Epoch)
	}
	c.claims(before, after)
	c.proven(before, after)
	c.refills(before, after)
	c.restarted(before, after)
	c.inTime(before, after)
	if len(c.gangs(after.ID)) == 0 {
		c.aim(before, after)
	} else if !after.WaitTold.Equal(before.WaitTold) {
		c.rightWait(after)
	}
	over := after.Over
	c.settled(r, after)
	c.suspicions(r, after, over != nil && over.ID != r.done)
	if over != nil && over.ID != r.done {
		r.done = over.ID
		c.closed(r, after)
	}
	if in := after.Open; in != nil && in.ID != r.open {
		c.opened(r, after)
	}
}

// aim has the faults strike in the middle of an incident.
func (c *Checks) aim(before, after seen) {
	switch {
	case after.Open == nil:
	case before.phase() != after.phase():
		c.Entered(after.shown)
	case after.Epoch > before.Epoch:
		c.Asked(after.shown)
	}
}

func (c *Checks) opened(r *record, w seen) {
	c.Incidents++
	if len(c.gangs(w.ID)) == 0 && !c.explained(r, w) {
		c.Violated("4 one trouble", w.ID, "incident %s was opened for %s, and nothing had happened since the last one", w.Open.ID, w.Open.Cause)
	}
	c.standstill(w)
	r.open, r.opened, r.openedFor, r.called, r.ready = w.Open.ID, c.Clock.Now(), w.Open.Cause, time.Time{}, time.Time{}
	r.forbidden = w.Open.Forbidden
	r.baseline, r.at, r.stood, r.deaf = r.saved, c.step(w.ID), c.standsOrUnheard(w.ID), c.unlistened(r) || c.mute(w.ID)
	for _, g := range c.gangs(w.ID) {
		g.opened = g.Began()
	}
	c.decided(w, r.opened)
}

func (c *Checks) closed(r *record, w seen) {
	in := w.Over
	if in.ID != r.open { // it opened in this very step
		first := w
		first.Open = in
		c.opened(r, first)
	}
	c.ended[string(in.Outcome)]++
	c.causes[string(in.Cause)]++
	right := c.judged(r, w)
	if (in.Outcome == view.Resumed) != (in.Code == "") {
		c.Violated("10 nothing lost", w.ID, "%s ended %s with the code %q: %s", in.ID, in.Outcome, in.Code, in.Reason)
	}
	switch r.closed = c.Clock.Now(); {
	case in.Outcome == view.Withdrawn: // which mends nothing
	case in.Outcome == view.Escalated, in.Outcome == view.Observed, c.did(w.ID, r.opened, func(d deed) bool { return d.kind == saidCancel }):
		r.told, r.left = true, r.closed
		clear(r.broken)
	case in.Outcome == view.Released:
		if r.told = false; right {
			clear(r.broken) // the whole slice belongs to its owner now
		}
	default:
		r.told = false
	}
	r.byHand = r.byHand || in.Outcome == view.Escalated && in.Clears
	if in.Outcome == view.Resumed {
		r.saved = min(r.saved, c.step(w.ID), c.truly(w.ID)) // where it goes on from further back, no more is saved of it than that
	}
	if len(c.gangs(w.ID)) > 0 {
		c.jobClosed(r, w, in)
		return
	}
	r.past = append(r.past, ended{in.ID, r.stood})
	c.Clock.At(c.Clock.Now(), func() { c.told(w.ID, in) }) // a bucket write of this moment is seen after this step
	if !in.Down.IsZero() {
		away := in.shown.Cost.Away()
		c.lost[string(in.Cause)] += away
		c.chipHoursLost += away.Hours() * float64(in.Chips)
	}
	if r.forbidden && in.Outcome != view.Observed {
		c.Violated("owner's word", w.ID, "%s ended %s, and its policy allowed nothing", in.ID, in.Outcome)
	}
	if in.Outcome != view.Resumed {
		return
	}
	c.confirmed[string(in.ConfirmedBy)]++
	if !r.ready.IsZero() {
		c.reaction["ready_to_progress"] = append(c.reaction["ready_to_progress"], r.closed.Sub(r.ready))
	}
	c.crewless(r, w, in)
}

// Checks hold what happens against the rules of the design. They see the truth: the cloud, the training and the people of
// the simulated world, and every write, call and message.
type Checks struct {
	*world.World
	chaos      *faults.Chaos
	releases   *faults.Releases
	Violations []Violation
	// belongs is the workload of each slice, fleetOf are the slices of each workload.
	belongs map[string]string
	fleetOf map[string][]world.SliceConfig
	// of is the knowledge about each workload, by ID.
	of map[string]*record
	// taken are the calls for which the brake gave a slot.
	taken map[string]bool
	// untimely are the entries, by ID, that have the time of a clock that goes wrong.
	untimely map[string]bool
	// abuse is what Google suspects, by life.
	abuse map[string]suspicion
	// shape is that in which somebody ordered a slice last, by slice.
	shape map[string]string
	// past is what happened to each slice, room since when each zone has had room for slices without bound.
	past map[string][]deed
	room map[string]time.Time
	// mapped are the lives, by ID, of which somebody has read the names of the workers.
	mapped map[string]bool
	// committed is when a checkpoint was complete last in each directory.
	committed map[string]time.Time
	// savedTo is the highest step that was saved in each.
	savedTo map[string]int64
	// lookedAt is when a function last listed each directory.
	lookedAt map[string]time.Time
	// jobs is what is known of the Jobs of clusters.
	jobs jobs
	// policies are the policy files that were in force, each from a time on.
	policies []inForce

	handled                                   int
	happen, ended, confirmed, causes, actions map[string]int
	reached, classes                          map[string]int
	// ends counts how incidents ended, by their last trouble.
	ends                              map[string]map[string]int
	reaction                          map[string][]time.Duration
	lost                              map[string]time.Duration
	away                              []AwayOf
	goodput, chipHours, chipHoursLost float64
	chipHoursUsed                     map[string]float64
	Incidents, braked                 int
	// Endless says that two steps lead to each other for ever: the run ends.
	Endless bool
	// Entered is called for each phase that an incident enters, and asked for each request that it sends in the middle of one.
	Entered, Asked func(view.Workload)
}

// record is what a simulation remembers of one workload.
type record struct {
	// last is the document as its last writer reported it, stored its last written form and prior the form before that. open is
	// the incident last reported, done the last one that ended.
	last       *seen
	stored     ledger.Record
	prior      ledger.Record
	open, done string
	// costs is the incident that ended last, while late evidence may change what it cost.
	costs  *costs
	opened time.Time
	// forbidden says that its policy allowed nothing when it opened.
	forbidden bool
	// openedFor is the cause that the incident was opened for.
	openedFor events.Cause
	// deaf says that by then nobody had read what the crews write on their machines, or that one of them had written nothing.
	deaf     bool
	called   time.Time
	ready    time.Time
	happened []happened
	// skewed is when an entry about a slice had the time of a clock that goes wrong last: whether it tells of an old loss or of a
	// new one, nobody can know.
	skewed time.Time
	// taken is when the owner deleted a slice in quiet times, and the log says so, by slice.
	taken map[string]time.Time
	// shapes are those besides the first in which the owner has created a slice.
	shapes []string
	// broken is since when an unreported slice has not been usable, by slice.
	broken map[string]time.Time
	// heard is when a line of the crew about its steps was last handled, and gap the longest time between two such lines.
	// listened is when the crew's state on its machine was last read.
	heard, listened time.Time
	gap             time.Duration
	// crashes are the failures of the training of which an incident was opened.
	crashes []time.Time
	// causes are the handled entries of Google that say why a machine was lost, by when it happened.
	causes []cause
	// refused is when calls of ours were refused.
	refused []time.Time
	// told says that an incident left its trouble to a person, left is when that last happened, closed when the last incident
	// ended.
	told         bool
	left, closed time.Time
	// suspected are the lives on which Google suspects abuse, and when a person was notified of it.
	suspected map[string]time.Time
	// byHand says that a person was asked to delete the slices that a clean-up could not.
	byHand bool
	// refilled is when the budgets were refilled last, and spent what has been done since the training did its last new step.
	refilled time.Time
	spent    inVain
	// attempt is the last one that a lease of ours has named.
	attempt int
	// hour is the one in which steps are counted, and began the epoch with which it began.
	hour  time.Time
	began int64
	// policy is that of the last decision. The other two begin anew with each incident and each policy: givenUp are the calls that were given
	// up before anybody had begun them, and waits are those in the story.
	policy  policy.Policy
	givenUp map[wanted]givenUp
	waits   map[toldWait]view.Workload
	// calls are what the simulated APIs saw of ours, past the incidents that are over.
	calls []arrival
	past  []ended
	// saved is the last saved step in a handled line of the crew; baseline is the saved step when the incident was opened.
	saved, baseline int64
	// at is the step of the training when the incident was opened, and stood says that it stood still then.
	at    int64
	stood bool
}

// ended is an incident that is over. Stood says that the training stood still when it was opened, as far as anybody could know.
type ended struct {
	id    string
	stood bool
}

// happened is what happened to a workload, and when.
type happened struct {
	at   time.Time
	what string
}

// cause is why a machine was lost at a moment, as an entry says that was handled.
type cause struct {
	at, handled time.Time
	cause       events.Cause
	// untimely says that its time is that of a clock that goes wrong.
	untimely bool
}

// New is the judge of a world with these faults and other releases in it.
func New(w *world.World, drawn *faults.Chaos, others *faults.Releases) *Checks {
	c := &Checks{
		World: w, chaos: drawn, releases: others, of: map[string]*record{}, abuse: map[string]suspicion{}, taken: map[string]bool{}, untimely: map[string]bool{}, happen: map[string]int{}, ended: map[string]int{}, confirmed: map[string]int{},
		causes: map[string]int{}, actions: map[string]int{}, reached: map[string]int{}, classes: map[string]int{},
		reaction: map[string][]time.Duration{}, lost: map[string]time.Duration{}, ends: map[string]map[string]int{},
		belongs: map[string]string{}, fleetOf: map[string][]world.SliceConfig{}, policies: []inForce{putInForce(w.Start, w.Opts.Policy)}, shape: map[string]string{},
		past: map[string][]deed{}, room: map[string]time.Time{}, mapped: map[string]bool{}, committed: map[string]time.Time{}, savedTo: map[string]int64{}, lookedAt: map[string]time.Time{},
	}
	for _, f := range w.Fleet {
		if _, twice := c.belongs[f.Name]; !twice {
			c.belongs[f.Name] = w.Project + "/" + f.WorkloadName()
		}
		c.fleetOf[c.belongs[f.Name]] = append(c.fleetOf[c.belongs[f.Name]], f)
		c.shape[f.Name] = f.Accelerator
		at := c.ordered(f)
		at.Zone = f.Zone
		c.past[f.Name] = []deed{{at: w.Start, kind: usable, zone: f.Zone, place: at}, {at: w.Start, kind: labelled, by: faults.Owner, zone: f.Zone, label: f.Policy}}
	}
	c.watchJobs()
	for _, zone := range w.API.Zones() {
		if c.hasRoom(zone) {
			c.room[zone] = w.Start
		}
	}
	return c
}

// Attach has the judge see the world. It is called before the world is founded.
func (c *Checks) Attach() {
	c.Hooks.Join(world.Hooks{
		Delivered: c.answered, Saved: c.saved, Said: c.words, Changed: c.changed, Committed: c.commits,
		Failed: func(class reason.FailureClass) { c.classes[string(class)]++ },
		Observed: func(e cloudtputest.Event) {
			c.called(e)
			c.follow(e)
		},
		Cluster: c.changedIn, Taken: c.machineTaken, Acted: c.acted, Ours: c.calledJob, Marked: c.marked,
	})
}

func (c *Checks) record(workload string) *record {
	r := c.of[workload]
	if r == nil {
		r = &record{taken: map[string]time.Time{}, suspected: map[string]time.Time{}, broken: map[string]time.Time{}}
		c.of[workload] = r
	}
	return r
}

// mostViolations is how many are kept.
const mostViolations = 20

// Violated notes that a rule is broken now.
func (c *Checks) Violated(rule, workload, format string, args ...any) {
	if len(c.Violations) >= mostViolations {
		return
	}
	c.Violations = append(c.Violations, c.violation(rule, workload, fmt.Sprintf(format, args...)))
}

// violation is a rule that is broken now.
func (c *Checks) violation(rule, workload, text string) Violation {
	return Violation{Rule: rule, At: c.Clock.Now().UTC(), Workload: workload, Text: text, Faults: min(c.chaos.Count, c.chaos.Limit)}
}

// Workload is the workload of a slice, as its label and its queued resource make it.
func (c *Checks) Workload(slice string) string {
	if id, ok := c.belongs[slice]; ok {
		return id
	}
	return c.Project + "/" + slice
}

// Enforced takes note of the policy file that is in force from now on.
func (c *Checks) Enforced(file []byte) {
	c.policies = append(c.policies, putInForce(c.Clock.Now(), file))
}

// Happened takes note of a trouble, and of the slice that it concerns, if it does.
func (c *Checks) Happened(what, slice string) {
	c.happen[what]++
	now := c.Clock.Now()
	if slice == "" {
		return
	}
	r := c.record(c.Workload(slice))
	r.happened = append(r.happened, happened{now, what})
}

// Skewed takes note of an entry about a slice, or about one of its workers, whose time is wrong.
func (c *Checks) Skewed(e events.Entry) {
	c.untimely[e.ID] = true
	group, _, _ := e.Subject.Group()
	for _, f := range c.Fleet {
		for _, z := range c.Zones() {
			worker := slices.ContainsFunc(c.API.Hosts(z, f.Name), func(host string) bool {
				its, _, ok := events.WorkerGroup(host)
				return ok && its == group
			})
			if worker || f.Name == e.Subject.Node {
				c.record(c.Workload(f.Name)).skewed = c.Clock.Now()
			}
		}
	}
}

// Stored follows what handlers read and write in the ledger.
func (c *Checks) Stored(ctx context.Context, call ledgertest.Call, err error) {
	inst := world.InstanceOf(ctx)
	if call.Write && call.Collection != ledger.Values {
		c.shows("a document of "+call.Collection, call.Body())
	}
	switch call.Collection {
	case ledger.Workloads:
		if err == nil && !call.Query {
			inst.Workload, inst.Seen = *call.Doc, c.Clock.Now()
		}
		// Whether its writer hears of it or not.
		if n := len(call.Body()); call.Write && n > mostBytes {
			c.Violated("size", "", "a document of %d bytes was written", n)
		}
		if call.Write && err == nil {
			id, err := url.PathUnescape(call.Doc.ID)
			if err == nil {
				c.IsDue(id, !call.Doc.Due.IsZero() && c.pending(call.Body()))
			}
			if err == nil && c.releases.Documents[id] {
				c.Violated("10 nothing lost", id, "a document of the newer release was overwritten")
			}
			r := c.record(id)
			r.prior, r.stored = r.stored, *call.Doc
		}
	case ledger.Pauses:
		pauses(inst, c.Clock.Now(), call, err)
	case ledger.Brake:
		if err == nil {
			c.brakes(call)
		}
	}
}

// pauses takes note of what a handling reads of the pause of all.
func pauses(inst *world.Instance, now time.Time, call ledgertest.Call, err error) {
	if call.Write || err != nil && !errors.Is(err, ledger.ErrNotFound) {
		return
	}
	inst.PauseRead, inst.Pause = now, nil
	if err != nil {
		return
	}
	if p, err := ledger.Value[evidence.Pause](*call.Doc); err == nil && p != (evidence.Pause{}) {
		inst.Pause = &p
	}
}

// Read follows what handlers read of the cloud.
func (c *Checks) Read(ctx context.Context, r cloudtputest.Request) {
	inst := world.InstanceOf(ctx)
	if r.Method != http.MethodGet {
		return
	}
	zone, rest, ok := strings.Cut(faults.ShortPath(r.Path), "/")
	if !ok {
		return
	}
	kind, name, one := strings.Cut(rest, "/")
	if kind != "nodes" {
		return
	}
	for _, f := range c.Fleet {
		if one && f.Name != name || f.Legacy != strings.HasPrefix(r.Path, "/v1/") {
			continue // the other version of the API shows it
		}
		got := world.SliceRead{At: c.Clock.Now(), State: "gone"}
		if state, life := c.API.State(zone, f.Name); state != "" {
			got.State, got.Life = state, life.ID
		}
		inst.Read[world.Place{Zone: zone, Slice: f.Name}] = got
	}
}

// Looks follows what handlers read of checkpoint directories.
func (c *Checks) Looks(r *http.Request) {
	prefix := r.URL.Query().Get("prefix")
	if r.Method != http.MethodGet || prefix == "" {
		return
	}
	for _, f := range c.Fleet {
		bucket, dir, ok := strings.Cut(strings.TrimPrefix(f.Directory, "gs://"), "/")
		if ok && strings.Contains(r.URL.Path, "/b/"+bucket+"/") && strings.HasPrefix(prefix+"/", dir+"/") {
			c.lookedAt[f.Directory] = c.Clock.Now()
		}
	}
}

// Took takes note of what the owner deletes in quiet times: the audit log tells of it, whatever becomes of the entries on
// their way.
func (c *Checks) Took(slice string) {
	if r := c.record(c.Workload(slice)); r.open == r.done {
		r.taken[slice] = c.Clock.Now()
	}
}

// Ordered takes note of the shape in which an owner creates a slice.
func (c *Checks) Ordered(f world.SliceConfig, shape string) {
	if shape != f.Accelerator {
		c.happen["created by its owner in another shape"]++
		r := c.record(c.Workload(f.Name))
		r.shapes = append(r.shapes, shape)
	}
}

// Suspects takes note of what Google suspects on a life, or does not any more.
func (c *Checks) Suspects(life string, suspected bool) {
	if suspected {
		c.abuse[life] = suspicion{Since: c.Clock.Now()}
		return
	}
	s := c.abuse[life]
	s.Ended = c.Clock.Now()
	c.abuse[life] = s
}

// ByHand reports whether a person was asked to delete the slices of a workload.
func (c *Checks) ByHand(workload string) bool { return c.record(workload).byHand }

// changed follows what is written beside the checkpoints.
func (c *Checks) changed(bucket, name string) {
	if strings.HasSuffix(name, "/"+checkpoint.LeaseName) {
		c.Clock.At(c.Clock.Now(), func() { c.leased("gs://" + bucket + "/" + name) })
	}
	if strings.HasSuffix(name, "/"+checkpoint.LeaseName) || strings.HasSuffix(name, "/"+checkpoint.RequestName) {
		c.Clock.At(c.Clock.Now(), func() { c.written("gs://" + bucket + "/" + name) })
	}
	if strings.HasSuffix(name, "/commit_success.txt") {
		c.commits("gs://"+bucket+"/"+path.Dir(path.Dir(name)), path.Base(path.Dir(name)))
		c.Clock.At(c.Clock.Now(), c.haunted)
	}
}

// answered follows the messages. The owner's action is known once its entry is handled, unless the entry's time is too early
// to concern the present slice.
func (c *Checks) answered(sub string, m world.Message, status int) {
	c.handled++
	c.shows("a message of "+m.Topic, string(m.Data))
	if until, newer := c.releases.Events[m.ID]; newer && status == http.StatusOK && c.Clock.Now().Before(until) {
		c.Violated("10 nothing lost", "", "message %s of the newer release was acknowledged by this one", m.ID)
	}
	if status != http.StatusOK || !strings.HasSuffix(sub, "/logevent") {
		return
	}
	e, err := m.Read()
	switch {
	case err != nil:
	case e.Kind == events.KindLoss:
		c.explains(e)
	case c.untimely[e.ID]:
	case e.Kind == events.KindCrew:
		c.spoke(e)
	}
}

// workloadOf is the workload whose crew wrote a line.
func (c *Checks) workloadOf(line events.CrewReport) string {
	wrote := func(g *gang) bool { return g.Slice == line.Node && g.Scope == line.Zone }
	for id, all := range c.jobs.of {
		if slices.ContainsFunc(all, wrote) {
			return id
		}
	}
	return c.Workload(line.Node)
}

// spoke takes note of a line of a crew that was handled.
func (c *Checks) spoke(e events.Entry) {
	if e.Crew.Report != events.ReportProgress {
		return
	}
	w := c.workloadOf(*e.Crew)
	r := c.record(w)
	if !r.heard.IsZero() && e.Time.After(r.heard) {
		r.gap = max(r.gap, e.Time.Sub(r.heard))
	}
	if e.Time.After(r.heard) && r.open == r.done { // what comes in the middle of an incident may be of a former life
		r.saved = min(e.Crew.CheckpointStep, c.truly(w)) // a forged line may tell of any
	}
	r.heard = later(r.heard, e.Time)
}

// follow follows the cloud: a slice that somebody creates is watched again.
func (c *Checks) follow(e cloudtputest.Event) {
	c.remember(e)
	if e.Kind == cloudtputest.Called && e.Method == "GetGuestAttributes" && e.Code == 0 {
		c.record(c.Workload(e.Node)).listened = c.Clock.Now()
		c.mapped[e.Incarnation.ID] = true
	}
	c.breaks(e)
	if e.Node == "" {
		return
	}
	if e.Kind == cloudtputest.Called && e.Method == "CreateNode" && e.Code == 0 && e.Principal != world.Ours(c.Project) {
		if n := c.API.Node(e.Zone, e.Node); n != nil {
			c.shape[e.Node] = n.AcceleratorType
		}
	}
	if e.Kind != cloudtputest.Ready {
		return
	}
	r := c.record(c.Workload(e.Node))
	if c.maker(e.Node, e.Incarnation) == world.Ours(c.Project) {
		c.spends(c.Workload(e.Node), e.Node+" was replaced")
	}
	if !r.called.IsZero() && r.ready.IsZero() {
		r.ready = c.Clock.Now()
		c.reaction["call_to_ready"] = append(c.reaction["call_to_ready"], r.ready.Sub(r.called))
	}
}

// words keeps what a person says of a workload.
func (c *Checks) words(workload string, e evidence.Evidence) {
	switch e := e.(type) {
	case evidence.Cancelled:
		c.said(workload, e.By, saidCancel)
	case evidence.Retried:
		c.said(workload, e.By, saidRetry)
		c.record(workload).spent = inVain{} // they say that the cause is mended
	}
}

// inForce is a policy file from a time on, or why it cannot be read.
type inForce struct {
	from  time.Time
	file  *policy.File
	fault error
}

func putInForce(from time.Time, data []byte) inForce {
	file, err := policy.Parse(data)
	return inForce{from, file, err}
}

// pending reports whether something is due at the workload of a document that is worth waiting for. A document that cannot be read is.
func (c *Checks) pending(body string) bool {
	var w incident.Workload
	if !strings.Contains(body, `"ends":`) || json.Unmarshal([]byte(body), &w) != nil {
		return true
	}
	return w.HasDue(c.Clock.Now())
}
