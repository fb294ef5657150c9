package events_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
)

// life is an incarnation as the frozen bodies have it.
func life(zone, id string, created time.Time) events.Incarnation {
	return events.Incarnation{Zone: zone, ID: id, Created: created}
}

var (
	november = func(day, hour, minute, second int) time.Time {
		return time.Date(2026, 11, day, hour, minute, second, 0, time.UTC)
	}
	old    = life("us-west4-a", "7711", november(2, 9, 30, 0))
	header = events.Request{
		Schema: 1, Workload: "demo/llama-8b", Incident: "llama-8b-20261112-3", Epoch: 4, Action: events.ActionDelete, Slice: "llama-8b-0",
		Incarnation: old, Attempt: 1, Expires: november(12, 2, 24, 8), Reason: "node llama-8b-0 is PREEMPTED",
	}
)

// with is a request header that differs from the usual one.
func with(change func(*events.Request)) events.Request {
	r := header
	change(&r)
	return r
}

// anyOf makes a decoder of one kind into one of every kind.
func anyOf[E any](decode func([]byte) (E, error)) func([]byte) (any, error) {
	return func(data []byte) (any, error) { return decode(data) }
}

// requestOf reads the pointer of a request of a type.
func requestOf(eventType string) func([]byte) (events.Received, error) {
	return func(data []byte) (events.Received, error) { return events.DecodeRequest(eventType, data) }
}

// whole reads a type that has no decoder of its own, because it is read as a part of another.
func whole[E any](data []byte) (e E, err error) {
	err = json.Unmarshal(data, &e)
	return e, err
}

// report reads a crew's line as it arrives: in a log entry.
func report(data []byte) (events.CrewReport, error) {
	e, err := events.Read([]byte(crew(string(data))))
	if err != nil || e.Crew == nil {
		return events.CrewReport{}, errors.Join(err, errors.New(e.Ignored))
	}
	return *e.Crew, nil
}

