package main

import (
	"pitstop.internal/events"
)

// filter is what one source of log entries lets through, and the topic that they travel on.
type filter struct{ topic, source, text string }

// The sources. A filter names the log it reads, so no line that a function writes on standard output passes any.
var filters = []filter{
	{"maintenance-notices", "notices", systemEvents + "\nAND protoPayload.methodName=" + notices},
	{"log-events", "system-events", systemEvents + "\nAND NOT protoPayload.methodName=" + notices},
	{"log-events", "api-calls", `log_id("cloudaudit.googleapis.com/activity")` + "\n" + `AND protoPayload.serviceName="tpu.googleapis.com"`},
	{"log-events", "crew", `log_id("` + events.CrewLog + `")`},
	{"log-events", "canary", `log_id("` + events.CanaryLog + `")` + "\n" + `AND resource.type="global"`},
}

const (
	systemEvents = `log_id("cloudaudit.googleapis.com/system_event")`
	notices      = `("compute.instances.upcomingMaintenance" OR "compute.instances.upcomingInfraMaintenance")`
)
