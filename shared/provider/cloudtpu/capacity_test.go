package cloudtpu

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
)

// TestASpecificationIsTakenFromOtherCapacity and nothing else of it changes; and it is as its owner ordered it again.
func TestASpecificationIsTakenFromOtherCapacity(t *testing.T) {
	node := func(more string) string {
		return `{"node":{"acceleratorType":"v5litepod-16","labels":{"team":"a"}` + more + `}}`
	}
	queued := func(q string) string {
		return `{"node":{"acceleratorType":"v5litepod-16"},"queued_resource":{` + q + `"queueingPolicy":{"validUntilDuration":"3600s"}}}`
	}
	flex := `"provisioningModel":"FLEX_START","runDuration":{"maxRunDuration":"7200s"},`
	for name, c := range map[string]struct {
		own, want   string
		of          events.Capacity
		reservation string
	}{
		"a Spot node on demand":                  {node(`,"schedulingConfig":{"spot":true}`), node(""), events.OnDemand, ""},
		"a preemptible node on demand":           {node(`,"schedulingConfig":{"preemptible":true}`), node(""), events.OnDemand, ""},
		"a reserved node on demand":              {node(`,"schedulingConfig":{"reserved":true,"reservationName":"r"}`), node(""), events.OnDemand, ""},
		"a node on demand as Spot":               {node(""), node(`,"schedulingConfig":{"spot":true}`), events.Spot, ""},
		"a Spot node from what is reserved":      {node(`,"schedulingConfig":{"spot":true}`), node(`,"schedulingConfig":{"reserved":true}`), events.Reserved, ""},
		"a Spot node from a reservation":         {node(`,"schedulingConfig":{"spot":true}`), node(`,"schedulingConfig":{"reservationName":"r","reserved":true}`), events.Reserved, "r"},
		"a Spot order in the queue, guaranteed":  {queued(`"spot":{},`), queued(`"guaranteed":{},`), events.OnDemand, ""},
		"a guaranteed order in the queue, Spot":  {queued(`"guaranteed":{"minDuration":"60s"},`), queued(`"spot":{},`), events.Spot, ""},
		"a flex-start order in the queue, Spot":  {queued(flex), queued(`"spot":{},`), events.Spot, ""},
		"a flex-start order, guaranteed":         {queued(flex), queued(`"guaranteed":{},`), events.OnDemand, ""},
		"a Spot order from what is reserved":     {queued(`"spot":{},`), queued(`"guaranteed":{"reserved":true},`), events.Reserved, ""},
		"a Spot order from a reservation there":  {queued(`"spot":{},`), queued(`"guaranteed":{"reserved":true},"reservationName":"projects/demo/locations/us-east5-b/reservations/r",`), events.Reserved, "r"},
		"a Spot order from one that is lent out": {queued(`"spot":{},`), queued(`"guaranteed":{"reserved":true},"reservationName":"projects/o/locations/z/reservations/r",`), events.Reserved, "projects/o/locations/z/reservations/r"},
	} {
		got, err := Take([]byte(c.own), c.of)
		must(t, err)
		if c.reservation != "" {
			got, err = Reserve(got, "demo", "us-east5-b", c.reservation)
			must(t, err)
		}
		sameJSON(t, name, got, c.want)
		back, err := TakeAs(got, []byte(c.own))
		must(t, err)
		sameJSON(t, name+", and back", back, c.own)
		r, err := readSpec(got)
		must(t, err)
		if is := capacityOf(r.Node, r.QueuedResource); is != c.of {
			t.Errorf("%s: it reads as %s", name, is)
		}
	}
	_, err := Take([]byte(`{"legacy_node":{"acceleratorType":"v3-8"}}`), events.OnDemand)
	if f := provider.Failure(err); f == nil || f.Class != reason.CannotMove || f.Reason() != reason.CodeOtherCapacity {
		t.Errorf("a legacy node: %+v", f)
	}
}

// sameJSON holds two texts against each other, whatever their order is.
func sameJSON(t *testing.T, what string, got []byte, want string) {
	t.Helper()
	var is, should any
	must(t, json.Unmarshal(got, &is))
	must(t, json.Unmarshal([]byte(want), &should))
	if d := cmp.Diff(should, is); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}
