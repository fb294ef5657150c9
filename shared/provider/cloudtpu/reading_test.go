package cloudtpu

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu/internal/discovery"
	"pitstop.internal/shared/reason"
)

func TestConditions(t *testing.T) {
	for _, c := range []struct {
		state, health string
		want          evidence.Condition
		text          string
	}{
		{"CREATING", "", evidence.Creating, "CREATING"},
		{"READY", "", evidence.Ready, "READY"},
		{"READY", "HEALTHY", evidence.Ready, "READY"},
		{"READY", "HEALTH_UNSPECIFIED", evidence.Ready, "READY"},
		{"READY", "TIMEOUT", evidence.Unhealthy, "READY, TIMEOUT"},
		{"READY", "UNHEALTHY_TENSORFLOW", evidence.Unhealthy, "READY, UNHEALTHY_TENSORFLOW"},
		{"READY", "UNHEALTHY_MAINTENANCE", evidence.Unhealthy, "READY, UNHEALTHY_MAINTENANCE"},
		{"READY", "DEPRECATED_UNHEALTHY", evidence.Unhealthy, "READY, DEPRECATED_UNHEALTHY"},
		{"RESTARTING", "", evidence.Unhealthy, "RESTARTING"},
		{"REIMAGING", "", evidence.Unhealthy, "REIMAGING"},
		{"REPAIRING", "HEALTHY", evidence.Unhealthy, "REPAIRING"},
		{"STARTING", "", evidence.Unhealthy, "STARTING"},
		{"HIDING", "", evidence.Unhealthy, "HIDING"},
		{"HIDDEN", "", evidence.Unhealthy, "HIDDEN"},
		{"UNHIDING", "", evidence.Unhealthy, "UNHIDING"},
		{"STOPPED", "", evidence.Stopped, "STOPPED"},
		{"STOPPING", "HEALTHY", evidence.Stopped, "STOPPING"},
		{"PREEMPTED", "HEALTHY", evidence.Lost, "PREEMPTED"},
		{"TERMINATED", "", evidence.Lost, "TERMINATED"},
		{"DELETING", "", evidence.Deleting, "DELETING"},
		{"UNKNOWN", "", evidence.Unclear, "UNKNOWN"},
		{"STATE_UNSPECIFIED", "", evidence.Unclear, "STATE_UNSPECIFIED"},
		{"SHINING", "BRIGHT", evidence.Unclear, "SHINING, BRIGHT"},
		{"", "", evidence.Unclear, "without a state"},
	} {
		t.Run(c.state+" "+c.health, func(t *testing.T) {
			n := &api.Node{State: c.state, Health: c.health, HealthDescription: "The TPU had a maintenance event at 2022-01-26T03:44:36Z"}
			s, err := new(specs).sliceOf(provider.Ref{Project: "p", Zone: "z", Name: "n"}, n, nil)
			if err != nil || s.Condition != c.want || s.State != c.text {
				t.Errorf("%s, %q, %v; want %s, %q", s.Condition, s.State, err, c.want, c.text)
			}
		})
	}
}

// TestTheLastMaintenanceEventIsRead from the words that Google's guide shows, and from nothing else.
func TestTheLastMaintenanceEventIsRead(t *testing.T) {
	for description, want := range map[string]string{
		"The TPU had a maintenance event at 2022-01-26T03:44:36.265703305Z":   "2022-01-26T03:44:36.265703305Z",
		"The TPU had a maintenance event at 2022-01-26T03:44:36Z.":            "2022-01-26T03:44:36Z",
		"The TPU had a maintenance event at 2022-01-26T03:44:36+01:00, again": "2022-01-26T02:44:36Z",
		"": "", "The TPU had a maintenance event": "", "The TPU had a maintenance event at noon": "", "a maintenance event at 2022-13-99T99:99:99Z": "",
		"created at 2022-01-26T03:44:36Z": "",
	} {
		at := timeOf(want)
		if got := maintained(description); !got.Equal(at) || got.Location() != time.UTC {
			t.Errorf("%q: %s, want %q", description, got, want)
		}
	}
}

