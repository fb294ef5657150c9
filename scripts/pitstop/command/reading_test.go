package main

import (
	"strings"
	"testing"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/scripts/pitstop/entries/entriestest"
)

// aDescription is what gcloud compute tpus tpu-vm describe writes, with other lines in the place of some.
func aDescription(edits ...string) string {
	text := `acceleratorConfig:
  topology: 4x4
  type: V5LITE_POD
acceleratorType: v5litepod-16
apiVersion: V2_ALPHA1
createTime: '2022-01-25T03:44:36.265703305Z'
health: HEALTHY
healthDescription: The TPU had a maintenance event at 2022-01-26T03:44:36.265703305Z
id: '4711'
metadata:
  startup-script: |-
    #!/bin/bash
    name: TOKEN=s3cret pitcrew run -- python3 train.py
name: projects/demo/locations/us-west4-a/nodes/llama-8b
networkEndpoints:
- ipAddress: 10.0.0.1
  port: 8470
runtimeVersion: v2-alpha-tpuv5-lite
schedulingConfig:
  spot: true
state: READY
`
	return strings.NewReplacer(edits...).Replace(text)
}

func TestExplainReadsDescriptions(t *testing.T) {
	t.Setenv("COLUMNS", "1000")
	const window = "upcomingMaintenance:\n  maintenanceStatus: PENDING\n  windowStartTime: '2022-03-01T04:00:00Z'\nz:"
	const replaces = "DeleteNode projects/demo/locations/us-west4-a/nodes/llama-8b"
	for name, c := range map[string]struct {
		text string
		says []string
		not  string
	}{
		"usable": {aDescription(), []string{
			"standard input:1\n", "node llama-8b, v5litepod-16 spot: READY, life 4711", "last maintenance event at 2022-01-26T03:44:36Z", "autocheckpoint is off: maintenance that nobody announced begins at once",
			"kind        reading (api_reading)", "subject     projects/demo/locations/us-west4-a/nodes/llama-8b", "leads to    nothing: the API says that it is usable",
		}, "would call"},
		"with autocheckpoint":     {aDescription("apiVersion", "autocheckpointEnabled: true\napiVersion"), []string{"autocheckpoint is on: before maintenance Google sends SIGTERM"}, "is off"},
		"that had no maintenance": {aDescription("healthDescription", "description"), []string{"READY, life 4711; autocheckpoint"}, "maintenance event"},
		"of a lost one": {aDescription("state: READY", "state: PREEMPTED"), []string{
			"leads to    an incident: the API shows the loss; delete it and create it again", "would call  " + replaces + " (allowed by recreate)",
		}, ""},
		"of a lost one that is not Spot": {aDescription("state: READY", "state: TERMINATED", "spot: true", "reserved: true"), []string{
			"wait for Google's own recovery, then nothing is done (", "otherwise Pitstop would delete it and create it again [policy_no]", "(blocked: recreate_non_spot is no",
		}, ""},
		"of a flex-start one": {aDescription("spot: true", "provisioningModel: FLEX_START"), []string{
			"v5litepod-16: READY", "; planned end at 2022-02-01T03:44:36Z;", "leads to    before its planned end at 2022-02-01T03:44:36Z: ask the training to save; once it has ended: nothing is done (",
			"UpdateNode projects/demo/locations/us-west4-a/nodes/llama-8b (allowed by request_checkpoint)", replaces + ", once it has ended (blocked: recreate_non_spot is no",
		}, "spot:"},
		"of a flex-start one that is lost": {aDescription("spot: true", "provisioningModel: FLEX_START", "state: READY", "state: TERMINATED"), []string{
			"leads to    an incident: wait for Google's own recovery, not past its planned end at 2022-02-01T03:44:36Z, then nothing is done (",
		}, "spot:"},
		"under maintenance": {aDescription("health: HEALTHY", "health: UNHEALTHY_MAINTENANCE"), []string{
			"READY, UNHEALTHY_MAINTENANCE", "leads to    an incident: wait until Google brings it back; if that takes too long, delete it and create it again", replaces,
		}, ""},
		"with announced maintenance": {aDescription("state: READY", "state: READY\n"+window+" 1"), []string{
			"; maintenance pending, window from 2022-03-01T04:00:00Z;", "before the window at 2022-03-01 04:00 UTC: ask the training to save",
		}, "DeleteNode"},
		"whose maintenance begins": {aDescription("state: READY", "state: READY\n"+strings.Replace(window, "PENDING", "ONGOING", 1)+" 1"), []string{
			"leads to    an incident: ask the training to save at once",
		}, "DeleteNode"},
		"that was stopped": {aDescription("state: READY", "state: STOPPED"), []string{"leads to    an incident, unless its owner stopped it: nothing is done ("}, "would call"},
		"that is created":  {aDescription("state: READY", "state: CREATING"), []string{"leads to    nothing by itself: Pitstop reads it again within a minute"}, "would call"},
		"suspected of abuse": {aDescription("state: READY", "state: PREEMPTED\nsymptoms:\n- symptomType: PROJECT_ABUSE"), []string{
			"leads to    Google suspects abuse: an open incident ends escalated",
		}, "would call"},
		"of two nodes": {"---\n" + aDescription() + "---\n" + aDescription("llama-8b", "bert"), []string{
			"standard input:2\n", "standard input:24\n", "node llama-8b, ", "node bert, ", "2 entries: 2 lead to something", "(reading 2)",
		}, ""},
		"as JSON": {`{"name":"projects/demo/locations/us-west4-a/nodes/llama-8b","state":"READY","healthDescription":"The TPU had a maintenance event at 2022-01-26T03:44:36Z"}`, []string{
			"node llama-8b: READY", "last maintenance event at 2022-01-26T03:44:36Z",
		}, ""},
		"as a JSON list": {`[{"name":"projects/demo/locations/us-west4-a/nodes/llama-8b","state":"READY"},` + entriestest.Preempted("2") + `]`, []string{
			"node llama-8b: READY", "preempted",
		}, ""},
		"of a legacy node": {`{"name":"projects/demo/locations/us-west4-a/nodes/old","createTime":"2022-01-25T03:44:36Z","state":"PREEMPTED","acceleratorType":"v3-8","tensorflowVersion":"2.12.0","schedulingConfig":{"preemptible":true},` +
			`"healthDescription":"The TPU had a maintenance event at 2022-01-26T03:44:36Z"}`, []string{
			"node old, v3-8 spot: PREEMPTED, life ", "; last maintenance event at 2022-01-26T03:44:36Z\n", "DeleteNode projects/demo/locations/us-west4-a/nodes/old",
		}, "autocheckpoint"},
	} {
		t.Run(name, func(t *testing.T) {
			out, errOut, code := call(t, c.text, "explain", "--policy", "spot")
			if code != cli.ExitDone || errOut != "" {
				t.Errorf("exit code %d: %s", code, errOut)
			}
			deploymenttest.WantText(t, out, c.says...)
			if c.not != "" && strings.Contains(out, c.not) || strings.Contains(out, "s3cret") {
				t.Errorf("it says %q, or a secret:\n%s", c.not, out)
			}
		})
	}
	out, _, _ := call(t, aDescription(), "explain", "--json", "--policy", "spot")
	deploymenttest.WantText(t, out, `"kind":"reading"`, `"rank":"api_reading"`, `"ignored":false`, `"leads_to":"nothing: the API says that it is usable.`)
}

