package scenario

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"gocloud.dev/gcerrors"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/topology"
	"pitstop.internal/shared/tpu/tputest"
)

// checks hold what happens against the rules of the design. They see the truth: the cloud, the training and the people of
// the simulated world, and every write, call and message.
type checks struct {
	*world
	violations []Violation
	// of is what is known of each workload, by ID.
	of map[string]*record
	// taken are the calls for which the brake gave a slot.
	taken map[string]bool
	// untimely are the entries, by ID, that have the time of a clock that goes wrong.
	untimely map[string]bool
	// abuse is what Google suspects, by life.
	abuse map[string]suspicion
	// order is the shape in which somebody ordered a slice last, by slice.
	order map[string]string
	// policies are the policy files that were in force, each from a time on.
	policies []inForce

	handled                                   int
	happen, ended, confirmed, causes, actions map[string]int
	transitions, classes                      map[string]int
	reaction                                  map[string][]time.Duration
	lost                                      map[string]time.Duration
	goodput, chipHours, chipHoursLost         float64
	incidents, braked                         int
	// endless says that two steps lead to each other for ever: the run ends.
	endless bool
	// entered is told of each phase that an incident enters, asked of each request that it sends in the middle of one,
	// idled of each workload that one leaves idle to be deleted.
	entered, asked, idled func(incident.Workload)
}

type inForce struct {
	from time.Time
	file []byte
}

// record is what a simulation remembers of one workload.
type record struct {
	// last is the document as the last of its writers told of it, body as it was written last and prior as it was before that; open
	// and done are the incidents that were told.
	last       *incident.Workload
	body       string
	prior      string
	open, done string
	opened     time.Time
	called     time.Time
	ready      time.Time
	happened   []time.Time
	announced  time.Time
	// released is when a word of the owner's about a slice was handled, by slice.
	released map[string]time.Time
	// usable is when a slice became usable last: what was said before that concerns another life.
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
	// ordered are the shapes besides the first in which the owner has created a slice.
	ordered []string
	// stopped is who stopped a slice that is stopped, where a person did, by slice.
	stopped map[string]string
	// broken is since when a slice is not usable of which nobody was told, by slice.
	broken map[string]time.Time
	// told says that what an incident told of was left to a person, left is when that was last, closed when the last one ended.
	told         bool
	left, closed time.Time
	// suspected are the lives on which Google suspects abuse, and when a person was told of that.
	suspected map[string]time.Time
	// exited is the last attempt of whose end had been told before the document that is looked at.
	exited int
	// escalated is when an incident was left to a person last, but for those that deleted what another one had left.
	escalated time.Time
	// followed are the lives for which an incident was opened last that was to admit them.
	followed string
	// byHand says that a person was told to delete what a clean-up could not.
	byHand bool
	// hour is the one in which steps are counted, and began the epoch with which it began.
	hour  time.Time
	began int64
	// calls are what the simulated APIs saw of ours, past the incidents that are over.
	calls []seenCall
	past  []string
}

func newChecks(w *world) *checks {
	c := &checks{
		world: w, of: map[string]*record{}, abuse: map[string]suspicion{}, taken: map[string]bool{}, untimely: map[string]bool{}, happen: map[string]int{}, ended: map[string]int{}, confirmed: map[string]int{},
		causes: map[string]int{}, actions: map[string]int{}, transitions: map[string]int{}, classes: map[string]int{},
		reaction: map[string][]time.Duration{}, lost: map[string]time.Duration{},
		policies: []inForce{{w.Start, w.opts.Policy}}, order: map[string]string{},
	}
	for _, f := range w.Fleet {
		c.order[f.Name] = f.Accelerator
	}
	return c
}

func (c *checks) record(workload string) *record {
	r := c.of[workload]
	if r == nil {
		r = &record{stopped: map[string]string{}, released: map[string]time.Time{}, taken: map[string]time.Time{}, usable: map[string]time.Time{}, wanted: map[string]events.Incarnation{}, put: map[string]string{}, suspected: map[string]time.Time{}, broken: map[string]time.Time{}}
		c.of[workload] = r
	}
	return r
}

// mostViolations is how many are kept.
const mostViolations = 20

func (c *checks) violated(rule, workload, format string, args ...any) {
	if len(c.violations) >= mostViolations {
		return
	}
	v := Violation{Rule: rule, At: c.clock.Now().UTC(), Workload: workload, Text: fmt.Sprintf(format, args...), Faults: c.chaos.count}
	v.Faults = min(v.Faults, c.chaos.limit)
	c.violations = append(c.violations, v)
}

// workload is the workload of a slice, as its label and its queued resource make it.
func (c *checks) workload(slice string) string {
	for _, f := range c.Fleet {
		if f.Name == slice {
			return c.Project + "/" + f.workload()
		}
	}
	return c.Project + "/" + slice
}

func (c *checks) happened(what, slice string) {
	c.happen[what]++
	now := c.clock.Now()
	if slice == "" {
		return
	}
	r := c.record(c.workload(slice))
	r.happened = append(r.happened, now)
	if what == "maintenance announced" {
		r.announced = now
	}
}

// skewed takes note of an entry about a slice, or about one of its workers, whose time is wrong.
func (c *checks) skewed(e events.Entry) {
	c.untimely[e.ID] = true
	group, _, _ := e.Subject.Group()
	for _, f := range c.Fleet {
		for _, z := range c.zones() {
			worker := slices.ContainsFunc(c.api.Hosts(z, f.Name), func(host string) bool {
				its, _, ok := events.WorkerGroup(host)
				return ok && its == group
			})
			if worker || f.Name == e.Subject.Node {
				c.record(c.workload(f.Name)).skewed = c.clock.Now()
			}
		}
	}
}