func TestEveryStateIsMapped(t *testing.T) {
	d, err := discovery.Load()
	must(t, err)
	unclear := map[string]bool{"STATE_UNSPECIFIED": true, "UNKNOWN": true, "ACTIVE": true}
	former, err := discovery.LoadLegacy()
	must(t, err)
	for _, health := range former.Schemas["Node"].Properties["health"].Enum {
		if got := conditionOf("READY", health); (got == evidence.Ready) != (health == "HEALTHY" || health == "HEALTH_UNSPECIFIED") {
			t.Errorf("a node that is READY and %s is %s", health, got)
		}
	}
	for _, state := range slices.Concat(d.Schemas["Node"].Properties["state"].Enum, former.Schemas["Node"].Properties["state"].Enum) {
		if got := conditionOf(state, ""); (got == evidence.Unclear) != unclear[state] {
			t.Errorf("a node that is %s is %s", state, got)
		}
	}
	for _, state := range d.Schemas["QueuedResourceState"].Properties["state"].Enum {
		if got, _ := queuedCondition(&api.QueuedResourceState{State: state}, nil); (got == evidence.Unclear) != unclear[state] {
			t.Errorf("a queued resource that is %s is %s", state, got)
		}
	}
}

func TestQueuedConditions(t *testing.T) {
	failed := &api.FailedData{Error: &api.Status{Code: 8, Message: noCapacity}}
	for name, c := range map[string]struct {
		state *api.QueuedResourceState
		want  evidence.Condition
		text  string
	}{
		"waiting":          {&api.QueuedResourceState{State: "WAITING_FOR_RESOURCES"}, evidence.Creating, "WAITING_FOR_RESOURCES (queued resource)"},
		"accepted":         {&api.QueuedResourceState{State: "ACCEPTED"}, evidence.Creating, "ACCEPTED (queued resource)"},
		"creating":         {&api.QueuedResourceState{State: "CREATING"}, evidence.Creating, "CREATING (queued resource)"},
		"provisioning":     {&api.QueuedResourceState{State: "PROVISIONING"}, evidence.Creating, "PROVISIONING (queued resource)"},
		"suspended":        {&api.QueuedResourceState{State: "SUSPENDED", StateInitiator: "SERVICE"}, evidence.Lost, "SUSPENDED (queued resource)"},
		"suspending":       {&api.QueuedResourceState{State: "SUSPENDING"}, evidence.Lost, "SUSPENDING (queued resource)"},
		"the owner's word": {&api.QueuedResourceState{State: "SUSPENDED", StateInitiator: "USER"}, evidence.Stopped, "SUSPENDED (queued resource, by its user)"},
		"deleting":         {&api.QueuedResourceState{State: "DELETING"}, evidence.Deleting, "DELETING (queued resource)"},
		"failed without a word": {
			&api.QueuedResourceState{State: "FAILED"}, evidence.Lost, "FAILED (queued resource)",
		},
		"failed": {
			&api.QueuedResourceState{State: "FAILED", FailedData: failed}, evidence.Lost,
			`FAILED (queued resource: There is no more capacity in the zone "us-central1-b"; you can try in another zone where Cloud TPU Nodes are offered (see https://cloud.google.com/tpu/docs/regions))`,
		},
		"active": {&api.QueuedResourceState{State: "ACTIVE"}, evidence.Unclear, "ACTIVE (queued resource, but the node is not there)"},
		"new":    {&api.QueuedResourceState{State: "DREAMING"}, evidence.Unclear, "DREAMING (queued resource)"},
		"silent": {nil, evidence.Unclear, "in a queued resource without a state"},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := new(specs).queuedSlice(provider.Ref{Name: "n", QueuedResource: "q"}, full(), &api.QueuedResource{State: c.state, Spot: &api.Spot{}})
			if err != nil || s.Condition != c.want || s.State != c.text {
				t.Errorf("%s, %q, %v; want %s, %q", s.Condition, s.State, err, c.want, c.text)
			}
			if granted := slices.Contains([]string{"provisioning", "the owner's word", "active", "new", "silent"}, name); s.Granted != granted {
				t.Errorf("granted: %t, want %t", s.Granted, granted)
			}
			if s.Incarnation.Known() || s.Notice != nil || s.Abuse || s.Capacity != events.Spot || s.Chips != 16 || s.Directory != "gs://b" {
				t.Errorf("%+v", s)
			}
		})
	}
}

