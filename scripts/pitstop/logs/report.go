package logs

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

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

// reportTeller tells what happened to TPUs, with every loss or only the worst.
type reportTeller struct{ every bool }

func (t *reportTeller) tell(_ context.Context, p *terminal.Printer, a account) error {
	if p.AsJSON {
		return terminal.PrintJSON(p.Out, a)
	}
	s, late := a.Total, a.Leaks.Late
	for _, line := range []struct {
		tells bool
		text  string
	}{
		{s.Losses == 0, "no TPU was lost"},
		{s.Losses > 0, terminal.Numbered(s.Losses, "loss", "losses") + ": " + outcomes(s)},
		{s.Back > 0, "gap until back: half within " + took(s.GapP50) + ", 95 % within " + took(s.GapP95) + ", the longest " + took(s.GapMost)},
		{s.ChipHours+s.ChipHoursAtLeast > 0, "chip-hours lost: " + chipHours(s.ChipHours, s.ChipHoursAtLeast)},
		{s.NotBackChipHours >= 1, "not counted: " + number(int(s.NotBackChipHours)) + " chip-hours of TPUs that were not back when the record ended"},
		{s.Losses > 0, number(s.Announced) + " of " + terminal.Numbered(s.Losses, "loss", "losses") + " announced, " + number(s.InTime) + " in time (" + took(a.LeadNeeded) + " before or earlier)"},
		{a.Notices.Announced > 0, terminal.Numbered(a.Notices.Announced, "notice") + " of maintenance: " + number(a.Notices.Began) + " began, " + number(a.Notices.Withdrawn) + " withdrawn before"},
		{a.Released > 0, terminal.Numbered(a.Released, "deletion") + " by an owner of a running TPU: no loss"},
		{a.RunTimeLimits > 0, terminal.Numbered(a.RunTimeLimits, "TPU") + " stopped by an instance schedule: no loss"},
		{a.TrainingExits > 0, "training ended by itself " + terminal.Numbered(a.TrainingExits, "time") + ", as the crew reports: no loss of a TPU"},
		{late > 0, terminal.Numbered(late, "queued resource") + " deleted more than an hour after the TPU was gone: held quota for " + seconds(a.Leaks.LateHours*3600) + " in all"},
	} {
		if line.tells {
			terminal.Print(p.Out, line.text)
		}
	}
	terminal.Print(p.Out, "")
	t.printListed(p, a.Losses)
	printTable(p, "by cause, zone and generation", mostRows, 4, append([]string{"cause", "zone", "generation"}, sumNames...), a.Groups, func(g goodput.Group) []string {
		return append([]string{words(g.Cause), g.Zone, cmp.Or(g.Generation, "unknown")}, sumCells(g.Sum)...)
	})
	printTable(p, "who brought them back", mostRows, 2, append([]string{"brought back by"}, sumNames...), a.Recreated, func(w goodput.Recreated) []string {
		return append([]string{agentText(w.Agent)}, sumCells(w.Sum)...)
	})
	title := terminal.Numbered(len(a.Leaks.Left), "queued resource") + " left over when the record ends"
	printTable(p, title, mostRows, 2, []string{"queued resource", "zone", "TPU gone since", "holds quota for", "chips"}, a.Leaks.Left, func(q goodput.Leak) []string {
		return []string{q.QueuedResource, q.Zone, date(q.Since), seconds(q.Held * 3600), figure(0, float64(q.Chips))}
	})
	printUnsure(p, a.Unsure)
	return nil
}

var outcomeTexts = map[goodput.Outcome]string{
	goodput.Back: "back", goodput.BackUnseen: "back at an unknown time", goodput.GivenUp: "given up", goodput.NotBack: "not back", goodput.NotTold: "of unknown end",
}

// outcomes say how many losses ended how.
func outcomes(s goodput.Sum) string {
	var parts []string
	for _, o := range []struct {
		n  int
		as goodput.Outcome
	}{{s.Back, goodput.Back}, {s.BackUnseen, goodput.BackUnseen}, {s.GivenUp, goodput.GivenUp}, {s.NotBack, goodput.NotBack}, {s.NotTold, goodput.NotTold}} {
		if o.n > 0 {
			parts = append(parts, number(o.n)+" "+outcomeTexts[o.as])
		}
	}
	return strings.Join(parts, ", ")
}

// chipHours are those of known size, and at least those of unknown size.
func chipHours(known, atLeast float64) string {
	if atLeast > 0 {
		return ">= " + figure(1, known+atLeast)
	}
	return figure(1, known)
}

// printListed lists losses one by one: all of them where they are few, else those with the longest gaps.
func (t *reportTeller) printListed(p *terminal.Printer, all []goodput.Loss) {
	list, title := slices.Clone(all), "losses"
	slices.SortStableFunc(list, func(a, b goodput.Loss) int { return a.At.Compare(b.At) })
	if len(list) > mostRows && !t.every {
		title = "the longest gaps (--losses lists all " + number(len(list)) + ")"
		slices.SortStableFunc(list, func(a, b goodput.Loss) int { return cmp.Compare(b.Gap, a.Gap) })
		list = list[:mostRows/2]
	}
	names := []string{"lost (UTC)", "TPU", "type", "zone", "cause", "end", "chip-hours", "announced"}
	printTable(p, title, 0, 5, names, list, func(l goodput.Loss) []string {
		announced := cmp.Or(only(l.Announced, terminal.SecondsText(l.Lead)+" before"), "-")
		return []string{date(l.At), l.Slice, cmp.Or(l.Accelerator, "unknown"), l.Zone, words(l.Cause), endText(l), chipHours(l.ChipHours, l.ChipHoursAtLeast), announced}
	})
}

// endText says what became of a loss.
func endText(l goodput.Loss) string {
	s := outcomeTexts[l.Outcome]
	if l.Outcome == goodput.Back || l.Outcome == goodput.GivenUp {
		s += " after " + took(l.Gap)
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
		for _, class := range slices.Sorted(maps.Keys(l.FailedBy)) {
			why = append(why, number(l.FailedBy[class])+" "+words(class))
		}
		s += ", " + terminal.Numbered(l.FailedCreates, "creation") + " refused (" + strings.Join(why, ", ") + ")"
	}
	return s
}

// agentText names who brought something back.
func agentText(a goodput.Agent) string {
	who := map[goodput.By]string{
		goodput.ByGoogle: "Google itself", goodput.ByPitstop: "Pitstop", goodput.ByBabysitter: "the script", goodput.ByOwner: "the owner", goodput.ByCluster: "the cluster itself, by",
	}
	return strings.TrimSpace(cmp.Or(who[a.By], "an unknown caller") + " " + a.Principal)
}

// sumNames name the columns of a sum of losses, and sumCells are what stands there.
var sumNames = []string{"losses", "back", "half within", "95 % within", "longest", "chip-hours", "announced", "in time"}

func sumCells(s goodput.Sum) []string {
	back := float64(s.Back)
	return []string{
		number(s.Losses), number(s.Back), orDash(back, took(s.GapP50)), orDash(back, took(s.GapP95)), orDash(back, took(s.GapMost)), chipHours(s.ChipHours, s.ChipHoursAtLeast),
		figure(0, float64(s.Announced)), figure(0, float64(s.InTime)),
	}
}
