package gke

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	"github.com/google/go-cmp/cmp"
)

const applied = `{"metadata":{"name":"llama","namespace":"teams","uid":"j1","resourceVersion":"7","generation":2,"creationTimestamp":"2026-11-12T10:00:00Z",
	"labels":{"team":"a","pitstop-incident":"llama-1","job-name":"llama","batch.kubernetes.io/job-name":"llama","controller-uid":"j1","batch.kubernetes.io/controller-uid":"j1"},
	"annotations":{"note":"x","pitstop-request":"r1","kubectl.kubernetes.io/last-applied-configuration":"{\"env\":\"hunter2\"}","kapp.k14s.io/original":"{\"env\":\"hunter2\"}"},"managedFields":[{"manager":"kubectl"}],
	"ownerReferences":[{"kind":"JobSet","name":"s","uid":"s1"}]},
	"spec":{"backoffLimit":0,"suspend":true,"selector":{"matchLabels":{"controller-uid":"j1"}},"template":{"metadata":{"creationTimestamp":null,"labels":{"job-name":"llama","app":"llama"}},
	"spec":{"initContainers":[{"name":"i","env":[{"name":"A","value":"hunter3"}]}],"containers":[{"name":"c","args":["--steps=5"],"env":[{"name":"TOKEN","value":"hunter2"},{"name":"REF","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}},{"name":"EMPTY"}]}]}}},
	"status":{"active":1}}`

// putBack puts the values of environment variables back into a manifest.
func putBack(t *testing.T, o *order) (whole map[string]any) {
	t.Helper()
	spec, err := Orders{}.Whole(o.spec, o.values)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(spec, &whole); err != nil {
		t.Fatal(err)
	}
	return whole
}

func TestAnOrderIsTheManifestAsApplied(t *testing.T) {
	o, err := orderOf("p/l/c", kindJob, Meta{Name: "llama", Namespace: "teams", UID: "j1"}, []byte(applied))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(o.spec), "hunter") {
		t.Errorf("a value stayed in the manifest: %s", o.spec)
	}
	var want map[string]any
	if err := json.Unmarshal([]byte(`{"apiVersion":"batch/v1","kind":"Job","metadata":{"name":"llama","namespace":"teams","labels":{"team":"a"},"annotations":{"note":"x"}},
		"spec":{"backoffLimit":0,"template":{"metadata":{"labels":{"app":"llama"}},
		"spec":{"initContainers":[{"name":"i","env":[{"name":"A","value":"hunter3"}]}],"containers":[{"name":"c","args":["--steps=5"],"env":[{"name":"TOKEN","value":"hunter2"},{"name":"REF","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}},{"name":"EMPTY"}]}]}}}}`), &want); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, putBack(t, o)); diff != "" {
		t.Errorf("with its values (-want +got):\n%s", diff)
	}
}

// TestAnOrderIsNamedByItsLife: the same manifest has the same name, each life has its own values, and no name tells what they are.
func TestAnOrderIsNamedByItsLife(t *testing.T) {
	of := func(uid, text string) *order {
		o, err := orderOf("p/l/c", kindJob, Meta{Name: "llama", Namespace: "teams", UID: uid}, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return o
	}
	first := of("j1", applied)
	changed := of("j1", strings.ReplaceAll(applied, "hunter3", "hunter4"))
	if first.name != changed.name || first.sum == changed.sum {
		t.Errorf("another value in the same life: %s, %s; sums %s, %s", first.name, changed.name, first.sum, changed.sum)
	}
	if next := of("j2", applied); next.name == first.name || string(next.spec) != string(first.spec) {
		t.Errorf("the next life: %s, before %s", next.name, first.name)
	}
	if other := of("j1", strings.ReplaceAll(applied, "--steps=5", "--steps=6")); other.name == first.name {
		t.Error("another manifest has the same name")
	}
}

// TestTheOrderOfAJobSet: every Job in it keeps the values of its variables apart.
func TestTheOrderOfAJobSet(t *testing.T) {
	text := `{"metadata":{"name":"s","uid":"s1"},"spec":{"suspend":false,"replicatedJobs":[{"name":"a","template":{"metadata":{},"spec":{"template":{"spec":{"containers":[{"env":[{"name":"X","value":"hunter2"}]}]}}}}},
		{"name":"b","replicas":2,"template":{"spec":{"template":{"spec":{"containers":[{"env":[{"name":"Y","value":"hunter3"}]}]}}}}}]}}`
	o, err := orderOf("p/l/c", kindJobSet, Meta{Name: "s", UID: "s1"}, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(o.spec), "hunter") || strings.Contains(string(o.spec), "suspend") || !strings.Contains(string(o.spec), `"kind":"JobSet"`) {
		t.Errorf("the manifest: %s", o.spec)
	}
	want := map[string]string{
		"/spec/replicatedJobs/0/template/spec/template/spec/containers/0/env/0": "hunter2", "/spec/replicatedJobs/1/template/spec/template/spec/containers/0/env/0": "hunter3",
	}
	if diff := cmp.Diff(want, o.values); diff != "" {
		t.Errorf("the values (-want +got):\n%s", diff)
	}
}

// TestAManifestIsWholeWithAllOfItsValues, and with no others.
func TestAManifestIsWholeWithAllOfItsValues(t *testing.T) {
	o, err := orderOf("p/l/c", kindJob, Meta{Name: "llama", Namespace: "teams", UID: "j1"}, []byte(applied))
	if err != nil {
		t.Fatal(err)
	}
	if !(Orders{}).IsApart(o.spec) {
		t.Errorf("it seems to be whole: %s", o.spec)
	}
	const at = "/spec/template/spec/containers/0/env/0"
	missing, more := maps.Clone(o.values), maps.Clone(o.values)
	delete(missing, at)
	more["/spec/template/spec/containers/7/env/0"] = "hunter5"
	for what, values := range map[string]map[string]string{"a value is missing": missing, "a value belongs to another manifest": more, "nothing is kept": nil} {
		if whole, err := (Orders{}).Whole(o.spec, values); err == nil || strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: %s, %v", what, whole, err)
		}
	}
}

