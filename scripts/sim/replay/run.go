// Package replay plays records in a simulated world: it reads log entries, guesses the fleet to which they happened, and tells what
// the deployed functions do about them.
package replay

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/logfile"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/provider/providertest/trainingtest"
)

// item is a record, read.
type item struct {
	logfile.Record
	entry events.Entry
	// at is when it reaches the pipeline; zero until the start is known, where the entry has no time.
	at time.Time
}

// Options is how a record is played.
type Options struct {
	world.Options
	// Passed is called as a replay goes on, often; nil is not.
	Passed func(Passage)
	// Pace is how many seconds of virtual time pass in a real one; 0 does not wait.
	Pace float64
}

// Passage is how far a replay is.
type Passage struct {
	// Now is virtual time, From and To are when it began and when the last entry is played.
	Now, From, To time.Time
	// Entries is how many entries there are to play. Read is how many of them are put in order, and Played how many were played.
	// Incidents is how many have ended.
	Entries, Read, Played, Incidents int
}

// Share is how much of the record is played, from 0 to 1.
func (p Passage) Share() float64 {
	if !p.To.After(p.From) {
		return 0
	}
	return min(1, float64(p.Now.Sub(p.From))/float64(p.To.Sub(p.From)))
}

// player plays a record in a world.
type player struct {
	*world.World
	how Options

	mu sync.Mutex
	// last is when the last entry is played, or the last announced window ends.
	last time.Time
}

// Run plays a scenario to its end and returns its story. When the context ends before, it returns that error and the story so
// far, or none where it has not begun.
func Run(ctx context.Context, name string, s world.Scenario, records []logfile.Record, opts Options) (*world.Story, error) {
	w, err := begin(ctx, name, s, records, opts, func(*world.World) {})
	if err != nil {
		return nil, err
	}
	defer w.Clock.Close()
	stopped := w.loop(ctx)
	switch {
	case stopped != nil && ctx.Err() == nil:
		return nil, stopped
	case stopped != nil:
		w.Story.Stopped = w.Clock.Now()
	}
	w.finish()
	if stopped == nil {
		if err := w.ReadDocuments(); err != nil {
			return nil, err
		}
		w.KeepTrail(0, w.Story.Broken())
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("scenario: %w", err)
	}
	return w.Story, stopped
}

// Begin sets a scenario up in a world on whose clock all that the records tell will happen. Its caller moves that clock, and closes
// both. Made is called with the world before anything is in it, and attaches the hooks.
func Begin(ctx context.Context, name string, s world.Scenario, records []logfile.Record, opts Options, made func(*world.World)) error {
	_, err := begin(ctx, name, s, records, opts, made)
	return err
}

func begin(ctx context.Context, name string, s world.Scenario, records []logfile.Record, opts Options, made func(*world.World)) (*player, error) {
	items, faults := read(ctx, records, opts.Passed)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.Start.IsZero() {
		s.Start = startOf(items, s)
	}
	for i := range items {
		if items[i].at.IsZero() && items[i].entry.Ignored == "" {
			items[i].at = s.Start.Add(quiet)
		}
	}
	w := &player{World: world.New(name, s, opts.Options), how: opts, last: s.Start}
	made(w.World)
	if err := w.Found(ctx); err != nil {
		return nil, err
	}
	for _, a := range s.Assumed {
		w.Tell(world.Line{Time: s.Start, Kind: world.Assumed, Text: a, Simulated: true})
	}
	for _, f := range faults {
		w.Story.Faults = append(w.Story.Faults, f)
		w.Tell(world.Line{Time: s.Start, Kind: world.Refused, Text: f, Routine: true})
	}
	w.plan(items)
	return w, nil
}

// read understands the records and orders them by their arrival; it ends with the context.
func read(ctx context.Context, records []logfile.Record, passed func(Passage)) (items []item, faults []string) {
	for i, r := range records {
		if ctx.Err() != nil {
			return nil, nil
		}
		if passed != nil {
			passed(Passage{Read: i, Entries: len(records)})
		}
		x := logfile.Item{Record: r}.Read()
		if x.Err != nil {
			faults = append(faults, x.Err.Error())
			continue
		}
		e := x.Entry
		at := e.Received
		if at.Before(e.Time) {
			at = e.Time.Add(time.Second)
		}
		items = append(items, item{r, e, at})
	}
	slices.SortStableFunc(items, func(a, b item) int { return a.at.Compare(b.at) })
	return items, faults
}

