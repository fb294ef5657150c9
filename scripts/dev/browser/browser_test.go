package browser_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"pitstop.internal/events"
	"pitstop.internal/scripts/dev/browser"
	"pitstop.internal/scripts/pitstop/console"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/scripts/pitstop/logs"
	"pitstop.internal/scripts/sim/replay"
	"pitstop.internal/scripts/sim/world"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/ledger/ledgertest"
	"pitstop.internal/shared/page"
	"pitstop.internal/shared/policy"
)

// Variables of the environment: the first turns these tests on, the second names the script of axe-core, and the third a folder for the pictures.
const (
	wanted   = "PITSTOP_BROWSER"
	axe      = "PITSTOP_AXE"
	pictures = "PITSTOP_PICTURES"
)

// open starts a browser, or skips the test.
func open(t *testing.T) *browser.Browser {
	t.Helper()
	if os.Getenv(wanted) != "1" {
		t.Skipf("no browser is started: run the test with %s=1", wanted)
	}
	b, err := browser.Start(context.WithoutCancel(t.Context()))
	if errors.Is(err, browser.ErrMissing) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	})
	return b
}

// evil is a name that would like to be more.
const evil = `</title><script>document.title="broken"</script><img src=http://evil.example/x onerror=alert(1)>` + "\u202e\x1b[31m"

// site serves the pages of a ledger at a time, and returns their address.
func site(t *testing.T, l *ledger.Ledger, now time.Time) string {
	t.Helper()
	s := httptest.NewServer(page.Site{
		Ledger: l, Now: func() time.Time { return now }, Log: slog.New(slog.DiscardHandler),
		Policies: func(context.Context) (ledger.Policies, error) { return presets{}, nil },
	}.Handler())
	t.Cleanup(s.Close)
	return s.URL
}

// presets are the policies without a file.
type presets struct{}

// For implements ledger.Policies.
func (presets) For(_ context.Context, label string) policy.Policy {
	return (*policy.File)(nil).For(label, policy.Everything())
}

// fleet serves a fleet in which there is one workload of each kind, and a past.
func fleet(t *testing.T) string {
	t.Helper()
	announced := deploymenttest.Training("gemma").Announces(events.Notice{Status: events.NoticePending, WindowStart: deploymenttest.Noon.Add(9 * time.Hour), WindowEnd: deploymenttest.Noon.Add(12 * time.Hour)})
	b := deploymenttest.New(t, ledgertest.NewStore().Open,
		deploymenttest.Trains("bert"), deploymenttest.Asking(), announced.Workload, deploymenttest.Training("gpt").GivesUp(2).Workload,
		deploymenttest.Training(evil).Reads(deploymenttest.Is(evidence.Lost, "PREEMPTED")).Workload,
		deploymenttest.Trains("mistral", deploymenttest.SavesEvery(3*time.Hour)), deploymenttest.Trains("t5", deploymenttest.SavesEvery(20*time.Minute)),
	)
	for i := range 60 {
		zone := []string{"us-west4-a", "us-central1-a", "europe-west4-b"}[i%3]
		w := deploymenttest.Healed([]string{"bert", "bert", "mistral"}[i%3], deploymenttest.Noon.Add(-time.Duration(i*i)*2*time.Hour), time.Duration(10+i)*time.Minute, i)
		w.Slices[0].Zone = zone
		if err := b.Ledger.SaveClosed(t.Context(), w, *w.Closed); err != nil {
			t.Fatal(err)
		}
	}
	return site(t, b.Ledger, deploymenttest.Noon)
}

