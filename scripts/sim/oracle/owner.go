package oracle

import (
	"encoding/json"
	"reflect"
	"regexp"
	"slices"
	"time"

	tpuapi "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/topology"
)

// Rule 2, the owner's word: what its owner has deleted or stopped is left alone. A slice comes back as its owner ordered it. Nothing is done
// that no policy allows, while everything is paused, or where Google suspects abuse.

// ownersWord checks a call against what its owner has said and done.
func (c *Checks) ownersWord(k call) {
	if k.Method != "UpdateNode" && c.suspected(k.read.Life, k.read.At) { // asking for a save harms nobody
		c.Violated("owner's word", k.doc.ID, "%s of %s, and Google suspects abuse on it since %s", k.Method, k.slice, c.abuse[k.read.Life].Since.UTC().Format(time.DateTime))
	}
	switch k.Method {
	case "DeleteNode", "DeleteQueuedResource":
		if k.read.State == "STOPPED" || k.read.State == "STOPPING" {
			if c.trainedIn(k) {
				c.Violated("2 owner", k.doc.ID, "%s was deleted, and it was only stopped", k.slice)
			}
		}
	case "StartNode":
		if d := c.lastOf(k.slice, halted, usable); d.kind == halted {
			c.Violated("2 owner", k.doc.ID, "%s was started, and %s had stopped it", k.slice, d.by)
		}
		if !c.lately(k.doc.ID, func(p policy.Policy) bool { return p.Switches.StartStopped != policy.No }) {
			c.Violated("owner's word", k.doc.ID, "%s was started, and start_stopped is no", k.slice)
		}
	case "CreateNode", "CreateQueuedResource":
		if in := c.asSeen(k.by, k.doc).Open; in != nil && in.Clears {
			c.Violated("2 owner", k.doc.ID, "%s was created in %s for %s, which only cleans up", k.slice, k.Zone, in.ID)
		}
		c.notTaken(k)
		home, region := c.home(k.slice), topology.Region(k.Zone)
		there := topology.Region(c.lastOf(k.slice, usable).zone) == region
		if home != "" && home != region && !there && !c.lately(k.doc.ID, func(p policy.Policy) bool { return p.OtherRegions }) {
			c.Violated("owner's word", k.doc.ID, "%s was created in %s, and its checkpoints are in %s", k.slice, k.Zone, home)
		}
		c.shaped(k.Event, k.doc.ID, k.slice)
		c.asOrdered(k.Event, k.doc.ID, k.slice)
	}
}

// notTaken checks that nothing is created which its owner has deleted, as soon as that can be known: of what they delete in quiet times the audit
// log tells before anything else is done.
func (c *Checks) notTaken(k call) {
	last := c.lastOf(k.slice, ordered, removed)
	if last.kind != removed || !c.person(last) || c.lastOf(k.slice, ordered, usable).zone != last.zone {
		return // or it was deleted where it had moved away
	}
	at := last.at
	known := at.Add(c.learned())
	if quiet := c.record(k.doc.ID).taken[k.slice]; !quiet.Before(at) {
		known = at
	}
	if k.by.Began.After(known) {
		c.Violated("2 owner", k.doc.ID, "%s was created in %s after its owner had deleted it at %s", k.slice, k.Zone, at.UTC().Format(time.DateTime))
	}
}

// allowed checks that the owner of a workload allows a call, and that nothing is paused.
func (c *Checks) allowed(inst *world.Instance, workload, what string, allows func(policy.Policy) bool) {
	switch {
	case inst.PauseRead.IsZero():
		c.Violated("owner's word", workload, "%s without a look at the pause", what)
	case inst.Pause.Holds(c.Clock.Now()): // it may have ended since it was read
		c.Violated("owner's word", workload, "%s though everything is paused", what)
	}
	if !c.lately(workload, allows) {
		c.Violated("owner's word", workload, "%s, and no policy allows it", what)
	}
}

// unsuspected checks that nothing but a save is asked for while Google suspects abuse on any slice of a workload.
func (c *Checks) unsuspected(e cloudtputest.Event, inst *world.Instance, workload string) {
	for _, f := range c.slicesOf(workload) {
		for _, life := range c.livesOf(f.Name) {
			known := later(inst.Read[world.Place{Zone: life.Zone, Slice: f.Name}].At, c.Clock.Now().Add(-c.learned()))
			settled := func() bool { // a person has said so since
				return c.did(workload, c.abuse[life.ID].Since, func(d deed) bool { return d.kind == saidRetry })
			}
			if e.Method != "UpdateNode" && c.suspected(life.ID, known) && c.takenAway(f.Name).IsZero() && !settled() {
				c.Violated("owner's word", workload, "%s of %s though Google suspects abuse on %s", e.Method, e.Resource(), f.Name)
			}
		}
	}
}

// ruleOrdered is that a slice comes back as its owner ordered it.
const ruleOrdered = "as ordered"

// askedInVain is what the simulated API says to an order that names something of another zone or region.
var askedInVain = regexp.MustCompile(`is not in (zone|region) |^Reservation not found: `)

