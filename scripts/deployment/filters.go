package main

import "pitstop.internal/events"

// filter is what one source of log entries lets through, and the topic that they travel on.
type filter struct{ topic, source, text string }

// filters are those of the sources that are deployed, as the package that reads their entries has them. They are templates: Terraform
// knows what the accounts are called.
var filters = func() (deployed []filter) {
	for _, s := range events.Sinks("${our_principals}") {
		if s.Topic != "" {
			deployed = append(deployed, filter{s.Topic, s.Name, s.Filter})
		}
	}
	return deployed
}()
