package checkpoint

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/api/storage/v1"

	"pitstop.internal/shared/topology"
)

// Location is where a bucket keeps its objects, and for how long.
type Location struct {
	// Name is the storage's own: us-west4, us, nam4, us-west4-a.
	Name string
	// regions are the regions that hold the objects, as far as the storage says.
	regions []string
	// deletes are the conditions under which the bucket deletes an object by itself.
	deletes []*storage.BucketLifecycleRuleCondition
}

// dualRegions are the pairs with a name of their own; other pairs list their regions themselves.
// https://cloud.google.com/storage/docs/locations#location-dr
var dualRegions = map[string][]string{
	"asia1": {"asia-northeast1", "asia-northeast2"},
	"eur4":  {"europe-north1", "europe-west4"},
	"nam4":  {"us-central1", "us-east1"},
}

// continents are the first words of a multi-region's regions. Reading from it costs the same in all of them.
var continents = map[string]string{"asia": "asia-", "eu": "europe-", "us": "us-"}

// Covers reports whether the objects are in a region, as far as known.
func (l Location) Covers(region string) bool {
	if c := continents[l.Name]; c != "" && l.regions == nil {
		return strings.HasPrefix(region, c)
	}
	return slices.Contains(l.regions, region)
}

// Holds reports whether the objects are in a region for certain. A multi-region covers its regions, and does not say which of
// them holds an object.
func (l Location) Holds(region string) bool { return slices.Contains(l.regions, region) }

// Regions are those that hold the objects for certain; none is known of a multi-region.
func (l Location) Regions() []string { return slices.Clone(l.regions) }

// String is the storage's name of the location. A pair that an owner has chosen has that of its continent, so its regions follow.
func (l Location) String() string {
	if continents[l.Name] == "" || len(l.regions) == 0 {
		return l.Name
	}
	return l.Name + " (" + strings.Join(l.regions, " and ") + ")"
}

// Deletes says when a lifecycle rule of the bucket deletes the object of a URI by itself; empty is never. The object is small, and
// is written without a time of its own.
func (l Location) Deletes(uri string) string {
	_, object, err := splitObject("locate", uri)
	if err != nil {
		return ""
	}
	for _, c := range l.deletes {
		named := func(parts []string, has func(s, part string) bool) bool {
			return len(parts) == 0 || slices.ContainsFunc(parts, func(part string) bool { return has(object, part) })
		}
		former := c.IsLive != nil && !*c.IsLive || c.DaysSinceNoncurrentTime > 0 || c.NoncurrentTimeBefore != "" || c.NumNewerVersions > 0
		switch {
		case former, c.CustomTimeBefore != "", c.DaysSinceCustomTime > 0, c.SizeAboveBytes > 0, c.MatchesPattern != "",
			!named(c.MatchesPrefix, strings.HasPrefix), !named(c.MatchesSuffix, strings.HasSuffix):
			continue
		case c.Age != nil:
			return fmt.Sprintf("%d days after it was written", *c.Age)
		case c.CreatedBefore != "":
			return "if it was written before " + oneLine(c.CreatedBefore)
		}
		return "at once"
	}
	return ""
}

// Location returns the location of a directory's bucket. It needs the permission storage.buckets.get.
func (b *Bucket) Location(ctx context.Context, dir string) (Location, error) {
	bucket, _, err := splitDir("locate", dir)
	if err != nil {
		return Location{}, err
	}
	svc, err := b.service(ctx)
	if err != nil {
		return Location{}, failed("locate", dir, err)
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	found, err := svc.Buckets.Get(bucket).Context(ctx).Fields("location", "locationType", "customPlacementConfig", "lifecycle").Do()
	if err != nil {
		return Location{}, failed("locate", dir, err)
	}
	l := Location{Name: strings.ToLower(found.Location)}
	if found.Lifecycle != nil {
		for _, r := range found.Lifecycle.Rule {
			if r != nil && r.Action != nil && r.Action.Type == "Delete" && r.Condition != nil {
				l.deletes = append(l.deletes, r.Condition)
			}
		}
	}
	switch {
	case l.Name == "":
		return l, &Error{Op: "locate", URI: dir, Kind: ErrTransient, Text: "the answer names no location"}
	case found.CustomPlacementConfig != nil && len(found.CustomPlacementConfig.DataLocations) > 0:
		for _, r := range found.CustomPlacementConfig.DataLocations {
			l.regions = append(l.regions, strings.ToLower(r))
		}
	case dualRegions[l.Name] != nil:
		l.regions = dualRegions[l.Name]
	case found.LocationType == "zone":
		l.regions = []string{topology.Region(l.Name)}
	case continents[l.Name] == "":
		l.regions = []string{l.Name}
	}
	return l, nil
}

// Location implements Locator.
func (m Mux) Location(ctx context.Context, dir string) (Location, error) {
	s, err := m.pick("locate", dir)
	if err != nil {
		return Location{}, err
	}
	l, ok := s.(Locator)
	if !ok {
		return Location{}, invalid("locate", dir, "a file is in no region")
	}
	return l.Location(ctx, dir)
}

// Locator is a store that knows the location of its directories.
type Locator interface {
	Location(ctx context.Context, dir string) (Location, error)
}
