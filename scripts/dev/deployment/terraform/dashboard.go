package terraform

import (
	"encoding/json"
	"fmt"
	"slices"

	ctyjson "github.com/zclconf/go-cty/cty/json"
)

// LogMetric is a metric from log lines, as a deployment without a prefix has it.
type LogMetric struct {
	// Type is the metric's full name, PromQL the same name in a query.
	Type, PromQL string
	// Filter selects the lines. A distribution reads Field from each of them.
	Filter, Field string
	Label         string
}

// Metrics evaluates the metrics from log lines, by their keys.
func (d *Deployment) Metrics() (map[string]LogMetric, error) {
	base := d.under(nil)
	found := map[string]LogMetric{}
	for _, address := range []string{"google_logging_metric.counter", "google_logging_metric.distribution"} {
		instances, b, err := base.made(address)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", address, err)
		}
		for _, s := range instances {
			each := s.given["each"]
			key := each.GetAttr("key").AsString()
			filter, err := s.value(b.Body.Attributes["filter"].Expr)
			if err != nil {
				return nil, fmt.Errorf("%s[%q]: %w", address, key, err)
			}
			m := LogMetric{Filter: filter.AsString(), Label: each.GetAttr("value").GetAttr("label").AsString()}
			if v := each.GetAttr("value"); v.Type().HasAttribute("field") {
				m.Field = v.GetAttr("field").AsString()
			}
			for local, name := range map[string]*string{"metric": &m.Type, "promql": &m.PromQL} {
				all, err := s.local(local)
				if err != nil {
					return nil, err
				}
				*name = all.GetAttr(key).AsString()
			}
			found[key] = m
		}
	}
	return found, nil
}

// Widget is one tile of the dashboard.
type Widget struct {
	Title string
	// Queries are filters with their aggregation, or PromQL.
	Queries []Query
}

// Query is one line of a chart, or the number of a scorecard.
type Query struct {
	PromQL string `json:"prometheusQuery"`
	Filter struct {
		Filter      string `json:"filter"`
		Aggregation struct {
			Groups []string `json:"groupByFields"`
		} `json:"aggregation"`
	} `json:"timeSeriesFilter"`
}

// Widgets evaluates the dashboard.
func (d *Deployment) Widgets() ([]Widget, error) {
	tiles, err := d.under(nil).local("tiles")
	if err != nil {
		return nil, err
	}
	raw, err := ctyjson.Marshal(tiles, tiles.Type())
	if err != nil {
		return nil, err
	}
	type asks struct {
		Query *Query `json:"timeSeriesQuery"`
	}
	var all []struct {
		Widget struct {
			Title     string `json:"title"`
			Scorecard asks   `json:"scorecard"`
			Chart     struct {
				DataSets []asks `json:"dataSets"`
			} `json:"xyChart"`
		} `json:"widget"`
	}
	if err := json.Unmarshal(raw, &all); err != nil {
		return nil, err
	}
	var widgets []Widget
	for _, t := range all {
		w := Widget{Title: t.Widget.Title}
		for _, a := range append(slices.Clip(t.Widget.Chart.DataSets), t.Widget.Scorecard) {
			if a.Query != nil {
				w.Queries = append(w.Queries, *a.Query)
			}
		}
		widgets = append(widgets, w)
	}
	return widgets, nil
}

// TrainingGrants are the grants that a training with a configuration of its own makes: by the thing that they are on, as "account has
// role", with the condition.
func (d *Deployment) TrainingGrants(allow []string) (map[string][]string, error) {
	v, err := d.under(allow).local("training_grants")
	if err != nil {
		return nil, err
	}
	found := map[string][]string{}
	for thing, grants := range v.AsValueMap() {
		for _, g := range grants.AsValueSlice() {
			condition := ""
			if g.Type().HasAttribute("condition") {
				condition = g.GetAttr("condition").AsString()
			}
			found[thing] = append(found[thing], grant(g.GetAttr("member").AsString(), g.GetAttr("role").AsString(), condition))
		}
		slices.Sort(found[thing])
	}
	return found, nil
}
