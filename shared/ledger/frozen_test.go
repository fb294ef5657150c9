//go:build !heart

// The fixtures are documents as the first heart stores them. The second one begins with documents of its own, of which none is stored yet.

package ledger_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
)

// frozen is what testdata/workload-v2.json says, in the words of this release: a Multislice of two, one of them preempted
// and created again in another zone while the other has maintenance announced, with the incident before it still there.
func frozen() incident.Workload {
	at := func(clock string) time.Time {
		t, err := time.Parse("2006-01-02 15:04:05.999999999", "2026-11-12 "+clock)
		if err != nil {
			panic(err)
		}
		return t
	}
	first := events.Incarnation{Zone: "us-west4-a", ID: "7711480293716642117", Created: at("00:00:03.250000")}
	second := events.Incarnation{Zone: "us-west4-a", ID: "7711480293716642118", Created: at("00:00:03.914223871")}
	return incident.Workload{
		Schema: incident.Schema, ID: "demo/llama-8b", Project: "demo", Name: "llama-8b", Provider: "tpu", Label: "night",
		Directory: "gs://ckpt/llama-8b",
		Slices: []incident.Slot{
			{Name: "llama-8b-0", ToReplace: true, Life: incident.Life{
				Facts: incident.Facts{Group: "llama-8b-qr", Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Reclaimable: true, Spec: "3f786850e387550fdab836ed7e6dc881de23001b", Label: "night"},
				Zone:  "us-west4-a", Hosts: "t1v-n-3f2a9c01", Incarnation: first, Admission: incident.Admitted, Condition: incident.Gone,
				State: "gone", Since: at("02:16:01.500000"), End: incident.End{Reported: true},
			}},
			{Name: "llama-8b-1", Life: incident.Life{
				Facts: incident.Facts{Group: "llama-8b-qr", Accelerator: "v5litepod-16", Workers: 4, Chips: 16, Reclaimable: true, Spec: "89e6c98d92887913cadf06b2adb97f26cde4849b", Label: "night"},
				Zone:  "us-west4-a", Hosts: "t1v-n-3f2a9c02", Incarnation: second, Admission: incident.Admitted, Condition: incident.Ready,
				State: "READY", Since: at("00:05:40"), End: incident.End{Released: at("02:17:00")},
				Notice: incident.Notice{
					Notice: events.Notice{
						Status: events.NoticePending, Unscheduled: true, CanReschedule: true, WindowStart: at("06:00:00"), WindowEnd: at("10:00:00"),
						LatestWindowStart: at("18:00:00"),
					},
					LastWord: at("01:30:00"), InAPI: true, Due: at("05:40:00"),
				},
			}},
		},
		Epoch: 7,
		Incident: &incident.Incident{
			ID: "llama-8b-20261112-4", Cause: events.CausePreemption, Opened: at("02:14:08.100000"), Closed: at("02:59:59"),
			Phase: incident.PhaseCreating, Since: at("02:16:01.500000"), Deadline: at("23:00:00"),
			Switches: policy.Switches{
				RequestCheckpoint: policy.Yes, EarlyMaintenance: policy.Ask, Restart: policy.Yes, Recreate: policy.Yes, RecreateNonSpot: policy.No,
				StartStopped: policy.Ask,
			},
			Policy: "night",
			Troubles: []incident.Trouble{
				{
					Cause: events.CausePreemption, Slice: "llama-8b-0", At: at("02:14:07.412000"), Text: "worker 2 was preempted", Life: first.ID,
					Proven: true,
				},
				{Cause: events.CauseMaintenance, Slice: "llama-8b-1", At: at("06:00:00"), Text: "maintenance announced", Life: second.ID, Announced: true},
			},
			Save: incident.Save{
				ID: "9b74c9897bac770ffc029102a200c5de", Requested: at("02:10:00"), Left: at("02:10:01"), Acked: at("02:10:20"), Step: 48190,
				Verified: true, Failed: "the first try was torn",
			},
			Zones: []incident.Refusal{{
				Zone: "us-west4-a", At: at("02:17:03"), Until: at("02:18:35.250000"), Never: true, Text: "There is no more capacity in the zone \"us-west4-a\"",
			}},
			Baseline: 48190, BaseAttempt: 1, Down: at("02:14:07.412000"), Begun: true, Look: true, Charged: 1, Asked: events.ActionDelete,
			Approved: events.ActionDelete, Held: "paused by ann@example.com", WaitingSince: at("02:17:03"), Reminded: at("02:17:03"),
			Clearing: incident.Released, Outcome: incident.Escalated, ConfirmedBy: incident.ByStep, Reason: "no capacity", Advice: "add zones to the policy",
			Would: []string{"delete llama-8b-0 and create it again"}, Revision: 1,
			Timeline: []incident.Line{
				{At: at("02:14:08.100000"), Kind: incident.LineSeen, Text: "worker 2 was preempted", Source: "3f2a9c", Phase: incident.Looking},
				{
					At: at("02:14:08.100000"), Kind: incident.LineDecided, Text: "recreate: delete llama-8b-0 first",
					Reason: "node llama-8b-0 is PREEMPTED, checkpoint 48,190 verified 4 m 7 s ago", Source: "3f2a9c", Phase: incident.PhaseDeleting,
				},
				{At: at("02:14:09.300000"), Kind: incident.LineCame, Text: "delete of llama-8b-0 in us-west4-a accepted", Phase: incident.PhaseDeleting},
			},
			LeftOut: 3,
		},
		Effects: []incident.Effect{
			{
				Maker: "llama-8b-20261112-4", Action: events.ActionDelete, Slice: "llama-8b-0", Zone: "us-west4-a", Incarnation: first, Epoch: 5, Attempt: 1,
				Reason: "node llama-8b-0 is PREEMPTED", Sent: at("02:14:08.100000"), Begun: at("02:14:08.900000"),
				RequestID: "0d2a5b7e-31f4-5c5e-9a55-5d1d8f0c7a11", Answered: at("02:14:09.300000"), Operation: "projects/demo/locations/us-west4-a/operations/operation-1",
			},
			{
				Maker: "llama-8b-20261112-4", Action: events.ActionCreate, Slice: "llama-8b-0", Zone: "us-west4-b", Epoch: 7, Attempt: 2, Reason: "no capacity in us-west4-a",
				Sent: at("02:17:03"), Retry: at("02:18:40.731000"), Failures: 1, LastFailure: "There is no more capacity in the zone \"us-west4-b\"",
				By: at("03:00:00"),
			},
		},
		Closed: &incident.Incident{
			ID: "llama-8b-20261112-2", Cause: events.CauseCrash, Opened: at("01:50:00"), Closed: at("01:58:30.000001"), Phase: incident.Closed,
			Since: at("01:58:30.000001"), Switches: policy.Everything(), Policy: "night",
			Troubles: []incident.Trouble{{Cause: events.CauseCrash, Slice: "llama-8b-0", At: at("01:50:00"), Text: "exit 139"}},
			Baseline: 48000, BaseAttempt: 1, Outcome: incident.Resumed, ConfirmedBy: incident.ByStep, Reason: "step 48,013 > 48,000", Revision: 1,
			Timeline: []incident.Line{{
				At: at("01:58:30.000001"), Kind: incident.LineEnded, Text: "resumed, confirmed by step", Reason: "step 48,013 > 48,000", Phase: incident.Closed,
			}},
		},
		Budgets: incident.Budgets{Restarts: 1, Recreates: 2},
		Progress: incident.Progress{
			Step: 48190, At: at("02:12:30.000001"), Attempt: 2, High: 48195, CheckpointStep: 48190, Verified: 48190, VerifiedAt: at("02:10:21"),
			VerifiedURI: "gs://ckpt/llama-8b/48190",
		},
		Crew:       incident.Crew{Seen: at("00:06:00"), Attempt: 2, Exited: 1, GaveUp: 1, Finished: true},
		PolicyHash: "5d41402abc4b2a76b9719d911017c592",
		Pause:      &incident.Pause{By: "ann@example.com", Why: "moving the bucket", At: at("02:16:30"), Until: at("03:16:30")},
		Outbox: []events.Envelope{{
			ID: "b1946ac92492d2347c6235b4d2611184", Type: events.TypeRecreateRequested, Source: "//pitstop/functions/recreate", Subject: "demo/llama-8b",
			Time: at("02:17:03"), Cause: "11420938112", Correlation: "llama-8b-20261112-4",
			Data: []byte(`{"schema":1,"workload":"demo/llama-8b","incident":"llama-8b-20261112-4","epoch":7,"action":"create"}`),
		}},
	}
}

