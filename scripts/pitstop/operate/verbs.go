package operate

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/scripts/pitstop/show"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/orders"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/view"
)

// needs ends the help of every verb that records a person's word.
const needs = "The incident's story and the workload record your name and your reason. This needs roles/datastore.user. The next step is decided under the\n" +
	"deployment's policy and published on its request topics, which needs roles/pubsub.publisher. Without permission to read the policy or to\n" +
	"publish, your word is stored, and patrol takes the next step within a minute."

// printRecorded prints the result of a word.
func (d verbs) printRecorded(c *cobra.Command, err error, text string) error {
	var left deployment.UnpublishedError
	switch {
	case errors.As(err, &left):
		terminal.Print(c.OutOrStdout(), text)
		terminal.Print(c.OutOrStdout(), "it is stored; patrol publishes the next step within a minute, because this command could not: "+cli.OneLine(left))
		return nil
	case err != nil:
		return err
	}
	terminal.Print(c.OutOrStdout(), text)
	return nil
}

// give has a deployment carry out an order about a workload in the caller's name. A refusal is wrong usage.
func (d verbs) give(c *cobra.Command, l *ledger.Ledger, where deployment.Place, w deployment.Workload, o orders.Order, why string) (after deployment.Workload, by string, err error) {
	o.Workload, o.At, o.Word = w.ID, d.Now(), evidence.Word{By: d.Caller(c.Context()), Why: why}
	after, err = d.Give(c.Context(), l, where, o)
	var refused orders.RefusedError
	if errors.As(err, &refused) {
		err = cli.Usage("%w", refused)
	}
	return after, o.By, err
}

// withReason is a command with which a person decides about one workload or incident, and gives a reason.
func withReason(c *cobra.Command, run func(c *cobra.Command, where deployment.Place, why, about string) error) *cobra.Command {
	var where deployment.Place
	var why string
	c.RunE = func(c *cobra.Command, args []string) error { return run(c, where, why, args[0]) }
	where.Flags(c)
	cli.WhyFlag(c, &why)
	return c
}

// openIncident finds the workload with an open incident.
func (d verbs) openIncident(ctx context.Context, where deployment.Place, id string) (*ledger.Ledger, deployment.Workload, error) {
	l, err := d.Ledger(where)
	if err != nil {
		return nil, deployment.Workload{}, err
	}
	all, err := d.Workloads(ctx, l, nil)
	if err != nil {
		return l, deployment.Workload{}, err
	}
	w, in, err := d.FindIncident(ctx, l, all, id)
	if err == nil && (w.Incident == nil || w.Incident.ID != in.ID) {
		err = cli.Usage("%s is over: it ended %s at %s", id, in.Outcome, in.Closed.UTC().Format("2006-01-02 15:04"))
	}
	return l, w, err
}

func (d verbs) approveCommand() *cobra.Command {
	return withReason(&cobra.Command{
		Use:   "approve INCIDENT",
		Short: "Approve the action that an incident asks for",
		Long: "Approve the action that an incident asks for, because a switch of its policy is ask. The approval counts for this question of this\n" +
			"incident alone: a later question, or the next incident, waits again. Right before the call Pitstop still checks the policy, a pause\n" +
			"and the brake.\n\n" + needs,
		Args: cli.OneIncident(),
	}, func(c *cobra.Command, where deployment.Place, why, about string) error {
		l, w, err := d.openIncident(c.Context(), where, about)
		if err != nil {
			return err
		}
		question := w.Document.Question()
		o := orders.Order{Verb: evidence.VerbApprove, Incident: w.Incident.ID, Action: w.Incident.Asked}
		after, by, err := d.give(c, l, where, w, o, why)
		text := w.ID + ": approved by " + by + ": " + question
		if in := after.Incident; in != nil && in.Granted {
			text += "; patrol acts on it within a minute, because this command cannot read the policy"
		}
		return d.printRecorded(c, err, text)
	})
}

