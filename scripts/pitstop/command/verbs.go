package main

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"pitstop.internal/events"
	"pitstop.internal/scripts/scenario"
	"pitstop.internal/shared/fleet"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/publish"
)

// needs is what every verb that says something needs.
const needs = "Who says it and why stands in the incident's story and on the workload. It needs roles/datastore.user. What follows is decided under the\n" +
	"deployment's policy and published on its request topics (roles/pubsub.publisher); where you may read or publish neither, patrol goes on\n" +
	"within a minute."

func whyFlag(c *cobra.Command, why *string) {
	c.Flags().StringVar(why, "why", "", "why, for those who read it")
}

// unread is the policy under which a person's word is taken in where what the deployment allows is not known: it is stored, and
// patrol goes on with it within a minute.
type unread struct{}

func (unread) For(_ context.Context, label string) policy.Policy {
	return policy.Policy{Name: label, Unreadable: "what the deployment allows is not known"}
}

// publishing remembers why something could not be published.
type publishing struct {
	ledger.Publisher
	why error
}

// Takes implements ledger.Taker: what people have to hear of a person's word is sent too.
func (*publishing) Takes(string) bool { return true }

func (k *publishing) Publish(ctx context.Context, e events.Envelope) error {
	err := k.Publisher.Publish(ctx, e)
	if e.Type == events.TypeIncidentUpdated && status.Code(err) == codes.NotFound {
		return nil // without its topic nobody is to be told
	}
	if err != nil {
		k.why = err
	}
	return err
}

// topics are those of a deployment, in full.
func (a place) topics() publish.Topics {
	_, travels := scenario.Wiring()
	topics := publish.Topics{}
	for typ, topic := range travels {
		topics[typ] = a.topic(topic)
	}
	return topics
}

func (a place) topic(name string) string {
	return "projects/" + a.project + "/topics/" + a.prefix + strings.TrimPrefix(name, a.prefix)
}

// order has a workload learn what a person says: by compare-and-swap, with what follows in its outbox. It reports whether that
// was news, and returns the fault that left something in the outbox, if one did.
func (d deployment) order(ctx context.Context, l *ledger.Ledger, where place, id string, e incident.Evidence) (w incident.Workload, news bool, err error) {
	source, known, err := d.policies(ctx, l)
	if err != nil {
		return w, false, err
	}
	var policies ledger.Policies = unread{}
	if known {
		policies = source
	}
	run := "operator/" + uuid.NewString()
	k := &publishing{Publisher: d.publish(where.topics())}
	a := ledger.Advancer{
		Ledger: l, Policies: policies, Publisher: k, Now: d.now, Sleep: ledger.Sleep, Source: "//pitstop/operator",
		Cause: func(context.Context) string { return run }, Log: slog.New(slog.DiscardHandler),
	}
	w, news, err = a.AdvanceChanged(ctx, id, e)
	if err == nil && k.why != nil {
		err = outbox{k.why}
	}
	return w, news, err
}

// outbox says that a word is stored, and what follows from it is left for patrol to send.
type outbox struct{ error }

// told tells what came of a word.
func (d deployment) told(c *cobra.Command, err error, text string) error {
	var left outbox
	switch {
	case errors.As(err, &left):
		tell(c.OutOrStdout(), text)
		tell(c.OutOrStdout(), "it is stored; patrol sends what follows within a minute, because it cannot be published from here: "+oneLine(left))
		return nil
	case err != nil:
		return err
	}
	tell(c.OutOrStdout(), text)
	return nil
}

// oneName is for verbs about one thing.
func oneName(what, as string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != 1 {
			return usage("%s takes one %s, as in %s; got %d", c.Name(), what, as, len(args))
		}
		return nil
	}
}

// worded is a command by which a person gives a word about one thing, and says why.
func worded(c *cobra.Command, run func(c *cobra.Command, where place, why, about string) error) *cobra.Command {
	var where place
	var why string
	c.RunE = func(c *cobra.Command, args []string) error { return run(c, where, why, args[0]) }
	where.flags(c)
	whyFlag(c, &why)
	return c
}

