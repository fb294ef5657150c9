package publish

import "pitstop.internal/events"

// Config is the part of a function's environment that names its topics, in full: projects/P/topics/T. Every function that
// decides may send any of the three requests and updates of an incident. The functions that act decide too, on the results.
type Config struct {
	CheckpointTopic string `env:"CHECKPOINT_TOPIC, required"`
	RecoveryTopic   string `env:"RECOVERY_TOPIC, required"`
	RecreateTopic   string `env:"RECREATE_TOPIC, required"`
	// UpdateTopic is the topic that notify reads; without one nobody is notified.
	UpdateTopic string `env:"UPDATE_TOPIC"`
}

// Topics routes the requests and the updates for people.
func (c Config) Topics() Topics {
	return Topics{
		events.TypeCheckpointRequested: c.CheckpointTopic,
		events.TypeRecoveryRequested:   c.RecoveryTopic,
		events.TypeRecreateRequested:   c.RecreateTopic,
		events.TypeIncidentUpdated:     c.UpdateTopic,
	}
}
