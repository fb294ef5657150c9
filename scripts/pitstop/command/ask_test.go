package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptrace"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	firestorepb "cloud.google.com/go/firestore/apiv1/firestorepb"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/tpu/apiv1/tpupb"
	"github.com/spf13/cobra"
	"google.golang.org/api/option"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"pitstop.internal/shared/checkpoint"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/provider/cloudtpu"
	"pitstop.internal/shared/publish/publishtest"
)

// wire is Google's REST APIs: it answers a host after a while, piece by piece.
type wire map[string]reply

// reply is an answer: so many pieces, each after that long. Without pieces nothing comes.
type reply struct {
	code, pieces int
	every        time.Duration
}

// RoundTrip implements http.RoundTripper.
func (w wire) RoundTrip(r *http.Request) (*http.Response, error) {
	a := w[r.URL.Host]
	if err := passes(r.Context(), a.every); err != nil || a.pieces == 0 {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: max(a.code, 200), Status: "503 Service Unavailable", Body: &pieces{r.Context(), a, 0}, Request: r}, nil
}

type pieces struct {
	ctx  context.Context //nolint:containedctx // of the request
	a    reply
	sent int
}

// Read implements io.Reader.
func (p *pieces) Read(b []byte) (int, error) {
	if p.sent == p.a.pieces {
		return 0, io.EOF
	}
	p.sent++
	return copy(b, "x"), passes(p.ctx, p.a.every)
}

// Close implements io.Closer.
func (*pieces) Close() error { return nil }

func passes(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// get reads the whole answer of a host.
func (w wire) get(ctx context.Context, host string) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+host+"/v2/projects/demo/locations", nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: heard{w}}).Do(r)
	if err != nil {
		return err
	}
	_, err = io.ReadAll(resp.Body)
	return errors.Join(err, resp.Body.Close())
}

// verbOf runs a verb on a clock of its own, and returns what it says and how long it took.
func verbOf(
	ctx context.Context, t *testing.T, limit string, run func(ctx context.Context) error,
) (says string, took time.Duration, err error) {
	t.Helper()
	var errOut bytes.Buffer
	c := &cobra.Command{
		Use: "look", SilenceErrors: true, SilenceUsage: true,
		RunE: func(c *cobra.Command, _ []string) error { return run(c.Context()) },
	}
	deployment{}.bounds(c)
	c.SetArgs([]string{"--timeout", limit})
	c.SetErr(&errOut)
	begun := time.Now()
	err = c.ExecuteContext(ctx)
	return errOut.String(), time.Since(begun), err
}

const (
	tpuHost     = "tpu.googleapis.com"
	storageHost = "storage.googleapis.com"
)

func TestALongAnswerIsReadToItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wire{tpuHost: {pieces: 20, every: 9 * time.Second}}
		says, took, err := verbOf(t.Context(), t, "10s", func(ctx context.Context) error { return w.get(ctx, tpuHost) })
		if err != nil || took < 20*9*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
		if says != "pitstop: waiting for the Cloud TPU API (project demo); --timeout is 10s\n" {
			t.Errorf("it says %q", says)
		}
	})
}

func TestAnAnswerThatStopsIsCutOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wire{tpuHost: {pieces: 2, every: 11 * time.Second}}
		_, took, err := verbOf(t.Context(), t, "10s", func(ctx context.Context) error { return w.get(ctx, tpuHost) })
		if err == nil || took != 10*time.Second || !strings.HasPrefix(err.Error(),
			"the Cloud TPU API (tpu.googleapis.com) did not answer within 10s; check the network") {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// TestTriesEndWithTheTimeout: a client that tries again as long as its context lasts is cut off in its sleep, and says what its last
// try came to.
func TestTriesEndWithTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wire{tpuHost: {code: 503, pieces: 1, every: 100 * time.Millisecond}}
		_, took, err := verbOf(t.Context(), t, "10s", func(ctx context.Context) error {
			for pause := time.Second; ; pause *= 2 {
				if err := w.get(ctx, tpuHost); err != nil {
					return err
				}
				if err := passes(ctx, pause); err != nil {
					return err
				}
			}
		})
		want := "the Cloud TPU API (tpu.googleapis.com) cannot be reached: HTTP status 503 Service Unavailable; " +
			"check the network, HTTPS_PROXY and, in a VPC, Private Google Access"
		if err == nil || took != 10*time.Second || err.Error() != want {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// TestAVerbGoesOnWithoutWhatItCanDoWithout, and does not wait for the same service twice.
func TestAVerbGoesOnWithoutWhatItCanDoWithout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wire{tpuHost: {pieces: 1, every: time.Second}}
		_, took, err := verbOf(t.Context(), t, "10s", func(ctx context.Context) error {
			for range 3 {
				looking, end := apart(ctx)
				if err := end(w.get(looking, storageHost)); err == nil || !strings.HasPrefix(err.Error(),
					"Cloud Storage (storage.googleapis.com) did not answer within 10s") {
					t.Errorf("apart: %v", err)
				}
			}
			return w.get(ctx, tpuHost)
		})
		if err != nil || took != 12*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// TestTheAccountIsAskedForOutOfTheSameTime: it is the first question, and not the one that matters.
func TestTheAccountIsAskedForOutOfTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wire{}
		_, took, err := verbOf(t.Context(), t, "15s", func(ctx context.Context) error {
			asked, end := within(ctx, askFor)
			if end(w.get(asked, tokenService.host)) == nil {
				t.Error("it was answered")
			}
			return w.get(ctx, tpuHost)
		})
		if err == nil || took != 15*time.Second || !strings.HasPrefix(err.Error(), "the Cloud TPU API") {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// TestNoTimeoutIsLongerThanItsClients: the clients' own bounds would cut it short without a word.
func TestNoTimeoutIsLongerThanItsClients(t *testing.T) {
	for _, limit := range []string{"0s", "-1s", "30001ms", "5m"} {
		_, _, err := verbOf(t.Context(), t, limit, func(context.Context) error { return nil })
		var wrong usageError
		if !errors.As(err, &wrong) || !strings.HasSuffix(err.Error(), ": it has to be more than 0 and at most 30s") {
			t.Errorf("--timeout %s: %v", limit, err)
		}
	}
	synctest.Test(t, func(t *testing.T) {
		_, took, err := verbOf(t.Context(), t, "30s", func(ctx context.Context) error {
			bound, end := context.WithTimeout(ctx, 30*time.Second) // as the clients have it, from before the call
			defer end()
			return wire{}.get(bound, tpuHost)
		})
		const want = "the Cloud TPU API (tpu.googleapis.com) did not answer within 30s; check the network, HTTPS_PROXY and, in a VPC, " +
			"Private Google Access"
		if err == nil || took != 30*time.Second || err.Error() != want {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// TestAFileOfThisMachineIsNoAnswer: credentials that never become a token are read again by each call, out of the same time.
func TestAFileOfThisMachineIsNoAnswer(t *testing.T) {
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", person(t))
	synctest.Test(t, func(t *testing.T) {
		g := &google{base: wire{}}
		_, took, err := verbOf(t.Context(), t, "4s", func(ctx context.Context) error {
			g.who(ctx)
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+tpuHost, http.NoBody)
			if err != nil {
				return err
			}
			resp, err := g.client().Do(r)
			if err != nil {
				return err
			}
			return resp.Body.Close()
		})
		if err == nil || took != 4*time.Second || !strings.HasPrefix(err.Error(), "Google's token service") {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// TestACallHasItsWholeTime whatever was waited for before: one that ended without an answer, and the time that went on without it.
func TestACallHasItsWholeTime(t *testing.T) {
	for name, idle := range map[string]time.Duration{"nothing was due": 0, "in part": 5 * time.Second, "in whole": 20 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				_, took, err := verbOf(t.Context(), t, "10s", func(ctx context.Context) error {
					left, leave := context.WithTimeout(ctx, 4*time.Second)
					defer leave()
					a, c := inquiryOf(ctx), &request{service: tokenService}
					if err := a.begin(c); err != nil {
						return err
					}
					<-left.Done()
					a.end(c)
					if err := passes(ctx, idle); err != nil {
						return err
					}
					return wire{}.get(ctx, tpuHost)
				})
				if err == nil || took != 14*time.Second+idle || !strings.HasPrefix(err.Error(), "the Cloud TPU API") {
					t.Errorf("after %s: %v", took, err)
				}
			})
		})
	}
}

// TestAFailureThatIsSettledIsNotWaitedFor: the verb goes on with something else, which may take its time.
func TestAFailureThatIsSettledIsNotWaitedFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wire{tpuHost: {code: 503, pieces: 1}}
		_, took, err := verbOf(t.Context(), t, "10s", func(ctx context.Context) error {
			if err := w.get(ctx, tpuHost); err != nil {
				return err
			}
			if err := settle(ctx, errors.New("HTTP status 503")); !strings.HasPrefix(err.Error(), "the Cloud TPU API") {
				t.Errorf("it is settled as %v", err)
			}
			return passes(ctx, time.Minute)
		})
		if err != nil || took != time.Minute {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// TestLooksThatFollowEachOtherHaveTheirOwnTime: one that had no answer does not cut the next.
func TestLooksThatFollowEachOtherHaveTheirOwnTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := wire{tpuHost: {pieces: 1, every: 2 * time.Second}}
		says, _, err := verbOf(t.Context(), t, "10s", func(ctx context.Context) error {
			for _, host := range []string{storageHost, tpuHost, storageHost, tpuHost} {
				looking, end := again(ctx)
				if err := end(w.get(looking, host)); (err == nil) != (host == tpuHost) {
					t.Errorf("%s: %v", host, err)
				}
				if err := passes(ctx, time.Minute); err != nil {
					t.Error(err)
				}
			}
			return nil
		})
		if err != nil || strings.Count(says, "\n") != 1 {
			t.Errorf("%v: %s", err, says)
		}
	})
}

func TestAnInterruptedVerbSaysNoMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, interrupt)
		_, took, err := verbOf(ctx, t, "10s", func(ctx context.Context) error { return wire{}.get(ctx, tpuHost) })
		if !errors.Is(err, context.Canceled) || err.Error() != "interrupted" || took != 500*time.Millisecond {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// severed is a service whose first change is sent, and lost with its connection. Nothing reaches it later.
type severed struct{ calls int }

// RoundTrip implements http.RoundTripper.
func (l *severed) RoundTrip(r *http.Request) (*http.Response, error) {
	if l.calls++; l.calls > 1 {
		return nil, errors.New("connection refused")
	}
	httptrace.ContextClientTrace(r.Context()).WroteRequest(httptrace.WroteRequestInfo{})
	return nil, errors.New("connection reset by peer")
}

// changesUntil tries a change again and again.
func changesUntil(ctx context.Context, to http.RoundTripper) error {
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodPatch, "https://"+tpuHost+"/v2/projects/demo/locations/z/nodes/n", http.NoBody)
		if err != nil {
			return err
		}
		if resp, err := (&http.Client{Transport: heard{to}}).Do(r); err == nil {
			return resp.Body.Close()
		}
		if err := passes(ctx, time.Second); err != nil {
			return err
		}
	}
}

// TestAChangeThatMayHaveBeenMadeIsSaid, also where its retry was not sent, and where the caller interrupts the verb.
func TestAChangeThatMayHaveBeenMadeIsSaid(t *testing.T) {
	const may = "; the change may have been made: look with pitstop status before you repeat it"
	for name, one := range map[string]struct {
		interrupt time.Duration
		want      string
	}{
		"a retry":     {time.Hour, "the Cloud TPU API (tpu.googleapis.com) cannot be reached: connection refused"},
		"interrupted": {2500 * time.Millisecond, "interrupted"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, interrupt := context.WithTimeout(t.Context(), one.interrupt)
				defer interrupt()
				_, _, err := verbOf(ctx, t, "10s", func(ctx context.Context) error { return changesUntil(ctx, &severed{}) })
				if err == nil || !strings.HasPrefix(err.Error(), one.want) || !strings.HasSuffix(err.Error(), may) {
					t.Errorf("it says %v", err)
				}
			})
		})
	}
}

