package cloud_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	writer "cloud.google.com/go/logging"
	"google.golang.org/api/logging/v2"
	"google.golang.org/api/option"
	tpu "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/metadata"
	"pitstop.internal/scripts/sim/cloud"
	"pitstop.internal/shared/view"
)

const token = "open"

// post makes something happen, and returns the answer's status and its error.
func post(t *testing.T, url, token, name, body string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+cloud.AdminPrefix+name, strings.NewReader(body))
	must(t, err)
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	raw, err := io.ReadAll(resp.Body)
	must(t, err)
	must(t, resp.Body.Close())
	var said struct{ Error string }
	must(t, json.Unmarshal(raw, &said))
	return resp.StatusCode, said.Error
}

// bench is a served cloud with its clock and a client.
type bench struct {
	*cloud.Cloud
	now   *hand
	url   string
	nodes *tpu.ProjectsLocationsNodesService
}

func newBench(t *testing.T) bench {
	t.Helper()
	b := bench{now: newHand()}
	b.Cloud = made(t, cloud.Config{Fleet: fleet(t), Now: b.now.Now, Token: token})
	b.url = served(t, b.Cloud)
	api, err := tpu.NewService(t.Context(), endpoint(b.url)...)
	must(t, err)
	b.nodes = api.Projects.Locations.Nodes
	return b
}

const llama = "projects/demo/locations/" + zone + "/nodes/llama-8b"

// happens makes something happen that is not refused.
func (b bench) happens(t *testing.T, name, body string) {
	t.Helper()
	if code, fault := post(t, b.url, token, name, body); code != http.StatusOK {
		t.Fatalf("%s %s: %d %s", name, body, code, fault)
	}
}

func (b bench) node(t *testing.T) *tpu.Node {
	t.Helper()
	n, err := b.nodes.Get(llama).Do()
	must(t, err)
	return n
}

