package logs

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pitstop.internal/events"
	"pitstop.internal/scripts/layout"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/goodput"
	"pitstop.internal/scripts/pitstop/terminal"
)

func (d verbs) reportCommand() *cobra.Command {
	var asJSON, every bool
	var kept string
	return d.recordCommand(&cobra.Command{
		Use:   "report [FILE...]",
		Short: "Say what really happened to TPUs, from the logs alone",
		Long: "Say what happened: every loss by cause, zone and generation, how long until the slice was back, and who brought it back.\n" +
			"The report adds up the chip-hours lost, lists the queued resources left over, and counts the losses that a notice announced\n" +
			"in time. It simulates nothing, and it says which facts the logs do not hold. goodput has the rest of the same account.\n\n",
	}, func(f *pflag.FlagSet) {
		f.BoolVar(&asJSON, "json", false, "print one JSON object, with every loss")
		f.StringVar(&kept, "html", "", "write the report as a page into this file, which fetches nothing")
		cli.NamesFile(f, "html")
		f.BoolVar(&every, "losses", false, "list every loss, however many there are")
	}, func(_ record, out, screen io.Writer) (teller, error) {
		p := &reportPrinter{Printer: terminal.NewPrinter(screen, asJSON), every: every, columns: layout.Width()}
		p.Out = out
		switch {
		case kept == "":
			return p, nil
		case asJSON || every:
			return nil, cli.Usage("--html keeps the report as a page: leave out --json and --losses")
		}
		return newReportPage(p, kept), nil
	})
}

// reportPrinter tells a report: to programs as one object, whose losses are written as they become known.
type reportPrinter struct {
	*terminal.Printer
	every   bool
	columns int // of the screen
	told    int
	// few are the first losses, worst those with the longest gaps.
	few, worst []goodput.Loss
	// years says that the record spans more than one, so that a date needs its year.
	years bool
}

const (
	fewLosses   = 40
	worstLosses = 10
)

// loss takes a loss as soon as it is known how it ended.
func (p *reportPrinter) loss(l goodput.Loss) {
	p.told++
	switch {
	case p.AsJSON:
		before := ","
		if p.told == 1 {
			before = `{"losses":[`
		}
		raw, err := json.Marshal(l)
		if err == nil {
			_, _ = io.WriteString(p.Out, before+string(raw)) //nolint:errcheck // Flush tells
		}
		return
	case p.every:
		p.years = true // where the record ends is not known yet
		row := p.lossRow(l)
		terminal.Print(p.Out, strings.Join(row[:lossHead], "  "))
		terminal.Print(p.Out, terminal.Labelled(lossColumns[lossHead:], row[lossHead:]))
		return
	}
	if len(p.few) < fewLosses {
		p.few = append(p.few, l)
	}
	if len(p.worst) == worstLosses && l.Gap <= p.worst[worstLosses-1].Gap {
		return
	}
	p.worst = append(p.worst, l)
	slices.SortStableFunc(p.worst, func(a, b goodput.Loss) int { return cmp.Compare(b.Gap, a.Gap) })
	p.worst = p.worst[:min(len(p.worst), worstLosses)]
}

// end tells the sums.
func (p *reportPrinter) end(_ context.Context, r goodput.Report, faults int) error {
	if r.Entries == 0 && !p.AsJSON {
		return nil // a program gets its object even of nothing
	}
	if p.AsJSON {
		raw, err := json.Marshal(struct {
			goodput.Report
			Faults int `json:"faults"`
		}{r, faults})
		if err != nil {
			return err
		}
		if p.told == 0 {
			_, _ = io.WriteString(p.Out, `{"losses":[`) //nolint:errcheck // Flush tells
		}
		terminal.Print(p.Out, "],"+string(raw[1:]))
		return nil
	}
	if p.every && p.told > 0 {
		terminal.Print(p.Out, "")
	}
	p.years = r.From.UTC().Year() != r.To.UTC().Year()
	p.head(r, faults)
	p.listed()
	p.groups(r)
	p.recreated(r)
	p.notices(r)
	p.leaks(r)
	printUnsure(p.Printer, r.Unsure)
	return nil
}

