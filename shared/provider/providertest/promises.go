// Package providertest holds what every provider promises.
package providertest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/shared/evidence"
	"pitstop.internal/shared/provider"
	"pitstop.internal/shared/reason"
)

// World is a provider over a simulated API, and what its world can do.
type World struct {
	provider.Provider
	T *testing.T

	Project string
	// Home has room for two slices, Away for any number, Barren for none. The API offers slices in these zones, and nowhere else.
	Home, Away, Barren string
	// Ref names a slice of the sort that this world makes.
	Ref func(zone, name string) provider.Ref
	// Absent are names of nothing in the API, Foreign are names in zones that it does not offer, and Bad cannot be a name.
	Absent, Foreign []provider.Ref
	Bad             provider.Ref

	// Ready makes a slice in Home that is ready. Startable says that the API could start it again if it were stopped.
	Ready func(name string, startable bool)
	// Spec makes a slice in Home that is ready, and returns a specification of it that every zone takes.
	Spec func() []byte
	// Stop stops a slice in Home, and Reclaim takes one back.
	Stop, Reclaim func(name string)
	// LoseCreate loses the answer to the next creation, and the whole request of the one after it.
	LoseCreate func()
	// FailCreate has the operation of the next creation end for lack of capacity, FailDelete that of the next deletion end by a
	// passing fault, so much later than usual. They return the message. RefuseStart refuses the next start for lack of capacity.
	FailCreate  func() (message string)
	FailDelete  func(late time.Duration) (message string)
	RefuseStart func()
	// NoCapacity is the message of the operation of a creation in Barren.
	NoCapacity string

	// Advance moves the clock of the API.
	Advance func(d time.Duration)
	// Calls counts the calls of the API since it was last asked.
	Calls func() int
	// NoRequestIDs says that the API does not know a repeated call again, and NoGuests that nobody can see the machines of a slice.
	NoRequestIDs, NoGuests bool
	// Never are words of the API that no error repeats.
	Never []string
}

// Run checks each promise in a world of its own.
func Run(t *testing.T, open func(t *testing.T) World) {
	t.Helper()
	for _, p := range []struct {
		name string
		hold func(World)
	}{
		{"a missing slice is gone", gone},
		{"a zone without capacity refuses", refusals},
		{"a lost answer is transient and took effect", lostAnswer},
		{"deletes", deletes},
		{"starts a stopped slice", starts},
		{"lists operations", operations},
		{"refuses names that are none", names},
		{"stops when its caller wants", canceled},
		{"lists the zones", zones},
	} {
		t.Run(p.name, func(t *testing.T) { p.hold(open(t)) })
	}
}

// requestID is the n-th of some UUIDs.
func requestID(n int) string { return fmt.Sprintf("00000000-0000-4000-8000-%012d", n) }

func (w World) at(name string) provider.Ref { return w.Ref(w.Home, name) }

func (w World) must(err error) {
	w.T.Helper()
	if err != nil {
		w.T.Fatal(err)
	}
}

// class fails the test unless the error is one of a provider of that class.
func (w World) class(err error, want reason.FailureClass) {
	w.T.Helper()
	var e *provider.Error
	if !errors.As(err, &e) || e.Class != want {
		w.T.Fatalf("error %v, want one of class %s", err, want)
	}
	if e.Call == "" {
		w.T.Errorf("error %+v", e)
	}
	for _, word := range w.Never {
		if strings.Contains(err.Error(), word) {
			w.T.Errorf("the error holds %q: %v", word, err)
		}
	}
}

// condition fails the test unless a slice is in that condition.
func (w World) condition(r provider.Ref, want evidence.Condition) {
	w.T.Helper()
	s, err := w.Read(w.T.Context(), r)
	w.must(err)
	if s.Condition != want {
		w.T.Fatalf("%s is %s (%s), want %s", r.Name, s.Condition, s.State, want)
	}
}

