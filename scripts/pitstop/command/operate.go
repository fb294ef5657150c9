package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/user"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
)

// deployment is what the verbs work on that look at a deployment or hold it: its ledger, with the caller's own credentials.
type deployment struct {
	open func(project, database string) *ledger.Ledger
	now  func() time.Time
}

var deployed = deployment{
	open: func(project, database string) *ledger.Ledger { return ledger.New(ledger.Firestore(project, database)) },
	now:  time.Now,
}

// place names a deployment on the command line.
type place struct{ project, database string }

func (a *place) flags(c *cobra.Command) {
	c.Flags().StringVar(&a.project, "project", "", "the project in which Pitstop is deployed")
	c.Flags().StringVar(&a.database, "database", ledger.Database, "its Firestore database")
}

func (d deployment) at(a place) (*ledger.Ledger, error) {
	if a.project == "" {
		return nil, usage("--project is missing: the project in which Pitstop is deployed")
	}
	return d.open(a.project, a.database), nil
}

func (d deployment) commands() []*cobra.Command {
	return []*cobra.Command{d.statusCommand(), d.incidentCommand(), d.pauseCommand(), d.resumeCommand()}
}

// standing is a workload as status --json prints it.
type standing struct {
	incident.Workload
	Due time.Time `json:"due,omitzero"`
}

func (d deployment) statusCommand() *cobra.Command {
	var where place
	var asJSON bool
	c := &cobra.Command{
		Use:   "status [WORKLOAD...]",
		Short: "Print how every workload of a deployment stands",
		Long: "Print how every workload of a deployment stands, or those that are named: its slices as the API showed them last, its training,\n" +
			"the maintenance announced, the open incident with its deadline and what it waits for, and what is paused.\n\n" +
			"It reads the ledger alone, with the caller's credentials: roles/datastore.viewer.",
		RunE: func(c *cobra.Command, names []string) error {
			l, err := d.at(where)
			if err != nil {
				return err
			}
			return d.status(c.Context(), l, names, asJSON, c.OutOrStdout())
		},
	}
	where.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per workload: the document of the ledger, and when something follows by itself")
	return c
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
	p := newPrinter(out, asJSON)
	if !asJSON && pause.Holds(d.now()) {
		tell(out, p.paint(yellow, "everything is paused "+told(pause)))
	}
	for i, w := range found {
		if asJSON {
			raw, err := json.Marshal(standing{shown(w), w.Due()}, json.Deterministic(true))
			if err != nil {
				return err
			}
			tell(out, string(raw))
			continue
		}
		if i > 0 {
			tell(out, "")
		}
		p.standing(w, d.now())
	}
	if len(found) == 0 && !asJSON {
		tell(out, "no workload has been seen yet; patrol looks for TPUs every minute")
	}
	return nil
}

// workloads reads those that are named, by ID or by name, or all.
func workloads(ctx context.Context, l *ledger.Ledger, names []string) (found []incident.Workload, err error) {
	ids, err := l.All(ctx)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		if !slices.ContainsFunc(ids, func(id string) bool { return isNamed(id, name) }) {
			return nil, usage("there is no workload %q; there are %s", name, cmp.Or(strings.Join(ids, ", "), "none"))
		}
	}
	for _, id := range ids {
		if len(names) > 0 && !slices.ContainsFunc(names, func(name string) bool { return isNamed(id, name) }) {
			continue
		}
		w, _, err := l.Workload(ctx, id)
		if errors.Is(err, ledger.ErrNotFound) {
			continue // it went meanwhile
		}
		if err != nil {
			return nil, err
		}
		found = append(found, w)
	}
	return found, nil
}

// isNamed reports whether a word names a workload: its ID, or its name alone.
func isNamed(id, word string) bool { return id == word || strings.HasSuffix(id, "/"+word) }

// shown is a workload without what its outbox holds: what is still to be sent may hold what nobody has to see.
func shown(w incident.Workload) incident.Workload {
	w.Outbox = nil
	return w
}

func (p *printer) standing(w incident.Workload, now time.Time) {
	policy := "policy " + w.Label
	if w.Label == "" {
		policy = "no label pitstop-policy: watched"
	}
	tell(p.out, p.paint(bold, w.ID)+"  "+policy)
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
	in := w.Incident
	if in == nil {
		return
	}
	line := fmt.Sprintf("%s: %s, %s for %s", in.ID, in.Cause, in.Phase, events.Span(now.Sub(in.Since)))
	if !in.Deadline.IsZero() {
		line += ", until " + in.Deadline.UTC().Format(time.RFC3339)
	}
	tell(p.out, "  incident  "+p.paint(yellow, line))
	if in.Held != "" {
		tell(p.out, "            held: "+withCode(in.Held, string(in.HeldCode)))
	}
	for _, t := range in.Tasks {
		tell(p.out, "            "+waiting(t, now))
	}
}

