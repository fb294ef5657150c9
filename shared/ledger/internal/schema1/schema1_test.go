package schema1_test

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger/internal/schema1"
	"pitstop.internal/shared/policy"
)

// document has a slice with something in every field, and others with what may stand together in them.
const document = `{"schema":1,"id":"demo/m","project":"demo","name":"m","provider":"tpu","slices":[
{"name":"a","zone":"z","queued_resource":"q","legacy":true,"accelerator":"v2-8","workers":1,"chips":8,"spot":true,"spec":"s","spec_zone":"sz",
 "own":{"zone":"oz","accelerator":"v2-32","spec":"os"},"label":"l","account":"acc","claims":"c","bare":true,"group":"t1v-n-1","asked":true,
 "abuse":true,"abuse_at":"2026-11-12T01:00:00Z","abuse_told":true,"incarnation":{"zone":"z","id":"2"},"admitted":{"zone":"y","id":"1"},"lease":4,
 "condition":"ready","state":"READY","since":"2026-11-12T02:00:00Z","used":"2026-11-12T01:30:00Z","stop":{"by":"ann"},
 "heard":{"at":"2026-11-12T01:31:00Z"},"told":{"zone":"z","id":"2"},"discarded":{"zone":"z","id":"2"},"discard_by":"2026-11-12T03:00:00Z",
 "unused":true,"moved":true,"until":"2026-11-12T02:06:00Z","made":"m-1","ordered":"2026-11-12T01:59:00Z","replace":true,
 "released":"2026-11-12T01:58:00Z"},
{"name":"b","zone":"z","incarnation":{"zone":"z","id":"3"},"admitted":{"zone":"z","id":"3"},"condition":"gone","told":{"zone":"z","id":"1"}},
{"name":"c","zone":"z","incarnation":{"zone":"z","id":"4"},"condition":"ready","left":true}],
"notices":[{"slice":"b","incarnation":{"zone":"z","id":"3"},"status":"pending","told":"2026-11-12T01:00:00Z","in_api":true},
{"slice":"c","incarnation":{"zone":"z","id":"1"},"status":"pending","told":"2026-11-12T01:00:00Z"}],"epoch":7,
"incident":{"id":"m-1","cause":"preemption","opened":"2026-11-12T01:00:00Z","phase":"deleting","since":"2026-11-12T01:00:00Z","troubles":[],"timeline":[],
 "tasks":[{"action":"delete","slice":"a","epoch":7,"attempt":2,"sent":"2026-11-12T01:00:00Z"}]}}`

