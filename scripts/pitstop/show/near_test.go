package show

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"

	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/checkpoint/buckettest"
)

// regions are what check says of regions, each with its way out.
func regions(t *testing.T, b *deploymenttest.Bench) (lines []string) {
	t.Helper()
	got, err := b.Call("check", "llama-8b", "--json")
	var r Rehearsal
	if err == nil {
		err = json.Unmarshal([]byte(got), &r)
	}
	if err != nil {
		t.Fatalf("%v:\n%s", err, got)
	}
	for _, f := range r.Findings {
		if f.About == "region" {
			lines = append(lines, strings.TrimSuffix(string(f.Level)+": "+f.Text+" -> "+f.WayOut, " -> "))
		}
	}
	return lines
}

// TestCheckComparesTheBucketsWithWhereTheSliceIs: those of the checkpoints and of the data, and it says what a crossing costs.
func TestCheckComparesTheBucketsWithWhereTheSliceIs(t *testing.T) {
	const (
		wayOut      = " -> copy all of it into a bucket in us-west4 and name that in the metadata key pitstop-checkpoint-dir, or train in us-central1"
		begins      = "; with another checkpoint directory Pitstop counts attempts and budgets from the beginning"
		dataWayOut  = " -> copy all of it into a bucket in us-west4 and name that in the metadata key pitstop-data-dir, or train in europe-west4"
		egress      = "; a restore reads 12.0 GiB from there, and a save writes as much: $0.24 each at the policy's price"
		costs       = "; each GiB that training reads from there costs $0.02 at the policy's price"
		near        = "good: the checkpoints in gs://ckpt/llama-8b are in us-west4, the region of llama-8b"
		priced      = ", egress_price: 0.02"
		nobodyNamed = "a restore reads 12.0 GiB from there, and a save writes as much, at a price that the policy does not name (egress_price)"
	)
	region := func(name string) buckettest.Location { return buckettest.Location{Name: name} }
	for name, c := range map[string]struct {
		zone, policy    string
		CheckpointStore buckettest.Location
		data            map[string]buckettest.Location
		names           []string
		want            []string
	}{
		"all in one region": {
			zone: "us-west4-a", CheckpointStore: region("US-WEST4"), data: map[string]buckettest.Location{"corpus": region("US-WEST4")}, names: []string{"gs://corpus/c4"},
			want: []string{near, "good: the data in gs://corpus/c4 is in us-west4, the region of llama-8b"},
		},
		"no directory of data is named": {zone: "us-west4-a", CheckpointStore: region("US-WEST4"), want: []string{near}},
		"checkpoints elsewhere": {
			zone: "us-west4-a", policy: priced, CheckpointStore: region("US-CENTRAL1"),
			want: []string{"warn: the checkpoints in gs://ckpt/llama-8b are in us-central1, and the region of llama-8b is us-west4 now" + egress + wayOut + begins},
		},
		"checkpoints elsewhere, at an unknown price": {
			zone: "us-west4-a", CheckpointStore: region("US-CENTRAL1"),
			want: []string{"warn: the checkpoints in gs://ckpt/llama-8b are in us-central1, and the region of llama-8b is us-west4 now; " + nobodyNamed + wayOut + begins},
		},
		"data elsewhere": {
			zone: "us-west4-a", policy: priced, CheckpointStore: region("US-WEST4"),
			data:  map[string]buckettest.Location{"corpus": region("EUROPE-WEST4"), "tokens": region("US-WEST4")},
			names: []string{"gs://tokens", "gs://corpus/c4"},
			want: []string{
				near, "warn: the data in gs://corpus/c4 is in europe-west4, and the region of llama-8b is us-west4 now" + costs + dataWayOut,
				"good: the data in gs://tokens is in us-west4, the region of llama-8b",
			},
		},
		"the slice came back in another region": {
			zone: "us-central1-a", policy: priced, CheckpointStore: region("US-WEST4"), data: map[string]buckettest.Location{"corpus": region("US-CENTRAL1")},
			names: []string{"gs://corpus"},
			want: []string{
				"warn: the checkpoints in gs://ckpt/llama-8b are in us-west4, and the region of llama-8b is us-central1 now" + egress +
					strings.NewReplacer("us-west4", "us-central1", "us-central1", "us-west4").Replace(wayOut) + begins,
				"good: the data in gs://corpus is in us-central1, the region of llama-8b",
			},
		},
		"a multi-region": {
			zone: "us-west4-a", policy: priced, CheckpointStore: buckettest.Location{Name: "US", Type: "multi-region"},
			want: []string{"warn: the checkpoints in gs://ckpt/llama-8b are in us, which has several regions, and the region of llama-8b is us-west4 now, " +
				"so Google may charge for what crosses" + egress + " -> use a bucket in us-west4"},
		},
		"a pair of regions that its owner chose": {
			zone: "us-west4-a", CheckpointStore: buckettest.Location{Name: "US", Type: "dual-region", Regions: "US-WEST4,US-EAST1"},
			want: []string{"good: the checkpoints in gs://ckpt/llama-8b are in us (us-west4 and us-east1), so in us-west4 too, the region of llama-8b"},
		},
		"a pair of other regions that its owner chose": {
			zone: "us-central1-a", policy: priced, CheckpointStore: buckettest.Location{Name: "US", Type: "dual-region", Regions: "US-WEST4,US-EAST1"},
			want: []string{"warn: the checkpoints in gs://ckpt/llama-8b are in us (us-west4 and us-east1), and the region of llama-8b is us-central1 now" + egress +
				" -> copy all of it into a bucket in us-central1 and name that in the metadata key pitstop-checkpoint-dir, or train in us-west4 or us-east1" + begins},
		},
		"a multi-region elsewhere": {
			zone: "us-west4-a", policy: priced, CheckpointStore: buckettest.Location{Name: "EU", Type: "multi-region"},
			want: []string{"warn: the checkpoints in gs://ckpt/llama-8b are in eu, and the region of llama-8b is us-west4 now" + egress +
				" -> copy all of it into a bucket in us-west4 and name that in the metadata key pitstop-checkpoint-dir" + begins},
		},
		"a pair of regions": {
			zone: "us-central1-a", CheckpointStore: buckettest.Location{Name: "NAM4", Type: "dual-region"},
			want: []string{"good: the checkpoints in gs://ckpt/llama-8b are in nam4, so in us-central1 too, the region of llama-8b"},
		},
		"no bucket": {
			zone: "us-west4-a", CheckpointStore: region("US-WEST4"), names: []string{"/mnt/data"},
			want: []string{near, "warn: the data in /mnt/data: pitstop-data-dir names no bucket here, so check cannot say where that is -> name a directory that begins with gs://"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			b, _, bucket := deploymenttest.Healthy(t, deploymenttest.StartsCrew, deploymenttest.In(c.zone))
			b.ReadFile = func(context.Context, string) ([]byte, error) {
				return []byte("policies:\n  night: {preset: spot" + c.policy + "}\n"), nil
			}
			bucket.Place("ckpt", c.CheckpointStore)
			for name, at := range c.data {
				bucket.Place(name, at)
			}
			b.ShowsData(c.names...)
			got := regions(t, b)
			if strings.Join(got, "\n") != strings.Join(c.want, "\n") {
				t.Errorf("it says\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
}

// TestCheckSaysThatItCannotReadWhereABucketIs, asks once for each bucket, and tests the rest.
func TestCheckSaysThatItCannotReadWhereABucketIs(t *testing.T) {
	b, _, bucket := deploymenttest.Healthy(t, deploymenttest.StartsCrew, deploymenttest.In("us-west4-a"))
	b.ShowsData("gs://ckpt/data")
	bucket.Inject(buckettest.Fault{Method: buckettest.MethodLocate, Status: http.StatusForbidden})
	got := strings.Join(regions(t, b), "\n")
	deploymenttest.WantText(t, got, "warn: check cannot read where the checkpoints in gs://ckpt/llama-8b are: ", "warn: check cannot read where the data in gs://ckpt/data is: ",
		"; the region of llama-8b is us-west4 now -> ask for roles/storage.bucketViewer on the bucket")
	b.Shown, b.Hidden = nil, errors.New("refused")
	b.Want([]string{"check", "llama-8b"}, "the checkpoints in gs://ckpt/llama-8b are in us-west4",
		"warn      region: check cannot read whether the metadata names the training's data (pitstop-data-dir), so it compared no data\n",
		"            you: ask for roles/tpu.viewer on demo\n")
}

// TestCheckSaysWhichZonesAreFarFromTheData, though Pitstop may create there.
func TestCheckSaysWhichZonesAreFarFromTheData(t *testing.T) {
	b, _, bucket := deploymenttest.Healthy(t, deploymenttest.StartsCrew, deploymenttest.In("us-west4-a"))
	b.ReadFile = func(context.Context, string) ([]byte, error) {
		return []byte("policies:\n  night: {preset: spot, zones: [us-central1-a, us-west4-b], other_regions: yes, egress_price: 0.02}\n"), nil
	}
	bucket.Place("corpus", buckettest.Location{Name: "US-WEST4"})
	b.ShowsData("gs://corpus")
	b.Want([]string{"check", "llama-8b"}, "warn      zone us-central1-a: Pitstop may create it there; the checkpoints are in us-west4; a restore reads 12.0 GiB from there, "+
		"and a save writes as much: $0.24 each at the policy's price; the data in gs://corpus is in us-west4, and each GiB that training reads from there costs $0.02 at the policy's price\n"+
		"            you: remove the zone from the policy, or copy the data into a bucket in us-central1\n",
		"good      zone us-west4-b: Pitstop may create it there\n")
}
