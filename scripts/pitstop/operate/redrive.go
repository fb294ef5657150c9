package operate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/scripts/pitstop/terminal"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/trigger"
)

// redriveCommand needs the names of the functions, by the topics that they read.
func (d verbs) redriveCommand(handlers map[string]string) *cobra.Command {
	var where deployment.Place
	var why string
	names := slices.Sorted(maps.Keys(handlers))
	names = slices.DeleteFunc(names, func(name string) bool { return handlers[name] == patrols })
	c := &cobra.Command{
		Use:   "redrive TOPIC",
		Short: "Publish the dead letters of a topic again",
		Long: "Publish the dead letters of a topic again, once you have removed the cause. A dead letter is a message that failed at\n" +
			"every delivery.\n" +
			"The topics are " + strings.Join(names, ", ") + ".\n\n" +
			"redrive drops a request whose incident is over, whose epoch is old or whose time is up, and prints that. Patrol has\n" +
			"published a new request by then if the incident still needs one. A letter leaves the subscription after it is published.\n" +
			"Its attributes, and the log line of the function that handles it, hold your name and your reason.\n\n" +
			"This needs roles/pubsub.subscriber on the dead-letter subscription, roles/pubsub.publisher on the topic and\n" +
			"roles/datastore.viewer.",
		Args: cli.OneName("topic", events.TopicRecreate),
		RunE: func(c *cobra.Command, args []string) error {
			topic := strings.TrimPrefix(args[0], where.Prefix)
			if !slices.Contains(names, topic) {
				return cli.Usage("no topic %s has dead letters; these have: %s", args[0], strings.Join(names, ", "))
			}
			l, err := d.Ledger(where)
			if err != nil {
				return err
			}
			from := "projects/" + where.Project + "/subscriptions/" + where.Prefix + handlers[topic] + "-dead-letters"
			broker, err := d.OpenDeadLetters(c.Context())
			if err != nil {
				return err
			}
			r := redrive{
				letters: broker, ledger: l, from: from, to: where.Topic(topic), word: evidence.Word{By: d.Caller(c.Context()), Why: why}, start: d.Now(),
				tell: func(line string) { terminal.Print(c.OutOrStdout(), line) }, seen: map[string]bool{},
			}
			return errors.Join(r.run(c.Context()), broker.Close())
		},
	}
	where.Flags(c)
	cli.WhyFlag(c, &why)
	return c
}

// patrols is the function that handles ticks. A lost tick has no dead letter.
const patrols = "patrol"

// redrive publishes the dead letters of one subscription again.
type redrive struct {
	letters deployment.DeadLetters
	ledger  *ledger.Ledger
	// from is the dead-letter subscription, to the topic of the letters.
	from, to string
	word     evidence.Word
	start    time.Time
	tell     func(line string)

	// seen are the IDs of letters that were published or dropped. kept are the deliveries of all others.
	seen           map[string]bool
	kept           []string
	sent, outdated int
}

// run handles letters until none come. It leaves letters that are newer than its start.
func (r *redrive) run(ctx context.Context) (err error) {
	defer func() { err = errors.Join(err, r.giveBack(ctx)) }()
	for {
		batch, err := r.letters.Pull(ctx, r.from)
		if err != nil {
			return fmt.Errorf("pull %s: %w", r.from, err)
		}
		if len(batch) == 0 {
			break
		}
		for i, m := range batch {
			switch at := m.GetMessage().GetPublishTime(); {
			case r.seen[m.GetMessage().GetMessageId()]: // its acknowledgement came too late, or was lost
				err = r.letters.Acknowledge(ctx, r.from, m.GetAckId())
			case at != nil && at.AsTime().After(r.start):
				r.kept = append(r.kept, m.GetAckId())
			default:
				err = r.handle(ctx, m)
			}
			if err == nil {
				continue
			}
			for _, m := range batch[i:] {
				if !r.seen[m.GetMessage().GetMessageId()] {
					r.kept = append(r.kept, m.GetAckId())
				}
			}
			return fmt.Errorf("%w; %d letters were published again before that", err, r.sent)
		}
	}
	r.tell(fmt.Sprintf("%s: %d published again on %s, %d dropped as outdated", r.from, r.sent, r.to, r.outdated))
	return nil
}

// giveBack returns letters that were only held, so that the next redrive finds them. It does so after an interrupt too.
func (r *redrive) giveBack(ctx context.Context) error {
	if !google.MayGoOn(ctx) {
		return nil // Pub/Sub does not answer. It delivers them again by itself
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deployment.PullFor)
	defer cancel()
	for some := range slices.Chunk(r.kept, 500) { // a request may have 512 KiB
		if err := r.letters.GiveBack(ctx, r.from, some); err != nil {
			return fmt.Errorf("give back to %s: %w; Pub/Sub delivers these letters again within 10 minutes", r.from, err)
		}
	}
	return nil
}

func (r *redrive) handle(ctx context.Context, m *pubsubpb.ReceivedMessage) error {
	msg := m.GetMessage()
	name := msg.GetAttributes()["ce-type"]
	if name == "" {
		name = "message"
	}
	name += " " + msg.GetMessageId()
	why, err := r.whyOutdated(ctx, msg)
	if err != nil {
		return err
	}
	if why != "" {
		r.outdated++
		r.seen[msg.GetMessageId()] = true
		r.tell(name + ": dropped, " + why)
		return r.letters.Acknowledge(ctx, r.from, m.GetAckId())
	}
	attributes := maps.Clone(msg.GetAttributes())
	if attributes == nil {
		attributes = map[string]string{}
	}
	maps.DeleteFunc(attributes, func(key, _ string) bool { return strings.HasPrefix(key, "CloudPubSubDeadLetter") })
	attributes[trigger.RedrivenBy] = r.word.By
	if r.word.Why != "" {
		attributes[trigger.RedrivenWhy] = r.word.Why
	}
	again := &pubsubpb.PubsubMessage{Data: msg.GetData(), Attributes: attributes, OrderingKey: msg.GetOrderingKey()}
	if err := r.letters.Publish(ctx, r.to, again); err != nil {
		return fmt.Errorf("publish %s on %s: %w", name, r.to, err)
	}
	r.sent++
	r.seen[msg.GetMessageId()] = true
	r.tell(name + ": published again")
	return r.letters.Acknowledge(ctx, r.from, m.GetAckId())
}

// whyOutdated says why a request is outdated. Its function judges all other messages, and those of a newer release.
func (r *redrive) whyOutdated(ctx context.Context, m *pubsubpb.PubsubMessage) (string, error) {
	eventType := m.GetAttributes()["ce-type"]
	if !events.IsRequest(eventType) {
		return "", nil
	}
	q, err := events.DecodeRequest(eventType, m.GetData())
	switch {
	case errors.Is(err, events.ErrNewer):
		return "", nil
	case err != nil:
		return cli.OneLine(err), nil
	}
	w, _, err := r.ledger.Workload(ctx, q.Workload)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return "the workload " + q.Workload + " is not in the ledger", nil
	case errors.Is(err, events.ErrNewer):
		return "", nil
	case err != nil:
		return "", err
	}
	if _, err := w.Fence(q.Pointer, r.start); err != nil {
		return cli.OneLine(err), nil
	}
	return "", nil
}
