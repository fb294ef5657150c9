package oracle

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/bounds"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/view"
)

// deed is one thing that happened to a slice of the simulated world, or that somebody did or said about it. The judge knows them
// from the world itself, never from a document.
type deed struct {
	at   time.Time
	kind deedKind
	// by is the principal or the person; empty is Google, or the training.
	by   string
	zone string
	// place is where a life is, or was asked for.
	place view.Place
	life  events.Incarnation
	// cause is why a slice was lost or broken, label the policy that somebody named on it.
	cause events.Cause
	label string
	// text is how a creation was refused.
	text string
	// handling is the number of the one of ours that did it; 0 is none. What the handling read would fill the memory.
	handling int
}

type deedKind string

const (
	ordered    deedKind = "ordered"   // its creation was accepted
	removed    deedKind = "removed"   // its deletion was accepted
	halted     deedKind = "halted"    // a call to stop it was accepted
	labelled   deedKind = "labelled"  // its policy label was set
	usable     deedKind = "usable"    // it became READY and HEALTHY
	broken     deedKind = "broken"    // Google took it, or broke it
	stopped    deedKind = "stopped"   // it stopped
	gone       deedKind = "gone"      // nothing of it is left
	announced  deedKind = "announced" // maintenance of it was announced, or moved
	withdrawn  deedKind = "withdrawn" // its announcement was taken back, or its maintenance is over
	turnedOff  deedKind = "refused"   // its creation was refused, at once or late
	saidCancel deedKind = "cancelled" // a person took its incident over
	saidRetry  deedKind = "retried"   // a person orders a retry
)

// person reports whether somebody other than Pitstop and Google did it.
func (c *Checks) person(d deed) bool { return d.by != "" && d.by != world.Ours(c.Project) }

// remember keeps what an event of the simulated cloud tells of slices.
func (c *Checks) remember(e cloudtputest.Event) {
	d := deed{at: c.Clock.Now(), by: e.Principal, zone: e.Zone, place: e.Place(), life: e.Incarnation, cause: e.Cause, text: e.Error, handling: c.chaos.Current.Handling()}
	switch e.Kind {
	case cloudtputest.Supply:
		if delete(c.room, e.Zone); c.hasRoom(e.Zone) {
			c.room[e.Zone] = d.at
		}
		return
	case cloudtputest.Called, cloudtputest.Ended:
		c.rememberCall(e, d)
		return
	case cloudtputest.Ready:
		d.kind = usable
	case cloudtputest.Lost, cloudtputest.Unhealthy:
		d.kind = broken
	case cloudtputest.Stopped:
		d.kind = stopped
	case cloudtputest.Gone:
		d.kind = gone
		if life := c.lastOf(e.Node, broken); e.Cause != "" && !life.life.Same(e.Incarnation) {
			lost := d // it was taken without a trace
			lost.kind = broken
			c.past[e.Node] = append(c.past[e.Node], lost)
		}
	case cloudtputest.Noticed:
		if d.kind = announced; e.Notice == nil {
			d.kind = withdrawn
		}
	case cloudtputest.Created, cloudtputest.Started, cloudtputest.Deleting, cloudtputest.Signalled, cloudtputest.Metadata, cloudtputest.Queued:
		return
	}
	c.past[e.Node] = append(c.past[e.Node], d)
}

// hasRoom reports whether a zone has room for slices of every capacity and shape.
func (c *Checks) hasRoom(zone string) bool {
	return !slices.ContainsFunc(c.API.Scarce(), func(at view.Place) bool { return at.Zone == zone })
}

// rememberCall keeps a call that changes something, by whom it was.
func (c *Checks) rememberCall(e cloudtputest.Event, d deed) {
	switch e.Method {
	case "CreateNode", "CreateQueuedResource":
		if d.kind = ordered; e.Code != 0 {
			d.kind = turnedOff
		}
	case "DeleteNode", "DeleteQueuedResource":
		d.kind = removed
	case "StopNode":
		d.kind = halted
	case "UpdateNode":
		d.kind = labelled
	default:
		return
	}
	if e.Code != 0 && d.kind != turnedOff || e.Kind == cloudtputest.Ended && d.kind != turnedOff {
		return
	}
	of := []string{e.Node}
	if e.QueuedResource != "" {
		of = c.held(e.QueuedResource)
	}
	for _, slice := range of {
		if n := c.API.Node(e.Zone, slice); n != nil && d.kind == labelled {
			if d.label = n.Labels[events.LabelPolicy]; d.label == c.lastOf(slice, labelled).label {
				continue
			}
		}
		c.past[slice] = append(c.past[slice], d)
		if n := c.askedFor(e, slice); n != nil && d.kind == ordered && c.person(d) {
			named := d
			named.kind, named.label = labelled, n.Labels[events.LabelPolicy]
			c.past[slice] = append(c.past[slice], named)
		}
	}
}

