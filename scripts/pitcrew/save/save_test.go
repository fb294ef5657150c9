package save_test

import (
	"strings"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitcrew/save"
)

var now = time.Date(2026, 3, 1, 12, 0, 0, 500, time.UTC)

func world() save.World {
	return save.World{Now: now, Running: true, Handled: true, Directory: true, Coarse: time.Second, Signal: "SIGTERM", Step: 100}
}

func TestTake(t *testing.T) {
	for _, c := range []struct {
		name   string
		r      save.Request
		w      func(*save.World)
		act    save.Act
		reason string
	}{
		{name: "signal to who handles it", r: save.Request{ID: "a", Mode: events.SaveSignal}, act: save.Signal},
		{name: "a command goes before a signal", r: save.Request{ID: "a", Mode: events.SaveSignal}, w: func(w *save.World) { w.Command = true }, act: save.Command},
		{name: "nobody handles the signal", r: save.Request{ID: "a", Mode: events.SaveSignal}, w: func(w *save.World) { w.Handled = false }, reason: "would die"},
		{name: "nothing to look at", r: save.Request{ID: "a", Mode: events.SaveNatural}, w: func(w *save.World) { w.Directory = false }, reason: "no checkpoint directory"},
		{name: "nothing runs", r: save.Request{ID: "a", Mode: events.SaveSignal}, w: func(w *save.World) { w.Running = false }, reason: "no training runs"},
		{name: "too late", r: save.Request{ID: "a", Mode: events.SaveSignal, By: now}, reason: "too late"},
	} {
		w := world()
		if c.w != nil {
			c.w(&w)
		}
		var s save.Saver
		act, answers := s.Take(c.r, w)
		refused := len(answers) == 1 && !answers[0].Saved && strings.Contains(answers[0].Reason, c.reason)
		if act != c.act || (c.reason != "") != refused || s.Open() != (c.reason == "") {
			t.Errorf("%s: %v %+v", c.name, act, answers)
		}
		if act, again := s.Take(c.r, w); act != save.Nothing || again != nil {
			t.Errorf("%s: a repetition asks for %v %+v", c.name, act, again)
		}
	}
}

// TestANaturalSaveIsAskedForWhereItDoesNotComeInTime, at the first look that shows so.
func TestANaturalSaveIsAskedForWhereItDoesNotComeInTime(t *testing.T) {
	const by = 10 * time.Minute
	for _, c := range []struct {
		name   string
		w      func(*save.World)
		act    save.Act
		asked  time.Duration // when it is asked for, if not at once; 0 is never
		noTime bool
	}{
		{name: "its rhythm brings it in time", w: func(w *save.World) { w.Next = now.Add(5 * time.Minute) }, act: save.Watch, asked: 6 * time.Minute},
		{name: "its rhythm brings it too late", w: func(w *save.World) { w.Next = now.Add(11 * time.Minute) }, act: save.Signal},
		{name: "it is overdue", w: func(w *save.World) { w.Next = now.Add(-time.Minute) }, act: save.Signal},
		{name: "nobody knows its rhythm", w: func(*save.World) {}, act: save.Signal},
		{name: "a command asks it", w: func(w *save.World) { w.Command, w.Handled = true, false }, act: save.Command},
		{name: "it takes no signal", w: func(w *save.World) { w.Handled = false }, act: save.Watch},
		{name: "there is time without end", w: func(*save.World) {}, act: save.Watch, noTime: true},
	} {
		w := world()
		c.w(&w)
		r := save.Request{ID: "a", Mode: events.SaveNatural, By: now.Add(by)}
		if c.noTime {
			r.By = time.Time{}
		}
		var s save.Saver
		if act, answers := s.Take(r, w); act != c.act || answers != nil || s.Signals() == (act == save.Watch) {
			t.Errorf("%s: %v %+v", c.name, act, answers)
		}
		asked := time.Duration(0)
		for d := time.Minute; d < by; d += time.Minute {
			w.Now = now.Add(d)
			if act, _ := s.Look(w); act != save.Watch && asked == 0 {
				asked = d
			} else if act != save.Watch {
				t.Errorf("%s: it is asked again", c.name)
			}
		}
		if asked != c.asked {
			t.Errorf("%s: asked after %v, want %v", c.name, asked, c.asked)
		}
	}
}

