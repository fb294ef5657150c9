package checkpoint

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Orbax's names. On gs:// Orbax writes commitMarker into a checkpoint last of all; on a file system it renames the whole
// directory from a name with tmpSuffix, and writes the marker there too since version 0.12.3. If it has written stepMetadata
// into a directory, it completes or discards that directory as a whole. Source: https://github.com/google/orbax,
// checkpoint/_src/path/atomicity.py.
const (
	commitMarker = "commit_success.txt"
	tmpSuffix    = ".orbax-checkpoint-tmp"
	stepMetadata = "_CHECKPOINT_METADATA"
)

// The names of PyTorch's distributed checkpoints, which PyTorch/XLA uses too. The first rank writes dcpMetadata when all
// ranks have written their files. PyTorch/XLA's manager writes xlaMetadata after that, and ignores a checkpoint without it.
// Source: https://github.com/pytorch/pytorch, torch/distributed/checkpoint/filesystem.py, and
// https://github.com/pytorch/xla, torch_xla/experimental/distributed_checkpoint/manager.py.
const (
	dcpSuffix   = ".distcp"
	dcpMetadata = ".metadata"
	xlaMetadata = ".manager_metadata"
)

// The names of TensorFlow's checkpoints, which lie side by side in the directory: PREFIX-NUMBER.index, and one file
// PREFIX-NUMBER.data-00000-of-00001 or more. The data is moved to these names first, the index is written last of all; the
// manager's state file follows it. Source: https://github.com/tensorflow/tensorflow, core/util/tensor_bundle.
const (
	bundleIndex = ".index"
	bundleState = "checkpoint"
)

var bundleData = regexp.MustCompile(`^(.+)\.data-([0-9]{5})-of-([0-9]{5})$`)

// plainMarkers are the last files that programs without Orbax write.
var plainMarkers = []string{"DONE", "_SUCCESS"}

// The bounds of a look: how many steps from the highest down, how many names of one step, and how many items of it.
const (
	maxSteps = 8
	maxNames = 1000
	maxItems = 32
)

// Want is the condition for a checkpoint to count.
type Want struct {
	// Since is the time after which it must have been completed; zero is any time.
	Since time.Time
	// MoreThan is the step that it must pass. Zero sets no limit, so that a first checkpoint of step 0 counts.
	MoreThan int64
}

// Found is a complete checkpoint.
type Found struct {
	Step int64
	URI  string
	// At is when it was completed: the time of its marker, or of its newest file where there is no marker.
	At time.Time
	// Objects and Bytes count its content besides markers and empty objects; More says that it holds more than was counted.
	Objects int
	Bytes   int64
	More    bool
	// Doubt says why nobody knows whether it is complete; empty is that it is.
	Doubt string
}

// Missing says that the look succeeded but found no checkpoint that counts.
type Missing struct { //nolint:errname // it is a result rather than a failure
	Dir string
	// Text describes the content of the directory instead, for people, in one line.
	Text string
	// Stale says that the newest checkpoint is complete but too old, and that none is being written.
	Stale bool
	// None says that the directory holds only Pitstop's own objects: no checkpoint was ever saved.
	None bool
	// Saves are the times of all complete checkpoints, oldest first, where Newest has looked and finds the newest one too old: that is Last.
	Saves []time.Time
	Last  Found
}

// Error implements error.
func (m *Missing) Error() string { return "no checkpoint in " + m.Dir + ": " + m.Text }

