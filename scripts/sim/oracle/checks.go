// Package oracle is the judge of a simulation: it sees the truth of the simulated world, holds what happens against the rules of the
// design, and reports.
package oracle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-json-experiment/json"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/topology"
)

// Checks hold what happens against the rules of the design. They see the truth: the cloud, the training and the people of
// the simulated world, and every write, call and message.
type Checks struct {
	*world.World
	chaos    *faults.Chaos
	releases *faults.Releases
	// atOnce makes each decision again at once.
	atOnce     bool
	Violations []Violation
	// again makes decisions again, on another processor.
	again *repeater
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
	// trainsIn is since when somebody knows of each life, by ID, that training runs in it: by a line or a reading of its crew.
	trainsIn map[string]time.Time
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
	// pauses are when everything was paused.
	pauses []faults.Period

	handled                                   int
	happen, ended, confirmed, causes, actions map[string]int
	transitions, classes                      map[string]int
	// ends counts how incidents ended, by their last trouble.
	ends                              map[string]map[string]int
	reaction                          map[string][]time.Duration
	lost                              map[string]time.Duration
	goodput, chipHours, chipHoursLost float64
	Incidents, braked                 int
	// Endless says that two steps lead to each other for ever: the run ends.
	Endless bool
	// Entered is called for each phase that an incident enters, and asked for each request that it sends in the middle of one.
	Entered, Asked func(incident.Workload)
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

// record is what a simulation remembers of one workload.
type record struct {
	// last is the document as its last writer reported it, stored its last written form and prior the form before that. open is
	// the incident last reported, done the last one that ended.
	last       *incident.Workload
	stored     ledger.Record
	prior      ledger.Record
	open, done string
	opened     time.Time
	// openedFor is the cause that the incident was opened for.
	openedFor events.Cause
	// deaf says that by then nobody had read what the crews write on their machines, or that one of them had written nothing.
	deaf      bool
	called    time.Time
	ready     time.Time
	happened  []happened
	announced time.Time
	// released is when a word of the owner's about a slice was handled, by slice.
	released map[string]time.Time
	// usable is when a slice last became usable: earlier reports concern another life.
	usable map[string]time.Time
	// wanted is the life that its owner ordered last of a slice, where that was lost before it was usable.
	wanted map[string]events.Incarnation
	// put is the zone in which somebody else created a slice last, by slice.
	put map[string]string
	// skewed is when an entry about a slice had the time of a clock that goes wrong last: whether it tells of an old loss or of a
	// new one, nobody can know.
	skewed time.Time
	// taken is when the owner deleted a slice in quiet times, and the log says so, by slice.
	taken map[string]time.Time
	// shapes are those besides the first in which the owner has created a slice.
	shapes []string
	// stopped is who stopped a slice that is stopped, where a person did, by slice.
	stopped map[string]string
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
	// escalated is when an incident was left to a person last, but for those that deleted what another one had left.
	escalated time.Time
	// followed are the lives for which an incident was opened last that was to admit them.
	followed string
	// byHand says that a person was asked to delete the slices that a clean-up could not.
	byHand bool
	// refilled is when the budgets were refilled last.
	refilled time.Time
	// hour is the one in which steps are counted, and began the epoch with which it began.
	hour  time.Time
	began int64
	// calls are what the simulated APIs saw of ours, past the incidents that are over.
	calls []seenCall
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

// New is the judge of a world with these faults and other releases in it; atOnce makes each decision again at once.
func New(w *world.World, drawn *faults.Chaos, others *faults.Releases, atOnce bool) *Checks {
	c := &Checks{
		World: w, chaos: drawn, releases: others, atOnce: atOnce, of: map[string]*record{}, abuse: map[string]suspicion{}, taken: map[string]bool{}, untimely: map[string]bool{}, happen: map[string]int{}, ended: map[string]int{}, confirmed: map[string]int{},
		causes: map[string]int{}, actions: map[string]int{}, transitions: map[string]int{}, classes: map[string]int{},
		reaction: map[string][]time.Duration{}, lost: map[string]time.Duration{}, ends: map[string]map[string]int{},
		belongs: map[string]string{}, fleetOf: map[string][]world.SliceConfig{}, policies: []inForce{putInForce(w.Start, w.Opts.Policy)}, shape: map[string]string{},
		past: map[string][]deed{}, room: map[string]time.Time{}, mapped: map[string]bool{}, trainsIn: map[string]time.Time{}, committed: map[string]time.Time{}, savedTo: map[string]int64{}, lookedAt: map[string]time.Time{},
	}
	for _, f := range w.Fleet {
		if _, twice := c.belongs[f.Name]; !twice {
			c.belongs[f.Name] = w.Project + "/" + f.WorkloadName()
		}
		c.fleetOf[c.belongs[f.Name]] = append(c.fleetOf[c.belongs[f.Name]], f)
		c.shape[f.Name] = f.Accelerator
		c.past[f.Name] = []deed{{at: w.Start, kind: usable, zone: f.Zone}, {at: w.Start, kind: labelled, by: faults.Owner, zone: f.Zone, label: f.Policy}}
	}
	c.watchJobs()
	for zone, slices := range w.Capacity {
		if slices == cloudtputest.Unlimited {
			c.room[zone] = w.Start
		}
	}
	return c
}

// Attach has the judge see the world. It is called before the world is founded.
func (c *Checks) Attach() {
	h := &c.Hooks
	h.Delivered, h.Saved, h.Said, h.Changed, h.Committed = c.answered, c.saved, c.words, c.changed, c.commits
	h.Failed = func(class incident.FailureClass) { c.classes[string(class)]++ }
	h.Observed = func(e cloudtputest.Event) {
		c.called(e)
		c.follow(e)
	}
	h.Cluster, h.Taken, h.Acted, h.Ours, h.Marked = c.changedIn, c.machineTaken, c.acted, c.calledJob, c.marked
}

// ByHand reports whether a person was asked to delete the slices of a workload.
func (c *Checks) ByHand(workload string) bool { return c.record(workload).byHand }

// Enforced takes note of the policy file that is in force from now on.
func (c *Checks) Enforced(file []byte) {
	c.policies = append(c.policies, putInForce(c.Clock.Now(), file))
}

// Paused takes note of a pause of everything.
func (c *Checks) Paused(until time.Time) {
	c.pauses = append(c.pauses, faults.Period{From: c.Clock.Now(), To: until})
}

// Mends checks, when a person comes to mend a slice, that they were notified.
func (c *Checks) Mends(workload, slice string, usable bool) {
	c.unseen(workload, slice)
	c.untold(workload, slice, usable)
}

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

func (c *Checks) record(workload string) *record {
	r := c.of[workload]
	if r == nil {
		r = &record{stopped: map[string]string{}, released: map[string]time.Time{}, taken: map[string]time.Time{}, usable: map[string]time.Time{}, wanted: map[string]events.Incarnation{}, put: map[string]string{}, suspected: map[string]time.Time{}, broken: map[string]time.Time{}}
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

// Happened takes note of a trouble, and of the slice that it concerns, if it does.
func (c *Checks) Happened(what, slice string) {
	c.happen[what]++
	now := c.Clock.Now()
	if slice == "" {
		return
	}
	r := c.record(c.Workload(slice))
	r.happened = append(r.happened, happened{now, what})
	if what == "maintenance announced" {
		r.announced = now
	}
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
		if call.Write || err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return
		}
		inst.PauseRead, inst.Pause = c.Clock.Now(), nil
		if err != nil {
			return
		}
		if p, err := ledger.Value[incident.Pause](*call.Doc); err == nil && p != (incident.Pause{}) {
			inst.Pause = &p
		}
	case ledger.Brake:
		var s struct {
			Taken []string `json:"taken"`
		}
		if call.Write && err == nil && json.Unmarshal([]byte(call.Body()), &s) == nil {
			for _, id := range s.Taken {
				c.taken[id] = true
			}
			if len(s.Taken) > c.Opts.Limits.Project {
				c.Violated("9 brake", "", "%d slots are taken, and there are %d", len(s.Taken), c.Opts.Limits.Project)
			}
		}
	}
}

// mostBytes is half of what Firestore takes of a document.
const mostBytes = 512 << 10

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

// called follows the calls of ours that took effect.
func (c *Checks) called(e cloudtputest.Event) {
	if e.Kind == cloudtputest.Called && e.Principal == world.Ours(c.Project) && inVain.MatchString(e.Error) {
		c.Violated("order", "", "%s of %s asks for what is not there: %s", e.Method, e.Resource(), e.Error)
	}
	c.arrived(e)
	if e.Kind == cloudtputest.Called && e.Principal == world.Ours(c.Project) && e.Code != 0 && world.Mutates(e.Method) {
		c.turnedDown(e.Node + e.QueuedResource)
	}
	if e.Kind != cloudtputest.Called || e.Principal != world.Ours(c.Project) || !world.Mutates(e.Method) || e.Code != 0 {
		return
	}
	c.actions[e.Method]++
	held := []string{e.Node}
	if e.QueuedResource != "" {
		held = c.held(e.QueuedResource)
	}
	slice := held[0]
	id := c.Workload(slice)
	r := c.record(id)
	if e.Method != "UpdateNode" { // which asks for a save
		r.called = c.Clock.Now()
	}
	inst := c.chaos.Current
	doc, _, err := c.Ledger.Workload(context.Background(), id)
	if fault.IsBusy(err) {
		return // the newer release has taken the document meanwhile
	}
	if err != nil || inst == nil {
		c.Violated("1 fence", id, "%s of %s by nobody, or for a workload that is not there: %v", e.Method, slice, err)
		return
	}
	if e.Legacy {
		e.RequestID = c.begun(e, inst)
	}
	c.allowed(e, inst, doc)
	c.current(e, inst, id)
	c.prompt(e, inst)
	for _, slice := range held {
		if read := inst.Read[world.Place{Zone: e.Zone, Slice: slice}]; e.Method != "UpdateNode" && c.suspected(read.Life, read.At) { // asking for a save harms nobody
			c.Violated("owner's word", id, "%s of %s, and Google suspects abuse on it since %s", e.Method, slice, c.abuse[read.Life].Since.UTC().Format(time.DateTime))
		}
		switch e.Method {
		case "DeleteNode", "DeleteQueuedResource":
			c.overtaken(e, inst, id, slice)
			c.deleted(e, inst, doc, slice)
		case "CreateNode", "CreateQueuedResource":
			c.overtaken(e, inst, id, slice)
			c.created(e, inst, doc, slice)
		case "StartNode":
			c.started(inst, c.asSeen(inst, doc), slice, e.Zone)
		}
	}
	if e.Method == "PerformMaintenance" || e.Method == "PerformMaintenanceQueuedResource" {
		c.maintained(id, slice)
	}
}

// overtaken checks that no creation or deletion rests on a reading from before another one of ours.
func (c *Checks) overtaken(e cloudtputest.Event, inst *world.Instance, workload, slice string) {
	read := inst.Read[world.Place{Zone: e.Zone, Slice: slice}]
	i := slices.IndexFunc(c.past[slice], func(d deed) bool {
		return (d.kind == ordered || d.kind == removed) && d.by == world.Ours(c.Project) && d.zone == e.Zone && d.handling != inst.Number && d.at.After(read.At)
	})
	if read.At.IsZero() || i < 0 {
		return
	}
	last := c.past[slice][i]
	c.Violated("1 fence", workload, "%s of %s rests on a reading of %s, and %s was %s by us at %s", e.Method, slice,
		read.At.UTC().Format(time.DateTime), slice, last.kind, last.at.UTC().Format(time.DateTime))
}

// held are the slices that a queued resource holds.
func (c *Checks) held(queue string) []string {
	var names []string
	for _, f := range c.Fleet {
		if f.QueuedResource == queue {
			names = append(names, f.Name)
		}
	}
	if names == nil {
		names = []string{queue}
	}
	return names
}

// maintained checks that maintenance is begun only after a save that is complete, asked for in this incident.
func (c *Checks) maintained(workload, slice string) {
	opened, last := c.record(workload).opened, time.Time{}
	for _, f := range c.slicesOf(workload) {
		last = later(last, c.committed[f.Directory])
	}
	if last.Before(opened) {
		c.Violated("8 progress", workload, "maintenance of %s was begun, and the last complete checkpoint is of %s", slice, last.UTC().Format(time.DateTime))
	}
}

// commits takes note of a checkpoint that is complete.
func (c *Checks) commits(directory, step string) {
	n, err := strconv.ParseInt(step, 10, 64)
	c.Must(err)
	c.committed[directory], c.savedTo[directory] = c.Clock.Now(), max(c.savedTo[directory], n)
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

// unlooked reports whether no function has looked since a moment at what a workload has saved.
func (c *Checks) unlooked(workload string, since time.Time) bool {
	return !slices.ContainsFunc(c.slicesOf(workload), func(f world.SliceConfig) bool { return c.lookedAt[f.Directory].After(since) })
}

// complete reports whether a checkpoint has its commit marker.
func (c *Checks) complete(uri string) bool {
	bucket, path, _ := strings.Cut(strings.TrimPrefix(uri, "gs://"), "/")
	_, _, ok := c.Bucket.Get(bucket, path+"/commit_success.txt")
	return ok
}

// savedSince reports whether a checkpoint in a directory was complete at a moment or later.
func (c *Checks) savedSince(directory string, since time.Time) bool {
	bucket, path, _ := strings.Cut(strings.TrimPrefix(directory, "gs://"), "/")
	return slices.ContainsFunc(c.Bucket.List(bucket, path+"/"), func(name string) bool {
		return strings.HasSuffix(name, "/commit_success.txt") && !c.Bucket.Updated(bucket, name).Before(since)
	})
}

func bucketOf(uri string) string {
	bucket, _, _ := strings.Cut(strings.TrimPrefix(uri, "gs://"), "/")
	return bucket
}

// turnedDown keeps that a call of ours about a slice, or a queued resource, was refused.
func (c *Checks) turnedDown(name string) {
	r := c.record(c.Workload(c.held(name)[0]))
	r.refused = append(r.refused, c.Clock.Now())
}

// refusedCalls is how many calls of ours about a workload were refused since a moment.
func (c *Checks) refusedCalls(workload string, since time.Time) (n int) {
	for _, at := range c.record(workload).refused {
		if !at.Before(since) {
			n++
		}
	}
	return n
}

// current checks that a call is that of a request which was current when it was begun: its ID says which.
func (c *Checks) current(e cloudtputest.Event, inst *world.Instance, id string) {
	if anonymous := e.Method == "StartNode" || e.Method == "UpdateNode" || strings.HasPrefix(e.Method, "PerformMaintenance"); anonymous && e.RequestID == "" {
		return
	}
	doc, err := ledger.Value[incident.Workload](inst.Workload)
	if err != nil || doc.Incident == nil {
		c.Violated("1 fence", id, "%s of %s, and its handler has seen no incident: %v", e.Method, e.Resource(), err)
		return
	}
	for _, t := range doc.Effects {
		r := events.Request{Workload: doc.ID, Incident: doc.Incident.ID, Epoch: t.Epoch, Action: t.Action, Slice: t.Slice, Attempt: t.Attempt}
		if !t.Begun.IsZero() && e.RequestID == ledger.RequestID(r, t.Zone) {
			return
		}
	}
	c.Violated("1 fence", id, "%s of %s is no call of a current request", e.Method, e.Resource())
}

// begun is the ID of the request that a call to the former version of the API is of, which carries none.
func (c *Checks) begun(e cloudtputest.Event, inst *world.Instance) string {
	doc, err := ledger.Value[incident.Workload](inst.Workload)
	if err != nil || doc.Incident == nil {
		return ""
	}
	for _, t := range doc.Effects {
		does := map[string]events.Action{"DeleteNode": events.ActionDelete, "CreateNode": events.ActionCreate}[e.Method]
		if t.Action == does && t.Concerns(e.Node) && t.Zone == e.Zone && !t.Begun.IsZero() {
			return t.RequestID
		}
	}
	return ""
}

// allowed checks that the owner allows a call, and that nothing is paused.
func (c *Checks) allowed(e cloudtputest.Event, inst *world.Instance, doc incident.Workload) {
	switch {
	case inst.PauseRead.IsZero():
		c.Violated("owner's word", doc.ID, "%s of %s without a look at the pause", e.Method, e.Resource())
	case inst.Pause.Holds(c.Clock.Now()): // it may have ended since it was read
		c.Violated("owner's word", doc.ID, "%s of %s though everything is paused", e.Method, e.Resource())
	}
	if !c.lately(doc.ID, func(p policy.Policy) bool { return !p.Switches.WatchOnly() }) {
		c.Violated("owner's word", doc.ID, "%s of %s though it is only watched", e.Method, e.Resource())
	}
	for _, f := range c.slicesOf(doc.ID) {
		for _, life := range c.livesOf(f.Name) {
			known := later(inst.Read[world.Place{Zone: life.Zone, Slice: f.Name}].At, c.Clock.Now().Add(-c.learned()))
			if e.Method != "UpdateNode" && c.suspected(life.ID, known) && c.takenAway(f.Name).IsZero() && !c.settled(doc.ID, life.ID) {
				c.Violated("owner's word", doc.ID, "%s of %s though Google suspects abuse on %s", e.Method, e.Resource(), f.Name)
			}
		}
	}
}

// settled reports whether a person has since said that Google's suspicion on a life is settled.
func (c *Checks) settled(workload, life string) bool {
	return c.did(workload, c.abuse[life].Since, func(d deed) bool { return d.kind == saidRetry })
}

// livesOf are the existing lives of a slice, at most one in each zone.
func (c *Checks) livesOf(slice string) (lives []events.Incarnation) {
	for _, z := range c.Zones() {
		if state, life := c.API.State(z, slice); state != "" {
			lives = append(lives, life)
		}
	}
	return lives
}

// asSeen is a workload as the handler of a call saw it last: what came to it since then, the call cannot know.
func (c *Checks) asSeen(inst *world.Instance, doc incident.Workload) incident.Workload {
	seen, err := ledger.Value[incident.Workload](inst.Workload)
	if err != nil || seen.ID != doc.ID || c.Clock.Now().Sub(inst.Seen) > unseen {
		return doc
	}
	return seen
}

// inVain is what the simulated API says to an order that names something of another zone or region.
var inVain = regexp.MustCompile(`is not in (zone|region) |^Reservation not found: `)

func (c *Checks) deleted(e cloudtputest.Event, inst *world.Instance, doc incident.Workload, slice string) {
	s, r := doc.Slice(slice), c.record(doc.ID)
	read, ok := inst.Read[world.Place{Zone: e.Zone, Slice: slice}]
	switch {
	case s == nil || doc.Incident == nil && !c.takenBack(inst, doc.ID):
		c.Violated("1 fence", doc.ID, "%s was deleted, and no incident is open on it", slice)
		return
	case doc.Incident == nil:
		return
	case !ok && !c.takenAway(slice).IsZero() && c.isGone(e.Zone, slice):
		return // the slice from its queued resource belonged to its owner, who has deleted it
	case !ok:
		c.Violated("1 fence", doc.ID, "%s was deleted without a reading", slice)
		return
	case read.State == "gone":
		return // only its queued resource is left
	}
	if !c.taken[e.RequestID] {
		c.Violated("9 brake", doc.ID, "%s was deleted without a slot of the brake", slice)
	}
	if t := c.Trainings[slice]; t.Ran().ID != read.Life || t.Stepped() == 0 {
		if by := c.makerOf(slice, e.Zone, read.Life); by != world.Ours(c.Project) && s.Incarnation.ID != read.Life {
			c.Violated("1 fence", doc.ID, "%s was deleted as %s, and read as %s, which %s had ordered", slice, s.Incarnation.ID, read.Life, by)
		}
		return // no step was ever done there
	}
	if life := c.Trainings[slice].Ran(); c.maker(slice, life) == world.Ours(c.Project) && life.Created.After(r.opened) && !c.letIn(slice, life, inst.Seen) {
		return // it was made for this incident, which has not let training in
	}
	if s.Incarnation.ID != read.Life {
		c.Violated("1 fence", doc.ID, "%s was deleted as %s, and read as %s", slice, s.Incarnation.ID, read.Life)
	}
	if read.State == "STOPPED" || read.State == "STOPPING" {
		c.Violated("2 owner", doc.ID, "%s was deleted, and it was only stopped", slice)
	}
	if read.State != "READY" && read.State != "STOPPED" && read.State != "REPAIRING" && read.State != "RESTARTING" {
		return
	}
	if _, running := c.Trainings[slice].Running(); running && read.State == "READY" && c.whole(doc.ID) {
		c.Violated("3 admitted", doc.ID, "%s was deleted while training ran on it, at step %d", slice, c.Trainings[slice].LastStep())
	}
	saves := slices.ContainsFunc(c.slicesOf(doc.ID), func(f world.SliceConfig) bool { return f.Directory != "" })
	if saves && (c.unlooked(doc.ID, time.Time{}) || !c.complete(doc.Progress.VerifiedURI)) {
		c.Violated("8 progress", doc.ID, "%s was deleted alive (%s), and nobody had seen a complete checkpoint", slice, read.State)
	}
}

// letIn reports whether a lease names a life of a slice: written by us, or by a crew that put itself there, where somebody knew by a
// moment that training runs in it.
func (c *Checks) letIn(slice string, life events.Incarnation, known time.Time) bool {
	since, told := c.trainsIn[life.ID]
	return slices.ContainsFunc(c.slicesOf(c.Workload(slice)), func(f world.SliceConfig) bool {
		l, _, err := checkpoint.ReadLease(context.Background(), c.Store, f.Directory)
		names := f.Directory != "" && err == nil && slices.ContainsFunc(l.Admitted, func(a events.Admission) bool {
			return a.Slice == slice && a.Incarnation.Same(life)
		})
		return names && (l.By != "crew" || told && since.Before(known))
	})
}

// trainsNow takes note of a line that says of the attempt that runs that it does. A Multislice trains in all of its slices.
func (c *Checks) trainsNow(e events.Entry) {
	t := c.Trainings[e.Crew.Node]
	group, _, _ := events.WorkerGroup(e.Crew.Hostname)
	runs := e.Crew.Report == events.ReportStarted || e.Crew.Report == events.ReportProgress || e.Crew.Report == events.ReportSaved
	if t == nil || !runs || t.Group() != group || e.Time.Before(t.Began()) {
		return
	}
	for _, f := range c.slicesOf(c.Workload(e.Crew.Node)) {
		if life, trains := c.Trainings[f.Name].Running(); trains {
			c.knowsOf(life)
		}
	}
}

// knowsOf keeps that somebody knows of a life that training runs in it.
func (c *Checks) knowsOf(life events.Incarnation) {
	if _, told := c.trainsIn[life.ID]; !told {
		c.trainsIn[life.ID] = c.Clock.Now()
	}
}

// makerOf is who ordered the life of a slice that has an ID.
func (c *Checks) makerOf(slice, zone, id string) string {
	for _, d := range slices.Backward(c.past[slice]) {
		if d.life.ID == id && d.kind != removed {
			return c.maker(slice, d.life)
		}
	}
	if _, life := c.API.State(zone, slice); life.ID == id {
		return c.maker(slice, life)
	}
	return faults.Owner
}

// takenBack reports whether an incident ended after the handler of a call looked: by a person's order or action, or by
// Google's suspicion.
func (c *Checks) takenBack(inst *world.Instance, workload string) bool {
	since := inst.Seen.Add(-learnedWithin)
	did := c.did(workload, since, func(d deed) bool { return c.person(d) && d.kind != labelled })
	return (did || c.suspectedAny(workload)) && c.Clock.Now().Sub(inst.Seen) <= unseen
}

func (c *Checks) isGone(zone, slice string) bool {
	state, _ := c.API.State(zone, slice)
	return state == ""
}

// whole reports whether all slices of a workload are usable, because a Multislice with one unusable slice cannot train.
// Slices that their owner took away do not count.
func (c *Checks) whole(workload string) bool {
	return !slices.ContainsFunc(c.slicesOf(workload), func(f world.SliceConfig) bool {
		return c.unusable(f) && c.takenAway(f.Name).IsZero()
	})
}

// started checks that nothing is started that its owner stopped, and nothing without a reading.
func (c *Checks) started(inst *world.Instance, doc incident.Workload, slice, zone string) {
	if by := c.record(doc.ID).stopped[slice]; by != "" {
		c.Violated("2 owner", doc.ID, "%s was started, and %s had stopped it", slice, by)
	}
	s, read := doc.Slice(slice), inst.Read[world.Place{Zone: zone, Slice: slice}]
	if s == nil || doc.Incident == nil || s.Incarnation.ID != read.Life || read.State != "STOPPED" {
		c.Violated("1 fence", doc.ID, "%s was started, and read as %s, %s", slice, read.Life, read.State)
	}
	never := doc.Incident != nil && doc.Incident.Switches.Level(policy.StartStopped) == policy.No
	if never || !c.lately(doc.ID, func(p policy.Policy) bool { return p.Switches.StartStopped != policy.No }) {
		c.Violated("owner's word", doc.ID, "%s was started, and start_stopped is no", slice)
	}
}

// unseen is how long a call may be under way to the API since its handler looked at the ledger: nobody can take it back then.
const unseen = incident.CallWithin + faults.Slowest

func (c *Checks) created(e cloudtputest.Event, inst *world.Instance, doc incident.Workload, slice string) {
	for _, z := range c.Zones() {
		state, life := c.API.State(z, slice)
		if z == e.Zone || state != "READY" && state != "CREATING" && state != "DELETING" { // which trains for as long as it takes
			continue
		}
		// What came there since the handler looked it could not see; and where the slice has not lived before, it has to hear of it, which
		// may take as long as entries do.
		seen, looked := inst.Read[world.Place{Zone: z, Slice: slice}]
		age := c.Clock.Now().Sub(life.Created)
		unheard := age < unseen || !c.lived(slice, z, life.Created) && age < incident.Grace
		if !looked && !unheard || looked && seen.At.After(life.Created) {
			c.Violated("3 admitted", doc.ID, "%s was created in %s while it is %s in %s", slice, e.Zone, state, z)
		}
	}
	if in := c.asSeen(inst, doc).Incident; in != nil && in.Clearing != "" {
		c.Violated("2 owner", doc.ID, "%s was created in %s for %s, which only cleans up", slice, e.Zone, in.ID)
	}
	c.torn(e, doc.ID, slice)
	c.shaped(e, doc.ID, slice)
	c.asOrdered(e, doc.ID, slice)
	if at, ok := c.record(doc.ID).taken[slice]; ok && inst.Began.After(at) {
		c.Violated("2 owner", doc.ID, "%s was created in %s after its owner had deleted it in quiet times", slice, e.Zone)
	}
	if said, ok := c.record(doc.ID).released[slice]; ok && inst.Began.After(said) {
		c.Violated("2 owner", doc.ID, "%s was created in %s after its owner had deleted it", slice, e.Zone)
	}
	home, region := c.home(slice), topology.Region(e.Zone)
	there := topology.Region(c.lastOf(slice, usable).zone) == region
	if home != "" && home != region && !there && !c.lately(doc.ID, func(p policy.Policy) bool { return p.OtherRegions }) {
		c.Violated("owner's word", doc.ID, "%s was created in %s, and its checkpoints are in %s", slice, e.Zone, home)
	}
	if doc.Incident == nil && c.Clock.Now().Sub(inst.Seen) > unseen {
		c.Violated("1 fence", doc.ID, "%s was created, and no incident is open on it", slice)
	}
}

// lived reports whether a slice was usable in a zone before a moment, after it was usable anywhere else but once.
func (c *Checks) lived(slice, zone string, before time.Time) bool {
	var zones []string
	for _, d := range slices.Backward(c.past[slice]) {
		if d.kind == usable && d.at.Before(before) && !slices.Contains(zones, d.zone) {
			zones = append(zones, d.zone)
		}
	}
	return slices.Contains(zones[:min(2, len(zones))], zone)
}

// home is the region of the bucket that holds the checkpoints of a slice; empty where that is everywhere.
func (c *Checks) home(slice string) string {
	for _, f := range c.Fleet {
		if f.Name == slice {
			return c.Buckets[bucketOf(f.Directory)]
		}
	}
	return ""
}

// apart reports whether somebody else has spread the slices of a Multislice over several zones, by an order of their own or
// by replacing ours.
func (c *Checks) apart(workload string) bool {
	placed, trained, theirs := map[string]bool{}, map[string]bool{}, false
	for _, f := range c.slicesOf(workload) {
		placed[c.orderedIn(f)] = true
		if life := c.Trainings[f.Name].Ran(); c.takenAway(f.Name).IsZero() {
			trained[life.Zone] = true
			theirs = theirs || c.placer(f, life) != world.Ours(c.Project)
		}
	}
	return len(placed) > 1 || theirs && len(trained) > 1
}

// orderedIn is the zone in which its owner wants a slice. An order that came to nothing leaves it at the order before.
func (c *Checks) orderedIn(f world.SliceConfig) string {
	zone, before := f.Zone, f.Zone
	for _, d := range c.past[f.Name] {
		switch {
		case !c.person(d):
		case d.kind == ordered:
			zone, before = d.zone, zone
		case d.kind == turnedOff && d.zone == zone:
			zone = before
		}
	}
	return zone
}

// shaped checks that a slice is created as its owner ordered it, or in a shape that the policy names, as those that it trains with.
func (c *Checks) shaped(e cloudtputest.Event, workload, slice string) {
	n := c.API.Node(e.Zone, slice)
	i := slices.IndexFunc(c.Fleet, func(f world.SliceConfig) bool { return f.Name == slice })
	if n == nil || i < 0 {
		return // it waits in its queued resource, or is no slice of the fleet
	}
	is := n.AcceleratorType
	others := false
	for _, f := range c.slicesOf(workload) {
		zone, lives := c.livesIn(f.Name)
		if f.Name == slice || !lives || !c.takenAway(f.Name).IsZero() || c.apart(workload) {
			continue
		}
		o := c.API.Node(zone, f.Name)
		others = others || o.AcceleratorType == is
		unlike := is == c.shape[slice] && is != c.shape[f.Name] // somebody ordered them in several shapes
		if o.AcceleratorType != is && !unlike {
			c.Violated("all or none", workload, "%s was created as %s while %s is %s", slice, is, f.Name, o.AcceleratorType)
		}
	}
	if is == c.Fleet[i].Accelerator {
		return
	}
	c.happen["created in another shape"]++
	others = others || slices.Contains(c.record(workload).shapes, is)
	if !others && !c.lately(workload, func(p policy.Policy) bool { _, named := p.Shape(is); return named }) {
		c.Violated("owner's word", workload, "%s was created as %s, which neither its order nor the policy names", slice, is)
	}
	if batch := c.Fleet[i].Batch; batch == 0 || batch%int64(c.devices(i)) != 0 {
		c.Violated("owner's word", workload, "%s was created as %s, and its batch of %d fits no device", slice, is, batch)
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

// devices are those that the batch of a slice of the fleet is for.
func (c *Checks) devices(i int) int {
	s, err := topology.Parse(c.Fleet[i].Accelerator)
	c.Must(err)
	return s.Devices()
}

// torn checks that a slice of a Multislice is created where the others are, unless somebody else has put them apart.
func (c *Checks) torn(e cloudtputest.Event, workload, slice string) {
	if c.apart(workload) {
		return
	}
	for _, f := range c.slicesOf(workload) {
		zone, lives := c.livesIn(f.Name)
		if f.Name == slice || !lives || zone == e.Zone || !c.takenAway(f.Name).IsZero() {
			continue
		}
		c.Violated("all or none", workload, "%s was created in %s while %s lives in %s", slice, e.Zone, f.Name, zone)
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
		return
	case e.Kind == events.KindLoss:
		c.explains(e)
		return
	case c.untimely[e.ID]:
		return
	case e.Kind == events.KindCrew:
		c.spoke(e)
		return
	default:
		if e.Kind != events.KindCall || e.Call.Code != 0 || (events.Accounts{Ours: []string{world.Ours(c.Project)}}).Party(e.Call) != events.PartyOwner {
			return
		}
	}
	for _, f := range c.Fleet {
		if f.Name != e.Subject.Node && (f.QueuedResource == "" || f.QueuedResource != e.Subject.QueuedResource) {
			continue
		}
		r := c.record(c.Workload(f.Name))
		wanted := r.wanted[f.Name]
		// A deletion elsewhere makes room for it.
		moved := wanted.Created.After(r.usable[f.Name]) && wanted.Zone == r.put[f.Name] && wanted.Zone != e.Subject.Zone
		if strings.HasPrefix(e.Call.Method, "Delete") && e.Time.After(r.usable[f.Name]) && e.Time.After(wanted.Created) && !moved {
			r.released[f.Name] = c.Clock.Now()
		}
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
	c.trainsNow(e)
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

// truly is the step of a workload's last complete checkpoint in the world.
func (c *Checks) truly(workload string) (step int64) {
	for _, f := range c.slicesOf(workload) {
		step = max(step, c.Trainings[f.Name].Saved())
	}
	for _, g := range c.gangs(workload) {
		step = max(step, g.Saved())
	}
	return step
}

// explains takes note of an entry of Google's that was handled and says why a machine was lost.
func (c *Checks) explains(e events.Entry) {
	group, _, _ := e.Subject.Group()
	for _, f := range c.Fleet {
		t, trains := c.Trainings[f.Name]
		if trains && (f.Name == e.Subject.Node || group != "" && t.Group() == group && c.mapped[t.Life().ID]) {
			r := c.record(c.Workload(f.Name))
			r.causes = append(r.causes, cause{e.Time, c.Clock.Now(), e.Cause, c.untimely[e.ID]})
		}
	}
}

// follow follows the cloud: a slice that somebody creates is watched again.
func (c *Checks) follow(e cloudtputest.Event) {
	c.remember(e)
	if e.Kind == cloudtputest.Called && e.Method == "GetGuestAttributes" && e.Code == 0 {
		c.record(c.Workload(e.Node)).listened = c.Clock.Now()
		c.mapped[e.Incarnation.ID] = true
		if t := c.Trainings[e.Node]; t != nil {
			if life, trains := t.Running(); trains {
				c.knowsOf(life)
			}
		}
	}
	if e.Kind == cloudtputest.Called && e.Method == "StopNode" && e.Code == 0 {
		c.record(c.Workload(e.Node)).stopped[e.Node] = e.Principal
	}
	c.breaks(e)
	if e.Node == "" {
		return
	}
	r := c.record(c.Workload(e.Node))
	if e.Kind == cloudtputest.Called && e.Method == "CreateNode" && e.Code == 0 && e.Principal != world.Ours(c.Project) {
		if n := c.API.Node(e.Zone, e.Node); n != nil {
			c.shape[e.Node], r.put[e.Node] = n.AcceleratorType, e.Zone
		}
	}
	if created := e.Incarnation.Created; e.Kind == cloudtputest.Lost && created.After(r.released[e.Node]) && created.After(r.taken[e.Node]) {
		delete(r.released, e.Node) // they have ordered it again, so they want it, and Google took it before it could be used
		delete(r.taken, e.Node)
		r.wanted[e.Node] = e.Incarnation
	}
	if e.Kind != cloudtputest.Ready {
		return
	}
	delete(r.stopped, e.Node)
	r.usable[e.Node] = c.Clock.Now()
	delete(r.released, e.Node)
	delete(r.taken, e.Node)
	if !r.called.IsZero() && r.ready.IsZero() {
		r.ready = c.Clock.Now()
		c.reaction["call_to_ready"] = append(c.reaction["call_to_ready"], r.ready.Sub(r.called))
	}
}

// Took takes note of what the owner deletes in quiet times: the audit log tells of it, whatever becomes of the entries on
// their way.
func (c *Checks) Took(slice string) {
	if r := c.record(c.Workload(slice)); r.open == r.done {
		r.taken[slice] = c.Clock.Now()
	}
}

// leased checks what a lease admits: no other life of a slice can be running then.
func (c *Checks) leased(uri string) {
	dir := strings.TrimSuffix(uri, "/"+checkpoint.LeaseName)
	for _, f := range c.Fleet {
		if f.Directory != dir {
			continue
		}
		l, _, err := checkpoint.ReadLease(context.Background(), c.Store, dir)
		if err != nil {
			c.Violated("3 admitted", c.Workload(f.Name), "the lease cannot be read: %v", err)
			return
		}
		for _, a := range l.Admitted {
			for _, z := range c.Zones() {
				n := c.API.Node(z, a.Slice)
				if n == nil || n.State != "READY" || c.API.Incarnation(z, a.Slice).Same(a.Incarnation) {
					continue
				}
				if other := c.API.Incarnation(z, a.Slice); other.Created.Before(a.Incarnation.Created) && l.By != "crew" {
					c.Violated("3 admitted", c.Workload(f.Name), "the lease admits %s as %s while it lives as %s", a.Slice, a.Incarnation, other)
				}
			}
		}
	}
}

// present names the lives of a workload's slices that are usable.
func (c *Checks) present(workload string) (lives string) {
	for _, f := range c.slicesOf(workload) {
		for _, z := range c.Zones() {
			if state, life := c.API.State(z, f.Name); state == "READY" {
				lives += f.Name + "=" + life.String() + " "
			}
		}
	}
	return lives
}

// unled reports whether the lease names no life, or another one, of a slice that is there.
func (c *Checks) unled(workload string) bool {
	return slices.ContainsFunc(c.slicesOf(workload), func(f world.SliceConfig) bool {
		l, _, err := checkpoint.ReadLease(context.Background(), c.Store, f.Directory)
		if f.Directory == "" || err != nil {
			return f.Directory != ""
		}
		for _, s := range c.slicesOf(workload) {
			for _, life := range c.livesOf(s.Name) {
				if !slices.ContainsFunc(l.Admitted, func(a events.Admission) bool { return a.Slice == s.Name && a.Incarnation.Same(life) }) {
					return true
				}
			}
		}
		return false
	})
}

// saved checks one write of a workload's document, and what led to it.
func (c *Checks) saved(s ledger.Step) {
	c.repeats(s)
	for _, e := range s.Evidence {
		if e, held := e.(incident.Held); held && strings.Contains(e.Why, ledger.ErrBraked.Error()) {
			c.braked++
		}
	}
	c.postponed(s)
	c.moved(s.Before, s.After)
}

// Unheard takes a write that took effect and of which its writer never heard.
func (c *Checks) Unheard(call ledgertest.Call) {
	if call.Collection != ledger.Workloads {
		return
	}
	after, err := ledger.Value[incident.Workload](*call.Doc)
	if err != nil {
		return
	}
	// If others have written since, only their reports show it.
	r := c.record(after.ID)
	if r.last == nil || r.stored.Body != call.Body() {
		return
	}
	before, err := ledger.Value[incident.Workload](r.prior)
	if err != nil || before.Epoch < r.last.Epoch {
		before = *r.last
	}
	c.moved(before, after)
}

// mostSteps is how far an epoch may rise within an hour: a request a minute of each kind, for each slice, is far below it.
const mostSteps = 1000

// pace checks that a workload does not go round in circles.
func (c *Checks) pace(r *record, before, after incident.Workload) {
	if hour := c.Clock.Now().Truncate(time.Hour); !hour.Equal(r.hour) {
		r.hour, r.began = hour, before.Epoch
	}
	if after.Epoch-r.began > mostSteps && !c.Endless {
		c.Violated("10 nothing lost", after.ID, "%d requests were sent within an hour, the last in %s: it goes round in circles", after.Epoch-r.began, phaseOf(after))
		c.Endless = true
	}
}

// moved checks one step of a workload.
func (c *Checks) moved(before, after incident.Workload) {
	r := c.record(after.ID)
	if r.last != nil && r.last.Epoch > after.Epoch {
		return // it is reported late: later events were reported already
	}
	r.last = &after
	c.pace(r, before, after)
	if after.Epoch < before.Epoch {
		c.Violated("1 fence", after.ID, "the epoch went from %d to %d", before.Epoch, after.Epoch)
	}
	if b := after.Budgets; b.Restarts < 0 || b.Recreates < 0 || b.Restarts > incident.MaxRestarts || b.Recreates > incident.MaxRecreates+1 {
		c.Violated("5 budgets", after.ID, "the budgets are %+v", b)
	}
	if len(c.gangs(after.ID)) > 0 {
		c.accounts(before, after)
		c.jobMoved(r, before, after)
		return
	}
	c.claims(before, after)
	c.accounts(before, after)
	c.restarted(before, after)
	if phaseOf(before) != phaseOf(after) {
		c.inTime(before, after)
		if after.Incident != nil {
			c.Entered(after)
		}
	} else if after.Incident != nil && after.Epoch > before.Epoch {
		c.Asked(after)
	}
	c.suspicions(r, after, after.Closed != nil && after.Closed.ID != r.done)
	if in := after.Closed; in != nil && in.ID != r.done {
		r.done = in.ID
		c.closed(r, after)
	}
	if in := after.Incident; in != nil {
		if in.Deadline.IsZero() && in.Phase != incident.Approving && in.Phase != incident.PhaseCreating {
			c.Violated("10 nothing lost", after.ID, "phase %s has no deadline", in.Phase)
		}
		if in.ID != r.open {
			r.open = in.ID
			c.opened(r, after)
		}
	}
}

// pending reports whether something is due at the workload of a document that is worth waiting for. A document that cannot be read is.
func (c *Checks) pending(body string) bool {
	var w incident.Workload
	if !strings.Contains(body, `"end":true`) || json.Unmarshal([]byte(body), &w) != nil {
		return true
	}
	return w.HasDue(c.Clock.Now())
}

func (c *Checks) opened(r *record, w incident.Workload) {
	c.Incidents++
	if !c.explained(r, w) {
		c.Violated("4 one trouble", w.ID, "incident %s was opened for %s, and nothing had happened since the last one", w.Incident.ID, w.Incident.Cause)
	}
	c.standstill(w)
	r.baseline, r.at, r.stood = r.saved, c.step(w.ID), c.standsOrUnheard(w.ID)
	r.opened, r.openedFor, r.called, r.ready, r.deaf = c.Clock.Now(), w.Incident.Cause, time.Time{}, time.Time{}, c.unlistened(r) || c.mute(w.ID)
	c.decided(w, r.opened)
}

// explained reports whether something has happened in the world of which an incident may tell that opens now.
func (c *Checks) explained(r *record, w incident.Workload) bool {
	now, in := c.Clock.Now(), w.Incident
	switch {
	case c.blurred(w.ID):
		return true
	case in.Phase == incident.Admitting:
		// If somebody created a slice where the lease names another zone, it is admitted there: once, and once more under another
		// policy or when a person wants it tried again. Then its crew may have taken the lease over, which only a look shows.
		lives := c.present(w.ID)
		again := c.policies[len(c.policies)-1].from.After(r.opened) || c.did(w.ID, r.opened, func(d deed) bool { return d.kind == saidRetry })
		explained := again || c.unled(w.ID) && lives != r.followed
		r.followed = lives
		return explained
	case in.Phase == incident.Clearing, in.Code == incident.CodeLeftBehind:
		return c.leftBehind(w.ID) // what an incident had ordered may come when it is over
	case in.Cause == events.CauseMaintenance && !r.announced.IsZero() && now.Sub(r.announced) < 4*24*time.Hour:
		return true
	case in.Cause == events.CauseEnd && c.endsNear(w):
		return true
	case in.Cause == events.CauseHang:
		return c.standsOrUnheard(w.ID) // a training that stands still for a new reason is reported too
	case in.Cause == events.CauseCrash && c.crashed(r, w):
		return true
	// What ended without being mended, because its owner took the allowance back, may be told again while it lasts.
	case r.told && !c.whole(w.ID):
		return true
	}
	return c.did(w.ID, r.opened, c.strikes) || r.forged(r.opened, now) || c.suspectedAny(w.ID)
}

// endsNear reports whether a life of a workload in the simulated cloud is about to end by its order, or has just ended so.
func (c *Checks) endsNear(w incident.Workload) bool {
	const longestLead = 2*time.Hour + incident.HealFor
	return slices.ContainsFunc(c.slicesOf(w.ID), func(f world.SliceConfig) bool {
		end := c.API.PlannedEnd(f.Zone, f.Name)
		return !end.IsZero() && end.Sub(c.Clock.Now()).Abs() <= longestLead
	}) || c.did(w.ID, c.Clock.Now().Add(-incident.HealFor), func(d deed) bool { return d.cause == events.CauseEnd })
}

// standsOrUnheard reports whether no step has been done of a training for a while, or nobody could read whether that is so.
func (c *Checks) standsOrUnheard(workload string) bool {
	return c.steps(workload) == "" || c.unlistened(c.record(workload))
}

// strikes reports whether a deed may be the trouble of an incident, or has a part in it.
func (c *Checks) strikes(d deed) bool {
	switch d.kind {
	case broken, stopped, gone, saidRetry:
		return true
	case removed, halted, ordered:
		return c.person(d)
	case labelled, usable, announced, withdrawn, turnedOff, saidCancel:
	}
	return false
}

// crashed reports whether a training has failed as an incident says, and no incident has told of that failure.
func (c *Checks) crashed(r *record, w incident.Workload) bool {
	for _, f := range c.slicesOf(w.ID) {
		for _, failed := range c.Trainings[f.Name].Failures() {
			fresh := failed.After(r.opened) && failed.After(r.heard)
			if !slices.Contains(r.crashes, failed) && (fresh || failed.Equal(w.Incident.Down)) {
				r.crashes = append(r.crashes, failed)
				return true
			}
		}
	}
	return false
}

// leftBehind reports whether something of ours is there, or is ordered, in which no training ever ran.
func (c *Checks) leftBehind(workload string) bool {
	return slices.ContainsFunc(c.slicesOf(workload), func(f world.SliceConfig) bool {
		for _, life := range c.livesOf(f.Name) {
			if c.maker(f.Name, life) == world.Ours(c.Project) && !c.Trainings[f.Name].Ran().Same(life) {
				return true
			}
		}
		last := c.lastOf(f.Name, ordered, turnedOff) // an order is read for a while after it came to nothing
		return last.by == world.Ours(c.Project) && (f.QueuedResource != "" || c.Clock.Now().Sub(last.at) < unseen)
	})
}

func (c *Checks) closed(r *record, after incident.Workload) {
	in := after.Closed
	if in.ID != r.open { // it opened in this very step
		w := after
		w.Incident, r.open = in, in.ID
		c.opened(r, w)
	}
	r.past = append(r.past, ended{in.ID, r.stood})
	c.Clock.At(c.Clock.Now(), func() { c.told(after.ID, *in) }) // a bucket write of this moment is seen after this step
	c.ended[string(in.Outcome)]++
	right := c.judged(r, after)
	switch r.closed = c.Clock.Now(); {
	case in.Outcome == incident.Withdrawn: // which mends nothing
	case in.Outcome == incident.Escalated, in.Outcome == incident.Observed, c.did(after.ID, r.opened, func(d deed) bool { return d.kind == saidCancel }):
		r.told, r.left = true, r.closed
		clear(r.broken)
	case in.Outcome == incident.Released:
		if r.told = false; right {
			clear(r.broken) // the whole slice belongs to its owner now
		}
	default:
		r.told = false
	}
	if in.Outcome == incident.Escalated {
		r.escalated = r.closed
	}
	r.byHand = r.byHand || in.Outcome == incident.Escalated && in.Clearing != ""
	c.causes[string(in.Cause)]++
	if !in.Down.IsZero() {
		away := c.Clock.Now().Sub(in.Down)
		c.lost[string(in.Cause)] += away
		for _, s := range after.Slices {
			c.chipHoursLost += away.Hours() * float64(in.Lost(s).Chips)
		}
	}
	if (in.Outcome == incident.Resumed) != (in.Code == "") {
		c.Violated("10 nothing lost", after.ID, "%s ended %s with the code %q: %s", in.ID, in.Outcome, in.Code, in.Reason)
	}
	if in.Switches.WatchOnly() && in.Outcome != incident.Observed {
		c.Violated("owner's word", after.ID, "%s ended %s under the switches %+v", in.ID, in.Outcome, in.Switches)
	}
	if in.Outcome != incident.Resumed {
		return
	}
	r.saved = min(r.saved, c.step(after.ID)) // where it goes on from further back, no more than that is saved of it
	c.confirmed[string(in.ConfirmedBy)]++
	if !r.ready.IsZero() {
		c.reaction["ready_to_progress"] = append(c.reaction["ready_to_progress"], c.Clock.Now().Sub(r.ready))
	}
	if in.ConfirmedBy == incident.ByHealth && r.heard.After(r.opened.Add(-24*time.Hour)) && r.heard.Before(r.opened) {
		if crewed := c.slicesOf(after.ID); !slices.ContainsFunc(crewed, func(f world.SliceConfig) bool { return c.Trainings[f.Name].NoCrew }) {
			c.Violated("6 progress", after.ID, "%s ended resumed by health alone, and there is a crew", in.ID)
		}
	}
}

// haunted checks the writes to the checkpoint directories: no zombie writes once another attempt has begun.
func (c *Checks) haunted() {
	for _, f := range c.Fleet {
		t := c.Trainings[f.Name]
		if haunted, began := t.Haunted(); haunted.After(began) && haunted.Equal(c.Clock.Now()) {
			if _, trains := t.Running(); trains {
				c.Violated("3 admitted", c.Workload(f.Name), "a zombie of %s wrote while the next attempt was under way", f.Name)
			}
		}
	}
}

// Measure takes stock of the training at the end of the time that counts.
func (c *Checks) Measure(end time.Time) {
	days := end.Sub(c.Start)
	var done, total float64
	for _, f := range c.Fleet {
		t := c.Trainings[f.Name]
		steps := t.LastStep() - f.Trainer.Step
		done += float64(steps) * t.StepTakes.Hours()
		total += days.Hours()
		if a, err := topology.Parse(f.Accelerator); err == nil {
			c.chipHours += days.Hours() * float64(a.Chips)
		}
	}
	for _, g := range c.Gangs() {
		done += float64(g.LastStep()-g.Trainer.Step) * g.StepTakes.Hours()
		total += days.Hours()
		c.chipHours += days.Hours() * float64(g.Chips())
	}
	if total > 0 {
		c.goodput = math.Round(1000*done/total) / 1000
	}
}

// Finally checks the rules that must hold at the end of a run.
func (c *Checks) Finally() {
	waiting := slices.DeleteFunc(c.Broker.Waiting(), func(m string) bool { return strings.HasPrefix(m, events.TopicTicks) }) // one a minute, for ever
	if len(waiting) > 0 {
		c.Violated("10 nothing lost", "", "%d messages are still under way: %s", len(waiting), strings.Join(waiting, ", "))
	}
	for _, id := range slices.Sorted(maps.Keys(c.Busy)) {
		doc, _, err := c.Ledger.Workload(context.Background(), id)
		c.Violated("10 nothing lost", id, "something is still due since %s, in %s: %v", doc.Due().UTC().Format(time.DateTime), phaseOf(doc), err)
	}
	ids, err := c.Ledger.All(context.Background())
	if err != nil {
		c.Violated("10 nothing lost", "", "%v", err)
	}
	for _, id := range ids {
		doc, _, err := c.Ledger.Workload(context.Background(), id)
		switch {
		case err != nil:
			c.Violated("10 nothing lost", id, "%v", err)
		case doc.Incident != nil:
			c.Violated("10 nothing lost", id, "%s has not ended: it is %s since %s", doc.Incident.ID, doc.Incident.Phase, doc.Incident.Since.UTC().Format(time.RFC3339))
		case len(doc.Outbox) > 0:
			c.Violated("10 nothing lost", id, "%d events are still in the outbox", len(doc.Outbox))
		default:
			c.cleared(doc)
			c.atPeace(id)
			c.rightCauses(id)
		}
	}
	c.jobsAtPeace()
	c.leaks()
	c.leftovers()
}

// atPeace checks that training goes on wherever it is not somebody else's business.
func (c *Checks) atPeace(workload string) {
	if c.record(workload).told || c.done(workload) {
		return
	}
	if c.lately(workload, func(p policy.Policy) bool { return p.Switches.WatchOnly() }) {
		return
	}
	for _, f := range c.slicesOf(workload) {
		t := c.Trainings[f.Name]
		if t.NoCrew || !c.takenAway(f.Name).IsZero() { // without a crew nobody hears of a crash
			continue
		}
		if _, running := t.Running(); !running {
			c.Violated("training goes on", workload, "%s does not train: %s", f.Name, c.stateOf(f.Name))
		}
	}
}

func (c *Checks) stateOf(slice string) string {
	var states []string
	for _, z := range c.Zones() {
		if n := c.API.Node(z, slice); n != nil {
			states = append(states, n.State+" "+n.Health+" in "+z)
		}
	}
	if len(states) == 0 {
		return "gone"
	}
	return strings.Join(states, ", ")
}

// leaks looks for resources that nobody wants any more.
func (c *Checks) leaks() {
	known := map[string]bool{}
	for _, f := range c.Fleet {
		known[f.Name] = true
		n := 0
		for _, z := range c.Zones() {
			if c.API.Node(z, f.Name) != nil {
				n++
			}
		}
		if n > 1 && !c.record(c.Workload(f.Name)).byHand {
			c.Violated("nothing leaked", c.Workload(f.Name), "%s is there %d times: %s", f.Name, n, c.stateOf(f.Name))
		}
	}
	for _, z := range c.Zones() {
		for _, n := range c.API.Nodes(z) {
			if name := n.Name[strings.LastIndexByte(n.Name, '/')+1:]; !known[name] {
				c.Violated("nothing leaked", "", "node %s in %s is nobody's", name, z)
			}
		}
	}
}

// Result is the report on a run of so many days from a seed.
func (c *Checks) Result(seed uint64, days float64) *Report {
	c.CaughtUp()
	r := &Report{
		Seed: seed, Seeds: 1, Days: days, Incidents: c.Incidents, Ended: c.ended, Confirmed: c.confirmed, Causes: c.causes, Violations: c.Violations,
		samples: c.reaction, Goodput: c.goodput, LostHours: map[string]float64{}, Actions: c.actions,
		ChipHours: ChipHours{Total: math.Round(c.chipHours), Lost: math.Round(c.chipHoursLost)}, Transitions: c.transitions, ErrorClasses: c.classes,
		Ends: c.ends, Happened: c.happen, Faults: min(c.chaos.Count, c.chaos.Limit), Handled: c.handled, Braked: c.braked, Told: c.chaos.Told, Story: c.Story,
	}
	if r.Violations == nil {
		r.Violations = []Violation{}
	}
	r.complete()
	for cause, d := range c.lost {
		r.LostHours[cause] = math.Round(d.Hours()*10) / 10
	}
	for _, f := range c.Story.Faults {
		r.Violations = append(r.Violations, Violation{Rule: "simulator", Text: f, At: c.Clock.Now(), Faults: r.Faults})
	}
	return r
}
