package faults

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pitstop.internal/scripts/sim/world"
)

func TestTracesSayWhatHappensWhen(t *testing.T) {
	type want struct {
		at, lasts    time.Duration
		where, cause string
		node         int
	}
	for name, c := range map[string]struct {
		text  string
		lasts time.Duration
		want  []want
	}{
		"events.csv": {
			"# made up\nseconds,slice,cause,minutes\n120,*,preempted,\n60.5,us-west4-a,stockout,90\n", 120 * time.Second,
			[]want{{60*time.Second + 500*time.Millisecond, 90 * time.Minute, "us-west4-a", "stockout", 0}, {2 * time.Minute, 0, drawn, "preempted", 0}},
		},
		"without-minutes.csv": {"seconds,slice,cause\n1,t5,training_crash\n", time.Second, []want{{time.Second, 0, "t5", "training_crash", 0}}},
		"us-west4-a_x_1.json": {
			`{"metadata": {"gap_seconds": 30}, "data": [0, 1, 4, 0, 0, 2, 0]}`, 210 * time.Second,
			[]want{
				{0, 30 * time.Second, "us-west4-a", noCapacity, 0},
				{90 * time.Second, time.Minute, "us-west4-a", noCapacity, 0},
				{180 * time.Second, 30 * time.Second, "us-west4-a", noCapacity, 0}, // the time after the end is unknown
			},
		},
		"nodes.csv": {
			"0,add,a\n0,add,b\n60000,remove,b\n120000,add,c\n180000,remove,a\n", 3 * time.Minute,
			[]want{{time.Minute, 0, "", "preempted", 2}, {3 * time.Minute, 0, "", "preempted", 1}},
		},
	} {
		tr, err := ParseTrace("somewhere/"+name, "", []byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []want
		for _, m := range tr.moments {
			got = append(got, want{m.at, m.lasts, m.where, m.cause, m.node})
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
		"":                                   "t.csv: it is empty",
		"# nothing\n":                        "it holds only comments",
		"hello\n":                            `line 1: "hello" begins no trace`,
		"{":                                  "it is no availability series",
		`{"data": [1]}`:                      "metadata.gap_seconds is 0",
		`{"metadata": {"gap_seconds": 1}}`:   "data is empty",
		`{"metadata": {"gap_seconds": "1"}}`: "it is no availability series",
		`{"metadata":{"gap_seconds":1e300},"data":[1,1]}`: "longer than the 3650 days",
		`{"metadata":{"gap_seconds":9},"data":[1,-2]}`:    "data[1] is -2",
		`{"metadata":{"gap_seconds":9},"data":[1,0]}`:     `"t.csv" is no zone of the fleet (us-central1-a, us-west4-a, us-west4-b); name one with FILE=ZONE`,
		header + "1,llama-8b\n":                           "line 2: 2 fields; there have to be seconds, slice, cause and perhaps minutes",
		header + "-1,llama-8b,preempted,\n":               `line 2: "-1" is no number of seconds`,
		header + "NaN,llama-8b,preempted,\n":              "is no number of seconds",
		header + "1e99,llama-8b,preempted,\n":             "is no number of seconds",
		header + "1,llama-8b,preemptd,\n":                 `line 2: "preemptd" is no cause; did you mean preempted?`,
		header + "1,,preempted,\n":                        "the slice is missing",
		header + "\n1,llama-8c,preempted,\n":              `line 3: "llama-8c" is no slice of the fleet; did you mean llama-8b?`,
		header + "1,t5,preempted,\n":                      "line 2: preempted does not happen to t5, which is not Spot",
		header + "1,us-west9-a,stockout,\n":               `line 2: "us-west9-a" is no zone of the fleet`,
		header + "1,t5,everything_paused,\n":              "its slice has to be *",
		header + "1,llama-8b,preempted,7\n":               "preempted has no length of 7 minutes",
		header + "1,*,stockout,0\n":                       "stockout has no length of 0 minutes",
		header + "1,\"llama\n":                            "parse error on line 2",
		"0,add,a\n1,replace,a\n":                          "line 2: it has to be milliseconds, add or remove, and a node",
		"x,add,a\n":                                       `line 1: "x" is no number of milliseconds`,
	} {
		tr, err := ParseTrace("t.csv", "", []byte(text))
		if err == nil {
			err = tr.Fits(someFleet)
		}
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "t.csv: ") {
			t.Errorf("%q: %v; want one line that says %q", text, err, want)
		}
	}
	if _, err := ParseTrace("t.csv", "us-west4-a", []byte("0,add,a\n")); err == nil {
		t.Error("a list of nodes has a zone")
	}
}

func fuzzTrace(f *testing.F, file string, like func(text string) bool) {
	f.Helper()
	data, err := os.ReadFile(filepath.Join("testdata/traces", file))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Fuzz(func(t *testing.T, data []byte) {
		if !like(string(data)) {
			return
		}
		tr, err := ParseTrace("us-west4-a.csv", "", data)
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
			if m.at < last || m.at > tr.Lasts || m.lasts < 0 || tr.Lasts > Longest || m.where == "" && m.node == 0 {
				t.Fatalf("moment %+v of a trace that lasts %v, after %v", m, tr.Lasts, last)
			}
			last = m.at
		}
	})
}

func FuzzTraceEvents(f *testing.F) {
	fuzzTrace(f, "events.csv", func(s string) bool { return strings.Contains(s, "seconds,slice,cause") })
}

func FuzzTraceNodes(f *testing.F) {
	fuzzTrace(f, "nodes.csv", func(s string) bool { return !strings.HasPrefix(s, "{") })
}

func FuzzTraceAvailability(f *testing.F) {
	fuzzTrace(f, "us-west4-a_example.json", func(s string) bool { return strings.HasPrefix(s, "{") })
}
