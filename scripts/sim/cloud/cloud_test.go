package cloud_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"cloud.google.com/go/tpu/apiv1/tpupb"
	"github.com/google/go-cmp/cmp"
	"google.golang.org/api/logging/v2"
	"google.golang.org/api/option"
	"google.golang.org/api/storage/v1"
	tpu "google.golang.org/api/tpu/v2alpha1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"pitstop.internal/scripts/sim/cloud"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/provider/cloudtpu"
)

// hand is a clock that a test moves.
type hand struct {
	mu  sync.Mutex
	now time.Time
}

func newHand() *hand { return &hand{now: time.Date(2026, 11, 12, 2, 0, 0, 0, time.UTC)} }

func (h *hand) Now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.now
}

func (h *hand) pass(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

// served serves a cloud until the test ends, and returns its address.
func served(t *testing.T, c *cloud.Cloud) string {
	t.Helper()
	l, err := cloud.Listen(t.Context(), "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- c.Serve(ctx, l) }()
	t.Cleanup(func() {
		cancel()
		must(t, <-ended)
	})
	return "http://" + l.Addr().String()
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// plain are the options of a client that speaks gRPC without TLS.
func plain() []option.ClientOption {
	return []option.ClientOption{option.WithoutAuthentication(), option.WithGRPCDialOption(grpc.WithTransportCredentials(insecure.NewCredentials()))}
}

func made(t *testing.T, c cloud.Config) *cloud.Cloud {
	t.Helper()
	made, err := cloud.New(c)
	must(t, err)
	return made
}

const zone = "us-west4-a"

func fleet(t *testing.T) world.Scenario {
	t.Helper()
	s, err := world.Parse([]byte(`
project: demo
capacity: {us-west4-a: 3, us-west4-b: -1}
buckets: {ckpt: us-west4}
fleet:
  - {name: llama-8b, zone: us-west4-a, accelerator: v5litepod-16, spot: true, policy: spot, directory: "gs://ckpt/llama-8b"}
  - {name: gemma-0, zone: us-west4-a, accelerator: v5litepod-16, queued_resource: gemma}
  - {name: gemma-1, zone: us-west4-a, accelerator: v5litepod-16, queued_resource: gemma}
`))
	must(t, err)
	return s
}

func endpoint(url string) []option.ClientOption {
	return []option.ClientOption{option.WithEndpoint(url), option.WithoutAuthentication()}
}

// TestGooglesClientsCallItsServices: three clients that others wrote call the three services over one socket.
func TestGooglesClientsCallItsServices(t *testing.T) {
	now := newHand()
	url := served(t, made(t, cloud.Config{Fleet: fleet(t), Now: now.Now}))
	api, err := tpu.NewService(t.Context(), endpoint(url)...)
	must(t, err)
	nodes := api.Projects.Locations.Nodes
	list, err := nodes.List("projects/demo/locations/" + zone).Do()
	must(t, err)
	var names []string
	for _, n := range list.Nodes {
		names = append(names, n.Name[strings.LastIndexByte(n.Name, '/')+1:])
	}
	if got := strings.Join(names, " "); got != "gemma-0 gemma-1 llama-8b" {
		t.Errorf("nodes %q", got)
	}
	_, err = nodes.Delete("projects/demo/locations/" + zone + "/nodes/llama-8b").Do()
	must(t, err)
	now.pass(10 * time.Minute)
	if _, err := nodes.Get("projects/demo/locations/" + zone + "/nodes/llama-8b").Do(); err == nil || !strings.Contains(err.Error(), "was not found") {
		t.Errorf("the node is still there: %v", err)
	}

	logs, err := logging.NewService(t.Context(), endpoint(url)...)
	must(t, err)
	answer, err := logs.Entries.List(&logging.ListLogEntriesRequest{
		ResourceNames: []string{"projects/demo"}, Filter: `protoPayload.methodName="google.cloud.tpu.v2alpha1.Tpu.DeleteNode"`,
	}).Do()
	must(t, err)
	if len(answer.Entries) != 2 {
		t.Errorf("%d entries of the deletion in the audit log, want its start and its end", len(answer.Entries))
	}

	buckets, err := storage.NewService(t.Context(), option.WithEndpoint(url+"/storage/v1/"), option.WithoutAuthentication())
	must(t, err)
	_, err = buckets.Objects.Insert("ckpt", &storage.Object{Name: "llama-8b/1/state"}).Media(strings.NewReader("weights")).Do()
	must(t, err)
	if b, err := buckets.Buckets.Get("ckpt").Do(); err != nil || b.Location != "US-WEST4" {
		t.Errorf("bucket %+v, %v", b, err)
	}
}

// TestTheFunctionsProviderReadsBothSorts: as a function's process is configured, over HTTP and by gRPC on one port.
func TestTheFunctionsProviderReadsBothSorts(t *testing.T) {
	s := fleet(t)
	s.Fleet = append(s.Fleet, world.SliceConfig{Name: "old", Zone: zone, Accelerator: "v2-8", Legacy: true})
	url := served(t, made(t, cloud.Config{Fleet: s}))
	p, err := cloudtpu.Config{Endpoint: url, LegacyZones: []string{zone}}.Open(t.Context())
	must(t, err)
	list, err := p.List(t.Context(), "demo", zone)
	must(t, err)
	got := map[string]bool{}
	for _, s := range list.Slices {
		got[s.Name] = s.Legacy
	}
	if d := cmp.Diff(map[string]bool{"llama-8b": false, "gemma-0": false, "gemma-1": false, "old": true}, got); d != "" || list.Unread != nil {
		t.Errorf("%v, slices and whether they are legacy (-want +got):\n%s", list.Unread, d)
	}
}

// TestNoPageReachesTheCloud: what a page of a browser can send, to this machine or by a name of its own, has no effect, and no answer but
// why. Nor has a call by gRPC under such a name.
func TestNoPageReachesTheCloud(t *testing.T) {
	url := served(t, made(t, cloud.Config{Fleet: fleet(t)}))
	const nodes = "/v2alpha1/projects/demo/locations/" + zone + "/nodes"
	send := func(method, path, host, origin string) (code int, says string) {
		t.Helper()
		body := `{"acceleratorType":"v5litepod-16","runtimeVersion":"v2-alpha-tpuv5-lite"}`
		if method == http.MethodGet {
			body = ""
		}
		r, err := http.NewRequestWithContext(t.Context(), method, url+path, strings.NewReader(body))
		must(t, err)
		r.Header.Set("Content-Type", "text/plain")
		if r.Host = host; origin != "" {
			r.Header.Set("Origin", origin)
		}
		res, err := http.DefaultClient.Do(r)
		must(t, err)
		text, err := io.ReadAll(res.Body)
		must(t, errors.Join(err, res.Body.Close()))
		return res.StatusCode, string(text)
	}
	for _, c := range []struct{ method, path, host, origin string }{
		{http.MethodPost, nodes + "?nodeId=mine", "", "https://evil.example"},
		{http.MethodPost, nodes + "?nodeId=mine", "evil.example:8090", ""},
		{http.MethodGet, nodes, "evil.example", ""},
		{http.MethodPost, "/upload/storage/v1/b/ckpt/o?name=mine", "", "null"},
	} {
		if code, says := send(c.method, c.path, c.host, c.origin); code != http.StatusForbidden || strings.Count(says, "\n") != 1 {
			t.Errorf("%+v: answer %d %q", c, code, says)
		}
	}
	if code, says := send(http.MethodGet, nodes, "", ""); code != http.StatusOK || strings.Contains(says, "nodes/mine") {
		t.Errorf("a page made a node: %d %s", code, says)
	}
	for name, want := range map[string]codes.Code{"evil.example": codes.PermissionDenied, "localhost": codes.OK} {
		conn, err := grpc.NewClient(strings.TrimPrefix(url, "http://"), grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority(name))
		must(t, err)
		_, err = tpupb.NewTpuClient(conn).ListNodes(t.Context(), &tpupb.ListNodesRequest{Parent: "projects/demo/locations/" + zone})
		if status.Code(err) != want {
			t.Errorf("by gRPC as %s: %v", name, err)
		}
		must(t, conn.Close())
	}
}

// TestSpeedShortensWhatTakesTime: a creation of five minutes takes five seconds at sixty times the speed, by the clock of the machine.
func TestSpeedShortensWhatTakesTime(t *testing.T) {
	now := newHand()
	c := made(t, cloud.Config{Now: now.Now, Speed: 60})
	url := served(t, c)
	api, err := tpu.NewService(t.Context(), endpoint(url)...)
	must(t, err)
	nodes := api.Projects.Locations.Nodes
	order := &tpu.Node{AcceleratorType: "v5litepod-16", RuntimeVersion: "v2-alpha-tpuv5-lite"}
	_, err = nodes.Create("projects/demo/locations/"+zone, order).NodeId("llama-8b").Do()
	must(t, err)
	for _, step := range []struct {
		pass  time.Duration
		state string
	}{{0, "CREATING"}, {4 * time.Second, "CREATING"}, {time.Second, "READY"}} {
		now.pass(step.pass)
		n, err := nodes.Get("projects/demo/locations/" + zone + "/nodes/llama-8b").Do()
		if err != nil || n.State != step.state {
			t.Errorf("after %v more: %+v, %v; want %s", step.pass, n, err, step.state)
		}
		if n != nil && n.CreateTime != newHand().Now().Format(time.RFC3339) {
			t.Errorf("it was created at %s, which is not the time of the machine", n.CreateTime)
		}
	}
}

func TestWhereACloudListens(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close() //nolint:errcheck // nobody called it
	for address, fault := range map[string]string{
		"127.0.0.1:0": "", "localhost:0": "", "[::1]:0": "", taken.Addr().String(): "address already in use; choose another port",
		"0.0.0.0:0": "can be reached from other machines", ":8090": "can be reached from other machines", "192.0.2.1:80": "can be reached from other machines",
		"8090": "is no address such as", "127.0.0.1:http:80": "is no address such as", "127.0.0.1:99999": "cannot listen on",
	} {
		l, err := cloud.Listen(t.Context(), address)
		if err == nil {
			must(t, l.Close())
		}
		if address == "[::1]:0" && (errors.Is(err, syscall.EAFNOSUPPORT) || errors.Is(err, syscall.EADDRNOTAVAIL)) {
			continue // this machine has no IPv6
		}
		if (err == nil) != (fault == "") || err != nil && (!strings.Contains(err.Error(), fault) || strings.Contains(err.Error(), "\n")) {
			t.Errorf("%q: %v, want %q", address, err, fault)
		}
	}
}

// TestTheEndCutsEveryCall: a call that waits does not hold the end up.
func TestTheEndCutsEveryCall(t *testing.T) {
	c := made(t, cloud.Config{})
	l, err := cloud.Listen(t.Context(), "127.0.0.1:0")
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- c.Serve(ctx, l) }()
	conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", l.Addr().String())
	must(t, err)
	defer conn.Close() //nolint:errcheck // it only made the call
	_, err = io.WriteString(conn, "POST /v2/entries:list HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 100\r\n\r\n")
	must(t, err)
	// The server asks for the body when the handler reads it.
	const goOn = "HTTP/1.1 100 Continue\r\n\r\n"
	asked := make([]byte, len(goOn))
	if _, err := io.ReadFull(conn, asked); err != nil || string(asked) != goOn {
		t.Fatalf("the server said %q, %v", asked, err)
	}
	cancel()
	must(t, <-ended)
	if answer, err := io.ReadAll(conn); len(answer) > 0 {
		t.Errorf("the call had the answer %q, %v", answer, err)
	}
}
