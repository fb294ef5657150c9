package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/goodput"
	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/scripts/pitstop/prices"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/topology"
	"pitstop.internal/shared/view"
)

func (d verbs) goodputCommand() *cobra.Command {
	var asJSON bool
	var priced, kept string
	return d.recordCommand(&cobra.Command{
		Use:   "goodput [FILE...]",
		Short: "Say where the training time went, and what it cost",
		Long: "Say where the time of each workload went, from its first entry to the end of the record: waiting for capacity, starting, steps\n" +
			"that stayed, saves, steps that were done again, hangs. Each moment has one use and one cause, so that they add up to the whole.\n" +
			"A step is productive once, when it was done last. What no entry tells is unknown, and printed as such.\n\n" +
			"Goodput is the productive share of the time in which training was to run, so without that in which its owner had stopped it.\n" +
			"The numbers come with the doubt that the record leaves. Crews' lines are what the steps are read from. With --project and\n" +
			"roles/datastore.viewer, the dearest interruptions have the IDs of their incidents.\n\n",
	}, func(f *pflag.FlagSet) {
		f.BoolVar(&asJSON, "json", false, "print one JSON object")
		f.StringVar(&kept, "html", "", "write the account as a page with pictures into this file, which fetches nothing")
		cli.NamesFile(f, "html")
		f.StringVar(&priced, "prices", "", "a file with your dollars for a chip-hour, as incident takes it")
		cli.NamesFile(f, "prices")
	}, func(o record, out, screen io.Writer) (teller, error) {
		list, err := prices.Read(priced)
		if err != nil {
			return nil, err
		}
		p := &goodputPrinter{Printer: terminal.NewPrinter(screen, asJSON), verbs: d, project: o.project, prices: list}
		p.Out = out
		switch {
		case kept == "":
			return p, nil
		case asJSON:
			return nil, cli.Usage("--html keeps the account as a page: leave out --json")
		}
		return newGoodputPage(p, kept), nil
	})
}

// goodputPrinter tells an account.
type goodputPrinter struct {
	*terminal.Printer
	verbs
	// project is the one whose ledger names incidents; empty for none.
	project string
	prices  prices.List
	// sheet is what the printer has printed of the account.
	sheet sheet
}

func (*goodputPrinter) loss(goodput.Loss) {}

// sum is an amount of time as it is told.
type sum struct {
	Of           string  `json:"of"`
	Seconds      float64 `json:"seconds"`
	DoubtSeconds float64 `json:"doubt_seconds"`
	// SharePercent is of the time that the table is about.
	SharePercent float64 `json:"share_percent"`
	ChipHours    float64 `json:"chip_hours"`
	// Dollars are what the chips cost in that time; 0 without prices.
	Dollars float64 `json:"dollars,omitzero"`
}

// workloadSum is the account of a workload as it is told.
type workloadSum struct {
	Project        string    `json:"project"`
	Workload       string    `json:"workload"`
	First          time.Time `json:"first"`
	GoodputPercent float64   `json:"goodput_percent"`
	DoubtPoints    float64   `json:"doubt_points"`
	Step           int64     `json:"step,omitzero"`
	StepSeconds    float64   `json:"step_seconds,omitzero"`
	Uses           []sum     `json:"uses"`
}

// interruption is an interruption as it is told.
type interruption struct {
	At           time.Time    `json:"at"`
	Project      string       `json:"project"`
	Workload     string       `json:"workload"`
	Zone         string       `json:"zone"`
	Cause        events.Cause `json:"cause"`
	AwaySeconds  float64      `json:"away_seconds"`
	AgainSeconds float64      `json:"again_seconds"`
	Over         bool         `json:"over"`
	ChipHours    float64      `json:"chip_hours"`
	// Incident is its ID, where the ledger was read and has it.
	Incident string `json:"incident,omitzero"`
}

// sheet is the whole account as it is told.
type sheet struct {
	From           time.Time      `json:"from,omitzero"`
	To             time.Time      `json:"to,omitzero"`
	Entries        int            `json:"entries"`
	Faults         int            `json:"faults"`
	Seconds        float64        `json:"seconds"`
	GoodputPercent float64        `json:"goodput_percent"`
	DoubtPoints    float64        `json:"doubt_points"`
	Uses           []sum          `json:"uses"`
	ByCause        []sum          `json:"lost_by_cause"`
	ByZone         []sum          `json:"lost_by_zone"`
	ByGeneration   []sum          `json:"lost_by_generation"`
	Workloads      []workloadSum  `json:"workloads"`
	Interruptions  []interruption `json:"interruptions"`
	Changes        []change       `json:"changes"`
	Unsure         []string       `json:"unsure"`
}

