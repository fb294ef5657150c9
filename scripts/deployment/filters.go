package main

import "pitstop.internal/events"

// filter is what one source of log entries lets through, and the topic that they travel on.
type filter struct{ topic, source, text string }

// filters are those of the sources that are deployed, as the package that reads their entries has them.
var filters = func() (deployed []filter) {
	for _, s := range events.Sinks() {
		if s.Topic != "" {
			deployed = append(deployed, filter{s.Topic, s.Name, s.Filter})
		}
	}
	return deployed
}()
