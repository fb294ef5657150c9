package incident_test

import (
	"testing"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
)

// TestAnExitThatComesAfterTheCrewGaveUpOpensNothing: two lines of one second may overtake each other on their way.
func TestAnExitThatComesAfterTheCrewGaveUpOpensNothing(t *testing.T) {
	w := quiet(true)
	w.Crew.Attempt, w.Crew.Exited, w.Crew.GaveUp = 24, 23, 24
	exited := incident.Reported{
		Origin: incident.Origin{ID: "line", Time: start, Rank: events.RankUser}, Slice: w.Slices[0].Name,
		Report: events.CrewReport{Report: events.ReportExited, ExitCode: 1, Attempt: 24, Step: 48_250},
	}
	after, sent, _ := incident.Advance(policies["everything"], w, exited, start)
	if after.Incident != nil || len(sent) > 0 {
		t.Errorf("it opened %+v and sent %v", after.Incident, sent)
	}
	exited.Report.Attempt = 25
	if after, _, _ = incident.Advance(policies["everything"], after, exited, start); after.Incident == nil {
		t.Error("the exit of a later attempt opened nothing")
	}
}