// useTexts are the uses of time for people.
var useTexts = map[goodput.Use]string{
	goodput.Capacity: "waiting for capacity", goodput.Maintenance: "maintenance or repair by Google", goodput.Provisioning: "provisioning",
	goodput.Boarding: "machine to crew", goodput.Admission: "waiting for admission or a restart", goodput.Starting: "start to first step",
	goodput.Restoring: "of the start, restoring", goodput.Productive: "productive", goodput.Saving: "saving (blocked)", goodput.Again: "done again",
	goodput.Hang: "hang", goodput.Stopped: "stopped by its owner, or finished", goodput.Unknown: "unknown",
}

// isLost reports whether time of a use was lost to something that has a cause.
func isLost(u goodput.Use) bool {
	return u != goodput.Productive && u != goodput.Saving && u != goodput.Stopped && u != goodput.Unknown
}

// The titles of the tables that a page has a picture of.
const (
	titleUses    = "where the time went"
	titleDearest = "the dearest interruptions"
	titleChanges = "what you may change, and what it would have gained"
)

// end tells the account.
func (p *goodputPrinter) end(ctx context.Context, r goodput.Report, faults int) error {
	s := p.sheetOf(r, faults)
	if p.project != "" && len(s.Interruptions) > 0 {
		if err := p.nameIncidents(ctx, s.Interruptions); err != nil {
			s.Unsure = append(s.Unsure, "the IDs of incidents: "+cli.OneLine(err))
		}
	}
	p.sheet = s
	if p.AsJSON {
		return terminal.PrintJSON(p.Out, s)
	}
	if r.Entries == 0 {
		return nil
	}
	printRecord(p.Printer, r, faults)
	if len(s.Workloads) == 0 {
		terminal.Print(p.Out, "no entry names a TPU, so there is no account")
		return nil
	}
	line := "goodput unknown: no crew has told a step"
	if s.GoodputPercent > 0 {
		line = "goodput " + points(s.GoodputPercent, s.DoubtPoints) + " %"
	}
	terminal.Print(p.Out, p.Paint(terminal.Bold, line)+" · "+terminal.Numbered(len(s.Workloads), "workload")+", "+terminal.SecondsText(s.Seconds)+" in all\n")
	p.table(titleUses, "use", s.Uses, 0)
	p.table("lost time by cause", "cause", s.ByCause, 0)
	p.table("lost time by zone", "zone", s.ByZone, mostRows)
	p.table("lost time by generation", "generation", s.ByGeneration, 0)
	p.workloads(s.Workloads)
	p.interruptions(s.Interruptions)
	p.changes(s.Changes)
	printUnsure(p.Printer, s.Unsure)
	return nil
}

// mostRows is how many zones and workloads are told to people.
const mostRows = 20

// sheetOf adds an account up.
func (p *goodputPrinter) sheetOf(r goodput.Report, faults int) sheet {
	s := sheet{From: r.From, To: r.To, Entries: r.Entries, Faults: faults, Workloads: []workloadSum{}, Interruptions: []interruption{}, Changes: p.changesOf(r), Unsure: []string{}}
	s.Uses = p.sums(r.Workloads, func(k goodput.Kind) (string, bool) { return string(k.Use), true })
	order := func(x sum) int { return slices.Index(goodput.Uses, goodput.Use(x.Of)) }
	slices.SortFunc(s.Uses, func(x, y sum) int { return cmp.Compare(order(x), order(y)) })
	s.GoodputPercent, s.DoubtPoints = goodputOf(s.Uses)
	s.Seconds = wholeOf(s.Uses)
	s.ByCause = p.sums(r.Workloads, func(k goodput.Kind) (string, bool) { return cmp.Or(string(k.Cause), "first start"), isLost(k.Use) })
	s.ByZone = p.sums(r.Workloads, func(k goodput.Kind) (string, bool) { return k.Zone, isLost(k.Use) })
	s.ByGeneration = p.sums(r.Workloads, func(k goodput.Kind) (string, bool) { return generationOf(k.Accelerator), isLost(k.Use) })
	silent, unsplit := 0, 0
	for _, w := range r.Workloads {
		uses := p.sums([]goodput.Workload{w}, func(k goodput.Kind) (string, bool) { return string(k.Use), true })
		x := workloadSum{Project: w.Project, Workload: w.Name, First: w.First, Step: w.Steps, StepSeconds: w.Pace.Seconds(), Uses: uses}
		x.GoodputPercent, x.DoubtPoints = goodputOf(uses)
		s.Workloads = append(s.Workloads, x)
		if w.Steps == 0 {
			silent++
		} else if w.Unsplit {
			unsplit++
		}
	}
	for _, b := range r.Dearest {
		s.Interruptions = append(s.Interruptions, interruption{
			b.From, b.Project, b.Workload, b.Zone, b.Cause, b.Away.Seconds(), b.Again.Seconds(), !b.To.IsZero(), hundredths(float64(b.Chips) * (b.Away + b.Again).Hours()), "",
		})
	}
	say := func(n int, one, many string) {
		if n > 0 {
			s.Unsure = append(s.Unsure, terminal.Numbered(n, "workload "+one, "workloads "+many))
		}
	}
	say(silent, "has no crew that tells its steps: while its machines stood, its time is unknown", "have no crew that tells their steps: while their machines stood, their time is unknown")
	say(unsplit, "has a crew that does not tell how long saves block: they are among the productive time", "have crews that do not tell how long saves block: they are among the productive time")
	say(r.Unnamed, "is known by its workers alone, and is not in the account", "are known by their workers alone, and are not in the account")
	if u := p.unpriced(r.Workloads); len(u) > 0 {
		s.Unsure = append(s.Unsure, "the prices name no "+strings.Join(u, ", ")+": dollars are without it")
	}
	return s
}

