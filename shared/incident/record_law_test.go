package incident

import (
	"cmp"
	"encoding/json"
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
)

// lateMost is how late evidence may come.
const lateMost = 30 * time.Minute

// TestEvidenceMakesTheSameFactsInAnyOrder: readings and beats come in the order in which they are taken, for nobody delivers them. In whatever
// order all else comes within the time that it may be late, and however often, the same is known once every slice has been read again. And
// nothing of it is news then.
func TestEvidenceMakesTheSameFactsInAnyOrder(t *testing.T) {
	t.Parallel()
	happened, mattered := map[string]int{}, 0
	holds(t, func(t *rapid.T) {
		u := newNight(t, happened)
		for range rapid.IntRange(1, 12).Draw(t, "happenings") {
			u.passes(240)
			u.lives()
			if rapid.Bool().Draw(t, "is read") {
				u.passes(60)
				u.read(u.one())
			}
		}
		u.now = u.now.Add(lateMost + time.Minute)
		for _, s := range u.slices {
			u.passes(5)
			u.read(s)
		}
		var late []told
		for _, e := range u.entries {
			at := e.at.Add(time.Duration(rapid.IntRange(0, int(lateMost/time.Second)).Draw(t, "late")) * time.Second)
			late = append(late, told{at, e.evidence})
			if rapid.Bool().Draw(t, "twice") {
				late = append(late, told{e.at.Add(lateMost), e.evidence})
			}
		}
		inTime, _ := u.learn(u.entries)
		got, w := u.learn(late)
		if d := gocmp.Diff(inTime, got); d != "" {
			t.Fatalf("what is known (-in time +late):\n%s\n%s", d, u.path(late))
		}
		if without, _ := u.learn(nil); without != inTime {
			mattered++
		}
		u.teachesNothing(w, late)
	})
	if mattered == 0 {
		t.Error("no entry ever told more than the readings")
	}
	for _, what := range []string{
		"preempted", "host error", "repaired", "stopped", "started", "deleted", "created", "announced", "begins", "withdrawn", "step", "zombie", "exit",
		"finished", "gave up", "hearsay", "order to end", "beat", "planned end",
	} {
		if happened[what] == 0 && !testing.Short() {
			t.Errorf("%s never happened", what)
		}
	}
}

// holds checks a law, with the same random values in every run unless the flag asks for others.
func holds(t *testing.T, law func(*rapid.T)) {
	t.Helper()
	if seed := flag.Lookup("rapid.seed").Value; seed.String() == "0" {
		if err := seed.Set("3"); err != nil {
			t.Fatal(err)
		}
	}
	rapid.Check(t, law)
}

// learn is what is known from all that was taken, and from entries; the workload too.
func (u *night) learn(entries []told) (string, *Workload) {
	all := slices.Concat(u.taken, entries)
	slices.SortStableFunc(all, func(a, b told) int { return a.at.Compare(b.at) })
	w := New("p", "llama", map[bool]string{false: cloudTPU, true: gke}[u.inPods])
	for _, e := range all {
		if !u.opened.IsZero() && !e.at.Before(u.opened) {
			u.opens(&w)
		}
		u.teach(&w, e.evidence)
	}
	return knownOf(w), &w
}

// opens puts an incident beside the facts.
func (u *night) opens(w *Workload) {
	if w.Incident != nil || w.Closed != nil || len(w.Slices) == 0 {
		return
	}
	first := Trouble{Cause: events.CauseUnknown, Slice: "a", Life: w.Slices[0].Incarnation.ID, At: u.opened, Heard: u.now, Rank: events.RankReading}
	in := &Incident{ID: "llama-1", Opened: u.opened, Troubles: []Trouble{first}}
	if w.Incident = in; u.closed {
		in.Closed, in.Revision = u.opened.Add(10*time.Minute), 1
		w.Incident, w.Closed, w.Ended = nil, in, in.Closed
	}
}

// teach records evidence, and then what has become known by it.
func (u *night) teach(w *Workload, e evidence.Evidence) (news bool) {
	record := func(e evidence.Evidence) bool {
		f := &facts{w: w, now: u.now, from: evidence.OriginOf(e)}
		return f.record(e)
	}
	news = record(e)
	for _, line := range w.Bound() {
		if !record(line) {
			u.t.Fatalf("a line that was kept is handed back again and again: %+v", line)
		}
	}
	return news
}

