package fleettest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/google/go-cmp/cmp"

	"pitstop.internal/events"
	"pitstop.internal/shared/reason"
	"pitstop.internal/shared/trigger"
)

// Forged is a body with one changed field.
type Forged struct {
	// Field names the field, What says how it was changed.
	Field, What string
	Body        []byte
}

// Forgeries changes every field of a body, one at a time, to values that Go can hold and to values that it cannot. It finds
// the fields by reflection, so that a new one is changed too. The schema stays.
func Forgeries(t *testing.T, e events.Event) (all []Forged) {
	t.Helper()
	body := JSON(t, e)
	for _, c := range changes(t, reflect.ValueOf(e)) {
		forged := reflect.New(reflect.TypeOf(e))
		if err := json.Unmarshal(body, forged.Interface()); err != nil {
			t.Fatal(err)
		}
		c.apply(forged.Elem())
		all = append(all, Forged{c.field, c.what, JSON(t, forged.Interface())})
	}
	fields := map[string]jsontext.Value{}
	if err := json.Unmarshal(body, &fields); err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		if name == "schema" {
			continue
		}
		without := maps.Clone(fields)
		delete(without, name)
		all = append(all, Forged{name, "left out", JSON(t, without)})
		other := jsontext.Value(`["of another type"]`)
		if fields[name].Kind() == '[' {
			other = jsontext.Value(`"of another type"`)
		}
		without[name] = other
		all = append(all, Forged{name, "of another type", JSON(t, without)})
	}
	return all
}

// JSON writes a value as it is stored and sent.
func JSON(t testing.TB, v any) []byte {
	t.Helper()
	body, err := json.Marshal(v, json.Deterministic(true))
	if err != nil {
		t.Fatal(err)
	}
	return body
}

// Fields are the names that the fields of a type have in a body.
func Fields[T any]() map[string]bool {
	names := map[string]bool{}
	for f := range reflect.TypeFor[T]().Fields() {
		names[jsonName(f)] = true
	}
	return names
}

// change is one way to change a value; field is the name of the body's own field that it is in.
type change struct {
	field, what string
	apply       func(v reflect.Value)
}

// changes are all the ways to change a value that are tried.
func changes(t *testing.T, v reflect.Value) (all []change) {
	t.Helper()
	set := func(what string, to any) {
		all = append(all, change{what: what, apply: func(v reflect.Value) {
			v.Set(reflect.ValueOf(to).Convert(v.Type()))
		}})
	}
	if at, ok := v.Interface().(time.Time); ok {
		set("an hour later", at.Add(time.Hour))
		set("an hour earlier", at.Add(-time.Hour))
		if !at.IsZero() {
			set("emptied", time.Time{})
		}
		return all
	}
	switch v.Kind() {
	case reflect.String:
		set("changed", v.String()+"x")
		if v.String() != "" {
			set("emptied", "")
		}
	case reflect.Int, reflect.Int64:
		set("one more", v.Int()+1)
		set("one less", v.Int()-1)
		set("negative", -2-v.Int())
		set("huge", int64(1<<40))
		if v.Int() > 1 {
			set("emptied", 0)
		}
	case reflect.Float64:
		set("one more", v.Float()+1)
		set("negative", -1-v.Float())
	case reflect.Bool:
		set("turned round", !v.Bool())
	case reflect.Struct:
		return changesOfFields(t, v)
	case reflect.Slice:
		return changesOfElements(t, v)
	default:
		t.Fatalf("a body holds a %s, and nothing here changes one", v.Type())
	}
	return all
}

func changesOfFields(t *testing.T, v reflect.Value) (all []change) {
	t.Helper()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name := jsonName(f)
		if name == "schema" {
			continue
		}
		for _, c := range changes(t, v.Field(i)) {
			within := c.apply
			c.apply = func(v reflect.Value) { within(v.Field(i)) }
			if !f.Anonymous {
				c.field, c.what = name, strings.TrimSpace(c.field+" "+c.what)
			}
			all = append(all, c)
		}
	}
	return all
}

func jsonName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
	return name
}