func (d verbs) cancelCommand() *cobra.Command {
	return withReason(&cobra.Command{
		Use:   "cancel INCIDENT",
		Short: "Take an open incident over: Pitstop does nothing more about it",
		Long: "Take an open incident over. It ends released: Pitstop requests, deletes and creates nothing more for it. The same trouble opens no\n" +
			"other incident until the slice is usable again, or you call retry. Pitstop no longer prepares for the maintenance that the incident\n" +
			"was about, unless Google moves the window. Pitstop still deletes slices that it ordered and that training never ran in; pause holds\n" +
			"that too.\n\n" +
			"A call that began a moment ago may still take effect; cancel names it.\n\n" + needs,
		Args: cli.OneIncident(),
	}, func(c *cobra.Command, where deployment.Place, why, about string) error {
		l, w, err := d.openIncident(c.Context(), where, about)
		if err != nil {
			return err
		}
		after, by, err := d.give(c, l, where, w, orders.Order{Verb: evidence.VerbCancel, Incident: w.Incident.ID}, why)
		lines := []string{w.ID + ": cancelled by " + by}
		for _, r := range w.Requests {
			if r.UnderWay {
				lines = append(lines, "a call may still take effect: "+show.RequestText(r, d.Now()))
			}
		}
		if after.Incident != nil && after.Incident.Phase == view.Clearing {
			lines = append(lines, "first it deletes the slices that it ordered itself; pitstop status shows that")
		}
		return d.printRecorded(c, err, strings.Join(lines, "\n"))
	})
}

func (d verbs) retryCommand() *cobra.Command {
	return withReason(&cobra.Command{
		Use:   "retry WORKLOAD",
		Short: "Try again after a refusal or after giving up",
		Long: "Try again after a refusal or after giving up, now that its reason is gone. In an open incident, Pitstop repeats waiting requests at once\n" +
			"and tries every zone again. Without an open incident, it opens one: it reads unusable slices and replaces them as the policy allows,\n" +
			"and asks a crew that has given up, or is silent, for another attempt. The budgets for attempts without progress start again. Training\n" +
			"that goes on is left alone.\n\n" + needs,
		Args: cli.OneWorkload(),
	}, func(c *cobra.Command, where deployment.Place, why, about string) error {
		l, w, err := d.Workload(c.Context(), where, about)
		if err != nil {
			return err
		}
		o := orders.Order{Verb: evidence.VerbRetry}
		if w.Incident != nil {
			o.Incident = w.Incident.ID
		}
		after, _, err := d.give(c, l, where, w, o, why)
		var refused cli.UsageError
		if errors.As(err, &refused) {
			return cli.Usage("%w%s", err, d.narrow(c.Context(), l, w))
		}
		text := w.ID + ": tried again"
		if after.Incident != nil {
			text += " in " + after.Incident.ID
			if after.Incident.Phase == view.Looking {
				text += "; patrol looks at it within a minute"
			}
		}
		return d.printRecorded(c, err, text+d.narrow(c.Context(), l, after))
	})
}

// narrow says that an open incident may do less than the policy would allow it now, or nothing at all, and the way out. It is empty
// elsewhere, and where the policy cannot be read.
func (d verbs) narrow(ctx context.Context, l *ledger.Ledger, w deployment.Workload) string {
	in := w.Incident
	if in == nil {
		return ""
	}
	policies, _, err := d.Policies(ctx, l)
	if err != nil {
		return ""
	}
	var more []string
	now := w.Document.Limited(policies.For(ctx, w.Label)).Switches
	for _, s := range policy.All() {
		if now.Level(s) > in.Switches.Level(s) {
			more = append(more, string(s))
		}
	}
	anew := "pitstop cancel " + in.ID + ", and then pitstop retry " + w.Name
	switch {
	case len(more) > 0:
		return "; it opened before the policy allowed " + strings.Join(more, ", ") + ", which counts from the next incident on: " + anew
	case in.OnlyWatched:
		return "; nothing is allowed, so it is only watched: allow what it needs, and once pitstop status shows that, " + anew
	}
	return ""
}

