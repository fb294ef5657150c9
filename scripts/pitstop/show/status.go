package show

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"pitstop.internal/shared/saving"

	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/scripts/pitstop/prices"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/jobterms"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/view"
)

// standing is the JSON of a workload in status --json.
type standing struct {
	view.Workload
	// Policy is the policy in effect, as far as the caller may read it.
	Policy effective `json:"policy"`
	// Job is how it stands in the terms of Google's training service.
	Job events.JobTerms `json:"job"`
	// Saving is how often it saves, if another time between two saves likely gains more than two points of goodput.
	Saving *saving.Habit `json:"saving,omitzero"`
	// Shown is what the API shows of the slices now, NotShown why it could not be read.
	Shown    []deployment.SliceShown `json:"shown,omitempty"`
	NotShown string                  `json:"not_shown,omitzero"`

	holds policy.Policy
}

// effective is a policy in effect. Unreadable says why the caller cannot read it.
type effective struct {
	cli.PolicyInEffect
	Unknown    bool   `json:"unknown,omitzero"`
	Unreadable string `json:"unreadable,omitzero"`
}

// WatchEvery is the pause between two looks of status --watch.
const WatchEvery = 10 * time.Second

func (d verbs) statusCommand() *cobra.Command {
	var where deployment.Place
	var asJSON, watch, needsMe bool
	var kept string
	c := &cobra.Command{
		Use:   "status [WORKLOAD...]",
		Short: "Print the state of every workload of a deployment",
		Long: "Print one line for every workload of a deployment, the worst first: how it stands and since when, whether it needs you, what\n" +
			"its incident has cost so far, and what Pitstop does next. Before that it says whether Pitstop sees: patrol's last tick, and the last\n" +
			"canary. --needs-me leaves out the workloads that need nobody.\n\n" +
			"Of the workloads that you name, print all: the slices as the API showed them last, the\n" +
			"policy with the limit of each switch, its training, its state in the terms of Google's training service (job), announced\n" +
			"maintenance, its pause, and its open incident with the deadline and the next step. status also says what Pitstop would do if the slice died now;\n" +
			"the functions decide with the same code.\n\n" +
			"For a workload that saves less often than hourly, status also reads its last incidents, and names the time between two saves\n" +
			"that loses least.\n\n" +
			"This reads the ledger in one listing, which needs roles/datastore.viewer. A policy file needs roles/storage.objectViewer. From\n" +
			"the Cloud TPU API status reads the last maintenance event of each slice, and whether autocheckpoint is on, which needs\n" +
			"roles/tpu.viewer.\n" +
			fmt.Sprintf("--watch looks again every %d s, until you interrupt it.", int(WatchEvery.Seconds())),
		RunE: func(c *cobra.Command, names []string) error {
			if err := cli.CheckWorkloads(names); err != nil {
				return err
			}
			l, err := d.Ledger(where)
			if err != nil {
				return err
			}
			if kept != "" {
				if len(names) > 0 || asJSON || watch || needsMe {
					return cli.Usage("--html keeps the whole fleet as it is now: leave out the names, --json, --watch and --needs-me")
				}
				return d.keepFleet(c.Context(), l, kept, c.OutOrStdout())
			}
			past := newHistorian(l)
			look := func(ctx context.Context, out io.Writer) error {
				if len(names) == 0 && !asJSON {
					return d.fleet(ctx, l, needsMe, out)
				}
				return d.status(ctx, l, past, names, asJSON, needsMe, out)
			}
			if watch {
				return d.watchStatus(c.Context(), look, asJSON, c.OutOrStdout())
			}
			return look(c.Context(), c.OutOrStdout())
		},
	}
	where.Flags(c)
	c.Flags().BoolVar(&asJSON, "json", false,
		"print one JSON object per workload: how it stands, its policy, the next decision, and what the API shows")
	c.Flags().BoolVar(&watch, "watch", false, "look again and again, until you interrupt it")
	c.Flags().StringVar(&kept, "html", "", "write the fleet as a page into this file, which fetches nothing")
	cli.NamesFile(c.Flags(), "html")
	c.Flags().BoolVar(&needsMe, "needs-me", false, "leave out the workloads that need nobody")
	return c
}

