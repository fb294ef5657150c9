package logs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
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

// doubt is by how many points the share may be off.
func (x sum) doubt() float64 { return x.SharePercent * x.DoubtSeconds / x.Seconds }

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
	// Examples are those of the steps that stayed; 0 is not known.
	Examples float64 `json:"examples,omitzero"`
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

// useTexts are the uses of time for people. Tables have them in the order of their time.
var useTexts = map[goodput.Use]string{
	goodput.Capacity: "waiting for capacity", goodput.Maintenance: "maintenance or repair by Google", goodput.Provisioning: "provisioning",
	goodput.Boarding: "machine to crew", goodput.Admission: "waiting for admission or a restart", goodput.Starting: "start to first step",
	goodput.Restoring: "restoring a checkpoint", goodput.Productive: "productive", goodput.Saving: "saving (blocked)", goodput.Again: "done again",
	goodput.Hang: "hang", goodput.Stopped: "stopped by its owner, or finished", goodput.Unknown: "unknown",
}

// isLost reports whether time of a use was lost to something that has a cause.
func isLost(u goodput.Use) bool {
	return u != goodput.Productive && u != goodput.Saving && u != goodput.Stopped && u != goodput.Unknown
}

// uncaused is what lost time of a use that no interruption caused.
func uncaused(u goodput.Use) string {
	switch u {
	case goodput.Again:
		return "stop by its owner"
	case goodput.Hang:
		return "hang"
	default:
		return "start by its owner"
	}
}

// The titles of the tables that a page has a picture of.
const (
	titleUses    = "where the time went"
	titleDearest = "the dearest interruptions"
	titleChanges = "what you may change, and what it would have gained"
)

func (t *goodputTeller) tell(ctx context.Context, p *terminal.Printer, a account) error {
	s := t.sheetOf(a)
	if a.project != "" && len(s.Interruptions) > 0 {
		if err := t.nameIncidents(ctx, a.project, s.Interruptions); err != nil {
			s.Unsure = append(s.Unsure, "the IDs of incidents: "+cli.OneLine(err))
		}
	}
	if p.AsJSON {
		return terminal.PrintJSON(p.Out, s)
	}
	line := "goodput unknown: no crew has told a step"
	if slices.ContainsFunc(s.Workloads, func(w workloadSum) bool { return w.Step > 0 }) {
		line = "goodput " + points(s.GoodputPercent, s.DoubtPoints) + " %"
	}
	terminal.Print(p.Out, p.Paint(terminal.Bold, line)+" · "+terminal.Numbered(len(s.Workloads), "workload")+", "+terminal.SecondsText(s.Seconds)+" in all\n")
	printSums(p, titleUses, "use", s.Uses)
	printSums(p, "lost time by cause", "cause", s.ByCause)
	printSums(p, "lost time by zone", "zone", s.ByZone)
	printSums(p, "lost time by generation", "generation", s.ByGeneration)
	printTable(p, "workloads", mostRows, 2, []string{"workload", "goodput", "lost most to", "time", "step", "examples"}, s.Workloads, workloadRow)
	names := []string{"stood still (UTC)", "workload", "zone", "cause", "for", "done again", "chip-hours", "incident"}
	printTable(p, titleDearest, 0, 4, names, s.Interruptions, func(b interruption) []string {
		away := seconds(b.AwaySeconds) + only(!b.Over, ", not over")
		return []string{date(b.At), b.Workload, b.Zone, words(b.Cause), away, seconds(b.AgainSeconds), figure(1, b.ChipHours), cmp.Or(b.Incident, "-")}
	})
	printTable(p, titleChanges, mostRows, 2, []string{"change", "points of goodput", "workload", "dollars more"}, s.Changes, func(c change) []string {
		gain := fmt.Sprintf("at most %.1f", c.PointsAtMost)
		if c.PointsAtLeast > 0 {
			gain = fmt.Sprintf("%.1f to %.1f", c.PointsAtLeast, c.PointsAtMost)
		}
		return []string{c.Change, gain, cmp.Or(c.Workload, "-"), figure(2, c.DollarsMore)}
	})
	printUnsure(p, s.Unsure)
	return nil
}

