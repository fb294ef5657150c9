package patrol

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	cloudevents "github.com/cloudevents/sdk-go/v2"

	"pitstop.internal/events"
	"pitstop.internal/shared/cloudlog"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/tpu"
	"pitstop.internal/shared/trigger"
)

// Provider is the part of a provider that patrol reads beside its slices.
type Provider interface {
	Zones(ctx context.Context, project string) ([]string, error)
	Operations(ctx context.Context, project, zone string) ([]tpu.Operation, error)
}

// AuditLog is asked who ended a slice of which nothing is there any more. Entries makes one call; whole says that there are no
// other entries than these.
type AuditLog interface {
	Entries(ctx context.Context, q cloudlog.Query) (entries [][]byte, whole bool, err error)
}

// Deps is what the function works with.
type Deps struct {
	Fleet    *fleet.Fleet
	Provider Provider
	Audit    AuditLog
	// Publisher carries notices to the function maintenance.
	Publisher ledger.Publisher
	// Canary writes the entry that has to come back; nil writes none.
	Canary  Canary
	Project string
	// Ours are the principals that Pitstop itself acts as.
	Ours []string
	// Settings are what the deployment is configured with, for whoever operates it; nil says nothing.
	Settings *ledger.Settings
	// Sleep waits while operations of ours run.
	Sleep func(ctx context.Context, d time.Duration) error
}

const (
	// staleAfter is the age from which a tick is acknowledged unread: the next one is on its way.
	staleAfter = 2 * time.Minute
	// sweepEvery is how often all zones are listed and all workloads read, not only those where something is known.
	sweepEvery = 15 * time.Minute
	// pollEvery and pollFor say how operations of ours are followed within a tick.
	pollEvery = 5 * time.Second
	pollFor   = 50 * time.Second
	// hostReads bounds the guest attribute reads of a tick.
	hostReads = 60
	// endedWithin is how long before it was found gone the end of a slice is looked for in the audit log: nobody may have looked
	// at it for as long as a deployment is broken.
	endedWithin = 6 * time.Hour
	// stoppedWithin bounds how far back it is looked who stopped one: by the last reading that showed it usable it may be weeks.
	stoppedWithin = 30 * 24 * time.Hour
)

// New returns the function over its dependencies, those of each watched project.
func New(watched ...Deps) trigger.Handle { return trigger.Chain(decode, newHandler(watched).tick) }

// patrol remembers between two ticks what it saw last, so that only what has changed is carried to the ledger. The
// memory is a saving and no truth: a new instance begins without, and every sweep refreshes it. One instance runs one
// tick at a time.
type patrol struct {
	Deps
	ticking sync.Mutex // guards what follows

	zones map[string]*zone
	swept time.Time
}

// zone is what was seen in a zone last: the slices listed, and those that the ledger knows there, with their workloads.
type zone struct {
	seen  map[string]sight
	known map[string]string
}

// sight is what of a listed slice makes a difference.
type sight struct {
	state, spec, values, queued, says string
	life                              events.Incarnation
	notice                            events.Notice
	hosts                             bool
}

func decode(ce cloudevents.Event) (time.Time, error) {
	if ce.Type() != trigger.TypeMessage {
		return time.Time{}, fault.Ignored(incident.CodeNotMine, "the event type %s is no tick", ce.Type())
	}
	return ce.Time(), nil
}

