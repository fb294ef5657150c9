package logs

import (
	"bufio"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/layout"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/entries"
	"pitstop.internal/scripts/pitstop/losses"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/policy"
)

type reportOptions struct {
	asJSON, every bool
	who           losses.Who
	lead          time.Duration
}

func (d verbs) reportCommand() *cobra.Command {
	var o reportOptions
	var project string
	var since time.Duration
	c := &cobra.Command{
		Use:   "report [FILE...]",
		Short: "Say what really happened to TPUs, from the logs alone",
		Long: "Say what happened: every loss by cause, zone and generation, how long until the slice was back, and who brought it back.\n" +
			"The report adds up the chip-hours lost, lists the queued resources left over, and counts the losses that a notice announced\n" +
			"in time. It simulates nothing, and it says which facts the logs do not hold.\n\n" +
			"With --project it reads the entries that the sinks would select from the project's log, page by page, a page each second. That\n" +
			"needs roles/logging.viewer, and no deployment. Cloud Logging keeps system events and audit entries for 400 days, and crews'\n" +
			"lines for 30 days unless your log bucket says otherwise.\n\n" +
			"Files hold what gcloud logging read --format=json writes, or answers of Logging's entries.list, of any size. The entries of\n" +
			"a file go up or down in time. - is standard input.\n\n" +
			"Exit codes: 0 when all entries are read, 1 when some are not, 2 when the call or a file cannot be used.",
		RunE: func(c *cobra.Command, files []string) error {
			fromLog := c.Flags().Changed("project")
			switch {
			case fromLog && len(files) > 0:
				return cli.Usage("report reads files or the log of --project: leave out %s, or --project", files[0])
			case !fromLog && c.Flags().Changed("since"):
				return cli.Usage("--since bounds the log of --project; a file is reported whole")
			case !fromLog && len(files) == 0:
				return cli.Usage("report: name the project whose log is read (--project), or the files with your log entries; - is standard input")
			case since <= 0:
				return cli.Usage("--since %s: it has to be more than 0", since)
			}
			if slices.Contains(o.who.Babysitters, "") || slices.Contains(o.who.Pitstop, "") {
				return cli.Usage("--babysitter and --pitstop name a principal, as the log has it: name@PROJECT.iam.gserviceaccount.com")
			}
			if o.lead < 0 {
				return cli.Usage("--lead %v: it cannot be negative", o.lead)
			}
			if !fromLog {
				if len(files) > largest {
					return cli.Usage("report: %d files are more than the %d that it reads at once; join some of them", len(files), largest)
				}
				bar := terminal.NewProgress(files, nil, c.ErrOrStderr())
				n, err := printReport(c.Context(), entries.FilesOf(files, c.InOrStdin(), bar), o, bar, c.OutOrStdout(), c.ErrOrStderr())
				if err == nil && n == 0 {
					entries.PrintNone(c.ErrOrStderr())
				}
				return err
			}
			if err := cli.CheckProject("--project", project); err != nil {
				return err
			}
			return d.reportLog(c.Context(), project, since, o, c.OutOrStdout(), c.ErrOrStderr())
		},
	}
	f := c.Flags()
	f.StringVar(&project, "project", "", "the project whose log is read, in the place of files")
	cli.SpanVar(f, &since, "since", 30*cli.Day, "how far back the log of --project is read, as in 30d or 12h")
	f.BoolVar(&o.asJSON, "json", false, "print one JSON object, with every loss")
	f.BoolVar(&o.every, "losses", false, "list every loss, however many there are")
	f.StringArrayVar(&o.who.Babysitters, "babysitter", nil, "the principal of an older script that deletes and creates TPUs; repeat it for each")
	f.StringArrayVar(&o.who.Pitstop, "pitstop", nil, "a principal of Pitstop's; by default the service accounts called pitstop or pitstop-*; repeat it for each")
	f.DurationVar(&o.lead, "lead", policy.DefaultLead, "how long before a loss a notice must come to be in time")
	return c
}

// largest bounds the streams that are read at once.
const largest = 256

// reportLog tells the report of a project's log. What was read is no report where the rest cannot be read.
func (d verbs) reportLog(ctx context.Context, project string, since time.Duration, o reportOptions, out, errOut io.Writer) error {
	s, err := d.OpenReadOnly(ctx)
	if err != nil {
		return err
	}
	reading, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	r := &logReader{
		Deployment: d.Deployment, ctx: ctx, fail: fail, log: s.Log, project: project, from: d.Now().Add(-since), until: d.Now(),
		meter: terminal.NewMeter(errOut, d.Now), errOut: errOut,
	}
	n, err := printReport(reading, []entries.Source{r.open}, o, nil, out, errOut)
	switch why := context.Cause(reading); {
	case why != nil:
		return why
	case err == nil && n == 0:
		terminal.Print(errOut, "pitstop: 0 entries in the log of project "+project+" since "+r.from.UTC().Format(time.RFC3339)+
			"; --since looks further back; --project has to be that of the TPUs")
	}
	return err
}