// RefusedCall keeps a call of ours that was refused before it reached the simulated API.
func (c *Checks) RefusedCall(call cloudtputest.Request, f world.Refusal) {
	zone, rest, _ := strings.Cut(faults.ShortPath(call.Path), "/")
	_, name, one := strings.Cut(rest, "/")
	creates := call.Method == http.MethodPost && !one
	if creates {
		query, err := url.ParseQuery(call.Query)
		c.Must(err)
		name = cmp.Or(query.Get("nodeId"), query.Get("queuedResourceId"))
	}
	name, _, _ = strings.Cut(name, ":")
	if name == "" {
		return
	}
	for _, slice := range c.held(name) {
		r := c.record(c.Workload(slice))
		r.refused = append(r.refused, c.Clock.Now())
		if creates {
			c.asksIn(c.Workload(slice), slice, call.Place())
			c.past[slice] = append(c.past[slice], deed{at: c.Clock.Now(), kind: turnedOff, by: world.Ours(c.Project), zone: zone, place: call.Place(), text: f.Error()})
		}
	}
}

// said keeps a person's word about a workload.
func (c *Checks) said(workload, by string, kind deedKind) {
	for _, f := range c.slicesOf(workload) {
		c.past[f.Name] = append(c.past[f.Name], deed{at: c.Clock.Now(), kind: kind, by: by})
	}
	for _, g := range c.gangs(workload) {
		g.acts = append(g.acts, act{c.Clock.Now(), string(kind), by})
	}
}

// slicesOf are the slices of a workload, as their owner configured them.
func (c *Checks) slicesOf(workload string) []world.SliceConfig { return c.fleetOf[workload] }

// lastOf is the last deed of one of these kinds about a slice; a zero one where there is none.
func (c *Checks) lastOf(slice string, kinds ...deedKind) deed {
	for _, d := range slices.Backward(c.past[slice]) {
		if slices.Contains(kinds, d.kind) {
			return d
		}
	}
	return deed{}
}

// did reports whether one of the slices of a workload has a deed, since a moment, of which something holds.
func (c *Checks) did(workload string, since time.Time, holds func(deed) bool) bool {
	ofJob := func(a act) bool {
		return !a.at.Before(since) && holds(deed{at: a.at, by: a.by, kind: deedKind(a.what)})
	}
	if slices.ContainsFunc(c.gangs(workload), func(g *gang) bool { return slices.ContainsFunc(g.acts, ofJob) }) {
		return true
	}
	return slices.ContainsFunc(c.slicesOf(workload), func(f world.SliceConfig) bool {
		return slices.ContainsFunc(c.past[f.Name], func(d deed) bool { return !d.at.Before(since) && holds(d) })
	})
}

// maker is who ordered a life of a slice; its owner, where it was there before the simulation.
func (c *Checks) maker(slice string, life events.Incarnation) string {
	by := faults.Owner
	for _, d := range c.past[slice] {
		if d.kind == ordered && d.zone == life.Zone && !d.at.After(life.Created.Add(time.Second)) {
			by = d.by
		}
	}
	return by
}

// takenAway is when a slice's owner deleted it, if nobody has ordered it since or the order failed; zero otherwise.
func (c *Checks) takenAway(slice string) time.Time {
	d := c.lastOf(slice, ordered, removed, turnedOff)
	if d.kind == turnedOff && !c.person(d) { // ours, of whatever was there before
		d = c.lastOf(slice, ordered, removed)
	}
	if d.kind != ordered && c.person(d) {
		return d.at
	}
	return time.Time{}
}