// quiet is how long nothing happens at first.
const quiet = 10 * time.Minute

// startOf is a quiet while before anything happens, on the minute.
func startOf(items []item, s world.Scenario) time.Time {
	first := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	found := false
	earlier := func(t time.Time) {
		if !t.IsZero() && (!found || t.Before(first)) {
			first, found = t, true
		}
	}
	for _, it := range items {
		if it.entry.Ignored == "" {
			earlier(cmp.Or(it.entry.Time, it.at))
		}
	}
	for _, a := range s.Acts {
		earlier(a.At)
	}
	return first.Add(-quiet).UTC().Truncate(time.Minute)
}

// plan sets everything that is known to happen on the clock.
func (w *player) plan(items []item) {
	w.last = w.Start
	// lost is when the last loss was in each zone.
	lost := map[string]time.Time{}
	follows := w.follows(items)
	for i, it := range items {
		switch e := &it.entry; {
		case e.Ignored != "":
		case e.PubSub:
			e.Ignored = "patrol reports it again when the simulated API shows it"
		case e.Kind == events.KindCanary:
			e.Ignored = "it was the deployment's own"
		case w.babysat(it.entry):
			e.Ignored = "the script " + e.Call.Principal + " did this; Pitstop takes its place here"
			if deletes(it.entry) && it.at.Sub(lost[e.Subject.Zone]) > missedFor {
				w.missed(it)
			}
		}
		if it.entry.Ignored != "" {
			w.ignored(it)
			continue
		}
		if it.entry.Kind == events.KindLoss {
			lost[it.entry.Subject.Zone] = it.at
		}
		if it.at.After(w.last) {
			w.last = it.at
		}
		w.Awaits()
		w.Awaits()
		w.Story.Entries++
		w.Clock.At(cmp.Or(it.entry.Time, it.at), func() {
			w.happen(it.entry, items, follows[i])
			w.Played()
		})
		w.Clock.At(it.at, func() {
			if it.entry.Rank == events.RankAudit {
				w.Audited.Write(it.Raw)
			}
			w.Deliver(it.Raw, it.entry, false)
			w.Played()
			w.Story.Played++
		})
	}
	for _, a := range w.Acts {
		if a.At.After(w.last) {
			w.last = a.At
		}
		w.Awaits()
		w.Clock.At(a.At, func() {
			w.act(a)
			w.Played()
		})
	}
	var ends []time.Time
	for _, c := range w.Fleet {
		if c.RunsFor > 0 && !c.Created.IsZero() {
			ends = append(ends, c.Created.Add(time.Duration(c.RunsFor)))
		}
	}
	for _, c := range w.Clusters {
		for _, p := range c.Pools {
			if p.RunsFor > 0 {
				ends = append(ends, w.Start.Add(time.Duration(p.RunsFor)))
			}
		}
	}
	for _, end := range ends {
		if end.After(w.last) && len(items) == 0 && len(w.Acts) == 0 { // else the replay ends with the record
			w.last = end
		}
		if !end.After(w.last) {
			w.Awaits()
			w.Clock.At(end, w.Played)
		}
	}
	w.Tick(w.Start.Truncate(time.Minute).Add(time.Minute))
}

// missedFor is how long after the last loss in its zone a script's deletion is taken to be about a loss of its own.
const missedFor = 35 * time.Minute

// babysat reports whether an entry is a call of an older script.
func (w *player) babysat(e events.Entry) bool {
	return e.Kind == events.KindCall && events.Accounts{Ours: w.Babysitters}.Party(e.Call) == events.PartyOurs
}

// deletes reports whether an entry begins a deletion that was not refused.
func deletes(e events.Entry) bool {
	return strings.HasPrefix(e.Call.Method, "Delete") && e.Call.Code == 0 && (e.Call.First || !e.Call.Last)
}

