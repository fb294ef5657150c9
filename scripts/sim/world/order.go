package world

import (
	"fmt"
	"strconv"
	"time"

	"cloud.google.com/go/tpu/apiv1/tpupb"
	tpuapi "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// Provide puts the fleet into a simulated API, as if it had always been there. A slice that does not say when it was created was
// created three days before the present moment.
func (s Scenario) Provide(a *cloudtputest.API, present time.Time) error {
	for _, c := range s.Fleet {
		if err := s.provide(a, c, present); err != nil {
			return fmt.Errorf("scenario: slice %s: %w", c.Name, err)
		}
	}
	return nil
}

// provide puts a slice there. A queued resource comes with the first of its slices, and brings the others.
func (s Scenario) provide(a *cloudtputest.API, c SliceConfig, present time.Time) error {
	if c.QueuedResource == "" {
		_, err := a.AddNode(s.nodeOf(c, present))
		return err
	}
	q := cloudtputest.QueuedConfig{Zone: c.Zone, Name: c.QueuedResource, Spot: c.Spot}
	if c.RunsFor > 0 {
		q.Order = &tpuapi.QueuedResource{ProvisioningModel: "FLEX_START", RunDuration: &tpuapi.RunDuration{
			MaxRunDuration: strconv.FormatFloat(time.Duration(c.RunsFor).Seconds(), 'f', -1, 64) + "s",
		}}
	}
	for _, o := range s.Fleet {
		if o.Zone == c.Zone && o.QueuedResource == c.QueuedResource {
			if len(q.Nodes) == 0 && o.Name != c.Name {
				return nil // it came with that one
			}
			q.Nodes = append(q.Nodes, s.nodeOf(o, present))
		}
	}
	return a.AddQueuedResource(q)
}

func (s Scenario) nodeOf(c SliceConfig, present time.Time) cloudtputest.NodeConfig {
	node := s.Order(c)
	node.Created, node.ID, node.Group = c.Created, c.ID, c.Workers
	if node.Created.IsZero() {
		node.Created = present.Add(-72 * time.Hour)
	}
	return node
}

// Order is what the owner of a slice orders.
func (Scenario) Order(c SliceConfig) cloudtputest.NodeConfig {
	n := cloudtputest.NodeConfig{
		Zone: c.Zone, Name: c.Name, Accelerator: c.Accelerator, Spot: c.Spot, Labels: map[string]string{},
		Metadata: map[string]string{"startup-script": "pitcrew run -- python3 train.py"},
	}
	if c.QueuedResource == "" {
		n.RunsFor = time.Duration(c.RunsFor)
	}
	if c.Batch > 0 {
		n.Metadata["startup-script"] = fmt.Sprintf("pitcrew run --scale-from=%s --global-batch=%d --steps=100000 -- python3 train.py", c.Accelerator, c.Batch)
	}
	if c.Policy != "" {
		n.Labels[events.LabelPolicy] = c.Policy
	}
	if c.Workload != "" {
		n.Labels[events.LabelWorkload] = c.Workload
	}
	if c.Reservation != "" || c.Disk != "" || c.Subnetwork != "" || c.Autocheckpoint {
		n.Order = &tpuapi.Node{RuntimeVersion: "v2-alpha-tpuv5-lite", AutocheckpointEnabled: c.Autocheckpoint}
	}
	if c.Reservation != "" {
		n.Order.SchedulingConfig = &tpuapi.SchedulingConfig{Reserved: true, ReservationName: c.Reservation}
	}
	if c.Disk != "" {
		n.Order.DataDisks = []*tpuapi.AttachedDisk{{SourceDisk: c.Disk, Mode: "READ_ONLY"}}
	}
	if c.Subnetwork != "" {
		n.Order.NetworkConfig = &tpuapi.NetworkConfig{Network: "tpus", Subnetwork: c.Subnetwork}
	}
	if c.Legacy {
		n.Metadata, n.Legacy = nil, &tpupb.Node{TensorflowVersion: "2.12.0", Network: "tpus"}
		return n
	}
	if c.Directory != "" {
		n.Metadata[events.MetadataCheckpointDir] = c.Directory
	}
	return n
}