// TestABadDescriptionIsOneClearLine that names the place and the way out.
func TestABadDescriptionIsOneClearLine(t *testing.T) {
	t.Setenv("COLUMNS", "1000")
	for name, c := range map[string]struct {
		text, says string
		code       int
	}{
		"broken off": {aDescription("state: READY", "state: ["), ": it describes a TPU, but not in gcloud's YAML or JSON: yaml: line ", cli.ExitUsage},
		"too large": {
			aDescription("state: READY", "state: READY\ndescription: "+strings.Repeat("x", events.MaxBytes)),
			": it describes TPUs in YAML, and has more than 10485760 bytes; split it, or describe them with --format=json", cli.ExitUsage,
		},
		"of other types":  {aDescription("id: '4711'", "id: [1]"), ":1: it describes node llama-8b, but not as the API does: ", cli.ExitFailed},
		"without a state": {aDescription("state: READY\n", ""), ":1: it describes node llama-8b without its state; describe it without naming fields", cli.ExitFailed},
		"of a queued resource that names its node": {
			"name: projects/demo/locations/us-west4-a/queuedResources/q\nstate:\n  state: ACTIVE\ntpu:\n  nodeSpec:\n  - node:\n      acceleratorType: v5litepod-16\n    nodeId: llama-8b\n" +
				"    parent: projects/demo/locations/us-west4-a\n",
			":1: it describes queued resource q; describe its node: gcloud compute tpus tpu-vm describe llama-8b --zone us-west4-a", cli.ExitFailed,
		},
		"of a queued resource": {aDescription("nodes/llama-8b", "queuedResources/q"), ":1: it describes queued resource q; describe its node: gcloud compute tpus tpu-vm describe NODE --zone us-west4-a", cli.ExitFailed},
		"of something else":    {"acceleratorType: v5litepod-16\nname: llama\n", `:1: "acceleratorType: v5litepod-16" is no JSON log entry`, cli.ExitUsage},
	} {
		out, errOut, code := call(t, c.text, "explain")
		if code != c.code || out != "" || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, c.says) || strings.Contains(errOut, "s3cret") {
			t.Errorf("%s: exit code %d, %q, %q; want %d with %q", name, code, out, errOut, c.code, c.says)
		}
	}
}

