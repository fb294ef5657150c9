package checkpoint

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pitstop.internal/shared/checkpoint/buckettest"
)

// made is an object of a checkpoint directory: its size and its age in minutes before start.
type made struct{ size, age int }

// tree is a checkpoint directory by the names of its objects.
type tree map[string]made

// with is the tree and more.
func (t tree) with(more tree) tree {
	t = maps.Clone(t)
	maps.Copy(t, more)
	return t
}

func (t tree) without(names ...string) tree {
	t = maps.Clone(t)
	for _, n := range names {
		if _, ok := t[n]; !ok {
			panic(n)
		}
		delete(t, n)
	}
	return t
}

// orbaxStep is a step as Orbax's checkpoint manager leaves it in a bucket: 120 bytes of data under two items.
func orbaxStep(name string, age int) tree {
	return tree{
		name + "/_CHECKPOINT_METADATA":            {90, age},
		name + "/default/_METADATA":               {20, age + 1},
		name + "/default/manifest.ocdbt":          {10, age + 1},
		name + "/default/ocdbt.process_0/d/8f3ab": {80, age + 2},
		name + "/default/commit_success.txt":      {9, age + 1},
		name + "/metrics/metrics":                 {10, age + 1},
		name + "/metrics/commit_success.txt":      {9, age + 1},
		name + "/commit_success.txt":              {9, age},
	}
}

// torchStep is a step as PyTorch/XLA's manager leaves it: 120 bytes of data of two ranks.
func torchStep(name string, age int) tree {
	return tree{
		name + "/__0_0.distcp":      {80, age + 1},
		name + "/__1_0.distcp":      {40, age + 2},
		name + "/.metadata":         {30, age},
		name + "/.manager_metadata": {10, age},
	}
}

// bundleFiles is what TensorFlow leaves of one checkpoint: 120 bytes of data in two parts.
func bundleFiles(prefix string, age int) tree {
	return tree{
		prefix + ".data-00000-of-00002": {80, age + 2},
		prefix + ".data-00001-of-00002": {40, age + 1},
		prefix + ".index":               {15, age},
	}
}

// stateOf is TensorFlow's state file.
func stateOf(age int) tree { return tree{"checkpoint": {50, age}} }

func at(age int) time.Time { return start.Add(-time.Duration(age) * time.Minute) }

func grow(t *testing.T, r rig, objects tree) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		r.seed(t, name, make([]byte, objects[name].size), at(objects[name].age))
	}
}

// sight is the expected result of a look: a checkpoint, or the description of the directory instead.
type sight struct {
	name  string // of the step directory
	step  int64
	age   int
	count int
	bytes int64
	doubt string
	words string
}