func (d verbs) attachCommand() *cobra.Command {
	var where deployment.Place
	var why, name string
	c := &cobra.Command{
		Use:   "attach WORKLOAD --policy POLICY",
		Short: "Put a workload under a policy, so that Pitstop acts on it",
		Long: "Put a workload under a policy: set the label " + events.LabelPolicy + " on each of its TPUs to a preset (watch, spot, reserved) or to a name of\n" +
			"the policy file. Only the label names a policy, so gcloud can set it too; attach also records who did it. Patrol reads the label\n" +
			"within a minute.\n\n" +
			"This needs roles/tpu.admin, or tpu.nodes.get and tpu.nodes.update, and roles/datastore.user for the record.",
		Args: cli.OneWorkload(),
		RunE: func(c *cobra.Command, args []string) error {
			if name == "" {
				return cli.Usage("--policy is missing: a preset (watch, spot, reserved), or a name of the policy file")
			}
			if !cli.LabelForm.MatchString(name) {
				return cli.Usage("--policy %q cannot be the value of a label: one has up to 63 small letters, digits, hyphens and underscores", name)
			}
			return d.label(c, where, args[0], name, evidence.Ordered{Word: evidence.Word{Why: why}, Verb: evidence.VerbAttach, Text: "to policy " + name})
		},
	}
	where.Flags(c)
	cli.WhyFlag(c, &why)
	c.Flags().StringVar(&name, "policy", "", "the policy: a preset, or a name of the policy file")
	return c
}

func (d verbs) detachCommand() *cobra.Command {
	return withReason(&cobra.Command{
		Use:   "detach WORKLOAD",
		Short: "Take a workload out of its policy, so that it is only watched",
		Long: "Take a workload out of its policy: remove the label " + events.LabelPolicy + " from each of its TPUs. From then on Pitstop watches the workload and\n" +
			"does nothing about it. Patrol reads that within a minute, and an open incident stops at its next step. cancel and pause are faster.\n\n" +
			"This needs the same permissions as attach.",
		Args: cli.OneWorkload(),
	}, func(c *cobra.Command, where deployment.Place, why, about string) error {
		return d.label(c, where, about, "", evidence.Ordered{Word: evidence.Word{Why: why}, Verb: evidence.VerbDetach})
	})
}

// label sets the policy's label on every TPU of a workload, and records that.
func (d verbs) label(c *cobra.Command, where deployment.Place, workload, value string, e evidence.Ordered) error {
	ctx, out := c.Context(), c.OutOrStdout()
	l, w, all, err := d.WorkloadAndAll(ctx, where, workload)
	if err != nil {
		return err
	}
	warning, err := d.knows(ctx, l, value)
	if err != nil {
		return err
	}
	for _, s := range w.Slices {
		if !s.Legacy || s.Condition == evidence.Gone {
			continue
		}
		wayOut := "with the label " + events.LabelPolicy + "=" + value
		if value == "" {
			wayOut = "without the label " + events.LabelPolicy + ", or pause " + w.Name
		}
		return cli.Usage("%s in %s is a legacy node, which keeps the labels that it was created with: create it again %s", s.Name, s.Zone, wayOut)
	}
	api, err := d.OpenNodeEditor(ctx)
	if err != nil {
		return err
	}
	if warning != "" {
		terminal.Print(out, warning)
	}
	if value != "" { // before anything is lost, and whatever comes of the label
		var r show.Rehearsal
		r.AddSharedDirectories(w, all)
		advise(&r, out)
	}
	e.By = d.Caller(ctx)
	var failed []error
	set := 0
	for _, s := range w.Slices {
		if !google.MayGoOn(ctx) {
			break
		}
		if s.Condition == evidence.Gone {
			terminal.Print(out, s.Name+": it is gone and cannot be labelled")
			continue
		}
		if err := api.SetLabel(ctx, w.Ref(s.Name), events.LabelPolicy, value); err != nil {
			failed = append(failed, google.ExplainError(ctx, err))
			continue
		}
		set++
		if value == "" {
			terminal.Print(out, s.Name+" in "+s.Zone+": the label is removed")
		} else {
			terminal.Print(out, s.Name+" in "+s.Zone+": labelled "+events.LabelPolicy+"="+value)
		}
	}
	if set > 0 {
		err = d.Record(ctx, l, where, w.ID, e)
		var left deployment.UnpublishedError
		if err != nil && !errors.As(err, &left) {
			failed = append(failed, google.ExplainError(ctx, err))
		}
	}
	if set > 0 && value != "" {
		d.advise(ctx, l, w, value, out)
	}
	return google.JoinDistinct(failed)
}

