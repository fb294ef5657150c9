package incident_test

import (
	"slices"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// fixed is maintenance in two days that cannot be started early.
var fixed = events.Notice{Status: events.NoticePending, WindowStart: start.Add(48 * time.Hour), WindowEnd: start.Add(52 * time.Hour)}

// TestTheLeadIsMeasured: the save before a window is requested in time for what saving takes this training.
func TestTheLeadIsMeasured(t *testing.T) {
	seconds := func(n int, d time.Duration) []int64 { return slices.Repeat([]int64{int64(d.Seconds())}, n) }
	for name, c := range map[string]struct {
		named time.Duration
		mode  events.SaveMode
		pace  incident.Pace
		want  time.Duration
	}{
		"nothing is measured":                  {0, "", incident.Pace{}, policy.DefaultLead},
		"too little is":                        {0, "", incident.Pace{Gaps: seconds(4, time.Hour), Saves: seconds(4, time.Hour), Mode: events.SaveNatural}, policy.DefaultLead},
		"the policy names it":                  {7 * time.Minute, "", incident.Pace{Gaps: seconds(20, time.Hour)}, 7 * time.Minute},
		"checkpoints are an hour apart":        {0, events.SaveNatural, incident.Pace{Gaps: seconds(5, time.Hour)}, 65 * time.Minute},
		"a signal does not wait for the next":  {0, events.SaveSignal, incident.Pace{Gaps: seconds(5, time.Hour)}, policy.DefaultLead},
		"saves by signal take a while":         {0, events.SaveSignal, incident.Pace{Saves: seconds(5, 12*time.Minute), Mode: events.SaveSignal}, 17 * time.Minute},
		"they were made in another mode":       {0, events.SaveSignal, incident.Pace{Saves: seconds(5, 12*time.Minute), Mode: events.SaveNatural}, policy.DefaultLead},
		"one of twenty took long":              {0, "", incident.Pace{Gaps: append(seconds(19, 10*time.Minute), 7000)}, 15 * time.Minute},
		"two of twenty did":                    {0, "", incident.Pace{Gaps: append(seconds(18, 10*time.Minute), 3000, 7000)}, 55 * time.Minute},
		"one of five took long":                {0, "", incident.Pace{Gaps: append(seconds(4, 10*time.Minute), 3000)}, 55 * time.Minute},
		"one of five saves did":                {0, events.SaveSignal, incident.Pace{Saves: append(seconds(4, 10*time.Minute), 3000), Mode: events.SaveSignal}, 55 * time.Minute},
		"what takes seconds":                   {0, "", incident.Pace{Gaps: seconds(9, 20*time.Second)}, 10 * time.Minute},
		"what takes a day":                     {0, "", incident.Pace{Gaps: seconds(9, 24*time.Hour)}, 2 * time.Hour},
		"saves that took longer than the gaps": {0, "", incident.Pace{Gaps: seconds(9, 20*time.Minute), Saves: seconds(5, 40*time.Minute), Mode: events.SaveNatural}, 45 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			p := policies["spot"]
			p.Lead, p.Save = c.named, c.mode
			w := quiet(true)
			w.Pace = c.pace
			w = announced(p, w, fixed)
			if got := fixed.WindowStart.Sub(w.Slices[0].Notice.Due); got != c.want {
				t.Errorf("the save is due %v before the window, want %v", got, c.want)
			}
		})
	}
}

// TestThePaceIsThatOfTheTraining: of what the crew tells, that between two checkpoints of one attempt is measured, and of
// what was asked for the time from the request to the end of the checkpoint.
func TestThePaceIsThatOfTheTraining(t *testing.T) {
	p := policies["spot"]
	p.Lead = 0
	w, now := quiet(true), start
	w.Progress = incident.Progress{}
	tell := func(minutes, attempt int, step, checkpoint int64) {
		now = now.Add(time.Duration(minutes) * time.Minute)
		w, _, _ = advance(p, w, incident.Reported{
			Origin: incident.Origin{Time: now, Rank: events.RankUser}, Slice: w.Slices[0].Name,
			Report: events.CrewReport{Report: events.ReportProgress, Attempt: attempt, Step: step, CheckpointStep: checkpoint},
		}, now)
	}
	tell(5, 1, 100, 90)
	tell(5, 1, 200, 90)
	tell(5, 1, 300, 290)
	tell(30, 1, 400, 390)
	tell(300, 2, 391, 390) // a restart
	tell(5, 2, 500, 490)
	tell(10, 2, 600, 590)
	tell(25*60, 2, 700, 690) // longer than anybody waits
	if want := []int64{10 * 60, 30 * 60, 10 * 60}; !slices.Equal(w.Pace.Gaps, want) {
		t.Errorf("gaps %v, want %v", w.Pace.Gaps, want)
	}
	for i := range 30 {
		tell(1, 2, 800+100*int64(i), 790+100*int64(i))
	}
	if n := len(w.Pace.Gaps); n != 20 {
		t.Errorf("%d gaps are kept", n)
	}

	n := drive(t, "ongoing, do, saved, do, found verify 0")
	if pace := n.w.Pace; len(pace.Saves) != 1 || pace.Mode != events.SaveNatural || pace.Saves[0] > 60 {
		t.Errorf("%+v", pace)
	}
}
