package replay

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/provider/providertest/trainingtest"
)

// speaks reports whether a line of a crew is about the training of the whole slice. Any worker tells of an exit.
func speaks(r *events.CrewReport) bool {
	switch r.Report {
	case events.ReportExited:
		return true
	case events.ReportStarted, events.ReportProgress, events.ReportSaved, events.ReportGaveUp, events.ReportFinished:
		return r.Worker == 0
	case events.ReportRefused, events.ReportNotice:
	}
	return false
}

// trains reports whether a line shows a training that runs.
func trains(r *events.CrewReport) bool {
	return r.Report == events.ReportStarted || r.Report == events.ReportProgress || r.Report == events.ReportSaved
}

// failed reports whether a line shows a training that ended by its own fault.
func failed(r *events.CrewReport) bool {
	return r.Report == events.ReportGaveUp || r.Report == events.ReportExited && !r.Interrupted
}

// followed reports whether the training of a slice does what the record says.
func (w *player) followed(zone, slice string) bool {
	return slices.ContainsFunc(w.Fleet, func(c world.SliceConfig) bool { return c.Follows && c.Zone == zone && c.Name == slice })
}

// follows says of each crew line, by its place among the items, how the record goes on after it.
func (w *player) follows(items []item) map[int]*trainingtest.Follow {
	keys := map[string]string{} // of a slice, by the zone and what names it or its workers
	for _, c := range w.Fleet {
		if c.Follows {
			keys[c.Zone+"/"+c.Name] = c.Zone + "/" + c.Name
			keys[c.Zone+"/"+c.Workers] = c.Zone + "/" + c.Name
		}
	}
	if len(keys) == 0 {
		return nil
	}
	order := make([]int, len(items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return timeOf(items[a]).Compare(timeOf(items[b])) })
	type after struct {
		next   *trainingtest.Follow // of the next line, in the same life
		line   *events.CrewReport
		at     time.Time
		trains bool // a later line shows a training that runs
		spoke  bool // there is a later line
	}
	all, later := map[int]*trainingtest.Follow{}, map[string]*after{}
	for _, i := range slices.Backward(order) {
		e := &items[i].entry
		name := e.Subject.Node
		if group, _, ok := e.Subject.Group(); ok && name == "" {
			name = group
		}
		key := keys[e.Subject.Zone+"/"+name]
		if e.Ignored != "" || key == "" {
			continue
		}
		l := later[key]
		if l == nil {
			l = &after{}
			later[key] = l
		}
		switch {
		case e.Kind == events.KindLoss, e.Kind == events.KindCall && !strings.HasPrefix(e.Call.Method, "Update"):
			l.next, l.line = nil, nil // what follows is of another life, or may be
		case e.Kind == events.KindCrew && speaks(e.Crew):
			if n := l.line; n != nil && n.Report == e.Crew.Report && e.Crew.Report == events.ReportExited && n.Attempt == e.Crew.Attempt {
				all[i] = l.next // another worker tells of the same exit
				continue
			}
			f := &trainingtest.Follow{Next: l.line, At: l.at}
			switch w.Crew {
			case world.CrewFails:
				f.Fails = true
			case world.CrewNone:
				f.Leaves = !l.spoke
			case world.CrewAsRecorded:
				f.Fails = failed(e.Crew) && (l.line != nil || !l.trains)
			case world.CrewRecovers:
			}
			all[i] = f
			l.next, l.line, l.at, l.spoke = f, e.Crew, timeOf(items[i]), true
			l.trains = l.trains || trains(e.Crew)
		}
	}
	return all
}

// timeOf is when an entry says that something happened.
func timeOf(it item) time.Time { return cmp.Or(it.entry.Time, it.at) }

// crewLine is a line of a crew, with its time.
type crewLine struct {
	at     time.Time
	report events.CrewReport
}

// crewLines are those of one slice.
type crewLines []crewLine

// trainer infers the training from the lines of its crew: where it stood at the start, how long a step takes, and how often it saves.
func (lines crewLines) trainer(start time.Time) (c world.TrainerConfig) {
	if len(lines) == 0 {
		return c
	}
	slices.SortStableFunc(lines, func(a, b crewLine) int { return a.at.Compare(b.at) })
	first := lines[0].report
	c.Attempt = max(first.Attempt, 1)
	if first.Report == events.ReportStarted {
		c.Attempt = max(first.Attempt-1, 1)
	}
	takes := lines.stepTakes()
	c.StepTakes = world.Duration(takes)
	if takes == 0 {
		takes = usualStep
	}
	c.Step = max(0, first.Step-int64(lines[0].at.Sub(start)/takes))
	var saved, beyond int64
	for _, l := range lines {
		if r := l.report; r.CheckpointStep > 0 && r.Step >= r.CheckpointStep {
			saved, beyond = r.CheckpointStep, max(beyond, r.Step-r.CheckpointStep)
		}
	}
	c.CheckpointEvery = interval(saved, beyond)
	return c
}

// usualStep is how long a step takes in the simulated training where nobody says it.
const usualStep = 10 * time.Second

// stepTakes is the usual time of a step, by pairs of neighbouring lines; 0 where none tells it.
func (lines crewLines) stepTakes() time.Duration {
	var all []time.Duration
	for i := 1; i < len(lines); i++ {
		a, b := lines[i-1], lines[i]
		steps := b.report.Step - a.report.Step
		both := a.report.Report == events.ReportProgress && b.report.Report == events.ReportProgress
		if !both || a.report.Attempt != b.report.Attempt || steps <= 0 {
			continue
		}
		if each := b.at.Sub(a.at) / time.Duration(steps); each > 0 {
			all = append(all, each)
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[len(all)/2]
}

// usualInterval is how many steps lie between two checkpoints where nobody says it.
const usualInterval = 60

// interval is how many steps lie between checkpoints, when one was saved at a step and none in as many steps beyond it. 0 is not known.
func interval(saved, beyond int64) int64 {
	if saved <= 0 {
		return 0
	}
	least, best := max(beyond+1, usualInterval), saved
	for d := int64(1); d*d <= saved; d++ {
		if saved%d != 0 {
			continue
		}
		for _, n := range []int64{d, saved / d} {
			if n >= least && n < best {
				best = n
			}
		}
	}
	return max(best, least)
}

// assumed says what a crew does where the record is silent.
func (lines crewLines) assumed(crew world.Crew) string {
	var last *events.CrewReport
	if n := len(lines); n > 0 {
		last = &lines[n-1].report
	}
	when := "after a loss"
	if last != nil {
		when = "after its last line in the logs"
	}
	switch {
	case crew == world.CrewNone && last == nil:
		return "no crew: the training starts with the machine and reports nothing"
	case crew == world.CrewNone:
		return "no crew " + when
	case crew == world.CrewFails && (last == nil || !failed(last)):
		return "a crew whose attempts " + when + " end with exit code 1"
	case last != nil && failed(last) && crew != world.CrewRecovers:
		return fmt.Sprintf("a crew whose further attempts end like attempt %d, the last one in the logs", last.Attempt)
	}
	return "a crew that trains " + when
}