// tick reads the truth from the API, once a minute. One thing that cannot be read or stored does not keep it from the
// others; what is left undone is done at the next tick, so a tick is never delivered again.
func (p *patrol) tick(ctx context.Context, at time.Time) error {
	start := p.Fleet.Now()
	if !at.IsZero() && start.Sub(at) > staleAfter {
		return fault.Ignored(incident.CodeOldTick, "the tick of %s is old", at.UTC().Format(time.RFC3339))
	}
	if !p.ticking.TryLock() {
		return fault.Ignored(incident.CodeTicking, "another tick is under way")
	}
	defer p.ticking.Unlock()
	t := &round{patrol: p, hosts: hostReads, read: map[string]incident.Workload{}, again: map[string]map[string]bool{}}
	if start.Sub(p.swept) >= sweepEvery && t.try("sweep", t.sweep(ctx)) {
		p.swept, t.sweeping = start, true
		t.try("canary", t.canary(ctx))
		if t.Settings != nil {
			t.try("settings", t.Fleet.Ledger.SaveSettings(ctx, *t.Settings))
		}
	}
	t.try("due workloads", t.collect(ctx))
	for _, name := range t.zoneNames() {
		if t.try("zone "+name, t.list(ctx, name, nil)) {
			t.listed++
		}
	}
	for _, name := range t.zoneNames() {
		t.try("audit log of "+name, t.ask(ctx, name))
	}
	t.lookAgain(ctx)
	for _, id := range t.due {
		_, err := p.Fleet.Advancer.Advance(ctx, id, incident.Ticked{Origin: incident.Origin{Rank: events.RankReading}})
		t.try("workload "+id, err)
	}
	for _, name := range t.zoneNames() {
		t.try("parked entries of "+name, t.unpark(ctx, name))
	}
	t.lookAgain(ctx)
	t.followOperations(ctx, start)
	// Patrol is missed by this line: an answer to Pub/Sub proves nothing, because what is ignored is acknowledged too.
	t.Fleet.Log.InfoContext(ctx, "tick done", "project", t.Project, "zones", t.listed, "workloads", len(t.due), "faults", len(t.faults),
		"seconds", t.Fleet.Now().Sub(start).Seconds())
	// The next tick takes up what failed; this one is logged and acknowledged.
	return fault.Permanent(errors.Join(t.faults...))
}

// round is one tick under way.
type round struct {
	*patrol
	due []string
	// read are the workloads at which something is due, as they were at the beginning of the tick.
	read map[string]incident.Workload
	// again are the workloads of which something was learned that wants another look, by the zone where.
	again map[string]map[string]bool
	hosts int
	// hushed are the workloads whose training may hang, as the sweep of this tick found.
	hushed []incident.Workload
	// listed are how many zones could be read.
	listed int
	faults []error
	// sweeping says that all zones are listed.
	sweeping bool
}

// try notes a fault and reports whether there was none.
func (t *round) try(what string, err error) bool {
	if err == nil || fault.IsIgnored(err) {
		return true
	}
	t.faults = append(t.faults, fmt.Errorf("%s: %w", what, err))
	return false
}

// zone returns what is remembered of a zone, which is listed from then on.
func (p *patrol) zone(name string) *zone {
	z, ok := p.zones[name]
	if !ok {
		z = &zone{seen: map[string]sight{}, known: map[string]string{}}
		p.zones[name] = z
	}
	return z
}

func (p *patrol) zoneNames() []string { return slices.Sorted(maps.Keys(p.zones)) }

// sweep finds all zones and all workloads anew, so that nothing is missed for being forgotten. Zones that offer nothing
// known are listed at this tick and then left alone until the next sweep.
func (t *round) sweep(ctx context.Context) error {
	known, unlisted := t.known(ctx)
	names, err := t.Provider.Zones(ctx, t.Project)
	if err = cmp.Or(err, unlisted); err != nil {
		return err
	}
	t.zones = map[string]*zone{}
	for _, name := range names {
		t.zone(name)
	}
	for _, w := range known {
		t.expect(w)
		if w.Hushed(t.Fleet.Now()) {
			t.hushed = append(t.hushed, w)
		}
	}
	return nil
}

// known reads every workload, and keeps the values of the metadata of its slices. It asks the API for nothing: what waits for a month may
// need them, whatever the API says.
func (t *round) known(ctx context.Context) (known []incident.Workload, err error) {
	ids, err := t.Fleet.Ledger.All(ctx)
	if err != nil {
		return nil, err
	}
	t.try("specifications of an earlier release", t.Fleet.MoveValues(ctx))
	for _, id := range ids {
		if !t.owns(id) {
			continue
		}
		if w, _, err := t.Fleet.Ledger.Workload(ctx, id); t.try("workload "+id, err) {
			t.try("metadata values of "+id, t.Fleet.RenewValues(ctx, w))
			known = append(known, w)
		}
	}
	return known, nil
}

// expect has a workload's slices looked for where they have to be.
func (t *round) expect(w incident.Workload) {
	for _, s := range w.Slices {
		if !s.IsReleased() || s.Condition != incident.Gone {
			t.zone(s.Zone).known[s.Name] = w.ID
		}
	}
	if w.Incident == nil {
		return
	}
	for _, task := range w.Incident.Tasks {
		if task.Action != events.ActionCreate {
			continue
		}
		z := t.zone(task.Zone)
		for _, s := range w.Slices {
			if task.Concerns(s.Name) && z.known[s.Name] == "" { // the name may be another workload's there
				z.known[s.Name] = w.ID
			}
		}
	}
}