// TestSlicesOfOneJobSetHaveOneManifest: created twice, one of them would be wrong.
func TestSlicesOfOneJobSetHaveOneManifest(t *testing.T) {
	a, b := []byte(`{"kind":"JobSet","metadata":{"name":"a"}}`), []byte(`{"kind":"JobSet","metadata":{"name":"b"}}`)
	if spec, err := (Orders{}).Together([]string{"x", "y"}, [][]byte{a, slices.Clone(a)}); err != nil || string(spec) != string(a) {
		t.Errorf("%s, %v", spec, err)
	}
	for _, specs := range [][][]byte{{a, b}, {}} {
		if spec, err := (Orders{}).Together(nil, specs); err == nil {
			t.Errorf("%q make %s", specs, spec)
		}
	}
}

func FuzzOrder(f *testing.F) {
	f.Add(applied, true)
	f.Add(`{"metadata":null,"spec":{"replicatedJobs":[null,{"template":{"spec":{"template":[]}}}]}}`, false)
	f.Fuzz(func(t *testing.T, text string, job bool) {
		kind := kindJobSet
		if job {
			kind = kindJob
		}
		o, err := orderOf("p/l/c", kind, Meta{Name: "n", UID: "u"}, []byte(text))
		if err != nil || strings.Contains(text, valueApart) { // no API has this field
			return
		}
		again, err := orderOf("p/l/c", kind, Meta{Name: "n", UID: "u"}, o.spec)
		if err != nil || len(again.values) > 0 || string(again.spec) != string(o.spec) {
			t.Errorf("the order of an order differs: %s, %s, %v", o.spec, again.spec, err)
		}
		whole, err := Orders{}.Whole(o.spec, o.values)
		if err != nil || (Orders{}).IsApart(whole) || (Orders{}).IsApart(o.spec) != (len(o.values) > 0) {
			t.Errorf("%s is not made whole with %v: %s, %v", o.spec, o.values, whole, err)
		}
		if back, err := orderOf("p/l/c", kind, Meta{Name: "n", UID: "u"}, whole); err != nil || back.sum != o.sum || back.name != o.name {
			t.Errorf("the order of the whole is another one: %s, %s, %v", o.spec, back.spec, err)
		}
	})
}

// FuzzPage: whatever an answer is, it is read or refused.
func FuzzPage(f *testing.F) {
	f.Add(`{"kind":"JobList","metadata":{"continue":"x"},"items":[{"metadata":{"name":"a","labels":{"b":"c"}}}]}`)
	f.Add(`{"items":null,"kind":"List"}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, text string) {
		var plain, texts page[Job]
		var all []string
		err := plain.read(strings.NewReader(text), tally{}, nil)
		again := texts.read(strings.NewReader(text), tally{}, func(j *Job, text []byte) { all = append(all, j.Name+string(text)) })
		if (err == nil) != (again == nil) || err == nil && (len(plain.items) != len(texts.items) || len(all) != len(plain.items) || plain.next != texts.next) {
			t.Errorf("read as %v, %v; with texts as %v, %v", plain, err, texts, again)
		}
		if err == nil && slices.ContainsFunc(plain.items, func(j Job) bool { return j.order != nil }) {
			t.Error("nobody asked for the orders")
		}
	})
}

// TestAManifestSaysHowItsTrainingComesBack: a JobSet by its restarts, a Job by its retries.
func TestAManifestSaysHowItsTrainingComesBack(t *testing.T) {
	for text, want := range map[string]Manifest{
		`{"kind":"Job","spec":{"template":{"spec":{"containers":[{"args":["pitcrew","run"]}]}}}}`:                                                                                  {Kind: "Job", Retries: 6, Crew: true},
		`{"kind":"JobSet","spec":{"failurePolicy":{"maxRestarts":3},"replicatedJobs":[{"template":{"spec":{"backoffLimit":0}}}]}}`:                                                 {Kind: "JobSet", Restarts: 3},
		`{"kind":"JobSet","spec":{"replicatedJobs":[{"template":{"spec":{"podFailurePolicy":{"rules":[{"action":"Ignore","onPodConditions":[{"type":"DisruptionTarget"}]}]}}}}]}}`: {Kind: "JobSet", BearsLoss: true},
	} {
		if got, err := ReadManifest([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
}

func FuzzReadManifest(f *testing.F) {
	f.Add(`{"kind":"Job","spec":{"backoffLimit":0}}`)
	f.Add(`{"kind":"JobSet","spec":{"replicatedJobs":[{}]}}`)
	f.Fuzz(func(t *testing.T, text string) {
		if m, err := ReadManifest([]byte(text)); (err == nil) != (m.Kind == kindJob || m.Kind == kindJobSet) {
			t.Errorf("%+v, %v", m, err)
		}
	})
}
