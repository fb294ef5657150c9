package loggingtest_test

import (
	"testing"
	"time"

	"pitstop.internal/shared/logging/loggingtest"
)

func TestMatches(t *testing.T) {
	const entry = `{"logName":"projects/p/logs/cloudaudit.googleapis.com%2Factivity","severity":"ERROR","textPayload":"Hello World",
"resource":{"type":"gce_instance"},"operation":{"last":true},"protoPayload":{"methodName":"v1.compute.instances.delete"},
"jsonPayload":{"a":[{"b":"x"},{"b":"y"}],"labels":{"c.d/e":"1"},"n":2,"@type":"t"}}`
	for filter, want := range map[string]bool{
		`log_id("cloudaudit.googleapis.com/activity")`:           true,
		`log_id("cloudaudit.googleapis.com/system_event")`:       false,
		`resource.type="gce_instance"`:                           true,
		`resource.type="GCE_Instance"`:                           true,
		`resource.type=("audited_resource" OR "gce_instance")`:   true,
		`resource.type=("audited_resource" OR "tpu_worker")`:     false,
		`NOT resource.type=("audited_resource" OR "tpu_worker")`: true,
		`resource.name="x"`:                                      false,
		`NOT resource.name="x"`:                                  true,
		`textPayload:"world"`:                                    true,
		`textPayload:"word"`:                                     false,
		`operation.last=true`:                                    true,
		`operation.first=true`:                                   false,
		`severity>=WARNING`:                                      true,
		`severity>=CRITICAL`:                                     false,
		`protoPayload.methodName=~"[.]delete$"`:                  true,
		`protoPayload.methodName=~"^delete"`:                     false,
		`NOT protoPayload.methodName=~"^delete"`:                 true,
		`jsonPayload.a.b="y"`:                                    true,
		`jsonPayload.a.b="z"`:                                    false,
		`jsonPayload.a.b:*`:                                      true,
		`jsonPayload.a.c:*`:                                      false,
		`jsonPayload.labels."c.d/e":*`:                           true,
		`jsonPayload.n>=2`:                                       true,
		`jsonPayload.n>=3`:                                       false,
		`jsonPayload.a.b>=1`:                                     false,
		`jsonPayload."@type"="t"`:                                true,
		"severity>=ERROR\nAND (\n  textPayload:\"x\"\n  OR resource.type:\"gce\")": true,
		`textPayload:"x" AND resource.type:"gce" OR resource.type:"tpu"`:           false, // OR binds closer
		`NOT (operation.last=true AND NOT operation.first=true)`:                   false,
	} {
		f, err := loggingtest.Parse(filter)
		if err != nil {
			t.Errorf("%s: %v", filter, err)
			continue
		}
		if got, err := f.Matches([]byte(entry)); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", filter, got, err, want)
		}
	}
}

func TestAFilterSaysFromWhenOn(t *testing.T) {
	early, late := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2026, 1, 2, 0, 0, 0, 0, time.UTC)
	for filter, want := range map[string]time.Time{
		`timestamp>="2026-01-01T00:00:00Z" AND a="b"`:                                         early,
		`a="b" AND (timestamp>="2026-01-01T00:00:00Z" AND timestamp>="2026-01-02T00:00:00Z")`: late,
		`a="b" OR timestamp>="2026-01-01T00:00:00Z"`:                                          {},
		`NOT timestamp>="2026-01-01T00:00:00Z"`:                                               {},
		`receiveTimestamp>="2026-01-01T00:00:00Z"`:                                            {},
	} {
		if f, err := loggingtest.Parse(filter); err != nil || !f.From.Equal(want) {
			t.Errorf("%s: from %v, %v; want %v", filter, f.From, err, want)
		}
	}
}

func TestParseRefusesWhatIsNotEvaluated(t *testing.T) {
	for _, filter := range []string{
		`"a word anywhere"`, `resource.type="a" AND word`, `timestamp<"2026-01-01T00:00:00Z"`, `a.b=~"("`, `ip_in_net(a, "10.0.0.0/8")`, `a.b=`, `a.b !~ "x"`,
	} {
		if _, err := loggingtest.Parse(filter); err == nil {
			t.Errorf("%s is taken", filter)
		}
	}
}

func TestTimesAreComparedAsTimes(t *testing.T) {
	const entry = `{"timestamp":"2026-03-01T12:00:00.5Z"}`
	for filter, want := range map[string]bool{
		`timestamp>="2026-03-01T12:00:00.5Z"`:      true,
		`timestamp>="2026-03-01T13:00:00+01:00"`:   true,
		`timestamp>="2026-03-01T12:00:00.500001Z"`: false,
		`receiveTimestamp>="2026-03-01T12:00:00Z"`: false,
	} {
		f, err := loggingtest.Parse(filter)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := f.Matches([]byte(entry)); err != nil || got != want {
			t.Errorf("%s: %v, %v; want %v", filter, got, err, want)
		}
	}
}