// TestExplainReadsTheHealthAlone: Google's guide has people pick these lines out of a description.
func TestExplainReadsTheHealthAlone(t *testing.T) {
	t.Setenv("COLUMNS", "1000")
	const last = "healthDescription: The TPU had a maintenance event at 2022-01-26T03:44:36.265703305Z\n"
	for text, says := range map[string][]string{
		"health: HEALTHY\n" + last: {
			"standard input:1\n", "a TPU that is not named: HEALTHY; last maintenance event at 2022-01-26T03:44:36Z", "leads to    nothing by itself: the lines do not show its state",
		},
		"health: UNHEALTHY_MAINTENANCE\r\n" + strings.Replace(last, "\n", "\r\n", 1): {
			"UNHEALTHY_MAINTENANCE; last maintenance event at 2022-01-26T03:44:36Z", "leads to    an incident, if its state is READY: wait until Google brings it back; if that takes too long, ",
		},
		"health: UNHEALTHY_TENSORFLOW": {"UNHEALTHY_TENSORFLOW\n", "leads to    an incident, if its state is READY"},
		last:                           {"health not shown; last maintenance event at 2022-01-26T03:44:36Z"},
		"\n  " + last:                  {"standard input:2\n", "last maintenance event"},
		"health: HEALTHY\nhealthDescription: The TPU had a maintenance event at 2022-01-26t03:44:36z\n": {"last maintenance event at 2022-01-26T03:44:36Z"},
	} {
		out, errOut, code := call(t, text, "explain", "--policy", "spot")
		if code != cli.ExitDone || errOut != "" || strings.Contains(out, "autocheckpoint") || strings.Contains(out, "would call") {
			t.Errorf("%q: exit code %d, %q\n%s", text, code, errOut, out)
		}
		deploymenttest.WantText(t, out, says...)
	}
	for _, text := range []string{"health: HEALTHY\nhealth: UNHEALTHY_MAINTENANCE\n", "health:\n", "health: HEALTHY\nstate: READY\n", "healthy: yes\n"} {
		if out, _, code := call(t, text, "explain"); code == cli.ExitDone || out != "" {
			t.Errorf("%q: exit code %d\n%s", text, code, out)
		}
	}
}

// TestExplainHeedsTheLabelOfTheTPU: without --policy a description has the policy that its label names.
func TestExplainHeedsTheLabelOfTheTPU(t *testing.T) {
	t.Setenv("COLUMNS", "1000")
	lost := func(label string) string {
		return aDescription("state: READY", "state: PREEMPTED", "id: '4711'", "id: '4711'\nlabels:\n  team: nlp\n"+label)
	}
	for name, c := range map[string]struct {
		text      string
		args      []string
		says, not string
	}{
		"a preset":                   {lost("  pitstop-policy: spot\n"), nil, "(allowed by recreate)", "limited by"},
		"a preset that only watches": {lost("  pitstop-policy: watch\n"), nil, "limited by preset watch)", "missing label"},
		"a policy of a file":         {lost("  pitstop-policy: night\n"), nil, "limited by the policy night, which --policy FILE:night shows", "missing label"},
		"none":                       {lost(""), nil, "limited by the missing label pitstop-policy", ""},
		"--policy counts":            {lost("  pitstop-policy: watch\n"), []string{"--policy", "spot"}, "(allowed by recreate)", "limited by"},
		"--allow counts":             {lost("  pitstop-policy: spot\n"), []string{"--allow", "request_checkpoint"}, "(blocked: recreate is no, limited by ", "missing label"},
		"an entry shows no label":    {entriestest.Preempted("2"), nil, "limited by preset watch", "missing label"},
	} {
		out, errOut, code := call(t, c.text, append([]string{"explain"}, c.args...)...)
		if code != cli.ExitDone || errOut != "" || !strings.Contains(out, c.says) || c.not != "" && strings.Contains(out, c.not) {
			t.Errorf("%s: exit code %d, %q, want %q and no %q in\n%s", name, code, errOut, c.says, c.not, out)
		}
	}
	if out, _, _ := call(t, entriestest.Preempted("2"), "replay", "-"); strings.Contains(out, "missing label") || !strings.Contains(out, "limited by preset watch") {
		t.Errorf("replay without --policy:\n%s", out)
	}
}
