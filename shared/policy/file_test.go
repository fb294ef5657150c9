package policy_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

// parse reads a file that is sound.
func parse(t testing.TB, text string) *policy.File {
	t.Helper()
	f, err := policy.Parse([]byte(text))
	must(t, err)
	return f
}

func TestParseReadsEverythingThatAPolicyMaySay(t *testing.T) {
	text := `
policies:
  night:
    preset: spot
    switches: {early_maintenance: "yes", restart: ask, recreate: no}
    zones: [us-west4-a, us-west4-b]
    leave_zone_for: 90m
    places: [{accelerator: v5litepod-8, zones: [us-west4-a]}, {accelerator: v6e-8, runtime_version: v2-alpha-tpuv6e}]
    lead: 10m
    save: signal
    give_up_after: 48h
    hang: restart
    restarts_per_day: 24
    autocheckpoint: on
    chip_hour_price: 1.20
    spend_at_most: 199.50 USD a week
    subnetworks: {us-east5: tpus, europe-west4: projects/host/regions/europe-west4/subnetworks/tpus}
    other_regions: yes
    egress_price: 0.02
  bare: {}
  short:
  nulls: {preset: , switches: , zones: ~, leave_zone_for: , places: , back_to_first: , lead: null, save: , give_up_after: , hang: , restarts_per_day: , autocheckpoint: , chip_hour_price: , spend_at_most: , subnetworks: , other_regions: , egress_price: }
`
	f := parse(t, text)
	if d := cmp.Diff([]string{"bare", "night", "nulls", "short"}, f.Names()); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
	hash := f.For("night", policy.Everything()).Hash
	if hash == "" {
		t.Error("the file has no hash")
	}
	want := policy.Policy{
		Name:     "night",
		Switches: policy.Switches{RequestCheckpoint: policy.Yes, EarlyMaintenance: policy.Yes, Restart: policy.Ask},
		Zones:    []string{"us-west4-a", "us-west4-b"}, LeaveZoneFor: 90 * time.Minute,
		Places: []policy.Alternative{
			{Accelerator: "v5litepod-8", Zones: []string{"us-west4-a"}}, {Accelerator: "v6e-8", RuntimeVersion: "v2-alpha-tpuv6e"},
		},
		Lead: 10 * time.Minute, Save: events.SaveSignal,
		GiveUpAfter: 48 * time.Hour, Hang: policy.HangRestart, RestartsPerDay: 24, ChipHourPrice: 1.2, Hash: hash,
		SpendAtMost:    policy.Budget{Dollars: 199.5, Per: 7 * 24 * time.Hour},
		Autocheckpoint: policy.AutocheckpointOn,
		Limits: policy.Limits{
			policy.Restart: "policy night", policy.Recreate: "policy night", policy.RecreateNonSpot: "policy night (preset spot)",
			policy.StartStopped: "policy night (preset spot)",
		},
		Subnetworks:  map[string]string{"us-east5": "tpus", "europe-west4": "projects/host/regions/europe-west4/subnetworks/tpus"},
		OtherRegions: true, EgressPrice: 0.02,
	}
	if d := cmp.Diff(want, f.For("night", policy.Everything())); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	for _, name := range []string{"bare", "short", "nulls"} {
		watched := policy.Policy{Name: name, Limits: below(policy.Switches{}, "policy "+name), Save: events.SaveNatural, LeaveZoneFor: policy.DefaultLeaveZoneFor, Hash: hash}
		if d := cmp.Diff(watched, f.For(name, policy.Everything())); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
	if again := parse(t, text).For("spot", policy.Everything()).Hash; again != hash {
		t.Errorf("the same content has the hashes %s and %s", hash, again)
	}
	if other := parse(t, text+" ").For("night", policy.Everything()).Hash; other == hash {
		t.Error("other content has the same hash")
	}
}

// TestAPriceAllowsNoOtherRegion, and neither does one that is missing.
func TestAPriceAllowsNoOtherRegion(t *testing.T) {
	for words, want := range map[string]policy.Policy{
		"":                                       {},
		"other_regions: no":                      {},
		"egress_price: 0.02":                     {EgressPrice: 0.02},
		"other_regions: no, egress_price: 0.02":  {EgressPrice: 0.02},
		"other_regions: yes":                     {OtherRegions: true},
		"other_regions: yes, egress_price: 0.02": {OtherRegions: true, EgressPrice: 0.02},
	} {
		p := parse(t, "policies: {a: {"+words+"}}").For("a", policy.Everything())
		if p.OtherRegions != want.OtherRegions || p.EgressPrice != want.EgressPrice {
			t.Errorf("%q: other regions %v at $%v", words, p.OtherRegions, p.EgressPrice)
		}
	}
}

func TestAFileWithoutPoliciesLeavesThePresets(t *testing.T) {
	for _, text := range []string{"", "\n", "# nothing yet\n", "---\n", "{}", "policies:", "policies: {}"} {
		f := parse(t, text)
		if names := f.Names(); len(names) > 0 {
			t.Errorf("%q names %q", text, names)
		}
		if p := f.For("spot", policy.Everything()); p.Unknown || p.Switches.WatchOnly() {
			t.Errorf("%q: the preset spot is gone: %+v", text, p)
		}
	}
}

func TestAnAliasStandsForItsTargetAndNotForItsName(t *testing.T) {
	f := parse(t, `
policies:
  a: &shared
    switches: {restart: &yes no, recreate: *yes, start_stopped: &no ask, early_maintenance: *no}
    zones: [&z us-west4-a, *z]
    lead: &span 30m
    give_up_after: *span
  b: *shared
  c:
    <<: *shared
    lead: 1h
`)
	for name, lead := range map[string]time.Duration{"a": 30 * time.Minute, "b": 30 * time.Minute, "c": time.Hour} {
		p := f.For(name, policy.Everything())
		if want := (policy.Switches{StartStopped: policy.Ask, EarlyMaintenance: policy.Ask}); p.Switches != want {
			t.Errorf("%s: switches %+v, want %+v", name, p.Switches, want)
		}
		if p.Lead != lead || p.GiveUpAfter != 30*time.Minute || !cmp.Equal(p.Zones, []string{"us-west4-a", "us-west4-a"}) {
			t.Errorf("%s: lead %v, give_up_after %v, zones %q", name, p.Lead, p.GiveUpAfter, p.Zones)
		}
	}
}

func TestParseTellsEveryFaultWithItsPlace(t *testing.T) {
	for name, c := range map[string]struct {
		text   string
		faults []string
	}{
		"everything that may be wrong": {
			`policies:
  night:
    preset: spott
    switches:
      recreate: maybe
      fly: "yes"
      restart:
      start_stopped: [yes]
    lead: soon
    give_up_after: -1h
    typo: 3
    zones: [us-west4-a, here, []]
    save: hard
    chip_hour_price: -1
    hang: kill
  spot: {}
  short:
    lead: 59s
    zones: us-west4-a
    restarts_per_day: 0
    autocheckpoint: off
    leave_zone_for: 169h
    chip_hour_price: 2
    spend_at_most: 200 EUR a week
  plain: {chip_hour_price: 2, spend_at_most: $200}
  free: {spend_at_most: 30 USD a day}
`,
			[]string{
				`line 3, column 13: policy "night": preset "spott" is none of watch, spot, reserved`,
				`line 5, column 17: policy "night": recreate: "maybe" is none of no, ask, yes`,
				`line 6, column 7: policy "night": switches has no "fly"; there are request_checkpoint, early_maintenance, restart, recreate, recreate_non_spot, start_stopped`,
				`line 7, column 15: policy "night": restart: "" is none of no, ask, yes`,
				`line 8, column 22: policy "night": start_stopped: "" is none of no, ask, yes`,
				`line 9, column 11: policy "night": lead "soon" is no duration such as 10m or 48h`,
				`line 10, column 20: policy "night": give_up_after -1h0m0s is negative`,
				`line 11, column 5: policy "night" has no "typo"; there are preset, switches, zones, leave_zone_for, places, back_to_first, lead, save, give_up_after, hang, restarts_per_day, autocheckpoint, chip_hour_price, spend_at_most, subnetworks, other_regions, egress_price`,
				`line 12, column 25: policy "night": zones: "here" is no zone`,
				`line 12, column 31: policy "night": zones: "" is no zone`,
				`line 13, column 11: policy "night": save "hard" is neither natural nor signal`,
				`line 14, column 22: policy "night": chip_hour_price "-1" is no price in dollars`,
				`line 15, column 11: policy "night": hang "kill" is neither report nor restart`,
				`line 16, column 3: policy "spot": the name is a preset's`,
				`line 18, column 11: policy "short": lead 59s is not between 1m0s and 24h0m0s`,
				`line 19, column 12: policy "short": zones is no list`,
				`line 20, column 23: policy "short": restarts_per_day "0" is no number from 1 to 100`,
				`line 21, column 21: policy "short": autocheckpoint "off" is neither keep nor on`,
				`line 22, column 21: policy "short": leave_zone_for 169h0m0s is not between 0s and 168h0m0s`,
				`line 24, column 20: policy "short": spend_at_most "200 EUR a week" is not in USD, as prices are`,
				`line 25, column 46: policy "plain": spend_at_most "$200" is no amount such as 200 USD a week or 30 USD a day`,
				`line 26, column 25: policy "free": spend_at_most needs chip_hour_price`,
			},
		},
		"values where a word belongs": {
			"policies:\n  a:\n    preset: [spot]\n    lead: {a: b}\n    save: [natural]\n    give_up_after: []\n    chip_hour_price: {}\n",
			[]string{
				`line 3, column 13: policy "a": preset is not a single value`,
				`line 4, column 11: policy "a": lead is not a single value`,
				`line 5, column 11: policy "a": save is not a single value`,
				`line 6, column 20: policy "a": give_up_after is not a single value`,
				`line 7, column 22: policy "a": chip_hour_price is not a single value`,
			},
		},
		"subnetworks that are nowhere": {
			"policies:\n  a:\n    subnetworks:\n      us-east5-a: tpus\n      us-east5: 'two words'\n      us-west4: projects/p/regions/us-east5/subnetworks/s\n    other_regions: ask\n    egress_price: cheap\n",
			[]string{
				`line 4, column 19: policy "a": subnetworks: "us-east5-a" is no region`,
				`line 5, column 17: policy "a": subnetworks: "two words" is no subnetwork`,
				`line 6, column 17: policy "a": subnetworks: "projects/p/regions/us-east5/subnetworks/s" is not in us-west4`,
				`line 7, column 20: policy "a": other_regions "ask" is neither no nor yes`,
				`line 8, column 19: policy "a": egress_price "cheap" is no price in dollars`,
			},
		},
		"shapes that are none": {
			"policies:\n  a:\n    places:\n      - zones: [us-west4-a]\n      - accelerator: v9-8\n      - {accelerator: v4-7, zone: us-west4-a}\n      - {accelerator: v4-8, zones: [here]}\n      - {accelerator: v4-8, runtime_version: a b}\n      - v4-16\n      - ~\n  b: {places: {accelerator: v4-8}}\n",
			[]string{
				`line 4, column 9: policy "a": places: a place has to name its capacity, its reservation or its accelerator`,
				`line 5, column 22: policy "a": places: "v9-8" is no accelerator type such as v5litepod-8`,
				`line 6, column 23: policy "a": places: "v4-7" is no accelerator type such as v5litepod-8`,
				`line 6, column 29: policy "a": places has no "zone"; did you mean zones?`,
				`line 7, column 37: policy "a": places: zones: "here" is no zone`,
				`line 8, column 9: policy "a": places: the same place is there twice`,
				`line 8, column 46: policy "a": places: "a b" is no runtime version`,
				`line 9, column 9: policy "a": places has to be a mapping`,
				`line 9, column 9: policy "a": places: a place has to name its capacity, its reservation or its accelerator`,
				`line 10, column 9: policy "a": places: a place has to name its capacity, its reservation or its accelerator`,
				`line 11, column 15: policy "b": places is no list`,
			},
		},
		"a lead that is too long":        {"policies: {a: {lead: 24h1s}}", []string{`line 1, column 22: policy "a": lead 24h0m1s is not between 1m0s and 24h0m0s`}},
		"a number where a span belongs":  {"policies: {a: {lead: 20}}", []string{`line 1, column 22: policy "a": lead "20" is no duration such as 10m or 48h`}},
		"a price that is no number":      {"policies: {a: {chip_hour_price: .nan}}", []string{`line 1, column 33: policy "a": chip_hour_price ".nan" is no price in dollars`}},
		"a price that is NaN":            {"policies: {a: {chip_hour_price: nan}}", []string{`line 1, column 33: policy "a": chip_hour_price "nan" is no price in dollars`}},
		"a price without end":            {"policies: {a: {chip_hour_price: inf}}", []string{`line 1, column 33: policy "a": chip_hour_price "inf" is no price in dollars`}},
		"a level in other letters":       {"policies: {a: {switches: {restart: Yes}}}", []string{`line 1, column 36: policy "a": restart: "Yes" is none of no, ask, yes`}},
		"a level that is a boolean":      {"policies: {a: {switches: {restart: true}}}", []string{`line 1, column 36: policy "a": restart: "true" is none of no, ask, yes`}},
		"an alias to what does not fit":  {"policies:\n  a:\n    save: &x hard\n    preset: *x\n", []string{`line 3, column 11: policy "a": save "hard" is neither natural nor signal`, `line 4, column 13: policy "a": preset "hard" is none of watch, spot, reserved`}},
		"a policy twice":                 {"policies:\n  a: {}\n  b: {}\n  a: {preset: spot}\n", []string{`line 4, column 3: policies has "a" twice; it is at line 2 already`}},
		"a field twice":                  {"policies:\n  a:\n    preset: watch\n    preset: spot\n", []string{`line 4, column 5: policy "a" has "preset" twice; it is at line 3 already`}},
		"a switch twice":                 {"policies:\n  a:\n    switches:\n      restart: no\n      restart: yes\n", []string{`line 5, column 7: policy "a": switches has "restart" twice; it is at line 4 already`}},
		"an unknown field at the top":    {"policies: {}\nallow: [restart]\n", []string{`line 2, column 1: a policy file has no "allow"; there are policies`}},
		"a typed wrong switch":           {"policies:\n  a:\n    switches: {recrate: no}\n", []string{`line 3, column 16: policy "a": switches has no "recrate"; did you mean recreate?`}},
		"a typed wrong field":            {"policies:\n  a: &a\n    giveup_after: 48h\n  b: *a\n  c: {<<: [*a, {sav: signal}]}\n", []string{`line 3, column 5: policy "a" has no "giveup_after"; did you mean give_up_after?`, `line 5, column 17: policy "c" has no "sav"; did you mean save?`}},
		"a mapping taken for two things": {"policies:\n  a:\n    switches: &s {restart: no}\n  b: *s\n", []string{`line 3, column 19: policy "b" has no "restart"; there are preset, switches, zones, leave_zone_for, places, back_to_first, lead, save, give_up_after, hang, restarts_per_day, autocheckpoint, chip_hour_price, spend_at_most, subnetworks, other_regions, egress_price`}},
		"keys that are no words":         {"policies:\n  ? [a]\n  : {}\n", []string{`line 2, column 5: policies has a key that is no word`}},
		"switches that are a list":       {"policies: {a: {switches: [restart]}}", []string{`line 1, column 26: policy "a": switches has to be a mapping`}},
		"a list of policies":             {"policies: [a]", []string{`line 1, column 11: policies has to be a mapping`}},
		"a word":                         {"hello", []string{`line 1, column 1: a policy file has to be a mapping`}},
		"not YAML":                       {"policies:\n\ta: {}", []string{"line 2: found character that cannot start any token"}},
		"not YAML either":                {"policies: {a: {}", []string{"line 1: did not find expected ',' or '}'"}},
		"no text":                        {"\x00\xff", []string{"control characters are not allowed"}},
		"a second document":              {"policies: {}\n---\npolicies: {a: {preset: spot}}\n", []string{`line 2, column 1: a second document; a policy file is one`}},
		"a second document with a fault": {"policies: {}\n---\n\t", []string{"line 3: found character that cannot start any token"}},
		"an alias of nothing":            {"policies: *a", []string{"unknown anchor 'a' referenced"}},
		"an alias of itself":             {"policies: &a\n  <<: *a\n", []string{"anchor 'a' value contains itself"}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := policy.Parse([]byte(c.text))
			if err == nil {
				t.Fatal("no error")
			}
			if got := err.Error(); strings.Contains(got, "\n") || got != "policy file: "+strings.Join(c.faults, "; ") {
				t.Errorf("the error is not one line about the policy file: %q", err)
			}
			var faults policy.FileError
			if !errors.As(err, &faults) {
				t.Fatalf("%T is no FileError", err)
			}
			var got []string
			for _, f := range faults {
				got = append(got, f.String())
			}
			if d := cmp.Diff(c.faults, got); d != "" {
				t.Errorf("faults (-want +got):\n%s", d)
			}
		})
	}
}