func changesOfElements(t *testing.T, v reflect.Value) (all []change) {
	t.Helper()
	if v.Len() > 0 {
		all = append(all, change{what: "emptied", apply: func(v reflect.Value) { v.SetZero() }})
		all = append(all, change{what: "the last one twice", apply: func(v reflect.Value) {
			v.Set(reflect.Append(v, v.Index(v.Len()-1)))
		}})
	}
	stranger := reflect.New(v.Type().Elem()).Elem()
	for _, c := range changes(t, stranger) {
		c.apply(stranger) // no change of an empty field leaves it empty
	}
	all = append(all, change{what: "a stranger more", apply: func(v reflect.Value) {
		v.Set(reflect.Append(v, stranger))
	}})
	for i := range v.Len() {
		for _, c := range changes(t, v.Index(i)) {
			within := c.apply
			all = append(all, change{
				what:  strings.TrimSpace(fmt.Sprint(i, " ", c.field, " ", c.what)),
				apply: func(v reflect.Value) { within(v.Index(i)) },
			})
		}
	}
	return all
}

// Acting is a bench with a request and the function that acts on it.
type Acting struct {
	*Bench
	Request events.Event
	Handle  trigger.Handle
}

// effects are all effects of a delivery.
type effects struct {
	// Outside are the calls to the API and to the buckets with their content. Sent are the types and bodies of sent events,
	// Documents the workloads afterwards.
	Outside, Sent, Documents []string
	// Warned says that a warning names the body.
	Warned bool
}

// ObeysPointersAlone proves that a function obeys only the pointer in the body of a request. If any other field is changed,
// the function does exactly the same and warns. If the pointer is changed, it does not act.
func ObeysPointersAlone(t *testing.T, arrange func(t *testing.T) Acting) {
	t.Helper()
	first := arrange(t)
	before, body := first.documents(), JSON(t, first.Request)
	want := first.effectsOf(first.Handle, first.Request.EventType(), body)
	if len(want.Outside) == 0 || want.Warned {
		t.Fatalf("the request as it was sent does nothing, or is warned of: %+v", want)
	}
	inPointer := Fields[events.Pointer]()
	for _, f := range Forgeries(t, first.Request) {
		t.Run(f.Field+" "+f.What, func(t *testing.T) {
			a := arrange(t)
			want := want
			want.Warned = true
			if inPointer[f.Field] {
				want = effects{Documents: before}
			}
			if d := cmp.Diff(want, a.effectsOf(a.Handle, a.Request.EventType(), f.Body)); d != "" {
				t.Errorf("%s (-want +got):\n%s", f.Body, d)
			}
		})
	}
}

// effectsOf delivers a body and returns all its effects.
func (b *Bench) effectsOf(h trigger.Handle, eventType string, body []byte) effects {
	b.T.Helper()
	b.Outside()
	b.Sender.Sent()
	b.logged.Reset()
	b.Deliver(h, event(eventType, "m1", body, Start))
	e := effects{Outside: b.Outside(), Documents: b.documents()}
	e.Warned = strings.Contains(b.logged.String(), string(reason.CodeBodyDiffers))
	for _, s := range b.Sender.Sent() {
		e.Sent = append(e.Sent, s.Type+" "+string(s.Data))
	}
	return e
}

// documents are all workloads of the ledger.
func (b *Bench) documents() (all []string) {
	b.T.Helper()
	for _, id := range b.Workloads() {
		all = append(all, string(JSON(b.T, b.Workload(id))))
	}
	return all
}

// Outside returns the calls of the API and of the buckets since the last time: method, address and content.
func (b *Bench) Outside() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	outside := b.outside
	b.outside = nil
	return outside
}

// recorded is a transport that records its requests.
type recorded struct {
	http.RoundTripper
	b *Bench
}

// RoundTrip implements http.RoundTripper.
func (r recorded) RoundTrip(q *http.Request) (*http.Response, error) {
	line := q.Method + " " + q.URL.String()
	if q.Body != nil {
		content, err := io.ReadAll(q.Body)
		if err != nil {
			return nil, err
		}
		q = q.Clone(context.WithoutCancel(q.Context()))
		q.Body = io.NopCloser(bytes.NewReader(content))
		if _, p, err := mime.ParseMediaType(q.Header.Get("Content-Type")); err == nil && p["boundary"] != "" {
			content = bytes.ReplaceAll(content, []byte(p["boundary"]), []byte("boundary")) // which is drawn by chance
		}
		line += " " + string(content)
	}
	r.b.made(line)
	return r.RoundTripper.RoundTrip(q)
}

// made records a call.
func (b *Bench) made(line string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.outside = append(b.outside, line)
}
