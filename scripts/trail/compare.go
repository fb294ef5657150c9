package trail

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
)

// In what two builds differ, besides Call, Request and End.
const (
	Cause    Kind = "cause"     // the same incident ended in the same way, and has another cause
	Time     Kind = "time"      // the same was done at another time
	Document Kind = "document"  // the same was done, and another document is left
	Rule     Kind = "violation" // one build broke a rule
	Wording  Kind = "wording"   // people get the same news in other words
	Schema   Kind = "schema"    // the documents have different forms by intent, and are not compared
)

// Kinds are the kinds of differences, in the order in which they are printed.
func Kinds() []Kind { return []Kind{Rule, Call, Request, End, Cause, Time, Document, Wording, Schema} }

// Harmless reports whether two builds are the same all the same: such a difference is only counted.
func (k Kind) Harmless() bool { return k == Wording || k == Schema }

// Divergence is the first difference between two builds for one workload in one run.
type Divergence struct {
	Kind     Kind    `json:"kind"`
	Run      string  `json:"run"`
	Days     float64 `json:"days,omitzero"`
	Workload string  `json:"workload"`
	// At is when the builds parted, or when their documents were read.
	At time.Time `json:"at,omitzero"`
	// This and Other are what each build did then; one that did nothing more has none. Before are up to three steps that both did.
	This   *Step  `json:"this,omitempty"`
	Other  *Step  `json:"other,omitempty"`
	Before []Step `json:"before,omitempty"`
	// Paths are where the documents differ.
	Paths []Path `json:"paths,omitempty"`
	// ThisBroke and OtherBroke are the rule that one build alone broke.
	ThisBroke  *Broken `json:"this_broke,omitempty"`
	OtherBroke *Broken `json:"other_broke,omitempty"`
}

// Path is a place at which two documents differ. A value that is not there is empty.
type Path struct {
	Path  string         `json:"path"`
	This  jsontext.Value `json:"this,omitzero"`
	Other jsontext.Value `json:"other,omitzero"`
}

// before is how many common steps are printed with a divergence.
const before = 3

// compare finds the first difference of each workload, and each rule that one build alone broke. Harmless differences are found
// where there is no other.
func compare(this, other Trail) (found []Divergence) {
	for _, id := range workloads(this, other) {
		if d, differs := compareWorkload(this.workload(id), other.workload(id), this.Read); differs {
			found = append(found, d)
		}
	}
	for _, b := range this.Broken {
		if !other.broke(b) {
			found = append(found, Divergence{Kind: Rule, Workload: b.Workload, At: b.At, ThisBroke: &b})
		}
	}
	for _, b := range other.Broken {
		if !this.broke(b) {
			found = append(found, Divergence{Kind: Rule, Workload: b.Workload, At: b.At, OtherBroke: &b})
		}
	}
	// The earliest may have caused the others.
	slices.SortStableFunc(found, func(a, b Divergence) int { return a.At.Compare(b.At) })
	for i := range found {
		found[i].Run, found[i].Days = this.Run, this.Days
	}
	return found
}

// broke reports whether a run broke that rule for that workload: once is as bad as twice.
func (t Trail) broke(b Broken) bool {
	return slices.ContainsFunc(t.Broken, func(o Broken) bool { return o.Rule == b.Rule && o.Workload == b.Workload })
}

