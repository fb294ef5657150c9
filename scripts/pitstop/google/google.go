// Package google asks Google with the operator's own credentials. It waits for each answer for so long and no longer, and an error names
// the service, the account and the way out.
package google

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"cloud.google.com/go/auth"
	"cloud.google.com/go/auth/credentials"
	"cloud.google.com/go/auth/credentials/impersonate"
	"cloud.google.com/go/compute/metadata"
	"github.com/go-json-experiment/json"
	"google.golang.org/api/googleapi"
	"google.golang.org/api/option"
	transport "google.golang.org/api/transport/http"
	"google.golang.org/grpc"
	"google.golang.org/grpc/stats"

	"pitstop.internal/events"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/publish"
)

// scope is what the verbs' tokens are good for.
const scope = "https://www.googleapis.com/auth/cloud-platform"

// Connection is Google as the caller reaches it: with the caller's own credentials, which are looked for at the first call. Each call
// through it belongs to the question of its context, so that nothing waits or retries for longer than that.
type Connection struct {
	Base http.RoundTripper

	mu    sync.Mutex
	creds *auth.Credentials
	rest  http.RoundTripper
	// as is the account, or the place where the credentials were found.
	as string
}

// AsCaller is Google behind base, for a caller with known credentials.
func AsCaller(base http.RoundTripper, creds *auth.Credentials, as string) *Connection {
	return &Connection{Base: base, creds: creds, as: as}
}

// Caller says with which credentials the caller asks. It is empty while none were looked for.
func (g *Connection) Caller() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.as
}