func TestLook(t *testing.T) {
	at := func(d time.Duration) save.Checkpoint {
		return save.Checkpoint{Step: 90, URI: "gs://b/90", At: now.Add(d)}
	}
	for _, c := range []struct {
		name          string
		checkpoint    save.Checkpoint
		later         time.Duration
		nodir         bool
		saved, answer bool
	}{
		{name: "an older checkpoint", checkpoint: at(-time.Minute)},
		{name: "a newer one", checkpoint: at(time.Second), saved: true, answer: true},
		{name: "a bucket cuts to the second", checkpoint: save.Checkpoint{At: now.Truncate(time.Second)}, saved: true, answer: true},
		{name: "the time is over", later: time.Hour, answer: true},
		{name: "the time is over, and nobody can see", later: time.Hour, nodir: true, answer: true},
	} {
		var s save.Saver
		if act, _ := s.Take(save.Request{ID: "a", Mode: events.SaveSignal, By: now.Add(5 * time.Minute)}, world()); act != save.Signal {
			t.Fatal(act)
		}
		w := world()
		w.Now, w.Checkpoint, w.Directory = now.Add(c.later), c.checkpoint, !c.nodir
		_, answers := s.Look(w)
		if (len(answers) == 1) != c.answer || c.answer && answers[0].Saved != c.saved || s.Open() == c.answer {
			t.Errorf("%s: %+v", c.name, answers)
		}
	}
}

func TestEnded(t *testing.T) {
	for _, c := range []struct {
		name         string
		fresh, clean bool
		nodir, saved bool
	}{
		{name: "saved and stopped", fresh: true, clean: true, saved: true},
		{name: "saved and crashed", fresh: true, saved: true},
		{name: "stopped without a save", clean: true},
		{name: "crashed while saving"},
		{name: "stopped where nobody can look", nodir: true, clean: true, saved: true},
		{name: "crashed where nobody can look", nodir: true},
	} {
		var s save.Saver
		s.Take(save.Request{ID: "a", Mode: events.SaveSignal}, world())
		w := world()
		w.Running, w.Directory = false, !c.nodir
		if c.fresh {
			w.Checkpoint = save.Checkpoint{Step: 100, At: now.Add(time.Second)}
		}
		answers := s.Ended(w, "exit code 1", c.clean)
		if len(answers) != 1 || answers[0].Saved != c.saved || s.Open() {
			t.Errorf("%s: %+v", c.name, answers)
		}
	}
	var s save.Saver
	if answers := s.Ended(world(), "exit code 0", true); answers != nil || s.Told(now) {
		t.Errorf("nothing was asked: %+v", answers)
	}
}

func TestASignalWaitsForWhoWillHandleIt(t *testing.T) {
	deaf := world()
	deaf.Handled, deaf.Young = false, true
	var s save.Saver
	r := save.Request{ID: "a", Mode: events.SaveSignal, By: now.Add(time.Minute)}
	if act, answers := s.Take(r, deaf); act != save.Watch || answers != nil || !s.Unsent {
		t.Fatalf("%v %+v", act, answers)
	}
	deaf.Now = now.Add(30 * time.Second)
	if act, answers := s.Look(deaf); act != save.Watch || answers != nil {
		t.Fatalf("%v %+v", act, answers)
	}
	for _, over := range []struct {
		young bool
		after time.Duration
	}{{true, time.Minute}, {false, time.Second}} {
		late := save.Saver{Memory: s.Memory}
		w := deaf
		w.Now, w.Young = now.Add(over.after), over.young
		if act, answers := late.Look(w); act != save.Nothing || len(answers) != 1 || !strings.Contains(answers[0].Reason, "would die") {
			t.Errorf("%+v: %v %+v", over, act, answers)
		}
	}
	hears := deaf
	hears.Handled = true
	if act, answers := s.Look(hears); act != save.Signal || answers != nil || s.Unsent {
		t.Errorf("%v %+v", act, answers)
	}
	if act, answers := s.Look(hears); act != save.Watch || answers != nil {
		t.Errorf("it is sent again: %v %+v", act, answers)
	}
}

