package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
)

// standing is a workload as status --json prints it.
type standing struct {
	incident.Workload
	// Due is when something follows by itself.
	Due time.Time `json:"due,omitzero"`
	// Policy is what holds for it now, as far as that can be read from here.
	Policy effective `json:"policy"`
	// IfLost is what would be decided if its first usable slice were lost now, AtDeadline what at the deadline of its open incident.
	IfLost     *incident.Foreseen `json:"if_lost,omitzero"`
	AtDeadline *incident.Foreseen `json:"at_deadline,omitzero"`

	first string
	holds policy.Policy
}

// effective is a policy in effect. Unreadable says why it cannot be read from here.
type effective struct {
	checkedPolicy
	Unknown    bool   `json:"unknown,omitzero"`
	Unreadable string `json:"unreadable,omitzero"`
}

// watchEvery is how often status --watch looks.
const watchEvery = 10 * time.Second

func (d deployment) statusCommand() *cobra.Command {
	var where place
	var asJSON, watch bool
	c := &cobra.Command{
		Use:   "status [WORKLOAD...]",
		Short: "Print how every workload of a deployment stands",
		Long: "Print how every workload of a deployment stands, or those that are named: its slices and their lives as the API showed them last,\n" +
			"its policy with what limits each switch, its training, the maintenance announced, the open incident with its deadline and what comes\n" +
			"next, what is paused, and what Pitstop would do if the slice died now, which is decided by the code that would decide it.\n\n" +
			"It reads the ledger alone, in one listing: roles/datastore.viewer; and the policy file, where there is one: roles/storage.objectViewer.\n" +
			fmt.Sprintf("--watch looks again every %d s until it is interrupted.", int(watchEvery.Seconds())),
		RunE: func(c *cobra.Command, names []string) error {
			if err := checkWorkloads(names); err != nil {
				return err
			}
			l, err := d.at(where)
			if err != nil {
				return err
			}
			if watch {
				return d.watchStatus(c.Context(), l, names, asJSON, c.OutOrStdout())
			}
			return d.status(c.Context(), l, names, asJSON, c.OutOrStdout())
		},
	}
	where.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per workload: the document of the ledger, its policy, and what would follow")
	c.Flags().BoolVar(&watch, "watch", false, "look again and again until interrupted")
	return c
}

// watchStatus shows how things stand until the context ends: each time in place of the last on a terminal, else one under the
// other.
func (d deployment) watchStatus(ctx context.Context, l *ledger.Ledger, names []string, asJSON bool, out io.Writer) error {
	for {
		var page strings.Builder
		looking, end := again(ctx)
		if err := end(d.status(looking, l, names, asJSON, &page)); err != nil {
			if ctx.Err() != nil {
				err = nil // somebody has seen enough
			}
			return err
		}
		p := newPrinter(out, asJSON)
		switch at := d.now().UTC().Format(time.RFC3339); {
		case p.colour:
			if s, ok := out.(*screen); ok {
				s.clear()
			}
			_, _ = fmt.Fprint(out, at, "\n\n", page.String()) //nolint:errcheck // there is nobody else to tell
		case asJSON:
			_, _ = fmt.Fprint(out, page.String()) //nolint:errcheck // likewise
		default:
			_, _ = fmt.Fprint(out, at, "\n\n", page.String(), "\n") //nolint:errcheck // likewise
		}
		if d.sleep(ctx, watchEvery) != nil {
			return nil //nolint:nilerr // somebody has seen enough
		}
	}
}

// policies are those of a deployment, as it has said itself where they are and what it allows. Known is false where it has not
// said that yet: then only presets are known, and no ceiling.
func (d deployment) policies(ctx context.Context, l *ledger.Ledger) (source *policy.Source, known bool, err error) {
	s, err := l.Settings(ctx)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return policy.NewSource("", nil, policy.Everything(), d.now), false, nil
	case err != nil:
		return nil, false, err
	}
	return s.Policy.Source(d.readPolicy), true, nil
}

// readPolicy reads the policy file. The verbs go on without it.
func (d deployment) readPolicy(ctx context.Context, uri string) ([]byte, error) {
	ctx, end := apart(ctx)
	raw, err := d.read(ctx, uri)
	return raw, end(err)
}

func (d deployment) status(ctx context.Context, l *ledger.Ledger, names []string, asJSON bool, out io.Writer) error {
	found, err := workloads(ctx, l, names)
	if err != nil {
		return err
	}
	pause, err := l.Pause(ctx)
	if err != nil {
		return err
	}
	policies, known, err := d.policies(ctx, l)
	if err != nil {
		return err
	}
	p := newPrinter(out, asJSON)
	if !asJSON && pause.Holds(d.now()) {
		tell(out, p.paint(yellow, "everything is paused "+told(pause)))
	}
	if !asJSON && !known && len(found) > 0 {
		tell(out, p.paint(yellow, "what the deployment allows is not known: its patrol has not said it yet; the switches below are those of the presets alone"))
	}
	for i, w := range found {
		st := d.stands(policies.For(ctx, w.Label), w)
		if asJSON {
			raw, err := json.Marshal(st, json.Deterministic(true))
			if err != nil {
				return err
			}
			tell(out, string(raw))
			continue
		}
		if i > 0 {
			tell(out, "")
		}
		p.standing(st, d.now())
	}
	if len(found) == 0 && !asJSON {
		tell(out, "no workload has been seen yet; patrol looks for TPUs every minute")
	}
	return nil
}