func TestVerify(t *testing.T) {
	t.Parallel()
	whole := sight{name: "48190", step: 48190, age: 6, count: 4, bytes: 120}
	none := func(words string) sight { return sight{words: words} }
	for _, tt := range []struct {
		name string
		tree tree
		want Want
		// gs and file are the expected results on either storage; both if they are alike.
		both, gs, file sight
	}{
		{
			name: "a complete step", tree: orbaxStep("48190", 6), both: whole,
		},
		{
			name: "the highest of several, by number and not by name",
			tree: orbaxStep("9000", 1).with(orbaxStep("48190", 6)).with(orbaxStep("10000", 2)), both: whole,
		},
		{
			name: "newer than asked for",
			tree: orbaxStep("48190", 6), want: Want{Since: at(7), MoreThan: 48189},
			both: whole,
		},
		{
			name: "as old as the request", tree: orbaxStep("48190", 6), want: Want{Since: at(6)},
			both: none("the newest complete checkpoint is step 48190 of 2026-11-12 02:08:07 UTC, " +
				"before the request of 2026-11-12 02:08:07 UTC"),
		},
		{
			name: "not past the step",
			tree: orbaxStep("48190", 6).with(orbaxStep("48000", 9)), want: Want{MoreThan: 48190},
			both: none("the newest complete checkpoint is step 48190 of 2026-11-12 02:08:07 UTC, not past step 48190"),
		},
		{
			name: "a lower step that is new enough, after a higher one of an earlier run",
			tree: orbaxStep("48190", 6).with(orbaxStep("50000", 600)), want: Want{Since: at(10)}, both: whole,
		},
		{
			name: "step 0 counts where nothing is asked for", tree: orbaxStep("0", 6),
			both: sight{name: "0", step: 0, age: 6, count: 4, bytes: 120},
		},
		{
			name: "a step that Orbax is still writing into a bucket",
			tree: orbaxStep("48190", 6).without("48190/commit_success.txt"),
			gs:   none("step 48190 has no commit marker"),
			// The directory has its final name, and that is all that older releases write.
			file: whole,
		},
		{
			name: "an unfinished step above a complete one", want: Want{Since: at(5)},
			tree: orbaxStep("48200", 1).without("48200/commit_success.txt").with(orbaxStep("48190", 6)),
			gs: none("step 48200 has no commit marker; the newest complete checkpoint is step 48190 of 2026-11-12 02:08:07 UTC, " +
				"before the request of 2026-11-12 02:09:07 UTC"),
			file: none("step 48200 has no commit_success.txt, unlike a step next to it; the newest complete checkpoint is step 48190 of 2026-11-12 02:08:07 UTC, " +
				"before the request of 2026-11-12 02:09:07 UTC"),
		},
		{
			name: "PyTorch/XLA's manager", tree: torchStep("48190", 6).with(torchStep("48000", 20)),
			both: sight{name: "48190", step: 48190, age: 6, count: 2, bytes: 120},
		},
		{
			name: "a distributed checkpoint of PyTorch without the manager",
			tree: torchStep("48190", 6).without("48190/.manager_metadata").with(torchStep("48000", 20).without("48000/.manager_metadata")),
			both: sight{name: "48190", step: 48190, age: 6, count: 2, bytes: 120},
		},
		{
			name: "ranks that still write", want: Want{MoreThan: 48000},
			tree: torchStep("48190", 6).without("48190/.manager_metadata", "48190/.metadata").with(torchStep("48000", 20)),
			both: none("step 48190 has no .metadata: not all ranks have written their part; " +
				"the newest complete checkpoint is step 48000 of 2026-11-12 01:54:07 UTC, not past step 48000"),
		},
		{
			name: "a rank that has written what no metadata tells of", tree: torchStep("48190", 6).without("48190/.manager_metadata").with(tree{"48190/__1_0.distcp": {40, 1}}),
			both: none("step 48190 is being written again: __1_0.distcp is newer than .metadata"),
		},
		{
			name: "a step that the manager would not know", want: Want{MoreThan: 48000},
			tree: torchStep("48190", 6).without("48190/.manager_metadata").with(torchStep("48000", 20)),
			both: none("step 48190 has no .manager_metadata yet, unlike the step next to it; " +
				"the newest complete checkpoint is step 48000 of 2026-11-12 01:54:07 UTC, not past step 48000"),
		},
		{
			name: "metadata without data", tree: torchStep("48190", 6).without("48190/__0_0.distcp", "48190/__1_0.distcp"),
			both: none("step 48190 holds no data"),
		},
		{
			name: "TensorFlow's checkpoints", tree: bundleFiles("ckpt-48190", 6).with(bundleFiles("ckpt-9000", 20)).with(stateOf(6)),
			both: sight{name: "ckpt-48190", step: 48190, age: 6, count: 2, bytes: 120},
		},
		{
			name: "TensorFlow's older names", tree: bundleFiles("model.ckpt-48190", 6).with(stateOf(5)).with(tree{"model.ckpt-48190.meta": {70, 6}}),
			both: sight{name: "model.ckpt-48190", step: 48190, age: 6, count: 2, bytes: 120},
		},
		{
			name: "an index that no state file tells of", tree: bundleFiles("ckpt-48190", 6).with(stateOf(20)),
			gs:   sight{name: "ckpt-48190", step: 48190, age: 6, count: 2, bytes: 120},
			file: none("step 48190 has an index of which no file checkpoint tells yet"),
		},
		{
			name: "data without its index", want: Want{MoreThan: 48000},
			tree: bundleFiles("ckpt-48190", 6).without("ckpt-48190.index").with(bundleFiles("ckpt-48000", 20)).with(stateOf(20)),
			both: none("step 48190 has no index yet; the newest complete checkpoint is step 48000 of 2026-11-12 01:54:07 UTC, not past step 48000"),
		},
		{
			name: "an index without all of its data", tree: bundleFiles("ckpt-48190", 6).without("ckpt-48190.data-00001-of-00002").with(stateOf(6)),
			both: none("step 48190 has an index, but lacks a part of its data (found 1)"),
		},
		{
			name: "parts of two sets", tree: bundleFiles("ckpt-48190", 6).without("ckpt-48190.data-00001-of-00002").with(stateOf(6)).with(tree{"ckpt-48190.data-00000-of-00003": {9, 6}}),
			both: none("step 48190 has an index, but lacks a part of its data (found 1)"),
		},
		{
			name: "names that only look like TensorFlow's", tree: tree{
				"ckpt.index": {9, 6}, "-5.index": {9, 6}, "ckpt-x.index": {9, 6}, "ckpt-5.data-00002-of-00002": {9, 6}, "ckpt-5.data-0-of-1": {9, 6},
			},
			both: none("it holds no step directory, but 5 other names, -5.index the first"),
		},
		{
			name: "a step under its temporary name, marker and all",
			tree: orbaxStep("48190.orbax-checkpoint-tmp-1731377647", 6),
			both: none("step 48190 still has a temporary name (48190.orbax-checkpoint-tmp-1731377647); there is no finished step"),
		},
		{
			name: "a temporary name without a number at its end",
			tree: orbaxStep("step_48190.orbax-checkpoint-tmp", 6).with(orbaxStep("step_48180", 9)),
			want: Want{MoreThan: 48185},
			both: none("step 48190 still has a temporary name (step_48190.orbax-checkpoint-tmp); " +
				"the newest complete checkpoint is step 48180 of 2026-11-12 02:05:07 UTC, not past step 48185"),
		},
		{
			name: "a temporary name that a crash left below a finished step", want: Want{MoreThan: 48190},
			tree: orbaxStep("48100.orbax-checkpoint-tmp", 90).with(orbaxStep("48190", 6)),
			both: none("the newest complete checkpoint is step 48190 of 2026-11-12 02:08:07 UTC, not past step 48190"),
		},
		{
			name: "a zero-padded name",
			tree: orbaxStep("00048190", 6),
			both: sight{name: "00048190", step: 48190, age: 6, count: 4, bytes: 120},
		},
		{
			name: "a name with a prefix",
			tree: orbaxStep("checkpoint_48190", 6),
			both: sight{name: "checkpoint_48190", step: 48190, age: 6, count: 4, bytes: 120},
		},
		{
			name: "one step under two names: always the same one",
			tree: orbaxStep("step_48190", 6).with(orbaxStep("48190", 6)),
			both: whole,
		},
		{
			name: "items that are saved one by one, each with its marker",
			tree: orbaxStep("48190", 6).without("48190/commit_success.txt", "48190/_CHECKPOINT_METADATA"),
			both: sight{name: "48190", step: 48190, age: 7, count: 4, bytes: 120},
		},
		{
			name: "items that are saved one by one are complete with the last",
			tree: orbaxStep("48190", 6).without("48190/commit_success.txt", "48190/_CHECKPOINT_METADATA").
				with(tree{"48190/metrics/commit_success.txt": {9, 3}, "48190/default/commit_success.txt": {9, 4}}),
			both: sight{name: "48190", step: 48190, age: 3, count: 4, bytes: 120},
		},
		{
			name: "items that are saved one by one, the last not done",
			tree: orbaxStep("48190", 6).without("48190/commit_success.txt", "48190/_CHECKPOINT_METADATA",
				"48190/metrics/commit_success.txt"),
			gs:   none("step 48190 has no commit marker in its item metrics"),
			file: sight{name: "48190", step: 48190, age: 7, count: 4, bytes: 120},
		},
		{
			name: "items that are saved one by one, the first not done",
			tree: orbaxStep("48190", 6).without("48190/commit_success.txt", "48190/_CHECKPOINT_METADATA",
				"48190/default/commit_success.txt"),
			gs:   none("step 48190 has no commit marker"),
			file: sight{name: "48190", step: 48190, age: 7, count: 4, bytes: 120},
		},
		{
			name: "an item under its temporary name",
			tree: orbaxStep("48190", 6).without("48190/commit_success.txt", "48190/_CHECKPOINT_METADATA").
				with(tree{"48190/params.orbax-checkpoint-tmp-5/d/x": {5, 1}}),
			both: none("step 48190 has an unfinished item params.orbax-checkpoint-tmp-5"),
		},
		{
			name: "what a crash left of an item does not undo the marker", tree: orbaxStep("48190", 6).
				with(tree{"48190/params.orbax-checkpoint-tmp-5/d/x": {5, 1}}),
			both: whole,
		},
		{
			name: "a marker and what a crash left of an item",
			tree: tree{"48190/commit_success.txt": {9, 6}, "48190/params.orbax-checkpoint-tmp/d/x": {5, 1}},
			both: none("step 48190 holds no data"),
		},
		{
			name: "a marker and nothing else",
			tree: tree{"48190/commit_success.txt": {9, 6}},
			both: none("step 48190 holds no data"),
		},
		{
			name: "a marker and files without content",
			tree: tree{"48190/commit_success.txt": {9, 6}, "48190/_CHECKPOINT_METADATA": {90, 6}, "48190/default/x": {0, 6}},
			both: none("step 48190 holds no data"),
		},
		{
			name: "a plain step with DONE", tree: tree{"48190/model.pt": {50, 6}, "48190/DONE": {0, 5}},
			gs:   sight{name: "48190", step: 48190, age: 5, count: 1, bytes: 50},
			file: sight{name: "48190", step: 48190, age: 5, count: 1, bytes: 50},
		},
		{
			name: "a plain step with _SUCCESS and directories",
			tree: tree{"step_48190/rank0/model.pt": {50, 6}, "step_48190/_SUCCESS": {0, 5}},
			both: sight{name: "step_48190", step: 48190, age: 5, count: 1, bytes: 50},
		},
		{
			name: "a plain step with Orbax's marker",
			tree: tree{"48190/model.pt": {50, 6}, "48190/commit_success.txt": {0, 5}},
			both: sight{name: "48190", step: 48190, age: 5, count: 1, bytes: 50},
		},
		{
			name: "a plain step without any marker", tree: tree{"48190/model.pt": {50, 6}},
			gs:   none("step 48190 has no commit marker"),
			file: sight{name: "48190", step: 48190, age: 6, count: 1, bytes: 50, doubt: "no file in it tells whether it is complete"},
		},
		{
			name: "DONE beside what Orbax has not finished",
			tree: tree{"48190/default/_METADATA": {50, 6}, "48190/DONE": {0, 5}},
			gs:   none("step 48190 has no commit marker: DONE does not count next to Orbax's own files (default/_METADATA)"),
			file: sight{name: "48190", step: 48190, age: 5, count: 1, bytes: 50},
		},
		{
			name: "several steps and none complete", tree: tree{"1/x": {1, 3}, "2/x": {1, 2}, "3/x": {1, 1}},
			gs:   none("step 3 has no commit marker; none of the 3 highest steps is complete"),
			file: sight{name: "3", step: 3, age: 1, count: 1, bytes: 1, doubt: "no file in it tells whether it is complete"},
		},
		{
			name: "names that are no steps", tree: tree{"logs/48190": {5, 1}, "48190": {5, 1}, "v2-final/x": {5, 1}},
			both: none("it holds no step directory, but 3 other names, 48190 the first"),
		},
		{
			name: "one name that is no step",
			tree: tree{"tensorboard/x": {5, 1}},
			both: none("it holds no step directory, only tensorboard"),
		},
		{
			name: "our own objects alone", tree: tree{LeaseName: {5, 1}, RequestName: {5, 1}, CrewName + "/attempt-000001": {5, 1}},
			both: none("the directory holds only Pitstop's own objects"),
		},
		{
			name: "our own objects beside a step",
			tree: orbaxStep("48190", 6).with(tree{LeaseName: {5, 1}, RequestName: {5, 1}}),
			both: whole,
		},
		{
			name: "a step that is too high for a number", tree: orbaxStep("99999999999999999999", 6),
			both: none("it holds no step directory, only 99999999999999999999"),
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, k := range kinds {
				want := tt.both
				switch {
				case want != sight{}:
				case strings.HasPrefix(k.name, "file"):
					want = tt.file
				default:
					want = tt.gs
				}
				r := k.make(t)
				grow(t, r, tt.tree)
				got, err := Verify(t.Context(), r.store, r.dir, tt.want)
				see(t, k.name, r, want, got, err)
			}
		})
	}
}

