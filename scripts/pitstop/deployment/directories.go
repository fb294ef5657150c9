package deployment

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/shared/checkpoint"
)

// Contents of a directory.
const (
	HoldsCheckpoints = "checkpoints"
	HoldsData        = "data"
)

// Directory is one that training writes its checkpoints into or reads its data from, and where its bucket is.
type Directory struct {
	Holds, URI string
	At         checkpoint.Location
	// Unknown is why nobody knows where the bucket is.
	Unknown error
}

// ErrNoBucket says that a directory is in no bucket.
var ErrNoBucket = errors.New("it is no bucket")

// Directories are those of a workload. It asks once for each bucket where that is. A checkpoint directory outside of buckets is
// none of them.
func (d Deployment) Directories(ctx context.Context, w Workload, shown []SliceShown) (all []Directory) {
	known := map[string]Directory{}
	add := func(holds, uri string) {
		path, isBucket := strings.CutPrefix(uri, "gs://")
		bucket, _, _ := strings.Cut(path, "/")
		found := Directory{Unknown: ErrNoBucket}
		if isBucket {
			var asked bool
			if found, asked = known[bucket]; !asked {
				looking, end := google.OptionalQuestion(ctx)
				found.At, found.Unknown = d.Checkpoints.Location(looking, uri)
				found.Unknown = end(found.Unknown)
				known[bucket] = found
			}
		}
		found.Holds, found.URI = holds, uri
		all = append(all, found)
	}
	if strings.HasPrefix(w.Directory, "gs://") {
		add(HoldsCheckpoints, w.Directory)
	}
	var data []string
	for _, s := range shown {
		data = append(data, s.Data...)
	}
	slices.Sort(data)
	for _, uri := range slices.Compact(data) {
		add(HoldsData, uri)
	}
	return all
}

// TransferText says what the way between a directory and another region costs, at a price in dollars for each GiB; 0 is unknown.
func (f Directory) TransferText(w Workload, price float64) string {
	switch {
	case f.Holds == HoldsCheckpoints:
		return w.Document.Egress(price)
	case price == 0:
		return "each GiB that training reads from there is charged, at a price that the policy does not name (egress_price)"
	}
	return fmt.Sprintf("each GiB that training reads from there costs $%.2f at the policy's price", price)
}