func TestUnmarshal(t *testing.T) {
	at := func(clock string) time.Time {
		at, err := time.Parse(time.DateTime, "2026-11-12 "+clock)
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	life := func(zone, id string) events.Incarnation { return events.Incarnation{Zone: zone, ID: id} }
	want := incident.Workload{
		Schema: incident.Schema, ID: "demo/m", Project: "demo", Name: "m", Provider: "tpu", Epoch: 7,
		Incident: &incident.Incident{ID: "m-1", Cause: events.CausePreemption, Opened: at("01:00:00"), Phase: incident.PhaseDeleting, Since: at("01:00:00"), Troubles: []incident.Trouble{}, Timeline: []incident.Line{}},
		Effects:  []incident.Effect{{Maker: "m-1", Action: events.ActionDelete, Slice: "a", Epoch: 7, Attempt: 2, Sent: at("01:00:00")}},
		Slices: []incident.Slot{
			{
				Name: "a", Order: incident.Order{Zone: "oz", Accelerator: "v2-32", Spec: "os"}, ToReplace: true,
				Life: incident.Life{
					Incarnation: life("z", "2"), Zone: "z", SpecZone: "sz", Hosts: "t1v-n-1", HostsAsked: true,
					Facts: incident.Facts{
						Group: "q", Legacy: true, Accelerator: "v2-8", Workers: 1, Chips: 8, Reclaimable: true, Spec: "s", Bare: true,
						Label: "l", Account: "acc", Claims: "c",
					},
					Condition: incident.Ready, State: "READY", Since: at("02:00:00"), Used: at("01:30:00"),
					Stop: incident.Stop{By: "ann"}, Heard: incident.Heard{At: at("01:31:00")},
					Abuse: incident.Abuse{Suspected: true, At: at("01:00:00"), Reported: true},
					Maker: "m-1", Ordered: at("01:59:00"), NeverUsable: true, Admission: incident.AwaitsAdmission, Leased: 4,
					End: incident.End{Released: at("01:58:00"), Reported: true, Discarded: true, DiscardBy: at("03:00:00")},
				},
				Former: []incident.Life{{
					Incarnation: life("y", "1"), Zone: "y", Admission: incident.Admitted, End: incident.End{SilentBy: at("02:06:00")},
				}},
			},
			{Name: "b", Life: incident.Life{
				Incarnation: life("z", "3"), Zone: "z", Condition: incident.Gone, Admission: incident.Admitted,
				Notice: incident.Notice{Notice: events.Notice{Status: events.NoticePending}, LastWord: at("01:00:00"), InAPI: true},
			}},
			{Name: "c", Life: incident.Life{Incarnation: life("z", "4"), Zone: "z", Condition: incident.Ready, Admission: incident.LeftToPerson}},
		},
	}
	var got incident.Workload
	if err := schema1.Unmarshal([]byte(document), &got, json.RejectUnknownMembers(true)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("read (-want +got):\n%s", d)
	}
	first := got.Slices[0].Life
	if zero := zeroFields(first); !slices.Equal(zero, []string{"HostsTold", "Spoke", "Notice", "Alarmed", "Hung"}) { // nobody kept who spoke
		t.Errorf("the first slice shows nothing of %v", zero)
	}
	if zero := zeroFields(first.Facts); !slices.Equal(zero, []string{"Healing", "Cause", "Failed", "Kept", "Controlled", "Torn", "Ends", "WaitsSince"}) { // which that schema did not have
		t.Errorf("the first slice shows nothing of %v in its facts", zero)
	}
	for what, zero := range map[string][]string{
		"abuse": zeroFields(first.Abuse), "end": slices.DeleteFunc(zeroFields(first.End), func(n string) bool {
			return n == "SilentBy" || n == "Since" // the one stands on the life before; the other was not kept
		}),
	} {
		if len(zero) > 0 {
			t.Errorf("the first slice shows nothing of %v in its %s", zero, what)
		}
	}
	written, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	var again incident.Workload
	if err := json.Unmarshal(written, &again, json.RejectUnknownMembers(true)); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(got, again); d != "" {
		t.Errorf("written again (-read +written):\n%s", d)
	}
}

// TestAPhaseIsReadAsFacts: that schema had a phase where this one has facts, and the next decision keeps it.
func TestAPhaseIsReadAsFacts(t *testing.T) {
	now := time.Date(2026, 11, 12, 1, 5, 0, 0, time.UTC)
	for phase, more := range map[incident.Phase]string{
		incident.Saving:      `"save":{"id":"s","requested":"2026-11-12T01:00:00Z"}`,
		incident.Maintaining: `"tasks":[{"action":"maintain","slice":"m","epoch":7,"attempt":1,"sent":"2026-11-12T01:00:00Z"}]`,
		incident.Window:      `"save":{"id":"s","requested":"2026-11-12T01:00:00Z","result":"refused"}`,
		incident.Looking:     `"hear_by":"2026-11-12T01:10:00Z"`,
		incident.Approving:   `"asked":"delete"`,
		incident.Admitting:   `"tasks":[{"action":"admit","epoch":7,"attempt":1,"sent":"2026-11-12T01:00:00Z"}]`,
		incident.Restarting:  `"tasks":[{"action":"restart","epoch":7,"attempt":1,"sent":"2026-11-12T01:00:00Z"}]`,
		incident.Resuming:    `"baseline":3`,
		incident.Watching:    `"would":["nothing"]`,
	} {
		var w incident.Workload
		if err := schema1.Unmarshal([]byte(`{"schema":1,"id":"demo/m","project":"demo","name":"m","provider":"tpu","epoch":7,
			"slices":[{"name":"m","zone":"z","incarnation":{"zone":"z","id":"1"},"condition":"ready","admitted":{"zone":"z","id":"1"}}],
			"incident":{"id":"m-1","cause":"preemption","opened":"2026-11-12T01:00:00Z","phase":"`+string(phase)+`","since":"2026-11-12T01:00:00Z",
			"deadline":"2026-11-12T02:00:00Z","troubles":[],"timeline":[],`+more+`}}`), &w); err != nil {
			t.Fatal(err)
		}
		if w.Incident.Hearing != (phase == incident.Looking) {
			t.Errorf("%s: it waits for a verdict: %v", phase, w.Incident.Hearing)
		}
		w, _, _ = incident.Advance(policy.Policy{Switches: policy.Everything()}, w, incident.Back{Slice: "none"}, now)
		if w.Incident == nil || w.Incident.Phase != phase {
			t.Errorf("%s becomes %+v", phase, w.Incident)
		}
	}
}

// TestADeadlineOfAnotherWaitDoesNotCount: that schema waited for progress while a slice came or went, and this one waits for the slice.
func TestADeadlineOfAnotherWaitDoesNotCount(t *testing.T) {
	for _, condition := range []string{"creating", "deleting", "unhealthy"} {
		opened := time.Date(2026, 11, 12, 1, 0, 0, 0, time.UTC)
		var w incident.Workload
		if err := schema1.Unmarshal([]byte(`{"schema":1,"id":"demo/m","project":"demo","name":"m","provider":"tpu","epoch":7,
			"progress":{"step":5,"verified":3,"verified_at":"2026-11-12T00:50:00Z"},
			"slices":[{"name":"m","zone":"z","incarnation":{"zone":"z","id":"1"},"spec":"s","condition":"`+condition+`","since":"2026-11-12T01:00:00Z","admitted":{"zone":"z","id":"1"}}],
			"incident":{"id":"m-1","cause":"crash","opened":"2026-11-12T01:00:00Z","phase":"resuming","since":"2026-11-12T01:00:00Z",
			"deadline":"2026-11-12T01:30:00Z","troubles":[{"cause":"crash","at":"2026-11-12T01:00:00Z"}],"timeline":[],"baseline":3}}`), &w); err != nil {
			t.Fatal(err)
		}
		w.Incident.Switches = policy.Everything()
		for now := opened; now.Before(opened.Add(incident.HealFor)); now = now.Add(10 * time.Minute) {
			var sent []events.Event
			if w, sent, _ = incident.Advance(policy.Policy{Switches: policy.Everything()}, w, incident.Ticked{}, now); len(sent) > 0 || w.Incident == nil {
				t.Fatalf("%s: at %s it sends %v: %+v", condition, now, sent, w.Incident)
			}
		}
	}
}

// zeroFields names the fields of a struct in which nothing is.
func zeroFields(of any) (names []string) {
	v := reflect.ValueOf(of)
	for i := range v.NumField() {
		if v.Field(i).IsZero() {
			names = append(names, v.Type().Field(i).Name)
		}
	}
	return names
}