// sheetOf adds an account up.
func (t *goodputTeller) sheetOf(a account) sheet {
	s := sheet{
		From: a.From, To: a.To, Entries: a.Entries, Faults: a.Faults, spent: t.spentBy(a.Workloads...), Changes: t.changesOf(a),
		ByCause: t.sums(a.Workloads, func(k goodput.Kind) string { return only(isLost(k.Use), cmp.Or(string(k.Cause), uncaused(k.Use))) }),
		ByZone:  t.sums(a.Workloads, func(k goodput.Kind) string { return only(isLost(k.Use), k.Zone) }),
		ByGeneration: t.sums(a.Workloads, func(k goodput.Kind) string {
			shape, _ := topology.Parse(k.Accelerator) //nolint:errcheck // no entry may have named it
			return only(isLost(k.Use), cmp.Or(shape.Generation, "unknown"))
		}),
	}
	silent, unsplit := 0, 0
	for _, w := range a.Workloads {
		s.Seconds += w.Time().Seconds()
		s.Workloads = append(s.Workloads, workloadSum{w.Project, w.Name, w.First, w.Steps, w.Pace.Seconds(), math.Round(w.Examples()), t.spentBy(w)})
		if w.Steps == 0 {
			silent++
		} else if w.Unsplit {
			unsplit++
		}
	}
	for _, b := range a.dearest() {
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
	for _, x := range t.sums(a.Workloads, func(k goodput.Kind) string {
		_, known := t.prices.Of(k.Accelerator, k.Spot)
		price := "price besides Spot of "
		if k.Spot {
			price = "Spot price of "
		}
		return only(t.prices != nil && !known, price+cmp.Or(k.Accelerator, "an unknown type"))
	}) {
		s.Unsure = append(s.Unsure, "no "+x.Of+" is in the prices: dollars are without it")
	}
	return s
}

// sums adds up the time of workloads by what of says, the most first. Time of which it says nothing does not count.
func (t *goodputTeller) sums(all []goodput.Workload, of func(goodput.Kind) string) []sum {
	by, whole := map[string]sum{}, 0.0
	for _, w := range all {
		for k, n := range w.Spent {
			name := of(k)
			if name == "" || n.Time == 0 {
				continue
			}
			x := by[name]
			dollars, _ := t.prices.Of(k.Accelerator, k.Spot)
			x.Of, x.Seconds, x.DoubtSeconds = name, x.Seconds+n.Time.Seconds(), x.DoubtSeconds+n.Doubt.Seconds()
			x.ChipHours, x.Dollars = x.ChipHours+n.Chips.Hours(), x.Dollars+dollars*n.Chips.Hours()
			by[name], whole = x, whole+n.Time.Seconds()
		}
	}
	out := slices.SortedFunc(maps.Values(by), func(x, y sum) int { return cmp.Or(cmp.Compare(y.Seconds, x.Seconds), cmp.Compare(x.Of, y.Of)) })
	for i := range out {
		x := &out[i]
		x.SharePercent, x.ChipHours, x.Dollars = hundredths(100*x.Seconds/whole), hundredths(x.ChipHours), hundredths(x.Dollars)
	}
	return out
}

// spentBy is what workloads spent their time on. Goodput is the productive share of that in which training was to run.
func (t *goodputTeller) spentBy(all ...goodput.Workload) (s spent) {
	s.Uses = t.sums(all, func(k goodput.Kind) string { return string(k.Use) })
	for _, u := range t.sums(all, func(k goodput.Kind) string { return only(k.Use != goodput.Stopped, string(k.Use)) }) {
		if u.Of == string(goodput.Productive) {
			s.GoodputPercent, s.DoubtPoints = u.SharePercent, hundredths(u.doubt())
		}
	}
	return s
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

// printSums prints a table of sums.
func printSums(p *terminal.Printer, title, of string, all []sum) {
	printTable(p, title, mostRows, 3, []string{of, "time", "%", "chip-hours", "dollars"}, all, func(x sum) []string {
		doubt := x.doubt()
		if title != titleUses {
			doubt *= 1 - x.SharePercent/100 // what is lost in all is as much in doubt
		}
		return []string{cmp.Or(useTexts[goodput.Use(x.Of)], words(x.Of)), seconds(x.Seconds), points(x.SharePercent, doubt), figure(1, x.ChipHours), figure(2, x.Dollars)}
	})
}

// workloadRow tells the goodput of a workload, and what took most of its time.
func workloadRow(w workloadSum) []string {
	row := []string{w.Workload, "unknown", "-", "-", events.Number(w.Step), orDash(w.Examples, number(int(w.Examples)))}
	if w.Step > 0 {
		row[1] = points(w.GoodputPercent, w.DoubtPoints) + " %"
	}
	if i := slices.IndexFunc(w.Uses, func(u sum) bool { return isLost(goodput.Use(u.Of)) }); i >= 0 {
		row[2], row[3] = useTexts[goodput.Use(w.Uses[i].Of)], seconds(w.Uses[i].Seconds)
	}
	return row
}

// nameIncidents finds the incidents of interruptions in the ledger of a project: of each workload the one that opened nearest to its stop.
func (t *goodputTeller) nameIncidents(ctx context.Context, project string, all []interruption) error {
	asking, end := google.OptionalQuestion(ctx)
	return end(func() error {
		l, err := t.Ledger(deployment.Place{Project: project})
		if err != nil {
			return err
		}
		for i := range all {
			b := &all[i]
			past, err := l.PastOf(asking, b.Project+"/"+b.Workload)
			if err != nil {
				return err
			}
			w, _, err := l.Workload(asking, b.Project+"/"+b.Workload)
			if err != nil && !errors.Is(err, ledger.ErrNotFound) {
				return err
			}
			least := 30 * time.Minute // an incident may open at an announcement, or once somebody tells of the loss
			for _, in := range w.Shown(t.Now()).Pasts(past) {
				if off := in.Opened.Sub(b.At).Abs(); off <= least {
					b.Incident, least = in.ID, off
				}
			}
		}
		return nil
	}())
}