func see(t *testing.T, kind string, r rig, want sight, got Found, err error) {
	t.Helper()
	if want.words != "" {
		var m *Missing
		if !errors.As(err, &m) {
			t.Errorf("%s: found %+v, %v; want nothing", kind, got, err)
			return
		}
		if diff := cmp.Diff(Missing{Dir: r.dir, Text: want.words, Stale: strings.HasPrefix(want.words, "the newest complete "), None: strings.HasPrefix(want.words, "the directory ")}, *m); diff != "" {
			t.Errorf("%s: differs (-want +got):\n%s", kind, diff)
		}
		if got != (Found{}) || strings.Contains(m.Error(), "\n") {
			t.Errorf("%s: found %+v, %q", kind, got, m)
		}
		return
	}
	if err != nil {
		t.Errorf("%s: %v", kind, err)
		return
	}
	full := Found{Step: want.step, URI: Join(r.dir, want.name), At: at(want.age), Objects: want.count, Bytes: want.bytes, Doubt: want.doubt}
	if diff := cmp.Diff(full, got); diff != "" {
		t.Errorf("%s: differs (-want +got):\n%s", kind, diff)
	}
}

func TestVerifyWhereNothingIs(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, r rig) {
		t.Helper()
		words := "the directory does not exist"
		_, err := Verify(t.Context(), r.store, Join(r.dir, "none"), Want{})
		if want := "no checkpoint in " + Join(r.dir, "none") + ": " + words; err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
		// A bucket knows no empty directory, unless a tool wrote it down.
		if r.server != nil {
			r.seed(t, "", nil, start)
		}
		got, err := Verify(t.Context(), r.store, r.dir, Want{})
		see(t, "empty", r, sight{words: "the directory is empty"}, got, err)
	})
}

