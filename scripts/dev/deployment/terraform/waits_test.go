package terraform

import "testing"

// TestTheFirstApplyWaits: a deployment is at fault that makes something before the APIs answer, or whose waits have no end or no use.
func TestTheFirstApplyWaits(t *testing.T) {
	for name, breach := range map[string]func(d *Deployment) error{
		"the ledger comes before its API": func(d *Deployment) error {
			return d.Root.Set("google_firestore_database.main", "depends_on", "[google_project_service.main]")
		},
		"a wait without a bound": func(d *Deployment) error { return d.Root.Set("time_sleep.apis", "create_duration", `"1h"`) },
		"a wait of no time":      func(d *Deployment) error { return d.Root.Set("time_sleep.apis", "create_duration", `"0s"`) },
		"nothing waits": func(d *Deployment) error {
			return d.Function.Set("google_cloudfunctions2_function.main", "depends_on", "[google_secret_manager_secret_iam_member.reader]")
		},
	} {
		d, err := Parse("../../../../terraform")
		must(t, err)
		must(t, breach(d))
		if d.waits() == nil {
			t.Errorf("%s: no fault", name)
		}
	}
}
