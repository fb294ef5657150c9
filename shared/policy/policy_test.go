package policy_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/policy"
)

const (
	no  = policy.No
	ask = policy.Ask
	yes = policy.Yes
)

func TestPresetsNeedNoFile(t *testing.T) {
	for label, want := range map[string]policy.Switches{
		"watch":    {},
		"spot":     {RequestCheckpoint: yes, Restart: yes, Recreate: yes},
		"reserved": {RequestCheckpoint: yes, EarlyMaintenance: yes, Restart: yes, StartStopped: yes},
	} {
		want := policy.Policy{Name: label, Switches: want, Limits: below(want, "preset "+label), Save: events.SaveNatural, LeaveZoneFor: policy.DefaultLeaveZoneFor}
		if d := cmp.Diff(want, (*policy.File)(nil).For(label, policy.Everything())); d != "" {
			t.Errorf("%s (-want +got):\n%s", label, d)
		}
		if !policy.Preset(label) {
			t.Errorf("%s is no preset", label)
		}
	}
	if policy.Preset("") || policy.Preset("night") {
		t.Error("a name that is no preset passes as one")
	}
}

// below has one who limits all switches that are not yes.
func below(s policy.Switches, who string) policy.Limits {
	limits := policy.Limits{}
	for _, name := range policy.All() {
		if s.Level(name) != yes {
			limits[name] = who
		}
	}
	return limits
}

func TestEachSwitchSaysWhoLimitsIt(t *testing.T) {
	f := parse(t, `
policies:
  night:
    preset: spot
    switches: {early_maintenance: ask, restart: ask, recreate: no, start_stopped: yes}
  bare: {switches: {restart: yes}}
`)
	const preset, night = "policy night (preset spot)", "policy night"
	for name, c := range map[string]struct {
		label, allow string
		want         policy.Limits
	}{
		"a policy of the file": {"night", "request_checkpoint,early_maintenance,restart,recreate,recreate_non_spot,start_stopped", policy.Limits{
			policy.EarlyMaintenance: night, policy.Restart: night, policy.Recreate: night, policy.RecreateNonSpot: preset,
		}},
		"the lower of policy and deployment": {"night", "restart", policy.Limits{
			policy.RequestCheckpoint: "the deployment", policy.EarlyMaintenance: "the deployment", policy.Restart: night,
			policy.Recreate: night + " and the deployment", policy.RecreateNonSpot: preset + " and the deployment", policy.StartStopped: "the deployment",
		}},
		"a policy without a preset": {"bare", "restart,recreate", policy.Limits{
			policy.RequestCheckpoint: "policy bare and the deployment", policy.EarlyMaintenance: "policy bare and the deployment",
			policy.Recreate: "policy bare", policy.RecreateNonSpot: "policy bare and the deployment", policy.StartStopped: "policy bare and the deployment",
		}},
		"a preset": {"spot", "restart,request_checkpoint", policy.Limits{
			policy.EarlyMaintenance: "preset spot and the deployment", policy.Recreate: "the deployment",
			policy.RecreateNonSpot: "preset spot and the deployment", policy.StartStopped: "preset spot and the deployment",
		}},
		"no label": {
			"", "restart,request_checkpoint,early_maintenance,recreate,recreate_non_spot,start_stopped",
			below(policy.Switches{}, "the missing label pitstop-policy"),
		},
		"an unknown label": {
			"nigth", "restart,request_checkpoint,early_maintenance,recreate,recreate_non_spot,start_stopped",
			below(policy.Switches{}, "a label that names no policy"),
		},
	} {
		ceiling, err := policy.Allow(c.allow)
		must(t, err)
		for range 2 { // what one is told changes nothing for the next
			if d := cmp.Diff(c.want, f.For(c.label, ceiling).Limits); d != "" {
				t.Errorf("%s (-want +got):\n%s", name, d)
			}
		}
	}
}

func TestNoLabelIsWatchedAndAnUnknownOneIsWatchedLoudly(t *testing.T) {
	file := parse(t, "policies: {night: {preset: spot}}")
	for _, f := range []*policy.File{nil, file} {
		if p := f.For("", policy.Everything()); p.Name != "watch" || !p.Switches.WatchOnly() || p.Unknown {
			t.Errorf("no label: %+v", p)
		}
		for _, label := range []string{"nigth", "Spot", "spot "} {
			if p := f.For(label, policy.Everything()); p.Name != label || !p.Switches.WatchOnly() || !p.Unknown || p.Lead != 0 {
				t.Errorf("label %q: %+v", label, p)
			}
		}
	}
	if p := file.For("night", policy.Everything()); p.Unknown || p.Switches.WatchOnly() {
		t.Errorf("a label of the file: %+v", p)
	}
}

