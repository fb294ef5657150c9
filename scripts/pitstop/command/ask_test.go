package main

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/api/option"

	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/publish/publishtest"
)

// through has an API asked over a wire.
func through(w http.RoundTripper) option.ClientOption {
	return option.WithHTTPClient(&http.Client{Transport: google.Tracked{Base: w}})
}

// TestCheckSaysWhatDidNotAnswer, and waits for each service once.
func TestCheckSaysWhatDidNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, _ := deploymenttest.Healthy(t, deploymenttest.StartsCrew)
		b.Checkpoints = checkpoint.Mux{"gs": checkpoint.NewBucket(through(silence{}))}
		b.Permissions = deployment.IAM{Opts: []option.ClientOption{through(silence{})}}
		begun := time.Now()
		got, err := b.Call("check", "llama-8b", "--timeout", "300ms")
		if took := time.Since(begun); err != nil || took > 3*300*time.Millisecond {
			t.Errorf("after %s: %v", took, err)
		}
		deploymenttest.WantText(t, got, "check cannot read it: Cloud Storage (storage.googleapis.com) did not answer within 300ms",
			"not tested: the Resource Manager API (cloudresourcemanager.googleapis.com) did not answer within 300ms",
			"not tested: the IAM API (iam.googleapis.com) did not answer within 300ms")
	})
}

// silence answers nothing.
type silence struct{}

// RoundTrip implements http.RoundTripper.
func (silence) RoundTrip(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

// forbidden is Google's REST APIs for a credential that may do nothing.
type forbidden struct{}

// RoundTrip implements http.RoundTripper.
func (forbidden) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusForbidden, Status: "403 Forbidden", Request: r, Header: http.Header{},
		Body: io.NopCloser(strings.NewReader(
			`{"error":{"code":403,"status":"PERMISSION_DENIED","message":"The caller does not have permission"}}`)),
	}, nil
}

// TestAttachSaysOnceWhatIsRefused, however many slices it may not label.
func TestAttachSaysOnceWhatIsRefused(t *testing.T) {
	w := deploymenttest.Llama(func(s *deploymenttest.Story) { s.Names = []string{"llama-8b", "llama-8b-1"} })
	b := deploymenttest.New(t, ledgertest.NewStore().Open, w)
	b.OpenNodeEditor = func(ctx context.Context) (deployment.NodeEditor, error) {
		return cloudtpu.New(ctx, through(forbidden{}))
	}
	_, err := b.Call("attach", "llama-8b", "--policy", "spot")
	const want = "the Cloud TPU API refuses the caller: The caller does not have permission; " +
		"ask for a role that allows it: the verb's --help names one"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestASubscriptionThatCannotBeReachedIsNotEmpty: Pub/Sub says nothing in either case.
func TestASubscriptionThatCannotBeReachedIsNotEmpty(t *testing.T) {
	b, err := deployment.NewBroker(t.Context(), time.Millisecond, append(google.TrackRPC(), publishtest.Options(deaf(t))...)...)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if got, err := b.Pull(ctx, "projects/demo/subscriptions/recreate-dead-letters"); err == nil {
		t.Errorf("it is said to hold %d messages", len(got))
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
}
