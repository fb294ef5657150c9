package main

import (
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
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
)

const (
	// drillFor is how long a drill is followed, drillEvery how often the ledger is looked at meanwhile.
	drillFor   = 2 * time.Hour
	drillEvery = 5 * time.Second
	// noticedWithin is how soon Pitstop has to notice a drill: patrol looks once a minute, and at a slice that is not usable for
	// SickFor before it opens an incident of its own.
	noticedWithin = incident.SickFor + 5*time.Minute
	// unreadFor is how often in a row the ledger may not be readable meanwhile.
	unreadFor = 12
)

// verdict is what drill --json prints at its end.
type verdict struct {
	Workload string `json:"workload"`
	Slice    string `json:"slice"`
	Incident string `json:"incident,omitzero"`
	Passed   bool   `json:"passed"`
	// Text says why; the times are in seconds: until the incident was opened, and how long training stood.
	Text    string           `json:"text"`
	Noticed float64          `json:"noticed_seconds,omitzero"`
	Outcome incident.Outcome `json:"outcome,omitzero"`
	Cost    cost             `json:"cost,omitzero"`
}

func (d deployment) drillCommand() *cobra.Command {
	var where place
	var asJSON, sure bool
	var why, slice, priced string
	var lasts time.Duration
	c := &cobra.Command{
		Use:   "drill WORKLOAD --yes",
		Short: "Have a slice meet a maintenance event, and follow how training comes back",
		Long: "A real exercise: Google's API simulates a maintenance event on worker 0 of a slice (simulateMaintenanceEvent), which interrupts the\n" +
			"training as a real one does. What Pitstop sees, decides and does is told as it happens, until training goes on, with a verdict and what\n" +
			"it cost. It is refused where something is wrong already, where nothing may be done, and without a verified checkpoint; check tells more.\n" +
			"Interrupted, it stops telling: what was begun goes on.\n\n" +
			"It needs roles/tpu.admin, or tpu.nodes.simulateMaintenanceEvent, and roles/datastore.user to record it; where Pitstop has not verified\n" +
			"a checkpoint yet, roles/storage.objectViewer to look for one. It ends with 1 when training did not come back by itself.",
		Args: oneWorkload(),
		RunE: func(c *cobra.Command, args []string) error {
			if lasts <= 0 {
				return usage("--for %s: it has to be more than 0", lasts)
			}
			if slice != "" && !nameForm.MatchString(slice) {
				return usage("--slice %q is no name of a slice", slice)
			}
			list, err := readPrices(priced)
			if err != nil {
				return err
			}
			l, w, err := d.one(c.Context(), where, args[0])
			if err != nil {
				return err
			}
			s, err := d.drills(c.Context(), l, w, slice)
			if err != nil {
				return err
			}
			if !sure {
				return usage("this interrupts the training of %s on %s: say --yes", w.ID, s.Name)
			}
			out := c.OutOrStdout()
			if asJSON {
				out = io.Discard
			}
			v, err := d.drill(c.Context(), where, l, w, s, why, lasts, list, newPrinter(out, false))
			if err != nil {
				return err
			}
			if asJSON {
				raw, err := json.Marshal(v, json.Deterministic(true))
				if err != nil {
					return err
				}
				tell(c.OutOrStdout(), string(raw))
			}
			if !v.Passed {
				return errFailed
			}
			return nil
		},
	}
	where.flags(c)
	whyFlag(c, &why)
	c.Flags().BoolVar(&asJSON, "json", false, "print nothing but the verdict, as one JSON object")
	c.Flags().BoolVar(&sure, "yes", false, "do it: the training is interrupted")
	c.Flags().StringVar(&slice, "slice", "", "the slice, if not the first that is not its owner's business")
	c.Flags().StringVar(&priced, "prices", "", "a file of prices, in dollars for a chip-hour; see incident")
	c.Flags().DurationVar(&lasts, "for", drillFor, "how long it is followed")
	return c
}

// drills is the slice that may be drilled, unless something speaks against it.
func (d deployment) drills(ctx context.Context, l *ledger.Ledger, w incident.Workload, name string) (s incident.Slice, err error) {
	policies, _, err := d.policies(ctx, l)
	if err != nil {
		return s, err
	}
	pause, err := l.Pause(ctx)
	if err != nil {
		return s, err
	}
	if name == "" && len(w.Slices) > 0 {
		name = w.Slices[max(0, slices.IndexFunc(w.Slices, func(s incident.Slice) bool { return !s.IsReleased() }))].Name
	}
	found := w.Slice(name)
	p := policies.For(ctx, w.Label)
	switch {
	case found == nil:
		return s, usage("%s has no slice %q", w.ID, name)
	case found.IsReleased():
		return s, usage("%s of %s is its owner's business: nothing would be done about it", name, w.ID)
	case w.Incident != nil:
		return s, usage("%s is open on %s: a drill would only make it worse", w.Incident.ID, w.ID)
	case pause.Holds(d.now()) || w.Pause.Holds(d.now()):
		return s, usage("%s is paused: nothing would be done", w.ID)
	case p.Unreadable != "":
		return s, usage("the policy of %s cannot be read from here: %s", w.ID, p.Unreadable)
	case p.Switches.Level(policy.Restart) == policy.No:
		return s, usage("nothing would bring the training of %s back: %s", w.ID, w.Forbids(policy.Restart, policy.No, p))
	case w.Crew.Seen.IsZero() || w.Crew.Finished:
		return s, usage("no training of %s is known to run: no crew has been heard, or it is finished", w.ID)
	case gaveUp(w.Crew):
		return s, usage("no training of %s runs: the crew has given up after attempt %d; pitstop retry %s has it try again", w.ID, w.Crew.GaveUp, w.Name)
	case w.Progress.At.IsZero():
		return s, usage("no step of %s has been told: that it goes on could not be seen", w.ID)
	case d.now().Sub(lastStep(w)) >= unusual(w):
		return s, usage("the crew of %s is silent: step %s was told %s ago", w.ID, events.Number(w.Progress.Step), events.Span(d.now().Sub(lastStep(w))))
	}
	for _, o := range w.Slices {
		if o.Condition != incident.Ready && !o.IsReleased() {
			return s, usage("%s of %s is %s already", o.Name, w.ID, o.State)
		}
	}
	return *found, d.saved(ctx, w)
}