// stands is how a workload stands under its policy.
func (d deployment) stands(p policy.Policy, w incident.Workload) standing {
	st := standing{
		Workload: shown(w), Due: w.Due(),
		holds:  p,
		Policy: effective{checkedPolicyOf(p.Name, p), p.Unknown, p.Unreadable},
	}
	if p.Unreadable != "" {
		st.Policy.Switches = nil
		return st // what would follow cannot be told from here
	}
	if w.Incident != nil {
		if f := w.AtDeadline(p); len(f.Decisions) > 0 || f.Outcome != "" {
			st.AtDeadline = &f
		}
		return st
	}
	for _, s := range w.Slices {
		if s.Condition == incident.Ready && !s.IsReleased() && !w.Crew.Finished {
			f := w.IfLost(p, s.Name, d.now())
			st.IfLost, st.first = &f, s.Name
			break
		}
	}
	return st
}

// shown is a workload without what its outbox holds: what is still to be sent may hold what nobody has to see.
func shown(w incident.Workload) incident.Workload {
	w.Outbox = nil
	return w
}

func (p *printer) standing(st standing, now time.Time) {
	w := st.Workload
	head := "policy " + w.Label
	switch {
	case w.Label == "":
		head = "no label pitstop-policy: watched"
	case st.Policy.Unknown:
		head += ", " + p.paint(red, "which no policy is called: watched")
	}
	tell(p.out, p.paint(bold, w.ID)+"  "+head)
	switch {
	case st.Policy.Unreadable != "":
		tell(p.out, "  policy    "+p.paint(yellow, "cannot be read from here: "+st.Policy.Unreadable))
	case w.Label != "" && !st.Policy.Unknown:
		tell(p.out, "  policy    "+limits(st.holds.Switches, st.holds.Limits))
	}
	if w.Pause.Holds(now) {
		tell(p.out, "  "+p.paint(yellow, "paused "+told(w.Pause)))
	}
	for i := range w.Slices {
		p.slice(&w.Slices[i], now)
	}
	if t := training(w, now); t != "" {
		tell(p.out, "  training  "+t)
	}
	for _, n := range w.Notices {
		if n.Status != events.NoticeGone {
			tell(p.out, "  notice    "+n.Slice+": "+announced(n, now))
		}
	}
	if st.IfLost != nil {
		tell(p.out, "  if "+st.first+" died now: "+foreseen(*st.IfLost))
	}
	in := w.Incident
	if in == nil {
		if idle := w.Idle; idle != nil {
			tell(p.out, "  idle      "+p.paint(yellow, fmt.Sprintf("deleted in %s, because when_escalated is delete and %s was left to a person; pitstop cancel %s keeps it",
				events.Span(max(0, idle.Due.Sub(now))), idle.Incident, idle.Incident)))
		}
		return
	}
	line := fmt.Sprintf("%s: %s, %s for %s", in.ID, in.Cause, in.Phase, events.Span(now.Sub(in.Since)))
	if !in.Deadline.IsZero() {
		line += ", until " + in.Deadline.UTC().Format(time.RFC3339)
	}
	tell(p.out, "  incident  "+p.paint(yellow, line))
	if q := w.Question(); q != "" {
		tell(p.out, "            "+p.paint(yellow, "it waits for approval: "+q+"; pitstop approve "+in.ID))
	}
	if in.Held != "" {
		tell(p.out, "            held: "+withCode(in.Held, string(in.HeldCode)))
	}
	for _, t := range in.Tasks {
		tell(p.out, "            "+waiting(t, now))
	}
	if st.AtDeadline != nil {
		tell(p.out, "            at its deadline: "+foreseen(*st.AtDeadline))
	}
}

// foreseen says what would be decided, in a line.
func foreseen(f incident.Foreseen) string {
	var parts []string
	for _, l := range f.Decisions {
		parts = append(parts, l.Text)
	}
	if n := len(f.Decisions); n > 0 && f.Phase == incident.Approving {
		parts[n-1] += " (" + f.Decisions[n-1].Reason + ")"
	}
	if f.Outcome != "" {
		end := strings.TrimSuffix(string(f.Outcome)+": "+f.Reason, ": ")
		if f.Advice != "" {
			end += "; you: " + f.Advice
		}
		parts = append(parts, end)
	}
	return cmp.Or(strings.Join(parts, "; then "), "nothing")
}

