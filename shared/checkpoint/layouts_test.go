package checkpoint

import (
	"slices"
	"testing"
)

// levanterStep is a step as Levanter leaves it, and so on: 120 bytes of data.
func levanterStep(name string, age int) tree {
	return tree{
		name + "/manifest.ocdbt": {10, age + 1}, name + "/model/params/d/abc": {110, age + 1}, name + "/metadata.json": {72, age},
	}
}

func trainerStep(name string, age int) tree {
	return tree{name + "/model.safetensors": {80, age + 2}, name + "/optimizer.pt": {40, age + 1}, name + "/trainer_state.json": {900, age}}
}

func olmoStep(name string, age int) tree {
	return tree{
		name + "/train/rank0.pt": {20, age + 2}, name + "/model_and_optim/__0_0.distcp": {100, age + 1},
		name + "/model_and_optim/.metadata": {30, age + 1}, name + "/.metadata.json": {20, age},
	}
}

func axlearnStep(name string, age int) tree {
	return tree{name + "/gda/model/0.0": {110, age + 1}, name + "/tf_0/input_iter.index": {10, age + 1}, name + "/index": {700, age}}
}

func lightningFile(name string, age int) tree { return tree{name: {120, age}} }

// TestALayoutIsReadAlikeInABucketAndOnADisk has a complete and a torn checkpoint of each framework.
func TestALayoutIsReadAlikeInABucketAndOnADisk(t *testing.T) {
	t.Parallel()
	const older = "; the newest complete checkpoint is step 9000 of 2026-11-12 01:54:07 UTC, not past step 9000"
	for name, tt := range map[string]struct {
		tree tree
		want Want
		sight
	}{
		"Levanter":                                {levanterStep("step-9000", 20).with(levanterStep("step-9485", 6)), Want{}, sight{name: "step-9485", step: 9485, age: 6, count: 2, bytes: 120}},
		"Levanter, torn":                          {levanterStep("step-9000", 20).with(levanterStep("step-9485", 6)).without("step-9485/metadata.json"), Want{MoreThan: 9000}, sight{words: "step 9485 has no metadata.json, which Levanter writes last" + older}},
		"Levanter, its last file empty":           {levanterStep("step-9485", 6).with(tree{"step-9485/metadata.json": {0, 6}}), Want{}, sight{words: "step 9485 has no metadata.json, which Levanter writes last"}},
		"the Trainer":                             {trainerStep("checkpoint-500", 20).with(trainerStep("checkpoint-1500", 6)), Want{}, sight{name: "checkpoint-1500", step: 1500, age: 6, count: 2, bytes: 120}},
		"the Trainer, torn":                       {trainerStep("checkpoint-500", 6).without("checkpoint-500/trainer_state.json"), Want{}, sight{words: "step 500 has no trainer_state.json, which Trainer of Hugging Face writes last"}},
		"the Trainer, staged":                     {trainerStep("tmp-checkpoint-500", 6), Want{}, sight{words: "step 500 still has a temporary name (tmp-checkpoint-500); there is no finished step"}},
		"OLMo-core":                               {olmoStep("step9000", 6), Want{}, sight{name: "step9000", step: 9000, age: 6, count: 2, bytes: 120}},
		"OLMo-core, torn":                         {olmoStep("step9500", 6).without("step9500/.metadata.json").with(olmoStep("step9000", 20)), Want{MoreThan: 9000}, sight{words: "step 9500 has no .metadata.json, which OLMo-core writes last" + older}},
		"OLMo-core, staged":                       {olmoStep("step9500-tmp", 6), Want{}, sight{words: "step 9500 still has a temporary name (step9500-tmp); there is no finished step"}},
		"AXLearn":                                 {axlearnStep("step_00009000", 6), Want{}, sight{name: "step_00009000", step: 9000, age: 6, count: 2, bytes: 120}},
		"T5X, staged":                             {tree{"checkpoint_500.tmp-1731377647/checkpoint": {9, 6}}, Want{}, sight{words: "step 500 still has a temporary name (checkpoint_500.tmp-1731377647); there is no finished step"}},
		"Pax on Orbax":                            {orbaxStep("checkpoint_00009000", 6), Want{}, sight{name: "checkpoint_00009000", step: 9000, age: 6, count: 4, bytes: 120}},
		"Lightning":                               {lightningFile("epoch=0-step=9000.ckpt", 20).with(lightningFile("epoch=4-step=45441.ckpt", 6)).with(tree{"last.ckpt": {120, 6}}), Want{}, sight{name: "epoch=4-step=45441.ckpt", step: 45441, age: 6, count: 1, bytes: 120}},
		"Lightning, empty":                        {lightningFile("epoch=0-step=9000.ckpt", 20).with(tree{"epoch=4-step=45441.ckpt": {0, 6}}), Want{MoreThan: 9000}, sight{words: "step 45441 is an empty file" + older}},
		"Lightning, staged":                       {lightningFile("epoch=4-step=45441.ckpt.part", 6), Want{}, sight{words: "step 45441 still has a temporary name (epoch=4-step=45441.ckpt.part); there is no finished step"}},
		"Lightning, sharded":                      {torchStep("epoch=4-step=45441.ckpt", 6).without("epoch=4-step=45441.ckpt/.manager_metadata"), Want{}, sight{name: "epoch=4-step=45441.ckpt", step: 45441, age: 6, count: 2, bytes: 120}},
		"PyTorch's, under another framework's":    {torchStep("step-9485", 6).without("step-9485/.manager_metadata"), Want{}, sight{name: "step-9485", step: 9485, age: 6, count: 2, bytes: 120}},
		"PyTorch's, with empty metadata":          {torchStep("9485", 6).with(tree{"9485/.metadata": {0, 6}}), Want{}, sight{words: "step 9485 has no .metadata: not all ranks have written their part"}},
		"PyTorch's, of a rank without data":       {torchStep("9485", 6).with(tree{"9485/__2_0.distcp": {0, 7}}), Want{}, sight{name: "9485", step: 9485, age: 6, count: 2, bytes: 120}},
		"TensorFlow's, named like the Trainer's":  {bundleFiles("checkpoint-500", 6).with(stateOf(6)), Want{}, sight{name: "checkpoint-500.index", step: 500, age: 6, count: 2, bytes: 120}},
		"a name of its own for Orbax, and marked": {orbaxStep("step-9000", 6), Want{}, sight{name: "step-9000", step: 9000, age: 6, count: 4, bytes: 120}},
	} {
		each(t, func(t *testing.T, r rig) {
			t.Helper()
			grow(t, r, tt.tree)
			got, err := Verify(t.Context(), r.store, r.dir, tt.want)
			see(t, name+" in "+r.dir, r, tt.sight, got, err)
		})
	}
}