// frozen are the bodies of version 1, with every field, and their content in the words of this release. Such bodies lie in
// outboxes and travel between releases: a renamed or dropped field would lose its value.
var frozen = map[string]struct {
	decode func([]byte) (any, error)
	want   any
}{
	events.TypeCheckpointRequested: {anyOf(events.DecodeCheckpointRequested), events.CheckpointRequested{
		Request: with(func(r *events.Request) {
			r.Action, r.Attempt, r.Reason = events.ActionSave, 2, "maintenance"
			r.Incarnation.Created = r.Incarnation.Created.Add(123456789)
		}),
		SaveID: "5f0c3a", Mode: events.SaveNatural, By: november(12, 2, 34, 8), Since: november(12, 2, 14, 8), MoreThan: 48000, Any: true,
		Directory: "gs://ckpt/llama-8b",
	}},
	events.TypeRecoveryRequested: {anyOf(events.DecodeRecoveryRequested), events.RecoveryRequested{
		Request: with(func(r *events.Request) {
			r.Action, r.Epoch, r.Expires, r.Reason = events.ActionAdmit, 6, november(12, 2, 31, 40), "new incarnation"
			r.Incarnation = life("us-west4-b", "7712", november(12, 2, 21, 40))
		}),
		TrainingAttempt: 2,
		Admit: []events.Admission{{
			Slice: "llama-8b-0", Incarnation: life("us-west4-b", "7712", november(12, 2, 21, 40)), Workers: "t1v-n-3f2a9c01",
		}},
		Directory: "gs://ckpt/llama-8b",
	}},
	events.TypeRecreateRequested: {anyOf(events.DecodeRecreateRequested), events.RecreateRequested{
		Request: header, Zone: "us-west4-a", Accelerator: "v5litepod-8", Capacity: events.OnDemand, Spec: "0f3c", QueuedResource: "llama-8b-qr",
		Ordered: time.Date(2026, 11, 2, 9, 20, 0, 0, time.UTC),
		With: []events.Member{{
			Slice: "llama-8b-1", Spec: "0f3d",
			Incarnation: events.Incarnation{Zone: "us-west4-a", ID: "7712", Created: time.Date(2026, 11, 2, 9, 30, 0, 0, time.UTC)},
		}},
	}},
	events.TypeMaintenanceNotified: {anyOf(events.DecodeMaintenanceNotified), events.MaintenanceNotified{
		Schema: 1, Project: "demo", Node: "llama-8b-0", Incarnation: old,
		Notice: events.Notice{
			Status: events.NoticePending, Unscheduled: true, CanReschedule: true,
			WindowStart: november(19, 4, 0, 0), WindowEnd: november(19, 8, 0, 0), LatestWindowStart: november(19, 4, 0, 1),
		},
		Read: november(12, 2, 14, 6),
	}},
	events.TypeIncidentClosed: {anyOf(whole[events.IncidentClosed]), events.IncidentClosed{
		Schema: 1, Workload: "demo/llama-8b", Incident: "llama-8b-20261112-3", Outcome: "resumed", Revision: 2,
	}},
	events.TypeIncidentUpdated: {anyOf(events.DecodeIncidentUpdated), events.IncidentUpdated{
		Schema: 1, Workload: "demo/llama-8b", Incident: "llama-8b-20261112-3", Number: 17, At: november(12, 2, 14, 8), Opened: november(12, 2, 14, 7),
		Cause: events.CausePreemption, Policy: "night", Slices: []events.Affected{{Name: "llama-8b-0", Zone: "us-west4-a", Accelerator: "v5litepod-16", Spot: true}},
		Chips: 32, Phase: "closed", Asked: events.ActionDelete, Outcome: "escalated", ConfirmedBy: "step", Code: "gave_up", Happened: []string{"worker 2 was preempted"},
		Doing: "escalated", Why: "no capacity for 48 h 0 m", Advice: "create it by hand", Cost: events.Cost{AwaySeconds: 3600, AgainSteps: 12, AgainSeconds: 90, AtLeast: true, ChipHours: 32.8, Dollars: 39.36}, Waiting: november(12, 2, 20, 0), IdleChips: 16,
		ChipHourPrice: 1.2,
		Job: events.JobTerms{
			State:   events.JobFailed,
			Retries: events.JobRetries{Worker: 2, Job: 1, Memory: 3, Interruption: 4, Internal: 5, Stockout: 6, Recreations: 7, Requests: 8},
			Error:   events.JobError{Code: 8, Status: "RESOURCE_EXHAUSTED", Message: "Resources are insufficient in region: us-west4."},
		},
	}},
	events.TypeOperatorOrdered: {anyOf(events.DecodeOperatorOrdered), events.OperatorOrdered{
		Schema: 1, ID: "JBSWY3DPEHPK3PXP", Workload: "demo/llama-8b", Verb: "approve", Incident: "llama-8b-20261112-3", Action: events.ActionDelete,
		By: "ada@example.com", Why: "the run matters", At: november(12, 2, 14, 8),
	}},
	"crew.report.v1": {anyOf(report), events.CrewReport{
		Schema: 1, Report: events.ReportExited, Project: "demo", Zone: "us-west4-a", Node: "llama-8b-0", Hostname: "t1v-n-3f2a9c01-w-1",
		Worker: 1, Workers: 4, Attempt: 3, ReadyAt: november(12, 1, 47, 30), Step: 48190, StepAt: november(12, 2, 14, 5), FirstStep: 48001, FirstStepAt: november(12, 1, 50, 0), CheckpointStep: 48000, CheckpointURI: "gs://ckpt/llama-8b/48000",
		StepsSeconds: 1311.5, SavesSeconds: 93.2, RestoreSeconds: 41.5, ExamplesPerSecond: 812.5, Measured: &events.Measured{Accelerator: "v5litepod-16", Slices: 2, GlobalBatch: 4096, Steps: 120, Seconds: 605},
		SaveID: "5f0c3a", ExitCode: 137, Signal: "SIGKILL", Interrupted: true, Tail: []string{"step 48,190", "Killed"}, RestartsLeft: 4, OutOfMemory: true,
		Retries: events.JobRetries{Worker: 2, Job: 1, Memory: 3, Interruption: 4, Internal: 5, Stockout: 6, Recreations: 7, Requests: 8},
		Notice:  &events.Notice{Status: events.NoticeOngoing, WindowStart: november(12, 2, 10, 0)}, Preempted: true, Reason: "killed",
	}},
	"crew.report.pod.v1": {anyOf(report), events.CrewReport{
		Schema: 1, Report: events.ReportSaved, Project: "demo", Zone: "us-east5/research/teams", Node: "llama-8b", Life: "0b9c7f1e-4a52-4f7e-9a35-2f1d6c8e7b10",
		Hostname: "llama-8b-1", Worker: 1, Workers: 4, Attempt: 3, Step: 48190, CheckpointStep: 48190, CheckpointURI: "gs://ckpt/llama-8b/48190", SaveID: "5f0c3a",
	}},
	"crew.state.v1": {anyOf(events.DecodeCrewState), events.CrewState{
		Schema: 1, Seen: november(12, 2, 14, 8), Worker: 1, Phase: "running", Attempt: 3, Step: 48213, StepAt: november(12, 2, 14, 5),
		CheckpointStep: 48190, CheckpointURI: "gs://ckpt/llama-8b/48190", SaveID: "5f0c3a", SavedAt: november(12, 2, 13, 40), RequestReadAt: november(12, 2, 14, 1),
		Verdict: &events.CrewVerdict{
			Schema: 1, Attempt: 2, Finished: true, Certain: true, Ended: november(12, 2, 12, 0), Step: 48190, Code: 3, Reason: "exit code 0",
			Life: events.Admission{Slice: "llama-8b-0", Incarnation: events.Incarnation{Zone: "us-west4-a"}, Workers: "t1v-n-3f2a9c01"},
		},
	}},
	"crew.request.v1": {anyOf(events.DecodeCrewRequest), events.CrewRequest{
		Schema: 1, SaveID: "5f0c3a", Workload: "demo/llama-8b", Incident: "llama-8b-20261112-3", Action: events.ActionSave,
		Mode: events.SaveSignal, By: november(12, 2, 34, 8),
	}},
	"envelope.v1": {anyOf(whole[events.Envelope]), events.Envelope{
		ID: "9d2f", Type: events.TypeIncidentClosed, Source: "//functions/patrol", Subject: "demo/llama-8b", Time: november(12, 2, 14, 8),
		Cause: "m-17", Correlation: "llama-8b-20261112-3", Data: []byte(`{"schema":1}`),
	}},
}

// fixture reads a frozen body.
func fixture(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "events", name+".json"))
	must(t, err)
	return raw
}