// collect finds the workloads at which something is due, and sends what their outboxes were left full of.
func (t *round) collect(ctx context.Context) error {
	due, err := t.Fleet.Ledger.Due(ctx, t.Fleet.Now())
	for _, w := range due {
		if !t.owns(w.ID) {
			continue
		}
		t.due = append(t.due, w.ID)
		t.expect(w)
		t.read[w.ID] = w
		if len(w.Outbox) > 0 {
			t.try("outbox of "+w.ID, t.Fleet.Advancer.Flush(ctx, w.ID))
		}
	}
	for _, w := range t.hushed {
		if !slices.Contains(t.due, w.ID) {
			t.due = append(t.due, w.ID)
			t.read[w.ID] = w
		}
	}
	return err
}

// list reads one zone and carries what has changed to the ledger; of wanted workloads, where some are named, what is there of
// them, and nothing else.
func (t *round) list(ctx context.Context, name string, wanted map[string]bool) error {
	list, err := t.Fleet.List(ctx, t.Project, name)
	if err != nil {
		return err
	}
	if list.Unread != nil {
		t.try("legacy nodes of zone "+name, list.Unread)
	}
	z := t.zone(name)
	asked := func(slice string) bool {
		if wanted[z.known[slice]] {
			delete(z.seen, slice) // so that it is news
		}
		return wanted == nil || wanted[z.known[slice]]
	}
	listed := map[string]bool{}
	for _, s := range list.Slices {
		if listed[s.Name] = true; !asked(s.Name) {
			continue
		}
		t.try("slice "+s.Ref.String(), t.see(ctx, z, s))
	}
	if t.sweeping && wanted == nil {
		t.janitor(ctx, z, name, list)
	}
	if list.Partial {
		return nil // what is not listed may be there all the same
	}
	for _, slice := range slices.Sorted(maps.Keys(z.known)) {
		if !listed[slice] && asked(slice) {
			t.try("slice "+slice, t.missing(ctx, z, name, slice, list))
		}
	}
	if len(z.known) == 0 {
		delete(t.zones, name) // until the next sweep
	}
	return nil
}

// see carries a listed slice to the ledger if anything about it is new, or if its workload is due.
func (t *round) see(ctx context.Context, z *zone, s tpu.Slice) error {
	now := sight{
		state: s.State, spec: s.SpecHash, values: s.ValuesSum, queued: s.QueuedResource, life: s.Incarnation,
		says: s.Labels[events.LabelWorkload] + " " + s.Labels[events.LabelPolicy] + " " + s.Directory,
	}
	if s.Notice != nil {
		now.notice = *s.Notice
	}
	before, seen := z.seen[s.Name]
	now.hosts = before.hosts && before.life.Same(now.life)
	unread := !now.hosts && s.Condition == incident.Ready && t.hosts > 0
	if seen && before == now && !unread && !slices.Contains(t.due, z.known[s.Name]) {
		return nil
	}
	w, err := t.observe(ctx, z, s)
	if err != nil {
		return err
	}
	z.known[s.Name] = w.ID
	if known := w.Slice(s.Name); known != nil && known.Spec != s.SpecHash {
		now.spec = "" // its order could not be kept, and is tried again at the next tick
	}
	if known := w.Slice(s.Name); unread && known != nil {
		if !known.Named() {
			t.hosts--
			if w, err = t.Fleet.MapHosts(ctx, w, *known); err != nil {
				return err
			}
		}
		now.hosts = w.Slice(s.Name).Named()
	}
	if err := t.notify(ctx, w, s); err != nil {
		return err
	}
	if w, err = t.listen(ctx, w, s); err != nil {
		return err
	}
	if known := w.Slice(s.Name); known != nil && known.State == s.State {
		z.seen[s.Name] = now // else it was taken for an older reading than the last, and the next one tells
	}
	return nil
}

// observe gives a reading to its workload, which need not be looked for where it has just been read.
func (t *round) observe(ctx context.Context, z *zone, s tpu.Slice) (incident.Workload, error) {
	w, due := t.read[z.known[s.Name]]
	if known := w.Slice(s.Name); due && known != nil && known.Zone == s.Zone && known.Incarnation.Same(s.Incarnation) {
		return t.Fleet.Feed(ctx, w, s)
	}
	return t.Fleet.Observe(ctx, s)
}

