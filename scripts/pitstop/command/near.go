package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pitstop.internal/events"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/topology"
)

// Contents of a directory.
const (
	holdsCheckpoints = "checkpoints"
	holdsData        = "data"
)

// directory is one that training writes its checkpoints into or reads its data from, and where its bucket is.
type directory struct {
	holds, uri string
	at         checkpoint.Location
	// unknown is why nobody knows where the bucket is.
	unknown error
}

var errNoBucket = errors.New("it is no bucket")

// directories are those of a workload. It asks once for each bucket where that is. A checkpoint directory outside of buckets is
// none of them.
func (d deployment) directories(ctx context.Context, w incident.Workload, shown []shownNow) (all []directory) {
	known := map[string]directory{}
	add := func(holds, uri string) {
		path, isBucket := strings.CutPrefix(uri, "gs://")
		bucket, _, _ := strings.Cut(path, "/")
		found := directory{unknown: errNoBucket}
		if isBucket {
			var asked bool
			if found, asked = known[bucket]; !asked {
				looking, end := apart(ctx)
				found.at, found.unknown = d.store.Location(looking, uri)
				found.unknown = end(found.unknown)
				known[bucket] = found
			}
		}
		found.holds, found.uri = holds, uri
		all = append(all, found)
	}
	if strings.HasPrefix(w.Directory, "gs://") {
		add(holdsCheckpoints, w.Directory)
	}
	var data []string
	for _, s := range shown {
		data = append(data, s.Data...)
	}
	slices.Sort(data)
	for _, uri := range slices.Compact(data) {
		add(holdsData, uri)
	}
	return all
}

// crossing says what the way between a directory and another region costs, at a price in dollars for each GiB; 0 is unknown.
func (f directory) crossing(w incident.Workload, price float64) string {
	switch {
	case f.holds == holdsCheckpoints:
		return w.Egress(price)
	case price == 0:
		return "each GiB that training reads from there is charged, at a price that the policy does not name (egress_price)"
	}
	return fmt.Sprintf("each GiB that training reads from there costs $%.2f at the policy's price", price)
}

// near compares where the directories are with where the slices are now.
func (r *rehearsal) near(w incident.Workload, all []directory, price float64) {
	var regions []string
	in := map[string][]incident.Slot{}
	for _, s := range w.Slices {
		if s.IsReleased() || s.Legacy {
			continue
		}
		region := topology.Region(s.Zone)
		if in[region] == nil {
			regions = append(regions, region)
		}
		in[region] = append(in[region], s)
	}
	for _, f := range all {
		for _, region := range regions {
			r.compare(w, f, region, namesOf(in[region]), price)
		}
	}
}

// compare compares where a directory is with the region of slices.
func (r *rehearsal) compare(w incident.Workload, f directory, region, names string, price float64) {
	const about = "region"
	what, are, key := "the data in "+f.uri, " is ", events.MetadataDataDir
	if f.holds == holdsCheckpoints {
		what, are, key = "the checkpoints in "+f.uri, " are ", events.MetadataCheckpointDir
	}
	is := "the region of " + names + " is " + region + " now"
	switch {
	case errors.Is(f.unknown, errNoBucket):
		r.find(warn, about, what+": "+key+" names no bucket here, so check cannot say where that is", "name a directory that begins with gs://")
	case f.unknown != nil:
		r.find(warn, about, "check cannot read where "+what+are[:len(are)-1]+": "+oneLine(f.unknown)+"; "+is, "ask for roles/storage.bucketViewer on the bucket")
	case f.at.Holds(region):
		where := f.at.String()
		if where != region { // a pair of regions
			where += ", so in " + region + " too"
		}
		r.find(good, about, what+are+"in "+where+", the region of "+names, "")
	case f.at.Covers(region):
		r.find(warn, about, what+are+"in "+f.at.String()+", which has several regions, and "+is+", so Google may charge for what crosses; "+f.crossing(w, price),
			"use a bucket in "+region)
	default:
		wayOut := "copy all of it into a bucket in " + region + " and name that in the metadata key " + key
		if held := f.at.Regions(); len(held) > 0 {
			wayOut += ", or train in " + strings.Join(held, " or ")
		}
		if f.holds == holdsCheckpoints {
			wayOut += "; with another checkpoint directory Pitstop counts attempts and budgets from the beginning"
		}
		r.find(warn, about, what+are+"in "+f.at.String()+", and "+is+"; "+f.crossing(w, price), wayOut)
	}
}

// dataFrom says which data a slice in a region would read from elsewhere, and the price; it is empty if there is none.
func dataFrom(w incident.Workload, all []directory, region string, price float64) (text string) {
	for _, f := range all {
		if f.holds == holdsData && f.unknown == nil && !f.at.Covers(region) {
			text += "; the data in " + f.uri + " is in " + f.at.String() + ", and " + f.crossing(w, price)
		}
	}
	return text
}
