package main

import (
	"encoding/json"
	"strings"
	"testing"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/rbac"
)

func TestGKERBACPrintsManifests(t *testing.T) {
	t.Setenv("COLUMNS", "40") // a manifest keeps its lines
	args := []string{"gke", "rbac", "--namespace", "train", "--account", "pitstop-patrol@demo.iam.gserviceaccount.com", "--id", "107000000000000000001"}
	out, errOut, code := call(t, "", args...)
	want, err := rbac.Manifest(rbac.Options{Patrol: rbac.Account{Email: "pitstop-patrol@demo.iam.gserviceaccount.com", ID: "107000000000000000001"}, Namespaces: []string{"train"}})
	if out != want || errOut != "" || code != cli.ExitDone || err != nil {
		t.Errorf("exit code %d, %q and %q, %v", code, out, errOut, err)
	}
	out, errOut, code = call(t, "", append(args, "--json")...)
	var list struct {
		APIVersion, Kind string
		Items            []struct {
			Kind     string
			Metadata struct{ Name, Namespace string }
			RoleRef  struct{ Kind string }
		}
	}
	if err := json.Unmarshal([]byte(out), &list); err != nil || errOut != "" || code != cli.ExitDone {
		t.Fatalf("exit code %d, %q and %q: %v", code, out, errOut, err)
	}
	if list.APIVersion != "v1" || list.Kind != "List" || len(list.Items) != 4 || list.Items[3].Kind != "RoleBinding" ||
		list.Items[3].Metadata.Namespace != "train" || list.Items[3].RoleRef.Kind != "Role" {
		t.Errorf("%s", out)
	}
	out, _, code = call(t, "", "gke", "rbac", "--namespace", "a,b")
	if code != cli.ExitDone || strings.Count(out, "name: ACCOUNT") != 3 || strings.Count(out, `name: "NUMERIC_ID"`) != 3 {
		t.Errorf("exit code %d\n%s", code, out)
	}
	out, errOut, code = call(t, "", append(args, "--allow=recreate,early_maintenance",
		"--recreate-account=pitstop-recreate@demo.iam.gserviceaccount.com", "--recreate-id=107000000000000000002",
		"--checkpoint-account=pitstop-checkpoint@demo.iam.gserviceaccount.com", "--checkpoint-id=107000000000000000003")...)
	const verbs = "verbs: [create, delete]"
	if strings.Count(out, verbs) != 2 || strings.Count(out, "kind: ValidatingAdmissionPolicy\n") != 3 || !strings.HasPrefix(out, "# Each namespace needs such a ConfigMap") || errOut != "" || code != cli.ExitDone {
		t.Errorf("exit code %d, %q and %q", code, out, errOut)
	}
}

func TestAWrongCallOfGKEIsOneLine(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"rabc"}, `pitstop gke has no command "rabc"; did you mean rbac?`},
		{[]string{"rbac"}, "--namespace is missing: the namespaces with trainings, as in --namespace train"},
		{[]string{"rbac", "train"}, `rbac takes no "train", only flags; see pitstop rbac --help`},
		{[]string{"rbac", "--namespace", "train", "--allow", "recreate"}, "--allow=recreate lets recreate act, so --recreate-account and --recreate-id are needed; "},
		{[]string{"rbac", "--namespace", "train", "--id", "7"}, "--account and --id belong together: GKE knows a caller by the one or the other; "},
	} {
		out, errOut, code := call(t, "", append([]string{"gke"}, c.args...)...)
		if out != "" || !strings.HasPrefix(errOut, "pitstop: "+c.says) || strings.Count(errOut, "\n") != 1 || code != cli.ExitUsage {
			t.Errorf("%q: exit code %d, %q and %q, want %q", c.args, code, out, errOut, c.says)
		}
	}
}
