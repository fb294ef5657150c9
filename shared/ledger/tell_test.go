package ledger_test

import (
	"encoding/json"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
)

// told lets the loop log to a text, and returns its later lines: the message and the attributes that the deployment's
// metrics read.
func told(l *loop) func(t *testing.T) []map[string]any {
	var b strings.Builder
	l.Log = slog.New(slog.NewJSONHandler(&b, nil))
	return func(t *testing.T) (lines []map[string]any) {
		t.Helper()
		for raw := range strings.Lines(b.String()) {
			all, line := map[string]any{}, map[string]any{}
			must(t, json.Unmarshal([]byte(raw), &all))
			for _, key := range []string{
				"msg", "cause", "outcome", "event_type", "reaction_seconds", "zone", "level", "found_by", "loss", "away_seconds", "chip_hours",
			} {
				if v, ok := all[key]; ok && v != "INFO" {
					line[key] = v
				}
			}
			lines = append(lines, line)
		}
		b.Reset()
		return lines
	}
}

func wantTold(t *testing.T, got []map[string]any, want ...map[string]any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("logged (-want +got):\n%s", d)
	}
}

func TestWhatIsDecidedIsLoggedAsTheMetricsCountIt(t *testing.T) {
	l := newLoop(t, memory)
	lines := told(l)
	evidence := l.preempted()
	l.now = l.now.Add(7 * time.Second)
	if _, err := l.Advance(t.Context(), workload, evidence); err != nil {
		t.Fatal(err)
	}
	opened := map[string]any{"msg": "incident opened", "cause": "preemption", "found_by": "test", "loss": true}
	wantTold(t, lines(t), opened)
	if _, err := l.Advance(t.Context(), workload, l.lost()); err != nil {
		t.Fatal(err)
	}
	wantTold(t, lines(t), map[string]any{"msg": "request decided", "event_type": events.TypeRecreateRequested, "reaction_seconds": 7.0})
	if _, err := l.Advance(t.Context(), workload, evidence, l.lost()); err != nil {
		t.Fatal(err)
	}
	wantTold(t, lines(t)) // the same once more is no news

	r, err := events.DecodeRecreateRequested(l.sent.events[0].Data)
	must(t, err)
	l.limits = ledger.Limits{Project: 1, Zone: 1}
	must(t, l.Take(t.Context(), "demo", "us-west4-a", "another", l.limits, l.now))
	_, _, err = l.BeginDestructive(t.Context(), r.Request, l.now, "us-west4-a", l.limits)
	wantIgnored(t, err, "the brake holds")
	wantTold(t, lines(t), map[string]any{"msg": "brake holds", "zone": "us-west4-a", "level": "WARN"})
}

func TestTheEndOfAnIncidentIsLoggedOnce(t *testing.T) {
	l := newLoop(t, memory)
	l.policies.Switches = policy.Switches{} // it is only observed
	lines := told(l)
	begun := l.now
	if _, err := l.Advance(t.Context(), workload, l.preempted(), l.lost()); err != nil {
		t.Fatal(err)
	}
	for range 48 * 60 {
		if w, _ := l.mustLoad(t, workload); w.Incident == nil {
			break
		}
		l.now = l.now.Add(time.Minute)
		if _, err := l.Advance(t.Context(), workload, evidence.Ticked{Origin: evidence.Origin{Time: l.now}}); err != nil {
			t.Fatal(err)
		}
	}
	wantTold(t, lines(t),
		map[string]any{"msg": "incident opened", "cause": "preemption", "found_by": "test", "loss": true},
		map[string]any{
			"msg": "incident closed", "cause": "preemption", "outcome": "observed",
			"away_seconds": l.now.Sub(begun).Seconds(), "chip_hours": 16 * l.now.Sub(begun).Hours(),
		})
}

// TestAnIncidentThatStoppedNothingHasNoCost: training ran throughout, so a zero would be counted among the times without it.
func TestAnIncidentThatStoppedNothingHasNoCost(t *testing.T) {
	l := newLoop(t, memory)
	lines := told(l)
	if _, err := l.Advance(t.Context(), workload, l.preempted()); err != nil {
		t.Fatal(err)
	}
	seen, ok := l.lost().(evidence.Read)
	if !ok {
		t.Fatal("a loss is shown by another kind of evidence")
	}
	seen.Condition, seen.State = evidence.Ready, "READY"
	for range 60 {
		if w, _ := l.mustLoad(t, workload); w.Incident == nil {
			break
		}
		l.now = l.now.Add(time.Minute)
		seen.Origin.Time = l.now
		if _, err := l.Advance(t.Context(), workload, seen, evidence.Ticked{Origin: evidence.Origin{Time: l.now}}); err != nil {
			t.Fatal(err)
		}
	}
	all := lines(t)
	last := all[len(all)-1]
	if last["msg"] != "incident closed" || last["away_seconds"] != nil || last["chip_hours"] != nil {
		t.Errorf("the last line is %v, want an end without a cost", last)
	}
}