func TestVerifySaysWhenItCannotLook(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		status int
		want   error
	}{{403, ErrPermission}, {503, ErrTransient}} {
		for skip := range 4 {
			r := overTransport(t)
			grow(t, r, orbaxStep("48190", 6).without("48190/commit_success.txt", "48190/_CHECKPOINT_METADATA"))
			// The top, the step, the item default, the item metrics.
			prefix := []string{"", "48190/", "48190/default/" + commitMarker, "48190/metrics/" + commitMarker}[skip]
			r.server.Inject(buckettest.Fault{Method: buckettest.MethodList, Status: tt.status, Object: "llama-8b/" + prefix})
			_, err := Verify(t.Context(), r.store, r.dir, Want{})
			wantErr(t, err, tt.want)
			if m := (*Missing)(nil); errors.As(err, &m) {
				t.Errorf("call %d, status %d: %v says that it looked", skip, tt.status, err)
			}
		}
	}
	_, err := Verify(t.Context(), Mux{}, "s3://bucket/x", Want{})
	wantErr(t, err, ErrInvalid)
}

func TestVerifyOfAHugeStepReadsAPage(t *testing.T) {
	t.Parallel()
	r := overTransport(t)
	step := tree{"48190/commit_success.txt": {9, 6}, "48190/_CHECKPOINT_METADATA": {9, 6}}
	for i := range 2500 {
		// One directory for each parameter, all of them before the marker in the order of names.
		step[fmt.Sprintf("48190/a.layer%04d.kernel/0", i)] = made{2, 7}
	}
	grow(t, r, step.with(orbaxStep("48000", 60)))
	got, err := Verify(t.Context(), r.store, r.dir, Want{Since: at(7)})
	must(t, err)
	// One of the thousand is Orbax's own record.
	want := Found{Step: 48190, URI: Join(r.dir, "48190"), At: at(6), Objects: 999, Bytes: 2 * 999, More: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("differs (-want +got):\n%s", diff)
	}
	// Names, the page of the step and one name more, the marker, the objects and one more.
	if n := r.server.Calls(buckettest.MethodList); n > 6 {
		t.Errorf("%d listings, want 6 at most", n)
	}
	r.server.Delete("ckpt", "llama-8b/48190/commit_success.txt")
	_, err = Verify(t.Context(), r.store, r.dir, Want{Since: at(7)})
	if err == nil || !strings.Contains(err.Error(), "step 48190 has no commit marker") {
		t.Errorf("error %v; want no commit marker", err)
	}
}

