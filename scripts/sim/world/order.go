package world

import (
	"fmt"

	"cloud.google.com/go/tpu/apiv1/tpupb"
	tpuapi "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider/cloudtpu/cloudtputest"
)

// Order is what the owner of a slice orders.
func (w *World) Order(c SliceConfig) cloudtputest.NodeConfig {
	n := cloudtputest.NodeConfig{
		Zone: c.Zone, Name: c.Name, Accelerator: c.Accelerator, Spot: c.Spot, Labels: map[string]string{},
		Metadata: map[string]string{"startup-script": "pitcrew run -- python3 train.py"},
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
