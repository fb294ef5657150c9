package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/hcl/v2/hclsyntax"
	"go.yaml.in/yaml/v3"

	"pitstop.internal/events"
	"pitstop.internal/functions/notify"
	"pitstop.internal/scripts/dev/deployment/terraform"
	"pitstop.internal/scripts/package/process"
	"pitstop.internal/scripts/pitstop/rbac"
	"pitstop.internal/scripts/sim"
	"pitstop.internal/scripts/sim/faults"
	"pitstop.internal/scripts/sim/replay"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/breadth"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/logging/loggingtest"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/publish"
	"pitstop.internal/shared/trigger"
)

const root = "../../.."

func configuration(t *testing.T) *module {
	t.Helper()
	m, err := parse(root + "/terraform")
	must(t, err)
	return m
}

func functionsOf(t *testing.T, m *module) map[string]deployed {
	t.Helper()
	f, err := m.functions()
	must(t, err)
	return f
}

func same(t *testing.T, what string, want, got any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

func TestWhatIsGeneratedIsFresh(t *testing.T) {
	want, err := generate(root)
	must(t, err)
	got, err := written(root)
	must(t, err)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if !bytes.Equal(want[name], got[name]) {
			t.Errorf("%s is not fresh: run go run ./scripts/dev/deployment", name)
		}
	}
	for name := range got {
		if want[name] == nil {
			t.Errorf("%s belongs to nothing any more: run go run ./scripts/dev/deployment", name)
		}
	}
}

// TestThePagesNameWhatThereIs: every output and variable exists that the documents and the example of a terraform.tfvars name. Every alert is
// in the table of alerts.
func TestThePagesNameWhatThereIs(t *testing.T) {
	m := configuration(t)
	named := func(what string, all []terraform.Declared, name string) {
		if !slices.ContainsFunc(all, func(d terraform.Declared) bool { return d.Name == name }) {
			t.Errorf("there is no %s %s", what, name)
		}
	}
	outputs := regexp.MustCompile(`terraform -chdir=terraform\s+output\s+(\w+)`)
	inputs := regexp.MustCompile("(?m)-var '?(\\w+)=|^(?: {4,}|(?:# ?)?)(\\w+) *= |[Ii]nput `(\\w+)`")
	held := 0
	for _, name := range []string{"README.md", "functions/README.md", "terraform/README.md", "terraform/terraform.tfvars.example"} {
		raw, err := os.ReadFile(filepath.Join(root, name))
		must(t, err)
		for _, found := range outputs.FindAllStringSubmatch(string(raw), -1) {
			named("output", m.Outputs, found[1])
			held++
		}
		for _, found := range inputs.FindAllStringSubmatch(string(raw), -1) {
			named("variable", m.Variables, found[1]+found[2]+found[3])
			held++
		}
	}
	if held < 25 {
		t.Errorf("only %d names were held", held)
	}

	told := []string{"patrol"}
	for _, kind := range []string{"thresholds", "lines"} {
		told = slices.AppendSeq(told, maps.Keys(keysOf(t, m.Locals[kind])))
	}
	same(t, "alerts", slices.Sorted(slices.Values(told)), slices.Sorted(maps.Keys(keysOf(t, m.Locals["alerts"]))))
}

func TestEveryFunctionIsDeployedByItsEntryPoint(t *testing.T) {
	written, err := process.Functions(root)
	must(t, err)
	want, got := map[string]string{}, map[string]string{}
	for _, f := range written {
		want[f.Name] = f.Target
	}
	m := configuration(t)
	for name, f := range functionsOf(t, m) {
		got[name] = f.EntryPoint
	}
	target, err := strconv.Unquote(m.Written(m.Resources["google_cloud_run_v2_service.console"], "build_config.function_target"))
	must(t, err)
	got["console"] = target
	same(t, "entry points", want, got)
}