// notify tells the function maintenance of a notice that the API shows and the ledger does not have, or not from the
// API.
func (t *round) notify(ctx context.Context, w incident.Workload, s tpu.Slice) error {
	if s.Notice == nil {
		return nil
	}
	if n := w.Notice(s.Name); n != nil && n.InAPI && n.Tells(*s.Notice) {
		return nil
	}
	now := t.Fleet.Now()
	env, err := events.Wrap(events.MaintenanceNotified{
		Schema: events.Schema, Project: t.Project, Node: s.Name, Incarnation: s.Incarnation, Notice: *s.Notice, Read: s.At,
	}, t.Fleet.Advancer.Source, t.Fleet.Advancer.Cause(ctx), "", now)
	if err != nil {
		return err
	}
	return t.Publisher.Publish(ctx, env)
}

// listen listens for the crew of a slice with announced maintenance, while there is time, or whose training may hang.
func (t *round) listen(ctx context.Context, w incident.Workload, s tpu.Slice) (incident.Workload, error) {
	if now := t.Fleet.Now(); t.hosts == 0 || !w.Unheard(s.Name, now) && !w.Suspect(s.Name, now) {
		return w, nil
	}
	t.hosts--
	return t.Fleet.Listen(ctx, w, s)
}

// missing takes it from a complete listing that a slice which the ledger knows is gone.
func (t *round) missing(ctx context.Context, z *zone, name, slice string, list tpu.Listing) error {
	id := z.known[slice]
	if before, seen := z.seen[slice]; seen && before.state == goneState && !slices.Contains(t.due, id) {
		return nil
	}
	w, _, err := t.Fleet.Ledger.Workload(ctx, id)
	if err != nil {
		return err
	}
	s := w.Slice(slice)
	if s == nil || s.IsReleased() && s.Condition == incident.Gone {
		delete(z.known, slice)
		return nil
	}
	if s.Legacy && !list.Legacy {
		return nil // nobody looked for it
	}
	gone := tpu.Slice{Ref: fleet.Ref(w, *s), At: list.At, Condition: incident.Gone, State: goneState}
	gone.Zone = name
	if w, err = t.Fleet.Feed(ctx, w, gone); err != nil {
		return err
	}
	if known := w.Slice(slice); known != nil && known.Condition == incident.Gone {
		z.seen[slice] = sight{state: goneState} // else it was taken for an older reading than the last, and the next one tells
	}
	return nil
}

// goneState marks a slice that a complete listing did not show.
const goneState = "gone"

// question is what the audit log is asked about one slice.
type question struct {
	workload string
	slice    incident.Slice
	// since is from when on what ended or stopped it is looked for.
	since time.Time
}

// answers reports whether an entry may be about what is asked. Who stopped a slice may have done so long before it was seen,
// what ended it not.
func (q question) answers(e events.Entry) bool {
	if stop := e.Kind == events.KindCall && e.Call.Method == "StopNode"; stop {
		return q.slice.Condition == incident.Stopped
	}
	return !e.Time.Before(q.slice.Since.Add(-endedWithin))
}

// names reports whether a subject bears a name of what is asked.
func (q question) names(s events.Subject) bool {
	group, _, worker := s.Group()
	return s.Node != "" && s.Node == q.slice.Name || s.QueuedResource != "" && s.QueuedResource == q.slice.QueuedResource || worker && group == q.slice.Group
}