// openIncident finds the workload on which an incident is open.
func (d deployment) openIncident(ctx context.Context, where place, id string) (*ledger.Ledger, incident.Workload, error) {
	return d.atIncident(ctx, where, id, func(incident.Workload, incident.Incident) bool { return false })
}

// atIncident finds the workload on which an incident is open, or on which something is still to follow from one that is over.
func (d deployment) atIncident(
	ctx context.Context, where place, id string, follows func(incident.Workload, incident.Incident) bool,
) (*ledger.Ledger, incident.Workload, error) {
	l, err := d.at(where)
	if err != nil {
		return nil, incident.Workload{}, err
	}
	w, in, err := find(ctx, l, id)
	if err == nil && (w.Incident == nil || w.Incident.ID != in.ID) && !follows(w, in) {
		err = usage("%s is over: it ended %s at %s", id, in.Outcome, in.Closed.UTC().Format("2006-01-02 15:04"))
	}
	return l, w, err
}

func (d deployment) approveCommand() *cobra.Command {
	return worded(&cobra.Command{
		Use:   "approve INCIDENT",
		Short: "Say yes to what an incident asks for",
		Long: "Say yes to what an incident waits for, because the policy says ask. The yes is for that question of that incident alone: what it asks\n" +
			"later, and the next incident, wait again. The policy, a pause and the brake still count right before the call.\n\n" + needs,
		Args: oneName("incident", "llama-8b-20261112-3"),
	}, func(c *cobra.Command, where place, why, about string) error {
		l, w, err := d.openIncident(c.Context(), where, about)
		if err != nil {
			return err
		}
		question := w.Question()
		if question == "" {
			return usage("%s waits for nobody's yes: it is %s", about, w.Incident.Phase)
		}
		e := incident.Approved{Word: incident.Word{By: d.who(c.Context()), Why: why}, Incident: w.Incident.ID, Action: w.Incident.Asked}
		after, news, err := d.order(c.Context(), l, where, w.ID, e)
		if err == nil && !news {
			return usage("%s does not ask that any more; status says how it stands", about)
		}
		text := w.ID + ": approved by " + e.By + ": " + question
		if in := after.Incident; in != nil && in.Granted {
			text += "; patrol goes on with it within a minute, because the policy is not read from here"
		}
		return d.told(c, err, text)
	})
}

func (d deployment) cancelCommand() *cobra.Command {
	return worded(&cobra.Command{
		Use:   "cancel INCIDENT",
		Short: "Take an open incident over: Pitstop does nothing more about it",
		Long: "Take an open incident over. It ends released; nothing more is asked for, deleted or created for its sake, and what it was about opens no\n" +
			"other one until the slice is usable again, or retry says so. Maintenance that it was about comes unasked, unless its window is moved.\n" +
			"What Pitstop itself has ordered, and training never ran in, it still deletes; pause holds that too.\n" +
			"Of an incident that ended escalated it keeps what stands idle, where the policy's when_escalated is delete, until a deletion is called.\n" +
			"A call that was begun a moment ago may still take effect: it is named.\n\n" + needs,
		Args: oneName("incident", "llama-8b-20261112-3"),
	}, func(c *cobra.Command, where place, why, about string) error {
		l, w, err := d.atIncident(c.Context(), where, about, func(w incident.Workload, in incident.Incident) bool { return w.LeftIdle(in.ID) })
		if err != nil {
			return err
		}
		e := incident.Cancelled{Word: incident.Word{By: d.who(c.Context()), Why: why}}
		over, idle := "", ""
		switch in := w.Incident; {
		case in == nil:
			e.Incident, idle = w.Idle.Incident, w.Idle.Incident
			over = "nothing is to be deleted any more of what " + idle + " left idle"
		case in.Phase == incident.Clearing:
			return usage("%s is over but for its clean-up: it deletes what it has ordered itself; pause %s holds that", about, w.Name)
		default:
			e.Incident, idle = in.ID, in.Of
			over = in.ID + " has ended meanwhile, or is being cleaned up"
		}
		after, news, err := d.order(c.Context(), l, where, w.ID, e)
		if err == nil && !news {
			return usage("%s; status says how it stands", over)
		}
		lines := []string{w.ID + ": cancelled by " + e.By}
		if idle != "" {
			lines[0] += ": what " + idle + " left idle is kept, and paid for, until you delete it" + butFor(after)
		}
		if w.Incident != nil {
			for _, t := range w.Incident.Tasks {
				if t.UnderWay(d.now()) {
					lines = append(lines, "a call may still take effect: "+waiting(t, d.now()))
				}
			}
		}
		if after.Incident != nil && after.Incident.Phase == incident.Clearing {
			lines = append(lines, "what it has ordered itself is deleted first; status shows that")
		}
		return d.told(c, err, strings.Join(lines, "\n"))
	})
}

