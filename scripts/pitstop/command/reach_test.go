package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/entries/entriestest"
	"pitstop.internal/scripts/pitstop/google"
	"pitstop.internal/shared/breadth"
)

// placeholders are what the words in a verb's usage stand for. A word that is missing here has to be added.
var placeholders = map[string][]string{
	"WORKLOAD": {"llama-8b"}, "[WORKLOAD...]": {"llama-8b"}, "WORKLOAD...": {"llama-8b"}, "INCIDENT": {"llama-8b-20261112-2"}, "ID|WORKLOAD": {"llama-8b-20261112-2"}, "[FILE...]": {},
	"TOPIC": {"recreate-requests"}, "POLICY": {"spot"}, "P": {"demo"},
}

// verbsThatAsk are the calls of every verb that asks Google, as its usage says: a new verb is among them.
func verbsThatAsk(t *testing.T) map[string][]string {
	t.Helper()
	calls := map[string][]string{}
	for _, c := range verbs(deployed) {
		var args []string
		for i, word := range strings.Fields(c.Use) {
			switch stands, ok := placeholders[word]; {
			case ok:
				args = append(args, stands...)
			case i == 0, strings.HasPrefix(word, "--"):
				args = append(args, word)
			default:
				t.Fatalf("nobody says what %s stands for in the usage of %s", word, c.Use)
			}
		}
		if !slices.Contains(args, "--project") {
			args = append(args, "--project", "demo")
		}
		calls[c.Name()] = args
	}
	calls["pause of everything"] = []string{"pause", "--all", "--project", "demo"}
	return calls
}

// TestEveryVerbIsWalked: a verb that names a project and does not belong to a deployment would ask Google unseen.
func TestEveryVerbIsWalked(t *testing.T) {
	walked := verbsThatAsk(t)
	for _, c := range commands().Commands() {
		_, ok := walked[c.Name()]
		if c.Flags().Lookup("project") != nil && c.Name() != "filter" && !ok { // filter only prints the name
			t.Errorf("%s is not walked", c.Name())
		}
		if (c.Flags().Lookup("timeout") != nil) != ok {
			t.Errorf("%s: it is walked: %v, and the flag --timeout does not agree", c.Name(), ok)
		}
	}
	if len(walked) < 15 {
		t.Errorf("only %d verbs are walked", len(walked))
	}
}

// started is how long the command may take to start and to end, beside what it waits.
var started = sync.OnceValue(func() time.Duration {
	begun := time.Now()
	c := exec.Command(os.Args[0], "status", "--project", "X") //nolint:gosec // this test
	c.Env = []string{isCommand + "=1"}
	_ = c.Run() //nolint:errcheck // it is wrong usage
	return time.Since(begun)
})

// answer is what the command said, and how long it took.
type answer struct {
	out, err string
	code     int
	took     time.Duration
}

// ownProcess runs the command as its users do: in a process of its own, with nothing but this environment.
func ownProcess(t *testing.T, environment, args []string) answer {
	t.Helper()
	own := started()
	c := exec.CommandContext(t.Context(), os.Args[0], args...) //nolint:gosec // this test
	c.Env = append([]string{isCommand + "=1", "HOME=" + t.TempDir(), "NO_PROXY=", "COLUMNS=2000"}, environment...)
	var out, errOut bytes.Buffer
	c.Stdout, c.Stderr = &out, &errOut
	begun := time.Now()
	err := c.Run()
	a := answer{out.String(), errOut.String(), c.ProcessState.ExitCode(), time.Since(begun) - own}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return a
}

// within checks that the command failed in time, with one line that says all of that. It returns what is wrong.
func (a answer) within(limit time.Duration, says ...string) (wrong []string) {
	fault := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	if first, rest, _ := strings.Cut(a.err, "\n"); limit > google.QuietFor && strings.HasPrefix(first, "pitstop: waiting for ") {
		a.err = rest // a machine that is busy may take a second
	}
	if a.code != cli.ExitFailed || a.out != "" || strings.Count(a.err, "\n") != 1 {
		fault("exit code %d, want 1 and one line: %s%s", a.code, a.out, a.err)
	}
	if a.took > limit+time.Second {
		fault("it took %s, with --timeout %s", a.took, limit)
	}
	for _, s := range says {
		if !regexp.MustCompile(s).MatchString(a.err) {
			fault("it does not say %s: %s", s, a.err)
		}
	}
	return wrong
}

