package world

import (
	"context"
	"errors"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
)

// counting counts the failures of a provider's calls by their class, whether a function turns them into evidence or handles
// them by itself.
type counting struct {
	provider.Provider
	met func(reason.FailureClass)
}

func (p counting) count(err error) error {
	var failure *provider.Error
	if errors.As(err, &failure) {
		p.met(failure.Class)
	}
	return err
}

func (p counting) Read(ctx context.Context, r provider.Ref) (provider.Slice, error) {
	s, err := p.Provider.Read(ctx, r)
	if err == nil && s.Condition == evidence.Gone {
		p.met(reason.NotFound) // which is no error there
	}
	return s, p.count(err)
}

func (p counting) List(ctx context.Context, project, zone string) (provider.Listing, error) {
	l, err := p.Provider.List(ctx, project, zone)
	return l, p.count(err)
}

func (p counting) Zones(ctx context.Context, project string) ([]string, error) {
	z, err := p.Provider.Zones(ctx, project)
	return z, p.count(err)
}

func (p counting) Create(ctx context.Context, r provider.Ref, spec []byte, labels map[string]string, requestID string) (string, error) {
	op, err := p.Provider.Create(ctx, r, spec, labels, requestID)
	return op, p.count(err)
}

func (p counting) Creatable(ctx context.Context, r provider.Ref, spec []byte, labels map[string]string, requestID string) error {
	return p.count(p.Provider.Creatable(ctx, r, spec, labels, requestID))
}

func (p counting) Delete(ctx context.Context, r provider.Ref, requestID string) (string, error) {
	op, err := p.Provider.Delete(ctx, r, requestID)
	return op, p.count(err)
}

func (p counting) Maintain(ctx context.Context, held []provider.Ref) (string, error) {
	op, err := p.Provider.Maintain(ctx, held)
	return op, p.count(err)
}

func (p counting) Start(ctx context.Context, r provider.Ref) (string, error) {
	op, err := p.Provider.Start(ctx, r)
	return op, p.count(err)
}

func (p counting) SetMetadata(ctx context.Context, r provider.Ref, key, value string) error {
	return p.count(p.Provider.SetMetadata(ctx, r, key, value))
}

func (p counting) Hosts(ctx context.Context, r provider.Ref) ([]string, error) {
	h, err := p.Provider.Hosts(ctx, r)
	return h, p.count(err)
}

func (p counting) Crews(ctx context.Context, r provider.Ref) ([]events.CrewState, error) {
	c, err := p.Provider.Crews(ctx, r)
	return c, p.count(err)
}

func (p counting) Operations(ctx context.Context, project, zone string, names ...string) ([]provider.Operation, error) {
	ops, err := p.Provider.Operations(ctx, project, zone, names...)
	for _, op := range ops {
		if op.Failure != nil {
			p.met(op.Failure.Class)
		}
	}
	return ops, p.count(err)
}