// TestWhatCanBeMadeToHappen makes each act happen once, and looks at its effect through the API.
func TestWhatCanBeMadeToHappen(t *testing.T) {
	const it = `"zone":"us-west4-a","node":"llama-8b"`
	shows := func(state, health string) func(*testing.T, bench) {
		return func(t *testing.T, b bench) {
			t.Helper()
			if n := b.node(t); n.State != state || n.Health != health {
				t.Errorf("it is %s and %q, want %s and %q", n.State, n.Health, state, health)
			}
		}
	}
	fails := func(says string) func(*testing.T, bench) {
		return func(t *testing.T, b bench) {
			t.Helper()
			if _, err := b.nodes.Get(llama).Do(); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("a reading: %v, want %q", err, says)
			}
			b.node(t) // the next one succeeds
		}
	}
	held := map[string]bool{}
	for _, c := range []struct {
		name, act, body string
		then            func(*testing.T, bench)
	}{
		{"preemption", "preempt", "{" + it + "}", shows("PREEMPTED", "")},
		{"end", "terminate", "{" + it + "}", shows("TERMINATED", "")},
		{"host error for good", "host-error", "{" + it + "}", func(t *testing.T, b bench) {
			b.now.pass(240 * time.Hour)
			shows("REPAIRING", "TIMEOUT")(t, b)
		}},
		{"host error for a while", "host-error", "{" + it + `,"for":"10m"}`, func(t *testing.T, b bench) {
			shows("REPAIRING", "TIMEOUT")(t, b)
			b.now.pass(10 * time.Minute)
			shows("READY", "HEALTHY")(t, b)
		}},
		{"maintenance now", "maintenance", "{" + it + "}", func(t *testing.T, b bench) {
			shows("READY", "UNHEALTHY_MAINTENANCE")(t, b)
			b.now.pass(20 * time.Minute)
			shows("READY", "HEALTHY")(t, b)
		}},
		{"announced maintenance", "maintenance", "{" + it + `,"in":"2h","for":"1h"}`, func(t *testing.T, b bench) {
			n := b.node(t)
			if m := n.UpcomingMaintenance; n.Health != "HEALTHY" || m == nil || m.MaintenanceStatus != "PENDING" || m.WindowStartTime != "2026-11-12T04:00:00Z" {
				t.Errorf("%s, it announces %+v", n.Health, m)
			}
			b.now.pass(2 * time.Hour)
			shows("READY", "UNHEALTHY_MAINTENANCE")(t, b)
			b.now.pass(time.Hour)
			shows("READY", "HEALTHY")(t, b)
		}},
		{"withdrawn maintenance", "withdraw", "{" + it + "}", func(t *testing.T, b bench) {
			b.happens(t, "maintenance", "{"+it+`,"in":"2h"}`)
			b.happens(t, "withdraw", "{"+it+"}")
			b.now.pass(3 * time.Hour)
			shows("READY", "HEALTHY")(t, b)
		}},
		{"stockout", "stockout", `{"zone":"us-west4-b","for":"1h"}`, func(t *testing.T, b bench) {
			if n := b.API.Capacity("us-west4-b"); n != 0 {
				t.Errorf("the zone has room for %d slices", n)
			}
			b.now.pass(time.Hour)
			b.node(t)
			if n := b.API.Capacity("us-west4-b"); n != -1 {
				t.Errorf("later the zone has room for %d slices, want what it had", n)
			}
		}},
		{"stockout of Spot", "stockout", `{"zone":"us-west4-b","of":"spot","for":"1h"}`, func(t *testing.T, b bench) {
			if n := b.API.Room(view.Place{Zone: "us-west4-b", Capacity: events.Spot}); n != 0 || b.API.Capacity("us-west4-b") != -1 {
				t.Errorf("the zone has room for %d Spot slices", n)
			}
		}},
		{"capacity", "capacity", `{"zone":"us-west4-b","slices":7}`, func(t *testing.T, b bench) {
			if n := b.API.Capacity("us-west4-b"); n != 7 {
				t.Errorf("the zone has room for %d slices", n)
			}
		}},
		{"slow deletion", "slow", `{"method":"DeleteNode","for":"1h"}`, func(t *testing.T, b bench) {
			_, err := b.nodes.Delete(llama).Do()
			must(t, err)
			b.now.pass(30 * time.Minute)
			shows("DELETING", "HEALTHY")(t, b)
		}},
		{"too many calls", "fail", `{"method":"GetNode","code":429}`, fails("Too Many Requests")},
		{"refusal", "fail", `{"code":403,"message":"no right"}`, fails("no right")},
		{"lost answer", "lose-answer", `{"method":"GetNode"}`, fails("EOF")},
		{"lost request", "lose-request", `{"method":"GetNode"}`, fails("EOF")},
	} {
		held[c.act] = true
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.happens(t, c.act, c.body)
			c.then(t, b)
		})
	}
	for _, name := range cloud.Acts() {
		if !held[name] {
			t.Errorf("%s was never made to happen", name)
		}
	}
}

// TestActsOfCapacityThatOverlap: the latest act decides, and what the zone has again after a while is what it was given for good.
func TestActsOfCapacityThatOverlap(t *testing.T) {
	type step struct {
		at        time.Duration
		act, says string
	}
	stockout := func(at time.Duration, lasts string) step {
		return step{at, "stockout", `{"zone":"us-west4-b","for":"` + lasts + `"}`}
	}
	for name, c := range map[string]struct {
		steps []step
		want  map[time.Duration]int
	}{
		"a second stockout ends later": {
			[]step{stockout(0, "10m"), stockout(5*time.Minute, "10m")},
			map[time.Duration]int{9 * time.Minute: 0, 11 * time.Minute: 0, 15 * time.Minute: -1},
		},
		"a second stockout ends sooner": {
			[]step{stockout(0, "1h"), stockout(5*time.Minute, "10m")},
			map[time.Duration]int{14 * time.Minute: 0, 15 * time.Minute: -1, 2 * time.Hour: -1},
		},
		"a capacity for good stays": {
			[]step{stockout(0, "10m"), {5 * time.Minute, "capacity", `{"zone":"us-west4-b","slices":7}`}},
			map[time.Duration]int{4 * time.Minute: 0, 6 * time.Minute: 7, 11 * time.Minute: 7},
		},
		"a stockout for good stays": {
			[]step{stockout(0, "10m"), {5 * time.Minute, "stockout", `{"zone":"us-west4-b"}`}},
			map[time.Duration]int{6 * time.Minute: 0, 11 * time.Minute: 0},
		},
		"a capacity for a while after one for good": {
			[]step{{0, "capacity", `{"zone":"us-west4-b","slices":7}`}, {time.Minute, "capacity", `{"zone":"us-west4-b","slices":1,"for":"10m"}`}},
			map[time.Duration]int{2 * time.Minute: 1, 11 * time.Minute: 7},
		},
		"another zone": {
			[]step{stockout(0, "10m"), {5 * time.Minute, "capacity", `{"zone":"us-west4-a","slices":7}`}},
			map[time.Duration]int{9 * time.Minute: 0, 10 * time.Minute: -1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			steps, passed := c.steps, time.Duration(0)
			for minute := time.Duration(0); minute <= 2*time.Hour; minute += time.Minute {
				b.now.pass(minute - passed)
				passed = minute
				b.Catch()
				for len(steps) > 0 && steps[0].at == minute {
					b.happens(t, steps[0].act, steps[0].says)
					steps = steps[1:]
				}
				if want, asked := c.want[minute]; asked {
					if n := b.API.Capacity("us-west4-b"); n != want {
						t.Errorf("after %v the zone has room for %d slices, want %d", minute, n, want)
					}
				}
			}
		})
	}
}

