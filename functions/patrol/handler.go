package patrol

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
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
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/trigger"
)

// Provider is the part of a provider that patrol reads in addition to slices.
type Provider interface {
	Zones(ctx context.Context, project string) ([]string, error)
	Operations(ctx context.Context, project, zone string, names ...string) ([]provider.Operation, error)
}

// AuditLog answers who ended a slice that is gone. Entries makes one call; whole says that no further entries exist.
type AuditLog interface {
	Entries(ctx context.Context, q cloudlog.Query) (entries [][]byte, whole bool, err error)
}

// Deps are the function's dependencies.
type Deps struct {
	Fleet    *fleet.Fleet
	Provider Provider
	Audit    AuditLog
	// Publisher carries notices to the function maintenance.
	Publisher ledger.Publisher
	// Canary writes the entry that must come back; nil writes none.
	Canary  Canary
	Project string
	// Ours are the principals that Pitstop itself acts as.
	Ours []string
	// Settings is the deployment's configuration, logged for its operator; nil logs none.
	Settings *ledger.Settings
	// Sleep waits while Pitstop's own operations run.
	Sleep func(ctx context.Context, d time.Duration) error
}

const (
	// staleAfter is the age from which a tick is acknowledged without work, because the next one is on its way.
	staleAfter = 2 * time.Minute
	// sweepEvery is how often all zones are listed and all workloads read. Other ticks list only the zones with known slices.
	sweepEvery = 15 * time.Minute
	// pollEvery and pollFor say how often and how long a tick follows Pitstop's own operations.
	pollEvery = 5 * time.Second
	pollFor   = 50 * time.Second
	// hostReads bounds the guest attribute reads of a tick.
	hostReads = 60
	// endedWithin is how far back the audit log is searched for the end of a slice, counted from when it was found gone. It is
	// long because a broken deployment looks at no slice.
	endedWithin = 6 * time.Hour
	// stoppedWithin bounds how far back the audit log is searched for who stopped a slice. The last reading that showed it
	// usable may be weeks old.
	stoppedWithin = 30 * 24 * time.Hour
)

// New returns the function, given the dependencies for each watched project.
func New(watched ...Deps) trigger.Handle { return trigger.Chain(decode, newHandler(watched).tick) }

// patrol remembers the last reading between two ticks, so that only changes go to the ledger. The memory only saves work: a
// new instance begins without it, and every sweep refreshes it. One instance runs one tick at a time.
type patrol struct {
	Deps
	ticking sync.Mutex // guards the fields below

	zones map[string]*zone
	swept time.Time
}

// zone is the last view of a zone: the slices listed, and the slices that the ledger knows there, with their workloads.
type zone struct {
	seen  map[string]sight
	known map[string]string
}

// sight holds the parts of a listed slice whose change matters.
type sight struct {
	state, spec, values, queued string
	workload, policy, directory string // what its owner says
	life                        events.Incarnation
	notice                      events.Notice
	hosts                       bool
}

func decode(ce cloudevents.Event) (time.Time, error) {
	if ce.Type() != trigger.TypeMessage {
		return time.Time{}, fault.Ignored(incident.CodeNotMine, "event type %s is not a tick", ce.Type())
	}
	return ce.Time(), nil
}

