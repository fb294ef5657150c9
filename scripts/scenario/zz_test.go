package scenario

import (
	"os"
	"testing"
)

func TestZZ(t *testing.T) {
	r, err := Load("../../events/testdata/" + os.Getenv("FIX"))
	if err != nil {
		t.Fatal(err)
	}
	opts := Options{Policy: r.Policy}
	if os.Getenv("V") != "" {
		opts.Log = os.Stderr
	}
	s, err := Run(t.Context(), r.Name, r.Scenario, r.Records, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range s.Lines {
		if l.Routine {
			continue
		}
		t.Logf("%s %-9s sim=%-5v %-11s %-10s %s | %s  [%s]", l.Time.Format("02 15:04:05.0"), l.Kind, l.Simulated, l.Function, l.Phase, l.Text, l.Reason, l.Incident)
	}
	for _, e := range s.Ended {
		t.Logf("ENDED %s %s by %s: %s / %s", e.Workload, e.Outcome, e.ConfirmedBy, e.Incident.Reason, e.Advice)
	}
	for _, e := range s.Open {
		t.Logf("OPEN %s %s", e.Workload, e.Phase)
	}
	t.Log(s.Calls, s.Requests, s.Faults)
}