// watchStatus prints the state until the context ends. On a terminal each look takes the place of the last; elsewhere it follows.
func (d verbs) watchStatus(ctx context.Context, look func(context.Context, io.Writer) error, asJSON bool, out io.Writer) error {
	for {
		var page strings.Builder
		looking, end := google.NextQuestion(ctx)
		if err := end(look(looking, &page)); err != nil {
			if ctx.Err() != nil {
				err = nil // the caller interrupts
			}
			return err
		}
		p := terminal.NewPrinter(out, asJSON)
		switch at := d.Now().UTC().Format(time.RFC3339); {
		case p.Colour:
			if s, ok := out.(*terminal.Screen); ok {
				s.Clear()
			}
			_, _ = fmt.Fprint(out, at, "\n\n", page.String()) //nolint:errcheck // there is nobody else to tell
		case asJSON:
			_, _ = fmt.Fprint(out, page.String()) //nolint:errcheck // likewise
		default:
			_, _ = fmt.Fprint(out, at, "\n\n", page.String(), "\n") //nolint:errcheck // likewise
		}
		if d.Sleep(ctx, WatchEvery) != nil {
			return nil //nolint:nilerr // the caller interrupts
		}
	}
}

// fleet prints a line for every workload, the worst first, and what is left over.
func (d verbs) fleet(ctx context.Context, l *ledger.Ledger, needsMe bool, out io.Writer) error {
	p := terminal.NewPrinter(out, false)
	found, err := d.Workloads(ctx, l, nil)
	var unread ledger.UnreadableError
	if errors.As(err, &unread) { // which hides no other
		terminal.Print(out, p.Paint(terminal.Red, "NOT READ")+": "+cli.OneLine(unread))
		err = nil
	}
	if err != nil {
		return err
	}
	if err := d.head(ctx, l, found, p); err != nil {
		return err
	}
	if len(found) == 0 {
		terminal.Print(out, "Pitstop has seen no workload yet; patrol looks for TPUs every minute")
		return d.leftBehind(ctx, l, out)
	}
	sights, err := d.sights(ctx, l, found)
	if err != nil {
		return err
	}
	printSights(p, sights, d.Now())
	var rows []view.Row
	for _, w := range found {
		if r := w.Row(); !needsMe || r.Need != nil {
			rows = append(rows, r)
		}
	}
	if len(rows) == 0 {
		terminal.Print(out, "none of "+terminal.Count(len(found), "workload")+" needs you")
		return d.leftBehind(ctx, l, out)
	}
	slices.SortFunc(rows, view.Worse)
	terminal.Print(out, "")
	printFleet(p, rows, sights, d.Now())
	return d.leftBehind(ctx, l, out)
}

// head prints what holds for all workloads.
func (d verbs) head(ctx context.Context, l *ledger.Ledger, found []deployment.Workload, p *terminal.Printer) error {
	pause, err := l.Pause(ctx)
	if err != nil {
		return err
	}
	if pause.Holds(d.Now()) {
		terminal.Print(p.Out, p.Paint(terminal.Yellow, "everything is paused "+PausedText(pause)))
	}
	if _, known, err := d.Policies(ctx, l); err != nil || known || len(found) == 0 {
		return err
	}
	terminal.Print(p.Out, p.Paint(terminal.Yellow, "the ledger does not say yet what the deployment allows; the switches of the presets are shown"))
	return nil
}

// status prints all of these workloads.
func (d verbs) status(ctx context.Context, l *ledger.Ledger, past *historian, names []string, asJSON, needsMe bool, out io.Writer) error {
	found, err := d.Workloads(ctx, l, names)
	if err != nil {
		return err
	}
	policies, _, err := d.Policies(ctx, l)
	if err != nil {
		return err
	}
	p := terminal.NewPrinter(out, asJSON)
	if !asJSON {
		sights, err := d.sights(ctx, l, found)
		if err == nil {
			err = d.head(ctx, l, found, p)
		}
		if err != nil {
			return err
		}
		printSights(p, sights, d.Now())
	}
	shown, unread := d.shownNow(ctx, found)
	for _, w := range found {
		if needsMe && w.Need == nil {
			continue
		}
		st := d.stands(w.Document.Limited(policies.For(ctx, w.Label)), w)
		if st.Saving, err = past.wastes(ctx, w, st.holds.ChipHourPrice, d.Now()); err != nil {
			return err
		}
		st.Shown, st.NotShown = shown[w.ID], unread
		if asJSON {
			if err := terminal.PrintJSON(out, st); err != nil {
				return err
			}
			continue
		}
		terminal.Print(out, "")
		printStanding(p, st, d.Now())
	}
	if unread != "" && !asJSON {
		terminal.Print(out, "\n"+p.Paint(terminal.Yellow, "the last maintenance events and autocheckpoint are not shown: "+unread))
	}
	return nil
}

