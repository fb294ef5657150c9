package main

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"pitstop.internal/scripts/pitstop/cli"
)

const soundPool = "testdata/flex/sound.json"

func TestFlexPlanPrintsWhatItIsAskedFor(t *testing.T) {
	machines := []string{"flex", "plan", "--machine", "ct6e-standard-4t", "--topology", "4x4"}
	for _, c := range []struct {
		args      []string
		has, lack []string
	}{
		{nil, []string{"gcloud container node-pools create", "--max-nodes=4", "kubectl apply", "kind: Job", "kubectl delete"}, nil},
		{[]string{"--nodes-only"}, []string{"gcloud container node-pools create", "--max-nodes=4"}, []string{"kubectl", "kind:"}},
		{[]string{"--yaml"}, []string{"kind: Job", "clusterIP: None", "[pitcrew, run, '--checkpoint-dir=gs://BUCKET/run', --, python3, train.py]"}, []string{"gcloud", "#"}},
		{[]string{"--jobset", "--yaml"}, []string{"kind: JobSet"}, []string{"kind: Service", "kind: Job\n"}},
		{[]string{"--slices", "2", "--pool", "big"}, []string{"create big-0", "create big-1", "kind: JobSet", "replicas: 2"}, []string{"create big "}},
		{[]string{"--yaml", "--", "python3", "-m", "my.train", "--steps=5"}, []string{"--, python3, -m, my.train, --steps=5]"}, nil},
		{
			[]string{"--cluster", "research", "--location", "us-east5", "--zones", "us-east5-a,us-east5-b", "--name", "llama", "--namespace", "teams"},
			[]string{"--cluster=research", "--location=us-east5", "--node-locations=us-east5-a,us-east5-b", "kubectl get job/llama --namespace=teams"},
			[]string{"CLUSTER=", "LOCATION"},
		},
	} {
		t.Setenv("COLUMNS", "60") // a script keeps its lines
		out, errOut, code := call(t, "", append(machines, c.args...)...)
		if code != cli.ExitDone || errOut != "" {
			t.Errorf("%q: exit code %d, %s", c.args, code, errOut)
		}
		for _, text := range c.has {
			if !strings.Contains(out, text) {
				t.Errorf("%q does not print %q:\n%s", c.args, text, out)
			}
		}
		for _, text := range c.lack {
			if strings.Contains(out, text) {
				t.Errorf("%q prints %q:\n%s", c.args, text, out)
			}
		}
	}
}

func TestAWrongCallOfFlexIsOneLine(t *testing.T) {
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"plan"}, "--machine is missing: the machine type, as in --machine ct6e-standard-4t"},
		{[]string{"plan", "--machine", "v6e-16"}, `machine type "v6e-16" has no TPU that is known here; flex-start takes ct5lp-hightpu-1t, `},
		{[]string{"plan", "--machine", "ct6e-standard-4t", "--topology", "5x5"}, "topology 5x5 is none of ct6e-standard-4t (v6e), which has 2x2, "},
		{[]string{"plan", "--machine", "ct6e-standard-4t", "python3", "train.py"}, `flex plan takes no "python3"; the training's command stands after --, as in -- python3 train.py`},
		{[]string{"plan", "--machine", "ct6e-standard-4t", "--yaml", "--nodes-only"}, "--nodes-only prints no manifest and --yaml nothing else: name one of the two"},
		{[]string{"plna"}, `pitstop flex has no command "plna"; did you mean plan?`},
		{[]string{"check"}, "flex check takes one file, not 0; - is standard input, and --cluster reads from GKE"},
		{[]string{"check", soundPool, "--cluster", "us-east5/research"}, "flex check takes a file or --cluster, and not both"},
		{[]string{"check", "--pool", "tpu"}, "--pool and --project belong to a cluster: name it, as in --cluster us-east5/research"},
		{[]string{"check", "--cluster", "research", "--project", "mine-1"}, `--cluster "research" is not LOCATION/CLUSTER, as in us-east5/research`},
		{[]string{"check", "--cluster", "us-east5/research"}, "--project is missing: it names a project, as in --project my-project"},
		{[]string{"check", "nowhere.json"}, "open nowhere.json: no such file or directory"},
		{[]string{"check", "-"}, "-: it is no node pool in JSON"},
		{[]string{"check", soundPool, "--topology", "4x4", "more"}, "flex check takes one file, not 2"},
	} {
		out, errOut, code := call(t, "", append([]string{"flex"}, c.args...)...)
		if out != "" || !strings.HasPrefix(errOut, "pitstop: "+c.says) || strings.Count(errOut, "\n") != 1 || code != cli.ExitUsage {
			t.Errorf("%q: exit code %d, %q and %q, want %q", c.args, code, out, errOut, c.says)
		}
	}
}