func TestANewerRequestTakesThePlaceOfAnOlderOne(t *testing.T) {
	var s save.Saver
	s.Take(save.Request{ID: "old", Mode: events.SaveNatural}, world())
	act, answers := s.Take(save.Request{ID: "new", Mode: events.SaveSignal}, world())
	if act != save.Signal || len(answers) != 1 || answers[0].Request.ID != "old" || answers[0].Saved {
		t.Errorf("%v %+v", act, answers)
	}
	// The crew's own wish does not take the place of one that is answered for.
	if act, answers := s.Take(save.Request{ID: "own", Own: true, Mode: events.SaveSignal}, world()); act != save.Nothing || answers != nil {
		t.Errorf("%v %+v", act, answers)
	}
	if !s.Told(now.Add(-time.Second)) {
		t.Error("an exit 0 would count as the end of the job")
	}
	s.Look(save.World{Now: now, Checkpoint: save.Checkpoint{At: now}})
	if s.Begin(); s.Told(now.Add(-time.Second)) {
		t.Error("an exit 0 of the next attempt would not count as the end of the job")
	}
}

// TestNobodyIsAskedWhereNoTrainingRuns: a crew that begins again after its machine did may find a request of before.
func TestNobodyIsAskedWhereNoTrainingRuns(t *testing.T) {
	r := save.Request{ID: "a", Mode: events.SaveNatural, By: now.Add(time.Minute)}
	s := save.Saver{Memory: save.Memory{Request: &r, Asked: now}}
	w := world()
	w.Running, w.Command = false, true
	if act, answers := s.Look(w); act != save.Watch || answers != nil || s.Urged {
		t.Errorf("%v %+v", act, answers)
	}
}

// TestWhatCannotBeCarriedOutTakesNobodysPlace: two channels carry requests, and one of them may still hold the last one.
func TestWhatCannotBeCarriedOutTakesNobodysPlace(t *testing.T) {
	for _, r := range []save.Request{
		{ID: "old", Mode: events.SaveSignal, By: now.Add(-time.Minute)},
		{ID: "old", Mode: events.SaveNatural, By: now.Add(time.Minute)},
	} {
		w := world()
		w.Directory = r.Mode == events.SaveSignal
		var s save.Saver
		if act, _ := s.Take(save.Request{ID: "new", Mode: events.SaveSignal, By: now.Add(5 * time.Minute)}, w); act != save.Signal {
			t.Fatal(act)
		}
		act, answers := s.Take(r, w)
		if act != save.Nothing || len(answers) != 1 || answers[0].Request.ID != "old" || answers[0].Saved || !s.Open() || s.Request.ID != "new" {
			t.Errorf("%v %+v, open: %+v", act, answers, s.Request)
		}
		if act, again := s.Take(r, w); act != save.Nothing || again != nil {
			t.Errorf("a repetition asks for %v %+v", act, again)
		}
	}
}

func TestACommandThatFailsSaysNothingOfALaterRequest(t *testing.T) {
	var s save.Saver
	w := world()
	w.Command = true
	for _, id := range []string{"a", "b"} {
		if act, _ := s.Take(save.Request{ID: id, Mode: events.SaveSignal}, w); act != save.Command {
			t.Fatal(act)
		}
	}
	if answers := s.Failed("a", "exit status 1"); answers != nil || !s.Open() {
		t.Errorf("%+v", answers)
	}
	if answers := s.Failed("b", "exit status 1"); len(answers) != 1 || answers[0].Reason != "exit status 1" || s.Open() {
		t.Errorf("%+v", answers)
	}
}