// tick reads the true state from the API, once a minute. A reading or a write that fails does not stop the others. The next
// tick does the rest, so a tick is never delivered again.
func (p *patrol) tick(ctx context.Context, at time.Time) error {
	start := p.Fleet.Now()
	if !at.IsZero() && start.Sub(at) > staleAfter {
		return fault.Ignored(incident.CodeOldTick, "the tick of %s is too old", at.UTC().Format(time.RFC3339))
	}
	if !p.ticking.TryLock() {
		return fault.Ignored(incident.CodeTicking, "another tick is still running")
	}
	defer p.ticking.Unlock()
	held := &ledger.Held{}
	t := &round{
		patrol: p, Fleet: p.Fleet.Holding(held), held: held, isDue: map[string]bool{}, hosts: hostReads, again: map[string]map[string]bool{},
	}
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
		_, err := t.Fleet.Advancer.Advance(ctx, id, incident.Ticked{Origin: incident.Origin{Rank: events.RankReading}})
		t.try("workload "+id, err)
	}
	t.try("parked entries", t.unpark(ctx))
	t.lookAgain(ctx)
	t.followOperations(ctx, start)
	// Patrol is missed by this line: an answer to Pub/Sub proves nothing, because what is ignored is acknowledged too.
	line := t.Fleet.Log
	if t.counted {
		line = line.With("open", t.open)
	}
	line.InfoContext(ctx, "tick done", "project", t.Project, "zones", t.listed, "workloads", len(t.due), "faults", len(t.faults),
		"seconds", t.Fleet.Now().Sub(start).Seconds())
	// The next tick repeats the failed work; this one is logged and acknowledged.
	return fault.Permanent(errors.Join(t.faults...))
}

// round is one running tick.
type round struct {
	*patrol
	// Fleet reads each document once: readings and ticks come again with the next tick. Evidence that comes only once goes
	// through take.
	Fleet *fleet.Fleet
	held  *ledger.Held
	// due are the workloads with work due, in order.
	due   []string
	isDue map[string]bool
	// again are the workloads with news that requires another look, by zone.
	again map[string]map[string]bool
	hosts int
	// hushed are the workloads whose training may hang, found by this tick's sweep.
	hushed []incident.Workload
	// listed is the number of zones that could be read.
	listed int
	// open are how many incidents were open at the beginning of the tick; counted says that all workloads at which something is due could
	// be read, without which the number would be too low.
	open    int
	counted bool
	faults  []error
	// sweeping says that all zones are listed.
	sweeping bool
}

// try records a fault and reports whether there was none.
func (t *round) try(what string, err error) bool {
	if err == nil || fault.IsIgnored(err) {
		return true
	}
	t.faults = append(t.faults, fmt.Errorf("%s: %w", what, err))
	return false
}

// zone returns the memory of a zone, which is listed from then on.
func (p *patrol) zone(name string) *zone {
	z, ok := p.zones[name]
	if !ok {
		z = &zone{seen: map[string]sight{}, known: map[string]string{}}
		p.zones[name] = z
	}
	return z
}

func (p *patrol) zoneNames() []string { return slices.Sorted(maps.Keys(p.zones)) }

// sweep finds all zones and workloads again, so that none is missed because the memory lacks it. Zones without a known slice
// are listed at this tick, then left alone until the next sweep.
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

// known reads every workload, and keeps the metadata values of its slices from expiring. It does not ask the API: a workload
// that waits for a month may need the values whatever the API says.
func (t *round) known(ctx context.Context) (known []incident.Workload, err error) {
	known, err = t.Fleet.Advancer.Workloads(ctx, t.owns)
	if known == nil {
		return nil, err
	}
	t.try("workloads", err)
	t.try("specifications of an earlier release", t.Fleet.MoveValues(ctx))
	for _, w := range known {
		t.try("metadata values of "+w.ID, t.Fleet.RenewValues(ctx, w))
	}
	return known, nil
}

// expect makes the tick look for a workload's slices in their zones.
func (t *round) expect(w incident.Workload) {
	for _, s := range w.Slices {
		if !s.IsReleased() || s.Condition != incident.Gone {
			t.zone(s.Zone).known[s.Name] = w.ID
		}
	}
	for _, effect := range w.Effects {
		if effect.Action != events.ActionCreate {
			continue
		}
		z := t.zone(effect.Zone)
		for _, s := range w.Slices {
			if effect.Concerns(s.Name) && z.known[s.Name] == "" { // the name may belong to another workload there
				z.known[s.Name] = w.ID
			}
		}
	}
}