// missed has Google take back what a script found lost though no entry says so.
func (w *player) missed(it item) {
	if it.at.After(w.last) {
		w.last = it.at
	}
	w.Awaits()
	w.Clock.At(cmp.Or(it.entry.Time, it.at), func() {
		s := it.entry.Subject
		for _, c := range w.Fleet {
			node := w.API.Node(s.Zone, c.Name)
			if node == nil || node.State != "READY" || c.Name != s.Node && (s.QueuedResource == "" || c.QueuedResource != s.QueuedResource) {
				continue
			}
			w.Tell(world.Line{Time: it.at, Kind: world.Assumed, Text: c.Name + " in " + s.Zone + " was lost, for the script deleted it, and no entry says so", Simulated: true})
			w.lose(c.Name, s.Zone, events.CauseTerminated)
		}
		w.Played()
	})
}

// patience is how long a scenario goes on after its last entry, or after the last announced window.
const patience = 3 * 24 * time.Hour

func (w *player) loop(ctx context.Context) (stopped error) {
	before := w.Clock.Now()
	w.Clock.Run(w.limit, func() (more bool) {
		w.Show()
		if w.Settled() {
			return false
		}
		if stopped = ctx.Err(); stopped != nil {
			return false
		}
		now := w.Clock.Now()
		if w.how.Passed != nil {
			w.how.Passed(w.passage(now))
		}
		if w.how.Pace > 0 {
			stopped = ledger.Sleep(ctx, time.Duration(float64(now.Sub(before))/w.how.Pace))
		}
		before = now
		return stopped == nil
	})
	return stopped
}

// passage is how far the run is.
func (w *player) passage(now time.Time) Passage {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := w.Story
	return Passage{Read: s.Entries, Now: now, From: w.Start, To: w.last, Entries: s.Entries, Played: s.Played, Incidents: w.IncidentsEnded()}
}

func (w *player) limit() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last.Add(patience)
}

// finish tells what did not come to an end.
func (w *player) finish() {
	ids, err := w.Ledger.All(context.Background())
	if err != nil {
		w.Story.Faults = append(w.Story.Faults, err.Error())
	}
	for _, id := range ids {
		doc, _, err := w.Ledger.Workload(context.Background(), id)
		if err != nil {
			w.Story.Faults = append(w.Story.Faults, err.Error())
			continue
		}
		if v := doc.Shown(w.Clock.Now()); v.Incident != nil {
			w.Story.Open = append(w.Story.Open, w.Story.Result(v, *v.Incident))
		}
	}
	for _, m := range w.Broker.Dead() {
		if m.Topic != events.TopicTicks {
			w.Tell(world.Line{Time: w.Clock.Now(), Kind: world.Dead, MessageID: m.ID, Text: "message " + m.ID + " on " + m.Topic + " was dead-lettered", Routine: true})
			w.Story.Faults = append(w.Story.Faults, "message "+m.ID+" on "+m.Topic+" was dead-lettered")
		}
	}
	world.ByTime(w.Story.Ended)
	world.ByTime(w.Story.Open)
}

// happen lets the world be as an entry says it was: the entry is the record, the world follows it.
func (w *player) happen(e events.Entry, items []item, f *trainingtest.Follow) {
	slice, zone := w.sliceOf(e)
	if slice == "" {
		return
	}
	node := w.API.Node(zone, slice)
	if node == nil {
		if e.Kind == events.KindCall && e.Call.Code == 0 && strings.HasPrefix(e.Call.Method, "Create") && !e.Call.Last {
			w.ownerCreates(slice, zone, e.Call.Principal)
		}
		return
	}
	switch e.Kind {
	case events.KindLoss:
		w.lose(slice, zone, e.Cause)
	case events.KindNotice:
		w.announce(slice, zone, e, items)
	case events.KindCall:
		w.calledBy(slice, zone, e.Call)
	case events.KindCrew:
		switch t := w.Training(zone, slice); {
		case t == nil:
		case f != nil:
			t.Recorded(*e.Crew, *f)
		case w.followed(zone, slice): // a worker other than the one that speaks for the slice
		case e.Crew.Report == events.ReportExited:
			t.Exit(*e.Crew)
		case e.Crew.Report == events.ReportFinished:
			t.ExitZero(*e.Crew)
		}
	default:
		// It changes nothing in the cloud.
	}
}

