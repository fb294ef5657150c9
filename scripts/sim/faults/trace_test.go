package faults

import (
	"os"
	"strings"
	"testing"
	"time"

	"pitstop.internal/scripts/sim/world"
)

func TestTracesSayWhatHappensWhen(t *testing.T) {
	type want struct {
		at, lasts    time.Duration
		where, cause string
	}
	for name, c := range map[string]struct {
		text  string
		lasts time.Duration
		want  []want
	}{
		"events.csv": {
			"# made up\nseconds,slice,cause,minutes\n120,*,preempted,\n60.5,us-west4-a,stockout,90\n", 120 * time.Second,
			[]want{{60*time.Second + 500*time.Millisecond, 90 * time.Minute, "us-west4-a", "stockout"}, {2 * time.Minute, 0, drawn, "preempted"}},
		},
		"without-minutes.csv": {"seconds,slice,cause\n1,t5,training_crash\n", time.Second, []want{{time.Second, 0, "t5", "training_crash"}}},
	} {
		tr, err := ParseTrace("somewhere/"+name, []byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []want
		for _, m := range tr.moments {
			got = append(got, want{m.at, m.lasts, m.where, m.cause})
		}
		if tr.Name != name || tr.Lasts != c.lasts || len(got) != len(c.want) {
			t.Errorf("%s: %q lasts %v: %+v; want %v: %+v", name, tr.Name, tr.Lasts, got, c.lasts, c.want)
			continue
		}
		for i := range got {
			if got[i] != c.want[i] {
				t.Errorf("%s: moment %d is %+v, want %+v", name, i, got[i], c.want[i])
			}
		}
	}
}

// someFleet is one that traces are held against.
var someFleet = world.Scenario{
	Capacity: map[string]int{"us-west4-a": -1, "us-west4-b": -1, "us-central1-a": -1},
	Fleet: []world.SliceConfig{
		{Name: "llama-8b", Zone: "us-west4-a", Accelerator: "v5litepod-16", Spot: true},
		{Name: "t5", Zone: "us-west4-b", Accelerator: "v5litepod-8"},
	},
}

func TestFaultyTracesAreOneLine(t *testing.T) {
	const header = "seconds,slice,cause,minutes\n"
	for text, want := range map[string]string{
		"":                                    "t.csv: it is empty",
		"# nothing\n":                         "it is empty, or holds only comments",
		"hello\n":                             `line 1: "hello" begins no trace`,
		header + "1,llama-8b\n":               "line 2: 2 fields; there have to be seconds, slice, cause and perhaps minutes",
		header + "-1,llama-8b,preempted,\n":   `line 2: "-1" is no number of seconds`,
		header + "NaN,llama-8b,preempted,\n":  "is no number of seconds",
		header + "1e99,llama-8b,preempted,\n": "is no number of seconds",
		header + "1,llama-8b,preemptd,\n":     `line 2: "preemptd" is no cause; did you mean preempted?`,
		header + "1,,preempted,\n":            "the slice is missing",
		header + "\n1,llama-8c,preempted,\n":  `line 3: "llama-8c" is no slice of the fleet; did you mean llama-8b?`,
		header + "1,t5,preempted,\n":          "line 2: preempted does not happen to t5, which is not Spot",
		header + "1,us-west9-a,stockout,\n":   `line 2: "us-west9-a" is no zone of the fleet`,
		header + "1,t5,everything_paused,\n":  "its slice has to be *",
		header + "1,llama-8b,preempted,7\n":   "preempted has no length of 7 minutes",
		header + "1,*,stockout,0\n":           "stockout has no length of 0 minutes",
		header + "1,\"llama\n":                "parse error on line 2",
	} {
		tr, err := ParseTrace("t.csv", []byte(text))
		if err == nil {
			err = tr.Fits(someFleet)
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "t.csv: ") {
			t.Errorf("%q: %v; want one line that says %q", text, err, want)
		}
	}
}

func FuzzTraceEvents(f *testing.F) {
	data, err := os.ReadFile("testdata/traces/events.csv")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := ParseTrace("us-west4-a.csv", data)
		if err == nil {
			err = tr.Fits(someFleet)
		}
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Errorf("%q is more than a line", err)
			}
			return
		}
		last := time.Duration(0)
		for _, m := range tr.moments {
			if m.at < last || m.at > tr.Lasts || m.lasts < 0 || tr.Lasts > Longest || m.where == "" {
				t.Fatalf("moment %+v of a trace that lasts %v, after %v", m, tr.Lasts, last)
			}
			last = m.at
		}
	})
}
