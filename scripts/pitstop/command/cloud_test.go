package main

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"regexp"
	"strings"
	"testing"

	simulated "pitstop.internal/scripts/sim/cloud"
)

// TestTheCloudIsServedUntilItIsInterrupted starts it with a fleet, asks it for a node, and ends it.
func TestTheCloudIsServedUntilItIsInterrupted(t *testing.T) {
	fleet := write(t, "fleet.yaml", "project: mine\nfleet: [{name: llama-8b, zone: us-west4-a, accelerator: v5litepod-16}]\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	out, printed := io.Pipe()
	code := make(chan int, 1)
	var errOut strings.Builder
	go func() {
		code <- run(ctx, []string{"cloud", "--listen", "127.0.0.1:0", "--fleet", fleet}, strings.NewReader(""), printed, &errOut)
		_ = printed.Close() //nolint:errcheck // a pipe closes without an error
	}()
	lines := bufio.NewReader(out)
	first, err := lines.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`^project mine with 1 node, at (http://127\.0\.0\.1:\d+); Ctrl-C ends it\n$`).FindStringSubmatch(first)
	if found == nil {
		t.Fatalf("it said %q", first)
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, found[1]+"/v2alpha1/projects/mine/locations/us-west4-a/nodes/llama-8b", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.Body.Close() != nil || resp.StatusCode != http.StatusOK || !strings.Contains(string(body), `"READY"`) {
		t.Errorf("%d %s, %v", resp.StatusCode, body, err)
	}
	cancel()
	rest, err := io.ReadAll(lines)
	if err != nil || !strings.Contains(string(rest), "export CLOUDSDK_API_ENDPOINT_OVERRIDES_TPU="+found[1]+"/\n") {
		t.Errorf("it went on with %q, %v", rest, err)
	}
	if got := <-code; got != exitInterrupted || errOut.String() != "" {
		t.Errorf("exit code %d, %q", got, errOut.String())
	}
}

// TestTheGreetingCanBeFollowed: what it prints names the first node, and in an empty cloud the call that creates one.
func TestTheGreetingCanBeFollowed(t *testing.T) {
	for name, c := range map[string]struct {
		fleet string
		says  []string
	}{
		"a fleet": {
			"project: mine\nfleet: [{name: llama-8b, zone: us-west4-a, accelerator: v5litepod-16}, {name: gemma, zone: us-east5-a, accelerator: v5litepod-16}]\n",
			[]string{
				"project mine with 2 nodes", "CLOUDSDK_API_ENDPOINT_OVERRIDES_LOGGING=http://127.0.0.1:8090/", "CLOUDSDK_CORE_PROJECT=mine",
				"tpu-vm describe gemma --zone=us-east5-a", `{"zone": "us-east5-a", "node": "gemma"}`,
			},
		},
		"a legacy node": {
			"project: mine\nfleet: [{name: old, zone: us-west4-a, accelerator: v2-8, legacy: true}]\n",
			[]string{"gcloud compute tpus describe old --zone=us-west4-a\n", "gcloud compute tpus list --zone=us-west4-a\n"},
		},
		"an empty cloud": {
			"", []string{
				"project demo with 0 nodes", "tpu-vm create llama-8b --zone=europe-west4-b \\\n    --accelerator-type=v5litepod-16 --version=v2-alpha-tpuv5-lite\n",
				`{"zone": "europe-west4-b", "node": "llama-8b"}`,
			},
		},
	} {
		var config simulated.Config
		if c.fleet != "" {
			fleet, err := readFleet([]string{write(t, "fleet.yaml", c.fleet)})
			if err != nil {
				t.Fatal(err)
			}
			config.Fleet = fleet
		}
		served, err := simulated.New(config)
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(greeting(served, "http://127.0.0.1:8090", strings.Repeat("t", 26)), "\n")
		for line := range strings.SplitSeq(said, "\n") {
			if len(line) > 100 {
				t.Errorf("%s: it is broken on the screen: %q", name, line)
			}
		}
		for _, says := range c.says {
			if !strings.Contains(said, says) {
				t.Errorf("%s: it says %s, want %q", name, said, says)
			}
		}
	}
}

func TestACloudThatCannotBeServedIsOneLine(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // nobody called it
	empty, wrong := write(t, "empty.yaml", "project: mine\n"), write(t, "wrong.yaml", "project: mine\nfleet: [{name: a, zone: z, accelerator: x9-1}]\n")
	for says, args := range map[string][]string{
		"--listen: cannot listen on " + taken.Addr().String(): {"--listen", taken.Addr().String()},
		"--listen: 0.0.0.0:80 can be reached from other":      {"--listen", "0.0.0.0:80"},
		"--listen: \"8090\" is no address":                    {"--listen", "8090"},
		"--speed 0 is not between":                            {"--speed", "0"},
		"--speed NaN is not between":                          {"--speed", "NaN"},
		"--fleet: open /nowhere: no such file":                {"--fleet", "/nowhere"},
		"--fleet " + empty + ": it names no slice":            {"--fleet", empty},
		"--fleet " + wrong + ": it is neither a JSON list":    {"--fleet", wrong},
		"cloud takes no \"here\", only flags":                 {"here"},
		"has no flag --fleets; did you mean --fleet?":         {"--fleets", "x"},
	} {
		out, errOut, code := call(t, "", append([]string{"cloud"}, args...)...)
		if code != exitUsage || out != "" || !strings.Contains(errOut, says) || strings.Count(errOut, "\n") > 2 {
			t.Errorf("%v: exit code %d, %q, %q; want %q", args, code, out, errOut, says)
		}
	}
}
