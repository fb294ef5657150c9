package provider

import (
	"context"
	"errors"
	"slices"
	"strings"

	"pitstop.internal/events"
	"pitstop.internal/shared/reason"
)

// The names of the providers in a workload's document.
const (
	CloudTPU = "cloud-tpu"
	GKE      = "gke"
)

// Of names the provider of a slice, or of a listing, by its zone: only the scope of a Job, or of a cluster, has a slash.
func Of(zone string) string {
	if strings.Contains(zone, "/") {
		return GKE
	}
	return CloudTPU
}

// Listed is what List reads to find the slices of a zone: the zone, or the cluster LOCATION/CLUSTER of a scope.
func Listed(zone string) string {
	if in := strings.SplitN(zone, "/", 3); len(in) == 3 {
		return in[0] + "/" + in[1]
	}
	return zone
}

// Set holds providers by name, and passes each call to the one whose zone it is about. A call to one that is not there is refused with
// incident.Invalid.
type Set map[string]Provider

var _ Provider = Set{}

// Has reports whether the provider of a zone is there.
func (s Set) Has(zone string) bool { return s[Of(zone)] != nil }

// of is the provider of a zone.
func (s Set) of(zone, call string) (Provider, error) {
	if p := s[Of(zone)]; p != nil {
		return p, nil
	}
	return nil, &Error{Call: call + " in " + zone, Class: reason.Invalid, Message: "this function does not call " + Of(zone)}
}

// Read implements Provider.
func (s Set) Read(ctx context.Context, r Ref) (Slice, error) {
	p, err := s.of(r.Zone, "read "+r.Name)
	if err != nil {
		return Slice{}, err
	}
	return p.Read(ctx, r)
}

// List implements Provider.
func (s Set) List(ctx context.Context, project, zone string) (Listing, error) {
	p, err := s.of(zone, "list slices")
	if err != nil {
		return Listing{}, err
	}
	return p.List(ctx, project, zone)
}

// Zones implements Provider: those of all providers.
func (s Set) Zones(ctx context.Context, project string) ([]string, error) {
	var zones []string
	var faults []error
	for _, name := range s.names() {
		found, err := s[name].Zones(ctx, project)
		zones, faults = append(zones, found...), append(faults, err)
	}
	return zones, errors.Join(faults...)
}

func (s Set) names() []string {
	return slices.DeleteFunc([]string{CloudTPU, GKE}, func(name string) bool { return s[name] == nil })
}

// Create implements Provider.
func (s Set) Create(ctx context.Context, r Ref, spec []byte, labels map[string]string, requestID string) (string, error) {
	p, err := s.of(r.Zone, "create "+r.Name)
	if err != nil {
		return "", err
	}
	return p.Create(ctx, r, spec, labels, requestID)
}

// Creatable implements Provider.
func (s Set) Creatable(ctx context.Context, r Ref, spec []byte, labels map[string]string, requestID string) error {
	p, err := s.of(r.Zone, "create "+r.Name)
	if err != nil {
		return err
	}
	return p.Creatable(ctx, r, spec, labels, requestID)
}

// Delete implements Provider.
func (s Set) Delete(ctx context.Context, r Ref, requestID string) (string, error) {
	p, err := s.of(r.Zone, "delete "+r.Name)
	if err != nil {
		return "", err
	}
	return p.Delete(ctx, r, requestID)
}

// Operations implements Provider.
func (s Set) Operations(ctx context.Context, project, zone string, names ...string) ([]Operation, error) {
	p, err := s.of(zone, "list operations")
	if err != nil {
		return nil, err
	}
	return p.Operations(ctx, project, zone, names...)
}

// Start implements Starter.
func (s Set) Start(ctx context.Context, r Ref) (string, error) {
	p, err := s.of(r.Zone, "start "+r.Name)
	if err != nil {
		return "", err
	}
	return p.Start(ctx, r)
}

// Maintain implements Maintainer. The slices have one provider.
func (s Set) Maintain(ctx context.Context, of []Ref) (string, error) {
	if len(of) == 0 {
		return "", &Error{Call: "maintain", Class: reason.Invalid, Message: "no slice is named"}
	}
	p, err := s.of(of[0].Zone, "maintain "+of[0].Name)
	if err != nil {
		return "", err
	}
	return p.Maintain(ctx, of)
}

// SetMetadata implements Messenger.
func (s Set) SetMetadata(ctx context.Context, r Ref, key, value string) error {
	p, err := s.of(r.Zone, "set "+key+" of "+r.Name)
	if err != nil {
		return err
	}
	return p.SetMetadata(ctx, r, key, value)
}

// Hosts implements Guests.
func (s Set) Hosts(ctx context.Context, r Ref) ([]string, error) {
	p, err := s.of(r.Zone, "read the host names of "+r.Name)
	if err != nil {
		return nil, err
	}
	return p.Hosts(ctx, r)
}

// Crews implements Guests.
func (s Set) Crews(ctx context.Context, r Ref) ([]events.CrewState, error) {
	p, err := s.of(r.Zone, "read the crews of "+r.Name)
	if err != nil {
		return nil, err
	}
	return p.Crews(ctx, r)
}

// Leftovers implements Janitor.
func (s Set) Leftovers(ctx context.Context, project, zone string) (all []Leftover, unread []string, err error) {
	p, err := s.of(zone, "list leftovers")
	if err != nil {
		return nil, nil, err
	}
	return p.Leftovers(ctx, project, zone)
}
