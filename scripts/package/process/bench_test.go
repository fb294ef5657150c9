package process_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pitstop.internal/scripts/package/process"
)

// hello is a function that does nothing, on the same framework.
const hello = `package main

import (
	"net/http"
	"os"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
)

func main() {
	functions.HTTP("Hello", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	if err := funcframework.StartHostPort("127.0.0.1", os.Getenv("PORT")); err != nil {
		panic(err)
	}
}
`

// BenchmarkStart is the cold start of each function: from the start of its process to its answer to one message of unknown kind. It comes
// beside the start of a hello-world.
func BenchmarkStart(b *testing.B) {
	if testing.Short() {
		b.Skip("it builds every function")
	}
	deployed, err := process.Functions("../../..")
	if err != nil {
		b.Fatal(err)
	}
	var base float64
	for _, f := range slices.Concat([]process.Function{{Name: "hello", Target: "Hello"}}, deployed) {
		src := []byte(hello)
		if f.Target != "Hello" {
			src = process.Main("pitstop.internal/functions/" + f.Name)
		}
		b.Run(f.Name, func(b *testing.B) {
			binary := built(b, src)
			for b.Loop() {
				stop, err := started(b.Context(), binary, f.Target)
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				stop()
				b.StartTimer()
			}
			took := float64(b.Elapsed()) / float64(b.N)
			if f.Target == "Hello" {
				base = took
			}
			if base > 0 {
				b.ReportMetric(took/base, "times-hello")
			}
		})
	}
}

// built builds a program.
func built(b *testing.B, src []byte) (binary string) {
	b.Helper()
	dir := b.TempDir()
	main, binary := filepath.Join(dir, "main.go"), filepath.Join(dir, "function")
	if err := os.WriteFile(main, src, 0o600); err != nil {
		b.Fatal(err)
	}
	c := exec.CommandContext(b.Context(), "go", "build", "-o", binary, main) //nolint:gosec // our own names
	if out, err := c.CombinedOutput(); err != nil {
		b.Fatalf("%v: %s", err, out)
	}
	return binary
}

// started starts a function and waits for its first answer.
func started(ctx context.Context, binary, target string) (stop func(), err error) {
	port, err := process.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, binary)
	c.Env = append(slices.Concat(os.Environ(), process.Environment()), "PORT="+port, "FUNCTION_TARGET="+target, "LOG_LEVEL=ERROR")
	if err := c.Start(); err != nil {
		return nil, err
	}
	stop = func() { _ = errors.Join(c.Process.Kill(), c.Wait()) } //nolint:errcheck // it was killed
	const message = `{"message":{"data":"e30=","attributes":{"ce-type":"unknown.v1","ce-id":"1","ce-source":"//bench"},"messageId":"1"},"subscription":"projects/demo/subscriptions/s"}`
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://127.0.0.1:"+port, strings.NewReader(message))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
		resp, err := http.DefaultClient.Do(r)
		if err != nil && ctx.Err() == nil {
			continue // it does not listen yet
		}
		if err != nil {
			stop()
			return nil, err
		}
		said, err := io.ReadAll(resp.Body)
		want := http.StatusOK
		if target == "ServeConsole" {
			want = http.StatusForbidden // nobody is signed in
		}
		if err = errors.Join(err, resp.Body.Close()); err == nil && resp.StatusCode != want {
			err = fmt.Errorf("the first answer is %s: %s", resp.Status, said)
		}
		if err != nil {
			stop()
		}
		return stop, err
	}
}
