package policy_test

import (
	"bytes"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
	"go.yaml.in/yaml/v3"

	"pitstop.internal/shared/policy"
)

func TestThePublishedSchemaIsTheOneOfTheReader(t *testing.T) {
	published, err := os.ReadFile("schema.json")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(published, policy.Schema()) {
		t.Error("schema.json is not what the reader knows; write it anew: go run ./scripts/pitstop policy schema > shared/policy/schema.json")
	}
}

// schema is the published one, ready to hold files against it.
func schema(t testing.TB) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	if err := json.Unmarshal(policy.Schema(), &s); err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(nil)
	if err != nil {
		t.Fatal(err)
	}
	return resolved
}

// valid holds a file against the schema, as an editor does.
func valid(t testing.TB, s *jsonschema.Resolved, text string) error {
	t.Helper()
	var content any
	if err := yaml.Unmarshal([]byte(text), &content); err != nil {
		t.Fatal(err)
	}
	return s.Validate(content)
}

func TestTheSchemaTakesWhatTheReaderTakes(t *testing.T) {
	s := schema(t)
	for _, text := range []string{
		"", "{}", "policies:", "policies: {a: }", everyKey,
		"policies: {a: &a {preset: spot, switches: {restart: ask}}, b: *a, c: {<<: *a, lead: 1h30m}}",
		"policies: {a: {switches: , zones: , preset: , lead: , save: , give_up_after: , chip_hour_price: }}",
		"policies: {a: {shapes: }, b: {shapes: []}, c: {shapes: [{accelerator: v4-8, runtime_version: , zones: }]}}",
		"policies: {a: {give_up_after: 0, chip_hour_price: 3}, b: {give_up_after: '0', lead: 1.5h, chip_hour_price: '1.2'}}",
	} {
		parse(t, text)
		if err := valid(t, s, text); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// everyKey has a value for every key there is, which TestTheSchemaNamesEveryKey holds it to.
const everyKey = `
policies:
  night:
    preset: reserved
    switches: {request_checkpoint: yes, early_maintenance: ask, restart: no, recreate: yes, recreate_non_spot: ask, start_stopped: no}
    zones: [us-west4-a, europe-west4-b]
    shapes:
      - {accelerator: v6e-8, runtime_version: v2-alpha-tpuv6e, zones: [us-east5-b]}
      - accelerator: v5litepod-8
    lead: 10m
    save: signal
    give_up_after: 48h
    hang: restart
    restarts_per_day: 24
    when_escalated: delete
    delete_after: 2h
    chip_hour_price: 1.20
    subnetworks: {us-east5: tpus, europe-west4: projects/host/regions/europe-west4/subnetworks/tpus}
    other_regions: yes
    egress_price: 0.02
`

func TestTheSchemaNamesEveryKey(t *testing.T) {
	var file struct {
		Defs struct {
			Policy struct {
				Properties map[string]struct {
					Description string
					Properties  map[string]struct{ Description string }
				}
			}
		} `json:"$defs"`
	}
	if err := json.Unmarshal(policy.Schema(), &file); err != nil {
		t.Fatal(err)
	}
	var written struct{ Policies map[string]map[string]any }
	if err := yaml.Unmarshal([]byte(everyKey), &written); err != nil {
		t.Fatal(err)
	}
	for name, p := range file.Defs.Policy.Properties {
		if _, ok := written.Policies["night"][name]; !ok || p.Description == "" {
			t.Errorf("%s is not tried here, or nothing is said about it", name)
		}
		for s, about := range p.Properties {
			if about.Description == "" {
				t.Errorf("nothing is said about the switch %s", s)
			}
		}
	}
	if n := len(file.Defs.Policy.Properties["switches"].Properties); n != len(policy.All()) {
		t.Errorf("%d switches of %d", n, len(policy.All()))
	}
}

func TestTheSchemaRefusesWhatTheReaderRefuses(t *testing.T) {
	s := schema(t)
	for name, text := range map[string]string{
		"a key at the top":     "allow: [restart]",
		"a key of a policy":    "policies: {a: {giveup_after: 48h}}",
		"a switch":             "policies: {a: {switches: {recrate: no}}}",
		"a level":              "policies: {a: {switches: {restart: maybe}}}",
		"a level left empty":   "policies: {a: {switches: {restart: }}}",
		"a preset":             "policies: {a: {preset: spott}}",
		"a preset's name":      "policies: {spot: {}}",
		"a zone":               "policies: {a: {zones: [here]}}",
		"a zone without list":  "policies: {a: {zones: us-west4-a}}",
		"a list for a shape":   "policies: {a: {shapes: [[v4-8]]}}",
		"a word for a shape":   "policies: {a: {shapes: [v4-8]}}",
		"shapes without list":  "policies: {a: {shapes: {accelerator: v4-8}}}",
		"a key of a shape":     "policies: {a: {shapes: [{accelerator: v4-8, zone: us-west4-a}]}}",
		"a shape without type": "policies: {a: {shapes: [{zones: [us-west4-a]}]}}",
		"an empty shape":       "policies: {a: {shapes: [~]}}",
		"a type left empty":    "policies: {a: {shapes: [{accelerator: }]}}",
		"a type":               "policies: {a: {shapes: [{accelerator: v9-8}]}}",
		"a zone of a shape":    "policies: {a: {shapes: [{accelerator: v4-8, zones: [here]}]}}",
		"a runtime version":    "policies: {a: {shapes: [{accelerator: v4-8, runtime_version: 'a b'}]}}",
		"a span without unit":  "policies: {a: {lead: 20}}",
		"a word for a span":    "policies: {a: {lead: soon}}",
		"a way to save":        "policies: {a: {save: hard}}",
		"a way with a hang":    "policies: {a: {hang: kill}}",
		"an end of idleness":   "policies: {a: {when_escalated: drop}}",
		"a price below 0":      "policies: {a: {chip_hour_price: -1}}",
		"a price in words":     "policies: {a: {chip_hour_price: cheap}}",
		"a list of policies":   "policies: [a]",
		"a list for switches":  "policies: {a: {switches: [restart]}}",
		"a mapping for a word": "policies: {a: {preset: {b: c}}}",
	} {
		if _, err := policy.Parse([]byte(text)); err == nil {
			t.Errorf("%s: the reader takes it", name)
		}
		if valid(t, s, text) == nil {
			t.Errorf("%s: the schema takes it", name)
		}
	}
	if strings.Contains(string(policy.Schema()), "\t") {
		t.Error("the schema is not indented by spaces")
	}
}