func (w *player) lose(slice, zone string, c events.Cause) {
	node := w.API.Node(zone, slice)
	if node.State == "PREEMPTED" || node.State == "TERMINATED" {
		return // another worker's entry
	}
	spot := node.SchedulingConfig != nil && (node.SchedulingConfig.Spot || node.SchedulingConfig.Preemptible)
	switch {
	case c == events.CauseMaintenance:
		if node.Health != "UNHEALTHY_MAINTENANCE" {
			w.Must(w.API.BeginMaintenance(zone, slice, w.Maintenance()))
		}
	case spot && (c == events.CausePreemption || c == events.CauseTerminated):
		w.Must(w.API.Preempt(zone, slice))
	case w.flexStart(slice, zone) && (c == events.CausePreemption || c == events.CauseTerminated):
		w.Must(w.API.Terminate(zone, slice))
	case node.State == "READY":
		w.Must(w.API.HostError(zone, slice, hostRepairTakes))
	}
}

// flexStart reports whether a slice of the fleet has a planned end: nothing repairs it once it is terminated.
func (w *player) flexStart(slice, zone string) bool {
	return slices.ContainsFunc(w.Fleet, func(c world.SliceConfig) bool { return c.Name == slice && c.Zone == zone && c.RunsFor > 0 })
}

// hostRepairTakes is how long Google needs for a host in the simulated cloud.
const hostRepairTakes = 18 * time.Minute

// announce lets the API show a recorded notice, and lets the maintenance take place: as the record says, else in the
// window that was announced.
func (w *player) announce(slice, zone string, e events.Entry, items []item) {
	node := w.API.Node(zone, slice)
	under := node.Health == "UNHEALTHY_MAINTENANCE"
	switch e.Notice.Status {
	case events.NoticePending:
		if under || node.UpcomingMaintenance != nil && node.UpcomingMaintenance.WindowStartTime == e.Notice.WindowStart.UTC().Format(time.RFC3339) {
			return
		}
		w.Must(w.API.Announce(zone, slice, e.Notice))
		w.mu.Lock()
		if end := e.Notice.WindowEnd; end.After(w.last) {
			w.last = end
		}
		w.mu.Unlock()
		if !recordedEnd(items, e) && !e.Notice.WindowStart.IsZero() {
			w.Clock.At(e.Notice.WindowStart, func() { w.begin(slice, zone, e.Notice) })
		}
	case events.NoticeOngoing:
		if !under {
			w.Must(w.API.BeginMaintenance(zone, slice, w.ongoingFor(items, e)))
		}
	case events.NoticeGone:
		if !under {
			w.Must(w.API.Withdraw(zone, slice))
		}
	}
}

// begin starts the announced maintenance, if the announcement still holds.
func (w *player) begin(slice, zone string, n events.Notice) {
	node := w.API.Node(zone, slice)
	if node == nil || node.UpcomingMaintenance == nil || node.UpcomingMaintenance.WindowStartTime != n.WindowStart.UTC().Format(time.RFC3339) {
		return
	}
	w.Must(w.API.BeginMaintenance(zone, slice, w.Maintenance()))
}

// recordedEnd reports whether the record tells how a notice went on.
func recordedEnd(items []item, e events.Entry) bool {
	return slices.ContainsFunc(items, func(o item) bool {
		return o.entry.Kind == events.KindNotice && o.entry.Subject.Zone == e.Subject.Zone && sameMachine(o.entry.Subject, e.Subject) &&
			o.entry.Time.After(e.Time) && (o.entry.Notice.Status != events.NoticePending || !o.entry.Notice.WindowStart.Equal(e.Notice.WindowStart))
	})
}

func sameMachine(a, b events.Subject) bool {
	ga, _, oka := a.Group()
	gb, _, okb := b.Group()
	if oka && okb {
		return ga == gb
	}
	return a.Node != "" && a.Node == b.Node
}