// teachesNothing holds that the same evidence is no news the second time.
func (u *night) teachesNothing(w *Workload, entries []told) {
	for _, e := range slices.Concat(u.taken, entries) {
		before := text(*w)
		news := u.teach(w, e.evidence)
		if d := gocmp.Diff(before, text(*w)); news || d != "" {
			u.t.Fatalf("%s is news the second time (%t), and changes\n%s\n%s", describe(e), news, d, u.path(entries))
		}
	}
}

// knownOf is what a workload knows of the outside, without the times of words that say the same twice, and without what is measured.
func knownOf(w Workload) string {
	w = w.clone()
	t := &w.Training
	t.GapSeconds, t.GapsBetween, t.Exit.High, t.Runs = 0, nil, 0, nil
	for i := range w.Slices {
		s := &w.Slices[i]
		s.Read, s.Spoke, s.Stop.At, s.Notice.LastWord, s.Notice.Told = time.Time{}, time.Time{}, time.Time{}, time.Time{}, false
		if !s.Notice.stands() {
			s.Notice = Notice{}
		}
		for j, o := range s.Former {
			s.Former[j] = Life{Incarnation: o.Incarnation, Zone: o.Zone, Hosts: o.Hosts, Over: o.Over}
		}
	}
	slices.SortFunc(w.Unbound, func(a, b Unbound) int { return strings.Compare(a.ID, b.ID) })
	for _, in := range []*Incident{w.Incident, w.Closed} {
		if in == nil {
			continue
		}
		in.Revision, in.Runs, in.Taken = 0, nil, time.Time{}
		slices.SortFunc(in.Troubles, func(a, b Trouble) int {
			return cmp.Or(cmp.Compare(a.Cause, b.Cause), cmp.Compare(a.Slice, b.Slice), cmp.Compare(a.Life, b.Life), a.At.Compare(b.At))
		})
		for i := range in.Troubles {
			in.Troubles[i].Text = ""
		}
	}
	return text(w)
}

func text(w Workload) string {
	data, err := json.MarshalIndent(w, "", " ")
	if err != nil {
		panic(err)
	}
	return string(data)
}

// path is how the night went, as it was learned.
func (u *night) path(entries []told) string {
	all := slices.Concat(u.taken, entries)
	slices.SortStableFunc(all, func(a, b told) int { return a.at.Compare(b.at) })
	s := fmt.Sprintf("opened %s closed %t\n", u.opened.Format(time.TimeOnly), u.closed)
	for _, e := range all {
		s += describe(e) + "\n"
	}
	return s
}

func describe(t told) string {
	return fmt.Sprintf("%s %T %+v", t.at.Format(time.TimeOnly), t.evidence, t.evidence)
}

// TestWhatWasLostBeforeItsPlannedEndDidNotEndAsPlanned, though its rest is gone only after that.
func TestWhatWasLostBeforeItsPlannedEndDidNotEndAsPlanned(t *testing.T) {
	t.Parallel()
	noon := time.Date(2026, 11, 12, 12, 0, 0, 0, time.UTC)
	life := events.Incarnation{Zone: "z", ID: "2", Created: noon.Add(-time.Hour)}
	w := Workload{Slices: []Slot{{Name: "a", Life: Life{Incarnation: life, Zone: "z", Condition: evidence.Ready, Since: noon.Add(-time.Hour)}}}}
	w.Slices[0].Ends, w.Slices[0].Healing = noon.Add(time.Hour), evidence.HealsAlways
	for _, e := range []evidence.Read{
		{Condition: evidence.Lost, Origin: evidence.Origin{Time: noon}},
		{Condition: evidence.Deleting, Origin: evidence.Origin{Time: noon.Add(59 * time.Minute)}},
		{Condition: evidence.Gone, Origin: evidence.Origin{Time: noon.Add(2 * time.Hour)}},
	} {
		e.Slice, e.Zone, e.Rank = "a", "z", events.RankReading
		if e.Condition != evidence.Gone {
			e.Incarnation, e.Facts = life, w.Slices[0].Facts
		}
		(&facts{w: &w, now: e.Time, from: e.Origin}).record(e)
	}
	if s := w.Slices[0]; s.Condition != evidence.Gone || s.endedAsPlanned() {
		t.Errorf("it was lost at %s, and is said to have ended as planned for %s", s.Over, s.Ends)
	}
}