// livesIn reports whether a slice can be used, or is being made, in some zone, and in which.
func (c *Checks) livesIn(slice string) (zone string, lives bool) {
	for _, z := range c.Zones() {
		if state, _ := c.API.State(z, slice); state == "READY" || state == "CREATING" {
			return z, true
		}
	}
	return "", false
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

// learnedWithin is how long a change may take to reach a handler: readings fail for a while, and a broken function does not
// read.
const learnedWithin = 30 * time.Minute

// learned is the longest time until a change of this moment is known.
func (c *Checks) learned() time.Duration {
	return learnedWithin + c.releases.Down(c.Clock.Now().Add(-6*time.Hour))
}

// labels are the policies that the slices of a workload have named since a moment, each alone; where several were named at once the
// workload is only watched, which the label of both together says.
func (c *Checks) labels(workload string, since time.Time) []string {
	since = since.Add(-c.learned())
	var all []string
	for _, f := range c.slicesOf(workload) {
		last := f.Policy
		for i, d := range c.past[f.Name] {
			if d.kind != labelled {
				continue
			}
			if known := !d.at.Before(since) || c.goneWithin(c.past[f.Name][i:], c.learned()); known && !slices.Contains(all, last) {
				all = append(all, last)
			}
			last = d.label
		}
		if !slices.Contains(all, last) {
			all = append(all, last)
		}
	}
	for _, g := range c.gangs(workload) {
		if !slices.Contains(all, g.Policy) {
			all = append(all, g.Policy)
		}
	}
	if len(all) > 1 {
		all = append(all, "several, so none")
	}
	return all
}

// goneWithin reports whether a slice was lost so soon after the first of these deeds that its change may be unread.
func (c *Checks) goneWithin(past []deed, d time.Duration) bool {
	return slices.ContainsFunc(past, func(o deed) bool {
		return (o.kind == broken || o.kind == gone || o.kind == removed) && o.at.Sub(past[0].at) < d
	})
}

// under reports whether something holds under one of the policies by which a workload may have been handled since a moment.
func (c *Checks) under(workload string, since time.Time, holds func(policy.Policy) bool) bool {
	within := since.Add(-10 * time.Minute) // a handler may act on its reading from then
	for i := len(c.policies) - 1; i >= 0; i-- {
		p := c.policies[i]
		for _, label := range c.labels(workload, since) {
			if p.fault == nil && holds(p.file.For(label, c.Opts.Ceiling())) || p.fault != nil && holds(policy.Policy{Unreadable: p.fault.Error()}) {
				return true
			}
		}
		if p.from.Before(within) {
			break
		}
	}
	return false
}

// lately is under, for a deed of this moment.
func (c *Checks) lately(workload string, holds func(policy.Policy) bool) bool {
	since := c.Clock.Now()
	if len(c.gangs(workload)) > 0 {
		since = since.Add(-c.learned()) // what a cluster shows is read once a minute, and may be unreadable
	}
	return c.under(workload, since, holds)
}

// unusable reports whether a slice is READY in no zone.
func (c *Checks) unusable(f world.SliceConfig) bool {
	return !slices.ContainsFunc(c.Zones(), func(zone string) bool {
		state, _ := c.API.State(zone, f.Name)
		return state == "READY"
	})
}

// whole reports whether all slices of a workload are usable, because a Multislice with one unusable slice cannot train.
// Slices that their owner took away do not count.
func (c *Checks) whole(workload string) bool {
	return !slices.ContainsFunc(c.slicesOf(workload), func(f world.SliceConfig) bool {
		return c.unusable(f) && c.takenAway(f.Name).IsZero()
	})
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

// blurred reports whether a recent entry about a workload had the time of a wrong clock, so that the order of events is
// unknown.
func (c *Checks) blurred(workload string) bool {
	return c.Clock.Now().Sub(c.record(workload).skewed) < bounds.Grace
}

// suspicion is Google's word that it suspects abuse on a life of a slice, as the simulated world has it.
type suspicion struct {
	// Since is when the symptom came, Ended when it went; zero while it lasts. A slice that is gone keeps its symptom.
	Since, Ended time.Time
}

// commits takes note of a checkpoint that is complete.
func (c *Checks) commits(directory, step string) {
	n, err := strconv.ParseInt(step, 10, 64)
	c.Must(err)
	c.committed[directory], c.savedTo[directory] = c.Clock.Now(), max(c.savedTo[directory], n)
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

// placer is who brought a slice to the zone of a life. A replacement of ours in that zone has moved nothing.
func (c *Checks) placer(f world.SliceConfig, life events.Incarnation) string {
	by, zone, last := faults.Owner, f.Zone, deed{}
	for _, d := range c.past[f.Name] {
		switch {
		case d.kind == ordered:
			last = d
		case d.kind != usable, d.life.Created.After(life.Created), last.zone != d.zone:
		case c.person(last), d.zone != zone:
			by, zone = last.by, d.zone
		}
	}
	return by
}