func TestFlexCheckSaysWhatIsWrong(t *testing.T) {
	t.Setenv("COLUMNS", "1000")
	raw, err := os.ReadFile(soundPool)
	if err != nil {
		t.Fatal(err)
	}
	out, errOut, code := call(t, string(raw), "flex", "check", "-")
	if out != "tpu-flex: no fault; ct6e-standard-4t with topology 4x4, 4 machines of 4 chips each\n" || errOut != "" || code != cli.ExitDone {
		t.Errorf("exit code %d, %q and %q", code, out, errOut)
	}
	broken := strings.NewReplacer(`"maxNodeCount": 4`, `"maxNodeCount": 1`, `"flexStart": true,`, "").Replace(string(raw))
	out, errOut, code = call(t, broken, "flex", "check", "-")
	want := "tpu-flex: config.flexStart is false, and should be true: the pool has no flex-start machines, so Pods that select them wait for ever\n" +
		"  the way out: make the pool anew; pitstop flex plan prints the command\n" +
		"tpu-flex: autoscaling.maxNodeCount is 1, and should be 4: 16 chips at 4 a machine are 4 machines in one zone, and a pool holds one slice\n" +
		"  the way out: gcloud container node-pools update tpu-flex --cluster=research --location=us-east5 --enable-autoscaling --min-nodes=0 --max-nodes=4\n"
	if out != want || errOut != "" || code != cli.ExitFailed {
		t.Errorf("exit code %d, %q and %q, want %q", code, out, errOut, want)
	}
	out, _, code = call(t, broken, "flex", "check", "--json", "-")
	var o struct {
		Pool, Machine, Topology string
		Chips, Nodes            int
		Findings                []struct{ Field, Got, Want, Why, Fix string }
	}
	if err := json.Unmarshal([]byte(out), &o); err != nil || code != cli.ExitFailed {
		t.Fatalf("exit code %d, %q: %v", code, out, err)
	}
	short := strings.Replace(string(raw), `"604800s"`, `"3600s"`, 1)
	out, errOut, code = call(t, short, "flex", "check", "-")
	const noted = "tpu-flex: note: config.maxRunDuration is 1h0m0s: Google takes each machine away after that, and not only after 7 days\n"
	if !strings.HasPrefix(out, "tpu-flex: no fault; ") || !strings.HasSuffix(out, noted) || errOut != "" || code != cli.ExitDone {
		t.Errorf("exit code %d, %q and %q", code, out, errOut)
	}
	out, _, _ = call(t, short, "flex", "check", "--json", "-")
	if !strings.Contains(out, `"notes":["config.maxRunDuration is 1h0m0s`) {
		t.Errorf("%s", out)
	}
	if o.Pool != "tpu-flex" || o.Machine != "ct6e-standard-4t" || o.Topology != "4x4" || o.Chips != 16 || o.Nodes != 4 ||
		len(o.Findings) != 2 || o.Findings[1].Got != "1" || o.Findings[1].Want != "4" {
		t.Errorf("%+v", o)
	}
}