// ongoingFor is how long a maintenance took by the record, else as long as the scenario says.
func (w *player) ongoingFor(items []item, e events.Entry) time.Duration {
	for _, o := range items {
		if o.entry.Kind == events.KindNotice && o.entry.Notice.Status == events.NoticeGone && sameMachine(o.entry.Subject, e.Subject) && o.entry.Time.After(e.Time) {
			return o.entry.Time.Sub(e.Time)
		}
	}
	return w.Maintenance()
}

// calledBy carries out a recorded call of somebody else. Its own entries are in the record already.
func (w *player) calledBy(slice, zone string, c events.Call) {
	if c.Code != 0 || c.Last && !c.First || c.Principal == world.Ours(w.Project) {
		return
	}
	switch c.Method {
	case "DeleteNode", "DeleteQueuedResource":
		w.Hush("DeleteNode", slice)
		_ = w.API.OwnerDelete(zone, slice, c.Principal) //nolint:errcheck // where ours was faster, it is on its way out already
	case "StopNode":
		w.Hush("StopNode", slice)
		_ = w.API.Stop(zone, slice, c.Principal) //nolint:errcheck // likewise
	}
}

func (w *player) ownerCreates(slice, zone, principal string) {
	for _, c := range w.Fleet {
		if c.Name == slice {
			w.Hush("CreateNode", slice)
			w.Try(w.API.OwnerCreate(cloudtputest.NodeConfig{Zone: zone, Name: slice, Accelerator: c.Accelerator, Spot: c.Spot, Legacy: w.Order(c).Legacy}, principal))
		}
	}
}

// hangs is how long a scenario waits for what follows from a training that hangs: nothing is due meanwhile.
const hangs = 4 * time.Hour

// jobTakes is how long Kubernetes takes at most until it does no more about what happened to a Job.
const jobTakes = time.Hour