// TestFrozenSlicesHealAsTheyDid: a stored document may say only whether a slice is Spot. Google brings back all but that.
func TestFrozenSlicesHealAsTheyDid(t *testing.T) {
	for schema, spot := range map[int]string{incident.Schema: `"reclaimable": true`} {
		body, err := os.ReadFile(fmt.Sprintf("testdata/workload-v%d.json", schema))
		must(t, err)
		if n := strings.Count(string(body), spot); n != 2 {
			t.Fatalf("the document of schema %d has %s %d times, not 2", schema, spot, n)
		}
		s := newSuite(t, memory)
		s.create(t, ledger.Workloads, "demo/llama-8b", schema, strings.Replace(string(body), spot, strings.Replace(spot, "true", "false", 1), 1))
		w, _ := s.mustLoad(t, "demo/llama-8b")
		if first, second := w.Slices[0].Heals(), w.Slices[1].Heals(); !first || second {
			t.Errorf("schema %d: on demand it heals: %t, as Spot: %t", schema, first, second)
		}
	}
}

// TestFrozenDocuments reads the documents of each schema that this release reads. The files are never written again: it has to read them,
// whatever its own documents look like by then. A release that gives up a schema removes its file.
func TestFrozenDocuments(t *testing.T) {
	for _, schema := range []int{incident.Schema} {
		body, err := os.ReadFile(fmt.Sprintf("testdata/workload-v%d.json", schema))
		must(t, err)
		s := newSuite(t, memory)
		s.create(t, ledger.Workloads, "demo/llama-8b", schema, string(body))
		got, rev := s.mustLoad(t, "demo/llama-8b")
		if d := cmp.Diff(frozen(), got); d != "" {
			t.Errorf("the document of schema %d is read as something else (-want +got):\n%s", schema, d)
		}
		// A field that this release does not know any more would be lost at the next write.
		var strict incident.Workload
		if err := json.Unmarshal(body, &strict, json.RejectUnknownMembers(true)); err != nil {
			t.Errorf("a field of schema %d has no place any more: %v", schema, err)
		}
		// The document that was read is written by this release, and is still the same workload.
		s.mustSave(t, got, rev)
		again, _ := s.mustLoad(t, "demo/llama-8b")
		if d := cmp.Diff(got, again); d != "" {
			t.Errorf("schema %d, written again (-read +written):\n%s", schema, d)
		}
		// Its next reading finds the policy that the open incident goes by.
		after, _, _ := incident.Advance(policy.Policy{Switches: policy.Everything()}, got, incident.Read{
			Origin: incident.Origin{Time: got.Slices[0].Since.Add(time.Minute), Rank: events.RankReading}, Slice: got.Slices[0].Name,
			Zone: got.Slices[0].Zone, Condition: incident.Gone, State: "gone",
		}, got.Slices[0].Since.Add(time.Minute))
		if after.Label != got.Label {
			t.Errorf("schema %d: a reading makes its label %q of %q", schema, after.Label, got.Label)
		}
	}
}
