package logs

import (
	"fmt"
	"slices"
	"strconv"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/goodput"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/interval"
	"pitstop.internal/shared/page"
)

// page is the account as a page: its tables with pictures.
func (t *goodputTeller) page(a account, parts []page.Part) page.Report {
	picture := func(title string, of page.Part) {
		if at := titled(parts, title); at < len(parts) {
			of.Title, of.Rows = title, parts[at].Rows
			parts[at] = of
		}
	}
	picture(titleUses, page.Part{Cascade: cascade(t.sheetOf(a))})
	picture(titleDearest, page.Part{Strips: strips(a)})
	for i, c := range curves(a.Report) {
		c.Name = "curve" + strconv.Itoa(i)
		parts = slices.Insert(parts, titled(parts, titleChanges), page.Part{Title: "some of its points as a table", Rows: curveRows(c), Curve: &c})
	}
	if len(a.Losses) > 0 {
		parts = append(parts, months(a.Losses))
	}
	return page.Report{Frame: page.Frame{Title: "Where the training time went", At: a.To}, Parts: parts}
}

// titled is where the part of a title stands, or the end.
func titled(parts []page.Part, title string) int {
	if at := slices.IndexFunc(parts, func(p page.Part) bool { return p.Title == title }); at >= 0 {
		return at
	}
	return len(parts)
}

// cascade goes from all time down to what was productive. First goes what nobody could have trained in.
func cascade(s sheet) *page.Cascade {
	c := &page.Cascade{Name: "cascade", Title: "Where the time went, from all of it down to what was productive", Whole: "all time", Left: page.Step{Name: useTexts[goodput.Productive]}}
	var wanted []page.Step
	for _, u := range s.Uses {
		step := page.Step{
			Name: useTexts[goodput.Use(u.Of)], Size: u.Seconds, Says: points(u.SharePercent, 100*u.DoubtSeconds/s.Seconds) + " %, " + terminal.SecondsText(u.Seconds),
		}
		switch goodput.Use(u.Of) {
		case goodput.Productive:
			c.Left = step
		case goodput.Stopped, goodput.Unknown:
			c.Taken = append(c.Taken, step)
		default:
			wanted = append(wanted, step)
		}
	}
	c.Taken = append(c.Taken, wanted...)
	return c
}

// strips are when each workload stood still, with its dearest interruptions.
func strips(r account) *page.Strips {
	s := &page.Strips{Name: "strips", Title: "When each workload stood still", From: r.From, To: r.To}
	still := map[string][]page.Stretch{}
	for _, b := range r.stops {
		id := b.Project + "/" + b.Workload
		still[id] = append(still[id], page.Stretch{From: b.From, To: b.From.Add(b.Away)})
	}
	for _, w := range r.Workloads[:min(len(r.Workloads), mostRows)] {
		lane := page.Strip{Name: w.Name, Since: w.First, Still: still[w.Project+"/"+w.Name]}
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