func TestTopicsLeadWhereTheSimulatedOnesDo(t *testing.T) {
	m := configuration(t)
	edges, err := m.topology() // every topic has those who publish and one who reacts
	must(t, err)
	reacts, travels := world.Wiring()
	got := map[string]string{}
	for _, e := range edges {
		got[e.topic] = e.function
	}
	same(t, "who reacts", reacts, got)
	for name, f := range functionsOf(t, m) {
		topics := publish.Config{
			CheckpointTopic: f.PublishesTo["CHECKPOINT_TOPIC"], RecoveryTopic: f.PublishesTo["RECOVERY_TOPIC"], RecreateTopic: f.PublishesTo["RECREATE_TOPIC"],
			UpdateTopic: f.PublishesTo["UPDATE_TOPIC"],
		}.Topics()
		if notices := f.PublishesTo["NOTICE_TOPIC"]; notices != "" {
			topics[events.TypeMaintenanceNotified] = notices
		}
		if len(f.PublishesTo) == 0 {
			continue // it sends to people, and to no function
		}
		for event, topic := range topics {
			if travels[event] != topic {
				t.Errorf("%s sends %s on %q, and it travels on %s", name, event, topic, travels[event])
			}
		}
	}
}

// TestFunctionsAreGivenWhatTheyRead compares each function's environment with the variables that it reads. None that it needs is missing,
// and none is set that it does not read.
func TestFunctionsAreGivenWhatTheyRead(t *testing.T) {
	m := configuration(t)
	groups := map[string][]string{}
	for _, local := range []string{"environment", "secrets"} {
		for group, names := range keysOf(t, m.Locals[local]) {
			groups[group] = append(groups[group], slices.Sorted(maps.Keys(keysOf(t, names)))...)
		}
	}
	for name, f := range functionsOf(t, m) {
		variables, err := trigger.Variables(f.EntryPoint)
		must(t, err)
		set := slices.Collect(maps.Keys(f.PublishesTo))
		for _, group := range f.Environment {
			if groups[group] == nil {
				t.Errorf("%s is given the group %s, which there is not", name, group)
			}
			set = append(set, groups[group]...)
		}
		var read []string
		for _, v := range variables {
			if v.Name != "TPU_ENDPOINT" { // only a process on one's own machine sets it: a deployment calls Google's API
				read = append(read, v.Name)
			}
		}
		slices.Sort(set)
		same(t, name, read, set)
	}
}

// TestTheConsoleIsGivenWhatItReads: two groups, and two variables of its own.
func TestTheConsoleIsGivenWhatItReads(t *testing.T) {
	m := configuration(t)
	groups := keysOf(t, m.Locals["environment"])
	set := []string{"IAP_AUDIENCE", "ORDERS_TOPIC"}
	r := m.Locals["console_environment"].Range()
	data, err := os.ReadFile(r.Filename)
	must(t, err)
	for _, name := range append(slices.Clone(set), "local.environment.every", "local.environment.decides") {
		if !strings.Contains(string(r.SliceBytes(data)), name) {
			t.Errorf("local.console_environment has no %s", name)
		}
	}
	for _, group := range []string{"every", "decides"} {
		set = append(set, slices.Sorted(maps.Keys(keysOf(t, groups[group])))...)
	}
	variables, err := trigger.Variables("ServeConsole")
	must(t, err)
	var read []string
	for _, v := range variables {
		read = append(read, v.Name)
	}
	slices.Sort(set)
	same(t, "console", read, set)
}

// TestWhoMayGiveOrders: the operators' console alone publishes on their topic.
func TestWhoMayGiveOrders(t *testing.T) {
	m := configuration(t)
	for name, f := range functionsOf(t, m) {
		for _, topic := range f.PublishesTo {
			if topic == events.TopicOrders {
				t.Errorf("%s publishes on %s", name, topic)
			}
		}
	}
	for address, b := range m.Resources {
		if strings.HasPrefix(address, "google_pubsub_topic_iam_") && m.Written(b, "topic") == "google_pubsub_topic.main[local.functions.order.topic].name" {
			same(t, "who publishes orders", `toset([for who in keys(local.consoles) : who if who == "operators"])`, m.Written(b, "for_each"))
			same(t, "who publishes orders", "google_service_account.function[each.key].member", m.Written(b, "member"))
			return
		}
	}
	t.Error("nobody may publish an order")
}

