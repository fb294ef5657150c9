package checkpoint

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Layout is how a framework names a step, and how a complete one is known.
type Layout struct {
	// Framework writes it, Step is how it names a step, Complete is how a complete one is known, and Source is where that stands.
	Framework, Step, Complete, Source string
	// named matches the names of steps that only this framework uses; last is the file that it writes last of all.
	named *regexp.Regexp
	last  string
}

// Layouts are those that Verify knows, for buckets and for disks. A mounted bucket is a disk.
var Layouts = []Layout{
	{
		Framework: "Orbax, MaxText, Pax, T5X on Orbax", Step: "N, PREFIX_N",
		Complete: "`commit_success.txt`; on a disk the final name is enough where no step next to it has that file, and no item lacks its manifest",
		Source:   "google/orbax, checkpoint/_src/path/atomicity.py",
	},
	{
		Framework: "Levanter", Step: "step-N", Complete: "`metadata.json`, written last", Source: "marin-community/levanter, checkpoint.py",
		named: regexp.MustCompile(`^step-[0-9]+$`), last: "metadata.json",
	},
	{
		Framework: "Trainer of Hugging Face", Step: "checkpoint-N", Complete: "`trainer_state.json`, written after the model and the optimizer", Source: "huggingface/transformers, trainer.py",
		named: regexp.MustCompile(`^checkpoint-[0-9]+$`), last: "trainer_state.json",
	},
	{
		Framework: "OLMo-core", Step: "stepN", Complete: "`.metadata.json`, written last", Source: "allenai/OLMo-core, train/checkpoint.py",
		named: regexp.MustCompile(`^step[0-9]+$`), last: ".metadata.json",
	},
	{
		Framework: "AXLearn", Step: "step_N", Complete: "`index`, written last", Source: "apple/axlearn, common/checkpointer.py", last: axlearnIndex,
	},
	{
		Framework: "Lightning", Step: "epoch=E-step=N.ckpt",
		Complete: "the file has content; on a disk it is not much smaller than the one next to it, because a copy may have been cut off",
		Source:   "Lightning-AI/pytorch-lightning, callbacks/model_checkpoint.py",
	},
	{
		Framework: "PyTorch's distributed checkpoints, PyTorch/XLA", Step: "each of these names",
		Complete: "`.metadata`, and no newer data; a rank without data leaves an empty `.distcp`; `.manager_metadata` where the step next to it has it",
		Source:   "pytorch/pytorch, distributed/checkpoint/filesystem.py",
	},
	{
		Framework: "TensorFlow", Step: "files PREFIX-N", Complete: "the index, and every part of the data; on a disk the file `checkpoint` after it",
		Source: "tensorflow/tensorflow, core/util/tensor_bundle",
	},
	{Framework: "a program of your own", Step: "each of these names", Complete: "`DONE` or `_SUCCESS`, written last", Source: "this table"},
}

const axlearnIndex = "index"

var (
	stepName = regexp.MustCompile(`^(?:step-?|checkpoint-|.+_)?([0-9]+)$`)
	// Lightning writes the names of the values into its names: epoch=4-step=45441.ckpt, epoch=4-step=45441-loss=0.25.ckpt.
	lightning = regexp.MustCompile(`(?:^|[-_])step=([0-9]+)(?:[-_].*)?\.ckpt$`)
	// temporary are names of what is being written. OLMo-core has stepN-tmp, T5X checkpoint_N.tmp-TIME, older Trainers tmp-checkpoint-N.
	temporary = regexp.MustCompile(`^(?:tmp-(.+)|(.+?)(?:\.orbax-checkpoint-tmp.*|[-.]tmp(?:[-.].*)?|\.temp|\.part|\.partial|\.incomplete))$`)
)