// ended returns how an operation ended.
func (w World) ended(zone, name string) *evidence.Failure {
	w.T.Helper()
	ops, err := w.Operations(w.T.Context(), w.Project, zone)
	w.must(err)
	i := slices.IndexFunc(ops, func(o provider.Operation) bool { return o.Name == name })
	if i < 0 || !ops[i].Done {
		w.T.Fatalf("%s is not among those done: %v", name, ops)
	}
	return ops[i].Failure
}

// succeeded fails the test unless an operation in Home did.
func (w World) succeeded(name string) {
	w.T.Helper()
	if f := w.ended(w.Home, name); f != nil {
		w.T.Errorf("failure %+v", f)
	}
}

func (w World) create(r provider.Ref, spec []byte, request int) (string, error) {
	return w.Create(w.T.Context(), r, spec, nil, requestID(request))
}

func gone(w World) {
	for _, r := range w.Absent {
		got, err := w.Read(w.T.Context(), r)
		w.must(err)
		if diff := cmp.Diff(provider.Slice{Ref: r, Condition: evidence.Gone, State: "not found"}, got); diff != "" {
			w.T.Errorf("slice (-want +got):\n%s", diff)
		}
	}
}

func refusals(w World) {
	spec := w.Spec()
	r := w.Ref(w.Barren, "n")
	op, err := w.create(r, spec, 1)
	w.must(err)
	w.condition(r, evidence.Creating)
	w.Advance(time.Minute)
	w.condition(r, evidence.Gone)
	if f := w.ended(w.Barren, op); f == nil || f.Class != reason.Stockout || f.Message != w.NoCapacity {
		w.T.Errorf("failure %+v, want %s", f, w.NoCapacity)
	}
	for i, r := range w.Foreign {
		_, err = w.create(r, spec, 20+i)
		w.class(err, reason.WrongZone)
	}

	// Capacity is counted: two fit, of which one is there.
	_, err = w.create(w.at("m"), spec, 4)
	w.must(err)
	op, err = w.create(w.at("o"), spec, 5)
	w.must(err)
	w.Advance(5 * time.Minute)
	w.condition(w.at("m"), evidence.Ready)
	if f := w.ended(w.Home, op); f == nil || f.Class != reason.Stockout {
		w.T.Errorf("failure %+v", f)
	}
	// A slice that was taken back holds none.
	w.Reclaim("m")
	_, err = w.create(w.at("o"), spec, 6)
	w.must(err)
	w.Advance(5 * time.Minute)
	w.condition(w.at("o"), evidence.Ready)
}

func lostAnswer(w World) {
	spec := w.Spec()
	w.LoseCreate()
	_, err := w.create(w.at("n"), spec, 1)
	w.class(err, reason.Transient)
	w.condition(w.at("n"), evidence.Creating)
	_, err = w.create(w.at("n"), spec, 1)
	w.class(err, reason.Transient)
	op, err := w.create(w.at("n"), spec, 1)
	if w.NoRequestIDs {
		w.class(err, reason.Exists)
		return
	}
	w.must(err)
	w.Advance(5 * time.Minute)
	w.succeeded(op)
}

func deletes(w World) {
	ctx := w.T.Context()
	w.Ready("n", false)
	op, err := w.Delete(ctx, w.at("n"), requestID(1))
	w.must(err)
	w.condition(w.at("n"), evidence.Deleting)
	_, err = w.Delete(ctx, w.at("n"), requestID(2))
	w.class(err, reason.NotInState)
	w.Advance(110 * time.Second)
	w.condition(w.at("n"), evidence.Gone)
	w.succeeded(op)

	w.Ready("n", false)
	message := w.FailDelete(time.Hour)
	op, err = w.Delete(ctx, w.at("n"), requestID(3))
	w.must(err)
	w.Advance(time.Hour)
	w.condition(w.at("n"), evidence.Deleting)
	w.Advance(110 * time.Second)
	w.condition(w.at("n"), evidence.Ready)
	if f := w.ended(w.Home, op); f == nil || f.Class != reason.Transient || f.Message != message {
		w.T.Errorf("failure %+v, want %s", f, message)
	}
}