// played serves what a recorded incident left in its ledger, and returns the address of its page.
func played(t *testing.T, name string) string {
	t.Helper()
	r, err := replay.Load("../../../events/testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	var opened ledger.Opener
	story, err := replay.Run(t.Context(), name, r.Scenario, r.Records, replay.Options{Options: world.Options{Policy: r.Policy, Hooks: world.Hooks{
		Ledger: func(database string, open ledger.Opener) ledger.Opener {
			if database == "ledger" {
				opened = open
			}
			return open
		},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	last := story.Ended[len(story.Ended)-1]
	return site(t, ledger.New(opened), last.Closed.Add(time.Hour)) + "/incident/" + last.Workload + "/" + last.ID
}

// account is the address of an account of a log that goodput has kept as a page: 25 workloads save every half hour, and lose their machines each day.
func account(t *testing.T) string {
	t.Helper()
	type entry struct {
		at   time.Time
		text string
	}
	var log []entry
	write := func(at time.Time, payload, name string) {
		text := fmt.Sprintf(`{%s,"insertId":"i%d","logName":"projects/mine/logs/%s","timestamp":%[4]q,"receiveTimestamp":%[4]q}`, payload, len(log), name, at.Format(time.RFC3339Nano))
		log = append(log, entry{at, text})
	}
	for i := range 25 * 20 {
		node, at := fmt.Sprintf("llama-%d", i%25), deploymenttest.Noon.Add(time.Duration(i/25)*24*time.Hour-20*24*time.Hour+time.Duration(i%25)*time.Minute)
		on := `"resourceName":"projects/mine/locations/us-west4-` + string(rune('a'+i%3)) + "/nodes/" + node + `"`
		for _, end := range []string{"first", "last"} {
			write(at, fmt.Sprintf(`"protoPayload":{"serviceName":"tpu.googleapis.com","methodName":"google.cloud.tpu.v2.Tpu.CreateNode",%s,"request":{"node":{"acceleratorType":"v5litepod-16"}}},"operation":{"id":"o%d",%q:true}`, on, i, end), "cloudaudit.googleapis.com%2Factivity")
			at = at.Add(4 * time.Minute)
		}
		saved := 1000 * (i / 25)
		for step := range 11 {
			line := fmt.Sprintf(`"jsonPayload":{"schema":1,"report":"progress","zone":"us-west4-%c","node":%q,"hostname":"t1v-n-1-w-0","attempt":%d,"step":%d,"step_at":%q,"first_step":%d,"first_step_at":%q,"steps_seconds":%d,"saves_seconds":%d,"checkpoint_step":%d}`,
				'a'+i%3, node, i/25+1, saved+100*step+1, at.Add(time.Duration(step)*2*time.Hour).Format(time.RFC3339), saved+1, at.Format(time.RFC3339), 6000*step, 240*step, saved+100*step)
			write(at.Add(time.Duration(step)*2*time.Hour), line, "pitstop-crew")
		}
		write(at.Add(21*time.Hour), `"protoPayload":{"methodName":"tpu.nodes.terminate",`+on+`}`, "cloudaudit.googleapis.com%2Fsystem_event")
	}
	entries, file := filepath.Join(t.TempDir(), "entries.json"), filepath.Join(t.TempDir(), "goodput.html")
	slices.SortStableFunc(log, func(a, b entry) int { return a.at.Compare(b.at) })
	var lines strings.Builder
	for _, e := range log {
		lines.WriteString(e.text + "\n")
	}
	must(t, os.WriteFile(entries, []byte(lines.String()), 0o600))
	root := &cobra.Command{Use: "pitstop"}
	root.AddCommand(logs.DeploymentCommands(deploymenttest.New(t, ledgertest.NewStore().Open).Deployment)...)
	root.SetArgs([]string{"goodput", "--html", file, entries})
	root.SetOut(io.Discard)
	must(t, root.ExecuteContext(t.Context()))
	return "file://" + file
}

// TestPagesInABrowser opens each page at two widths, in light and in dark: its console has no fault, it asks for nothing elsewhere, it is no wider than
// the window, and axe-core finds nothing.
func TestPagesInABrowser(t *testing.T) {
	b := open(t)
	rules, folder := os.Getenv(axe), os.Getenv(pictures)
	script, err := os.ReadFile(rules) //nolint:gosec // the gate names it
	if rules != "" && err != nil {
		t.Fatal(err)
	}
	home := fleet(t)
	for name, address := range map[string]string{
		"fleet": home + "/", "incidents": home + "/incidents", "filtered": home + "/incidents?cause=host_error&zone=us-west4-a&from=2026-01-01", "losses": home + "/losses",
		"time": home + "/time", "long time": home + "/time?from=2026-01-01&workload=mistral", "goodput": account(t),
		"asking": home + "/incident/demo/llama-8b/llama-8b-20261121-3", "nothing": home + "/incidents?workload=none",
		"preemption": played(t, "preemption"), "maintenance": played(t, "maintenance"), "stockout": played(t, "spot-to-on-demand"),
	} {
		for _, width := range []int{360, 1280} {
			for _, dark := range []bool{false, true} {
				must(t, b.Screen(width, dark))
				b.Seen()
				must(t, b.Open(address))
				var wide int
				must(t, b.Run("document.documentElement.scrollWidth", &wide))
				seen := b.Seen()
				if len(seen.Faults) > 0 || wide > width {
					t.Errorf("%s at %d: %d wide, %q", name, width, wide, seen.Faults)
				}
				for _, asked := range seen.Requests {
					if !strings.HasPrefix(asked, home) && !strings.HasPrefix(asked, address[:strings.LastIndex(address, ":")]) && !strings.HasPrefix(asked, "data:") {
						t.Errorf("%s asks for %s", name, asked)
					}
				}
				if folder != "" {
					shot, err := b.Picture()
					must(t, err)
					must(t, os.WriteFile(filepath.Join(folder, fmt.Sprintf("%s-%d-%s.png", name, width, map[bool]string{true: "dark", false: "light"}[dark])), shot, 0o600)) //nolint:gosec // the caller names the folder
				}
				if rules == "" {
					continue
				}
				must(t, b.Run(string(script), nil))
				var found []string
				must(t, b.Run(`axe.run().then(r => r.violations.map(v => v.id + ": " + v.help + ": " + v.nodes.slice(0, 3).map(n => n.html.slice(0, 200)).join(" | ")))`, &found))
				for _, f := range found {
					t.Errorf("%s at %d, dark %v: axe-core: %s", name, width, dark, f)
				}
			}
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestEachVerbIsClickedThrough: whoever opens the link of the console gives each order there: without its reason the browser keeps the form, and
// with it the page says what came of it, and the workload's record has the name and the reason.
func TestEachVerbIsClickedThrough(t *testing.T) {
	b := open(t)
	must(t, b.Screen(360, false))
	bench := deploymenttest.New(t, ledgertest.NewStore().Open, deploymenttest.Trains("bert"), deploymenttest.Asking(),
		deploymenttest.Training("gpt").GivesUp(2).Workload, deploymenttest.Training("t5").IsPaused(time.Time{}).Workload)
	s, err := console.Listen(t.Context(), "127.0.0.1:0", console.Site(bench.Deployment, bench.Ledger, deployment.Place{Project: "demo"}).Handler())
	must(t, err)
	ctx, end := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx) }()
	defer func() {
		end()
		must(t, <-done)
	}()
	must(t, b.Open(s.Link))
	home := strings.Split(s.Link, "/?")[0]
	for _, c := range []struct {
		verb     evidence.Verb
		workload string
	}{{evidence.VerbPause, "demo/bert"}, {evidence.VerbApprove, "demo/llama-8b"}, {evidence.VerbCancel, "demo/llama-8b"}, {evidence.VerbRetry, "demo/gpt"}, {evidence.VerbResume, "demo/t5"}} {
		must(t, b.Open(home+"/incidents?workload="+url.QueryEscape(c.workload)))
		b.Seen()
		press := fmt.Sprintf(`document.querySelector("form.order:has(#why-%s) button").click()`, c.verb)
		must(t, b.Run(press, nil))
		var stays bool
		must(t, b.Run(fmt.Sprintf(`document.querySelector("#why-%s:invalid") !== null`, c.verb), &stays))
		if !stays {
			t.Errorf("%s: it is given without a reason", c.verb)
		}
		must(t, b.Run(fmt.Sprintf(`document.querySelector("#why-%s").value = "<b>because</b>"`, c.verb), nil))
		must(t, b.Run(press, nil))
		must(t, b.Loaded())
		var said string
		must(t, b.Run(`document.querySelector("[role=status]")?.textContent ?? document.title + ": " + document.body.textContent`, &said))
		w, _, err := bench.Ledger.Workload(t.Context(), c.workload)
		must(t, err)
		given := w.Shown(deploymenttest.Noon).Orders
		if len(given) == 0 || given[len(given)-1].Verb != c.verb || given[len(given)-1].By != "ada@example.com" || given[len(given)-1].Why != "<b>because</b>" {
			t.Errorf("%s: the page says %q, and the record has %+v", c.verb, said, given)
		}
		if seen := b.Seen(); len(seen.Faults) > 0 {
			t.Errorf("%s: %q", c.verb, seen.Faults)
		}
	}
}
