package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

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
	t := goodputTeller{verbs: d}
	var priced string
	c := &cobra.Command{
		Use:   "goodput [FILE...]",
		Short: "Say where the training time went, and what it cost",
		Long: "Say where the time of each workload went, from its first entry to the end of the record: waiting for capacity, starting, steps\n" +
			"that stayed, saves, steps that were done again, hangs. Each moment has one use and one cause, so that they add up to the whole.\n" +
			"A step is productive once, when it was done last. What no entry tells is unknown, and printed as such.\n\n" +
			"Goodput is the productive share of the time in which training was to run, so without that in which its owner had stopped it.\n" +
			"The numbers come with the doubt that the record leaves. Crews' lines are what the steps are read from. With --project and\n" +
			"roles/datastore.viewer, the dearest interruptions have the IDs of their incidents.\n\n",
		PreRunE: func(*cobra.Command, []string) (err error) {
			t.prices, err = prices.Read(priced)
			return err
		},
	}
	c.Flags().StringVar(&priced, "prices", "", "a file with your dollars for a chip-hour, as incident takes it")
	cli.NamesFile(c.Flags(), "prices")
	return d.recordCommand(c, &t)
}

// goodputTeller tells where the time of workloads went.
type goodputTeller struct {
	verbs
	prices prices.List
}

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

// spent is what time was spent on, and how much of it was productive.
type spent struct {
	GoodputPercent float64 `json:"goodput_percent"`
	DoubtPoints    float64 `json:"doubt_points"`
	Uses           []sum   `json:"uses"`
}

// workloadSum is the account of a workload as it is told.
type workloadSum struct {
	Project     string    `json:"project"`
	Workload    string    `json:"workload"`
	First       time.Time `json:"first"`
	Step        int64     `json:"step,omitzero"`
	StepSeconds float64   `json:"step_seconds,omitzero"`
	spent
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
	From    time.Time `json:"from,omitzero"`
	To      time.Time `json:"to,omitzero"`
	Entries int       `json:"entries"`
	Faults  int       `json:"faults"`
	Seconds float64   `json:"seconds"`
	spent
	ByCause       []sum          `json:"lost_by_cause"`
	ByZone        []sum          `json:"lost_by_zone"`
	ByGeneration  []sum          `json:"lost_by_generation"`
	Workloads     []workloadSum  `json:"workloads"`
	Interruptions []interruption `json:"interruptions"`
	Changes       []change       `json:"changes"`
	Unsure        []string       `json:"unsure"`
}

// uses are the uses of time for people, in the order in which a workload comes to them. Lost says that something took that time.
var uses = []struct {
	use  goodput.Use
	text string
	lost bool
}{
	{goodput.Capacity, "waiting for capacity", true},
	{goodput.Maintenance, "maintenance or repair by Google", true},
	{goodput.Provisioning, "provisioning", true},
	{goodput.Boarding, "machine to crew", true},
	{goodput.Admission, "waiting for admission or a restart", true},
	{goodput.Starting, "start to first step", true},
	{goodput.Restoring, "of the start, restoring", true},
	{goodput.Productive, "productive", false},
	{goodput.Saving, "saving (blocked)", false},
	{goodput.Again, "done again", true},
	{goodput.Hang, "hang", true},
	{goodput.Stopped, "stopped by its owner, or finished", false},
	{goodput.Unknown, "unknown", false},
}

// place is where a use stands in uses.
func place(u string) int {
	for i, of := range uses {
		if string(of.use) == u {
			return i
		}
	}
	return len(uses) - 1
}

func useText(u string) string { return uses[place(u)].text }

func isLost(k goodput.Kind) bool { return uses[place(string(k.Use))].lost }

// The titles of the tables that a page has a picture of.
const (
	titleUses    = "where the time went"
	titleDearest = "the dearest interruptions"
	titleChanges = "what you may change, and what it would have gained"
)

// mostRows is how many zones and workloads are told to people.
const mostRows = 20

