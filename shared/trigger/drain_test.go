package trigger_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
	cloudevents "github.com/cloudevents/sdk-go/v2"

	"pitstop.internal/shared/trigger"
)

func TestDrainLetsRequestsEnd(t *testing.T) {
	exited := make(chan struct{})
	drain := trigger.NewDrain(func() { close(exited) })
	entered, leave := make(chan struct{}), make(chan struct{})
	a, _ := adapter(func(context.Context, cloudevents.Event) error {
		close(entered)
		<-leave
		return nil
	})
	a.Drain = drain
	first := make(chan int)
	go func() { first <- post(t, a, pushBody(t, "{}", nil), nil).Code }()
	<-entered
	drain.Close()
	w := post(t, a, pushBody(t, "{}", nil), nil)
	if connection := w.Header().Get("Connection"); w.Code != 503 || connection != "close" {
		t.Errorf("a request during the drain: status %d, Connection %q, want 503 and close", w.Code, connection)
	}
	select {
	case <-exited:
		t.Error("the process ended before its request did")
	default:
	}
	// A client that is still sending gets its refusal too.
	body, sends := io.Pipe()
	refused := make(chan int)
	go func() {
		w := httptest.NewRecorder()
		a.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/", body))
		refused <- w.Code
	}()
	if _, err := sends.Write([]byte("{")); err != nil { // the write returns when the body is read
		t.Fatal(err)
	}
	close(leave)
	if code := <-first; code != 200 {
		t.Errorf("the request under way: status %d, want 200", code)
	}
	select {
	case <-exited:
		t.Error("the process ended before it had answered the request that it refuses")
	default:
	}
	must(t, sends.Close())
	if code := <-refused; code != 503 {
		t.Errorf("the refused request: status %d, want 503", code)
	}
	<-exited
}

func TestDrainDoesNotWaitForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		exited := make(chan time.Time, 2)
		drain := trigger.NewDrain(func() { exited <- time.Now() })
		leave := make(chan struct{})
		a, _ := adapter(func(context.Context, cloudevents.Event) error {
			<-leave
			return nil
		})
		a.Drain = drain
		go post(t, a, pushBody(t, "{}", nil), nil)
		synctest.Wait()
		asked := time.Now()
		drain.Close()
		if took := (<-exited).Sub(asked); took >= 10*time.Second {
			t.Errorf("the process ended %v after SIGTERM, want less than the 10 s that Cloud Run gives", took)
		}
		close(leave)
		synctest.Wait()
		if len(exited) > 0 {
			t.Error("the process ended twice")
		}
	})
}

// heldPort is set in the environment of the process that TestSIGTERMLosesNoAnswer starts: this test binary, serving
// HandleHeld as the program of the buildpack does.
const heldPort = "TRIGGER_TEST_HELD_PORT"

// longFault is longer than the buffers of net/http, so that an answer can be cut off in its middle.
var longFault = strings.Repeat("the database is not there yet; ", 1000)

// serveHeld registers HandleHeld and serves it. It writes a line for every request that has come to the handler, which
// waits until standard input ends.
func serveHeld() error {
	release := make(chan struct{})
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin) //nolint:errcheck // however it ends, it has ended
		close(release)
	}()
	trigger.Register("HandleHeld", trigger.Function[struct{}, string]{
		Decode: func(e cloudevents.Event) (string, error) { return e.Type(), nil },
		Build: func(context.Context, struct{}) (func(context.Context, string) error, error) {
			return func(_ context.Context, ceType string) error {
				fmt.Println("held")
				<-release
				if ceType == "fails.v1" {
					return errors.New(longFault)
				}
				return nil
			}, nil
		},
	})
	return funcframework.StartHostPort("127.0.0.1", os.Getenv(heldPort))
}

// heldProcess is a process that serves HandleHeld.
type heldProcess struct {
	url   string
	cmd   *exec.Cmd
	stdin io.Closer
	said  *bufio.Scanner
}

func startHeld(ctx context.Context, t *testing.T) heldProcess {
	t.Helper()
	addr, err := freeAddress(ctx)
	must(t, err)
	_, port, _ := strings.Cut(addr, ":")
	c := exec.CommandContext(ctx, os.Args[0]) //nolint:gosec // this test
	c.Env = append(os.Environ(), heldPort+"="+port, "FUNCTION_TARGET=HandleHeld")
	c.Stderr = os.Stderr
	stdin, err := c.StdinPipe()
	must(t, err)
	stdout, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill() }) //nolint:errcheck // it has ended, unless the test failed
	for {
		var d net.Dialer
		if conn, err := d.DialContext(ctx, "tcp", addr); err == nil {
			must(t, conn.Close())
			break
		}
		if ctx.Err() != nil {
			t.Fatal("the process does not listen")
		}
	}
	return heldProcess{url: "http://" + addr, cmd: c, stdin: stdin, said: bufio.NewScanner(stdout)}
}

// heldAnswer is an answer of the process that came whole.
type heldAnswer struct {
	status int
	text   string
	closes bool // the connection
}

func (p heldProcess) send(ctx context.Context, client *http.Client, method string, body []byte) (heldAnswer, error) {
	r, err := http.NewRequestWithContext(ctx, method, p.url, bytes.NewReader(body))
	if err != nil {
		return heldAnswer{}, err
	}
	resp, err := client.Do(r)
	if err != nil {
		return heldAnswer{}, err
	}
	text, err := io.ReadAll(resp.Body)
	return heldAnswer{resp.StatusCode, string(text), resp.Close}, errors.Join(err, resp.Body.Close())
}

// TestSIGTERMLosesNoAnswer ends a real process while requests are under way: each of them gets its whole answer.
func TestSIGTERMLosesNoAnswer(t *testing.T) {
	requests := 200
	if testing.Short() {
		requests = 20
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // a process that hangs fails the test
	defer cancel()
	p := startHeld(ctx, t)
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()

	var wg sync.WaitGroup
	for i := range requests {
		ceType, want := "succeeds.v1", heldAnswer{status: 200, closes: true}
		if i%2 == 0 {
			ceType, want = "fails.v1", heldAnswer{status: 500, text: longFault + "\n", closes: true}
		}
		body := request(t, fmt.Sprint(i), ceType)
		wg.Go(func() {
			got, err := p.send(ctx, client, http.MethodPost, body)
			switch {
			case err != nil:
				t.Errorf("request %d: %v", i, err)
			case got != want:
				t.Errorf("request %d: status %d, %d bytes, connection closed: %t; want %d, %d, %t",
					i, got.status, len(got.text), got.closes, want.status, len(want.text), want.closes)
			}
		})
	}
	for range requests {
		if !p.said.Scan() || p.said.Text() != "held" {
			t.Fatalf("the process said %q (%v), want a line for every request", p.said.Text(), p.said.Err())
		}
	}
	must(t, p.cmd.Process.Signal(syscall.SIGTERM))
	for {
		// Before the signal has arrived a GET is answered 400.
		refusal, err := p.send(ctx, client, http.MethodGet, nil)
		must(t, err)
		if refusal.status == http.StatusServiceUnavailable {
			if !refusal.closes {
				t.Error("the refusal does not close the connection")
			}
			break
		}
	}
	must(t, p.stdin.Close())
	wg.Wait()
	if err := p.cmd.Wait(); err != nil {
		t.Errorf("the process ended with %v, want exit code 0", err)
	}
}