// asOrdered checks what a creation of ours asks for against what the slice's owner ordered: labels, start-up script, network, disks,
// reservation and autocheckpoint.
func (c *Checks) asOrdered(e cloudtputest.Event, workload, slice string) {
	i := slices.IndexFunc(c.Fleet, func(f world.SliceConfig) bool { return f.Name == slice })
	n := c.askedFor(e, slice)
	if i < 0 || n == nil {
		return
	}
	f := c.Fleet[i]
	differs := func(what, is, want string) {
		c.Violated(ruleOrdered, workload, "%s was created in %s with %s %q, and its owner ordered %q", slice, e.Zone, what, is, want)
	}
	if is := n.Labels[events.LabelWorkload]; is != f.WorkloadName() {
		differs("the workload", is, f.WorkloadName())
	}
	if is, known := n.Labels[events.LabelPolicy], c.labels(workload, c.Clock.Now()); !slices.Contains(known, is) {
		differs("the policy", is, known[0])
	} else if is != c.lastOf(slice, labelled).label {
		// The owner's later settings were lost with the life on which they made them.
		c.past[slice] = append(c.past[slice], deed{at: c.Clock.Now(), kind: labelled, by: e.Principal, zone: e.Zone, label: is})
	}
	want := c.Order(f)
	if is := n.Metadata["startup-script"]; !f.Legacy && is != want.Metadata["startup-script"] {
		differs("the start-up script", is, want.Metadata["startup-script"])
	}
	if !f.Legacy && n.AutocheckpointEnabled != f.Autocheckpoint {
		c.Violated(ruleOrdered, workload, "%s was created in %s with autocheckpoint %v", slice, e.Zone, n.AutocheckpointEnabled)
	}
	if is := subnetworkOf(n); f.Subnetwork != "" && is != f.Subnetwork && (is == "" || topology.Region(e.Zone) == topology.Region(f.Zone)) {
		differs("the subnetwork", is, f.Subnetwork)
	}
	if f.Disk != "" && !slices.ContainsFunc(n.DataDisks, func(d *tpuapi.AttachedDisk) bool { return d.SourceDisk == f.Disk }) {
		differs("no disk", "", f.Disk)
	}
	if s := n.SchedulingConfig; f.Reservation != "" && (s == nil || s.ReservationName != f.Reservation) {
		differs("no reservation", "", f.Reservation)
	}
}

func subnetworkOf(n *tpuapi.Node) string {
	if n.NetworkConfig == nil {
		return ""
	}
	return n.NetworkConfig.Subnetwork
}

// askedFor is the node that a call has created, or that its queued resource is to bring.
func (c *Checks) askedFor(e cloudtputest.Event, slice string) *tpuapi.Node {
	if e.QueuedResource == "" {
		return c.API.Node(e.Zone, slice)
	}
	q := c.API.QueuedResource(e.Zone, e.QueuedResource)
	if q == nil || q.Tpu == nil {
		return nil
	}
	for _, spec := range q.Tpu.NodeSpec {
		if spec.NodeId == slice && spec.Node != nil {
			return spec.Node
		}
	}
	return nil
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
	if !others && !c.lately(workload, func(p policy.Policy) bool {
		return slices.ContainsFunc(p.Places, func(a policy.Alternative) bool { return a.Accelerator == is })
	}) {
		c.Violated("owner's word", workload, "%s was created as %s, which neither its order nor the policy names", slice, is)
	}
	if batch := c.Fleet[i].Batch; batch == 0 || batch%int64(c.devices(i)) != 0 {
		c.Violated("owner's word", workload, "%s was created as %s, and its batch of %d fits no device", slice, is, batch)
	}
}

// devices are those that the batch of a slice of the fleet is for.
func (c *Checks) devices(i int) int {
	s, err := topology.Parse(c.Fleet[i].Accelerator)
	c.Must(err)
	return s.Devices()
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

// givenUp reports whether the owner of a slice has given up the life that a document knows, or somebody else has taken it
// over: they deleted it or ordered another one, or their own order failed.
func (c *Checks) givenUp(w seen, s seenSlice) bool {
	since := s.Life.Created
	if in := w.Open; in != nil && in.Opened.Before(since) {
		since = in.Opened
	}
	for _, d := range c.past[s.Name] {
		if c.person(d) && (d.kind == removed || d.kind == ordered) && !d.at.Before(since) {
			return true
		}
	}
	return c.maker(s.Name, s.Life) != world.Ours(c.Project) && c.lastOf(s.Name, ordered).at.After(c.lastOf(s.Name, usable).at) ||
		c.blurred(w.ID)
}

// isOwners reports whether a life of a Job belongs to its owner: they have deleted it or made the Job anew since it began, or they had deleted
// the life that Pitstop replaced. Word of that may come late.
func (g *gang) isOwners(life events.Incarnation) bool {
	theirs := false // the owner has deleted the last life
	for _, a := range g.acts {
		if a.what != world.Deleted && a.what != world.Applied {
			continue
		}
		made := a.what == world.Applied && a.at.Truncate(time.Second).Equal(life.Created) // the API gives seconds
		switch owner := a.by == faults.Owner; {
		case owner && a.at.After(life.Created), made && theirs:
			return true
		case a.what == world.Applied:
			theirs = false
		case owner:
			theirs = true
		}
	}
	return false
}

// jobOrdered checks the specification of a new Job or JobSet against its owner's.
func (c *Checks) jobOrdered(workload string, cl *world.Cluster, j world.JobConfig, sent []byte) {
	var made map[string]any
	if err := json.Unmarshal(sent, &made); err != nil {
		c.Violated(ruleOrdered, workload, "%s was created from what is no object: %v", j.Name, err)
		return
	}
	want, err := cl.Ordered(j)
	if err != nil || !holdsAll(want["spec"], made["spec"]) {
		c.Violated(ruleOrdered, workload, "%s was created with another specification than its owner's: %v", j.Name, err)
	}
}

// holdsAll reports whether everything in one value is in another one too. The API server adds defaults to what an owner orders.
func holdsAll(a, b any) bool {
	switch a := a.(type) {
	case map[string]any:
		other, ok := b.(map[string]any)
		for key, value := range a {
			ok = ok && holdsAll(value, other[key])
		}
		return ok
	case []any:
		other, ok := b.([]any)
		return ok && slices.EqualFunc(a, other, holdsAll)
	}
	return reflect.DeepEqual(a, b)
}
