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

	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/entries/entriestest"
)

// TestTheCloudIsServedUntilItIsInterrupted starts it with a fleet, asks it for a node, and ends it.
func TestTheCloudIsServedUntilItIsInterrupted(t *testing.T) {
	fleet := entriestest.Write(t, "fleet.yaml", "project: mine\nfleet: [{name: llama-8b, zone: us-west4-a, accelerator: v5litepod-16}]\n")
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
	if got := <-code; got != cli.ExitInterrupted || errOut.String() != "" {
		t.Errorf("exit code %d, %q", got, errOut.String())
	}
}

func TestACloudThatCannotBeServedIsOneLine(t *testing.T) {
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // nobody called it
	empty, wrong := entriestest.Write(t, "empty.yaml", "project: mine\n"), entriestest.Write(t, "wrong.yaml", "project: mine\nfleet: [{name: a, zone: z, accelerator: x9-1}]\n")
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
		if code != cli.ExitUsage || out != "" || !strings.Contains(errOut, says) || strings.Count(errOut, "\n") > 2 {
			t.Errorf("%v: exit code %d, %q, %q; want %q", args, code, out, errOut, says)
		}
	}
}