// butFor names the slices whose deletion was called before the word that keeps the others.
func butFor(w incident.Workload) string {
	var names []string
	for _, s := range w.Slices {
		if s.Discarded.Known() && s.Discarded.Same(s.Incarnation) {
			names = append(names, s.Name)
		}
	}
	if names == nil {
		return ""
	}
	return ", but for " + strings.Join(names, ", ") + ": its deletion was called before"
}

func (d deployment) retryCommand() *cobra.Command {
	return worded(&cobra.Command{
		Use:   "retry WORKLOAD",
		Short: "Have tried again what was refused or given up",
		Long: "Have tried again what was refused or given up, now that what stood in the way is mended. Of an open incident, what waits for its next\n" +
			"try is asked for at once, and every zone anew. Without one, an incident is opened: slices that are not usable are looked at and then\n" +
			"replaced as the policy allows, and a crew that has given up, or is silent, is asked for another attempt. What was spent without\n" +
			"progress is forgotten. Training that goes on is left alone.\n\n" + needs,
		Args: oneName("workload", "llama-8b"),
	}, func(c *cobra.Command, where place, why, about string) error {
		l, w, err := d.one(c.Context(), where, about)
		if err != nil {
			return err
		}
		if why := w.NothingToRetry(d.now()); why != "" {
			return usage("there is nothing to retry of %s: %s", w.ID, why)
		}
		e := incident.Retried{Word: incident.Word{By: d.who(c.Context()), Why: why}}
		after, news, err := d.order(c.Context(), l, where, w.ID, e)
		if err == nil && !news {
			return usage("%s has moved on meanwhile; status says how it stands", w.ID)
		}
		text := w.ID + ": tried again"
		if after.Incident != nil {
			text += " in " + after.Incident.ID
			if w.Incident == nil || w.Incident.ID != after.Incident.ID {
				text += "; patrol looks within a minute"
			}
		}
		return d.told(c, err, text)
	})
}

// one finds the one workload that is named.
func (d deployment) one(ctx context.Context, where place, name string) (*ledger.Ledger, incident.Workload, error) {
	l, err := d.at(where)
	if err != nil {
		return nil, incident.Workload{}, err
	}
	found, err := workloads(ctx, l, []string{name})
	if err == nil && len(found) > 1 {
		var ids []string
		for _, w := range found {
			ids = append(ids, w.ID)
		}
		err = usage("%s may be %s: name the whole ID", name, strings.Join(ids, " or "))
	}
	if err != nil {
		return nil, incident.Workload{}, err
	}
	return l, found[0], nil
}

func (d deployment) attachCommand() *cobra.Command {
	var where place
	var why, name string
	c := &cobra.Command{
		Use:   "attach WORKLOAD --policy POLICY",
		Short: "Put a workload under a policy, so that Pitstop acts on it",
		Long: "Put a workload under a policy: set the label " + events.LabelPolicy + " on each of its TPUs, to a preset (watch, spot, reserved) or a name of the\n" +
			"policy file. The label is the one place where a policy is named, so this is what gcloud would do, and a record of it; patrol reads it\n" +
			"within a minute. It needs roles/tpu.admin, or tpu.nodes.get and tpu.nodes.update, and roles/datastore.user to record it.",
		Args: oneName("workload", "llama-8b"),
		RunE: func(c *cobra.Command, args []string) error {
			if name == "" {
				return usage("--policy is missing: a preset (watch, spot, reserved), or a name of the policy file")
			}
			return d.label(c, where, args[0], name, incident.Ordered{Word: incident.Word{Why: why}, Verb: incident.VerbAttach, Text: "to policy " + name})
		},
	}
	where.flags(c)
	whyFlag(c, &why)
	c.Flags().StringVar(&name, "policy", "", "the policy: a preset, or a name of the policy file")
	return c
}