// TestAStepOnADiskIsHeldAgainstTheOnesNextToIt: a mounted bucket is a disk, and there a name alone says little.
func TestAStepOnADiskIsHeldAgainstTheOnesNextToIt(t *testing.T) {
	t.Parallel()
	old := func(name string, age int) tree { // of an Orbax that writes no marks on a disk
		return orbaxStep(name, age).without(name+"/commit_success.txt", name+"/default/commit_success.txt", name+"/metrics/commit_success.txt")
	}
	torn := func(name string, age int) tree {
		return tree{name + "/_CHECKPOINT_METADATA": {90, age}, name + "/default/ocdbt.process_0/d/8f3ab": {80, age}}
	}
	for name, tt := range map[string]struct {
		tree tree
		sight
	}{
		"a mark is due":                       {orbaxStep("1800", 20).with(torn("1820", 6)), sight{name: "1800", step: 1800, age: 20, count: 4, bytes: 120}},
		"a mark is due behind another torn":   {orbaxStep("1800", 20).with(torn("1820", 6)).with(torn("1840", 5)), sight{name: "1800", step: 1800, age: 20, count: 4, bytes: 120}},
		"no mark is due":                      {old("1800", 20).with(old("1820", 6)), sight{name: "1820", step: 1820, age: 6, count: 4, bytes: 120}},
		"a mark was not due before an update": {old("1800", 20).with(old("1820", 15)).with(torn("1840", 6)), sight{name: "1820", step: 1820, age: 15, count: 4, bytes: 120}},
		"an item without its manifest":        {torn("1820", 6), sight{words: "step 1820 has the data of single processes, and no default/manifest.ocdbt"}},
		"DONE is due":                         {tree{"7/model.pt": {50, 9}, "7/DONE": {0, 8}, "9/model.pt": {50, 6}}, sight{name: "7", step: 7, age: 8, count: 1, bytes: 50}},
		"an index is due":                     {axlearnStep("step_7", 9).with(axlearnStep("step_9", 6)).without("step_9/index"), sight{name: "step_7", step: 7, age: 9, count: 2, bytes: 120}},
		"a part of a file":                    {tree{"9/model.part": {50, 6}}, sight{words: "step 9 has an unfinished file model.part"}},
		"a part of a file, deep":              {tree{"9/model.pt": {50, 6}, "9/rank1/model.pt.tmp": {50, 6}}, sight{words: "step 9 has an unfinished file rank1/model.pt.tmp"}},
		"a cut copy of Lightning's file":      {lightningFile("epoch=0-step=9000.ckpt", 20).with(tree{"epoch=4-step=45441.ckpt": {60, 6}}), sight{name: "epoch=0-step=9000.ckpt", step: 9000, age: 20, count: 1, bytes: 120}},
		"what nobody knows":                   {tree{"9/model.pt": {50, 6}}, sight{name: "9", step: 9, age: 6, count: 1, bytes: 50, doubt: "no file in it tells whether it is complete"}},
	} {
		for _, k := range kinds {
			if r := k.make(t); r.server == nil {
				grow(t, r, tt.tree)
				got, err := Verify(t.Context(), r.store, r.dir, Want{})
				see(t, name, r, tt.sight, got, err)
			}
		}
	}
}

func TestEachLayoutSaysHowItIsKnown(t *testing.T) {
	t.Parallel()
	for _, l := range Layouts {
		if slices.Contains([]string{l.Framework, l.Step, l.Complete, l.Source}, "") {
			t.Errorf("%+v", l)
		}
	}
}
