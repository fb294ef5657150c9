package ledger_test

import (
	"errors"
	"testing"
	"time"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
)

func stockout(t *testing.T, s *suite) {
	ctx, now := t.Context(), start
	spot := incident.Slot{Name: "llama-8b", Life: incident.Life{Facts: evidence.Facts{Accelerator: "v5litepod-16", Capacity: events.Spot}}}
	remember := func(by string, at time.Time) {
		t.Helper()
		must(t, s.RememberStockout(ctx, "demo", "us-west4-a", spot, by, at))
	}
	known := func(project, zone string, slice incident.Slot, at time.Time) string {
		t.Helper()
		o, ok, err := s.Stockout(ctx, project, zone, slice, at)
		must(t, err)
		if !ok {
			return ""
		}
		return o.Workload
	}
	if by := known("demo", "us-west4-a", spot, now); by != "" {
		t.Errorf("%s was refused before anybody was", by)
	}
	remember("demo/llama-8b", now)
	remember("demo/mixtral", now.Add(30*time.Second)) // says nothing new
	other := spot
	other.Accelerator = "v5litepod-8"
	ordered := spot
	ordered.Capacity = events.OnDemand
	for name, c := range map[string]struct {
		project, zone string
		slice         incident.Slot
		after         time.Duration
		want          string
	}{
		"the same":         {"demo", "us-west4-a", spot, time.Minute, "demo/llama-8b"},
		"its time is over": {"demo", "us-west4-a", spot, ledger.StockoutFor, ""},
		"another project":  {"prod", "us-west4-a", spot, time.Minute, ""},
		"another zone":     {"demo", "us-west4-b", spot, time.Minute, ""},
		"another size":     {"demo", "us-west4-a", other, time.Minute, ""},
		"no Spot":          {"demo", "us-west4-a", ordered, time.Minute, ""},
	} {
		if by := known(c.project, c.zone, c.slice, now.Add(c.after)); by != c.want {
			t.Errorf("%s: %q, want %q", name, by, c.want)
		}
	}
	remember("demo/mixtral", now.Add(5*time.Minute))
	if by := known("demo", "us-west4-a", spot, now.Add(12*time.Minute)); by != "demo/mixtral" {
		t.Errorf("%q was refused last", by)
	}
	if d := s.raw(t, ledger.Stockouts, "demo/us-west4-a/v5litepod-16/spot"); d.Expires.IsZero() {
		t.Errorf("%v does not expire", d)
	}
	s.create(t, ledger.Stockouts, "demo/us-west4-b/v5litepod-16/spot", 2, "{}")
	if _, ok, err := s.Stockout(ctx, "demo", "us-west4-b", spot, now); ok || !errors.Is(err, events.ErrNewer) {
		t.Errorf("of a newer release: %v, %v", ok, err)
	}
}