// printReport tells the report of what the sources hold together, each in the order of its times. It returns how many entries they hold.
func printReport(ctx context.Context, sources []entries.Source, o reportOptions, bar *terminal.Progress, out, errOut io.Writer) (n int, err error) {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	f := entries.Faults{ErrOut: errOut}
	work := entries.NewPool(ctx, entries.ReadAll)
	var all merged
	for i := range sources {
		t := &timeline{source: work.Stream(ctx, sources[i:i+1], bar, entries.RunsAtOnce(len(sources))), fault: f.Add}
		defer t.close()
		all.lines = append(all.lines, t)
	}

	// Losses wait here while the record is read: the record may turn out to be unusable.
	buffered := bufio.NewWriterSize(out, 1<<20)
	p := reportPrinter{Printer: terminal.NewPrinter(out, o.asJSON), every: o.every, columns: layout.Width()}
	p.Printer.Out = buffered
	a := losses.New(o.who, o.lead, p.loss)
	for {
		e, err := all.next(ctx)
		if err != nil {
			bar.Done()
			return n, err
		}
		if f.Unusable {
			bar.Done()
			f.PrintRest()
			return n, cli.ErrUnusable // without that file the report would be wrong
		}
		if e == nil {
			break
		}
		n++
		a.Add(*e)
	}
	r := a.Report()
	bar.Done()
	f.PrintRest()
	if n > 0 || o.asJSON { // a program gets its object even of nothing
		if err := p.end(r, f.N); err != nil {
			return n, err
		}
	}
	if err := buffered.Flush(); err != nil {
		return n, err
	}
	if f.N > 0 {
		return n, cli.ErrFailed
	}
	return n, nil
}

// reportPrinter tells a report: to programs as one object, whose losses are written as they become known.
type reportPrinter struct {
	*terminal.Printer
	every   bool
	columns int // of the screen
	told    int
	// few are the first losses, worst those with the longest gaps.
	few, worst []losses.Loss
	// years says that the record spans more than one, so that a date needs its year.
	years bool
}

const (
	fewLosses   = 40
	worstLosses = 10
)

// loss takes a loss as soon as it is known how it ended.
func (p *reportPrinter) loss(l losses.Loss) {
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
	slices.SortStableFunc(p.worst, func(a, b losses.Loss) int { return cmp.Compare(b.Gap, a.Gap) })
	p.worst = p.worst[:min(len(p.worst), worstLosses)]
}

// end tells the sums.
func (p *reportPrinter) end(r losses.Report, faults int) error {
	if p.AsJSON {
		raw, err := json.Marshal(struct {
			losses.Report
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
	if len(r.Unsure) > 0 {
		terminal.Print(p.Out, p.Paint(terminal.Bold, "what the logs do not say"))
		for _, u := range r.Unsure {
			for i, part := range terminal.Wrap(u, min(p.columns, terminal.LineWidth)-2) {
				terminal.Print(p.Out, []string{"- ", "  "}[min(i, 1)]+part)
			}
		}
	}
	return nil
}

func (p *reportPrinter) head(r losses.Report, faults int) {
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
func (p *reportPrinter) lost(t losses.Sum) {
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
func chipHoursText(s losses.Sum) string {
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
		slices.SortStableFunc(list, func(a, b losses.Loss) int { return a.At.Compare(b.At) })
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
func (p *reportPrinter) lossRow(l losses.Loss) []string {
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
func endText(l losses.Loss) string {
	var s string
	switch l.Outcome {
	case losses.Back:
		s = "back after " + terminal.SecondsText(l.Gap) + " by " + agentText(l.RecreatedBy, l.Principal)
		if l.BackZone != "" {
			s += " in " + l.BackZone
		}
	case losses.BackUnseen:
		s = "back at an unknown time by " + agentText(l.RecreatedBy, l.Principal)
	case losses.GivenUp:
		s = "given up after " + terminal.SecondsText(l.Gap) + ": deleted by " + l.DeletedBy
	case losses.NotBack:
		s = "not back"
		if l.DeletedBy != "" {
			s += ", deleted by " + l.DeletedBy
		}
	case losses.NotTold:
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
func agentText(by losses.By, principal string) string {
	switch by {
	case losses.ByGoogle:
		return strings.TrimSpace("Google itself " + principal)
	case losses.ByPitstop:
		return "Pitstop"
	case losses.ByBabysitter:
		return "the script " + principal
	case losses.ByOwner:
		return "the owner " + principal
	case losses.ByCluster:
		return "the cluster itself, by " + principal
	case losses.ByNobody:
	}
	return "an unknown caller"
}

func (p *reportPrinter) groups(r losses.Report) {
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
func gapCells(s losses.Sum) []string {
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

func (p *reportPrinter) recreated(r losses.Report) {
	if len(r.Recreated) == 0 {
		return
	}
	rows := [][]string{{"losses", "brought back by", "half within", "95 % within", "longest", "chip-hours"}}
	for _, w := range r.Recreated {
		rows = append(rows, append([]string{events.Number(int64(w.Losses)), agentText(w.By, w.Principal)}, gapCells(w.Sum)...))
	}
	p.Table("who brought them back", 60, 2, rows)
}

func (p *reportPrinter) notices(r losses.Report) {
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

func (p *reportPrinter) leaks(r losses.Report) {
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