// advise warns of slices that the policy never brings back, of slices without autocheckpoint, of checkpoints or data in another region,
// and of a bucket that deletes the lease. It leaves out what it cannot read: the label is set, and check says all of it.
func (d verbs) advise(ctx context.Context, l *ledger.Ledger, w deployment.Workload, label string, out io.Writer) {
	looking, end := google.OptionalQuestion(ctx)
	policies, _, unread := d.Policies(looking, l)
	off, _, err := show.AutocheckpointOff(looking, l, w)
	if err = end(errors.Join(err, unread)); unread != nil {
		return
	}
	p := w.Document.Limited(policies.For(ctx, label))
	var never show.Rehearsal
	returns(&never, w, p)
	advise(&never, out)
	if err == nil && len(off) > 0 {
		terminal.Print(out, "autocheckpoint is off for "+show.NamesOf(off)+": "+deployment.AutocheckpointCost)
		terminal.Print(out, "  you: "+show.SwitchesOn(w, off, p))
	}
	looking, end = google.OptionalQuestion(ctx)
	shown, err := d.ListSlices(looking, []deployment.Workload{w})
	_ = end(err) //nolint:errcheck // then the data is not compared
	all := slices.DeleteFunc(d.Directories(ctx, w, shown[w.ID]), func(f deployment.Directory) bool { return f.Unknown != nil })
	var r show.Rehearsal
	r.AddRegions(w, all, p.EgressPrice)
	r.AddLifecycleRules(w, all)
	advise(&r, out)
}

// returns finds slices that a policy never brings back, because its switches are for other machines. A policy that recreates nothing
// waits for Google's own recovery, and that brings back what is no Spot slice.
func returns(r *show.Rehearsal, w deployment.Workload, p policy.Policy) {
	if p.Unreadable != "" || p.Switches.WatchOnly() {
		return
	}
	var spot, others, several []string
	for _, s := range w.Slices {
		switch {
		case s.Released:
			continue
		case s.Replaces() == policy.Recreate:
			spot = append(spot, s.Name)
		default:
			others = append(others, s.Name)
		}
		if s.Workers > 1 {
			several = append(several, s.Name)
		}
	}
	never := func(names []string, kind string, sw policy.Switch, end string) {
		if len(names) > 0 && p.Switches.Level(sw) == policy.No {
			r.Add(show.Stop, "policy", strings.Join(names, ", ")+": "+kind+", and "+w.Document.Forbids(sw, policy.No, p)+", so the policy "+p.Name+" never creates it again"+end,
				"attach a policy with the switch "+string(sw)+", which the deployment has to allow, too")
		}
	}
	never(spot, "a Spot slice", policy.Recreate, "")
	if p.Switches.Recreate != policy.No {
		never(others, "no Spot slice", policy.RecreateNonSpot, ", and only waits for "+incident.WordsOf(w.Provider).Healer+"'s own recovery")
	}
	if len(several) > 0 && p.Switches.StartStopped != policy.No {
		r.Add(show.Warn, "policy", strings.Join(several, ", ")+": the API cannot start a TPU of several workers, so the switch start_stopped of policy "+p.Name+" does nothing for it",
			"start it, or create it again, by hand once it is stopped")
	}
}

// advise prints the findings that are not good, each with its way out.
func advise(r *show.Rehearsal, out io.Writer) {
	for _, f := range r.Findings {
		if f.Level != show.Good {
			terminal.Print(out, f.Text)
			terminal.Print(out, "  you: "+f.WayOut)
		}
	}
}

// knows checks that a policy is one that the deployment knows, and warns where its file cannot be read from here: the functions
// read it as another account, and a label that names no policy is watched.
func (d verbs) knows(ctx context.Context, l *ledger.Ledger, name string) (warning string, err error) {
	if name == "" || policy.Preset(name) {
		return "", nil
	}
	s, err := l.Settings(ctx)
	if errors.Is(err, ledger.ErrNotFound) {
		return "", nil // the deployment has not published its policy yet
	}
	if err != nil {
		return "", err
	}
	if s.Policy.URI == "" {
		return "", cli.Usage("--policy %s: the deployment has no policy file; there are the presets watch, spot and reserved", name)
	}
	raw, err := d.ReadPolicy(ctx, s.Policy.URI)
	if err != nil {
		return "this command cannot read " + s.Policy.URI + ", so it does not know whether there is a policy " + name + "; without one the workload is only watched: " + cli.OneLine(err), ctx.Err()
	}
	f, err := policy.Parse(raw)
	if err != nil {
		return "", err
	}
	if names := f.Names(); !slices.Contains(names, name) {
		return "", cli.Usage("--policy %s: %s has no such policy; it has %s", name, s.Policy.URI, strings.Join(names, ", "))
	}
	return "", nil
}
