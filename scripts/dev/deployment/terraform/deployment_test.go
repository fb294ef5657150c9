package terraform

import (
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestTheDeploymentIsWithoutFault(t *testing.T) {
	d, err := Parse("../../../../terraform")
	must(t, err)
	for _, fault := range d.Faults() {
		t.Error(fault)
	}
}

// TestAccountsHoldNoMoreThanTheirCallsNeed, unless tpu_roles asks for predefined roles: these carry more.
func TestAccountsHoldNoMoreThanTheirCallsNeed(t *testing.T) {
	d, err := Parse("../../../../terraform")
	must(t, err)
	for _, v := range d.Root.Variables {
		if v.Name == "tpu_roles" && v.Preset != `"custom"` {
			t.Errorf("tpu_roles is %s by default", v.Preset)
		}
	}
	if got := d.Root.Written(d.Root.Resources["google_project_iam_member.tpu"], "lifecycle.create_before_destroy"); got != "true" {
		t.Error("a change of tpu_roles leaves an account without a role for a while, and its calls are refused")
	}
}

// TestWhatAnAccountMayDoInTheDatabases: a deployment is at fault in which an account deletes a document, notify writes into the ledger, or
// another account than recreate reads the values of metadata.
func TestWhatAnAccountMayDoInTheDatabases(t *testing.T) {
	const member, role = "google_project_iam_member.database", "google_project_iam_custom_role.database"
	holds := func(account, permission, on string) func(d *Deployment) error {
		return func(d *Deployment) error {
			d.table = append(d.table, row{Account: account, Permission: permission, On: on, Role: "custom"})
			return nil
		}
	}
	for name, breach := range map[string]func(d *Deployment) error{
		"a role that deletes":      func(d *Deployment) error { return d.Root.Set(member, "role", `"roles/datastore.user"`) },
		"more than the table":      func(d *Deployment) error { return d.Root.Set(role, "permissions", `["datastore.entities.delete"]`) },
		"a grant on all databases": func(d *Deployment) error { return d.Root.Remove(member, "condition") },
		"a grant on all whose names begin so": func(d *Deployment) error {
			return d.Root.Set(member, "condition.expression", `"resource.name.startsWith(\"projects/pitstop/databases/${local.databases[each.value.database]}\")"`)
		},
		"a database that is another one": func(d *Deployment) error {
			return d.Root.SetLocal("databases", `{ ledger = "pitstop", secrets = "pitstop-secrets", told = "pitstop" }`)
		},
		"another grant": func(d *Deployment) error {
			return d.Root.Set("google_project_iam_member.logs", "role", `"roles/datastore.viewer"`)
		},
		"patrol reads the values of metadata": holds("patrol", "datastore.entities.get", "the metadata values"),
		"notify writes into the ledger":       holds("notify", "datastore.entities.update", "the ledger"),
		"the viewers' console writes":         holds("viewers", "datastore.entities.update", "the ledger"),
		"the operators' console writes":       holds("operators", "datastore.entities.create", "the ledger"),
		"a console reads the values":          holds("operators", "datastore.entities.get", "the metadata values"),
		"another one writes what was told":    holds("patrol", "datastore.entities.create", "what was told"),
		"patrol deletes in the ledger":        holds("patrol", "datastore.entities.delete", "the ledger"),
		"a permission on some other database": holds("patrol", "datastore.entities.get", "the third database"),
		"a predefined role stands in the table": func(d *Deployment) error {
			d.table = append(d.table, row{Account: "patrol", Permission: "datastore.entities.get", On: "the ledger", Role: "roles/datastore.user"})
			return nil
		},
	} {
		d, err := Parse("../../../../terraform")
		must(t, err)
		if faults := d.databases(); faults != nil {
			t.Fatal(faults)
		}
		must(t, breach(d))
		if d.databases() == nil {
			t.Errorf("%s: no fault", name)
		}
	}
}

// holdsFor evaluates a condition of IAM, as far as those on buckets go: terms on the type and on the name, all of which have to hold.
func holdsFor(t *testing.T, condition, kind, name string) bool {
	t.Helper()
	term := regexp.MustCompile(`^resource\.(type|name)(?: == |\.(startsWith|endsWith)\()"([^"]*)"\)?$`)
	for said := range strings.SplitSeq(condition, " && ") {
		found := term.FindStringSubmatch(said)
		if found == nil {
			t.Fatalf("%q is no term of a condition", said)
		}
		of := map[string]string{"type": kind, "name": name}[found[1]]
		holds := of == found[3]
		switch found[2] {
		case "startsWith":
			holds = strings.HasPrefix(of, found[3])
		case "endsWith":
			holds = strings.HasSuffix(of, found[3])
		}
		if !holds {
			return false
		}
	}
	return true
}

// TestAnAccountWritesObjectsOfOneName: recovery writes leases and checkpoint writes requests, in any directory, and neither writes or deletes
// anything else. Both read the whole bucket.
func TestAnAccountWritesObjectsOfOneName(t *testing.T) {
	d, err := Parse("../../../../terraform")
	must(t, err)
	got, err := granted(d.under(d.switches()), "google_storage_bucket_iam_member.checkpoints")
	must(t, err)
	const bucket = "projects/_/buckets/bucket"
	for account, object := range map[string]string{"recovery": "pitstop-lease.json", "checkpoint": "pitstop-request.json"} {
		writes := account + " has roles/storage.objectUser"
		var where []string
		for _, g := range got {
			if rest, ok := strings.CutPrefix(g, writes); ok {
				where = append(where, strings.TrimPrefix(rest, under))
			}
		}
		if len(where) != 1 || where[0] == "" {
			t.Errorf("%s writes under the conditions %q, want one", account, where)
			continue
		}
		if !slices.Contains(got, account+" has roles/storage.objectViewer") {
			t.Errorf("%s cannot read and list the bucket", account)
		}
		for name, may := range map[string]bool{
			object: true, "run/" + object: true, "a/b/c/" + object: true, "run/evil/" + object: true,
			"evil-" + object: false, "run/evil-" + object: false, object + ".bak": false, object + "/0": false, "run/100/" + object + "/data": false,
			"run/100/_CHECKPOINT_METADATA": false, "run/pitstop-crew/attempt-000001/verdict.json": false, "": false,
			"pitstop-lease.json": account == "recovery", "pitstop-request.json": account == "checkpoint",
		} {
			if holdsFor(t, where[0], "storage.googleapis.com/Object", bucket+"/objects/"+name) != may {
				t.Errorf("%s may write %s: %v, want %v", account, name, !may, may)
			}
		}
		if holdsFor(t, where[0], "storage.googleapis.com/Bucket", bucket) || holdsFor(t, where[0], "storage.googleapis.com/Folder", bucket+"/folders/"+object) {
			t.Errorf("%s has rights on the bucket or on folders", account)
		}
	}
	for name, breach := range map[string]func(d *Deployment) error{
		"without a condition": func(d *Deployment) error {
			return d.Root.Remove("google_storage_bucket_iam_member.checkpoints", "condition")
		},
		"under another condition": func(d *Deployment) error {
			return d.Root.Set("google_storage_bucket_iam_member.checkpoints", "condition.content.expression", `"resource.name.endsWith(\"pitstop-lease.json\")"`)
		},
		"under each other's": func(d *Deployment) error {
			for i := range d.table {
				if d.table[i].Object == "pitstop-lease.json" {
					d.table[i].Object = "pitstop-request.json"
				}
			}
			return nil
		},
		"whatever the owner names": func(d *Deployment) error {
			return d.Root.Set("google_storage_bucket_iam_member.checkpoints", "condition.for_each", `each.value.condition == "" ? [] : [each.value.condition]`)
		},
	} {
		d, err := Parse("../../../../terraform")
		must(t, err)
		must(t, breach(d))
		if d.grants() == nil && d.buckets() == nil {
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
		"a role with more permissions": func(d *Deployment) error {
			return d.Root.Set("google_project_iam_custom_role.clusters", "permissions", `["container.clusters.get", "container.clusters.connect", "container.jobs.create"]`)
		},
		"a table with more permissions": func(d *Deployment) error {
			d.table = append(d.table, row{Account: "patrol", Permission: "container.jobs.create", On: "clusters"})
			return nil
		},
	} {
		d, err := Parse("../../../../terraform")
		must(t, err)
		if faults := d.clusters(); faults != nil {
			t.Fatal(faults)
		}
		must(t, breach(d))
		if d.clusters() == nil {
			t.Errorf("%s: no fault", name)
		}
	}
}

// TestTheBuildAccountReadsItsOwnSources, and no other object in the project.
func TestTheBuildAccountReadsItsOwnSources(t *testing.T) {
	d, err := Parse("../../../../terraform")
	must(t, err)
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
		must(t, err)
		must(t, breach(d))
		if d.builds() == nil {
			t.Errorf("it reads %s: no fault", name)
		}
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