// keysOf are the expressions of an object, by key.
func keysOf(t *testing.T, e hclsyntax.Expression) map[string]hclsyntax.Expression {
	t.Helper()
	o, ok := e.(*hclsyntax.ObjectConsExpr)
	if !ok {
		t.Fatalf("%v is not written as an object", e.Range())
	}
	found := map[string]hclsyntax.Expression{}
	for _, item := range o.Items {
		key, diags := item.KeyExpr.Value(nil)
		if diags.HasErrors() {
			t.Fatal(diags)
		}
		found[key.AsString()] = item.ValueExpr
	}
	return found
}

func TestEverySourceReachesItsReader(t *testing.T) {
	reacts, _ := world.Wiring()
	var all strings.Builder
	for _, f := range filters {
		if reacts[f.topic] == "" {
			t.Errorf("the source %s sends to %s, which no function reads", f.source, f.topic)
		}
		if !strings.Contains(f.text, `log_id("`) || strings.Contains(f.text, "run.googleapis.com") || len(f.text) >= 20_000 {
			t.Errorf("the filter of %s has to name its logs, those of functions not among them, and stays short: %s", f.source, f.text)
		}
		all.WriteString(f.text + "\n")
	}
	for _, log := range []string{events.CrewLog, events.CanaryLog, "cloudaudit.googleapis.com/system_event", "cloudaudit.googleapis.com/activity"} {
		if !strings.Contains(all.String(), `log_id("`+log+`")`) {
			t.Errorf("no sink sends the log %s", log)
		}
	}
}

// TestWhatIsKeptIsUnderTheKey: every database, topic and bucket takes the customer's key. An existing database keeps the key that it has.
func TestWhatIsKeptIsUnderTheKey(t *testing.T) {
	const each = "var.kms_key[*]"
	rules := map[string]map[string]string{
		"google_firestore_database": {"cmek_config.for_each": each, "cmek_config.content.kms_key_name": "cmek_config.value", "lifecycle.ignore_changes": "[location_id, cmek_config]"},
		"google_pubsub_topic":       {"kms_key_name": "var.kms_key"},
		"google_storage_bucket":     {"encryption.for_each": each, "encryption.content.default_kms_key_name": "encryption.value"},
	}
	held := 0
	for _, dir := range []string{"terraform", "terraform/modules/function"} {
		m, err := parse(filepath.Join(root, dir))
		must(t, err)
		for address, b := range m.Resources {
			kind, _, _ := strings.Cut(address, ".")
			for path, want := range rules[kind] {
				same(t, dir+": "+address+" "+path, want, m.Written(b, path))
				held++
			}
		}
	}
	if held != 3+2*1+2 {
		t.Errorf("%d attributes were held", held)
	}
	m := configuration(t)
	same(t, "the key of dead letters", "var.kms_key", m.Written(m.Resources["module.function"], "kms_key"))
}

