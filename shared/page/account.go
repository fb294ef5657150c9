package page

import (
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/interval"
)

// Cascade is a picture of a whole from which one part after the other is taken. What is left is what was wanted.
type Cascade struct {
	// Name is that of the picture on its page.
	Name, Title string
	// Whole is the name of all of it, Taken are the parts in their order, and Left is what is left of it.
	Whole string
	Taken []Step
	Left  Step
}

// Step is a part of a cascade. Size is in any unit, and Says is its size for people.
type Step struct {
	Name, Says string
	Size       float64
}

// DrawnCascade is a cascade with its places in the picture.
type DrawnCascade struct {
	Cascade
	Width, Height, Axis int
	Steps               []drawnStep
	Ticks               []tick
}

type drawnStep struct {
	Name, Says string
	Y, Mid     int
	X, W       float64
	Kind       Kind
	SaysAt     float64
}

// Draw places the cascade.
func (c Cascade) Draw() *DrawnCascade {
	whole := c.Left.Size
	for _, t := range c.Taken {
		whole += t.Size
	}
	if whole <= 0 {
		return nil
	}
	rows := len(c.Taken) + 2
	d := &DrawnCascade{Cascade: c, Width: pictureWidth, Axis: rows*laneHeight + 4, Height: rows*laneHeight + axisHeight + 4}
	const right = 150 // room for the words behind a bar
	scale := (pictureWidth - nameWidth - right) / whole
	add := func(s Step, from float64, k Kind) {
		y := len(d.Steps) * laneHeight
		r := drawnStep{Name: s.Name, Says: s.Says, Y: y + 8, Mid: y + laneHeight/2 + 8, X: nameWidth + from*scale, W: max(1, s.Size*scale), Kind: k}
		r.SaysAt = r.X + r.W + 6
		d.Steps = append(d.Steps, r)
	}
	add(Step{c.Whole, "", whole}, 0, Works)
	left := whole
	for _, t := range c.Taken {
		left -= t.Size
		add(t, left, Away)
	}
	add(c.Left, 0, Trains)
	for percent := 0; percent <= 100; percent += 20 {
		d.Ticks = append(d.Ticks, tick{nameWidth + float64(percent)/100*whole*scale, strconv.Itoa(percent)})
	}
	return d
}

// Strips is a picture of when many things stood still, a lane for each. A lane is cut into columns, whose heights are the share of their
// time: it stays true and small however many times there are.
type Strips struct {
	Name, Title string
	From, To    time.Time
	Lanes       []Strip
}

// Strip is a lane: since when it is known, and in which times it stood still. Marks are moments of which a table tells.
type Strip struct {
	Name  string
	Since time.Time
	Still []Stretch
	Marks []Mark
}

// Stretch is a time.
type Stretch struct{ From, To time.Time }

// DrawnStrips are strips with their places in the picture.
type DrawnStrips struct {
	Strips
	Width, Height, Axis int
	Rows                []drawnStrip
	Ticks               []tick
	// Column is how long one is, and High how high a lane.
	Column string
	High   int
}

type drawnStrip struct {
	Name   string
	Y, Mid int
	X, W   float64
	Still  string
	Marks  []box
}

// columns are how many a lane of strips has. Each is a line as broad as the style sheet says: that is shorter than a form.
const columns = 197

// Draw places the strips.
func (s Strips) Draw() *DrawnStrips {
	if len(s.Lanes) == 0 || !s.To.After(s.From) {
		return nil
	}
	t := Timeline{From: s.From, To: s.To}
	whole := s.To.Sub(s.From)
	d := &DrawnStrips{
		Strips: s, Width: pictureWidth, Axis: len(s.Lanes)*laneHeight + 4, Height: len(s.Lanes)*laneHeight + axisHeight + 4, Ticks: t.ticks(),
		Column: shortSpan(whole / columns), High: stripHeight,
	}
	for i, l := range s.Lanes {
		y := i*laneHeight + 8
		row := drawnStrip{Name: l.Name, Y: y, Mid: y + stripHeight/2, X: t.x(t.clip(l.Since))}
		row.W = t.x(s.To) - row.X
		width := (t.x(s.To) - t.x(s.From)) / columns
		var form strings.Builder
		for c, share := range s.shares(l) {
			if share > 0 { // seen at all
				form.WriteString("M" + units(t.x(s.From)+(float64(c)+.5)*width) + " " + strconv.Itoa(y+stripHeight) + "v-" + units(max(1, stripHeight*share)))
			}
		}
		row.Still = form.String()
		for _, m := range l.Marks {
			row.Marks = append(row.Marks, box{X: t.x(t.clip(m.At)), Kind: m.Kind, Form: m.Kind.form(), Says: m.Says})
		}
		d.Rows = append(d.Rows, row)
	}
	return d
}

// stripHeight is that of a column which stood still all the time.
const stripHeight = 20