// insist calls a verb until it fails as it should. A machine that is busy may be late, or pass a short limit before the call that the
// verb should name: not three times.
func insist(t *testing.T, limit time.Duration, environment, args []string, says ...string) {
	t.Helper()
	wrong := ownProcess(t, environment, args).within(limit, says...)
	for range 2 {
		if len(wrong) > 0 {
			wrong = ownProcess(t, environment, args).within(limit, says...)
		}
	}
	for _, w := range wrong {
		t.Error(w)
	}
}

// walk calls every verb in an environment.
func walk(t *testing.T, limit time.Duration, environment []string, says ...string) {
	t.Helper()
	verbs := verbsThatAsk(t)
	for i, name := range slices.Sorted(maps.Keys(verbs)) {
		if i%breadth.Every(3) != 0 { // each is a process
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			args := append(verbs[name], "--timeout", limit.String())
			insist(t, limit, environment, args, says...)
		})
	}
}

// brief is a --timeout below the second after which a verb says that it waits.
const brief = 300 * time.Millisecond

// ample is a --timeout for services that answer at once.
const ample = 10 * time.Second

// deaf is a port that takes connections and never answers.
func deaf(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var open []net.Conn
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			mu.Lock()
			open = append(open, c)
			mu.Unlock()
		}
	}()
	t.Cleanup(func() {
		_ = l.Close() //nolint:errcheck // nothing is sent
		mu.Lock()
		defer mu.Unlock()
		for _, c := range open {
			_ = c.Close() //nolint:errcheck // likewise
		}
	})
	return l.Addr().String()
}

// robot is a file with the key of a service account.
func robot(t *testing.T) string {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := json.Marshal(map[string]string{ //nolint:gosec // a key of this test alone
		"type": "service_account", "client_email": "robot@demo.iam.gserviceaccount.com", "token_uri": "https://oauth2.googleapis.com/token",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})),
	})
	if err != nil {
		t.Fatal(err)
	}
	return entriestest.Write(t, "robot.json", string(raw))
}

// person is a file with the credentials of a person, as gcloud writes it.
func person(t *testing.T) string {
	t.Helper()
	const file = `{"type":"authorized_user","client_id":"c","client_secret":"s","refresh_token":"r"}`
	return entriestest.Write(t, "person.json", file)
}

func TestNoVerbWaitsForANetworkThatLeadsNowhere(t *testing.T) {
	t.Run("as an account", func(t *testing.T) {
		walk(t, brief, []string{"HTTPS_PROXY=http://" + deaf(t), "GOOGLE_APPLICATION_CREDENTIALS=" + robot(t)},
			`did not answer within 300ms as robot@demo\.iam\.gserviceaccount\.com; check the network`)
	})
	t.Run("as a person", func(t *testing.T) {
		file := person(t)
		walk(t, brief, []string{"HTTPS_PROXY=http://" + deaf(t), "GOOGLE_APPLICATION_CREDENTIALS=" + file},
			`did not answer within 300ms as the user of `+regexp.QuoteMeta(file)+`; check the network`)
	})
}

// TestTheAccountTakesNoTimeOfItsOwn: pause and resume ask for it first, with a bound that only a --timeout of some seconds shows.
func TestTheAccountTakesNoTimeOfItsOwn(t *testing.T) {
	const limit = 4 * time.Second
	file := person(t)
	insist(t, limit, []string{"HTTPS_PROXY=http://" + deaf(t), "GOOGLE_APPLICATION_CREDENTIALS=" + file},
		[]string{"pause", "--all", "--project", "demo", "--timeout", limit.String()},
		`did not answer within 4s as the user of `+regexp.QuoteMeta(file)+`; check the network`)
}

