package deployment

import (
	"context"
	"errors"

	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
)

// Policies are those of a deployment. Its patrol records where they are and what the deployment allows. Before that, known is false:
// then there are presets alone, without a ceiling.
func (d Deployment) Policies(ctx context.Context, l *ledger.Ledger) (source *policy.Source, known bool, err error) {
	s, err := l.Settings(ctx)
	switch {
	case errors.Is(err, ledger.ErrNotFound):
		return policy.NewSource("", nil, policy.Everything(), d.Now), false, nil
	case err != nil:
		return nil, false, err
	}
	return s.Policy.Source(d.ReadPolicy), true, nil
}

// ReadPolicy reads the policy file. The verbs go on without it.
func (d Deployment) ReadPolicy(ctx context.Context, uri string) ([]byte, error) {
	ctx, end := google.OptionalQuestion(ctx)
	raw, err := d.ReadFile(ctx, uri)
	return raw, end(err)
}
