package terraform

import "testing"

func TestTheDeploymentIsWithoutFault(t *testing.T) {
	d, err := Parse("../../../terraform")
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range d.Faults() {
		t.Error(fault)
	}
}

// TestWhoReadsTheSecondDatabase: a deployment that lets anybody but recreate read there is at fault.
func TestWhoReadsTheSecondDatabase(t *testing.T) {
	for name, breach := range map[string]func(d *Deployment) error{
		"by a role that reads": func(d *Deployment) error {
			return d.Root.Set("google_project_iam_member.secrets", "role", `"roles/datastore.user"`)
		},
		"by a role that holds more than the table": func(d *Deployment) error {
			return d.Root.Set("google_project_iam_custom_role.secrets", "permissions", `["datastore.entities.get"]`)
		},
		"for whoever keeps the ledger": func(d *Deployment) error {
			return d.Root.Set("google_project_iam_member.ledger", "condition.expression", `"resource.name.startsWith(\"projects/pitstop/databases/pitstop\")"`)
		},
		"without a condition": func(d *Deployment) error { return d.Root.Remove("google_project_iam_member.secrets", "condition") },
		"for every function": func(d *Deployment) error {
			return d.Root.Set("google_project_iam_member.secrets", "for_each", "local.deployed")
		},
		"by a grant on all databases": func(d *Deployment) error {
			return d.Root.Set("google_project_iam_member.logs", "role", `"roles/datastore.viewer"`)
		},
		"for patrol": func(d *Deployment) error {
			d.table = append(d.table, row{Account: "patrol", Permission: "datastore.entities.get", On: "the second database"})
			return nil
		},
	} {
		d, err := Parse("../../../terraform")
		if err != nil {
			t.Fatal(err)
		}
		if err := breach(d); err != nil {
			t.Fatal(err)
		}
		if d.secrets() == nil {
			t.Errorf("%s: no fault", name)
		}
	}
}