func (t *goodputTeller) tell(ctx context.Context, p *terminal.Printer, a account) error {
	s := t.sheetOf(a)
	if err := t.nameIncidents(ctx, a.project, s.Interruptions); err != nil {
		s.Unsure = append(s.Unsure, "the IDs of incidents: "+cli.OneLine(err))
	}
	switch {
	case p.AsJSON:
		return terminal.PrintJSON(p.Out, s)
	case a.Entries == 0:
		return nil
	}
	printRecord(p, a)
	if len(s.Workloads) == 0 {
		terminal.Print(p.Out, "no entry names a TPU, so there is no account")
		return nil
	}
	line := "goodput unknown: no crew has told a step"
	if s.GoodputPercent > 0 {
		line = "goodput " + points(s.GoodputPercent, s.DoubtPoints) + " %"
	}
	terminal.Print(p.Out, p.Paint(terminal.Bold, line)+" · "+terminal.Numbered(len(s.Workloads), "workload")+", "+terminal.SecondsText(s.Seconds)+" in all\n")
	t.printSums(p, titleUses, "use", s.Uses, useText)
	words := func(of string) string { return strings.ReplaceAll(of, "_", " ") }
	t.printSums(p, "lost time by cause", "cause", s.ByCause, words)
	t.printSums(p, "lost time by zone", "zone", s.ByZone, words)
	t.printSums(p, "lost time by generation", "generation", s.ByGeneration, words)
	printWorkloads(p, s.Workloads)
	printInterruptions(p, s.Interruptions)
	printChanges(p, s.Changes)
	printUnsure(p, s.Unsure)
	return nil
}

// sheetOf adds an account up.
func (t *goodputTeller) sheetOf(a account) sheet {
	s := sheet{
		From: a.From, To: a.To, Entries: a.Entries, Faults: a.Faults, spent: t.spentBy(a.Workloads), Changes: t.changesOf(a.Report),
		ByCause:      t.sums(a.Workloads, isLost, func(k goodput.Kind) string { return cmp.Or(string(k.Cause), "first start") }),
		ByZone:       t.sums(a.Workloads, isLost, func(k goodput.Kind) string { return k.Zone }),
		ByGeneration: t.sums(a.Workloads, isLost, func(k goodput.Kind) string { return generationOf(k.Accelerator) }),
	}
	slices.SortFunc(s.Uses, func(x, y sum) int { return cmp.Compare(place(x.Of), place(y.Of)) })
	silent, unsplit := 0, 0
	unpriced := map[string]bool{}
	for _, w := range a.Workloads {
		s.Seconds += w.Time().Seconds()
		s.Workloads = append(s.Workloads, workloadSum{w.Project, w.Name, w.First, w.Steps, w.Pace.Seconds(), t.spentBy([]goodput.Workload{w})})
		if w.Steps == 0 {
			silent++
		} else if w.Unsplit {
			unsplit++
		}
		for k := range w.Spent {
			if _, known := t.prices.Of(k.Accelerator, k.Spot); !known && t.prices != nil {
				unpriced[cmp.Or(k.Accelerator, "unknown type")] = true
			}
		}
	}
	for _, b := range a.Dearest {
		s.Interruptions = append(s.Interruptions, interruption{
			b.From, b.Project, b.Workload, b.Zone, b.Cause, b.Away.Seconds(), b.Again.Seconds(), !b.To.IsZero(), hundredths(float64(b.Chips) * (b.Away + b.Again).Hours()), "",
		})
	}
	for _, of := range []struct {
		n    int
		text string
	}{
		{silent, "without a crew that tells its steps: the time while machines stood is unknown"},
		{unsplit, "without a word on how long saves block: they are among the productive time"},
		{a.Unnamed, "known by workers alone: not in the account"},
	} {
		if of.n > 0 {
			s.Unsure = append(s.Unsure, terminal.Numbered(of.n, "workload")+" "+of.text)
		}
	}
	if len(unpriced) > 0 {
		s.Unsure = append(s.Unsure, "the prices name no "+strings.Join(slices.Sorted(maps.Keys(unpriced)), ", ")+": dollars are without it")
	}
	return s
}

// sums adds up the time of workloads that counts, by what of says, the most first.
func (t *goodputTeller) sums(all []goodput.Workload, counts func(goodput.Kind) bool, of func(goodput.Kind) string) []sum {
	by, whole := map[string]*sum{}, 0.0
	for _, w := range all {
		for k, n := range w.Spent {
			if !counts(k) || n.Time == 0 {
				continue
			}
			x := by[of(k)]
			if x == nil {
				x = &sum{Of: of(k)}
				by[x.Of] = x
			}
			dollars, _ := t.prices.Of(k.Accelerator, k.Spot)
			x.Seconds, x.DoubtSeconds = x.Seconds+n.Time.Seconds(), x.DoubtSeconds+n.Doubt.Seconds()
			x.ChipHours, x.Dollars = x.ChipHours+n.Chips.Hours(), x.Dollars+dollars*n.Chips.Hours()
			whole += n.Time.Seconds()
		}
	}
	var out []sum
	for _, x := range by {
		x.SharePercent = hundredths(100 * x.Seconds / whole)
		x.ChipHours, x.Dollars = hundredths(x.ChipHours), hundredths(x.Dollars)
		out = append(out, *x)
	}
	slices.SortFunc(out, func(x, y sum) int { return cmp.Or(cmp.Compare(y.Seconds, x.Seconds), cmp.Compare(x.Of, y.Of)) })
	return out
}