// TestAVerbSaysWhatItWaitsFor after a second.
func TestAVerbSaysWhatItWaitsFor(t *testing.T) {
	a := ownProcess(t, []string{"HTTPS_PROXY=http://" + deaf(t), "GOOGLE_APPLICATION_CREDENTIALS=" + robot(t)},
		[]string{"pause", "--all", "--project", "demo", "--timeout", "1500ms"})
	first, second, _ := strings.Cut(a.err, "\n")
	want := "pitstop: waiting for Google's token service (oauth2.googleapis.com), as robot@demo.iam.gserviceaccount.com; --timeout is 1.5s"
	if first != want || !strings.Contains(second, "did not answer within 1.5s") || strings.Count(a.err, "\n") != 2 {
		t.Errorf("it says:\n%s", a.err)
	}
}

// TestNoVerbTriesAgainForLongerThanItsTimeout: a port that refuses is tried by Google's clients for minutes.
func TestNoVerbTriesAgainForLongerThanItsTimeout(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed
	if err != nil {
		t.Fatal(err)
	}
	closed := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	walk(t, brief, []string{"HTTPS_PROXY=http://" + closed, "GOOGLE_APPLICATION_CREDENTIALS=" + robot(t)},
		`cannot be reached as robot@demo\.iam\.gserviceaccount\.com: .*connection refused; check the network`)
}

func TestEveryVerbSaysHowToGetCredentials(t *testing.T) {
	const wayOut = `; run gcloud auth application-default login`
	t.Run("none", func(t *testing.T) { // a machine of Google's without a service account is asked at its metadata server alone
		server := httptest.NewServer(http.NotFoundHandler())
		t.Cleanup(server.Close)
		walk(t, ample, []string{"HTTPS_PROXY=http://" + deaf(t), "GCE_METADATA_HOST=" + server.Listener.Addr().String()},
			"Google cannot be asked without credentials", wayOut)
	})
	t.Run("a metadata server that never answers", func(t *testing.T) {
		walk(t, brief, []string{"HTTPS_PROXY=http://" + deaf(t), "GCE_METADATA_HOST=" + deaf(t)},
			"the metadata server did not answer within 300ms", wayOut)
	})
	t.Run("a file that is missing", func(t *testing.T) {
		walk(t, brief, []string{"HTTPS_PROXY=http://" + deaf(t), "GOOGLE_APPLICATION_CREDENTIALS=/none/key.json"},
			"Google cannot be asked without credentials: open /none/key.json: no such file", wayOut)
	})
	t.Run("revoked", func(t *testing.T) {
		g := newRefusing(t)
		g.token = `{"error":"invalid_grant","error_description":"Token has been expired or revoked."}`
		walk(t, ample, append(g.environment(), "GOOGLE_APPLICATION_CREDENTIALS="+person(t)),
			`does not accept the credentials of the user of .* \(invalid_grant: Token has been`, wayOut)
	})
}

func TestEveryVerbSaysWhatGoogleRefuses(t *testing.T) {
	g := newRefusing(t)
	walk(t, ample, append(g.environment(), "GOOGLE_APPLICATION_CREDENTIALS="+robot(t)),
		`(Firestore|Pub/Sub|the Cloud TPU API|Cloud Logging) refuses robot@demo\.iam\.gserviceaccount\.com: `+
			`(Missing or insufficient permissions|User not authorized to perform this action|Permission '(tpu\.locations|logging\.logEntries)\.list' denied)`, `ask for a role`)
}

// refusing is Google for a credential that may do nothing: a proxy that answers for every host with the refusals that Google sends.
type refusing struct {
	address, ca string
	// token is what the token service refuses with, if it does.
	token string
	calls atomic.Int64
}

func (g *refusing) environment() []string {
	return []string{"HTTPS_PROXY=http://" + g.address, "SSL_CERT_FILE=" + g.ca}
}