// compareWorkload compares the actions for one workload, and its documents as read at that time.
func compareWorkload(this, other Workload, read time.Time) (d Divergence, differs bool) {
	d = Divergence{Kind: Wording, Workload: this.ID}
	for i := range max(len(this.Steps), len(other.Steps)) {
		a, b := step(this, i), step(other, i)
		if a != nil && b != nil && a.same(*b) {
			if a.Reason != b.Reason && !differs {
				d.At, d.This, d.Other, differs = a.At, a, b, true
			}
			continue
		}
		d.Kind, d.This, d.Other, d.Before = kindOf(a, b), a, b, this.Steps[max(0, i-before):i]
		d.At = first(a, b).At
		return d, true
	}
	if a, b := schema(this.Document), schema(other.Document); a != b && len(this.Document) > 0 && len(other.Document) > 0 {
		return Divergence{Kind: Schema, Workload: this.ID}, true
	}
	paths, worded := documents(this.Document, other.Document)
	if len(paths) == 0 {
		return d, differs || worded
	}
	i := len(this.Steps)
	for i > 0 && this.Steps[i-1].At.After(read) {
		i--
	}
	return Divergence{Kind: Document, Workload: this.ID, At: read, Before: this.Steps[max(0, i-before):i], Paths: paths}, true
}

func step(w Workload, i int) *Step {
	if i < len(w.Steps) {
		return &w.Steps[i]
	}
	return nil
}

// first is the earlier of two steps, of which one may be missing.
func first(a, b *Step) *Step {
	if a == nil || b != nil && b.At.Before(a.At) {
		return b
	}
	return a
}

// kindOf says in what two steps differ that stand at the same place. Where they are of different kinds, the earlier one is what the
// other build did not do.
func kindOf(a, b *Step) Kind {
	if a == nil || b == nil {
		return first(a, b).Kind
	}
	if a.sameButTimes(*b) {
		return Time
	}
	if c := *b; a.Kind == End && c.Kind == End {
		c.Cause = a.Cause
		if a.same(c) {
			return Cause
		}
	}
	return first(a, b).Kind
}

// documents finds where two documents differ, and whether there are other words in them besides.
func documents(this, other jsontext.Value) (paths []Path, worded bool) {
	var c difference
	c.values("", this, other, false)
	return c.paths, c.worded
}

func schema(document jsontext.Value) int {
	var s struct {
		Schema int `json:"schema"`
	}
	if json.Unmarshal(document, &s) != nil {
		return 0
	}
	return s.Schema
}

// difference collects where two values differ.
type difference struct {
	paths  []Path
	worded bool
}

// values compares two values at a path. In prose only words differ.
func (d *difference) values(path string, a, b jsontext.Value, prose bool) {
	if bytes.Equal(a, b) {
		return
	}
	if len(a) > 0 && len(b) > 0 && a.Kind() == b.Kind() {
		switch a.Kind() {
		case jsontext.KindBeginObject:
			d.objects(path, a, b, prose)
			return
		case jsontext.KindBeginArray:
			d.arrays(path, a, b, prose)
			return
		default:
		}
	}
	if prose {
		d.worded = true
		return
	}
	d.paths = append(d.paths, Path{path, a, b})
}

func (d *difference) objects(path string, a, b jsontext.Value, prose bool) {
	var x, y map[string]jsontext.Value
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		d.paths = append(d.paths, Path{path, a, b})
		return
	}
	all := maps.Clone(x)
	maps.Copy(all, y)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		d.values(strings.TrimPrefix(path+"."+name, "."), x[name], y[name], prose || wording[name])
	}
}

func (d *difference) arrays(path string, a, b jsontext.Value, prose bool) {
	var x, y []jsontext.Value
	if json.Unmarshal(a, &x) != nil || json.Unmarshal(b, &y) != nil {
		d.paths = append(d.paths, Path{path, a, b})
		return
	}
	at := func(all []jsontext.Value, i int) jsontext.Value {
		if i < len(all) {
			return all[i]
		}
		return nil
	}
	for i := range max(len(x), len(y)) {
		d.values(fmt.Sprintf("%s[%d]", path, i), at(x, i), at(y, i), prose)
	}
}

// wording are the fields of a document that hold words for people, or what changes with them: the digest of a body that has a
// reason, and the number of a message in the order of all messages.
var wording = map[string]bool{
	"advice": true, "deaf": true, "digest": true, "failed": true, "held": true, "last_failure": true, "reason": true, "source": true,
	"text": true, "when": true, "why": true, "would": true,
}