// printUnsure lists what the logs do not say.
func printUnsure(p *terminal.Printer, unsure []string) {
	if len(unsure) == 0 {
		return
	}
	terminal.Print(p.Out, p.Paint(terminal.Bold, "what the logs do not say"))
	for _, u := range unsure {
		for i, part := range terminal.Wrap(u, p.Width()-2) {
			terminal.Print(p.Out, []string{"- ", "  "}[min(i, 1)]+part)
		}
	}
}

// printRecord says of which record a report is.
func printRecord(p *terminal.Printer, r goodput.Report, faults int) {
	const stamp = "Jan 2 2006 15:04"
	when := "entries without a time"
	if !r.From.IsZero() {
		when = fmt.Sprintf("%s to %s UTC", r.From.UTC().Format(stamp), r.To.UTC().Format(stamp))
	}
	terminal.Print(p.Out, p.Paint(terminal.Bold, when)+
		fmt.Sprintf(" · %s, %s of them about %s", terminal.Numbered(r.Entries, "entry", "entries"), events.Number(int64(r.Used)), terminal.Numbered(r.Slices+r.Unnamed, "TPU")))
	if faults > 0 {
		terminal.Print(p.Out, terminal.Numbered(faults, "entry or line", "entries or lines")+" could not be read: this report is of the others alone")
	}
}

func (p *reportPrinter) head(r goodput.Report, faults int) {
	printRecord(p.Printer, r, faults)
	t := r.Total
	if t.Losses == 0 {
		terminal.Print(p.Out, "no TPU was lost")
	} else {
		p.lost(t)
	}
	if r.Released > 0 {
		terminal.Print(p.Out, terminal.Numbered(r.Released, "deletion")+" by an owner of a running TPU: no loss")
	}
	if r.RunTimeLimits > 0 {
		terminal.Print(p.Out, terminal.Numbered(r.RunTimeLimits, "TPU")+" stopped by an instance schedule: no loss")
	}
	if r.TrainingExits > 0 {
		terminal.Print(p.Out, "training ended by itself "+terminal.Numbered(r.TrainingExits, "time")+", as the crew reports: no loss of a TPU")
	}
	terminal.Print(p.Out, "")
}

// lost tells the sum of all losses.
func (p *reportPrinter) lost(t goodput.Sum) {
	parts := []string{terminal.Numbered(t.Losses, "loss", "losses")}
	for _, o := range []struct {
		n    int
		text string
	}{
		{t.Back, "back"},
		{t.BackUnseen, "back at an unknown time"},
		{t.GivenUp, "given up by the owner"},
		{t.NotBack, "not back"},
		{t.NotTold, "of unknown end"},
	} {
		if o.n > 0 {
			parts = append(parts, events.Number(int64(o.n))+" "+o.text)
		}
	}
	terminal.Print(p.Out, parts[0]+": "+strings.Join(parts[1:], ", "))
	if t.Back > 0 {
		terminal.Print(p.Out, fmt.Sprintf("gap until back: half within %s, 95 %% within %s, the longest %s", terminal.SecondsText(t.GapP50), terminal.SecondsText(t.GapP95), terminal.SecondsText(t.GapMost)))
	}
	terminal.Print(p.Out, "chip-hours lost: "+chipHoursText(t))
	if n := int64(t.NotBackChipHours); n > 0 { // less than one would be told as 0
		terminal.Print(p.Out, fmt.Sprintf("not counted: %s chip-hours of TPUs that were not back when the record ended", events.Number(n)))
	}
}

// chipHoursText are the chip-hours of a sum, as far as they are known.
func chipHoursText(s goodput.Sum) string {
	if s.ChipHours+s.ChipHoursAtLeast == 0 {
		return "unknown"
	}
	if s.SizeUnknown == 0 {
		return fmt.Sprintf("%.1f", s.ChipHours)
	}
	if s.ChipHours == 0 {
		return fmt.Sprintf("at least %.1f", s.ChipHoursAtLeast)
	}
	return fmt.Sprintf("%.1f, and at least %.1f of unknown size", s.ChipHours, s.ChipHoursAtLeast)
}

