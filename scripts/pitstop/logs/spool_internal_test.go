package logs

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/logfile"
)

// TestWhatWaitsComesBackAsItWas, from either end.
func TestWhatWaitsComesBackAsItWas(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)
	var all []logfile.Reading
	for _, suspend := range []*bool{nil, new(true), new(false)} {
		all = append(all, logfile.Reading{Entry: events.Entry{ID: "a", Kind: events.KindCall, Time: at, Call: events.Call{Method: "patch", Suspend: suspend}}})
	}
	all = append(all, logfile.Reading{Entry: events.Entry{Kind: events.KindCrew, Received: at, Crew: &events.CrewReport{Report: events.ReportProgress, Step: 7, StepAt: at}}})
	for _, backward := range []bool{false, true} {
		s, err := newSpool()
		if err != nil {
			t.Fatal(err)
		}
		defer s.close()
		for _, r := range [][]logfile.Reading{all[:2], all[2:]} {
			if err := s.add(r); err != nil {
				t.Fatal(err)
			}
		}
		var back []logfile.Reading
		for len(s.runs) > 0 {
			if back, err = s.next(backward, back); err != nil {
				t.Fatal(err)
			}
		}
		want := slices.Clone(all)
		if backward {
			slices.Reverse(want)
		}
		if !reflect.DeepEqual(back, want) {
			t.Errorf("backward %v: %+v, want %+v", backward, back, want)
		}
	}
}