// collect finds the workloads that have work due, and sends the requests left in their outboxes.
func (t *round) collect(ctx context.Context) error {
	due, err := t.Fleet.Advancer.Due(ctx, t.owns)
	t.counted = err == nil
	for _, w := range due {
		if w.Incident != nil {
			t.open++
		}
		t.addDue(w.ID)
		t.expect(w)
		if len(w.Outbox) > 0 {
			t.try("outbox of "+w.ID, t.Fleet.Advancer.Flush(ctx, w.ID))
		}
	}
	for _, w := range t.hushed {
		t.addDue(w.ID)
	}
	return err
}

func (t *round) addDue(id string) {
	if !t.isDue[id] {
		t.due, t.isDue[id] = append(t.due, id), true
	}
}

// list reads one zone and carries changes to the ledger. If workloads are named, it carries only their slices, changed or
// not.
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
			delete(z.seen, slice) // so that the next sight counts as a change
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
		return nil // an unlisted slice may still exist
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

// see carries a listed slice to the ledger if it changed, or if its workload is due.
func (t *round) see(ctx context.Context, z *zone, s provider.Slice) error {
	now := sight{
		state: s.State, spec: s.SpecHash, values: s.ValuesSum, queued: s.QueuedResource, life: s.Incarnation,
		workload: s.Labels[events.LabelWorkload], policy: s.Labels[events.LabelPolicy], directory: s.Directory,
	}
	if s.Notice != nil {
		now.notice = *s.Notice
	}
	before, seen := z.seen[s.Name]
	now.hosts = before.hosts && before.life.Same(now.life)
	unread := !now.hosts && s.Condition == incident.Ready && t.hosts > 0
	if seen && before == now && !unread && !t.isDue[z.known[s.Name]] {
		return nil
	}
	w, err := t.observe(ctx, z, s)
	if err != nil {
		return err
	}
	z.known[s.Name] = w.ID
	if known := w.Slice(s.Name); known != nil && known.Spec != s.SpecHash {
		now.spec = "" // its specification could not be saved; the next tick tries again
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
		z.seen[s.Name] = now // otherwise it counted as older than the last reading, and the next reading decides
	}
	return nil
}

// observe gives a reading to its workload, which is looked for only if the one that the tick expects does not know the slice.
func (t *round) observe(ctx context.Context, z *zone, s provider.Slice) (incident.Workload, error) {
	if id := z.known[s.Name]; id != "" {
		w, err := t.Fleet.Advancer.Workload(ctx, id)
		if err != nil {
			return w, err
		}
		if fleet.Knows(w, s) {
			return t.Fleet.Feed(ctx, w, s)
		}
	}
	return t.Fleet.Observe(ctx, s)
}

