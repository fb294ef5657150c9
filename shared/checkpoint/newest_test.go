package checkpoint

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestNewestGoesByTimeAlone: somebody may have gone back to an earlier step, and whatever was written since then may be progress.
func TestNewestGoesByTimeAlone(t *testing.T) {
	const tear = 60 // minutes before start
	before := orbaxStep("3000", 100).with(orbaxStep("2000", 140))
	many := tree{}
	for i := range maxLooked + 1 {
		many = many.with(orbaxStep(fmt.Sprint(1000+i), 100+i))
	}
	nine := tree{}
	for i := range maxSteps + 1 {
		nine = nine.with(orbaxStep(fmt.Sprint(5000+i), 100+i))
	}
	for name, c := range map[string]struct {
		objects tree
		step    int64 // of what is found
		stale   bool
		none    bool
		text    string
	}{
		"nothing since":                         {before, 0, true, false, "nothing was written since"},
		"Pitstop's own objects":                 {before.with(tree{LeaseName: {50, 1}, RequestName: {50, 1}}), 0, true, false, ""},
		"a higher step":                         {before.with(orbaxStep("4000", 10)), 4000, false, false, ""},
		"a lower step":                          {before.with(orbaxStep("1000", 10)), 1000, false, false, ""},
		"a step below many":                     {nine.with(orbaxStep("7", 10)), 7, false, false, ""},
		"one of PyTorch":                        {before.with(torchStep("1000", 10)), 1000, false, false, ""},
		"files of TensorFlow":                   {bundleFiles("model-300", 100).with(bundleFiles("model-200", 10)).with(stateOf(10)), 200, false, false, ""},
		"a step is written":                     {before.with(orbaxStep("4000", 10)).without("4000/commit_success.txt"), 0, false, false, "4000/"},
		"a lower step is written":               {before.with(orbaxStep("1000", 10)).without("1000/commit_success.txt"), 0, false, false, "1000/"},
		"a step was left unfinished before":     {before.with(orbaxStep("4000", 90)).without("4000/commit_success.txt"), 0, true, false, ""},
		"a temporary name":                      {before.with(tree{"1000.orbax-checkpoint-tmp-12/default/d": {10, 10}}), 0, false, false, "1000.orbax"},
		"a temporary name from before":          {before.with(tree{"1000.orbax-checkpoint-tmp-12/default/d": {10, 90}}), 0, true, false, ""},
		"another directory is written to":       {before.with(tree{"run-b/x/weights.bin": {10, 10}}), 0, false, false, "run-b/x/weights.bin"},
		"another directory was written to":      {before.with(tree{"run-b/x/weights.bin": {10, 90}}), 0, true, false, ""},
		"another file is written":               {before.with(tree{"weights.bin": {10, 10}}), 0, false, false, "weights.bin"},
		"more steps than can be looked at":      {many, 0, false, false, "only 64 of its 65 steps"},
		"nothing but Pitstop's own":             {tree{LeaseName: {50, 1}}, 0, false, true, ""},
		"nothing that is known as a step":       {tree{"weights.bin": {10, 90}}, 0, false, false, "weights.bin"},
		"no step is complete, and none written": {orbaxStep("4000", 90).without("4000/commit_success.txt"), 0, false, false, "no step is complete"},
	} {
		each(t, func(t *testing.T, r rig) {
			if strings.HasPrefix(r.dir, "file://") && unmarked(c.objects) {
				return // a file system needs no marker
			}
			grow(t, r, c.objects)
			f, err := Newest(t.Context(), r.store, r.dir, at(tear))
			var m *Missing
			switch {
			case c.step > 0:
				if err != nil || f.Step != c.step || !f.At.After(at(tear)) {
					t.Errorf("%s: %+v, %v", name, f, err)
				}
			case !errors.As(err, &m):
				t.Errorf("%s: %+v, %v", name, f, err)
			case m.Stale != c.stale, m.None != c.none, !strings.Contains(m.Text, c.text), c.stale == (m.Saves == nil), !slices.IsSortedFunc(m.Saves, time.Time.Compare):
				t.Errorf("%s: %+v", name, m)
			}
		})
	}
}

// unmarked reports whether a step of Orbax is there without its marker.
func unmarked(objects tree) bool {
	for name := range objects {
		step, is := strings.CutSuffix(name, "/_CHECKPOINT_METADATA")
		if _, marked := objects[step+"/commit_success.txt"]; is && !marked {
			return true
		}
	}
	return false
}