// TestAChangeThatWasAnsweredIsInNoDoubt, though its first try was not, nor its body read to the end.
func TestAChangeThatWasAnsweredIsInNoDoubt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithTimeout(t.Context(), 5*time.Second)
		defer interrupt()
		_, _, err := verbOf(ctx, t, "10s", func(ctx context.Context) error {
			w := wire{tpuHost: {pieces: 1}}
			first := &severed{}
			if err := changesUntil(ctx, tripper(func(r *http.Request) (*http.Response, error) {
				if first.calls == 0 {
					return first.RoundTrip(r)
				}
				httptrace.ContextClientTrace(r.Context()).WroteRequest(httptrace.WroteRequestInfo{})
				return w.RoundTrip(r)
			})); err != nil {
				return err
			}
			return passes(ctx, time.Minute)
		})
		if err == nil || err.Error() != "interrupted" {
			t.Errorf("it says %v", err)
		}
	})
}

// tripper is a function as an http.RoundTripper.
type tripper func(r *http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestARefusalSaysTheWayOut holds the texts for what Google answers.
func TestARefusalSaysTheWayOut(t *testing.T) {
	c := &request{service: serviceAt(tpuHost), project: "demo", permission: "tpu.nodes.list"}
	details := func(reason, metadata string) string {
		return `{"error":{"code":403,"message":"m","details":[{"@type":"x"},{"reason":"` + reason + `","metadata":{` + metadata + `}}]}}`
	}
	for _, one := range []struct {
		code      int
		raw, want string
	}{
		{
			403, `{"error":{"message":"The caller does not have permission"}}`,
			"the Cloud TPU API refuses ada: permission tpu.nodes.list is missing in project demo; ask for a role that has it: the verb's --help names one",
		},
		{403, `{"error":{"message":"Permission 'tpu.nodes.get' denied on 'projects/x'"}}`, "permission tpu.nodes.get is missing"},
		{
			403, `{"error":{"message":"ada does not have storage.objects.get access to the Google Cloud Storage object."}}`,
			"permission storage.objects.get is missing",
		},
		{
			403, details("IAM_PERMISSION_DENIED", `"permission":"tpu.nodes.update","resource":"projects/x"`),
			"permission tpu.nodes.update is missing",
		},
		{
			403, details("SERVICE_DISABLED", `"service":"tpu.googleapis.com","consumer":"projects/1"`),
			"the Cloud TPU API is not enabled in project demo; run gcloud services enable tpu.googleapis.com --project demo",
		},
		{403, details("CONSUMER_INVALID", ``), "there is no project demo that ada may see; check --project"},
		{
			403, details("USER_PROJECT_DENIED", ``),
			"permission serviceusage.services.use is missing; run gcloud auth application-default set-quota-project demo",
		},
		{
			401, `{"error":{"message":"Request had invalid authentication credentials."}}`,
			"does not accept the credentials of ada; run gcloud auth application-default login",
		},
		{
			403, details("SECURITY_POLICY_VIOLATED", `"uid":"x"`),
			"the Cloud TPU API (project demo) refuses ada: m",
		},
		{403, details("BILLING_DISABLED", `"consumer":"projects/1"`), "the Cloud TPU API (project demo) refuses ada: m"},
		{
			403, `{"error":{"message":"The account is disabled.","errors":[{"reason":"accountDisabled"}]}}`,
			"the Cloud TPU API (project demo) refuses ada: The account is disabled.",
		},
		{403, `{"error":{"message":"m","errors":[{"reason":"forbidden"}]}}`, "permission tpu.nodes.list is missing"},
		{403, `<html>`, "permission tpu.nodes.list is missing"},
	} {
		if got := refused([]refusal{restRefusal(c, one.code, []byte(one.raw))}, "ada"); !strings.Contains(got, one.want) {
			t.Errorf("%s: %s, want %s", one.raw, got, one.want)
		} else if strings.Contains(one.want, "(project demo) refuses") && got != one.want {
			t.Errorf("%s: no role would help: %s", one.raw, got)
		}
	}
	two := refused([]refusal{
		{service: serviceAt(tpuHost), project: "demo", permission: "tpu.locations.list"},
		{service: serviceAt("logging.googleapis.com"), project: "demo", permission: "logging.logEntries.list"},
		{service: serviceAt(tpuHost), project: "demo", permission: "tpu.locations.list"},
	}, "ada")
	if strings.Count(two, "is missing") != 2 || !strings.Contains(two,
		"Cloud Logging refuses ada: permission logging.logEntries.list is missing") {
		t.Errorf("two refusals: %s", two)
	}
	db := &request{service: serviceAt("firestore.googleapis.com"), project: "demo", database: "dev-pitstop"}
	r, ok := rpcRefusal(db, status.New(codes.NotFound, "The database dev-pitstop does not exist for project demo Please visit https://..."))
	const noDatabase = "project demo has no Firestore database dev-pitstop; check --project, --prefix and --database"
	if got := refused([]refusal{r}, "ada"); !ok || got != noDatabase {
		t.Errorf("a database that is missing: %v, %s", ok, got)
	}
	if _, ok := rpcRefusal(db, status.New(codes.NotFound, "No document to update: projects/demo/databases/dev-pitstop/documents/x/y")); ok {
		t.Error("a document that is missing is a refusal")
	}
	none := errors.New("credentials: could not find default credentials. See https://x for more information")
	if got := (credentialsError{none}).Error(); got !=
		"Google cannot be asked without credentials: none were found on this machine; run gcloud auth application-default login" {
		t.Error(got)
	}
}

// TestWhatACallOverGRPCIs: its method names the service, the permission, and whether a repetition would do harm.
func TestWhatACallOverGRPCIs(t *testing.T) {
	for method, want := range map[string]struct {
		host, permission string
		changes, waits   bool
	}{
		tpupb.Tpu_ListNodes_FullMethodName:                     {host: tpuHost, permission: "tpu.nodes.list"},
		firestorepb.Firestore_RunQuery_FullMethodName:          {host: "firestore.googleapis.com", permission: "datastore.entities.list"},
		firestorepb.Firestore_BatchGetDocuments_FullMethodName: {host: "firestore.googleapis.com", permission: "datastore.entities.get"},
		firestorepb.Firestore_Commit_FullMethodName:            {host: "firestore.googleapis.com", permission: "datastore.entities.update", changes: true},
		pubsubpb.Publisher_Publish_FullMethodName:              {host: "pubsub.googleapis.com", permission: "pubsub.topics.publish", changes: true},
		pubsubpb.Subscriber_Pull_FullMethodName:                {host: "pubsub.googleapis.com", permission: "pubsub.subscriptions.consume", waits: true},
		pubsubpb.Subscriber_Acknowledge_FullMethodName:         {host: "pubsub.googleapis.com", permission: "pubsub.subscriptions.consume"},
		pubsubpb.Subscriber_ModifyAckDeadline_FullMethodName:   {host: "pubsub.googleapis.com", permission: "pubsub.subscriptions.consume"},
	} {
		c := rpcCall(method)
		if c.service != serviceAt(want.host) || c.permission != want.permission || c.changes != want.changes || c.waits != want.waits {
			t.Errorf("%s is a call of %s that needs %s, changes something: %v, waits: %v", method, c.service, c.permission, c.changes, c.waits)
		}
	}
}

// TestARateLimitIsNoRefusal: Google may say it with the status of a missing permission.
func TestARateLimitIsNoRefusal(t *testing.T) {
	const limited = `{"error":{"message":"Rate Limit Exceeded","errors":[{"domain":"usageLimits","reason":"userRateLimitExceeded"}]}}`
	_, _, err := verbOf(t.Context(), t, "10s", func(ctx context.Context) error {
		return answers403(limited).get(ctx)
	})
	const want = "the Cloud TPU API (tpu.googleapis.com) takes no more calls for now: HTTP status 403 Forbidden: Rate Limit Exceeded; "
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("over REST: %v", err)
	}
	s, err := status.New(codes.PermissionDenied, "Too many calls").WithDetails(&errdetails.ErrorInfo{Reason: "RATE_LIMIT_EXCEEDED"})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = verbOf(t.Context(), t, "10s", func(ctx context.Context) error {
		a, c := inquiryOf(ctx), rpcCall("/google.pubsub.v1.Publisher/Publish")
		if err := a.begin(c); err != nil {
			return err
		}
		a.ends(c, s.Err())
		return s.Err()
	})
	if err == nil || err.Error() != "Pub/Sub (pubsub.googleapis.com) takes no more calls for now: Too many calls; try again in a minute" {
		t.Errorf("over gRPC: %v", err)
	}
}