// Step returns the step that a name stands for: a number alone, or after a prefix and an underscore, as Orbax writes it (48190,
// 00048190, step_48190); step-48190, step48190, checkpoint-48190; and Lightning's epoch=4-step=48190.ckpt. Other names,
// temporary ones among them, are not steps.
func Step(name string) (int64, bool) {
	m := stepName.FindStringSubmatch(name)
	if m == nil {
		m = lightning.FindStringSubmatch(name)
	}
	if m == nil || strings.Contains(name, tmpSuffix) {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	return n, err == nil
}

// finalName is the name that a temporary one will become, or the name itself.
func finalName(name string) (final string, tmp bool) {
	m := temporary.FindStringSubmatch(name)
	if m == nil {
		return name, false
	}
	return m[1] + m[2], true
}

// layoutOf is the layout that the name of a step alone tells, or nil.
func layoutOf(name string) *Layout {
	i := slices.IndexFunc(Layouts, func(l Layout) bool { return l.named != nil && l.named.MatchString(name) })
	if i < 0 {
		return nil
	}
	return &Layouts[i]
}

// lastFile reports whether a framework writes the file into a step last of all.
func lastFile(name string) bool {
	return slices.ContainsFunc(Layouts, func(l Layout) bool { return l.last == name })
}

// single is when a checkpoint that is one file was complete, or why it is not. beside is another one of the same program, or nil.
func single(f Found, e, beside *Entry, disk bool) (Found, string) {
	switch {
	case e.Size == 0:
		return Found{}, "is an empty file"
	case disk && beside != nil && e.Size < beside.Size/10*9:
		return Found{}, fmt.Sprintf("has %d bytes, and %s next to it has %d: it is cut off", e.Size, oneLine(beside.Name), beside.Size)
	}
	f.At, f.Objects, f.Bytes = e.Updated, 1, e.Size
	return f, ""
}

// ended says when the layout's last file was written, or why the step does not count.
func (l *look) ended(ctx context.Context, layout *Layout) (at time.Time, why string, err error) {
	for _, name := range append([]string{layout.last, commitMarker}, plainMarkers...) {
		e, err := l.find(ctx, l.top, l.uri, name)
		if err != nil {
			return time.Time{}, "", err
		}
		if e != nil && (e.Size > 0 || name != layout.last) {
			return e.Updated, "", nil
		}
	}
	return time.Time{}, "has no " + layout.last + ", which " + layout.Framework + " writes last", nil
}

// renamed says when a step on a file system was completed, as far as a file shows it, or why it does not count. beside are the
// steps next to it: a file that the program writes last there is due here too.
func (l *look) renamed(ctx context.Context, beside []string) (at time.Time, why, doubt string, err error) {
	marks := append([]string{commitMarker, axlearnIndex}, plainMarkers...)
	for _, name := range marks {
		e, err := l.find(ctx, l.top, l.uri, name)
		switch {
		case err != nil:
			return time.Time{}, "", "", err
		case e != nil && name == commitMarker, e != nil && e.Size > 0 && name == axlearnIndex:
			return e.Updated, "", "", nil
		case e != nil && name != axlearnIndex:
			return time.Time{}, "", "", nil // the newest file tells the time
		}
	}
	if why := unfinishedItem(l.top.Entries); why != "" {
		return time.Time{}, why, "", nil
	}
	for _, other := range beside {
		near, err := l.store.List(ctx, other, ListOptions{Limit: maxNames})
		if err != nil {
			return time.Time{}, "", "", err
		}
		for _, name := range marks {
			if slices.ContainsFunc(near.Entries, func(e Entry) bool { return e.Name == name && !e.Dir }) {
				return time.Time{}, "has no " + name + ", unlike a step next to it", "", nil
			}
		}
	}
	all, err := l.objects(ctx)
	if err != nil {
		return time.Time{}, "", "", err
	}
	why, doubt = untold(all)
	return time.Time{}, why, doubt, nil
}

// untold says why the files of a step without a mark are not complete, or what keeps their completeness from being known.
func untold(all Listing) (why, doubt string) {
	manifests, known := map[string]bool{}, false
	for _, e := range all.Entries {
		folder, name := split(e.Name)
		if _, tmp := finalName(name); tmp {
			return "has an unfinished file " + oneLine(e.Name), ""
		}
		if name == "manifest.ocdbt" {
			manifests[folder] = true
		}
		known = known || orbax(e.Name)
	}
	for _, e := range all.Entries {
		item, _, parts := strings.Cut("/"+e.Name, "/ocdbt.process_")
		if item = strings.TrimPrefix(item, "/"); parts && !manifests[item] && !all.Truncated {
			return "has the data of single processes, and no " + oneLine(strings.TrimPrefix(item+"/manifest.ocdbt", "/")), ""
		}
	}
	if !known {
		doubt = "no file in it tells whether it is complete"
	}
	return "", doubt
}

func split(name string) (folder, base string) {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i], name[i+1:]
	}
	return "", name
}

// unfinishedItem says which item of a step still has a temporary name.
func unfinishedItem(top []Entry) string {
	for _, e := range top {
		if strings.Contains(e.Name, tmpSuffix) {
			return "has an unfinished item " + e.Name
		}
	}
	return ""
}