func TestAFileIsReadUpToItsBound(t *testing.T) {
	fill := func(size int) string {
		text := "policies: {a: {preset: spot}}\n#"
		return text + strings.Repeat("x", size-len(text))
	}
	parse(t, fill(policy.MaxFileBytes))
	if _, err := policy.Parse([]byte(fill(policy.MaxFileBytes + 1))); err == nil || !strings.Contains(err.Error(), "1048577 bytes are more than the 1048576") {
		t.Errorf("one byte too many: %v", err)
	}
}

// TestABombOfAliasesIsRefused writes a file of a few hundred bytes that would unfold to a billion values.
func TestABombOfAliasesIsRefused(t *testing.T) {
	for where, c := range map[string]string{
		"in an unknown field": "x: %s",
		"in the zones":        "policies: {a: {zones: %s}}",
		"in a switch":         "policies: {a: {switches: {restart: %s}}}",
		"as the policies":     "policies: {a: %s}",
	} {
		bomb := "[l, l, l, l, l, l, l, l, l, l]"
		for i := range 9 {
			bomb = fmt.Sprintf("[&a%d %s%s]", i, bomb, strings.Repeat(fmt.Sprintf(", *a%d", i), 9))
		}
		if _, err := policy.Parse(fmt.Appendf(nil, c, bomb)); err == nil {
			t.Errorf("%s: no error", where)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("policies:\n  night:\n    preset: spot\n    switches: {early_maintenance: \"yes\", restart: ask}\n    zones: [us-west4-a]\n    lead: 20m\n    give_up_after: 48h\n    chip_hour_price: 1.20\n"), "restart,recreate")
	f.Add([]byte("policies: {a: &a {switches: {restart: &yes no, recreate: *yes}}, b: {<<: *a, save: signal}}"), "early_maintenance")
	f.Add([]byte("policies:\n  a:\n    places:\n      - &s {accelerator: v5litepod-8, zones: [us-west4-a]}\n      - {<<: *s, accelerator: v6e-8, runtime_version: v2-alpha-tpuv6e}\n"), "recreate")
	f.Add([]byte("policies: {a: {}}\n---\n{}"), "fly")
	f.Fuzz(func(t *testing.T, raw []byte, list string) {
		ceiling, err := policy.Allow(list)
		if err != nil && !ceiling.WatchOnly() {
			t.Fatalf("an invalid list allows %+v", ceiling)
		}
		file, err := policy.Parse(raw)
		if err != nil {
			if strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "policy file: ") {
				t.Fatalf("the error is not one line about the policy file: %q", err)
			}
			return
		}
		for _, name := range append(file.Names(), "", "watch", "spot", "reserved", "no such policy") {
			sound(t, file.For(name, policy.Everything()))
			p := file.For(name, ceiling)
			if p.Switches != p.Switches.Lower(ceiling) {
				t.Fatalf("%q allows %+v under the ceiling %+v", name, p.Switches, ceiling)
			}
			if known := name == "" || policy.Preset(name) || slices.Contains(file.Names(), name); p.Unknown == known {
				t.Fatalf("%q is known: %v, and gives %+v", name, known, p)
			}
		}
	})
}

// sound holds what every policy promises that was read.
func sound(t *testing.T, p policy.Policy) {
	t.Helper()
	switch {
	case p.Lead != 0 && p.Lead < policy.MinLead || p.Lead > policy.MaxLead, p.GiveUpAfter < 0, !(p.ChipHourPrice >= 0),
		p.Save != events.SaveNatural && p.Save != events.SaveSignal, p.Hash == "", p.Unreadable != "",
		p.Unknown && !p.Switches.WatchOnly():
		t.Fatalf("not sound: %+v", p)
	}
	for _, s := range policy.All() {
		switch l := p.Switches.Level(s); {
		case l < policy.No || l > policy.Yes:
			t.Fatalf("%s has level %d", s, l)
		case (l == policy.Yes) != (p.Limits[s] == ""):
			t.Fatalf("%s is %v, limited by %q", s, l, p.Limits[s])
		}
	}
	for _, z := range p.Zones {
		if strings.Count(z, "-") != 2 {
			t.Fatalf("zone %q", z)
		}
	}
}