// notify sends the function maintenance a notice that the API shows, if the ledger lacks it or knows it only from a log
// entry.
func (t *round) notify(ctx context.Context, w incident.Workload, s provider.Slice) error {
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

// listen reads the crew's word on a slice with announced maintenance, while there is time, or with training that may hang.
func (t *round) listen(ctx context.Context, w incident.Workload, s provider.Slice) (incident.Workload, error) {
	if now := t.Fleet.Now(); t.hosts == 0 || !w.Unheard(s.Name, now) && !w.Suspect(s.Name, now) {
		return w, nil
	}
	t.hosts--
	return t.Fleet.Listen(ctx, w, s)
}

// missing concludes from a complete listing that a slice in the ledger is gone.
func (t *round) missing(ctx context.Context, z *zone, name, slice string, list provider.Listing) error {
	id := z.known[slice]
	if before, seen := z.seen[slice]; seen && before.state == goneState && !t.isDue[id] {
		return nil
	}
	w, err := t.Fleet.Advancer.Workload(ctx, id)
	if err != nil {
		return err
	}
	s := w.Slice(slice)
	if s == nil || s.IsReleased() && s.Condition == incident.Gone {
		delete(z.known, slice)
		return nil
	}
	if s.Legacy && !list.Legacy {
		return nil // no listing looked for it
	}
	gone := provider.Slice{Ref: fleet.Ref(w, *s), At: list.At, Condition: incident.Gone, State: goneState}
	gone.Zone = name
	if w, err = t.Fleet.Feed(ctx, w, gone); err != nil {
		return err
	}
	if known := w.Slice(slice); known != nil && known.Condition == incident.Gone {
		z.seen[slice] = sight{state: goneState} // otherwise it counted as older than the last reading, and the next reading decides
	}
	return nil
}

// goneState is the reading of a slice that a complete listing did not show.
const goneState = "gone"

// question is a question to the audit log about one slice.
type question struct {
	workload string
	slice    incident.Slot
	// since is the time from which the log is searched.
	since time.Time
}

// answers reports whether an entry may be about the question. A stop may have happened long before it was seen; an end may
// not.
func (q question) answers(e events.Entry) bool {
	if act, _ := e.Call.Act(); e.Kind == events.KindCall && act == events.ActStopped {
		return q.slice.Condition == incident.Stopped
	}
	return !e.Time.Before(q.slice.Since.Add(-endedWithin))
}

// names reports whether a subject has one of the names in the question.
func (q question) names(s events.Subject) bool {
	group, _, worker := s.Group()
	return s.Node != "" && s.Node == q.slice.Name || s.QueuedResource != "" && s.QueuedResource == q.slice.Group || worker && group == q.slice.Hosts
}

// ask asks the audit log about the slices of a zone that are gone or stopped without a known cause. It asks once a minute,
// before any other decision about them. A slice deleted by its owner is released, one that Google took is lost, and one that
// no entry claims to have stopped may be started. All entries about a workload are taken in together, so that no decision
// rests on half of them. Only a complete answer counts as proof that the log names nobody.
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
		q.Subjects = append(q.Subjects, cloudlog.Subject{Node: a.slice.Name, QueuedResource: a.slice.Group, Group: a.slice.Hosts})
		if a.since.Before(q.Since) {
			q.Since = a.since
		}
	}
	entries, whole, err := t.Audit.Entries(ctx, q)
	if err != nil {
		return err
	}
	var open string // why the log may still name somebody
	if !whole {
		open = "it has more entries than it returned"
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
				open = "it is not known whose " + e.Subject.String() + " is"
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
		e.Rank = events.RankReading // the log itself says so, not a message
		if evidence := fleet.Evidence(e, s, t.Ours); evidence != nil {
			told[s.Workload] = append(told[s.Workload], evidence)
		}
	}
	for _, a := range asked {
		switch {
		case now.Sub(a.slice.Since) < incident.Grace: // entries come late, so silence proves nothing yet
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

// unexplained are the questions about slices of a zone that are gone or stopped for an unknown reason. If there are more
// than fit in one call, each minute takes the next part.
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
		if !gone && !t.isDue[id] {
			continue
		}
		w, err := t.Fleet.Advancer.Workload(ctx, id)
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

// unpark handles the parked entries whose subject has become known.
func (t *round) unpark(ctx context.Context) error {
	zones, err := t.Fleet.Ledger.ParkedZones(ctx, t.Project, t.Fleet.Now(), t.sweeping)
	for _, z := range zones {
		t.try("parked entries of "+z.Zone, t.unparkIn(ctx, z))
	}
	return err
}

func (t *round) unparkIn(ctx context.Context, parked ledger.ParkedZone) error {
	name := parked.Zone
	var done []string
	var nameless []incident.Workload
	for _, entry := range parked.Waiting {
		e, err := events.Read(entry.Raw)
		if err != nil {
			done = append(done, entry.Key) // a parked entry could be read when it was parked; another release wrote this one
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
			e.Rank = events.RankUser // place and time attach it to the slice, but prove nothing
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
	if len(done) == 0 && !parked.Expired {
		return nil
	}
	expired, err := t.Fleet.Ledger.Unpark(ctx, t.Project, name, done, t.Fleet.Now())
	for _, entry := range expired {
		t.Fleet.Log.WarnContext(ctx, "parked entry matched no slice", "zone", name, "entry", entry.Key)
	}
	return err
}

// nameless are the workloads of a zone that have slices with unknown worker names.
func (t *round) nameless(ctx context.Context, name string) ([]incident.Workload, error) {
	found := []incident.Workload{}
	if z := t.zones[name]; z != nil {
		for _, id := range slices.Compact(slices.Sorted(maps.Values(z.known))) {
			w, err := t.Fleet.Advancer.Workload(ctx, id)
			if err != nil {
				return nil, err
			}
			if slices.ContainsFunc(w.Slices, func(s incident.Slot) bool { return s.Hosts == "" }) {
				found = append(found, w)
			}
		}
	}
	return found, nil
}

// take feeds log entries to a workload, and schedules another look if the workload wants one. Entries do not come again, so
// the document must be read after them.
func (t *round) take(ctx context.Context, id string, e ...incident.Evidence) error {
	t.held.Forget(id)
	w, changed, err := t.Fleet.Advancer.AdvanceChanged(ctx, id, e...)
	if err != nil || !changed || !w.NeedsLook() {
		return err
	}
	t.wantLook(w)
	return nil
}

// wantLook schedules another look for the slices of a workload in their zones.
func (t *round) wantLook(w incident.Workload) {
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
	for _, effect := range w.Effects {
		if effect.Action == events.ActionCreate {
			want(effect.Zone)
		}
	}
}

// lookAgain reads again the zones that need it. One page of a zone replaces one call for each slice.
func (t *round) lookAgain(ctx context.Context) {
	for _, name := range slices.Sorted(maps.Keys(t.again)) {
		t.try("zone "+name, t.list(ctx, name, t.again[name]))
	}
	clear(t.again)
}

// followOperations follows Pitstop's own operations for the rest of the tick, so that the next step need not wait for
// another tick. After each wait it reads the due workloads again, because other functions have written meanwhile.
func (t *round) followOperations(ctx context.Context, start time.Time) {
	for first := true; t.Fleet.Now().Sub(start) < pollFor; first = false {
		running := t.running(ctx, start, first)
		if len(running) == 0 || t.Sleep(ctx, pollEvery) != nil {
			return
		}
		for _, name := range slices.Sorted(maps.Keys(running)) {
			t.try("operations of "+name, t.follow(ctx, name, running[name]))
		}
		t.lookAgain(ctx)
	}
}

// running finds Pitstop's own operations by zone, each with its workload. At first the held documents say it, unless an answer
// may have come since they were read.
func (t *round) running(ctx context.Context, start time.Time, first bool) map[string]map[string]string {
	if first && t.counted {
		if found, awaited := operations(t.held.All(), start); len(found) > 0 || !awaited {
			return found
		}
	}
	due, err := t.Fleet.Advancer.Due(ctx, t.owns)
	t.try("due workloads", err)
	found, _ := operations(slices.Values(due), start)
	return found
}

// operations finds the operations that documents name. awaited says that a request sent before a time has no answer in them.
func operations(of iter.Seq[incident.Workload], sent time.Time) (found map[string]map[string]string, awaited bool) {
	found = map[string]map[string]string{}
	for w := range of {
		for _, effect := range w.Effects {
			if effect.Operation == "" {
				awaited = awaited || (effect.Stage() == incident.StageWanted || effect.Stage() == incident.StageBegun) && effect.Sent.Before(sent)
				continue
			}
			if found[effect.Zone] == nil {
				found[effect.Zone] = map[string]string{}
			}
			found[effect.Zone][effect.Operation] = w.ID
		}
	}
	return found, awaited
}

// follow reports ended operations to their workloads. An operation that the provider no longer knows has ended too, unless
// the list of operations was incomplete.
func (t *round) follow(ctx context.Context, name string, running map[string]string) error {
	names := slices.Sorted(maps.Keys(running))
	ops, unread := t.Provider.Operations(ctx, t.Project, name, names...)
	still := map[string]bool{}
	failures := map[string]*incident.Failure{}
	for _, op := range ops {
		still[op.Name] = !op.Done
		failures[op.Name] = op.Failure
	}
	for _, op := range names {
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