// shownNow are the slices as the API shows them now, and why it shows them not.
func (d verbs) shownNow(ctx context.Context, all []deployment.Workload) (shown map[string][]deployment.SliceShown, unread string) {
	looking, end := google.OptionalQuestion(ctx)
	shown, err := d.ListSlices(looking, all)
	if err = end(err); err != nil {
		unread = cli.OneLine(err)
	}
	return shown, unread
}

// leftBehind prints what patrol found left over. It is its owners', so nothing follows.
func (d verbs) leftBehind(ctx context.Context, l *ledger.Ledger, out io.Writer) error {
	all, err := l.Leftovers(ctx)
	if err != nil {
		return err
	}
	told := ""
	for _, o := range all {
		if o.Stays() {
			if told == "" {
				terminal.Print(out, "\nleft over, for its owners to delete:")
			}
			told = provider.Listed(o.Zone)
			line := "  " + o.Kind + " " + o.Name + " in " + o.Zone
			if o.Chips > 0 {
				line += ", " + events.Number(int64(o.Chips)) + " chips"
			}
			if idle := o.IdleChipHours(); idle > 0 {
				line += fmt.Sprintf(", at least %.1f chip-hours unused", idle)
			}
			terminal.Print(out, line+", for "+events.Span(o.Seen.Sub(o.Since))+" as of "+o.Seen.UTC().Format(time.RFC3339)+": "+o.Why)
		}
		if o.More > 0 && told == provider.Listed(o.Zone) {
			terminal.Print(out, "  and "+events.Number(int64(o.More))+" more in "+told)
		}
	}
	return nil
}

// stands is the state of a workload under its policy.
func (d verbs) stands(p policy.Policy, w deployment.Workload) standing {
	v := incident.View(p, w.Document, d.Now())
	st := standing{Workload: v, Job: jobterms.Now(v), holds: p, Policy: effective{cli.PolicyInEffectOf(p.Name, p), p.Unknown, p.Unreadable}}
	if p.Unreadable != "" {
		st.Policy.Switches = nil
	}
	return st
}

func printStanding(p *terminal.Printer, st standing, now time.Time) {
	w := st.Workload
	printPolicy(p, st)
	if w.Pause.Holds(now) {
		terminal.Print(p.Out, "  "+p.Paint(terminal.Yellow, "paused "+PausedText(w.Pause)))
	}
	for i := range w.Slices {
		printSlice(p, &w.Slices[i], maintainedText(st.Shown, w.Slices[i].Name, now), now)
	}
	if off := without(st.Shown); len(off) > 0 {
		terminal.Print(p.Out, "  advice    autocheckpoint is off for "+strings.Join(off, ", ")+": "+deployment.AutocheckpointCost+"; pitstop check "+w.Name+" says how to turn it on")
	}
	terminal.Print(p.Out, "  training  "+training(w, now))
	terminal.Print(p.Out, "  job       "+jobterms.Describe(st.Job))
	printAhead(p, st, now)
	printNeed(p, w.Need)
	if w.Incident != nil {
		printOpen(p, w, now)
		terminal.Print(p.Out, "  cost      "+prices.Cost{Cost: w.Incident.Cost}.String())
	}
}

// printPolicy prints the name of a workload, and its policy.
func printPolicy(p *terminal.Printer, st standing) {
	w := st.Workload
	head := "policy " + w.Label
	switch {
	case w.Label == "":
		head = "no label pitstop-policy: watched"
	case st.Policy.Unknown:
		head += ", " + p.Paint(terminal.Red, "which is no policy: watched")
	}
	terminal.Print(p.Out, p.Paint(terminal.Bold, w.ID)+"  "+head)
	switch {
	case st.Policy.Unreadable != "":
		terminal.Print(p.Out, "  policy    "+p.Paint(terminal.Yellow, "you cannot read it: "+st.Policy.Unreadable))
	case w.Label != "" && !st.Policy.Unknown:
		terminal.Print(p.Out, "  policy    "+cli.LimitsText(st.holds.Switches, st.holds.Limits))
	}
}