// ask asks the audit log about the slices of a zone that are gone or stopped without a word, once a minute and before
// anything else is decided on them: what their owner deleted is released, what Google took is lost, and what nobody says to
// have stopped may be started. All that the log tells of a workload is taken in together, so that nothing is done on half of
// it; and that it names nobody is taken from an answer alone that leaves nothing open.
func (t *round) ask(ctx context.Context, name string) error {
	asked, err := t.unexplained(ctx, name)
	if err != nil || len(asked) == 0 {
		return err
	}
	now := t.Fleet.Now()
	if mine, err := t.Fleet.Ledger.Ask(ctx, t.Project, name, now); err != nil || !mine {
		return err
	}
	q := cloudlog.Query{Project: t.Project, Zone: name, Since: now}
	about := map[string]question{}
	for _, a := range asked {
		about[a.slice.Name] = a
		q.Subjects = append(q.Subjects, cloudlog.Subject{Node: a.slice.Name, QueuedResource: a.slice.QueuedResource, Group: a.slice.Group})
		if a.since.Before(q.Since) {
			q.Since = a.since
		}
	}
	entries, whole, err := t.Audit.Entries(ctx, q)
	if err != nil {
		return err
	}
	var open string // why somebody may have been named all the same
	if !whole {
		open = "it has more than it told"
	}
	told := map[string][]incident.Evidence{}
	for _, raw := range entries {
		e, err := events.Read(raw)
		if err != nil {
			open = err.Error()
			continue
		}
		if e.Ignored != "" || e.Kind != events.KindLoss && e.Kind != events.KindCall {
			continue
		}
		s, err := t.Fleet.Known(ctx, e.Subject)
		if errors.Is(err, ledger.ErrNotFound) {
			if slices.ContainsFunc(asked, func(a question) bool { return a.names(e.Subject) }) {
				open = "nobody knows whose " + e.Subject.String() + " is"
			}
			continue
		}
		if err != nil {
			return err
		}
		a, ok := about[s.Slice]
		if !ok || a.workload != s.Workload || !a.answers(e) {
			continue
		}
		e.Rank = events.RankReading // the log itself said so, and no message
		if evidence := fleet.Evidence(e, s, t.Ours); evidence != nil {
			told[s.Workload] = append(told[s.Workload], evidence)
		}
	}
	for _, a := range asked {
		switch {
		case now.Sub(a.slice.Since) < incident.Grace: // entries come late: silence means nothing yet
		case open != "":
			t.Fleet.Log.WarnContext(ctx, "audit log unclear", "workload", a.workload, "slice", a.slice.Name, "zone", name, "why", open)
		default:
			told[a.workload] = append(told[a.workload], incident.Unsaid{
				Origin: incident.Origin{Time: now, Rank: events.RankReading}, Slice: a.slice.Name, Incarnation: a.slice.Incarnation,
			})
		}
	}
	for _, id := range slices.Sorted(maps.Keys(told)) {
		t.try("workload "+id, t.take(ctx, id, told[id]...))
	}
	return nil
}

// unexplained are the questions about the slices of a zone of which nobody has said why they are gone, or who stopped them.
// Where there are more than fit, each minute has its turn.
func (t *round) unexplained(ctx context.Context, name string) ([]question, error) {
	z := t.zones[name]
	if z == nil {
		return nil, nil
	}
	now := t.Fleet.Now()
	var asked []question
	for _, slice := range slices.Sorted(maps.Keys(z.known)) {
		id := z.known[slice]
		gone := z.seen[slice].state == goneState
		if !gone && !slices.Contains(t.due, id) {
			continue
		}
		w, _, err := t.Fleet.Ledger.Workload(ctx, id)
		if err != nil {
			return nil, err
		}
		s := w.Slice(slice)
		if s == nil || s.Zone != name {
			continue
		}
		if gone && w.Unexplained(slice, now) {
			asked = append(asked, question{w.ID, *s, s.Since.Add(-endedWithin)})
		}
		if used, ask := w.Unaccounted(slice, now); ask {
			if longest := now.Add(-stoppedWithin); used.Before(longest) {
				used = longest
			}
			asked = append(asked, question{w.ID, *s, used})
		}
	}
	if turns := (len(asked) + cloudlog.MaxSubjects - 1) / cloudlog.MaxSubjects; turns > 1 {
		from := int(now.Unix()/60) % turns * cloudlog.MaxSubjects
		asked = asked[from:min(from+cloudlog.MaxSubjects, len(asked))]
	}
	return asked, nil
}

// unpark takes up the entries of a zone for which a subject has become known.
func (t *round) unpark(ctx context.Context, name string) error {
	now := t.Fleet.Now()
	parked, err := t.Fleet.Ledger.ParkedIn(ctx, t.Project, name, now)
	if err != nil {
		return err
	}
	var done []string
	var nameless []incident.Workload
	for _, entry := range parked {
		e, err := events.Read(entry.Raw)
		if err != nil {
			done = append(done, entry.Key) // what was parked could be read; another release wrote it
			continue
		}
		s, err := t.Fleet.Known(ctx, e.Subject)
		if errors.Is(err, ledger.ErrNotFound) {
			if nameless == nil {
				if nameless, err = t.nameless(ctx, name); err != nil {
					return err
				}
			}
			var found bool
			if s, found = fleet.Broken(nameless, name, e); !found {
				continue
			}
			e.Rank = events.RankUser // its place and its time name it, and prove nothing
			err = nil
		}
		if err != nil {
			return err
		}
		if evidence := fleet.Evidence(e, s, t.Ours); evidence != nil {
			if err := t.take(ctx, s.Workload, evidence); err != nil {
				return err
			}
		}
		done = append(done, entry.Key)
	}
	expired, err := t.Fleet.Ledger.Unpark(ctx, t.Project, name, done, now)
	for _, entry := range expired {
		t.Fleet.Log.WarnContext(ctx, "parked entry concerned nobody", "zone", name, "entry", entry.Key)
	}
	return err
}