func TestVerifyLooksAtTheHighestStepsAlone(t *testing.T) {
	t.Parallel()
	r := overTransport(t)
	grow(t, r, orbaxStep("5", 6))
	for i := range 200 {
		r.seed(t, fmt.Sprintf("%d/x", 100+i), []byte("x"), start)
	}
	got, err := Verify(t.Context(), r.store, r.dir, Want{})
	see(t, "gs", r, sight{words: "step 299 has no commit marker; none of the 8 highest steps is complete"}, got, err)
	if n := r.server.Calls(buckettest.MethodList); n > 1+maxSteps {
		t.Errorf("%d listings for 200 steps", n)
	}
}

func TestVerifyOfABucketItself(t *testing.T) {
	t.Parallel()
	r := overTransport(t)
	r.server.Put("whole", "48190/x", []byte("x"))
	r.server.Put("whole", "48190/commit_success.txt", nil)
	for _, dir := range []string{"gs://whole", "gs://whole/"} {
		f, err := Verify(t.Context(), r.store, dir, Want{})
		if err != nil || f.URI != "gs://whole/48190" {
			t.Errorf("%s: found %+v, %v", dir, f, err)
		}
	}
}

func TestStep(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]int64{
		"48190": 48190, "0": 0, "000": 0, "00048190": 48190, "step_48190": 48190, "checkpoint_0048190": 48190,
		"a_b_7": 7, "a__7": 7, "llama-8b_7": 7, "step48190": 48190, "step-7": 7, "checkpoint-7": 7,
		"epoch=4-step=45441.ckpt": 45441, "epoch=4-step=7-loss=0.25-v1.ckpt": 7, "step=7.ckpt": 7, "last.ckpt": -1, "epoch=4.ckpt": -1, "9223372036854775807": 1<<63 - 1,
		"": -1, "step": -1, "step_": -1, "_7": -1, "_": -1, "step-": -1, "run-7": -1, "step-7-old": -1, "7_step": -1, "-7": -1, "+7": -1,
		"step_-7": -1, "7.0": -1, "step_7 ": -1, "9223372036854775808": -1, "٧": -1, "step_٧": -1,
		"7.orbax-checkpoint-tmp-5": -1, "7.orbax-checkpoint-tmp_5": -1, "todelete": -1,
	} {
		n, ok := Step(name)
		if !ok {
			n = -1
		}
		if n != want {
			t.Errorf("step of %q is %d, want %d", name, n, want)
		}
	}
}

