package google

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"cloud.google.com/go/auth"
	"github.com/spf13/cobra"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"pitstop.internal/scripts/pitstop/cli"
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
	resp, err := (&http.Client{Transport: Tracked{w}}).Do(r)
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
	Bound(c, func() string { return "" })
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
		want := "the Cloud TPU API (tpu.googleapis.com) cannot be reached: googleapi: got HTTP response code 503 with body: x; " +
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
				looking, end := OptionalQuestion(ctx)
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
			asked, end := context.WithTimeout(ctx, AtMostHalfOfTimeout(ctx, askFor))
			defer end()
			if w.get(asked, tokenService.host) == nil {
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
		var wrong cli.UsageError
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
	file := filepath.Join(t.TempDir(), "person.json")
	const credentials = `{"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":"r"}` //nolint:gosec // of nobody
	if err := os.WriteFile(file, []byte(credentials), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOOGLE_APPLICATION_CREDENTIALS", file)
	synctest.Test(t, func(t *testing.T) {
		g := &Connection{Base: wire{}}
		_, took, err := verbOf(t.Context(), t, "4s", func(ctx context.Context) error {
			g.NameCaller(ctx)
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+tpuHost, http.NoBody)
			if err != nil {
				return err
			}
			resp, err := g.Client().Do(r)
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

// TestACallHasItsWholeTime whatever was waited for before: an answer, and the time that went on without a question.
func TestACallHasItsWholeTime(t *testing.T) {
	for name, idle := range map[string]time.Duration{"nothing was due": 0, "in part": 5 * time.Second, "in whole": 20 * time.Second} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := wire{storageHost: {pieces: 1, every: 4 * time.Second}}
				_, took, err := verbOf(t.Context(), t, "10s", func(ctx context.Context) error {
					looking, end := OptionalQuestion(ctx)
					if err := end(w.get(looking, storageHost)); err != nil {
						return err
					}
					if err := passes(ctx, idle); err != nil {
						return err
					}
					looking, end = OptionalQuestion(ctx)
					return end(w.get(looking, tpuHost))
				})
				if err == nil || took != 8*time.Second+idle+10*time.Second || !strings.HasPrefix(err.Error(), "the Cloud TPU API") {
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
			if err := ExplainError(ctx, errors.New("HTTP status 503")); !strings.HasPrefix(err.Error(), "the Cloud TPU API") {
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
				looking, end := NextQuestion(ctx)
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
		if resp, err := (&http.Client{Transport: Tracked{to}}).Do(r); err == nil {
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

// TestARefusalSaysWhatGoogleSays, as whom, and the way out. A limit of rate is none, though Google may say it with the same status.
func TestARefusalSaysWhatGoogleSays(t *testing.T) {
	for raw, want := range map[string]string{
		`{"error":{"code":403,"message":"Permission 'tpu.nodes.list' denied on 'projects/demo'","status":"PERMISSION_DENIED"}}`: "the Cloud TPU API refuses the caller: " +
			"Permission 'tpu.nodes.list' denied on 'projects/demo'; ask for a role that allows it: the verb's --help names one",
		`<html>`: "the Cloud TPU API refuses the caller: ",
		`{"error":{"message":"Rate Limit Exceeded","errors":[{"domain":"usageLimits","reason":"userRateLimitExceeded"}]}}`: "the Cloud TPU API (tpu.googleapis.com) " +
			"cannot be reached: Rate Limit Exceeded; ",
		`{"error":{"message":"Too many","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"RATE_LIMIT_EXCEEDED"}]}}`: "the Cloud TPU API " +
			"(tpu.googleapis.com) cannot be reached: Too many; ",
	} {
		_, _, err := verbOf(t.Context(), t, "10s", func(ctx context.Context) error { return answers403(raw).get(ctx) })
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: %v, want %s", raw, err, want)
		}
	}
	for _, c := range []struct {
		code codes.Code
		text string
		want string
	}{
		{codes.PermissionDenied, "Missing or insufficient permissions.", "Firestore refuses the caller: Missing or insufficient permissions; ask"},
		{codes.Unauthenticated, "Request had invalid credentials.", "Google does not accept the credentials of the caller (Request had invalid credentials.); run gcloud"},
		{codes.NotFound, "The database dev-pitstop does not exist for project demo", "Firestore refuses the caller: The database dev-pitstop does not exist"},
		{codes.NotFound, "No document to update: projects/demo/x", "rpc error: code = NotFound desc = No document"},
		{codes.Unavailable, "try later", "Firestore (firestore.googleapis.com) cannot be reached: try later; check"},
	} {
		said := status.Error(c.code, c.text)
		_, _, err := verbOf(t.Context(), t, "10s", func(ctx context.Context) error {
			q, r := questionOf(ctx), &request{service: serviceOf("/google.firestore.v1.Firestore/RunQuery")}
			if err := q.begin(r); err != nil {
				return err
			}
			q.ends(r, said)
			return said
		})
		if err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, want %s", c.text, err, c.want)
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
	resp, err := (&http.Client{Transport: Tracked{tripper(func(r *http.Request) (*http.Response, error) {
		return &http.Response{
			StatusCode: http.StatusForbidden, Status: "403 Forbidden", Request: r, Body: io.NopCloser(strings.NewReader(string(a))),
		}, nil
	})}}).Do(r)
	if err != nil {
		return err
	}
	return errors.Join(errors.New(resp.Status), resp.Body.Close())
}

// TestAConnectionEndsWithItsInquiry: clients open one with a context that never ends.
func TestAConnectionEndsWithItsInquiry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, took, err := verbOf(t.Context(), t, "10s", func(ctx context.Context) error {
			c := &request{service: tokenService}
			if err := questionOf(ctx).begin(c); err != nil {
				return err
			}
			end := make(chan struct{})
			defer close(end)
			_, err := runOrAbandon(context.WithoutCancel(ctx), func(context.Context) (int, error) { <-end; return 0, nil })
			return err
		})
		if err == nil || took != 10*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
	})
}

// fixed is a token that never changes.
type fixed string

// Token implements auth.TokenProvider.
func (f fixed) Token(context.Context) (*auth.Token, error) { return &auth.Token{Value: string(f)}, nil }

func TestTheCallerIsTheAccount(t *testing.T) {
	answer := `{"email":"ada@example.com","scope":"x"}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.PostFormValue("access_token") != "secret" {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		_, _ = w.Write([]byte(answer)) //nolint:errcheck // the client tells
	}))
	defer server.Close()
	for file, want := range map[string]string{ //nolint:gosec // they hold names of accounts alone
		`{"type":"service_account","client_email":"robot@demo.iam.gserviceaccount.com"}`:                                                                                                                        "robot@demo.iam.gserviceaccount.com",
		`{"type":"impersonated_service_account","service_account_impersonation_url":"https://iamcredentials.googleapis.com/v1/projects/-/serviceAccounts/as@demo.iam.gserviceaccount.com:generateAccessToken"}`: "as@demo.iam.gserviceaccount.com",
		`{"type":"authorized_user"}`: "ada@example.com",
		``:                           "ada@example.com",
	} {
		got, err := accountOf(t.Context(), auth.NewCredentials(&auth.CredentialsOptions{JSON: []byte(file), TokenProvider: fixed("secret")}), server.Client(), server.URL)
		if err != nil || got != want {
			t.Errorf("%s: %q, %v, want %q", file, got, err, want)
		}
	}
	answer = `{}`
	if got, err := accountOf(t.Context(), auth.NewCredentials(&auth.CredentialsOptions{TokenProvider: fixed("secret")}), server.Client(), server.URL); err == nil {
		t.Errorf("a token without an account: %q", got)
	}
}