func TestWhatCannotBeMadeToHappen(t *testing.T) {
	b := newBench(t)
	for says, c := range map[string]struct {
		token, act, body string
		code             int
	}{
		"send the token that the cloud printed":  {"", "preempt", `{}`, 401},
		"send the token that the cloud":          {"guess", "preempt", `{}`, 401},
		"there is no act \"explode\"; there are": {token, "explode", `{}`, 404},
		"preempt takes a JSON object":            {token, "preempt", ``, 400},
		"unknown field \"nod\"":                  {token, "preempt", `{"nod":"x"}`, 400},
		"no node x in us-west4-a":                {token, "preempt", `{"zone":"us-west4-a","node":"x"}`, 400},
		"\"soon\" is no duration":                {token, "maintenance", `{"in":"soon"}`, 400},
		"\"-1s\" is no duration":                 {token, "maintenance", `{"in":"-1s"}`, 400},
		"no node  in us-west4-a":                 {token, "maintenance", `{"zone":"us-west4-a","in":"1h"}`, 400},
		"there is no zone \"moon\"":              {token, "stockout", `{"zone":"moon"}`, 400},
		"say with slices how many":               {token, "capacity", `{"zone":"us-west4-a"}`, 400},
		"say with for how much longer":           {token, "slow", `{}`, 400},
		"code 418 is none of":                    {token, "fail", `{"code":418}`, 400},
		"has no method \"Delete\"":               {token, "lose-answer", `{"method":"Delete"}`, 400},
	} {
		code, fault := post(t, b.url, c.token, c.act, c.body)
		if code != c.code || !strings.Contains(fault, says) || strings.Contains(fault, "\n") {
			t.Errorf("%s %s: %d %q, want %d %q", c.act, c.body, code, fault, c.code, says)
		}
	}
	closed := served(t, made(t, cloud.Config{}))
	for _, token := range []string{"", "x"} {
		if code, _ := post(t, closed, token, "capacity", `{"zone":"us-west4-a","slices":1}`); code != http.StatusUnauthorized {
			t.Errorf("a cloud without a token took an act with the token %q: %d", token, code)
		}
	}
	if n := b.node(t); n.State != "READY" || n.UpcomingMaintenance != nil {
		t.Errorf("something refused took effect: %+v", n)
	}
}

