package show

import (
	"errors"
	"strings"

	"pitstop.internal/events"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/shared/topology"
	"pitstop.internal/shared/view"
)

// AddRegions compares where the directories are with where the slices are now.
func (r *Rehearsal) AddRegions(w deployment.Workload, all []deployment.Directory, price float64) {
	var regions []string
	in := map[string][]view.Slice{}
	for _, s := range w.Slices {
		if s.Released || s.Legacy {
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
			r.compare(w, f, region, NamesOf(in[region]), price)
		}
	}
}

// compare compares where a directory is with the region of slices.
func (r *Rehearsal) compare(w deployment.Workload, f deployment.Directory, region, names string, price float64) {
	const about = "region"
	what, are, key := "the data in "+f.URI, " is ", events.MetadataDataDir
	if f.Holds == deployment.HoldsCheckpoints {
		what, are, key = "the checkpoints in "+f.URI, " are ", events.MetadataCheckpointDir
	}
	is := "the region of " + names + " is " + region + " now"
	switch {
	case errors.Is(f.Unknown, deployment.ErrNoBucket):
		r.Add(Warn, about, what+": "+key+" names no bucket here, so check cannot say where that is", "name a directory that begins with gs://")
	case f.Unknown != nil:
		r.Add(Warn, about, "check cannot read where "+what+are[:len(are)-1]+": "+cli.OneLine(f.Unknown)+"; "+is, "ask for roles/storage.bucketViewer on the bucket")
	case f.At.Holds(region):
		where := f.At.String()
		if where != region { // a pair of regions
			where += ", so in " + region + " too"
		}
		r.Add(Good, about, what+are+"in "+where+", the region of "+names, "")
	case f.At.Covers(region):
		r.Add(Warn, about, what+are+"in "+f.At.String()+", which has several regions, and "+is+", so Google may charge for what crosses; "+f.TransferText(w, price),
			"use a bucket in "+region)
	default:
		wayOut := "copy all of it into a bucket in " + region + " and name that in the metadata key " + key
		if held := f.At.Regions(); len(held) > 0 {
			wayOut += ", or train in " + strings.Join(held, " or ")
		}
		if f.Holds == deployment.HoldsCheckpoints {
			wayOut += "; with another checkpoint directory Pitstop counts attempts and budgets from the beginning"
		}
		r.Add(Warn, about, what+are+"in "+f.At.String()+", and "+is+"; "+f.TransferText(w, price), wayOut)
	}
}

// dataFrom says which data a slice in a region would read from elsewhere, and the price; it is empty if there is none.
func dataFrom(w deployment.Workload, all []deployment.Directory, region string, price float64) (text string) {
	for _, f := range all {
		if f.Holds == deployment.HoldsData && f.Unknown == nil && !f.At.Covers(region) {
			text += "; the data in " + f.URI + " is in " + f.At.String() + ", and " + f.TransferText(w, price)
		}
	}
	return text
}
