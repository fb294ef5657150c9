package terraform

import "testing"

func TestTheDeploymentIsWithoutFault(t *testing.T) {
	d, err := Parse("../../../../terraform")
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range d.Faults() {
		t.Error(fault)
	}
}

// TestAccountsHoldNoMoreThanTheirCallsNeed, unless tpu_roles asks for predefined roles: these carry more.
func TestAccountsHoldNoMoreThanTheirCallsNeed(t *testing.T) {
	d, err := Parse("../../../../terraform")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range d.Root.Variables {
		if v.Name == "tpu_roles" && v.Preset != `"custom"` {
			t.Errorf("tpu_roles is %s by default", v.Preset)
		}
	}
	if got := d.Root.Written(d.Root.Resources["google_project_iam_member.tpu"], "lifecycle.create_before_destroy"); got != "true" {
		t.Error("a change of tpu_roles leaves an account without a role for a while, and its calls are refused")
	}
}

// TestWhoReadsTheSecondDatabase: a deployment in which any account except recreate reads there is at fault.
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
		"by the role for TPUs": func(d *Deployment) error {
			return d.Root.Set("google_project_iam_custom_role.tpu", "permissions", `["datastore.entities.get"]`)
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
		d, err := Parse("../../../../terraform")
		if err != nil {
			t.Fatal(err)
		}
		if err := breach(d); err != nil {
			t.Fatal(err)
		}
		if d.roles() == nil {
			t.Errorf("%s: no fault", name)
		}
	}
}

// TestClustersAreReachedAndNothingElse: a deployment is at fault that has something for clusters where there are none, or more than it
// takes to reach them.
func TestClustersAreReachedAndNothingElse(t *testing.T) {
	for name, breach := range map[string]func(d *Deployment) error{
		"a grant without a cluster": func(d *Deployment) error {
			return d.Root.SetLocal("cluster_projects", `toset([var.project_id])`)
		},
		"a grant in every watched project": func(d *Deployment) error {
			return d.Root.SetLocal("cluster_projects", `length(var.clusters) > 0 ? local.watched : toset([])`)
		},
		"a predefined role": func(d *Deployment) error {
			return d.Root.Set("google_project_iam_member.clusters", "role", `"roles/container.viewer"`)
		},
		"a role with more permissions": func(d *Deployment) error {
			return d.Root.Set("google_project_iam_custom_role.clusters", "permissions", `["container.clusters.get", "container.clusters.connect", "container.jobs.create"]`)
		},
		"a table with more permissions": func(d *Deployment) error {
			d.table = append(d.table, row{Account: "patrol", Permission: "container.jobs.create", On: "clusters"})
			return nil
		},
		"sinks without a cluster": func(d *Deployment) error { return d.Root.SetLocal("sources", `{}`) },
	} {
		d, err := Parse("../../../../terraform")
		if err != nil {
			t.Fatal(err)
		}
		if faults := d.clusters(); faults != nil {
			t.Fatal(faults)
		}
		if err := breach(d); err != nil {
			t.Fatal(err)
		}
		if d.clusters() == nil {
			t.Errorf("%s: no fault", name)
		}
	}
}

// TestTheBuildAccountReadsItsOwnSources, and no other object in the project.
func TestTheBuildAccountReadsItsOwnSources(t *testing.T) {
	d, err := Parse("../../../../terraform")
	if err != nil {
		t.Fatal(err)
	}
	for _, fault := range d.builds() {
		t.Error(fault)
	}
	for name, breach := range map[string]func(d *Deployment) error{
		"the whole project": func(d *Deployment) error { return d.Root.Remove("google_project_iam_member.build", "condition") },
		"every bucket": func(d *Deployment) error {
			return d.Root.Set("google_project_iam_member.build", "condition.content.expression", `"true"`)
		},
		"another bucket": func(d *Deployment) error {
			return d.Root.Set("google_storage_bucket_iam_member.build", "bucket", `"all"`)
		},
		"what anybody's functions are built from": func(d *Deployment) error {
			return d.Root.SetLocal("own_sources", `"resource.name.startsWith(\"projects/_/buckets/gcf-v2-sources-7-us-west1\")"`)
		},
		"by one more grant": func(d *Deployment) error {
			return d.Root.Set("google_project_iam_member.logs", "member", "google_service_account.build.member")
		},
	} {
		d, err := Parse("../../../../terraform")
		if err != nil {
			t.Fatal(err)
		}
		if err := breach(d); err != nil {
			t.Fatal(err)
		}
		if d.builds() == nil {
			t.Errorf("it reads %s: no fault", name)
		}
	}
}