// TestFiltersKnowTheAccountsOfThisDeployment: two filters ask which account made a call. Terraform puts the same accounts into them
// as into the functions' environment.
func TestFiltersKnowTheAccountsOfThisDeployment(t *testing.T) {
	for _, f := range filters {
		ours, controllers := 0, 0
		switch f.source {
		case "tpu-audit":
			ours = 1
		case "gke-jobs":
			ours, controllers = 1, 1
		}
		if strings.Count(f.text, `"${our_principals}"`) != ours || strings.Count(f.text, `"${controllers}"`) != controllers || strings.Count(f.text, "${")+strings.Count(f.text, "%{") != ours+controllers {
			t.Errorf("%s has not %d places for our accounts and %d for controllers, and no other: %s", f.source, ours, controllers, f.text)
		}
	}
	m := configuration(t)
	for local, want := range map[string]string{
		"known_accounts": `our_principals = join("\" OR \"", local.our_principals)
    controllers    = join("\" OR \"", coalescelist(sort(var.controllers), local.our_principals))`,
		"sources":     `templatefile("${path.module}/filters/${f}", local.known_accounts)`,
		"environment": `{ OUR_PRINCIPALS = join(",", local.our_principals), CONTROLLERS = join(",", sort(var.controllers)) }`,
	} {
		r := m.Locals[local].Range()
		data, err := os.ReadFile(r.Filename)
		must(t, err)
		if !strings.Contains(string(r.SliceBytes(data)), want) {
			t.Errorf("local.%s has no %s", local, want)
		}
	}
}

func TestSwitchesAndCollectionsAreThoseOfTheCode(t *testing.T) {
	m := configuration(t)
	v, err := m.Local("switches")
	must(t, err)
	var got []policy.Switch
	for _, s := range v.AsValueSlice() {
		got = append(got, policy.Switch(s.AsString()))
	}
	same(t, "switches", policy.All(), got)
	for name, want := range map[string]map[string][]string{
		"bodies": {
			"ledger": {
				ledger.Archive, ledger.Brake, ledger.Canaries, ledger.Deployment, ledger.Parked, ledger.Pauses, ledger.Specs, ledger.Stockouts,
				ledger.Subjects, ledger.Workloads,
			},
			"secrets": {ledger.Values}, "told": {ledger.Tellings},
		},
		"expiring": {"ledger": {ledger.Archive, ledger.Brake, ledger.Stockouts}, "secrets": {ledger.Values}, "told": {ledger.Tellings}},
	} {
		v, err := m.Local(name)
		must(t, err)
		got := map[string][]string{}
		for database, collections := range v.AsValueMap() {
			for _, c := range collections.AsValueSlice() {
				got[database] = append(got[database], c.AsString())
			}
		}
		same(t, "local."+name, want, got)
	}
}

// TestMetricsReadLinesThatAreWritten plays recorded incidents and holds the filter, the label and the field of each metric against
// the lines that the functions log. A few lines are rare; those metrics are held against the sources.
func TestMetricsReadLinesThatAreWritten(t *testing.T) {
	d, err := terraform.Parse(root + "/terraform")
	must(t, err)
	metrics, err := d.Metrics()
	must(t, err)
	// The incidents, each with the number of its losses that no entry reports.
	missed := map[string]int{"preemption": 0, "maintenance": 0, "quota": 1, "stopped": 1}
	read := map[string]int{}
	for _, name := range slices.Sorted(maps.Keys(missed)) {
		lines := logged(t, name)
		for key, m := range metrics {
			filter, err := loggingtest.Parse(m.Filter)
			if err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			counted := 0
			for _, line := range lines {
				payload, ok := line["jsonPayload"].(map[string]any)
				if !ok || !filter.MatchesFields(line) {
					continue
				}
				if payload[m.Label] == nil {
					t.Errorf("%s: the metric %s takes its label %s from a line without it: %v", name, key, m.Label, payload)
				}
				if m.Field == "" {
					counted++
				} else if value, ok := payload[m.Field]; ok {
					if _, ok := value.(float64); !ok {
						t.Errorf("%s: the metric %s reads %s, which is no number: %v", name, key, m.Field, value)
					}
					counted++
				}
			}
			if key == "found_by_patrol" && counted != missed[name] {
				t.Errorf("%s: patrol found %d losses that no entry reports, want %d", name, counted, missed[name])
			}
			read[key] += counted
		}
	}
	rare := map[string]string{
		"bodies_differ": "request body differs", "brake_holds": "brake holds", "canaries_missing": "canary missing", "refused": "notification refused",
	}
	sources := sourcesOf(t, "shared", "functions")
	for key, m := range metrics {
		message, ok := rare[key]
		if !ok {
			if read[key] == 0 {
				t.Errorf("the metric %s reads no line that a function writes", key)
			}
			continue
		}
		// The call of the logger with its attributes, which may go on for two lines.
		_, call, written := strings.Cut(sources, `"`+message+`", `)
		call, _, _ = strings.Cut(call, ")\n")
		if !written || !strings.Contains(call, `"`+m.Label+`"`) || !strings.HasSuffix(m.Filter, `jsonPayload.message="`+message+`"`) {
			t.Errorf("the metric %s counts the line %q by %s, and no function writes it so", key, message, m.Label)
		}
	}
}

