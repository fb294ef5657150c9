package main

import "pitstop.internal/events"

// filter is the filter of one source of log entries, with the topic that the entries travel on.
type filter struct{ topic, source, text string }

// filters are the filters of the deployed sources, from the package that reads their entries. They are templates, because only Terraform
// knows the names of the accounts and of the controllers.
var filters = func() (deployed []filter) {
	for _, s := range events.Sinks(events.Accounts{Ours: []string{"${our_principals}"}, Controllers: []string{"${controllers}"}}) {
		if s.Topic != "" {
			deployed = append(deployed, filter{s.Topic, s.Name, s.Filter})
		}
	}
	return deployed
}()