// spentBy is what workloads spent their time on. Goodput is the productive share of that in which training was to run.
func (t *goodputTeller) spentBy(all []goodput.Workload) (s spent) {
	byUse := func(k goodput.Kind) string { return string(k.Use) }
	wanted := t.sums(all, func(k goodput.Kind) bool { return k.Use != goodput.Stopped }, byUse)
	for _, u := range wanted {
		if u.Of == string(goodput.Productive) {
			s.GoodputPercent, s.DoubtPoints = u.SharePercent, hundredths(100*u.DoubtSeconds/wholeOf(wanted))
		}
	}
	s.Uses = t.sums(all, func(goodput.Kind) bool { return true }, byUse)
	return s
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

// printSums prints a table of sums.
func (t *goodputTeller) printSums(p *terminal.Printer, title, of string, all []sum, text func(of string) string) {
	rows, whole := [][]string{{of, "time", "%", "chip-hours", "dollars"}}, wholeOf(all)
	for _, x := range all {
		doubt := 100 * x.DoubtSeconds / whole
		if title != titleUses {
			doubt *= 1 - x.Seconds/whole // what is lost in all is as much in doubt
		}
		rows = append(rows, []string{text(x.Of), seconds(x.Seconds), points(x.SharePercent, doubt), chipHours(x.ChipHours, 0), fmt.Sprintf("%.2f", x.Dollars)})
	}
	if t.prices == nil {
		for i := range rows {
			rows[i] = rows[i][:4]
		}
	}
	printTable(p, title, mostRows, 3, rows)
}

// seconds writes a time without the digits after its seconds.
func seconds(s float64) string { return terminal.SecondsText(math.Round(s)) }

// printWorkloads tells the goodput of each workload, and what took most of its time.
func printWorkloads(p *terminal.Printer, all []workloadSum) {
	if len(all) < 2 {
		return
	}
	rows := [][]string{{"workload", "goodput", "lost most to", "time", "step"}}
	for _, w := range all {
		row := []string{w.Workload, "unknown", "-", "-", events.Number(w.Step)}
		if w.Step > 0 {
			row[1] = points(w.GoodputPercent, w.DoubtPoints) + " %"
		}
		if i := slices.IndexFunc(w.Uses, func(u sum) bool { return isLost(goodput.Kind{Use: goodput.Use(u.Of)}) }); i >= 0 {
			row[2], row[3] = useText(w.Uses[i].Of), seconds(w.Uses[i].Seconds)
		}
		rows = append(rows, row)
	}
	printTable(p, "workloads", mostRows, 2, rows)
}

// about is how far the opening of an incident may be from the interruption that it tells of.
const about = 30 * time.Minute

// nameIncidents finds the incidents of interruptions in the ledger of a project: of each workload the one that opened nearest to its stop.
func (t *goodputTeller) nameIncidents(ctx context.Context, project string, all []interruption) error {
	if project == "" {
		return nil
	}
	asking, end := google.OptionalQuestion(ctx)
	return end(func() error {
		l, err := t.Ledger(deployment.Place{Project: project})
		if err != nil {
			return err
		}
		for i := range all {
			b := &all[i]
			id := b.Project + "/" + b.Workload
			past, err := l.PastOf(asking, id)
			if err != nil {
				return err
			}
			w, _, err := l.Workload(asking, id)
			if err != nil && !errors.Is(err, ledger.ErrNotFound) {
				return err
			}
			if open := w.OpenPast(t.Now()); open != nil {
				past = append(past, *open)
			}
			off := func(in view.Past) time.Duration { return in.Opened.Sub(b.At).Abs() }
			past = slices.DeleteFunc(past, func(in view.Past) bool { return off(in) > about })
			if len(past) > 0 {
				b.Incident = slices.MinFunc(past, func(x, y view.Past) int { return cmp.Compare(off(x), off(y)) }).ID
			}
		}
		return nil
	}())
}

// printInterruptions tells the dearest interruptions.
func printInterruptions(p *terminal.Printer, all []interruption) {
	rows := [][]string{{"stood still (UTC)", "workload", "zone", "cause", "for", "done again", "chip-hours", "incident"}}
	for _, b := range all {
		away, again := seconds(b.AwaySeconds), "-"
		if !b.Over {
			away += ", not over"
		}
		if b.AgainSeconds > 0 {
			again = seconds(b.AgainSeconds)
		}
		rows = append(rows, []string{date(b.At), b.Workload, b.Zone, terminal.CauseText(b.Cause), away, again, chipHours(b.ChipHours, 0), cmp.Or(b.Incident, "-")})
	}
	printTable(p, titleDearest, 0, 4, rows)
}