// nameless are the workloads of a zone that have slices whose workers' names nobody knows.
func (t *round) nameless(ctx context.Context, name string) ([]incident.Workload, error) {
	found := []incident.Workload{}
	if z := t.zones[name]; z != nil {
		for _, id := range slices.Compact(slices.Sorted(maps.Values(z.known))) {
			w, _, err := t.Fleet.Ledger.Workload(ctx, id)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(w.Slices, func(s incident.Slice) bool { return s.Group == "" }) {
				found = append(found, w)
			}
		}
	}
	return found, nil
}

// take feeds evidence to a workload and has it looked at again if that is wanted then.
func (t *round) take(ctx context.Context, id string, e ...incident.Evidence) error {
	w, changed, err := t.Fleet.Advancer.AdvanceChanged(ctx, id, e...)
	if err != nil || !changed || !w.NeedsLook() {
		return err
	}
	t.wantLook(w)
	return nil
}

// wantLook has the slices of a workload looked for again where they have to be.
func (t *round) wantLook(w incident.Workload) {
	delete(t.read, w.ID) // it is not as it was any more
	t.expect(w)
	want := func(zone string) {
		if t.again[zone] == nil {
			t.again[zone] = map[string]bool{}
		}
		t.again[zone][w.ID] = true
	}
	for _, s := range w.Slices {
		want(s.Zone)
	}
	if w.Incident == nil {
		return
	}
	for _, task := range w.Incident.Tasks {
		if task.Action == events.ActionCreate {
			want(task.Zone)
		}
	}
}

// lookAgain reads the zones again in which that is wanted: a page holds what would be a call for each slice.
func (t *round) lookAgain(ctx context.Context) {
	for _, name := range slices.Sorted(maps.Keys(t.again)) {
		t.try("zone "+name, t.list(ctx, name, t.again[name]))
	}
	clear(t.again)
}

// followOperations follows the operations of ours for the rest of the tick, so that what comes after them need not wait
// for the next one.
func (t *round) followOperations(ctx context.Context, start time.Time) {
	for t.Fleet.Now().Sub(start) < pollFor {
		running := t.running(ctx)
		if len(running) == 0 || t.Sleep(ctx, pollEvery) != nil {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(running)) {
			t.try("operations of "+name, t.follow(ctx, name, running[name]))
		}
		t.lookAgain(ctx)
	}
}

// running finds the operations of ours by the zone they run in, each with its workload.
func (t *round) running(ctx context.Context) map[string]map[string]string {
	found := map[string]map[string]string{}
	due, err := t.Fleet.Ledger.Due(ctx, t.Fleet.Now())
	t.try("due workloads", err)
	for _, w := range due {
		if !t.owns(w.ID) || w.Incident == nil {
			continue
		}
		for _, task := range w.Incident.Tasks {
			if task.Operation == "" {
				continue
			}
			if found[task.Zone] == nil {
				found[task.Zone] = map[string]string{}
			}
			found[task.Zone][task.Operation] = w.ID
		}
	}
	return found
}

// follow tells the workloads whose operations have ended. One that the provider does not know any more has ended too, unless not all
// that it knows could be read.
func (t *round) follow(ctx context.Context, name string, running map[string]string) error {
	ops, unread := t.Provider.Operations(ctx, t.Project, name)
	still := map[string]bool{}
	failures := map[string]*incident.Failure{}
	for _, op := range ops {
		still[op.Name] = !op.Done
		failures[op.Name] = op.Failure
	}
	for _, op := range slices.Sorted(maps.Keys(running)) {
		if _, known := failures[op]; still[op] || unread != nil && !known {
			continue
		}
		w, err := t.Fleet.Advancer.Advance(ctx, running[op], incident.Ended{
			Origin: incident.Origin{Time: t.Fleet.Now(), Rank: events.RankReading}, Operation: op, Failure: failures[op],
		})
		if err != nil {
			return err
		}
		if w.Incident == nil {
			continue
		}
		t.wantLook(w)
	}
	return unread
}
