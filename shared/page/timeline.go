package page

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Timeline is a picture of what happened when: lanes over one axis of time, in UTC. Every span and mark of it also stands in a table.
type Timeline struct {
	// Name is that of the picture on its page.
	Name, Title string
	From, To    time.Time
	// Now is the present moment; zero draws none.
	Now   time.Time
	Lanes []Lane
}

// Lane is one row of the picture.
type Lane struct {
	Name  string
	Spans []Span
	Marks []Mark
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
	Blind   Kind = "blind"   // Pitstop does not see
	Unknown Kind = "unknown" // nobody knows
	Notice  Kind = "notice"  // it is announced
	Trouble Kind = "trouble"
	Called  Kind = "called" // a call was accepted
	Refused Kind = "refused"
	Proof   Kind = "proof" // the training goes on
)

// kinds are the words of the legend in their order, and the forms of marks, drawn around their place.
var kinds = []struct {
	Kind        Kind
	Words, Form string
}{
	{Trains, "trains", ""},
	{Away, "stands still", ""},
	{Blind, "Pitstop does not see", ""},
	{Unknown, "nobody knows", ""},
	{Notice, "announced", "M0-7L7 6H-7Z"},
	{Trouble, "went wrong", "M0-7L7 0L0 7L-7 0Z"},
	{Works, "Pitstop acts or waits", "M-5-5H5V5H-5Z"},
	{Called, "call accepted", "M-5 0A5 5 0 1 0 5 0A5 5 0 1 0-5 0Z"},
	{Refused, "call refused", "M-5-5L5 5M-5 5L5-5"},
	{Proof, "training goes on, proven", "M-6 0L-2 5L6-5"},
}

// form is how a mark is drawn.
func (k Kind) form() string {
	for _, known := range kinds {
		if known.Kind == k {
			return known.Form
		}
	}
	return ""
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
	Width, Height, Axis int
	Rows                []drawnLane
	Ticks               []tick
	NowAt               float64
	// Fills are the spans of all lanes, those of a kind in one form: a picture of many lanes stays small.
	Fills  []fill
	Legend []legend
	Facts  []fact
}

type fill struct {
	Kind Kind
	Form string
}

type drawnLane struct {
	Name         string
	Y, Mid       int
	Spans, Marks []box
}

// Base is on which line its name is written.
func (l drawnLane) Base() int { return l.Mid + 4 }

type box struct {
	X, W float64
	Kind Kind
	Form string
	Says string
}

type tick struct {
	X     float64
	Label string
}

type legend struct {
	Kind  Kind
	Words string
	// Form is that of its marks, where it has some.
	Form string
}

// fact is a row of the table beside a picture: what it shows of a lane. In the other times the training ran.
type fact struct {
	Lane  string
	Times []happened
}

type happened struct{ When, What string }

// between is a time from and to.
func between(from, to time.Time) string {
	switch {
	case to.IsZero():
		return "from " + stamp(from)
	case from.UTC().Format(time.DateOnly) == to.UTC().Format(time.DateOnly):
		return stamp(from) + " to " + clock(to)
	}
	return stamp(from) + " to " + stamp(to)
}

// Draw places a timeline.
func (t Timeline) Draw() Drawing {
	d := Drawing{Timeline: t, Width: pictureWidth, Axis: len(t.Lanes)*laneHeight + 4, Height: len(t.Lanes)*laneHeight + axisHeight + 4}
	spans, marks := map[Kind]bool{}, map[Kind]bool{}
	for i, l := range t.Lanes {
		row, f := drawnLane{Name: l.Name, Y: i*laneHeight + 8, Mid: i*laneHeight + laneHeight/2 + 4}, fact{Lane: l.Name}
		for _, s := range l.Spans {
			from, to := t.clip(s.From), t.clip(cmp.Or(s.To, t.To))
			if !to.After(from) {
				continue
			}
			row.Spans = append(row.Spans, box{X: t.x(from), W: max(2, t.x(to)-t.x(from)), Kind: s.Kind, Says: s.Says})
			spans[s.Kind] = true
			if s.Kind != Trains {
				f.Times = append(f.Times, happened{between(s.From, s.To), s.Says})
			}
		}
		for _, m := range l.Marks {
			if m.At.Before(t.From) || m.At.After(t.To) {
				continue
			}
			row.Marks = append(row.Marks, box{X: t.x(m.At), Kind: m.Kind, Form: m.Kind.form(), Says: m.Says})
			marks[m.Kind] = true
			f.Times = append(f.Times, happened{stamp(m.At), m.Says})
		}
		d.Rows = append(d.Rows, row)
		if len(f.Times) > 0 {
			d.Facts = append(d.Facts, f)
		}
	}
	for _, k := range kinds {
		if form := d.filled(k.Kind); form != "" {
			d.Fills = append(d.Fills, fill{k.Kind, form})
		}
		if spans[k.Kind] {
			d.Legend = append(d.Legend, legend{Kind: k.Kind, Words: k.Words})
		} else if marks[k.Kind] {
			d.Legend = append(d.Legend, legend{k.Kind, k.Words, k.Form})
		}
	}
	if !t.Now.IsZero() && t.Now.After(t.From) && t.Now.Before(t.To) {
		d.NowAt = t.x(t.Now)
	}
	d.Ticks = t.ticks()
	return d
}

// filled are the spans of a kind in one form.
func (d Drawing) filled(k Kind) string {
	var form strings.Builder
	for _, r := range d.Rows {
		for _, s := range r.Spans {
			if s.Kind == k {
				form.WriteString("M" + units(s.X) + " " + strconv.Itoa(r.Y) + "h" + units(s.W) + "v18h-" + units(s.W) + "z")
			}
		}
	}
	return form.String()
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
	const right = 22
	share := at.Sub(t.From).Seconds() / max(1, t.To.Sub(t.From).Seconds())
	return nameWidth + share*(pictureWidth-nameWidth-right)
}

// distances are those of the marks on the axis. The first that gives few enough is taken.
var distances = []time.Duration{
	time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, 24 * time.Hour,
	2 * 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour,
}

// ticks are the marks on the axis.
func (t Timeline) ticks() (all []tick) {
	const most = 9
	step := distances[len(distances)-1]
	if i := slices.IndexFunc(distances, func(d time.Duration) bool { return t.To.Sub(t.From) <= most*d }); i >= 0 {
		step = distances[i]
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