func TestFrozenBodiesMeanWhatTheyAlwaysMeant(t *testing.T) {
	files, err := filepath.Glob("testdata/events/*.json")
	must(t, err)
	for _, f := range files {
		if name := strings.TrimSuffix(filepath.Base(f), ".json"); frozen[name].want == nil {
			t.Errorf("nothing is held against %s", f)
		}
	}
	for name, c := range frozen {
		t.Run(name, func(t *testing.T) {
			raw := fixture(t, name)
			got, err := c.decode(raw)
			must(t, err)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
			strict := reflect.New(reflect.TypeOf(c.want))
			if err := json.Unmarshal(raw, strict.Interface(), json.RejectUnknownMembers(true)); err != nil {
				t.Errorf("read strictly: %v", err)
			}
			back, err := json.Marshal(got)
			must(t, err)
			if d := cmp.Diff(canonical(t, raw), canonical(t, back)); d != "" {
				t.Errorf("written again (-frozen +written):\n%s", d)
			}
			if field := unset(bodiesLike(c.want)...); field != "" {
				t.Errorf("no frozen body of its type says anything of %s, so none would notice its loss", field)
			}
		})
	}
}

// canonical is a JSON text with its members sorted and its spaces gone.
func canonical(t *testing.T, raw []byte) string {
	t.Helper()
	v := jsontext.Value(bytes.Clone(raw))
	must(t, v.Canonicalize())
	return string(v)
}

// bodiesLike are the frozen bodies of the same type.
func bodiesLike(want any) (all []reflect.Value) {
	for _, c := range frozen {
		if v := reflect.ValueOf(c.want); v.Type() == reflect.TypeOf(want) {
			all = append(all, v)
		}
	}
	return all
}

// unset names a field that has its zero value in each of some events of one type. What a part has of its own is held by the body that
// it is a whole in.
func unset(all ...reflect.Value) string {
	for i := range all[0].NumField() {
		f := all[0].Type().Field(i)
		fields, zero := make([]reflect.Value, len(all)), true
		for n, v := range all {
			fields[n] = v.Field(i)
			zero = zero && fields[n].IsZero()
		}
		switch {
		case f.Anonymous:
			if name := unset(fields...); name != "" {
				return name
			}
		case zero:
			return f.Name
		}
	}
	return ""
}