func (d deployment) detachCommand() *cobra.Command {
	return worded(&cobra.Command{
		Use:   "detach WORKLOAD",
		Short: "Take a workload out of its policy, so that it is only watched",
		Long: "Take a workload out of its policy: take the label " + events.LabelPolicy + " away from each of its TPUs. It is watched from then on, and nothing is done\n" +
			"about it. An open incident stops at its next step, once patrol has read that, within a minute; cancel and pause are faster.\n" +
			"It needs what attach needs.",
		Args: oneName("workload", "llama-8b"),
	}, func(c *cobra.Command, where place, why, about string) error {
		return d.label(c, where, about, "", incident.Ordered{Word: incident.Word{Why: why}, Verb: incident.VerbDetach})
	})
}

// label sets the policy's label on every TPU of a workload, and records that.
func (d deployment) label(c *cobra.Command, where place, workload, value string, e incident.Ordered) error {
	ctx, out := c.Context(), c.OutOrStdout()
	l, w, err := d.one(ctx, where, workload)
	if err != nil {
		return err
	}
	warning, err := d.knows(ctx, l, value)
	if err != nil {
		return err
	}
	for _, s := range w.Slices {
		if !s.Legacy || s.Condition == incident.Gone {
			continue
		}
		wayOut := "with the label " + events.LabelPolicy + "=" + value
		if value == "" {
			wayOut = "without the label " + events.LabelPolicy + ", or pause " + w.Name
		}
		return usage("%s in %s is a legacy node, which keeps the labels that it was created with: create it anew %s", s.Name, s.Zone, wayOut)
	}
	api, err := d.cloud(ctx)
	if err != nil {
		return err
	}
	if warning != "" {
		tell(out, warning)
	}
	e.By = d.who(ctx)
	var failed []error
	set := 0
	for _, s := range w.Slices {
		if s.Condition == incident.Gone {
			tell(out, s.Name+": it is gone, and cannot be labelled")
			continue
		}
		if err := api.SetLabel(ctx, fleet.Ref(w, s), events.LabelPolicy, value); err != nil {
			failed = append(failed, err)
			continue
		}
		set++
		if value == "" {
			tell(out, s.Name+" in "+s.Zone+": the label is taken away")
		} else {
			tell(out, s.Name+" in "+s.Zone+": labelled "+events.LabelPolicy+"="+value)
		}
	}
	if set > 0 {
		_, _, err = d.order(ctx, l, where, w.ID, e)
		var left outbox
		if err != nil && !errors.As(err, &left) {
			failed = append(failed, err)
		}
	}
	return errors.Join(failed...)
}

// knows checks that a policy is one that the deployment knows, and warns where its file cannot be read from here: the functions
// read it as another account, and a label that names no policy is watched.
func (d deployment) knows(ctx context.Context, l *ledger.Ledger, name string) (warning string, err error) {
	if name == "" || policy.Preset(name) {
		return "", nil
	}
	s, err := l.Settings(ctx)
	if errors.Is(err, ledger.ErrNotFound) {
		return "", nil // nobody can tell
	}
	if err != nil {
		return "", err
	}
	if s.Policy.URI == "" {
		return "", usage("--policy %s: the deployment has no policy file; there are the presets watch, spot and reserved", name)
	}
	raw, err := d.read(ctx, s.Policy.URI)
	if err != nil {
		return "whether " + s.Policy.URI + " holds a policy " + name + " is not known; if it does not, it is only watched: " + oneLine(err), ctx.Err()
	}
	f, err := policy.Parse(raw)
	if err != nil {
		return "", err
	}
	if names := f.Names(); !slices.Contains(names, name) {
		return "", usage("--policy %s: %s holds no such policy but %s", name, s.Policy.URI, strings.Join(names, ", "))
	}
	return "", nil
}