// printAhead prints what can be done better, what is announced, and what would follow from a loss.
func printAhead(p *terminal.Printer, st standing, now time.Time) {
	w := st.Workload
	if s := st.Saving; s != nil {
		do, because := s.Advice()
		line := "  saves     " + p.Paint(terminal.Yellow, s.State()+"; "+do)
		if because != "" {
			line += " (" + because + ")"
		}
		terminal.Print(p.Out, line)
	}
	for i := range w.Slices {
		if n := w.Announced(w.Slices[i].Name); n != nil {
			terminal.Print(p.Out, "  notice    "+w.Slices[i].Name+": "+announced(*n, now))
		}
	}
	if s := w.Spending; s != nil && s.RunsLow() {
		terminal.Print(p.Out, "  budget    "+p.Paint(terminal.Yellow, s.String()))
	}
	for _, left := range w.Left {
		terminal.Print(p.Out, "  zone      "+left.String())
	}
	if st.IfLost != nil {
		terminal.Print(p.Out, "  if "+st.IfLost.Slice+" died now: "+st.IfLost.Plan.String())
	}
}

// printOpen prints the open incident: for what it waits, its calls, and what follows at its deadline.
func printOpen(p *terminal.Printer, w view.Workload, now time.Time) {
	in := w.Incident
	line := fmt.Sprintf("%s: %s, %s for %s", in.ID, terminal.CauseText(in.Cause), in.Phase, events.Span(now.Sub(in.Since)))
	if !in.Deadline.IsZero() {
		line += ", until " + in.Deadline.UTC().Format(time.RFC3339)
	}
	terminal.Print(p.Out, "  incident  "+p.Paint(terminal.Yellow, line))
	if text := w.Row().Next; text != "" {
		terminal.Print(p.Out, "            now: "+text)
	}
	if w.Wait.Held != "" {
		terminal.Print(p.Out, "            held: "+terminal.WithCode(w.Wait.Held, string(w.Wait.HeldCode)))
	}
	if w.Wait.Text != "" {
		terminal.Print(p.Out, "            no capacity: "+w.Wait.Text)
	}
	for _, r := range w.Requests {
		terminal.Print(p.Out, "            "+RequestText(r, now))
	}
	if w.AtDeadline != nil {
		terminal.Print(p.Out, "            at its deadline: "+w.AtDeadline.String())
	}
}

// printNeed prints what a person has to do, with which command, and what happens without that.
func printNeed(p *terminal.Printer, n *view.Need) {
	if n == nil {
		return
	}
	line := "  you       " + p.Paint(terminal.Yellow, n.Text)
	if n.Command != "" {
		line += "; " + n.Command
	}
	if n.Otherwise != "" {
		line += " (else " + n.Otherwise + ")"
	}
	terminal.Print(p.Out, line)
}

func printSlice(p *terminal.Printer, s *view.Slice, maintained string, now time.Time) {
	parts := []string{s.Name, s.Zone, s.Accelerator}
	if s.Ordered != "" {
		parts = append(parts, "in place of "+s.Ordered)
	}
	switch {
	case s.OrderedCapacity != "":
		parts = append(parts, s.Capacity.Words()+" in place of "+s.OrderedCapacity.Words())
	case s.Capacity == events.Spot:
		parts = append(parts, "spot")
	}
	state := cmp.Or(s.State, string(s.Condition))
	if s.Condition != evidence.Ready {
		state = p.Paint(terminal.Red, state)
	}
	line := strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ") + "  " + state
	if waits := waitsSince(*s); waits != "" {
		line += ", " + waits + ", for " + events.Span(max(0, now.Sub(s.WaitingSince)))
	} else if !s.Since.IsZero() {
		line += " for " + events.Span(now.Sub(s.Since))
	}
	if s.Incarnation.Known() {
		line += ", life " + s.Incarnation.String()
		if !s.Incarnation.Created.IsZero() {
			line += " since " + s.Incarnation.Created.UTC().Format(time.RFC3339)
		}
		if s.Condition == evidence.Ready && !s.Admitted && !s.Legacy { // a legacy node has no lease
			line += ", training is not admitted yet"
		}
	}
	if maintained != "" {
		line += ", " + maintained
	}
	if s.Released {
		line += ", left to its owner"
	} else if s.Why != "" {
		line += "; " + s.Why
	}
	if s.Claims != "" {
		line += ", " + p.Paint(terminal.Yellow, "but its label "+events.LabelWorkload+" names "+s.Claims+", which it does not belong to")
	}
	terminal.Print(p.Out, "  slice     "+line)
}