func TestTheProjectOfAResource(t *testing.T) {
	for name, want := range map[string]string{
		"/v1/projects/demo:testIamPermissions":                  "demo",
		"/v2/projects/demo/locations/us-west4-a/nodes/a":        "demo",
		"projects/example.com:demo/databases/pitstop":           "example.com:demo",
		"/v1/projects/-/serviceAccounts/a@b:testIamPermissions": "-",
		"projects/demo": "demo",
	} {
		if m := projectOf.FindStringSubmatch(name); m == nil || m[1] != want {
			t.Errorf("%s is of %q, want %s", name, m, want)
		}
	}
}

// answers403 is Google's REST APIs, which refuse with that text.
type answers403 string

// get asks, and fails with what was said.
func (a answers403) get(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+tpuHost+"/v2/projects/demo/locations", http.NoBody)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: heard{tripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: http.StatusForbidden, Status: "403 Forbidden", Request: r, Body: io.NopCloser(strings.NewReader(string(a))),
		}, nil
	})}}).Do(r)
	if err != nil {
		return err
	}
	return errors.Join(errors.New(resp.Status), resp.Body.Close())
}

// through has an API asked over a wire.
func through(w http.RoundTripper) option.ClientOption {
	return option.WithHTTPClient(&http.Client{Transport: heard{w}})
}

