package terraform

import "testing"

// TestTheFirstApplyWaits: a deployment that lacks one of the waits, or waits for ever, is at fault.
func TestTheFirstApplyWaits(t *testing.T) {
	for name, breach := range map[string]func(d *Deployment) error{
		"functions are built before their grants": func(d *Deployment) error {
			return d.Root.Set("module.function", "depends_on", "[time_sleep.agents, google_project_iam_member.build]")
		},
		"functions are delivered to by an agent that does not exist": func(d *Deployment) error {
			return d.Root.Set("module.function", "depends_on", "[time_sleep.build]")
		},
		"alerts come before their metrics": func(d *Deployment) error {
			return d.Root.Set("google_monitoring_alert_policy.threshold", "depends_on", "[google_logging_metric.counter]")
		},
		"a topic comes before the key": func(d *Deployment) error {
			return d.Root.Set("google_pubsub_topic.main", "depends_on", "[time_sleep.apis]")
		},
		"the ledger comes before its API": func(d *Deployment) error {
			return d.Root.Set("google_firestore_database.main", "depends_on", "[google_project_service.main]")
		},
		"a tick comes before the grants": func(d *Deployment) error {
			return d.Root.Set("google_cloud_scheduler_job.tick", "depends_on", "[module.function]")
		},
		"a wait does not wait for its change": func(d *Deployment) error {
			return d.Root.Set("time_sleep.build", "depends_on", "[google_project_iam_member.build]")
		},
		"a wait without a bound": func(d *Deployment) error { return d.Root.Set("time_sleep.apis", "create_duration", `"1h"`) },
		"a wait of no time":      func(d *Deployment) error { return d.Root.Set("time_sleep.apis", "create_duration", `"0s"`) },
		"no wait":                func(d *Deployment) error { return d.Root.Remove("time_sleep.grants", "") },
		"a secret is read too early": func(d *Deployment) error {
			return d.Function.Set("google_cloudfunctions2_function.main", "depends_on", "[google_secret_manager_secret_iam_member.reader]")
		},
		"a writer is granted too early": func(d *Deployment) error {
			return d.Sink.Set("google_pubsub_topic_iam_binding.publishers", "depends_on", "[google_logging_project_sink.main]")
		},
	} {
		d, err := Parse("../../../../terraform")
		if err != nil {
			t.Fatal(err)
		}
		if err := breach(d); err != nil {
			t.Fatal(err)
		}
		if d.waits() == nil {
			t.Errorf("%s: no fault", name)
		}
	}
}