// TestAlertsReadLinesThatAreWritten holds the filter of each alert on a line against lines that functions and Cloud Run write.
func TestAlertsReadLinesThatAreWritten(t *testing.T) {
	d, err := terraform.Parse(root + "/terraform")
	must(t, err)
	alerts, err := d.Local("lines")
	must(t, err)
	sources := sourcesOf(t, "shared/trigger")
	function := func(message string) map[string]any {
		if !strings.Contains(sources, `Context(ctx, "`+message+`"`) {
			t.Errorf("no function writes the line %q", message)
		}
		return map[string]any{"jsonPayload": map[string]any{"message": message}}
	}
	tick := function("event rejected")
	tick["jsonPayload"].(map[string]any)["function"] = "HandlePatrol" //nolint:forcetypeassert // it is one
	run := func(text string) map[string]any {
		return map[string]any{"logName": "projects/demo/logs/run.googleapis.com%2Fvarlog%2Fsystem", "textPayload": text}
	}
	opens := map[string][]map[string]any{
		"crashed":   {function("function panicked"), run("Container called exit(1)."), run("Container called exit(137).")},
		"dropped":   {function("event rejected")},
		"memory":    {run("Memory limit of 512 MiB exceeded with 524 MiB used. Consider increasing the memory limit, see https://cloud.google.com/run/docs/configuring/memory-limits")},
		"unstarted": {run(`Default STARTUP TCP probe failed 1 time consecutively for container "worker" on port 8080. The instance was not started.`)},
		"": {
			function("event handled"), function("event left for redelivery"), tick, run("Container called exit(0)."),
			run(`Default STARTUP TCP probe succeeded after 1 attempt for container "worker" on port 8080.`),
			{"logName": "projects/demo/logs/run.googleapis.com%2Fstderr", "textPayload": "Container called exit(1)."},
		},
	}
	for alert, v := range alerts.AsValueMap() {
		filter, err := loggingtest.Parse(v.GetAttr("filter").AsString())
		if err != nil {
			t.Fatalf("%s: %v", alert, err)
		}
		for other, entries := range opens {
			for _, entry := range entries {
				if filter.MatchesFields(entry) != (alert == other) {
					t.Errorf("the alert %s and %v: want it to open: %v", alert, entry, alert == other)
				}
			}
		}
		if len(opens[alert]) == 0 {
			t.Errorf("no line is known that opens the alert %s", alert)
		}
	}
}

// TestAnErrorShowsNoSecret: Terraform shows the values of the expressions in a condition that fails, but of a map only how long it is. So no
// condition on an input that somebody may paste a token into reads one of its values.
func TestAnErrorShowsNoSecret(t *testing.T) {
	held := 0
	for _, v := range configuration(t).Variables {
		if v.Name != "notify" {
			continue
		}
		for _, condition := range v.Conditions {
			for _, read := range condition.Variables() {
				if held++; len(read) != 2 {
					t.Errorf("a condition on notify reads a single value, at %v", read.SourceRange())
				}
			}
		}
	}
	if held < 5 {
		t.Errorf("only %d readings were held", held)
	}
}