func TestDecodersTakeFieldsThatANewerPublisherAdds(t *testing.T) {
	for name, c := range frozen {
		t.Run(name, func(t *testing.T) {
			more := append([]byte(`{"added_later": {"by": ["a", 3]}, `), bytes.TrimLeft(fixture(t, name), "{ \n")...)
			got, err := c.decode(more)
			must(t, err)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

// decoders are the ones that can refuse a schema, with the names they give themselves.
var decoders = map[string]func([]byte) (any, error){
	events.TypeCheckpointRequested: anyOf(events.DecodeCheckpointRequested),
	events.TypeRecoveryRequested:   anyOf(events.DecodeRecoveryRequested),
	events.TypeRecreateRequested:   anyOf(events.DecodeRecreateRequested),
	events.TypeMaintenanceNotified: anyOf(events.DecodeMaintenanceNotified),
	events.TypeIncidentUpdated:     anyOf(events.DecodeIncidentUpdated),
	events.TypeOperatorOrdered:     anyOf(events.DecodeOperatorOrdered),
	"pointer":                      anyOf(requestOf("pointer")),
	"crew request":                 anyOf(events.DecodeCrewRequest),
}

// TestWhatAPersonWritesIsOneLine that a terminal shows and does not obey.
func TestWhatAPersonWritesIsOneLine(t *testing.T) {
	got, err := events.DecodeOperatorOrdered([]byte(`{"schema": 1, "id": "1", "workload": "demo/w", "verb": "pause", "by": "ada", "why": "a\u001b[31m\nb", "at": "2026-11-12T02:24:08Z"}`))
	must(t, err)
	if strings.ContainsAny(got.Why, "\x1b\n") || !strings.Contains(got.Why, "[31m") {
		t.Errorf("%q", got.Why)
	}
}

func TestNewerBodiesAreToldApartFromMalformedOnes(t *testing.T) {
	for name, decode := range decoders {
		for what, c := range map[string]struct {
			body  string
			newer bool
			says  string
		}{
			"a newer schema":                   {`{"schema": 2}`, true, "schema 2, this release reads up to 1"},
			"a newer schema that fits nothing": {`{"schema": 7, "epoch": "four", "save_id": 3, "notice": []}`, true, "schema 7"},
			"a newer schema in another type":   {`{"action": [], "node": {}, "schema": 2}`, true, "schema 2"},
			"nothing":                          {``, false, "not a " + name},
			"not JSON":                         {`<html>`, false, "not a " + name + ": not JSON at byte 0"},
			"truncated":                        {`{"schema": 2, "workload": "de`, false, "not a " + name + ": not JSON at byte"},
			"an array":                         {`[]`, false, "not a " + name + ": the whole is an array, which does not fit there"},
			"a schema of the wrong type":       {`{"schema": "1"}`, false, "schema is a string, which does not fit there"},
			"a field of the wrong type":        {`{"schema": 1, "action": 3, "node": 3, "phase": 3}`, false, "is a number, which does not fit there"},
			"a member twice":                   {`{"schema": 2, "schema": 1}`, false, "not a " + name},
			"something behind it":              {`{"schema": 2} {}`, false, "not a " + name},
			"larger than the limit":            {`{"schema": 2}` + strings.Repeat(" ", events.MaxBytes), false, "are more than the limit of 10485760"},
		} {
			t.Run(name+"/"+what, func(t *testing.T) {
				_, err := decode([]byte(c.body))
				if err == nil {
					t.Fatal("no error")
				}
				if errors.Is(err, events.ErrNewer) != c.newer || !strings.Contains(err.Error(), c.says) {
					t.Errorf("error %q, newer %v; want newer %v and %q", err, errors.Is(err, events.ErrNewer), c.newer, c.says)
				}
			})
		}
	}
}

func TestInvalidBodiesNameAllTheirFaults(t *testing.T) {
	const fence = `"schema": 1, "workload": "demo/w", "incident": "w-1", "epoch": 1, "attempt": 1, "expires": "2026-11-12T02:24:08Z"`
	empty := func(actions string, more ...string) []string {
		return append([]string{
			"schema 0: no release wrote that", "workload is missing", "incident is missing",
			"epoch 0: an incident has at least 1", `action "" is not one of ` + actions, "attempt 0: the first is 1", "expires is missing",
		}, more...)
	}
	for name, c := range map[string]struct {
		decode func([]byte) (any, error)
		body   string
		faults []string
	}{
		"a checkpoint request without anything": {
			decoders[events.TypeCheckpointRequested], `{}`, empty(`["save" "verify" "hear" "maintain"]`),
		},
		"a checkpoint request that is null": {
			decoders[events.TypeCheckpointRequested], `null`, empty(`["save" "verify" "hear" "maintain"]`),
		},
		"a save without its ID and mode": {
			decoders[events.TypeCheckpointRequested], `{` + fence + `, "action": "save"}`,
			[]string{"save_id is missing", `mode "" is neither natural nor signal`},
		},
		"a verification without a directory": {
			decoders[events.TypeCheckpointRequested], `{` + fence + `, "action": "verify"}`, []string{"directory is missing"},
		},
		"an early maintenance of nothing": {
			decoders[events.TypeCheckpointRequested], `{` + fence + `, "action": "maintain", "incarnation": {"zone": "us-west4-a"}}`,
			[]string{"slice is missing", "incarnation is missing"},
		},
		"a checkpoint request that would delete": {
			decoders[events.TypeCheckpointRequested], `{` + fence + `, "action": "delete"}`,
			[]string{`action "delete" is not one of ["save" "verify" "hear" "maintain"]`},
		},
		"a request before the first of everything": {
			decoders[events.TypeCheckpointRequested],
			`{"schema": -1, "workload": "demo/w", "incident": "w-1", "epoch": -4, "attempt": -2, "expires": "2026-11-12T02:24:08Z", "action": "verify", "directory": "gs://b"}`,
			[]string{"schema -1: no release wrote that", "epoch -4: an incident has at least 1", "attempt -2: the first is 1"},
		},
		"a pointer to nothing": {
			anyOf(func(data []byte) (events.Received, error) {
				return events.DecodeRequest(events.TypeRecreateRequested, data)
			}),
			`{"zone": "us-west4-a"}`, empty(`["delete" "create"]`)[:5],
		},
		"a recovery request without anything": {
			decoders[events.TypeRecoveryRequested], `{}`,
			empty(`["admit" "restart" "start"]`, "training_attempt 0: the first is 1", "admit names no incarnation"),
		},
		"a recovery request that admits nobody": {
			decoders[events.TypeRecoveryRequested],
			`{` + fence + `, "action": "admit", "training_attempt": 2, "admit": [{"slice": "a"}, {"incarnation": {"id": "7"}}, {"slice": "b", "incarnation": {"id": "8"}}]}`,
			[]string{`admit: slice "a" has no incarnation`, `admit: slice "" has no incarnation`},
		},
		"a request to start nothing": {
			decoders[events.TypeRecoveryRequested], `{` + fence + `, "action": "start"}`, []string{"slice is missing", "incarnation is missing"},
		},
		"a recreate request without anything": {
			decoders[events.TypeRecreateRequested], `{}`,
			empty(`["delete" "create"]`, "slice is missing", "zone is missing"),
		},
		"a deletion of any life": {
			decoders[events.TypeRecreateRequested], `{` + fence + `, "action": "delete", "slice": "a", "zone": "us-west4-a"}`,
			[]string{"incarnation is missing"},
		},
		"a creation from nothing": {
			decoders[events.TypeRecreateRequested], `{` + fence + `, "action": "create", "slice": "a", "zone": "us-west4-a"}`,
			[]string{"spec is missing"},
		},
		"a notice without anything": {
			decoders[events.TypeMaintenanceNotified], `{}`,
			[]string{
				"schema 0: no release wrote that", "project is missing", "node is missing", "incarnation.zone is missing", "incarnation is missing",
				"read is missing", `notice.status "" is not pending, ongoing or gone`,
			},
		},
		"a crew request without anything": {
			decoders["crew request"], `{}`,
			[]string{
				"schema 0: no release wrote that", "save_id is missing", `action "": a crew takes only save requests`,
				`mode "" is neither natural nor signal`,
			},
		},
		"a crew request for something else": {
			decoders["crew request"], `{"schema": 1, "save_id": "s", "action": "restart", "mode": "kill"}`,
			[]string{`action "restart": a crew takes only save requests`, `mode "kill" is neither natural nor signal`},
		},
		"a crew's line with numbers below the first": {
			validated(whole[events.CrewReport]), `{"report": "progress", "worker": -1, "step": -3}`,
			[]string{
				"zone is missing", "node is missing", "worker -1: the first is 0", "step -3, checkpoint_step 0: steps count from 0",
				"attempt 0: attempts count from 1 to 1000000",
			},
		},
		"a crew's save without its ID": {
			validated(whole[events.CrewReport]), `{"report": "saved", "zone": "z", "node": "n", "checkpoint_step": -1}`,
			[]string{"step 0, checkpoint_step -1: steps count from 0", "save_id is missing"},
		},
		"a crew's notice of nothing": {
			validated(whole[events.CrewReport]), `{"report": "notice", "zone": "z", "node": "n"}`,
			[]string{"a notice names neither maintenance nor preemption"},
		},
		"a closed incident without anything": {
			validated(whole[events.IncidentClosed]), `{}`,
			[]string{
				"schema 0: no release wrote that", "workload is missing", "incident is missing", "outcome is missing", "revision 0: the first is 1",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := c.decode([]byte(c.body))
			if err == nil {
				t.Fatal("no error")
			}
			if d := cmp.Diff(c.faults, strings.Split(err.Error(), "\n")); d != "" {
				t.Errorf("faults (-want +got):\n%s", d)
			}
		})
	}
}

// TestABodyPoints: a request is read by its pointer alone, whatever else the body says.
func TestABodyPoints(t *testing.T) {
	for eventType, action := range map[string]events.Action{
		events.TypeCheckpointRequested: events.ActionVerify,
		events.TypeRecoveryRequested:   events.ActionStart,
		events.TypeRecreateRequested:   events.ActionCreate,
	} {
		const fence = `"schema":1,"workload":"demo/w","incident":"w-1","epoch":4,"slice":"a","action":"`
		want := events.Pointer{Workload: "demo/w", Incident: "w-1", Epoch: 4, Action: action, Slice: "a"}
		bodies := []string{
			`{` + fence + string(action) + `"}`,
			`{` + fence + string(action) + `","expires":"never","attempt":-1,"admit":{},"with":"all","zone":7,"new":true}`,
		}
		for _, body := range bodies {
			got, err := events.DecodeRequest(eventType, []byte(body))
			if err != nil || got.Pointer != want || string(got.Body) != body {
				t.Errorf("%s points to %+v: %v", body, got.Pointer, err)
			}
		}
		_, err := events.DecodeRequest(eventType, []byte(`{`+fence+`sing"}`))
		if err == nil || !strings.Contains(err.Error(), `action "sing" is not one of`) {
			t.Errorf("an action that %s cannot ask for: %v", eventType, err)
		}
		if !events.IsRequest(eventType) {
			t.Errorf("%s is no request", eventType)
		}
	}
	if events.IsRequest(events.TypeIncidentUpdated) {
		t.Error("an update is a request")
	}
	update := `{"schema":1,"workload":"demo/w","incident":"w-1","number":"many","at":3}`
	want := events.IncidentPointer{Workload: "demo/w", Incident: "w-1"}
	if p, err := events.DecodeUpdatePointer([]byte(update)); err != nil || p != want {
		t.Errorf("%s points to %+v: %v", update, p, err)
	}
}

// TestADigestIsThatOfTheBody that is sent.
func TestADigestIsThatOfTheBody(t *testing.T) {
	e := events.RecreateRequested{Request: header, Zone: "us-west4-a", Spec: "0f3c"}
	env, err := events.Wrap(e, "//test", "", "", november(12, 2, 14, 8))
	must(t, err)
	got, err := events.DecodeRequest(env.Type, env.Data)
	if err != nil || got.Digest() != events.Digest(e) || len(got.Digest()) != 16 {
		t.Errorf("digest %q of the body, %q of the event: %v", got.Digest(), events.Digest(e), err)
	}
	e.Zone = "us-west4-b"
	if got.Digest() == events.Digest(e) {
		t.Error("another event has the same digest")
	}
}

// validated reads a type that is not an event of its own, and validates it.
func validated[E interface{ Validate() error }](decode func([]byte) (E, error)) func([]byte) (any, error) {
	return func(data []byte) (any, error) {
		e, err := decode(data)
		return e, errors.Join(err, e.Validate())
	}
}

func TestEventIDsAreTheSameForTheSameAndDifferForTheRest(t *testing.T) {
	base := events.RecreateRequested{Request: header, Zone: "us-west4-a", Spec: "0f3c"}
	for name, change := range map[string]func(*events.RecreateRequested){
		"another workload": func(e *events.RecreateRequested) { e.Workload = "demo/other" },
		"another incident": func(e *events.RecreateRequested) { e.Incident = "llama-8b-20261112-4" },
		"another epoch":    func(e *events.RecreateRequested) { e.Epoch++ },
		"another action":   func(e *events.RecreateRequested) { e.Action = events.ActionCreate },
		"another slice":    func(e *events.RecreateRequested) { e.Slice = "llama-8b-1" },
	} {
		e := base
		if change(&e); e.EventID() == base.EventID() {
			t.Errorf("%s has the same ID", name)
		}
	}
	again := base
	again.Attempt, again.Reason, again.Expires, again.Zone, again.Spec = 7, "other words", time.Time{}, "us-west4-b", ""
	if again.EventID() != base.EventID() {
		t.Error("a repetition has another ID")
	}
	kinds := []events.Event{
		base,
		events.CheckpointRequested{Request: header},
		events.RecoveryRequested{Request: header},
		events.IncidentClosed{Workload: header.Workload, Incident: header.Incident, Revision: 1},
		events.IncidentClosed{Workload: header.Workload, Incident: header.Incident, Revision: 2},
	}
	seen := map[string]bool{}
	for _, e := range kinds {
		if seen[e.EventID()] {
			t.Errorf("%s has an ID that is taken", e.EventType())
		}
		seen[e.EventID()] = true
	}
}

func TestANoticeHasAnIDPerLifeAndContent(t *testing.T) {
	base := events.MaintenanceNotified{
		Schema: 1, Project: "demo", Node: "n", Incarnation: old, Read: november(12, 2, 14, 6),
		Notice: events.Notice{Status: events.NoticePending, WindowStart: november(19, 4, 0, 0), WindowEnd: november(19, 8, 0, 0)},
	}
	again := base
	again.Read = again.Read.Add(time.Hour)
	again.Notice.WindowStart = again.Notice.WindowStart.In(time.FixedZone("", 3600))
	if again.EventID() != base.EventID() {
		t.Error("the same notice, read again, has another ID")
	}
	for name, change := range map[string]func(*events.MaintenanceNotified){
		"another project":      func(e *events.MaintenanceNotified) { e.Project = "other" },
		"another node":         func(e *events.MaintenanceNotified) { e.Node = "m" },
		"another zone":         func(e *events.MaintenanceNotified) { e.Incarnation.Zone = "us-west4-b" },
		"another life":         func(e *events.MaintenanceNotified) { e.Incarnation.ID = "7712" },
		"another creation":     func(e *events.MaintenanceNotified) { e.Incarnation.Created = e.Incarnation.Created.Add(time.Hour) },
		"under way":            func(e *events.MaintenanceNotified) { e.Notice.Status = events.NoticeOngoing },
		"moved":                func(e *events.MaintenanceNotified) { e.Notice.WindowStart = e.Notice.WindowStart.Add(time.Hour) },
		"longer":               func(e *events.MaintenanceNotified) { e.Notice.WindowEnd = e.Notice.WindowEnd.Add(time.Hour) },
		"unscheduled":          func(e *events.MaintenanceNotified) { e.Notice.Unscheduled = true },
		"to be started early":  func(e *events.MaintenanceNotified) { e.Notice.CanReschedule = true },
		"with a latest moment": func(e *events.MaintenanceNotified) { e.Notice.LatestWindowStart = e.Notice.WindowEnd },
	} {
		e := base
		if change(&e); e.EventID() == base.EventID() {
			t.Errorf("%s: the same ID", name)
		}
	}
}

// TestIDsOutliveReleases holds the derivation: a message that an older release sent must be known as the same one.
func TestIDsOutliveReleases(t *testing.T) {
	for got, want := range map[string]string{
		events.ID():         "e3b0c44298fc1c149afbf4c8996fb924",
		events.ID("a", "b"): "59b271ae1bbcb1d31d41929817f4b16f",
		events.ID("ab"):     "fb8e20fc2e4c3f248c60c39bd652f3c1",
		(events.RecreateRequested{Request: header}).EventID(): "98619d763abcc0f8e289080ed25cf01c",
	} {
		if got != want {
			t.Errorf("ID %s, want %s", got, want)
		}
	}
}

func TestWrapMakesAnEnvelopeOfAValidEventOnly(t *testing.T) {
	e := events.RecreateRequested{Request: header, Zone: "us-west4-a"}
	when := time.Date(2026, 11, 12, 3, 14, 8, 0, time.FixedZone("", 3600))
	got, err := events.Wrap(e, "//functions/patrol", "m-17", header.Incident, when)
	must(t, err)
	back, err := events.DecodeRecreateRequested(got.Data)
	if d := cmp.Diff(e, back); err != nil || d != "" {
		t.Errorf("the data says something else: %v (-want +got):\n%s", err, d)
	}
	got.Data = nil
	want := events.Envelope{
		ID: e.EventID(), Type: events.TypeRecreateRequested, Source: "//functions/patrol", Subject: "demo/llama-8b",
		Time: november(12, 2, 14, 8), Cause: "m-17", Correlation: header.Incident,
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if got.Time.Location() != time.UTC {
		t.Errorf("the time is in %s", got.Time.Location())
	}

	e.Zone, e.Epoch = "", 0
	if _, err := events.Wrap(e, "", "", "", when); err == nil ||
		!strings.Contains(err.Error(), "epoch 0") || !strings.Contains(err.Error(), "zone is missing") || !strings.Contains(err.Error(), e.EventType()) {
		t.Errorf("an invalid event is wrapped, or its faults are not told: %v", err)
	}
}

func TestSubjectsNameWhatAnEventConcerns(t *testing.T) {
	for _, c := range []struct {
		event events.Event
		want  string
	}{
		{events.CheckpointRequested{Request: header}, "demo/llama-8b"},
		{events.RecoveryRequested{Request: header}, "demo/llama-8b"},
		{events.RecreateRequested{Request: header}, "demo/llama-8b"},
		{events.IncidentClosed{Workload: "demo/llama-8b"}, "demo/llama-8b"},
		{events.IncidentUpdated{Workload: "demo/llama-8b"}, "demo/llama-8b"},
		{events.MaintenanceNotified{Project: "demo", Node: "n", Incarnation: old}, "projects/demo/locations/us-west4-a/nodes/n"},
	} {
		if got := c.event.EventSubject(); got != c.want {
			t.Errorf("%s: subject %q, want %q", c.event.EventType(), got, c.want)
		}
	}
}

func TestIncarnationsAreTheSameLifeOnlyWhenTheyAreKnown(t *testing.T) {
	made := november(2, 9, 30, 0)
	for name, c := range map[string]struct {
		a, b events.Incarnation
		same bool
		says string
	}{
		"the same":                      {old, old, true, "7711"},
		"the same, in another location": {old, life("us-west4-a", "7711", made.In(time.FixedZone("", 7200))), true, "7711"},
		"another ID":                    {old, life("us-west4-a", "7712", made), false, "7711"},
		"another time":                  {old, life("us-west4-a", "7711", made.Add(time.Second)), false, "7711"},
		"another zone":                  {old, life("us-west4-b", "7711", made), false, "7711"},
		"two unknown ones":              {events.Incarnation{}, events.Incarnation{}, false, "unknown"},
		"a zone alone is no life":       {life("us-west4-a", "", time.Time{}), life("us-west4-a", "", time.Time{}), false, "unknown"},
		"known by its creation alone":   {life("us-west4-a", "", made), life("us-west4-a", "", made), true, "us-west4-a@2026-11-02T09:30:00Z"},
	} {
		if c.a.Same(c.b) != c.same || c.b.Same(c.a) != c.same {
			t.Errorf("%s: Same is not %v", name, c.same)
		}
		if got := c.a.String(); got != c.says {
			t.Errorf("%s: String() = %q, want %q", name, got, c.says)
		}
	}
}

func TestActionsAreSortedByWhatTheyCost(t *testing.T) {
	for a, c := range map[events.Action]struct{ mutating, destructive bool }{
		events.ActionSave: {true, false}, events.ActionVerify: {false, false}, events.ActionMaintain: {true, true},
		events.ActionAdmit: {true, false}, events.ActionRestart: {true, false}, events.ActionDelete: {true, true},
		events.ActionCreate: {true, false}, "": {false, false}, "of a newer release": {true, false},
	} {
		if a.Mutating() != c.mutating || a.Destructive() != c.destructive {
			t.Errorf("%q: mutating %v, destructive %v; want %v", a, a.Mutating(), a.Destructive(), c)
		}
	}
}

func TestEqualNoticesAnnounceTheSame(t *testing.T) {
	n := events.Notice{Status: events.NoticePending, WindowStart: november(19, 4, 0, 0), WindowEnd: november(19, 8, 0, 0)}
	same := n
	same.WindowStart = same.WindowStart.In(time.FixedZone("", 3600))
	if !n.Equal(same) {
		t.Error("the same notice in another location differs")
	}
	for name, change := range map[string]func(*events.Notice){
		"status":              func(n *events.Notice) { n.Status = events.NoticeOngoing },
		"unscheduled":         func(n *events.Notice) { n.Unscheduled = true },
		"can_reschedule":      func(n *events.Notice) { n.CanReschedule = true },
		"window_start":        func(n *events.Notice) { n.WindowStart = n.WindowStart.Add(1) },
		"window_end":          func(n *events.Notice) { n.WindowEnd = time.Time{} },
		"latest_window_start": func(n *events.Notice) { n.LatestWindowStart = n.WindowStart },
	} {
		o := n
		if change(&o); n.Equal(o) {
			t.Errorf("%s makes no difference", name)
		}
	}
}

func TestDataDirsAreListedOnce(t *testing.T) {
	for value, want := range map[string][]string{
		"": nil, " ,": nil, "gs://a": {"gs://a"}, "gs://a,gs://b/c": {"gs://a", "gs://b/c"}, " gs://b, gs://a\ngs://b ,": {"gs://b", "gs://a"},
	} {
		if got := events.DataDirs(value); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
	}
}

func TestEveryReportThatIsValidatedIsKnown(t *testing.T) {
	for _, r := range []events.Report{
		events.ReportStarted, events.ReportProgress, events.ReportSaved, events.ReportRefused, events.ReportExited, events.ReportGaveUp,
		events.ReportFinished, events.ReportNotice,
	} {
		bare := events.CrewReport{Report: r, Zone: "z", Node: "n"}
		if !r.Known() || bare.Validate() == nil {
			t.Errorf("%s: known %v, and a bare one is valid: %v", r, r.Known(), bare.Validate())
		}
	}
	newer := events.CrewReport{Report: "levitating", Zone: "z", Node: "n"}
	if newer.Report.Known() || newer.Validate() != nil {
		t.Errorf("a report of a newer crew is known (%v) or invalid: %v", newer.Report.Known(), newer.Validate())
	}
}

// fuzz checks the promises of every decoder. It never panics. A value returned without an error is valid and stays the same
// when written and read again. A refused body is either newer or malformed, never both.
func fuzz[E interface{ Validate() error }](f *testing.F, seed string, decode func([]byte) (E, error)) {
	f.Helper()
	sound := fixture(f, seed)
	if _, err := decode(sound); err != nil {
		f.Fatalf("%s is refused: %v", seed, err) // what begins with nothing that is read holds nothing
	}
	f.Add(sound)
	f.Add([]byte(`{"schema": 2, "action": []}`))
	f.Add([]byte(`{"schema": 1, "expires": "2026-11-12T02:24:08.5+01:00", "admit": null}`))
	f.Add([]byte(`null`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := decode(raw)
		var v struct {
			Schema int `json:"schema"`
		}
		newer := json.Unmarshal(raw, &v) == nil && v.Schema > events.Schema
		if errors.Is(err, events.ErrNewer) != newer {
			t.Fatalf("schema %d: %v", v.Schema, err)
		}
		if err != nil {
			return
		}
		if err := e.Validate(); err != nil {
			t.Fatalf("decoded without an error and is invalid: %v", err)
		}
		written, err := json.Marshal(e)
		if err != nil {
			t.Fatalf("cannot be written: %v", err)
		}
		again, err := decode(written)
		if err != nil {
			t.Fatalf("cannot be read again: %v\n%s", err, written)
		}
		if d := cmp.Diff(e, again); d != "" {
			t.Fatalf("means something else when it is read again (-first +again):\n%s", d)
		}
		event, ok := any(e).(events.Event)
		if !ok {
			return
		}
		repeated, _ := any(again).(events.Event)
		if event.EventID() != repeated.EventID() || event.EventSubject() != repeated.EventSubject() {
			t.Fatal("has another ID or subject when it is read again")
		}
		if _, err := events.Wrap(event, "//functions/patrol", "", "", at); err != nil {
			t.Fatalf("cannot be sent: %v", err)
		}
	})
}

func FuzzDecodeCheckpointRequested(f *testing.F) {
	fuzz(f, events.TypeCheckpointRequested, events.DecodeCheckpointRequested)
}

func FuzzDecodeRecoveryRequested(f *testing.F) {
	fuzz(f, events.TypeRecoveryRequested, events.DecodeRecoveryRequested)
}

func FuzzDecodeRecreateRequested(f *testing.F) {
	fuzz(f, events.TypeRecreateRequested, events.DecodeRecreateRequested)
}

// FuzzDecodeRequest holds the pointer against the whole request, where that can be read.
func FuzzDecodeRequest(f *testing.F) {
	f.Add(fixture(f, events.TypeRecreateRequested))
	f.Add([]byte(`{"schema":1,"workload":"demo/w","incident":"w-1","epoch":4,"action":"delete","slice":"a","zone":7}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, err := events.DecodeRequest(events.TypeRecreateRequested, raw)
		whole, failed := events.DecodeRecreateRequested(raw)
		switch {
		case failed == nil && (err != nil || got.Pointer != whole.Pointer()):
			t.Fatalf("points to %+v, %v; the whole request to %+v", got.Pointer, err, whole.Pointer())
		case err == nil && (got.Workload == "" || got.Incident == "" || got.Epoch < 1):
			t.Fatalf("points to nothing: %+v", got.Pointer)
		}
	})
}

func FuzzDecodeMaintenanceNotified(f *testing.F) {
	fuzz(f, events.TypeMaintenanceNotified, events.DecodeMaintenanceNotified)
}

func FuzzDecodeIncidentUpdated(f *testing.F) {
	fuzz(f, events.TypeIncidentUpdated, events.DecodeIncidentUpdated)
}

func FuzzDecodeCrewRequest(f *testing.F) {
	fuzz(f, "crew.request.v1", events.DecodeCrewRequest)
}

func FuzzDecodeCrewState(f *testing.F) {
	fuzz(f, "crew.state.v1", events.DecodeCrewState)
}

// FuzzCrewReport is the decoder of the crew's lines, whose newer ones are ignored and not refused: see FuzzRead for that.
func FuzzCrewReport(f *testing.F) {
	f.Add(fixture(f, "crew.report.v1"))
	f.Add(fixture(f, "crew.report.pod.v1"))
	f.Add([]byte(`{"schema":1,"report":"saved","zone":"z","node":"n","save_id":"s","checkpoint_step":9223372036854775807}`))
	f.Add([]byte(`{"schema":1,"report":"started","zone":"z","node":"n","attempt":1,"ready_at":"0001-01-01T00:00:00+23:59"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		r, err := report(raw)
		if err != nil {
			return
		}
		if err := r.Validate(); err != nil || !r.Report.Known() || r.Describe() == "" {
			t.Fatalf("read without an error, and: %v, known %v, described as %q", err, r.Report.Known(), r.Describe())
		}
		written, err := json.Marshal(r)
		must(t, err)
		again, err := report(written)
		if d := cmp.Diff(r, again); err != nil || d != "" {
			t.Fatalf("means something else when it is read again: %v (-first +again):\n%s", err, d)
		}
	})
}

// TestSign: what differs from one time to the next makes no other error of the same one.
func TestSign(t *testing.T) {
	exit := func(code int, tail ...string) events.CrewReport {
		return events.CrewReport{Report: events.ReportExited, ExitCode: code, Tail: tail}
	}
	for _, c := range []struct {
		report events.CrewReport
		want   string
	}{
		{exit(1), "exit code 1"},
		{exit(1, "", "  "), "exit code 1"},
		{exit(1, "Traceback", "RuntimeError:  NaN at step 48,250 of 0x7F3a, shard-0007 on 10.0.0.3", ""), "exit code 1: RuntimeError: NaN at step #,# of #, shard-# on #.#.#.#"},
		{exit(1, "id 5f3a9c01 of bfloat16, facade, train7.py"), "exit code 1: id # of bfloat#, facade, train#.py"},
		{events.CrewReport{Report: events.ReportExited, Signal: "SIGSEGV"}, "signal SIGSEGV"},
		{events.CrewReport{Report: events.ReportExited, Signal: "SIGKILL", Interrupted: true}, ""},
		{events.CrewReport{Report: events.ReportGaveUp}, ""},
		{exit(1, strings.Repeat("x", 159)+"é"), "exit code 1: " + strings.Repeat("x", 159)},
	} {
		if got := c.report.Sign(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
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