// saved refuses a workload of which no complete checkpoint is known. Pitstop verifies one when an incident needs it, so where
// there has been none it is looked for here.
func (d deployment) saved(ctx context.Context, w incident.Workload) error {
	if !w.Progress.VerifiedAt.IsZero() {
		return nil
	}
	if w.Directory == "" {
		return usage("no checkpoint of %s is verified: no checkpoint directory is known, and the training would begin at its first step", w.ID)
	}
	looking, end := apart(ctx)
	_, err := checkpoint.Verify(looking, d.store, w.Directory, checkpoint.Want{})
	if err := end(err); err != nil {
		return usage("no checkpoint of %s is verified, and the training might begin at its first step: %s", w.ID, oneLine(err))
	}
	return nil
}

// lastStep is when a step was told last, in a line or on the crew's machine.
func lastStep(w incident.Workload) time.Time {
	if p := w.Progress; p.Stepped.After(p.At) {
		return p.Stepped
	}
	return w.Progress.At
}

// unusual is how long no step may be told of a training that runs: three times the longest time between two that was seen.
func unusual(w incident.Workload) time.Duration {
	if w.Progress.GapSeconds == 0 {
		return incident.NoGapFor
	}
	return max(incident.ResumeFor, 3*time.Duration(w.Progress.GapSeconds)*time.Second)
}

// drill has the slice meet the event and follows what becomes of it.
func (d deployment) drill(
	ctx context.Context, where place, l *ledger.Ledger, w incident.Workload, s incident.Slice, why string, lasts time.Duration, list prices, p *printer,
) (v verdict, err error) {
	v = verdict{Workload: w.ID, Slice: s.Name}
	api, err := d.cloud(ctx)
	if err != nil {
		return v, err
	}
	begun := d.now()
	// It is on the record before it happens: whoever finds the trouble finds who made it.
	word := incident.Ordered{Word: incident.Word{By: d.who(ctx), Why: why}, Verb: incident.VerbDrill, Text: "a maintenance event on " + s.Name}
	var left outbox
	if _, _, err := d.order(ctx, l, where, w.ID, word); err != nil && !errors.As(err, &left) {
		return v, err
	}
	op, err := api.Simulate(ctx, fleet.Ref(w, s))
	if err != nil {
		return v, err
	}
	p.heading("drill", "workload "+w.ID+" · "+s.Name+" in "+s.Zone+" · step "+events.Number(w.Progress.Step))
	row := func(at time.Time, word, colour, text, reason string) {
		p.row(at.UTC().Format("15:04:05"), word, colour, text, reason)
	}
	row(begun, "asked", bold, "simulate a maintenance event on "+s.Name, op)
	told, unread := 0, 0
	for d.now().Sub(begun) < lasts {
		looking, end := again(ctx)
		now, _, err := l.Workload(looking, w.ID)
		switch err = end(err); {
		case err == nil:
			w, unread = now, 0
		case ctx.Err() != nil || unread >= unreadFor:
			return v, fmt.Errorf("the drill goes on, and cannot be followed: %w", err)
		default:
			unread++
			if err := d.sleep(ctx, drillEvery); err != nil {
				return v, err
			}
			continue
		}
		in := drilled(w, begun)
		if in != nil {
			v.Incident, v.Noticed = in.ID, in.Opened.Sub(begun).Seconds()
			for lines := in.Timeline; told < len(lines); told++ {
				row(lines[told].At, string(lines[told].Kind), map[incident.LineKind]string{incident.LineDecided: bold}[lines[told].Kind], lines[told].Text, withCode(lines[told].Reason, string(lines[told].Code)))
			}
		}
		switch {
		case in == nil && d.now().Sub(begun) > noticedWithin:
			v.Text = "nothing was noticed within " + events.Span(noticedWithin) + ": look at patrol's log, and send a canary"
		case in != nil && !in.Closed.IsZero():
			v.Outcome, v.Cost = in.Outcome, list.costOf(w, *in, d.now())
			v.Passed = in.Outcome == incident.Resumed
			v.Text = strings.TrimSuffix(string(in.Outcome)+": "+in.Reason, ": ") + "; " + v.Cost.String()
		}
		if v.Text != "" {
			break
		}
		if err := d.sleep(ctx, drillEvery); err != nil {
			return v, err
		}
	}
	if v.Text == "" {
		v.Text = "it has not ended within " + lasts.String() + "; it goes on, and status follows it"
	}
	head, colour := "PASSED", green
	if !v.Passed {
		head, colour = "FAILED", red
	}
	tell(p.out, "  "+p.paint(colour, head)+"  "+v.Text)
	if v.Incident != "" {
		tell(p.out, fmt.Sprintf("          noticed after %s; pitstop incident %s tells it again", events.Span(time.Duration(v.Noticed*float64(time.Second))), v.Incident))
	}
	return v, nil
}

// drilled is the incident that was opened since a drill began.
func drilled(w incident.Workload, begun time.Time) *incident.Incident {
	for _, in := range []*incident.Incident{w.Incident, w.Closed} {
		if in != nil && !in.Opened.Before(begun) {
			return in
		}
	}
	return nil
}