func (p *printer) slice(s *incident.Slice, now time.Time) {
	parts := []string{s.Name, s.Zone, s.Accelerator}
	if s.Reshaped() {
		parts = append(parts, "in place of "+s.Own.Accelerator)
	}
	if s.Spot {
		parts = append(parts, "spot")
	}
	state := cmp.Or(s.State, string(s.Condition))
	if s.Condition != incident.Ready {
		state = p.paint(red, state)
	}
	line := strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " ") + "  " + state
	if !s.Since.IsZero() {
		line += " for " + events.Span(now.Sub(s.Since))
	}
	if s.Incarnation.Known() {
		line += ", life " + s.Incarnation.String()
		if !s.Incarnation.Created.IsZero() {
			line += " since " + s.Incarnation.Created.UTC().Format(time.RFC3339)
		}
		if s.Condition == incident.Ready && !s.Admitted.Same(s.Incarnation) {
			line += ", training is not admitted to it"
		}
	}
	if s.IsReleased() {
		line += ", left to its owner"
	}
	if s.Claims != "" {
		line += ", " + p.paint(yellow, "whose label "+events.LabelWorkload+" names "+s.Claims+": it is no part of that")
	}
	tell(p.out, "  slice     "+line)
}

// gaveUp reports whether the crew's own restarts are spent, and nobody has had it try again.
func gaveUp(c incident.Crew) bool { return c.GaveUp > 0 && c.GaveUp >= max(c.Attempt, c.Exited) }

// training says what is known of the training side.
func training(w incident.Workload, now time.Time) string {
	var parts []string
	switch {
	case w.Crew.Seen.IsZero():
		parts = append(parts, "no crew has been heard")
	case gaveUp(w.Crew):
		parts = append(parts, fmt.Sprintf("the crew has given up after attempt %d", w.Crew.GaveUp))
	case w.Crew.Attempt > 0:
		parts = append(parts, fmt.Sprintf("crew heard, attempt %d", w.Crew.Attempt))
	default:
		parts = append(parts, "crew heard")
	}
	switch pr := w.Progress; {
	case w.Crew.Finished:
		parts = append(parts, "finished at step "+events.Number(pr.Step))
	case w.Crew.Claim.Finished:
		parts = append(parts, "a line says that it is finished; the crew's verdict has not been read")
	case !pr.At.IsZero():
		parts = append(parts, "step "+events.Number(pr.Step)+" "+events.Span(now.Sub(pr.At))+" ago")
	case !w.Crew.Seen.IsZero():
		parts = append(parts, "no step yet")
	}
	switch pr := w.Progress; {
	case !pr.VerifiedAt.IsZero():
		parts = append(parts, "checkpoint "+events.Number(pr.Verified)+" verified, "+events.Span(now.Sub(pr.VerifiedAt))+" old")
	case w.Directory == "":
		parts = append(parts, "no checkpoint directory")
	case pr.CheckpointStep > 0:
		parts = append(parts, "checkpoint "+events.Number(pr.CheckpointStep)+" by the crew's word, not verified")
	default:
		parts = append(parts, "no checkpoint yet")
	}
	return strings.Join(parts, ", ")
}

func announced(n incident.Notice, now time.Time) string {
	line := "maintenance " + strings.ToLower(string(n.Status))
	if !n.WindowStart.IsZero() {
		line += ", window from " + n.WindowStart.UTC().Format(time.RFC3339)
	}
	if n.Declined {
		line += ", cancelled: nothing is asked before it"
	}
	if n.Deaf != "" {
		line += ", a request to save may not be heard: " + n.Deaf
	}
	if n.Due.After(now) {
		line += ", the save is requested in " + events.Span(n.Due.Sub(now))
	}
	return line
}

// waiting says how far a request is.
func waiting(t incident.Task, now time.Time) string {
	line := strings.TrimSpace(string(t.Action)+" "+t.Slice) + ": "
	switch {
	case !t.Retry.IsZero():
		return line + "tried again in " + events.Span(max(0, t.Retry.Sub(now))) + ", last: " + withCode(t.LastFailure, string(t.LastCode))
	case !t.Answered.IsZero():
		return line + "accepted " + events.Span(now.Sub(t.Answered)) + " ago"
	case !t.Begun.IsZero():
		return line + "begun " + events.Span(now.Sub(t.Begun)) + " ago"
	}
	return line + "asked for " + events.Span(now.Sub(t.Sent)) + " ago"
}

// told says who paused, until when and why.
func told(p *incident.Pause) string {
	line := "by " + p.By
	if !p.Until.IsZero() {
		line += " until " + p.Until.UTC().Format(time.RFC3339)
	}
	if p.Why != "" {
		line += ": " + p.Why
	}
	return line
}