// sums adds up the time of workloads by what of says, the most first.
func (p *goodputPrinter) sums(all []goodput.Workload, of func(goodput.Kind) (string, bool)) []sum {
	by, whole := map[string]*sum{}, 0.0
	for _, w := range all {
		for k, n := range w.Spent {
			name, counts := of(k)
			if !counts || n.Time == 0 {
				continue
			}
			if by[name] == nil {
				by[name] = &sum{Of: name}
			}
			x := by[name]
			x.Seconds, x.DoubtSeconds = x.Seconds+n.Time.Seconds(), x.DoubtSeconds+n.Doubt.Seconds()
			x.ChipHours += n.Chips.Hours()
			if dollars, known := p.prices.Of(k.Accelerator, k.Spot); known {
				x.Dollars += dollars * n.Chips.Hours()
			}
			whole += n.Time.Seconds()
		}
	}
	out := []sum{}
	for _, x := range by {
		x.SharePercent = hundredths(100 * x.Seconds / whole)
		x.ChipHours, x.Dollars = hundredths(x.ChipHours), hundredths(x.Dollars)
		out = append(out, *x)
	}
	slices.SortFunc(out, func(x, y sum) int { return cmp.Or(cmp.Compare(y.Seconds, x.Seconds), cmp.Compare(x.Of, y.Of)) })
	return out
}

// goodputOf is the productive share of the time in which training was to run, in percent, and by how many points that may be off.
func goodputOf(uses []sum) (percent, doubt float64) {
	wanted, productive := 0.0, sum{}
	for _, u := range uses {
		switch goodput.Use(u.Of) {
		case goodput.Stopped:
			continue
		case goodput.Productive:
			productive = u
		default:
		}
		wanted += u.Seconds
	}
	if wanted == 0 {
		return 0, 0
	}
	return hundredths(100 * productive.Seconds / wanted), hundredths(100 * productive.DoubtSeconds / wanted)
}

