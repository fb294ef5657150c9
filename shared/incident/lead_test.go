package incident_test

import (
	"slices"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/policy"
)

// announces has the API show what is announced for a slice.
func (n *story) announces(slice string, notice events.Notice) *story {
	return n.give(evidence.Noticed{
		Origin: n.reading(), Slice: slice, Incarnation: n.w.Slice(slice).Incarnation, Notice: notice, InAPI: notice.Status != events.NoticeGone, Text: "notice",
	})
}

// TestTheLeadIsMeasured: the save before a window is asked for in time for what saving takes this training.
func TestTheLeadIsMeasured(t *testing.T) {
	t.Parallel()
	seconds := func(n int, d time.Duration) []int64 { return slices.Repeat([]int64{int64(d.Seconds())}, n) }
	const natural, signal = events.SaveNatural, events.SaveSignal
	for name, c := range map[string]struct {
		named       time.Duration
		mode        events.SaveMode
		gaps, saves []int64
		made        events.SaveMode
		want        time.Duration
	}{
		"nothing is measured":                  {want: policy.DefaultLead},
		"too little is":                        {gaps: seconds(4, time.Hour), saves: seconds(4, time.Hour), made: natural, want: policy.DefaultLead},
		"the policy names it":                  {named: 7 * time.Minute, gaps: seconds(20, time.Hour), want: 7 * time.Minute},
		"checkpoints are an hour apart":        {mode: natural, gaps: seconds(5, time.Hour), want: 65 * time.Minute},
		"a signal does not wait for the next":  {mode: signal, gaps: seconds(5, time.Hour), want: policy.DefaultLead},
		"saves by signal take a while":         {mode: signal, saves: seconds(5, 12*time.Minute), made: signal, want: 17 * time.Minute},
		"they were made in another mode":       {mode: signal, saves: seconds(5, 12*time.Minute), made: natural, want: policy.DefaultLead},
		"one of twenty took long":              {gaps: append(seconds(19, 10*time.Minute), 7000), want: 15 * time.Minute},
		"two of twenty did":                    {gaps: append(seconds(18, 10*time.Minute), 3000, 7000), want: 55 * time.Minute},
		"one of five saves did":                {mode: signal, saves: append(seconds(4, 10*time.Minute), 3000), made: signal, want: 55 * time.Minute},
		"what takes seconds":                   {gaps: seconds(9, 20*time.Second), want: 10 * time.Minute},
		"what takes a day":                     {gaps: seconds(9, 24*time.Hour), want: 2 * time.Hour},
		"saves that took longer than the gaps": {gaps: seconds(9, 20*time.Minute), saves: seconds(5, 40*time.Minute), made: natural, want: 45 * time.Minute},
	} {
		n := newStory(t, false, "a")
		n.p.Lead, n.p.Save = c.named, c.mode
		n.w.Training.GapsBetween, n.w.Training.SaveSeconds, n.w.Training.SaveMode = c.gaps, c.saves, c.made
		n.announces("a", notices["moved"])
		if shown := n.w.Shown(n.now).Slices[0].LastNotice; shown == nil || notices["moved"].WindowStart.Sub(shown.Due) != c.want {
			t.Errorf("%s: shown is %+v, want the save %v before the window", name, shown, c.want)
		}
	}
}

// TestThePaceIsThatOfTheTraining: measured between two checkpoints of one attempt, or from a request to the end of its checkpoint.
func TestThePaceIsThatOfTheTraining(t *testing.T) {
	t.Parallel()
	n := newStory(t, false, "a")
	n.w.Training = incident.Training{}
	tell := func(minutes, attempt int, step int64) {
		n.now = n.now.Add(time.Duration(minutes) * time.Minute)
		n.line("a", events.CrewReport{Report: events.ReportProgress, Attempt: attempt, Step: step, CheckpointStep: step / 100 * 100})
	}
	for _, c := range []struct{ minutes, attempt, step int }{
		{5, 1, 10},
		{5, 1, 110},
		{5, 1, 120},
		{5, 1, 210},
		{30, 1, 310},
		{300, 2, 311}, // a restart
		{5, 2, 410},
		{10, 2, 510},
		{25 * 60, 2, 610}, // longer than anybody waits
	} {
		tell(c.minutes, c.attempt, int64(c.step))
	}
	if want := []int64{10 * 60, 30 * 60, 10 * 60}; !slices.Equal(n.w.Training.GapsBetween, want) {
		t.Errorf("the gaps are %v, want %v", n.w.Training.GapsBetween, want)
	}
	for i := range int64(30) {
		tell(1, 2, 710+100*i)
	}
	if got := len(n.w.Training.GapsBetween); got != 20 {
		t.Errorf("%d gaps are kept", got)
	}
	n = newStory(t, false, "a")
	n.goes("a log ongoing, does save, 20s, saved, 10s, found verify")
	if tr := n.w.Training; len(tr.SaveSeconds) != 1 || tr.SaveMode != events.SaveNatural || tr.SaveSeconds[0] < 10 || tr.SaveSeconds[0] > 20 {
		t.Errorf("a save took %v in the mode %q", tr.SaveSeconds, tr.SaveMode)
	}
}