// TestACrewFindsItsMachine: the crew's own client and the guest attributes of the API meet at the metadata server of a machine.
func TestACrewFindsItsMachine(t *testing.T) {
	b := newBench(t)
	host := strings.TrimPrefix(b.url, "http://") + "/machines/us-west4-a/llama-8b/"
	c := metadata.New(host + "2")
	m, err := c.Machine(t.Context())
	must(t, err)
	if m.Project != "demo" || m.Zone != zone || m.Node != "llama-8b" || m.Worker != 2 || m.Workers != 4 || m.Accelerator != "v5litepod-16" || m.Directory != "gs://ckpt/llama-8b" ||
		m.Host != b.API.Hosts(zone, "llama-8b")[2] || !m.ServiceAccounts {
		t.Errorf("%+v", m)
	}
	must(t, c.Put(t.Context(), "pitstop", "crew", []byte("ready")))
	got, err := b.nodes.GetGuestAttributes(llama, &tpu.GetGuestAttributesRequest{QueryPath: "pitstop/crew", WorkerIds: []string{"2"}}).Do()
	must(t, err)
	if items := got.GuestAttributes[0].QueryValue.Items; len(items) != 1 || items[0].Value != "ready" {
		t.Errorf("guest attributes %+v", items)
	}

	value := func(path string) string {
		t.Helper()
		v, err := c.Get(t.Context(), path)
		must(t, err)
		return v.Text
	}
	if _, err := c.Get(t.Context(), metadata.PathUpcoming); err == nil {
		t.Error("maintenance is announced from the beginning")
	}
	const it = `{"zone":"us-west4-a","node":"llama-8b"`
	b.happens(t, "maintenance", it+`,"in":"2h"}`)
	notice, err := metadata.Notice(value(metadata.PathUpcoming))
	must(t, err)
	if notice == nil || notice.Status != events.NoticePending || !notice.CanReschedule || !notice.WindowStart.Equal(newHand().Now().Add(2*time.Hour)) {
		t.Errorf("it announces %+v", notice)
	}
	b.now.pass(2 * time.Hour)
	b.Catch()
	if got := value(metadata.PathEvent); got != "TERMINATE_ON_HOST_MAINTENANCE" {
		t.Errorf("in maintenance it says %q", got)
	}
	b.now.pass(time.Hour)
	b.Catch()
	if got := value(metadata.PathEvent); got != "NONE" {
		t.Errorf("after maintenance it says %q", got)
	}
	must(t, patched(b, map[string]string{"k": "v"}))
	attributes, err := metadata.Attributes(value(metadata.PathAttributes))
	must(t, err)
	if _, left := attributes["startup-script"]; attributes["k"] != "v" || left {
		t.Errorf("the node's metadata is %v", attributes)
	}

	// A hanging request learns of the preemption.
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	told := make(chan string, 8)
	go c.Watch(ctx, metadata.PathPreempted, func(text string) { told <- text }, func(error) {})
	says := func(want string) {
		t.Helper()
		select {
		case got := <-told:
			if got != want {
				t.Errorf("whether it is preempted: %q, want %q", got, want)
			}
		case <-ctx.Done():
			t.Fatalf("it never said whether it is preempted: want %q", want)
		}
	}
	says("FALSE")
	b.hangs(t, 2)
	b.happens(t, "preempt", it+"}")
	says("TRUE")
	for _, path := range []string{"9", "x", "-1"} {
		if _, err := metadata.New(host+path).Get(t.Context(), "instance/name"); err == nil {
			t.Errorf("there is a machine %s", path)
		}
	}
}

// hangs waits until a request waits for a change at the metadata server of a worker.
func (b bench) hangs(t *testing.T, worker int) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); b.Waiting(zone, "llama-8b", worker) == 0; runtime.Gosched() {
		if time.Now().After(deadline) {
			t.Fatal("no request waits")
		}
	}
}

// TestAMachineThatEndsCutsItsRequests: nobody waits at a machine that is deleted with its node.
func TestAMachineThatEndsCutsItsRequests(t *testing.T) {
	b := newBench(t)
	c := metadata.New(strings.TrimPrefix(b.url, "http://") + "/machines/us-west4-a/llama-8b/0")
	v, err := c.Get(t.Context(), metadata.PathPreempted)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := c.Get(ctx, metadata.PathPreempted+"?wait_for_change=true&timeout_sec=600&last_etag="+v.ETag)
		ended <- err
	}()
	b.hangs(t, 0)
	_, err = b.nodes.Delete(llama).Do()
	must(t, err)
	b.now.pass(10 * time.Minute)
	b.Catch()
	if err := <-ended; err == nil || ctx.Err() != nil {
		t.Errorf("the request ended with %v, %v", err, ctx.Err())
	}
}