// logged plays a recorded incident and returns the lines of its functions, as the entries that Cloud Run makes of them.
func logged(t *testing.T, name string) (lines []map[string]any) {
	t.Helper()
	r, err := replay.Load(root + "/events/testdata/" + name)
	must(t, err)
	var b bytes.Buffer
	o := world.Options{Policy: r.Policy, Log: &b, Hooks: world.Hooks{Called: func(world.Call) {}}} // with Called there is a canary a day
	if _, err := replay.Run(t.Context(), r.Name, r.Scenario, r.Records, replay.Options{Options: o}); err != nil {
		t.Fatal(err)
	}
	attribute := regexp.MustCompile(`([\w.]+)=("(?:[^"\\]|\\.)*"|\S*)`)
	for raw := range strings.Lines(b.String()) {
		payload := map[string]any{}
		for _, a := range attribute.FindAllStringSubmatch(raw, -1) {
			value := a[2]
			if text, err := strconv.Unquote(value); err == nil {
				value = text
			}
			payload[a[1]] = value
			if number, err := strconv.ParseFloat(value, 64); err == nil {
				payload[a[1]] = number
			}
		}
		payload["message"] = payload["msg"]
		lines = append(lines, map[string]any{
			"resource":    map[string]any{"type": "cloud_run_revision", "labels": map[string]any{"service_name": "patrol"}},
			"jsonPayload": payload,
		})
	}
	return lines
}

// sourcesOf is the text of all Go files under some folders, without their tests.
func sourcesOf(t *testing.T, dirs ...string) string {
	t.Helper()
	var sources strings.Builder
	tree := os.DirFS(root)
	for _, dir := range dirs {
		err := fs.WalkDir(tree, dir, func(name string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
				return err
			}
			data, err := fs.ReadFile(tree, name)
			sources.Write(data)
			return err
		})
		must(t, err)
	}
	return sources.String()
}

// TestNoMetricWaitsForAFunction: alerts wait for their metrics, which Cloud Monitoring takes minutes to know. Metrics that wait for a
// function would add the minutes of its build.
func TestNoMetricWaitsForAFunction(t *testing.T) {
	m := configuration(t)
	for name, want := range map[string]bool{
		"google_logging_metric.counter": false, "google_logging_metric.distribution": false, "time_sleep.metrics": false,
		"google_monitoring_alert_policy.threshold": true, "google_monitoring_alert_policy.patrol": true,
	} {
		if got := m.After(name, "module.function"); got != want {
			t.Errorf("%s waits for the functions: %v, want %v", name, got, want)
		}
	}
}

// TestAGrantIsNotTakenAwayByItsSuccessor: what is created before its predecessor goes passes that order on to all that it refers to. A grant
// that is made anew without a change would then be created, which changes nothing, and taken away. So nothing in that order refers to a
// module, and the project's number, by which grants name Pub/Sub's agent, does not change with another input.
func TestAGrantIsNotTakenAwayByItsSuccessor(t *testing.T) {
	m := configuration(t)
	first := 0
	for name, b := range m.Resources {
		if m.Written(b, "lifecycle.create_before_destroy") != "true" {
			continue
		}
		first++
		if m.After(name, "module.function") || m.After(name, "module.log_sink") {
			t.Errorf("%s is created before its predecessor goes, and refers to a module", name)
		}
	}
	if first == 0 {
		t.Error("nothing is created before its predecessor goes: this shows nothing")
	}
	number := m.NeededBy(m.Locals["project_number"])
	if !slices.Equal(number, []string{"google_project_service_identity.agent"}) {
		t.Errorf("the project's number comes from %v", number)
	}
	for _, input := range []string{"var.region", "var.prefix", "var.docker_repository"} {
		if m.Written(m.Resources["module.function"], "project_number") != "local.project_number" || m.After("google_project_service_identity.agent", input) {
			t.Errorf("the project's number changes with %s", input)
		}
	}
}