// Verify finds the wanted complete checkpoint with the highest step in dir. If there is none the error is *Missing; every
// other error says that it could not look.
//
// Layouts says how a complete one is known.
//
// On gs:// a step directory is complete when it holds Orbax's commit marker. A step in which each item has a marker of its
// own counts too, unless Orbax manages the step as a whole: then Orbax would discard it. A program without Orbax marks a
// step with a file DONE or _SUCCESS. On file:// a step directory is complete once it has its final name, no item in it
// has a temporary one, and no step below it has a marker that it lacks. Found.Doubt says where its files tell nothing. On both it must hold something besides markers.
//
// A step directory of PyTorch's distributed checkpoints, PyTorch/XLA's among them, is complete on either storage when its
// metadata is there, and none of its files is newer. TensorFlow's files PREFIX-NUMBER are complete with their index and
// every part of the data. The program chooses the number, which may be a count of checkpoints.
//
// Verify looks only at the eight highest steps, and at one or two pages of names of each, because a checkpoint may have a
// hundred thousand objects.
func Verify(ctx context.Context, s Store, dir string, want Want) (Found, error) {
	names, err := s.List(ctx, dir, ListOptions{})
	if errors.Is(err, ErrNotExist) {
		return Found{}, &Missing{Dir: dir, Text: "the directory does not exist", None: true}
	}
	if err != nil {
		return Found{}, err
	}
	c := candidatesOf(names.Entries)
	var notes []string
	if names.Truncated {
		notes = append(notes, fmt.Sprintf("only the first %d names were read", len(names.Entries)))
	}
	var unfinished, complete string
	looked := 0
	for i, step := range c.steps[:min(len(c.steps), maxSteps)] {
		if complete != "" && want.MoreThan > 0 && step.number <= want.MoreThan {
			break // neither this one nor a lower one can count
		}
		f, why, err := inspect(ctx, s, dir, step, c.beside(dir, i))
		if err != nil {
			return Found{}, err
		}
		looked++
		switch {
		case why != "":
			if unfinished == "" && complete == "" {
				unfinished = fmt.Sprintf("step %d %s", step.number, why)
			}
			continue
		case want.MoreThan > 0 && f.Step <= want.MoreThan:
			why = fmt.Sprintf("not past step %d", want.MoreThan)
		case !want.Since.IsZero() && !f.At.After(want.Since):
			why = "before the request of " + clock(want.Since)
		default:
			return f, nil
		}
		if complete == "" {
			complete = fmt.Sprintf("the newest complete checkpoint is step %d of %s, %s", f.Step, clock(f.At), why)
		}
	}
	stale := complete != "" && unfinished == "" && c.writing == ""
	if complete == "" && looked > 1 {
		complete = fmt.Sprintf("none of the %d highest steps is complete", looked)
	}
	notes = append([]string{c.writing, unfinished, complete}, notes...)
	notes = slices.DeleteFunc(notes, func(n string) bool { return n == "" })
	if len(c.steps) == 0 {
		notes = append(notes, c.instead())
	}
	none := len(c.steps) == 0 && c.others == 0 && c.writing == "" && !names.Truncated
	return Found{}, &Missing{Dir: dir, Text: strings.Join(notes, "; "), Stale: stale, None: none}
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") + " UTC" }

// candidate is a step directory, the files of one TensorFlow checkpoint, or one file of Lightning.
type candidate struct {
	name   string
	number int64
	// file is set if the candidate is one file, and near is another such file.
	file, near *Entry
	// bundle is set if the candidate is files.
	bundle *bundle
}

// bundle is a TensorFlow checkpoint as the listing of the directory shows it.
type bundle struct {
	index, state *Entry
	// data are its parts, by the size of the set that they belong to.
	data map[int][]Entry
}

// candidates is the result of sorting the names in a checkpoint directory.
type candidates struct {
	// steps are the step directories, highest first.
	steps []candidate
	// writing names a step that is being written, if it is not below these.
	writing string
	// others counts the other names, other is one of them; own says that Pitstop's own objects are there.
	others int
	other  string
	own    bool
}

func candidatesOf(entries []Entry) candidates {
	var c candidates
	highest := int64(-1)
	bundles := map[string]*bundle{}
	var state *Entry
	for i, e := range entries {
		if e.Name == bundleState && !e.Dir {
			state = &entries[i]
		}
		if prefix, n, shards, ok := bundleOf(e); ok {
			b := bundles[prefix]
			if b == nil {
				b = &bundle{data: map[int][]Entry{}}
				bundles[prefix] = b
				c.steps = append(c.steps, candidate{name: prefix, number: n, bundle: b})
			}
			if shards == 0 {
				b.index = &entries[i]
			} else {
				b.data[shards] = append(b.data[shards], e)
			}
			continue
		}
		final, tmp := finalName(e.Name)
		n, ok := Step(final)
		file := !e.Dir && lightning.MatchString(final)
		switch {
		case e.Name == LeaseName || e.Name == RequestName || e.Name == CrewName:
			c.own = true
		case !e.Dir && !file || !ok:
			if c.others++; c.other == "" {
				c.other = e.Name
			}
		case !tmp && file:
			c.steps = append(c.steps, candidate{name: e.Name, number: n, file: &entries[i]})
		case !tmp:
			c.steps = append(c.steps, candidate{name: e.Name, number: n})
		case n > highest:
			highest = n
			c.writing = fmt.Sprintf("step %d still has a temporary name (%s)", n, e.Name)
		}
	}
	for _, b := range bundles {
		b.state = state
	}
	// The same step may have two names: the order must be the same at every look.
	slices.SortFunc(c.steps, func(a, b candidate) int {
		if a.number != b.number {
			return cmp.Compare(b.number, a.number)
		}
		return strings.Compare(a.name, b.name)
	})
	var near *Entry
	for i := len(c.steps) - 1; i >= 0; i-- {
		if file := c.steps[i].file; file != nil {
			c.steps[i].near, near = near, file
		}
	}
	if len(c.steps) > 0 && highest < c.steps[0].number {
		c.writing = "" // a crash left it long ago
	}
	return c
}

// bundleOf reads the file name of a TensorFlow checkpoint: the part before its suffix, the number at the end of that part,
// and the count of data parts. The index has no part number.
func bundleOf(e Entry) (prefix string, number int64, shards int, ok bool) {
	if e.Dir {
		return "", 0, 0, false
	}
	if m := bundleData.FindStringSubmatch(e.Name); m != nil {
		shard, err := strconv.Atoi(m[2])
		if shards, _ = strconv.Atoi(m[3]); err != nil || shard >= shards { //nolint:errcheck // five digits are a number
			return "", 0, 0, false
		}
		prefix = m[1]
	} else if prefix, ok = strings.CutSuffix(e.Name, bundleIndex); !ok {
		return "", 0, 0, false
	}
	i := strings.LastIndexByte(prefix, '-')
	if i < 1 {
		return "", 0, 0, false
	}
	number, ok = Step(prefix[i+1:])
	return prefix, number, shards, ok
}

// beside are the step directories below candidate i, nearest first, or those above if it is the lowest: the same program wrote them.
func (c candidates) beside(dir string, i int) []string {
	for _, others := range [][]candidate{c.steps[i+1:], c.steps[:i]} {
		var names []string
		for _, o := range others {
			if o.bundle == nil && o.file == nil && len(names) < maxSteps {
				names = append(names, Join(dir, o.name))
			}
		}
		if len(names) > 0 {
			return names
		}
	}
	return nil
}

// instead describes the content of a directory without a step.
func (c candidates) instead() string {
	switch {
	case c.others == 1:
		return "it holds no step directory, only " + oneLine(c.other)
	case c.others > 1:
		return fmt.Sprintf("it holds no step directory, but %d other names, %s the first", c.others, oneLine(c.other))
	case c.writing != "":
		return "there is no finished step"
	case c.own:
		return "the directory holds only Pitstop's own objects"
	}
	return "the directory is empty"
}

// Counted reports whether the number of a found checkpoint may be a count of checkpoints. That is so for TensorFlow's files,
// whose names differ from those of step directories.
func Counted(uri string) bool {
	_, step := Step(path.Base(uri))
	return uri != "" && !step
}

// complete says when the files of a TensorFlow checkpoint were complete, or why they are not.
func (b *bundle) complete(f Found, disk bool) (Found, string) {
	if b.index == nil || b.index.Size == 0 {
		return Found{}, "has no index yet"
	}
	most := 0
	for shards, data := range b.data {
		if len(data) == shards {
			for _, e := range data {
				f.Bytes += e.Size
			}
			f.Objects, f.At = shards, b.index.Updated
			// In a bucket the index appears at once. On a disk it grows, and the state file marks its end.
			if disk && (b.state == nil || b.state.Updated.Before(b.index.Updated)) {
				return Found{}, "has an index of which no file " + bundleState + " tells yet"
			}
			return f, ""
		}
		most = max(most, len(data))
	}
	return Found{}, fmt.Sprintf("has an index, but lacks a part of its data (found %d)", most)
}

// inspect looks at one step directory. If it does not count, inspect returns the reason. beside are other step
// directories.
func inspect(ctx context.Context, s Store, dir string, c candidate, beside []string) (f Found, why string, err error) {
	l, disk := look{store: s, uri: Join(dir, c.name)}, strings.HasPrefix(dir, "file://")
	f = Found{Step: c.number, URI: l.uri}
	switch {
	case c.bundle != nil:
		if _, step := Step(c.name); step {
			f.URI += bundleIndex // the name alone would be that of a step directory
		}
		f, why = c.bundle.complete(f, disk)
		return f, why, nil
	case c.file != nil:
		f, why = single(f, c.file, c.near, disk)
		return f, why, nil
	}
	if l.top, err = s.List(ctx, l.uri, ListOptions{Limit: maxNames}); errors.Is(err, ErrNotExist) {
		return Found{}, "is gone or empty", nil
	}
	if err != nil {
		return Found{}, "", err
	}
	layout := layoutOf(c.name)
	switch {
	case l.distributed():
		f.At, why, err = l.gathered(ctx, beside)
	case layout != nil:
		f.At, why, err = l.ended(ctx, layout)
	case disk:
		f.At, why, f.Doubt, err = l.renamed(ctx, beside)
	default:
		f.At, why, err = l.committed(ctx)
	}
	if err != nil || why != "" {
		return Found{}, why, err
	}
	all, err := l.objects(ctx)
	if err != nil {
		return Found{}, "", err
	}
	if f.At.IsZero() {
		f.At = l.newest(all)
	}
	for _, e := range all.Entries {
		if e.Size == 0 || bookkeeping(e.Name) {
			continue
		}
		f.Objects++
		f.Bytes += e.Size
	}
	f.More = all.Truncated
	switch {
	case f.Objects == 0 && f.More:
		return Found{}, fmt.Sprintf("holds no data among its first %d objects", len(all.Entries)), nil
	case f.Objects == 0:
		return Found{}, "holds no data", nil
	}
	return f, "", nil
}

// bookkeeping reports whether an object is metadata, or a leftover of an unfinished checkpoint, and not data.
func bookkeeping(name string) bool {
	if strings.Contains(name, tmpSuffix) {
		return true
	}
	if lastFile(name) {
		return true
	}
	_, name = split(name)
	if _, tmp := finalName(name); tmp {
		return true
	}
	switch name {
	case commitMarker, stepMetadata, dcpMetadata, xlaMetadata:
		return true
	}
	return slices.Contains(plainMarkers, name)
}

// look is a look at one step directory.
type look struct {
	store Store
	uri   string
	top   Listing
	all   *Listing
}

// distributed reports whether a step directory is one of PyTorch's distributed checkpoints.
func (l *look) distributed() bool {
	return slices.ContainsFunc(l.top.Entries, func(e Entry) bool {
		return !e.Dir && (strings.HasSuffix(e.Name, dcpSuffix) || e.Name == dcpMetadata || e.Name == xlaMetadata)
	})
}

// gathered says when all ranks had written their part, or why the step does not count. beside are other step directories: if
// PyTorch/XLA's manager wrote the first, this one counts only with the manager's own metadata.
func (l *look) gathered(ctx context.Context, beside []string) (at time.Time, why string, err error) {
	metadata, err := l.find(ctx, l.top, l.uri, dcpMetadata)
	if err != nil {
		return time.Time{}, "", err
	}
	if metadata == nil || metadata.Size == 0 {
		return time.Time{}, "has no " + dcpMetadata + ": not all ranks have written their part", nil
	}
	for _, e := range l.top.Entries {
		if strings.HasSuffix(e.Name, dcpSuffix) && e.Updated.After(metadata.Updated) {
			return time.Time{}, "is being written again: " + e.Name + " is newer than " + dcpMetadata, nil
		}
	}
	manager, err := l.find(ctx, l.top, l.uri, xlaMetadata)
	if err != nil || manager != nil {
		return timeOf(manager), "", err
	}
	if len(beside) == 0 {
		return metadata.Updated, "", nil
	}
	other, err := l.find(ctx, Listing{Truncated: true}, beside[0], xlaMetadata)
	if err != nil {
		return time.Time{}, "", err
	}
	if other != nil {
		return time.Time{}, "has no " + xlaMetadata + " yet, unlike the step next to it", nil
	}
	return metadata.Updated, "", nil
}

// committed says when a step was committed on gs://, or why it does not count.
func (l *look) committed(ctx context.Context) (at time.Time, why string, err error) {
	marker, err := l.find(ctx, l.top, l.uri, commitMarker)
	if err != nil || marker != nil {
		return timeOf(marker), "", err
	}
	index, err := l.find(ctx, l.top, l.uri, axlearnIndex)
	if err != nil || index != nil && index.Size > 0 {
		return timeOf(index), "", err
	}
	whole, err := l.find(ctx, l.top, l.uri, stepMetadata)
	if err != nil {
		return time.Time{}, "", err
	}
	if whole != nil {
		return time.Time{}, "has no commit marker", nil
	}
	at, why, err = l.items(ctx)
	if err != nil || why == "" {
		return at, "", err
	}
	for _, name := range plainMarkers {
		marker, err := l.find(ctx, l.top, l.uri, name)
		if err != nil {
			return time.Time{}, "", err
		}
		if marker == nil {
			continue
		}
		all, err := l.objects(ctx)
		if err != nil {
			return time.Time{}, "", err
		}
		if i := slices.IndexFunc(all.Entries, func(e Entry) bool { return orbax(e.Name) }); i >= 0 {
			why = fmt.Sprintf("%s: %s does not count next to Orbax's own files (%s)", why, name, all.Entries[i].Name)
			return time.Time{}, why, nil
		}
		return marker.Updated, "", nil
	}
	return time.Time{}, why, nil
}

// items says when the last item of a step was committed, if each has its own marker, or why the step does not count.
func (l *look) items(ctx context.Context) (at time.Time, why string, err error) {
	var items []string
	if why := unfinishedItem(l.top.Entries); why != "" {
		return time.Time{}, why, nil
	}
	for _, e := range l.top.Entries {
		if e.Dir {
			items = append(items, e.Name)
		}
	}
	if len(items) == 0 || len(items) > maxItems || l.top.Truncated {
		return time.Time{}, "has no commit marker", nil
	}
	for i, item := range items {
		marker, err := l.find(ctx, Listing{Truncated: true}, Join(l.uri, item), commitMarker)
		switch {
		case err != nil:
			return time.Time{}, "", err
		case marker == nil && i == 0:
			return time.Time{}, "has no commit marker", nil
		case marker == nil:
			return time.Time{}, "has no commit marker in its item " + item, nil
		}
		if marker.Updated.After(at) {
			at = marker.Updated
		}
	}
	return at, "", nil
}

func timeOf(e *Entry) time.Time {
	if e == nil {
		return time.Time{}
	}
	return e.Updated
}

// find returns the object of that name in a directory, or nil. It asks the store if the listing may lack it.
func (l *look) find(ctx context.Context, in Listing, dir, name string) (*Entry, error) {
	is := func(e Entry) bool { return e.Name == name && !e.Dir }
	if i := slices.IndexFunc(in.Entries, is); i >= 0 {
		return &in.Entries[i], nil
	}
	if !in.Truncated {
		return nil, nil //nolint:nilnil // nil means none
	}
	// The name itself comes before every longer name that begins with it.
	in, err := l.store.List(ctx, dir, ListOptions{Prefix: name, Limit: 1})
	if err != nil {
		return nil, err
	}
	if i := slices.IndexFunc(in.Entries, is); i >= 0 {
		return &in.Entries[i], nil
	}
	return nil, nil //nolint:nilnil // nil means none
}

// objects lists the first objects at every depth, and does so only once.
func (l *look) objects(ctx context.Context) (Listing, error) {
	if l.all != nil {
		return *l.all, nil
	}
	all, err := l.store.List(ctx, l.uri, ListOptions{Recursive: true, Limit: maxNames})
	if errors.Is(err, ErrNotExist) {
		err = nil // deleted meanwhile, so it is empty
	}
	if err == nil {
		l.all = &all
	}
	return all, err
}

// newest is the time of the newest object seen.
func (l *look) newest(all Listing) time.Time {
	var at time.Time
	for _, list := range [][]Entry{l.top.Entries, all.Entries} {
		for _, e := range list {
			if e.Updated.After(at) {
				at = e.Updated
			}
		}
	}
	return at
}

// orbax reports whether Orbax writes an object of that name, finished or not.
func orbax(name string) bool {
	for seg := range strings.SplitSeq(name, "/") {
		switch seg {
		case commitMarker, stepMetadata, "_METADATA", "_sharding", "manifest.ocdbt", "orbax.checkpoint", "array_metadatas":
			return true
		}
		if strings.HasPrefix(seg, "ocdbt.process_") || strings.Contains(seg, tmpSuffix) {
			return true
		}
	}
	return false
}