// stored follows what handlers read and write in the ledger.
func (c *checks) stored(ctx context.Context, call ledgertest.Call, err error) {
	inst := instanceOf(ctx)
	switch call.Collection {
	case ledger.Workloads:
		if err == nil && !call.Query {
			inst.workload, inst.seen = call.Body(), c.clock.Now()
		}
		// Whether its writer hears of it or not.
		if n := len(call.Body()); call.Write && n > mostBytes {
			c.violated("size", "", "a document of %d bytes was written", n)
		}
		if id, ok := call.Doc["ID"].(string); ok && call.Write && err == nil {
			c.mark(id, call.Doc["due"] != nil)
			id, err := url.PathUnescape(id)
			if err == nil && c.releases.documents[id] {
				c.violated("10 nothing lost", id, "a document of the newer release was overwritten")
			}
			r := c.record(id)
			r.prior, r.body = r.body, call.Body()
		}
	case ledger.Pauses:
		if call.Write || err != nil && gcerrors.Code(err) != gcerrors.NotFound {
			return
		}
		inst.pauseRead, inst.pause = c.clock.Now(), nil
		var p incident.Pause
		if err == nil && json.Unmarshal([]byte(call.Body()), &p) == nil && p != (incident.Pause{}) {
			inst.pause = &p
		}
	case ledger.Brake:
		var s struct {
			Taken []string `json:"taken"`
		}
		if call.Write && err == nil && json.Unmarshal([]byte(call.Body()), &s) == nil {
			for _, id := range s.Taken {
				c.taken[id] = true
			}
			if len(s.Taken) > c.limits.Project {
				c.violated("9 brake", "", "%d slots are taken, and there are %d", len(s.Taken), c.limits.Project)
			}
		}
	}
}

// mostBytes is half of what Firestore takes of a document.
const mostBytes = 512 << 10

// mark keeps at which workloads something is due.
func (c *checks) mark(key string, due bool) {
	id, err := url.PathUnescape(key)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if due {
		c.busy[id] = true
	} else {
		delete(c.busy, id)
	}
}

// read follows what handlers read of the cloud.
func (c *checks) read(r *http.Request) {
	inst := instanceOf(r.Context())
	if r.Method != http.MethodGet {
		return
	}
	zone, rest, ok := strings.Cut(shortPath(r.URL.Path), "/")
	if !ok {
		return
	}
	kind, name, one := strings.Cut(rest, "/")
	if kind != "nodes" {
		return
	}
	for _, f := range c.Fleet {
		if one && f.Name != name || f.Legacy != strings.HasPrefix(r.URL.Path, "/v1/") {
			continue // the other version of the API shows it
		}
		got := reading{at: c.clock.Now(), state: "gone"}
		if state, life := c.api.State(zone, f.Name); state != "" {
			got.state, got.life = state, life.ID
		}
		inst.read[zone+"/"+f.Name] = got
	}
}

// called follows the calls of ours that took effect.
func (c *checks) called(e tputest.Event) {
	if e.Kind == tputest.Called && e.Principal == ours(c.Project) && inVain.MatchString(e.Error) {
		c.violated("order", "", "%s of %s asks for what is not there: %s", e.Method, e.Resource(), e.Error)
	}
	c.arrived(e)
	if e.Kind != tputest.Called || e.Principal != ours(c.Project) || !mutates(e.Method) || e.Code != 0 {
		return
	}
	c.actions[e.Method]++
	held := []string{e.Node}
	if e.QueuedResource != "" {
		held = c.held(e.QueuedResource)
	}
	slice := held[0]
	id := c.workload(slice)
	r := c.record(id)
	if e.Method != "UpdateNode" { // which asks for a save
		r.called = c.clock.Now()
	}
	inst := c.chaos.current
	doc, _, err := c.ledger.Workload(context.Background(), id)
	if fault.IsBusy(err) {
		return // the newer release has taken the document meanwhile
	}
	if err != nil || inst == nil {
		c.violated("1 fence", id, "%s of %s by nobody, or for a workload that is not there: %v", e.Method, slice, err)
		return
	}
	if e.Legacy {
		e.RequestID = c.begun(e, inst)
	}
	c.allowed(e, inst, doc)
	c.current(e, inst, id)
	c.prompt(e, inst)
	for _, slice := range held {
		if read := inst.read[e.Zone+"/"+slice]; e.Method != "UpdateNode" && c.suspected(read.life, read.at) { // asking for a save harms nobody
			c.violated("owner's word", id, "%s of %s, and Google suspects abuse on it since %s", e.Method, slice, c.abuse[read.life].Since.UTC().Format(time.DateTime))
		}
		switch e.Method {
		case "DeleteNode", "DeleteQueuedResource":
			c.deleted(e, inst, doc, slice)
		case "CreateNode", "CreateQueuedResource":
			c.created(e, inst, doc, slice)
		case "StartNode":
			c.started(inst, c.asSeen(inst, doc), slice, e.Zone)
		}
	}
	if e.Method == "PerformMaintenance" || e.Method == "PerformMaintenanceQueuedResource" {
		c.maintained(c.asSeen(inst, doc), slice)
	}
}

