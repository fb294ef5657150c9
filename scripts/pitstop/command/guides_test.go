package main

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/api/option"

	"pitstop.internal/events"
	"pitstop.internal/scripts/dev/guides"
	"pitstop.internal/scripts/pitstop/cli"
	"pitstop.internal/scripts/pitstop/deployment"
	"pitstop.internal/scripts/pitstop/deployment/deploymenttest"
	"pitstop.internal/shared/checkpoint/buckettest"
	"pitstop.internal/shared/cloudlog/cloudlogtest"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
)

// TestWhatTheGuidesAskIsShown runs each command of pitstop in the table of Google's guides, and holds what it prints.
func TestWhatTheGuidesAskIsShown(t *testing.T) {
	rows, err := guides.Read(page(t, "functions/README.md"))
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("../../..")
	t.Setenv("COLUMNS", "2000")
	printed := map[string]string{}
	for _, r := range rows {
		args, ok := strings.CutPrefix(r.Command, "pitstop ")
		if !ok {
			continue
		}
		out, ran := printed[r.Command]
		if !ran {
			out = shows(t, words(args))
			printed[r.Command] = out
		}
		for _, want := range r.Prints {
			if !strings.Contains(out, want) {
				t.Errorf("%s, %q: %s does not print %q:\n%s", r.Guide, r.Asks, r.Command, want, out)
			}
		}
	}
	if len(printed) < 15 {
		t.Errorf("only %d commands were run", len(printed))
	}
}

// shows is what a call prints. One that needs a deployment is made in the one of guided.
func shows(t *testing.T, args []string) string {
	t.Helper()
	if !slices.ContainsFunc(verbs(deployed), func(c *cobra.Command) bool { return c.Name() == args[0] }) {
		out, errOut, code := call(t, "", args...)
		if code != 0 {
			t.Errorf("pitstop %s ends with %d:\n%s", strings.Join(args, " "), code, errOut)
		}
		return out
	}
	i := slices.Index(args, "--project")
	if i < 0 || args[i+1] != "MINE" {
		t.Fatalf("%q names no project MINE", args)
	}
	out, err := guided(t).Call(slices.Delete(args, i, i+2)...)
	if err != nil && !errors.Is(err, cli.ErrFailed) {
		t.Errorf("pitstop %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return out
}

// guided is a deployment with two workloads. One saves every three hours, was lost often, had a maintenance event, has no
// autocheckpoint, reads its data from another region, and trained on two sizes. Its training gave up in the last incident. The other
// workload waits for capacity. The log tells of three losses.
func guided(t *testing.T) *deploymenttest.Bench {
	t.Helper()
	b, _, bucket := deploymenttest.Healthy(t, deploymenttest.StartsCrew, deploymenttest.In("us-west4-a"), deploymenttest.SavesEvery(3*time.Hour), func(s *deploymenttest.Story) {
		s.Policy.Save, s.Timed = events.SaveSignal, []time.Duration{20 * time.Second, 30 * time.Second, 40 * time.Second}
	})
	bucket.Place("corpus", buckettest.Location{Name: "EUROPE-WEST4"})
	b.Loses(20, 12*time.Hour)
	b.ShowsData("gs://corpus/c4")
	b.Measures("gs://ckpt/llama-8b", deploymenttest.SpeedOn(1, "v5litepod-16", 512, 4000), deploymenttest.SpeedOn(2, "v5litepod-64", 512, 7000))
	b.Tells(func(s *deploymenttest.Story) {
		s.Policy.Switches.Restart = policy.No
		s.Before(time.Minute).Writes(events.CrewReport{Report: events.ReportExited, Attempt: 2, ExitCode: 137, Retries: events.JobRetries{Worker: 5, Job: 3}}).GivesUp(2)
	})
	written := deploymenttest.Noon
	log := cloudlogtest.New("demo", func() time.Time { written = written.Add(time.Second); return written })
	for _, entry := range night() {
		log.Write([]byte(selected(entry)))
	}
	b.OpenReadOnly = func(ctx context.Context) (deployment.ReadOnlyClients, error) {
		return deployment.ReadOnlyThrough(ctx, option.WithHTTPClient(&http.Client{Transport: deployment.ReadOnlyTransport{RoundTripper: log.Transport()}}))
	}
	waits := deploymenttest.Preempted("bert").Does("delete-1").Reads(deploymenttest.Is(evidence.Gone, "")).Does("create-1")
	waits.Reads(deploymenttest.Is(evidence.Creating, "WAITING_FOR_RESOURCES"), func(r *evidence.Read) { r.Incarnation.ID, r.Incident = "7720", waits.Incident.ID })
	if _, err := b.Ledger.Save(t.Context(), waits.Workload, ledger.Revision{}); err != nil {
		t.Fatal(err)
	}
	return b
}