func patched(b bench, metadata map[string]string) error {
	_, err := b.nodes.Patch(llama, &tpu.Node{Metadata: metadata}).UpdateMask("metadata").Do()
	return err
}

// TestEntriesAreWrittenAndFound over both wires, and reach a sink.
func TestEntriesAreWrittenAndFound(t *testing.T) {
	now := newHand()
	sunk := make(chan []byte, 100)
	c := made(t, cloud.Config{Fleet: fleet(t), Now: now.Now, Token: token, Logged: func(e []byte) { sunk <- e }})
	url := served(t, c)
	rest, err := logging.NewService(t.Context(), endpoint(url)...)
	must(t, err)
	_, err = rest.Entries.Write(&logging.WriteLogEntriesRequest{
		LogName: "projects/demo/logs/mine", Resource: &logging.MonitoredResource{Type: "global"}, Labels: map[string]string{"a": "outer", "b": "outer"},
		Entries: []*logging.LogEntry{{TextPayload: "over HTTP", Labels: map[string]string{"a": "own"}}},
	}).Do()
	must(t, err)
	_, err = rest.Entries.Write(&logging.WriteLogEntriesRequest{DryRun: true, LogName: "projects/demo/logs/mine", Entries: []*logging.LogEntry{{TextPayload: "dry"}}}).Do()
	must(t, err)
	if _, err := rest.Entries.Write(&logging.WriteLogEntriesRequest{Entries: []*logging.LogEntry{{TextPayload: "nameless"}}}).Do(); err == nil {
		t.Error("an entry without a log was taken")
	}
	client, err := writer.NewClient(t.Context(), "demo", append(plain(), option.WithEndpoint(strings.TrimPrefix(url, "http://")))...)
	must(t, err)
	must(t, client.Logger("mine").LogSync(t.Context(), writer.Entry{Payload: "by gRPC", Timestamp: now.Now()}))
	must(t, client.Close())
	now.pass(time.Second)
	found, err := rest.Entries.List(&logging.ListLogEntriesRequest{ResourceNames: []string{"projects/demo"}, Filter: `logName="projects/demo/logs/mine"`}).Do()
	must(t, err)
	var texts []string
	for _, e := range found.Entries {
		texts = append(texts, e.TextPayload)
		if e.InsertId == "" || e.Timestamp == "" || e.ReceiveTimestamp == "" {
			t.Errorf("%+v is not complete", e)
		}
		if e.TextPayload == "over HTTP" && (e.Labels["a"] != "own" || e.Labels["b"] != "outer" || e.Resource.Type != "global") {
			t.Errorf("labels %v, resource %+v", e.Labels, e.Resource)
		}
	}
	if !slices.Equal(texts, []string{"over HTTP", "by gRPC"}) {
		t.Errorf("found %q", texts)
	}
	if code, fault := post(t, url, token, "preempt", `{"zone":"us-west4-a","node":"llama-8b"}`); code != http.StatusOK {
		t.Fatal(fault)
	}
	preempted := 0
	for range len(sunk) {
		if bytes.Contains(<-sunk, []byte("compute.instances.preempted")) {
			preempted++
		}
	}
	if preempted != 4 {
		t.Errorf("the sink got %d entries of the preemption, want one for each of 4 workers", preempted)
	}
}

