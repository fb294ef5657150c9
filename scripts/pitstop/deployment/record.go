package deployment

import (
	"context"
	"log/slog"

	"github.com/google/uuid"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/orders"
	"pitstop.internal/shared/policy"
)

// UnpublishedError says that a word is stored, and that patrol has to publish the requests that follow.
type UnpublishedError struct{ error }

// Give carries out an order. Its error is a orders.RefusedError where the order is not possible, and UnpublishedError if it is stored and a request could
// not be published.
func (d Deployment) Give(ctx context.Context, l *ledger.Ledger, where Place, o orders.Order) (Workload, error) {
	a, k, err := d.advancer(ctx, l, where)
	if err != nil {
		return Workload{}, err
	}
	document, err := orders.Apply(ctx, a, o)
	return ShownAt(document, d.Now()), k.left(err)
}

// Record keeps what a person did to a workload without its document. Its error is that of Give.
func (d Deployment) Record(ctx context.Context, l *ledger.Ledger, where Place, id string, e evidence.Ordered) error {
	a, k, err := d.advancer(ctx, l, where)
	if err == nil {
		_, err = a.Advance(ctx, id, e)
	}
	return k.left(err)
}

// advancer stores what a person says, by compare-and-swap, with the requests that follow in the outbox.
func (d Deployment) advancer(ctx context.Context, l *ledger.Ledger, where Place) (*ledger.Advancer, *publishing, error) {
	source, known, err := d.Policies(ctx, l)
	if err != nil {
		return nil, nil, err
	}
	var policies ledger.Policies = unreadPolicies{}
	if known {
		policies = source
	}
	run := "operator/" + uuid.NewString()
	k := &publishing{Publisher: d.Publisher(where.Topics())}
	return &ledger.Advancer{
		Ledger: l, Policies: policies, Publisher: k, Now: d.Now, Sleep: ledger.Sleep, Source: "//pitstop/operator",
		Cause: func(context.Context) string { return run }, Log: slog.New(slog.DiscardHandler), Saved: d.Recorded,
	}, k, nil
}

// unreadPolicies is the policy under which a person's word is stored while the deployment's own policy cannot be read. Patrol takes the
// next step within a minute.
type unreadPolicies struct{}

func (unreadPolicies) For(_ context.Context, label string) policy.Policy {
	return policy.Policy{Name: label, Unreadable: "what the deployment allows is not known"}
}

// publishing remembers the last error of publishing.
type publishing struct {
	ledger.Publisher
	why error
}

// left is the error of a word, or that of publishing what follows from it.
func (k *publishing) left(err error) error {
	if err == nil && k.why != nil {
		return UnpublishedError{k.why}
	}
	return err
}

// Takes implements ledger.Taker: notifications about a person's word are sent too.
func (*publishing) Takes(string) bool { return true }

func (k *publishing) Publish(ctx context.Context, e events.Envelope) error {
	err := k.Publisher.Publish(ctx, e)
	if e.Type == events.TypeIncidentUpdated && status.Code(err) == codes.NotFound {
		return nil // a deployment without notifications has no such topic
	}
	if err != nil {
		k.why = err
	}
	return err
}
