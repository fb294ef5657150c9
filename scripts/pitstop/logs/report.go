package logs

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pitstop.internal/scripts/pitstop/goodput"
	"pitstop.internal/scripts/pitstop/terminal"
)

func (d verbs) reportCommand() *cobra.Command {
	var t reportTeller
	c := &cobra.Command{
		Use:   "report [FILE...]",
		Short: "Say what really happened to TPUs, from the logs alone",
		Long: "Say what happened: every loss by cause, zone and generation, how long until the slice was back, and who brought it back.\n" +
			"The report adds up the chip-hours lost, lists the queued resources left over, and counts the losses that a notice announced\n" +
			"in time. It simulates nothing, and it says which facts the logs do not hold. goodput has the rest of the same account.\n\n",
	}
	c.Flags().BoolVar(&t.every, "losses", false, "list every loss, however many there are")
	return d.recordCommand(c, &t)
}

// reportTeller tells what happened to TPUs.
type reportTeller struct {
	// every says that each loss is listed.
	every bool
}

const (
	// fewLosses is how many losses are all listed. Of more, those with the longest gaps are.
	fewLosses   = 40
	worstLosses = 10
	// mostGroups bounds the rows of the other tables.
	mostGroups = 60
)

func (t *reportTeller) tell(_ context.Context, p *terminal.Printer, a account) error {
	switch {
	case p.AsJSON:
		return terminal.PrintJSON(p.Out, a)
	case a.Entries == 0:
		return nil
	}
	printRecord(p, a)
	printTotal(p, a)
	for _, of := range []struct {
		n          int
		what, text string
	}{
		{a.Released, "deletion", "by an owner of a running TPU: no loss"},
		{a.RunTimeLimits, "TPU", "stopped by an instance schedule: no loss"},
		{a.TrainingExits, "time", "training ended by itself, as the crew reports: no loss of a TPU"},
		{a.Notices.Announced, "notice", "of maintenance: " + number(a.Notices.Began) + " began, " + number(a.Notices.Withdrawn) + " withdrawn before"},
		{a.Leaks.Late, "queued resource", "deleted more than an hour after the TPU was gone: held quota for " + terminal.SecondsText(a.Leaks.LateHours*3600) + " in all"},
	} {
		if of.n > 0 {
			terminal.Print(p.Out, terminal.Numbered(of.n, of.what)+" "+of.text)
		}
	}
	terminal.Print(p.Out, "")
	t.printListed(p, a.Losses)
	printGroups(p, a)
	printLeft(p, a.Leaks.Left)
	printUnsure(p, a.Unsure)
	return nil
}

// ends are how a loss may end, for people.
var ends = []struct {
	outcome goodput.Outcome
	text    string
}{
	{goodput.Back, "back"},
	{goodput.BackUnseen, "back at an unknown time"},
	{goodput.GivenUp, "given up"},
	{goodput.NotBack, "not back"},
	{goodput.NotTold, "of unknown end"},
}

// printTotal tells the sums of all losses.
func printTotal(p *terminal.Printer, a account) {
	s := a.Total
	if s.Losses == 0 {
		terminal.Print(p.Out, "no TPU was lost")
		return
	}
	counts := map[goodput.Outcome]int{}
	for _, l := range a.Losses {
		counts[l.Outcome]++
	}
	var parts []string
	for _, e := range ends {
		if n := counts[e.outcome]; n > 0 {
			parts = append(parts, number(n)+" "+e.text)
		}
	}
	terminal.Print(p.Out, terminal.Numbered(s.Losses, "loss", "losses")+": "+strings.Join(parts, ", "))
	if s.Back > 0 {
		terminal.Print(p.Out, fmt.Sprintf("gap until back: half within %s, 95 %% within %s, the longest %s", terminal.SecondsText(s.GapP50), terminal.SecondsText(s.GapP95), terminal.SecondsText(s.GapMost)))
	}
	terminal.Print(p.Out, "chip-hours lost: "+chipHours(s.ChipHours, s.ChipHoursAtLeast))
	if n := int(s.NotBackChipHours); n > 0 { // less than one would be told as 0
		terminal.Print(p.Out, "not counted: "+number(n)+" chip-hours of TPUs that were not back when the record ended")
	}
	terminal.Print(p.Out, fmt.Sprintf("%s of %s announced, %s in time (%s before or earlier)",
		number(s.Announced), terminal.Numbered(s.Losses, "loss", "losses"), number(s.InTime), terminal.SecondsText(a.LeadNeeded)))
}

// chipHours are those of known size, and at least those of unknown size.
func chipHours(known, atLeast float64) string {
	switch text := fmt.Sprintf("%.1f", known+atLeast); {
	case text == "0.0":
		return "-"
	case atLeast > 0:
		return ">= " + text
	default:
		return text
	}
}

