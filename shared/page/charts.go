package page

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"time"

	"pitstop.internal/events"
)

// Columns is a picture of counts by month, each column divided among the zones.
type Columns struct {
	// Name is that of the picture on its page. Unit is what is counted.
	Name, Title, Unit string
	counts            map[string]map[string]int
	totals            map[string]int
}

// Month is how a month is written, as time.Format takes it.
const Month = "2006-01"

// Add counts something of a month and a zone.
func (c *Columns) Add(month, zone string, n int) {
	if c.counts == nil {
		c.counts, c.totals = map[string]map[string]int{}, map[string]int{}
	}
	if c.counts[month] == nil {
		c.counts[month] = map[string]int{}
	}
	c.counts[month][zone] += n
	c.totals[zone] += n
}

// mostSeries is how many zones have a colour of their own; the smallest of more share the last one.
const mostSeries = 6

// DrawnColumns are columns with their places in the picture.
type DrawnColumns struct {
	Columns
	Width, Height, Base int
	Parts               []column
	Labels, Grid, Tops  []label
	Legend              []series
}

type column struct {
	X, Y, W, H float64
	Series     int
	Says       string
}

type label struct {
	X, Y float64
	Text string
}

type series struct {
	Series int
	Words  string
}

// Draw places the columns.
func (c Columns) Draw() *DrawnColumns {
	if len(c.counts) == 0 {
		return nil
	}
	const left, right, top, height, below = 60, 10, 20, 200, 30
	d := &DrawnColumns{Columns: c, Width: pictureWidth, Height: top + height + below, Base: top + height}
	zones := c.zones()
	for i, z := range zones {
		d.Legend = append(d.Legend, series{i, z})
	}
	months := c.months()
	most := 0
	for _, m := range months {
		sum := 0
		for _, n := range c.counts[m] {
			sum += n
		}
		most = max(most, sum)
	}
	step := niceStep(most)
	scale := float64(height) / (math.Ceil(float64(most)/step) * step)
	for v := 0.0; v <= float64(most)+step-1e-9 && v*scale <= height; v += step {
		d.Grid = append(d.Grid, label{left, float64(d.Base) - v*scale, strconv.Itoa(int(v))})
	}
	width := float64(pictureWidth-left-right) / float64(len(months))
	for i, m := range months {
		x, y := left+float64(i)*width, float64(d.Base)
		sum := 0
		for k, n := range c.divided(m, zones) {
			if n == 0 {
				continue
			}
			h := float64(n) * scale
			y -= h
			sum += n
			d.Parts = append(d.Parts, column{x + width*.15, y, min(width*.7, 70), h, k, m + ", " + zones[k] + ": " + strconv.Itoa(n) + " " + c.Unit})
		}
		middle := x + width*.15 + min(width*.7, 70)/2
		d.Labels = append(d.Labels, label{middle, float64(d.Base) + 18, m})
		if sum > 0 {
			d.Tops = append(d.Tops, label{middle, y - 5, strconv.Itoa(sum)})
		}
	}
	return d
}

// zones are those with a colour, the one first that has most. The last one stands for all others where there are too many.
func (c Columns) zones() (all []string) {
	for z := range c.totals {
		all = append(all, z)
	}
	slices.SortFunc(all, func(a, b string) int { return cmp.Or(cmp.Compare(c.totals[b], c.totals[a]), cmp.Compare(a, b)) })
	if len(all) > mostSeries {
		all = append(all[:mostSeries-1:mostSeries-1], "other zones")
	}
	return all
}

// divided is a month divided among the zones that have a colour.
func (c Columns) divided(month string, zones []string) []int {
	parts := make([]int, len(zones))
	for z, n := range c.counts[month] {
		i := slices.Index(zones, z)
		if i < 0 {
			i = len(zones) - 1
		}
		parts[i] += n
	}
	return parts
}

// months are all from the first to the last of those that have something.
func (c Columns) months() (all []string) {
	first, last := "", ""
	for m := range c.counts {
		if first == "" || m < first {
			first = m
		}
		last = max(last, m)
	}
	at, err := time.Parse(Month, first)
	for m := first; err == nil && m <= last; m = at.Format(Month) {
		all = append(all, m)
		at = at.AddDate(0, 1, 0)
	}
	return all
}

// niceStep is a step of an axis that has few marks up to the most.
func niceStep(most int) float64 {
	for step := 1.0; ; step *= 10 {
		for _, by := range []float64{1, 2, 5} {
			if float64(most) <= 5*step*by {
				return step * by
			}
		}
	}
}

// Spreads is a picture of how long things took, on an axis whose marks grow tenfold and so.
type Spreads struct {
	Name, Title string
	Rows        []Spread
}

// Spread is how long one thing took: half of the times up to Median, nine of ten up to Most90, and the longest one.
type Spread struct {
	Name                    string
	Median, Most90, Longest time.Duration
}

// DrawnSpreads are spreads with their places in the picture.
type DrawnSpreads struct {
	Spreads
	Width, Height, Axis int
	Drawn               []drawnSpread
	Ticks               []tick
}

type drawnSpread struct {
	Name                    string
	Y, Mid                  int
	Median, Most90, Longest float64
	W                       float64
	Says                    string
}

// Draw places the spreads.
func (s Spreads) Draw() *DrawnSpreads {
	if len(s.Rows) == 0 {
		return nil
	}
	d := &DrawnSpreads{Spreads: s, Width: pictureWidth, Axis: len(s.Rows)*laneHeight + 4, Height: len(s.Rows)*laneHeight + axisHeight + 4}
	most := time.Minute
	for _, r := range s.Rows {
		most = max(most, r.Longest)
	}
	const right = 20
	x := func(took time.Duration) float64 {
		share := math.Log(max(1, took.Seconds())) / math.Log(most.Seconds())
		return nameWidth + share*(pictureWidth-nameWidth-right)
	}
	for _, at := range []time.Duration{time.Second, 10 * time.Second, time.Minute, 10 * time.Minute, time.Hour, 6 * time.Hour, 24 * time.Hour, 7 * 24 * time.Hour, 30 * 24 * time.Hour} {
		if at <= most {
			d.Ticks = append(d.Ticks, tick{x(at), shortSpan(at)})
		}
	}
	for i, r := range s.Rows {
		d.Drawn = append(d.Drawn, drawnSpread{
			Name: r.Name, Y: i*laneHeight + 8, Mid: i*laneHeight + laneHeight/2 + 4, Median: x(r.Median), Most90: x(r.Most90), Longest: x(r.Longest), W: max(2, x(r.Most90)-x(r.Median)),
			Says: r.Name + ": half up to " + events.Span(r.Median) + ", nine of ten up to " + events.Span(r.Most90) + ", the longest " + events.Span(r.Longest),
		})
	}
	return d
}

// shortSpan is a span in its largest unit.
func shortSpan(d time.Duration) string {
	switch {
	case d < time.Minute:
		return strconv.Itoa(int(d/time.Second)) + " s"
	case d < time.Hour:
		return strconv.Itoa(int(d/time.Minute)) + " min"
	case d < day:
		return strconv.Itoa(int(d/time.Hour)) + " h"
	}
	return strconv.Itoa(int(d/day)) + " d"
}