func TestAllowSetsWhatItNamesToYesAndTheRestToNo(t *testing.T) {
	for list, want := range map[string]policy.Switches{
		"":                             {},
		" , ,":                         {},
		"restart":                      {Restart: yes},
		" restart ,request_checkpoint": {Restart: yes, RequestCheckpoint: yes},
		"request_checkpoint,early_maintenance,restart,recreate,recreate_non_spot,start_stopped": policy.Everything(),
	} {
		if got, err := policy.Allow(list); err != nil || got != want {
			t.Errorf("Allow(%q) = %+v, %v; want %+v", list, got, err, want)
		}
	}
	got, err := policy.Allow("restart,fly,Recreate,recreate=yes")
	if got != (policy.Switches{}) {
		t.Errorf("a list with faults allows %+v", got)
	}
	for _, fault := range []string{`"fly"`, `"Recreate"`, `"recreate=yes"`, "start_stopped"} {
		if err == nil || !strings.Contains(err.Error(), fault) {
			t.Errorf("%v does not tell %s", err, fault)
		}
	}
}

func TestEffectiveIsTheLowerOfAllowAndPolicy(t *testing.T) {
	f := parse(t, "policies: {a: {preset: reserved, switches: {restart: ask, recreate: ask}}}")
	for allow, want := range map[string]policy.Switches{
		"":                          {},
		"recreate_non_spot":         {},
		"restart":                   {Restart: ask},
		"restart,start_stopped":     {Restart: ask, StartStopped: yes},
		"recreate,restart,recreate": {Recreate: ask, Restart: ask},
	} {
		ceiling, err := policy.Allow(allow)
		must(t, err)
		if got := f.For("a", ceiling).Switches; got != want {
			t.Errorf("allow %q: %+v, want %+v", allow, got, want)
		}
	}
}

// every lists all 729 settings of the switches.
func every() []policy.Switches {
	all := []policy.Switches{{}}
	levels := []policy.Level{no, ask, yes}
	for _, set := range []func(*policy.Switches, policy.Level){
		func(s *policy.Switches, l policy.Level) { s.RequestCheckpoint = l },
		func(s *policy.Switches, l policy.Level) { s.EarlyMaintenance = l },
		func(s *policy.Switches, l policy.Level) { s.Restart = l },
		func(s *policy.Switches, l policy.Level) { s.Recreate = l },
		func(s *policy.Switches, l policy.Level) { s.RecreateNonSpot = l },
		func(s *policy.Switches, l policy.Level) { s.StartStopped = l },
	} {
		var next []policy.Switches
		for _, s := range all {
			for _, l := range levels {
				set(&s, l)
				next = append(next, s)
			}
		}
		all = next
	}
	return all
}

func TestLowerIsTheLowerLevelOfEachSwitch(t *testing.T) {
	names, all := policy.All(), every()
	for _, a := range all {
		for _, b := range all {
			lower, watchOnly := a.Lower(b), true
			for _, s := range names {
				if got := lower.Level(s); got != min(a.Level(s), b.Level(s)) {
					t.Fatalf("%s: %v of %v and %v", s, got, a.Level(s), b.Level(s))
				}
				watchOnly = watchOnly && lower.Level(s) == no
			}
			if lower.WatchOnly() != watchOnly {
				t.Fatalf("%+v is watched only: %v", lower, lower.WatchOnly())
			}
		}
		if a.Lower(policy.Everything()) != a {
			t.Fatalf("the ceiling that takes nothing away takes something from %+v", a)
		}
	}
}

func TestASwitchIsKnownByItsNameAlone(t *testing.T) {
	// One switch at a time, so that no two can be mixed up.
	for _, s := range policy.All() {
		only, err := policy.Allow(string(s))
		must(t, err)
		for _, other := range policy.All() {
			want := no
			if other == s {
				want = yes
			}
			if got := only.Level(other); got != want {
				t.Errorf("allowed is %s, and %s is %v", s, other, got)
			}
		}
	}
	if l := policy.Everything().Level("fly"); l != no {
		t.Errorf("what is no switch is %v", l)
	}
}

func TestLevelsAreWrittenAsTheyAreRead(t *testing.T) {
	for level, name := range map[policy.Level]string{no: "no", ask: "ask", yes: "yes"} {
		text, err := level.MarshalText()
		if err != nil || string(text) != name || level.String() != name {
			t.Errorf("%s is written %q and said %q: %v", name, text, level, err)
		}
		var got policy.Level
		if err := got.UnmarshalText([]byte(name)); err != nil || got != level {
			t.Errorf("%q is read as %v: %v", name, got, err)
		}
	}
	for _, text := range []string{"", "Yes", "true", "maybe"} {
		l := ask
		if err := l.UnmarshalText([]byte(text)); err == nil || l != ask {
			t.Errorf("%q is read as %v", text, l)
		}
	}
	for _, l := range []policy.Level{-1, 3} {
		if l.String() != "no" {
			t.Errorf("level %d, which there is not, allows %q", int(l), l)
		}
	}
}