// TestWhatAnOperatorPausedStaysPaused: the documented way to leave pauses the scheduler's job and then applies. Without ignore_changes the
// provider would resume the job at that apply.
func TestWhatAnOperatorPausedStaysPaused(t *testing.T) {
	m := configuration(t)
	if got := m.Written(m.Resources["google_cloud_scheduler_job.tick"], "lifecycle.ignore_changes"); got != "[paused]" {
		t.Errorf("the scheduler's job ignores changes of %q, want [paused]", got)
	}
}

// TestNothingIsOpenOrPrimitive searches every module for public access, primitive roles and expiring subscriptions.
func TestNothingIsOpenOrPrimitive(t *testing.T) {
	never := regexp.MustCompile(`allUsers|allAuthenticatedUsers|roles/(owner|editor|viewer)"|_iam_policy"|\n\s*event_trigger\s*\{`)
	for _, dir := range []string{
		"terraform", "terraform/modules/function", "terraform/modules/log-sink", "terraform/modules/training", "terraform/examples/one-project",
		"terraform/examples/several-projects", "terraform/examples/queued-resource", "terraform/examples/remote-state",
	} {
		files, err := filepath.Glob(filepath.Join(root, dir, "*.tf"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s holds no configuration: %v", dir, err)
		}
		for _, name := range files {
			data, err := os.ReadFile(name)
			must(t, err)
			if found := never.Find(data); found != nil {
				t.Errorf("%s has %q", name, found)
			}
		}
		m, err := parse(filepath.Join(root, dir))
		must(t, err)
		for name, b := range m.Resources {
			if !strings.HasPrefix(name, "google_pubsub_subscription.") {
				continue
			}
			if ttl := nested(b, "expiration_policy", "ttl"); ttl != "" {
				t.Errorf("%s: %s expires after %q; it has to say that it never does", dir, name, ttl)
			}
		}
		for _, d := range slices.Concat(m.Variables, m.Outputs) {
			if !strings.HasSuffix(d.Description, ".") {
				t.Errorf("%s: %s is not described in a sentence: %q", dir, d.Name, d.Description)
			}
		}
		for _, kind := range []string{"variable", "output"} {
			data, err := os.ReadFile(filepath.Join(root, dir, kind+"s.tf"))
			if err != nil {
				continue // an example has them in its one file
			}
			var names []string
			for _, found := range regexp.MustCompile(`(?m)^`+kind+` "(\w+)"`).FindAllSubmatch(data, -1) {
				names = append(names, string(found[1]))
			}
			if !slices.IsSorted(names) {
				t.Errorf("%s: its %ss are not in order: %s", dir, kind, strings.Join(names, ", "))
			}
		}
	}
}

// nested is an attribute of a block in a resource, or Google's default.
func nested(b *hclsyntax.Block, block, attribute string) string {
	for _, inner := range b.Body.Blocks {
		if inner.Type != block {
			continue
		}
		if a := inner.Body.Attributes[attribute]; a != nil {
			if v, diags := a.Expr.Value(nil); !diags.HasErrors() {
				return v.AsString()
			}
		}
	}
	return "31 days, by default"
}

// TestPermissionsAreThoseOfTheCalls plays the recorded incidents, and a fleet under faults, and compares each call that a
// function makes with the table.
func TestPermissionsAreThoseOfTheCalls(t *testing.T) {
	if testing.Short() {
		t.Skip("it plays all incidents and many seeds, as the tests of scripts/sim do")
	}
	var mu sync.Mutex
	made := map[string]bool{}
	called := func(c world.Call) {
		mu.Lock()
		defer mu.Unlock()
		call := c.Function + ": " + c.Service + " " + c.Method
		if c.Object != "" {
			call += " " + path.Base(c.Object) // a grant names the object, and no directory
		}
		made[call] = true
	}
	recorded, err := filepath.Glob(root + "/events/testdata/*/scenario.yaml")
	if err != nil || len(recorded) == 0 {
		t.Fatalf("no recorded incidents: %v", err)
	}
	for i, name := range recorded {
		r, err := replay.Load(filepath.Dir(name))
		must(t, err)
		if (r.Name == "stockout-six-hours" || r.Name == "night-without-room") && !breadth.Full() {
			continue // they take as long as all others together
		}
		// Once as it was, and once as if Pitstop had been deployed a second before the first entry and knew no workload yet.
		starts := []time.Time{r.Scenario.Start}
		if i%breadth.Every(4) == 0 && len(r.Records) > 0 {
			first, err := events.Read(r.Records[0].Raw)
			must(t, err)
			starts = append(starts, first.Time.Add(-time.Second))
		}
		for _, start := range starts {
			r.Scenario.Start = start
			if _, err := replay.Run(t.Context(), r.Name, r.Scenario, r.Records, replay.Options{Options: world.Options{Policy: r.Policy, Hooks: world.Hooks{Called: called, Tell: tell}}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	faults, err := faults.Named("heavy")
	must(t, err)
	// Some calls are rare, so fleets are played until each permission was used.
	const most = 30
	least := uint64(1)
	if breadth.Full() {
		least = 6
	}
	for seed := range uint64(most) {
		fleet, policies := sim.MixedFleet(seed)
		_, err := sim.Simulate(t.Context(), sim.Simulation{
			Seed: seed, Days: 1, World: sim.Few(fleet, seed, 5), Policy: policies, Faults: faults, Limit: sim.NoLimit, Hooks: world.Hooks{Called: called},
		})
		must(t, err)
		if seed+1 >= least && len(unused(made)) == 0 {
			break
		}
	}
	for _, what := range unused(made) {
		t.Errorf("no call of %s: take it out of permissions.go", what)
	}
	listed := map[string]bool{}
	for _, p := range permissions {
		for _, account := range p.Accounts {
			for _, call := range p.called() {
				listed[account+": "+call] = true
			}
		}
	}
	for call := range inClusters(t) {
		listed[call] = true
	}
	for _, call := range slices.Sorted(maps.Keys(made)) {
		if !listed[call] {
			t.Errorf("%s: the table has no permission for this call", call)
		}
	}
}

// inClusters are the calls that clusters themselves allow, each with its account.
func inClusters(t *testing.T) map[string]bool {
	t.Helper()
	account := func(function, id string) rbac.Account {
		return rbac.Account{Email: function + "@demo.iam.gserviceaccount.com", ID: id}
	}
	manifest, err := rbac.Manifest(rbac.Options{
		Patrol: account("patrol", "1"), Recreate: account("recreate", "2"), Checkpoint: account("checkpoint", "3"),
		Allow: "recreate,early_maintenance", All: true,
	})
	must(t, err)
	all := map[string]bool{}
	for d := yaml.NewDecoder(strings.NewReader(manifest)); ; {
		var role struct {
			Metadata struct{ Name string }
			Rules    []struct{ Resources, Verbs []string }
		}
		switch err := d.Decode(&role); {
		case errors.Is(err, io.EOF):
			return all
		case err != nil:
			t.Fatal(err)
		}
		function, _, _ := strings.Cut(strings.TrimPrefix(role.Metadata.Name, "pitstop:"), "@")
		for _, r := range role.Rules {
			for _, verb := range r.Verbs {
				all[function+": kubernetes "+r.Resources[0]+"."+verb] = true
			}
		}
	}
}

// people are a target that accepts every message.
type people struct{}

func (people) Name() string { return "people" }
func (people) Knows() bool  { return true }
func (people) Send(context.Context, notify.Message) (thread string, err error) {
	return "", nil
}

func tell(func() time.Time) []notify.Target { return []notify.Target{people{}} }

// unused are the permissions that none of the calls needs, each with its account.
func unused(made map[string]bool) (what []string) {
	for _, p := range permissions {
		for _, account := range p.Accounts {
			if len(p.Calls) > 0 && !slices.ContainsFunc(p.called(), func(call string) bool { return made[account+": "+call] }) {
				what = append(what, account+" needs "+p.Name+" on "+p.On)
			}
		}
	}
	return what
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