// TestCheckSaysWhatDidNotAnswer, and waits for each service once.
func TestCheckSaysWhatDidNotAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, _, _ := healthy(t, startsCrew)
		b.store = checkpoint.Mux{"gs": checkpoint.NewBucket(through(wire{}))}
		b.access = iamAccess{opts: []option.ClientOption{through(wire{})}}
		begun := time.Now()
		got, err := b.call("check", "llama-8b", "--timeout", "300ms")
		if took := time.Since(begun); err != nil || took > 3*300*time.Millisecond {
			t.Errorf("after %s: %v", took, err)
		}
		wants(t, got, "check cannot read it: Cloud Storage (storage.googleapis.com) did not answer within 300ms",
			"not tested: the Resource Manager API (cloudresourcemanager.googleapis.com) did not answer within 300ms",
			"not tested: the IAM API (iam.googleapis.com) did not answer within 300ms")
	})
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

// TestAttachNamesThePermissionOnce, however many slices it may not label.
func TestAttachNamesThePermissionOnce(t *testing.T) {
	w := llama()
	w.Slices = append(w.Slices, w.Slices[0])
	w.Slices[1].Name = "llama-8b-1"
	b := deployedWith(t, ledgertest.NewStore().Open, w)
	b.cloud = func(ctx context.Context) (cloud, error) { return cloudtpu.New(ctx, through(forbidden{})) }
	_, err := b.call("attach", "llama-8b", "--policy", "spot")
	const want = "the Cloud TPU API refuses the caller: permission tpu.nodes.get is missing in project demo; " +
		"ask for a role that has it: the verb's --help names one"
	if err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

// TestASubscriptionThatCannotBeReachedIsNotEmpty: Pub/Sub says nothing in either case.
func TestASubscriptionThatCannotBeReachedIsNotEmpty(t *testing.T) {
	b, err := newBroker(t.Context(), time.Millisecond, append(heardRPC(), publishtest.Options(deaf(t))...)...)
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

// TestAConnectionEndsWithItsInquiry: clients open one with a context that never ends.
func TestAConnectionEndsWithItsInquiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, took, err := verbOf(t.Context(), t, "10s", func(ctx context.Context) error {
			c := &request{service: tokenService}
			if err := inquiryOf(ctx).begin(c); err != nil {
				return err
			}
			end := make(chan struct{})
			defer close(end)
			_, err := bounded(context.WithoutCancel(ctx), func(context.Context) (int, error) { <-end; return 0, nil })
			return err
		})
		if err == nil || took != 10*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
	})
}
