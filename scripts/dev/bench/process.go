package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"

	"pitstop.internal/events"
	"pitstop.internal/scripts/package/process"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/provider/providertest/trainingtest"
	"pitstop.internal/shared/trigger"
)

// serveArgument has this program be the function that is measured, in a process of its own.
const serveArgument = "serve-function"

const (
	throughputSlices = 200
	throughputEvents = 20_000
	throughputReach  = 2000
	clients          = 32
)

// serveFunction serves logevent through the functions framework, over a ledger in memory that knows the slices. A second function
// answers how many steps of training the ledger has learned.
func serveFunction() error {
	ctx := context.Background()
	w, err := newListener(ctx, memory, publisherFunc(func(context.Context, events.Envelope) error { return nil }), func() {})
	if err != nil {
		return err
	}
	for i := range throughputSlices {
		if _, err := w.slice(ctx, i, "v5litepod-16"); err != nil {
			return err
		}
	}
	if err := trigger.Use("HandleLogEvent", w.function); err != nil {
		return err
	}
	functions.HTTP("Learned", func(rw http.ResponseWriter, r *http.Request) {
		var steps int64
		for i := range throughputSlices {
			doc, _, err := w.ledger.Workload(r.Context(), fmt.Sprintf("%s/llama-%d", project, i))
			if err != nil {
				http.Error(rw, err.Error(), http.StatusInternalServerError)
				return
			}
			steps += doc.Progress.Step
		}
		_, _ = fmt.Fprint(rw, steps) //nolint:errcheck // whoever asked sees that it is short
	})
	os.Stdout, _ = os.Open(os.DevNull) //nolint:errcheck // the framework lists its functions there
	host, port, _ := strings.Cut(os.Getenv("BENCH_ADDRESS"), ":")
	return funcframework.StartHostPort(host, port)
}

// benchThroughput sends progress lines of many slices to one function process, as fast as it takes them. Every line of a
// slice tells of a later step, so what the ledger has learned in the end shows whether one was lost.
func benchThroughput(ctx context.Context) ([]figure, error) {
	port, err := process.FreePort(ctx)
	if err != nil {
		return nil, err
	}
	address := "127.0.0.1:" + port
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := exec.CommandContext(ctx, self, serveArgument) //nolint:gosec // this very program
	c.Env = append(os.Environ(), "BENCH_ADDRESS="+address)
	c.Stderr = os.Stderr
	if err := c.Start(); err != nil {
		return nil, err
	}
	defer func() { _ = errors.Join(c.Process.Kill(), c.Wait()) }() //nolint:errcheck // it is not needed any more
	if err := listening(ctx, address); err != nil {
		return nil, err
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	next := make(chan int)
	var refused atomic.Int64
	var wg sync.WaitGroup
	began := time.Now()
	// A slice has one client, so that its steps come in order.
	for range clients {
		wg.Go(func() {
			for slice := range next {
				for n := range throughputEvents / throughputSlices {
					if post(ctx, client, "http://"+address+"/HandleLogEvent", progress(slice, int64(n+1))) != http.StatusOK {
						refused.Add(1)
					}
				}
			}
		})
	}
	for slice := range throughputSlices {
		next <- slice
	}
	close(next)
	wg.Wait()
	took := time.Since(began)
	learned, err := get(ctx, client, "http://"+address+"/Learned")
	if err != nil {
		return nil, err
	}
	want := fmt.Sprint(throughputSlices * throughputEvents / throughputSlices)
	rate := throughputEvents / took.Seconds()
	return []figure{{
		what: "throughput of one function process, ledger in memory", reach: "at least 2,000 events per second, none lost",
		value: fmt.Sprintf("%.0f events per second, %d refused, steps learned %s of %s", rate, refused.Load(), learned, want),
		ok:    rate >= throughputReach && refused.Load() == 0 && learned == want,
	}}, nil
}

func progress(slice int, step int64) []byte {
	entry := trainingtest.CrewEntry(events.CrewReport{
		Schema: events.Schema, Report: events.ReportProgress, Project: project, Zone: zone, Node: fmt.Sprintf("llama-%d", slice),
		Hostname: group(slice) + "-w-0", Attempt: 1, Step: step, Workers: 4,
	}, time.Now(), int(step))
	return body(string(entry), fmt.Sprintf("p%d-%d", slice, step))
}

func post(ctx context.Context, c *http.Client, url string, body []byte) int {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
	if err != nil {
		return 0
	}
	resp, err := c.Do(r)
	if err != nil {
		return 0
	}
	_, err = io.Copy(io.Discard, resp.Body)
	if errors.Join(err, resp.Body.Close()) != nil {
		return 0
	}
	return resp.StatusCode
}

func get(ctx context.Context, c *http.Client, url string) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	resp, err := c.Do(r)
	if err != nil {
		return "", err
	}
	b, err := io.ReadAll(resp.Body)
	return string(b), errors.Join(err, resp.Body.Close())
}

// listening waits until somebody listens.
func listening(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var d net.Dialer
	for {
		c, err := d.DialContext(ctx, "tcp", address)
		if err == nil {
			return c.Close()
		}
		if ctx.Err() != nil {
			return fmt.Errorf("nobody listens at %s: %w", address, err)
		}
		time.Sleep(100 * time.Microsecond)
	}
}

const (
	replayReach  = 5 * time.Second
	memoryReach  = 256 << 10 // KiB
	startRatio   = 2.0
	startMemory  = 30 << 10 // KiB
	startSamples = 21
)