func newRefusing(t *testing.T) *refusing {
	t.Helper()
	cert, ca := certificate(t)
	g := &refusing{ca: ca}
	inner := httptest.NewUnstartedServer(nil)
	rpc := grpc.NewServer(grpc.UnknownServiceHandler(func(_ any, s grpc.ServerStream) error {
		g.calls.Add(1)
		method, _ := grpc.MethodFromServerStream(s)
		if strings.HasPrefix(method, "/google.pubsub.") {
			return status.Error(codes.PermissionDenied, "User not authorized to perform this action.")
		}
		return status.Error(codes.PermissionDenied, "Missing or insufficient permissions.")
	}))
	inner.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ProtoMajor == 2 && strings.HasPrefix(r.Header.Get("Content-Type"), "application/grpc") {
			rpc.ServeHTTP(w, r)
			return
		}
		g.rest(w, r)
	})
	inner.EnableHTTP2 = true
	inner.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}, MinVersion: tls.VersionTLS12}
	inner.StartTLS()
	t.Cleanup(inner.Close)
	outer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodConnect {
			w.WriteHeader(http.StatusBadGateway)
			return
		}
		tunnel(w, inner.Listener.Addr().String())
	}))
	t.Cleanup(outer.Close)
	g.address = outer.Listener.Addr().String()
	return g
}

// tunnel joins a client of a proxy with a server.
func tunnel(w http.ResponseWriter, to string) {
	there, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	here, buffered, err := w.(http.Hijacker).Hijack() //nolint:forcetypeassert // a server's of HTTP/1.1 is one
	if err != nil {
		return
	}
	_, _ = here.Write([]byte("HTTP/1.1 200 Connection established\r\n\r\n")) //nolint:errcheck // the client tells
	go pipe(there, buffered.Reader)
	go pipe(here, bufio.NewReader(there))
}

func pipe(to net.Conn, from *bufio.Reader) {
	_, _ = io.Copy(to, from) //nolint:errcheck // the client tells
	_ = to.Close()           //nolint:errcheck // likewise
}

// rest answers as Google's REST APIs and its token service do.
func (g *refusing) rest(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.Host == "oauth2.googleapis.com" {
		if g.token != "" {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, g.token) //nolint:errcheck // the client tells
			return
		}
		_, _ = io.WriteString(w, `{"access_token":"t","expires_in":3599,"token_type":"Bearer"}`) //nolint:errcheck // likewise
		return
	}
	g.calls.Add(1)
	permission, text := "logging.logEntries.list", "Permission 'logging.logEntries.list' denied on resource (or it may not exist)."
	if r.Host == "tpu.googleapis.com" {
		permission, text = "tpu.locations.list", "Permission 'tpu.locations.list' denied on 'projects/demo'"
	}
	w.WriteHeader(http.StatusForbidden)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{ //nolint:errcheck // likewise
		"code": 403, "message": text, "status": "PERMISSION_DENIED", "details": []any{map[string]any{
			"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "IAM_PERMISSION_DENIED", "domain": "iam.googleapis.com",
			"metadata": map[string]string{"permission": permission, "resource": "projects/demo"},
		}},
	}})
}

// certificate is one for all of Google's hosts, and the file of the authority that signed it.
func certificate(t *testing.T) (tls.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	of := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"*.googleapis.com"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	raw, err := x509.CreateCertificate(rand.Reader, of, of, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}, file
}

// TestEveryFileIsNamedWhole: the demo stands in another folder than its caller, so a verb for it has to know which of its flags name a file.
func TestEveryFileIsNamedWhole(t *testing.T) {
	t.Parallel()
	var walk func(c *cobra.Command)
	found, file := 0, regexp.MustCompile(`\b(a|this) file\b`)
	walk = func(c *cobra.Command) {
		c.Flags().VisitAll(func(f *pflag.Flag) {
			_, marked := f.Annotations[cli.FileFlag]
			if names := file.MatchString(f.Usage) && f.Value.Type() == "string" && c.Flags().Lookup("demo") != nil; names && !marked {
				t.Errorf("%s --%s: %s", c.CommandPath(), f.Name, f.Usage)
			}
			if marked {
				found++
			}
		})
		for _, below := range c.Commands() {
			walk(below)
		}
	}
	if walk(commands()); found < 6 {
		t.Errorf("only %d flags name a file", found)
	}
}
