package cloudtputest

import (
	"fmt"
	"strconv"
	"time"

	"pitstop.internal/events"
)

// SystemEntries are the entries of the system event log that an event leaves: one for each worker that lost its machine,
// and one for the node where the TPU API writes its own; one for each worker that maintenance is announced to, that it
// begins on, or that it is taken back from. They are in the order in which they are written.
// https://cloud.google.com/compute/docs/instances/monitor-plan-host-maintenance-event
func SystemEntries(e Event) [][]byte {
	var out [][]byte
	each := func(method, message string, metadata map[string]any) {
		for worker := range e.Workers {
			if e.Legacy {
				return // the machines are Google's own
			}
			out = append(out, systemEntry(e, worker, method, message, metadata))
		}
	}
	switch {
	case e.Kind == Lost && e.Cause == events.CausePreemption:
		each("compute.instances.preempted", "", nil)
		out = append(out, nodeEntry(e, "tpu.nodes.terminate", map[string]any{"terminateReason": "PREEMPTED"}))
	case e.Kind == Lost && (e.Cause == events.CauseTerminated || e.Cause == events.CauseEnd):
		out = append(out, nodeEntry(e, "tpu.nodes.terminate", nil))
	case e.Kind == Unhealthy && e.Cause == events.CauseHostError:
		// One host breaks, and with it the slice.
		if e.Legacy {
			return nil
		}
		out = append(out, systemEntry(e, int(e.Seq%uint64(max(e.Workers, 1))), "compute.instances.hostError", "", nil)) //nolint:gosec // a count of workers is small
	case e.Kind == Unhealthy && e.Cause == events.CauseMaintenance:
		each("compute.instances.terminateOnHostMaintenance", "", nil)
	case e.Kind == Noticed && e.Notice == nil:
		each(upcoming, "Maintenance window has completed for this instance. All maintenance notifications on the instance have been removed.", nil)
	case e.Kind == Noticed:
		message := "Maintenance is scheduled for this instance."
		if e.Notice.Status == events.NoticeOngoing {
			message = "Maintenance has started for this instance."
		}
		each(upcoming, message, announced(*e.Notice))
	}
	return out
}

const upcoming = "compute.instances.upcomingMaintenance"

// announced is the metadata of an entry that announces maintenance.
func announced(n events.Notice) map[string]any {
	m := map[string]any{"type": "SCHEDULED", "canReschedule": n.CanReschedule, "maintenanceStatus": "PENDING"}
	if n.Unscheduled {
		m["type"] = "UNSCHEDULED"
	}
	if n.Status == events.NoticeOngoing {
		m["maintenanceStatus"] = "ONGOING"
	}
	for key, t := range map[string]time.Time{
		"windowStartTime": n.WindowStart, "windowEndTime": n.WindowEnd, "latestWindowStartTime": n.LatestWindowStart,
	} {
		if !t.IsZero() {
			m[key] = stamp(t)
		}
	}
	return m
}

// systemEntry is an entry of Compute Engine about one worker.
func systemEntry(e Event, worker int, method, message string, metadata map[string]any) []byte {
	status := map[string]any{}
	if message != "" {
		status["message"] = message
	}
	payload := map[string]any{
		"@type":              "type.googleapis.com/google.cloud.audit.AuditLog",
		"status":             status,
		"authenticationInfo": map[string]any{"principalEmail": "system@google.com"},
		"requestMetadata":    map[string]any{"requestAttributes": map[string]any{}, "destinationAttributes": map[string]any{}},
		"serviceName":        "compute.googleapis.com",
		"methodName":         method,
		"resourceName":       fmt.Sprintf("projects/%s/zones/%s/instances/%s-w-%d", e.Project, e.Zone, e.Group, worker),
		"request":            map[string]any{"@type": "type.googleapis.com/" + method},
	}
	if metadata != nil {
		payload["metadata"] = metadata
	}
	entry := systemEvent(e, payload, method, strconv.Itoa(worker))
	entry["resource"] = map[string]any{"type": "gce_instance", "labels": map[string]any{
		"instance_id": strconv.FormatUint(e.Seq*4096+uint64(worker), 10), "project_id": e.Project, "zone": e.Zone, //nolint:gosec // a worker's number is not negative
	}}
	entry["operation"] = map[string]any{
		"id": "systemevent-" + e.Group + "-" + strconv.FormatUint(e.Seq, 10) + "-" + strconv.Itoa(worker), "producer": method, "first": true, "last": true,
	}
	return marshal(entry)
}

// nodeEntry is an entry of the TPU service about a whole node.
func nodeEntry(e Event, method string, metadata map[string]any) []byte {
	payload := map[string]any{
		"@type":              "type.googleapis.com/google.cloud.audit.AuditLog",
		"status":             map[string]any{},
		"authenticationInfo": map[string]any{"principalEmail": "system@google.com"},
		"serviceName":        service,
		"methodName":         method,
		"resourceName":       e.Resource(),
	}
	if metadata != nil {
		payload["metadata"] = metadata
	}
	entry := systemEvent(e, payload, method, "node")
	entry["resource"] = map[string]any{"type": "audited_resource", "labels": map[string]any{"service": service, "method": method, "project_id": e.Project}}
	return marshal(entry)
}

// systemEvent is what all entries of the system event log share.
func systemEvent(e Event, payload map[string]any, method, about string) map[string]any {
	at := e.Time.UTC()
	return map[string]any{
		"protoPayload":     payload,
		"insertId":         events.ID("insert", e.Resource(), strconv.FormatUint(e.Seq, 10), method, about)[:16],
		"timestamp":        at.Format(time.RFC3339Nano),
		"receiveTimestamp": at.Add(Received).Format(time.RFC3339Nano),
		"severity":         "INFO",
		"logName":          "projects/" + e.Project + "/logs/cloudaudit.googleapis.com%2Fsystem_event",
	}
}