// credentials are the caller's own.
func (g *Connection) credentials(ctx context.Context) (*auth.Credentials, error) {
	g.mu.Lock()
	found := g.creds
	g.mu.Unlock()
	if found != nil {
		return found, nil
	}
	q, c := questionOf(ctx), &request{service: machine}
	if err := q.begin(c); err != nil {
		return nil, err
	}
	found, err := runOrAbandon(ctx, func(context.Context) (*auth.Credentials, error) {
		return credentials.DetectDefault(&credentials.DetectOptions{Scopes: []string{scope}, Client: &http.Client{Transport: g.Base}})
	})
	if lifetime(ctx).Err() != nil {
		q.end(c, false, nil)
		return nil, context.Cause(lifetime(ctx))
	}
	q.end(c, false, context.Canceled) // a file of this machine is no answer: it is read again as long as there is no token
	if err != nil {
		err = credentialsError{err}
		q.refuse(err)
		return nil, err
	}
	of := tokenService
	if found.JSON() == nil {
		of = machine
	}
	g.mu.Lock()
	g.as = holderOf(found.JSON())
	g.mu.Unlock()
	found = auth.NewCredentials(&auth.CredentialsOptions{
		TokenProvider: auth.NewCachedTokenProvider(tokens{found, of, g}, nil), JSON: found.JSON(),
		UniverseDomainProvider: auth.CredentialsPropertyFunc(found.UniverseDomain),
	})
	if _, err := found.Token(ctx); err != nil { // a client over gRPC would ask for it once it has a connection, and hide the error
		return nil, err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.creds = found
	return g.creds, nil
}

// holderOf is the account that credentials name, or else where they were found.
func holderOf(raw []byte) string {
	if raw == nil {
		return "the service account of this machine"
	}
	if account := accountIn(raw); account != "" {
		return account
	}
	file := os.Getenv("GOOGLE_APPLICATION_CREDENTIALS")
	if file == "" {
		file = filepath.Join("~", ".config", "gcloud", "application_default_credentials.json")
	}
	return "the user of " + file
}

// accountIn is the account that a file of credentials names, if it does.
func accountIn(raw []byte) string {
	if len(raw) == 0 {
		return ""
	}
	var file struct {
		Email   string `json:"client_email"`
		As      string `json:"service_account_impersonation_url"`
		Account string `json:"account"`
	}
	if json.Unmarshal(raw, &file) != nil {
		return ""
	}
	if _, after, ok := strings.Cut(file.As, "/serviceAccounts/"); ok {
		email, _, _ := strings.Cut(after, ":")
		return email
	}
	return cmp.Or(file.Email, file.Account)
}

// runOrAbandon runs what may not heed its context, and leaves it behind when the context ends.
func runOrAbandon[T any](ctx context.Context, f func(context.Context) (T, error)) (T, error) {
	type outcome struct {
		v   T
		err error
	}
	done := make(chan outcome, 1)
	go func() {
		v, err := f(ctx)
		done <- outcome{v, err}
	}()
	select {
	case o := <-done:
		return o.v, o.err
	case <-lifetime(ctx).Done():
		var none T
		return none, context.Cause(lifetime(ctx))
	}
}

// lifetime is a context, or that of the question which it belongs to: clients open their connections with a context that never ends.
func lifetime(ctx context.Context) context.Context {
	if q := questionOf(ctx); ctx.Done() == nil && q != nil {
		return q.ctx
	}
	return ctx
}

// tokens are those of credentials, each asked for like anything else.
type tokens struct {
	from *auth.Credentials
	of   service
	g    *Connection
}

// Token implements auth.TokenProvider.
func (t tokens) Token(ctx context.Context) (*auth.Token, error) {
	q, c := questionOf(ctx), &request{service: t.of}
	if err := q.begin(c); err != nil {
		return nil, err
	}
	token, err := runOrAbandon(ctx, t.from.Token)
	var said *auth.Error
	var undefined metadata.NotDefinedError
	switch {
	case errors.As(err, &said) && !said.Temporary() && said.Response != nil:
		err = tokenError{t.g.Caller(), answerOf(said)}
	case errors.As(err, &undefined):
		err = credentialsError{errors.New("this machine has no service account")}
	default:
		q.end(c, err == nil, failureOf(err))
		return token, err
	}
	q.end(c, true, nil)
	q.refuse(err)
	return token, err
}

// answerOf is what a token service answered, in a few words.
func answerOf(e *auth.Error) string {
	var body struct {
		Error       any    `json:"error"`
		Description string `json:"error_description"`
	}
	if json.Unmarshal(e.Body, &body) == nil {
		if code, ok := body.Error.(string); ok {
			return strings.TrimSuffix(code+": "+body.Description, ": ")
		}
	}
	return e.Response.Status
}

// Client asks Google's REST APIs as the caller.
func (g *Connection) Client() *http.Client { return &http.Client{Transport: g} }

// plain asks without credentials.
func (g *Connection) plain() *http.Client { return &http.Client{Transport: Tracked{g.Base}} }

// RoundTrip implements http.RoundTripper.
func (g *Connection) RoundTrip(r *http.Request) (*http.Response, error) {
	creds, err := g.credentials(r.Context())
	if err != nil {
		return nil, err
	}
	through, err := g.through(r.Context(), creds)
	if err != nil {
		return nil, err
	}
	return through.RoundTrip(r)
}

func (g *Connection) through(ctx context.Context, creds *auth.Credentials) (http.RoundTripper, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.rest == nil {
		t, err := transport.NewTransport(context.WithoutCancel(ctx), Tracked{g.Base}, option.WithAuthCredentials(creds))
		if err != nil {
			return nil, err
		}
		g.rest = t
	}
	return g.rest, nil
}

// Impersonate asks Google's REST APIs as a service account. It takes roles/iam.serviceAccountTokenCreator on that account.
func (g *Connection) Impersonate(account string) (http.RoundTripper, error) {
	creds, err := impersonate.NewCredentials(&impersonate.CredentialsOptions{
		TargetPrincipal: account, Scopes: []string{scope}, Client: g.Client(),
	})
	if err != nil {
		return nil, err
	}
	return transport.NewTransport(context.Background(), Tracked{g.Base}, option.WithAuthCredentials(creds))
}

// Tracked tells the question of each request, and of its answer.
type Tracked struct{ Base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (h Tracked) RoundTrip(r *http.Request) (*http.Response, error) {
	q, c := questionOf(r.Context()), &request{
		service: serviceAt(r.URL.Hostname()), changes: r.Method == http.MethodPatch || strings.HasSuffix(r.URL.Path, ":simulateMaintenanceEvent"),
	}
	if err := q.begin(c); err != nil {
		return nil, err
	}
	trace := &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { c.sent.Store(true) }}
	resp, err := h.Base.RoundTrip(r.WithContext(httptrace.WithClientTrace(r.Context(), trace)))
	if err != nil {
		q.ends(c, err)
		return nil, err
	}
	if resp.StatusCode < http.StatusBadRequest {
		q.hear(c)
		resp.Body = &body{resp.Body, q, c}
		return resp, nil
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, refusalBytes))
	resp.Body = struct {
		io.Reader
		io.Closer
	}{bytes.NewReader(raw), resp.Body}
	if err == nil {
		again := *resp
		again.Body = io.NopCloser(bytes.NewReader(raw))
		err = googleapi.CheckResponse(&again)
	}
	q.ends(c, err)
	return resp, nil
}

// refusalBytes is how much of a refusal is read.
const refusalBytes = 64 << 10

// body tells of each part of an answer that is read.
type body struct {
	io.ReadCloser
	q *question
	c *request
}

// Read implements io.Reader.
func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if n > 0 {
		b.q.hear(b.c)
	}
	if err != nil {
		b.q.end(b.c, errors.Is(err, io.EOF), failureOf(err))
	}
	return n, err
}