func (p *printer) slice(s *incident.Slice, now time.Time) {
	parts := []string{s.Name, s.Zone, s.Accelerator}
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
	if s.IsReleased() {
		line += ", left to its owner"
	}
	tell(p.out, "  slice     "+line)
}

// training says what is known of the training side.
func training(w incident.Workload, now time.Time) string {
	var parts []string
	switch pr := w.Progress; {
	case w.Crew.Finished:
		parts = append(parts, "finished at step "+events.Number(pr.Step))
	case !pr.At.IsZero():
		parts = append(parts, "step "+events.Number(pr.Step)+" "+events.Span(now.Sub(pr.At))+" ago")
	case w.Crew.Seen.IsZero():
		parts = append(parts, "no crew has been heard")
	default:
		parts = append(parts, "a crew has been heard, and no step yet")
	}
	switch {
	case !w.Progress.VerifiedAt.IsZero():
		parts = append(parts, "checkpoint "+events.Number(w.Progress.Verified)+" verified, "+events.Span(now.Sub(w.Progress.VerifiedAt))+" old")
	case w.Directory == "":
		parts = append(parts, "no checkpoint directory")
	}
	return strings.Join(parts, ", ")
}

func announced(n incident.Notice, now time.Time) string {
	line := "maintenance " + strings.ToLower(string(n.Status))
	if !n.WindowStart.IsZero() {
		line += ", window from " + n.WindowStart.UTC().Format(time.RFC3339)
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

func (d deployment) incidentCommand() *cobra.Command {
	var where place
	var asJSON bool
	c := &cobra.Command{
		Use:   "incident ID",
		Short: "Print the whole story of an incident",
		Long: "Print the whole story of an incident, open or closed: what was seen, what was decided on it and why, what came of it, and what it\n" +
			"cost. status names the open ones, the log line of an incident's end and the archive the closed ones.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usage("incident takes one ID, as in llama-8b-20261112-3; got %d", len(args))
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			l, err := d.at(where)
			if err != nil {
				return err
			}
			w, in, err := find(c.Context(), l, args[0])
			if err != nil {
				return err
			}
			if asJSON {
				raw, err := json.Marshal(in, json.Deterministic(true))
				if err != nil {
					return err
				}
				tell(c.OutOrStdout(), string(raw))
				return nil
			}
			newPrinter(c.OutOrStdout(), false).incident(w, in)
			return nil
		},
	}
	where.flags(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print the incident as one JSON object")
	return c
}

// find looks for an incident where it is while it is open, and for a while after, and in the archive.
func find(ctx context.Context, l *ledger.Ledger, id string) (incident.Workload, incident.Incident, error) {
	all, err := workloads(ctx, l, nil)
	if err != nil {
		return incident.Workload{}, incident.Incident{}, err
	}
	for _, w := range all {
		for _, in := range []*incident.Incident{w.Incident, w.Closed} {
			if in != nil && in.ID == id {
				return w, *in, nil
			}
		}
	}
	for _, w := range all {
		in, err := l.Closed(ctx, w.ID, id)
		switch {
		case err == nil:
			return w, in, nil
		case !errors.Is(err, ledger.ErrNotFound):
			return w, in, err
		}
	}
	return incident.Workload{}, incident.Incident{}, usage("there is no incident %q; status names those that are open", id)
}

func (p *printer) incident(w incident.Workload, in incident.Incident) {
	p.heading(in.ID, fmt.Sprintf("%s · workload %s · policy %s", in.Cause, w.ID, cmp.Or(in.Policy, "none")))
	day := ""
	for _, l := range in.Timeline {
		if d := l.At.UTC().Format("Mon Jan 2, 2006"); d != day {
			tell(p.out, "  "+d)
			day = d
		}
		word, colour := string(l.Kind), ""
		switch l.Kind {
		case incident.LineDecided:
			colour = bold
		case incident.LineEnded:
			word, colour = strings.ToUpper(string(in.Outcome)), yellow
		case incident.LineSeen, incident.LineAsked, incident.LineCame:
		}
		p.row(l.At.UTC().Format("15:04:05"), word, colour, l.Text, withCode(l.Reason, string(l.Code)))
	}
	if in.LeftOut > 0 {
		tell(p.out, fmt.Sprintf("  %d lines in the middle were left out", in.LeftOut))
	}
	p.calls(in)
	for _, would := range in.WouldHave() {
		tell(p.out, "  would have: "+would)
	}
	if in.Advice != "" {
		tell(p.out, "  "+p.paint(red, "you: "+in.Advice))
	}
}

// calls prints what was called outside on behalf of an incident, and what came of it.
func (p *printer) calls(in incident.Incident) {
	if len(in.Calls) > 0 {
		tell(p.out, "  "+p.paint(bold, "calls"))
	}
	if in.CallsLeftOut > 0 {
		tell(p.out, "  the "+count(in.CallsLeftOut, "oldest call")+" left out")
	}
	for _, c := range in.Calls {
		p.row(c.At.UTC().Format("15:04:05"), c.Function, "", c.Method+" "+c.Resource, came(c))
	}
}

// came is what came of a call.
func came(c incident.Call) string {
	text := "accepted"
	switch {
	case c.NotMade:
		text = "not made"
	case c.Answered.IsZero():
		text = "its outcome is not known"
	case c.Operation != "" && c.Code != "":
		text = "accepted, and its operation failed"
	case c.Code != "":
		text = "refused"
	}
	text = withCode(text, string(c.Code))
	if c.Folded > 0 {
		text += fmt.Sprintf(", and %d times more until %s", c.Folded, c.Until.UTC().Format("Jan 2 15:04:05"))
	}
	return text
}

func (d deployment) pauseCommand() *cobra.Command {
	var where place
	var all bool
	var lasts time.Duration
	var by, why string
	c := &cobra.Command{
		Use:   "pause [WORKLOAD...]",
		Short: "Hold every call that changes something, for workloads or for all",
		Long: "Hold every call that changes something: for the workloads that are named, or with --all for everything. What is under way goes on\n" +
			"being watched and told; the pause is read right before each call. It needs roles/datastore.user.",
		RunE: func(c *cobra.Command, names []string) error {
			if lasts < 0 {
				return usage("--for %s: it has to be more than nothing; leave it out to pause until resume", lasts)
			}
			p := &incident.Pause{By: caller(by), Why: why, At: d.now()}
			if lasts > 0 {
				p.Until = p.At.Add(lasts)
			}
			return d.setPause(c.Context(), where, names, all, p, c.OutOrStdout())
		},
	}
	where.flags(c)
	c.Flags().BoolVar(&all, "all", false, "pause everything")
	c.Flags().DurationVar(&lasts, "for", 0, "how long, as in 2h; without it until resume")
	c.Flags().StringVar(&by, "by", "", "who pauses; by default the name of the user of this machine")
	c.Flags().StringVar(&why, "why", "", "why, for those who read it")
	return c
}

func (d deployment) resumeCommand() *cobra.Command {
	var where place
	var all bool
	c := &cobra.Command{
		Use:   "resume [WORKLOAD...]",
		Short: "Lift the pause of workloads, or of all",
		RunE: func(c *cobra.Command, names []string) error {
			return d.setPause(c.Context(), where, names, all, nil, c.OutOrStdout())
		},
	}
	where.flags(c)
	c.Flags().BoolVar(&all, "all", false, "lift the pause of everything; workloads that are paused by name stay paused")
	return c
}

func (d deployment) setPause(ctx context.Context, where place, names []string, all bool, p *incident.Pause, out io.Writer) error {
	if all == (len(names) > 0) {
		return usage("name the workloads, or say --all")
	}
	l, err := d.at(where)
	if err != nil {
		return err
	}
	what := "lifted"
	if p != nil {
		what = "paused " + told(p)
	}
	if all {
		if err := l.SetPause(ctx, p); err != nil {
			return err
		}
		tell(out, "everything: "+what)
		return nil
	}
	found, err := workloads(ctx, l, names)
	if err != nil {
		return err
	}
	for _, w := range found {
		if err := l.PauseWorkload(ctx, w.ID, p); err != nil {
			return err
		}
		tell(out, w.ID+": "+what)
	}
	return nil
}

// caller is who calls, for those who read it later. The database's own audit log has the account.
func caller(by string) string {
	if by != "" {
		return by
	}
	if u, err := user.Current(); err == nil && u.Username != "" {
		return u.Username
	}
	return "somebody"
}
