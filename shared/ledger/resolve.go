package ledger

import (
	"bytes"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"pitstop.internal/events"
	"pitstop.internal/shared/fault"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/reason"
)

// Resolve finds the effect that a request points to and rebuilds the request from the ledger. A function that acts calls it
// first and works with the rebuilt request, because anybody who may publish on the topic can write the body. A pointer that
// the fence refuses is fault.Ignored. A body that differs from the sent one is logged and has no other effect.
func Resolve[E events.Event](ctx context.Context, a *Advancer, r events.Received) (incident.Workload, E, error) {
	var none E
	w, t, err := a.Check(ctx, r.Pointer)
	if err != nil {
		return w, none, err
	}
	e, ok := w.Request(t).(E)
	if !ok {
		return w, none, fault.Permanentf("a %s cannot ask to %s", none.EventType(), t.Action)
	}
	if t.Digest != "" && t.Digest != r.Digest() {
		fields := strings.Join(differences(r.Body, e), ", ")
		a.Log.WarnContext(ctx, "request body differs", "action", string(t.Action), "workload", w.ID,
			"incident", r.Incident, "epoch", r.Epoch, "slice", r.Slice, "fields", fields,
			"code", string(reason.CodeBodyDiffers))
	}
	return w, e, nil
}

// unreadable is logged instead of the field names if a body does not fit the request at all.
const unreadable = "unreadable"

// differences are the fields in which a body differs from a request. Names that the request does not have are left out,
// because a sender may choose them freely.
func differences[E events.Event](body []byte, e E) []string {
	var got E
	if json.Unmarshal(body, &got) != nil {
		return []string{unreadable}
	}
	theirs, ours := members(got), members(e)
	fields := map[string]bool{}
	for _, name := range slices.Concat(slices.Collect(maps.Keys(theirs)), slices.Collect(maps.Keys(ours))) {
		if !bytes.Equal(theirs[name], ours[name]) {
			fields[name] = true
		}
	}
	return slices.Sorted(maps.Keys(fields))
}

// members are the fields of an event, as in its body.
func members(e events.Event) (all map[string]jsontext.Value) {
	body, err := json.Marshal(e)
	if err == nil {
		err = json.Unmarshal(body, &all)
	}
	if err != nil {
		return nil // no difference can be found
	}
	return all
}
