package show

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/google"
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
	// Saving is how often it saves, if that is less often than about hourly.
	Saving *saving `json:"saving,omitzero"`
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
	var asJSON, watch bool
	c := &cobra.Command{
		Use:   "status [WORKLOAD...]",
		Short: "Print the state of every workload of a deployment",
		Long: "Print the state of every workload of a deployment, or of these workloads: its slices as the API showed them last, its\n" +
			"policy with the limit of each switch, its training, its state in the terms of Google's training service (job), announced\n" +
			"maintenance, its pause, and its open incident with the deadline and the next step. status also says what Pitstop would do if the slice died now; the functions decide with the\n" +
			"same code.\n\n" +
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
			if watch {
				return d.watchStatus(c.Context(), l, names, asJSON, c.OutOrStdout())
			}
			return d.status(c.Context(), l, newHistorian(l), names, asJSON, c.OutOrStdout())
		},
	}
	where.Flags(c)
	c.Flags().BoolVar(&asJSON, "json", false,
		"print one JSON object per workload: how it stands, its policy, the next decision, and what the API shows")
	c.Flags().BoolVar(&watch, "watch", false, "look again and again, until you interrupt it")
	return c
}

// watchStatus prints the state until the context ends. On a terminal each look takes the place of the last; elsewhere it follows.
func (d verbs) watchStatus(ctx context.Context, l *ledger.Ledger, names []string, asJSON bool, out io.Writer) error {
	past := newHistorian(l)
	for {
		var page strings.Builder
		looking, end := google.NextQuestion(ctx)
		past.again()
		if err := end(d.status(looking, l, past, names, asJSON, &page)); err != nil {
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

func (d verbs) status(ctx context.Context, l *ledger.Ledger, past *historian, names []string, asJSON bool, out io.Writer) error {
	found, err := d.Workloads(ctx, l, names)
	if err != nil {
		return err
	}
	pause, err := l.Pause(ctx)
	if err != nil {
		return err
	}
	policies, known, err := d.Policies(ctx, l)
	if err != nil {
		return err
	}
	p := terminal.NewPrinter(out, asJSON)
	if !asJSON && pause.Holds(d.Now()) {
		terminal.Print(out, p.Paint(terminal.Yellow, "everything is paused "+PausedText(pause)))
	}
	if !asJSON && !known && len(found) > 0 {
		terminal.Print(out, p.Paint(terminal.Yellow, "the ledger does not say yet what the deployment allows; the switches below are those of the presets"))
	}
	shown, unread := d.shownNow(ctx, found)
	for i, w := range found {
		st := d.stands(w.Document.Limited(policies.For(ctx, w.Label)), w)
		if st.Saving, err = past.seldomSaved(ctx, w, d.Now()); err != nil {
			return err
		}
		st.Shown, st.NotShown = shown[w.ID], unread
		if asJSON {
			if err := terminal.PrintJSON(out, st); err != nil {
				return err
			}
			continue
		}
		if i > 0 {
			terminal.Print(out, "")
		}
		printStanding(p, st, d.Now())
	}
	if unread != "" && !asJSON {
		terminal.Print(out, "\n"+p.Paint(terminal.Yellow, "the last maintenance events and autocheckpoint are not shown: "+unread))
	}
	if len(found) == 0 && !asJSON {
		terminal.Print(out, "Pitstop has seen no workload yet; patrol looks for TPUs every minute")
	}
	if asJSON || len(names) > 0 {
		return nil // an object is a workload, and who names workloads asks for nothing else
	}
	return d.leftBehind(ctx, l, out)
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
	if s := st.Saving; s != nil {
		do, because := s.advice()
		line := "  saves     " + p.Paint(terminal.Yellow, s.state()+"; "+do)
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
	if st.IfLost != nil {
		terminal.Print(p.Out, "  if "+st.IfLost.Slice+" died now: "+foreseen(st.IfLost.Plan))
	}
	in := w.Incident
	if in == nil {
		return
	}
	line := fmt.Sprintf("%s: %s, %s for %s", in.ID, in.Cause, in.Phase, events.Span(now.Sub(in.Since)))
	if !in.Deadline.IsZero() {
		line += ", until " + in.Deadline.UTC().Format(time.RFC3339)
	}
	terminal.Print(p.Out, "  incident  "+p.Paint(terminal.Yellow, line))
	if n := w.Need; n != nil {
		terminal.Print(p.Out, "            "+p.Paint(terminal.Yellow, "it waits for approval: "+n.Text+"; "+n.Command))
	}
	if w.Wait.Held != "" {
		terminal.Print(p.Out, "            held: "+terminal.WithCode(w.Wait.Held, string(w.Wait.HeldCode)))
	}
	for _, r := range w.Requests {
		terminal.Print(p.Out, "            "+RequestText(r, now))
	}
	if st.AtDeadline != nil {
		terminal.Print(p.Out, "            at its deadline: "+foreseen(*st.AtDeadline))
	}
}

// foreseen prints a decision that would be made, in a line.
func foreseen(f view.Plan) string {
	var parts []string
	for _, l := range f.Decisions {
		parts = append(parts, l.Text)
	}
	if n := len(f.Decisions); n > 0 && f.Phase == view.Approving {
		parts[n-1] += " (" + f.Decisions[n-1].Reason + ")"
	}
	if f.Outcome != "" {
		end := strings.TrimSuffix(string(f.Outcome)+": "+f.Reason, ": ")
		if f.Advice != "" {
			end += "; you: " + f.Advice
		}
		parts = append(parts, end)
	}
	return cmp.Or(strings.Join(parts, "; then "), because("nothing", f.Reason))
}

// because adds the reason, if there is one.
func because(text, reason string) string { return strings.TrimSuffix(text+": "+reason, ": ") }

func printSlice(p *terminal.Printer, s *view.Slice, maintained string, now time.Time) {
	parts := []string{s.Name, s.Zone, s.Accelerator}
	if s.Ordered != "" {
		parts = append(parts, "in place of "+s.Ordered)
	}
	if s.Reclaimable {
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
		if s.Condition == evidence.Ready && !s.Admitted {
			line += ", training is not admitted yet"
		}
	}
	if maintained != "" {
		line += ", " + maintained
	}
	if s.Released {
		line += ", left to its owner"
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
	case t.Attempt > 0:
		parts = append(parts, fmt.Sprintf("crew in touch, attempt %d", t.Attempt))
	default:
		parts = append(parts, "crew in touch")
	}
	switch {
	case t.Finished:
		parts = append(parts, "finished at step "+events.Number(t.Step))
	case t.Claimed:
		parts = append(parts, "a log line says that it is finished; the crew's verdict is not read yet")
	case !t.StepAt.IsZero():
		parts = append(parts, "step "+events.Number(t.Step)+" "+events.Span(now.Sub(t.StepAt))+" ago")
	case !t.Seen.IsZero():
		parts = append(parts, "no step yet")
	}
	switch {
	case !t.VerifiedAt.IsZero():
		parts = append(parts, "checkpoint "+events.Number(t.Verified)+" verified, "+events.Span(now.Sub(t.VerifiedAt))+" old")
	case w.Directory == "":
		parts = append(parts, "no checkpoint directory")
	case t.Checkpoint > 0:
		parts = append(parts, "checkpoint "+events.Number(t.Checkpoint)+" reported by the crew, not verified")
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
