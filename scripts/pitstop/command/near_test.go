package main

import (
	"errors"
	"net/http"
	"strings"
	"testing"

	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/checkpoint/buckettest"
)

func TestAttachSaysThatBucketsAreElsewhere(t *testing.T) {
	b, _, bucket := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
	bucket.Place("corpus", buckettest.Location{Name: "EUROPE-WEST4"})
	b.ShowsData("gs://corpus")
	got, err := b.Call("attach", "llama-8b", "--policy", "spot")
	if err != nil || strings.Contains(got, "checkpoints in") {
		t.Errorf("%v:\n%s", err, got)
	}
	deploymenttest.WantText(t, got, "\nthe data in gs://corpus is in europe-west4, and the region of llama-8b is us-west4 now; each GiB that training reads from there is charged, "+
		"at a price that the policy does not name (egress_price)\n  you: copy all of it into a bucket in us-west4 ")
	b.Shown, b.Hidden = nil, errors.New("refused")
	bucket.Place("ckpt", buckettest.Location{Name: "EUROPE-WEST4"})
	bucket.Inject(buckettest.Fault{Method: buckettest.MethodLocate, Status: http.StatusForbidden})
	if got, err := b.Call("attach", "llama-8b", "--policy", "spot"); err != nil || strings.Contains(got, "refused") || strings.Contains(got, "region") {
		t.Errorf("%v:\n%s", err, got)
	}
	if got, err := b.Call("detach", "llama-8b"); err != nil || strings.Contains(got, "europe-west4") {
		t.Errorf("%v:\n%s", err, got)
	}
}