// printListed lists losses one by one: all of them where they are few, else those with the longest gaps.
func (t *reportTeller) printListed(p *terminal.Printer, all []goodput.Loss) {
	list, title := slices.Clone(all), "losses"
	slices.SortStableFunc(list, func(a, b goodput.Loss) int { return a.At.Compare(b.At) })
	if len(list) > fewLosses && !t.every {
		title = "the longest gaps (--losses lists all " + number(len(list)) + ")"
		slices.SortStableFunc(list, func(a, b goodput.Loss) int { return cmp.Compare(b.Gap, a.Gap) })
		list = list[:worstLosses]
	}
	rows := [][]string{{"lost (UTC)", "TPU", "type", "zone", "cause", "end", "chip-hours", "announced"}}
	for _, l := range list {
		announced := "-"
		if l.Announced {
			announced = terminal.SecondsText(l.Lead) + " before"
			if !l.InTime {
				announced += ", too late"
			}
		}
		rows = append(rows, []string{
			date(l.At), l.Slice, cmp.Or(l.Accelerator, "unknown"), l.Zone, terminal.CauseText(l.Cause), endText(l), chipHours(l.ChipHours, l.ChipHoursAtLeast), announced,
		})
	}
	printTable(p, title, 0, 5, rows)
}

// printTable prints a table, unless it has no row under its head.
func printTable(p *terminal.Printer, title string, most, head int, rows [][]string) {
	if len(rows) > 1 {
		p.Table(title, most, head, rows)
	}
}

func date(t time.Time) string { return t.UTC().Format("Jan 2 2006 15:04:05") }

// endText says what became of a loss.
func endText(l goodput.Loss) string {
	var s string
	for _, e := range ends {
		if e.outcome == l.Outcome {
			s = e.text
		}
	}
	if l.Outcome == goodput.Back || l.Outcome == goodput.GivenUp {
		s += " after " + terminal.SecondsText(l.Gap)
	}
	switch {
	case l.Outcome == goodput.Back || l.Outcome == goodput.BackUnseen:
		s += " by " + agentText(goodput.Agent{By: l.RecreatedBy, Principal: l.Principal})
	case l.DeletedBy != "":
		s += ", deleted by " + l.DeletedBy
	}
	if l.BackZone != "" {
		s += " in " + l.BackZone
	}
	if l.FailedCreates > 0 {
		var why []string
		for class, n := range l.FailedBy {
			why = append(why, number(n)+" "+strings.ReplaceAll(string(class), "_", " "))
		}
		slices.Sort(why)
		s += fmt.Sprintf(", %s refused (%s)", terminal.Numbered(l.FailedCreates, "creation"), strings.Join(why, ", "))
	}
	return s
}

// agentText names who brought something back.
func agentText(a goodput.Agent) string {
	who := map[goodput.By]string{
		goodput.ByGoogle: "Google itself", goodput.ByPitstop: "Pitstop", goodput.ByBabysitter: "the script", goodput.ByOwner: "the owner",
		goodput.ByCluster: "the cluster itself, by", goodput.ByNobody: "an unknown caller",
	}
	return strings.TrimSpace(who[a.By] + " " + a.Principal)
}

// printGroups tells the sums of losses by what they have in common.
func printGroups(p *terminal.Printer, a account) {
	gaps := []string{"half within", "95 % within", "longest", "chip-hours"}
	of := func(s goodput.Sum) []string {
		cells := []string{"-", "-", "-", chipHours(s.ChipHours, s.ChipHoursAtLeast)}
		if s.Back > 0 {
			cells[0], cells[1], cells[2] = terminal.SecondsText(s.GapP50), terminal.SecondsText(s.GapP95), terminal.SecondsText(s.GapMost)
		}
		return cells
	}
	rows := [][]string{slices.Concat([]string{"losses", "cause", "zone", "generation", "back"}, gaps, []string{"announced", "in time"})}
	for _, g := range a.Groups {
		rows = append(rows, slices.Concat(
			[]string{number(g.Losses), terminal.CauseText(g.Cause), g.Zone, cmp.Or(g.Generation, "unknown"), number(g.Back)}, of(g.Sum),
			[]string{number(g.Announced), number(g.InTime)},
		))
	}
	printTable(p, "by cause, zone and generation", mostGroups, 4, rows)
	rows = [][]string{slices.Concat([]string{"losses", "brought back by"}, gaps)}
	for _, w := range a.Recreated {
		rows = append(rows, append([]string{number(w.Losses), agentText(w.Agent)}, of(w.Sum)...))
	}
	printTable(p, "who brought them back", mostGroups, 2, rows)
}

// printLeft lists the queued resources that are left over.
func printLeft(p *terminal.Printer, left []goodput.Leak) {
	rows := [][]string{{"queued resource", "zone", "TPU gone since", "holds quota for", "chips"}}
	for _, q := range left {
		chips := "unknown"
		if q.Chips > 0 {
			chips = number(q.Chips)
		}
		rows = append(rows, []string{q.QueuedResource, q.Zone, date(q.Since), terminal.SecondsText(q.Held * 3600), chips})
	}
	printTable(p, terminal.Numbered(len(left), "queued resource")+" left over when the record ends", mostGroups, 2, rows)
}
