package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"pitstop.internal/events"
)

// edge is a topic with its publishers and the function that reacts to it.
type edge struct {
	topic      string
	publishers []string
	function   string
}

// The publishers that are no functions.
const (
	logging   = "Cloud Logging"
	scheduler = "Cloud Scheduler"
	operators = "the operators' console"
)

// topology lists every topic, in the order in which an incident reaches them.
func (m *module) topology() ([]edge, error) {
	functions, err := m.functions()
	if err != nil {
		return nil, err
	}
	publishers := map[string][]string{}
	for _, f := range filters {
		if !slices.Contains(publishers[f.topic], logging) {
			publishers[f.topic] = append(publishers[f.topic], logging)
		}
	}
	ticks, err := m.ticks()
	if err != nil {
		return nil, err
	}
	publishers[ticks] = append(publishers[ticks], scheduler)
	publishers[events.TopicOrders] = []string{operators}
	subscribers := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(functions)) {
		f := functions[name]
		if other := subscribers[f.Topic]; other != "" {
			return nil, fmt.Errorf("both %s and %s react to %s", other, name, f.Topic)
		}
		subscribers[f.Topic] = name
		for _, topic := range slices.Compact(slices.Sorted(maps.Values(f.PublishesTo))) {
			publishers[topic] = append(publishers[topic], name)
		}
	}
	var edges []edge
	for topic := range publishers {
		if subscribers[topic] == "" {
			return nil, fmt.Errorf("nobody reacts to %s, on which %s publishes", topic, strings.Join(publishers[topic], ", "))
		}
	}
	for topic, name := range subscribers {
		if len(publishers[topic]) == 0 {
			return nil, fmt.Errorf("nobody publishes on %s, to which %s reacts", topic, name)
		}
		edges = append(edges, edge{topic, publishers[topic], name})
	}
	// Topics with a publisher outside Pitstop come first.
	slices.SortFunc(edges, func(a, b edge) int {
		if from := len(a.publishers) - len(b.publishers); from != 0 {
			return from
		}
		return strings.Compare(a.topic, b.topic)
	})
	return edges, nil
}

// ticks is the topic that the scheduler publishes on, as local.ticks names it.
func (m *module) ticks() (string, error) {
	v, err := m.Local("ticks")
	if err != nil {
		return "", err
	}
	return v.AsString(), nil
}

// picture draws the topology.
func (m *module) picture() (string, error) {
	edges, err := m.topology()
	if err != nil {
		return "", err
	}
	functions, err := m.functions()
	if err != nil {
		return "", err
	}
	var from, topics, to int
	who := make([]string, len(edges))
	for i, e := range edges {
		who[i] = strings.Join(e.publishers, ", ")
		others := slices.DeleteFunc(slices.Sorted(maps.Keys(functions)), func(name string) bool { return slices.Contains(e.publishers, name) })
		switch len(others) {
		case 0:
			who[i] = "every function"
		case 1:
			who[i] = "every function but " + others[0]
		}
		from, topics, to = max(from, len(who[i])), max(topics, len(e.topic)), max(to, len(e.function))
	}
	var b strings.Builder
	b.WriteString("```text\n")
	for i, e := range edges {
		fmt.Fprintf(&b, " %s ──► %s──► %s\n", pad(who[i], from, ' '), pad(e.topic+" ", topics+1, '─'), e.function)
	}
	b.WriteString("```")
	return b.String(), nil
}

func pad(s string, to int, with rune) string {
	return s + strings.Repeat(string(with), to-utf8.RuneCountInString(s))
}
