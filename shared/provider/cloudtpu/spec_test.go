package cloudtpu

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/provider/cloudtpu/internal/discovery"
)

func TestEveryFieldOfTheAPIIsClassed(t *testing.T) {
	for name, version := range map[string]struct {
		load   func() (*discovery.Document, error)
		fields schemas
	}{"v2alpha1": {discovery.Load, fields}, "v1": {discovery.LoadLegacy, legacyFields}} {
		t.Run(name, func(t *testing.T) {
			d, err := version.load()
			must(t, err)
			classed(t, d, version.fields)
		})
	}
}

// classed holds the table of a version against its own description.
func classed(t *testing.T, d *discovery.Document, fields schemas) {
	t.Helper()
	for _, schema := range slices.Sorted(maps.Keys(fields)) {
		described := d.Schemas[schema]
		if described == nil {
			t.Errorf("the API has no %s", schema)
			continue
		}
		for name, p := range described.Properties {
			f, ok := fields[schema][name]
			if !ok {
				t.Errorf("%s.%s has no class", schema, name)
				continue
			}
			if p.ReadOnly && f.class != output && f.class != recomputed {
				t.Errorf("%s.%s is kept, and only the API may say it", schema, name)
			}
			ref := p.Ref
			if p.Items != nil {
				ref = p.Items.Ref
			}
			if f.class.kept() && ref != f.schema {
				t.Errorf("%s.%s is a %q, and not a %q", schema, name, ref, f.schema)
			}
			if _, known := fields[ref]; f.class.kept() && ref != "" && !known {
				t.Errorf("%s.%s is a %s, of which nothing is known", schema, name, ref)
			}
			if bound := f.class == zonal || f.class == regional; bound && (p.Type != "string" || f.schema != "") {
				t.Errorf("%s.%s is bound to a place, and is no name", schema, name)
			}
		}
		for name := range fields[schema] {
			if described.Properties[name] == nil {
				t.Errorf("the API has no %s.%s", schema, name)
			}
		}
	}
}

// full is a node as the API shows it, with everything there is.
func full() *api.Node {
	return &api.Node{
		AcceleratorConfig: &api.AcceleratorConfig{Type: "V5LITE_POD", Topology: "4x4"}, AcceleratorType: "v5litepod-16",
		ApiVersion: "V2_ALPHA1", AutocheckpointEnabled: true,
		BootDiskConfig: &api.BootDiskConfig{DiskSizeGb: 200, CustomerEncryptionKey: &api.CustomerEncryptionKey{KmsKeyName: "k"}},
		CidrBlock:      "10.1.0.0/29", CreateTime: "2026-01-01T00:00:00Z",
		DataDisks:   []*api.AttachedDisk{{SourceDisk: "projects/p/zones/z/disks/d", Mode: "READ_ONLY"}},
		Description: "a <b> & c", Health: "HEALTHY", HealthDescription: "x", Id: 77,
		Labels: map[string]string{"team": "a", events.LabelPolicy: "spot", events.LabelIncident: "i-1"},
		Metadata: map[string]string{
			"startup-script": "run", events.MetadataCheckpointDir: "gs://b", events.MetadataRequest: "{}", "ssh-keys": "k",
		},
		MultisliceNode: true, Name: "projects/p/locations/us-west4-a/nodes/n",
		NetworkConfig:    &api.NetworkConfig{Network: "default", Subnetwork: "projects/p/regions/us-west4/subnetworks/default", QueueCount: 8},
		NetworkConfigs:   []*api.NetworkConfig{{Network: "default"}},
		NetworkEndpoints: []*api.NetworkEndpoint{{IpAddress: "10.0.0.1", AccessConfig: &api.AccessConfig{ExternalIp: "1.2.3.4"}}},
		QueuedResource:   "projects/p/locations/us-west4-a/queuedResources/q", RuntimeVersion: "v2-alpha-tpuv5-lite",
		SchedulingConfig:       &api.SchedulingConfig{Spot: true, TerminationTimestamp: "2026-01-02T00:00:00Z"},
		ServiceAccount:         &api.ServiceAccount{Email: "sa", Scope: []string{"b", "a"}},
		ShieldedInstanceConfig: &api.ShieldedInstanceConfig{}, State: "READY", Symptoms: []*api.Symptom{{SymptomType: "LOW_MEMORY"}},
		Tags: []string{"t"}, UpcomingMaintenance: &api.UpcomingMaintenance{Type: "SCHEDULED"},
	}
}