func starts(w World) {
	ctx := w.T.Context()
	w.Ready("n", true)
	_, err := w.Start(ctx, w.at("n"))
	w.class(err, reason.NotInState)
	w.Stop("n")
	w.condition(w.at("n"), evidence.Stopped)
	w.RefuseStart()
	_, err = w.Start(ctx, w.at("n"))
	w.class(err, reason.Stockout)
	op, err := w.Start(ctx, w.at("n"))
	w.must(err)
	_, err = w.Start(ctx, w.at("n"))
	w.class(err, reason.Busy)
	w.Advance(10 * time.Minute)
	w.succeeded(op)
	w.condition(w.at("n"), evidence.Ready)
	_, err = w.Start(ctx, w.at("x"))
	w.class(err, reason.NotFound)
}

func operations(w World) {
	ctx := w.T.Context()
	got, err := w.Operations(ctx, w.Project, w.Home)
	w.must(err)
	if len(got) != 0 {
		w.T.Errorf("operations %v", got)
	}
	spec := w.Spec()
	message := w.FailCreate()
	var want []provider.Operation
	for i := range 5 {
		name, err := w.create(w.Ref(w.Away, fmt.Sprintf("n%d", i)), spec, i)
		w.must(err)
		want = append(want, provider.Operation{Name: name, Done: true})
	}
	want[0].Failure = &evidence.Failure{Class: reason.Stockout, Message: message}
	w.Advance(5 * time.Minute)
	name, err := w.Delete(ctx, w.Ref(w.Away, "n1"), requestID(9))
	w.must(err)
	want = append(want, provider.Operation{Name: name})
	got, err = w.Operations(ctx, w.Project, w.Away)
	w.must(err)
	if diff := cmp.Diff(want, got); diff != "" {
		w.T.Errorf("operations (-want +got):\n%s", diff)
	}
	got, err = w.Operations(ctx, w.Project, w.Away, want[0].Name, "of another zone")
	w.must(err)
	if diff := cmp.Diff(want[:1], got); diff != "" {
		w.T.Errorf("the named operations (-want +got):\n%s", diff)
	}
}

func names(w World) {
	ctx := w.T.Context()
	_, err := w.Delete(ctx, w.Bad, requestID(1))
	w.class(err, reason.Invalid)
	_, err = w.create(w.Bad, []byte(`{"node":{}}`), 1)
	w.class(err, reason.Invalid)
	_, err = w.Maintain(ctx, []provider.Ref{w.Bad})
	w.class(err, reason.Invalid)
	if _, err = w.Hosts(ctx, w.Bad); !w.NoGuests {
		w.class(err, reason.Invalid)
	}
	w.class(w.SetMetadata(ctx, w.Bad, "k", "v"), reason.Invalid)
	_, err = w.List(ctx, w.Project, "../x")
	w.class(err, reason.Invalid)
	_, err = w.Operations(ctx, w.Project, "")
	w.class(err, reason.Invalid)
	_, err = w.Zones(ctx, "a/b")
	w.class(err, reason.Invalid)
	if n := w.Calls(); n > 0 {
		w.T.Errorf("%d calls", n)
	}
}

func canceled(w World) {
	ctx, cancel := context.WithCancel(w.T.Context())
	cancel()
	_, err := w.Read(ctx, w.at("n"))
	w.class(err, reason.Transient)
	if !errors.Is(err, context.Canceled) {
		w.T.Error(err)
	}
}

func zones(w World) {
	got, err := w.Zones(w.T.Context(), w.Project)
	w.must(err)
	for _, r := range w.Foreign { // a deployment may name it
		got = slices.DeleteFunc(got, func(z string) bool { return z == r.Zone })
	}
	if diff := cmp.Diff([]string{w.Barren, w.Home, w.Away}, got); diff != "" {
		w.T.Errorf("zones (-want +got):\n%s", diff)
	}
}
