package page

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Timeline is a picture of what happened when: lanes over one axis of time, in UTC. Every span and mark of it also stands in a table.
type Timeline struct {
	Title    string
	From, To time.Time
	// Now is the present moment; zero draws none.
	Now   time.Time
	Lanes []Lane
}

// Lane is one row of the picture. Link leads to what it is about; empty for nothing.
type Lane struct {
	Name, Link string
	Spans      []Span
	Marks      []Mark
}

// Span is a time in which something was so.
type Span struct {
	From, To time.Time
	Kind     Kind
	Says     string
}

// Mark is a moment at which something happened.
type Mark struct {
	At   time.Time
	Kind Kind
	Says string
}

// Kind is what a span or a mark tells of. It has a colour and, for those who do not tell colours apart, a form of its own.
type Kind string

// The kinds.
const (
	Trains  Kind = "trains"
	Away    Kind = "away"
	Works   Kind = "works"   // Pitstop does something
	Unknown Kind = "unknown" // nobody knows
	Notice  Kind = "notice"  // it is announced
	Trouble Kind = "trouble"
	Refused Kind = "refused"
)

// kinds are the words of the legend, in their order.
var kinds = []struct {
	Kind  Kind
	Words string
}{
	{Trains, "trains"},
	{Away, "stands still"},
	{Works, "Pitstop acts or waits"},
	{Unknown, "nobody knows"},
	{Notice, "announced"},
	{Trouble, "went wrong"},
	{Refused, "refused"},
}

// The measures of a picture, in its own units: it is as wide as the page allows.
const (
	pictureWidth = 1000
	nameWidth    = 190
	laneHeight   = 26
	axisHeight   = 30
)

// Drawing is a timeline with its places in the picture.
type Drawing struct {
	Timeline
	Width, Height, Left, Axis int
	Rows                      []drawnLane
	Ticks                     []tick
	NowAt                     float64
	Legend                    []legend
	Facts                     []fact
}

type drawnLane struct {
	Name, Link string
	Y, Mid     int
	Spans      []box
	Marks      []box
}

type box struct {
	X, W float64
	Kind Kind
	Says string
}

type tick struct {
	X     float64
	Label string
}

type legend struct {
	Kind  Kind
	Words string
	// Round says that it is a mark.
	Round bool
}

// fact is a row of the table beside a picture.
type fact struct {
	Lane, From, To, What string
}

// Draw places a timeline.
func (t Timeline) Draw() Drawing {
	d := Drawing{Timeline: t, Width: pictureWidth, Left: nameWidth, Axis: len(t.Lanes)*laneHeight + 4, Height: len(t.Lanes)*laneHeight + axisHeight + 4}
	seen, round := map[Kind]bool{}, map[Kind]bool{}
	for i, l := range t.Lanes {
		row := drawnLane{Name: l.Name, Link: l.Link, Y: i*laneHeight + 4, Mid: i*laneHeight + laneHeight/2 + 4}
		for _, s := range l.Spans {
			from, to := t.clip(s.From), t.clip(cmp.Or(s.To, t.To))
			if !to.After(from) {
				continue
			}
			row.Spans = append(row.Spans, box{t.x(from), max(2, t.x(to)-t.x(from)), s.Kind, s.Says})
			seen[s.Kind] = true
			d.Facts = append(d.Facts, fact{l.Name, stamp(s.From), stamp(s.To), s.Says})
		}
		for _, m := range l.Marks {
			if m.At.Before(t.From) || m.At.After(t.To) {
				continue
			}
			row.Marks = append(row.Marks, box{X: t.x(m.At), Kind: m.Kind, Says: m.Says})
			round[m.Kind] = true
			d.Facts = append(d.Facts, fact{l.Name, stamp(m.At), "", m.Says})
		}
		d.Rows = append(d.Rows, row)
	}
	for _, k := range kinds {
		if seen[k.Kind] || round[k.Kind] {
			d.Legend = append(d.Legend, legend{k.Kind, k.Words, !seen[k.Kind]})
		}
	}
	if !t.Now.IsZero() && t.Now.After(t.From) && t.Now.Before(t.To) {
		d.NowAt = t.x(t.Now)
	}
	d.Ticks = t.ticks()
	return d
}

// clip is a time within the picture.
func (t Timeline) clip(at time.Time) time.Time {
	switch {
	case at.Before(t.From):
		return t.From
	case at.After(t.To):
		return t.To
	}
	return at
}

// x is the place of a time in the picture.
func (t Timeline) x(at time.Time) float64 {
	const right = 10
	share := at.Sub(t.From).Seconds() / max(1, t.To.Sub(t.From).Seconds())
	return nameWidth + share*(pictureWidth-nameWidth-right)
}

// steps are the distances of the marks on the axis. The first that gives few enough is taken.
var steps = []time.Duration{
	time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	7 * 24 * time.Hour, 30 * 24 * time.Hour,
}

// ticks are the marks on the axis.
func (t Timeline) ticks() (all []tick) {
	const most = 9
	step := steps[len(steps)-1]
	if i := slices.IndexFunc(steps, func(d time.Duration) bool { return t.To.Sub(t.From) <= most*d }); i >= 0 {
		step = steps[i]
	}
	form := "15:04"
	if step >= 24*time.Hour {
		form = "Jan 2"
	}
	for at := t.From.UTC().Truncate(step); !at.After(t.To) && len(all) < 4*most; at = at.Add(step) {
		if at.Before(t.From) {
			continue
		}
		label := at.Format(form)
		if form == "15:04" && at.Hour() == 0 && at.Minute() == 0 {
			label = at.Format("Jan 2")
		}
		all = append(all, tick{t.x(at), label})
	}
	return all
}

// stamp is a time for people; empty for none.
func stamp(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("Jan 2 15:04:05")
}

// Units writes a place in the picture.
func (Drawing) Units(x float64) string { return fmt.Sprintf("%.1f", x) }