func TestTheNumberOfATensorFlowCheckpointMayBeACount(t *testing.T) {
	t.Parallel()
	for uri, want := range map[string]bool{
		"gs://b/run/48190": false, "file:///run/step_48190": false, "": false, "gs://b/run/ckpt-5": true, "file:///run/model.ckpt-100": true, "gs://b/my_run/my_ckpt-5": true,
		"gs://b/run/checkpoint-500": false, "gs://b/run/epoch=4-step=45441.ckpt": false, "gs://b/run/checkpoint-5.index": true,
	} {
		if got := Counted(uri); got != want {
			t.Errorf("%q: %v", uri, got)
		}
	}
}

func FuzzStep(f *testing.F) {
	for _, name := range []string{
		"48190", "step_48190", "00048190", "48190.orbax-checkpoint-tmp-5", "_7", "step_", "a_b_7", "99999999999999999999",
	} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		n, ok := Step(name)
		if !ok {
			if n2, ok := Step("x_" + name); ok && name != "" && !strings.Contains(name, "_") {
				t.Errorf("%q is no step, and after a prefix it is %d", name, n2)
			}
			return
		}
		if n < 0 || strings.Contains(name, tmpSuffix) {
			t.Errorf("%q is step %d", name, n)
		}
		if again, ok := Step(fmt.Sprintf("%s_%d", "step", n)); !ok || again != n {
			t.Errorf("%q is step %d, and written again it is %d", name, n, again)
		}
	})
}

func FuzzBundle(f *testing.F) {
	for _, name := range []string{"ckpt-12.index", "model.ckpt-7.data-00000-of-00002", "ckpt-1.data-00001-of-00001", "a-b-3.index", "-1.index", "ckpt-.index"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		prefix, number, shards, ok := bundleOf(Entry{Name: name})
		if !ok {
			return
		}
		if number < 0 || shards < 0 || !strings.HasPrefix(name, prefix+".") || !strings.Contains(prefix, "-") {
			t.Errorf("%q: prefix %q, number %d, %d parts", name, prefix, number, shards)
		}
		if c := candidatesOf([]Entry{{Name: name, Size: 1}}); len(c.steps) != 1 || c.steps[0].number != number {
			t.Errorf("%q: %+v", name, c)
		}
	})
}
