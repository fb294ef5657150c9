package logs

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/goodput"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/interval"
	"pitstop.internal/shared/page"
)

// goodputPage keeps an account as a page.
type goodputPage struct {
	*goodputPrinter
	printed
	months monthly
	// still are the times in which each workload stood still, by project and name.
	still map[string][]page.Stretch
	// out is where the account would be printed, and file where the page is kept.
	out  io.Writer
	file string
}

func newGoodputPage(p *goodputPrinter, file string) *goodputPage {
	k := &goodputPage{goodputPrinter: p, out: p.Out, file: file, months: newMonthly(), still: map[string][]page.Stretch{}}
	p.Printer = k.printer()
	return k
}

func (k *goodputPage) loss(l goodput.Loss) { k.months.count(l) }

func (k *goodputPage) stopped(b goodput.Interruption) {
	id := b.Project + "/" + b.Workload
	k.still[id] = append(k.still[id], page.Stretch{From: b.From, To: b.From.Add(b.Away)})
}

// end writes the page.
func (k *goodputPage) end(ctx context.Context, r goodput.Report, faults int) error {
	if err := k.goodputPrinter.end(ctx, r, faults); err != nil {
		return err
	}
	k.lines()
	k.picture(titleUses, page.Part{Cascade: k.cascade()})
	k.picture(titleDearest, page.Part{Strips: k.strips(r)})
	for i, c := range curves(r) {
		c.Name = "curve" + strconv.Itoa(i)
		at := slices.IndexFunc(k.parts, func(p page.Part) bool { return p.Title == titleChanges })
		if at < 0 {
			at = len(k.parts)
		}
		k.parts = slices.Insert(k.parts, at, page.Part{Title: "some of its points as a table", Rows: curveRows(c), Curve: &c})
	}
	if r.Total.Losses > 0 {
		k.parts = append(k.parts, k.months.Part())
	}
	return cli.Keep(k.out, k.file, func(file io.Writer) error {
		return page.WriteReport(file, page.Report{Frame: page.Frame{Title: "Where the training time went", At: r.To}, Parts: k.parts})
	})
}

// picture puts a picture above the table of that title.
func (k *goodputPage) picture(title string, of page.Part) {
	for i := range k.parts {
		if p := &k.parts[i]; p.Title == title {
			of.Title, of.Rows = p.Title, p.Rows
			*p = of
		}
	}
}

// cascade goes from all time down to what was productive. First goes what nobody could have trained in.
func (k *goodputPage) cascade() *page.Cascade {
	c := &page.Cascade{Name: "cascade", Title: "Where the time went, from all of it down to what was productive", Whole: "all time", Left: page.Step{Name: useTexts[goodput.Productive]}}
	whole := k.sheet.Seconds
	var wanted []page.Step
	for _, u := range k.sheet.Uses {
		s := page.Step{
			Name: useTexts[goodput.Use(u.Of)], Size: u.Seconds, Says: points(u.SharePercent, 100*u.DoubtSeconds/whole) + " %, " + terminal.SecondsText(u.Seconds),
		}
		switch goodput.Use(u.Of) {
		case goodput.Productive:
			c.Left = s
		case goodput.Stopped, goodput.Unknown:
			c.Taken = append(c.Taken, s)
		default:
			wanted = append(wanted, s)
		}
	}
	c.Taken = append(c.Taken, wanted...)
	return c
}

// strips are when each workload stood still, with its dearest interruptions.
func (k *goodputPage) strips(r goodput.Report) *page.Strips {
	s := &page.Strips{Name: "strips", Title: "When each workload stood still", From: r.From, To: r.To}
	for _, w := range r.Workloads[:min(len(r.Workloads), mostRows)] {
		lane := page.Strip{Name: w.Name, Since: w.First, Still: k.still[w.Project+"/"+w.Name]}
		for _, b := range r.Dearest {
			if b.Project == w.Project && b.Workload == w.Name {
				lane.Marks = append(lane.Marks, page.Mark{At: b.From, Kind: page.Trouble, Says: terminal.CauseText(b.Cause) + ", " + events.Span(b.Away) + " away"})
			}
		}
		s.Lanes = append(s.Lanes, lane)
	}
	if more := len(r.Workloads) - len(s.Lanes); more > 0 {
		s.Title += fmt.Sprintf(": the first %d of %s", len(s.Lanes), events.Number(int64(len(r.Workloads))))
	}
	return s
}

// mostCurves bounds the workloads whose curve is drawn: those that trained longest.
const mostCurves = 4

// curves are what each time between two saves would reach, of the workloads that tell how long a save blocks.
func curves(r goodput.Report) (all []page.Curve) {
	longest := slices.Clone(r.Workloads)
	slices.SortStableFunc(longest, func(v, w goodput.Workload) int { return int(w.Time(goodput.Productive) - v.Time(goodput.Productive)) })
	for _, w := range longest {
		saves, ok := savesOf(w)
		if !ok || len(all) == mostCurves {
			continue
		}
		best := time.Duration(bestSteps(w, saves))*w.Pace + saves.Save
		all = append(all, page.Curve{
			Title: "Goodput of " + w.Name + " by the time between two saves", Points: reached(saves, min(saves.Every, best)/5, 5*max(saves.Every, best), saves.Every, best), Here: saves.Every, Best: best,
		})
	}
	return all
}

// reached is the goodput at some times between two saves, each so many times longer than the one before, and at those that are named.
func reached(r interval.Record, first, last time.Duration, named ...time.Duration) (all []page.Reached) {
	const by = 1.15
	for every := max(first, r.Save+time.Second); every < time.Duration(by*float64(last)); every = time.Duration(by * float64(every)) {
		named = append(named, every)
	}
	slices.Sort(named)
	for _, every := range slices.Compact(named) {
		least, likely, most := r.Reached(every)
		all = append(all, page.Reached{Every: every, Least: 100 * least, Likely: 100 * likely, Most: 100 * most})
	}
	return all
}

// curveRows are some points of a curve as a table: every fourth, and those that are named.
func curveRows(c page.Curve) [][]string {
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
		rows = append(rows, []string{name, percent(p.Likely), percent(p.Least), percent(p.Most)})
	}
	return rows
}

func percent(x float64) string { return points(x, 0) + " %" }
