// Package publishtest holds code shared by the tests of several packages: the contract that every message broker of Pitstop
// keeps, and the start of Google's emulators. It imports only Pitstop's vocabulary, so that any package can use it.
package publishtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/api/option"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// Kind is one of Google's emulators.
type Kind string

// The emulators.
const (
	Firestore Kind = "Firestore"
	PubSub    Kind = "Pub/Sub"
)

// Variable is the environment variable that turns the emulators on. Without it the tests that need one are skipped, so that
// the plain test command stays quick.
const Variable = "PITSTOP_EMULATORS"

// readyWithin bounds the start of an emulator, which takes about a second on an idle machine.
const readyWithin = time.Minute

var (
	mu       sync.Mutex
	emulator = map[Kind]*process{}
)

// process is a running emulator, or the reason why there is none.
type process struct {
	address string
	err     error
	// alive is the pipe that keeps the emulator running: the system closes it when this process ends, however it ends.
	alive io.Closer
}

// ErrMissing says that an emulator is not installed on this machine.
var ErrMissing = errors.New("not installed")

// Emulator returns the address of one of Google's emulators. The emulator starts at its first use and ends with the test
// binary. If it is not wanted or not installed, the test is skipped.
func Emulator(t testing.TB, kind Kind) string {
	t.Helper()
	if os.Getenv(Variable) != "1" {
		t.Skipf("%s's emulator is not started: run the test with %s=1", kind, Variable)
	}
	address, err := Start(kind)
	switch {
	case errors.Is(err, ErrMissing):
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	return address
}

// Start returns the address of one of Google's emulators, or ErrMissing if it is not installed. The emulator starts at its
// first use and ends with this process.
func Start(kind Kind) (address string, err error) {
	mu.Lock()
	defer mu.Unlock()
	p, ok := emulator[kind]
	if !ok {
		p = start(kind)
		emulator[kind] = p
	}
	if p.err != nil {
		return "", fmt.Errorf("%s's emulator: %w", kind, p.err)
	}
	return p.address, nil
}

// start runs an emulator on a free port. Between the choice of the port and its use another process may take it; then start
// tries another port.
func start(kind Kind) *process {
	java, err := exec.LookPath("java")
	if err != nil {
		return &process{err: fmt.Errorf("%w: there is no java", ErrMissing)}
	}
	sdk, err := root()
	if err != nil {
		return &process{err: err}
	}
	var p *process
	for range 3 {
		if p = launch(java, sdk, kind); p.err == nil || errors.Is(p.err, ErrMissing) {
			break
		}
	}
	return p
}

// root finds the Google Cloud SDK.
func root() (string, error) {
	gcloud, err := exec.LookPath("gcloud")
	if err != nil {
		if dir := os.Getenv("CLOUDSDK_ROOT"); dir != "" {
			return dir, nil
		}
		return "", fmt.Errorf("%w: there is no gcloud, and CLOUDSDK_ROOT does not name the Google Cloud SDK", ErrMissing)
	}
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	cmd := exec.CommandContext(ctx, gcloud, "info", "--format=value(installation.sdk_root)") //nolint:gosec // found in PATH
	cmd.Env = append(os.Environ(), "CLOUDSDK_CORE_DISABLE_FILE_LOGGING=1", "CLOUDSDK_CORE_DISABLE_PROMPTS=1")
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("gcloud info: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// arguments are the arguments for java.
func arguments(sdk string, kind Kind, port int) ([]string, error) {
	where := []string{"--host=127.0.0.1", "--port=" + strconv.Itoa(port)}
	switch kind {
	case Firestore:
		jar, err := find(filepath.Join(sdk, "platform", "cloud-firestore-emulator", "cloud-firestore-emulator.jar"))
		// The jar names no main class.
		return append([]string{"-cp", jar, "com.google.cloud.datastore.emulator.firestore.CloudFirestore", "start", "--project_id=proj"}, where...), err
	case PubSub:
		jar, err := find(filepath.Join(sdk, "platform", "pubsub-emulator", "lib", "cloud-pubsub-emulator-*-all.jar"))
		return append([]string{"-jar", jar}, where...), err
	}
	return nil, fmt.Errorf("%q is no emulator", kind)
}

func find(pattern string) (string, error) {
	found, err := filepath.Glob(pattern)
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("%w: the Google Cloud SDK has no %s", ErrMissing, filepath.Base(pattern))
	}
	return found[len(found)-1], nil
}

// watch runs a program until it ends or until the other end of the standard input closes. Only that always happens when a
// process ends: a panic, a time-out or a kill skips a deferred call.
const watch = `exec 3<&0
"$@" </dev/null 3<&- &
program=$!
(while read -r line; do :; done; kill "$program") <&3 >/dev/null 2>&1 &
exec 3<&-
wait "$program"`

func launch(java, sdk string, kind Kind) *process {
	port, err := freePort()
	if err != nil {
		return &process{err: err}
	}
	args, err := arguments(sdk, kind, port)
	if err != nil {
		return &process{err: err}
	}
	var said head
	cmd := exec.CommandContext(context.Background(), "sh", append([]string{"-c", watch, "sh", java}, args...)...) //nolint:gosec // likewise
	cmd.Stdout, cmd.Stderr = &said, &said
	alive, err := cmd.StdinPipe()
	if err != nil {
		return &process{err: err}
	}
	if err := cmd.Start(); err != nil {
		return &process{err: fmt.Errorf("%w: %w", ErrMissing, err)}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = cmd.Wait() //nolint:errcheck // its output says how it ended
	}()
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	if err := await(address, ended); err != nil {
		return &process{err: errors.Join(fmt.Errorf("%w; it said: %s", err, said.String()), alive.Close())}
	}
	return &process{address: address, alive: alive}
}

func freePort() (int, error) {
	l, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close() //nolint:errcheck // nothing was read or written
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return 0, fmt.Errorf("%v is no TCP address", l.Addr())
	}
	return addr.Port, nil
}

// await waits until a server answers at the address.
func await(address string, ended <-chan struct{}) error {
	ctx, cancel := context.WithTimeout(context.Background(), readyWithin)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		if answers(ctx, address) {
			return nil
		}
		select {
		case <-ended:
			return errors.New("it ended before it was ready")
		case <-ctx.Done():
			return fmt.Errorf("it was not ready within %s", readyWithin)
		case <-again.C:
		}
	}
}

func answers(ctx context.Context, address string) bool {
	c, err := new(net.Dialer).DialContext(ctx, "tcp", address)
	if err != nil {
		return false
	}
	defer c.Close() //nolint:errcheck // nothing was read or written
	// A dial to a free local port may be given that very port and meet itself.
	return c.LocalAddr().String() != c.RemoteAddr().String()
}

// head keeps the beginning of a program's output, which says why it did not start.
type head struct {
	mu  sync.Mutex
	buf []byte
}

func (t *head) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	const most = 4 << 10
	t.buf = append(t.buf, p[:min(len(p), most-len(t.buf))]...)
	return len(p), nil
}

func (t *head) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return string(t.buf)
}

// Options make a client of Google's API speak to an emulator, or to any other server without transport security.
func Options(address string) []option.ClientOption {
	return []option.ClientOption{
		option.WithEndpoint(address), option.WithoutAuthentication(), option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials())),
	}
}