// act does what the scenario says that happens beside the record.
func (w *player) act(a world.Act) {
	tell := func(text, slice string) {
		w.Tell(world.Line{Time: w.Clock.Now(), Kind: world.Acted, Workload: w.WorkloadOf(slice), Incident: w.IncidentOf(w.WorkloadOf(slice)), Text: text, Simulated: true})
	}
	zoneOf := func(slice string) string {
		for _, z := range w.Zones() {
			if w.API.Node(z, slice) != nil {
				return z
			}
		}
		return w.fleetZone(slice)
	}
	switch {
	case a.Job != "":
		w.ActOnJob(a)
		w.KeepGoing(jobTakes)
	case a.Delete != "":
		tell("the owner deletes "+a.Delete, a.Delete)
		w.Try(w.API.OwnerDelete(zoneOf(a.Delete), a.Delete, a.By))
	case a.Stop != "":
		tell("the owner stops "+a.Stop, a.Stop)
		w.Try(w.API.Stop(zoneOf(a.Stop), a.Stop, a.By))
	case a.Stopped != "":
		tell(a.Stopped+" stops, and no log entry says why", a.Stopped)
		w.Try(w.API.SetState(zoneOf(a.Stopped), a.Stopped, "STOPPED"))
	case a.Hang != "":
		tell("the training on "+a.Hang+" stands still, and says nothing", a.Hang)
		w.Trainings[a.Hang].Hang()
		w.KeepGoing(hangs)
	case a.Mend != "":
		tell(a.By+" mends the training on "+a.Mend, a.Mend)
		w.Trainings[a.Mend].Loop(0, 0, false)
	case a.Create != "":
		tell("the owner creates "+a.Create, a.Create)
		for _, c := range w.Fleet {
			if c.Name == a.Create {
				w.Try(w.API.OwnerCreate(cloudtputest.NodeConfig{Zone: c.Zone, Name: c.Name, Accelerator: c.Accelerator, Spot: c.Spot, Legacy: w.Order(c).Legacy}, a.By))
			}
		}
	case a.Offer != "":
		tell("Google has room in "+placeWords(a.Offer)+" again", "")
		w.supply(a.Offer, cloudtputest.Unlimited)
	case a.Fill != "":
		tell("Google has no more room in "+placeWords(a.Fill), "")
		w.supply(a.Fill, 0)
	case a.Stick != nil:
		d := time.Duration(*a.Stick)
		tell("queued resources that get capacity stay in PROVISIONING for "+events.Span(d), "")
		w.API.StickQueuedResources(d)
		w.KeepGoing(d + time.Hour)
	case a.Quota != "":
		tell(fmt.Sprintf("the project may hold %d chips in %s", a.Chips, a.Quota), "")
		w.API.SetQuota(a.Quota, a.Chips)
	case a.Preempt != "":
		tell("Google takes "+a.Preempt+" back, and no log entry says so", a.Preempt)
		w.Try(w.API.Preempt(zoneOf(a.Preempt), a.Preempt))
	case a.Terminate != "":
		tell("Google ends "+a.Terminate+" for good, and no log entry says so", a.Terminate)
		w.Try(w.API.Terminate(zoneOf(a.Terminate), a.Terminate))
	case a.Withdraw != "":
		tell("Google withdraws the maintenance of "+a.Withdraw, a.Withdraw)
		w.Try(w.API.Withdraw(zoneOf(a.Withdraw), a.Withdraw))
	case a.Maintain != "":
		tell("Google begins maintenance of "+a.Maintain+" that nobody announced", a.Maintain)
		w.Try(w.API.Maintain(zoneOf(a.Maintain), a.Maintain, w.Maintenance()))
		w.KeepGoing(w.Maintenance() + time.Hour)
	case a.HideGuests:
		tell("the guest attributes of all machines are blocked", "")
		w.API.BlockGuestAttributes(true)
	case a.Approve != "":
		tell(a.By+" approves", a.Approve)
		w.Clock.Go(func() { w.Approve(w.WorkloadOf(a.Approve), a.By) })
	case a.Retry != "":
		tell(a.By+" says that it may be tried again", a.Retry)
		w.Clock.Go(func() {
			w.Says(w.WorkloadOf(a.Retry), evidence.Retried{Origin: evidence.Origin{ID: world.ApprovalID, Time: w.Clock.Now()}, Word: evidence.Word{By: a.By}})
		})
	}
}

// supply gives a place room for so many slices.
func (w *player) supply(place string, slices int) {
	at, err := cloudtputest.ParsePlace(place)
	w.Must(err)
	w.API.SetRoom(at, slices)
}

// placeWords is a place of a scenario for people: us-west4-a for Spot.
func placeWords(place string) string {
	zone, what, narrow := strings.Cut(place, " ")
	if !narrow {
		return zone
	}
	return zone + " for " + strings.NewReplacer("spot", "Spot", "on_demand", "on demand", "reserved", "reservations").Replace(what)
}

// sliceOf finds the slice that an entry speaks of, and where it is.
func (w *player) sliceOf(e events.Entry) (slice, zone string) {
	zone = e.Subject.Zone
	if e.Subject.Node != "" {
		return e.Subject.Node, zone
	}
	group, _, ok := e.Subject.Group()
	if !ok {
		return "", zone
	}
	for _, n := range w.API.Nodes(zone) {
		name := n.Name[strings.LastIndexByte(n.Name, '/')+1:]
		for _, h := range w.API.Hosts(zone, name) {
			if g, _, _ := events.WorkerGroup(h); g == group {
				return name, zone
			}
		}
	}
	for _, c := range w.Fleet { // a machine that is down has no hosts to ask
		if c.Workers == group && c.Zone == zone {
			return c.Name, zone
		}
	}
	return "", zone
}

func (w *player) fleetZone(slice string) string {
	for _, c := range w.Fleet {
		if c.Name == slice {
			return c.Zone
		}
	}
	return ""
}

// ignored tells of a recorded entry from which nothing follows, and why.
func (w *player) ignored(it item) {
	w.Tell(world.Line{
		Time: it.at, Kind: world.Ignored, EventType: string(it.entry.Kind), Subject: it.entry.Subject.String(), Text: it.Where(), Reason: it.entry.Noted(),
	})
}