// TestEntriesThatAreNone are refused, and leave the log as it was.
func TestEntriesThatAreNone(t *testing.T) {
	b := newBench(t)
	ask := func(method, body string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, b.url+"/v2/entries:"+method, strings.NewReader(body))
		must(t, err)
		resp, err := http.DefaultClient.Do(r)
		must(t, err)
		raw, err := io.ReadAll(resp.Body)
		must(t, err)
		must(t, resp.Body.Close())
		return resp.StatusCode, string(raw)
	}
	const log = `"logName":"projects/demo/logs/mine"`
	for _, entries := range []string{
		`[null]`, `[{` + log + `},null]`, `[{}]`, `[{"logName":5}]`, `[{` + log + `,"timestamp":"yesterday"}]`, `[{` + log + `,"timestamp":5}]`,
		`[{` + log + `,"insertId":5}]`, `[5]`, `5`,
	} {
		if code, said := ask("write", `{"entries":`+entries+`}`); code != http.StatusBadRequest || !strings.Contains(said, "INVALID_ARGUMENT") {
			t.Errorf("%s: %d %s", entries, code, said)
		}
	}
	if code, said := ask("write", `{"entries":[{`+log+`,"textPayload":"a"},{`+log+`,"timestamp":"2026-11-12T02:00:00.5+01:00","textPayload":"b"}]}`); code != http.StatusOK {
		t.Errorf("two entries: %d %s", code, said)
	}
	b.now.pass(time.Second)
	for _, filter := range []string{``, `,"filter":""`, `,"filter":" "`} {
		code, said := ask("list", `{"resourceNames":["projects/demo"]`+filter+`}`)
		if code != http.StatusOK || strings.Count(said, "projects/demo/logs/mine") != 2 {
			t.Errorf("all entries, %q: %d %s", filter, code, said)
		}
	}
	for _, body := range []string{``, `5`, `null`, `{"resourceNames":["projects/demo"],"filter":5}`, `{"mine":1}`} {
		if code, said := ask("list", body); code != http.StatusBadRequest && code != http.StatusForbidden {
			t.Errorf("list %s: %d %s", body, code, said)
		}
	}
}

// TestWhoCalls: the tools of people call as the owner, everybody else as Pitstop, and who sends an address as that. No other token is
// shown: it may be a real one.
func TestWhoCalls(t *testing.T) {
	b := newBench(t)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, b.url+"/machines/us-west4-a/llama-8b/0/computeMetadata/v1/instance/service-accounts/default/token", http.NoBody)
	must(t, err)
	r.Header.Set("Metadata-Flavor", "Google")
	resp, err := http.DefaultClient.Do(r)
	must(t, err)
	var machine struct {
		Token string `json:"access_token"`
	}
	must(t, json.NewDecoder(resp.Body).Decode(&machine))
	must(t, resp.Body.Close())
	if machine.Token == "" {
		t.Fatal("a machine has no token")
	}
	for _, c := range []struct{ agent, token, who string }{
		{"google-cloud-sdk gcloud/528.0.0 command/gcloud.compute.tpus.tpu-vm.update", "", b.Owner()},
		{"Terraform/1.11.4 (+https://www.terraform.io)", "", b.Owner()},
		{"google-api-go-client/0.5", "", "pitstop@demo.iam.gserviceaccount.com"},
		{"google-cloud-sdk gcloud/528.0.0", "ada@example.com", "ada@example.com"},
		{"google-cloud-sdk gcloud/528.0.0", "ya29.secret", b.Owner()},
		{"google-api-go-client/0.5", "ya29.secret", "pitstop@demo.iam.gserviceaccount.com"},
		{"curl/8.5.0", machine.Token, "pitstop@demo.iam.gserviceaccount.com"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPatch, b.url+"/v2/"+llama+"?updateMask=description", strings.NewReader(`{"description":"d"}`))
		must(t, err)
		r.Header.Set("User-Agent", c.agent)
		if c.token != "" {
			r.Header.Set("Authorization", "Bearer "+c.token)
		}
		resp, err := http.DefaultClient.Do(r)
		must(t, err)
		must(t, resp.Body.Close())
		b.now.pass(time.Second)
		b.Catch()
		logs, err := logging.NewService(t.Context(), endpoint(b.url)...)
		must(t, err)
		found, err := logs.Entries.List(&logging.ListLogEntriesRequest{ResourceNames: []string{"projects/demo"}, Filter: `protoPayload.serviceName="tpu.googleapis.com"`, OrderBy: "timestamp desc", PageSize: 1}).Do()
		must(t, err)
		if len(found.Entries) != 1 || !bytes.Contains(found.Entries[0].ProtoPayload, []byte(`"principalEmail":"`+c.who+`"`)) {
			t.Errorf("%s: the audit log has %s, want %s", c.agent, found.Entries[0].ProtoPayload, c.who)
		}
	}
}
