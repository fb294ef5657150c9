//go:build unix

package crew_test

import (
	"testing"

	"pitstop.internal/scripts/pitcrew/crew"
	"pitstop.internal/scripts/pitcrew/metadata"
)

func TestParseProgress(t *testing.T) {
	for text, want := range map[string]int64{
		"": -1, "12": 12, "12\n": 12, "1\n2\n3\n\n": 3, `{"step": 48213, "loss": 2.1}`: 48213, "{\"step\":1}\n{\"step\":2}\n": 2,
		"{\n  \"step\": 7\n}\n": 7, "x": -1, "-1": -1, `{"loss":1}`: -1, `{"step":"7"}`: -1, `{"step":-3}`: -1, `{"step":1e300}`: -1, " 5 ": 5,
	} {
		if got := crew.ParseProgress(text); got != want {
			t.Errorf("%q is %d, want %d", text, got, want)
		}
	}
}

func FuzzParseProgress(f *testing.F) {
	f.Add("12\n")
	f.Add(`{"step": 3}`)
	f.Fuzz(func(t *testing.T, text string) {
		if n := crew.ParseProgress(text); n < -1 {
			t.Errorf("%q is step %d", text, n)
		}
	})
}

func TestLife(t *testing.T) {
	for _, c := range []struct {
		m    metadata.Machine
		want string
	}{
		{metadata.Machine{Host: "t1v-n-0123abcd-w-3", Peers: []string{"10.0.0.1", "10.0.0.2"}}, "t1v-n-0123abcd"},
		{metadata.Machine{Host: "pod-3", Peers: []string{"job-slice-0.svc", "job-slice-1.svc"}}, "job-slice-0.svc"},
		{metadata.Machine{Host: "laptop", Peers: []string{"x"}}, "laptop"},
		{metadata.Machine{Host: "laptop", MachineID: "0a1b2c3d"}, "laptop-0a1b2c3d"},
		{metadata.Machine{Host: "pod-3", MachineID: "0a1b2c3d", Peers: []string{"job-slice-0.svc", "job-slice-1.svc"}}, "job-slice-0.svc"},
		{metadata.Machine{Host: "t1v-n-0123abcd-w-3", MachineID: "0a1b2c3d"}, "t1v-n-0123abcd"},
	} {
		if got := crew.Life(c.m); got != c.want {
			t.Errorf("%+v: %q, want %q", c.m, got, c.want)
		}
	}
}