func TestSpec(t *testing.T) {
	q := &api.QueuedResource{
		Name: "q", CreateTime: "x", Spot: &api.Spot{}, ReservationName: "r", State: &api.QueuedResourceState{State: "ACTIVE"},
		RunDuration:    &api.RunDuration{MaxRunDuration: "3600s", TerminationTime: "2026-01-02T00:00:00Z"},
		QueueingPolicy: &api.QueueingPolicy{ValidUntilDuration: "600s", ValidUntilTime: "2026-01-02T00:00:00Z"},
		Tpu:            &api.Tpu{},
	}
	r := provider.Ref{Project: "p", Zone: "z", Name: "n"}
	o, err := specOf(r, full(), q)
	must(t, err)
	spec := o.spec
	want := `{"metadata_apart":true,"node":{"acceleratorType":"v5litepod-16","autocheckpointEnabled":true,` +
		`"bootDiskConfig":{"customerEncryptionKey":{"kmsKeyName":"k"},"diskSizeGb":"200"},"cidrBlock":"10.1.0.0/29",` +
		`"dataDisks":[{"mode":"READ_ONLY","sourceDisk":"projects/p/zones/z/disks/d"}],"description":"a <b> & c",` +
		`"labels":{"pitstop-policy":"spot","team":"a"},"metadata":{"pitstop-checkpoint-dir":"","startup-script":"#"},` +
		`"networkConfig":{"network":"default","queueCount":8,"subnetwork":"projects/p/regions/us-west4/subnetworks/default"},` +
		`"runtimeVersion":"v2-alpha-tpuv5-lite","schedulingConfig":{"spot":true},` +
		`"serviceAccount":{"email":"sa","scope":["b","a"]},"tags":["t"]},` +
		`"queued_resource":{"queueingPolicy":{"validUntilDuration":"600s"},"reservationName":"r",` +
		`"runDuration":{"maxRunDuration":"3600s"},"spot":{}}}`
	if diff := cmp.Diff(want, string(spec)); diff != "" {
		t.Errorf("specification (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{events.MetadataCheckpointDir: "gs://b", "startup-script": "run"}, o.values); diff != "" {
		t.Errorf("values (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(o.name, events.ID("spec", string(spec))+"@") {
		t.Errorf("name %s", o.name)
	}
	for range 20 {
		again, err := specOf(r, full(), q)
		if err != nil || string(again.spec) != string(spec) || again.name != o.name || again.sum != o.sum {
			t.Fatalf("another time it is %s, %v", again.spec, err)
		}
	}
	if _, err := readSpec(spec); !errors.Is(err, errApart) {
		t.Errorf("something could be created without its metadata: %v", err)
	}
	whole, err := Whole(spec, o.values)
	must(t, err)
	read, err := readSpec(whole)
	must(t, err)
	twice, err := specOf(r, read.Node, read.QueuedResource)
	if err != nil || string(twice.spec) != string(spec) || twice.sum != o.sum {
		t.Errorf("the reading makes another specification: %s, %v", twice.spec, err)
	}
}

func TestSpecSaysTheAcceleratorOnce(t *testing.T) {
	for name, c := range map[string]struct {
		node api.Node
		want string
	}{
		"in two dimensions the type is enough": {
			api.Node{AcceleratorType: "v6e-8", AcceleratorConfig: &api.AcceleratorConfig{Type: "V6E", Topology: "2x4"}},
			`{"node":{"acceleratorType":"v6e-8"}}`,
		},
		"in three dimensions the topology counts": {
			api.Node{AcceleratorType: "v4-256", AcceleratorConfig: &api.AcceleratorConfig{Type: "V4", Topology: "4x4x8_twisted"}},
			`{"node":{"acceleratorConfig":{"topology":"4x4x8_twisted","type":"V4"}}}`,
		},
		"one way only": {
			api.Node{AcceleratorConfig: &api.AcceleratorConfig{Type: "V6E", Topology: "2x4"}},
			`{"node":{"acceleratorConfig":{"topology":"2x4","type":"V6E"}}}`,
		},
		"several networks": {
			api.Node{AcceleratorType: "v6e-8", NetworkConfig: &api.NetworkConfig{Network: "a"}, NetworkConfigs: []*api.NetworkConfig{{Network: "a"}, {Network: "b"}}},
			`{"node":{"acceleratorType":"v6e-8","networkConfigs":[{"network":"a"},{"network":"b"}]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, err := specOf(provider.Ref{Name: "n"}, &c.node, nil)
			if err != nil || string(o.spec) != c.want || o.name != events.ID("spec", c.want) {
				t.Errorf("%s, %v; want %s", o.spec, err, c.want)
			}
		})
	}
}

func TestReadSpecRefusesWhatIsNone(t *testing.T) {
	for _, spec := range []string{"", "null", "{}", `{"node":null}`, `{"node":[]}`, `{"node":{"id":"x"}}`} {
		if _, err := readSpec([]byte(spec)); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v", spec, err)
		}
	}
}

func TestAcceleratorOf(t *testing.T) {
	for want, n := range map[string]api.Node{
		"v5litepod-16": {AcceleratorType: "v5litepod-16", AcceleratorConfig: &api.AcceleratorConfig{Type: "V2", Topology: "2x2"}},
		"v2-8":         {AcceleratorConfig: &api.AcceleratorConfig{Type: "V2", Topology: "2x2"}},
		"v4-8":         {AcceleratorConfig: &api.AcceleratorConfig{Type: "V4", Topology: "2x2x1"}},
		"v4-256":       {AcceleratorConfig: &api.AcceleratorConfig{Type: "V4", Topology: "4x4x8_twisted"}},
		"v5p-128":      {AcceleratorConfig: &api.AcceleratorConfig{Type: "V5P", Topology: "4x4x4"}},
		"v5litepod-1":  {AcceleratorConfig: &api.AcceleratorConfig{Type: "V5LITE_POD", Topology: "1x1"}},
		"v6e-8":        {AcceleratorConfig: &api.AcceleratorConfig{Type: "V6E", Topology: "2x4"}},
	} {
		if got := acceleratorOf(&n); got != want {
			t.Errorf("%+v is %q, want %q", n.AcceleratorConfig, got, want)
		}
	}
	for _, c := range []*api.AcceleratorConfig{
		nil,
		{},
		{Type: "V9", Topology: "2x2"},
		{Type: "V4"},
		{Type: "V4", Topology: "2x-2"},
		{Type: "V4", Topology: "x"},
		{Type: "V2", Topology: "1000000x1000000x1000000x1000000"},
	} {
		if got := acceleratorOf(&api.Node{AcceleratorConfig: c}); got != "" {
			t.Errorf("%+v is %q", c, got)
		}
	}
}

func TestReserved(t *testing.T) {
	for spec, want := range map[string]bool{
		`{"node":{}}`: false,
		`{"node":{"schedulingConfig":{"spot":true}}}`:                             false,
		`{"node":{"schedulingConfig":{"reserved":true}}}`:                         true,
		`{"node":{"schedulingConfig":{"reservationName":"r"}}}`:                   true,
		`{"node":{"schedulingConfig":{"provisioningModel":"RESERVATION_BOUND"}}}`: true,
		`{"node":{"schedulingConfig":{"provisioningModel":"STANDARD"}}}`:          false,
		`{"node":{},"queued_resource":{"guaranteed":{}}}`:                         false,
		`{"node":{},"queued_resource":{"guaranteed":{"reserved":true}}}`:          true,
		`{"node":{},"queued_resource":{"reservationName":"r"}}`:                   true,
		`{"node":{},"queued_resource":{"provisioningModel":"RESERVATION_BOUND"}}`: true,
		`{"legacy_node":{"schedulingConfig":{"preemptible":true}}}`:               false,
		`{"legacy_node":{"schedulingConfig":{"reserved":true}}}`:                  true,
		`{"legacy_node":{}}`: false,
		`{"together":[{"name":"a","spec":{"node":{}}},{"name":"b","spec":{"node":{"schedulingConfig":{"reserved":true}}}}]}`: true,
		`{"together":[{"name":"a","spec":{"node":{}}}]}`:                                                                     false,
		`{}`: false,
		`{`:  false,
		``:   false,
	} {
		if got := Reserved([]byte(spec)); got != want {
			t.Errorf("%s: %v", spec, got)
		}
	}
}