// unpriced are the accelerator types that the prices do not name.
func (p *goodputPrinter) unpriced(all []goodput.Workload) []string {
	missing := map[string]bool{}
	for _, w := range all {
		for k := range w.Spent {
			if _, known := p.prices.Of(k.Accelerator, k.Spot); !known && p.prices != nil {
				missing[cmp.Or(k.Accelerator, "unknown type")] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(missing))
}

func generationOf(accelerator string) string {
	if shape, err := topology.Parse(accelerator); err == nil {
		return shape.Generation
	}
	return "unknown"
}

func hundredths(x float64) float64 { return math.Round(100*x) / 100 }

// points writes a share with the digits that are known of it.
func points(percent, doubt float64) string {
	switch {
	case doubt < 0.05:
		return fmt.Sprintf("%.1f", percent)
	case doubt < 0.95:
		return fmt.Sprintf("%.1f ± %.1f", percent, doubt)
	}
	return fmt.Sprintf("%.0f ± %.0f", percent, math.Ceil(doubt))
}

// wholeOf is the time of all sums, in seconds.
func wholeOf(all []sum) (whole float64) {
	for _, x := range all {
		whole += x.Seconds
	}
	return whole
}

// table tells sums.
func (p *goodputPrinter) table(title, of string, all []sum, most int) {
	if len(all) == 0 {
		return
	}
	head := []string{of, "time", "%", "chip-hours"}
	if p.prices != nil {
		head = append(head, "dollars")
	}
	rows, whole := [][]string{head}, wholeOf(all)
	for _, x := range all {
		name := cmp.Or(useTexts[goodput.Use(x.Of)], terminal.CauseText(events.Cause(x.Of)))
		doubt := 100 * x.DoubtSeconds / whole
		if of != "use" {
			doubt *= 1 - x.Seconds/whole // what is lost in all is as much in doubt
		}
		row := []string{name, terminal.SecondsText(math.Round(x.Seconds)), points(x.SharePercent, doubt), chips(x.ChipHours)}
		if p.prices != nil {
			row = append(row, fmt.Sprintf("%.2f", x.Dollars))
		}
		rows = append(rows, row)
	}
	p.Table(title, most, 3, rows)
}

func chips(hours float64) string {
	if hours == 0 {
		return "-"
	}
	return fmt.Sprintf("%.1f", hours)
}

// workloads tells the goodput of each workload.
func (p *goodputPrinter) workloads(all []workloadSum) {
	if len(all) < 2 {
		return
	}
	rows := [][]string{{"workload", "goodput", "lost most to", "time", "step"}}
	for _, w := range all {
		good, most := "unknown", []string{"-", "-"}
		if w.Step > 0 {
			good = points(w.GoodputPercent, w.DoubtPoints) + " %"
		}
		for _, u := range w.Uses {
			if isLost(goodput.Use(u.Of)) {
				most = []string{useTexts[goodput.Use(u.Of)], terminal.SecondsText(math.Round(u.Seconds))}
				break
			}
		}
		rows = append(rows, append(append([]string{w.Workload, good}, most...), events.Number(w.Step)))
	}
	p.Table("workloads", mostRows, 2, rows)
}

// about is how far the opening of an incident may be from the interruption that it tells of.
const about = 30 * time.Minute

// nameIncidents finds the incidents of interruptions in the ledger: of each workload the one that opened nearest to its stop.
func (p *goodputPrinter) nameIncidents(ctx context.Context, all []interruption) error {
	asking, end := google.OptionalQuestion(ctx)
	return end(func() error {
		l, err := p.Ledger(deployment.Place{Project: p.project})
		if err != nil {
			return err
		}
		workloads, err := p.Workloads(asking, l, nil)
		if err != nil {
			return err
		}
		archived, err := l.Archived(asking)
		if err != nil {
			return err
		}
		for i := range all {
			b := &all[i]
			at := slices.IndexFunc(workloads, func(w deployment.Workload) bool { return w.ID == b.Project+"/"+b.Workload })
			if at < 0 {
				continue
			}
			if b.Incident, err = incidentAt(asking, l, workloads[at], archived[workloads[at].ID], b.At, p.Now()); err != nil {
				return err
			}
		}
		return nil
	}())
}

// incidentAt is the ID of the incident of a workload that opened nearest to a time; empty for none.
func incidentAt(ctx context.Context, l *ledger.Ledger, w deployment.Workload, ids []string, at, now time.Time) (nearest string, err error) {
	least := about + 1
	for _, in := range []*view.Incident{w.Incident, w.Closed} {
		if in != nil && in.Opened.Sub(at).Abs() < least {
			nearest, least = in.ID, in.Opened.Sub(at).Abs()
		}
	}
	for _, id := range ids {
		if !mayTellOf(id, at) {
			continue
		}
		in, err := w.ReadIncident(ctx, l, id, now)
		if err != nil && !errors.Is(err, ledger.ErrNotFound) {
			return "", err
		}
		if d := in.Opened.Sub(at).Abs(); err == nil && d < least {
			nearest, least = id, d
		}
	}
	return nearest, nil
}

// mayTellOf reports whether the incident of an ID opened on a day near a time: it may have opened before it, at an announcement, or after it.
func mayTellOf(id string, at time.Time) bool {
	on := func(day time.Time) bool { return strings.Contains(id, "-"+day.UTC().Format("20060102")+"-") }
	return on(at.Add(-about)) || on(at.Add(about))
}

// interruptions tells the dearest ones.
func (p *goodputPrinter) interruptions(all []interruption) {
	if len(all) == 0 {
		return
	}
	rows := [][]string{{"stood still (UTC)", "workload", "zone", "cause", "for", "done again", "chip-hours", "incident"}}
	for _, b := range all {
		away, again := terminal.SecondsText(math.Round(b.AwaySeconds)), "-"
		if !b.Over {
			away += ", not over"
		}
		if b.AgainSeconds > 0 {
			again = terminal.SecondsText(math.Round(b.AgainSeconds))
		}
		rows = append(rows, []string{b.At.UTC().Format("Jan 2 2006 15:04:05"), b.Workload, b.Zone, terminal.CauseText(b.Cause), away, again, chips(b.ChipHours), cmp.Or(b.Incident, "-")})
	}
	p.Table(titleDearest, 0, 4, rows)
}