// Close implements io.Closer.
func (b *body) Close() error {
	b.q.end(b.c, true, nil)
	return b.ReadCloser.Close()
}

// RPC are the options of a client that asks one of Google's gRPC APIs as the caller.
func (g *Connection) RPC(ctx context.Context) ([]option.ClientOption, error) {
	creds, err := g.credentials(ctx)
	if err != nil {
		return nil, err
	}
	return append(TrackRPC(), option.WithAuthCredentials(creds)), nil
}

// TrackRPC are the options by which the question hears of each call and of its answer.
func TrackRPC() []option.ClientOption {
	return []option.ClientOption{
		option.WithGRPCDialOption(grpc.WithChainUnaryInterceptor(func(
			ctx context.Context, method string, in, reply any, conn *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption,
		) error {
			q, c := questionOf(ctx), &request{service: serviceOf(method), changes: slices.Contains(changing, method)}
			if err := q.begin(c); err != nil {
				return err
			}
			err := invoke(OnSent(ctx, func() { c.sent.Store(true) }), method, in, reply, conn, opts...)
			q.ends(c, err)
			return err
		})),
		option.WithGRPCDialOption(grpc.WithChainStreamInterceptor(func(
			ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, open grpc.Streamer, opts ...grpc.CallOption,
		) (grpc.ClientStream, error) {
			q, c := questionOf(ctx), &request{service: serviceOf(method)}
			if err := q.begin(c); err != nil {
				return nil, err
			}
			s, err := open(ctx, desc, conn, method, opts...)
			if err != nil {
				q.ends(c, err)
				return nil, err
			}
			// Its reader may leave. The stream's own context ends also when a try fails, whose time goes on.
			context.AfterFunc(ctx, func() { q.end(c, false, context.Canceled) })
			return &answers{s, q, c}, nil
		})),
		option.WithGRPCDialOption(grpc.WithStatsHandler(sentCalls{})),
	}
}

// answers tells the question of each message.
type answers struct {
	grpc.ClientStream
	q *question
	c *request
}

// RecvMsg implements grpc.ClientStream.
func (s *answers) RecvMsg(m any) error {
	err := s.ClientStream.RecvMsg(m)
	if err == nil {
		s.q.hear(s.c)
	} else {
		s.q.ends(s.c, err)
	}
	return err
}

// sentCalls notes which calls were sent: before that, nobody can answer.
type sentCalls struct{}

// TagRPC implements stats.Handler.
func (sentCalls) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// HandleRPC implements stats.Handler.
func (sentCalls) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if _, ok := s.(*stats.OutHeader); !ok {
		return
	}
	if sent, ok := ctx.Value(sentKey{}).(func()); ok {
		sent()
	}
}

// TagConn implements stats.Handler.
func (sentCalls) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (sentCalls) HandleConn(context.Context, stats.ConnStats) {}

type sentKey struct{}

// OnSent has a function called once a call over gRPC has been sent over a connection, beside those that are called then already.
func OnSent(ctx context.Context, sent func()) context.Context {
	before, _ := ctx.Value(sentKey{}).(func())
	return context.WithValue(ctx, sentKey{}, sync.OnceFunc(func() {
		sent()
		if before != nil {
			before()
		}
	}))
}

// Ledger opens the ledger of a deployment.
func (g *Connection) Ledger(project, database string) *ledger.Ledger {
	var mu sync.Mutex
	var open ledger.Opener
	return ledger.New(func(ctx context.Context, name string) (ledger.Collection, error) {
		mu.Lock()
		defer mu.Unlock()
		if open == nil {
			opts := TrackRPC()
			if os.Getenv(ledger.EmulatorHost) == "" {
				var err error
				if opts, err = g.RPC(ctx); err != nil {
					return nil, err
				}
			}
			open = ledger.Firestore(project, database, opts...)
		}
		return open(ctx, name)
	})
}

// Publisher publishes events as the caller.
func (g *Connection) Publisher(topics publish.Topics) ledger.Publisher {
	return &publisher{connect: g.RPC, topics: topics}
}

// publisher connects at its first event.
type publisher struct {
	connect func(ctx context.Context) ([]option.ClientOption, error)
	topics  publish.Topics
	to      *publish.Publisher
}

// Publish implements ledger.Publisher. What cannot be published stays in the outbox, so the verb goes on.
func (p *publisher) Publish(ctx context.Context, e events.Envelope) error {
	ctx, end := OptionalQuestion(ctx)
	return end(func() error {
		if p.to == nil {
			opts, err := p.connect(ctx)
			if err != nil {
				return fmt.Errorf("publish %s: %w", e.Type, err)
			}
			p.to = publish.New(p.topics, opts...)
		}
		return p.to.Publish(ctx, e)
	}())
}