// listed lists losses one by one: all of them where they are few, else those with the longest gaps.
func (p *reportPrinter) listed() {
	if p.told == 0 || p.every {
		return
	}
	list, title := p.few, "losses"
	if p.told > fewLosses {
		list, title = p.worst, "the longest gaps (--losses lists all "+events.Number(int64(p.told))+")"
	} else {
		slices.SortStableFunc(list, func(a, b goodput.Loss) int { return a.At.Compare(b.At) })
	}
	rows := [][]string{lossColumns}
	for _, l := range list {
		rows = append(rows, p.lossRow(l))
	}
	p.Table(title, 0, lossHead, rows)
}

// lossColumns are those of a list of losses. The first lossHead of them say which loss it is.
var lossColumns = []string{"lost (UTC)", "TPU", "type", "zone", "cause", "end", "chip-hours", "announced"}

const lossHead = 5

// date writes a time in UTC, with its year where the record spans more than one.
func (p *reportPrinter) date(t time.Time) string {
	if p.years {
		return t.UTC().Format("Jan 2 2006 15:04:05")
	}
	return t.UTC().Format("Jan 2 15:04:05")
}

// lossRow is a loss as people read it.
func (p *reportPrinter) lossRow(l goodput.Loss) []string {
	what := l.Accelerator
	if what == "" {
		what = "unknown"
	}
	size, price := l.ChipHours, ""
	if l.Chips == 0 {
		size, price = l.ChipHoursAtLeast, ">= "
	}
	announced := "-"
	if l.Announced {
		announced = terminal.SecondsText(l.Lead) + " before"
		if !l.InTime {
			announced += ", too late"
		}
	}
	chipHours := price + fmt.Sprintf("%.1f", size)
	if size < 0.05 {
		chipHours = "-"
	}
	return []string{p.date(l.At), l.Slice, what, l.Zone, terminal.CauseText(l.Cause), endText(l), chipHours, announced}
}

// endText says what became of a loss.
func endText(l goodput.Loss) string {
	var s string
	switch l.Outcome {
	case goodput.Back:
		s = "back after " + terminal.SecondsText(l.Gap) + " by " + agentText(l.RecreatedBy, l.Principal)
		if l.BackZone != "" {
			s += " in " + l.BackZone
		}
	case goodput.BackUnseen:
		s = "back at an unknown time by " + agentText(l.RecreatedBy, l.Principal)
	case goodput.GivenUp:
		s = "given up after " + terminal.SecondsText(l.Gap) + ": deleted by " + l.DeletedBy
	case goodput.NotBack:
		s = "not back"
		if l.DeletedBy != "" {
			s += ", deleted by " + l.DeletedBy
		}
	case goodput.NotTold:
		s = "unknown"
	}
	if l.FailedCreates > 0 {
		var by []string
		for class, n := range l.FailedBy {
			by = append(by, events.Number(int64(n))+" "+strings.ReplaceAll(string(class), "_", " "))
		}
		slices.Sort(by)
		s += fmt.Sprintf(", %s refused (%s)", terminal.Numbered(l.FailedCreates, "creation"), strings.Join(by, ", "))
	}
	return s
}

// agentText names who brought something back.
func agentText(by goodput.By, principal string) string {
	switch by {
	case goodput.ByGoogle:
		return strings.TrimSpace("Google itself " + principal)
	case goodput.ByPitstop:
		return "Pitstop"
	case goodput.ByBabysitter:
		return "the script " + principal
	case goodput.ByOwner:
		return "the owner " + principal
	case goodput.ByCluster:
		return "the cluster itself, by " + principal
	case goodput.ByNobody:
	}
	return "an unknown caller"
}

