package cloudtpu

import (
	"strings"
	"testing"

	"github.com/go-json-experiment/json"
	api "google.golang.org/api/tpu/v2alpha1"

	"pitstop.internal/shared/policy"
	"pitstop.internal/shared/provider"
)

const marker = "ghp_m4rk3r"

// TestASpecificationTellsNoValueOfItsMetadata: neither itself nor its name, which does not change with them.
func TestASpecificationTellsNoValueOfItsMetadata(t *testing.T) {
	r := provider.Ref{Project: "p", Zone: "z", Name: "n"}
	n := full()
	n.Metadata = map[string]string{
		"startup-script": "export TOKEN=" + marker + "\n" + scales + " --scale-from=" + marker, "startup-script-url": "https://x/?sig=" + marker, "token": marker, "empty": " ",
	}
	first, err := specOf(r, n, nil)
	if err != nil || strings.Contains(string(first.spec), marker) || first.bare {
		t.Fatalf("%s, %v", first.spec, err)
	}
	n.Metadata["token"] = "another"
	second, err := specOf(r, n, nil)
	if err != nil || second.name != first.name || second.sum == first.sum {
		t.Errorf("with another value it is named %s, and was %s: %v", second.name, first.name, err)
	}
	n.Id++
	if third, err := specOf(r, n, nil); err != nil || third.name == first.name || !strings.HasPrefix(third.name, strings.Split(first.name, "@")[0]) {
		t.Errorf("another life has the values of the one before: %s, %s, %v", third.name, first.name, err)
	}
	if up, err := StartUpOf(first.spec); err != nil || !up.Script || !up.Crew || up.URL == "" {
		t.Errorf("it begins so: %+v, %v", up, err)
	}
	var waits, again canonical
	node := &api.Node{AcceleratorType: "v5litepod-16", Metadata: map[string]string{"token": marker}}
	if waits, err = specOf(r, node, &api.QueuedResource{Name: "q", CreateTime: "1"}); err != nil {
		t.Fatal(err)
	}
	if again, err = specOf(r, node, &api.QueuedResource{Name: "q", CreateTime: "2"}); err != nil || again.name == waits.name {
		t.Errorf("the new order has the values of the order before: %s, %v", again.name, err)
	}
}

// TestWhatIsToldOfAScriptSaysTheSame of how a machine begins and of other shapes as the script itself.
func TestWhatIsToldOfAScriptSaysTheSame(t *testing.T) {
	for _, script := range []string{
		"", " \n", "python3 train.py", "pitcrew run -- t", scales, "pitcrew run --scale-from -- t", "pitcrew run --scale-from=v5litepod-16 --global-batch=$B -- t",
		"pitcrew run --scale-from=nonsense --global-batch=1 --steps=1 -- t", `pitcrew run --scale-from="2xv5litepod-16" --global-batch='1024' --steps 100 -- t`,
	} {
		whole, err := specOf(provider.Ref{Name: "n"}, &api.Node{AcceleratorType: "v5litepod-16", Metadata: map[string]string{"startup-script": script}}, nil)
		must(t, err)
		with, err := Whole(whole.spec, whole.values)
		must(t, err)
		before, err := StartUpOf(with)
		must(t, err)
		if after, err := StartUpOf(whole.spec); err != nil || after != before {
			t.Errorf("%q begins as %+v, and without its values as %+v: %v", script, before, after, err)
		}
		_, want := Reshape(with, policy.Alternative{Accelerator: "v5litepod-8"}, 1)
		small, got := Reshape(whole.spec, policy.Alternative{Accelerator: "v5litepod-8"}, 1)
		if (got == nil) != (want == nil) {
			t.Errorf("%q: another shape is refused by %v, and without its values by %v", script, want, got)
		}
		if got == nil && !IsApart(small) {
			t.Errorf("%q: in another shape it may be created without its values: %s", script, small)
		}
	}
}

// takenApart takes the values of the metadata out of a stored specification.
func takenApart(spec string) (without []byte, values map[string]string, err error) {
	var whole map[string]any
	if err := json.Unmarshal([]byte(spec), &whole); err != nil {
		return nil, nil, err
	}
	values = apart(whole)
	without, err = json.Marshal(whole, json.Deterministic(true))
	return without, values, err
}

// TestValuesAreTakenOutOnceAndPutBackWhole, whatever stands in them.
func TestValuesAreTakenOutOnceAndPutBackWhole(t *testing.T) {
	spec := ordered(`"acceleratorType":"v5litepod-16"`, `echo \"`+marker+`\"\n`, "")
	without, values, err := takenApart(spec)
	if err != nil || strings.Contains(string(without), marker) || !strings.Contains(values["startup-script"], marker) || !IsApart(without) || IsApart([]byte(spec)) {
		t.Fatalf("%s, %q, %v", without, values, err)
	}
	if again, more, err := takenApart(string(without)); err != nil || more != nil || string(again) != string(without) {
		t.Errorf("a second time: %s, %q, %v", again, more, err)
	}
	if whole, err := Whole(without, values); err != nil || string(whole) != spec {
		t.Errorf("%s, %v, want %s", whole, err, spec)
	}
	if whole, err := Whole([]byte(spec), nil); err != nil || string(whole) != spec {
		t.Errorf("one that was whole: %s, %v", whole, err)
	}
	if _, err := Whole(without, map[string]string{"other": "x"}); err == nil {
		t.Error("a value that is not kept was made up")
	}
	joined, err := Together([]string{"a", "b"}, [][]byte{[]byte(spec), without})
	must(t, err)
	if _, err := readSpecs("", joined); err == nil {
		t.Error("of several, one could be created without its metadata")
	}
	for _, legacy := range []string{`{"legacy_node":{"acceleratorType":"v3-8"}}`, `{"node":{"acceleratorType":"v3-8"}}`} {
		if got, values, err := takenApart(legacy); err != nil || values != nil || string(got) != legacy {
			t.Errorf("%s: %s, %q, %v", legacy, got, values, err)
		}
	}
}

// must ends a test at an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