// waitsSince says since when a slice waits for its machines or for its deletion, by the provider's own objects; empty where it does not.
func waitsSince(s view.Slice) string {
	if s.WaitingSince.IsZero() {
		return ""
	}
	return "waiting since " + s.WaitingSince.UTC().Format(time.RFC3339)
}

// training is the state of the training.
func training(w view.Workload, now time.Time) string {
	t := w.Training
	var parts []string
	switch {
	case t.Seen.IsZero():
		parts = append(parts, "no word from a crew yet")
	case t.HasGivenUp():
		parts = append(parts, fmt.Sprintf("the crew gave up after attempt %d", t.GaveUp))
	case t.InTouch(now):
		parts = append(parts, "crew in touch")
	default:
		parts = append(parts, "crew silent for "+events.Span(now.Sub(t.Spoke)))
	}
	if t.Attempt > 0 && !t.HasGivenUp() {
		parts = append(parts, fmt.Sprintf("attempt %d", t.Attempt))
	}
	switch {
	case t.Finished:
		parts = append(parts, "finished at step "+events.Number(t.Step))
	case t.Claimed:
		parts = append(parts, "a log line says that it is finished; the crew's verdict is not read yet")
	case !t.StepAt.IsZero():
		parts = append(parts, "step "+events.Number(t.Step)+" "+events.Span(now.Sub(t.StepAt))+" ago")
		if !t.HangsAt.IsZero() {
			parts = append(parts, "no new step for long: taken for a hang at "+t.HangsAt.UTC().Format("15:04")+" unless one comes")
		}
	case !t.Seen.IsZero():
		parts = append(parts, "no step yet")
	}
	switch {
	case w.Directory == "":
		parts = append(parts, "no checkpoint directory")
	case t.Checkpoint > t.Verified:
		line := "checkpoint " + events.Number(t.Checkpoint) + " reported by the crew " + events.Span(now.Sub(t.CheckpointAt)) + " ago, not verified"
		if !t.VerifiedAt.IsZero() {
			line += "; " + events.Number(t.Verified) + " is verified"
		}
		parts = append(parts, line)
	case !t.VerifiedAt.IsZero():
		parts = append(parts, "checkpoint "+events.Number(t.Verified)+" verified, "+events.Span(now.Sub(t.VerifiedAt))+" old")
	default:
		parts = append(parts, "no checkpoint yet")
	}
	return strings.Join(parts, ", ")
}

func announced(n view.Notice, now time.Time) string {
	line := "maintenance " + strings.ToLower(string(n.Status))
	if n.End {
		line = "planned end at " + n.WindowStart.UTC().Format(time.RFC3339)
	} else if !n.WindowStart.IsZero() {
		line += ", window from " + n.WindowStart.UTC().Format(time.RFC3339)
	}
	if n.Declined {
		line += ", cancelled: no save is requested before it"
	}
	if n.Deaf != "" {
		line += ", a request to save may not arrive: " + n.Deaf
	}
	if n.Due.After(now) {
		line += ", the save is requested in " + events.Span(n.Due.Sub(now))
	}
	return line
}

// RequestText is the state of a request.
func RequestText(r view.Request, now time.Time) string {
	line := strings.TrimSpace(string(r.Action)+" "+r.Slice) + ": "
	switch r.Stage {
	case view.StageRefused:
		return line + "tried again in " + events.Span(max(0, r.Retry.Sub(now))) + ", last result: " + terminal.WithCode(r.Failure, string(r.Code))
	case view.StageAccepted, view.StageDone:
		return line + "accepted " + events.Span(now.Sub(r.At)) + " ago"
	case view.StageBegun:
		return line + "begun " + events.Span(now.Sub(r.At)) + " ago"
	case view.StageWanted:
	}
	return line + "requested " + events.Span(now.Sub(r.At)) + " ago"
}

// PausedText says who paused, until when and why.
func PausedText(p *evidence.Pause) string {
	line := "by " + p.By
	if !p.Until.IsZero() {
		line += " until " + p.Until.UTC().Format(time.RFC3339)
	}
	if p.Why != "" {
		line += ": " + p.Why
	}
	return line
}