// held are the slices that a queued resource holds.
func (c *checks) held(queue string) []string {
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

// maintained checks that maintenance is begun only behind a save that is complete, asked for in this incident.
func (c *checks) maintained(doc incident.Workload, slice string) {
	in, p := doc.Incident, doc.Progress
	if in == nil {
		return
	}
	bucket, path, _ := strings.Cut(strings.TrimPrefix(p.VerifiedURI, "gs://"), "/")
	_, _, complete := c.bucket.Get(bucket, path+"/commit_success.txt")
	if !complete || p.VerifiedAt.Before(in.Save.Requested.Truncate(time.Second)) {
		c.violated("8 progress", doc.ID, "maintenance of %s was begun, and the last complete checkpoint is %q of %s", slice, p.VerifiedURI, p.VerifiedAt.UTC().Format(time.DateTime))
	}
}

// current checks that a call is that of a request which was current when it was begun: its ID says which.
func (c *checks) current(e tputest.Event, inst *instance, id string) {
	if anonymous := e.Method == "StartNode" || e.Method == "UpdateNode" || strings.HasPrefix(e.Method, "PerformMaintenance"); anonymous && e.RequestID == "" {
		return
	}
	var doc incident.Workload
	if err := json.Unmarshal([]byte(inst.workload), &doc); err != nil || doc.Incident == nil {
		c.violated("1 fence", id, "%s of %s, and its handler has seen no incident: %v", e.Method, e.Resource(), err)
		return
	}
	for _, t := range doc.Incident.Tasks {
		r := events.Request{Workload: doc.ID, Incident: doc.Incident.ID, Epoch: t.Epoch, Action: t.Action, Slice: t.Slice, Attempt: t.Attempt}
		if !t.Begun.IsZero() && e.RequestID == ledger.RequestID(r, t.Zone) {
			return
		}
	}
	c.violated("1 fence", id, "%s of %s is no call of a current request", e.Method, e.Resource())
}

// begun is the ID of the request that a call to the former version of the API is of, which carries none.
func (c *checks) begun(e tputest.Event, inst *instance) string {
	var doc incident.Workload
	if json.Unmarshal([]byte(inst.workload), &doc) != nil || doc.Incident == nil {
		return ""
	}
	for _, t := range doc.Incident.Tasks {
		does := map[string]events.Action{"DeleteNode": events.ActionDelete, "CreateNode": events.ActionCreate}[e.Method]
		if t.Action == does && t.Concerns(e.Node) && t.Zone == e.Zone && !t.Begun.IsZero() {
			return t.RequestID
		}
	}
	return ""
}

// allowed checks that the owner allows a call, and that nothing is paused.
func (c *checks) allowed(e tputest.Event, inst *instance, doc incident.Workload) {
	switch {
	case inst.pauseRead.IsZero():
		c.violated("owner's word", doc.ID, "%s of %s without a look at the pause", e.Method, e.Resource())
	case inst.pause.Holds(c.clock.Now()): // it may have ended since it was read
		c.violated("owner's word", doc.ID, "%s of %s though everything is paused", e.Method, e.Resource())
	}
	seen := c.asSeen(inst, doc)
	if !c.lately(seen.Label, func(p policy.Policy) bool { return !p.Switches.WatchOnly() }) {
		c.violated("owner's word", doc.ID, "%s of %s though it is only watched", e.Method, e.Resource())
	}
	for _, s := range seen.Slices {
		if s.Abuse && !s.IsReleased() {
			c.violated("owner's word", doc.ID, "%s of %s though Google suspects abuse on %s", e.Method, e.Resource(), s.Name)
		}
	}
}

// asSeen is a workload as the handler of a call saw it last: what came to it since then, the call cannot know.
func (c *checks) asSeen(inst *instance, doc incident.Workload) incident.Workload {
	var seen incident.Workload
	if err := json.Unmarshal([]byte(inst.workload), &seen); err != nil || seen.ID != doc.ID || c.clock.Now().Sub(inst.seen) > unseen {
		return doc
	}
	return seen
}

// lately reports whether something held under a policy that a handler may still go by.
func (c *checks) lately(label string, holds func(policy.Policy) bool) bool {
	within := c.clock.Now().Add(-10 * time.Minute)
	for i := len(c.policies) - 1; i >= 0; i-- {
		f, err := policy.Parse(c.policies[i].file)
		if err == nil && holds(f.For(label, c.opts.ceiling())) {
			return true
		}
		if c.policies[i].from.Before(within) {
			break
		}
	}
	return false
}

// inVain is what the simulated API says to an order that names something of another zone or region.
var inVain = regexp.MustCompile(`is not in (zone|region) |^Reservation not found: `)

func (c *checks) deleted(e tputest.Event, inst *instance, doc incident.Workload, slice string) {
	s := doc.Slice(slice)
	read, ok := inst.read[e.Zone+"/"+slice]
	switch {
	case s == nil || doc.Incident == nil && !c.takenBack(inst, doc):
		c.violated("1 fence", doc.ID, "%s was deleted, and no incident is open on it", slice)
		return
	case doc.Incident == nil:
		return
	case !ok && s.IsReleased() && c.isGone(e.Zone, slice):
		return // what its queued resource brought there is its owner's, and they have deleted it
	case !ok:
		c.violated("1 fence", doc.ID, "%s was deleted without a reading", slice)
		return
	case read.state == "gone":
		return // its queued resource is what is left
	case s.Incarnation.ID != read.life && doc.Incident.Clearing == "":
		c.violated("1 fence", doc.ID, "%s was deleted as %s, and read as %s", slice, s.Incarnation.ID, read.life)
	}
	if !c.taken[e.RequestID] {
		c.violated("9 brake", doc.ID, "%s was deleted without a slot of the brake", slice)
	}
	if stopped := read.state == "STOPPED" || read.state == "STOPPING"; stopped && doc.Incident.Clearing == "" {
		c.violated("2 owner", doc.ID, "%s was deleted, and it was only stopped", slice)
	}
	if doc.Incident.Phase == incident.Discarding {
		c.discarded(inst, doc, s)
		return
	}
	living := read.state == "READY" || read.state == "STOPPED" || read.state == "REPAIRING" || read.state == "RESTARTING"
	if doc.Incident.Clearing != "" || !living {
		return
	}
	if c.trainings[slice].Ran().ID != read.life {
		return // nothing ever ran there
	}
	if _, running := c.trainings[slice].Running(); running && read.state == "READY" && c.whole(doc) {
		c.violated("3 admitted", doc.ID, "%s was deleted while training ran on it, at step %d", slice, c.trainings[slice].LastStep())
	}
	if doc.Progress.Verified == 0 && doc.Directory != "" {
		c.violated("8 progress", doc.ID, "%s was deleted alive (%s) without a verified checkpoint", slice, read.state)
	}
}

// discarded checks the deletion of what an incident has left idle: its owner wants that, nobody has said a word since, and no training
// loses anything.
func (c *checks) discarded(inst *instance, doc incident.Workload, s *incident.Slice) {
	r, t := c.record(doc.ID), c.trainings[s.Name]
	if r.escalated.IsZero() || c.clock.Now().Sub(r.escalated) < policy.DefaultDeleteAfter {
		c.violated("owner's word", doc.ID, "%s was deleted for being idle, and it was left to a person at %s", s.Name, r.escalated.UTC().Format(time.DateTime))
	}
	if !c.lately(doc.Label, func(p policy.Policy) bool {
		return p.WhenEscalated == policy.DeleteIdle && (s.Spot && p.Switches.Recreate == policy.Yes || p.Switches.RecreateNonSpot == policy.Yes)
	}) {
		c.violated("owner's word", doc.ID, "%s was deleted for being idle, and no policy says so", s.Name)
	}
	for _, o := range doc.Orders {
		if o.At.After(r.escalated) && o.At.Before(inst.seen) {
			c.violated("owner's word", doc.ID, "%s was deleted for being idle, and %s said %s", s.Name, o.By, o.Verb)
		}
	}
	if s.IsReleased() || r.released[s.Name].After(r.escalated) && r.released[s.Name].Before(inst.seen) {
		c.violated("2 owner", doc.ID, "%s was deleted for being idle, and it is its owner's", s.Name)
	}
	listened := inst.read[s.Zone+"/"+s.Name].at // or right behind it
	if _, running := t.Running(); running && !t.Hangs() && !t.Started().After(listened) {
		c.violated("3 admitted", doc.ID, "%s was deleted for being idle while training ran on it, at step %d", s.Name, t.LastStep())
	}
	bucket, path, _ := strings.Cut(strings.TrimPrefix(doc.Progress.VerifiedURI, "gs://"), "/")
	_, _, complete := c.bucket.Get(bucket, path+"/commit_success.txt")
	nothing := doc.Incident.Save.Nothing && t.LastStep() == 0
	if !nothing && (!complete || doc.Progress.Verified < doc.Progress.CheckpointStep) {
		c.violated("8 progress", doc.ID, "%s was deleted for being idle, and its last checkpoint is %q", s.Name, doc.Progress.VerifiedURI)
	}
}

// takenBack reports whether a person has ended an incident, by a word or by what they did, or what Google suspects has, since the
// handler of a call looked.
func (c *checks) takenBack(inst *instance, doc incident.Workload) bool {
	in := doc.Closed
	return in != nil && (in.Outcome == incident.Released || in.Code == incident.CodeAbuse) && doc.Ended.After(inst.seen) && c.clock.Now().Sub(inst.seen) <= unseen
}

// discarded reports whether an incident was opened to delete what another one had left idle.
func discarded(in *incident.Incident) bool { return in.Timeline[0].Phase == incident.Discarding }

func (c *checks) isGone(zone, slice string) bool {
	state, _ := c.api.State(zone, slice)
	return state == ""
}

// whole reports whether all slices of a workload can be used: a Multislice of which one cannot trains in none.
func (c *checks) whole(doc incident.Workload) bool {
	for _, s := range doc.Slices {
		if state, _ := c.api.State(s.Zone, s.Name); state != "READY" && !s.IsReleased() {
			return false
		}
	}
	return true
}

// started checks that nothing is started that its owner stopped, and nothing without a reading.
func (c *checks) started(inst *instance, doc incident.Workload, slice, zone string) {
	if by := c.record(doc.ID).stopped[slice]; by != "" {
		c.violated("2 owner", doc.ID, "%s was started, and %s had stopped it", slice, by)
	}
	s, read := doc.Slice(slice), inst.read[zone+"/"+slice]
	if s == nil || doc.Incident == nil || s.Incarnation.ID != read.life || read.state != "STOPPED" {
		c.violated("1 fence", doc.ID, "%s was started, and read as %s, %s", slice, read.life, read.state)
	}
	never := doc.Incident != nil && doc.Incident.Switches.Level(policy.StartStopped) == policy.No
	if never || !c.lately(doc.Label, func(p policy.Policy) bool { return p.Switches.StartStopped != policy.No }) {
		c.violated("owner's word", doc.ID, "%s was started, and start_stopped is no", slice)
	}
}

// unseen is how long a call may be under way to the API since its handler looked at the ledger: nobody can take it back then.
const unseen = incident.CallWithin + slowest

func (c *checks) created(e tputest.Event, inst *instance, doc incident.Workload, slice string) {
	s := c.asSeen(inst, doc).Slice(slice)
	for _, z := range c.zones() {
		state, life := c.api.State(z, slice)
		if z == e.Zone || state != "READY" && state != "CREATING" && state != "DELETING" { // which trains for as long as it takes
			continue
		}
		// What came there since the handler looked it could not see; and where the slice was neither last nor admitted last, it has to
		// hear of it, which may take as long as entries do.
		seen, looked := inst.read[z+"/"+slice]
		unheard := s != nil && z != s.Zone && z != s.Admitted.Zone && c.clock.Now().Sub(life.Created) < incident.Grace
		if !looked && !unheard || looked && seen.at.After(life.Created) {
			c.violated("3 admitted", doc.ID, "%s was created in %s while it is %s in %s", slice, e.Zone, state, z)
		}
	}
	if in := c.asSeen(inst, doc).Incident; in != nil && in.Clearing != "" {
		c.violated("2 owner", doc.ID, "%s was created in %s for %s, which only cleans up", slice, e.Zone, in.ID)
	}
	c.torn(e, doc, slice)
	c.shaped(e, doc, slice)
	if at, ok := c.record(doc.ID).taken[slice]; ok && inst.began.After(at) {
		c.violated("2 owner", doc.ID, "%s was created in %s after its owner had deleted it in quiet times", slice, e.Zone)
	}
	if said, ok := c.record(doc.ID).released[slice]; ok && inst.began.After(said) {
		c.violated("2 owner", doc.ID, "%s was created in %s after its owner had deleted it", slice, e.Zone)
	}
	bucket, _, _ := strings.Cut(strings.TrimPrefix(doc.Directory, "gs://"), "/")
	home, region := c.Buckets[bucket], topology.Region(e.Zone)
	moved := home != "" && home != region && s != nil && topology.Region(s.Zone) != region
	if moved && !c.lately(doc.Label, func(p policy.Policy) bool { return p.OtherRegions }) {
		c.violated("owner's word", doc.ID, "%s was created in %s, and its checkpoints are in %s", slice, e.Zone, home)
	}
	if doc.Incident == nil && c.clock.Now().Sub(inst.seen) > unseen {
		c.violated("1 fence", doc.ID, "%s was created, and no incident is open on it", slice)
	}
}

// apart reports whether somebody else has put the slices of a Multislice into several zones.
func apart(doc incident.Workload) bool {
	zones := map[string]bool{}
	for _, s := range doc.Slices {
		if s.Admitted.Known() && !s.IsReleased() {
			zones[s.Admitted.Zone] = true
		}
	}
	return len(zones) > 1
}

// shaped checks that a slice is created as its owner ordered it, or in a shape that the policy names, as those that it trains with.
func (c *checks) shaped(e tputest.Event, doc incident.Workload, slice string) {
	n := c.api.Node(e.Zone, slice)
	i := slices.IndexFunc(c.Fleet, func(f SliceConfig) bool { return f.Name == slice })
	if n == nil || i < 0 {
		return // it waits in its queued resource, or is no slice of the fleet
	}
	is := n.AcceleratorType
	others := false
	for _, s := range doc.Slices {
		if s.Name == slice || s.IsReleased() || apart(doc) {
			continue
		}
		o := c.api.Node(s.Zone, s.Name)
		if state, life := c.api.State(s.Zone, s.Name); o == nil || life.ID != s.Incarnation.ID || state != "READY" && state != "CREATING" {
			continue
		}
		others = others || o.AcceleratorType == is
		unlike := is == c.order[slice] && is != c.order[s.Name] // somebody ordered them in several shapes
		if o.AcceleratorType != is && !unlike {
			c.violated("all or none", doc.ID, "%s was created as %s while %s is %s", slice, is, s.Name, o.AcceleratorType)
		}
	}
	if is == c.Fleet[i].Accelerator {
		return
	}
	c.happen["created in another shape"]++
	others = others || slices.Contains(c.record(doc.ID).ordered, is)
	if !others && !c.lately(doc.Label, func(p policy.Policy) bool { _, named := p.Shape(is); return named }) {
		c.violated("owner's word", doc.ID, "%s was created as %s, which neither its order nor the policy names", slice, is)
	}
	if batch := c.Fleet[i].Batch; batch == 0 || batch%int64(c.devices(i)) != 0 {
		c.violated("owner's word", doc.ID, "%s was created as %s, and its batch of %d fits no device", slice, is, batch)
	}
}

// ordered takes note of the shape in which an owner creates a slice.
func (c *checks) ordered(f SliceConfig, shape string) {
	if shape != f.Accelerator {
		c.happen["created by its owner in another shape"]++
		r := c.record(c.workload(f.Name))
		r.ordered = append(r.ordered, shape)
	}
}

// devices are those that the batch of a slice of the fleet is for.
func (c *checks) devices(i int) int {
	s, err := topology.Parse(c.Fleet[i].Accelerator)
	c.must(err)
	return s.Devices()
}

// torn checks that a slice of a Multislice is created where the others are, unless somebody else has put them apart.
func (c *checks) torn(e tputest.Event, doc incident.Workload, slice string) {
	if apart(doc) {
		return
	}
	for _, s := range doc.Slices {
		state, life := c.api.State(s.Zone, s.Name)
		if s.Name == slice || s.Zone == e.Zone || s.IsReleased() || life.ID != s.Incarnation.ID || state != "READY" && state != "CREATING" {
			continue
		}
		c.violated("all or none", doc.ID, "%s was created in %s while %s is %s in %s", slice, e.Zone, s.Name, state, s.Zone)
	}
}

// answered follows the messages: what the owner said is known once its entry is handled, unless that has a time at which they said
// nothing of what is there now.
func (c *checks) answered(sub string, m Message, status int) {
	c.handled++
	if until, newer := c.releases.events[m.ID]; newer && status == http.StatusOK && c.clock.Now().Before(until) {
		c.violated("10 nothing lost", "", "message %s of the newer release was acknowledged by this one", m.ID)
	}
	if status != http.StatusOK || !strings.HasSuffix(sub, "/logevent") {
		return
	}
	e, err := events.Read(m.Data)
	if err != nil || c.untimely[e.ID] || e.Kind != events.KindCall || e.Call.Code != 0 || e.Call.Principal == ours(c.Project) || events.Google(e.Call.Principal) {
		return
	}
	for _, f := range c.Fleet {
		if f.Name != e.Subject.Node && (f.QueuedResource == "" || f.QueuedResource != e.Subject.QueuedResource) {
			continue
		}
		r := c.record(c.workload(f.Name))
		wanted := r.wanted[f.Name]
		// What they delete elsewhere makes room for it.
		moved := wanted.Created.After(r.usable[f.Name]) && wanted.Zone == r.put[f.Name] && wanted.Zone != e.Subject.Zone
		if strings.HasPrefix(e.Call.Method, "Delete") && e.Time.After(r.usable[f.Name]) && e.Time.After(wanted.Created) && !moved {
			r.released[f.Name] = c.clock.Now()
		}
	}
}

// lived follows the cloud: what somebody creates is there to be watched again.
func (c *checks) lived(e tputest.Event) {
	if e.Kind == tputest.Called && e.Method == "StopNode" && e.Code == 0 {
		c.record(c.workload(e.Node)).stopped[e.Node] = e.Principal
	}
	c.breaks(e)
	if e.Node == "" {
		return
	}
	r := c.record(c.workload(e.Node))
	if e.Kind == tputest.Called && e.Method == "CreateNode" && e.Code == 0 && e.Principal != ours(c.Project) {
		if n := c.api.Node(e.Zone, e.Node); n != nil {
			c.order[e.Node], r.put[e.Node] = n.AcceleratorType, e.Zone
		}
	}
	if created := e.Incarnation.Created; e.Kind == tputest.Lost && created.After(r.released[e.Node]) && created.After(r.taken[e.Node]) {
		delete(r.released, e.Node) // they have ordered it again, so they want it, and Google took it before it could be used
		delete(r.taken, e.Node)
		r.wanted[e.Node] = e.Incarnation
	}
	if e.Kind != tputest.Ready {
		return
	}
	delete(r.stopped, e.Node)
	r.usable[e.Node] = c.clock.Now()
	delete(r.released, e.Node)
	delete(r.taken, e.Node)
	if !r.called.IsZero() && r.ready.IsZero() {
		r.ready = c.clock.Now()
		c.reaction["call_to_ready"] = append(c.reaction["call_to_ready"], r.ready.Sub(r.called))
	}
}

// took takes note of what the owner deletes in quiet times: the audit log tells of it, whatever becomes of the entries on
// their way.
func (c *checks) took(slice string) {
	doc, _, err := c.ledger.Workload(context.Background(), c.workload(slice))
	if err == nil && doc.Incident == nil {
		c.record(doc.ID).taken[slice] = c.clock.Now()
	}
}

// leased checks what a lease admits: no other life of a slice can be running then.
func (c *checks) leased(uri string) {
	dir := strings.TrimSuffix(uri, "/"+checkpoint.LeaseName)
	for _, f := range c.Fleet {
		if f.Directory != dir {
			continue
		}
		l, _, err := checkpoint.ReadLease(context.Background(), c.store, dir)
		if err != nil {
			c.violated("3 admitted", c.workload(f.Name), "the lease cannot be read: %v", err)
			return
		}
		for _, a := range l.Admitted {
			for _, z := range c.zones() {
				n := c.api.Node(z, a.Slice)
				if n == nil || n.State != "READY" || c.api.Incarnation(z, a.Slice).Same(a.Incarnation) {
					continue
				}
				if other := c.api.Incarnation(z, a.Slice); other.Created.Before(a.Incarnation.Created) && l.By != "crew" {
					c.violated("3 admitted", c.workload(f.Name), "the lease admits %s as %s while it lives as %s", a.Slice, a.Incarnation, other)
				}
			}
		}
	}
}

// livesOf names the lives of what was not released.
func livesOf(w incident.Workload) (lives string) {
	for _, s := range w.Slices {
		if !s.IsReleased() {
			lives += s.Name + "=" + s.Incarnation.String() + " "
		}
	}
	return lives
}

// unled reports whether the lease names no life, or another one, of a slice that was not released.
func (c *checks) unled(w incident.Workload) bool {
	l, _, err := checkpoint.ReadLease(context.Background(), c.store, w.Directory)
	return err != nil || slices.ContainsFunc(w.Slices, func(s incident.Slice) bool {
		return !s.IsReleased() && !slices.ContainsFunc(l.Admitted, func(a events.Admission) bool {
			return a.Slice == s.Name && a.Incarnation.Same(s.Incarnation)
		})
	})
}

// saved checks one write of a workload's document, and what led to it.
func (c *checks) saved(s ledger.Step) {
	c.repeats(s)
	for _, e := range s.Evidence {
		if e, held := e.(incident.Held); held && strings.Contains(e.Why, ledger.ErrBraked.Error()) {
			c.braked++
		}
	}
	c.moved(s.Before, s.After)
}

// unheard takes a write that took effect and of which its writer never heard.
func (c *checks) unheard(call ledgertest.Call) {
	var before, after incident.Workload
	if call.Collection != ledger.Workloads || json.Unmarshal([]byte(call.Body()), &after) != nil {
		return
	}
	// Where others have written since, what they told of is all that is known of it.
	r := c.record(after.ID)
	if r.last == nil || r.body != call.Body() {
		return
	}
	if json.Unmarshal([]byte(r.prior), &before) != nil || before.Epoch < r.last.Epoch {
		before = *r.last
	}
	c.moved(before, after)
}

// mostSteps is how far an epoch may rise within an hour: a request a minute of each kind, for each slice, is far below it.
const mostSteps = 1000

// pace checks that a workload does not go round in circles.
func (c *checks) pace(r *record, before, after incident.Workload) {
	if hour := c.clock.Now().Truncate(time.Hour); !hour.Equal(r.hour) {
		r.hour, r.began = hour, before.Epoch
	}
	if after.Epoch-r.began > mostSteps && !c.endless {
		c.violated("10 nothing lost", after.ID, "%d requests were sent within an hour, the last in %s: it goes round in circles", after.Epoch-r.began, phaseOf(after))
		c.endless = true
	}
}

// moved checks one step of a workload.
func (c *checks) moved(before, after incident.Workload) {
	r := c.record(after.ID)
	if r.last != nil && r.last.Epoch > after.Epoch {
		return // it is told late: what came behind it was told already
	}
	r.last, r.exited = &after, before.Crew.Exited
	c.pace(r, before, after)
	if after.Epoch < before.Epoch {
		c.violated("1 fence", after.ID, "the epoch went from %d to %d", before.Epoch, after.Epoch)
	}
	if b := after.Budgets; b.Restarts < 0 || b.Recreates < 0 || b.Restarts > incident.MaxRestarts || b.Recreates > incident.MaxRecreates+1 {
		c.violated("5 budgets", after.ID, "the budgets are %+v", b)
	}
	c.accounts(before, after)
	c.restarted(before, after)
	if phaseOf(before) != phaseOf(after) {
		c.inTime(before, after)
		if after.Incident != nil {
			c.entered(after)
		}
	} else if after.Incident != nil && after.Epoch > before.Epoch {
		c.asked(after)
	}
	if before.Idle == nil && after.Idle != nil {
		c.idled(after)
	}
	c.suspicions(r, after, after.Closed != nil && after.Closed.ID != r.done)
	if in := after.Closed; in != nil && in.ID != r.done {
		r.done = in.ID
		c.closed(r, after)
	}
	if in := after.Incident; in != nil {
		if in.Deadline.IsZero() && in.Phase != incident.Approving && in.Phase != incident.Recreating {
			c.violated("10 nothing lost", after.ID, "phase %s has no deadline", in.Phase)
		}
		if in.ID != r.open {
			r.open = in.ID
			c.opened(r, after)
		}
	}
}

// repeats checks that the same evidence makes the same decision.
func (c *checks) repeats(s ledger.Step) {
	if len(s.Evidence) == 0 {
		return
	}
	again := s.Before
	for _, e := range s.Evidence {
		was := again
		again, _, _ = c.opts.Seams.decision()(s.Policy, again, e, s.At)
		c.stepped(was, again)
	}
	again.Outbox, s.After.Outbox = nil, nil
	one, err := json.Marshal(again, json.Deterministic(true))
	two, err2 := json.Marshal(s.After, json.Deterministic(true))
	if errors.Join(err, err2) != nil || !slices.Equal(one, two) {
		c.violated("history", s.After.ID, "the same evidence makes another document: %v", errors.Join(err, err2))
	}
}

func (c *checks) opened(r *record, w incident.Workload) {
	c.incidents++
	now := c.clock.Now()
	explained := !r.announced.IsZero() && now.Sub(r.announced) < 4*24*time.Hour
	for _, at := range r.happened {
		explained = explained || at.After(r.opened)
	}
	// What ended without being mended, because its owner took the allowance back, may be told again while it lasts.
	for _, s := range w.Slices {
		explained = explained || r.told && s.Condition != incident.Ready
	}
	// What somebody created where no crew may put itself into the place of another is admitted there: once, and under another policy again.
	if w.Incident.Phase == incident.Admitting {
		lives := livesOf(w)
		explained = explained || c.unled(w) && (lives != r.followed || c.policies[len(c.policies)-1].from.After(r.opened))
		r.followed = lives
	}
	// What a training met that was begun again since is told again, and so is what it failed with behind the last step that was told.
	for _, s := range w.Slices {
		t := c.trainings[s.Name]
		if w.Incident.Cause == events.CauseCrash && t != nil {
			fresh := w.Crew.Exited > r.exited // of the end of this attempt nothing had told, however late its line comes
			explained = explained || t.Started().After(r.closed) || slices.ContainsFunc(t.Failures(), func(failed time.Time) bool {
				return failed.After(r.opened) && failed.After(w.Progress.At) || fresh && failed.Equal(w.Incident.Down)
			})
		}
	}
	explained = explained || now.Sub(r.skewed) < incident.Grace
	// What an incident had ordered may come when it is over.
	explained = explained || w.Incident.Phase == incident.Clearing || w.Incident.Code == incident.CodeLeftBehind
	// What an incident has left idle is deleted, where its owner wants that.
	explained = explained || w.Incident.Phase == incident.Discarding && !r.escalated.IsZero()
	// What stands still for another reason than the last one is told too.
	explained = explained || w.Incident.Cause == events.CauseHang && (c.steps(w) == "" || unheard(w))
	if !explained {
		c.violated("4 one trouble", w.ID, "incident %s was opened for %s, and nothing had happened since the last one", w.Incident.ID, w.Incident.Cause)
	}
	c.standstill(w)
	r.opened, r.called, r.ready = now, time.Time{}, time.Time{}
	c.decided(w, now)
}

func (c *checks) closed(r *record, after incident.Workload) {
	in := after.Closed
	if in.ID != r.open { // it opened in this very step
		w := after
		w.Incident, r.open = in, in.ID
		c.opened(r, w)
	}
	r.past = append(r.past, in.ID)
	c.clock.At(c.clock.Now(), func() { c.told(after.ID, *in) }) // what was written into a bucket just now is seen behind this step
	c.ended[string(in.Outcome)]++
	switch r.closed = c.clock.Now(); {
	case in.Outcome == incident.Withdrawn: // which mends nothing
	case in.Outcome == incident.Escalated, in.Outcome == incident.Observed, cancelled(in):
		r.told, r.left = true, r.closed
		clear(r.broken)
	case in.Outcome == incident.Released:
		r.told = false
		clear(r.broken) // it is its owner's now, as a whole
	default:
		r.told = false
	}
	if in.Outcome == incident.Escalated && !discarded(in) {
		r.escalated = r.closed
	}
	r.byHand = r.byHand || in.Outcome == incident.Escalated && in.Clearing != ""
	c.causes[string(in.Cause)]++
	if !in.Down.IsZero() {
		away := c.clock.Now().Sub(in.Down)
		c.lost[string(in.Cause)] += away
		for _, s := range after.Slices {
			c.chipHoursLost += away.Hours() * float64(in.Lost(s).Chips)
		}
	}
	if (in.Outcome == incident.Resumed) != (in.Code == "") {
		c.violated("10 nothing lost", after.ID, "%s ended %s with the code %q: %s", in.ID, in.Outcome, in.Code, in.Reason)
	}
	if in.Switches.WatchOnly() && in.Outcome != incident.Observed {
		c.violated("owner's word", after.ID, "%s ended %s under the switches %+v", in.ID, in.Outcome, in.Switches)
	}
	if in.Outcome != incident.Resumed {
		return
	}
	c.confirmed[string(in.ConfirmedBy)]++
	if !r.ready.IsZero() {
		c.reaction["ready_to_progress"] = append(c.reaction["ready_to_progress"], c.clock.Now().Sub(r.ready))
	}
	if in.ConfirmedBy != incident.ByStep {
		for _, s := range after.Slices {
			if t := c.trainings[s.Name]; t != nil && !t.NoCrew && in.ConfirmedBy == incident.ByHealth && after.Crew.Seen.Before(in.Opened) && !after.Crew.Seen.IsZero() {
				c.violated("6 progress", after.ID, "%s ended resumed by health alone, and there is a crew", in.ID)
			}
		}
		return
	}
	for _, s := range after.Slices {
		if t := c.trainings[s.Name]; t != nil && !t.NoCrew && t.LastStep() <= in.Baseline && !t.Finished() { // without a crew nobody tells of steps
			c.violated("6 progress", after.ID, "%s ended resumed by step past %d, and the training is at %d", in.ID, in.Baseline, t.LastStep())
		}
	}
}

// haunted checks what has been written into the checkpoint directories: no zombie writes once another attempt has begun.
func (c *checks) haunted() {
	for _, f := range c.Fleet {
		t := c.trainings[f.Name]
		if haunted, began := t.Haunted(); haunted.After(began) && haunted.Equal(c.clock.Now()) {
			if _, trains := t.Running(); trains {
				c.violated("3 admitted", c.workload(f.Name), "a zombie of %s wrote while the next attempt was under way", f.Name)
			}
		}
	}
}

// measure takes stock of the training at the end of the time that counts.
func (c *checks) measure(end time.Time) {
	days := end.Sub(c.Start)
	var done, total float64
	for _, f := range c.Fleet {
		t := c.trainings[f.Name]
		steps := t.LastStep() - f.Trainer.Step
		done += float64(steps) * t.StepTakes.Hours()
		total += days.Hours()
		if a, err := topology.Parse(f.Accelerator); err == nil {
			c.chipHours += days.Hours() * float64(a.Chips)
		}
	}
	if total > 0 {
		c.goodput = math.Round(1000*done/total) / 1000
	}
}

// finally checks what has to hold when everything has come to its end.
func (c *checks) finally() {
	waiting := slices.DeleteFunc(c.broker.Waiting(), func(m string) bool { return strings.HasPrefix(m, topicTicks) }) // one a minute, for ever
	if len(waiting) > 0 {
		c.violated("10 nothing lost", "", "%d messages are still under way: %s", len(waiting), strings.Join(waiting, ", "))
	}
	for _, id := range slices.Sorted(maps.Keys(c.busy)) {
		doc, _, err := c.ledger.Workload(context.Background(), id)
		c.violated("10 nothing lost", id, "something is still due since %s, in %s: %v", doc.Due().UTC().Format(time.DateTime), phaseOf(doc), err)
	}
	ids, err := c.ledger.All(context.Background())
	if err != nil {
		c.violated("10 nothing lost", "", "%v", err)
	}
	for _, id := range ids {
		doc, _, err := c.ledger.Workload(context.Background(), id)
		switch {
		case err != nil:
			c.violated("10 nothing lost", id, "%v", err)
		case doc.Incident != nil:
			c.violated("10 nothing lost", id, "%s has not ended: it is %s since %s", doc.Incident.ID, doc.Incident.Phase, doc.Incident.Since.UTC().Format(time.RFC3339))
		case len(doc.Outbox) > 0:
			c.violated("10 nothing lost", id, "%d events are still in the outbox", len(doc.Outbox))
		default:
			c.cleared(doc)
			c.atPeace(doc)
		}
	}
	c.leaks()
	c.leftovers()
}

// atPeace checks that training goes on wherever it is not somebody else's business.
func (c *checks) atPeace(doc incident.Workload) {
	if c.record(doc.ID).told || doc.Crew.Finished {
		return
	}
	f, err := policy.Parse(c.opts.Policy)
	if err != nil || f.For(doc.Label, c.opts.ceiling()).Switches.WatchOnly() {
		return
	}
	for _, s := range doc.Slices {
		t := c.trainings[s.Name]
		if t == nil || s.IsReleased() || t.NoCrew { // without a crew nobody hears of a crash
			continue
		}
		if _, running := t.Running(); !running {
			c.violated("training goes on", doc.ID, "%s does not train: %s, read as %s", s.Name, c.stateOf(s.Name), s.State)
		}
	}
}

func (c *checks) stateOf(slice string) string {
	var states []string
	for _, z := range c.zones() {
		if n := c.api.Node(z, slice); n != nil {
			states = append(states, n.State+" "+n.Health+" in "+z)
		}
	}
	if len(states) == 0 {
		return "gone"
	}
	return strings.Join(states, ", ")
}

// leaks looks for what nobody wants any more.
func (c *checks) leaks() {
	known := map[string]bool{}
	for _, f := range c.Fleet {
		known[f.Name] = true
		n := 0
		for _, z := range c.zones() {
			if c.api.Node(z, f.Name) != nil {
				n++
			}
		}
		if n > 1 && !c.record(c.workload(f.Name)).byHand {
			c.violated("nothing leaked", c.workload(f.Name), "%s is there %d times: %s", f.Name, n, c.stateOf(f.Name))
		}
	}
	for _, z := range c.zones() {
		for _, n := range c.api.Nodes(z) {
			if name := n.Name[strings.LastIndexByte(n.Name, '/')+1:]; !known[name] {
				c.violated("nothing leaked", "", "node %s in %s is nobody's", name, z)
			}
		}
	}
}

func (c *checks) result(sim Simulation) *Report {
	r := &Report{
		Seed: sim.Seed, Seeds: 1, Days: sim.Days, Incidents: c.incidents, Ended: c.ended, Confirmed: c.confirmed, Causes: c.causes, Violations: c.violations,
		samples: c.reaction, Goodput: c.goodput, LostHours: map[string]float64{}, Actions: c.actions,
		ChipHours: ChipHours{Total: math.Round(c.chipHours), Lost: math.Round(c.chipHoursLost)}, Transitions: c.transitions, ErrorClasses: c.classes,
		Happened: c.happen, Faults: min(c.chaos.count, c.chaos.limit), Handled: c.handled, Braked: c.braked, Told: c.chaos.told, Story: c.story,
	}
	if r.Violations == nil {
		r.Violations = []Violation{}
	}
	r.complete()
	for cause, d := range c.lost {
		r.LostHours[cause] = math.Round(d.Hours()*10) / 10
	}
	for _, f := range c.story.Faults {
		r.Violations = append(r.Violations, Violation{Rule: "simulator", Text: f, At: c.clock.Now(), Faults: r.Faults})
	}
	return r
}