func TestSliceOf(t *testing.T) {
	n := full()
	n.NetworkEndpoints = append(n.NetworkEndpoints, &api.NetworkEndpoint{}, &api.NetworkEndpoint{})
	n.Symptoms = append(n.Symptoms, &api.Symptom{SymptomType: "HBM_OUT_OF_MEMORY"}, &api.Symptom{SymptomType: "LOW_MEMORY"})
	n.UpcomingMaintenance = nil
	r := provider.Ref{Project: "p", Zone: "us-west4-a", Name: "n", QueuedResource: "q"}
	got, err := new(specs).sliceOf(r, n, nil)
	must(t, err)
	got.Spec, got.SpecHash, got.Values, got.ValuesSum = nil, "", nil, ""
	want := provider.Slice{
		Ref: r, Condition: evidence.Ready, State: "READY, HBM_OUT_OF_MEMORY, LOW_MEMORY",
		Incarnation: events.Incarnation{Zone: "us-west4-a", ID: "77", Created: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)},
		Labels:      n.Labels, Directory: "gs://b", Account: "sa", Accelerator: "v5litepod-16", Workers: 3, Chips: 16, Capacity: events.Spot, Ends: time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC),
		Autocheckpoint: true,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("slice (-want +got):\n%s", diff)
	}

	n.State, n.Symptoms = "REPAIRING", []*api.Symptom{{SymptomType: "PROJECT_ABUSE"}}
	got, err = new(specs).sliceOf(r, n, nil)
	if err != nil || got.Workers != 4 || !got.Abuse || got.State != "REPAIRING, PROJECT_ABUSE" {
		t.Errorf("%+v, %v", got, err)
	}
	got, err = new(specs).sliceOf(r, &api.Node{AcceleratorType: "v99-1", CreateTime: "yesterday"}, nil)
	if err != nil || got.Workers != 0 || got.Chips != 0 || got.Incarnation.Known() || got.Accelerator != "v99-1" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestSpot(t *testing.T) {
	for name, c := range map[string]struct {
		node  *api.SchedulingConfig
		queue *api.QueuedResource
		want  bool
	}{
		"on demand":             {nil, nil, false},
		"spot":                  {&api.SchedulingConfig{Spot: true}, nil, true},
		"preemptible":           {&api.SchedulingConfig{Preemptible: true}, nil, true},
		"model":                 {&api.SchedulingConfig{ProvisioningModel: "SPOT"}, nil, true},
		"reserved":              {&api.SchedulingConfig{Reserved: true}, &api.QueuedResource{Guaranteed: &api.Guaranteed{}}, false},
		"queued resource":       {nil, &api.QueuedResource{Spot: &api.Spot{}}, true},
		"queued resource model": {nil, &api.QueuedResource{ProvisioningModel: "SPOT"}, true},
		"flex-start":            {nil, &api.QueuedResource{ProvisioningModel: "FLEX_START"}, false},
	} {
		if got := spot(&api.Node{SchedulingConfig: c.node}, c.queue); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestEnds(t *testing.T) {
	created := time.Date(2026, 11, 1, 8, 0, 0, 123_456_789, time.UTC)
	at := func(d time.Duration) time.Time { return created.Add(d).Truncate(time.Second) }
	flex, week := &api.SchedulingConfig{ProvisioningModel: "FLEX_START"}, 7*24*time.Hour
	for name, c := range map[string]struct {
		node  *api.SchedulingConfig
		queue *api.QueuedResource
		want  time.Time
	}{
		"on demand":                      {nil, nil, time.Time{}},
		"spot":                           {&api.SchedulingConfig{Spot: true}, &api.QueuedResource{Spot: &api.Spot{}}, time.Time{}},
		"the node says it":               {&api.SchedulingConfig{TerminationTimestamp: "2026-11-03T08:00:00Z"}, nil, at(48 * time.Hour)},
		"a time that is none":            {&api.SchedulingConfig{TerminationTimestamp: "soon"}, nil, time.Time{}},
		"before it was created":          {&api.SchedulingConfig{TerminationTimestamp: "2026-10-03T08:00:00Z"}, nil, time.Time{}},
		"a run duration":                 {nil, &api.QueuedResource{RunDuration: &api.RunDuration{MaxRunDuration: "7200s"}}, at(2 * time.Hour)},
		"a run duration that is none":    {nil, &api.QueuedResource{RunDuration: &api.RunDuration{MaxRunDuration: "long"}}, time.Time{}},
		"the queued resource says it":    {nil, &api.QueuedResource{RunDuration: &api.RunDuration{MaxRunDuration: "7200s", TerminationTime: "2026-11-01T11:00:00Z"}}, at(3 * time.Hour)},
		"both say it: the earlier":       {&api.SchedulingConfig{TerminationTimestamp: "2026-11-03T08:00:00Z"}, &api.QueuedResource{RunDuration: &api.RunDuration{TerminationTime: "2026-11-01T11:00:00Z"}}, at(3 * time.Hour)},
		"flex-start":                     {flex, nil, at(week)},
		"flex-start in a queue":          {nil, &api.QueuedResource{ProvisioningModel: "FLEX_START"}, at(week)},
		"flex-start for a time":          {nil, &api.QueuedResource{ProvisioningModel: "FLEX_START", RunDuration: &api.RunDuration{MaxRunDuration: "86400s"}}, at(24 * time.Hour)},
		"flex-start for longer than any": {flex, &api.QueuedResource{RunDuration: &api.RunDuration{MaxRunDuration: "6048000s"}}, at(week)},
		"spot for a time":                {&api.SchedulingConfig{Spot: true}, &api.QueuedResource{Spot: &api.Spot{}, RunDuration: &api.RunDuration{MaxRunDuration: "3600s"}}, at(time.Hour)},
	} {
		n := &api.Node{Id: 7, State: "READY", CreateTime: created.Format(time.RFC3339Nano), SchedulingConfig: c.node}
		got := seen(provider.Ref{Project: "p", Zone: "z", Name: "n"}, n, c.queue)
		if !got.Ends.Equal(c.want.Truncate(time.Second)) || got.Evidence("").Facts.Ends != got.Ends {
			t.Errorf("%s: ends %v, not %v", name, got.Ends, c.want)
		}
		if c.queue == nil {
			continue
		}
		waits, err := new(specs).queuedSlice(provider.Ref{Project: "p", Zone: "z", Name: "n"}, n, c.queue)
		if err != nil || !waits.Ends.IsZero() {
			t.Errorf("%s: what has no life yet ends %v: %v", name, waits.Ends, err)
		}
	}
}

func TestNotices(t *testing.T) {
	at := func(s string) time.Time {
		t.Helper()
		v, err := time.Parse(time.RFC3339, s)
		must(t, err)
		return v
	}
	window := api.UpcomingMaintenance{
		Type: "SCHEDULED", MaintenanceStatus: "PENDING", CanReschedule: true, WindowStartTime: "2024-11-15T04:00:00Z",
		WindowEndTime: "2024-11-15T08:00:00Z", LatestWindowStartTime: "2024-11-15T04:00:01Z",
	}
	pending := events.Notice{
		Status: events.NoticePending, CanReschedule: true, WindowStart: at("2024-11-15T04:00:00Z"),
		WindowEnd: at("2024-11-15T08:00:00Z"), LatestWindowStart: at("2024-11-15T04:00:01Z"),
	}
	with := func(f func(*api.UpcomingMaintenance)) *api.UpcomingMaintenance {
		m := window
		f(&m)
		return &m
	}
	ongoing := pending
	ongoing.Status, ongoing.Unscheduled = events.NoticeOngoing, true
	timeless := events.Notice{Status: events.NoticePending, CanReschedule: true}
	for name, c := range map[string]struct {
		m    *api.UpcomingMaintenance
		want *events.Notice
	}{
		"none":                      {nil, nil},
		"empty":                     {&api.UpcomingMaintenance{}, nil},
		"unknown":                   {&api.UpcomingMaintenance{MaintenanceStatus: "UNKNOWN", Type: "SCHEDULED"}, nil},
		"pending":                   {&window, &pending},
		"a window without a status": {with(func(m *api.UpcomingMaintenance) { m.MaintenanceStatus = "UNKNOWN" }), &pending},
		"ongoing":                   {with(func(m *api.UpcomingMaintenance) { m.MaintenanceStatus, m.Type = "ONGOING", "UNSCHEDULED" }), &ongoing},
		"times that are none": {with(func(m *api.UpcomingMaintenance) {
			m.WindowStartTime, m.WindowEndTime, m.LatestWindowStartTime = "soon", "", "2024-13-01"
		}), &timeless},
		"another offset": {with(func(m *api.UpcomingMaintenance) { m.WindowStartTime = "2024-11-15T06:00:00+02:00" }), &pending},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, noticeOf(c.m)); diff != "" {
				t.Errorf("notice (-want +got):\n%s", diff)
			}
		})
	}
}

