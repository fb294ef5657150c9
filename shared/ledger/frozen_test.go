package ledger_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/incident"
	"pitstop.internal/shared/ledger"
	"pitstop.internal/shared/policy"
)

// frozen is a stored document of the present schema. What it says never changes: each release that reads the schema has to read it, whatever its own
// documents look like by then. A new field is added to it. A release that gives up the schema removes the file.
func frozen(t testing.TB) []byte {
	t.Helper()
	body, err := os.ReadFile(fmt.Sprintf("testdata/workload-v%d.json", incident.Schema))
	must(t, err)
	return body
}

// TestFrozenDocument reads it without a loss, and goes on from it.
func TestFrozenDocument(t *testing.T) {
	body := frozen(t)
	var strict incident.Workload
	if err := json.Unmarshal(body, &strict, json.RejectUnknownMembers(true)); err != nil {
		t.Fatalf("a stored field has no place: %v", err)
	}
	s := newSuite(t, memory)
	s.create(t, ledger.Workloads, strict.ID, incident.Schema, string(body))
	w, rev := s.mustLoad(t, strict.ID)
	s.mustSave(t, w, rev)
	written := jsontext.Value(s.raw(t, ledger.Workloads, strict.ID).Body)
	read := jsontext.Value(body)
	must(t, read.Canonicalize())
	must(t, written.Canonicalize())
	if d := cmp.Diff(string(read), string(written)); d != "" {
		t.Errorf("it is written as something else (-read +written):\n%s", d)
	}
	slice := w.Slices[0]
	e := evidence.Read{
		Origin: evidence.Origin{ID: "read", Time: slice.Read.Add(time.Minute), Rank: events.RankReading}, Slice: slice.Name, Zone: slice.Zone,
		Condition: evidence.Ready, State: "READY", Incident: slice.Maker, Directory: w.Directory, Facts: slice.Facts,
		Incarnation: events.Incarnation{Zone: slice.Zone, ID: "7711480293716660001", Created: slice.Read},
	}
	next, _, changed := incident.Advance(policy.Policy{Name: "night", Switches: policy.Everything()}, w, e, e.Time)
	if got := next.Slices[0]; !changed || got.Condition != evidence.Ready || got.Incarnation != e.Incarnation || next.Label != w.Label {
		t.Errorf("a reading makes of the slice %+v", got)
	}
}

// TestFrozenDocumentHasEveryField: a field that it lacks could change its name unnoticed.
func TestFrozenDocumentHasEveryField(t *testing.T) {
	var w incident.Workload
	must(t, json.Unmarshal(frozen(t), &w))
	stored := map[string]bool{}
	occurs(reflect.ValueOf(w), stored)
	fields := map[string]bool{}
	occurs(reflect.ValueOf(full()), fields)
	for field := range fields {
		if !stored[field] {
			t.Errorf("it has no %s", field)
		}
	}
	if len(fields) < 250 {
		t.Errorf("%d fields are known, which is too few", len(fields))
	}
}

// occurs notes each stored field that has a value, by the type that it is of.
func occurs(v reflect.Value, in map[string]bool) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			occurs(v.Elem(), in)
		}
	case reflect.Slice:
		for i := range v.Len() {
			occurs(v.Index(i), in)
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if f := v.Type().Field(i); f.IsExported() && f.Tag.Get("json") != "-" {
				if !v.Field(i).IsZero() {
					in[v.Type().String()+"."+f.Name] = true
				}
				occurs(v.Field(i), in)
			}
		}
	default:
	}
}

// TestADocumentOfALaterSchemaIsRefused, and whoever reads the error knows why.
func TestADocumentOfALaterSchemaIsRefused(t *testing.T) {
	s := newSuite(t, memory)
	s.create(t, ledger.Workloads, "demo/llama-8b", incident.Schema+1, string(frozen(t)))
	line := fmt.Sprintf("ledger: workloads demo/llama-8b has schema %d, this release reads up to %d", incident.Schema+1, incident.Schema)
	if _, _, err := s.Workload(t.Context(), "demo/llama-8b"); err == nil || !strings.Contains(err.Error(), line) {
		t.Errorf("it is refused by %v, want %q", err, line)
	}
}
