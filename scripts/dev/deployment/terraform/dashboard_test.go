package terraform

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// builtIn are the metrics of Google's own that the dashboard shows, with the labels that its charts may group by.
// https://cloud.google.com/monitoring/api/metrics_gcp
var builtIn = map[string][]string{
	"pubsub.googleapis.com/subscription/num_undelivered_messages":   {"resource.label.subscription_id"},
	"pubsub.googleapis.com/subscription/oldest_unacked_message_age": {"resource.label.subscription_id"},
	"run.googleapis.com/request_count":                              {"resource.label.service_name", "metric.label.response_code_class"},
}

var (
	filtered = regexp.MustCompile(`metric\.type="([^"]+)"`)
	queried  = regexp.MustCompile(`(logging_googleapis_com:\w+?)(_sum|_count|_bucket)?\{([^}]*)\}`)
	matched  = regexp.MustCompile(`(\w+)=`)
	grouped  = regexp.MustCompile(`by \((\w+)\)`)
)

// TestTheDashboardShowsWhatThereIs: each widget asks for metrics that the configuration makes or that Google has, and groups them by labels
// of those metrics.
func TestTheDashboardShowsWhatThereIs(t *testing.T) {
	d, err := Parse("../../../../terraform")
	must(t, err)
	for _, fault := range asked(t, d) {
		t.Error(fault)
	}

	for name, breach := range map[string]func() error{
		"a counter that is gone":       func() error { return d.Root.SetLocal("counters", `{}`) },
		"a distribution that is gone":  func() error { return d.Root.SetLocal("distributions", `{}`) },
		"a label that no metric has":   func() error { return d.Root.SetLocal("run_of", `"vm=\"x\""`) },
		"a metric that Google has not": func() error { return d.Root.SetLocal("run", `"metric.type=\"run.googleapis.com/nothing\""`) },
	} {
		if d, err = Parse("../../../../terraform"); err != nil {
			t.Fatal(err)
		}
		must(t, breach())
		if _, err := d.Widgets(); err == nil && asked(t, d) == nil {
			t.Errorf("%s: no fault", name)
		}
	}
}

// asked returns the faults of the dashboard's queries.
func asked(t *testing.T, d *Deployment) (faults []string) {
	t.Helper()
	metrics, err := d.Metrics()
	must(t, err)
	widgets, err := d.Widgets()
	must(t, err)
	labels := maps.Clone(builtIn)
	byQuery := map[string]LogMetric{}
	for _, m := range metrics {
		labels[m.Type] = []string{"metric.label." + m.Label, "resource.label.service_name"}
		byQuery[m.PromQL] = m
	}
	for _, w := range widgets {
		if len(w.Queries) == 0 {
			faults = append(faults, w.Title+": it shows nothing")
		}
		for _, q := range w.Queries {
			found := filtered.FindAllStringSubmatch(q.Filter.Filter, -1)
			for _, m := range found {
				known, ok := labels[m[1]]
				if !ok {
					faults = append(faults, w.Title+": there is no metric "+m[1])
				}
				for _, g := range q.Filter.Aggregation.Groups {
					if !slices.Contains(known, g) {
						faults = append(faults, w.Title+": "+m[1]+" has no "+g)
					}
				}
			}
			names := queried.FindAllStringSubmatch(q.PromQL, -1)
			for _, n := range names {
				m, ok := byQuery[n[1]]
				if !ok || (m.Field != "") != (n[2] != "") {
					faults = append(faults, w.Title+": there is no metric "+n[1]+n[2])
					continue
				}
				used := append(matched.FindAllStringSubmatch(n[3], -1), grouped.FindAllStringSubmatch(q.PromQL, -1)...)
				for _, l := range used {
					if !slices.Contains([]string{"monitored_resource", "le", m.Label}, l[1]) {
						faults = append(faults, w.Title+": "+n[1]+" has no label "+l[1])
					}
				}
			}
			if len(found)+len(names) == 0 {
				faults = append(faults, w.Title+": it asks for no metric")
			}
		}
	}
	return faults
}

// TestATrainingGrantsWhatTheTableSays: a training with a configuration of its own makes the grants that the installation would make.
func TestATrainingGrantsWhatTheTableSays(t *testing.T) {
	d, err := Parse("../../../../terraform")
	must(t, err)
	held := 0
	for _, allow := range [][]string{nil, {"request_checkpoint"}, {"restart"}, {"recreate"}, {"request_checkpoint", "restart", "recreate"}} {
		got, err := d.TrainingGrants(allow)
		must(t, err)
		for thing, on := range map[string]string{
			"bucket": "checkpoint_buckets", "service_account": "tpu_service_accounts", "subnetwork": "shared_vpc_subnetworks",
		} {
			want := d.wanted(on, allow)
			if !slices.Equal(got[thing], want) {
				t.Errorf("with %q allowed a training grants %q on its %s, want %q", allow, got[thing], strings.ReplaceAll(thing, "_", " "), want)
			}
			held += len(want)
		}
	}
	if held < 10 {
		t.Errorf("only %d grants were held", held)
	}
}