func TestNodesOfAQueuedResource(t *testing.T) {
	q := &api.QueuedResource{Tpu: &api.Tpu{NodeSpec: []*api.NodeSpec{
		{NodeId: "one"},
		{MultiNodeParams: &api.MultiNodeParams{NodeCount: 2, NodeIdPrefix: "many"}},
		{MultiNodeParams: &api.MultiNodeParams{NodeCount: 2}},
		{},
	}}}
	var names []string
	for _, n := range queuedNodes(q, "q") {
		names = append(names, n.name)
	}
	if diff := cmp.Diff([]string{"one", "many-0", "many-1", "q-0", "q-1"}, names); diff != "" {
		t.Errorf("names (-want +got):\n%s", diff)
	}
	if got := queuedNodes(&api.QueuedResource{}, "q"); got != nil {
		t.Errorf("a queued resource of nothing asks for %v", got)
	}
}

func TestNames(t *testing.T) {
	for _, r := range []provider.Ref{
		{Project: "p", Zone: "us-west4-a", Name: "n"}, {Project: "example.com:p", Zone: "z", Name: "N_.~+1", QueuedResource: "q"},
	} {
		if err := check(r, "x"); err != nil {
			t.Error(err)
		}
	}
	for _, r := range []provider.Ref{
		{},
		{Project: "p", Zone: "z"},
		{Project: "p", Zone: "z", Name: ".."},
		{Project: "p", Zone: "z", Name: "n:stop"},
		{Project: "p", Zone: "z", Name: "a/b"},
		{Project: "p", Zone: "z", Name: "n?x=y"},
		{Project: "p", Zone: "-", Name: "%2e"},
		{Project: "p/locations", Zone: "z", Name: "n"},
		{Project: "p", Zone: "z", Name: "n", QueuedResource: "a/b"},
	} {
		if err := check(r, "x"); !is(err, reason.Invalid) {
			t.Errorf("%+v: %v", r, err)
		}
	}
}

func TestAMachineThatWouldComeBackEmptyIsTold(t *testing.T) {
	for script, bare := range map[string]bool{"": true, " \n": true, "pitcrew run -- python3 train.py": false} {
		n := full()
		n.Metadata = map[string]string{"startup-script": script}
		k := new(specs)
		for range 2 { // the second reading is as the first one was
			if s, err := k.sliceOf(provider.Ref{Project: "p", Zone: "z", Name: "n"}, n, nil); err != nil || s.Bare != bare || s.Evidence("").Facts.Bare != bare {
				t.Errorf("%q: bare %v, %v, want %v", script, s.Bare, err, bare)
			}
		}
	}
}