// shares are how much of the time of each column a lane stood still.
func (s Strips) shares(l Strip) []float64 {
	shares := make([]float64, columns)
	column := float64(s.To.Sub(s.From)) / columns
	for _, at := range l.Still {
		from, to := float64(at.From.Sub(s.From))/column, float64(at.To.Sub(s.From))/column
		for c := max(0, int(from)); c < columns && float64(c) < to; c++ {
			shares[c] += min(to, float64(c+1)) - max(from, float64(c))
		}
	}
	for c := range shares {
		shares[c] = min(1, max(0, shares[c]))
	}
	return shares
}

// Curve is a picture of the goodput that each time between two saves reaches, with the belief around it.
type Curve struct {
	Name, Title string
	Points      []Reached // the shortest time first
	Here, Best  time.Duration
}

// Reached is a goodput in percent: the likely one, and the bounds in which it lies.
type Reached struct {
	Every               time.Duration
	Least, Likely, Most float64
}

// NewCurve draws the goodput that each time between two saves would reach, by the record of a training's losses. It goes from below the time in
// use and the best one to beyond both.
func NewCurve(name, title string, r interval.Record, best time.Duration) Curve {
	const by = 1.15 // each time is so many times longer than the one before
	c := Curve{Name: name, Title: title, Here: r.Every, Best: best}
	times := []time.Duration{r.Every, best}
	last := 5 * max(r.Every, best)
	for every := max(min(r.Every, best)/5, r.Save+time.Second); every < time.Duration(by*float64(last)); every = time.Duration(by * float64(every)) {
		times = append(times, every)
	}
	slices.Sort(times)
	for _, every := range slices.Compact(times) {
		least, likely, most := r.Reached(every)
		c.Points = append(c.Points, Reached{Every: every, Least: 100 * least, Likely: 100 * likely, Most: 100 * most})
	}
	return c
}

// Rows are some points of the curve as a table: every fourth, and those that have a name.
func (c Curve) Rows() [][]string {
	rows := [][]string{{"save every", "likely goodput", "at least", "at most"}}
	for i, p := range c.Points {
		name := events.Span(p.Every)
		switch {
		case p.Every == c.Here:
			name += ", you are here"
		case p.Every == c.Best:
			name += ", loses least"
		case i%4 != 0:
			continue
		}
		rows = append(rows, []string{name, oneDecimal(p.Likely) + " %", oneDecimal(p.Least) + " %", oneDecimal(p.Most) + " %"})
	}
	return rows
}

// DrawnCurve is a curve with its places in the picture.
type DrawnCurve struct {
	Curve
	Width, Height, Base int
	Line, Band          string
	Moments             []moment
	Ticks               []tick
	Grid                []label
}

// moment is a time between two saves that has a name. Its words stand on the outer side of both.
type moment struct {
	X          float64
	Says, Side string
}

// Draw places the curve.
func (c Curve) Draw() *DrawnCurve {
	if len(c.Points) < 2 {
		return nil
	}
	const left, right, top, height, below = 60, 20, 24, 220, 36
	d := &DrawnCurve{Curve: c, Width: pictureWidth, Height: top + height + below, Base: top + height}
	first, last := c.Points[0].Every, c.Points[len(c.Points)-1].Every
	x := func(every time.Duration) float64 {
		return left + math.Log(every.Seconds()/first.Seconds())/math.Log(last.Seconds()/first.Seconds())*(pictureWidth-left-right)
	}
	lowest, highest := 100.0, 0.0
	for _, p := range c.Points {
		lowest, highest = min(lowest, p.Least), max(highest, p.Most)
	}
	step := niceStep(int(math.Ceil(highest - lowest)))
	floor, ceiling := math.Floor(lowest/step)*step, math.Ceil(highest/step)*step
	y := func(percent float64) float64 { return float64(d.Base) - (percent-floor)/max(1, ceiling-floor)*height }
	for v := floor; v <= ceiling; v += step {
		d.Grid = append(d.Grid, label{left, y(v), units(v)})
	}
	place := func(p Reached, percent float64) string { return units(x(p.Every)) + " " + units(y(percent)) }
	var line, above, under []string
	for _, p := range c.Points {
		line, above, under = append(line, place(p, p.Likely)), append(above, place(p, p.Most)), append(under, place(p, p.Least))
	}
	slices.Reverse(under)
	d.Line, d.Band = "M"+strings.Join(line, "L"), "M"+strings.Join(append(above, under...), "L")+"z"
	d.Moments = []moment{{x(c.Here), "you are here", "start"}, {x(c.Best), "loses least", "end"}}
	if c.Here < c.Best {
		d.Moments[0].Side, d.Moments[1].Side = "end", "start"
	}
	for _, at := range []time.Duration{
		time.Second, 10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute, 15 * time.Minute, 30 * time.Minute, time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour, day, 3 * day, 7 * day,
	} {
		if at >= first && at <= last {
			d.Ticks = append(d.Ticks, tick{x(at), shortSpan(at)})
		}
	}
	return d
}