func (p *reportPrinter) groups(r goodput.Report) {
	if len(r.Groups) == 0 {
		return
	}
	rows := [][]string{{"losses", "cause", "zone", "generation", "back", "half within", "95 % within", "longest", "chip-hours", "announced", "in time"}}
	for _, g := range r.Groups {
		generation := g.Generation
		if generation == "" {
			generation = "unknown"
		}
		row := []string{events.Number(int64(g.Losses)), terminal.CauseText(g.Cause), g.Zone, generation, events.Number(int64(g.Back))}
		rows = append(rows, append(append(row, gapCells(g.Sum)...), events.Number(int64(g.Announced)), events.Number(int64(g.InTime))))
	}
	p.Table("by cause, zone and generation", 60, 4, rows)
}

// gapCells are the columns of a sum that speak of gaps, and of chip-hours.
func gapCells(s goodput.Sum) []string {
	size := fmt.Sprintf("%.1f", s.ChipHours)
	switch {
	case s.ChipHours+s.ChipHoursAtLeast == 0:
		size = "-"
	case s.ChipHoursAtLeast > 0:
		size = fmt.Sprintf(">= %.1f", s.ChipHours+s.ChipHoursAtLeast)
	}
	if s.Back == 0 {
		return []string{"-", "-", "-", size}
	}
	return []string{terminal.SecondsText(s.GapP50), terminal.SecondsText(s.GapP95), terminal.SecondsText(s.GapMost), size}
}

func (p *reportPrinter) recreated(r goodput.Report) {
	if len(r.Recreated) == 0 {
		return
	}
	rows := [][]string{{"losses", "brought back by", "half within", "95 % within", "longest", "chip-hours"}}
	for _, w := range r.Recreated {
		rows = append(rows, append([]string{events.Number(int64(w.Losses)), agentText(w.By, w.Principal)}, gapCells(w.Sum)...))
	}
	p.Table("who brought them back", 60, 2, rows)
}

func (p *reportPrinter) notices(r goodput.Report) {
	n, t := r.Notices, r.Total
	if n.Announced == 0 && t.Losses == 0 {
		return
	}
	terminal.Print(p.Out, p.Paint(terminal.Bold, "notices"))
	if n.Announced == 0 {
		terminal.Print(p.Out, "no notice of maintenance")
	} else {
		terminal.Print(p.Out, fmt.Sprintf("%s of maintenance: %s began, %s withdrawn before", terminal.Numbered(n.Announced, "notice"), events.Number(int64(n.Began)), events.Number(int64(n.Withdrawn))))
	}
	if t.Losses > 0 {
		terminal.Print(p.Out, fmt.Sprintf("%s of %s announced, %s in time (%s before or earlier)",
			events.Number(int64(t.Announced)), terminal.Numbered(t.Losses, "loss", "losses"), events.Number(int64(t.InTime)), terminal.SecondsText(r.LeadNeeded)))
	}
	terminal.Print(p.Out, "")
}

func (p *reportPrinter) leaks(r goodput.Report) {
	l := r.Leaks
	if len(l.Left) == 0 && l.Late == 0 {
		return
	}
	rows := [][]string{{"queued resource", "zone", "TPU gone since", "holds quota for", "chips"}}
	for _, q := range l.Left[:min(len(l.Left), fewLosses)] {
		chips := "unknown"
		if q.Chips > 0 {
			chips = events.Number(int64(q.Chips))
		}
		rows = append(rows, []string{q.QueuedResource, q.Zone, p.date(q.Since), terminal.SecondsText(q.Held * 3600), chips})
	}
	title := terminal.Numbered(len(l.Left), "queued resource") + " left over when the record ends"
	if len(l.Left) == 0 {
		terminal.Print(p.Out, p.Paint(terminal.Bold, "no queued resource is left over"))
	} else {
		p.Table(title, 0, 2, rows)
	}
	if more := len(l.Left) - fewLosses; more > 0 {
		terminal.Print(p.Out, fmt.Sprintf("and %s more (--json has all)", events.Number(int64(more))))
	}
	if l.Late > 0 {
		terminal.Print(p.Out, fmt.Sprintf("%s deleted more than an hour after the TPU was gone: held quota for %s in all",
			terminal.Numbered(l.Late, "queued resource"), terminal.SecondsText(l.LateHours*3600)))
		terminal.Print(p.Out, "")
	}
}
