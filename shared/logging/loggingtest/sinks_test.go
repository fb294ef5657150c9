package loggingtest_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pitstop.internal/events"
	"pitstop.internal/shared/logging/loggingtest"
)

// us is an account that the entries in sources were made with.
const us = "pitstop-recreate@demo.iam.gserviceaccount.com"

// operator is a controller that the deployment names.
const operator = "system:serviceaccount:ray-system:kuberay-operator"

var known = events.Accounts{Ours: []string{us}, Controllers: []string{operator}}

const sources = "../../../events/testdata/sources"

// passed names the sinks that let an entry through.
func passed(t *testing.T, filters map[string]*loggingtest.Filter, entry []byte) []string {
	t.Helper()
	var names []string
	for name, f := range filters {
		ok, err := f.Matches(entry)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func filters(t *testing.T) map[string]*loggingtest.Filter {
	t.Helper()
	out := map[string]*loggingtest.Filter{}
	for _, s := range events.Sinks(known) {
		f, err := loggingtest.Parse(s.Filter)
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		out[s.Name] = f
	}
	return out
}

func decode(t *testing.T, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(sources, file))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}

// TestEachSinkLetsItsSourceThroughAndNothingElse: an entry passes only the sink that its test case names, or none. The
// filter that fetches the past selects the entries of all sinks.
func TestEachSinkLetsItsSourceThroughAndNothingElse(t *testing.T) {
	all := filters(t)
	whole, err := loggingtest.Parse(events.Whole(events.Sinks(known)))
	if err != nil {
		t.Fatal(err)
	}
	var wants map[string]map[string]struct {
		Sink    string `json:"sink"`
		Ignored string `json:"ignored"`
	}
	decode(t, "want.json", &wants)
	reached := map[string]bool{}
	for source, want := range wants {
		var entries []json.RawMessage
		decode(t, source+".json", &entries)
		for _, entry := range entries {
			var id struct {
				InsertID  string `json:"insertId"`
				MessageID string `json:"messageId"`
			}
			if err := json.Unmarshal(entry, &id); err != nil {
				t.Fatal(err)
			}
			name := id.InsertID + id.MessageID
			var sinks []string
			if s := want[name].Sink; s != "" {
				sinks = []string{s}
				reached[s] = true
			}
			got := passed(t, all, entry)
			if !slices.Equal(got, sinks) {
				t.Errorf("%s/%s passes %v, want %v", source, name, got, sinks)
			}
			if ok, err := whole.Matches(entry); err != nil || ok != (len(sinks) > 0) {
				t.Errorf("%s/%s is fetched: %v, %v", source, name, ok, err)
			}
		}
	}
	for name := range all {
		if !reached[name] {
			t.Errorf("no entry shows what passes %s", name)
		}
	}
}

// TestAStrangersAccountIsTheOwners: a call that somebody else begins passes, whatever the name of the account. Only this
// deployment's accounts count as ours.
func TestAStrangersAccountIsTheOwners(t *testing.T) {
	var entries []json.RawMessage
	decode(t, "tpu-audit.json", &entries)
	i := slices.IndexFunc(entries, func(e json.RawMessage) bool { return strings.Contains(string(e), `"our-delete-begun"`) })
	if i < 0 {
		t.Fatal("no entry of ours that has only begun")
	}
	for account, want := range map[string][]string{
		us: nil, "pitstop-x@other.iam.gserviceaccount.com": {"tpu-audit"}, "pitstop-recreate@demo2.iam.gserviceaccount.com": {"tpu-audit"},
		"pitstop-other@demo.iam.gserviceaccount.com": {"tpu-audit"}, "x-" + us: {"tpu-audit"},
	} {
		entry := strings.ReplaceAll(string(entries[i]), us, account)
		if got := passed(t, filters(t), []byte(entry)); !slices.Equal(got, want) {
			t.Errorf("what %s begins passes %v, want %v", account, got, want)
		}
	}
	for _, s := range events.Sinks(events.Accounts{}) { // where nobody is known to be us
		f, err := loggingtest.Parse(s.Filter)
		if err != nil {
			t.Fatal(err)
		}
		if ok, err := f.Matches(entries[i]); err != nil || ok != (s.Name == "tpu-audit") {
			t.Errorf("%s lets it through: %v, %v", s.Name, ok, err)
		}
	}
}

// TestAToolsCallReachesTheFunction: what a service account of a cluster does to a Job passes the deployed sink, unless it is a controller,
// or Pitstop. What nobody is named for passes too. Whatever passes neither is noted, so together both sinks select every call.
func TestAToolsCallReachesTheFunction(t *testing.T) {
	deployed := filters(t)
	var entries []json.RawMessage
	decode(t, "gke-jobs.json", &entries)
	for _, id := range []string{"job-deleted", "job-created", "job-suspended", "jobset-deleted"} {
		i := slices.IndexFunc(entries, func(e json.RawMessage) bool { return strings.Contains(string(e), `"`+id+`"`) })
		if i < 0 {
			t.Fatalf("no entry %s", id)
		}
		for who, party := range map[string]events.Party{
			`"principalEmail":"ann@example.com"`:                                                                   events.PartyOwner,
			`"principalEmail":"system:serviceaccount:argocd:argocd-application-controller"`:                        events.PartyOwner,
			`"principalEmail":"system:serviceaccount:flux-system:kustomize-controller"`:                            events.PartyOwner,
			`"principalEmail":"system:serviceaccount:kube-system-2:default"`:                                       events.PartyOwner,
			`"principalEmail":"ci@demo.iam.gserviceaccount.com"`:                                                   events.PartyOwner,
			`"principalEmail":"pitstop-recreate@demo2.iam.gserviceaccount.com"`:                                    events.PartyOwner,
			`"principalSubject":"principal://iam.googleapis.com/locations/global/workforcePools/corp/subject/ann"`: events.PartyOwner,
			``: events.PartyOwner,
			`"principalEmail":"system:serviceaccount:kube-system:job-controller"`:                   events.PartyController,
			`"principalEmail":"system:serviceaccount:jobset-system:jobset-controller-manager"`:      events.PartyController,
			`"principalEmail":"system:serviceaccount:kueue-system:kueue-controller-manager"`:        events.PartyController,
			`"principalEmail":"system:serviceaccount:gke-managed-jobset:jobset-controller-manager"`: events.PartyController,
			`"principalEmail":"system:node:gke-tpu-2f41c6aa-bq7x"`:                                  events.PartyController,
			`"principalEmail":"` + operator + `"`:                                                   events.PartyController,
			`"principalEmail":"` + us + `"`:                                                         events.PartyOurs,
		} {
			entry := strings.Replace(string(entries[i]), `"principalEmail": "ann@example.com"`, who, 1)
			if entry == string(entries[i]) && !strings.Contains(who, "ann@example.com") {
				t.Fatalf("%s names nobody to replace", id)
			}
			want := "gke-controllers"
			if party == events.PartyOwner {
				want = "gke-jobs"
			}
			if got := passed(t, deployed, []byte(entry)); !slices.Equal(got, []string{want}) {
				t.Errorf("%s by %s passes %v, want %s", id, who, got, want)
			}
			e, err := events.Read([]byte(entry))
			if err != nil {
				t.Fatal(err)
			}
			if got := known.Party(e.Call); got != party {
				t.Errorf("%s by %s is judged as of %s, want %s", id, who, got, party)
			}
		}
	}
}

// TestWhatASinkSendsIsUnderstood: a sink with a topic sends no entry that is only noted. An entry that it sends and that is
// still ignored comes from a newer writer.
func TestWhatASinkSendsIsUnderstood(t *testing.T) {
	newer := []string{"newer than this release", "is unknown"}
	all := filters(t)
	files, err := filepath.Glob(sources + "/*.json")
	if err != nil || len(files) < 2 {
		t.Fatalf("%v: %v", files, err)
	}
	for _, file := range files {
		if filepath.Base(file) == "want.json" {
			continue
		}
		var entries []json.RawMessage
		decode(t, filepath.Base(file), &entries)
		for _, entry := range entries {
			e, err := events.Read(entry)
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range events.Sinks(known) {
				if s.Topic == "" || !slices.Contains(passed(t, all, entry), s.Name) {
					continue
				}
				if e.Ignored != "" && !slices.ContainsFunc(newer, func(w string) bool { return strings.Contains(e.Ignored, w) }) {
					t.Errorf("%s lets %s through, of which nothing follows: %s", s.Name, e.ID, e.Ignored)
				}
				if notice := e.Kind == events.KindNotice; notice != (s.Topic == events.TopicNotices) {
					t.Errorf("%s sends an entry about %s to %s", s.Name, e.Kind, s.Topic)
				}
			}
		}
	}
}

// TestFiltersAreAsCloudLoggingTakesThem holds their length and that each names its logs and resources, and leaves out the
// functions' own.
func TestFiltersAreAsCloudLoggingTakesThem(t *testing.T) {
	for _, s := range events.Sinks(known) {
		if len(s.Filter) >= events.MaxFilter || s.About == "" {
			t.Errorf("%s: %d characters, about %q", s.Name, len(s.Filter), s.About)
		}
		named := strings.Contains(s.Filter, "log_id(") || strings.Contains(s.Filter, "logName=~")
		if !named || !strings.Contains(s.Filter, "resource.type=") || !strings.Contains(s.Filter, `NOT resource.type=("cloud_run_revision"`) {
			t.Errorf("%s names no log, no resource, or lets the functions' lines through:\n%s", s.Name, s.Filter)
		}
		if strings.ContainsAny(s.Filter, `'\`) {
			t.Errorf("%s cannot stand in a shell's quotes as it is:\n%s", s.Name, s.Filter)
		}
	}
	if n := len(events.Whole(events.Sinks(known))); n >= events.MaxFilter {
		t.Errorf("the whole filter has %d characters", n)
	}
}

// TestLogsOfTheirOwn: the crew's log and the canary's pass the sinks that are theirs, whatever they say.
func TestLogsOfTheirOwn(t *testing.T) {
	all := filters(t)
	for log, resource := range map[string]string{events.CrewLog: "gce_instance", events.CanaryLog: "global"} {
		entry := `{"logName":"projects/p/logs/` + log + `","resource":{"type":"` + resource + `"},"severity":"ERROR",
"textPayload":"SIGTERM caught at","jsonPayload":{"message":"Job received termination signal (SIGTERM).","reason":"NodeNotReady","jobState":"JOB_STATE_FAILED"},
"protoPayload":{"serviceName":"tpu.googleapis.com","methodName":"compute.instances.preempted","resourceName":"projects/p/zones/z/instances/t1v-n-3f2a9c01-w-0"}}`
		if got, want := passed(t, all, []byte(entry)), strings.TrimPrefix(log, "pitstop-"); !slices.Equal(got, []string{want}) {
			t.Errorf("%s passes %v, want %s", log, got, want)
		}
	}
}
