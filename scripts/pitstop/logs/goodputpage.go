package logs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/goodput"
	"pitstop.internal/scripts/pitstop/terminal"
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
	all := lostMost(a.Report)
	first := min(len(all), mostRows)
	picture(titleDearest, page.Part{Strips: strips(a, all[:first]), Lines: leftOut("time lines", all[first:])})
	drawn, others := curves(all)
	for i, c := range drawn {
		part := page.Part{Title: "some of its points as a table", Rows: c.Rows(), Curve: &c}
		if i == 0 {
			part.Lines = leftOut("curves", others)
		}
		parts = slices.Insert(parts, titled(parts, titleChanges), part)
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
			Name: useTexts[goodput.Use(u.Of)], Size: u.Seconds, Says: points(u.SharePercent, u.doubt()) + " %, " + terminal.SecondsText(u.Seconds),
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

// lostMost are the workloads, the one first that lost most time.
func lostMost(r goodput.Report) []goodput.Workload {
	lost := map[string]time.Duration{}
	id := func(w goodput.Workload) string { return w.Project + "/" + w.Name }
	for _, w := range r.Workloads {
		for k, n := range w.Spent {
			if isLost(k.Use) {
				lost[id(w)] += n.Time
			}
		}
	}
	all := slices.Clone(r.Workloads)
	slices.SortStableFunc(all, func(v, w goodput.Workload) int { return cmp.Compare(lost[id(w)], lost[id(v)]) })
	return all
}

// strips are when each of these workloads stood still, with its dearest interruptions.
func strips(r account, of []goodput.Workload) *page.Strips {
	s := &page.Strips{Name: "strips", Title: "When each workload stood still", From: r.From, To: r.To}
	still := map[string][]page.Stretch{}
	for _, b := range r.Interruptions {
		id := b.Project + "/" + b.Workload
		still[id] = append(still[id], page.Stretch{From: b.From, To: b.From.Add(b.Away)})
	}
	for _, w := range of {
		lane := page.Strip{Name: w.Name, Since: w.First, Still: still[w.Project+"/"+w.Name]}
		for _, b := range r.dearest() {
			if b.Project == w.Project && b.Workload == w.Name {
				lane.Marks = append(lane.Marks, page.Mark{At: b.From, Kind: page.Trouble, Says: terminal.CauseText(b.Cause) + ", " + events.Span(b.Away) + " away"})
			}
		}
		s.Lanes = append(s.Lanes, lane)
	}
	return s
}

// mostCurves bounds the workloads whose curve is drawn.
const mostCurves = 4

// curves are what each time between two saves would reach: of the first workloads that tell how long a save blocks.
func curves(all []goodput.Workload) (drawn []page.Curve, others []goodput.Workload) {
	for _, w := range all {
		h, ok := habitOf(w)
		switch {
		case !ok:
		case len(drawn) == mostCurves:
			others = append(others, w)
		default:
			drawn = append(drawn, page.NewCurve("curve"+strconv.Itoa(len(drawn)), "Goodput of "+w.Name+" by the time between two saves", h.Record, time.Duration(h.BestSeconds)*time.Second))
		}
	}
	return drawn, others
}

// mostNames bounds the names of what is left out.
const mostNames = 20

// leftOut says which workloads have no picture.
func leftOut(pictures string, of []goodput.Workload) []string {
	if len(of) == 0 {
		return nil
	}
	var names []string
	for _, w := range of[:min(len(of), mostNames)] {
		names = append(names, w.Name)
	}
	if more := len(of) - len(names); more > 0 {
		names = append(names, events.Number(int64(more))+" more")
	}
	return []string{"The " + pictures + " are those of the workloads that lost most. Left out: " + strings.Join(names, ", ") + "."}
}