// benchReplay runs the README's first command with a warm build cache.
func benchReplay(ctx context.Context) ([]figure, error) {
	var took time.Duration
	var peak int64
	for i := range 4 {
		c := exec.CommandContext(ctx, "go", "run", "./scripts/pitstop", "replay")
		began := time.Now()
		if out, err := c.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
		if i == 0 {
			continue // it warms the build cache
		}
		took = max(took, time.Since(began))
		if u, ok := c.ProcessState.SysUsage().(*syscall.Rusage); ok {
			peak = max(peak, u.Maxrss)
		}
	}
	return []figure{
		{what: "pitstop replay, warm build cache, wall time (worst of 3)", value: fmt.Sprintf("%.2f s", took.Seconds()), reach: "under 5 s", ok: took < replayReach},
		{what: "pitstop replay, peak memory", value: fmt.Sprintf("%.0f MiB", float64(peak)/1024), reach: "under 256 MiB", ok: peak < memoryReach},
	}, nil
}

// hello is a function that does nothing, on the same framework.
const hello = `package main

import (
	"net/http"
	"os"

	"github.com/GoogleCloudPlatform/functions-framework-go/funcframework"
	"github.com/GoogleCloudPlatform/functions-framework-go/functions"
)

func init() {
	functions.HTTP("Hello", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
}

func main() {
	if err := funcframework.StartHostPort("127.0.0.1", os.Getenv("PORT")); err != nil {
		panic(err)
	}
}
`

// benchStart measures from the start of a function's process to its answer to one message of unknown kind, beside a
// hello-world: one after the other, round by round, so that both meet the same machine.
func benchStart(ctx context.Context) ([]figure, error) {
	dir := filepath.Join("build", "bench")
	defer os.RemoveAll(dir) //nolint:errcheck // it is ignored by git
	deployed, err := process.Functions(".")
	if err != nil {
		return nil, err
	}
	names, targets := []string{"hello"}, map[string]string{"hello": "Hello"}
	for _, f := range deployed {
		names, targets[f.Name] = append(names, f.Name), f.Target
	}
	for _, name := range names {
		src := []byte(hello)
		if name != "hello" {
			src = process.Main("pitstop.internal/functions/" + name)
		}
		if err := os.MkdirAll(filepath.Join(dir, name), 0o750); err != nil {
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, name, "main.go"), src, 0o600); err != nil {
			return nil, err
		}
		c := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", filepath.Join(dir, name+".bin"), "./"+filepath.Join(dir, name)) //nolint:gosec // our own names
		c.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := c.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("%w: %s", err, out)
		}
	}
	took := map[string][]time.Duration{}
	resident := map[string]int64{}
	for range startSamples {
		for _, name := range names {
			d, rss, err := startOnce(ctx, filepath.Join(dir, name+".bin"), targets[name])
			if err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
			took[name] = append(took[name], d)
			resident[name] = max(resident[name], rss)
		}
	}
	base := percentile(took["hello"], 50)
	var figures []figure
	for _, name := range names[1:] {
		p50 := percentile(took[name], 50)
		ratio := float64(p50) / float64(base)
		figures = append(figures, figure{
			what: "start to first answer, " + name + ", p50 of 21", reach: "at most 2.0 times hello-world", ok: ratio <= startRatio,
			value: fmt.Sprintf("%.2f ms, %.2f times %.2f ms", ms(p50), ratio, ms(base)),
		}, figure{
			what: "resident memory after it, " + name, value: fmt.Sprintf("%.1f MiB", float64(resident[name])/1024), reach: "under 30 MiB",
			ok: resident[name] < startMemory,
		})
	}
	return figures, nil
}

func startOnce(ctx context.Context, binary, target string) (time.Duration, int64, error) {
	port, err := process.FreePort(ctx)
	if err != nil {
		return 0, 0, err
	}
	body := world.PushBody("projects/demo/subscriptions/s", world.Message{
		ID: "1", Published: time.Now(), Attributes: map[string]string{"ce-type": "unknown.v1", "ce-id": "1", "ce-source": "//bench"},
	}, 1)
	request := fmt.Appendf(nil, "POST / HTTP/1.1\r\nHost: bench\r\nContent-Type: application/json\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(body), body)
	c := exec.CommandContext(ctx, binary)
	c.Env = append(slices.Concat(os.Environ(), process.Environment()), "PORT="+port, "FUNCTION_TARGET="+target, "LOG_LEVEL=ERROR")
	began := time.Now()
	if err := c.Start(); err != nil {
		return 0, 0, err
	}
	defer func() { _ = errors.Join(c.Process.Kill(), c.Wait()) }() //nolint:errcheck // it is not needed any more
	answer, err := firstAnswer(ctx, "127.0.0.1:"+port, request)
	took := time.Since(began)
	if err != nil {
		return 0, 0, err
	}
	if !strings.HasPrefix(answer, "HTTP/1.1 200 ") {
		return 0, 0, fmt.Errorf("the answer is %.80q", answer)
	}
	rss, err := residentKiB(c.Process.Pid)
	return took, rss, err
}

// firstAnswer asks until somebody answers.
func firstAnswer(ctx context.Context, address string, request []byte) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var d net.Dialer
	for {
		c, err := d.DialContext(ctx, "tcp", address)
		if err != nil {
			if ctx.Err() != nil {
				return "", err
			}
			time.Sleep(50 * time.Microsecond)
			continue
		}
		if _, err := c.Write(request); err != nil {
			return "", errors.Join(err, c.Close())
		}
		answer, err := io.ReadAll(c)
		return string(answer), errors.Join(err, c.Close())
	}
}

func residentKiB(pid int) (int64, error) { return statusKiB(pid, "VmRSS") }

// statusKiB is a size in the status of a process.
func statusKiB(pid int, name string) (int64, error) {
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.SplitSeq(string(raw), "\n") {
		var kib int64
		if _, err := fmt.Sscanf(line, name+": %d kB", &kib); err == nil {
			return kib, nil
		}
	}
	return 0, errors.New("no " + name)
}
