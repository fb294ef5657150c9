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
	must(t, err)
	if !bytes.Equal(published, policy.Schema()) {
		t.Error("schema.json is not what the reader knows; write it anew: go run ./scripts/pitstop policy schema > shared/policy/schema.json")
	}
}

// schema is the published one, ready to hold files against it.
func schema(t testing.TB) *jsonschema.Resolved {
	t.Helper()
	var s jsonschema.Schema
	must(t, json.Unmarshal(policy.Schema(), &s))
	resolved, err := s.Resolve(nil)
	must(t, err)
	return resolved
}

// valid holds a file against the schema, as an editor does.
func valid(t testing.TB, s *jsonschema.Resolved, text string) error {
	t.Helper()
	var content any
	must(t, yaml.Unmarshal([]byte(text), &content))
	return s.Validate(content)
}

func TestTheSchemaTakesWhatTheReaderTakes(t *testing.T) {
	s := schema(t)
	for _, text := range []string{
		"", "{}", "policies:", "policies: {a: }", everyKey,
		"policies: {a: &a {preset: spot, switches: {restart: ask}}, b: *a, c: {<<: *a, lead: 1h30m}}",
		"policies: {a: {switches: , zones: , preset: , lead: , save: , give_up_after: , chip_hour_price: }}",
		"policies: {a: {places: }, b: {places: []}, c: {places: [{accelerator: v4-8, runtime_version: , zones: }]}}",
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
    leave_zone_for: 12h
    back_to_first: save
    places:
      - {accelerator: v6e-8, runtime_version: v2-alpha-tpuv6e, zones: [us-east5-b]}
      - accelerator: v5litepod-8
    lead: 10m
    save: signal
    give_up_after: 48h
    hang: restart
    restarts_per_day: 24
    autocheckpoint: on
    chip_hour_price: 1.20
    spend_at_most: 30 USD a day
    subnetworks: {us-east5: tpus, europe-west4: projects/host/regions/europe-west4/subnetworks/tpus}
    other_regions: yes
    egress_price: 0.02
`

// TestTheReaderAcceptsEveryExampleOfTheSchema: each stands in a file of its own, under the key that it is of.
func TestTheReaderAcceptsEveryExampleOfTheSchema(t *testing.T) {
	var s any
	must(t, json.Unmarshal(policy.Schema(), &s))
	resolved := schema(t)
	tried := map[string]bool{}
	at := func(v any, path ...string) any {
		for _, name := range path {
			m, _ := v.(map[string]any)
			v = m[name]
		}
		return v
	}
	try := func(name string, node any, file func(example any) any) {
		examples, _ := at(node, "examples").([]any)
		for _, e := range examples {
			tried[name] = true
			text, err := yaml.Marshal(file(e))
			must(t, err)
			if _, err := policy.Parse(text); err != nil {
				t.Errorf("%s: the reader refuses the example %v: %v", name, e, err)
			}
			if err := valid(t, resolved, string(text)); err != nil {
				t.Errorf("%s: the schema refuses its own example %v: %v", name, e, err)
			}
		}
	}
	one := func(key string, value any) any {
		p := map[string]any{"chip_hour_price": 1} // which others need
		p[key] = value
		return map[string]any{"policies": map[string]any{"a": p}}
	}
	try("a file", s, func(e any) any { return e })
	properties, _ := at(s, "$defs", "policy", "properties").(map[string]any)
	for name, node := range properties {
		try(name, node, func(e any) any { return one(name, e) })
		shape, _ := at(node, "items", "properties").(map[string]any)
		for inner, node := range shape {
			try(name+" "+inner, node, func(e any) any {
				return one(name, []any{map[string]any{"accelerator": "v4-8", inner: e}})
			})
		}
	}
	for name, node := range properties {
		if deep := at(node, "items", "properties") != nil || at(node, "properties") != nil || at(node, "propertyNames") != nil; !deep && !tried[name] {
			t.Errorf("%s has no example", name)
		}
	}
	if !tried["a file"] || !tried["places accelerator"] || !tried["places runtime_version"] || !tried["places zones"] {
		t.Errorf("tried are only %v", tried)
	}
}

// keysOf are the keys of a mapping and, by their paths, of all mappings in it.
func keysOf(v any, path string, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for k, inner := range v {
			into[path+"/"+k] = true
			keysOf(inner, path+"/"+k, into)
		}
	case []any:
		for _, inner := range v {
			keysOf(inner, path, into)
		}
	}
}

// TestTheDocumentsPolicyHasEveryKey: the page of the functions shows a whole policy, which the reader takes.
func TestTheDocumentsPolicyHasEveryKey(t *testing.T) {
	page, err := os.ReadFile("../../functions/README.md")
	must(t, err)
	_, shown, _ := strings.Cut(string(page), "```yaml\n")
	shown, _, ok := strings.Cut(shown, "```")
	if !ok {
		t.Fatal("the page shows no policy")
	}
	parse(t, shown)
	var written struct {
		Policies map[string]map[string]any
	}
	must(t, yaml.Unmarshal([]byte(shown), &written))
	var s struct {
		Defs struct {
			Policy struct{ Properties map[string]any }
		} `json:"$defs"`
	}
	must(t, json.Unmarshal(policy.Schema(), &s))
	for key := range s.Defs.Policy.Properties {
		if written.Policies["night"][key] == nil {
			t.Errorf("the page's policy has no key %s", key)
		}
	}
	if len(s.Defs.Policy.Properties) < 10 {
		t.Errorf("the schema has the keys %v", s.Defs.Policy.Properties)
	}
}

// TestTheDocumentsTablesAreThoseOfTheSwitches: every switch has its row, and a column in the table of presets.
func TestTheDocumentsTablesAreThoseOfTheSwitches(t *testing.T) {
	page, err := os.ReadFile("../../functions/README.md")
	must(t, err)
	_, section, _ := strings.Cut(string(page), "\n## What you allow\n")
	switches, rest, _ := strings.Cut(section, "\n\nThe label ")
	_, presets, _ := strings.Cut(rest, "\n| preset |")
	presets, _, _ = strings.Cut(presets, "\n\n")
	header := ""
	for _, s := range policy.All() {
		header += " " + string(s) + " |"
		if strings.Count(switches, "\n| `"+string(s)+"` |") != 1 {
			t.Errorf("the page has no row of %s", s)
		}
	}
	if rows := strings.Count(switches, "\n| `"); rows != len(policy.All()) {
		t.Errorf("%d switches have a row, and %d are there", rows, len(policy.All()))
	}
	var none *policy.File // it has the presets
	want := header + "\n|" + strings.Repeat("---|", 1+len(policy.All()))
	for _, name := range []string{"watch", "spot", "reserved"} {
		p := none.For(name, policy.Everything())
		want += "\n| `" + name + "` |"
		for _, s := range policy.All() {
			want += " " + p.Switches.Level(s).String() + " |"
		}
	}
	if presets != want {
		t.Errorf("the table of presets is\n%s\nwant\n%s", presets, want)
	}
}

// TestTheExampleHasEveryKey: of the policy, of its switches and of a shape, and nothing that the reader refuses or the schema lacks.
func TestTheExampleHasEveryKey(t *testing.T) {
	f := parse(t, string(policy.Example()))
	var written map[string]any
	must(t, yaml.Unmarshal(policy.Example(), &written))
	policies, _ := written["policies"].(map[string]any)
	names := f.Names()
	if len(names) != 1 || policies[names[0]] == nil {
		t.Fatalf("it holds %v", names)
	}
	got, want := map[string]bool{}, map[string]bool{}
	keysOf(policies[names[0]], "", got)
	var s struct {
		Defs struct {
			Policy struct {
				Properties map[string]struct {
					Properties map[string]any
					Items      struct{ Properties map[string]any }
				}
			}
		} `json:"$defs"`
	}
	must(t, json.Unmarshal(policy.Schema(), &s))
	for name, p := range s.Defs.Policy.Properties {
		want["/"+name] = true
		for inner := range p.Properties {
			want["/"+name+"/"+inner] = true
		}
		for inner := range p.Items.Properties {
			want["/"+name+"/"+inner] = true
		}
	}
	for k := range got {
		if !want[k] && !strings.HasPrefix(k, "/subnetworks/") {
			t.Errorf("the schema has no key %s", k)
		}
	}
	for k := range want {
		if !got[k] {
			t.Errorf("the example has no key %s", k)
		}
	}
	p := f.For(names[0], policy.Everything())
	if len(p.Places) != 3 || len(p.Subnetworks) != 2 || p.Lead == 0 || p.GiveUpAfter == 0 || p.EgressPrice == 0 || p.RestartsPerDay == 0 {
		t.Errorf("it reads as %+v", p)
	}
	for _, line := range strings.Split(string(policy.Example()), "\n") {
		if len(line) > 80 {
			t.Errorf("a line of %d characters: %s", len(line), line)
		}
	}
}

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
	must(t, json.Unmarshal(policy.Schema(), &file))
	var written struct{ Policies map[string]map[string]any }
	must(t, yaml.Unmarshal([]byte(everyKey), &written))
	for name, p := range file.Defs.Policy.Properties {
		if _, ok := written.Policies["night"][name]; !ok || p.Description == "" {
			t.Errorf("%s is not tried here, or has no description", name)
		}
		for s, about := range p.Properties {
			if about.Description == "" {
				t.Errorf("the switch %s has no description", s)
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
		"a list for a shape":   "policies: {a: {places: [[v4-8]]}}",
		"a word for a shape":   "policies: {a: {places: [v4-8]}}",
		"places without list":  "policies: {a: {places: {accelerator: v4-8}}}",
		"a key of a shape":     "policies: {a: {places: [{accelerator: v4-8, zone: us-west4-a}]}}",
		"a shape without type": "policies: {a: {places: [{zones: [us-west4-a]}]}}",
		"an empty shape":       "policies: {a: {places: [~]}}",
		"a type left empty":    "policies: {a: {places: [{accelerator: }]}}",
		"a type":               "policies: {a: {places: [{accelerator: v9-8}]}}",
		"a zone of a shape":    "policies: {a: {places: [{accelerator: v4-8, zones: [here]}]}}",
		"a runtime version":    "policies: {a: {places: [{accelerator: v4-8, runtime_version: 'a b'}]}}",
		"a span without unit":  "policies: {a: {lead: 20}}",
		"a word for a span":    "policies: {a: {lead: soon}}",
		"a way to save":        "policies: {a: {save: hard}}",
		"a way with a hang":    "policies: {a: {hang: kill}}",
		"a way of Google's":    "policies: {a: {autocheckpoint: off}}",
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

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
