package events

import "maps"

// The topics of a deployment. Log sinks send to the first two, the scheduler to the third, the console to the last, and functions to the others.
const (
	TopicNotices    = "maintenance-notices"
	TopicLogs       = "log-events"
	TopicTicks      = "patrol-ticks"
	TopicCheckpoint = "checkpoint-requests"
	TopicRecovery   = "recovery-requests"
	TopicRecreate   = "recreate-requests"
	TopicUpdates    = "incident-updates"
	TopicOrders     = "operator-orders"
)

var topics = map[string]string{
	TypeMaintenanceNotified: TopicNotices,
	TypeCheckpointRequested: TopicCheckpoint,
	TypeRecoveryRequested:   TopicRecovery,
	TypeRecreateRequested:   TopicRecreate,
	TypeIncidentUpdated:     TopicUpdates,
	TypeOperatorOrdered:     TopicOrders,
}

// Topics is the topic of each type of event.
func Topics() map[string]string { return maps.Clone(topics) }
