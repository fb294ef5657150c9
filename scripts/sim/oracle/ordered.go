package oracle

import (
	"slices"

	tpuapi "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
	"pitstop.internal/shared/topology"
)

// ruleOrdered is that a slice comes back as its owner ordered it.
const ruleOrdered = "as ordered"

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
